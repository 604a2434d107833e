"""What draws from a conditional say of the value that was seen, row by row.

For a row with the value y and M draws x_1, ..., x_M:

1. CRPS, for numbers and codes of ordered levels, in the fair form that is unbiased for any M (Ferro 2014):
   mean_i d(x_i, y) - 1/2 mean_(i < j) d(x_i, x_j), with d(a, b) = |a - b|. A missing value is as far from every number
   as the ends of the column are from each other; the score is proper, because a quarter of it would do.
2. Spread: mean_(i < j) d(x_i, x_j), how far two draws are apart; of levels, the share of pairs of draws that differ.
3. Randomised PIT: (number below y + U (1 + number equal to y)) / (M + 1), U uniform; missing is below every number. If
   the conditional is right then y and the draws are exchangeable, and the PIT is uniform exactly, for any M, with point
   masses, and independent of the givens.
4. Brier score, of levels, missing one of them, again in the fair form:
   sum_k (p_k - 1{y = k})^2 - sum_k p_k (1 - p_k) / (M - 1), with p_k the share of the draws that are k.
"""

from __future__ import annotations

import numpy as np

from mcce.arrays import Bools, Floats, Ints


def score_numbers(draws: Floats, values: Floats, far: float, uniform: Floats) -> tuple[Floats, Floats, Floats]:
    """Return CRPS, spread and PIT of each row (steps 1 to 3); missing values are `far` from numbers."""
    n_draws = draws.shape[1]
    no_value: Bools = np.isnan(values)
    at = np.where(no_value, 0.0, values)[:, None]
    missing = np.isnan(draws).sum(axis=1)
    known = n_draws - missing
    away = np.sort(draws - at, axis=1)  # missing ones come last
    below = np.where(no_value, 0, missing + (away < 0.0).sum(axis=1))
    equal = np.where(no_value, missing, (away == 0.0).sum(axis=1))
    pit = (below + uniform * (equal + 1)) / (n_draws + 1)
    away = np.where(np.isnan(away), 0.0, away)
    place = 2.0 * np.arange(1, n_draws + 1) - 1.0
    lowest = away[:, :1]  # sums of differences: of large numbers little would be left
    beyond = np.where(place < 2.0 * known[:, None], away - lowest, 0.0)
    apart = (beyond * (place - known[:, None])).sum(axis=1) + missing * known * far
    spread = apart / (0.5 * n_draws * (n_draws - 1))
    distance = np.where(no_value, known * far, np.abs(away).sum(axis=1) + missing * far) / n_draws
    return distance - 0.5 * spread, spread, pit


def mean_distance(values: Floats, far: float) -> float:
    """Return how far two values are apart on average: of one row's draws, its spread."""
    return float(score_numbers(values[None, :], np.zeros(1), far, np.zeros(1))[1][0])


def score_levels(counts: Ints, observed: Ints) -> tuple[Floats, Floats]:
    """Return Brier score and spread of each row (steps 4 and 2) from how often each level was drawn."""
    n_draws = counts.sum(axis=1)
    shares = counts / n_draws[:, None]
    differ = (shares * (1.0 - shares)).sum(axis=1) / (n_draws - 1)
    seen = shares[np.arange(observed.size), observed]
    return (shares**2).sum(axis=1) - 2.0 * seen + 1.0 - differ, differ * n_draws
