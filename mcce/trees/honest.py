"""Honest trees: other rows in the leaves than those that the tree was grown on (Wager and Athey 2018).

1. Route the other rows to their leaves.
2. Take away every split that leaves fewer than `least` of them on a side, with all splits below it.
3. The training rows of a node become those of the other rows that reach it. What a node splits on, where missing values
   and unknown levels go, and its impurity are still those of the rows that it was grown on.
"""

from __future__ import annotations

import numpy as np

from mcce.arrays import Floats, Ints
from mcce.trees.kernels import LEAF
from mcce.trees.tree import Tree, with_splits


def with_donors(tree: Tree, matrix: Floats, rows: Ints, least: int) -> Tree:
    """Return the tree with `rows` of the matrix as training rows, ascending in each leaf; rows may be repeated."""
    leaf = tree.route(np.asfortranarray(matrix[rows]))
    size = np.bincount(leaf, minlength=tree.n_nodes).astype(np.int32)
    for node in np.flatnonzero(tree.feature != LEAF)[::-1]:  # children stand behind their parents
        size[node] = size[tree.left[node]] + size[tree.left[node] + 1]
    feature = tree.feature.copy()
    stays_at, start = np.arange(tree.n_nodes), np.zeros(tree.n_nodes, dtype=np.int32)
    for node in np.flatnonzero(tree.feature != LEAF):
        left, right = tree.left[node], tree.left[node] + 1
        if stays_at[node] != node or min(size[left], size[right]) < least:
            feature[node] = LEAF
            stays_at[left] = stays_at[right] = stays_at[node]
        start[left], start[right] = start[node], start[node] + size[left]
    donors = rows[np.lexsort((rows, start[stays_at[leaf]]))].astype(np.int32)
    return with_splits(tree, feature, start=start, size=size, donors=donors)
