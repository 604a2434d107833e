"""A tree of rpart: nodes and splits as R lists them, and routing by surrogates.

1. `route` sends a row by the node's split; if its value is missing, or a level absent from the node, by the first
   surrogate that knows better; else to the larger child. If the children are equally large the row stays in the node.
2. `frame` and `splits` are R's own tables of the tree.
3. `with_donors` puts the training rows of every node side by side, ascending in each leaf.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Floats, Int32s, Ints
from mcce.soundness import FLOAT, INT, INT32, check_array, check_between, require
from mcce.state import stateful
from mcce.trees.kernels import LEAF
from mcce.trees.rpart import kernels
from mcce.trees.tree import Tree, check_levels

MAX_DEPTH = 30  # numbers of deeper nodes do not fit into R's integers


@stateful("RpartTree")
@dataclass(frozen=True)
class RpartTree(Tree):
    """A tree grown by rpart's rules: a `Tree` with all that rpart knows of its nodes and splits.

    Attributes
    ----------
    number : rpart's number of a node: the root is 1, the children of k are 2k (left) and 2k + 1.
    n_grown : rows that a node was grown on.
    value : mean, or code of the commonest class, of a node.
    complexity : rpart's complexity parameter of a node.
    first_split : a node's splits begin here in the table of splits, -1 in a leaf: the primary split, then
        `n_compete` competitors and `n_surrogate` surrogates.
    split_feature, split_cut, split_below : column and cut; -1 if smaller values go left, 1 if right, 0 for levels.
    split_improve, split_adjusted, split_count : improvement and rows with a value; for a surrogate the share of rows on
        which it agrees, the same adjusted for the majority, and the training rows it has sent.
    split_sides_at, sides : for a split on unordered levels where their sides begin (else -1): 1 left, 3 right, 2
        absent from the node.
    column_levels : number of levels of each given column, 0 for numbers.
    """

    number: npt.NDArray[np.int64]
    n_grown: Int32s
    value: Floats
    complexity: Floats
    first_split: Int32s
    n_compete: Int32s
    n_surrogate: Int32s
    split_feature: Int32s
    split_count: Int32s
    split_below: npt.NDArray[np.int8]
    split_improve: Floats
    split_cut: Floats
    split_adjusted: Floats
    split_sides_at: npt.NDArray[np.int64]
    sides: npt.NDArray[np.uint8]
    column_levels: npt.NDArray[np.int64]

    def check_state(self) -> None:
        """Refuse arrays that are no tree of rpart: every node's splits are inside the table of splits."""
        super().check_state()
        n, n_splits = self.n_nodes, self.split_feature.size
        for name in ("n_grown", "first_split", "n_compete", "n_surrogate"):
            check_array(getattr(self, name), name, INT32, n)
        for name in ("value", "complexity"):
            check_array(getattr(self, name), name, FLOAT, n)
        check_array(self.number, "number", INT, n)
        for name in ("split_improve", "split_cut", "split_adjusted"):
            check_array(getattr(self, name), name, FLOAT, n_splits)
        for name in ("split_feature", "split_count"):
            check_array(getattr(self, name), name, INT32, n_splits)
        check_array(self.split_below, "split_below", np.dtype(np.int8), n_splits)
        check_array(self.split_sides_at, "split_sides_at", INT, n_splits)
        check_array(self.sides, "sides", np.dtype(np.uint8), None)
        check_array(self.column_levels, "column_levels", INT, None)
        check_between(self.number, "number", 1, 2 ** (MAX_DEPTH + 1) - 1)
        require(np.unique(self.number).size == n, "number holds one number twice")
        check_between(self.n_compete, "n_compete", 0, n_splits)
        check_between(self.n_surrogate, "n_surrogate", 0, n_splits)
        check_between(self.split_sides_at, "split_sides_at", -1, self.sides.size)
        check_between(self.sides, "sides", kernels.LEFT, kernels.RIGHT)
        inner = self.feature != LEAF
        check_between(self.first_split[inner], "first_split", 0, n_splits - 1)
        last = self.first_split.astype(np.int64) + self.n_compete + self.n_surrogate
        require((last[inner] < n_splits).all(), "first_split leads beyond the table of splits")

    def check_columns(self, n_levels: Ints, n_rows: int) -> None:
        """Refuse a tree that is not of columns with so many levels (0 for numbers) and not of so many training rows."""
        super().check_columns(n_levels, n_rows)
        n_columns = self.column_levels.size  # none for a target that is always missing
        same = np.array_equal(self.column_levels, n_levels[:n_columns])
        require(same, "column_levels are not those of the columns")
        check_between(self.split_feature, "split_feature", 0, n_columns - 1)
        by_set = np.flatnonzero(self.split_sides_at >= 0)
        at = self.split_sides_at[by_set]
        check_levels(n_levels[self.split_feature[by_set]], at, self.sides.size, "split_sides_at")

    @property
    def stops(self) -> npt.NDArray[np.bool_]:
        """Leaves, and nodes with equally large children, in which a row stays for which nothing decides."""
        last = self.n_nodes - 1  # a leaf has no children; what is read there does not count
        children = np.minimum(self.left, last), np.minimum(self.left + 1, last)
        return np.asarray(super().stops | (self.n_grown[children[0]] == self.n_grown[children[1]]))

    def route(self, matrix: Floats, *, complete: bool = False) -> Int32s:
        """Return the leaf of every row of an encoded matrix; `complete`: it is known to have no missing values.

        A row for which nothing decides stays in an inner node.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            if self.n_nodes == 1 or (self.numbers_only and (complete or not np.isnan(matrix.sum()))):
                return super().route(matrix, complete=True)
        leaf = np.zeros(matrix.shape[0], dtype=np.int32)
        kernels.route_rows(np.asfortranarray(matrix).T, *self._as_kernels_take_it, self.sides, leaf)
        return leaf

    @cached_property
    def _as_kernels_take_it(self) -> tuple[Any, Any]:
        nodes = {name: getattr(self, name, None) for name in kernels.Nodes._fields}
        nodes |= {"size": self.n_grown, "risk": self.impurity}
        splits = [getattr(self, f"split_{name}") for name in kernels.Splits._fields]
        return kernels.Nodes(**nodes), kernels.Splits(*splits)

    @cached_property
    def frame_order(self) -> npt.NDArray[np.intp]:
        """Nodes in the order of rpart's frame: a node, all below its left child, all below its right one."""
        return np.lexsort((self.number, _path(self.number)))

    @cached_property
    def frame_row(self) -> npt.NDArray[np.int32]:
        """Row of each node in rpart's frame, from 1: what rpart calls `where` for the rows of a leaf."""
        row = np.empty(self.n_nodes, dtype=np.int32)
        row[self.frame_order] = np.arange(1, self.n_nodes + 1)
        return row

    def frame(self, names: Sequence[Hashable]) -> pd.DataFrame:
        """Return rpart's table of nodes; `names` are those of the given columns."""
        order = self.frame_order
        variable = [names[f] if f >= 0 else "<leaf>" for f in self.feature[order]]
        return pd.DataFrame(
            {
                "node": self.number[order],
                "var": variable,
                "n": self.n_grown[order],
                "dev": self.impurity[order],
                "yval": self.value[order],
                "complexity": self.complexity[order],
                "ncompete": self.n_compete[order],
                "nsurrogate": self.n_surrogate[order],
            }
        )

    def splits(self, names: Sequence[Hashable]) -> tuple[pd.DataFrame, npt.NDArray[np.int64]]:
        """Return rpart's table of splits, in its order, and its table of level sides (`csplit`)."""
        n_splits = 1 + self.n_compete + self.n_surrogate
        inner = [node for node in self.frame_order if self.feature[node] >= 0]
        rows = [np.arange(self.first_split[node], self.first_split[node] + n_splits[node]) for node in inner]
        order = np.concatenate([np.empty(0, dtype=np.int64), *rows])
        feature = self.split_feature[order]
        n_levels = self.column_levels[feature]
        on_levels = n_levels > 0
        ordered = on_levels & (self.split_sides_at[order] < 0)
        listed = np.concatenate([np.flatnonzero(on_levels & ~ordered), np.flatnonzero(ordered)])  # as R numbers them
        sides = np.full((listed.size, n_levels.max(initial=0)), kernels.ABSENT, dtype=np.int64)
        for place, i in enumerate(listed):
            sides[place, : n_levels[i]] = self._sides_of(order[i], n_levels[i])
        index = self.split_cut[order].copy()
        index[listed] = np.arange(1, listed.size + 1)
        table = pd.DataFrame(
            {
                "var": [names[f] for f in feature],
                "count": self.split_count[order],
                "ncat": np.where(on_levels, n_levels, self.split_below[order]),
                "improve": self.split_improve[order],
                "index": index,
                "adj": self.split_adjusted[order],
            }
        )
        return table, sides

    def _sides_of(self, split: int, n_levels: int) -> npt.NDArray[Any]:
        """Return the side of each level in a split on levels, ordered or not."""
        at = self.split_sides_at[split]
        if at >= 0:
            return self.sides[at : at + n_levels]
        small_left = self.split_below[split] < 0
        return np.where((np.arange(n_levels) < self.split_cut[split]) == small_left, kernels.LEFT, kernels.RIGHT)


def with_donors(tree: RpartTree, leaf: Int32s) -> RpartTree:
    """Return the tree with its donors: `leaf` has the last node that each training row came to."""
    rank = (tree.frame_row - 1).astype(np.min_scalar_type(tree.n_nodes))  # few bytes are sorted fast
    bits = _bits(tree.number)
    past = np.searchsorted(_path(tree.number)[tree.frame_order], _path(tree.number) + (1 << (MAX_DEPTH + 1 - bits)))
    before = np.concatenate([[0], np.cumsum(np.bincount(rank[leaf], minlength=tree.n_nodes))]).astype(np.int32)
    donors = np.argsort(rank[leaf], kind="stable").astype(np.int32)
    return replace(tree, start=before[rank], size=before[past] - before[rank], donors=donors)


def _bits(number: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.frexp(number.astype(np.float64))[1].astype(np.int64)


def _path(number: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of the leftmost node below each node, in the deepest row that a tree can have."""
    return number << (MAX_DEPTH + 1 - _bits(number))
