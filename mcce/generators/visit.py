"""The order in which the chain visits the mutable features.

"data"         their order in the training table (the paper's choice).
"reversed"     the same, backwards.
a list         the order given; it names each mutable feature once.
"correlation"  most associated first (the paper's proposal in its outlook), greedily:
               1. Start from the fixed features; without any, from the two features with the strongest association.
               2. Visit next the feature with the strongest association to any feature fixed or visited so far.
               3. On ties the earlier column goes first.

Associations lie in [0, 1] for any pair of kinds: the absolute Spearman correlation for two numeric or ordered columns,
Cramer's V for two categorical ones, and the correlation ratio (of the ranks) for one of each. The latter two grow with
the number of levels (20 levels of noise score 0.25 at n = 300), so both are corrected for chance, and are 0 if they are
not above chance: V as in Bergsma (2013, "A bias-correction for Cramer's V and Tschuprow's T", Journal of the Korean
Statistical Society 42), the ratio by Kelley's epsilon (1935), epsilon^2 = 1 - (1 - eta^2)(n - 1) / (n - k)
with k levels. A missing value counts as a separate level; rows with a missing number are left out of its pairs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce._utils import Floats
from mcce.exceptions import InputError, did_you_mean, listing
from mcce.table import Table

VisitSequence = str | Sequence[Hashable]

ORDERS = ("data", "correlation", "reversed")


def make_visit_sequence(visit_sequence: VisitSequence, table: Table, fixed: Sequence[Hashable]) -> list[Any]:
    """Return the mutable features in visiting order."""
    mutable = [name for name in table.names if name not in fixed]
    if isinstance(visit_sequence, str) and visit_sequence == "data":
        return mutable
    if isinstance(visit_sequence, str) and visit_sequence == "reversed":
        return mutable[::-1]
    if isinstance(visit_sequence, str) and visit_sequence == "correlation":
        associations = association_matrix(table).to_numpy()
        places = _greedy(associations, *([*map(table.names.index, part)] for part in (fixed, mutable)))
        return [table.names[j] for j in places]
    if isinstance(visit_sequence, (str, set, frozenset)) or not isinstance(visit_sequence, Iterable):
        raise InputError(
            f"visit_sequence is {visit_sequence!r}; allowed: {listing(ORDERS)}, or a list of the mutable features."
        )
    order = list(visit_sequence)
    for name in order:
        if name in fixed:
            raise InputError(f"visit_sequence names {name!r}, which is fixed; it lists mutable features only.")
        if name not in mutable:
            raise InputError(
                f"visit_sequence names {name!r}, which is not a column of X; {did_you_mean(name, mutable)}"
            )
    repeated = [name for name in dict.fromkeys(order) if order.count(name) > 1]
    absent = [name for name in mutable if name not in order]
    if repeated:
        raise InputError(f"visit_sequence names {listing(repeated)} more than once; name each mutable feature once.")
    if absent:
        raise InputError(f"visit_sequence leaves out {listing(absent)}; name each mutable feature once.")
    return order


def association_matrix(table: Table) -> pd.DataFrame:
    """Return the association of every pair of columns, in [0, 1]."""
    p = len(table.features)
    values = np.eye(p)
    codes = [_levels(table, j) if table.features[j].kind == "categorical" else None for j in range(p)]
    # ranks of a column without missing values are the same in every pair: 300 columns have 45,000 pairs
    whole = [codes[j] is None and not np.isnan(table.matrix[:, j]).any() for j in range(p)]
    ranks = [_centred_ranks(table.matrix[:, j]) if whole[j] else None for j in range(p)]
    for i in range(p):
        for j in range(i + 1, p):
            a, b = ranks[i], ranks[j]
            if a is not None and b is not None:
                values[i, j] = values[j, i] = _correlation(a, b)
            else:
                values[i, j] = values[j, i] = _association(table.matrix[:, i], codes[i], table.matrix[:, j], codes[j])
    return pd.DataFrame(values, index=table.names, columns=table.names)


def _levels(table: Table, j: int) -> npt.NDArray[np.intp]:
    """Return level codes with missing as one more level, renumbered to those present."""
    column = table.matrix[:, j]
    codes = np.where(np.isnan(column), table.features[j].n_levels, column).astype(np.intp)
    renumbered: npt.NDArray[np.intp] = np.unique(codes, return_inverse=True)[1]
    return renumbered


def _association(x: Floats, x_codes: Any, y: Floats, y_codes: Any) -> float:
    if x_codes is not None and y_codes is not None:
        return _cramers_v(x_codes, y_codes)
    if x_codes is not None:
        return _correlation_ratio(x_codes, y)
    if y_codes is not None:
        return _correlation_ratio(y_codes, x)
    is_known = ~(np.isnan(x) | np.isnan(y))
    if is_known.sum() < 2:
        return 0.0
    return _correlation(_centred_ranks(x[is_known]), _centred_ranks(y[is_known]))


def _correlation(a: Floats, b: Floats) -> float:
    """Return the absolute correlation of two columns with mean 0; 0 if one is constant."""
    scale = np.sqrt((a @ a) * (b @ b))
    return min(1.0, abs(float(a @ b / scale))) if scale > 0 else 0.0


def _centred_ranks(values: Floats) -> Floats:
    """Return average ranks minus their mean."""
    ranks = np.asarray(pd.Series(values).rank(), dtype=np.float64)
    return np.asarray(ranks - ranks.mean())


def _cramers_v(a: npt.NDArray[np.intp], b: npt.NDArray[np.intp]) -> float:
    rows, columns, n = int(a.max()) + 1, int(b.max()) + 1, a.size
    if min(rows, columns) < 2:
        return 0.0
    table = np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi2 = ((table - expected) ** 2 / expected).sum() / n
    most = min(rows - 1 - (rows - 1) ** 2 / (n - 1), columns - 1 - (columns - 1) ** 2 / (n - 1))
    if most <= 0:  # one level for each row is associated with every column
        return 0.0
    corrected = max(0.0, phi2 - (rows - 1) * (columns - 1) / (n - 1))
    return float(min(1.0, np.sqrt(corrected / most)))


def _correlation_ratio(codes: npt.NDArray[np.intp], y: Floats) -> float:
    is_known = ~np.isnan(y)
    if is_known.sum() < 2:
        return 0.0
    ranks, n = _centred_ranks(y[is_known]), int(is_known.sum())
    total = ranks @ ranks
    if total == 0:
        return 0.0
    present, place = np.unique(codes[is_known], return_inverse=True)
    if present.size == 1 or present.size >= n:
        return 0.0
    eta2 = (np.bincount(place, weights=ranks) ** 2 / np.bincount(place)).sum() / total
    epsilon2 = 1.0 - (1.0 - eta2) * (n - 1) / (n - present.size)
    return float(np.sqrt(np.clip(epsilon2, 0.0, 1.0)))


def _greedy(associations: Floats, fixed: list[int], mutable: list[int]) -> list[int]:
    """Return the places of the mutable features in visiting order."""
    order: list[int] = []
    waiting = list(mutable)
    if not fixed and len(waiting) > 1:
        among = associations.copy()
        np.fill_diagonal(among, -1.0)
        order = [int(np.unravel_index(int(among.argmax()), among.shape)[0])]
        waiting.remove(order[0])
    while waiting:
        nearest = associations[np.ix_(waiting, fixed + order)].max(axis=1, initial=0.0)
        order.append(waiting.pop(int(nearest.argmax())))
    return order
