"""Effects of constraints, in words."""

import numpy as np
import pandas as pd
import pytest

from mcce.report.words import constraint_lines, constraint_words


@pytest.mark.parametrize(
    ("breaks", "words"),
    [
        (0.0, "none"),
        (0.001, "under 1%"),
        (0.126, "13%"),
        (0.994, "99%"),
        (0.9999, "over 99%"),
        (1.0, "all"),
        (np.nan, "an unknown share"),
    ],
)
def test_share_is_never_rounded_to_zero_or_one(breaks, words):
    table = pd.DataFrame({"breaks": [breaks], "tried": [12_000], "passed": [11_999]}, index=["rent >= 1"])
    assert constraint_words(table) == [("rent >= 1", words, "11,999 of 12,000")]


def test_lines_state_the_share_of_allowed_draws():
    table = pd.DataFrame({"breaks": [0.5, 0.0], "tried": [20, 0], "passed": [20, 0]}, index=["a >= 1", "b >= 1"])
    assert constraint_lines(table) == [
        "a >= 1: violated by 50% of the unconstrained draws; draws with an allowed value: all of 20",
        "b >= 1: violated by none of the unconstrained draws; draws with an allowed value: none was tested",
    ]
    assert constraint_lines(None) == []
