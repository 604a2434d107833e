"""A two-part model of amounts with a point mass at the smallest value: hours of overtime, savings, claims.

1. A logistic regression models whether the target is its smallest training value. It is fitted to augmented rows, which
   makes it robust to separation (`mcce.samplers.parametric.design`).
2. Another conditional, fitted to the rows above the smallest value, models the rest.
3. A draw is the smallest value with the probability of step 1, and otherwise a draw from the rest.

Unlike a tobit model, the share of zeros and the amounts have separate equations (Cragg 1971, "Some statistical models
for limited dependent variables"; Duan and others 1983).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.exceptions import SamplerError
from mcce.rng import RowStreams
from mcce.samplers.base import IMPOSSIBLE, BaseMeasure, ConditionalSampler, Within
from mcce.samplers.density import ColumnDensity
from mcce.samplers.parametric.design import augmented
from mcce.samplers.parametric.glm import Multinomial, cholesky, fit_multinomial, log_softmax
from mcce.samplers.parametric.norm import NormSampler
from mcce.samplers.parametric.regression import RegressionSampler
from mcce.samplers.ranks import LEAST_RANK, MOST_RANK
from mcce.samplers.registry import make_sampler, register_sampler
from mcce.samplers.restricted import log_of
from mcce.samplers.statsmodels.sampler import StatsmodelsSampler
from mcce.samplers.summary import Summary, coefficient_table
from mcce.storage.fields import learned, require
from mcce.table import Column, Feature, Table
from mcce.table.grid import MOST_DECIMALS, decimals_of


@register_sampler("twopart")
class TwoPartSampler(RegressionSampler):
    """Logistic regression for a point mass at the smallest value, and another conditional for the rest.

    Parameters
    ----------
    rest : str or ConditionalSampler
        The conditional of the values above the smallest one, for numbers: "gamma", "norm", "cart", ...
    formula : str or None
        The design of the logistic regression, and of the rest if `rest` is the name of a sampler with a formula.
    proper : bool
        Draw the coefficients of the logistic regression, and of a named `rest`, once at `fit`.
    random_state : int or None
        Seed of that draw, see `NormSampler`.

    Attributes
    ----------
    smallest_ : float
    model_ : the logistic regression; None if all values are the smallest, or all are left to `rest`.
    rest_ : the fitted conditional of the other values; None if there are none.

    Notes
    -----
    The smallest value has point mass if at least two training rows have it, or if `rest` cannot model it (0 and gamma);
    otherwise `rest` models all values.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler={"savings": "twopart", "*": "cart"}, fixed=["age", "sex"], random_state=1)
    >>> chain.fit(loans.X).samplers_["savings"].smallest_
    0.0
    """

    handles = frozenset({"numeric"})
    takes_weights = True
    dispensable = None
    discloses = "coefficients, its smallest value, and {rest_}"

    smallest_: float = learned(float)
    decimals_: int | None = learned(int, least=0, most=MOST_DECIMALS, optional=True)
    model_: Multinomial | None = learned(Multinomial, optional=True)
    measure_: BaseMeasure = learned(str, longest=8)
    rest_: RegressionSampler | None = learned(RegressionSampler, optional=True)

    def __init__(
        self,
        rest: str | ConditionalSampler = "gamma",
        *,
        formula: str | None = None,
        proper: bool = False,
        random_state: int | None = 0,
    ) -> None:
        super().__init__(formula=formula, proper=proper, random_state=random_state)
        self.rest = rest

    def fit_complete(self, given: Table, x: Floats, target: Column) -> None:
        """Fit the logistic regression (step 1) and the rest (step 2)."""
        values, weights = target.values, target.weights
        column = ColumnDensity.of(values, weights)
        self.smallest_, self.decimals_, self.measure_ = column.low, decimals_of(values), column.base_measure
        above = values > self.smallest_
        self.model_ = self.rest_ = None
        rest = self._make_rest(target.feature)
        needs_positive = rest.numbers != "any" and self.smallest_ <= 0.0
        if (~above).sum() < 2 and not needs_positive:
            above[:] = True
        elif above.any():
            self.model_ = self._fit_share(x, above.astype(np.int64), target)
        if not above.any():
            return
        rows = np.flatnonzero(above)
        rest.check_target(target.feature)
        if weights is not None:
            rest.check_weights(target.feature)
        self.rest_ = rest.fit(given.take(rows), target.take(rows))
        if isinstance(self.rest_, NormSampler | StatsmodelsSampler):
            self.rest_.column_ = column  # one base measure for the whole column

    def _fit_share(self, x: Floats, is_above: Ints, target: Column) -> Multinomial:
        fitted = fit_multinomial(augmented(x, is_above, 2, target.weights), 2, covariance=self.proper)
        if fitted.covariance is None:
            return fitted
        moved = cholesky(fitted.covariance) @ self.proper_streams(target, fitted.covariance.shape[0]).normal()
        return replace(fitted, intercept=fitted.intercept + moved[:1], coef=fitted.coef + moved[None, 1:])

    def _make_rest(self, feature: Feature) -> RegressionSampler:
        """Return the unfitted conditional of the rest; a named one takes `formula`, `proper` and the seed."""
        rest = make_sampler(self.rest)
        if not isinstance(rest, RegressionSampler) or rest.get_params().get("smoothing") is not None:
            raise SamplerError(
                f"rest of {type(self).__name__} for {feature.name!r} is {rest!r}; it must be a regression of numbers "
                "without smoothing, as gamma, norm, normrank or quantile."
            )
        if isinstance(self.rest, str):
            shared = {"formula": self.formula or rest.formula, "proper": self.proper, "random_state": self.random_state}
            known = rest.get_params(deep=False)
            rest = type(rest)(**{**known, **{name: value for name, value in shared.items() if name in known}})
        if self._fit_key is not None:
            rest.seed_fit(self._fit_key)
        return rest

    def sample_complete(self, given: Table, rng: RowStreams, within: Within | None) -> Floats:
        """Draw one of the two parts, then its value (step 3), restricted to allowed values of both."""
        allowed = Within() if within is None else Within(low=within.low, high=within.high)
        at_smallest, above = self._weights(given, allowed)
        drawn = np.full(given.n_rows, np.nan)
        if self.rest_ is not None:
            drawn = self.rest_.sample_complete(given, rng.child("rest"), self._above(allowed, given.n_rows))
        above = np.where(np.isnan(drawn), 0.0, above)
        total = at_smallest + above
        is_smallest = rng.uniform() * total < at_smallest
        return np.where(total > 0.0, np.where(is_smallest, self.smallest_, drawn), np.nan)

    def probability_within(self, given: Table, within: Within) -> Floats:
        return np.minimum(sum(self._weights(given, within)), 1.0)

    def quantiles_complete(self, given: Table, u: Floats) -> Floats:
        """Return the smallest value up to its probability, and quantiles of the rest beyond it."""
        n = given.n_rows
        if self.rest_ is None:
            return np.full(n, self.smallest_)
        at_smallest, above = self._weights(given, Within())
        room = self.rest_.probability_within(given, self._above(Within(), n))
        part = np.divide(u - at_smallest, above, out=np.zeros(n), where=above > 0.0)
        level = np.clip(1.0 - room + room * np.clip(part, 0.0, 1.0), LEAST_RANK, MOST_RANK)
        return np.where(u <= at_smallest, self.smallest_, self.rest_.quantiles_complete(given, level))

    def supports_complete(self, given: Table, values: Floats) -> Bools:
        """Return whether the part of each value supports it."""
        at_smallest, _ = self._weights(given, Within())
        is_smallest = values == self.smallest_
        if self.rest_ is None:
            return np.asarray(is_smallest)
        others = self.rest_.supports_complete(given, values) & ((values > self.smallest_) | (self.model_ is None))
        return np.where(is_smallest & (at_smallest > IMPOSSIBLE), True, others)

    def log_density_complete(self, given: Table, values: Floats) -> Floats:
        """Return the log probability of the smallest value; for others the log of share and density of the rest."""
        at_smallest, above = self._weights(given, Within())
        is_smallest = values == self.smallest_
        if self.rest_ is None:
            return np.where(is_smallest, 0.0, -np.inf)
        density = self.rest_.log_density_complete(given, values)
        if self.model_ is None:
            return density
        room = log_of(self.rest_.probability_within(given, self._above(Within(), given.n_rows)))
        rest = np.where(values > self.smallest_, density - room + log_of(above), -np.inf)
        return np.where(is_smallest, log_of(at_smallest), rest)

    def base_measure(self) -> BaseMeasure:
        return "counting" if self.always_missing_ or self.rest_ is None else self.measure_

    def summary(self) -> Summary:
        """Return the coefficients of both parts."""
        if self.always_missing_ or self.rest_ is None:
            return super().summary()
        if self.model_ is None:
            return self.rest_.summary()
        estimate = np.append(self.model_.intercept, self.model_.coef)
        about = {"Model": f"logit of a value above {self.smallest_:g}"}
        first = coefficient_table(["const", *self.design_.columns], estimate, None, about)
        return Summary(f"{first}\n{self.rest_.summary()}")

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        super().check_state(given, target, n_rows)
        if not self.always_missing_ and self.rest_ is not None:
            self.rest_.check_state(given, target, n_rows)

    def check_complete(self, n_rows: int) -> None:
        if self.model_ is not None:
            require(self.model_.coef.shape == (1, self.design_.n_columns), "model_ does not match the design")
            require(self.rest_ is not None, "rest_ is missing")

    def _weights(self, given: Table, within: Within) -> tuple[Floats, Floats]:
        """Return the probabilities of an allowed smallest value, and of an allowed value above it."""
        n = given.n_rows
        low, high = within.bounds(n)
        first = ((low <= self.smallest_) & (high >= self.smallest_)).astype(np.float64)
        if self.rest_ is None:
            return first, np.zeros(n)
        allowed = self.rest_.probability_within(given, self._above(within, n))
        if self.model_ is None:
            return np.zeros(n), allowed
        room = self.rest_.probability_within(given, self._above(Within(), n))
        share = np.exp(log_softmax(self.design_.predict(given, self.model_.intercept, self.model_.coef)))
        part = np.divide(allowed, room, out=np.zeros(n), where=room > 0.0)
        return first * share[:, 0], np.minimum(part, 1.0) * share[:, 1]

    def _above(self, within: Within, n: int) -> Within:
        """Return the restriction to numbers that are rounded to a value above the smallest one."""
        if self.model_ is None:
            return within
        low, high = within.bounds(n)
        step = np.nextafter(self.smallest_, np.inf)
        least = step if self.decimals_ is None else self.smallest_ + 0.5 * 10.0**-self.decimals_
        return Within(low=np.maximum(low, least), high=high)
