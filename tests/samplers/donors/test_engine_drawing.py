"""Draws from the pools of one tree and of several: chi-squared tests at a fixed seed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce import ForestSampler
from mcce.rng import RowStreams
from mcce.samplers.base import Within
from mcce.samplers.donors.engine import DonorForest
from mcce.table import Schema
from mcce.trees.cart import grow

ALPHA = 1e-4
LETTERS = np.array(list("abcdefghij"))


@pytest.fixture(scope="module")
def three_leaves():
    frame = pd.DataFrame({"x": np.repeat([0.0, 1.0, 2.0], [4, 9, 30])})
    frame["y"] = 100 * frame["x"] + np.arange(43)
    table = Schema.from_data(frame).encode(frame)
    tree = grow(table.first(1), table.column(1), min_leaf=4, max_depth=2)
    assert tree.n_leaves == 3
    return tree, table


def draw(tree, leaf, values, rng, within=None):
    forest = DonorForest.of([tree], [values])
    return forest.draw(leaf[None], rng) if within is None else forest.draw_within(leaf[None], rng, within)[0]


@pytest.mark.parametrize(("x", "rows"), [(0.0, range(4)), (1.0, range(4, 13)), (2.0, range(13, 43))])
def test_donors_of_a_leaf_are_equally_likely(three_leaves, x, rows):
    tree, table = three_leaves
    n = 60_000
    leaf = tree.route(np.full((n, 1), x))
    drawn = draw(tree, leaf, table.matrix[tree.donors, 1], RowStreams.from_seed(1, n))
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [100 * x + row for row in rows]
    assert stats.chisquare(counts).pvalue > ALPHA


def test_draw_depends_only_on_stream_and_leaf_of_the_row(three_leaves):
    tree, table = three_leaves
    leaf = tree.route(np.random.default_rng(1).integers(0, 3, (500, 1)).astype(float))
    values = table.matrix[tree.donors, 1]
    whole = draw(tree, leaf, values, RowStreams.from_seed(2, 500))
    order = np.random.default_rng(2).permutation(500)[:200]
    assert np.array_equal(draw(tree, leaf[order], values, RowStreams.from_seed(2, 500).take(order)), whole[order])


def test_two_draws_are_independent(three_leaves):
    tree, table = three_leaves
    n = 40_000
    rng = RowStreams.from_seed(3, n)
    leaf = tree.route(np.full((n, 1), 1.0))
    first, second = (draw(tree, leaf, table.matrix[tree.donors, 1], rng) for _ in range(2))
    assert stats.chi2_contingency(pd.crosstab(first, second)).pvalue > ALPHA


def within(tree, table, x, low, high, levels=None, seed=4):
    n = len(x)
    leaf = tree.route(np.asarray(x, dtype=float)[:, None])
    return draw(tree, leaf, table.matrix[tree.donors, 1], RowStreams.from_seed(seed, n), Within(low, high, levels))


def test_draws_within_bounds_are_uniform_over_the_allowed_donors(three_leaves):
    tree, table = three_leaves
    n = 40_000
    low, high = np.full(n, 215.0), np.full(n, 220.5)  # leaf 2 holds 213, 214, ..., 242
    drawn = within(tree, table, np.full(n, 2.0), low, high)
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [215, 216, 217, 218, 219, 220]
    assert stats.chisquare(counts).pvalue > ALPHA


def test_each_row_has_its_own_bounds_and_no_donor_gives_nan(three_leaves):
    tree, table = three_leaves
    rng = np.random.default_rng(5)
    n = 3000
    x = rng.integers(0, 3, n).astype(float)
    low = rng.uniform(-10, 250, n)
    high = low + rng.uniform(0, 60, n)
    drawn = within(tree, table, x, low, high)
    y = table.matrix[:, 1]
    possible = np.array([((table.matrix[:, 0] == g) & (y >= a) & (y <= b)).any() for g, a, b in zip(x, low, high)])
    assert possible.any()
    assert (~possible).any()
    assert np.array_equal(np.isnan(drawn), ~possible)
    assert ((drawn >= low) & (drawn <= high))[possible].all()
    assert np.array_equal(table.matrix[np.searchsorted(y, drawn[possible]), 0], x[possible])


def test_bounds_are_closed_and_wide_bounds_restrict_nothing(three_leaves):
    tree, table = three_leaves
    n = 2000
    assert set(within(tree, table, np.zeros(n), np.full(n, 1.0), np.full(n, 2.0))) == {1.0, 2.0}
    free = within(tree, table, np.ones(n), np.full(n, -np.inf), np.full(n, np.inf))
    leaf = tree.route(np.ones((n, 1)))
    assert np.array_equal(free, draw(tree, leaf, table.matrix[tree.donors, 1], RowStreams.from_seed(4, n)))


def test_draws_within_levels_are_uniform_over_the_allowed_donors():
    frame = pd.DataFrame(
        {"x": 0.0, "y": pd.Categorical.from_codes(np.repeat([0, 1, 2, 3], [10, 20, 5, 40]), LETTERS[:5])}
    )
    table = Schema.from_data(frame).encode(frame)
    tree = grow(table.first(1), table.column(1))
    n = 40_000
    unbounded = np.full(n, -np.inf), np.full(n, np.inf)
    allowed = np.tile([True, False, True, False, True], (n, 1))
    drawn = within(tree, table, np.zeros(n), *unbounded, allowed)
    counts = np.bincount(drawn.astype(int), minlength=5)
    assert counts[[1, 3, 4]].sum() == 0
    assert stats.chisquare(counts[[0, 2]], n * np.array([10, 5]) / 15).pvalue > ALPHA
    allowed = np.zeros((n, 5), dtype=bool)
    allowed[::2, 1] = allowed[1::2, 4] = True
    drawn = within(tree, table, np.zeros(n), *unbounded, allowed)
    assert (drawn[::2] == 1).all()
    assert np.isnan(drawn[1::2]).all()


# ---- several trees


@pytest.fixture(scope="module")
def forest():
    """A forest of four trees, its givens, and the pool of each row, assembled from the trees by hand."""
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"x": rng.normal(size=60), "z": rng.integers(0, 3, 60).astype(float)})
    frame["y"] = np.round(frame["x"] + frame["z"], 1)
    table = Schema.from_data(frame, {"z": "numeric"}).encode(frame)
    given = table.first(2)
    fitted = ForestSampler(n_trees=4, min_leaf=4).fit(given, table.column(2))
    pools = [[] for _ in range(60)]
    for tree in fitted.trees_:
        for i, leaf in enumerate(tree.route(given.matrix)):
            rows = tree.donors[tree.start[leaf] : tree.start[leaf] + tree.size[leaf]]
            pools[i].extend(table.matrix[rows, 2])
    return fitted, given, [np.array(pool) for pool in pools]


def test_pool_is_drawn_from_uniformly(forest):
    fitted, given, pools = forest
    n = 30_000
    for i in (0, 17):
        drawn = fitted.sample(given.take(np.full(n, i)), RowStreams.from_seed(i, n))
        values, counts = np.unique(drawn, return_counts=True)
        expected, times = np.unique(pools[i], return_counts=True)
        assert values.tolist() == expected.tolist()
        assert stats.chisquare(counts, n * times / pools[i].size).pvalue > ALPHA


def test_donors_of_a_pool_are_numbered_tree_by_tree(forest):
    """The draws of a seed: the pool's donor at floor(u m), or, restricted, at floor(u k) among the k allowed ones."""
    fitted, given, pools = forest
    uniform = RowStreams.from_seed(7, 60).uniform()
    drawn = fitted.sample(given, RowStreams.from_seed(7, 60))
    assert drawn.tolist() == [pool[int(u * pool.size)] for u, pool in zip(uniform, pools)]
    low = np.linspace(-3.0, 4.0, 60)
    drawn = fitted.sample(given, RowStreams.from_seed(7, 60), Within(low, low + 0.6))
    allowed = [pool[(pool >= a) & (pool <= a + 0.6)] for pool, a in zip(pools, low)]
    expected = [pool[int(u * pool.size)] if pool.size else np.nan for u, pool in zip(uniform, allowed)]
    np.testing.assert_array_equal(drawn, expected)
    assert 5 < np.isnan(drawn).sum() < 55
