"""The nodes of a fitted tree, with the names and levels of its columns.

1. Nodes are numbered as in R: party counts parents first, left before right; for CART the children of k are 2k and
   2k + 1.
2. A node has a parent, children, training rows, a prediction, and the rule that sends a row to it.

What prints and what draws a tree reads it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.arrays import Floats
from mcce.table import Feature
from mcce.table.weights import mean_of
from mcce.trees.kernels import LEAF
from mcce.trees.party.tree import CtreeTree
from mcce.trees.rpart.kernels import ABSENT
from mcce.trees.rpart.tree import RpartTree
from mcce.trees.texts import Rule, text_of, value_of
from mcce.trees.tree import Tree


@dataclass(frozen=True, repr=False)
class Nodes:
    """The arrays of a tree and what its columns mean.

    Attributes
    ----------
    tree : Tree
        The arrays.
    given : sequence of Feature
        The columns that it splits on.
    target : Feature
        The response.
    values : array
        The response of the training rows, encoded, in the order of ``tree.donors``.
    weights : array or None
        Their weights, in the same order.
    """

    tree: Tree
    given: Sequence[Feature]
    target: Feature
    values: Floats
    weights: Floats | None = None

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.tree.n_leaves

    @cached_property
    def parent(self) -> npt.NDArray[np.int64]:
        """Parent of each node; -1 for the root."""
        parent = np.full(self.tree.n_nodes, -1)
        for node in np.flatnonzero(self.tree.feature != LEAF):
            parent[self.tree.left[node] : self.tree.left[node] + 2] = node
        return parent

    @cached_property
    def numbers(self) -> list[int]:
        """R's number of each node."""
        own = getattr(self.tree, "number", None)
        if own is not None:
            return [int(number) for number in own]
        numbers = [1] * self.tree.n_nodes  # of any size: deep trees have long ones
        for node in np.flatnonzero(self.tree.feature != LEAF):
            numbers[self.tree.left[node]] = 2 * numbers[node]
            numbers[self.tree.left[node] + 1] = 2 * numbers[node] + 1
        return numbers

    @cached_property
    def order(self) -> list[int]:
        """Return the nodes in R's order: parents first, all below the left child before the right one."""
        ordered, waiting = [], [0]
        while waiting:
            node = waiting.pop()
            ordered.append(node)
            waiting += reversed(self.children(node))
        return ordered

    @cached_property
    def depth(self) -> npt.NDArray[np.int64]:
        """Depth of each node; 0 for the root."""
        depth = np.zeros(self.tree.n_nodes, dtype=np.int64)
        for node in self.order[1:]:
            depth[node] = depth[self.parent[node]] + 1
        return depth

    def children(self, node: int) -> list[int]:
        """Return the two children of a node, R's left one first; none of a leaf."""
        if self.tree.feature[node] == LEAF:
            return []
        left = int(self.tree.left[node])
        return sorted((left, left + 1), key=self.numbers.__getitem__)

    def responses(self, node: int) -> Floats:
        """Return the encoded responses of the training rows of a node."""
        return self.values[self.tree.start[node] : self.tree.start[node] + self.tree.size[node]]

    def weights_of(self, node: int) -> Floats | None:
        """Return the weights of the training rows of a node."""
        rows = slice(self.tree.start[node], self.tree.start[node] + self.tree.size[node])
        return None if self.weights is None else self.weights[rows]

    def counts(self, node: int) -> npt.NDArray[Any]:
        """Return how often each level of the response occurs in a node, or the weight of the rows that have it."""
        values, weights = self.responses(node), self.weights_of(node)
        known = ~np.isnan(values)
        weights = None if weights is None else weights[known]
        return np.bincount(values[known].astype(np.int64), weights, minlength=self.target.n_levels)

    def prediction(self, node: int) -> Any:
        """Return the mean response of a node, or its commonest level (the first, if several are)."""
        if self.target.levels is not None:
            return self.target.levels[int(np.argmax(self.counts(node)))]
        values, weights = self.responses(node), self.weights_of(node)
        known = ~np.isnan(values)
        weights = None if weights is None else weights[known]
        return value_of(self.target, float(mean_of(values[known], weights)) if known.any() else np.nan)

    def goes_left(self, node: int) -> npt.NDArray[np.bool_]:
        """Return for each level of the column that a node splits on whether it goes to the array's left child."""
        levels = np.arange(self.given[self.tree.feature[node]].n_levels)
        at = self.tree.mask_at[node]
        return self.tree.masks[at : at + levels.size] if at >= 0 else levels < self.tree.threshold[node]

    def seen(self, node: int) -> npt.NDArray[np.bool_]:
        """Return which levels of the column that a node splits on occur in it, as far as the tree knows."""
        feature, at = int(self.tree.feature[node]), self.tree.mask_at[node]
        n_levels = self.given[feature].n_levels
        if at >= 0 and isinstance(self.tree, CtreeTree):
            return self.tree.seen[at : at + n_levels]
        seen = np.ones(n_levels, dtype=np.bool_)
        if isinstance(self.tree, RpartTree):
            return np.not_equal(self.tree.sides[at : at + n_levels], ABSENT) if at >= 0 else seen
        child, parent = node, self.parent[node]
        while parent >= 0:  # levels that were sent elsewhere above
            if self.tree.feature[parent] == feature:
                seen &= self.goes_left(parent) == (child == self.tree.left[parent])
            child, parent = parent, self.parent[parent]
        return seen

    def rule(self, node: int) -> Rule:
        """Return what sends a row from the parent to this node."""
        parent = self.parent[node]
        to_left = node == self.tree.left[parent]
        feature, threshold = self.given[self.tree.feature[parent]], self.tree.threshold[parent]
        name = str(feature.name)
        if np.isinf(threshold):
            return Rule(name, "is", ("known" if to_left == (threshold > 0) else "missing",))
        by_cut = isinstance(self.tree, CtreeTree) and not np.isnan(self.tree.cut[parent])
        if feature.levels is not None and not by_cut:
            chosen = feature.levels[self.seen(parent) & (self.goes_left(parent) == to_left)]
            return Rule(name, "in", tuple(str(level) for level in chosen))
        if isinstance(self.tree, CtreeTree):
            return Rule(name, "<=" if to_left else ">", (text_of(feature, self.tree.cut[parent]),))
        return Rule(name, "<" if to_left else ">=", (text_of(feature, threshold),))
