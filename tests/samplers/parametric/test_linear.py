"""norm, normrank and donors: calibration, `proper` draws, restricted draws, densities. Level of all tests: 1e-4."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce import SamplerError, Within
from mcce.rng import RowStreams
from mcce.samplers.parametric.linear import fit_linear
from mcce.table import Table
from tests.samplers.parametric.problem import encode

LEVEL = 1e-4


def linear_data(n=2000, seed=0, decimals=None):
    """y = 3 + 2 x - 1.5 [f = v] + 0.7 e."""
    rng = np.random.default_rng(seed)
    x, f = rng.normal(size=n), rng.integers(0, 2, n)
    y = 3.0 + 2.0 * x - 1.5 * f + 0.7 * rng.normal(size=n)
    y = y if decimals is None else np.round(y, decimals)
    return encode(pd.DataFrame({"x": x, "f": np.array(["u", "v"])[f], "y": y}))


def at(given, x, f, n):
    return Table(given.features, np.tile([x, f], (n, 1)))


# ---- proper


def test_ridge_regression_recovers_least_squares():
    given, target = linear_data()
    x = np.column_stack([np.ones(2000), given.matrix])
    beta, rss = np.linalg.lstsq(x, target.values, rcond=None)[:2]
    fitted = mcce.NormSampler().fit(given, target)
    np.testing.assert_allclose(fitted.coef_, beta, atol=1e-4)
    assert fitted.sigma_ == pytest.approx(np.sqrt(rss[0] / (2000 - 4)), rel=1e-4)


@pytest.mark.slow
def test_proper_parameters_follow_their_posterior():
    given, target = linear_data(n=12)
    fit = fit_linear(given.matrix, target.values)
    draws = [mcce.NormSampler(proper=True, random_state=s).fit(given, target) for s in range(500)]
    sigma = np.array([d.sigma_ for d in draws])
    beta = np.array([d.coef_ for d in draws])
    assert stats.kstest(fit.rss / sigma**2, stats.chi2(12 - 3).cdf).pvalue > LEVEL
    # standardised by their own sigma, coefficients are normal with covariance V
    z = np.linalg.solve(np.linalg.cholesky(fit.covariance), ((beta - fit.beta) / sigma[:, None]).T)
    for row in z:
        assert stats.kstest(row, "norm").pvalue > LEVEL
    assert stats.kstest((z**2).sum(axis=0), stats.chi2(3).cdf).pvalue > LEVEL
    # and are independent of it: with another sigma they would be t-distributed
    assert stats.spearmanr((z**2).sum(axis=0), sigma).pvalue > LEVEL


def test_proper_draws_depend_on_the_seed_and_on_the_target_only():
    given, target = linear_data(n=40)
    a, b, c = (mcce.NormSampler(proper=True, random_state=s).fit(given, target).coef_ for s in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert (a != c).all()
    other = encode(pd.DataFrame({"x": given.matrix[:, 0], "z": target.values}), "z")
    same_name = encode(pd.DataFrame({"x": given.matrix[:, 0], "y": target.values}))
    d, e = (mcce.NormSampler(proper=True).fit(*data).coef_ for data in (other, same_name))
    assert (d != e).all()


# ---- calibration


@pytest.mark.parametrize("x", [-1.0, 0.3, 2.0])
def test_norm_is_calibrated(x):
    given, target = linear_data(n=20_000)
    fitted = mcce.NormSampler().fit(given, target)
    drawn = fitted.sample(at(given, x, 1.0, 4000), RowStreams.from_seed(1, 4000))
    assert stats.kstest(drawn, stats.norm(3.0 + 2.0 * x - 1.5, 0.7).cdf).pvalue > LEVEL


@pytest.mark.parametrize("sampler", [mcce.NormRankSampler(), mcce.PmmSampler(), mcce.PmmSampler(smoothing="density")])
def test_donors_are_calibrated(sampler):
    given, target = linear_data(n=20_000)
    fitted = sampler.fit(given, target)
    rng = np.random.default_rng(5)
    x, f = rng.normal(size=4000), rng.integers(0, 2, 4000)
    drawn = fitted.sample(Table(given.features, np.column_stack([x, f])), RowStreams.from_seed(1, 4000))
    residual = (drawn - (3.0 + 2.0 * x - 1.5 * f)) / 0.7
    kernel = fitted.smoother_.bandwidth / 0.7 if sampler.smoothing else 0.0
    # the donors are 20 000 fixed values, and the regression of ranks is not exactly linear here
    assert np.abs([residual.mean(), residual.std() - np.hypot(1.0, kernel)]).max() < 0.05
    assert stats.ks_2samp(drawn, target.values).pvalue > LEVEL


def test_normrank_is_calibrated_under_its_own_model():
    """A monotone transform of the model with normal margins: exactly what normrank assumes."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=20_000)
    z = 0.8 * x + 0.6 * rng.normal(size=x.size)
    given, target = encode(pd.DataFrame({"x": x, "y": np.exp(2.0 * z)}))
    fitted = mcce.NormRankSampler().fit(given, target)
    drawn = fitted.sample(Table(given.features, np.full((2000, 1), 1.0)), RowStreams.from_seed(1, 2000))
    assert stats.kstest(np.log(drawn) / 2.0, stats.norm(0.8, 0.6).cdf).pvalue > LEVEL


def test_norm_draws_have_the_decimals_of_the_data():
    for decimals in (0, 1, 3):
        given, target = linear_data(decimals=decimals)
        fitted = mcce.NormSampler().fit(given, target)
        assert fitted.decimals_ == decimals
        drawn = fitted.sample(given, RowStreams.from_seed(1, 2000))
        np.testing.assert_array_equal(drawn, np.round(drawn, decimals))


def test_norm_stays_within_an_integer_dtype():
    frame = pd.DataFrame({"x": np.arange(200) / 2, "y": np.random.default_rng(0).poisson(1.0, 200).astype("uint8")})
    chain = mcce.ChainModel(sampler="norm", fixed=["x"], random_state=1).fit(frame)
    drawn = chain.sample(n=5000)["y"]
    assert drawn.dtype == "uint8"
    assert drawn.max() < 20


# ---- restricted draws


def restricted_cdf(mean, sd, low, high):
    a, b = stats.norm.cdf([(low - mean) / sd, (high - mean) / sd])
    return lambda v: np.clip((stats.norm.cdf((v - mean) / sd) - a) / (b - a), 0, 1)


@pytest.mark.parametrize(("low", "high"), [(1.0, 2.0), (4.0, 9.0), (-np.inf, 0.0), (6.0, np.inf)])
def test_norm_within_is_the_truncated_normal(low, high):
    given, target = linear_data()
    fitted = mcce.NormSampler().fit(given, target)
    rows = at(given, 0.2, 0.0, 3000)
    within = Within(low=np.full(3000, low), high=np.full(3000, high))
    drawn = fitted.sample(rows, RowStreams.from_seed(1, 3000), within)
    assert within.allows(drawn).all()
    expected = restricted_cdf(fitted.predict(rows)[0], fitted.sigma_, low, high)
    assert stats.kstest(drawn, expected).pvalue > LEVEL


def test_norm_within_far_tail():
    given, target = linear_data()
    fitted = mcce.NormSampler().fit(given, target)
    rows = at(given, 0.0, 0.0, 1000)
    for bounds in ({"low": np.full(1000, 30.0)}, {"high": np.full(1000, -30.0)}):
        within = Within(**bounds)
        drawn = fitted.sample(rows, RowStreams.from_seed(1, 1000), within)
        assert within.allows(drawn).all()
        assert np.unique(drawn).size > 900


def test_norm_within_counts_rounded_values():
    """The probability of each allowed integer is that of its rounding interval, also at the ends."""
    given, target = linear_data(decimals=0)
    fitted = mcce.NormSampler().fit(given, target)
    rows = at(given, 0.2, 0.0, 6000)
    within = Within(low=np.full(6000, 2.2), high=np.full(6000, 5.9))
    drawn = fitted.sample(rows, RowStreams.from_seed(1, 6000), within)
    edges = stats.norm.cdf((np.array([2.5, 3.5, 4.5, 5.5]) - fitted.predict(rows)[0]) / fitted.sigma_)
    expected = np.diff(edges) / (edges[-1] - edges[0]) * 6000
    assert stats.chisquare([(drawn == v).sum() for v in (3.0, 4.0, 5.0)], expected).pvalue > LEVEL
    nothing = Within(low=np.full(6000, 2.2), high=np.full(6000, 2.8))
    assert np.isnan(fitted.sample(rows, RowStreams.from_seed(1, 6000), nothing)).all()


def test_normrank_within_renormalises_its_own_probabilities():
    given, target = linear_data(n=300, decimals=0)
    fitted = mcce.NormRankSampler().fit(given, target)
    rows = at(given, 0.2, 0.0, 6000)
    within = Within(low=np.full(6000, 3.0), high=np.full(6000, 5.5))
    drawn = fitted.sample(rows, RowStreams.from_seed(1, 6000), within)
    values = np.array([3.0, 4.0, 5.0])
    p = np.exp(fitted.log_density(rows.take(np.arange(3)), values))
    counts = [(drawn == v).sum() for v in values]
    assert sum(counts) == 6000
    assert stats.chisquare(counts, p / p.sum() * 6000).pvalue > LEVEL


def test_normrank_draws_follow_its_probabilities():
    """Few training rows: half a rank matters."""
    given, target = linear_data(n=30, decimals=0)
    fitted = mcce.NormRankSampler().fit(given, target)
    rows = at(given, 0.2, 0.0, 8000)
    drawn = fitted.sample(rows, RowStreams.from_seed(2, 8000))
    values = np.unique(target.values)
    p = np.exp(fitted.log_density(rows.take(np.arange(values.size)), values))
    likely = p > 1e-3
    counts = np.array([(drawn == v).sum() for v in values])
    observed = np.append(counts[likely], counts[~likely].sum())
    expected = np.append(p[likely], p[~likely].sum()) * 8000
    assert stats.chisquare(observed, expected).pvalue > LEVEL
    assert fitted.log_density(rows.take(np.arange(1)), np.array([2.5]))[0] == -np.inf


# ---- densities and support


def test_norm_density_is_normal():
    given, target = linear_data()
    fitted = mcce.NormSampler().fit(given, target)
    expected = stats.norm.logpdf(target.values, fitted.predict(given), fitted.sigma_)
    np.testing.assert_allclose(fitted.log_density(given, target.values), expected, atol=1e-10)


def test_constant_target_has_probability_one():
    given, target = encode(pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [np.pi] * 3}))
    for sampler in (mcce.NormSampler(), mcce.NormRankSampler(), mcce.PmmSampler()):
        fitted = sampler.fit(given, target)
        assert fitted.log_density(given, target.values).tolist() == [0.0] * 3
        assert fitted.log_density(given, target.values + 1).tolist() == [-np.inf] * 3


def test_smoothed_draws_have_no_density():
    given, target = linear_data(n=50)
    for sampler in (mcce.NormRankSampler(smoothing="density"), mcce.PmmSampler(smoothing="density")):
        with pytest.raises(SamplerError, match="without smoothing it has one"):
            sampler.fit(given, target).log_density(given, target.values)


def test_support():
    given, target = linear_data(decimals=1)
    far = np.full(2000, 1000.0)
    between = target.values + 0.05
    norm, rank = mcce.NormSampler().fit(given, target), mcce.NormRankSampler().fit(given, target)
    assert norm.supports(given, target.values).all()
    assert not norm.supports(given, far).any()
    assert not norm.supports(given, between).any()
    assert rank.supports(given, target.values).all()
    assert not rank.supports(given, between).any()
    smoothed = mcce.NormRankSampler(smoothing="density").fit(given, target)
    assert smoothed.supports(given, np.clip(between, target.values.min(), target.values.max())).all()
