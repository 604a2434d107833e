"""Crossed candidates: a factual with one or a few features of a drawn row.

A drawn row is a bundle of good values. Taking some of them and keeping the factual's own elsewhere changes little, and
nothing new is drawn:

1. Number the distinct values of every mutable feature, in the draws of all pools at once.
2. For every set of L features, keep the distinct tuples of values that a draw has in them; several values are always
   taken from the same draw, so that what belongs together stays together.
3. For a factual take those tuples that differ from it in all L features; where there are many, half of what is looked
   at are the nearest, the other half spread over all. Of a single number with many values take every other one, every
   third, ..., counted from the factual's own on both sides. What is passed over is looked at when something next to it
   is chosen (`mcce.explain.refine`).

A known value is never crossed with a missing one: removing a known value is not actionable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.distances.measures import Distance, stack
from mcce.explain.kernels import mark_first, step_table, tuple_steps

MOST_VALUES = 24  # of a single number that are looked at first
MOST_TUPLES = 60_000  # tuples of a pool that are looked through, of its first draws if there are more
FEWEST_DRAWS = 200  # whose tuples are worth looking through


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
        first = np.searchsorted(column[order], np.arange(mutable.size + 1))
        self.rank = np.empty(order.size, dtype=np.int64)
        self.rank[order] = np.arange(order.size) - first[column[order]]
        self.values = np.split(values[order], first[1:-1])  # sorted, by column
        rounded_up = -(-np.diff(first) // MOST_VALUES)
        self.stride = np.where(np.isin(mutable, numbers), rounded_up, 1)

    def keeps(self, factual: Floats, chosen: Ints) -> Bools:
        """Return which of some tuples are looked at for a factual, whose mutable values are given."""
        if (self.stride == 1).all():
            return np.ones(chosen.size, dtype=bool)
        place = np.array([np.searchsorted(values, x) for values, x in zip(self.values, factual)])
        column = self.column[chosen]
        beyond = self.rank[chosen] - place[column]
        steps = np.where(beyond >= 0, beyond, -1 - beyond)
        return np.asarray(steps % self.stride[column] == 0)


@dataclass(frozen=True)
class Crossings:
    """The crossings of one factual: the `chosen` tuples of the pool that begins at `begin`.

    `steps` are the sums of their steps; `complete` says whether none was passed over.
    """

    factual: int
    begin: int
    tuples: Tuples
    chosen: Ints
    steps: Floats
    complete: bool = True

    def take(self, which: Bools) -> Crossings:
        """Return some of the crossings."""
        return replace(self, chosen=self.chosen[which], steps=self.steps[which])


class NearestCrossings:
    """Finds the crossings of factuals with the draws of their pools.

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
        self.codes = np.empty((mutable.size, cells.shape[1]), dtype=np.int64)  # step 1; -1 for missing
        for codes, j in zip(self.codes, mutable):
            codes[:] = pd.factorize(cells[j])[0]

    def tuples(self, begin: int, n_draws: int, size: int) -> Tuples | None:
        """Return the distinct tuples of `size` columns in the pool at `begin` (step 2); None if there are too many.

        Single values are never too many.
        """
        n_columns = self.mutable.size
        if size > n_columns:
            return None
        most = n_draws if size == 1 else min(n_draws, MOST_TUPLES // comb(n_columns, size))
        if most < min(n_draws, FEWEST_DRAWS):
            return None
        sets = _sets(n_columns, size)
        is_first = np.empty((most, len(sets)), dtype=np.bool_)
        room = np.empty(2 << most.bit_length(), dtype=np.int64)
        mark_first(np.ascontiguousarray(self.codes[:, begin : begin + most]), sets, room, is_first)
        draws, which = np.nonzero(is_first)
        return Tuples(draws, which, sets)

    def find(self, f: int, factual: Floats, begin: int, n_draws: int, tuples: Tuples, most: int) -> Crossings:
        """Return the tuples that differ from the factual in all their columns: all, or the `most` nearest (step 3)."""
        table = np.empty((self.mutable.size, n_draws))
        step_table(self.cells, begin, factual, self.mutable, self.steps, self.tables, table)
        steps = np.empty(tuples.draws.size)
        tuple_steps(table, tuples.draws, tuples.which, tuples.sets, steps)
        changed = np.flatnonzero(steps < np.inf)
        if changed.size <= most:
            return Crossings(f, begin, tuples, changed, steps[changed])
        chosen = np.zeros(steps.size, dtype=bool)
        chosen[changed[_smallest(steps[changed], most // 2)]] = True
        # the nearest may all be too near to have the wanted decision, so that others are looked at as well
        every = -(-steps.size // (most - most // 2))
        chosen[::every] |= steps[::every] < np.inf
        return Crossings(f, begin, tuples, np.flatnonzero(chosen), steps[chosen], complete=False)


def _smallest(values: Floats, n: int) -> Ints:
    """Return the places of the `n` smallest values, fewer than there are; on ties the earlier ones."""
    last = np.partition(values, n)[n]
    below = np.flatnonzero(values < last)
    return np.append(below, np.flatnonzero(values == last)[: n - below.size])


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
    def read(cls, made: Sequence[Crossings], near: NearestCrossings) -> ChangedCells:
        """Read the crossings of some factuals, all of the same number of features."""
        sizes = np.array([crossings.chosen.size for crossings in made])
        ends, members = np.cumsum(sizes), np.array([crossings.factual for crossings in made], dtype=np.int64)
        column = np.concatenate([near.mutable[each.tuples.sets[each.tuples.which[each.chosen]]] for each in made])
        draw = np.concatenate([each.begin + each.tuples.draws[each.chosen] for each in made])
        steps = np.concatenate([each.steps for each in made])
        complete = np.array([each.complete for each in made], dtype=bool)
        value = near.cells[column, draw[:, None]]
        return cls(members, ends - sizes, ends, np.repeat(members, sizes), column, value, steps, complete)

    def rows(self, some: Ints, factuals: Floats) -> Floats:
        """Return some of the crossings as rows."""
        cells = np.ascontiguousarray(factuals[self.of[some]].T)  # column by column, as the model is queried
        cells[self.column[some].T, np.arange(some.size)] = self.value[some].T
        return cells.T
