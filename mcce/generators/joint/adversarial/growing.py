"""Grow an adversarial random forest, which cannot distinguish real rows from rows drawn from its leaves.

1. Synthetic rows, as many as real ones, are drawn from the product of the margins: each value comes from an
   independently drawn real row.
2. A random forest is trained to distinguish real from synthetic rows.
3. The next synthetic rows come from its leaves: a random tree, a leaf by its share of the real rows, and each value
   from an independently drawn row of the leaf. So the features are independent within a leaf.
4. Repeat from step 2 until the out-of-bag accuracy is at most 1/2 + delta or does not fall, or `max_rounds` forests are
   grown. The last forest then cannot distinguish the rows drawn from the leaves of the previous forest, so the leaves
   of the previous forest are kept: within them the features are nearly independent, and their mixture is close to the
   distribution of the real rows.
5. The trees are pruned so that every leaf has at least `min_leaf` real rows: a split that leaves fewer on one side is
   removed. A split with no real row on one side is kept, and narrows the box of the leaf.

Real rows are drawn and counted by their weights; synthetic rows have the same total weight.

Trees split columns of integer codes (`Coding`):

6. Code 0 is missing. A level has the code of its table plus 1. A number has the rank of its value among the distinct
   training values, from 1 on. A number between two of them has the code of the nearer one, a midpoint that of the lower
   one.
7. Missing, levels and numbers with point mass (`mcce.samplers.density`) have probabilities. The other numbers are
   called spread: they have a density.
8. The range of spread numbers is unbounded, but ends at 0 if all training values are on one side of 0.

The forest is scikit-learn's. `Coding` keeps every distinct value, since the leaves are boxes with exact bounds.

Watson, Blesch, Kapar and Wright (2023), "Adversarial random forests for density estimation and generative modeling",
AISTATS, algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.threads import without_warning
from mcce.generators.joint.adversarial.kernels import cut_back
from mcce.rng import derive_key
from mcce.samplers.density import find_point_masses, silverman
from mcce.storage.fields import BOOL, FLOAT, require, stored
from mcce.storage.state import stateful
from mcce.table import Feature
from mcce.table.weights import place_of_copy

Codes = npt.NDArray[np.int32]


@stateful("AdversarialForest.Coding")
@dataclass(frozen=True)
class Coding:
    """The codes of one column.

    Attributes
    ----------
    values : distinct numbers in ascending order; empty for levels.
    has_mass : which of them have point mass.
    n_levels : number of levels; 0 for numbers.
    """

    values: Floats = stored(FLOAT, "values", rising=True)
    has_mass: Bools = stored(BOOL, "values")
    n_levels: int = stored(int, least=0, most=2**31 - 2)

    @classmethod
    def of(cls, column: Floats, feature: Feature, weights: Floats | None = None) -> Coding:
        """Read the codes of a training column; weights count as copies."""
        if not feature.is_numeric:
            return cls(np.empty(0), np.empty(0, dtype=bool), feature.n_levels)
        is_known = ~np.isnan(column)
        known = column[is_known]
        if not known.size:
            return cls(np.empty(0), np.empty(0, dtype=bool), 0)
        distinct, _, has_mass = find_point_masses(known, None if weights is None else weights[is_known])
        return cls(distinct, has_mass, 0)

    def check_state(self) -> None:
        """Raise if the column has both levels and numbers."""
        require(not (self.n_levels and self.values.size), "a column has levels and numbers")

    @property
    def n_codes(self) -> int:
        """Number of codes, including that of missing."""
        return 1 + self.n_levels + self.values.size

    @cached_property
    def cuts(self) -> Floats:
        """The midpoints between consecutive numbers."""
        return np.asarray(self.values[:-1] + np.diff(self.values) / 2.0)

    @cached_property
    def mass_of_code(self) -> Bools:
        """Whether each code has a probability."""
        return np.concatenate([np.full(1 + self.n_levels, True), self.has_mass])

    @cached_property
    def value_of_code(self) -> Floats:
        """The value of each code."""
        return np.concatenate([[np.nan], np.arange(float(self.n_levels)), self.values])

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The range of the numbers (step 8)."""
        if not self.values.size:
            return 0.0, 0.0
        return (0.0 if self.values[0] >= 0.0 else -np.inf), (0.0 if self.values[-1] <= 0.0 else np.inf)

    @cached_property
    def reach(self) -> tuple[float, float]:
        """A range of nearly all numbers: the training values and three of Silverman's bandwidths on each side."""
        if not self.values.size:
            return 0.0, 0.0
        low, high = float(self.values[0]), float(self.values[-1])
        quartiles = np.quantile(self.values, [0.25, 0.75])
        width = silverman(float(self.values.std()), float(quartiles[1] - quartiles[0]), self.values.size)
        width = width or 0.01 * max(1.0, abs(low))
        return max(low - 3.0 * width, self.ends[0]), min(high + 3.0 * width, self.ends[1])

    def encode(self, column: Floats) -> Codes:
        """Return the codes of values."""
        if self.n_levels or not self.values.size:
            return np.where(np.isnan(column), 0, column + 1.0 if self.n_levels else 0.0).astype(np.int32)
        place = np.searchsorted(self.cuts, np.where(np.isnan(column), self.values[0], column), side="left")
        return np.where(np.isnan(column), 0, place + 1).astype(np.int32)

    def is_spread(self, column: Floats, codes: Codes) -> Bools:
        """Return which values are numbers without point mass."""
        if not self.values.size:
            return np.zeros(column.size, dtype=bool)
        same = self.value_of_code[codes] == column
        return np.asarray(~np.isnan(column) & ~(same & self.mass_of_code[codes]))


@dataclass(frozen=True)
class GrownTree:
    """The boxes of the leaves of a tree (codes from `low` to `high`), and the leaf of each real row."""

    low: Codes
    high: Codes
    leaf_of_row: npt.NDArray[np.int64]


def grow(
    codes: Codes,
    n_codes: Ints,
    *,
    n_trees: int,
    min_leaf: int,
    delta: float,
    max_rounds: int,
    seed: int,
    weights: Floats | None = None,
) -> tuple[list[GrownTree], Floats]:
    """Grow a forest on coded rows (columns are rows of `codes`); also return the accuracy of each round."""
    from sklearn.ensemble import RandomForestClassifier  # scikit-learn takes long to import

    n = codes.shape[1]
    real = codes.T.astype(np.float32)
    is_real = np.repeat([1, 0], n)
    rng = np.random.default_rng(derive_key(seed, "margins"))
    synthetic = np.column_stack([column[_draw_rows(rng, n, n, weights)] for column in codes])
    both = None if weights is None else np.concatenate([weights, np.full(n, weights.mean())])
    accuracies: list[float] = []
    trees: list[GrownTree] = []
    for number in range(max_rounds):
        forest = RandomForestClassifier(
            n_trees,
            min_samples_leaf=min_leaf,
            oob_score=True,
            n_jobs=1,
            random_state=derive_key(seed, "forest", number) % 2**32,
        )
        with without_warning("Some inputs do not have OOB scores"):  # with few trees some rows are in every bag
            forest.fit(np.concatenate([real, synthetic.astype(np.float32)]), is_real, both)
        accuracies.append(_accuracy(forest, is_real, both))
        if number > 0 and (accuracies[-1] <= 0.5 + delta or accuracies[-1] >= accuracies[-2]):
            break
        trees = [_leaves_of(tree.tree_, codes, weights, n_codes, min_leaf) for tree in forest.estimators_]
        rng = np.random.default_rng(derive_key(seed, "synthetic", number))
        synthetic = _synthetic(codes, trees, rng, weights)
    return trees, np.array(accuracies)


def _draw_rows(rng: np.random.Generator, n: int, size: int, weights: Floats | None) -> Ints:
    """Return rows drawn at random, by weight if there are weights."""
    if weights is None:
        return rng.integers(0, n, size)
    upto = np.cumsum(weights)
    return place_of_copy(upto, rng.random(size) * upto[-1])


def _accuracy(forest: Any, is_real: Ints, weights: Floats | None) -> float:
    """Return the (weighted) out-of-bag accuracy of a forest."""
    if weights is None:
        return float(forest.oob_score_)
    right = forest.oob_decision_function_.argmax(axis=1) == is_real
    return float(weights @ right / weights.sum())


def _leaves_of(tree: Any, codes: Codes, weights: Floats | None, n_codes: Ints, min_leaf: int) -> GrownTree:
    """Return the leaves of a tree, pruned to enough real rows in each (step 5)."""
    left, right = (np.asarray(side, dtype=np.int64) for side in (tree.children_left, tree.children_right))
    n_nodes, (p, n) = left.size, codes.shape
    low, high = np.zeros((n_nodes, p), dtype=np.int32), np.zeros((n_nodes, p), dtype=np.int32)
    high[0] = n_codes - 1
    leaf_of_row, leaf_node = np.empty(n, dtype=np.int64), np.empty(n_nodes, dtype=np.int64)
    n_leaves = cut_back(
        codes,
        np.ones(n) if weights is None else weights,
        left,
        right,
        np.asarray(tree.feature, dtype=np.int64),
        np.floor(tree.threshold).astype(np.int32),
        min_leaf,
        low,
        high,
        np.arange(n),
        np.empty((n_nodes, 3), dtype=np.int64),
        leaf_of_row,
        leaf_node,
    )
    leaves = leaf_node[:n_leaves]
    return GrownTree(low[leaves], high[leaves], leaf_of_row)


def _synthetic(codes: Codes, trees: list[GrownTree], rng: np.random.Generator, weights: Floats | None) -> Codes:
    """Return rows whose values come from independently drawn rows of one leaf (step 3)."""
    n = codes.shape[1]
    tree_of = rng.integers(0, len(trees), n)
    rows = np.empty((n, codes.shape[0]), dtype=np.int32)
    for t, tree in enumerate(trees):
        mine = np.flatnonzero(tree_of == t)
        members = np.argsort(tree.leaf_of_row, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(tree.leaf_of_row))])
        leaf = tree.leaf_of_row[_draw_rows(rng, n, mine.size, weights)]  # a leaf by its share of the rows
        upto = np.concatenate([[0.0], np.cumsum(np.ones(n) if weights is None else weights[members])])
        first, last = start[leaf], start[leaf + 1] - 1
        for j, column in enumerate(codes):
            if weights is None:
                place = first + (rng.random(mine.size) * (last + 1 - first)).astype(np.int64)
            else:
                wanted = upto[first] + rng.random(mine.size) * (upto[last + 1] - upto[first])
                place = np.clip(np.searchsorted(upto, wanted, side="right") - 1, first, last)
            rows[mine, j] = column[members[place]]
    return rows
