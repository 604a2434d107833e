"""Sparse counterfactuals: few changes, each needed, none of them harmful, at or above the floor of plausibility.

1. Cross the draws with the factual, one column first, then two, then three (`mcce.explain.crossing`). The crossings of
   all factuals are examined in rounds, nearest first: those that are admitted are queried together, and the valid and
   plausible ones are pruned (`mcce.explain.prune`). Most models are faster than the score, so they are queried first.
   Valid rows with one change are judged from the cheapest on, until a factual has enough.
2. A factual is done with the first size that gives enough rows, the cheapest first (`mcce.explain.cost`). Steps are a
   lower bound of the cost, so crossings beyond the best cost are left out.
3. Factuals without enough rows get whole draws at the floor, pruned; those without any row get whole draws without
   the floor, pruned and marked.

With `measures`, rows are ordered by these instead of (changes, cost), and every size is searched unless the first of
them is L0. A diverse answer has rows that change different sets of columns.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from mcce._utils import Bools, Floats, Ints
from mcce.explain.acceptance import Acceptance
from mcce.explain.crossing import MOST, CrossedPools, Crossings
from mcce.explain.draw import Pools
from mcce.explain.plain import Counts, completed, first_valid
from mcce.explain.problem import blocks
from mcce.explain.prune import prune
from mcce.explain.winners import Winners
from mcce.rng import hash_rows

SIZES = 1, 2, 3
ROUNDS = 0, 16, 48, 112, MOST[0]  # ends of the rounds, among the crossings of a factual
FEW_ROWS = 1000  # a model answers so many rows almost as fast as one, so they are asked at once
JUDGED = 0, 1, 4, 16, MOST[0]  # ends of the parts in which rows with one change are judged
STARTS = 4  # whole draws that are pruned for a factual without enough rows


class Best:
    """The rows accepted so far, with their keys: smaller keys are better, the first key is the primary one."""

    def __init__(self, acceptance: Acceptance) -> None:
        self.acceptance = acceptance
        self.problem = acceptance.problem
        n_columns = self.problem.n_columns
        n_keys = 2 if self.problem.measures is None else len(self.problem.measures)
        self.owner, self.rows = np.empty(0, dtype=np.int64), np.empty((0, n_columns))
        self.keys, self.rank = np.empty((0, n_keys)), np.empty(0, dtype=np.int64)

    @property
    def counts_first(self) -> bool:
        """Whether rows with fewer changes are always better."""
        measures = self.problem.measures
        return measures is None or measures[0].name == "L0"

    def add(self, owner: Ints, rows: Floats, keys: Floats | None = None) -> None:
        """Add accepted rows, and keep the k best of each factual, distinct or with distinct sets of changes."""
        if not owner.size:
            return
        keys = np.concatenate([self.keys, self.keys_of(owner, rows) if keys is None else keys])
        owner, rows = np.concatenate([self.owner, owner]), np.concatenate([self.rows, rows])
        order = np.lexsort((*keys.T[::-1], owner))
        same = self.acceptance.changes(rows, owner).astype(np.float64) if self.problem.diverse else rows
        hashed = hash_rows(np.column_stack([owner.astype(np.float64), same]))
        _, first = np.unique(hashed[order], return_index=True)
        order = order[np.sort(first)]
        rank = np.arange(order.size) - np.searchsorted(owner[order], owner[order])
        order, rank = order[rank < self.problem.k], rank[rank < self.problem.k]
        self.owner, self.rows, self.keys, self.rank = owner[order], rows[order], keys[order], rank

    def keys_of(self, owner: Ints, rows: Floats) -> Floats:
        """Return the keys of rows."""
        acceptance, problem = self.acceptance, self.problem
        factuals = acceptance.factuals[owner]
        counted = problem.derived.reset(rows, factuals)
        if problem.measures is not None:
            return np.column_stack([measure.function(counted, factuals) for measure in problem.measures])
        assert problem.cost is not None
        n_changes = acceptance.changes(rows, owner).sum(axis=1)
        return np.column_stack([n_changes, problem.cost.of(counted, factuals, acceptance.query(rows).margin)])

    def bound(self, size: int) -> Floats:
        """Return, for each factual, the steps from which a crossing with `size` changes cannot be among the k best."""
        bound = np.full(len(self.acceptance), np.inf)
        if self.problem.measures is None:
            last = self.rank == self.problem.k - 1
            cost = np.where(self.keys[last, 0] < size, -np.inf, self.keys[last, 1])
            bound[self.owner[last]] = np.where(self.keys[last, 0] > size, np.inf, cost)
        return bound

    def unfinished(self, size: int) -> Ints:
        """Return the factuals for which crossings with `size` columns are searched."""
        if not self.counts_first:
            return np.arange(len(self.acceptance))
        is_enough = (self.rank == self.problem.k - 1) & (self.keys[:, 0] < size)
        return np.setdiff1d(np.arange(len(self.acceptance)), self.owner[is_enough])

    def count(self) -> Ints:
        """Return the number of rows of each factual."""
        return np.bincount(self.owner, minlength=len(self.acceptance))


def search_sparse(acceptance: Acceptance, pools: Pools) -> tuple[Winners, Counts]:
    """Return the k best sparse rows of each factual (fewer where there are fewer), and counts of the draws."""
    problem = acceptance.problem
    best = Best(acceptance)
    is_number = np.array([feature.is_numeric for feature in problem.generator.schema_.features])
    cells, factuals, factors = pools.cells, acceptance.factuals, problem.gower.scale
    if problem.measures is None and problem.cost is not None:
        scale = problem.cost.scale
        cells, factuals, factors = scale.transform(cells.T).T, scale.transform(factuals), scale.factors
    crossed = CrossedPools(pools, problem.counted, is_number, np.require(cells, np.float64, ["C"]), factors)
    for size in SIZES:
        if size <= problem.max_changes:
            crossings = crossed.cross(best.unfinished(size), np.ascontiguousarray(factuals), size)
            _examine(acceptance, crossings, best, size)
    whole, _ = _whole_draws(acceptance, pools, np.flatnonzero(best.count() < problem.k), at_floor=True)
    rows, is_harmed = prune(acceptance, whole.rows, whole.owner)
    best.add(whole.owner[~is_harmed], rows[~is_harmed])
    below, counts = _below_floor(acceptance, pools, np.flatnonzero(best.count() == 0))
    return Winners.join([Winners.of(best.owner, best.rows), below], problem.n_columns), counts


def _whole_draws(
    acceptance: Acceptance, pools: Pools, which: Ints, *, at_floor: bool = False
) -> tuple[Winners, Counts]:
    """Return the first valid draws of some factuals, as many factuals at a time as fit in memory; and the counts."""
    problem = acceptance.problem
    counts = Counts.zeros(len(acceptance))
    parts = []
    for block in blocks(replace(problem, sparse=False), acceptance.factuals[which]):
        members = which[block]
        part = acceptance.take(members)
        winners, counts_of_part = first_valid(
            part, completed(part, pools.take(members)), STARTS + problem.k - 1, at_floor=at_floor
        )
        parts.append(winners.of_factuals(members))
        counts.write(members, counts_of_part)
    return Winners.join(parts, problem.n_columns), counts


def _examine(acceptance: Acceptance, crossings: Crossings, best: Best, size: int) -> None:
    """Examine the crossings of one size in rounds (step 1)."""
    if crossings.owner.size <= FEW_ROWS:
        acceptance.query(_admitted(acceptance, crossings, crossings.steps < best.bound(size)[crossings.owner])[0])
    for begin, end in pairwise(ROUNDS):
        in_round = (begin <= crossings.place) & (crossings.place < end)
        rows, owner = _admitted(acceptance, crossings, in_round & (crossings.steps < best.bound(size)[crossings.owner]))
        if not owner.size:
            continue
        is_valid = acceptance.query(rows).wanted
        owner, rows = owner[is_valid], rows[is_valid]
        is_single = acceptance.changes(rows, owner).sum(axis=1) == 1
        _add_single(acceptance, rows[is_single], owner[is_single], best)
        owner, rows = owner[~is_single], rows[~is_single]
        is_plausible = acceptance.plausible(rows, owner)
        owner, rows = owner[is_plausible], rows[is_plausible]
        rows, is_harmed = prune(acceptance, rows, owner)
        best.add(owner[~is_harmed], rows[~is_harmed])


def _admitted(acceptance: Acceptance, crossings: Crossings, examined: Bools) -> tuple[Floats, Ints]:
    """Return the completed rows of some crossings that are admitted, and their factuals."""
    owner = crossings.owner[examined]
    rows = acceptance.complete(crossings.rows(np.flatnonzero(examined), acceptance.factuals), owner)
    may_be_returned = acceptance.admits(rows, owner)
    return rows[may_be_returned], owner[may_be_returned]


def _add_single(acceptance: Acceptance, rows: Floats, owner: Ints, best: Best) -> None:
    """Add the plausible rows among those with one change; the cheapest are judged first, so that most need not be."""
    keys = best.keys_of(owner, rows)
    order = np.lexsort((*keys.T[::-1], owner))
    place = np.arange(order.size) - np.searchsorted(owner[order], owner[order])
    for begin, end in pairwise(JUDGED):
        part = order[(begin <= place) & (place < end)]
        part = part[keys[part, -1] < best.bound(1)[owner[part]]]
        part = part[acceptance.plausible(rows[part], owner[part])]
        best.add(owner[part], rows[part], keys[part])


def _below_floor(acceptance: Acceptance, pools: Pools, which: Ints) -> tuple[Winners, Counts]:
    """Return pruned whole draws without the floor (step 3); those with a harmful change only if there is no other."""
    whole, counts = _whole_draws(acceptance, pools, which)
    rows, is_harmed = prune(acceptance, whole.rows, whole.owner, at_floor=False)
    best = Best(acceptance)
    best.add(whole.owner[~is_harmed], rows[~is_harmed])
    harmed_only = is_harmed & (best.count() == 0)[whole.owner]
    best.add(whole.owner[harmed_only], rows[harmed_only])
    return Winners.of(best.owner, best.rows, below_floor=True), counts
