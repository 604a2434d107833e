"""Samplers with one tree for a feature: how it is grown, and how it is looked at.

What is drawn from its leaves, and what missing values of the target do, is that of `mcce.samplers.donors.base`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pandas as pd

from mcce.samplers.donors.base import DonorSampler, Purpose, missing_indicator
from mcce.table import Column, Feature, Table
from mcce.trees.display import FittedTree
from mcce.trees.tree import Tree

Self = TypeVar("Self", bound="LeafDonorSampler")


class LeafDonorSampler(DonorSampler):
    """Draws donors from the leaves of a tree. A subclass says how the tree is grown.

    After `fit`, `tree` is the tree to look at: ``print(sampler.tree)``, ``sampler.tree.to_frame()``,
    ``sampler.tree.plot()``.
    """

    given_features_: tuple[Feature, ...]
    target_feature_: Feature

    @abstractmethod
    def _grow(self, given: Table, target: Column) -> Tree:
        """Grow a tree for a target without missing values."""

    def _grow_trees(self, given: Table, target: Column, purpose: Purpose) -> Sequence[Tree]:
        return [self._grow(given, target)]

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
        return FittedTree(self.tree_, self.given_features_, target, values)

    @property
    def missing_tree(self) -> FittedTree | None:
        """The tree that decides whether a draw is missing; None if it is not needed."""
        self.check_fitted("donors_")
        target, decider = self.target_feature_, self.donors_.decider
        if decider is None:
            return None
        indicator = replace(missing_indicator(target), name=f"{target.name} is missing")
        return FittedTree(decider.trees[0], self.given_features_, indicator, decider.values)
