"""The sparse search with too many crossings to try all, on constructed cases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce.explain.sparse as sparse
from mcce.explain.acceptance import Acceptance
from mcce.explain.draw import Candidates
from mcce.explain.order import Caution, resolve_measures
from mcce.explain.sparse import SparseSearch
from mcce.plausibility.score import Plausibility
from mcce.table import Schema
from tests.explain.small_cases import (
    FEATURES,
    MUTABLE,
    NAN,
    VALUES,
    Case,
    changes,
    crossings,
    gower_sum,
    plausibility,
    problem_of,
    same_row,
    search,
)


def test_large_set_does_not_beat_a_draw_with_fewer_changes():
    """Of 12 features, sets of 4 to 10 are too many to try; those of 11 and 12 are few."""
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (40, 12)).astype(float), columns=list("abcdefghijkl"))
    features, mutable = Schema.from_data(X).features, np.arange(12)
    draws = np.ones((80, 12))
    draws[40, :5], draws[40, 5:] = 2.0, 0.0

    def query(rows):
        return rows.sum(axis=1), rows.sum(axis=1) >= 10

    scorer = Plausibility.fit(X.to_numpy(), features, mutable, 1)
    ordering = resolve_measures(("L0", "gower"), features)
    pools = Candidates(np.asfortranarray(draws), np.array([0]), np.array([80]))
    problem = problem_of(features, mutable, query, ordering, Caution(scorer, strength=0.0), 0.0)
    found = SparseSearch(Acceptance(problem, np.zeros((1, 12)))).search(pools, 1)
    np.testing.assert_array_equal(found.rows, draws[[40]])


@pytest.mark.parametrize("floor", [0.0, 0.01])
def test_pair_outside_the_nearest_beats_three_changes(floor, monkeypatch):
    """Draw 1 changes two features by far; only the nearest pair is tried with it, and three near changes suffice."""
    monkeypatch.setattr(sparse, "NEAREST", 1)
    factual = (0.0, 0.0, 0.0, 0.0, 5.0, 0.0)
    near, far, withholding = (1.0, 1.0, 1.0, 0.0, 5.0, 0.5), (8.0, 0.0, 0.0, 0.0, 5.0, 4.0), (NAN, *factual[1:])
    sets = [row for row in crossings([near], factual) if changes(row, factual) == 3]
    valid = [far, withholding, min(sets, key=lambda row: gower_sum(row, factual))]

    def query(rows):
        answer = np.array([any(same_row(row, good) for good in valid) for row in rows])
        return answer.astype(float), answer

    pools = Candidates(np.asfortranarray([near, far, withholding]), np.array([0]), np.array([3]))
    ordering = resolve_measures(("L0", "gower"), FEATURES)
    problem = problem_of(FEATURES, MUTABLE, query, ordering, Caution(plausibility(), strength=0.0), floor)
    found = SparseSearch(Acceptance(problem, np.array([factual]))).search(pools, 1)
    np.testing.assert_array_equal(found.rows, [far])


def test_skipped_single_value_beats_two_changes():
    """A third of 300 values of a number is tried first; one draw has only a valid value among the others."""
    X = pd.DataFrame({"a": np.arange(300.0), "b": np.arange(300.0) % 2})
    features, mutable = Schema.from_data(X).features, np.arange(2)
    scorer = Plausibility.fit(X.to_numpy(), features, mutable, 1)
    ordering = resolve_measures(("L0", "gower"), features)
    pools = Candidates(np.asfortranarray(X.assign(b=X["a"] % 7 == 0)).astype(float), np.array([0]), np.array([300]))
    for valid in (101.0, 102.0, 103.0):

        def query(rows, valid=valid):
            answer = (rows[:, 0] == valid) & (rows[:, 1] == 0) | (rows[:, 1] == 1) & (rows[:, 0] > 0)
            return answer.astype(float), answer

        problem = problem_of(features, mutable, query, ordering, Caution(scorer, strength=0.0), 0.0)
        found = SparseSearch(Acceptance(problem, np.zeros((1, 2)))).search(pools, 1)
        assert found.rows.tolist() == [[valid, 0.0]]


@pytest.mark.parametrize("ordered", [False, True])
def test_no_level_of_many_is_skipped(ordered):
    levels = pd.Categorical([f"l{i:03d}" for i in range(300)], ordered=ordered)
    schema = Schema.from_data(pd.DataFrame({"l": levels, "b": np.arange(300.0) % 2, "c": np.arange(300.0) % 3}))
    X, mutable = np.column_stack([np.arange(300.0), np.ones(300), np.arange(300.0) % 3]), np.arange(3)
    scorer = Plausibility.fit(X, schema.features, mutable, 1)
    ordering = resolve_measures(("L0", "gower"), schema.features)
    pools = Candidates(np.asfortranarray(X), np.array([0]), np.array([300]))
    for valid in (100.0, 101.0, 102.0):

        def query(rows, valid=valid):
            answer = (rows[:, 0] == valid) | (rows[:, 1] == 1) & (rows[:, 2] == 1)
            return answer.astype(float), answer

        problem = problem_of(schema.features, mutable, query, ordering, Caution(scorer, strength=0.0), 0.0)
        found = SparseSearch(Acceptance(problem, np.zeros((1, 3)))).search(pools, 1)
        assert found.rows.tolist() == [[valid, 0.0, 0.0]]


@pytest.mark.slow
@pytest.mark.parametrize("crossed_bytes", [1, 2_000])
def test_number_of_crossings_held_in_memory_does_not_matter(crossed_bytes, monkeypatch):
    rng = np.random.default_rng(4)
    drawn = [[tuple(float(rng.choice(values)) for values in VALUES) for _ in range(12)] for _ in range(3)]
    case = Case.of(drawn[:2], [(i % 2, row) for i, row in enumerate(drawn[2])], seed=1, share=0.1)
    whole = search(case, 3, 0.3)
    assert sum(map(len, whole)) > 10
    monkeypatch.setattr(sparse, "CROSSED_BYTES", crossed_bytes)
    assert str(search(case, 3, 0.3)) == str(whole)


@pytest.mark.slow
def test_more_features_than_can_be_combined(monkeypatch):
    """Of 320 features, pairs are too many to try; single features are not."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 4, (30, 320)).astype(float), columns=[f"x{j}" for j in range(320)])
    features, mutable = Schema.from_data(X).features, np.arange(320)
    scorer = Plausibility.fit(X.to_numpy(), features, mutable, 1)
    draws = rng.integers(0, 4, (1_000, 320)).astype(float)
    factuals = np.zeros((2, 320))
    factuals[1, 7] = 1.0

    def query(rows):
        return rows[:, 7], rows[:, 7] >= 2

    ordering = resolve_measures(("L0", "gower"), features)
    pools = Candidates(np.asfortranarray(draws), np.zeros(2, dtype=int), np.full(2, 1_000))
    problem = problem_of(features, mutable, query, ordering, Caution(scorer, strength=0.0), 0.0)
    found = SparseSearch(Acceptance(problem, factuals)).search(pools, 1)
    expected = np.zeros((2, 320))
    expected[:, 7] = 2.0
    np.testing.assert_array_equal(found.rows, expected)
