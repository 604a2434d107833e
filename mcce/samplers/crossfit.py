"""Fitting scikit-learn estimators so that the same seed gives the same fit, and predicting rows they have not seen.

1. An estimator is cloned; every `random_state` that is None, its own or that of a part (a step of a pipeline),
   becomes a seed derived from the sampler's. What the user has set stays.
2. Rows are dealt to five folds at random, by the same seed; up to five rows have a fold each.
3. Each fold is predicted by a clone that was fitted on all other rows. A single row has no others, and is predicted
   by a clone fitted on itself.

What estimators are fitted on is `indicator_design`: numbers, with 0/1 columns for unordered levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.arrays import Floats, Ints
from mcce.exceptions import SamplerError
from mcce.rng import derive_key
from mcce.table import Feature, Table

N_FOLDS = 5
_SEED = "random_state"
# parameters by which a regressor chooses what it fits; without the value "quantile" its level has no effect
_CHOOSERS = ("loss", "strategy")


def seeded_clone(estimator: Any, seed: int) -> Any:
    """Return an unfitted copy without any random state of its own (step 1)."""
    from sklearn.base import clone

    copy = clone(estimator)
    unset = [name for name, value in copy.get_params().items() if name.split("__")[-1] == _SEED and value is None]
    return copy.set_params(**{name: derive_key(seed, "estimator", name) >> 33 for name in unset}) if unset else copy


def takes_sample_weight(estimator: Any) -> bool:
    """Return whether the `fit` of an estimator has a parameter `sample_weight`; that of a pipeline has none."""
    from sklearn.utils.validation import has_fit_parameter

    return bool(has_fit_parameter(estimator, "sample_weight"))


def deal_folds(n: int, seed: int, n_folds: int = N_FOLDS) -> Ints:
    """Return the fold of each of `n` rows (step 2)."""
    order = np.random.default_rng(derive_key(seed, "folds")).permutation(n)
    return order % min(n_folds, max(n, 1))


@dataclass(frozen=True)
class CrossFit:
    """The fold of each training row, its prediction, and the fits that have predicted the folds."""

    fold: Ints
    predictions: Floats
    fits: tuple[Any, ...]


def cross_fit(estimator: Any, design: Floats, values: Floats, seed: int, weights: Floats | None = None) -> CrossFit:
    """Predict each row by a fit that has not seen it (step 3)."""
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
        except ValueError as error:  # nearest neighbours say here that they are too few
            raise _not_fitted(estimator, design[training], n, error) from error
    return CrossFit(fold, predictions, tuple(fits))


def fit_seeded(
    estimator: Any,
    design: Floats,
    values: Floats | Ints,
    seed: int,
    weights: Floats | None = None,
    n_all: int | None = None,
) -> Any:
    """Return a seeded copy that is fitted to rows, some of `n_all`; refuse with what it says against them."""
    copy = seeded_clone(estimator, seed)
    weighted = {} if weights is None else {"sample_weight": weights}
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # trees cast to float32, then say what is too large
            return copy.fit(design, values, **weighted)
    except ValueError as error:
        raise _not_fitted(estimator, design, n_all or len(design), error) from error


def _not_fitted(estimator: Any, design: Floats, n_all: int, error: ValueError) -> SamplerError:
    others = f" of the {n_all} rows to predict the others" if len(design) < n_all else " rows"
    remedy = _too_large(design) or "Give more rows, or an estimator that needs fewer."
    return SamplerError(f"{estimator!r} could not be fitted on {len(design)}{others}: {error} {remedy}")


def _too_large(design: Floats) -> str:
    """Say that numbers do not fit into float32, in which many estimators compute; nothing if they do."""
    largest = float(np.nanmax(np.abs(design), initial=0.0))
    if largest <= float(np.finfo(np.float32).max):
        return ""
    return f"What it is given has numbers up to {largest:g}: rescale them, or use a sampler that takes them (cart)."


def predict(estimator: Any, design: Floats) -> Floats:
    """Return the predictions as a vector; scikit-learn refuses to predict no rows at all."""
    if not len(design):
        return np.empty(0)
    return np.asarray(ask_estimator(estimator, "predict", design), dtype=np.float64).ravel()


def ask_estimator(estimator: Any, method: str, design: Floats) -> Any:
    """Return what a method of a fitted estimator says; many refuse missing values, which training rows may lack."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return getattr(estimator, method)(design)
    except ValueError as error:
        if too_large := _too_large(design):
            raise SamplerError(f"{estimator!r} cannot predict these rows: {error} {too_large}") from error
        if not np.isnan(design).any():
            raise
        raise SamplerError(
            f"{estimator!r} cannot predict rows with missing values, which a fixed feature or one drawn before has "
            f"here, and no training row had: {str(error).splitlines()[0]} Fill them, or use a sampler that takes "
            "them (cart)."
        ) from error


def at_quantile(estimator: Any, level: float) -> Any:
    """Return an unfitted copy of a quantile regressor for one level; refuse one that would ignore the level."""
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
    """Write the given columns as numbers: 0/1 columns for unordered levels; one constant column if there are none."""
    columns: list[Floats] = []
    for j, feature in enumerate(given.features):
        column = given.matrix[:, j]
        if feature.kind == "categorical" and feature.n_levels > 2:
            columns.extend((column == level).astype(np.float64) for level in range(feature.n_levels))
        else:
            columns.append(column)
    return np.column_stack(columns) if columns else np.zeros((given.n_rows, 1))


def n_design_columns(features: Sequence[Feature]) -> int:
    """Return how many columns `indicator_design` makes of columns with these features."""
    return sum(f.n_levels if f.kind == "categorical" and f.n_levels > 2 else 1 for f in features) or 1
