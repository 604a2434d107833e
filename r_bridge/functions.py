"""R functions as conditionals: models in R that return probabilities, quantiles or draws; mice and synthpop.

`mcce.rcompat.conditional` draws from the values that R returns, and checks them; this module calls R, in the session of
`r_bridge.session`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats
from mcce.exceptions import InputError, SamplerError, listing
from mcce.rcompat.conditional import LEVELS, N_QUANTILES, NUMBERS, QUESTIONS, RConditional
from mcce.samplers.base import ConditionalSampler
from mcce.samplers.parametric.design import Design, augmented
from mcce.samplers.parametric.glm import Multinomial, fit_multinomial, log_softmax
from mcce.table import KINDS, Column, Table
from r_bridge.errors import RBridgeError
from r_bridge.frames import to_r
from r_bridge.session import HoldsR, session

Self = TypeVar("Self", bound="NamedMethod")


@dataclass(frozen=True)
class LearntInR(HoldsR):
    """A model fitted in R, the functions to query it, and the levels of the training rows."""

    functions: Mapping[str, Any]
    model: Any
    levels: list[str]


class RSampler(HoldsR, RConditional):
    """A conditional whose model is fitted and queried by functions of R.

    Parameters
    ----------
    learn : R function or str
        ``function(x, y)``: fits a model of the vector y on the data.frame x and returns it. All functions are given as
        R code, or as functions that rpy2 holds.
    probs : R function or str, optional
        ``function(object, newdata)``: the probabilities of the levels, one column for each level; named columns are
        matched by name. Like many `predict` methods, it may return a vector: for two levels the probabilities of the
        second, for one row those of all levels.
    quantiles : R function or str, optional
        ``function(object, newdata, p)``: the quantiles of a number, one column for each level in p.
    draw : R function or str, optional
        ``function(object, newdata, u)``: one value for each row, computed from the uniform number u of the row; with
        `own_rng`, ``function(object, newdata)`` of one row. Exactly one of `probs`, `quantiles` and `draw` is given.
    own_rng : bool
        Whether `draw` uses R's generator (`rnorm`, `sample`). It is then called for each row alone, after `set.seed`
        from the stream of the row: slow, 0.1 to 50 ms per row.
    kinds : collection of str, optional
        Kinds of target ("numeric", "categorical", "ordered") that the functions can draw; by default levels for
        `probs`, numbers for `quantiles`, both for `draw`. A target of another kind raises an error.
    n_quantiles : int
        Number of levels that `quantiles` is called with.
    random_state : int or None
        Seed of R's generator in `learn`, together with the chain's; None for a fresh one.

    Notes
    -----
    R has one thread, so a chain with such a sampler uses one; calls from other threads raise an error. With
    `quantiles`, `learn` is called six times. A model in R cannot be stored with an explainer; refit where it is needed.

    Examples
    --------
    >>> import mcce, r_bridge
    >>> air = mcce.datasets.load_airquality(dropna=True)
    >>> temperature = r_bridge.RSampler(
    ...     learn="function(x, y) lm(y ~ ., cbind(x, y = y))",
    ...     draw="function(object, newdata, u) predict(object, newdata) + sigma(object) * qnorm(u)",
    ... )
    >>> chain = mcce.ChainModel(sampler={"Temp": temperature, "*": "cart"}, fixed=["Month"], random_state=1).fit(air.X)
    >>> chain.sample(given=air.X[["Month"]].head(2), n=3).shape
    (6, 5)
    """

    maker = "RSampler"
    unstorable = (
        "it holds an object of R, which cannot be written as arrays and JSON: it may hold code. Fit again where it is "
        "needed, or use a sampler of mcce."
    )
    whole_parameters = ("learn", "probs", "quantiles", "draw")

    def __init__(
        self,
        learn: Any,
        *,
        probs: Any = None,
        quantiles: Any = None,
        draw: Any = None,
        own_rng: bool = False,
        kinds: Collection[str] | None = None,
        n_quantiles: int = N_QUANTILES,
        random_state: int | None = 0,
    ) -> None:
        self.learn = learn
        self.probs = probs
        self.quantiles = quantiles
        self.draw = draw
        self.own_rng = own_rng
        self.kinds = kinds
        self.n_quantiles = n_quantiles
        self.random_state = random_state

    @property
    def handles(self) -> frozenset[str]:  # type: ignore[override]
        """Return the kinds of target that the functions can draw."""
        can = super().handles
        return can if not isinstance(self.kinds, Collection) else can & frozenset(self.kinds)

    def question(self) -> str:
        """Return which function is given in addition to `learn`."""
        return (self._given() or ["draw"])[0]

    def learn_in_r(self, x: pd.DataFrame, y: pd.Series[Any], seed: int) -> Any:
        """Return R's model, with its functions and the levels of y."""
        functions = self._functions()
        column = next(iter(to_r(y.to_frame())))
        model = self._call("learn", "learn_conditional", functions["learn"], to_r(x), column, seed)
        levels = list(y.cat.categories) if isinstance(y.dtype, pd.CategoricalDtype) else []
        return LearntInR(functions, model, levels)

    def query_r(self, question: str, learned: LearntInR, newdata: pd.DataFrame, numbers: Floats, seed: int) -> Floats:
        """Return R's values for the rows."""
        arguments = (question, learned.functions, learned.model, to_r(newdata), learned.levels, numbers, seed)
        answer = self._call("draw" if question == "own_draw" else question, "query_conditional", *arguments)
        return session().numbers(answer)

    def check_parameters(self) -> None:
        """Raise unless exactly one of `QUESTIONS` is given, and if it cannot draw one of `kinds`."""
        given = self._given()
        if len(given) != 1:
            raise InputError(
                f"{self.maker} got {listing(given) if given else 'none of probs, quantiles and draw'}; give exactly "
                "one of probs=, quantiles= and draw=."
            )
        super().check_parameters()
        if self.kinds is not None and (
            not isinstance(self.kinds, Collection) or isinstance(self.kinds, str) or not self.handles
        ):
            raise InputError(
                f"kinds of {self.maker} is {self.kinds!r}; give some of {listing(KINDS)} that {given[0]}= can draw, as "
                'in kinds=["numeric"].'
            )

    def _call(self, function: str, *call: Any) -> Any:
        """Return the value of an R function; an error names the feature and the function."""
        try:
            return session().call(*call)
        except RBridgeError as error:
            raise RBridgeError(f"feature {self.target_}: {function} of {self.maker} failed. {error}") from error

    def _given(self) -> list[str]:
        return [name for name in QUESTIONS if getattr(self, name) is not None]

    def _functions(self) -> dict[str, Any]:
        """Return the functions of R by name."""
        given = {name: getattr(self, name) for name in self.whole_parameters if getattr(self, name) is not None}
        return {name: _as_function(function, name, self) for name, function in given.items()}


@dataclass(frozen=True)
class RMethod:
    """A method of an R package: the kinds it draws, the packages it needs, and the form of its rows."""

    handles: frozenset[str]
    package: str | None = None
    two_levels: bool = False
    takes_contrasts: bool = True  # whether levels are passed as contrasts, else as factors


@dataclass(frozen=True)
class MissingTarget:
    """A logistic regression of whether the target is missing (`mcce.samplers.parametric.regression`)."""

    design: Design
    model: Multinomial

    @classmethod
    def learn(cls, given: Table, is_missing: Bools) -> MissingTarget:
        """Fit the regression to training rows with and without missing targets."""
        design = Design.read(given, keep_constants=False)
        return cls(design, fit_multinomial(augmented(design.matrix(given), is_missing.astype(np.int64), 2), 2))

    def probability(self, given: Table) -> Floats:
        """Return the probability that the target is missing, for each row."""
        log_odds = self.design.predict(given, self.model.intercept, self.model.coef)
        return np.exp(log_softmax(log_odds))[:, 1]


class NamedMethod(RSampler):
    """A conditional that draws by a named method of an R package, row by row from the stream of the row."""

    package: str
    methods: Mapping[str, RMethod]
    handles_missing = True
    probs = quantiles = kinds = None
    learn = draw = "named"
    own_rng = True
    n_quantiles = N_QUANTILES
    random_state = 0

    def __init__(self, method: str, *, options: Mapping[str, Any] | None = None) -> None:
        self.method = method
        self.options = options

    @property
    def handles(self) -> frozenset[str]:  # type: ignore[override]
        """Return the kinds of target that the method draws."""
        known = isinstance(self.method, str) and self.method in self.methods
        return self.methods[self.method].handles if known else frozenset(KINDS)

    def _functions(self) -> dict[str, Any]:
        r = session()
        for package in (self.package, self.methods[self.method].package):
            if package is not None:
                r.need(package, f"{self.maker}({self.method!r})")
        return r.parts(self._named_functions(dict(self.options or {})))

    def _named_functions(self, options: dict[str, Any]) -> Any:
        """Return the functions of R that fit and draw by the method."""
        raise NotImplementedError

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Fit R's method to the rows with a known target, and a regression of whether it is missing."""
        self.check_parameters()
        is_missing = np.isnan(target.values)
        known = np.flatnonzero(~is_missing)
        n_levels = 0 if target.feature.is_numeric else np.unique(target.values[known]).size
        if self.methods[self.method].two_levels and n_levels > 2:
            raise SamplerError(
                f"{self!r} cannot model {target.feature.name!r}: it has {n_levels} levels, and the method needs two. "
                "Use polyreg or polr."
            )
        if not is_missing.any() or not given.features or np.unique(target.values[known]).size < 2:
            return super().fit(given, target)
        super().fit(given.take(known), target.take(known))
        self.missing_ = MissingTarget.learn(given, is_missing)
        return self

    def _draw_by(self, given: Table, uniform: Floats) -> Floats:
        """Return NaN where the uniform number is below the probability of it; else draw by the rescaled number."""
        if not hasattr(self, "missing_"):
            return super()._draw_by(given, uniform)
        chance = self.missing_.probability(given)
        drawn, known = np.full(given.n_rows, np.nan), np.flatnonzero(uniform >= chance)
        rest = (uniform[known] - chance[known]) / (1.0 - chance[known])
        drawn[known] = super()._draw_by(given.take(known), rest)
        return drawn

    def check_parameters(self) -> None:
        """Raise if the method is not a tested one, or if the options are not named."""
        if not isinstance(self.method, str) or self.method not in self.methods:
            raise InputError(f"method of {self.maker} is {self.method!r}; allowed: {listing(self.methods)}.")
        if self.options is not None and not isinstance(self.options, Mapping):
            raise InputError(f"options of {self.maker} is {self.options!r}; give arguments of the method by name.")


MICE_METHODS = {
    "norm": RMethod(NUMBERS),
    "norm.nob": RMethod(NUMBERS),
    "norm.boot": RMethod(NUMBERS),
    "pmm": RMethod(NUMBERS),
    "midastouch": RMethod(NUMBERS),
    "logreg": RMethod(LEVELS, two_levels=True),
    "logreg.boot": RMethod(LEVELS, two_levels=True),
    "polyreg": RMethod(LEVELS, "nnet"),
    "polr": RMethod(LEVELS, "MASS"),
    "lda": RMethod(LEVELS, "MASS"),
    "cart": RMethod(NUMBERS | LEVELS, "rpart"),
    "rf": RMethod(NUMBERS | LEVELS, "ranger"),
}  # tested methods; others of mice are deterministic, for several columns, or for grouped rows

SYNTHPOP_METHODS = {
    "norm": RMethod(NUMBERS),
    "normrank": RMethod(NUMBERS),
    "lognorm": RMethod(NUMBERS),
    "sqrtnorm": RMethod(NUMBERS),
    "cubertnorm": RMethod(NUMBERS),
    "logreg": RMethod(LEVELS, two_levels=True),
    "polyreg": RMethod(LEVELS, "nnet"),
    "polr": RMethod(LEVELS, "MASS"),
    "cart": RMethod(NUMBERS | LEVELS, "rpart", takes_contrasts=False),
    "ctree": RMethod(NUMBERS | LEVELS, "party", takes_contrasts=False),
    "rf": RMethod(NUMBERS | LEVELS, "randomForest", takes_contrasts=False),
    "bag": RMethod(NUMBERS | LEVELS, "randomForest", takes_contrasts=False),
    "ranger": RMethod(NUMBERS | LEVELS, "ranger", takes_contrasts=False),
}  # tested methods; others of synthpop draw several columns at once, copy a column, or need survival times


class MiceSampler(NamedMethod):
    """A conditional that draws by a univariate imputation method of R's package mice.

    Each draw is one call of ``mice.impute.<method>`` on the training rows and the row to draw, whose target is missing;
    R's generator is seeded from the stream of the row. The givens are encoded as in mice: numbers, and contrasts of
    factors; a missing number is 0, a missing level the first one, and an indicator marks the row. A target with missing
    values is drawn in two steps: a logistic regression decides whether the draw is missing; if not, the method draws
    from the rows with a known target. Steps before the imputation, such as drawing the parameters of a regression, are
    repeated for each row, where mice runs them once for all rows of a column: the distribution of a single row is the
    same.

    Parameters
    ----------
    method : str
        "norm", "norm.nob", "norm.boot", "pmm", "midastouch" for numbers; "logreg", "logreg.boot" for two levels;
        "polyreg", "polr", "lda" for levels; "cart", "rf" for both.
    options : mapping, optional
        Further arguments of the method by name: ``{"donors": 10}``.

    Notes
    -----
    Slow: 1 ("norm.nob", "pmm") to 50 ("polyreg", "cart") ms per draw with 600 training rows. Restricted draws are
    redrawn until allowed. `mcce.NormSampler`, `PmmSampler`, `LogregSampler` and others of this family draw from the
    same kinds of models for all rows at once.

    Examples
    --------
    >>> import mcce, r_bridge
    >>> air = mcce.datasets.load_airquality(dropna=True)
    >>> samplers = {"Temp": r_bridge.MiceSampler("pmm", options={"donors": 3}), "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=samplers, fixed=["Month"], random_state=1)  # doctest: +SKIP
    >>> chain.fit(air.X).sample(given=air.X[["Month"]].head(2), n=3).shape  # doctest: +SKIP
    (6, 5)
    """

    maker = "MiceSampler"
    package = "mice"
    methods = MICE_METHODS

    def _named_functions(self, options: dict[str, Any]) -> Any:
        return session().call("mice_functions", self.method, options)


class SynthpopSampler(NamedMethod):
    """A conditional that draws by a synthesising method of R's package synthpop.

    Each draw is one call of ``syn.<method>`` on the training rows for the row to draw; R's generator is seeded from the
    stream of the row. As in `syn`, regressions get numbers and contrasts of factors, trees and forests the levels.
    Missing values are handled as by `MiceSampler`. The model is refitted for each row.

    Parameters
    ----------
    method : str
        "norm", "normrank", "lognorm", "sqrtnorm", "cubertnorm" for numbers; "logreg" for two levels; "polyreg", "polr"
        for levels; "cart", "ctree", "rf", "bag", "ranger" for both.
    options : mapping, optional
        Further arguments of the method by name: ``{"cart.minbucket": 10}``, ``{"proper": True}``.

    Notes
    -----
    For checks only: 2 ("norm") to 300 ("ranger") ms per draw. `mcce.CartSampler`, `CtreeSampler`, `NormSampler` and
    others of this family draw from the same models for all rows at once, and are tested against synthpop. Debian has no
    package of synthpop: ``install.packages("synthpop")``.

    Examples
    --------
    >>> import mcce, r_bridge
    >>> air = mcce.datasets.load_airquality(dropna=True)
    >>> samplers = {"Temp": r_bridge.SynthpopSampler("cart", options={"cart.minbucket": 10}), "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=samplers, fixed=["Month"], random_state=1)  # doctest: +SKIP
    >>> chain.fit(air.X).sample(given=air.X[["Month"]].head(2), n=3).shape  # doctest: +SKIP
    (6, 5)
    """

    maker = "SynthpopSampler"
    package = "synthpop"
    methods = SYNTHPOP_METHODS

    def _named_functions(self, options: dict[str, Any]) -> Any:
        takes_contrasts = self.methods[self.method].takes_contrasts
        return session().call("synthpop_functions", self.method, options, takes_contrasts)


def _as_function(function: Any, name: str, sampler: ConditionalSampler) -> Any:
    r, made = session(), function
    if isinstance(function, str):
        try:
            made = r.call("evaluate", function, None)
        except RBridgeError as error:
            raise RBridgeError(
                f"{name} of {type(sampler).__name__} is not the code of an R function. {error}"
            ) from error
    if not isinstance(made, r.ri.SexpClosure):
        raise InputError(
            f"{name} of {type(sampler).__name__} is {function!r}; give a function of R, or the code of one: "
            "'function(x, y) ...'."
        )
    return made
