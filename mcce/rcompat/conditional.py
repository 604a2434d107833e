"""A conditional whose model is learned and asked by functions of R, which an R session lends by name.

1. R lends a function of (what, key, table) under a name (`lend`). Functions are code and stand in no file: a stored
   explainer holds the name, and the session that loads it lends the functions again.
2. "learn": R gets the givens and the target, fits, keeps what it has fitted and answers with a key for it. Numbers are
   doubles, dates among them in the units that the chain counts in; levels are factors, the target's with those levels
   that training rows have.
3. "probs": the probability of each of these levels, a row for each row; a level is drawn by them, exactly so inside
   restrictions. Or "draw": one value for each row from one uniform number for each, which comes from the row's own
   stream; restricted draws are drawn again until allowed.
4. So no draw depends on the rows beside it: `fit` asks for a few rows together and for some of them in another order,
   and refuses functions whose answers differ.

Without givens, and where all training values are equal, there is nothing to learn: a training value is drawn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from mcce.base.arrays import Floats, Ints
from mcce.exceptions import InputError, MCCEError, SamplerError, did_you_mean
from mcce.rcompat.columns import join_texts
from mcce.rng import RowStreams
from mcce.samplers.base import SAMPLERS, BaseMeasure, Bools, ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.predictions import draw_levels, log_mass_of_levels, log_probability, supported_levels
from mcce.samplers.registry import register_sampler
from mcce.table import KINDS, Column, Feature, Table

Lent = Callable[[str, str, Mapping[str, Any]], Mapping[str, Any]]
Self = TypeVar("Self", bound="LentSampler")

NAME = "lent_by_r"
ASKS = ("probs", "draw")
PROBED = 6  # rows that `fit` asks about, to see whether one depends on another
LARGEST_SEED = 2**31 - 1

_lent: dict[str, tuple[Lent, int]] = {}  # by name, of the R session that this process runs in, with its thread


class RError(MCCEError):
    """A function of R stopped, or cannot be called from here."""


def lend(name: str, function: Lent) -> None:
    """Take a function of R under a name, in place of an earlier one of that name (step 1)."""
    if NAME not in SAMPLERS.known:
        register_sampler(NAME, LentSampler)
    _lent[name] = function, threading.get_ident()


class LentSampler(ConditionalSampler):
    """Draws from a model that functions of an R session learn and ask.

    Parameters
    ----------
    name : str
        The name that R has lent its functions by.
    asks : {"draw", "probs"}
        What they can be asked for.
    random_state : int
        Seed of R's generator while it learns, together with the chain's.
    """

    thread_safe = False

    def __init__(self, *, name: str = "", asks: str = "draw", random_state: int = 0) -> None:
        self.name = name
        self.asks = asks
        self.random_state = random_state

    @property
    def handles(self) -> frozenset[str]:  # type: ignore[override]
        """Kinds of target that the functions can draw."""
        return frozenset({"categorical", "ordered"}) if self.asks == "probs" else frozenset(KINDS)

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Let R learn (step 2), and see that its answers are of each row alone (step 4)."""
        if self.asks not in ASKS:
            raise InputError(f"asks of LentSampler is {self.asks!r}; {did_you_mean(self.asks, ASKS)}")
        self.check_target(target.feature)
        for each in self._fitted():
            delattr(self, each)
        feature, values = target.feature, target.values
        if not given.features or np.unique(values).size < 2:
            self.values_ = values.copy()
            return self
        self.codes_ = np.empty(0) if feature.is_numeric else np.unique(values)
        self.n_levels_ = feature.n_levels
        learned = {**_sent(given), "y": _column(feature, values, self.codes_), "seed": self._seed()}
        self.key_ = str(self._ask("learn", "", learned)["key"])
        self._check_rows_alone(given)
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw one value for each row (step 3)."""
        if within is not None:
            return self.sample_within(given, rng, within).values
        if self._is_constant():
            return np.asarray(self.values_[rng.integer(self.values_.size)])
        return draw_levels(self._probabilities(given), rng, None) if self.asks == "probs" else self._draws(given, rng)

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw one allowed value for each row; exactly from probabilities."""
        if self._is_constant() or self.asks == "draw":
            return super().sample_within(given, rng, within)
        probabilities = self._probabilities(given)
        drawn = draw_levels(probabilities, rng, within)
        mass = log_mass_of_levels(probabilities, within) if within.weighted else None
        return RestrictedDraw(drawn, np.isnan(drawn), mass)

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether each level has a probability; a function that draws does not tell."""
        if self._is_constant() or self.asks == "draw":
            return super().supports(given, values)
        return supported_levels(self._probabilities(given), values)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        """Return the log probability of each level; a function that draws has none."""
        self.refuse_training_rows(training_rows)
        if self._is_constant() or self.asks == "draw":
            return super().log_density(given, values)
        return log_probability(self._probabilities(given), values)

    def base_measure(self) -> BaseMeasure:
        """Return what the density is with respect to."""
        return "counting" if self.asks == "probs" else super().base_measure()

    def _is_constant(self) -> bool:
        if not hasattr(self, "values_"):
            self.check_fitted("key_")
        return hasattr(self, "values_")

    def _seed(self) -> int:
        return self.fit_seed(self.random_state) % LARGEST_SEED

    def _probabilities(self, given: Table) -> Floats:
        """Return the probabilities of all levels, those that no training row has included."""
        probabilities = np.zeros((given.n_rows, self.n_levels_))
        if given.n_rows:
            answer = self._ask("probs", self.key_, _sent(given))
            by_level = _numbers(answer).reshape(self.codes_.size, given.n_rows)
            probabilities[:, self.codes_.astype(np.intp)] = by_level.T
        return probabilities

    def _draws(self, given: Table, rng: RowStreams) -> Floats:
        return self._draws_at(given, rng.uniform())

    def _draws_at(self, given: Table, uniform: Floats) -> Floats:
        if not given.n_rows:
            return np.empty(0)
        table = {**_sent(given), "u": bytearray(uniform.astype("<f8").tobytes())}
        values = _numbers(self._ask("draw", self.key_, table))
        if values.size != given.n_rows or np.isnan(values).any():
            raise SamplerError(f"the draw of R gave {values.size} values for {given.n_rows} rows, or missing ones.")
        return values if not self.codes_.size else self.codes_[values.astype(np.intp)]

    def _check_rows_alone(self, given: Table) -> None:
        rows = np.unique(np.linspace(0, given.n_rows - 1, PROBED).astype(np.intp))
        uniform = (np.arange(rows.size) + 0.5) / rows.size

        def ask(which: Ints) -> Floats:
            some = given.take(rows[which])
            return self._probabilities(some) if self.asks == "probs" else self._draws_at(some, uniform[which])

        backwards = np.arange(rows.size)[::-2]
        if not np.allclose(ask(np.arange(rows.size))[::-2], ask(backwards), rtol=1e-9, atol=1e-12):
            raise SamplerError(
                f"{self.asks} of r_sampler() gives a row another answer beside other rows, or takes R's own random "
                "numbers; it must be a function of the row, and of its uniform number."
            )

    def _ask(self, what: str, key: str, table: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.name not in _lent:
            raise SamplerError(f"no R session has lent {self.name!r}; an explainer with functions of R is used from R.")
        function, thread = _lent[self.name]
        if threading.get_ident() != thread:
            raise RError("R has one thread, and was asked from a second one; set n_jobs = 1")
        answer = function(what, key, table)
        if answer.get("error") is not None:
            raise RError(f"{what} of r_sampler() stopped: {answer['error']}")
        return answer


def _numbers(answer: Mapping[str, Any]) -> Floats:
    return np.frombuffer(bytes(answer["values"]), dtype="<f8").astype(np.float64)


def _sent(given: Table) -> dict[str, Any]:
    columns = [_column(feature, given.matrix[:, j]) for j, feature in enumerate(given.features)]
    return {"n_rows": given.n_rows, "columns": columns}


def _column(feature: Feature, values: Floats, codes: Floats | None = None) -> dict[str, Any]:
    """Return one column for R: numbers as they are, levels by their names, all of them or those with the codes."""
    missing = np.isnan(values)
    states = bytearray(missing.astype(np.uint8).tobytes()) if missing.any() else bytearray()
    sent = {"name": str(feature.name), "states": states, "texts": bytearray()}
    if feature.levels is None:
        numbers = np.where(missing, 0.0, values).astype("<f8")
        return {**sent, "kind": "double", "values": bytearray(numbers.tobytes())}
    used = np.arange(feature.n_levels, dtype=np.float64) if codes is None else codes
    places = np.where(missing, 0, np.searchsorted(used, values)).astype("<i4")
    names = join_texts([str(feature.levels[int(code)]) for code in used])
    kind = "ordered" if feature.kind == "ordered" else "factor"
    return {**sent, "kind": kind, "values": bytearray(places.tobytes()), "texts": names}
