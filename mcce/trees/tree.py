"""A fitted tree: its nodes, their training rows, and the routing of rows to leaves.

`route` sends every row down from the root: left if x < threshold, or if the mask of its level is True; each node has a
side for missing values. Rows are routed level by level in chunks, so that memory loads overlap.
`mcce.samplers.donors` draws from the leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numba import uint64

from mcce.base.arrays import Floats, Int32s, Ints
from mcce.base.compiling import entry
from mcce.storage.fields import BOOL, FLOAT, INT32, check_between, require, stored
from mcce.storage.state import from_state, stateful, to_state
from mcce.trees.kernels import LEAF

# mypy: disable-error-code="no-untyped-def"


AnyTree = TypeVar("AnyTree", bound="Tree")

_CHUNK = 256
_STRIDE = 4
_LOW = 0xFFFFFFFF


@entry
def route_numbers(values, steps, threshold, rows, leaf):
    """Route rows without missing values through a tree that splits on numbers only.

    `values` has the columns one after the other; a step is left child << 32 | start of the column. A leaf leads to
    itself, so several steps are taken without a test, and rows at a leaf are removed between such strides. Steps of
    different rows are independent. Indices are unsigned, which avoids the test for negative ones. `rows` is scratch for
    one chunk.
    """
    for begin in range(0, leaf.size, rows.size):
        left = leaf.size - begin
        walking = rows.size if rows.size < left else left
        for a in range(walking):
            rows[a] = begin + a
            leaf[begin + a] = 0
        while walking:
            kept = 0
            for a in range(walking):
                row = rows[a]
                node = uint64(leaf[row])
                for _ in range(_STRIDE):
                    step = steps[node]
                    goes_right = values[row + (step & uint64(_LOW))] >= threshold[node]
                    node = (step >> uint64(32)) + uint64(goes_right)
                leaf[row] = node
                rows[kept] = row
                kept += steps[node] >> uint64(32) != node
            walking = kept


@entry
def route_any(cells, feature, threshold, left, missing_left, mask_at, masks, leaf):
    """Route rows through any tree: numbers, levels, missing values; `cells` has a row for each column."""
    for i in range(leaf.size):
        node = 0
        while feature[node] >= 0:
            x = cells[feature[node], i]
            if np.isnan(x):
                goes_left = missing_left[node]
            elif mask_at[node] >= 0:
                goes_left = masks[mask_at[node] + np.int64(x)]
            else:
                goes_left = x < threshold[node]
            node = left[node] + (0 if goes_left else 1)
        leaf[i] = node


@stateful("Tree")
@dataclass(frozen=True)
class Tree:
    """A binary tree over encoded rows; node 0 is the root, the children of a node are adjacent.

    Attributes
    ----------
    feature : column that a node splits on; -1 in a leaf.
    threshold : x < threshold goes left (numbers, ordered and two-level columns).
    left : left child; the right one is the next node.
    missing_left : whether missing values go left.
    mask_at, masks : for a split on unordered levels, where its levels begin in `masks` (else -1); True goes left.
    start, size : the training rows of a node are donors[start : start + size].
    impurity : sum of squares around the mean, or size times the Gini index, of a node.
    donors : training rows, those of a leaf adjacent.
    """

    feature: Int32s = stored(INT32, "nodes", least=LEAF, filled=True)
    threshold: Floats = stored(FLOAT, "nodes")
    left: Int32s = stored(INT32, "nodes", least=-1, index_of="nodes")
    missing_left: npt.NDArray[np.bool_] = stored(BOOL, "nodes")
    mask_at: Int32s = stored(INT32, "nodes", least=-1, most="masks")
    masks: npt.NDArray[np.bool_] = stored(BOOL, "masks")
    start: Int32s = stored(INT32, "nodes", least=0, most="donors")
    size: Int32s = stored(INT32, "nodes", least=0, most="donors")
    impurity: Floats = stored(FLOAT, "nodes")
    donors: Int32s = stored(INT32, "donors")

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return self.feature.size

    @property
    def n_leaves(self) -> int:
        return int((self.feature == LEAF).sum())

    @property
    def stops(self) -> npt.NDArray[np.bool_]:
        """Whether a row may end at each node: at leaves, and in some kinds of trees at inner nodes."""
        return np.asarray(self.feature == LEAF)

    @cached_property
    def numbers_only(self) -> bool:
        """Whether no split is on unordered levels."""
        return bool((self.mask_at < 0).all())

    @cached_property
    def _packed(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], Floats]:
        """Left child << 32, column and threshold of each node for `route_numbers`; a leaf leads left, to itself."""
        is_leaf = self.feature == LEAF
        left = np.where(is_leaf, np.arange(self.n_nodes), self.left).astype(np.uint64)
        column = np.where(is_leaf, 0, self.feature).astype(np.uint64)
        return left << np.uint64(32), column, np.where(is_leaf, np.inf, self.threshold)

    def route(self, matrix: Floats, *, complete: bool = False) -> Int32s:
        """Return the leaf of every row of an encoded matrix; `complete`: it is known to have no missing values."""
        leaf = np.zeros(matrix.shape[0], dtype=np.int32)
        if self.n_nodes == 1 or matrix.shape[0] == 0:
            return leaf
        matrix = np.asfortranarray(matrix)
        if self.numbers_only and matrix.size <= _LOW and (complete or not np.isnan(matrix.sum())):
            left, column, threshold = self._packed
            steps = left | column * np.uint64(matrix.shape[0])
            route_numbers(matrix.ravel(order="F"), steps, threshold, np.empty(_CHUNK, dtype=np.uint64), leaf)
        else:
            route_any(
                matrix.T,
                self.feature,
                self.threshold,
                self.left,
                self.missing_left,
                self.mask_at,
                self.masks,
                leaf,
            )
        return leaf

    def check_state(self) -> None:
        """Raise unless the arrays are a tree: children come after their parents, and the rows of a node are donors."""
        inner = np.flatnonzero(self.feature != LEAF)
        left = self.left[inner].astype(np.int64)
        after = (left > inner).all() and (left < self.n_nodes - 1).all()
        require(after, "left has a child that does not come after its parent")
        require(np.unique(left).size == left.size, "left has a child of two parents")
        require(not np.isnan(self.threshold[inner]).any(), "threshold holds nan")
        ends = self.start.astype(np.int64) + self.size
        require((ends <= self.donors.size).all(), "start and size exceed the donors")

    def check_columns(self, n_levels: Ints, n_rows: int) -> None:
        """Raise if the tree does not match columns of `n_levels` levels (0 for numbers) and `n_rows` training rows."""
        check_between(self.feature, "feature", LEAF, n_levels.size - 1)
        check_between(self.donors, "donors", 0, n_rows - 1)
        require((self.size[self.stops] > 0).all(), "size has a leaf without donors")
        by_set = np.flatnonzero((self.feature != LEAF) & (self.mask_at >= 0))
        check_levels(n_levels[self.feature[by_set]], self.mask_at[by_set], self.masks.size, "mask_at")

    def get_state(self) -> dict[str, Any]:
        """Return the arrays that define the tree, and the kind of tree as "type"."""
        state: dict[str, Any] = to_state(self, "the tree")
        return state

    @staticmethod
    def from_state(state: dict[str, Any]) -> Tree:
        """Return the tree of any kind from the result of `get_state`."""
        tree: Tree = from_state(state)
        return tree


def check_levels(n_levels: Ints, first: npt.NDArray[Any], size: int, name: str) -> None:
    """Raise if a split on levels is on a column of numbers, or if its levels exceed the `size` entries."""
    require((n_levels > 0).all(), f"{name} belongs to a split on numbers")
    require((first.astype(np.int64) + n_levels <= size).all(), f"{name} exceeds the levels of the splits")


def each_donor_once(tree: AnyTree) -> AnyTree:
    """Return a tree grown on repeated rows with each donor once; copies must be adjacent."""
    first = np.append(True, tree.donors[1:] != tree.donors[:-1])
    before = np.concatenate([[0], np.cumsum(first)]).astype(np.int32)
    start, end = before[tree.start], before[tree.start + tree.size]
    return replace(tree, donors=tree.donors[first], start=start, size=end - start)


def with_splits(
    tree: Tree,
    feature: Int32s,
    *,
    start: Int32s | None = None,
    size: Int32s | None = None,
    donors: Int32s | None = None,
) -> Tree:
    """Return a plain tree that splits on `feature`, without the nodes below removed splits (-1).

    Optionally with other training rows: `start` and `size` by node of `tree`, and `donors`.
    """
    keep = np.zeros(feature.size, dtype=bool)
    keep[0] = True
    for node in np.flatnonzero(feature >= 0):  # parents come before their children
        if keep[node]:
            keep[tree.left[node]] = keep[tree.left[node] + 1] = True
    renumbered = np.cumsum(keep) - 1
    inner = feature[keep] >= 0
    left = np.zeros(inner.size, dtype=np.int32)
    left[inner] = renumbered[tree.left[keep][inner]]
    return Tree(
        feature=feature[keep],
        threshold=tree.threshold[keep],
        left=left,
        missing_left=tree.missing_left[keep],
        mask_at=np.where(inner, tree.mask_at[keep], np.int32(-1)),
        masks=tree.masks,
        start=(tree.start if start is None else start)[keep],
        size=(tree.size if size is None else size)[keep],
        impurity=tree.impurity[keep],
        donors=tree.donors if donors is None else donors,
    )
