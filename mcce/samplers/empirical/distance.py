"""How far a row is from a training row, by what is given.

Numbers without missing values: the scaled Mahalanobis distance d^2 = (x - x')' S^-1 (x - x') / q, q the number of
columns and S their covariance in the training rows. Rows are scaled by S^(-1/2), so that d is a Euclidean distance;
directions in which the training rows do not vary do not count.

Otherwise, with levels or missing values among the givens: Gower's distance, the mean over the columns of
|x - x'| / range (numbers, and ordered levels by their codes), and of 1 for different unordered levels. A missing value
is at 1 from any value, at 0 from another missing one; a constant column does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcce.arrays import Floats
from mcce.soundness import FLOAT, check_array, check_finite, check_flag, require
from mcce.state import stateful
from mcce.table import Table
from mcce.table.weights import deviation_of, mean_of

_RANK = 1e-9  # eigenvalues of the correlation matrix below this count as zero


@stateful("empirical.Scaling")
@dataclass(frozen=True)
class Scaling:
    """How givens become points.

    Attributes
    ----------
    adds : whether the steps of the columns are added before they are squared (Gower) or after (Mahalanobis).
    centre : what is subtracted from each column.
    factor : what columns are multiplied by: one a column (Gower), or a matrix with one row each (Mahalanobis).
    whole : the step of any change of a column (Gower, unordered levels); 0 where the difference is the step.
    """

    adds: bool
    centre: Floats
    factor: Floats
    whole: Floats

    @classmethod
    def of(cls, given: Table, weights: Floats | None = None) -> Scaling:
        """Learn the scales from training rows; weights count as copies."""
        q = len(given.features)
        nothing = np.zeros(q)
        if all(feature.is_numeric for feature in given.features) and not np.isnan(given.matrix).any():
            if q == 0 or given.n_rows < 2 or (weights is not None and weights.sum() <= 1.0):
                return cls(False, nothing, np.zeros((q, 0)), np.zeros(0))
            factor = _whitening(given.matrix, weights) / np.sqrt(q)
            return cls(False, mean_of(given.matrix, weights), factor, np.zeros(factor.shape[1]))
        unordered = np.array([feature.kind == "categorical" for feature in given.features])
        spans = np.array([feature.span for feature in given.features])
        inverse = np.divide(1.0, spans, out=np.zeros(q), where=(spans > 0) & ~unordered)
        return cls(True, nothing, np.where(unordered, 1.0, inverse / q), np.where(unordered, 1.0 / q, 0.0))

    def check_state(self) -> None:
        """Refuse factors that are not of the same columns, and what is no step."""
        check_flag(self.adds, "adds")
        check_array(self.centre, "centre", FLOAT, None)
        q = self.centre.size
        check_array(self.factor, "factor", FLOAT, *((q,) if self.adds else (q, None)))
        check_array(self.whole, "whole", FLOAT, self.factor.shape[-1])
        for name in ("centre", "factor", "whole"):
            check_finite(getattr(self, name), name)
        require((self.whole >= 0.0).all(), "whole holds a negative number")

    def points(self, given: Table) -> Floats:
        """Return the scaled givens, a row each; the same for a row whatever rows stand beside it."""
        if self.adds:
            return np.ascontiguousarray(given.matrix * self.factor)
        points = np.zeros((given.n_rows, self.factor.shape[1]))
        for j in range(self.factor.shape[0]):  # a matrix product may round by the number of rows
            points += (given.matrix[:, j] - self.centre[j])[:, None] * self.factor[j]
        return points


def _whitening(matrix: Floats, weights: Floats | None) -> Floats:
    """Return a matrix whose product with centred rows has unit covariance, of full rank."""
    spread = deviation_of(matrix, weights, ddof=1)
    varies = spread > 0.0
    scale = np.divide(1.0, spread, out=np.zeros(spread.size), where=varies)
    centred = (matrix - mean_of(matrix, weights)) * scale
    counted, n = (centred, matrix.shape[0]) if weights is None else (weights[:, None] * centred, weights.sum())
    values, vectors = np.linalg.eigh(counted.T @ centred / (n - 1))
    kept = values > _RANK
    return np.asarray(scale[:, None] * vectors[:, kept] / np.sqrt(values[kept]))
