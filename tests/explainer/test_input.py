"""Invalid input raises before any work is done."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCE, InputError, NotFittedError
from tests.explainer.problem import DENIED, SMALL, TABLE, fitted, score


@pytest.mark.parametrize("value", [0, -3, 1.5, "many", None, True])
@pytest.mark.parametrize("parameter", ["n_samples", "n_counterfactuals"])
def test_counts_must_be_positive_integers(explainer, parameter, value):
    message = re.escape(f"{parameter} is {value!r}; it must be a whole number of at least 1")
    with pytest.raises(InputError, match=message):
        explainer.explain(DENIED, **{parameter: value})


@pytest.mark.parametrize(("value", "got"), [(10**12, "1000000000000"), (10**400, "a whole number of about 401 digits")])
@pytest.mark.parametrize("call", ["explain", "generate"])
def test_draws_exceeding_memory_raise(explainer, call, value, got):
    message = rf"^n_samples is {got}.*; it must be a whole number of at least 1 and at most 10000000"
    with pytest.raises(InputError, match=message):
        getattr(explainer, call)(DENIED, n_samples=value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"feature_weights": {"income": 10**400}},
            r"weights\['income'\] is a whole number of about 401 digits, .*; give a number",
        ),
        ({"max_changes": 10**400}, "max_changes is a whole number of about 401 digits, .* at most 9223372036854775807"),
        (
            {"max_gower": 10**400},
            "max_gower is a whole number of about 401 digits, .*; it must be a number of at least",
        ),
        (
            {"robust": mcce.Robust(noise=10**5000, share=0.9)},
            "noise is a whole number of about 5001 digits, .*; it is a share",
        ),
    ],
)
def test_numbers_outside_float_range_raise(explainer, settings, message):
    with pytest.raises(InputError, match=message):
        explainer.explain(DENIED, **settings)


def test_redraw_outside_integer_range_raises(explainer):
    with pytest.raises(InputError, match="redraw is a whole number of about 5001 digits"):
        explainer.explain(DENIED.iloc[:2], n_samples=5).redrawn(10**5000)


@pytest.mark.parametrize("call", ["explain", "generate"])
def test_not_fitted(call):
    with pytest.raises(NotFittedError, match=r"this MCCE is not fitted; call fit\(X\)"):
        getattr(MCCE(score), call)(DENIED)
    with pytest.raises(NotFittedError, match="not fitted"):
        MCCE(score).select(DENIED, DENIED)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fixed": ["sexx"]}, "fixed feature 'sexx' is not a column of X; did you mean 'sex'?"),
        ({"fixed": ["qqqqq"]}, "fixed feature 'qqqqq' is not a column of X; known: 'age', 'sex'"),
        ({"fixed": "age"}, "fixed is 'age'; give a list of column names"),
        ({"fixed": None}, "fixed is None; give a list of column names"),
        ({"fixed": ["age", "age"]}, "fixed names 'age' more than once"),
        ({"fixed": list(TABLE)}, "all 10 columns of X are fixed"),
        ({"random_state": 1.5}, "random_state is 1.5"),
        ({"random_state": 10**5000}, "random_state is a whole number of about 5001 digits"),
        ({"decision": (0, 10**5000)}, "decision a tuple too deep or too long to be written is not a pair of numbers"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"condition_on_decision": "no"}, "condition_on_decision is 'no'; it must be True or False"),
        ({"kinds": ["age"]}, r"kinds is \['age'\]; give kinds by column, for example kinds={'age': 'numeric'}"),
        ({"kinds": {"agee": "numeric"}}, "kinds names 'agee'.*did you mean 'age'"),
        ({"decision": (1, 0)}, "low > high; swap the ends"),
    ],
)
def test_invalid_settings_raise(settings, message):
    with pytest.raises(InputError, match=message):
        fitted(**settings)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (TABLE.iloc[:0], "X has 0 rows and 10 columns; it needs at least one of each"),
        (TABLE["age"], "X is a Series; give a pandas DataFrame"),
        (pd.concat([TABLE, TABLE], axis=1), "X has the column label.* more than once"),
    ],
)
def test_invalid_training_tables_raise(X, message):
    with pytest.raises(InputError, match=message):
        MCCE(lambda f: np.ones(len(f))).fit(X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X.assign(job="thief"), "column 'job' of X holds the level 'thief'"),
        (lambda X: X.drop(columns="job"), r"X lacks the column\(s\) 'job' of the training data"),
        (lambda X: X.assign(zip=1), r"X has the column\(s\) 'zip', unknown to the training data"),
        (lambda X: X.assign(income=np.inf), "column 'income' of X holds 2 infinite value"),
        (lambda X: X.assign(age=np.nan), "column 'age' of X has 2 missing .* row 'p0', which .* int64 cannot"),
        (lambda X: X.assign(age=40.5), "column 'age' of X holds 40.5 in row 'p"),
        (lambda X: X.assign(income=1e200), r"column 'income' of X holds numbers of size 1e\+200"),
        (lambda X: X["income"], "X is a Series whose index holds none of .* read as one row. Give a DataFrame"),
        (lambda X: X.to_dict(), "X is a dict"),
    ],
)
def test_invalid_factuals_raise(explainer, change, message):
    with pytest.raises(InputError, match=message):
        explainer.explain(change(DENIED.iloc[:2]))


def test_column_kinds_are_available_before_fitting():
    """Integers beyond 2**53 are levels if the user declares them as such."""
    X = SMALL.assign(account=2**60 + np.arange(80) % 3)
    found = (
        MCCE(lambda f: f["x"].to_numpy(), decision=(40, 99), kinds={"account": "categorical"}, random_state=1)
        .fit(X)
        .explain(X.iloc[:3])
    )
    assert found.frame["account"].isin(X["account"]).all()
