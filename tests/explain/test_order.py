"""Orders of candidates: valid names, and the chosen rows compared with sorting in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import InputError, Schema
from mcce.distances import measures as distances
from mcce.distances.measures import available_measures
from mcce.explain.draw import Candidates
from mcce.explain.order import Measure, Ordering, resolve_feature_weights, resolve_measures
from mcce.explain.plain import Selector
from tests.explain.test_plain import chosen_by_factual, places
from tests.marks import examples

NAN = math.nan
TRAINING = pd.DataFrame(
    {
        "number": [0.0, 4.0, 2.0, NAN, 1.0, 3.0],
        "level": ["a", "b", "c", None, "a", "b"],
        "grade": pd.Categorical(["1", "2", "3", "1", "2", "2"], ordered=True),
        "still": 1.0,
    }
)
SCHEMA = Schema.from_data(TRAINING)
FEATURES = SCHEMA.features
ENCODED = SCHEMA.encode(TRAINING).matrix
DECISION = np.array([True, False, True, False, True, True])
VALUES = [[0.0, 1.0, 2.0, 4.0, NAN], [0.0, 1.0, 2.0, NAN], [0.0, 1.0, 2.0], [1.0, 2.0]]


def resolve(measures, **more) -> Ordering:
    scorers = {"plausibility": lambda rows, _: np.nansum(rows, axis=1) % 3}
    return resolve_measures(measures, FEATURES, training=ENCODED, decision=DECISION, scorers=scorers, **more)


def by_hand(candidates: pd.DataFrame, factual: pd.Series) -> np.ndarray:
    """A custom measure: the grade's distance, and whether the level stays."""
    grade = candidates["grade"].astype(object).map(int) - int(factual["grade"])
    return (grade.abs() + (candidates["level"].astype(object) != factual["level"])).to_numpy()


def values_of(measure, rows, factual) -> list[float]:
    if measure == "plausibility":
        return (-(np.nansum(rows, axis=1) % 3)).tolist()
    if measure is by_hand:
        return by_hand(SCHEMA.decode(rows), SCHEMA.decode(factual[None, :]).iloc[0]).tolist()
    # the sum of steps is compared, before a root or a mean; `test_distances` tests these against their definitions
    function = resolve(measure).measures[0].function
    return function.sums(rows, np.tile(factual, (len(rows), 1))).tolist()


def chosen_by_sorting(measures, pools, factuals, k, valid, max_changes, max_gower) -> list[list[int]]:
    answer = []
    for f, factual in enumerate(factuals):
        at = np.arange(pools.begin[f], pools.end[f])
        rows = pools.rows[at]
        many = np.tile(factual, (len(at), 1))
        changes = distances.changes(FEATURES).between(rows, many)
        gower = distances.gower(FEATURES).between(rows, many)
        keys = list(zip(*[values_of(m, rows, factual) for m in measures], at.tolist()))
        taken: list[int] = []
        seen = set()
        for *_, i in sorted(keys):
            row = tuple(np.nan_to_num(pools.rows[i], nan=-1))
            inside = changes[i - pools.begin[f]] <= max_changes and gower[i - pools.begin[f]] <= max_gower
            if row not in seen and inside and valid(pools.rows[i]):
                seen.add(row)
                taken.append(i)
        answer.append(taken[:k])
    return answer


ORDERS = [
    ("L0", "gower"),
    ("gower",),
    ("L0",),
    ("plausibility", "gower"),
    ("hvdm", "L0"),
    ("L0", "ivdm", "mad"),
    (by_hand,),
    ("L0", by_hand, "l2"),
    ("l1_raw", "plausibility"),
]


@examples(5)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_draws=st.integers(1, 60),
    k=st.integers(1, 4),
    share=st.sampled_from([0.0, 0.1, 0.6, 1.0]),
    shared=st.booleans(),
    bounds=st.sampled_from([(None, None), (2, None), (None, 0.5), (3, 0.25), (0, 0.0)]),
)
@pytest.mark.parametrize("measures", ORDERS)
def test_best_first_and_exhaustive_agree_with_sorting(measures, seed, n_draws, k, share, shared, bounds):
    rng = np.random.default_rng(seed)
    n_factuals = 3
    rows = np.column_stack([rng.choice(v, n_draws * (1 if shared else n_factuals)) for v in VALUES])
    factuals = np.column_stack([rng.choice(v, n_factuals) for v in VALUES])
    begin = np.zeros(n_factuals, dtype=np.int64) if shared else np.arange(n_factuals) * n_draws
    pools = Candidates(np.asfortranarray(rows), begin, begin + n_draws)

    def valid(row) -> bool:
        key = [int(-1 if math.isnan(v) else v) + 1 for v in row]
        return float(np.random.default_rng([seed, *key]).random()) < share

    def query(some):
        wanted = np.array([valid(row) for row in some])
        return wanted.astype(float), wanted

    limits = [math.inf if b is None else b for b in bounds]
    expected = chosen_by_sorting(measures, pools, factuals, k, valid, *limits)
    for exhaustive in (False, True):
        chosen = Selector(FEATURES, np.arange(4), query).select(
            pools, factuals, k, exhaustive=exhaustive, ordering=resolve(measures), max_changes=bounds[0],
            max_gower=bounds[1],
        )  # fmt: skip
        assert chosen_by_factual(chosen, pools, n_factuals) == expected


def always(rows):
    return np.ones(len(rows)), np.ones(len(rows), dtype=bool)


def test_rows_beyond_factual_specific_bounds_are_not_queried():
    rows = np.asfortranarray([[1.0, 0, 0, 1], [4.0, 1, 0, 1], [4.0, 1, 2, 1]])
    factuals = np.array([[0.0, 0, 0, 1]] * 4)
    begin, end = np.zeros(4, dtype=np.int64), np.full(4, 3)
    queried = []

    def query(some):
        queried.append(len(some))
        return always(some)

    pools = Candidates(rows, begin, end)
    chosen = Selector(FEATURES, np.arange(4), query).select(
        pools, factuals, 3, max_changes=[0, 1, 2, 3], max_gower=[1, 1, 0.5, 0.5]
    )
    assert chosen.owner.tolist() == [1, 2, 2, 3, 3]
    assert places(chosen, pools).tolist() == [0, 0, 1, 0, 1]
    assert sum(queried) == 2


@pytest.mark.parametrize("p", [3, 7, 10])
def test_distance_equal_to_the_bound_is_accepted(p):
    """The bound applies to the mean as reported, to the last digit, although sums are compared."""
    rng = np.random.default_rng(p)
    X = rng.random((50, p))
    features = Schema.from_data(X).features
    rows, factual = np.asfortranarray(rng.random((200, p))), rng.random((1, p))
    reported = distances.gower(features).between(rows, np.tile(factual, (200, 1)))
    pools = Candidates(rows, np.array([0]), np.array([200]))
    for bound in np.sort(reported)[[0, 50, 120]]:
        chosen = Selector(features, np.arange(p), always).select(pools, factual, 200, max_gower=bound)
        assert sorted(places(chosen, pools).tolist()) == np.flatnonzero(reported <= bound).tolist()


def test_equal_rows_are_merged_if_function_answers_differ_by_position():
    rows = np.asfortranarray([[1.0, 0, 0, 1]] * 5 + [[2.0, 0, 0, 1]])
    ordering = resolve_measures(lambda candidates, factual: -np.arange(len(candidates)), FEATURES)
    pools = Candidates(rows, np.array([0]), np.array([6]))
    chosen = Selector(FEATURES, np.arange(4), always).select(pools, np.zeros((1, 4)), 6, ordering=ordering)
    assert places(chosen, pools).tolist() == [5, 0]


def test_model_based_measure_queries_every_candidate():
    rows = np.asfortranarray([[float(i % 5), 0, 0, 1] for i in range(400)])
    pools = Candidates(rows, np.array([0]), np.array([400]))
    by_model = Ordering((Measure("score", lambda some, _: -some[:, 0], "model"),))
    assert by_model.cost == "model"
    queried = []

    def query(some):
        queried.append(len(some))
        return always(some)

    chosen = Selector(FEATURES, np.arange(4), query).select(pools, np.zeros((1, 4)), 1, ordering=by_model)
    assert (places(chosen, pools).tolist(), queried) == ([4], [400])


def test_equal_rows_are_scored_once_per_factual():
    calls = []

    def score(rows, factual):
        calls.append(len(rows))
        return rows[:, 0]

    ordering = resolve_measures("plausibility", FEATURES, scorers={"plausibility": score})
    assert ordering.cost == "density"
    rows = np.asfortranarray([[0.0, 0, 0, 1], [4.0, 0, 0, 1], [4.0, 0, 0, 1]])
    pools = Candidates(rows, np.zeros(3, dtype=np.int64), np.full(3, 3))
    chosen = Selector(FEATURES, np.arange(4), always).select(pools, np.zeros((3, 4)), 1, ordering=ordering)
    assert places(chosen, pools).tolist() == [1, 1, 1]
    assert calls == [2, 2, 2]


def test_names_costs_and_weights():
    ordering = resolve(["L0", "gower", distances.l2(FEATURES), by_hand])
    assert ordering.names == ["L0", "gower", "l2", "by_hand"]
    assert ordering.cost == "free"
    assert resolve("gower").names == ["gower"]
    weighted = resolve(["L0", "gower"], feature_weights={"level": 3, "still": 0}).measures
    a, b = np.zeros((1, 4)), np.array([[2.0, 1, 0, 1]])
    assert weighted[0].function.between(a, b).tolist() == [3]  # L0 is a count
    assert weighted[1].function.between(a, b).tolist() == [(0.5 + 3) / 5]
    assert resolve_feature_weights(None, FEATURES) is None
    assert resolve_feature_weights({"grade": 2}, FEATURES).tolist() == [1, 1, 2, 1]


@pytest.mark.parametrize(
    ("measures", "more", "message"),
    [
        ((), {}, "measures is empty; name at least one"),
        (("L0", "gowr"), {}, "measures names 'gowr'; did you mean 'gower'"),
        (("L0", "L0"), {}, "measures names 'L0' twice"),
        (3, {}, "measures holds 3; give names, distances or functions"),
        (None, {}, "measures holds None; give names, distances or functions"),
        ((3,), {}, "measures holds 3; give names, distances or functions"),
        ("mad", {}, "measure 'mad' needs the training rows"),
        ("hvdm", {"training": ENCODED}, "measure 'hvdm' compares values by the decisions of the training rows"),
        ("plausibility", {}, "measure 'plausibility' needs the plausibility of rows, .* set sparse=True"),
        (distances.l2(FEATURES[:2]), {}, "the distance 'l2' is of 2 columns and the table has 4"),
        (
            "gower",
            {"feature_weights": {"levl": 2}},
            "feature_weights names 'levl', which is not .* mean 'level'",
        ),
        ("gower", {"feature_weights": {"level": -1}}, r"feature_weights\['level'\] is -1; give a number of at least 0"),
        ("gower", {"feature_weights": {"level": NAN}}, r"feature_weights\['level'\] is nan"),
        ("gower", {"feature_weights": {"level": True}}, r"feature_weights\['level'\] is True"),
        ("gower", {"feature_weights": dict.fromkeys(TRAINING, 0)}, "feature_weights are all 0"),
        (
            "gower",
            {"feature_weights": [1, 2]},
            "feature_weights is .* give weights .* feature_weights={'age': 2}",
        ),
    ],
)
def test_invalid_orders_raise(measures, more, message):
    with pytest.raises(InputError, match=message):
        resolve_measures(measures, FEATURES, **more)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda c, f: np.ones(len(c) + 1), r"returned shape \(4,\) for 3 candidates"),
        (lambda c, f: [1.0, NAN, 2.0], "returned NaN for candidate 1"),
        (lambda c, f: ["a", "b", "c"], "not numbers"),
    ],
)
def test_invalid_answers_of_order_functions_raise(answer, message):
    rows = np.asfortranarray([[1.0, 0, 0, 1], [2.0, 0, 0, 1], [4.0, 0, 0, 1]])
    selector = Selector(FEATURES, np.arange(4), always)
    with pytest.raises(InputError, match=message):
        selector.select(
            Candidates(rows, np.array([0]), np.array([3])),
            np.zeros((1, 4)),
            1,
            ordering=resolve_measures(answer, FEATURES),
        )


def test_every_name_resolves():
    assert resolve_measures(
        available_measures(), FEATURES, training=ENCODED, decision=DECISION,
        scorers={name: lambda rows, _: rows[:, 0] for name in ("plausibility",)},
    ).names == available_measures()  # fmt: skip
