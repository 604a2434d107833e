"""Diagnostics that fit chains anew do so with the explainer's weights."""

from __future__ import annotations

import numpy as np
import pytest

import mcce


@pytest.fixture(scope="module")
def weighted():
    X = mcce.datasets.load_loans(200).X.select_dtypes("number")
    weights = np.where(X["salary"] > 45_000, 2.5, 0.5)
    explainer = mcce.MCCE(lambda rows: rows["salary"] > 45_000, decision=True, fixed=["age"], random_state=1)
    return explainer.fit(X, sample_weight=weights), X


def test_other_visit_sequences_are_fitted_by_weight(weighted):
    """The order of the explainer itself gives its own counterfactuals again."""
    explainer, X = weighted
    poor = X[X["salary"] < 40_000].iloc[:8]
    orders = ("data", "reversed")
    effect = mcce.diagnostics.visit_effect(
        explainer, poor, training=X, visit_sequences=orders, n_samples=50, max_rows=100
    )
    found = explainer.explain(poor, n_samples=50)
    assert effect.loc["data", "L0"] == pytest.approx(found.measures["L0"].mean())


def test_training_rows_without_their_weights_are_refused(weighted):
    explainer, X = weighted
    with pytest.raises(mcce.InputError, match="fitted with weights of 200 rows, and training has 50; give the rows"):
        mcce.diagnostics.visit_effect(explainer, X.iloc[:5], training=X.iloc[:50], n_samples=20)
