"""Refinement: move valid rows towards the factual, a step at a time, as long as they stay valid and plausible.

1. Set the changed features back to the factual's values one at a time, the largest step first, as long as the row
   stays valid and at or above the floor. What could not be set back is tried again after others were.
2. Move changed numbers towards the factual, the largest step first: of some values of the factual's pool in between,
   take the nearest that keeps the row valid and at or above the floor.

A row that starts below the floor may only become more plausible on the way, and `mcce.explain.acceptance` admits every
row on the way. The rows of all factuals are tried together, so that the model gets a few large queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Floats, Ints
from mcce.distances.measures import Distance, changed_columns
from mcce.explain.acceptance import Acceptance
from mcce.explain.crossing import MOST_VALUES
from mcce.explain.pools import Candidates
from mcce.explain.winners import Cost, Winners
from mcce.rng import hash_rows

DONE = np.iinfo(np.int64).max  # of a cell that was set back
MOST_TOGETHER = 16  # tries that a row goes ahead before the model is asked
MOST_APART = 4  # cells that a row on its way differs in from the one that its plausibility is found from
WRITTEN_TOGETHER = 8192  # rows
VALUES_BETWEEN = 8  # that a number is tried at, on its way to the factual


class Refiner:
    """Moves valid rows towards their factuals.

    Parameters
    ----------
    acceptance : which rows may be returned.
    distance : how long a step is.
    numbers : positions of the searched columns that hold numbers.
    """

    def __init__(self, acceptance: Acceptance, distance: Distance, numbers: Ints) -> None:
        self.acceptance = acceptance
        self.distance = distance
        self.numbers = numbers

    def refine(self, starts: Winners, pools: Candidates, best: int | None = None) -> Winners:
        """Return valid rows after steps 1 and 2."""
        return self.move_numbers(self.set_back(starts), pools, best)

    def set_back(self, found: Winners) -> Winners:
        """Return rows without the changes that neither validity nor the floor needs (step 1)."""
        walk = _Walk(self, found)
        walk.set_back()
        return walk.winners(found.cost)

    def move_numbers(self, found: Winners, pools: Candidates, best: int | None = None) -> Winners:
        """Return rows whose changed numbers are nearer to the factuals' (step 2).

        With `best`, numbers move only in the rows of a factual that are among so many with the fewest changes, or tie.
        """
        walk = _Walk(self, found)
        moving = walk.has_few_changes(best)
        numbers = [walk.changed_numbers(i) if moving[i] else np.empty(0, np.int64) for i in range(found.owner.size)]
        for place in range(max((columns.size for columns in numbers), default=0)):
            walk.move_number(place, numbers, pools)
        return walk.winners(found.cost)

    def look_between(self, found: Winners, pools: Candidates) -> Winners:
        """Return rows with a single change at the nearest value among those passed over beside the chosen one."""
        walk = _Walk(self, found)
        walk.look_beside(pools)
        return walk.winners(found.cost)


@dataclass(frozen=True)
class _Turns:
    """The columns that each row tries in its present round, in order, a line each: from `next` to before `end`."""

    columns: Ints
    next: Ints
    end: Ints

    @classmethod
    def none(cls, n_rows: int) -> _Turns:
        """Return rounds that are over."""
        return cls(np.empty((n_rows, 0), dtype=np.int64), *np.zeros((2, n_rows), dtype=np.int64))

    def renewed(self, ended: Ints, at: Ints, column: Ints, left: Floats) -> _Turns:
        """Return the turns with new rounds: row ended[at] tries a column, the one that leaves least first."""
        order = np.lexsort((left, at))
        at, column = at[order], column[order]
        place = np.arange(at.size) - np.searchsorted(at, at)
        missing = int(place.max(initial=-1)) + 1 - self.columns.shape[1]
        columns = np.pad(self.columns, ((0, 0), (0, max(missing, 0))))
        columns[ended[at], place] = column
        self.next[ended], self.end[ended] = 0, np.bincount(at, minlength=ended.size)
        return _Turns(columns, self.next, self.end)


@dataclass(frozen=True)
class _Ahead:
    """Tries of rows, one after the other: whose, the column set back, the row, whether it is good, its plausibility."""

    at: Ints
    column: Ints
    rows: Floats
    good: Bools
    plausibility: Floats


class _Walk:
    """The rows on their way."""

    def __init__(self, refiner: Refiner, starts: Winners) -> None:
        self.refiner = refiner
        self.acceptance = acceptance = refiner.acceptance
        self.owner = starts.owner
        self.factuals = np.ascontiguousarray(acceptance.matrix[starts.owner])
        self.rows = np.array(starts.rows, order="C")
        self.scores = starts.scores.copy()
        self.plausibility = starts.plausibility.copy()
        self.n_asked = 0
        self.origins = acceptance.scale.origins(self.rows.copy(), kept=self.owner.size)
        self._known: dict[tuple[int, int], Floats] = {}  # values by pool and column

    def winners(self, before: Cost) -> Winners:
        """Return the rows where they are now; `before` was spent on finding them."""
        asked = before.asked + self.n_asked
        return Winners.chosen(self.owner, self.rows, self.scores, self.plausibility, asked)

    def set_back(self) -> None:
        """Step 1: each row tries its cells in rounds, those that have not been tried since it last moved.

        A row goes some tries ahead as if the model agreed to all that is plausible enough, and then the model is asked.
        At the first refusal the row goes back to there; what was asked beyond it was asked in vain.
        """
        changed = self.acceptance.free_changes(self.rows, self.owner)
        changed &= (changed.sum(axis=1) > 1)[:, None]  # an only change is needed
        tried = np.where(changed, -1, DONE)
        moved, n_tried, together = np.zeros(self.owner.size, np.int64), *np.ones((2, self.owner.size), np.int64)
        turns = _Turns.none(self.owner.size)
        while True:
            ended = np.flatnonzero(turns.next == turns.end)
            at, column = np.nonzero(tried[ended] < moved[ended, None])
            turns = turns.renewed(ended, at, column, self._left_without(ended[at], column))
            walking = np.flatnonzero(turns.next < turns.end)
            if not walking.size:
                return
            ahead = self._go_ahead(walking, turns, np.minimum(together, turns.end - turns.next))
            scores, wanted = self._ask_distinct(ahead.rows[ahead.good])
            agreed = np.zeros(ahead.at.size, dtype=bool)
            agreed[ahead.good] = wanted
            first = np.searchsorted(ahead.at, walking)
            sizes = np.diff(np.append(first, ahead.at.size))
            passed = _leading(agreed == ahead.good, first, sizes)
            refused = passed < sizes
            done = ranges(first, first + passed + refused)
            number = n_tried[ahead.at[done]] + done - np.repeat(first, passed + refused)
            agreed = agreed[done]
            tried[ahead.at[done], ahead.column[done]] = np.where(agreed, DONE, number)
            np.maximum.at(moved, ahead.at[done[agreed]], number[agreed])
            n_tried[walking] += passed + refused
            turns.next[walking] += passed + refused
            together[walking] = np.where(refused, 1, np.minimum(2 * sizes, MOST_TOGETHER))
            last = np.full(self.owner.size, -1)
            last[ahead.at[done[agreed]]] = done[agreed]  # of equal places the last one stays
            gone = np.flatnonzero(last >= 0)
            last = last[gone]
            self.rows[gone], self.plausibility[gone] = ahead.rows[last], ahead.plausibility[last]
            if gone.size:
                self.scores[gone] = scores[np.searchsorted(np.flatnonzero(ahead.good), last)]

    def _left_without(self, at: Ints, column: Ints) -> Floats:
        """Return how far some rows are from their factuals when one change is set back."""
        left = np.empty(at.size)
        for first in range(0, at.size, WRITTEN_TOGETHER):
            some = slice(first, first + WRITTEN_TOGETHER)
            rows = self.acceptance.with_own(self.rows[at[some]], self.owner[at[some]], column[some])
            left[some] = self.refiner.distance.sums(rows, self.factuals[at[some]])
        return left

    def _go_ahead(self, walking: Ints, turns: _Turns, together: Ints) -> _Ahead:
        """Set back changes one after the other, as long as each row is plausible enough; nobody is asked."""
        at = np.repeat(walking, together[walking])
        first = np.cumsum(together[walking]) - together[walking]
        place = np.arange(at.size) - np.repeat(first, together[walking])
        column = turns.columns[at, turns.next[at] + place]
        rows, good, plausibility = np.empty((at.size, self.rows.shape[1])), np.zeros(at.size, bool), np.empty(at.size)
        now, believed = self.rows[walking], self.plausibility[walking]
        for turn in range(int(together[walking].max())):
            on = np.flatnonzero(turn < together[walking])
            here, of = first[on] + turn, walking[on]
            tries = self.acceptance.with_own(now[on], self.owner[of], column[here])
            score = self._score_tries(tries, now[on], of, np.minimum(self.acceptance.least, believed[on]))
            enough = (score >= self.acceptance.least) | (score > believed[on])
            enough &= (tries != self.factuals[of]).any(axis=1)
            if not self.acceptance.admits_all:
                enough[enough] = self.acceptance.admits(tries[enough], self.owner[of[enough]])
            now[on[enough]], believed[on[enough]] = tries[enough], score[enough]
            rows[here], good[here], plausibility[here] = tries, enough, score
        return _Ahead(at, column, rows, good, plausibility)

    def _score_tries(self, tries: Floats, now: Floats, at: Ints, least: Floats) -> Floats:
        """Return the plausibility of tries, found from where their rows were not long ago, which differs little.

        Below `least` it need not be exact.
        """
        fold = self.acceptance.fold[self.owner[at]]
        far = np.flatnonzero((now != self.origins.rows[at]).sum(axis=1) > MOST_APART)
        if far.size:
            self.acceptance.scale.move_origins(self.origins, at[far], now[far], fold[far])
        return self.acceptance.scale.score(tries, fold, self.origins[at], least)

    def changed(self) -> Bools:
        """Return which cells differ from the factual's."""
        return changed_columns(self.rows, self.factuals)

    def has_few_changes(self, best: int | None) -> Bools:
        """Return which rows have at most as many changes as the `best`-th of their factual; all if it is None."""
        n_changes = self.changed().sum(axis=1)
        if best is None:
            return np.ones(n_changes.size, dtype=bool)
        most = np.full(self.acceptance.matrix.shape[0], self.rows.shape[1])
        _, first = np.unique(hash_rows(np.column_stack([self.owner, self.rows])), return_index=True)  # some have met
        order = first[np.lexsort((n_changes[first], self.owner[first]))]
        nth = np.arange(order.size) - np.searchsorted(self.owner[order], self.owner[order]) + 1
        most[self.owner[order[nth == best]]] = n_changes[order[nth == best]]
        return np.asarray(n_changes <= most[self.owner])

    def move_number(self, place: int, numbers: Sequence[Ints], pools: Candidates) -> None:
        """Step 2 for the changed number of each row that had the `place`-th largest step."""
        plans = []
        for i, columns in enumerate(numbers):
            if place < columns.size:
                j = int(columns[place])
                plans.append((i, j, _between(self._values(i, j, pools), self.factuals[i, j], self.rows[i, j])))
        self._try_values(plans)

    def look_beside(self, pools: Candidates) -> None:
        """Try the values next to a changed number that were passed over because it has many (`Thinning`)."""
        plans = []
        for i in range(self.owner.size):
            changed = self.changed_numbers(i)
            if not changed.size:
                continue
            j = int(changed[0])
            values = self._values(i, j, pools)
            n_passed = -(-values.size // MOST_VALUES) - 1
            if n_passed < 1:
                continue
            low = min(self.factuals[i, j], self.rows[i, j])
            inside = _inside(values, self.factuals[i, j], self.rows[i, j])
            plans.append((i, j, inside[:n_passed] if self.rows[i, j] == low else inside[-n_passed:]))
        self._try_values(plans)

    def _values(self, i: int, j: int, pools: Candidates) -> Floats:
        """Return the distinct values of a column in the pool of a row's factual, sorted."""
        begin = int(pools.begin[self.owner[i]])
        if (begin, j) not in self._known:
            values = np.unique(pools.rows[begin : pools.end[self.owner[i]], j])
            self._known[begin, j] = values[~np.isnan(values)]
        return self._known[begin, j]

    def _try_values(self, plans: Sequence[tuple[int, int, Floats]]) -> None:
        """Try values of one column in some rows; a plan is a row, the column and its values."""
        at = np.repeat([i for i, _, _ in plans], [values.size for _, _, values in plans]).astype(np.int64)
        if at.size:
            tries = self.rows[at]
            column = np.repeat([j for _, j, _ in plans], [values.size for _, _, values in plans])
            tries[np.arange(at.size), column] = np.concatenate([values for _, _, values in plans])
            self._advance(self.acceptance.complete(tries, self.owner[at]), at)

    def changed_numbers(self, i: int) -> Ints:
        """Return the changed columns of a row that hold numbers, the largest step first."""
        columns = self.refiner.numbers
        scale = self.refiner.distance.scale[columns]
        steps = np.abs(self.rows[i, columns] - self.factuals[i, columns]) * np.where(scale > 0.0, scale, 1.0)
        order = np.argsort(-steps, kind="stable")
        return np.asarray(columns[order[steps[order] > 0.0]])

    def _advance(self, tries: Floats, at: Ints) -> Ints:
        """Replace each row by the nearest of its tries that is valid and plausible enough; return those replaced."""
        plausibility = self._score_tries(tries, self.rows[at], at, np.full(at.size, -np.inf))
        enough = (plausibility >= self.acceptance.least) | (plausibility > self.plausibility[at])
        enough &= (tries != self.factuals[at]).any(axis=1)
        if not self.acceptance.admits_all:
            enough[enough] = self.acceptance.admits(tries[enough], self.owner[at[enough]])
        tries, at, plausibility = tries[enough], at[enough], plausibility[enough]
        scores, wanted = self._ask_distinct(tries)
        if not wanted.any():
            return np.empty(0, dtype=np.int64)
        tries, at, plausibility, scores = tries[wanted], at[wanted], plausibility[wanted], scores[wanted]
        left = self.refiner.distance.sums(tries, self.factuals[at])
        order = np.lexsort((left, at))
        best = order[np.concatenate([[True], at[order][1:] != at[order][:-1]])]
        self.rows[at[best]], self.scores[at[best]] = tries[best], scores[best]
        self.plausibility[at[best]] = plausibility[best]
        return np.asarray(at[best])

    def _ask_distinct(self, tries: Floats) -> tuple[npt.NDArray[np.generic], Bools]:
        """Ask about rows, equal ones once."""
        if not tries.shape[0]:
            return np.empty(0), np.empty(0, dtype=bool)
        _, first, back = np.unique(hash_rows(tries), return_index=True, return_inverse=True)
        scores, wanted = self.acceptance.query(tries[first])
        self.n_asked += first.size
        return scores[back], wanted[back]


def ranges(begin: Ints, end: Ints) -> Ints:
    """Return the numbers of several ranges, one after the other."""
    sizes = end - begin
    return np.asarray(np.arange(sizes.sum()) + np.repeat(begin - np.cumsum(sizes) + sizes, sizes))


def _leading(good: Bools, first: Ints, sizes: Ints) -> Ints:
    """Return how many leading values of each group are true; groups begin at `first`."""
    bad = np.append(np.flatnonzero(~good), good.size)
    return np.minimum(bad[np.searchsorted(bad, first)] - first, sizes)


def _inside(values: Floats, one: float, other: float) -> Floats:
    """Return those of some sorted values that are strictly between two."""
    return values[np.searchsorted(values, min(one, other), "right") : np.searchsorted(values, max(one, other))]


def _between(values: Floats, factual: float, now: float) -> Floats:
    """Return some of the sorted values that are strictly between two, spread over them."""
    inside = _inside(values, factual, now)
    if inside.size <= VALUES_BETWEEN:
        return inside
    return inside[np.unique(np.linspace(0, inside.size - 1, VALUES_BETWEEN).astype(np.intp))]
