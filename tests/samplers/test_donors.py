"""Donors: draws, restricted draws and probabilities against brute force."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.rng import RowStreams
from mcce.samplers import Donors, Within
from tests.samplers.test_margin import margin_of

N_DRAWS = 6_000


def random_donors(seed, n_trees=1, weighted=False, gaps=True, levels=False):
    """Return donors of 8 rows, and the values and weights of each row."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, 20)
    ends = np.cumsum(sizes)
    begins = ends - sizes
    pool = rng.integers(0, 5, ends[-1]).astype(float) + (0.0 if levels else 0.5)
    pool[rng.random(pool.size) < 0.2 * gaps] = np.nan
    for begin, end in zip(begins, ends):
        pool[begin:end] = np.sort(pool[begin:end])
    weight = rng.integers(0, 4, pool.size) + 0.25 if weighted else None
    leaves = rng.integers(0, 20, (8, n_trees))
    begin, end = (begins[leaves], ends[leaves]) if n_trees > 1 else (begins[leaves[:, 0]], ends[leaves[:, 0]])
    values = [np.concatenate([pool[begins[k] : ends[k]] for k in row]) for row in leaves]
    ones = np.ones(pool.size) if weight is None else weight
    weights = [np.concatenate([ones[begins[k] : ends[k]] for k in row]) for row in leaves]
    return Donors(pool, begin, end, weight), values, weights


CASES = [
    {"n_trees": n_trees, "weighted": weighted, "seed": seed}
    for n_trees in (1, 3)
    for weighted in (False, True)
    for seed in (1, 2)
]


def check_shares(drawn, values, weights):
    """Check the frequencies of drawn donors of one row."""
    is_nan = np.isnan(values)
    expected = {v: weights[values == v].sum() for v in np.unique(values[~is_nan])} | {"nan": weights[is_nan].sum()}
    counts = {v: (drawn == v).sum() if v != "nan" else np.isnan(drawn).sum() for v in expected}
    shares = np.array([w for w in expected.values()]) / weights.sum()
    counts = np.array(list(counts.values()))
    assert counts.sum() == drawn.size
    assert not counts[shares == 0.0].any()
    if (shares > 0.0).sum() > 1:
        assert stats.chisquare(counts[shares > 0], drawn.size * shares[shares > 0]).pvalue > 1e-4


@pytest.mark.parametrize("case", CASES, ids=str)
def test_draws_are_donors_by_weight(case):
    donors, values, weights = random_donors(**case)
    rows = np.repeat(np.arange(8), N_DRAWS)
    drawn, rejected = donors.take(rows).sample(RowStreams.from_seed(1, rows.size))
    assert not rejected.any()
    for row in range(8):
        check_shares(drawn[rows == row], values[row], weights[row])


def test_a_draw_is_one_integer_in_the_order_of_the_pool():
    """The published method's answers depend on this call."""
    donors, _, _ = random_donors(5)
    rows = np.repeat(np.arange(8), 50)
    many = donors.take(rows)
    chosen = RowStreams.from_seed(3, rows.size).integer(many.end - many.begin)
    drawn, _ = many.sample(RowStreams.from_seed(3, rows.size))
    assert np.array_equal(drawn, many.pool[many.begin + chosen], equal_nan=True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_restricted_draws_are_conditional_draws(case):
    donors, values, weights = random_donors(**case)
    rng = np.random.default_rng(case["seed"])
    within = Within(
        low=rng.choice([-np.inf, 1.0, 1.5], 8),
        high=rng.choice([np.inf, 2.5, 3.0, 1.0], 8),
        values=np.array([0.5, 1.5, 3.5]) if case["seed"] == 2 else None,
        missing=rng.random(8) < 0.5,
    )
    rows = np.repeat(np.arange(8), N_DRAWS)
    drawn, rejected = donors.take(rows).sample(RowStreams.from_seed(1, rows.size), within.take(rows))
    probability = donors.probability(within)
    for row in range(8):
        allowed = within.take(np.full(values[row].size, row)).allows(values[row]) & (weights[row] > 0.0)
        share = weights[row][allowed].sum() / weights[row].sum()
        assert probability[row] == pytest.approx(share)
        assert (rejected[rows == row] == (share == 0.0)).all()
        if share:
            check_shares(drawn[rows == row], values[row][allowed], weights[row][allowed])
        else:
            assert np.isnan(drawn[rows == row]).all()


def test_restricted_to_levels():
    donors, values, weights = random_donors(7, n_trees=2, levels=True)
    rng = np.random.default_rng(7)
    within = Within(levels=rng.random((8, 5)) < 0.5, low=np.full(8, 1.0))
    rows = np.repeat(np.arange(8), N_DRAWS)
    drawn, rejected = donors.take(rows).sample(RowStreams.from_seed(1, rows.size), within.take(rows))
    for row in range(8):
        allowed = within.take(np.full(values[row].size, row)).allows(values[row])
        assert (rejected[rows == row] == ~allowed.any()).all()
        if allowed.any():
            check_shares(drawn[rows == row], values[row][allowed], weights[row][allowed])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_distribution_function_and_inverse(case):
    donors, values, weights = random_donors(**case)
    for y in (0.0, 0.5, 1.7, 2.5, 4.5, 9.0):
        upto, below = donors.cdf(np.full(8, y)), donors.cdf(np.full(8, y), below=True)
        for row in range(8):
            known = ~np.isnan(values[row]) & (weights[row] > 0.0)
            w, v = weights[row][known], values[row][known]
            if not known.any():
                assert np.isnan(upto[row])
                continue
            assert upto[row] == pytest.approx(w[v <= y].sum() / w.sum())
            assert below[row] == pytest.approx(w[v < y].sum() / w.sum())
            if y in v:
                assert donors.take([row]).ppf(upto[[row]]) == y
    for u in (1e-9, 0.3, 0.77, 1.0):
        found = donors.ppf(np.full(8, u))
        for row in range(8):
            known = ~np.isnan(values[row]) & (weights[row] > 0.0)
            v = np.sort(values[row][known])
            brute = [
                y for y in v if weights[row][known & (values[row] <= y)].sum() >= u * weights[row][known].sum() - 1e-9
            ]
            assert found[row] == brute[0] if known.any() else np.isnan(found[row])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_density_without_a_margin_is_the_share(case):
    donors, values, weights = random_donors(**case)
    for y in (0.5, 2.5, 7.0, np.nan):
        density = np.exp(donors.log_density(np.full(8, y)))
        for row in range(8):
            same = np.isnan(values[row]) if np.isnan(y) else values[row] == y
            assert density[row] == pytest.approx(weights[row][same].sum() / weights[row].sum())


def test_density_with_point_mass_is_mixed_with_pseudo_donors():
    donors, values, _ = random_donors(3, levels=True)
    column = pd.Categorical.from_codes([0, 1, 1, 2, 3, 4, -1, 4], categories=list("abcde"))
    margin = margin_of(column)
    smoothed = Donors(donors.pool, donors.begin, donors.end, margin=margin)
    total = np.zeros(8)
    for y, share in ((0.0, 1), (1.0, 2), (2.0, 1), (3.0, 1), (4.0, 2), (np.nan, 1)):
        density = np.exp(smoothed.log_density(np.full(8, y)))
        total += density
        for row in range(8):
            same = np.isnan(values[row]) if np.isnan(y) else values[row] == y
            assert density[row] == pytest.approx((same.sum() + 5.0 * share / 8) / (same.size + 5.0))
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_density_of_numbers_is_a_kernel_estimate(weighted):
    rng = np.random.default_rng(8)
    values = np.where(rng.random(400) < 0.25, 0.0, rng.lognormal(size=400))
    values[:20] = np.nan
    margin = margin_of(values)
    pool = np.concatenate([np.sort(values[:150]), np.sort(values[150:])])
    weight = rng.integers(1, 4, 400).astype(float) if weighted else None
    donors = Donors(pool, np.array([[0, 150]]), np.array([[150, 400]]), weight, margin)
    w = np.ones(400) if weight is None else weight
    spread = np.isfinite(pool) & (pool != 0.0)
    y, wy = pool[spread], w[spread]
    order = np.argsort(y)
    upto = np.cumsum(wy[order]) / wy.sum()
    quartiles = [y[order][np.searchsorted(upto, q - 1e-9)] for q in (0.25, 0.75)]
    sd = np.sqrt(np.average((y - np.average(y, weights=wy)) ** 2, weights=wy))
    h = 0.9 * min(sd, (quartiles[1] - quartiles[0]) / 1.34) * (wy.sum() ** 2 / (wy**2).sum()) ** -0.2
    m = w.sum() ** 2 / (w**2).sum()
    for x in (0.3, 1.0, 4.0, -0.5):
        kernels = (wy * stats.norm.pdf(x, y, h)).sum() / w.sum()
        brute = (m * kernels + 5.0 * np.exp(margin.log_density(np.array([x]))[0])) / (m + 5.0)
        assert np.exp(donors.log_density(np.array([x])))[0] == pytest.approx(brute, rel=1e-9)
    atom = (m * w[pool == 0.0].sum() / w.sum() + 5.0 * np.exp(margin.log_density(np.zeros(1))[0])) / (m + 5.0)
    assert np.exp(donors.log_density(np.zeros(1)))[0] == pytest.approx(atom)
    x = np.linspace(-5.0, 60.0, 40_001)
    x = x[x != 0.0]
    many = donors.take(np.zeros(x.size, dtype=int))
    known = (
        np.trapezoid(np.exp(many.log_density(x)), x)
        + np.exp(many.take([0, 0]).log_density(np.array([0.0, np.nan]))).sum()
    )
    assert known == pytest.approx(1.0, abs=2e-3)


def test_large_segments_are_represented_by_quantiles():
    values = np.sort(np.random.default_rng(9).normal(size=20_001) ** 3)
    donors = Donors(values, np.zeros(5, int), np.full(5, values.size), margin=margin_of(values))
    x = np.array([-8.0, -0.5, 0.1, 1.0, 9.0])
    h = 0.9 * (np.quantile(values, 0.75) - np.quantile(values, 0.25)) / 1.34 * values.size**-0.2
    assert donors.log_density(x)[1:4] == pytest.approx(
        np.log([stats.norm.pdf(v, values, h).mean() for v in x[1:4]]), abs=0.1
    )
    assert (donors.log_density(x) > -25.0).all()


def test_equal_donors_have_the_bandwidth_of_the_margin():
    values = np.random.default_rng(10).normal(size=300)
    margin = margin_of(values)
    pool = np.full(4, values[0])
    donors = Donors(pool, np.array([0]), np.array([4]), margin=margin)
    brute = (4.0 * stats.norm.pdf(0.0, 0.0, margin.bandwidth) + 5.0 * margin.density(pool[:1])[0]) / 9.0
    assert np.exp(donors.log_density(pool[:1]))[0] == pytest.approx(brute)


def test_a_row_of_missing_donors():
    donors = Donors(np.array([np.nan, np.nan]), np.array([0, 0]), np.array([2, 2]))
    values, rejected = donors.sample(RowStreams.from_seed(1, 2), Within(missing=np.array([True, False])))
    assert np.isnan(values).all()
    assert rejected.tolist() == [False, True]
    assert np.isnan(donors.cdf(np.zeros(2))).all()
    assert np.isnan(donors.ppf(np.full(2, 0.5))).all()


def test_a_row_without_donors_that_have_no_point_mass():
    values = np.where(np.arange(400) % 2 > 0, 0.0, np.random.default_rng(11).normal(size=400))
    margin = margin_of(values)
    pool = np.array([0.3, 0.7, 0.0, 0.0])
    for begin, end in ((np.array([2]), np.array([4])), (np.array([[2, 2]]), np.array([[4, 4]]))):
        donors = Donors(pool, begin, end, margin=margin)
        m = (end - begin).sum()
        density = 5.0 * margin.density(np.array([0.4]))[0] / (m + 5.0)
        assert np.exp(donors.log_density(np.array([0.4])))[0] == pytest.approx(density)
