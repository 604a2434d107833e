"""Results to look at: one of an explainer on a table of every kind of column, and one written by hand."""

from functools import lru_cache

import numpy as np
import pandas as pd

import mcce
from mcce import Counterfactuals


def people(n=240, seed=0):
    """A table with numbers, gaps, dates, levels with and without order, booleans, and names that are no identifiers."""
    rng = np.random.default_rng(seed)
    grade = pd.Categorical.from_codes(rng.integers(0, 3, n), ["low", "mid", "high"], ordered=True)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "salary": np.round(rng.lognormal(10, 0.5, n), -2),
            "savings": np.where(rng.random(n) < 0.2, np.nan, np.round(rng.lognormal(8, 1, n))),
            "home": pd.Series(rng.choice(["rent", "own", "<b>parents</b>"], n), dtype=object),
            "grade": grade,
            "member": rng.random(n) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D"),
            7: rng.normal(size=n),
            "half": 0.0,
        }
    ).assign(half=lambda rows: rows["salary"] / 2)


def score(rows):
    """A score from 0 to 1 that needs several columns."""
    z = rows["salary"] / 20_000 + rows["savings"].fillna(0) / 10_000 + (rows["home"] == "own") + rows["member"] * 1.0
    z = z + (rows["since"] < pd.Timestamp("2021-06-01")) - 3.5 + rows[7] / 2 + rows["grade"].cat.codes / 2
    return np.asarray(1 / (1 + np.exp(-z.to_numpy(dtype=float))))


@lru_cache(maxsize=1)
def explained():
    """Return the training table and the result for its first rows; the model is a function that cannot be pickled."""
    X = people()
    explainer = mcce.MCCE(
        lambda rows: score(rows),
        decision=(0.5, 1.0),
        fixed=["age"],
        derived={"half": "salary / 2"},
        random_state=1,
    ).fit(X)
    rows = X.head(40).copy()
    rows.loc[3, "home"] = "castle"  # an unknown level
    return X, rows, explainer.explain(rows, n_counterfactuals=2, n_samples=200)


def by_hand(names=("salary", "home"), below_floor=(False, False), codes=(), ids=("ann", "bob", "cy")):
    """Return two counterfactuals of the first row and one of the second, without an explainer."""
    salary, home = names
    index = pd.MultiIndex.from_tuples([(ids[0], 1), (ids[0], 2), (ids[1], 1)], names=["id", "rank"])
    factuals = pd.DataFrame({salary: [68_000, 41_500, 90_000], home: ["rent", "rent", "own"]}, index=list(ids))
    frame = pd.DataFrame({salary: [75_800, 72_000, 41_500], home: ["rent", "own", "own"]}, index=index)
    measures = pd.DataFrame(
        {
            "prediction": [0.0583, 0.0912, 0.04],
            "L0": [1, 2, 1],
            "gower": [0.05, 0.3, 0.25],
            "gower_sum": [0.1, 0.6, 0.5],
            "plausibility": [0.4, 0.02, 1.0],
            "below_floor": [*below_floor, False],
        },
        index=index,
    )
    shares = pd.DataFrame(
        {
            "row": [0, 1, 1, 2],
            "feature": pd.Series([salary, salary, home, home], dtype=object),
            "direction": ["up", "up", "other", "other"],
            "step": [0.2, 0.1, np.nan, np.nan],
            "share_from": [0.4, 0.4, 0.7, 0.7],
            "share_to": [0.6, 0.5, 0.3, 0.3],
        }
    )
    unexplained = pd.DataFrame(
        {"code": ["already"], "prediction": [0.01], "reason": ["it has the wanted decision"]}, index=[ids[2]]
    )
    return Counterfactuals(
        frame=frame,
        measures=measures,
        factuals=factuals,
        predictions=pd.Series([0.198, 0.12, 0.01], index=list(ids), name="prediction"),
        unexplained=unexplained,
        settings={"decision": "probability of class True below 0.1", "floor": 0.05},
        fixed=(),
        derived=(),
        kinds={salary: "numeric", home: "categorical"},
        shares=shares,
        distributions={},
    )
