"""Families of numbers against scipy.stats: draws, restricted draws, densities, distribution functions, grids."""

import numpy as np
import pytest
from scipy import integrate, stats

from mcce.exceptions import InputError
from mcce.rng import RowStreams
from mcce.samplers import Continuous, Within
from mcce.samplers.families import LocationScale, Scipy
from tests.samplers.test_margin import margin_of, skewed_with_zeros

N = 8_000


class Components:
    """A mixture of normals, written plainly."""

    def __init__(self, weights, means, sds):
        self.parts = list(zip(weights, means, sds))

    def cdf(self, y):
        return sum(w * stats.norm(m, s).cdf(y) for w, m, s in self.parts)

    def logpdf(self, y):
        return np.log(sum(w * stats.norm(m, s).pdf(y) for w, m, s in self.parts))


FAMILIES = {
    "normal": [((1.0, 2.0), stats.norm(1.0, 2.0)), ((-3.0, 0.5), stats.norm(-3.0, 0.5))],
    "normal mixture": [
        (([0.3, 0.7], [-2.0, 1.0], [0.5, 1.0]), Components([0.3, 0.7], [-2.0, 1.0], [0.5, 1.0])),
        (([1.0, 0.0], [0.0, 9.0], [1.0, 1.0]), stats.norm()),
    ],
    "poisson": [((0.7,), stats.poisson(0.7)), ((12.0,), stats.poisson(12.0))],
    "negative binomial": [((2.0, 0.5), stats.nbinom(2.0, 0.5)), ((9.0, 1.6), stats.nbinom(1 / 1.6, 1 / (1 + 9 * 1.6)))],
    "gamma": [((2.0, 3.0), stats.gamma(2.0, scale=3.0)), ((0.5, 1.0), stats.gamma(0.5))],
    "beta": [((2.0, 5.0), stats.beta(2.0, 5.0)), ((0.6, 0.4), stats.beta(0.6, 0.4))],
    Scipy(stats.weibull_min): [((1.5, 0.0, 2.0), stats.weibull_min(1.5, 0.0, 2.0))],
    Scipy(stats.binom): [((7, 0.4, 0), stats.binom(7, 0.4))],
}
CASES = [(family, parameters, law) for family, each in FAMILIES.items() for parameters, law in each]
NAMES = [family if isinstance(family, str) else family.distribution.name for family, _, _ in CASES]
IDS = [f"{name}-{parameters}" for name, (_, parameters, _) in zip(NAMES, CASES)]


def repeated(family, parameters, n, **more):
    return Continuous(family, tuple(np.repeat(np.array([part]), n, axis=0) for part in parameters), **more)


def check_draws(drawn, law, low=-np.inf, high=np.inf):
    """Check draws against a law, restricted to an interval."""
    assert ((drawn >= low) & (drawn <= high)).all()
    if hasattr(law, "pmf"):
        values = np.arange(max(np.ceil(low), 0), min(np.floor(high), law.ppf(1 - 1e-9)) + 1)
        p = law.pmf(values) / law.pmf(values).sum()
        counts = np.array([(drawn == v).sum() for v in values])
        often = p * drawn.size > 5
        counts, p = [np.append(part[often], part[~often].sum()) for part in (counts, p)]
        p = np.maximum(p, 1e-12)
        assert stats.chisquare(counts, drawn.size * p / p.sum()).pvalue > 1e-3
    else:
        below, upto = law.cdf(low), law.cdf(high)
        assert stats.kstest(drawn, lambda y: (law.cdf(y) - below) / (upto - below)).pvalue > 1e-3


@pytest.mark.parametrize(("family", "parameters", "law"), CASES, ids=IDS)
def test_families_agree_with_scipy(family, parameters, law):
    drawn, rejected = repeated(family, parameters, N).sample(RowStreams.from_seed(1, N))
    assert not rejected.any()
    check_draws(drawn, law)
    y = np.append(np.unique(drawn[:200]), drawn.max() + 1.5)
    each = repeated(family, parameters, y.size)
    expected = law.logpmf(y) if hasattr(law, "pmf") else law.logpdf(y)
    assert each.log_density(y) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert each.cdf(y) == pytest.approx(law.cdf(y), rel=1e-9, abs=1e-12)
    below = law.cdf(np.ceil(y) - 1) if hasattr(law, "pmf") else law.cdf(y)
    assert each.cdf(y, below=True) == pytest.approx(below, abs=1e-12)
    assert each.ppf(each.cdf(y))[:-1] == pytest.approx(y[:-1], rel=1e-5, abs=1e-5)
    assert np.isnan(each.cdf(np.full(y.size, np.nan))).all()
    assert (each.log_density(np.full(y.size, np.nan)) == -np.inf).all()


@pytest.mark.parametrize(("family", "parameters", "law"), CASES, ids=IDS)
def test_restricted_draws_are_conditional_draws(family, parameters, law):
    quantile = repeated(family, parameters, 2).ppf(np.array([0.35, 0.8]))
    for low, high in ((quantile[0], quantile[1]), (-np.inf, quantile[0]), (quantile[1], np.inf)):
        within = Within(low=np.full(N, low), high=np.full(N, high), missing=np.zeros(N, bool))
        distribution = repeated(family, parameters, N)
        drawn, rejected = distribution.sample(RowStreams.from_seed(2, N), within)
        assert not rejected.any()
        check_draws(drawn, law, low, high)
        below = law.cdf(np.ceil(low) - 1 if hasattr(law, "pmf") else low)
        assert distribution.probability(within)[0] == pytest.approx(law.cdf(high) - below)


def test_rows_have_their_own_parameters_and_take_keeps_them():
    mean = np.array([0.0, 100.0, -50.0])
    normal = Continuous("normal", (mean, np.ones(3)))
    rows = np.tile([2, 0, 1], 100)
    drawn, _ = normal.take(rows).sample(RowStreams.from_seed(1, 300))
    assert np.abs(drawn - mean[rows]).max() < 5.0
    part, _ = normal.take(rows[200:]).sample(RowStreams.from_seed(1, 300).take(np.arange(200, 300)))
    assert np.array_equal(part, drawn[200:])


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_normal_tails_are_exact_and_then_rejected(sign):
    normal = Continuous("normal", (np.zeros(N), np.ones(N)))

    def beyond(z):
        end = np.full(N, sign * z)
        return Within(low=end) if sign > 0 else Within(high=end)

    drawn, rejected = normal.sample(RowStreams.from_seed(1, N), beyond(6.5))
    assert not rejected.any()
    check_draws(sign * drawn, stats.truncnorm(6.5, np.inf))
    assert normal.sample(RowStreams.from_seed(1, N), beyond(9.0))[1].all()


def test_impossible_and_empty_intervals_are_rejected():
    gamma = repeated("gamma", (2.0, 1.0), 3)
    within = Within(low=np.array([-2.0, 3.0, 1.0]), high=np.array([-1.0, 2.0, 2.0]))
    values, rejected = gamma.sample(RowStreams.from_seed(1, 3), within)
    assert rejected.tolist() == [True, True, False]
    assert np.isnan(values).tolist() == [True, True, False]
    assert gamma.probability(within)[:2].tolist() == [0.0, 0.0]


# ------------------------------------------------------------------------------------------------------------- grids


def test_draws_are_rounded_and_all_functions_are_those_of_rounded_draws():
    margin = margin_of(np.round(np.random.default_rng(1).normal(3.0, 1.0, 500), 1))
    n, law = 40_000, stats.norm(3.0, 0.3)
    normal = repeated("normal", (3.0, 0.3), n, margin=margin)
    drawn, _ = normal.sample(RowStreams.from_seed(1, n))
    assert (drawn == np.round(drawn, 1)).all()
    values = np.round(np.arange(2.0, 4.05, 0.1), 1)
    each = normal.take(np.arange(values.size))
    p = law.cdf(values + 0.05) - law.cdf(values - 0.05)
    assert each.cdf(values) - each.cdf(values, below=True) == pytest.approx(p)
    assert np.abs(np.array([(drawn == v).mean() for v in values]) - p).max() < 4 * np.sqrt(0.25 / n)
    assert each.ppf(each.cdf(values)) == pytest.approx(values)
    assert each.ppf(each.cdf(values, below=True) + 1e-9) == pytest.approx(values)


def test_bounds_are_points_of_the_grid():
    margin = margin_of(np.random.default_rng(1).integers(-40, 40, 500))
    n = 20_000
    normal = repeated("normal", (0.0, 3.0), n, margin=margin)
    within = Within(low=np.full(n, -1.2), high=np.full(n, 2.0))
    drawn, _ = normal.sample(RowStreams.from_seed(1, n), within)
    p = np.diff(stats.norm(0.0, 3.0).cdf(np.arange(-1.5, 3.0)))
    assert normal.probability(within)[0] == pytest.approx(p.sum())
    assert stats.chisquare([(drawn == v).sum() for v in (-1, 0, 1, 2)], n * p / p.sum()).pvalue > 1e-3
    assert normal.sample(RowStreams.from_seed(1, n), Within(low=np.full(n, 1.2), high=np.full(n, 1.8)))[1].all()
    single, rejected = normal.sample(RowStreams.from_seed(1, n), Within(low=np.full(n, 5.0), high=np.full(n, 5.0)))
    assert (single == 5.0).all()
    assert not rejected.any()


def test_a_finite_set_is_drawn_by_cells_or_by_density():
    n, values = 20_000, np.array([-2.0, 0.0, 1.0, 40.0])
    within = Within(values=values, high=np.full(n, 1.0))
    on_grid = repeated("normal", (0.0, 1.5), n, margin=margin_of(np.random.default_rng(1).integers(-40, 40, 500)))
    free = repeated("normal", (0.0, 1.5), n)
    law = stats.norm(0.0, 1.5)
    for normal, p in ((on_grid, law.cdf(values + 0.5) - law.cdf(values - 0.5)), (free, law.pdf(values))):
        drawn, rejected = normal.sample(RowStreams.from_seed(1, n), within)
        assert not rejected.any()
        expected = n * p[:3] / p[:3].sum()
        assert stats.chisquare([(drawn == v).sum() for v in values[:3]], expected).pvalue > 1e-3
    assert on_grid.probability(within)[0] == pytest.approx((law.cdf(values + 0.5) - law.cdf(values - 0.5))[:3].sum())
    assert free.sample(RowStreams.from_seed(1, n), Within(values=np.array([3.0]), high=np.zeros(n)))[1].all()
    point, rejected = free.sample(RowStreams.from_seed(1, n), Within(low=np.full(n, 0.7), high=np.full(n, 0.7)))
    assert (point == 0.7).all()
    assert not rejected.any()


def test_densities_are_relative_to_the_base_measure_of_the_column():
    rng = np.random.default_rng(1)
    with_zeros = margin_of(np.where(rng.random(500) < 0.3, 0.0, rng.integers(-5_000, 5_000, 500)) / 100)
    law = stats.norm(0.1, 2.0)
    normal = repeated("normal", (0.1, 2.0), 2, margin=with_zeros)
    expected = [np.log(law.cdf(0.005) - law.cdf(-0.005)), law.logpdf(1.5)]
    assert normal.log_density(np.array([0.0, 1.5])) == pytest.approx(expected)
    halves = margin_of(rng.integers(0, 8, 500) / 2)
    assert halves.is_counting
    cells = np.log(law.cdf([0.05, 9.05]) - law.cdf([-0.05, 8.95]))
    assert repeated("normal", (0.1, 2.0), 2, margin=halves).log_density(np.array([0.0, 9.0])) == pytest.approx(cells)
    no_grid = margin_of(np.where(rng.random(500) < 0.3, 0.0, rng.normal(size=500)))
    assert no_grid.grid is None
    found = repeated("normal", (0.1, 2.0), 2, margin=no_grid).log_density(np.array([0.0, 1.5]))
    assert found == pytest.approx([-np.inf, law.logpdf(1.5)])


# -------------------------------------------------------------------------------------------- pushed through a margin


def test_a_standard_normal_pushed_through_the_margin_is_the_margin():
    values = skewed_with_zeros(3_000)
    margin = margin_of(values)
    n = 20_000
    pushed = repeated("normal", (0.0, 1.0), n, margin=margin, latent=True)
    drawn, _ = pushed.sample(RowStreams.from_seed(1, n))
    assert np.mean(drawn == 0.0) == pytest.approx(np.mean(values == 0.0), abs=0.012)
    assert stats.ks_2samp(drawn[drawn > 0], values[values > 0]).pvalue > 1e-3
    each = pushed.take(np.arange(values.size))
    assert each.log_density(values) == pytest.approx(margin.log_density(values), abs=1e-6)
    assert each.cdf(values) == pytest.approx(margin.cdf(values))


def test_a_latent_normal_has_a_density_that_integrates_to_one_and_agrees_with_its_draws():
    values = skewed_with_zeros(3_000)
    margin = margin_of(values)
    n = 20_000
    pushed = repeated("normal", (0.5, 0.6), n, margin=margin, latent=True)
    drawn, _ = pushed.sample(RowStreams.from_seed(1, n))
    x = np.linspace(1e-6, values.max() + 20.0, n)
    zero = np.exp(pushed.take([0]).log_density(np.zeros(1)))[0]
    assert integrate.trapezoid(np.exp(pushed.log_density(x)), x) + zero == pytest.approx(1.0, abs=2e-3)
    assert zero == pytest.approx(np.mean(drawn == 0.0), abs=0.012)
    for q in (1.0, 3.0, 6.0):
        assert pushed.cdf(np.full(n, q))[0] == pytest.approx(np.mean(drawn <= q), abs=0.012)
    assert pushed.ppf(pushed.cdf(np.full(n, 3.0)))[0] == pytest.approx(3.0)
    within = Within(low=np.full(n, 2.0), high=np.full(n, 4.0))
    restricted, _ = pushed.sample(RowStreams.from_seed(1, n), within)
    inside = drawn[(drawn >= 2.0) & (drawn <= 4.0)]
    assert stats.ks_2samp(restricted, inside).pvalue > 1e-3
    assert pushed.probability(within)[0] == pytest.approx(inside.size / n, abs=0.015)


# --------------------------------------------------------------------------------------------------------- residuals


def test_residuals_are_shifted_and_scaled():
    residuals = margin_of(np.random.default_rng(1).standard_t(4, 4_000))
    n = 20_000
    law = LocationScale(residuals)
    shifted = repeated(law, (5.0, 3.0), n)
    drawn, _ = shifted.sample(RowStreams.from_seed(1, n))
    check_draws(drawn, law=type("Law", (), {"cdf": staticmethod(lambda y: residuals.cdf((np.asarray(y) - 5.0) / 3.0))}))
    assert shifted.log_density(drawn) == pytest.approx(np.log(residuals.density((drawn - 5.0) / 3.0) / 3.0))


def test_unknown_family():
    with pytest.raises(InputError, match="there is no family 'norml'; did you mean 'normal'"):
        Continuous("norml", (np.zeros(1),))
