"""The mcceR call compared with runs of mcceR (tests/fixtures/parity/cases), bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mcce import rcompat
from tests.marks import slow_but, slow_rows
from tests.rcompat.parity_tables import cases_of, read_meta, read_table

CASES = cases_of()
SORT_ORDERS = [(case, order) for case in CASES for order in read_meta(case)["sort_orders"]]
QUICK_ORDERS = [(case, order) for case, order in SORT_ORDERS if order == "default" or case.startswith("integer")]
OTHER_ORDERS = [each for each in SORT_ORDERS if each not in QUICK_ORDERS]


@dataclass
class Case:
    """One recorded run of mcceR."""

    name: str
    meta: dict[str, Any]

    @property
    def c_int(self) -> tuple[float, float]:
        low, high = (float(end) for end in self.meta["c_int"])
        return low, high

    def read(self, table: str) -> pd.DataFrame:
        columns = self.meta["columns"]
        factors = [name for name, column in columns.items() if column["type"] == "factor"]
        frame = read_table(self.name, table, text=factors)
        for name in columns.keys() & set(frame.columns):
            kinds = {"integer": "int64", "double": "float64"}
            dtype = kinds.get(columns[name]["type"]) or pd.CategoricalDtype(columns[name]["levels"])
            frame[name] = frame[name].astype(dtype)
        return frame

    def explain(self, predict: Any = None, **changes: Any) -> rcompat.MCCEResult:
        meta = self.meta
        arguments = {
            "fixed_features": meta["fixed_features"],
            "c_int": self.c_int,
            "fit_autoregressive_model": meta["engine"],
            "fit_decision": meta["decision"],
            "fit_seed": meta["fit_seed"],
            "generate_seed": meta["generate_seed"],
            "generate_K": meta["K"],
            "process_measures": meta["sort_orders"]["default"],
            **dict(meta["engine_arguments"] or {}),
            **changes,
        }
        recorded = iter([self.read("pred_train")["pred"], self.read("sim")["pred"]])
        lookup = predict or (lambda model, frame: next(recorded))
        return rcompat.explain_mcce(None, self.read("x_explain"), self.read("x_train"), lookup, **arguments)


@cache
def load(name: str) -> Case:
    return Case(name, read_meta(name))


@cache
def found(name: str) -> rcompat.MCCEResult:
    return load(name).explain(return_featuremodel_object=True, return_sim_data=True)


def assert_same(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    """Compare bit for bit: names, order, values; levels and their order."""
    assert list(ours.columns) == list(theirs.columns)
    for name in theirs.columns:
        if isinstance(theirs[name].dtype, pd.CategoricalDtype):
            assert ours[name].dtype == theirs[name].dtype, name
            assert ours[name].tolist() == theirs[name].tolist(), name
        else:
            assert np.array_equal(ours[name].to_numpy(), theirs[name].to_numpy()), name


# ------------------------------------------------------------------ parity with mcceR, stage by stage


@pytest.mark.parametrize("name", slow_but(CASES, *CASES[::3]))
def test_parity_of_training_routing(name):
    where = found(name).featuremodel_object.where_train
    assert_same(where, read_table(name, "where_train"))
    assert {feature: where[feature].nunique() for feature in where} == load(name).meta["leaves"]


@pytest.mark.parametrize("name", CASES)
def test_parity_of_every_simulated_row(name):
    sim = load(name).read("sim")
    features = list(load(name).meta["columns"])
    assert_same(found(name).sim_data, sim[["id_explain", *features]])


@pytest.mark.parametrize(("name", "order"), [*QUICK_ORDERS, *slow_rows(*OTHER_ORDERS)])
def test_parity_of_measures_and_ranks(name, order):
    case, sim = load(name), load(name).read("sim")
    result = found(name)
    simulated = rcompat.Simulated.from_frame(result.sim_data, case.read("x_explain"), result.featuremodel_object)
    measures = case.meta["sort_orders"][order]
    ours = rcompat.process(simulated, sim["pred"], measures).measures
    theirs = sim[["row_id", "id_explain", "pred", *(f"measure_{m}" for m in measures), f"rank_{order}"]]
    assert_same(ours, theirs.rename(columns={f"rank_{order}": "counterfactual_rank"}))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("table", "k", "remove"), [("k1", 1, True), *slow_rows(("k3", 3, True), ("k3_keep_invalid", 3, False))]
)
def test_parity_of_the_answer(name, table, k, remove):
    case = load(name)
    result = case.explain(process_return_best_k=k, process_remove_invalid=remove)
    assert_same(result.cf, case.read(f"cf_{table}"))
    assert_same(result.cf_measures, case.read(f"cf_measures_{table}"))
    assert list(result.fixed_features) == case.meta["fixed_features_with_decision"]
    assert list(result.mutable_features) == case.meta["mutable_features"]


@pytest.mark.parametrize("engine", ["ctree", "rpart"])
def test_parity_with_the_snapshot_of_mccer(engine):
    """K = 1000, the default call of mcceR's tests; the predictions are those of their lm."""
    case = load(f"airquality_numeric_{engine}")
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
def test_parity_cases_where_mccer_fails_on_its_default_measures(name):
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
