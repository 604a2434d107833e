"""Weights in the copula, boosting and scikit-learn's estimators; samplers that accept weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mcce
from mcce.samplers.copula.margins import kernel_margin
from mcce.samplers.predictions import Tails
from mcce.table import Column, Schema
from mcce.table.weights import equal_chances
from tests.marks import nightly, nightly_but


@pytest.fixture(scope="module")
def two_groups():
    """Half of the rows have y around 0, half around 10 and more spread; both for any x."""
    rng = np.random.default_rng(0)
    n = 400
    group = np.arange(n) % 2
    y = np.where(group == 1, 10.0 + 2.0 * rng.normal(size=n), 0.3 * rng.normal(size=n))
    X = pd.DataFrame({"x": rng.normal(size=n), "level": np.where(group == 1, "b", "a"), "y": y})
    return X, group


@pytest.mark.nightly
def test_copula_of_counts_equals_repeated_rows():
    """Numbers with atoms, ordered and unordered levels of two and more: margins, correlations, draws, densities."""
    X = mcce.datasets.load_loans(250).X
    counts = np.random.default_rng(5).integers(0, 4, 250)
    weighted = mcce.ChainModel(sampler="copula", fixed=["age"], random_state=1).fit(X, sample_weight=counts)
    repeated = mcce.ChainModel(sampler="copula", fixed=["age"], random_state=1)
    repeated.fit(X.iloc[np.repeat(np.arange(250), counts)].reset_index(drop=True))
    last = X.columns[-1]
    found, expected = (chain.samplers_[last].correlation_ for chain in (weighted, repeated))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    pd.testing.assert_frame_equal(weighted.sample(200), repeated.sample(200))
    found, expected = (chain.log_density(X[:60], per_feature=True) for chain in (weighted, repeated))
    levels = X.columns[1:].difference(X.select_dtypes("number").columns)
    pd.testing.assert_frame_equal(found[levels], expected[levels], atol=1e-8)
    found, expected = (kernel_margin(chain.samplers_[last].target_margin_) for chain in (weighted, repeated))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-12)


def test_copula_uses_weights_stored_outside_its_table():
    """A table caches its estimates; a target with other weights must not reuse them."""
    X = pd.DataFrame({"x": np.tile([0.0, 1.0, 2.0], 60), "y": np.repeat([1.0, 2.0], 90)})
    table = Schema.from_data(X).encode(X)
    plain = mcce.GaussianCopulaSampler().fit(table.first(1), table.column(1))
    weights = np.where(X["y"] == 2.0, 3.0, 1.0)
    weighted = mcce.GaussianCopulaSampler().fit(table.first(1), Column(table.features[1], table.matrix[:, 1], weights))
    assert np.exp(plain.log_density(table.first(1), X["y"].to_numpy()))[-1] == pytest.approx(0.5, abs=0.01)
    assert np.exp(weighted.log_density(table.first(1), X["y"].to_numpy()))[-1] == pytest.approx(0.75, abs=0.01)


@pytest.mark.slow
def test_weighted_copula_round_trips(tmp_path):
    X = mcce.datasets.load_loans(120).X
    weights = np.random.default_rng(5).uniform(0.5, 2.0, 120)
    chain = mcce.ChainModel(sampler="copula", fixed=["age"], random_state=1).fit(X, sample_weight=weights)
    chain.save(tmp_path / "chain")
    again = mcce.ChainModel.load(tmp_path / "chain")
    pd.testing.assert_frame_equal(again.sample(50), chain.sample(50))
    pd.testing.assert_series_equal(again.log_density(X[:20]), chain.log_density(X[:20]))


SAMPLERS = {
    "boosting": mcce.BoostingSampler(n_quantiles=5, max_trees=3),
    "residuals": mcce.EstimatorSampler(LinearRegression()),
    "copula": "copula",
    "normrank": "normrank",
    "cart": "cart",
}


@pytest.mark.parametrize("name", nightly_but(SAMPLERS, *SAMPLERS.keys() - {"boosting"}))
@pytest.mark.parametrize("share", [0.1, 0.9])
def test_numbers_are_drawn_by_weight(name, share, two_groups):
    """The share of draws of two groups of rows is that of their weights for every sampler."""
    X, group = two_groups
    weights = np.where(group == 1, share, 1 - share) * 3.7
    chain = mcce.ChainModel(sampler=SAMPLERS[name], fixed=["x"], random_state=1).fit(
        X[["x", "y"]], sample_weight=weights
    )
    drawn = chain.sample(10, X[["x"]].iloc[:200])["y"]
    tolerance = 0.07 if name in ("boosting", "cart") else 0.05  # trees overfit
    assert abs((drawn > 5.0).mean() - share) < tolerance


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [mcce.BoostingSampler(max_trees=3), mcce.EstimatorSampler(LogisticRegression())])
@pytest.mark.parametrize("share", [0.1, *nightly(0.9)])
def test_levels_are_drawn_by_weight(sampler, share, two_groups):
    X, group = two_groups
    weights = np.where(group == 1, share, 1 - share) * 3.7
    chain = mcce.ChainModel(sampler=sampler, fixed=["x"], random_state=1).fit(X[["x", "level"]], sample_weight=weights)
    drawn = chain.sample(10, X[["x"]].iloc[:200])["level"]
    assert abs((drawn == "b").mean() - share) < 0.05


def test_linear_estimator_equals_repeated_rows(two_groups):
    X, _ = two_groups
    counts = np.random.default_rng(2).integers(1, 4, len(X))
    table = Schema.from_data(X[["x", "y"]]).encode(X[["x", "y"]])
    rows = np.repeat(np.arange(len(X)), counts)
    target = Column(table.features[1], table.matrix[:, 1], counts.astype(float))
    weighted = mcce.EstimatorSampler(LinearRegression()).fit(table.first(1), target)
    repeated = mcce.EstimatorSampler(LinearRegression()).fit(table.take(rows).first(1), table.take(rows).column(1))
    np.testing.assert_allclose(weighted.estimators_[0].coef_, repeated.estimators_[0].coef_, rtol=1e-9)
    assert weighted.residuals_.values.size == repeated.residuals_.values.size == rows.size


def test_matching_by_an_estimator_uses_each_copy_as_donor(two_groups):
    X, _ = two_groups
    counts = np.random.default_rng(2).integers(1, 4, len(X))
    sampler = mcce.EstimatorSampler(LinearRegression(), method="pmm")
    chain = mcce.ChainModel(sampler=sampler, fixed=["x"], random_state=1)
    chain.fit(X[["x", "y"]], sample_weight=counts)
    assert chain.samplers_["y"].donors_.values.size == counts.sum()
    with pytest.raises(mcce.SamplerError, match="got weights that are not whole numbers"):
        chain.fit(X[["x", "y"]], sample_weight=0.7 * counts)


@pytest.mark.parametrize(
    "estimator", [KNeighborsRegressor(), make_pipeline(StandardScaler(), LinearRegression())], ids=["knn", "pipeline"]
)
def test_estimator_without_weights_raises(estimator, two_groups):
    X, group = two_groups
    chain = mcce.ChainModel(sampler=mcce.EstimatorSampler(estimator), fixed=["x"])
    with pytest.raises(
        mcce.SamplerError, match="for 'y' does not take sample_weight, because the fit of its estimator"
    ):
        chain.fit(X[["x", "y"]], sample_weight=group + 1)


def test_tails_of_counts_equal_repeated_rows():
    rng = np.random.default_rng(3)
    values, counts = np.round(rng.normal(size=60), 1), rng.integers(1, 5, 60)
    outer = np.column_stack([np.full(60, -1.0), np.full(60, 1.0)])
    found = Tails.read(outer, values, 0.1, counts.astype(float))
    rows = np.repeat(np.arange(60), counts)
    expected = Tails.read(outer[rows], values[rows], 0.1)
    np.testing.assert_array_equal(found.below, expected.below)
    np.testing.assert_array_equal(found.above, expected.above)


def test_equal_probabilities_have_the_shares_of_the_weights():
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([0.5, 1.5, 1.0])
    chances = equal_chances(values, weights)
    np.testing.assert_allclose([(chances == value).mean() for value in (1.0, 2.0, 3.0)], [0.5, 1 / 3, 1 / 6], atol=0.02)
    assert equal_chances(values, np.array([2.0, 1.0, 3.0])).tolist() == [1.0, 2.0, 2.0, 2.0, 3.0, 3.0]
