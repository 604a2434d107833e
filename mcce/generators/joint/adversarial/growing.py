"""Growing an adversarial random forest: trees that cannot tell real rows from rows made of their own leaves.

1. Synthetic rows, as many as there are real ones, take each value from a real row of its own: the product of the
   margins.
2. A random forest learns to tell real from synthetic rows.
3. Its leaves make the next synthetic rows: a tree at random, a leaf by the share of real rows that it holds, and each
   value from a row of that leaf of its own. So inside a leaf the features are independent.
4. Back to 2, until a forest is right about no more than 1/2 + delta of the rows out of bag, or no longer gets worse at
   it, or after `max_rounds`. Rows that it cannot tell come from the leaves of the forest before, so these are kept: in
   them the features are about independent, and their mixture is about the distribution of the real rows.
5. The trees are cut back so that every leaf holds at least `min_leaf` real rows: a split that leaves fewer on one side
   is passed over. One that leaves none there stays, and cuts the box of the leaf.

Real rows with weights are drawn and counted by these; synthetic rows weigh as much together.

Trees split the columns of a table as whole numbers (`Coding`):

6. Code 0 is missing. A level is its own code plus 1; a number is the rank of its value among the distinct training
   values, from 1 on. A number between two of them has the code of the nearer one, the lower one from the middle.
7. Missing, levels and numbers with point mass (`mcce.samplers.density`) have probabilities. The other numbers are
   spread: they have a density.
8. Spread numbers have no end, but none on the other side of 0 if the training values are all on one.

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
        """Refuse a column of levels and of numbers."""
        require(not (self.n_levels and self.values.size), "a column has levels and numbers")

    @property
    def n_codes(self) -> int:
        """How many codes there are, that of missing included."""
        return 1 + self.n_levels + self.values.size

    @cached_property
    def cuts(self) -> Floats:
        """The middle between each number and the next."""
        return np.asarray(self.values[:-1] + np.diff(self.values) / 2.0)

    @cached_property
    def mass_of_code(self) -> Bools:
        """Whether each code has a probability."""
        return np.concatenate([np.full(1 + self.n_levels, True), self.has_mass])

    @cached_property
    def value_of_code(self) -> Floats:
        """The value that each code stands for."""
        return np.concatenate([[np.nan], np.arange(float(self.n_levels)), self.values])

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Between what the numbers lie (step 8)."""
        if not self.values.size:
            return 0.0, 0.0
        return (0.0 if self.values[0] >= 0.0 else -np.inf), (0.0 if self.values[-1] <= 0.0 else np.inf)

    @cached_property
    def reach(self) -> tuple[float, float]:
        """Between what nearly all numbers lie: three of Silverman's bandwidths beyond the training values."""
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
    """The boxes of a tree's leaves (codes from `low` to `high`), and the leaf of each real row."""

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
    """Grow a forest on coded rows, one column each row of `codes`; also return the accuracies of its rounds."""
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
    """Return rows at random, by their weights if they have some."""
    if weights is None:
        return rng.integers(0, n, size)
    upto = np.cumsum(weights)
    return place_of_copy(upto, rng.random(size) * upto[-1])


def _accuracy(forest: Any, is_real: Ints, weights: Floats | None) -> float:
    """Return the share of the rows that a forest is right about, out of bag, or that of their weights."""
    if weights is None:
        return float(forest.oob_score_)
    right = forest.oob_decision_function_.argmax(axis=1) == is_real
    return float(weights @ right / weights.sum())


def _leaves_of(tree: Any, codes: Codes, weights: Floats | None, n_codes: Ints, min_leaf: int) -> GrownTree:
    """Return the leaves of a tree with enough real rows in each (step 5)."""
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
    """Return rows whose values come from rows of one leaf, each from a row of its own (step 3)."""
    n = codes.shape[1]
    tree_of = rng.integers(0, len(trees), n)
    rows = np.empty((n, codes.shape[0]), dtype=np.int32)
    for t, tree in enumerate(trees):
        mine = np.flatnonzero(tree_of == t)
        members = np.argsort(tree.leaf_of_row, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(tree.leaf_of_row))])
        leaf = tree.leaf_of_row[_draw_rows(rng, n, mine.size, weights)]  # at random: a leaf as often as its share
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
