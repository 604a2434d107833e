"""Whether levels are drawn as often as they are seen.

1. If the conditional is right, the value of a row and its M draws are exchangeable. Given how often each level is among
   the M + 1 of them, the row's own is any of them with the same probability: q_k = (drawn k times + seen) / (M + 1) is
   the exact probability of level k, for any M.
2. So the sums over rows of 1{y = k} - q_k, level by level, have mean 0 and a known covariance. So has the sum of
   q_y - sum_k q_k^2: above 0 if the level seen is a likely one more often than the probabilities say (they are too
   even), below 0 if less often (too extreme).
3. Their quadratic form in the inverse covariance is chi-squared as n grows. Levels with an expected count below 5 are
   taken together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from mcce.arrays import Floats, Ints
from mcce.scoring import LevelCounts

LEAST = 5.0


@dataclass(frozen=True)
class Calibration:
    """What was seen beside what was drawn.

    Attributes
    ----------
    p : of the test; NaN if there are no two levels to compare.
    cells : (rows, cells), the probabilities q of the levels that are tested, rare ones together in the last.
    observed : the cell that each row has.
    columns : the column of `LevelCounts` that each cell is; -1 for rare ones together.
    z : of each cell, how much more often it is seen than drawn, in standard errors.
    seen, drawn : share of the rows, and of the draws, that each cell has.
    evenness : in standard errors, how much too even (above 0) or too extreme the probabilities are.
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
        """Seen or not minus probability, for each row and cell, and its variance."""
        is_seen = self.observed[:, None] == np.arange(self.cells.shape[1])
        return is_seen - self.cells, self.cells * (1.0 - self.cells)


def calibrate(levels: LevelCounts) -> Calibration:
    """Compare the levels seen with the levels drawn (steps 1 to 3)."""
    pooled = levels.counts + levels.seen
    q = pooled / pooled.sum(axis=1, keepdims=True)
    q, columns = _cells(q)
    place = {column: cell for cell, column in enumerate(columns)}
    observed = np.array([place.get(int(k), len(columns) - 1) for k in levels.observed], dtype=np.int64)
    drawn = levels.counts.sum(axis=0) / levels.counts.sum()
    shares = np.array([drawn[c] if c >= 0 else 1.0 - drawn[[d for d in columns if d >= 0]].sum() for c in columns])
    is_seen = observed[:, None] == np.arange(len(columns))
    residual = is_seen - q
    by_level = (q * (1.0 - q)).sum(axis=0)
    z = residual.sum(axis=0) / np.sqrt(np.where(by_level > 0.0, by_level, 1.0))
    squares = (q**2).sum(axis=1)
    likely = float((residual * q).sum())
    spread = float(((q**3).sum(axis=1) - squares**2).sum())
    evenness = likely / np.sqrt(spread) if spread > 1e-9 else 0.0
    p = _p_value(q, np.append(residual.sum(axis=0), likely), spread, squares)
    return Calibration(p, q, observed, columns, z, is_seen.mean(axis=0), shares, float(evenness))


def _cells(q: Floats) -> tuple[Floats, tuple[int, ...]]:
    """Return the probabilities of the levels that are frequent enough, the others taken together (step 3)."""
    expected = q.sum(axis=0)
    frequent = [k for k in range(q.shape[1]) if expected[k] >= LEAST]
    rare = [k for k in range(q.shape[1]) if 0.0 < expected[k] < LEAST]
    if not rare:
        return q[:, frequent], tuple(frequent)
    if expected[rare].sum() < LEAST and frequent:  # too few even together: with the rarest of the others
        rare.append(frequent.pop(int(np.argmin(expected[frequent]))))
    return np.column_stack([q[:, frequent], q[:, rare].sum(axis=1)]), (*frequent, -1)


def _p_value(q: Floats, sums: Floats, spread: float, squares: Floats) -> float:
    """Return the p-value of the quadratic form of the sums; NaN without anything that varies."""
    k = q.shape[1]
    covariance = np.empty((k + 1, k + 1))
    covariance[:k, :k] = np.diag(q.sum(axis=0)) - q.T @ q
    covariance[:k, k] = covariance[k, :k] = (q * q - q * squares[:, None]).sum(axis=0)
    covariance[k, k] = spread
    scale = np.sqrt(np.diag(covariance))
    varies = scale > 1e-6
    if not varies.any():
        return float("nan")
    correlation = covariance[np.ix_(varies, varies)] / np.outer(scale[varies], scale[varies])
    values, vectors = np.linalg.eigh(correlation)
    kept = values > 1e-8
    along = vectors[:, kept].T @ (sums[varies] / scale[varies])
    return float(scipy.stats.chi2.sf((along**2 / values[kept]).sum(), int(kept.sum())))
