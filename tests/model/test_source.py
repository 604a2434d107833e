"""Models of many libraries end to end: the returned rows have the wanted decision."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from mcce import MCCE, InputError, Interval, ModelError
from mcce.model.decisions import resolve_decision
from mcce.model.source import Reply
from tests.marks import nightly, slow


@pytest.fixture(autouse=True)
def one_thread():
    """Use one thread: OpenMP threads that wait for a busy core make small models slow."""
    with threadpool_limits(1):
        yield


def people(n: int = 400, seed: int = 3) -> tuple[pd.DataFrame, np.ndarray]:
    """Raw rows with strings, and a score that depends on them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 25, n),
            "job": rng.choice(["clerk", "pilot", "nurse"], n),
            "income": np.round(rng.normal(40, 10, n), 1),
            "home": rng.choice(["rent", "own"], n),
        }
    )
    z = 0.1 * (X["income"] - 40) + (X["home"] == "own") + 0.5 * (X["job"] == "pilot") - 0.7
    return X, (z + rng.logistic(0, 0.3, n)).to_numpy()


X, LATENT = people()
Y = (LATENT > 0).astype(int)
NUMBERS = X[["age", "income"]]


def encoder() -> ColumnTransformer:
    return ColumnTransformer(
        [("levels", OneHotEncoder(), ["job", "home"]), ("numbers", StandardScaler(), ["age", "income"])]
    )


def check(model, decision, is_wanted, table=X, fixed=("age",), least=15):
    """Explain twenty rejected factuals; `is_wanted` queries the model directly."""
    unwanted = table[~np.asarray(is_wanted(table), dtype=bool)].iloc[:20]
    assert len(unwanted) == 20
    explainer = MCCE(model, decision=decision, fixed=fixed, random_state=1).fit(table)
    found = explainer.explain(unwanted, n_samples=200, n_counterfactuals=2)
    explained = found.frame.index.get_level_values("id").nunique()
    assert explained >= least
    assert explained + len(found.unexplained) == 20
    assert np.asarray(is_wanted(found.frame), dtype=bool).all()
    assert found.frame.dtypes.equals(table.dtypes)
    for name in fixed:
        beside = unwanted.loc[found.frame.index.get_level_values("id"), name]
        assert (found.frame[name].to_numpy() == beside.to_numpy()).all()
    best = found.measures.xs(1, level="rank")
    assert (best["L0"] >= 1).all()
    return found


def test_pipeline_on_raw_frames():
    model = make_pipeline(encoder(), LogisticRegression()).fit(X, Y)
    found = check(model, (0.5, 1), lambda f: model.predict_proba(f)[:, 1] >= 0.5)
    assert found.decision == "probability of class 1 at least 0.5"
    assert (found.measures["prediction"] == model.predict_proba(found.frame)[:, 1]).all()


def test_counterfactual_of_a_logit_is_on_the_accepted_side():
    """Only income matters and may change: every counterfactual increases it."""
    model = LogisticRegression().fit(NUMBERS, NUMBERS["income"] > 45)
    found = check(model, Interval(0.5, 1, of=True), model.predict, NUMBERS)
    before = NUMBERS.loc[found.frame.index.get_level_values("id"), "income"]
    assert (found.frame["income"].to_numpy() > before.to_numpy()).all()
    assert found.frame["income"].min() > 45 - 1


@pytest.mark.parametrize("label", ["good", *nightly("bad")])
@pytest.mark.parametrize("kind", ["label", *nightly("interval")])
def test_text_labels(label, kind):
    model = make_pipeline(encoder(), RandomForestClassifier(20, random_state=0)).fit(X, np.where(Y == 1, "good", "bad"))
    if kind == "label":
        found = check(model, label, lambda f: model.predict(f) == label)
        assert set(found.measures["prediction"]) == {label}
        return
    column = list(model.classes_).index(label)
    found = check(model, Interval(0.6, 1, of=label), lambda f: model.predict_proba(f)[:, column] >= 0.6)
    assert found.decision == f"probability of class {label!r} at least 0.6"


def test_text_labels_must_be_named():
    model = make_pipeline(encoder(), LogisticRegression()).fit(X, np.where(Y == 1, "good", "bad"))
    with pytest.raises(InputError, match=r"does not say of which class the score is \(classes: 'bad', 'good'\)"):
        MCCE(model, decision=(0.5, 1)).fit(X)
    with pytest.raises(
        InputError, match="of is 'goood', but the model's classes are 'bad', 'good'; did you mean 'good'"
    ):
        MCCE(model, decision=Interval(0.5, 1, of="goood")).fit(X)


@pytest.mark.slow
def test_class_zero_may_be_the_wanted_one():
    model = make_pipeline(encoder(), LogisticRegression()).fit(X, Y)
    check(model, 0, lambda f: model.predict(f) == 0)
    check(model, Interval(0.7, 1, of=0), lambda f: model.predict_proba(f)[:, 0] >= 0.7)
    low = check(model, (0, 0.3), lambda f: model.predict_proba(f)[:, 1] <= 0.3)
    assert (low.measures["prediction"] <= 0.3).all()


@pytest.mark.slow
@pytest.mark.parametrize("label", ["middle", *nightly("low", "high")])
def test_one_of_three_classes(label):
    three = np.select([LATENT < -0.7, LATENT < 0.7], ["low", "middle"], "high")
    model = make_pipeline(encoder(), LogisticRegression(max_iter=500)).fit(X, three)
    check(model, label, lambda f: model.predict(f) == label)
    column = list(model.classes_).index(label)
    check(model, Interval(0.5, 1, of=label), lambda f: model.predict_proba(f)[:, column] >= 0.5)


@pytest.mark.slow
def test_decision_function():
    model = make_pipeline(encoder(), LinearSVC(dual=False)).fit(X, Y)
    check(model, (0, np.inf), lambda f: model.decision_function(f) >= 0)
    check(model, Interval(0, np.inf, of=0), lambda f: model.decision_function(f) <= 0)
    named = make_pipeline(encoder(), SVC()).fit(X, np.where(Y == 1, "good", "bad"))
    check(named, Interval(0, np.inf, of="good"), lambda f: named.predict(f) == "good")


@pytest.mark.parametrize("regressor", [LinearRegression(), *nightly(KNeighborsRegressor(5))])
@pytest.mark.parametrize("interval", [(0.5, np.inf), *slow((-0.2, 0.2), (-np.inf, -0.5))])
def test_regressors(regressor, interval):
    model = make_pipeline(encoder(), regressor).fit(X, LATENT)
    found = check(model, interval, lambda f: (model.predict(f) >= interval[0]) & (model.predict(f) <= interval[1]))
    assert found.measures["prediction"].between(*interval).all()


def test_models_of_arrays():
    rows = NUMBERS.to_numpy()
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(rows, Y)
    factuals = rows[model.predict(rows) == 0][:20]
    found = MCCE(model, fixed=["x0"], random_state=1).fit(rows).explain(factuals, n_samples=200)
    assert len(found) >= 15
    assert (model.predict(found.frame.to_numpy()) == 1).all()


@pytest.mark.slow
def test_missing_values_and_categories_of_boosted_trees():
    rng = np.random.default_rng(8)
    table = X.assign(
        income=X["income"].mask(rng.random(len(X)) < 0.2),
        job=pd.Categorical(X["job"].where(rng.random(len(X)) > 0.1)),
        home=pd.Categorical(X["home"]),
    )
    model = HistGradientBoostingClassifier(max_iter=8, categorical_features="from_dtype", random_state=0).fit(table, Y)
    check(model, (0.5, 1), lambda f: model.predict_proba(f)[:, 1] >= 0.5, table)


@pytest.mark.parametrize("container", [np.asarray, list, pd.Series, lambda a: pd.DataFrame({"p": a})])
def test_functions_may_return_any_container(container):
    def model(frame):
        return container((frame["income"] / 100 + 0.2 * (frame["home"] == "own")).to_numpy())

    check(model, (0.6, 1), lambda f: np.ravel(model(f)) >= 0.6)


def test_callable_objects_and_predicates():
    class Scorecard:
        def __call__(self, frame):
            return frame["income"].to_numpy() + 10 * (frame["job"] == "pilot").to_numpy()

    check(Scorecard(), (55, np.inf), lambda f: Scorecard()(f) >= 55)

    def rich_owner(frame):
        return (frame["income"] > 45) & (frame["home"] == "own")

    found = check(None, rich_owner, rich_owner)
    assert set(found.factual_predictions) == {False}


@pytest.mark.slow
def test_several_models_can_make_one_decision():
    one = make_pipeline(encoder(), LogisticRegression()).fit(X, Y)
    two = make_pipeline(encoder(), DecisionTreeClassifier(max_depth=3)).fit(X, LATENT > 0.3)

    def both(frame):
        return (one.predict(frame) == 1) & two.predict(frame)

    check(None, both, both)


@pytest.mark.slow
def test_statsmodels_formula():
    api = pytest.importorskip("statsmodels.formula.api")
    model = api.logit("y ~ income + C(home) + C(job)", data=X.assign(y=Y)).fit(disp=False)
    found = check(model, (0.5, 1), lambda f: model.predict(f) >= 0.5)
    np.testing.assert_allclose(found.measures["prediction"], model.predict(found.frame))


def categories() -> pd.DataFrame:
    return X.assign(job=pd.Categorical(X["job"]), home=pd.Categorical(X["home"]))


@pytest.mark.slow
def test_lightgbm_on_categories():
    lightgbm = pytest.importorskip("lightgbm")
    table = categories()
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1, random_state=0).fit(table, Y)
    check(model, (0.5, 1), lambda f: model.predict_proba(f)[:, 1] >= 0.5, table)
    check(model.booster_, Interval(0.5, 1), lambda f: model.booster_.predict(f) >= 0.5, table)


def test_xgboost_on_categories():
    xgboost = pytest.importorskip("xgboost")
    table = categories()
    model = xgboost.XGBClassifier(n_estimators=20, enable_categorical=True, n_jobs=1, random_state=0).fit(table, Y)
    check(model, (0.5, 1), lambda f: model.predict_proba(f)[:, 1] >= 0.5, table)

    def probability(frame):
        return model.get_booster().predict(xgboost.DMatrix(frame, enable_categorical=True))

    check(model.get_booster(), (0.5, 1), lambda f: probability(f) >= 0.5, table)


def test_table_without_columns_raises():
    with pytest.raises(ModelError, match="returned a table without columns"):
        Reply.read(np.empty((3, 0)), pd.DataFrame({"a": [1, 2, 3]}), "the model")


def test_full_message_of_a_model_is_kept():
    def refuses(rows):
        raise KeyError("columns are missing:\n- income\n- age\nfit me again.")

    with pytest.raises(
        ModelError, match=r"(?s)raised KeyError: .*columns are missing.*income.*age.*fit me again.*Check"
    ):
        resolve_decision(refuses, None).evaluate(pd.DataFrame({"a": [1.0]}), "rows")
