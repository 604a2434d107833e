"""Draws and densities from the donors of a target, the trees that model missing values, and the target's margin.

With `smoothing="density"` (`draw_around`), a draw is normal around a donor, with the bandwidth of the leaf's density,
restricted to the range of the training values; numbers with point mass are not smoothed. (synthpop uses one bandwidth
for the column.)

`TreesApart` gives all trees the same weight, as in a quantile regression forest (Meinshausen 2006): w_i(x) = mean over
the trees of 1{i in the leaf of x} / (rows of that leaf). A restricted draw chooses a tree in proportion to the
probability of the allowed values. The rows of a leaf are those of the bootstrap sample, with copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.rng import RowStreams
from mcce.samplers.base import REACH, RestrictedDraw, Within
from mcce.samplers.donors import kernels
from mcce.samplers.donors.density import PSEUDO_DONORS, MarginalDensity
from mcce.samplers.donors.engine import DonorForest, Smoothing
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.restricted import log_of
from mcce.samplers.smoothing import truncated_normal
from mcce.storage.fields import FLOAT, check_array, check_codes, check_type, check_weights, require, stored
from mcce.storage.state import Fields, register, stateful
from mcce.table import Feature, Table
from mcce.trees.tree import Tree


def draw_around(model: DonorModel, given: Table, rng: RowStreams) -> Floats:
    """Draw a number around a donor for each row, or a missing value with its probability."""
    forest = model.forest
    leaves = forest.route(given)
    if len(leaves) > 1:
        tree = rng.categorical(forest.mass[leaves].T.astype(np.float64))
        leaves = leaves[tree, np.arange(given.n_rows)][None]
    drawn = forest.draw(np.ascontiguousarray(leaves), rng)
    width = model.smoothing.bandwidth[leaves[0]]
    moves = ~(np.isnan(drawn) | model.margin.is_atom(drawn)) & (width > 0.0)
    uniform = rng.uniform()
    if moves.any():  # a column without known values has no range
        low, high = (np.full(int(moves.sum()), end(forest.values)) for end in (np.nanmin, np.nanmax))
        drawn[moves] = truncated_normal(drawn[moves], width[moves], low, high, uniform[moves])
    if model.decider is not None:
        drawn[model.decider.draw(model.decider.route(given), rng) > 0] = np.nan
    return drawn


def reaches(model: DonorModel, given: Table, values: Floats) -> Bools:
    """Return whether each number is in the observed range and within the reach of a donor's kernel."""
    forest, runs = model.forest, model.smoothing.runs
    found = np.zeros(values.size, dtype=bool)
    if not runs.value.size:
        return found
    distinct, rank = np.unique(runs.value, return_inverse=True)
    stride = distinct.size + 1
    node_of_run = np.repeat(np.arange(runs.first.size - 1), np.diff(runs.first))
    keys = node_of_run * stride + rank  # ascending: by node, then by value
    place = np.searchsorted(distinct, values)
    for leaf in forest.route(given):
        after = np.searchsorted(keys, leaf.astype(np.int64) * stride + place)
        for at in (after - 1, after):
            inside = (at >= runs.first[leaf]) & (at < runs.first[leaf + 1])
            donor = runs.value[np.clip(at, 0, runs.value.size - 1)]
            found |= inside & (np.abs(donor - values) <= REACH * model.smoothing.bandwidth[leaf])
    return found & (values >= np.nanmin(forest.values)) & (values <= np.nanmax(forest.values))


Nodes = npt.NDArray[np.int32]

MANY = 100_000  # with more donors, small tables prepare only the nodes that they reach
FEW = 4  # a table is small if it has fewer rows than a quarter of the nodes


@stateful("donors.DonorModel")
@dataclass(frozen=True)
class DonorModel:
    """The donors of a target.

    Attributes
    ----------
    forest : donors with the target's training values; NaN for a missing one, if there is no `decider`.
    decider : forest that models whether a value is missing: 1 for a missing donor, else 0. None if there is none.
    margin : the target's training distribution.
    is_number : whether the target is a number, which may lie between donors.
    min_donors : the fewest donors of a restricted draw.
    row_weights : weights of the training rows, or None.
    """

    forest: DonorForest = stored(DonorForest)
    decider: DonorForest | None = stored(DonorForest, optional=True)
    margin: MarginalDensity = stored(MarginalDensity)
    is_number: bool = stored(bool)
    min_donors: int = stored(int, least=1, most=2**31, default=1)
    row_weights: Floats | None = stored(FLOAT, "rows", finite=True, above=0.0, optional=True, default=None)

    def check_state(self) -> None:
        """Raise if donors and margin disagree about missing values."""
        share, decider = self.margin.missing_share, self.decider
        missing = np.isnan(self.forest.values).any()
        if decider is not None:
            require(share > 0.0, "decider is present, and there are no missing values")
            require(np.isin(decider.values, [0.0, 1.0]).all(), "decider holds other values than 0 and 1")
            require(not missing or share == 1.0, "forest holds missing donors, and there is a decider")
        elif share == 0.0:
            require(not missing, "forest holds missing donors that the margin does not count")

    def check_columns(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        """Raise if the donors do not belong to these columns and training rows; kernels do not check bounds."""
        require(self.is_number == target.is_numeric, "is_number does not match the target")
        n_levels = np.array([feature.n_levels for feature in given], dtype=np.int64)
        forests = [self.forest] if self.decider is None else [self.forest, self.decider]
        for forest in forests:
            for tree in forest.trees:
                tree.check_columns(n_levels, n_rows)
        if not target.is_numeric:
            check_codes(self.forest.values, "values", target.n_levels)
            levels = np.arange(target.n_levels, dtype=np.float64)
            require(np.array_equal(self.margin.atoms, levels), "atoms are not the levels of the target")
        if self.row_weights is None:
            require(self.margin.n <= n_rows, f"n is {self.margin.n}, and there are {n_rows} training rows")
            weighted = any(forest.weights is not None for forest in forests)
            require(not weighted, "donors have weights, and training rows have none")
        else:
            require(self.row_weights.size == n_rows, f"row_weights are {self.row_weights.size} for {n_rows} rows")

    def draw(self, given: Table, rng: RowStreams) -> Floats:
        """Draw a value for each row, or a missing value with its probability."""
        drawn = self.forest.draw(self.forest.route(given), rng)
        if self.decider is not None:
            drawn[self.decider.draw(self.decider.route(given), rng) > 0] = np.nan
        return drawn

    def draw_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw an allowed value for each row, or a missing value with its probability."""
        leaves = self.forest.route(given)
        drawn, n_allowed = self.forest.draw_within(leaves, rng, within)
        if self.min_donors > 1:
            repeated = self.forest.shares_rows or self.forest.weights is not None
            distinct = self.forest.distinct_allowed(leaves, within) if repeated else n_allowed
            n_allowed = np.where(distinct < self.min_donors, 0, n_allowed)
            drawn = np.where(n_allowed == 0, np.nan, drawn)
        known = self.forest.known[leaves].sum(axis=0)
        share = n_allowed / np.maximum(known, 1 if self.forest.weights is None else 1e-300)
        if self.flags is None:
            return RestrictedDraw.of(drawn, np.isnan(drawn), log_of(share))
        missing_share = self.flags.mean(self._decide(given, leaves))
        share = (1.0 - missing_share) * share
        found = RestrictedDraw.of(drawn, np.isnan(drawn) | (missing_share == 1.0), log_of(share))
        if within.missing is None:
            return found
        return found.or_missing(share, missing_share * within.allows_missing(given.n_rows), rng.uniform())

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether the donors of each row support its value, which may be missing."""
        leaves = self.forest.route(given)
        supported = self.forest.supports(leaves, values, is_number=self.is_number)
        if self.flags is None:
            return supported
        share = self.flags.mean(self._decide(given, leaves))
        return np.where(np.isnan(values), share > 0.0, supported & (share < 1.0))

    def distribution(self, given: Table) -> DistributionFunctions:
        """Return the weighted empirical distribution of the donors of each row."""
        leaves = self.forest.route(given)
        known = self.forest.known[leaves].sum(axis=0)
        total = np.where(known > 0, known, 1.0)
        return DistributionFunctions.of_atoms(
            self.forest.distinct,
            lambda high: self.forest.mass_upto(leaves, high) / total,
            missing=0.0 if self.flags is None else self.flags.mean(self._decide(given, leaves)),
            n_donors=self.forest.size[leaves].sum(axis=0),
        )

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None) -> Floats:
        """Return the smoothed log density of each value, see `mcce.samplers.donors.density`."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        forest = self.forest
        leaves = forest.route(given)
        few = forest.values.size > MANY and values.size * FEW < forest.size.size
        if few and "smoothing" not in vars(self):  # prepare only the nodes reached
            runs = forest.runs_of(np.unique(leaves).astype(np.int64))
            smoothing = forest.smoothing(self.margin, runs)
        else:
            runs, smoothing = forest.runs, self.smoothing
        out = np.empty(values.size)
        kernels.log_densities(
            *(leaves, forest.start, forest.size, forest.values, forest.known, runs),
            *(smoothing.runs, smoothing.bandwidth, smoothing.cells, self.margin.as_kernels_take_it),
            *(forest.own(training_rows, self.row_weights), PSEUDO_DONORS, values, out),
        )
        if self.flags is not None:
            flags = self.flags
            kernels.log_missing(
                *(self._decide(given, leaves), flags.start, flags.size, flags.mass, flags.values, flags.sums),
                *(flags.own(training_rows, None), PSEUDO_DONORS, self.margin.missing_share, values, out),
            )
        return out

    @cached_property
    def smoothing(self) -> Smoothing:
        """The tables for sums of kernels."""
        return self.forest.smoothing(self.margin, self.forest.runs)

    @cached_property
    def flags(self) -> DonorForest | None:
        """Indicators of missing donors; None if the target has no missing values."""
        if self.margin.missing_share == 0.0:
            return None
        return self.decider or self.forest.with_values(np.isnan(self.forest.values).astype(np.float64))

    def _decide(self, given: Table, leaves: Nodes) -> Nodes:
        """Return the leaves in the trees that model missing values; `leaves` are those of the target's trees."""
        return leaves if self.decider is None else self.decider.route(given)


def _read_forest(fields: Fields) -> DonorForest:
    """Read a forest from its fields."""
    trees, values = fields["trees"], fields["values"]
    check_type(trees, "trees", list)
    check_type(values, "values", list)
    require(0 < len(trees) == len(values), f"there are {len(trees)} trees, and donors of {len(values)}")
    for tree, of_tree in zip(trees, values):
        check_type(tree, "trees", Tree)
        check_array(of_tree, "values", FLOAT, tree.donors.size)
        require(not np.isinf(of_tree).any(), "values holds an infinite number")
    total = sum(tree.donors.size for tree in trees)
    require(total < 2**31, f"there are {total} donors, more than can be counted")
    weights = fields.get("weights")
    if weights is not None:
        check_type(weights, "weights", list)
        require(len(weights) == len(trees), f"there are {len(trees)} trees, and weights of {len(weights)}")
        for tree, of_tree in zip(trees, weights):
            check_weights(of_tree, "weights", tree.donors.size)
    return DonorForest.of(trees, values, weights)


register(
    "donors.DonorForest",
    DonorForest,
    lambda forest: (
        {"trees": list(forest.trees), "values": forest.values_by_tree}
        | ({} if forest.weights is None else {"weights": forest.weights_by_tree})
    ),
    _read_forest,
)


Draw = Callable[[DonorModel, Table, RowStreams], Floats]


@dataclass(frozen=True)
class TreesApart:
    """A mixture, with equal weights, of donor models of one tree each."""

    model: DonorModel

    @cached_property
    def trees(self) -> list[DonorModel]:
        """The models of one tree each, with the common margin."""
        forest, decider = self.model.forest, self.model.decider
        return [
            replace(self.model, forest=_tree(forest, t), decider=None if decider is None else _tree(decider, t))
            for t in range(len(forest.trees))
        ]

    def draw(self, given: Table, rng: RowStreams, how: Draw = DonorModel.draw) -> Floats:
        """Draw from a random tree for each row; `how` draws from the model of one tree."""
        chosen, within_tree = rng.integer(len(self.trees)), rng.child("tree")
        drawn = np.empty(given.n_rows)
        for t, tree in enumerate(self.trees):
            rows = np.flatnonzero(chosen == t)
            if rows.size:
                drawn[rows] = how(tree, given.take(rows), within_tree.take(rows))
        return drawn

    def draw_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw an allowed donor of one tree, chosen by the probability of the allowed values."""
        found = [tree.draw_within(given, rng.child("tree", t), within) for t, tree in enumerate(self.trees)]
        mass = np.exp(np.stack([each.log_mass for each in found if each.log_mass is not None], axis=1))
        total = mass.sum(axis=1)
        rejected = ~(total > 0.0)
        chosen = rng.categorical(np.where(rejected[:, None], 1.0, mass))
        values = np.stack([each.values for each in found])[chosen, np.arange(given.n_rows)]
        log_mass = np.log(total / len(found), out=np.full(total.size, -np.inf), where=~rejected)
        return RestrictedDraw.of(values, rejected, log_mass)

    def distribution(self, given: Table) -> DistributionFunctions:
        """Return the mixture of the trees' distributions."""
        parts = [tree.distribution(given) for tree in self.trees]
        mixed = DistributionFunctions.mixed(parts, np.full(len(parts), 1.0 / len(parts)))
        n_donors = np.sum([np.asarray(part.n_donors) for part in parts], axis=0)
        distinct = self.model.forest.distinct
        return DistributionFunctions.of_atoms(distinct, mixed.upto, missing=mixed.missing, n_donors=n_donors)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None) -> Floats:
        each = [tree.log_density(given, values, training_rows) for tree in self.trees]
        return np.asarray(scipy.special.logsumexp(each, axis=0) - np.log(len(each)))


def _tree(forest: DonorForest, t: int) -> DonorForest:
    weights = forest.weights_by_tree
    return DonorForest.of([forest.trees[t]], [forest.values_by_tree[t]], None if weights is None else [weights[t]])
