"""Properties of pandas dtypes (numeric, dated, nullable), and dates as integers and as text."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api import types as ptypes

from mcce.exceptions import InputError
from mcce.wording import Parameter

EXACT = 2.0**53  # integers below are exact in float64
MOST_TICKS = 2.0**63
NO_TICK = np.iinfo(np.int64).min  # pandas' code of a missing date


def column_of(name: object, where: str) -> tuple[str, Parameter]:
    """Return the beginning of a message about a column; `where` names the table."""
    return f"column {name!r} of ", Parameter(where)


def is_numeric(dtype: Any) -> bool:
    """Return whether a dtype is of real numbers that float64 holds, not booleans."""
    return bool(
        ptypes.is_numeric_dtype(dtype)
        and not ptypes.is_bool_dtype(dtype)
        and not ptypes.is_complex_dtype(dtype)
        and not str(dtype).startswith("decimal")
        and getattr(dtype, "itemsize", 8) <= 8  # a long double does not fit in float64
    )


def holds_numbers(column: pd.Series[Any]) -> bool:
    """Return whether the values of a column of any dtype are numbers or booleans."""
    if ptypes.is_object_dtype(column.dtype):
        inferred = ptypes.infer_dtype(column, skipna=True)
        return inferred in ("integer", "floating", "mixed-integer-float", "boolean", "empty")
    return is_numeric(column.dtype) or (
        ptypes.is_bool_dtype(column.dtype) and not isinstance(column.dtype, pd.CategoricalDtype)
    )


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the numpy dtype of the numbers in a column of numpy, pandas, Arrow or sparse dtype."""
    if isinstance(dtype, np.dtype):
        return dtype
    return np.dtype(dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype.numpy_dtype)


def is_logical(dtype: Any) -> bool:
    """Return whether a dtype is R's logical: boolean, nullable or not, not a category of booleans."""
    return pd.api.types.is_bool_dtype(dtype) and not isinstance(dtype, pd.CategoricalDtype)


def is_ordered(dtype: Any) -> bool:
    return isinstance(dtype, pd.CategoricalDtype) and bool(dtype.ordered)


def is_dated(dtype: Any) -> bool:
    if isinstance(dtype, pd.SparseDtype):  # without ticks
        return False
    if isinstance(dtype, pd.ArrowDtype):
        return dtype.kind in "mM"
    return bool(
        ptypes.is_datetime64_any_dtype(dtype) or ptypes.is_timedelta64_dtype(dtype) or isinstance(dtype, pd.PeriodDtype)
    )


def date_family(dtype: Any) -> object:
    """Return the kind of dates, within which dtypes convert: points (zoned or not), durations, periods."""
    if isinstance(dtype, pd.PeriodDtype):
        return dtype
    zoned = dtype.pyarrow_dtype if isinstance(dtype, pd.ArrowDtype) else dtype
    return dtype.kind, getattr(zoned, "tz", None) is not None


def holds_missing(dtype: Any) -> bool:
    """Return whether a dtype can hold missing values, for sparse numbers and intervals that of their subtype."""
    inner = dtype.subtype if isinstance(dtype, (pd.SparseDtype, pd.IntervalDtype)) else dtype
    return not (isinstance(inner, np.dtype) and inner.kind in "iub")


def to_ticks(column: pd.Series[Any]) -> npt.NDArray[np.int64]:
    """Return dates and durations as integers in their own unit; arbitrary integers for missing ones."""
    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa

        arrow = pa.array(column.array)
        if pa.types.is_date32(arrow.type):
            arrow = arrow.cast(pa.int32())
        return cast("npt.NDArray[np.int64]", arrow.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False))
    dates: Any = column.array
    return np.asarray(dates.asi8, dtype=np.int64)


def from_ticks(ticks: npt.NDArray[np.int64], missing: npt.NDArray[np.bool_], dtype: Any) -> Any:
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        whole = pa.array(ticks, mask=missing)
        if pa.types.is_date32(dtype.pyarrow_dtype):
            whole = whole.cast(pa.int32())
        return pd.array(whole.cast(dtype.pyarrow_dtype), dtype=dtype)
    if isinstance(dtype, pd.PeriodDtype):
        return pd.arrays.PeriodArray(np.where(missing, NO_TICK, ticks), dtype=dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        stamps: Any = pd.Series(np.where(missing, NO_TICK, ticks).view(f"M8[{dtype.unit}]"))
        return stamps.dt.tz_localize("UTC").dt.tz_convert(dtype.tz).array
    values = ticks.view(dtype)
    values[missing] = np.array("NaT", dtype=dtype)
    return values


def date_text(date: pd.Timestamp) -> str:
    """Return the day of a date of any year, with the time unless it is midnight."""
    return str(date.tz_localize(None)).removesuffix(" 00:00:00")


def origin_and_unit(column: pd.Series[Any], missing: npt.NDArray[np.bool_], where: str) -> tuple[int, int]:
    """Return the earliest tick and the greatest common divisor of the distances to it: dates are exact in float64."""
    ticks = to_ticks(column)[~missing]
    if ticks.size == 0:
        return 0, 1
    origin = int(ticks.min())
    unit = int(np.gcd.reduce(ticks - origin)) or 1
    span = int(ticks.max()) - origin
    if span >= MOST_TICKS or span // unit >= EXACT:
        raise InputError(
            *column_of(column.name, where),
            " spans more time than a float can count in its finest unit; round it, for example to "
            "microseconds, or use a coarser dtype.",
        )
    return origin, unit
