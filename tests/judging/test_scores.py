"""Scores against scipy, closed forms, brute force and the levels of tests under the truth."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.integrate import quad

from mcce.judging.scores import (
    LEVELS,
    UNIFORM_PART,
    crps_of_levels,
    crps_of_numbers,
    holm,
    legendre,
    log_score,
    pit,
    score_rows,
    smooth_test,
)
from mcce.rng import RowStreams
from mcce.samplers import ConditionalSampler, Continuous, Donors, Margin, distribution_of
from mcce.samplers import Levels as LevelsOfRows
from mcce.table import Schema


def column(values):
    """Return the encoded values of one column, its feature and its margin."""
    frame = pd.DataFrame({"y": values})
    table = Schema.from_data(frame).encode(frame)
    return table.matrix[:, 0], table.features[0], Margin.fit(table.matrix[:, 0], table.features[0])


RNG = np.random.default_rng(0)
VALUES, FEATURE, MARGIN = column(RNG.normal(2.0, 3.0, 400))
LOCATION, SCALE = RNG.normal(2.0, 1.0, 400), RNG.uniform(0.5, 4.0, 400)
NORMAL = Continuous("normal", (LOCATION, SCALE), MARGIN)


def test_log_score_of_numbers_is_the_density_of_scipy():
    density = stats.norm.pdf(VALUES, LOCATION, SCALE)
    expected = np.log((1 - UNIFORM_PART) * density + UNIFORM_PART / np.ptp(VALUES))
    np.testing.assert_allclose(log_score(NORMAL, VALUES, MARGIN), expected, rtol=1e-9)


def test_log_score_of_an_impossible_value_is_finite():
    values, _, margin = column(list("abab"))
    certain = LevelsOfRows(np.array([[1.0, 0.0]] * 4))
    np.testing.assert_allclose(log_score(certain, values, margin)[[0, 1]], [-0.001, np.log(0.001 / 3)], atol=1e-3)


def test_crps_of_a_normal_has_a_closed_form():
    """Gneiting and Raftery (2007), equation 21."""
    z = (VALUES - LOCATION) / SCALE
    expected = SCALE * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    found = crps_of_numbers(NORMAL, VALUES)
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.01)
    assert found.mean() == pytest.approx(expected.mean(), rel=0.01)


@pytest.mark.parametrize("y", [-2.0, 0.3, 5.0])
def test_crps_is_its_integral(y):
    law = stats.gamma(2.0)
    quantiles = np.sort(law.ppf((np.arange(2000) + 0.5) / 2000))
    found = crps_of_numbers(Donors(quantiles, np.array([0]), np.array([2000])), np.array([y]))[0]
    parts = [quad(lambda x: (law.cdf(x) - (x >= y)) ** 2, *ends, limit=200)[0] for ends in ((-5.0, y), (y, 60.0))]
    assert found == pytest.approx(sum(parts), rel=0.02)


def test_crps_of_donors_is_that_of_all_pairs():
    """E|X - y| - E|X - X'| / 2, over the empirical distribution of the donors."""
    pool = np.sort(RNG.integers(0, 30, (20, LEVELS.size)).astype(float), axis=1)  # as many donors as quantiles
    begin = np.arange(20) * LEVELS.size
    y = RNG.integers(0, 30, 20).astype(float)
    found = crps_of_numbers(Donors(pool.ravel(), begin, begin + LEVELS.size), y)
    spread = np.abs(pool[:, :, None] - pool[:, None, :]).mean(axis=(1, 2))
    np.testing.assert_allclose(found, np.abs(pool - y[:, None]).mean(axis=1) - spread / 2, rtol=1e-9)


def test_crps_and_brier_score_of_levels_are_sums_over_levels():
    probabilities = RNG.dirichlet(np.ones(4), 100)
    codes = RNG.integers(0, 4, 100)
    frame = pd.DataFrame({"u": pd.Categorical.from_codes(codes, list("abcd"))})
    frame["o"] = frame["u"].cat.as_ordered()
    unordered, ordered = Schema.from_data(frame).features
    found = LevelsOfRows(probabilities)
    is_level = np.eye(4)[codes]
    brier = ((probabilities - is_level) ** 2).sum(axis=1)
    np.testing.assert_allclose(crps_of_levels(found, codes.astype(float), unordered), brier)
    ranked = ((probabilities.cumsum(axis=1) - is_level.cumsum(axis=1)) ** 2).sum(axis=1)
    np.testing.assert_allclose(crps_of_levels(found, codes.astype(float), ordered), ranked)


def test_pits_of_counts_are_uniform():
    mean = RNG.uniform(0.2, 4.0, 1000)
    values, feature, _ = column(RNG.poisson(mean))
    quantiles = stats.poisson.ppf((np.arange(100) + 0.5) / 100, mean[:, None])
    begin = np.arange(1000) * 100
    found = pit(Donors(quantiles.ravel(), begin, begin + 100), values, RNG.random(1000))
    assert stats.kstest(found, "uniform").pvalue > 0.01
    assert feature.kind == "numeric"


class NormalDraws(ConditionalSampler):
    """The true conditional of `VALUES` given nothing, without a density."""

    handles = frozenset({"numeric"})

    def fit(self, given, target):
        self.sd_ = 3.0
        return self

    def sample(self, given, rng):
        return 2.0 + self.sd_ * rng.normal()


def test_sampler_that_only_draws_has_no_log_score():
    frame = pd.DataFrame({"x": 0.0, "y": VALUES})
    table = Schema.from_data(frame).encode(frame)
    fitted = NormalDraws().fit(table.first(1), table.column(1))
    streams = RowStreams.from_seed(1, 400)
    found = score_rows(distribution_of(fitted, table.first(1), FEATURE), VALUES, FEATURE, MARGIN, streams)
    assert found["log_score"].isna().all()
    exact = score_rows(
        Continuous("normal", (np.full(400, 2.0), np.full(400, 3.0)), MARGIN), VALUES, FEATURE, MARGIN, streams
    )
    assert found["crps"].mean() == pytest.approx(exact["crps"].mean(), rel=0.02)
    np.testing.assert_allclose(found["pit"], exact["pit"], atol=0.15)


def test_missing_values_have_a_log_score_only():
    values = VALUES.copy()
    values[:100] = np.nan
    known_shares = Donors(
        np.append(np.sort(VALUES[100:200]), [np.nan] * 25), np.zeros(400, int), np.full(400, 125), margin=MARGIN
    )
    found = score_rows(known_shares, values, FEATURE, MARGIN, RowStreams.from_seed(1, 400))
    np.testing.assert_allclose(found["log_score"][:100], np.log(0.2), atol=0.05)  # five pseudo-donors
    assert found[["crps", "pit"]].isna().all(axis=1).tolist() == [True] * 100 + [False] * 300


def test_polynomials_are_orthonormal():
    at = (np.arange(20_000) + 0.5) / 20_000
    columns = legendre(at)
    np.testing.assert_allclose(columns.T @ columns / at.size, np.eye(4), atol=1e-6)
    np.testing.assert_allclose(columns.mean(axis=0), 0.0, atol=1e-6)


@pytest.mark.parametrize("n", [20, 200])
def test_smooth_test_keeps_its_level(n):
    p = np.array([smooth_test(np.random.default_rng(seed).random(n)) for seed in range(2000)])
    for level in (0.01, 0.05, 0.2):
        assert (p <= level).mean() == pytest.approx(level, abs=3 * np.sqrt(level / 2000) + 0.01 * (n < 100))
    assert np.isnan(smooth_test(np.empty(0)))


@pytest.mark.parametrize(
    "wrong", [lambda u: u**1.3, lambda u: 0.5 + 0.8 * (u - 0.5), lambda u: u + 0.05 * np.sin(6 * u)]
)
def test_smooth_test_rejects_what_is_wrong(wrong):
    p = [smooth_test(np.clip(wrong(np.random.default_rng(seed).random(500)), 0, 1)) for seed in range(50)]
    assert np.mean(np.array(p) < 0.05) > 0.8


def test_holm_is_that_of_the_definition():
    p = np.array([0.01, np.nan, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(holm(p), [0.03, np.nan, 0.06, 0.06, 0.02])
    np.testing.assert_array_equal(holm(np.array([0.9, 0.8])), [1.0, 1.0])
    assert holm(np.empty(0)).size == 0
