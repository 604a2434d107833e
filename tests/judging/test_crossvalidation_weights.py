"""Weighted means of held-out scores, and the choice of samplers on weighted rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce.judging.crossvalidation import mean_and_error
from mcce.table.weights import rows_by_weight
from tests.judging.processes import RIGHT, Known
from tests.marks import nightly


def test_weighted_mean_and_its_error_match_simulation():
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
    """Rows of weight 1 in which y depends linearly on x, and more rows of low weight in which it does not."""
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


def test_samplers_without_weights_are_dropped_from_a_comparison(mixed):
    X, weights = mixed
    samplers = {"norm": "norm", "unweighted": Unweighted(), "mean": "marginal"}
    compared = mcce.compare_conditionals(X, samplers, fixed=["x"], sample_weight=weights)
    assert "does not take sample_weight" in compared.scores.loc[("y", "unweighted"), "note"]
    assert compared.scores.loc[("y", "norm"), "log_score"] > -0.6
    assert compared.joint.loc["norm", "log_score"] == pytest.approx(compared.scores.loc[("y", "norm"), "log_score"])


@pytest.fixture(scope="module")
def true_chain():
    """A chain whose only conditional is the true process: y is normal around 1 + z1."""
    chain = mcce.ChainModel(sampler={"y": Known(RIGHT)}, fixed=["z1", "z2", "group"], random_state=1)
    return chain.fit(strata(0)[0])


def strata(seed, n=400):
    """Return rows, a fifth of them in group b with four times the weight: fractions, as in a survey."""
    rng = np.random.default_rng(seed)
    z1, z2, is_b = rng.normal(size=n), rng.normal(size=n), (rng.random(n) < 0.2).astype(int)
    y = RIGHT.draw(z1, z2, is_b, rng.normal(size=n), rng.uniform(size=n))
    X = pd.DataFrame({"z1": z1, "z2": z2, "group": pd.Categorical.from_codes(is_b, ["a", "b"]), "y": y})
    return X, np.where(is_b == 1, 2.5, 0.625)


@pytest.mark.parametrize("n_replications", nightly(60, 300))
def test_true_model_is_rejected_at_the_level_with_weighted_rows(true_chain, n_replications):
    """If copies of heavy rows count as independent, a true model is rejected in 0.2 to 0.4 of the cases at 0.05."""
    rejected = 0
    for seed in range(1, n_replications + 1):
        X, weights = strata(seed)
        rejected += bool(true_chain.criticise(X, sample_weight=weights, n_draws=20, random_state=seed).rejected)
    assert stats.binomtest(rejected, n_replications, 0.05, alternative="greater").pvalue > 0.01


def test_weighted_rows_are_thinned_to_the_population():
    """Each row occurs at most once, with a probability proportional to its weight; the seed selects."""
    weights = np.repeat([0.4, 1.6, 0.8], 4000)
    rows = rows_by_weight(weights, 1)
    assert np.unique(rows).size == rows.size
    kept = np.bincount(np.repeat(np.arange(3), 4000)[rows], minlength=3)
    assert (stats.binom.sf(kept - 1, 4000, [0.25, 1.0, 0.5]) > 0.001).all()
    assert (stats.binom.cdf(kept, 4000, [0.25, 1.0, 0.5]) > 0.001).all()
    np.testing.assert_array_equal(rows, rows_by_weight(weights, 1))
    assert not np.array_equal(rows, rows_by_weight(weights, 2))


def test_weights_that_leave_few_rows_are_reported(true_chain):
    X, _ = strata(1, 100)
    with pytest.raises(mcce.InputError, match=r"X_new, thinned by weight, has \d+ rows; testing a conditional needs"):
        true_chain.criticise(X, sample_weight=np.r_[100.5, np.ones(99)])
