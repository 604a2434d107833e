"""Values held by dtypes, compared with the conversions of pandas."""

import numpy as np
import pandas as pd
import pytest

from mcce import InputError
from mcce.table import dtypes

pa = pytest.importorskip("pyarrow")

ARROW = [pd.ArrowDtype(kind) for kind in (pa.int16(), pa.float32())]
NUMBERS = ["int8", "uint64", "float32", "float64", "Int32", "Float64", pd.SparseDtype("float64"), *ARROW]
OTHERS = ["bool", "boolean", "object", "str", "complex128", "datetime64[ns]", "category", pd.ArrowDtype(pa.string())]
OTHERS += [pd.ArrowDtype(pa.decimal128(5, 2))]


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_numbers(dtype):
    dtype = pd.api.types.pandas_dtype(dtype)
    assert dtypes.is_numeric(dtype)
    assert not dtypes.is_dated(dtype)
    assert dtypes.numpy_dtype(dtype).kind in "iuf"


@pytest.mark.parametrize("dtype", OTHERS, ids=str)
def test_invalid_numbers(dtype):
    assert not dtypes.is_numeric(pd.api.types.pandas_dtype(dtype))


@pytest.mark.skipif(np.dtype("longdouble").itemsize <= 8, reason="long doubles are doubles here")
def test_long_double_does_not_fit():
    assert not dtypes.is_numeric(np.dtype("longdouble"))


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1, 2.5], True), ([None, None], True), (["1"], False), ([1, "a"], False)],
)
def test_numbers_in_object_columns(values, expected):
    assert dtypes.holds_numbers(pd.Series(values, dtype=object)) is expected


def test_logicals_and_orders():
    assert dtypes.is_logical(np.dtype(bool))
    assert dtypes.is_logical(pd.BooleanDtype())
    assert not dtypes.is_logical(pd.CategoricalDtype([True, False]))
    assert dtypes.is_ordered(pd.CategoricalDtype(["a", "b"], ordered=True))
    assert not dtypes.is_ordered(pd.CategoricalDtype(["a", "b"]))
    assert not dtypes.is_ordered(np.dtype(float))


@pytest.mark.parametrize(
    ("dtype", "expected"), [("int64", False), ("bool", False), ("float32", True), ("Int64", True), ("object", True)]
)
def test_which_dtypes_hold_missing_values(dtype, expected):
    column = pd.Series([1, 0]).astype(dtype)
    assert dtypes.holds_missing(column.dtype) is expected
    if expected:
        column.iloc[0] = None
        assert column.isna().tolist() == [True, False]
        assert column.dtype == dtype


DATES = pd.to_datetime(["2024-02-29 23:59:59.5", "1903-01-01", "2024-03-31 01:30"], format="ISO8601").to_series()
DATED = {
    "seconds": DATES.dt.floor("s").astype("datetime64[s]"),
    "nanoseconds": DATES.astype("datetime64[ns]"),
    "zoned": DATES.dt.tz_localize("UTC").dt.tz_convert("Europe/Oslo"),
    "durations": DATES - DATES.iloc[0],
    "months": DATES.dt.to_period("M"),
    "arrow stamps": DATES.astype(pd.ArrowDtype(pa.timestamp("us"))),
    "arrow dates": DATES.dt.floor("D").astype(pd.ArrowDtype(pa.date32())),
}


@pytest.mark.parametrize("name", DATED)
@pytest.mark.parametrize("gap", [False, True])
def test_dates_are_integer_ticks_and_round_trip(name, gap):
    column = DATED[name].reset_index(drop=True)
    if gap:
        column.iloc[1] = None
    missing = column.isna().to_numpy()
    assert dtypes.is_dated(column.dtype)
    ticks = dtypes.to_ticks(column)
    assert ticks.dtype == np.int64
    np.testing.assert_array_equal(np.argsort(ticks[~missing]), column[~missing].reset_index(drop=True).argsort())
    back = pd.Series(dtypes.from_ticks(ticks.copy(), missing, column.dtype))
    pd.testing.assert_series_equal(back, column, check_names=False)


def test_families_of_dates():
    family = {name: dtypes.date_family(column.dtype) for name, column in DATED.items()}
    assert family["seconds"] == family["nanoseconds"] == family["arrow stamps"]
    assert len({family[name] for name in ("seconds", "zoned", "durations", "months")}) == 4


def test_unit_is_the_largest_exact_one():
    days = pd.Series(pd.to_datetime(["2020-01-01", "2020-01-03", "2020-01-07"]).astype("datetime64[ns]"))
    origin, unit = dtypes.origin_and_unit(days, np.zeros(3, dtype=bool), "X")
    assert (origin, unit) == (days.astype("int64").min(), 2 * 86_400 * 10**9)
    assert dtypes.origin_and_unit(days, np.ones(3, dtype=bool), "X") == (0, 1)
    assert dtypes.origin_and_unit(days[:1], np.zeros(1, dtype=bool), "X")[1] == 1
    ends = pd.Series(np.array(["1700-01-01", "2200-01-01T00:00:00.000000001"], dtype="datetime64[ns]"))
    wide = pd.concat([ends, ends + pd.Timedelta(3, "ns")], ignore_index=True).rename("t")
    with pytest.raises(InputError, match="column 't' of X spans more time than a float can count in its finest unit"):
        dtypes.origin_and_unit(wide, np.zeros(4, dtype=bool), "X")
