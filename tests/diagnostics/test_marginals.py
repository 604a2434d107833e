"""Distances of columns compared with scipy and hand calculation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp, wasserstein_distance

from mcce.diagnostics import marginal_distances
from tests.marks import examples


@examples(7)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 60), m=st.integers(1, 60))
def test_numeric_distances_match_scipy(seed, n, m):
    rng = np.random.default_rng(seed)
    real, generated = rng.normal(size=n).round(1), rng.normal(0.3, 2, m).round(1)
    got = marginal_distances(pd.DataFrame({"x": real}), pd.DataFrame({"x": generated})).iloc[0]
    assert got["ks"] == pytest.approx(ks_2samp(real, generated).statistic)
    if real.std() > 0:
        assert got["wasserstein"] == pytest.approx(wasserstein_distance(real, generated) / real.std())
    assert got["distance"] == got["ks"]


def test_level_distances_match_hand_calculation():
    real = pd.DataFrame({"job": ["a"] * 5 + ["b"] * 3 + [None] * 2})
    generated = pd.DataFrame({"job": ["a"] * 2 + ["c"] * 3})
    got = marginal_distances(real, generated).iloc[0]
    p, q = np.array([0.5, 0.3, 0, 0.2]), np.array([0.4, 0, 0.6, 0])
    assert got["total_variation"] == pytest.approx(0.6)
    assert got["hellinger"] == pytest.approx(np.sqrt(1 - np.sqrt(p * q).sum()))
    assert np.isnan(got["ks"])
    assert (got["missing_real"], got["missing_generated"], got["kind"]) == (0.2, 0.0, "categorical")


def test_every_kind_in_data_order():
    n = 40
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "flag": rng.random(n) < 0.5,
            "size": pd.Categorical(rng.choice(["S", "M"], n), ["S", "M", "L"], ordered=True),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, n), "D"),
            "visits": pd.array(rng.poisson(2, n), dtype="Int64"),
        }
    )
    got = marginal_distances(frame, frame)
    assert list(got.index) == ["flag", "size", "since", "visits"]
    assert (got["distance"] == 0).all()
    assert got["ks"].notna().to_list() == [False, True, True, True]
    later = frame.assign(since=frame["since"] + pd.Timedelta(days=9))
    days = (frame["since"] - frame["since"].min()).dt.days
    assert marginal_distances(frame, later).loc["since", "wasserstein"] == pytest.approx(9 / days.std(ddof=0))


def test_constant_and_missing_columns():
    real = pd.DataFrame({"same": 1.0, "gone": np.nan, "half": [1.0, np.nan]})
    moved = pd.DataFrame({"same": 2.0, "gone": [1.0, 2.0], "half": [np.nan, np.nan]})
    assert (marginal_distances(real, real)[["ks", "wasserstein"]] == 0).all(axis=None)
    got = marginal_distances(real, moved)
    assert got["ks"].to_list() == [1.0, 1.0, 1.0]
    assert np.isinf(got.loc["same", "wasserstein"])
    assert got["missing_generated"].to_list() == [0.0, 0.0, 1.0]
