"""Draws of some features of a row given its other features, in any order of the chain: likelihood weighting.

A chain draws each feature given those before it. To condition on features that come later as well (Fung and Chang 1990,
"Weighing and integrating evidence for stochastic simulation in Bayesian networks"):

1. Go through the features in visiting order. A feature that is kept has the row's own value. Each other one is drawn
   given the values before it.
2. The weight of a drawn row is the product of the densities of the kept values, each given the values before it.
   Weighted means of the rows estimate expectations given the kept values, whatever their places in the chain.
3. A chain that conditions on the decision is a mixture: p(x | fixed) = sum over y of P(y | fixed) p(x | fixed, y). Half
   of the rows are drawn for each decision and have its probability in their weight. P(y | fixed) is the share in the
   leaves, of at least 50 rows, of a CART tree fitted to the fixed values and decisions of the training rows.
4. A density below a millionth of the largest one of the same feature and set of kept features counts as that much, so
   that a value that no draw supports does not leave all rows without weight.

Weights are self-normalised: estimates are biased by about 1 / effective sample size, (sum of w)^2 / sum of w^2, which
falls as more of the features that come late are kept. Kept features that all others follow cost nothing: their weights
are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcce.base.arrays import Bools, Floats, UInts
from mcce.generators.drawing import Conditional
from mcce.generators.layout import ChainLayout
from mcce.rng import RowStreams, derive_key
from mcce.samplers import ConditionalSampler
from mcce.samplers.donors.cart import CartSampler
from mcce.table import Column, Table

LEAST_DENSITY = 1e-6  # of the largest one
LEAF = 50  # rows that the probability of a decision is a share of, at least


@dataclass(frozen=True)
class RowConditionals:
    """The conditional distributions of a chain around one row, for any set of features that are kept.

    Attributes
    ----------
    layout, samplers : of the chain, samplers in visiting order.
    row : the encoded row, columns in data order.
    wanted : P(wanted decision | fixed) of the row; None if the chain does not condition on the decision.
    seed : of the draws.
    """

    layout: ChainLayout
    samplers: Sequence[ConditionalSampler]
    row: Floats
    wanted: float | None
    seed: int

    def draw(self, kept: Bools, keys: UInts, n: int) -> tuple[Floats, Floats]:
        """Draw `n` rows for each set of kept columns, a row of `kept`; return rows by set and draw, and log weights.

        `keys` identify the random numbers of a set.
        """
        layout, n_sets = self.layout, kept.shape[0]
        own = layout.order(self.row[None]).matrix[0]
        matrix = np.empty((n_sets * n, own.size), order="F")
        matrix[:, : layout.n_given] = own[: layout.n_given]
        log_weight = np.zeros((n_sets, n))
        if self.wanted is not None:
            decision = np.arange(n) % 2
            matrix[:, layout.n_given - 1] = np.tile(decision, n_sets)
            with np.errstate(divide="ignore"):
                log_weight += np.log(np.where(decision == 1, self.wanted, 1.0 - self.wanted))
        table, streams = Table(layout.features, matrix), np.repeat(keys, n)
        draws = np.tile(np.arange(n, dtype=np.uint64), n_sets)
        place = {k: j for j, k in enumerate(layout.place_in_chain)}
        for k, sampler in enumerate(self.samplers, layout.n_given):
            is_kept = kept[:, place[k]]
            feature, given = layout.features[k], layout.given(table, k)
            stays = np.flatnonzero(np.repeat(is_kept, n))
            if stays.size:
                matrix[stays, k] = own[k]
                density = sampler.log_density(given.take(stays), np.full(stays.size, own[k])).reshape(-1, n)
                log_weight[is_kept] += _supported(density)
            free = np.flatnonzero(np.repeat(~is_kept, n))
            if free.size:
                key = derive_key(self.seed, "given", feature.name)
                of_rows = RowStreams(key, streams[free], draws[free])
                matrix[free, k] = Conditional(sampler, feature, given.take(free), of_rows).draw()
        return matrix[:, layout.place_in_chain].reshape(n_sets, n, -1), log_weight


def _supported(log_density: Floats) -> Floats:
    """Return log densities, a row for each set, that are no lower than a share of the set's largest (step 4)."""
    largest = log_density.max(axis=1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    return np.maximum(log_density, largest + np.log(LEAST_DENSITY))


def share_of_wanted(layout: ChainLayout, givens: Floats, weights: Floats | None, own: Floats) -> float:
    """Return P(wanted decision | fixed values `own`), by the fixed values and decisions of training rows (step 3)."""
    table, last = Table(layout.features[: layout.n_given], givens), layout.n_given - 1
    target = Column(table.features[last], np.ascontiguousarray(givens[:, last]), weights)
    tree = CartSampler(min_leaf=LEAF).fit(table.first(last), target)
    of_row = Table(table.features[:last], np.asfortranarray(own[None]))
    return float(np.exp(tree.log_density(of_row, np.ones(1))[0]))
