"""Logistic regressions for targets with levels, as in synthpop: `logreg`, `polyreg`, `polr`.

1. Augment the training rows against separation (`mcce.samplers.parametric.design`).
2. Fit a binary, multinomial or cumulative logit by maximum likelihood (`mcce.samplers.parametric.glm`).
3. Draw a level by its probability.

Only levels that occur in the training rows have a positive probability.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.rng import RowStreams
from mcce.samplers.base import IMPOSSIBLE, BaseMeasure, RestrictedDraw, Within
from mcce.samplers.parametric.design import augmented
from mcce.samplers.parametric.glm import (
    Cumulative,
    Multinomial,
    NoMaximumError,
    cholesky,
    fit_cumulative,
    fit_multinomial,
    log_softmax,
)
from mcce.samplers.parametric.regression import RegressionSampler
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.registry import register_sampler
from mcce.samplers.summary import Summary, coefficient_table
from mcce.storage.fields import FLOAT, INT, learned, require
from mcce.table import Column, Table
from mcce.table.weights import mean_of


class LevelSampler(RegressionSampler):
    """A regression for the probabilities of levels.

    A linear predictor is ``intercept + coef (x - shift_) / scale_``: coefficients are on synthpop's rescaled design.
    """

    handles = frozenset({"categorical", "ordered"})
    takes_weights = True
    dispensable = ()
    discloses = "coefficients, and means or ranges of the columns it is drawn given"
    bootstraps: ClassVar[bool] = True

    n_levels_: int = learned(int, least="levels", most="levels")
    classes_: Ints = learned(INT, "classes", index_of="levels", rising=True, filled=True)
    shift_: Floats = learned(FLOAT, "columns", finite=True)
    scale_: Floats = learned(FLOAT, "columns", finite=True)
    model_: Multinomial | None = learned(Multinomial, optional=True)

    def fit_complete(self, given: Table, x: Floats, target: Column) -> None:
        """Augment and fit (steps 1 and 2)."""
        self.n_levels_ = target.feature.n_levels
        values, weights = target.values, target.weights
        if self.proper and self.bootstraps:
            rows = self.bootstrap(target)
            x, values, weights = x[rows], values[rows], None
            varies = np.ptp(x, axis=0) > 0.0 if x.shape[1] else np.zeros(0, dtype=bool)
        else:
            varies = np.ones(x.shape[1], dtype=bool)
        classes, codes = np.unique(values, return_inverse=True)
        self.classes_ = classes.astype(np.int64)
        self.shift_, self.scale_ = np.zeros(x.shape[1]), np.ones(x.shape[1])
        self.model_ = None
        if classes.size > 1:
            self.fit_classes(x, codes.astype(np.int64), varies, target, weights)

    @abstractmethod
    def fit_classes(self, x: Floats, codes: Ints, varies: Bools, target: Column, weights: Floats | None = None) -> None:
        """Fit codes 0, 1, ... of the observed levels; constant columns get the coefficient 0."""

    def fit_multinomial(
        self, x: Floats, codes: Ints, varies: Bools, *, weights: Floats | None = None, covariance: bool = False
    ) -> Multinomial:
        """Fit a multinomial logit to the augmented rows, after shifting and scaling the columns."""
        n_classes = self.classes_.size
        rows = augmented((x[:, varies] - self.shift_[varies]) / self.scale_[varies], codes, n_classes, weights)
        fitted = fit_multinomial(rows, n_classes, covariance=covariance)
        coef = np.zeros((n_classes - 1, x.shape[1]))
        coef[:, varies] = fitted.coef
        return Multinomial(fitted.intercept, coef, fitted.covariance, fitted.converged)

    def fit_rescaled(self, x: Floats, codes: Ints, varies: Bools, weights: Floats | None = None) -> None:
        """Fit a multinomial logit, with each column that has values outside [0, 1] mapped to [0, 1]."""
        # augmented rows are inside the range of the training rows
        rescaled = ((x.min(axis=0) < 0.0) | (x.max(axis=0) > 1.0)) & varies
        self.shift_ = np.where(rescaled, x.min(axis=0), 0.0)
        self.scale_ = np.where(rescaled, np.ptp(x, axis=0), 1.0)
        self.model_ = self.fit_multinomial(x, codes, varies, weights=weights)

    def log_probabilities(self, given: Table) -> Floats:
        """Return the log probability of every level for each row, given that the target is not missing."""
        out = np.full((given.n_rows, self.n_levels_), -np.inf)
        out[:, self.classes_] = self._log_class_probabilities(given)
        return out

    def sample_complete(self, given: Table, rng: RowStreams, within: Within | None) -> Floats:
        """Draw a level (step 3); restricted draws renormalise the probabilities of the allowed levels."""
        log_p = self.log_probabilities(given)
        if within is not None:
            log_p = np.where(within.level_mask(*log_p.shape), log_p, -np.inf)
        best = log_p.max(axis=1, keepdims=True)
        weights = np.exp(log_p - np.where(np.isfinite(best), best, 0.0))
        return RestrictedDraw.by_weight(np.arange(float(self.n_levels_)), weights, rng).values

    def probability_within(self, given: Table, within: Within) -> Floats:
        """Return the sum of the allowed levels' probabilities."""
        probabilities = np.exp(self.log_probabilities(given))
        return np.asarray((probabilities * within.level_mask(*probabilities.shape)).sum(axis=1))

    def quantiles_complete(self, given: Table, u: Floats) -> Floats:
        """Return the first level at which the sum of the probabilities reaches `u`."""
        return DistributionFunctions.of_levels(np.exp(self.log_probabilities(given))).inverse(u)

    def log_mass_complete(self, given: Table, within: Within, drawn: Floats) -> Floats:
        """Return the log of this sum without underflow."""
        log_p = self.log_probabilities(given)
        allowed = np.where(within.level_mask(*log_p.shape), log_p, -np.inf)
        return np.asarray(np.logaddexp.reduce(allowed, axis=1))

    def check_complete(self, n_rows: int) -> None:
        require((self.scale_ != 0.0).all(), "scale_ holds 0")
        if self.model_ is not None:
            shape = (self.classes_.size - 1, self.design_.n_columns)
            require(self.model_.coef.shape == shape, "model_ is not of the design and the classes")
        else:
            require(self.classes_.size == 1, "model_ is missing")

    def summary(self) -> Summary:
        """Return the coefficients, with standard errors if they are estimated."""
        if self.always_missing_ or self.model_ is None:
            return super().summary()
        m = len(self.model_.coef)
        carry = np.diag(np.append(1.0, 1.0 / self.scale_))
        carry[0, 1:] = -self.shift_ / self.scale_
        carry = np.kron(np.eye(m), carry)
        estimate = carry @ np.column_stack([self.model_.intercept, self.model_.coef]).ravel()
        covariance = None if self.model_.covariance is None else carry @ self.model_.covariance @ carry.T
        names = [f"level {code}: {name}" for code in self.classes_[1:] for name in ("const", *self.design_.columns)]
        return coefficient_table(names, estimate, covariance, {"Model": repr(self)})

    def supports_complete(self, given: Table, values: Floats) -> Bools:
        """Return whether the probability of each level is above `IMPOSSIBLE`."""
        likely: Bools = self.log_density_complete(given, values) > np.log(IMPOSSIBLE)
        return likely

    def log_density_complete(self, given: Table, values: Floats) -> Floats:
        """Return the log probability of each level; -inf for values that are not levels."""
        codes = values.astype(np.intp)
        is_level = (codes == values) & (codes >= 0) & (codes < self.n_levels_)
        log_p = self.log_probabilities(given)
        return np.where(is_level, log_p[np.arange(values.size), np.where(is_level, codes, 0)], -np.inf)

    def base_measure(self) -> BaseMeasure:
        return "counting"

    def _log_class_probabilities(self, given: Table) -> Floats:
        if self.model_ is None:
            return np.zeros((given.n_rows, 1))
        coef = self.model_.coef / self.scale_
        return log_softmax(self.design_.predict(given, self.model_.intercept - coef @ self.shift_, coef))


@register_sampler("logreg")
class LogregSampler(LevelSampler):
    """Logistic regression (synthpop's `logreg`).

    1. Centre the design columns and augment the rows against separation.
    2. Fit log p(level) / p(first level) = intercept + coef x by maximum likelihood.
    3. Draw a level by its probability.

    synthpop's `logreg` takes two levels; more levels are fitted by a multinomial logit, as in `PolyregSampler`.

    Parameters
    ----------
    formula, random_state : see `NormSampler`
    proper : bool
        Draw the coefficients once, at `fit`, from their asymptotic normal distribution.

    Attributes
    ----------
    model_ : intercept, coefficients of the centred columns, and their covariance (with two levels, or `proper`); None
        if only one level occurs.
    shift_ : the column means.
    classes_ : codes of the observed levels; the first is the base.

    Notes
    -----
    Treatment dummies are augmented one by one, as in synthpop, so the probabilities depend slightly on the choice of
    the base level (the augmented rows weigh as much as one row per coefficient).

    References
    ----------
    White, Daniel and Royston (2010), "Avoiding bias due to perfect prediction in multiple imputation of incomplete
    categorical variables", Computational Statistics and Data Analysis 54.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = {"defaulted_last_year": "logreg", "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> chain.samplers_["defaulted_last_year"].classes_
    array([0, 1])
    """

    bootstraps = False

    def fit_classes(self, x: Floats, codes: Ints, varies: Bools, target: Column, weights: Floats | None = None) -> None:
        """Centre, augment and fit; with `proper`, draw the coefficients."""
        self.shift_ = mean_of(x, weights)
        covariance = self.proper or self.classes_.size == 2
        fitted = self.fit_multinomial(x, codes, varies, weights=weights, covariance=covariance)
        if self.proper:
            assert fitted.covariance is not None
            streams = self.proper_streams(target, fitted.covariance.shape[0])
            moved = cholesky(fitted.covariance) @ streams.normal()
            moved = moved.reshape(fitted.intercept.size, -1)
            fitted = replace(fitted, intercept=fitted.intercept + moved[:, 0], coef=fitted.coef + moved[:, 1:])
        self.model_ = fitted


@register_sampler("polyreg")
class PolyregSampler(LevelSampler):
    """Multinomial logistic regression (synthpop's `polyreg`).

    1. Augment the rows against separation, then map each column with values outside [0, 1] to [0, 1].
    2. Fit log p(level) / p(first level) = intercept + coef x by maximum likelihood.
    3. Draw a level by its probability.

    Parameters
    ----------
    formula : see `NormSampler`
    proper : bool
        Fit to a bootstrap sample of the training rows.
    random_state : int or None
        Seed of the bootstrap; see `NormSampler`.

    Attributes
    ----------
    model_ : intercept and coefficients, a row for every observed level but the first; None if only one level occurs.
    shift_, scale_ : the map to [0, 1].
    classes_ : codes of the observed levels; the first is the base.

    Notes
    -----
    synthpop's optimiser (`nnet::multinom`) stops up to 1e-3 (in probability) before the maximum; this one does not. On
    the choice of base levels see `LogregSampler`.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = {"employment": "polyreg", "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age"], random_state=1).fit(loans.X)
    >>> set(chain.sample(n=50)["employment"]) <= set(loans.X["employment"])
    True
    """

    def fit_classes(self, x: Floats, codes: Ints, varies: Bools, target: Column, weights: Floats | None = None) -> None:
        self.fit_rescaled(x, codes, varies, weights)


@register_sampler("polr")
class PolrSampler(LevelSampler):
    """Proportional odds logistic regression for ordered targets (synthpop's `polr`).

    1. Augment the rows against separation.
    2. Fit P(level <= k) = logistic(threshold_k - coef x) by maximum likelihood. If that fails, fall back to the model
       of `PolyregSampler` and set `fell_back_`.
    3. Draw a level by its probability.

    Parameters
    ----------
    formula : see `NormSampler`
    proper, random_state : see `PolyregSampler`

    Attributes
    ----------
    cumulative_ : thresholds and coefficients; None after the fallback, or if only one level occurs.
    fell_back_ : bool
    model_, shift_, scale_ : as in `PolyregSampler`, after the fallback.
    classes_ : codes of the observed levels.

    References
    ----------
    McCullagh (1980), "Regression Models for Ordinal Data", Journal of the Royal Statistical Society B 42.

    Examples
    --------
    >>> import pandas as pd, mcce
    >>> grade = pd.Categorical(["low", "mid", "high"] * 20, categories=["low", "mid", "high"], ordered=True)
    >>> X = pd.DataFrame({"hours": range(60), "grade": grade})
    >>> chain = mcce.ChainModel(sampler="polr", fixed=["hours"], random_state=1).fit(X)
    >>> chain.samplers_["grade"].fell_back_
    False
    """

    handles = frozenset({"ordered"})

    cumulative_: Cumulative | None = learned(Cumulative, optional=True)
    fell_back_: bool = learned(bool)

    def fit_complete(self, given: Table, x: Floats, target: Column) -> None:
        self.cumulative_, self.fell_back_ = None, False
        super().fit_complete(given, x, target)

    def fit_classes(self, x: Floats, codes: Ints, varies: Bools, target: Column, weights: Floats | None = None) -> None:
        """Fit the cumulative logit, or fall back to the multinomial one."""
        try:
            rows = augmented(x[:, varies], codes, self.classes_.size, weights)
            fitted = fit_cumulative(rows, self.classes_.size)
        except NoMaximumError:
            self.fell_back_ = True
            self.fit_rescaled(x, codes, varies, weights)
            return
        coef = np.zeros(x.shape[1])
        coef[varies] = fitted.coef
        self.cumulative_ = Cumulative(fitted.thresholds, coef)

    def _log_class_probabilities(self, given: Table) -> Floats:
        if self.cumulative_ is None:
            return super()._log_class_probabilities(given)
        eta = self.design_.predict(given, np.zeros(1), self.cumulative_.coef[None, :])[:, 0]
        return self.cumulative_.log_probabilities(eta)

    def summary(self) -> Summary:
        """Return coefficients and thresholds, without standard errors."""
        if self.always_missing_ or self.cumulative_ is None:
            return super().summary()
        estimate = np.append(self.cumulative_.coef, self.cumulative_.thresholds)
        thresholds = [f"level {a} | {b}" for a, b in itertools.pairwise(self.classes_)]
        return coefficient_table([*self.design_.columns, *thresholds], estimate, None, {"Model": repr(self)})

    def check_complete(self, n_rows: int) -> None:
        if self.cumulative_ is None:
            super().check_complete(n_rows)
            return
        sizes = self.cumulative_.thresholds.size + 1, self.cumulative_.coef.size
        require(
            sizes == (self.classes_.size, self.design_.n_columns), "cumulative_ is not of the design and the classes"
        )
