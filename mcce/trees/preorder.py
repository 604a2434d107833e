"""R's trees as CART trees, so that rows are routed by the same kernel.

rpart and party store nodes in preorder: a node, the branch of its left child, the branch of its right child.
"""

from __future__ import annotations

import numpy as np

from mcce._utils import Bools, Floats, Ints
from mcce.table import Feature
from mcce.trees.cart import CartTree
from mcce.trees.kernels import LEAF


def as_cart(
    given: tuple[Feature, ...],
    target: Feature,
    variable: Ints,
    left: Ints,
    right: Ints,
    threshold: Floats,
    missing_left: Bools,
    goes_left: Bools,
) -> CartTree:
    """Return a tree that routes rows to the same leaves; it has no training rows.

    x < threshold goes left; NaN is a split on unordered levels, of which `goes_left` (nodes x levels) go left.
    """
    places = [0]  # the children of a node become neighbours
    for node in places:
        if variable[node] != LEAF:
            places += [int(left[node]), int(right[node])]
    order = np.array(places)
    is_inner = variable[order] != LEAF
    by_levels = is_inner & np.isnan(threshold[order])
    zeros = np.zeros(order.size)
    return CartTree(
        given=given,
        target=target,
        feature=variable[order].astype(np.int32),
        threshold=threshold[order],
        left=np.where(is_inner, np.argsort(order)[left[order]], 0).astype(np.int32),
        missing_left=missing_left[order],
        mask_at=np.where(by_levels, np.arange(order.size) * goes_left.shape[1], -1).astype(np.int32),
        masks=goes_left[order].ravel(),
        start=order.astype(np.int32),  # leaves are numbered from left to right
        size=zeros.astype(np.int32),
        impurity=zeros,
        rows=np.empty(0, dtype=np.int32),
        values=np.empty(0),
    )
