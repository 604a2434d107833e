"""What a table must be before anything is learned from it or drawn for it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mcce.exceptions import InputError, did_you_mean, listing, spell, spell_all
from mcce.table.dtypes import holds_missing
from mcce.table.frames import is_other_frame, take_rows
from mcce.table.schema import Data, Table

LARGEST = 1e150  # beyond, squares overflow; a range below its inverse is lost when squared


def check_fixed(fixed: Sequence[Hashable], columns: list[Any]) -> list[Any]:
    """Return the fixed features in data order; unknown and repeated names are errors."""
    if isinstance(fixed, str) or not isinstance(fixed, Iterable):
        raise InputError(f"fixed is {fixed!r}; give a list of column names, for example ['age', 'sex'].")
    names = check_fixed_names(fixed, columns, "fixed", "X")
    return [name for name in columns if name in names]


def check_fixed_names(fixed: Iterable[Hashable], columns: Sequence[Hashable], role: str, where: str) -> list[Any]:
    """Return names of fixed features as a list of known, different ones, in the order given."""
    refuse_iterator(fixed, role)
    names = list(fixed)
    for name in names:
        if name not in columns:
            raise InputError(f"fixed feature {name!r} is not a column of {where}; {did_you_mean(name, columns)}")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(f"{role} names {listing(twice)} more than once; name each feature once.")
    return names


def check_magnitudes(table: Table, where: str) -> None:
    """Refuse numbers so large, or ranges so small, that squared distances leave the range of floats."""
    for j, feature in enumerate(table.features):
        if not feature.is_numeric:
            continue
        size = float(np.nanmax(np.abs(table.matrix[:, j]), initial=0.0))
        if size > LARGEST or 0.0 < feature.span < 1.0 / LARGEST:
            found = f"numbers of size {size:.3g}" if size > LARGEST else f"numbers in a range of {feature.span:.3g}"
            raise InputError(
                f"column {feature.name!r} of {where} holds {found}, whose squares are out of the range of floats; "
                "rescale it."
            )


def check_missing(table: Table, index: pd.Index[Any], where: str) -> None:
    """Refuse missing values in columns whose training dtype cannot hold any."""
    for j, feature in enumerate(table.features):
        missing = np.flatnonzero(np.isnan(table.matrix[:, j]))
        if missing.size and not holds_missing(feature.dtype):
            raise InputError(
                f"column {feature.name!r} of {where} has {missing.size} missing value(s), the first in row "
                f"{spell(index[missing[0]])}, which the training data's dtype {feature.dtype} cannot hold; fill them, "
                "or train on a dtype that can be missing (float64, Int64, boolean)."
            )


def check_row_names(index: pd.Index[Any], where: str, named: str) -> None:
    """Refuse an index that does not name each row of a table by a label of its own."""
    if not index.is_unique:
        twice = index[index.duplicated()].unique()
        raise InputError(
            f"the index of {where} holds {spell_all(twice)} more than once; it names the {named}. "
            f"Use {where}.reset_index(drop=True)."
        )
    if isinstance(index, pd.MultiIndex):
        raise InputError(
            f"the index of {where} has several levels; it names the {named}. Use {where}.reset_index(drop=True)."
        )


def rows_of(X: Data, rows: Any) -> Data:
    """Return some rows of a frame or array, by position."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    return take_rows(X, rows) if is_other_frame(X) else np.asarray(X[rows])


def refuse_iterator(names: Iterable[Any], role: str) -> None:
    """Refuse names that can be read only once: whatever reads them next would find none, and leave them out."""
    if iter(names) is iter(names):
        raise InputError(
            f"{role} is an iterator ({type(names).__name__}), which is empty once it has been read; "
            "give a list instead."
        )
