"""Weighted trees in the rpart dialect compared with R's rpart, bit for bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.table import Column
from mcce.trees.rpart import tree as rpart
from tests.marks import slow_but
from tests.trees.rpart.rpart_cases import Answer, differences, encode, grow, read_stored
from tests.trees.rpart.test_tree_parity import read_frame

CASES = read_stored("weighted")["cases"]


@pytest.mark.parametrize("k", slow_but(range(len(CASES)), *range(0, len(CASES), 4)))
def test_parity_with_weighted_rpart(k):
    """Frames, splits, surrogates, sides of levels, and the routes of training rows and new rows."""
    case = CASES[k]
    frame, new = read_frame(case["frame"]), read_frame(case["new"])
    given, target, unseen = encode(frame, "y", new)
    tree = grow(given, Column(target.feature, target.values, np.array(case["weights"])), case["control"])
    answer = case["answer"]
    expected = Answer(
        pd.DataFrame(answer["frame"]),
        pd.DataFrame(answer["splits"]),
        np.array(answer["csplit"], dtype=int) if answer["csplit"] else np.empty((0, 0)),
        np.array(answer["where"]),
        np.array(answer["rows"], dtype=int),
        np.array(answer["where_new"]),
    )
    assert differences(tree, given, Column(target.feature, target.values), expected, unseen) == []


def test_counts_fractions_and_missing_values_exist():
    whole = [all(w == int(w) for w in case["weights"]) for case in CASES]
    assert 30 < sum(whole) < 50
    assert sum(len(case["answer"]["frame"]["node"]) > 5 for case in CASES) > 15
    assert sum(any(n > 0 for n in case["answer"]["frame"]["nsurrogate"]) for case in CASES) > 15


def test_sizes_count_rows_and_not_weights():
    """As in R: a row of any weight is one row of `minsplit` and `minbucket`."""
    x = np.arange(30.0)
    frame = pd.DataFrame({"x": x, "y": np.where(x < 3, 5.0, 0.0) + x / 100})
    given, target, _ = encode(frame, "y")
    weights = np.full(30, 10.0)
    heavy = rpart.grow(given, Column(target.feature, target.values, weights), min_leaf=7)
    assert heavy.size[heavy.stops].min() >= 7
    plain = rpart.grow(given, target, min_leaf=7)
    np.testing.assert_array_equal(heavy.feature, plain.feature)
    np.testing.assert_allclose(heavy.impurity, 10 * plain.impurity, rtol=1e-12)


def test_chain_of_rpart_trees_draws_by_weight():
    X = pd.DataFrame({"group": ["a", "b"] * 60, "value": np.tile([1.0, 5.0, 2.0, 6.0], 30)})
    weights = np.tile([1.0, 1.0, 3.0, 1.0], 30)
    sampler = mcce.CartSampler(dialect="rpart")
    chain = mcce.ChainModel(sampler=sampler, fixed=["group"], random_state=1).fit(X, sample_weight=weights)
    drawn = chain.sample(4000, pd.DataFrame({"group": ["a"]}))["value"]
    assert abs((drawn == 2.0).mean() - 0.75) < 0.03
    assert set(drawn) == {1.0, 2.0}
