"""Realism of generated rows: discriminator, marginals, correlations and copies of tables whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, ks_2samp, norm, pearsonr, spearmanr, wasserstein_distance
from scipy.stats.contingency import association

from mcce.diagnostics import compare_correlations, copies, correlations, discriminator, marginal_distances
from mcce.exceptions import InputError

JOBS = ["clerk", "manager", "pilot"]


def normals(n, seed, shift=0.0, correlation=0.0):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, n))
    return pd.DataFrame({"a": a + shift, "b": correlation * a + math.sqrt(1 - correlation**2) * b})


def mixed(n, seed):
    """Columns of all kinds, with missing values."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, n)
    job = np.array(JOBS)[np.clip(age // 10 - 2 - rng.integers(0, 2, n), 0, 2)]
    return pd.DataFrame(
        {
            "age": age,
            "salary": np.where(rng.random(n) < 0.2, np.nan, 1000.0 * age + 5000 * rng.standard_normal(n)),
            "job": pd.Categorical(job, JOBS),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
            "city": pd.Series(rng.choice(["Oslo", "Bergen"], n, p=[0.7, 0.3])).mask(rng.random(n) < 0.1),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "visits": pd.array(rng.poisson(2, n), dtype="Int64"),
        }
    )


# ----------------------------------------------------------------------------------------------------- discriminator


def accuracy(real, generated, **options):
    found = discriminator(real, generated, **{"n_trees": 25, "n_trials": 2, **options})
    return found["accuracy"].mean(), int(found["n_test"].iloc[0])


def is_chance(found):
    """Two trials share the rows, so their mean varies at most as one accuracy."""
    low, high = binom.ppf([0.0005, 0.9995], found[1], 0.5) / found[1]
    return low <= found[0] <= high


@pytest.mark.parametrize("sample", [normals, mixed])
def test_equal_distributions_cannot_be_distinguished(sample):
    assert is_chance(accuracy(sample(800, 1), sample(800, 2)))


def test_different_tables_are_distinguished():
    assert accuracy(normals(200, 1), normals(200, 2, shift=20))[0] > 0.98
    levels = [pd.DataFrame({"x": np.arange(100) % 7, "level": list(pair) * 50}) for pair in ("ab", "cd")]
    assert accuracy(*levels)[0] == 1.0


def test_accuracy_is_at_most_that_of_the_best_rule():
    """The likelihood ratio has the accuracy .758 where margins are right and a correlation of .9 is lost."""
    real, independent = normals(1000, 1, correlation=0.9), normals(1000, 2)
    assert 0.65 < accuracy(real, independent)[0] < 0.758 + 3.29 * 0.43 / math.sqrt(600)
    shifted = accuracy(normals(1000, 1), normals(1000, 2, shift=1.0))[0]
    assert 0.6 < shifted < norm.cdf(0.5) + 3.29 * 0.46 / math.sqrt(600)


def test_copies_of_the_rows_lie_below_one_half():
    real = normals(600, 1)
    assert accuracy(real, real.sample(600, replace=True, random_state=1))[0] < 0.45


def test_pairs_stay_on_one_side_of_the_split():
    """Both tables share a column of distinct values; split apart, the forest sees each with the other label."""
    shared = np.arange(600.0)
    real, generated = (normals(600, seed).assign(shared=shared) for seed in (1, 2))
    together = accuracy(real, generated, paired=True)
    assert is_chance(together)
    assert accuracy(real, generated)[0] < together[0] - 0.02


@pytest.mark.slow
def test_every_kind_of_column_is_read():
    real, other = mixed(400, 1), mixed(400, 2)
    changes = {
        "age": other["age"] + 100,
        "salary": other["salary"].mask(other["salary"].notna()),
        "job": pd.Categorical(np.where(np.arange(400) % 50 > 0, "pilot", other["job"]), JOBS),
        "size": pd.Categorical(["L"] * 400, ["S", "M", "L"], ordered=True),
        "city": other["city"].fillna("Oslo").replace("Bergen", "Oslo"),
        "since": other["since"] + pd.Timedelta(days=365),
        "visits": other["visits"] + 3,
    }
    for column, values in changes.items():
        assert accuracy(real, other.assign(**{column: values}))[0] > 0.55, column


def test_accuracy_does_not_depend_on_names_order_or_threads():
    real, other = mixed(200, 1), mixed(200, 2)
    expected = discriminator(real, other, n_trees=10)
    renamed = [
        frame.assign(job=frame["job"].astype(str).map({"clerk": "z", "manager": "y", "pilot": "x"}))
        for frame in (real, other)
    ]
    assert pd.concat([real, other])["job"].value_counts().is_unique
    pd.testing.assert_frame_equal(discriminator(*renamed, n_trees=10), expected)
    pd.testing.assert_frame_equal(discriminator(real, other[other.columns[::-1]], n_trees=10, n_jobs=2), expected)
    assert not discriminator(real, other, n_trees=10, random_state=4).equals(expected)
    assert expected.index.tolist() == [1, 2, 3, 4, 5]
    assert expected[["n_train", "n_test"]].to_numpy().tolist() == [[280, 120]] * 5


# --------------------------------------------------------------------------------------------------------- marginals


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 60), m=st.integers(1, 60))
def test_distances_of_numbers_are_those_of_scipy(seed, n, m):
    rng = np.random.default_rng(seed)
    real, generated = rng.normal(size=n).round(1), rng.normal(0.3, 2, m).round(1)
    found = marginal_distances(pd.DataFrame({"x": real}), pd.DataFrame({"x": generated})).iloc[0]
    assert found["distance"] == pytest.approx(ks_2samp(real, generated).statistic)
    if real.std() > 0:
        assert found["wasserstein"] == pytest.approx(wasserstein_distance(real, generated) / real.std())
    assert np.isnan(found["hellinger"])


def test_distances_of_levels_count_missing_as_one():
    real = pd.DataFrame({"job": ["a"] * 5 + ["b"] * 3 + [None] * 2})
    generated = pd.DataFrame({"job": ["a"] * 2 + ["c"] * 3})
    found = marginal_distances(real, generated).loc["job"]
    p, q = np.array([0.5, 0.3, 0.0, 0.2]), np.array([0.4, 0.0, 0.6, 0.0])
    assert found["distance"] == pytest.approx(0.6)
    assert found["hellinger"] == pytest.approx(np.sqrt(1 - np.sqrt(p * q).sum()))
    assert (found["missing_real"], found["missing_generated"], found["kind"]) == (0.2, 0.0, "categorical")


def test_equal_tables_have_no_distance():
    frame = mixed(60, 1)
    found = marginal_distances(frame, frame)
    assert found.index.tolist() == frame.columns.tolist()
    assert (found["distance"] == 0).all()
    later = frame.assign(since=frame["since"] + pd.Timedelta(days=9))
    days = (frame["since"] - frame["since"].min()).dt.days
    assert marginal_distances(frame, later).loc["since", "wasserstein"] == pytest.approx(9 / days.std(ddof=0))


def test_constant_and_missing_columns():
    real = pd.DataFrame({"same": 1.0, "gone": np.nan, "half": [1.0, np.nan]})
    moved = pd.DataFrame({"same": 2.0, "gone": [1.0, 2.0], "half": [np.nan, np.nan]})
    assert (marginal_distances(real, real)[["distance", "wasserstein"]] == 0).all(axis=None)
    found = marginal_distances(real, moved)
    assert found["distance"].tolist() == [1.0, 1.0, 1.0]
    assert np.isinf(found.loc["same", "wasserstein"])
    assert found["missing_generated"].tolist() == [0.0, 0.0, 1.0]


# ------------------------------------------------------------------------------------------------------ correlations


@pytest.mark.parametrize(("method", "truth"), [("spearman", spearmanr), ("pearson", pearsonr)])
def test_correlations_of_numbers_are_those_of_scipy(method, truth):
    frame = mixed(300, 1)
    found = correlations(frame, method=method)
    codes = frame.assign(size=frame["size"].cat.codes, since=(frame["since"] - frame["since"].min()).dt.days)
    for a, b in (("age", "salary"), ("age", "size"), ("since", "visits")):
        pair = codes[[a, b]].astype(float).dropna()
        assert found.loc[a, b] == pytest.approx(truth(pair[a], pair[b]).statistic)
    pd.testing.assert_frame_equal(found, found.T)
    assert (np.diag(found) == 1).all()


def test_associations_of_levels_are_corrected_for_their_number():
    """Cramer's V as corrected by Bergsma (2013), and the correlation ratio of the ranks as an adjusted R-squared."""
    rng = np.random.default_rng(0)
    n, job = 400, rng.integers(0, 3, 400)
    city = np.where(rng.random(n) < 0.6, job, rng.integers(0, 3, n))
    frame = pd.DataFrame(
        {"job": np.array(list("abc"))[job], "city": np.array(list("xyz"))[city], "x": job + rng.normal(size=n)}
    )
    found = correlations(frame)
    table = pd.crosstab(frame["job"], frame["city"]).to_numpy()
    squared = max(association(table) ** 2 * 2 - 4 / (n - 1), 0.0) / (2 - 4 / (n - 1))
    assert found.loc["job", "city"] == pytest.approx(np.sqrt(squared))
    ranks = frame["x"].rank()
    explained = ranks.groupby(frame["job"]).transform("mean").var(ddof=0) / ranks.var(ddof=0)
    assert found.loc["job", "x"] == pytest.approx(np.sqrt(1 - (1 - explained) * (n - 1) / (n - 3)))
    independent = correlations(frame.apply(lambda column: rng.permutation(column)))
    assert independent.loc["job", "city"] < 0.12
    assert (correlations(frame.assign(same=1.0)).loc["same"].drop("same") == 0).all()


def test_differences_are_sorted():
    real, generated = normals(500, 1, correlation=0.9).assign(c=0.1), normals(400, 2).assign(c=0.1)
    found = compare_correlations(real, generated)
    assert found[["feature", "other"]].to_numpy().tolist()[0] == ["a", "b"]
    expected = [correlations(frame).loc["a", "b"] for frame in (real, generated)]
    assert found.loc[0, ["real", "generated"]].tolist() == expected
    assert found["difference"].tolist() == [expected[1] - expected[0], 0.0, 0.0]
    assert compare_correlations(real[["a"]], generated[["a"]]).empty


# ------------------------------------------------------------------------------------------------------------ copies


def test_copies_are_counted_as_by_merging():
    training, rows = mixed(300, 1).drop(columns="salary"), mixed(300, 2).drop(columns="salary")
    rows.iloc[::3] = training.iloc[::3].to_numpy()
    rows = rows.astype(training.dtypes).set_axis([f"r{i}" for i in range(300)])
    found = copies(rows[rows.columns[::-1]], training)
    texts = [frame.astype(str).fillna("").agg("|".join, axis=1) for frame in (rows, training)]
    pd.testing.assert_series_equal(found, texts[0].isin(set(texts[1])), check_names=False)
    assert found.sum() >= 100
    assert copies(training, training).all()


def test_missing_equals_missing_only():
    training = pd.DataFrame({"x": [1.0, np.nan], "y": ["a", None]})
    rows = pd.DataFrame({"x": [np.nan, 1.0, np.nan], "y": [None, None, "a"]})
    assert copies(rows, training).tolist() == [True, False, False]


# ---------------------------------------------------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: discriminator(normals(50, 1)[["a"]], normals(50, 2)), "real lacks the column(s) 'b' of generated"),
        (
            lambda: discriminator(normals(50, 1), normals(9, 2)),
            "generated has 9 row(s); the comparison needs at least 10",
        ),
        (lambda: discriminator(normals(50, 1), normals(40, 2), paired=True), "real has 50 rows and generated 40"),
        (lambda: discriminator(normals(50, 1), normals(50, 2), test_size=1.0), "test_size is 1.0"),
        (lambda: discriminator(normals(50, 1), normals(50, 2), n_trials=0), "n_trials is 0"),
        (lambda: discriminator(normals(50, 1), normals(50, 2), n_trees=2.5), "n_trees is 2.5"),
        (
            lambda: discriminator(normals(50, 1), normals(50, 2).assign(a="x")),
            "column 'a' holds numbers or dates in real",
        ),
        (lambda: correlations(normals(10, 1), method="kendall"), "method is 'kendall'; allowed: 'spearman', 'pearson'"),
        (lambda: copies(normals(9, 1)[["a"]], normals(9, 1)), "rows lacks the column(s) 'b' of training"),
        (lambda: marginal_distances(normals(0, 1), normals(9, 1)), "real has 0 row(s)"),
    ],
)
def test_messages(call, said):
    with pytest.raises(InputError) as caught:
        call()
    assert said in str(caught.value)


def test_names_that_are_tuples():
    table = normals(60, 1)
    table.columns = pd.Index([("a", 1), ("a", 2)], tupleize_cols=False)
    assert marginal_distances(table, table.iloc[::-1]).index.tolist() == [("a", 1), ("a", 2)]
