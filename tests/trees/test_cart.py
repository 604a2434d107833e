"""CART, against scikit-learn's trees on numbers and the enumeration of all splits on everything else."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mcce.exceptions import InputError
from mcce.table import Column, Schema
from mcce.trees.cart import grow, prune

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
TOLERANCE = 1e-9  # of the node's impurity, for sums taken in different order


def split_table(frame, target="y", kinds=None):
    """Encode `frame`; return (given, target column)."""
    table = Schema.from_data(frame, kinds).encode(frame)
    at = table.names.index(target)
    return table.select([j for j in range(len(table.names)) if j != at]), table.column(at)


def numbers(X, y):
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(np.shape(X)[1])])
    return split_table(frame.assign(y=y))


def rows_of(tree, node):
    return tree.donors[tree.start[node] : tree.start[node] + tree.size[node]]


def inner_nodes(tree):
    return np.flatnonzero(tree.feature >= 0)


def leaves(tree):
    return np.flatnonzero(tree.feature < 0)


def partition(tree):
    return {frozenset(rows_of(tree, leaf).tolist()) for leaf in leaves(tree)}


def depth_of_nodes(tree):
    depth = np.zeros(tree.n_nodes, dtype=int)
    for node in inner_nodes(tree):
        depth[tree.left[node] : tree.left[node] + 2] = depth[node] + 1
    return depth


def goes_left(tree, node, column):
    """Apply the rule of one split to encoded values, spelled out from the documentation of `Tree`."""
    missing = np.isnan(column)
    if tree.mask_at[node] >= 0:
        level = np.where(missing, 0, column).astype(int)
        left = tree.masks[tree.mask_at[node] + level]
    else:
        left = column < tree.threshold[node]
    return np.where(missing, tree.missing_left[node], left)


def impurity_of(values, is_classes):
    """Sum of squares, or size times Gini, straight from the definition."""
    if is_classes:
        shares = np.unique(values, return_counts=True)[1] / values.size
        return values.size * (1 - np.sum(shares**2))
    return np.sum((values - values.mean()) ** 2)


def is_classes(feature):
    return feature.kind == "categorical" and feature.n_levels > 2


def all_splits(feature, column, values_to_order_by=None):
    """Every way to send a node's rows left by one column: cuts, missing on either side, or subsets of levels.

    The best subset is a cut of the levels ordered by mean response only if sides of any size are admissible.
    With larger leaves CART (and rpart) tries those cuts alone: `values_to_order_by`. Equal means stay as one.
    """
    missing = np.isnan(column)
    values = np.unique(column[~missing])
    if feature.kind == "categorical" and feature.n_levels > 2:
        codes = np.where(missing, -1, column)
        present = np.unique(codes)
        if values_to_order_by is not None:
            means = pd.Series(values_to_order_by).groupby(codes).transform("mean").round(9).to_numpy()
            yield from (means < cut for cut in np.unique(means)[1:])
            return
        for size in range(1, present.size):
            for chosen in itertools.combinations(present, size):
                if present[0] in chosen:
                    yield np.isin(codes, chosen)
        return
    for cut in values[1:]:
        yield np.where(missing, False, column < cut)
        if missing.any():
            yield np.where(missing, True, column < cut)
    if missing.any() and values.size:
        yield missing


def decrease(values, left, classes):
    return impurity_of(values, classes) - impurity_of(values[left], classes) - impurity_of(values[~left], classes)


def best_decrease(features, matrix, rows, values, classes, min_leaf):
    best = 0.0
    along_means = values[rows] if min_leaf > 1 and not classes else None
    for j, feature in enumerate(features):
        for left in all_splits(feature, matrix[rows, j], along_means):
            if min_leaf <= left.sum() <= rows.size - min_leaf:
                best = max(best, decrease(values[rows], left, classes))
    return best


def check_tree(tree, given, target, *, min_split=2, min_leaf=1, max_depth=None, optimal=True):
    """Check structure, partition and optimality of every node, by enumeration."""
    classes = is_classes(target.feature)
    depth = depth_of_nodes(tree)
    assert sorted(tree.donors.tolist()) == list(range(target.values.size))
    assert tree.n_leaves == len(inner_nodes(tree)) + 1
    for node in range(tree.n_nodes):
        rows = rows_of(tree, node)
        values = target.values[rows]
        scale = TOLERANCE * max(impurity_of(values, classes), 1e-300)
        assert tree.impurity[node] == pytest.approx(impurity_of(values, classes), rel=1e-9, abs=1e-12)
        stopped = rows.size < min_split or (max_depth is not None and depth[node] >= max_depth)
        best = 0.0
        if optimal and not stopped:
            best = best_decrease(given.features, given.matrix, rows, target.values, classes, min_leaf)
        if tree.feature[node] < 0:
            assert best <= 1e-10 * max(1.0, impurity_of(values, classes)), "a leaf with an admissible improving split"
            continue
        assert not stopped
        left = goes_left(tree, node, given.matrix[rows, tree.feature[node]])
        assert set(rows[left]) == set(rows_of(tree, tree.left[node]))
        assert set(rows[~left]) == set(rows_of(tree, tree.left[node] + 1))
        assert min(left.sum(), (~left).sum()) >= min_leaf
        assert decrease(values, left, classes) > 0
        assert decrease(values, left, classes) >= best - scale


# ------------------------------------------------------------------ scikit-learn


def node_rows_of_sklearn(model, X):
    reached = model.decision_path(X).tocsc()
    return [reached.indices[reached.indptr[k] : reached.indptr[k + 1]] for k in range(model.tree_.node_count)]


def compare_with_sklearn(tree, model, X, *, ties):
    """Walk both trees from the root; return the number of splits compared. With ties, they may part."""
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


def continuous(n, p, seed):
    """Numbers without ties that float32, which scikit-learn computes in, holds exactly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(np.float32).astype(float)
    assert all(np.unique(column).size == n for column in X.T)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("n", [300, 1500], ids=["by histogram", "by sorted order"])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("min_leaf", "min_split", "max_depth"), [(5, 2, None), (10, 40, None), (7, 14, 4), (150, 2, None)]
)
def test_regression_trees_equal_those_of_sklearn(n, seed, min_leaf, min_split, max_depth):
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
@pytest.mark.parametrize("min_leaf", [1, 8])
def test_classification_trees_equal_those_of_sklearn(n, n_classes, min_leaf):
    X, score = continuous(n, 4, n_classes)
    labels = np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))
    tree = grow(*numbers(X, LETTERS[labels]), min_leaf=min_leaf)
    model = DecisionTreeClassifier(min_samples_leaf=min_leaf, random_state=0).fit(X, labels)
    if n_classes == 2:  # we count squared error there, which is half of Gini
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


def mixed_frame(seed, target):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 41))
    levels = int(rng.integers(2, 7))

    def with_gaps(values):
        return pd.Series(values).where(rng.random(n) > rng.choice([0.0, 0.2]))

    frame = pd.DataFrame(
        {
            "number": with_gaps(rng.normal(size=n).round(1)),
            "count": rng.integers(0, 5, n),
            "grade": pd.Categorical.from_codes(rng.integers(-1, 4, n), LETTERS[:4], ordered=True),
            "yes": rng.random(n) < 0.4,
            "job": with_gaps(LETTERS[rng.integers(0, levels, n)]).astype("str"),
            "town": pd.Categorical.from_codes(rng.integers(0, 4, n), LETTERS[:6]),
        }
    )[list(rng.permutation(["number", "count", "grade", "yes", "job", "town"]))[: rng.integers(2, 7)]]
    classes = int(rng.integers(3, 6))
    return frame.assign(
        y={
            "number": rng.normal(size=n),
            "tied number": rng.integers(0, 4, n).astype(float),
            "two classes": rng.random(n) < 0.5,
            "ordered": pd.Categorical.from_codes(rng.integers(0, 5, n), LETTERS[:5], ordered=True),
            "classes": pd.Categorical.from_codes(rng.integers(0, classes, n), LETTERS[:classes]),
        }[target]
    )


@pytest.mark.parametrize("target", ["number", "tied number", "two classes", "ordered", "classes"])
@pytest.mark.parametrize("seed", range(24))
def test_every_split_is_the_best_of_all(target, seed):
    given, y = split_table(mixed_frame(seed, target))
    limits = {
        "min_leaf": 1 + seed % 5,
        "min_split": [2, 12][seed % 2],
        "max_depth": [None, 3, None][seed % 3],
    }
    check_tree(grow(given, y, **limits), given, y, **limits)


def test_splits_between_values_and_missing_alone():
    """Nothing but being missing tells the groups apart; the only cut sends all values to one side."""
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, np.nan, np.nan], "y": [0.0, 0.0, 0.0, 1.0, 1.0]})
    given, y = split_table(frame)
    tree = grow(given, y, min_leaf=1)
    check_tree(tree, given, y)
    assert partition(tree) == {frozenset([0, 1, 2]), frozenset([3, 4])}
    leaf = tree.route(np.array([[-1e300], [1e300], [np.nan]]))
    assert leaf[0] == leaf[1] != leaf[2]


@pytest.mark.parametrize("n_classes", [3, 4])
@pytest.mark.parametrize("seed", range(8))
def test_many_levels_and_classes_are_cut_along_the_first_principal_component(n_classes, seed):
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
def test_a_factor_of_300_levels(target):
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
    for leaf in leaves(tree):  # two splits suffice to tell three groups apart
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
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cp", [0.002, 0.02, 0.05, 0.15])
def test_pruning_finds_the_smallest_subtree_of_least_cost(target, seed, cp):
    frame = mixed_frame(100 + seed, target)
    given, y = split_table(frame)
    full = grow(given, y, min_leaf=4)
    cost = {
        chosen: sum(full.impurity[list(chosen)]) + cp * full.impurity[0] * len(chosen) for chosen in subtrees(full, 0)
    }
    least = min(cost.values())
    near = [chosen for chosen, c in cost.items() if c <= least * (1 + 1e-12)]
    smallest = min(near, key=len)
    pruned = grow(given, y, min_leaf=4, cp=cp)
    assert partition(pruned) == {frozenset(rows_of(full, leaf).tolist()) for leaf in smallest}
    check_tree(pruned, given, y, min_leaf=4, optimal=False)
    assert np.array_equal(pruned.route(given.matrix)[pruned.donors], np.repeat(*leaf_order(pruned)))


def leaf_order(tree):
    ordered = leaves(tree)[np.argsort(tree.start[leaves(tree)])]
    return ordered, tree.size[ordered]


def test_cp_0_keeps_all_that_improves_and_a_large_cp_nothing():
    X, y = continuous(300, 3, 1)
    given, y = numbers(X, y)
    full = grow(given, y, min_leaf=3)
    assert partition(prune(full, 0.0)) == partition(full)
    assert np.array_equal(prune(full, 0.0).threshold, full.threshold)
    root = prune(full, 1.0)
    assert root.n_nodes == root.n_leaves == 1
    assert root.route(given.matrix).tolist() == [0] * 300
    assert full.n_leaves > 10, "pruning must not change the tree it is given"


def test_cp_is_the_share_of_the_root_s_impurity_that_a_split_must_take_away():
    """One split that takes 36 of 37 parts of the impurity, one that takes 1."""
    y = np.array([0.0] * 4 + [5.0] * 2 + [7.0] * 2)
    given, y = numbers(np.arange(8.0)[:, None], y)
    full = grow(given, y, min_leaf=2)
    assert full.impurity[0] == pytest.approx(76)
    assert full.n_leaves == 3
    assert prune(full, 4 / 76 - 1e-9).n_leaves == 3
    assert prune(full, 4 / 76 + 1e-9).n_leaves == 2
    assert prune(full, 72 / 76 - 1e-9).n_leaves == 2
    assert prune(full, 72 / 76 + 1e-9).n_leaves == 1


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
def test_a_constant_target_is_one_leaf(value, n):
    x = np.random.default_rng(1).normal(size=(n, 2))
    tree = grow(*numbers(x, np.full(n, value)), min_leaf=1)
    assert tree.n_nodes == 1
    assert tree.impurity[0] == 0


@pytest.mark.parametrize("y", [["a"] * 9, [True] * 9], ids=["level", "boolean"])
def test_a_constant_level_is_one_leaf(y):
    frame = pd.DataFrame({"x": range(9), "y": y})
    assert grow(*split_table(frame), min_leaf=1).n_nodes == 1


def test_one_class_of_many_is_one_leaf():
    frame = pd.DataFrame({"x": range(9), "y": pd.Categorical(["b"] * 9, list("abcd"))})
    tree = grow(*split_table(frame), min_leaf=1)
    assert tree.n_nodes == 1
    assert tree.impurity[0] == 0


def test_a_target_constant_far_down_is_not_split_there():
    """Two groups of equal decimals: one split and no more, whatever the rounding of their means."""
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
def test_a_predictor_without_any_value(y):
    frame = pd.DataFrame({"gone": [np.nan] * 6, "never": pd.Series([None] * 6, dtype="str"), "x": range(6), "y": y})
    given, target = split_table(frame)
    tree = grow(given, target, min_leaf=1)
    check_tree(tree, given, target)
    assert set(tree.feature[inner_nodes(tree)]) == {2}
    assert grow(given.first(2), target, min_leaf=1).n_nodes == 1


def test_a_missing_target_is_an_error():
    given, y = numbers([[1.0], [2.0]], [1.0, np.nan])
    with pytest.raises(InputError, match="the target 'y' of a tree has missing values; model them apart"):
        grow(given, y)


@pytest.mark.parametrize("low", [1.0, -1.0, 0.0, 1e300, -0.1, 4503599627370496.5, -5e-324])
@pytest.mark.parametrize("n", [1, 800], ids=["by histogram", "by sorted order"])
def test_a_threshold_separates_neighbouring_floats(low, n):
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


def test_a_threshold_lies_between_the_largest_floats():
    largest = np.finfo(float).max
    given, y = numbers([[-largest], [largest], [0.9 * largest]], [0.0, 1.0, 1.0])
    tree = grow(given, y, min_leaf=1)
    assert partition(tree) == {frozenset([0]), frozenset([1, 2])}
    leaf = tree.route(given.matrix)
    assert leaf[0] != leaf[1] == leaf[2]


@pytest.mark.parametrize("offset", [1e6, 1e9, -1e12])
@pytest.mark.parametrize("n", [300, 1500], ids=["by histogram", "by sorted order"])
def test_a_large_offset_of_the_target_changes_nothing(offset, n):
    X, y = continuous(n, 3, 4)
    y = np.round(y * 4096) / 4096  # exact beside the offset
    near, far = grow(*numbers(X, y), min_leaf=20), grow(*numbers(X, y + offset), min_leaf=20)
    assert np.array_equal(near.feature, far.feature)
    assert np.array_equal(near.threshold, far.threshold)
    assert np.array_equal(near.donors, far.donors)
    np.testing.assert_allclose(near.impurity, far.impurity, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e9, 1e150])
def test_the_scale_of_the_target_changes_nothing(scale):
    X, y = continuous(300, 3, 5)
    near, far = grow(*numbers(X, y), min_leaf=5), grow(*numbers(X, y * scale), min_leaf=5)
    assert partition(near) == partition(far)


@pytest.mark.parametrize("target", ["number", "two classes", "classes"])
@pytest.mark.parametrize("n", [200, 1500], ids=["by histogram", "by sorted order"])
def test_the_first_of_equal_columns_is_taken(target, n):
    rng = np.random.default_rng(7)
    x, job = rng.normal(size=n), LETTERS[rng.integers(0, 5, n)]
    labels = np.digitize(x + rng.normal(size=n), [-0.5, 0.5])
    y = {"number": x + rng.normal(size=n), "two classes": labels > 1, "classes": LETTERS[labels]}[target]
    frame = pd.DataFrame({"job": job, "x": x, "job again": job, "x again": x, "y": y})
    tree = grow(*split_table(frame), min_leaf=5)
    assert tree.n_leaves > 5
    assert set(tree.feature[inner_nodes(tree)]) <= {0, 1}


def test_the_first_of_equally_good_cuts_is_taken():
    given, y = numbers(np.arange(4.0)[:, None], [0.0, 1.0, 0.0, 1.0])
    tree = grow(given, y, min_leaf=1, max_depth=1)
    assert tree.threshold[0] == 0.5


def test_a_chain_as_deep_as_there_are_rows():
    n = 2000
    y = np.exp2(np.linspace(-400, 400, n))  # the best cut takes off the largest value, again and again
    given, target = numbers(np.arange(n)[:, None], y)
    tree = grow(given, target, min_leaf=1)
    assert depth_of_nodes(tree).max() > 300
    assert partition(tree) == {frozenset([row]) for row in range(n)}
    assert np.array_equal(tree.donors[tree.start[tree.route(given.matrix)]], np.arange(n))


def test_every_row_is_a_leaf_of_a_sorted_target():
    n = 2000
    given, target = numbers(np.arange(n)[:, None], np.arange(n) ** 2.0)
    tree = grow(given, target, min_leaf=1)
    assert partition(tree) == {frozenset([row]) for row in range(n)}
    assert np.array_equal(tree.donors[tree.start[tree.route(given.matrix)]], np.arange(n))


# ------------------------------------------------------------------ invariance


@pytest.mark.parametrize("n", [40, 1200])
@pytest.mark.parametrize("target", ["number", "classes"])
def test_the_order_of_rows_does_not_matter(n, target):
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


def test_a_tree_on_some_columns_equals_one_on_a_table_of_them():
    """`first` and `select` share the ranking of their root; the tree must not notice."""
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


def test_growing_leaves_the_shared_ranking_as_it_was():
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
