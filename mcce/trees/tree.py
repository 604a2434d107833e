# mypy: disable-error-code="no-untyped-def"
"""A fitted tree: route rows to leaves, and draw donors from them.

1. `route` walks every row from the root: left if x < threshold, or if the bit of its level is set; missing values go
   where the node says. Rows are walked level by level in chunks, so that many loads are under way at once.
2. `draw` picks one training row of the leaf, uniformly, by the row's own random number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from mcce.rng import RowStreams, multiply_high, philox
from mcce.trees.kernels import LEAF

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

_CHUNK = 512


@njit(cache=True, nogil=True)
def route_numbers(matrix, feature, threshold, left, leaf):
    """Walk rows without missing values through a tree that splits on numbers only."""
    n = leaf.size
    active = np.empty(_CHUNK, dtype=np.int64)
    for begin in range(0, n, _CHUNK):
        end = min(begin + _CHUNK, n)
        count = 0
        if feature[0] >= 0:
            for i in range(begin, end):
                active[count] = i
                count += 1
        for i in range(begin, end):
            leaf[i] = 0
        while count:
            kept = 0
            for a in range(count):
                i = active[a]
                node = leaf[i]
                node = left[node] + (not (matrix[i, feature[node]] < threshold[node]))
                leaf[i] = node
                active[kept] = i
                kept += feature[node] >= 0
            count = kept


@njit(cache=True, nogil=True)
def route_any(matrix, feature, threshold, left, missing_left, mask_at, masks, leaf):
    """Walk rows through any tree: numbers, levels, missing values."""
    for i in range(leaf.size):
        node = 0
        while feature[node] >= 0:
            x = matrix[i, feature[node]]
            if np.isnan(x):
                goes_left = missing_left[node]
            elif mask_at[node] >= 0:
                level = np.int64(x)
                word = masks[mask_at[node] + (level >> 6)]
                goes_left = (word >> uint64(level & 63)) & uint64(1) != 0
            else:
                goes_left = x < threshold[node]
            node = left[node] + (0 if goes_left else 1)
        leaf[i] = node


@njit(cache=True, nogil=True)
def pick_donor(key, draws, rows, leaf, start, size, donor_values, out):
    """Draw one donor of each row's leaf."""
    for i in range(leaf.size):
        node = leaf[i]
        word = philox(key, draws[i], rows[i])[0]
        out[i] = donor_values[start[node] + multiply_high(word, uint64(size[node]))]


@njit(cache=True, nogil=True)
def pick_allowed_donor(key, draws, rows, leaf, start, size, donor_values, low, high, levels, out):
    """Draw one donor of each row's leaf among those in [low, high] and, if given, of an allowed level; else NaN."""
    for i in range(leaf.size):
        first = start[leaf[i]]
        allowed = 0
        chosen = uint64(0)
        out[i] = np.nan
        for step in range(2):  # count the allowed donors, then walk to the chosen one
            seen = uint64(0)
            for d in range(first, first + size[leaf[i]]):
                value = donor_values[d]
                if not (value >= low[i] and value <= high[i]):
                    continue
                if levels.shape[1] and not levels[i, np.int64(value)]:
                    continue
                if step and seen == chosen:
                    out[i] = value
                    break
                seen += uint64(1)
            if step == 0:
                allowed = seen
                if allowed == 0:
                    break
                chosen = multiply_high(philox(key, draws[i], rows[i])[0], allowed)


@dataclass(frozen=True)
class Tree:
    """A binary tree over encoded rows; node 0 is the root, the children of a node stand side by side.

    Attributes
    ----------
    feature : column that a node splits on; -1 in a leaf.
    threshold : x < threshold goes left (numbers, ordered and two-level columns).
    left : left child; the right one is the next node.
    missing_left : whether missing values go left.
    mask_at, masks : for a split on unordered levels, where its bits begin in `masks` (-1 otherwise); a set bit goes left.
    start, size : the training rows of a node are donors[start : start + size].
    impurity : sum of squares around the mean, or size times the Gini index, of a node.
    donors : training rows, those of a leaf side by side.
    """

    feature: Ints
    threshold: Floats
    left: Ints
    missing_left: npt.NDArray[np.bool_]
    mask_at: Ints
    masks: npt.NDArray[np.uint64]
    start: Ints
    size: Ints
    impurity: Floats
    donors: Ints

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return self.feature.size

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.feature == LEAF).sum())

    @cached_property
    def numbers_only(self) -> bool:
        """Whether no split is on unordered levels."""
        return bool((self.mask_at < 0).all())

    def route(self, matrix: Floats) -> Ints:
        """Return the leaf of every row of an encoded matrix."""
        leaf = np.empty(matrix.shape[0], dtype=np.int32)
        if self.numbers_only and not np.isnan(matrix.sum()):
            route_numbers(matrix, self.feature, self.threshold, self.left, leaf)
        else:
            route_any(
                matrix, self.feature, self.threshold, self.left, self.missing_left, self.mask_at, self.masks, leaf
            )
        return leaf

    def draw(self, leaf: Ints, donor_values: Floats, rng: RowStreams) -> Floats:
        """Draw one of `donor_values` (in the order of `donors`) from each leaf, uniformly."""
        out = np.empty(leaf.size)
        pick_donor(rng.next_key(), rng.draws, rng.rows, leaf, self.start, self.size, donor_values, out)
        return out

    def draw_within(
        self, leaf: Ints, donor_values: Floats, rng: RowStreams, low: Floats, high: Floats, levels: npt.NDArray[np.bool_]
    ) -> Floats:
        """Draw one allowed donor from each leaf, uniformly; NaN where the leaf has none. No columns: all levels."""
        out = np.empty(leaf.size)
        pick_allowed_donor(
            rng.next_key(), rng.draws, rng.rows, leaf, self.start, self.size, donor_values, low, high, levels, out
        )
        return out

    def get_state(self) -> dict[str, Any]:
        """Return the arrays that define the tree."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
