"""Numbers of sparse counterfactuals rounded to what is printed: the model is asked about the row that is told.

A sentence writes 31,235 for 31,234.56, and the model may say another thing about the one than about the other. So, at
the end of the search, for each changed number of each row:

1. Take the number that its text says (`Names.written`), or the next one on the other side, with as few digits as a text
   has, and then with one digit more each time.
2. Keep the first for which the row is still one that may be returned: the model gives the wanted decision, the
   constraints, bounds and relations hold, the plausibility is at the floor or no less than it was, the number is on the
   column's grid and in its range, the change is still one, and the row is no other one's copy.
3. Where none is, the number stays, and its text has all of its digits (`Names.exact`).

Whole numbers are written in full and stay as they are; so do dates, levels and numbers that have words. Columns that
relations determine are computed from the others once more (`mcce.plausibility.relations`), and written in full.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.distances.measures import changed_columns, changes, gower_sum
from mcce.explain.acceptance import Acceptance
from mcce.explain.factuals import Factuals
from mcce.explain.problem import Problem
from mcce.explain.winners import Winners
from mcce.report.names import Names
from mcce.rng import hash_rows
from mcce.table import Feature, Schema
from mcce.table.dtypes import is_dated, numpy_dtype

MOST_MORE = 12  # digits beyond those that a text has
FIRST_YEAR, LAST_YEAR = 1800, 2200


def display_names(names: Names, schema: Schema, *, exact: bool) -> Names:
    """Return names that know which features are years, and, if `exact`, which are written in full."""
    numbers = [f for f in schema.features if f.is_numeric and not is_dated(f.dtype)]
    years = tuple(f.name for f in numbers if f.decimals == 0 and f.low >= FIRST_YEAR and f.high <= LAST_YEAR)
    held = {f.name: _floats(f) for f in numbers} if exact else {}
    return replace(names, years=years, exact=held)


def _floats(feature: Feature) -> str:
    dtype = numpy_dtype(feature.dtype)
    return dtype.name if dtype.kind == "f" else "float64"


def round_for_display(problem: Problem, factuals: Factuals, winners: Winners, names: Names) -> Winners:
    """Return sparse winners whose changed numbers are those that their texts say."""
    computed = () if problem.relations is None else problem.relations.determined
    rounded = [j for j in problem.mutable.tolist() if j not in computed and _is_rounded(problem.features[j], names)]
    if not rounded or not winners.owner.size:
        return winners
    own = factuals.matrix[winners.owner]
    changed = changed_columns(winners.rows, own)
    cells = [
        (i, rounded[k])
        for i, k in zip(*np.nonzero(changed[:, rounded]))
        if len(names.written(problem.features[rounded[k]].name, float(winners.rows[i, rounded[k]]))) > 1
    ]
    if not cells:
        return winners
    printing = _Printing(problem, factuals, winners, names)
    at, column = np.array(cells, dtype=np.int64).T
    place = np.arange(at.size) - np.searchsorted(at, at)  # of a cell among those of its row
    for turn in range(int(place.max()) + 1):
        printing.put(at[place == turn], column[place == turn])
    return printing.winners(winners)


def _is_rounded(feature: Feature, names: Names) -> bool:
    """Say whether texts of a feature may leave out digits."""
    if not feature.is_numeric or is_dated(feature.dtype):
        return False
    return feature.grid.decimals != 0 or feature.name in names.patterns


class _Printing:
    """The rows while their numbers are put on what is printed."""

    def __init__(self, problem: Problem, factuals: Factuals, winners: Winners, names: Names) -> None:
        self.problem = problem
        self.names = names
        self.owner = winners.owner
        self.own = np.ascontiguousarray(factuals.matrix[winners.owner])
        self.acceptance = Acceptance(problem, factuals.matrix, factuals.index)
        self.rows, self.scores = np.ascontiguousarray(winners.rows).copy(), winners.scores.copy()
        self.plausibility = winners.plausibility.copy()
        self.asked = 0

    def put(self, at: Ints, column: Ints) -> None:
        """Put one changed number of each of some rows on what is printed (steps 1 and 2)."""
        for more in range(MOST_MORE + 1):
            printed = [
                self.names.written(self.problem.features[j].name, float(self.rows[i, j]), more)
                for i, j in zip(at, column)
            ]
            left = np.flatnonzero([len(each) == 2 for each in printed])
            if not left.size:
                return
            at, column = at[left], column[left]
            numbers = np.array([printed[k] for k in left])
            for j in np.unique(column):
                narrow = self.problem.features[j].grid.narrow
                if narrow is not None:  # the number that the column holds when the text is read
                    numbers[column == j] = numbers[column == j].astype(narrow)
            done = np.zeros(at.size, dtype=bool)
            for way in range(2):
                todo = np.flatnonzero(~done)
                done[todo] = self._take(at[todo], column[todo], numbers[todo, way])
            at, column = at[~done], column[~done]

    def _take(self, at: Ints, column: Ints, numbers: Floats) -> Bools:
        """Write numbers into rows where these may be returned then; return where."""
        tries = self.rows[at]
        tries[np.arange(at.size), column] = numbers
        tries = self.acceptance.complete(tries, self.owner[at])
        may = self._is_possible(tries, at, column)
        some = np.flatnonzero(may)
        if not some.size:
            return may
        scores, wanted = self.acceptance.query(tries[some])
        self.asked += some.size
        may[some] = wanted
        taken = some[wanted]
        # of rows of one factual that would become the same, the first one does
        keys = hash_rows(np.column_stack([self.owner, self.rows]))
        new = hash_rows(np.column_stack([self.owner[at[taken]], tries[taken]]))
        first = np.zeros(taken.size, dtype=bool)
        first[np.unique(new, return_index=True)[1]] = True
        first &= ~np.isin(new, keys)
        may[taken[~first]] = False
        taken, scores = taken[first], scores[wanted][first]
        self.rows[at[taken]], self.scores[at[taken]] = tries[taken], scores
        self.plausibility[at[taken]] = self._plausibility(tries[taken], at[taken])
        return may

    def _is_possible(self, tries: Floats, at: Ints, column: Ints) -> Bools:
        """Say which rows may be returned if the model agrees."""
        problem = self.problem
        numbers = tries[np.arange(at.size), column]
        may = numbers != self.own[at, column]
        for j in np.unique(column):
            feature, here = problem.features[j], column == j
            held = numbers[here]
            may[here] &= (feature.grid.put(held) == held) & (held >= feature.low) & (held <= feature.high)
        may[may] = self.acceptance.admits(tries[may], self.owner[at[may]])
        may[may] = self.acceptance.within_bounds(tries[may], self.owner[at[may]])
        plausibility = np.full(at.size, np.nan)
        plausibility[may] = self._plausibility(tries[may], at[may])
        with np.errstate(invalid="ignore"):
            may &= ~((plausibility < problem.least) & (plausibility < self.plausibility[at]))
        return np.asarray(may)

    def _plausibility(self, rows: Floats, at: Ints) -> Floats:
        if self.problem.plausibility is None or not at.size:
            return np.full(at.size, np.nan)
        return self.acceptance.plausibility(rows, self.owner[at])

    def winners(self, before: Winners) -> Winners:
        """Return the rows as they are now."""
        cost = replace(before.cost, asked=before.cost.asked + self.asked)
        rows = np.asfortranarray(self.rows)
        moved = replace(before, rows=rows, scores=self.scores, plausibility=self.plausibility, cost=cost)
        sums = [distance(self.problem.features).sums(rows, self.own) for distance in (changes, gower_sum)]
        return replace(moved, measures=np.stack(sums, axis=1))
