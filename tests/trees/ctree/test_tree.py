"""Conditional inference trees: growth, missing values and unusual input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.exceptions import InputError
from mcce.table import Column
from mcce.trees.ctree import grow_ctree
from tests.trees.ctree.ctree_cases import as_in_r, encode


def simulated(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x, level = rng.normal(size=n), rng.choice(list("abcd"), n)
    y = 2 * (x > 0.3) + (level == "c") + rng.normal(size=n) / 2
    return pd.DataFrame({"x": x, "level": pd.Categorical(level), "noise": rng.normal(size=n), "y": y})


# ---------------------------------------------------------------- growing


def test_limits_on_size_and_depth():
    given, target = encode(simulated())
    assert grow_ctree(given, target, mincriterion=0.5, minsplit=2, minbucket=1).n_leaves > 5
    assert grow_ctree(given, target, maxdepth=0).n_leaves == 1
    assert grow_ctree(given, target, maxdepth=1).n_leaves == 2
    assert (grow_ctree(given, target, mincriterion=0.5, minbucket=30).node["n"] >= 30).all()
    split = grow_ctree(given, target, mincriterion=0.5, minsplit=100, minbucket=1)
    assert (split.node["n"][~split.is_leaf] >= 100).all()
    share = grow_ctree(given, target, mincriterion=0.5, minbucket=1, minprob=0.2).node
    inner = share[share["variable"] >= 0]
    assert (np.minimum(inner["n_left"], inner["n"] - inner["n_left"]) > 0.2 * inner["n"]).all()
    assert grow_ctree(given, target, mincriterion=1.0).n_leaves == 1


def test_logical_is_tested_as_two_levels_and_split_as_a_number():
    rng = np.random.default_rng(5)
    yes = rng.random(60) < 0.4
    frame = pd.DataFrame({"x": yes, "y": rng.normal(size=60) - 2 * yes})
    logical = grow_ctree(*as_in_r(frame))
    levels = grow_ctree(*encode(frame))
    assert np.array_equal(logical.statistics, levels.statistics)
    assert logical.nodes()["cut"][0] == 0
    assert levels.nodes()["left_levels"][0] == (0,)
    assert np.array_equal(logical.leaf(yes[:, None].astype(float)), yes)


def test_tree_is_equal_for_a_subset_of_a_larger_table():
    frame = simulated()
    given, target = encode(frame)
    alone = encode(frame[["noise", "x", "y"]])[0]
    cut, whole = (grow_ctree(table, target) for table in (given.select([2, 0]), alone))
    pd.testing.assert_frame_equal(cut.nodes(), whole.nodes())
    assert np.array_equal(cut.training_leaf, whole.training_leaf)


def test_sides_of_two_levels_are_those_of_party():
    rng = np.random.default_rng(6)
    sex = rng.choice(["f", "m"], 200)
    for sign in (1, -1):
        frame = pd.DataFrame({"sex": pd.Categorical(sex), "y": sign * (sex == "m") + rng.normal(size=200) / 9})
        leaf = grow_ctree(*encode(frame)).leaf(np.array([[0.0], [1.0]]))
        assert leaf.tolist() == ([1, 0] if sign > 0 else [0, 1])  # the higher responses are party's left child


# ---------------------------------------------------------------- missing values


def test_missing_values_are_ignored_and_go_to_the_larger_child():
    rng = np.random.default_rng(4)
    frame = simulated(300)
    lost = rng.random(300) < 0.3
    frame.loc[lost, "x"] = np.nan
    given, target = encode(frame)
    tree = grow_ctree(given, target, maxdepth=1)
    known = grow_ctree(*encode(frame[~lost].reset_index(drop=True)), maxdepth=1)
    assert tree.statistics[0, 0] == known.statistics[0, 0]
    for name in ("variable", "cut", "cut_statistic"):
        assert tree.node[name][0] == known.node[name][0]
    child = tree.leaf(given.matrix)
    assert (child[lost] == np.argmax(np.bincount(child[~lost]))).all()
    np.testing.assert_array_equal(child, tree.training_leaf)


def test_missing_values_go_right_if_the_children_are_equal():
    frame = pd.DataFrame({"x": [*np.arange(20.0), np.nan], "y": [*[0.0] * 10, *[1.0] * 10, 0.0]})
    given, target = encode(frame)
    tree = grow_ctree(given, target, maxdepth=1)
    assert tree.node["cut"][0] == 9.0
    assert tree.leaf(given.matrix)[-1] == 1


def test_variable_with_few_values_is_neither_tested_nor_counted():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": rng.normal(size=60), "rare": rng.normal(size=60), "y": rng.normal(size=60)})
    frame.loc[15:, "rare"] = np.nan
    both = grow_ctree(*encode(frame))
    alone = grow_ctree(*encode(frame[["x", "y"]]))
    assert both.statistics[0].tolist() == [alone.statistics[0, 0], 0.0]
    assert both.criteria[0].tolist() == [alone.criteria[0, 0], 0.0]


# ---------------------------------------------------------------- unusual input


@pytest.mark.parametrize("kind", ["number", "factor", "ordered"])
@pytest.mark.parametrize("n", [1, 2, 5, 60])
def test_no_predictors_give_a_single_leaf(n, kind):
    rng = np.random.default_rng(n)
    y = pd.Series(rng.normal(size=n))
    if kind != "number":
        y = pd.Series(pd.Categorical(rng.choice(list("abc"), n), list("abc"), ordered=kind == "ordered"))
    constant = pd.DataFrame({"zero": 0.0, "tenth": 0.1, "large": 1e8, "level": pd.Categorical(["a"] * n), "y": y})
    nothing = constant.assign(gone=np.nan)
    settings = {"minsplit": 2, "minbucket": 1, "mincriterion": 0.0}
    for frame in (constant, nothing, constant[["zero", "y"]]):
        tree = grow_ctree(*encode(frame), **settings)
        assert tree.n_leaves == 1
        assert tree.node["criterion"][0] == pytest.approx(0.0, abs=1e-3)
    given, target = encode(constant)
    assert grow_ctree(given.first(0), target, **settings).n_leaves == 1


def test_one_level_or_one_value_gives_a_single_leaf():
    x = np.arange(50.0)
    for y in (pd.Series(pd.Categorical(["a"] * 50)), pd.Series([2.5] * 50), pd.Series([1e-9, 0.0] * 25)):
        given, target = encode(pd.DataFrame({"x": x, "f": pd.Categorical(list("abcde") * 10), "y": y}))
        assert grow_ctree(given, target, mincriterion=0.0).n_leaves == 1


def test_numbers_far_from_zero_are_handled():
    rng = np.random.default_rng(8)
    label = rng.choice(list("ab"), 300)
    x = np.round(4 * (label == "b") + rng.normal(size=300), 1)
    for y in (pd.Categorical(label), np.array(label == "b", dtype=float)):
        near = grow_ctree(*encode(pd.DataFrame({"x": x, "y": y})), maxdepth=1)
        for offset in (1e3, 1e7, 1e9, 1e11):
            far = grow_ctree(*encode(pd.DataFrame({"x": offset + x, "y": y})), maxdepth=1)
            assert np.array_equal(near.training_leaf, far.training_leaf)
            assert far.statistics[0, 0] == pytest.approx(near.statistics[0, 0], rel=0.05)


def test_copies_of_a_column_with_many_levels():
    rng = np.random.default_rng(9)
    codes = rng.integers(0, 300, 3000)
    y = rng.choice(list("abcdef"), 3000)
    frame = pd.DataFrame({"code": codes.astype(str), "name": [f"n{code}" for code in codes], "y": y})
    tree = grow_ctree(*encode(frame), maxdepth=1)
    assert tree.statistics[0, 0] == pytest.approx(tree.statistics[0, 1])
    table = pd.crosstab(codes, y)
    assert tree.statistics[0, 0] == pytest.approx(stats.chi2_contingency(table).statistic * 2999 / 3000)


def test_missing_response_raises():
    given, target = encode(simulated())
    with pytest.raises(InputError, match="'y' of a tree has missing values"):
        grow_ctree(given, Column(target.feature, np.where(np.arange(400) < 3, np.nan, target.values)))
