"""Our trees compared with those of R's rpart, bit for bit (every file of tests/fixtures/rpart)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.trees.rpart.tree import sort_column
from tests.trees.rpart.rpart_cases import (
    FOLDER,
    Answer,
    differences,
    encode,
    grow,
    numbers,
    our_frame,
    read_frame,
    read_stored,
    typed,
)

STORED = {
    path.name.removesuffix(".json.gz"): read_stored(path.name.removesuffix(".json.gz")) for path in FOLDER.glob("*.gz")
}
DATA = sorted(name for name, stored in STORED.items() if "settings" in stored.get("meta", {}))
CART = sorted(name for name, stored in STORED.items() if "leaf_new" in stored)
RANDOM = [  # rows with weights are outside the scope of the package
    pytest.param(case, id=f"{name}-{k}")
    for name, stored in sorted(STORED.items())
    for k, case in enumerate(stored.get("cases", []))
    if "weights" not in case
]


def test_no_file_is_left_out():
    assert len(DATA) >= 14
    assert len(CART) >= 5
    assert len(RANDOM) >= 200
    random = {name for name, stored in STORED.items() if "cases" in stored}
    assert {*DATA, *CART, *random} == {*STORED}


@pytest.mark.parametrize(
    ("name", "setting"), [(name, setting) for name in DATA for setting in STORED[name]["meta"]["settings"]]
)
def test_data_sets(name, setting):
    stored = STORED[name]
    meta = stored["meta"]
    frame = typed(stored["data"], {c: meta["columns"][c] for c in [*meta["predictors"], meta["response"]]})
    given, target, _ = encode(frame, meta["response"])
    tree = grow(given, target, meta["settings"][setting])

    def of_setting(part):
        rows = pd.DataFrame(stored.get(part, {"setting": []}), dtype=object)
        return numbers(rows[rows["setting"] == setting].drop(columns="setting").reset_index(drop=True))

    answer = Answer(
        of_setting("frame"),
        of_setting("splits").drop(columns="row"),
        of_setting("csplit").drop(columns="row", errors="ignore").fillna(2).to_numpy(),
        np.array(stored["where"][setting], dtype=int),
        np.arange(len(frame)),
    )
    assert differences(tree, answer) == []
    assert tree.n_leaves == meta["leaves"][setting]
    if meta["method"] == "class":
        counts = of_setting("class_counts").drop(columns="node").to_numpy()
        for node, expected in enumerate(counts):
            classes = target.values[tree.rows_in(node)].astype(int)
            assert np.bincount(classes, minlength=counts.shape[1]).tolist() == expected.tolist()


@pytest.mark.parametrize("name", CART)
def test_trees_of_synthpop(name):
    stored = STORED[name]
    meta = stored["meta"]
    types = {p["name"]: p for p in meta["predictors"]}
    train = typed(stored["train"], types | {"y": meta["y"]})
    given, target, new = encode(train, "y", typed(stored["new"], types))
    tree = grow(given, target, meta["control"])
    assert (tree.training_node + 1).tolist() == [int(w) for w in stored["leaf_train"]["where"]]
    reached = tree.node_of(new.matrix)
    assert (reached + 1).tolist() == [int(w) for w in stored["leaf_new"]["where"]]
    assert tree.node["number"][reached].tolist() == [int(k) for k in stored["leaf_new"]["leaf"]]
    frame = our_frame(tree)
    for column in ("node", "n", "dev", "complexity"):
        assert frame[column].tolist() == [float(v) for v in stored["frame"][column]]
    if target.feature.is_numeric:
        assert frame["yval"].tolist() == [float(v) for v in stored["frame"]["yval"]]
    assert grow(given, target, meta["control"] | {"cp": -1.0}).n_leaves == meta["n_leaves_cp_minus_1"]
    node_of = {int(number): node for node, number in enumerate(tree.node["number"])}
    for number, rows in zip(stored["donors"]["leaf"], stored["donors"]["donor_rows"]):
        assert (tree.rows_in(node_of[int(number)]) + 1).tolist() == [int(row) for row in rows.split(";")]


def test_some_rows_of_synthpop_have_a_level_unseen_in_their_node():
    assert "1" in STORED["cart_numeric_absent_levels"]["leaf_new"]["absent_level_on_path"]


@pytest.mark.parametrize("case", RANDOM)
def test_random_data_with_missing_values(case):
    given, target, new = encode(read_frame(case["frame"]), "y", read_frame(case["new"]))
    stored = case["answer"]
    answer = Answer(
        pd.DataFrame(stored["frame"]),
        pd.DataFrame(stored["splits"], columns=["var", "count", "ncat", "improve", "index", "adj"]),
        np.array(stored["csplit"], dtype=int) if stored["csplit"] else np.empty((0, 0)),
        np.array(stored["where"]),
        np.array(stored["rows"]),
        np.array(stored["where_new"]),
    )
    assert differences(grow(given, target, case["control"]), answer, new) == []


def test_random_data_cover_the_hard_cases():
    """Missing values, unused levels, used surrogates, ordered columns, two to five classes."""
    cases = STORED["random"]["cases"]
    splits = [case["answer"]["splits"] for case in cases]
    surrogates = [count for s in splits for count, adjusted in zip(s["count"], s["adj"]) if adjusted > 0]
    assert sum(count > 0 for count in surrogates) > 15
    assert sum(len(case["answer"]["rows"]) < len(next(iter(case["frame"]["y"].values()))) for case in cases) > 10
    classes = {len(set(case["frame"]["y"]["codes"])) for case in cases if "codes" in case["frame"]["y"]}
    assert {2, 3, 4, 5} <= classes
    assert sum(column.get("ordered", False) for case in cases for column in case["frame"].values()) > 20


def test_equal_values_are_sorted_as_in_r():
    """The order that R passes to a user's splitting function: y = 1, ..., 12 along x, and along a constant."""
    rows = sort_column(np.array([3.0, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2])) + 1
    assert rows.tolist() == [2, 11, 5, 8, 12, 9, 6, 3, 7, 4, 10, 1]
    assert sort_column(np.ones(30)).tolist() == list(range(30))
