"""Donors pooled from the trees of a forest: draws, supports, missing values, state, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce import ChainModel, ForestSampler, InputError, NotFittedError
from mcce.rng import RowStreams
from mcce.samplers import Within
from mcce.storage.learned import get_state, set_state
from mcce.testing import check_sampler
from mcce.testing.samplers import through_json
from tests.samplers.donors.forest_problem import LEVEL, encode, fit


def draw(sampler, given, row, n, within=None, seed=0):
    """Draw n times at one training row."""
    return sampler.sample(given.take(np.full(n, row)), RowStreams.from_seed(seed, n), within)


def leaf_of_row(tree, matrix, row):
    """Walk down the tree by hand (numbers only)."""
    node = 0
    while tree.feature[node] >= 0:
        node = tree.left[node] + int(not matrix[row, tree.feature[node]] < tree.threshold[node])
    return node


def pool_of(sampler, given, row):
    """Return the row's donors with their multiplicities, by hand."""
    parts = []
    for tree, values in zip(sampler.trees_, sampler.donor_values_):
        node = leaf_of_row(tree, given.matrix, row)
        parts.append(values[tree.start[node] : tree.start[node] + tree.size[node]])
    return np.concatenate(parts)


@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param({}, marks=pytest.mark.nightly),
        pytest.param({"max_features": None, "n_trees": 3}, marks=pytest.mark.nightly),
        pytest.param({"max_features": "sqrt", "n_trees": 5}, marks=pytest.mark.nightly),
        {"n_trees": 1},
    ],
)
def test_conformance(parameters):
    check_sampler(ForestSampler(**parameters), goodness_of_fit=True)


# ---- the draws


@pytest.mark.parametrize("max_features", [None, 1])
def test_draws_are_uniform_over_the_pooled_donors(smooth, max_features):
    sampler, given = fit(smooth, n_trees=6, max_features=max_features, min_leaf=4)
    for row in (0, 17, 255):
        values, copies = np.unique(pool_of(sampler, given, row), return_counts=True)
        assert values.size > 5
        assert copies.max() > 1
        drawn, counts = np.unique(draw(sampler, given, row, 10_000, seed=row), return_counts=True)
        np.testing.assert_array_equal(drawn, values)
        assert stats.chisquare(counts, 10_000 * copies / copies.sum()).pvalue > LEVEL


def test_restricted_draws_are_uniform_over_the_allowed_donors(smooth):
    sampler, given = fit(smooth, n_trees=6, min_leaf=4)
    pool = pool_of(sampler, given, 5)
    low, high = np.quantile(pool, [0.3, 0.8], method="nearest")
    values, copies = np.unique(pool[(pool >= low) & (pool <= high)], return_counts=True)
    n = 3000
    drawn = draw(sampler, given, 5, n, Within(low=np.full(n, low), high=np.full(n, high)))
    found, counts = np.unique(drawn, return_counts=True)
    np.testing.assert_array_equal(found, values)
    assert stats.chisquare(counts, n * copies / copies.sum()).pvalue > LEVEL
    nothing = draw(sampler, given, 5, 3, Within(low=np.full(3, pool.max() + 1)))
    assert np.isnan(nothing).all()


def test_pooled_donors_and_values_near_them_are_supported(smooth):
    """All numbers differ, so the distinct donors identify the training rows."""
    sampler, given = fit(smooth, n_trees=4)
    for row in (3, 200):
        pool = np.unique(pool_of(sampler, given, row))
        supported = sampler.supports(given.take(np.full(400, row)), smooth["y"].to_numpy())
        gap = sorted(np.diff(pool))[(pool.size - 2) // 2]
        expected = [pool[0] <= y <= pool[-1] and min(abs(y - donor) for donor in pool) <= gap for y in smooth["y"]]
        np.testing.assert_array_equal(supported, expected)
        assert pool.size < supported.sum() < 400


def test_discrete_conditional_is_recovered():
    rng = np.random.default_rng(4)
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.3, 0.4, 0.3]])
    n = 12_000
    g = rng.integers(0, 3, n)
    y = (rng.random(n)[:, None] > p[g].cumsum(axis=1)).sum(axis=1)
    frame = pd.DataFrame({"g": np.array(["p", "q", "r"])[g], "y": np.array(["u", "v", "w"])[y]})
    sampler, given = fit(frame)
    for level in range(3):
        rows = np.flatnonzero(g == level)
        # training noise is as large as that of as many draws, hence half the statistic
        counts = np.bincount(draw(sampler, given, rows[0], rows.size).astype(int), minlength=3)
        expected = rows.size * p[level]
        assert stats.chi2(2).sf(((counts - expected) ** 2 / expected).sum() / 2) > LEVEL


def test_numeric_conditional_is_recovered():
    rng = np.random.default_rng(5)
    n = 10_000
    x = rng.uniform(0, 1, n)
    frame = pd.DataFrame({"x": x, "y": np.where(x < 0.3, rng.normal(0, 1, n), rng.exponential(5, n) + 10)})
    sampler, given = fit(frame, min_leaf=400)
    for rows, truth in ((x < 0.28, stats.norm(0, 1)), (x > 0.32, stats.expon(10, 5))):
        taken = np.flatnonzero(rows)[:500]
        drawn = sampler.sample(given.take(taken), RowStreams.from_seed(0, 500))
        assert stats.kstest(drawn, truth.cdf).pvalue > LEVEL


def test_ordered_target_is_recovered():
    rng = np.random.default_rng(6)
    p = np.array([[0.6, 0.3, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6]])
    g = rng.integers(0, 2, 10_000)
    y = (rng.random(g.size)[:, None] > p[g].cumsum(axis=1)).sum(axis=1)
    grades = pd.Categorical.from_codes(y, ["d", "c", "b", "a"], ordered=True)
    sampler, given = fit(pd.DataFrame({"g": g, "y": grades}))
    for level in (0, 1):
        counts = np.bincount(draw(sampler, given, np.flatnonzero(g == level)[0], 3000).astype(int), minlength=4)
        possible = p[level] > 0
        assert counts[~possible].sum() == 0
        assert stats.chisquare(counts[possible], 3000 * p[level][possible]).pvalue > LEVEL


# ---- missing values


@pytest.mark.parametrize("kind", ["numeric", "categorical", "ordered"])
def test_target_is_missing_at_the_rate_of_its_group(kind):
    rng = np.random.default_rng(7)
    n = 8000
    g = rng.integers(0, 2, n)
    missing = rng.random(n) < np.where(g == 1, 0.6, 0.1)
    level = (rng.random(n) < np.where(g == 1, 0.8, 0.3)).astype(int)
    if kind == "numeric":
        y = np.where(missing, np.nan, rng.normal(10.0 * g, 1.0))
    else:
        names = np.array(["a", "b"], dtype=object)[level]
        y = pd.Categorical(np.where(missing, None, names), categories=["a", "b"], ordered=kind == "ordered")
    sampler, given = fit(pd.DataFrame({"g": g, "y": y}))
    for group, rate, share in ((0, 0.1, 0.3), (1, 0.6, 0.8)):
        drawn = draw(sampler, given, np.flatnonzero(g == group)[0], 2000)
        known = drawn[~np.isnan(drawn)]
        assert stats.binomtest(int(np.isnan(drawn).sum()), 2000, rate).pvalue > LEVEL
        if kind == "numeric":
            assert stats.kstest(known[:600], stats.norm(10.0 * group, 1.0).cdf).pvalue > LEVEL
        else:
            assert stats.binomtest(int(known.sum()), known.size, share).pvalue > LEVEL


@pytest.mark.parametrize(
    "y", [np.full(50, np.nan), pd.Categorical([None] * 50, categories=["a"], ordered=True), [None] * 50]
)
def test_always_missing_target_is_drawn_missing(y):
    sampler, given = fit(pd.DataFrame({"x": np.arange(50.0), "y": y}))
    assert np.isnan(draw(sampler, given, 0, 10)).all()
    assert sampler.supports(given, np.full(50, np.nan)).all()
    assert not sampler.supports(given, np.zeros(50)).any()


def test_always_missing_target_supports_and_draws_no_number():
    g = np.arange(200) % 2
    sampler, given = fit(pd.DataFrame({"g": g, "y": np.where(g == 1, np.nan, np.arange(200.0))}), n_trees=30)
    rows = given.take(np.array([0, 0, 1, 1]))
    assert sampler.supports(rows, np.array([50.0, np.nan, 50.0, np.nan])).tolist() == [True, False, False, True]
    drawn = sampler.sample(rows, RowStreams.from_seed(0, 4), Within(low=np.zeros(4)))
    assert np.isnan(drawn).tolist() == [False, False, True, True]


def test_missing_givens_form_a_separate_group():
    rng = np.random.default_rng(8)
    x = np.where(rng.random(1000) < 0.4, np.nan, rng.normal(size=1000))
    frame = pd.DataFrame({"x": x, "y": np.where(np.isnan(x), 5.0, -5.0) + rng.normal(size=1000)})
    sampler, given = fit(frame, min_leaf=30)
    assert draw(sampler, given, np.flatnonzero(np.isnan(x))[0], 200).min() > 0
    assert draw(sampler, given, np.flatnonzero(~np.isnan(x))[0], 200).max() < 0


# ---- state, parameters, threads


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", ["numeric", "categorical", "ordered"])
def test_restored_state_draws_supports_and_restricts_the_same(smooth, kind, missing):
    frame = smooth
    if kind != "numeric":
        frame = frame.assign(y=pd.cut(frame["y"], 4, labels=list("abcd"), ordered=True))
    if kind == "categorical":
        frame = frame.assign(y=frame["y"].cat.as_unordered())
    if missing:
        frame = frame.assign(y=frame["y"].mask(frame["x0"] > 1.0))
    sampler, given = fit(frame, n_trees=4)
    state = through_json(get_state(sampler))
    restored = set_state(ForestSampler(n_trees=4), state)
    streams = RowStreams.from_seed(0, 400)
    drawn = sampler.sample(given, streams.child(0))
    assert np.isnan(drawn).any() == missing
    np.testing.assert_array_equal(restored.sample(given, streams.child(0)), drawn)
    np.testing.assert_array_equal(restored.supports(given, drawn[::-1]), sampler.supports(given, drawn[::-1]))
    np.testing.assert_array_equal(restored.log_density(given, drawn), sampler.log_density(given, drawn))
    within = Within(levels=np.tile([True, False] * 2, (400, 1))) if kind == "categorical" else Within(low=np.ones(400))
    np.testing.assert_array_equal(
        restored.sample(given, streams.child(1), within), sampler.sample(given, streams.child(1), within)
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_trees": 0}, "n_trees of ForestSampler is 0; it must be a whole number of at least 1"),
        ({"min_split": 1}, "min_split of ForestSampler is 1; it must be a whole number of at least 2"),
        ({"min_leaf": 0}, "min_leaf of ForestSampler is 0; it must be a whole number of at least 1"),
        ({"max_depth": -1}, "max_depth of ForestSampler is -1; it must be a whole number of at least 0"),
        ({"random_state": None}, "random_state of ForestSampler is None; it must be a whole number of at least 0"),
        ({"max_features": "all"}, "max_features of ForestSampler is 'all'; allowed: 'third', 'sqrt', a share above 0"),
        ({"max_features": 0}, "max_features of ForestSampler is 0; allowed: 'third'"),
        ({"max_features": 0.0}, "max_features of ForestSampler is 0.0; allowed: 'third'"),
        ({"max_features": 1.5}, "max_features of ForestSampler is 1.5; allowed: 'third'"),
        ({"max_features": True}, "max_features of ForestSampler is True; allowed: 'third'"),
    ],
)
def test_invalid_parameters_raise_when_fitting(parameters, message):
    with pytest.raises(InputError, match=message):
        fit(pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}), **parameters)


def test_not_fitted(smooth):
    given, _ = encode(smooth)
    for call in (
        lambda s: s.sample(given, RowStreams.from_seed(0, 400)),
        lambda s: s.supports(given, np.zeros(400)),
        lambda s: s.log_density(given, np.zeros(400)),
        lambda s: get_state(s),
    ):
        with pytest.raises(NotFittedError, match=r"ForestSampler\(n_trees=3\) is not fitted; call fit"):
            call(ForestSampler(n_trees=3))


@pytest.mark.slow
def test_number_of_threads_does_not_matter(smooth):
    given, target = encode(smooth)
    alone = ForestSampler(n_trees=4).fit(given, target).sample(given, RowStreams.from_seed(0, 400))

    def work(_):
        return ForestSampler(n_trees=4).fit(given, target).sample(given, RowStreams.from_seed(0, 400))

    with ThreadPoolExecutor(4) as pool:
        for drawn in pool.map(work, range(8)):
            np.testing.assert_array_equal(drawn, alone)
    chains = [ChainModel(sampler="forest", fixed=["x0"], random_state=1, n_jobs=n).fit(smooth) for n in (1, 2)]
    pd.testing.assert_frame_equal(chains[0].sample(500), chains[1].sample(500))
