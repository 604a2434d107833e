"""Diverse counterfactuals, and copies of training rows, with the options of the user."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

import mcce.explain.diverse
import mcce.explain.problem
from mcce import InputError, gower_distance
from tests.explainer.problem import DENIED, FIXED, TABLE, differs, fitted, score
from tests.marks import examples, nightly

# few values in each column, so that many draws and crossings are copies of training rows
COARSE = pd.DataFrame(
    {
        "age": TABLE["age"],
        "income": (TABLE["income"] / 10).round() * 10,
        "job": TABLE["job"],
        "size": TABLE["size"],
        "owner": TABLE["owner"],
    }
)


def coarse_score(frame: pd.DataFrame) -> np.ndarray:
    z = 0.1 * (frame["income"] - 35) + 0.8 * frame["owner"] + 0.5 * frame["size"].cat.codes
    return (1 / (1 + np.exp(-z))).to_numpy(dtype=float)


REFUSED = COARSE[coarse_score(COARSE) < 0.5].iloc[:30]
KNOWN = {tuple(row) for row in COARSE.astype(object).itertuples(index=False)}


@pytest.fixture(scope="module")
def coarse():
    explainer = fitted(coarse_score, X=COARSE, fixed=["age"])
    explainer.explain(REFUSED.iloc[:1], sparse=True)
    return explainer


def is_copy(frame: pd.DataFrame) -> list[bool]:
    return [tuple(row) in KNOWN for row in frame.astype(object).itertuples(index=False)]


OPTIONS = {
    "k": st.integers(1, 4),
    "sparse": st.booleans(),
    "diverse": st.booleans(),
    "exclude": st.booleans(),
    "floor": st.sampled_from([0.0, 0.05]),
}
SLOW = examples(5, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SLOW
@example(k=4, sparse=True, diverse=True, exclude=True, floor=0.05)  # some rows come from a second search
@given(**OPTIONS)
def test_rows_are_valid_distinct_sorted_and_not_copies(coarse, k, sparse, diverse, exclude, floor):
    found = coarse.explain(
        REFUSED,
        n_samples=100,
        n_counterfactuals=k,
        sparse=sparse,
        diverse=diverse and k > 1,
        constraints=[mcce.no_copies()] if exclude else [],
        floor=floor if sparse else None,
        caution=0.0 if sparse else None,  # by distance alone
    )
    assert (coarse_score(found.frame) >= 0.5).all()
    assert not (found.frame["age"] != REFUSED["age"].reindex(found.frame.index.get_level_values("id")).to_numpy()).any()
    for _, rows in found.frame.groupby(level="id"):
        assert 1 <= len(rows) <= k
        assert not rows.duplicated().any()
    measures = found.measures.reset_index()
    order = measures.sort_values(["id", "L0", "gower"], kind="stable")
    assert order.groupby("id")["rank"].apply(lambda ranks: ranks.is_monotonic_increasing).all()
    assert found.copies == sum(is_copy(found.frame))
    if exclude:
        assert found.copies == 0
    pairs = found.diversity()
    assert pairs["rows"].tolist() == found.frame.groupby(level="id", sort=False).size().tolist()


@pytest.mark.slow
@SLOW
@given(seed=st.integers(0, 1000), **OPTIONS)
def test_result_is_identical_for_any_threads_batch_and_order(coarse, seed, k, sparse, diverse, exclude, floor):
    options = {
        "n_samples": 60,
        "n_counterfactuals": k,
        "sparse": sparse,
        "diverse": diverse and k > 1,
        "constraints": [mcce.no_copies()] if exclude else [],
        "floor": floor if sparse else None,
    }
    found = coarse.explain(REFUSED, **options)
    shuffled = REFUSED.sample(frac=1, random_state=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mcce.explain.problem, "POOL_BYTES", 1)  # one pool at a time
        patch.setattr(mcce.explain.diverse, "DIVERSE_FACTUALS", 3)
        patch.setattr(coarse, "n_jobs", 2)
        patch.setattr(coarse.generator_, "n_jobs", 2)
        again = coarse.explain(shuffled, **options)
    explained = found.frame.index.get_level_values("id").unique()
    assert set(again.frame.index.get_level_values("id")) == set(explained)
    if len(explained):
        assert_frame_equal(again.frame.loc[list(explained)], found.frame.loc[list(explained)], check_exact=True)
        assert_frame_equal(again.measures.loc[list(explained)], found.measures.loc[list(explained)], check_exact=True)
        assert_frame_equal(again.diversity().loc[list(explained)], found.diversity(), check_exact=True)
    assert again.copies == found.copies


@pytest.mark.parametrize("sparse", [False, True])
def test_excluded_copies_exist_without_the_option(coarse, sparse):
    """The excluded copies would have been chosen, so the test above is not vacuous."""
    free = coarse.explain(REFUSED, n_samples=100, n_counterfactuals=3, sparse=sparse)
    assert free.copies > 10
    without = coarse.explain(REFUSED, n_samples=100, n_counterfactuals=3, sparse=sparse, constraints=[mcce.no_copies()])
    assert len(without) > 10
    if not sparse:  # exhaustive by hand: the remaining rows, ranked
        candidates = coarse.generate(REFUSED, n_samples=100)
        candidates = candidates[~np.array(is_copy(candidates))]
        assert_frame_equal(coarse.select(candidates, REFUSED, n_counterfactuals=3).frame, without.frame)


@pytest.mark.parametrize("sparse", [False, *nightly(True)])
def test_diverse_rows_are_farther_apart_and_start_with_the_best(explainer, sparse):
    plain = explainer.explain(DENIED, n_samples=200, n_counterfactuals=4, sparse=sparse)
    diverse = explainer.explain(DENIED, n_samples=200, n_counterfactuals=4, sparse=sparse, diverse=True)
    means = [found.diversity()[["gower", "features"]].mean() for found in (plain, diverse)]
    assert (means[1] > 1.2 * means[0]).all()
    best, first = (found.measures.xs(1, level="rank")[["L0", "gower"]] for found in (plain, diverse))
    if sparse:  # the search for alternatives may find a better row
        assert all(tuple(first.loc[i]) <= tuple(best.loc[i]) for i in best.index)
    else:
        assert_frame_equal(first, best)
    assert not differs(diverse.frame[FIXED], DENIED.loc[diverse.frame.index.get_level_values("id"), FIXED]).any()
    assert (score(diverse.frame) >= 0.5).all()


def test_bounds_hold_for_diverse_rows(explainer):
    found = explainer.explain(DENIED, n_samples=200, n_counterfactuals=4, diverse=True, max_changes=5, max_gower=0.2)
    assert len(found)
    assert found.measures["L0"].max() <= 5
    assert found.measures["gower"].max() <= 0.2


@pytest.mark.slow
def test_reported_diversity_matches_hand_calculation(found, explainer):
    table = found.diversity()
    i = table.index[0]
    rows = [found.frame.loc[[(i, rank)]] for rank in (1, 2, 3)]
    pairs = [(rows[a], rows[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert table.loc[i, "gower"] == pytest.approx(np.mean([gower_distance(a, b, training=TABLE)[0] for a, b in pairs]))
    assert table.loc[i, "features"] == pytest.approx(np.mean([differs(a, b).mean() for a, b in pairs]))
    value = found.summary()["value"]
    assert value["mean pairwise gower"] == pytest.approx(table["gower"].mean())
    assert value["mean pairwise share of features"] == pytest.approx(table["features"].mean())
    assert value["copies of training rows"] == found.copies
    single = explainer.explain(DENIED.iloc[:3], n_samples=50)
    assert "mean pairwise gower" not in single.summary().index


def test_factual_with_only_copies_is_reported():
    table = pd.DataFrame({"group": list("ab") * 20, "x": [0.0, 1.0] * 20, "y": [1.0] * 40})
    explainer = fitted(lambda frame: frame["x"].to_numpy(), X=table, fixed=["group"], sampler="marginal")
    factual = pd.DataFrame({"group": ["b"], "x": [0.0], "y": [1.0]})
    assert len(explainer.explain(factual)) == 1
    found = explainer.explain(factual, constraints=[mcce.no_copies()])
    assert (
        found.unexplained["reason"]
        .iloc[0]
        .startswith("none of the 1000 candidates has the wanted decision and differs from all training rows")
    )


def test_saved_explainer_recognises_copies_after_explaining(coarse):
    fresh = fitted(coarse_score, X=COARSE, fixed=["age"])
    saved = pickle.loads(pickle.dumps(fresh))
    assert saved.explain(REFUSED, n_samples=50).copies is None
    assert "copies of training rows" not in saved.explain(REFUSED, n_samples=50).summary().index
    with pytest.raises(InputError, match="training rows are not stored with an explainer"):
        saved.explain(REFUSED, constraints=[mcce.no_copies()])
    known = pickle.loads(pickle.dumps(coarse))
    assert known.explain(REFUSED, n_samples=50, constraints=[mcce.no_copies()]).copies == 0


def test_result_built_by_hand_has_no_diversity(found):
    by_hand = type(found)(
        frame=found.frame,
        measures=found.measures,
        factuals=found.factuals,
        unexplained=found.unexplained,
        factual_predictions=found.factual_predictions,
        decision=found.decision,
    )
    assert by_hand.copies is None
    with pytest.raises(InputError, match="has no diversity table"):
        by_hand.diversity()


def test_rows_of_later_searches_do_not_depend_on_other_factuals():
    """Unfit rows are searched again, by searches that other factuals may not need."""
    rng, n = np.random.default_rng(0), 400
    salary = np.exp(rng.normal(10.3, 0.4, n)).round(-2)
    debt = np.where(rng.random(n) < 0.3, 0, np.exp(rng.normal(8, 1, n)).round())
    savings = np.where(rng.random(n) < 0.1, 0, (rng.gamma(2, 3000, n) * (salary / 30_000)).round())
    home = np.where(rng.random(n) < 1 / (1 + np.exp(-(salary - 30_000) / 9_000)), "own", "rent")
    X = pd.DataFrame({"salary": salary, "debt": debt, "savings": savings, "home": home})

    def score(rows):
        money = rows["salary"] / 30_000 + rows["savings"] / 15_000 - rows["debt"] / 8_000
        return money + 0.3 * (rows["home"] == "own")

    explainer = mcce.MCCE(score, decision=(1.4, np.inf), random_state=1).fit(X, relations=())
    refused = X[score(X) < 1.4].head(30)
    options = {"sparse": True, "diverse": True, "n_counterfactuals": 3, "n_samples": 120}
    together = explainer.explain(refused, **options).frame
    for k in range(3):
        some = refused.iloc[k::3]
        alone = explainer.explain(some, **options).frame
        assert_frame_equal(alone, together[together.index.get_level_values("id").isin(some.index)])
