"""The grid of a column, compared with what its dtype writes and reads back."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.table import Schema
from mcce.table.grid import Grid, common_multiple, common_multiples, decimals_of, is_multiple, put_on_multiples
from tests.marks import examples


def columns():
    """Return training columns of all numeric dtypes, by name."""
    days = pd.to_datetime(["2020-01-01", "2020-01-04", "2021-05-07"])
    made = {
        "int64": pd.Series([1, 5, -3]),
        "uint8": pd.Series([1, 5, 250], dtype="uint8"),
        "int16": pd.Series([1, 5, 250], dtype="int16"),
        "uint64": pd.Series([1, 5, 2**52], dtype="uint64"),
        "Int32": pd.Series([1, None, 250], dtype="Int32"),
        "whole floats": pd.Series([1.0, 5.0, np.nan]),
        "tenths": pd.Series([0.1, 0.7, -2.3]),
        "cents": pd.Series([0.01, 1234.5, -0.0]),
        "floats": pd.Series([0.1 + 0.2, np.pi, -1e-30]),
        "float32": pd.Series([0.1, np.pi, 3e8], dtype="float32"),
        "float32 tenths": pd.Series([0.1, 0.7, -2.3], dtype="float32"),
        "float16": pd.Series([0.1, 3.14, 100.0], dtype="float16"),
        "Float32": pd.Series([0.1, None, np.pi], dtype="Float32"),
        "Sparse": pd.Series([0.0, 0.0, 1.5], dtype="Sparse[float64]"),
        "days": pd.Series(days),
        "seconds": pd.Series(days.astype("M8[s]")),
        "zoned": pd.Series(days.tz_localize("Europe/Oslo")),
        "durations": pd.Series(days - days[0]),
        "months": pd.Series(days.to_period("M")),
    }
    pa = pytest.importorskip("pyarrow")
    made["date32"] = pd.Series(days.date, dtype=pd.ArrowDtype(pa.date32()))
    made["arrow ints"] = pd.Series([1, 5, 100], dtype=pd.ArrowDtype(pa.int8()))
    return made


COLUMNS = columns()
ANYTHING = st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=1, max_size=20)


def feature_of(name):
    return Schema.from_data(pd.DataFrame({"x": COLUMNS[name]})).features[0]


@pytest.mark.parametrize("name", COLUMNS)
def test_training_values_are_unchanged(name):
    feature = feature_of(name)
    values = feature.encode(COLUMNS[name].rename("x"), "X")
    np.testing.assert_array_equal(feature.grid.put(values), values)


@pytest.mark.parametrize("name", COLUMNS)
@examples(10)
@given(values=ANYTHING)
def test_gridded_numbers_equal_what_the_dtype_reads_back(name, values):
    feature = feature_of(name)
    put = feature.grid.put(np.array(values))
    decoded = pd.Series(feature.decode(put), dtype=feature.dtype, name="x")
    np.testing.assert_array_equal(feature.encode(decoded, "X"), put)
    np.testing.assert_array_equal(feature.grid.put(put), put)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("int64", 2.6, 3.0),
        ("int64", -2.6, -3.0),
        ("int64", 1e300, 2.0**53 - 1),
        ("uint8", -0.7, 0.0),
        ("uint8", 300.2, 255.0),
        ("arrow ints", 1000.0, 127.0),
        ("Int32", np.nan, np.nan),
        ("whole floats", 2.6, 3.0),
        ("tenths", 0.3000000001, 0.3),
        ("tenths", 0.26, 0.3),
        ("cents", 0.126, 0.13),
        ("cents", 1e300, 1e300),
        ("floats", 0.123456789123456789, 0.123456789123456789),
        ("float32", 0.1, float(np.float32(0.1))),
        ("float32 tenths", 0.2602, float(np.float32(0.3))),
        ("float32", 1e300, float(np.finfo(np.float32).max)),
        ("days", 4.6, 5.0),
        ("date32", 1e12, np.floor((2**31 - 1 - 18262) / 3)),
    ],
)
def test_nearest_grid_point(name, value, expected):
    np.testing.assert_array_equal(feature_of(name).grid.put(np.array([value])), [expected])


def test_dates_are_counted_in_their_unit():
    """Three and 492 days apart: the grid has every third day."""
    feature = feature_of("days")
    assert feature.decode(feature.grid.put(np.array([1.4])))[0] == np.datetime64("2020-01-04")


@pytest.mark.parametrize("name", COLUMNS)
def test_bounds_between_grid_points_are_respected(name):
    """Brute force: among all near points within the bounds, the one nearest to the value, or none."""
    grid = feature_of(name).grid
    rng = np.random.default_rng(0)
    points = np.unique(grid.put(np.linspace(0.0, 5.0, 5001)))
    low = rng.uniform(0.2, 2.0, 300)
    high = low + rng.choice([0.0, 1e-9, 0.04, 0.6, 1.5], 300)
    values = rng.uniform(low, high)
    put = grid.put_within(values, low, high)
    for value, a, b, found in zip(values, low, high, put):
        allowed = points[(points >= a) & (points <= b)]
        if name in ("floats", "float32", "float16", "Float32"):  # too fine to list
            assert np.isnan(found) or a <= found <= b
            assert not np.isnan(found) or b - a < 0.01
        elif not allowed.size:
            assert np.isnan(found)
        else:
            assert found in allowed
            assert abs(found - value) == pytest.approx(np.abs(allowed - value).min(), abs=1e-9)


def test_missing_and_open_bounds():
    grid = feature_of("uint8").grid
    values, low, high = np.array([np.nan, 7.7, 7.7]), np.array([0.0, -np.inf, 7.9]), np.array([9.0, np.inf, np.inf])
    np.testing.assert_array_equal(grid.put_within(values, low, high), [np.nan, 8.0, 8.0])
    beyond = grid.put_within(np.array([255.0]), np.array([255.5]), np.array([300.0]))
    np.testing.assert_array_equal(beyond, [np.nan])


def test_beyond_the_largest_number_of_a_narrow_dtype():
    """The next number is infinite, with a warning of numpy."""
    column = np.array([0.1234, 65504.0, 3.7], dtype=np.float16)
    grid = Schema.from_data(pd.DataFrame({"x": column})).features[0].grid
    put = grid.put_within(np.array([7e4, 1.0]), np.array([65505.0, -np.inf]), np.array([1e9, np.inf]))
    np.testing.assert_array_equal(put, [np.nan, 1.0])


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([1.0, 2.0], 0),
        ([1.0, 2.5], 1),
        ([0.1, 0.25, 3.0], 2),
        ([1e-12], 12),
        ([1e-13], None),
        ([np.pi], None),
        ([1e300], 0),
        ([2.0**52, 0.5], None),  # float64 has no decimals at this size
        ([1e9 + 0.123456], 6),
        ([0.5] * 100 + [0.25], 2),  # the finest comes late
    ],
)
def test_decimals(values, decimals):
    assert decimals_of(np.array(values)) == decimals


def test_column_of_missing_values_has_no_grid():
    feature = Schema.from_data(pd.DataFrame({"x": [np.nan, np.nan]})).features[0]
    assert feature.grid == Grid()


def test_rounding_to_grid_points_within_bounds():
    """Compared with rounding many numbers to the grid."""
    numbers = np.linspace(-3.0, 3.0, 6001) + 1e-5  # no value halfway between two points
    for dtype, decimals in ((np.dtype(np.int64), 0), (np.dtype(np.int8), 0), (np.dtype(float), 1)):
        grid = Grid.of_dtype(dtype, decimals)
        for low, high in ((-1.0, 1.0), (-0.8, 1.7), (0.25, 0.31), (-np.inf, 0.3), (1.1, np.inf), (0.12, 0.17)):
            put = grid.put(numbers)
            ends = grid.basin(np.array([low]), np.array([high]))
            expected = (put >= low) & (put <= high)
            if expected.any():
                np.testing.assert_array_equal((numbers >= ends[0]) & (numbers <= ends[1]), expected)
            else:
                assert (ends[0], ends[1]) == (low, high)


STEPS = ["0.1", "0.25", "0.3", "1", "2.5", "7", "500"]


@given(st.sampled_from(STEPS), st.integers(-2000, 2000), st.integers(0, 400), st.integers(-3000, 3000))
def test_multiples_are_decimal(step, first, width, value):
    """Decimals count exactly; every multiple between the bounds is checked."""
    exact, low, high, near = Decimal(step), Decimal(first) / 10, Decimal(first + width) / 10, Decimal(value) / 10
    arrays = [np.array([float(each)]) for each in (near, exact, low, high)]
    assert is_multiple(arrays[0], arrays[1])[0] == (near % exact == 0)
    inside = [k * exact for k in range(-2500, 2501) if low <= k * exact <= high]
    found = put_on_multiples(*arrays)[0]
    if inside:
        assert found in {float(each) for each in inside}
        assert abs(Decimal(repr(float(found))) - near) == min(abs(each - near) for each in inside)
    else:
        assert np.isnan(found)


@given(st.sampled_from(STEPS), st.sampled_from(STEPS))
def test_common_multiple_is_the_smallest_decimal_one(a, b):
    counted = next(k * Decimal(a) for k in range(1, 100_000) if (k * Decimal(a)) % Decimal(b) == 0)
    assert common_multiple(float(a), float(b)) == float(counted)
    steps = common_multiples(np.array([float(a), np.nan, np.nan]), np.array([float(b), float(b), np.nan]))
    np.testing.assert_array_equal(steps, [float(counted), float(b), np.nan])
