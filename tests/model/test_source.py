"""What a model may be, and its replies: in any container, of the right column, or refused."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC, LinearSVC

from mcce.exceptions import InputError
from mcce.model import Interval, Query
from mcce.table import Schema
from tests.model.problem import ROWS, SIGMOID, Says, ask, two_columns

RNG = np.random.default_rng(3)
N = 150
PEOPLE = pd.DataFrame({"income": np.round(RNG.normal(40, 10, N), 1), "home": RNG.choice(["rent", "own"], N)})
LATENT = (0.1 * (PEOPLE["income"] - 40) + (PEOPLE["home"] == "own") + RNG.logistic(0, 0.3, N)).to_numpy()
GOOD = np.where(LATENT > 0.5, "good", "bad")
NUMBERS = PEOPLE[["income"]]


def pipeline(model):
    return make_pipeline(make_column_transformer((OneHotEncoder(), ["home"]), remainder="passthrough"), model)


def column(method, k):
    return lambda model, X: np.asarray(getattr(model, method)(X))[:, k]


def plain(method, sign=1):
    return lambda model, X: sign * np.asarray(getattr(model, method)(X))


LIBRARIES = {
    "pipeline": (lambda: pipeline(LogisticRegression()).fit(PEOPLE, LATENT > 0), (0.5, 1), column("predict_proba", 1)),
    "of": (
        lambda: pipeline(LogisticRegression()).fit(PEOPLE, GOOD),
        Interval(0, 0.4, of="bad"),
        column("predict_proba", 0),
    ),
    "search": (
        lambda: GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2).fit(NUMBERS, LATENT > 0),
        (0.5, 1),
        column("predict_proba", 1),
    ),
    "boosting": (
        lambda: HistGradientBoostingClassifier(max_iter=3).fit(NUMBERS, LATENT > 0),
        (0.5, 1),
        column("predict_proba", 1),
    ),
    "decision function": (
        lambda: LinearSVC(dual=False).fit(NUMBERS, GOOD),
        Interval(0, np.inf, of="good"),
        plain("decision_function"),
    ),
    "first of two": (
        lambda: LinearSVC(dual=False).fit(NUMBERS, GOOD),
        Interval(0, np.inf, of="bad"),
        plain("decision_function", -1),
    ),
    "regressor": (lambda: LinearRegression().fit(NUMBERS, LATENT), (0, np.inf), plain("predict")),
    "lightgbm": (
        lambda: lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(NUMBERS, LATENT > 0),
        (0.5, 1),
        column("predict_proba", 1),
    ),
    "statsmodels": (
        lambda: smf.logit("good ~ income + home", PEOPLE.assign(good=1.0 * (LATENT > 0.5))).fit(disp=0),
        (0.5, 1),
        plain("predict"),
    ),
    "statsmodels arrays": (lambda: sm.OLS(LATENT, NUMBERS).fit(), (0, np.inf), plain("predict")),
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_libraries(name):
    make, decision, score = LIBRARIES[name]
    model = make()
    X = PEOPLE if name in ("pipeline", "of", "statsmodels") else NUMBERS
    schema = Schema.from_data(X)
    answer = Query(model, decision, schema)(schema.encode(X).matrix)
    expected = score(model, X)
    np.testing.assert_allclose(answer.prediction, expected, rtol=1e-9)
    low, high = decision if isinstance(decision, tuple) else (decision.low, decision.high)
    np.testing.assert_array_equal(answer.wanted, (expected >= low) & (expected <= high))


def test_xgboost():
    xgboost = pytest.importorskip("xgboost", reason="needs xgboost: pip install xgboost")
    classifier = xgboost.XGBClassifier(n_estimators=3).fit(NUMBERS, LATENT > 0)
    booster = xgboost.train({}, xgboost.DMatrix(NUMBERS, LATENT), 3)
    matrix = Schema.from_data(NUMBERS).encode(NUMBERS).matrix
    for model, decision, expected in [
        (classifier, (0.5, 1), classifier.predict_proba(NUMBERS)[:, 1]),
        (booster, (0, np.inf), booster.predict(xgboost.DMatrix(NUMBERS))),
    ]:
        answer = Query(model, decision, Schema.from_data(NUMBERS))(matrix)
        np.testing.assert_allclose(answer.prediction, expected, rtol=1e-6)


def test_order_of_methods():
    model = Says([0, 1], predict_proba=two_columns, decision_function=[9] * 4, predict=[1, 0, 1, 0])
    np.testing.assert_allclose(ask((0.5, 1), model).prediction, SIGMOID)
    assert ask(1, model).prediction.tolist() == [1, 0, 1, 0]
    del model.predict_proba
    assert ask((0, 1), model).prediction.tolist() == [9] * 4
    del model.decision_function
    assert ask((0, 1), model).prediction.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("decision", "model", "text"),
    [
        ((0.5, 1), Says([0, 1], predict_proba=two_columns), "probability of class 1 at least 0.5"),
        ((0.5, 1), Says(np.array([False, True]), predict_proba=two_columns), "probability of class True at least 0.5"),
        ((0.5, 1), Says(predict_proba=two_columns), "probability of class 1 at least 0.5"),
        (
            Interval(0, 0.1, closed="left", of="bad"),
            Says(["bad", "good"], predict_proba=two_columns),
            "probability of class 'bad' below 0.1",
        ),
        ((2, np.inf), Says(predict=[1]), "prediction at least 2"),
        (Interval(0, 1, of=2), two_columns, "two_columns of column 2 from 0 to 1"),
        ((0, 1), lambda frame: frame["x"], "score from 0 to 1"),
        (["good", "fair"], two_columns, "predicted class 'good' or 'fair'"),
    ],
)
def test_text(decision, model, text):
    assert Query(model, decision, Schema.from_data(ROWS)).text == text


@pytest.mark.parametrize(
    "reply",
    [
        [0, 1, 0, 1],
        np.array([[0], [1], [0], [1]]),
        np.array([0, 1, 0, 1], dtype=object),
        np.ma.array([0, 1, 0, 1], mask=False),
        pd.Series([0, 1, 0, 1], index=[3, 2, 1, 0]),
        pd.Series([0, 1, 0, 1], dtype="Int64"),
        pd.array([False, True, False, True], dtype="boolean"),
        pd.Categorical([0, 1, 0, 1]),
        pd.DataFrame({"score": [0, 1, 0, 1]}, index=list("dcba")),
    ],
    ids=lambda reply: type(reply).__name__,
)
def test_scores_in_any_container(reply):
    answer = ask((0.5, 1), lambda frame: reply)
    assert answer.prediction.tolist() == [0, 1, 0, 1]
    assert answer.prediction.dtype == float
    assert answer.wanted.tolist() == [False, True, False, True]


@pytest.mark.parametrize("convert", [list, pd.Series, pd.Categorical, lambda v: pd.array(v, dtype="string")])
def test_labels_in_any_container(convert):
    answer = ask("v", lambda frame: convert(["u", "v", "u", "w"]))
    assert answer.wanted.tolist() == [False, True, False, False]
    assert ask(["v", "w"], lambda frame: convert(["u", "v", "u", "w"])).wanted.tolist() == [False, True, False, True]


def test_columns_are_found_by_name():
    swapped = pd.DataFrame(two_columns(ROWS), columns=["good", "bad"])
    model = Says(["bad", "good"], predict_proba=lambda frame: swapped)
    np.testing.assert_allclose(ask(Interval(0, 1, of="good"), model).prediction, 1 - SIGMOID)
    np.testing.assert_allclose(ask(Interval(0, 1, of=0), two_columns).prediction, 1 - SIGMOID)
    np.testing.assert_allclose(
        ask(Interval(0, 1, of="b"), lambda f: swapped.set_axis(list("ab"), axis=1)).prediction, SIGMOID
    )


def test_infinite_scores_and_squeezed_rows():
    assert ask((0, np.inf), lambda f: [np.inf, -np.inf, 0, 1]).wanted.tolist() == [True, False, True, True]
    assert ask((0, 1), lambda f: np.float32(0.5), np.array([[1.0]])).prediction.tolist() == [0.5]


def raises(frame):
    raise ValueError("no column 'age'\nsecond line")


BAD = [  # more are in tests/test_messages.py
    ((0, 1), raises, r"the model raises, queried with 4 rows \(the test rows\), raised ValueError.*\n.*shape \(4, 1\)"),
    (1, lambda f: np.ones((1, 4)), "returned 1 values, expected 4"),
    ((0, 1), lambda f: np.ones((4, 2, 2)), "returned a table for each of 4 outputs"),
    ((0, 1), lambda f: np.ones((4, 0)), "a table without columns"),
    ((0, 1), lambda f: [0.5, None, np.nan, pd.NA], r"3 of 4 rows, at positions 1, 2, 3; the first has x = 0\.0"),
    ((0, 1), Says([0, 1], predict_proba=np.full((4, 2), np.nan)), "4 of 4 rows"),
    ("u", lambda f: ["u", None, np.nan, "v"], "2 of 4 rows, at positions 1, 2"),
    ((0, 1), lambda f: np.array([1j, 1, 1, 1]), "not a number"),
    (
        "good",
        Says(["bad", "good"], predict=[0, 1, 0, 1]),
        "returned 0, which is not a class label like 'good' of 'bad'",
    ),
    (1, lambda f: [0, 0.25, 1, 1], "returned 0.25, which is not a class label like 1"),
    (1, lambda f: ["0", "1", "0", "1"], "returned '0', which is not a class label like 1"),
    (Interval(0, 1, of="a"), Says(["a", "b"], predict_proba=[0.1] * 4), "can only be that of the last of two"),
    ((0, 1), Says([["a"], ["b"]], predict_proba=two_columns), "has several outputs"),
    (lambda f: np.ones((4, 2), dtype=bool), None, "2 columns, expected one boolean per row"),
    (lambda f: [True, None, True, True], None, "1 of 4 rows, at positions 1"),
]


@pytest.mark.parametrize(("decision", "model", "message"), BAD, ids=range(len(BAD)))
def test_bad_models(decision, model, message):
    with pytest.raises(InputError, match=f"(?s){message}"):
        ask(decision, model)


def test_pairs_of_classes_are_refused():
    model = SVC(decision_function_shape="ovo").fit(NUMBERS, RNG.choice(list("abc"), N))
    with pytest.raises(InputError, match="columns for pairs of classes"):
        Query(model, Interval(0, 1, of="a"), Schema.from_data(NUMBERS))
