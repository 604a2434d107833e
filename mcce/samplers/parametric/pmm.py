"""Predictive mean matching: donors with the nearest predictions."""

from __future__ import annotations

from functools import partial

import numpy as np

from mcce.base.arrays import Bools, Floats
from mcce.base.checks import check_count
from mcce.rng import RowStreams
from mcce.samplers.base import Within, supported_by
from mcce.samplers.density import silverman
from mcce.samplers.matching import MOST_DONORS, Donors, copies_of
from mcce.samplers.parametric.linear import DonorRegression
from mcce.samplers.registry import register_sampler
from mcce.samplers.smoothing import Smoothing
from mcce.storage.fields import FLOAT, check_count_of, learned
from mcce.table import Column, Table

FEWEST_SHARES = 20  # donors; with fewer, the shares of values with point mass are too coarse (most are 0)


@register_sampler("pmm")
class PmmSampler(DonorRegression):
    """Predictive mean matching (synthpop's `pmm`).

    1. Regress the target on the givens, with a slight ridge (`mcce.samplers.parametric.linear`).
    2. Find the `n_donors` training rows with the nearest predictions; ties are broken at random
       (`mcce.samplers.matching`).
    3. Draw one of them and return its value, smoothed on request.

    Parameters
    ----------
    n_donors : int
        Number of donors to draw from.
    smoothing : "density" or None
        Kernel smoothing of the drawn values (`mcce.samplers.smoothing`: Sheather-Jones bandwidth, observed range).
    formula, random_state : see `NormSampler`
    proper : bool
        Draw the parameters from their posterior once, at `fit`, and predict new rows with them; training rows are
        predicted with the estimates (type 1 matching: van Buuren 2018, "Flexible Imputation of Missing Data",
        section 3.4.2).

    Attributes
    ----------
    coef_, sigma_, estimate_, covariance_ : as in `NormSampler`.
    predictions_, donors_ : predictions of the training rows in ascending order, and their values.

    Notes
    -----
    `log_density` of a value with point mass is the log of its share among the donors. For other values it is a
    surrogate: normal kernels at the donors, with bandwidth 0.9 sigma n_donors^(-1/5), because so few donors do not
    determine their own spread. Both are mixed with a small uniform component (`mcce.samplers.density`). With fewer than
    20 donors the shares of values with point mass are too coarse to be compared, so ``sampler="auto"`` and
    `compare_conditionals` judge the draws. A restricted draw takes the nearest allowed donors; with smoothing it is
    redrawn until it is allowed.

    Weights of training rows must be counts: a row of weight 2 is two donors.

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

    takes_weights = "counts"
    discloses = "{donors_} training values of it"

    predictions_: Floats = learned(FLOAT, "donors", rising="weakly")
    donors_: Floats = learned(FLOAT, "donors", finite=True, filled=True)

    def __init__(
        self,
        *,
        n_donors: int = 3,
        smoothing: Smoothing = None,
        formula: str | None = None,
        proper: bool = False,
        random_state: int | None = 0,
    ) -> None:
        super().__init__(smoothing=smoothing, formula=formula, proper=proper, random_state=random_state)
        self.n_donors = n_donors

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count(self.n_donors, "n_donors", self, 1)

    def fit_complete(self, given: Table, x: Floats, target: Column) -> None:
        """Fit the regression (step 1) and sort the training rows by their predictions."""
        self.fit_linear(x, target.values, target)
        predictions = self.predict_with(self.estimate_, given)
        order = np.lexsort((target.values, predictions))
        if target.weights is not None:
            order = np.repeat(order, copies_of(target, self)[order])
        self.predictions_, self.donors_ = predictions[order], target.values[order]
        self.read_margin(target.values, target.weights)

    def sample_complete(self, given: Table, rng: RowStreams, within: Within | None) -> Floats:
        """Draw one of the nearest donors for each row (steps 2 and 3)."""
        bounds = () if within is None else within.bounds(given.n_rows)
        drawn = self._matching().draw(self.predict(given)[:, None], rng, *bounds)
        return drawn if self.smoother_ is None else self.smoother_.smooth(drawn, rng)

    def probability_within(self, given: Table, within: Within) -> Floats:
        """Return the share of the row's donors that are allowed."""
        return self._matching().share_within(self.predict(given)[:, None], *within.bounds(given.n_rows))

    def log_mass_complete(self, given: Table, within: Within, drawn: Floats) -> Floats:
        """Return the log importance weight of each draw: the nearest allowed donors are not a truncated draw."""
        return self._matching().log_weight(self.predict(given)[:, None], drawn, *within.bounds(given.n_rows))

    def probability_upto(self, given: Table, high: Floats) -> Floats:
        return self._matching().share_upto(self.predict(given)[:, None], high)

    def quantiles_complete(self, given: Table, u: Floats) -> Floats:
        """Return an order statistic of the row's donors."""
        return self._matching().distribution(self.predict(given)[:, None]).inverse(u)

    @property
    def n_ranked(self) -> int:
        return min(self.n_donors, self.donors_.size)

    def supports_complete(self, given: Table, values: Floats) -> Bools:
        """Return whether each value is within the local spacing of one of the row's donors.

        With smoothing: whether it is in the observed range and within the reach of a kernel.
        """
        supported = partial(supported_by, is_number=True) if self.smoother_ is None else self.smoother_.supports
        return self._matching().supports(self.predict(given)[:, None], values, supported)

    def log_density_complete(self, given: Table, values: Floats) -> Floats:
        """Return the log share among the donors of values with point mass, the log kernel density of others."""
        self.refuse_smoothing()
        predicted = self.predict(given)[:, None]
        counted = self.column_.has_mass(values)
        density = np.empty(values.size)
        density[counted] = np.exp(self._matching().log_share(predicted[counted], values[counted]))
        density[~counted] = self._matching().mean_over(predicted[~counted], values[~counted], self._kernel)
        return self.column_.log_with_uniform_part(density, values)

    def _kernel(self, donors: Floats, values: Floats) -> Floats:
        """Return the normal kernel of each donor at a value; 0 for donors with point mass."""
        width = silverman(self.sigma_, 0.0, self.n_donors) or 1.0  # an exact fit has no spread
        kernel = np.exp(-0.5 * ((values - donors) / width) ** 2) / (width * np.sqrt(2.0 * np.pi))
        return np.where(self.column_.has_mass(donors), 0.0, kernel)

    @property
    def has_coarse_probabilities(self) -> bool:
        """Whether the donors are too few for their shares to be compared; draws are compared instead."""
        return self.n_donors < FEWEST_SHARES

    def check_complete(self, n_rows: int) -> None:
        check_count_of(self.donors_.size, "the number of donors_", 1, max(n_rows, MOST_DONORS))

    def _matching(self) -> Donors:
        return Donors(self.predictions_, self.donors_, np.array([0, self.donors_.size]), self.n_donors)
