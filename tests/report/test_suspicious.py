"""Answered that a person should read before sending: each reason by hand, with answers that have it and that do not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.report.names import Names
from mcce.report.suspicious import REASONS, Answered, Usual, find_suspicious

USUAL = Usual(
    directions={"salary": 1, "loan": -1, "education": 1},
    spreads={"salary": 80_000.0, "loan": 40_000.0, "savings": 20_000.0, "years_employed": 30.0},
    edges=(
        ("salary", None, None, 10_000.0, 150_000.0),
        ("salary", "job", "none", 8_000.0, 40_000.0),
        ("salary", "job", "nurse", 20_000.0, 90_000.0),
    ),
    unchangeable={"defaulted": "a past event"},
)
EDUCATION = pd.CategoricalDtype(["school", "college", "degree"], ordered=True)
HER = {
    **{"salary": 30_000, "loan": 20_000, "savings": 1_000, "job": "nurse", "defaulted": True, "education": "school"},
    "years_employed": 1,
}


def judge(*answers: dict, along=(), plausibility=None, floor=None, names=None) -> pd.DataFrame:
    """What is found of some answers to her, given as what they change."""
    before = _frame([HER] * len(answers))
    after = _frame([{**HER, **each} for each in answers])
    changed = np.column_stack([(before[name].astype(object) != after[name].astype(object)) for name in before])
    after.index = pd.MultiIndex.from_arrays([np.arange(len(answers)), np.ones(len(answers), int)], names=["id", "rank"])
    cells = np.array([[name in along for name in before]] * len(answers))
    return find_suspicious(
        Answered(before, after, changed, cells & changed, plausibility, floor, names or Names(years=())), USUAL
    )


def _frame(rows) -> pd.DataFrame:
    return pd.DataFrame(rows).astype({"education": EDUCATION})


OPPOSITE = "opposite to the usual direction"


@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        ({"defaulted": False}, "past event or fact", "defaulted changes, which looks like a past event"),
        (
            {"loan": 25_000},
            OPPOSITE,
            "loan is higher, and for most of the refused lower helps",
        ),
        (
            {"salary": 25_000},
            OPPOSITE,
            "salary is lower, and for most of the refused higher helps",
        ),
        ({"years_employed": 4}, "duration", "years_employed grows by 3"),
        ({"salary": 91_000}, "edge of the data", "salary 91,000 is above 99% of those with job nurse"),
        (
            {"salary": 45_000, "job": "none"},
            "edge of the data",
            "salary 45,000 is above 99% of those with job none",
        ),
        ({"savings": 7_000}, "large step", "savings moves by +6,000, to 7.0 times as much"),
        ({"savings": 22_000}, "large step", "savings moves by +21,000, to 22.0 times as much"),
    ],
)
def test_one_reason_each(answer, reason, words):
    told = judge(answer)
    assert told["reasons"].tolist() == [reason]
    assert told["words"].tolist() == [words]
    assert told.index.tolist() == [(0, 1)]


def test_plain_answers_are_not_listed():
    told = judge({"salary": 60_000}, {"loan": 3_000}, {"savings": 5_900}, {"job": "cook"}, {"education": "degree"}, {})
    assert told.empty
    assert list(told.columns) == ["reasons", "words"]
    assert told.index.names == ["id", "rank"]


def test_several_reasons_stand_in_their_order():
    told = judge({"salary": 200_000, "loan": 21_000, "defaulted": False})
    assert told["reasons"].tolist() == [f"past event or fact, {OPPOSITE}, edge of the data, large step"]
    assert "is above 99% of all rows and of those with job nurse" in told["words"].iloc[0]
    assert [reason for reason in REASONS if reason in told["reasons"].iloc[0]] == told["reasons"].iloc[0].split(", ")


def test_below_the_floor():
    told = judge({"salary": 50_000}, {"salary": 51_000}, plausibility=np.array([0.03, 0.05]), floor=0.05)
    assert told["words"].to_dict() == {(0, 1): "only 3% of real rows look as unusual or more so"}


@pytest.mark.parametrize(
    ("answer", "along", "is_listed"),
    [
        ({"salary": 50_000, "education": "college"}, ("education",), True),  # half of all levels; a quarter of a spread
        ({"salary": 80_000, "education": "college"}, ("education",), False),  # half, and more than half
        ({"salary": 50_000, "job": "cook"}, ("job",), True),
        ({"salary": 50_000, "job": "cook"}, (), False),
        ({"salary": 36_000, "loan": 10_000}, ("loan",), True),
    ],
)
def test_what_comes_along_is_larger_than_what_is_needed(answer, along, is_listed):
    told = judge(answer, along=along)
    assert [*told["reasons"]] == (["comes along"] if is_listed else [])


def test_unlike_the_others():
    usual = [{"salary": 50_000 + 10 * i} for i in range(150)]
    told = judge(*usual, {"education": "degree"}, {"salary": 75_000})
    assert told["reasons"].to_dict() == {(150, 1): "unlike the others", (151, 1): "unlike the others"}
    assert told["words"][(150, 1)] == "education changes, as in 1 of 152 answers"
    assert told["words"][(151, 1)].startswith("salary moves farther than in other answers, where 20,")
    assert judge(*usual[:40], {"education": "degree"}).empty  # of few answers nothing is told


def test_words_have_labels_units_and_formats():
    names = Names(labels={"salary": "pay"}, units={"salary": "EUR"}, formats={"job": {"none": "no job"}})
    told = judge({"salary": 45_000, "job": "none"}, names=names)
    assert told["words"].iloc[0] == "pay 45,000 EUR is above 99% of those with job no job"


def test_missing_values_have_no_steps():
    before = pd.DataFrame({"salary": [np.nan, 30_000.0], "job": ["nurse", None]})
    after = pd.DataFrame({"salary": [500_000.0, np.nan], "job": ["nurse", "cook"]})
    after.index = pd.MultiIndex.from_tuples([(0, 1), (1, 1)], names=["id", "rank"])
    changed = np.array([[True, False], [True, True]])
    assert find_suspicious(Answered(before, after, changed, None, None, None, Names()), USUAL).empty


def test_a_duration_may_grow_by_two_years():
    assert judge({"years_employed": 3}).empty
    assert judge({"years_employed": 0}).empty
