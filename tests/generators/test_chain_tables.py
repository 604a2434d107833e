"""The tables drawn by a chain: columns, dtypes, ids; and restricted draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce.generators.chain
from mcce import ChainModel
from mcce.generators.requests import DrawRequest
from mcce.samplers import Within

# ---- the table drawn


def test_rows_keep_columns_dtypes_and_fixed_values(people, chain):
    some = people.iloc[[5, 3, 8]]
    drawn = chain.sample(given=some[["age", "sex"]], n=4)
    pd.testing.assert_series_equal(drawn.dtypes, people.dtypes)
    pd.testing.assert_frame_equal(
        drawn[["age", "sex"]].reset_index(drop=True),
        some.loc[[5] * 4 + [3] * 4 + [8] * 4, ["age", "sex"]].reset_index(drop=True),
    )
    assert drawn.index.names == ["id", "draw"]
    assert drawn.index.tolist() == [(i, k) for i in (5, 3, 8) for k in range(4)]


def test_column_order_of_given_does_not_matter(people, chain):
    some = people.iloc[:3]
    pd.testing.assert_frame_equal(chain.sample(given=some[["sex", "age"]]), chain.sample(given=some[["age", "sex"]]))


def test_draws_without_givens_are_numbered(people, chain):
    drawn = chain.sample(7)
    assert drawn.index.tolist() == list(range(7))
    pd.testing.assert_series_equal(drawn.dtypes, people.dtypes)


def test_every_drawn_value_was_observed(people, chain):
    drawn = chain.sample(1000)
    for name in people.columns:
        assert drawn[name].dropna().isin(people[name]).all()


def test_ids_of_any_type(people, chain):
    some = people[["age", "sex"]].iloc[:2].set_axis(pd.Index(["ann", "bob"], name="person"))
    assert chain.sample(given=some, n=1).index.tolist() == [("ann", 0), ("bob", 0)]


def test_no_rows_to_draw_for(people, chain):
    drawn = chain.sample(given=people[["age", "sex"]].iloc[:0], n=3)
    assert drawn.shape == (0, 8)
    pd.testing.assert_series_equal(drawn.dtypes, people.dtypes)


def test_equal_rows_get_independent_draws(people, chain):
    twins = people[["age", "sex"]].iloc[[0, 0, 0]].set_axis(["a", "b", "c"])
    drawn = chain.sample(given=twins, n=200)
    values = [drawn.loc[name, "pay"].to_numpy() for name in "abc"]
    assert not np.array_equal(values[0], values[1], equal_nan=True)
    assert not np.array_equal(values[1], values[2], equal_nan=True)
    alone = chain.sample(given=twins.iloc[:1], n=200)
    pd.testing.assert_frame_equal(alone, drawn.loc[["a"]])


@pytest.mark.parametrize("names", [[3, 0, 7], ["a b", "x[0]", "é%"], [("q"), 1, 2.5]])
def test_column_labels_of_any_kind(truth, names):
    frame = truth.head(500).set_axis(names, axis=1)
    for order in ("data", "correlation", [names[2], names[0]]):
        chain = ChainModel(fixed=[names[1]], visit_sequence=order, random_state=1).fit(frame)
        drawn = chain.sample(given=frame[[names[1]]].iloc[:2], n=3)
        assert list(drawn.columns) == names
        assert (drawn.dtypes == frame.dtypes).all()


def test_numpy_array_is_a_valid_table():
    matrix = np.random.default_rng(0).normal(size=(100, 3))
    drawn = ChainModel(fixed=["x0"], random_state=1).fit(matrix).sample(5)
    assert list(drawn.columns) == ["x0", "x1", "x2"]


# ---- restricted draws


WITHIN_SAMPLERS = {
    "cart": "cart",
    "norm": {"kids": "norm", "grade": "parametric", "pay": "norm"},
    "copula": "copula",
}


@pytest.fixture(scope="module")
def families():
    rng = np.random.default_rng(5)
    age = rng.integers(18, 80, 1500)
    kids = np.rint(age / 12 + rng.normal(0, 1.5, 1500)).clip(0).astype(int)
    grade = pd.Categorical.from_codes(rng.integers(0, 3, 1500), ["low", "mid", "high"], ordered=True)
    return pd.DataFrame({"age": age, "kids": kids, "grade": grade, "pay": 10.0 * kids + rng.normal(0, 3, 1500)})


@pytest.mark.parametrize("name", WITHIN_SAMPLERS)
def test_restricted_draws_stay_within_bounds_and_infeasible_rows_are_rejected(families, name, monkeypatch):
    chain = ChainModel(sampler=WITHIN_SAMPLERS[name], fixed=["age"], random_state=1).fit(families)
    n = 4000
    request = DrawRequest(np.full((n, 1), 48.0), np.zeros(n, dtype=np.uint64), np.arange(n, dtype=np.uint64), 1)
    free = chain.draw(request).rows
    numbers = np.arange(n)
    no_kids = numbers % 4 == 0  # nothing between two whole numbers
    low = np.where(no_kids, 3.2, np.where(numbers % 4 == 1, 3.2, -np.inf))
    high = np.where(no_kids, 3.7, np.where(numbers % 4 == 1, 6.4, 4.0))
    levels = np.ones((n, 3), dtype=bool)
    levels[numbers % 5 == 0] = [True, False, True]
    no_grade = numbers % 7 == 0
    levels[no_grade] = False
    restrictions = {"kids": Within(low=low, high=high), "grade": Within(levels=levels)}
    drawn = chain.draw(replace(request, restrictions=restrictions))
    np.testing.assert_array_equal(drawn.rejected, no_kids | no_grade)
    assert np.isfinite(drawn.rows).all()  # rejected rows too: later conditionals need not accept missing values
    accepted = drawn.rows[~drawn.rejected]
    kids, grade, pay = drawn.rows[:, 1], drawn.rows[:, 2], drawn.rows[:, 3]
    assert ((kids >= low) & (kids <= high) & (kids == np.rint(kids)))[~drawn.rejected].all()
    assert levels[numbers, grade.astype(int)][~drawn.rejected].all()
    # the pay depends on the restricted draw of kids, not on the unrestricted one
    assert (accepted[:, 3] - 10.0 * accepted[:, 1]).mean() == pytest.approx(0.0, abs=1.0)
    assert np.corrcoef(pay[~drawn.rejected], kids[~drawn.rejected])[0, 1] > 0.9
    # kids are drawn first, from the allowed values
    for rows, allowed in ((numbers % 4 == 1, (4, 5, 6)), (numbers % 4 > 1, (0, 1, 2, 3, 4))):
        counts = [[(part == k).sum() for k in allowed] for part in (kids[rows], free[:, 1])]
        seen = np.array(counts)[:, np.sum(counts, axis=0) > 9]
        assert stats.chi2_contingency(seen).pvalue > 1e-3

    monkeypatch.setattr(mcce.generators.chain, "BLOCK_ROWS", 700)
    monkeypatch.setattr(chain, "n_jobs", 2)
    again = chain.draw(replace(request, restrictions=restrictions))
    np.testing.assert_array_equal(again.rows, drawn.rows)
    np.testing.assert_array_equal(again.rejected, drawn.rejected)
