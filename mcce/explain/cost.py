"""The cost of a sparse counterfactual among those with equally many changes: steps + margin.

    cost = sum_j s_j + max(0, 1 - m / 0.25)

s_j    step of a number or an ordered level: the mean of the difference of mid-ranks among training rows and of the
       difference over the tail-robust range, the geometric mean of the range and of the distance between the 5 and the
       95 per cent points. A range alone makes steps short in long tails; ranks alone make steps in the upper tail
       short. Any other change is a whole step.
m      share of the accepted training rows whose margin (how far inside the decision) is at most that of the row. The
       nearest valid row lies at the edge of the decision, where a refitted model rejects it; a quarter of the accepted
       rows is enough distance. Decisions without a margin have no such term.

A step is monotone in the value, so both parts of it are one difference on a transformed scale (`Scale`). The weights
are 1, because both terms are shares. Nearness to real rows has no term, because the floor bounds it already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcce._utils import Floats
from mcce.distances import changed
from mcce.table import Table

ENOUGH = 0.25  # share of accepted training rows nearer to the edge of the decision, beyond which margin does not count
MIDDLE = 0.05, 0.95


@dataclass(frozen=True)
class Scale:
    """Monotone transformations of columns such that a step is a difference.

    `knots[j]` and `heights[j]` are the distinct training values of a number and what they become; `slopes` continue
    the tail-robust part beyond them. Columns of unordered levels have None, and any change is a whole step.
    """

    knots: tuple[Floats | None, ...]
    heights: tuple[Floats | None, ...]
    slopes: Floats

    @classmethod
    def fit(cls, table: Table) -> Scale:
        """Learn the scale of each column from training rows."""
        knots: list[Floats | None] = []
        heights: list[Floats | None] = []
        slopes = np.zeros(len(table.features))
        for j, feature in enumerate(table.features):
            column = table.matrix[:, j]
            values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
            if feature.kind == "categorical" or values.size < 2:
                knots.append(None)
                heights.append(None)
                continue
            ranks = (np.cumsum(counts) - counts / 2) / counts.sum()
            low, high = np.quantile(column[~np.isnan(column)], MIDDLE)
            spread = np.sqrt((values[-1] - values[0]) * max(high - low, 0.0)) or values[-1] - values[0]
            slopes[j] = 0.5 / spread
            knots.append(values)
            heights.append(0.5 * ranks + slopes[j] * values)
        return cls(tuple(knots), tuple(heights), slopes)

    @property
    def factors(self) -> Floats:
        """What differences are multiplied by: 1, or 0 where any change is a whole step."""
        return np.array([0.0 if knots is None else 1.0 for knots in self.knots])

    def transform(self, rows: Floats) -> Floats:
        """Return rows on the scale of steps, column by column."""
        scaled = np.array(rows, order="F")
        for j, (knots, heights) in enumerate(zip(self.knots, self.heights)):
            if knots is None or heights is None:
                continue
            value = rows[:, j]
            beyond = value - np.clip(value, knots[0], knots[-1])
            scaled[:, j] = np.interp(value, knots, heights) + self.slopes[j] * beyond
        return scaled

    def steps(self, rows: Floats, factuals: Floats) -> Floats:
        """Return the sum of steps from each factual to the row at the same place."""
        steps = np.abs(self.transform(rows) - self.transform(factuals))
        steps[:, self.factors == 0.0] = 1.0
        steps[np.isnan(steps)] = 1.0
        return np.asarray(np.where(changed(rows, factuals), steps, 0.0).sum(axis=1))


@dataclass(frozen=True)
class Cost:
    """The cost of rows; `margins` are those of the accepted training rows, in order; empty without margins."""

    scale: Scale
    margins: Floats

    @classmethod
    def fit(cls, table: Table, margins: Floats) -> Cost:
        """Learn the cost from training rows, and the margins of those that are accepted."""
        return cls(Scale.fit(table), np.sort(margins[~np.isnan(margins)]))

    def of(self, rows: Floats, factuals: Floats, margin: Floats) -> Floats:
        """Return the cost of rows with these margins, each paired with its factual."""
        cost = self.scale.steps(rows, factuals)
        if self.margins.size and not np.isnan(margin).any():
            share = np.searchsorted(self.margins, margin, side="right") / self.margins.size
            cost += np.maximum(0.0, 1.0 - share / ENOUGH)
        return cost
