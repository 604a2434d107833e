"""Predictive mean matching: donors with the nearest predictions (Little 1988; synthpop's and mice's `pmm`)."""

from __future__ import annotations

import numpy as np

from mcce._utils import Floats, Ints, check_count
from mcce.samplers.base import register_sampler
from mcce.samplers.design import distinct_rows
from mcce.samplers.distributions import Donors
from mcce.samplers.linear import LinearSampler
from mcce.samplers.margin import Margin
from mcce.table import Column, Table

TIE = 1e-9  # relative to the largest prediction: distances that differ by less are tied


@register_sampler("pmm")
class PmmSampler(LinearSampler):
    """Predictive mean matching (synthpop's `pmm`).

    1. Regress the target on the givens, with a slight ridge (`mcce.samplers.linear`).
    2. The donors of a row are the `n_donors` training rows with the nearest predictions. Rows tied with the last one
       share the probability that the nearer rows leave.
    3. Draw one of the donors and return its value.

    Parameters
    ----------
    n_donors : int
        Number of donors to draw from. Three, synthpop's default, follow the training rows closely; 20 have a better log
        score.
    formula, random_state : see `NormSampler`
    proper : bool
        Draw the parameters from their posterior once, at `fit`, and predict new rows with them; training rows are
        predicted with the estimates (type 1 matching: van Buuren 2018, "Flexible Imputation of Missing Data",
        section 3.4.2).

    Attributes
    ----------
    coef_, sigma_, estimate_ : as in `NormSampler`.
    predictions_, donors_ : predictions of the training rows in ascending order, and their values.

    Examples
    --------
    >>> import mcce
    >>> from mcce.samplers import PmmSampler
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = {"salary": PmmSampler(n_donors=5), "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age"], random_state=1).fit(loans.X)
    >>> bool(chain.sample(n=50)["salary"].isin(loans.X["salary"]).all())
    True
    """

    def __init__(
        self,
        *,
        n_donors: int = 3,
        formula: str | None = None,
        proper: bool = False,
        random_state: int | None = None,
    ) -> None:
        super().__init__(formula=formula, proper=proper, random_state=random_state)
        self.n_donors = n_donors

    def fit_design(self, x: Floats, target: Column, given: Table) -> None:
        """Fit the regression, and sort the training rows by their predictions."""
        check_count(self.n_donors, "n_donors")
        self.fit_linear(x, target.values)
        predictions = self.predict(given, self.estimate_.beta)
        order = np.lexsort((target.values, predictions))
        self.predictions_, self.donors_ = predictions[order], target.values[order]
        self.margin_ = Margin.fit(target.values, target.feature)

    def distribution(self, given: Table) -> Donors:
        """Return the donors of each row: a window of the training rows, sorted by value."""
        predicted = np.clip(self.predict(given), self.predictions_[0], self.predictions_[-1])
        windows = self._windows(predicted)
        first, group = distinct_rows(windows.astype(np.float64))
        begin, sure_begin, sure_end, end = windows[first].T
        size = end - begin
        segment = np.repeat(np.arange(size.size), size)
        place = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size - begin, size)
        is_sure = (place >= sure_begin[segment]) & (place < sure_end[segment])
        n_sure = sure_end - sure_begin
        of_tied = (min(self.n_donors, self.donors_.size) - n_sure) / np.maximum(size - n_sure, 1)
        weight = np.where(is_sure, 1.0, of_tied[segment])
        order = np.lexsort((self.donors_[place], segment))
        upto = np.append(0, np.cumsum(size))[group[:, None] + [0, 1]]
        equal = bool((weight == 1.0).all())
        return Donors(
            self.donors_[place][order], upto[:, 0], upto[:, 1], None if equal else weight[order], self.margin_
        )

    def _windows(self, predicted: Floats) -> Ints:
        """Return where each row's donors begin and end, those nearer than the last inside: (begin, sure, sure, end)."""
        training = self.predictions_
        k = min(self.n_donors, training.size)
        around = np.searchsorted(training, predicted)[:, None] + np.arange(-k, k)
        distance = np.abs(training[np.clip(around, 0, training.size - 1)] - predicted[:, None])
        distance[(around < 0) | (around >= training.size)] = np.inf
        last = np.partition(distance, k - 1, axis=1)[:, k - 1]
        tie = TIE * float(np.abs(training).max())
        begin = np.searchsorted(training, predicted - (last + tie), side="left")
        end = np.searchsorted(training, predicted + (last + tie), side="right")
        sure_begin = np.searchsorted(training, predicted - (last - tie), side="right")
        sure_end = np.maximum(np.searchsorted(training, predicted + (last - tie), side="left"), sure_begin)
        return np.column_stack([begin, sure_begin, sure_end, end])
