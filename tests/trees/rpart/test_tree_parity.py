"""Trees in the rpart dialect compared with R's rpart, bit for bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.trees.rpart import tree as rpart
from tests.marks import slow, slow_but
from tests.rcompat.parity_tables import cases_of, has_table, read_table
from tests.rcompat.test_stages import found
from tests.trees.rpart.rpart_cases import FOLDER, Answer, differences, encode, grow, numbers, read_stored, typed, where

SETTINGS = ["default", "synthpop", "full", "depth3", "cp05", "bucket20"]


DATA = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*_*.json.gz") if "cart_" not in path.name)


CART = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("cart_*.json.gz"))


RANDOM = read_stored("random")["cases"]


# only a factor is fixed, many small leaves, missing values
FEW_RUNS = ["credit_factor_only_fixed_rpart", "gauss5_minbucket1_rpart", "airquality_categorical_rpart"]


def test_fourteen_data_sets_and_five_of_synthpop_exist():
    assert (len(DATA), len(CART), len(RANDOM)) == (14, 5, 200)


@pytest.mark.parametrize("setting", slow_but(SETTINGS, "synthpop", "full"))
@pytest.mark.parametrize("name", DATA)
def test_parity_with_rpart(name, setting):
    stored = read_stored(name)
    meta = stored["meta"]
    frame = typed(stored["data"], {c: meta["columns"][c] for c in [*meta["predictors"], meta["response"]]})
    given, target, _ = encode(frame, meta["response"])
    tree = grow(given, target, meta["settings"][setting])

    def of_setting(part):
        rows = pd.DataFrame(stored.get(part, {"setting": []}), dtype=object)
        return numbers(rows[rows["setting"] == setting].drop(columns="setting").reset_index(drop=True))

    csplit = of_setting("csplit").drop(columns="row", errors="ignore").fillna(2).to_numpy()
    answer = Answer(
        of_setting("frame"),
        of_setting("splits").drop(columns="row"),
        csplit,
        np.array(stored["where"][setting], dtype=int),
        np.arange(len(frame)),
    )
    assert differences(tree, given, target, answer) == []
    assert tree.n_leaves == meta["leaves"][setting]
    if meta["method"] == "class":
        counts = of_setting("class_counts").drop(columns="node").to_numpy()
        for node, expected in zip(tree.frame_order, counts):
            classes = target.values[tree.donors[tree.start[node] :][: tree.size[node]]].astype(int)
            assert np.bincount(classes, minlength=counts.shape[1]).tolist() == expected.tolist()


@pytest.fixture(params=CART)
def cart_case(request):
    stored = read_stored(request.param)
    meta = stored["meta"]
    types = {p["name"]: p for p in meta["predictors"]}
    train = typed(stored["train"], types | {"y": meta["y"]})
    return stored, encode(train, "y", typed(stored["new"], types))


def test_parity_with_trees_of_synthpop(cart_case):
    stored, (given, target, new) = cart_case
    meta = stored["meta"]
    tree = grow(given, target, meta["control"])
    assert where(tree).tolist() == [int(w) for w in stored["leaf_train"]["where"]]
    leaf = tree.route(new.matrix)
    assert tree.frame_row[leaf].tolist() == [int(w) for w in stored["leaf_new"]["where"]]
    assert tree.number[leaf].tolist() == [int(k) for k in stored["leaf_new"]["leaf"]]
    frame = tree.frame(given.names)
    for name in ("node", "n", "dev", "complexity"):
        assert frame[name].tolist() == [float(v) for v in stored["frame"][name]]
    if target.feature.is_numeric:
        assert frame["yval"].tolist() == [float(v) for v in stored["frame"]["yval"]]
    assert grow(given, target, meta["control"] | {"cp": -1.0}).n_leaves == meta["n_leaves_cp_minus_1"]


def test_parity_of_donors_of_synthpop(cart_case):
    stored, (given, target, _) = cart_case
    tree = grow(given, target, stored["meta"]["control"])
    node_of = {int(number): node for node, number in enumerate(tree.number)}
    for number, rows in zip(stored["donors"]["leaf"], stored["donors"]["donor_rows"]):
        node = node_of[int(number)]
        donors = tree.donors[tree.start[node] :][: tree.size[node]]
        assert (donors + 1).tolist() == [int(row) for row in rows.split(";")]


def test_some_rows_of_synthpop_have_a_level_unseen_in_their_node():
    stored = read_stored("cart_numeric_absent_levels")
    assert "1" in stored["leaf_new"]["absent_level_on_path"]


@pytest.mark.parametrize("name", slow_but(cases_of("_rpart"), *FEW_RUNS))
def test_parity_of_the_trees_behind_mccer(name):
    """Every tree of mcceR's runs: frame, splits and sides of levels."""
    tables = {part: read_table(name, f"rpart_{part}", text=("feature", "var")) for part in ("frame", "splits")}
    if has_table(name, "rpart_csplit"):
        tables["csplit"] = read_table(name, "rpart_csplit", text=("feature",))
    model = found(name).featuremodel_object
    leaves = read_table(name, "where_train")
    for i, (feature, tree) in enumerate(zip(model.mutable_features, model.trees)):
        frame, splits, csplit = (
            tables[part][tables[part]["feature"] == feature].drop(columns=["feature", "row"], errors="ignore")
            if part in tables
            else pd.DataFrame()
            for part in ("frame", "splits", "csplit")
        )
        answer = Answer(frame, splits, csplit.fillna(2).to_numpy(), leaves[feature].to_numpy(), np.arange(len(leaves)))
        given, target = model.table.first(model.n_given + i), model.table.column(model.n_given + i)
        assert differences(tree, given, target, answer) == [], feature


def read_frame(columns):
    def column(stored):
        if "values" in stored:
            return stored["values"]
        return pd.Categorical.from_codes(stored["codes"], stored["levels"], ordered=stored["ordered"])

    return pd.DataFrame({name: column(stored) for name, stored in columns.items()})


@pytest.mark.parametrize("first", [0, *slow(*range(20, len(RANDOM), 20))])
def test_parity_on_random_data_with_missing_values(first):
    for k, case in enumerate(RANDOM[first : first + 20], start=first):
        given, target, new = encode(read_frame(case["frame"]), "y", read_frame(case["new"]))
        stored = case["answer"]
        answer = Answer(
            pd.DataFrame(stored["frame"]),
            pd.DataFrame(stored["splits"]),
            np.array(stored["csplit"], dtype=int) if stored["csplit"] else np.empty((0, 0)),
            np.array(stored["where"]),
            np.array(stored["rows"]),
            np.array(stored["where_new"]),
        )
        assert differences(grow(given, target, case["control"]), given, target, answer, new) == [], k


def test_random_data_cover_the_hard_cases():
    """Missing values, unused levels, used surrogates, ordered columns, two to five classes."""
    splits = [case["answer"]["splits"] for case in RANDOM]
    surrogates = [count for s in splits for count, adjusted in zip(s["count"], s["adj"]) if adjusted > 0]
    assert sum(count > 0 for count in surrogates) > 15
    assert sum(len(case["answer"]["rows"]) < len(next(iter(case["frame"]["y"].values()))) for case in RANDOM) > 10
    classes = {len(set(case["frame"]["y"]["codes"])) for case in RANDOM if "codes" in case["frame"]["y"]}
    assert {2, 3, 4, 5} <= classes
    assert sum(column.get("ordered", False) for case in RANDOM for column in case["frame"].values()) > 20


def test_equal_values_are_sorted_as_in_r():
    """The order that R passes to a user's splitting function: y = 1, ..., 12 along x, and along a constant."""
    packed, values = rpart.sort_column(np.array([3.0, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2]))
    rows = (packed & np.uint64(0xFFFFFFFF)).astype(int) + 1
    assert rows.tolist() == [2, 11, 5, 8, 12, 9, 6, 3, 7, 4, 10, 1]
    assert (packed >> np.uint64(32)).tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert values.tolist() == [1.0, 2.0, 3.0]
    packed, _ = rpart.sort_column(np.ones(30))
    assert (packed & np.uint64(0xFFFFFFFF)).tolist() == list(range(30))
