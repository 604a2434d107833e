"""The trees of a forest: bootstrap samples, candidate columns at each node, parameters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.rng import RowStreams
from mcce.table import Schema
from mcce.trees import cart
from tests.marks import nightly_rows
from tests.samplers.donors.forest_problem import LEVEL, encode, fit


@pytest.mark.parametrize("kind", ["numeric", "classes"])
def test_bootstrap_tree_equals_the_tree_of_repeated_rows(smooth, kind):
    if kind == "classes":
        smooth = smooth.assign(y=pd.cut(smooth["y"], 4, labels=list("abcd")).cat.as_unordered())
    given, target = encode(smooth)
    for seed in range(5):
        rows = np.sort(np.random.default_rng(seed).integers(0, 400, 400))
        by_rows = cart.grow(given, target, rows=rows, min_leaf=7)
        repeated = Schema.from_data(smooth).encode(smooth.iloc[rows])
        by_hand = cart.grow(repeated.first(4), repeated.column(4), min_leaf=7)
        assert by_rows.n_leaves > 10
        np.testing.assert_array_equal(by_rows.feature, by_hand.feature)
        np.testing.assert_array_equal(by_rows.size, by_hand.size)
        np.testing.assert_array_equal(by_rows.start, by_hand.start)
        for node in np.flatnonzero(by_rows.feature < 0):
            segment = slice(by_rows.start[node], by_rows.start[node] + by_rows.size[node])
            np.testing.assert_array_equal(np.sort(by_rows.donors[segment]), np.sort(rows[by_hand.donors[segment]]))


def test_each_tree_has_an_individual_bootstrap_sample(smooth):
    sampler, _ = fit(smooth, n_trees=50, max_depth=0)
    counts = np.array([np.bincount(tree.donors, minlength=400) for tree in sampler.trees_])
    assert (counts.sum(axis=1) == 400).all()
    assert len({counted.tobytes() for counted in counts}) == 50
    # the number of copies of a row is binomial(400, 1/400); the cells are nearly independent
    copies = np.bincount(counts.ravel(), minlength=4)
    expected = 20_000 * stats.binom(400, 1 / 400).pmf([0, 1, 2])
    observed = [*copies[:3], copies[3:].sum()]
    assert stats.chisquare(observed, [*expected, 20_000 - expected.sum()]).pvalue > LEVEL
    assert stats.chisquare(counts.sum(axis=0)).pvalue > LEVEL


@pytest.mark.parametrize(("max_features", "n_tried"), [("sqrt", 2), *nightly_rows(("third", 2), (1, 1), (0.5, 3))])
def test_roots_split_on_any_column_if_all_are_noise(max_features, n_tried):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(60, 7)), columns=[*"abcdef", "y"])
    n_trees = 600
    sampler, _ = fit(frame, n_trees=n_trees, max_features=max_features, max_depth=1)
    chosen = np.bincount([tree.feature[0] for tree in sampler.trees_], minlength=6)
    assert chosen.sum() == n_trees
    if n_tried == 1:  # among several columns the choice depends on the data; alone, all are equally likely
        assert stats.chisquare(chosen).pvalue > LEVEL
    # a column can be chosen only where it is tried
    assert stats.binom(n_trees, n_tried / 6).sf(chosen.max()) > LEVEL
    assert chosen.min() > 0


@pytest.mark.slow
def test_candidate_columns_are_redrawn_in_each_node(smooth):
    """With one column per node, two nodes of a tree split on the same column with probability 1/4 each."""
    given, target = encode(smooth)
    pairs = np.zeros((4, 4))
    for t in range(800):
        tree = cart.grow(given, target, max_depth=2, max_features=1, random_key=t)
        pairs[tree.feature[0], tree.feature[tree.left[0]]] += 1
    assert pairs.sum() == 800
    assert stats.chisquare(pairs.ravel()).pvalue > LEVEL


def test_untried_columns_stay_available_below():
    """Only x0 matters. With one column per node, pure nodes appear at larger depth."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(500, 3))
    frame = pd.DataFrame({"x0": x[:, 0], "x1": x[:, 1], "x2": x[:, 2], "y": np.where(x[:, 0] > 0, 1.0, 0.0)})
    given, target = encode(frame)
    for key in range(20):
        tree = cart.grow(given, target, min_leaf=1, max_features=1, random_key=key)
        leaves = tree.feature < 0
        assert tree.impurity[leaves].max() == 0.0
        assert (tree.feature == 0).any()


def test_mtry_of_at_least_all_columns_is_bagging(smooth):
    bagged, _ = fit(smooth, n_trees=3, max_features=None)
    for max_features in (4, 9, 1.0):
        same, _ = fit(smooth, n_trees=3, max_features=max_features)
        for tree, other in zip(bagged.trees_, same.trees_):
            np.testing.assert_array_equal(tree.threshold, other.threshold)
    fewer, _ = fit(smooth, n_trees=3, max_features=1)
    assert not np.array_equal(bagged.trees_[0].feature, fewer.trees_[0].feature)


def test_forest_seed_determines_the_trees(smooth):
    one, given = fit(smooth, random_state=1)
    again, _ = fit(smooth, random_state=np.int64(1))
    other, _ = fit(smooth, random_state=2)
    for tree, same in zip(one.trees_, again.trees_):
        np.testing.assert_array_equal(tree.donors, same.donors)
        np.testing.assert_array_equal(tree.feature, same.feature)
    assert all(tree.donors.tobytes() != changed.donors.tobytes() for tree, changed in zip(one.trees_, other.trees_))
    streams = RowStreams.from_seed(0, 400)
    np.testing.assert_array_equal(one.sample(given, streams.child(0)), again.sample(given, streams.child(0)))
    assert (one.sample(given, streams.child(0)) != other.sample(given, streams.child(0))).any()


@pytest.mark.parametrize(
    ("parameters", "smallest", "n_leaves"),
    [({"min_leaf": 30}, 30, 13), ({"max_depth": 2}, 5, 4), ({"min_split": 400}, 5, 2)],
)
def test_trees_respect_their_parameters(smooth, parameters, smallest, n_leaves):
    sampler, _ = fit(smooth, **parameters)
    for tree in sampler.trees_:
        sizes = tree.size[tree.feature < 0]
        assert sizes.sum() == 400
        assert sizes.min() >= smallest
        assert 2 <= sizes.size <= n_leaves
