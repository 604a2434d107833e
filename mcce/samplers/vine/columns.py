"""Columns of a vine: margins as those of the copula, levels without an order as indicators.

1. A number, or an ordered level, stands for what its share of the training rows covers, from F(v-) to F(v). If no
   value of the column has point mass, it is a point in the middle. A number between two training values covers as much
   as one training row does.
2. Unordered levels are an indicator each, but for the most frequent one: 0 or 1, ordered so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcce.arrays import Floats
from mcce.samplers.copula.margins import Margin, by_frequency
from mcce.soundness import check_count_of, check_type, require
from mcce.state import stateful
from mcce.table import Column, Feature, Table


@stateful("vine.VineColumn")
@dataclass(frozen=True)
class VineColumn:
    """One variable of a vine: column `source` of the givens, or whether that has the level `level` (-1: it itself)."""

    source: int
    level: int
    margin: Margin

    def check_state(self) -> None:
        """Refuse what is no variable."""
        check_count_of(self.source, "source", 0, 2**31)
        check_count_of(self.level, "level", -1, 2**31)
        check_type(self.margin, "margin", Margin)
        require(self.margin.ordered, "margin is of a column without order")

    def check_column(self, given: Sequence[Feature]) -> None:
        """Refuse a variable that is none of these columns."""
        require(self.source < len(given), f"source is {self.source}, and there are {len(given)} columns")
        unordered = given[self.source].kind == "categorical"
        require(unordered == (self.level >= 0), "level is of a column with an order, or of none")

    @property
    def is_discrete(self) -> bool:
        """Whether a value of it has point mass."""
        return bool(self.margin.atoms.any())

    def cover(self, matrix: Floats) -> tuple[Floats, Floats]:
        """Return the shares below and up to the value of each row."""
        values = matrix[:, self.source]
        return cover(self.margin, values if self.level < 0 else (values == self.level).astype(np.float64))


def cover(margin: Margin, values: Floats) -> tuple[Floats, Floats]:
    """Return the shares below and up to each value (step 1)."""
    after = np.searchsorted(margin.values, values)
    found = margin.position(values) >= 0
    below, upto = margin.shares[after], margin.shares[np.minimum(after + found, margin.values.size)]
    half = min(0.5 / margin.count, 0.5)
    if not margin.atoms.any():
        middle = np.clip((below + upto) / 2, half, 1.0 - half)
        return middle, middle
    middle = np.clip(below, half, 1.0 - half)
    return np.where(found, below, middle - half), np.where(found, upto, middle + half)


def read_variables(given: Table, weights: Floats | None = None) -> list[VineColumn]:
    """Return the variables of complete givens; constant ones are none, and weights count as copies."""
    found = []
    total = None if weights is None else float(weights.sum())
    for j, feature in enumerate(given.features):
        values = given.matrix[:, j]
        if feature.kind != "categorical":
            margin = Margin.from_column(Column(feature, values, weights))
            found += [VineColumn(j, -1, margin)] if margin.n_latents else []
            continue
        levels, counts = by_frequency(values, weights)
        for level, count in zip(levels[1:], counts[1:]):
            shares = np.array([0.0, 1.0 - count / (values.size if total is None else total), 1.0])
            indicator = Margin(np.array([0.0, 1.0]), shares, np.array([True, True]), True, values.size, total)
            found.append(VineColumn(j, int(level), indicator))
    return found
