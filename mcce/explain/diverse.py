"""Diverse counterfactuals, chosen greedily: each by what it adds to those chosen before.

1. The first counterfactual is the best one, as without diversity.
2. Each further sparse counterfactual is the best, in the same order, of the rows that change another set of features
   than all before, are at or above the floor, and need every change: another salary is not another plan. If there is
   none, if the order has user-defined measures, and among whole draws, it is the valid candidate c with the largest
       gain(c) = min over chosen s of d(c, s) - PRICE d(c, x),
   its distance to the nearest chosen row minus the price of its distance to the factual x. Ties of the gain (to twelve
   decimals) are broken by the order of the measures. All candidates take part, not only the best ones: the best fifty
   are often fifty values of one feature.
3. d is Gower's distance. If the order counts changes (L0), the share of differing features is added to it, so that a
   change has a cost, and another feature counts, whatever the size of the step. Features that are computed from others
   do not count: their values are those of the factual.
4. The chosen rows are returned in the order of the measures, the best first; ties go to the row chosen earlier. This
   holds also if some rows come from a second search (`mcce.explain.pipeline.prefer_fit`).

Why this gain: d is a sum over features, so d(c, s) = d(c, x) + d(s, x) - 2 overlap(c, s), where the overlap is the part
of the changes from x that both share: 0 if they change different features, or move in opposite directions. With a price
of 1 the gain is min_s (d(s, x) - 2 overlap(c, s)): it rewards new changes, but not larger steps in the same direction,
which max-min distance alone rewards most. A price above 1 prefers nearer rows among those that are equally new. If the
best row has a cost of 1, a copy of it would have a gain of -1.5, and a row without overlap and with cost z a gain of
1 - z / 2, so an alternative may cost up to five times as much. A determinant (DPP) has no such unit, and its greedy
choice depends on the scale of the kernel.

`diversity_table` reports the mean pairwise distance between the counterfactuals of a factual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.progress import report, within
from mcce.distances.measures import Distance, changed_columns, changes, gower
from mcce.explain.acceptance import Acceptance
from mcce.explain.draw import Candidates
from mcce.explain.order import Measure, Ordering
from mcce.explain.plain import best_of, whole_draws
from mcce.explain.sparse import crossed_draws
from mcce.explain.winners import Winners
from mcce.rng import hash_rows
from mcce.table import Feature
from mcce.table.frames import build_frame

DIVERSE_FACTUALS = 64  # factuals that are searched together, with a shared cache of predictions
PRICE = 1.5  # price of the distance to the factual, relative to the distance to the nearest chosen row
DECIMALS = 12  # gains that agree to this many decimals count as equal


class Spread:
    """The gain of candidates over the counterfactuals chosen so far.

    Parameters
    ----------
    features : the columns of factuals and candidates.
    ordering : the order of candidates.
    uncounted : positions of columns that are computed from others.
    """

    def __init__(self, features: Sequence[Feature], ordering: Ordering, uncounted: Sequence[int] = ()) -> None:
        self.ordering = ordering
        self.uncounted = list(uncounted)
        functions = [measure.function for measure in ordering.measures]
        self.counts_changes = any(isinstance(f, Distance) and f.counts_changes for f in functions)
        self._gower = gower(features)
        self._chosen: dict[int, list[Floats]] = {}  # by hash: equal factuals have equal candidates

    def choose(self, rows: Floats, factuals: Floats) -> Bools:
        """Add one row for each factual to the chosen rows; return which of them are new."""
        keys = hash_rows(factuals).tolist()
        new = np.array([not any(_equal(row, s) for s in self._chosen.get(key, [])) for key, row in zip(keys, rows)])
        for key, row in zip(keys, rows):
            self._chosen.setdefault(key, []).append(row)
        return new.astype(bool)

    def gains(self, rows: Floats, factual: Floats) -> Floats:
        """Return the gain of each candidate of a factual (step 2); -inf for chosen rows."""
        chosen = self._chosen[int(hash_rows(factual[None, :])[0])]
        if self.uncounted:
            rows, chosen = (with_values(each, self.uncounted, factual[self.uncounted]) for each in (rows, chosen))
        differing, steps = self._gower.to_each(rows, np.vstack([factual, *chosen]))
        distances = self._gower.finish(steps)
        if self.counts_changes:
            distances += differing / rows.shape[1]  # step 3
        nearest = distances[1:].min(axis=0)
        gain = np.round(nearest - PRICE * distances[0], DECIMALS)
        return np.where((differing[1:] == 0).any(axis=0), -np.inf, gain)

    def repeats_features(self, rows: Floats, factuals: Floats) -> Bools:
        """Return which rows change the same features of their factuals as a row chosen before (step 2)."""
        changed = changed_columns(rows, factuals)
        changed[:, self.uncounted] = False
        same = np.zeros(rows.shape[0], dtype=bool)
        keys = hash_rows(factuals)
        for key in np.unique(keys).tolist():
            mine = np.flatnonzero(keys == key)
            for row in self._chosen.get(int(key), []):
                before = changed_columns(row[None, :], factuals[mine[:1]])
                before[:, self.uncounted] = False
                same[mine] |= (changed[mine] == before).all(axis=1)
        return same

    def next_ordering(self) -> Ordering:
        """Return the order for the next choice: the gain, then the measures."""
        return Ordering((Measure("gain", self.gains, largest_first=True), *self.ordering.measures))


def diverse_set(acceptance: Acceptance, pools: Candidates) -> Winners:
    """Choose counterfactuals one after the other, each by what it adds."""
    n = len(acceptance)
    parts: list[Winners] = []
    for begin in range(0, n, DIVERSE_FACTUALS):
        some = np.arange(begin, min(begin + DIVERSE_FACTUALS, n))
        with within(begin / n, begin / n):
            chosen = _choose_in_turn(acceptance.take(some, apart=True), pools.take(some))
        parts.append(chosen.of_factuals(some))
        report((some[-1] + 1) / n)
    return in_order(acceptance, Winners.join(parts))


def in_order(acceptance: Acceptance, found: Winners) -> Winners:
    """Return chosen rows in the order of the measures (step 4)."""
    return best_of(_by_distance(acceptance), found, acceptance.problem.settings.n_counterfactuals)


def _choose_in_turn(acceptance: Acceptance, pools: Candidates) -> Winners:
    """Return the counterfactuals of a few factuals in the order in which they are chosen."""
    problem, sparse = acceptance.problem, acceptance.problem.settings.sparse
    spread = Spread(problem.features, problem.order, problem.uncounted)
    one = acceptance.for_problem(replace(problem, settings=replace(problem.settings, n_counterfactuals=1)))
    by_gain = one
    left = np.arange(len(acceptance))
    by_set = left if sparse and problem.order.is_of_distances else left[:0]
    parts: list[Winners] = []
    for place in range(problem.settings.n_counterfactuals):
        found: list[Winners] = []
        if place:  # other features first, then the largest gain
            sets = by_set[np.isin(by_set, left)]
            found.append(_of_other_features(one, pools, sets, spread))
            by_set = found[0].owner
            left = left[~np.isin(left, by_set)]
        if left.size:
            strategy = crossed_draws if sparse else whole_draws
            found.append(strategy(by_gain.take(left), pools.take(left)).of_factuals(left))
        part = Winners.join(found)
        new = spread.choose(part.rows, acceptance.matrix[part.owner])
        parts.append(part.take(new))
        left = part.owner[new]
        if not left.size:  # the others have no further candidate
            break
        nearest = _by_distance(one).problem
        by_gain = one.for_problem(replace(nearest, order=spread.next_ordering()))
    return Winners.join(parts)


def _by_distance(acceptance: Acceptance) -> Acceptance:
    """Return the acceptance rule for the same problem without caution."""
    caution = acceptance.problem.caution
    nearest = None if caution is None else replace(caution, strength=0.0)
    return acceptance.for_problem(replace(acceptance.problem, caution=nearest))


def _of_other_features(acceptance: Acceptance, pools: Candidates, which: Ints, spread: Spread) -> Winners:
    """Return the best row, at or above the floor, that changes another set of features than those chosen before."""
    if not which.size:
        return Winners.none(np.empty(0), acceptance.matrix.shape[1])
    found = crossed_draws(acceptance.take(which), pools.take(which), spread.repeats_features)
    return found.take(found.plausibility >= acceptance.least).of_factuals(which)


def diversity_table(owner: Ints, rows: Floats, features: Sequence[Feature]) -> pd.DataFrame:
    """Return the pairwise differences between the counterfactuals of each factual.

    Parameters
    ----------
    owner : the factual of each row, ascending.
    rows : encoded rows.
    features : their columns.

    Returns
    -------
    DataFrame
        By owner: `rows`, their number; `gower`, the mean Gower distance of two of them; `features`, the mean share of
        features in which two of them differ. NaN for a single row.
    """
    owners, place, counts = np.unique(owner, return_inverse=True, return_counts=True)
    distance, differing = gower(features), changes(features)
    totals = np.zeros((2, owners.size))
    for lag in range(1, int(counts.max(initial=1))):
        first = np.flatnonzero(owner[lag:] == owner[:-lag])
        of = place[first]
        totals[0] += np.bincount(of, distance.between(rows[first], rows[first + lag]), owners.size)
        totals[1] += np.bincount(of, differing.sums(rows[first], rows[first + lag]) / len(features), owners.size)
    n_pairs = counts * (counts - 1) / 2
    means = np.divide(totals, n_pairs, out=np.full(totals.shape, np.nan), where=n_pairs > 0)
    return build_frame({"rows": counts, "gower": means[0], "features": means[1]}, pd.Index(owners))


def with_values(rows: Any, columns: Sequence[int], values: Any) -> Any:
    """Return rows with other values in some columns."""
    rows = np.array(rows)
    rows[:, columns] = values
    return rows


def _equal(one: Floats, two: Floats) -> bool:
    return np.array_equal(one, two, equal_nan=True)
