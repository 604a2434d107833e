"""The conditional of the target's latents, compared with normal theory, quadrature and rejection."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from mcce.rng import RowStreams
from mcce.samplers.copula.conditional import LatentConditional, lattice, main_axes, times
from mcce.samplers.copula.margins import read_margin
from tests.samplers.copula.simulated import LEVEL, encode

R = np.array([[1.0, 0.5, 0.6], [0.5, 1.0, -0.2], [0.6, -0.2, 1.0]])
NUMBERS = np.arange(2000.0)


@pytest.fixture(scope="module")
def margins():
    """A number, three ordered levels, and a number."""
    grade = pd.Categorical.from_codes(np.repeat([0, 1, 2], [600, 1000, 400]), list("abc"), ordered=True)
    table = encode(pd.DataFrame({"x": NUMBERS, "grade": grade, "y": NUMBERS}))
    return [read_margin(table.column(j)) for j in range(3)]


@pytest.fixture(scope="module")
def latents():
    return np.random.default_rng(0).standard_normal((3_000_000, 3)) @ np.linalg.cholesky(R).T


def rows_like(latents, z, level):
    """Return the third latent where the first is near z and the second in the cell of the level."""
    cuts = stats.norm.ppf([0.0, 0.3, 0.8, 1.0])
    near = np.abs(latents[:, 0] - z) < 0.02
    return latents[near & (latents[:, 1] > cuts[level]) & (latents[:, 1] < cuts[level + 1]), 2]


@pytest.mark.slow
def test_conditional_given_a_number_and_a_level(margins, latents):
    conditional = LatentConditional(margins[:2], margins[2], R, particles=8)
    given = np.array([[1500.0, 0.0]])
    z = stats.norm.ppf(1500.5 / 2000)
    like = rows_like(latents, z, 0)
    n = 5000
    rng = RowStreams.from_seed(1, n)
    drawn = conditional.draw_target(conditional.draw_given(np.repeat(given, n, axis=0), 6, rng), rng)[:, 0]
    assert stats.ks_2samp(drawn, like).pvalue > LEVEL
    error = 4 / np.sqrt(like.size)
    found = conditional.interval_probability(given, np.array([-0.5]), np.array([0.4]), 500)[0]
    assert found == pytest.approx(((like > -0.5) & (like < 0.4)).mean(), abs=error)
    ends = np.linspace(-6, 6, 241)
    density = conditional.point_density(np.repeat(given, 241, axis=0), ends, 500) * stats.norm.pdf(ends)
    assert integrate.trapezoid(density, ends) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.slow
def test_restricted_number_also_moves_the_latents_of_the_givens(margins, latents):
    conditional = LatentConditional(margins[:2], margins[2], R, particles=8)
    n = 5000
    given, bounds = np.tile([700.0, 1.0], (n, 1)), (np.full(n, 0.8), np.full(n, 2.0))
    drawn = conditional.draw_number_within(given, *bounds, 20, RowStreams.from_seed(2, n))
    mass = conditional.mass_within(given, *bounds, RowStreams.from_seed(2, n))
    like = rows_like(latents, stats.norm.ppf(700.5 / 2000), 1)
    inside = (like > 0.8) & (like < 2.0)
    assert stats.ks_2samp(drawn, like[inside]).pvalue > LEVEL
    assert abs(mass.mean() - inside.mean()) < 4 * np.sqrt(inside.var() / inside.size)


def test_levels_given_numbers_have_exact_probabilities(margins):
    conditional = LatentConditional([margins[0], margins[2]], margins[1], R[np.ix_([0, 2, 1], [0, 2, 1])], particles=8)
    given = np.array([[100.0, 1900.0], [1000.0, 1000.0]])
    z = stats.norm.ppf((given + 0.5) / 2000)
    slopes = np.linalg.solve(R[np.ix_([0, 2], [0, 2])], R[[0, 2], 1])
    spread = np.sqrt(1 - slopes @ R[[0, 2], 1])
    cuts = stats.norm.ppf([0.0, 0.3, 0.8, 1.0])
    exact = np.diff(stats.norm.cdf((cuts - (z @ slopes)[:, None]) / spread), axis=1)
    np.testing.assert_allclose(conditional.level_probabilities(given, 100), exact, atol=1e-12)
    n = 6000
    allowed = np.tile([True, False, True], (n, 1))
    chosen, mass = conditional.draw_level_within(np.repeat(given[:1], n, axis=0), allowed, RowStreams.from_seed(3, n))
    expected = exact[0, [0, 2]] / exact[0, [0, 2]].sum() * n
    assert stats.chisquare(np.bincount(chosen, minlength=3)[[0, 2]], expected).pvalue > LEVEL
    assert not (chosen == 1).any()
    assert mass.mean() == pytest.approx(exact[0, [0, 2]].sum(), abs=1e-3)


def test_matrix_products_do_not_depend_on_other_rows():
    rng = np.random.default_rng(0)
    rows, matrix = rng.normal(size=(500, 7)), rng.normal(size=(7, 3))
    np.testing.assert_allclose(times(rows, matrix), rows @ matrix, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(times(rows[[5, 200]], matrix), times(rows, matrix)[[5, 200]])


def test_lattice_points_are_evenly_spread():
    points = lattice(4000, 3)
    assert points.shape == (4000, 3)
    for j in range(3):
        assert stats.kstest(points[:, j], "uniform").statistic < 2e-3
    corner = (points < 0.5).all(axis=1).mean()
    assert corner == pytest.approx(0.125, abs=0.003)


def test_main_axes_follow_correlated_variables():
    precision = np.linalg.inv(np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    axes = main_axes(precision, np.ones(3, dtype=bool))
    np.testing.assert_allclose(np.abs(axes), [[np.sqrt(0.5), np.sqrt(0.5), 0.0]], atol=1e-9)
    assert main_axes(precision, np.array([True, False, True])).shape == (0, 3)
    assert main_axes(precision, np.array([True, False, False])).shape == (0, 3)
