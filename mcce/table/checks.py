"""Checks of a table before it is used, and warnings of columns that are not informative.

A warning is given for identifiers (nearly all values differ: text, or consecutive or rising whole numbers), and for
levels of mutable features that a single training row has. Tables of fewer than 200 rows are not checked.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats
from mcce.base.checks import check
from mcce.exceptions import InputError, did_you_mean, listing, spell, spell_all, warn
from mcce.table.dtypes import column_of, holds_missing, is_dated
from mcce.table.feature import Feature
from mcce.table.frames import is_other_frame, take_rows
from mcce.table.schema import Data, Table
from mcce.wording import Either, Parameter, PythonOnly, Value, call


def find_labels(index: pd.Index[Any], labels: pd.Index[Any]) -> npt.NDArray[np.intp]:
    """Return the position of each label in a unique index, -1 for unknown labels.

    Intervals are compared as objects, because pandas does not search an index of overlapping ones. None and NaN are the
    same label, because a MultiIndex turns both into NaN.
    """
    places = np.array(_plain(index).get_indexer_for(_plain(labels)))
    missing = np.flatnonzero(index.isna())
    if missing.size == 1:
        places[labels.isna()] = missing[0]
    return places


def _plain(index: pd.Index[Any]) -> pd.Index[Any]:
    return index.astype(object) if isinstance(index, pd.IntervalIndex) else index


FEWEST_ROWS = 200
DISTINCT = 0.95  # least number of distinct values over the number of values
PEEK = 200  # rows that are enough to decide for most columns
SHOWN = 5


def warn_of_columns(table: Table, fixed: Sequence[Hashable]) -> None:
    """Warn of identifiers and of levels seen once in a training table."""
    if table.n_rows < FEWEST_ROWS:
        return
    names = {f.name: what for j, f in enumerate(table.features) if (what := identifies(f, table.matrix[:, j]))}
    if names:
        found = ", ".join(f"{name!r} ({what})" for name, what in list(names.items())[:SHOWN])
        first = next(iter(names))
        warn(
            Parameter("X"),
            f" has columns that look like identifiers: {found}{_more(len(names) - SHOWN)}. Changing "
            "an identifier is not actionable, and nothing can be learned from it. Leave it out of ",
            Parameter("X"),
            " and of the features of the model",
            PythonOnly(f"; as the index, X.set_index({first!r}), it names the rows"),
            ".",
        )
    rare = [
        (f, levels)
        for j, f in enumerate(table.features)
        if not f.is_numeric and f.name not in (*fixed, *names) and (levels := _seen_once(f, table.matrix[:, j]))
    ]
    if rare:
        found = "; ".join(f"{f.name!r}: {spell_all(levels, SHOWN)}" for f, levels in rare)
        warn(
            Parameter("X"),
            f" has levels that only one row has, {found}. Nothing can be learned about them, and a "
            "counterfactual with such a level points at one person. Merge them with others, or forbid "
            "them, as in ",
            call("mcce.allow", rare[0][0].name, never=[rare[0][1][0]]),
            ".",
        )


def identifies(feature: Feature, column: Floats) -> str | None:
    """Return why a column looks like an identifier, None if it does not."""
    values = column[~np.isnan(column)]
    if values.size < FEWEST_ROWS or is_dated(feature.dtype) or (feature.is_numeric and feature.decimals != 0):
        return None
    if np.unique(values[:PEEK]).size < DISTINCT * min(PEEK, values.size):
        return None
    n_distinct = np.unique(values).size
    if n_distinct < DISTINCT * values.size:
        return None
    if not feature.is_numeric:
        return f"{n_distinct} levels in {column.size} rows"
    one_after_the_other = feature.span < 2 * n_distinct
    rising = bool((np.diff(values) > 0).all() or (np.diff(values) < 0).all())
    runs = "one after the other" if one_after_the_other else "in order"
    return f"{n_distinct} whole numbers in {column.size} rows, {runs}" if one_after_the_other or rising else None


def _seen_once(feature: Feature, column: Floats) -> list[Any]:
    assert feature.levels is not None
    counts = np.bincount(column[~np.isnan(column)].astype(np.intp), minlength=feature.n_levels)
    return [feature.levels[code] for code in np.flatnonzero(counts == 1).tolist()]


def _more(n: int) -> str:
    return f" and {n} more" if n > 0 else ""


LARGEST = 1e150  # beyond, squares overflow; a range below its inverse is lost when squared


def check_fixed(fixed: Sequence[Hashable], columns: list[Any]) -> list[Any]:
    """Return the fixed features in data order; unknown and repeated names are errors."""
    must_be = ("give a list of column names, for example ", Value(["age", "sex"]), ".")
    check(isinstance(fixed, Iterable) and not isinstance(fixed, str), fixed, "fixed", *must_be)
    names = check_fixed_names(fixed, columns, "fixed", "X")
    return [name for name in columns if name in names]


def check_fixed_names(fixed: Iterable[Hashable], columns: Sequence[Hashable], role: str, where: str) -> list[Any]:
    """Return the names of fixed features, in the order given; unknown and repeated names are errors."""
    refuse_iterator(fixed, role)
    names = list(fixed)
    for name in names:
        if name not in columns:
            raise InputError(
                f"fixed feature {name!r} is not a column of ", Parameter(where), f"; {did_you_mean(name, columns)}"
            )
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(Parameter(role), f" names {listing(twice)} more than once; name each feature once.")
    return names


def check_magnitudes(table: Table, where: str) -> None:
    """Raise on numbers so large, or ranges so small, that squared distances leave the range of floats."""
    for j, feature in enumerate(table.features):
        if not feature.is_numeric:
            continue
        size = float(np.nanmax(np.abs(table.matrix[:, j]), initial=0.0))
        if size > LARGEST or 0.0 < feature.span < 1.0 / LARGEST:
            found = f"numbers of size {size:.3g}" if size > LARGEST else f"numbers in a range of {feature.span:.3g}"
            raise InputError(
                *column_of(feature.name, where),
                f" holds {found}, whose squares are out of the range of floats; rescale it.",
            )


def check_missing(table: Table, index: pd.Index[Any], where: str) -> None:
    """Raise on missing values in columns whose training dtype cannot hold them."""
    is_missing = np.isnan(table.matrix)
    for j in np.flatnonzero(is_missing.any(axis=0)).tolist():
        feature, missing = table.features[j], np.flatnonzero(is_missing[:, j])
        if not holds_missing(feature.dtype):
            raise InputError(
                *column_of(feature.name, where),
                f" has {missing.size} missing value(s), the first in row {spell(index[missing[0]])}, "
                "which the training data's ",
                Either(PythonOnly(f"dtype {feature.dtype}"), "type"),
                " cannot hold; fill them, or train on a type that can be missing",
                PythonOnly(" (float64, Int64, boolean)"),
                ".",
            )


def check_row_names(index: pd.Index[Any], where: str, named: str) -> None:
    """Raise if an index does not have a unique label for each row."""
    if not index.is_unique:
        problem = f"holds {spell_all(index[index.duplicated()].unique())} more than once"
    elif isinstance(index, pd.MultiIndex):
        problem = "has several levels"
    elif (missing := index[index.isna()]).size > 1:  # None beside NaN
        problem = f"holds {spell_all(missing)}, which are one missing label"
    else:
        return
    raise InputError(
        "the index of ",
        Parameter(where),
        f" {problem}; it names the {named}. ",
        Either(("Use ", PythonOnly(f"{where}.reset_index(drop=True)"), "."), "Give each row its own name."),
    )


def rows_of(X: Data, rows: Any) -> Data:
    """Return some rows of a frame or array, by position."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    return take_rows(X, rows) if is_other_frame(X) else np.asarray(X[rows])


def refuse_iterator(names: Iterable[Any], role: str) -> None:
    """Raise on an iterator of names, which is empty when it is read again."""
    if iter(names) is iter(names):
        raise InputError(
            Parameter(role),
            f" is an iterator ({type(names).__name__}), which is empty once it has been read; give a list instead.",
        )
