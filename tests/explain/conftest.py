"""A small table with discrete fixed features, some missing, and a chain conditioned on a decision."""

import numpy as np
import pandas as pd
import pytest

import mcce


@pytest.fixture(scope="session")
def chain():
    rng = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame(
        {
            "group": rng.choice(list("abc"), n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(2, 5, n) * 10.0),
            "x": rng.normal(size=n),
            "y": rng.integers(0, 5, n).astype(float),
        }
    )
    wanted = (X["x"] > 0) & (X["group"] != "c")
    return mcce.ChainModel(fixed=["group", "age"], random_state=1).fit(X, decision=wanted.to_numpy()), X
