"""Any scikit-learn estimator as a conditional.

A classifier (categorical and ordered targets):
1. Fit it on the given columns; unordered categories enter as 0/1 columns, one a level, ordered ones by their codes.
2. Draw a level with its predicted probabilities.

A regressor (numeric targets):
1. Predict every training row by a fit that has not seen it: cross-fitting in five folds (`mcce.samplers.crossfit`). How
   far an estimator's predictions are from the rows it was fitted on says little of how far they are from others: a
   tree that has grown to the end hits them all. The given columns are written as for a classifier.
2. Draw, by `method`:
   "residuals"  prediction + residual: the prediction of a fit on all rows, and a training value minus its
                prediction of step 1, uniformly. The errors are taken to have the same distribution for all rows; their
                variance is that of the noise plus that of the predictions.
   "pmm"        predictive mean matching: one of the `n_donors` training values with the nearest predictions of step 1.
                The row's own prediction to be compared is made by the fit of the donor's fold: one that
                both have not been part of (`mcce.samplers.matching`). Follows a spread that changes with the givens.
   "quantiles"  a fit on all rows for each of `n_quantiles` levels (its parameter `quantile` or `alpha`). Straight
                between the predictions; beyond the outer ones by as much as training values lie beyond theirs
                of step 1 (`mcce.samplers.quantiles`).
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

import numpy as np

from mcce.arrays import Bools, Floats, Ints
from mcce.checks import check_count
from mcce.exceptions import InputError, SamplerError
from mcce.rng import RowStreams, resolve_seed
from mcce.samplers.base import (
    BaseMeasure,
    ConditionalSampler,
    RestrictedDraw,
    Within,
)
from mcce.samplers.crossfit import (
    ask_estimator,
    at_quantile,
    cross_fit,
    fit_seeded,
    indicator_design,
    predict,
    takes_sample_weight,
)
from mcce.samplers.levels import draw_levels, log_mass_of_levels, log_probability, supported_levels
from mcce.samplers.matching import Donors, copies_of
from mcce.samplers.quantiles import ROUNDING, PredictedQuantiles, Tails
from mcce.samplers.support import supported_by
from mcce.samplers.within import log_of
from mcce.table import Column, Feature, Table
from mcce.table.weights import equal_chances

Self = TypeVar("Self", bound="EstimatorSampler")

METHODS = ("residuals", "pmm", "quantiles")


class EstimatorSampler(ConditionalSampler):
    """Draws from a scikit-learn classifier's probabilities, or around a regressor's predictions.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor
        Cloned before fitting. A `random_state` of None in it, or in a step of a pipeline, becomes a seed derived from
        this sampler's, so that the same data give the same fit; one that is set stays.
    method : "residuals", "pmm" or "quantiles"
        How a regressor becomes a distribution; ignored for a classifier.
    n_donors : int
        Donors that "pmm" chooses from.
    n_quantiles : int
        Levels that "quantiles" fits.
    random_state : int or None
        Seed of the folds and of estimators without one; None for a fresh one. The chain's own seed is that of the
        draws, and does not reach a fit.

    Notes
    -----
    A regressor is fitted 6 times ("residuals"), 5 times ("pmm") or `n_quantiles` + 10 times ("quantiles").

    Weights of training rows are handed to the estimator as `sample_weight`; one whose `fit` does not take it, as that
    of a pipeline, is refused. Residuals and exceedances are drawn by weight; "pmm" takes counts only.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> loans = mcce.datasets.load_loans()
    >>> housing = mcce.EstimatorSampler(make_pipeline(StandardScaler(), LogisticRegression()))
    >>> salary = mcce.EstimatorSampler(LinearRegression(), method="pmm")
    >>> samplers = {"housing": housing, "salary": salary, "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=samplers, fixed=["age", "sex"], random_state=1)
    >>> chain.fit(loans.X[["age", "sex", "education", "salary", "housing"]]).sample(n=3).shape
    (3, 5)
    """

    takes_weights = True

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "residuals",
        n_donors: int = 5,
        n_quantiles: int = 19,
        random_state: int | None = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.n_donors = n_donors
        self.n_quantiles = n_quantiles
        self.random_state = random_state

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Fit the estimator (step 1), a regressor without each fold and on all rows, as `method` needs it."""
        self._check_parameters()
        self.check_target(target.feature)
        self._check_estimator(target.feature)
        seed = resolve_seed(self.random_state)
        design, values, weights = indicator_design(given), target.values, target.weights
        self.is_classifier_ = not target.feature.is_numeric
        self.n_levels_ = target.feature.n_levels
        self.estimators_: list[Any] = []
        if self.is_classifier_:
            codes = values.astype(np.int64)
            self.first_level_ = int(codes[0])
            if np.unique(codes).size > 1:  # a single level needs no classifier, and many refuse it
                self.estimators_ = [fit_seeded(self.estimator, design, codes, seed, weights)]
            return self
        if self.method == "pmm":
            rows = (
                np.arange(values.size)
                if weights is None
                else np.repeat(np.arange(values.size), copies_of(target, self))
            )
            crossed = cross_fit(self.estimator, design, values, seed, weights)
            self.estimators_ = list(crossed.fits)
            parts = (crossed.predictions[rows], values[rows], crossed.fold[rows])
            self.donors_ = Donors.arrange(*parts, self.n_donors)
        elif self.method == "quantiles":
            self.quantiles_ = (np.arange(self.n_quantiles) + 1.0) / (self.n_quantiles + 1)
            levels = [at_quantile(self.estimator, level) for level in self.quantiles_]
            self.estimators_ = [fit_seeded(estimator, design, values, seed, weights) for estimator in levels]
            outer = [cross_fit(each, design, values, seed, weights).predictions for each in (levels[0], levels[-1])]
            self.tails_ = Tails.read(np.column_stack(outer), values, float(self.quantiles_[0]), weights)
        else:
            self.estimators_ = [fit_seeded(self.estimator, design, values, seed, weights)]
            left = values - cross_fit(self.estimator, design, values, seed, weights).predictions
            self.residuals_ = equal_chances(left, weights)
        return self

    def check_weights(self, feature: Feature) -> None:
        """Refuse weights of training rows, unless the estimator takes them."""
        if not takes_sample_weight(self.estimator):
            raise SamplerError(
                f"{self!r} for {feature.name!r} does not take sample_weight, because the fit of its estimator has no "
                "such parameter; use an estimator that has, another sampler (cart, parametric), or leave it out."
            )

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw one value for each row (step 2); restricted draws are exact."""
        self.check_fitted("estimators_")
        if self.is_classifier_:
            return draw_levels(self._probabilities(given), rng, within)
        low, high = (within or Within()).bounds(given.n_rows)
        if self.method == "quantiles":
            return self._predicted_quantiles(given).draw(rng.uniform(), low, high)
        if self.method == "pmm":
            return self.donors_.draw(self._predict(given), rng, *(() if within is None else (low, high)))
        predicted = self._predict(given)[:, 0]
        first, after = self._allowed_residuals(predicted, low, high)
        place = np.minimum(first + rng.integer(np.maximum(after - first, 1)), self.residuals_.size - 1)
        drawn = np.clip(predicted + self.residuals_[place], low, high)
        return np.where((after > first) & (low <= high), drawn, np.nan)

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw one allowed value for each row, exactly; no draw is missing."""
        drawn = self.sample(given, rng, within)
        mass = self._log_mass(given, within, drawn) if within.weighted else None
        return RestrictedDraw(drawn, np.isnan(drawn), mass)

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether the method could draw the level or number, or one as close as training values are.

        That is near one of the row's donors ("pmm"), near a residual around the prediction ("residuals"), or between
        the outer predictions and near an exceedance beyond them ("quantiles").
        """
        self.check_fitted("estimators_")
        if self.is_classifier_:
            return supported_levels(self._probabilities(given), values)
        if self.method == "quantiles":
            return self._predicted_quantiles(given).supports(values)
        if self.method == "pmm":
            return self.donors_.supports(self._predict(given), values, partial(supported_by, is_number=True))
        predicted = self._predict(given)[:, 0]
        return supported_by(self.residuals_, values - predicted, is_number=True, slack=self._slack(predicted))

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        """Return the log probability of each level; a regressor has no density here."""
        self.check_fitted("estimators_")
        if not self.is_classifier_:
            return super().log_density(given, values)
        self.refuse_training_rows(training_rows)
        return log_probability(self._probabilities(given), values)

    def base_measure(self) -> BaseMeasure:
        """Return what the density is with respect to; a regressor has no density here."""
        self.check_fitted("estimators_")
        return "counting" if self.is_classifier_ else super().base_measure()

    def _log_mass(self, given: Table, within: Within, drawn: Floats) -> Floats:
        """Return the log probability of what is allowed; with "pmm", the log weight of each draw."""
        n = given.n_rows
        if self.is_classifier_:
            return log_mass_of_levels(self._probabilities(given), within)
        low, high = within.bounds(n)
        if self.method == "quantiles":
            return log_of(self._predicted_quantiles(given).mass(low, high))
        if self.method == "pmm":
            return self.donors_.log_weight(self._predict(given), drawn, low, high)
        first, after = self._allowed_residuals(self._predict(given)[:, 0], low, high)
        return log_of(np.maximum(after - first, 0) / self.residuals_.size)

    def _allowed_residuals(self, predicted: Floats, low: Floats, high: Floats) -> tuple[Ints, Ints]:
        """Return the first residual that leads inside each row's bounds, and the one after the last."""
        slack = self._slack(predicted)
        first = np.searchsorted(self.residuals_, low - predicted - slack)
        return first, np.searchsorted(self.residuals_, high - predicted + slack, side="right")

    def get_state(self) -> dict[str, Any]:
        """Refuse: a scikit-learn estimator is not arrays and JSON."""
        raise SamplerError(
            f"{self!r} holds a scikit-learn estimator, which cannot be written as arrays and JSON: it is made of code. "
            "Fit again where it is needed, or use a sampler that can be saved (cart, forest, parametric)."
        )

    def _probabilities(self, given: Table) -> Floats:
        """Probabilities of all levels, those the classifier has not seen included."""
        probabilities = np.zeros((given.n_rows, self.n_levels_))
        if not self.estimators_:
            probabilities[:, self.first_level_] = 1.0
            return probabilities
        estimator = self.estimators_[0]
        if given.n_rows:
            probabilities[:, estimator.classes_] = ask_estimator(estimator, "predict_proba", indicator_design(given))
        return probabilities

    def _slack(self, predicted: Floats) -> Floats:
        # prediction + residual may round across a bound that was itself a draw
        return np.asarray(ROUNDING * (np.abs(predicted) + np.abs(self.residuals_[[0, -1]]).max()))

    def _predict(self, given: Table) -> Floats:
        """Return the predictions of each row, one column an estimator."""
        design = indicator_design(given)
        return np.column_stack([predict(estimator, design) for estimator in self.estimators_])

    def _predicted_quantiles(self, given: Table) -> PredictedQuantiles:
        return PredictedQuantiles.arrange(self._predict(given), self.quantiles_, self.tails_)

    def _check_estimator(self, feature: Feature) -> None:
        """Refuse an estimator of the wrong type for the target."""
        from sklearn.base import is_classifier, is_regressor

        needed = "regressor" if feature.is_numeric else "classifier"
        if not (is_regressor if feature.is_numeric else is_classifier)(self.estimator):
            raise SamplerError(f"{self!r} cannot model {feature.name!r}: it is {feature.kind}, which needs a {needed}.")
        if not feature.is_numeric and not hasattr(self.estimator, "predict_proba"):
            raise SamplerError(f"{self!r} cannot model {feature.name!r}: the classifier has no predict_proba.")

    def _check_parameters(self) -> None:
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise InputError(
                f"estimator of EstimatorSampler is {self.estimator!r}; give a scikit-learn classifier or regressor."
            )
        if self.method not in METHODS:
            raise InputError(f"method of EstimatorSampler is {self.method!r}; allowed: {', '.join(METHODS)}.")
        check_count(self.n_donors, "n_donors", self, 1)
        check_count(self.n_quantiles, "n_quantiles", self, 1)
        resolve_seed(self.random_state)
