"""Comparison of samplers on every feature: scores, ranks, joint scores, and the choice."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import Auto, ChainModel, InputError, compare_conditionals

matplotlib.use("Agg")
SAMPLERS = ["marginal", "norm", "cart", "parametric"]


def process(n, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = 2 * x + rng.normal(size=n)
    return pd.DataFrame({"x": x, "y": y, "z": np.where(y > 0, "high", "low"), "w": rng.exponential(size=n)})


@pytest.fixture(scope="module")
def compared():
    return compare_conditionals(process(300), SAMPLERS, fixed=["x"], random_state=1)


@pytest.mark.slow
def test_each_feature_has_its_own_winner(compared):
    ranks = compared.table("log_score_rank")
    assert list(ranks.index) == ["y", "z", "w"]
    assert list(ranks.columns) == SAMPLERS
    assert ranks.loc["y"].idxmin() == "norm"
    assert ranks.loc["z"].idxmin() == "cart"
    assert compared.choice.table["sampler"].to_dict() == {"y": "norm", "z": "cart", "w": "marginal"}


def test_figures_are_means_of_rows_and_paired_differences(compared):
    scores = compared.scores
    assert scores.loc[("y", "norm"), ["log_score_behind", "log_score_behind_se"]].tolist() == [0.0, 0.0]
    best = scores.loc[("y", "norm"), "log_score"]
    for name in ("marginal", "cart"):
        row = scores.loc[("y", name)]
        assert row["log_score_behind"] == pytest.approx(best - row["log_score"])
        assert row["loss_behind"] == pytest.approx(row["loss"] - scores.loc["y", "loss"].min())
    # hard rows are hard for both: the paired standard error is below that of two independent means
    near = scores.loc[("y", "parametric")]
    assert near["log_score_behind_se"] < 0.5 * np.hypot(near["log_score_se"], scores.loc[("y", "norm"), "log_score_se"])
    assert scores["loss_name"].groupby("feature").first().to_dict() == {"w": "CRPS", "y": "CRPS", "z": "Brier"}
    assert (scores["fit_seconds"].drop(("z", "norm")) > 0).all()


def test_joint_scores_are_sums_over_the_features(compared):
    joint = compared.joint
    sums = compared.scores["log_score"].groupby("sampler").sum()
    assert joint.loc["cart", "log_score"] == pytest.approx(sums["cart"])
    assert np.isnan(joint.loc["norm", "log_score"])  # it cannot model z
    assert joint["features"].to_dict() == {"marginal": 3, "norm": 2, "cart": 3, "parametric": 3}
    assert joint["behind"].min() == 0.0


def test_excluded_candidates_state_the_reason(compared):
    assert compared.scores.loc[("z", "norm"), "note"].startswith("NormSampler() cannot model 'z'")
    assert compared.scores.drop(("z", "norm"))["note"].eq("").all()


@pytest.mark.slow
def test_same_seed_gives_the_choice_of_a_chain(compared):
    chain = ChainModel(sampler=Auto(SAMPLERS), fixed=["x"], random_state=1).fit(process(300))
    assert chain.choice_.table["sampler"].equals(compared.choice.table["sampler"])
    assert chain.choice_.table["score"].to_numpy() == pytest.approx(compared.choice.table["score"].to_numpy())


@pytest.mark.slow
def test_decision_is_an_additional_predictor():
    X = process(200)[["x", "w"]]
    late = (X["w"] > X["w"].median()).to_numpy()
    with_it = compare_conditionals(X, ["marginal", "cart"], fixed=["x"], decision=late, n_draws=5)
    without = compare_conditionals(X, ["marginal", "cart"], fixed=["x"], n_draws=5)
    assert with_it.scores.loc[("w", "cart"), "loss"] < 0.8 * without.scores.loc[("w", "cart"), "loss"]
    assert with_it.scores.loc[("w", "marginal"), "log_score"] == without.scores.loc[("w", "marginal"), "log_score"]


@pytest.mark.slow
def test_graph_gives_each_feature_its_parents():
    X, options = process(150), {"fixed": ["x"], "n_draws": 5}
    parents = {"y": ["x"], "z": ["y"], "w": []}
    by_graph = compare_conditionals(X, ["marginal", "cart"], graph="x -> y -> z; w", **options)
    by_predictors = compare_conditionals(X, ["marginal", "cart"], predictors=parents, **options)
    columns = ["log_score", "loss"]
    pd.testing.assert_frame_equal(by_graph.scores[columns], by_predictors.scores[columns])
    ordinary = compare_conditionals(X, ["marginal", "cart"], **options)
    assert not by_graph.scores[columns].equals(ordinary.scores[columns])


def test_repr_shows_scores_and_choices(compared):
    text = repr(compared)
    assert text.startswith("Log scores of 300 held-out rows in 5 folds")
    assert "chosen" in text
    assert "Whole rows" in text
    assert compared._repr_html_().count("<table") == 2


@pytest.mark.parametrize("by", ["log_score", "loss"])
def test_plot_has_a_panel_for_each_feature(compared, by):
    panels = compared.plot(by=by)
    assert [ax.get_title(loc="left") for ax in panels] == ["y", "z", "w"]
    assert [label.get_text() for label in panels[0].get_yticklabels()] == SAMPLERS
    assert any(text.get_text() == "left out" for text in panels[1].texts)  # norm
    matplotlib.pyplot.close(panels[0].figure)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.plot(by="crps"), "by is 'crps'; it must be 'log_score' or 'loss'"),
        (lambda c: c.table("crps"), "by is 'crps'; it must be a column of scores: log_score"),
        (lambda c: mcce.compare_conditionals(process(30), fixed=["x"], n_folds=20), "X has 30 rows; choosing samplers"),
        (lambda c: mcce.compare_conditionals(process(30), [], fixed=["x"]), "the list is empty"),
        (lambda c: mcce.compare_conditionals(process(30), fixed=["v"]), "'v'"),
    ],
)
def test_invalid_arguments_raise(compared, call, message):
    with pytest.raises(InputError, match=message):
        call(compared)
