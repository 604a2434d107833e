"""Read a model exactly: as a linear function, or a sum of trees, of columns that preprocessing makes of the features.

1. Linear models of scikit-learn have weights. Trees, forests, extremely randomised trees and both kinds of gradient
   boosting of scikit-learn, and models of LightGBM and XGBoost, are sums of trees with one or several values per leaf.
2. In a scikit-learn `Pipeline` the model may come after steps of `COLUMNWISE`, also in a `ColumnTransformer`: each
   column that they return depends on one feature, and is a rising or falling function of a number.
3. `demands` writes a decision as linear inequalities of the model's raw scores.
4. A reading is checked against the model's own raw scores (`ExactModel.check`), so that a model of another version or
   with an option unknown here is refused, not read wrongly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.exceptions import MCCEError
from mcce.model.decisions import Decision, LabelDecision, Not, ScoreDecision
from mcce.model.source import Rows, equals

SUPPORTED = (
    "linear and logistic models, decision trees, random forests, extra trees and gradient boosting of scikit-learn, "
    "LightGBM and XGBoost, alone or in a Pipeline after encoders, scalers and imputers"
)
SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "SimpleImputer")
ENCODERS = ("OneHotEncoder", "OrdinalEncoder")
FORESTS = ("RandomForest", "ExtraTrees")
CLOSE = 1e-6  # a reading agrees with the model to this share of its scores; 100 times that for single precision


class NotExactError(MCCEError):
    """The model or the decision cannot be written as linear inequalities; the message says why."""


@dataclass(frozen=True)
class SplitTree:
    """A tree: by node the column of its split (-1 in leaves), threshold, children, where missing goes, and values."""

    column: Ints
    threshold: Floats
    left: Ints
    right: Ints
    missing_left: Any
    value: Floats

    def leaves(self, matrix: Floats, strict: bool) -> Ints:
        """Return the leaf of each row."""
        at = np.zeros(len(matrix), dtype=np.int64)
        for _ in range(len(self.column)):
            inner = self.column[at] >= 0
            if not inner.any():
                break
            values = matrix[np.arange(len(at)), np.maximum(self.column[at], 0)]
            below = goes_left(values, self.threshold[at], self.missing_left[at], strict)
            at = np.where(inner, np.where(below, self.left[at], self.right[at]), at)
        return at


def goes_left(values: Floats, threshold: Any, missing_left: Any, strict: bool) -> Bools:
    """Return which values go to the left at a split."""
    below = values < threshold if strict else values <= threshold
    return np.asarray(np.where(np.isnan(values), missing_left, below), dtype=np.bool_)


@dataclass(frozen=True)
class ExactModel:
    """A model as intercept + weights . columns + sum of trees, for each of its raw scores.

    Attributes
    ----------
    steps : preprocessing, a fitted Pipeline without the model; None for none.
    raw : the model's own raw scores of preprocessed rows.
    intercept, weights, trees : of K raw scores; `weights` is (columns, K), None for none.
    link : of probabilities: "identity", "logistic" or "softmax" of the raw scores.
    encoded : names of the features that encoders take, which must be levels.
    strict : whether a split sends values equal to its threshold to the right.
    narrow : whether the trees read numbers in single precision.
    """

    steps: Any
    raw: Callable[[Any], Any]
    intercept: Floats = field(default_factory=lambda: np.zeros(1))
    weights: Floats | None = None
    trees: tuple[SplitTree, ...] = ()
    link: str = "identity"
    encoded: frozenset[Any] = field(default_factory=frozenset)
    strict: bool = False
    narrow: bool = False

    def columns(self, rows: Rows) -> Floats:
        """Return the columns that the model reads, as it reads them."""
        try:
            made: Any = rows if self.steps is None else self.steps.transform(rows)
            matrix = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise NotExactError(f"its columns cannot be read as numbers ({error})") from error
        return matrix.astype(np.float32).astype(np.float64) if self.narrow else matrix

    def scores(self, matrix: Floats) -> Floats:
        """Return the raw scores of columns, (rows, K)."""
        found = np.zeros((len(matrix), 1)) + self.intercept
        if self.weights is not None:
            found = found + matrix @ self.weights
        for tree in self.trees:
            found = found + tree.value[tree.leaves(matrix, self.strict)]
        return found

    def check(self, rows: Rows, decision: Decision) -> None:
        """Raise if the reading and the model disagree about rows."""
        expected = np.asarray(self.raw(rows if self.steps is None else self.steps.transform(rows)), dtype=np.float64)
        own_scores = self.scores(self.columns(rows))
        expected = expected.reshape(own_scores.shape) if expected.size == own_scores.size else expected
        close = CLOSE * (100.0 if self.strict else 1.0) * (1.0 + np.abs(own_scores))
        agree = expected.shape == own_scores.shape and bool((np.abs(expected - own_scores) <= close).all())
        answer = decision.evaluate(rows, "rows that check a proof")
        if (
            isinstance(decision, ScoreDecision)
            and decision.source.method == "predict_proba"
            and self.link == "logistic"
        ):
            shares = 1.0 / (1.0 + np.exp(-own_scores[:, 0] if decision.position else own_scores[:, 0]))
            agree = agree and bool((np.abs(shares - answer.scores) <= close.max()).all())
        wanted = np.zeros(len(own_scores), dtype=bool)
        near = np.zeros(len(own_scores), dtype=bool)
        for each in demands(decision, self):
            room = np.min([np.minimum(own_scores @ w - low, high - own_scores @ w) for w, low, high in each], axis=0)
            wanted |= room >= 0.0
            near |= np.abs(room) <= close.max(axis=1)
        if not agree or not (near | (wanted == answer.wanted)).all():
            raise NotExactError("its scores are not those that its trees or weights give")


Demand = tuple[Floats, float, float]  # weights of raw scores, lowest and highest value


def demands(decision: Decision, exact: ExactModel) -> list[list[Demand]]:
    """Return sets of inequalities, of which one has to hold for the decision."""
    k = exact.intercept.size
    if isinstance(decision, ScoreDecision):
        low, high = decision.inside.low, decision.inside.high
        if decision.source.method == "predict_proba" and exact.link != "identity":
            if exact.link == "softmax":
                raise NotExactError("a bound on one of several probabilities is not linear; give a class as decision")
            low, high = _logit(low), _logit(high)
        if k == 1 and decision.classes is not None and decision.position == 0:
            low, high = -high, -low
        return [[(np.eye(k)[decision.position if k > 1 else 0], low, high)]]
    if not isinstance(decision, LabelDecision) or decision.classes is None:
        raise NotExactError("the decision is neither an interval of scores nor classes of one model")
    margin, classes = decision.wanted.margin, decision.classes
    if margin and exact.link == "softmax":
        raise NotExactError("a margin between several probabilities is not linear")
    named = [any(equals(label, each) for label in decision.wanted.classes) for each in classes]
    wanted = [place for place, each in enumerate(named) if each != isinstance(decision.wanted, Not)]
    if k == 1:
        least = _logit((1.0 + margin) / 2.0)
        return [[(np.ones(1) * (1.0 if place else -1.0), least, np.inf)] for place in wanted]
    others = [place for place in range(k) if place not in wanted]
    return [[(np.eye(k)[one] - np.eye(k)[other], margin, np.inf) for other in others] for one in wanted]


def _logit(share: float) -> float:
    return -np.inf if share <= 0.0 else np.inf if share >= 1.0 else float(np.log(share) - np.log1p(-share))


def read_model(decision: Decision, row: Rows) -> ExactModel:
    """Return the exact model of a decision, given any valid row; raise `NotExactError` if there is none."""
    if not isinstance(decision, (ScoreDecision, LabelDecision)):
        raise NotExactError(f"the decision is not about the scores or classes of one model; proofs are for {SUPPORTED}")
    model, steps = decision.source.model, None
    model = getattr(model, "best_estimator_", model)
    encoded: set[Any] = set()
    if type(model).__name__ == "Pipeline":
        steps, model = model[:-1], model[-1]
        for step in _steps(steps):
            encoded.update(_check_step(step))
    steps = steps if steps is not None and len(steps) else None
    made = _read(model)
    exact = ExactModel(steps, encoded=frozenset(encoded), **made)
    if "intercept" not in made:  # remainder of the model's score after the trees
        own = np.asarray(exact.raw(row if steps is None else steps.transform(row)), dtype=np.float64)
        exact = replace(exact, intercept=own.reshape(-1) - exact.scores(exact.columns(row))[0])
    return exact


def _steps(part: Any) -> Iterator[Any]:
    """Yield the transformers in a Pipeline or ColumnTransformer."""
    if type(part).__name__ == "Pipeline":
        for _, step in part.steps:
            yield from _steps(step)
    elif type(part).__name__ == "ColumnTransformer":
        for _, step, _ in part.transformers_:
            yield from _steps(step)
    elif part not in ("passthrough", "drop", None):
        yield part


def _check_step(step: Any) -> Sequence[Any]:
    """Return the features that a step encodes; raise if its columns may depend on several features."""
    name = type(step).__name__
    is_identity = name == "FunctionTransformer" and step.func is None
    if name in ENCODERS:
        if not hasattr(step, "feature_names_in_"):
            raise NotExactError(f"its {name} does not know the names of its features; fit it on a table with names")
        return list(step.feature_names_in_)
    if not (name in SCALERS or is_identity) or getattr(step, "clip", False):
        raise NotExactError(f"its step {name} is not one of {', '.join((*ENCODERS, *SCALERS))}")
    return ()


def _read(model: Any) -> dict[str, Any]:
    """Return the parts of an `ExactModel`, for a model without preprocessing."""
    name, library = type(model).__name__, type(model).__module__.partition(".")[0]
    if library == "sklearn":
        is_classifier = hasattr(model, "classes_")
        if hasattr(model, "coef_") and type(model).__module__.startswith(("sklearn.linear_model", "sklearn.svm")):
            return _linear(model)
        if name.startswith("HistGradientBoosting"):
            return _hist_boosting(model)
        if name.startswith("GradientBoosting"):
            rate = model.learning_rate
            trees = [
                _sklearn_tree(each.tree_, _at(each.tree_.value[:, 0, :1] * rate, k, len(stage)))
                for stage in model.estimators_
                for k, each in enumerate(stage)
            ]
            return _boosted(model, trees, narrow=True)
        if name.startswith(("DecisionTree", "ExtraTree", *FORESTS)) and model.n_outputs_ == 1:
            several = getattr(model, "estimators_", [model])

            def shares(value: Floats) -> Floats:
                value = value[:, 0, :]
                return value / (value.sum(axis=1, keepdims=True) if is_classifier else 1.0) / len(several)

            trees = [_sklearn_tree(each.tree_, shares(each.tree_.value)) for each in several]
            k = trees[0].value.shape[1]
            raw = model.predict_proba if is_classifier else model.predict
            return {"raw": raw, "intercept": np.zeros(k), "trees": tuple(trees), "narrow": True}
    if library == "lightgbm":
        return _lightgbm(model)
    if library == "xgboost":
        return _xgboost(model)
    raise NotExactError(f"a {name} cannot be read; proofs are for {SUPPORTED}")


def _linear(model: Any) -> dict[str, Any]:
    if np.ndim(model.coef_) > 2 or type(model).__name__ in ("SVC", "SVR", "NuSVC", "NuSVR"):
        raise NotExactError(f"a {type(model).__name__} is not linear in its columns")
    weights = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)).T
    intercept = np.zeros(weights.shape[1]) + np.asarray(model.intercept_, dtype=np.float64)
    link = "logistic" if weights.shape[1] == 1 else "softmax"
    raw = getattr(model, "decision_function", model.predict)
    return {"raw": raw, "intercept": intercept, "weights": weights, "link": link}


def _at(values: Floats, k: int, n: int) -> Floats:
    """Return values of one of n raw scores, 0 for the others."""
    found = np.zeros((len(values), n))
    found[:, k] = values[:, 0]
    return found


def _sklearn_tree(tree: Any, values: Floats) -> SplitTree:
    inner = tree.children_left >= 0
    column = np.where(inner, tree.feature, -1).astype(np.int64)
    missing = np.asarray(getattr(tree, "missing_go_to_left", np.zeros(len(column))), dtype=bool)
    return SplitTree(column, tree.threshold, tree.children_left, tree.children_right, missing, values)


def _boosted(model: Any, trees: Sequence[SplitTree], **more: Any) -> dict[str, Any]:
    """Return boosted trees of scikit-learn, whose intercept is read from a score."""
    raw = getattr(model, "decision_function", model.predict)
    link = "logistic" if trees[0].value.shape[1] == 1 else "softmax"
    return {"raw": raw, "trees": tuple(trees), "link": link, **more}


def _hist_boosting(model: Any) -> dict[str, Any]:
    k = len(model._predictors[0])
    trees = []
    for stage in model._predictors:
        for place, each in enumerate(stage):
            nodes = each.nodes
            if nodes["is_categorical"].any():
                raise NotExactError("its trees split categories natively; encode them in a Pipeline")
            column = np.where(nodes["is_leaf"], -1, nodes["feature_idx"]).astype(np.int64)
            left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
            missing = nodes["missing_go_to_left"].astype(bool)
            values = _at(nodes["value"][:, None], place, k)
            trees.append(SplitTree(column, nodes["num_threshold"], left, right, missing, values))
    return _boosted(model, trees)


def _lightgbm(model: Any) -> dict[str, Any]:
    booster = getattr(model, "booster_", model)
    dump = booster.dump_model()
    k = dump["num_tree_per_iteration"]
    trees = []
    for place, each in enumerate(dump["tree_info"]):
        nodes: list[tuple[int, float, int, int, bool, float]] = []
        _flatten(each["tree_structure"], nodes)
        column, threshold, left, right, missing, values = (np.array(part) for part in zip(*nodes, strict=True))
        trees.append(SplitTree(column, threshold, left, right, missing, _at(values[:, None], place % k, k)))

    def raw(matrix: Any) -> Any:
        return booster.predict(matrix, raw_score=True)

    link = "logistic" if k == 1 else "softmax"
    return {"raw": raw, "intercept": np.zeros(k), "trees": tuple(trees), "link": link}


def _flatten(node: Any, nodes: list[tuple[int, float, int, int, bool, float]]) -> int:
    """Append a node of LightGBM and all below it; return its place."""
    place = len(nodes)
    if "split_feature" not in node:
        nodes.append((-1, 0.0, -1, -1, False, node["leaf_value"]))
        return place
    if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
        raise NotExactError("its trees split categories, or zeros as missing; encode these in a Pipeline")
    threshold = float(node["threshold"])
    missing = bool(node["default_left"]) if node["missing_type"] == "NaN" else threshold >= 0.0
    nodes.append((-1, 0.0, -1, -1, False, 0.0))
    left, right = _flatten(node["left_child"], nodes), _flatten(node["right_child"], nodes)
    nodes[place] = (node["split_feature"], threshold, left, right, missing, 0.0)
    return place


def _xgboost(model: Any) -> dict[str, Any]:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    if learner["gradient_booster"]["name"] != "gbtree":
        raise NotExactError(f"its booster is {learner['gradient_booster']['name']}, not gbtree")
    parts = learner["gradient_booster"]["model"]
    k = max(int(learner["learner_model_param"]["num_class"]), 1)
    trees = []
    for each, place in zip(parts["trees"], parts["tree_info"], strict=True):
        if any(each.get("split_type", ())):
            raise NotExactError("its trees split categories natively; encode them in a Pipeline")
        left, right = (np.array(each[name]) for name in ("left_children", "right_children"))
        inner = left >= 0
        threshold = np.array(each["split_conditions"], dtype=np.float32).astype(np.float64)
        column = np.where(inner, each["split_indices"], -1).astype(np.int64)
        missing = np.array(each["default_left"], dtype=bool)
        trees.append(SplitTree(column, threshold, left, right, missing, _at(threshold[:, None], place, k)))

    def raw(matrix: Any) -> Any:
        numbers = np.asarray(matrix, dtype=np.float64)
        return booster.inplace_predict(numbers, predict_type="margin", validate_features=False)

    link = "logistic" if k == 1 else "softmax"
    return {"raw": raw, "trees": tuple(trees), "link": link, "strict": True, "narrow": True}
