"""Columns that the others predict are named; other columns are not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

import mcce
from mcce.exceptions import AdviceWarning
from mcce.plausibility import predictable
from mcce.plausibility.predictable import find_predictable
from mcce.table import Schema
from tests.plausibility.related_tables import rng, some


def predicted(X):
    schema = Schema.from_data(X)
    return {each.name: each.value for each in find_predictable(schema.encode(X).matrix, schema)}


def test_number_nearly_predicted_by_others_is_named():
    r = rng(11)
    X = pd.DataFrame(some(1500)).assign(x=r.normal(size=1500), y=r.normal(size=1500))
    X["z"] = X["x"] + 2 * X["y"] + r.normal(0, 0.02, 1500)
    found = predicted(X)
    assert set(found) == {"x", "y", "z"}
    assert abs(found["z"] - (1 - 0.02**2 / X["z"].var())) < 0.005  # normal scores at the ends lose a little


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_number_not_predicted_by_others_is_not_named(noise):
    r = rng(2)
    X = pd.DataFrame({"x": r.normal(size=1500), "y": r.normal(size=1500)})
    assert predicted(X.assign(z=X["x"] + 2 * X["y"] + r.normal(0, noise, 1500))) == {}


def test_equal_held_out_values_are_not_evidence():
    X = pd.DataFrame(rng().normal(size=(300, 3)), columns=list("abc"))
    X["rare"] = 0.0
    X.loc[[10, 20], "rare"] = 1.0  # in rows that are not held out
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert predicted(X) == {}


def test_level_predicted_by_others_is_named():
    r = rng(3)
    X = pd.DataFrame({"x": r.normal(size=2000), "y": r.normal(size=2000), "job": r.choice(list("abc"), 2000)})
    X["both"] = np.where((X["x"] > 0) & (X["job"] == "a"), "yes", "no")
    assert set(predicted(X)) == {"both"}
    flipped = X.assign(both=X["both"].where(r.random(2000) > 0.05, "yes"))
    assert predicted(flipped) == {}


def test_rare_level_is_not_named_for_being_rare():
    r = rng(4)
    X = pd.DataFrame({"x": r.normal(size=2000), "rare": np.where(r.random(2000) < 0.002, "yes", "no")})
    assert predicted(X) == {}


def test_find_relations_and_fit_warn_with_the_fix():
    r = rng(5)
    X = pd.DataFrame({"x": r.normal(size=500), "y": r.normal(size=500), "age": r.integers(18, 90, 500)})
    X["z"] = X["x"] * np.exp(0.001 * X["age"]) + X["y"]
    said = (
        r"3 columns are predicted almost perfectly by the others, but no formula was found: 'x' .*'z' \(R² 1.000\). If"
    )
    with pytest.warns(AdviceWarning, match=said):
        mcce.find_relations(X)
    with pytest.warns(AdviceWarning, match=said):
        mcce.MCCE(lambda rows: rows["x"], decision=(0.5, np.inf), random_state=1).fit(X)


def test_columns_of_a_formula_are_not_named():
    r = rng(6)
    X = pd.DataFrame({"x": r.normal(size=500).round(2), "y": r.normal(size=500).round(2)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(mcce.find_relations(X.assign(z=(X["x"] + X["y"]).round(2)))) == 1


def test_sum_of_nonlinear_functions_is_named():
    X = load_diabetes(as_frame=True).data  # cholesterol is LDL plus HDL plus a fifth of exp(s5), all scaled
    found = predicted(X)
    assert set(found) == {"s1", "s2", "s3"}
    assert min(found.values()) > 0.999
    r = rng(7)
    noise = pd.DataFrame(r.lognormal(size=(442, 10)), columns=list("abcdefghij"))
    assert predicted(noise) == {}


def test_trees_of_wide_tables_use_the_most_correlated_columns(monkeypatch):
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.standard_normal((600, 90)), columns=[f"x{j}" for j in range(90)])
    X["band"] = pd.Categorical(np.where(np.abs(X["x80"]) < 0.7, "inside", "outside"))
    widths = []
    tree_error = predictable._tree_error

    def counted(others, column):
        widths.append(others.shape[1])
        return tree_error(others, column)

    monkeypatch.setattr(predictable, "_tree_error", counted)
    schema = Schema.from_data(X)
    found = predictable.find_predictable(schema.encode(X).matrix, schema)
    assert [each.name for each in found] == ["band"]
    assert widths == [predictable.MOST_TRIED]
