"""Crossed candidates: a factual with the values of one or a few features of a drawn row.

Crossed candidates change few features and need no further draws:

1. Number the distinct values of every mutable feature, in the draws of all pools at once.
2. For every set of L features, keep the distinct tuples of values in the draws. All values of a tuple are from the same
   draw, so that their dependence is preserved.
3. For a factual, take the tuples that differ from it in all L features. If there are many, half of the examined tuples
   are the nearest, and the other half is spread over all. Of a single number with many values, every second, third, ...
   value is examined, counted from the factual's value on both sides. Skipped values are examined when a neighbouring
   value is chosen (`mcce.explain.refine`).

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
from mcce.explain.kernels import mark_first, sum_steps

MOST_VALUES = 24  # values of a single number that are examined first
MOST_TUPLES = 60_000  # examined tuples of a pool; of its first draws if there are more
FEWEST_DRAWS = 200  # fewest draws whose tuples are examined


@lru_cache(maxsize=16)
def _sets(n_columns: int, size: int) -> Ints:
    """Return all sets of a given size of some columns, one per row."""
    return np.array(list(combinations(range(n_columns), size)), dtype=np.int64)


@dataclass(frozen=True)
class Limits:
    """Limits of the changes of some factuals.

    Attributes
    ----------
    low, high : by factual and column, the lowest and the highest new value.
    most : by factual, the largest number of changes.
    """

    low: Floats
    high: Floats
    most: Floats

    @classmethod
    def none(cls, n: int, n_columns: int) -> Limits:
        """Return infinite limits."""
        infinite = np.full((n, n_columns), np.inf)
        return cls(-infinite, infinite, np.full(n, np.inf))

    def take(self, which: Ints | slice) -> Limits:
        """Return the limits of some factuals."""
        return Limits(self.low[which], self.high[which], self.most[which])

    def apply(self, rows: Floats, factuals: Floats, owner: Ints) -> Floats:
        """Return rows with the factuals' values instead of those outside the limits; missing values are outside."""
        within = (self.low[owner] <= rows) & (rows <= self.high[owner])
        return np.where(within, rows, factuals[owner])


@dataclass(frozen=True)
class Tuples:
    """Distinct tuples of values in a pool: columns `sets[which[t]]` (positions among the mutable) of draw `draws[t]`.

    They are sorted by draw, then by columns.
    """

    draws: Ints
    which: Ints
    sets: Ints


class Thinning:
    """The values of single numbers that are skipped if a pool has many; levels have no order and are not thinned.

    Parameters
    ----------
    pool : the draws of one pool, encoded rows.
    mutable : positions of the columns that may be crossed.
    tuples : the distinct values, as tuples of one column.
    numbers : positions of the mutable columns that hold numbers.
    factuals : the factuals of the pool, encoded rows.
    """

    def __init__(self, pool: Floats, mutable: Ints, tuples: Tuples, numbers: Ints, factuals: Floats) -> None:
        column = tuples.sets[tuples.which, 0]
        values = pool[tuples.draws, mutable[column]]
        order = np.lexsort((values, column))
        self.column = column
        first = np.searchsorted(column[order], np.arange(mutable.size + 1))
        self.rank = np.empty(order.size, dtype=np.int64)
        self.rank[order] = np.arange(order.size) - first[column[order]]
        by_column = zip(np.split(values[order], first[1:-1]), mutable)
        self.places = np.stack([np.searchsorted(ordered, factuals[:, j]) for ordered, j in by_column], axis=1)
        rounded_up = -(-np.diff(first) // MOST_VALUES)
        self.stride = np.where(np.isin(mutable, numbers), rounded_up, 1)

    def keeps(self, i: int, chosen: Ints) -> Bools:
        """Return which of some tuples are examined for the i-th factual."""
        if (self.stride == 1).all():
            return np.ones(chosen.size, dtype=bool)
        column, place = self.column[chosen], self.places[i]
        beyond = self.rank[chosen] - place[column]
        steps = np.where(beyond >= 0, beyond, -1 - beyond)
        return np.asarray(steps % self.stride[column] == 0)


@dataclass(frozen=True)
class Crossings:
    """The crossings of one factual: the `chosen` tuples of the pool that begins at `begin`.

    `steps` are the sums of their steps; `complete` says that none was skipped.
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
    """The crossings of factuals with the draws of their pools.

    Parameters
    ----------
    cells : the draws of all pools, stored by column for the kernels.
    mutable : positions of the columns that may be crossed.
    distance : the distance that defines the nearest tuples.
    """

    def __init__(self, cells: Floats, mutable: Ints, distance: Distance) -> None:
        self.cells = cells
        self.mutable = mutable
        self.steps, self.tables = stack([distance])
        self.unlimited = np.full(len(cells), -np.inf), np.full(len(cells), np.inf)
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
        draws, which = (np.ascontiguousarray(places) for places in np.nonzero(is_first))
        return Tuples(draws, which, sets)

    def find(
        self,
        f: int,
        factual: Floats,
        begin: int,
        n_draws: int,
        tuples: Tuples,
        most: int,
        within: tuple[Floats, Floats] | None = None,
    ) -> Crossings:
        """Return the tuples that differ from the factual in all their columns: all, or the `most` nearest (step 3).

        `within` are the lowest and the highest values by column; tuples with others are skipped.
        """
        n = tuples.draws.size
        table = np.empty((self.mutable.size, n_draws))
        changed, steps = np.empty(n, dtype=np.int64), np.empty(n)
        low, high = self.unlimited if within is None else within
        made_of = tuples.draws, tuples.which, tuples.sets
        compared = self.cells, begin, factual, low, high, self.mutable, self.steps, self.tables
        n_changed = sum_steps(*compared, made_of, table, changed, steps)
        changed, steps = changed[:n_changed], steps[:n_changed]
        if n_changed <= most:
            return Crossings(f, begin, tuples, changed.copy(), steps.copy())
        # the nearest may all be too near to have the wanted decision, so others are examined as well
        chosen = changed % -(-n // (most - most // 2)) == 0
        chosen[_smallest(steps, most // 2)] = True
        return Crossings(f, begin, tuples, changed[chosen], steps[chosen], complete=False)


def _smallest(values: Floats, n: int) -> Ints:
    """Return the positions of the `n` smallest of more than n values; ties go to the earlier."""
    last = np.partition(values, n)[n]
    below = np.flatnonzero(values < last)
    return np.append(below, np.flatnonzero(values == last)[: n - below.size])


@dataclass(frozen=True)
class ChangedCells:
    """Crossings of some factuals, stored as changed cells; rows are made when needed.

    Attributes
    ----------
    members : the factuals.
    begin, end : where the crossings of each begin and end.
    of : the factual of each crossing.
    column, value : the changed columns and their new values.
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
        """Return the crossings of some factuals, all with the same number of features."""
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
        rows = factuals.take(self.of[some], axis=0)
        np.put_along_axis(rows, self.column[some], self.value[some], axis=1)
        return rows
