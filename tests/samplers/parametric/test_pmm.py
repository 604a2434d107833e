"""Predictive mean matching: `proper` fits, restricted draws, and draws compared with probabilities."""

import numpy as np
import pytest
from scipy import stats

import mcce
from mcce import Within
from mcce.rng import RowStreams
from mcce.table import Table
from tests.samplers.parametric.test_linear import LEVEL, at, linear_data


def test_proper_pmm_predicts_training_rows_with_the_estimate():
    given, target = linear_data(n=60)
    fitted = mcce.PmmSampler(proper=True).fit(given, target)
    np.testing.assert_array_equal(fitted.predictions_, np.sort(fitted.predict_with(fitted.estimate_, given)))
    assert (fitted.coef_ != fitted.estimate_).all()


def test_pmm_within_takes_the_nearest_allowed_donors():
    given, target = linear_data(n=200)
    fitted = mcce.PmmSampler().fit(given, target)
    predictions = fitted.predict(given)
    n = 600
    rows = given.take(np.arange(n) % 200)
    low = np.where(np.arange(n) % 3 == 0, 100.0, np.where(np.arange(n) % 3 == 1, 2.0, -np.inf))
    drawn = fitted.sample(rows, RowStreams.from_seed(1, n), Within(low=low))
    assert np.isnan(drawn[low == 100.0]).all()
    for i in np.flatnonzero(low < 100.0):
        allowed = np.flatnonzero(target.values >= low[i])
        nearest = allowed[np.argsort(np.abs(predictions[allowed] - predictions[i % 200]))[:3]]
        assert drawn[i] in target.values[nearest]


@pytest.mark.parametrize("x", [1e9, 1e17, -1e17])
def test_pmm_far_outside_the_data_draws_the_donors_of_that_end(x):
    given, target = linear_data(n=300)
    sampler = mcce.PmmSampler(n_donors=4).fit(given, target)
    order = np.argsort(sampler.predict_with(sampler.estimate_, given))
    last = order[-4:] if x > 0 else order[:4]
    drawn = sampler.sample(at(given, x, 0.0, 300), RowStreams.from_seed(0, 300))
    assert set(drawn) == set(target.values[last])
    assert np.isfinite(sampler.log_density(at(given, x, 0.0, 4), target.values[last])).all()
    restricted = sampler.sample(
        at(given, x, 0.0, 50), RowStreams.from_seed(0, 50), Within(low=np.full(50, 2.0), high=np.full(50, 4.0))
    )
    assert ((restricted >= 2.0) & (restricted <= 4.0)).all()


def test_pmm_draws_follow_its_probabilities():
    given, target = linear_data(n=50, decimals=0)
    given = given.select([1])  # a two-level given: every donor of the group is tied
    fitted = mcce.PmmSampler().fit(given, target)
    rows = Table(given.features, np.ones((5000, 1)))
    drawn = fitted.sample(rows, RowStreams.from_seed(1, 5000))
    group = target.values[given.matrix[:, 0] == 1]
    values, counts = np.unique(group, return_counts=True)
    assert stats.chisquare([(drawn == v).sum() for v in values], counts / counts.sum() * 5000).pvalue > LEVEL
    some = rows.take(np.arange(values.size))
    np.testing.assert_allclose(fitted.probability_within(some, Within(low=values, high=values)), counts / counts.sum())
    shares = np.array([(target.values == v).mean() for v in values])
    p = np.exp(fitted.log_density(some, values))
    np.testing.assert_allclose(p, 0.999 * counts / counts.sum() + 0.001 * shares)  # a thousandth is uniform
