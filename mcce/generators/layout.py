"""A table in the order of a chain: the fixed features, the visiting order, and the predictors and sampler of a feature.

1. The columns of a chain are the fixed features as in the data, the decision if there is one, then the mutable features
   in visiting order (`ChainLayout`).
2. A feature is modelled on all columns before it, unless `predictors`, mice's predictor matrix in the form of a dict,
   names some of them, or it is in a causal graph, which then sets its place and its parents (`mcce.generators.graph`).
   The decision is always added (`choose_predictors`).
3. Each feature has a sampler: one for all, one for each, or one chosen by cross-validation (`samplers_for`,
   `mcce.generators.auto`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats
from mcce.base.checks import check_count
from mcce.exceptions import InputError, SamplerError, did_you_mean, listing
from mcce.generators.auto import AUTO, Auto, Choice, choose_samplers
from mcce.generators.graph import Graph
from mcce.generators.visit import VisitSequence, make_visit_sequence
from mcce.samplers import ConditionalSampler, make_sampler
from mcce.samplers.base import samplers_that_handle_missing, samplers_with_min_donors
from mcce.samplers.dp import DPSampler
from mcce.table import Data, Feature, Kind, Schema, Table
from mcce.table.checks import check_fixed, check_magnitudes, refuse_iterator
from mcce.wording import Parameter, Setting, Value

Predictors = Mapping[Any, Sequence[Hashable]]
Samplers = str | ConditionalSampler | Auto | Mapping[Any, str | ConditionalSampler | Auto]

REST = "*"


@dataclass(frozen=True)
class ChainLayout:
    """The columns in chain order.

    Attributes
    ----------
    features : all columns in chain order, the decision among them.
    fixed_positions : positions in the data of the fixed features.
    n_given : number of given columns: the fixed features, and the decision if there is one.
    place_in_chain : for each column of the data, its place in the chain.
    with_decision : whether the decision is a column of the chain.
    given_columns : the columns that a column of the chain is modelled on, for columns with explicit predictors.
    """

    features: tuple[Feature, ...]
    fixed_positions: tuple[int, ...]
    n_given: int
    place_in_chain: tuple[int, ...]
    with_decision: bool
    given_columns: Mapping[int, Sequence[int]] = field(default_factory=dict)

    @classmethod
    def arrange(
        cls,
        schema: Schema,
        fixed: Sequence[Any],
        visited: Sequence[Any],
        with_decision: bool,
        predictors: Predictors | None = None,
    ) -> ChainLayout:
        """Lay out the columns of a table (steps 1 and 2)."""
        names = schema.names
        fixed_positions = [names.index(name) for name in fixed]
        in_chain = fixed_positions + [names.index(name) for name in visited]
        features = [schema.features[j] for j in in_chain]
        place = {j: k for k, j in enumerate(in_chain)}
        if with_decision:
            features.insert(len(fixed), _decision_feature(names))
            place = {j: k + int(k >= len(fixed)) for j, k in place.items()}
        n_given = len(fixed) + int(with_decision)
        in_order = [feature.name for feature in features]
        return cls(
            tuple(features),
            tuple(fixed_positions),
            n_given,
            tuple(place[j] for j in range(len(names))),
            with_decision,
            choose_predictors(predictors, in_order, n_given, with_decision=with_decision),
        )

    def columns_given(self, k: int) -> Sequence[int]:
        """Return the columns of the chain that column `k` is modelled on."""
        return self.given_columns.get(k, range(k))

    def given(self, table: Table, k: int) -> Table:
        """Return the part of a table in chain order that column `k` is modelled on."""
        return table.select(self.given_columns[k]) if k in self.given_columns else table.first(k)

    def order(self, matrix: Floats, decision: bool | Bools = True) -> Table:
        """Return encoded rows (columns in data order) as a table in chain order."""
        ordered = np.empty((matrix.shape[0], len(self.features)), order="F")
        ordered[:, self.place_in_chain] = matrix
        if self.with_decision:
            self.check_decision(decision, matrix.shape[0])
            ordered[:, self.n_given - 1] = decision
        return Table(self.features, ordered)

    def in_data_order(self, givens: Floats, drawn: Floats) -> Floats:
        """Return rows with columns in data order, from the givens and the values of the visited features."""
        rows = np.empty((givens.shape[0], len(self.place_in_chain)), order="F")
        for j, k in enumerate(self.place_in_chain):
            rows[:, j] = givens[:, k] if k < self.n_given else drawn[:, k - self.n_given]
        return rows

    @staticmethod
    def check_decision(decision: bool | Bools, n_rows: int) -> None:
        """Raise unless the decision is a boolean, or one boolean for each row."""
        if np.asarray(decision).dtype != bool or np.shape(decision) not in ((), (n_rows,)):
            raise InputError("decision must be True or False, for all rows or for each row.")


def _decision_feature(names: list[Any]) -> Feature:
    """Return the decision as a two-level feature, with a name that no column has."""
    name = "<decision>"
    while name in names:
        name = f"<{name}>"
    return Feature(name, "categorical", np.dtype(bool), pd.Index([False, True], dtype=object), 0.0, 1.0)


def check_training_decision(decision: Any, n_rows: int) -> None:
    """Raise unless the decision has one boolean for each training row."""
    if decision is not None and (np.shape(decision) != (n_rows,) or np.asarray(decision).dtype != bool):
        raise InputError(
            f"decision has shape {np.shape(decision)} and dtype {np.asarray(decision).dtype} for "
            f"{n_rows} rows of X; give one boolean a row."
        )


def choose_predictors(
    predictors: Predictors | None, names: list[Any], n_given: int, *, with_decision: bool
) -> dict[int, list[int]]:
    """Return the chain columns that a feature is modelled on, for the features with explicit predictors.

    `names` are the columns in chain order. The first `n_given` are given, the last of them the decision if there is
    one.
    """
    if predictors is not None and not isinstance(predictors, Mapping):
        raise InputError(f"predictors is {predictors!r}; give a dict of lists, for example {{'salary': ['age']}}.")
    visited = names[n_given:]
    fixed = names[: n_given - with_decision]
    chosen: dict[int, list[int]] = {}
    for target, columns in (predictors or {}).items():
        if isinstance(columns, str):
            raise InputError(f"predictors[{target!r}] is {columns!r}; give a list of columns: [{columns!r}].")
        if target not in visited:
            what = "is fixed" if target in fixed else "is not a column of X"
            raise InputError(f"predictors names {target!r}, which {what}; {did_you_mean(target, visited)}")
        if not isinstance(columns, Iterable):
            raise InputError(f"predictors[{target!r}] is {columns!r}; give a list of columns.")
        refuse_iterator(columns, f"predictors[{target!r}]")
        place = names.index(target)
        for name in columns:
            if name not in names:
                raise InputError(
                    f"predictors[{target!r}] names {name!r}, which is not a column of X; {did_you_mean(name, names)}"
                )
            if names.index(name) >= place:
                raise InputError(
                    f"predictors[{target!r}] names {name!r}, which is not drawn before it; change visit_sequence, "
                    "or leave it out."
                )
        decision = [n_given - 1] if with_decision else []
        chosen[place] = sorted({*(names.index(name) for name in columns), *decision})
    return chosen


def samplers_for(
    sampler: Samplers,
    table: Table,
    layout: ChainLayout,
    *,
    min_donors: int | None,
    seed: int,
    n_jobs: int | None,
    progress: bool | None,
) -> tuple[list[ConditionalSampler], Choice | None]:
    """Return an unfitted sampler for each visited feature, and the `Choice` if some are chosen by cross-validation.

    `table` has the training rows, columns in chain order.
    """
    if min_donors is not None:
        check_count(min_donors, "min_donors", or_else=(", or ", Value(None), " for any number"))
    known = [table.features[k].name for k in layout.place_in_chain]  # without the decision
    weighted = table.weights is not None
    made = make_samplers(sampler, layout, known, min_donors, weighted=weighted)
    named = {k: each for k, each in enumerate(made, layout.n_given) if isinstance(each, ConditionalSampler)}
    still_open = {k: each for k, each in enumerate(made, layout.n_given) if isinstance(each, Auto)}
    if not still_open:
        return list(named.values()), None
    for auto in still_open.values():
        auto.check(table.n_rows)
    chosen, choice = choose_samplers(
        still_open,
        table,
        layout.columns_given,
        lambda candidate, k: suited_to(candidate, layout, k, min_donors, weighted=weighted),
        seed=seed,
        n_jobs=n_jobs,
        progress=progress,
    )
    found = named | chosen
    return [found[k] for k in sorted(found)], choice


def make_samplers(
    sampler: Samplers,
    layout: ChainLayout,
    known: Sequence[Any],
    min_donors: int | None = None,
    *,
    weighted: bool = False,
) -> list[ConditionalSampler | Auto]:
    """Return an unfitted sampler for each visited feature; raise if one cannot model its feature.

    `known` are all columns of X. `min_donors` is set on every sampler. It is an error for samplers without this
    parameter, as weights are for samplers that do not take them. An `Auto` stays an `Auto`.
    """
    visited = [feature.name for feature in layout.features[layout.n_given :]]
    chosen: dict[Any, str | ConditionalSampler | Auto]
    chosen = dict(sampler) if isinstance(sampler, Mapping) else {REST: sampler}
    for name in chosen:
        if name != REST and name not in visited:
            what = ("is fixed and has no sampler",) if name in known else ("is not a column of ", Parameter("X"))
            raise InputError(
                Parameter("sampler"), f" names {name!r}, which ", *what, f"; {did_you_mean(name, visited)}"
            )
    without = [name for name in visited if name not in chosen]
    if without and REST not in chosen:
        raise InputError(
            Parameter("sampler"),
            f" has no entry for {listing(without)}; name one for the rest under '*', as in ",
            Setting("sampler", {"*": "cart"}),
            ".",
        )
    made: list[ConditionalSampler | Auto] = []
    for k, name in enumerate(visited, layout.n_given):
        named = chosen.get(name, chosen.get(REST, "cart"))
        if isinstance(named, Auto) or (isinstance(named, str) and named == AUTO):
            made.append(named if isinstance(named, Auto) else Auto())
        else:
            made.append(suited_to(make_sampler(named), layout, k, min_donors, weighted=weighted))
    return made


def suited_to(
    made: ConditionalSampler,
    layout: ChainLayout,
    k: int,
    min_donors: int | None = None,
    *,
    weighted: bool = False,
    private: bool = False,
) -> ConditionalSampler:
    """Return the sampler with `min_donors`; raise if it cannot model column `k` of the chain.

    `private` is whether `mcce.Privacy` makes the sampler. Otherwise the chain stores training values, so the noise of a
    `DPSampler` would cost accuracy without protecting them.
    """
    feature = layout.features[k]
    if isinstance(made, DPSampler) and made.testing_seed is None and not private:
        raise SamplerError(
            f"DPSampler for {feature.name!r} does not make this model private: a chain without mcce.Privacy stores "
            "training values, ranges and levels as they are. Use sampler=mcce.Privacy(epsilon=..., bounds=..., "
            "levels=...) for all columns; for an experiment that need not be private, give DPSampler a testing_seed."
        )
    if min_donors is not None:
        made = _bound_donors(made, min_donors, feature.name)
    made.check_target(feature)
    if weighted:
        made.check_weights(feature)
    involved = [*(layout.features[j] for j in layout.columns_given(k)), feature]
    seen_missing = [f.name for f in involved if f.has_missing]
    if seen_missing and not made.handles_missing:
        raise SamplerError(
            Value(made),
            f" for {feature.name!r} does not handle missing values, and {listing(seen_missing)} has "
            f"some; fill them, or use a sampler that does ({samplers_that_handle_missing()}).",
        )
    return made


def _bound_donors(made: ConditionalSampler, min_donors: int, name: object) -> ConditionalSampler:
    """Return a sampler that draws from at least `min_donors` training rows."""
    parameters = made.get_params(deep=False)
    if "min_donors" not in parameters:
        raise SamplerError(
            Value(made),
            f" for {name!r} cannot guarantee ",
            Setting("min_donors", min_donors),
            ": it does not draw from pools of training rows. Use a sampler that does "
            f"({samplers_with_min_donors()}), or leave ",
            Parameter("min_donors"),
            " out.",
        )
    return type(made)(**{**parameters, "min_donors": max(min_donors, parameters["min_donors"])})


@dataclass(frozen=True)
class Arranged:
    """Training rows in the order of a chain.

    Attributes
    ----------
    table, ordered : the encoded rows, columns in data order, and in chain order with the decision.
    visit_sequence : the mutable features in visiting order.
    associations : the associations that determine a correlation order, or None.
    graph : the causal graph that determines the order, with the names of the columns, or None.
    """

    schema: Schema
    table: Table
    ordered: Table
    layout: ChainLayout
    visit_sequence: list[Any]
    associations: pd.DataFrame | None
    graph: Graph | None = None

    @property
    def givens(self) -> Floats:
        """Encoded fixed values, in data order, then the decision if there is one."""
        return np.asfortranarray(self.ordered.matrix[:, : self.layout.n_given])


def arrange(
    X: Data,
    decision: Any,
    *,
    fixed: Sequence[Hashable],
    kinds: Mapping[Any, Kind] | None,
    visit_sequence: VisitSequence = "data",
    predictors: Predictors | None = None,
    graph: Any = None,
    schema: Schema | None = None,
    weights: Floats | None = None,
    progress: bool | None = None,
) -> Arranged:
    """Read a table, check the settings that name its columns, and order its columns; parameters as in `ChainModel`."""
    schema = Schema.from_data(X, kinds) if schema is None else schema
    table = schema.encode(X)
    if weights is not None:
        table = replace(table, weights=weights)
    check_magnitudes(table, "X")
    given = check_fixed(fixed, schema.names)
    associations, read = None, None
    if graph is None:
        visited, associations = make_visit_sequence(visit_sequence, table, given, progress)
    else:
        refuse_beside_graph(visit_sequence, predictors)
        read = Graph.read(graph).of_columns(schema.names)
        visited, predictors = read.visit(schema.names, given)
    if not visited:
        raise InputError(f"all {len(given)} columns of ", Parameter("X"), " are fixed; leave at least one mutable.")
    check_training_decision(decision, table.n_rows)
    layout = ChainLayout.arrange(schema, given, visited, decision is not None, predictors)
    ordered = layout.order(table.matrix, True if decision is None else np.asarray(decision))
    if weights is not None:
        ordered = replace(ordered, weights=weights)
    return Arranged(schema, table, ordered, layout, visited, associations, read)


def refuse_beside_graph(visit_sequence: object, predictors: object) -> None:
    """Raise if an order or predictors are given with a causal graph, which sets both."""
    ordered = not (isinstance(visit_sequence, str) and visit_sequence == "data")
    if ordered or predictors is not None:
        name, value = ("visit_sequence", visit_sequence) if ordered else ("predictors", predictors)
        raise InputError(
            Parameter(name),
            " is ",
            Value(value),
            ", but ",
            Parameter("graph"),
            " sets the order of the features and their predictors; leave one of them out.",
        )
