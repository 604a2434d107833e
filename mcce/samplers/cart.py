"""Donors from the leaf of a tree: the base class, and CART, the paper's conditional (section 2.2) and the default.

1. A tree is grown on all rows. Missing values of the target are recoded while it grows (`recode_missing`).
2. The donors of a row are the training values of the target in its leaf, missing values included.
3. A draw is one of them, each with the same probability; so draws are observed values, and their combinations are new.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, TypeVar

import numpy as np

from mcce._utils import Floats, Ints, check_count, check_number
from mcce.exceptions import InputError, did_you_mean, spell
from mcce.samplers.base import ConditionalSampler, register_sampler
from mcce.samplers.distributions import Donors
from mcce.samplers.margin import Margin
from mcce.table import Column, Table
from mcce.trees import Tree, cart
from mcce.trees.cart import rank, recode_missing
from mcce.trees.rpart import grow_rpart
from mcce.trees.rpart.kernels import MAX_DEPTH

DIALECTS = ("mcce", "rpart")

Self = TypeVar("Self", bound="LeafSampler")


def sorted_segments(values: Floats, leaf: Ints, n_leaves: int) -> tuple[Floats, Ints]:
    """Return the values of leaf 0, leaf 1, ..., ascending in each with missing ones last, and where each begins.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.samplers.cart import sorted_segments
    >>> pool, begin = sorted_segments(np.array([3.0, 1.0, np.nan, 2.0]), np.array([1, 0, 1, 1]), 2)
    >>> pool.tolist(), begin.tolist()
    ([1.0, 2.0, 3.0, nan], [0, 1, 4])
    """
    distinct, ranks = rank(values)
    distinct = np.append(distinct, np.nan)  # missing values have the last rank
    keys = np.sort(leaf * distinct.size + ranks)
    begin = np.concatenate([[0], np.cumsum(np.bincount(leaf, minlength=n_leaves))])
    return distinct[keys % distinct.size], begin


class LeafSampler(ConditionalSampler):
    """Draws donors from the leaves of one tree; a base class. Subclasses check their parameters and grow the tree.

    Attributes
    ----------
    grown_ : the tree
    tree_ : the tree to print, ``print(sampler.tree_)``, or as a table, ``sampler.tree_.to_frame()``
    """

    accepts_missing_target = True

    @abstractmethod
    def _grow(self, given: Table, target: Column) -> Any:
        """Grow a tree for a target, which may have missing values."""

    def fit(self: Self, given: Table, target: Column) -> Self:
        self.grown_ = self._grow(given, target)
        self.pool_, self.begin_ = sorted_segments(target.values, self.grown_.training_leaf, self.grown_.n_leaves)
        self.margin_ = Margin.fit(target.values, target.feature)
        return self

    def distribution(self, given: Table) -> Donors:
        leaf = self.grown_.leaf(given.matrix)
        return Donors(self.pool_, self.begin_[leaf], self.begin_[leaf + 1], margin=self.margin_)

    @property
    def tree_(self) -> Tree:
        """The fitted tree, to print or to convert to a table."""
        return Tree(self.grown_)


@register_sampler("cart")
class CartSampler(LeafSampler):
    """Draws donors from the leaves of a CART tree: the paper's conditional, and the default.

    Parameters
    ----------
    dialect : {"mcce", "rpart"}
        "mcce": trees as in the paper, pruned only if `cp` is set; missing is one more value to split on. "rpart": the
        tree of R's package rpart, identical to the last split, with its defaults, pruning and surrogate splits. Ordered
        levels of the target are classes in rpart, numbers in "mcce".
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

    Examples
    --------
    >>> import mcce
    >>> from mcce.datasets import load_loans
    >>> loans = load_loans()
    >>> sampler = mcce.samplers.CartSampler(min_leaf=20)
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"]).fit(loans.X)
    >>> chain.sample(given=loans.X.loc[[0], ["age", "sex"]], n=2).shape
    (2, 10)
    >>> chain.conditional("salary").tree_.to_frame()["condition"].iloc[0]
    'root'
    """

    def __init__(
        self,
        *,
        dialect: Literal["mcce", "rpart"] = "mcce",
        min_split: int | None = None,
        min_leaf: int | None = None,
        max_depth: int | None = None,
        cp: float | None = None,
    ) -> None:
        self.dialect = dialect
        self.min_split = min_split
        self.min_leaf = min_leaf
        self.max_depth = max_depth
        self.cp = cp

    def _grow(self, given: Table, target: Column) -> Any:
        if self.dialect not in DIALECTS:
            raise InputError(f"dialect is {spell(self.dialect)}; {did_you_mean(self.dialect, DIALECTS)}")
        like_r = self.dialect == "rpart"
        if self.min_split is not None:
            check_count(self.min_split, "min_split", 0 if like_r else 2)
        if self.min_leaf is not None:
            check_count(self.min_leaf, "min_leaf")
        if self.max_depth is not None:
            check_count(self.max_depth, "max_depth", 0, MAX_DEPTH if like_r else None)
        if self.cp is not None:
            check_number(self.cp, "cp", -np.inf if like_r else 0.0)
        names = ("minsplit", "minbucket", "maxdepth", "cp") if like_r else ("min_split", "min_leaf", "max_depth", "cp")
        settings = zip(names, (self.min_split, self.min_leaf, self.max_depth, self.cp))
        options: dict[str, Any] = {name: value for name, value in settings if value is not None}
        return grow_rpart(given, recode_missing(target), **options) if like_r else cart.grow(given, target, **options)
