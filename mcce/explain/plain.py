"""Plain search: the best valid whole draws of each factual (paper, section 2.3).

By default those with the fewest changes come first, then those with the smallest Gower distance, then earlier draws.
The paper removes the invalid rows first and ranks the rest. Validity is a filter and the order is total, so the same
rows win if the candidates are ranked first (`Ranking`) and the model is queried best-first (`Selector`):

1. Find the few best distinct candidates of every factual that still lacks counterfactuals.
2. Query the model for those not queried before, for all factuals at once. Factuals that share a pool share its
   predictions.
3. A factual is done when k of its candidates, in order, are valid; go back to 1 with more candidates for the others.
4. Factuals that are not done after 256 candidates are ranked in full, and queried in growing batches to the end.

`exhaustive` is the paper's procedure, kept as a check: the model is queried for all candidates, which are then ranked.
It is also required if the order itself depends on the model.

How candidates are ranked:

1. The kernel computes the distances of an ordering in one pass over the candidates. Gower's comes first if there are
   bounds: L0 and Gower's sum are the measures that can be bounded.
2. Other measures are computed before. Equal rows are measured once, so that they have equal keys even if the values of
   a user function differ in the last digit.
3. `first` returns the few first candidates of factuals, `full` all of one factual. Both leave out rows that are equal
   to an earlier one, and those beyond a bound. `best_of` ranks rows from several searches.

Distances are compared by their sums of steps, before a mean or a root is taken: the order is the same, without ties
caused by rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.progress import report, within
from mcce.distances.kernels import SCALED, CandidateBlocks, Keys, Top, measure_candidates, rank_candidates
from mcce.distances.measures import CHUNK, Distance, changed_columns, columnwise, gower, rowwise, stack
from mcce.explain.acceptance import Acceptance
from mcce.explain.draw import Candidates
from mcce.explain.order import DEFAULT, Measure, Ordering, resolve_measures
from mcce.explain.problem import POOL_BYTES
from mcce.explain.winners import Winners
from mcce.rng import hash_rows
from mcce.table import Feature


class Ranking:
    """Ranks candidates.

    Parameters
    ----------
    ordering : the order of candidates.
    features : the columns of factuals and pools.
    mutable : positions of the columns that candidates may change.
    pools, factuals : candidates, and their encoded factuals.
    max_changes, max_gower : bounds on L0 and on the Gower distance, one number or one for each factual; None for none.
    """

    def __init__(
        self,
        ordering: Ordering,
        features: tuple[Feature, ...],
        mutable: Ints,
        pools: Candidates,
        factuals: Floats,
        max_changes: npt.ArrayLike | None = None,
        max_gower: npt.ArrayLike | None = None,
    ) -> None:
        self.mutable = mutable
        self.pools = pools
        self.cells = columnwise(pools.rows)
        self.factuals = rowwise(factuals)
        bounded = max_changes is not None or max_gower is not None
        paper = gower(features)
        by_step = [m.function for m in ordering.measures if isinstance(m.function, Distance)]
        by_step = [d for d in by_step if not d.counts_changes]
        if bounded or not by_step:
            by_step = [paper, *(d for d in by_step if not d.adds_like(paper))]
        self.others = [m for m in ordering.measures if not isinstance(m.function, Distance)]
        # measures may coincide: Gower's sum counts changes if all columns are unordered levels
        places = dict.fromkeys(self._place(m, by_step) for m in ordering.measures)
        self.order = np.array(list(places), dtype=np.int64)
        self.n_values = 1 + len(by_step) + len(self.others)
        self.steps, self.tables = stack(by_step)
        self.plain = self._plain(by_step, features)
        self.limits = np.empty((0, factuals.shape[0]))
        if bounded:
            self.limits = np.full((2, factuals.shape[0]), np.inf)
            self.limits[0] = np.inf if max_changes is None else max_changes
            self.limits[1] = np.inf if max_gower is None else _largest_sum(np.asarray(max_gower), paper)
        self._of_factual: dict[int, Floats] = {}

    def first(self, which: Ints, most: int) -> tuple[Ints, Ints]:
        """Return the `most` first candidates of some factuals, one row per factual, and their numbers."""
        top = Top.room_for(self.n_values, which.size, most)
        keys = Keys(self.order, self.limits, self._given(which))
        rank_candidates(self._compared(which), self.steps, self.tables, keys, self._room(), top)
        return top.rows, top.n_rows

    def full(self, f: int) -> Ints:
        """Return all distinct candidates of one factual in order."""
        begin, end = self.pools.begin[f], self.pools.end[f]
        which, values = np.array([f]), np.empty((self.n_values, end - begin))
        n_measured = self.n_values - len(self.others)
        measure_candidates(self._compared(which), self.steps, self.tables, self._room(), values[:n_measured])
        if self.others:
            values[n_measured:] = self._given(which)
        within = np.all(values[: len(self.limits)] <= self.limits[:, f, None], axis=0)
        order = np.lexsort(values[self.order[::-1]])
        order = order[within[order]]
        if self.pools.distinct:
            return np.asarray(order + begin)
        repeated = pd.DataFrame(self.pools.rows[begin:end][order][:, self.mutable]).duplicated().to_numpy()
        return np.asarray(order[~repeated] + begin)

    def _compared(self, which: Ints) -> CandidateBlocks:
        pools = self.pools
        return CandidateBlocks(self.cells, pools.begin, pools.end, self.factuals, which, self.mutable, self.plain)

    def _room(self) -> Floats:
        return np.empty((self.n_values + 1, CHUNK))

    def _place(self, measure: Measure, by_step: list[Distance]) -> int:
        """Return the row of the kernel's values that holds a measure."""
        if not isinstance(measure.function, Distance):
            return 1 + len(by_step) + self.others.index(measure)
        if measure.function.counts_changes:
            return 0
        return 1 + next(
            i for i, d in enumerate(by_step) if d is measure.function or (i == 0 and d.adds_like(measure.function))
        )

    def _plain(self, by_step: list[Distance], features: tuple[Feature, ...]) -> npt.NDArray[np.bool_]:
        """Return by distance which columns hold scaled numbers or unordered levels without missing values."""
        complete = np.zeros(len(features), dtype=np.bool_)
        for j in self.mutable:
            complete[j] = not (np.isnan(self.cells[j].sum()) or np.isnan(self.factuals[:, j].sum()))
        unordered = np.array([f.kind == "categorical" for f in features], dtype=np.bool_)
        rows = [complete & (d.how == SCALED) & ((d.scale > 0) | unordered) & (not d.squared) for d in by_step]
        return np.stack(rows)

    def _given(self, which: Ints) -> Floats:
        """Return the other measures (step 2), one column for each candidate of each factual in `which`."""
        if not self.others:
            return np.empty((0, 0))
        parts = [np.stack([self._values(k, int(f)) for k in range(len(self.others))]) for f in which]
        return np.ascontiguousarray(np.concatenate([np.empty((len(self.others), 0)), *parts], axis=1))

    def _values(self, k: int, f: int) -> Floats:
        """Return one of the other measures for the candidates of a factual; the smallest is the best."""
        measure, begin, end = self.others[k], int(self.pools.begin[f]), int(self.pools.end[f])
        at = f * len(self.others) + k
        if at not in self._of_factual:
            self._of_factual[at] = self._measure(measure, self.pools.rows[begin:end], self.factuals[f])
        return self._of_factual[at]

    @staticmethod
    def _measure(measure: Measure, rows: Floats, factual: Floats) -> Floats:
        assert not isinstance(measure.function, Distance)
        if not rows.shape[0]:
            return np.empty(0)
        _, first, place = np.unique(hash_rows(rows), return_index=True, return_inverse=True)
        by_place = np.argsort(first)  # distinct rows in the order drawn
        back = np.empty_like(by_place)
        back[by_place] = np.arange(by_place.size)
        values = measure.function(rows[first[by_place]], factual)[back][place]
        return -values if measure.largest_first else values


def best_of(acceptance: Acceptance, found: Winners, k: int) -> Winners:
    """Return the best `k` distinct rows of each factual, factual by factual, by the order of the problem.

    With caution, rows with equally few changes are ordered by their cost (`mcce.explain.order`). Of equal rows, and on
    ties, the earlier row wins.
    """
    problem, owner = acceptance.problem, found.owner
    if problem.caution is not None and problem.caution.strength > 0.0:
        own = acceptance.matrix[owner]
        counted = acceptance.counted(found.rows, owner)
        n_changes = changed_columns(counted, own).sum(axis=1).astype(np.float64)
        near = acceptance.distance(found.rows, owner)
        cost = problem.caution.cost(problem.distance.sums(counted, own), near, found.scores)
        return found.take(best_by(owner, found.rows, (n_changes, cost), k))
    by_owner = np.argsort(owner, kind="stable")
    each = np.arange(len(acceptance))
    begin, end = (np.searchsorted(owner[by_owner], each, side=side) for side in ("left", "right"))
    k = min(k, int((end - begin).max(initial=1)))
    pools = Candidates(np.asfortranarray(found.rows[by_owner]), begin, end)
    ranking = Ranking(problem.order, problem.features, problem.mutable, pools, acceptance.matrix)
    first, n_first = ranking.first(each, k)
    return found.take(by_owner[first[np.arange(k) < n_first[:, None]]])


def best_by(owner: Ints, rows: Floats, keys: tuple[Floats, ...], k: int) -> Ints:
    """Return the positions of the best `k` distinct rows of each factual; the first key is the primary one.

    Ties go to the earlier row.
    """
    order = np.lexsort((np.arange(owner.size), *keys[::-1], owner))
    _, first = np.unique(hash_rows(np.column_stack([owner[order].astype(np.float64), rows[order]])), return_index=True)
    order = order[np.sort(first)]
    nth = np.arange(order.size) - np.searchsorted(owner[order], owner[order])
    return np.asarray(order[nth < k])


def _largest_sum(bound: Floats, distance: Distance) -> Floats:
    """Return the largest sum of steps whose mean is at most `bound`, to the last digit."""
    largest = np.asarray(bound * distance.divisor, dtype=np.float64)
    while (over := distance.finish(largest) > bound).any():
        largest = np.where(over, np.nextafter(largest, -np.inf), largest)
    while (under := (distance.finish(np.nextafter(largest, np.inf)) <= bound) & np.isfinite(largest)).any():
        largest = np.where(under, np.nextafter(largest, np.inf), largest)
    return largest


Query = Callable[[Floats], tuple[npt.NDArray[np.generic], Bools]]
Admit = Callable[[Ints], Bools]
Allow = Callable[[Ints, Ints], Bools]

ROUNDS = (8, 32, 256)  # ranked candidates of a factual after each round


class Selector:
    """Chooses the best `k` valid candidates of each factual.

    Parameters
    ----------
    features : the columns of factuals and pools.
    mutable : positions of the columns that candidates may change.
    query : function that returns (scores, wanted) for encoded rows.
    few : number of candidates in the first round if few of them are admitted; the small rounds are then skipped. 0 if
        most are admitted.
    """

    def __init__(self, features: tuple[Feature, ...], mutable: Ints, query: Query, few: int = 0) -> None:
        self.features = features
        self.mutable = mutable
        self.query = query
        self.few = few
        self.ordering = resolve_measures(DEFAULT, features)

    def select(
        self,
        pools: Candidates,
        factuals: Floats,
        k: npt.ArrayLike,
        *,
        exhaustive: bool = False,
        ordering: Ordering | None = None,
        max_changes: npt.ArrayLike | None = None,
        max_gower: npt.ArrayLike | None = None,
        admit: Admit | None = None,
        allow: Allow | None = None,
        score: Callable[[Ints], Floats] | None = None,
    ) -> Winners:
        """Return the best `k` valid distinct candidates of each factual (fewer where there are fewer).

        Parameters
        ----------
        pools, factuals : candidates, and their encoded factuals.
        k : number of candidates to choose, one number or one for each factual.
        exhaustive : whether the model is queried for every candidate; the result is the same.
        ordering : the order of candidates; None for (L0, Gower).
        max_changes, max_gower : bounds on L0 and on the Gower distance, one number or one for each factual. The model
            is not queried for candidates beyond them.
        admit : function that returns which of some candidates may be chosen, before the model is queried.
        allow : the same, for candidates and, as second argument, the positions of their factuals.
        score : function that returns the plausibility scores of some candidates; None for none.
        """
        ordering = ordering or self.ordering
        most = int((pools.end - pools.begin).max(initial=1))  # memory is allocated for k rows
        ks = np.minimum(np.broadcast_to(k, factuals.shape[0]), most)
        ranking = Ranking(ordering, self.features, self.mutable, pools, factuals, max_changes, max_gower)
        answers = _Answers(pools.rows, self.query, admit, allow)
        if exhaustive or ordering.cost == "model":
            answers.of(np.arange(pools.rows.shape[0]))
            taken = [_walk(ranking.full(f), f, answers, ks[f]) for f in range(factuals.shape[0])]
        else:
            taken = _best_first(ranking, ks, answers, self.few)
        owner = np.repeat(np.arange(len(taken)), [len(rows) for rows in taken])
        row = np.concatenate([*taken, np.empty(0, dtype=np.int64)]).astype(np.int64)
        plausibility = None if score is None else score(row)
        return Winners.chosen(owner, pools.rows[row], answers.scores_of(row), plausibility)


def _best_first(ranking: Ranking, k: Ints, answers: _Answers, few: int) -> list[Ints]:
    taken: list[Ints] = [np.empty(0, dtype=np.int64)] * k.size
    waiting = np.arange(k.size)
    for most in ROUNDS[-1:] if few else ROUNDS:
        limit = most + k[waiting] - 1
        found, n_found = ranking.first(waiting, int(limit.max(initial=1)))
        n_found = np.minimum(n_found, limit)
        known = np.arange(found.shape[1]) < n_found[:, None]
        known[known] = answers.allows(found[known], np.repeat(waiting, n_found))
        wanted = np.zeros(found.shape, dtype=bool)
        wanted[known] = answers.of(found[known])
        done = (n_found < limit) | (wanted.sum(axis=1) >= k[waiting])
        for w in np.flatnonzero(done):
            taken[waiting[w]] = found[w][wanted[w]][: k[waiting[w]]]
        waiting = waiting[~done]
        report(1 - waiting.size / max(k.size, 1))
        if waiting.size == 0:
            return taken
    return _rank_all(ranking, k, answers, taken, waiting, few)


def _rank_all(ranking: Ranking, k: Ints, answers: _Answers, taken: list[Ints], waiting: Ints, few: int) -> list[Ints]:
    """Rank all candidates of the remaining factuals, and query them in batches that grow fourfold (step 4)."""
    orders = {int(f): answers.allowed(ranking.full(int(f)), int(f)) for f in waiting}
    depth = ROUNDS[-1] + int(k[waiting].max()) + ROUNDS[-1] // 4
    while orders:
        if sum(order.size for order in orders.values()) <= few:
            depth = max(order.size for order in orders.values())
        answers.of(np.concatenate([order[:depth] for order in orders.values()]))
        for f, order in list(orders.items()):
            rows = order[:depth][answers.known(order[:depth])][: k[f]]
            if len(rows) == k[f] or depth >= len(order):
                taken[f] = rows
                del orders[f]
        report(1 - len(orders) / len(taken))
        depth *= 4
    return taken


def _walk(order: Ints, f: int, answers: _Answers, k: int) -> Ints:
    order = answers.allowed(order, f)
    return order[answers.of(order)][:k]


class _Answers:
    """The model's predictions for the rows of a pool, each queried once."""

    def __init__(self, rows: Floats, query: Query, admit: Admit | None, allow: Allow | None) -> None:
        self.rows = rows
        self.query = query
        self.admit = admit
        self.allow = allow
        self.state = np.full(rows.shape[0], -1, dtype=np.int8)  # -1 not queried, 0 not wanted, 1 wanted
        self.scores: dict[int, np.generic] = {}

    def of(self, which: Ints) -> Bools:
        """Return whether each of these rows has the wanted decision."""
        new = np.unique(which[self.state[which] < 0])
        if new.size and self.admit is not None:
            self.state[new] = 0
            new = new[self.admit(new)]
        if new.size:
            scores, wanted = self.query(self.rows[new])
            self.state[new] = wanted
            self.scores.update(zip(new[wanted].tolist(), scores[wanted]))
        return self.known(which)

    def allows(self, which: Ints, factuals: Ints) -> Bools:
        """Return whether each of these rows may be chosen for the factual at the same position."""
        return np.ones(which.size, dtype=bool) if self.allow is None else self.allow(which, factuals)

    def allowed(self, which: Ints, f: int) -> Ints:
        """Return those of some rows that may be chosen for one factual."""
        return which[self.allows(which, np.full(which.size, f))]

    def known(self, which: Ints) -> Bools:
        """Return whether each of these rows, queried before, has the wanted decision."""
        return np.asarray(self.state[which] == 1)

    def scores_of(self, which: Ints) -> npt.NDArray[np.generic]:
        """Return the scores of rows that have the wanted decision."""
        scores = [self.scores[row] for row in which.tolist()]
        return np.array(scores, dtype=type(scores[0]) if scores and isinstance(scores[0], np.generic) else object)


def whole_draws(acceptance: Acceptance, pools: Candidates) -> Winners:
    """Return the best valid draws of each factual."""
    problem, n = acceptance.problem, len(acceptance)
    if problem.relations is None:
        return _choose_drawn(acceptance, pools)
    n_draws = int((pools.end - pools.begin).max(initial=1))
    at_once = max(1, POOL_BYTES // (8 * n_draws * pools.rows.shape[1]))  # factuals whose draws are completed together
    parts = []
    for first in range(0, n, at_once):
        some = np.arange(first, min(first + at_once, n))
        report(first / n)
        separate, owner = pools.separate(some)
        completed = np.asfortranarray(acceptance.complete(separate.rows, owner))
        with within(first / n, (some[-1] + 1) / n):
            mine = _choose_drawn(acceptance.take(some), replace(separate, rows=completed))
            parts.append(mine.of_factuals(some))
    return Winners.join(parts)


def _choose_drawn(acceptance: Acceptance, pools: Candidates) -> Winners:
    problem, settings = acceptance.problem, acceptance.problem.settings
    # factuals may not allow all rows of a shared pool, and a generator need not draw within constraints
    return Selector(problem.features, problem.mutable, acceptance.query).select(
        pools,
        acceptance.matrix,
        settings.n_counterfactuals,
        exhaustive=settings.exhaustive,
        ordering=problem.order,
        max_changes=settings.max_changes,
        max_gower=settings.max_gower,
        allow=None if acceptance.admits_all else lambda which, owner: acceptance.admits(pools.rows[which], owner),
    )
