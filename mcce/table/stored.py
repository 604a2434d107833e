"""Tables as state (`mcce.storage.state`): scalars, dates, dtypes, indexes, frames and series, columns and schemas.

1. Numbers and booleans are stored as they are, dates as ticks, categories as codes, nullable numbers with a mask, other
   columns as codes of their distinct values. Values of different types are different, also None, NaN, NaT and NA. What
   would not be restored exactly is refused when it is written.
2. A file may have been manipulated: no other file is opened (time zones are names), and the length of an index is
   bounded by the file. A `Feature` must be one that `read_feature` could have made; its levels, range and missing value
   must survive decoding and encoding.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Hashable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from mcce.exceptions import InputError
from mcce.storage.fields import INT, check_array, check_between, check_type, require
from mcce.storage.state import Fields, add_check, register
from mcce.table.dtypes import EXACT, MOST_TICKS, from_ticks, holds_missing, is_dated, is_numeric
from mcce.table.feature import KINDS, Feature
from mcce.table.frames import FrameKind
from mcce.table.schema import Schema


def check_feature(feature: Feature) -> None:
    """Raise if the parts of a feature are inconsistent."""
    require(isinstance(feature.name, Hashable) and feature.name == feature.name, "name cannot be a label")
    require(feature.kind in KINDS, "kind is unknown")
    check_dtype(feature.dtype)
    require(not (feature.has_missing and not holds_missing(feature.dtype)), "dtype cannot hold missing values")
    if feature.is_numeric:
        _check_numeric(feature)
    else:
        _check_levels(feature)
    try:
        _check_there_and_back(feature)
    except InputError:
        raise
    except Exception as error:  # pandas can raise anything for levels that the dtype cannot hold
        raise InputError(f"its values cannot be written in its dtype: {error}") from error


def check_dtype(dtype: Any) -> None:
    known = isinstance(dtype, pd.api.extensions.ExtensionDtype)
    if isinstance(dtype, np.dtype):
        known = dtype.kind in "biufmMO" and dtype.itemsize <= 8 and dtype.isnative
    require(known, "dtype is not one of a column")


def _check_numeric(feature: Feature) -> None:
    require(feature.levels is None, "a numeric column has levels")
    require(is_numeric(feature.dtype) or is_dated(feature.dtype), "a numeric column has a dtype that is not numeric")
    low, high = feature.low, feature.high
    nothing = math.isnan(low) and math.isnan(high)
    require(nothing or (math.isfinite(low) and math.isfinite(high) and low <= high), "low and high are not a range")
    if is_dated(feature.dtype):
        require(nothing or (low >= 0.0 and high < EXACT), "low and high cannot be counted")
        last = feature.origin + (0 if nothing else int(high)) * feature.unit
        require(last < int(MOST_TICKS), "high is beyond what the dtype can count")


def _check_levels(feature: Feature) -> None:
    levels = feature.levels
    check_type(levels, "levels", pd.Index)
    assert levels is not None
    require(not isinstance(levels, pd.MultiIndex), "levels have several parts")
    require(levels.is_unique and not levels.isna().any(), "levels holds a value twice, or a missing one")
    if isinstance(feature.dtype, pd.CategoricalDtype):
        same = len(levels) == len(feature.dtype.categories) and feature.dtype.categories.equals(levels)
        require(same, "levels are not those of the dtype")
    ends = (0.0, float(max(len(levels) - 1, 0)))
    require((feature.low, feature.high) == ends, "low and high are not the first and the last level")


def _check_there_and_back(feature: Feature) -> None:
    """Raise if decoding and encoding changes values."""
    values = np.arange(feature.n_levels, dtype=np.float64)
    if feature.is_numeric:
        values = np.array([] if math.isnan(feature.low) else [feature.low, feature.high])
    if holds_missing(feature.dtype):
        values = np.append(values, np.nan)
    frame = Schema([feature]).decode(values[:, None])
    require(frame.dtypes.iloc[0] == feature.dtype, "its values cannot be written in its dtype")
    again = feature.encode(frame.iloc[:, 0], "the file")
    require(np.array_equal(again, values, equal_nan=True), "decoding and encoding changes its values")
    require(math.isfinite(feature.grid.put(np.zeros(1))[0]) if feature.is_numeric else True, "its grid is empty")


def check_schema(schema: Schema) -> None:
    """Raise if a schema has no columns, or a label twice."""
    require(len(schema.features) > 0, "there are no columns")
    for feature in schema.features:
        check_type(feature, "a column", Feature)
    require(len({*schema.names}) == len(schema), "two columns have the same label")
    check_type(schema.frames, "frames", FrameKind, type(None))
    dtype = schema.array_dtype
    if dtype is not None:
        check_type(dtype, "array_dtype", np.dtype)
        require(dtype.kind in "biufmMOSU" and dtype.itemsize <= 2**16, "array_dtype is not one of an array")


add_check(Feature, check_feature)
add_check(Schema, check_schema)


MOST_COUNTED = 1000  # most labels of a range; a longer one is written label by label
_ARROW_DECIMAL = re.compile(r"(decimal(?:128|256))\((\d{1,2}), (-?\d{1,2})\)")
_ARROW_BYTES = re.compile(r"fixed_size_binary\[(\d{1,9})\]")
_ARROW_LEVELS = re.compile(r"dictionary<values=(\w{1,30}), indices=(\w{1,30}), ordered=([01])>")
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
    # fold distinguishes two moments with the same clock time
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
    """Raise if a text is not the name of a time zone: pandas would open a path."""
    named = isinstance(zone, str) and _ZONE.fullmatch(zone) and not zone.lower().startswith("dateutil")
    require(bool(named), f"the time zone is {str(zone)[:60]!r}, which is not a time zone")


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
    except TypeError:  # pandas before 2.3
        return make(_WITH_NAN)


def _write_named(dtype: Any) -> Fields:
    """Return the name of a dtype, or Arrow's name if pandas does not read its own as the same dtype."""
    names = [{"name": str(dtype)}]
    if isinstance(dtype, pd.ArrowDtype):
        names.append({"arrow": str(dtype.pyarrow_dtype)})
    for fields in names:
        with suppress(TypeError, ValueError, NotImplementedError):
            if _read_named(fields) == dtype:
                return fields
    raise InputError("a dtype that cannot be written as text; convert the column to another one.")


def _read_named(fields: Fields) -> Any:
    if "arrow" in fields:
        check_type(fields["arrow"], "arrow", str)
        return pd.ArrowDtype(_read_arrow(fields["arrow"]))
    check_type(fields["name"], "name", str)
    zone = re.search(r"(?:datetime64|timestamp)\[\w+,([^\]]*)", fields["name"])
    if zone is not None:
        _check_zone(zone[1].lstrip().removeprefix("tz="))
    return pd.api.types.pandas_dtype(fields["name"])


def _read_arrow(name: str) -> Any:
    """Return an Arrow type by its name; pyarrow reads names without parameters only."""
    import pyarrow as pa

    if found := _ARROW_DECIMAL.fullmatch(name):
        return getattr(pa, found[1])(int(found[2]), int(found[3]))
    if found := _ARROW_BYTES.fullmatch(name):
        return pa.binary(int(found[1]))
    if found := _ARROW_LEVELS.fullmatch(name):
        return pa.dictionary(pa.type_for_alias(found[2]), pa.type_for_alias(found[1]), found[3] == "1")
    return pa.type_for_alias(name)


def _register_indexes() -> None:
    register("pandas.Index", pd.Index, _write_index, _read_index)
    register("pandas.RangeIndex", pd.RangeIndex, _write_range, _read_range)
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
    require(len(numbers) <= MOST_COUNTED, f"a range of {len(numbers)} labels is too long")
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


def register_frames() -> None:
    """Register frames, series, and the indexes of results."""
    register("pandas.DataFrame", pd.DataFrame, _write_frame, _read_frame)
    register(
        "pandas.Series",
        pd.Series,
        lambda series: {"name": series.name, "index": series.index, "column": write_column(series)},
        _read_series,
    )
    register("pandas.MultiIndex", pd.MultiIndex, _write_multi, _read_multi)
    register(
        "pandas.CategoricalIndex",
        pd.CategoricalIndex,
        lambda index: {"name": index.name, "codes": index.codes.astype(np.int64), "dtype": index.dtype},
        _read_categorical,
    )


def write_column(column: pd.Series[Any]) -> Fields:
    """Return a column as its dtype, and arrays or codes."""
    dtype: Any = column.dtype
    written: Fields = {"dtype": dtype}
    if isinstance(dtype, pd.CategoricalDtype):
        return written | {"codes": column.cat.codes.to_numpy(np.int64)}
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf" and dtype.itemsize <= 8:
        return written | {"values": np.ascontiguousarray(column.to_numpy())}
    if is_dated(dtype) and not isinstance(dtype, pd.ArrowDtype):
        dates: Any = column.array
        return written | {"ticks": np.asarray(dates.asi8), "missing": column.isna().to_numpy(bool)}
    if isinstance(dtype, pd.api.extensions.ExtensionDtype) and hasattr(column.array, "_mask"):
        missing = column.isna().to_numpy(bool)
        plain = column.array.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0))  # type: ignore[attr-defined]
        return written | {"values": plain, "missing": missing}
    distinct: dict[Any, int] = {}
    levels: list[Any] = []
    codes = np.empty(len(column), dtype=np.int64)
    for i, value in enumerate(column.array):
        code = distinct.setdefault((type(value), repr(value)), len(levels))
        if code == len(levels):
            levels.append(value)
        codes[i] = code
    return written | {"codes": codes, "levels": levels}


def read_column(written: Fields) -> Any:
    check_type(written, "a column", dict)
    dtype = written["dtype"]
    check_dtype(dtype)
    if "levels" in written:
        levels = written["levels"]
        check_type(levels, "levels", list)
        check_array(written["codes"], "codes", INT, None)
        check_between(written["codes"], "codes", 0, len(levels) - 1)
        values = np.empty(len(levels), dtype=object)
        values[:] = levels
        return pd.Series(values[written["codes"]], dtype=object).astype(dtype).array
    if "codes" in written:
        check_type(dtype, "dtype", pd.CategoricalDtype)
        check_array(written["codes"], "codes", INT, None)
        check_between(written["codes"], "codes", -1, len(dtype.categories) - 1)
        return pd.Categorical.from_codes(written["codes"], dtype=dtype)
    if "ticks" in written:
        check_array(written["ticks"], "ticks", INT, None)
        check_array(written["missing"], "missing", np.dtype(bool), written["ticks"].size)
        require(is_dated(dtype), "dtype is not of dates")
        return from_ticks(written["ticks"].copy(), written["missing"], dtype)
    values = written["values"]
    if "missing" not in written:
        check_array(values, "values", dtype, None)
        return values
    check_array(written["missing"], "missing", np.dtype(bool), len(values))
    made: Any = pd.array(values, dtype=dtype)
    made[written["missing"]] = pd.NA
    return made


def _write_frame(frame: pd.DataFrame) -> Fields:
    if frame.columns.nlevels == 1 and not frame.columns.is_unique:
        raise InputError("which has a column label twice; rename it.")
    columns = [write_column(frame.iloc[:, j]) for j in range(frame.shape[1])]
    return {"index": frame.index, "columns": frame.columns, "data": columns}


def _read_frame(fields: Fields) -> pd.DataFrame:
    index, columns, data = fields["index"], fields["columns"], fields["data"]
    check_type(index, "index", pd.Index)
    check_type(columns, "columns", pd.Index)
    check_type(data, "data", list)
    require(len(columns) == len(data), f"there are {len(columns)} labels for {len(data)} columns")
    arrays = [read_column(column) for column in data]
    require(all(len(array) == len(index) for array in arrays), "a column is not as long as the index")
    series = {j: pd.Series(array, index=index, dtype=data[j]["dtype"], copy=False) for j, array in enumerate(arrays)}
    frame = pd.DataFrame(series, index=index)
    frame.columns = columns
    return frame


def _read_series(fields: Fields) -> pd.Series[Any]:
    check_type(fields["index"], "index", pd.Index)
    array = read_column(fields["column"])
    require(len(array) == len(fields["index"]), "values and index have different lengths")
    made: pd.Series[Any] = pd.Series(array, index=fields["index"], dtype=fields["column"]["dtype"], name=fields["name"])
    return made


def _write_multi(index: pd.MultiIndex) -> Fields:
    codes = [np.asarray(code, dtype=np.int64) for code in index.codes]
    return {"levels": list(index.levels), "codes": codes, "names": list(index.names)}


def _read_multi(fields: Fields) -> pd.MultiIndex:
    check_type(fields["levels"], "levels", list)
    check_type(fields["codes"], "codes", list)
    require(len(fields["levels"]) == len(fields["codes"]), "levels and codes have different lengths")
    for level, codes in zip(fields["levels"], fields["codes"]):
        check_type(level, "levels", pd.Index)
        check_array(codes, "codes", INT, None)
        check_between(codes, "codes", -1, len(level) - 1)
    return pd.MultiIndex(levels=fields["levels"], codes=fields["codes"], names=fields["names"])


def _read_categorical(fields: Fields) -> pd.CategoricalIndex:
    return pd.CategoricalIndex(read_column({"dtype": fields["dtype"], "codes": fields["codes"]}), name=fields["name"])
