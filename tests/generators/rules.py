"""Small rules between two columns, with bounds and without."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcce import Within


@dataclass(frozen=True)
class AtLeast:
    """The column `upper` is at least the column `lower` plus `gap`; of the factual, if `of_factual`."""

    upper: int
    lower: int
    gap: float = 0.0
    bounds: bool = True
    of_factual: bool = False

    @property
    def columns(self):
        return (self.upper,) if self.of_factual else (self.upper, self.lower)

    def holds(self, rows, factuals):
        return rows[:, self.upper] >= (factuals if self.of_factual else rows)[:, self.lower] + self.gap

    def within_for(self, column, rows, factuals):
        if not self.bounds:
            return None
        if column == self.upper:
            return Within(low=(factuals if self.of_factual else rows)[:, self.lower] + self.gap)
        return Within(high=rows[:, self.upper] - self.gap)

    def __str__(self):
        return f"column {self.upper} >= {'factual ' * self.of_factual}{self.lower} + {self.gap:g}"


@dataclass(frozen=True)
class Never:
    """A rule that no row satisfies."""

    columns: tuple[int, ...]

    def holds(self, rows, factuals):
        return np.zeros(len(rows), dtype=bool)

    def within_for(self, column, rows, factuals):
        return None

    def __str__(self):
        return "never"
