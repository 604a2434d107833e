"""Donors from the leaves of a random forest: a quantile regression forest (Meinshausen 2006, JMLR 7).

Each tree is grown on a bootstrap sample, and each node tries `max_features` random columns. A draw takes one of the
trees, each with the same probability, then one of the donors in the row's leaf.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from mcce._utils import check_count, check_number, is_whole
from mcce.exceptions import InputError, spell
from mcce.rng import RowStreams, derive_key, resolve_seed
from mcce.samplers.base import ConditionalSampler, register_sampler
from mcce.samplers.cart import sorted_segments
from mcce.samplers.distributions import Donors
from mcce.samplers.margin import Margin
from mcce.table import Column, Table
from mcce.trees import cart

Self = TypeVar("Self", bound="ForestSampler")


@register_sampler("forest")
class ForestSampler(ConditionalSampler):
    """Draws donors from the leaves of a random forest.

    Parameters
    ----------
    n_trees : int
        Number of trees.
    max_features : "third", "sqrt", float, int or None
        Columns that a node tries, at least one: a third of them, their square root, a share, a number, or all (None:
        bagging).
    min_split, min_leaf, max_depth : see `CartSampler`
    random_state : int or None
        Seed of the bootstrap samples and of the columns tried. None: a chain sets it.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = mcce.samplers.ForestSampler(n_trees=5)
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"], random_state=1)
    >>> chain.fit(loans.X).sample(n=3).shape
    (3, 10)
    """

    accepts_missing_target = True

    def __init__(
        self,
        *,
        n_trees: int = 10,
        max_features: str | float | None = "third",
        min_split: int = 2,
        min_leaf: int = 5,
        max_depth: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.max_features = max_features
        self.min_split = min_split
        self.min_leaf = min_leaf
        self.max_depth = max_depth
        self.random_state = random_state

    def fit(self: Self, given: Table, target: Column) -> Self:
        options: dict[str, Any] = {
            "min_split": check_count(self.min_split, "min_split", 2),
            "min_leaf": check_count(self.min_leaf, "min_leaf"),
            "max_depth": None if self.max_depth is None else check_count(self.max_depth, "max_depth", 0),
            "max_features": n_features(self.max_features, len(given.features)),
        }
        seed, n = resolve_seed(self.random_state), given.n_rows
        self.trees_, pools, weights, begins = [], [], [], []
        for t in range(check_count(self.n_trees, "n_trees")):
            rows = np.sort(RowStreams.from_seed(derive_key(seed, "rows", t), n).integer(n))
            tree = cart.grow(given, target, rows=rows, random_key=derive_key(seed, "columns", t), **options)
            pool, begin = sorted_segments(target.values[rows], tree.training_leaf, tree.n_leaves)
            self.trees_.append(tree)
            pools.append(pool)
            weights.append(np.repeat(1.0 / np.diff(begin), np.diff(begin)))  # they sum to 1 in each leaf
            begins.append(begin + t * n)
        self.pool_, self.weight_, self.begins_ = np.concatenate(pools), np.concatenate(weights), begins
        self.margin_ = Margin.fit(target.values, target.feature)
        return self

    def distribution(self, given: Table) -> Donors:
        leaves = [tree.leaf(given.matrix) for tree in self.trees_]
        begin = np.stack([begin[leaf] for begin, leaf in zip(self.begins_, leaves)], axis=1)
        end = np.stack([begin[leaf + 1] for begin, leaf in zip(self.begins_, leaves)], axis=1)
        return Donors(self.pool_, begin, end, self.weight_, self.margin_)


def n_features(max_features: Any, n_columns: int) -> int | None:
    """Return how many of `n_columns` a node tries; None for all.

    Examples
    --------
    >>> from mcce.samplers.forest import n_features
    >>> n_features("third", 9), n_features("sqrt", 9), n_features(0.5, 9), n_features(2, 9)
    (3, 3, 4, 2)
    """
    if max_features is None:
        return None
    if max_features == "third":
        return max(1, n_columns // 3)
    if max_features == "sqrt":
        return max(1, math.isqrt(n_columns))
    if is_whole(max_features):
        return check_count(max_features, "max_features")
    if isinstance(max_features, float):
        share = check_number(max_features, "max_features", 0.0, 1.0, above_low=True)
        return max(1, round(share * n_columns))
    raise InputError(
        f"max_features is {spell(max_features)}; give 'third', 'sqrt', a share above 0 and at most 1, a number of "
        "columns, or None for all."
    )
