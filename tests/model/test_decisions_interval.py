"""Intervals with a margin or a label, compared with scores by hand."""

import math
import pickle

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.svm import SVC

from mcce import MCCE, InputError, Interval
from mcce.model.decisions import resolve_decision
from mcce.rcompat import explain_mcce
from mcce.storage.state import from_state, to_state

RNG = np.random.default_rng(5)
X = pd.DataFrame({"a": RNG.normal(size=300).round(1), "b": RNG.normal(size=300).round(1), "g": RNG.choice([0, 1], 300)})
Y3 = np.array(["due", "paid", "refused"])[np.digitize(X["a"] + 0.5 * X["b"], [-0.4, 0.6])]


def expected_profit(rows):
    return 10 * rows["a"] - rows["b"] ** 2


def wanted(decision, model, rows=X):
    return resolve_decision(decision, model).evaluate(rows, "rows").wanted


def test_margin_on_the_probability_of_one_of_three_classes():
    model = RandomForestClassifier(20, random_state=1).fit(X, Y3)
    paid = model.predict_proba(X)[:, list(model.classes_).index("paid")]
    hits = np.flatnonzero(np.isclose(paid, 0.65) | np.isclose(paid, 0.3))
    assert hits.size  # ties at the margin occur
    np.testing.assert_array_equal(wanted(Interval(0.5, 1, of="paid", margin=0.15), model), paid >= 0.65)
    np.testing.assert_array_equal(wanted(Interval(0, 0.5, of="paid", margin=0.2), model), paid <= 0.3)
    both = wanted(Interval(0.2, 0.8, closed="neither", of="paid", margin=0.1), model)
    np.testing.assert_array_equal(both, (paid > 0.3) & (paid < 0.7))


def test_probability_one_is_always_accepted():
    for high in (1, 1.0, 2, math.inf):
        assert Interval(0.5, high, margin=0.1).inside(probability=True).contains(
            np.array([1.0, 0.6, 0.59])
        ).tolist() == [
            True,
            True,
            False,
        ]
    assert Interval(-math.inf, 0.5, margin=0.1).inside(probability=True).contains(np.array([0.0]))[0]


@pytest.mark.parametrize(
    ("interval", "low", "high"),
    [
        (Interval(0.1, 5, margin=0.2), 0.3, 4.8),  # 0.1 + 0.2 is more than 0.3 in floats
        (Interval(0, 1, margin=0.05), 0.05, 0.95),
        (Interval(-math.inf, 0.7, margin=0.1), -math.inf, 0.6),
        (Interval(1e6, math.inf, margin=0.05), 1000000.05, math.inf),
        (Interval(-math.inf, math.inf, margin=3), -math.inf, math.inf),
        (Interval(0, 2, margin=1), 1, 1),
    ],
)
def test_margins_are_applied_in_decimal_arithmetic(interval, low, high):
    inside = interval.inside()
    assert (inside.low, inside.high) == (low, high)


def test_zero_margin_has_no_effect():
    interval = Interval(0.1, 0.7, "left", of="x")
    assert interval.inside() is interval


def test_regression_with_an_infinite_end_and_a_margin():
    model = RandomForestRegressor(20, random_state=1).fit(X, 3 * X["a"])
    says = model.predict(X)
    np.testing.assert_array_equal(wanted((1, math.inf), model), says >= 1)
    np.testing.assert_array_equal(wanted(Interval(1, math.inf, margin=0.5), model), says >= 1.5)
    np.testing.assert_array_equal(wanted(Interval(-math.inf, 1, "neither", margin=0.5), model), says < 0.5)
    assert resolve_decision(Interval(-math.inf, 1, "neither"), model).describe() == "prediction below 1"


def test_classifier_without_probabilities():
    model = SVC().fit(X, Y3)
    score = model.decision_function(X)[:, list(model.classes_).index("paid")]
    decision = resolve_decision(Interval(1, math.inf, of="paid", margin=0.25), model)
    np.testing.assert_array_equal(decision.evaluate(X, "rows").wanted, score >= 1.25)
    assert decision.describe() == "score of class 'paid' at least 1, with a margin of 0.25"


def test_utility_is_named_by_its_function():
    explainer = MCCE(expected_profit, decision=(0, math.inf), fixed=["g"], random_state=1).fit(X)
    denied = X[expected_profit(X) < 0].iloc[:10]
    found = explainer.explain(denied, n_samples=200)
    assert len(found) == 10
    assert (expected_profit(found.frame) >= 0).all()
    np.testing.assert_allclose(found.measures["prediction"], expected_profit(found.frame))
    assert found.decision == "expected_profit at least 0"
    assert "wanted: expected_profit at least 0\n" in repr(found)


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_custom_labels_are_used_everywhere():
    words = "expected profit of 2 & more"
    interval = Interval(0, math.inf, margin=2, label=words)
    explainer = MCCE(expected_profit, decision=interval, fixed=["g"], random_state=1).fit(X)
    found = explainer.explain(X[expected_profit(X) < 0].iloc[:3], n_samples=200)
    assert (found.measures["prediction"] >= 2).all()
    assert f"wanted: {words}\n" in repr(found)
    assert f"the result would have been as wanted: {words} (" in found.sentence(found.factuals.index[0])
    page = found.to_html()
    assert page.count("expected profit of 2 &amp; more") >= 3
    ax = found.plot()
    assert any(words in text.get_text().replace("\n", " ") for text in ax.figure.findobj(match=_is_text))
    plt.close(ax.figure)
    assert words in repr(explainer)
    with pytest.raises(InputError, match="no training row has the wanted decision, rich enough"):
        MCCE(expected_profit, decision=Interval(1e6, math.inf, label="rich enough")).fit(X)


def _is_text(artist):
    return hasattr(artist, "get_text")


@pytest.mark.parametrize(
    ("interval", "probability", "words"),
    [
        (Interval(0.5, 1), True, "at least 0.5"),
        (Interval(0.5, 1), False, "from 0.5 to 1"),
        (Interval(0.5, 1, "left"), True, "at least 0.5 and below 1"),
        (Interval(0.5, 2, "neither"), True, "above 0.5"),
        (Interval(0, 0.1, "left"), True, "below 0.1"),
        (Interval(0, 0.1, "neither"), True, "above 0 and below 0.1"),
        (Interval(0, 1), True, "from 0 to 1"),
        (Interval(-math.inf, math.inf), False, "any number"),
        (Interval(-math.inf, 3), False, "at most 3"),
        (Interval(3, math.inf, "right"), False, "above 3"),
        (Interval(3, 3), False, "equal to 3"),
        (Interval(1, 1), True, "equal to 1"),
    ],
)
def test_phrases(interval, probability, words):
    assert interval.phrase(probability=probability) == words


def test_text_with_margin():
    assert str(Interval(0.5, 1, of="x", margin=0.05)) == "score of class 'x' from 0.5 to 1, with a margin of 0.05"
    model = RandomForestClassifier(5, random_state=1).fit(X, Y3)
    decision = resolve_decision(Interval(0.5, 1, of="paid", margin=0.05), model)
    assert decision.describe() == "probability of class 'paid' at least 0.5, with a margin of 0.05"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"margin": -0.1}, r"margin is -0.1; it must be a number, 0 or more"),
        ({"margin": math.nan}, r"margin is nan; it must be"),
        ({"margin": math.inf}, r"margin is inf; it must be"),
        ({"margin": "0.1"}, r"margin is '0.1'; it must be"),
        ({"margin": None}, r"margin is None; it must be"),
        ({"margin": 10**400}, r"margin is a whole number of about 401 digits, more than a float holds; it must be"),
        ({"low": -(10**400)}, r"low of the interval is a whole number of about 401 digits, .*; it must be a number"),
        ({"high": 10**400}, r"high of the interval is a whole number of about 401 digits, .*; it must be a number"),
        ({"label": " "}, r"label is ' '; give the decision in a few words, or None"),
        ({"label": 3}, r"label is 3; give"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        Interval(**({"low": 0, "high": 1} | arguments))


@pytest.mark.parametrize("interval", [Interval(0, 1, margin=0.6), Interval(0, 1, "left", margin=0.5)])
def test_margin_that_leaves_nothing_raises(interval):
    said = r"the interval \[0, 1.* with a margin of 0\.\d is empty: its ends become .* Give a smaller margin, or inf"
    with pytest.raises(InputError, match=said):
        MCCE(expected_profit, decision=interval).fit(X)


def test_interval_with_margin_and_label_round_trips():
    interval = Interval(0, 0.1, closed="left", of="default", margin=0.01, label="safe")
    assert pickle.loads(pickle.dumps(interval)) == interval
    assert from_state(to_state(interval)) == interval
    old = {k: v for k, v in to_state(Interval(0, 1)).items() if k not in ("margin", "label")}
    assert from_state(old) == Interval(0, 1)  # written before margins existed


def test_mccer_has_no_margin():
    with pytest.raises(InputError, match="mcceR has no margin: give the narrower interval itself"):
        explain_mcce(model=expected_profit, x_explain=X[:2], x_train=X, c_int=Interval(0, 90, margin=1))
