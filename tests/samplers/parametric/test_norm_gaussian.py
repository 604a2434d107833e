"""The joint Gaussian: closed-form conditionals, one joint for every order, collinear columns."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce import SamplerError
from mcce.rng import RowStreams
from mcce.table import Table
from tests.samplers.parametric.test_sampler import encode

MEAN = np.array([1.0, -2.0, 10.0])
COVARIANCE = np.array([[1.0, 0.6, 1.2], [0.6, 2.0, -0.9], [1.2, -0.9, 9.0]])


def normal_frame(n, seed=0):
    rows = np.random.default_rng(seed).multivariate_normal(MEAN, COVARIANCE, n)
    return pd.DataFrame(rows, columns=["a", "b", "y"])


def conditional(mean, covariance, x):
    """Return mean and standard deviation of the last of some normal variables, given the others."""
    weights = covariance[-1, :-1] @ np.linalg.inv(covariance[:-1, :-1])
    return mean[-1] + (x - mean[:-1]) @ weights, np.sqrt(covariance[-1, -1] - weights @ covariance[:-1, -1])


def test_conditional_matches_the_sample_covariance():
    frame = normal_frame(50)
    given, target = encode(frame)
    fitted = mcce.GaussianSampler().fit(given, target)
    mean, sd = conditional(frame.mean().to_numpy(), frame.cov().to_numpy(), given.matrix)
    np.testing.assert_allclose(fitted.predict(given), mean, rtol=1e-12)
    assert fitted.sigma_ == pytest.approx(sd, rel=1e-12)
    np.testing.assert_allclose(fitted.covariance_, frame.cov(), rtol=1e-12)
    np.testing.assert_allclose(fitted.log_density(given, target.values), stats.norm(mean, sd).logpdf(target.values))


@pytest.mark.parametrize("x", [[1.0, -2.0], [3.0, 1.0]])
def test_draws_of_known_normal_variables(x):
    given, target = encode(normal_frame(20_000))
    fitted = mcce.GaussianSampler().fit(given, target)
    drawn = fitted.sample(Table(given.features, np.tile(x, (3000, 1))), RowStreams.from_seed(1, 3000))
    assert stats.kstest(drawn, stats.norm(*conditional(MEAN, COVARIANCE, np.array(x))).cdf).pvalue > 1e-4


def test_norm_differs_only_by_ridge_and_denominator():
    given, target = encode(normal_frame(200))
    gaussian, norm = (s.fit(given, target) for s in (mcce.GaussianSampler(), mcce.NormSampler()))
    np.testing.assert_allclose(gaussian.coef_, norm.coef_, rtol=1e-3)
    assert norm.sigma_ / gaussian.sigma_ == pytest.approx(np.sqrt(199 / (200 - 3 - 1)), rel=1e-4)


def test_chain_has_one_joint_distribution_in_every_order():
    """Unlike `norm`; a row's log density by numpy identifies the joint."""
    frame = normal_frame(30)
    new = normal_frame(20, seed=1)
    joint = stats.multivariate_normal(frame.mean(), frame.cov()).logpdf(new)
    for order in (["a", "b", "y"], ["y", "a", "b"], ["b", "y", "a"]):
        chain = mcce.ChainModel(sampler="gaussian", visit_sequence=order, random_state=1).fit(frame)
        first = stats.norm(frame[order[0]].mean(), frame[order[0]].std()).logpdf(new[order[0]])
        density = chain.log_density(new, per_feature=True)
        np.testing.assert_allclose(density[order[0]], first)
        np.testing.assert_allclose(density.sum(axis=1), joint)


def test_levels_among_the_givens_shift_the_mean():
    rng = np.random.default_rng(3)
    x, job = rng.normal(size=5000), rng.integers(0, 3, 5000)
    y = 2.0 * x + np.array([0.0, 5.0, -3.0])[job] + rng.normal(size=5000)
    given, target = encode(pd.DataFrame({"x": x, "job": np.array(list("abc"))[job], "y": y}))
    fitted = mcce.GaussianSampler().fit(given, target)
    np.testing.assert_allclose(fitted.coef_, [0.0, 2.0, 5.0, -3.0], atol=0.12)
    assert fitted.sigma_ == pytest.approx(1.0, abs=0.04)


def test_collinear_givens_share_their_effect():
    frame = normal_frame(400)
    twice = frame.assign(b2=frame["b"] * 1e6 + 5.0, c=7.0)[["a", "b", "b2", "c", "y"]]
    plain, doubled = (mcce.GaussianSampler().fit(*encode(data)) for data in (frame, twice))
    np.testing.assert_allclose(doubled.predict(encode(twice)[0]), plain.predict(encode(frame)[0]), rtol=1e-9)
    assert doubled.sigma_ == pytest.approx(plain.sigma_, rel=1e-9)


def test_sum_of_other_columns_keeps_a_density():
    frame = normal_frame(400)
    given, target = encode(frame.assign(y=frame["a"] - 2.0 * frame["b"]))
    fitted = mcce.GaussianSampler().fit(given, target)
    assert fitted.sigma_ == pytest.approx(1e-4 * target.values.std(ddof=1))
    np.testing.assert_allclose(fitted.sample(given, RowStreams.from_seed(1, 400)), target.values, atol=1e-2)
    assert np.isfinite(fitted.log_density(given, target.values)).all()


def test_categorical_targets_raise():
    frame = normal_frame(40).assign(y=["u", "v"] * 20)
    with pytest.raises(SamplerError, match="cannot model 'y': it is categorical, and the sampler handles 'numeric'"):
        mcce.GaussianSampler().fit(*encode(frame))
