"""Interventions: rows as they would be if some of their features were set to other values.

A chain is read as a structural causal model (Pearl 2009, "Causality", section 7.1): the parents of a feature are the
columns that it is modelled on, its predictors. That these are its causes is an assumption of the user, which the data
cannot confirm. Without predictors, all features visited before a feature are its parents. With a causal graph
(`mcce.generators.graph`), the edges define the effects: a feature that only shares an unmeasured cause with a feature
that is set keeps its value, though it is modelled on it.

1. The features of the intervention are set. They no longer depend on their parents.
2. Features that are not their descendants keep their values.
3. Descendants are drawn in visiting order, each given the new values of its parents. u is the rank of the old value
   given the old parents (`mcce.samplers.ranks`), u' the new rank, and `keep` their dependence:

   - 0: independent. The value is a new draw, as for another row with the same parents.
   - 1: u' = u (abduction). The variation not explained by the parents is kept. A value whose parents do not change
     stays.
   - between: (norm^-1(u), norm^-1(u')) are normal with correlation `keep`, a Gaussian copula.

   New values are rounded to the grid of the column. If numbers are rounded after the sampler has drawn them, the rank
   is drawn from the ranks that are rounded to the value.
4. Derived columns are computed as soon as all their inputs have new values, in rows in which an input changes.
   Constraints are not applied.

With `keep` = 1 the result is the individual counterfactual of a model in which each feature is an increasing function
of one noise variable, given its parents. This is a common assumption for numbers. For unordered levels it is a
convention: the result depends on the order of the levels. With `keep` = 0 it does not.

A row's random numbers are a function of the seed, the feature, the values of the row before the intervention, the index
of the draw, and the number of equal rows before it, as in `ChainModel.sample`. So a row gets the same draws in any
batch, equal rows within a batch get different draws, and interventions on a row are compared by common random numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd
import scipy

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.exceptions import InputError, SamplerError, did_you_mean, listing, spell
from mcce.generators.graph import Graph
from mcce.generators.layout import ChainLayout
from mcce.rng import RowStreams, derive_key
from mcce.samplers import ConditionalSampler
from mcce.samplers.ranks import LEAST_RANK, MOST_RANK
from mcce.samplers.rounding import put_on_grid, ranks_on_grid
from mcce.table import Schema, Table


class ComputedColumn(Protocol):
    """A column that is computed from others, such as `mcce.plausibility.derived.Formula`."""

    @property
    def target(self) -> Hashable:
        """The column."""

    @property
    def inputs(self) -> tuple[Hashable, ...]:
        """The columns that it is computed from."""

    def compute_encoded(self, rows: Floats, schema: Schema) -> Floats:
        """Return the encoded column of encoded rows, columns in data order."""


def read_values(
    values: Mapping[Any, Any], schema: Schema, n_rows: int, derived: Sequence[ComputedColumn]
) -> dict[Hashable, Floats]:
    """Return the encoded values of an intervention, one for each row."""
    if not isinstance(values, Mapping) or not values:
        raise InputError(f'values is {spell(values)}; give a dict of features, as in {{"education": "master"}}.')
    inputs = {each.target: each.inputs for each in derived}
    found: dict[Hashable, Floats] = {}
    for name, value in values.items():
        if name not in schema.names:
            raise InputError(f"values names {name!r}, which is not a column of X; {did_you_mean(name, schema.names)}")
        if name in inputs:
            raise InputError(f"values names {name!r}, which is computed from {listing(inputs[name])}; set these.")
        feature = schema.features[schema.position(name)]
        if isinstance(value, (pd.Series, pd.Index, np.ndarray, list, tuple)):
            each: Any = list(value)
            if len(each) != n_rows:
                raise InputError(f"values[{name!r}] has {len(each)} values for {n_rows} rows; give {n_rows}, or one.")
        else:
            each = [value] * n_rows
        column = pd.Series(each, dtype=None if feature.is_numeric and n_rows else object)
        found[name] = feature.encode(column, "values")
        if np.isnan(found[name]).any():
            raise InputError(f"values[{name!r}] has a missing value; give a value.")
    return found


@dataclass(frozen=True)
class CausalWorld:
    """A causal model of the effects of features that are set, by the conditionals of a chain.

    Attributes
    ----------
    layout, samplers, schema : of the chain.
    keep : dependence of new ranks on old ones, from 0 to 1 (step 3).
    seed : of the draws.
    derived : columns that are computed, inputs first.
    graph : the causal graph of the chain, whose edges define effects; None: features are effects of their predictors.
    """

    layout: ChainLayout
    samplers: Mapping[Any, ConditionalSampler]
    schema: Schema
    keep: float
    seed: int
    derived: Sequence[ComputedColumn] = ()
    graph: Graph | None = None

    def descendants(self, columns: Iterable[int]) -> list[int]:
        """Return the places in the chain of the descendants of columns that are set, in visiting order."""
        actions = {self.layout.place_in_chain[j] for j in columns}
        return sorted({k for action in actions for k in self._effects[action]} - actions)

    def follow(self, rows: Floats, acted: Bools, factuals: Floats, keys: UInts, draws: UInts) -> Floats:
        """Return rows after interventions (steps 1 to 4), which may differ from row to row.

        Parameters
        ----------
        rows : (rows, columns) array
            The values that features are set to, columns in data order.
        acted : (rows, columns) array
            Which features are set.
        factuals : (rows, columns) array
            The rows before.
        keys, draws : array
            Identity of each row before, and index of the draw for it.
        """
        order = np.argsort(self.layout.place_in_chain)
        old = np.asfortranarray(factuals[:, order])
        new = np.where(acted[:, order], rows[:, order], old).copy(order="F")
        patterns, of_row = np.unique(acted, axis=0, return_inverse=True)
        parts = [self._part(pattern, np.flatnonzero(of_row.ravel() == i)) for i, pattern in enumerate(patterns)]
        for part in parts:
            self._compute(part, -1, old, new)
        for k, feature in enumerate(self.layout.features):
            drawn = [part.rows for part in parts if k in part.descendants and k not in part.due]
            if drawn:
                some = np.sort(np.concatenate(drawn))
                streams = RowStreams(derive_key(self.seed, "intervene", feature.name), keys[some], draws[some])
                new[some, k] = self._redraw(k, old[some], new[some], acted[some], streams)
            for part in parts:
                self._compute(part, k, old, new)
        return new[:, self.layout.place_in_chain]

    def _redraw(self, k: int, old: Floats, new: Floats, acted: Bools, streams: RowStreams) -> Floats:
        """Return the new values of a feature (step 3)."""
        feature, features = self.layout.features[k], self.layout.features
        sampler = self.samplers[feature.name]
        was, now = (self.layout.given(Table(features, np.asfortranarray(matrix)), k) for matrix in (old, new))
        values = old[:, k].copy()
        if self.keep == 0.0:
            return put_on_grid(sampler.sample(now, streams.child("new")), sampler, feature, values.size)
        rows = np.flatnonzero(_differ(was.matrix, now.matrix)) if self.keep == 1.0 else np.arange(values.size)
        if not rows.size:
            return values
        first, equal = _equal_streams(streams, rows)
        now, streams = now.take(rows), streams.take(rows)
        try:
            u = ranks_on_grid(sampler, was.take(rows[first]), streams.take(first), feature, values[rows[first]])[equal]
            if self.keep < 1.0:
                score = scipy.special.ndtri(np.clip(u, LEAST_RANK, MOST_RANK))
                noise = np.sqrt(1.0 - self.keep**2) * streams.child("new").normal()
                u = np.asarray(scipy.special.ndtr(self.keep * score + noise))
            drawn = sampler.at_ranks(now, u)
        except SamplerError as error:
            names = listing(self.schema.names[j] for j in np.flatnonzero(acted.any(axis=0)))
            raise SamplerError(
                f"keep={self.keep:g} needs the ranks of {feature.name!r}, a descendant of {names}: {error} "
                "Or draw new ranks with keep=0."
            ) from error
        values[rows] = put_on_grid(drawn, sampler, feature, rows.size)
        return values

    def _compute(self, part: _IntervenedRows, k: int, old: Floats, new: Floats) -> None:
        """Compute the derived columns of some rows whose last input is at place `k` of the chain (step 4)."""
        for place, last in part.due.items():
            if last == k:
                formula = self._formulas[place]
                inputs = [self._place(name) for name in formula.inputs]
                rows = part.rows[_differ(old[part.rows][:, inputs], new[part.rows][:, inputs])]
                if rows.size:
                    in_data_order = new[rows][:, self.layout.place_in_chain]
                    new[rows, place] = formula.compute_encoded(in_data_order, self.schema)

    def _part(self, pattern: Bools, rows: Ints) -> _IntervenedRows:
        """Return rows in which the same features are set."""
        descendants = frozenset(self.descendants(np.flatnonzero(pattern)))
        due: dict[int, int] = {}
        for k, formula in self._formulas.items():
            if k in descendants:
                inputs = [self._place(name) for name in formula.inputs]
                due[k] = max((due.get(j, j) for j in inputs if j in descendants), default=-1)
        return _IntervenedRows(rows, descendants, due)

    @cached_property
    def _formulas(self) -> dict[int, ComputedColumn]:
        """The derived columns by their place in the chain, inputs first."""
        return {self._place(each.target): each for each in self.derived}

    @cached_property
    def _effects(self) -> list[set[int]]:
        """The places of the effects of each place in the chain."""
        places = range(len(self.layout.features))
        children: list[set[int]] = [set() for _ in places]
        for k in places:
            for parent in self._parents(k):
                children[parent].add(k)
        effects = []
        for k in places:
            reached, waiting = {k}, [k]
            while waiting:
                found = children[waiting.pop()] - reached
                reached |= found
                waiting += found
            effects.append(reached - {k})
        return effects

    def _parents(self, k: int) -> Sequence[int]:
        if k in self._formulas:
            return [self._place(name) for name in self._formulas[k].inputs]
        name = self.layout.features[k].name
        if self.graph is not None and k >= self.layout.n_given and name in self.graph:
            return [self._place(cause) for cause in self.graph.parents(name)]
        return self.layout.columns_given(k) if k >= self.layout.n_given else ()

    def _place(self, name: Hashable) -> int:
        return self.layout.place_in_chain[self.schema.position(name)]


@dataclass(frozen=True)
class _IntervenedRows:
    """Rows in which the same features are set.

    Attributes
    ----------
    rows : the rows.
    descendants : the places in the chain that change.
    due : the derived columns among them, inputs first, with the place after which each is computed.
    """

    rows: Ints
    descendants: frozenset[int]
    due: Mapping[int, int]


def _equal_streams(streams: RowStreams, rows: Ints) -> tuple[Ints, Ints]:
    """Return the first of the rows with equal random numbers, as positions in `rows`, and the one of each row.

    Rows with equal random numbers are draws for the same factual with different actions. They have the same rank.
    """
    keys, draws = streams.rows[rows], streams.draws[rows]
    order = np.lexsort((draws, keys))
    is_first = np.append(True, (np.diff(keys[order]) != 0) | (np.diff(draws[order]) != 0))
    group = np.empty(rows.size, dtype=np.int64)
    group[order] = np.cumsum(is_first) - 1
    return order[is_first], group


def _differ(old: Floats, new: Floats) -> Bools:
    """Return the rows in which two matrices differ."""
    return np.asarray(~((old == new) | (np.isnan(old) & np.isnan(new))).all(axis=1))
