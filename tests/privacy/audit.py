"""An empirical audit: a lower bound on epsilon from many fits to two neighbouring tables.

1. Fit to each table many times, and take from each fit the statistic that separates the tables best.
2. With the first half choose a threshold, and the side of it.
3. With the second half, Clopper-Pearson bounds of the two probabilities give a lower bound on epsilon, as
   log((p - delta) / p').
"""

import numpy as np
from scipy import stats

LEVEL = 1e-3


def lower_bound(with_row, without, delta=0.0):
    """Return a lower bound on epsilon at 1 - LEVEL, from the statistics of fits with and without one row."""
    a, b = np.asarray(with_row, dtype=float), np.asarray(without, dtype=float)
    half = a.size // 2
    # an added row increases counts: above the threshold with the row, below it without
    tries = [(_bound(a[:half], b[:half], cut, delta), 1, cut) for cut in np.unique(a[:half])]
    tries += [(_bound(-b[:half], -a[:half], cut, delta), -1, cut) for cut in np.unique(-b[:half])]
    _, sign, cut = max(tries)
    x, y = (a, b) if sign > 0 else (-b, -a)
    return _bound(x[half:], y[half:], cut, delta)


def _bound(x, y, cut, delta):
    hits, others = int((x >= cut).sum()), int((y >= cut).sum())
    low = stats.beta.ppf(LEVEL / 2, hits, x.size - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - LEVEL / 2, others + 1, y.size - others) if others < y.size else 1.0
    return float(np.log((low - delta) / high)) if low > delta else 0.0
