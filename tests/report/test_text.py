"""Values, names and changes as text."""

import datetime
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.exceptions import InputError
from mcce.report.text import Words, fold, is_same, listed, shown_table, value_text

VALUES = [
    (5, "5"),
    (1999, "1999"),
    (72_000, "72,000"),
    (-1_234_567, "-1,234,567"),
    (np.int8(-3), "-3"),
    (True, "True"),
    (np.bool_(False), "False"),
    (0.1 + 0.2, "0.3"),
    (12_345.678, "12,346"),
    (0.0, "0"),
    (-0.0, "-0"),
    (1e-7, "1e-07"),
    (1e300, "1e+300"),
    (math.inf, "inf"),
    (Fraction(1, 3), "0.3333"),
    (None, "missing"),
    (math.nan, "missing"),
    (pd.NA, "missing"),
    (pd.NaT, "missing"),
    ("", "''"),
    ("  ", "'  '"),
    ("a b", "a b"),
    ("=1+1", "=1+1"),
    ("a\x00\u2028b", "a\\x00\\u2028b"),
    (pd.Timestamp("2024-05-01"), "2024-05-01"),
    (pd.Timestamp("2024-05-01 12:30"), "2024-05-01 12:30:00"),
    (datetime.date(2024, 5, 1), "2024-05-01"),
    (pd.Period("2024-05", "M"), "2024-05"),
    (("a", 1), "('a', 1)"),
]


@pytest.mark.parametrize(("value", "text"), VALUES, ids=[repr(value) for value, _ in VALUES])
def test_value_text(value, text):
    assert value_text(value) == text


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_different_numbers_are_written_differently(before, after):
    old, new = Words({}, {}).pair("x", before, after)
    assert (old == new) == is_same(before, after)


@given(st.text("ab1 _-/\u00e9", max_size=80), st.integers(3, 30), st.integers(1, 3))
def test_folded_texts_fit(text, width, lines):
    folded = fold(text, width, lines).split("\n")
    assert len(folded) <= lines
    assert all(len(line) <= width + 1 for line in folded)


def test_long_texts_keep_their_ending():
    assert fold("defaulted_last_year", 12) == "defaulted_\nlast_year"
    assert fold("a" * 30 + "1", 10, 1) == "aaaa…aaaa1"
    assert fold("short", 10) == "short"


def test_pairs_need_no_more_digits_than_they_differ_by():
    assert Words({}, {}).pair("x", 0.123456, 0.5) == ("0.1235", "0.5")
    assert Words({}, {}).pair("x", 0.123456, 0.123457) == ("0.123456", "0.123457")
    assert Words({}, {}).pair("x", 15672, 2445) == ("15,672", "2,445")  # one style in a sentence
    assert Words({}, {"x": "{:.0f}"}).pair("x", 1.2, 1.4) == ("1.2", "1.4")  # the format would hide the change
    assert Words({}, {"x": "{:.0f}"}).pair("x", None, 1.4) == ("missing", "1")


def test_listed():
    assert [listed(["a", "b", "c"][:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


def test_words_are_not_interpreted():
    words = Words.read({"x": "{0}"}, {"when": "{:%d.%m.%Y}"}, ["x", "when", 3])
    assert words.instead([("x", "a", "{1}")]) == "{0} {1} instead of a"
    assert words.text("when", pd.Timestamp("2024-05-01")) == "01.05.2024"
    assert words.label(3) == "3"
    with pytest.raises(InputError, match="labels names '3', which is no feature"):
        Words.read({"3": "three"}, None, [3])


def table(n_rows=2, n_features=30, width=math.inf):
    rng = np.random.default_rng(0)
    names = [f"feature_{j}" for j in range(n_features)]
    factuals = pd.DataFrame(rng.integers(0, 9, (n_rows, n_features)), columns=names)
    rows = factuals.set_index(pd.MultiIndex.from_product([range(n_rows), [1]], names=["id", "rank"]))
    is_changed = np.zeros(rows.shape, dtype=bool)
    is_changed[0, 3:25] = True
    is_changed[1, [20, 7]] = True
    measures = pd.DataFrame({"prediction": 0.5, "L0": 2}, rows.index)
    return shown_table(factuals, [0.1] * n_rows, rows, measures, is_changed, range(n_rows), width)


def test_a_wide_table_keeps_the_columns_that_change_most():
    shown, hidden = table()
    assert list(shown) == [*(f"feature_{j}" for j in range(3, 25)), "prediction", "L0"]
    assert hidden == []
    shown, hidden = table(width=70)
    assert {"feature_7", "feature_20"} <= set(shown)
    assert [*shown][-2:] == ["prediction", "L0"]
    assert len(shown.columns) - 2 + len(hidden) == 22
    assert max(map(len, shown.to_string().splitlines())) <= 70


def test_changed_cells_only():
    shown, _ = table()
    assert list(shown.index) == [("0", "factual"), ("0", "1"), ("1", "factual"), ("1", "1")]
    assert shown.loc[("1", "1"), "feature_3"] == ""
    assert shown.loc[("1", "1"), "feature_20"] != ""
    assert list(shown["prediction"]) == ["0.1", "0.5", "0.1", "0.5"]
