"""The mcceR call: arguments, types, seeds, and results where mcceR fails."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest

from mcce import rcompat
from mcce.rcompat import RGenerator, fit_autoregressive, generate, names
from tests.rcompat.people import explain, people, rich


def test_signature_and_defaults_match_mccer():
    """As printed by args(mcceR::explain_mcce), dots as underscores."""
    parameters = inspect.signature(rcompat.explain_mcce).parameters
    assert list(parameters) == [*map(names.here, names.CALL), "tree_arguments"]
    defaults = {name: p.default for name, p in parameters.items() if p.default is not inspect.Parameter.empty}
    assert defaults == {
        "predict_model": None,
        "fixed_features": None,
        "c_int": (0.5, 1),
        "featuremodel_object": None,
        "fit_autoregressive_model": "ctree",
        "fit_decision": True,
        "fit_seed": None,
        "generate_K": 1000,
        "generate_seed": None,
        "process_measures": ("validation", "L0", "L1"),
        "process_return_best_k": 1,
        "process_remove_invalid": True,
        "process_sort_by_measures_order": True,
        "return_featuremodel_object": False,
        "return_sim_data": False,
        "timing": True,
    }


def test_xval_determines_whether_the_stream_advances():
    assert names.translate("rpart", {}).permutes
    assert not names.translate("rpart", {"xval": 0}).permutes
    assert not names.translate("ctree", {}).permutes
    model = fit_autoregressive(people(), np.ones(300), ["age"], (0, 1), "rpart", rng=(rng := RGenerator(1)))
    twin = RGenerator(1)
    for _ in model.trees:
        twin.permutation(300)
    assert np.array_equal(rng.random_seed, twin.random_seed)


def test_columns_keep_their_r_types():
    x_train, x_explain = people().iloc[3:], people().iloc[:3].copy()
    x_explain["age"] = x_explain["age"] + 0.5
    x_explain["income"] = x_explain["income"].round().astype("int64")
    result = explain(x_explain, x_train, process_measures=("validation", "L0", "gower"), return_sim_data=True)
    for frame in (result.cf, result.sim_data):
        assert frame["age"].dtype == np.float64  # fixed: as in x_explain
        assert frame["income"].dtype == np.float64  # mutable: as in x_train
        for name in ("job", "grade", "owns", "town"):
            assert frame[name].dtype == x_train[name].dtype
    assert np.array_equal(result.cf["age"], x_explain["age"].iloc[result.cf["id_explain"] - 1])
    assert list(result.cf) == ["id_explain", "counterfactual_rank", *x_train]
    assert list(result.sim_data) == ["id_explain", *x_train]


def test_factors_are_matched_by_label():
    x_explain = people().iloc[:3].copy()
    recoded = x_explain.copy()
    recoded["job"] = recoded["job"].astype(str).astype("category")
    one, two = (explain(x, fixed_features=["job", "age"], return_sim_data=True) for x in (x_explain, recoded))
    assert one.sim_data.astype({"job": str}).equals(two.sim_data.astype({"job": str}))
    assert two.cf["job"].dtype == recoded["job"].dtype


def test_fitted_model_can_be_reused():
    first = explain(return_featuremodel_object=True, return_sim_data=True)
    again = rcompat.explain_mcce(
        None,
        people().iloc[:3],
        None,
        rich,
        featuremodel_object=first.featuremodel_object,
        generate_K=30,
        generate_seed=2,
        return_sim_data=True,
    )
    assert again.sim_data.equals(first.sim_data)
    assert again.cf.equals(first.cf)
    assert again.time["fit.time"] == 0


def test_seeds_of_a_session_are_continued():
    session = RGenerator(5)
    one = explain(fit_seed=session, generate_seed=None, return_sim_data=True)
    two = explain(fit_seed=5, generate_seed=None, return_sim_data=True)
    assert one.sim_data.equals(two.sim_data)
    assert session.random_seed.tolist() != RGenerator(5).random_seed.tolist()
    fresh = [explain(fit_seed=None, generate_seed=None, return_sim_data=True).sim_data for _ in range(2)]
    assert not fresh[0].equals(fresh[1])


def test_measures_without_validation_still_remove_invalid_rows():
    result = explain(process_measures=("L0", "L1"), process_return_best_k=30)
    assert list(result.cf_measures) == ["id_explain", "counterfactual_rank", "pred", "measure_L0", "measure_L1"]
    assert result.cf_measures["pred"].between(0.6, 1).all()
    kept = explain(process_measures=("L0", "L1"), process_return_best_k=30, process_remove_invalid=False)
    assert len(kept.cf) == 90
    valid = kept.cf_measures[kept.cf_measures["pred"].between(0.6, 1)].reset_index(drop=True)
    assert valid.equals(result.cf_measures)  # ranks are given before invalid rows go


def test_leaf_with_one_row_draws_from_the_rows_up_to_it():
    """R: sample(3, size, TRUE) for the leaf that holds row 3 alone."""
    x_train = pd.DataFrame({"given": [0.0, 0.0, 1.0, 0.0, 0.0], "value": [10.0, 11.0, 30.0, 12.0, 13.0]})
    model = fit_autoregressive(
        x_train, np.ones(5), ["given"], (0, 1), "rpart", False, minbucket=1, minsplit=2, cp=0.0, maxdepth=1
    )
    assert sorted(np.bincount(model.trees[0].training_leaf)) == [1, 4]
    drawn = generate(x_train.iloc[[2]], model, 50, RGenerator(3)).frame["value"]
    assert drawn.tolist() == x_train["value"].iloc[RGenerator(3).sample(3, 50, True) - 1].tolist()


def test_ranks_agree_with_a_plain_sort():
    result = explain(fit_autoregressive_model="rpart", return_featuremodel_object=True, return_sim_data=True)
    simulated = rcompat.Simulated.from_frame(result.sim_data, people().iloc[:3], result.featuremodel_object)
    found = rcompat.process(simulated, rich(None, result.sim_data), ("validation", "L0", "gower"), False, 4)
    table = found.measures
    table = table.assign(minus=-table["measure_validation"])
    ordered = table.sort_values(["id_explain", "minus", "measure_L0", "measure_gower", "row_id"])
    assert ordered["counterfactual_rank"].tolist() == list(range(1, 31)) * 3
    assert found.cf["counterfactual_rank"].tolist() == [1, 2, 3, 4] * 3


def test_constant_candidate_column_leaves_gower_undefined_like_mccer():
    x_train = people().iloc[3:].assign(income=7.0)
    result = explain(
        x_train=x_train, process_measures=("gower",), process_remove_invalid=False, process_return_best_k=5
    )
    assert np.isinf(result.cf_measures["measure_gower"]).all()
    assert result.cf["counterfactual_rank"].tolist() == [1, 2, 3, 4, 5] * 3


@pytest.mark.parametrize("engine", ["ctree", "rpart"])
def test_all_kinds_of_columns_and_the_default_measures_work(engine):
    result = explain(fit_autoregressive_model=engine, fixed_features=None)
    assert len(result.cf) == 3
    assert np.isfinite(result.cf_measures.to_numpy()).all()
    assert result.fixed_features == ("decision",)


@pytest.mark.parametrize("engine", ["ctree", "rpart"])
def test_names_that_break_formulas_of_mccer_work(engine):
    renamed = people().rename(columns={"income": "i", "town": "my town (2)"})
    result = explain(
        renamed.iloc[:3], renamed.iloc[3:], lambda model, frame: frame["i"] / 100, fit_autoregressive_model=engine
    )
    assert list(result.cf) == ["id_explain", "counterfactual_rank", *renamed]


def test_column_named_like_an_attribute_of_arrays():
    renamed = people().rename(columns={"age": "dtype"})
    result = explain(renamed.iloc[:3], renamed.iloc[3:], fixed_features=["dtype"])
    pd.testing.assert_frame_equal(result.cf.rename(columns={"dtype": "age"}), explain().cf)


def test_single_candidate_works():
    result = explain(people().iloc[:1], generate_K=1, process_remove_invalid=False)
    assert len(result.cf) == 1


def test_model_without_predict_model():
    from sklearn.linear_model import LogisticRegression

    X = people()[["age", "income"]]
    y = (X["income"] > 55).astype(int)
    model = LogisticRegression().fit(X, y)
    arguments = {"fixed_features": "age", "fit_autoregressive_model": "rpart", "fit_seed": 1, "generate_K": 20}
    one = rcompat.explain_mcce(model, X.iloc[:3], X.iloc[3:], **arguments)
    two = rcompat.explain_mcce(
        None, X.iloc[:3], X.iloc[3:], lambda _, frame: model.predict_proba(frame)[:, 1], **arguments
    )
    assert one.cf.equals(two.cf)
    array = X.to_numpy()
    on_array = LogisticRegression().fit(array, y)
    arguments["fixed_features"] = "x0"
    three = rcompat.explain_mcce(on_array, array[:3], array[3:], **arguments)
    assert np.array_equal(three.cf[["x0", "x1"]], one.cf[["age", "income"]])
