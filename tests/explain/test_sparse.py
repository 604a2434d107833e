"""The promises of `sparse=True`, against brute force over all crossings of the draws."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.distances import changed
from mcce.explain.acceptance import Acceptance
from mcce.explain.draw import draw_shared
from mcce.explain.factuals import read_factuals
from tests.explain.tables import people, refused, score


def small(n=300, seed=5):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, n)
    b = np.clip(a + rng.integers(-1, 2, n), 0, 4)
    c = rng.choice(["x", "y", "z"], n)
    d = np.where(rng.random(n) < 0.7, c == "x", b > 2)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d})


def small_score(rows):
    weight = rows["c"].astype(str).map({"x": 0.0, "y": 0.6, "z": 1.1}).astype(float)
    return 1 / (1 + np.exp(-(0.8 * rows["a"] + 0.7 * rows["b"] + weight + rows["d"] - 4.2).to_numpy(dtype=float)))


def problem_of(explainer, X, **options):
    defaults = {"n_samples": 40, "n_counterfactuals": 1, "sparse": True, "floor": 0.05}
    problem = explainer._problem({**defaults, **options}, (), None, None, None)
    factuals = read_factuals(X, explainer.generator_, problem.query)
    return problem, factuals.matrix


@pytest.mark.parametrize("floor", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("fixed", [[], ["a"]])
def test_no_crossing_of_the_draws_changes_less(floor, fixed):
    X = small()
    factuals = X[small_score(X) < 0.5].head(8)
    explainer = mcce.MCCE(small_score, fixed=fixed, random_state=2).fit(X)
    found = explainer.explain(factuals, sparse=True, floor=floor, n_samples=40)
    problem, matrix = problem_of(explainer, factuals, floor=floor)
    acceptance, pools = Acceptance(problem, matrix), draw_shared(problem, matrix)
    for f in range(len(factuals)):
        draws = pools.rows(np.arange(pools.begin[f], pools.end[f]))
        sizes = []
        for size in (1, 2, 3):
            for columns in combinations(problem.counted, size):
                rows = np.tile(matrix[f], (len(draws), 1))
                rows[:, columns] = draws[:, columns]
                owner = np.full(len(rows), f)
                accepted = acceptance.admits(rows, owner) & acceptance.plausible(rows, owner)
                accepted &= acceptance.query(rows).wanted
                sizes += changed(rows[accepted], matrix[owner][accepted]).sum(axis=1).tolist()
        name = factuals.index[f]
        if sizes:
            assert found.measures.loc[(name, 1), "L0"] <= min(sizes)
            assert not found.measures.loc[(name, 1), "below_floor"]


def accepted_without_a_change(explainer, X, factuals, found, **options):
    """Return, for every change of a returned row, whether the row without it is accepted, and the gain in margin."""
    problem, matrix = problem_of(explainer, factuals, **options)
    acceptance = Acceptance(problem, matrix)
    at_floor = found.measures["below_floor"].to_numpy() == 0
    ids = found.frame.index.get_level_values("id")
    owner = factuals.index.get_indexer(ids)[at_floor]
    rows = explainer.generator_.schema_.encode(found.frame.reset_index(drop=True)).matrix[at_floor]
    at, column = np.nonzero(acceptance.changes(rows, owner))
    without = rows[at]
    without[np.arange(at.size), column] = matrix[owner[at], column]
    without = acceptance.complete(without, owner[at])
    fewer = acceptance.changes(without, owner[at]).sum(axis=1) < acceptance.changes(rows, owner).sum(axis=1)[at]
    at, without = at[fewer], without[fewer]
    accepted = acceptance.admits(without, owner[at]) & acceptance.plausible(without, owner[at])
    accepted &= acceptance.query(without).wanted
    return accepted, acceptance.query(without).margin - acceptance.query(rows).margin[at]


@pytest.mark.parametrize("options", [{}, {"n_counterfactuals": 3}, {"n_counterfactuals": 3, "diverse": True}])
def test_every_change_is_needed_and_none_makes_the_decision_worse(options):
    X = people()
    factuals = refused(X, 25)
    explainer = mcce.MCCE(score, fixed=["age"], random_state=2).fit(X)
    found = explainer.explain(factuals, sparse=True, n_samples=300, **options)
    accepted, gain = accepted_without_a_change(explainer, X, factuals, found, **options)
    assert not accepted.any()
    assert (gain <= 1e-9).all()


def test_rows_are_valid_and_fixed_features_kept():
    X = people()
    factuals = refused(X, 30)
    found = (
        mcce.MCCE(score, fixed=["age", "school"], random_state=2).fit(X).explain(factuals, sparse=True, n_samples=300)
    )
    assert (score(found.frame) >= 0.5).all()
    own = factuals.loc[found.frame.index.get_level_values("id")]
    for name in ("age", "school"):
        assert (found.frame[name].to_numpy() == own[name].to_numpy()).all()
    assert len(found.frame) + len(found.unexplained) == len(factuals)


def test_a_known_value_becomes_missing_only_if_allowed():
    X = people()
    prefer_missing = lambda rows: np.where(rows["rent"].isna(), 0.9, 0.1)  # noqa: E731
    known = X[X["rent"].notna()].head(10)
    explainer = mcce.MCCE(prefer_missing, fixed=["age"], random_state=2).fit(X)
    for sparse in (False, True):
        found = explainer.explain(known, sparse=sparse, n_samples=200)
        assert (found.unexplained["code"] == "none_allowed").all()
        assert len(found.unexplained) == len(known)
        allowed = explainer.explain(known, sparse=sparse, n_samples=200, constraints=[mcce.allow("rent", missing=True)])
        assert len(allowed.frame) == (0 if sparse else len(known)) or allowed.frame["rent"].isna().all()


def test_few_changes_are_found_below_the_floor_where_no_whole_draw_is_allowed():
    X = people()
    explainer = mcce.MCCE(score, random_state=1).fit(X)
    factuals = refused(X, 20)
    without_floor = explainer.explain(factuals, sparse=True, max_changes=1, floor=0.0, n_samples=100)
    found = explainer.explain(factuals, sparse=True, max_changes=1, floor=0.99, n_samples=100)
    pd.testing.assert_index_equal(found.frame.index, without_floor.frame.index)
    assert found.measures["below_floor"].any()


def test_a_constraint_that_an_answer_satisfies_does_not_remove_it():
    loans = mcce.datasets.load_loans()
    fixed = ["age", "sex", "defaulted_last_year"]
    explainer = mcce.MCCE(loans.model, decision=loans.decision, fixed=fixed, random_state=1).fit(loans.X)
    rule = "loan_amount == was(loan_amount)"  # no whole draw of these two people satisfies it
    found = explainer.explain(loans.X.loc[[41, 91]], sparse=True, constraints=[rule])
    assert found.changes()["feature"].tolist() == ["salary", "salary"]
