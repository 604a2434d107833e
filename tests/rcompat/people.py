"""A call of mcceR on simulated rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mcce import rcompat


def people(n: int = 300, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 70, n)
    return pd.DataFrame(
        {
            "age": age,
            "job": pd.Categorical(rng.choice(["clerk", "pilot", "cook"], n), categories=["pilot", "clerk", "cook"]),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True),
            "owns": rng.random(n) < 0.5,
            "town": rng.choice(["Oslo", "Bergen"], n),
            "income": np.round(rng.normal(30 + age / 2, 8), 1),
        }
    )


def rich(model: Any, frame: pd.DataFrame) -> pd.Series:
    return frame["income"] / 100


def explain(x_explain=None, x_train=None, predict_model=rich, **arguments) -> rcompat.MCCEResult:
    arguments = {
        "fixed_features": ["age"],
        "c_int": (0.6, 1),
        "fit_autoregressive_model": "rpart",
        "fit_seed": 1,
        "generate_seed": 2,
        "generate_K": 30,
        **arguments,
    }
    x_train = people().iloc[3:] if x_train is None else x_train
    x_explain = people().iloc[:3] if x_explain is None else x_explain
    return rcompat.explain_mcce(None, x_explain, x_train, predict_model, **arguments)
