"""Drawing donors from the leaves of trees: what all samplers that grow trees share, one tree or many.

1. Grow trees for the target on the given columns: each subclass its own kind.
2. Route every row of `given` to its leaves.
3. Draw one training value of the target among the donors of these leaves (`mcce.samplers.donors.engine`): uniformly,
   or by the weights of the training rows.

The values drawn are observed values; their combinations are new (paper, section 2.2). Missing values of a categorical
target are one more level. For a numeric or ordered target with missing values first trees decide whether the draw is
missing, and others, grown on the complete rows, give the value.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeVar

import numpy as np
import pandas as pd

from mcce.arrays import Bools, Floats, Ints
from mcce.exceptions import SamplerError
from mcce.rng import RowStreams
from mcce.samplers.base import BaseMeasure, ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.donors.by_tree import TreesApart
from mcce.samplers.donors.checking import check_donors, n_donors
from mcce.samplers.donors.density import MarginalDensity
from mcce.samplers.donors.engine import DonorForest
from mcce.samplers.donors.model import DonorModel
from mcce.samplers.donors.spreading import draw_around, reaches
from mcce.samplers.smoothing import Smoothing
from mcce.table import Column, Feature, Table
from mcce.trees.tree import Tree

Self = TypeVar("Self", bound="DonorSampler")
Purpose = Literal["value", "missing"]


class DonorSampler(ConditionalSampler):
    """Draws donors from the leaves of trees. A subclass says how these are grown."""

    handles_missing = True
    thread_safe = True
    leaves_one_out = True

    donors_: DonorModel
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
        """Grow trees for a target without missing values (step 1): for its value, or for whether it is missing."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise an InputError for a parameter out of its range."""

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Grow the trees (step 1) and keep the donors of their leaves."""
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
        """Join trees with the values of their donors, and their weights."""
        weighed = weights is not None and not self._resamples_by_weight
        of_donors = [weights[tree.donors] for tree in trees] if weights is not None and weighed else None
        return DonorForest.of(trees, [values[tree.donors] for tree in trees], of_donors)

    def _check_pools(self, trees: Sequence[Tree], feature: Feature) -> None:
        """Refuse trees with a leaf of fewer than `min_donors` distinct training rows."""
        fewest = self.min_donors if self.min_donors == 1 else min(map(fewest_donors, trees))
        if fewest < self.min_donors:
            raise SamplerError(
                f"{self!r} would draw {feature.name!r} from {fewest} training rows, and min_donors is "
                f"{self.min_donors}; there are too few rows with a known value. Lower min_donors, or leave it out."
            )

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw a donor of each row's leaves (steps 2 and 3); restricted draws choose among the allowed donors."""
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
        """Return a smoothed log density of each value among its donors, see `mcce.samplers.donors.density`."""
        self.check_fitted("donors_")
        return self._source.log_density(given, values, training_rows)

    @property
    def _source(self) -> DonorModel | TreesApart:
        """What is drawn from: all donors of a row alike, or tree by tree."""
        return self.donors_

    @property
    def _keeps_donors(self) -> bool:
        """Whether donors are drawn as they are: levels always."""
        return self.smoothing is None or not self.donors_.is_number

    def base_measure(self) -> BaseMeasure:
        """Return what the density is with respect to: probabilities of levels and of numbers with point mass."""
        self.check_fitted("donors_")
        return self.donors_.margin.base_measure

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        """Refuse donors that are not of these columns and training rows."""
        self._check_parameters()
        check_donors(self.donors_, given, target, n_rows)

    def disclosed(self) -> str:
        """Return that the donors' values stand in the state."""
        return f"{n_donors(self.donors_):,} training values of it, and the training rows they are of"


def fewest_donors(tree: Tree) -> int:
    """Return how many distinct training rows the leaf with the fewest has."""
    if np.unique(tree.donors).size == tree.donors.size:
        return int(tree.size[tree.stops].min())
    leaves = zip(tree.start[tree.stops], tree.size[tree.stops])
    return min(np.unique(tree.donors[start : start + size]).size for start, size in leaves)


def with_missing_level(feature: Feature) -> Feature:
    """Return the feature with "missing" as one more level."""
    levels = pd.Index([*range(feature.n_levels + 1)])
    return Feature(feature.name, "categorical", levels.dtype, levels, 0.0, float(feature.n_levels))


def missing_indicator(feature: Feature) -> Feature:
    """Return a two-level feature that says whether this one is missing."""
    return Feature(feature.name, "categorical", np.dtype(bool), pd.Index([False, True], dtype=object), 0.0, 1.0)
