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
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.rng import RowStreams
from mcce.samplers.base import BaseMeasure, Bools, ConditionalSampler, Floats, Ints, RestrictedDraw, Within
from mcce.samplers.donors.density import DonorForest, Margin, donor_log_density
from mcce.samplers.support import supported_by, supported_in_segments
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

    tree_: Tree
    donor_values_: Floats
    missing_tree_: Tree | None
    missing_values_: Floats | None
    given_features_: tuple[Feature, ...]
    target_feature_: Feature
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
        """Say what the columns are called in `tree`, if not as in `fit`."""
        self.given_features_, self.target_feature_ = tuple(given), target
        return self

    @property
    def tree(self) -> FittedTree:
        """The fitted tree, to print, plot or turn into a table; `missing_tree` decides on missing values."""
        self.check_fitted("tree_")
        target, values = self.target_feature_, self.donor_values_
        if target.levels is not None and np.isnan(values).any():
            target = replace(target, levels=pd.Index([*target.levels, "missing"], dtype=object))
            values = np.where(np.isnan(values), target.n_levels - 1, values)
        return FittedTree(self.tree_, self.given_features_, target, values)

    @property
    def missing_tree(self) -> FittedTree | None:
        """The tree that decides whether a draw is missing; None if it is not needed."""
        self.check_fitted("tree_")
        target = self.target_feature_
        if self.missing_tree_ is None or self.missing_values_ is None:
            return None
        indicator = replace(missing_indicator(target), name=f"{target.name} is missing")
        return FittedTree(self.missing_tree_, self.given_features_, indicator, self.missing_values_)

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw a donor of each row's leaf (steps 2 and 3); restricted draws choose among the allowed donors."""
        if within is not None:
            return self.sample_within(given, rng, within).values
        self.check_fitted("tree_")
        leaf = self.tree_.route(given.matrix, complete=given.complete)
        drawn = self.tree_.draw(leaf, self.donor_values_, rng)
        if self.missing_tree_ is not None and self.missing_values_ is not None:
            missing_leaf = self.missing_tree_.route(given.matrix)
            is_missing = self.missing_tree_.draw(missing_leaf, self.missing_values_, rng)
            drawn[is_missing > 0] = np.nan
        return drawn

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw one of the allowed donors of each row's leaf, or a missing value by its probability."""
        self.check_fitted("tree_")
        leaf = self.tree_.route(given.matrix, complete=given.complete)
        low, high = within.bounds(given.n_rows)
        levels = np.empty((given.n_rows, 0), dtype=bool)
        if within.levels is not None:
            levels = np.ascontiguousarray(within.levels)
        drawn = self.tree_.draw_within(leaf, self.donor_values_, rng, low, high, levels)
        missing_share = self._missing_share(given, leaf)
        found = RestrictedDraw.of(drawn, np.isnan(drawn) | (missing_share == 1.0))
        if within.missing is None:
            return found
        known = ~np.isnan(self.donor_values_)
        n_known = np.maximum(self.tree_.sum_in(leaf, known.astype(np.float64)), 1.0)
        n_allowed = self.tree_.count_within(leaf, self.donor_values_, low, high, levels)
        missing_weight = missing_share * within.allows_missing(given.n_rows)
        value_weight = (1.0 - missing_share) * n_allowed / n_known
        return found.or_missing(value_weight, missing_weight, rng.uniform())

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether a donor of the row's leaf equals the value or, for a number, lies as close as donors do."""
        self.check_fitted("tree_")
        leaf = self.tree_.route(given.matrix)
        first, after = self.tree_.start[leaf], (self.tree_.start + self.tree_.size)[leaf]
        by_donors = partial(supported_by, is_number=self.target_feature_.is_numeric)
        supported = supported_in_segments(by_donors, self.donor_values_, first, after, values)
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

    def base_measure(self) -> BaseMeasure:
        """Return what the density is with respect to: probabilities of levels and of numbers with point mass."""
        self.check_fitted("tree_")
        return self.margin_.base_measure

    def _missing_share(self, given: Table, leaf: npt.NDArray[np.int32]) -> Floats:
        """Return the probability that each row's draw is missing."""
        tree, missing = self.tree_, np.isnan(self.donor_values_)
        if self.missing_tree_ is not None and self.missing_values_ is not None:
            tree, missing = self.missing_tree_, self.missing_values_ > 0
            leaf = tree.route(given.matrix)
        return np.asarray(tree.sum_in(leaf, missing.astype(np.float64)) / tree.size[leaf])


def with_missing_level(feature: Feature) -> Feature:
    """Return the feature with "missing" as one more level."""
    levels = pd.Index([*range(feature.n_levels + 1)])
    return Feature(feature.name, "categorical", levels.dtype, levels, 0.0, float(feature.n_levels))


def missing_indicator(feature: Feature) -> Feature:
    """Return a two-level feature that says whether this one is missing."""
    return Feature(feature.name, "categorical", np.dtype(bool), pd.Index([False, True], dtype=object), 0.0, 1.0)
