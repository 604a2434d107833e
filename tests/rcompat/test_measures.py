"""mcceR's measures for any candidates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.rcompat import l1_raw, l2_raw

GRADES = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)


@pytest.fixture
def candidates():
    return pd.DataFrame(
        {
            "age": [30.0, 33.0, np.nan],
            "grade": pd.Series(["low", "high", "mid"], dtype=GRADES),
            "job": pd.Categorical(["clerk", "cook", "clerk"]),
            "owns": [True, False, True],
        }
    )


def test_levels_count_one_and_ordered_levels_their_steps(candidates):
    factual = candidates.iloc[0]
    assert l1_raw(candidates, factual).tolist() == [0.0, 3 + 2 + 1 + 1, 1 + 1]
    assert l2_raw(candidates, factual) == pytest.approx(np.sqrt([0.0, 9 + 4 + 1 + 1, 1 + 1]))


def test_missing_against_a_value_is_one_and_against_missing_none(candidates):
    candidates.loc[1, ["grade", "job"]] = np.nan
    assert l1_raw(candidates, candidates.iloc[1]).tolist() == [3 + 1 + 1 + 1, 0.0, 1 + 1 + 1 + 1]
    assert l1_raw(candidates, candidates.iloc[2]).tolist() == [1 + 1, 1 + 1 + 1 + 1, 0.0]
