"""The published method (paper, section 2.3): the best valid draws of each factual.

The paper removes the invalid draws and ranks the rest by changes, then Gower distance, then draw index. The order is
total, so ranking first and querying best-first gives the same rows for a few queries: the 8, then 64, 512, ... first
draws of all factuals are ranked, those that may not be returned are left out, and the model is queried for the rest
together, until each factual has k valid draws or none is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcce._utils import Bools, Floats, Ints
from mcce.explain.acceptance import Acceptance
from mcce.explain.draw import Pools
from mcce.explain.kernels import nearest_draws
from mcce.explain.winners import Winners
from mcce.rng import hash_rows

FIRST, GROWTH = 8, 8  # draws ranked in the first round, and how many times as many in each further one
MOST_KEPT_SORTED = 512  # draws that the kernel keeps in order; more are sorted by numpy


@dataclass(frozen=True)
class Counts:
    """What became of the draws of each factual whose draws were all examined; 0 for the others."""

    drawn: Ints
    allowed: Ints
    plausible: Ints
    valid: Ints

    @classmethod
    def zeros(cls, n_factuals: int) -> Counts:
        """Return counts of 0."""
        return cls(*np.zeros((4, n_factuals), dtype=np.int64))

    def write(self, members: Ints, counts: Counts) -> None:
        """Write the counts of some factuals."""
        for count, of_members in zip(vars(self).values(), vars(counts).values()):
            count[members] = of_members


def search_plain(acceptance: Acceptance, pools: Pools) -> tuple[Winners, Counts]:
    """Return the k best valid draws of each factual (fewer where there are fewer), and counts of the draws."""
    return first_valid(acceptance, completed(acceptance, pools), acceptance.problem.k)


def completed(acceptance: Acceptance, pools: Pools) -> Pools:
    """Return pools with derived columns and equations computed, which depend on the factual: none is shared then."""
    if not (acceptance.problem.relations or acceptance.problem.derived):
        return pools
    sizes = pools.end - pools.begin
    ends = np.cumsum(sizes)
    owner = np.repeat(np.arange(len(acceptance)), sizes)
    draws = np.arange(owner.size) - np.repeat(ends - sizes, sizes) + np.repeat(pools.begin, sizes)
    cells = acceptance.complete(pools.rows(draws), owner).T
    return Pools(np.require(cells, np.float64, ["C"]), ends - sizes, ends)


def first_valid(acceptance: Acceptance, pools: Pools, k: int, *, at_floor: bool = False) -> tuple[Winners, Counts]:
    """Return the first k draws of each factual that may be returned, at the floor if asked for, and counts."""
    n = len(acceptance)
    ranking = Ranking(acceptance, pools)
    wanted = np.full(pools.cells.shape[1], -1, dtype=np.int8)  # of each draw: -1 not queried yet, else 0 or 1
    counts = Counts.zeros(n)
    owners, chosen = [], []
    unfinished, most = np.arange(n), FIRST + k - 1
    while unfinished.size:
        draws, is_ranked = ranking.first(unfinished, most)
        owner = np.broadcast_to(unfinished[:, None], draws.shape)[is_ranked]
        rows = pools.rows(draws[is_ranked])
        is_allowed = acceptance.admits(rows, owner)
        asked = np.unique(draws[is_ranked][is_allowed])
        asked = asked[wanted[asked] < 0]
        if asked.size:
            wanted[asked] = acceptance.query(pools.rows(asked)).wanted
        is_wanted = is_allowed & (wanted[draws[is_ranked]] == 1)
        if at_floor:
            is_wanted[is_wanted] = acceptance.plausible(rows[is_wanted], owner[is_wanted])
        is_valid = np.zeros(draws.shape, dtype=bool)
        is_valid[is_ranked] = is_wanted
        is_chosen = is_valid & (np.cumsum(is_valid, axis=1) <= k)
        is_exhausted = is_ranked.sum(axis=1) < most
        is_done = is_exhausted | (is_chosen.sum(axis=1) == k)
        owners.append(np.repeat(unfinished[is_done], is_chosen[is_done].sum(axis=1)))
        chosen.append(draws[is_done][is_chosen[is_done]])
        members = unfinished[is_exhausted]
        counts.drawn[members] = (pools.end - pools.begin)[members]
        counts.allowed[members] = np.bincount(owner[is_allowed], minlength=n)[members]
        counts.plausible[members] = counts.allowed[members]  # factuals without a row were searched without a floor
        counts.valid[members] = is_valid[is_exhausted].sum(axis=1)
        unfinished, most = unfinished[~is_done], most * GROWTH
    owner = np.concatenate([np.empty(0, dtype=np.int64), *owners])
    rows = pools.rows(np.concatenate([np.empty(0, dtype=np.int64), *chosen]))
    return Winners.join([Winners.of(owner, rows)], pools.cells.shape[0]), counts


class Ranking:
    """The draws of each factual in order: by the measures, then by index. Of equal draws only the first counts."""

    def __init__(self, acceptance: Acceptance, pools: Pools) -> None:
        self.acceptance = acceptance
        self.pools = pools
        self._orders: dict[int, Ints] = {}

    def first(self, which: Ints, most: int) -> tuple[Ints, Bools]:
        """Return the `most` first draws of some factuals, a row for each, and which entries are draws."""
        most = min(most, int((self.pools.end - self.pools.begin)[which].max(initial=0)) + 1)
        if self.acceptance.problem.measures is None and most <= MOST_KEPT_SORTED:
            return self._nearest(which, most)
        orders = [self._order(int(f))[:most] for f in which]
        draws = np.zeros((which.size, most), dtype=np.int64)
        is_ranked = np.arange(most) < np.array([order.size for order in orders])[:, None]
        draws[is_ranked] = np.concatenate([np.empty(0, dtype=np.int64), *orders])
        return draws, is_ranked

    def _nearest(self, which: Ints, most: int) -> tuple[Ints, Bools]:
        problem, pools = self.acceptance.problem, self.pools
        draws, n_draws = np.zeros((which.size, most), dtype=np.int64), np.empty(which.size, dtype=np.int64)
        nearest_draws(
            pools.cells,
            pools.begin[which],
            pools.end[which],
            self.acceptance.factuals[which],
            problem.counted,
            problem.gower.scale,
            problem.constraints.may_become_missing,
            float(problem.max_changes),
            float(problem.max_steps),
            draws,
            n_draws,
        )
        return draws, np.arange(most) < n_draws[:, None]

    def _order(self, f: int) -> Ints:
        """Return all distinct draws of a factual in order."""
        if f not in self._orders:
            begin, end = int(self.pools.begin[f]), int(self.pools.end[f])
            rows = self.pools.rows(np.arange(begin, end))
            order = np.lexsort(self._keys(rows, f)[::-1])
            _, first = np.unique(hash_rows(rows)[order], return_index=True)
            self._orders[f] = begin + order[np.sort(first)]
        return self._orders[f]

    def _keys(self, rows: Floats, f: int) -> list[Floats]:
        acceptance, owner = self.acceptance, np.full(len(rows), f)
        measures = acceptance.problem.measures
        if measures is None:
            return [acceptance.changes(rows, owner).sum(axis=1), acceptance.steps(rows, owner)]
        factuals = acceptance.factuals[owner]
        counted = acceptance.problem.derived.reset(rows, factuals)
        return [measure.function(counted, factuals) for measure in measures]
