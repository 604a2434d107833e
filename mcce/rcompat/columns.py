"""Columns as R sees them: what a tree splits on, what a generated column holds, what a measure counts.

1. Integers, doubles and logicals (pandas: bool) are numbers to rpart and party, but party tests a logical as a factor,
   and takes it as one if it is the response; factors (category) and text are levels, ordered factors (ordered
   category) ordered levels. Text has its levels in alphabetical order.
2. A column is encoded once, by the training data's levels; factuals are matched by label, whatever their own order.
3. A generated column of a mutable feature has the training data's dtype, one of a fixed feature the factuals'.

What mcceR cannot work with is refused here: missing values, dates, names that it uses itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Floats
from mcce.exceptions import InputError, listing, spell
from mcce.table import Column, Feature, Schema
from mcce.table.checks import check_fixed_names
from mcce.table.dtypes import is_dated, is_logical

DECISION = "decision"  # the column that says whether a row has the wanted decision
DUMMY = "dummy"  # the constant column that the first tree is grown on where there is nothing else
RESULT_COLUMNS = ("id_explain", "row_id", "counterfactual_rank", "pred")


def read_columns(frame: pd.DataFrame, where: str) -> list[Feature]:
    """Return the features of a training frame, logicals as numbers that come back as logicals."""
    for name, dtype in frame.dtypes.items():
        if is_dated(dtype):
            raise InputError(
                f"column {name!r} of {where} has dtype {dtype}; R's trees and measures do not agree on dates: convert "
                "it to a number, such as days."
            )
    logical = [name for name, dtype in frame.dtypes.items() if is_logical(dtype)]
    features = Schema.from_data(frame.astype(dict.fromkeys(logical, np.float64)), where=where).features
    return [replace(f, dtype=frame[f.name].dtype) if f.name in logical else f for f in features]


def party_response(column: Column) -> Column:
    """Return a target as party takes it: a logical is a factor as the response."""
    feature = column.feature
    if not is_logical(feature.dtype):
        return column
    return Column(replace(feature, kind="categorical", levels=pd.Index([False, True], dtype=object)), column.values)


def encode_column(column: pd.Series[Any], feature: Feature, where: str) -> Floats:
    """Return the values as numbers or level codes; a number need not fit in the training data's dtype."""
    missing = np.flatnonzero(column.isna().to_numpy(dtype=bool))
    if missing.size:
        raise InputError(
            f"column {column.name!r} of {where} has {missing.size} missing value(s), the first in row "
            f"{spell(column.index[missing[0]])}; mcceR's measures and draws have no answer for them: fill them in or "
            "drop the rows, or use mcce.MCCE, where missing is a value like another."
        )
    wide = replace(feature, dtype=np.dtype(np.float64)) if feature.is_numeric else feature
    return wide.encode(column, where)


def encode_columns(frame: pd.DataFrame, features: Sequence[Feature], where: str) -> Floats:
    """Return some columns of a frame as one Fortran-ordered matrix."""
    check_present(frame, (feature.name for feature in features), where)
    matrix = np.empty((len(frame), len(features)), order="F")
    for j, feature in enumerate(features):
        matrix[:, j] = encode_column(frame[feature.name], feature, where)
    return matrix


def constant(name: str) -> Feature:
    """Return the feature of `decision` or `dummy`, which is 1 in every generated row."""
    return Feature(name, "numeric", np.dtype(np.float64), low=0.0, high=1.0)


def gower_roles(features: Sequence[Feature]) -> npt.NDArray[np.int8]:
    """Return what a column is to mcceR's Gower: 1 a number, 0 a factor, -1 nothing (logicals and text)."""
    roles = [
        -1 if is_logical(f.dtype) else 1 if f.is_numeric else 0 if isinstance(f.dtype, pd.CategoricalDtype) else -1
        for f in features
    ]
    return np.array(roles, dtype=np.int8)


def check_fixed(fixed_features: str | Iterable[Hashable] | None, names: Sequence[Hashable]) -> list[Hashable]:
    """Return the fixed features as a list of known, different names."""
    if fixed_features is None or isinstance(fixed_features, str):
        fixed_features = () if fixed_features is None else (fixed_features,)
    fixed = check_fixed_names(fixed_features, names, "fixed_features", "x_train")
    if len(fixed) == len(names):
        raise InputError("fixed_features names every column of x_train; leave at least one that may change.")
    return fixed


def check_names(names: Iterable[Hashable], reserved: Iterable[str]) -> None:
    """Refuse the names that the table of candidates uses for columns of its own."""
    taken = [name for name in names if name in set(reserved)]
    if taken:
        raise InputError(
            f"x_train has the column(s) {listing(taken)}, a name that explain_mcce uses for a column of its own "
            "(mcceR would overwrite it); rename the column."
        )


def check_present(frame: pd.DataFrame, names: Iterable[Hashable], where: str) -> None:
    """Refuse a frame without rows, or without one of the columns."""
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise InputError(f"{where} lacks the column(s) {listing(absent)} of x_train; it has {listing(frame.columns)}.")
    if len(frame) == 0:
        raise InputError(f"{where} has no rows; give at least one.")
