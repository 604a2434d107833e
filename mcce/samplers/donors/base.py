"""Drawing donors from the leaves of trees: what all samplers that grow trees share.

1. All rows grow a tree and are its donors, unless `proper`: a bootstrap sample takes the place of the rows, as in
   synthpop; or `honest`: half of the rows grow the tree, the others are its donors (in a forest, those outside its
   bootstrap sample), because donors that a tree was grown on are less spread out than new rows.
2. With `min_donors`, a tree with copies or weights is grown again with larger leaves until each has enough donors.
3. A draw is a training value among the donors of the row's leaf, uniformly or by weight (`engine`).

The values drawn are observed; their combinations are new (paper, section 2.2). Missing values of a categorical target
are one more level. Otherwise separate trees decide whether a draw is missing. With weights, as many rows are drawn as
the weights sum to.
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
    """Return rows drawn with replacement, ascending: `n` of them, or by weight as many as there are streams."""
    return np.sort(draw_rows(np.arange(n), streams, weights)) if n else np.arange(0)


def draw_rows(rows: Ints, streams: RowStreams, weights: Floats | None = None) -> Ints:
    """Return one of the rows for each stream, uniformly or by their weights: as if each row stood there so often."""
    if weights is None:
        return rows[streams.integer(rows.size)]
    upto = np.cumsum(weights)
    return rows[place_of_copy(upto, streams.uniform() * upto[-1])]


def n_copies(weights: Floats) -> int:
    """Return how many rows weighted ones stand for: so many has a bootstrap sample of them."""
    return max(round(float(weights.sum())), 1)


def halves(rows: Ints, streams: RowStreams) -> tuple[Ints, Ints]:
    """Return the rows that grow a tree, and its donors: a training row, and all its copies, is either; or all are both.

    Too few rows to be parted are both. `streams` has one stream a training row.
    """
    order = np.argsort(streams.uniform(), kind="stable")
    grows = np.zeros(order.size, dtype=bool)
    grows[order[: order.size // 2]] = True
    growing, donors = rows[grows[rows]], rows[~grows[rows]]
    return (growing, donors) if growing.size and donors.size else (rows, rows)


def outside(rows: Ints, growing: Ints) -> Ints:
    """Return the rows that are not among those that grow a tree; all, if there are none."""
    left = rows[~np.isin(rows, growing)]
    return left if left.size else rows


def check_resampling(owner: object, proper: object, honest: object) -> None:
    """Check the two parameters of a sampler."""
    for name, value in (("proper", proper), ("honest", honest)):
        must_be = ("it must be ", Value(True), " or ", Value(False), ".")
        check(isinstance(value, bool), value, name, *must_be, owner=owner)


Self = TypeVar("Self", bound="DonorSampler")
LeafSelf = TypeVar("LeafSelf", bound="LeafDonorSampler")
Purpose = Literal["value", "missing"]


class DonorSampler(ConditionalSampler):
    """Draws donors from the leaves of trees. A subclass says how these are grown."""

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
        """Whether every number drawn is a training value: without smoothing."""
        return self.smoothing is None

    @abstractmethod
    def _grow_trees(self, given: Table, target: Column, purpose: Purpose) -> Sequence[Tree]:
        """Grow trees for a target without missing values: for its value, or for whether it is missing."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise an InputError for a parameter out of its range."""

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
        """Whether rows are the donors of a tree as often as a bootstrap by weight has drawn them, all alike."""
        return self.proper

    def _donors_of(self, trees: Sequence[Tree], values: Floats, weights: Floats | None) -> DonorForest:
        weighed = weights is not None and not self._resamples_by_weight
        of_donors = [weights[tree.donors] for tree in trees] if weights is not None and weighed else None
        return DonorForest.of(trees, [values[tree.donors] for tree in trees], of_donors)

    def _check_pools(self, trees: Sequence[Tree], feature: Feature) -> None:
        """Refuse trees with a leaf of fewer than `min_donors` distinct training rows."""
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
        """Draw one of the allowed donors of each row's leaves, or a missing value by its probability.

        With smoothing, draw again until a number is allowed.
        """
        self.check_fitted("donors_")
        if not self._keeps_donors:
            return super().sample_within(given, rng, within)
        return self._source.draw_within(given, rng, within)

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether a donor of the row's leaves equals the value or, for a number, lies as close as donors do.

        With smoothing, also whether a number lies within reach of a donor's kernel.
        """
        self.check_fitted("donors_")
        supported = self.donors_.supports(given, values)
        return supported if self._keeps_donors else supported | reaches(self.donors_, given, values)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        self.check_fitted("donors_")
        return self._source.log_density(given, values, training_rows)

    def distribution(self, given: Table) -> DistributionFunctions:
        """Return the distribution of each row's donors; smoothed draws have none here."""
        self.check_fitted("donors_")
        if not self._keeps_donors:
            raise smoothed_without_ranks(self)
        return self._source.distribution(given)

    @property
    def _source(self) -> DonorModel | TreesApart:
        """The donors to draw from: all of a row alike, or tree by tree."""
        return self.donors_

    @property
    def _keeps_donors(self) -> bool:
        """Whether donors are drawn as they are: levels always."""
        return self.smoothing is None or not self.donors_.is_number

    def base_measure(self) -> BaseMeasure:
        self.check_fitted("donors_")
        return self.donors_.margin.base_measure

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        self._check_parameters()
        super().check_state(given, target, n_rows)
        self.donors_.check_columns(given, target, n_rows)


def fewest_donors(tree: Tree) -> int:
    """Return how many distinct training rows the leaf with the fewest has."""
    if np.unique(tree.donors).size == tree.donors.size:
        return int(tree.size[tree.stops].min())
    leaves = zip(tree.start[tree.stops], tree.size[tree.stops])
    return min(np.unique(tree.donors[start : start + size]).size for start, size in leaves)


def with_missing_level(feature: Feature) -> Feature:
    levels = pd.Index([*range(feature.n_levels + 1)])
    return Feature(feature.name, "categorical", levels.dtype, levels, 0.0, float(feature.n_levels))


def missing_indicator(feature: Feature) -> Feature:
    """Return a two-level feature that says whether this one is missing."""
    return Feature(feature.name, "categorical", np.dtype(bool), pd.Index([False, True], dtype=object), 0.0, 1.0)


class LeafDonorSampler(DonorSampler):
    """Draws donors from the leaves of a tree. A subclass says how the tree is grown.

    After `fit`, `tree` is the tree to look at: ``print(sampler.tree)``, ``sampler.tree.to_frame()``,
    ``sampler.tree.plot()``.
    """

    given_features_: tuple[Feature, ...]
    target_feature_: Feature
    random_state: int | None = 0

    @abstractmethod
    def _grow(self, given: Table, target: Column) -> Tree:
        """Grow a tree for a target without missing values."""

    @property
    def leaf_size(self) -> int:
        """The fewest rows of a leaf, of an honest tree the fewest donors too."""
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
            values = Column(values.feature, values.values)  # drawn by weight, they count the same
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
            least += (least + 1) // 2  # some rows are several times in a bootstrap sample

    def fit(self: LeafSelf, given: Table, target: Column) -> LeafSelf:
        return super().fit(given, target).name_columns(given.features, target.feature)

    def name_columns(self: LeafSelf, given: Sequence[Feature], target: Feature) -> LeafSelf:
        """Say what the columns are called in `tree`, if not as in `fit`."""
        self.given_features_, self.target_feature_ = tuple(given), target
        return self

    @property
    def tree_(self) -> Tree:
        return self.donors_.forest.trees[0]

    def summary(self) -> Summary:
        return Summary(self.tree)

    @property
    def tree(self) -> FittedTree:
        """The fitted tree, to print, plot or turn into a table; `missing_tree` decides on missing values."""
        from mcce.trees.display import FittedTree

        self.check_fitted("donors_")
        target, values = self.target_feature_, self.donors_.forest.values
        if target.levels is not None and np.isnan(values).any():
            target = replace(target, levels=pd.Index([*target.levels, "missing"], dtype=object))
            values = np.where(np.isnan(values), target.n_levels - 1, values)
        return FittedTree(self.tree_, self.given_features_, target, values, self.donors_.forest.weights)

    @property
    def missing_tree(self) -> FittedTree | None:
        """The tree that decides whether a draw is missing; None if it is not needed."""
        from mcce.trees.display import FittedTree

        self.check_fitted("donors_")
        target, decider = self.target_feature_, self.donors_.decider
        if decider is None:
            return None
        indicator = replace(missing_indicator(target), name=f"{target.name} is missing")
        return FittedTree(decider.trees[0], self.given_features_, indicator, decider.values, decider.weights)
