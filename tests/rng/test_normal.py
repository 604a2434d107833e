"""The normal quantile compared with Python's AS 241, published values and the cdf."""

from statistics import NormalDist

import numpy as np
import pytest
from numba import njit
from scipy import special

from mcce.rng.normal import normal_quantile
from mcce.rng.r import RGenerator, fill_fused_quantiles
from tests.fixtures.fused.make_fused import N_NORMALS, TAILS, read_fused, unhexed


@njit
def fill(p, out):
    for i in range(p.size):
        out[i] = normal_quantile(p[i])


def quantiles(p):
    p = np.asarray(p, dtype=float)
    found = np.empty(p.size)
    fill(p, found)
    return found


@pytest.mark.slow
def test_one_value_of_each_approximation():
    """The values published by Wichura to check the routine."""
    found = quantiles([0.25, 0.001, 1e-20])
    np.testing.assert_allclose(found, [-0.6744897501960817, -3.090232306167814, -9.262340089798408], rtol=1e-15)


@pytest.mark.slow
def test_quantiles_match_python():
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(50_000), np.exp(-700 * rng.random(2000)), 1 - np.exp(-30 * rng.random(2000))])
    theirs = [NormalDist().inv_cdf(value) for value in p]
    np.testing.assert_allclose(quantiles(p), theirs, rtol=2.3e-16, atol=0)  # the last bit


def test_distribution_function_inverts_the_quantile():
    x = np.linspace(-37, 5, 5001)
    np.testing.assert_allclose(quantiles(special.ndtr(x)), x, rtol=1e-9)
    np.testing.assert_array_equal(quantiles([0.5]), [0.0])


def test_normals_of_an_r_with_fused_multiply_adds_to_the_bit():
    """Recorded from Debian's R on ARM; half of the numbers differ from x86, by at most 7 last bits."""
    kept = read_fused()
    normals, tails = unhexed(kept["normals"]), unhexed(kept["tails"])
    np.testing.assert_array_equal(RGenerator(1, fused=True).normal(N_NORMALS), normals)
    drawn = np.empty(tails.size)
    fill_fused_quantiles(np.array(TAILS), drawn)
    np.testing.assert_array_equal(drawn, tails)
    separate = RGenerator(1).normal(N_NORMALS)
    apart = np.abs(separate.view(np.int64) - normals.view(np.int64))
    assert 0.4 < np.mean(apart > 0) < 0.6
    assert apart.max() <= 7


def test_continued_generator_keeps_its_rounding():
    taken = RGenerator.from_random_seed(RGenerator(1).random_seed, fused=True)
    np.testing.assert_array_equal(taken.normal(50), RGenerator(1, fused=True).normal(50))
