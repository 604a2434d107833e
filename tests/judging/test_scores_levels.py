"""Levels, and numbers with point masses, counted by hand."""

import numpy as np

from mcce.judging.scores import LevelCounts, count_levels, place_of, point_masses


def test_values_are_numbered_by_level_then_missing_then_others():
    levels = np.array([0.0, 2.5, np.nan])
    np.testing.assert_array_equal(place_of(np.array([2.5, 0.0, 1.0, 7.0, -1.0, np.nan]), levels), [1, 0, 3, 3, 3, 2])
    np.testing.assert_array_equal(place_of(np.array([1.0, np.nan]), np.array([np.nan])), [1, 0])


def test_counts_match_the_rows():
    rng = np.random.default_rng(1)
    draws = rng.choice([0.0, 1.0, 2.0, np.nan, 5.5], size=(30, 17))
    counts = count_levels(draws, np.array([0.0, 2.0, np.nan]), True)
    wanted = [[(r == 0).sum(), (r == 2).sum(), np.isnan(r).sum(), ((r == 1) | (r == 5.5)).sum()] for r in draws]
    np.testing.assert_array_equal(counts, wanted)


def test_point_masses_have_5_percent_of_draws_or_10_percent_of_values():
    other = np.linspace(10, 20, 85)
    drawn = np.concatenate([np.zeros(5), np.ones(4), other, other[:6]])
    values = np.concatenate([np.full(9, 2.0), np.full(10, 3.0), other[:81]])
    np.testing.assert_array_equal(point_masses(drawn, values), [0.0, 3.0, np.nan])


def test_probabilities_are_shares_of_the_draws():
    counted = LevelCounts(np.array([0.0, np.nan]), False, np.array([[3, 1], [0, 4]]), np.array([0, 1]))
    np.testing.assert_array_equal(counted.counts / counted.counts.sum(axis=1, keepdims=True), [[0.75, 0.25], [0, 1]])
    np.testing.assert_array_equal(counted.seen, [[True, False], [False, True]])


def test_joined_counts_are_totals():
    one = LevelCounts(np.array([0.0, 2.0, np.nan]), True, np.array([[1, 2, 3, 4]]), np.array([1]))
    two = LevelCounts(np.array([2.0, 5.0, np.nan]), True, np.array([[5, 1, 0, 4]]), np.array([3]))
    both = LevelCounts.concatenate([one, two])
    np.testing.assert_array_equal(both.levels, [2.0, np.nan])
    np.testing.assert_array_equal(both.counts, [[2, 3, 5], [5, 0, 5]])
    np.testing.assert_array_equal(both.observed, [0, 2])
    np.testing.assert_array_equal(both.take(np.array([1])).counts, [[5, 0, 5]])


def test_joined_levels_are_unchanged():
    part = LevelCounts(np.array([0.0, 1.0, np.nan]), False, np.array([[1, 2, 3]]), np.array([2]))
    both = LevelCounts.concatenate([part, part])
    np.testing.assert_array_equal(both.counts, [[1, 2, 3]] * 2)
    np.testing.assert_array_equal(both.observed, [2, 2])
