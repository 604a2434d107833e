"""Any scikit-learn estimator as a conditional.

The givens are the design of the regressions: numbers, dummies of levels, indicators of missing values (which are 0).

classifier  Levels with its predicted probabilities.
regressor   `method="residuals"`: prediction + scale x residual. The residuals are those of five folds, each predicted
            by a fit to the others, so that they contain the error of the prediction. The scale is their mean absolute
            value in groups of at least 100 rows with similar predictions (at most 20), linear between the medians of
            the groups. Values beyond the training range become its ends.
regressor   `method="quantiles"`: one fit for each of the levels 0.05, 0.15, ..., 0.95 (its parameter `quantile` or
            `alpha`), shifted so that the predictions of three folds, each by a fit to the others, have the right
            coverage (Romano, Patterson and Candes 2019), and sorted. Uniform in between; the tails are exponential,
            with the mean excesses over these predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from mcce._utils import Bools, Floats, Ints
from mcce.exceptions import InputError, spell
from mcce.rng import derive_key, hash_rows, resolve_seed
from mcce.samplers.base import ConditionalSampler
from mcce.samplers.design import Design
from mcce.samplers.distributions import Continuous, Distribution, Levels
from mcce.samplers.families import Family, LocationScale
from mcce.samplers.margin import Margin
from mcce.samplers.statsmodels import NARROWEST, QUANTILES, QuantileGrid
from mcce.table import Column, Table

N_FOLDS, QUANTILE_FOLDS = 5, 3  # ten quantiles are ten fits for each fold
GROUP_ROWS, MOST_GROUPS = 100, 20  # of the scale
LEAST_SCALE = 0.05  # of a group, relative to the mean scale


@dataclass(frozen=True)
class ClippedResiduals(LocationScale):
    """A location, a scale and residuals; numbers beyond `low` and `high` become these."""

    low: float
    high: float

    def cdf(self, y: Floats, *parameters: Floats) -> Floats:
        inner = super().cdf(y, *parameters)
        return np.where(y < self.low, 0.0, np.where(y >= self.high, 1.0, inner))

    def below(self, y: Floats, *parameters: Floats) -> Floats:
        inner = super().below(y, *parameters)
        return np.where(y <= self.low, 0.0, np.where(y > self.high, 1.0, inner))

    def ppf(self, u: Floats, *parameters: Floats) -> Floats:
        return np.clip(super().ppf(u, *parameters), self.low, self.high)


class EstimatorSampler(ConditionalSampler):
    """Draws from the conditional that a scikit-learn classifier or regressor predicts.

    Parameters
    ----------
    estimator : object
        Unfitted classifier with `predict_proba`, for levels, or regressor, for numbers; a pipeline may be either.
    method : {"residuals", "quantiles"}
        The distribution of a regressor, see `mcce.samplers.estimator`. "quantiles" needs a regressor for a quantile,
        such as ``QuantileRegressor()``, ``GradientBoostingRegressor(loss="quantile")`` or
        ``HistGradientBoostingRegressor(loss="quantile")``.
    random_state : int or None
        Seed of the folds, and of every `random_state` of the estimator that is None.

    Attributes
    ----------
    fitted_ : the fitted estimator; a list of them for "quantiles"; None for a target with one level.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.linear_model import HuberRegressor
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> huber = mcce.samplers.EstimatorSampler(HuberRegressor())
    >>> chain = mcce.ChainModel(sampler={"salary": huber}, fixed=["age"], random_state=1).fit(X)
    >>> chain.sample(2, given=X[["age"]]).shape
    (2000, 3)
    """

    fitted_: Any
    family_: Family

    def __init__(
        self,
        estimator: Any,
        *,
        method: Literal["residuals", "quantiles"] = "residuals",
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.random_state = random_state

    @property
    def handles(self) -> frozenset[str]:  # type: ignore[override]
        """The kinds of targets: numbers for a regressor, levels for a classifier."""
        return frozenset({"ordered", "categorical"} if _is_estimator(is_classifier, self.estimator) else {"numeric"})

    def fit(self, given: Table, target: Column) -> EstimatorSampler:
        has_probabilities = _is_estimator(is_classifier, self.estimator) and hasattr(self.estimator, "predict_proba")
        if not (has_probabilities or _is_estimator(is_regressor, self.estimator)):
            raise InputError(
                f"estimator is {spell(self.estimator)}; give a regressor, or a classifier with predict_proba "
                "(sklearn.calibration.CalibratedClassifierCV adds it)."
            )
        if self.method not in ("residuals", "quantiles"):
            raise InputError(f"method is {spell(self.method)}; allowed: 'residuals', 'quantiles'.")
        self.seed_ = resolve_seed(self.random_state)
        self.feature_, self.margin_ = target.feature, Margin.fit(target.values, target.feature)
        self.design_ = Design.read(given, target.feature)
        x = self._design(given)
        try:
            if not target.feature.is_numeric:
                self._fit_classifier(x, target.values.astype(np.int64))
            elif self.method == "quantiles":
                self._fit_quantiles(x, target.values)
            else:
                self._fit_residuals(x, target.values)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(
                f"{spell(self.estimator)} could not be fitted to {len(x)} rows of column {spell(target.feature.name)}, "
                f"or to a part of them: {str(error).partition(chr(10))[0]} Give more rows, or another estimator."
            ) from error
        return self

    def distribution(self, given: Table) -> Distribution:
        _, first, place = np.unique(hash_rows(given.matrix), return_index=True, return_inverse=True)
        x = self._design(given.take(first))  # equal rows are predicted once
        if not self.feature_.is_numeric:
            probabilities = np.zeros((len(x), self.feature_.n_levels))
            if len(x):
                probabilities[:, self.classes_] = 1.0 if self.fitted_ is None else self.fitted_.predict_proba(x)
            return Levels(probabilities, place.astype(np.int64))
        if self.method == "quantiles":
            knots = self._knots(_predict_each(self.fitted_, x))
            return Continuous(self.family_, (knots[place],), self.margin_)
        predicted = _predict(self.fitted_, x)
        scale = np.interp(predicted, self.scale_at_, self.scale_)
        return Continuous(self.family_, (predicted[place], scale[place]), self.margin_)

    def _design(self, given: Table) -> Floats:
        """Return the design matrix; a column of zeros if there is nothing to predict from."""
        x = self.design_.matrix(given)
        return x if x.shape[1] else np.zeros((given.n_rows, 1))

    def _fit_classifier(self, x: Floats, codes: Ints) -> None:
        self.classes_ = np.unique(codes)
        self.fitted_ = self._fit(x, codes) if self.classes_.size > 1 else None

    def _fit_quantiles(self, x: Floats, values: Floats) -> None:
        self.gap_ = NARROWEST * (float(np.std(values)) or 1.0)
        predicted = np.tile(np.quantile(values, QUANTILES), (values.size, 1))
        for held_out in self._held_out(values.size, QUANTILE_FOLDS):
            predicted[held_out] = _predict_each(self._fit_levels(x[~held_out], values[~held_out]), x[held_out])
        errors = values[:, None] - predicted
        self.shifts_ = np.array([np.quantile(part, level) for part, level in zip(errors.T, QUANTILES)])
        self.family_ = QuantileGrid.fit(self._knots(predicted), values, 1e3 * self.gap_)
        self.fitted_ = self._fit_levels(x, values)

    def _fit_levels(self, x: Floats, values: Floats) -> list[Any]:
        return [self._fit(x, values, **self._at_level(level)) for level in QUANTILES]

    def _knots(self, predicted: Floats) -> Floats:
        """Return predicted quantiles, shifted and ascending."""
        return np.sort(predicted + self.shifts_, axis=1) + self.gap_ * np.arange(QUANTILES.size)

    def _held_out(self, n: int, n_folds: int) -> list[Bools]:
        """Return which rows each fold holds out; no folds if there is a single row."""
        fold = np.random.default_rng(derive_key(self.seed_, "folds")).permutation(n) % min(n_folds, n)
        return [fold == k for k in np.unique(fold)] if n > 1 else []

    def _at_level(self, level: float) -> dict[str, float]:
        """Return the parameter of the regressor that is its level; raise if it has none."""
        parameters = self.estimator.get_params(deep=False)
        loss = parameters.get("loss", "quantile")
        for name in ("quantile", "alpha"):
            if name in parameters and loss == "quantile" and (name == "quantile" or "loss" in parameters):
                return {name: float(level)}
        fix = 'set loss="quantile"' if "loss" in parameters else "give a regressor for quantiles"
        raise InputError(f"estimator is {spell(self.estimator)}, which predicts no quantiles; {fix}.")

    def _fit_residuals(self, x: Floats, values: Floats) -> None:
        n = values.size
        predicted = np.full(n, values.mean())
        for held_out in self._held_out(n, N_FOLDS):
            predicted[held_out] = _predict(self._fit(x[~held_out], values[~held_out]), x[held_out])
        residuals = values - predicted
        floor = max(LEAST_SCALE * float(np.abs(residuals).mean()), 1e-9 * max(float(np.abs(values).max()), 1.0))
        n_groups = min(max(n // GROUP_ROWS, 1), MOST_GROUPS)
        groups = np.array_split(np.argsort(predicted, kind="stable"), n_groups)
        self.scale_at_ = np.array([np.median(predicted[rows]) for rows in groups])
        self.scale_ = np.maximum([np.abs(residuals[rows]).mean() for rows in groups], floor)
        standardised = residuals / np.interp(predicted, self.scale_at_, self.scale_)
        self.family_ = ClippedResiduals(Margin(standardised), float(values.min()), float(values.max()))
        self.fitted_ = self._fit(x, values)

    def _fit(self, x: Floats, y: Any, **parameters: float) -> Any:
        """Return a seeded copy of the estimator, fitted."""
        copy = clone(self.estimator).set_params(**parameters)
        names = copy.get_params()
        unset = [name for name in names if name.split("__")[-1] == "random_state" and names[name] is None]
        copy.set_params(**{name: derive_key(self.seed_, name) >> 33 for name in unset})
        return copy.fit(x, y)


def _is_estimator(kind: Callable[[Any], bool], estimator: Any) -> bool:
    """Return whether an object, which may be anything, is an estimator of some kind."""
    return hasattr(estimator, "fit") and not isinstance(estimator, type) and kind(estimator)


def _predict(fitted: Any, x: Floats) -> Floats:
    return np.asarray(fitted.predict(x), dtype=np.float64).ravel() if len(x) else np.empty(0)


def _predict_each(regressors: list[Any], x: Floats) -> Floats:
    return np.column_stack([_predict(fitted, x) for fitted in regressors])
