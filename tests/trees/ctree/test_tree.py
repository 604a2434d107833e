"""Conditional inference trees compared with R's party, tree growth, and unusual input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.exceptions import InputError
from mcce.table import Column, Schema
from mcce.trees.ctree.tree import CtreeTree, grow
from mcce.trees.tree import Tree
from tests.marks import slow_but
from tests.rcompat.parity_tables import cases_of, read_meta, read_table
from tests.trees.ctree.ctree_cases import CASES, Case, as_in_r, read_case, read_logicals, tied
from tests.trees.ctree.problem import encode

RUNS = [(name, run) for name in CASES for run in "ab"]


PARITY_CASES = cases_of("_ctree")


ARGUMENTS = {"mincriterion": "mincriterion", "minsplit": "min_split", "minbucket": "min_leaf", "maxdepth": "max_depth"}


def numbered(tree, values):
    """Values of the nodes in the order of their numbers."""
    return values[np.argsort(tree.number)]


def goes_to(tree, node, values):
    """Return the child for each value of a node's variable, from the documentation of `Tree`."""
    if tree.mask_at[node] >= 0:
        left = tree.masks[tree.mask_at[node] + values]
    else:
        left = values < tree.threshold[node]
    return np.where(left, tree.left[node], tree.left[node] + 1)


def assert_close(ours, theirs):
    """Within 1e-10, relative for large ones; infinite ones equal."""
    finite = np.isfinite(theirs)
    assert np.array_equal(ours[~finite], theirs[~finite])
    assert (np.abs(ours[finite] - theirs[finite]) <= 1e-10 * np.maximum(1, np.abs(theirs[finite]))).all()


# ---------------------------------------------------------------- party's trees


@pytest.fixture(scope="module", params=RUNS, ids="-".join)
def grown(request) -> tuple[Case, str, CtreeTree]:
    name, run = request.param
    case = read_case(name)
    return case, run, grow(case.given, case.target, **case.settings(run))


def test_every_row_is_in_the_node_of_party(grown):
    case, run, tree = grown
    train, new = (case.numbers(f"where_{rows}_{run}", "node") for rows in ("train", "new"))
    assert np.array_equal(tree.number[tree.route(case.given.matrix)], train)
    assert np.array_equal(tree.number[tree.route(case.new.matrix)], new)
    for node in np.flatnonzero(tree.feature < 0):
        donors = tree.donors[tree.start[node] : tree.start[node] + tree.size[node]]
        assert np.array_equal(donors, np.flatnonzero(train == tree.number[node]))


def test_statistics_and_criteria_match_party(grown):
    case, run, tree = grown
    for ours, theirs in ((tree.statistics, "statistic"), (tree.criteria, "criterion")):
        assert_close(numbered(tree, ours), case.numbers(f"tests_{run}", theirs).reshape(tree.statistics.shape))
    assert_close(numbered(tree, tree.criterion), case.numbers(f"nodes_{run}", "max_criterion"))


def test_every_split_matches_party(grown):
    case, run, tree = grown
    assert np.array_equal(numbered(tree, tree.size), case.numbers(f"nodes_{run}", "n"))
    for node, row in zip(np.argsort(tree.number), case.tables[f"nodes_{run}"].to_dict("records")):
        assert (tree.feature[node] < 0) == (row["terminal"] == "1")
        if tree.feature[node] < 0:
            continue
        feature = case.given.features[tree.feature[node]]
        assert feature.name == row["split_var"]
        assert tree.cut_statistic[node] == pytest.approx(float(row["split_stat"]), rel=1e-12)
        left, right = sorted((tree.left[node], tree.left[node] + 1), key=tree.number.__getitem__)
        assert [tree.number[left], tree.number[right]] == [int(row["left"]), int(row["right"])]
        if row["split_kind"] == "factor":
            goes_left = goes_to(tree, node, np.arange(feature.n_levels)) == left
            assert set(feature.levels[goes_left]) == set(row["left_levels"].split(";"))
            if tree.mask_at[node] >= 0:
                seen = tree.seen[tree.mask_at[node] :][: feature.n_levels]
                assert set(feature.levels[seen]) == set(row["present_levels"].split(";"))
        else:
            assert tree.cut[node] + (feature.kind == "ordered") == float(row["cut"])


@pytest.mark.parametrize("name", slow_but(PARITY_CASES, *PARITY_CASES[::3]))
def test_trees_of_mccer(name):
    meta = read_meta(name)
    levels = {column: d["levels"] for column, d in meta["columns"].items() if d["type"] in ("factor", "ordered")}
    frame = read_table(name, "x_train", text=levels)
    for column, known in levels.items():
        frame[column] = pd.Categorical(frame[column], known, ordered=meta["columns"][column]["type"] == "ordered")
    low, high = (float(bound) for bound in meta["c_int"])
    score = read_table(name, "pred_train")["pred"]
    frame = frame.assign(decision=score.between(low, high).astype(float), dummy=1.0)
    table = Schema.from_data(frame).encode(frame)
    where = read_table(name, "where_train")
    tests = read_table(name, "ctree_tests", text=["feature", "var"])
    arguments = {ARGUMENTS[key]: value for key, value in dict(meta["engine_arguments"]).items()}
    for feature, tree in meta["trees"].items():
        given = table.select([table.names.index(p) for p in np.atleast_1d(tree["predictors"])])
        ours = grow(given, table.column(table.names.index(feature)), **arguments)
        assert np.array_equal(ours.number[ours.route(given.matrix)], where[feature])
        theirs = tests[tests["feature"] == feature]
        assert_close(numbered(ours, ours.statistics).ravel(), theirs["statistic"].to_numpy())
        assert_close(numbered(ours, ours.criteria).ravel(), theirs["criterion"].to_numpy())


@pytest.mark.slow
def test_logicals_and_redundant_variables():
    """The tied statistics match party to the last bit, which determines the split variable."""
    n_tied = 0
    for case in read_logicals():
        tree = grow(case.given, case.target, mincriterion=case.mincriterion, min_split=2, min_leaf=1)
        assert np.array_equal(tree.number[tree.route(case.given.matrix)], case.where)
        ours, in_doubt = numbered(tree, tree.statistics), tied(case.statistics)
        assert np.array_equal(ours[in_doubt], case.statistics[in_doubt])
        assert_close(ours, case.statistics)
        n_tied += in_doubt.sum()
    assert n_tied > 300


def test_logical_is_tested_as_two_levels_and_split_as_a_number():
    rng = np.random.default_rng(5)
    yes = rng.random(60) < 0.4
    frame = pd.DataFrame({"x": yes, "y": rng.normal(size=60) - 2 * yes})
    logical = grow(*as_in_r(frame))
    levels = grow(*encode(frame))
    assert np.array_equal(logical.statistics, levels.statistics)
    assert logical.cut[0] == 0
    assert np.isnan(levels.cut[0])
    assert list(logical.number) == [1, 2, 3]
    assert np.array_equal(logical.route(yes[:, None].astype(float)), np.where(yes, 2, 1))


# ---------------------------------------------------------------- growing


def simulated(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x, level = rng.normal(size=n), rng.choice(list("abcd"), n)
    y = 2 * (x > 0.3) + (level == "c") + rng.normal(size=n) / 2
    return pd.DataFrame({"x": x, "level": pd.Categorical(level), "noise": rng.normal(size=n), "y": y})


def test_limits_on_size_and_depth():
    given, target = encode(simulated())
    whole = grow(given, target, mincriterion=0.5, min_split=2, min_leaf=1)
    assert whole.n_leaves > 5
    assert grow(given, target, max_depth=0).n_nodes == 1
    assert grow(given, target, max_depth=1).n_leaves == 2
    assert (grow(given, target, mincriterion=0.5, min_leaf=30).size >= 30).all()
    split = grow(given, target, mincriterion=0.5, min_split=100, min_leaf=1)
    assert (split.size[split.feature >= 0] >= 100).all()
    share = grow(given, target, mincriterion=0.5, min_leaf=1, minprob=0.2)
    inner = np.flatnonzero(share.feature >= 0)
    assert (
        np.minimum(share.size[share.left[inner]], share.size[share.left[inner] + 1]) > 0.2 * share.size[inner]
    ).all()
    assert grow(given, target, mincriterion=1.0).n_nodes == 1


def test_tree_is_equal_for_a_subset_of_a_larger_table():
    frame = simulated()
    given, target = encode(frame)
    alone = encode(frame[["noise", "x", "y"]])[0]
    cut, whole = (grow(table, target).get_state() for table in (given.select([2, 0]), alone))
    for name, part in cut.items():
        np.testing.assert_array_equal(part, whole[name])


def test_state_restores_the_tree():
    given, target = encode(simulated())
    tree = grow(given, target)
    again = Tree.from_state(tree.get_state())
    assert isinstance(again, CtreeTree)
    assert np.array_equal(again.route(given.matrix), tree.route(given.matrix))


def test_missing_values_are_ignored_and_go_to_the_larger_child():
    rng = np.random.default_rng(4)
    frame = simulated(300)
    lost = rng.random(300) < 0.3
    frame.loc[lost, "x"] = np.nan
    given, target = encode(frame)
    tree = grow(given, target, max_depth=1)
    known_given, known_target = encode(frame[~lost])
    known = grow(known_given, known_target, max_depth=1)
    assert tree.statistics[0, 0] == known.statistics[0, 0]
    assert (tree.feature[0], tree.cut[0], tree.cut_statistic[0]) == (0, known.cut[0], known.cut_statistic[0])
    child = tree.route(given.matrix)
    sizes = np.bincount(child[~lost], minlength=3)[1:]
    assert (child[lost] == 1 + np.argmax(sizes)).all()


def test_missing_values_go_right_if_the_children_are_equal():
    frame = pd.DataFrame({"x": [*np.arange(20.0), np.nan], "y": [*[0.0] * 10, *[1.0] * 10, 0.0]})
    given, target = encode(frame)
    tree = grow(given, target, max_depth=1)
    assert tree.cut[0] == 9.0
    assert tree.number[tree.route(given.matrix)][-1] == 3


def test_variable_with_few_values_is_neither_tested_nor_counted():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": rng.normal(size=60), "rare": rng.normal(size=60), "y": rng.normal(size=60)})
    frame.loc[15:, "rare"] = np.nan
    both = grow(*encode(frame))
    alone = grow(*encode(frame[["x", "y"]]))
    assert both.statistics[0].tolist() == [alone.statistics[0, 0], 0.0]
    assert both.criteria[0].tolist() == [alone.criteria[0, 0], 0.0]


def test_two_level_factors_are_routed_as_numbers():
    rng = np.random.default_rng(6)
    sex = rng.choice(["f", "m"], 200)
    for sign in (1, -1):
        frame = pd.DataFrame({"sex": pd.Categorical(sex), "y": sign * (sex == "m") + rng.normal(size=200) / 9})
        tree = grow(*encode(frame))
        assert tree.numbers_only
        assert tree.n_leaves == 2
        leaf = tree.number[tree.route(np.array([[0.0], [1.0]]))]
        assert leaf.tolist() == ([3, 2] if sign > 0 else [2, 3])  # the higher responses are party's left child


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
    settings = {"min_split": 2, "min_leaf": 1, "mincriterion": 0.0}
    for frame in (constant, nothing, constant[["zero", "y"]]):
        tree = grow(*encode(frame), **settings)
        assert tree.n_nodes == 1
        assert tree.criterion[0] == pytest.approx(0.0, abs=1e-3)
    given, target = encode(constant)
    assert grow(given.first(0), target, **settings).n_nodes == 1


@pytest.mark.parametrize("statistic", ["quadratic", "maximum"])
def test_one_level_or_one_value_gives_a_single_leaf(statistic):
    x = np.arange(50.0)
    for y in (pd.Series(pd.Categorical(["a"] * 50)), pd.Series([2.5] * 50), pd.Series([1e-9, 0.0] * 25)):
        given, target = encode(pd.DataFrame({"x": x, "f": pd.Categorical(list("abcde") * 10), "y": y}))
        assert grow(given, target, statistic=statistic, mincriterion=0.0).n_nodes == 1


def test_numbers_far_from_zero_are_handled():
    rng = np.random.default_rng(8)
    label = rng.choice(list("ab"), 300)
    x = np.round(4 * (label == "b") + rng.normal(size=300), 1)
    for y in (pd.Categorical(label), np.array(label == "b", dtype=float)):
        near = grow(*encode(pd.DataFrame({"x": x, "y": y})), max_depth=1)
        for offset in (1e3, 1e7, 1e9, 1e11):
            far = grow(*encode(pd.DataFrame({"x": offset + x, "y": y})), max_depth=1)
            assert np.array_equal(near.donors, far.donors)
            assert far.statistics[0, 0] == pytest.approx(near.statistics[0, 0], rel=0.05)


def test_copies_of_a_column_with_many_levels():
    rng = np.random.default_rng(9)
    codes = rng.integers(0, 300, 3000)
    y = rng.choice(list("abcdef"), 3000)
    frame = pd.DataFrame({"code": codes.astype(str), "name": [f"n{code}" for code in codes], "y": y})
    tree = grow(*encode(frame), max_depth=1)
    assert tree.statistics[0, 0] == pytest.approx(tree.statistics[0, 1])
    table = pd.crosstab(codes, y)
    assert tree.statistics[0, 0] == pytest.approx(stats.chi2_contingency(table).statistic * 2999 / 3000)


def test_missing_response_raises():
    given, target = encode(simulated())
    with pytest.raises(InputError, match="'y' of a tree has missing values"):
        grow(given, Column(target.feature, np.where(np.arange(400) < 3, np.nan, target.values)))
