"""Tables with a known distribution, and a chain fitted to one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import ChainModel
from tests.generators.problem import P_A, P_B, P_C, N


def draw_truth(n, seed):
    rng = np.random.default_rng(seed)
    a = rng.choice(3, n, p=P_A)
    b = (rng.random(n) > P_B[a, 0]).astype(int)
    c = (rng.random(n) > P_C[b, 0]).astype(int)
    return pd.DataFrame({"a": np.array(["x", "y", "z"])[a], "b": b.astype(bool), "c": c})


@pytest.fixture(scope="module")
def truth():
    return draw_truth(N, 0)


@pytest.fixture(scope="module")
def people():
    """A small mixed table with missing values and several dtypes."""
    rng = np.random.default_rng(1)
    n = 400
    age = rng.integers(18, 80, n).astype(np.int16)
    frame = pd.DataFrame(
        {
            "age": age,
            "sex": pd.Categorical(rng.choice(["f", "m"], n)),
            "born": pd.Timestamp("2000-01-01") - pd.to_timedelta(age.astype(int) * 365, unit="D"),
            "pay": np.where(rng.random(n) < 0.1, np.nan, 1000.0 * age + rng.normal(0, 5000, n)).astype(np.float32),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True),
            "job": rng.choice(["clerk", "cook", None], n),
            "owner": rng.random(n) < 0.5,
            "kids": pd.array(rng.integers(0, 4, n), dtype="Int64"),
        }
    )
    frame.loc[frame["age"] > 70, "kids"] = pd.NA
    return frame


@pytest.fixture(scope="module")
def chain(people):
    return ChainModel(fixed=["age", "sex"], random_state=1).fit(people)
