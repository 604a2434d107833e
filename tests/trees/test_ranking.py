"""Rank codes and sorted columns compared with numpy's `unique` and `lexsort`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.exceptions import InputError
from mcce.table import Feature, Schema, Table
from mcce.trees.kernels import HISTOGRAM, PAIR, SORTED, UNORDERED
from mcce.trees.ranking import MAX_BINS, MAX_LEVELS, ColumnRanks
from tests.marks import examples


def rank(frame, kinds=None):
    table = Schema.from_data(frame, kinds).encode(frame)
    return ColumnRanks.from_table(table), table


def values_of(ranking, j):
    return ranking.values[ranking.offset[j] : ranking.offset[j] + ranking.n_values[j]]


def codes_of(ranking, j):
    """Codes of one column, from its histogram codes or from its sorted entries."""
    if ranking.how[j] != SORTED:
        return ranking.codes[:, ranking.slot[j]].astype(np.int64)
    entries = ranking.packed[ranking.slot[j]]
    assert (np.diff(entries.astype(object)) > 0).all(), "entries are not ascending"
    rows = (entries & np.uint64(0xFFFFFFFF)).astype(np.int64)
    assert np.array_equal(np.sort(rows), np.arange(rows.size))
    codes = np.empty(rows.size, dtype=np.int64)
    codes[rows] = (entries >> np.uint64(32)).astype(np.int64)
    return codes


def check_numbers(column):
    """One numeric column: distinct values and codes are numpy's; missing gets the code after the last."""
    column = np.asarray(column, dtype=float)
    table = Table((Feature("x", "numeric", np.dtype(float)),), np.asfortranarray(column[:, None]))
    ranking = ColumnRanks.from_table(table)
    seen = ~np.isnan(column)
    values, ranks = np.unique(column[seen], return_inverse=True)
    assert np.array_equal(values_of(ranking, 0), values)
    codes = codes_of(ranking, 0)
    assert np.array_equal(codes[seen], ranks)
    assert (codes[~seen] == values.size).all()
    return ranking


# ------------------------------------------------------------------ one numeric column


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize(
    "column",
    [
        np.arange(50) % 7,
        -(np.arange(50) % 7) * 3 - 10**9,
        np.arange(3000)[::-1],
        np.arange(3000) * 10**6,
        np.random.default_rng(1).normal(size=40).round(1),
        np.random.default_rng(2).normal(size=3000),
        np.random.default_rng(3).normal(size=3000).round(3),
        np.arange(5) + 0.5,
        np.arange(2000) + 0.1,
        np.full(9, 0.1),
        [5.0],
        [-0.0, 0.0, 1.0],
        [1e300, -1e300, 5e-324, 0.0],
        [2.0**53, 2.0**53 - 1, 2.0**53 - 2],
        [0.9, -0.1, 0.4],
    ],
    ids=lambda column: f"{len(column)} from {column[0]:.3g}",
)
def test_codes_and_values_match_numpy(column, missing):
    column = np.array(column, dtype=float)
    if missing:
        column = np.append(column, [np.nan, np.nan])[np.random.default_rng(4).permutation(column.size + 2)]
    check_numbers(column)


@examples(50, derandomize=True)
@given(
    st.lists(
        st.integers(-5, 5).map(float)
        | st.integers(-(10**6), 10**6).map(float)
        | st.floats(-1e100, 1e100)
        | st.just(float("nan")),
        min_size=1,
        max_size=60,
    )
)
def test_codes_of_random_columns_match_numpy(column):
    check_numbers(column)


def test_values_differing_by_an_integer_only_after_rounding_stay_distinct():
    """0.9 and its neighbour are both 1 above -0.1 after rounding; counting must not merge them."""
    check_numbers([-0.1, 0.9, np.nextafter(0.9, 1)])


def test_values_absorbed_by_an_integer_stay_distinct():
    """1e-17 is 1 above -1 after rounding, and so is 0."""
    check_numbers([-1.0, 0.0, 1e-17])


def test_non_integer_values_round_trip_exactly():
    """Values an integer apart, where the lowest plus that integer rounds to another value."""
    low = 0.1
    column = [low, *(np.nextafter(low + k, np.inf) for k in range(1, 40)), *(low + k for k in range(1, 40))]
    check_numbers(column)


def test_values_with_overflowing_range():
    check_numbers([-np.finfo(float).max, np.finfo(float).max, 0.0])


def test_counted_and_sorted_integers_rank_equally():
    """The same order, once in a short range of integers and once stretched beyond it."""
    rng = np.random.default_rng(5)
    for size, high in ((30, 10), (300, 900), (3000, 2900)):
        column = rng.integers(0, high, size).astype(float)
        short, long = check_numbers(column), check_numbers(column * 1e7 + 0.25)
        assert short.how[0] == long.how[0]
        assert np.array_equal(codes_of(short, 0), codes_of(long, 0))


def test_few_values_are_counted_and_many_sorted():
    n = MAX_BINS + 1
    assert check_numbers(np.arange(n - 1.0)).how[0] == HISTOGRAM
    assert check_numbers(np.append(np.arange(n - 1.0), np.nan)).how[0] == HISTOGRAM
    assert check_numbers(np.arange(n)).how[0] == SORTED
    assert check_numbers(np.append(np.arange(n), np.nan)).how[0] == SORTED
    assert check_numbers([0.0, 1.0, 0.0]).how[0] == PAIR
    assert check_numbers([0.0, 1.0, np.nan]).how[0] == HISTOGRAM
    assert check_numbers([3.0, 3.0]).how[0] == HISTOGRAM
    assert check_numbers([np.nan, np.nan]).n_values[0] == 0


# ------------------------------------------------------------------ tables


def test_each_kind_of_column():
    rng = np.random.default_rng(6)
    n = 1300
    frame = pd.DataFrame(
        {
            "real": rng.normal(size=n),
            "job": np.array(list("abc"))[rng.integers(0, 3, n)],
            "yes": rng.random(n) < 0.5,
            "count": rng.integers(0, 9, n),
            "grade": pd.Categorical.from_codes(rng.integers(-1, 4, n), list("wxyz"), ordered=True),
            "gap": pd.Series(rng.normal(size=n)).where(rng.random(n) < 0.9),
            "town": pd.Categorical.from_codes(rng.integers(-1, 4, n), range(500)),
            "maybe": pd.array(rng.random(n) < 0.5, dtype="boolean"),
        }
    )
    frame.loc[3, "maybe"] = pd.NA
    ranking, table = rank(frame)
    assert ranking.how.tolist() == [
        SORTED,
        UNORDERED,
        PAIR,
        HISTOGRAM,
        HISTOGRAM,
        SORTED,
        UNORDERED,
        HISTOGRAM,
    ]
    assert ranking.n_values.tolist()[1:5] == [3, 2, 9, 4]
    assert ranking.n_values[6] == 500
    assert ranking.packed.shape == (2, n)
    assert ranking.codes.shape == (n, 6)
    for j in range(len(table.names)):
        column = table.matrix[:, j]
        codes = codes_of(ranking, j)
        missing = np.isnan(column)
        assert np.array_equal(codes == ranking.n_values[j], missing)
        assert np.array_equal(values_of(ranking, j)[codes[~missing]], column[~missing])
        assert (np.diff(values_of(ranking, j)) > 0).all()


def test_sorted_entries_match_numpy_lexsort():
    frame = pd.DataFrame({"x": np.random.default_rng(7).normal(size=4000).round(3)})
    frame.loc[::50, "x"] = np.nan
    ranking, table = rank(frame)
    assert ranking.how[0] == SORTED
    rows = (ranking.packed[0] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    column = table.matrix[:, 0]
    assert np.array_equal(rows, np.lexsort((np.arange(4000), column, np.isnan(column))))


def test_table_is_ranked_once_for_all_its_subsets():
    _, table = rank(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [3, 4]}))
    assert (
        ColumnRanks.from_table(table.first(1))
        is ColumnRanks.from_table(table.select([2, 0]))
        is ColumnRanks.from_table(table)
    )
    assert ColumnRanks.from_table(table.take(np.array([0]))) is not ColumnRanks.from_table(table)


def test_largest_factor_and_one_level_more():
    def factor(n_levels):
        levels = pd.RangeIndex(n_levels)
        feature = Feature("town", "categorical", pd.CategoricalDtype(levels), levels)
        matrix = np.array([[0.0], [n_levels - 1.0], [np.nan]], order="F")
        return Table((feature,), matrix)

    assert codes_of(ColumnRanks.from_table(factor(MAX_LEVELS)), 0).tolist() == [0, MAX_LEVELS - 1, MAX_LEVELS]
    with pytest.raises(InputError, match="column 'town' has 65536 levels; a tree handles up to 65535"):
        ColumnRanks.from_table(factor(MAX_LEVELS + 1))
