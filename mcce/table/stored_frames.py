"""Frames, series and their indexes as state: each column by what its dtype holds.

1. Numbers and booleans of numpy stand as they are; dates as their ticks; categories as codes; nullable numbers as
   numbers and a mask.
2. Other columns (text, objects, Arrow) stand as codes of their distinct values. Values of different types are
   different, so 1, 1.0 and True stay what they were, and so do None, NaN, NaT and NA.
3. What would not come back the same is refused when it is written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mcce.exceptions import InputError
from mcce.soundness import INT, check_array, check_between, check_type, require
from mcce.state import Fields, register
from mcce.table.checking import check_dtype
from mcce.table.dtypes import from_ticks, is_dated


def register_frames() -> None:
    """Register frames, series, and the indexes that results have."""
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
    """Return a column as its dtype, and arrays or codes (steps 1 and 2)."""
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
    """Return the array of a column."""
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
    require(len(array) == len(fields["index"]), "the values are not as many as the index")
    made: pd.Series[Any] = pd.Series(array, index=fields["index"], dtype=fields["column"]["dtype"], name=fields["name"])
    return made


def _write_multi(index: pd.MultiIndex) -> Fields:
    codes = [np.asarray(code, dtype=np.int64) for code in index.codes]
    return {"levels": list(index.levels), "codes": codes, "names": list(index.names)}


def _read_multi(fields: Fields) -> pd.MultiIndex:
    check_type(fields["levels"], "levels", list)
    check_type(fields["codes"], "codes", list)
    require(len(fields["levels"]) == len(fields["codes"]), "levels and codes are not as many")
    for level, codes in zip(fields["levels"], fields["codes"]):
        check_type(level, "levels", pd.Index)
        check_array(codes, "codes", INT, None)
        check_between(codes, "codes", -1, len(level) - 1)
    return pd.MultiIndex(levels=fields["levels"], codes=fields["codes"], names=fields["names"])


def _read_categorical(fields: Fields) -> pd.CategoricalIndex:
    return pd.CategoricalIndex(read_column({"dtype": fields["dtype"], "codes": fields["codes"]}), name=fields["name"])
