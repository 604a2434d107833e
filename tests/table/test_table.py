"""Schemas and tables: kinds, positions, cutting, shared work; the grid of numbers; checks of names."""

import pickle
from threading import Thread

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from mcce.exceptions import InputError
from mcce.table import Grid, Schema
from mcce.table.checks import check_row_names, find_labels

X = pd.DataFrame(
    {
        "age": [36, 52, 20],
        "job": ["pilot", "clerk", None],
        "debt": [True, False, True],
        "grade": pd.Categorical(["b", "a", "c"], ["c", "b", "a"], ordered=True),
        "pay": [0.25, np.nan, 3.5],
    }
)


def test_kinds_levels_and_ranges():
    schema = Schema.from_data(X)
    assert list(schema.kinds.values()) == ["numeric", "categorical", "categorical", "ordered", "numeric"]
    age, job, debt, grade, pay = schema.features
    assert (age.low, age.high, age.span, age.decimals, age.has_missing) == (20, 52, 32, 0, False)
    assert (job.levels.tolist(), job.n_levels, job.has_missing) == (["clerk", "pilot"], 2, True)
    assert (debt.levels.tolist(), grade.levels.tolist()) == ([False, True], ["c", "b", "a"])
    assert (pay.decimals, pay.grid.step, pay.has_missing) == (2, 0.01, True)
    assert Schema.from_data(X, kinds={"age": "ordered"}).features[0].levels.tolist() == [20, 36, 52]


def test_levels_do_not_depend_on_the_order_of_rows():
    mixed = pd.DataFrame({"a": pd.Series(["b", 2, ("c",), "a"], dtype=object)})
    levels = Schema.from_data(mixed).features[0].levels.tolist()
    assert levels == Schema.from_data(mixed[::-1]).features[0].levels.tolist()


def test_a_column_may_be_wider_or_narrower_than_in_the_fitted_table():
    schema = Schema.from_data(X)
    other = X.astype({"age": "Int8", "pay": "float32", "job": "category", "debt": object})
    assert np.array_equal(schema.encode(other).matrix, schema.encode(X).matrix, equal_nan=True)


def test_subset_and_arrange():
    schema = Schema.from_data(X)
    few = schema.subset(["pay", "job"])
    assert_frame_equal(few.decode(few.encode(X[["job", "pay"]]).matrix), X[["pay", "job"]])
    twice = schema.arrange(schema.names[::-1]).arrange(["debt", "pay", "age", "job", "grade"])
    assert [twice.position(name) for name in ("debt", "age")] == [0, 2]
    index = pd.Index(["u", "v", "w"], name="id")
    assert_frame_equal(twice.decode(twice.encode(X).matrix, index), X.set_axis(index))


def test_names_of_the_columns_index_are_kept():
    frame = X.rename_axis(columns="feature")
    schema = Schema.from_data(frame)
    decoded = schema.decode(schema.encode(frame).matrix)
    assert decoded.columns.name == "feature"
    decoded.columns.name = "changed"
    assert schema.columns.name == "feature"


def test_tables_are_cut_without_copies_of_shared_work():
    table = Schema.from_data(X).encode(X)
    assert table.matrix.flags.f_contiguous
    cut = table.select([4, 0, 3]).first(2)
    assert (cut.names, cut.positions) == (["pay", "age"], (4, 0))
    assert cut.column(1).values.tolist() == [36, 52, 20]
    assert cut.column(1).take(np.array([2, 0])).values.tolist() == [20, 36]
    rows = table.take(np.array([True, False, True]))
    assert (rows.n_rows, rows.matrix.flags.f_contiguous, rows.root is rows) == (2, True, True)
    assert np.array_equal(rows.matrix, table.matrix[[0, 2]], equal_nan=True)

    calls = []

    def rank(root):
        calls.append(root)
        return root.matrix.argsort(axis=0)

    results = []
    threads = [Thread(target=lambda: results.append(cut.shared("ranks", rank))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [table]
    assert all(ranks is table.shared("ranks", rank) for ranks in results)
    copy = pickle.loads(pickle.dumps(cut))
    assert copy.names == cut.names
    assert copy.shared("ranks", rank).shape == (3, 2)


# ------------------------------------------------------------------ grids


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([1.0, 2.0], 0),
        ([0.1, 0.2, 0.3], 1),
        ([1234.56, -0.07], 2),
        (np.array([0.1, 0.25], dtype=np.float32), 2),
        ([0.000001, 3.0], 6),
        ([0.1234567], None),
        ([1e12 + 0.5, 0.123456], None),
        ([np.pi], None),
        ([np.nan], None),
        (np.array([5, 7], dtype=np.uint8), 0),
    ],
)
def test_decimals_of_the_training_values(values, decimals):
    feature = Schema.from_data(pd.DataFrame({"a": values})).features[0]
    assert feature.decimals == decimals
    assert (feature.grid is None) == (decimals is None)


@pytest.mark.parametrize("grid", [Grid(0), Grid(2), Grid(1, narrow=np.dtype(np.float32)), Grid(0, 0.0, 255.0), Grid(6)])
def test_cells_of_neighbours_share_their_edge_and_round_to_their_centre(grid):
    rng = np.random.default_rng(1)
    values = grid.round(np.concatenate([rng.uniform(-300, 300, 200), [0.0, 255.0, 1e12]]))
    lower, upper = grid.cells(values)
    neighbours = grid.round(values + grid.step)
    is_next = neighbours > values
    assert (grid.cells(neighbours)[0][is_next] == upper[is_next]).all()
    assert (lower < values).all()
    assert (values < upper).all()
    for share in (0.01, 0.5, 0.99):
        inside = np.clip(lower, -1e13, None) * (1 - share) + np.clip(upper, None, 1e13) * share
        inside = np.where(np.abs(values) < 1e11, inside, values)
        assert (grid.round(inside) == values).all()


def test_grid_at_the_ends_of_the_dtype():
    grid = Schema.from_data(pd.DataFrame({"a": np.array([3], dtype=np.uint8)})).features[0].grid
    assert grid.round(np.array([-7.0, 3.4, 999.0, np.nan])).tolist()[:3] == [0, 3, 255]
    lower, upper = grid.cells(np.array([0.0, 255.0]))
    assert (lower[0], upper[0], lower[1], upper[1]) == (-np.inf, 0.5, 254.5, np.inf)


# ------------------------------------------------------------------ names of columns and rows


def test_find_labels():
    index = pd.Index(["a", None, "c"])
    assert find_labels(index, pd.Index(["c", np.nan, "z", "c"])).tolist() == [2, 1, -1, 2]
    intervals = pd.IntervalIndex.from_tuples([(0, 2), (1, 3)])
    for index in (intervals, pd.CategoricalIndex(intervals)):
        assert find_labels(index, intervals[::-1]).tolist() == [1, 0]
    assert find_labels(pd.Index([1, 2]), pd.Index(["1"])).tolist() == [-1]


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (pd.Index([1, 1, 2]), "the index of X holds 1 more than once; use X.reset_index(drop=True)."),
        (
            pd.MultiIndex.from_tuples([(1, 2)]),
            "the index of X has 2 levels; use X.reset_index(drop=True).",
        ),
        (pd.Index([None, np.nan], dtype=object), "one missing label"),
    ],
)
def test_row_names(index, text):
    with pytest.raises(InputError) as error:
        check_row_names(index, "X")
    assert text in str(error.value)
    check_row_names(pd.Index([3, 1, None]), "X")
