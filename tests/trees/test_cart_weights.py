"""Trees of weighted rows compared with trees of repeated rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import CartSampler
from mcce.table import Column, Schema, Table
from mcce.trees import cart
from tests.marks import nightly_but

GIVEN = [0, 1, 2, 3, 4]


def _table(seed: int, *, ties: bool) -> Table:
    """Ties, missing values, two values, few and many levels; then a number, two levels and four."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 160))
    X = pd.DataFrame(
        {
            "few": rng.integers(0, 4, n).astype(float),
            "many": rng.normal(size=n),
            "levels": pd.Categorical(rng.choice(list("uvwxyz"), n)),
            "two": rng.choice([0.0, 1.0], n),
            "many levels": pd.Categorical(rng.choice([f"{i}" for i in range(12)], n)),
            "number": np.round(2 * rng.normal(size=n)) / 2 if ties else rng.normal(size=n),
            "class of two": pd.Categorical(rng.choice(list("pq"), n)),
            "class of four": pd.Categorical(rng.choice(list("pqrs"), n)),
        }
    )
    X.loc[rng.random(n) < 0.1, ["many", "levels"]] = np.nan
    return Schema.from_data(X).encode(X)


@pytest.mark.parametrize("target", [5, 6, 7])
@pytest.mark.parametrize("seed", nightly_but(range(6), 0, 1))
def test_integer_weights_grow_the_tree_of_repeated_rows_including_ties(seed, target):
    table = _table(seed, ties=True)
    copies = np.random.default_rng(100 + seed).integers(1, 4, table.n_rows)
    column = Column(table.features[target], table.matrix[:, target], copies.astype(float))
    rows = np.repeat(np.arange(table.n_rows), copies)
    repeated = table.take(rows)
    for options in ({"min_leaf": 1}, {"min_leaf": 5}, {"min_leaf": 4, "min_split": 25, "cp": 0.01}):
        found = cart.grow(table.select(GIVEN), column, **options)
        expected = cart.grow(repeated.select(GIVEN), repeated.column(target), **options)
        for name in ("feature", "threshold", "left", "missing_left", "mask_at", "masks", "impurity"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
        np.testing.assert_array_equal(np.repeat(found.donors, copies[found.donors]), rows[expected.donors])
        held = [copies[found.donors[a : a + n]].sum() for a, n in zip(found.start, found.size)]
        np.testing.assert_array_equal(held, expected.size)
        assert min(held) >= options["min_leaf"]


@pytest.mark.parametrize("target", [5, 7])
@pytest.mark.parametrize("seed", range(6))
def test_half_weights_partition_like_repeated_rows(seed, target):
    """Halves of counts, with half the smallest leaf: fractions use a separate kernel.

    Two columns that split the rows of a node equally are tied, and rounding chooses: so the nodes are compared.
    """
    table = _table(seed, ties=False)
    copies = np.random.default_rng(200 + seed).integers(1, 6, table.n_rows)
    copies[0] = 5
    column = Column(table.features[target], table.matrix[:, target], copies / 2)
    rows = np.repeat(np.arange(table.n_rows), copies)
    repeated = table.take(rows)
    for min_leaf in (2, 5):
        found = cart.grow(table.select(GIVEN), column, min_leaf=min_leaf)
        expected = cart.grow(repeated.select(GIVEN), repeated.column(target), min_leaf=2 * min_leaf, min_split=4)
        assert found.n_nodes == expected.n_nodes > 1
        assert _nodes(found, found.donors) == _nodes(expected, rows[expected.donors])
        np.testing.assert_allclose(2 * np.sort(found.impurity), np.sort(expected.impurity), atol=1e-9)


def test_large_weights_are_not_expanded_and_partition_equally():
    table = _table(3, ties=False)
    copies = np.random.default_rng(5).integers(1, 4, table.n_rows)
    column = Column(table.features[5], table.matrix[:, 5], 1e6 * copies)
    found = cart.grow(table.select(GIVEN), column, min_leaf=20_000_000)
    repeated = table.take(np.repeat(np.arange(table.n_rows), copies))
    expected = cart.grow(repeated.select(GIVEN), repeated.column(5), min_leaf=20)
    np.testing.assert_array_equal(found.feature, expected.feature)
    np.testing.assert_array_equal(found.threshold, expected.threshold)


def test_weight_below_the_leaf_minimum_is_one_leaf():
    table = _table(0, ties=False)
    column = Column(table.features[5], table.matrix[:, 5], np.full(table.n_rows, 0.001))
    assert cart.grow(table.select(GIVEN), column, min_leaf=5).n_nodes == 1


def _nodes(tree, rows):
    return {frozenset(rows[a : a + n].tolist()) for a, n in zip(tree.start, tree.size)}


def test_tree_is_shown_by_weight():
    """Predictions and shares are weighted, numbers of rows are not."""
    X = pd.DataFrame({"x": np.repeat([0.0, 1.0], 6), "y": np.tile([1.0, 2.0, 6.0], 4), "level": list("aabbab") * 2})
    weights = np.tile([0.5, 1.0, 1.5], 4)
    table = Schema.from_data(X).encode(X)
    number = CartSampler(max_depth=0).fit(table.first(1), Column(table.features[1], table.matrix[:, 1], weights)).tree
    assert number.prediction(0) == pytest.approx(np.average(X["y"], weights=weights))
    assert number.to_frame()["n"].tolist() == [12]
    level = CartSampler(max_depth=0).fit(table.first(1), Column(table.features[2], table.matrix[:, 2], weights)).tree
    expected = [weights[X["level"] == each].sum() for each in "ab"]
    np.testing.assert_allclose(level.counts(0), expected)
    assert level.prediction(0) == "b"
    assert "n= 12" in str(level)
