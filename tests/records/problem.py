"""A small explainer over columns of several kinds, and records of its answers."""

from functools import cache

import numpy as np
import pandas as pd

import mcce

N = 120


@cache
def table():
    """Return numbers, levels, dates, booleans and missing values."""
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 70, N),
            "income": rng.normal(50, 15, N).round(3),
            "job": pd.Categorical(rng.choice(["clerk", "pilot", "Bäcker"], N)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), unit="D"),
            "owns": rng.random(N) < 0.4,
            "debt": np.where(rng.random(N) < 0.2, np.nan, rng.integers(0, 40, N)),
        }
    )


def score(rows):
    return 1 / (1 + np.exp(-(rows["income"] - 55) / 10 - 0.4 * rows["owns"].astype(float)))


def other_score(rows):
    return score(rows) + 0.01


def make_explainer(model=score, **settings):
    return mcce.MCCE(model, fixed=["age"], **{"random_state": 1, **settings}).fit(table(), relations=())


explainer = cache(make_explainer)


@cache
def found():
    """Return a result with answers, accepted rows and a text id that is not a valid file name."""
    rows = table().head(8).set_axis(["a", "../b", "c/d", "é" * 300, "x y", "6", "7", "8"])
    return explainer().explain(rows, n_samples=50, n_counterfactuals=2, constraints=["debt <= was(debt) + 30"])
