"""Latent variables given an observed value, compared with counts and integrals."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.samplers.copula.latent import fit_latent
from mcce.samplers.copula.margins import (
    Margin,
    Utilities,
    by_frequency,
    choice_probabilities,
    kernel_margin,
    read_margin,
    winning_noise,
)
from tests.samplers.copula.simulated import LEVEL, encode


def margin_of(values, kind=None):
    """Return the margin of one column."""
    return read_margin(encode(pd.DataFrame({"x": values}), **({"x": kind} if kind else {})).column(0))


def test_unique_value_is_a_point_and_level_is_an_interval():
    numbers = margin_of(np.arange(1000.0))
    low, high = numbers.bounds(np.array([0.0, 499.0, 999.0]))
    np.testing.assert_array_equal(low, high)
    np.testing.assert_allclose(low, stats.norm.ppf([0.0005, 0.4995, 0.9995]))  # the middle of its share
    levels = margin_of(pd.Categorical(list("aabbbbcccc"), ordered=True))
    low, high = levels.bounds(np.array([0.0, 1.0, 2.0]))
    np.testing.assert_allclose(low, stats.norm.ppf([0.0, 0.2, 0.6]))
    np.testing.assert_allclose(high, stats.norm.ppf([0.2, 0.6, 1.0]))
    np.testing.assert_array_equal(levels.cuts, [*low, np.inf])


def test_frequent_number_is_an_interval():
    """Of 1000 rows, ten share 0 and nine share 1: only the ten reach one per cent, a point mass for every sampler."""
    margin = margin_of(np.concatenate([np.zeros(10), np.ones(9), np.arange(2.0, 983.0)]))
    assert margin.atoms[:3].tolist() == [True, False, False]
    low, high = margin.bounds(np.array([0.0, 1.0]))
    assert low[0] == -np.inf
    assert high[0] == pytest.approx(stats.norm.ppf(0.010))
    assert low[1] == high[1] == pytest.approx(stats.norm.ppf(0.0145))


def test_unseen_values():
    margin = margin_of(np.arange(10.0, 20.0))
    low, high = margin.bounds(np.array([9.0, 12.5, 99.0]))
    np.testing.assert_array_equal(low, high)
    np.testing.assert_allclose(low, stats.norm.ppf([0.05, 0.3, 0.95]))  # at most half a row beyond
    assert margin.position(np.array([9.0, 12.0, 12.5])).tolist() == [-1, 2, -1]
    two = margin_of(pd.Categorical(["no"] * 7 + ["yes"] * 3, categories=["maybe", "no", "yes"]))
    assert isinstance(two, Margin)
    low, high = two.bounds(np.array([0.0]))
    assert (low[0], high[0]) == (-np.inf, np.inf)


def test_latent_numbers_map_back_to_their_values():
    rng = np.random.default_rng(0)
    values = np.round(rng.gamma(2.0, 1.0, 3000), 1)
    margin = margin_of(values)
    low, high = margin.bounds(margin.values)
    middle = stats.norm.ppf((stats.norm.cdf(low) + stats.norm.cdf(high)) / 2)
    np.testing.assert_array_equal(margin.values_of(middle[:, None]), margin.values)
    drawn = margin.values_of(rng.standard_normal((200_000, 1)))
    seen, counts = np.unique(values, return_counts=True)
    found = np.array([(drawn == value).sum() for value in seen])
    enough = counts >= 10
    expected = np.append(counts[enough], counts[~enough].sum()) * 200_000 / values.size
    assert stats.chisquare(np.append(found[enough], found[~enough].sum()), expected).pvalue > LEVEL


def test_levels_are_numbered_by_frequency_for_any_codes():
    values, counts = by_frequency(np.array([3.0, 1.0, 1.0, 2.0, 3.0, 0.0]))
    assert values.tolist() == [3.0, 1.0, 2.0, 0.0]  # ties by their first row
    assert counts.tolist() == [2, 2, 1, 1]


def test_utilities_reproduce_the_shares():
    frame = pd.DataFrame({"a": np.repeat(list("abcde"), [1, 5, 20, 300, 674])})
    margin = fit_latent(encode(frame)).margins[0]
    assert isinstance(margin, Utilities)
    np.testing.assert_allclose(choice_probabilities(margin.offsets[None], 1.0)[0], margin.shares, atol=1e-9)
    drawn = (np.random.default_rng(0).normal(size=(200_000, 5)) + margin.offsets).argmax(axis=1)
    assert stats.chisquare(np.bincount(drawn, minlength=5), 200_000 * margin.shares).pvalue > LEVEL


def test_jacobian_is_the_derivative_of_the_shares():
    margin = margin_of(np.repeat(list("abcd"), [10, 20, 30, 40]))
    for k in range(4):
        step = np.zeros(4)
        step[k] = 1e-4
        above, below = (choice_probabilities((margin.offsets + sign * step)[None], 1.0)[0] for sign in (1, -1))
        np.testing.assert_allclose(margin.jacobian[:, k], (above - below) / 2e-4, atol=1e-6)
    np.testing.assert_allclose(margin.jacobian.sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.slow
def test_noise_given_the_winner_matches_rows_where_it_wins():
    margin = margin_of(np.repeat(list("abc"), [10, 30, 60]))
    assert isinstance(margin, Utilities)
    rng = np.random.default_rng(0)
    noise = winning_noise(margin, rng.random((4000, 3)))
    assert ((noise + margin.offsets).argmax(axis=2) == np.arange(3)[:, None]).all()
    free = rng.standard_normal((400_000, 3))
    winner = (free + margin.offsets).argmax(axis=1)
    for k in range(3):
        for j in range(3):
            assert stats.ks_2samp(noise[k, :, j], free[winner == k, j]).pvalue > LEVEL


def test_kernel_margin_is_close_to_the_true_distribution():
    x = np.random.default_rng(0).normal(50.0, 5.0, 4000)
    knots, below = kernel_margin(margin_of(x))
    assert (np.diff(knots) > 0).all()
    assert (np.diff(below) >= 0).all()
    assert (below[0], below[-1]) == (0.0, 1.0)
    assert np.abs(below - stats.norm.cdf(knots, 50.0, 5.0)).max() < 0.02
    assert kernel_margin(margin_of(pd.Categorical(list("ab") * 5, ordered=True)))[0].size == 0
