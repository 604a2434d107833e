"""Growing boosted trees, as many as predict rows best that they were not grown on.

1. Rows are dealt to five folds (`mcce.samplers.crossfit`). Trees are grown without each fold in turn, and predict it
   after every iteration.
2. The number of iterations is the one with the least mean loss of these predictions: the pinball loss of quantiles,
   summed over the outer two and the median; the log loss of classes.
3. Trees are grown on all rows, so many times.

Weights of rows weigh their losses, while growing and in step 2.

Trees that hit the rows they were grown on would be too sure of themselves: quantiles too narrow, probabilities too near
to 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mcce.arrays import Floats, Ints
from mcce.samplers.boosting.trees import BoostedTrees, class_probabilities, read_trees
from mcce.samplers.crossfit import deal_folds
from mcce.table.weights import equal_chances, mean_of

_LEAST = 1e-6  # the probability of a class that a fold has not seen


@dataclass(frozen=True)
class Growing:
    """How trees are grown: `options` of scikit-learn's estimators, `max_trees` iterations at most, seed of the folds.

    `options` have a `max_iter`, which is replaced by the number of iterations.
    """

    options: dict[str, Any]
    max_trees: int
    seed: int

    def quantiles(
        self, points: Floats, values: Floats, levels: Floats, weights: Floats | None = None
    ) -> tuple[list[BoostedTrees], Floats]:
        """Return the trees of each level; for each row, also its outer quantiles by trees that have not seen it."""
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
            return BoostedTrees.of_one_class(int(found[0]))

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
        """Return what trees grown on the other folds predict for each row after 0, 1, ... iterations (step 1)."""
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
            return _constant([float(lower)], np.empty(0, dtype=np.int64))
        estimator = HistGradientBoostingRegressor(loss="quantile", quantile=float(level), **self._options(n_trees))
        return read_trees(estimator.fit(points, values, sample_weight=weights), points)

    def _classes(self, points: Floats, codes: Ints, weights: Floats | None, n_trees: int) -> BoostedTrees:
        from sklearn.ensemble import HistGradientBoostingClassifier

        classes, place = np.unique(codes, return_inverse=True)
        if classes.size == 1:
            return BoostedTrees.of_one_class(int(classes[0]))
        if n_trees == 0:
            counts = np.bincount(place, weights)
            share = np.log(counts / counts.sum())
            return _constant([float(share[1] - share[0])] if classes.size == 2 else share.tolist(), classes)
        estimator = HistGradientBoostingClassifier(**self._options(n_trees))
        return read_trees(estimator.fit(points, codes, sample_weight=weights), points)

    def _options(self, n_trees: int) -> dict[str, Any]:
        return {**self.options, "max_iter": n_trees, "early_stopping": False, "random_state": self.seed >> 33}


def _constant(baseline: Sequence[float], classes: Ints) -> BoostedTrees:
    """Return no trees at all: the same outputs for every row."""
    nothing = BoostedTrees.of_one_class(0)
    parts = (nothing.root, nothing.feature, nothing.threshold, nothing.missing_left, nothing.left, nothing.right)
    return BoostedTrees(np.asarray(baseline, dtype=np.float64), *parts, nothing.value, classes.astype(np.int64))


def pinball(above: Floats, level: float) -> Floats:
    """Return the loss of a predicted quantile that the values lie so much above."""
    return np.maximum(level * above, (level - 1.0) * above)
