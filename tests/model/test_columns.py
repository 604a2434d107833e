"""The columns that scikit-learn and statsmodels models read, for all kinds of input."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mcce
from mcce.exceptions import AdviceWarning, InputError
from mcce.model.columns import columns_of

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "wt": RNG.normal(3, 1, 200),
        "hp": RNG.normal(150, 40, 200),
        "gear": RNG.choice(["three", "four"], 200),
        "my col": RNG.normal(0, 1, 200),
    }
)
MPG = (40 - 4 * X["wt"] - 0.05 * X["hp"] + RNG.normal(0, 1, 200)).rename("mpg")
FAST = X["wt"] < 3
WITH_RESPONSE = X.assign(mpg=MPG)


def dropping(columns):
    return make_pipeline(make_column_transformer((StandardScaler(), columns)), LogisticRegression()).fit(X, FAST)


@pytest.mark.parametrize(
    "columns",
    [
        ["wt", "hp"],
        [0, 1],
        slice(0, 2),
        slice("wt", "hp"),
        [True, True, False, False],
        make_column_selector("wt|hp"),
        lambda table: table.columns[:2],
    ],
    ids=["names", "positions", "slice", "slice of names", "mask", "selector", "function"],
)
def test_columns_dropped_by_a_transformer_are_not_read(columns):
    assert columns_of(dropping(columns), list(X)).read == {"wt", "hp"}


def test_other_estimators_read_their_training_columns():
    encode = make_column_transformer((OneHotEncoder(), ["gear"]), remainder="passthrough")
    whole = make_pipeline("passthrough", encode, LogisticRegression(max_iter=1000)).fit(X, FAST)
    searched = GridSearchCV(dropping(["wt", "hp"]), {"logisticregression__C": [0.1, 1]}, cv=2).fit(X, FAST)
    alone = LogisticRegression(max_iter=1000).fit(X[["wt", "hp"]], FAST)
    assert columns_of(whole, list(X)).read == set(X)
    assert columns_of(searched, list(X)).read == {"wt", "hp"}
    assert columns_of(alone, list(X)).read == {"wt", "hp"}
    assert columns_of(alone.predict_proba, list(X)).read == {"wt", "hp"}


class Broken:
    @property
    def feature_names_in_(self):
        raise RuntimeError

    def __call__(self, rows):
        raise AssertionError("the model is queried")


@pytest.mark.parametrize(
    "model", [None, lambda rows: rows, Broken(), LogisticRegression()], ids=lambda model: type(model).__name__
)
def test_models_without_column_names_have_unknown_columns(model):
    assert columns_of(model, list(X)) == mcce.model.columns.ModelColumns()


def test_names_absent_from_the_table_give_unknown_columns():
    alone = LogisticRegression(max_iter=1000).fit(X[["wt", "hp"]], FAST)
    assert columns_of(alone, ["wt", "HP", "gear"]).read is None
    assert columns_of(alone, [0, 1]).read is None


@pytest.mark.parametrize(
    ("formula", "read"),
    [
        ("mpg ~ wt + hp", {"wt", "hp"}),
        ("np.log(mpg + 100) ~ I(wt ** 2) + C(gear)", {"wt", "gear"}),
        ("mpg ~ bs(hp, df=4)", {"hp"}),
    ],
)
def test_statsmodels_formulas(formula, read):
    api = pytest.importorskip("statsmodels.formula.api")
    fitted = api.ols(formula, WITH_RESPONSE).fit()
    found = columns_of(fitted, list(WITH_RESPONSE))
    assert found.read == read
    assert found.response == ("mpg",)
    assert columns_of(fitted.predict, list(X)).response == ()
    with pytest.raises(InputError, match=r"^X has the column 'mpg', which is the response of the model .*\['mpg'\]"):
        mcce.MCCE(fitted, decision=(20, np.inf)).fit(WITH_RESPONSE)


def test_statsmodels_tables_and_arrays():
    api = pytest.importorskip("statsmodels.api")
    tables = api.OLS(MPG, X[["wt", "hp"]]).fit()
    assert columns_of(tables, ["mpg", "wt", "hp"]) == mcce.model.columns.ModelColumns(frozenset({"wt", "hp"}), ("mpg",))
    arrays = api.OLS(MPG.to_numpy(), X[["wt", "hp"]].to_numpy()).fit()
    assert columns_of(arrays, ["y", "x1", "x2"]) == mcce.model.columns.ModelColumns()


def test_unread_column_is_reported_unless_fixed():
    model = dropping(["wt", "hp"])
    with pytest.warns(AdviceWarning, match=r"^the model does not read 'gear', 'my col', .*fixed=\['gear', \.\.\.\]"):
        mcce.MCCE(model, decision=True, random_state=1).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mcce.MCCE(model, decision=True, fixed=["gear", "my col"], random_state=1).fit(X)
