"""How far a row is from a factual, as a table: the measures that need the features alone.

They are sums of steps, defined in `mcce.selection.distances`: L0, gower_sum, gower (paper, equation 3), l1_raw, l2_raw.
A factual outside the training range may be farther than 1 from a row in one feature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Floats
from mcce.exceptions import InputError
from mcce.selection import distances
from mcce.selection.distances import Distance, scales
from mcce.table import Data, Feature, Schema

__all__ = ["MEASURES", "Measure", "gower_distance", "measure_table", "scales"]

Measure = Callable[[Floats, Floats, Sequence[Feature]], npt.NDArray[Any]]


def _count_changes(rows: Floats, factuals: Floats, features: Sequence[Feature]) -> npt.NDArray[Any]:
    return distances.changes(features).sums(rows, factuals).astype(np.int64)


def _measure_by(make: Callable[[Sequence[Feature]], Distance]) -> Measure:
    return lambda rows, factuals, features: make(features).between(rows, factuals)


MEASURES: dict[str, Measure] = {
    "L0": _count_changes,
    "gower": _measure_by(distances.gower),
    "gower_sum": _measure_by(distances.gower_sum),
    "l1_raw": _measure_by(distances.l1_raw),
    "l2_raw": _measure_by(distances.l2_raw),
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
    return distances.gower(schema.features).between(np.broadcast_to(a, shape), np.broadcast_to(b, shape))


def measure_table(rows: Floats, factuals: Floats, features: Sequence[Feature], names: Sequence[str]) -> pd.DataFrame:
    """Return some measures of encoded rows against the factuals beside them, one column each."""
    columns: dict[str, Any] = {name: MEASURES[name](rows, factuals, features) for name in names}
    return pd.DataFrame(columns)
