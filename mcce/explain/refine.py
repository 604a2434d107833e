"""Refinement: move valid rows towards the factual, and find the changes that are needed.

1. `Refiner.revert` reverts changed features to the factual's values one at a time, the largest step first, as long
   as the row stays valid and at or above the floor. Changes that could not be reverted are tried again after others
   were.
2. `Refiner.move_numbers` moves changed numbers towards the factual, the largest step first: of some values of the
   factual's pool in between, the nearest that keeps the row valid and at or above the floor is chosen.
3. `leave_out` reverts each change of a row separately. `judge_changes` derives from it whether the row would be
   accepted with one change reverted, and whether a change makes the decision worse; `harm_of_changes` derives by how
   much; `mark_incidental` derives which changes the decision does not need.

A row that starts below the floor may only become more plausible, and `mcce.explain.acceptance` must admit every
intermediate row. The rows of all factuals are tried together, so that the model gets a few large queries.

Two rules differ on purpose. A change is *removed* if the row without it is accepted: valid, admitted and plausible. A
change is *incidental* if the decision alone does not need it; the row may need it to be plausible, so it stays and is
marked. `revert` tries one change at a time, as whole draws change most features. `leave_out` tries all changes of a
row in one query, for rows that change few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Floats, Ints
from mcce.distances.measures import changed_columns
from mcce.explain.acceptance import Acceptance
from mcce.explain.crossing import MOST_VALUES
from mcce.explain.draw import Candidates
from mcce.explain.winners import Winners
from mcce.rng import hash_rows

MOST_APART = 4  # most cells in which a row differs from the origin of its plausibility
Reject = Callable[[Floats, Floats], Bools]  # returns which of some rows a search rejects, given their factuals

WRITTEN_TOGETHER = 8192  # rows made at a time
VALUES_BETWEEN = 8  # values tried between a number and the factual's
TRIED_AHEAD = 512  # most rows of the next steps of `revert` that are examined at once


@dataclass(frozen=True)
class OneReverted:
    """Rows with one change reverted: the position of the row, the reverted column, the new row and its prediction."""

    at: Ints
    column: Ints
    rows: Floats
    scores: npt.NDArray[np.generic]
    wanted: Bools


def leave_out(acceptance: Acceptance, rows: Floats, owner: Ints) -> OneReverted:
    """Return rows with several changes without each one of them; columns that relations determine are recomputed."""
    at, column, less = _without_one(acceptance, rows, owner)
    return OneReverted(at, column, less, *acceptance.query(less))


def rows_without_one(acceptance: Acceptance, rows: Floats, owner: Ints) -> Floats:
    """Return the rows for which `leave_out` queries the model."""
    return _without_one(acceptance, rows, owner)[2]


def _without_one(acceptance: Acceptance, rows: Floats, owner: Ints) -> tuple[Ints, Ints, Floats]:
    changed = acceptance.free_changes(rows, owner)
    at, column = np.nonzero(changed & (changed.sum(axis=1) > 1)[:, None])
    return at, column, acceptance.with_own(rows[at], owner[at], column)


def judge_changes(acceptance: Acceptance, found: Winners, reject: Reject | None = None) -> tuple[Bools, Bools, Winners]:
    """Return in which valid rows every change is needed, and in which one makes the decision worse.

    A change is not needed if the row without it is accepted, or is valid and rejected by `reject`. Also return the
    accepted rows with one change reverted, owned by the positions of the rows.
    """
    less = leave_out(acceptance, found.rows, found.owner)
    needed = np.ones(found.owner.size, dtype=bool)
    if not less.at.size:
        return needed, ~needed, Winners.none(found.scores, found.rows.shape[1])
    of = found.owner[less.at]
    accepted = less.wanted & acceptance.admits(less.rows, of)
    plausibilities = np.full(of.size, -np.inf)
    plausibilities[accepted] = acceptance.plausibility(less.rows[accepted], of[accepted], acceptance.least)
    accepted &= plausibilities >= acceptance.least
    needed[less.at[accepted]] = False
    if reject is not None:
        rejected = reject(less.rows, acceptance.matrix[of])
        needed[less.at[less.wanted & rejected]] = False
        accepted &= ~rejected
    fewer = Winners.chosen(less.at[accepted], less.rows[accepted], less.scores[accepted], plausibilities[accepted])
    return needed, np.asarray(_harm(acceptance, found, less).any(axis=1)), fewer


def drop_harmful(acceptance: Acceptance, found: Winners) -> Winners:
    """Leave out valid rows in which a change makes the decision worse, if their factual has others."""
    return found.prefer(np.asarray(harm_of_changes(acceptance, found).sum(axis=1) == 0.0))


def harm_of_changes(acceptance: Acceptance, found: Winners) -> Floats:
    """Return by how much each change of valid rows makes the decision worse; 0 for other changes and other cells."""
    if acceptance.caution.margins is None:
        return np.zeros(found.rows.shape)
    return _harm(acceptance, found, leave_out(acceptance, found.rows, found.owner))


def _harm(acceptance: Acceptance, found: Winners, less: OneReverted) -> Floats:
    harm = np.zeros(found.rows.shape)
    harm[less.at, less.column] = acceptance.caution.harm(found.scores[less.at], less.scores)
    return harm


def mark_incidental(acceptance: Acceptance, found: Winners) -> Winners:
    """Mark the changes of sparse counterfactuals that the decision does not need; they make a row plausible.

    The change that the decision needs least is reverted, as long as the decision stays; the remaining changes are
    needed. The model's score determines which change is needed least, or the order of columns if there is no score.
    """
    if not acceptance.problem.settings.sparse:
        return found
    margins = acceptance.caution.margins
    rows, left = np.array(found.rows, order="C"), np.arange(found.owner.size)
    while left.size:
        less = leave_out(acceptance, rows[left], found.owner[left])
        inside = np.zeros(less.at.size) if margins is None else margins.inside(less.scores)
        order = np.lexsort((less.column, -inside, less.at))
        order = order[less.wanted[order]]
        first = order[np.unique(less.at[order], return_index=True)[1]]
        left = left[less.at[first]]
        rows[left] = less.rows[first]
    own = acceptance.matrix[found.owner]
    counted = acceptance.counted(found.rows, found.owner)
    return replace(found, incidental=changed_columns(counted, own) & ~changed_columns(rows, own))


class Refiner:
    """Moves valid rows towards their factuals.

    Parameters
    ----------
    acceptance : which rows may be returned; the distance of its problem says how long a step is.
    numbers : positions of the searched columns that hold numbers.
    """

    def __init__(self, acceptance: Acceptance, numbers: Ints) -> None:
        self.acceptance = acceptance
        self.distance = acceptance.problem.distance
        self.numbers = numbers

    def refine(self, starts: Winners, pools: Candidates, best: int | None = None) -> Winners:
        """Return valid rows after steps 1 and 2."""
        return self.move_numbers(self.revert(starts), pools, best)

    def revert(self, found: Winners) -> Winners:
        """Return rows without the changes that neither validity nor the floor needs (step 1)."""
        if not found.owner.size:
            return found
        current = _RefinedRows(self, found)
        current.revert()
        return current.winners()

    def move_numbers(self, found: Winners, pools: Candidates, best: int | None = None) -> Winners:
        """Return rows whose changed numbers are nearer to the factuals' (step 2).

        With `best`, numbers move only in the `best` rows of a factual with the fewest changes, ties included.
        """
        if not found.owner.size:
            return found
        current = _RefinedRows(self, found)
        moving = current.has_few_changes(best)
        numbers = [current.changed_numbers(i) if moving[i] else np.empty(0, np.int64) for i in range(found.owner.size)]
        for place in range(max((columns.size for columns in numbers), default=0)):
            current.move_number(place, numbers, pools)
        return current.winners()

    def try_skipped_values(self, found: Winners, pools: Candidates) -> Winners:
        """Return rows with a single change moved to the nearest valid value among the skipped neighbours."""
        current = _RefinedRows(self, found)
        current.try_adjacent_values(pools)
        return current.winners()


class _RefinedRows:
    """The current rows of a refinement."""

    def __init__(self, refiner: Refiner, starts: Winners) -> None:
        self.refiner = refiner
        self.acceptance = acceptance = refiner.acceptance
        self.owner = starts.owner
        self.factuals = np.ascontiguousarray(acceptance.matrix[starts.owner])
        self.rows = np.array(starts.rows, order="C")
        self.scores = starts.scores.copy()
        self.plausibility = starts.plausibility.copy()
        origins = acceptance.scale.origins
        self.origins = origins(self.rows.copy(), kept=self.owner.size, own=acceptance.own, of=self.owner)
        self._known: dict[tuple[int, int], Floats] = {}  # values by pool and column

    def winners(self) -> Winners:
        """Return the current rows."""
        return Winners.chosen(self.owner, self.rows, self.scores, self.plausibility)

    def revert(self) -> None:
        """Revert changes in rounds (step 1); a change is tried again only after its row has moved."""
        changed = self.acceptance.free_changes(self.rows, self.owner)
        again = changed & (changed.sum(axis=1) > 1)[:, None]  # to be tried in the next round; a single change is needed
        failed = np.zeros(again.shape, dtype=bool)  # since the row last moved
        left = np.full(again.shape, np.inf)  # distance of the row without each change still to be tried in this round
        while True:
            ended: Bools = np.asarray(np.isinf(left).all(axis=1))
            at, column = np.nonzero(again & ended[:, None])
            left[at, column] = self._distances_without(at, column)
            again[ended] = False
            active = np.flatnonzero(np.isfinite(left).any(axis=1))
            if not active.size:
                return
            order = np.argsort(left[active], axis=1, kind="stable")
            n_steps = np.isfinite(left[active]).sum(axis=1)
            for step, moved in enumerate(self._advance_steps(active, order, n_steps)):
                tried = step < n_steps
                column = order[tried, step]
                left[active[tried], column] = np.inf
                failed[active[tried], column] = ~moved[tried]
                again[active[moved]] |= failed[active[moved]]
                failed[active[moved]] = False

    def _advance_steps(self, at: Ints, order: Ints, n_steps: Ints) -> list[Bools]:
        """Revert the next changes of rows, in the given order; return by step which rows moved.

        The model is queried once for all rows that the steps can lead to, since a query costs far more than a row.
        """
        of = np.arange(at.size)  # by state that a row may have, its position in `at`; at first its present state
        rows, plausibility = self.rows[at], self.plausibility[at]
        after: list[Ints] = []  # by step, the state to which each state moves if the decision is the wanted one
        n_tried = 0
        for step in range(n_steps.max()):
            trying = np.flatnonzero(step < n_steps[of])
            n_tried += trying.size
            if step and n_tried > TRIED_AHEAD:
                break
            tries = self.acceptance.with_own(rows[trying], self.owner[at[of[trying]]], order[of[trying], step])
            allowed, of_tries = self._is_allowed(tries, at[of[trying]], plausibility[trying])
            after.append(np.arange(of.size))
            after[-1][trying[allowed]] = of.size + np.arange(allowed.sum())
            of, plausibility = np.append(of, of[trying[allowed]]), np.append(plausibility, of_tries[allowed])
            rows = np.concatenate([rows, tries[allowed]])
        scores, wanted = self.acceptance.query(rows[at.size :])
        valid = np.append(np.ones(at.size, dtype=bool), wanted)
        now, moves = np.arange(at.size), []
        for each in after:
            new = np.where(valid[each[now]], each[now], now)
            moves.append(new != now)
            now = new
        moved = now >= at.size
        self.rows[at], self.plausibility[at] = rows[now], plausibility[now]
        self.scores[at[moved]] = scores[now[moved] - at.size]
        return moves

    def _distances_without(self, at: Ints, column: Ints) -> Floats:
        """Return the distances of some rows from their factuals with one change reverted."""
        left = np.empty(at.size)
        for first in range(0, at.size, WRITTEN_TOGETHER):
            some = slice(first, first + WRITTEN_TOGETHER)
            rows = self.acceptance.with_own(self.rows[at[some]], self.owner[at[some]], column[some])
            counted = self.acceptance.counted(rows, self.owner[at[some]])
            left[some] = self.refiner.distance.sums(counted, self.factuals[at[some]])
        return left

    def _score_tries(self, tries: Floats, now: Floats, at: Ints, least: Floats) -> Floats:
        """Return the plausibility of tries, updated from recent versions of their rows, which differ little.

        Below `least` it need not be exact.
        """
        fold = self.acceptance.fold[self.owner[at]]
        far = np.flatnonzero((now != self.origins.rows[at]).sum(axis=1) > MOST_APART)
        if far.size:
            self.acceptance.scale.move_origins(self.origins, at[far], now[far], fold[far])
        return self.acceptance.scale.score(tries, fold, self.origins[at], least)

    def changed(self) -> Bools:
        """Return which cells differ from the factual's."""
        return changed_columns(self.acceptance.counted(self.rows, self.owner), self.factuals)

    def has_few_changes(self, best: int | None) -> Bools:
        """Return which rows have at most as many changes as the `best`-th of their factual; all if it is None."""
        n_changes = self.changed().sum(axis=1)
        if best is None:
            return np.ones(n_changes.size, dtype=bool)
        most = np.full(self.acceptance.matrix.shape[0], self.rows.shape[1])
        _, first = np.unique(hash_rows(np.column_stack([self.owner, self.rows])), return_index=True)  # some are equal
        order = first[np.lexsort((n_changes[first], self.owner[first]))]
        nth = np.arange(order.size) - np.searchsorted(self.owner[order], self.owner[order]) + 1
        most[self.owner[order[nth == best]]] = n_changes[order[nth == best]]
        return np.asarray(n_changes <= most[self.owner])

    def move_number(self, place: int, numbers: Sequence[Ints], pools: Candidates) -> None:
        """Move the changed number of each row with the `place`-th largest step (step 2)."""
        plans = []
        for i, columns in enumerate(numbers):
            if place < columns.size:
                j = int(columns[place])
                plans.append((i, j, _between(self._values(i, j, pools), self.factuals[i, j], self.rows[i, j])))
        self._try_values(plans)

    def try_adjacent_values(self, pools: Candidates) -> None:
        """Try the values next to a changed number that were skipped by thinning (`Thinning`)."""
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

    def _advance(self, tries: Floats, at: Ints) -> None:
        """Replace each row by the nearest of its tries that is valid and plausible enough."""
        allowed, plausibility = self._is_allowed(tries, at, self.plausibility[at])
        tries, at, plausibility = tries[allowed], at[allowed], plausibility[allowed]
        scores, wanted = self.acceptance.query(tries)
        if not wanted.any():
            return
        tries, at, plausibility, scores = tries[wanted], at[wanted], plausibility[wanted], scores[wanted]
        left = self.refiner.distance.sums(self.acceptance.counted(tries, self.owner[at]), self.factuals[at])
        order = np.lexsort((left, at))
        best = order[np.concatenate([[True], at[order][1:] != at[order][:-1]])]
        self.rows[at[best]], self.scores[at[best]] = tries[best], scores[best]
        self.plausibility[at[best]] = plausibility[best]

    def _is_allowed(self, tries: Floats, at: Ints, before: Floats) -> tuple[Bools, Floats]:
        """Return which tries may replace rows of plausibility `before` if they are valid, and their plausibility."""
        least = np.minimum(self.acceptance.least, before)
        plausibility = self._score_tries(tries, self.rows[at], at, least)
        allowed = (plausibility >= self.acceptance.least) | (plausibility > before)
        allowed &= (tries != self.factuals[at]).any(axis=1)
        if not self.acceptance.admits_all:
            allowed[allowed] = self.acceptance.admits(tries[allowed], self.owner[at[allowed]])
        return allowed, plausibility


def ranges(begin: Ints, end: Ints) -> Ints:
    """Return the numbers of several ranges, one after the other."""
    sizes = end - begin
    return np.asarray(np.arange(sizes.sum()) + np.repeat(begin - np.cumsum(sizes) + sizes, sizes))


def _inside(values: Floats, one: float, other: float) -> Floats:
    """Return those of some sorted values that are strictly between two."""
    return values[np.searchsorted(values, min(one, other), "right") : np.searchsorted(values, max(one, other))]


def _between(values: Floats, factual: float, now: float) -> Floats:
    """Return some of the sorted values that are strictly between two, spread over them."""
    inside = _inside(values, factual, now)
    if inside.size <= VALUES_BETWEEN:
        return inside
    return inside[np.unique(np.linspace(0, inside.size - 1, VALUES_BETWEEN).astype(np.intp))]
