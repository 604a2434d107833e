"""Sparse counterfactuals: few changes, each to a value that was drawn, and rows at or above a floor of plausibility.

1. Cross the draws of each factual's pool with the factual (`mcce.explain.crossing`): single features first, then
   pairs and triples from one draw, the nearest of them; sets of every size where these are few.
2. Choose among the crossed rows as among any candidates: they are ordered by the measures. Rows below the floor, and on
   request copies of training rows, are rejected before the model is queried best-first. If the order counts changes
   first, a factual is done with the first size that has enough valid rows, unless a whole draw changes less; otherwise
   every size takes part.
3. If that is not enough, refine the best valid draws at or above the floor (`mcce.explain.refine`).
4. If no crossing and no draw is both valid and at or above the floor, refine the most plausible valid draws. Such a row
   may only become more plausible. It is returned, marked as below the floor, only if no row of its factual reaches the
   floor.
5. In the default order, rows with equally few changes are compared by their cost, which combines the distance with the
   distances from the edges of the data and of the decision (`mcce.explain.order`). The distance is a lower bound of the
   cost. Crossings are examined in order of distance until it reaches the best cost: the search is exact, and the model
   is queried for few rows.
6. Every change is needed: changes without which the row is still valid and at or above the floor are reverted. Rows in
   which a change makes the decision worse are returned only for factuals that have no other row at or above the floor:
   such a change makes the row plausible. `mcce.explain.pipeline` searches again for these factuals, and for those whose
   rows have another reason not to be sent, within limits (step 9). This applies if the order consists of distances;
   user-defined measures are applied as they are.
7. Relations between columns hold in every row (`mcce.plausibility.relations`): columns that others determine are
   computed from these wherever a row is made, and change with them; rows that break another relation are rejected.
8. A caller may reject rows (`Reject`). They are skipped like rows below the floor, and so are rows that without one of
   their changes are valid and rejected, since that change is not needed for the decision.
9. A search may be limited to some values and to a number of changes (`mcce.explain.crossing.Limits`). Crossings with
   another value are skipped; draws get the factual's values instead of these, and are refined if they have at most
   `MOST_REVERTED` changes too many. Step 4 is omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.progress import Shares, within
from mcce.base.threads import run_in_threads
from mcce.distances.measures import Distance, changed_columns, columnwise
from mcce.explain.acceptance import Acceptance
from mcce.explain.crossing import ChangedCells, Crossings, NearestCrossings, Thinning
from mcce.explain.draw import Candidates
from mcce.explain.order import Measure, Ordering
from mcce.explain.plain import Admit, Selector, best_by, best_of
from mcce.explain.refine import WRITTEN_TOGETHER, Refiner, Reject, drop_harmful, judge_changes, ranges, rows_without_one
from mcce.explain.winners import Winners

NEAREST = 512  # examined crossings of several features, for each number of features
LARGEST_SET = 3  # most features crossed at once if not all sets can be tried
ALL_CROSSINGS = 8192  # if a pool has at most this many crossings of all sizes, all are tried
# Crossings are examined in turns, in order of distance. The model is queried for one turn, or for several if the later
# ones have few crossings: a query costs as much as some hundred rows, and few rows of the next turns are unneeded.
MOST_IN_TURN = 256  # most crossings of a factual in a turn
MOST_IN_QUERY = 4096  # most crossings of later turns in a query
MOST_JUDGED_TOGETHER = 512  # most crossings whose changes are judged without knowing which are valid
DRAWS_AT_ONCE = 16_384  # whole draws that are examined at once; few are at or above the floor
MOST_REVERTED = 3  # most changes above a limit of a draw that is refined
STARTS = 4  # fewest draws that are refined
STARTS_AFTER_HARM = 32  # if every crossing at or above the floor has a change that makes the decision worse
CROSSED_BYTES = 64 * 2**20  # memory for crossed rows
SEARCHED_TOGETHER = 64, 1024  # fewest and most factuals of one thread; with few, queries are small
MORE_CHANGES = 1e6  # cost of a further change, if tied columns change together
REFINED_TOGETHER = 4  # searches whose rows are refined together


class SparseSearch:
    """The search among crossings of draws with factuals.

    Parameters
    ----------
    acceptance : which rows may be returned, for which factuals.
    reject : function that rejects rows (step 8); None for none.

    The search may use several threads; the result does not depend on their number.
    """

    def __init__(self, acceptance: Acceptance, reject: Reject | None = None) -> None:
        problem = acceptance.problem
        self.acceptance, self.problem, self.caution = acceptance, problem, acceptance.caution
        self.reject = reject
        self.least, self.farthest = problem.least, self.caution.plausibility.farthest(problem.least)
        self.searched = problem.mutable
        if problem.relations is not None:
            self.searched = problem.mutable[~np.isin(problem.mutable, problem.relations.determined)]
        self.numbers = np.array([j for j in self.searched if problem.features[j].is_numeric], dtype=np.int64)
        self.distance = problem.distance
        self.changes_first = _counts_changes(problem.order.measures[0])
        self.by_distance = problem.order.is_of_distances

    def search(self, pools: Candidates, k: int) -> Winners:
        """Return the best `k` counterfactuals of each factual, fewer where there are fewer."""
        n = len(self.acceptance)
        least, most = SEARCHED_TOGETHER
        threads = self.problem.threads if self.problem.order.is_thread_safe else 1
        size = max(least, min(most, -(-n // threads)))
        done = Shares(2 * n)
        near = NearestCrossings(columnwise(pools.rows), self.searched, self.distance)

        if n > size:
            _ = self.acceptance.own  # computed once for all parts

        def some(begin: int, end: int) -> tuple[Acceptance, Candidates]:
            if n <= size:
                return self.acceptance, pools
            mine = slice(begin, end)
            return self.acceptance.take(mine, apart=True), pools.take(mine)

        def cross(begin: int) -> tuple[Winners, Bools]:
            found, is_start = self.cross(*some(begin, begin + size), near, k, done.add)
            return found.counted_from(begin), is_start

        def refine(first: int) -> tuple[Winners, Acceptance]:
            begin, end = first * size, (first + REFINED_TOGETHER) * size
            parts, are_starts = zip(*crossed[first : first + REFINED_TOGETHER])
            found = Winners.join(parts).counted_from(-begin)
            acceptance, mine = some(begin, end)
            refined = self.refine(found, np.concatenate(are_starts), acceptance, mine, k).counted_from(begin)
            done.add(min(end, n) - begin)
            return refined, acceptance

        with within(0.0, 0.0):  # progress is reported by `done`
            crossed = list(run_in_threads(cross, range(0, max(n, 1), size), threads, "searching", False))
            begins = range(0, len(crossed), REFINED_TOGETHER)
            refined = list(run_in_threads(refine, begins, threads, "searching", False))
        for _, acceptance in refined:  # later steps query the same rows; predictions for crossings would be too many
            self.acceptance.remember(acceptance)
        return Winners.join([winners for winners, _ in refined])

    def cross(
        self,
        acceptance: Acceptance,
        pools: Candidates,
        near: NearestCrossings,
        k: int,
        advance: Callable[[float], None],
    ) -> tuple[Winners, Bools]:
        """Return valid rows of each factual (steps 1 and 2), and which are to be refined (steps 3 and 4).

        Rows in which a change makes the decision worse do not count towards `k`.

        `advance` is called with the number of further factuals that have enough of them.
        """
        n, limits = len(acceptance), acceptance.limits
        n_found = np.zeros(n, dtype=np.int64)
        has_harmed = np.zeros(n, dtype=bool)
        done_at = np.zeros(n, dtype=np.int64)  # the size of the crossings that were enough
        parts: list[Winners] = []
        are_starts: list[Bools] = []  # refined together

        def waiting() -> Ints:
            return np.flatnonzero(n_found < k) if self.changes_first else np.arange(n)

        for size in range(1, self.searched.size + 1):
            left = waiting()
            if limits is not None:
                left = left[limits.most[left] >= size]
            if not left.size:
                break
            for part, complete, harmed in self._choose_crossed(pools, near, acceptance, left, size, k):
                parts.append(part)
                # if crossings were skipped, refinement may find nearer ones
                are_starts.append(~complete)
                before = int((n_found >= k).sum())
                np.add.at(n_found, part.owner[~harmed], 1)
                has_harmed[part.owner[harmed]] = True
                advance(int((n_found >= k).sum()) - before)
            done_at[(n_found >= k) & (done_at == 0)] = size
        advance(int((n_found < k).sum()))
        n_columns = len(self.problem.features)
        most = np.where(done_at > 0, done_at - 1, n_columns) if self.changes_first else np.full(n, n_columns)
        if limits is not None:
            most = np.minimum(most, limits.most + MOST_REVERTED)
        for part in self._choose_drawn(pools, acceptance, most, n_found == 0, has_harmed, k):
            parts.append(part)
            are_starts.append(np.isin(part.owner, waiting()))
        return Winners.join(parts), np.concatenate(are_starts)

    def refine(self, found: Winners, is_start: Bools, acceptance: Acceptance, pools: Candidates, k: int) -> Winners:
        """Return the best of the rows found and of the refined versions of some of them.

        Refined rows may coincide, so their starting points take part as well.
        """
        refiner = Refiner(acceptance, self.numbers)
        settled = refiner.revert(found.take(is_start))
        moved = refiner.move_numbers(settled, pools, k if self.changes_first else None)
        joined = Winners.join([found, moved])
        if self.by_distance:
            joined = _revert(refiner, joined, is_start, settled)
        joined = joined.take(acceptance.within_bounds(joined.rows, joined.owner))
        joined = joined.prefer(joined.plausibility >= self.least)
        if self.by_distance:
            joined = drop_harmful(acceptance, joined)
        if self.reject is not None:
            joined = joined.take(~self.reject(joined.rows, acceptance.matrix[joined.owner]))
            needed, harmed, _ = judge_changes(acceptance, joined, self.reject)
            joined = joined.take(needed & ~harmed)
        return best_of(acceptance, joined, k)

    def _choose_crossed(
        self, pools: Candidates, near: NearestCrossings, acceptance: Acceptance, which: Ints, size: int, k: int
    ) -> Iterator[tuple[Winners, Bools, Bools]]:
        """Yield the best crossings of one size (steps 1 and 2).

        Also yield for which factuals all crossings were examined, and in which rows a change makes the decision worse.
        """
        for made in self._cross(pools, near, acceptance, which, size):
            crossed = ChangedCells.read(made, near)
            choose = self._cheapest if self.caution.strength > 0.0 else self._first
            found, harmed = choose(crossed, acceptance, size, k)
            complete = crossed.complete[found.owner] | (size == 1)
            found = found.of_factuals(crossed.members)
            if size == 1 and self.caution.strength == 0.0:
                found = Refiner(acceptance, self.numbers).try_skipped_values(found, pools)
            yield found, complete, harmed

    def _first(self, crossed: ChangedCells, acceptance: Acceptance, size: int, k: int) -> tuple[Winners, Bools]:
        """Return the first valid and plausible crossings of one size, by the order of the problem.

        Also return in which rows a change makes the decision worse. Owners are positions among `crossed.members`.
        """
        members, settings = crossed.members, self.problem.settings
        rows = self._rows(crossed, np.arange(crossed.of.size), acceptance)
        score, admit = self._scoring(rows, crossed.of, acceptance)
        chosen = self._selector(acceptance).select(
            Candidates(rows, crossed.begin, crossed.end, distinct=True),
            acceptance.matrix[members],
            k,
            ordering=self.problem.order,
            max_changes=settings.max_changes,
            max_gower=settings.max_gower,
            admit=admit,
            score=score,
        )
        if size == 1 or not self.by_distance:
            return chosen, np.zeros(chosen.owner.size, dtype=bool)
        needed, harmed, less = judge_changes(acceptance, chosen.of_factuals(members), self.reject)
        chosen = Winners.join([chosen.take(needed), less.of_factuals(chosen.owner)])
        return chosen, np.append(harmed[needed], np.zeros(less.owner.size, dtype=bool))

    def _cross(
        self, pools: Candidates, near: NearestCrossings, acceptance: Acceptance, which: Ints, size: int
    ) -> Iterator[list[Crossings]]:
        """Yield the crossings of factuals, as many at a time as fit in memory."""
        made: list[Crossings] = []
        held, limits = 0, acceptance.limits
        for begin, end, members in pools.pools(which):
            n_draws = end - begin
            few = n_draws * 2.0**self.searched.size <= ALL_CROSSINGS
            if size > LARGEST_SET and not few:
                continue
            tuples = near.tuples(begin, n_draws, size)
            if tuples is None:
                continue
            most = tuples.draws.size if size == 1 or few else NEAREST
            pool = pools.rows[begin:end]
            factuals = acceptance.matrix[members]
            thinning = Thinning(pool, self.searched, tuples, self.numbers, factuals) if size == 1 else None
            for i, f in enumerate(members):
                values = None if limits is None else (limits.low[f], limits.high[f])
                crossings = near.find(int(f), factuals[i], begin, n_draws, tuples, most, values)
                if thinning is not None:
                    crossings = crossings.take(thinning.keeps(i, crossings.chosen))
                made.append(crossings)
                held += made[-1].chosen.size
                if self._fill_memory(held, len(made), size):
                    yield made
                    made, held = [], 0
        if made:
            yield made

    def _fill_memory(self, n_crossings: int, n_factuals: int, size: int) -> bool:
        """Return whether the crossings of some factuals fill the memory."""
        n_columns = len(self.problem.features)
        if self.caution.strength == 0.0:
            return 8 * n_crossings * n_columns > CROSSED_BYTES
        written = min(n_crossings, n_factuals * MOST_IN_TURN)
        return 8 * (written * n_columns + n_crossings * (2 * size + 3)) > CROSSED_BYTES

    def _cheapest(self, crossed: ChangedCells, acceptance: Acceptance, size: int, k: int) -> tuple[Winners, Bools]:
        """Return the valid and plausible crossings of one size with the least costs (step 5).

        Also return in which rows a change makes the decision worse. Owners are positions among `crossed.members`.
        """
        n = crossed.members.size
        owner = np.repeat(np.arange(n), crossed.end - crossed.begin)
        least = self._least_costs(crossed, acceptance, size)
        order = np.concatenate([a + np.argsort(least[a:b], kind="stable") for a, b in zip(crossed.begin, crossed.end)])
        ends = _turns(int((crossed.end - crossed.begin).max()))
        place = np.empty(order.size, dtype=np.int64)  # in the order
        place[order] = np.arange(order.size)
        at, most = crossed.begin.copy(), np.full(n, np.inf)  # the next crossing, and the cost to undercut
        nothing = Winners.none(np.empty(0), acceptance.matrix.shape[1])
        reported = {"cost": np.empty(0), "harmed": np.empty(0, dtype=bool), "turn": np.empty(0, dtype=np.int64)}
        held = replace(nothing, reported=reported)
        fewer: list[Winners] = []
        unjudged = held  # valid rows whose changes are judged after the next query; their factuals wait
        while True:
            left = np.flatnonzero(at < crossed.end)
            left = left[(least[order[at[left]]] < most[left]) & ~np.isin(left, unjudged.owner)]
            if not left.size and not unjudged.owner.size:
                break
            stop = _stops(at[left], crossed.begin[left], crossed.end[left], ends)
            some = order[ranges(at[left], stop)]
            at[left] = stop
            some = some[least[some] < most[owner[some]]]
            far = self.caution.farthest(least[some], most[owner[some]])
            some = self._screen(crossed, some, acceptance, far)
            if not some.size and not unjudged.owner.size:
                continue
            rows = self._rows(crossed, some, acceptance)
            at_once = size == 1 or some.size <= MOST_JUDGED_TOGETHER
            also = [rows_without_one(acceptance, unjudged.rows, crossed.members[unjudged.owner])]
            if size > 1 and at_once:
                also.append(rows_without_one(acceptance, rows, crossed.of[some]))
            valid = self._query_costs(rows, crossed.of[some], acceptance, least[some], also)
            chosen = some[valid.owner]
            turn = np.searchsorted(ends, place[chosen] - crossed.begin[owner[chosen]], side="right")
            valid = replace(valid, reported={**valid.reported, "turn": turn}).of_factuals(owner[some])
            valid = valid.take(valid.reported["cost"] < most[valid.owner])
            known = Winners.join([unjudged, valid]) if at_once else unjudged
            unjudged = valid.take(slice(0 if at_once else None))
            for each in np.unique(known.reported["turn"]):
                new = known.take((known.reported["turn"] == each) & (known.reported["cost"] < most[known.owner]))
                if size > 1 and new.owner.size:
                    needed, harmed, less = judge_changes(acceptance, new.of_factuals(crossed.members), self.reject)
                    fewer.append(less.of_factuals(new.owner))
                    new = replace(new, reported={**new.reported, "harmed": harmed}).take(needed)
                held = Winners.join([held, new])
                group = held.owner + n * held.reported["harmed"]  # rows with a harmful change are ranked separately
                best = best_by(group, held.rows, (held.reported["cost"],), k)
                held, group = held.take(best), group[best]
                last = (np.arange(group.size) - np.searchsorted(group, group) == k - 1) & ~held.reported["harmed"]
                most[group[last]] = held.reported["cost"][last]
        n_fewer = sum(part.owner.size for part in fewer)
        harmed = np.append(held.reported["harmed"], np.zeros(n_fewer, dtype=bool))
        return Winners.join([replace(held, reported={}), *fewer]), harmed

    def _least_costs(self, crossed: ChangedCells, acceptance: Acceptance, size: int) -> Floats:
        """Return a lower bound of the cost of each crossing: its steps; inf for crossings beyond a bound."""
        of, settings, relations = crossed.of, self.problem.settings, self.problem.relations
        steps = crossed.steps.copy()
        is_computed = relations is not None and relations.computed
        if not is_computed and settings.max_changes is None and settings.max_gower is None:
            return steps
        for first in range(0, of.size, WRITTEN_TOGETHER):
            some = np.arange(first, min(first + WRITTEN_TOGETHER, of.size))
            rows, own = self._rows(crossed, some, acceptance), acceptance.matrix[of[some]]
            within = acceptance.within_bounds(rows, of[some])
            rows = acceptance.counted(rows, of[some])
            more = changed_columns(rows, own).sum(axis=1) - size  # columns that relations determine
            steps[some] = np.where(within, self.distance.sums(rows, own) + MORE_CHANGES * more, np.inf)
        return steps

    def _query_costs(
        self, rows: Floats, of: Ints, acceptance: Acceptance, steps: Floats, also: list[Floats]
    ) -> Winners:
        """Return the valid ones of some crossings, with their costs; owners are positions among `rows`.

        The query includes the rows of `also`, which are needed later.
        """
        scores, wanted = acceptance.query(np.concatenate([rows, *also]))
        place = np.flatnonzero(wanted[: of.size])
        rows, scores, of = rows[place], scores[place], of[place]
        near, origins = acceptance.distance(rows, of), acceptance.origins[of]
        cost = self.caution.cost(steps[place], near, scores)
        cells = acceptance.scale.inner(rows, acceptance.fold[of], origins)
        valid = Winners.chosen(place, rows, scores, acceptance.scale.join(cells, near, origins))
        return replace(valid, reported={"cost": cost, "harmed": np.zeros(place.size, dtype=bool)})

    def _rows(self, crossed: ChangedCells, some: Ints, acceptance: Acceptance) -> Floats:
        """Return some crossings as rows, with the columns that relations determine computed."""
        rows = crossed.rows(some, acceptance.matrix)
        return acceptance.complete(rows, crossed.of[some])

    def _screen(self, crossed: ChangedCells, some: Ints, acceptance: Acceptance, far: Floats) -> Ints:
        """Return which of some crossings are admitted, at or above the floor and near enough.

        `far` is the largest distance of each from real rows. Most are much nearer, so a bound on the distance suffices.
        """
        rows, of = self._rows(crossed, some, acceptance), crossed.of[some]
        admitted = self._admits(rows, of, acceptance)
        if not admitted.all():
            some, rows, of, far = some[admitted], rows[admitted], of[admitted], far[admitted]
        return some[self._reach_floor(rows, of, acceptance, far)]

    def _reach_floor(self, rows: Floats, of: Ints, acceptance: Acceptance, far: Floats | float = np.inf) -> Bools:
        """Return which rows are at or above the floor and at most `far` from real rows."""
        fold, far = acceptance.fold[of], np.minimum(far, np.maximum(self.farthest, acceptance.own.distance[of]))
        return acceptance.scale.reach(rows, fold, acceptance.origins[of], self.least, far)

    def _scoring(
        self, rows: Floats, of: Ints, acceptance: Acceptance, least: float | None = None
    ) -> tuple[Callable[[Ints], Floats], Admit | None]:
        """Return functions of positions among candidates of the factuals `of`: plausibility scores, and which may win.

        Constraints are checked first, then the cells, then the distance to real rows, which is the most expensive.
        """
        least = self.least if least is None else least

        def score(some: Ints) -> Floats:
            return acceptance.plausibility(rows[some], of[some])

        def admit(some: Ints) -> Bools:
            admitted = self._admits(rows[some], of[some], acceptance)
            if least > -np.inf:
                likely = some[admitted]
                admitted[admitted] = self._reach_floor(rows[likely], of[likely], acceptance)
            return admitted

        needless = least == -np.inf and acceptance.admits_all and self.reject is None
        return score, None if needless else admit

    def _admits(self, rows: Floats, of: Ints, acceptance: Acceptance) -> Bools:
        """Return which rows are admitted for the factuals `of` and not rejected by the caller."""
        admitted = acceptance.admits(rows, of)
        return admitted if self.reject is None else admitted & ~self.reject(rows, acceptance.matrix[of])

    def _choose_drawn(
        self, pools: Candidates, acceptance: Acceptance, most: Ints, nothing: Bools, has_harmed: Bools, k: int
    ) -> Iterator[Winners]:
        """Yield the best valid draws with at most `most` changes.

        They are refined (steps 3 and 4), or have fewer changes than the chosen crossings, some of which may have been
        skipped. `nothing` says which factuals have no crossing without a harmful change, `has_harmed` which have one
        with such a change.
        """
        at_once, which = self._batch_size(pools), np.flatnonzero(most > 0)
        for first in range(0, which.size, at_once):
            members = which[first : first + at_once]
            n_starts = np.maximum(k, np.where((nothing & has_harmed)[members], STARTS_AFTER_HARM, STARTS))
            starts = self._starts(pools, acceptance, members, n_starts, plausible=True, most=most[members])
            yield starts
            without = members[(nothing & ~has_harmed)[members] & ~np.isin(members, starts.owner)]
            if without.size and self.least > -np.inf and acceptance.limits is None:
                yield self._starts(pools, acceptance, without, max(k, STARTS), plausible=False)

    def _batch_size(self, pools: Candidates) -> int:
        """Return the number of factuals whose draws fit in memory."""
        n_draws = int((pools.end - pools.begin).max(initial=1))
        return int(max(1, CROSSED_BYTES // (8 * n_draws * pools.rows.shape[1])))

    def _starts(
        self,
        pools: Candidates,
        acceptance: Acceptance,
        members: Ints,
        k: Ints | int,
        *,
        plausible: bool,
        most: Ints | None = None,
    ) -> Winners:
        """Return the best `k` valid draws of some factuals: at or above the floor, or else the most plausible ones.

        With `most`, only draws with at most `most` changes; if it is less than the number of columns, also without
        missing values where the factual has a value.
        """
        separate, owner = pools.separate(members)
        rows = separate.rows
        if acceptance.limits is not None:
            rows = acceptance.limits.apply(rows, acceptance.matrix, owner)
        rows = np.asfortranarray(acceptance.complete(rows, owner))
        ordering = self.problem.order if plausible else self._by_plausibility()
        score, admit = self._scoring(rows, owner, acceptance, self.least if plausible else -np.inf)
        bounded = np.zeros(len(acceptance), dtype=bool)
        bounded[members] = False if most is None else most < rows.shape[1]

        def keep_known(some: Ints) -> Bools:
            kept = np.asarray((np.isnan(rows[some]) <= np.isnan(acceptance.matrix[owner[some]])).all(axis=1))
            kept |= ~bounded[owner[some]]
            if admit is not None:
                kept[kept] = admit(some[kept])
            return kept

        chosen = Selector(self.problem.features, self.problem.mutable, acceptance.query, DRAWS_AT_ONCE).select(
            replace(separate, rows=rows),
            acceptance.matrix[members],
            k,
            ordering=ordering,
            max_changes=most if bounded.any() else None,
            admit=keep_known if bounded.any() else admit,
            score=score,
        )
        return chosen.of_factuals(members)

    def _by_plausibility(self) -> Ordering:
        most_plausible = Measure("plausibility", self.caution.plausibility.of_candidates, "density", largest_first=True)
        return Ordering((most_plausible, *self.problem.order.measures))

    def _selector(self, acceptance: Acceptance) -> Selector:
        return Selector(self.problem.features, self.problem.mutable, acceptance.query)


def _stops(at: Ints, begin: Ints, end: Ints, ends: Ints) -> Ints:
    """Return where a query ends that begins at `at`: after one turn, or more if these have few crossings."""
    turn = np.searchsorted(ends, at - begin, side="right")
    stop = first = np.minimum(begin + ends[turn], end)
    while (stop < end).any():
        turn = np.minimum(turn + 1, ends.size - 1)
        later = np.minimum(begin + ends[turn], end)
        if (later - first).sum() > MOST_IN_QUERY:
            break
        stop = later
    return stop


def _turns(n_crossings: int) -> Ints:
    """Return the ends of the turns in which crossings are examined, each twice as long up to `MOST_IN_TURN`."""
    sizes = [12, 24, 48, 96, 192, *[MOST_IN_TURN] * (n_crossings // MOST_IN_TURN)]
    return np.cumsum(sizes)


def _counts_changes(measure: Measure) -> bool:
    return isinstance(measure.function, Distance) and measure.function.counts_changes


def _revert(refiner: Refiner, joined: Winners, is_start: Bools, settled: Winners) -> Winners:
    """Return rows without unneeded changes (step 6): those found, of which some are starts, and those moved.

    The results are known for the starts (`settled`), and for the rows that did not move from there.
    """
    n = is_start.size
    joined = joined.with_others(np.flatnonzero(is_start), settled)
    moved = changed_columns(joined.rows[n:], settled.rows).any(axis=1)
    left = np.flatnonzero(np.concatenate([~is_start, moved]))
    return joined.with_others(left, refiner.revert(joined.take(left)))


def crossed_draws(acceptance: Acceptance, pools: Candidates, reject: Reject | None = None) -> Winners:
    """Return the best valid crossings of the draws with the factuals, none that is rejected."""
    return SparseSearch(acceptance, reject).search(pools, acceptance.problem.settings.n_counterfactuals)
