"""Numbers from predicted quantiles that become the nearest training value.

A number between two training values becomes the nearer one: each training value has a *cell*, from the middle between
it and the one before to the middle between it and the next. So prices stay multiples of 500 and counts whole, a value
that many rows share keeps its weight, and a draw is an observed value as with the paper's trees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcce.arrays import Bools, Floats, Ints
from mcce.samplers.quantiles import PredictedQuantiles
from mcce.samplers.support import IMPOSSIBLE, local_spacing
from mcce.soundness import FLOAT, check_array, check_number, check_rising, require
from mcce.state import stateful
from mcce.table.weights import sorted_with_weights

_ABOVE = 1e-6  # of the gap: an edge lies a hair above the middle, where no prediction stands


@stateful("boosting.Cells")
@dataclass(frozen=True)
class Cells:
    """The distinct training values in order, the edges of their cells, and the local spacing of all training values."""

    values: Floats
    edges: Floats
    spacing: float

    @classmethod
    def of(cls, training: Floats, weights: Floats | None = None) -> Cells:
        """Read the training values; none is missing."""
        values = np.unique(training)
        inner = values[:-1] + (0.5 + _ABOVE) * np.diff(values)
        spacing = local_spacing(*sorted_with_weights(training, weights))
        return cls(values, np.concatenate([[-np.inf], inner, [np.inf]]), spacing)

    def check_state(self) -> None:
        """Refuse values in no order, and edges that are not between them."""
        check_array(self.values, "values", FLOAT, None)
        check_rising(self.values, "values")
        require(self.values.size > 0, "values are none")
        check_array(self.edges, "edges", FLOAT, self.values.size + 1)
        ends = self.edges[[0, -1]]
        require(ends[0] == -np.inf and ends[1] == np.inf, "edges does not begin and end at infinity")
        inner = self.edges[1:-1]
        require((inner >= self.values[:-1]).all() and (inner <= self.values[1:]).all(), "edges are not between values")
        check_number(self.spacing, "spacing", 0.0)

    def draw(self, quantiles: PredictedQuantiles, uniform: Floats, low: Floats, high: Floats) -> Floats:
        """Return a training value in [low, high] for each row; NaN where none can be drawn."""
        first, last = self._between(low, high)
        possible = first <= last
        first, last = np.where(possible, first, 0), np.where(possible, last, self.values.size - 1)
        drawn = quantiles.draw(uniform, self.edges[first], self.edges[last + 1])
        place = np.clip(np.searchsorted(self.edges[1:-1], drawn), first, last)
        return np.where(possible & ~np.isnan(drawn), self.values[place], np.nan)

    def mass(self, quantiles: PredictedQuantiles, low: Floats, high: Floats) -> Floats:
        """Return the probability of the training values in [low, high], by row."""
        first, last = self._between(low, high)
        possible = first <= last
        first, last = np.where(possible, first, 0), np.where(possible, last, 0)
        return np.where(possible, quantiles.mass(self.edges[first], self.edges[last + 1]), 0.0)

    def supports(self, quantiles: PredictedQuantiles, values: Floats) -> Bools:
        """Return whether a training value within the local spacing of each number can be drawn."""
        inside = (values >= self.values[0]) & (values <= self.values[-1])
        return np.asarray(inside & (self.mass(quantiles, values - self.spacing, values + self.spacing) > IMPOSSIBLE))

    def _between(self, low: Floats, high: Floats) -> tuple[Ints, Ints]:
        """Return the places of the first and the last training value in [low, high]."""
        first = np.searchsorted(self.values, low)
        return first, np.searchsorted(self.values, high, side="right") - 1
