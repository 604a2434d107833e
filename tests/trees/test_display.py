"""Displayed trees compared with the text that R prints, and with the rows that they send down."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from mcce.trees import Tree, cart
from mcce.trees.ctree import grow_ctree
from mcce.trees.rpart import grow_rpart
from tests.trees.ctree.ctree_cases import CASES, STORED, encode, read_case

GROW = {"cart": cart.grow, "party": grow_ctree, "rpart": grow_rpart}
PRINTS = next(stored["prints"] for stored in STORED.values() if "prints" in stored)


def grown(name, frame, target="y", **options):
    given, response = encode(frame, target)
    return Tree(GROW[name](given, response, **options)), given


@pytest.mark.parametrize("case", CASES)
def test_nodes_are_those_that_rpart_prints(case):
    stored = read_case(case)
    frame = Tree(grow_rpart(stored.given, stored.target)).to_frame()
    lines = [re.match(r" *(\d+)\) (\S+< \S+|\S+) (\d+) +(\S+) +(\S+)", line) for line in PRINTS["rpart"][case][5:]]
    assert len(lines) == len(frame)
    for line in lines:
        node, condition = frame.loc[int(line[1])], line[2]
        assert node["n"] == int(line[3])
        if stored.target.feature.is_numeric:
            assert node["prediction"] == pytest.approx(float(line[5]), rel=1e-6)
        else:
            assert node["prediction"] == line[5]
        if "=" in condition and ">=" not in condition:
            name, levels = condition.split("=")
            assert node["condition"].startswith(f"{name} in ")
            theirs, ours = set(levels.split(",")), set(re.search("{(.*)}", node["condition"])[1].split(", "))
            if stored.frame[name].cat.ordered:  # R names levels that splits above exclude
                assert ours <= theirs
            else:  # R leaves out levels that the node does not have
                assert theirs <= ours
        elif condition != "root":
            name, sign, cut = re.match(r"(.*?)(<|>=) ?(.*)", condition).groups()
            ours = node["condition"].split(" ")
            assert ours[:2] == [name, sign]
            assert float(ours[2]) == pytest.approx(float(cut), rel=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_nodes_are_those_that_party_prints(case):
    stored = read_case(case)
    frame = Tree(grow_ctree(stored.given, stored.target)).to_frame()
    printed = PRINTS["party"][case]
    leaves = [re.match(r" *(\d+)\)\*  weights = (\d+)", line) for line in printed]
    assert {int(line[1]): int(line[2]) for line in leaves if line} == frame.loc[frame["variable"].isna(), "n"].to_dict()
    splits = [re.match(r" *(\d+)\) (.*); criterion = (.*), statistic = (.*)", line) for line in printed]
    for line in filter(None, splits):
        node, rule = frame.loc[int(line[1])], line[2].replace(" == ", " in ")
        children = frame.loc[frame["parent"] == int(line[1]), "condition"]
        assert node["criterion"] == pytest.approx(float(line[3]), abs=6e-4)
        if " in " in rule:
            assert rule in children.tolist()
        elif stored.frame[node["variable"]].dtype == "category":
            assert children.iloc[0].startswith(f"{node['variable']} in ")
            assert node["levels"][-1] == rule.split(" <= ")[1]
        else:
            assert children.iloc[0].startswith(f"{node['variable']} <= ")
            assert node["threshold"] == pytest.approx(float(rule.split(" <= ")[1]))


def mixed(n=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=n), "job": pd.Categorical(rng.choice(list("abcdef"), n))})
    frame["grade"] = pd.Categorical(rng.choice(list("uvw"), n), list("uvw"), ordered=True)
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 60, n), "D")
    gain = frame["x"] + 2 * frame["job"].isin(["a", "e"]) + (frame["grade"] == "w")
    frame["y"] = gain + 2 * (frame["day"] > "2024-01-20") + rng.normal(size=n) / 5
    return frame


@pytest.mark.parametrize("name", GROW)
def test_rows_can_be_followed_through_the_frame(name):
    data = mixed(150)
    tree, given = grown(name, data)
    frame = tree.to_frame()
    reached = []
    for row in data.to_dict("records"):
        at = frame.index[0]
        while pd.notna(frame.loc[at, "variable"]):
            node = frame.loc[at]
            value = row[node["variable"]]
            if node["levels"] is not None and not isinstance(node["levels"], float):
                is_left = value in node["levels"]
            else:
                is_left = value <= node["threshold"] if name == "party" else value < node["threshold"]
            at = frame.index[frame["parent"] == at][0 if is_left else 1]
        reached.append(at)
    leaf = tree.grown.leaf(given.matrix)
    assert pd.DataFrame({"at": reached, "leaf": leaf}).drop_duplicates().shape[0] == tree.grown.n_leaves
    ends = frame[frame["variable"].isna()]
    assert pd.Series(reached).value_counts().to_dict() == ends["n"].to_dict()
    means = data["y"].groupby(np.array(reached)).mean()
    np.testing.assert_allclose(means[ends.index], ends["prediction"].astype(float))
    assert str(tree).count(" *\n") + str(tree).endswith(" *") == tree.grown.n_leaves
    assert repr(tree) == f"Tree(y, {tree.grown.n_leaves} leaves)"


@pytest.mark.parametrize("name", GROW)
def test_predictions_of_ordered_levels(name):
    x = np.arange(300.0)
    y = pd.Categorical.from_codes((x // 100).astype(int), list("abc"), ordered=True)
    frame = grown(name, pd.DataFrame({"x": x, "y": y}))[0].to_frame()
    leaves = frame[frame["variable"].isna()]
    assert leaves["prediction"].tolist()[:: len(leaves) - 1] == ["a", "c"]


def test_levels_ruled_out_above_are_not_named_again():
    frame = grown("cart", mixed(2000)[["job", "y"]])[0].to_frame()
    for _, node in frame.iloc[1:].iterrows():
        above = frame.loc[node["parent"], "condition"]
        if above != "root":
            assert set(re.search("{(.*)}", node["condition"])[1]) < set(re.search("{(.*)}", above)[1])


def test_dates_missing_values_and_long_sets():
    data = mixed()
    tree, _ = grown("cart", data[["day", "y"]], max_depth=1)
    assert tree.to_frame()["condition"].tolist()[1] == "day < 2024-01-20 12:00:00"
    by_date, _ = grown("cart", data[["x", "day"]], "day", max_depth=0)
    assert by_date.to_frame()["prediction"].iloc[0] == data["day"].mean()
    lost = np.random.default_rng(0).random(400) < 0.3
    tree, _ = grown("cart", pd.DataFrame({"x": np.where(lost, np.nan, data["x"]), "y": 4.0 * lost}), max_depth=1)
    assert set(tree.to_frame()["condition"]) == {"root", "x is known", "x is missing"}
    town = pd.Categorical(np.arange(400) % 40)
    tree, _ = grown("cart", pd.DataFrame({"town": town, "y": (town.codes > 15) * 1.0}), max_depth=1)
    assert "and 12 more}" in tree.to_frame()["condition"].iloc[2]


def test_missing_responses():
    frame = mixed().assign(gone=lambda f: f["y"].where(f["x"] < 0.5), level=lambda f: f["job"].where(f["x"] < 0.5))
    number, _ = grown("cart", frame[["x", "gone"]], "gone", max_depth=0)
    assert number.to_frame()["prediction"].iloc[0] == pytest.approx(frame["gone"].mean())
    level, _ = grown("cart", frame[["x", "level"]], "level", max_depth=1)
    assert level.to_frame()["prediction"].iloc[2] == "missing"


def test_deep_trees_have_long_numbers():
    frame, _ = grown("cart", pd.DataFrame({"x": np.arange(70.0), "y": 3.0 ** np.arange(70)}), min_leaf=1)
    assert max(frame.to_frame().index) > 2**63
    assert len(str(frame).split("\n")) == 2 + 139
