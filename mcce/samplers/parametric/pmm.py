"""Predictive mean matching: donors whose predictions are nearest."""

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

FEWEST_SHARES = 20  # donors whose shares can be taken for probabilities: of three, most counted numbers have none


@register_sampler("pmm")
class PmmSampler(DonorRegression):
    """Predictive mean matching (synthpop's `pmm`).

    1. Regress the target on the givens, with a slight ridge (`mcce.samplers.parametric.linear`).
    2. Find the three training rows whose predictions are nearest to the row's own; ties share the last place
       (`mcce.samplers.matching`).
    3. Draw one of the three and give back its value, smoothed on demand.

    Parameters
    ----------
    n_donors : int
        Rows to draw from.
    smoothing : "density" or None
        Kernel smoothing of the drawn values (`mcce.samplers.smoothing`: Sheather-Jones bandwidth, observed range).
    formula : str or None
        The design in R's notation, as in "salary ~ age * sex + log(savings + 1)"; None: all givens as they are.
        `mcce.samplers.parametric.formula` says which functions there are.
    proper : bool
        Draw the parameters from their posterior once, at `fit`, and predict new rows with them; training rows are
        predicted with the estimates (type 1 matching: van Buuren 2018, "Flexible Imputation of Missing Data",
        section 3.4.2).
    random_state : int or None
        Seed of that draw, beside the chain's own; a sampler that is fitted alone has this one only.

    Attributes
    ----------
    coef_, sigma_, estimate_, covariance_ : as in `NormSampler`.
    predictions_, donors_ : the training rows' predictions in order, and their values.

    Notes
    -----
    `log_density` of a number with point mass is the log of the donors' share that has it; of other numbers it is that
    of normal kernels at the donors, a declared surrogate, with bandwidth 0.9 sigma n_donors^(-1/5): so few donors do
    not tell their own spread. Both have a small even part (`mcce.samplers.density`). Of fewer than 20 donors the shares
    of counted numbers are too coarse to be compared: ``sampler="auto"`` and `compare_conditionals` judge the draws. A
    restricted draw takes the three nearest among the allowed donors; with smoothing it is drawn again until it lies
    inside.

    Weights of training rows have to be counts: a row of weight 2 is two donors. Of other weights there are no three
    nearest, and they are refused.

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
        """Fit the regression (step 1) and put the training rows in the order of their predictions."""
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
        """Return the log weight of each draw: the nearest of the allowed donors are no truncated draw."""
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
        """Return whether each value is one of the row's donors or as close to them as they are to each other.

        A smoothed value lies in the observed range, within reach of the kernels.
        """
        supported = partial(supported_by, is_number=True) if self.smoother_ is None else self.smoother_.supports
        return self._matching().supports(self.predict(given)[:, None], values, supported)

    def log_density_complete(self, given: Table, values: Floats) -> Floats:
        """Return the log of the donors' share that has each value with point mass, of the kernels at other values."""
        self.refuse_smoothing()
        predicted = self.predict(given)[:, None]
        counted = self.column_.has_mass(values)
        density = np.empty(values.size)
        density[counted] = np.exp(self._matching().log_share(predicted[counted], values[counted]))
        density[~counted] = self._matching().mean_over(predicted[~counted], values[~counted], self._kernel)
        return self.column_.log_with_even_part(density, values)

    def _kernel(self, donors: Floats, values: Floats) -> Floats:
        """Return the normal kernel at each donor without point mass, at one value each."""
        width = silverman(self.sigma_, 0.0, self.n_donors) or 1.0  # an exact fit has no spread
        kernel = np.exp(-0.5 * ((values - donors) / width) ** 2) / (width * np.sqrt(2.0 * np.pi))
        return np.where(self.column_.has_mass(donors), 0.0, kernel)

    @property
    def has_coarse_probabilities(self) -> bool:
        """Whether there are too few donors for their shares to be probabilities; they are judged by draws instead."""
        return self.n_donors < FEWEST_SHARES

    def check_complete(self, n_rows: int) -> None:
        check_count_of(self.donors_.size, "the number of donors_", 1, max(n_rows, MOST_DONORS))

    def _matching(self) -> Donors:
        return Donors.of_one_fit(self.predictions_, self.donors_, self.n_donors)
