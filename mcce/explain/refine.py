"""Taking valid rows inwards: nearer to the factual, a step at a time, as long as they stay valid and plausible.

1. Set the changed features back to the factual's values one at a time, the largest step first, as long as the row
   stays valid and at or above the floor. What could not be set back is tried again after others were.
2. Move changed numbers towards the factual, the largest step first: of some values of the factual's pool in between,
   take the nearest that keeps the row valid and at or above the floor.

A row that starts below the floor may only become more plausible on the way; none breaks a constraint or a relation, or
becomes a copy of a training row that is excluded. Columns that others determine go with these. The rows of all factuals
are tried together, so that the model is asked a few large questions. `Sought` says for whom counterfactuals are sought,
and what they may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Floats, Ints
from mcce.constraints import FactualConstraints
from mcce.explain.copies import Excludes
from mcce.explain.crossing import MOST_VALUES
from mcce.explain.distances import Distance, changed_columns
from mcce.explain.plausibility import KnownDistances, Plausibility
from mcce.explain.pools import Candidates
from mcce.explain.rank import Ask
from mcce.explain.relations import FactualRelations, KeptRelations
from mcce.explain.winners import Cost, Winners
from mcce.rng import hash_rows


@dataclass(frozen=True)
class Sought:
    """Factuals that counterfactuals are sought for: encoded rows, and the folds of their trees.

    `excluded` are rows that none may be, as copies of training rows, `constraints` say what may change, `relations`
    what holds between columns; `known` keeps the distances of the factuals to real rows.
    """

    matrix: Floats
    fold: Ints
    excluded: Excludes | None = None
    constraints: FactualConstraints | None = None
    relations: FactualRelations | None = None
    known: KnownDistances | None = None

    def score(self, scale: Plausibility, rows: Floats, owner: Ints, least: float = -np.inf) -> Floats:
        """Return the scores of plausibility of encoded rows, made from the factuals at `owner`."""
        known = None if self.known is None else self.known[owner]
        return scale.score(rows, self.fold[owner], self.matrix[owner], least, known)

    @property
    def admits_all(self) -> bool:
        """Whether any row may be a counterfactual."""
        return self.excluded is None and self.constraints is None and self.relations is None

    def admits(self, rows: Floats, owner: Ints) -> Bools:
        """Return which encoded rows may be counterfactuals of the factuals at `owner`."""
        admitted = np.ones(rows.shape[0], dtype=bool) if self.excluded is None else ~self.excluded.contain(rows)
        if self.constraints is not None:
            admitted[admitted] = self.constraints.hold(rows[admitted], owner[admitted])
        if self.relations is not None:
            admitted[admitted] = self.relations.hold(rows[admitted], owner[admitted])
        return admitted


DONE = np.iinfo(np.int64).max  # of a cell that was set back
VALUES_BETWEEN = 8  # that a number is tried at, on its way to the factual


class Inwards:
    """Takes rows inwards.

    Parameters
    ----------
    ask : function that returns (scores, wanted) for encoded rows.
    scale, least : the scale of plausibility, and the score at the floor.
    distance : how long a step is.
    numbers : positions of the searched columns that hold numbers.
    relations : what tells the columns that are not searched but computed.
    """

    def __init__(
        self,
        ask: Ask,
        scale: Plausibility,
        least: float,
        distance: Distance,
        numbers: Ints,
        relations: KeptRelations | None = None,
    ) -> None:
        self.ask = ask
        self.scale = scale
        self.least = least
        self.distance = distance
        self.numbers = numbers
        self.relations = relations

    def complete(self, rows: Floats, factuals: Floats) -> Floats:
        """Return rows with what relations determine."""
        return rows if self.relations is None else self.relations.complete(rows, factuals)

    def searched(self, changed: Bools) -> Bools:
        """Return which cells are changed and of columns that are searched, from those that are changed."""
        if self.relations is not None:
            changed[:, self.relations.determined] = False
        return changed

    def take(self, starts: Winners, sought: Sought, pools: Candidates, best: int | None = None) -> Winners:
        """Return what becomes of some valid rows.

        With `best`, numbers move only in the rows of a factual that are among so many with the fewest changes, or tie.
        """
        walk = _Walk(self, starts, sought)
        walk.set_back()
        moving = walk.has_few_changes(best)
        numbers = [walk.changed_numbers(i) if moving[i] else np.empty(0, np.int64) for i in range(starts.owner.size)]
        for place in range(self.numbers.size):
            walk.move_number(place, numbers, pools)
        return walk.winners(starts.cost)

    def set_back(self, found: Winners, sought: Sought) -> Winners:
        """Return rows without the changes that neither validity nor the floor needs (step 1)."""
        walk = _Walk(self, found, sought)
        walk.set_back()
        return walk.winners(found.cost)

    def look_between(self, found: Winners, sought: Sought, pools: Candidates) -> Winners:
        """Return rows with a single change at the nearest value among those passed over beside the chosen one."""
        walk = _Walk(self, found, sought)
        walk.look_beside(pools)
        return walk.winners(found.cost)


class _Walk:
    """The rows on their way."""

    def __init__(self, way: Inwards, starts: Winners, sought: Sought) -> None:
        self.way = way
        self.owner = starts.owner
        self.sought = sought
        self.factuals = np.ascontiguousarray(sought.matrix[starts.owner])
        self.rows = np.ascontiguousarray(starts.rows)
        self.scores = starts.scores.copy()
        self.plausibility = starts.plausibility.copy()
        self.n_asked = 0
        self._known: dict[tuple[int, int], Floats] = {}  # values by pool and column

    def winners(self, before: Cost) -> Winners:
        """Return the rows where they are now; `before` was spent on finding them."""
        asked = before.asked + self.n_asked
        return Winners.chosen(self.owner, self.rows, self.scores, self.plausibility, asked)

    def set_back(self) -> None:
        """Step 1: in rounds, try the cells that have not been tried since their row last moved."""
        changed = self.way.searched(self.changed())
        at, column = np.nonzero(changed & (changed.sum(axis=1) > 1)[:, None])  # an only change is needed
        tried, moved = np.full(at.size, -1), np.zeros(self.owner.size, dtype=np.int64)
        now = 0
        while (todo := np.flatnonzero(tried < moved[at])).size:
            left = self.way.distance.sums(self._with_own(at[todo], column[todo]), self.factuals[at[todo]])
            todo = todo[np.lexsort((left, at[todo]))]
            turn = np.arange(todo.size) - np.searchsorted(at[todo], at[todo])
            for place in range(int(turn.max()) + 1):
                now += 1
                cells = todo[turn == place]
                moved[self._advance(self._with_own(at[cells], column[cells]), at[cells])] = now
                tried[cells] = np.where(moved[at[cells]] == now, DONE, now)

    def _with_own(self, at: Ints, column: Ints) -> Floats:
        """Return some rows, each with the factual's own value in one column."""
        rows = self.rows[at]
        rows[np.arange(at.size), column] = self.factuals[at, column]
        return self.way.complete(rows, self.factuals[at])

    def changed(self) -> Bools:
        """Return which cells differ from the factual's."""
        return changed_columns(self.rows, self.factuals)

    def has_few_changes(self, best: int | None) -> Bools:
        """Return which rows have at most as many changes as the `best`-th of their factual; all if it is None."""
        n_changes = self.changed().sum(axis=1)
        if best is None:
            return np.ones(n_changes.size, dtype=bool)
        most = np.full(self.sought.matrix.shape[0], self.rows.shape[1])
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
            self._advance(self.way.complete(tries, self.factuals[at]), at)

    def changed_numbers(self, i: int) -> Ints:
        """Return the changed columns of a row that hold numbers, the largest step first."""
        columns = self.way.numbers
        scale = self.way.distance.scale[columns]
        steps = np.abs(self.rows[i, columns] - self.factuals[i, columns]) * np.where(scale > 0.0, scale, 1.0)
        order = np.argsort(-steps, kind="stable")
        return np.asarray(columns[order[steps[order] > 0.0]])

    def _advance(self, tries: Floats, at: Ints) -> Ints:
        """Replace each row by the nearest of its tries that is valid and plausible enough; return those replaced."""
        plausibility = self.sought.score(self.way.scale, tries, self.owner[at])
        enough = (plausibility >= self.way.least) | (plausibility > self.plausibility[at])
        enough &= (tries != self.factuals[at]).any(axis=1)
        if not self.sought.admits_all:
            enough[enough] = self.sought.admits(tries[enough], self.owner[at[enough]])
        tries, at, plausibility = tries[enough], at[enough], plausibility[enough]
        scores, wanted = self._ask_distinct(tries)
        if not wanted.any():
            return np.empty(0, dtype=np.int64)
        tries, at, plausibility, scores = tries[wanted], at[wanted], plausibility[wanted], scores[wanted]
        left = self.way.distance.sums(tries, self.factuals[at])
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
        scores, wanted = self.way.ask(tries[first])
        self.n_asked += first.size
        return scores[back], wanted[back]


def _inside(values: Floats, one: float, other: float) -> Floats:
    """Return those of some sorted values that are strictly between two."""
    return values[np.searchsorted(values, min(one, other), "right") : np.searchsorted(values, max(one, other))]


def _between(values: Floats, factual: float, now: float) -> Floats:
    """Return some of the sorted values that are strictly between two, spread over them."""
    inside = _inside(values, factual, now)
    if inside.size <= VALUES_BETWEEN:
        return inside
    return inside[np.unique(np.linspace(0, inside.size - 1, VALUES_BETWEEN).astype(np.intp))]
