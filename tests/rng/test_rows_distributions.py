"""The random streams under statistical tests.

Every test runs at a fixed seed and rejects at level ALPHA; there are about fifty of them.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from mcce.rng import RowStreams, hash_rows
from tests.rng.problem import MASK, N, streams

ALPHA = 1e-4


def p_uniform_grid(first, second, cells=32):
    """Chi-square p-value of uniformity on a grid over the unit square: uniform and independent."""
    counts, _, _ = np.histogram2d(first, second, bins=cells, range=[[0, 1], [0, 1]])
    return stats.chisquare(counts.ravel()).pvalue


def assert_independent_uniforms(first, second):
    assert stats.pearsonr(first, second).pvalue > ALPHA
    assert p_uniform_grid(first, second) > ALPHA


# ------------------------------------------------------------------ distributions


@pytest.mark.parametrize("seed", [1, 2, -5, 2**70])
def test_uniform_is_uniform(seed):
    drawn = streams(seed=seed).uniform()
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert stats.kstest(drawn, "uniform").pvalue > ALPHA
    assert stats.chisquare(np.bincount((drawn * 1000).astype(int), minlength=1000)).pvalue > ALPHA


def test_normal_is_normal():
    drawn = streams(seed=3).normal()
    assert np.isfinite(drawn).all()
    assert stats.kstest(drawn, "norm").pvalue > ALPHA
    assert abs(drawn.mean()) < 4 / np.sqrt(N)
    assert abs(drawn.var() - 1) < 4 * np.sqrt(2 / N)


@pytest.mark.parametrize("high", [2, 3, 10, 97, 1000])
def test_integers_are_equally_frequent(high):
    drawn = streams(seed=4).integer(high)
    assert drawn.dtype == np.int64
    counts = np.bincount(drawn)
    assert counts.size == high
    assert stats.chisquare(counts).pvalue > ALPHA


def test_integers_respect_the_bound_of_each_row():
    highs = np.resize([1, 2, 5, 11], N)
    drawn = streams(seed=5).integer(highs)
    for high in (1, 2, 5, 11):
        counts = np.bincount(drawn[highs == high])
        assert counts.size == high
        if high > 1:
            assert stats.chisquare(counts).pvalue > ALPHA


@pytest.mark.parametrize("weights", [[1.0], [0.2, 0.8], [3.0, 1.0, 0.5, 5.5], [0.0, 0.3, 0.0, 0.7, 0.0]])
@pytest.mark.parametrize("per_row", [False, True])
def test_categories_have_their_probabilities(weights, per_row):
    weights = np.array(weights)
    given = np.tile(weights, (N, 1)) if per_row else weights
    counts = np.bincount(streams(seed=6).categorical(given), minlength=weights.size)
    possible = weights > 0
    assert counts[~possible].sum() == 0
    if possible.sum() > 1:
        expected = N * weights[possible] / weights.sum()
        assert stats.chisquare(counts[possible], expected).pvalue > ALPHA


def test_shared_and_repeated_probabilities_give_the_same_categories():
    weights = np.random.default_rng(1).random(9)
    shared = streams(1000).categorical(weights)
    assert np.array_equal(shared, streams(1000).categorical(np.tile(weights, (1000, 1))))


def test_each_row_has_its_own_probabilities():
    certain = np.eye(6)[np.resize([3, 0, 5, 2], 400)]
    assert np.array_equal(streams(400).categorical(certain), np.resize([3, 0, 5, 2], 400))


@pytest.mark.slow
def test_million_words_have_no_duplicate_and_balanced_bits():
    n = 1_000_000
    words = streams(n, seed=7).words()
    assert np.unique(words).size == n  # a repeat has probability 3e-8
    for bit in range(64):
        ones = int((words >> np.uint64(bit) & np.uint64(1)).sum())
        assert stats.binomtest(ones, n).pvalue > ALPHA / 64


def test_low_bits_of_words_are_uniform():
    words = streams(seed=8).words()
    for shift in (0, 8, 24, 40, 56):
        low = (words >> np.uint64(shift) & np.uint64(0xFF)).astype(np.int64)
        assert stats.chisquare(np.bincount(low, minlength=256)).pvalue > ALPHA


@pytest.mark.parametrize("word", [0, MASK])
def test_extreme_words_stay_inside_every_range(word):
    class Extreme(RowStreams):
        def words(self):
            return np.array([word], dtype=np.uint64)

    extreme = Extreme(1, np.zeros(1, dtype=np.uint64), np.zeros(1, dtype=np.uint64))
    assert 0 <= extreme.uniform()[0] < 1
    assert 8 < abs(extreme.normal()[0]) < 9
    assert extreme.integer(7)[0] == (6 if word else 0)
    for weights in ([0.0, 0.1, 0.2, 0.7, 0.0], np.array([[0.0, 0.1, 0.2, 0.7, 0.0]])):
        assert extreme.categorical(np.array(weights))[0] == (3 if word else 1)


# ------------------------------------------------------------------ independence


def test_consecutive_draws_of_one_row_are_independent():
    drawn = streams(seed=9).uniform()
    for lag in (1, 2, 7):
        first, second = drawn[:-lag], drawn[lag:]
        assert stats.pearsonr(first, second).pvalue > ALPHA
        keep = slice(None, None, 2) if lag == 1 else slice(None)
        assert p_uniform_grid(first[keep], second[keep]) > ALPHA


def test_neighbouring_rows_are_independent():
    rows = np.arange(N, dtype=np.uint64)
    drawn = RowStreams(11, rows, np.zeros(N, dtype=np.uint64)).uniform()
    assert stats.kstest(drawn, "uniform").pvalue > ALPHA
    assert_independent_uniforms(drawn[::2], drawn[1::2])


def test_hashed_rows_give_independent_draws():
    identity = np.column_stack([np.repeat(np.arange(500.0), 400), np.tile(np.arange(400.0), 500)])
    drawn = RowStreams(12, hash_rows(identity), np.zeros(N, dtype=np.uint64)).uniform()
    assert stats.kstest(drawn, "uniform").pvalue > ALPHA
    assert_independent_uniforms(drawn[::2], drawn[1::2])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (streams(seed=1), streams(seed=2)),
        (RowStreams(0, *np.zeros((1, N), np.uint64), np.arange(N, dtype=np.uint64)), streams(seed=0)),
        (streams().child("age"), streams().child("agf")),
        (streams().child("a"), streams().child("a", "a")),
        (streams().child(1), streams().child(2)),
        (streams().child(1), streams().child("1")),
        (streams(), streams().child("a")),
        (streams(), streams().child()),
    ],
    ids=["seeds", "keys", "features", "depths", "numbers", "types", "parent", "unnamed child"],
)
def test_neighbouring_keys_are_independent(one, other):
    assert_independent_uniforms(one.uniform(), other.uniform())


@pytest.mark.slow
def test_calls_on_the_same_streams_are_independent():
    source = streams(seed=10)
    calls = [source.uniform() for _ in range(4)]
    for first, second in itertools.combinations(calls, 2):
        assert_independent_uniforms(first, second)
    cells, _ = np.histogramdd(np.column_stack(calls), bins=6, range=[(0, 1)] * 4)
    assert stats.chisquare(cells.ravel()).pvalue > ALPHA


@pytest.mark.slow
def test_one_row_over_many_calls_is_uniform_and_uncorrelated():
    """A row is drawn from once per feature: the sequence over keys must be random as well."""
    source = streams(3, seed=11)
    drawn = np.array([source.uniform() for _ in range(20_000)])
    for j in range(3):
        assert stats.kstest(drawn[:, j], "uniform").pvalue > ALPHA
        assert stats.pearsonr(drawn[:-1, j], drawn[1:, j]).pvalue > ALPHA
    assert_independent_uniforms(drawn[:, 0], drawn[:, 1])
