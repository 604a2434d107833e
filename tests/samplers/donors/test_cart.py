"""Donors from the leaves of a tree: known conditionals, missing values, supports, restricted draws, parameters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce import CartSampler, InputError, NotFittedError
from mcce.rng import RowStreams
from mcce.samplers import Within
from mcce.storage.learned import get_state, set_state
from tests.samplers.donors.cart_problem import N, draw, fit


def leaf_sizes(sampler):
    return sampler.tree_.size[sampler.tree_.feature < 0]


@pytest.fixture
def discrete():
    """y in {0, 1, 2} given a (3 levels) and b (2 levels), with known probabilities."""
    rng = np.random.default_rng(1)
    p = np.array(
        [
            [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]],
            [[0.3, 0.3, 0.4], [0.5, 0.4, 0.1]],
            [[0.1, 0.8, 0.1], [0.2, 0.3, 0.5]],
        ]
    )
    a, b = rng.integers(0, 3, N), rng.integers(0, 2, N)
    y = (rng.random(N)[:, None] > p[a, b].cumsum(axis=1)).sum(axis=1)
    return p, pd.DataFrame({"a": np.array(["p", "q", "r"])[a], "b": b, "y": np.array(["u", "v", "w"])[y]})


def test_discrete_conditional_is_recovered(discrete):
    p, frame = discrete
    sampler, given = fit(frame)
    for a in range(3):
        for b in range(2):
            row = np.flatnonzero((given.matrix == [a, b]).all(axis=1))[0]
            # as many draws as training rows in the cell: the test includes the noise of both
            n = int((given.matrix == [a, b]).all(axis=1).sum())
            counts = np.bincount(draw(sampler, given, row, n).astype(int), minlength=3)
            statistic = ((counts - n * p[a, b]) ** 2 / (n * p[a, b])).sum() / 2
            assert stats.chi2(2).sf(statistic) > 1e-4


def test_draws_follow_the_leaf_exactly(discrete):
    _, frame = discrete
    sampler, given = fit(frame)
    cell = (given.matrix == [1, 0]).all(axis=1)
    counts = np.bincount(draw(sampler, given, np.flatnonzero(cell)[0]).astype(int), minlength=3)
    shares = frame.loc[cell, "y"].value_counts(normalize=True).sort_index().to_numpy()
    assert stats.chisquare(counts, N * shares).pvalue > 1e-4


def test_numeric_conditional_is_recovered():
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 1, N)
    frame = pd.DataFrame({"x": x, "y": np.where(x < 0.3, rng.normal(0, 1, N), rng.exponential(5, N) + 10)})
    sampler, given = fit(frame, sampler=CartSampler(min_leaf=500))
    x_low, x_high = np.flatnonzero(x < 0.29)[:400], np.flatnonzero(x > 0.31)[:400]
    low = sampler.sample(given.take(x_low), RowStreams.from_seed(0, 400))
    high = sampler.sample(given.take(x_high), RowStreams.from_seed(1, 400))
    assert stats.kstest(low, stats.norm(0, 1).cdf).pvalue > 1e-4
    assert stats.kstest(high, stats.expon(10, 5).cdf).pvalue > 1e-4
    assert set(low) | set(high) <= set(frame["y"])


def test_ordered_target_is_recovered():
    rng = np.random.default_rng(3)
    p = np.array([[0.6, 0.3, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6]])
    g = rng.integers(0, 2, N)
    y = (rng.random(N)[:, None] > p[g].cumsum(axis=1)).sum(axis=1)
    grades = pd.Categorical.from_codes(y, ["d", "c", "b", "a"], ordered=True)
    sampler, given = fit(pd.DataFrame({"g": g, "y": grades}))
    for level in (0, 1):
        counts = np.bincount(draw(sampler, given, np.flatnonzero(g == level)[0], 5000).astype(int), minlength=4)
        possible = p[level] > 0
        assert counts[~possible].sum() == 0
        assert stats.chisquare(counts[possible], 5000 * p[level][possible]).pvalue > 1e-4


def test_numbers_are_missing_at_the_rate_of_their_group():
    rng = np.random.default_rng(4)
    g = rng.integers(0, 2, N)
    y = np.where(rng.random(N) < np.where(g == 1, 0.6, 0.1), np.nan, rng.normal(10.0 * g, 1.0))
    sampler, given = fit(pd.DataFrame({"g": g, "y": y}))
    for level, rate in ((0, 0.1), (1, 0.6)):
        drawn = draw(sampler, given, np.flatnonzero(g == level)[0], 5000)
        assert stats.binomtest(int(np.isnan(drawn).sum()), 5000, rate).pvalue > 1e-4
        assert stats.kstest(drawn[~np.isnan(drawn)][:1000], stats.norm(10.0 * level, 1.0).cdf).pvalue > 1e-4


@pytest.mark.parametrize("ordered", [False, True])
def test_levels_are_missing_at_the_rate_of_their_group(ordered):
    rng = np.random.default_rng(5)
    g = rng.integers(0, 2, N)
    p = np.array([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]])  # a, b, missing
    codes = (rng.random(N)[:, None] > p[g].cumsum(axis=1)).sum(axis=1)
    y = pd.Categorical(np.array(["a", "b", None], dtype=object)[codes], categories=["a", "b"], ordered=ordered)
    sampler, given = fit(pd.DataFrame({"g": g, "y": y}))
    for level in (0, 1):
        drawn = draw(sampler, given, np.flatnonzero(g == level)[0], 5000)
        counts = [(drawn == 0).sum(), (drawn == 1).sum(), np.isnan(drawn).sum()]
        assert stats.chisquare(counts, 5000 * p[level]).pvalue > 1e-4


@pytest.mark.parametrize(
    "y", [np.full(50, np.nan), pd.Categorical([None] * 50, categories=["a"], ordered=True), [None] * 50]
)
def test_always_missing_target_is_drawn_missing(y):
    sampler, given = fit(pd.DataFrame({"x": np.arange(50.0), "y": y}))
    assert np.isnan(draw(sampler, given, 0, 10)).all()
    assert sampler.supports(given, np.full(50, np.nan)).all()
    assert not sampler.supports(given, np.zeros(50)).any()


def test_missing_givens_form_a_separate_group():
    rng = np.random.default_rng(6)
    x = np.where(rng.random(2000) < 0.4, np.nan, rng.normal(size=2000))
    frame = pd.DataFrame({"x": x, "y": np.where(np.isnan(x), 5.0, -5.0) + rng.normal(size=2000)})
    sampler, given = fit(frame, sampler=CartSampler(min_leaf=50))
    assert draw(sampler, given, np.flatnonzero(np.isnan(x))[0], 200).min() > 0
    assert draw(sampler, given, np.flatnonzero(~np.isnan(x))[0], 200).max() < 0


# ---- supports


def test_number_between_distant_donors_is_not_supported():
    """The capital gain of the design page: 5000 between donors at 0 and 15000."""
    gain = np.array([0.0] * 30 + [15_000.0] * 20)
    sampler, given = fit(pd.DataFrame({"x": np.zeros(50), "y": gain}))
    values = np.array([0.0, 15_000.0, 5000.0, -1.0, 15_001.0, np.nan])
    assert sampler.supports(given.take(np.arange(6)), values).tolist() == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("donors", [[0.0, 15_000.0], [0.0, 15_000.0, 15_001.0], [0.0, 1.0, 15_000.0, 15_001.0]])
def test_few_distant_donors_do_not_support_values_between(donors):
    sampler, given = fit(pd.DataFrame({"x": 0.0, "y": donors}))
    assert not sampler.supports(given.take(np.zeros(1, dtype=int)), np.array([5000.0]))[0]
    assert sampler.supports(given.take(np.zeros(len(donors), dtype=int)), np.array(donors)).all()


def test_number_near_dense_donors_is_supported():
    sampler, given = fit(pd.DataFrame({"x": 0.0, "y": np.arange(20.0)}))
    values = np.array([3.5, 0.2, -0.2, 19.3])
    assert sampler.supports(given.take(np.zeros(4, dtype=int)), values).tolist() == [True, True, False, False]


def test_levels_in_the_leaf_are_supported():
    frame = pd.DataFrame({"g": [0] * 20 + [1] * 20, "y": ["a", "b"] * 10 + ["c"] * 20})
    sampler, given = fit(frame)
    rows = given.take(np.array([0, 0, 0, 39, 39, 39]))
    assert sampler.supports(rows, np.array([0.0, 1, 2, 0, 1, 2])).tolist() == [
        True,
        True,
        False,
        False,
        False,
        True,
    ]


def test_always_missing_target_supports_and_draws_no_number():
    g = np.arange(200) % 2
    sampler, given = fit(pd.DataFrame({"g": g, "y": np.where(g == 1, np.nan, np.arange(200.0))}))
    rows = given.take(np.array([0, 0, 1, 1]))
    assert sampler.supports(rows, np.array([50.0, np.nan, 50.0, np.nan])).tolist() == [
        True,
        False,
        False,
        True,
    ]
    drawn = sampler.sample(rows, RowStreams.from_seed(0, 4), Within(low=np.zeros(4)))
    assert np.isnan(drawn).tolist() == [False, False, True, True]


# ---- within


def test_restricted_numbers_are_uniform_among_allowed_donors():
    y = np.arange(10.0)
    sampler, given = fit(pd.DataFrame({"x": np.zeros(10), "y": y}), sampler=CartSampler(min_leaf=10))
    within = Within(low=np.full(N, 2.0), high=np.full(N, 6.5))
    values, counts = np.unique(draw(sampler, given, 0, N, within), return_counts=True)
    assert values.tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert stats.chisquare(counts).pvalue > 1e-4


def test_restricted_levels_follow_their_frequencies():
    frame = pd.DataFrame({"x": np.zeros(100), "y": ["a"] * 50 + ["b"] * 30 + ["c"] * 20})
    sampler, given = fit(frame)
    n = 7000
    within = Within(levels=np.tile([True, False, True], (n, 1)))
    values, counts = np.unique(draw(sampler, given, 0, n, within), return_counts=True)
    assert values.tolist() == [0.0, 2.0]
    assert stats.chisquare(counts, [5000, 2000]).pvalue > 1e-4


def test_rows_without_feasible_value_are_missing():
    sampler, given = fit(pd.DataFrame({"x": np.zeros(10), "y": np.arange(10.0)}))
    drawn = draw(sampler, given, 0, 3, Within(low=np.array([0.0, 20.0, 5.0]), high=np.array([9.0, 30.0, 4.0])))
    assert np.isnan(drawn).tolist() == [False, True, True]


def test_missing_donors_are_never_drawn_within_restrictions():
    frame = pd.DataFrame({"x": np.zeros(60), "y": pd.Categorical(["a", "b", None] * 20)})
    sampler, given = fit(frame)
    drawn = draw(sampler, given, 0, 300, Within(levels=np.tile([True, False], (300, 1))))
    assert (drawn == 0.0).all()


# ---- parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"min_split": 1}, "min_split of CartSampler is 1; it must be a whole number of at least 2"),
        ({"min_leaf": 0}, "min_leaf of CartSampler is 0; it must be a whole number of at least 1"),
        ({"min_leaf": 2.5}, "min_leaf of CartSampler is 2.5; it must be a whole number"),
        ({"max_depth": -1}, "max_depth of CartSampler is -1; it must be a whole number of at least 0"),
        ({"cp": -0.1}, "cp of CartSampler is -0.1; it must be None or a number of at least 0"),
        ({"cp": "small"}, "cp of CartSampler is 'small'; it must be None or a number"),
        ({"cp": float("nan")}, "cp of CartSampler is nan; it must be None or a number"),
        ({"cp": float("inf")}, "cp of CartSampler is inf; it must be None or a number"),
    ],
)
def test_invalid_parameters_raise_when_fitting(parameters, message):
    with pytest.raises(InputError, match=message):
        fit(pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}), sampler=CartSampler(**parameters))


@pytest.mark.parametrize("min_leaf", [1, 5, 40])
def test_leaves_have_at_least_min_leaf_rows(noisy, min_leaf):
    sampler, _ = fit(noisy, sampler=CartSampler(min_leaf=min_leaf))
    assert leaf_sizes(sampler).min() >= min_leaf
    assert leaf_sizes(sampler).sum() == 1000
    assert leaf_sizes(sampler).size > 1000 / min_leaf / 5


def test_nodes_below_min_split_are_not_split(noisy):
    sampler, _ = fit(noisy, sampler=CartSampler(min_leaf=1, min_split=300))
    split = sampler.tree_.feature >= 0
    assert sampler.tree_.size[split].min() >= 300


@pytest.mark.parametrize(("max_depth", "most"), [(0, 1), (1, 2), (3, 8)])
def test_tree_is_no_deeper_than_max_depth(noisy, max_depth, most):
    sampler, _ = fit(noisy, sampler=CartSampler(max_depth=max_depth))
    assert sampler.tree_.n_leaves == most


def test_cp_prunes_to_the_important_splits(noisy):
    full, _ = fit(noisy)
    pruned, given = fit(noisy, sampler=CartSampler(cp=0.05))
    assert full.tree_.n_leaves > 50
    assert pruned.tree_.n_leaves == 2
    assert pruned.tree_.feature[0] == 0
    assert fit(noisy, sampler=CartSampler(cp=2.0))[0].tree_.n_leaves == 1
    drawn = pruned.sample(given, RowStreams.from_seed(0, 1000))
    # step height 6 and noise 1: the correlation of the sign of x with y, and with the draws, is 3 / sqrt(10)
    assert np.corrcoef(np.sign(noisy["x"]), drawn)[0, 1] == pytest.approx(3 / np.sqrt(10), abs=0.02)


# ---- state


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", ["numeric", "categorical", "ordered"])
def test_restored_state_draws_supports_and_restricts_the_same(noisy, kind, missing):
    frame = noisy.assign(job=np.where(noisy["z"] > 0, "cook", "clerk"))
    if kind != "numeric":
        frame["y"] = pd.cut(frame["y"], 4, labels=list("abcd"), ordered=True)
    if kind == "categorical":
        frame["y"] = frame["y"].cat.as_unordered()
    if missing:
        frame["y"] = frame["y"].mask(frame["x"] > 1.0)
    sampler, given = fit(frame)
    restored = set_state(CartSampler(), get_state(sampler))
    streams = RowStreams.from_seed(0, 1000)
    drawn = sampler.sample(given, streams.child(0))
    np.testing.assert_array_equal(restored.sample(given, streams.child(0)), drawn)
    np.testing.assert_array_equal(restored.supports(given, drawn[::-1]), sampler.supports(given, drawn[::-1]))
    within = (
        Within(low=np.ones(1000)) if kind != "categorical" else Within(levels=np.tile([True, False] * 2, (1000, 1)))
    )
    np.testing.assert_array_equal(
        restored.sample(given, streams.child(1), within), sampler.sample(given, streams.child(1), within)
    )


def test_not_fitted():
    _, given = fit(pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}))
    with pytest.raises(NotFittedError, match=r"CartSampler\(min_leaf=9\) is not fitted; call fit"):
        CartSampler(min_leaf=9).sample(given, RowStreams.from_seed(0, 2))
    with pytest.raises(NotFittedError, match=r"CartSampler\(\) is not fitted"):
        CartSampler().supports(given, np.zeros(2))
    with pytest.raises(NotFittedError, match=r"CartSampler\(\) is not fitted"):
        get_state(CartSampler())
