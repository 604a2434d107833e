"""A joint density as a rule keeps new real rows, rejects another dependence, and exempts unusual factuals."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import mcce
from mcce.exceptions import InputError
from mcce.generators import MixtureGenerator
from mcce.plausibility.joint_density import NormalMixture

N = 1000


def draw(n, seed):
    r = np.random.default_rng(seed)
    x = r.normal(size=n)
    return pd.DataFrame({"x": x, "y": x**2 + r.normal(0, 0.2, n), "z": np.where(r.random(n) < 0.5, "a", "b")})


def admits(rule, rows, factuals):
    return rule.function(rows, factuals)


@pytest.fixture(scope="module")
def likely():
    return mcce.joint_density(draw(N, 1), share=0.1)


@pytest.fixture(scope="module")
def typical():
    return pd.DataFrame({"x": np.zeros(N), "y": np.zeros(N), "z": "a"})  # the mode, so no row is exempt


def test_share_of_new_real_rows_is_rejected(likely, typical):
    rejected = 1 - admits(likely, draw(N, 2), typical).mean()
    assert 0.06 < rejected < 0.2  # the smaller of two densities rejects a little more than the share


def test_rows_with_the_same_margins_and_another_dependence_are_rejected(likely, typical):
    rows = draw(N, 3)
    rows["y"] = np.random.default_rng(4).permutation(rows["y"])
    assert admits(likely, rows, typical).mean() < 0.5


def test_row_as_likely_as_an_unusual_factual_is_admitted(likely):
    unusual = pd.DataFrame({"x": [1.5], "y": [0.0], "z": ["a"]})
    assert not admits(likely, unusual, unusual.assign(x=0.0)).any()
    assert admits(likely, unusual, unusual).all()


def test_counterfactuals_follow_the_rule(likely):
    X = draw(N, 1)
    explainer = mcce.MCCE(lambda rows: rows["x"] + rows["y"] / 4, decision=(1.2, np.inf), random_state=1).fit(X)
    refused = X[X["x"] + X["y"] / 4 < 1.2].head(20)
    found = explainer.explain(refused, sparse=True, constraints=[likely]).frame
    own = refused.loc[found.index.get_level_values("id")]
    assert len(found) == len(refused)
    assert admits(likely, found[list(X)], own).all()


def test_other_generators_give_the_density(typical):
    chain = mcce.joint_density(draw(N, 1), generator=mcce.ChainModel(random_state=1))
    assert 0.7 < admits(chain, draw(N, 2), typical).mean() < 0.97


def test_level_of_one_half_only_is_known_to_both():
    X = draw(N, 1)
    X.loc[0, "z"] = "rare"
    rule = mcce.joint_density(X)
    assert admits(rule, X.head(3), X.head(3)).all()


def test_density_of_one_normal_is_that_of_scipy():
    X = draw(49, 1)  # one component
    points = np.column_stack([X["x"], X["y"]])
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    cov = np.cov(points.T, bias=True) + 0.001 * np.eye(2)
    expected = multivariate_normal(points.mean(axis=0), cov).logpdf(points)
    found = NormalMixture(X[["x", "y"]]).fit(X).log_density(X)
    assert np.diff(found - expected) == pytest.approx(0.0, abs=1e-9), "constant columns add a constant"


def test_dates_missing_values_and_rare_levels_are_judged():
    r = np.random.default_rng(5)
    day = r.integers(0, 1000, N)
    X = pd.DataFrame({"on": pd.Timestamp(2020, 1, 1) + pd.to_timedelta(day, "D"), "age": 20 + day / 10})
    X["paid"] = np.where(day < 500, np.nan, r.normal(size=N))
    X["place"] = pd.Categorical(np.where(day < 800, "north", "south")).add_categories("abroad")
    X.loc[0, "place"] = "abroad"
    rule = mcce.joint_density(X, share=0.05)
    young = X[day < 200]
    typical = X.iloc[np.full(N, np.argmin(abs(day - 250)))]
    assert 0.9 < admits(rule, X, typical).mean() < 0.99
    typical = typical.head(len(young))
    for wrong in (young.assign(age=110.0), young.assign(paid=0.0), young.assign(on=pd.Timestamp(2022, 9, 1))):
        assert admits(rule, wrong, typical).mean() < 0.05
    assert admits(rule, young.assign(place="abroad"), typical).mean() < 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": draw(20, 1)}, "X has 20 rows; joint_density needs at least 50"),
        ({"share": 1.0}, "share"),
        ({"generator": "mixture"}, "generator is 'mixture'; give an unfitted generator"),
        (
            {"X": pd.DataFrame({"id": [f"k{i}" for i in range(100)]}), "generator": MixtureGenerator()},
            "is 0 by the generator of the other half",
        ),
    ],
)
def test_errors(given, message):
    with pytest.raises(InputError, match=message):
        mcce.joint_density(**{"X": draw(100, 1), **given})
