"""Pools inside constraints, shared by as many factuals as these allow.

1. What is asked of all factuals alike (`Constraints.shared`) is obeyed while drawing. Factuals that agree in their
   fixed values share these draws.
2. What depends on a factual's own values (`Constraints.relative`: may only rise, by at most so much, may not become
   missing, rules that read it) passes over some of the draws: whoever chooses among them leaves out those that the
   factual does not allow. What is left are draws from what the chain says of rows that obey it: rejecting whole rows
   is conditioning, as truncating conditionals is not.
3. A factual that allows less than a quarter of the first 100 of them, or finds no counterfactual among them, or has to
   keep a feature, gets draws of its own, inside all it asks. Where nothing that is allowed can be drawn for a feature,
   its own value stays if that is allowed: a pool in which this happens is shared by nobody who has another value.
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

LEAST_ALLOWED = 25  # of the first shared draws, by a factual that has no draws of its own
FIRST = range(100)
AT_ONCE = 8192  # factuals whose first draws are looked at
NOTHING: Ints = np.zeros(2, dtype=np.int64)


@dataclass(frozen=True)
class Pools:
    """Candidates, what identifies the pool of each factual, and what became of the draws.

    `partly` tells whose candidates may break what depends on its own values (step 2). `acceptance` has, for each thing
    that restricts draws, how many came to it and how many it let pass.
    """

    candidates: Candidates
    keys: UInts
    partly: Bools
    acceptance: Mapping[Hashable, Ints] = field(default_factory=dict)


def restrict_keys(keys: UInts, constraints: Constraints, matrix: Floats, ids: pd.Index[Any]) -> UInts:
    """Return keys that also tell apart what the draws of factuals may be; the same where nothing is excluded."""
    return _told_apart(keys, constraints.draws_depend_on(matrix, ids))


def _told_apart(keys: UInts, depends: Floats) -> UInts:
    """Return keys that also tell apart some numbers of each factual; the same where all are NaN."""
    return np.where(np.isnan(depends).all(axis=1), keys, mix(keys ^ mix(hash_rows(depends))))


def _agree(keys: UInts, pool: Ints) -> Bools:
    """Return for each pool whether all who share it have the same key."""
    least, most = np.full((2, int(pool.max()) + 1), keys[0])
    least[pool], most[pool] = keys, keys
    np.minimum.at(least, pool, keys)
    np.maximum.at(most, pool, keys)
    return np.asarray(least == most)


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
        self.pool_keys = keys.copy()
        self.acceptance: dict[Hashable, Ints] = {}

    def draw(self, draws: range) -> Pools:
        """Draw as many rows as there are `draws` for each pool; those that could not go on are left out."""
        relative = self.constraints.relative
        everybody = np.arange(self.keys.size)
        depends = relative.draws_depend_on(self.matrix, self.ids) if relative else np.empty((everybody.size, 0))
        is_relative: Bools = np.asarray(~np.isnan(depends).all(axis=1))
        own = is_relative.copy()  # those that have to keep a feature
        own[own] = relative.kept(self.matrix[own], self.ids[own]).any(axis=1) if relative else False
        own[self._who_allow_few(everybody[is_relative & ~own])] = True
        self._draw_for(everybody[~own], self.constraints.shared, draws)
        self._draw_for(everybody[own], self.constraints, draws)
        return self._pools(is_relative & ~own)

    def draw_own(self, draws: range) -> Pools:
        """Draw as many rows as there are `draws` inside all that each factual asks."""
        self._draw_for(np.arange(self.keys.size), self.constraints, draws)
        return self._pools(np.zeros(self.keys.size, dtype=bool))

    def _pools(self, partly: Bools) -> Pools:
        return Pools(Candidates(self._joined(), self.begin, self.end), self.pool_keys, partly, self.acceptance)

    def _draw_for(self, which: Ints, constraints: Constraints, draws: range) -> None:
        """Draw inside `constraints`, for factuals that share pools as far as these mean the same for them."""
        if not which.size:
            return
        drawn, pool, self.pool_keys[which] = self._draw(which, constraints, draws)
        for name, counts in drawn.acceptance().iterrows():
            self.acceptance[name] = self.acceptance.get(name, NOTHING) + counts.to_numpy()
        living = np.concatenate([[0], np.cumsum(~drawn.dead)])
        first = pool * len(draws)
        self.begin[which], self.end[which] = self.n_rows + living[first], self.n_rows + living[first + len(draws)]
        self.rows.append(drawn.rows[~drawn.dead] if drawn.dead.any() else drawn.rows)
        self.n_rows += int(living[-1])

    def _who_allow_few(self, which: Ints) -> Ints:
        """Return the factuals that allow too few of the first draws that they would share."""
        if not which.size:
            return which
        drawn, pool, _ = self._draw(which, self.constraints.shared, FIRST)
        by_pool = np.argsort(pool, kind="stable")
        n_allowed = np.empty(which.size, dtype=np.int64)
        for p, members in enumerate(np.split(by_pool, np.cumsum(np.bincount(pool))[:-1])):
            mine = slice(p * len(FIRST), (p + 1) * len(FIRST))
            rows = drawn.rows[mine][~drawn.dead[mine]]
            for first in range(0, members.size, AT_ONCE):
                some = members[first : first + AT_ONCE]
                n_allowed[some] = self._allowed(which[some], rows).sum(axis=1)
        return which[n_allowed < LEAST_ALLOWED]

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

    def _draw(self, which: Ints, constraints: Constraints, draws: range) -> tuple[Drawn, Ints, UInts]:
        """Draw inside constraints; return also which pool each factual has, and what identifies it."""
        matrix, ids = self.matrix[which], self.ids[which]
        own = self._own(constraints, matrix, ids)
        shared_by = restrict_keys(self.keys[which], constraints, matrix, ids)
        shared_by = _told_apart(shared_by, self._off_steps(constraints, matrix, ids, own))
        by_own = _told_apart(shared_by, own)
        drawn, pool = self._draw_pools(which, constraints, draws, shared_by, own)
        lost = np.logical_or.reduceat(drawn.dead, np.arange(0, drawn.dead.size, len(draws)))
        split = lost[pool] & ~_agree(by_own, pool)[pool]
        if split.any():
            shared_by = np.where(split, by_own, shared_by)
            drawn, pool = self._draw_pools(which, constraints, draws, shared_by, own)
        return drawn, pool, shared_by

    def _draw_pools(
        self, which: Ints, constraints: Constraints, draws: range, shared_by: UInts, own: Floats
    ) -> tuple[Drawn, Ints]:
        """Draw a pool for all who agree in `shared_by`; own values stay in those whose factuals agree in them."""
        matrix, ids, keys = self.matrix[which], self.ids[which], self.keys[which]
        pool, request, first = request_pools(self.generator, matrix, keys, shared_by, draws, self.redraw)
        own = np.where(_agree(hash_rows(own), pool)[:, None], own[first], np.nan)

        def for_draws(part: Any) -> Any:
            return np.repeat(part, len(draws), axis=0)

        names = self.constraints.schema.names
        within = {
            name: replace(each, kept=own[:, names.index(name)])
            for name, each in constraints.within(matrix[first], ids[first]).items()
        }
        request = replace(
            request,
            restrictions={name: each.each(for_draws) for name, each in within.items()},
            rules=constraints.rules,
            factuals=for_draws(matrix[first]) if any(rule.reads_factual for rule in constraints.rules) else None,
        )
        return self.generator.draw(request), pool

    def _own(self, constraints: Constraints, matrix: Floats, ids: pd.Index[Any]) -> Floats:
        """Return the values that may stay, of features whose draws depend on them; NaN elsewhere."""
        own = np.full(matrix.shape, np.nan)
        for column, _ in constraints.relative.of_factuals(matrix, ids).within:
            own[:, column] = matrix[:, column]
        return own

    def _off_steps(self, constraints: Constraints, matrix: Floats, ids: pd.Index[Any], own: Floats) -> Floats:
        """Return the values that draws need not leave for a multiple of some step; NaN elsewhere."""
        off = np.full(matrix.shape, np.nan)
        for name, within in constraints.within(matrix, ids).items():
            if within.step is not None:
                column = self.constraints.schema.names.index(name)
                off[:, column] = np.where(np.isnan(within.step), np.nan, own[:, column])
        return off

    def _joined(self) -> Floats:
        """Return all rows, column by column, as the kernels read them."""
        rows = np.empty((self.n_rows, self.matrix.shape[1]), order="F")
        at = 0
        for part in self.rows:
            rows[at : at + part.shape[0]] = part
            at += part.shape[0]
        return rows

    def _add_counts(self, name: Hashable, came: Bools, passed: Bools) -> None:
        counts = np.array([came.sum(), (came & passed).sum()], dtype=np.int64)
        self.acceptance[name] = self.acceptance.get(name, NOTHING) + counts
