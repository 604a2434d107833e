"""The interface of a fitted explainer, for the diagnostics, batches and the explorer, which are layers below it."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import pandas as pd

from mcce.counterfactuals import Counterfactuals
from mcce.generators.base import Generator
from mcce.model.decisions import Decision
from mcce.plausibility.derived import Formula
from mcce.plausibility.relations import Relations
from mcce.plausibility.score import Plausibility
from mcce.report.names import Names

Self = TypeVar("Self", bound="Explainer")


class Explainer(Protocol):
    """A fitted explainer; `mcce.MCCE` is the one implementation and documents every member."""

    model: Any
    decision: Any
    constraints: Any
    n_jobs: int | None
    fit_seconds_: float
    decision_: Decision
    derived_: tuple[Formula, ...]
    generator_: Generator
    names_: Names
    relations_: Relations

    @property
    def plausibility_(self) -> Plausibility: ...

    @property
    def sampler(self) -> Any: ...

    @property
    def generator(self) -> Any: ...

    def fingerprint(self) -> dict[str, Any]: ...

    def set_params(self: Self, **params: Any) -> Self: ...

    def fit(self: Self, X: Any, *args: Any, **kwargs: Any) -> Self: ...

    def explain(self, X: Any, *args: Any, **kwargs: Any) -> Counterfactuals: ...

    def recourse(self, X: Any, *args: Any, **kwargs: Any) -> Counterfactuals: ...

    def trade_off(self, X: Any, *args: Any, **kwargs: Any) -> Any: ...

    def generate(self, X: Any, *args: Any, **kwargs: Any) -> pd.DataFrame: ...
