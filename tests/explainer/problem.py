"""The table, the models and the comparisons shared by the tests of the explainer."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
from pandas.testing import assert_frame_equal, assert_series_equal
from sklearn.ensemble import HistGradientBoostingClassifier

from mcce import MCCE, Interval

SIZES = ["small", "medium", "large"]


def mixed_table(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """Every kind of column, with missing values and with few distinct values in the columns fixed below."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "age": rng.integers(3, 7, n) * 10,
            "sex": pd.Categorical(rng.choice(["female", "male"], n)),
            "income": np.round(30 + 10 * level + rng.normal(size=n), 1),
            "debt": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 20, n) / 2),
            "job": rng.choice(["clerk", "pilot", "nurse"], n),
            "size": pd.Categorical(np.array(SIZES)[rng.integers(0, 3, n)], categories=SIZES, ordered=True),
            "owner": rng.random(n) < 0.4,
            "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D"),
            "children": pd.array(rng.integers(0, 4, n), dtype="Int64"),
            "club": pd.Categorical(np.where(rng.random(n) < 0.1, None, rng.choice(["red", "blue"], n))),
        },
        index=[f"p{i}" for i in range(n)],
    )
    frame.loc[rng.random(n) < 0.1, "children"] = pd.NA
    return frame


TABLE = mixed_table()
FIXED = ["age", "sex"]
SMALL = pd.DataFrame({"group": list("aaaabbbb") * 10, "x": np.arange(80.0), "y": np.arange(80.0) % 7})


def score(frame: pd.DataFrame) -> np.ndarray:
    """Return a probability from most columns; the answer for a row does not depend on other rows."""
    z = (
        0.15 * (frame["income"] - 34)
        - 0.3 * frame["debt"].fillna(4)
        + 0.8 * frame["owner"]
        + 0.5 * frame["size"].cat.codes
        + 0.5 * (frame["job"] == "pilot")
        - 0.2 * frame["children"].fillna(0).astype(float)
        + 0.002 * (frame["since"] - pd.Timestamp("2020-07-01")).dt.days
        + 0.02 * (frame["age"] - 40)
    )
    return (1 / (1 + np.exp(-z))).to_numpy(dtype=float)


def label(frame: pd.DataFrame) -> np.ndarray:
    return np.where(score(frame) > 0.6, "granted", "denied")


def has_score(frame: pd.DataFrame) -> np.ndarray:
    return score(frame) > 0.4


@functools.cache
def boosted_trees() -> HistGradientBoostingClassifier:
    trees = HistGradientBoostingClassifier(max_iter=15, random_state=0, categorical_features="from_dtype")
    return trees.fit(TABLE[["age", "income", "debt", "club", "sex"]], score(TABLE) > 0.5)


def boosted(frame: pd.DataFrame) -> np.ndarray:
    return boosted_trees().predict_proba(frame[["age", "income", "debt", "club", "sex"]])[:, 1]


MODELS = {
    "score": (score, (0.5, 1.0)),
    "rare": (score, Interval(0.85, 1, closed="neither")),
    "label": (label, "granted"),
    "predicate": (None, has_score),
    "boosted": (boosted, (0.5, 1.0)),
}
DENIED = TABLE[score(TABLE) < 0.4].iloc[:40]


def fitted(model=score, decision=(0.5, 1.0), X=TABLE, **settings) -> MCCE:
    return MCCE(model, decision=decision, **({"fixed": FIXED, "random_state": 1} | settings)).fit(X)


def assert_same(one, two) -> None:
    """Compare rows, measures and reasons bit for bit."""
    assert_frame_equal(one.frame, two.frame, check_exact=True)
    assert_frame_equal(one.measures, two.measures, check_exact=True)
    assert_frame_equal(one.unexplained, two.unexplained, check_exact=True)
    assert_frame_equal(one.factuals, two.factuals, check_exact=True)
    assert_series_equal(one.factual_predictions, two.factual_predictions, check_exact=True)


def differs(one: pd.DataFrame, two: pd.DataFrame) -> np.ndarray:
    """Compare cell by cell, on decoded values."""
    assert one.shape == two.shape
    changed = np.zeros(one.shape, dtype=bool)
    for j, (a, b) in enumerate(zip(one.astype(object).to_numpy().T, two.astype(object).to_numpy().T)):
        changed[:, j] = [pd.isna(x) != pd.isna(y) or (not pd.isna(x) and x != y) for x, y in zip(a, b)]
    return changed
