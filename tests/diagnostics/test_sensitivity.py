"""`MCCE.sensitivity` compared with figures computed in another way from the same counterfactuals."""

import dataclasses

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from sklearn.tree import DecisionTreeClassifier

import mcce
from mcce.exceptions import InputError
from mcce.generators import ChainModel


@pytest.fixture(scope="module")
def loans():
    X = mcce.datasets.load_loans(600).X[["age", "salary", "savings", "housing"]]
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(
        X[["salary", "savings"]], X.eval("savings + salary > 90_000")
    )
    explainer = mcce.MCCE(
        lambda rows: model.predict_proba(rows[["salary", "savings"]])[:, 1], fixed=["age"], random_state=1
    )
    return explainer.fit(X), X


def chains(explainer, X, samplers, settings):
    """Explain with each sampler by separately fitted explainers, twice each."""
    found = {}
    for sampler in samplers:
        other = mcce.MCCE(explainer.model, fixed=["age"], sampler=sampler, random_state=1).fit(X)
        first = other.explain(X.head(40), **settings)
        found[sampler] = [first, first.redrawn(1)]
    return found


def indicators(found, X):
    factuals = found.factuals
    frame = found.frame.droplevel("rank").reindex(factuals.index)
    changed = (frame.astype(object) != factuals[frame.columns].astype(object)) & frame.notna().any(axis=1).to_numpy()[
        :, None
    ]
    return changed[found.draws.to_numpy() > 0]


@pytest.mark.slow
def test_figures_match_separate_explainers(loans):
    explainer, X = loans
    settings = {"n_samples": 60, "progress": False}
    depends = explainer.sensitivity(X.head(40), samplers=["cart", "parametric"], n_samples=60)
    z = {
        name: [indicators(one, X) for one in each]
        for name, each in chains(explainer, X, ["cart", "parametric"], settings).items()
    }
    between = [
        cohen_kappa_score(a.to_numpy().ravel(), b.to_numpy().ravel()) for a in z["cart"] for b in z["parametric"]
    ]
    assert depends.kappa.loc["cart", "parametric"] == pytest.approx(np.mean(between))
    same = cohen_kappa_score(z["cart"][0].to_numpy().ravel(), z["cart"][1].to_numpy().ravel())
    assert depends.kappa.loc["cart", "cart"] == pytest.approx(same)
    values = np.array([[one.to_numpy(float) for one in each] for each in z.values()])
    within = values.var(axis=1, ddof=1).mean(axis=0)
    model = np.maximum(values.mean(axis=1).var(axis=0, ddof=1) - within / 2, 0).sum()
    assert depends.summary["model_choice"] == pytest.approx(model / (model + within.sum()))
    assert depends.summary["model_choice"] + depends.summary["monte_carlo"] == pytest.approx(1)
    id, feature = depends.features.index[0]
    assert depends.features.loc[(id, feature), "share"] == np.mean(
        [one.loc[id, feature] for each in z.values() for one in each]
    )


def test_identical_generators_differ_only_by_chance(loans):
    explainer, X = loans
    again = ChainModel(fixed=["age"], random_state=1).fit(X, explainer.model(X) >= 0.5)
    depends = explainer.sensitivity(X.head(40), samplers=["cart"], generators=[again], n_samples=60)
    assert depends.summary["model_choice"] == 0
    assert depends.kappa.iloc[0, 0] == depends.kappa.iloc[1, 1]


def test_agreeing_generators_are_reported_without_nan(loans):
    explainer, X = loans
    depends = explainer.sensitivity(X.tail(2), samplers=["cart", "ctree"], n_samples=30)
    agreeing = dataclasses.replace(depends, summary=depends.summary * np.nan)
    assert "every draw of every generator changes the same features" in repr(agreeing)
    assert "nan%" not in repr(agreeing)


@pytest.mark.slow
def test_different_generators_are_distinguished_from_monte_carlo_error(loans):
    explainer, X = loans

    class Lowest(mcce.NormSampler):
        """A sampler that draws a constant: its chain gives different counterfactuals."""

        def sample(self, given, rng, within=None):
            return np.full_like(super().sample(given, rng, within), 1_000.0)

    constant = {"salary": Lowest(), "*": "cart"}
    same = explainer.sensitivity(X.head(40), samplers=["cart", "ctree"], sparse=True, n_samples=200)
    unlike = explainer.sensitivity(X.head(40), samplers=["cart", constant], sparse=True, n_samples=200)
    assert unlike.summary["kappa"] < same.summary["kappa"]
    assert unlike.summary["model_choice"] > same.summary["model_choice"]


@pytest.mark.slow
def test_sentence_and_plot_of_one_factual(loans):
    explainer, X = loans
    depends = explainer.sensitivity(X.head(40), samplers=["cart", "ctree"], sparse=True, n_samples=60)
    id = depends.factuals.index[0]
    table = depends.features.xs(id, level="id")
    text = depends.sentence(id)
    for name, row in table.iterrows():
        count = "all 2" if row["generators"] == 2 else "1 of 2"
        assert f"{name}: " in text
        assert f"changed under {count} generators" in text
    axes = depends.plot(id)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(depends._features_of(id).index)
    assert "2 generators" in str(depends)


def test_incomparable_settings_raise(loans):
    explainer, X = loans
    with pytest.raises(InputError, match="give at least two"):
        explainer.sensitivity(X.head(5), samplers=["cart"])
    with pytest.raises(InputError, match="leave n_counterfactuals out"):
        explainer.sensitivity(X.head(5), samplers=["cart", "parametric"], n_counterfactuals=2)
    with pytest.raises(InputError, match="no factual 'nobody'"):
        explainer.sensitivity(X.head(5), samplers=["cart", "parametric"], n_samples=20).sentence("nobody")
    other = ChainModel(fixed=["salary"], random_state=1).fit(X, np.ones(len(X), dtype=bool))
    with pytest.raises(InputError, match="fixed"):
        explainer.sensitivity(X.head(5), samplers=["cart"], generators=[other])


def test_weights_are_passed_to_every_generator(loans):
    _, X = loans
    left_out = X.index % 2 == 0
    X = X.assign(savings=X["savings"].where(~left_out, 999_999))

    def score(rows):
        return (rows["salary"] > 60_000).astype(float)

    explainer = mcce.MCCE(score, fixed=["age"], random_state=1).fit(X, sample_weight=(~left_out).astype(float))
    factuals = X[~left_out & (X["salary"] <= 60_000)].head(20)
    depends = explainer.sensitivity(factuals, samplers=["cart", "ctree"], n_samples=100)
    assert depends.factuals["explained"].eq(1).all()
    assert depends.features.xs("savings", level="feature")["high"].max() < 999_999
