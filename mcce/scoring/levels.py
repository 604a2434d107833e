"""How often each level of a column was drawn, and which was seen; of a column of numbers, those with point mass.

1. Levels are those of the feature, and missing, the last.
2. Of numbers, what has point mass is a level: missing, and each number that a twentieth of the draws have, or a tenth
   of the values seen; all other numbers are one more level together. The draws that this is read from are not counted
   afterwards, so that to be chosen does not make a number more frequent than it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mcce.arrays import Bools, Floats, Ints
from mcce.samplers.point_mass import DRAWN_AS_IT_IS
from mcce.table import Feature

SEEN = 0.1


@dataclass(frozen=True)
class LevelCounts:
    """How often each level was drawn for each row.

    Attributes
    ----------
    levels : the encoded values that are counted, NaN for missing, the last.
    with_rest : whether one more column counts all other values; so of numbers.
    counts : (rows, levels), the same number of draws in each row.
    observed : the column of the level that each row has.
    """

    levels: Floats
    with_rest: bool
    counts: Ints
    observed: Ints

    @property
    def probabilities(self) -> Floats:
        """Share of each row's draws that have each level."""
        return np.asarray(self.counts / self.counts.sum(axis=1, keepdims=True))

    @classmethod
    def concatenate(cls, parts: Sequence[LevelCounts]) -> LevelCounts:
        """Return the counts of all rows; numbers that are not counted in every part go to the rest."""
        shared = [level for level in parts[0].levels if all(level in part.levels for part in parts[1:])]
        levels = np.append(np.array(shared, dtype=np.float64), np.nan)  # NaN equals nothing: it is not among them
        with_rest = parts[0].with_rest
        counts, observed = [], []
        for part in parts:
            place = np.append(place_of(part.levels, levels), levels.size)[: part.counts.shape[1]]
            moved = np.zeros((len(part.counts), levels.size + int(with_rest)), dtype=np.int64)
            for old, new in enumerate(place):
                moved[:, new] += part.counts[:, old]
            counts.append(moved)
            observed.append(place[part.observed])
        return cls(levels, with_rest, np.concatenate(counts), np.concatenate(observed))

    def take(self, rows: Ints) -> LevelCounts:
        """Return the counts of some rows."""
        return replace(self, counts=self.counts[rows], observed=self.observed[rows])

    @property
    def seen(self) -> Bools:
        """Whether each row has each level."""
        return np.asarray(self.observed[:, None] == np.arange(self.counts.shape[1]))


def levels_of(feature: Feature) -> Floats:
    """Return the codes of the levels, then missing (step 1)."""
    return np.append(np.arange(feature.n_levels, dtype=np.float64), np.nan)


def point_masses(drawn: Floats, values: Floats) -> Floats:
    """Return the numbers with point mass in order, then missing (step 2); `drawn` has one draw for each value."""
    chosen = [_frequent(drawn, DRAWN_AS_IT_IS), _frequent(values, SEEN)]
    return np.append(np.unique(np.concatenate(chosen)), np.nan)


def _frequent(values: Floats, share: float) -> Floats:
    distinct, times = np.unique(values[~np.isnan(values)], return_counts=True)
    return np.asarray(distinct[times >= max(5.0, share * values.size)])


def place_of(values: Floats, levels: Floats) -> Ints:
    """Return the column of each value among the levels, for any shape; those that are none of them come after all."""
    known = levels[:-1]
    place = np.searchsorted(known, values)  # missing values come after all numbers
    if known.size:
        is_level = known[np.minimum(place, known.size - 1)] == values
        place = np.where(is_level, place, known.size + 1)
    else:
        place = np.full(np.shape(values), 1)
    return np.asarray(np.where(np.isnan(values), known.size, place), dtype=np.int64)


def count_levels(draws: Floats, levels: Floats, with_rest: bool) -> Ints:
    """Return how often each level stands in each row of `draws`."""
    n, width = draws.shape[0], levels.size + int(with_rest)
    cells = place_of(draws, levels) + width * np.arange(n)[:, None]
    return np.bincount(cells.ravel(), minlength=n * width).reshape(n, width).astype(np.int64)
