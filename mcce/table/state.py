"""What tables are made of, as state (`mcce.state`): scalars, dates, dtypes and the indexes that levels stand in.

A column label or a level may be any of these scalars, or a tuple of them. A scalar or a dtype is read back at once when
it is written, and refused if it is not the same. What is read may come from a file that somebody has changed: it opens
no other file (time zones are names, never paths), and an index is as long as what the file holds.
"""

from __future__ import annotations

import datetime
import decimal
import re
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from mcce.exceptions import InputError
from mcce.soundness import INT, check_array, check_type, require
from mcce.state import Fields, register
from mcce.table.dtypes import from_ticks

MOST_COUNTED = 1000  # labels that a range may stand for; a longer one is written label by label
_ZONE = re.compile(r"[A-Za-z0-9_+:-]+(/[A-Za-z0-9_+:-]+)*")


def register_table_types() -> None:
    """Register scalars, dtypes and indexes of numpy and pandas, and the dates of the standard library."""
    register("pandas.NA", type(pd.NA), lambda obj: {}, lambda fields: pd.NA)
    register("pandas.NaT", type(pd.NaT), lambda obj: {}, lambda fields: pd.NaT)
    register("bytes", bytes, lambda b: {"hex": b.hex()}, lambda fields: bytes.fromhex(fields["hex"]))
    register("Decimal", decimal.Decimal, lambda d: {"text": str(d)}, lambda fields: decimal.Decimal(fields["text"]))
    _register_scalar("numpy.scalar", np.generic, _write_scalar, lambda fields: fields["value"][()], family=True)
    for cls in (datetime.date, datetime.time, datetime.datetime):
        _register_scalar(cls.__name__, cls, _write_time, partial(_read_time, cls))
    parts = ("days", "seconds", "microseconds")
    _register_scalar(
        "timedelta",
        datetime.timedelta,
        lambda obj: {part: getattr(obj, part) for part in parts},
        lambda fields: datetime.timedelta(**fields),
    )
    _register_scalar("pandas.Timestamp", pd.Timestamp, _write_timestamp, _read_timestamp)
    _register_scalar("pandas.Timedelta", pd.Timedelta, lambda obj: {"ticks": np.array(obj.asm8)}, _read_timedelta)
    _register_scalar(
        "pandas.Period",
        pd.Period,
        lambda obj: {"ordinal": obj.ordinal, "freq": obj.freqstr},
        lambda fields: pd.Period(**fields),
    )
    _register_scalar(
        "pandas.Interval",
        pd.Interval,
        lambda obj: {"left": obj.left, "right": obj.right, "closed": obj.closed},
        lambda fields: pd.Interval(**fields),
    )
    _register_dtypes()
    _register_indexes()


def _register_scalar(name: str, cls: type[Any], write: Any, read: Any, *, family: bool = False) -> None:
    register(name, cls, write, read, family=family, is_checked=True)


def _write_time(obj: Any) -> Fields:
    # of two moments with the same clock time, fold says which
    return {"iso": obj.isoformat()} | ({"fold": obj.fold} if hasattr(obj, "fold") else {})


def _read_time(cls: Any, fields: Fields) -> Any:
    read = cls.fromisoformat(fields["iso"])
    return read.replace(fold=fields["fold"]) if "fold" in fields else read


def _write_scalar(obj: Any) -> Fields:
    if isinstance(obj, np.void):
        raise InputError("which cannot be written as arrays and JSON values.")
    return {"value": np.array(obj)}


def _write_timestamp(obj: pd.Timestamp) -> Fields:
    return {"ticks": np.array(obj.asm8), "tz": None if obj.tz is None else str(obj.tz)}


def _read_timestamp(fields: Fields) -> pd.Timestamp:
    stamp = pd.Timestamp(fields["ticks"][()])
    if fields["tz"] is None:
        return stamp
    _check_zone(fields["tz"])
    return stamp.tz_localize("UTC").tz_convert(fields["tz"])


def _check_zone(zone: object) -> None:
    """Refuse what is no name of a time zone: pandas would open a path."""
    named = isinstance(zone, str) and _ZONE.fullmatch(zone) and not zone.lower().startswith("dateutil")
    require(bool(named), f"the time zone is {str(zone)[:60]!r}, which is none")


def _read_timedelta(fields: Fields) -> pd.Timedelta:
    return pd.Timedelta(fields["ticks"][()])


def _register_dtypes() -> None:
    register("numpy.dtype", np.dtype, _write_dtype, _read_dtype, family=True)
    register(
        "pandas.CategoricalDtype",
        pd.CategoricalDtype,
        lambda dtype: {"categories": dtype.categories, "ordered": dtype.ordered},
        lambda fields: pd.CategoricalDtype(**fields),
    )
    register(
        "pandas.SparseDtype",
        pd.SparseDtype,
        lambda dtype: {"subtype": dtype.subtype, "fill": dtype.fill_value},
        lambda fields: pd.SparseDtype(fields["subtype"], fields["fill"]),
    )
    register(
        "pandas.StringDtype",
        pd.StringDtype,
        lambda dtype: {"storage": dtype.storage, "missing": getattr(dtype, "na_value", pd.NA)},
        _read_string_dtype,
    )
    register("pandas.dtype", pd.api.extensions.ExtensionDtype, _write_named, _read_named, family=True)


_WITH_NAN = "pyarrow_numpy"


def _write_dtype(dtype: np.dtype[Any]) -> Fields:
    if dtype.kind == "V" or np.dtype(dtype.str) != dtype:
        raise InputError("a dtype that cannot be written as text.")
    return {"code": dtype.str}


def _read_dtype(fields: Fields) -> np.dtype[Any]:
    check_type(fields["code"], "code", str)
    return np.dtype(fields["code"])


def _read_string_dtype(fields: Fields) -> Any:
    make: Any = pd.StringDtype
    storage, missing = fields["storage"], fields["missing"]
    if storage == _WITH_NAN:
        storage, missing = "pyarrow", np.nan
    if missing is pd.NA:
        return make(storage)
    try:
        return make(storage, na_value=missing)
    except TypeError:  # pandas before 2.3 has one with NaN only, by a name that later ones do without
        return make(_WITH_NAN)


def _write_named(dtype: Any) -> Fields:
    try:
        same = _read_named({"name": str(dtype)}) == dtype
    except (TypeError, ValueError, NotImplementedError):
        same = False
    if not same:
        raise InputError("a dtype that cannot be written as text; convert the column to another one.")
    return {"name": str(dtype)}


def _read_named(fields: Fields) -> Any:
    check_type(fields["name"], "name", str)
    zone = re.search(r"(?:datetime64|timestamp)\[\w+,\s*(?:tz=)?([^\]]*)\]", fields["name"])
    if zone is not None:
        _check_zone(zone[1])
    return pd.api.types.pandas_dtype(fields["name"])


def _register_indexes() -> None:
    register("pandas.Index", pd.Index, _write_index, _read_index)
    register(
        "pandas.RangeIndex",
        pd.RangeIndex,
        _write_range,
        _read_range,
    )
    register(
        "pandas.IntervalIndex",
        pd.IntervalIndex,
        lambda index: {part: getattr(index, part) for part in ("left", "right", "closed", "name")},
        lambda fields: pd.IntervalIndex.from_arrays(**fields),
    )
    for cls in (pd.DatetimeIndex, pd.TimedeltaIndex, pd.PeriodIndex):
        register(f"pandas.{cls.__name__}", cls, _write_dates, _read_dates)


def _write_index(index: pd.Index[Any]) -> Fields:
    plain = isinstance(index.dtype, np.dtype) and index.dtype != object
    return {"dtype": index.dtype, "values": index.to_numpy() if plain else list(index), "name": index.name}


def _read_index(fields: Fields) -> pd.Index[Any]:
    return pd.Index(fields["values"], dtype=fields["dtype"], name=fields["name"], tupleize_cols=False)


def _write_range(index: pd.RangeIndex) -> Fields:
    if len(index) > MOST_COUNTED:
        return {"values": index.to_numpy(), "name": index.name}
    return {part: getattr(index, part) for part in ("start", "stop", "step", "name")}


def _read_range(fields: Fields) -> pd.Index[Any]:
    if "values" in fields:
        values = fields["values"]
        check_array(values, "values", INT, None)
        require(values.size > 1, "a range is too short")
        first, step = int(values[0]), int(values[1]) - int(values[0])
        require(bool((np.diff(values) == step).all()) and step != 0, "a range has steps of different sizes")
        return pd.RangeIndex(range(first, first + step * values.size, step), name=fields["name"])
    numbers = range(fields["start"], fields["stop"], fields["step"])
    require(len(numbers) <= MOST_COUNTED, f"a range of {len(numbers)} labels is longer than it can be")
    return pd.RangeIndex(numbers, name=fields["name"])


def _write_dates(index: Any) -> Fields:
    freq = None if isinstance(index, pd.PeriodIndex) else index.freqstr
    return {"dtype": index.dtype, "ticks": index.asi8, "freq": freq, "name": index.name}


def _read_dates(fields: Fields) -> Any:
    none = np.zeros(fields["ticks"].size, dtype=bool)
    index: Any = pd.Index(from_ticks(fields["ticks"].copy(), none, fields["dtype"]), name=fields["name"])
    if fields["freq"] is not None:
        index.freq = to_offset(fields["freq"])
    return index
