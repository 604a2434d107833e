"""Donors from the leaves of trees: the common part of all samplers that grow trees.

1. A tree is grown on all rows, which are also its donors. With `proper`, a bootstrap sample replaces the rows, as in
   synthpop. With `honest`, half of the rows grow the tree and the others are its donors (in a forest, the out-of-bag
   rows), because donors that a tree was grown on vary less than new rows.
2. With `min_donors`, a tree with copies or weights is grown again with larger leaves until each has enough donors.
3. A draw is the value of a donor in the row's leaf, chosen uniformly or by weight (`engine`).

Draws are observed values; their combinations are new (paper, section 2.2). Missing values of a categorical target are
one more level. Otherwise separate trees model whether a value is missing. With weights, a bootstrap sample has as many
rows as the sum of the weights.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check
from mcce.exceptions import SamplerError
from mcce.rng import RowStreams
from mcce.samplers.base import BaseMeasure, ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.donors.density import MarginalDensity
from mcce.samplers.donors.engine import DonorForest
from mcce.samplers.donors.model import DonorModel, TreesApart, draw_around, reaches
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.smoothing import Smoothing, smoothed_without_ranks
from mcce.samplers.summary import Summary
from mcce.storage.fields import learned
from mcce.table import Column, Feature, Table
from mcce.table.weights import place_of_copy
from mcce.trees.cart import with_donors
from mcce.trees.tree import Tree
from mcce.wording import Parameter, Value

if TYPE_CHECKING:
    from mcce.trees.display import FittedTree


def bootstrap(n: int, streams: RowStreams, weights: Floats | None = None) -> Ints:
    """Return ascending rows of a bootstrap sample, one for each stream, uniformly or by weight."""
    return np.sort(draw_rows(np.arange(n), streams, weights)) if n else np.arange(0)


def draw_rows(rows: Ints, streams: RowStreams, weights: Floats | None = None) -> Ints:
    """Return one of the rows for each stream, uniformly or by weight."""
    if weights is None:
        return rows[streams.integer(rows.size)]
    upto = np.cumsum(weights)
    return rows[place_of_copy(upto, streams.uniform() * upto[-1])]


def n_copies(weights: Floats) -> int:
    """Return the size of a bootstrap sample of weighted rows."""
    return max(round(float(weights.sum())), 1)


def halves(rows: Ints, streams: RowStreams) -> tuple[Ints, Ints]:
    """Split rows into those that grow a tree and its donors; copies of a row stay together.

    Rows too few to be split are used for both. `streams` has one stream per training row.
    """
    order = np.argsort(streams.uniform(), kind="stable")
    grows = np.zeros(order.size, dtype=bool)
    grows[order[: order.size // 2]] = True
    growing, donors = rows[grows[rows]], rows[~grows[rows]]
    return (growing, donors) if growing.size and donors.size else (rows, rows)


def outside(rows: Ints, growing: Ints) -> Ints:
    """Return the rows that do not grow a tree; all rows if there are none."""
    left = rows[~np.isin(rows, growing)]
    return left if left.size else rows


def check_resampling(owner: object, proper: object, honest: object) -> None:
    """Raise if `proper` or `honest` is not a bool."""
    for name, value in (("proper", proper), ("honest", honest)):
        must_be = ("it must be ", Value(True), " or ", Value(False), ".")
        check(isinstance(value, bool), value, name, *must_be, owner=owner)


Self = TypeVar("Self", bound="DonorSampler")
LeafSelf = TypeVar("LeafSelf", bound="LeafDonorSampler")
Purpose = Literal["value", "missing"]


class DonorSampler(ConditionalSampler):
    """Draws donors from the leaves of trees; a base class. Subclasses grow the trees."""

    handles_missing = True
    thread_safe = True
    discloses = "{donors_.forest.values} training values of it, and the training rows they are of"
    leaves_one_out = True

    donors_: DonorModel = learned(DonorModel)
    min_donors: int = 1
    proper: bool = False
    honest: bool = False
    smoothing: Smoothing = None

    @property
    def draws_observed(self) -> bool:  # type: ignore[override]
        """Whether draws are training values: not with smoothing."""
        return self.smoothing is None

    @abstractmethod
    def _grow_trees(self, given: Table, target: Column, purpose: Purpose) -> Sequence[Tree]:
        """Grow trees for a target without missing values: its value, or an indicator of missing values."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise if a parameter is invalid."""

    def fit(self: Self, given: Table, target: Column) -> Self:
        self._check_parameters()
        self.check_target(target.feature)
        feature, values = target.feature, target.values
        missing = np.isnan(values)
        decider = None
        if missing.any() and feature.kind == "categorical":
            levels = np.where(missing, feature.n_levels, values)
            trees = self._grow_trees(given, target.with_values(levels, with_missing_level(feature)), "value")
        elif missing.all():
            trees = self._grow_trees(given.first(0), target.with_values(np.zeros(missing.size)), "value")
        elif missing.any():
            indicator = missing.astype(np.float64)
            grown = self._grow_trees(given, target.with_values(indicator, missing_indicator(feature)), "missing")
            decider = self._donors_of(grown, indicator, target.weights)
            known = np.flatnonzero(~missing)
            grown = self._grow_trees(given.take(known), target.take(known), "value")
            trees = [replace(tree, donors=known[tree.donors].astype(np.int32)) for tree in grown]
        else:
            trees = self._grow_trees(given, target, "value")
        forest = self._donors_of(trees, values, target.weights)
        self._check_pools([*trees, *(decider.trees if decider is not None else [])], feature)
        margin = MarginalDensity.of(values, feature.n_levels, target.weights)
        self.donors_ = DonorModel(forest, decider, margin, feature.is_numeric, self.min_donors, target.weights)
        return self

    @property
    def _resamples_by_weight(self) -> bool:
        """Whether weights enter through a bootstrap sample, so that donors have equal weights."""
        return self.proper

    def _donors_of(self, trees: Sequence[Tree], values: Floats, weights: Floats | None) -> DonorForest:
        weighed = weights is not None and not self._resamples_by_weight
        of_donors = [weights[tree.donors] for tree in trees] if weights is not None and weighed else None
        return DonorForest.of(trees, [values[tree.donors] for tree in trees], of_donors)

    def _check_pools(self, trees: Sequence[Tree], feature: Feature) -> None:
        """Raise if a leaf has fewer than `min_donors` distinct training rows."""
        fewest = self.min_donors if self.min_donors == 1 else min(map(fewest_donors, trees))
        if fewest < self.min_donors:
            raise SamplerError(
                Value(self),
                f" would draw {feature.name!r} from {fewest} training rows, and ",
                Parameter("min_donors"),
                f" is {self.min_donors}; there are too few rows with a known value. Lower ",
                Parameter("min_donors"),
                ", or leave it out.",
            )

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        if within is not None:
            return self.sample_within(given, rng, within).values
        self.check_fitted("donors_")
        how, source = (DonorModel.draw if self._keeps_donors else draw_around), self._source
        return source.draw(given, rng, how) if isinstance(source, TreesApart) else how(source, given, rng)

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw one of the allowed donors of each row's leaves, or a missing value with its probability.

        With smoothing, use rejection sampling.
        """
        self.check_fitted("donors_")
        if not self._keeps_donors:
            return super().sample_within(given, rng, within)
        return self._source.draw_within(given, rng, within)

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether a donor of the row's leaves has the value or, for a number, is within the local spacing.

        With smoothing, also whether a number is within the reach of a donor's kernel.
        """
        self.check_fitted("donors_")
        supported = self.donors_.supports(given, values)
        return supported if self._keeps_donors else supported | reaches(self.donors_, given, values)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        self.check_fitted("donors_")
        return self._source.log_density(given, values, training_rows)

    def distribution(self, given: Table) -> DistributionFunctions:
        """Return the distribution of each row's donors; raise with smoothing."""
        self.check_fitted("donors_")
        if not self._keeps_donors:
            raise smoothed_without_ranks(self)
        return self._source.distribution(given)

    @property
    def _source(self) -> DonorModel | TreesApart:
        """The donors to draw from: pooled over the trees, or tree by tree."""
        return self.donors_

    @property
    def _keeps_donors(self) -> bool:
        """Whether donors are drawn unsmoothed, as levels always are."""
        return self.smoothing is None or not self.donors_.is_number

    def base_measure(self) -> BaseMeasure:
        self.check_fitted("donors_")
        return self.donors_.margin.base_measure

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        self._check_parameters()
        super().check_state(given, target, n_rows)
        self.donors_.check_columns(given, target, n_rows)


def fewest_donors(tree: Tree) -> int:
    """Return the smallest number of distinct training rows in a leaf."""
    if np.unique(tree.donors).size == tree.donors.size:
        return int(tree.size[tree.stops].min())
    leaves = zip(tree.start[tree.stops], tree.size[tree.stops])
    return min(np.unique(tree.donors[start : start + size]).size for start, size in leaves)


def with_missing_level(feature: Feature) -> Feature:
    levels = pd.Index([*range(feature.n_levels + 1)])
    return Feature(feature.name, "categorical", levels.dtype, levels, 0.0, float(feature.n_levels))


def missing_indicator(feature: Feature) -> Feature:
    """Return a two-level feature: whether a value of this feature is missing."""
    return Feature(feature.name, "categorical", np.dtype(bool), pd.Index([False, True], dtype=object), 0.0, 1.0)


class LeafDonorSampler(DonorSampler):
    """Draws donors from the leaves of a single tree; a base class. Subclasses grow the tree.

    After `fit`, `tree` shows it: ``print(sampler.tree)``, ``sampler.tree.to_frame()``, ``sampler.tree.plot()``.
    """

    given_features_: tuple[Feature, ...]
    target_feature_: Feature
    random_state: int | None = 0

    @abstractmethod
    def _grow(self, given: Table, target: Column) -> Tree:
        """Grow a tree for a target without missing values."""

    @property
    def leaf_size(self) -> int:
        """The fewest rows of a leaf; in an honest tree also the fewest donors."""
        return self.min_donors

    def _grow_trees(self, given: Table, target: Column, purpose: Purpose) -> Sequence[Tree]:
        if not (self.proper or self.honest or (target.weights is not None and self.min_donors > 1)):
            return [self._grow(given, target)]
        n = given.n_rows
        streams = RowStreams.from_seed(self.fit_seed(self.random_state), n).child("rows", target.feature.name, purpose)
        rows = np.arange(n)
        if self.proper and target.weights is not None:
            drawn = RowStreams.from_seed(self.fit_seed(self.random_state), n_copies(target.weights))
            rows = bootstrap(n, drawn.child("rows", target.feature.name, purpose), target.weights)
        elif self.proper:
            rows = bootstrap(n, streams)
        growing, donors = halves(rows, streams) if self.honest else (rows, rows)
        part, values = given.take(growing), target.take(growing)
        if self.proper:
            values = Column(values.feature, values.values)  # sampled by weight, so weights are equal now
        least = self.min_donors
        while True:
            grower = type(self)(**{**self.get_params(), "min_donors": least})
            tree = grower._grow(part, values)
            if self.honest:
                tree = with_donors(tree, given.matrix, donors, grower.leaf_size)
            else:
                tree = replace(tree, donors=growing[tree.donors].astype(np.int32))
            if tree.n_nodes == 1 or fewest_donors(tree) >= self.min_donors:
                return [tree]
            least += (least + 1) // 2  # a bootstrap sample contains some rows several times

    def fit(self: LeafSelf, given: Table, target: Column) -> LeafSelf:
        return super().fit(given, target).name_columns(given.features, target.feature)

    def name_columns(self: LeafSelf, given: Sequence[Feature], target: Feature) -> LeafSelf:
        """Set the features shown in `tree`."""
        self.given_features_, self.target_feature_ = tuple(given), target
        return self

    @property
    def tree_(self) -> Tree:
        return self.donors_.forest.trees[0]

    def summary(self) -> Summary:
        return Summary(self.tree)

    @property
    def tree(self) -> FittedTree:
        """The fitted tree, to print, plot or convert to a table; `missing_tree` models missing values."""
        from mcce.trees.display import FittedTree

        self.check_fitted("donors_")
        target, values = self.target_feature_, self.donors_.forest.values
        if target.levels is not None and np.isnan(values).any():
            target = replace(target, levels=pd.Index([*target.levels, "missing"], dtype=object))
            values = np.where(np.isnan(values), target.n_levels - 1, values)
        return FittedTree(self.tree_, self.given_features_, target, values, self.donors_.forest.weights)

    @property
    def missing_tree(self) -> FittedTree | None:
        """The tree that models whether a value is missing; None if there is none."""
        from mcce.trees.display import FittedTree

        self.check_fitted("donors_")
        target, decider = self.target_feature_, self.donors_.decider
        if decider is None:
            return None
        indicator = replace(missing_indicator(target), name=f"{target.name} is missing")
        return FittedTree(decider.trees[0], self.given_features_, indicator, decider.values, decider.weights)
