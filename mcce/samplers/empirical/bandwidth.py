"""The bandwidth of the donors' weights by the corrected Akaike criterion (Hurvich, Simonoff and Tsai 1998).

With H the matrix of the weights of n rows for each other, each row summing to 1, and Y the responses:

    AICc(h) = log(|Y - H Y|^2 / n) + 1 + 2 (tr H + 1) / (n - tr H - 2)

1. The responses say how the target is distributed, not only where: an indicator for each level (a missing value is
   one), or for numbers of lying at or below each decile. (In shapr the response is the model's prediction, of which the
   mean is wanted there.)
2. The criterion is computed on 500 rows at most, drawn at random, for bandwidths from 0.01 in steps of a factor 1.4 up
   to 3, which is as good as none. The best one is taken, the larger one of equals. Of weighted rows, copies are drawn.
"""

from __future__ import annotations

import numpy as np

from mcce.arrays import Floats, Ints
from mcce.samplers.empirical import kernels
from mcce.samplers.empirical.distance import Scaling
from mcce.table.weights import quantiles

ROWS = 500
CANDIDATES = 0.01 * 1.4 ** np.arange(18)
_DECILES = np.arange(1, 10) / 10.0


def choose_bandwidth(
    points: Floats, scaling: Scaling, values: Floats, n_levels: int, rows: Ints, weights: Floats | None = None
) -> float:
    """Return the best bandwidth by some of the training rows (step 2)."""
    responses = _responses(values, n_levels, weights)[rows]
    distances = np.empty((rows.size, rows.size))
    kernels.squared_distances(np.ascontiguousarray(points[rows]), scaling.whole, scaling.adds, distances)
    scores = [aicc(np.exp(-distances / (2.0 * width**2)), responses) for width in CANDIDATES[::-1]]
    return float(CANDIDATES[::-1][int(np.argmin(scores))])


def aicc(weights: Floats, responses: Floats) -> float:
    """Return the criterion; infinite if the weights use up all rows."""
    n = weights.shape[0]
    hat = weights / weights.sum(axis=1, keepdims=True)
    trace = float(np.trace(hat))
    if trace >= n - 2:
        return np.inf
    left = float(((responses - hat @ responses) ** 2).sum()) / n
    fit = np.log(max(left, float(np.finfo(np.float64).tiny)))  # no noise at all has a logarithm too
    return float(fit + 1.0 + 2.0 * (trace + 1.0) / (n - trace - 2.0))


def _responses(values: Floats, n_levels: int, weights: Floats | None) -> Floats:
    """Return what says how the target is distributed (step 1)."""
    missing = np.isnan(values)
    if n_levels:
        columns = [values == level for level in range(n_levels)]
    else:
        known = None if weights is None else weights[~missing]
        cuts = np.unique(quantiles(values[~missing], _DECILES, known)) if not missing.all() else np.empty(0)
        columns = [values <= cut for cut in cuts]
    return np.column_stack([*columns, missing]).astype(np.float64)
