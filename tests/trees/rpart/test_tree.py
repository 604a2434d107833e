"""Trees in the rpart dialect: settings, small tables, missing values, and the interface of the tree."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.table import Column, Schema
from mcce.trees.rpart import kernels
from mcce.trees.rpart import tree as rpart
from mcce.trees.rpart.tree import RpartTree
from mcce.trees.tree import Tree
from tests.trees.rpart.rpart_cases import FOLDER, read_stored, where


def table(frame, response="y", **kinds):
    """Encode a frame; return the predictors and the response."""
    schema = Schema.from_data(frame, kinds)
    encoded = schema.encode(frame)
    names = [name for name in frame if name != response]
    return encoded.select([encoded.names.index(n) for n in names]), encoded.column(encoded.names.index(response))


# ------------------------------------------------------------------ the settings


@pytest.mark.parametrize(
    ("given", "expected"),
    [((None, None), (20, 7)), ((None, 5), (15, 5)), ((10, None), (10, 3)), ((1, None), (1, 1)), ((4, 3), (4, 3))],
)
def test_minsplit_and_minbucket_set_each_other(given, expected):
    assert rpart.control(*given) == expected


def test_surrogates_and_competitors_do_not_matter_for_complete_numbers():
    rng = np.random.default_rng(1)
    given, target = table(pd.DataFrame(rng.normal(size=(500, 4)), columns=["a", "b", "c", "y"]))
    rich, poor = rpart.grow(given, target, cp=0.0), rpart.grow(given, target, cp=0.0, max_compete=0, max_surrogate=0)
    assert rich.n_surrogate.sum() > 0
    assert rich.n_compete.sum() > 0
    assert poor.n_surrogate.sum() == poor.n_compete.sum() == 0
    for name in ("feature", "threshold", "left", "number", "donors", "complexity"):
        assert np.array_equal(getattr(rich, name), getattr(poor, name)), name


@pytest.mark.parametrize("depth", [0, 1, 4])
def test_depth_is_limited(depth):
    rng = np.random.default_rng(1)
    given, target = table(pd.DataFrame(rng.normal(size=(500, 3)), columns=["a", "b", "y"]))
    tree = rpart.grow(given, target, cp=0.0, min_leaf=1, max_depth=depth)
    assert tree.number.max() < 2 ** (depth + 1)
    assert (tree.number.max() >= 2**depth) == bool(depth == 0 or tree.n_nodes > 1)


def test_depth_that_rpart_cannot_number_raises():
    given, target = table(pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0]}))
    with pytest.raises(InputError, match=r"max_depth is 31; a tree of rpart has a depth of up to 30\."):
        rpart.grow(given, target, max_depth=31)


def many_levels(k):
    codes = np.arange(40 * k) % k
    levels = [f"l{i}" for i in range(k)]
    y = np.array(["u", "v", "w"])[codes % 3]
    return pd.DataFrame({"job": pd.Categorical.from_codes(codes, levels), "y": y})


def test_all_subsets_of_fourteen_levels_are_tried():
    given, target = table(many_levels(14))
    tree = rpart.grow(given, target)
    assert tree.n_leaves == 3
    assert tree.impurity[tree.feature < 0].tolist() == [0.0, 0.0, 0.0]


def test_more_levels_raise_with_a_fix():
    given, target = table(many_levels(15))
    message = "column 'job' has 15 levels; for a target of three or more classes rpart tries all 16,383 ways"
    with pytest.raises(InputError, match=f"{re.escape(message)}.*Group rare levels, make the column ordered"):
        rpart.grow(given, target)


def test_many_levels_are_allowed_if_unused_ordered_or_for_two_classes():
    frame = many_levels(15)
    used = frame[frame["job"] != "l14"].reset_index(drop=True)
    assert rpart.grow(*table(used)).n_leaves == 3
    ordered = frame.assign(job=frame["job"].cat.as_ordered())
    assert rpart.grow(*table(ordered)).n_leaves > 1
    two = frame.assign(y=np.where(frame["y"] == "u", "u", "v"))
    assert rpart.grow(*table(two)).n_leaves == 2


def test_target_with_missing_values_raises():
    given, target = table(pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, np.nan]}))
    with pytest.raises(InputError, match=r"the target 'y' of a tree has missing values; model them separately\."):
        rpart.grow(given, target)


# ------------------------------------------------------------------ small tables


def test_no_predictors_give_a_single_leaf():
    given, target = table(pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": [1.0, 5.0, 9.0]}))
    tree = rpart.grow(given.first(0), target)
    assert tree.n_leaves == 1
    assert tree.donors.tolist() == [0, 1, 2]
    assert tree.route(np.empty((4, 0))).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("y", [[2.0] * 30, ["a"] * 30])
def test_constant_target_gives_a_single_leaf(y):
    given, target = table(pd.DataFrame({"a": np.arange(30.0), "y": y}))
    tree = rpart.grow(given, target, cp=0.0)
    assert tree.n_leaves == 1
    assert np.isnan(tree.complexity[0])


def test_unused_levels_of_the_target_are_ignored():
    y = pd.Categorical.from_codes([1] * 20 + [3] * 20, ["never", "a", "neither", "b", "nor"])
    given, target = table(pd.DataFrame({"a": np.arange(40.0), "y": y}))
    tree = rpart.grow(given, target)
    assert tree.threshold[0] == 19.5
    assert tree.value.tolist() == [1.0, 1.0, 3.0]


def test_cut_between_neighbouring_floats_that_separates_nothing_is_skipped():
    """R grows empty leaves up to the maximal depth and then prunes them all."""
    x = 1.0 + np.repeat([0.0, 1.0], 20) * 2.0**-52
    given, target = table(pd.DataFrame({"a": x, "y": np.repeat([0.0, 1.0], 20)}))
    for cp in (0.0, -1.0):
        tree = rpart.grow(given, target, cp=cp)
        assert tree.n_leaves == 1
        assert tree.complexity.tolist() == [0.0]


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
    given, target = table(gaps)
    tree = rpart.grow(given, target, max_depth=1)
    surrogate = tree.first_split[0] + 1 + tree.n_compete[0]
    assert tree.split_feature[surrogate] == 1
    assert tree.split_count[surrogate] == 16
    expected = np.where(given.matrix[5:21, 1] < tree.split_cut[surrogate], tree.left[0], tree.left[0] + 1)
    assert tree.route(given.matrix)[5:21].tolist() == expected.tolist()


def test_row_without_values_is_excluded_from_the_tree_but_is_a_donor(gaps):
    given, target = table(gaps)
    tree = rpart.grow(given, target)
    without = rpart.grow(*table(gaps.iloc[1:].reset_index(drop=True)))
    assert tree.frame(given.names).equals(without.frame(given.names))
    assert tree.n_grown[0] == 200
    assert tree.size[0] == 201
    leaf = tree.route(given.matrix[:1])[0]
    assert 0 in tree.donors[tree.start[leaf] :][: tree.size[leaf]]
    assert sorted(tree.donors) == list(range(201))


def test_row_without_a_majority_stays_in_its_node():
    x = np.r_[np.arange(20.0), np.nan]
    given, target = table(pd.DataFrame({"x": x, "const": 1.0, "y": np.r_[np.repeat([0.0, 1.0], 10), 5.0]}))
    tree = rpart.grow(given, target, max_depth=1)
    assert tree.n_grown.tolist() == [21, 10, 10]
    assert tree.route(given.matrix)[20] == 0
    assert tree.donors[tree.start[0] :][: tree.size[0]].size == 21  # draws may come from all rows of the node
    assert where(tree)[20] == 1


def test_huge_numbers_are_routed_without_a_warning():
    x = np.r_[np.full(20, 1e308), np.full(20, 1.5e308)]
    given, target = table(pd.DataFrame({"x": x, "z": np.arange(40.0), "y": np.repeat([0.0, 1.0], 20)}))
    tree = rpart.grow(given, target)
    assert tree.route(given.matrix).size == 40


# ------------------------------------------------------------------ the interface of the tree


def test_leaves_hold_their_rows_and_donors_ascend(gaps):
    given, target = table(gaps)
    tree = rpart.grow(given, target, cp=0.0, min_leaf=2)
    leaf = tree.route(given.matrix)
    for node in np.flatnonzero(tree.feature < 0):
        donors = tree.donors[tree.start[node] :][: tree.size[node]]
        assert (np.diff(donors) > 0).all()
        assert np.array_equal(donors, np.flatnonzero(leaf == node))


def test_two_levels_are_routed_as_numbers_and_more_by_subsets():
    rng = np.random.default_rng(4)
    two, five = rng.integers(0, 2, 300), rng.integers(0, 5, 300)
    frame = pd.DataFrame({"two": np.array(["p", "q"])[two], "five": np.array(list("abcde"))[five]})
    simple, target = table(frame.assign(y=3.0 * (two == 0) + rng.normal(size=300) / 9))
    tree = rpart.grow(simple.select([0]), target)
    assert tree.numbers_only
    assert tree.number.tolist() == [1, 3, 2]  # the first level has the higher mean, which goes right
    assert tree.route(np.array([[0.0], [1.0]])).tolist() == [1, 2]
    both, target = table(frame.assign(y=3.0 * (five % 2) + rng.normal(size=300) / 9))
    tree = rpart.grow(both, target, max_depth=1)
    assert tree.masks[tree.mask_at[0] :][:5].tolist() == [True, False, True, False, True]


def test_tree_round_trips(gaps):
    given, target = table(gaps)
    tree = rpart.grow(given, target, cp=0.0)
    again = Tree.from_state(tree.get_state())
    assert isinstance(again, RpartTree)
    assert np.array_equal(again.route(given.matrix), tree.route(given.matrix))
    assert again.frame(given.names).equals(tree.frame(given.names))
    assert again.splits(given.names)[0].equals(tree.splits(given.names)[0])


def test_columns_are_sorted_once_for_all_trees_of_a_table(monkeypatch):
    rng = np.random.default_rng(1)
    given, target = table(pd.DataFrame(rng.normal(size=(50, 4)), columns=["a", "b", "c", "y"]))
    sorted_columns = []
    sort = rpart.sort_column
    monkeypatch.setattr(
        "mcce.trees.rpart.tree.sort_column", lambda *args, **kw: sorted_columns.append(1) or sort(*args, **kw)
    )
    trees = [rpart.grow(given.first(k), target, min_leaf=2) for k in (1, 2, 3)]
    assert len(sorted_columns) == 4
    assert len({tree.n_nodes for tree in trees}) > 0


@pytest.mark.parametrize("names", [[], ["x"], ["job"], ["x", "job"], ["x", "z", "job", "sex"]])
@pytest.mark.parametrize("response", ["z", "job", "sex"])
def test_kernels_are_compiled_once_for_any_table(names, response):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=60), "z": rng.normal(size=60)})
    frame["job"], frame["sex"] = np.array(list("abc"))[np.arange(60) % 3], np.array(list("mf"))[np.arange(60) % 2]
    encoded = Schema.from_data(frame).encode(frame)
    given, target = (
        encoded.select([encoded.names.index(n) for n in names]),
        encoded.column(frame.columns.get_loc(response)),
    )
    tree = rpart.grow(given, target, cp=0.0, min_leaf=2)
    holes = given.matrix.copy()
    holes[::2] = np.nan
    tree.route(holes)
    assert len(kernels.grow_nodes.signatures) == 1
    assert len(kernels.route_rows.signatures) <= 1


def test_all_missing_rows_give_a_single_leaf():
    given, target = table(pd.DataFrame({"x": [np.nan] * 5, "y": [1.0, 2.0, 3.0, 4.0, 5.0]}))
    tree = rpart.grow(given, target)
    assert tree.n_leaves == 1
    assert tree.donors.tolist() == [0, 1, 2, 3, 4]


def test_tables_of_a_tree_without_splits_are_empty():
    given, target = table(pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": [1.0, 5.0, 9.0]}))
    splits, csplit = rpart.grow(given, target).splits(given.names)
    assert splits.empty
    assert csplit.shape == (0, 0)


def test_integer_column_as_the_target():
    given, target = table(pd.DataFrame({"a": np.arange(40), "y": np.repeat([1, 7], 20)}))
    assert rpart.grow(given, Column(target.feature, target.values)).value.tolist() == [4.0, 1.0, 7.0]


def test_fixtures_document_their_origin():
    assert json.dumps(read_stored("random")["versions"])
    assert (FOLDER / "README.md").read_text().count("rpart 4.1.19")


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
    expected = rpart.grow(*table(frame))
    assert expected.n_nodes > 3
    frame.insert(place, "nothing", pd.Categorical([None] * n, categories=[], ordered=ordered))
    tree = rpart.grow(*table(frame))
    others = np.delete(np.arange(3), place)
    inner = expected.feature >= 0
    np.testing.assert_array_equal(tree.feature[inner], others[expected.feature[inner]])
    np.testing.assert_allclose(tree.threshold, expected.threshold)
    np.testing.assert_array_equal(tree.donors, expected.donors)
