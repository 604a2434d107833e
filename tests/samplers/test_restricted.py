from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce import Within
from mcce.rng import RowStreams
from mcce.samplers import RestrictedDraw
from mcce.samplers.rounding import draw_allowed
from mcce.table import Schema

N = 6000
LEVELS = np.array(["a", "b", "c"])


def test_bounds_are_infinite_without_restriction():
    low, high = Within(low=np.array([1, 2])).bounds(2)
    assert low.tolist() == [1.0, 2.0]
    assert low.dtype == np.float64
    assert high.tolist() == [np.inf, np.inf]
    assert Within(high=np.arange(6.0)[::2]).bounds(3)[1].flags.c_contiguous


def test_level_mask_agrees_with_allows():
    rng = np.random.default_rng(0)
    for _ in range(50):
        parts = {
            "low": rng.integers(-1, 4, 5).astype(float),
            "high": rng.integers(-1, 4, 5).astype(float),
            "levels": rng.random((5, 4)) < 0.5,
        }
        within = Within(**{name: part for name, part in parts.items() if rng.random() < 0.6})
        by_level = [within.allows(np.full(5, float(level))) for level in range(4)]
        np.testing.assert_array_equal(within.level_mask(5, 4), np.column_stack(by_level))
        np.testing.assert_array_equal(within.level_mask(5, 2), np.column_stack(by_level)[:, :2])


def test_missing_is_allowed_row_by_row():
    within = Within(low=np.zeros(3), missing=np.array([True, False, True]))
    assert within.allows(np.array([np.nan, np.nan, -1.0])).tolist() == [True, False, False]
    assert within.take(np.array([1, 0])).missing.tolist() == [False, True]
    assert within.allows_missing(3).tolist() == [True, False, True]
    assert Within().allows_missing(2).tolist() == [False, False]


def test_draw_or_missing_value_by_two_weights():
    found = RestrictedDraw.of(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([False, False, True, True, False]))
    mixed = found.or_missing(
        np.full(5, 0.3), np.array([0.1, 0.1, 0.1, 0.0, 0.0]), np.array([0.24, 0.26, 0.9, 0.0, 0.0])
    )
    np.testing.assert_array_equal(mixed.values, [np.nan, 2.0, np.nan, np.nan, 5.0])
    assert mixed.rejected.tolist() == [False, False, False, True, False]


def test_probability_of_a_draw_or_a_missing_value():
    """A draw made 1 / 0.3 times as likely by a restriction, then a missing value as the alternative."""
    rejected = np.array([False, False, True, True])
    found = RestrictedDraw.of(np.arange(4.0), rejected, np.log([0.3, 0.3, 1.0, 1.0]))
    np.testing.assert_array_equal(found.log_mass[rejected], -np.inf)
    mixed = found.or_missing(np.full(4, 0.3), np.array([0.1, 0.1, 0.1, 0.0]), np.array([0.24, 0.26, 0.9, 0.0]))
    np.testing.assert_allclose(np.exp(mixed.log_mass), [0.4, 0.4, 0.1, 0.0])
    assert found.take(np.array([1])).log_mass.tolist() == [np.log(0.3)]


def random_within(rng, n):
    parts = {
        "low": rng.choice([-np.inf, 0.0, 1.0, 2.0], n),
        "high": rng.choice([np.inf, 3.0, 2.0, 1.0], n),
        "levels": rng.random((n, 4)) < 0.7,
        "missing": rng.random(n) < 0.5,
    }
    return Within(**{name: part for name, part in parts.items() if rng.random() < 0.6})


@pytest.mark.slow
def test_intersection_of_two_restrictions_and_unrestricted_rows():
    """Compared with all possible draws: four levels and a missing value."""
    rng = np.random.default_rng(1)
    n = 8
    levels = pd.Categorical(list("abcd"), ordered=True)
    complete = Schema.from_data(pd.DataFrame({"x": levels})).features[0]
    incomplete = Schema.from_data(pd.DataFrame({"x": levels.insert(0, None)})).features[0]
    for _ in range(200):
        one, two = random_within(rng, n), random_within(rng, n)
        candidates = [np.full(n, value) for value in (0.0, 1.0, 2.0, 3.0, np.nan)]
        allowed = [one.allows(values) for values in candidates]
        both = [a & two.allows(values) for a, values in zip(allowed, candidates)]
        np.testing.assert_array_equal([(one & two).allows(values) for values in candidates], both)
        np.testing.assert_array_equal([(two & one).allows(values) for values in candidates], both)
        np.testing.assert_array_equal(one.excludes(incomplete, n, observed=True), ~np.all(allowed, axis=0))
        np.testing.assert_array_equal(one.excludes(complete, n, observed=True), ~np.all(allowed[:4], axis=0))
    number, gaps = (Schema.from_data(pd.DataFrame({"x": [0.0, 9.0, gap]})).features[0] for gap in (1.0, np.nan))
    assert Within(missing=np.array([True, False])).excludes(gaps, 2, observed=True).tolist() == [False, True]
    assert Within(low=np.array([-1e300, -np.inf])).excludes(number, 2, observed=False).tolist() == [True, False]
    assert Within(low=np.array([-1e300, 0.1])).excludes(number, 2, observed=True).tolist() == [False, True]


def test_probability_in_the_far_tail_is_not_zero():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=500), "y": rng.normal(size=500)})
    table = Schema.from_data(frame).encode(frame)
    for sampler, exact in ((mcce.NormSampler(), True), (mcce.NormRankSampler(), False)):
        fitted = sampler.fit(table.first(1), table.column(1))
        within = Within(low=np.full(500, 60.0 if exact else frame["y"].max()), weighted=True)
        found = fitted.sample_within(table.first(1), RowStreams.from_seed(0, 500), within)
        assert not found.rejected.any()
        assert np.isfinite(found.log_mass).all()
        if exact:
            mean, sd = fitted.predict(table.first(1)), fitted.sigma_
            np.testing.assert_allclose(found.log_mass, stats.norm.logsf(60.0, mean, sd), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0.3, 0.6])
def test_nearest_allowed_donors_are_weighted_to_the_conditional(kept):
    """Predictive mean matching draws the nearest allowed donors, which need not be drawn without the restriction."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"x": rng.normal(size=400)})
    frame["y"] = np.round(2.0 * frame["x"] + rng.normal(size=400), 1)  # ties among the donors
    table = Schema.from_data(frame).encode(frame)
    fitted = mcce.PmmSampler(n_donors=10).fit(table.first(1), table.column(1))
    n = 40_000
    row = table.first(1).take(np.full(n, 7))
    free = fitted.sample(row, RowStreams.from_seed(1, n))
    low = np.quantile(free, 1.0 - kept, method="nearest")
    found = fitted.sample_within(row, RowStreams.from_seed(2, n), Within(low=np.full(n, low), weighted=True))
    weights = np.exp(found.log_mass)
    assert weights.mean() == pytest.approx((free >= low).mean(), abs=0.02)
    expected = pd.Series(free[free >= low]).value_counts(normalize=True)
    drawn = pd.Series(weights).groupby(found.values).sum() / weights.sum()
    np.testing.assert_allclose(drawn.reindex(expected.index), expected, atol=0.03)
    assert drawn.drop(expected.index).sum() == 0.0
    # without weights other values are drawn as well, or the same values with other shares
    unweighted = pd.Series(found.values).value_counts(normalize=True)
    assert unweighted.sub(expected, fill_value=0.0).abs().max() > 0.06


def process(kind, seed):
    """Return a target that is missing with probability 0.2 or 0.5, by group, and else below a cut by 0.7 or 0.25."""
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 2, N)
    if kind == "numeric":
        y = pd.Series(rng.normal(np.where(g == 1, 10.0 - stats.norm.ppf(0.25), 10.0 - stats.norm.ppf(0.7)), 1.0))
    else:
        p = np.array([[0.3, 0.4, 0.3], [0.2, 0.05, 0.75]])
        codes = (rng.random(N)[:, None] > p[g].cumsum(axis=1)).sum(axis=1)
        y = pd.Series(pd.Categorical(LEVELS[codes], categories=list(LEVELS), ordered=kind == "ordered"))
    frame = pd.DataFrame({"g": g, "y": y.mask(rng.random(N) < np.where(g == 1, 0.5, 0.2))})
    table = Schema.from_data(frame).encode(frame)
    return table.first(1), table.column(1)


def restricted(kind, n, missing):
    if kind == "numeric":
        return Within(high=np.full(n, 10.0), missing=missing, weighted=True)
    if kind == "ordered":
        return Within(high=np.full(n, 1.0), missing=missing, weighted=True)
    return Within(levels=np.tile([True, True, False], (n, 1)), missing=missing, weighted=True)


CASES = [
    *((mcce.CartSampler(min_leaf=500), kind) for kind in ("numeric", "ordered", "categorical")),
    *((mcce.ForestSampler(n_trees=2, min_leaf=1000, max_features=None), kind) for kind in ("numeric", "categorical")),
    (mcce.CtreeSampler(), "numeric"),
    (mcce.NormSampler(), "numeric"),
    (mcce.NormRankSampler(), "numeric"),
    (mcce.NormRankSampler(smoothing="density"), "numeric"),
    (mcce.PmmSampler(n_donors=500), "numeric"),
    (mcce.PolyregSampler(), "categorical"),
    (mcce.PolrSampler(), "ordered"),
    (mcce.ParametricSampler(), "ordered"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "kind"),
    [pytest.param(*case, marks=[pytest.mark.nightly] * (place % 4 > 0)) for place, case in enumerate(CASES)],
    ids=repr,
)
def test_restricted_draw_is_missing_with_its_conditional_probability(sampler, kind):
    given, target = process(kind, 1)
    fitted = sampler.clone().fit(given, target)
    n = 3000
    for g, p_missing, p_allowed in ((0, 0.2, 0.7), (1, 0.5, 0.25)):
        row = np.flatnonzero(given.matrix[:, 0] == g)[0]
        rows = given.take(np.full(n, row))
        may = np.arange(n) % 3 > 0
        within = restricted(kind, n, may)
        found = fitted.sample_within(rows, RowStreams.from_seed(g, n), within)
        assert within.allows(found.values).all()
        assert not found.rejected.any()
        assert not np.isnan(found.values[~may]).any()
        expected = p_missing / (p_missing + (1.0 - p_missing) * p_allowed)
        assert np.isnan(found.values[may]).mean() == pytest.approx(expected, abs=0.04)
        allowed = within.allows(fitted.sample(rows, RowStreams.from_seed(g + 2, n)))
        for rows_of in (~may, may):
            assert np.exp(found.log_mass[rows_of]).mean() == pytest.approx(allowed[rows_of].mean(), abs=0.05)
        np.testing.assert_array_equal(fitted.sample(rows, RowStreams.from_seed(g, n), within), found.values)
        plain = fitted.sample_within(rows, RowStreams.from_seed(g, n), replace(within, weighted=False))
        np.testing.assert_array_equal(plain.values, found.values)
        np.testing.assert_array_equal(plain.rejected, found.rejected)


def test_marginal_draw_is_missing_with_its_conditional_probability():
    target = process("numeric", 2)[1]
    fitted = mcce.MarginalSampler().fit(*process("numeric", 2))
    rows = process("numeric", 2)[0].take(np.arange(4000))
    found = fitted.sample_within(rows, RowStreams.from_seed(1, 4000), restricted("numeric", 4000, np.ones(4000, bool)))
    n_missing, n_low = np.isnan(target.values).sum(), (target.values <= 10.0).sum()
    share = n_missing / (n_missing + n_low)
    assert stats.binomtest(int(np.isnan(found.values).sum()), 4000, share).pvalue > 1e-4


@pytest.mark.parametrize(("sampler", "kind"), CASES, ids=repr)
def test_row_without_feasible_value_is_missing_or_rejected(sampler, kind):
    """NaN represents both; the mask distinguishes them."""
    given, target = process(kind, 3)
    fitted = sampler.clone().fit(given, target)
    may = np.arange(8) % 2 == 0
    nothing = {
        "numeric": Within(low=np.full(8, 1e6), missing=may),
        "ordered": Within(low=np.full(8, 7.0), missing=may),
        "categorical": Within(levels=np.zeros((8, 3), dtype=bool), missing=may),
    }[kind]
    found = fitted.sample_within(given.take(np.arange(8)), RowStreams.from_seed(0, 8), nothing)
    if type(fitted) is mcce.NormSampler:  # positive everywhere, but zero in floats
        assert np.isnan(found.values[may]).all()
        assert not found.rejected.any()
        return
    assert np.isnan(found.values).all()
    np.testing.assert_array_equal(found.rejected, ~may)


NEVER_MISSING = [mcce.CartSampler(min_leaf=100), mcce.PolyregSampler(), mcce.GaussianCopulaSampler()]


@pytest.mark.parametrize("sampler", NEVER_MISSING, ids=repr)
def test_never_missing_column_stays_so(sampler):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "y": LEVELS[rng.integers(0, 3, 300)]})
    table = Schema.from_data(frame).encode(frame)
    fitted = sampler.fit(table.first(1), table.column(1))
    within = Within(levels=np.tile([True, False, False], (300, 1)), missing=np.ones(300, dtype=bool))
    within.levels[::2] = False
    found = fitted.sample_within(table.first(1), RowStreams.from_seed(0, 300), within)
    assert found.rejected.tolist() == [True, False] * 150
    assert (found.values[1::2] == 0.0).all()


def test_multiples_and_excluded_numbers():
    values = np.array([500.0, 501.0, 700.0, np.nan, 0.3, 1000.0])
    within = Within(
        step=np.array([500.0, 500.0, 500.0, 500.0, 0.1, np.nan]),
        kept=np.array([np.nan, 501.0, np.nan, np.nan, np.nan, np.nan]),
        never=np.array([[500.0], [np.nan], [np.nan], [np.nan], [np.nan], [1000.0]]),
    )
    assert within.allows(values).tolist() == [False, True, False, False, True, False]
    assert within.take(slice(1, 3)).allows(values[1:3]).tolist() == [True, False]
    np.testing.assert_array_equal(within.put(values), [500.0, 501.0, 500.0, np.nan, 0.3, 1000.0])
    narrow = Within(low=np.array([0.3, 501.0]), high=np.array([0.39, 999.0]), step=np.array([0.1, 500.0]))
    np.testing.assert_array_equal(narrow.put(np.array([0.38, 600.0])), [0.3, np.nan])


def test_intersection_of_two_restrictions():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.arange(0.0, 12.0), [np.nan]])
    n = values.size
    for _ in range(100):
        both = []
        for _ in range(2):
            parts = {
                "low": np.full(n, rng.integers(0, 5)).astype(float),
                "high": np.full(n, rng.integers(5, 12)).astype(float),
                "missing": np.full(n, rng.random() < 0.5),
                "step": np.where(rng.random(n) < 0.2, np.nan, float(rng.integers(1, 5))),
                "never": np.full((n, 1), float(rng.integers(0, 12))),
            }
            both.append(Within(**{name: part for name, part in parts.items() if rng.random() < 0.7}))
        one, other = both
        np.testing.assert_array_equal((one & other).allows(values), one.allows(values) & other.allows(values))


def test_exclusions_of_training_values_and_of_all_numbers():
    feature = Schema.from_data(pd.DataFrame({"x": [1.0, 5.0]})).features[0]
    within = Within(low=np.array([0.0, 2.0, -np.inf]), never=np.array([[7.0], [np.nan], [np.nan]]))
    assert within.excludes(feature, 3, observed=True).tolist() == [False, True, False]
    assert within.excludes(feature, 3, observed=False).tolist() == [True, True, False]
    gaps = Schema.from_data(pd.DataFrame({"x": [1.0, 5.0, None]})).features[0]
    assert Within(missing=np.array([True, False])).excludes(gaps, 2, observed=True).tolist() == [False, True]
    levels = Schema.from_data(pd.DataFrame({"x": ["a", "b"]})).features[0]
    two = Within(levels=np.array([[True, True], [True, False]]))
    assert two.excludes(levels, 2, observed=True).tolist() == [False, True]


@pytest.mark.parametrize("sampler", [mcce.CartSampler(min_leaf=500), mcce.NormSampler(), mcce.PmmSampler()], ids=repr)
def test_draws_are_multiples_within_bounds_and_not_excluded(sampler):
    given, target = process("numeric", 1)
    fitted = sampler.clone().fit(given, target)
    n = 2000
    within = Within(low=np.full(n, 9.1), high=np.full(n, 11.4), step=np.full(n, 0.5), never=np.full((n, 1), 10.0))
    found = draw_allowed(fitted, given.take(np.arange(n)), RowStreams.from_seed(1, n), target.feature, within)
    assert not found.rejected.any()
    assert set(found.values) == {9.5, 10.5, 11.0}
    nowhere = Within(low=np.full(n, 9.1), high=np.full(n, 9.4), step=np.full(n, 0.5))
    assert draw_allowed(
        fitted, given.take(np.arange(n)), RowStreams.from_seed(1, n), target.feature, nowhere
    ).rejected.all()


@pytest.mark.slow
def test_draw_excluding_a_value_has_the_distribution_of_the_others():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"g": np.zeros(4000), "y": rng.choice([1, 2, 3, 4], 4000, p=[0.5, 0.3, 0.15, 0.05])})
    table = Schema.from_data(frame).encode(frame)
    fitted = mcce.CartSampler().fit(table.first(1), table.column(1))
    within = Within(never=np.full((4000, 1), 1.0))
    found = draw_allowed(fitted, table.first(1), RowStreams.from_seed(5, 4000), table.features[1], within)
    counts = np.bincount(found.values.astype(int), minlength=5)[2:]
    shares = np.bincount(frame["y"], minlength=5)[2:] / (frame["y"] > 1).sum()
    assert counts.sum() == 4000
    assert stats.chisquare(counts, 4000 * shares).pvalue > 1e-3
