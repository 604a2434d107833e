"""Draws of some features of a row given its other features, in any order of the chain: likelihood weighting.

A chain draws each feature given those before it. To condition on features that come later as well (Fung and Chang 1990,
"Weighing and integrating evidence for stochastic simulation in Bayesian networks"):

1. Go through the features in visiting order. A kept feature has the row's value. Each other feature is drawn given the
   values before it.
2. The weight of a drawn row is the product of the densities of the kept values, each given the values before it.
   Weighted means of the rows estimate expectations given the kept values, at any places in the chain.
3. A chain that conditions on the decision is a mixture: p(x | fixed) = sum over y of P(y | fixed) p(x | fixed, y). Half
   of the rows are drawn for each decision and have its probability in their weight. P(y | fixed) is the share in the
   leaves, of at least 50 rows, of a CART tree fitted to the fixed values and decisions of the training rows.
4. For one feature given all others: all levels, or draws u of a number given the fixed values, with weights
   p(row with u) / q(u). q is the density of the draws: the mean of p(u | values before) over `MIXED` draws of these.
   Step 1 would draw only few distinct values where a leaf has few donors.
5. Densities are bounded below by a millionth of the largest one of the same feature and set of kept features, so that
   a value that no draw supports does not set all weights to 0.

Weights are self-normalised: estimates have a bias of order 1 / effective sample size, (sum of w)^2 / sum of w^2. The
effective sample size falls as more of the late features are kept. Keeping features that come before all others costs
nothing: the weights are then equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.generators.drawing import Conditional
from mcce.generators.layout import ChainLayout
from mcce.rng import RowStreams, derive_key
from mcce.samplers import ConditionalSampler
from mcce.samplers.donors.cart import CartSampler
from mcce.table import Column, Table

LEAST_DENSITY = 1e-6  # of the largest one
MIXED = 128  # number of draws in the mean q
LEAF = 50  # smallest leaf for the probability of a decision


@dataclass(frozen=True)
class RowConditionals:
    """The conditional distributions of a chain around one row, for any set of features that are kept.

    Attributes
    ----------
    layout, samplers : of the chain, samplers in visiting order.
    row : the encoded row, columns in data order.
    determined : columns that are computed from others, whose densities are left out.
    wanted : P(wanted decision | fixed) of the row; None if the chain does not condition on the decision.
    seed : of the draws.
    """

    layout: ChainLayout
    samplers: Sequence[ConditionalSampler]
    row: Floats
    determined: Sequence[int]
    wanted: float | None
    seed: int

    def draw(self, kept: Bools, keys: UInts, n: int) -> tuple[Floats, Floats]:
        """Draw `n` rows for each set of kept columns (a row of `kept`); return rows by set and draw, and log weights.

        `keys` are the stream keys of the sets.
        """
        layout, n_sets = self.layout, kept.shape[0]
        own = layout.order(self.row[None]).matrix[0]
        matrix = np.empty((n_sets * n, own.size), order="F")
        matrix[:, : layout.n_given] = own[: layout.n_given]
        log_weight = np.tile(self._log_shares(n), (n_sets, 1))
        if self.wanted is not None:
            matrix[:, layout.n_given - 1] = np.tile(_decisions(n), n_sets)
        table, streams = Table(layout.features, matrix), np.repeat(keys, n)
        draws = np.tile(np.arange(n, dtype=np.uint64), n_sets)
        for k, sampler in enumerate(self.samplers, layout.n_given):
            is_kept = kept[:, self._column[k]]
            feature, given = layout.features[k], layout.given(table, k)
            stays = np.flatnonzero(np.repeat(is_kept, n))
            matrix[stays, k] = own[k]
            if stays.size and self._column[k] not in self.determined:
                density = sampler.log_density(given.take(stays), np.full(stays.size, own[k])).reshape(-1, n)
                log_weight[is_kept] += _supported(density)
            free = np.flatnonzero(np.repeat(~is_kept, n))
            if free.size:
                key = derive_key(self.seed, "given", feature.name)
                of_rows = RowStreams(key, streams[free], draws[free])
                matrix[free, k] = Conditional(sampler, feature, given.take(free), of_rows).draw()
        return matrix[:, layout.place_in_chain].reshape(n_sets, n, -1), log_weight

    def log_density(self, rows: Floats) -> Floats:
        """Return the log density of encoded rows with the row's fixed values, marginal to the decision."""
        by_decision = []
        for decision, log_share in zip((False, True), self._log_shares(2)):
            table, total = self.layout.order(rows, decision), np.full(len(rows), log_share)
            for k, sampler in enumerate(self.samplers, self.layout.n_given):
                if self._column[k] not in self.determined:
                    total += sampler.log_density(self.layout.given(table, k), table.matrix[:, k])
            by_decision.append(total)
        return np.asarray(np.logaddexp(*by_decision))

    def log_mixture(self, column: int, values: Floats, rows: Floats) -> Floats:
        """Return the log density of values of a column, over drawn `rows` with no kept feature (q of step 4)."""
        k, log_weight = self.layout.place_in_chain[column], self._log_shares(len(rows))
        some, n = Table(self.layout.features, self.layout.order(rows, _decisions(len(rows)) == 1).matrix), len(values)
        given = self.layout.given(some, k).take(np.repeat(np.arange(len(rows)), n))
        density = self.samplers[k - self.layout.n_given].log_density(given, np.tile(values, len(rows)))
        return np.asarray(
            scipy.special.logsumexp(density.reshape(-1, n) + log_weight[:, None], axis=0)
            - scipy.special.logsumexp(log_weight)
        )

    def _log_shares(self, n: int) -> Floats:
        """Return the log weights of draws for the two decisions in turn (step 3)."""
        if self.wanted is None:
            return np.zeros(n)
        with np.errstate(divide="ignore"):
            return np.log(np.where(_decisions(n) == 1, self.wanted, 1.0 - self.wanted))

    @cached_property
    def _column(self) -> dict[int, int]:
        """The column of the data at each place in the chain."""
        return {k: j for j, k in enumerate(self.layout.place_in_chain)}


def _decisions(n: int) -> Ints:
    return np.arange(n) % 2


def _supported(log_density: Floats) -> Floats:
    """Return log densities, a row for each set, bounded below by a share of the largest one of the set (step 5)."""
    largest = log_density.max(axis=1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    return np.asarray(np.maximum(log_density, largest + np.log(LEAST_DENSITY)))


def share_of_wanted(layout: ChainLayout, givens: Floats, weights: Floats | None, own: Floats) -> float:
    """Return P(wanted decision | fixed values `own`), from the fixed values and decisions of training rows (step 3)."""
    table, last = Table(layout.features[: layout.n_given], givens), layout.n_given - 1
    target = Column(table.features[last], np.ascontiguousarray(givens[:, last]), weights)
    tree = CartSampler(min_leaf=LEAF).fit(table.first(last), target)
    of_row = Table(table.features[:last], np.asfortranarray(own[None]))
    return float(np.exp(tree.log_density(of_row, np.ones(1))[0]))
