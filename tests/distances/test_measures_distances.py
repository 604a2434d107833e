"""Distances compared with hand calculation and their definitions in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import InputError, Schema
from mcce.distances import measures as distances
from tests.marks import examples

NAN = math.nan


def frame_of(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """All kinds of column, with ties, missing values, a constant, and levels that no row has."""
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 26, n).astype(float),
            "salary": rng.normal(size=n).round(1),
            "job": pd.Categorical(rng.choice(["clerk", "pilot", "smith"], n), ["clerk", "idle", "pilot", "smith"]),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L", "XL"], ordered=True),
            "same": 1.0,
            "mostly": np.where(rng.random(n) < 0.2, 5.0, 0.0),  # its median absolute deviation is 0
        }
    )
    for name in ("salary", "job", "size"):
        frame.loc[rng.random(n) < 0.15, name] = None
    return frame


def by_definition(name, features, training, decision, x, y) -> float:
    """One distance of two encoded rows from its definition."""
    total = 0.0
    for j, f in enumerate(features):
        a, b = float(x[j]), float(y[j])
        seen = [float(v) for v in training[:, j] if not math.isnan(v)]
        total += one_step(name, f, seen, training[:, j], decision, a, b) ** (2 if name in SQUARED else 1)
    return math.sqrt(total) if name in ("l2", "l2_raw", "hvdm") else total / (len(features) if name == "gower" else 1)


SQUARED = ("l2", "l2_raw", "hvdm", "ivdm")


def one_step(name, feature, seen, column, decision, a, b) -> float:
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    if name == "L0" or math.isnan(a) or math.isnan(b):
        return 1.0
    classes = sorted(set(decision.tolist()))
    levels = feature.kind == "categorical"
    if name == "ivdm" and not feature.is_numeric:
        return sum((share(column, decision, a, c) - share(column, decision, b, c)) ** 2 for c in classes)
    if name == "ivdm":
        spread = max(seen) - min(seen) if seen else 0.0
        if spread == 0:
            return 1.0
        return sum(
            (interpolated(seen, column, decision, a, c) - interpolated(seen, column, decision, b, c)) ** 2
            for c in classes
        )
    if levels and name == "hvdm":
        return math.sqrt(sum((share(column, decision, a, c) - share(column, decision, b, c)) ** 2 for c in classes))
    if levels:
        return 1.0
    if name in ("l1_raw", "l2_raw"):
        return abs(a - b)
    if name == "mad":
        middle = np.median(seen) if seen else 0.0
        off = sorted(abs(v - middle) for v in seen)
        spread = (np.median(off) or sum(off) / len(off)) if off else 0.0
    elif name == "hvdm":
        mean = sum(seen) / len(seen) if seen else 0.0
        spread = 4 * math.sqrt(sum((v - mean) ** 2 for v in seen) / len(seen)) if seen else 0.0
        spread = 0.0 if max(seen, default=0) == min(seen, default=0) else spread
    elif feature.kind == "ordered":
        spread = feature.n_levels - 1
    else:
        spread = max(seen) - min(seen) if seen else 0.0
    return abs(a - b) / spread if spread else 1.0


def share(column, decision, value, c) -> float:
    """P(c | value), Wilson and Martinez's P_{a,x,c}; 0 if no row has the value."""
    with_it = [d for v, d in zip(column, decision) if v == value]
    return sum(d == c for d in with_it) / len(with_it) if with_it else 0.0


def interpolated(seen, column, decision, x, c) -> float:
    """Wilson and Martinez's p_{a,c}(x), by their discretize, mid and interpolation."""
    s = max(5, len(set(decision.tolist())))
    low, width = min(seen), (max(seen) - min(seen)) / s

    def interval(v):
        return min(math.floor((v - low) / width), s - 1)

    def in_interval(u):
        with_it = [d for v, d in zip(column, decision) if not math.isnan(v) and interval(v) == u]
        return sum(d == c for d in with_it) / len(with_it) if with_it else 0.0

    u = math.floor((x - low) / width - 0.5)  # the midpoint just below x
    below = low + width * (u + 0.5)
    p, q = (in_interval(v) if 0 <= v < s else 0.0 for v in (u, u + 1))
    return p + (x - below) / width * (q - p)


MAKERS = {
    "L0": lambda f, t, d: distances.changes(f),
    "gower": lambda f, t, d: distances.gower(f),
    "gower_sum": lambda f, t, d: distances.gower_sum(f),
    "l2": lambda f, t, d: distances.l2(f),
    "l1_raw": lambda f, t, d: distances.l1_raw(f),
    "l2_raw": lambda f, t, d: distances.l2_raw(f),
    "mad": lambda f, t, d: distances.mad(f, t),
    "hvdm": distances.hvdm,
    "ivdm": distances.ivdm,
}


@examples(5)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), n_classes=st.integers(1, 7))
@pytest.mark.parametrize("name", MAKERS)
def test_every_distance_follows_its_definition(name, seed, n, n_classes):
    rng = np.random.default_rng(seed)
    training = frame_of(rng, n)
    schema = Schema.from_data(training)
    seen = schema.encode(training).matrix
    decision = rng.integers(0, n_classes, n)
    rows, others = (schema.encode(frame_of(rng, 8)).matrix for _ in range(2))  # ages and salaries may lie outside
    rows[0] = others[0]
    distance = MAKERS[name](schema.features, seen, decision)
    found = distance.between(rows, others)
    expected = [by_definition(name, schema.features, seen, decision, x, y) for x, y in zip(rows, others)]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert found[0] == 0
    np.testing.assert_allclose(distance.between(others, rows), found, rtol=1e-12)


PEOPLE = pd.DataFrame({"hours": [0.0, 2.0, 4.0, 10.0, NAN], "job": ["a", "a", "b", "b", "c"]})
DECISION = np.array([True, False, True, True, False])
SCHEMA = Schema.from_data(PEOPLE)
ROWS = SCHEMA.encode(PEOPLE).matrix


def of(distance, i, k) -> float:
    return float(distance.between(ROWS[[i]], ROWS[[k]])[0])


def test_mad_matches_hand_calculation():
    # median 3, deviations 3, 1, 1, 7, their median 2
    distance = distances.mad(SCHEMA.features, ROWS)
    assert of(distance, 0, 2) == 4 / 2 + 1
    assert of(distance, 2, 3) == 6 / 2
    assert of(distance, 3, 4) == 1 + 1


def test_mad_of_a_mostly_constant_column_uses_the_mean_deviation():
    X = np.array([[0.0, 7.0], [0.0, 7.0], [0.0, 7.0], [8.0, 7.0]])
    distance = distances.mad(Schema.from_data(X).features, X)
    assert distance.between(np.array([[8.0, 7.0], [8.0, 9.0]]), X[:2]).tolist() == [8 / 2, 8 / 2 + 1]


def test_step_in_a_long_tail_uses_geometric_mean_of_range_and_spread():
    X = np.append(np.arange(100.0), 1e4)[:, None]  # 5 per cent are below 5, 5 per cent above 95
    features = Schema.from_data(X).features
    step = np.array([[30.0]]), np.array([[0.0]])
    found = distances.tail_robust(features, X).between(*step)
    assert found == pytest.approx(30 / math.sqrt(1e4 * 90))
    assert distances.gower(features).between(*step) == pytest.approx(30 / 1e4)


def test_tails_do_not_matter_for_levels_and_booleans():
    """Steps are Gower's for levels, ordered or not, and for numbers that are mostly one value."""
    rng = np.random.default_rng(0)
    X = frame_of(rng, 60)[["job", "size", "same"]].assign(flag=np.arange(60) == 0, rare=np.where(np.arange(60), 0, 9.0))
    table = Schema.from_data(X).encode(X, "X")
    features = Schema.from_data(X).features
    assert distances.tail_robust(features, table.matrix).scale.tolist() == distances.scales(features).tolist()


def test_weights_in_a_spread_count_as_copies():
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=(40, 2)), rng.integers(1, 5, 40)
    features = Schema.from_data(X).features
    weighted = distances.tail_robust(features, X, weights.astype(float)).scale
    np.testing.assert_allclose(weighted, distances.tail_robust(features, np.repeat(X, weights, axis=0)).scale)
    assert not np.allclose(weighted, distances.tail_robust(features, X).scale)


def test_hvdm_matches_hand_calculation():
    # mean 4, variance (16 + 4 + 0 + 36) / 4 = 14; P(True): a 1/2, b 1, c 0
    distance = distances.hvdm(SCHEMA.features, ROWS, DECISION)
    four_sd = 4 * math.sqrt(14)
    assert of(distance, 0, 1) == pytest.approx(2 / four_sd)
    assert of(distance, 0, 2) == pytest.approx(math.sqrt((4 / four_sd) ** 2 + 2 * 0.5**2))
    assert of(distance, 3, 4) == pytest.approx(math.sqrt(1 + 2))


def test_ivdm_matches_hand_calculation():
    # intervals of width 2: [0, 2) True; [2, 4) False; [4, 6) True; [6, 8) none; [8, 10] True; midpoints 1, 3, 5, 7, 9
    distance = distances.ivdm(SCHEMA.features, ROWS, DECISION)
    # at 0, half way from zero to the first midpoint: (True, False) = (0.5, 0); at 2: (0.5, 0.5)
    assert of(distance, 0, 1) == pytest.approx((0.5**2) ** 2)
    # at 4: (0.5, 0.5); at 10: (0.5, 0); levels of the two are the same
    assert of(distance, 2, 3) == pytest.approx((0.5**2) ** 2)
    # levels: a (1/2, 1/2), b (1, 0)
    assert of(distance, 1, 2) == pytest.approx((2 * 0.5**2) ** 2)


@examples(5)
@given(seed=st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("name", ["gower", "gower_sum", "l2", "mad", "hvdm", "ivdm"])
def test_integer_weight_repeats_a_column(name, seed):
    rng = np.random.default_rng(seed)
    training = frame_of(rng, 30)
    schema = Schema.from_data(training)
    seen = schema.encode(training).matrix
    decision = rng.random(30) < 0.5
    rows, others = (schema.encode(frame_of(rng, 8)).matrix for _ in range(2))
    weights = rng.integers(0, 4, len(schema))
    weights[0] = 1
    many = np.repeat(np.arange(len(schema)), weights)
    repeated = MAKERS[name]([schema.features[j] for j in many], seen[:, many], decision)
    weighted = MAKERS[name](schema.features, seen, decision).weighted(weights.astype(float))
    np.testing.assert_allclose(
        weighted.between(rows, others), repeated.between(rows[:, many], others[:, many]), rtol=1e-9, atol=1e-12
    )


def test_unknown_level_has_distance_one():
    distance = distances.hvdm(SCHEMA.features, ROWS, DECISION)
    assert distance.between(np.array([[0.0, 3.0]]), np.array([[0.0, 0.0]])).tolist() == [1.0]


def test_tables_of_several_distances_are_concatenated():
    pair = [distances.hvdm(SCHEMA.features, ROWS, DECISION), distances.ivdm(SCHEMA.features, ROWS, DECISION)]
    steps, tables = distances.stack(pair)
    assert tables is not None
    assert steps.scale.shape == (2, 2)
    assert tables.begin[1].min() >= pair[0].table.size
    assert distances.stack([distances.gower(SCHEMA.features)])[1] is None


def test_selected_columns_keep_their_tables():
    distance = distances.ivdm(SCHEMA.features, ROWS, DECISION)
    swapped = distance.take(np.array([1, 0]))
    np.testing.assert_array_equal(swapped.between(ROWS[:, ::-1], ROWS[::-1, ::-1]), distance.between(ROWS, ROWS[::-1]))


@pytest.mark.parametrize("make", [distances.hvdm, distances.ivdm])
def test_decision_must_match_the_training_rows(make):
    with pytest.raises(InputError, match=r"the decision has shape \(2,\) for 5 training rows"):
        make(SCHEMA.features, ROWS, DECISION[:2])
