"""Latent correlations compared with brute force and with known ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from mcce.samplers.copula.latent import bivariate_normal_cdf, fit_latent, nearest_correlation, polychoric, polyserial
from tests.marks import nightly
from tests.samplers.copula.simulated import R, encode, simulate


@pytest.mark.parametrize("rho", [-0.95, -0.3, 0.0, 0.6, 0.99])
def test_bivariate_normal_cdf(rho):
    points = np.array([-np.inf, -3.0, -0.7, 0.0, 0.4, 2.5, np.inf])
    h, k = np.meshgrid(points, points)
    truth = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    exact = [0.0 if -np.inf in pair else truth.cdf(np.minimum(pair, 40.0)) for pair in zip(h.ravel(), k.ravel())]
    np.testing.assert_allclose(bivariate_normal_cdf(h, k, rho).ravel(), exact, atol=1e-7)


def test_polychoric_maximises_the_likelihood():
    counts = np.array([[20.0, 10, 3], [12, 25, 9], [1, 14, 30]])
    cuts = [stats.norm.ppf(np.concatenate([[0], np.cumsum(counts.sum(axis=axis)) / counts.sum()])) for axis in (1, 0)]

    def minus_log_likelihood(rho):
        normal = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]])
        at = np.array([[normal.cdf(np.clip([a, b], -9, 9)) for b in cuts[1]] for a in cuts[0]])
        return -(counts * np.log(np.diff(np.diff(at, axis=0), axis=1))).sum()

    brute = optimize.minimize_scalar(minus_log_likelihood, bounds=(-0.99, 0.99), method="bounded").x
    assert polychoric(counts, *cuts) == pytest.approx(brute, abs=1e-4)


def test_polyserial_maximises_the_likelihood():
    rng = np.random.default_rng(1)
    z = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], 150)
    cuts = np.array([-np.inf, -0.5, 0.8, np.inf])
    cell = np.searchsorted(cuts[1:-1], z[:, 1])

    def minus_log_likelihood(rho):
        rest = stats.norm(rho * z[:, 0], np.sqrt(1 - rho**2))
        return -np.log(rest.cdf(cuts[cell + 1]) - rest.cdf(cuts[cell])).sum()

    brute = optimize.minimize_scalar(minus_log_likelihood, bounds=(-0.99, 0.99), method="bounded").x
    assert polyserial(np.eye(3)[cell], z[:, 0], cuts) == pytest.approx(brute, abs=1e-4)


@pytest.mark.parametrize("n", [500, *nightly(5_000, 50_000)])
def test_known_latent_correlations_are_recovered(n):
    """Within 4.5 standard errors: 1.6 / sqrt(n) bounds those of scalars here, 4 / sqrt(n) those of utilities."""
    errors = []
    for seed in range(3):
        table = encode(simulate(n, 100 + seed))
        model = fit_latent(table)
        to_truth = [table.features[4].levels.get_loc(drink) for drink in ("tea", "beer", "milk")]
        place = [*range(4), *(4 + int(np.flatnonzero(model.margins[4].values == code)[0]) for code in to_truth)]
        errors.append(model.correlation[np.ix_(place, place)] - R)
    worst = np.abs(np.mean(errors, axis=0)) * np.sqrt(3 * n)
    assert worst[:4, :4].max() < 4.5 * 1.6
    assert worst[:4, 4:].max() < 4.5 * 4.0


@pytest.mark.slow
def test_two_unordered_columns():
    block = np.array([[0.5, -0.2, -0.3], [-0.3, 0.4, -0.1], [-0.2, -0.2, 0.4]])
    joint = np.block([[np.eye(3), block], [block.T, np.eye(3)]])
    z = np.random.default_rng(2).standard_normal((100_000, 6)) @ np.linalg.cholesky(joint).T
    offsets = np.array([0.4, 0.0, -0.4])
    frame = pd.DataFrame({"a": (z[:, :3] + offsets).argmax(axis=1), "b": (z[:, 3:] + offsets).argmax(axis=1)})
    model = fit_latent(encode(frame, a="categorical", b="categorical"))
    assert model.margins[0].values.tolist() == [0.0, 1.0, 2.0]
    # Monte Carlo points of the estimator included
    np.testing.assert_allclose(model.correlation[:3, 3:], block, atol=0.03)
    np.testing.assert_array_equal(model.correlation[:3, :3], np.eye(3))


def test_projection():
    matrix = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    projected = nearest_correlation(matrix, np.arange(3))
    assert np.linalg.eigvalsh(projected)[0] >= 1e-4 - 1e-9
    np.testing.assert_allclose(np.diag(projected), 1.0)
    # by symmetry all three stay equal; the smallest eigenvalue reaches 0 at 1/2
    np.testing.assert_allclose(np.abs(projected[np.triu_indices(3, 1)]), 0.5, atol=1e-3)
    fine = np.array([[1.0, 0.3], [0.3, 1.0]])
    assert nearest_correlation(fine, np.arange(2)) is fine


def test_projection_keeps_utilities_uncorrelated():
    rng = np.random.default_rng(0)
    matrix = rng.uniform(-0.9, 0.9, (7, 7))
    matrix = (matrix + matrix.T) / 2
    groups = np.array([0, 1, 2, 2, 2, 3, 3])
    matrix[groups[:, None] == groups] = np.eye(7)[groups[:, None] == groups]
    projected = nearest_correlation(matrix, groups)
    assert np.linalg.eigvalsh(projected)[0] >= 1e-4 - 1e-9
    np.testing.assert_array_equal(projected[groups[:, None] == groups], np.eye(7)[groups[:, None] == groups])
