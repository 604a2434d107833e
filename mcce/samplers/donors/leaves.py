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

from mcce.exceptions import SamplerError
from mcce.samplers.base import Bools, Floats
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

    supports_between = True

    @abstractmethod
    def _grow(self, given: Table, target: Column) -> Tree:
        """Grow a tree for a target without missing values."""

    def _grow_trees(self, given: Table, target: Column, purpose: Purpose) -> Sequence[Tree]:
        return [self._grow(given, target)]

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Grow the tree and keep the donors of its leaves."""
        return super().fit(given, target).name_columns(given.features, target.feature)

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether a donor of the row's leaf equals the value or, for a number, lies close to it.

        Close means no farther than the median gap between neighbouring donors of that leaf (the lower one of two), and
        inside their range: a value between two far-away clusters of donors is not supported.
        """
        return super().supports(given, values)

    def name_columns(self: Self, given: Sequence[Feature], target: Feature) -> Self:
        """Say what the columns are, for `tree`; needed only if the state comes from `set_state`, not from `fit`."""
        self._given_features, self._target_feature = tuple(given), target
        return self

    @property
    def tree_(self) -> Tree:
        """The tree as arrays."""
        return self.donors_.forest.trees[0]

    @property
    def tree(self) -> FittedTree:
        """The fitted tree, to print, plot or turn into a table; `missing_tree` decides on missing values."""
        given, target = self._named()
        values = self.donors_.forest.values
        if target.levels is not None and np.isnan(values).any():
            target = replace(target, levels=pd.Index([*target.levels, "missing"], dtype=object))
            values = np.where(np.isnan(values), target.n_levels - 1, values)
        return FittedTree(self.tree_, given, target, values)

    @property
    def missing_tree(self) -> FittedTree | None:
        """The tree that decides whether a draw is missing; None if it is not needed."""
        given, target = self._named()
        decider = self.donors_.decider
        if decider is None:
            return None
        indicator = replace(missing_indicator(target), name=f"{target.name} is missing")
        return FittedTree(decider.trees[0], given, indicator, decider.values)

    def _named(self) -> tuple[tuple[Feature, ...], Feature]:
        self.check_fitted("donors_")
        if not hasattr(self, "_target_feature"):
            raise SamplerError(
                f"{self!r} was restored from its state, which has no column names; tell them by "
                "name_columns(given.features, target.feature)."
            )
        return self._given_features, self._target_feature
