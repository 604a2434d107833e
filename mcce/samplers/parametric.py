"""The parametric sampler for the kind of the target."""

from __future__ import annotations

from typing import TypeVar

from mcce.samplers.base import ConditionalSampler, register_sampler
from mcce.samplers.design import RegressionSampler
from mcce.samplers.distributions import Distribution
from mcce.samplers.linear import NormRankSampler
from mcce.samplers.logistic import LogregSampler, PolrSampler, PolyregSampler
from mcce.table import Column, Feature, Table

Self = TypeVar("Self", bound="ParametricSampler")


@register_sampler("parametric")
class ParametricSampler(ConditionalSampler):
    """The parametric sampler that synthpop uses for the kind of the target.

    Numeric: `NormRankSampler`. Two levels: `LogregSampler`. More: `PolyregSampler`. Ordered: `PolrSampler`.

    Parameters
    ----------
    formula, proper, random_state : see `NormSampler`

    Attributes
    ----------
    sampler_ : the fitted sampler.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler="parametric", fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> type(chain.conditional("salary").sampler_).__name__
    'NormRankSampler'
    """

    def __init__(self, *, formula: str | None = None, proper: bool = False, random_state: int | None = None) -> None:
        self.formula = formula
        self.proper = proper
        self.random_state = random_state

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Fit the sampler for the kind of the target."""
        chosen = _class_for(target.feature)
        self.sampler_ = chosen(formula=self.formula, proper=self.proper, random_state=self.random_state)
        self.sampler_.fit(given, target)
        return self

    def distribution(self, given: Table) -> Distribution:
        """Return the distribution of the fitted sampler."""
        return self.sampler_.distribution(given)


def _class_for(feature: Feature) -> type[RegressionSampler]:
    if feature.is_numeric:
        return NormRankSampler
    if feature.kind == "ordered":
        return PolrSampler
    return LogregSampler if feature.n_levels <= 2 else PolyregSampler
