"""Leaf-donor sampling from a classification or regression tree.

The tree is that of `mcce.trees.cart`, or of R's rpart (`mcce.trees.rpart`); `mcce.samplers.donors.base` does the rest.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from mcce.base.checks import check, check_count, is_number
from mcce.exceptions import InputError, did_you_mean
from mcce.rng import resolve_seed
from mcce.samplers.donors.base import LeafDonorSampler, check_resampling
from mcce.samplers.registry import register_sampler
from mcce.samplers.smoothing import Smoothing, check_smoothing
from mcce.table import Column, Table
from mcce.trees import cart
from mcce.trees.rpart import MAX_DEPTH
from mcce.trees.tree import Tree
from mcce.wording import Value

Dialect = Literal["mcce", "rpart"]
DIALECTS = ("mcce", "rpart")


@register_sampler("cart")
class CartSampler(LeafDonorSampler):
    """Draws donors from the leaves of a CART tree: the paper's conditional, and the default.

    Parameters
    ----------
    dialect : {"mcce", "rpart"}
        "mcce": trees as in the paper, pruned only if `cp` is set; missing is one more value to split on. "rpart": the
        tree of R's package rpart, identical to the last split, with its defaults, pruning and surrogate splits
        (`mcce.trees.rpart`). Ordered levels of the target are classes in rpart, numbers in "mcce".
    min_split : int or None
        A node with fewer rows is not split. None: 2; in the rpart dialect 20, or three times `min_leaf`, if given.
    min_leaf : int or None
        Fewest rows of a leaf. None: 5; in the rpart dialect a third of `min_split` (7 for 20).
    max_depth : int or None
        Greatest depth of the tree. None: no limit; in the rpart dialect 30, the maximum.
    cp : float or None
        Prune subtrees that lower the impurity by less than `cp` times the root's impurity per split; None: no pruning.
        In the rpart dialect the impurity of classes is the number of rows outside the majority class, None is 0.01, and
        a negative number keeps all splits.
    min_donors : int
        Fewest distinct training rows that a value is drawn from: leaves have at least as many, a target with fewer
        known values raises an error, and a restricted draw with fewer allowed donors is rejected.
    proper : bool
        Grow the tree on a bootstrap sample of the rows, as in synthpop, so that fits vary as with new data.
    honest : bool
        Grow the tree on half of the rows and draw from the others, at least `min_leaf` per leaf: they vary as much as
        new rows do, unlike the rows that a tree was grown on. Only for the dialect "mcce".
    smoothing : "density" or None
        Draw numbers around the donors, with the bandwidth of the leaf's density (`mcce.samplers.donors.model`);
        frequent numbers are not smoothed.
    random_state : int or None
        Seed of `proper` and `honest`, combined with the chain's seed; a sampler fitted on its own uses this seed alone.

    Notes
    -----
    Weights of training rows count as copies (`mcce.table.weights`): in the dialect "mcce" `min_split` and `min_leaf`
    are sums of weights, so the tree is that of the repeated rows; in the dialect "rpart" they count rows, as in R.
    `min_donors` always counts distinct rows.

    Examples
    --------
    >>> import mcce
    >>> from mcce.datasets import load_loans
    >>> loans = load_loans()
    >>> chain = mcce.ChainModel(sampler=mcce.CartSampler(min_leaf=20), fixed=["age", "sex"]).fit(loans.X)
    >>> chain.sample(given=loans.X.loc[[0], ["age", "sex"]], n=2).shape
    (2, 10)
    >>> like_r = mcce.ChainModel(sampler=mcce.CartSampler(dialect="rpart"), fixed=["age", "sex"]).fit(loans.X)
    >>> like_r.sample(given=loans.X.loc[[0], ["age", "sex"]], n=2).shape
    (2, 10)
    """

    takes_weights = True

    def __init__(
        self,
        *,
        dialect: Dialect = "mcce",
        min_split: int | None = None,
        min_leaf: int | None = None,
        max_depth: int | None = None,
        cp: float | None = None,
        min_donors: int = 1,
        proper: bool = False,
        honest: bool = False,
        smoothing: Smoothing = None,
        random_state: int | None = 0,
    ) -> None:
        self.dialect = dialect
        self.min_split = min_split
        self.min_leaf = min_leaf
        self.max_depth = max_depth
        self.cp = cp
        self.min_donors = min_donors
        self.proper = proper
        self.honest = honest
        self.smoothing = smoothing
        self.random_state = random_state

    def _grow(self, given: Table, target: Column) -> Tree:
        if self.dialect == "rpart":
            from mcce.trees.rpart import tree as rpart

            return rpart.grow(
                given,
                target,
                cp=0.01 if self.cp is None else self.cp,
                min_split=self.min_split,
                min_leaf=self._least_leaf(round((20 if self.min_split is None else self.min_split) / 3)),
                max_depth=MAX_DEPTH if self.max_depth is None else self.max_depth,
                max_compete=0,
            )
        return cart.grow(
            given,
            target,
            min_split=2 if self.min_split is None else self.min_split,
            min_leaf=self.leaf_size,
            max_depth=self.max_depth,
            cp=self.cp,
        )

    @property
    def leaf_size(self) -> int:
        return self._least_leaf(5) or 5

    def _least_leaf(self, default: int) -> int | None:
        """Return the fewest rows of a leaf; None for the default, if it is not below `min_donors`."""
        enough = (default if self.min_leaf is None else self.min_leaf) >= self.min_donors
        return self.min_leaf if enough else self.min_donors

    def _check_parameters(self) -> None:
        check_count(self.min_donors, "min_donors", self)
        check_resampling(self, self.proper, self.honest)
        check_smoothing(self.smoothing, self)
        resolve_seed(self.random_state)
        known = self.dialect in DIALECTS
        check(known, self.dialect, "dialect", did_you_mean(self.dialect, DIALECTS), owner=self)
        like_r = self.dialect == "rpart"
        if like_r and self.honest:
            raise InputError('honest trees need the dialect "mcce"; leave out honest, or the dialect.')
        if self.min_split is not None:
            check_count(self.min_split, "min_split", self, 0 if like_r else 2)
        if self.min_leaf is not None:
            check_count(self.min_leaf, "min_leaf", self, 1)
        if self.max_depth is not None:
            check_count(self.max_depth, "max_depth", self, 0)
            shallow = not like_r or self.max_depth <= MAX_DEPTH
            check(shallow, self.max_depth, "max_depth", f"a tree of rpart is at most {MAX_DEPTH} deep.", owner=self)
        if self.cp is not None:
            fits = is_number(self.cp) and np.isfinite(float(self.cp)) and (like_r or self.cp >= 0)
            least = "." if like_r else " of at least 0."
            check(fits, self.cp, "cp", "it must be ", Value(None), f" or a number{least}", owner=self)
