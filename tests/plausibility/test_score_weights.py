"""The floor of plausibility by weight: a share of the weighted population."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.plausibility.score import Plausibility, Scale
from mcce.table import Schema


def _fitted(weights, n=600):
    """Rows of two clusters, the second of which may have a lower weight."""
    rng = np.random.default_rng(0)
    cluster = np.arange(n) % 2
    matrix = np.column_stack([rng.normal(size=n) + 6 * cluster, rng.normal(size=n) + 6 * cluster])
    features = Schema.from_data(pd.DataFrame(matrix, columns=["a", "b"])).features
    w = None if weights is None else np.where(cluster == 1, weights, 1.0)
    return Plausibility.fit(matrix, features, np.array([0, 1]), n_jobs=1, weights=w), matrix, cluster, w


def test_weighted_share_lies_below_the_floor():
    """Calibration compared with brute force: the weight of the training rows with at most each score."""
    fitted, matrix, _, w = _fitted(0.25)
    scores = fitted.score(matrix, fitted.fold_of(matrix))
    for floor in (0.01, 0.05, 0.25, 0.6):
        least = fitted.least_score(floor)
        assert w[scores < least].sum() <= floor * (w.sum() + 1)
        at_least = fitted.quantile(scores) >= floor
        np.testing.assert_array_equal(at_least, scores >= least)
    known, counts = fitted.calibration.values, np.diff(fitted.calibration.upto, prepend=0.0)
    assert counts.sum() == pytest.approx(w.sum())
    brute = [(1 + counts[known <= each].sum()) / (w.sum() + 1) for each in scores[:20]]
    np.testing.assert_allclose(fitted.quantile(scores[:20]), brute, rtol=1e-12)


def test_integer_weights_calibrate_like_repeated_scores():
    fitted, _, _, _ = _fitted(3.0, n=200)
    scale = fitted.calibration
    times = np.diff(scale.upto, prepend=0.0).astype(int)
    repeated = Scale(np.repeat(scale.values, times))
    probes = np.linspace(scale.values[0] - 1, scale.values[-1] + 1, 99)
    np.testing.assert_allclose(scale.share(probes), repeated.share(probes), rtol=1e-12)
    for floor in (0.0, 0.003, 0.05, 0.5, 1.0):
        assert scale.lowest(floor) == repeated.lowest(floor)
    assert scale.middle == repeated.middle


@pytest.mark.slow
def test_rows_of_low_weight_are_implausible():
    """Rows along a falling line beside a rising one: real with equal weight, corrupted with zero weight."""
    falling, rising = [], []
    for weights in (1.0, 0.02):
        fitted, matrix, cluster, _ = _crossed(weights)
        found = fitted.quantile(fitted.score(matrix, fitted.fold_of(matrix)))
        falling.append(float(np.median(found[cluster == 1])))
        rising.append(float(np.median(found[cluster == 0])))
    assert falling[0] > 0.3
    assert falling[1] < 0.05
    assert rising[1] > 0.3


def _crossed(weights, n=800):
    rng = np.random.default_rng(0)
    cluster = np.arange(n) % 2
    x = rng.uniform(-3, 3, n)
    matrix = np.column_stack([x, np.where(cluster == 1, -x, x) + 0.1 * rng.normal(size=n)])
    matrix = matrix[np.abs(x) > 1]
    cluster = cluster[np.abs(x) > 1]
    features = Schema.from_data(pd.DataFrame(matrix, columns=["a", "b"])).features
    w = np.where(cluster == 1, weights, 1.0)
    return Plausibility.fit(matrix, features, np.array([0, 1]), n_jobs=1, weights=w), matrix, cluster, w


@pytest.mark.slow
def test_explain_sparse_uses_the_weights_and_round_trips(tmp_path):
    X = mcce.datasets.load_loans(300).X.select_dtypes("number")
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 300)

    def rich(rows):
        return rows["salary"] > 45_000

    explainer = mcce.MCCE(rich, decision=True, fixed=["age"], random_state=1).fit(X, sample_weight=weights)
    poor = X[X["salary"] < 40_000].iloc[:4]
    found = explainer.explain(poor, sparse=True, n_samples=100)
    assert explainer.plausibility_.calibration.total == pytest.approx(300, rel=1e-6)
    explainer.save(tmp_path / "explainer")
    again = mcce.MCCE.load(tmp_path / "explainer", rich)
    assert again.explain(poor, sparse=True, n_samples=100).frame.equals(found.frame)
