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
Weights of rows count as copies: the associations are those of the repeated rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats
from mcce.base.progress import working
from mcce.exceptions import InputError, did_you_mean, listing
from mcce.table import Table
from mcce.table.checks import refuse_iterator
from mcce.wording import Parameter, Value

VisitSequence = str | Sequence[Hashable]

ORDERS = ("data", "correlation", "reversed")


def make_visit_sequence(
    visit_sequence: VisitSequence, table: Table, fixed: Sequence[Hashable], progress: bool | None = False
) -> tuple[list[Any], pd.DataFrame | None]:
    """Return the mutable features in visiting order and, for correlation order, the associations behind it."""
    mutable = [name for name in table.names if name not in fixed]
    if isinstance(visit_sequence, str):
        if visit_sequence == "data":
            return mutable, None
        if visit_sequence == "reversed":
            return mutable[::-1], None
        if visit_sequence == "correlation":
            with working("ordering the features", progress):
                associations = association_matrix(table)
            places = _greedy(associations.to_numpy(), *([*map(table.names.index, part)] for part in (fixed, mutable)))
            return [table.names[j] for j in places], associations
    if isinstance(visit_sequence, str) or not isinstance(visit_sequence, Iterable):
        raise InputError(
            Parameter("visit_sequence"),
            " is ",
            Value(visit_sequence),
            f"; allowed: {listing(ORDERS)}, or a list of the mutable features.",
        )
    if isinstance(visit_sequence, (set, frozenset)):
        raise InputError(
            Parameter("visit_sequence"), f" is a {type(visit_sequence).__name__}, which has no order; give a list."
        )
    refuse_iterator(visit_sequence, "visit_sequence")
    order = list(visit_sequence)
    for name in order:
        if name in fixed:
            raise InputError(
                Parameter("visit_sequence"), f" names {name!r}, which is fixed; it lists mutable features only."
            )
        if name not in mutable:
            raise InputError(
                Parameter("visit_sequence"),
                f" names {name!r}, which is not a column of ",
                Parameter("X"),
                f"; {did_you_mean(name, mutable)}",
            )
    repeated = [name for name in dict.fromkeys(order) if order.count(name) > 1]
    absent = [name for name in mutable if name not in order]
    if repeated or absent:
        raise InputError(
            Parameter("visit_sequence"),
            f" must name each mutable feature once; more than once: {listing(repeated)}; left out: {listing(absent)}.",
        )
    return order, None


def association_matrix(table: Table) -> pd.DataFrame:
    """Return the association of every pair of columns, in [0, 1]."""
    p, weights = len(table.features), table.weights
    values = np.eye(p)
    codes = [_levels(table, j) if table.features[j].kind == "categorical" else None for j in range(p)]
    # ranks of a column without missing values are the same in every pair: 300 columns have 45,000 pairs
    whole = [codes[j] is None and not np.isnan(table.matrix[:, j]).any() for j in range(p)]
    ranks = [_centred_ranks(table.matrix[:, j], weights) if whole[j] else None for j in range(p)]
    for i in range(p):
        for j in range(i + 1, p):
            a, b = ranks[i], ranks[j]
            if a is not None and b is not None:
                values[i, j] = values[j, i] = _correlation(a, b, weights)
            else:
                pair = (table.matrix[:, i], codes[i], table.matrix[:, j], codes[j])
                values[i, j] = values[j, i] = _association(*pair, weights)
    return pd.DataFrame(values, index=table.names, columns=table.names)


def _levels(table: Table, j: int) -> npt.NDArray[np.intp]:
    """Return level codes with missing as one more level, renumbered to those present."""
    column = table.matrix[:, j]
    codes = np.where(np.isnan(column), table.features[j].n_levels, column).astype(np.intp)
    renumbered: npt.NDArray[np.intp] = np.unique(codes, return_inverse=True)[1]
    return renumbered


def _association(x: Floats, x_codes: Any, y: Floats, y_codes: Any, weights: Floats | None) -> float:
    if x_codes is not None and y_codes is not None:
        return _cramers_v(x_codes, y_codes, weights)
    if x_codes is not None:
        return _correlation_ratio(x_codes, y, weights)
    if y_codes is not None:
        return _correlation_ratio(y_codes, x, weights)
    known = ~(np.isnan(x) | np.isnan(y))
    if known.sum() < 2:
        return 0.0
    weights = None if weights is None else weights[known]
    return _correlation(_centred_ranks(x[known], weights), _centred_ranks(y[known], weights), weights)


def _correlation(a: Floats, b: Floats, weights: Floats | None) -> float:
    """Return the absolute correlation of two columns with mean 0; 0 if one is constant."""
    left, right = (a, b) if weights is None else (a * weights, b * weights)
    scale = np.sqrt((left @ a) * (right @ b))
    return min(1.0, abs(float(left @ b / scale))) if scale > 0 else 0.0


def _centred_ranks(values: Floats, weights: Floats | None) -> Floats:
    """Return average ranks minus their mean."""
    if weights is not None:
        _, place = np.unique(values, return_inverse=True)
        count = np.bincount(place.ravel(), weights)
        ranks = (np.cumsum(count) - (count - 1.0) / 2.0)[place.ravel()]
        return np.asarray(ranks - weights @ ranks / weights.sum())
    ranks = np.asarray(pd.Series(values).rank(), dtype=np.float64)
    return np.asarray(ranks - ranks.mean())


def _cramers_v(a: npt.NDArray[np.intp], b: npt.NDArray[np.intp], weights: Floats | None) -> float:
    rows, columns = int(a.max()) + 1, int(b.max()) + 1
    if min(rows, columns) < 2:
        return 0.0
    n = a.size if weights is None else float(weights.sum())
    table = np.bincount(a * columns + b, weights, minlength=rows * columns).reshape(rows, columns)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi2 = ((table - expected) ** 2 / expected).sum() / n
    most = min(rows - 1 - (rows - 1) ** 2 / (n - 1), columns - 1 - (columns - 1) ** 2 / (n - 1))
    if most <= 0:  # one level for each row is associated with every column
        return 0.0
    corrected = max(0.0, phi2 - (rows - 1) * (columns - 1) / (n - 1))
    return float(min(1.0, np.sqrt(corrected / most)))


def _correlation_ratio(codes: npt.NDArray[np.intp], y: Floats, weights: Floats | None) -> float:
    known = ~np.isnan(y)
    if known.sum() < 2:
        return 0.0
    weights = None if weights is None else weights[known]
    ranks = _centred_ranks(y[known], weights)
    n = ranks.size if weights is None else float(weights.sum())
    counted = ranks if weights is None else weights * ranks
    total = counted @ ranks
    if total == 0:
        return 0.0
    present, place = np.unique(codes[known], return_inverse=True)
    if present.size == 1 or present.size >= n:
        return 0.0
    eta2 = (np.bincount(place, weights=counted) ** 2 / np.bincount(place, weights)).sum() / total
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
