"""norm, its transformations and normrank: calibration, `proper` draws, restricted draws, densities. Level: 1e-4."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from mcce.exceptions import InputError
from mcce.rng import RowStreams
from mcce.samplers.linear import NormRankSampler, NormSampler, fit_linear
from mcce.samplers.pmm import PmmSampler
from mcce.samplers.within import Within
from tests.samplers.parametric.fixtures import at, encode

LEVEL = 1e-4
BACK = {"log": np.exp, "sqrt": np.square, "cuberoot": lambda z: z**3}
TRANSFORMS = pytest.mark.parametrize("transform", BACK)


def linear_data(n=2000, seed=0, decimals=None):
    """y = 3 + 2 x - 1.5 [f = v] + 0.7 e."""
    rng = np.random.default_rng(seed)
    x, f = rng.normal(size=n), rng.integers(0, 2, n)
    y = 3.0 + 2.0 * x - 1.5 * f + 0.7 * rng.normal(size=n)
    y = y if decimals is None else np.round(y, decimals)
    return encode(pd.DataFrame({"x": x, "f": np.array(["u", "v"])[f], "y": y}))


def transformed_data(transform, n=2000, decimals=None):
    """z = 2 + x + 0.5 e is the transformed target."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.0, 1.0, n)
    z = 2.0 + x + 0.5 * rng.normal(size=n)
    y = BACK[transform](np.maximum(z, 0.01) if transform == "sqrt" else z)
    return encode(pd.DataFrame({"x": x, "y": y if decimals is None else np.round(y, decimals)}))


def draw(fitted, given, within=None, seed=1):
    return fitted.distribution(given).sample(RowStreams.from_seed(seed, given.n_rows), within)


# ---- estimates


def test_ridge_regression_recovers_least_squares():
    given, target = linear_data()
    x = np.column_stack([np.ones(2000), given.matrix])
    beta, rss = np.linalg.lstsq(x, target.values, rcond=None)[:2]
    fitted = NormSampler().fit(given, target)
    np.testing.assert_allclose(fitted.coef_, beta, atol=1e-4)
    assert fitted.sigma_ == pytest.approx(np.sqrt(rss[0] / (2000 - 4)), rel=1e-4)


def test_proper_parameters_follow_their_posterior():
    given, target = linear_data(n=12)
    fit = fit_linear(given.matrix, target.values)
    draws = [NormSampler(proper=True, random_state=s).fit(given, target) for s in range(500)]
    sigma, beta = np.array([d.sigma_ for d in draws]), np.array([d.coef_ for d in draws])
    assert stats.kstest(fit.rss / sigma**2, stats.chi2(12 - 3).cdf).pvalue > LEVEL
    # standardised by their own sigma, coefficients are normal with covariance V, and independent of sigma
    z = np.linalg.solve(np.linalg.cholesky(fit.covariance), ((beta - fit.beta) / sigma[:, None]).T)
    assert all(stats.kstest(row, "norm").pvalue > LEVEL for row in z)
    assert stats.spearmanr((z**2).sum(axis=0), sigma).pvalue > LEVEL
    again = NormSampler(proper=True, random_state=0).fit(given, target)
    np.testing.assert_array_equal(again.coef_, draws[0].coef_)


# ---- calibration


@pytest.mark.parametrize("x", [-1.0, 0.3, 2.0])
def test_norm_is_calibrated(x):
    given, target = linear_data(n=20_000)
    drawn, _ = draw(NormSampler().fit(given, target), at(given, [x, 1.0], 4000))
    assert stats.kstest(drawn, stats.norm(3.0 + 2.0 * x - 1.5, 0.7).cdf).pvalue > LEVEL


@pytest.mark.parametrize("sampler", [NormRankSampler(), PmmSampler(n_donors=10)], ids=repr)
def test_draws_of_training_values_are_calibrated(sampler):
    given, target = linear_data(n=20_000)
    fresh, _ = linear_data(n=4000, seed=5)
    drawn, _ = draw(sampler.fit(given, target), fresh)
    residual = (drawn - (3.0 + 2.0 * fresh.matrix[:, 0] - 1.5 * fresh.matrix[:, 1])) / 0.7
    # the donors are 20,000 fixed values, and the regression of ranks is not exactly linear here
    assert np.abs([residual.mean(), residual.std() - 1.0]).max() < 0.05
    assert np.isin(drawn, target.values).all()


def test_normrank_is_calibrated_under_its_own_model():
    """A monotone transform of a normal model with a standard normal margin: exactly what normrank assumes."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=20_000)
    given, target = encode(pd.DataFrame({"x": x, "y": np.exp(2.0 * (0.8 * x + 0.6 * rng.normal(size=x.size)))}))
    fitted = NormRankSampler().fit(given, target)
    drawn, _ = draw(fitted, at(given, [1.0], 2000))
    assert stats.kstest(np.log(drawn) / 2.0, stats.norm(0.8, 0.6).cdf).pvalue > LEVEL
    values = np.exp(2.0 * np.linspace(-0.4, 2.0, 2000))
    expected = stats.norm.logpdf(np.log(values) / 2.0, 0.8, 0.6) - np.log(2.0 * values)
    found = fitted.distribution(at(given, [1.0], 2000)).log_density(values)
    assert np.abs(found - expected).mean() < 0.1


@TRANSFORMS
def test_parameters_and_draws_of_a_transformed_process(transform):
    given, target = transformed_data(transform)
    fitted = NormSampler(transform=transform).fit(given, target)
    np.testing.assert_allclose(fitted.coef_, [2.0, 1.0], atol=0.06)
    assert fitted.sigma_ == pytest.approx(0.5, abs=0.03)
    root = {"log": np.log, "sqrt": np.sqrt, "cuberoot": np.cbrt}[transform](draw(fitted, given)[0])
    assert stats.kstest(stats.norm.cdf(root, 2.0 + given.matrix[:, 0], 0.5), "uniform").pvalue > LEVEL


# ---- restricted draws


@pytest.mark.parametrize(
    "sampler", [NormRankSampler(), *(NormSampler(transform=t) for t in BACK)], ids=lambda s: str(s)
)
def test_restricted_draws_match_rejection(sampler):
    given, target = transformed_data(getattr(sampler, "transform", "sqrt"))
    fitted = sampler.fit(given, target)
    low, high = np.quantile(target.values, [0.3, 0.8])
    rows = given.take(np.zeros(20_000, dtype=np.intp))
    within = Within(low=np.full(20_000, low), high=np.full(20_000, high))
    found, rejected = draw(fitted, rows, within, seed=4)
    free, _ = draw(fitted, rows, seed=5)
    kept = free[(free >= low) & (free <= high)]
    assert not rejected.any()
    assert stats.ks_2samp(found, kept).pvalue > LEVEL
    assert fitted.distribution(rows).probability(within)[0] == pytest.approx(kept.size / 20_000, abs=0.02)


# ---- densities


def test_transformed_densities_match_scipy():
    given, target = transformed_data("log")
    fitted = NormSampler(transform="log").fit(given, target)
    expected = stats.lognorm.logpdf(target.values, fitted.sigma_, scale=np.exp(fitted.predict(given)))
    np.testing.assert_allclose(fitted.distribution(given).log_density(target.values), expected, atol=1e-10)
    given, target = transformed_data("sqrt")
    root = NormSampler(transform="sqrt").fit(given, target)
    mean, sd, z = root.predict(given), root.sigma_, np.sqrt(target.values)
    truncated = stats.truncnorm.logpdf(z, -mean / sd, np.inf, mean, sd) - np.log(2.0 * z)
    np.testing.assert_allclose(root.distribution(given).log_density(target.values), truncated, atol=1e-8)


@TRANSFORMS
@pytest.mark.parametrize("decimals", [None, 2])
def test_transformed_distributions_are_distributions(transform, decimals):
    """The density integrates to one, and ppf inverts cdf."""
    given, target = transformed_data(transform, decimals=decimals)
    fitted = NormSampler(transform=transform).fit(given, target)
    grid = np.sort(BACK[transform](np.linspace(-1.0 if transform == "cuberoot" else 1e-3, 5.5, 20_001)))
    rows = given.take(np.full(grid.size, 3))
    density = np.exp(fitted.distribution(rows).log_density(grid))
    assert integrate.trapezoid(density, grid) == pytest.approx(1.0, abs=2e-3)
    if decimals is None:
        u = np.linspace(1e-6, 1.0 - 1e-6, grid.size)
        distribution = fitted.distribution(rows)
        np.testing.assert_allclose(distribution.cdf(distribution.ppf(u)), u, atol=1e-9)


def test_normrank_probabilities_of_rounded_values_sum_to_one_and_match_draws():
    """Few training rows: half a rank matters."""
    given, target = linear_data(n=30, decimals=0)
    fitted = NormRankSampler().fit(given, target)
    drawn, _ = draw(fitted, at(given, [0.2, 0.0], 8000))
    values = np.unique(target.values)
    p = np.exp(fitted.distribution(at(given, [0.2, 0.0], values.size)).log_density(values))
    assert p.sum() == pytest.approx(1.0)
    likely = p > 1e-3
    counts = np.array([(drawn == v).sum() for v in values])
    assert stats.chisquare(counts[likely], p[likely] / p[likely].sum() * counts[likely].sum()).pvalue > LEVEL


def test_normrank_density_is_finite_beyond_the_training_rows():
    given, target = linear_data(n=200)
    beyond = np.array([target.values.min() - 0.1, target.values.max(), target.values.max() + 0.1])
    assert np.isfinite(
        NormRankSampler().fit(given, target).distribution(given.take(np.arange(3))).log_density(beyond)
    ).all()


# ---- edges


def test_zeros_shift_the_logarithm_as_in_synthpop():
    given, target = transformed_data("log", decimals=0)
    values = np.where(np.arange(2000) % 4 == 0, 0.0, np.maximum(target.values, 1.0))
    fitted = NormSampler(transform="log").fit(given, type(target)(target.feature, values))
    assert fitted.shift_ == 0.5 * values[values > 0].min()
    drawn, _ = draw(fitted, given)
    assert drawn.min() == 0.0
    assert (np.rint(drawn) == drawn).all()
    positive = NormSampler(transform="log").fit(given, type(target)(target.feature, np.maximum(target.values, 1.0)))
    assert draw(positive, given)[0].min() == 1.0


@TRANSFORMS
def test_rows_far_outside_stay_finite(transform):
    given, target = transformed_data(transform, n=200)
    far = type(given)(given.features, np.array([[1e6], [-1e6]]))
    assert np.isfinite(draw(NormSampler(transform=transform).fit(given, target), far)[0]).all()


@pytest.mark.parametrize("sampler", [NormSampler(), NormRankSampler(), PmmSampler()], ids=repr)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_constants_and_few_rows(sampler, n):
    frame = pd.DataFrame({"x": np.arange(float(n)), "y": [np.pi] * n})
    given, target = encode(frame)
    distribution = sampler.fit(given, target).distribution(given)
    assert (distribution.sample(RowStreams.from_seed(0, n))[0] == np.pi).all()
    if n > 1:  # one value alone has no point mass
        assert distribution.log_density(target.values)[0] == pytest.approx(0.0)
    given, target = encode(frame.assign(y=np.arange(float(n))))
    assert np.isfinite(draw(sampler.fit(given, target), given)[0]).all()


def test_no_givens_is_the_margin():
    given, target = linear_data(n=4000)
    for sampler in (NormRankSampler(), PmmSampler()):
        drawn, _ = draw(sampler.fit(given.select([]), target), given.select([]))
        assert stats.ks_2samp(drawn, target.values).pvalue > LEVEL


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (
            NormSampler(transform="log"),
            r"needs numbers that are not negative, and column 'y' holds -.*use transform='cub",
        ),
        (NormSampler(proper="yes"), "proper"),
        (PmmSampler(n_donors=0), "n_donors"),
    ],
)
def test_errors_name_the_fix(sampler, message):
    with pytest.raises(InputError, match=message):
        sampler.fit(*transformed_data("cuberoot"))
