"""Gradient boosting as a conditional: quantiles of numbers, probabilities of levels.

1. Levels: class probabilities; numbers: quantiles at 1 / (m + 1), ..., m / (m + 1) (scikit-learn's histogram gradient
   boosting). Unordered levels of a given enter as 0/1 columns.
2. Numbers held by more than 5 % of the rows are separate classes; all others are one more class with quantiles. If all
   numbers have point mass and at most 20 are distinct, all are classes.
3. Draw a class, then a number from its sorted quantiles: linear between them, with held-out exceedances beyond the
   outer ones (`mcce.samplers.predictions`). The draw is the training value whose *cell* contains the number.
4. The density of a number with point mass is its probability. For other numbers it is a surrogate: the probability of
   an interval of an eighth of the row's spread on both sides, divided by its length. Both are mixed with a small
   uniform component (`density`).
5. A classifier models whether the target is missing; the other trees are grown on the complete rows.
6. The number of iterations minimises the loss on five held-out folds: pinball loss of the outer quantiles and the
   median, log loss of classes. Losses are weighted.
7. `read_trees` copies the nodes of a fitted estimator into arrays (`BoostedTrees`), which are stored without pickle.
   The nodes are private attributes of scikit-learn, so their predictions are compared with the estimator's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check, check_count, is_number
from mcce.base.compiling import cached
from mcce.base.threads import without_warning
from mcce.exceptions import SamplerError
from mcce.rng import RowStreams, resolve_seed
from mcce.samplers.base import IMPOSSIBLE, BaseMeasure, ConditionalSampler, RestrictedDraw, Within, local_spacing
from mcce.samplers.density import ColumnDensity
from mcce.samplers.estimator import deal_folds, indicator_design, n_design_columns
from mcce.samplers.predictions import PredictedQuantiles, Tails, draw_levels, log_probability, supported_levels
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.registry import register_sampler
from mcce.samplers.restricted import log_of
from mcce.storage.fields import (
    BOOL,
    FLOAT,
    INT,
    check_array,
    check_between,
    check_rising,
    check_type,
    learned,
    require,
    stored,
)
from mcce.storage.state import stateful
from mcce.table import Column, Feature, Table
from mcce.table.weights import equal_chances, mean_of, sorted_with_weights

# mypy: disable-error-code="no-untyped-def"

_CHECKED = 50  # training rows whose predictions are compared with the estimator's


@cached(nogil=True, error_model="numpy")
def add_leaves(points, root, feature, threshold, missing_left, left, right, value, out):
    """Write the value of the leaf that each row reaches in each tree: out[row, tree]."""
    for i in range(points.shape[0]):
        for t in range(root.size):
            node = root[t]
            while feature[node] >= 0:
                x = points[i, feature[node]]
                goes_left = missing_left[node] if np.isnan(x) else x <= threshold[node]
                node = root[t] + (left[node] if goes_left else right[node])
            out[i, t] = value[node]


@stateful("boosting.BoostedTrees")
@dataclass(frozen=True)
class BoostedTrees:
    """Boosted trees of one estimator.

    Attributes
    ----------
    baseline : initial value of each output: one per class, a single one for two classes or a number.
    root : first node of each tree, by iteration, then by output.
    feature, threshold, missing_left, left, right, value : by node; children are numbered from the root, and `feature`
        is -1 in a leaf.
    classes : codes of the classes; empty for a regressor.
    """

    baseline: Floats = stored(FLOAT, None, finite=True)
    root: Ints = stored(INT, "trees", index_of="nodes", rising=True)
    feature: Ints = stored(INT, "nodes", least=-1, most=2**31 - 1)
    threshold: Floats = stored(FLOAT, "nodes")
    missing_left: Bools = stored(BOOL, "nodes")
    left: Ints = stored(INT, "nodes")
    right: Ints = stored(INT, "nodes")
    value: Floats = stored(FLOAT, "nodes", finite=True)
    classes: Ints = stored(INT, None, rising=True)

    @classmethod
    def constant(cls, baseline: Sequence[float], classes: Ints) -> BoostedTrees:
        """Return no trees: the same outputs for every row; none for a single class."""
        floats, ints = np.empty(0), np.empty(0, dtype=np.int64)
        nodes = (ints, ints, floats, np.empty(0, dtype=bool), ints, ints, floats)
        return cls(np.asarray(baseline, dtype=np.float64), *nodes, classes.astype(np.int64))

    def check_state(self) -> None:
        """Raise if the arrays do not form trees: children follow their parents in the same tree."""
        n, n_trees = self.value.size, self.root.size
        outputs = {0: 1, 1: 0, 2: 1}.get(self.classes.size, self.classes.size)
        require(self.baseline.size == outputs, f"baseline has {self.baseline.size} outputs instead of {outputs}")
        require(
            n_trees == 0 if outputs == 0 else n_trees % outputs == 0,
            "the number of trees is not a multiple of the outputs",
        )
        require((n > 0) == (n_trees > 0), "there are nodes without trees, or trees without nodes")
        if n_trees == 0:
            return
        require(self.root[0] == 0, "root does not start at the first node")
        sizes = np.diff(np.append(self.root, n))
        place = np.arange(n) - np.repeat(self.root, sizes)
        inner = self.feature >= 0
        for name in ("left", "right"):
            child = getattr(self, name)[inner]
            inside = (child > place[inner]) & (child < np.repeat(sizes, sizes)[inner])
            require(inside.all(), f"{name} holds a child that does not follow its parent in the same tree")
        require(not np.isnan(self.threshold[inner]).any(), "threshold holds nan")

    def check_outputs(self, n_columns: int, n_levels: int) -> None:
        """Raise if the trees use more columns, or have other classes than `n_levels` (0 for a number)."""
        check_between(self.feature, "feature", -1, n_columns - 1)
        require((self.classes.size == 0) == (n_levels == 0), "classes are set for a number, or missing for levels")
        check_between(self.classes, "classes", 0, n_levels - 1)

    def staged(self, points: Floats) -> Floats:
        """Return the outputs of each row after 0, 1, 2, ... iterations, (rows, iterations + 1, outputs)."""
        n, k = points.shape[0], self.baseline.size
        leaves = np.empty((n, self.root.size))
        nodes = (self.feature, self.threshold, self.missing_left, self.left, self.right, self.value)
        add_leaves(np.ascontiguousarray(points), self.root, *nodes, leaves)
        begin = np.broadcast_to(self.baseline, (n, 1, k))
        return np.cumsum(np.concatenate([begin, leaves.reshape(n, self.root.size // k, k)], axis=1), axis=1)

    def outputs(self, points: Floats) -> Floats:
        return self.staged(points)[:, -1]

    def probabilities(self, points: Floats, n_levels: int) -> Floats:
        found = np.zeros((points.shape[0], n_levels))
        if self.classes.size == 1:
            found[:, self.classes] = 1.0
        else:
            found[:, self.classes] = class_probabilities(self.outputs(points))
        return found


def class_probabilities(outputs: Floats) -> Floats:
    """Return class probabilities: logistic of a single output (the last axis), or softmax of several."""
    if outputs.shape[-1] == 1:
        outputs = np.concatenate([np.zeros_like(outputs), outputs], axis=-1)
    return np.asarray(scipy.special.softmax(outputs, axis=-1))


def read_trees(estimator: Any, points: Floats) -> BoostedTrees:
    """Return the trees of a fitted estimator; raise if they do not reproduce its predictions."""
    grown = [tree.nodes for iteration in estimator._predictors for tree in iteration]
    nodes = np.concatenate(grown)
    trees = BoostedTrees(
        baseline=np.asarray(estimator._baseline_prediction, dtype=np.float64).ravel(),
        root=np.cumsum([0, *(tree.size for tree in grown[:-1])]).astype(np.int64),
        feature=np.where(nodes["is_leaf"].astype(bool), -1, nodes["feature_idx"].astype(np.int64)),
        threshold=nodes["num_threshold"].astype(np.float64),
        missing_left=nodes["missing_go_to_left"].astype(bool),
        left=nodes["left"].astype(np.int64),
        right=nodes["right"].astype(np.int64),
        value=nodes["value"].astype(np.float64),
        classes=np.asarray(getattr(estimator, "classes_", np.empty(0)), dtype=np.int64),
    )
    some = points[:_CHECKED]
    ours = trees.outputs(some)
    if trees.classes.size:
        same = np.allclose(class_probabilities(ours), estimator.predict_proba(some))
    else:
        same = np.allclose(ours[:, 0], estimator.predict(some))
    if not same:
        import sklearn

        raise SamplerError(
            f"the trees of {type(estimator).__name__} could not be read from scikit-learn {sklearn.__version__}: their "
            "predictions differ. Install a version between 1.4 and 1.9, or use "
            "EstimatorSampler(HistGradientBoostingRegressor(loss='quantile'), method='quantiles')."
        )
    return trees


_ABOVE = 1e-6  # relative to the gap: edges are slightly above the midpoint, where predictions may be


@stateful("boosting.Cells")
@dataclass(frozen=True)
class Cells:
    """The distinct training values in order, the edges of their cells, and the local spacing of all training values."""

    values: Floats = stored(FLOAT, "values", rising=True, filled=True)
    edges: Floats = stored(FLOAT, "values + 1")
    spacing: float = stored(float, least=0.0)

    @classmethod
    def of(cls, training: Floats, weights: Floats | None = None) -> Cells:
        """Read known training values."""
        values = np.unique(training)
        inner = values[:-1] + (0.5 + _ABOVE) * np.diff(values)
        spacing = local_spacing(*sorted_with_weights(training, weights))
        return cls(values, np.concatenate([[-np.inf], inner, [np.inf]]), spacing)

    def check_state(self) -> None:
        """Raise if the edges are not between the values."""
        ends = self.edges[[0, -1]]
        require(ends[0] == -np.inf and ends[1] == np.inf, "edges does not start and end at infinity")
        inner = self.edges[1:-1]
        require((inner >= self.values[:-1]).all() and (inner <= self.values[1:]).all(), "edges are not between values")

    def draw(self, quantiles: PredictedQuantiles, uniform: Floats, low: Floats, high: Floats) -> Floats:
        """Return a training value in [low, high] for each row; NaN if there is none."""
        first, last = self._between(low, high)
        possible = first <= last
        first, last = np.where(possible, first, 0), np.where(possible, last, self.values.size - 1)
        drawn = quantiles.draw(uniform, self.edges[first], self.edges[last + 1])
        place = np.clip(np.searchsorted(self.edges[1:-1], drawn), first, last)
        return np.where(possible & ~np.isnan(drawn), self.values[place], np.nan)

    def mass(self, quantiles: PredictedQuantiles, low: Floats, high: Floats) -> Floats:
        """Return the probability of the training values in [low, high] for each row."""
        first, last = self._between(low, high)
        possible = first <= last
        first, last = np.where(possible, first, 0), np.where(possible, last, 0)
        return np.where(possible, quantiles.mass(self.edges[first], self.edges[last + 1]), 0.0)

    def supports(self, quantiles: PredictedQuantiles, values: Floats) -> Bools:
        """Return whether a training value within the local spacing of each number can be drawn."""
        inside = (values >= self.values[0]) & (values <= self.values[-1])
        return np.asarray(inside & (self.mass(quantiles, values - self.spacing, values + self.spacing) > IMPOSSIBLE))

    def _between(self, low: Floats, high: Floats) -> tuple[Ints, Ints]:
        """Return the positions of the first and the last training value in [low, high]."""
        first = np.searchsorted(self.values, low)
        return first, np.searchsorted(self.values, high, side="right") - 1


_ONE_EACH = "The number of unique classes is greater"  # a warning of scikit-learn if most levels have one row
_LEAST = 1e-6  # probability of a class that is missing in the other folds


@dataclass(frozen=True)
class Growing:
    """Grower of trees: options of scikit-learn's estimators, largest number of iterations, seed of the folds."""

    options: dict[str, Any]
    max_trees: int
    seed: int

    def quantiles(
        self, points: Floats, values: Floats, levels: Floats, weights: Floats | None = None
    ) -> tuple[list[BoostedTrees], Floats]:
        """Return the trees of each quantile level, and held-out predictions of the outer quantiles of each row."""
        looked_at = np.unique([0, levels.size // 2, levels.size - 1])
        growers = [partial(self._quantile, level=float(levels[k]), n_trees=self.max_trees) for k in looked_at]
        staged = [self._held_out(points, values, weights, grow) for grow in growers]
        losses = [pinball(values[:, None] - each[:, :, 0], levels[k]) for k, each in zip(looked_at, staged)]
        mean_loss = np.mean(losses, axis=(0, 1)) if weights is None else mean_of(np.mean(losses, axis=0), weights)
        n_trees = int(np.argmin(mean_loss))
        outer = np.column_stack([staged[0][:, n_trees, 0], staged[-1][:, n_trees, 0]])
        return [self._quantile(points, values, weights, level, n_trees) for level in levels], outer

    def classes(self, points: Floats, codes: Ints, weights: Floats | None = None) -> BoostedTrees:
        """Return the trees of a target with levels."""
        found = np.unique(codes)
        if found.size == 1:
            return BoostedTrees.constant([], found)

        def grow(x: Floats, y: Ints, w: Floats | None) -> BoostedTrees:
            return self._classes(x, y, w, self.max_trees)

        def probability_of_own(trees: BoostedTrees, x: Floats, y: Ints) -> Floats:
            if trees.classes.size == 1:
                return np.tile((y == trees.classes[0]).astype(np.float64)[:, None], self.max_trees + 1)
            each = class_probabilities(trees.staged(x))
            place = np.minimum(np.searchsorted(trees.classes, y), trees.classes.size - 1)
            own = each[np.arange(y.size), :, place]
            return np.where((trees.classes[place] == y)[:, None], own, 0.0)

        own = self._held_out(points, codes, weights, grow, probability_of_own)
        n_trees = int(np.argmin(mean_of(-np.log(np.maximum(own, _LEAST)), weights)))
        return self._classes(points, codes, weights, n_trees)

    def _held_out(
        self,
        points: Floats,
        target: Any,
        weights: Floats | None,
        grow: Callable[[Floats, Any, Floats | None], BoostedTrees],
        predict: Callable[[BoostedTrees, Floats, Any], Floats] = lambda trees, x, y: trees.staged(x),
    ) -> Floats:
        """Return held-out predictions of each row after 0, 1, ... iterations."""
        n = points.shape[0]
        fold = deal_folds(n, self.seed)
        parts: list[tuple[Ints, Floats]] = []
        for held_out in range(int(fold.max()) + 1):
            inside = fold == held_out
            others = ~inside if n > 1 else inside
            trees = grow(points[others], target[others], None if weights is None else weights[others])
            parts.append((np.flatnonzero(inside), predict(trees, points[inside], target[inside])))
        order = np.argsort(np.concatenate([rows for rows, _ in parts]), kind="stable")
        return np.concatenate([staged for _, staged in parts])[order]

    def _quantile(
        self, points: Floats, values: Floats, weights: Floats | None, level: float, n_trees: int
    ) -> BoostedTrees:
        from sklearn.ensemble import HistGradientBoostingRegressor

        if n_trees == 0:
            lower = np.quantile(equal_chances(values, weights), level, method="lower")
            return BoostedTrees.constant([float(lower)], np.empty(0, dtype=np.int64))
        estimator = HistGradientBoostingRegressor(loss="quantile", quantile=float(level), **self._options(n_trees))
        points = _with_values(points)
        with without_warning(_ONE_EACH):  # another thread may reset the filters of scikit-learn
            estimator.fit(points, values, sample_weight=weights)
        return read_trees(estimator, points)

    def _classes(self, points: Floats, codes: Ints, weights: Floats | None, n_trees: int) -> BoostedTrees:
        from sklearn.ensemble import HistGradientBoostingClassifier

        classes, place = np.unique(codes, return_inverse=True)
        if classes.size == 1:
            return BoostedTrees.constant([], classes)
        if n_trees == 0:
            counts = np.bincount(place, weights)
            share = np.log(counts / counts.sum())
            baseline = [float(share[1] - share[0])] if classes.size == 2 else share.tolist()
            return BoostedTrees.constant(baseline, classes)
        estimator = HistGradientBoostingClassifier(**self._options(n_trees))
        points = _with_values(points)
        with without_warning(_ONE_EACH):
            estimator.fit(points, codes, sample_weight=weights)
        return read_trees(estimator, points)

    def _options(self, n_trees: int) -> dict[str, Any]:
        return {**self.options, "max_iter": n_trees, "early_stopping": False, "random_state": self.seed >> 33}


def _with_values(points: Floats) -> Floats:
    """Return the design with zeros in columns without known values, whose binning fails in scikit-learn."""
    return np.where(np.isnan(points).all(axis=0), 0.0, points)


def pinball(above: Floats, level: float) -> Floats:
    """Return the pinball loss of a predicted quantile for residuals `above` it."""
    return np.maximum(level * above, (level - 1.0) * above)


Self = TypeVar("Self", bound="BoostingSampler")

_HALF_WIDTH = 0.125  # in spreads: half width of the interval of the surrogate density


@register_sampler("boosting")
class BoostingSampler(ConditionalSampler):
    """Draws from quantiles or probabilities predicted by gradient boosting.

    Parameters
    ----------
    n_quantiles : int
        Number of predicted quantiles of a number.
    max_trees : int
        Largest number of boosting iterations; held-out rows choose it.
    learning_rate : float
        Shrinkage of each tree's prediction.
    max_leaves : int
        Largest number of leaves of a tree.
    min_leaf : int
        Fewest rows of a leaf.
    random_state : int or None
        Seed of the folds, combined with the chain's seed; a sampler fitted on its own uses this seed alone.

    Attributes
    ----------
    classes_ : codes of the levels, or the numbers that are classes.
    class_trees_, quantile_trees_ : `mcce.samplers.boosting.BoostedTrees` of the classes, and of each quantile.

    Notes
    -----
    Trees are grown `n_quantiles` + 15 times for quantiles and six times for classes, about a hundred times as long as
    `cart`. Ordered levels are classes without order. Draws are observed values. Losses are weighted by the weights of
    training rows; `min_leaf` counts rows, as in scikit-learn.

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
    discloses = "{classes_} frequent values of it and {cells_.values} others, and trees with their probabilities"

    n_levels_: int = learned(int, least="levels", most="levels")
    always_missing_: bool = learned(bool)
    missing_trees_: BoostedTrees | None = learned(BoostedTrees, optional=True)
    classes_: Floats
    class_trees_: BoostedTrees | None
    quantile_trees_: list[BoostedTrees] = learned(list, of=BoostedTrees)
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
        self.check_training(target)
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
        if within is not None:
            return self.sample_within(given, rng, within).values
        if self.always_missing_:
            return np.full(given.n_rows, np.nan)
        drawn = self._draw(given, rng, Within()).values
        if self.missing_trees_ is not None:
            drawn = np.where(rng.uniform() < self._missing(given), np.nan, drawn)
        return drawn

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        n = given.n_rows
        may_be_missing = within.allows_missing(n)
        if self.always_missing_:
            return RestrictedDraw.of(np.full(n, np.nan), ~may_be_missing, np.zeros(n))
        drawn, missing = self._draw(given, rng, within), self._missing(given)
        assert drawn.log_mass is not None
        log_share = drawn.log_mass + log_of(1.0 - missing)
        found = RestrictedDraw.of(drawn.values, drawn.rejected, log_share)
        if within.missing is None:
            return found
        return found.or_missing(np.exp(log_share), missing * may_be_missing, rng.uniform())

    def supports(self, given: Table, values: Floats) -> Bools:
        is_missing = np.isnan(values)
        if self.always_missing_:
            return is_missing
        supported = supported_levels(self._probabilities(given), self._codes(values))
        if self.quantile_trees_:
            near = self.cells_.supports(self._quantiles(given), np.where(is_missing, self.column_.low, values))
            supported &= near | np.isin(values, self.classes_)
        return np.where(is_missing, self.missing_trees_ is not None, supported)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        self.refuse_training_rows(training_rows)
        is_missing = np.isnan(values)
        if self.always_missing_:
            return np.where(is_missing, 0.0, -np.inf)
        density = log_probability(self._probabilities(given), self._codes(values))
        if not self.n_levels_:
            known = np.where(is_missing, self.column_.low, values)
            density = self.column_.log_with_uniform_part(np.exp(density) * self._within_class(given, known), known)
        missing = self._missing(given)
        return np.where(is_missing, log_of(missing), density + log_of(1.0 - missing))

    def distribution(self, given: Table) -> DistributionFunctions:
        if self.always_missing_:
            return DistributionFunctions.always_missing(given.n_rows)
        probabilities, missing = self._probabilities(given), self._missing(given)
        if self.n_levels_:
            return DistributionFunctions.of_levels(probabilities[:, : self.n_levels_]).with_missing(missing)
        below = np.column_stack([np.zeros(given.n_rows), np.cumsum(probabilities[:, : self.classes_.size], axis=1)])
        quantiles = self._quantiles(given) if self.quantile_trees_ else None
        others = np.empty(0) if quantiles is None else self.cells_.values

        def upto(high: Floats) -> Floats:
            mass = below[np.arange(high.size), np.searchsorted(self.classes_, high, side="right")]
            if quantiles is not None:
                mass = mass + probabilities[:, -1] * self.cells_.mass(quantiles, np.full(high.size, -np.inf), high)
            return np.asarray(mass)

        return DistributionFunctions.of_atoms(
            np.union1d(self.classes_, others), upto, missing=missing, n_donors=self.classes_.size + others.size
        )

    def base_measure(self) -> BaseMeasure:
        return "counting" if self.n_levels_ or self.always_missing_ else self.column_.base_measure

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        super().check_state(given, target, n_rows)
        columns = n_design_columns(given)
        if self.missing_trees_ is not None:
            self.missing_trees_.check_outputs(columns, 2)
        if self.always_missing_:
            return
        check_array(self.classes_, "classes_", FLOAT, None)
        check_rising(self.classes_, "classes_")
        if self.n_levels_:
            require(np.array_equal(self.classes_, np.arange(self.n_levels_)), "classes_ are not the target's levels")
            require(not self.quantile_trees_, "quantile_trees_ are set for a target with levels")
        else:
            check_type(self.column_, "column_", ColumnDensity)
        k = self.classes_.size
        check_type(self.class_trees_, "class_trees_", *([BoostedTrees] if k else [type(None)]))
        if self.class_trees_ is not None:  # other numbers are one more class
            self.class_trees_.check_outputs(columns, k + bool(self.quantile_trees_))
        if not self.quantile_trees_:
            require(k > 0, "both classes_ and quantile_trees_ are empty")
            return
        require(len(self.quantile_trees_) == self.n_quantiles, "the number of quantile_trees_ is not n_quantiles")
        for trees in self.quantile_trees_:
            trees.check_outputs(columns, 0)
        check_type(self.tails_, "tails_", Tails)
        check_type(self.cells_, "cells_", Cells)

    def _draw(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw an allowed known value for each row."""
        n, k = given.n_rows, self.classes_.size
        low, high = within.bounds(n)
        weights = self._probabilities(given)
        if self.n_levels_:
            weights[:, :k] *= within.level_mask(n, k)
        else:
            weights[:, :k] *= (self.classes_ >= low[:, None]) & (self.classes_ <= high[:, None])
        if not self.quantile_trees_:
            return RestrictedDraw.by_weight(np.append(self.classes_, np.nan), weights, rng)
        quantiles = self._quantiles(given)
        weights[:, k] *= self.cells_.mass(quantiles, low, high)
        code = draw_levels(weights, rng, Within())
        drawn = self.cells_.draw(quantiles, rng.uniform(), low, high)
        is_class = code < k
        drawn[is_class] = self.classes_[code[is_class].astype(np.intp)]
        return RestrictedDraw.of(drawn, np.isnan(code) | np.isnan(drawn), log_of(weights.sum(axis=1)))

    def _within_class(self, given: Table, values: Floats) -> Floats:
        """Return the density or probability of each number within its class."""
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
        """Return the column of each value's class in `_probabilities`; NaN for a missing value."""
        codes = np.where(np.isin(values, self.classes_), np.searchsorted(self.classes_, values), self.classes_.size)
        return np.where(np.isnan(values), np.nan, codes)

    def _missing(self, given: Table) -> Floats:
        if self.missing_trees_ is None:
            return np.zeros(given.n_rows)
        return self.missing_trees_.probabilities(indicator_design(given), 2)[:, 1]

    @property
    def _levels(self) -> Floats:
        return (np.arange(self.n_quantiles) + 1.0) / (self.n_quantiles + 1)

    def check_parameters(self) -> None:
        check_count(self.n_quantiles, "n_quantiles", self, 2)
        check_count(self.max_trees, "max_trees", self, 1)
        check_count(self.max_leaves, "max_leaves", self, 2)
        check_count(self.min_leaf, "min_leaf", self, 1)
        fits = is_number(self.learning_rate) and 0 < self.learning_rate <= 1
        check(fits, self.learning_rate, "learning_rate", "it must be a number above 0, at most 1.", owner=self)
        resolve_seed(self.random_state)
