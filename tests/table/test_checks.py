"""Checks of a table before fitting or drawing."""

import numpy as np
import pandas as pd
import pytest

from mcce import InputError
from mcce.table import Schema
from mcce.table.checks import (
    check_fixed,
    check_fixed_names,
    check_magnitudes,
    check_missing,
    check_row_names,
    refuse_iterator,
    rows_of,
)

COLUMNS = ["age", "sex", "job", 3]


@pytest.mark.parametrize("fixed", [[], ["sex", "age"], ("age", "sex"), {"sex": 1, "age": 2}, pd.Index(["sex", "age"])])
def test_fixed_features_are_returned_in_data_order(fixed):
    assert check_fixed(fixed, COLUMNS) == (["age", "sex"] if len(fixed) else [])


def test_names_are_returned_in_the_given_order():
    assert check_fixed_names([3, "age"], COLUMNS, "fixed_features", "x_train") == [3, "age"]


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ("age", r"fixed is 'age'; give a list of column names"),
        (3, r"fixed is 3; give a list of column names"),
        (["agee"], r"fixed feature 'agee' is not a column of X; did you mean 'age'\?"),
        (["3"], r"fixed feature '3' is not a column of X"),
        (["age", "sex", "age"], r"fixed names 'age' more than once; name each feature once"),
        (iter(["age"]), r"fixed is an iterator \(list_iterator\)"),
    ],
)
def test_invalid_fixed_features(fixed, message):
    with pytest.raises(InputError, match=message):
        check_fixed(fixed, COLUMNS)


def table_of(**columns):
    frame = pd.DataFrame(columns)
    return Schema.from_data(frame).encode(frame)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1.0, 1e151], r"numbers of size 1e\+151"),
        ([-1e151, 2.0], r"numbers of size 1e\+151"),
        ([0.0, 1e-151], "numbers in a range of 1e-151"),
    ],
)
def test_numbers_with_overflowing_squares(values, found):
    with pytest.raises(InputError, match=f"column 'x' of given holds {found}, whose squares .*; rescale it"):
        check_magnitudes(table_of(a=[1.0, 2.0], x=values), "given")


@pytest.mark.parametrize("values", [[1e150, -1e150], [0.0, 1e-150], [5.0, 5.0], [np.nan, np.nan], [1e-300, 1e-300]])
def test_numbers_without_overflowing_squares(values):
    check_magnitudes(table_of(x=values, level=["a", "b"]), "X")


def test_missing_values_that_the_dtype_cannot_hold():
    schema = Schema.from_data(pd.DataFrame({"n": [1, 2], "x": [1.0, 2.0], "b": [True, False]}))
    frame = pd.DataFrame({"n": [1, None, None], "x": [None, 1.0, 2.0], "b": [True, False, True]}, index=list("pqr"))
    table = schema.encode(frame, "X")
    with pytest.raises(InputError, match=r"column 'n' of X has 2 missing value\(s\), the first in row 'q', .* int64"):
        check_missing(table, frame.index, "X")
    check_missing(schema.encode(frame.fillna({"n": 3}), "X"), frame.index, "X")  # floats may be missing


def test_row_names():
    check_row_names(pd.Index(["a", 1, None]), "X", "factuals")
    check_row_names(pd.Index([]), "X", "factuals")
    with pytest.raises(
        InputError, match=r"the index of X holds 7, 'b' more than once; it names the rows\. Use X\.reset"
    ):
        check_row_names(pd.Index([7, "b", 7, "b", "c"]), "X", "rows")
    with pytest.raises(InputError, match="the index of given has several levels; it names the rows"):
        check_row_names(pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]), "given", "rows")


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([2, 0]), np.array([True, False, True])])
def test_rows_by_position(rows):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[2, 1, 0])
    np.testing.assert_array_equal(rows_of(frame, rows)["x"], frame["x"].to_numpy()[rows])
    np.testing.assert_array_equal(rows_of(frame.to_numpy(), rows), frame.to_numpy()[rows])


@pytest.mark.parametrize("names", [(n for n in "ab"), map(str, "ab"), iter({"a": 1}), zip("ab")])
def test_one_shot_iterators_of_names(names):
    with pytest.raises(
        InputError, match=r"^role is an iterator \(.*\), which is empty once it has been read; give a list"
    ):
        refuse_iterator(names, "role")


def test_reusable_iterables_of_names():
    for names in (["a"], ("a",), {"a"}, {"a": 1}.keys(), pd.Index(["a"]), range(3)):
        refuse_iterator(names, "role")
