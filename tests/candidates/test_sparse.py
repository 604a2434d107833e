"""The sparse search against brute force: every crossing of every draw, each asked and scored by itself."""

from __future__ import annotations

import functools
import math
import zlib
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcce.candidates.plausibility
import mcce.candidates.sparse as sparse
from mcce.candidates.plausibility import Plausibility
from mcce.candidates.sparse import Bounds, SparseSearch
from mcce.selection.candidates import Candidates
from mcce.selection.ordering import resolve_measures
from mcce.selection.selector import Selector
from mcce.table import Schema

NAN = math.nan
VALUES = [
    [0.0, 1.0, 2.0, 8.0, NAN],
    [0.0, 1.0, 2.0, NAN],
    [0.0, 1.0, 2.0],
    [0.0, 1.0],  # fixed
    [5.0],
    [0.0, 0.5, 1.0, 1.5, 4.0],
]
RANGE = [8.0, None, 2.0, 1.0, None, 4.0]  # None: any change counts 1; sums of such steps are exact
MUTABLE = np.array([0, 1, 2, 4, 5])
WEIGHTS = {"number": 0.5, "level": 2.0, "other": 0.0}
UNBOUNDED = Bounds()
BY_COLUMN = [0.5, 2.0, 1.0, 1.0, 1.0, 0.0]


def training(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    codes = {f"c{j}": rng.choice(values, n) for j, values in enumerate(VALUES)}
    return pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.8, np.minimum(codes["c2"], codes["c3"]) * 8, codes["c0"]),
            "level": pd.Series(codes["c1"]).map({0.0: "a", 1.0: "b", 2.0: "c"}),
            "grade": pd.Categorical.from_codes(codes["c2"].astype(int), ["low", "middle", "high"], ordered=True),
            "kept": codes["c3"],
            "still": codes["c4"],
            "other": codes["c5"],
        }
    )


SCHEMA = Schema.from_data(training())
FEATURES = SCHEMA.features


@functools.cache
def plausibility() -> Plausibility:
    return Plausibility.fit(SCHEMA.encode(training()).matrix, FEATURES, MUTABLE, 3, 1)


@dataclass(frozen=True)
class Model:
    """Wants some rows at random, by their values, but none of the factuals."""

    seed: int
    share: float
    factuals: tuple[tuple[float, ...], ...]

    def score(self, row) -> float:
        if any(same_row(row, factual) for factual in self.factuals):
            return 1.0
        return zlib.crc32(f"{self.seed} {[float(cell) for cell in row]}".encode()) / 2**32

    def wants(self, row) -> bool:
        return self.score(row) < self.share

    def __call__(self, rows):
        scores = np.array([self.score(row) for row in rows])
        return scores, scores < self.share


def same(a, b) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def same_row(one, two) -> bool:
    return all(same(a, b) for a, b in zip(one, two, strict=True))


def changes(row, factual) -> int:
    return sum(not same(a, b) for a, b in zip(row, factual, strict=True))


def gower_sum(row, factual, weights=(1.0,) * 6) -> float:
    total = 0.0
    for j, (a, b) in enumerate(zip(row, factual, strict=True)):
        if not same(a, b):
            whole = RANGE[j] is None or math.isnan(a) or math.isnan(b)
            total += weights[j] * (1.0 if whole else abs(a - b) / RANGE[j])
    return total


def tree_scores(rows, factual):
    fold = plausibility().fold_of(np.array([factual]))
    return plausibility().score(np.array(rows).reshape(-1, 6), np.repeat(fold, len(rows)))


def quantiles(rows, factual) -> list[float]:
    calibration = plausibility().calibration
    return [(1 + (calibration <= score).sum()) / (len(calibration) + 1) for score in tree_scores(rows, factual)]


def crossings(pool, factual):
    """Every crossing that changes what it takes, and nothing known to missing: by size, draw and columns, each once."""
    found, seen = [], set()
    for size in range(1, len(MUTABLE) + 1):
        for draw in pool:
            for columns in combinations(MUTABLE, size):
                if any(math.isnan(draw[j]) or draw[j] == factual[j] for j in columns):
                    continue
                row = tuple(draw[j] if j in columns else factual[j] for j in range(6))
                written = str(row)
                if written not in seen:
                    seen.add(written)
                    found.append(row)
    return found


rows = st.tuples(*(st.sampled_from(values) for values in VALUES))
problems = st.fixed_dictionaries(
    {
        "pools": st.lists(st.lists(rows, min_size=1, max_size=9), min_size=1, max_size=2),
        "factuals": st.lists(st.tuples(st.integers(0, 1), rows), min_size=1, max_size=4, unique_by=str),
        "seed": st.integers(0, 10**6),
        "share": st.sampled_from([0.02, 0.1, 0.5, 1.0]),
        "k": st.sampled_from([1, 2, 5]),
        "floor": st.sampled_from([0.0, 0.05, 0.3, 0.7, 0.97]),
    }
)
bounds = st.builds(Bounds, st.sampled_from([None, 1, 2]), st.sampled_from([None, 0.0, 0.1, 0.3]))


@dataclass(frozen=True)
class Problem:
    pools: Candidates
    factuals: np.ndarray
    model: Model

    @classmethod
    def of(cls, pools, factuals, seed, share, **_) -> Problem:
        """Factuals that share a pool have its fixed value."""
        pools = [[(*row[:3], float(p), *row[4:]) for row in pool] for p, pool in enumerate(pools)]
        factuals = [(i, (*row[:3], float(i % len(pools)), *row[4:])) for i, row in factuals]
        sizes = np.array([len(pool) for pool in pools])
        which = np.array([i % len(pools) for i, _ in factuals])
        ends = np.cumsum(sizes)
        matrix = np.asfortranarray([row for pool in pools for row in pool])
        candidates = Candidates(matrix, (ends - sizes)[which], ends[which])
        return cls(
            candidates, np.array([row for _, row in factuals]), Model(seed, share, tuple(r for _, r in factuals))
        )

    def pool(self, f: int):
        return [tuple(row) for row in self.pools.rows[self.pools.begin[f] : self.pools.end[f]].tolist()]


MEASURES = {
    "default": (("L0", "gower"), None),
    "weighted": (("L0", "gower"), WEIGHTS),
    "gower": (("gower",), None),
    "realism": (("plausibility", "gower"), None),
    "callable": (("L0", lambda candidates, factual: candidates["still"] + candidates["other"]), None),
}


COUNTS_CHANGES_FIRST = ("default", "weighted", "callable")


def order_keys(name, rows, factual):
    """What rows are ordered by."""
    if name == "gower":
        return [(gower_sum(row, factual),) for row in rows]
    if name == "realism":
        return [(-q, gower_sum(row, factual)) for row, q in zip(rows, quantiles(rows, factual), strict=True)]
    if name == "callable":
        return [(changes(row, factual), row[4] + row[5]) for row in rows]
    weights = BY_COLUMN if name == "weighted" else [1.0] * 6
    return [(changes(row, factual), gower_sum(row, factual, weights)) for row in rows]


def search(problem, k, floor, bound=UNBOUNDED, name="default"):
    measures, weights = MEASURES[name]
    ordering = resolve_measures(
        measures, FEATURES, weights=weights, scorers={"plausibility": plausibility().of_candidates}
    )
    searching = SparseSearch(FEATURES, MUTABLE, problem.model, ordering, plausibility(), floor, bound)
    found = searching.search(problem.pools, problem.factuals, k)
    assert (np.diff(found.owner) >= 0).all()
    np.testing.assert_array_equal(found.scores, [problem.model.score(row) for row in found.rows])
    for f, row, score in zip(found.owner, found.rows, found.tree_scores, strict=True):
        assert score == tree_scores([row], problem.factuals[f])[0]
    return [[tuple(row) for row in found.rows[found.owner == f].tolist()] for f in range(len(problem.factuals))]


def within(row, factual, bound):
    return (bound.max_changes is None or changes(row, factual) <= bound.max_changes) and (
        bound.max_gower is None or gower_sum(row, factual) / 6 <= bound.max_gower
    )


def check(problem, f, found, k, floor, bound, name):
    """Compare what was found for one factual with brute force."""
    factual, pool, model = tuple(problem.factuals[f].tolist()), problem.pool(f), problem.model
    crossed = [row for row in crossings(pool, factual) if model.wants(row) and within(row, factual, bound)]
    crossed = [row for row, q in zip(crossed, quantiles(crossed, factual), strict=True) if q >= floor]
    admitted = sorted(zip(order_keys(name, crossed, factual), map(str, crossed), strict=True), key=lambda pair: pair[0])
    found_keys = order_keys(name, found, factual)
    written = [str(row) for row in found]
    assert len(found) <= k
    assert found_keys == sorted(found_keys)
    assert len(set(written)) == len(found)
    for row in found:
        assert model.wants(row)
        assert row[3] == factual[3]
        assert within(row, factual, bound)
        for j, cell in enumerate(row):  # nothing is made up
            assert same(cell, factual[j]) or any(same(cell, draw[j]) for draw in pool)
    if name in COUNTS_CHANGES_FIRST and len(admitted) >= k:  # sorting is stable: ties by draw, then by columns
        assert written == [row for _, row in admitted[:k]]
    for place, row in admitted:  # none is passed over for a worse one
        assert row in written or (len(found) == k and place >= found_keys[-1])
    draws = [draw for draw in pool if model.wants(draw)]
    if any(q < floor for q in quantiles(found, factual)):
        assert not admitted
        assert all(q < floor for q in quantiles(draws, factual))
    if bound == UNBOUNDED and draws:
        assert found


@settings(max_examples=120, deadline=None)
@given(problems, bounds)
def test_the_best_crossings_are_those_of_brute_force(settings, bound):
    problem = Problem.of(**settings)
    k, floor = settings["k"], settings["floor"]
    for f, found in enumerate(search(problem, k, floor, bound)):
        check(problem, f, found, k, floor, bound, "default")


@settings(max_examples=50, deadline=None)
@given(problems, bounds, st.sampled_from(["weighted", "gower", "realism", "callable"]))
def test_the_same_by_other_measures(settings, bound, name):
    problem = Problem.of(**settings)
    k, floor = settings["k"], settings["floor"]
    for f, found in enumerate(search(problem, k, floor, bound, name)):
        check(problem, f, found, k, floor, bound, name)


def plain(problem, f, k, bound):
    """Changes of the published method's choice from the same draws, of those that withhold nothing known."""
    factual = problem.factuals[f]
    draws = np.array(problem.pool(f))
    draws = np.asfortranarray(draws[(np.isnan(draws) <= np.isnan(factual)).all(axis=1)])
    chosen = Selector(FEATURES, MUTABLE, problem.model).select(
        Candidates(draws, np.array([0]), np.array([len(draws)])),
        factual[None],
        k,
        max_changes=bound.max_changes,
        max_gower=bound.max_gower,
    )
    return [changes(draw, factual) for draw in draws[chosen.row]]


@settings(max_examples=60, deadline=None)
@given(problems, bounds, st.sampled_from([(1024, 3), (8, 3), (3, 1)]))
def test_never_more_changes_than_the_best_draws_have(settings, bound, tried):
    """Also where not all crossings are tried."""
    problem, k = Problem.of(**settings), settings["k"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "NEAREST", tried[0])
        patch.setattr(sparse, "LARGEST_SET", tried[1])
        by_factual = search(problem, k, 0.0, bound)
    for f, found in enumerate(by_factual):
        drawn = plain(problem, f, k, bound)
        assert len(found) >= len(drawn)
        for row, most in zip(found, drawn, strict=False):
            assert changes(row, problem.factuals[f]) <= most


def test_a_large_set_does_not_win_over_a_draw_with_fewer_changes():
    """Of 12 features, sets of 4 to 10 are too many to try, and those of 11 and 12 are few again."""
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (40, 12)).astype(float), columns=list("abcdefghijkl"))
    features, mutable = Schema.from_data(X).features, np.arange(12)
    draws = np.ones((80, 12))
    draws[40, :5], draws[40, 5:] = 2.0, 0.0

    def ask(rows):
        return rows.sum(axis=1), rows.sum(axis=1) >= 10

    scorer = Plausibility.fit(X.to_numpy(), features, mutable, 0, 1)
    ordering = resolve_measures(("L0", "gower"), features)
    pools = Candidates(np.asfortranarray(draws), np.array([0]), np.array([80]))
    found = SparseSearch(features, mutable, ask, ordering, scorer, 0.0, UNBOUNDED).search(pools, np.zeros((1, 12)), 1)
    np.testing.assert_array_equal(found.rows, draws[[40]])


@pytest.mark.parametrize("floor", [0.0, 0.01])
def test_a_pair_that_is_not_among_the_nearest_wins_over_three_changes(floor, monkeypatch):
    """Draw 1 changes two features by far; with it, no more than the nearest pair is tried, and three near ones do."""
    monkeypatch.setattr(sparse, "NEAREST", 1)
    factual = (0.0, 0.0, 0.0, 0.0, 5.0, 0.0)
    near, far, withholding = (1.0, 1.0, 1.0, 0.0, 5.0, 0.5), (8.0, 0.0, 0.0, 0.0, 5.0, 4.0), (NAN, *factual[1:])
    sets = [row for row in crossings([near], factual) if changes(row, factual) == 3]
    valid = [far, withholding, min(sets, key=lambda row: gower_sum(row, factual))]

    def ask(rows):
        answer = np.array([any(same_row(row, good) for good in valid) for row in rows])
        return answer.astype(float), answer

    pools = Candidates(np.asfortranarray([near, far, withholding]), np.array([0]), np.array([3]))
    ordering = resolve_measures(("L0", "gower"), FEATURES)
    searching = SparseSearch(FEATURES, MUTABLE, ask, ordering, plausibility(), floor, UNBOUNDED)
    found = searching.search(pools, np.array([factual]), 1)
    np.testing.assert_array_equal(found.rows, [far])


def test_a_single_value_that_is_passed_over_wins_over_two_changes():
    """Of 300 values of a number a third are tried at first; one draw has nothing but a valid one of the others."""
    X = pd.DataFrame({"a": np.arange(300.0), "b": np.arange(300.0) % 2})
    features, mutable = Schema.from_data(X).features, np.arange(2)
    scorer = Plausibility.fit(X.to_numpy(), features, mutable, 0, 1)
    ordering = resolve_measures(("L0", "gower"), features)
    pools = Candidates(np.asfortranarray(X.assign(b=X["a"] % 7 == 0)).astype(float), np.array([0]), np.array([300]))
    for valid in (101.0, 102.0, 103.0):

        def ask(rows, valid=valid):
            answer = (rows[:, 0] == valid) & (rows[:, 1] == 0) | (rows[:, 1] == 1) & (rows[:, 0] > 0)
            return answer.astype(float), answer

        searching = SparseSearch(features, mutable, ask, ordering, scorer, 0.0, UNBOUNDED)
        assert searching.search(pools, np.zeros((1, 2)), 1).rows.tolist() == [[valid, 0.0]]


@pytest.mark.parametrize("ordered", [False, True])
def test_of_many_levels_none_is_passed_over(ordered):
    levels = pd.Categorical([f"l{i:03d}" for i in range(300)], ordered=ordered)
    schema = Schema.from_data(pd.DataFrame({"l": levels, "b": np.arange(300.0) % 2, "c": np.arange(300.0) % 3}))
    X, mutable = np.column_stack([np.arange(300.0), np.ones(300), np.arange(300.0) % 3]), np.arange(3)
    scorer = Plausibility.fit(X, schema.features, mutable, 0, 1)
    ordering = resolve_measures(("L0", "gower"), schema.features)
    pools = Candidates(np.asfortranarray(X), np.array([0]), np.array([300]))
    for valid in (100.0, 101.0, 102.0):

        def ask(rows, valid=valid):
            answer = (rows[:, 0] == valid) | (rows[:, 1] == 1) & (rows[:, 2] == 1)
            return answer.astype(float), answer

        searching = SparseSearch(schema.features, mutable, ask, ordering, scorer, 0.0, UNBOUNDED)
        assert searching.search(pools, np.zeros((1, 3)), 1).rows.tolist() == [[valid, 0.0, 0.0]]


@pytest.mark.parametrize("crossed_bytes", [1, 2_000])
def test_how_many_crossings_are_held_at_a_time_does_not_matter(crossed_bytes, monkeypatch):
    rng = np.random.default_rng(4)
    drawn = [[tuple(float(rng.choice(values)) for values in VALUES) for _ in range(12)] for _ in range(3)]
    problem = Problem.of(drawn[:2], [(i % 2, row) for i, row in enumerate(drawn[2])], seed=1, share=0.1)
    whole = search(problem, 3, 0.3)
    assert sum(map(len, whole)) > 10
    monkeypatch.setattr(sparse, "CROSSED_BYTES", crossed_bytes)
    assert str(search(problem, 3, 0.3)) == str(whole)


def test_more_features_than_can_be_combined(monkeypatch):
    """Of 320 features, pairs are too many to look through; single features are not."""
    monkeypatch.setattr(mcce.candidates.plausibility, "TREES", 1)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 4, (30, 320)).astype(float), columns=[f"x{j}" for j in range(320)])
    features, mutable = Schema.from_data(X).features, np.arange(320)
    scorer = Plausibility.fit(X.to_numpy(), features, mutable, 0, 1)
    draws = rng.integers(0, 4, (1_000, 320)).astype(float)
    factuals = np.zeros((2, 320))
    factuals[1, 7] = 1.0

    def ask(rows):
        return rows[:, 7], rows[:, 7] >= 2

    ordering = resolve_measures(("L0", "gower"), features)
    pools = Candidates(np.asfortranarray(draws), np.zeros(2, dtype=int), np.full(2, 1_000))
    found = SparseSearch(features, mutable, ask, ordering, scorer, 0.0, UNBOUNDED).search(pools, factuals, 1)
    expected = np.zeros((2, 320))
    expected[:, 7] = 2.0
    np.testing.assert_array_equal(found.rows, expected)
