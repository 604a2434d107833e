"""Small tables and models of the tests of explanations."""

import numpy as np
import pandas as pd


def people(n=400, seed=3):
    """Return a table with numbers, levels, ordered levels, missing values, dates and a sum of two columns."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 70, n)
    salary = np.round(np.exp(rng.normal(3.4, 0.4, n)) + 0.3 * (age - 40).clip(0), 1)
    bonus = np.round(salary * rng.beta(1, 6, n), 1)
    return pd.DataFrame(
        {
            "age": age,
            "salary": salary,
            "bonus": bonus,
            "total": salary + bonus,
            "savings": np.where(rng.random(n) < 0.3, 0.0, np.round(np.exp(rng.normal(2, 1, n)), 1)),
            "job": rng.choice(["clerk", "manager", "nurse"], n, p=[0.5, 0.2, 0.3]),
            "school": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True),
            "rent": pd.Series(np.round(rng.gamma(4, 3, n), 1)).mask(rng.random(n) < 0.1),
            "since": pd.Timestamp("2015-05-04") + pd.to_timedelta(rng.integers(0, 2000, n), unit="D"),
        }
    )


def score(rows, names=None):
    """Return the probability of a logistic model; `names` maps the columns of `people` to those of the rows."""
    column = (lambda name: rows[name]) if names is None else (lambda name: rows[names[name]])
    eta = -2.4 + 0.05 * column("total") + 0.02 * column("savings") - 0.03 * column("rent").fillna(10.0)
    eta = eta + column("job").astype(str).map({"clerk": -0.3, "manager": 0.6, "nurse": 0.0}).astype(float)
    return 1.0 / (1.0 + np.exp(-(eta + 0.3 * column("school").cat.codes).to_numpy(dtype=float)))


def refused(X, n=12, model=score):
    return X[model(X) < 0.5].head(n)
