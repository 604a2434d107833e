"""Distributions of levels."""

import numpy as np
import pytest
from scipy import stats

from mcce.rng import RowStreams
from mcce.samplers import Levels, Within

P = np.array([[0.2, 0.0, 0.5, 0.3], [0.0, 1.0, 0.0, 0.0], [0.7, 0.1, 0.2, 0.0]])
ROWS = np.tile([0, 1, 2, 2], 5_000)


def frequencies(values, rows, n_levels=4):
    return np.array([np.bincount(values[rows == k].astype(int), minlength=n_levels) for k in np.unique(rows)])


def test_draws_have_the_probabilities():
    values, rejected = Levels(3.0 * P, ROWS).sample(RowStreams.from_seed(1, ROWS.size))
    assert not rejected.any()
    for counts, p in zip(frequencies(values, ROWS), P):
        assert not counts[p == 0.0].any()
        assert p.max() == 1.0 or stats.chisquare(counts[p > 0], counts.sum() * p[p > 0]).pvalue > 1e-3


def test_draws_are_those_of_categorical():
    values, _ = Levels(P, ROWS).sample(RowStreams.from_seed(1, ROWS.size))
    assert (values == RowStreams.from_seed(1, ROWS.size).categorical(P[ROWS])).all()


def test_restricted_draws_are_conditional_draws():
    allowed = np.tile([[True, True, False, True], [True, False, True, True]], (ROWS.size // 2, 1))
    within = Within(levels=allowed, low=np.full(ROWS.size, 0.0), high=np.full(ROWS.size, 2.0))
    levels = Levels(P, ROWS)
    values, rejected = levels.sample(RowStreams.from_seed(2, ROWS.size), within)
    for row in range(4):  # ROWS and `allowed` repeat every four rows
        p = np.where(allowed[row] & (np.arange(4) <= 2), P[ROWS[row]], 0.0)
        assert levels.probability(within)[row] == pytest.approx(p.sum())
        assert (rejected[row::4] == (p.sum() == 0.0)).all()
        assert (np.isnan(values[row::4]) == rejected[row::4]).all()
        if (p > 0.0).sum() > 1:
            counts = np.bincount(values[row::4].astype(int), minlength=4)
            assert stats.chisquare(counts[p > 0], counts.sum() * p[p > 0] / p.sum()).pvalue > 1e-3


def test_density_distribution_function_and_inverse():
    levels = Levels(P)
    for k in range(4):
        each = np.full(3, float(k))
        assert np.exp(levels.log_density(each)) == pytest.approx(P[:, k])
        assert levels.cdf(each) == pytest.approx(P[:, : k + 1].sum(axis=1))
        assert levels.cdf(each, below=True) == pytest.approx(P[:, :k].sum(axis=1))
        possible = P[:, k] > 0.0
        assert levels.ppf(levels.cdf(each))[possible] == pytest.approx(each[possible])
    assert levels.log_density(np.full(3, np.nan)).tolist() == [-np.inf] * 3
    assert np.isnan(levels.cdf(np.full(3, np.nan))).all()
    assert levels.ppf(np.array([0.0, 0.5, 1.0])).tolist() == [0.0, 1.0, 2.0]  # never a level of probability 0
