"""Tables for trees and for forests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def noisy():
    rng = np.random.default_rng(7)
    x = rng.normal(size=1000)
    return pd.DataFrame({"x": x, "z": rng.normal(size=1000), "y": np.sign(x) * 3 + rng.normal(size=1000)})


@pytest.fixture(scope="module")
def smooth():
    """Continuous givens, so that no two rows tie."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 4))
    y = 2 * x[:, 0] - x[:, 1] + rng.normal(size=400)
    return pd.DataFrame({**{f"x{j}": x[:, j] for j in range(4)}, "y": y})
