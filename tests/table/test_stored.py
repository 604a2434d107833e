"""Stored frames and indexes: every dtype and every missing value round-trips."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

from mcce import InputError
from mcce.storage.state import from_state, to_state

DAYS = pd.to_datetime(["2020-01-01", None, "1999-12-31"])

COLUMNS = {
    "objects": pd.Series([1, True, 1.0], dtype=object),
    "missing": pd.Series([None, np.nan, pd.NaT], dtype=object),
    "more missing": pd.Series([pd.NA, -0.0, 0.0], dtype=object),
    "odd": pd.Series([("a", 1), decimal.Decimal("0.10"), datetime.date(2020, 1, 1)], dtype=object),
    "str": pd.Series(["", "é", None]),
    "string": pd.Series(["a", None, "b"], dtype="string"),
    "float32": pd.Series([0.1, np.nan, -0.0], dtype="float32"),
    "uint8": pd.Series([255, 0, 1], dtype="uint8"),
    "bool": pd.Series([True, False, True]),
    "boolean": pd.Series([True, None, False], dtype="boolean"),
    "Int8": pd.Series([1, None, -128], dtype="Int8"),
    "UInt64": pd.Series([2**64 - 1, None, 0], dtype="UInt64"),
    "Float64": pd.Series([0.1, None, np.inf], dtype="Float64"),
    "date": pd.Series(DAYS),
    "seconds": pd.Series(DAYS.as_unit("s")),
    "zoned": pd.Series(DAYS.tz_localize("Europe/Oslo")),
    "duration": pd.Series(DAYS - pd.Timestamp("2000-01-01")),
    "period": pd.Series(DAYS.to_period("Q")),
    "category": pd.Series(pd.Categorical(["b", None, "a"], ["b", "a", "c"], ordered=True)),
    "intervals": pd.Series(pd.cut([1.0, 2.0, 9.0], [0, 1, 5])),
    "sparse": pd.Series(pd.arrays.SparseArray([0.0, 1.0, 0.0], fill_value=0.0)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_column_round_trips(name):
    frame = COLUMNS[name].to_frame(name).set_axis(pd.Index([5, 3, 4], name="id"))
    back = from_state(to_state(frame))
    pd.testing.assert_frame_equal(back, frame)
    column = COLUMNS[name]
    assert [*map(repr, column.array)] == [*map(repr, back[name].array)]  # 1, 1.0 and True differ here
    series = from_state(to_state(column.rename(("a", 1))))
    pd.testing.assert_series_equal(series, column.rename(("a", 1)))


@pytest.mark.parametrize(
    "dtype", ["int32[pyarrow]", "double[pyarrow]", "string[pyarrow]", "bool[pyarrow]", "timestamp[us][pyarrow]"]
)
def test_arrow_column_round_trips(dtype):
    pytest.importorskip("pyarrow")
    values = {"s": ["a", None, ""], "b": [True, None, False], "t": [pd.Timestamp("2020-01-01"), None, None]}
    column = pd.Series(values.get(dtype[0], [1, None, 3]), dtype=dtype)
    pd.testing.assert_series_equal(from_state(to_state(column)), column)


@pytest.mark.parametrize(
    "index",
    [
        pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["id", "rank"]),
        pd.MultiIndex.from_tuples([("a", None), (None, 2)], names=[None, ("x", 1)]),
        pd.CategoricalIndex(["a", "b", "a"], ["b", "a"], name="who"),
        pd.RangeIndex(5, 5000, 3, name="long"),
        pd.RangeIndex(0),
        pd.RangeIndex(3000, 0, -1),
    ],
    ids=lambda index: f"{type(index).__name__} {len(index)}",
)
def test_index_round_trips(index):
    back = from_state(to_state(index))
    assert type(back) is type(index)
    pd.testing.assert_index_equal(back, index)
    empty = pd.DataFrame(index=index)
    pd.testing.assert_frame_equal(from_state(to_state(empty)), empty)


def test_inconsistent_parts_raise():
    state = to_state(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}))
    state["data"][1]["codes"][0] = 7
    with pytest.raises(InputError, match="codes holds 7, which is not from 0 to 1"):
        from_state(state)
    state["data"][1]["codes"] = np.zeros(3, dtype=np.int64)
    with pytest.raises(InputError, match="a column is not as long as the index"):
        from_state(state)
    state = to_state(pd.MultiIndex.from_product([["a", "b"], [1, 2]]))
    state["codes"][0][0] = -2
    with pytest.raises(InputError, match="codes holds -2"):
        from_state(state)
    with pytest.raises(InputError, match="has a column label twice"):
        to_state(pd.DataFrame([[1, 2]], columns=["a", "a"]))
