"""Fits of the donor samplers, and the density of one row."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from mcce import CartSampler, ForestSampler, MarginalSampler
from mcce.table import Schema

CART = CartSampler(min_leaf=40)


FOREST = ForestSampler(n_trees=4, min_leaf=40)


SAMPLERS = [CART, FOREST, MarginalSampler()]


IDS = ["cart", "forest", "marginal"]


def fit(frame, sampler, target="y", **kinds):
    """Return the fitted sampler of `target`, the table of the other columns, and the target's encoded values."""
    frame = frame[[name for name in frame if name != target] + [target]]
    table = Schema.from_data(frame, kinds).encode(frame)
    last = len(table.features) - 1
    fitted = sampler.clone().fit(table.first(last), table.column(last))
    return fitted, table.first(last), table.column(last).values


def silverman(values):
    iqr = stats.iqr(values) / 1.34
    return 0.9 * min(np.std(values, ddof=1), iqr) * len(values) ** -0.2


def make_groups(n, seed, *, zeros=0.0, missing=0.0):
    """Draw y from a normal distribution with mean 10 in group m and 0 in group f; some zeros and missing values."""
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 2, n)
    y = rng.normal(10.0 * g, 1.0 + g)
    y = np.where(rng.random(n) < zeros, 0.0, y)
    return pd.DataFrame({"g": np.array(["f", "m"])[g], "y": np.where(rng.random(n) < missing, np.nan, y)})
