"""Relations of public data: known relations are found, and no answer violates one."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier
from statsmodels.datasets import fair

import mcce
from mcce.exceptions import AdviceWarning


def twenty_answers(X, y):
    """Return twenty sparse answers for rows that a forest rejects."""
    model = RandomForestClassifier(25, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        explainer = mcce.MCCE(model, random_state=1).fit(X)
        found = explainer.explain(X[model.predict_proba(X)[:, 1] < 0.5].head(20), sparse=True)
    assert len(found) == 20
    return explainer, found.frame


@pytest.mark.slow
def test_cholesterol_is_the_sum_of_its_parts():
    data = load_diabetes(as_frame=True, scaled=False)
    explainer, rows = twenty_answers(data.data, data.target < 140)
    (identity,) = explainer.relations_
    assert identity.says == "s1 == s2 + s3 + 0.2 * exp(s5)"  # total of LDL, HDL and a fifth of the triglycerides
    parts = rows["s2"] + rows["s3"] + 0.2 * np.exp(rows["s5"])
    assert (np.abs(rows["s1"] - parts) <= 0.5).all()
    (quotient,) = explainer.relations_.soft
    assert quotient.says == "abs(s4 - s1 / s3) <= 0.53"  # rounded to a whole number in 380 of 442 rows
    assert (np.abs(rows["s4"] - rows["s1"] / rows["s3"]) <= 0.53).all()


def test_scaled_cholesterol_is_named_at_fit():
    X = load_diabetes(as_frame=True).data
    with pytest.warns(AdviceWarning, match="3 columns are predicted almost perfectly .*'s1' .*'s2' .*'s3'"):
        mcce.MCCE(lambda rows: rows["bmi"], decision=(0.0, np.inf), random_state=1).fit(X)


MEASURES = [
    "radius",
    "texture",
    "perimeter",
    "area",
    "smoothness",
    "compactness",
    "concavity",
    "concave points",
    "fractal dimension",
]


@pytest.mark.slow
def test_worst_cells_are_no_smaller_than_mean_cells():
    X = load_breast_cancer(as_frame=True).data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        found = {each.says for each in mcce.find_relations(X)}
    assert {f"`mean {name}` <= `worst {name}`" for name in MEASURES} <= found


@pytest.mark.nightly
def test_no_answer_has_worst_cells_smaller_than_mean_cells():
    data = load_breast_cancer(as_frame=True)
    explainer, rows = twenty_answers(data.data, data.target)
    for name in MEASURES:
        assert (rows[f"mean {name}"] <= rows[f"worst {name}"]).all(), name
    bands = {each.says.split(" <= ")[1] for each in explainer.relations_.soft}
    for cell in ("mean", "worst"):
        assert {f"`{cell} perimeter` / `{cell} radius`", f"`{cell} area` / (`{cell} radius` * `{cell} radius`)"} < bands
        for name, power in (("perimeter", 1), ("area", 2)):
            ratios = [each[f"{cell} {name}"] / each[f"{cell} radius"] ** power for each in (rows, data.data)]
            assert ratios[0].between(ratios[1].min(), ratios[1].max()).all(), (cell, name)
    nothing = rows["concave points error"] == 0
    assert (nothing == (rows["mean concavity"] == 0)).all()


@pytest.mark.slow
def test_survey_without_relations_has_none():
    answers = fair.load_pandas().data
    X = answers.drop(columns="affairs")
    found = mcce.find_relations(X)
    assert (len(found), found.soft, found.proposals) == (0, (), ())
    _, rows = twenty_answers(X, answers["affairs"] == 0)
    assert (rows["yrs_married"] < rows["age"]).all()
