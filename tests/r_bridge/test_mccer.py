"""mcceR through the bridge compared with `mcce.rcompat.explain_mcce`; skipped without mcceR."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCEError, rcompat
from mcce.rng.r import RGenerator
from r_bridge import RBridgeError, RModel, explain_mcce
from r_bridge.mccer import generated_like, score_function, tree_controls


@pytest.fixture(scope="module")
def air():
    return mcce.datasets.load_airquality(dropna=True)


@pytest.fixture(scope="module")
def call(air):
    return {
        "x_explain": air.X.tail(3),
        "x_train": air.X.iloc[:-3],
        "fixed_features": "Wind",
        "c_int": (-np.inf, 15),
        "fit_seed": 1,
        "generate_seed": 2,
        "generate_K": 300,
    }


@pytest.fixture(scope="module")
def ozone(r, air):
    return RModel.from_code("lm(Ozone ~ ., data = data)", air.X.assign(Ozone=air.y))


def assert_same(one, two):
    pd.testing.assert_frame_equal(one.cf, two.cf)
    pd.testing.assert_frame_equal(one.cf_measures, two.cf_measures, check_exact=True)
    if one.sim_data is not None:
        pd.testing.assert_frame_equal(one.sim_data, two.sim_data)
    assert one.fixed_features == two.fixed_features
    assert one.mutable_features == two.mutable_features


@pytest.mark.parametrize("engine", ["rpart", "ctree"])
@pytest.mark.parametrize("options", [{}, {"process_return_best_k": 3}, {"fit_decision": False, "generate_seed": None}])
def test_same_call_gives_the_same_result(need, ozone, call, engine, options, compared):
    need("mcceR")
    arguments = {**call, **options, "fit_autoregressive_model": engine, "return_sim_data": True}
    found = explain_mcce(ozone, **arguments)
    assert_same(found, rcompat.explain_mcce(ozone, **arguments))
    assert list(found.time.index) == ["fit.time", "generate.time", "process.time"]
    compared(f"values of explain_mcce by mcceR, {engine}", found.sim_data.size)


def test_python_model_is_queried_by_r(need, air, call):
    need("mcceR")
    queried = []

    def model(X):
        queried.append(X)
        return 2.0 * X["Temp"] - 3 * X["Wind"] - 90

    found = explain_mcce(model, **call, fit_autoregressive_model="rpart")
    assert_same(found, rcompat.explain_mcce(model, **call, fit_autoregressive_model="rpart"))
    assert [len(X) for X in queried[:2]] == [108, 900]
    assert list(queried[0].columns) == list(air.X.columns)
    assert (queried[0].dtypes == air.X.dtypes).all()


def test_predictions_by_callback_and_by_mccer_agree(need, ozone, call):
    need("mcceR")
    by_callback = explain_mcce(ozone, **call)
    assert_same(by_callback, explain_mcce(ozone.r_object, **call))
    own = "function(model, newdata) predict(model, as.data.frame(newdata))"
    assert_same(by_callback, explain_mcce(ozone.r_object, **call, predict_model=own))
    by_function = explain_mcce("anything", **call, predict_model=lambda model, X: ozone.predict(X))
    assert_same(by_callback, by_function)


def test_factors_and_probabilities(need):
    need("mcceR")
    loans = mcce.datasets.load_loans(300)
    X = loans.X.assign(education=loans.X["education"].astype(str).astype("category"))
    model = RModel.from_code(
        "glm(y ~ age + savings + housing + salary, family = binomial, data = data)", X.assign(y=loans.y)
    )
    arguments = {
        "x_explain": X.head(4),
        "x_train": X.iloc[4:],
        "fixed_features": ["sex", "age"],
        "c_int": (0, 0.1),
        "fit_autoregressive_model": "rpart",
        "fit_seed": 5,
        "generate_K": 100,
        "process_measures": ["validation", "L0", "gower"],
        "minbucket": 10,
        "return_sim_data": True,
    }
    found = explain_mcce(model, **arguments)
    assert_same(found, rcompat.explain_mcce(model, **arguments))
    assert (found.cf.dtypes[list(X.columns)] == X.dtypes).all()
    assert found.cf_measures["pred"].between(0, 0.1).all()


def test_feature_model_is_reused(need, ozone, call):
    need("mcceR")
    first = explain_mcce(ozone, **call, return_featuremodel_object=True)
    again = {**call, "x_train": None, "featuremodel_object": first.featuremodel_object}
    assert_same(first, explain_mcce(ozone, **again))


def test_stream_is_continued(need, ozone, call):
    need("mcceR")
    arguments = {**call, "generate_seed": None, "fit_autoregressive_model": "rpart"}
    streams = [RGenerator(11), RGenerator(11)]
    for stream in streams:
        stream.uniform(5)
    ours = rcompat.explain_mcce(ozone, **{**arguments, "fit_seed": streams[0]})
    assert_same(explain_mcce(ozone, **{**arguments, "fit_seed": streams[1]}), ours)


def test_exception_of_the_model_is_raised(need, call):
    need("mcceR")

    def model(X):
        raise ZeroDivisionError("inside the model")

    with pytest.raises(MCCEError, match="raised ZeroDivisionError: inside the model"):
        explain_mcce(model, **call)


def test_errors_of_mccer_are_raised(need, air, call):
    need("mcceR")
    factors = {name: air.X[name].map(str).astype("category") for name in ("Month",)}
    X = air.X.assign(**factors)
    arguments = {**call, "x_train": X.iloc[:-3], "x_explain": X.tail(3)}
    with pytest.raises(RBridgeError, match=r"R refused.*requested type"):
        explain_mcce(lambda X: X["Temp"], **arguments)


def test_missing_mccer_is_reported_with_its_source(r, monkeypatch, call):
    monkeypatch.setattr(type(r), "has", lambda self, package: False)
    with pytest.raises(RBridgeError, match=r"needs R's package mcceR.*NorskRegnesentral/mcceR"):
        explain_mcce(lambda X: X["Temp"], **call)


def test_helpers(air):
    assert tree_controls("rpart", {"control": {"cp": 0.1, "xval": 0}, "xval": 5}) == {"cp": 0.1, "xval": 5}
    assert tree_controls("ctree", {"controls": {"mincriterion": 0.5}}) == {"mincriterion": 0.5}
    with pytest.raises(MCCEError, match="mcceR supports 'ctree', 'rpart'"):
        tree_controls("cart", {})
    like = generated_like(air.X, air.X.astype(float), ["Wind", "Day"])
    assert like.dtypes.astype(str).tolist() == ["int64", "float64", "int64", "int64", "float64"]
    assert score_function(lambda X: X["Temp"], None, (0, 1))(air.X.head(2)).tolist() == [67.0, 72.0]
    with pytest.raises(MCCEError, match="mcceR has no margin: give the narrower interval itself"):
        score_function(lambda X: X["Temp"], None, mcce.Interval(0, 90, margin=5))
