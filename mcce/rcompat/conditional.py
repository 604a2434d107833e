"""Conditionals from functions of R that return probabilities, quantiles or draws.

1. `learn(x, y)` gets the givens as a data frame and the target as a vector, and returns a model. Numbers and dates are
   doubles, levels factors (all levels in `x`, those of training rows in `y`). R's generator is seeded for the call, and
   restored.
2. Draws use the given function:

   "probs"      `probs(object, newdata)`: the probability of each level
   "quantiles"  `quantiles(object, newdata, p)`: a column for each of `n_quantiles` levels p, linear in between; beyond
                the outer ones by held-out exceedances of five folds (`mcce.samplers.predictions`)
   "draw"       `draw(object, newdata, u)`: one value for each row from one uniform number of the row's own stream; or,
                with `own_rng`, `draw(object, newdata)` of a single row, after `set.seed` by the row's own stream

3. A row's draw may not depend on other rows: `fit` raises if it does. Equal rows are passed once.
4. Restricted draws are exact from probabilities and quantiles, and drawn again until allowed from `draw`. Densities are
   those of `mcce.samplers.estimator` for levels and `mcce.samplers.boosting` for numbers; `draw` has none.

Without givens, and for a constant target, training values are drawn. `mcce.rcompat.r_session` is called by an R
session, `r_bridge.functions` calls one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count
from mcce.exceptions import InputError, SamplerError, listing, spell
from mcce.rcompat.columns import texts_of
from mcce.rng import RowStreams, resolve_seed
from mcce.samplers.base import REJECTION_ROUNDS, BaseMeasure, ConditionalSampler, RestrictedDraw, Within
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
from mcce.samplers.restricted import draw_until_allowed, log_of
from mcce.storage.fields import FLOAT, check_array, check_type, require, stored
from mcce.storage.learned import learned_attributes
from mcce.storage.state import stateful
from mcce.table import KINDS, Column, Feature, Table
from mcce.wording import Parameter, Value

QUESTIONS = ("probs", "quantiles", "draw")
NUMBERS, LEVELS = frozenset({"numeric"}), frozenset({"categorical", "ordered"})
REDRAWN_TOGETHER = 10_000  # draws in one call of R when values are redrawn
LARGEST_SEED = 2**31 - 1
N_QUANTILES = 19
HALF_WIDTH = 0.125  # half the width of the interval that a density is computed from, in spreads
PROBED = 6  # rows that `fit` queries to check that predictions of rows are independent

Self = TypeVar("Self", bound="RConditional")


@stateful("rcompat.PredictedNumbers")
@dataclass(frozen=True)
class PredictedNumbers:
    """A distribution given by quantiles: their levels, the tails, the shared numbers, the column and its cells."""

    levels: Floats = stored(FLOAT, None, rising=True, filled=True)
    tails: Tails = stored(Tails)
    shared: SharedNumbers = stored(SharedNumbers)
    column: ColumnDensity = stored(ColumnDensity)
    cells: Cells = stored(Cells)

    def density(self, predicted: PredictedQuantiles, values: Floats) -> Floats:
        """Return the probability of each number with point mass, and the density of each other number."""
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


class RConditional(ConditionalSampler):
    """A conditional whose model is fitted and queried by functions of R; a subclass defines how they are called.

    Attributes
    ----------
    own_rng : bool
        Whether `draw` uses R's generator.
    n_quantiles : int
        Number of levels that `quantiles` is called with.
    random_state : int or None
        Seed of R's generator in `learn`, together with the chain's; None for a fresh one.
    """

    thread_safe = False
    maker: str  # the user's function that created the sampler, for messages
    own_rng_as_written: ClassVar[str] = "own_rng=True"

    own_rng: bool
    n_quantiles: int
    random_state: int | None

    @abstractmethod
    def question(self) -> str:
        """Return which function is given in addition to `learn`: one of `QUESTIONS`."""

    @abstractmethod
    def learn_in_r(self, x: pd.DataFrame, y: pd.Series[Any], seed: int) -> Any:
        """Return the model that R has fitted, or its key."""

    @abstractmethod
    def query_r(self, question: str, learned: Any, newdata: pd.DataFrame, numbers: Floats, seed: int) -> Floats:
        """Return R's values for the rows, column by column; drawn levels are positions among the levels of `y`.

        Parameters
        ----------
        question : {"probs", "quantiles", "draw", "own_draw"}
            "own_draw" is `draw` with R's generator, row by row.
        learned : what `learn_in_r` returned
        newdata : DataFrame
        numbers : array
            The levels p of "quantiles", a uniform number for each row of "draw", a seed for each of "own_draw".
        seed : int
            Seed of R's generator, except for "own_draw".
        """

    def forget_in_r(self, learned: Any) -> None:
        """Delete the model in R; a no-op where R's garbage collector does so."""

    @property
    def handles(self) -> frozenset[str]:  # type: ignore[override]
        """Return the kinds of target that the functions can draw."""
        return {"probs": LEVELS, "quantiles": NUMBERS}.get(self.question(), frozenset(KINDS))

    def fit(self: Self, given: Table, target: Column) -> Self:
        self.check_parameters()
        self.check_target(target.feature)
        for name in learned_attributes(self):
            delattr(self, name)
        self.target_ = spell(target.feature.name)
        values = target.values
        if not given.features or np.unique(values[~np.isnan(values)]).size < 2:
            self.margin_ = MarginalSampler().fit(given, target)
            return self
        seed = self.fit_seed(self.random_state)
        self.n_levels_ = target.feature.n_levels
        self.codes_ = np.empty(0) if target.feature.is_numeric else np.unique(values)
        self.learned_ = self._learn(given, target, seed)
        if self.question() == "probs":
            self.level_shares_ = np.bincount(values.astype(np.int64), minlength=self.n_levels_) / values.size
            self.share_of_margin_ = PSEUDO_DONORS / (values.size + PSEUDO_DONORS)
        if self.question() == "quantiles":
            self.numbers_ = self._fit_numbers(given, target, seed)
        if not self.own_rng:
            self._check_rows_alone(given)
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        if within is not None:
            return self.sample_within(given, rng, within).values
        if self._has_margin():
            return self.margin_.sample(given, rng)
        if self.question() == "probs":
            return draw_levels(self._probabilities(given), rng, None)
        if self.question() == "quantiles":
            return self._draw_numbers(self._predicted(given), rng, Within())
        return self._draw_by(given, rng.uniform())

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        if self._has_margin():
            return self.margin_.sample_within(given, rng, within)
        if self.question() == "probs":
            probabilities = self._probabilities(given)
            drawn = draw_levels(probabilities, rng, within)
            mass = log_mass_of_levels(probabilities, within) if within.weighted else None
        elif self.question() == "quantiles":
            predicted = self._predicted(given)
            drawn = self._draw_numbers(predicted, rng, within)
            bounds = self.numbers_.shared.bounds(*within.bounds(given.n_rows))
            mass = log_of(predicted.mass(*bounds)) if within.weighted else None
        else:
            return self._draw_until_allowed(given, rng, within)
        return RestrictedDraw(drawn, np.isnan(drawn), mass)

    def _draw_until_allowed(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Redraw each row until its value is allowed; each call of R makes several attempts."""
        drawn: dict[int, Floats] = {}  # by attempt, for the rows that were pending at the call of R
        drawn_for = np.arange(given.n_rows)

        def draw(waiting: Ints, attempt: int) -> RestrictedDraw:
            nonlocal drawn_for
            if attempt not in drawn:
                drawn_for = waiting
                n = min(max(1, attempt), max(1, REDRAWN_TOGETHER // waiting.size), REJECTION_ROUNDS - attempt)
                streams = [rng.child("attempt", k).take(waiting) for k in range(attempt, attempt + n)]
                numbers = np.concatenate([each.uniform() for each in streams])
                found = self._draw_by(given.take(np.tile(waiting, n)), numbers).reshape(n, -1)
                drawn.update(enumerate(found, attempt))
            tried = drawn.pop(attempt)[np.searchsorted(drawn_for, waiting)]
            mass = np.zeros(waiting.size) if within.weighted else None
            return RestrictedDraw(tried, ~within.take(waiting).allows(tried), mass)

        return draw_until_allowed(draw, given.n_rows, REJECTION_ROUNDS, estimate=within.weighted)

    def supports(self, given: Table, values: Floats) -> Bools:
        if self._has_margin():
            return self.margin_.supports(given, values)
        if self.question() == "probs":
            return supported_levels(self._probabilities(given), values)
        if self.question() == "draw":
            return super().supports(given, values)
        predicted, shared = self._predicted(given), self.numbers_.shared
        is_shared = np.isin(values, shared.numbers) & (predicted.mass(*shared.bounds(values, values)) > 0.0)
        return np.asarray(predicted.supports(values) | is_shared)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        if self._has_margin():
            return self.margin_.log_density(given, values, training_rows)
        self.refuse_training_rows(training_rows)
        if self.question() == "probs":
            predicted = self._probabilities(given)
            return log_probability(predicted + self.share_of_margin_ * (self.level_shares_ - predicted), values)
        if self.question() == "draw":
            return super().log_density(given, values)
        density = self.numbers_.density(self._predicted(given), values)
        return self.numbers_.column.log_with_uniform_part(density, values)

    def base_measure(self) -> BaseMeasure:
        if self._has_margin():
            return self.margin_.base_measure()
        if self.question() == "probs":
            return "counting"
        return super().base_measure() if self.question() == "draw" else self.numbers_.column.base_measure

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        super().check_state(given, target, n_rows)
        self.check_parameters()
        check_type(self.target_, "target_", str)
        if self._has_margin():
            check_type(self.margin_, "margin_", MarginalSampler)
            self.margin_.check_state(given, target, n_rows)
            return
        require(self.n_levels_ == target.n_levels, "n_levels_ differs from the number of levels of the target")
        check_array(self.codes_, "codes_", FLOAT, None)
        known = np.isin(self.codes_, np.arange(self.n_levels_)).all() and np.unique(self.codes_).size > 1
        require(known if self.n_levels_ else not self.codes_.size, "codes_ are not levels of the target")
        if self.question() == "probs":
            check_array(self.level_shares_, "level_shares_", FLOAT, self.n_levels_)
            check_type(self.share_of_margin_, "share_of_margin_", float)
        if self.question() == "quantiles":
            check_type(self.numbers_, "numbers_", PredictedNumbers)

    def check_parameters(self) -> None:
        """Raise if a parameter is invalid."""
        question = self.question()
        if not isinstance(self.own_rng, bool) or (self.own_rng and question != "draw"):
            raise InputError(
                f"own_rng of {self.maker} is ",
                Value(self.own_rng),
                " with ",
                Parameter(question),
                "; it is ",
                Value(True),
                " or ",
                Value(False),
                ", and ",
                Value(True),
                " for ",
                Parameter("draw"),
                " only: probabilities and quantiles use no random numbers.",
            )
        check_count(self.n_quantiles, "n_quantiles", self, 2)
        resolve_seed(self.random_state)

    def _has_margin(self) -> bool:
        if not hasattr(self, "margin_"):
            self.check_fitted("learned_")
        return hasattr(self, "margin_")

    def _learn(self, given: Table, target: Column, seed: int) -> Any:
        y = pd.Series(as_column(target.feature, target.values, self.codes_), name="y")
        return self.learn_in_r(as_frame(given), y, seed % LARGEST_SEED)

    def _fit_numbers(self, given: Table, target: Column, seed: int) -> PredictedNumbers:
        """Fit the tails beyond the outer quantiles by cross-fitting, and find the shared numbers."""
        values = target.values
        levels = (np.arange(self.n_quantiles) + 1.0) / (self.n_quantiles + 1)
        fold = deal_folds(values.size, seed)
        outer = np.empty((values.size, 2))
        for held_out in range(int(fold.max()) + 1):
            inside = np.flatnonzero(fold == held_out)
            others = np.flatnonzero(fold != held_out)
            learned = self._learn(given.take(others), Column(target.feature, values[others]), seed)
            outer[inside] = self._query("quantiles", learned, given.take(inside), levels[[0, -1]], 2)
            self.forget_in_r(learned)
        tails = Tails.read(outer, values, float(levels[0]))
        quantiles = self._query("quantiles", self.learned_, given, levels, levels.size)
        predicted = PredictedQuantiles.arrange(quantiles, levels, tails)
        shared = SharedNumbers.read(predicted, values, None)
        return PredictedNumbers(levels, tails, shared, ColumnDensity.of(values), Cells.of(values))

    def _probabilities(self, given: Table, seed: int = 1) -> Floats:
        """Return the probabilities of all levels, including levels without training rows."""
        probabilities = np.zeros((given.n_rows, self.n_levels_))
        answer = self._query("probs", self.learned_, given, np.empty(0), self.codes_.size, seed)
        probabilities[:, self.codes_.astype(np.intp)] = answer
        return probabilities

    def _predicted(self, given: Table) -> PredictedQuantiles:
        levels = self.numbers_.levels
        quantiles = self._query("quantiles", self.learned_, given, levels, levels.size)
        return PredictedQuantiles.arrange(quantiles, levels, self.numbers_.tails)

    def _draw_numbers(self, predicted: PredictedQuantiles, rng: RowStreams, within: Within) -> Floats:
        shared = self.numbers_.shared
        bounds = shared.bounds(*within.bounds(predicted.knots.shape[0]))
        return shared.become(predicted.draw(rng.uniform(), *bounds))

    def _query(
        self, question: str, learned: Any, given: Table, numbers: Floats, n_columns: int, seed: int = 1
    ) -> Floats:
        """Return a matrix of R's values; equal rows are passed once."""
        if not given.n_rows:
            return np.empty((0, n_columns))
        rows, place = np.unique(given.matrix, axis=0, return_inverse=True)
        distinct = as_frame(Table(given.features, np.asfortranarray(rows)))
        answer = self.query_r(question, learned, distinct, numbers, seed)
        return self._checked(answer, question, len(rows) * n_columns).reshape(len(rows), -1, order="F")[place.ravel()]

    def _draw_by(self, given: Table, uniform: Floats) -> Floats:
        """Return one value for each row from its uniform number, or from R's generator seeded by it."""
        if self.own_rng:
            return self._draw("own_draw", given, np.floor(uniform * LARGEST_SEED))
        return self._draw("draw", given, uniform)

    def _draw(self, question: str, given: Table, numbers: Floats, seed: int = 1) -> Floats:
        if not given.n_rows:
            return np.empty(0)
        answer = self.query_r(question, self.learned_, as_frame(given), numbers, seed)
        drawn = self._checked(answer, "draw", given.n_rows)
        return drawn if not self.codes_.size else self.codes_[drawn.astype(np.intp)]

    def _checked(self, answer: Floats, question: str, n: int) -> Floats:
        if answer.size != n or not np.isfinite(answer).all():
            raise SamplerError(
                f"feature {self.target_}: {question} of {self.maker} gave {answer.size} values where {n} are needed, "
                "or some that are missing or infinite."
            )
        return answer.astype(np.float64)

    def _check_rows_alone(self, given: Table) -> None:
        """Raise if the value of a row depends on other rows, or on R's generator."""
        rows = np.unique(np.linspace(0, given.n_rows - 1, PROBED).astype(np.intp))
        uniform = (np.arange(rows.size) + 0.5) / rows.size
        question = self.question()

        def values(which: Ints, u: Floats, seed: int) -> Floats:
            some = given.take(which)
            if question == "probs":
                return self._probabilities(some, seed)
            if question == "quantiles":
                levels = self.numbers_.levels
                return self._query("quantiles", self.learned_, some, levels, levels.size, seed)
            return self._draw("draw", some, u, seed)

        together, apart = values(rows, uniform, 1)[::-2], values(rows[::-2], uniform[::-2], 2)
        if not np.allclose(together, apart, rtol=1e-9, atol=1e-12):
            remedy = f" To draw with R's generator, set {self.own_rng_as_written}." if question == "draw" else ""
            raise SamplerError(
                f"feature {self.target_}: {question} of {self.maker} returns another value for a row among other "
                f"rows, or at another state of R's generator; it must be a function of the row alone.{remedy}"
            )


def as_frame(given: Table) -> pd.DataFrame:
    """Return givens as a data frame for R, with their names and levels."""
    columns = {str(f.name): as_column(f, given.matrix[:, j]) for j, f in enumerate(given.features)}
    if len(columns) < len(given.features):
        raise InputError(f"the names {listing([f.name for f in given.features])} are not unique as text; rename them.")
    return pd.DataFrame(columns)


def as_column(feature: Feature, values: Floats, codes: Floats | None = None) -> Any:
    """Return one column for R: numbers unchanged, levels by name, all levels or those with the given codes."""
    if feature.levels is None:
        return values
    used = np.arange(feature.n_levels, dtype=np.float64) if codes is None else codes
    names = texts_of(feature.levels, str(feature.name))
    place = np.where(np.isnan(values), -1, np.searchsorted(used, values)).astype(np.intp)
    levels = pd.Index([names[int(code)] for code in used], dtype=object)
    return pd.Categorical.from_codes(place, levels, ordered=feature.kind == "ordered")
