"""Crossed candidates: a factual with one or a few features of a drawn row.

A drawn row is a bundle of good values. Taking some of them and keeping the factual's own elsewhere changes little, and
nothing new is drawn:

1. Number the distinct values of every mutable feature in a pool.
2. For every set of L features, keep the distinct tuples of values that a draw has in them; several values are always
   taken from the same draw, so that what belongs together stays together.
3. For a factual take those tuples that differ from it in all L features; where there are many, the nearest.

A known value is never crossed with a missing one: to withhold something is no advice.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.arrays import Floats, Ints
from mcce.candidates.crossing_kernels import cross, nearest_tuples, step_table
from mcce.selection.distances import Distance, stack

Cells = npt.NDArray[Any]

MOST_TUPLES = 300_000  # tuples of a pool that are looked through
BINS = 4096


@dataclass(frozen=True)
class Tuples:
    """Distinct tuples of values in a pool: of draw `draws[t]`, the columns `sets[which[t]]` (places among the mutable).

    They are in the order of the draws, then of the columns.
    """

    draws: Ints
    which: Ints
    sets: Ints


def distinct_tuples(pool: Floats, mutable: Ints, size: int) -> Tuples | None:
    """Return the tuples of one pool's draws, encoded rows (steps 1 and 2); None if there are too many to look at.

    Single values are never too many.
    """
    n_draws = pool.shape[0]
    if size > mutable.size or (size > 1 and comb(mutable.size, size) * n_draws > MOST_TUPLES):
        return None
    sets = np.array(list(combinations(range(mutable.size), size)), dtype=np.int64).reshape(-1, size)
    codes, counts = _number_values(pool[:, mutable])
    keys = codes[:, sets[:, 0]]
    missing = keys < 0
    for place in range(1, size):
        member = sets[:, place]
        if place > 2:  # the product of more counts may be beyond an integer
            keys, _ = _number_values(keys)
        missing |= codes[:, member] < 0
        keys = keys * counts[member] + codes[:, member]
    order = np.argsort(keys, axis=0, kind="stable")
    sorted_keys = np.take_along_axis(keys, order, axis=0)
    first = np.ones(keys.shape, dtype=bool)
    first[1:] = sorted_keys[1:] != sorted_keys[:-1]
    is_first = np.zeros(keys.shape, dtype=bool)
    np.put_along_axis(is_first, order, first, axis=0)
    draws, which = np.nonzero(is_first & ~missing)
    return Tuples(draws, which, sets)


def _number_values(values: Floats | Ints) -> tuple[Ints, Ints]:
    """Return the place of each value among the distinct ones of its column (missing: -1), and how many there are."""
    order = np.argsort(values, axis=0, kind="stable")
    in_order = np.take_along_axis(values, order, axis=0)
    place = np.zeros(values.shape, dtype=np.int64)
    place[1:] = np.cumsum(in_order[1:] != in_order[:-1], axis=0)
    codes = np.empty_like(place)
    np.put_along_axis(codes, order, place, axis=0)
    counts = np.maximum(codes.max(axis=0, initial=0) + 1, 1)
    codes[np.isnan(values)] = -1
    return codes, counts


@dataclass(frozen=True)
class Crossings:
    """The crossings of one factual: the `chosen` tuples of the pool that begins at `begin`."""

    factual: int
    begin: int
    n_draws: int
    tuples: Tuples
    chosen: Ints

    def write(self, cells: Cells, begin: int, factual: Cells, mutable: Ints, out: Cells, at: int) -> None:
        """Write them as rows out[:, at:]. The draws are cells[:, begin:]; they may be in another coding, as bins."""
        tuples = self.tuples
        cross(cells, begin, factual, mutable, tuples.draws, tuples.which, tuples.sets, self.chosen, out, at)


class NearestCrossings:
    """Finds the crossings of factuals with the draws of a pool (step 3).

    Parameters
    ----------
    cells : the draws of all pools column by column, as the kernels read them.
    mutable : positions of the columns that may be crossed.
    distance : what is near.
    """

    def __init__(self, cells: Floats, mutable: Ints, distance: Distance) -> None:
        self.cells = cells
        self.mutable = mutable
        self.steps, self.tables = stack([distance])
        self._counts = np.empty(BINS, dtype=np.int64)

    def find(self, f: int, factual: Floats, begin: int, n_draws: int, tuples: Tuples, most: int) -> Crossings:
        """Return the tuples that differ from the factual in all their columns: all, or the `most` nearest."""
        table = np.empty((self.mutable.size, n_draws))
        step_table(self.cells, begin, factual, self.mutable, self.steps, self.tables, table)
        found = np.empty(tuples.draws.size, dtype=np.int64)
        distance = np.empty(tuples.draws.size)
        n = nearest_tuples(table, tuples.draws, tuples.which, tuples.sets, most, self._counts, found, distance)
        chosen = found[:n]
        if n > most:
            chosen = np.sort(chosen[np.argsort(distance[:n], kind="stable")[:most]])
        return Crossings(f, begin, n_draws, tuples, chosen)
