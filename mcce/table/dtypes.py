"""What the dtypes of pandas hold (numbers, dates, missing values), and dates as integers.

Dates, durations and periods have ticks: integers in the unit of their dtype. `ticks_of` reads them, `from_ticks` writes
them. Object columns of `datetime.date` or naive `datetime.datetime` are dates too, so every year from 1 to 9999 works.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types as ptypes

from mcce._utils import Bools, Ints

EXACT = 2.0**53  # integers below are exact in float64
NO_TICK = np.iinfo(np.int64).min  # pandas' code of a missing date
UNITS = {"D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
DATES: dict[type, str] = {datetime.date: "D", datetime.datetime: "us"}  # Python's dates in object columns, their unit


def is_number(dtype: Any) -> bool:
    """Return whether a dtype is of real numbers that float64 holds, not of booleans."""
    return bool(
        ptypes.is_numeric_dtype(dtype)
        and not ptypes.is_bool_dtype(dtype)
        and not ptypes.is_complex_dtype(dtype)
        and not str(dtype).startswith("decimal")
        and getattr(dtype, "itemsize", 8) <= 8  # a long double does not fit in float64
    )


def is_date(dtype: Any) -> bool:
    """Return whether a dtype is of dates, durations or periods; `python_dates` finds those in object columns."""
    if isinstance(dtype, pd.SparseDtype):
        return False
    if isinstance(dtype, pd.ArrowDtype):
        return dtype.kind in "mM"
    return bool(
        ptypes.is_datetime64_any_dtype(dtype) or ptypes.is_timedelta64_dtype(dtype) or isinstance(dtype, pd.PeriodDtype)
    )


def python_dates(column: pd.Series[Any]) -> type | None:
    """Return the one class of Python's dates that an object column holds; None if it holds anything else."""
    if column.dtype != object or ptypes.infer_dtype(column, skipna=True) not in ("date", "datetime"):
        return None
    known = column.dropna()
    (cell, *others) = known.map(type).unique()
    is_naive = cell is datetime.date or (
        cell is datetime.datetime and known.map(lambda date: date.tzinfo is None).all()
    )
    return cell if not others and is_naive else None


def is_duration(dtype: Any) -> bool:
    """Return whether a dtype is of durations, whose zero has a meaning."""
    return getattr(dtype, "kind", "") == "m"


def holds_missing(dtype: Any) -> bool:
    """Return whether a dtype can hold missing values, for sparse numbers and intervals that of their subtype."""
    inner = dtype.subtype if isinstance(dtype, (pd.SparseDtype, pd.IntervalDtype)) else dtype
    return not (isinstance(inner, np.dtype) and inner.kind in "iub")


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the numpy dtype of the numbers in a column of numpy, pandas, Arrow or sparse dtype."""
    if isinstance(dtype, np.dtype):
        return dtype
    return np.dtype(dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype.numpy_dtype)


def tick_length(dtype: Any, cell: type | None) -> int:
    """Return the nanoseconds of one tick; 0 for periods, which count themselves."""
    if cell is not None:
        return UNITS[DATES[cell]]
    if isinstance(dtype, pd.PeriodDtype):
        return 0
    if isinstance(dtype, pd.ArrowDtype):
        return UNITS[getattr(dtype.pyarrow_dtype, "unit", "D" if str(dtype).startswith("date32") else "ms")]
    return UNITS[dtype.unit if isinstance(dtype, pd.DatetimeTZDtype) else np.datetime_data(dtype)[0]]


def ticks_of(column: pd.Series[Any], missing: Bools, cell: type | None) -> Ints:
    """Return dates, durations or periods as integers in their own unit; 0 for missing ones."""
    if cell is not None:
        dates = column.to_numpy(dtype=object, copy=True)
        dates[missing] = cell(1970, 1, 1)
        ticks = dates.astype(f"M8[{DATES[cell]}]").astype(np.int64)
    elif isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa

        arrow = pa.array(column.array)
        if pa.types.is_date32(arrow.type):
            arrow = arrow.cast(pa.int32())
        ticks = np.array(arrow.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
    else:
        ticks = np.array(column.array.asi8, dtype=np.int64)
    ticks[missing] = 0
    return ticks


def from_ticks(ticks: Ints, missing: Bools, dtype: Any, cell: type | None) -> Any:
    """Return dates, durations or periods of a dtype."""
    if cell is not None:
        dates = ticks.view(f"M8[{DATES[cell]}]").astype(object)
        dates[missing] = None
        return dates
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        whole = pa.array(ticks, mask=missing)
        if pa.types.is_date32(dtype.pyarrow_dtype):
            whole = whole.cast(pa.int32())
        return pd.array(whole.cast(dtype.pyarrow_dtype), dtype=dtype)
    ticks = np.where(missing, NO_TICK, ticks)
    if isinstance(dtype, pd.PeriodDtype):
        return pd.arrays.PeriodArray(ticks, dtype=dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        utc = pd.Series(ticks.view(f"M8[{dtype.unit}]")).dt.tz_localize("UTC")
        return utc.dt.tz_convert(dtype.tz).array
    return ticks.view(dtype)


def tick_range(dtype: Any, cell: type | None) -> tuple[int, int]:
    """Return the first and the last tick that a dtype can hold."""
    if cell is not None:  # the years 1 to 9999
        ticks_a_day = UNITS["D"] // tick_length(dtype, cell)
        return -719_162 * ticks_a_day, 2_932_896 * ticks_a_day
    return (-(2**31), 2**31 - 1) if str(dtype).startswith("date32") else (NO_TICK + 1, 2**63 - 1)


def change_unit(ticks: Ints, old: int, new: int) -> tuple[Ints, Bools]:
    """Return ticks of `old` nanoseconds as ticks of `new` nanoseconds, and which of them are exact."""
    if old == new:
        return ticks, np.ones(ticks.size, dtype=bool)
    if old < new:
        whole, rest = np.divmod(ticks, new // old)
        return whole, rest == 0
    return ticks * (old // new), np.abs(ticks.astype(np.float64)) * (old // new) < 2.0**63


def date_family(dtype: Any, cell: type | None) -> object:
    """Return what dtypes must share to be compared: dates (zoned or not), durations, periods of one length."""
    if cell is not None:
        return "M", False
    if not is_date(dtype):
        return None
    if isinstance(dtype, pd.PeriodDtype):
        return dtype
    return dtype.kind, getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None) is not None
