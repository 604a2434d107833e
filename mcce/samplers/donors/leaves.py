"""Samplers with one tree for a feature: how it is grown, and how it is looked at.

1. Grow the tree on all rows, which are its donors too; or on a bootstrap sample of them (`proper`), or on half of them,
   the others being the donors (`honest`): `mcce.samplers.donors.resampling`.
2. With `min_donors`, and copies of rows among the donors or weights that count as such, grow it again with larger
   leaves until each has enough.

What is drawn from its leaves, and what missing values of the target do, is that of `mcce.samplers.donors.base`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pandas as pd

from mcce.rng import RowStreams
from mcce.samplers.donors.base import DonorSampler, Purpose, fewest_donors, missing_indicator
from mcce.samplers.donors.resampling import bootstrap, halves, n_copies
from mcce.table import Column, Feature, Table
from mcce.trees.display import FittedTree
from mcce.trees.honest import with_donors
from mcce.trees.tree import Tree

Self = TypeVar("Self", bound="LeafDonorSampler")


class LeafDonorSampler(DonorSampler):
    """Draws donors from the leaves of a tree. A subclass says how the tree is grown.

    After `fit`, `tree` is the tree to look at: ``print(sampler.tree)``, ``sampler.tree.to_frame()``,
    ``sampler.tree.plot()``.
    """

    given_features_: tuple[Feature, ...]
    target_feature_: Feature
    random_state: int | None = 0

    @abstractmethod
    def _grow(self, given: Table, target: Column) -> Tree:
        """Grow a tree for a target without missing values."""

    @property
    def leaf_size(self) -> int:
        """The fewest rows of a leaf, of an honest tree the fewest donors too."""
        return self.min_donors

    def _grow_trees(self, given: Table, target: Column, purpose: Purpose) -> Sequence[Tree]:
        if not (self.proper or self.honest or (target.weights is not None and self.min_donors > 1)):
            return [self._grow(given, target)]
        n = given.n_rows
        streams = RowStreams.from_seed(self.fit_seed(self.random_state), n).child("rows", target.feature.name, purpose)
        rows = np.arange(n)
        if self.proper and target.weights is not None:
            drawn = RowStreams.from_seed(self.fit_seed(self.random_state), n_copies(target.weights))
            rows = bootstrap(n, drawn.child("rows", target.feature.name, purpose), target.weights)
        elif self.proper:
            rows = bootstrap(n, streams)
        growing, donors = halves(rows, streams) if self.honest else (rows, rows)
        part, values = given.take(growing), target.take(growing)
        if self.proper:
            values = Column(values.feature, values.values)  # drawn by weight, they count the same
        least = self.min_donors
        while True:
            grower = type(self)(**{**self.get_params(), "min_donors": least})
            tree = grower._grow(part, values)
            if self.honest:
                tree = with_donors(tree, given.matrix, donors, grower.leaf_size)
            else:
                tree = replace(tree, donors=growing[tree.donors].astype(np.int32))
            if tree.n_nodes == 1 or fewest_donors(tree) >= self.min_donors:
                return [tree]
            least += (least + 1) // 2  # some rows are several times in a bootstrap sample

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Grow the tree and keep the donors of its leaves."""
        return super().fit(given, target).name_columns(given.features, target.feature)

    def name_columns(self: Self, given: Sequence[Feature], target: Feature) -> Self:
        """Say what the columns are called in `tree`, if not as in `fit`."""
        self.given_features_, self.target_feature_ = tuple(given), target
        return self

    @property
    def tree_(self) -> Tree:
        """The tree as arrays."""
        return self.donors_.forest.trees[0]

    @property
    def tree(self) -> FittedTree:
        """The fitted tree, to print, plot or turn into a table; `missing_tree` decides on missing values."""
        self.check_fitted("donors_")
        target, values = self.target_feature_, self.donors_.forest.values
        if target.levels is not None and np.isnan(values).any():
            target = replace(target, levels=pd.Index([*target.levels, "missing"], dtype=object))
            values = np.where(np.isnan(values), target.n_levels - 1, values)
        return FittedTree(self.tree_, self.given_features_, target, values, self.donors_.forest.weights)

    @property
    def missing_tree(self) -> FittedTree | None:
        """The tree that decides whether a draw is missing; None if it is not needed."""
        self.check_fitted("donors_")
        target, decider = self.target_feature_, self.donors_.decider
        if decider is None:
            return None
        indicator = replace(missing_indicator(target), name=f"{target.name} is missing")
        return FittedTree(decider.trees[0], self.given_features_, indicator, decider.values, decider.weights)
