"""Crossings: a factual with the values of one, two or three columns of one draw.

1. For each set of columns, keep the distinct tuples of values in the draws of a pool; the values of a tuple come from
   the same draw, which preserves their dependence.
2. For a factual, keep the tuples that differ from it in all their columns, at most `MOST`: half of them the nearest
   ones by the sum of steps, and half evenly spread over all, because the nearest may all be too near.
3. Of a single number with many values, evenly spaced ones are kept, so that every column has its share of `MOST`.

No missing value is taken from a draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd

from mcce._utils import Bools, Floats, Ints
from mcce.explain.draw import Pools
from mcce.explain.kernels import mark_distinct, nearest_tuples

MOST = 256, 112, 112  # crossings of a factual by size: twice as many find hardly fewer changes, for twice the queries
MOST_TUPLES = 30_000  # of a pool: with many sets of columns fewer draws are crossed, with more sets than this none


@dataclass(frozen=True)
class Crossings:
    """Crossings of some factuals, all of one size: nearest first, factual by factual.

    Attributes
    ----------
    owner : the factual of each crossing.
    place : its place among those of its factual.
    columns, values : what is changed, and to which values; one row for each crossing.
    steps : the sum of the steps of these values.
    """

    owner: Ints
    place: Ints
    columns: Ints
    values: Floats
    steps: Floats

    def rows(self, which: Ints, factuals: Floats) -> Floats:
        """Return some of the crossings as rows."""
        rows = factuals[self.owner[which]]
        np.put_along_axis(rows, self.columns[which], self.values[which], axis=1)
        return rows


@dataclass(frozen=True)
class Tuples:
    """The distinct tuples of a pool: the values of a set of columns, `which`, in a draw."""

    draws: Ints
    which: Ints


class CrossedPools:
    """The crossings of factuals with the draws of their pools.

    Parameters
    ----------
    pools : the draws.
    columns : the columns that may be crossed.
    is_number : which columns hold numbers.
    scaled : the draws on the scale of steps (`mcce.explain.cost`), stored by column.
    scale : what a difference on that scale is multiplied by; 0 where any change is a whole step.
    """

    def __init__(self, pools: Pools, columns: Ints, is_number: Bools, scaled: Floats, scale: Floats) -> None:
        self.pools, self.columns, self.is_number = pools, columns, is_number
        self.scaled, self.scale = scaled, scale
        self.codes = np.empty((columns.size, pools.cells.shape[1]), dtype=np.int64)
        for i, j in enumerate(columns):
            self.codes[i] = pd.factorize(pools.cells[j])[0]

    def cross(self, which: Ints, scaled_factuals: Floats, size: int) -> Crossings:
        """Return the crossings of some factuals with `size` columns; none if there are fewer, or too many sets."""
        none = np.empty(0, dtype=np.int64)
        parts = [Crossings(none, none, np.empty((0, size), dtype=np.int64), np.empty((0, size)), np.empty(0))]
        if 0 < comb(self.columns.size, size) <= MOST_TUPLES:
            sets = np.array(list(combinations(range(self.columns.size), size)), dtype=np.int64)
            parts += [self._of_pool(*pool, scaled_factuals, sets) for pool in self._pools(which)]
        return Crossings(*(np.concatenate(arrays) for arrays in zip(*(vars(part).values() for part in parts))))

    def _pools(self, which: Ints) -> Iterator[tuple[int, int, Ints]]:
        """Yield the begin, end and members of each pool."""
        begins, ends = self.pools.begin[which], self.pools.end[which]
        order = np.argsort(begins, kind="stable")
        order = order[ends[order] > begins[order]]
        for members in np.split(order, np.flatnonzero(np.diff(begins[order])) + 1):
            if members.size:
                yield int(begins[members[0]]), int(ends[members[0]]), which[members]

    def _of_pool(self, begin: int, end: int, members: Ints, scaled_factuals: Floats, sets: Ints) -> Crossings:
        """Return the crossings of the factuals of a pool."""
        tuples = self.tuples(begin, end, sets)
        n, most = tuples.draws.size, MOST[sets.shape[1] - 1]
        spread = np.empty(0, dtype=np.int64)
        if n > most:
            most //= 2
            spread = np.linspace(0, n - 1, most).astype(np.int64)
        chosen = np.empty((members.size, most + spread.size), dtype=np.int64)
        steps = np.empty(chosen.shape)
        nearest_tuples(
            self.scaled,
            begin,
            scaled_factuals[members],
            self.columns,
            self.scale,
            tuples.draws,
            tuples.which,
            sets,
            most,
            spread,
            np.empty((self.columns.size, tuples.draws.max(initial=0) + 1)),
            np.empty(n),
            chosen,
            steps,
        )
        order = np.argsort(steps, axis=1, kind="stable")
        chosen, steps = np.take_along_axis(chosen, order, axis=1), np.take_along_axis(steps, order, axis=1)
        owner, place = np.nonzero(chosen >= 0)
        chosen = chosen[owner, place]
        columns, draws = self.columns[sets[tuples.which[chosen]]], begin + tuples.draws[chosen]
        values = self.pools.cells[columns, draws[:, None]]
        return Crossings(members[owner], place, columns, values, steps[owner, place])

    def tuples(self, begin: int, end: int, sets: Ints) -> Tuples:
        """Return the distinct tuples of some sets of columns in a pool."""
        size = sets.shape[1]
        n_draws = min(end - begin, max(1, MOST_TUPLES // len(sets))) if size > 1 else end - begin
        is_first = np.empty((n_draws, len(sets)), dtype=np.bool_)
        slots = np.empty(2 << n_draws.bit_length(), dtype=np.int64)
        mark_distinct(np.ascontiguousarray(self.codes[:, begin : begin + n_draws]), sets, slots, is_first)
        if size == 1:
            self._thin(begin, is_first)
        draws, which = np.nonzero(is_first)
        return Tuples(draws, which)

    def _thin(self, begin: int, is_first: Bools) -> None:
        """Keep evenly spaced values of numbers with many values (step 3)."""
        most = max(16, MOST[0] // self.columns.size)
        for i, j in enumerate(self.columns):
            draws = np.flatnonzero(is_first[:, i])
            if self.is_number[j] and draws.size > most:
                in_order = draws[np.argsort(self.pools.cells[j, begin + draws], kind="stable")]
                kept = in_order[np.linspace(0, draws.size - 1, most).round().astype(np.int64)]
                is_first[:, i] = False
                is_first[kept, i] = True
