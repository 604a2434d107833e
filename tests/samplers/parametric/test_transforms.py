"""`lognorm`, `sqrtnorm`, `cubertnorm`: densities and restricted draws compared with scipy."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import mcce
from mcce import InputError, SamplerError, Within
from mcce.rng import RowStreams
from mcce.storage.state import from_state, to_state
from mcce.testing import check_sampler
from tests.marks import nightly_but
from tests.samplers.parametric.problem import encode

NAMES = {"lognorm": "log", "sqrtnorm": "sqrt", "cubertnorm": "cuberoot"}
BACK = {"log": np.exp, "sqrt": np.square, "cuberoot": lambda z: z**3}
LEVEL = 1e-3


def process(transform, n=2000, decimals=None, seed=1):
    """z = 2 + x + normal error of sd 0.5 is the transformed target."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, n)
    z = 2.0 + x + 0.5 * rng.normal(size=n)
    y = BACK[transform](np.maximum(z, 0.01) if transform == "sqrt" else z)
    return encode(pd.DataFrame({"x": x, "y": y if decimals is None else np.round(y, decimals)}))


@pytest.mark.parametrize("name", nightly_but(NAMES, "cubertnorm"))
def test_conformance(name):
    check_sampler(name)


@pytest.mark.parametrize("name", NAMES)
def test_name_equals_its_transform(name):
    given, target = process(NAMES[name], n=300)
    named, plain = mcce.available_samplers()[name](), mcce.NormSampler(transform=NAMES[name])
    draws = [each.fit(given, target).sample(given, RowStreams.from_seed(1, 300)) for each in (named, plain)]
    np.testing.assert_array_equal(*draws)
    again = from_state(to_state(named))
    np.testing.assert_array_equal(again.log_density(given, target.values), plain.log_density(given, target.values))


@pytest.mark.parametrize("transform", BACK)
def test_parameters_and_pit_of_a_known_process(transform):
    given, target = process(transform)
    fitted = mcce.NormSampler(transform=transform).fit(given, target)
    np.testing.assert_allclose(fitted.coef_, [2.0, 1.0], atol=0.06)
    assert fitted.sigma_ == pytest.approx(0.5, abs=0.03)
    drawn = fitted.sample(given, RowStreams.from_seed(2, 2000))
    root = {"log": np.log, "sqrt": np.sqrt, "cuberoot": np.cbrt}[transform](drawn)
    pit = stats.norm.cdf(root, 2.0 + given.matrix[:, 0], 0.5)
    assert stats.kstest(pit, "uniform").pvalue > LEVEL


@pytest.mark.parametrize("transform", BACK)
@pytest.mark.parametrize("decimals", [None, 2])
def test_densities_integrate_to_one(transform, decimals):
    given, target = process(transform, decimals=decimals)
    fitted = mcce.NormSampler(transform=transform).fit(given, target)
    row = given.take(np.array([3]))
    assert fitted.base_measure() == "lebesgue"
    grid = np.sort(BACK[transform](np.linspace(-1.0 if transform == "cuberoot" else 1e-3, 5.5, 20_001)))
    density = np.exp(fitted.log_density(given.take(np.full(grid.size, 3)), grid))
    assert integrate.trapezoid(density, grid) == pytest.approx(1.0, abs=2e-3)
    assert np.isfinite(fitted.log_density(row, np.zeros(1))).all() or transform == "log"


def test_density_matches_scipy():
    given, target = process("log")
    fitted = mcce.LogNormSampler().fit(given, target)
    expected = stats.lognorm.logpdf(target.values, fitted.sigma_, scale=np.exp(fitted.predict(given)))
    np.testing.assert_allclose(fitted.log_density(given, target.values), expected, atol=1e-10)
    root = mcce.SqrtNormSampler().fit(given, target)
    mean, sd = root.predict(given), root.sigma_
    z = np.sqrt(target.values)
    truncated = stats.truncnorm.logpdf(z, -mean / sd, np.inf, mean, sd) - np.log(2.0 * z)
    np.testing.assert_allclose(root.log_density(given, target.values), truncated, atol=1e-8)


@pytest.mark.parametrize("transform", BACK)
def test_restricted_draws_match_rejection(transform):
    given, target = process(transform)
    fitted = mcce.NormSampler(transform=transform).fit(given, target)
    low, high = np.quantile(target.values, [0.3, 0.8])
    rows = given.take(np.zeros(20_000, dtype=np.intp))
    within = Within(low=np.full(20_000, low), high=np.full(20_000, high), weighted=True)
    found = fitted.sample_within(rows, RowStreams.from_seed(4, 20_000), within)
    free = fitted.sample(rows, RowStreams.from_seed(5, 20_000))
    kept = free[(free >= low) & (free <= high)]
    assert not found.rejected.any()
    assert stats.ks_2samp(found.values, kept).pvalue > LEVEL
    assert np.exp(found.log_mass[0]) == pytest.approx(kept.size / 20_000, abs=0.015)


def test_zeros_shift_the_logarithm_as_in_synthpop():
    given, target = process("log", decimals=0)
    values = np.where(np.arange(2000) % 4 == 0, 0.0, target.values)
    target = type(target)(target.feature, values)
    fitted = mcce.LogNormSampler().fit(given, target)
    assert fitted.shift_ == 0.5 * values[values > 0].min()
    drawn = fitted.sample(given, RowStreams.from_seed(1, 2000))
    assert drawn.min() == 0.0
    assert (np.rint(drawn) == drawn).all()
    positive = mcce.LogNormSampler().fit(given, type(target)(target.feature, np.maximum(target.values, 1.0)))
    assert positive.sample(given, RowStreams.from_seed(1, 2000)).min() == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_rows_far_outside_stay_finite(name):
    given, target = process(NAMES[name], n=200)
    fitted = mcce.available_samplers()[name]().fit(given, target)
    far = type(given)(given.features, np.array([[1e6], [-1e6]]))
    assert np.isfinite(fitted.sample(far, RowStreams.from_seed(1, 2))).all()


def test_densities_of_a_narrow_dtype_sum_to_one():
    rng = np.random.default_rng(0)
    y = np.clip(np.rint(rng.normal(1.0, 2.0, 500)), 0, 255).astype(np.uint8)
    given, target = encode(pd.DataFrame({"x": rng.normal(size=500), "y": y}))
    fitted = mcce.NormSampler().fit(given, target)
    row = given.take(np.zeros(256, dtype=np.intp))
    assert np.exp(fitted.log_density(row, np.arange(256.0))).sum() == pytest.approx(1.0, abs=2e-3)


def test_errors_name_the_fix():
    given, target = process("cuberoot")
    with pytest.raises(SamplerError, match=r"needs non-negative values, and 'y' holds -.*Use transform='cuberoot'"):
        mcce.LogNormSampler().fit(given, target)
    with pytest.raises(InputError, match="transform of NormSampler is 'ln'; allowed: 'log', 'sqrt', 'cuberoot', None"):
        mcce.NormSampler(transform="ln").fit(given, target)
