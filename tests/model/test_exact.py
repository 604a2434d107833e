"""Exact models compared with the original scores, and unsupported models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from mcce.model.decisions import Interval, OneOf, resolve_decision
from mcce.model.exact import NotExactError, demands, read_model

RNG = np.random.default_rng(3)
X = pd.DataFrame({"a": RNG.normal(size=90), "b": RNG.integers(0, 9, 90).astype(float)})
SCORE = X["a"] + X["b"] / 4 + RNG.normal(size=90) / 4
THREE = np.digitize(SCORE, [0.5, 1.5])
MODELS = [
    (LogisticRegression(), THREE > 0),
    (LogisticRegression(), THREE),
    (Ridge(), SCORE),
    (DecisionTreeClassifier(max_depth=3), THREE),
    (ExtraTreesClassifier(4, max_depth=3), THREE),
    (RandomForestRegressor(4, max_depth=3), SCORE),
    (GradientBoostingClassifier(n_estimators=3), THREE > 0),
    (GradientBoostingClassifier(n_estimators=3), THREE),
    (HistGradientBoostingRegressor(max_iter=3), SCORE),
    (make_pipeline(StandardScaler(), LogisticRegression()), THREE > 0),
]


def decision_of(model: Any) -> Any:
    classes = getattr(model, "classes_", None)
    return resolve_decision((0.5, np.inf) if classes is None else OneOf(classes[-1]), model)


@pytest.mark.parametrize(("model", "y"), MODELS)
def test_exact_model_has_the_scores_and_decisions_of_the_model(model: Any, y: Any) -> None:
    decision = decision_of(model.fit(X, y))
    exact = read_model(decision, X.head(1))
    exact.check(X, decision)
    scores = exact.scores(exact.columns(X))
    held = [np.all([(scores @ w >= low) & (scores @ w <= high) for w, low, high in way], axis=0) for way in
            demands(decision, exact)]  # fmt: skip
    assert (np.any(held, axis=0) == decision.evaluate(X, "rows").wanted).mean() > 0.98  # except for ties


def test_lightgbm_with_missing_values() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rows = X.mask(RNG.random(X.shape) < 0.2)
    model = lightgbm.LGBMClassifier(n_estimators=4, min_child_samples=5, verbose=-1, n_jobs=1).fit(rows, THREE > 0)
    decision = resolve_decision((0.5, 1), model)
    read_model(decision, rows.head(1)).check(rows, decision)


def test_splits_use_single_precision() -> None:
    """A forest rounds 0.1 + 2**-40 to the float32 nearest to 0.1, which may be across its threshold."""
    table = pd.DataFrame({"x": [0.1, 0.1 + 2**-23] * 20})
    model = DecisionTreeClassifier().fit(table, [0, 1] * 20)
    decision = resolve_decision(1, model)
    exact = read_model(decision, table.head(1))
    close = pd.DataFrame({"x": model.tree_.threshold[0] + np.linspace(-1e-8, 1e-8, 101)})
    exact.check(close, decision)
    assert set(exact.scores(exact.columns(close))[:, 1]) == {0.0, 1.0}


def encoded_numbers() -> Any:
    return make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [1])), LogisticRegression())


REFUSED = [
    (SVC(), 1, "a SVC is not linear|a SVC cannot be read; proofs are for linear and logistic"),
    (CalibratedClassifierCV(LogisticRegression()), 1, "a CalibratedClassifierCV cannot be read"),
    (make_pipeline(PolynomialFeatures(), Ridge()), (0.5, np.inf), "its step PolynomialFeatures is not one of"),
    (make_pipeline(encoded_numbers()[0], LogisticRegression()), 1, "OneHotEncoder does not know the names"),
]


@pytest.mark.parametrize(("model", "decision", "message"), REFUSED)
def test_unsupported_models_raise_with_a_reason(model: Any, decision: Any, message: str) -> None:
    resolved = resolve_decision(decision, model.fit(X.to_numpy(), THREE))
    with pytest.raises(NotExactError, match=message):
        read_model(resolved, X.head(1).to_numpy())


def test_probability_of_one_of_several_classes_is_not_linear() -> None:
    model = LogisticRegression().fit(X, THREE)
    decision = resolve_decision(Interval(0.5, 1, of=2), model)
    with pytest.raises(NotExactError, match="give a class as decision"):
        demands(decision, read_model(decision, X.head(1)))


def test_exact_model_that_disagrees_with_the_model_raises() -> None:
    model = GradientBoostingClassifier(n_estimators=3, loss="exponential").fit(X, THREE > 0)
    decision = resolve_decision((0.6, 1), model)  # its probabilities are not logistic in the raw score
    with pytest.raises(NotExactError, match="not those that its trees or weights give"):
        read_model(decision, X.head(1)).check(X, decision)
