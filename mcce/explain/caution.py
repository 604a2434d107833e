"""A step away from the edge: how rows with equally few changes are compared.

The nearest valid and plausible row stands at the edge of the decision and at the edge of the data, where a refitted
model or a stricter judge says no. So among rows with as few changes the one with the least cost is taken,

    d + caution * (1.25 max(n - t, 0) + 0.5 t max(0, 1 - m / 0.25)),

where d is the Gower sum of its steps from the factual, n its mean distance to the five nearest real rows and t the
median of that over real rows (`mcce.plausibility.score`), and m the share of accepted training rows whose score is as
near to an end of the decision or nearer (`Margins`). All is in steps of d. With caution 0 the nearest row is taken; 1,
the default, and the numbers above were chosen on some of the rows of benchmarks/advice.py and tried on others.

An end of the decision that no training row is beyond is no edge: nobody has a probability above 1. Labels and functions
have no margin, and m does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Floats, Ints
from mcce.distances.measures import Distance, changed_columns
from mcce.explain.winners import Winners
from mcce.model.decisions import Answer, Decision
from mcce.plausibility.score import Plausibility, Scale
from mcce.rng import hash_rows
from mcce.storage.fields import check_number, require, stored
from mcce.storage.state import stateful

OF_NEARNESS, OF_MARGIN, ENOUGH = 1.25, 0.5, 0.25
ROUNDING = 1e-12  # of scores


@stateful("Margins")
@dataclass(frozen=True)
class Margins:
    """How far inside the decision scores are: its ends that matter, and the margins of accepted training rows."""

    low: float = stored(float, finite=False)
    high: float = stored(float, finite=False)
    accepted: Scale = stored(Scale)

    def check_state(self) -> None:
        """Refuse ends without an order, and rows whose weights have no sum."""
        require(self.low <= self.high, "low is above high")
        check_number(self.accepted.total, "accepted", 0.0)

    @classmethod
    def of(cls, decision: Decision, answer: Answer, weights: Floats | None = None) -> Margins | None:
        """Return the margins of training rows that were asked about; None if the decision is not about scores."""
        bounds = decision.bounds()
        if bounds is None or not answer.wanted.any():
            return None
        scores = np.asarray(answer.scores, dtype=np.float64)
        low = bounds[0] if (scores < bounds[0]).any() else -np.inf
        high = bounds[1] if (scores > bounds[1]).any() else np.inf
        if np.isinf(low) and np.isinf(high):
            return None
        inside = _inside(scores[answer.wanted], low, high)
        return cls(float(low), float(high), Scale.of(inside, None if weights is None else weights[answer.wanted]))

    def inside(self, scores: npt.NDArray[np.generic]) -> Floats:
        """Return how far inside the decision scores are; below 0 outside."""
        return _inside(np.asarray(scores, dtype=np.float64), self.low, self.high)

    def share(self, scores: npt.NDArray[np.generic]) -> Floats:
        """Return the share of accepted training rows that are as near to an end or nearer."""
        return self.accepted.share(self.inside(scores))


def _inside(scores: Floats, low: float, high: float) -> Floats:
    """Return how far scores are from the nearer end; an end at infinity is none, even for an infinite score."""
    above = scores - low if low > -np.inf else np.full(scores.shape, np.inf)
    return np.minimum(above, high - scores) if high < np.inf else above


@dataclass(frozen=True)
class Caution:
    """The trade-off of nearness, believability and margin; `strength` 0 is for the nearest row."""

    plausibility: Plausibility
    margins: Margins | None = None
    strength: float = 1.0

    def cost(self, steps: Floats, near: Floats, scores: npt.NDArray[np.generic]) -> Floats:
        """Return the costs of rows.

        Parameters
        ----------
        steps, near : Gower's sum to the factual, and the mean distance to the nearest real rows.
        scores : what the model says of them.
        """
        typical = self.plausibility.typical_distance
        cost = steps + self.strength * OF_NEARNESS * np.maximum(near - typical, 0.0)
        if self.margins is None:
            return cost
        lacking = np.maximum(0.0, 1.0 - self.margins.share(scores) / ENOUGH)
        return np.asarray(cost + self.strength * OF_MARGIN * typical * lacking)

    def farthest(self, steps: Floats, most: Floats) -> Floats:
        """Return how far from real rows those may be that cost less than `most`, at these steps from the factual."""
        left = (most - steps) * (1.0 + 1e-9) + 1e-9  # a rounding more, since what costs as much is found out later
        return self.plausibility.typical_distance + left / (self.strength * OF_NEARNESS)

    def hurts(self, scores: npt.NDArray[np.generic], without: npt.NDArray[np.generic]) -> Bools:
        """Return which changes make the decision worse: `without` them the scores are farther inside."""
        if self.margins is None:
            return np.zeros(scores.size, dtype=bool)
        return np.asarray(self.margins.inside(without) > self.margins.inside(scores) + ROUNDING)


def cheapest_of(caution: Caution, found: Winners, factuals: Floats, k: int, distance: Distance) -> Ints:
    """Return the places of the best `k` distinct rows of each factual: the fewest changes, then the least cost."""
    own = factuals[found.owner]
    n_changes, steps = changed_columns(found.rows, own).sum(axis=1), distance.sums(found.rows, own)
    scale = caution.plausibility
    near = scale.distance(found.rows, scale.fold_of(factuals)[found.owner], scale.origins(factuals, found.owner))
    keys = n_changes.astype(np.float64), caution.cost(steps, near, found.scores)
    return best_by(found.owner, found.rows, keys, k)


def best_by(owner: Ints, rows: Floats, keys: tuple[Floats, ...], k: int) -> Ints:
    """Return the places of the best `k` distinct rows of each factual, the first key first; ties go to the earlier."""
    order = np.lexsort((np.arange(owner.size), *keys[::-1], owner))
    _, first = np.unique(hash_rows(np.column_stack([owner[order].astype(np.float64), rows[order]])), return_index=True)
    order = order[np.sort(first)]
    nth = np.arange(order.size) - np.searchsorted(owner[order], owner[order])
    return np.asarray(order[nth < k])
