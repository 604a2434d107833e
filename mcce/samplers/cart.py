"""Leaf-donor sampling from a classification or regression tree.

1. Grow a tree for the target on the given columns (`mcce.trees.cart`; Gini for levels, squared error for numbers).
2. Route every row of `given` to its leaf.
3. Draw one training value of the target, uniformly, among the rows of that leaf.

The donors, and what missing values of the target do, are those of `mcce.samplers.donors`.
"""

from __future__ import annotations

import numpy as np

from mcce.exceptions import InputError
from mcce.samplers.base import check_count
from mcce.samplers.donors import LeafDonorSampler
from mcce.schema import Column, Table
from mcce.trees import cart
from mcce.trees.tree import Tree


class CartSampler(LeafDonorSampler):
    """Draws donors from the leaves of a CART tree: the paper's conditional, and the default.

    Parameters
    ----------
    min_split : int
        A node with fewer rows is not split.
    min_leaf : int
        A split leaves at least so many rows on each side.
    max_depth : int or None
        Greatest depth of the tree.
    cp : float or None
        Cut back subtrees that lower the impurity by less than `cp` times the root's impurity a split; None: never.

    Examples
    --------
    >>> import mcce
    >>> from mcce.datasets import load_loans
    >>> loans = load_loans()
    >>> chain = mcce.ChainModel(sampler=mcce.CartSampler(min_leaf=20), fixed=["age", "sex"]).fit(loans.X)
    >>> chain.sample(given=loans.X.loc[[0], ["age", "sex"]], n=2).shape
    (2, 10)
    """

    def __init__(
        self, *, min_split: int = 2, min_leaf: int = 5, max_depth: int | None = None, cp: float | None = None
    ) -> None:
        self.min_split = min_split
        self.min_leaf = min_leaf
        self.max_depth = max_depth
        self.cp = cp

    def _grow(self, given: Table, target: Column) -> Tree:
        return cart.grow(
            given,
            target,
            min_split=self.min_split,
            min_leaf=self.min_leaf,
            max_depth=self.max_depth,
            cp=self.cp,
        )

    def _check_parameters(self) -> None:
        check_count(self.min_split, "min_split", self, 2)
        check_count(self.min_leaf, "min_leaf", self, 1)
        if self.max_depth is not None:
            check_count(self.max_depth, "max_depth", self, 0)
        if self.cp is not None and not (isinstance(self.cp, (int, float)) and 0 <= self.cp < np.inf):
            raise InputError(f"cp of CartSampler is {self.cp!r}; it must be None or a number of at least 0.")
