"""Kernel smoothing of donors, decimals, and truncated normal draws. Level of all tests: 1e-4."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce.rng import RowStreams
from mcce.samplers.smoothing import Smoother, bandwidth, log_normal_mass, truncated_normal
from mcce.table.grid import decimals_of

FIXTURE = Path(__file__).parents[1] / "fixtures" / "synthpop" / "bandwidth.json.gz"
CASES = json.loads(gzip.decompress(FIXTURE.read_bytes()))
LEVEL = 1e-4


@pytest.mark.parametrize("name", CASES)
def test_bandwidth_matches_r(name):
    assert bandwidth(np.array(CASES[name]["values"])) == pytest.approx(CASES[name]["sj"], rel=1e-8)


def test_bandwidth_of_odd_values():
    assert bandwidth(np.full(10, 3.0)) == 0.0
    assert bandwidth(np.array([0.0, 1.0])) > 0.0
    assert bandwidth(np.append(np.zeros(99), 1.0)) > 0.0


@pytest.mark.slow
def test_smoothed_draws_are_a_truncated_kernel_estimate():
    rng = np.random.default_rng(0)
    observed = rng.exponential(size=500)
    smoother = Smoother.read(observed)
    donors = observed[rng.integers(0, 500, 5000)]
    drawn = smoother.smooth(donors, RowStreams.from_seed(1, 5000))
    low, high, h = observed.min(), observed.max(), smoother.bandwidth
    assert ((drawn >= low) & (drawn <= high)).all()

    def cdf(v):
        below, above = stats.norm.cdf((low - observed) / h), stats.norm.cdf((high - observed) / h)
        at = stats.norm.cdf((v[:, None] - observed) / h)
        return ((at - below) / (above - below)).mean(axis=1)

    assert stats.kstest(drawn, cdf).pvalue > LEVEL
    assert not np.isin(drawn, observed).any()


def test_point_masses_stay_and_decimals_are_kept():
    rng = np.random.default_rng(0)
    observed = np.where(rng.random(1000) < 0.6, 0.0, np.round(rng.lognormal(8, 1, 1000), 1))
    smoother = Smoother.read(observed)
    assert smoother.atoms.tolist() == [0.0]
    drawn = smoother.smooth(observed, RowStreams.from_seed(1, 1000))
    assert (drawn[observed == 0.0] == 0.0).all()
    assert (drawn[observed > 0.0] != observed[observed > 0.0]).mean() > 0.9
    np.testing.assert_array_equal(drawn, np.round(drawn, 1))


def test_nothing_to_smooth():
    for observed in (np.full(20, 7.0), np.array([1.0]), np.repeat([1.0, 2.0], 10)):
        drawn = Smoother.read(observed).smooth(observed, RowStreams.from_seed(1, observed.size))
        np.testing.assert_array_equal(drawn, observed)


@pytest.mark.parametrize(
    ("values", "expected"), [([1.0, 2.0], 0), ([0.29, 1.1], 2), ([1e6 + 0.125], 3), ([1 / 3], None), ([1e300], 0)]
)
def test_decimals(values, expected):
    assert decimals_of(np.array(values)) == expected


@pytest.mark.parametrize(("a", "b"), [(-1.0, 2.0), (-np.inf, -3.0), (4.0, 5.0), (20.0, np.inf), (-np.inf, np.inf)])
def test_truncated_normal(a, b):
    n = 4000
    u = (np.arange(n) + 0.5) / n
    drawn = truncated_normal(np.full(n, 10.0), 2.0, np.full(n, 10 + 2 * a), np.full(n, 10 + 2 * b), u)
    expected = stats.truncnorm.cdf((drawn - 10.0) / 2.0, a, b)
    assert np.abs(np.sort(expected) - u).max() < 1e-8


def test_log_normal_mass():
    a, b = np.array([-1.0, 30.0, -np.inf, -np.inf, -31.0]), np.array([2.0, 31.0, np.inf, -40.0, -30.0])
    expected = np.log(stats.norm.cdf(2) - stats.norm.cdf(-1)), stats.norm.logsf(30), 0.0, stats.norm.logcdf(-40)
    np.testing.assert_allclose(log_normal_mass(a, b), [*expected, expected[1]], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("scale", [1e-60, 1e-45, 1e45, 1e60])
@pytest.mark.parametrize("name", CASES)
def test_bandwidth_has_the_unit_of_the_values(name, scale):
    values = np.array(CASES[name]["values"])
    assert bandwidth(values * scale) == pytest.approx(CASES[name]["sj"] * scale, rel=1e-8)


def test_distant_value_leaves_a_positive_bandwidth():
    values = np.append(np.random.default_rng(0).normal(size=200), 1e100)
    assert 0.0 < bandwidth(values) < 1.0


@pytest.mark.parametrize("sampler", [mcce.PmmSampler, mcce.NormRankSampler])
def test_large_numbers_are_smoothed(sampler):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80)})
    X["b"] = 1e45 * (X["a"] + rng.normal(size=80))
    chain = mcce.ChainModel(sampler={"b": sampler(smoothing="density")}, fixed=["a"], random_state=1).fit(X)
    drawn = chain.sample(100)["b"]
    assert drawn.between(X["b"].min(), X["b"].max()).all()
    assert not drawn.isin(X["b"]).all()
