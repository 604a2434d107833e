"""Donors from all rows: the bootstrap of one column, which ignores the givens (synthpop's `sample`)."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from mcce.samplers.base import ConditionalSampler, register_sampler
from mcce.samplers.distributions import Donors
from mcce.samplers.margin import Margin
from mcce.table import Column, Table

Self = TypeVar("Self", bound="MarginalSampler")


@register_sampler("marginal")
class MarginalSampler(ConditionalSampler):
    """Draws training values of the target, ignoring the givens.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler={"salary": "marginal", "*": "cart"}, fixed=["age", "sex"])
    >>> chain.fit(loans.X).sample(n=3)["salary"].isin(loans.X["salary"]).tolist()
    [True, True, True]
    """

    accepts_missing_target = True

    def fit(self: Self, given: Table, target: Column) -> Self:
        self.pool_ = np.sort(target.values)  # missing values last
        self.margin_ = Margin.fit(target.values, target.feature)
        return self

    def distribution(self, given: Table) -> Donors:
        begin = np.zeros(given.n_rows, dtype=np.int64)
        return Donors(self.pool_, begin, begin + self.pool_.size, margin=self.margin_)
