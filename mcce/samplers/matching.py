"""Predictive mean matching: the donors of a row, draws from them, and shares of values among them.

A row's donors are the `n_donors` with the nearest predictions; ties with the last are broken at random. If donors are
predicted by several fits (folds), the row's prediction by the donor's fit is compared. Predictions are clipped to the
range of the donors', which preserves the order of distances. A restricted draw uses the nearest allowed donors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Floats
from mcce.exceptions import SamplerError
from mcce.rng import RowStreams
from mcce.samplers.base import samplers_of_weights, supported_in_segments
from mcce.samplers.ranks import DistributionFunctions
from mcce.table import Column
from mcce.table.weights import whole_counts

Places = npt.NDArray[np.intp]

MOST_DONORS = 10_000_000  # rows including copies
_CELLS = 4_000_000  # donors per block
_TIE = 1e-9  # relative to the largest prediction: distances that differ by less are tied


@dataclass(frozen=True)
class Donors:
    """Training rows by fit, sorted by prediction within each fit; draws use the nearest `n_donors`.

    The donors of fit f are those from ``starts[f]`` to ``starts[f + 1]``; every fit has donors.
    """

    predictions: Floats
    values: Floats
    starts: Places
    n_donors: int

    @classmethod
    def arrange(cls, predictions: Floats, values: Floats, fit: Places, n_donors: int) -> Donors:
        """Sort donors by the fit that predicted each, and by prediction."""
        order = np.lexsort((values, predictions, fit))
        return cls(predictions[order], values[order], np.concatenate([[0], np.cumsum(np.bincount(fit))]), n_donors)

    def draw(self, predicted: Floats, rng: RowStreams, low: Floats | None = None, high: Floats | None = None) -> Floats:
        """Draw one donor's value for each row, between the row's bounds; NaN if there is no donor.

        `predicted` has one column per fit.
        """
        if low is None or high is None:
            near = self.nearest(predicted)
            return self.values[near.pick(rng.integer(near.n_donors), rng.integer(near.n_tied))]
        out = np.full(predicted.shape[0], np.nan)
        for lowest, highest, rows in _rows_by_limits(low, high):
            allowed = np.flatnonzero((self.values >= lowest) & (self.values <= highest))
            if allowed.size:
                near = self.nearest(predicted[rows], allowed)
                streams = rng.take(rows)
                picked = near.pick(streams.integer(near.n_donors), streams.integer(near.n_tied))
                out[rows] = self.values[allowed[picked]]
        for _ in range(2):  # advance the streams as the branch above does
            rng.next_key()
        return out

    def log_weight(self, predicted: Floats, drawn: Floats, low: Floats, high: Floats) -> Floats:
        """Return the log importance weight of each restricted draw; -inf without a draw.

        The nearest allowed donors are not the allowed ones among the nearest donors, so the draw is not a truncated
        one, and its weight depends on the value. The mean weight is the probability of the allowed values.
        """
        weight = np.full(drawn.size, -np.inf)
        for lowest, highest, rows in _rows_by_limits(low, high):
            rows = rows[~np.isnan(drawn[rows])]
            if rows.size:
                allowed = np.flatnonzero((self.values >= lowest) & (self.values <= highest))
                free, restricted = (self.log_share(predicted[rows], drawn[rows], among) for among in (None, allowed))
                weight[rows] = free - restricted
        return weight

    def log_share(self, predicted: Floats, values: Floats, allowed: Places | None = None) -> Floats:
        """Return the log probability of each value; -inf if none of the row's donors has it."""
        near = self.nearest(predicted, allowed)
        donors = self.values if allowed is None else self.values[allowed]
        n = donors.size
        seen, rank = np.unique(donors, return_inverse=True)
        place = np.searchsorted(seen, values)
        known = (place < seen.size) & (seen[np.minimum(place, seen.size - 1)] == values)
        # donors sorted by value, then by position: those of one value between two positions are a range
        keys = np.sort(rank * (n + 1) + np.arange(n))

        def count(first: Places, after: Places) -> Places:
            key = place[:, None] * (n + 1)
            return np.searchsorted(keys, key + after) - np.searchsorted(keys, key + first)

        share = near.share(count)
        return np.log(share, out=np.full(values.size, -np.inf), where=known & (share > 0.0))

    def mean_over(self, predicted: Floats, values: Floats, weigh: Callable[[Floats, Floats], Floats]) -> Floats:
        """Return the mean of ``weigh(donor values, value)`` over each row's donors, weighted by their probabilities."""
        near = self.nearest(predicted)
        sure, tied = 1.0 / near.n_donors, np.zeros(values.size)
        some = near.n_tied > 0
        tied[some] = (near.n_donors - near.n_sure[some]) / near.n_tied[some] / near.n_donors
        mean = np.zeros(values.size)
        for f in range(predicted.shape[1]):
            size = near.after[:, f] - near.first[:, f]
            block = np.cumsum(size) // _CELLS
            for rows in np.split(np.arange(values.size), np.flatnonzero(np.diff(block)) + 1):
                row = np.repeat(rows, size[rows])
                inside = np.arange(row.size) - np.repeat(np.cumsum(size[rows]) - size[rows], size[rows])
                place = near.first[row, f] + inside
                is_sure = (place >= near.sure_first[row, f]) & (place < near.sure_after[row, f])
                each = np.where(is_sure, sure, tied[row]) * weigh(self.values[place], values[row])
                mean += np.bincount(row, each, minlength=values.size)
        return mean

    def share_within(self, predicted: Floats, low: Floats, high: Floats) -> Floats:
        """Return the probability that each row's unrestricted draw is between the row's bounds."""
        near = self.nearest(predicted)
        share = np.empty(predicted.shape[0])
        for lowest, highest, rows in _rows_by_limits(low, high):
            upto = np.concatenate([[0], np.cumsum((self.values >= lowest) & (self.values <= highest))])
            share[rows] = near.take(rows).share(lambda first, after: upto[after] - upto[first])  # noqa: B023
        return share

    def share_upto(self, predicted: Floats, high: Floats) -> Floats:
        """Return the probability that each row's draw is at most its bound."""
        return self.mean_over(predicted, high, lambda donors, bound: (donors <= bound).astype(np.float64))

    def distribution(self, predicted: Floats) -> DistributionFunctions:
        """Return the empirical distribution of each row's donors."""
        return DistributionFunctions.of_atoms(
            np.unique(self.values),
            lambda high: self.share_upto(predicted, high),
            n_donors=min(self.n_donors, self.values.size),
        )

    def supports(self, predicted: Floats, values: Floats, supported: Callable[[Floats, Floats], Bools]) -> Bools:
        """Return whether each row's donors support its value, by ``supported(donors, values)``."""
        near = self.nearest(predicted)
        return supported_in_segments(supported, self.values, near.first, near.after, values)

    def nearest(self, predicted: Floats, allowed: Places | None = None) -> Nearest:
        """Return each row's donors, by their positions among all donors or among the allowed ones."""
        inside = np.clip(predicted, self.predictions.min(), self.predictions.max())
        donors, starts = self.predictions, self.starts
        if allowed is not None:
            donors, starts = donors[allowed], np.searchsorted(allowed, starts)
        k = min(self.n_donors, donors.size)
        fits = [donors[start:after] for start, after in pairwise(starts)]
        kth = _distance_of_last(fits, inside, k)
        tie = _TIE * float(np.abs(self.predictions).max())
        bounds = np.empty((4, *inside.shape), dtype=np.intp)
        for f, part in enumerate(fits):
            row = inside[:, f]
            place = np.searchsorted(part, row)
            sure_first = np.searchsorted(part, row - (kth - tie), side="right")
            sure_after = np.searchsorted(part, row + (kth - tie), side="left")
            none_sure = sure_first >= sure_after
            bounds[0, :, f] = np.searchsorted(part, row - (kth + tie), side="left")
            bounds[1, :, f] = np.where(none_sure, place, sure_first)
            bounds[2, :, f] = np.where(none_sure, place, sure_after)
            bounds[3, :, f] = np.searchsorted(part, row + (kth + tie), side="right")
        first, sure_first, sure_after, after = bounds + starts[:-1]
        return Nearest(first, sure_first, sure_after, after, k)


def copies_of(target: Column, owner: object) -> Places:
    """Return the number of copies of each row; raise if weights are not counts, or their sum is too large."""
    assert target.weights is not None
    counts = whole_counts(target.weights, MOST_DONORS)
    if counts is None:
        is_sum = target.total > MOST_DONORS
        found = f"weights that sum to {target.total:,.0f}" if is_sum else "weights that are not whole numbers"
        raise SamplerError(
            f"{owner!r} for {target.feature.name!r} counts a row of weight 2 as two donors; got {found}; give counts "
            f"with a sum of at most {MOST_DONORS:,}, or use another sampler "
            f"({samplers_of_weights()})."
        )
    return counts


def _rows_by_limits(low: Floats, high: Floats) -> Iterator[tuple[float, float, Places]]:
    """Yield each distinct pair of bounds with its rows."""
    limits, group = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)
    rows_by_limits = np.split(np.argsort(group.ravel(), kind="stable"), np.cumsum(np.bincount(group.ravel()))[:-1])
    for (lowest, highest), rows in zip(limits, rows_by_limits):
        yield lowest, highest, rows


def _distance_of_last(fits: Sequence[Floats], inside: Floats, k: int) -> Floats:
    """Return each row's distance to its k-th nearest donor."""
    windows = []
    for f, part in enumerate(fits):
        around = np.searchsorted(part, inside[:, f])[:, None] + np.arange(-k, k)
        distance = np.full(around.shape, np.inf)
        exists = (around >= 0) & (around < part.size)
        if part.size:
            near = np.abs(part[np.clip(around, 0, part.size - 1)] - inside[:, f, None])
            distance[exists] = near[exists]
        windows.append(distance)
    return np.partition(np.hstack(windows), k - 1, axis=1)[:, k - 1]


@dataclass(frozen=True)
class Nearest:
    """Each row's donors by position, one column per fit.

    Those nearer than the last are from `sure_first` to `sure_after`; those tied with the last are on both sides.
    """

    first: Places
    sure_first: Places
    sure_after: Places
    after: Places
    n_donors: int

    @property
    def n_sure(self) -> Places:
        """Number of donors nearer than the last one."""
        total: Places = (self.sure_after - self.sure_first).sum(axis=1)
        return total

    @property
    def n_tied(self) -> Places:
        """Number of donors tied with the last one."""
        total: Places = (self.after - self.first).sum(axis=1)
        return total - self.n_sure

    def take(self, rows: Places) -> Nearest:
        first, sure_first, sure_after, after = self.first, self.sure_first, self.sure_after, self.after
        return Nearest(first[rows], sure_first[rows], sure_after[rows], after[rows], self.n_donors)

    def share(self, count: Callable[[Places, Places], Places]) -> Floats:
        """Return the share of each row's donors with some property; `count` counts them between two positions."""
        sure = count(self.sure_first, self.sure_after).sum(axis=1)
        tied = (count(self.first, self.sure_first) + count(self.sure_after, self.after)).sum(axis=1)
        return np.asarray((sure + (self.n_donors - self.n_sure) * tied / self.n_tied) / self.n_donors)

    def pick(self, which: npt.NDArray[np.int64], which_tied: npt.NDArray[np.int64]) -> Places:
        """Return the position of the donor number `which`; if it is not a sure one, the tied one `which_tied`."""
        sure = self.sure_after - self.sure_first
        row, fit, number = _locate(which, sure)
        picked = self.sure_first[row, fit] + number
        row, fit, number = _locate(which_tied, self.after - self.first - sure)
        before = self.sure_first[row, fit] - self.first[row, fit]
        tied = np.where(number < before, self.first[row, fit], self.sure_after[row, fit] - before) + number
        return np.where(which < self.n_sure, picked, tied)


def _locate(which: npt.NDArray[np.int64], counts: Places) -> tuple[Places, Places, Places]:
    """Return row, column and index within the column of the item `which` of each row, for `counts` per column."""
    row = np.arange(which.size)
    upto = np.cumsum(counts, axis=1)
    fit = np.minimum((upto <= which[:, None]).sum(axis=1), counts.shape[1] - 1)
    return row, fit, which - (upto - counts)[row, fit]
