"""Formats of values by example, by codes and by words."""

from __future__ import annotations

import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.report.names import read_pattern


@pytest.mark.parametrize(
    ("said", "value", "text"),
    [
        ("0", 73_199.5, "73200"),
        ("0.00", 0.5, "0.50"),
        ("0.000", 1234.5, "1234.500"),  # three decimals, not thousands
        ("0,000", 1_234_567, "1,234,567"),
        ("0,000", 12, "12"),
        ("0,000.0", 1234.56, "1,234.6"),
        ("0.000,00", 1_234_567.891, "1.234.567,89"),
        ("0,00", 1234.5, "1234,50"),
        ("0 000", 1_234_567, "1 234 567"),
        ("0'000.00", 1234.5, "1'234.50"),
        ("0 %", 0.1, "10 %"),
        ("0%", 0.1, "10%"),
        ("0.0 %", 0.09949, "9.9 %"),
        ("0,0 %", 0.0994, "9,9 %"),
        ("0", -0.2, "0"),  # no negative zero
        ("0,000", -1234.0, "-1,234"),
    ],
)
def test_number_format_follows_its_example(said, value, text):
    assert read_pattern(said, "x").write(value) == text


def test_dates_use_strftime_codes():
    assert read_pattern("%d.%m.%Y", "x").write(pd.Timestamp("2024-05-01")) == "01.05.2024"
    assert read_pattern("%B %Y", "x").write(pd.Period("2024-05", "M")) == "May 2024"


def test_words_for_values():
    words = read_pattern({True: "yes", None: "not told"}, "x")
    assert [words.find(value) for value in (True, 1, False, float("nan"), "yes")] == [
        "yes", "yes", None, "not told", None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (",.2f", r"formats\['x'\] is ',.2f'; write the number zero as it should look"),
        ("1,000", "write the number zero"),
        ("0,000,0", "same separator for thousands and decimals"),
        ("", "write the number zero"),
        ("0." + "0" * 101, r"is '0\.0+', with 101 decimals; give at most 100"),
        ("%d" + "." * 999, r"is '%d.*', of 1,001 characters; give at most 1,000"),
        (2, "a text such as '0'"),
        ({"a": 1}, r"has 1 for 'a'; give a text"),
        ({"a": "same", "b": "same"}, "has the same word for 'a', 'b', 'same'"),
    ],
)
def test_invalid_formats_raise(said, message):
    with pytest.raises(InputError, match=message):
        read_pattern(said, "x")


def test_invalid_strftime_format_raises():
    with pytest.raises(InputError, match=r"formats\['day'\] is .*, which strftime cannot write \(.*'%d.%m.%Y'"):
        read_pattern("%d.%m.\ud800", "day")
