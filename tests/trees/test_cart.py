"""CART compared with scikit-learn's trees on numbers, with enumeration of all splits, and under invariances."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mcce.exceptions import InputError
from mcce.table import Column, Feature, Schema, Table
from mcce.trees.cart import grow, prune, rank, recode_missing
from tests.trees.ctree.ctree_cases import encode

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
TARGETS = ["number", "tied number", "two classes", "ordered", "classes"]


def numbers(X, y):
    return encode(pd.DataFrame(X, columns=[f"x{j}" for j in range(np.shape(X)[1])]).assign(y=y))


def continuous(n, p, seed):
    """Numbers without ties that float32, which scikit-learn computes in, holds exactly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(np.float32).astype(float)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + 0.3 * rng.normal(size=n)


def mixed_frame(seed, target):
    rng = np.random.default_rng(seed)
    n, n_jobs, n_classes = int(rng.integers(8, 41)), int(rng.integers(2, 7)), int(rng.integers(3, 6))

    def with_gaps(values):
        return pd.Series(values).where(rng.random(n) > rng.choice([0.0, 0.2]))

    frame = pd.DataFrame(
        {
            "number": with_gaps(rng.normal(size=n).round(1)),
            "count": rng.integers(0, 5, n),
            "grade": pd.Categorical.from_codes(rng.integers(-1, 4, n), LETTERS[:4], ordered=True),
            "yes": rng.random(n) < 0.4,
            "job": pd.Categorical(with_gaps(LETTERS[rng.integers(0, n_jobs, n)])),
            "town": pd.Categorical.from_codes(rng.integers(0, 4, n), LETTERS[:6]),
        }
    )[list(rng.permutation(["number", "count", "grade", "yes", "job", "town"]))[: rng.integers(2, 7)]]
    return frame.assign(
        y={
            "number": rng.normal(size=n),
            "tied number": rng.integers(0, 4, n).astype(float),
            "two classes": rng.random(n) < 0.5,
            "ordered": pd.Categorical.from_codes(rng.integers(0, 5, n), LETTERS[:5], ordered=True),
            "classes": pd.Categorical.from_codes(rng.integers(0, n_classes, n), LETTERS[:n_classes]),
        }[target]
    )


def rows_of(tree, node):
    return tree.rows[tree.start[node] : tree.start[node] + tree.size[node]]


def partition(tree):
    return {frozenset(rows_of(tree, leaf).tolist()) for leaf in tree.leaves}


def routed(leaf):
    return {frozenset(np.flatnonzero(leaf == k).tolist()) for k in np.unique(leaf)}


# ---------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("n", [300, 1500], ids=["by histogram", "by sorted order"])
@pytest.mark.parametrize(
    ("min_leaf", "min_split", "max_depth"), [(5, 2, None), (10, 40, None), (7, 14, 4), (150, 2, None)]
)
def test_regression_trees_match_sklearn(n, min_leaf, min_split, max_depth):
    X, y = continuous(n, 4, 0)
    tree = grow(*numbers(X, y), min_leaf=min_leaf, min_split=min_split, max_depth=max_depth)
    model = DecisionTreeRegressor(
        min_samples_leaf=min_leaf, min_samples_split=min_split, max_depth=max_depth, random_state=0
    ).fit(X, y)
    assert partition(tree) == routed(model.apply(X.astype(np.float32)))
    assert tree.impurity[tree.leaves].sum() == pytest.approx(((y - model.predict(X)) ** 2).sum())
    new, _ = continuous(400, 4, 1)
    assert routed(tree.leaf(new)) == routed(model.apply(new.astype(np.float32)))


@pytest.mark.parametrize("n", [300, 1500], ids=["by histogram", "by sorted order"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_classification_trees_lower_gini_as_much_as_sklearn(n, n_classes):
    """Equally good splits occur, so one level of the tree is compared, on many bootstrap samples."""
    X, score = continuous(n, 4, n_classes)
    labels = np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))
    for seed in range(10):
        rows = np.random.default_rng(seed).integers(0, n, n)
        tree = grow(*numbers(X[rows], LETTERS[labels[rows]]), min_leaf=8, max_depth=1)
        model = DecisionTreeClassifier(min_samples_leaf=8, max_depth=1, random_state=0).fit(X[rows], labels[rows])
        theirs = (model.tree_.impurity * model.tree_.n_node_samples)[1:].sum()
        half = 2 if n_classes == 2 else 1  # two classes are numbers, and squared error is half of Gini
        assert tree.impurity[tree.leaves].sum() * half == pytest.approx(theirs)


# ---------------------------------------------------------------- enumeration


def impurity_of(values, is_classes):
    """Sum of squares, or size times Gini, straight from the definition."""
    if is_classes:
        return values.size * (1 - np.sum((np.unique(values, return_counts=True)[1] / values.size) ** 2))
    return np.sum((values - values.mean()) ** 2)


def all_splits(feature, column, responses):
    """Every way to send a node's rows left by one column: cuts, missing on either side, or subsets of levels.

    The best subset is a cut of the levels ordered by mean response only if sides of any size are admissible; with
    `responses` those cuts alone are listed.
    """
    missing = np.isnan(column)
    if feature.kind == "categorical" and feature.n_levels > 2:
        codes = np.where(missing, -1, column)
        present = np.unique(codes)
        if responses is not None:
            means = pd.Series(responses).groupby(codes).transform("mean").round(9).to_numpy()
            yield from (means < cut for cut in np.unique(means)[1:])
            return
        for size in range(1, present.size):
            yield from (np.isin(codes, chosen) for chosen in itertools.combinations(present, size))
        return
    for cut in np.unique(column[~missing])[1:]:
        yield np.where(missing, False, column < cut)
        yield np.where(missing, True, column < cut)
    yield missing


def goes_left(tree, node, column):
    """Apply the rule of one split, spelled out from the documentation of `CartTree`."""
    missing = np.isnan(column)
    left = column < tree.threshold[node]
    if tree.mask_at[node] >= 0:
        left = tree.masks[tree.mask_at[node] + np.where(missing, 0, column).astype(int)]
    return np.where(missing, tree.missing_left[node], left)


def check_tree(tree, given, target, *, min_split=2, min_leaf=1, max_depth=None, optimal=True):
    """Check the partition and the optimality of every node."""
    is_classes = target.feature.kind == "categorical" and target.feature.n_levels > 2
    depth = np.zeros(tree.n_nodes, dtype=int)
    assert sorted(tree.rows.tolist()) == list(range(target.values.size))
    for node in range(tree.n_nodes):
        rows = rows_of(tree, node)
        values = target.values[rows]
        own = impurity_of(values, is_classes)
        assert tree.impurity[node] == pytest.approx(own, rel=1e-9, abs=1e-12)
        best = 0.0
        if optimal and rows.size >= min_split and (max_depth is None or depth[node] < max_depth):
            for j, feature in enumerate(given.features):
                for left in all_splits(
                    feature, given.matrix[rows, j], values if min_leaf > 1 and not is_classes else None
                ):
                    if min_leaf <= left.sum() <= rows.size - min_leaf:
                        parts = impurity_of(values[left], is_classes) + impurity_of(values[~left], is_classes)
                        best = max(best, own - parts)
        if tree.feature[node] < 0:
            assert best <= 1e-10 * max(1.0, own), "a leaf with an admissible improving split"
            continue
        left = goes_left(tree, node, given.matrix[rows, tree.feature[node]])
        below = tree.left[node]
        depth[below : below + 2] = depth[node] + 1
        assert set(rows[left]) == set(rows_of(tree, below))
        assert set(rows[~left]) == set(rows_of(tree, below + 1))
        assert min(left.sum(), (~left).sum()) >= min_leaf
        gain = own - impurity_of(values[left], is_classes) - impurity_of(values[~left], is_classes)
        assert gain >= max(best - 1e-9 * own, 1e-300)
    for matrix in (given.matrix, np.vstack([given.matrix, np.full((1, given.matrix.shape[1]), np.nan)])):
        assert np.array_equal(tree.leaf(matrix)[: target.values.size], tree.training_leaf)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(8))
def test_every_split_is_the_best_of_all(target, seed):
    given, y = encode(mixed_frame(seed, target))
    limits = {"min_leaf": 1 + seed % 5, "min_split": [2, 12][seed % 2], "max_depth": [None, 3, None][seed % 3]}
    check_tree(grow(given, y, **limits), given, y, **limits)


def test_eight_levels_are_searched_exhaustively_and_missing_counts_as_one():
    rng = np.random.default_rng(5)
    job = rng.integers(0, 8, 200)
    frame = pd.DataFrame({"job": LETTERS[job], "y": LETTERS[(job * 5 + rng.integers(0, 3, 200)) % 4]})
    frame.loc[frame["job"] == "h", "job"] = None
    given, y = encode(frame)
    check_tree(grow(given, y, min_leaf=3, max_depth=2), given, y, min_leaf=3, max_depth=2)


@pytest.mark.parametrize("target", ["number", "classes"])
def test_two_splits_separate_three_groups_of_290_levels(target):
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 290, 6000)  # ten of 300 levels never occur
    group = rng.permutation(300) % 3
    y = group[codes] + 0.01 * rng.normal(size=6000) if target == "number" else LETTERS[group[codes]]
    town = pd.Categorical.from_codes(codes, [f"town {k}" for k in range(300)])
    given, y = encode(pd.DataFrame({"town": town, "y": y}))
    tree = grow(given, y, max_depth=2)
    check_tree(tree, given, y, min_leaf=5, max_depth=2, optimal=False)
    assert all(np.unique(group[codes[rows_of(tree, leaf)]]).size == 1 for leaf in tree.leaves)


def test_many_levels_and_classes_are_split_along_the_first_principal_component():
    rng = np.random.default_rng(0)
    job = rng.integers(0, 10, 900)
    tilt = rng.dirichlet(np.ones(3), 10)
    labels = np.array([rng.choice(3, p=tilt[j]) for j in job])
    tree = grow(*encode(pd.DataFrame({"job": LETTERS[job], "y": LETTERS[labels]})), max_depth=1)
    counts = np.array([[np.sum((job == j) & (labels == k)) for k in range(3)] for j in range(10)])
    sizes = counts.sum(axis=1)
    shares = counts / sizes[:, None] - counts.sum(axis=0) / 900
    axis = np.linalg.eigh((shares * sizes[:, None]).T @ shares)[1][:, -1]
    order = np.argsort(shares @ axis)
    sides = [np.isin(job, order[:k]) for k in range(1, 10)]
    best = min(impurity_of(labels[side], True) + impurity_of(labels[~side], True) for side in sides)
    assert tree.impurity[1:].sum() <= best * (1 + 1e-12)


# ---------------------------------------------------------------- pruning


def subtrees(tree, node):
    """All prunings of the subtree at `node`: tuples of leaves."""
    yield (node,)
    if tree.feature[node] >= 0:
        left = tree.left[node]
        for one, other in itertools.product(list(subtrees(tree, left)), list(subtrees(tree, left + 1))):
            yield one + other


@pytest.mark.parametrize("target", ["number", "two classes", "classes"])
@pytest.mark.parametrize("seed", [100, 101])
def test_pruning_finds_the_smallest_subtree_of_minimal_cost(target, seed):
    given, y = encode(mixed_frame(seed, target))
    full = grow(given, y, min_leaf=4)
    for cp in (0.0, 0.002, 0.02, 0.05, 0.15, 1.0):
        cost = {
            leaves: sum(full.impurity[list(leaves)]) + cp * full.impurity[0] * len(leaves)
            for leaves in subtrees(full, 0)
        }
        near = [leaves for leaves, c in cost.items() if c <= min(cost.values()) * (1 + 1e-12)]
        pruned = grow(given, y, min_leaf=4, cp=cp)
        assert partition(pruned) == {frozenset(rows_of(full, leaf).tolist()) for leaf in min(near, key=len)}, cp
        check_tree(pruned, given, y, min_leaf=4, optimal=False)
    assert partition(prune(full, 0.0)) == partition(full)


# ---------------------------------------------------------------- missing values


def test_values_are_split_from_missing_ones():
    given, y = encode(pd.DataFrame({"x": [1.0, 2.0, 3.0, np.nan, np.nan], "y": [0.0, 0.0, 0.0, 1.0, 1.0]}))
    tree = grow(given, y, min_leaf=1)
    assert partition(tree) == {frozenset([0, 1, 2]), frozenset([3, 4])}
    leaf = tree.leaf(np.array([[-1e300], [1e300], [np.nan]]))
    assert leaf[0] == leaf[1] != leaf[2]


def test_what_a_node_has_not_seen_goes_to_its_larger_child():
    job = pd.Categorical(list("aaaabbbbbbb"), list("abz"))
    given, y = encode(pd.DataFrame({"job": job, "y": np.repeat([0.0, 1.0], [4, 7])}))
    tree = grow(given, y, min_leaf=1)
    assert tree.leaf(np.array([[2.0], [np.nan], [1.0]])).tolist() == [1, 1, 1]


def test_missing_responses_are_recoded():
    frame = pd.DataFrame({"x": np.arange(200.0), "z": np.random.default_rng(0).normal(size=200)})
    frame["y"] = np.where(frame["x"] < 50, np.nan, 3.0 * (frame["x"] > 120))
    tree = grow(*encode(frame))
    assert partition(tree) == {frozenset(range(50)), frozenset(range(50, 121)), frozenset(range(121, 200))}
    assert tree.nodes().set_index("node").loc[1, "value"] == pytest.approx(3.0 * 79 / 150)
    for y in (pd.Categorical([None, "a", "b", "a"]), pd.Categorical([None, "a", "b", "a"], ordered=True)):
        recoded = recode_missing(encode(pd.DataFrame({"x": 0, "y": y}))[1])
        assert recoded.values.tolist() == [2, 0, 1, 0]
        assert recoded.feature.levels.tolist() == ["a", "b", "missing"]
    gone = encode(pd.DataFrame({"x": range(20), "y": np.full(20, np.nan)}))
    assert grow(*gone, min_leaf=1).n_leaves == 1


# ---------------------------------------------------------------- invariances


@pytest.mark.parametrize("n", [40, 1200])
@pytest.mark.parametrize("target", ["number", "classes"])
def test_row_order_does_not_matter(n, target):
    rng = np.random.default_rng(8)
    frame = pd.DataFrame({"x": pd.Series(rng.normal(size=n)).where(rng.random(n) > 0.1), "z": rng.normal(size=n)})
    frame["job"] = LETTERS[rng.integers(0, 6, n)]
    frame["y"] = frame["z"] * (frame["job"] < "c") + rng.normal(size=n)
    if target == "classes":
        frame["y"] = LETTERS[np.digitize(frame["y"], [-0.7, 0.1, 0.6])]
    order = rng.permutation(n)
    straight, mixed = (grow(*encode(f), max_depth=3) for f in (frame, frame.iloc[order]))
    assert partition(straight) == {frozenset(order[list(rows)].tolist()) for rows in partition(mixed)}


@pytest.mark.parametrize("scale", [3.0, -1.0])
def test_monotone_changes_of_a_column_keep_the_partition(scale):
    X, y = continuous(400, 3, 10)
    changed = X.copy()
    changed[:, 0] = scale * np.exp(X[:, 0])
    assert partition(grow(*numbers(X, y))) == partition(grow(*numbers(changed, y)))


@pytest.mark.parametrize("n", [300, 1500], ids=["by histogram", "by sorted order"])
def test_location_and_scale_of_the_target_do_not_matter(n):
    X, y = continuous(n, 3, 4)
    y = np.round(y * 4096) / 4096  # exact beside the offset
    expected = partition(grow(*numbers(X, y), min_leaf=20))
    for changed in (y + 1e9, y - 1e12, y * 2.0**-500, y * 2.0**500, -y):
        assert partition(grow(*numbers(X, changed), min_leaf=20)) == expected


def test_tables_cut_from_one_share_ranks_and_do_not_change_them():
    frame = mixed_frame(3, "number").assign(extra=lambda f: f["y"].rank())
    table = Schema.from_data(frame).encode(frame)
    y = table.column(table.names.index("y"))
    p = len(table.names) - 2
    for columns in ([0], list(range(p)), [p + 1], [p + 1, 0], list(range(p))[::-1]):
        cut = table.select(columns)
        own = Schema.from_data(frame[cut.names]).encode(frame[cut.names])
        one, other = grow(cut, y, min_leaf=2), grow(own, y, min_leaf=2)
        assert np.array_equal(one.rows, other.rows)
        assert np.array_equal(one.threshold, other.threshold)


def test_a_bootstrap_sample_grows_the_tree_of_the_repeated_rows():
    frame = mixed_frame(4, "classes")
    given, y = encode(frame)
    rows = np.sort(np.random.default_rng(0).integers(0, len(frame), len(frame)))
    one, other = grow(given, y, rows=rows, min_leaf=2), grow(given.take(rows), y.take(rows), min_leaf=2)
    assert np.array_equal(one.rows, rows[other.rows])
    assert np.array_equal(one.training_leaf, other.training_leaf)
    assert np.array_equal(one.leaf(given.matrix[rows]), one.training_leaf)


def test_nodes_try_a_random_part_of_the_columns():
    """The best column of four is tried by a root with probability one half."""
    X, _ = continuous(60, 4, 2)
    given, y = numbers(X, X[:, 0])
    roots = [grow(given, y, max_features=2, max_depth=1, random_key=key).feature[0] for key in range(400)]
    assert 160 < np.sum(np.array(roots) == 0) < 240
    full = grow(given, y, max_features=4)
    assert partition(full) == partition(grow(given, y))


# ---------------------------------------------------------------- ties and degenerate tables


@pytest.mark.parametrize("target", ["number", "two classes", "classes"])
@pytest.mark.parametrize("n", [200, 1500], ids=["by histogram", "by sorted order"])
def test_first_of_equal_columns_and_cuts_is_taken(target, n):
    rng = np.random.default_rng(7)
    x, job = rng.normal(size=n), LETTERS[rng.integers(0, 5, n)]
    labels = np.digitize(x + rng.normal(size=n), [-0.5, 0.5])
    y = {"number": x + rng.normal(size=n), "two classes": labels > 1, "classes": LETTERS[labels]}[target]
    tree = grow(*encode(pd.DataFrame({"job": job, "x": x, "job again": job, "x again": x, "y": y})))
    assert set(tree.feature) == {-1, 0, 1}
    assert grow(*numbers(np.arange(4.0)[:, None], [0.0, 1.0, 0.0, 1.0]), min_leaf=1, max_depth=1).threshold[0] == 0.5


@pytest.mark.parametrize(
    ("frame", "n_leaves"),
    [
        ({"x": [1.0], "y": [3.0]}, 1),
        ({"x": range(3), "y": [1.0, 2.0, 3.0]}, 3),
        ({"x": range(9), "y": [0.1] * 9}, 1),
        ({"x": range(9), "y": [True] * 9}, 1),
        ({"x": range(9), "y": pd.Categorical(["b"] * 9, list("abcd"))}, 1),
        ({"a": 1.0, "b": "x", "c": pd.Categorical(["u"] * 8, list("tuv")), "y": range(8)}, 1),
        ({"gone": [np.nan] * 6, "x": range(6), "y": np.arange(6.0)}, 6),
        ({"x": np.arange(2000.0), "y": np.arange(2000.0) ** 2}, 2000),
        ({"x": np.arange(2000.0), "y": np.exp2(np.linspace(-400, 400, 2000))}, 2000),
    ],
)
def test_degenerate_tables(frame, n_leaves):
    given, y = encode(pd.DataFrame(frame))
    tree = grow(given, y, min_leaf=1)
    assert tree.n_leaves == n_leaves
    assert np.array_equal(tree.leaf(given.matrix), tree.training_leaf)
    assert grow(given, y, min_leaf=len(y.values) // 2 + 1).n_leaves == 1
    none = grow(given.first(0), y, min_leaf=1)
    assert none.leaf(np.empty((4, 0))).tolist() == [0] * 4


@pytest.mark.parametrize("low", [1.0, -1.0, 0.0, 1e300, -0.1, -5e-324])
def test_threshold_separates_neighbouring_floats(low):
    x = np.array([low - abs(low) / 4, low, np.nextafter(low, np.inf), low + abs(low) / 4 + 1e-300])
    given, y = numbers(x[:, None], [0.0, 0.0, 1.0, 1.0])
    assert partition(grow(given, y, min_leaf=1)) == {frozenset([0, 1]), frozenset([2, 3])}
    assert grow(given, y, min_leaf=1).leaf(given.matrix).tolist() == [0, 0, 1, 1]


def test_more_levels_than_codes_raise():
    feature = Feature("town", "categorical", object, pd.RangeIndex(70_000))
    given = Table([feature], np.zeros((3, 1), order="F"))
    with pytest.raises(InputError, match="column 'town' has 70000 levels; a tree handles up to 65535"):
        grow(given, Column(feature, np.zeros(3)))


@pytest.mark.parametrize(
    "column", [[3.0, 1.0, 2.0, 1.0], [0.5, np.nan, -0.5], [1e18, -1e18, 0.0], [np.nan] * 2, [], [7.0], [2.0, 2.5]]
)
def test_ranks_are_positions_among_the_distinct_values(column):
    column = np.array(column, dtype=float)
    values, ranks = rank(column)
    assert np.array_equal(values, np.unique(column[~np.isnan(column)]))
    assert np.array_equal(np.append(values, np.nan)[ranks], column, equal_nan=True)
