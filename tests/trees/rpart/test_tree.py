"""rpart's trees: settings, small tables, missing values, and the interface of the tree."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.table import Schema
from mcce.trees.rpart import grow_rpart, kernels
from mcce.trees.rpart import tree as rpart
from tests.trees.ctree.ctree_cases import encode

# ------------------------------------------------------------------ the settings


@pytest.mark.parametrize(
    ("given", "expected"),
    [((None, None), (20, 7)), ((None, 5), (15, 5)), ((10, None), (10, 3)), ((1, None), (1, 1)), ((4, 3), (4, 3))],
)
def test_minsplit_and_minbucket_set_each_other(given, expected):
    assert rpart.control(*given) == expected


def test_surrogates_do_not_matter_for_complete_numbers():
    rng = np.random.default_rng(1)
    given, target = encode(pd.DataFrame(rng.normal(size=(500, 4)), columns=["a", "b", "c", "y"]))
    rich, poor = grow_rpart(given, target, cp=0.0), grow_rpart(given, target, cp=0.0, maxsurrogate=0)
    assert rich.node["n_surrogates"].sum() > 0
    assert poor.node["n_surrogates"].sum() == 0
    assert np.array_equal(rich.training_leaf, poor.training_leaf)
    pd.testing.assert_frame_equal(rich.nodes(), poor.nodes())


@pytest.mark.parametrize("depth", [0, 1, 4])
def test_depth_is_limited(depth):
    rng = np.random.default_rng(1)
    given, target = encode(pd.DataFrame(rng.normal(size=(500, 3)), columns=["a", "b", "y"]))
    assert grow_rpart(given, target, cp=0.0, minbucket=1, maxdepth=depth).nodes()["depth"].max() == depth


def many_levels(k):
    codes = np.arange(40 * k) % k
    levels = [f"l{i}" for i in range(k)]
    y = np.array(["u", "v", "w"])[codes % 3]
    return pd.DataFrame({"job": pd.Categorical.from_codes(codes, levels), "y": y})


def test_all_subsets_of_fourteen_levels_are_tried():
    tree = grow_rpart(*encode(many_levels(14)))
    assert tree.nodes()["is_leaf"].sum() == tree.n_leaves == 3
    assert tree.node["risk"][tree.node["variable"] < 0].tolist() == [0.0, 0.0, 0.0]


def test_many_levels_are_allowed_if_unused_ordered_or_for_two_classes():
    frame = many_levels(15)
    assert grow_rpart(*encode(frame[frame["job"] != "l14"].reset_index(drop=True))).n_leaves == 3
    assert grow_rpart(*encode(frame.assign(job=frame["job"].cat.as_ordered()))).n_leaves > 1
    assert grow_rpart(*encode(frame.assign(y=np.where(frame["y"] == "u", "u", "v")))).n_leaves == 2


SMALL = pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("frame", "settings", "message"),
    [
        (SMALL, {"maxdepth": 31}, "maxdepth is 31; a tree of rpart has a depth of up to 30."),
        (SMALL.assign(y=[1.0, np.nan]), {}, "the target 'y' of a tree has missing values; model them separately."),
        (
            many_levels(15),
            {},
            "column 'job' has 15 levels; for a target of three or more classes rpart tries all 16,383",
        ),
    ],
)
def test_refusals(frame, settings, message):
    with pytest.raises(InputError, match=re.escape(message)):
        grow_rpart(*encode(frame), **settings)


# ------------------------------------------------------------------ small tables


def test_no_predictors_give_a_single_leaf():
    given, target = encode(pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": [1.0, 5.0, 9.0]}))
    tree = grow_rpart(given.first(0), target)
    assert tree.n_leaves == 1
    assert tree.training_leaf.tolist() == [0, 0, 0]
    assert tree.leaf(np.empty((4, 0))).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("y", [[2.0] * 30, ["a"] * 30])
def test_constant_target_gives_a_single_leaf(y):
    tree = grow_rpart(*encode(pd.DataFrame({"a": np.arange(30.0), "y": y})), cp=0.0)
    assert tree.n_leaves == 1
    assert np.isnan(tree.node["complexity"][0])


def test_unused_levels_of_the_target_are_ignored():
    y = pd.Categorical.from_codes([1] * 20 + [3] * 20, ["never", "a", "neither", "b", "nor"])
    nodes = grow_rpart(*encode(pd.DataFrame({"a": np.arange(40.0), "y": y}))).nodes()
    assert nodes["cut"][0] == 19.5
    assert nodes["value"].tolist() == [1.0, 1.0, 3.0]


def test_cut_between_neighbouring_floats_that_separates_nothing_is_skipped():
    """R grows empty leaves up to the maximal depth and then prunes them all."""
    x = 1.0 + np.repeat([0.0, 1.0], 20) * 2.0**-52
    given, target = encode(pd.DataFrame({"a": x, "y": np.repeat([0.0, 1.0], 20)}))
    for cp in (0.0, -1.0):
        tree = grow_rpart(given, target, cp=cp)
        assert tree.n_leaves == 1
        assert tree.node["complexity"].tolist() == [0.0]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("response", ["number", "two", "three"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_column_without_levels_is_ignored(place, response, ordered):
    rng = np.random.default_rng(3)
    n = 400
    frame = pd.DataFrame({"job": rng.choice(["clerk", "pilot", "cook"], n), "age": rng.normal(size=n)})
    score = frame["age"] + (frame["job"] == "cook") + rng.normal(size=n) / 4
    answers = {
        "number": score.round(1),
        "two": np.where(score > 0, "a", "b"),
        "three": pd.cut(score, 3, labels=["l", "m", "h"]),
    }
    frame["y"] = answers[response]
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan  # so that surrogates are searched
    expected = grow_rpart(*encode(frame))
    assert expected.n_leaves > 2
    frame.insert(place, "nothing", pd.Categorical([None] * n, categories=[], ordered=ordered))
    tree = grow_rpart(*encode(frame))
    others = np.delete(np.arange(3), place)
    inner = expected.node["variable"] >= 0
    np.testing.assert_array_equal(tree.node["variable"][inner], others[expected.node["variable"][inner]])
    np.testing.assert_allclose(tree.split["cut"], expected.split["cut"])
    np.testing.assert_array_equal(tree.training_leaf, expected.training_leaf)


# ------------------------------------------------------------------ missing values


@pytest.fixture
def gaps():
    """x determines y, z partly agrees with it; some rows lack x, one lacks both."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=201)
    frame = pd.DataFrame({"x": x, "z": x + rng.normal(size=201), "y": 10.0 * (x > 0.2) + rng.normal(size=201)})
    frame.loc[5:20, "x"] = np.nan
    frame.loc[0, ["x", "z"]] = np.nan
    return frame


def test_rows_with_a_missing_value_follow_the_surrogate(gaps):
    given, target = encode(gaps)
    tree = grow_rpart(given, target, maxdepth=1)
    surrogate = tree.split[1]
    assert surrogate["variable"] == 1
    assert surrogate["n"] == 16
    assert (
        tree.node_of(given.matrix)[5:21].tolist() == np.where(given.matrix[5:21, 1] < surrogate["cut"], 1, 2).tolist()
    )


def test_row_without_values_is_excluded_from_growing_but_has_a_leaf(gaps):
    given, target = encode(gaps)
    tree = grow_rpart(given, target)
    without = grow_rpart(*encode(gaps.iloc[1:].reset_index(drop=True)))
    pd.testing.assert_frame_equal(tree.nodes(), without.nodes())
    assert tree.node["n"][0] == 200
    assert tree.rows_in(0).size == 201
    assert tree.training_leaf[0] == tree.leaf(given.matrix[:1])[0]


def test_row_without_a_majority_stays_in_its_node_but_has_a_leaf():
    x = np.r_[np.arange(20.0), np.nan]
    given, target = encode(pd.DataFrame({"x": x, "const": 1.0, "y": np.r_[np.repeat([0.0, 1.0], 10), 5.0]}))
    tree = grow_rpart(given, target, maxdepth=1)
    assert tree.node["n"].tolist() == [21, 10, 10]
    assert tree.node_of(given.matrix)[20] == tree.training_node[20] == 0
    assert tree.rows_in(0).size == 21
    assert tree.leaf(given.matrix)[20] == tree.training_leaf[20] == 0  # a leaf is needed to draw from


@pytest.mark.parametrize("y", [[1.0, 2.0, 3.0, 4.0, 5.0], list("abcab")])
def test_all_missing_rows_give_a_single_leaf(y):
    given, target = encode(pd.DataFrame({"x": [np.nan] * 5, "y": y}))
    tree = grow_rpart(given, target)
    assert tree.n_leaves == 1
    assert tree.training_leaf.tolist() == [0, 0, 0, 0, 0]


# ------------------------------------------------------------------ the interface of the tree


def test_training_rows_are_routed_to_their_leaves(gaps):
    given, target = encode(gaps)
    tree = grow_rpart(given, target, cp=0.0, minbucket=2)
    np.testing.assert_array_equal(tree.leaf(given.matrix), tree.training_leaf)
    np.testing.assert_array_equal(tree.node_of(given.matrix), tree.training_node)
    for node in range(tree.node.size):
        assert tree.rows_in(node).size == tree.node["n"][node] + (0 in tree.rows_in(node))


@pytest.mark.parametrize("names", [[], ["x"], ["job"], ["x", "z", "job", "sex"]])
@pytest.mark.parametrize("response", ["z", "job", "sex"])
def test_kernels_are_compiled_once_for_any_table(names, response):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=60), "z": rng.normal(size=60)})
    frame["job"], frame["sex"] = np.array(list("abc"))[np.arange(60) % 3], np.array(list("mf"))[np.arange(60) % 2]
    encoded = Schema.from_data(frame).encode(frame)
    given = encoded.select([encoded.names.index(name) for name in names])
    tree = grow_rpart(given, encoded.column(encoded.names.index(response)), cp=0.0, minbucket=2)
    holes = given.matrix.copy()
    holes[::2] = np.nan
    tree.leaf(holes)
    assert len(kernels.grow_nodes.signatures) == 1
    assert len(kernels.route_rows.signatures) <= 1


def test_columns_are_sorted_once_for_all_trees_of_a_table(monkeypatch):
    rng = np.random.default_rng(1)
    given, target = encode(pd.DataFrame(rng.normal(size=(50, 4)), columns=["a", "b", "c", "y"]))
    sorted_columns = []
    sort = rpart.sort_column
    monkeypatch.setattr(rpart, "sort_column", lambda *args: sorted_columns.append(1) or sort(*args))
    several = [grow_rpart(given.first(k), target, minbucket=2) for k in (1, 2, 3)]
    assert len(sorted_columns) == 4
    alone = grow_rpart(
        *encode(pd.DataFrame(given.matrix, columns=["a", "b", "c"]).assign(y=target.values)), minbucket=2
    )
    assert np.array_equal(several[-1].training_leaf, alone.training_leaf)
