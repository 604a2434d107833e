"""Hurdles: zeros and missing values over other distributions."""

import numpy as np
import pytest
from scipy import stats

from mcce.exceptions import InputError
from mcce.rng import RowStreams
from mcce.samplers import Continuous, Donors, Hurdle, Levels, Margin, Within
from mcce.samplers.distributions import Sampled
from tests.samplers.test_margin import column_of

N = 20_000


def zeros_and_gamma(p=0.4):
    return Hurdle(np.full(N, p), 0.0, Continuous("gamma", (np.full(N, 2.0), np.full(N, 3.0))))


def test_zeros_and_a_gamma():
    hurdle, law = zeros_and_gamma(), stats.gamma(2.0, scale=3.0)
    drawn, rejected = hurdle.sample(RowStreams.from_seed(1, N))
    assert not rejected.any()
    assert np.mean(drawn == 0.0) == pytest.approx(0.4, abs=0.012)
    assert stats.kstest(drawn[drawn > 0.0], law.cdf).pvalue > 1e-3
    y = np.array([-1.0, 0.0, 2.0, 9.0])
    four = hurdle.take(np.arange(4))
    assert four.cdf(y) == pytest.approx([0.0, 0.4, 0.4 + 0.6 * law.cdf(2.0), 0.4 + 0.6 * law.cdf(9.0)])
    assert four.cdf(y, below=True)[1] == 0.0
    assert np.exp(four.log_density(y)) == pytest.approx([0.0, 0.4, 0.6 * law.pdf(2.0), 0.6 * law.pdf(9.0)])
    assert four.ppf(np.array([0.1, 0.4, 0.41, 0.9])) == pytest.approx(
        [0.0, 0.0, law.ppf(0.01 / 0.6), law.ppf(0.5 / 0.6)]
    )
    assert np.isnan(four.cdf(np.full(4, np.nan))).all()


def test_restricted_draws_weigh_both_parts():
    hurdle, law = zeros_and_gamma(), stats.gamma(2.0, scale=3.0)
    within = Within(high=np.full(N, 3.0), low=np.where(np.arange(N) % 2, 0.0, 1.0))
    drawn, rejected = hurdle.sample(RowStreams.from_seed(1, N), within)
    assert not rejected.any()
    total = 0.4 + 0.6 * law.cdf(3.0)
    assert hurdle.probability(within)[1] == pytest.approx(total)
    assert np.mean(drawn[1::2] == 0.0) == pytest.approx(0.4 / total, abs=0.02)
    assert ((drawn[::2] >= 1.0) & (drawn <= 3.0)[::2]).all()
    assert hurdle.sample(RowStreams.from_seed(1, N), Within(high=np.full(N, -1.0)))[1].all()


def test_a_value_that_the_rest_has_too():
    poisson = Continuous("poisson", (np.full(N, 1.5),))
    inflated = Hurdle(np.full(N, 0.25), 0.0, poisson)
    p = 0.75 * stats.poisson(1.5).pmf(np.arange(12)) + np.where(np.arange(12) == 0, 0.25, 0.0)
    rows = inflated.take(np.arange(12))
    counts = np.arange(12.0)
    assert np.exp(rows.log_density(counts)) == pytest.approx(p)
    assert rows.cdf(counts) == pytest.approx(np.cumsum(p))
    assert rows.ppf(rows.cdf(counts)) == pytest.approx(counts)
    assert rows.ppf(rows.cdf(counts, below=True) + 1e-9) == pytest.approx(counts)


def test_missing_values_are_a_hurdle_of_nan():
    levels = Levels(np.array([[0.5, 0.5]]), np.zeros(N, dtype=int))
    hurdle = Hurdle(np.full(N, 0.3), np.nan, levels)
    drawn, _ = hurdle.sample(RowStreams.from_seed(1, N))
    assert np.isnan(drawn).mean() == pytest.approx(0.3, abs=0.012)
    density = hurdle.take([0, 1]).log_density(np.array([np.nan, 1.0]))
    assert np.exp(density) == pytest.approx([0.3, 0.35])
    assert hurdle.cdf(np.zeros(N))[0] == 0.5  # of the known values
    within = Within(levels=np.tile([True, False], (N, 1)), missing=np.arange(N) % 2 == 0)
    drawn, rejected = hurdle.sample(RowStreams.from_seed(1, N), within)
    assert not rejected.any()
    assert np.isnan(drawn[::2]).mean() == pytest.approx(0.3 / 0.65, abs=0.02)
    assert (drawn[1::2] == 0.0).all()
    always = Hurdle(np.ones(2), np.nan, levels.take([0, 1]))
    assert np.isnan(always.ppf(np.full(2, 0.5))).all()
    assert np.isnan(always.cdf(np.zeros(2))).all()


def test_hurdles_nest():
    nested = Hurdle(np.full(N, 0.2), np.nan, zeros_and_gamma())
    drawn, _ = nested.sample(RowStreams.from_seed(1, N))
    assert np.isnan(drawn).mean() == pytest.approx(0.2, abs=0.012)
    assert np.mean(drawn == 0.0) == pytest.approx(0.32, abs=0.012)
    assert np.exp(nested.log_density(np.zeros(N)))[0] == pytest.approx(0.32)


def test_the_rest_has_the_base_measure_of_the_column():
    """A value that is frequent among the positive numbers only has no point mass in the column."""
    rng = np.random.default_rng(1)
    values = np.where(rng.random(6_000) < 0.95, 0.0, rng.integers(1, 4_000, 6_000).astype(float))
    values[:5] = 777.0
    column, part = (Margin.fit(v, column_of(values).feature) for v in (values, values[values > 0.0]))
    assert 777.0 in part.atoms
    assert 777.0 not in column.atoms
    one = (np.array([200.0]), np.array([300.0]))
    rest = Continuous("normal", one, margin=part)
    assert rest.log_density(np.array([777.0]))[0] == pytest.approx(np.log(stats.norm(200, 300).pdf(777.0)), abs=0.01)
    hurdle = Hurdle(np.array([0.9]), 0.0, rest, margin=column)
    assert hurdle.rest.margin.atoms.tolist() == [0.0]
    donors = Donors(np.sort(values[values > 0.0]), np.array([0]), np.array([(values > 0.0).sum()]), margin=part)
    kernel = Hurdle(np.array([0.9]), 0.0, donors, margin=column).log_density(np.array([777.0]))[0]
    assert kernel < donors.log_density(np.array([777.0]))[0] - np.log(10.0) - 0.5  # a density, not a probability
    nested = Hurdle(np.array([0.9]), 0.0, Hurdle(np.array([0.2]), 5.0, rest, margin=part), margin=column)
    assert nested.rest.rest.margin.atoms.tolist() == [0.0]


def test_over_a_sampler_that_only_draws():
    feature = column_of(np.arange(5)).feature
    rest = Sampled(lambda rows, rng: rng.integer(5).astype(float), np.arange(N), feature, "Mine")
    hurdle = Hurdle(np.full(N, 0.5), np.nan, rest)
    assert not hurdle.has_density
    within = Within(low=np.full(N, 3.0), missing=np.arange(N) % 2 == 0)
    drawn, rejected = hurdle.sample(RowStreams.from_seed(1, N), within)
    assert not rejected.any()
    assert np.isnan(drawn[::2]).mean() == pytest.approx(0.5 / 0.7, abs=0.02)
    assert np.mean(drawn[1::2] == 3.0) == pytest.approx(0.5, abs=0.02)
    with pytest.raises(InputError, match="Mine has no density, because it implements sample"):
        hurdle.log_density(np.zeros(N))
