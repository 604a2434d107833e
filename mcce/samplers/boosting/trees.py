# mypy: disable-error-code="no-untyped-def"
"""What scikit-learn's histogram gradient boosting has learnt, as arrays.

1. `read_trees` takes the nodes out of a fitted estimator. It keeps them in private attributes, so the predictions of
   the arrays are compared with the estimator's own, and a difference is an error instead of a wrong model.
2. A prediction is the baseline plus the values of the leaves that a row reaches, added up in the order of the trees. A
   row goes left if its number is at most the threshold; where missing values go, the node says.

So a fitted sampler is arrays, which can be stored, and needs no scikit-learn to draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.arrays import Bools, Floats, Ints
from mcce.compiling import cached
from mcce.exceptions import SamplerError
from mcce.soundness import BOOL, FLOAT, INT, check_array, check_between, check_finite, check_rising, require
from mcce.state import stateful

_CHECKED = 50


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
    baseline : what each output begins with; an output for each class, a single one for two classes or a number.
    root : first node of each tree, iteration by iteration, in an iteration output by output.
    feature, threshold, missing_left, left, right, value : by node; children are counted from the root, and `feature`
        is -1 in a leaf.
    classes : codes of the classes; none of a regressor.
    """

    baseline: Floats
    root: Ints
    feature: Ints
    threshold: Floats
    missing_left: Bools
    left: Ints
    right: Ints
    value: Floats
    classes: Ints

    @classmethod
    def of_one_class(cls, code: int) -> BoostedTrees:
        """Return the trees of a target with a single class: none."""
        nothing, none = np.empty(0), np.empty(0, dtype=np.int64)
        return cls(nothing, none, none, nothing, np.empty(0, dtype=bool), none, none, nothing, np.array([code]))

    def check_state(self) -> None:
        """Refuse arrays that are no trees: children come after their parents, in the same tree."""
        for name, dtype in (("baseline", FLOAT), ("value", FLOAT), ("root", INT), ("classes", INT)):
            check_array(getattr(self, name), name, dtype, None)
        n, n_trees = self.value.size, self.root.size
        for name in ("feature", "left", "right"):
            check_array(getattr(self, name), name, INT, n)
        check_array(self.threshold, "threshold", FLOAT, n)
        check_array(self.missing_left, "missing_left", BOOL, n)
        check_finite(self.baseline, "baseline")
        check_finite(self.value, "value")
        check_rising(self.classes, "classes")
        outputs = {0: 1, 1: 0, 2: 1}.get(self.classes.size, self.classes.size)
        require(self.baseline.size == outputs, f"baseline has {self.baseline.size} outputs, where {outputs} belong")
        require(n_trees == 0 if outputs == 0 else n_trees % outputs == 0, "root is not of as many trees an iteration")
        require((n > 0) == (n_trees > 0), "root is of no tree, or of trees without nodes")
        check_rising(self.root, "root")
        if n_trees == 0:
            return
        check_between(self.root, "root", 0, n - 1)
        require(self.root[0] == 0, "root does not begin with the first node")
        sizes = np.diff(np.append(self.root, n))
        place = np.arange(n) - np.repeat(self.root, sizes)
        inner = self.feature >= 0
        check_between(self.feature, "feature", -1, 2**31 - 1)
        for name in ("left", "right"):
            child = getattr(self, name)[inner]
            inside = (child > place[inner]) & (child < np.repeat(sizes, sizes)[inner])
            require(inside.all(), f"{name} holds a child that does not come after its parent, or in another tree")
        require(not np.isnan(self.threshold[inner]).any(), "threshold holds nan")

    def check_outputs(self, n_columns: int, n_levels: int) -> None:
        """Refuse trees of more columns, or classes beyond so many; no levels at all: of a number."""
        check_between(self.feature, "feature", -1, n_columns - 1)
        require((self.classes.size == 0) == (n_levels == 0), "classes are of a number, or none of levels")
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
        """Return the outputs of each row, (rows, outputs)."""
        return self.staged(points)[:, -1]

    def probabilities(self, points: Floats, n_levels: int) -> Floats:
        """Return the probabilities of all levels, those of unknown ones 0."""
        found = np.zeros((points.shape[0], n_levels))
        if self.classes.size == 1:
            found[:, self.classes] = 1.0
        else:
            found[:, self.classes] = class_probabilities(self.outputs(points))
        return found


def class_probabilities(outputs: Floats) -> Floats:
    """Return the probabilities of the classes: logistic of a single output (the last axis), or softmax of several."""
    if outputs.shape[-1] == 1:
        outputs = np.concatenate([np.zeros_like(outputs), outputs], axis=-1)
    weights = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def read_trees(estimator: Any, points: Floats) -> BoostedTrees:
    """Return the trees of a fitted estimator, compared with its predictions of some training rows (step 1)."""
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
            f"the trees of {type(estimator).__name__} could not be read from scikit-learn {sklearn.__version__}: they "
            "predict otherwise than it does. Install a version between 1.4 and 1.9, or use "
            "EstimatorSampler(HistGradientBoostingRegressor(loss='quantile'), method='quantiles')."
        )
    return trees
