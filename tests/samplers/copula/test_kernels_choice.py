"""Integrals over normal utilities, compared with quadrature and the normal cdf."""

import numpy as np
import pytest
from scipy import integrate, stats

from mcce.samplers.copula.kernels import CDF, PDF, choose_rows, mean_below
from tests.marks import nightly


def chosen(means, sd):
    means = np.atleast_2d(np.asarray(means, dtype=float))
    found = np.empty(means.shape)
    choose_rows(means, sd, CDF, found)
    return found


@pytest.mark.parametrize("sd", [1.0, 2.5, *nightly(0.3)])
@pytest.mark.parametrize(
    "means", [[0.0, 0.0, 0.0], [0.3, -0.3], *nightly([1.0, -0.5, 0.2], [3.0, 0.0, -4.0, 2.9, 1.0])]
)
def test_largest_utility_matches_quadrature(means, sd):
    def integrand(x, k):
        others = np.delete(means, k)
        return stats.norm.pdf(x, means[k], sd) * np.prod(stats.norm.cdf((x - others) / sd))

    exact = [integrate.quad(integrand, -30, 30, args=(k,), points=means, epsabs=1e-12)[0] for k in range(len(means))]
    np.testing.assert_allclose(chosen(means, sd)[0], exact, atol=1e-8)


def test_two_utilities_give_a_normal_probability():
    gaps = np.linspace(-5, 5, 41)
    found = chosen(np.column_stack([gaps, np.zeros(41)]), 1.0)
    np.testing.assert_allclose(found[:, 0], stats.norm.cdf(gaps / np.sqrt(2)), atol=1e-8)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_utility_far_below_is_never_the_largest():
    found = chosen([[0.0, -1e6, -40.0]], 1.0)[0]
    assert found[0] == pytest.approx(1.0)
    assert (found[1:] < 1e-12).all()


def test_means_of_the_distribution_function():
    rng = np.random.default_rng(0)
    means, cuts = rng.normal(scale=3, size=(4, 500)), np.array([-9.0, -1.2, 0.0, 0.4, 12.0])
    found = np.empty((4, 5))
    mean_below(cuts, means, 0.7, CDF, PDF, found)
    exact = stats.norm.cdf((cuts - means[:, :, None]) / 0.7).mean(axis=1)
    np.testing.assert_allclose(found, exact, atol=1e-9)
