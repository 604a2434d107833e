"""Any scikit-learn estimator as a conditional.

Unordered categories enter as 0/1 columns (`indicator_design`). Every `random_state` that is None is replaced by a seed
derived from the sampler's. Held-out predictions use five folds.

A classifier draws a level by its predicted probability p. `log_density` uses (1 - a) p + a s, with the level's share s;
a maximises the likelihood of held-out rows (deleted interpolation, Jelinek and Mercer 1980), and is at least c / (n +
c) for n rows and c = 5 pseudo-donors.

A regressor draws by `method`:

"residuals"  prediction plus a held-out residual (`Residuals`), whose scale may depend on the prediction
"pmm"        one of the `n_donors` training values with the nearest held-out predictions, by the fit of the donor's fold
             (`mcce.samplers.matching`)
"quantiles"  a fit for each of `n_quantiles` levels (its parameter `quantile` or `alpha`), linear in between, with
             held-out exceedances beyond the outer ones (`predictions`); frequent numbers keep their share
             (`SharedNumbers`)
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count
from mcce.exceptions import InputError, SamplerError
from mcce.rng import RowStreams, derive_key, resolve_seed
from mcce.samplers.base import (
    BaseMeasure,
    ConditionalSampler,
    RestrictedDraw,
    Within,
    samplers_of_weights,
    samplers_that_handle_missing,
    supported_by,
)
from mcce.samplers.density import DRAWN_AS_IT_IS, ColumnDensity
from mcce.samplers.donors.density import PSEUDO_DONORS
from mcce.samplers.matching import Donors, copies_of
from mcce.samplers.predictions import (
    ROUNDING,
    PredictedQuantiles,
    Tails,
    draw_levels,
    log_mass_of_levels,
    log_probability,
    supported_levels,
)
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.restricted import log_of
from mcce.storage.fields import FLOAT, stored
from mcce.storage.state import stateful
from mcce.table import Column, Feature, Table
from mcce.table.weights import deviation_of, equal_chances, mean_of

N_FOLDS = 5
FEWEST_TO_SHRINK = 20  # rows; with fewer, the folds do not estimate the variance of predictions
ROWS_OF_A_SCALE, MOST_SCALES = 100, 20
SCALE_LEVEL = 0.01
HALVINGS = 30  # steps of a bisection
LEAST_SCALE = 0.05  # relative to the mean scale
_SEED = "random_state"
# parameters that must be "quantile" for the level of a quantile regressor to have an effect
_CHOOSERS = ("loss", "strategy")


def seeded_clone(estimator: Any, seed: int) -> Any:
    """Return an unfitted copy in which every random state is set."""
    from sklearn.base import clone

    copy = clone(estimator)
    unset = [name for name, value in copy.get_params().items() if name.split("__")[-1] == _SEED and value is None]
    return copy.set_params(**{name: derive_key(seed, "estimator", name) >> 33 for name in unset}) if unset else copy


def takes_sample_weight(estimator: Any) -> bool:
    """Return whether the `fit` of an estimator takes `sample_weight`; that of a pipeline does not."""
    return "sample_weight" in inspect.signature(estimator.fit).parameters


def deal_folds(n: int, seed: int, n_folds: int = N_FOLDS) -> Ints:
    """Return the fold of each of `n` rows."""
    order = np.random.default_rng(derive_key(seed, "folds")).permutation(n)
    return order % min(n_folds, max(n, 1))


def deal_rows(n: int, seed: int, n_folds: int, max_rows: int) -> tuple[Ints, list[tuple[Ints, Ints]]]:
    """Return at most `max_rows` of `n` rows, chosen at random, and those outside and inside each fold of them."""
    rows = np.sort(np.random.default_rng(derive_key(seed, "rows")).permutation(n)[:max_rows])
    fold = deal_folds(rows.size, seed, n_folds)
    return rows, [(rows[fold != k], rows[fold == k]) for k in range(int(fold.max(initial=0)) + 1)]


@dataclass(frozen=True)
class CrossFit:
    """The fold and held-out prediction of each training row, and the fits of the folds."""

    fold: Ints
    predictions: Floats
    fits: tuple[Any, ...]


def cross_fit(estimator: Any, design: Floats, values: Floats, seed: int, weights: Floats | None = None) -> CrossFit:
    """Predict each row by a fit on the other folds."""
    n = values.size
    fold = deal_folds(n, seed)
    predictions = np.empty(n)
    fits = []
    for held_out in range(int(fold.max()) + 1):
        inside = fold == held_out
        training = ~inside if n > 1 else inside
        of_part = None if weights is None else weights[training]
        fits.append(fit_seeded(estimator, design[training], values[training], seed, of_part, n))
        try:
            predictions[inside] = predict(fits[-1], design[inside])
        except ValueError as error:  # raised by nearest neighbours with too few rows
            raise _not_fitted(estimator, design[training], n, error) from error
    return CrossFit(fold, predictions, tuple(fits))


def held_out_weight(estimator: Any, design: Floats, codes: Ints, seed: int, weights: Floats | None) -> float:
    """Return the weight of the margin that maximises the likelihood of held-out rows.

    Folds whose estimator fails, and levels that occur in one fold only, are ignored.
    """
    n, n_levels = codes.size, int(codes.max()) + 1
    counts = np.ones(n) if weights is None else weights
    predicted, margin = np.full(n, np.nan), np.zeros(n)
    fold = deal_folds(n, seed)
    for held_out in range(int(fold.max()) + 1):
        inside, others = fold == held_out, fold != held_out
        shares = np.bincount(codes[others], counts[others], minlength=n_levels)
        margin[inside] = shares[codes[inside]] / shares.sum()
        probabilities = np.zeros((int(inside.sum()), n_levels))
        try:
            if (shares > 0).sum() == 1:
                probabilities[:, shares.argmax()] = 1.0
            else:
                of_part = None if weights is None else weights[others]
                fitted = fit_seeded(estimator, design[others], codes[others], seed, of_part, n)
                probabilities[:, fitted.classes_] = call_estimator(fitted, "predict_proba", design[inside])
        except (SamplerError, ValueError):
            continue
        predicted[inside] = probabilities[np.arange(len(probabilities)), codes[inside]]
    used = ~np.isnan(predicted) & (margin > 0.0)
    return best_weight(predicted[used], margin[used], counts[used], PSEUDO_DONORS / (counts.sum() + PSEUDO_DONORS))


def best_weight(predicted: Floats, margin: Floats, counts: Floats, least: float) -> float:
    """Return the a in [`least`, 1] that maximises the sum of counts log((1 - a) predicted + a margin)."""

    def slope(a: float) -> float:
        return float((counts * (margin - predicted) / (predicted + a * (margin - predicted))).sum())

    low, high = least, 1.0
    if slope(low) <= 0.0:  # the objective is concave
        return low
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) > 0.0 else (low, middle)
    return high


@dataclass(frozen=True)
class Residuals:
    """The noise added to a prediction, estimated from held-out errors.

    1. A held-out error has the variance of the noise plus V, the variance of the prediction. V is estimated by the
       jackknife over the folds (Efron and Stein 1981): (K - 1) / K times the sum of squares of the K fits' predictions
       of a row around their mean, averaged over the rows. Residuals are shrunk towards their mean to the remaining
       variance, at least half, so that draws have the variance of the noise plus V, not plus 2 V. With fewer than 20
       rows they are not shrunk.
    2. Their scale, the mean absolute residual, is estimated in groups of at least 100 rows with similar predictions and
       interpolated between the medians of the groups, if it differs (analysis of variance, level 0.01); else it is
       constant.
    3. Draws are clipped to the range of the training values, as with "quantiles".

    `values` are sorted, in units of the scale of their rows; the scale at the predictions `at` is `scale`.
    """

    values: Floats
    at: Floats
    scale: Floats
    lowest: float
    highest: float

    @classmethod
    def read(cls, crossed: CrossFit, design: Floats, values: Floats, weights: Floats | None) -> Residuals:
        """Learn the residuals from held-out predictions."""
        left = values - crossed.predictions
        at, scale = _scale_by_prediction(crossed.predictions, left)
        of_row = np.interp(crossed.predictions, at, scale)
        left = left / of_row
        middle, variance = mean_of(left, weights), float(deviation_of(left, weights)) ** 2
        if values.size >= FEWEST_TO_SHRINK and variance > 0.0:
            fits = np.column_stack([predict(each, design) for each in crossed.fits]) / of_row[:, None]
            jackknife = (N_FOLDS - 1) * mean_of(fits.var(axis=1), weights)
            left = middle + np.sqrt(1.0 - min(float(jackknife) / variance, 0.5)) * (left - middle)
        return cls(equal_chances(left, weights), at, scale, float(values.min()), float(values.max()))

    def between(self, predicted: Floats, low: Floats, high: Floats) -> tuple[Ints, Ints]:
        """Return the range of residuals that lead inside the bounds of each row: first, and one after the last."""
        scale, slack = self._scale(predicted), self._slack(predicted)
        low, high = np.where(low <= self.lowest, -np.inf, low), np.where(high >= self.highest, np.inf, high)
        first = np.searchsorted(self.values, (low - predicted - slack) / scale)
        after = np.searchsorted(self.values, (high - predicted + slack) / scale, side="right")
        possible = (low <= high) & (low <= self.highest) & (high >= self.lowest)
        return first, np.where(possible, after, first)

    def draw(self, predicted: Floats, rng: RowStreams, low: Floats, high: Floats) -> Floats:
        """Draw one allowed value for each row; NaN if there is none."""
        first, after = self.between(predicted, low, high)
        place = np.minimum(first + rng.integer(np.maximum(after - first, 1)), self.values.size - 1)
        drawn = predicted + self._scale(predicted) * self.values[place]
        drawn = np.clip(np.clip(drawn, self.lowest, self.highest), low, np.maximum(low, high))
        return np.where(after > first, drawn, np.nan)

    def distribution(self, predicted: Floats) -> DistributionFunctions:
        """Return the empirical distribution of prediction plus residual."""
        n, ends = self.values.size, np.full(predicted.size, np.inf)

        def upto(high: Floats) -> Floats:
            return np.asarray(self.between(predicted, -ends, high)[1] / n)

        def before(low: Floats) -> Floats:
            return np.asarray(self.between(predicted, low, ends)[0] / n)

        def inverse(u: Floats) -> Floats:
            place = np.clip(np.ceil(u * n).astype(np.intp) - 1, 0, n - 1)
            return np.clip(predicted + self._scale(predicted) * self.values[place], self.lowest, self.highest)

        return DistributionFunctions(upto, inverse, n_donors=n, before=before)

    def supports(self, predicted: Floats, values: Floats) -> Bools:
        """Return whether each value can be drawn, or is within the local spacing of the residuals."""
        scale, slack = self._scale(predicted), self._slack(predicted)
        near = supported_by(self.values, (values - predicted) / scale, is_number=True, slack=slack / scale)
        first, after = self.between(predicted, values, values)
        at_end = np.isin(values, [self.lowest, self.highest]) & (after > first)
        return np.asarray((near & (values >= self.lowest) & (values <= self.highest)) | at_end)

    def _scale(self, predicted: Floats) -> Floats:
        return np.asarray(np.interp(predicted, self.at, self.scale))

    def _slack(self, predicted: Floats) -> Floats:
        # prediction + residual may round across a bound that is itself a draw
        return np.asarray(ROUNDING * (np.abs(predicted) + self._scale(predicted) * np.abs(self.values[[0, -1]]).max()))


def _scale_by_prediction(predictions: Floats, left: Floats) -> tuple[Floats, Floats]:
    """Return predictions and the scale of the residuals there; a constant 1 if it does not differ."""
    n_groups = min(left.size // ROWS_OF_A_SCALE, MOST_SCALES)
    size = np.abs(left - left.mean())
    same = np.zeros(1), np.ones(1)
    if n_groups < 2 or np.ptp(predictions) == 0.0:
        return same
    groups = np.array_split(np.argsort(predictions, kind="stable"), n_groups)
    means = np.array([size[rows].mean() for rows in groups])
    within = sum(float(((size[rows] - mean) ** 2).sum()) for rows, mean in zip(groups, means))
    among = sum(rows.size * (mean - size.mean()) ** 2 for rows, mean in zip(groups, means))
    degrees = (n_groups - 1, left.size - n_groups)
    if within == 0.0 or scipy.special.fdtrc(*degrees, among / degrees[0] / (within / degrees[1])) > SCALE_LEVEL:
        return same
    return np.array([np.median(predictions[rows]) for rows in groups]), np.maximum(means, LEAST_SCALE * size.mean())


@stateful("estimator.SharedNumbers")
@dataclass(frozen=True)
class SharedNumbers:
    """Frequent numbers, and the reach within which draws are set to them.

    A number held by more than a twentieth of the rows (`mcce.samplers.density`) has point mass, but interpolated
    quantiles rarely equal it. So draws within a reach of it are set to the number. The reach is the smallest for which
    draws for the training rows have this number with its share; it is less than half of the gap to the next one.
    """

    numbers: Floats = stored(FLOAT, "numbers", rising=True)
    reach: Floats = stored(FLOAT, "numbers", least=0.0)

    @classmethod
    def read(cls, quantiles: PredictedQuantiles, values: Floats, weights: Floats | None) -> SharedNumbers:
        """Learn the reach of each number from the distributions and values of the training rows."""
        column = ColumnDensity.of(values, weights)
        numbers = column.atoms[column.shares > DRAWN_AS_IT_IS] if column.base_measure == "mixed" else column.atoms[:0]
        shares = column.shares[np.isin(column.atoms, numbers)]
        gap = np.diff(numbers, prepend=-np.inf, append=np.inf)
        widest = np.minimum(0.49 * np.minimum(gap[:-1], gap[1:]), column.high - column.low)
        reach = np.zeros(numbers.size)
        for i, (number, share) in enumerate(zip(numbers, shares)):

            def has(within: float, number: float = number) -> float:
                at = np.full(values.size, number)
                return float(mean_of(quantiles.mass(at - within, at + within), weights))

            if has(0.0) < share:
                low, high = 0.0, float(widest[i])
                for _ in range(HALVINGS):
                    middle = 0.5 * (low + high)
                    low, high = (middle, high) if has(middle) < share else (low, middle)
                reach[i] = high
        return cls(numbers, reach)

    def bounds(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return bounds on draws such that they are in [low, high] after `become`."""
        for number, reach in zip(self.numbers, self.reach):
            below, above = number - reach, number + reach
            low, high = (
                np.where((low > number) & (low <= above), np.nextafter(above, np.inf), low),
                np.where((high < number) & (high >= below), np.nextafter(below, -np.inf), high),
            )
            low = np.where((low >= below) & (low <= number), below, low)
            high = np.where((high <= above) & (high >= number), above, high)
        return low, high

    def become(self, drawn: Floats) -> Floats:
        """Return the draws, set to a number if they are within its reach."""
        for number, reach in zip(self.numbers, self.reach):
            drawn = np.where(np.abs(drawn - number) <= reach, number, drawn)
        return drawn


def fit_seeded(
    estimator: Any,
    design: Floats,
    values: Floats | Ints,
    seed: int,
    weights: Floats | None = None,
    n_all: int | None = None,
) -> Any:
    """Return a seeded copy fitted to some of `n_all` rows; raise with the reason if the fit fails."""
    copy = seeded_clone(estimator, seed)
    weighted = {} if weights is None else {"sample_weight": weights}
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # trees cast to float32 and report overflow themselves
            return copy.fit(design, values, **weighted)
    except ValueError as error:
        raise _not_fitted(estimator, design, n_all or len(design), error) from error


def _not_fitted(estimator: Any, design: Floats, n_all: int, error: ValueError) -> SamplerError:
    others = f" of the {n_all} rows to predict the others" if len(design) < n_all else " rows"
    remedy = _too_large(design) or "Give more rows, or an estimator that needs fewer."
    return SamplerError(f"{estimator!r} could not be fitted on {len(design)}{others}: {error} {remedy}")


def _too_large(design: Floats) -> str:
    """Return a remedy if numbers overflow float32, which many estimators use; else an empty text."""
    largest = float(np.nanmax(np.abs(design), initial=0.0))
    if largest <= float(np.finfo(np.float32).max):
        return ""
    return f"The predictors have numbers up to {largest:g}: rescale them, or use a sampler that takes them (cart)."


def predict(estimator: Any, design: Floats) -> Floats:
    """Return the predictions as a vector, also for no rows, where scikit-learn raises."""
    if not len(design):
        return np.empty(0)
    return np.asarray(call_estimator(estimator, "predict", design), dtype=np.float64).ravel()


def call_estimator(estimator: Any, method: str, design: Floats) -> Any:
    """Call a prediction method of a fitted estimator; explain failures by missing values or overflow."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return getattr(estimator, method)(design)
    except ValueError as error:
        if too_large := _too_large(design):
            raise SamplerError(f"{estimator!r} cannot predict these rows: {error} {too_large}") from error
        if not np.isnan(design).any():
            raise
        raise SamplerError(
            f"{estimator!r} cannot predict rows with missing values, which a fixed or previously drawn feature has "
            f"here, but no training row: {str(error).splitlines()[0]} Fill them, or use a sampler that takes "
            f"them ({samplers_that_handle_missing()})."
        ) from error


def at_quantile(estimator: Any, level: float) -> Any:
    """Return an unfitted copy of a quantile regressor for one level; raise if it would ignore the level."""
    from sklearn.base import clone

    copy = clone(estimator)
    params = copy.get_params()
    choosers = [name for name in _CHOOSERS if name in params]
    chosen = [name for name in choosers if params[name] == "quantile"]
    for name in ("quantile", "alpha"):
        if name in params and (chosen or (name == "quantile" and not choosers)):
            return copy.set_params(**{name: float(level)})
    if "quantile" in params:
        raise SamplerError(
            f"{estimator!r} ignores its quantile, because {choosers[0]} is {params[choosers[0]]!r}; method 'quantiles' "
            f'needs {choosers[0]}="quantile".'
        )
    raise SamplerError(
        f"{estimator!r} has no quantile to set; method 'quantiles' needs a regressor with a parameter `quantile` "
        "(QuantileRegressor, HistGradientBoostingRegressor(loss='quantile')) or `alpha` with loss='quantile'."
    )


def indicator_design(given: Table) -> Floats:
    """Return the design: 0/1 columns for unordered levels, other columns unchanged; a constant without givens."""
    columns: list[Floats] = []
    for j, feature in enumerate(given.features):
        column = given.matrix[:, j]
        if feature.kind == "categorical" and feature.n_levels > 2:
            columns.extend((column == level).astype(np.float64) for level in range(feature.n_levels))
        else:
            columns.append(column)
    return np.column_stack(columns) if columns else np.zeros((given.n_rows, 1))


def n_design_columns(features: Sequence[Feature]) -> int:
    """Return the number of columns of `indicator_design` for these features."""
    return sum(f.n_levels if f.kind == "categorical" and f.n_levels > 2 else 1 for f in features) or 1


Self = TypeVar("Self", bound="EstimatorSampler")

METHODS = ("residuals", "pmm", "quantiles")


class EstimatorSampler(ConditionalSampler):
    """Draws from a scikit-learn classifier's probabilities, or around a regressor's predictions.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor
        Cloned before fitting. A `random_state` of None in it, or in a step of a pipeline, is replaced by a seed derived
        from this sampler's, so that the same data give the same fit.
    method : "residuals", "pmm" or "quantiles"
        How draws are made from a regressor; ignored for a classifier.
    n_donors : int
        Number of donors of "pmm".
    n_quantiles : int
        Number of levels of "quantiles".
    random_state : int or None
        Seed of the folds and of estimators without one; None for a fresh one. The chain's seed is used for draws only.

    Notes
    -----
    A classifier is fitted 6 times, a regressor 6 times ("residuals"), 5 times ("pmm") or `n_quantiles` + 10 times
    ("quantiles").

    Weights of training rows are passed to the estimator as `sample_weight`; an estimator whose `fit` does not take it,
    such as a pipeline, raises an error. Residuals and exceedances are drawn by weight; "pmm" takes counts only.

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
    unstorable = (
        "it holds a scikit-learn estimator, which cannot be written as arrays and JSON. Refit it where needed, or use "
        "a sampler without an estimator."
    )

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
        self.check_training(target)
        self._check_estimator(target.feature)
        seed = resolve_seed(self.random_state)
        design, values, weights = indicator_design(given), target.values, target.weights
        self.is_classifier_ = not target.feature.is_numeric
        self.n_levels_ = target.feature.n_levels
        self.estimators_: list[Any] = []
        if self.is_classifier_:
            codes = values.astype(np.int64)
            self.level_shares_ = np.bincount(codes, weights, minlength=self.n_levels_) / target.total
            self.share_of_margin_ = 0.0
            self.first_level_ = int(codes[0])
            if np.unique(codes).size > 1:  # many classifiers do not accept a single level
                self.estimators_ = [fit_seeded(self.estimator, design, codes, seed, weights)]
                self.share_of_margin_ = held_out_weight(self.estimator, design, codes, seed, weights)
            return self
        if self.method == "pmm":
            rows = np.repeat(np.arange(values.size), 1 if weights is None else copies_of(target, self))
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
            self.shared_ = SharedNumbers.read(self._predicted_quantiles(given), values, weights)
        else:
            self.estimators_ = [fit_seeded(self.estimator, design, values, seed, weights)]
            crossed = cross_fit(self.estimator, design, values, seed, weights)
            self.residuals_ = Residuals.read(crossed, design, values, weights)
        return self

    def check_weights(self, feature: Feature) -> None:
        if not takes_sample_weight(self.estimator):
            raise SamplerError(
                f"{self!r} for {feature.name!r} does not take sample_weight, because the fit of its estimator has no "
                "such parameter; use an estimator that has it, another sampler ("
                f"{samplers_of_weights()}), or leave it out."
            )

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        self.check_fitted("estimators_")
        if self.is_classifier_:
            return draw_levels(self._probabilities(given), rng, within)
        low, high = (within or Within()).bounds(given.n_rows)
        if self.method == "quantiles":
            drawn = self._predicted_quantiles(given).draw(rng.uniform(), *self.shared_.bounds(low, high))
            return self.shared_.become(drawn)
        if self.method == "pmm":
            return self.donors_.draw(self._predict(given), rng, *(() if within is None else (low, high)))
        return self.residuals_.draw(self._predict(given)[:, 0], rng, low, high)

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        drawn = self.sample(given, rng, within)
        mass = self._log_mass(given, within, drawn) if within.weighted else None
        return RestrictedDraw(drawn, np.isnan(drawn), mass)

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether each level or number can be drawn, or is within the local spacing of such a number.

        That is near a donor ("pmm"), near prediction plus residual ("residuals"), or between the outer predictions or
        near an exceedance beyond them ("quantiles").
        """
        self.check_fitted("estimators_")
        if self.is_classifier_:
            return supported_levels(self._probabilities(given), values)
        if self.method == "quantiles":
            predicted = self._predicted_quantiles(given)
            is_shared = np.isin(values, self.shared_.numbers)
            mass = predicted.mass(*self.shared_.bounds(values, values))
            return np.asarray(predicted.supports(values) | (is_shared & (mass > 0.0)))
        if self.method == "pmm":
            return self.donors_.supports(self._predict(given), values, partial(supported_by, is_number=True))
        return self.residuals_.supports(self._predict(given)[:, 0], values)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        self.check_fitted("estimators_")
        if not self.is_classifier_:
            return super().log_density(given, values)
        self.refuse_training_rows(training_rows)
        predicted = self._probabilities(given)
        return log_probability(predicted + self.share_of_margin_ * (self.level_shares_ - predicted), values)

    def distribution(self, given: Table) -> DistributionFunctions:
        self.check_fitted("estimators_")
        if self.is_classifier_:
            return DistributionFunctions.of_levels(self._probabilities(given))
        if self.method == "pmm":
            return self.donors_.distribution(self._predict(given))
        if self.method == "residuals":
            return self.residuals_.distribution(self._predict(given)[:, 0])
        quantiles, shared = self._predicted_quantiles(given), self.shared_
        ends = np.full(given.n_rows, np.inf)
        return DistributionFunctions(
            lambda high: quantiles.mass(*shared.bounds(-ends, high)),
            lambda u: shared.become(quantiles.draw(u, -ends, ends)),
            before=lambda low: 1.0 - quantiles.mass(*shared.bounds(low, ends)),
        )

    def base_measure(self) -> BaseMeasure:
        self.check_fitted("estimators_")
        return "counting" if self.is_classifier_ else super().base_measure()

    def _log_mass(self, given: Table, within: Within, drawn: Floats) -> Floats:
        """Return the log probability of the allowed values; with "pmm", the log importance weight of each draw."""
        n = given.n_rows
        if self.is_classifier_:
            return log_mass_of_levels(self._probabilities(given), within)
        low, high = within.bounds(n)
        if self.method == "quantiles":
            return log_of(self._predicted_quantiles(given).mass(*self.shared_.bounds(low, high)))
        if self.method == "pmm":
            return self.donors_.log_weight(self._predict(given), drawn, low, high)
        first, after = self.residuals_.between(self._predict(given)[:, 0], low, high)
        return log_of(np.maximum(after - first, 0) / self.residuals_.values.size)

    def _probabilities(self, given: Table) -> Floats:
        """Return the probabilities of all levels; 0 for levels unknown to the classifier."""
        probabilities = np.zeros((given.n_rows, self.n_levels_))
        if not self.estimators_:
            probabilities[:, self.first_level_] = 1.0
            return probabilities
        estimator = self.estimators_[0]
        if given.n_rows:
            probabilities[:, estimator.classes_] = call_estimator(estimator, "predict_proba", indicator_design(given))
        return probabilities

    def _predict(self, given: Table) -> Floats:
        design = indicator_design(given)
        return np.column_stack([predict(estimator, design) for estimator in self.estimators_])

    def _predicted_quantiles(self, given: Table) -> PredictedQuantiles:
        return PredictedQuantiles.arrange(self._predict(given), self.quantiles_, self.tails_)

    def _check_estimator(self, feature: Feature) -> None:
        """Raise if the estimator does not suit the target."""
        from sklearn.base import is_classifier, is_regressor

        needed = "regressor" if feature.is_numeric else "classifier"
        if not (is_regressor if feature.is_numeric else is_classifier)(self.estimator):
            raise SamplerError(f"{self!r} cannot model {feature.name!r}: it is {feature.kind}, which needs a {needed}.")
        if not feature.is_numeric and not hasattr(self.estimator, "predict_proba"):
            raise SamplerError(f"{self!r} cannot model {feature.name!r}: the classifier has no predict_proba.")

    def check_parameters(self) -> None:
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise InputError(
                f"estimator of EstimatorSampler is {self.estimator!r}; give a scikit-learn classifier or regressor."
            )
        if self.method not in METHODS:
            raise InputError(f"method of EstimatorSampler is {self.method!r}; allowed: {', '.join(METHODS)}.")
        check_count(self.n_donors, "n_donors", self, 1)
        check_count(self.n_quantiles, "n_quantiles", self, 1)
        resolve_seed(self.random_state)
