"""Crossed candidates: a factual with one or a few features of a drawn row.

A drawn row is a bundle of good values. Taking some of them and keeping the factual's own elsewhere changes little, and
nothing new is drawn:

1. Number the distinct values of every mutable feature in a pool.
2. For every set of L features, keep the distinct tuples of values that a draw has in them; several values are always
   taken from the same draw, so that what belongs together stays together.
3. For a factual take those tuples that differ from it in all L features; where there are many, half of what is looked
   at are the nearest, the other half spread over all. Of a single number with many values take every other one, every
   third, ..., counted from the factual's own on both sides. What is passed over is looked at when something next to it
   is chosen (`mcce.explain.refine`).

A known value is never crossed with a missing one: to withhold something is no advice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.distances.measures import Distance, stack
from mcce.explain.kernels import (
    cross,
    keep_every,
    mark_every,
    mark_first,
    nearest_tuples,
    number_values,
    read_crossings,
    step_table,
    write_changed,
)

MOST_VALUES = 24  # of a single number that are looked at first
MOST_TUPLES = 60_000  # tuples of a pool that are looked through, of its first draws if there are more
FEWEST_DRAWS = 200  # whose tuples are worth looking through
BINS = 4096


@lru_cache(maxsize=16)
def _sets(n_columns: int, size: int) -> Ints:
    """Return all sets of so many of some columns, a line each."""
    return np.array(list(combinations(range(n_columns), size)), dtype=np.int64)


@dataclass(frozen=True)
class Tuples:
    """Distinct tuples of values in a pool: of draw `draws[t]`, the columns `sets[which[t]]` (places among the mutable).

    They are in the order of the draws, then of the columns.
    """

    draws: Ints
    which: Ints
    sets: Ints


class PoolCodes:
    """The distinct values of every mutable feature in one pool, numbered (step 1).

    Parameters
    ----------
    cells : the draws of all pools column by column, as the kernels read them.
    begin, n_draws : where the pool begins, and its size.
    mutable : positions of the columns that may be crossed.
    """

    def __init__(self, cells: Floats, begin: int, n_draws: int, mutable: Ints) -> None:
        self.n_draws = n_draws
        self.codes = np.empty((mutable.size, n_draws), dtype=np.int64)
        self.counts = np.empty(mutable.size, dtype=np.int64)
        self._room = np.empty(2 << int(n_draws).bit_length(), dtype=np.int64)
        number = np.empty_like(self._room)
        number_values(cells, begin, mutable, cells.view(np.int64), self._room, number, self.codes, self.counts)

    def tuples(self, size: int) -> Tuples | None:
        """Return the distinct tuples of `size` columns (step 2); None if there are too many to look at.

        Single values are never too many.
        """
        n_columns = self.counts.size
        if size > n_columns:
            return None
        n_draws = self.n_draws if size == 1 else min(self.n_draws, MOST_TUPLES // comb(n_columns, size))
        if n_draws < min(self.n_draws, FEWEST_DRAWS):
            return None
        sets = _sets(n_columns, size)
        is_first = np.empty((n_draws, len(sets)), dtype=np.bool_)
        mark_first(np.ascontiguousarray(self.codes[:, :n_draws]), sets, self._room, is_first)
        draws, which = np.nonzero(is_first)
        return Tuples(draws, which, sets)


class Thinning:
    """Passes over some values of single numbers that have many in a pool; levels have no order to go by.

    Parameters
    ----------
    pool : the draws of one pool, encoded rows.
    mutable : positions of the columns that may be crossed.
    tuples : the distinct values, as tuples of one column.
    numbers : positions of the mutable columns that hold numbers.
    """

    def __init__(self, pool: Floats, mutable: Ints, tuples: Tuples, numbers: Ints) -> None:
        column = tuples.sets[tuples.which, 0]
        values = pool[tuples.draws, mutable[column]]
        order = np.lexsort((values, column))
        self.column = column
        self.first = np.searchsorted(column[order], np.arange(mutable.size + 1))
        self.rank = np.empty(order.size, dtype=np.int64)
        self.rank[order] = np.arange(order.size) - self.first[column[order]]
        self.sorted_values = values[order]
        rounded_up = -(-np.diff(self.first) // MOST_VALUES)
        self.stride = np.where(np.isin(mutable, numbers), rounded_up, 1)

    def keep(self, factual: Floats, chosen: Ints) -> Ints:
        """Return which of some tuples are looked at for a factual, whose mutable values are given."""
        if (self.stride == 1).all():
            return chosen
        kept = np.empty_like(chosen)
        place = np.empty(factual.size, dtype=np.int64)
        values, first = self.sorted_values, self.first
        n = keep_every(self.column, self.rank, values, first, self.stride, factual, chosen, place, kept)
        return kept[:n]


@dataclass(frozen=True)
class Crossings:
    """The crossings of one factual: the `chosen` tuples of the pool that begins at `begin`."""

    factual: int
    begin: int
    n_draws: int
    tuples: Tuples
    chosen: Ints
    complete: bool = True  # whether none was passed over

    def write(self, cells: Floats, factual: Floats, mutable: Ints, out: Floats, at: int) -> None:
        """Write them as rows out[:, at:]; `cells` are the draws of all pools, column by column."""
        tuples = self.tuples
        cross(cells, self.begin, factual, mutable, tuples.draws, tuples.which, tuples.sets, self.chosen, out, at)


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
        self._codes: dict[int, PoolCodes] = {}

    def codes(self, begin: int, n_draws: int) -> PoolCodes:
        """Return the distinct values of the pool that begins at a place, numbered once for crossings of every size."""
        if begin not in self._codes:
            self._codes[begin] = PoolCodes(self.cells, begin, n_draws, self.mutable)
        return self._codes[begin]

    def find(self, f: int, factual: Floats, begin: int, n_draws: int, tuples: Tuples, most: int) -> Crossings:
        """Return the tuples that differ from the factual in all their columns: all, or the `most` nearest."""
        table = np.empty((self.mutable.size, n_draws))
        step_table(self.cells, begin, factual, self.mutable, self.steps, self.tables, table)
        found = np.empty(tuples.draws.size, dtype=np.int64)
        distance = np.empty(tuples.draws.size)
        n, in_all = nearest_tuples(table, tuples.draws, tuples.which, tuples.sets, most, self._counts, found, distance)
        if in_all <= most:
            return Crossings(f, begin, n_draws, tuples, found[:n])
        chosen = np.zeros(tuples.draws.size, dtype=np.bool_)
        chosen[found[:n][np.argsort(distance[:n], kind="stable")[: most // 2]]] = True
        # the nearest may all be too near to have the wanted decision, so that others are looked at as well
        every = -(-tuples.draws.size // (most - most // 2))
        mark_every(table, tuples.draws, tuples.which, tuples.sets, every, chosen)
        return Crossings(f, begin, n_draws, tuples, np.flatnonzero(chosen), complete=False)


@dataclass(frozen=True)
class ChangedCells:
    """Crossings of some factuals as what they change: rows are written when they are looked at.

    Attributes
    ----------
    members : the factuals.
    begin, end : where the crossings of each begin and end.
    of : for each crossing, its factual.
    column, value : what it changes, and to what.
    steps : the sum of its steps.
    complete : for each factual, whether these are all its crossings.
    """

    members: Ints
    begin: Ints
    end: Ints
    of: Ints
    column: Ints
    value: Floats
    steps: Floats
    complete: Bools

    @classmethod
    def read(cls, made: Sequence[Crossings], near: NearestCrossings, factuals: Floats) -> ChangedCells:
        """Read the crossings of some factuals, all of the same number of features."""
        sizes = np.array([crossings.chosen.size for crossings in made])
        ends, members = np.cumsum(sizes), np.array([crossings.factual for crossings in made], dtype=np.int64)
        n, size = int(ends[-1]), made[0].tuples.sets.shape[1]
        column, value, steps = np.empty((n, size), dtype=np.int64), np.empty((n, size)), np.empty(n)
        for i, crossings in enumerate(made):
            tuples = crossings.tuples
            read_crossings(
                near.cells, crossings.begin, factuals[crossings.factual], near.mutable, tuples.draws, tuples.which,
                tuples.sets, crossings.chosen, near.steps, near.tables, int(ends[i] - sizes[i]), column, value, steps,
            )  # fmt: skip
        complete = np.array([crossings.complete for crossings in made], dtype=bool)
        return cls(members, ends - sizes, ends, np.repeat(members, sizes), column, value, steps, complete)

    def rows(self, some: Ints, factuals: Floats) -> Floats:
        """Return some of the crossings as rows."""
        rows = np.empty((factuals.shape[1], some.size))  # column by column, as the model is asked
        write_changed(factuals, self.of[some], self.column[some], self.value[some], rows)
        return rows.T
