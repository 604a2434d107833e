"""Finishing steps, applied to winners after a search: functions (Acceptance, Winners) -> Winners.

Numbers of sparse counterfactuals are rounded to the displayed digits (`round_for_display`), so that the displayed row
is the row that the model accepts: 31,234.56 is displayed as 31,235, and the model may decide differently for the two.
For each changed number of each row:

1. Try the displayed number (`Names.written`), and the next one on the other side; then the same with one more digit at
   a time.
2. Keep the first number for which the row may be returned: the model gives the wanted decision, the constraints, bounds
   and relations hold, the plausibility is at the floor or no less than before, the number is on the grid and in the
   range of the column, it differs from the factual's, and the row is not a copy of another.
3. If there is none, the number is not changed, and is displayed with all digits (`Names.exact`).

Whole numbers, dates, levels and numbers with labels are displayed in full and not changed. Columns that relations
determine are recomputed from the others (`mcce.plausibility.relations`), and displayed in full.

`add_measures` computes the measures that a result reports. Changes that the decision does not need are marked by
`mcce.explain.refine.mark_incidental`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.distances.measures import Distance, changed_columns
from mcce.exceptions import SamplerError
from mcce.explain.acceptance import Acceptance
from mcce.explain.winners import Winners
from mcce.generators.base import Generator
from mcce.report.names import Names
from mcce.rng import hash_rows
from mcce.table import Feature
from mcce.table.dtypes import is_dated

MOST_MORE = 12  # most digits beyond the displayed ones
REPORTED = ("L0", "gower", "gower_sum", "plausibility", "log_density")  # measures of every result


def round_for_display(acceptance: Acceptance, winners: Winners) -> Winners:
    """Round the changed numbers of sparse winners to the displayed digits; whole draws are not changed."""
    problem = acceptance.problem
    if not problem.settings.sparse or not winners.owner.size:
        return winners
    computed = () if problem.relations is None else problem.relations.determined
    features, names = problem.features, problem.names
    rounded = [j for j in problem.mutable.tolist() if j not in computed and _is_rounded(features[j], names)]
    changed = changed_columns(winners.rows, acceptance.matrix[winners.owner])
    cells = [
        (i, rounded[k])
        for i, k in zip(*np.nonzero(changed[:, rounded]))
        if len(names.written(features[rounded[k]].name, float(winners.rows[i, rounded[k]]))) > 1
    ]
    if not cells:
        return winners
    rounding = _Rounding(acceptance, winners)
    at, column = np.array(cells, dtype=np.int64).T
    place = np.arange(at.size) - np.searchsorted(at, at)  # position of a cell among those of its row
    for turn in range(int(place.max()) + 1):
        rounding.put(at[place == turn], column[place == turn])
    moved = replace(winners, rows=rounding.rows, scores=rounding.scores, plausibility=rounding.plausibility)
    return moved.measured(features, acceptance.matrix, acceptance.counted(moved.rows, moved.owner))


def add_measures(acceptance: Acceptance, winners: Winners) -> Winners:
    """Compute the measures that a result reports besides the number of changes and the Gower distance."""
    problem, rows = acceptance.problem, winners.rows
    counted = acceptance.counted(rows, winners.owner)
    reported: dict[str, Any] = {
        measure.name: measure.of_pairs(
            counted if isinstance(measure.function, Distance) else rows, acceptance.matrix[winners.owner]
        )
        for measure in problem.order.measures
        if measure.name not in REPORTED
    }
    if problem.plausibility is not None and problem.settings.sparse:
        reported["log_density"] = _log_density(problem.generator, rows)
        reported["plausibility"] = problem.plausibility.quantile(winners.plausibility)
    if problem.robustness is not None:
        reported |= problem.robustness.shares(rows)
    if problem.anonymity is not None:
        reported["people"] = problem.anonymity.keys.count(rows)
    return replace(winners, reported=reported)


def _log_density(generator: Generator, rows: Floats) -> Floats:
    """Return log p(mutable | fixed, wanted decision) of encoded rows; NaN if a conditional has no density."""
    try:
        by_feature = generator.feature_log_densities(rows)
    except SamplerError:
        return np.full(rows.shape[0], np.nan)
    return np.asarray(sum(by_feature.values()), dtype=np.float64)


def _is_rounded(feature: Feature, names: Names) -> bool:
    """Return whether the display of a feature may omit digits."""
    if not feature.is_numeric or is_dated(feature.dtype):
        return False
    return feature.grid.decimals != 0 or feature.name in names.patterns


class _Rounding:
    """Rows during the rounding of their numbers."""

    def __init__(self, acceptance: Acceptance, winners: Winners) -> None:
        self.acceptance, self.problem = acceptance, acceptance.problem
        self.owner = winners.owner
        self.own = np.ascontiguousarray(acceptance.matrix[winners.owner])
        self.rows, self.scores = np.ascontiguousarray(winners.rows).copy(), winners.scores.copy()
        self.plausibility = winners.plausibility.copy()

    def put(self, at: Ints, column: Ints) -> None:
        """Round one changed number of each of some rows (steps 1 and 2)."""
        for more in range(MOST_MORE + 1):
            printed = [
                self.problem.names.written(self.problem.features[j].name, float(self.rows[i, j]), more)
                for i, j in zip(at, column)
            ]
            left = np.flatnonzero([len(each) == 2 for each in printed])
            if not left.size:
                return
            at, column = at[left], column[left]
            numbers = np.array([printed[k] for k in left])
            for j in np.unique(column):
                narrow = self.problem.features[j].grid.narrow
                if narrow is not None:  # the number that the column would store
                    numbers[column == j] = numbers[column == j].astype(narrow)
            done = np.zeros(at.size, dtype=bool)
            for way in range(2):
                todo = np.flatnonzero(~done)
                done[todo] = self._take(at[todo], column[todo], numbers[todo, way])
            at, column = at[~done], column[~done]

    def _take(self, at: Ints, column: Ints, numbers: Floats) -> Bools:
        """Write numbers into the rows that may be returned with them; return which."""
        tries = self.rows[at]
        tries[np.arange(at.size), column] = numbers
        tries = self.acceptance.complete(tries, self.owner[at])
        may = self._is_possible(tries, at, column)
        some = np.flatnonzero(may)
        if not some.size:
            return may
        scores, wanted = self.acceptance.query(tries[some])
        may[some] = wanted
        taken = some[wanted]
        # if rows of one factual would become equal, only the first is changed
        keys = hash_rows(np.column_stack([self.owner, self.rows]))
        new = hash_rows(np.column_stack([self.owner[at[taken]], tries[taken]]))
        first = np.zeros(taken.size, dtype=bool)
        first[np.unique(new, return_index=True)[1]] = True
        first &= ~np.isin(new, keys)
        may[taken[~first]] = False
        taken, scores = taken[first], scores[wanted][first]
        self.rows[at[taken]], self.scores[at[taken]] = tries[taken], scores
        self.plausibility[at[taken]] = self.acceptance.plausibility(tries[taken], self.owner[at[taken]])
        return may

    def _is_possible(self, tries: Floats, at: Ints, column: Ints) -> Bools:
        """Return which rows may be returned, given that they have the wanted decision."""
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
        plausibility[may] = self.acceptance.plausibility(tries[may], self.owner[at[may]])
        with np.errstate(invalid="ignore"):
            may &= ~((plausibility < problem.least) & (plausibility < self.plausibility[at]))
        return np.asarray(may)
