"""The greedy selection of diverse counterfactuals, compared with brute force over all candidates."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcce import MCCE
from mcce.explain.acceptance import Acceptance
from mcce.explain.diverse import Spread, diverse_set, diversity_table
from mcce.explain.draw import Candidates
from mcce.explain.order import resolve_measures
from mcce.explain.problem import Problem, Settings
from mcce.table import Schema
from tests.explain.test_plain import FEATURES, MUTABLE, RANGE, VALUES, Model, same
from tests.marks import examples

N_COLUMNS = len(FEATURES)


def differing(a, b) -> int:
    return sum(not same(u, v) for u, v in zip(a, b))


def gower(a, b) -> float:
    total = 0.0
    for j, (u, v) in enumerate(zip(a, b)):
        if not same(u, v):
            whole = RANGE[j] is None or math.isnan(u) or math.isnan(v)
            total += 1.0 if whole else abs(u - v) / RANGE[j]
    return total / N_COLUMNS


def brute_force(rows, factual, k: int, model: Model, measures: tuple[str, ...]) -> list[tuple[float, ...]]:
    """The definition literally: at each step consider all remaining valid rows and take the largest gain."""
    valid: list[tuple[float, ...]] = []
    for row in rows:
        if model.is_valid(row) and all(differing(row, other) for other in valid):
            valid.append(tuple(row))
    count = "L0" in measures

    def d(a, b):
        return gower(a, b) + (differing(a, b) / N_COLUMNS if count else 0.0)

    def key(c):
        values = {"L0": differing(c, factual), "gower": round(gower(c, factual), 12)}
        return [values[name] for name in measures] + [valid.index(c)]

    chosen = sorted(valid, key=key)[:1]
    while chosen and len(chosen) < min(k, len(valid)):
        left = [c for c in valid if c not in chosen]
        gains = [round(min(d(c, s) for s in chosen) - 1.5 * d(c, factual), 10) for c in left]
        best = [c for c, gain in zip(left, gains) if gain == max(gains)]
        chosen.append(min(best, key=key))
    return sorted(chosen, key=lambda c: key(c)[:-1])  # on ties, the one chosen earlier


def choose(rows, begin, end, factuals, k: int, model, measures: tuple[str, ...]):
    """Return the rows that are chosen for each factual."""
    fixed = [f.name for j, f in enumerate(FEATURES) if j not in MUTABLE]
    problem = Problem(
        generator=SimpleNamespace(schema_=Schema(FEATURES), fixed_=fixed),
        decision=None,
        question=SimpleNamespace(predict_encoded=model),
        settings=Settings(n_samples=0, n_counterfactuals=k, diverse=True),
        order=resolve_measures(measures, FEATURES),
    )
    pools = Candidates(np.asfortranarray(rows), np.array(begin), np.array(end))
    found = diverse_set(Acceptance(problem, factuals), pools)
    return [[tuple(row) for row in found.rows[found.owner == f]] for f in range(factuals.shape[0])]


def random_rows(rng: np.random.Generator, n: int):
    rows = np.column_stack([rng.choice(values, n) for values in VALUES])
    rows[:, 4] = 0.0
    return rows


def agree(one, two) -> bool:
    return len(one) == len(two) and all(not differing(a, b) for a, b in zip(one, two))


@examples(20)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    k=st.integers(1, 6),
    share=st.sampled_from([0.1, 0.5, 1.0]),
    measures=st.sampled_from([("L0", "gower"), ("gower",), ("gower", "L0")]),
)
def test_each_greedy_step_has_the_largest_gain(seed, n, k, share, measures):
    rng = np.random.default_rng(seed)
    rows, factuals = random_rows(rng, 2 * n), random_rows(rng, 3)
    assume(all(differing(a, b) for a, b in itertools.combinations(factuals, 2)))  # equal factuals would share a pool
    begin, end = [0, n // 2, 0], [n, 2 * n, n]  # overlapping pools, and one shared by two factuals
    model = Model(seed, share)
    found = choose(rows, begin, end, factuals, k, model, measures)
    for f in range(3):
        expected = brute_force(rows[begin[f] : end[f]], factuals[f], k, model, measures)
        assert agree(found[f], expected), (found[f], expected)
    assert len(model.queried) == len({str(row) for row in model.queried})  # no row is queried twice


@pytest.mark.slow
@examples(5)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 5))
def test_result_is_independent_of_factual_order_and_batch(seed, k):
    rng = np.random.default_rng(seed)
    rows, factuals = random_rows(rng, 40), random_rows(rng, 70)  # more than the cache holds
    begin, end = np.zeros(70, dtype=np.int64), np.full(70, 40)
    found = choose(rows, begin, end, factuals, k, Model(seed, 0.5), ("L0", "gower"))
    shuffled = rng.permutation(70)
    again = choose(rows, begin, end, factuals[shuffled], k, Model(seed, 0.5), ("L0", "gower"))
    for place, f in enumerate(shuffled):
        assert agree(again[place], found[f])
    alone = choose(rows, begin[:1], end[:1], factuals[:1], k, Model(seed, 0.5), ("L0", "gower"))
    assert agree(alone[0], found[0])


def test_different_feature_is_preferred_to_same_feature():
    """Three rows move a number; an alternative with nothing in common may cost up to five times as much, no more."""
    rows = np.array(
        [
            [0.5, 0.0, 0.0, 1.0, 0.0],
            [0.6, 0.0, 0.0, 1.0, 0.0],
            [0.7, 0.0, 0.0, 1.0, 0.0],
            [0.0, 0.0, 1.0, 1.0, 0.0],
            [0.0, 1.0, 0.0, 1.0, 0.0],
        ]
    )
    factual = np.array([[0.0, 0.0, 0.0, 1.0, 0.0]])
    always = Model(0, 1.1)
    first, _, _, other, _ = map(tuple, rows)  # steps of 0.5 / 4 and 1 / 2: four times as much
    assert choose(rows, [0], [5], factual, 2, always, ("gower",))[0] == [first, other]
    nearer = rows - np.array([[0.2, 0, 0, 0, 0]] * 3 + [[0] * 5] * 2)  # 0.3 / 4 and 1 / 2: more than six times
    assert choose(nearer, [0], [5], factual, 2, always, ("gower",))[0] == [tuple(nearer[0]), tuple(nearer[1])]
    # if changes are counted, each change has a cost, and the alternative is relatively cheaper
    found = choose(nearer, [0], [5], factual, 2, always, ("L0", "gower"))
    assert found[0] == [tuple(nearer[0]), other]


def test_opposite_directions_have_zero_overlap():
    rows = np.array([[v, 0.0, 0.0, 1.0, 0.0] for v in (2.5, 2.6, 2.7, 1.2)])
    factual = np.array([[2.0, 0.0, 0.0, 1.0, 0.0]])
    found = choose(rows, [0], [4], factual, 2, Model(0, 1.1), ("L0", "gower"))
    assert [row[0] for row in found[0]] == [2.5, 1.2]


def test_no_valid_candidate_gives_empty_result():
    rows = random_rows(np.random.default_rng(0), 20)
    assert choose(rows, [0], [20], rows[:1], 3, Model(0, -1.0), ("L0", "gower")) == [[]]


def test_diversity_table_matches_hand_calculation():
    rows = np.array(
        [
            [0.0, 0.0, 0.0, 1.0, 0.0],
            [1.0, 0.0, 0.0, 1.0, 0.0],
            [1.0, 1.0, 2.0, 1.0, 0.0],
            [np.nan, 0.0, 0.0, 1.0, 0.0],
        ]
    )
    table = diversity_table(np.array([3, 3, 3, 7]), rows, FEATURES)
    assert table.index.tolist() == [3, 7]
    assert table["rows"].tolist() == [3, 1]
    # pairs: (1/4), (1/4 + 1 + 1), (1 + 1), of five features
    assert table.loc[3, "gower"] == pytest.approx((0.25 + 2.25 + 2.0) / 5 / 3)
    assert table.loc[3, "features"] == pytest.approx((1 + 3 + 2) / 5 / 3)
    assert table.loc[7, ["gower", "features"]].isna().all()


@examples(10)
@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 5), min_size=0, max_size=6))
def test_diversity_table_matches_brute_force(seed, sizes):
    rows = random_rows(np.random.default_rng(seed), sum(sizes))
    owner = np.repeat(np.arange(len(sizes)) * 2, sizes)
    table = diversity_table(owner, rows, FEATURES)
    assert table.index.tolist() == sorted(set(owner.tolist()))
    for f, size in zip(table.index, sizes):
        pairs = list(itertools.combinations(rows[owner == f], 2))
        assert table.loc[f, "rows"] == size
        if pairs:
            assert table.loc[f, "gower"] == pytest.approx(np.mean([gower(a, b) for a, b in pairs]))
            share = np.mean([differing(a, b) for a, b in pairs]) / N_COLUMNS
            assert table.loc[f, "features"] == pytest.approx(share)


class Total:
    """The decision requires a large sum of some columns, so the sufficient sets of changes are known."""

    def __init__(self, weights, least):
        self.weights = weights
        self.least = least

    def predict(self, X):
        return sum(weight * X[name].to_numpy() for name, weight in self.weights.items()) > self.least


def plans(weights, least, factuals):
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.uniform(0, 10, (600, 4)).round(1), columns=list("abcd"))
    explainer = MCCE(Total(weights, least), decision=True, random_state=1, n_jobs=1).fit(X)
    found = explainer.explain(factuals, sparse=True, n_counterfactuals=3, diverse=True, n_samples=200)
    sets = found.changes().groupby(["id", "rank"], sort=False)["feature"].agg("".join)
    return explainer, found, sets.groupby(level="id", sort=False).agg(list)


def test_sparse_plans_change_different_features_where_possible():
    """Each of three features suffices alone; the best value of each is returned, not three values of one."""
    factuals = pd.DataFrame([[4.0, 5, 5, 5], [5, 3.5, 5, 5], [5, 5, 5, 0.1]], columns=list("abcd"))
    explainer, found, sets = plans(dict.fromkeys("abc", 1), 17, factuals)
    assert [sorted(each) for each in sets] == [["a", "b", "c"]] * 3
    assert (found.measures["L0"] == 1).all()
    assert not found.below_floor().any()
    assert explainer.model.predict(found.frame).all()
    one = explainer.explain(factuals, sparse=True, n_samples=200)  # the best plan is among them
    assert one.changes().set_index("id")["feature"].isin(["a", "b", "c"]).all()
    for id in factuals.index:
        assert any(one.frame.loc[(id, 1)].equals(row) for _, row in found.frame.loc[id].iterrows())


def test_pair_of_features_is_preferred_to_another_value_of_one():
    """With the second feature the first changes less. Regression: two of three plans were values of one feature."""
    factuals = pd.DataFrame([[5.0, 2, 5, 5], [6.0, 1, 5, 5], [4.0, 3, 5, 5]], columns=list("abcd"))
    _, found, sets = plans({"a": 3, "b": 1}, 23, factuals)
    assert [{*each} for each in sets.iloc[:2]] == [{"a", "b", "ab"}] * 2
    assert {*sets.iloc[2]} >= {"a", "ab"}  # 3 + 10 are not enough
    assert len(found) == 9
    assert not found.below_floor().any()


def test_plans_do_not_differ_by_unneeded_changes():
    """Either of two features suffices, or both together; the other features have no effect."""
    factuals = pd.DataFrame([[4.0, 3.5, 5, 5], [2.5, 3.0, 5, 5]], columns=list("abcd"))
    explainer, found, sets = plans(dict.fromkeys("ab", 1), 12, factuals)
    assert set("".join("".join(each) for each in sets)) <= {"a", "b"}
    assert all(len({*each}) > 1 for each in sets)
    changes = found.changes()
    for (id, rank), some in changes.groupby(["id", "rank"]):
        for feature in some["feature"]:
            row = found.frame.loc[[(id, rank)]].copy()
            row[feature] = factuals.loc[id, feature]
            assert not explainer.model.predict(row).any()


def test_plans_use_different_values_if_one_feature_decides():
    factuals = pd.DataFrame([[4.0, 5, 5, 5]], columns=list("abcd"))
    _, found, sets = plans({"a": 1}, 7, factuals)
    assert len(found) == 3
    assert all("a" in each for each in sets.iloc[0])


@pytest.mark.parametrize("measures", [("L0", "gower"), ("gower",)])
def test_gains_ignore_derived_columns(measures):
    r = np.random.default_rng(1)
    features = Schema.from_data(pd.DataFrame(r.integers(0, 9, (50, 3)), columns=list("abc"))).features
    with_total = Schema.from_data(pd.DataFrame(r.integers(0, 9, (50, 4)), columns=[*"abc", "total"])).features
    rows = r.integers(0, 9, (40, 3)).astype(float)
    rows = np.unique(rows, axis=0)
    totals = np.column_stack([rows, rows.sum(axis=1)])
    plain = Spread(features, resolve_measures(measures, features))
    computed = Spread(with_total, resolve_measures(measures, with_total), [3])
    for spread, some in ((plain, rows), (computed, totals)):
        spread.choose(some[1:3], some[[0, 0]])
    expected, found = plain.gains(rows[3:], rows[0]), computed.gains(totals[3:], totals[0])
    np.testing.assert_allclose(found, expected * 3 / 4, atol=1e-9)
    np.testing.assert_array_equal(
        computed.repeats_features(totals[3:], totals[[0] * len(rows[3:])]),
        plain.repeats_features(rows[3:], rows[[0] * len(rows[3:])]),
    )
