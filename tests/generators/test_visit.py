"""Orders of the mutable features, and the associations behind them, against scipy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats.contingency import association

from mcce.exceptions import InputError
from mcce.generators.visit import association_matrix, make_visit_sequence
from mcce.table import Schema


def encode(frame):
    return Schema.from_data(frame).encode(frame)


def associate(x, y):
    frame = pd.DataFrame({"x": x, "y": y})
    matrix = association_matrix(encode(frame))
    assert matrix.loc["x", "y"] == matrix.loc["y", "x"]
    return matrix.loc["x", "y"]


def order_of(frame, fixed=(), how="correlation"):
    return make_visit_sequence(how, encode(frame), fixed)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# ---- associations


@pytest.mark.parametrize("decimals", [8, 0])
def test_two_numbers_have_the_absolute_spearman_correlation(rng, decimals):
    x = rng.normal(size=300)
    y = -np.exp(x) + rng.normal(size=300)
    x, y = x.round(decimals), y.round(decimals)
    assert associate(x, y) == pytest.approx(abs(stats.spearmanr(x, y).statistic), abs=1e-12)


def test_ordered_column_counts_by_its_ranks(rng):
    codes = rng.integers(0, 4, 300)
    y = codes + rng.normal(size=300)
    grades = pd.Categorical.from_codes(codes, ["d", "c", "b", "a"], ordered=True)
    assert associate(grades, y) == pytest.approx(stats.spearmanr(codes, y).statistic, abs=1e-12)


@pytest.mark.parametrize("levels", [2, 3, 6])
def test_two_categories_have_bias_corrected_cramers_v(rng, levels):
    a = rng.integers(0, 3, 400)
    b = np.where(rng.random(400) < 0.4, a % levels, rng.integers(0, levels, 400))
    table = pd.crosstab(a, b).to_numpy()
    found = associate(np.array(list("xyz"))[a], np.array(list("pqrstu"))[b])
    rows, columns = table.shape
    phi2 = association(table, method="cramer") ** 2 * (min(rows, columns) - 1)
    corrected = phi2 - (rows - 1) * (columns - 1) / 399
    most = min(r - (r - 1) ** 2 / 399 - 1 for r in (rows, columns))
    assert found == pytest.approx(np.sqrt(corrected / most), abs=1e-12)
    assert found == pytest.approx(association(table, method="cramer"), abs=0.02)


def test_number_and_category_have_the_correlation_ratio_of_ranks(rng):
    job = rng.choice(list("abc"), 200)
    pay = np.round(rng.normal(size=200) + (job == "c") * 2.0, 1)
    ranks = pd.Series(pay).rank()
    groups = ranks.groupby(job)
    between = (groups.size() * (groups.mean() - ranks.mean()) ** 2).sum()
    within = groups.apply(lambda r: ((r - r.mean()) ** 2).sum()).sum()
    # both variances by their degrees of freedom: 1 - MS within / MS total
    expected = np.sqrt(1 - (within / 197) / ((between + within) / 199))
    assert expected == pytest.approx(np.sqrt(between / (between + within)), abs=0.02)
    assert associate(job, pay) == pytest.approx(expected, abs=1e-12)
    assert associate(pay, job) == pytest.approx(expected, abs=1e-12)


def test_level_per_row_has_no_association(rng):
    names = [f"id {j}" for j in range(50)]
    assert associate(names, rng.normal(size=50)) == 0.0
    assert associate(names, rng.choice(["a", "b"], 50)) == 0.0


def test_perfect_and_no_association():
    x = np.arange(12.0)
    assert associate(x, -(x**3)) == pytest.approx(1.0)
    assert associate(list("abc") * 4, list("pqr") * 4) == pytest.approx(1.0)
    assert associate(list("aabb"), list("pqpq")) == pytest.approx(0.0)
    assert associate(list("ab") * 3, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]) == pytest.approx(0.0)


@pytest.mark.parametrize("constant", [np.zeros(6), ["a"] * 6, np.full(6, np.nan), [None] * 6])
@pytest.mark.parametrize("other", [np.arange(6.0), list("aabbcc")])
def test_constant_has_no_association(constant, other):
    assert associate(constant, other) == 0.0


def test_rows_with_a_missing_number_are_dropped(rng):
    x, y = rng.normal(size=(2, 100))
    y = y + x
    x[:20], y[15:30] = np.nan, np.nan
    known = ~(np.isnan(x) | np.isnan(y))
    assert associate(x, y) == pytest.approx(abs(stats.spearmanr(x[known], y[known]).statistic), abs=1e-12)
    job = rng.choice(["a", "b"], 100)
    with_missing = associate(job, y)
    assert with_missing == pytest.approx(associate(job[~np.isnan(y)], y[~np.isnan(y)]), abs=1e-12)


def test_missing_level_is_a_level(rng):
    a = rng.choice(["a", "b", None], 200)
    b = np.where(rng.random(200) < 0.5, pd.isna(a), rng.random(200) < 0.5)
    filled = np.where(pd.isna(a), "gone", a)
    assert associate(a, b) == pytest.approx(associate(filled, b), abs=1e-12)
    x = rng.normal(size=200) + pd.isna(a)
    assert associate(a, x) == pytest.approx(associate(filled, x), abs=1e-12)


def test_too_few_known_rows_give_no_association():
    assert associate([1.0, np.nan, 2.0], [np.nan, 1.0, 5.0]) == 0.0
    assert associate([1.0, np.nan, np.nan], list("abc")) == 0.0


@given(st.integers(0, 10_000), st.integers(2, 30))
def test_matrix_is_symmetric_with_unit_diagonal_and_bounded(seed, n):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n).round(1),
            "y": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
            "a": rng.choice(["a", "b", None], n),
            "o": pd.Categorical(rng.choice(list("abc"), n), categories=list("abcd"), ordered=True),
        }
    )
    matrix = association_matrix(encode(frame))
    assert list(matrix.index) == list(matrix.columns) == list(frame.columns)
    values = matrix.to_numpy()
    np.testing.assert_array_equal(values, values.T)
    assert (np.diag(values) == 1.0).all()
    assert ((values >= 0.0) & (values <= 1.0)).all()


# ---- orders


@pytest.fixture
def linked(rng):
    """b depends on a, c on b, d on a, with decreasing strength; a is third."""
    a = rng.normal(size=2000)
    b = a + 0.3 * rng.normal(size=2000)
    c = b + 0.8 * rng.normal(size=2000)
    d = a + 2.0 * rng.normal(size=2000)
    return pd.DataFrame({"d": d, "c": c, "a": a, "b": b})


def test_data_order(linked):
    assert order_of(linked, ["c"], "data") == ["d", "a", "b"]
    assert order_of(linked, ["c"], "reversed") == ["b", "a", "d"]


def test_given_order(linked):
    assert order_of(linked, ["c"], ["b", "d", "a"]) == ["b", "d", "a"]
    assert order_of(linked, ["c"], ("b", "d", "a")) == ["b", "d", "a"]
    assert order_of(linked, ["c"], np.array(["b", "d", "a"])) == ["b", "d", "a"]


def test_strongest_pair_is_first_without_fixed_features(linked):
    assert order_of(linked) == ["a", "b", "c", "d"]


def test_fixed_features_start_the_order(linked):
    assert order_of(linked, ["d"]) == ["a", "b", "c"]
    assert order_of(linked, ["c"]) == ["b", "a", "d"]
    assert order_of(linked, ["c", "a", "d"]) == ["b"]


def test_ties_follow_the_data_order():
    frame = pd.DataFrame({name: np.arange(5.0) for name in ["q", "z", "a", "m"]})
    assert order_of(frame) == ["q", "z", "a", "m"]
    assert order_of(frame, ["a"]) == ["q", "z", "m"]
    nothing = pd.DataFrame({name: np.zeros(5) for name in ["q", "z", "a", "m"]})
    assert order_of(nothing) == ["q", "z", "a", "m"]


def test_missing_values_allow_an_order(linked, rng):
    holes = linked.mask(rng.random(linked.shape) < 0.2)
    assert order_of(holes) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (["b", "d", "c"], "names 'c', which is fixed; it lists mutable features only"),
        (["b", "d", "aa"], "names 'aa', which is not a column of X; did you mean 'a'"),
        ({"a", "b", "d"}, "allowed: "),
        ([], "leaves out 'd', 'a', 'b'"),
    ],
)
def test_invalid_orders_raise(linked, order, message):
    with pytest.raises(InputError, match=message):
        order_of(linked, ["c"], order)


def test_columns_are_ranked_once_not_once_per_pair(monkeypatch):
    """300 columns have 45,000 pairs; the associations are scipy's."""
    n_columns, ranked = 20, []
    X = pd.DataFrame(np.random.default_rng(3).normal(size=(50, n_columns)), columns=[f"x{j}" for j in range(n_columns)])
    rank = pd.Series.rank
    monkeypatch.setattr(pd.Series, "rank", lambda self, *args, **kw: ranked.append(1) or rank(self, *args, **kw))
    found = association_matrix(encode(X))
    assert len(ranked) == n_columns
    np.testing.assert_allclose(found, np.abs(stats.spearmanr(X).statistic), rtol=1e-12, atol=1e-12)
