"""The normal quantile against Python's own AS 241, published values and the distribution function."""

from statistics import NormalDist

import numpy as np
import pytest
from numba import njit
from scipy import special

from mcce.rng.normal import normal_quantile


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
    """The values by which Wichura lets his routine be checked."""
    found = quantiles([0.25, 0.001, 1e-20])
    np.testing.assert_allclose(found, [-0.6744897501960817, -3.090232306167814, -9.262340089798408], rtol=1e-15)


def test_the_same_numbers_as_pythons():
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(50_000), np.exp(-700 * rng.random(2000)), 1 - np.exp(-30 * rng.random(2000))])
    theirs = [NormalDist().inv_cdf(value) for value in p]
    np.testing.assert_allclose(quantiles(p), theirs, rtol=2.3e-16, atol=0)  # the last bit


def test_the_distribution_function_leads_back():
    x = np.linspace(-37, 5, 5001)
    np.testing.assert_allclose(quantiles(special.ndtr(x)), x, rtol=1e-9)
    np.testing.assert_array_equal(quantiles([0.5]), [0.0])
