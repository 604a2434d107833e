"""The desired decision: its bounds, its text, errors, and compared answers."""

from __future__ import annotations

import functools
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from mcce.exceptions import InputError, ModelError
from mcce.model.decisions import Answer, Interval, compare_answers, resolve_decision
from tests.model.problem import SIGMOID, Says, query, two_columns


class TestInterval:
    @pytest.mark.parametrize(
        ("closed", "expected", "bounds", "text"),
        [
            ("both", [False, True, True, True, False], "[0, 1]", "score from 0 to 1"),
            ("left", [False, True, True, False, False], "[0, 1)", "score at least 0 and below 1"),
            ("right", [False, False, True, True, False], "(0, 1]", "score above 0 and at most 1"),
            ("neither", [False, False, True, False, False], "(0, 1)", "score above 0 and below 1"),
        ],
    )
    def test_edges(self, closed, expected, bounds, text):
        interval = Interval(0, 1, closed=closed)
        assert interval.contains(np.array([-1e-12, 0, 0.5, 1, 1 + 1e-12])).tolist() == expected
        assert interval.bounds() == bounds
        assert str(interval) == text

    def test_infinite_ends(self):
        scores = np.array([-np.inf, -1e300, 0, 1e300, np.inf])
        assert Interval(0, np.inf).contains(scores).tolist() == [False, False, True, True, True]
        assert Interval(-math.inf, 0, "neither").contains(scores).tolist() == [
            False,
            True,
            False,
            False,
            False,
        ]
        assert str(Interval(0, np.inf, "neither")) == "score above 0"
        assert Interval(-np.inf, 100).bounds() == "(-inf, 100]"

    def test_single_score(self):
        assert Interval(2, 2).contains(np.array([1, 2, 3])).tolist() == [False, True, False]

    def test_nan_is_in_no_interval(self):
        assert not Interval(-np.inf, np.inf).contains(np.array([np.nan]))[0]

    def test_text(self):
        assert str(Interval(0.5, 1)) == "score from 0.5 to 1"
        assert str(Interval(0.5, np.float32(1), of=np.str_("good"))) == "score of class 'good' from 0.5 to 1"

    def test_decision_is_frozen_and_hashable(self):
        assert hash(Interval(0, 1)) == hash(Interval(0.0, 1.0))
        with pytest.raises(AttributeError):
            Interval(0, 1).low = 2

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            ((1, 0), "from 1 to 0 has low > high; swap"),
            ((math.nan, 1), "low of the interval is nan"),
            ((0, np.float64("nan")), "high of the interval is .*nan"),
            ((0, "1"), "high of the interval is '1'"),
            ((False, 1), "low of the interval is False"),
            ((0, None), "high of the interval is None"),
            ((0, 1, "open"), "closed is 'open'; it must be one of 'both', 'left', 'right', 'neither'"),
            ((0, 1, ["both"]), r"closed is \['both'\]; it must be one of"),
            ((1, 1, "left"), r"\[1, 1\) is empty"),
            ((1, 1, "right"), "is empty"),
            ((1, 1, "neither"), "is empty"),
        ],
    )
    def test_bad_intervals(self, args, message):
        with pytest.raises(InputError, match=message):
            Interval(*args)


class TestResolve:
    @pytest.mark.parametrize(
        ("decision", "message"),
        [
            ((0.5,), "not a pair of numbers.*callable"),
            ((0, 1, 2), "not a pair of numbers"),
            ([], "not a pair of numbers"),
            (("good", "bad"), "not a pair of numbers"),
            ((0.5, None), "inf"),
            ((False, True), "not a pair of numbers"),
            ((1, 0), "swap"),
            ((0, math.nan), "high of the interval is nan; it must be a number"),
            (None, "decision is None"),
            (math.nan, "decision is nan"),
            (pd.NA, "decision is <NA>"),
            ({0, 1}, "a set"),
            (np.array([0.5, 1]), "a ndarray"),
        ],
    )
    def test_bad_decisions(self, decision, message):
        with pytest.raises(InputError, match=message):
            resolve_decision(decision, two_columns)

    @pytest.mark.parametrize("decision", [(0, 1), Interval(0, 1), 1, "good"])
    def test_bad_models(self, decision):
        with pytest.raises(InputError, match="model is None"):
            resolve_decision(decision, None)
        with pytest.raises(InputError, match="model is the class LogisticRegression; give a fitted"):
            resolve_decision(decision, LogisticRegression)
        with pytest.raises(ModelError, match=r"the model .a dict. cannot be queried: it has no .*predict and is not"):
            resolve_decision(decision, {})

    def test_order_of_methods(self):
        model = Says([0, 1], predict_proba=two_columns, decision_function=[9] * 4, predict=[1, 0, 1, 0])
        np.testing.assert_allclose(query([0.5, 1], model).scores, SIGMOID)
        assert query(1, model).scores.tolist() == [1, 0, 1, 0]
        del model.predict_proba
        assert query((0, 1), model).scores.tolist() == [9] * 4
        del model.decision_function
        assert query((0, 1), model).scores.tolist() == [1, 0, 1, 0]

    def test_empty_classes_are_ignored(self):
        assert query((0, 1), Says([], predict_proba=two_columns)).scores.shape == (4,)

    def test_descriptions(self):
        def rich(frame):
            return frame["x"] > 0

        proba = {"predict_proba": two_columns, "predict": [0, 0, 0, 0]}
        for decision, model, text in [
            ((0.5, 1), Says(np.array([0, 1]), **proba), "probability of class 1 at least 0.5"),
            ((0.5, 1), Says(np.array([False, True]), **proba), "probability of class True at least 0.5"),
            ((0.5, 1), Says(**proba), "probability of class 1 at least 0.5"),
            (
                Interval(0, 0.1, "left", of="bad"),
                Says(["bad", "good"], **proba),
                "probability of class 'bad' below 0.1",
            ),
            ((2, math.inf), Says(predict=[1]), "prediction at least 2"),
            (Interval(0, 1, of=2), two_columns, "two_columns of column 2 from 0 to 1"),
            (np.int64(1), Says([0, 1], **proba), "predicted class 1"),
            ("good", two_columns, "predicted class 'good'"),
            (rich, None, "predicate rich"),
            (functools.partial(rich), None, "predicate partial"),
        ]:
            assert resolve_decision(decision, model).describe() == text


class TestCompareAnswers:
    def test_numbers(self):
        first = np.array([0.5, 0.5, 0.5, 0.0, np.inf, 1e6])
        second = np.array([0.5, 0.5 + 1e-8, 0.501, 1e-9, np.inf, 1e6 + 0.1])
        assert compare_answers(first, second, list("abcdef")) == ["c"]
        assert compare_answers(np.array([np.inf]), np.array([-np.inf]), ["a"]) == ["a"]

    def test_labels_and_booleans(self):
        labels = pd.Index([10, 20, 30])
        assert compare_answers(np.array(["u", "v", 1], object), np.array(["u", "u", 2], object), labels) == [
            20,
            30,
        ]
        assert compare_answers(np.array([True, False, True]), np.array([True, True, True]), labels) == [20]
        assert compare_answers(np.array([]), np.array([]), []) == []

    def test_lengths_must_agree(self):
        with pytest.raises(ValueError, match="longer"):
            compare_answers(np.zeros(3), np.zeros(3), ["a", "b"])

    def test_random_model_is_detected(self, X, y):
        rng = np.random.default_rng(1)
        noisy = resolve_decision((0, 1), lambda frame: rng.random(len(frame)))
        first, second = noisy.evaluate(X, "rows"), noisy.evaluate(X, "rows")
        assert isinstance(first, Answer)
        assert compare_answers(first, second, X.index) == list(X.index)
        steady = resolve_decision((0.5, 1), LogisticRegression().fit(X, y))
        assert compare_answers(steady.evaluate(X, "rows").scores[:5], steady.evaluate(X[:5], "rows"), X.index[:5]) == []


@pytest.mark.parametrize(
    ("low", "high", "closed", "text"),
    [
        (-np.inf, np.log(3), "neither", "score below 1.09861"),
        (np.log(3), np.inf, "both", "score at least 1.09862"),
        (1234567.8, np.inf, "both", "score at least 1234570"),
        (0.123456, np.inf, "both", "score at least 0.123456"),
        (0.12345671, 0.12345672, "both", "score from 0.12345671 to 0.12345672"),
    ],
)
def test_bounds_in_text_have_few_digits_and_lie_inside(low, high, closed, text):
    assert str(Interval(low, high, closed=closed)) == text
