"""Scores from draws compared with double sums and closed forms, and propriety of the scores."""

import numpy as np
import pytest
from scipy import stats

from mcce.judging.scores import score_levels, score_numbers


def distance(a, b, far):
    if np.isnan(a) or np.isnan(b):
        return 0.0 if np.isnan(a) and np.isnan(b) else far
    return abs(a - b)


def crps_by_double_sum(draws, value, far):
    m = len(draws)
    apart = sum(distance(a, b, far) for i, a in enumerate(draws) for j, b in enumerate(draws) if i != j) / (m * (m - 1))
    return np.mean([distance(a, value, far) for a in draws]) - apart / 2, apart


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_crps_equals_the_double_sum_with_ties_and_missing_values(offset):
    rng = np.random.default_rng(1)
    draws = np.round(rng.normal(size=(40, 11)), 1) + offset
    values = np.round(rng.normal(size=40), 1) + offset
    draws[rng.uniform(size=draws.shape) < 0.3] = np.nan
    draws[0], draws[1, 1:] = np.nan, np.nan
    values[::7] = np.nan
    crps, spread, _ = score_numbers(draws, values, 4.0, rng.uniform(size=40))
    wanted = np.array([crps_by_double_sum(row, value, 4.0) for row, value in zip(draws, values)])
    np.testing.assert_allclose(crps, wanted[:, 0], atol=1e-6 if offset else 1e-12)
    np.testing.assert_allclose(spread, wanted[:, 1], atol=1e-6 if offset else 1e-12)


def test_crps_of_few_normal_draws_matches_the_closed_form_on_average():
    # Gneiting and Raftery (2007), equation 21; unbiased for three draws already
    y = np.repeat([-2.0, 0.0, 0.7], 60_000)
    draws = np.random.default_rng(2).normal(size=(y.size, 3))
    crps = score_numbers(draws, y, 1.0, np.zeros(y.size))[0].reshape(3, -1)
    at = np.array([-2.0, 0.0, 0.7])
    exact = at * (2 * stats.norm.cdf(at) - 1) + 2 * stats.norm.pdf(at) - 1 / np.sqrt(np.pi)
    error = crps.std(axis=1) / np.sqrt(crps.shape[1])
    assert (np.abs(crps.mean(axis=1) - exact) < 3.5 * error).all()


def test_pit_is_uniform_for_exchangeable_draws_with_point_masses_and_missing_values():
    rng = np.random.default_rng(3)

    def draw(shape):
        kind = rng.uniform(size=shape)
        numbers = np.where(kind < 0.4, 0.0, np.round(rng.exponential(size=shape), 1))
        return np.where(kind > 0.85, np.nan, numbers)

    pit = score_numbers(draw((20_000, 9)), draw(20_000), 1.0, rng.uniform(size=20_000))[2]
    assert stats.kstest(pit, "uniform").pvalue > 0.01
    assert stats.chisquare(np.histogram(pit, 37, (0, 1))[0]).pvalue > 0.01


def test_pit_counts_missing_below_every_number():
    draws = np.array([[np.nan, 1.0, 2.0]] * 3)
    pit = score_numbers(draws, np.array([np.nan, 1.0, 3.0]), 1.0, np.full(3, 0.5))[2]
    np.testing.assert_allclose(pit, [(0 + 0.5 * 2) / 4, (1 + 0.5 * 2) / 4, (3 + 0.5) / 4])


def test_crps_with_missing_values_is_minimal_at_the_truth():
    rng = np.random.default_rng(4)

    def draw(shape, missing, shift):
        return np.where(rng.uniform(size=shape) < missing, np.nan, rng.uniform(size=shape) + shift)

    def mean_score(missing, shift):
        draws, values = draw((20_000, 10), missing, shift), draw(20_000, 0.3, 0.0)
        return score_numbers(draws, values, 1.0, np.zeros(20_000))[0].mean()

    best = mean_score(0.3, 0.0)
    assert all(mean_score(*wrong) > best + 0.005 for wrong in [(0.0, 0.0), (0.5, 0.0), (0.1, 0.0), (0.3, 0.3)])


def test_brier_score_is_unbiased_for_few_draws():
    p, q, n = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6]), 60_000
    rng = np.random.default_rng(5)
    counts, observed = rng.multinomial(3, p, size=n), rng.choice(3, size=n, p=q)
    brier, spread = score_levels(counts, observed)
    exact = ((p - np.eye(3)) ** 2).sum(axis=1) @ q
    assert abs(brier.mean() - exact) < 3.5 * brier.std() / np.sqrt(n)
    assert abs(spread.mean() - (1 - p @ p)) < 3.5 * spread.std() / np.sqrt(n)


def test_brier_score_of_a_row_matches_hand_calculation():
    brier, spread = score_levels(np.array([[3, 1, 0]]), np.array([1]))
    shares = np.array([0.75, 0.25, 0.0])
    assert brier[0] == pytest.approx(((shares - [0, 1, 0]) ** 2).sum() - (shares * (1 - shares)).sum() / 3)
    assert spread[0] == pytest.approx(3 / 6)  # 3 of 6 pairs of draws differ
