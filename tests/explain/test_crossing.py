"""Crossings compared with sets, sorted lists and rows written by hand."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce.explain.crossing as crossing
from mcce.distances.measures import columnwise, gower, l2
from mcce.explain.crossing import ChangedCells, NearestCrossings
from mcce.table import Schema
from tests.marks import examples


def distinct_tuples(pool, mutable, size):
    near = NearestCrossings(columnwise(pool), mutable, gower(Schema.from_data(pd.DataFrame(pool)).features))
    return near.tuples(0, len(pool), size)


NAN = math.nan
TRAINING = pd.DataFrame(
    {
        "number": [0.0, 8.0, 2.0, NAN],
        "level": ["a", "b", "c", None],
        "grade": pd.Categorical(["1", "2", "3", "1"], ordered=True),
        "kept": [0.0, 1.0, 2.0, 3.0],
        "still": [1.0, 1.0, 1.0, 1.0],
        "other": [0.0, 4.0, 1.0, NAN],
    }
)
FEATURES = Schema.from_data(TRAINING).features
MUTABLE = np.array([0, 1, 2, 4, 5])  # "kept" is fixed
RANGE = [8.0, None, 2.0, 3.0, None, 4.0]  # None: any change counts 1; sums of such steps are exact
VALUES = [[0.0, 1.0, 2.0, 8.0, NAN], [0.0, 1.0, 2.0, NAN], [0.0, 1.0, 2.0], [0.0], [1.0, NAN], [0.0, 0.5, 4.0, NAN]]

rows = st.tuples(*(st.sampled_from(values) for values in VALUES))
pools = st.lists(rows, min_size=1, max_size=12).map(np.array)


def oracle_tuples(pool, mutable, size):
    """Return (draw, set) of every tuple that no earlier draw has in these columns, without missing values."""
    sets = list(combinations(range(len(mutable)), size))
    found, seen = [], set()
    for draw, row in enumerate(pool):
        for s, members in enumerate(sets):
            cells = tuple(row[mutable[a]] for a in members)
            if any(math.isnan(cell) for cell in cells) or (s, cells) in seen:
                continue
            seen.add((s, cells))
            found.append((draw, s))
    return found, sets


def step(j, value, factual, squared):
    if RANGE[j] is None or math.isnan(factual):
        return 1.0
    return (abs(value - factual) / RANGE[j]) ** (2 if squared else 1)


def changed(cells, own):
    """Return whether every cell differs from the factual's."""
    return all(cell != x for cell, x in zip(cells, own, strict=True))


@examples(50)
@given(pools, st.integers(1, 5))
def test_distinct_tuples_equal_python_set(pool, size):
    tuples = distinct_tuples(pool, MUTABLE, size)
    found, sets = oracle_tuples(pool, MUTABLE, size)
    assert list(zip(tuples.draws.tolist(), tuples.which.tolist(), strict=True)) == found
    assert tuples.sets.tolist() == [list(members) for members in sets]


@examples(25)
@given(
    pool=pools,
    factual=rows,
    size=st.integers(1, 5),
    most=st.integers(1, 40),
    before=st.integers(0, 3),
    squared=st.booleans(),
    low=st.sampled_from([-np.inf, 0.0, 1.0]),
    high=st.sampled_from([np.inf, 2.0]),
)
def test_large_crossings_keep_half_nearest_and_half_spread(pool, factual, size, most, before, squared, low, high):
    """The pool is one of several: other pools precede it. Values are limited in all columns."""
    draws, sets = oracle_tuples(pool, MUTABLE, size)
    factual = np.array(factual)
    expected = []
    for t, (draw, s) in enumerate(draws):
        columns = [MUTABLE[a] for a in sets[s]]
        if changed(pool[draw][columns], factual[columns]) and all(low <= x <= high for x in pool[draw][columns]):
            sums = sum(step(j, pool[draw][j], factual[j], squared) for j in columns)
            expected.append((sums, t))
    nearest = sorted(t for _, t in expected)
    if len(expected) > most:
        spread = range(0, len(draws), math.ceil(len(draws) / (most - most // 2)))
        spread = {t for _, t in expected}.intersection(spread)
        nearest = sorted(spread.union(t for _, t in sorted(expected)[: most // 2]))

    cells = columnwise(np.vstack([np.zeros((before, 6)), pool]))
    distance = l2(FEATURES) if squared else gower(FEATURES)
    near = NearestCrossings(cells, MUTABLE, distance)
    tuples = near.tuples(before, len(pool), size)
    within = np.full(6, low), np.full(6, high)
    found = near.find(1, factual, before, len(pool), tuples, most, None if low == -high else within)
    assert found.factual == 1
    assert found.chosen.tolist() == nearest
    assert found.complete == (len(expected) <= most)

    crossed = ChangedCells.read([found], near)
    np.testing.assert_allclose(crossed.steps, [dict(map(reversed, expected))[t] for t in nearest])
    written = crossed.rows(np.arange(len(nearest)), np.array([np.full(6, -9.0), factual]))
    for t, row in zip(nearest, written, strict=True):
        draw, s = draws[t]
        by_hand = factual.copy()
        for a in sets[s]:
            by_hand[MUTABLE[a]] = pool[draw][MUTABLE[a]]
        np.testing.assert_array_equal(row, by_hand)
        assert not np.isnan(row[~np.isnan(factual)]).any()  # no known value becomes missing
        assert (row != factual)[~np.isnan(row)].sum() == size  # any value differs from a missing one


def find(pool, factual, size, most=100, mutable=MUTABLE, features=FEATURES):
    near = NearestCrossings(columnwise(pool), mutable, gower(features))
    tuples = near.tuples(0, len(pool), size)
    return near.find(0, np.array(factual), 0, len(pool), tuples, most)


def test_draws_equal_to_factual_or_missing_are_not_crossed():
    factual = [1.0, 1.0, 1.0, 0.0, 1.0, 0.5]
    for pool in (np.array([factual]), np.array([[NAN, NAN, NAN, 0.0, NAN, NAN]])):
        for size in range(1, 6):
            assert find(pool, factual, size).chosen.size == 0


def test_column_without_values_is_not_crossed():
    pool = np.array([[0.0, NAN, 0.0, 0.0, 1.0, 4.0], [8.0, NAN, 0.0, 0.0, 1.0, 4.0]])
    factual = [1.0, 1.0, 1.0, 0.0, 1.0, 0.5]
    assert [find(pool, factual, size).chosen.size for size in range(1, 6)] == [4, 5, 2, 0, 0]


def test_one_mutable_feature():
    pool = np.array([[0.0], [8.0], [0.0], [NAN], [2.0]])
    found = find(pool, [2.0], 1, mutable=np.array([0]), features=FEATURES[:1])
    assert found.tuples.draws[found.chosen].tolist() == [0, 1]
    assert distinct_tuples(pool, np.array([0]), 2) is None


def test_oversized_crossings_are_skipped_except_single_features(monkeypatch):
    pool = np.random.default_rng(0).integers(0, 5, (1_000, 300)).astype(float)
    assert distinct_tuples(pool, np.arange(300), 2) is None
    assert distinct_tuples(pool, np.arange(300), 1).draws.size == 1_500
    monkeypatch.setattr(crossing, "MOST_TUPLES", 100)
    assert distinct_tuples(pool, np.arange(300), 1).draws.size == 1_500


@pytest.mark.parametrize("n_values", [128, 1_000])
def test_long_tuples_that_differ_in_one_column_stay_apart(n_values):
    """128 ** 10 and 1000 ** 22 are multiples of 2 ** 64: numbered in one integer, the first column would be lost."""
    n_columns = 24
    pool = np.tile(np.arange(n_values, dtype=float)[:, None], (1, n_columns))
    pool = np.vstack([pool, pool[:1]])
    pool[-1, 0] = 4.0
    assert distinct_tuples(pool, np.arange(n_columns), n_columns).draws.size == n_values + 1


def test_ties_go_to_earlier_draw_then_earlier_column():
    pool = np.array([[1.0, 1.0, 0.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 0.0, 1.0, 0.0], [1.0, 2.5, 0.0, 0.0, 2.0, 0.0]])
    found = find(pool, [1.0, 0.0, 0.0, 0.0, NAN, 0.0], 1, most=4)
    tuples = found.tuples
    chosen = set(zip(tuples.draws[found.chosen].tolist(), tuples.which[found.chosen].tolist(), strict=True))
    # steps 1, 1 (column 4) of draw 0; 1/8 and 1 of draw 1; others are spread over all tuples
    assert {(0, 1), (1, 0)} <= chosen
    assert not found.complete
