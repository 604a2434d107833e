"""Fixes in R syntax: R parses them and reads the written values."""

import math

import pytest

from mcce import Interval, Not, OneOf
from mcce.rcompat.wording import RDialect
from mcce.samplers import CartSampler
from mcce.wording import Setting, Value, call

ODD = "a `b` \\ \"c\" 'd' \n é [x=1]"


@pytest.mark.parametrize(
    "part",
    [
        Setting("n_samples", 5000),
        Setting("sparse", True),
        Setting("fixed", ["age", "sex"]),
        Setting("fixed", [ODD, ...]),
        Setting("kinds", {ODD: "categorical", "if": 1, "TRUE": None, "1a": [1, 2.5]}),
        Setting("names", {"labels": {"salary": "pay"}}),
        Setting("constraints", [call("mcce.allow", "age", low=18, high=math.inf), call("mcce.rule", "a <= 'b'")]),
        call("mcce.allow", ODD, levels=[ODD, "y"], missing=False),
        call("mcce.Interval", -math.inf, 0.1, of=ODD),
        Value(Interval(0, 1, closed="left", of="yes", margin=0.1, label="the loan is granted")),
        Value(OneOf(["a", ODD])),
        Value(Not(True)),
        Value(CartSampler(min_leaf=20, cp=None)),
        Value([1, "a", None, [True, math.nan]]),
    ],
)
def test_fixes_parse_as_r(r, part):
    code = RDialect("explain").format([part])
    parsed = f"as.character(length(parse(text = {RDialect('explain').format([Setting('x', code)])[4:]})))"
    assert r.strings(r.call("evaluate", parsed, None)) == ["1"]


@pytest.mark.parametrize("text", ["pay", ODD, "", "ü€", "tab\tand\\n"])
def test_texts_round_trip(r, text):
    code = RDialect("explain").format([Setting("x", [text, "z"])]).removeprefix("x = ")
    assert r.strings(r.call("evaluate", code, None)) == [text, "z"]


def test_names_round_trip(r):
    code = RDialect("explain").format([Setting("x", {ODD: 1, "if": 2, ".1": 3})]).removeprefix("x = ")
    assert r.strings(r.call("evaluate", f"names({code})", None)) == [ODD, "if", ".1"]
