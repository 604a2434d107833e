"""Regressions of statsmodels as conditionals.

1. Fit the model to the design of the givens, or of a formula (`mcce.samplers.statsmodels.models`). A logistic
   regression models whether the target is missing (`mcce.samplers.parametric.regression`).
2. Draw by inverting the predictive distribution of the row (`mcce.samplers.statsmodels.distributions`); a level by its
   probability.
3. Linear predictors are clipped to the range of those of the training rows, extended by its width on both sides, unless
   the link is the identity. This prevents extreme values by extrapolation.

The state is made of numbers and texts; no object of statsmodels is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.parameters import changed_parameters
from mcce.exceptions import InputError, MCCEError, SamplerError, listing, warn
from mcce.rng import RowStreams
from mcce.samplers.base import IMPOSSIBLE, BaseMeasure, Within, samplers_of_weights
from mcce.samplers.density import ColumnDensity, require_density
from mcce.samplers.donors.base import draw_rows
from mcce.samplers.parametric.formula import FormulaDesign
from mcce.samplers.parametric.glm import cholesky
from mcce.samplers.parametric.regression import RegressionSampler
from mcce.samplers.predictions import draw_levels, log_mass_of_levels, log_probability, supported_levels
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.registry import register_sampler
from mcce.samplers.restricted import log_of
from mcce.samplers.statsmodels.distributions import QuantileGrid, RowDistribution
from mcce.samplers.statsmodels.models import MODELS, NUMBERS, Fit, Specification, fit_model, fit_quantiles
from mcce.samplers.summary import Summary, coefficient_table
from mcce.storage.fields import FLOAT, INT, learned, require
from mcce.table import Column, Feature, Table
from mcce.table.grid import MOST_DECIMALS, decimals_of
from mcce.table.weights import mean_of

QUANTILES: Floats = (np.arange(10, dtype=np.float64) + 0.5) / np.float64(10.0)
_NARROWEST = 1e-6  # distance of two quantiles, in standard deviations of the target

Self = TypeVar("Self", bound="StatsmodelsSampler")


class _OfModel:
    """A class attribute that an instance reads from its model."""

    def __init__(self, answer: str, otherwise: Any) -> None:
        self.answer, self.otherwise = answer, otherwise

    def __get__(self, obj: Any, owner: type[Any]) -> Any:
        if obj is None or not isinstance(obj.model, str | type):
            return self.otherwise
        return getattr(obj.specification, self.answer)


@register_sampler("statsmodels")
class StatsmodelsSampler(RegressionSampler):
    """A model of statsmodels, with the predictive distribution that it estimates.

    Parameters
    ----------
    model : class of statsmodels or str
        GLM, OLS, WLS, QuantReg; Poisson, NegativeBinomial, NegativeBinomialP, GeneralizedPoisson, ZeroInflatedPoisson,
        ZeroInflatedNegativeBinomialP, ZeroInflatedGeneralizedPoisson (counts); BetaModel (shares); Logit, Probit,
        MNLogit, OrderedModel (levels). Others raise an error with the reason.
    formula, random_state : see `NormSampler`
    fit_options : dict or None
        Arguments of the model's `fit`, as ``{"method": "lbfgs"}``.
    proper : bool
        Draw the parameters once, at `fit`, from their asymptotic normal distribution; QuantReg is fitted to a bootstrap
        sample of the rows instead.
    **init
        Options of the model: `family` of GLM (an object of statsmodels, or text as "Gamma(Log)"), `loglike_method`
        ("nb2", "nb1") of NegativeBinomial, `p` of the models with one, `distr` ("logit", "probit") of OrderedModel,
        `inflation` ("logit", "probit") and `exog_infl` ("constant", "givens") of zero-inflated models.

    Attributes
    ----------
    estimate_, covariance_, names_ : the parameters estimated by statsmodels, on the scale of the design columns.
    coef_, extra_, scale_ : parameters used for draws: coefficients, intercept first; dispersion or thresholds; scale.
    aliased_ : design columns determined by others; their coefficient is 0, as in R, and a warning names them.

    Notes
    -----
    Lack of convergence, or a likelihood without a maximum (separation), raises an error with the reason. Only GLM, OLS
    and WLS take weights of rows. `summary` shows the coefficients with their standard errors.

    `log_density` is the density of the model. Values with point mass (`mcce.samplers.density`) have the probability of
    being rounded to them, mixed with a small uniform component, as in `NormSampler`. Chains round the draws.

    References
    ----------
    Seabold and Perktold (2010), "statsmodels: Econometric and statistical modeling with Python", Proceedings of the 9th
    Python in Science Conference.

    Examples
    --------
    >>> import mcce
    >>> import statsmodels.api as sm
    >>> loans = mcce.datasets.load_loans()
    >>> salary = mcce.StatsmodelsSampler(sm.GLM, family=sm.families.Gamma(sm.families.links.Log()))
    >>> years = mcce.StatsmodelsSampler.from_formula("years_employed ~ age * sex", sm.NegativeBinomial)
    >>> chain = mcce.ChainModel(sampler={"years_employed": years, "*": "cart"}, fixed=["age", "sex"], random_state=1)
    >>> chain.fit(loans.X[["age", "sex", "years_employed"]]).sample(n=3).shape
    (3, 3)
    """

    handles: ClassVar[Any] = _OfModel("kinds", frozenset({"numeric"}))
    numbers: ClassVar[Any] = _OfModel("numbers", "any")
    takes_weights: ClassVar[Any] = _OfModel("takes_weights", True)
    needs_intercept = False
    dispensable = ("column_",)
    discloses = "coefficients, {column_.atoms} frequent values of it, and {column_.knots} quantiles of it"

    names_: tuple[str, ...] = learned(tuple, "parameters", of=str)
    estimate_: Floats = learned(FLOAT, "parameters", finite=True)
    covariance_: Floats = learned(FLOAT, "parameters", "parameters")
    coef_: Floats = learned(FLOAT, "equations", "columns + 1", finite=True)
    extra_: Floats = learned(FLOAT, None, finite=True)
    scale_: float = learned(float, least=0.0)
    reach_: Floats = learned(FLOAT, "equations", 2, finite=True)
    log_likelihood_: float = learned(float, finite=False)
    degrees_of_freedom_: float = learned(float)
    aliased_: tuple[str, ...] = learned(tuple, None, of=str)
    constant_: float | None = learned(float, optional=True)
    n_levels_: int = learned(int, least="levels", most="levels")
    classes_: Ints = learned(INT, None, least=0, rising=True)
    decimals_: int | None = learned(int, least=0, most=MOST_DECIMALS, optional=True)
    column_: ColumnDensity | None = learned(ColumnDensity, optional=True)

    def __init__(
        self,
        model: Any = "GLM",
        *,
        formula: str | None = None,
        fit_options: Mapping[str, Any] | None = None,
        proper: bool = False,
        random_state: int | None = 0,
        **init: Any,
    ) -> None:
        self.model = model
        self.formula = formula
        self.fit_options = fit_options
        self.proper = proper
        self.random_state = random_state
        self.init = init

    @classmethod
    def from_formula(cls: type[Self], formula: str, model: Any = "GLM", **options: Any) -> Self:
        """Return a sampler with the design of a formula, as in statsmodels; `options` are the other parameters."""
        return cls(model, formula=formula, **options)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return super().get_params(deep=False) | self.init

    def set_params(self: Self, **params: Any) -> Self:
        self.init = {name: params.pop(name, value) for name, value in self.init.items()}
        return super().set_params(**params)

    def plain_params(self) -> dict[str, Any]:
        """Return the parameters with the model and the family as text."""
        specification = self.specification
        chosen = {name: specification.options[name] for name in self.init}
        return {**super().get_params(deep=False), "model": specification.name, **chosen}

    def __repr__(self) -> str:
        try:
            plain = self.plain_params()
        except MCCEError:  # show invalid parameters unchanged
            plain = self.get_params()
        return f"{type(self).__name__}({', '.join(f'{k}={plain[k]!r}' for k in changed_parameters(self))})"

    def __getattr__(self, name: str) -> Any:
        init = vars(self).get("init", {})
        return init[name] if name in init else super().__getattribute__(name)

    @property
    def specification(self) -> Specification:
        """The model and its options, checked."""
        return Specification.read(self.model, self.init)

    def check_parameters(self) -> None:
        super().check_parameters()
        if not isinstance(self.fit_options, Mapping | None):
            raise InputError(f"fit_options of {type(self).__name__} is {self.fit_options!r}; give a dict, or None.")
        self.specification  # noqa: B018  # raises

    def check_weights(self, feature: Feature) -> None:
        if not self.takes_weights:
            weighted = listing(name for name, each in MODELS.items() if each.takes_weights)
            raise SamplerError(
                f"{self!r} for {feature.name!r} does not take sample_weight, because statsmodels' "
                f"{self.specification.name} has no weights of rows; use a model that has ({weighted}), another sampler "
                f"({samplers_of_weights()}), or leave it out."
            )

    def fit_complete(self, given: Table, x: Floats, target: Column) -> None:
        values, weights, feature = target.values, target.weights, target.feature
        if weights is not None:
            self.check_weights(feature)
        self.n_levels_ = feature.n_levels
        self.classes_ = np.empty(0, dtype=np.int64)
        self.decimals_, self.column_ = None, None
        self.constant_ = float(values[0]) if np.ptp(values) == 0.0 else None
        if feature.is_numeric:
            self.decimals_, self.column_ = decimals_of(values), ColumnDensity.of(values, weights)
            self._check_numbers(values, feature)
        else:
            self.classes_ = np.unique(values).astype(np.int64)
            values = np.searchsorted(self.classes_, values).astype(np.float64)
        try:
            if self.constant_ is not None:
                self._keep(_NOTHING, x.shape[1])
            elif self.specification.name == "QuantReg":
                self._fit_quantiles(given, x, values, target)
            else:
                self._fit_model(x, values, target)
        except SamplerError as error:
            raise SamplerError(f"{self!r} for {feature.name!r}: {error}") from error
        eta = self.design_.predict(given, self.coef_[:, 0], self.coef_[:, 1:])
        low, high = eta.min(axis=0), eta.max(axis=0)
        width = np.where(high > low, high - low, 1.0)
        lowest = np.maximum(low - width, 0.5 * low) if self.specification.needs_positive else low - width
        self.reach_ = np.column_stack([lowest, high + width])
        if self.aliased_:
            warn(
                f"{type(self).__name__} for {feature.name!r}: {listing(self.aliased_)} is determined by other columns "
                "of the design, and has coefficient 0. Leave it out by a formula or by predictors."
            )

    def _check_numbers(self, values: Floats, feature: Feature) -> None:
        """Raise if the target has numbers outside the domain of the model."""
        needed = self.specification.numbers
        wrong = np.zeros(values.size, dtype=bool)
        if needed == "positive":
            wrong = values <= 0.0
        elif needed == "counts":
            wrong = (values < 0.0) | (np.rint(values) != values)
        elif needed == "shares":
            wrong = (values <= 0.0) | (values >= 1.0)
        if wrong.any():
            raise SamplerError(
                f"{self!r} models {NUMBERS[needed]}, and {feature.name!r} holds {values[wrong][0]:g} ({wrong.sum()} "
                f"such of {values.size} rows). Use another sampler, or twopart if many rows share the smallest value."
            )

    def _fit_model(self, x: Floats, values: Floats, target: Column) -> None:
        labels = [] if target.feature.levels is None else [str(target.feature.levels[code]) for code in self.classes_]
        if self.specification.needs_two and len(labels) > 2:
            raise SamplerError(f"the target has {len(labels)} levels, and the model two; use MNLogit or OrderedModel.")
        fit = fit_model(
            self.specification,
            x,
            values,
            names=self.design_.columns,
            intercept=not isinstance(self.design_, FormulaDesign) or self.design_.has_intercept,
            weights=target.weights,
            options=self.fit_options,
            levels=labels,
        )
        self._keep(fit, x.shape[1])
        if self.proper:
            streams = self.proper_streams(target, fit.estimate.size)
            uniform = float(streams.uniform()[0])
            drawn = fit.estimate + cholesky(fit.covariance) @ streams.normal()
            if self.specification.model.extra == ("alpha",):  # keep the dispersion positive
                drawn[-1] = fit.estimate[-1] * np.exp((drawn[-1] - fit.estimate[-1]) / fit.estimate[-1])
            self.coef_, self.extra_ = _arranged(fit, drawn, x.shape[1])
            if fit.scale != 1.0:
                degrees = max(fit.degrees_of_freedom, 1.0)
                self.scale_ = float(fit.scale * degrees / scipy.special.chdtri(degrees, 1.0 - uniform))

    def _fit_quantiles(self, given: Table, x: Floats, values: Floats, target: Column) -> None:
        if self.proper:
            rows = draw_rows(np.arange(values.size), self.proper_streams(target, values.size), None)
            x, values, given = x[rows], values[rows], given.take(rows)
        names = self.design_.columns
        intercept = not isinstance(self.design_, FormulaDesign) or self.design_.has_intercept
        options = self.fit_options or {}
        coef, aliased = fit_quantiles(x, values, QUANTILES, names=names, intercept=intercept, options=options)
        estimate = coef.ravel()
        labels = [f"{level:g}: {name}" for level in QUANTILES for name in ("const", *names)]
        unknown = np.full((estimate.size, estimate.size), np.nan)
        fit = Fit(
            estimate, unknown, tuple(labels), np.arange(estimate.size), len(coef), 1.0, np.nan, values.size, aliased
        )
        self._keep(fit, x.shape[1])
        predicted = np.sort(self.design_.predict(given, coef[:, 0], coef[:, 1:]), axis=1)
        spread = float(np.std(values))
        beyond = (predicted[:, 0] - values, values - predicted[:, -1])
        excess = [float(mean_of(part[part > 0.0], None)) if (part > 0.0).any() else 0.0 for part in beyond]
        self.extra_ = np.array([*np.maximum(excess, 1e-3 * spread), _NARROWEST * spread])

    def _keep(self, fit: Fit, n_columns: int) -> None:
        self.names_, self.estimate_, self.covariance_ = fit.names, fit.estimate, fit.covariance
        self.coef_, self.extra_ = _arranged(fit, fit.estimate, n_columns)
        self.scale_, self.log_likelihood_ = fit.scale, fit.log_likelihood
        self.degrees_of_freedom_, self.aliased_ = fit.degrees_of_freedom, fit.aliased

    def sample_complete(self, given: Table, rng: RowStreams, within: Within | None) -> Floats:
        if self._has_levels:
            return draw_levels(self._probabilities(given), rng, within)
        n = given.n_rows
        if self.constant_ is not None:
            low, high = (within or Within()).bounds(n)
            always = np.full(n, self.constant_)
            return np.where((always >= low) & (always <= high), always, np.nan)
        uniform = rng.uniform()
        return self._distribution(given).draw(uniform, *(() if within is None else within.bounds(n)))

    def probability_within(self, given: Table, within: Within) -> Floats:
        if self._has_levels:
            return np.exp(log_mass_of_levels(self._probabilities(given), within))
        low, high = within.bounds(given.n_rows)
        if self.constant_ is not None:
            return ((low <= self.constant_) & (high >= self.constant_)).astype(np.float64)
        return self._distribution(given).mass(low, high)

    def quantiles_complete(self, given: Table, u: Floats) -> Floats:
        """Return the quantiles of the predictive distribution."""
        if self._has_levels:
            return DistributionFunctions.of_levels(self._probabilities(given)).inverse(u)
        if self.constant_ is not None:
            return np.full(given.n_rows, self.constant_)
        return self._distribution(given).draw(u)

    def supports_complete(self, given: Table, values: Floats) -> Bools:
        """Return whether values at least as extreme, or the level, have a probability above `IMPOSSIBLE`."""
        if self._has_levels:
            return supported_levels(self._probabilities(given), values)
        if self.constant_ is not None:
            return np.asarray(values == self.constant_)
        half = self._half
        distribution = self._distribution(given)
        rounded = self._on_grid(values) & (distribution.mass(values - half, values + half) > IMPOSSIBLE)
        return np.asarray(distribution.supports(values) | rounded) if half > 0.0 else distribution.supports(values)

    def log_density_complete(self, given: Table, values: Floats) -> Floats:
        """Return the log density; for values with point mass, the log probability of being rounded to them."""
        if self._has_levels:
            return log_probability(self._probabilities(given), values)
        if self.constant_ is not None:
            return np.where(values == self.constant_, 0.0, -np.inf)
        distribution, column = self._distribution(given), require_density(self.column_, self)
        density = distribution.log_density(values)
        if not column.atoms.size:
            return density
        mass = density if distribution.is_count else log_of(distribution.mass(values - self._half, values + self._half))
        if column.base_measure == "counting":  # new rounded values have point mass, too
            density = np.where(self._on_grid(values), mass, -np.inf)
        density = np.where(column.has_mass(values), mass, density)
        return column.log_with_uniform_part(np.exp(density), values)

    def base_measure(self) -> BaseMeasure:
        if self.always_missing_ or self._has_levels or self.constant_ is not None:
            return "counting"
        return require_density(self.column_, self).base_measure

    def check_complete(self, n_rows: int) -> None:
        specification = self.specification
        require(self.constant_ is not None or self._fits(specification), "coef_ or extra_ does not match the model")
        require(bool((self.reach_[:, 0] <= self.reach_[:, 1]).all()), "reach_ is not ascending")
        require(
            not self.classes_.size or int(self.classes_[-1]) < self.n_levels_,
            "classes_ holds a level that does not exist",
        )

    def _fits(self, specification: Specification) -> bool:
        n = self.classes_.size
        if specification.name == "QuantReg":
            shape = (QUANTILES.size, 3)
        elif specification.name == "MNLogit":
            shape = (n - 1, 0)
        elif specification.name == "OrderedModel":
            shape = (1, n - 1)
        else:
            shape = (1 + specification.is_inflated, len(specification.model.extra))
        return (len(self.coef_), self.extra_.size) == shape

    def summary(self) -> Summary:
        """Return the coefficients with their standard errors, as statsmodels prints them."""
        if self.always_missing_ or self.constant_ is not None:
            return super().summary()
        specification = self.specification
        about = {
            "Model": specification.name,
            **{name.capitalize(): value for name, value in specification.options.items()},
            "Formula": self.formula or "all givens",
            "Df Residuals": f"{self.degrees_of_freedom_:g}",
            "Scale": f"{self.scale_:.6g}",
            "Log-Likelihood": f"{self.log_likelihood_:.6g}",
        }
        if self.aliased_:
            about["Aliased"] = listing(self.aliased_)
        return coefficient_table(self.names_, self.estimate_, self.covariance_, about)

    @property
    def _has_levels(self) -> bool:
        return self.n_levels_ > 0

    def _linear(self, given: Table) -> Floats:
        eta = self.design_.predict(given, self.coef_[:, 0], self.coef_[:, 1:])
        return eta if self.specification.is_identity else np.clip(eta, self.reach_[:, 0], self.reach_[:, 1])

    def _distribution(self, given: Table) -> RowDistribution:
        specification, eta = self.specification, self._linear(given)
        if specification.name == "QuantReg":
            return RowDistribution(QuantileGrid.arrange(eta, QUANTILES, self.extra_[:2], float(self.extra_[2])))
        return specification.distribution(eta, self.extra_, self.scale_)

    def _probabilities(self, given: Table) -> Floats:
        """Return the probabilities of all levels; levels without training rows have probability 0."""
        out = np.zeros((given.n_rows, self.n_levels_))
        if self.constant_ is not None:
            out[:, self.classes_[0]] = 1.0
            return out
        out[:, self.classes_] = self.specification.probabilities(self._linear(given), self.extra_)
        return out

    @property
    def _half(self) -> float:
        return 0.0 if self.decimals_ is None else 0.5 * 10.0**-self.decimals_

    def _on_grid(self, values: Floats) -> Bools:
        if self.decimals_ is None:
            return np.ones(values.size, dtype=bool)
        return np.asarray(np.round(values, self.decimals_) == values)


def _arranged(fit: Fit, parameters: Floats, n_columns: int) -> tuple[Floats, Floats]:
    """Return the coefficients of all equations, and the other parameters."""
    coef = np.zeros(fit.n_equations * (n_columns + 1))
    is_coef = fit.places >= 0
    coef[fit.places[is_coef]] = parameters[is_coef]
    return coef.reshape(fit.n_equations, n_columns + 1), parameters[~is_coef]


# the fit of a constant target
_NOTHING = Fit(np.empty(0), np.empty((0, 0)), (), np.empty(0, dtype=np.int64), 1, 1.0, 0.0, 1.0, ())
