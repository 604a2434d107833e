"""Ranges in words, as a person reads them."""

import numpy as np
import pandas as pd
import pytest
from mcce.report.ranges import RangeNote, ToldRange

from mcce.report.languages import read_texts
from mcce.report.names import Names

NAMES = Names(
    units={"pay": "EUR", "usd": "$"}, formats={"rate": "0.0 %", "day": "%d.%m.%Y", "paid": {True: "yes", False: "no"}}
)
QUARTER = pd.Timestamp("2020-01-01"), pd.Timestamp("2020-03-31")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (ToldRange(0, "pay", np.int64(52_000), np.int64(60_000)), "between 52,000 and 60,000 EUR"),
        (ToldRange(0, "pay", 52_000.0, 60_000.0, missing=True), "between 52,000 and 60,000 EUR or missing"),
        (ToldRange(0, "usd", 500, 900), "between $500 and $900"),
        (ToldRange(0, "years", 2, 3), "2 or 3"),
        (ToldRange(0, "rate", 0.02, 0.035), "between 2.0 % and 3.5 %"),
        (ToldRange(0, "day", *QUARTER), "between 01.01.2020 and 31.03.2020"),
        (ToldRange(0, "when", *QUARTER), "between 2020-01-01 and 2020-03-31"),
        (ToldRange(0, "job", levels=("nurse", "clerk", "cook")), "nurse, clerk or cook"),
        (ToldRange(0, "job", levels=tuple("abcdefg"), missing=True), "a, b, c, d, one of 3 others or missing"),
        (ToldRange(0, "paid", levels=(True, False)), "yes or no"),
        (ToldRange(0, "grade", "low", "middle", ("low", "middle")), "low or middle"),
        (ToldRange(0, "grade", "low", "top", ("low", "middle", "high", "top")), "between low and top"),
        (ToldRange(0, "pay", 700, 700, missing=True), "700 EUR or missing"),
    ],
)  # fmt: skip
def test_a_range_in_words(told, words):
    assert told.text(NAMES) == words


def test_what_is_said_after_the_changes():
    pay, age = ("pay", "52,000 EUR"), ("age", "between 34 and 39")
    assert RangeNote(5, (pay,), (), 1.0).sentence() == (
        "At least 5 training people are within this range. All values tried within have the wanted decision; the "
        "prediction is that for pay 52,000 EUR."
    )
    assert RangeNote(5, (pay,), (age,), 0.826).sentence() == (
        "At least 5 training people are within this range, with age between 34 and 39, which does not change. Not all "
        "values within have the wanted decision: 83% of those tried have it, among them pay 52,000 EUR, which the "
        "prediction is for."
    )
    assert RangeNote(5, (), (age,), 1.0).sentence() == (
        "At least 5 training people share it, with age between 34 and 39, which does not change."
    )
    assert RangeNote(5, (pay, ("rent", "900 EUR")), (), 0.9999).for_person(read_texts()) == (
        "At least 5 known people are within these ranges, so that they point to no single one of them. Not all "
        "values within would have led to it: 99 per cent of those that were tried would, such as pay 52,000 EUR and "
        "rent 900 EUR."
    )
    assert RangeNote(5, (pay,), (age,), 1.0).for_person(read_texts()) == (
        "At least 5 known people are within this range, with age between 34 and 39. All values within that were tried "
        "would have led to it, such as pay 52,000 EUR."
    )
    assert RangeNote(5, (), (age,), 1.0).for_person(read_texts()) == ""
