"""Distances against their formulas, computed pair by pair in plain Python."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from mcce import distances
from mcce.distances import GowerSum, changed, resolve_measures
from mcce.exceptions import InputError
from mcce.table import Schema

RNG = np.random.default_rng(5)
N = 120


def people() -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "age": RNG.integers(20, 60, N),
            "income": np.round(RNG.gamma(2, 30, N), 1),
            "score": RNG.normal(size=N),
            "job": RNG.choice(list("abcd"), N),
            "school": pd.Categorical(RNG.choice(["low", "mid", "high"], N), ["low", "mid", "high"], ordered=True),
            "constant": 1.0,
        }
    )
    frame.loc[::9, "income"] = np.nan
    frame.loc[::7, "job"] = None
    return frame


X = people()
Y = (X["score"] + 0.01 * X["income"].fillna(0) + (X["job"] == "a") > 0.5).to_numpy()
SCHEMA = Schema.from_data(X)
ROWS = SCHEMA.encode(X).matrix
NUMBERS, ORDERED, LEVELS = ("age", "income", "score", "constant"), ("school",), ("job",)
PAIRS = [(int(i), int(k)) for i, k in RNG.integers(0, N, (60, 2))] + [(0, 0), (0, 7), (7, 14), (9, 18)]
RANKS = {"low": 0, "mid": 1, "high": 2}


def brute(name: str, i: int, k: int) -> float:
    """Return a distance by its formula, from the data frame."""
    return {"L0": sum, "gower_sum": sum, "gower": lambda s: sum(s) / 6, "hvdm": root_of_squares, "ivdm": squares}[name](
        [step(name, column, X[column].iloc[i], X[column].iloc[k]) for column in X]
    )


def squares(steps):
    return sum(step**2 for step in steps)


def root_of_squares(steps):
    return squares(steps) ** 0.5


def step(name, column, a, b):
    if (pd.isna(a) and pd.isna(b)) or a == b:
        return 0.0
    if pd.isna(a) or pd.isna(b) or column == "constant" or name == "L0":
        return 1.0
    known = X[column].dropna()
    if name in ("gower", "gower_sum"):
        if column in LEVELS:
            return 1.0
        return abs(RANKS[a] - RANKS[b]) / 2 if column in ORDERED else abs(a - b) / (known.max() - known.min())
    if name == "hvdm":
        if column in LEVELS:
            return sum((share(column, a, c) - share(column, b, c)) ** 2 for c in (0, 1)) ** 0.5
        codes = known.map(RANKS).astype(float) if column in ORDERED else known
        a, b = (RANKS[a], RANKS[b]) if column in ORDERED else (a, b)
        return abs(a - b) / (4 * codes.std(ddof=0))
    share_of = curve if column in NUMBERS else share
    return sum((share_of(column, a, c) - share_of(column, b, c)) ** 2 for c in (0, 1))


def share(column, level, c):
    """P(class | level)."""
    of_level = Y[(X[column] == level).to_numpy()]
    return (of_level == c).mean()


def curve(column, value, c):
    """The share of a class, interpolated between the midpoints of five intervals and 0 beyond them."""
    return float(np.interp(value, *knots_and_shares(column, c)))


@cache
def knots_and_shares(column, c):
    low, high = X[column].min(), X[column].max()
    width = (high - low) / 5
    interval = np.minimum(np.floor((X[column] - low) / width), 4).to_numpy()
    shares = [(Y[interval == u] == c).mean() if (interval == u).any() else 0.0 for u in range(5)]
    return low + width * (np.arange(7) - 0.5), [0.0, *shares, 0.0]


@pytest.mark.parametrize("name", ["L0", "gower", "gower_sum", "hvdm", "ivdm"])
def test_equals_the_formula(name):
    (measure,) = resolve_measures(name, SCHEMA, ROWS, Y)
    i, k = np.array(PAIRS).T
    found = measure.function(ROWS[i], ROWS[k])
    np.testing.assert_allclose(found, [brute(name, *pair) for pair in PAIRS], rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(measure.function(ROWS[k], ROWS[i]), found)
    assert measure.distance is not None
    np.testing.assert_allclose(measure.distance.finish(measure.distance.steps(ROWS[i], ROWS[k]).sum(axis=1)), found)


def test_gower_is_between_0_and_1_and_counts_missing_values():
    gower = distances.Gower.fit(SCHEMA)
    far = pd.DataFrame({"a": [0.0, 10.0, np.nan], "b": ["u", "v", None]})
    schema = Schema.from_data(far)
    rows = schema.encode(far).matrix
    assert distances.Gower.fit(schema).between(rows[[0, 0, 2]], rows[[1, 2, 2]]).tolist() == [1.0, 1.0, 0.0]
    assert GowerSum.fit(schema).between(rows[[0]], rows[[1]]).tolist() == [2.0]
    i, k = np.array(PAIRS).T
    assert (gower.between(ROWS[i], ROWS[k]) <= 1).all()


def test_changed_is_exact():
    a = np.array([[1.0, np.nan, 0.1 + 0.2, np.nan]])
    assert changed(a, np.array([[1.0, np.nan, 0.3, 2.0]])).tolist() == [[False, False, True, True]]


def test_distances_do_not_depend_on_the_order_of_columns():
    arranged = SCHEMA.arrange(list(X)[::-1])
    i, k = np.array(PAIRS).T
    for name in ("gower", "hvdm", "ivdm"):
        one = resolve_measures(name, SCHEMA, ROWS, Y)[0].function(ROWS[i], ROWS[k])
        two = resolve_measures(name, arranged, ROWS[:, ::-1], Y)[0].function(ROWS[i][:, ::-1], ROWS[k][:, ::-1])
        np.testing.assert_allclose(one, two, rtol=1e-13)


def test_function_gets_the_candidates_of_each_factual():
    seen = []

    def younger(candidates, factual):
        seen.append(len(candidates))
        return candidates["age"] - factual["age"]

    measures = resolve_measures((younger, "L0"), SCHEMA, ROWS, None)
    assert [measure.name for measure in measures] == ["younger", "L0"]
    found = measures[0].function(ROWS[:6], ROWS[[8, 9, 8, 8, 9, 8]])
    assert found.tolist() == (ROWS[:6, 0] - ROWS[[8, 9, 8, 8, 9, 8], 0]).tolist()
    assert sorted(seen) == [2, 4]


def test_gower_distance_of_tables():
    rows = distances.gower_distance(X.head(3), X.iloc[[3]], training=X)
    np.testing.assert_allclose(rows, [brute("gower", i, 3) for i in range(3)])
    assert resolve_measures(None, SCHEMA, ROWS, None)[1].name == "gower"


def prediction(candidates, factual):
    raise AssertionError


@pytest.mark.parametrize(
    ("measures", "decision", "message"),
    [
        ((), Y, r"measures is \(\); give names or functions"),
        (3, Y, "measures is 3"),
        ("hvdm", None, "needs the decisions of the training rows"),
        ("ivdm", Y[:-1], r"shape \(119,\) for 120 training rows"),
        ([abs, prediction], None, "function of the name 'prediction', which results use already"),
    ],
)
def test_messages(measures, decision, message):
    with pytest.raises(InputError, match=message):
        resolve_measures(measures, SCHEMA, ROWS, decision)


@pytest.mark.parametrize("reply", [1.0, [1.0], ["a", "b"], [1.0, np.nan]])
def test_bad_functions(reply):
    (measure,) = resolve_measures(lambda candidates, factual: np.array(reply), SCHEMA, ROWS, None)
    with pytest.raises(InputError, match="must return one number, not missing, for each"):
        measure.function(ROWS[:2], ROWS[[3, 3]])
