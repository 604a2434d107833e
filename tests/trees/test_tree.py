"""Routing and drawing, against a walk of the tree in plain Python and chi-square tests at a fixed seed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.rng import RowStreams
from mcce.table import Schema
from mcce.trees.cart import grow, prune
from mcce.trees.tree import Tree

ALPHA = 1e-4
LETTERS = np.array(list("abcdefghij"))


def walk(tree, row):
    """Leaf of one encoded row, from the documentation of `Tree`."""
    node = 0
    while tree.feature[node] >= 0:
        x = row[tree.feature[node]]
        if np.isnan(x):
            left = bool(tree.missing_left[node])
        elif tree.mask_at[node] >= 0:
            left = bool(tree.masks[tree.mask_at[node] + int(x)])
        else:
            left = x < tree.threshold[node]
        node = tree.left[node] + (0 if left else 1)
    return node


def walk_all(tree, matrix):
    return np.array([walk(tree, row) for row in matrix])


def route_both_ways(tree, matrix):
    """Route as the tree likes, and once more beside a row of missing values, which takes the general way."""
    straight = tree.route(matrix)
    beside = tree.route(np.vstack([matrix, np.full((1, matrix.shape[1]), np.nan)]))[:-1]
    assert np.array_equal(straight, beside)
    for layout in (
        np.asfortranarray(matrix),
        np.ascontiguousarray(matrix),
        np.repeat(matrix, 2, axis=1)[:, ::2],
    ):
        assert np.array_equal(tree.route(layout), straight)
    return straight


def own_leaf(tree):
    """Leaf of each training row, read off the donors."""
    leaf = np.full(tree.donors.size, -1)
    for node in np.flatnonzero(tree.feature < 0):
        segment = tree.donors[tree.start[node] : tree.start[node] + tree.size[node]]
        assert (leaf[segment] == -1).all()
        leaf[segment] = node
    assert (leaf >= 0).all()
    return leaf


def fitted(n, seed, *, factors, missing, target="number", **limits):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=n), "k": rng.integers(0, 9, n), "z": rng.normal(size=n).round(2)})
    if factors:
        frame["job"] = LETTERS[rng.integers(0, 7, n)]
        frame["grade"] = pd.Categorical.from_codes(rng.integers(0, 4, n), LETTERS[:4], ordered=True)
        frame["town"] = pd.Categorical.from_codes(rng.integers(0, 90, n), range(200))
        frame["yes"] = pd.array(rng.random(n) < 0.5, dtype="boolean")
    score = frame["x"] * (frame["k"] > 3) + rng.normal(size=n) + (frame["job"] < "d" if factors else 0)
    if missing:
        frame = frame.mask(rng.random(frame.shape) < 0.15)
    frame["y"] = score if target == "number" else LETTERS[np.digitize(score, [-0.5, 0.2, 1.0])]
    table = Schema.from_data(frame).encode(frame)
    p = len(table.names) - 1
    given = table.first(p)
    return grow(given, table.column(p), **limits), given, table.column(p)


# ------------------------------------------------------------------ routing


@pytest.mark.parametrize("target", ["number", "classes"])
@pytest.mark.parametrize("factors", [False, True], ids=["numbers", "factors"])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("n", [1, 2, 37, 255, 256, 257, 2500])
def test_training_rows_land_in_the_leaf_that_holds_them(target, factors, missing, n):
    tree, given, _ = fitted(n, n, factors=factors, missing=missing, target=target, min_leaf=2)
    leaf = route_both_ways(tree, given.matrix)
    assert leaf.dtype == np.int32
    assert np.array_equal(leaf, own_leaf(tree))
    assert np.array_equal(leaf, walk_all(tree, given.matrix))


@pytest.mark.parametrize("factors", [False, True], ids=["numbers", "factors"])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_new_rows_land_where_a_walk_leads(factors, missing):
    tree, given, _ = fitted(1500, 3, factors=factors, missing=True, min_leaf=3)
    rng = np.random.default_rng(4)
    new = np.column_stack([rng.choice(column, 1000) for column in given.matrix.T])
    if not missing:
        new[np.isnan(new)] = 0.0
    new[:, 0] *= 10
    assert np.array_equal(route_both_ways(tree, new), walk_all(tree, new))


def test_a_matrix_known_to_be_complete_is_routed_alike():
    tree, given, _ = fitted(700, 5, factors=False, missing=False, min_leaf=2)
    assert np.array_equal(tree.route(given.matrix, complete=True), tree.route(given.matrix))


def test_no_rows_and_a_tree_of_one_leaf():
    tree, given, _ = fitted(300, 6, factors=True, missing=True, min_leaf=5)
    assert tree.route(given.matrix[:0]).shape == (0,)
    root = prune(tree, 1.0)
    assert root.route(given.matrix).tolist() == [0] * 300


@pytest.mark.parametrize("factors", [False, True], ids=["numbers", "factors"])
def test_missing_values_unseen_in_training_go_to_the_larger_child(factors):
    tree, given, _ = fitted(900, 7, factors=factors, missing=False, min_leaf=4)
    for node in np.flatnonzero(tree.feature >= 0):
        left, right = tree.size[tree.left[node]], tree.size[tree.left[node] + 1]
        assert tree.missing_left[node] == (left >= right)
    node = 0
    while tree.feature[node] >= 0:
        node = tree.left[node] + (0 if tree.size[tree.left[node]] >= tree.size[tree.left[node] + 1] else 1)
    assert tree.route(np.full((1, len(given.names)), np.nan)).tolist() == [node]


@pytest.mark.parametrize("target", ["number", "classes"])
def test_levels_absent_from_a_node_go_to_the_larger_child(target):
    tree, given, _ = fitted(1200, 8, factors=True, missing=True, target=target, min_leaf=4)
    checked = 0
    for node in np.flatnonzero(tree.mask_at >= 0):
        feature = tree.feature[node]
        rows = tree.donors[tree.start[node] : tree.start[node] + tree.size[node]]
        larger_left = tree.size[tree.left[node]] >= tree.size[tree.left[node] + 1]
        for level in set(range(given.features[feature].n_levels)) - set(given.matrix[rows, feature]):
            assert tree.masks[tree.mask_at[node] + int(level)] == larger_left
            checked += 1
        if not np.isnan(given.matrix[rows, feature]).any():
            assert tree.missing_left[node] == larger_left
    assert checked > 500


# ------------------------------------------------------------------ drawing


@pytest.fixture(scope="module")
def three_leaves():
    frame = pd.DataFrame({"x": np.repeat([0.0, 1.0, 2.0], [4, 9, 30])})
    frame["y"] = 100 * frame["x"] + np.arange(43)
    table = Schema.from_data(frame).encode(frame)
    tree = grow(table.first(1), table.column(1), min_leaf=4, max_depth=2)
    assert tree.n_leaves == 3
    return tree, table


@pytest.mark.parametrize(("x", "rows"), [(0.0, range(4)), (1.0, range(4, 13)), (2.0, range(13, 43))])
def test_donors_of_a_leaf_are_equally_likely(three_leaves, x, rows):
    tree, table = three_leaves
    n = 60_000
    leaf = tree.route(np.full((n, 1), x))
    drawn = tree.draw(leaf, table.matrix[tree.donors, 1], RowStreams.from_seed(1, n))
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [100 * x + row for row in rows]
    assert stats.chisquare(counts).pvalue > ALPHA


def test_a_row_s_draw_depends_on_its_own_stream_and_leaf_alone(three_leaves):
    tree, table = three_leaves
    leaf = tree.route(np.random.default_rng(1).integers(0, 3, (500, 1)).astype(float))
    values = table.matrix[tree.donors, 1]
    whole = tree.draw(leaf, values, RowStreams.from_seed(2, 500))
    order = np.random.default_rng(2).permutation(500)[:200]
    assert np.array_equal(tree.draw(leaf[order], values, RowStreams.from_seed(2, 500).take(order)), whole[order])


def test_two_draws_are_independent(three_leaves):
    tree, table = three_leaves
    n = 40_000
    rng = RowStreams.from_seed(3, n)
    leaf = tree.route(np.full((n, 1), 1.0))
    first, second = (tree.draw(leaf, table.matrix[tree.donors, 1], rng) for _ in range(2))
    assert stats.chi2_contingency(pd.crosstab(first, second)).pvalue > ALPHA


def within(tree, table, x, low, high, levels=None, seed=4):
    n = len(x)
    leaf = tree.route(np.asarray(x, dtype=float)[:, None])
    levels = np.empty((n, 0), dtype=bool) if levels is None else levels
    return tree.draw_within(leaf, table.matrix[tree.donors, 1], RowStreams.from_seed(seed, n), low, high, levels)


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


def test_bounds_are_closed_and_wide_ones_restrict_nothing(three_leaves):
    tree, table = three_leaves
    n = 2000
    assert set(within(tree, table, np.zeros(n), np.full(n, 1.0), np.full(n, 2.0))) == {1.0, 2.0}
    free = within(tree, table, np.ones(n), np.full(n, -np.inf), np.full(n, np.inf))
    leaf = tree.route(np.ones((n, 1)))
    assert np.array_equal(free, tree.draw(leaf, table.matrix[tree.donors, 1], RowStreams.from_seed(4, n)))


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


# ------------------------------------------------------------------ state


def test_a_tree_is_its_arrays():
    tree, given, _ = fitted(400, 9, factors=True, missing=True, min_leaf=3)
    state = tree.get_state()
    assert all(isinstance(part, np.ndarray) for name, part in state.items() if name != "type")
    copy = Tree.from_state({name: part if name == "type" else part.copy() for name, part in state.items()})
    assert np.array_equal(copy.route(given.matrix), tree.route(given.matrix))
    assert (copy.n_nodes, copy.n_leaves) == (tree.n_nodes, tree.n_leaves)
    assert tree.n_nodes == 2 * tree.n_leaves - 1
