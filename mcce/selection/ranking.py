"""The candidates of factuals in order.

1. The distances of an ordering are put together for the kernel, which finds them as it goes through the candidates.
   Gower's comes first where there are bounds: L0 and Gower's sum are the measures that can be bounded.
2. Other measures are found before. Equal rows are measured once, so that they have equal keys even if a function
   answers differently by a last digit.
3. `first` returns the few first candidates of factuals, `full` all of one factual. Both leave out rows that are equal
   to an earlier one, and those beyond a bound. `best_of` puts rows that were found in several ways together.

Distances are compared by their sums of steps, before a mean or a root is taken: the order is the same, with no ties
made by rounding.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Floats, Ints
from mcce.rng import hash_rows
from mcce.selection.candidates import Candidates
from mcce.selection.distances import CHUNK, Distance, columnwise, gower, rowwise, stack
from mcce.selection.kernels import SCALED, rank_candidates
from mcce.selection.ordering import Measure, Ordering
from mcce.table import Feature

NO_VALUES: Floats = np.empty((0, 0))
NO_ROWS: Ints = np.empty((0, 0), dtype=np.int64)


class Ranking:
    """Ranks candidates.

    Parameters
    ----------
    ordering : what they are compared by.
    features : the columns of factuals and pools.
    mutable : positions of the columns that candidates may change.
    pools, factuals : candidates, and the encoded rows that they are candidates of.
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
        # measures may be one and the same: Gower's sum counts changes where all columns are unordered levels
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
        """Return the `most` first candidates of some factuals, a row each, and how many there are."""
        found = np.zeros((which.size, most), dtype=np.int64)
        n_found = np.zeros(which.size, dtype=np.int64)
        self._run(which, np.empty((self.n_values, most)), NO_VALUES, found, n_found)
        return found, n_found

    def full(self, f: int) -> Ints:
        """Return all distinct candidates of one factual in order."""
        begin, end = self.pools.begin[f], self.pools.end[f]
        values = np.empty((self.n_values, end - begin))
        self._run(np.array([f]), NO_VALUES, values, NO_ROWS, np.zeros(1, dtype=np.int64))
        within = np.all(values[: len(self.limits)] <= self.limits[:, f, None], axis=0)
        order = np.lexsort(values[self.order[::-1]])
        order = order[within[order]]
        if self.pools.distinct:
            return np.asarray(order + begin)
        repeated = pd.DataFrame(self.pools.rows[begin:end][order][:, self.mutable]).duplicated().to_numpy()
        return np.asarray(order[~repeated] + begin)

    def _run(self, which: Ints, top: Floats, out: Floats, found: Ints, n_found: Ints) -> None:
        rank_candidates(
            self.cells, self.pools.begin, self.pools.end, which, self.factuals, self.mutable, self.steps, self.tables,
            self.plain, self._given(which), self.limits, self.order, np.empty((self.n_values + 1, CHUNK)), top, out,
            found, n_found,
        )  # fmt: skip

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
        """Say which columns hold numbers with a scale or unordered levels, none of them missing, by distance."""
        complete = np.zeros(len(features), dtype=np.bool_)
        for j in self.mutable:
            complete[j] = not (np.isnan(self.cells[j].sum()) or np.isnan(self.factuals[:, j].sum()))
        unordered = np.array([f.kind == "categorical" for f in features], dtype=np.bool_)
        rows = [complete & (d.how == SCALED) & ((d.scale > 0) | unordered) & (not d.squared) for d in by_step]
        return np.stack(rows)

    def _given(self, which: Ints) -> Floats:
        """Step 2: values of the other measures, a column for each candidate of each factual in `which`."""
        if not self.others:
            return NO_VALUES
        parts = [np.stack([self._values(k, int(f)) for k in range(len(self.others))]) for f in which]
        return np.ascontiguousarray(np.concatenate([np.empty((len(self.others), 0)), *parts], axis=1))

    def _values(self, k: int, f: int) -> Floats:
        """Values of one of the other measures for the candidates of a factual, the smallest the best."""
        measure, begin, end = self.others[k], int(self.pools.begin[f]), int(self.pools.end[f])
        at = f * len(self.others) + k
        if at not in self._of_factual:
            self._of_factual[at] = self._ask(measure, self.pools.rows[begin:end], self.factuals[f])
        return self._of_factual[at]

    @staticmethod
    def _ask(measure: Measure, rows: Floats, factual: Floats) -> Floats:
        assert not isinstance(measure.function, Distance)
        if not rows.shape[0]:
            return np.empty(0)
        _, first, place = np.unique(hash_rows(rows), return_index=True, return_inverse=True)
        by_place = np.argsort(first)  # distinct rows in the order drawn
        back = np.empty_like(by_place)
        back[by_place] = np.arange(by_place.size)
        values = measure.function(rows[first[by_place]], factual)[back][place]
        return -values if measure.largest_first else values


def best_of(
    ordering: Ordering,
    features: tuple[Feature, ...],
    mutable: Ints,
    owner: Ints,
    rows: Floats,
    factuals: Floats,
    k: int,
    max_changes: npt.ArrayLike | None = None,
    max_gower: npt.ArrayLike | None = None,
) -> Ints:
    """Return the places of the best `k` distinct rows of each factual, factual by factual; `owner` says whose they are.

    Of equal rows, and on ties, the earlier one is taken.
    """
    by_owner = np.argsort(owner, kind="stable")
    each = np.arange(factuals.shape[0])
    begin, end = (np.searchsorted(owner[by_owner], each, side=side) for side in ("left", "right"))
    k = min(k, int((end - begin).max(initial=1)))
    pools = Candidates(np.asfortranarray(rows[by_owner]), begin, end)
    ranking = Ranking(ordering, features, mutable, pools, factuals, max_changes, max_gower)
    found, n_found = ranking.first(each, k)
    return np.asarray(by_owner[found[np.arange(k) < n_found[:, None]]])


def _largest_sum(bound: Floats, distance: Distance) -> Floats:
    """Return the largest sum of steps whose mean is at most `bound`, to the last digit."""
    largest = np.asarray(bound * distance.divisor, dtype=np.float64)
    while (over := distance.finish(largest) > bound).any():
        largest = np.where(over, np.nextafter(largest, -np.inf), largest)
    while (under := (distance.finish(np.nextafter(largest, np.inf)) <= bound) & np.isfinite(largest)).any():
        largest = np.where(under, np.nextafter(largest, np.inf), largest)
    return largest
