"""Schema and table: kinds, columns, and inconsistent tables."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.table import Column, Schema
from tests.table.columns import encoded, one
from tests.table.round_trips import assert_same, round_trip

# ------------------------------------------------------------------ kinds


def test_kinds():
    frame = pd.DataFrame(
        {
            "number": [1.5, 2.0],
            "count": [1, 2],
            "text": ["a", "b"],
            "yes": [True, False],
            "grade": pd.Categorical(["lo", "hi"], ["lo", "mid", "hi"], ordered=True),
            "colour": pd.Categorical(["red", "blue"]),
            "day": pd.to_datetime(["2020-01-01", "2020-01-03"]),
        }
    )
    schema = Schema.from_data(frame)
    numeric, categorical = "numeric", "categorical"
    assert list(schema.kinds.values()) == [
        numeric, numeric, categorical, categorical, "ordered", categorical, numeric,
    ]  # fmt: skip
    assert [f.n_levels for f in schema.features] == [0, 0, 2, 2, 3, 2, 0]
    assert [f.is_numeric for f in schema.features] == [True, True, False, False, False, False, True]
    assert [f.span for f in schema.features] == [0.5, 1, 1, 1, 2, 1, 1]
    assert schema.encode(frame).matrix.tolist() == [[1.5, 1, 0, 1, 0, 1, 0], [2.0, 2, 1, 0, 2, 0, 1]]
    assert repr(schema).splitlines()[5] == "  grade: ordered (3 levels)"
    assert len(schema) == 7


def test_given_kinds():
    frame = pd.DataFrame({"n": [7, 3, 5], "g": pd.Categorical(["b", "a", "b"], ["b", "a"], ordered=True)})
    schema = Schema.from_data(frame, {"n": "ordered", "g": "categorical"})
    assert schema.kinds == {"n": "ordered", "g": "categorical"}
    assert list(schema.features[0].levels) == [3, 5, 7]
    assert schema.encode(frame).matrix.tolist() == [[2, 0], [0, 1], [1, 0]]
    assert_same(schema.decode(schema.encode(frame).matrix), frame)


def test_boolean_has_two_levels_if_only_one_is_seen():
    assert Schema.from_data(one([True, True])).features[0].n_levels == 2
    assert encoded([True, True], [False, True]).tolist() == [0, 1]


def test_levels_are_sorted_or_in_order_of_appearance():
    assert list(Schema.from_data(one(["b", "c", "a"])).features[0].levels) == ["a", "b", "c"]
    assert list(Schema.from_data(one(["b", 2, "a"], object)).features[0].levels) == ["b", 2, "a"]


@pytest.mark.parametrize(
    ("kinds", "match"),
    [
        ({"agee": "numeric"}, "kinds names 'agee', which is not a column of X; did you mean 'age'"),
        ({"age": "number"}, r"kinds\['age'\] is 'number'; allowed: 'numeric', 'categorical', 'ordered'"),
        ({"job": "numeric"}, "column 'job' of X has dtype (str|object) and cannot be numeric"),
        ({"yes": "numeric"}, "column 'yes' of X has dtype bool and cannot be numeric"),
        ({"job": "ordered"}, r"kinds\['job'\] is 'ordered', but dtype (str|object) has no order"),
        ({"yes": "ordered"}, r"kinds\['yes'\] is 'ordered', but dtype bool has no order"),
        ({"colour": "ordered"}, r"kinds\['colour'\] is 'ordered', but dtype category has no order"),
    ],
)
def test_invalid_kinds(kinds, match):
    frame = pd.DataFrame({"age": [1, 2], "job": pd.Series(["a", "b"], dtype="str"), "yes": [True, False]})
    frame["colour"] = pd.Categorical(["red", "blue"])
    with pytest.raises(InputError, match=match):
        Schema.from_data(frame, kinds)


# ------------------------------------------------------------------ columns


def test_columns_are_found_by_name():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [0.5, 1.5]})
    schema = Schema.from_data(frame)
    table = schema.encode(frame[["c", "a", "b"]])
    assert np.array_equal(table.matrix, schema.encode(frame).matrix)
    assert_same(schema.decode(table.matrix), frame)


def test_model_sees_the_training_frame():
    frame = pd.DataFrame(
        {"a": np.array([1, 2], "uint8"), 5: ["x", "y"], "g": pd.Categorical(["u", "v"], ["w", "v", "u"])}
    )
    schema = Schema.from_data(frame)
    new = pd.DataFrame({"g": ["v"], 5: pd.Categorical(["y"]), "a": [2.0]}, index=["someone"])
    seen = schema.decode_for_model(schema.encode(new).matrix)
    assert_same(seen, frame.iloc[[1]].reset_index(drop=True))


def test_labels_of_any_type_round_trip():
    for labels in (["a", "b"], [1, 0], [("a", 1), ("a", 2)], ["a", 3], [1.5, "z"]):
        frame = pd.DataFrame([[1, 2], [3, 4]])
        frame.columns = pd.Index(labels, tupleize_cols=False)
        assert_same(round_trip(frame), frame)


def test_empty_table_can_be_encoded_and_decoded():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "d": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    schema = Schema.from_data(frame)
    table = schema.encode(frame.iloc[:0])
    assert table.matrix.shape == (0, 3)
    assert_same(schema.decode(table.matrix), frame.iloc[:0].reset_index(drop=True))


def test_subset_and_position():
    schema = Schema.from_data(pd.DataFrame({"age": [1, 2], "job": ["x", "y"], "pay": [1.0, 2.0]}))
    assert schema.subset(["pay", "age"]).names == ["pay", "age"]
    assert schema.position("job") == 1
    with pytest.raises(InputError, match="fixed feature 'jobb' is not a column of X; did you mean 'job'"):
        schema.position("jobb", "fixed feature")


@pytest.mark.parametrize(
    ("X", "match"),
    [
        ([[1, 2]], "X is a list; give a pandas DataFrame or a two-dimensional numpy array"),
        (pd.Series([1, 2]), "X is a Series; give"),
        (np.arange(3), r"X is an array with 1 dimension\(s\); a table has two"),
        (np.zeros((2, 2, 2)), r"X is an array with 3 dimension\(s\)"),
        (pd.DataFrame({"a": []}), "X has 0 rows and 1 columns; it needs at least one of each"),
        (pd.DataFrame(index=[1, 2]), "X has 2 rows and 0 columns"),
        (np.empty((3, 0)), "X has 3 rows and 0 columns"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"column label\(s\) 'a' more than once; rename them"),
        (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])), "X has 2 levels of column"),
        (one([1 + 1j]), "column 'c' of X has dtype complex128, which is not supported; convert it"),
        (np.array([[1j]]), "column 'x0' of X has dtype complex128, which is not supported"),
        (one(np.array([0.1], dtype=np.longdouble)), r"column 'c' of X has dtype .*, which is not supported"),
        (one(pd.arrays.IntervalArray.from_breaks([0, 1])), r"'c' of X has dtype interval.* is not supported"),
        (one([[1], [2]]), "column 'c' of X .* unhashable type: 'list', as \\[1\\] in row 0. Convert the column"),
        (one([1.0, np.inf, -np.inf]), r"column 'c' of X holds 2 infinite value\(s\), the first in row 1"),
        (one([2**53 + 1, 1]), r"'c' of X holds integers of 2\*\*53 or beyond.*kinds={'c': 'categorical'}"),
        (one([-(2**53) - 1, 1]), r"column 'c' of X holds integers of 2\*\*53 or beyond"),
        (one([2**53 + 1, None], "Int64"), r"column 'c' of X holds integers of 2\*\*53 or beyond"),
        (one([2**64 - 1], "uint64"), r"column 'c' of X holds integers of 2\*\*53 or beyond"),
        (
            one(np.array([0, 1, 2**62], dtype="M8[ns]")),
            "column 'c' of X spans more time than a float can count in its finest unit",
        ),
        (one(np.array(["1678-01-01", "2262-01-01"], dtype="M8[ns]")), "column 'c' of X spans more time"),
    ],
)  # fmt: skip
def test_unreadable_tables(X, match):
    with pytest.raises(InputError, match=match):
        Schema.from_data(X)


def test_tables_inconsistent_with_the_schema():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    schema = Schema.from_data(frame)
    with pytest.raises(InputError, match=r"X lacks the column\(s\) 'b' of the training data; it has 'a'"):
        schema.encode(frame[["a"]])
    with pytest.raises(InputError, match=r"new has the column\(s\) 'c', unknown to the training data; drop them"):
        schema.encode(frame.assign(c=1), "new")
    with pytest.raises(InputError, match=r"X has the column label\(s\) 'b' more than once"):
        schema.encode(frame[["a", "b", "b"]])
    with pytest.raises(InputError, match=r"the level 'z' \(row 7\), unknown .*\(known: 'x', 'y'\)"):
        schema.encode(frame.assign(b="z").set_axis([7, 8]))
    flags = Schema.from_data(pd.DataFrame({"c": [True, False]}))
    for written, level in (("True", "'True'"), (2, "2")):
        with pytest.raises(InputError, match=rf"the level {level} \(row 0\), unknown .*\(known: False, True\)"):
            flags.encode(pd.DataFrame({"c": [written]}))
    with pytest.raises(InputError, match="X is a dict; give"):
        schema.encode({"a": [1], "b": ["x"]})


# ------------------------------------------------------------------ tables


@pytest.fixture
def table():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"], "c": [0.5, None, 1.5]})
    return Schema.from_data(frame).encode(frame)


def test_table_is_one_fortran_ordered_matrix(table):
    assert table.matrix.flags.f_contiguous
    assert table.matrix.dtype == np.float64
    assert table.n_rows == 3
    assert table.names == ["a", "b", "c"]


def test_column_subsets_keep_their_positions(table):
    cut = table.select([2, 0]).first(1)
    assert cut.names == ["c"]
    assert cut.positions == (2,)
    assert cut.root is table
    np.testing.assert_array_equal(cut.matrix[:, 0], [0.5, np.nan, 1.5])
    assert np.shares_memory(table.first(2).matrix, table.matrix)
    column = table.column(1)
    assert isinstance(column, Column)
    assert column.feature.name == "b"
    assert column.values.tolist() == [0, 1, 0]


def test_row_subsets_are_separate_tables(table):
    for rows in (np.array([2, 0]), np.array([True, False, True])):
        cut = table.select([0, 1]).take(rows)
        assert cut.root is None
        assert cut.positions == (0, 1)
        assert sorted(cut.matrix[:, 0]) == [1, 3]
        assert cut.matrix.flags.f_contiguous


def test_shared_work_is_done_once_for_all_subsets_and_threads(table):
    queried = []

    def work(root):
        queried.append(root)
        return object()

    results = []
    cuts = [table, table.first(1), table.select([1]), table.select([1, 2]).first(1)]
    threads = [threading.Thread(target=lambda c=c: results.append(c.shared("work", work))) for c in cuts * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(queried) == 1
    assert queried[0] is table
    assert len(set(map(id, results))) == 1
    assert table.take(np.array([0])).shared("work", work) is not results[0]


def test_wide_tables_of_mixed_dtypes_round_trip():
    """Numbers of one dtype are passed to pandas together; columns keep their position, dtype and missing values."""
    rng = np.random.default_rng(0)
    kinds = ["float64", "int64", "float32", "int8", "Int64", "category", "object", "bool", "datetime64[us]"]
    X = pd.DataFrame(index=range(30))
    for j in rng.permutation(72):
        kind, values = kinds[j % len(kinds)], rng.integers(0, 90, 30)
        column = pd.Series(values, dtype="float64" if kind in ("object", "category") else kind)
        column = column.astype(str).astype(kind) if kind in ("object", "category") else column
        X[f"x{j}"] = (
            column.where(rng.random(30) > 0.2) if kind in ("float64", "float32", "Int64", "category") else column
        )
    schema = Schema.from_data(X)
    matrix = schema.encode(X).matrix
    pd.testing.assert_frame_equal(schema.decode(matrix), X)
    place = next(j for j, feature in enumerate(schema.features) if feature.dtype == np.dtype("int8"))
    matrix[3, place] = np.nan
    with pytest.raises(InputError, match=r"has a missing value, which the training data's dtype int8 cannot hold"):
        schema.decode(matrix)
