"""Pools inside constraints, shared by as many factuals as these allow.

1. What is asked of all factuals alike (`Constraints.shared`) is obeyed while drawing. Factuals that agree in their
   fixed values share these draws.
2. What depends on a factual's own values (`Constraints.relative`: may only rise, by at most so much, rules that read
   it) passes over some of the draws. A factual takes the first K that it allows, of 2 K. These are draws from what the
   chain says of rows that obey it: rejecting whole rows is conditioning, as truncating conditionals is not.
3. A factual that allows fewer of them, or that has to keep a feature, gets draws of its own, inside all it asks. Where
   nothing that is allowed can be drawn for a feature, its own value stays if that is allowed.
4. The random numbers stay those of the fixed values, whoever shares a pool: a constraint that excludes nothing changes
   nothing, nor do the factuals that are explained together. Rows that could not be drawn inside are left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from mcce.arrays import Bools, Floats, Ints, UInts
from mcce.candidates.pools import request_pools
from mcce.constraints import Constraints
from mcce.generators.base import Drawn, Generator
from mcce.rng import hash_rows, mix
from mcce.selection.candidates import Candidates

SPARE = 2  # times as many draws as are taken


@dataclass(frozen=True)
class Pools:
    """Candidates, and for each thing that restricts them how many rows came to it and how many it let pass."""

    candidates: Candidates
    acceptance: Mapping[Hashable, Ints] = field(default_factory=dict)


def restrict_keys(keys: UInts, constraints: Constraints, matrix: Floats, ids: pd.Index[Any]) -> UInts:
    """Return keys that also tell apart what the draws of factuals may be; the same where nothing is excluded."""
    depends = constraints.draws_depend_on(matrix, ids)
    free = np.isnan(depends).all(axis=1)
    return np.where(free, keys, mix(keys ^ mix(hash_rows(depends))))


class ConstrainedPools:
    """Draws the pools of some factuals: encoded rows, keys of their streams, and names."""

    def __init__(
        self,
        generator: Generator,
        constraints: Constraints,
        matrix: Floats,
        keys: UInts,
        ids: pd.Index[Any],
        redraw: int = 0,
    ) -> None:
        self.generator = generator
        self.constraints = constraints
        self.matrix = matrix
        self.keys = keys
        self.ids = ids
        self.redraw = redraw
        self.rows: list[Floats] = []
        self.n_rows = 0
        self.begin = np.zeros(keys.size, dtype=np.int64)
        self.end = np.zeros(keys.size, dtype=np.int64)
        self.acceptance: dict[Hashable, Ints] = {}

    def draw(self, draws: range) -> Pools:
        """Draw as many rows for each factual as there are `draws`, or nearly so (steps 1 to 3)."""
        relative = self.constraints.relative
        everybody = np.arange(self.keys.size)
        depends = relative.draws_depend_on(self.matrix, self.ids) if relative else np.empty((everybody.size, 0))
        is_relative = ~np.isnan(depends).all(axis=1)
        self._share(everybody[~is_relative], self.constraints.shared, draws)
        keeping = relative.kept(self.matrix, self.ids).any(axis=1) if relative else is_relative
        left = self._filter(everybody[is_relative & ~keeping], draws)
        self._share(np.union1d(left, everybody[is_relative & keeping]), self.constraints, draws)
        rows = (
            np.concatenate([np.empty((0, self.matrix.shape[1])), *self.rows]) if len(self.rows) != 1 else self.rows[0]
        )
        return Pools(Candidates(np.asfortranarray(rows), self.begin, self.end), self.acceptance)

    def _share(self, which: Ints, constraints: Constraints, draws: range) -> None:
        """Draw inside `constraints`, for factuals that agree in what that means."""
        if which.size:
            drawn, pool = self._draw(which, constraints, draws)
            self._count(drawn)
            living = np.concatenate([[0], np.cumsum(~drawn.dead)])
            first = pool * len(draws)
            rows = drawn.rows[~drawn.dead] if drawn.dead.any() else drawn.rows
            self._add(rows, which, living[first], living[first + len(draws)])

    def _filter(self, which: Ints, draws: range) -> Ints:
        """Step 2: take shared draws that single factuals allow; return those for whom they are too few."""
        if not which.size:
            return which
        n, n_drawn = len(draws), SPARE * len(draws)
        drawn, pool = self._draw(which, self.constraints.shared, range(SPARE * draws.start, SPARE * draws.stop))
        self._count(drawn)
        by_pool = np.argsort(pool, kind="stable")
        ends = np.cumsum(np.bincount(pool))
        enough, taken = np.zeros(which.size, dtype=bool), []
        for p, places in enumerate(np.split(by_pool, ends[:-1])):
            rows = drawn.rows[p * n_drawn : (p + 1) * n_drawn]
            living = ~drawn.dead[p * n_drawn : (p + 1) * n_drawn]
            allowed = self._allowed(which[places], rows) & living
            found = allowed.sum(axis=1) >= n
            enough[places] = found
            first = allowed[found] & (np.cumsum(allowed[found], axis=1) <= n)
            taken.append((which[places[found]], p * n_drawn + np.nonzero(first)[1]))
        owners = np.concatenate([owner for owner, _ in taken])
        begin = np.arange(owners.size, dtype=np.int64) * n
        places = np.concatenate([places for _, places in taken])
        rows = np.empty((places.size, drawn.rows.shape[1]), order="F")
        for j in range(rows.shape[1]):
            np.take(drawn.rows[:, j], places, out=rows[:, j])
        self._add(rows, owners, begin, begin + n)
        return which[~enough]

    def _allowed(self, which: Ints, rows: Floats) -> Bools:
        """Return which rows of a pool each of some factuals allows; count what each thing that it asks lets pass."""
        relative = self.constraints.relative.of_factuals(self.matrix[which], self.ids[which])
        shape = which.size, rows.shape[0]
        allowed = np.ones(shape, dtype=bool)
        owner = np.repeat(np.arange(which.size), rows.shape[0])
        for column, within in relative.within:
            passed = within.take(owner).allows(np.tile(rows[:, column], which.size)).reshape(shape)
            self._add_counts(self.constraints.schema.names[column], allowed, passed)
            allowed &= passed
        for rule in relative.rules:
            passed = rule.holds(np.tile(rows, (which.size, 1)), relative.factuals[owner]).reshape(shape)
            self._add_counts(rule.text, allowed, passed)
            allowed &= passed
        return allowed

    def _draw(self, which: Ints, constraints: Constraints, draws: range) -> tuple[Drawn, Ints]:
        """Draw inside constraints; return also which pool each factual has."""
        matrix, ids, keys = self.matrix[which], self.ids[which], self.keys[which]
        shared_by = restrict_keys(keys, constraints, matrix, ids)
        pool, request, first = request_pools(self.generator, matrix, keys, shared_by, draws, self.redraw)

        def for_draws(part: Any) -> Any:
            return np.repeat(part, len(draws), axis=0)

        names = self.constraints.schema.names
        within = {
            name: replace(each, kept=self._own(names.index(name), constraints, matrix[first], ids[first]))
            for name, each in constraints.within(matrix[first], ids[first]).items()
        }
        request = replace(
            request,
            restrictions={name: each.each(for_draws) for name, each in within.items()},
            rules=constraints.rules,
            factuals=for_draws(matrix[first]) if any(rule.reads_factual for rule in constraints.rules) else None,
        )
        return self.generator.draw(request), pool

    def _own(self, column: int, constraints: Constraints, matrix: Floats, ids: pd.Index[Any]) -> Floats | None:
        """Return the values that may stay, of a feature whose draws depend on them; None if they are shared by all."""
        looked_at = constraints.relative.of_factuals(matrix, ids).within
        return matrix[:, column] if column in [j for j, _ in looked_at] else None

    def _joined(self) -> Floats:
        """Return all rows, column by column, as the kernels read them."""
        rows = np.empty((self.n_rows, self.matrix.shape[1]), order="F")
        at = 0
        for part in self.rows:
            rows[at : at + part.shape[0]] = part
            at += part.shape[0]
        return rows

    def _add(self, rows: Floats, owners: Ints, begin: Ints, end: Ints) -> None:
        self.rows.append(rows)
        self.begin[owners], self.end[owners] = begin + self.n_rows, end + self.n_rows
        self.n_rows += rows.shape[0]

    def _count(self, drawn: Drawn) -> None:
        for name, counts in drawn.acceptance().iterrows():
            self.acceptance[name] = self.acceptance.get(name, np.zeros(2, dtype=np.int64)) + counts.to_numpy()

    def _add_counts(self, name: Hashable, came: Bools, passed: Bools) -> None:
        counts = np.array([came.sum(), (came & passed).sum()], dtype=np.int64)
        self.acceptance[name] = self.acceptance.get(name, np.zeros(2, dtype=np.int64)) + counts
