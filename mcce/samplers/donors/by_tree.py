"""A forest in which every tree counts the same: the weights of a quantile regression forest (Meinshausen 2006).

1. Training row i has the weight w_i(x) = mean over the trees of 1{i in the leaf of x} / (rows of that leaf): a draw is
   a donor of one tree, chosen uniformly. (A pool of all leaves would weigh a tree by the size of its leaf, and large
   leaves, in which a tree has not found much, would drown the small ones.)
2. So the conditional is the mean of the trees' own conditionals: of their densities, of the probabilities of what is
   allowed, of a missing value. A restricted draw chooses a tree in proportion to the probability of what is allowed.

The rows of a leaf are those of the tree's bootstrap sample, with copies; Meinshausen counts all training rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from mcce.arrays import Floats, Ints
from mcce.rng import RowStreams
from mcce.samplers.base import RestrictedDraw, Within
from mcce.samplers.donors.engine import DonorForest
from mcce.samplers.donors.model import DonorModel
from mcce.table import Table

Draw = Callable[[DonorModel, Table, RowStreams], Floats]


@dataclass(frozen=True)
class TreesApart:
    """A donor model of several trees as the mean of models of one tree each."""

    model: DonorModel

    @cached_property
    def trees(self) -> list[DonorModel]:
        """The models of one tree each, with the margin of all."""
        forest, decider = self.model.forest, self.model.decider
        return [
            replace(self.model, forest=_tree(forest, t), decider=None if decider is None else _tree(decider, t))
            for t in range(len(forest.trees))
        ]

    def draw(self, given: Table, rng: RowStreams, how: Draw = DonorModel.draw) -> Floats:
        """Draw from one tree for each row (step 1), `how` a model of one tree is drawn from."""
        chosen, within_tree = rng.integer(len(self.trees)), rng.child("tree")
        drawn = np.empty(given.n_rows)
        for t, tree in enumerate(self.trees):
            rows = np.flatnonzero(chosen == t)
            if rows.size:
                drawn[rows] = how(tree, given.take(rows), within_tree.take(rows))
        return drawn

    def draw_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw an allowed donor of one tree, chosen by the probability of what is allowed (step 2)."""
        found = [tree.draw_within(given, rng.child("tree", t), within) for t, tree in enumerate(self.trees)]
        mass = np.exp(np.stack([each.log_mass for each in found if each.log_mass is not None], axis=1))  # all have one
        total = mass.sum(axis=1)
        dead = ~(total > 0.0)
        chosen = rng.categorical(np.where(dead[:, None], 1.0, mass))
        values = np.stack([each.values for each in found])[chosen, np.arange(given.n_rows)]
        log_mass = np.log(total / len(found), out=np.full(total.size, -np.inf), where=~dead)
        return RestrictedDraw.of(values, dead, log_mass)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None) -> Floats:
        """Return the log of the mean density of the trees."""
        each = [tree.log_density(given, values, training_rows) for tree in self.trees]
        return np.asarray(scipy.special.logsumexp(each, axis=0) - np.log(len(each)))


def _tree(forest: DonorForest, t: int) -> DonorForest:
    weights = forest.weights_by_tree
    return DonorForest.of([forest.trees[t]], [forest.values_by_tree[t]], None if weights is None else [weights[t]])
