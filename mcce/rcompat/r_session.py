"""Functions of an R session as a conditional (`mcce.rcompat.conditional`).

R registers a function of (what, key, table) under a name (`lend`); a stored explainer has only the name. "learn" gets
givens, target `y` and `seed`, and returns a key; "forget" drops it. "probs", "quantiles", "draw" and "own_draw" get
rows, `numbers` and `seed`, and return the bytes of doubles (`RConditional.query_r`). Tables are written by
`mcce.rcompat.columns`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Floats
from mcce.exceptions import InputError, MCCEError, SamplerError, did_you_mean, listing
from mcce.rcompat.columns import columns_of, describe_table
from mcce.rcompat.conditional import N_QUANTILES, QUESTIONS, RConditional
from mcce.samplers.base import SAMPLERS
from mcce.samplers.registry import register_sampler
from mcce.table import Feature

Lent = Callable[[str, str, Mapping[str, Any]], Mapping[str, Any]]

NAME = "lent_by_r"

_lent: dict[str, tuple[Lent, int]] = {}  # functions of this process's R session, by name, with its thread


class RError(MCCEError):
    """A function of R raised an error, or cannot be called from this process."""


def lend(name: str, function: Lent) -> None:
    """Register a function of R under a name; replace an earlier one of that name."""
    if NAME not in SAMPLERS.known:
        register_sampler(NAME, LentSampler)
    _lent[name] = function, threading.get_ident()


class LentSampler(RConditional):
    """A conditional whose model is fitted and queried by functions of an R session.

    Parameters
    ----------
    name : str
        The name under which R has registered its functions.
    returns : {"draw", "probs", "quantiles"}
        What the functions return.
    own_rng : bool
        Whether `draw` uses R's generator.
    kinds : sequence of str or None
        Kinds of target that the functions can draw; None for all kinds that suit `returns`.
    maker : str
        The function of the R package that created the sampler, for messages.
    n_quantiles : int
        Number of levels that `quantiles` is called with.
    random_state : int
        Seed of R's generator during `learn`, together with the chain's.
    """

    own_rng_as_written = "own_rng = TRUE"

    def __init__(
        self,
        *,
        name: str = "",
        returns: str = "draw",
        own_rng: bool = False,
        kinds: Sequence[str] | None = None,
        maker: str = "r_sampler()",
        n_quantiles: int = N_QUANTILES,
        random_state: int = 0,
    ) -> None:
        self.name = name
        self.returns = returns
        self.own_rng = own_rng
        self.kinds = kinds
        self.maker = maker
        self.n_quantiles = n_quantiles
        self.random_state = random_state

    @property
    def handles(self) -> frozenset[str]:  # type: ignore[override]
        can = super().handles
        return can if self.kinds is None else can & frozenset(self.kinds)

    def check_target(self, feature: Feature) -> None:
        if feature.kind not in self.handles:
            raise SamplerError(
                f"{self.maker} cannot model {feature.name!r}: it is {feature.kind}, and the sampler handles "
                f"{listing(sorted(self.handles))}. Choose another sampler for it."
            )

    def question(self) -> str:
        return self.returns

    def check_parameters(self) -> None:
        if self.returns not in QUESTIONS:
            raise InputError(f"returns of LentSampler is {self.returns!r}; {did_you_mean(self.returns, QUESTIONS)}")
        super().check_parameters()

    def learn_in_r(self, x: pd.DataFrame, y: pd.Series[Any], seed: int) -> str:
        target = _sent(y.to_frame())["columns"][0]
        return str(self._call("learn", "", {**_sent(x), "y": target, "seed": seed})["key"])

    def query_r(self, question: str, learned: str, newdata: pd.DataFrame, numbers: Floats, seed: int) -> Floats:
        packed = bytearray(numbers.astype("<f8").tobytes())
        answer = self._call(question, learned, {**_sent(newdata), "numbers": packed, "seed": seed})
        return np.frombuffer(bytes(answer["values"]), dtype="<f8").astype(np.float64)

    def forget_in_r(self, learned: str) -> None:
        self._call("forget", learned, {"n_rows": 0, "columns": []})

    def _call(self, what: str, key: str, table: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.name not in _lent:
            raise SamplerError(f"no R session has registered {self.name!r}; use explainers with functions of R from R.")
        function, thread = _lent[self.name]
        if threading.get_ident() != thread:
            raise RError("R has one thread, and was called from a second one; set n_jobs = 1")
        answer = function(what, key, table)
        if answer.get("error") is not None:
            called = "draw" if what == "own_draw" else what
            raise RError(f"feature {self.target_}: {called} of {self.maker} stopped: {answer['error']}")
        return answer


def _sent(frame: pd.DataFrame) -> dict[str, Any]:
    return describe_table(frame, columns_of(frame))
