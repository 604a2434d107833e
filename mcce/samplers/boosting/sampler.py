"""Gradient boosting as a conditional: quantiles of numbers, probabilities of levels.

1. Levels: boost trees for the probabilities of all classes; numbers: for the quantiles at the levels 1 / (m + 1), ...,
   m / (m + 1) (scikit-learn's histogram gradient boosting). There are as many trees as predict held-out rows best
   (`mcce.samplers.boosting.growing`). Unordered levels of a given enter as 0/1 columns, missing values as they are.
2. Quantiles blur the step from no savings to some. So numbers that more than 5 % of the rows share are classes of their
   own, and all others together one more class, whose quantiles are those of its rows alone. Numbers that all have point
   mass, 20 distinct ones at most, are all classes.
3. Draw a class by its probability; a number of the last class from its predicted quantiles, put in order: straight
   between them, beyond the outer ones by as much as training values lie beyond those that trees without their row have
   predicted (`mcce.samplers.quantiles`). It becomes the nearest training value (`mcce.samplers.boosting.cells`).
4. The density of a number with point mass is its probability; that of others the probability of an interval around it
   over its length, an eighth of the row's spread to both sides, less what has point mass there: a declared surrogate,
   with a small even part (`mcce.samplers.column_density`).
5. A target with missing values has two parts, as in `mcce.samplers.parametric.regression`: classes say whether it is
   missing, and trees grown on the complete rows give the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from mcce.arrays import Bools, Floats, Ints
from mcce.checks import check_count, is_number
from mcce.exceptions import InputError
from mcce.rng import RowStreams, resolve_seed
from mcce.samplers.base import BaseMeasure, ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.boosting.cells import Cells
from mcce.samplers.boosting.growing import Growing
from mcce.samplers.boosting.trees import BoostedTrees
from mcce.samplers.column_density import ColumnDensity
from mcce.samplers.crossfit import indicator_design, n_design_columns
from mcce.samplers.levels import draw_levels, log_probability, supported_levels
from mcce.samplers.quantiles import PredictedQuantiles, Tails
from mcce.samplers.within import log_of
from mcce.soundness import FLOAT, check_array, check_flag, check_rising, check_type, require
from mcce.table import Column, Feature, Table

Self = TypeVar("Self", bound="BoostingSampler")

_HALF_WIDTH = 0.125  # of an interval that a density is read from, in spreads


class BoostingSampler(ConditionalSampler):
    """Draws from quantiles or probabilities that gradient boosting predicts.

    Parameters
    ----------
    n_quantiles : int
        Levels of which a number's quantiles are predicted.
    max_trees : int
        Most iterations of boosting; their number is chosen by held-out rows.
    learning_rate : float
        What each tree's prediction is multiplied by.
    max_leaves : int
        Most leaves of a tree.
    min_leaf : int
        Fewest rows of a leaf.
    random_state : int or None
        Seed of the folds, beside the chain's own; a sampler that is fitted alone has this one only.

    Attributes
    ----------
    classes_ : codes of the levels, or the numbers that are classes.
    class_trees_, quantile_trees_ : `mcce.samplers.boosting.trees.BoostedTrees` of the classes, and one a quantile.

    Notes
    -----
    Trees are grown `n_quantiles` + 15 times for quantiles, six times for classes: seconds where `cart` takes hundredths
    of them. Ordered levels are classes without order. The numbers drawn are observed values. Weights of training rows
    weigh their losses; `min_leaf` counts rows, as scikit-learn does.

    References
    ----------
    Friedman (2001), "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29.
    Chernozhukov, Fernández-Val and Galichon (2010), "Quantile and probability curves without crossing", Econometrica
    78.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = {"salary": mcce.BoostingSampler(n_quantiles=5, max_trees=10), "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> chain.sample(n=3).shape
    (3, 10)
    """

    handles_missing = True
    thread_safe = True
    draws_observed = True
    takes_weights = True

    n_levels_: int
    always_missing_: bool
    missing_trees_: BoostedTrees | None
    classes_: Floats
    class_trees_: BoostedTrees | None
    quantile_trees_: list[BoostedTrees]
    tails_: Tails
    cells_: Cells
    column_: ColumnDensity

    def __init__(
        self,
        *,
        n_quantiles: int = 9,
        max_trees: int = 30,
        learning_rate: float = 0.2,
        max_leaves: int = 8,
        min_leaf: int = 20,
        random_state: int | None = 0,
    ) -> None:
        self.n_quantiles = n_quantiles
        self.max_trees = max_trees
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.min_leaf = min_leaf
        self.random_state = random_state

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Grow the trees (steps 1 and 4)."""
        self._check_parameters()
        self.check_target(target.feature)
        if not target.values.size:
            raise InputError(f"{self!r} got no rows to learn {target.feature.name!r} from.")
        options = {
            "learning_rate": self.learning_rate,
            "max_leaf_nodes": self.max_leaves,
            "min_samples_leaf": self.min_leaf,
        }
        growing = Growing(options, self.max_trees, self.fit_seed(self.random_state))
        points, values, weights = indicator_design(given), target.values, target.weights
        missing = np.isnan(values)
        self.always_missing_ = bool(missing.all())
        self.missing_trees_ = None
        self.n_levels_ = target.feature.n_levels
        self.quantile_trees_ = []
        if self.always_missing_:
            return self
        if missing.any():
            self.missing_trees_ = growing.classes(points, missing.astype(np.int64), weights)
            points, values = points[~missing], values[~missing]
            weights = None if weights is None else weights[~missing]
        self.classes_ = np.arange(self.n_levels_, dtype=np.float64)
        if not self.n_levels_:
            self.column_ = ColumnDensity.of(values, weights)
            self.classes_ = self.column_.classes
        rest = ~np.isin(values, self.classes_)
        codes = np.where(rest, self.classes_.size, np.searchsorted(self.classes_, values)).astype(np.int64)
        self.class_trees_ = growing.classes(points, codes, weights) if self.classes_.size else None
        if rest.any():
            of_rest = None if weights is None else weights[rest]
            self.quantile_trees_, outer = growing.quantiles(points[rest], values[rest], self._levels, of_rest)
            self.tails_ = Tails.read(outer, values[rest], float(self._levels[0]), of_rest)
            self.cells_ = Cells.of(values[rest], of_rest)
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw one value for each row (step 2); restricted draws are exact."""
        if within is not None:
            return self.sample_within(given, rng, within).values
        self.check_fitted("quantile_trees_")
        if self.always_missing_:
            return np.full(given.n_rows, np.nan)
        drawn = self._draw(given, rng, Within())[0]
        if self.missing_trees_ is not None:
            drawn = np.where(rng.uniform() < self._missing(given), np.nan, drawn)
        return drawn

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw one allowed value for each row, or a missing one by its probability; exact."""
        self.check_fitted("quantile_trees_")
        n = given.n_rows
        may_be_missing = within.allows_missing(n)
        if self.always_missing_:
            return RestrictedDraw.of(np.full(n, np.nan), ~may_be_missing, np.zeros(n))
        drawn, share = self._draw(given, rng, within)
        missing = self._missing(given)
        log_share = log_of(share) + log_of(1.0 - missing)
        found = RestrictedDraw.of(drawn, np.isnan(drawn), log_share)
        if within.missing is None:
            return found
        return found.or_missing(np.exp(log_share), missing * may_be_missing, rng.uniform())

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether each value is a possible level, or lies where numbers are drawn."""
        self.check_fitted("quantile_trees_")
        is_missing = np.isnan(values)
        if self.always_missing_:
            return is_missing
        supported = supported_levels(self._probabilities(given), self._codes(values))
        if self.quantile_trees_:
            near = self.cells_.supports(self._quantiles(given), np.where(is_missing, self.column_.low, values))
            supported &= near | np.isin(values, self.classes_)
        return np.where(is_missing, self.missing_trees_ is not None, supported)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        """Return the log probability of each level, the log density or probability of each number (step 3)."""
        self.check_fitted("quantile_trees_")
        self.refuse_training_rows(training_rows)
        is_missing = np.isnan(values)
        if self.always_missing_:
            return np.where(is_missing, 0.0, -np.inf)
        density = log_probability(self._probabilities(given), self._codes(values))
        if not self.n_levels_:
            known = np.where(is_missing, self.column_.low, values)
            density = self.column_.log_with_even_part(np.exp(density) * self._beside(given, known), known)
        missing = self._missing(given)
        return np.where(is_missing, log_of(missing), density + log_of(1.0 - missing))

    def base_measure(self) -> BaseMeasure:
        """Return what the density is with respect to."""
        self.check_fitted("quantile_trees_")
        return "counting" if self.n_levels_ or self.always_missing_ else self.column_.base_measure

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        """Refuse trees that are not of these columns and of this target."""
        self._check_parameters()
        columns = n_design_columns(given)
        check_flag(self.always_missing_, "always_missing_")
        require(self.n_levels_ == target.n_levels, "n_levels_ is not that of the target")
        check_type(self.quantile_trees_, "quantile_trees_", list)
        check_type(self.missing_trees_, "missing_trees_", BoostedTrees, type(None))
        if self.missing_trees_ is not None:
            self.missing_trees_.check_outputs(columns, 2)
        if self.always_missing_:
            return
        check_array(self.classes_, "classes_", FLOAT, None)
        check_rising(self.classes_, "classes_")
        if self.n_levels_:
            require(np.array_equal(self.classes_, np.arange(self.n_levels_)), "classes_ are not the target's levels")
            require(not self.quantile_trees_, "quantile_trees_ are of a target with levels")
        else:
            check_type(self.column_, "column_", ColumnDensity)
        k = self.classes_.size
        check_type(self.class_trees_, "class_trees_", *([BoostedTrees] if k else [type(None)]))
        if self.class_trees_ is not None:  # one class more where there are other numbers
            self.class_trees_.check_outputs(columns, k + bool(self.quantile_trees_))
        if not self.quantile_trees_:
            require(k > 0, "classes_ are none, and there are no quantiles either")
            return
        require(len(self.quantile_trees_) == self.n_quantiles, "quantile_trees_ are not as many as the quantiles")
        for trees in self.quantile_trees_:
            check_type(trees, "quantile_trees_", BoostedTrees)
            trees.check_outputs(columns, 0)
        check_type(self.tails_, "tails_", Tails)
        check_type(self.cells_, "cells_", Cells)

    def disclosed(self) -> str:
        """Return that the distinct training values stand in the state."""
        n_values = self.cells_.values.size if hasattr(self, "cells_") else 0
        return f"{n_values + self.classes_.size:,} distinct values of it, beside trees that say how often each is drawn"

    def _draw(self, given: Table, rng: RowStreams, within: Within) -> tuple[Floats, Floats]:
        """Draw an allowed value that is not missing, NaN where there is none; return also the probability of these."""
        n, k = given.n_rows, self.classes_.size
        low, high = within.bounds(n)
        weights = self._probabilities(given)
        if self.n_levels_:
            weights[:, :k] *= within.level_mask(n, k)
        else:
            weights[:, :k] *= (self.classes_ >= low[:, None]) & (self.classes_ <= high[:, None])
        if not self.quantile_trees_:
            code = draw_levels(weights, rng, Within())
            return np.append(self.classes_, np.nan)[np.where(np.isnan(code), k, code).astype(np.intp)], weights.sum(1)
        quantiles = self._quantiles(given)
        weights[:, k] *= self.cells_.mass(quantiles, low, high)
        code = draw_levels(weights, rng, Within())
        drawn = self.cells_.draw(quantiles, rng.uniform(), low, high)
        is_class = code < k
        drawn[is_class] = self.classes_[code[is_class].astype(np.intp)]
        return np.where(np.isnan(code), np.nan, drawn), weights.sum(axis=1)

    def _beside(self, given: Table, values: Floats) -> Floats:
        """Return the density or probability of each number among those of its class."""
        if not self.quantile_trees_:
            return np.ones(values.size)
        quantiles, column = self._quantiles(given), self.column_
        density = self.cells_.mass(quantiles, values, values)
        if column.base_measure != "counting":
            reach = _HALF_WIDTH * quantiles.spread
            inside = self.cells_.mass(quantiles, values - reach, values + reach)
            for atom in np.setdiff1d(column.atoms, self.classes_):
                at = np.full(values.size, atom)
                inside = inside - np.where(np.abs(values - atom) <= reach, self.cells_.mass(quantiles, at, at), 0.0)
            density = np.where(column.has_mass(values), density, np.maximum(inside, 0.0) / (2.0 * reach))
        return np.where(np.isin(values, self.classes_), 1.0, density)

    def _quantiles(self, given: Table) -> PredictedQuantiles:
        points = indicator_design(given)
        predicted = np.column_stack([trees.outputs(points)[:, 0] for trees in self.quantile_trees_])
        return PredictedQuantiles.arrange(predicted, self._levels, self.tails_)

    def _probabilities(self, given: Table) -> Floats:
        """Return the probabilities of the classes and, in the last column, of all other numbers."""
        if self.class_trees_ is None:
            return np.ones((given.n_rows, 1))
        return self.class_trees_.probabilities(indicator_design(given), self.classes_.size + 1)

    def _codes(self, values: Floats) -> Floats:
        """Return the column of each value's class in `_probabilities`; NaN of a missing one."""
        codes = np.where(np.isin(values, self.classes_), np.searchsorted(self.classes_, values), self.classes_.size)
        return np.where(np.isnan(values), np.nan, codes)

    def _missing(self, given: Table) -> Floats:
        """Return the probability of each row that its draw is missing."""
        if self.missing_trees_ is None:
            return np.zeros(given.n_rows)
        return self.missing_trees_.probabilities(indicator_design(given), 2)[:, 1]

    @property
    def _levels(self) -> Floats:
        return (np.arange(self.n_quantiles) + 1.0) / (self.n_quantiles + 1)

    def _check_parameters(self) -> None:
        check_count(self.n_quantiles, "n_quantiles", self, 2)
        check_count(self.max_trees, "max_trees", self, 1)
        check_count(self.max_leaves, "max_leaves", self, 2)
        check_count(self.min_leaf, "min_leaf", self, 1)
        if not (is_number(self.learning_rate) and 0 < self.learning_rate <= 1):
            raise InputError(
                f"learning_rate of BoostingSampler is {self.learning_rate!r}; it must be a number above 0, at most 1."
            )
        resolve_seed(self.random_state)
