"""Conversion of columns from R to pandas, for `r_bridge.frames.from_r`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api import types as ptypes

from mcce.exceptions import InputError, listing
from mcce.rcompat.columns import text_of, texts_of
from mcce.table.dtypes import from_ticks, is_dated, to_ticks
from r_bridge.columns import DAY, MICROSECONDS, NA_INTEGER, NA_INTEGER64, unit_of
from r_bridge.session import Session


def classes_of(r: Session, vector: Any) -> list[str]:
    """Return the R classes of an object."""
    return r.strings(vector.rclass)


def read_column(r: Session, vector: Any, name: str) -> pd.Series[Any]:
    """Read one column by R's type."""
    classes = classes_of(r, vector)
    if "dim" in vector.list_attrs():
        n_rows, n_columns = (int(size) for size in list(vector.do_slot("dim"))[:2])
        raise InputError(
            f"column {name!r} is a matrix ({n_rows} by {n_columns}), and a column of a DataFrame is not. Make each of "
            "its columns one of its own, in R: do.call(data.frame, data)."
        )
    if "factor" in classes:
        return _read_factor(r, vector, ordered="ordered" in classes)
    if {"Date", "POSIXct", "difftime"} & set(classes):
        return _read_dates(r, vector, classes, name)
    if "integer64" in classes:  # package bit64: integers stored in the bits of doubles
        bits = np.array(vector.memoryview()).view(np.int64) if len(vector) else np.empty(0, dtype=np.int64)
        return _read_integers(bits, bits == NA_INTEGER64, "int64", "Int64")
    if isinstance(vector, r.ri.StrSexpVector):
        # pandas infers the type of text from a text; without one the type is given
        return pd.Series(["", *r.texts(vector)]).iloc[1:].reset_index(drop=True)
    if isinstance(vector, r.ri.FloatSexpVector):
        return pd.Series(r.numbers(vector), dtype=np.float64)
    if isinstance(vector, (r.ri.IntSexpVector, r.ri.BoolSexpVector)):
        whole = r.numbers(vector).astype(np.int64)
        dtypes = ("bool", "boolean") if isinstance(vector, r.ri.BoolSexpVector) else ("int64", "Int64")
        return _read_integers(whole, whole == NA_INTEGER, *dtypes)
    raise InputError(f"column {name!r} is of R's type {listing(classes)}, which cannot be read; convert it in R.")


def _read_factor(r: Session, vector: Any, *, ordered: bool) -> pd.Series[Any]:
    """Read a factor; a level that is NA, as created by `addNA`, is read as a missing value."""
    levels = r.texts(vector.do_slot("levels"))
    codes = r.numbers(vector).astype(np.int64)
    kept = np.array([level is not None for level in levels] + [False])
    place = np.where(kept, np.cumsum(kept) - 1, -1)  # the last is for a missing code
    codes = np.where(codes == NA_INTEGER, len(levels), codes - 1)
    known = pd.Index([level for level in levels if level is not None], dtype=None if any(kept) else object)
    return pd.Series(pd.Categorical.from_codes(place[codes], known, ordered=ordered))


def _read_integers(
    whole: npt.NDArray[np.int64], missing: npt.NDArray[np.bool_], plain: Any, nullable: Any
) -> pd.Series[Any]:
    """Read integers or booleans, with a plain dtype if none is missing."""
    if not missing.any():
        return pd.Series(whole.astype(plain))
    filled: pd.Series[Any] = pd.Series(np.where(missing, 0, whole).astype(plain), dtype=nullable)
    return filled.mask(missing)


def _read_dates(r: Session, vector: Any, classes: list[str], name: str) -> pd.Series[Any]:
    stored = r.numbers(vector)
    values = stored.astype(np.float64)
    missing = np.isnan(values) if stored.dtype.kind == "f" else stored == NA_INTEGER
    values[missing] = 0.0
    if np.isinf(values).any():
        raise InputError(f"column {name!r} holds an infinite time, which pandas cannot hold; make it NA in R.")
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
    """Convert a column from R to its original dtype."""
    dtype: Any = like.dtype
    if column.dtype == dtype:
        return column
    missing = column.isna().to_numpy(dtype=bool)
    try:
        if isinstance(dtype, pd.CategoricalDtype):
            texts = pd.Index(texts_of(dtype.categories, name), dtype=object)
            codes = texts.get_indexer(pd.Index(column.map(text_of, na_action="ignore"), dtype=object))
            if (codes[~missing] < 0).any():
                raise ValueError(f"{column[~missing & (codes < 0)].iloc[0]!r} is not one of its categories")
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
