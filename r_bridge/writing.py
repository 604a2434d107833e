"""Conversion of columns from pandas to R, for `r_bridge.frames.to_r`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api import types as ptypes

from mcce.base.checks import is_number
from mcce.exceptions import InputError, listing, spell
from mcce.rcompat.columns import text_of, texts_of
from mcce.table.dtypes import EXACT, is_dated, is_numeric, to_ticks
from r_bridge.columns import DAY, MICROSECONDS, NA_INTEGER, RColumn, unit_of
from r_bridge.session import Session


def write_column(r: Session, column: pd.Series[Any], name: str, wanted: RColumn | None) -> Any:
    """Write one column, as the given type or as the natural one."""
    kind = _natural_type(column, name)
    if wanted is None or (wanted.type == kind and not wanted.levels):
        wanted = RColumn(kind)
    missing = column.isna().to_numpy(dtype=bool)
    if wanted.type in ("factor", "ordered"):
        return _write_factor(r, column, missing, name, wanted)
    if wanted.type == "character":
        return r.character([None if gone else text_of(v) for v, gone in zip(column, missing)])
    if wanted.type == kind == "logical":
        return r.ri.BoolSexpVector(_with_na(_whole(column, missing), missing))
    if wanted.type == "numeric" and kind in ("numeric", "logical"):
        return _write_numbers(r, column, missing, name)
    if wanted.type in ("Date", "POSIXct", "difftime") and kind in ("Date", "POSIXct", "difftime"):
        return _write_dates(r, column, missing, name, wanted.type)
    raise InputError(
        f"column {name!r} has dtype {column.dtype} ({kind} in R's terms), but R expects {wanted.type}; "
        "convert it first."
    )


def _natural_type(column: pd.Series[Any], name: str) -> str:
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "ordered" if dtype.ordered else "factor"
    if is_dated(dtype):
        return _date_type(dtype, name)
    if ptypes.is_bool_dtype(dtype):
        return "logical"
    if is_numeric(dtype):
        return "numeric"
    if ptypes.is_string_dtype(dtype) or ptypes.is_object_dtype(dtype):
        inferred = ptypes.infer_dtype(column, skipna=True)
        known = {"string": "character", "boolean": "logical", "empty": "logical"}
        numbers = dict.fromkeys(("integer", "floating", "mixed-integer-float"), "numeric")
        if inferred in known | numbers:
            return (known | numbers)[inferred]
        dtype = f"{dtype} with {inferred} values"
    raise InputError(
        f"column {name!r} has dtype {dtype}, which R has no type for; convert it to numbers, text or dates."
    )


def _date_type(dtype: Any, name: str) -> str:
    if isinstance(dtype, pd.PeriodDtype):
        if str(dtype) != "period[D]":
            raise InputError(f"column {name!r} has dtype {dtype}; of periods R has days only. Use .dt.to_timestamp().")
        return "Date"
    if isinstance(dtype, pd.ArrowDtype) and str(dtype.pyarrow_dtype) == "date32[day]":
        return "Date"
    return "difftime" if dtype.kind == "m" else "POSIXct"


def _whole(column: pd.Series[Any], missing: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Return integers or booleans as an integer array, with 0 for missing ones."""
    held: Any = column
    if missing.any():
        held = column.where(~missing, False if _holds_booleans(column) else 0)
    plain: npt.NDArray[Any] = held.to_numpy()
    return plain if plain.dtype.kind in "iu" else plain.astype(np.int64)


def _holds_booleans(column: pd.Series[Any]) -> bool:
    dtype: Any = column.dtype
    return bool(ptypes.is_bool_dtype(dtype)) or (
        bool(ptypes.is_object_dtype(dtype)) and ptypes.infer_dtype(column, skipna=True) in ("boolean", "empty")
    )


def _holds_integers(column: pd.Series[Any]) -> bool:
    dtype: Any = column.dtype
    return bool(ptypes.is_integer_dtype(dtype)) or (
        bool(ptypes.is_object_dtype(dtype)) and ptypes.infer_dtype(column, skipna=True) == "integer"
    )


def _with_na(whole: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    written = whole.astype(np.int32)
    written[missing] = NA_INTEGER
    return written


def _write_numbers(r: Session, column: pd.Series[Any], missing: npt.NDArray[np.bool_], name: str) -> Any:
    if _holds_booleans(column) or _holds_integers(column):
        whole = _whole(column, missing)
        largest = max(-int(whole.min()), int(whole.max())) if whole.size else 0
        if largest < 2**31:
            return r.ri.IntSexpVector(_with_na(whole, missing))
        if largest > EXACT:
            raise InputError(
                f"column {name!r} holds integers beyond 2**53, which R cannot hold; use text or a category."
            )
        values = whole.astype(np.float64)
    else:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    values[missing] = r.ri.NA_Real
    return r.ri.FloatSexpVector(values)


def _write_factor(
    r: Session, column: pd.Series[Any], missing: npt.NDArray[np.bool_], name: str, wanted: RColumn
) -> Any:
    categories = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else None
    place, distinct = (column.cat.codes, categories) if categories is not None else pd.factorize(column)
    texts = texts_of(pd.Index(distinct), name)
    levels: list[str | None] = list(wanted.levels) or [*texts]
    code = {text: k for k, text in enumerate(levels, 1)}
    numbers = {_number(text): k for k, text in enumerate(levels, 1) if text is not None}  # R writes 100000 as 1e+05
    by_number = [numbers.get(float(v), 0) if is_number(v) else 0 for v in distinct]
    codes = np.array([code.get(t, k) for t, k in zip(texts, by_number)] + [0], dtype=np.int32)
    written = codes[np.asarray(place)]
    unknown = (written == 0) & ~missing
    if unknown.any():
        first, row = column[unknown].iloc[0], column.index[unknown][0]
        raise InputError(
            f"column {name!r} holds the level {spell(first)} (row {spell(row)}), unknown to R (known: "
            f"{listing([level for level in levels if level is not None])}). Leave the row out, or fit with it."
        )
    written[missing] = code.get(None, NA_INTEGER)
    factor = r.ri.IntSexpVector(written)
    factor.do_slot_assign("levels", r.character(levels))
    return r.with_class(factor, *(["ordered"] if wanted.type == "ordered" else []), "factor")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _write_dates(r: Session, column: pd.Series[Any], missing: npt.NDArray[np.bool_], name: str, kind: str) -> Any:
    micro = _microseconds(column, missing, name)
    per_unit = DAY * 10**6 if kind == "Date" else 10**6
    values = micro / per_unit
    if (np.rint(values * per_unit) != micro).any():
        raise InputError(f"column {name!r} holds dates too far away for R to count in microseconds; round it.")
    values[missing] = r.ri.NA_Real
    vector = r.ri.FloatSexpVector(values)
    if kind == "POSIXct":
        zone = getattr(column.dtype, "tz", None)
        vector.do_slot_assign("tzone", r.character([str(zone) if zone is not None else "UTC"]))
    if kind == "difftime":
        vector.do_slot_assign("units", r.character(["secs"]))
    return r.with_class(vector, kind, *(["POSIXt"] if kind == "POSIXct" else []))


def _microseconds(column: pd.Series[Any], missing: npt.NDArray[np.bool_], name: str) -> npt.NDArray[np.int64]:
    ticks = np.where(missing, 0, to_ticks(column))
    unit = unit_of(column.dtype)
    if unit == "ns":
        if (ticks % 1000).any():
            raise InputError(f"column {name!r} holds nanoseconds, which R cannot hold; use .dt.round('us').")
        return np.asarray(ticks // 1000, dtype=np.int64)
    return np.asarray(ticks * (DAY * 10**6 if unit == "D" else MICROSECONDS[unit]), dtype=np.int64)
