"""Latents drawn within bounds, compared with rejection from the unrestricted distribution."""

import numpy as np
import pytest
from scipy import stats

from mcce.rng import RowStreams
from mcce.samplers.copula.kernels import start_rows, sweep_rows, weigh_rows
from tests.marks import nightly
from tests.samplers.copula.simulated import LEVEL

R = np.array([[1.0, 0.8, -0.3], [0.8, 1.0, 0.2], [-0.3, 0.2, 1.0]])
N = 4000


def regressions(correlation):
    """Return slopes and standard deviations of each variable given those before it."""
    inverse = np.linalg.inv(np.linalg.cholesky(correlation))
    sd = 1.0 / np.diag(inverse)
    return -np.tril(inverse, -1) * sd[:, None], sd


def drawn(low, high, group_end, offset, allowed, sweeps, particles, axes=None):
    """Draw N rows with the same bounds: a first state, then sweeps."""
    d = len(low)
    rng = RowStreams.from_seed(3, N)
    z, lows, highs = np.empty((N, d)), np.tile(low, (N, 1)), np.tile(high, (N, 1))
    allowed = np.tile(np.asarray(allowed, dtype=bool), (N, 1))
    ends = np.asarray(group_end, dtype=np.int64)
    starts = np.where(ends > 0, 0, np.arange(d)).astype(np.int64)
    correlation = R if (ends == 0).all() else np.eye(d)
    groups = starts, ends, np.asarray(offset, dtype=float)
    start_rows(
        z, lows, highs, allowed, *regressions(correlation), *groups, particles, rng.next_key(), rng.draws, rng.rows
    )
    precision = np.linalg.inv(correlation)
    axes = np.empty((0, d)) if axes is None else axes
    key = rng.next_key()
    sweep_rows(z, lows, highs, allowed, precision, axes, axes @ precision, *groups, sweeps, key, rng.draws, rng.rows)
    return z


def free_rows(correlation, n=1_000_000):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, len(correlation))) @ np.linalg.cholesky(correlation).T


@pytest.mark.parametrize("joint_moves", [False, *nightly(True)])
def test_bounds(joint_moves):
    low, high = np.array([0.5, -np.inf, -1.0]), np.array([np.inf, 0.3, 0.2])  # against the strong correlation
    axes = np.linalg.eigh(R)[1].T[-1:] if joint_moves else None
    z = drawn(low, high, [0, 0, 0], np.zeros(3), [True] * 3, sweeps=30, particles=8, axes=axes)
    assert ((z >= low) & (z <= high)).all()
    free = free_rows(R)
    inside = free[((free >= low) & (free <= high)).all(axis=1)]
    for j in range(3):
        assert stats.ks_2samp(z[:, j], inside[:, j]).pvalue > LEVEL
    assert stats.ks_2samp(z @ [1, -1, 0], inside @ [1, -1, 0]).pvalue > LEVEL


def test_points_stay_and_other_latents_follow_the_conditional_normal():
    low, high = np.array([1.2, -np.inf, -0.4]), np.array([1.2, np.inf, -0.4])
    z = drawn(low, high, [0, 0, 0], np.zeros(3), [True] * 3, sweeps=2, particles=1)
    np.testing.assert_array_equal(z[:, [0, 2]], np.tile([1.2, -0.4], (N, 1)))
    slopes = np.linalg.solve(R[np.ix_([0, 2], [0, 2])], R[[0, 2], 1])
    spread = np.sqrt(1 - slopes @ R[[0, 2], 1])
    assert stats.kstest(z[:, 1], stats.norm(slopes @ [1.2, -0.4], spread).cdf).pvalue > LEVEL


@pytest.mark.parametrize("allowed", [[True, False, True], *nightly([False, True, False])])
def test_largest_utility_is_among_the_allowed_levels(allowed):
    offset = np.array([0.7, -0.2, -0.5])
    unbounded = np.full(3, -np.inf), np.full(3, np.inf)
    z = drawn(*unbounded, [3, 3, 3], offset, allowed, sweeps=30, particles=8)
    assert np.isin((z + offset).argmax(axis=1), np.flatnonzero(allowed)).all()
    free = free_rows(np.eye(3), 400_000)
    inside = free[np.isin((free + offset).argmax(axis=1), np.flatnonzero(allowed))]
    for j in range(3):
        assert stats.ks_2samp(z[:, j], inside[:, j]).pvalue > LEVEL


@pytest.mark.slow
def test_weights_average_to_the_probability_of_the_bounds():
    low, high = np.array([0.5, -np.inf, -1.0]), np.array([np.inf, 0.3, 0.2])
    exact = stats.multivariate_normal(np.zeros(3), R).cdf(high, lower_limit=low)
    n = 200_000
    z, weight = np.empty((n, 3)), np.empty(n)
    rows = np.tile(low, (n, 1)), np.tile(high, (n, 1)), np.ones((n, 3), dtype=bool)
    no_groups = np.arange(3), np.zeros(3, dtype=np.int64), np.zeros(3)
    shift = np.random.default_rng(0).random((n, 3))
    weigh_rows(z, weight, *rows, *regressions(R), *no_groups, np.zeros(3), shift)
    found = np.exp(weight)
    assert abs(found.mean() - exact) < 4 * found.std() / np.sqrt(n) + 1e-5
