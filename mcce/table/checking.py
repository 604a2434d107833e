"""Columns that come from a file: whether they are columns at all.

1. The parts of a `Feature` are what `read_feature` could have made.
2. Every level, the ends of its range and a missing value are decoded and encoded again: what does not come back the
   same would fail later, in the middle of a draw.
3. A `Schema` has columns, each under a label of its own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from mcce.exceptions import InputError
from mcce.soundness import check_count_of, check_flag, check_type, require
from mcce.state import add_check
from mcce.table.dtypes import EXACT, MOST_TICKS, holds_missing, is_dated, is_numeric
from mcce.table.feature import KINDS, Feature
from mcce.table.frames import FrameKind
from mcce.table.grid import MOST_DECIMALS
from mcce.table.schema import Schema


def check_feature(feature: Feature) -> None:
    """Refuse parts that are no column (steps 1 and 2)."""
    require(isinstance(feature.name, Hashable) and feature.name == feature.name, "name cannot be a label")
    require(feature.kind in KINDS, "kind is none of the three")
    check_dtype(feature.dtype)
    check_flag(feature.has_missing, "has_missing")
    for name in ("low", "high"):
        check_type(getattr(feature, name), name, float)
    require(not (feature.has_missing and not holds_missing(feature.dtype)), "dtype cannot hold missing values")
    check_count_of(feature.origin, "origin", -int(MOST_TICKS), int(MOST_TICKS) - 1)
    check_count_of(feature.unit, "unit", 1, int(MOST_TICKS) - 1)
    if feature.decimals is not None:
        check_count_of(feature.decimals, "decimals", 0, MOST_DECIMALS)
    if feature.is_numeric:
        _check_numeric(feature)
    else:
        _check_levels(feature)
    try:
        _check_there_and_back(feature)
    except InputError:
        raise
    except Exception as error:  # whatever pandas says of a dtype that cannot hold its levels
        raise InputError(f"its values cannot be written in its dtype: {error}") from error


def check_dtype(dtype: Any) -> None:
    """Refuse what is no dtype of a column."""
    known = isinstance(dtype, pd.api.extensions.ExtensionDtype)
    if isinstance(dtype, np.dtype):
        known = dtype.kind in "biufmMO" and dtype.itemsize <= 8 and dtype.isnative
    require(known, "dtype is none that a column can have")


def _check_numeric(feature: Feature) -> None:
    require(feature.levels is None, "a numeric column has levels")
    require(is_numeric(feature.dtype) or is_dated(feature.dtype), "a numeric column has a dtype of other things")
    low, high = feature.low, feature.high
    nothing = math.isnan(low) and math.isnan(high)
    require(nothing or (math.isfinite(low) and math.isfinite(high) and low <= high), "low and high are no range")
    if is_dated(feature.dtype):
        require(nothing or (low >= 0.0 and high < EXACT), "low and high cannot be counted")
        last = feature.origin + (0 if nothing else int(high)) * feature.unit
        require(last < int(MOST_TICKS), "high is beyond what the dtype can count")


def _check_levels(feature: Feature) -> None:
    levels = feature.levels
    check_type(levels, "levels", pd.Index)
    assert levels is not None
    require(not isinstance(levels, pd.MultiIndex), "levels have several parts")
    require(levels.is_unique and not levels.isna().any(), "levels holds one of them twice, or a missing one")
    if isinstance(feature.dtype, pd.CategoricalDtype):
        same = len(levels) == len(feature.dtype.categories) and feature.dtype.categories.equals(levels)
        require(same, "levels are not those of the dtype")
    ends = (0.0, float(max(len(levels) - 1, 0)))
    require((feature.low, feature.high) == ends, "low and high are not the first and the last level")


def _check_there_and_back(feature: Feature) -> None:
    """Step 2."""
    values = np.arange(feature.n_levels, dtype=np.float64)
    if feature.is_numeric:
        values = np.array([] if math.isnan(feature.low) else [feature.low, feature.high])
    if holds_missing(feature.dtype):
        values = np.append(values, np.nan)
    frame = Schema([feature]).decode(values[:, None])
    require(frame.dtypes.iloc[0] == feature.dtype, "its values cannot be written in its dtype")
    again = feature.encode(frame.iloc[:, 0], "the file")
    require(np.array_equal(again, values, equal_nan=True), "its values do not come back from its dtype as they were")
    require(math.isfinite(feature.grid.put(np.zeros(1))[0]) if feature.is_numeric else True, "its grid is empty")


def check_schema(schema: Schema) -> None:
    """Refuse a table without columns, or with a label twice (step 3)."""
    require(len(schema.features) > 0, "there are no columns")
    for feature in schema.features:
        check_type(feature, "a column", Feature)
    require(len({*schema.names}) == len(schema), "two columns have the same label")
    check_type(schema.frames, "frames", FrameKind, type(None))
    dtype = schema.array_dtype
    if dtype is not None:
        check_type(dtype, "array_dtype", np.dtype)
        require(dtype.kind in "biufmMOSU" and dtype.itemsize <= 2**16, "array_dtype is none that an array can have")


add_check(Feature, check_feature)
add_check(Schema, check_schema)
