"""The mcceR call compared with runs of mcceR (every file of tests/fixtures/parity/cases), bit for bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import rcompat
from tests.rcompat.parity_cases import CASES, found, has_table, load, read_meta, read_table
from tests.trees.rpart.rpart_cases import Answer, differences

SORT_ORDERS = [(case, order) for case in CASES for order in read_meta(case)["sort_orders"]]
RPART = [name for name in CASES if read_meta(name)["engine"] == "rpart"]
CTREE = [name for name in CASES if read_meta(name)["engine"] == "ctree"]


def test_every_case_is_of_one_engine():
    assert len(RPART) >= 16
    assert len(CTREE) >= 12
    assert {*RPART, *CTREE} == {*CASES}


def assert_same(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    """Compare bit for bit: names, order, values; levels and their order."""
    assert list(ours.columns) == list(theirs.columns)
    for name in theirs.columns:
        if isinstance(theirs[name].dtype, pd.CategoricalDtype):
            assert ours[name].dtype == theirs[name].dtype, name
            assert ours[name].tolist() == theirs[name].tolist(), name
        else:
            assert np.array_equal(ours[name].to_numpy(), theirs[name].to_numpy()), name


# ------------------------------------------------------------------ stage by stage


@pytest.mark.parametrize("name", CASES)
def test_node_of_every_training_row(name):
    where = found(name).featuremodel_object.where_train
    assert_same(where, read_table(name, "where_train"))
    assert {feature: where[feature].nunique() for feature in where} == load(name).meta["leaves"]


@pytest.mark.parametrize("name", CASES)
def test_every_simulated_row(name):
    sim = load(name).read("sim")
    features = list(load(name).meta["columns"])
    assert_same(found(name).sim_data, sim[["id_explain", *features]])


@pytest.mark.parametrize(("name", "order"), SORT_ORDERS)
def test_measures_and_ranks(name, order):
    case, sim = load(name), load(name).read("sim")
    result = found(name)
    simulated = rcompat.Simulated.from_frame(result.sim_data, case.read("x_explain"), result.featuremodel_object)
    measures = case.meta["sort_orders"][order]
    ours = rcompat.process(simulated, sim["pred"], measures).measures
    theirs = sim[["row_id", "id_explain", "pred", *(f"measure_{m}" for m in measures), f"rank_{order}"]]
    assert_same(ours, theirs.rename(columns={f"rank_{order}": "counterfactual_rank"}))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("table", "k", "remove"), [("k1", 1, True), ("k3", 3, True), ("k3_keep_invalid", 3, False)])
def test_the_answer(name, table, k, remove):
    case = load(name)
    result = case.explain(process_return_best_k=k, process_remove_invalid=remove)
    assert_same(result.cf, case.read(f"cf_{table}"))
    assert_same(result.cf_measures, case.read(f"cf_measures_{table}"))
    assert list(result.fixed_features) == case.meta["fixed_features_with_decision"]
    assert list(result.mutable_features) == case.meta["mutable_features"]


@pytest.mark.parametrize("name", [name for name in CASES if has_table(name, "mccer_snapshot_K1000_cf")])
def test_the_snapshot_of_mccer(name):
    """K = 1000, the default call of mcceR's tests; the predictions are those of their lm."""
    case = load(name)
    coefficients = read_table(case.name, "model_coefficients", text=["term"])
    slope = dict(zip(coefficients["term"], coefficients["value"]))

    def predict(model, frame):
        return slope["(Intercept)"] + sum(slope[name] * frame[name] for name in frame)

    result = case.explain(predict, generate_K=1000, process_measures=("validation", "L0", "L1"))
    assert_same(result.cf, case.read("mccer_snapshot_K1000_cf"))
    theirs = case.read("mccer_snapshot_K1000_cf_measures")
    np.testing.assert_allclose(result.cf_measures["pred"], theirs["pred"], rtol=1e-12)  # R's BLAS sums in another order
    assert_same(result.cf_measures.drop(columns="pred"), theirs.drop(columns="pred"))


@pytest.mark.parametrize("name", [name for name in CASES if load(name).meta["default_measures_error"]])
def test_cases_where_mccer_fails_on_its_default_measures(name):
    """A changed level counts one step, on top of the numbers' raw differences."""
    case, sim = load(name), load(name).read("sim")
    result = case.explain(process_measures=("validation", "L0", "L1", "L2"), process_return_best_k=case.meta["K"])
    factual = case.read("x_explain").iloc[result.cf["id_explain"] - 1].reset_index(drop=True)
    steps = np.zeros((len(factual), 0))
    for feature in case.meta["mutable_features"]:
        if case.meta["columns"][feature]["type"] == "factor":
            step = (factual[feature].astype(str) != result.cf[feature].astype(str)).astype(float)
        else:
            step = (factual[feature] - result.cf[feature]).abs()
        steps = np.column_stack([steps, step])
    assert len(result.cf) == (sim["measure_validation"] == 1).sum()
    np.testing.assert_allclose(result.cf_measures["measure_L1"], steps.sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(result.cf_measures["measure_L2"], np.sqrt((steps**2).sum(axis=1)), rtol=1e-14)
    assert np.array_equal(result.cf_measures["measure_L0"], (steps > 0).sum(axis=1))


# ------------------------------------------------------------------ the trees


@pytest.mark.parametrize("name", RPART)
def test_every_tree_of_rpart(name):
    """Frame, splits and sides of levels."""
    tables = {part: read_table(name, f"rpart_{part}", text=("feature", "var")) for part in ("frame", "splits")}
    if has_table(name, "rpart_csplit"):
        tables["csplit"] = read_table(name, "rpart_csplit", text=("feature",))
    model = found(name).featuremodel_object
    leaves = read_table(name, "where_train")
    for feature, tree in zip(model.mutable_features, model.trees):
        frame, splits, csplit = (
            tables[part][tables[part]["feature"] == feature].drop(columns=["feature", "row"], errors="ignore")
            if part in tables
            else pd.DataFrame()
            for part in ("frame", "splits", "csplit")
        )
        answer = Answer(frame, splits, csplit.fillna(2).to_numpy(), leaves[feature].to_numpy(), np.arange(len(leaves)))
        assert differences(tree, answer) == [], feature


@pytest.mark.parametrize("name", CTREE)
def test_every_test_of_ctree(name):
    tests = read_table(name, "ctree_tests", text=["feature", "var"])
    model = found(name).featuremodel_object
    for feature, tree in zip(model.mutable_features, model.trees):
        theirs = tests[tests["feature"] == feature]
        for ours, column in ((tree.statistics, "statistic"), (tree.criteria, "criterion")):
            np.testing.assert_allclose(ours.ravel(), theirs[column].to_numpy(), rtol=1e-10, atol=1e-10)
