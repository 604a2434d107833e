"""A table and its classes for fitting models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(1)
    return pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80)})


@pytest.fixture(scope="module")
def y(X):
    return (X["a"] + np.random.default_rng(2).normal(size=80) > 0).astype(int).to_numpy()


@pytest.fixture(scope="module")
def y3():
    return np.random.default_rng(3).integers(0, 3, 80)
