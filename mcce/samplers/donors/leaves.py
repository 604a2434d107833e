"""Drawing donors from the leaves of a tree: what all samplers with one tree per feature share.

1. Grow a tree for the target on the given columns: each subclass its own kind.
2. Route every row of `given` to its leaf.
3. Draw one training value of the target, uniformly, among the rows of that leaf.

The values drawn are observed values; their combinations are new (paper, section 2.2). Missing values of a categorical
target are one more level. For a numeric or ordered target with missing values a first tree decides whether the draw is
missing, and a second one, grown on the complete rows, gives the value.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.exceptions import SamplerError
from mcce.rng import RowStreams
from mcce.samplers.base import Bools, ConditionalSampler, Floats, Ints, Within
from mcce.samplers.donors.density import DonorForest, Margin, donor_log_density
from mcce.table import Column, Feature, Table
from mcce.trees.display import FittedTree
from mcce.trees.tree import Tree

Self = TypeVar("Self", bound="LeafDonorSampler")


class LeafDonorSampler(ConditionalSampler):
    """Draws donors from the leaves of a tree. A subclass says how the tree is grown.

    After `fit`, `tree` is the tree to look at: ``print(sampler.tree)``, ``sampler.tree.to_frame()``,
    ``sampler.tree.plot()``.
    """

    handles_missing = True
    thread_safe = True
    leaves_one_out = True
    draws_observed = True

    tree_: Tree
    donor_values_: Floats
    missing_tree_: Tree | None
    missing_values_: Floats | None
    target_is_number_: bool
    margin_: Margin

    @abstractmethod
    def _grow(self, given: Table, target: Column) -> Tree:
        """Grow a tree for a target without missing values (step 1)."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise an InputError for a parameter out of its range."""

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Grow the tree (step 1) and keep the donors of its leaves."""
        self._check_parameters()
        self.check_target(target.feature)
        self.name_columns(given.features, target.feature)
        self.target_is_number_ = target.feature.is_numeric
        missing = np.isnan(target.values)
        self.margin_ = Margin.of(target.values, target.feature.n_levels)
        self.missing_tree_ = self.missing_values_ = None
        if missing.any() and target.feature.kind == "categorical":
            widened = np.where(missing, target.feature.n_levels, target.values)
            self.tree_ = self._grow(given, Column(with_missing_level(target.feature), widened))
        elif missing.all():
            self.tree_ = self._grow(given.first(0), Column(target.feature, np.zeros(missing.size)))
        elif missing.any():
            indicator = missing.astype(np.float64)
            self.missing_tree_ = self._grow(given, Column(missing_indicator(target.feature), indicator))
            self.missing_values_ = indicator[self.missing_tree_.donors]
            known = np.flatnonzero(~missing)
            target = Column(target.feature, target.values[known])
            self.tree_ = self._grow(given.take(known), target)
            self.donor_values_ = target.values[self.tree_.donors]
            self.tree_ = replace(self.tree_, donors=known[self.tree_.donors].astype(np.int32))
            return self
        else:
            self.tree_ = self._grow(given, target)
        self.donor_values_ = target.values[self.tree_.donors]
        return self

    def name_columns(self: Self, given: Sequence[Feature], target: Feature) -> Self:
        """Say what the columns are, for `tree`; needed only if the state comes from `set_state`, not from `fit`."""
        self._given_features, self._target_feature = tuple(given), target
        return self

    @property
    def tree(self) -> FittedTree:
        """The fitted tree, to print, plot or turn into a table; `missing_tree` decides on missing values."""
        given, target = self._named()
        values = self.donor_values_
        if target.levels is not None and np.isnan(values).any():
            target = replace(target, levels=pd.Index([*target.levels, "missing"], dtype=object))
            values = np.where(np.isnan(values), target.n_levels - 1, values)
        return FittedTree(self.tree_, given, target, values)

    @property
    def missing_tree(self) -> FittedTree | None:
        """The tree that decides whether a draw is missing; None if it is not needed."""
        given, target = self._named()
        if self.missing_tree_ is None or self.missing_values_ is None:
            return None
        indicator = replace(missing_indicator(target), name=f"{target.name} is missing")
        return FittedTree(self.missing_tree_, given, indicator, self.missing_values_)

    def _named(self) -> tuple[tuple[Feature, ...], Feature]:
        self.check_fitted("tree_")
        if not hasattr(self, "_target_feature"):
            raise SamplerError(
                f"{self!r} was restored from its state, which has no column names; tell them by "
                "name_columns(given.features, target.feature)."
            )
        return self._given_features, self._target_feature

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw a donor of each row's leaf (steps 2 and 3); restricted draws choose among the allowed donors."""
        self.check_fitted("tree_")
        leaf = self.tree_.route(given.matrix, complete=given.complete)
        if within is not None:
            n = given.n_rows
            low = np.full(n, -np.inf) if within.low is None else np.ascontiguousarray(within.low, dtype=np.float64)
            high = np.full(n, np.inf) if within.high is None else np.ascontiguousarray(within.high, dtype=np.float64)
            levels = np.empty((n, 0), dtype=bool) if within.levels is None else np.ascontiguousarray(within.levels)
            drawn = self.tree_.draw_within(leaf, self.donor_values_, rng, low, high, levels)
            if self.missing_tree_ is not None:
                drawn[self._missing_share(given, leaf) == 1.0] = np.nan
            return drawn
        drawn = self.tree_.draw(leaf, self.donor_values_, rng)
        if self.missing_tree_ is not None and self.missing_values_ is not None:
            missing_leaf = self.missing_tree_.route(given.matrix)
            is_missing = self.missing_tree_.draw(missing_leaf, self.missing_values_, rng)
            drawn[is_missing > 0] = np.nan
        return drawn

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether a donor of the row's leaf equals the value or, for a number, lies close to it.

        Close means no farther than the median gap between neighbouring donors of that leaf (the lower one of two), and
        inside their range: a value between two far-away clusters of donors is not supported.
        """
        self.check_fitted("tree_")
        leaf = self.tree_.route(given.matrix)
        supported = np.zeros(values.size, dtype=bool)
        for node in np.unique(leaf):
            rows = np.flatnonzero(leaf == node)
            donors = np.sort(self.donor_values_[self.tree_.start[node] :][: self.tree_.size[node]])
            donors = donors[~np.isnan(donors)]
            if donors.size == 0:
                continue
            after = np.searchsorted(donors, values[rows])
            above = donors[np.minimum(after, donors.size - 1)]
            below = donors[np.maximum(after - 1, 0)]
            distance = np.minimum(np.abs(above - values[rows]), np.abs(values[rows] - below))
            inside = (values[rows] >= donors[0]) & (values[rows] <= donors[-1])
            by_gap = self.target_is_number_ and donors.size > 2
            close = np.quantile(np.diff(donors), 0.5, method="lower") if by_gap else 0.0
            supported[rows] = inside & (distance <= close)
        missing_share = self._missing_share(given, leaf)
        return np.where(np.isnan(values), missing_share > 0.0, supported & (missing_share < 1.0))

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        """Return a smoothed log density of each value among the donors of its leaf, see `donors.density`."""
        self.check_fitted("tree_")
        forest = DonorForest([self.tree_], [self.donor_values_])
        missing = DonorForest([self.tree_], [np.isnan(self.donor_values_).astype(np.float64)])
        if self.missing_tree_ is not None and self.missing_values_ is not None:
            missing = DonorForest([self.missing_tree_], [self.missing_values_])
        return donor_log_density(self.margin_, forest, missing, given, values, training_rows)

    def get_state(self) -> dict[str, Any]:
        """Return the arrays of the tree, or of both trees, and the donors' values."""
        self.check_fitted("tree_")
        state = {f"tree.{name}": array for name, array in self.tree_.get_state().items()}
        state |= {"donor_values": self.donor_values_, "target_is_number": self.target_is_number_}
        state |= self.margin_.get_state()
        if self.missing_tree_ is not None:
            state |= {f"missing_tree.{name}": array for name, array in self.missing_tree_.get_state().items()}
            state["missing_values"] = self.missing_values_
        return state

    def set_state(self: Self, state: dict[str, Any]) -> Self:
        """Take over a state made by `get_state`."""
        self.tree_ = tree_from_state(state, "tree.")
        self.donor_values_ = state["donor_values"]
        self.target_is_number_ = bool(state["target_is_number"])
        self.margin_ = Margin.from_state(state)
        self.missing_values_ = state.get("missing_values")
        self.missing_tree_ = None if self.missing_values_ is None else tree_from_state(state, "missing_tree.")
        return self

    def _missing_share(self, given: Table, leaf: npt.NDArray[np.int32]) -> Floats:
        """Return the probability that each row's draw is missing."""
        tree, missing = self.tree_, np.isnan(self.donor_values_)
        if self.missing_tree_ is not None and self.missing_values_ is not None:
            tree, missing = self.missing_tree_, self.missing_values_ > 0
            leaf = tree.route(given.matrix)
        before = np.concatenate([[0], np.cumsum(missing)])
        share: Floats = (before[tree.start + tree.size] - before[tree.start]) / tree.size
        return share[leaf]


def tree_from_state(state: dict[str, Any], prefix: str) -> Tree:
    """Return the tree in a state whose names begin with `prefix`."""
    parts = {name.removeprefix(prefix): part for name, part in state.items() if name.startswith(prefix)}
    return Tree.from_state(parts)


def with_missing_level(feature: Feature) -> Feature:
    """Return the feature with "missing" as one more level."""
    levels = pd.Index([*range(feature.n_levels + 1)])
    return Feature(feature.name, "categorical", levels.dtype, levels, 0.0, float(feature.n_levels))


def missing_indicator(feature: Feature) -> Feature:
    """Return a two-level feature that says whether this one is missing."""
    return Feature(feature.name, "categorical", np.dtype(bool), pd.Index([False, True], dtype=object), 0.0, 1.0)
