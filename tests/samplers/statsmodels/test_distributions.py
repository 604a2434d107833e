"""Predictive distributions integrate to one, and restricted draws match rejection."""

import numpy as np
import pytest
from scipy import integrate, stats

from mcce.samplers.statsmodels.distributions import GeneralizedPoisson, QuantileGrid, RowDistribution, ZeroInflated

N = 4000


def rows(*values):
    return [np.full(N, value) for value in values]


KNOTS = np.array([0.0, 1.0, 1.5, 4.0, 6.0])
GRID = QuantileGrid.arrange(
    np.tile(KNOTS[::-1], (N, 1)), np.array([0.1, 0.3, 0.5, 0.7, 0.9]), np.array([1.0, 2.0]), 1e-6
)
MADE = {
    "gamma": RowDistribution(stats.gamma(*rows(2.0))),
    "normal": RowDistribution(stats.norm(*rows(1.0, 2.0))),
    "beta": RowDistribution(stats.beta(*rows(2.0, 3.0))),
    "quantiles": RowDistribution(GRID),
    "poisson": RowDistribution(stats.poisson(*rows(3.0)), is_count=True),
    "zero-inflated": RowDistribution(ZeroInflated(stats.poisson(*rows(3.0)), np.full(N, 0.3)), is_count=True),
    "generalised Poisson": RowDistribution(GeneralizedPoisson(np.full(N, 3.0), 0.4, 1), is_count=True),
}


@pytest.mark.parametrize("name", MADE)
def test_densities_integrate_to_one(name):
    made = MADE[name]

    def density(x):
        return float(np.exp(made.log_density(np.full(N, x))[0]))

    if made.is_count:
        total = sum(density(k) for k in range(200))
    else:
        points = [*GRID.knots[0]] if name == "quantiles" else None
        low, high = (0.0, 1.0) if name == "beta" else (-60.0, 80.0)
        total = integrate.quad(density, low, high, points=points, limit=200)[0]
    assert total == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", MADE)
def test_cdf_and_its_inverse_agree_with_the_density(name):
    made = MADE[name]
    values = np.unique(np.round(made.draw(np.random.default_rng(0).random(N)), 2))[:N]
    at = np.resize(values, N)
    cdf = made.distribution.cdf(at)
    np.testing.assert_allclose(cdf + made.distribution.sf(at), 1.0, atol=1e-12)
    if made.is_count:
        step = cdf - made.distribution.cdf(at - 1.0)
        np.testing.assert_allclose(step, np.exp(made.log_density(at)), atol=1e-12)
        np.testing.assert_array_equal(made.distribution.ppf(cdf - 1e-9), at)
    else:
        inside = (cdf > 1e-9) & (cdf < 1 - 1e-9)
        np.testing.assert_allclose(made.distribution.ppf(cdf)[inside], at[inside], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(made.distribution.isf(1 - cdf)[inside], at[inside], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", MADE)
def test_restricted_draws_match_rejection(name):
    """Chi-square of ten classes at level 1e-4, and the mass within 4 standard errors."""
    made = MADE[name]
    rng = np.random.default_rng(3)
    free = made.draw(rng.random(N))
    low, high = np.quantile(free, [0.2, 0.7])
    low, high = np.full(N, low), np.full(N, high)
    drawn = made.draw(rng.random(N), low, high)
    assert ((drawn >= low) & (drawn <= high)).all()
    many = np.concatenate([made.draw(rng.random(N)) for _ in range(5)])
    kept = many[(many >= low[0]) & (many <= high[0])]
    edges = np.unique(np.quantile(kept, np.linspace(0, 1, 11)))
    edges = np.append(edges, edges[-1] + 1) if made.is_count else edges
    counts = np.array([np.histogram(each, edges)[0] for each in (drawn, kept)])
    counts = counts[:, counts.sum(axis=0) > 0]
    assert counts.shape[1] == 1 or stats.chi2_contingency(counts).pvalue > 1e-4
    share = kept.size / many.size
    assert made.mass(low, high)[0] == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / many.size))


def test_far_tails_can_be_drawn():
    made = RowDistribution(stats.norm(*rows(0.0, 1.0)))
    drawn = made.draw(np.random.default_rng(0).random(N), np.full(N, 20.0), np.full(N, 30.0))
    assert ((drawn >= 20.0) & (drawn < 21.0)).all()
    assert np.isnan(made.draw(np.full(N, 0.5), np.full(N, 2.0), np.full(N, 1.0))).all()
    counts = MADE["poisson"]
    assert np.isnan(counts.draw(np.full(N, 0.5), np.full(N, 1.2), np.full(N, 1.8))).all()
    assert (counts.draw(np.full(N, 0.5), np.full(N, 2.0), np.full(N, 2.0)) == 2.0).all()


def test_crossing_quantiles_are_sorted():
    crossed = QuantileGrid.arrange(np.array([[2.0, 1.0, 1.0]]), np.array([0.2, 0.5, 0.8]), np.ones(2), 0.1)
    np.testing.assert_allclose(crossed.knots, [[1.0, 1.1, 2.0]])
    levels = np.linspace(0.01, 0.99, 99)
    drawn = [float(crossed.ppf(np.array([level]))[0]) for level in levels]
    assert (np.diff(drawn) > 0).all()
