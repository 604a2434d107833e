"""Nearest training rows compared with all pairs."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import Schema, gower_distance
from mcce.diagnostics.neighbours import find_equal, find_nearest
from tests.marks import examples


def table(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """All kinds of column, with ties, missing values and a constant."""
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 25, n),
            "salary": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(1)),
            "job": pd.Categorical(rng.choice(["clerk", "manager", "pilot"], n), ["clerk", "manager", "pilot"]),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
            "member": rng.random(n) < 0.4,
            "same": 1.0,
        }
    )
    frame.loc[rng.random(n) < 0.1, "job"] = None
    return frame


@examples(10)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 12), m=st.integers(1, 40))
def test_distance_equals_the_minimum_of_all_distances(seed, n, m):
    rng = np.random.default_rng(seed)
    training, rows = table(rng, m), table(rng, n)
    schema = Schema.from_data(training)
    matrix, seen = schema.encode(rows).matrix, schema.encode(training).matrix
    among = rng.random(m) < 0.6
    own = rng.integers(-1, m, n)
    for mask in (None, among):
        found = find_nearest(matrix, seen, schema.features, own=own, among=mask)
        row, nearest = found.row[:, 0], found.distance[:, 0]
        for i in range(n):
            distance = gower_distance(training, rows.iloc[[i]], training=schema)
            allowed = np.ones(m, dtype=bool) if mask is None else mask.copy()
            if own[i] >= 0:
                allowed[own[i]] = False
            if not allowed.any():
                assert row[i] == -1
                assert np.isnan(nearest[i])
                continue
            assert nearest[i] == pytest.approx(distance[allowed].min(), abs=1e-12)
            assert allowed[row[i]]
            assert distance[row[i]] == nearest[i]


@examples(10)
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(1, 40), k=st.integers(1, 7))
def test_several_nearest_are_the_smallest_of_all_distances(seed, m, k):
    rng = np.random.default_rng(seed)
    training, rows = table(rng, m), table(rng, 6)
    schema = Schema.from_data(training)
    own = rng.integers(-1, m, 6)
    among = rng.random(m) < 0.6
    found = find_nearest(
        schema.encode(rows).matrix, schema.encode(training).matrix, schema.features, k, own=own, among=among
    )
    for i in range(6):
        distance = gower_distance(training, rows.iloc[[i]], training=schema)
        allowed = [t for t in range(m) if among[t] and t != own[i]]
        smallest = sorted(distance[allowed])[:k]
        n = len(smallest)
        assert found.distance[i, :n] == pytest.approx(smallest, abs=1e-12)
        assert np.isnan(found.distance[i, n:]).all()
        assert (found.row[i, n:] == -1).all()
        assert len({*found.row[i, :n]} & {*allowed}) == n


@examples(10)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 12), m=st.integers(0, 40))
def test_equal_rows_match_a_loop(seed, n, m):
    rng = np.random.default_rng(seed)
    values = np.array([0.0, -0.0, 1.0, np.nan])
    rows, training = values[rng.integers(0, 4, (n, 2))], values[rng.integers(0, 4, (m, 2))]
    place = find_equal(rows, training)
    for i in range(n):
        same = [t for t in range(m) if np.array_equal(rows[i], training[t], equal_nan=True)]
        assert place[i] in same if same else place[i] == -1


def test_result_does_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(1)
    training, rows = table(rng, 500), table(rng, 300)
    schema = Schema.from_data(training)
    matrix, seen = schema.encode(rows).matrix, schema.encode(training).matrix
    one, three = (find_nearest(matrix, seen, schema.features, n_jobs=n) for n in (1, 3))
    assert (one.row == three.row).all()
    assert (one.distance == three.distance).all()


@pytest.mark.slow
def test_large_table_is_fast():
    rng = np.random.default_rng(1)
    training = pd.DataFrame(rng.normal(size=(50_000, 12)))
    schema = Schema.from_data(training)
    seen = schema.encode(training).matrix
    rows = rng.normal(size=(500, 12))
    find_nearest(rows[:1], seen, schema.features)
    begun = time.process_time()
    find_nearest(rows, seen, schema.features, n_jobs=1)
    assert time.process_time() - begun < 5, "half a second of computing is expected"
