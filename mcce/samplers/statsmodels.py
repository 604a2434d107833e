"""Regressions of statsmodels as conditionals: any model with `get_distribution`, models of levels, and quantiles.

1. The design columns are centred and scaled. A column determined by those before it is dropped, as in R, and reported.
2. statsmodels fits the model; the results are kept. A fit has converged if another Newton step would increase the
   log-likelihood by less than 1e-6. A standard error above 100, on the scale of the standardised columns, shows
   separation: the likelihood has no maximum in that direction. Both are errors with the remedy.
3. The linear predictor of a row is computed here, so that it does not depend on other rows. Unless the link is the
   identity, it is clipped to the range of the training rows, extended by its width on both sides (links that need
   positive predictors: to half of the least one), because an inverse link turns extrapolation into extreme values.
4. A twin of the model, whose only column is the linear predictor and has the coefficient 1, gives the distribution. A
   model whose distribution is not a function of one linear predictor is asked with all columns, without clipping.
"""

from __future__ import annotations

import inspect
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce._utils import Floats, Ints
from mcce.exceptions import InputError, did_you_mean, listing, spell, warn
from mcce.samplers.base import register_sampler
from mcce.samplers.design import RegressionSampler, constant_target
from mcce.samplers.distributions import Continuous, Distribution, Hurdle, Levels
from mcce.samplers.families import Family, Scipy
from mcce.samplers.logistic import cholesky
from mcce.samplers.margin import Margin
from mcce.table import Column, Table

ALIASED = 1e-7  # relative residual norm of a column given the others: R's tolerance
LARGEST_ERROR = 100.0
DECREMENT = 1e-6
LEAST_DISPERSION = 1e-4  # of a negative binomial; below, counts vary no more than those of a Poisson distribution
CHECKED_ROWS = 50  # that compare the twin with the model
ELSEWHERE = {
    "BetaModel": "statsmodels.othermod.betareg",
    "OrderedModel": "statsmodels.miscmodels.ordinal_model",
}  # models that are not in statsmodels.api
DOMAINS = {
    "positive numbers": ("Gamma", "InverseGaussian"),
    "whole numbers from 0": (
        "Poisson",
        "NegativeBinomial",
        "NegativeBinomialP",
        "GeneralizedPoisson",
        "ZeroInflatedPoisson",
        "ZeroInflatedNegativeBinomialP",
        "ZeroInflatedGeneralizedPoisson",
    ),
    "numbers strictly between 0 and 1": ("BetaModel",),
}
MODELS_OF_LEVELS = {"Logit", "Probit", "MNLogit", "OrderedModel", "Binomial"}
REMEDY = "Use fewer predictors or a shorter formula, or give fit_options for its optimiser (method=, maxiter=)."
_ALONE = threading.RLock()  # statsmodels sets warning filters, and changes models while it predicts


@register_sampler("statsmodels")
class StatsmodelsSampler(RegressionSampler):
    """A model of statsmodels, with the predictive distribution that it estimates.

    Parameters
    ----------
    model : class or str
        A model of statsmodels, or its name: any with `get_distribution` (GLM, OLS, Poisson, NegativeBinomial,
        NegativeBinomialP, GeneralizedPoisson, ZeroInflatedPoisson, ZeroInflatedNegativeBinomialP, BetaModel), and
        models of levels (Logit, Probit, MNLogit, OrderedModel, GLM with Binomial). One's own class needs the arguments
        ``(endog, exog, **options)``, `fit`, and `get_distribution` of the model or the results.
    options : dict or None
        Options of the model, as ``{"family": sm.families.Gamma(sm.families.links.Log())}``.
    formula : str or None
        The design in R's notation, as in "age * sex + log(savings + 1)", read by formulaic; None: all givens.
    fit_options : dict or None
        Arguments of the model's `fit`, as ``{"method": "lbfgs"}``. None: IRLS for GLM, BFGS and Newton's method for
        other likelihoods.
    proper : bool
        Draw the parameters once, at `fit`, from their asymptotic normal distribution.
    random_state : int or None
        Seed of that draw; a chain sets it if it is None.

    Attributes
    ----------
    results_ : the results of statsmodels, on standardised design columns (``results_.summary()``); None if the target
        is constant.
    names_ : names of these columns.
    coef_ : coefficients of the design columns as they are, intercept first, if there is one linear predictor.
    aliased_ : names of the columns that others determine, and that are left out.

    References
    ----------
    Seabold and Perktold (2010), "statsmodels: Econometric and statistical modeling with Python", Proceedings of the 9th
    Python in Science Conference.

    Examples
    --------
    >>> import mcce
    >>> import statsmodels.api as sm
    >>> from mcce.samplers import StatsmodelsSampler
    >>> loans = mcce.datasets.load_loans()
    >>> family = sm.families.Gamma(sm.families.links.Log())
    >>> salary = StatsmodelsSampler(sm.GLM, options={"family": family}, formula="age * sex")
    >>> chain = mcce.ChainModel(sampler={"salary": salary, "*": "cart"}, fixed=["age", "sex"], random_state=1)
    >>> chain.fit(loans.X[["age", "sex", "salary"]]).sample(n=3).shape
    (3, 3)
    """

    needs_intercept = False

    def __init__(
        self,
        model: Any = "GLM",
        *,
        options: Mapping[str, Any] | None = None,
        formula: str | None = None,
        fit_options: Mapping[str, Any] | None = None,
        proper: bool = False,
        random_state: int | None = None,
    ) -> None:
        super().__init__(formula=formula, proper=proper, random_state=random_state)
        self.model = model
        self.options = options
        self.fit_options = fit_options

    @property
    def handles(self) -> frozenset[str]:  # type: ignore[override]
        """Kinds of target of the model."""
        if self._law not in MODELS_OF_LEVELS:
            return frozenset({"numeric"})
        return frozenset({"ordered"} if self._law == "OrderedModel" else {"categorical", "ordered"})

    @property
    def _law(self) -> str:
        """The name of the family of a GLM, or of the model."""
        name = str(getattr(self.model, "__name__", self.model))
        family = (self.options or {}).get("family")
        return type(family).__name__ if name == "GLM" and family is not None else name

    def fit_design(self, x: Floats, target: Column, given: Table) -> None:
        """Fit the model (steps 1 and 2), and prepare its twin (step 4)."""
        self._where = f"{self._law} of statsmodels for column {spell(target.feature.name)}"
        model, options = find_model(self.model), dict(self.options or {})
        self._check_options(options, target)
        self.margin_ = Margin.fit(target.values, target.feature)
        self.classes_ = np.unique(target.values)
        self.results_: Any = None
        self.twin_: Any = None
        if self.classes_.size == 1:
            return
        y = target.values if target.feature.is_numeric else np.searchsorted(self.classes_, target.values).astype(float)
        self.columns_ = Standardised.read(x, self.design_.names, self._has_constant)
        self.names_, self.aliased_ = self.columns_.names, self.columns_.aliased
        z = self.columns_.matrix(x)
        if not 0 < z.shape[1] < y.size:
            raise InputError(f"{self._where} has {z.shape[1]} coefficients and {y.size} rows. {REMEDY}")
        with quiet(self._where):
            self.results_ = fit_model(model(y, z, **options), dict(self.fit_options or {}))
        if target.feature.is_numeric and not hasattr(self._holder, "get_distribution"):
            raise InputError(f"{self._where} has no get_distribution, and so no predictive distribution.")
        check_fit(self.results_, self.names_, self._where)
        with quiet(self._where):
            self.params_, self.scale_ = self._parameters(z.shape[0] - z.shape[1])
            if target.feature.is_numeric:
                self._fit_twin(model, options, y, z)
        if self.aliased_:
            warn(
                f"{self._where} does not use the design column(s) {listing(self.aliased_)}, which others determine; "
                "leave them out by a formula or by predictors to avoid this warning."
            )

    @property
    def _holder(self) -> Any:
        """The model or the results, whichever has `get_distribution`."""
        return self.results_.model if hasattr(self.results_.model, "get_distribution") else self.results_

    @property
    def _has_constant(self) -> bool:
        return self.design_.has_intercept and self._law != "OrderedModel"  # whose thresholds are intercepts

    def _check_options(self, options: dict[str, Any], target: Column) -> None:
        """Raise if an option has one entry for each row, or the model is not one of these numbers or levels."""
        values = target.values
        for name, option in options.items():
            if np.ndim(option) > 0 and len(option) == values.size:
                raise InputError(
                    f"option {name!r} of {self._where} has one entry for each training row, and rows to draw have "
                    "none; leave it out, or use it as a column of the table."
                )
        allowed = {law: domain for domain, laws in DOMAINS.items() for law in laws}.get(self._law, "")
        wrong = {
            "": np.zeros(values.size, dtype=bool),
            "positive numbers": values <= 0.0,
            "whole numbers from 0": (values < 0.0) | (np.floor(values) != values),
            "numbers strictly between 0 and 1": (values <= 0.0) | (values >= 1.0),
        }[allowed]
        if wrong.any():
            raise InputError(
                f"{self._where} models {allowed}, and the column holds {values[wrong][0]:g} ({wrong.sum()} such of "
                f"{values.size} rows); use another sampler, or twopart if many rows share the least value."
            )
        if self._law in ("Logit", "Probit", "Binomial") and np.unique(values).size > 2:
            raise InputError(f"{self._where} models two levels, and the column has more; use MNLogit or polyreg.")

    def _parameters(self, degrees: int) -> tuple[Floats, float]:
        """Return parameters and scale for draws: the estimates, or drawn from their distribution."""
        estimate, scale = np.asarray(self.results_.params, dtype=np.float64), float(getattr(self.results_, "scale", 1))
        if not self.proper:
            return estimate, scale
        generator = self.generator()
        moved = cholesky(np.asarray(self.results_.cov_params())) @ generator.standard_normal(estimate.size)
        drawn = estimate + moved.reshape(estimate.shape, order="F")
        if "NegativeBinomial" in self._law:  # keep the dispersion positive
            drawn[-1] = estimate[-1] * np.exp(moved[-1] / estimate[-1])
        return drawn, scale if scale == 1.0 else scale * degrees / float(generator.chisquare(degrees))

    # ----------------------------------------------------------------------------------------------- one predictor

    def _fit_twin(self, model: Any, options: dict[str, Any], y: Floats, z: Floats) -> None:
        """Prepare the twin, whose only column is the linear predictor (steps 3 and 4)."""
        n_inflate, k = int(getattr(self.results_.model, "k_inflate", 0)), z.shape[1]
        if self._holder is self.results_:
            return
        before, slopes, after = np.split(self.params_, [n_inflate, n_inflate + k])
        self.coef_ = self.columns_.back @ slopes
        eta = z @ slopes
        rows = np.linspace(0, y.size - 1, min(y.size, CHECKED_ROWS)).astype(int)
        try:
            twin = model(y[rows], eta[rows, None], **options)
            self._twin_params = np.concatenate([before, [1.0], after])
            of_twin = ask(twin, self._twin_params, self.scale_, eta[rows, None])
            of_model = ask(self.results_.model, self.params_, self.scale_, z[rows])
            if not np.allclose(of_twin.cdf(y[rows]), of_model.cdf(y[rows]), rtol=1e-6, atol=1e-9):
                return
            predicted = np.asarray(twin.predict(self._twin_params, eta[rows, None]))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, np.linalg.LinAlgError):
            return
        self.twin_ = twin
        low, high = float(eta.min()), float(eta.max())
        width = high - low or 1.0
        self.reach_ = low - width, high + width
        if np.allclose(predicted, eta[rows]):
            self.reach_ = -np.inf, np.inf
        elif needs_positive(self.results_.model):
            self.reach_ = max(low - width, 0.5 * low), high + width

    def distribution(self, given: Table) -> Distribution:
        """Return the predictive distribution of each row."""
        if self.results_ is None:
            return constant_target(self.margin_, given.n_rows)
        if self.margin_.n_levels:
            return Levels(self.probabilities(given))
        with quiet(self._where):
            if self.twin_ is not None:
                has_intercept = self._has_constant
                intercept = self.coef_[:1] if has_intercept else np.zeros(1)
                eta = self.design_.predict(given, intercept, self.coef_[None, int(has_intercept) :])
                frozen = ask(self.twin_, self._twin_params, self.scale_, np.clip(eta, *self.reach_))
            else:
                z = self.columns_.matrix(self.design_.matrix(given))
                frozen = ask(self._holder, None if self._holder is self.results_ else self.params_, self.scale_, z)
        return from_scipy(frozen, given.n_rows, self.margin_)

    def probabilities(self, given: Table) -> Floats:
        """Return the probabilities of all levels; levels without training rows have probability 0."""
        z = self.columns_.matrix(self.design_.matrix(given))
        with quiet(self._where):
            predicted = np.clip(np.asarray(self.results_.model.predict(self.params_, z)), 0.0, 1.0)
        out = np.zeros((given.n_rows, self.margin_.n_levels))
        both = np.column_stack([1.0 - predicted, predicted]) if predicted.ndim == 1 else predicted
        out[:, self.classes_.astype(np.int64)] = both
        return out


@register_sampler("poisson")
def poisson(**parameters: Any) -> StatsmodelsSampler:
    """Return Poisson regression of counts with a log link; parameters are those of `StatsmodelsSampler`."""
    return StatsmodelsSampler("Poisson", **parameters)


@register_sampler("negbin")
def negbin(**parameters: Any) -> StatsmodelsSampler:
    """Return negative binomial regression of counts (R's `MASS::glm.nb`): log link, variance mu + alpha mu^2."""
    return StatsmodelsSampler("NegativeBinomial", **parameters)


@register_sampler("zip")
def zip_(**parameters: Any) -> StatsmodelsSampler:
    """Return zero-inflated Poisson regression of counts, with a constant share of excess zeros."""
    return StatsmodelsSampler("ZeroInflatedPoisson", **parameters)


@register_sampler("gamma")
def gamma(**parameters: Any) -> StatsmodelsSampler:
    """Return gamma regression of positive amounts with a log link: the standard deviation grows with the mean."""
    from statsmodels.genmod.families import Gamma, links

    return StatsmodelsSampler("GLM", options={"family": Gamma(links.Log())}, **parameters)


@register_sampler("beta")
def beta(**parameters: Any) -> StatsmodelsSampler:
    """Return beta regression of shares between 0 and 1 (R's `betareg`): logit link, one precision."""
    return StatsmodelsSampler("BetaModel", **parameters)


# -------------------------------------------------------------------------------------------------------------- fitting


def find_model(model: Any) -> Any:
    """Return the class of a model, given as class or name."""
    if isinstance(model, type):
        return model
    import importlib

    api = importlib.import_module("statsmodels.api")
    if isinstance(model, str) and model in ELSEWHERE:
        return getattr(importlib.import_module(ELSEWHERE[model]), model)
    named = getattr(api, model, None) if isinstance(model, str) else None
    if not isinstance(named, type):
        names = [name for name in dir(api) if hasattr(getattr(api, name), "get_distribution")]
        raise InputError(
            f"model of StatsmodelsSampler is {spell(model)}; give a class of statsmodels, as sm.GLM, or its name: "
            f"{did_you_mean(model, [*names, *ELSEWHERE])}"
        )
    return named


def fit_model(model: Any, fit_options: dict[str, Any]) -> Any:
    """Fit a model of statsmodels, by default to machine accuracy (step 2)."""
    from statsmodels.genmod.generalized_linear_model import GLM
    from statsmodels.regression.linear_model import RegressionModel

    if fit_options or isinstance(model, RegressionModel) or "method" not in inspect.signature(model.fit).parameters:
        return model.fit(**fit_options)
    if isinstance(model, GLM):
        return model.fit(tol=1e-10, tol_criterion="params", maxiter=200)
    first = model.fit(method="bfgs", maxiter=500, disp=0)
    start = np.asarray(first.params, dtype=np.float64).ravel(order="F")
    if "NegativeBinomial" in type(model).__name__ and start[-1] < LEAST_DISPERSION:
        return first  # Newton steps would leave the parameter space
    second = model.fit(start_params=start, method="newton", maxiter=50, disp=0)
    return second if second.llf >= first.llf else first


def check_fit(results: Any, names: Sequence[str], where: str) -> None:
    """Raise if a fit has not converged, or its likelihood has no maximum (step 2)."""
    model = results.model
    params = np.asarray(results.params, dtype=np.float64).ravel(order="F")
    if "NegativeBinomial" in type(model).__name__ and params[-1] < LEAST_DISPERSION:
        raise InputError(
            f"{where} has a likelihood without maximum: the counts vary no more than those of a Poisson distribution "
            f"(alpha below {LEAST_DISPERSION:g}); use poisson or quantile."
        )
    with quiet(where):
        covariance = _covariance(results, params.size)
        link = getattr(getattr(model, "family", model), "link", None)
        is_identity = not hasattr(model, "score") or type(link).__name__ == "Identity" or hasattr(model, "wexog")
    is_singular = not np.isfinite(covariance).all()
    errors = np.zeros(params.size) if is_singular else np.sqrt(np.maximum(np.diag(covariance), 0.0))
    errors[: int(getattr(model, "k_inflate", 0))] = 0.0  # there may be no excess zeros
    if not is_identity and np.isfinite(params).all() and (is_singular or errors.max() > LARGEST_ERROR):
        shown = [*names, *(f"parameter {k}" for k in range(len(names), params.size))]
        what = "a combination of columns" if is_singular else repr(shown[int(errors.argmax())])
        raise InputError(
            f"{where} has a likelihood without maximum: {what} separates the target, or the target varies less than "
            "the model allows (standard error above 100). Leave predictors out by a formula, or use a sampler that is "
            "robust to separation (logreg, polyreg, polr, twopart, cart)."
        )
    if not (np.isfinite(params).all() and _has_converged(results, params, covariance)):
        raise InputError(f"the fit of {where} has not converged. {REMEDY}")


def _covariance(results: Any, n_parameters: int) -> Floats:
    try:
        return np.asarray(results.cov_params(), dtype=np.float64)
    except (ValueError, AttributeError, np.linalg.LinAlgError):  # the information matrix is singular
        return np.full((n_parameters, n_parameters), np.nan)


def _has_converged(results: Any, params: Floats, covariance: Floats) -> bool:
    if hasattr(results, "converged") or not hasattr(results, "mle_retvals"):
        return bool(getattr(results, "converged", True))
    gradient = np.asarray(results.model.score(params)).ravel(order="F")
    return bool(gradient @ covariance @ gradient < DECREMENT)


def needs_positive(model: Any) -> bool:
    """Return whether the inverse link is defined for positive linear predictors only."""
    from statsmodels.genmod.families import links

    link = getattr(getattr(model, "family", model), "link", None)
    return isinstance(link, links.Power) and link.power != 1


@contextmanager
def quiet(where: str) -> Iterator[None]:
    """Suppress statsmodels' warnings, whose causes are checked, and name the column in its errors."""
    with _ALONE, np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except (ArithmeticError, AttributeError, TypeError, ValueError, RuntimeError, np.linalg.LinAlgError) as error:
            if isinstance(error, InputError):
                raise
            reason = " ".join(str(error).split()).rstrip(".")
            raise InputError(f"{where} cannot be fitted or evaluated: {reason}. {REMEDY}") from error


@dataclass(frozen=True)
class Standardised:
    """Standardised design columns without aliased ones (step 1); `back` transforms coefficients back."""

    centre: Floats
    scale: Floats
    kept: Ints
    has_constant: bool
    names: tuple[str, ...]
    aliased: tuple[str, ...]

    @classmethod
    def read(cls, x: Floats, names: Sequence[str], has_constant: bool) -> Standardised:
        """Find centres, scales and aliased columns of training rows; without a constant, columns are only scaled."""
        centre = x.mean(axis=0) if has_constant else np.zeros(x.shape[1])
        scale = np.sqrt(np.mean((x - centre) ** 2, axis=0))
        scale[scale == 0.0] = 1.0
        z = (x - centre) / scale
        basis = np.full((int(has_constant), len(x)), len(x) ** -0.5)
        kept = []
        for k, column in enumerate(z.T):
            residual = column
            for _ in range(2):  # twice, because of rounding
                residual = residual - (basis @ residual) @ basis
            length = float(np.linalg.norm(residual))
            if length > ALIASED * float(np.linalg.norm(column)):
                kept.append(k)
                basis = np.vstack([basis, residual / length])
        shown = (*["const"] * has_constant, *(names[k] for k in kept))
        aliased = tuple(name for k, name in enumerate(names) if k not in kept)
        return cls(centre, scale, np.array(kept, dtype=np.int64), has_constant, shown, aliased)

    def matrix(self, x: Floats) -> Floats:
        """Return the columns of some rows, a constant first if there is one."""
        z = ((x - self.centre) / self.scale)[:, self.kept]
        return np.column_stack([np.ones(len(x)), z]) if self.has_constant else z

    @property
    def back(self) -> Floats:
        """The matrix from coefficients of these columns to those of the design, intercept first."""
        first = int(self.has_constant)
        out = np.zeros((self.centre.size + first, self.kept.size + first))
        out[self.kept + first, np.arange(self.kept.size) + first] = 1.0 / self.scale[self.kept]
        if self.has_constant:
            out[0, 0], out[0, 1:] = 1.0, -(self.centre / self.scale)[self.kept]
        return out


# -------------------------------------------------------------------------------------------------------- distributions


def ask(holder: Any, params: Floats | None, scale: float, exog: Floats) -> Any:
    """Return the frozen distribution of some rows, of a model (with parameters) or of results (without)."""
    accepted = inspect.signature(holder.get_distribution).parameters
    ones = np.ones((len(exog), 1))
    possible = {"scale": scale, "exog": exog, "exog_precision": ones, "exog_infl": ones}
    if params is None:
        possible.pop("scale")
    arguments = {name: value for name, value in possible.items() if name in accepted}
    return holder.get_distribution(*([] if params is None else [params]), **arguments)


def from_scipy(frozen: Any, n_rows: int, margin: Margin) -> Distribution:
    """Return frozen distributions of scipy, one for each row, as plain arrays of parameters."""
    shapes, loc, scale = frozen.dist._parse_args(*frozen.args, **frozen.kwds)
    *shape, loc, scale = (np.broadcast_to(np.ravel(part), n_rows).astype(np.float64) for part in (*shapes, loc, scale))
    convert: dict[str, Callable[[], Distribution]] = {
        "norm": lambda: Continuous("normal", (loc, scale), margin),
        "gamma": lambda: Continuous("gamma", (*shape, scale), margin),
        "beta": lambda: Continuous("beta", tuple(shape), margin),
        "poisson": lambda: Continuous("poisson", tuple(shape), margin),
        "nbinom": lambda: Continuous(
            "negative binomial", (shape[0] * (1.0 - shape[1]) / shape[1], 1.0 / shape[0]), margin
        ),
        "zipoisson": lambda: Hurdle(shape[1], 0.0, Continuous("poisson", (shape[0],), margin)),
    }
    name = frozen.dist.name
    is_plain = name == "norm" or (not loc.any() and (name == "gamma" or bool((scale == 1.0).all())))
    if name in convert and is_plain:
        return convert[name]()
    law = Scipy(frozen.dist)
    return Continuous(law, (*shape, loc) if law.is_discrete else (*shape, loc, scale), margin)


# ------------------------------------------------------------------------------------------------------------ quantiles

QUANTILES: Floats = (np.arange(10, dtype=np.float64) + 0.5) / np.float64(10.0)
NARROWEST = 1e-6  # distance of two quantiles, in standard deviations of the target
MOST_ITERATIONS = 2_000


@dataclass(frozen=True, eq=False)
class QuantileGrid(Family):
    """Quantiles at the levels `QUANTILES`, linear in between, with exponential tails of the mean excesses `tails`.

    Parameter: (rows, levels) ascending quantiles.
    """

    tails: Floats

    @classmethod
    def fit(cls, knots: Floats, values: Floats, least: float) -> QuantileGrid:
        """Take the mean excesses of training values over their quantiles `knots`, and at least `least`."""
        beyond = knots[:, 0] - values, values - knots[:, -1]
        excess = [part[part > 0.0].mean() if (part > 0.0).any() else 0.0 for part in beyond]
        return cls(np.maximum(excess, least))

    def cdf(self, y: Floats, *parameters: Floats) -> Floats:
        (knots,) = parameters
        place, part = self._locate(y, knots)
        inner = QUANTILES[place] + part * 0.1
        below = QUANTILES[0] * np.exp(np.minimum(y - knots[:, 0], 0.0) / self.tails[0])
        above = 1.0 - (1.0 - QUANTILES[-1]) * np.exp(np.minimum(knots[:, -1] - y, 0.0) / self.tails[1])
        return np.where(y < knots[:, 0], below, np.where(y > knots[:, -1], above, inner))

    def ppf(self, u: Floats, *parameters: Floats) -> Floats:
        (knots,) = parameters
        rows, place = np.arange(u.size), np.clip(np.searchsorted(QUANTILES, u) - 1, 0, QUANTILES.size - 2)
        left, right = knots[rows, place], knots[rows, place + 1]
        inner = left + (u - QUANTILES[place]) / 0.1 * (right - left)
        with np.errstate(divide="ignore"):
            below = knots[:, 0] + self.tails[0] * np.log(np.minimum(u / QUANTILES[0], 1.0))
            above = knots[:, -1] - self.tails[1] * np.log(np.minimum((1.0 - u) / (1.0 - QUANTILES[-1]), 1.0))
        return np.where(u < QUANTILES[0], below, np.where(u > QUANTILES[-1], above, inner))

    def log_density(self, y: Floats, *parameters: Floats) -> Floats:
        (knots,) = parameters
        place, _ = self._locate(y, knots)
        rows = np.arange(y.size)
        inner = np.log(0.1 / (knots[rows, place + 1] - knots[rows, place]))
        below = np.log(QUANTILES[0] / self.tails[0]) + (y - knots[:, 0]) / self.tails[0]
        above = np.log((1.0 - QUANTILES[-1]) / self.tails[1]) - (y - knots[:, -1]) / self.tails[1]
        return np.where(y < knots[:, 0], below, np.where(y > knots[:, -1], above, inner))

    def _locate(self, y: Floats, knots: Floats) -> tuple[Ints, Floats]:
        """Return the interval between two quantiles of each value, and its relative position in it."""
        rows = np.arange(y.size)
        place = np.clip((knots <= y[:, None]).sum(axis=1) - 1, 0, QUANTILES.size - 2)
        left, right = knots[rows, place], knots[rows, place + 1]
        return place, np.clip((np.clip(y, left, right) - left) / (right - left), 0.0, 1.0)


@register_sampler("quantile")
class QuantileSampler(RegressionSampler):
    """Quantile regressions at ten levels: any shape, with a spread that may depend on the givens.

    1. Fit statsmodels' QuantReg at the levels 0.05, 0.15, ..., 0.95.
    2. Sort the quantiles of a row, so that they do not cross (Chernozhukov, Fernandez-Val and Galichon 2010).
    3. The distribution is uniform between them, with exponential tails whose means are those of the training rows.

    Parameters
    ----------
    formula, random_state : see `NormSampler`
    proper : bool
        Fit to a bootstrap sample of the training rows.

    Attributes
    ----------
    coef_ : (levels, columns + 1) coefficients, intercept first.
    aliased_ : names of the columns that others determine, whose coefficient is 0.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> X = loans.X[["age", "sex", "salary"]]
    >>> chain = mcce.ChainModel(sampler={"salary": "quantile", "*": "cart"}, fixed=["age"], random_state=1).fit(X)
    >>> chain.conditional("salary").coef_.shape
    (10, 3)
    """

    handles = frozenset({"numeric"})

    def fit_design(self, x: Floats, target: Column, given: Table) -> None:
        """Fit the quantile regressions (step 1)."""
        from statsmodels.regression.quantile_regression import QuantReg

        where = f"QuantReg of statsmodels for column {spell(target.feature.name)}"
        values = target.values
        if self.proper:
            rows = self.generator().integers(0, values.size, values.size)
            x, values = x[rows], values[rows]
        self.margin_ = Margin.fit(target.values, target.feature)
        spread = float(np.std(values))
        self.coef_ = np.zeros((QUANTILES.size, x.shape[1] + 1))
        self.coef_[:, 0] = values[0]
        self.family_, self.gap_ = QuantileGrid(np.ones(2)), 0.0
        columns = Standardised.read(x, self.design_.names, True)
        self.aliased_ = columns.aliased
        if spread == 0.0:
            return
        z = columns.matrix(x)
        for level, coef in zip(QUANTILES, self.coef_):
            with quiet(where):  # the tolerance of the stopping rule is absolute
                results = QuantReg(values / spread, z).fit(q=level, p_tol=1e-5, max_iter=MOST_ITERATIONS)
            if results.iterations >= MOST_ITERATIONS or not np.isfinite(results.params).all():
                raise InputError(f"the fit of {where} has not converged. Use fewer predictors or a shorter formula.")
            coef[:] = columns.back @ results.params * spread
        predicted = np.sort(self.coef_[:, 0] + x @ self.coef_[:, 1:].T, axis=1)
        self.family_, self.gap_ = QuantileGrid.fit(predicted, values, 1e-3 * spread), NARROWEST * spread

    def distribution(self, given: Table) -> Distribution:
        """Return the sorted quantiles of each row (steps 2 and 3)."""
        if self.gap_ == 0.0:
            return constant_target(self.margin_, given.n_rows)
        predicted = self.design_.predict(given, self.coef_[:, 0], self.coef_[:, 1:])
        steps = np.arange(QUANTILES.size) * self.gap_
        knots = np.maximum.accumulate(np.sort(predicted, axis=1) - steps, axis=1) + steps
        return Continuous(self.family_, (knots,), self.margin_)
