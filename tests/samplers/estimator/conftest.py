"""One thread, and tables with known conditionals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def grades():
    """Three levels given a number, three unordered jobs and three ordered grades."""
    rng = np.random.default_rng(1)
    n = 900
    x = rng.normal(size=n)
    job = rng.integers(0, 3, n)
    size = rng.integers(0, 3, n)
    latent = x + np.array([0.0, 2.0, -1.0])[job] + 0.5 * size + rng.logistic(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "job": np.array(["clerk", "cook", "pilot"])[job],
            "size": pd.Categorical(np.array(list("sml"))[size], ["s", "m", "l"], ordered=True),
            "y": pd.Categorical(np.array(["a", "b", "c"])[np.digitize(latent, [-0.5, 1.5])], list("abc")),
        }
    )


@pytest.fixture(scope="module")
def line():
    """y = 2 x + 3 [job = cook] + exponential noise."""
    rng = np.random.default_rng(2)
    n = 3000
    x = rng.uniform(0, 10, n)
    cook = rng.random(n) < 0.5
    noise = rng.exponential(1.0, n)
    return pd.DataFrame({"x": x, "job": np.where(cook, "cook", "clerk"), "y": 2 * x + 3 * cook + noise})
