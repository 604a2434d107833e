"""The chain: p(mutable | fixed, decision) as a product of univariate conditionals (paper, equation 2).

1. Arrange the columns: the fixed features, the decision if there is one, the mutable features in visiting order.
2. Fit one sampler for each mutable feature given the columns before it. The fits do not depend on each other.
3. To draw a row, draw one feature after the other, each given the fixed values and the values drawn before
   (`mcce.generators.draw`).
4. The log density of a row is the sum of those of its features, each given the row's own values before it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from mcce._utils import Bools, Floats, map_threads
from mcce.exceptions import InputError, did_you_mean
from mcce.generators.base import Drawn, DrawRequest, Generator
from mcce.generators.draw import draw_rows, log_density
from mcce.generators.layout import Layout, Predictors, Samplers, make_samplers
from mcce.generators.missing import WithMissing
from mcce.generators.visit import VisitSequence, make_visit_sequence
from mcce.rng import derive_key
from mcce.samplers import ConditionalSampler
from mcce.table import Kind, Table


class ChainModel(Generator):
    """A chain of conditional samplers: a generative model of a table.

    Parameters
    ----------
    fixed : list of column names
        Features that are conditioned on and never drawn.
    sampler : str, ConditionalSampler or dict
        One sampler for every feature, or ``{feature: sampler, ..., "*": sampler for the rest}``; without "*" the rest
        is "cart". Names are those of `mcce.available_samplers()`.
    visit_sequence : "data", "reversed", "correlation" or list
        Order of the mutable features, see `mcce.generators.visit`.
    predictors : dict or None
        ``{feature: [columns]}``: the columns that a feature is modelled on, fixed ones or features visited before it.
        The decision is always added. A feature that is not named is modelled on all of them.
    kinds : dict or None
        Overrides of column kinds, ``{column: "numeric" | "categorical" | "ordered"}``.
    random_state : int or None
        Seed of fit and draws; None takes a fresh one at `fit` (kept as `seed_`).
    n_jobs : int or None
        Threads: None is 1, -1 all cores. The results do not depend on it.

    Attributes
    ----------
    visit_sequence_ : the mutable features in visiting order.
    samplers_ : the fitted samplers in this order.
    schema_, fixed_, seed_, ... : see `Generator`.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> rows = chain.sample(100, given=loans.X.loc[[0, 1], ["age", "sex"]])
    >>> rows.shape, list(rows.index.names)
    ((200, 10), ['id', 'draw'])
    """

    visit_sequence_: list[Any]
    samplers_: list[ConditionalSampler]

    def __init__(
        self,
        *,
        fixed: Sequence[Hashable] = (),
        sampler: Samplers = "cart",
        visit_sequence: VisitSequence = "data",
        predictors: Predictors | None = None,
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(fixed=fixed, kinds=kinds, random_state=random_state, n_jobs=n_jobs)
        self.sampler = sampler
        self.visit_sequence = visit_sequence
        self.predictors = predictors

    def _visit(self, table: Table, fixed: list[Any]) -> list[Any]:
        return make_visit_sequence(self.visit_sequence, table, fixed)

    def _fit(self, table: Table, decision: Bools | None) -> None:
        layout = Layout.of(self.schema_, self.n_fixed_, decision is not None, self.predictors)
        ordered = layout.chain_table(table.matrix, decision)
        unfitted = make_samplers(self.sampler, layout, ordered)

        def fit_one(column: int) -> ConditionalSampler:
            sampler = unfitted[column - layout.n_given]
            family = sampler.family if isinstance(sampler, WithMissing) else sampler
            if family.get_params(deep=False).get("random_state", 0) is None:
                family.set_params(random_state=derive_key(self.seed_, "fit", layout.place(column)) % 2**32)
            return sampler.fit(layout.given(ordered, column), ordered.column(column))

        # later conditionals see more columns and take longer; starting with them balances the threads
        columns = range(layout.n_given, len(layout.features))
        self.samplers_ = map_threads(fit_one, columns[::-1], self.n_jobs, "fitting")[::-1]
        self.visit_sequence_ = self.schema_.names[self.n_fixed_ :]
        self._layout = layout

    def conditional(self, name: Hashable) -> ConditionalSampler:
        """Return the fitted sampler of a mutable feature."""
        self.check_fitted()
        if name not in self.visit_sequence_:
            raise InputError(f"{name!r} has no conditional; {did_you_mean(name, self.visit_sequence_)}")
        return self.samplers_[self.visit_sequence_.index(name)]

    def conditional_tables(self, rows: Floats, decision: bool | Bools = True) -> dict[Any, tuple[Table, Floats]]:
        """Return, by mutable feature, what its conditional is given in encoded rows, and the feature's values."""
        self.check_fitted()
        table = self._layout.chain_table(rows, decision)
        columns = range(self._layout.n_given, len(self._layout.features))
        return {
            name: (self._layout.given(table, column), table.matrix[:, column])
            for name, column in zip(self.visit_sequence_, columns)
        }

    def draw(self, request: DrawRequest) -> Drawn:
        """Draw one row for each row of the request, feature by feature in visiting order."""
        self.check_fitted()
        return draw_rows(self._layout, self.samplers_, request, self.n_jobs)

    def _log_density(self, table: Table, decision: Bools | None) -> Floats:
        by_feature = self.conditional_tables(table.matrix, True if decision is None else decision)
        parts = [
            log_density(sampler, self.schema_.features[place], *by_feature[name])
            for place, (name, sampler) in enumerate(zip(self.visit_sequence_, self.samplers_), self.n_fixed_)
        ]
        return np.column_stack(parts)
