"""Pools inside constraints, against passing over unconstrained draws one by one."""

import numpy as np
import pandas as pd
import pytest

import mcce

LOANS = mcce.datasets.load_loans(800).X
WANTED = (LOANS["savings"] > 8_000) & (LOANS["salary"] > 30_000)
PEOPLE = LOANS[~WANTED].iloc[:40]
K = 60


@pytest.fixture(scope="module")
def explainer():
    return mcce.MCCE(
        None,
        decision=lambda rows: (rows["savings"] > 8_000) & (rows["salary"] > 30_000),
        fixed=["sex", "defaulted_last_year"],
        random_state=5,
    ).fit(LOANS)


def accepted(explainer, holds, n=2 * K, shared=()):
    """Of the first draws of each person those that hold, at most K."""
    draws = explainer.generate(PEOPLE, n_samples=n, constraints=list(shared))
    found = {}
    for id in PEOPLE.index:
        mine = draws.loc[[id]]
        found[id] = mine[[holds(row, PEOPLE.loc[id]) for _, row in mine.iterrows()]].iloc[:K]
    return found


@pytest.mark.parametrize(
    ("constraint", "holds"),
    [
        (mcce.allow("salary", max_step=25_000), lambda r, f: abs(r["salary"] - f["salary"]) <= 25_000),
        (mcce.allow("loan_amount", direction="decrease"), lambda r, f: r["loan_amount"] <= f["loan_amount"]),
        (mcce.rule("savings <= was(savings) + 40000"), lambda r, f: r["savings"] <= f["savings"] + 40_000),
    ],
)
def test_what_depends_on_the_factual_passes_over_shared_draws(explainer, constraint, holds):
    constrained = explainer.generate(PEOPLE, n_samples=K, constraints=[constraint])
    by_hand = accepted(explainer, holds)
    enough = [id for id, rows in by_hand.items() if len(rows) == K]
    assert len(enough) > 5
    for id in enough:
        mine = constrained.loc[[id]]
        pd.testing.assert_frame_equal(mine.reset_index(drop=True), by_hand[id].reset_index(drop=True))


def test_who_allows_few_of_them_gets_draws_of_his_own(explainer):
    constraint = mcce.allow("loan_amount", max_step=2_000)
    constrained = explainer.generate(PEOPLE, n_samples=K, constraints=[constraint])
    by_hand = accepted(explainer, lambda r, f: abs(r["loan_amount"] - f["loan_amount"]) <= 2_000)
    few = [id for id, rows in by_hand.items() if len(rows) < K]
    assert len(few) > 20
    counts = constrained.groupby(level=0).size().reindex(PEOPLE.index, fill_value=0)
    assert (counts[few] > [len(by_hand[id]) for id in few]).mean() > 0.9
    own = PEOPLE.loc[constrained.index.get_level_values(0), "loan_amount"].to_numpy()
    assert (np.abs(constrained["loan_amount"].to_numpy() - own) <= 2_000).all()


def test_what_is_asked_of_all_is_obeyed_before_anything_is_passed_over(explainer):
    both = [mcce.allow("salary", low=20_000), mcce.allow("loan_amount", direction="decrease")]
    constrained = explainer.generate(PEOPLE, n_samples=K, constraints=both)
    by_hand = accepted(explainer, lambda r, f: r["loan_amount"] <= f["loan_amount"], shared=both[:1])
    enough = [id for id, rows in by_hand.items() if len(rows) == K]
    assert len(enough) > 5
    for id in enough:
        mine = constrained.loc[[id]]
        pd.testing.assert_frame_equal(mine.reset_index(drop=True), by_hand[id].reset_index(drop=True))


def test_a_multiple_is_drawn_for_all_alike(explainer):
    rows = explainer.generate(PEOPLE, n_samples=K, constraints=[mcce.allow("savings", step=500)])
    assert (rows["savings"] % 500 == 0).all()
    assert len(rows) == K * len(PEOPLE)
    found = explainer.explain(PEOPLE, n_samples=K, constraints=[mcce.allow("savings", step=500)])
    assert found.settings["pools"] == len(PEOPLE[["sex", "defaulted_last_year"]].drop_duplicates())


def test_a_feature_that_has_to_stay_is_kept_and_the_others_follow_it(explainer):
    rows = explainer.generate(PEOPLE, n_samples=K, constraints=[mcce.allow("education", direction="none")])
    assert len(rows) == K * len(PEOPLE)
    own = PEOPLE.loc[rows.index.get_level_values(0), "education"].to_numpy()
    assert (rows["education"].to_numpy() == own).all()


def test_who_cannot_be_drawn_as_asked_keeps_what_he_has():
    """A loan that may only fall, for people who ask for less than anybody who was granted one."""
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
    # a smaller loan that has to be one, none of which was granted: nothing can be drawn, and nothing kept
    less = [falls, mcce.rule("loan_amount < was(loan_amount)")]
    assert len(explainer.generate(PEOPLE, n_samples=K, constraints=less)) == 0
