"""CART compared with scikit-learn's trees on numbers and with enumeration of all splits otherwise."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mcce.trees.cart import grow, prune
from tests.marks import nightly, nightly_but
from tests.trees.cart_cases import (
    LETTERS,
    best_decrease,
    check_tree,
    continuous,
    decrease,
    inner_nodes,
    leaves,
    mixed_frame,
    numbers,
    partition,
    rows_of,
    split_table,
)

# ------------------------------------------------------------------ scikit-learn


def node_rows_of_sklearn(model, X):
    reached = model.decision_path(X).tocsc()
    return [reached.indices[reached.indptr[k] : reached.indptr[k + 1]] for k in range(model.tree_.node_count)]


def compare_with_sklearn(tree, model, X, *, ties):
    """Walk both trees from the root; return the number of compared splits. With ties, they may differ."""
    theirs = model.tree_
    their_rows = node_rows_of_sklearn(model, X.astype(np.float32))
    their_impurity = theirs.impurity * theirs.n_node_samples
    pairs, compared = [(0, 0)], 0
    while pairs:
        node, twin = pairs.pop()
        assert set(rows_of(tree, node)) == set(their_rows[twin])
        if tree.impurity[0] > 0:
            assert tree.impurity[node] == pytest.approx(their_impurity[twin], rel=1e-6, abs=1e-6 * tree.impurity[0])
        assert (tree.feature[node] < 0) == (theirs.feature[twin] < 0)
        if tree.feature[node] < 0:
            continue
        left, twin_left, twin_right = tree.left[node], theirs.children_left[twin], theirs.children_right[twin]
        ours_gain = tree.impurity[node] - tree.impurity[left] - tree.impurity[left + 1]
        their_gain = their_impurity[twin] - their_impurity[twin_left] - their_impurity[twin_right]
        assert ours_gain == pytest.approx(their_gain, rel=1e-6, abs=1e-9 * tree.impurity[0])
        compared += 1
        same = set(rows_of(tree, left)) == set(their_rows[twin_left])
        if ties and not same:
            continue
        if not ties:
            assert tree.feature[node] == theirs.feature[twin]
        if tree.feature[node] == theirs.feature[twin]:
            assert tree.threshold[node] == pytest.approx(theirs.threshold[twin], rel=1e-12)
        pairs += [(left, twin_left), (left + 1, twin_right)]
    return compared


@pytest.mark.parametrize("n", [300, 1500], ids=["by histogram", "by sorted order"])
@pytest.mark.parametrize("seed", [0, *nightly(1, 2)])
@pytest.mark.parametrize(
    ("min_leaf", "min_split", "max_depth"), [(5, 2, None), (10, 40, None), (7, 14, 4), (150, 2, None)]
)
def test_regression_trees_match_sklearn(n, seed, min_leaf, min_split, max_depth):
    X, y = continuous(n, 4, seed)
    tree = grow(*numbers(X, y), min_leaf=min_leaf, min_split=min_split, max_depth=max_depth)
    model = DecisionTreeRegressor(
        min_samples_leaf=min_leaf, min_samples_split=min_split, max_depth=max_depth, random_state=0
    ).fit(X, y)
    assert compare_with_sklearn(tree, model, X, ties=False) == len(inner_nodes(tree))
    assert partition(tree) == {
        frozenset(np.flatnonzero(model.apply(X.astype(np.float32)) == leaf).tolist())
        for leaf in np.unique(model.apply(X.astype(np.float32)))
    }


@pytest.mark.parametrize("n", [300, 1500], ids=["by histogram", "by sorted order"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("min_leaf", [8, *nightly(1)])
def test_classification_trees_match_sklearn(n, n_classes, min_leaf):
    X, score = continuous(n, 4, n_classes)
    labels = np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))
    tree = grow(*numbers(X, LETTERS[labels]), min_leaf=min_leaf)
    model = DecisionTreeClassifier(min_samples_leaf=min_leaf, random_state=0).fit(X, labels)
    if n_classes == 2:  # mcce uses squared error there, which is half of Gini
        tree.impurity[:] *= 2
    assert compare_with_sklearn(tree, model, X, ties=True) >= 10


@pytest.mark.parametrize("seed", range(4))
def test_regression_on_integers_decreases_as_much_as_sklearn(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 8, size=(200, 3)).astype(float)
    y = X[:, 0] * X[:, 1] + rng.normal(size=200)
    tree = grow(*numbers(X, y), min_leaf=5)
    model = DecisionTreeRegressor(min_samples_leaf=5, random_state=0).fit(X, y)
    assert compare_with_sklearn(tree, model, X, ties=True) >= 8


# ------------------------------------------------------------------ all splits


@pytest.mark.parametrize("target", ["number", "tied number", "two classes", "ordered", "classes"])
@pytest.mark.parametrize("seed", nightly_but(range(24), *range(3), 20))
def test_every_split_is_the_best_of_all(target, seed):
    given, y = split_table(mixed_frame(seed, target))
    limits = {
        "min_leaf": 1 + seed % 5,
        "min_split": [2, 12][seed % 2],
        "max_depth": [None, 3, None][seed % 3],
    }
    check_tree(grow(given, y, **limits), given, y, **limits)


def test_splits_of_values_from_missing():
    """Only missingness separates the groups; the only cut sends all values to one side."""
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, np.nan, np.nan], "y": [0.0, 0.0, 0.0, 1.0, 1.0]})
    given, y = split_table(frame)
    tree = grow(given, y, min_leaf=1)
    check_tree(tree, given, y)
    assert partition(tree) == {frozenset([0, 1, 2]), frozenset([3, 4])}
    leaf = tree.route(np.array([[-1e300], [1e300], [np.nan]]))
    assert leaf[0] == leaf[1] != leaf[2]


@pytest.mark.parametrize("n_classes", [3, 4])
@pytest.mark.parametrize("seed", nightly_but(range(8), 0, 1))
def test_many_levels_and_classes_are_split_along_the_first_principal_component(n_classes, seed):
    """At least as good as the best cut along that component by numpy, and near the best of all subsets."""
    rng = np.random.default_rng(seed)
    n, levels = 900, 10
    job = rng.integers(0, levels, n)
    tilt = rng.dirichlet(np.ones(n_classes), levels)
    labels = np.array([rng.choice(n_classes, p=tilt[j]) for j in job])
    given, y = split_table(pd.DataFrame({"job": LETTERS[job], "y": LETTERS[labels]}))
    tree = grow(given, y, min_leaf=5, max_depth=1)
    check_tree(tree, given, y, min_leaf=5, max_depth=1, optimal=False)
    gain = tree.impurity[0] - tree.impurity[1] - tree.impurity[2]

    counts = np.array([[np.sum((job == j) & (labels == k)) for k in range(n_classes)] for j in range(levels)])
    weights = counts.sum(axis=1)
    shares = counts / weights[:, None] - counts.sum(axis=0) / n
    strengths, axes = np.linalg.eigh((shares * weights[:, None]).T @ shares)
    assert strengths[-1] > 1.2 * strengths[-2]
    order = np.argsort(shares @ axes[:, -1])
    along = [decrease(y.values, np.isin(job, order[:k]), True) for k in range(1, levels)]
    assert gain >= max(along) - 1e-9 * tree.impurity[0]
    best = best_decrease(given.features, given.matrix, np.arange(n), y.values, True, 5)
    assert best >= gain * (1 - 1e-12)
    assert gain >= 0.85 * best


def test_eight_levels_are_searched_exhaustively_and_missing_counts_as_one():
    rng = np.random.default_rng(5)
    job = rng.integers(0, 8, 200)
    frame = pd.DataFrame({"job": LETTERS[job], "y": LETTERS[(job * 5 + rng.integers(0, 3, 200)) % 4]})
    frame.loc[frame["job"] == "h", "job"] = None
    given, y = split_table(frame)
    tree = grow(given, y, min_leaf=3, max_depth=2)
    check_tree(tree, given, y, min_leaf=3, max_depth=2)


@pytest.mark.parametrize("target", ["number", "classes"])
def test_factor_of_300_levels(target):
    rng = np.random.default_rng(6)
    n = 6000
    codes = rng.integers(0, 290, n)  # ten levels never occur
    town = pd.Categorical.from_codes(codes, [f"town {k}" for k in range(300)])
    group = rng.permutation(300) % 3
    y = group[codes] + 0.01 * rng.normal(size=n) if target == "number" else LETTERS[group[codes]]
    given, y = split_table(pd.DataFrame({"town": town, "y": y}))
    tree = grow(given, y, min_leaf=5, max_depth=2)
    check_tree(tree, given, y, min_leaf=5, max_depth=2, optimal=False)
    assert tree.n_leaves >= 3
    for leaf in leaves(tree):  # two splits suffice to separate three groups
        assert np.unique(group[codes[rows_of(tree, leaf)]]).size == 1


# ------------------------------------------------------------------ pruning


def subtrees(tree, node):
    """All prunings of the subtree at `node`: tuples of leaves."""
    yield (node,)
    if tree.feature[node] >= 0:
        left = tree.left[node]
        for one, other in itertools.product(list(subtrees(tree, left)), list(subtrees(tree, left + 1))):
            yield one + other


@pytest.mark.parametrize("target", ["number", "two classes", "classes"])
@pytest.mark.parametrize("seed", nightly_but(range(6), 0, 1))
def test_pruning_finds_the_smallest_subtree_of_minimal_cost(target, seed):
    frame = mixed_frame(100 + seed, target)
    given, y = split_table(frame)
    full = grow(given, y, min_leaf=4)
    impurity = {chosen: sum(full.impurity[list(chosen)]) for chosen in subtrees(full, 0)}
    for cp in (0.002, 0.02, 0.05, 0.15):
        cost = {chosen: own + cp * full.impurity[0] * len(chosen) for chosen, own in impurity.items()}
        least = min(cost.values())
        near = [chosen for chosen, c in cost.items() if c <= least * (1 + 1e-12)]
        smallest = min(near, key=len)
        pruned = grow(given, y, min_leaf=4, cp=cp)
        assert partition(pruned) == {frozenset(rows_of(full, leaf).tolist()) for leaf in smallest}, cp
        check_tree(pruned, given, y, min_leaf=4, optimal=False)
        assert np.array_equal(pruned.route(given.matrix)[pruned.donors], np.repeat(*leaf_order(pruned))), cp


def leaf_order(tree):
    ordered = leaves(tree)[np.argsort(tree.start[leaves(tree)])]
    return ordered, tree.size[ordered]


def test_zero_cp_keeps_all_improvements_and_large_cp_none():
    X, y = continuous(300, 3, 1)
    given, y = numbers(X, y)
    full = grow(given, y, min_leaf=3)
    assert partition(prune(full, 0.0)) == partition(full)
    assert np.array_equal(prune(full, 0.0).threshold, full.threshold)
    root = prune(full, 1.0)
    assert root.n_nodes == root.n_leaves == 1
    assert root.route(given.matrix).tolist() == [0] * 300
    assert full.n_leaves > 10, "pruning must not change the tree it is given"


def test_cp_is_the_minimal_share_of_the_root_impurity():
    """One split that removes 36 of 37 parts of the impurity, one that removes 1."""
    y = np.array([0.0] * 4 + [5.0] * 2 + [7.0] * 2)
    given, y = numbers(np.arange(8.0)[:, None], y)
    full = grow(given, y, min_leaf=2)
    assert full.impurity[0] == pytest.approx(76)
    assert full.n_leaves == 3
    assert prune(full, 4 / 76 - 1e-9).n_leaves == 3
    assert prune(full, 4 / 76 + 1e-9).n_leaves == 2
    assert prune(full, 72 / 76 - 1e-9).n_leaves == 2
    assert prune(full, 72 / 76 + 1e-9).n_leaves == 1
