"""Routing compared with a walk of the tree in plain Python."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.table import Schema
from mcce.trees.cart import grow, prune
from mcce.trees.tree import Tree
from tests.marks import nightly

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
    """Route normally, and again beside a row of missing values, which takes the general path."""
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
    """Return the leaf of each training row, read from the donors."""
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
@pytest.mark.parametrize("n", [1, 2, 37, 256, 257, *nightly(255, 2500)])
def test_training_rows_are_routed_to_their_leaf(target, factors, missing, n):
    tree, given, _ = fitted(n, n, factors=factors, missing=missing, target=target, min_leaf=2)
    leaf = route_both_ways(tree, given.matrix)
    assert leaf.dtype == np.int32
    assert np.array_equal(leaf, own_leaf(tree))
    assert np.array_equal(leaf, walk_all(tree, given.matrix))


@pytest.mark.parametrize("factors", [False, True], ids=["numbers", "factors"])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_new_rows_are_routed_like_a_walk(factors, missing):
    tree, given, _ = fitted(1500, 3, factors=factors, missing=True, min_leaf=3)
    rng = np.random.default_rng(4)
    new = np.column_stack([rng.choice(column, 1000) for column in given.matrix.T])
    if not missing:
        new[np.isnan(new)] = 0.0
    new[:, 0] *= 10
    assert np.array_equal(route_both_ways(tree, new), walk_all(tree, new))


def test_complete_matrix_is_routed_equally():
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


# ------------------------------------------------------------------ state


def test_tree_is_its_arrays():
    tree, given, _ = fitted(400, 9, factors=True, missing=True, min_leaf=3)
    state = tree.get_state()
    assert all(isinstance(part, np.ndarray) for name, part in state.items() if name != "type")
    copy = Tree.from_state({name: part if name == "type" else part.copy() for name, part in state.items()})
    assert np.array_equal(copy.route(given.matrix), tree.route(given.matrix))
    assert (copy.n_nodes, copy.n_leaves) == (tree.n_nodes, tree.n_leaves)
    assert tree.n_nodes == 2 * tree.n_leaves - 1
