"""Cases shared by the tests of CART: tables, and trees checked by plain enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from mcce.table import Schema

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
TOLERANCE = 1e-9  # relative to the node's impurity, for sums in a different order


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


def continuous(n, p, seed):
    """Numbers without ties that float32, which scikit-learn computes in, holds exactly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(np.float32).astype(float)
    assert all(np.unique(column).size == n for column in X.T)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + 0.3 * rng.normal(size=n)


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
