"""Means of held-out scores by weight, and the choice of samplers on weighted rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.judging.crossvalidation import mean_and_error


def test_the_weighted_mean_and_its_error_against_simulation():
    """Rows are independent and their weights fixed: the error is that of the mean over new rows of the same weights."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.2, 4.0, 60)
    means = (rng.normal(size=(20_000, 60)) @ weights) / weights.sum()
    errors = [mean_and_error(rng.normal(size=60), weights)[1] for _ in range(300)]
    assert np.mean(errors) == pytest.approx(means.std(), rel=0.05)
    scores = rng.normal(size=60)
    plain, equal = mean_and_error(scores), mean_and_error(scores, np.full(60, 2.0))
    np.testing.assert_allclose(equal, plain, rtol=1e-12)
    np.testing.assert_allclose(mean_and_error(scores, weights)[0], np.average(scores, weights=weights))


@pytest.fixture(scope="module")
def mixed():
    """Rows of weight 1 in which y follows x by a line, and more rows of little weight in which it does not."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=400)
    line = np.arange(400) < 150
    y = np.where(line, 3 * x, 3 * rng.normal(size=400)) + 0.2 * rng.normal(size=400)
    return pd.DataFrame({"x": x, "y": y}), np.where(line, 1.0, 0.001) * 1.1


def test_auto_chooses_by_weight(mixed):
    X, weights = mixed
    auto = mcce.Auto(["marginal", "norm"])
    chosen = mcce.ChainModel(sampler=auto, fixed=["x"], random_state=1).fit(X, sample_weight=weights)
    table = chosen.choice_.features[0].verdicts
    assert chosen.choice_.features[0].sampler == "norm"
    assert {verdict.sampler: verdict.score for verdict in table}["norm"] > -0.6  # the log score of a sharp line
    plain = mcce.ChainModel(sampler=auto, fixed=["x"], random_state=1).fit(X)
    assert {v.sampler: v.score for v in plain.choice_.features[0].verdicts}["norm"] < -1.5


class Unweighted(mcce.NormSampler):
    takes_weights = False


def test_what_takes_no_weights_is_left_out_of_a_comparison(mixed):
    X, weights = mixed
    samplers = {"norm": "norm", "unweighted": Unweighted(), "mean": "marginal"}
    compared = mcce.compare_conditionals(X, samplers, fixed=["x"], sample_weight=weights)
    assert "does not take sample_weight" in compared.scores.loc[("y", "unweighted"), "note"]
    assert compared.scores.loc[("y", "norm"), "log_score"] > -0.6
    assert compared.joint.loc["norm", "log_score"] == pytest.approx(compared.scores.loc[("y", "norm"), "log_score"])
