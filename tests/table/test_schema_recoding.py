"""No value is recoded silently: unsupported values raise, and equal values are equal."""

from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.table import Schema
from tests.table.columns import DAYS, encoded, one, refused

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize(
    ("train", "new", "match"),
    [
        (["clerk", "pilot"], ["cook"], r"factuals holds the level 'cook' \(row 0\), .*'clerk', 'pilot'"),
        (["1", "2"], [1], "holds the level .*1.*, unknown"),
        (pd.Categorical([1, 2]), ["1"], "holds the level '1'"),
        (["True", "False"], [True], "holds the level .*True.*, unknown"),
        ([True, False], ["True"], "holds the level 'True'"),
        ([True, False], [2], "holds the level .*2"),
        ([True, False], [0.5], "holds the level .*0.5"),
        (["a", "b"], ["A"], "holds the level 'A'"),
        (["a", "b"], ["a "], "holds the level 'a '"),
        (pd.Categorical(["a"], ["a"]), pd.Categorical(["b"], ["a", "b"]), "holds the level 'b'"),
        (pd.cut(pd.Series([1, 5]), [0, 3, 6]), [1.0], "holds the level .*1.0"),
        (pd.Categorical(pd.to_datetime(["2020-01-01"])), ["2020-01-01"], "holds the level '2020-01-01'"),
    ],
)  # fmt: skip
def test_unknown_levels(train, new, match):
    refused(train, new, match)


HELD = "which the training data's {} cannot hold exactly; convert it, or train on a wider type"


@pytest.mark.parametrize(
    ("train", "new", "match"),
    [
        ([1, 2], [1.0, 2.5], "'c' of the factuals holds 2.5 in row 1, " + HELD.format("int64")),
        (pd.Series([1, 2], dtype="Int64"), [2.5], "holds 2.5 in row 0, " + HELD.format("Int64")),
        (pd.Series([1, 2], dtype="int64[pyarrow]"), [2.5], "holds 2.5 in row 0"),
        (pd.Series([1, 2], dtype="uint8"), [-1], "holds -1 in row 0, " + HELD.format("uint8")),
        (pd.Series([1, 2], dtype="uint8"), [3, 256], "holds 256 in row 1"),
        (pd.Series([1, 2], dtype="Int8"), [300], "holds 300 in row 0"),
        (pd.Series([1, 2], dtype="int8[pyarrow]"), [300], "holds 300 in row 0"),
        (pd.Series([1, 2], dtype="uint64"), [-3], "holds -3 in row 0"),
        (pd.Series([1, 2], dtype="float32"), [0.1], "holds 0.1 in row 0, " + HELD.format("float32")),
        (pd.Series([1, 2], dtype="float32"), [1e300], r"holds 1e\+300 in row 0"),
        ([1, 2], [2**53 + 1], r"holds integers of 2\*\*53 or beyond"),
        ([1.0, 2.0], [2**53 + 1], r"holds integers of 2\*\*53 or beyond"),
        ([1.0, 2.0], pd.Series([2**60 + 1], dtype=object), r"holds integers of 2\*\*53 or beyond"),
        ([1.0, 2.0], [np.inf], r"'c' of the factuals holds 1 infinite value\(s\), the first in row 0"),
        ([1.0, 2.0], ["1"], "of the factuals is numeric in the training data but has dtype .*; convert"),
        ([1, 2], pd.Series(["1"], dtype=object), "is numeric in the training data but has dtype object"),
        ([1, 2], pd.Series([1, "2"], dtype=object), "is numeric in the training data but has dtype object"),
        ([1, 2], pd.Categorical([1]), "is numeric in the training data but has dtype category"),
        ([1, 2], [1j], "is numeric in the training data but has dtype complex128"),
        ([1, 2], pd.to_datetime(["2020-01-01"]), "is numeric in the training data but has dtype datetime64"),
        ([1, 2], pd.to_timedelta(["1D"]), "is numeric in the training data but has dtype timedelta64"),
    ],
)  # fmt: skip
def test_numbers_that_would_change(train, new, match):
    refused(train, new, match)


POINTS = np.array(["2020-01-01", "2021-01-01"], dtype="M8[s]")
UNHELD = "cannot hold exactly"
OTHER_SORT = "does not convert to the training data's .*not the same sort of dates"


@pytest.mark.parametrize(
    ("train", "new", "match"),
    [
        (POINTS, [5], "'c' of the factuals has dtype int64, which " + OTHER_SORT),
        (POINTS, ["2020-01-01"], OTHER_SORT),
        (POINTS, pd.to_timedelta(["1D"]), OTHER_SORT),
        (POINTS, pd.PeriodIndex(["2020-01"], freq="M"), OTHER_SORT),
        (POINTS, pd.to_datetime(["2020-01-01"], utc=True), OTHER_SORT),
        (pd.to_datetime(["2020-01-01"], utc=True), POINTS, OTHER_SORT),
        (pd.Series(POINTS).astype(pd.ArrowDtype(pa.timestamp("s", "UTC"))), POINTS, OTHER_SORT),
        (pd.PeriodIndex(["2020-01"], freq="M"), pd.PeriodIndex(["2020-01-01"], freq="D"), OTHER_SORT),
        (pd.PeriodIndex(["2020-01"], freq="M"), POINTS, OTHER_SORT),
        (pd.to_timedelta(["1D"]), [1.5], OTHER_SORT),
        (POINTS, np.array(["2020-01-01T00:00:00.5"], "M8[ns]"), "holds 2020-01-01 00:00:00.5.* in row 0"),
        (pd.Series(DAYS, dtype=pd.ArrowDtype(pa.date32())), np.array(["2020-01-01T12"], "M8[s]"), UNHELD),
        (POINTS.astype("M8[ns]"), np.array(["2020-06-01T00:00:00.000000001"], "M8[ns]"), UNHELD),
        (np.array(["2262-01-01"], "M8[ns]"), np.array(["1678-01-01"], "M8[ns]"), UNHELD),
    ],
)  # fmt: skip
def test_dates_that_would_change(train, new, match):
    refused(train, new, match)


@pytest.mark.parametrize("values", [[True, 1], [1, 1.0], ["a", 0, False], [decimal.Decimal(1), 1]])
def test_equal_values_of_different_types_are_not_merged(values):
    with pytest.raises(InputError, match=r"column 'c' of X holds both .* and .*, which are equal and so one level"):
        Schema.from_data(one(values, object))


def test_missing_value_requires_a_dtype_that_can_hold_it():
    for train, new in (([1, 2], [1, None]), ([True, False], pd.Series([True, None], dtype=object))):
        schema = Schema.from_data(one(train))
        matrix = schema.encode(one(new)).matrix
        with pytest.raises(InputError, match="column 'c' has a missing value, which the training data's dtype"):
            schema.decode(matrix)


@pytest.mark.parametrize(
    ("train", "new", "codes"),
    [
        ([1.5, 2.0], [1, 2], [1, 2]),
        ([1, 2], [1.0, 7.0], [1, 7]),
        ([1, 2], pd.Series([1.0, None], dtype="Float64"), [1, np.nan]),
        ([1, 2], pd.Series([3, 4], dtype="uint8"), [3, 4]),
        ([1.5, 2.0], pd.Series([1, 2.5], dtype=object), [1, 2.5]),
        ([0, 1], [True, False], [1, 0]),
        ([True, False], [0, 1], [0, 1]),
        (pd.Series([1, 2], dtype="float32"), [0.5, 3.0], [0.5, 3]),
        (pd.Categorical(["a", "b"]), pd.Categorical(["a", "b"], ["b", "a"]), [0, 1]),
        (pd.Categorical(["a", "b"]), pd.Categorical(["b", None], ["c", "b"]), [1, np.nan]),
        (pd.Categorical(["a", "b"], ["b", "a"], ordered=True), ["a", "b"], [1, 0]),
        (pd.Categorical([1, 2]), [2.0, 1.0], [1, 0]),
        (["a", "b"], pd.Series(["b", None], dtype="string[pyarrow]"), [1, np.nan]),
        (POINTS, np.array(["2022-01-02", "NaT"], dtype="M8[ns]"), [2, np.nan]),
        (POINTS, pd.Series([pd.Timestamp("2021-01-01"), None], dtype=object), [1, np.nan]),
        (pd.to_datetime(["2020-01-01", "2020-01-02"], utc=True), [pd.Timestamp("2020-01-02 1:00+01")], [1]),
    ],
)  # fmt: skip
def test_equal_values_in_another_dtype_are_equal(train, new, codes):
    np.testing.assert_array_equal(encoded(train, new), codes)
