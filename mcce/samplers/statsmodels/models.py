"""The supported models of statsmodels: targets, fit and predictive distribution of each.

1. The design is centred and scaled, and the coefficients are transformed back. Without an intercept, columns are only
   scaled.
2. A column determined by the columns before it is aliased: it is dropped, as in R, and the caller reports it.
3. GLM, OLS and WLS use statsmodels' algorithms. Other models are fitted by BFGS from statsmodels' starting values, then
   by Newton's method to machine accuracy; `fit_options` replace both by one call.
4. A fit has converged if another Newton step would increase the log-likelihood by less than `DECREMENT`. A standard
   error above `LARGEST_ERROR` on the scale of the standardised columns indicates separation: the likelihood has no
   maximum in that direction.
"""

from __future__ import annotations

import itertools
import re
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
import scipy

from mcce.base.arrays import Floats, Ints
from mcce.exceptions import InputError, SamplerError, did_you_mean
from mcce.samplers.statsmodels.distributions import GeneralizedPoisson, RowDistribution, ZeroInflated

ALIASED = 1e-7  # relative residual norm of a column given the others: R's tolerance
LARGEST_ERROR = 100.0
DECREMENT = 1e-6
OVERDISPERSED = ("NegativeBinomial", "NegativeBinomialP", "ZeroInflatedNegativeBinomialP")
LEAST_ALPHA = 1e-4  # near 0, Newton steps leave the parameter space, where scipy's zeta() does not return
NUMBERS = {
    "any": "any numbers",
    "positive": "positive numbers",
    "counts": "whole numbers from 0",
    "shares": "numbers strictly between 0 and 1",
}
_ALONE = threading.Lock()  # statsmodels sets warning filters, which are shared by all threads


@dataclass(frozen=True)
class Model:
    """A class of statsmodels.

    Attributes
    ----------
    home : module of the class.
    kinds : kinds of target.
    numbers : the numbers it models, a key of `NUMBERS`.
    options : supported arguments of the constructor with their allowed values, the default first.
    extra : names of the parameters after the coefficients.
    takes_weights : whether rows may have weights.
    """

    module: str
    kinds: tuple[str, ...] = ("numeric",)
    numbers: str = "any"
    options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    takes_weights: bool = False


_DISCRETE, _COUNTS = "statsmodels.discrete.discrete_model", "statsmodels.discrete.count_model"
_LEVELS = ("categorical", "ordered")
_INFLATED = {"inflation": ("logit", "probit"), "exog_infl": ("constant", "givens")}
MODELS = {
    "GLM": Model("statsmodels.genmod.generalized_linear_model", takes_weights=True),
    "OLS": Model("statsmodels.regression.linear_model", takes_weights=True),
    "WLS": Model("statsmodels.regression.linear_model", takes_weights=True),
    "QuantReg": Model("statsmodels.regression.quantile_regression"),
    "Poisson": Model(_DISCRETE, numbers="counts"),
    "NegativeBinomial": Model(
        _DISCRETE, numbers="counts", options={"loglike_method": ("nb2", "nb1")}, extra=("alpha",)
    ),
    "NegativeBinomialP": Model(_DISCRETE, numbers="counts", options={"p": (2, 1)}, extra=("alpha",)),
    "GeneralizedPoisson": Model(_DISCRETE, numbers="counts", options={"p": (1, 2)}, extra=("alpha",)),
    "ZeroInflatedPoisson": Model(_COUNTS, numbers="counts", options=_INFLATED),
    "ZeroInflatedNegativeBinomialP": Model(
        _COUNTS, numbers="counts", options={**_INFLATED, "p": (2, 1)}, extra=("alpha",)
    ),
    "ZeroInflatedGeneralizedPoisson": Model(
        _COUNTS, numbers="counts", options={**_INFLATED, "p": (2, 1)}, extra=("alpha",)
    ),
    "BetaModel": Model("statsmodels.othermod.betareg", numbers="shares", extra=("log precision",)),
    "Logit": Model(_DISCRETE, _LEVELS),
    "Probit": Model(_DISCRETE, _LEVELS),
    "MNLogit": Model(_DISCRETE, _LEVELS),
    "OrderedModel": Model("statsmodels.miscmodels.ordinal_model", ("ordered",), options={"distr": ("logit", "probit")}),
}
_REASONS = {
    "RLM": "a robust regression has no distribution",
    "PHReg": "censored times are not a column of a table",
    "MixedLM": "groups are not a column of the design",
    "GEE": "estimating equations have no distribution",
    "GLSAR": "rows of a table have no order in time",
    "GLS": "rows of a table are independent",
}
FAMILIES = {
    "Gaussian": "any",
    "Gamma": "positive",
    "InverseGaussian": "positive",
    "Poisson": "counts",
    "NegativeBinomial": "counts",
    "Binomial": "levels",
}
_LINKS = ("Identity", "Log", "Logit", "Probit", "Cauchy", "CLogLog", "LogLog", "InversePower", "InverseSquared", "Sqrt")


def name_of_model(model: Any) -> str:
    """Return the name of a model, given as class or text; raise with the reason if it is not supported."""
    name = model if isinstance(model, str) else getattr(model, "__name__", "")
    if not isinstance(model, str | type) or (
        isinstance(model, type) and not model.__module__.startswith("statsmodels.")
    ):
        raise InputError(f"model is {model!r}; give a class of statsmodels, as sm.GLM, or its name.")
    if name not in MODELS:
        reason = _REASONS.get(name, "its predictive distribution is not implemented")
        raise SamplerError(f"statsmodels' {name} cannot be a conditional: {reason}; {did_you_mean(name, MODELS)}")
    return name


def text_of_family(family: Any) -> str:
    """Return a family of GLM as text, as in "Gamma(Log)" or "NegativeBinomial(Log, 0.5)"."""
    if isinstance(family, type):
        family = family()
    if family is None:
        return "Gaussian(Identity)"
    if isinstance(family, str):
        return family
    alpha = f", {float(family.alpha)!r}" if type(family).__name__ == "NegativeBinomial" else ""
    return f"{type(family).__name__}({type(getattr(family, 'link', None)).__name__}{alpha})"


def read_family(text: str) -> tuple[str, str | None, float | None]:
    """Parse a family, its link and alpha from text."""
    found = re.fullmatch(r"(\w+)(?:\((\w+)(?:, ([\d.e+-]+))?\))?", text)
    if found is None or found[1] not in FAMILIES or found[2] not in (None, *_LINKS):
        raise InputError(
            f"family of GLM is {text!r}; it must be one of {', '.join(FAMILIES)}, with a link of {', '.join(_LINKS)}, "
            'as "Gamma(Log)".'
        )
    return found[1], found[2], None if found[3] is None else float(found[3])


def make_family(text: str) -> Any:
    """Return the family of statsmodels described by a text."""
    name, link, alpha = read_family(text)
    made = getattr(import_module("statsmodels.genmod.families"), name)(**({} if alpha is None else {"alpha": alpha}))
    if link is not None:
        made.link = getattr(import_module("statsmodels.genmod.families.links"), link)()
    return made


@dataclass(frozen=True)
class Specification:
    """A model with its options as plain values."""

    name: str
    options: Mapping[str, Any]

    @classmethod
    def read(cls, model: Any, options: Mapping[str, Any]) -> Specification:
        """Read the model and the options of its constructor; raise if they are not supported."""
        name = name_of_model(model)
        known = MODELS[name].options
        plain: dict[str, Any] = {each: values[0] for each, values in known.items()}
        for each, value in options.items():
            if name == "GLM" and each == "family":
                plain["family"] = text_of_family(value)
                read_family(plain["family"])
            elif each not in known:
                may = ["family"] if name == "GLM" else list(known)
                raise InputError(
                    f"{each!r} is not an option of {name} here; "
                    + (did_you_mean(each, may) if may else "the model has none.")
                    + " Arrays with one entry per row, such as offsets, are not supported."
                )
            elif not any(type(value) is type(one) and value == one for one in known[each]):
                raise InputError(f"{each} of {name} is {value!r}; it must be {' or '.join(map(repr, known[each]))}.")
            else:
                plain[each] = value
        if name == "GLM":
            plain.setdefault("family", "Gaussian(Identity)")
        return cls(name, plain)

    @property
    def model(self) -> Model:
        """The entry of `MODELS`."""
        return MODELS[self.name]

    @property
    def family(self) -> str:
        """The family of a GLM."""
        return str(self.options.get("family", "")).partition("(")[0]

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of target."""
        return frozenset(_LEVELS if self.family == "Binomial" else self.model.kinds)

    @property
    def numbers(self) -> str:
        """The numbers it models, a key of `NUMBERS`."""
        return FAMILIES.get(self.family, self.model.numbers) if self.name == "GLM" else self.model.numbers

    @property
    def takes_weights(self) -> bool:
        """Whether rows may have weights."""
        return self.model.takes_weights

    @property
    def is_inflated(self) -> bool:
        """Whether the model is zero-inflated."""
        return self.name.startswith("ZeroInflated")

    @property
    def needs_two(self) -> bool:
        """Whether the target must have two levels."""
        return self.name in ("Logit", "Probit") or self.family == "Binomial"

    def distribution(self, eta: Floats, extra: Floats, scale: float) -> RowDistribution:
        """Return the distribution of each row's number for given linear predictors."""
        from scipy import stats

        if self.name == "GLM":
            family = make_family(self.options["family"])
            mean = np.asarray(family.link.inverse(eta[:, 0]))
            made = family.get_distribution(mean, *([] if self.numbers == "counts" else [scale]))
            return RowDistribution(made, self.numbers == "counts")
        if self.name in ("OLS", "WLS"):
            return RowDistribution(stats.norm(eta[:, 0], np.sqrt(scale)))
        if self.name == "BetaModel":
            mean, precision = scipy.special.expit(eta[:, 0]), float(np.exp(extra[0]))
            return RowDistribution(stats.beta(mean * precision, (1.0 - mean) * precision))
        mean = np.exp(eta[:, -1])
        counts: Any
        if self.name.endswith("GeneralizedPoisson"):
            counts = GeneralizedPoisson(mean, float(extra[0]), self.options["p"])
        elif "NegativeBinomial" in self.name:
            is_first = self.options.get("p") == 1 or self.options.get("loglike_method") == "nb1"
            size = mean ** float(is_first) / extra[0]
            counts = stats.nbinom(size, size / (size + mean))
        else:
            counts = stats.poisson(mean)
        if self.is_inflated:
            inverse = scipy.special.expit if self.options["inflation"] == "logit" else scipy.special.ndtr
            counts = ZeroInflated(counts, inverse(eta[:, 0]))
        return RowDistribution(counts, is_count=True)

    def probabilities(self, eta: Floats, extra: Floats) -> Floats:
        """Return the probabilities of the observed levels for given linear predictors."""
        if self.name == "MNLogit":
            full = np.column_stack([np.zeros(eta.shape[0]), eta])
            return np.asarray(scipy.special.softmax(full, axis=1))
        if self.name == "OrderedModel":
            inverse = scipy.special.expit if self.options["distr"] == "logit" else scipy.special.ndtr
            upto = inverse(extra - eta[:, :1])
            return np.diff(np.column_stack([np.zeros(eta.shape[0]), upto, np.ones(eta.shape[0])]), axis=1)
        if self.name == "GLM":
            second = np.asarray(make_family(self.options["family"]).link.inverse(eta[:, 0]))
        else:
            second = (scipy.special.expit if self.name == "Logit" else scipy.special.ndtr)(eta[:, 0])
        return np.column_stack([1.0 - second, second])

    @property
    def is_identity(self) -> bool:
        """Whether the link is the identity; standard errors are then in units of the target."""
        return self.name in ("OLS", "WLS", "QuantReg") or self.options.get("family", "").endswith("(Identity)")

    @property
    def needs_positive(self) -> bool:
        """Whether linear predictors must be positive."""
        return any(each in self.options.get("family", "") for each in ("Inverse", "Sqrt")) or (
            self.family in ("Gamma", "InverseGaussian") and "(" not in self.options["family"]
        )


@dataclass(frozen=True)
class Fit:
    """A fitted model, on the scale of the design columns.

    Attributes
    ----------
    estimate, covariance, names : of all parameters: coefficients by equation, intercept first; then the others.
    places : position of each parameter in ``coef.ravel()``; -1 for other parameters.
    n_equations : int
    scale : dispersion of GLM, residual variance of OLS; else 1.
    log_likelihood : float
    degrees_of_freedom : number of rows, or sum of their weights, less the number of coefficients.
    aliased : names of the aliased columns.
    """

    estimate: Floats
    covariance: Floats
    names: tuple[str, ...]
    places: Ints
    n_equations: int
    scale: float
    log_likelihood: float
    degrees_of_freedom: float
    aliased: tuple[str, ...]


@dataclass(frozen=True)
class _Standardised:
    """A standardised design without aliased columns, and the matrix that transforms coefficients back."""

    z: Floats
    back: Floats
    kept: Ints
    intercept: bool
    names: list[str]
    aliased: tuple[str, ...]

    @classmethod
    def read(cls, x: Floats, names: Sequence[str], intercept: bool) -> _Standardised:
        """Standardise (step 1) and drop aliased columns (step 2)."""
        centre = x.mean(axis=0) if intercept else np.zeros(x.shape[1])
        largest = np.abs(x - centre).max(axis=0, initial=0.0)
        largest[largest == 0.0] = 1.0  # scale before squaring, to avoid overflow
        scale = largest * np.sqrt(np.mean(((x - centre) / largest) ** 2, axis=0))
        scale[scale == 0.0] = 1.0
        z = (x - centre) / scale
        basis = np.full((int(intercept), x.shape[0]), x.shape[0] ** -0.5)
        kept = []
        for k, column in enumerate(z.T):
            left = column
            for _ in range(2):  # twice, because of rounding
                left = left - (basis @ left) @ basis
            length = float(np.linalg.norm(left))
            if length > ALIASED * float(np.linalg.norm(column)):
                kept.append(k)
                basis = np.vstack([basis, left / length])
        chosen = np.array(kept, dtype=np.int64)
        z, back = z[:, chosen], np.diag(1.0 / scale[chosen])
        if intercept:
            z = np.column_stack([np.ones(x.shape[0]), z])
            back = scipy.linalg.block_diag(np.ones((1, 1)), back)
            back[0, 1:] = -(centre / scale)[chosen]
        shown = ["const"] * intercept + [names[k] for k in chosen]
        return cls(z, back, chosen, intercept, shown, tuple(name for k, name in enumerate(names) if k not in kept))


def fit_model(
    specification: Specification,
    x: Floats,
    y: Floats,
    *,
    names: Sequence[str],
    intercept: bool = True,
    weights: Floats | None = None,
    options: Mapping[str, Any] | None = None,
    levels: Sequence[str] = (),
) -> Fit:
    """Fit a model to a design without intercept column and a target: numbers, or codes 0, 1, ... of `levels`.

    Raises
    ------
    SamplerError
        If the model cannot be fitted, has not converged or is separated; with the reason and a remedy.
    """
    design = _Standardised.read(x, names, intercept)
    n, k = design.z.shape
    if not 0 < k < n:
        raise SamplerError(f"there are {k} coefficients and {n} rows; use a formula with fewer, but at least one.")
    params, covariance, scale, log_likelihood, converged = _quietly(
        lambda: _fit(specification, design.z, y, weights, dict(options or {}))
    )
    blocks, extra = _blocks(specification, design, levels)
    carry = scipy.linalg.block_diag(*(each.back for each in blocks), np.eye(len(extra)))
    if specification.name == "OrderedModel":  # centring the columns shifts the thresholds
        carry[k - 1 :, : k - 1] = -design.back[0, 1:]
    found = [f"{each.prefix}{name}" for each in blocks for name in each.names] + extra
    _check(specification, params, covariance, converged, found)
    places = [equation * (x.shape[1] + 1) + each.columns for equation, each in enumerate(blocks)]
    return Fit(
        carry @ params,
        carry @ covariance @ carry.T,
        tuple(found),
        np.concatenate([*places, np.full(len(extra), -1, dtype=np.int64)]),
        len(blocks),
        scale,
        log_likelihood,
        float((n if weights is None else weights.sum()) - k),
        design.aliased,
    )


@dataclass(frozen=True)
class _Equation:
    """The coefficients of one linear predictor: their back-transformation, names and columns."""

    back: Floats
    prefix: str
    names: list[str]
    columns: Ints


def _blocks(
    specification: Specification, design: _Standardised, levels: Sequence[str]
) -> tuple[list[_Equation], list[str]]:
    """Return the equations of a model, and the names of its other parameters."""
    columns = np.append(0, design.kept + 1) if design.intercept else design.kept + 1
    if specification.name == "MNLogit":
        return [_Equation(design.back, f"{level}: ", design.names, columns) for level in levels[1:]], []
    if specification.name == "OrderedModel":
        thresholds = [f"{a} | {b}" for a, b in itertools.pairwise(levels)]
        return [_Equation(design.back[1:, 1:], "", design.names[1:], columns[1:])], thresholds
    equations = [_Equation(design.back, "", design.names, columns)]
    if specification.is_inflated and specification.options["exog_infl"] == "givens":
        equations.insert(0, replace(equations[0], prefix="inflate "))
    elif specification.is_inflated:
        equations.insert(0, _Equation(np.ones((1, 1)), "inflate ", ["const"], np.zeros(1, dtype=np.int64)))
    return equations, list(specification.model.extra)


_Raw = tuple[Floats, Floats, float, float, bool]


def _quietly(fit: Callable[[], _Raw]) -> _Raw:
    """Fit a model without warnings of statsmodels, whose causes are checked afterwards; reissue other warnings."""
    remedy = "Use fewer predictors or a shorter formula, or give fit_options for its optimiser (method=, maxiter=)."
    with _ALONE, np.errstate(all="ignore"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = fit()
        except (ArithmeticError, TypeError, ValueError, np.linalg.LinAlgError) as error:
            reason = str(error).strip().rstrip(".")
            raise SamplerError(f"statsmodels could not fit it: {reason}. {remedy}") from error
    for each in caught:
        if "statsmodels" not in each.category.__module__ and not issubclass(each.category, RuntimeWarning):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return found


def _fit(specification: Specification, z: Floats, y: Floats, weights: Floats | None, options: dict[str, Any]) -> _Raw:
    """Return parameters, their covariance, scale, log-likelihood and convergence (step 3)."""
    name = specification.name
    cls = getattr(import_module(MODELS[name].module), name)
    if name == "GLM":
        family = make_family(specification.options["family"])
        result = cls(y, z, family=family, freq_weights=weights).fit(
            **{"tol": 1e-10, "tol_criterion": "params", "maxiter": 200, **options}
        )
        return (*_estimated(result), float(result.scale), float(result.llf), bool(result.converged))
    if name in ("OLS", "WLS"):
        result = import_module(MODELS["WLS"].module).WLS(y, z, 1.0 if weights is None else weights).fit(**options)
        counts = np.ones(y.size) if weights is None else weights
        scale = float((counts * result.resid**2).sum() / (counts.sum() - z.shape[1]))
        covariance = scale * np.asarray(result.normalized_cov_params)
        return np.asarray(result.params), covariance, scale, float(result.llf), True
    made = dict(specification.options)
    if name == "OrderedModel":
        z = z[:, 1:]
        if not z.shape[1]:  # statsmodels needs columns; the thresholds have a closed form
            return _thresholds_alone(y, made["distr"])
    if made.pop("exog_infl", None) == "givens":
        made["exog_infl"] = z
    model = cls(y, z, **made)
    if options:
        result = model.fit(**{"disp": 0, **options})
    else:
        bounds = [(None, None)] * (model.exog.shape[1] + getattr(model, "k_inflate", 0)) + [(1e-6, None)]
        first = {"method": "lbfgs", "bounds": bounds} if name == "ZeroInflatedNegativeBinomialP" else {"method": "bfgs"}
        result = model.fit(**first, maxiter=500, disp=0, warn_convergence=False)
        start = np.asarray(result.params, dtype=np.float64)
        start = start.ravel(order="F") if name == "MNLogit" else start
        if name in OVERDISPERSED and start[-1] < LEAST_ALPHA:
            return start, np.full((start.size, start.size), np.nan), 1.0, float(result.llf), False
        polished = model.fit(start_params=start, method="newton", maxiter=50, disp=0, warn_convergence=False)
        result = polished if polished.llf >= result.llf else result
    params, covariance = _estimated(result)
    gradient = np.asarray(model.score(params))
    converged = bool(gradient @ covariance @ gradient < DECREMENT)
    if name == "OrderedModel":  # statsmodels' thresholds are increments
        increments = params[z.shape[1] :]
        jacobian = np.tril(np.tile(np.append(1.0, np.exp(increments[1:])), (increments.size, 1)))
        natural = scipy.linalg.block_diag(np.eye(z.shape[1]), jacobian)
        params = np.append(params[: z.shape[1]], model.transform_threshold_params(params)[1:-1])
        covariance = natural @ covariance @ natural.T
    return params, covariance, 1.0, float(result.llf), converged


def _estimated(result: Any) -> tuple[Floats, Floats]:
    params = np.asarray(result.params, dtype=np.float64).ravel(order="F")
    try:
        return params, np.asarray(result.cov_params(), dtype=np.float64)
    except ValueError:  # the information matrix is singular
        return params, np.full((params.size, params.size), np.nan)


def _thresholds_alone(y: Floats, distr: str) -> _Raw:
    """Return the thresholds of an ordered model without columns: quantiles at the cumulative shares."""
    counts = np.bincount(y.astype(np.int64))
    shares = np.cumsum(counts)[:-1] / y.size
    inverse = scipy.special.logit if distr == "logit" else scipy.special.ndtri
    thresholds = np.asarray(inverse(shares))
    density = shares * (1.0 - shares) if distr == "logit" else np.exp(-0.5 * thresholds**2) / np.sqrt(2.0 * np.pi)
    among = np.minimum.outer(shares, shares) - np.outer(shares, shares)
    covariance = among / np.outer(density, density) / y.size
    return thresholds, covariance, 1.0, float((counts * np.log(counts / y.size)).sum()), True


def _check(
    specification: Specification, params: Floats, covariance: Floats, converged: bool, names: Sequence[str]
) -> None:
    """Raise if a fit is invalid (step 4)."""
    is_finite = bool(np.isfinite(params).all())
    if specification.name in OVERDISPERSED and params[-1] < LEAST_ALPHA:
        raise SamplerError(
            f"the likelihood of statsmodels' {specification.name} has no maximum: the counts vary no more than those "
            f"of a Poisson distribution (alpha below {LEAST_ALPHA:g}); use poisson or quantile."
        )
    singular = not np.isfinite(covariance).all()
    errors = np.zeros(len(names)) if singular else np.sqrt(np.maximum(np.diag(covariance), 0.0))
    errors = np.where([name == "inflate const" for name in names], 0.0, errors)  # there may be no excess zeros
    if not specification.is_identity and is_finite and (singular or errors.max() > LARGEST_ERROR):
        what = "a combination of columns" if singular else repr(names[int(errors.argmax())])
        raise SamplerError(
            f"the likelihood of statsmodels' {specification.name} has no maximum: {what} separates the target, or the "
            "target varies less than the model allows (standard error above 100). Leave predictors out by a formula, "
            "or use a model with fewer parameters (poisson), or a sampler that is robust to separation (logreg, "
            "polyreg, polr, twopart, cart)."
        )
    if not (converged and is_finite):
        raise SamplerError(
            f"the fit of statsmodels' {specification.name} has not converged; use fewer predictors, a shorter formula, "
            "or give fit_options for its optimiser, as fit_options={'method': 'lbfgs', 'maxiter': 2000}."
        )


def fit_quantiles(
    x: Floats, y: Floats, levels: Floats, *, names: Sequence[str], intercept: bool = True, options: Mapping[str, Any]
) -> tuple[Floats, tuple[str, ...]]:
    """Return the coefficients of statsmodels' QuantReg at some levels, intercept first, and the aliased columns."""
    design = _Standardised.read(x, names, intercept)
    n, k = design.z.shape
    if not 0 < k < n:
        raise SamplerError(f"there are {k} coefficients and {n} rows; use a formula with fewer, but at least one.")
    coef = np.zeros((levels.size, x.shape[1] + 1))
    columns = np.append(0, design.kept + 1) if intercept else design.kept + 1
    width = float(np.std(y)) or 1.0  # the tolerance of the stopping rule is absolute
    for row, level in enumerate(levels):

        def fit(level: float = float(level)) -> _Raw:
            cls = import_module(MODELS["QuantReg"].module).QuantReg
            result = cls(y / width, design.z).fit(q=level, **{"p_tol": 1e-5, "max_iter": 2000, **options})
            return np.asarray(result.params), np.zeros((k, k)), 1.0, 0.0, result.iterations < 2000

        params, covariance, _, _, converged = _quietly(fit)
        _check(Specification("QuantReg", {}), params, covariance, converged, design.names)
        coef[row, columns] = design.back @ params * width
    return coef, design.aliased
