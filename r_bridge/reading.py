"""R to pandas, column by column: the series of `r_bridge.frames.from_r`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api import types as ptypes

from mcce.exceptions import InputError, listing
from mcce.table.dtypes import from_ticks, is_dated, to_ticks
from r_bridge.columns import DAY, MICROSECONDS, NA_INTEGER, text_of, texts_of, unit_of
from r_bridge.session import Session


def classes_of(r: Session, vector: Any) -> list[str]:
    """Return the R classes of an object."""
    return r.strings(vector.rclass)


def read_column(r: Session, vector: Any, name: str) -> pd.Series[Any]:
    """Read one column by R's type."""
    classes = classes_of(r, vector)
    if "factor" in classes:
        codes = r.numbers(vector).astype(np.int64)
        levels = pd.Index(r.strings(vector.do_slot("levels")))
        codes = np.where(codes == NA_INTEGER, 0, codes) - 1
        return pd.Series(pd.Categorical.from_codes(codes, levels, ordered="ordered" in classes))
    if {"Date", "POSIXct", "difftime"} & set(classes):
        return _read_dates(r, vector, classes)
    if isinstance(vector, r.ri.StrSexpVector):
        texts = [None if v is r.ri.NA_Character else str(v) for v in vector]
        # pandas infers its type of text from a text; without any it has to be told
        return pd.Series(["", *texts]).iloc[1:].reset_index(drop=True)
    if isinstance(vector, r.ri.FloatSexpVector):
        return pd.Series(r.numbers(vector), dtype=np.float64)
    if isinstance(vector, (r.ri.IntSexpVector, r.ri.BoolSexpVector)):
        whole = r.numbers(vector).astype(np.int64)
        missing = whole == NA_INTEGER
        plain: Any
        nullable: Any
        plain, nullable = ("bool", "boolean") if isinstance(vector, r.ri.BoolSexpVector) else ("int64", "Int64")
        if not missing.any():
            return pd.Series(whole.astype(plain))
        filled: pd.Series[Any] = pd.Series(np.where(missing, 0, whole).astype(plain), dtype=nullable)
        return filled.mask(missing)
    raise InputError(f"column {name!r} is of R's type {listing(classes)}, which cannot be read; convert it in R.")


def _read_dates(r: Session, vector: Any, classes: list[str]) -> pd.Series[Any]:
    values = r.numbers(vector).astype(np.float64)
    missing = np.isnan(values)
    values[missing] = 0.0
    if "difftime" in classes:
        per_unit = {"secs": 1, "mins": 60, "hours": 3600, "days": DAY, "weeks": 7 * DAY}
        seconds = values * per_unit[r.strings(vector.do_slot("units"))[0]]
        return pd.Series(_ticks(seconds).view("m8[us]")).mask(missing)
    if "Date" in classes:
        return pd.Series(_ticks(np.floor(values) * DAY).view("M8[us]")).mask(missing)
    zone = r.strings(r.call("time_zone", vector))[0]
    stamps = pd.Series(_ticks(values).view("M8[us]")).mask(missing)
    return stamps.dt.tz_localize("UTC").dt.tz_convert(zone)


def _ticks(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.rint(seconds * 1e6).astype(np.int64)


def restore_column(column: pd.Series[Any], like: pd.Series[Any], name: str) -> pd.Series[Any]:
    """Give a column that came from R the dtype it had before."""
    dtype: Any = like.dtype
    if column.dtype == dtype:
        return column
    missing = column.isna().to_numpy(dtype=bool)
    try:
        if isinstance(dtype, pd.CategoricalDtype):
            texts = pd.Index(texts_of(dtype.categories, name), dtype=object)
            codes = texts.get_indexer(pd.Index(column.map(text_of, na_action="ignore"), dtype=object))
            if (codes[~missing] < 0).any():
                raise ValueError(f"{column[~missing & (codes < 0)].iloc[0]!r} is none of its categories")
            return pd.Series(pd.Categorical.from_codes(np.where(missing, -1, codes), dtype=dtype))
        if is_dated(dtype):
            return _restore_dates(column, missing, dtype)
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(object)
            column = column.map({"TRUE": True, "FALSE": False}) if ptypes.is_bool_dtype(dtype) else column
        if ptypes.is_object_dtype(dtype):
            gone = like[like.isna()]
            return column.astype(object).where(~missing, None if gone.empty else gone.iloc[0])
        restored = column.astype(dtype)
        if not (restored[~missing] == column[~missing]).all():
            raise ValueError("it would change values")
    except (TypeError, ValueError) as error:
        raise InputError(f"column {name!r} came from R as {column.dtype} and cannot be {dtype}: {error}") from error
    return restored


def _restore_dates(column: pd.Series[Any], missing: npt.NDArray[np.bool_], dtype: Any) -> pd.Series[Any]:
    micro = np.where(missing, 0, to_ticks(column))
    unit = unit_of(dtype)
    per_tick = DAY * 10**6 if unit == "D" else MICROSECONDS.get(unit, 1)
    if (micro % per_tick).any():
        raise ValueError(f"it holds fractions of {unit}")
    ticks = micro // per_tick * (1000 if unit == "ns" else 1)
    restored: pd.Series[Any] = pd.Series(from_ticks(ticks.astype(np.int64), missing, dtype), dtype=dtype)
    return restored
