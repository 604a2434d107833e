"""The sparse search compared with brute force over every crossing of every draw."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import mcce
import mcce.explain.sparse as sparse
from mcce.explain.draw import Candidates
from mcce.explain.order import Caution, Margins
from mcce.explain.plain import Selector
from mcce.plausibility.score import Scale
from tests.explain.small_cases import (
    COUNTS_CHANGES_FIRST,
    FEATURES,
    MUTABLE,
    UNBOUNDED,
    VALUES,
    Bounds,
    Case,
    changes,
    crossings,
    order_keys,
    plausibility,
    quantiles,
    same,
    search,
    within,
)
from tests.marks import examples

rows = st.tuples(*(st.sampled_from(values) for values in VALUES))
cases = st.fixed_dictionaries(
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


BY_DISTANCE = ("default", "weighted", "gower")


def is_needed(row, factual, model, floor):
    """Return whether no change can be undone so that the row stays valid and at or above the floor."""
    changed = [j for j in range(6) if not same(row[j], factual[j])]
    without = [tuple(factual[i] if i == j else row[i] for i in range(6)) for j in changed] if len(changed) > 1 else []
    return not any(
        model.wants(less) and q >= floor for less, q in zip(without, quantiles(without, factual), strict=True)
    )


def check(case, f, found, k, floor, bound, name):
    """Compare the result for one factual with brute force."""
    factual, pool, model = tuple(case.factuals[f].tolist()), case.pool(f), case.model
    crossed = [row for row in crossings(pool, factual) if model.wants(row) and within(row, factual, bound)]
    crossed = [row for row, q in zip(crossed, quantiles(crossed, factual), strict=True) if q >= floor]
    if name in BY_DISTANCE:
        crossed = [row for row in crossed if is_needed(row, factual, model, floor)]
        assert all(is_needed(row, factual, model, floor) for row in found)
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
        for j, cell in enumerate(row):  # every value was drawn or belongs to the factual
            assert same(cell, factual[j]) or any(same(cell, draw[j]) for draw in pool)
    # with several rows, those with an unneeded change block others: fewer, or others of that size, may be found
    if k > 1 and name in BY_DISTANCE:
        return
    if name in COUNTS_CHANGES_FIRST and len(admitted) >= k:  # sorting is stable: ties by draw, then by columns
        assert written == [row for _, row in admitted[:k]]
    for place, row in admitted:  # no better row is skipped
        assert row in written or (len(found) == k and place >= found_keys[-1])
    draws = [draw for draw in pool if model.wants(draw)]
    if any(q < floor for q in quantiles(found, factual)):
        assert not admitted
        assert all(q < floor for q in quantiles(draws, factual))
    if bound == UNBOUNDED and draws:
        assert found


@examples(20)
@given(cases, bounds)
def test_best_crossings_match_brute_force(settings, bound):
    case = Case.of(**settings)
    k, floor = settings["k"], settings["floor"]
    for f, found in enumerate(search(case, k, floor, bound)):
        check(case, f, found, k, floor, bound, "default")


@examples(12)
@given(cases, bounds, st.sampled_from(["weighted", "gower", "realism", "callable"]))
def test_best_crossings_match_brute_force_for_other_measures(settings, bound, name):
    case = Case.of(**settings)
    k, floor = settings["k"], settings["floor"]
    for f, found in enumerate(search(case, k, floor, bound, name)):
        check(case, f, found, k, floor, bound, name)


HARMFUL = {  # the only rows at or above the floor have a change that makes the score worse
    "pools": [[(0.0, 1.0, 2.0, 0.0, 5.0, 4.0), (2.0, 0.0, 1.0, 0.0, 5.0, 0.5), (2.0, 1.0, 1.0, 0.0, 5.0, 0.0)]],
    "factuals": [(0, (0.0, 2.0, 1.0, 0.0, 5.0, 0.5))],
    "seed": 35,
    "share": 1.0,
    "k": 1,
    "floor": 0.7,
}


@examples(40)
@example(HARMFUL, UNBOUNDED, 0.0)
@example(HARMFUL, UNBOUNDED, 1.0)
@given(cases, bounds, st.sampled_from([0.0, 1.0]))
def test_no_row_is_below_the_floor_if_a_candidate_reaches_it(settings, bound, strength):
    """Holds also if every candidate has a change that lowers the score, as often with random scores."""
    case = Case.of(**settings)
    k, floor, wants = settings["k"], settings["floor"], case.model.wants
    margins = Margins(-np.inf, settings["share"], Scale.of(np.linspace(0.0, settings["share"], 5), None))
    caution = Caution(plausibility(), margins, strength)
    for f, found in enumerate(search(case, k, floor, bound, caution=caution)):
        factual, pool = tuple(case.factuals[f].tolist()), case.pool(f)
        crossed = [row for row in crossings(pool, factual) if wants(row) and within(row, factual, bound)]
        candidates = crossed + [draw for draw in pool if wants(draw)]
        if any(q >= floor for q in quantiles(candidates, factual)):
            assert all(q >= floor for q in quantiles(found, factual))
        if any(q >= floor for q in quantiles(crossed, factual)):
            assert found


def plain(case, f, k, bound):
    """Return the changes of the plain method's choice from the same draws, without known values set to missing."""
    factual = case.factuals[f]
    draws = np.array(case.pool(f))
    draws = np.asfortranarray(draws[(np.isnan(draws) <= np.isnan(factual)).all(axis=1)])
    chosen = Selector(FEATURES, MUTABLE, case.model).select(
        Candidates(draws, np.array([0]), np.array([len(draws)])),
        factual[None],
        k,
        max_changes=bound.max_changes,
        max_gower=bound.max_gower,
    )
    return [changes(draw, factual) for draw in chosen.rows]


@examples(15)
@given(cases, bounds, st.sampled_from([(1024, 3), (8, 3), (3, 1)]))
def test_never_more_changes_than_the_best_draws_have(settings, bound, tried):
    """Holds also if not all crossings are tried."""
    case, k = Case.of(**settings), settings["k"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "NEAREST", tried[0])
        patch.setattr(sparse, "LARGEST_SET", tried[1])
        by_factual = search(case, k, 0.0, bound)
    for f, found in enumerate(by_factual):
        drawn = plain(case, f, k, bound)
        assert bool(found) >= bool(drawn)
        for row, most in zip(found, drawn, strict=False):
            assert changes(row, case.factuals[f]) <= most


def test_few_factuals_need_few_queries():
    """No single change suffices, so all single crossings and many pairs are queried."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"x{j}": rng.integers(0, 30, 300).astype(float) for j in range(4)})
    queries = []

    def score(rows):
        queries.append(len(rows))
        return ((rows["x0"] > 20) & (rows["x1"] > 20)).to_numpy().astype(float)

    explainer = mcce.MCCE(score, decision=(0.5, 1.0), random_state=1, n_jobs=1).fit(X)
    refused = X[score(X) < 0.5]
    explainer.explain(refused.head(1), n_samples=100, sparse=True, progress=False)  # fits the plausibility
    # 11 and 18 with a query for each turn, the factuals in two parts, and separate queries without each change
    for n_factuals, most_queries, most_rows in [(40, 4, 7000), (180, 9, 22_000)]:
        queries.clear()
        explainer.explain(refused.head(n_factuals), n_samples=100, sparse=True, progress=False)
        assert len(queries) <= most_queries
        assert sum(queries) <= most_rows
