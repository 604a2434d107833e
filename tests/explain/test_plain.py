"""Selection compared with the algorithm of the paper: filter, sort, take the first."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.explain.draw import Candidates
from mcce.explain.plain import ROUNDS, Selector
from mcce.explain.winners import Winners
from mcce.table import Schema
from tests.marks import examples, nightly

NAN = np.nan
TRAINING = pd.DataFrame(
    {
        "number": [0.0, 4.0, 2.0, NAN],
        "level": ["a", "b", "c", None],
        "grade": pd.Categorical(["1", "2", "3", "1"], ordered=True),
        "still": [1.0, 1.0, 1.0, 1.0],
        "kept": [0.0, 1.0, 2.0, 3.0],
    }
)
FEATURES = Schema.from_data(TRAINING).features
MUTABLE = np.array([0, 1, 2, 3])  # "kept" is fixed
RANGE = [4.0, None, 2.0, None, 3.0]  # None: any change counts 1
VALUES = [[0.0, 1.0, 2.0, 4.0, NAN], [0.0, 1.0, 2.0, NAN], [0.0, 1.0, 2.0], [1.0, 2.0], [0.0]]


class Model:
    """A model that answers from a table of scores, one for each distinct row, and records its queries."""

    def __init__(self, seed: int, share_valid: float) -> None:
        self.seed, self.share_valid = seed, share_valid
        self.queried: list[tuple[float, ...]] = []

    def score(self, row) -> float:
        key = [int(-1 if math.isnan(v) else v) + 1 for v in row]
        return float(np.random.default_rng([self.seed, *key]).random())

    def is_valid(self, row) -> bool:
        return self.score(row) < self.share_valid

    def __call__(self, rows):
        assert rows.shape[0] > 0
        self.queried += [tuple(row) for row in rows]
        scores = np.array([self.score(row) for row in rows])
        return scores, scores < self.share_valid


def same(a, b) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def plain_way(pools: Candidates, factuals, k: int, model: Model) -> list[list[int]]:
    """Section 2.3 literally: valid rows, sorted by (L0, Gower, draw), each row once, the first k."""
    answer = []
    for f, factual in enumerate(factuals):
        ranked = []
        for draw in range(pools.begin[f], pools.end[f]):
            row, changes, gower = pools.rows[draw], 0, 0.0
            if not model.is_valid(row):
                continue
            for j in MUTABLE:
                if not same(row[j], factual[j]):
                    changes += 1
                    whole = RANGE[j] is None or math.isnan(row[j]) or math.isnan(factual[j])
                    gower += 1.0 if whole else abs(row[j] - factual[j]) / RANGE[j]
            ranked.append((changes, gower, draw))
        chosen: list[int] = []
        for _, _, draw in sorted(ranked):
            if not any(all(map(same, pools.rows[draw], pools.rows[other])) for other in chosen):
                chosen.append(draw)
        answer.append(chosen[:k])
    return answer


def random_pools(rng, n_factuals: int, n_draws: int, shared: bool, spread: int) -> tuple[Candidates, np.ndarray]:
    """Return candidates with few distinct values, which give many ties and duplicates."""
    n_pools = 1 if shared else n_factuals
    columns = [rng.choice(values[:spread] + values[-1:], n_pools * n_draws) for values in VALUES]
    factuals = np.column_stack([rng.choice(values, n_factuals) for values in VALUES])
    begin = np.zeros(n_factuals, dtype=np.int64) if shared else np.arange(n_factuals) * n_draws
    return Candidates(np.asfortranarray(np.column_stack(columns)), begin, begin + n_draws), factuals


def places(chosen: Winners, pools: Candidates) -> np.ndarray:
    """Return the positions of the winners among the candidates; of equal rows the earlier one is chosen."""
    found = []
    for f, row in zip(chosen.owner, chosen.rows, strict=True):
        own = range(pools.begin[f], pools.end[f])
        found.append(next(i for i in own if all(map(same, pools.rows[i], row))))
    return np.array(found, dtype=np.int64)


def chosen_by_factual(chosen: Winners, pools: Candidates, n_factuals: int) -> list[list[int]]:
    return [places(chosen, pools)[chosen.owner == f].tolist() for f in range(n_factuals)]


def check_against_plain_way(pools, factuals, k, seed, share_valid) -> tuple[Model, Winners]:
    expected = plain_way(pools, factuals, k, Model(seed, share_valid))
    outcomes = {}
    for exhaustive in (True, False):
        model = Model(seed, share_valid)
        chosen = Selector(FEATURES, MUTABLE, model).select(pools, factuals, k, exhaustive=exhaustive)
        assert chosen_by_factual(chosen, pools, len(factuals)) == expected
        assert (np.diff(chosen.owner) >= 0).all()
        assert len(model.queried) <= len(pools.rows)
        assert chosen.scores.tolist() == [model.score(pools.rows[r]) for r in places(chosen, pools)]
        outcomes[exhaustive] = model, chosen
    assert len(outcomes[True][0].queried) == len(pools.rows)
    return outcomes[False]


@examples(40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_factuals=st.integers(1, 5),
    n_draws=st.integers(1, 60),
    k=st.integers(1, 5),
    share_valid=st.sampled_from([0.0, 0.02, 0.1, 0.5, 0.9, 1.0]),
    shared=st.booleans(),
    spread=st.integers(1, 4),
)
def test_lazy_and_exhaustive_selection_agree_with_plain_algorithm(
    seed, n_factuals, n_draws, k, share_valid, shared, spread
):
    pools, factuals = random_pools(np.random.default_rng(seed), n_factuals, n_draws, shared, spread)
    check_against_plain_way(pools, factuals, k, seed, share_valid)


def numbered_pools(rng, n_factuals: int, n_draws: int, shared: bool) -> tuple[Candidates, np.ndarray]:
    """Return mostly distinct candidates: the number has many values on a grid of exact fractions."""
    pools, factuals = random_pools(rng, n_factuals, n_draws, shared, 4)
    pools.rows[:, 0] = rng.integers(0, 4 * n_draws, len(pools.rows)) / 1024
    return pools, factuals


class NumberModel(Model):
    def score(self, row) -> float:
        key = [int(-1 if math.isnan(v) else v * 1024) + 1 for v in row]
        return float(np.random.default_rng([self.seed, *key]).random())


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("k", [2, *nightly(1, 5)])
@pytest.mark.parametrize("share_valid", [0.0, 0.0005, 0.005, *nightly(0.05)])
def test_rarely_valid_pools_are_searched_completely(share_valid, k, shared, monkeypatch):
    """More than 256 candidates are queried: the last rounds and the full ranking are used."""
    monkeypatch.setitem(globals(), "Model", NumberModel)
    rng = np.random.default_rng(17)
    pools, factuals = numbered_pools(rng, 2, 800, shared)
    model, chosen = check_against_plain_way(pools, factuals, k, 3, share_valid)
    distinct = len({tuple(np.nan_to_num(row, nan=-1)) for row in pools.rows})
    assert distinct > 2 * ROUNDS[-1]
    if share_valid == 0:
        assert chosen.owner.size == 0
        assert chosen.scores.size == 0
        # answers are cached by position in the pool, so equal rows may be queried at several positions
        assert distinct <= len(model.queried) <= len(pools.rows)
    elif share_valid < 0.005:
        assert len(model.queried) > ROUNDS[-1]


@pytest.mark.parametrize("few", [0, 10_000])
@pytest.mark.parametrize("share_valid", [0.02, 0.5])
def test_number_of_candidates_may_differ_by_factual(share_valid, few):
    pools, factuals = random_pools(np.random.default_rng(3), 4, 400, False, 4)
    k = np.array([1, 9, 2, 5])
    chosen = Selector(FEATURES, MUTABLE, Model(3, share_valid), few).select(pools, factuals, k)
    found = chosen_by_factual(chosen, pools, 4)
    for f, most in enumerate(k.tolist()):
        assert found[f] == plain_way(pools, factuals, most, Model(3, share_valid))[f]


@examples(10)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 5), share_valid=st.sampled_from([0.0, 0.01, 0.3, 1.0]))
def test_no_candidate_is_queried_twice(seed, k, share_valid):
    pools, factuals = random_pools(np.random.default_rng(seed), 4, 400, True, 4)
    pools.rows[:, 4] = np.arange(400)  # a fixed column that numbers the candidates
    queried: list[float] = []

    def model(rows):
        queried.extend(rows[:, 4])
        scores = np.array([Model(seed, share_valid).score(row[:4]) for row in rows])
        return scores, scores < share_valid

    Selector(FEATURES, MUTABLE, model).select(pools, factuals, k)
    assert len(queried) == len(set(queried))


@pytest.mark.slow
def test_few_rows_are_queried_if_most_are_valid():
    rng = np.random.default_rng(5)
    n_factuals, n_draws = 20, 500
    pools, factuals = numbered_pools(rng, n_factuals, n_draws, False)
    model = NumberModel(1, 0.9)
    chosen = Selector(FEATURES, MUTABLE, model).select(pools, factuals, 1)
    assert (np.bincount(chosen.owner) == 1).all()
    assert len(model.queried) <= n_factuals * ROUNDS[0]
    everything = NumberModel(1, 0.9)
    exhaustive = Selector(FEATURES, MUTABLE, everything).select(pools, factuals, 1, exhaustive=True)
    assert len(everything.queried) == n_factuals * n_draws
    np.testing.assert_array_equal(chosen.rows, exhaustive.rows)


def always(rows):
    return np.ones(len(rows)), np.ones(len(rows), dtype=bool)


def one_pool(rows) -> Candidates:
    return Candidates(np.asfortranarray(rows, dtype=float), np.array([0]), np.array([len(rows)]))


@pytest.mark.parametrize("exhaustive", [False, True])
class TestOrder:
    FACTUAL = np.array([[0.0, 0.0, 0.0, 1.0, 0.0]])

    def rows(self, pool, k, exhaustive, factual=FACTUAL) -> list[int]:
        pools = one_pool(pool)
        chosen = Selector(FEATURES, MUTABLE, always).select(pools, factual, k, exhaustive=exhaustive)
        return places(chosen, pools).tolist()

    def test_fewer_changes_are_preferred_to_smaller_distance(self, exhaustive):
        # one large change (distance 1) against two small ones (distance 0.25 + 0.5)
        assert self.rows([[1, 0, 1, 1, 0], [4, 0, 0, 1, 0]], 2, exhaustive) == [1, 0]

    def test_distance_breaks_ties_in_number_of_changes(self, exhaustive):
        assert self.rows([[0, 1, 0, 1, 0], [0, 0, 1, 1, 0], [1, 0, 0, 1, 0]], 3, exhaustive) == [2, 1, 0]

    def test_earlier_draw_wins_a_tie(self, exhaustive):
        assert self.rows([[0, 2, 0, 1, 0], [0, 1, 0, 1, 0], [4, 0, 0, 1, 0]], 3, exhaustive) == [0, 1, 2]

    def test_equal_rows_are_returned_once(self, exhaustive):
        pool = [[2, 0, 0, 1, 0], [2, 0, 0, 1, 0], [NAN, NAN, 0, 1, 0], [NAN, NAN, 0, 1, 0]]
        assert self.rows(pool, 4, exhaustive) == [0, 2]

    def test_missing_in_factual_and_candidate_is_not_a_change(self, exhaustive):
        factual = np.array([[NAN, NAN, 0, 1, 0]])
        pool = [[0, NAN, 0, 1, 0], [NAN, NAN, 2, 1, 0], [NAN, NAN, 1, 1, 0]]
        assert self.rows(pool, 3, exhaustive, factual) == [2, 0, 1]

    def test_changed_constant_column_counts_one(self, exhaustive):
        factual = np.array([[0, 0, 0, 2.0, 0]])
        assert self.rows([[4, 0, 0, 2, 0], [0, 0, 0, 1, 0], [2, 0, 0, 2, 0]], 3, exhaustive, factual) == [
            2,
            0,
            1,
        ]

    def test_minus_zero_equals_zero(self, exhaustive):
        assert self.rows([[-0.0, 1, 0, 1, 0], [0.0, 1, 0, 1, 0], [1, 0, 0, 1, 0]], 3, exhaustive) == [2, 0]

    def test_fixed_columns_are_ignored(self, exhaustive):
        assert self.rows([[2, 0, 0, 1, 0], [1, 0, 0, 1, 3]], 1, exhaustive) == [1]


@pytest.mark.parametrize("exhaustive", [False, True])
def test_no_factuals_and_empty_pools(exhaustive):
    nobody = np.empty((0, 5))
    none = np.empty(0, dtype=np.int64)
    selector = Selector(FEATURES, MUTABLE, always)
    chosen = selector.select(Candidates(np.empty((0, 5), order="F"), none, none), nobody, 1, exhaustive=exhaustive)
    assert chosen.rows.size == chosen.owner.size == 0
    rows = np.asfortranarray([[1.0, 0, 0, 1, 0]])
    pools = Candidates(rows, np.array([0, 1]), np.array([1, 1]))  # the second factual has no candidate
    chosen = selector.select(pools, np.zeros((2, 5)), 2, exhaustive=exhaustive)
    assert chosen.owner.tolist() == [0]
    assert places(chosen, pools).tolist() == [0]


@pytest.mark.parametrize("labels", [["good", "bad"], [True, False]])
def test_scores_may_be_labels(labels):
    def model(rows):
        wanted = rows[:, 0] > 0
        return np.where(wanted, *np.array(labels, dtype=object)), wanted

    chosen = Selector(FEATURES, MUTABLE, model).select(
        one_pool([[0, 0, 0, 1, 0], [1, 0, 0, 1, 0], [2, 0, 0, 1, 0]]), np.zeros((1, 5)), 5
    )
    assert chosen.scores.tolist() == [labels[0]] * 2


def test_measures_coincide_if_all_columns_are_categorical():
    """Regression: L0 and Gower's sum shared a buffer, which was updated twice."""
    rng = np.random.default_rng(0)
    table = Schema.from_data(pd.DataFrame({c: rng.choice(list("xyz"), 300) for c in "abcd"}))
    rows = np.asfortranarray(rng.integers(0, 3, (300, 4)).astype(float))
    pools = Candidates(rows, np.zeros(4, dtype=np.int64), np.full(4, 300))
    chosen = Selector(table.features, np.arange(4), lambda some: (some[:, 0], np.ones(len(some), dtype=bool))).select(
        pools, rows[:4], 40
    )
    for f in range(4):
        mine = chosen.rows[chosen.owner == f]
        changes = (mine != rows[f]).sum(axis=1)
        assert len(np.unique(mine, axis=0)) == len(mine) == 40
        assert (np.diff(changes) >= 0).all()
        assert changes.tolist() == sorted((np.unique(rows, axis=0) != rows[f]).sum(axis=1))[:40]
