"""`Auto`: known processes choose their own model, reproducibly for a seed."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

import mcce
from mcce import Auto, ChainModel, ConditionalSampler, InputError, MarginalSampler, SamplerError
from mcce.base.progress import progress_bar
from mcce.samplers.base import SAMPLERS
from mcce.storage.state import from_state, to_state
from tests.marks import nightly_rows

QUICK = ["marginal", "norm", "cart", "ctree", "parametric"]


def linear(n, rng):
    x = rng.normal(size=n)
    return pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=n)})


def step(n, rng):
    x = rng.normal(size=n)
    return pd.DataFrame({"x": x, "y": np.where(x > 0.3, "high", "low")})


def noise(n, rng):
    return pd.DataFrame({"x": rng.normal(size=n), "y": rng.exponential(size=n)})


def chosen(X, auto, seed=1, **settings):
    fixed = [name for name in X if name != "y"]
    chain = ChainModel(sampler=auto, fixed=fixed, random_state=seed, **settings).fit(X)
    return chain.choice_.features[0].sampler


@pytest.mark.slow
@pytest.mark.parametrize(
    ("process", "auto", "model"),
    [
        (step, Auto(score="draws"), "cart"),  # forest has the same draws at a higher cost
        *nightly_rows(
            (linear, "auto", "norm"),  # parametric and copula include it, at a higher cost
            (noise, "auto", "marginal"),  # ctree without a split is equivalent, at a higher cost
        ),
    ],
)
def test_true_model_of_a_feature_is_chosen(process, auto, model):
    assert [chosen(process(300, np.random.default_rng(seed)), auto, seed) for seed in range(3)] == [model] * 3


@pytest.mark.slow
def test_tree_is_chosen_for_a_step_and_not_for_a_line():
    rng = np.random.default_rng(1)
    x = rng.uniform(size=300)
    stepped = pd.DataFrame({"x": x, "y": np.where(x > 0.5, 3.0, 0.0) + 0.3 * rng.normal(size=300)})
    candidates = ["marginal", "norm", "cart", "parametric", "copula"]
    assert chosen(stepped, Auto(candidates)) == "cart"
    assert chosen(linear(300, rng), Auto(candidates)) == "norm"


class Memory(ConditionalSampler):
    """A sampler that repeats the value of the training row with equal givens: perfect for training rows."""

    handles = frozenset({"numeric"})
    thread_safe = True

    def fit(self, given, target):
        self.x_, self.y_ = given.matrix[:, 0].copy(), target.values.copy()
        return self

    def sample(self, given, rng, within=None):
        order = np.argsort(self.x_)
        nearest = np.minimum(np.searchsorted(self.x_[order], given.matrix[:, 0]), order.size - 1)
        return self.y_[order][nearest]


def test_candidates_are_judged_on_held_out_rows():
    X = linear(300, np.random.default_rng(1))
    assert chosen(X, Auto({"norm": "norm", "memory": Memory()}, score="draws")) == "norm"


@pytest.mark.slow
def test_candidate_without_density_is_judged_by_draws():
    rng = np.random.default_rng(2)
    X = linear(300, rng).assign(z=rng.choice(["a", "b"], 300))
    regression = mcce.EstimatorSampler(LinearRegression())
    chain = ChainModel(sampler=Auto({"marginal": "marginal", "regression": regression}), fixed=["x"], random_state=1)
    table = chain.fit(X).choice_.table
    assert table["sampler"].to_dict() == {"y": "regression", "z": "marginal"}
    assert table["judged_by"].to_dict() == {"y": "CRPS", "z": "log score"}  # a regression cannot model z
    assert type(chain.samplers_["y"]).__name__ == "EstimatorSampler"


def test_three_donors_of_counts_are_judged_by_draws():
    """Their shares are thirds, so most counts are nearly impossible: the log score does not reflect the draws."""
    rng = np.random.default_rng(4)
    x = rng.uniform(0, 10, 400)
    X = pd.DataFrame({"x": x, "y": rng.poisson(5 + 4 * x).astype(float)})
    chain = ChainModel(sampler=Auto(["marginal", "pmm"]), fixed=["x"], random_state=1).fit(X)
    assert chain.choice_.table.loc["y", ["sampler", "judged_by"]].tolist() == ["pmm", "CRPS"]
    many = Auto({"marginal": "marginal", "many donors": mcce.PmmSampler(n_donors=40)})
    by_share = ChainModel(sampler=many, fixed=["x"], random_state=1).fit(X).choice_.table
    assert by_share.loc["y", ["sampler", "judged_by"]].tolist() == ["many donors", "log score"]


def test_candidate_without_density_does_not_affect_other_scores():
    """Regression: with CRPS because of pmm, `auto` lost up to 1.4 of the log score of a row (FICO)."""
    rng = np.random.default_rng(4)
    x = rng.uniform(0, 10, 400)
    X = pd.DataFrame({"x": x, "y": rng.poisson(5 + 4 * x).astype(float)})
    alone, beside = (
        ChainModel(sampler=Auto(names), fixed=["x"], random_state=1).fit(X).choice_.features[0]
        for names in (["marginal", "norm", "parametric"], ["marginal", "norm", "parametric", "pmm"])
    )
    assert (beside.sampler, beside.judged_by) == (alone.sampler, "log score")
    assert beside.verdicts[:-1] == alone.verdicts
    assert beside.verdicts[-1].score is None
    assert beside.verdicts[-1].note.endswith(f"and its CRPS is not better than that of {alone.sampler}")


def test_all_default_candidates_of_counts_have_a_log_score():
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"x": rng.normal(size=60), "y": rng.poisson(3, 60).astype(float)})
    found = ChainModel(sampler=Auto(n_folds=2), fixed=["x"], random_state=1).fit(X).choice_
    assert found.left_out.empty
    assert found.table.loc["y", "judged_by"] == "log score"


def test_brier_scores_judge_levels_from_draws():
    X = step(300, np.random.default_rng(3))
    tree = mcce.EstimatorSampler(DecisionTreeClassifier(max_depth=1))
    chain = ChainModel(sampler=Auto({"marginal": "marginal", "stump": tree}, score="draws"), fixed=["x"]).fit(X)
    assert chain.choice_.table.loc["y", ["sampler", "judged_by"]].tolist() == ["stump", "Brier score"]


class Doubled(MarginalSampler):
    """The true linear process of these tests, as a domain expert would register it."""

    handles = frozenset({"numeric"})
    draws_observed = False
    ignores_given = False

    def sample(self, given, rng, within=None):
        return 2 * given.matrix[:, 0] + rng.normal()

    def log_density(self, given, values, training_rows=None):
        return -0.5 * (values - 2 * given.matrix[:, 0]) ** 2 - 0.5 * np.log(2 * np.pi)


def test_registered_sampler_can_be_a_candidate_by_name(monkeypatch):
    monkeypatch.setattr(SAMPLERS, "known", dict(SAMPLERS.known))
    mcce.register_sampler("doubled", Doubled)
    X = linear(300, np.random.default_rng(1))
    chain = ChainModel(sampler=Auto(["marginal", "doubled", "cart", "ctree"]), fixed=["x"], random_state=1).fit(X)
    assert chain.choice_.features[0].sampler == "doubled"
    assert isinstance(chain.samplers_["y"], Doubled)


class Broken(MarginalSampler):
    def fit(self, given, target):
        raise RuntimeError("no licence")


def test_failing_candidates_are_dropped_with_the_reason():
    X = step(100, np.random.default_rng(1))
    chain = ChainModel(sampler=Auto(["norm", Broken(), "cart"]), fixed=["x"], random_state=1).fit(X)
    notes = chain.choice_.left_out["note"]
    assert list(notes.index.get_level_values("sampler")) == ["norm", "Broken()"]
    assert notes.iloc[0].startswith("NormSampler() cannot model 'y': it is categorical")
    assert notes.iloc[1] == "RuntimeError: no licence"
    assert chain.choice_.sentences == ["y: cart, because no other candidate could be scored"]


def test_missing_values_and_few_donors_drop_candidates():
    X = linear(200, np.random.default_rng(1))
    X.loc[::10, "y"] = np.nan
    chain = ChainModel(sampler=Auto(["marginal", "norm", "copula"]), fixed=["x"], min_donors=5, random_state=1).fit(X)
    notes = chain.choice_.left_out["note"].droplevel("feature")
    assert "cannot guarantee min_donors=5" in notes["norm"]
    assert "copula" in notes.index
    assert chain.samplers_["y"].min_donors == 5


def test_no_remaining_candidate_raises_with_the_reasons():
    X = step(100, np.random.default_rng(1))
    message = (
        r"no candidate can model 'y' \(norm: NormSampler\(\) cannot.*Broken\(\): RuntimeError: no licence\)\. Name"
    )
    with pytest.raises(SamplerError, match=message):
        ChainModel(sampler=Auto(["norm", Broken()]), fixed=["x"]).fit(X)


def loans(n=300):
    return mcce.datasets.load_loans(n).X[["age", "sex", "education", "salary", "savings", "housing"]]


@pytest.fixture(scope="module")
def chain():
    return ChainModel(sampler=Auto(QUICK), fixed=["age", "sex"], random_state=3, n_jobs=1).fit(loans())


@pytest.mark.slow
def test_choice_depends_on_the_seed_and_not_on_threads(chain):
    again = ChainModel(sampler=Auto(QUICK), fixed=["age", "sex"], random_state=3, n_jobs=3).fit(loans())
    assert again.choice_ == chain.choice_
    pd.testing.assert_frame_equal(again.sample(20), chain.sample(20))
    other = ChainModel(sampler=Auto(QUICK), fixed=["age", "sex"], random_state=4).fit(loans())
    assert other.choice_ != chain.choice_  # other folds, other scores


@pytest.mark.slow
def test_chosen_sampler_is_fitted_as_if_named(chain):
    by_name = {each.feature: each.sampler for each in chain.choice_.features}
    named = ChainModel(sampler=by_name, fixed=["age", "sex"], random_state=3).fit(loans())
    assert named.choice_ is None
    pd.testing.assert_frame_equal(named.sample(50), chain.sample(50))


def test_choice_survives_pickling_and_storage(chain):
    copy = pickle.loads(pickle.dumps(chain))
    assert copy.choice_ == chain.choice_
    assert copy.sampler == chain.sampler
    pd.testing.assert_frame_equal(copy.sample(20), chain.sample(20))
    assert from_state(to_state(chain.choice_)) == chain.choice_
    assert from_state(to_state(chain.sampler)) == chain.sampler
    fitted = from_state(to_state(chain.samplers_))
    assert {name: type(s) for name, s in fitted.items()} == {name: type(s) for name, s in chain.samplers_.items()}


@pytest.mark.slow
def test_auto_may_be_used_for_some_features():
    chain = ChainModel(sampler={"salary": "norm", "*": Auto(QUICK)}, fixed=["age", "sex"], random_state=1)
    found = chain.fit(loans(100)).choice_
    assert [each.feature for each in found.features] == ["education", "savings", "housing"]
    assert type(chain.samplers_["salary"]).__name__ == "NormSampler"


@pytest.mark.slow
def test_explainer_chooses_given_its_decision():
    X = loans()
    middle = X["salary"].median()
    explainer = mcce.MCCE(
        lambda rows: (rows["salary"] > middle).astype(float), fixed=["age", "sex"], sampler=Auto(QUICK), random_state=1
    ).fit(X)
    salary = explainer.generator_.choice_.features[1]
    assert salary.feature == "salary"
    without = ChainModel(sampler=Auto(QUICK), fixed=["age", "sex"], random_state=1).fit(X).choice_.features[1]
    assert salary.best.score > without.best.score + 0.1  # the decision and the salary are strongly dependent
    denied = X[X["salary"] <= middle].head(3)
    assert len(explainer.explain(denied, n_samples=100)) == 3


@pytest.mark.parametrize(
    ("auto", "error", "message"),
    [
        (Auto([]), InputError, "candidates of Auto: the list is empty; give at least one"),
        (Auto("cart"), InputError, "candidates of Auto: got 'cart'; give a list of samplers"),
        (Auto(["cart", "cart"]), InputError, "'cart' occurs twice; name each once"),
        (Auto({1: "cart"}), InputError, "the name 1 is not a string"),
        (Auto(["crat"]), SamplerError, "no sampler 'crat'; did you mean 'cart'"),
        (Auto(score="crps"), InputError, "score of Auto is 'crps'; it must be 'log' or 'draws'"),
        (Auto(n_folds=1), InputError, "n_folds of Auto is 1; it must be a whole number of at least 2"),
        (Auto(max_rows=9), InputError, "max_rows of Auto is 9; it must be a whole number of at least 10"),
        (Auto(n_draws=1), InputError, "n_draws of Auto is 1"),
        (
            Auto(n_folds=60),
            InputError,
            "X has 100 rows; choosing samplers .* in 60 folds needs at least 120. Give more rows",
        ),
    ],
)
def test_invalid_settings_raise(auto, error, message):
    with pytest.raises(error, match=message):
        ChainModel(sampler=auto, fixed=["x"]).fit(noise(100, np.random.default_rng(1)))


def test_name_auto_is_reserved():
    with pytest.raises(SamplerError, match="the sampler name 'auto' is reserved"):
        mcce.register_sampler("auto", MarginalSampler)


def test_progress_bar_is_shown(monkeypatch):
    shown = []

    def bar(total, what, progress):
        shown.append((total, what))
        return progress_bar(total, what, progress)

    monkeypatch.setattr("mcce.base.threads.progress_bar", bar)
    ChainModel(sampler=Auto(["marginal", "norm"]), fixed=["x"]).fit(noise(50, np.random.default_rng(1)))
    assert shown == [(1, "choosing samplers"), (1, "fitting")]
