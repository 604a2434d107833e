"""The separate steps `generate` and `select`."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import mcce
from mcce import InputError, gower_distance
from tests.explainer.problem import DENIED, FIXED, TABLE, differs, fitted, score


def test_generate_draws_for_every_factual(explainer):
    rows = explainer.generate(TABLE.iloc[:10], n_samples=7, constraints=[mcce.allow("*", missing=True)])
    assert rows.index.names == ["id", "draw"]
    assert rows.index.tolist() == list(itertools.product(TABLE.index[:10], range(7)))
    assert rows.dtypes.equals(TABLE.dtypes)


def test_factuals_that_share_fixed_values_share_a_pool(explainer):
    alike = TABLE[(TABLE["age"] == 40) & (TABLE["sex"] == "male")].index[:2]
    shared = explainer.generate(TABLE.loc[alike], n_samples=50, constraints=[mcce.allow("*", missing=True)])
    assert_frame_equal(shared.loc[alike[0]], shared.loc[alike[1]])
    own = explainer.generate(
        TABLE.loc[alike], n_samples=50, independent=True, constraints=[mcce.allow("*", missing=True)]
    )
    assert not own.loc[alike[0]].equals(own.loc[alike[1]])
    assert not differs(own[FIXED], shared[FIXED]).any()


def test_more_samples_extend_fewer_samples(explainer):
    few = explainer.generate(DENIED.iloc[:3], n_samples=20)
    many = explainer.generate(DENIED.iloc[:3], n_samples=60)
    assert_frame_equal(many.loc[few.index], few)


def test_independent_rows_do_not_depend_on_the_batch(explainer):
    together = explainer.generate(DENIED.iloc[:5], n_samples=30, independent=True)
    alone = explainer.generate(DENIED.iloc[[3]], n_samples=30, independent=True)
    assert_frame_equal(together.loc[[DENIED.index[3]]], alone, check_exact=True)


def test_select_accepts_external_candidates(explainer):
    """Rows of the training table as candidates: the plain answer is found by hand."""
    factual = DENIED.iloc[[0]]
    alike = TABLE[(TABLE[FIXED] == factual[FIXED].iloc[0]).all(axis=1)]
    candidates = alike.set_index(pd.Index([factual.index[0]] * len(alike)))
    found = explainer.select(candidates, factual, n_counterfactuals=2, constraints=[mcce.allow("*", missing=True)])
    beside = pd.concat([factual] * len(alike))
    order = pd.DataFrame(
        {"L0": differs(alike, beside).sum(axis=1), "gower": gower_distance(alike, factual, training=TABLE)}
    )
    best = order[score(alike) >= 0.5].sort_values(["L0", "gower"], kind="stable").index[:2]
    assert len(best) == 2
    assert_frame_equal(found.frame.reset_index(drop=True), alike.iloc[best].reset_index(drop=True))
    known = ~(alike.isna() & factual.notna().iloc[0]).any(axis=1).to_numpy()
    best = order[(score(alike) >= 0.5) & known].sort_values(["L0", "gower"], kind="stable").index[:2]
    found = explainer.select(candidates, factual, n_counterfactuals=2)
    assert_frame_equal(found.frame.reset_index(drop=True), alike.iloc[best].reset_index(drop=True))


def test_select_reports_factuals_without_candidates(explainer):
    candidates = explainer.generate(DENIED.iloc[:2], n_samples=100)
    found = explainer.select(candidates, DENIED.iloc[:3])
    assert found.unexplained.index[-1] == DENIED.index[2]
    assert found.unexplained["reason"].iloc[-1] == "no candidates were given for this id; add some"
    nothing = explainer.select(candidates.iloc[:0], DENIED.iloc[:3])
    assert len(nothing) == 0
    assert nothing.unexplained["reason"].tolist() == ["no candidates were given for this id; add some"] * 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: c.rename(index={DENIED.index[0]: "who"}, level=0),
            "rows for 'who', which is not in the index of X",
        ),
        (lambda c: c.assign(age=99), "changes the fixed feature 'age' of 'p"),
        (
            lambda c: c.assign(sex=pd.Categorical([None] * len(c), TABLE["sex"].cat.categories)),
            "changes the fixed feature 'sex' of 'p",
        ),
        (lambda c: c.drop(columns="job"), r"candidates lacks the column\(s\) 'job'"),
        (lambda c: c.assign(job="thief"), "column 'job' of candidates holds the level 'thief'"),
        (lambda c: c.to_numpy(), "candidates is a ndarray; give a DataFrame"),
    ],
)
def test_select_rejects_invalid_candidates(explainer, change, message):
    candidates = explainer.generate(DENIED.iloc[:2], n_samples=5)
    with pytest.raises(InputError, match=message):
        explainer.select(change(candidates), DENIED.iloc[:2])


@pytest.mark.slow
def test_conditioning_on_the_decision_makes_more_draws_valid(explainer):
    without = fitted(condition_on_decision=False)
    shares = [(score(e.generate(DENIED, n_samples=100)) >= 0.5).mean() for e in (explainer, without)]
    assert shares[0] > 1.5 * shares[1] > 0
    found = without.explain(DENIED, n_samples=200)
    assert (score(found.frame) >= 0.5).all()
    assert found.run.settings["condition_on_decision"] is False


@pytest.mark.slow
def test_fewer_rows_are_queried_than_drawn(explainer):
    lazy = explainer.explain(DENIED, n_samples=1000)
    candidates = explainer.generate(DENIED, n_samples=1000)
    exhaustive = explainer.select(candidates, DENIED, exhaustive=True)
    assert exhaustive.run.settings["rows_queried"] == len(candidates.drop_duplicates())
    assert lazy.run.settings["rows_queried"] < 60 * len(DENIED)
