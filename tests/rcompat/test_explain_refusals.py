"""The mcceR call: printed output, and messages for invalid input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import rcompat
from mcce.exceptions import InputError
from mcce.model.decision import Interval
from mcce.rcompat import fit_autoregressive
from tests.rcompat.people import explain, people, rich


def test_printed_result_shows_the_counterfactuals():
    result = explain(timing=False)
    assert repr(result).splitlines()[0].split()[:3] == ["id_explain", "counterfactual_rank", "age"]
    assert result.time is result.sim_data is result.featuremodel_object is None
    with pytest.raises(AttributeError, match="cannot assign"):
        result.cf = None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"c_int": (1, 0.5)}, r"c_int is \(1, 0.5\); give two numbers, the lower one first"),
        ({"c_int": (1,)}, "c_int is .*give two numbers"),
        ({"c_int": "ab"}, "c_int is 'ab'; give two numbers"),
        ({"c_int": (float("nan"), 1)}, "c_int is .*give two numbers"),
        ({"c_int": Interval(0, 1, closed="left")}, "mcceR's interval includes both ends"),
        ({"generate_K": 0}, "generate_K is 0; it must be a whole number of at least 1"),
        ({"generate_K": 2.5}, "generate_K is 2.5"),
        ({"process_return_best_k": 0}, "process_return_best_k is 0"),
        ({"process_measures": ("validation", "gowr")}, "process_measures names 'gowr'; did you mean 'gower'"),
        ({"process_measures": ()}, "name at least one of 'validation', 'L0'"),
        ({"process_measures": ("L0", "L0")}, "name at least one .*each once"),
        ({"fit_autoregressive_model": "rpat"}, "fit_autoregressive_model is 'rpat'.*did you mean 'rpart'"),
        ({"min_bucket": 3}, "'min_bucket' is not an argument .*did you mean 'minbucket'"),
        ({"mincriterion": 0.9}, "'mincriterion' is not an argument of explain_mcce, nor one of the trees of rpart"),
        ({"generate.K": 3}, "did you mean 'generate_K'"),
        ({"cp": "a"}, "cp is 'a'; it must be a number"),
        ({"maxdepth": 31}, "maxdepth is 31; it must be a whole number of at least 1 and at most 30"),
        ({"minsplit": 2.5}, "minsplit is 2.5; it must be a whole number"),
        ({"control": 3}, "control is a int; give a dict"),
        ({"fit_autoregressive_model": "ctree", "testtype": "MonteCarlo"}, "testtype is 'MonteCarlo'; supported here"),
        ({"fixed_features": ["agee"]}, "fixed feature 'agee' is not a column of x_train; did you mean 'age'"),
        ({"fixed_features": ["age", "age"]}, "fixed_features names 'age' more than once"),
        ({"fixed_features": list(people())}, "every column of x_train"),
        ({"fit_seed": 1.5}, "seed of R's generator is 1.5"),
        ({"generate_seed": 2**40}, "seed of R's generator is 1099511627776"),
        ({"predict_model": 3}, "predict_model is a int; give a function of the model and a frame"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        explain(**arguments)


@pytest.mark.parametrize(
    ("x_explain", "x_train", "message"),
    [
        (None, people().rename(columns={"town": "decision"}), "x_train has the column.* 'decision'.*rename"),
        (None, people().rename(columns={"town": "pred"}), "x_train has the column.* 'pred'.*rename"),
        (None, people().rename(columns={"town": "measure_L0"}), "'measure_L0'.*rename"),
        (people().drop(columns="age"), None, r"x_explain lacks the column\(s\) 'age' of x_train"),
        (people().drop(columns="town"), None, r"x_explain lacks the column\(s\) 'town' of x_train"),
        (people().iloc[:0], None, "x_explain has no rows"),
        (people().iloc[:3], people().iloc[:0], "x_train has no rows"),
        (people().assign(age=np.nan), None, "column 'age' of x_explain has 300 missing value.*row 0"),
        (None, people().assign(income=np.nan), "column 'income' of x_train has 300 missing"),
        (people().assign(job="smith"), None, "column 'job' of x_explain holds the level 'smith'"),
        (
            people().assign(age=1),
            people().assign(age=pd.Timestamp("2024-01-01")),
            "column 'age' of x_train holds dates .dtype datetime64",
        ),
        (None, [[1, 2]], "x_train is a list"),
        ([[1, 2]], None, "x_explain is a list"),
    ],
)
def test_bad_tables(x_explain, x_train, message):
    def predict(model, frame):
        return np.linspace(0, 1, len(frame))

    with pytest.raises(InputError, match=message):
        explain(x_explain, x_train, predict)


def test_training_rows_are_required_without_a_fitted_model():
    with pytest.raises(InputError, match="x_train is None; give the training rows, or a featuremodel_object"):
        rcompat.explain_mcce(None, people(), None, rich)


def test_dummy_column_raises_only_where_mccer_needs_the_name():
    renamed = people().rename(columns={"town": "dummy"})
    with pytest.raises(InputError, match=r"x_train has the column\(s\) 'dummy'"):
        explain(renamed.iloc[:3], renamed, fixed_features=None, fit_decision=False)
    assert len(explain(renamed.iloc[:3], renamed).cf) == 3


def test_external_rows_must_be_grouped_by_factual():
    result = explain(return_featuremodel_object=True, return_sim_data=True)
    with pytest.raises(InputError, match=r"id_explain of sim_data is not 1, \.\.\., 3"):
        rcompat.Simulated.from_frame(result.sim_data.iloc[::-1], people().iloc[:3], result.featuremodel_object)


def test_predictions_must_be_one_number_per_row():
    result = explain(return_featuremodel_object=True, return_sim_data=True)
    simulated = rcompat.Simulated.from_frame(result.sim_data, people().iloc[:3], result.featuremodel_object)
    with pytest.raises(InputError, match=r"pred_sim has shape \(3,\); give one number for each of the 90"):
        rcompat.process(simulated, [1, 2, 3])
    with pytest.raises(InputError, match=r"pred_train has shape \(3,\); give one number for each of the 300"):
        fit_autoregressive(people(), [1, 2, 3])
