"""Wanted decisions: which scores an interval contains, its words, and what the user may give."""

import functools
import math

import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.model import Interval, Labels, Predicate, read_decision


@pytest.mark.parametrize(
    ("closed", "expected", "bounds", "text"),
    [
        ("both", [False, True, True, True, False], "[0, 1]", "score from 0 to 1"),
        ("left", [False, True, True, False, False], "[0, 1)", "score at least 0 and below 1"),
        ("right", [False, False, True, True, False], "(0, 1]", "score above 0 and at most 1"),
        ("neither", [False, False, True, False, False], "(0, 1)", "score above 0 and below 1"),
    ],
)
def test_ends(closed, expected, bounds, text):
    interval = Interval(0, 1, closed=closed)
    assert interval.contains(np.array([-1e-12, 0, 0.5, 1, 1 + 1e-12])).tolist() == expected
    assert interval.bounds() == bounds
    assert str(interval) == text


def test_infinite_and_equal_ends():
    scores = np.array([-np.inf, -1e300, 0, 1e300, np.inf])
    assert Interval(0, np.inf).contains(scores).tolist() == [False, False, True, True, True]
    assert Interval(-math.inf, 0, closed="neither").contains(scores).tolist() == [False, True, False, False, False]
    assert Interval(-np.inf, 100).bounds() == "(-inf, 100]"
    assert Interval(2, 2).contains(np.array([1, 2, 3])).tolist() == [False, True, False]
    assert not Interval(-np.inf, np.inf).contains(np.array([np.nan]))[0]


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.5, 1), "at least 0.5"),
        (Interval(0, 0.1, closed="left"), "below 0.1"),
        (Interval(0.2, 0.4), "from 0.2 to 0.4"),
        (Interval(0.3, 0.3), "equal to 0.3"),
        (Interval(-np.inf, np.inf), "any number"),
    ],
)
def test_words_for_probabilities(interval, text):
    assert interval.phrase(probability=True) == text


def test_interval_is_frozen_and_hashable():
    assert hash(Interval(0, 1)) == hash(Interval(0.0, 1.0))
    assert str(Interval(0.5, np.float32(1), of="good")) == "score of class 'good' from 0.5 to 1"
    with pytest.raises(AttributeError):
        Interval(0, 1).low = 2


def function(table):
    return table["x"] > 0


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        ((0.5, 1), Interval(0.5, 1)),
        ((0, np.inf), Interval(0, np.inf)),
        (pd.Interval(0, 1, closed="left"), Interval(0, 1, closed="left")),
        ("good", Labels(("good",))),
        (np.int64(1), Labels((1,))),
        (True, Labels((True,))),
        (["good", "fair"], Labels(("good", "fair"))),
        (function, Predicate(function)),
    ],
)
def test_what_a_decision_may_be(decision, expected):
    assert read_decision(decision) == expected
    assert read_decision(expected) == expected


def test_words():
    assert str(read_decision(["good", 2])) == "predicted class 'good' or 2"
    assert str(read_decision(function)) == "function function"
    assert str(read_decision(functools.partial(function))) == "function partial"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Interval(math.nan, 1), "low of the interval is nan"),
        (lambda: Interval(False, 1), "low of the interval is False"),
        (lambda: Interval(0, None), "high of the interval is None; it must be a number, or inf"),
        (lambda: Interval(0, 1, closed=["both"]), r"closed is \['both'\]"),
        (lambda: read_decision((0.5,)), "not a pair of numbers.*function"),
        (lambda: read_decision(("good", "bad")), "not a pair of numbers.*list of labels"),
        (lambda: read_decision((False, True)), "not a pair of numbers"),
        (lambda: read_decision((1, 0)), "swap"),
        (lambda: read_decision(["a", "b", "a"]), "names the class 'a' twice"),
        (lambda: read_decision(["a", None]), "holds None, which no prediction can equal"),
        (lambda: read_decision(math.nan), "decision is nan"),
        (lambda: read_decision(pd.NA), "decision is <NA>"),
        (lambda: read_decision({0, 1}), "a set"),
        (lambda: read_decision(np.array([0.5, 1])), "a ndarray"),
        (lambda: read_decision(int), "the class int"),
    ],
)
def test_messages(make, message):
    with pytest.raises(InputError, match=message):
        make()
