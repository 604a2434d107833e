"""Another generator in place of the chain: a bootstrap of whole rows."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import mcce
from mcce import MCCE, ChainModel, InputError
from tests.explainer.problem import DENIED, FIXED, TABLE, assert_same, differs, fitted, score
from tests.generators.row_bootstrap import RowBootstrap


@pytest.fixture(scope="module")
def bootstrapped():
    return fitted(random_state=None, generator=RowBootstrap(FIXED))


def test_generate_returns_training_rows_with_fixed_values_and_decision(bootstrapped):
    rows = bootstrapped.generate(DENIED.iloc[:8], n_samples=40, constraints=[mcce.allow("*", missing=True)])
    wanted = TABLE[score(TABLE) >= 0.5]
    for id, pool in rows.groupby(level="id"):
        donors = wanted[(wanted[FIXED] == DENIED.loc[id, FIXED]).all(axis=1)]
        assert len(donors) > 3
        drawn, known = (set(map(str, frame.astype(object).to_numpy().tolist())) for frame in (pool, donors))
        assert drawn <= known
        assert len(drawn) > len(known) / 2


def test_explain_finds_the_nearest_accepted_row_by_brute_force(bootstrapped):
    """With many draws every donor is a candidate: the answer is the nearest training row with the fixed values."""
    factuals = DENIED.iloc[:6]
    found = bootstrapped.explain(factuals, n_samples=2000, constraints=[mcce.allow("*", missing=True)])
    wanted = TABLE[score(TABLE) >= 0.5]
    for id, factual in factuals.iterrows():
        donors = wanted[(wanted[FIXED] == factual[FIXED]).all(axis=1)]
        changes = differs(donors, factuals.loc[[id] * len(donors)]).sum(axis=1)
        assert found.measures.loc[(id, 1), "L0"] == changes.min()
        best = found.frame.loc[[(id, 1)]]
        assert any(not differs(best, donors.iloc[[i]]).any() for i in np.flatnonzero(changes == changes.min()))
    assert found.run.settings["sampler"] == "RowBootstrap"
    assert found.run.settings["random_state"] == 1


def test_answer_does_not_depend_on_the_batch(bootstrapped):
    together = bootstrapped.explain(DENIED, n_samples=60)
    alone = bootstrapped.explain(DENIED.iloc[[7]], n_samples=60)
    assert_frame_equal(together.frame.loc[[DENIED.index[7]]], alone.frame)


@pytest.mark.slow
def test_sparse(bootstrapped):
    found = bootstrapped.explain(DENIED.iloc[:10], n_samples=200, sparse=True)
    whole = bootstrapped.explain(DENIED.iloc[:10], n_samples=200)
    assert found.measures["L0"].mean() < whole.measures["L0"].mean()
    assert (score(found.frame) >= 0.5).all()
    ids = found.frame.index.get_level_values("id")
    assert not differs(found.frame[FIXED], DENIED.loc[ids, FIXED]).any()
    assert found.measures["plausibility"].between(0, 1).all()
    assert "log_density" in found.measures


def test_generate_then_select_equals_explain(bootstrapped):
    candidates = bootstrapped.generate(DENIED.iloc[:10], n_samples=100)
    chosen = bootstrapped.select(candidates, DENIED.iloc[:10], n_counterfactuals=2)
    found = bootstrapped.explain(DENIED.iloc[:10], n_samples=100, n_counterfactuals=2)
    assert_frame_equal(chosen.frame, found.frame)


@pytest.mark.slow
@pytest.mark.usefixtures("few_trees")
def test_generator_without_a_chain_is_diagnosed(bootstrapped):
    d = bootstrapped.diagnose(TABLE, n_samples=50, max_factuals=10)
    # a bootstrap of training rows cannot be distinguished from them
    assert d.marginals["distance"].max() < 0.15
    assert d.evaluation.summary.loc["success", "mean"] == 1.0


def test_explainer_has_a_generator_but_no_chain(bootstrapped):
    assert isinstance(bootstrapped.generator_, RowBootstrap)
    with pytest.raises(InputError, match="tests the conditionals of a chain; a RowBootstrap has no conditionals"):
        bootstrapped.generator_.criticise(TABLE)


def test_given_generator_stays_unfitted():
    mine = RowBootstrap(FIXED)
    fitted(random_state=None, generator=mine)
    assert vars(mine) == {"fixed": FIXED, "seed": 1}


def test_saved_explainer_draws_the_same_rows(bootstrapped):
    again = pickle.loads(pickle.dumps(bootstrapped))
    assert_same(again.explain(DENIED, n_samples=50), bootstrapped.explain(DENIED, n_samples=50))


def test_reasons_use_the_training_data_of_the_generator():
    X = pd.DataFrame({"group": list("aab") * 20, "x": np.arange(60.0)})
    explainer = MCCE(
        lambda t: ((t["group"] == "a") & (t["x"] > 30)).to_numpy(dtype=float),
        fixed=["group"],
        generator=RowBootstrap(["group"]),
    ).fit(X)
    found = explainer.explain(X.iloc[[2]], n_samples=20)
    assert re.search("no training row with its fixed values .group = b. has it", found.unexplained["reason"].iloc[0])


@pytest.mark.slow
def test_given_chain_is_used_as_generator():
    chain = ChainModel(fixed=FIXED[::-1], visit_sequence="correlation", sampler="marginal", random_state=3)
    given = fitted(random_state=None, generator=chain)
    made = fitted(random_state=3, visit_sequence="correlation", sampler="marginal")
    assert_same(given.explain(DENIED, n_samples=50), made.explain(DENIED, n_samples=50))
    assert given.explain(DENIED.iloc[:1], n_samples=5).run.settings["sampler"] == "marginal"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"fixed": ["age"]},
            r"fixed is \['age'\], but the generator RowBootstrap.* has the fixed features \['age', 'sex'\]",
        ),
        ({"fixed": ()}, r"fixed is \[\], but the generator"),
        ({"fixed": ["age", "sex", "job"]}, r"use the same features for both"),
        ({"sampler": "ctree"}, "sampler is 'ctree', a setting of the chain, but generator=RowBootstrap"),
        ({"visit_sequence": ["income"]}, "visit_sequence is .*; set it on the generator"),
        ({"predictors": {}}, "predictors is {}"),
        ({"kinds": {"age": "ordered"}}, "kinds is "),
        ({"random_state": 0}, "random_state is 0, a setting of the chain"),
        (
            {"generator": RowBootstrap},
            r"got .*RowBootstrap.*, a class, not .* object of a subclass of mcce\.generators\.Generator",
        ),
        ({"generator": "chains"}, "there is no generator 'chains'; did you mean 'chain'"),
    ],
)
def test_invalid_use_raises(settings, message):
    explainer = MCCE(score, **({"fixed": FIXED, "generator": RowBootstrap(FIXED)} | settings))
    with pytest.raises(InputError, match=message):
        explainer.fit(TABLE)
    assert not hasattr(explainer, "generator_")


def test_generator_with_other_conditioning_raises():
    class Unconditional(RowBootstrap):
        def fit(self, X, decision=None, *, progress=None):
            return super().fit(X, None, progress=progress)

    with pytest.raises(InputError, match=r"condition_on_decision is True, but .* does not condition on the decision"):
        MCCE(score, fixed=FIXED, generator=Unconditional(FIXED)).fit(TABLE)
    free = MCCE(score, fixed=FIXED, generator=Unconditional(FIXED), condition_on_decision=False).fit(TABLE)
    assert len(free.explain(DENIED.iloc[:5], n_samples=300)) > 0
