"""Tests of calibration: whether levels are drawn as often as they are seen, and whether PITs are uniform.

Levels:

1. If the conditional is right, the value of a row and its M draws are exchangeable. Given how often each level occurs
   among these M + 1 values, the observed value is each of them with equal probability: q_k = (number of draws of level
   k + 1{y = k}) / (M + 1) is the exact probability of level k, for any M.
2. So the sums over rows of 1{y = k} - q_k, level by level, have mean 0 and a known covariance. So has the sum of
   q_y - sum_k q_k^2: above 0 if likely levels are observed more often than the probabilities imply (they are too even),
   below 0 if less often (too extreme).
3. Their quadratic form in the inverse covariance is asymptotically chi-squared. Levels with an expected count below 5
   are pooled, unless they are observed at least 15 times.

PITs, by a smooth test with interpretable components, and a histogram with bands:

4. phi_1, ..., phi_4 are the Legendre polynomials, orthonormal on (0, 1); c_k = n^(-1/2) sum_i phi_k(u_i).
5. If the PITs are independent and uniform, c_1^2 + ... + c_4^2 is asymptotically chi-squared with 4 degrees of freedom
   (Neyman 1937). c_1 > 0 means that values tend to lie above the draws, c_2 > 0 that they lie in the tails of the draws
   too often; c_3 and c_4 show other differences of shape.
6. The counts of the bins of a histogram are binomial. Each bin has an interval of level 1 - 0.05 / bins, so the
   simultaneous coverage is at least 95 per cent (Bonferroni).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from mcce.base.arrays import Floats, Ints
from mcce.judging.scores import LevelCounts

N_COMPONENTS = 4
LOCATION, SPREAD = 0, 1  # components used in the search for regions
BAND = 0.95
FEW, MANY = 5, 20  # fewest and most bins of a histogram


def components(pit: Floats) -> Floats:
    """Return phi_1, ..., phi_4 of each PIT (step 4), one column each."""
    x = 2.0 * pit - 1.0
    found = np.polynomial.legendre.legvander(x, N_COMPONENTS)[:, 1:]
    return np.asarray(found * np.sqrt(2.0 * np.arange(1, N_COMPONENTS + 1) + 1.0))


def smooth_test(pit: Floats) -> tuple[Floats, float]:
    """Return c_1, ..., c_4 and the p-value of the smooth test (step 5)."""
    parts = components(pit).sum(axis=0) / np.sqrt(pit.size)
    return parts, float(scipy.stats.chi2.sf((parts**2).sum(), N_COMPONENTS))


def histogram(pit: Floats) -> tuple[Ints, tuple[int, int]]:
    """Return the counts of a histogram on (0, 1) with at least 20 rows per bin, and their band (step 6)."""
    n_bins = int(np.clip(pit.size // 20, FEW, MANY))
    counts = np.histogram(pit, n_bins, (0.0, 1.0))[0].astype(np.int64)
    tail = 0.5 * (1.0 - BAND) / n_bins
    ends = np.asarray(scipy.stats.binom.ppf([tail, 1.0 - tail], pit.size, 1.0 / n_bins))
    return counts, (int(ends[0]), int(ends[1]))


LEAST, MANY_SEEN = 5.0, 15


@dataclass(frozen=True)
class Calibration:
    """Observed levels compared with drawn levels.

    Attributes
    ----------
    p : p-value of the test; NaN with fewer than two cells.
    cells : (rows, cells), the probabilities q of the tested levels; the last cell pools rare levels.
    observed : the cell of each row.
    columns : the column of `LevelCounts` of each cell; -1 for pooled rare levels.
    z : by cell, how much more often it is observed than drawn, in standard errors.
    seen, drawn : by cell, its share of the rows and of the draws.
    evenness : how much too even (above 0) or too extreme (below 0) the probabilities are, given the shares of the
        levels, in standard errors.
    """

    p: float
    cells: Floats
    observed: Ints
    columns: tuple[int, ...]
    z: Floats
    seen: Floats
    drawn: Floats
    evenness: float

    @property
    def residuals(self) -> tuple[Floats, Floats]:
        """Indicator minus probability, for each row and cell, and its variance."""
        is_seen = self.observed[:, None] == np.arange(self.cells.shape[1])
        return is_seen - self.cells, self.cells * (1.0 - self.cells)


def calibrate(levels: LevelCounts) -> Calibration:
    """Compare observed levels with drawn levels (steps 1 to 3)."""
    pooled = levels.counts + levels.seen
    q = pooled / pooled.sum(axis=1, keepdims=True)
    q, columns = _cells(q, levels.seen.sum(axis=0))
    place = {column: cell for cell, column in enumerate(columns)}
    observed = np.array([place.get(int(k), len(columns) - 1) for k in levels.observed], dtype=np.int64)
    drawn = levels.counts.sum(axis=0) / levels.counts.sum()
    shares = np.array([drawn[c] if c >= 0 else 1.0 - drawn[[d for d in columns if d >= 0]].sum() for c in columns])
    is_seen = observed[:, None] == np.arange(len(columns))
    residual = is_seen - q
    by_level = (q * (1.0 - q)).sum(axis=0)
    z = residual.sum(axis=0) / np.sqrt(np.where(by_level > 0.0, by_level, 1.0))
    sums = np.append(residual.sum(axis=0), (residual * q).sum())
    p, evenness = _test(sums, _covariance(q))
    return Calibration(p, q, observed, columns, z, is_seen.mean(axis=0), shares, evenness)


def _cells(q: Floats, seen: Ints) -> tuple[Floats, tuple[int, ...]]:
    """Return the probabilities of the frequent levels, and of all others pooled (step 3)."""
    expected = q.sum(axis=0)
    is_frequent = (expected >= LEAST) | (seen >= MANY_SEEN)
    frequent = [k for k in range(q.shape[1]) if is_frequent[k]]
    rare = [k for k in range(q.shape[1]) if expected[k] > 0.0 and not is_frequent[k]]
    if not rare:
        return q[:, frequent], tuple(frequent)
    if expected[rare].sum() < LEAST and frequent:  # still too few: pool them with the rarest frequent level
        rare.append(frequent.pop(int(np.argmin(expected[frequent]))))
    return np.column_stack([q[:, frequent], q[:, rare].sum(axis=1)]), (*frequent, -1)


def _covariance(q: Floats) -> Floats:
    """Return the covariance of the sums of step 2; the last is the sum of q_y - sum_k q_k^2."""
    k, squares = q.shape[1], (q**2).sum(axis=1)
    found = np.empty((k + 1, k + 1))
    found[:k, :k] = np.diag(q.sum(axis=0)) - q.T @ q
    found[:k, k] = found[k, :k] = (q * q - q * squares[:, None]).sum(axis=0)
    found[k, k] = ((q**3).sum(axis=1) - squares**2).sum()
    return found


def _test(sums: Floats, covariance: Floats) -> tuple[float, float]:
    """Return the p-value (step 3), NaN without variation, and the last sum given the others, in standard errors."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    varies = scale > 1e-6
    if not varies.any():
        return float("nan"), 0.0
    z = sums[varies] / scale[varies]
    correlation = covariance[np.ix_(varies, varies)] / np.outer(scale[varies], scale[varies])
    form, rank = _form(z, correlation)
    p = float(scipy.stats.chi2.sf(form, rank))
    if not varies[-1]:
        return p, 0.0
    inverse = np.linalg.pinv(correlation[:-1, :-1], 1e-8, hermitian=True)
    rest = 1.0 - correlation[-1, :-1] @ inverse @ correlation[:-1, -1]
    added = z[-1] - correlation[-1, :-1] @ inverse @ z[:-1]
    return p, float(added / np.sqrt(rest)) if rest > 1e-6 else 0.0


def _form(z: Floats, correlation: Floats) -> tuple[float, int]:
    """Return z' C^- z and the rank of C."""
    values, vectors = np.linalg.eigh(correlation)
    kept = values > 1e-8
    along = vectors[:, kept].T @ z
    return float((along**2 / values[kept]).sum()), int(kept.sum())
