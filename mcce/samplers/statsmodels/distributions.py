"""Predictive distributions of numbers, one for each row: draws inside bounds, masses and densities.

`RowDistribution` needs a vectorised distribution function, its inverse and a log density: those of frozen scipy
distributions, or of the three classes here, which scipy lacks or inverts slowly.

1. Numbers inside [low, high] are drawn by inverting the distribution function from the nearer tail, which is accurate
   for bounds far out in the tails.
2. Counts have point mass, so the lower bound is included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from mcce.base.arrays import Bools, Floats
from mcce.samplers.base import IMPOSSIBLE

_TINY = 2.0**-54  # a uniform number may be 0, whose quantile may be infinite
_MOST_STEPS = 1_000_000


@dataclass(frozen=True)
class RowDistribution:
    """The distribution of each row's number.

    Attributes
    ----------
    distribution : frozen distribution with one entry per row.
    is_count : whether the numbers are counts.
    """

    distribution: Any
    is_count: bool = False

    def draw(self, uniform: Floats, low: Floats | None = None, high: Floats | None = None) -> Floats:
        """Return a number inside the bounds of each row (step 1); NaN if there is none."""
        uniform = np.maximum(uniform, _TINY)
        if low is None or high is None:
            return np.asarray(self.distribution.ppf(uniform), dtype=np.float64)
        low, high, below = self._inside(low, high)
        upper = below > 0.5
        first, last = self._tails(low, high, upper)
        mass = np.abs(last - first)
        level = first + uniform * (last - first)
        drawn = np.where(upper, self.distribution.isf(level), self.distribution.ppf(level))
        at_point = (low == high) & np.isfinite(self.log_density(low))
        drawn = np.where(at_point, low, np.clip(drawn, low, np.maximum(low, high)))
        return np.where((low <= high) & ((mass > 0.0) | at_point) & np.isfinite(drawn), drawn, np.nan)

    def mass(self, low: Floats, high: Floats) -> Floats:
        """Return the probability of [low, high] in each row."""
        low, high, below = self._inside(low, high)
        first, last = self._tails(low, high, below > 0.5)
        return np.where(low <= high, np.abs(last - first), 0.0)

    def log_density(self, values: Floats) -> Floats:
        """Return the log density of each row's number, or the log probability of a count."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.is_count:
                found = np.asarray(self.distribution.logpmf(np.rint(values)), dtype=np.float64)
                return np.where(np.rint(values) == values, found, -np.inf)
            return np.asarray(self.distribution.logpdf(values), dtype=np.float64)

    def supports(self, values: Floats) -> Bools:
        """Return whether values at least as extreme have a probability above `IMPOSSIBLE`."""
        near = np.minimum(self.distribution.cdf(values), self.distribution.sf(values - float(self.is_count)))
        return np.asarray((near > IMPOSSIBLE) & np.isfinite(self.log_density(values)))

    def _inside(self, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the bounds, rounded inwards for counts, and the probability below the lower one."""
        if self.is_count:
            low, high = np.ceil(low), np.floor(high)
        return low, high, self.distribution.cdf(self._before(low))

    def _tails(self, low: Floats, high: Floats, upper: Bools) -> tuple[Floats, Floats]:
        """Return the survival function at both bounds if `upper`, else the distribution function."""
        before = self._before(low)
        first = np.where(upper, self.distribution.sf(before), self.distribution.cdf(before))
        return first, np.where(upper, self.distribution.sf(high), self.distribution.cdf(high))

    def _before(self, low: Floats) -> Floats:
        return low - 1.0 if self.is_count else low


@dataclass(frozen=True)
class ZeroInflated:
    """A mixture of 0, with probability `zero`, and the distribution `counts`."""

    counts: Any
    zero: Floats

    def cdf(self, x: Floats) -> Floats:
        return np.where(x >= 0.0, self.zero + (1.0 - self.zero) * self.counts.cdf(x), 0.0)

    def sf(self, x: Floats) -> Floats:
        return np.where(x >= 0.0, (1.0 - self.zero) * self.counts.sf(x), 1.0)

    def ppf(self, q: Floats) -> Floats:
        left = np.clip((q - self.zero) / np.maximum(1.0 - self.zero, 1e-300), 0.0, 1.0)
        return np.where(left > 0.0, self.counts.ppf(left), 0.0)

    def isf(self, q: Floats) -> Floats:
        part = q / np.maximum(1.0 - self.zero, 1e-300)
        return np.where(part < 1.0, np.maximum(self.counts.isf(np.minimum(part, 1.0)), 0.0), 0.0)

    def logpmf(self, x: Floats) -> Floats:
        some = np.log1p(-self.zero) + self.counts.logpmf(x)
        return np.asarray(np.where(x == 0.0, np.logaddexp(np.log(self.zero), some), some))


@dataclass(frozen=True)
class GeneralizedPoisson:
    """The generalised Poisson distribution of statsmodels (Joe and Zhu 2005), whose scipy sums are slow.

    log P(x) = log mu + (x - 1) log(mu + (a - 1) x) - x log a - log x! - (mu + (a - 1) x) / a, a = 1 + alpha mu^(p - 1)
    """

    mu: Floats
    alpha: float
    p: int

    def logpmf(self, x: Floats) -> Floats:
        a = np.maximum(1.0 + self.alpha * self.mu ** (self.p - 1.0), 5e-324)
        b = np.maximum(self.mu + (a - 1.0) * x, 5e-324)
        found = np.log(self.mu) + (x - 1.0) * np.log(b) - x * np.log(a) - scipy.special.gammaln(x + 1.0) - b / a
        return np.where(x >= 0.0, found, -np.inf)

    def cdf(self, x: Floats) -> Floats:
        last = np.floor(np.minimum(x, self._end()))
        below = np.zeros(self.mu.size)
        for k in range(int(max(last.max(initial=-1.0), -1.0)) + 1):
            below += np.where(k <= last, np.exp(self.logpmf(np.full(self.mu.size, float(k)))), 0.0)
        return np.where(x == np.inf, 1.0, np.minimum(below, 1.0))

    def sf(self, x: Floats) -> Floats:
        return np.maximum(1.0 - self.cdf(x), 0.0)

    def ppf(self, q: Floats) -> Floats:
        """Return quantiles: count up until the sum of the probabilities reaches the level."""
        found, below, end = np.zeros(self.mu.size), np.zeros(self.mu.size), self._end()
        for k in range(int(end.max(initial=0.0)) + 1):
            below = below + np.exp(self.logpmf(np.full(self.mu.size, float(k))))
            waiting = (below < q) & (k < end)
            if not waiting.any():
                break
            found = np.where(waiting, k + 1.0, found)
        return found

    def isf(self, q: Floats) -> Floats:
        return self.ppf(1.0 - q)

    def _end(self) -> Floats:
        """Return a number beyond which the probabilities of a row are negligible."""
        sd = np.sqrt(self.mu) * np.abs(1.0 + self.alpha * self.mu ** (self.p - 1.0))
        return np.minimum(np.ceil(self.mu + 40.0 * sd + 40.0), _MOST_STEPS)


@dataclass(frozen=True)
class QuantileGrid:
    """A distribution with given quantiles, linear between them, and exponential tails.

    Quantiles of linear models may cross. The predictions of a row are sorted, which brings them closer to the true
    quantiles (Chernozhukov, Fernandez-Val and Galichon 2010), at least `gap` apart.

    Attributes
    ----------
    levels : ascending levels of the quantiles.
    knots : (rows, levels) sorted predictions.
    tails : mean excess of the lower and of the upper tail.
    """

    levels: Floats
    knots: Floats
    tails: Floats

    @classmethod
    def arrange(cls, predicted: Floats, levels: Floats, tails: Floats, gap: float) -> QuantileGrid:
        """Sort the predictions of each row, at least `gap` apart."""
        steps = np.arange(levels.size) * gap
        knots = np.maximum.accumulate(np.sort(predicted, axis=1) - steps, axis=1) + steps
        return cls(levels, knots, tails)

    def cdf(self, x: Floats) -> Floats:
        x, place, part = self._find(x)
        inner = self.levels[place] + part * (self.levels[place + 1] - self.levels[place])
        below = self.levels[0] * np.exp(np.minimum(x - self.knots[:, 0], 0.0) / self.tails[0])
        above = 1.0 - (1.0 - self.levels[-1]) * np.exp(-np.maximum(x - self.knots[:, -1], 0.0) / self.tails[1])
        return np.asarray(np.where(x < self.knots[:, 0], below, np.where(x > self.knots[:, -1], above, inner)))

    def sf(self, x: Floats) -> Floats:
        tail = (1.0 - self.levels[-1]) * np.exp(-np.maximum(x - self.knots[:, -1], 0.0) / self.tails[1])
        return np.where(x > self.knots[:, -1], tail, 1.0 - self.cdf(x))

    def ppf(self, q: Floats) -> Floats:
        rows, place = np.arange(q.size), np.clip(np.searchsorted(self.levels, q) - 1, 0, self.levels.size - 2)
        part = (q - self.levels[place]) / (self.levels[place + 1] - self.levels[place])
        left, right = self.knots[rows, place], self.knots[rows, place + 1]
        with np.errstate(divide="ignore"):
            below = self.knots[:, 0] + self.tails[0] * np.log(np.minimum(q / self.levels[0], 1.0))
            above = self.knots[:, -1] - self.tails[1] * np.log(np.minimum((1.0 - q) / (1.0 - self.levels[-1]), 1.0))
        inner = left + part * (right - left)
        return np.where(q < self.levels[0], below, np.where(q > self.levels[-1], above, inner))

    def isf(self, q: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            above = self.knots[:, -1] - self.tails[1] * np.log(np.minimum(q / (1.0 - self.levels[-1]), 1.0))
        return np.where(q < 1.0 - self.levels[-1], above, self.ppf(1.0 - q))

    def logpdf(self, x: Floats) -> Floats:
        rows, (x, place, _) = np.arange(x.size), self._find(x)
        width = self.knots[rows, place + 1] - self.knots[rows, place]
        inner = np.log((self.levels[place + 1] - self.levels[place]) / width)
        below = np.log(self.levels[0] / self.tails[0]) + (x - self.knots[:, 0]) / self.tails[0]
        above = np.log((1.0 - self.levels[-1]) / self.tails[1]) - (x - self.knots[:, -1]) / self.tails[1]
        return np.asarray(np.where(x < self.knots[:, 0], below, np.where(x > self.knots[:, -1], above, inner)))

    def _find(self, x: Floats) -> tuple[Floats, Any, Floats]:
        """Return the values, the interval between two knots of each, and the relative position in it."""
        rows = np.arange(x.size)
        place = np.clip((self.knots <= x[:, None]).sum(axis=1) - 1, 0, self.levels.size - 2)
        left, right = self.knots[rows, place], self.knots[rows, place + 1]
        with np.errstate(invalid="ignore"):
            return x, place, np.clip((x - left) / (right - left), 0.0, 1.0)
