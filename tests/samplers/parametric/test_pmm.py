"""Predictive mean matching: donors by brute force, ties, far rows, `proper` fits. Level of all tests: 1e-4."""

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from scipy import stats

from mcce.samplers.pmm import PmmSampler
from tests.samplers.parametric.fixtures import at
from tests.samplers.parametric.test_linear import LEVEL, draw, linear_data


@for_all(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 6), st.booleans())
def test_shares_by_brute_force(seed, n, k, is_coarse):
    """Donors nearer than the k-th have 1 / k; all at its distance share the rest."""
    rng = np.random.default_rng(seed)
    given, target = linear_data(n, seed, decimals=0)
    matrix = np.round(given.matrix) if is_coarse else given.matrix
    given = type(given)(given.features, np.asfortranarray(matrix))
    fitted = PmmSampler(n_donors=k).fit(given, target)
    new = type(given)(given.features, np.asfortranarray(np.column_stack([rng.normal(size=5), rng.integers(0, 2, 5)])))
    known, predicted = fitted.predict(given), fitted.predict(new)
    k = min(k, n)
    values = np.unique(target.values)
    for i in range(5):
        distance = np.abs(known - np.clip(predicted[i], known.min(), known.max()))
        last, tie = np.sort(distance)[k - 1], 1e-9 * np.abs(known).max()
        is_sure, is_tied = distance < last - tie, np.abs(distance - last) <= tie
        weight = is_sure + is_tied * (k - is_sure.sum()) / is_tied.sum()
        expected = np.array([weight[target.values <= v].sum() for v in values]) / k
        rows = new.take(np.full(values.size, i))
        np.testing.assert_allclose(fitted.distribution(rows).cdf(values), expected, atol=1e-12)


def test_draws_follow_the_shares():
    """With one two-level given every donor of the group is tied."""
    given, target = linear_data(n=50, decimals=0)
    given = given.select([1])
    drawn, _ = draw(PmmSampler().fit(given, target), at(given, [1.0], 5000))
    values, counts = np.unique(target.values[given.matrix[:, 0] == 1], return_counts=True)
    assert stats.chisquare([(drawn == v).sum() for v in values], counts / counts.sum() * 5000).pvalue > LEVEL


def test_proper_predicts_training_rows_with_the_estimate():
    given, target = linear_data(n=60)
    fitted = PmmSampler(proper=True, random_state=1).fit(given, target)
    np.testing.assert_array_equal(fitted.predictions_, np.sort(fitted.predict(given, fitted.estimate_.beta)))
    assert (fitted.coef_ != fitted.estimate_.beta).all()


@pytest.mark.parametrize("x", [1e9, 1e17, -1e17])
def test_far_outside_the_data_draws_the_donors_of_that_end(x):
    given, target = linear_data(n=300)
    sampler = PmmSampler(n_donors=4).fit(given, target)
    order = np.argsort(sampler.predict(given))
    last = order[-4:] if x > 0 else order[:4]
    drawn, _ = draw(sampler, at(given, [x, 0.0], 300))
    assert set(drawn) == set(target.values[last])
    assert np.isfinite(sampler.distribution(at(given, [x, 0.0], 4)).log_density(target.values[last])).all()
