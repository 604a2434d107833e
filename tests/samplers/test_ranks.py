"""Ranks of values and values at ranks: brute force, analytic distributions, missing values, errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor

import mcce
from mcce import SamplerError
from mcce.rng import RowStreams
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.rounding import ranks_on_grid
from mcce.table import Column, Schema
from mcce.testing.samplers import check_at_ranks, check_ranks, check_uniform_ranks
from tests.testing.sound_samplers import Normal


def problem(target, given=None, **options):
    """Return the givens and the target of a table of two columns."""
    frame = pd.DataFrame({"x": np.zeros(len(target)) if given is None else given, "y": target})
    table = Schema.from_data(frame).encode(frame)
    return table.select([0]), Column(table.features[1], table.matrix[:, 1], **options)


def quantile(donors, weights, u):
    """Return the smallest donor at which a share u of the weight is reached, by brute force."""
    order = np.argsort(donors)
    upto = np.cumsum(weights[order]) / weights.sum()
    return donors[order][np.flatnonzero(upto >= u)[0]]


RNG = np.random.default_rng(0)
VALUES = np.round(RNG.normal(size=200), 1)
GROUP = RNG.integers(0, 3, 200)
U = np.array([0.001, 0.2, 0.5, 0.77, 0.999])


@pytest.mark.parametrize("weights", [None, RNG.uniform(0.5, 3.0, 200)], ids=["alike", "weighted"])
def test_donors_of_a_tree_have_weighted_order_statistics(weights):
    given, target = problem(VALUES + GROUP, GROUP, weights=weights)
    fitted = mcce.CartSampler(min_leaf=30, max_depth=2).fit(given, target)
    for group in range(3):
        rows = given.take(np.full(U.size, np.flatnonzero(group == GROUP)[0]))
        inside = group == GROUP
        own = np.ones(inside.sum()) if weights is None else weights[inside]
        expected = [quantile(target.values[inside], own, u) for u in U]
        assert fitted.at_ranks(rows, U).tolist() == expected
        value = np.full(U.size, expected[2])
        below = own[target.values[inside] < value[0]].sum() / own.sum()
        upto = own[target.values[inside] <= value[0]].sum() / own.sum()
        ranks = fitted.ranks(rows, value, RowStreams.from_seed(1, U.size))
        assert ((ranks > below) & (ranks < upto)).all()
        assert np.unique(ranks).size == U.size


@pytest.mark.parametrize("pooling", ["donors", "trees"])
def test_donors_of_a_forest_are_pooled(pooling):
    given, target = problem(VALUES + GROUP, GROUP)
    fitted = mcce.ForestSampler(n_trees=3, pooling=pooling, min_leaf=10).fit(given, target)
    drawn = fitted.sample(given.take(np.zeros(40_000, dtype=int)), RowStreams.from_seed(1, 40_000))
    upto = fitted.distribution(given.take(np.zeros(U.size, dtype=int))).upto
    at = np.quantile(drawn, U, method="inverted_cdf")
    np.testing.assert_allclose(upto(at), [(drawn <= value).mean() for value in at], atol=0.01)


def test_number_between_donors_is_one_more():
    """Ranks of new rows are uniform: among 4 donors, a new value has one of 5 positions."""
    rng = np.random.default_rng(1)
    donors, new = np.sort(rng.normal(size=(2_000, 4)), axis=1), rng.normal(size=2_000)
    functions = DistributionFunctions(lambda high: (donors <= high[:, None]).mean(axis=1), np.copy, n_donors=4)
    ranks = functions.ranks(new, rng.random(2_000))
    assert stats.kstest(ranks, "uniform").pvalue > 0.01


def test_normal_regression_has_normal_ranks():
    x = RNG.normal(size=300)
    given, target = problem(2.0 * x + RNG.normal(size=300), x)
    fitted = mcce.NormSampler().fit(given, target)
    expected = stats.norm.cdf(target.values, fitted.predict(given), fitted.sigma_)
    np.testing.assert_allclose(fitted.ranks(given, target.values, RowStreams.from_seed(1, 300)), expected, atol=1e-12)
    at = fitted.at_ranks(given, np.full(300, 0.9))
    np.testing.assert_allclose(at, stats.norm.ppf(0.9, fitted.predict(given), fitted.sigma_))


def test_truncated_normal_distribution_is_inverted_in_both_tails():
    x = RNG.normal(size=300)
    given, target = problem((3.0 + x + 0.5 * RNG.normal(size=300)) ** 2, x)
    fitted = mcce.SqrtNormSampler().fit(given, target)
    u = np.linspace(0.01, 0.99, 300)
    assert (np.diff(fitted.at_ranks(given.take(np.zeros(300, dtype=int)), u)) > 0.0).all()
    back = fitted.at_ranks(given, fitted.ranks(given, target.values, RowStreams.from_seed(1, 300)))
    np.testing.assert_allclose(back, target.values, rtol=1e-9)


def test_levels_keep_their_order_and_missing_values_are_last():
    levels = pd.Categorical(["c", "a", "a", "b", None] * 20, categories=["c", "b", "a"])
    given, target = problem(levels)
    u = np.array([0.1, 0.3, 0.5, 0.79, 0.81])
    for sampler in (mcce.CatallSampler(prior=0.0), mcce.MarginalSampler(), mcce.CartSampler()):
        at = sampler.fit(given, target).at_ranks(given.take(np.zeros(5, dtype=int)), u)
        np.testing.assert_array_equal(at, [0.0, 1.0, 2.0, 2.0, np.nan])


def test_always_missing_column_is_missing_at_every_rank():
    given, target = problem(np.full(30, np.nan))
    for sampler in (mcce.CartSampler(), mcce.MarginalSampler(), mcce.NormSampler()):
        fitted = sampler.fit(given, target)
        ranks = fitted.ranks(given, target.values, RowStreams.from_seed(1, 30))
        assert stats.kstest(ranks, "uniform").pvalue > 0.001
        assert np.isnan(fitted.at_ranks(given, ranks)).all()


def test_mixture_is_inverted_by_bisection():
    parts = [
        DistributionFunctions(each.cdf, each.ppf, missing=np.full(U.size, share))
        for each, share in ((stats.norm(0.0, 1.0), 0.1), (stats.norm(5.0, 2.0), 0.0))
    ]
    mixed = DistributionFunctions.mixed(parts, np.array([0.3, 0.7]))
    at = mixed.inverse(U)
    expected = (0.27 * stats.norm.cdf(at) + 0.7 * stats.norm.cdf(at, 5.0, 2.0)) / 0.97
    np.testing.assert_allclose(expected, U, atol=1e-12)
    np.testing.assert_allclose(mixed.missing, 0.03)


def test_gridded_numbers_have_the_ranks_of_values_rounded_to_them():
    x = RNG.normal(size=3_000)
    values = np.rint(np.exp(1.0 + 0.3 * x + 0.3 * RNG.normal(size=3_000))) + 1.0
    given, target = problem(values.astype(np.int64), x)
    fitted = mcce.GammaSampler().fit(given, target)
    drawn = np.rint(fitted.sample(given, RowStreams.from_seed(1, 3_000)))
    bare = fitted.ranks(given, drawn, RowStreams.from_seed(2, 3_000))
    ranks = ranks_on_grid(fitted, given, RowStreams.from_seed(2, 3_000), target.feature, drawn)
    assert stats.kstest(ranks, "uniform").pvalue > 0.01
    assert np.abs(ranks - bare).max() > 0.01
    np.testing.assert_array_equal(np.rint(fitted.at_ranks(given, ranks)), drawn)


class OfNumbers(mcce.EstimatorSampler):
    handles = frozenset({"numeric"})


class OfLevels(mcce.EstimatorSampler):
    handles = frozenset({"categorical", "ordered"})


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_ranks, check_uniform_ranks, check_at_ranks])
@pytest.mark.parametrize(
    "sampler",
    [
        OfNumbers(LinearRegression()),
        OfNumbers(LinearRegression(), method="pmm"),
        OfNumbers(QuantileRegressor(alpha=0.0), method="quantiles", n_quantiles=9),
        OfLevels(LogisticRegression()),
    ],
    ids=["residuals", "pmm", "quantiles", "classifier"],
)
def test_estimators_have_ranks(sampler, check):
    check(sampler)


def test_smoothed_samplers_raise():
    given, target = problem(VALUES)
    for sampler in (mcce.CartSampler, mcce.PmmSampler, mcce.NormRankSampler):
        with pytest.raises(SamplerError, match="has no ranks, because its draws are smoothed; leave smoothing out"):
            sampler(smoothing="density").fit(given, target).at_ranks(given, np.full(200, 0.5))


def test_sampler_without_cdf_raises_and_lists_samplers_with_one():
    given, target = problem(VALUES)
    with pytest.raises(SamplerError, match=r"Normal\(\) has no distribution function, .*cart.*pmm"):
        Normal().fit(given, target).ranks(given, target.values, RowStreams.from_seed(1, 200))
