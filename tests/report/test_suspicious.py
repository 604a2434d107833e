"""Suspicious answers: each reason by hand, with answers that have it and answers that do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.plausibility.stop_reasons import Usual
from mcce.report.names import Names
from mcce.report.suspicious import REASONS, Answered, find_suspicious

USUAL = Usual(
    directions={"salary": 1, "loan": -1, "education": 1},
    spreads={
        **{"salary": 80_000.0, "loan": 40_000.0, "savings": 20_000.0, "debt": 60_000.0, "years_employed": 30.0},
        "grade": 20.0,
    },
    factors={"salary": (0.5, 4.0), "loan": (0.125, 9.0)},
    highs={"salary": 100_000.0, "loan": 50_000.0, "savings": 30_000.0, "debt": 60_000.0, "years_employed": 20.0},
    edges=(
        ("salary", None, None, 10_000.0, 150_000.0, False),
        ("loan", None, None, 1_000.0, 90_000.0, False),
        ("salary", "job", "none", 8_000.0, 20_000.0, True),
        ("salary", "job", "nurse", 20_000.0, 90_000.0, False),
    ),
    durations={"years_employed": 1.0},
    unchangeable={"defaulted": "a past event"},
)
EDUCATION = pd.CategoricalDtype(["school", "college", "degree"], ordered=True)
FACTUAL = {
    **{"salary": 30_000, "loan": 20_000, "savings": 1_000, "job": "nurse", "defaulted": True, "education": "school"},
    **{"years_employed": 1, "debt": 30_000, "grade": 1},
}


def judge(
    *answers: dict, factual=None, along=(), plausibility=None, floor=None, names=None, level="stop"
) -> pd.DataFrame:
    """Return the judgement of some answers to one factual, given by their changes."""
    own = {**FACTUAL, **(factual or {})}
    before = _frame([own] * len(answers))
    after = _frame([{**own, **each} for each in answers])
    changed = np.column_stack([(before[name].astype(object) != after[name].astype(object)) for name in before])
    changed &= ~(before.isna() & after.isna()).to_numpy()
    after.index = pd.MultiIndex.from_arrays([np.arange(len(answers)), np.ones(len(answers), int)], names=["id", "rank"])
    cells = np.array([[name in along for name in before]] * len(answers))
    return find_suspicious(
        Answered(before, after, changed, cells & changed, plausibility, floor, names or Names(years=())), USUAL, level
    )


def _frame(rows) -> pd.DataFrame:
    return pd.DataFrame(rows).astype({"education": EDUCATION})


OPPOSITE = "opposite to the usual direction"


@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        ({"defaulted": False}, "past event or fact", "defaulted changes, although it looks like a past event"),
        (
            {"loan": 25_000},
            OPPOSITE,
            "loan rises, although a lower value usually helps refused cases",
        ),
        (
            {"salary": 25_000},
            OPPOSITE,
            "salary falls, although a higher value usually helps refused cases",
        ),
        ({"years_employed": 4}, "duration", "years_employed grows by 3"),
        ({"job": "none"}, "contradicts a level", "salary 30,000 is above 99% of cases with job none"),
        ({"job": "Other"}, "unspecific level", "job changes to Other, which is not a specific value"),
        ({"job": "with parents"}, "worse situation", "job changes to with parents, which is usually a worse situation"),
        (
            {"salary": 160_000},
            "far step, far from the decision",
            "salary rises from 30,000 to 160,000; among similar accepted cases it is rarely more than 4 times as high; "
            "salary rises from 30,000 to 160,000: the case is far from the decision",
        ),
        (
            {"salary": 80_000},
            "far from the decision",
            "salary rises from 30,000 to 80,000: the case is far from the decision",
        ),
        (
            {"loan": 2_000},
            "far step, far from the decision",
            "loan falls from 20,000 to 2,000; among similar accepted cases it is rarely less than 12.5% of 20,000; "
            "loan falls from 20,000 to 2,000: the case is far from the decision",
        ),
        ({"debt": 31_000}, OPPOSITE, "debt rises, which is usually worse"),
        ({"savings": 900}, OPPOSITE, "savings falls, which is usually worse"),
        ({"savings": 21_500}, "unexplained money", "savings changes by 20,500, which is more than loan"),
        ({"debt": 9_500}, "unexplained money", "debt changes by -20,500, which is more than loan"),
        (
            {"debt": 19_000, "savings": 11_000},
            "unexplained money",
            "savings rises from 1,000 to 11,000 and debt falls from 30,000 to 19,000, together by more than loan",
        ),
        (
            {"salary": 70_000, "loan": 9_000},
            "far from the decision",
            "salary rises from 30,000 to 70,000 and loan falls from 20,000 to 9,000: the case is far from the decision",
        ),
        ({"debt": 20_000, "loan": 5_000}, "unexplained money", "debt changes by -10,000, which is more than loan"),
    ],
)
def test_each_stop_reason(answer, reason, words):
    listed = judge(answer)
    assert listed["severity"].tolist() == ["stop"]
    assert listed["reasons"].tolist() == [reason]
    assert listed["words"].tolist() == [words]
    assert listed.index.tolist() == [(0, 1)]


@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        ({"salary": 91_000}, "edge of the data", "salary 91,000 is above 99% of cases with job nurse"),
        ({"savings": 7_000}, "large step", "savings changes by +6,000, to 7.0 times its value"),
        ({"savings": 20_900}, "large step", "savings changes by +19,900, to 20.9 times its value"),
        ({"grade": 23}, "large step", "grade changes by +22, more than the range of nine in ten rows"),
    ],
)
def test_notes_are_listed_on_request(answer, reason, words):
    factual = {"salary": 40_000}
    assert judge(answer, factual=factual).empty
    listed = judge(answer, factual=factual, level="all")
    assert listed["severity"].tolist() == ["note"]
    assert listed["reasons"].tolist() == [reason]
    assert listed["words"].tolist() == [words]


def test_income_of_an_unemployed_person():
    listed = judge({"salary": 31_000}, factual={"job": "unemployed"})
    assert listed["reasons"].tolist() == ["income without work"]
    assert listed["words"].tolist() == ["salary rises from 30,000 to 31,000 for an unemployed person"]
    assert judge({"salary": 31_000, "job": "nurse"}, factual={"job": "unemployed"}).empty


def test_number_below_a_high_level():
    edges = (("salary", "job", "director", 90_000.0, np.inf, True),)
    before, after = _frame([FACTUAL]), _frame([{**FACTUAL, "job": "director"}])
    after.index = pd.MultiIndex.from_tuples([(0, 1)], names=["id", "rank"])
    changed = (before.to_numpy() != after.to_numpy()).astype(bool)
    listed = find_suspicious(Answered(before, after, changed, None, None, None, Names()), replace(USUAL, edges=edges))
    assert listed["words"].tolist() == ["salary 30,000 is below 99% of cases with job director"]


def test_code_is_not_a_multiple():
    assert judge({"grade": 13}, level="all").empty
    assert judge({"years_employed": 13}, level="all")["words"].str.contains("13.0 times its value").all()


def test_unknown_severities_raise():
    with pytest.raises(InputError, match=r"there is no level 'al'.*did you mean 'all'"):
        judge({"salary": 91_000}, level="al")


@pytest.mark.parametrize(
    ("factual", "answer", "words"),
    [
        ({"education": "degree"}, {"education": "college"}, "education falls"),
        ({"years_employed": 5}, {"years_employed": 4}, "years_employed falls"),
    ],
)
def test_education_and_durations_do_not_decrease(factual, answer, words):
    listed = judge(answer, factual=factual)
    assert listed["reasons"].tolist() == ["cannot fall"]
    assert listed["words"].tolist() == [words]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (0, 101_000, ["salary rises from 0 to 101,000"]),
        (np.nan, 101_000, ["salary rises from missing to 101,000"]),
        (0, 99_000, []),
    ],
)
def test_change_from_zero_to_a_large_value(old, new, words):
    listed = judge({"salary": new}, factual={"salary": old})
    assert listed["words"].tolist() == words
    assert listed["reasons"].tolist() == ["large rise from zero"] * len(words)


def test_change_from_a_small_to_a_large_value_is_a_far_step():
    assert judge({"salary": 101_000}, factual={"salary": 1})["reasons"].tolist() == ["far step, far from the decision"]


@pytest.mark.parametrize(("savings", "n"), [("EUR", 1), ("NOK", 0), (None, 0)])
def test_money_is_compared_in_the_same_currency(savings, n):
    units = {"loan": "EUR", **({"savings": savings} if savings else {})}
    assert len(judge({"savings": 22_000}, names=Names(units=units, years=()))) == n


def test_feature_that_should_be_fixed_is_one_line():
    erased = [{"defaulted": False}] * 3
    listed = judge({"salary": 40_000}, *erased, {"defaulted": False, "loan": 25_000}, {"years_employed": 9})
    assert listed["reasons"].to_dict() == {
        (1, 1): "past event or fact",
        (4, 1): f"past event or fact, {OPPOSITE}",
        (5, 1): "duration",
    }
    assert listed["words"][(1, 1)] == (
        "defaulted changes, although it looks like a past event (and in 3 other answers: fix or limit the feature)"
    )
    each = judge({"salary": 40_000}, *erased, {"defaulted": False, "loan": 25_000}, level="all")
    assert each.index.get_level_values("id").tolist() == [1, 2, 3, 4]
    assert (each["severity"] == "stop").all()


def test_fact_has_no_second_reason():
    usual = replace(USUAL, unchangeable={"salary": "a past event"})
    before, after = _frame([FACTUAL]), _frame([{**FACTUAL, "salary": 20_000}])
    after.index = pd.MultiIndex.from_tuples([(0, 1)], names=["id", "rank"])
    changed = (before.to_numpy() != after.to_numpy()).astype(bool)
    listed = find_suspicious(Answered(before, after, changed, None, None, None, Names()), usual)
    assert listed["reasons"].tolist() == ["past event or fact"]


def test_negative_code_is_not_a_duration():
    assert judge({"years_employed": 9}, factual={"years_employed": -7}).empty


def test_ordinary_answers_are_not_listed():
    listed = judge(
        *({"salary": 60_000}, {"loan": 5_000}, {"savings": 5_900}, {"job": "cook"}, {"education": "degree"}, {}),
        *({"debt": 11_000}, {"grade": 2}, {"savings": np.nan}),
        level="all",
    )
    assert listed.empty
    assert list(listed.columns) == ["severity", "reasons", "words"]
    assert listed.index.names == ["id", "rank"]


def test_several_reasons_keep_their_order():
    listed = judge({"salary": 200_000, "loan": 21_000, "defaulted": False}, level="all")
    assert listed["reasons"].tolist() == [
        f"past event or fact, {OPPOSITE}, far step, far from the decision, edge of the data, large step"
    ]
    assert "is above 99% of all cases and of cases with job nurse" in listed["words"].iloc[0]
    assert [reason for reason in REASONS if reason in listed["reasons"].iloc[0]] == listed["reasons"].iloc[0].split(
        ", "
    )


def test_below_the_floor():
    listed = judge({"salary": 50_000}, {"salary": 51_000}, plausibility=np.array([0.03, 0.05]), floor=0.05)
    assert listed["words"].to_dict() == {(0, 1): "only 3% of real rows are at least as unusual"}


@pytest.mark.parametrize(
    ("answer", "along", "is_listed"),
    [
        ({"salary": 50_000, "education": "college"}, ("education",), True),  # half of all levels; a quarter of a spread
        ({"salary": 74_000, "education": "college"}, ("education",), False),  # half, and more than half
        ({"salary": 50_000, "job": "cook"}, ("job",), True),
        ({"salary": 50_000, "job": "cook"}, (), False),
        ({"salary": 36_000, "loan": 10_000}, ("loan",), True),
    ],
)
def test_accompanying_change_exceeds_the_needed_change(answer, along, is_listed):
    listed = judge(answer, along=along, level="all")
    assert [*listed["reasons"]] == (["comes along"] if is_listed else [])


def test_answer_unlike_the_others():
    usual = [{"salary": 50_000 + 10 * i} for i in range(150)]
    listed = judge(*usual, {"education": "degree"}, {"salary": 75_000}, level="all")
    assert listed["reasons"].to_dict() == {(150, 1): "unlike the others", (151, 1): "unlike the others"}
    assert listed["words"][(150, 1)] == "education changes, as in 1 of 152 answers"
    assert listed["words"][(151, 1)].startswith("salary changes by more than in the other answers, where a step of 20,")
    assert judge(*usual[:40], {"education": "degree"}, level="all").empty  # few answers are not compared


def test_texts_use_labels_units_and_formats():
    names = Names(labels={"salary": "pay"}, units={"salary": "EUR"}, formats={"job": {"none": "no job"}})
    listed = judge({"salary": 45_000, "job": "none"}, names=names)
    assert listed["words"].iloc[0] == "pay 45,000 EUR is above 99% of cases with job no job"


def test_missing_values_have_no_steps():
    before = pd.DataFrame({"salary": [np.nan, 30_000.0], "job": ["nurse", None]})
    after = pd.DataFrame({"salary": [90_000.0, np.nan], "job": ["nurse", "cook"]})
    after.index = pd.MultiIndex.from_tuples([(0, 1), (1, 1)], names=["id", "rank"])
    changed = np.array([[True, False], [True, True]])
    assert find_suspicious(Answered(before, after, changed, None, None, None, Names()), USUAL, "all").empty


def test_duration_may_grow_by_two_years():
    assert judge({"years_employed": 3}).empty


def test_a_column_of_levels_is_read_once_for_all_edges(monkeypatch):
    rows = 3
    before = pd.DataFrame({"salary": np.zeros(rows), "job": pd.Categorical(["a", "b", None])})
    after = before.assign(salary=9.0)
    changed = np.column_stack([np.ones(rows, dtype=bool), np.zeros(rows, dtype=bool)])
    edges = tuple(("salary", "job", level, -1.0, 1.0, False) for level in ["a", "b"] * 20)
    answers = Answered(before, after, changed, None, None, None, Names(years=()))
    reads = []
    astype = pd.Series.astype
    monkeypatch.setattr(pd.Series, "astype", lambda *args, **kwargs: reads.append(1) or astype(*args, **kwargs))
    found = find_suspicious(answers, Usual(spreads={"salary": 50.0}, edges=edges), "all")
    assert found["words"].tolist() == [
        f"salary 9 is above 99% of cases with job {x} and of cases with job {x}" for x in "ab"
    ]
    assert len(reads) < 20
