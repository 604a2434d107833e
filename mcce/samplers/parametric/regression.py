"""Regressions as conditionals: the design, missing targets and `proper` synthesis of all parametric samplers.

A target with missing values has a two-part model, as in synthpop: a logistic regression for whether the value is
missing, and the regression itself, fitted to the complete rows.

Weights count as copies: likelihoods and sums of squares are weighted, and degrees of freedom use the sum of the
weights. (R's `lm` uses the number of rows; the coefficients are the same.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.exceptions import InputError, SamplerError
from mcce.rng import RowStreams, resolve_seed
from mcce.samplers.base import ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.donors.base import draw_rows, n_copies
from mcce.samplers.parametric.design import Design, augmented
from mcce.samplers.parametric.formula import FormulaDesign
from mcce.samplers.parametric.glm import Multinomial, fit_multinomial, log_softmax
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.restricted import log_of
from mcce.samplers.smoothing import smoothed_without_ranks
from mcce.storage.fields import check_fields, learned, require
from mcce.table import Column, Feature, Table

Self = TypeVar("Self", bound="RegressionSampler")


class RegressionSampler(ConditionalSampler):
    """A sampler whose conditional is a regression on the design of the givens; a base class, not a sampler.

    A subclass implements `fit_complete`, `sample_complete`, `probability_within`, `quantiles_complete`,
    `supports_complete` and `log_density_complete` for targets without missing values; this class handles missing ones.
    """

    handles_missing = True
    thread_safe = True

    keeps_constants: ClassVar[bool] = False
    needs_intercept: ClassVar[bool] = True

    formula: str | None = None
    proper: bool
    random_state: int | None
    design_: Design | FormulaDesign = learned((Design, FormulaDesign))
    always_missing_: bool = learned(bool)
    missing_design_: Design | FormulaDesign | None = learned((Design, FormulaDesign), optional=True)
    missing_model_: Multinomial | None = learned(Multinomial, optional=True)

    def __init__(self, *, formula: str | None = None, proper: bool = False, random_state: int | None = 0) -> None:
        self.formula = formula
        self.proper = proper
        self.random_state = random_state

    @abstractmethod
    def fit_complete(self, given: Table, x: Floats, target: Column) -> None:
        """Learn from complete rows, whose design matrix (without intercept) is `x`."""

    @abstractmethod
    def sample_complete(self, given: Table, rng: RowStreams, within: Within | None) -> Floats:
        """Draw one known value for each row; NaN if no value is allowed."""

    @abstractmethod
    def probability_within(self, given: Table, within: Within) -> Floats:
        """Return the probability that each row's known value is allowed."""

    def log_mass_complete(self, given: Table, within: Within, drawn: Floats) -> Floats:
        """Return the log of `probability_within`, or of an unbiased estimate of it that may depend on the draw."""
        return log_of(self.probability_within(given, within))

    @abstractmethod
    def quantiles_complete(self, given: Table, u: Floats) -> Floats:
        """Return the `u`-quantile of each row's known values."""

    def probability_upto(self, given: Table, high: Floats) -> Floats:
        """Return the probability that each row's known value is at most `high`."""
        return self.probability_within(given, Within(high=high))

    @property
    def n_ranked(self) -> int | None:
        """The number of donors that a value is ranked among; None if values are not drawn from donors."""
        return None

    @abstractmethod
    def supports_complete(self, given: Table, values: Floats) -> Bools:
        """Return whether the conditional supports each known value."""

    @abstractmethod
    def log_density_complete(self, given: Table, values: Floats) -> Floats:
        """Return the log density of each known value."""

    @property
    def restricts_by_rejection(self) -> bool:
        """Whether restricted draws use rejection sampling."""
        return False

    def check_parameters(self) -> None:
        """Raise if a parameter is invalid."""
        if not isinstance(self.proper, bool):
            raise InputError(f"proper of {type(self).__name__} is {self.proper!r}; it must be True or False.")
        resolve_seed(self.random_state)

    def fit(self: Self, given: Table, target: Column) -> Self:
        self.check_training(target)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # state of an earlier fit
        missing = np.isnan(target.values)
        self.always_missing_ = bool(missing.all())
        self.missing_design_ = self.missing_model_ = None
        if self.always_missing_:
            self.design_ = self.read_design(given, target)
            return self
        if missing.any():
            self.missing_design_ = self.read_design(given, target)
            rows = augmented(self.missing_design_.matrix(given), missing.astype(np.int64), 2, target.weights)
            self.missing_model_ = fit_multinomial(rows, 2)
            known = np.flatnonzero(~missing)
            given, target = given.take(known), target.take(known)
        if target.weights is not None and given.weights is None:
            given = replace(given, weights=target.weights)
        self.design_ = self.read_design(given, target, keep_constants=self.keeps_constants)
        self.fit_complete(given, self.design_.matrix(given), target)
        return self

    def read_design(self, given: Table, target: Column, *, keep_constants: bool = False) -> Design | FormulaDesign:
        """Return the design of the formula, or of all givens."""
        if self.formula is None:
            return Design.read(given, keep_constants=keep_constants)
        design = FormulaDesign.read(self.formula, given, target.feature)
        if self.needs_intercept and not design.has_intercept:
            raise SamplerError(
                f"formula {self.formula!r} of {target.feature.name!r} has no intercept, which "
                f"{type(self).__name__} needs; use StatsmodelsSampler, or drop the 0 or -1."
            )
        return design

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        if within is not None:
            return self.sample_within(given, rng, within).values
        if self.always_missing_:
            return np.full(given.n_rows, np.nan)
        drawn = self.sample_complete(given, rng, None)
        if self.missing_model_ is not None:
            drawn = np.where(np.log(rng.uniform() + 2.0**-54) < self._log_missing(given)[:, 1], np.nan, drawn)
        return drawn

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw one allowed value for each row, or a missing value with its probability."""
        may_be_missing = within.allows_missing(given.n_rows)
        if self.always_missing_:
            nothing = np.full(given.n_rows, np.nan)
            return RestrictedDraw.of(nothing, ~may_be_missing, np.zeros(given.n_rows))
        if self.restricts_by_rejection:
            return super().sample_within(given, rng, within)
        drawn = self.sample_complete(given, rng, within)
        log_mass = self.log_mass_complete(given, within, drawn) if within.weighted else None
        found = RestrictedDraw.of(drawn, np.isnan(drawn), log_mass)
        if self.missing_model_ is None or (within.missing is None and log_mass is None):
            return found
        log_missing = self._log_missing(given)
        if log_mass is not None:
            found = RestrictedDraw.of(drawn, found.rejected, log_mass + log_missing[:, 0])
        if within.missing is None:
            return found
        known, missing = np.exp(log_missing).T
        allowed = known * self.probability_within(given, within)
        return found.or_missing(allowed, missing * may_be_missing, rng.uniform())

    def supports(self, given: Table, values: Floats) -> Bools:
        missing = np.isnan(values)
        if self.always_missing_:
            return missing
        supported = np.full(values.size, self.missing_model_ is not None)
        known = np.flatnonzero(~missing)
        supported[known] = self.supports_complete(given.take(known), values[known])
        return supported

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        """Return the log density of known values, the log probability of missing ones."""
        self.refuse_training_rows(training_rows)
        known = np.flatnonzero(~np.isnan(values))
        out = np.full(values.size, 0.0 if self.always_missing_ else -np.inf)
        if self.always_missing_:
            out[known] = -np.inf
            return out
        out[known] = self.log_density_complete(given.take(known), values[known])
        if self.missing_model_ is not None:
            log_missing = self._log_missing(given)
            out = np.where(np.isnan(values), log_missing[:, 1], out + log_missing[:, 0])
        return out

    def distribution(self, given: Table) -> DistributionFunctions:
        """Return the distribution of each row, with the probability of a missing value."""
        if self.always_missing_:
            return DistributionFunctions.always_missing(given.n_rows)
        if self.restricts_by_rejection:
            raise smoothed_without_ranks(self)
        known = DistributionFunctions(
            lambda high: self.probability_upto(given, high),
            lambda u: self.quantiles_complete(given, u),
            n_donors=self.n_ranked,
        )
        return known if self.missing_model_ is None else known.with_missing(np.exp(self._log_missing(given)[:, 1]))

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        self.check_parameters()
        check_fields(self, RegressionSampler)
        self.design_.check_columns(given)
        model, design = self.missing_model_, self.missing_design_
        require((model is None) == (design is None), "only one of missing_model_ and missing_design_ is present")
        if model is not None and design is not None:
            design.check_columns(given)
            require(model.coef.shape == (1, design.n_columns), "missing_model_ does not match its design")
        if not self.always_missing_:
            check_fields(self, rows=n_rows, levels=target.n_levels, columns=self.design_.n_columns)
            self.check_complete(n_rows)

    def check_complete(self, n_rows: int) -> None:
        """Raise if the fields set by `fit_complete`, each valid on its own, are inconsistent."""

    def proper_streams(self, target: Column, n: int) -> RowStreams:
        """Return `n` streams for parameter draws or a bootstrap, determined by the seeds and the name of the target."""
        return RowStreams.from_seed(self.fit_seed(self.random_state), n).child("proper", target.feature.name)

    def bootstrap(self, target: Column) -> Ints:
        """Return the rows of a bootstrap sample, whose size is the number of rows or the sum of their weights."""
        n_drawn = target.values.size if target.weights is None else n_copies(target.weights)
        return draw_rows(np.arange(target.values.size), self.proper_streams(target, n_drawn), target.weights)

    def _log_missing(self, given: Table) -> Floats:
        """Return the log probabilities of a known and of a missing value."""
        assert self.missing_design_ is not None
        assert self.missing_model_ is not None
        return log_softmax(self.missing_design_.predict(given, self.missing_model_.intercept, self.missing_model_.coef))
