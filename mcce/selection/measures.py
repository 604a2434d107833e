"""How far a row is from a factual.

L0         number of features changed; a feature is unchanged only if it is exactly equal.
gower_sum  sum over features of |d - x| / R for numbers (R: range in the training data), the difference of ranks over
           (levels - 1) for ordered levels, and 1 for different unordered levels: what the paper's tables call L1.
gower      gower_sum over the number of features (paper, equation 3).
l1_raw     sum of |d - x| over numbers and level codes of ordered columns, plus 1 for each changed unordered level.
l2_raw     square root of the sum of their squares.

A missing value against a value counts 1 (as a whole step, also in the raw measures), against a missing value 0. A
changed value of a column that is constant in the training data counts 1. A factual outside the training range may be
farther than 1 from a row in one feature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.exceptions import InputError
from mcce.table import Data, Feature, Floats, Schema

Measure = Callable[[Floats, Floats, Sequence[Feature]], Floats]


def scales(features: Sequence[Feature]) -> Floats:
    """Return 1 / range for numeric and ordered columns; 0 where any change counts 1."""
    smallest = np.finfo(np.float64).tiny  # of a range below, the inverse is infinite
    return np.array([1.0 / f.span if f.kind != "categorical" and f.span >= smallest else 0.0 for f in features])


def _differs(rows: Floats, factuals: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray((rows != factuals) & ~(np.isnan(rows) & np.isnan(factuals)))


def _steps(rows: Floats, factuals: Floats, scale: Floats) -> Floats:
    """Distance feature by feature; a scale of 0 counts any change as 1."""
    differs = _differs(rows, factuals)
    distance = np.abs(rows - factuals) * scale
    return np.where(differs & ((scale == 0) | np.isnan(distance)), 1.0, np.where(differs, distance, 0.0))


def _count_changes(rows: Floats, factuals: Floats, features: Sequence[Feature]) -> Floats:
    return np.asarray(_differs(rows, factuals).sum(axis=1))


def _gower_sum(rows: Floats, factuals: Floats, features: Sequence[Feature]) -> Floats:
    total = np.zeros(rows.shape[0])
    for j, scale in enumerate(scales(features)):
        total += _steps(rows[:, j], factuals[:, j], np.asarray(scale))
    return total


def _gower(rows: Floats, factuals: Floats, features: Sequence[Feature]) -> Floats:
    return _gower_sum(rows, factuals, features) / len(features)


def _raw_steps(rows: Floats, factuals: Floats, features: Sequence[Feature]) -> Floats:
    return _steps(rows, factuals, np.array([0.0 if f.kind == "categorical" else 1.0 for f in features]))


def _l1_raw(rows: Floats, factuals: Floats, features: Sequence[Feature]) -> Floats:
    return np.asarray(_raw_steps(rows, factuals, features).sum(axis=1))


def _l2_raw(rows: Floats, factuals: Floats, features: Sequence[Feature]) -> Floats:
    return np.asarray(np.sqrt((_raw_steps(rows, factuals, features) ** 2).sum(axis=1)))


MEASURES: dict[str, Measure] = {
    "L0": _count_changes,
    "gower": _gower,
    "gower_sum": _gower_sum,
    "l1_raw": _l1_raw,
    "l2_raw": _l2_raw,
}


def gower_distance(X: Data, Y: Data, *, training: Data | Schema) -> npt.NDArray[np.float64]:
    """Return the Gower distance of each row of `X` to the row of `Y` at the same place.

    Parameters
    ----------
    X, Y : tables with the training columns and equally many rows; a single row is compared with all of the other.
    training : DataFrame, array or Schema
        Gives the kinds and the ranges.

    Examples
    --------
    >>> import pandas as pd, mcce
    >>> people = pd.DataFrame({"age": [20, 60, 40], "job": ["clerk", "pilot", "pilot"]})
    >>> mcce.gower_distance(people, people.iloc[[1]], training=people)
    array([1.  , 0.  , 0.25])
    """
    schema = training if isinstance(training, Schema) else Schema.from_data(training, where="training")
    a, b = schema.encode(X, "X").matrix, schema.encode(Y, "Y").matrix
    if 1 not in (a.shape[0], b.shape[0]) and a.shape[0] != b.shape[0]:
        raise InputError(f"X has {a.shape[0]} rows and Y {b.shape[0]}; give equally many, or one row on one side.")
    n = max(a.shape[0], b.shape[0]) if min(a.shape[0], b.shape[0]) else 0
    shape = (n, len(schema))
    return _gower(np.broadcast_to(a, shape), np.broadcast_to(b, shape), schema.features)


def measure_table(rows: Floats, factuals: Floats, features: Sequence[Feature], names: Sequence[str]) -> pd.DataFrame:
    """Return some measures of encoded rows against the factuals beside them, one column each."""
    columns: dict[str, Any] = {name: MEASURES[name](rows, factuals, features) for name in names}
    return pd.DataFrame(columns)
