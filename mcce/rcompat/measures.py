"""The measures of mcceR, on raw scales: of its own candidates, and `l1_raw`, `l2_raw` for any candidates.

`L0`, `L1`, `L2` and `gower` (mcceR's, see `mcce.rcompat`) of every generated row, over the mutable columns. A changed
level counts one step in L1 and L2, an ordered one the difference of the positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce._utils import Floats
from mcce.table import Feature

MEASURES = ("validation", "L0", "L1", "L2", "gower")


def l1_raw(candidates: pd.DataFrame, factual: pd.Series[Any]) -> Floats:
    """Return mcceR's L1: the sum of absolute differences in the units of the columns.

    A measure for `measures=` of `mcce.MCCE.explain`. It depends on the units of the columns; "gower" does not.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.rcompat import l1_raw
    >>> people = pd.DataFrame({"age": [30, 40], "job": ["clerk", "pilot"]})
    >>> l1_raw(people, people.iloc[0]).tolist()
    [0.0, 11.0]
    """
    return _raw_steps(candidates, factual).sum(axis=1)


def l2_raw(candidates: pd.DataFrame, factual: pd.Series[Any]) -> Floats:
    """Return mcceR's L2: the root of the sum of squared differences in the units of the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.rcompat import l2_raw
    >>> people = pd.DataFrame({"age": [30, 33], "children": [0, 4]})
    >>> l2_raw(people, people.iloc[0]).tolist()
    [0.0, 5.0]
    """
    return np.sqrt((_raw_steps(candidates, factual) ** 2).sum(axis=1))


def _raw_steps(candidates: pd.DataFrame, factual: pd.Series[Any]) -> Floats:
    """Return the step of each cell; between a value and a missing one it is 1."""
    steps = np.zeros(candidates.shape)
    for j, name in enumerate(candidates.columns):
        column, value = candidates[name], factual[name]
        is_missing = column.isna().to_numpy(dtype=bool)
        if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
            column = column.cat.codes
            value = candidates[name].cat.categories.get_loc(value) if pd.notna(value) else value
        if pd.isna(value):
            steps[:, j] = ~is_missing
        elif pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
            steps[:, j] = np.abs(column.to_numpy(dtype=np.float64, na_value=np.nan) - float(value))
        else:
            steps[:, j] = (column.astype(object) != value).to_numpy(dtype=bool)
        steps[is_missing, j] = float(pd.notna(value))
    return steps


def measure(name: str, rows: Floats, factuals: Floats, features: Sequence[Feature]) -> Floats:
    """Return L0, L1, L2 or gower of encoded rows, K consecutive ones for each factual."""
    paired = (np.repeat(factuals[:, j], len(rows) // len(factuals)) for j in range(rows.shape[1]))
    if name == "L0":
        return np.asarray(sum((rows[:, j] != factual).astype(np.float64) for j, factual in enumerate(paired)))
    if name == "gower":
        return _gower(rows, list(paired), features)
    sides = np.zeros((2, len(rows)))  # as in mcceR, even and odd columns are summed separately
    for j, factual in enumerate(paired):
        by_steps = features[j].kind != "categorical"
        step = np.abs(factual - rows[:, j]) if by_steps else (factual != rows[:, j]).astype(np.float64)
        sides[j % 2] += step * step if name == "L2" else step
    total = sides[0] + sides[1]
    return np.sqrt(total) if name == "L2" else total


def _gower(rows: Floats, paired: Sequence[Floats], features: Sequence[Feature]) -> Floats:
    """Return mcceR's Gower: numbers divided by the range of the candidates, and 1 for each *equal* factor level.

    Logicals and text are ignored.
    """
    numbers, equal = np.zeros(len(rows)), np.zeros(len(rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        for j, factual in enumerate(paired):
            values, dtype = rows[:, j], features[j].dtype
            if features[j].is_numeric and not pd.api.types.is_bool_dtype(dtype):
                numbers += np.abs(factual - values) / (values.max() - values.min())
            elif isinstance(dtype, pd.CategoricalDtype):
                equal += values == factual
    return numbers + equal


def ranks(measured: npt.NDArray[Any], K: int) -> npt.NDArray[np.int64]:
    """Return the rank of each row among those of its factual, from 1; `measured` has a row of keys for each measure."""
    by_factual = measured[::-1].reshape(len(measured), -1, K)
    order = np.lexsort(by_factual, axis=-1)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(1, K + 1)[None, :], axis=-1)
    return rank.ravel()
