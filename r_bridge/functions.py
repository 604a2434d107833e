"""R's functions as conditionals: any model of R that gives probabilities, quantiles or draws.

1. `learn(x, y)` gets the givens as a data.frame and the target as a vector; what it returns is handed on as it is.
   Numbers are doubles, dates among them in the units that the chain counts in; levels are factors by their names,
   ordered ones ordered. `x` has all levels of its columns, `y` those that training rows have. R's generator is seeded
   for the call, and put back as it was.
2. Draw, by the function that is given:
   "probs"      `probs(object, newdata)`: the probability of each level. Draw a level by them.
   "quantiles"  `quantiles(object, newdata, p)`: a column for each of the `n_quantiles` levels p. Straight between them;
                beyond the outer ones by as much as training values lie beyond those that five fits without their row
                predict (`mcce.samplers.predictions`): a model may be too sure of the rows that it was fitted on.
                Numbers that many rows share keep their share.
   "draw"       `draw(object, newdata, u)`: one value for each row from one uniform number for each, which comes from
                the row's own stream. Or, with `own_rng`, `draw(object, newdata)` of a single row, after `set.seed` by
                the row's own stream: for functions that take R's generator.
3. So no draw depends on the rows beside it: `fit` asks for a few rows together and for some of them in another order,
   and refuses a function whose answers differ. Equal rows are asked about once.
4. Restricted draws are exact from probabilities and quantiles; from `draw` they are drawn again until allowed.
5. Densities: of a level, its probability with the same small part of the margin as in `mcce.samplers.estimator`; of a
   number, the probability of an interval around it over its length, as in `mcce.samplers.boosting`. `draw` has none.

Without givens, and where all training values are equal, R has nothing to learn: a training value is drawn.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count
from mcce.exceptions import InputError, SamplerError, listing
from mcce.rng import RowStreams, resolve_seed
from mcce.samplers.base import BaseMeasure, ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.boosting import Cells
from mcce.samplers.density import ColumnDensity
from mcce.samplers.donors.density import PSEUDO_DONORS
from mcce.samplers.donors.marginal import MarginalSampler
from mcce.samplers.estimator import SharedNumbers, deal_folds
from mcce.samplers.predictions import (
    PredictedQuantiles,
    Tails,
    draw_levels,
    log_mass_of_levels,
    log_probability,
    supported_levels,
)
from mcce.samplers.restricted import log_of
from mcce.table import KINDS, Column, Feature, Table
from r_bridge.columns import texts_of
from r_bridge.frames import to_r
from r_bridge.session import session

NUMBERS, LEVELS = frozenset({"numeric"}), frozenset({"categorical", "ordered"})
LARGEST_SEED = 2**31 - 1
HALF_WIDTH = 0.125  # of an interval that a density is read from, in spreads
PROBED = 6  # rows that `fit` asks about, to see whether one depends on another

Self = TypeVar("Self", bound="RSampler")


@dataclass(frozen=True)
class PredictedNumbers:
    """Quantiles that numbers are drawn from: their levels, the tails, the shared numbers, the column and its cells."""

    levels: Floats
    tails: Tails
    shared: SharedNumbers
    column: ColumnDensity
    cells: Cells

    def density(self, predicted: PredictedQuantiles, values: Floats) -> Floats:
        """Return the probability of each number with point mass, and the density of each other one (step 5)."""
        at_value = self.cells.mass(predicted, values, values)
        is_shared = np.isin(values, self.shared.numbers)
        at_value = np.where(is_shared, predicted.mass(*self.shared.bounds(values, values)), at_value)
        if self.column.base_measure == "counting":
            return at_value
        reach = HALF_WIDTH * predicted.spread
        inside = predicted.mass(values - reach, values + reach)
        for atom in self.column.atoms:
            at = np.full(values.size, atom)
            inside = inside - np.where(np.abs(values - atom) <= reach, self.cells.mass(predicted, at, at), 0.0)
        return np.where(self.column.has_mass(values), at_value, np.maximum(inside, 0.0) / (2.0 * reach))


class RSampler(ConditionalSampler):
    """Draws from a model that functions of R learn and ask.

    Parameters
    ----------
    learn : R function or str
        ``function(x, y)``: fits a model of the vector y on the data.frame x and returns it. All functions are given as
        R code, or as functions that rpy2 holds.
    probs : R function or str, optional
        ``function(object, newdata)``: the probabilities of the levels, one column a level; columns with names are
        matched by them. As many `predict` methods do, it may return a vector: of two levels the probabilities of the
        second, of one row those of all levels.
    quantiles : R function or str, optional
        ``function(object, newdata, p)``: the quantiles of a number, one column for each level in p.
    draw : R function or str, optional
        ``function(object, newdata, u)``: one value for each row, computed from the uniform number u of the row; with
        `own_rng`, ``function(object, newdata)`` of one row. Exactly one of `probs`, `quantiles` and `draw` is given.
    own_rng : bool
        Whether `draw` takes R's generator (`rnorm`, `sample`). It is then called for each row alone, after `set.seed`
        by the row's own stream: slow, 0.1 to 50 ms a row.
    kinds : collection of str, optional
        Kinds of target ("numeric", "categorical", "ordered") that the functions can draw; all that `probs` (levels),
        `quantiles` (numbers) or `draw` (both) can give unless it is said. A target of another kind is refused.
    n_quantiles : int
        Levels that `quantiles` is asked for.
    random_state : int or None
        Seed of R's generator in `learn`, together with the chain's; None for a fresh one.

    Notes
    -----
    R has one thread: a chain with such a sampler has one, and other threads are refused. With `quantiles`, `learn` is
    called six times. What R has learnt cannot be stored with an explainer: fit again where it is needed.

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

    thread_safe = False
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
        n_quantiles: int = 19,
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
        """Kinds of target that the functions can draw."""
        can = LEVELS if self.probs is not None else NUMBERS if self.quantiles is not None else frozenset(KINDS)
        return can if not isinstance(self.kinds, Collection) else can & frozenset(self.kinds)

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Let R learn (step 1), with quantiles also without each fold, and see that rows do not depend on others."""
        self._check_parameters()
        self.check_target(target.feature)
        for name in self._fitted():
            delattr(self, name)
        values = target.values
        if not given.features or np.unique(values).size < 2:
            self.margin_ = MarginalSampler().fit(given, target)
            return self
        seed = self.fit_seed(self.random_state)
        self.functions_ = self._functions()
        self.n_levels_ = target.feature.n_levels
        self.codes_ = np.empty(0) if target.feature.is_numeric else np.unique(values)
        self.level_names_ = _level_names(target.feature, self.codes_)
        self.object_ = self._learn(given, target, seed)
        if self.probs is not None:
            self.level_shares_ = np.bincount(values.astype(np.int64), minlength=self.n_levels_) / values.size
            self.share_of_margin_ = PSEUDO_DONORS / (values.size + PSEUDO_DONORS)
        if self.quantiles is not None:
            self.numbers_ = self._fit_numbers(given, target, seed)
        if not self.own_rng:
            self._check_rows_alone(given)
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw one value for each row (step 2)."""
        if within is not None:
            return self.sample_within(given, rng, within).values
        if self._has_margin():
            return self.margin_.sample(given, rng)
        if self.probs is not None:
            return draw_levels(self._probabilities(given), rng, None)
        if self.quantiles is not None:
            return self._draw_numbers(self._predicted(given), rng, Within())
        return self._draw(given, rng)

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw one allowed value for each row (step 4); no draw is missing."""
        if self._has_margin():
            return self.margin_.sample_within(given, rng, within)
        if self.probs is not None:
            probabilities = self._probabilities(given)
            drawn = draw_levels(probabilities, rng, within)
            mass = log_mass_of_levels(probabilities, within) if within.weighted else None
        elif self.quantiles is not None:
            predicted = self._predicted(given)
            drawn = self._draw_numbers(predicted, rng, within)
            bounds = self.numbers_.shared.bounds(*within.bounds(given.n_rows))
            mass = log_of(predicted.mass(*bounds)) if within.weighted else None
        else:
            return super().sample_within(given, rng, within)
        return RestrictedDraw(drawn, np.isnan(drawn), mass)

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether each value has a probability, or lies where quantiles are; `draw` does not tell."""
        if self._has_margin():
            return self.margin_.supports(given, values)
        if self.probs is not None:
            return supported_levels(self._probabilities(given), values)
        if self.quantiles is None:
            return super().supports(given, values)
        predicted, shared = self._predicted(given), self.numbers_.shared
        is_shared = np.isin(values, shared.numbers) & (predicted.mass(*shared.bounds(values, values)) > 0.0)
        return np.asarray(predicted.supports(values) | is_shared)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        """Return the log probability of each level, the log density or probability of each number (step 5)."""
        if self._has_margin():
            return self.margin_.log_density(given, values, training_rows)
        self.refuse_training_rows(training_rows)
        if self.probs is not None:
            predicted = self._probabilities(given)
            return log_probability(predicted + self.share_of_margin_ * (self.level_shares_ - predicted), values)
        if self.quantiles is None:
            return super().log_density(given, values)
        density = self.numbers_.density(self._predicted(given), values)
        return self.numbers_.column.log_with_even_part(density, values)

    def base_measure(self) -> BaseMeasure:
        """Return what the density is with respect to; `draw` has none."""
        if self._has_margin():
            return self.margin_.base_measure()
        if self.probs is not None:
            return "counting"
        return super().base_measure() if self.quantiles is None else self.numbers_.column.base_measure

    def get_state(self) -> dict[str, Any]:
        """Refuse: what R has learnt is no arrays and JSON, and opening it would run code."""
        raise SamplerError(
            f"{self!r} holds an object of R, which cannot be written as arrays and JSON: it may hold code. Fit again "
            "where it is needed, or use a sampler that can be saved."
        )

    def _has_margin(self) -> bool:
        if not hasattr(self, "margin_"):
            self.check_fitted("object_")
        return hasattr(self, "margin_")

    def _functions(self) -> dict[str, Any]:
        """Return the functions of R by name."""
        given = {name: getattr(self, name) for name in self.whole_parameters if getattr(self, name) is not None}
        return {name: _as_function(function, name, self) for name, function in given.items()}

    def _learn(self, given: Table, target: Column, seed: int) -> Any:
        y = next(iter(to_r(pd.DataFrame({"y": _column(target.feature, target.values, self.codes_)}))))
        return session().call("learn_conditional", self.functions_["learn"], _rows(given), y, seed % LARGEST_SEED)

    def _fit_numbers(self, given: Table, target: Column, seed: int) -> PredictedNumbers:
        """Learn what lies beyond the outer quantiles from fits without each row, and which numbers are shared."""
        values = target.values
        levels = (np.arange(self.n_quantiles) + 1.0) / (self.n_quantiles + 1)
        fold = deal_folds(values.size, seed)
        outer = np.empty((values.size, 2))
        for held_out in range(int(fold.max()) + 1):
            inside = np.flatnonzero(fold == held_out)
            others = np.flatnonzero(fold != held_out)
            fitted = self._learn(given.take(others), Column(target.feature, values[others]), seed)
            outer[inside] = self._quantiles(fitted, given.take(inside), levels[[0, -1]])
        tails = Tails.read(outer, values, float(levels[0]))
        predicted = PredictedQuantiles.arrange(self._quantiles(self.object_, given, levels), levels, tails)
        shared = SharedNumbers.read(predicted, values, None)
        return PredictedNumbers(levels, tails, shared, ColumnDensity.of(values), Cells.of(values))

    def _probabilities(self, given: Table, seed: int = 1) -> Floats:
        """Return the probabilities of all levels, those that no training row has included."""
        distinct, place = _distinct(given)
        probabilities = np.zeros((place.size, self.n_levels_))
        if place.size:
            arguments = (self.functions_["probs"], self.object_, _rows(distinct), self.level_names_, seed)
            answer = session().numbers(session().call("conditional_probs", *arguments))
            by_row = answer.reshape(distinct.n_rows, -1, order="F")
            probabilities[:, self.codes_.astype(np.intp)] = by_row[place]
        return probabilities

    def _quantiles(self, fitted: Any, given: Table, levels: Floats, seed: int = 1) -> Floats:
        distinct, place = _distinct(given)
        if not place.size:
            return np.empty((0, levels.size))
        arguments = (self.functions_["quantiles"], fitted, _rows(distinct), levels, seed)
        answer: Floats = session().numbers(session().call("conditional_quantiles", *arguments))
        return answer.reshape(distinct.n_rows, -1, order="F")[place]

    def _predicted(self, given: Table) -> PredictedQuantiles:
        numbers = self.numbers_
        return PredictedQuantiles.arrange(
            self._quantiles(self.object_, given, numbers.levels), numbers.levels, numbers.tails
        )

    def _draw_numbers(self, predicted: PredictedQuantiles, rng: RowStreams, within: Within) -> Floats:
        shared = self.numbers_.shared
        bounds = shared.bounds(*within.bounds(predicted.knots.shape[0]))
        return shared.become(predicted.draw(rng.uniform(), *bounds))

    def _draw(self, given: Table, rng: RowStreams) -> Floats:
        uniform = rng.uniform()
        if not self.own_rng:
            return self._draw_at(given, uniform)
        if not given.n_rows:
            return np.empty(0)
        seeds = (uniform * LARGEST_SEED).astype(np.int64)
        arguments = (self.functions_["draw"], self.object_, _rows(given), seeds, self.level_names_)
        prepare = self.functions_.get("prepare")
        return self._as_values(session().call("draws_one_by_one", *arguments, prepare))

    def _draw_at(self, given: Table, uniform: Floats, seed: int = 1) -> Floats:
        if not given.n_rows:
            return np.empty(0)
        arguments = (self.functions_["draw"], self.object_, _rows(given), uniform, self.level_names_, seed)
        return self._as_values(session().call("conditional_draws", *arguments))

    def _as_values(self, drawn: Any) -> Floats:
        """Read draws: numbers, or places among the levels of the training rows."""
        values = session().numbers(drawn).astype(np.float64)
        return values if not self.codes_.size else self.codes_[values.astype(np.intp)]

    def _check_rows_alone(self, given: Table) -> None:
        """Refuse a function whose answer for a row depends on the rows beside it, or on R's generator (step 3)."""
        rows = np.unique(np.linspace(0, given.n_rows - 1, PROBED).astype(np.intp))
        some = rows[::-2]
        uniform = (np.arange(rows.size) + 0.5) / rows.size

        def ask(which: Ints, u: Floats, seed: int) -> Floats:
            if self.probs is not None:
                return self._probabilities(given.take(which), seed)
            if self.quantiles is not None:
                return self._quantiles(self.object_, given.take(which), self.numbers_.levels, seed)
            return self._draw_at(given.take(which), u, seed)

        together, apart = ask(rows, uniform, 1)[::-2], ask(some, uniform[::-2], 2)
        if not np.allclose(together, apart, rtol=1e-9, atol=1e-12):
            name = next(name for name in ("probs", "quantiles", "draw") if getattr(self, name) is not None)
            remedy = " For a draw by R's generator say own_rng=True." if name == "draw" else ""
            raise SamplerError(
                f"{name} of {type(self).__name__} gives a row another answer beside other rows, or at another state of "
                f"R's generator; it must be a function of the row alone.{remedy}"
            )

    def _check_parameters(self) -> None:
        asked = [name for name in ("probs", "quantiles", "draw") if getattr(self, name) is not None]
        if len(asked) != 1:
            raise InputError(
                f"{type(self).__name__} got {listing(asked) if asked else 'none of probs, quantiles and draw'}; give "
                "exactly one of probs=, quantiles= and draw=."
            )
        if not isinstance(self.own_rng, bool) or (self.own_rng and self.draw is None):
            raise InputError(
                f"own_rng of {type(self).__name__} is {self.own_rng!r} with {asked[0]}=; it is True or False, and True "
                "for draw= only: probabilities and quantiles take no random numbers."
            )
        if self.kinds is not None and (
            not isinstance(self.kinds, Collection) or isinstance(self.kinds, str) or not self.handles
        ):
            raise InputError(
                f"kinds of {type(self).__name__} is {self.kinds!r}; give some of {listing(KINDS)} that {asked[0]}= can "
                'draw, as in kinds=["numeric"].'
            )
        check_count(self.n_quantiles, "n_quantiles", self, 2)
        resolve_seed(self.random_state)


@dataclass(frozen=True)
class MiceMethod:
    """An imputation method of mice: the targets it draws, the package it needs, whether it takes two levels only."""

    handles: frozenset[str]
    package: str | None = None
    two_levels: bool = False


MICE_METHODS = {
    "norm": MiceMethod(NUMBERS),
    "norm.nob": MiceMethod(NUMBERS),
    "norm.boot": MiceMethod(NUMBERS),
    "pmm": MiceMethod(NUMBERS),
    "midastouch": MiceMethod(NUMBERS),
    "logreg": MiceMethod(LEVELS, two_levels=True),
    "logreg.boot": MiceMethod(LEVELS, two_levels=True),
    "polyreg": MiceMethod(LEVELS, "nnet"),
    "polr": MiceMethod(LEVELS, "MASS"),
    "lda": MiceMethod(LEVELS, "MASS"),
    "cart": MiceMethod(NUMBERS | LEVELS, "rpart"),
    "rf": MiceMethod(NUMBERS | LEVELS, "ranger"),
}  # those that the tests try; others of mice are deterministic, for several columns, or for grouped rows


class MiceSampler(RSampler):
    """Draws by a univariate imputation method of R's package mice.

    Each draw is one call of ``mice.impute.<method>`` on the training rows and the row to draw, whose target counts as
    missing; R's generator is seeded by the row's own stream. The givens are written as mice writes them: numbers, and
    contrasts of factors. What a method does before it imputes, as to draw the parameters of a regression, it does for
    each row anew, where mice does it once for all rows of a column: the distribution of a single row is the same.

    Parameters
    ----------
    method : str
        "norm", "norm.nob", "norm.boot", "pmm", "midastouch" for numbers; "logreg", "logreg.boot" for two levels;
        "polyreg", "polr", "lda" for levels; "cart", "rf" for both.
    options : mapping, optional
        Further arguments of the method by name: ``{"donors": 10}``.

    Notes
    -----
    Slow: 1 ("norm.nob", "pmm") to 50 ("polyreg", "cart") ms a draw with 600 training rows. Restricted draws are drawn
    again until allowed. `mcce.NormSampler`, `PmmSampler`, `LogregSampler` and others of synthpop's family draw the same
    kinds of models at once.

    Examples
    --------
    >>> import mcce, r_bridge
    >>> air = mcce.datasets.load_airquality(dropna=True)
    >>> samplers = {"Temp": r_bridge.MiceSampler("pmm", options={"donors": 3}), "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=samplers, fixed=["Month"], random_state=1)  # doctest: +SKIP
    >>> chain.fit(air.X).sample(given=air.X[["Month"]].head(2), n=3).shape  # doctest: +SKIP
    (6, 5)
    """

    probs = quantiles = kinds = None
    learn = draw = "mice"
    own_rng = True
    n_quantiles = 19
    random_state = 0

    def __init__(self, method: str, *, options: Mapping[str, Any] | None = None) -> None:
        self.method = method
        self.options = options

    @property
    def handles(self) -> frozenset[str]:  # type: ignore[override]
        """Kinds of target that the method draws."""
        known = isinstance(self.method, str) and self.method in MICE_METHODS
        return MICE_METHODS[self.method].handles if known else frozenset(KINDS)

    def _functions(self) -> dict[str, Any]:
        r = session()
        r.need("mice", f"MiceSampler({self.method!r})")
        package = MICE_METHODS[self.method].package
        if package is not None:
            r.need(package, f"MiceSampler({self.method!r})")
        return r.parts(r.call("mice_functions", self.method, dict(self.options or {})))

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Keep the training rows for mice; a method for two levels refuses more."""
        self._check_parameters()
        assert isinstance(self, MiceSampler)
        n_levels = 0 if target.feature.is_numeric else np.unique(target.values).size
        if MICE_METHODS[self.method].two_levels and n_levels > 2:
            raise SamplerError(
                f"{self!r} cannot model {target.feature.name!r}: it has {n_levels} levels, and the method takes two. "
                "Use polyreg or polr."
            )
        return super().fit(given, target)

    def _check_parameters(self) -> None:
        if not isinstance(self.method, str) or self.method not in MICE_METHODS:
            raise InputError(f"method of MiceSampler is {self.method!r}; allowed: {listing(MICE_METHODS)}.")
        if self.options is not None and not isinstance(self.options, Mapping):
            raise InputError(f"options of MiceSampler is {self.options!r}; give arguments of the method by name.")


def _as_function(function: Any, name: str, sampler: ConditionalSampler) -> Any:
    r = session()
    made = r.call("evaluate", function, None) if isinstance(function, str) else function
    if not isinstance(made, r.ri.SexpClosure):
        raise InputError(
            f"{name} of {type(sampler).__name__} is {function!r}; give a function of R, or the code of one: "
            "'function(x, y) ...'."
        )
    return made


def _distinct(given: Table) -> tuple[Table, Ints]:
    """Return the rows that differ, and the place of each row among them."""
    rows, place = np.unique(given.matrix, axis=0, return_inverse=True)
    return Table(given.features, np.asfortranarray(rows)), place.ravel()


def _rows(given: Table) -> Any:
    """Write givens as a data.frame with their own names and levels (step 1)."""
    columns = {str(f.name): _column(f, given.matrix[:, j]) for j, f in enumerate(given.features)}
    if len(columns) < len(given.features):
        raise InputError(f"the names {listing([f.name for f in given.features])} are not unique as text; rename them.")
    return to_r(pd.DataFrame(columns))


def _column(feature: Feature, values: Floats, codes: Floats | None = None) -> Any:
    """Return one column for R: numbers as they are, levels by their names, all of them or those with the codes."""
    if feature.is_numeric:
        return values
    used = np.arange(feature.n_levels, dtype=np.float64) if codes is None else codes
    place = np.where(np.isnan(values), -1, np.searchsorted(used, values)).astype(np.intp)
    return pd.Categorical.from_codes(place, pd.Index(_level_names(feature, used)), ordered=feature.kind == "ordered")


def _level_names(feature: Feature, codes: Floats) -> list[str]:
    if feature.levels is None:
        return []
    names = texts_of(feature.levels, str(feature.name))
    return [names[int(code)] for code in codes]
