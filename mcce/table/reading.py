"""Reading the feature of a training column: its kind, and its levels, or the origin and unit of its dates.

Numbers, dates and durations are numeric; text, booleans and categories have levels. Dates are counted in the coarsest
of day, hour, minute, ... that counts all dates of the column exactly, since the earliest one; durations since zero.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types as ptypes

from mcce._utils import Bools
from mcce.exceptions import InputError, listing, spell
from mcce.table.dtypes import (
    EXACT,
    UNITS,
    is_date,
    is_duration,
    is_number,
    numpy_dtype,
    python_dates,
    tick_length,
    ticks_of,
)
from mcce.table.feature import Feature, Kind, check_finite, column_of, not_levels
from mcce.table.grid import count_decimals

MANY_LEVELS = 10_000  # more levels need two rows each on average


def read_feature(column: pd.Series[Any], kind: Kind | None, where: str) -> Feature:
    """Return the feature of a training column; `kind` None is the kind that its dtype has."""
    dtype: Any = column.dtype
    cell = python_dates(column)
    missing = column.isna().to_numpy(dtype=bool)
    has_missing = bool(missing.any())
    sentinel = column[missing].iloc[0] if has_missing and ptypes.is_object_dtype(dtype) else np.nan
    kind = kind or _default_kind(column, cell, where)
    if kind == "numeric":
        if not (is_number(dtype) or is_date(dtype) or cell is not None):
            raise InputError(
                f"{column_of(column, where)} has dtype {dtype} and cannot be numeric; convert it first, or leave it "
                "categorical."
            )
        origin, unit = (0, 1) if is_number(dtype) else _origin_and_unit(column, missing, cell, where)
        feature = Feature(column.name, kind, dtype, has_missing=has_missing, missing=sentinel)
        feature = replace(feature, origin=origin, unit=unit, cell=cell)
        known = feature.encode(column, where)[~missing]
        if not known.size:
            return feature
        decimals = count_decimals(known, numpy_dtype(dtype)) if is_number(dtype) else 0
        return replace(feature, low=float(known.min()), high=float(known.max()), decimals=decimals)
    if kind == "ordered" and not (is_number(dtype) or getattr(dtype, "ordered", False)):
        raise InputError(
            f"kinds[{spell(column.name)}] is 'ordered', but {column_of(column, where)} has dtype {dtype}, without an "
            "order; make it an ordered category of pandas."
        )
    levels = _levels(column[~missing], len(column), where)
    high = float(max(len(levels) - 1, 0))
    return Feature(column.name, kind, dtype, levels, 0.0, high, has_missing=has_missing, missing=sentinel)


def _default_kind(column: pd.Series[Any], cell: type | None, where: str) -> Kind:
    """Return the kind of a column by its dtype; raise on a dtype that is not supported."""
    dtype: Any = column.dtype
    inner = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else getattr(dtype, "subtype", dtype)
    is_native = not isinstance(inner, np.dtype) or inner.isnative  # pandas cannot take rows of others
    is_complex = isinstance(inner, np.dtype) and inner.kind == "c"
    if is_native and not is_complex:
        if isinstance(dtype, pd.CategoricalDtype):
            return "ordered" if dtype.ordered else "categorical"
        with contextlib.suppress(NotImplementedError):  # pandas knows some types of Arrow by name only
            if is_number(dtype) or is_date(dtype) or cell is not None:
                return "numeric"
            if ptypes.is_bool_dtype(dtype) or ptypes.is_string_dtype(dtype) or ptypes.is_object_dtype(dtype):
                return "categorical"
    raise InputError(
        f"{column_of(column, where)} has dtype {dtype}, which is not supported; convert it to numbers, dates, strings "
        "or categories."
    )


def _levels(known: pd.Series[Any], n_rows: int, where: str) -> pd.Index[Any]:
    """Return the levels of known values: in the order of the category, else sorted."""
    dtype: Any = known.dtype
    if is_number(dtype):
        check_finite(known.to_numpy(dtype=np.float64), known, where)
    try:
        levels = list(dtype.categories if isinstance(dtype, pd.CategoricalDtype) else known.unique())
    except (TypeError, ValueError, NotImplementedError) as error:  # lists and structs
        raise not_levels(known, where, error) from error
    if len(levels) > max(MANY_LEVELS, n_rows / 2):
        raise InputError(
            f"{column_of(known, where)} has {len(levels):,} levels in {n_rows:,} rows; more than {MANY_LEVELS:,} "
            "levels need two rows each on average. Drop the column, or merge rare levels."
        )
    if isinstance(dtype, pd.CategoricalDtype):
        return dtype.categories
    if ptypes.is_bool_dtype(dtype):
        return pd.Index([False, True], dtype=object)
    if ptypes.is_object_dtype(dtype):
        values = list(dict.fromkeys((type(value), value) for value in known))
        if len(values) > len(levels):
            equal = [value for _, value in values if sum(value == other for _, other in values) > 1]
            raise InputError(
                f"{column_of(known, where)} holds {listing(equal)}, which are equal and so one level; use one of them."
            )
    try:
        levels = sorted(levels)
    except TypeError:  # of several classes
        levels = sorted(levels, key=lambda level: (type(level).__name__, repr(level)))
    return pd.Index(levels, dtype=object, tupleize_cols=False)


def _origin_and_unit(column: pd.Series[Any], missing: Bools, cell: type | None, where: str) -> tuple[int, int]:
    """Return the earliest tick (0 for durations), and the ticks of the coarsest unit that counts all dates exactly."""
    ticks = ticks_of(column, missing, cell)[~missing]
    if not ticks.size:
        return 0, 1
    origin = 0 if is_duration(column.dtype) else int(ticks.min())
    farthest = max(int(ticks.max()) - origin, origin - int(ticks.min()))
    if farthest < 2**63:
        length, common = tick_length(column.dtype, cell), int(np.gcd.reduce(ticks - origin))
        coarser = [unit // length for unit in UNITS.values() if length and unit % length == 0]
        unit = next((unit for unit in coarser if common % unit == 0), 1)
        if farthest // unit < EXACT:
            return origin, unit
    raise InputError(
        f"{column_of(column, where)} spans more time than a float can count in its finest unit; round it, for example "
        "to microseconds, or use a coarser dtype."
    )
