"""The parametric sampler for the kind of the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from mcce.base.arrays import Bools, Floats, Ints
from mcce.rng import RowStreams
from mcce.samplers.base import BaseMeasure, ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.parametric.logistic import LogregSampler, PolrSampler, PolyregSampler
from mcce.samplers.parametric.norm import NormRankSampler
from mcce.samplers.parametric.regression import RegressionSampler
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.registry import register_sampler
from mcce.samplers.smoothing import Smoothing, check_smoothing
from mcce.samplers.summary import Summary
from mcce.storage.fields import check_type, learned
from mcce.table import Column, Feature, Table

Chooser = TypeVar("Chooser", bound="ParametricSampler")


@register_sampler("parametric")
class ParametricSampler(ConditionalSampler):
    """The parametric sampler that synthpop uses for the kind of the target.

    Numeric: `NormRankSampler`. Two levels: `LogregSampler`. More: `PolyregSampler`. Ordered: `PolrSampler`. All methods
    are delegated to the chosen sampler, the attribute `sampler_`.

    Parameters
    ----------
    smoothing : "density" or None
        Smoothing of a numeric target.
    formula, proper, random_state : see `NormSampler`

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler="parametric", fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> chain.samplers_["salary"].sampler_
    NormRankSampler()
    """

    handles_missing = True
    thread_safe = True
    takes_weights = True
    discloses = "{sampler_}"

    sampler_: RegressionSampler = learned(RegressionSampler)

    def __init__(
        self,
        *,
        smoothing: Smoothing = None,
        formula: str | None = None,
        proper: bool = False,
        random_state: int | None = 0,
    ) -> None:
        self.smoothing = smoothing
        self.formula = formula
        self.proper = proper
        self.random_state = random_state

    def fit(self: Chooser, given: Table, target: Column) -> Chooser:
        self.check_target(target.feature)
        check_smoothing(self.smoothing, self)
        cls = _class_for(target.feature)
        smoothed: Any = {"smoothing": self.smoothing} if cls is NormRankSampler else {}
        chosen = cls(formula=self.formula, proper=self.proper, random_state=self.random_state, **smoothed)
        if self._fit_key is not None:
            chosen.seed_fit(self._fit_key)
        self.sampler_ = chosen.fit(given, target)
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        return self.sampler_.sample(given, rng, within)

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        return self.sampler_.sample_within(given, rng, within)

    def supports(self, given: Table, values: Floats) -> Bools:
        return self.sampler_.supports(given, values)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        return self.sampler_.log_density(given, values, training_rows)

    def distribution(self, given: Table) -> DistributionFunctions:
        return self.sampler_.distribution(given)

    def base_measure(self) -> BaseMeasure:
        return self.sampler_.base_measure()

    def summary(self) -> Summary:
        return self.sampler_.summary()

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        check_type(self.sampler_, "sampler_", _class_for(target))
        self.sampler_.check_state(given, target, n_rows)


def _class_for(feature: Feature) -> type[NormRankSampler | LogregSampler | PolyregSampler | PolrSampler]:
    if feature.is_numeric:
        return NormRankSampler
    if feature.kind == "ordered":
        return PolrSampler
    return LogregSampler if feature.n_levels <= 2 else PolyregSampler
