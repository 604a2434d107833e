"""Donors pooled over the leaves of bootstrapped trees (synthpop's rf, bag and ranger; Breiman 1996, 2001).

1. Grow `n_trees` trees, each on a bootstrap sample of the rows; each node tries `max_features` of the columns.
2. Route every row of `given` through all trees.
3. Pool the training values in the leaves it reaches, and draw one of them uniformly: a tree is chosen in proportion to
   the size of the leaf, then a donor of that leaf.

Missing values of the target are handled as in `CartSampler`: one more level of a categorical target; for numbers and
ordered levels a first forest decides whether the draw is missing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mcce.checks import check_count, is_whole
from mcce.exceptions import InputError
from mcce.rng import RowStreams, derive_key
from mcce.samplers.base import Bools, ConditionalSampler, Floats, Ints, Within
from mcce.samplers.donors.density import DonorForest, Margin, donor_log_density
from mcce.samplers.donors.leaves import missing_indicator, tree_from_state, with_missing_level
from mcce.table import Column, Table
from mcce.trees import cart
from mcce.trees.tree import Tree

Self = TypeVar("Self", bound="ForestSampler")


class ForestSampler(ConditionalSampler):
    """Draws donors pooled over the leaves of a random forest.

    Parameters
    ----------
    n_trees : int
        Number of trees.
    max_features : "third", "sqrt", float, int or None
        Columns that a node tries: a third of them, their square root, a share, a number, or all (None: bagging). At
        least one.
    min_split, min_leaf, max_depth : see `CartSampler`
    random_state : int
        Seed of the bootstrap samples and of the columns tried; draws come from the chain's own seed.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler=mcce.ForestSampler(n_trees=5), fixed=["age", "sex"], random_state=1)
    >>> chain.fit(loans.X).sample(n=3).shape
    (3, 10)
    """

    handles_missing = True
    thread_safe = True
    leaves_one_out = True

    trees_: list[Tree]
    donor_values_: list[Floats]
    missing_trees_: list[Tree]
    missing_values_: list[Floats]
    margin_: Margin

    def __init__(
        self,
        *,
        n_trees: int = 10,
        max_features: str | float | None = "third",
        min_split: int = 2,
        min_leaf: int = 5,
        max_depth: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_trees = n_trees
        self.max_features = max_features
        self.min_split = min_split
        self.min_leaf = min_leaf
        self.max_depth = max_depth
        self.random_state = random_state

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Grow the trees (step 1) and keep the donors of their leaves."""
        self._check_parameters()
        self.check_target(target.feature)
        missing = np.isnan(target.values)
        self.margin_ = Margin.of(target.values, target.feature.n_levels)
        self.missing_trees_, self.missing_values_ = [], []
        if missing.any() and target.feature.kind == "categorical":
            grown = Column(
                with_missing_level(target.feature), np.where(missing, target.feature.n_levels, target.values)
            )
            self.trees_ = self._grow(given, grown, "value")
        elif missing.any() and not missing.all():
            indicator = Column(missing_indicator(target.feature), missing.astype(np.float64))
            self.missing_trees_ = self._grow(given, indicator, "missing")
            self.missing_values_ = [indicator.values[tree.donors] for tree in self.missing_trees_]
            known = np.flatnonzero(~missing)
            target = Column(target.feature, target.values[known])
            self.trees_ = self._grow(given.take(known), target, "value")
            self.donor_values_ = [target.values[tree.donors] for tree in self.trees_]
            self.trees_ = [replace(tree, donors=known[tree.donors].astype(np.int32)) for tree in self.trees_]
            return self
        else:
            grown = Column(target.feature, np.where(missing, 0.0, target.values))
            self.trees_ = self._grow(given, grown, "value")
        self.donor_values_ = [target.values[tree.donors] for tree in self.trees_]
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw from the pooled donors of each row's leaves (steps 2 and 3); restricted draws among the allowed ones."""
        self.check_fitted("trees_")
        leaves = _route(self.trees_, given)
        if within is None:
            drawn = _draw_pooled(self.trees_, self.donor_values_, leaves, rng)
        else:
            drawn = self._draw_allowed(leaves, rng, within)
        if self.missing_trees_:
            missing_leaves = _route(self.missing_trees_, given)
            is_missing = _draw_pooled(self.missing_trees_, self.missing_values_, missing_leaves, rng)
            if within is None:
                drawn[is_missing > 0] = np.nan
            else:
                drawn[_share(self.missing_trees_, self.missing_values_, missing_leaves) == 1.0] = np.nan
        return drawn

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether the value is among the pooled donors of the row."""
        self.check_fitted("trees_")
        leaves = _route(self.trees_, given)
        supported = np.zeros(values.size, dtype=bool)
        for tree, donors, leaf in zip(self.trees_, self.donor_values_, leaves):
            supported |= _in_leaf(tree, donors, leaf, values)
        if self.missing_trees_:
            share = _share(self.missing_trees_, self.missing_values_, _route(self.missing_trees_, given))
            return np.where(np.isnan(values), share > 0, supported & (share < 1))
        return supported

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        """Return a smoothed log density of each value among its pooled donors, see `mcce.samplers.donors.density`."""
        self.check_fitted("trees_")
        forest = DonorForest(self.trees_, self.donor_values_)
        missing = DonorForest(self.trees_, [np.isnan(donors).astype(np.float64) for donors in self.donor_values_])
        if self.missing_trees_:
            missing = DonorForest(self.missing_trees_, self.missing_values_)
        return donor_log_density(self.margin_, forest, missing, given, values, training_rows)

    def get_state(self) -> dict[str, Any]:
        """Return the arrays of all trees and the donors' values."""
        self.check_fitted("trees_")
        state: dict[str, Any] = {"n_trees": len(self.trees_), "n_missing_trees": len(self.missing_trees_)}
        state |= self.margin_.get_state()
        for kind, trees, values in (
            ("tree", self.trees_, self.donor_values_),
            ("missing_tree", self.missing_trees_, self.missing_values_),
        ):
            for t, (tree, donors) in enumerate(zip(trees, values)):
                state |= {f"{kind}{t}.{name}": array for name, array in tree.get_state().items()}
                state[f"{kind}{t}/values"] = donors
        return state

    def set_state(self: Self, state: dict[str, Any]) -> Self:
        """Take over a state made by `get_state`."""
        n, n_missing = int(state["n_trees"]), int(state["n_missing_trees"])
        self.margin_ = Margin.from_state(state)
        self.trees_ = [tree_from_state(state, f"tree{t}.") for t in range(n)]
        self.donor_values_ = [state[f"tree{t}/values"] for t in range(n)]
        self.missing_trees_ = [tree_from_state(state, f"missing_tree{t}.") for t in range(n_missing)]
        self.missing_values_ = [state[f"missing_tree{t}/values"] for t in range(n_missing)]
        return self

    def _grow(self, given: Table, target: Column, what: str) -> list[Tree]:
        n = given.n_rows
        seed = int(self.random_state)  # the type enters the key
        trees = []
        for t in range(self.n_trees):
            streams = RowStreams.from_seed(derive_key(seed, target.feature.name, what, t), n)
            rows = np.sort(streams.integer(n))
            trees.append(
                cart.grow(
                    given,
                    target,
                    min_split=self.min_split,
                    min_leaf=self.min_leaf,
                    max_depth=self.max_depth,
                    rows=rows,
                    max_features=self._n_features(len(given.features)),
                    random_key=derive_key(seed, target.feature.name, what, t, "columns"),
                )
            )
        return trees

    def _n_features(self, n_columns: int) -> int | None:
        if self.max_features is None:
            return None
        if self.max_features == "third":
            return max(1, n_columns // 3)
        if self.max_features == "sqrt":
            return max(1, math.isqrt(n_columns))
        assert not isinstance(self.max_features, str)
        if isinstance(self.max_features, float):
            return max(1, round(self.max_features * n_columns))
        return self.max_features

    def _draw_allowed(self, leaves: npt.NDArray[np.int32], rng: RowStreams, within: Within) -> Floats:
        """Draw uniformly among the allowed donors of all trees, row by row."""
        drawn = np.full(leaves.shape[1], np.nan)
        uniform = rng.uniform()
        for i in range(drawn.size):
            pool = np.concatenate(
                [
                    values[tree.start[leaf] :][: tree.size[leaf]]
                    for tree, values, leaf in zip(self.trees_, self.donor_values_, leaves[:, i])
                ]
            )
            pool = pool[within.take(np.full(pool.size, i)).allows(pool)]
            if pool.size:
                drawn[i] = pool[int(uniform[i] * pool.size)]
        return drawn

    def _check_parameters(self) -> None:
        check_count(self.n_trees, "n_trees", self, 1)
        check_count(self.min_split, "min_split", self, 2)
        check_count(self.min_leaf, "min_leaf", self, 1)
        check_count(self.random_state, "random_state", self, 0)
        if self.max_depth is not None:
            check_count(self.max_depth, "max_depth", self, 0)
        features = self.max_features
        share = isinstance(features, float) and 0 < features <= 1
        number = is_whole(features) and features >= 1
        if not (features in ("third", "sqrt", None) or share or number):
            raise InputError(
                f"max_features of ForestSampler is {features!r}; allowed: 'third', 'sqrt', a share in (0, 1], a number "
                "of columns, or None for all."
            )


def _route(trees: list[Tree], given: Table) -> npt.NDArray[np.int32]:
    return np.array([tree.route(given.matrix, complete=given.complete) for tree in trees])


def _draw_pooled(trees: list[Tree], donors: list[Floats], leaves: npt.NDArray[np.int32], rng: RowStreams) -> Floats:
    """Choose a tree in proportion to the size of its leaf, then a donor of the leaf."""
    sizes = np.array([tree.size[leaf] for tree, leaf in zip(trees, leaves)], dtype=np.int64)
    place = rng.integer(sizes.sum(axis=0))
    drawn = np.empty(place.size)
    for tree, values, leaf, size in zip(trees, donors, leaves, sizes):
        here = (place >= 0) & (place < size)
        drawn[here] = values[tree.start[leaf[here]] + place[here]]
        place -= size
    return drawn


def _share(trees: list[Tree], indicators: list[Floats], leaves: npt.NDArray[np.int32]) -> Floats:
    """Return the share of ones among the pooled donors of each row."""
    ones = np.zeros(leaves.shape[1])
    total = np.zeros(leaves.shape[1])
    for tree, values, leaf in zip(trees, indicators, leaves):
        before = np.concatenate([[0.0], np.cumsum(values)])
        ones += (before[tree.start + tree.size] - before[tree.start])[leaf]
        total += tree.size[leaf]
    return ones / total


def _in_leaf(tree: Tree, donors: Floats, leaf: npt.NDArray[np.int32], values: Floats) -> Bools:
    """Return whether each value (NaN too) is one of the donors of its leaf."""
    found = np.zeros(values.size, dtype=bool)
    for node in np.unique(leaf):
        rows = np.flatnonzero(leaf == node)
        pool = donors[tree.start[node] :][: tree.size[node]]
        found[rows] = np.isin(values[rows], pool) | (np.isnan(values[rows]) & bool(np.isnan(pool).any()))
    return found
