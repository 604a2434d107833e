"""Any scikit-learn estimator as a conditional.

A classifier (categorical and ordered targets):
1. Fit it on the given columns; unordered categories enter as 0/1 columns, one a level, ordered ones by their codes.
2. Draw a level with its predicted probabilities.

A regressor (numeric targets), by `method`:
"residuals"  draw prediction + a training residual, uniformly: the errors are taken to have the same distribution for
             all rows.
"pmm"        predictive mean matching: draw one of the `n_donors` training values with the nearest predictions; values
             tied with the last of these share its place. A restricted draw takes the nearest among the allowed ones.
"quantiles"  fit the estimator once for each of `n_quantiles` levels (its parameter `quantile` or `alpha`), sort the
             predictions, and invert the distribution function that runs straight between them and out to the
             observed minimum and maximum.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mcce.checks import check_count
from mcce.exceptions import InputError, SamplerError
from mcce.rng import RowStreams
from mcce.samplers.base import Bools, ConditionalSampler, Floats, Ints, Within
from mcce.table import Column, Table

Self = TypeVar("Self", bound="EstimatorSampler")

METHODS = ("residuals", "pmm", "quantiles")
_ROUNDING = 1e-9  # relative: what predictions and sums may differ by and count as equal


class EstimatorSampler(ConditionalSampler):
    """Draws from a scikit-learn classifier's probabilities, or around a regressor's predictions.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor
        Cloned before fitting.
    method : "residuals", "pmm" or "quantiles"
        How a regressor becomes a distribution; ignored for a classifier.
    n_donors : int
        Donors that "pmm" chooses from.
    n_quantiles : int
        Levels that "quantiles" fits.

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

    def __init__(self, estimator: Any, *, method: str = "residuals", n_donors: int = 5, n_quantiles: int = 19) -> None:
        self.estimator = estimator
        self.method = method
        self.n_donors = n_donors
        self.n_quantiles = n_quantiles

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Fit the estimator (step 1)."""
        from sklearn.base import clone, is_classifier, is_regressor

        self._check_parameters()
        self.check_target(target.feature)
        design = _design(given)
        self.is_classifier_ = not target.feature.is_numeric
        if self.is_classifier_ != is_classifier(self.estimator) or self.is_classifier_ == is_regressor(self.estimator):
            needed = "classifier" if self.is_classifier_ else "regressor"
            raise SamplerError(
                f"{self!r} cannot model {target.feature.name!r}: it is {target.feature.kind}, which needs a {needed}."
            )
        if self.is_classifier_ and not hasattr(self.estimator, "predict_proba"):
            raise SamplerError(f"{self!r} cannot model {target.feature.name!r}: the classifier has no predict_proba.")
        values = target.values
        self.n_levels_ = target.feature.n_levels
        self.donors_ = np.sort(values)
        self.estimators_: list[Any] = []
        self.quantiles_ = (np.arange(self.n_quantiles) + 1.0) / (self.n_quantiles + 1)
        if self.is_classifier_:
            codes = values.astype(np.int64)
            if np.unique(codes).size > 1:  # a single level needs no classifier, and many refuse it
                self.estimators_ = [clone(self.estimator).fit(design, codes)]
        elif self.method == "quantiles":
            self.estimators_ = [_at_quantile(self.estimator, q).fit(design, values) for q in self.quantiles_]
        else:
            self.estimators_ = [clone(self.estimator).fit(design, values)]
            fitted = _predict(self.estimators_[0], design)
            order = np.argsort(fitted, kind="stable")
            self.fitted_, self.fitted_donors_ = fitted[order], values[order]
            self.residuals_ = np.sort(values - fitted)
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw one value for each row (step 2, or by `method`); restricted draws are exact."""
        self.check_fitted("estimators_")
        if self.is_classifier_:
            return self._draw_level(self._probabilities(given), rng, within)
        if self.method == "quantiles":
            return self._draw_quantile(given, rng, within)
        predicted = _predict(self.estimators_[0], _design(given))
        low = np.full(predicted.size, -np.inf) if within is None or within.low is None else within.low
        high = np.full(predicted.size, np.inf) if within is None or within.high is None else within.high
        if self.method == "pmm":
            return self._draw_near(predicted, low, high, rng)
        # prediction + residual may round across a bound that was itself a draw
        slack = _ROUNDING * (np.abs(predicted) + np.abs(self.residuals_[[0, -1]]).max())
        first = np.searchsorted(self.residuals_, low - predicted - slack)
        after = np.searchsorted(self.residuals_, high - predicted + slack, side="right")
        place = np.minimum(first + rng.integer(np.maximum(after - first, 1)), self.residuals_.size - 1)
        drawn = np.clip(predicted + self.residuals_[place], low, high)
        return np.where((after > first) & (low <= high), drawn, np.nan)

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether the level has a positive probability, or the method could draw the number.

        That is one of the row's donors ("pmm"), the observed range ("quantiles"), or the range of the residuals around
        the prediction.
        """
        self.check_fitted("estimators_")
        if self.is_classifier_:
            known = np.where(np.isnan(values), 0, values).astype(np.intp)
            positive = self._probabilities(given)[np.arange(values.size), known] > 0
            return np.asarray(positive & ~np.isnan(values))
        if self.method == "pmm":
            return self._is_near(_predict(self.estimators_[0], _design(given)), values)
        if self.method == "quantiles":
            return np.asarray((values >= self.donors_[0]) & (values <= self.donors_[-1]))
        predicted = _predict(self.estimators_[0], _design(given))
        residual = values - predicted
        slack = _ROUNDING * (np.abs(predicted) + np.abs(self.residuals_[[0, -1]]).max())
        return np.asarray((residual >= self.residuals_[0] - slack) & (residual <= self.residuals_[-1] + slack))

    def log_density(self, given: Table, values: Floats) -> Floats:
        """Return the log probability of each level; a regressor has no density here."""
        self.check_fitted("estimators_")
        if not self.is_classifier_:
            return super().log_density(given, values)
        is_missing = np.isnan(values)
        codes = np.where(is_missing, 0.0, values).astype(np.intp)
        with np.errstate(divide="ignore"):
            density = np.log(self._probabilities(given)[np.arange(values.size), codes])
        return np.where(is_missing, -np.inf, density)

    def get_state(self) -> dict[str, Any]:
        """Refuse: a scikit-learn estimator is not arrays and JSON."""
        raise SamplerError(f"{self!r} holds a scikit-learn estimator, which cannot be written as arrays and JSON.")

    def _probabilities(self, given: Table) -> Floats:
        """Probabilities of all levels, those the classifier has not seen included."""
        probabilities = np.zeros((given.n_rows, self.n_levels_))
        if not self.estimators_:
            probabilities[:, int(self.donors_[0])] = 1.0
            return probabilities
        estimator = self.estimators_[0]
        if given.n_rows:
            probabilities[:, estimator.classes_] = estimator.predict_proba(_design(given))
        return probabilities

    @staticmethod
    def _draw_level(probabilities: Floats, rng: RowStreams, within: Within | None) -> Floats:
        if within is None:
            return rng.categorical(probabilities).astype(np.float64)
        n, n_levels = probabilities.shape
        codes = np.arange(n_levels, dtype=np.float64)
        every = np.repeat(np.arange(n), n_levels)
        allowed = within.take(every).allows(np.tile(codes, n)).reshape(n, n_levels)
        weights = np.where(allowed, probabilities, 0.0)
        possible = weights.sum(axis=1) > 0
        drawn = rng.categorical(np.where(possible[:, None], weights, 1.0)).astype(np.float64)
        return np.where(possible, drawn, np.nan)

    def _draw_near(self, predicted: Floats, low: Floats, high: Floats, rng: RowStreams) -> Floats:
        """Choose among the `n_donors` allowed training values with the nearest predictions."""
        nearer, tied = rng.uniform(), rng.uniform()
        drawn = np.full(predicted.size, np.nan)
        free = np.isneginf(low) & np.isposinf(high)
        for i in range(predicted.size):
            fitted, donors = self.fitted_, self.fitted_donors_
            if not free[i]:
                allowed = (donors >= low[i]) & (donors <= high[i])
                fitted, donors = fitted[allowed], donors[allowed]
            if donors.size:
                sure, rest = self._nearest(fitted, predicted[i])
                which = int(nearer[i] * min(self.n_donors, donors.size))
                drawn[i] = donors[sure[which] if which < sure.size else rest[int(tied[i] * rest.size)]]
        return drawn

    def _is_near(self, predicted: Floats, values: Floats) -> Bools:
        """Return whether each value is one of the row's donors."""
        found = np.zeros(values.size, dtype=bool)
        for i in range(values.size):
            places = np.concatenate(self._nearest(self.fitted_, predicted[i]))
            found[i] = values[i] in self.fitted_donors_[places]
        return found

    def _nearest(self, fitted: Floats, predicted: float) -> tuple[Ints, Ints]:
        """Return the places of the donors that are nearer than the last one, and of those tied with the last one."""
        k = min(self.n_donors, fitted.size)
        place = int(np.searchsorted(fitted, predicted))
        window = np.abs(fitted[max(place - k, 0) : place + k] - predicted)
        last = np.partition(window, k - 1)[k - 1]
        tie = _ROUNDING * np.abs(self.fitted_[[0, -1]]).max()
        first, after = np.searchsorted(fitted, [predicted - last - tie, predicted + last + tie])
        places = np.arange(first, after)
        sure = np.abs(fitted[first:after] - predicted) < last - tie
        return places[sure], places[~sure]

    def _draw_quantile(self, given: Table, rng: RowStreams, within: Within | None) -> Floats:
        design = _design(given)
        inner = np.sort(np.column_stack([_predict(e, design) for e in self.estimators_]), axis=1)
        ends = self.donors_[[0, -1]]
        inner = np.clip(inner, ends[0], ends[1])
        knots = np.column_stack([np.full(given.n_rows, ends[0]), inner, np.full(given.n_rows, ends[1])])
        levels = np.concatenate([[0.0], self.quantiles_, [1.0]])
        uniform = rng.uniform()
        drawn = np.empty(given.n_rows)
        for i in range(given.n_rows):
            bounds = (0.0, 1.0)
            low, high = -np.inf, np.inf
            if within is not None:
                low = low if within.low is None else within.low[i]
                high = high if within.high is None else within.high[i]
                bounds = _levels_between(knots[i], levels, low, high)
                if bounds[1] <= bounds[0]:
                    drawn[i] = np.nan
                    continue
            value = np.interp(bounds[0] + uniform[i] * (bounds[1] - bounds[0]), levels, knots[i])
            drawn[i] = min(max(value, low), high)  # inverting there and back rounds
        return drawn

    def _check_parameters(self) -> None:
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise InputError(
                f"estimator of EstimatorSampler is {self.estimator!r}; give a scikit-learn classifier or regressor."
            )
        if self.method not in METHODS:
            raise InputError(f"method of EstimatorSampler is {self.method!r}; allowed: {', '.join(METHODS)}.")
        check_count(self.n_donors, "n_donors", self, 1)
        check_count(self.n_quantiles, "n_quantiles", self, 1)


def _levels_between(knots: Floats, levels: Floats, low: float, high: float) -> tuple[float, float]:
    """Return the probability levels at which the straight-line quantile function enters and leaves [low, high]."""
    if high < knots[0] or low > knots[-1] or high < low:
        return 0.0, 0.0
    # where several knots are equal, all of their mass lies inside the closed interval: enter before, leave after it
    first = -float(np.interp(-low, -knots[::-1], -levels[::-1])) if low > knots[0] else 0.0
    last = float(np.interp(high, knots, levels)) if high < knots[-1] else 1.0
    return first, last


def _design(given: Table) -> Floats:
    """Write the given columns as numbers: 0/1 columns for unordered levels; one constant column if there are none."""
    columns: list[npt.NDArray[np.float64]] = []
    for j, feature in enumerate(given.features):
        column = given.matrix[:, j]
        if feature.kind == "categorical" and feature.n_levels > 2:
            columns.extend((column == level).astype(np.float64) for level in range(feature.n_levels))
        else:
            columns.append(column)
    return np.column_stack(columns) if columns else np.zeros((given.n_rows, 1))


def _predict(estimator: Any, design: Floats) -> Floats:
    """Return the predictions as a vector; scikit-learn refuses to predict no rows at all."""
    if not len(design):
        return np.empty(0)
    return np.asarray(estimator.predict(design), dtype=np.float64).ravel()


def _at_quantile(estimator: Any, level: float) -> Any:
    """Return an unfitted copy of a quantile regressor for one level."""
    from sklearn.base import clone

    copy = clone(estimator)
    names = copy.get_params()
    for name in ("quantile", "alpha"):
        if name in names and (name == "quantile" or names.get("loss") == "quantile"):
            return copy.set_params(**{name: float(level)})
    raise SamplerError(
        f"{estimator!r} has no quantile to set; method 'quantiles' needs a regressor with a parameter `quantile` "
        "(QuantileRegressor, HistGradientBoostingRegressor(loss='quantile')) or `alpha` with loss='quantile'."
    )
