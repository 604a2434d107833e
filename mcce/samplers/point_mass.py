"""Which numbers of a column have point mass, and Silverman's bandwidth for those that have none.

A number has point mass if at least one per cent of the training rows hold it: fewer are too few to estimate a
probability in a leaf. All numbers have it if the column has no more than 100 distinct ones, and nine rows in ten share
theirs with another. Every sampler's density counts these and no others, and the copula's latent variable has an
interval for them instead of a point.

Smoothing a draw hides a donor, so there only what very many rows share (`DRAWN_AS_IT_IS`: no gain, a top code) is
spared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.arrays import Bools, Floats
from mcce.table.weights import count_distinct

DRAWN_AS_IT_IS = 0.05
COUNTED = 0.01
DISCRETE_SHARE = 0.9
DISCRETE_VALUES = 100


def find_point_masses(known: Floats, weights: Floats | None = None) -> tuple[Floats, npt.NDArray[Any], Bools]:
    """Return the distinct numbers of a column in order, how often each occurs, and whether it has point mass.

    With weights, a number occurs as often as they sum up to.
    """
    distinct, times = count_distinct(known, weights)
    total = known.size if weights is None else float(weights.sum())
    repeated = times[times > 1].sum() >= DISCRETE_SHARE * total
    if repeated and distinct.size <= DISCRETE_VALUES:
        return distinct, times, np.full(distinct.size, True)
    return distinct, times, times >= max(2.0, COUNTED * total)


def silverman(sd: float, quartile_range: float, n: float) -> float:
    """Return 0.9 min(sd, IQR / 1.34) n^(-1/5), without the one that is zero; 0 if both are."""
    spread = quartile_range / 1.34
    if spread <= 0.0 or 0.0 < sd < spread:
        spread = sd
    return float(0.9 * spread * float(n) ** -0.2)
