"""Interventions on a chain: known structural models, descendants, ranks, derived columns, seeds and errors."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce import InputError, SamplerError
from mcce.plausibility.derived import fit_derived
from tests.fixtures.dowhy import make as dowhy
from tests.generators.structural_models import JOBS, MODELS, noise
from tests.marks import nightly, slow
from tests.testing.sound_samplers import Normal

ACTIONS = [
    ("linear", {"x": 1.0}),
    ("linear", {"y": -1.0}),
    ("additive", {"x": 1.0}),
    ("mediator", {"x": 1.0}),
    ("mediator", {"m": 1.0}),
    ("collider", {"x": 1.0}),
    ("confounder", {"x": 1.0}),
    ("classes", {"school": "degree"}),
    ("classes", {"job": "pilot"}),
]
DRAWS = [4_000, *nightly(100_000)]
EFFECTS = {"linear": "z", "additive": "z", "mediator": "y", "collider": "c", "confounder": "y", "classes": "pay"}
# greatest root mean square error of counterfactual numbers, in noise standard deviations, at 4,000 training rows
ABDUCTION = {"linear": 0.1, "additive": 0.1, "mediator": 0.1, "collider": 0.1, "confounder": 0.1}


def mean_error(spread, n):
    """Return three Monte Carlo errors of a mean: of the draws, of the truth, and of the training rows.

    The last has four times the variance: the action is one standard deviation from the mean, and effects add up.
    """
    return 3.0 * spread * np.sqrt((1.0 + 1.0 + 4.0) / n)


@pytest.mark.parametrize("n", DRAWS)
@pytest.mark.parametrize(("name", "do"), ACTIONS, ids=lambda each: str(each))
@pytest.mark.parametrize("keep", [0.6, *slow(0.0, 1.0)])
def test_interventional_distributions_match_the_structural_model(name, do, keep, n):
    model = MODELS[name]
    rows = model.rows(noise(n, 1))
    truth = model.rows(noise(n, 2), do)
    after = model.chain(n).intervene(rows, do, keep=keep, random_state=5).reset_index(drop=True)
    for column in truth:
        if truth[column].dtype == "category":
            counts = [frame[column].value_counts(sort=False).to_numpy() for frame in (after, truth)]
            shares = counts[1] / n
            assert np.abs(counts[0] - counts[1]).max() / n <= mean_error(np.sqrt(shares * (1.0 - shares)).max(), n)
        else:
            spread = max(float(truth[column].std()), float(rows[column].std()))
            assert abs(after[column].mean() - truth[column].mean()) < mean_error(spread, n), column
    effect = EFFECTS[name]
    some = slice(0, 4_000)
    assert stats.ks_2samp(after[effect][some], truth[effect][some]).pvalue > 1e-4


def test_regression_ignoring_a_confounder_is_not_the_effect():
    model = MODELS["confounder"]
    rows = model.rows(noise(4_000, 1))
    chain = model.chain(4_000)
    difference = chain.intervene(rows, {"x": 1.0})["y"].to_numpy() - chain.intervene(rows, {"x": 0.0})["y"].to_numpy()
    assert abs(difference.mean() - 1.0) < 0.1
    assert np.polyfit(rows["x"], rows["y"], 1)[0] > 2.3


@pytest.mark.parametrize("name", ABDUCTION)
def test_abduction_recovers_the_individual_counterfactual(name):
    model = MODELS[name]
    do = {"x": 1.0}
    own = noise(1_000, 3)
    rows, truth = model.rows(own), model.rows(own, do)
    after = model.chain(4_000).intervene(rows, do).reset_index(drop=True)
    for column in truth:
        assert np.sqrt(np.mean((after[column] - truth[column]) ** 2)) < ABDUCTION[name], column


def test_abduction_by_donors_has_a_larger_error():
    model = MODELS["linear"]
    own = noise(1_000, 3)
    rows, truth = model.rows(own), model.rows(own, {"x": 1.0})
    chain = model.chain(4_000, sampler=mcce.CartSampler(min_leaf=50))
    errors = {}
    for keep in (1.0, 0.0):
        after = chain.intervene(rows, {"x": 1.0}, keep=keep).reset_index(drop=True)
        errors[keep] = np.sqrt(np.mean((after["y"] - truth["y"]) ** 2))
    assert errors[1.0] < 0.35  # the noise has the standard deviation 1
    assert errors[0.0] > 1.2


def test_abduction_recovers_ordered_levels():
    model = MODELS["classes"]
    own = noise(2_000, 3)
    rows, truth = model.rows(own), model.rows(own, {"school": "degree"})
    after = model.chain(20_000).intervene(rows, {"school": "degree"}, n=20)
    # the rank within a level is not known: a row is a cook with probability 1/6 if it was one before, given 'none'
    was = rows.loc[(rows["school"] == "none") & (rows["job"] == "cook")].index
    shares = after["job"].loc[was].value_counts(normalize=True)
    expected = truth["job"].loc[was].value_counts(normalize=True)
    for job in JOBS:
        assert abs(shares[job] - expected[job]) < 3.0 * np.sqrt(expected[job] / was.size) + 0.01
    np.testing.assert_allclose([shares[job] for job in JOBS], [1 / 6, 1 / 2, 1 / 3], atol=0.03)
    stayed = after.loc[rows.index[rows["job"] == "pilot"]]
    assert (stayed["job"] == "pilot").all()  # the highest level stays the highest


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.8])
def test_old_and_new_rank_have_a_gaussian_copula(keep):
    model = MODELS["linear"]
    own = noise(5_000, 3)
    after = model.chain(20_000).intervene(model.rows(own), {"x": 1.0}, keep=keep)
    correlation = np.corrcoef(own[1], after["y"].to_numpy() - 3.0)[0, 1]
    assert abs(correlation - keep) < 3.0 / np.sqrt(5_000)


def test_non_descendants_keep_their_values_and_actions_are_set():
    model = MODELS["collider"]
    rows = model.rows(noise(50, 1))
    chain = model.chain(500)
    after = chain.intervene(rows, {"x": np.arange(50.0)}, keep=0.0, n=3)
    assert after.index.names == ["id", "draw"]
    assert after["y"].tolist() == np.repeat(rows["y"].to_numpy(), 3).tolist()
    assert after["x"].tolist() == np.repeat(np.arange(50.0), 3).tolist()
    assert not np.isclose(after["c"], np.repeat(rows["c"].to_numpy(), 3)).any()
    only_the_effect = chain.intervene(rows, {"c": 0.0}, keep=0.0)
    pd.testing.assert_frame_equal(only_the_effect[["x", "y"]].reset_index(drop=True), rows[["x", "y"]])


LOANS = mcce.datasets.load_loans(400).X


@pytest.mark.parametrize("sampler", ["cart", "parametric", *nightly("mixture")])
def test_action_equal_to_the_present_value_has_no_effect(sampler):
    chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"], random_state=1).fit(LOANS[100:])
    rows = LOANS[:20]
    after = chain.intervene(rows, {"education": rows["education"].tolist()})
    pd.testing.assert_frame_equal(after.reset_index(drop=True), rows.reset_index(drop=True))


def test_draws_of_a_row_are_equal_in_any_batch_and_number_of_threads():
    chain = mcce.ChainModel(fixed=["age"], random_state=1).fit(LOANS)
    rows = LOANS[:30]
    options = {"keep": 0.5, "n": 4, "random_state": 3}
    whole = chain.intervene(rows, {"education": "master"}, **options)
    parts = [chain.intervene(rows[a:b][::-1], {"education": "master"}, **options) for a, b in ((0, 7), (7, 30))]
    pd.testing.assert_frame_equal(whole, pd.concat(parts).loc[whole.index])
    chain.n_jobs = 3
    pd.testing.assert_frame_equal(whole, chain.intervene(rows, {"education": "master"}, **options))
    other = chain.intervene(rows, {"education": "master"}, **{**options, "random_state": 4})
    assert not whole.equals(other)


def test_equal_rows_get_different_draws():
    chain = mcce.ChainModel(fixed=["age"], random_state=1).fit(LOANS)
    twice = chain.intervene(LOANS.iloc[[0, 0]], {"age": 50}, keep=0.0, n=20)
    alone = chain.intervene(LOANS.iloc[[0]], {"age": 50}, keep=0.0, n=20)
    pd.testing.assert_frame_equal(twice[:20], alone)
    assert not twice[20:].equals(twice[:20])


def test_blocks_do_not_matter(monkeypatch):
    chain = mcce.ChainModel(fixed=["age"], random_state=1).fit(LOANS)
    whole = chain.intervene(LOANS[:10], {"age": 50}, n=5)
    monkeypatch.setattr("mcce.generators.chain.BLOCK_ROWS", 7)
    pd.testing.assert_frame_equal(whole, chain.intervene(LOANS[:10], {"age": 50}, n=5))


def test_ranks_of_rounded_numbers_are_uniform():
    """A gamma regression does not round its draws; integers represent the values rounded to them."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 3_000)
    X = pd.DataFrame({"g": group, "years": np.rint(rng.gamma(4.0, 1.0 + group)).astype(np.int64) + 1})
    chain = mcce.ChainModel(sampler={"years": "gamma", "*": "cart"}, random_state=1).fit(X)
    after = chain.intervene(X, {"g": 1 - X["g"]}, n=1)["years"].to_numpy()
    afresh = chain.intervene(X, {"g": 1 - X["g"]}, n=1, keep=0.0)["years"].to_numpy()
    assert stats.ks_2samp(after, afresh).pvalue > 1e-3
    assert after.dtype == np.int64
    assert stats.spearmanr(after[group == 1], X["years"][group == 1]).statistic > 0.9


def test_derived_columns_are_computed():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(1, 9, 300), "b": rng.integers(1, 9, 300)})
    X["total"] = X["a"] + X["b"]
    X["after"] = X["total"] + rng.integers(0, 3, 300)
    chain = mcce.ChainModel(fixed=["a"], predictors={"b": []}, random_state=1).fit(X)
    derived = fit_derived({"total": "a + b"}, X, chain.schema_, [])
    rows = X[:40]
    after = chain.intervene(rows, {"a": 5}, n=2, derived=derived)
    assert (after["total"] == after["a"] + after["b"]).all()
    assert (after["b"].to_numpy() == np.repeat(rows["b"].to_numpy(), 2)).all()
    assert (after["after"] >= after["total"]).mean() > 0.9  # drawn given the computed total
    with pytest.raises(InputError, match="names 'total', which is computed from 'a', 'b'; set these"):
        chain.intervene(rows, {"total": 3}, derived=derived)


def test_missing_values_keep_their_ranks():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 2_000)
    y = pd.Series(rng.normal(x.astype(float))).mask(rng.random(2_000) < np.where(x == 1, 0.6, 0.2))
    X = pd.DataFrame({"x": x, "y": y})
    chain = mcce.ChainModel(random_state=1).fit(X)
    rows = X[X["x"] == 0]
    after = chain.intervene(rows, {"x": 1})["y"].droplevel("draw")
    assert after[rows["y"].isna()].isna().all()  # missing values are last, and more frequent given 1
    assert abs(after.isna().mean() - 0.6) < 0.05


def test_chain_conditioned_on_the_decision_raises():
    decision = (LOANS["salary"] > 50_000).to_numpy()
    chain = mcce.ChainModel(fixed=["age"], random_state=1).fit(LOANS, decision)
    with pytest.raises(InputError, match=r"the decision is an effect of the features.*condition_on_decision=False"):
        chain.intervene(LOANS[:3], {"education": "master"})


def test_conditioning_on_the_decision_makes_causes_dependent():
    """The reason for the error: among accepted rows the effect of x on y is not 2."""
    model = MODELS["linear"]
    rows = model.rows(noise(20_000, 0))[["x", "y"]]
    accepted = rows[rows["x"] + rows["y"] > 2.0]
    assert np.polyfit(accepted["x"], accepted["y"], 1)[0] < 1.6


def test_explainer_without_conditioning_can_intervene():
    explainer = mcce.MCCE(lambda rows: rows["salary"] / 1e5, fixed=["age"], condition_on_decision=False, random_state=1)
    after = explainer.fit(LOANS).generator_.intervene(LOANS[:2], {"education": "master"}, keep=1.0, n=100)
    assert after.shape == (200, LOANS.shape[1])


def test_joint_generators_raise():
    generator = mcce.generators.GENERATORS.find("mixture")(random_state=1).fit(LOANS[["age", "salary"]])
    with pytest.raises(InputError, match=r"models all features jointly, without causes and effects. Use mcce\.Chain"):
        generator.intervene(LOANS[:2], {"age": 30})


def test_sampler_without_ranks_only_draws_afresh():
    chain = mcce.ChainModel(sampler={"salary": Normal(), "*": "cart"}, random_state=1).fit(LOANS[["age", "salary"]])
    rows = LOANS[["age", "salary"]][:5]
    message = r"keep=0.5 needs the ranks of 'salary', a descendant of 'age': Normal\(\) has no .*cart.*with keep=0"
    with pytest.raises(SamplerError, match=message):
        chain.intervene(rows, {"age": 30}, keep=0.5)
    assert len(chain.intervene(rows, {"age": 30}, keep=0.0)) == 5
    assert len(chain.intervene(rows, {"salary": 30_000})) == 5  # no descendants, no ranks


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ({"educaton": "master"}, {}, "names 'educaton', which is not a column of X; did you mean 'education'"),
        ({"education": "phd"}, {}, "column 'education' of values holds the level 'phd'"),
        ({}, {}, r"values is \{\}; give a dict of features"),
        ("education", {}, "values is 'education'; give a dict of features"),
        ({"age": [1, 2]}, {}, r"values\['age'\] has 2 values for 3 rows; give 3, or one"),
        ({"age": None}, {}, r"values\['age'\] has a missing value; give a value"),
        ({"age": 30.5}, {}, "holds 30.5 in row 0, which the training data's int64 cannot hold exactly"),
        ({"age": 30}, {"keep": 1.5}, "keep is 1.5; it must be a number from 0 to 1"),
        ({"age": 30}, {"keep": "all"}, "keep is 'all'; it must be a number from 0 to 1"),
        ({"age": 30}, {"n": 0}, "n is 0"),
    ],
)
def test_invalid_input_raises(values, options, message):
    chain = mcce.ChainModel(fixed=["age"], random_state=1).fit(LOANS)
    with pytest.raises(InputError, match=message):
        chain.intervene(LOANS[:3], values, **options)


def test_rows_are_named_by_a_single_index():
    chain = mcce.ChainModel(fixed=["age"], random_state=1).fit(LOANS)
    rows = chain.sample(2, LOANS[["age"]].head(2))
    with pytest.raises(InputError, match=r"the index of rows has several levels"):
        chain.intervene(rows, {"age": 30})


RECORDED = json.loads(dowhy.FIGURES.read_text())


@pytest.mark.parametrize(("name", "do"), dowhy.ACTIONS.items())
def test_means_and_counterfactuals_match_dowhy(name, do):
    """Both fit the same linear equations to the same rows; the chain has a slight ridge."""
    chain = MODELS[name].chain(dowhy.TRAINING)
    rows = MODELS[name].rows(noise(dowhy.ROWS, 3))
    after = chain.intervene(rows, do)
    for column, expected in RECORDED["counterfactuals"][name].items():
        np.testing.assert_allclose(after[column], expected, atol=0.005)
    drawn = chain.intervene(MODELS[name].rows(noise(dowhy.TRAINING, 0)), do, keep=0.0)
    for column, expected in RECORDED["means"][name].items():
        spread = float(drawn[column].std())
        assert abs(drawn[column].mean() - expected) <= 3.0 * spread * np.sqrt(1 / dowhy.TRAINING + 1 / dowhy.DRAWS)


def test_levels_below_the_action_are_drawn_although_dowhy_rejects_them():
    assert "ClassifierFCM" in RECORDED["classes"]
    rows = MODELS["classes"].rows(noise(3, 0))
    after = MODELS["classes"].chain(dowhy.TRAINING).intervene(rows, {"school": "degree"})
    assert set(after["job"]) <= set(JOBS)


@pytest.mark.slow
def test_figures_of_dowhy_are_current():
    pytest.importorskip("dowhy")
    for name, do in dowhy.ACTIONS.items():
        for column, values in dowhy.counterfactuals(name, do).items():
            np.testing.assert_allclose(values, RECORDED["counterfactuals"][name][column], atol=1e-6)
    assert dowhy.refusal() == RECORDED["classes"]


def test_feature_with_a_shared_unmeasured_cause_is_not_an_effect():
    rng = np.random.default_rng(3)
    cause = rng.normal(size=2000)
    X = pd.DataFrame({"a": cause + rng.normal(size=2000), "b": cause + rng.normal(size=2000)})
    X["c"] = X["a"] + X["b"] + rng.normal(size=2000)
    chain = mcce.ChainModel(sampler="norm", graph="a <-> b; a, b -> c", random_state=1).fit(X)
    after = chain.intervene(X.head(50), {"a": 3.0}).droplevel("draw")
    assert (after["b"] == X["b"].head(50)).all()
    step = after["c"] - X["c"].head(50)
    assert np.allclose(step, 3.0 - X["a"].head(50), atol=0.25)
