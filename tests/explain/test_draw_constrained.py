"""Pools drawn within constraints, compared with filtering unconstrained draws one by one."""

import numpy as np
import pandas as pd
import pytest

import mcce
from tests.marks import nightly_rows

LOANS = mcce.datasets.load_loans(800).X
WANTED = (LOANS["savings"] > 8_000) & (LOANS["salary"] > 30_000)
PEOPLE = LOANS[~WANTED].iloc[:20]
K = 60


@pytest.fixture(scope="module")
def explainer():
    return mcce.MCCE(
        None,
        decision=lambda rows: (rows["savings"] > 8_000) & (rows["salary"] > 30_000),
        fixed=["sex", "defaulted_last_year"],
        random_state=5,
    ).fit(LOANS)


def accepted(explainer, holds, shared=()):
    """Return the first K draws of each factual, the accepted ones, and how many of the first 100 are accepted."""
    draws = explainer.generate(PEOPLE, n_samples=100, constraints=list(shared))
    found, n_held = {}, {}
    for id in PEOPLE.index:
        mine = draws.loc[[id]]
        held = np.array([holds(row, PEOPLE.loc[id]) for _, row in mine.iterrows()])
        found[id], n_held[id] = mine.iloc[:K][held[:K]], held.sum()
    return found, n_held


@pytest.mark.parametrize(
    ("constraint", "holds"),
    [
        (mcce.allow("loan_amount", direction="decrease"), lambda r, f: r["loan_amount"] <= f["loan_amount"]),
        *nightly_rows(
            (mcce.allow("salary", max_step=25_000), lambda r, f: abs(r["salary"] - f["salary"]) <= 25_000),
            (mcce.rule("savings <= was(savings) + 40000"), lambda r, f: r["savings"] <= f["savings"] + 40_000),
        ),
    ],
)
def test_factual_specific_constraints_filter_shared_draws(explainer, constraint, holds):
    constrained = explainer.generate(PEOPLE, n_samples=K, constraints=[constraint])
    by_hand, n_held = accepted(explainer, holds)
    enough = [id for id in PEOPLE.index if n_held[id] >= 25]
    assert len(enough) > 5
    for id in enough:
        mine = constrained.loc[[id]]
        pd.testing.assert_frame_equal(mine.reset_index(drop=True), by_hand[id].reset_index(drop=True))


@pytest.mark.slow
def test_factuals_accepting_few_shared_draws_get_individual_draws(explainer):
    constraint = mcce.allow("loan_amount", max_step=2_000)
    constrained = explainer.generate(PEOPLE, n_samples=K, constraints=[constraint])
    by_hand, n_held = accepted(explainer, lambda r, f: abs(r["loan_amount"] - f["loan_amount"]) <= 2_000)
    few = [id for id in PEOPLE.index if n_held[id] < 25]
    assert len(few) > len(PEOPLE) // 2
    counts = constrained.groupby(level=0).size().reindex(PEOPLE.index, fill_value=0)
    assert (counts[few] > [len(by_hand[id]) for id in few]).mean() > 0.9
    own = PEOPLE.loc[constrained.index.get_level_values(0), "loan_amount"].to_numpy()
    assert (np.abs(constrained["loan_amount"].to_numpy() - own) <= 2_000).all()


@pytest.mark.slow
def test_common_constraints_are_applied_before_filtering(explainer):
    both = [mcce.allow("salary", low=20_000), mcce.allow("loan_amount", direction="decrease")]
    constrained = explainer.generate(PEOPLE, n_samples=K, constraints=both)
    by_hand, n_held = accepted(explainer, lambda r, f: r["loan_amount"] <= f["loan_amount"], shared=both[:1])
    enough = [id for id in PEOPLE.index if n_held[id] >= 25]
    assert len(enough) > 5
    for id in enough:
        mine = constrained.loc[[id]]
        pd.testing.assert_frame_equal(mine.reset_index(drop=True), by_hand[id].reset_index(drop=True))


def test_multiples_are_drawn_in_shared_pools(explainer):
    rows = explainer.generate(PEOPLE, n_samples=K, constraints=[mcce.allow("savings", step=500)])
    assert (rows["savings"] % 500 == 0).all()
    assert len(rows) == K * len(PEOPLE)
    found = explainer.explain(PEOPLE, n_samples=K, constraints=[mcce.allow("savings", step=500)])
    assert found.run.settings["pools"] == len(PEOPLE[["sex", "defaulted_last_year"]].drop_duplicates())


def test_unchangeable_feature_is_kept(explainer):
    rows = explainer.generate(PEOPLE, n_samples=K, constraints=[mcce.allow("education", direction="none")])
    assert len(rows) == K * len(PEOPLE)
    own = PEOPLE.loc[rows.index.get_level_values(0), "education"].to_numpy()
    assert (rows["education"].to_numpy() == own).all()


@pytest.mark.slow
def test_factual_without_feasible_draw_keeps_its_values():
    """A loan may only decrease, for factuals with a smaller loan than every accepted row."""
    table = LOANS.assign(loan_amount=np.where(WANTED, LOANS["loan_amount"] + 50_000, LOANS["loan_amount"]))
    explainer = mcce.MCCE(
        None, decision=lambda rows: (rows["savings"] > 8_000) & (rows["salary"] > 30_000), random_state=5
    ).fit(table)
    falls = mcce.allow("loan_amount", direction="decrease")
    rows = explainer.generate(PEOPLE, n_samples=K, constraints=[falls])
    assert len(rows) == K * len(PEOPLE)
    own = PEOPLE.loc[rows.index.get_level_values(0), "loan_amount"].to_numpy()
    assert (rows["loan_amount"].to_numpy() == own).all()
    for sparse in (False, True):
        found = explainer.explain(PEOPLE, n_samples=K, sparse=sparse, constraints=[falls])
        assert found.frame.index.get_level_values("id").nunique() == len(PEOPLE)
    # a smaller loan is required and none was granted: nothing can be drawn or kept
    less = [falls, mcce.rule("loan_amount < was(loan_amount)")]
    assert len(explainer.generate(PEOPLE, n_samples=K, constraints=less)) == 0


@pytest.mark.slow
def test_factual_without_accepted_shared_draw_gets_individual_draws():
    """Half of the draws are allowed and few are accepted: often none of 30 shared, rarely none of 30 individual."""
    table = pd.DataFrame({"savings": np.tile(np.arange(100.0), 6), "loan": np.arange(600) / 2})
    person, below = table.iloc[[320]], mcce.allow("loan", direction="decrease")
    in_shared, in_own, nowhere = 0, 0, 0
    for seed in range(12):
        explainer = mcce.MCCE(
            None,
            decision=lambda rows: rows["savings"] > 91,
            condition_on_decision=False,
            visit_sequence=["loan", "savings"],
            sampler="marginal",
            random_state=seed,
        ).fit(table)
        shared = explainer.generate(person, n_samples=30, constraints=[below])
        assert 30 / 4 <= len(shared) < 30
        found = explainer.explain(person, n_samples=30, constraints=[below])
        if explainer.decision(shared).any():
            in_shared += 1
            pd.testing.assert_frame_equal(found.frame, explainer.select(shared, person).frame)
            assert found.run.settings["pools"] == 1
        else:
            in_own += len(found) > 0
            nowhere += len(found) == 0
            assert found.run.settings["pools"] == 2
            assert (found.frame["loan"] <= person["loan"].iloc[0]).all()
    assert in_shared > 0
    assert in_own > nowhere


def test_values_of_rejected_rows_are_combined_if_accepted_rows_allow_none():
    # in group b all accepted rows are younger than the factual, whose age may only rise; older rows have a low income
    rng = np.random.default_rng(0)
    n = 600
    X = pd.DataFrame({"group": np.repeat(["a", "b"], n // 2), "age": rng.integers(20, 70, n)})
    X["school"] = rng.integers(0, 10, n)
    X["income"] = np.where((X["group"] == "b") & (X["age"] >= 30), rng.integers(0, 5, n), rng.integers(0, 10, n))

    def score(rows):
        return ((rows["school"] >= 7) & (rows["income"] >= 5)).astype(float)

    factual = pd.DataFrame({"group": ["b"], "age": [50], "school": [3], "income": [8]}, index=["one"])
    rules = [mcce.allow("age", direction="increase"), mcce.rule("school <= was(school) or age > was(age)")]
    explainer = mcce.MCCE(score, fixed=["group"], constraints=rules, random_state=1).fit(X, relations=())
    assert explainer.explain(factual).frame.empty  # the published method draws given the wanted decision alone
    (row,) = explainer.explain(factual, sparse=True, floor=0).frame.itertuples(index=False)
    assert (row.group, row.income) == ("b", 8)
    assert row.age > 50
    assert row.school >= 7
