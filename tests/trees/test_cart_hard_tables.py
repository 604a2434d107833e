"""CART on degenerate tables, and invariances of a tree."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.table import Column, Schema
from mcce.trees.cart import grow
from tests.trees.cart_cases import (
    LETTERS,
    check_tree,
    continuous,
    depth_of_nodes,
    inner_nodes,
    mixed_frame,
    numbers,
    partition,
    split_table,
)

# ------------------------------------------------------------------ degenerate data


def test_one_row():
    tree = grow(*numbers([[1.0, 2.0]], [3.0]), min_leaf=1)
    assert tree.n_nodes == 1
    assert tree.donors.tolist() == [0]
    assert tree.route(np.array([[5.0, np.nan]])).tolist() == [0]


def test_fewer_rows_than_a_leaf_needs():
    tree = grow(*numbers([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0]), min_leaf=5)
    assert tree.n_nodes == 1


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1 / 3, 1e-300, 1e300, 123456.789])
@pytest.mark.parametrize("n", [3, 1000, 5000])
def test_constant_target_is_one_leaf(value, n):
    x = np.random.default_rng(1).normal(size=(n, 2))
    tree = grow(*numbers(x, np.full(n, value)), min_leaf=1)
    assert tree.n_nodes == 1
    assert tree.impurity[0] == 0


@pytest.mark.parametrize("y", [["a"] * 9, [True] * 9], ids=["level", "boolean"])
def test_constant_level_is_one_leaf(y):
    frame = pd.DataFrame({"x": range(9), "y": y})
    assert grow(*split_table(frame), min_leaf=1).n_nodes == 1


def test_one_class_of_many_is_one_leaf():
    frame = pd.DataFrame({"x": range(9), "y": pd.Categorical(["b"] * 9, list("abcd"))})
    tree = grow(*split_table(frame), min_leaf=1)
    assert tree.n_nodes == 1
    assert tree.impurity[0] == 0


def test_target_constant_in_a_node_is_not_split_further():
    """Two groups of equal decimals: exactly one split for any rounding of their means."""
    y = np.repeat([0.1, 0.7], 5000)
    x = np.arange(10_000.0)
    noise = np.random.default_rng(1).normal(size=10_000)
    tree = grow(*numbers(np.column_stack([noise, x]), y), min_leaf=1)
    assert partition(tree) == {frozenset(range(5000)), frozenset(range(5000, 10_000))}


def test_constant_predictors_are_one_leaf():
    frame = pd.DataFrame({"a": 1.0, "b": "x", "c": pd.Categorical(["u"] * 8, list("tuv")), "y": range(8)})
    assert grow(*split_table(frame), min_leaf=1).n_nodes == 1


def test_no_columns():
    given, y = numbers([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])
    tree = grow(given.first(0), y, min_leaf=1)
    assert tree.n_nodes == 1
    assert sorted(tree.donors.tolist()) == [0, 1, 2]
    assert tree.route(np.empty((4, 0))).tolist() == [0] * 4


@pytest.mark.parametrize("y", [np.arange(6.0), list("abcabc")], ids=["number", "classes"])
def test_predictor_without_values(y):
    frame = pd.DataFrame({"gone": [np.nan] * 6, "never": pd.Series([None] * 6, dtype="str"), "x": range(6), "y": y})
    given, target = split_table(frame)
    tree = grow(given, target, min_leaf=1)
    check_tree(tree, given, target)
    assert set(tree.feature[inner_nodes(tree)]) == {2}
    assert grow(given.first(2), target, min_leaf=1).n_nodes == 1


def test_missing_target_raises():
    given, y = numbers([[1.0], [2.0]], [1.0, np.nan])
    with pytest.raises(InputError, match="the target 'y' of a tree has missing values; model them separately"):
        grow(given, y)


@pytest.mark.parametrize("low", [1.0, -1.0, 0.0, 1e300, -0.1, 4503599627370496.5, -5e-324])
@pytest.mark.parametrize("n", [1, 800], ids=["by histogram", "by sorted order"])
def test_threshold_separates_neighbouring_floats(low, n):
    high = np.nextafter(low, np.inf)
    below = low - np.arange(n)[::-1] * abs(low) / 4
    above = high + np.arange(n) * abs(high) / 4
    x = np.concatenate([below, above])
    given, y = numbers(x[:, None], np.repeat([0.0, 1.0], n))
    tree = grow(given, y, min_leaf=1)
    assert partition(tree) == {frozenset(range(n)), frozenset(range(n, 2 * n))}
    leaf = tree.route(given.matrix)
    assert np.unique(leaf[:n]).size == np.unique(leaf[n:]).size == 1
    assert leaf[0] != leaf[-1]


def test_threshold_lies_between_the_largest_floats():
    largest = np.finfo(float).max
    given, y = numbers([[-largest], [largest], [0.9 * largest]], [0.0, 1.0, 1.0])
    tree = grow(given, y, min_leaf=1)
    assert partition(tree) == {frozenset([0]), frozenset([1, 2])}
    leaf = tree.route(given.matrix)
    assert leaf[0] != leaf[1] == leaf[2]


@pytest.mark.parametrize("offset", [1e6, 1e9, -1e12])
@pytest.mark.parametrize("n", [300, 1500], ids=["by histogram", "by sorted order"])
def test_large_offset_of_the_target_does_not_matter(offset, n):
    X, y = continuous(n, 3, 4)
    y = np.round(y * 4096) / 4096  # exact beside the offset
    near, far = grow(*numbers(X, y), min_leaf=20), grow(*numbers(X, y + offset), min_leaf=20)
    assert np.array_equal(near.feature, far.feature)
    assert np.array_equal(near.threshold, far.threshold)
    assert np.array_equal(near.donors, far.donors)
    np.testing.assert_allclose(near.impurity, far.impurity, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e9, 1e150])
def test_scale_of_the_target_does_not_matter(scale):
    X, y = continuous(300, 3, 5)
    near, far = grow(*numbers(X, y), min_leaf=5), grow(*numbers(X, y * scale), min_leaf=5)
    assert partition(near) == partition(far)


@pytest.mark.parametrize("target", ["number", "two classes", "classes"])
@pytest.mark.parametrize("n", [200, 1500], ids=["by histogram", "by sorted order"])
def test_first_of_equal_columns_is_taken(target, n):
    rng = np.random.default_rng(7)
    x, job = rng.normal(size=n), LETTERS[rng.integers(0, 5, n)]
    labels = np.digitize(x + rng.normal(size=n), [-0.5, 0.5])
    y = {"number": x + rng.normal(size=n), "two classes": labels > 1, "classes": LETTERS[labels]}[target]
    frame = pd.DataFrame({"job": job, "x": x, "job again": job, "x again": x, "y": y})
    tree = grow(*split_table(frame), min_leaf=5)
    assert tree.n_leaves > 5
    assert set(tree.feature[inner_nodes(tree)]) <= {0, 1}


def test_first_of_equally_good_cuts_is_taken():
    given, y = numbers(np.arange(4.0)[:, None], [0.0, 1.0, 0.0, 1.0])
    tree = grow(given, y, min_leaf=1, max_depth=1)
    assert tree.threshold[0] == 0.5


def test_tree_as_deep_as_the_number_of_rows():
    n = 2000
    y = np.exp2(np.linspace(-400, 400, n))  # the best cut separates the largest value each time
    given, target = numbers(np.arange(n)[:, None], y)
    tree = grow(given, target, min_leaf=1)
    assert depth_of_nodes(tree).max() > 300
    assert partition(tree) == {frozenset([row]) for row in range(n)}
    assert np.array_equal(tree.donors[tree.start[tree.route(given.matrix)]], np.arange(n))


def test_sorted_target_makes_every_row_a_leaf():
    n = 2000
    given, target = numbers(np.arange(n)[:, None], np.arange(n) ** 2.0)
    tree = grow(given, target, min_leaf=1)
    assert partition(tree) == {frozenset([row]) for row in range(n)}
    assert np.array_equal(tree.donors[tree.start[tree.route(given.matrix)]], np.arange(n))


# ------------------------------------------------------------------ invariance


@pytest.mark.parametrize("n", [40, 1200])
@pytest.mark.parametrize("target", ["number", "classes"])
def test_row_order_does_not_matter(n, target):
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        {
            "x": pd.Series(rng.normal(size=n)).where(rng.random(n) > 0.1),
            "job": LETTERS[rng.integers(0, 6, n)],
            "z": rng.normal(size=n),
        }
    )
    frame["y"] = frame["z"] * (frame["job"] < "c") + rng.normal(size=n)
    if target == "classes":
        frame["y"] = LETTERS[np.digitize(frame["y"], [-0.7, 0.1, 0.6])]
    order = rng.permutation(n)
    given, y = split_table(frame)
    mixed_given, mixed_y = split_table(frame.iloc[order])
    limits = {"min_leaf": 5, "max_depth": 3 if target == "classes" else None}
    straight, mixed = grow(given, y, **limits), grow(mixed_given, mixed_y, **limits)
    assert partition(straight) == {frozenset(order[list(rows)].tolist()) for rows in partition(mixed)}


def test_tree_on_some_columns_equals_one_on_a_table_of_them():
    """`first` and `select` share the ranking of their root; the tree must not depend on it."""
    frame = mixed_frame(3, "number").assign(extra=lambda f: f["y"].rank())
    table = Schema.from_data(frame).encode(frame)
    y = table.column(table.names.index("y"))
    p = len(table.names) - 2
    for columns in ([0], list(range(p)), [p + 1], [p + 1, 0], list(range(p))[::-1]):
        cut = table.select(columns)
        own = Schema.from_data(frame[cut.names]).encode(frame[cut.names])
        one, other = grow(cut, y, min_leaf=2), grow(own, y, min_leaf=2)
        assert np.array_equal(one.feature, other.feature)
        assert np.array_equal(one.threshold, other.threshold)
        assert np.array_equal(one.donors, other.donors)
    first = grow(table.first(p), y, min_leaf=2)
    assert np.array_equal(first.donors, grow(table.select(list(range(p))), y, min_leaf=2).donors)


def test_growing_does_not_modify_the_shared_ranking():
    X, y = continuous(1500, 3, 9)
    given, y = numbers(X, y)
    first, second = grow(given, y, min_leaf=5), grow(given, y, min_leaf=5)
    assert np.array_equal(first.donors, second.donors)
    assert np.array_equal(first.threshold, second.threshold)
    other = grow(given, Column(y.feature, -y.values), min_leaf=5)
    assert partition(first) == partition(other)


@pytest.mark.parametrize("scale", [3.0, -1.0])
def test_monotone_changes_of_a_predictor_keep_the_partition(scale):
    X, y = continuous(400, 3, 10)
    changed = X.copy()
    changed[:, 0] = scale * np.exp(X[:, 0])
    assert partition(grow(*numbers(X, y), min_leaf=5)) == partition(grow(*numbers(changed, y), min_leaf=5))
