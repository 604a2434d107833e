"""Predictive mean matching: donors whose predictions are nearest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcce.arrays import Indices
from mcce.checks import check_count
from mcce.exceptions import SamplerError
from mcce.rng import RowStreams
from mcce.samplers.base import Bools, Floats, Within
from mcce.samplers.parametric.linear import LinearSampler, bounds_of
from mcce.samplers.smoothing import Smoother, Smoothing, check_smoothing
from mcce.table import Column, Table

_TIE = 1e-9  # of the largest prediction: distances that differ by less are tied


class PmmSampler(LinearSampler):
    """Predictive mean matching (synthpop's `pmm`).

    1. Regress the target on the givens, with a slight ridge (`mcce.samplers.parametric.linear`).
    2. Find the three training rows whose predictions are nearest to the row's own. Rows tied with the third nearest
       take the places that are left at random.
    3. Draw one of the three and give back its value, smoothed on demand.

    Parameters
    ----------
    n_donors : int
        Rows to draw from.
    smoothing : "density" or None
        Kernel smoothing of the drawn values (`mcce.samplers.smoothing`: Sheather-Jones bandwidth, observed range).
    proper : bool
        Draw the parameters from their posterior once, at `fit`, and predict new rows with them; training rows are
        predicted with the estimates (type 1 matching: van Buuren 2018, "Flexible Imputation of Missing Data",
        section 3.4.2).
    random_state : int or None
        Seed of that draw.

    Attributes
    ----------
    coef_, sigma_, estimate_, covariance_ : as in `NormSampler`.
    predictions_, donors_ : the training rows' predictions in order, and their values.

    Notes
    -----
    `log_density` is the log of the donors' share that has exactly this value (base measure: counting), and -inf for
    other values. A restricted draw takes the three nearest among the allowed donors; with smoothing it is drawn again
    until it lies inside.

    References
    ----------
    Little (1988), "Missing-Data Adjustments in Large Surveys", Journal of Business and Economic Statistics 6.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = {"salary": mcce.PmmSampler(n_donors=5), "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age"], random_state=1).fit(loans.X)
    >>> bool(chain.sample(n=50)["salary"].isin(loans.X["salary"]).all())
    True
    """

    predictions_: Floats
    donors_: Floats
    smoother_: Smoother | None

    def __init__(
        self,
        *,
        n_donors: int = 3,
        smoothing: Smoothing = None,
        proper: bool = False,
        random_state: int | None = 0,
    ) -> None:
        self.n_donors = n_donors
        self.smoothing = smoothing
        self.proper = proper
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Refuse parameters that make no sense."""
        super().check_parameters()
        check_count(self.n_donors, "n_donors", self, 1)
        check_smoothing(self.smoothing, self)

    def fit_complete(self, given: Table, x: Floats, target: Column) -> None:
        """Fit the regression (step 1) and put the training rows in the order of their predictions."""
        self.fit_linear(x, target.values, target)
        predictions = self.predict_with(self.estimate_, given)
        order = np.lexsort((target.values, predictions))
        self.predictions_, self.donors_ = predictions[order], target.values[order]
        self.smoother_ = None if self.smoothing is None else Smoother.read(target.values)

    def sample_complete(self, given: Table, rng: RowStreams, within: Within | None) -> Floats:
        """Draw one of the nearest donors for each row (steps 2 and 3)."""
        if self.smoother_ is not None:
            if within is not None:
                return self.sample_by_rejection(given, rng, within)
            return self.smoother_.smooth(self._draw(given, rng, within), rng)
        return self._draw(given, rng, within)

    def supports_complete(self, given: Table, values: Floats) -> Bools:
        """Return whether each value is one of the row's donors; smoothed, whether it is in the observed range."""
        if self.smoother_ is not None:
            supported: Bools = (values >= self.donors_.min()) & (values <= self.donors_.max())
        else:
            supported = np.isfinite(self.log_density_complete(given, values))
        return supported

    def log_density_complete(self, given: Table, values: Floats) -> Floats:
        """Return the log of the donors' share that has each value."""
        if self.smoother_ is not None:
            raise SamplerError(f"{self!r} has no density; without smoothing it has one.")
        near = self._nearest(self.predict(given), self.predictions_)
        n = self.donors_.size
        seen, rank = np.unique(self.donors_, return_inverse=True)
        place = np.searchsorted(seen, values)
        known = (place < seen.size) & (seen[np.minimum(place, seen.size - 1)] == values)
        # donors sorted by value, then by place: those of one value between two places are a range
        keys = np.sort(rank * (n + 1) + np.arange(n))

        def count(first: Indices, after: Indices) -> Indices:
            key = place * (n + 1)
            return np.searchsorted(keys, key + after) - np.searchsorted(keys, key + first)

        sure = count(near.sure_first, near.sure_after)
        tied = count(near.first, near.sure_first) + count(near.sure_after, near.after)
        share = (sure + (near.n_donors - near.n_sure) * tied / near.n_tied) / near.n_donors
        return np.log(share, out=np.full(values.size, -np.inf), where=known & (share > 0.0))

    def _draw(self, given: Table, rng: RowStreams, within: Within | None) -> Floats:
        predicted = self.predict(given)
        n_donors = min(self.n_donors, self.donors_.size)
        if within is None:
            near = self._nearest(predicted, self.predictions_)
            return self.donors_[near.pick(rng.integer(n_donors), rng.integer(near.n_tied))]
        out = np.full(given.n_rows, np.nan)
        limits = np.column_stack(bounds_of(within, given.n_rows))
        distinct, group = np.unique(limits, axis=0, return_inverse=True)
        by_group = np.split(np.argsort(group.ravel(), kind="stable"), np.cumsum(np.bincount(group.ravel()))[:-1])
        for (low, high), rows in zip(distinct, by_group):
            allowed = (self.donors_ >= low) & (self.donors_ <= high)
            if not allowed.any():
                continue
            near = self._nearest(predicted[rows], self.predictions_[allowed])
            streams = rng.take(rows)
            picked = near.pick(streams.integer(near.n_donors), streams.integer(near.n_tied))
            out[rows] = self.donors_[allowed][picked]
        return out

    def _nearest(self, predicted: Floats, sorted_predictions: Floats) -> _Nearest:
        """Find the donors of step 2 among training rows in order of prediction."""
        m = sorted_predictions.size
        k = min(self.n_donors, m)
        tie = _TIE * float(np.abs(self.predictions_).max())
        place = np.searchsorted(sorted_predictions, predicted)
        around = place[:, None] + np.arange(-k, k)
        distance = np.abs(sorted_predictions[np.clip(around, 0, m - 1)] - predicted[:, None])
        distance[(around < 0) | (around >= m)] = np.inf
        kth = np.partition(distance, k - 1, axis=1)[:, k - 1]
        sure_first = np.searchsorted(sorted_predictions, predicted - (kth - tie), side="right")
        sure_after = np.searchsorted(sorted_predictions, predicted + (kth - tie), side="left")
        none_sure = sure_first >= sure_after
        return _Nearest(
            first=np.searchsorted(sorted_predictions, predicted - (kth + tie), side="left"),
            sure_first=np.where(none_sure, place, sure_first),
            sure_after=np.where(none_sure, place, sure_after),
            after=np.searchsorted(sorted_predictions, predicted + (kth + tie), side="right"),
            n_donors=k,
        )


@dataclass(frozen=True)
class _Nearest:
    """Each row's donors by place: sure ones from `sure_first` to `sure_after`, tied ones on both sides of them."""

    first: Indices
    sure_first: Indices
    sure_after: Indices
    after: Indices
    n_donors: int

    @property
    def n_sure(self) -> Indices:
        return self.sure_after - self.sure_first

    @property
    def n_tied(self) -> Indices:
        return self.after - self.first - self.n_sure

    def pick(self, which: npt.NDArray[np.int64], which_tied: npt.NDArray[np.int64]) -> Indices:
        """Return the place of one donor: the sure one number `which`, or beyond these a tied one."""
        before = self.sure_first - self.first
        tied = np.where(which_tied < before, self.first + which_tied, self.sure_after + which_tied - before)
        return np.where(which < self.n_sure, self.sure_first + which, tied)
