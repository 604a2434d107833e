"""Evidence for an order ``a <= b`` of two columns with a few exceptions.

Two correlated columns of different location look similar: a systolic pressure is rarely below another measurement.
An order is distinguished from correlation by the number of exceptions, which is compared:

1. with independent columns: at most a fifth of the exceptions expected under random permutations, of which there are
   at least 5 % of the rows, also without the rows in which both columns have their smallest or both their largest
   value;
2. at the border: the density of the gap ``b - a`` drops at 0. The number of rows just below 0 is at most half of the
   extrapolation from the two intervals of the same width above 0 (log-linear, with the curvature of a normal density),
   in the unit of the columns (chance at most .001) and relative to the size of the numbers (at most .05). The rows
   excluded in 1 do not count;
3. with dependent columns: at most half of the exceptions under a Gaussian copula with the same margins and the same
   rank correlation.

The chance of the order is that of 3, or that of both borders if it is less.

The chance that a sum of independent indicators with mean m is x or less is at most exp(-(m - x + x log(x / m)))
(Chernoff). The bound also holds for permuted columns, whose indicators are negatively associated (Joag-Dev and
Proschan, 1983, Negative association of random variables). Borders relative to size need rows with small gaps: an order
whose gaps are nearly all as large as the numbers themselves is not found.
"""

from __future__ import annotations

import numpy as np

from mcce.base.arrays import Floats

BY_CHANCE = 0.05  # least expected share of exceptions under random permutations
OF_CHANCE, OF_CORRELATED, OF_DENSITY = 0.2, 0.5, 0.5  # largest ratio of observed to expected exceptions
BORDERS = (0.001, 0.05)  # chance of a border in the unit of the columns, and relative to their size
BORDER_WIDTH = 0.1  # share of the spread of the gaps


def log_chance_of_soft_order(a: Floats, b: Floats) -> float:
    """Return the logarithm of a bound on the chance of so few exceptions of a <= b; infinite with too many."""
    n = a.size
    broken = int((a > b).sum())
    unrelated = n * share_above(a, b)
    inner = share_above(*inner_rows(a, b))
    if not 0 < broken <= OF_CHANCE * unrelated or min(unrelated, n * inner) < BY_CHANCE * n:
        return np.inf
    border = _log_chance_of_border(a, b)
    expected = min(unrelated, _broken_if_correlated(a, b))
    if border == np.inf or broken > OF_CORRELATED * expected:
        return border
    return min(border, log_chance_of_few(broken, expected))


def log_chance_of_few(count: int, expected: float) -> float:
    """Return the logarithm of Chernoff's bound on the chance of so few events, given the expected number."""
    if count >= expected:
        return 0.0
    return float(count - expected - (count * np.log(count / expected) if count else 0.0))


def share_above(a: Floats, b: Floats) -> float:
    """Return the share of all pairs of rows in which a of the one is above b of the other."""
    a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    return float(np.searchsorted(np.sort(b), a, side="left").mean() / b.size) if a.size and b.size else 0.0


def inner_rows(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return two columns without the rows in which both have their smallest or both their largest value."""
    inner = ((a > a.min()) | (b > b.min())) & ((a < a.max()) | (b < b.max()))
    return a[inner], b[inner]


def _broken_if_correlated(a: Floats, b: Floats) -> float:
    """Return the expected number of exceptions of a <= b under a Gaussian copula with the same rank correlation."""
    from scipy.special import ndtr, ndtri
    from scipy.stats import rankdata

    ranks = rankdata(a), rankdata(b)
    rho = 2.0 * np.sin(np.pi / 6.0 * np.corrcoef(*ranks)[0, 1])
    below = ndtri(np.searchsorted(np.sort(b), a, side="left") / a.size)  # normal score of b at each a
    given = (below - rho * ndtri((ranks[0] - 0.5) / a.size)) / np.sqrt(max(1.0 - rho**2, 1e-6))
    return float(ndtr(given).sum())


def _log_chance_of_border(a: Floats, b: Floats) -> float:
    """Return the logarithm of the chance that the density of the gaps seems to drop at 0; infinite if it does not."""
    a, b = inner_rows(a, b)
    gap = b - a
    if not gap.any():
        return np.inf
    step = float(np.abs(gap[gap != 0.0]).min())
    found = -np.inf
    for unit, most in zip((np.ones(gap.size), np.maximum(np.abs(a), np.abs(b))), BORDERS):
        unit = np.where(unit > 0.0, unit, 1.0)
        low, high = np.quantile(gap / unit, [0.25, 0.75])
        spread = unit * ((high - low) / 1.349 or np.std(gap / unit))
        width = np.maximum(np.ceil(BORDER_WIDTH * spread / step - 1e-9), 1.0) * step
        place = np.floor(gap / width)
        before, first, second = (int((place == k).sum()) for k in (-1, 0, 1))
        near = np.exp(-((width / spread) ** 2))[np.abs(place) <= 1]
        expected = float(near.mean()) * min(first, first**2 / max(second, 1)) if first else 0.0
        chance = log_chance_of_few(before, expected)
        if before > OF_DENSITY * expected or chance > np.log(most):
            return np.inf
        found = max(found, chance)
    return found
