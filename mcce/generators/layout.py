"""The columns of a chain: which ones each conditional sees, and its sampler.

1. The columns are arranged once: the fixed features, then the mutable ones in visiting order. A chain puts the
   decision, if it conditions on one, after the fixed features (`Layout.chain_table`).
2. The conditional of a feature sees all columns before it, or those that `predictors` (mice's predictor matrix as a
   dict) names, and always the decision.
3. ``sampler`` is one sampler for all, or a dict with samplers of some features; "*" names the rest, which is "cart" by
   default. If the table has a column "*", the key names this column, and the rest is "cart".
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Bools, Floats
from mcce.exceptions import InputError, did_you_mean
from mcce.generators.missing import WithMissing
from mcce.samplers import ConditionalSampler, make_sampler
from mcce.samplers.base import check_problem
from mcce.table import Feature, Schema, Table

Predictors = Mapping[Any, Sequence[Hashable]]
Samplers = str | ConditionalSampler | Mapping[Any, str | ConditionalSampler]

REST = "*"
DEFAULT = "cart"


@dataclass(frozen=True)
class Layout:
    """The columns of a chain, in their order.

    Attributes
    ----------
    features : the fixed features, the decision if there is one, the mutable features in visiting order.
    n_fixed : number of fixed features.
    with_decision : whether the decision is a column.
    predictors : columns that a column is modelled on, for those that do not see all columns before them.
    """

    features: tuple[Feature, ...]
    n_fixed: int
    with_decision: bool
    predictors: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema, n_fixed: int, with_decision: bool, predictors: Predictors | None) -> Layout:
        """Lay out the columns of an arranged schema (steps 1 and 2)."""
        features = list(schema.features)
        if with_decision:
            features.insert(n_fixed, _decision_feature(schema.names))
        layout = cls(tuple(features), n_fixed, with_decision)
        return cls(tuple(features), n_fixed, with_decision, layout._read_predictors(predictors, schema.names))

    @property
    def n_given(self) -> int:
        """Number of columns that are given: the fixed features and the decision."""
        return self.n_fixed + self.with_decision

    def place(self, column: int) -> int:
        """Return the position of a mutable column of the chain in the arranged schema."""
        return column - self.with_decision

    def column(self, place: int) -> int:
        """Return the column of the chain for a position in the arranged schema."""
        return place + (self.with_decision and place >= self.n_fixed)

    def given(self, table: Table, column: int) -> Table:
        """Return the part of a chain's table that a column is modelled on."""
        return table.select(self.predictors[column]) if column in self.predictors else table.first(column)

    def chain_table(self, rows: Floats, decision: Bools | bool | None) -> Table:
        """Return arranged rows as a chain's table."""
        matrix = np.empty((rows.shape[0], len(self.features)), order="F")
        matrix[:, : self.n_fixed] = rows[:, : self.n_fixed]
        if self.with_decision:
            matrix[:, self.n_fixed] = decision
        matrix[:, self.n_given :] = rows[:, self.n_fixed :]
        return Table(self.features, matrix)

    def _read_predictors(self, predictors: Predictors | None, names: list[Any]) -> dict[int, tuple[int, ...]]:
        if predictors is not None and not isinstance(predictors, Mapping):
            raise InputError(f"predictors is {predictors!r}; give a dict of lists, for example {{'salary': ['age']}}.")
        mutable = names[self.n_fixed :]
        chosen: dict[int, tuple[int, ...]] = {}
        for target, columns in (predictors or {}).items():
            if target not in mutable:
                what = "is fixed" if target in names else "is not a column of X"
                raise InputError(f"predictors names {target!r}, which {what}; {did_you_mean(target, mutable)}")
            if not isinstance(columns, (list, tuple, pd.Index, np.ndarray)):
                raise InputError(f"predictors[{target!r}] is {columns!r}; give a list of columns.")
            place = names.index(target)
            for name in columns:
                if name not in names:
                    raise InputError(
                        f"predictors[{target!r}] names {name!r}, which is not a column of X; "
                        f"{did_you_mean(name, names)}"
                    )
                if names.index(name) >= place:
                    raise InputError(
                        f"predictors[{target!r}] names {name!r}, which is not drawn before it; change visit_sequence, "
                        "or leave it out."
                    )
            visible = {self.column(names.index(name)) for name in columns}
            chosen[self.column(place)] = tuple(sorted(visible | ({self.n_fixed} if self.with_decision else set())))
        return chosen


def _decision_feature(names: list[Any]) -> Feature:
    """Return the decision as a feature with two levels, named like no column."""
    name = "<decision>"
    while name in names:
        name = f"<{name}>"
    return Feature.boolean(name)


def make_samplers(sampler: Samplers, layout: Layout, table: Table) -> list[ConditionalSampler]:
    """Return an unfitted sampler for each mutable feature of a chain's table (step 3); raise if one cannot model it."""
    mutable = [feature.name for feature in layout.features[layout.n_given :]]
    fixed = [feature.name for feature in layout.features[: layout.n_fixed]]
    chosen = dict(sampler) if isinstance(sampler, Mapping) else {}
    rest = DEFAULT if isinstance(sampler, Mapping) else sampler
    if REST in chosen and REST not in (*mutable, *fixed):
        rest = chosen.pop(REST)
    for name in chosen:
        if name not in mutable:
            what = "is fixed and has no sampler" if name in fixed else "is not a column of X"
            raise InputError(f"sampler names {name!r}, which {what}; {did_you_mean(name, mutable)}")
    samplers: list[ConditionalSampler] = []
    for column, name in enumerate(mutable, layout.n_given):
        family, target = make_sampler(chosen.get(name, rest)), table.column(column)
        is_missing = np.isnan(target.values)
        if is_missing.all() and not family.accepts_missing_target:
            family = make_sampler("marginal")  # there is no known value to learn from
        models_missing = family.accepts_missing_target or not is_missing.any()
        check_problem(family, layout.given(table, column), target if models_missing else target.take(~is_missing))
        samplers.append(family if models_missing else WithMissing(family))
    return samplers
