"""Refinement compared with the same steps for one row at a time."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import mcce.explain.refine as refining
from mcce.explain.acceptance import Acceptance
from mcce.explain.draw import Candidates
from mcce.explain.order import DEFAULT, Caution, resolve_measures
from mcce.explain.refine import Refiner, judge_changes, mark_incidental
from mcce.explain.winners import Winners
from mcce.table import Schema
from tests.explain.small_cases import problem_of
from tests.marks import examples

NAN = math.nan
TRAINING = pd.DataFrame(
    {
        "number": [0.0, 8.0, NAN],
        "level": ["a", "b", "c"],
        "other": [0.0, 4.0, 1.0],
        "still": [1.0, 1.0, 1.0],
    }
)
FEATURES = Schema.from_data(TRAINING).features
NUMBERS = np.array([0, 2, 3])
RANGE = [8.0, None, 4.0, None]  # None: any change counts 1; sums of such steps are exact
VALUES = [[0.0, 1.0, 2.0, 3.0, 5.0, 6.0, 8.0, NAN], [0.0, 1.0, 2.0], [0.0, 0.5, 1.0, 2.0, 3.0, 4.0], [1.0, 2.0]]
LEAST = 0.4

rows = st.tuples(*(st.sampled_from(values) for values in VALUES))


def number_of(name, seed, row) -> float:
    """A number from 0 to 1 for each row."""
    return zlib.crc32(f"{name} {seed} {[float(cell) for cell in row]}".encode()) / 2**32


@dataclass
class Origins:
    """Rows from which the plausibility of others is derived; here it is recomputed."""

    rows: np.ndarray

    def __getitem__(self, at):
        return self


class Scale:
    """The part of a scale of plausibility that a refinement needs, beside `score`."""

    fold = np.zeros(1, dtype=np.int64)

    def least_score(self, floor):
        return LEAST

    def fold_of(self, matrix):
        return self.fold

    def own(self, factuals):
        return None

    def origins(self, rows, places=None, kept=1, own=None, of=None):
        return Origins(rows)

    def move_origins(self, origins, at, rows, fold):
        origins.rows[at] = rows


def refiner(scale, factuals, numbers):
    """Return a refiner of rows of some factuals, by a scale that is also the model."""
    ordering = resolve_measures(DEFAULT, FEATURES)
    problem = problem_of(
        FEATURES, np.arange(4), scale.query, ordering, SimpleNamespace(plausibility=scale, strength=0.0)
    )
    return Refiner(Acceptance(problem, np.array(factuals)), np.array(numbers, dtype=np.int64))


@dataclass
class World(Scale):
    """A model and a score of plausibility that depends on the fold."""

    seed: int
    share: float
    factuals: tuple[tuple[float, ...], ...]
    n_queried: int = 0

    def wants(self, row) -> bool:
        mine = any(all(same(a, b) for a, b in zip(row, factual, strict=True)) for factual in self.factuals)
        return not mine and number_of("model", self.seed, row) < self.share

    def query(self, rows):
        self.n_queried += len(rows)
        return np.array([number_of("model", self.seed, row) for row in rows]), np.array([self.wants(r) for r in rows])

    def score(self, rows, fold, factuals=None, *further):
        return np.array([number_of(f"score {k}", self.seed, row) for row, k in zip(rows, fold, strict=True)])


def same(a, b) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def step(j, a, b) -> float:
    if same(a, b):
        return 0.0
    return 1.0 if RANGE[j] is None or math.isnan(a) or math.isnan(b) else abs(a - b) / RANGE[j]


def distance(row, factual) -> float:
    return sum(step(j, a, b) for j, (a, b) in enumerate(zip(row, factual, strict=True)))


def walk(world, row, factual, fold, pool, *, numbers):
    """The numbered steps of the module, one row at a time."""

    def good(tried) -> bool:
        score = world.score([tried], [fold])[0]
        return world.wants(tried) and (score >= LEAST or score > world.score([row], [fold])[0])

    before = None
    while before != str(row):  # until no change can be reverted
        before = str(row)
        changed = [j for j in range(len(row)) if not same(row[j], factual[j])]
        for j in sorted(changed, key=lambda j: -step(j, row[j], factual[j])):
            tried = (*row[:j], factual[j], *row[j + 1 :])
            row = tried if good(tried) else row
    changed = [j for j in numbers if not same(row[j], factual[j]) and not math.isnan(row[j] + factual[j])]
    for j in sorted(changed, key=lambda j: -step(j, row[j], factual[j])):
        low, high = sorted([row[j], factual[j]])
        between = {draw[j] for draw in pool if low < draw[j] < high}
        tries = [(*row[:j], value, *row[j + 1 :]) for value in sorted(between)]
        tries = [tried for tried in tries if good(tried)]
        if tries:
            row = min(tries, key=lambda tried: distance(tried, factual))
    return row


def n_changed(row, factual) -> int:
    return sum(not same(a, b) for a, b in zip(row, factual, strict=True))


def take(world, starts, factuals, fold, pools, numbers, best=None):
    """Refine starts, pairs of (position of the factual, row)."""
    owner = np.array([f for f, _ in starts], dtype=np.int64)
    drawn = np.array([row for _, row in starts]).reshape(-1, 4)
    scores, _ = world.query(drawn)
    world.n_queried = 0
    found = Winners.chosen(owner, np.asfortranarray(drawn), scores, world.score(drawn, fold[owner]))
    world.fold = fold
    refining = refiner(world, factuals, numbers)
    after = refining.refine(found, pools, best)
    np.testing.assert_array_equal(after.owner, owner)
    np.testing.assert_array_equal(found.rows, drawn)  # the input is not modified
    np.testing.assert_array_equal(after.scores, [number_of("model", world.seed, row) for row in after.rows])
    np.testing.assert_array_equal(after.plausibility, world.score(after.rows, fold[owner]))
    assert refining.acceptance.n_queried == world.n_queried
    return [tuple(row) for row in after.rows.tolist()]


@examples(40)
@given(
    factuals=st.lists(rows, min_size=1, max_size=3),
    pool=st.lists(rows, min_size=1, max_size=10),
    fold=st.lists(st.integers(0, 1), min_size=3, max_size=3),
    numbers=st.sampled_from([(), (0,), (0, 2, 3)]),
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.3, 0.6, 1.0]),
)
@example([(5.0, 0.0, 1.0, 1.0)], [(0.0, 1.0, 0.5, 2.0)], [0, 0, 0], (), 0, 0.3)  # tried again in the third round
def test_rows_are_refined_independently_of_each_other(factuals, pool, fold, numbers, seed, share):
    world = World(seed, share, tuple(factuals))
    fold = np.array(fold[: len(factuals)])
    starts = [(f, draw) for f in range(len(factuals)) for draw in pool if world.wants(draw)]
    none = np.zeros(len(factuals), dtype=np.int64)
    pools = Candidates(np.asfortranarray(pool), none, none + len(pool))
    found = take(world, starts, factuals, fold, pools, numbers)
    for (f, start), row in zip(starts, found, strict=True):
        factual = factuals[f]
        assert str(row) == str(walk(world, start, factual, fold[f], pool, numbers=numbers))
        assert world.wants(row)
        assert distance(row, factual) <= distance(start, factual)
        assert all(same(b, c) for a, b, c in zip(start, row, factual, strict=True) if same(a, c))
        before, after = world.score([start, row], [fold[f]] * 2)
        assert after >= (LEAST if before >= LEAST else before)  # below the floor, the plausibility may only increase


def test_rows_of_several_steps_are_queried_at_once():
    factual, pool = (5.0, 0.0, 1.0, 1.0), [(0.0, 1.0, 0.5, 2.0), (1.0, 1.0, 0.0, 2.0)]
    world = World(1, 1.0, (factual,))
    queries, query = [], world.query
    world.query = lambda rows: (queries.append(len(rows)), query(rows))[1]
    pools = Candidates(np.asfortranarray(pool), np.array([0]), np.array([2]))
    found = take(world, [(0, row) for row in pool], [factual], np.array([0]), pools, ())
    assert found == [walk(world, row, factual, 0, pool, numbers=()) for row in pool]
    assert len(queries) == 2  # that of the starts, and one instead of one for each step


@examples(15)
@given(
    factuals=st.lists(rows, min_size=1, max_size=3),
    pool=st.lists(rows, min_size=1, max_size=10),
    seed=st.integers(0, 10**6),
    best=st.integers(1, 3),
)
def test_numbers_move_only_if_few_features_changed(factuals, pool, seed, best):
    world = World(seed, 0.6, tuple(factuals))
    fold = np.zeros(len(factuals), dtype=np.int64)
    starts = [(f, draw) for f in range(len(factuals)) for draw in pool if world.wants(draw)]
    none = np.zeros(len(factuals), dtype=np.int64)
    pools = Candidates(np.asfortranarray(pool), none, none + len(pool))
    found = take(world, starts, factuals, fold, pools, (0, 2, 3), best)
    back = [walk(world, start, factuals[f], 0, pool, numbers=()) for f, start in starts]
    for (f, start), row, reached in zip(starts, found, back, strict=True):
        rivals = {str(r): n_changed(r, factuals[f]) for (g, _), r in zip(starts, back, strict=True) if g == f}
        few = sum(n < n_changed(reached, factuals[f]) for n in rivals.values()) < best
        moved = walk(world, start, factuals[f], 0, pool, numbers=(0, 2, 3))
        assert str(row) == str(moved if few else reached)


def test_no_rows_do_not_query_the_model():
    world = World(0, 1.0, ())
    none = np.zeros(1, dtype=np.int64)
    pools = Candidates(np.ones((1, 4)), none, none + 1)
    assert take(world, [], [(0.0, 0.0, 0.0, 1.0)], none, pools, NUMBERS) == []
    assert world.n_queried == 0


@pytest.mark.parametrize(("n_values", "reached"), [(5, 1.0), (100, 1.0)])
def test_of_many_intermediate_values_some_are_tried_including_the_nearest(n_values, reached):
    class ConstantCondition(Scale):
        def query(self, rows):
            assert len(rows) <= refining.VALUES_BETWEEN
            return np.ones(len(rows)), rows[:, 0] >= reached

        def score(self, rows, fold, factuals=None, *further):
            return np.ones(len(rows))

    pool = np.zeros((n_values, 4))
    pool[:, 0] = np.arange(1, n_values + 1)
    none = np.zeros(1, dtype=np.int64)
    start = Winners.chosen(none, np.array([[200.0, 0.0, 0.0, 0.0]]), np.ones(1), np.ones(1))
    found = refiner(ConstantCondition(), np.zeros((1, 4)), [0]).refine(start, Candidates(pool, none, none + n_values))
    assert found.rows.tolist() == [[reached, 0.0, 0.0, 0.0]]


def test_number_with_smaller_step_does_not_take_the_turn_of_another():
    """Both numbers move: first the one with the larger step, which is smaller afterwards."""
    factual, start = np.array([[0.0, 0.0, 0.0, 1.0]]), np.array([[8.0, 0.0, 3.0, 1.0]])

    class ConstantCondition(Scale):
        def query(self, rows):
            return np.ones(len(rows)), (rows[:, [0, 2]] >= 1).all(axis=1)

        def score(self, rows, fold, factuals=None, *further):
            return np.ones(len(rows))

    pool = np.array([[1.0, 0.0, 1.0, 1.0], [2.0, 0.0, 2.0, 1.0]])
    none = np.zeros(1, dtype=np.int64)
    chosen = Winners.chosen(none, start, np.ones(1), np.ones(1))
    found = refiner(ConstantCondition(), factual, [0, 2]).refine(chosen, Candidates(pool, none, none + 2))
    assert found.rows.tolist() == [[1.0, 0.0, 1.0, 1.0]]


class Margins:
    """Scores are farther inside the decision the smaller they are."""

    def inside(self, scores):
        return -scores


def with_margins(world, factuals, margins):
    """Return the rule for sparse rows of some factuals."""
    caution = Caution(world, margins)
    problem = problem_of(FEATURES, np.arange(4), world.query, resolve_measures(DEFAULT, FEATURES), caution)
    return Acceptance(replace(problem, settings=replace(problem.settings, sparse=True)), np.array(factuals))


def leave_out(row, factual, j):
    return (*row[:j], factual[j], *row[j + 1 :])


@examples(40)
@given(
    factual=rows,
    pool=st.lists(rows, min_size=1, max_size=10),
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.3, 0.6, 1.0]),
    margins=st.sampled_from([None, Margins()]),
)
def test_incidental_changes_are_not_needed_for_the_decision(factual, pool, seed, share, margins):
    world = World(seed, share, (factual,))
    valid = [row for row in pool if world.wants(row)]
    matrix = np.array(valid).reshape(-1, 4)
    chosen = Winners.chosen(np.zeros(len(valid), dtype=np.int64), matrix, world.query(matrix)[0], np.ones(len(valid)))
    found = mark_incidental(with_margins(world, [factual], margins), chosen)
    for start, marked in zip(valid, found.incidental, strict=True):
        row, expected = start, set()
        while n_changed(row, factual) > 1:
            changed = [j for j in range(4) if not same(row[j], factual[j])]
            spare = [j for j in changed if world.wants(leave_out(row, factual, j))]
            if not spare:
                break
            score = {j: number_of("model", seed, leave_out(row, factual, j)) for j in spare}
            j = min(spare, key=lambda j: (score[j] if margins else 0.0, j))
            expected.add(j)
            row = leave_out(row, factual, j)
        assert set(np.flatnonzero(marked)) == expected


@examples(40)
@given(
    factual=rows,
    pool=st.lists(rows, min_size=1, max_size=10),
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.3, 0.6, 1.0]),
)
def test_changes_are_judged_by_the_rows_without_them(factual, pool, seed, share):
    world = World(seed, share, (factual,))
    valid = [row for row in pool if world.wants(row)]
    matrix = np.array(valid).reshape(-1, 4)
    chosen = Winners.chosen(np.zeros(len(valid), dtype=np.int64), matrix, world.query(matrix)[0], np.ones(len(valid)))
    needed, harmed, fewer = judge_changes(with_margins(world, [factual], Margins()), chosen)
    accepted = []
    for i, row in enumerate(valid):
        changed = [j for j in range(4) if not same(row[j], factual[j])]
        less = [leave_out(row, factual, j) for j in changed if len(changed) > 1]
        good = [r for r in less if world.wants(r) and world.score([r], [0])[0] >= LEAST]
        accepted += [(i, str([float(cell) for cell in r])) for r in good]
        assert needed[i] == (not good)
        assert harmed[i] == any(number_of("model", seed, r) < number_of("model", seed, row) - 1e-12 for r in less)
    assert [(i, str(row)) for i, row in zip(fewer.owner.tolist(), fewer.rows.tolist(), strict=True)] == accepted
