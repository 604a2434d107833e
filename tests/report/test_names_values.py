"""Values as text for readers."""

import numpy as np
import pandas as pd
import pytest

from mcce.report.names import fold, is_same, value_pair, value_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (72_000, "72,000"),
        (np.int64(1_234_567), "1,234,567"),
        (1990, "1990"),
        (72_000.0, "72,000"),
        (0.043123, "0.04312"),
        (0.1, "0.1"),
        (-3.0, "-3"),
        (0.0, "0"),
        (1e-7, "1e-07"),
        (float("inf"), "inf"),
        (True, "True"),
        (np.False_, "False"),
        (None, "missing"),
        (pd.NA, "missing"),
        (pd.NaT, "missing"),
        ("rent", "rent"),
        ("", '""'),
        (pd.Timestamp("2024-05-01"), "2024-05-01"),
        (pd.Timestamp("2024-05-01 10:00", tz="UTC"), "2024-05-01 10:00:00"),
        (pd.Timestamp(np.datetime64("20000-01-01", "s")), "20000-01-01"),
        (pd.Timestamp(np.datetime64("20000-01-01T05:30", "s")), "20000-01-01 05:30:00"),
        (pd.Timestamp(np.datetime64("20000-01-01", "s")).tz_localize("UTC"), "20000-01-01"),
        (pd.Timestamp(np.datetime64("-0044-03-15", "s")), "-044-03-15"),
        (" ", '" "'),
        ("\u200b", '"\\u200b"'),
        ("\ufeff", '"\\ufeff"'),
        (" \t", '" \\t"'),
        ("\u200bcook", "\u200bcook"),
    ],
)
def test_value_text(value, text):
    assert value_text(value) == text


def test_value_pair_distinguishes_close_numbers():
    assert value_pair(0.123456, 0.123457) == ("0.123456", "0.123457")
    assert value_pair(50_000.25, 50_000.5) == ("50,000.2", "50,000.5")
    assert value_pair(1 / 3, 1 / 3) == ("0.3333", "0.3333")


def test_fold_keeps_the_end_of_a_long_name():
    assert fold("short", 10) == "short"
    assert fold("one_two_three", 8) == "one_two_\nthree"
    folded = fold("months_since_most_recent_inquiry_17", 12)
    assert folded.count("\n") == 1
    assert folded.endswith("iry_17")
    assert max(map(len, folded.split("\n"))) <= 13


def test_is_same():
    assert is_same(None, np.nan)
    assert not is_same(None, 1)
    assert is_same(1, 1.0)
