"""The estimator sampler: conformance, use in a chain, and errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mcce import ChainModel, EstimatorSampler, InputError, NotFittedError, SamplerError
from mcce.rng import RowStreams
from mcce.storage.learned import get_state
from mcce.testing import check_sampler
from tests.samplers.estimator.problem import BOOSTING, draw, fit


class Levels(EstimatorSampler):
    """For check_sampler, which fits a target of each supported kind."""

    handles = frozenset({"categorical", "ordered"})


class Numbers(EstimatorSampler):
    handles = frozenset({"numeric"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    [
        pytest.param(
            Levels(make_pipeline(StandardScaler(), LogisticRegression(max_iter=3000))), marks=pytest.mark.nightly
        ),
        Levels(DecisionTreeClassifier(min_samples_leaf=30, random_state=0)),
        pytest.param(Numbers(LinearRegression()), marks=pytest.mark.nightly),
        pytest.param(Numbers(LinearRegression(), method="pmm"), marks=pytest.mark.nightly),
        pytest.param(
            Numbers(DecisionTreeRegressor(min_samples_leaf=30, random_state=0), method="pmm", n_donors=30),
            marks=pytest.mark.nightly,
        ),
        pytest.param(Numbers(RandomForestRegressor(n_estimators=5, min_samples_leaf=30)), marks=pytest.mark.nightly),
        pytest.param(
            Numbers(clone(BOOSTING).set_params(max_iter=5, max_leaf_nodes=4), method="quantiles", n_quantiles=4),
            marks=pytest.mark.nightly,
        ),
    ],
    ids=["logistic", "tree", "residuals", "pmm", "pmm-tree", "forest without a seed", "quantiles"],
)
def test_conformance(sampler):
    check_sampler(sampler, goodness_of_fit=True)


# ---- errors


@pytest.mark.parametrize(
    ("y", "estimator", "message"),
    [
        (["a", "b"] * 10, LinearRegression(), "cannot model 'y': it is categorical, which needs a classifier"),
        (np.arange(20.0), LogisticRegression(), "cannot model 'y': it is numeric, which needs a regressor"),
        (np.arange(20.0), StandardScaler(), "cannot model 'y': it is numeric, which needs a regressor"),
        (
            pd.Categorical(["a", "b"] * 10, ordered=True),
            LinearRegression(),
            "cannot model 'y': it is ordered, which needs a classifier",
        ),
        (["a", "b"] * 10, RidgeClassifier(), "cannot model 'y': the classifier has no predict_proba"),
    ],
)
def test_estimator_of_the_wrong_type_raises(y, estimator, message):
    with pytest.raises(SamplerError, match=message):
        fit(pd.DataFrame({"x": np.arange(20.0), "y": y}), estimator)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            HistGradientBoostingRegressor(),
            r"ignores its quantile, because loss is 'squared_error'; .*loss=\"quantile\"",
        ),
        (DummyRegressor(), r"ignores its quantile, because strategy is 'mean'; .* needs strategy=\"quantile\""),
    ],
)
def test_quantile_without_effect_raises(estimator, message):
    frame = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0)})
    with pytest.raises(SamplerError, match=message):
        fit(frame, estimator, method="quantiles")
    fit(frame, DummyRegressor(strategy="quantile"), method="quantiles")


@pytest.mark.parametrize("estimator", [LinearRegression(), GradientBoostingRegressor(loss="huber")])
def test_quantiles_require_a_quantile_parameter(estimator):
    with pytest.raises(SamplerError, match=r"has no quantile to set; method 'quantiles' needs a regressor with"):
        fit(pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0)}), estimator, method="quantiles")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "mean"}, "method of EstimatorSampler is 'mean'; allowed: residuals, pmm, quantiles"),
        ({"n_donors": 0}, "n_donors of EstimatorSampler is 0; it must be a whole number of at least 1"),
        ({"n_quantiles": 2.0}, r"n_quantiles of EstimatorSampler is 2.0; it must be a whole number of at least 1"),
    ],
)
def test_invalid_parameters_raise_when_fitting(parameters, message):
    with pytest.raises(InputError, match=message):
        fit(pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}), LinearRegression(), **parameters)


@pytest.mark.parametrize("estimator", ["logreg", LinearRegression, None])
def test_non_estimator_raises(estimator):
    with pytest.raises(InputError, match=r"estimator of EstimatorSampler is .*; give a scikit-learn classifier or"):
        fit(pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}), estimator)


def test_chain_rejects_missing_values(line):
    samplers = {"y": EstimatorSampler(LinearRegression()), "*": "cart"}
    message = r"EstimatorSampler\(estimator=LinearRegression\(\)\) for 'y' does not handle missing values, and 'x' has"
    with pytest.raises(SamplerError, match=message):
        ChainModel(sampler=samplers, fixed=["x"]).fit(line.assign(x=line["x"].mask(line["x"] > 9)))
    chain = ChainModel(sampler=samplers, fixed=["x"], random_state=1).fit(line)
    with pytest.raises(InputError, match=r"given has missing values in 'x', which EstimatorSampler.* does not handle"):
        chain.sample(given=pd.DataFrame({"x": [np.nan]}))


def test_regressor_has_no_density_and_no_state(line):
    sampler, given = fit(line, LinearRegression())
    with pytest.raises(SamplerError, match=r"EstimatorSampler\(estimator=LinearRegression\(\)\) has no density"):
        sampler.log_density(given, np.zeros(3000))
    with pytest.raises(SamplerError, match=r"holds a scikit-learn estimator, which cannot be written as arrays"):
        get_state(sampler)


def test_not_fitted(line):
    _, given = fit(line, LinearRegression())
    for call in (
        lambda s: s.sample(given, RowStreams.from_seed(0, 3000)),
        lambda s: s.supports(given, np.zeros(3000)),
        lambda s: s.log_density(given, np.zeros(3000)),
    ):
        with pytest.raises(NotFittedError, match=r"EstimatorSampler\(estimator=LinearRegression\(\)\) is not fitted"):
            call(EstimatorSampler(LinearRegression()))


# ---- in use


def test_estimator_is_cloned(line):
    for estimator, method in ((LinearRegression(), "pmm"), (QuantileRegressor(quantile=0.3), "quantiles")):
        before = repr(estimator), dict(vars(estimator))
        sampler, _ = fit(line.iloc[:50], estimator, method=method, n_quantiles=2)
        assert sampler.estimator is estimator
        assert (repr(estimator), vars(estimator)) == before
        assert all(fitted is not estimator for fitted in sampler.estimators_)


def test_chain_of_estimators_with_a_decision(line):
    """The decision is an additional given: y > 15 is drawn for accepted rows."""
    samplers = {"job": EstimatorSampler(LogisticRegression()), "y": EstimatorSampler(LinearRegression(), method="pmm")}
    decision = (line["y"] > 15).to_numpy()
    chain = ChainModel(sampler=samplers, fixed=["x"], random_state=1).fit(line, decision)
    people = pd.DataFrame({"x": [7.0]})
    wanted, unwanted = (chain.sample(given=people, n=300, decision=d)["y"] for d in (True, False))
    # 2 * 7 + 3 [cook] + 1: accepted rows have the larger mean
    assert wanted.mean() > unwanted.mean() + 1
    assert set(chain.sample(given=people, n=50)["job"]) == {"cook", "clerk"}


def test_no_givens_are_a_constant_column():
    frame = pd.DataFrame({"y": [1.0, 2.0, 3.0, 4.0]})
    sampler, given = fit(frame, LinearRegression())
    assert len(given.features) == 0
    drawn = np.unique(draw(sampler, given, 0, 200))
    # leaving one of n out, a value is n / (n - 1) times as far from the mean of the others as from that of all
    expected = 2.5 + np.array([-1.5, -0.5, 0.5, 1.5]) * 4 / 3
    np.testing.assert_allclose(drawn, np.clip(expected, 1.0, 4.0), rtol=1e-12)  # no draw is beyond the training values


@pytest.mark.parametrize("method", ["residuals", "pmm"])
def test_numbers_that_float32_cannot_hold_are_named(method):
    """Trees of scikit-learn cast to float32: a warning of numpy, then a ValueError."""
    frame = pd.DataFrame({"x": np.where(np.arange(40) % 2, 1e149, 3.0), "y": np.arange(40.0)})
    tree = DecisionTreeRegressor(max_depth=2)
    message = r"DecisionTreeRegressor\(max_depth=2\) could not be fitted on .*have numbers up to 1e\+149: rescale them"
    with pytest.raises(SamplerError, match=message):
        fit(frame, tree, method=method)
    levels = frame.assign(y=pd.Categorical(np.where(np.arange(40) % 3, "a", "b")))
    with pytest.raises(SamplerError, match=r"could not be fitted on 40 rows: .*have numbers up to 1e\+149"):
        fit(levels, DecisionTreeClassifier(max_depth=2))


def test_factuals_that_float32_cannot_hold_are_named():
    frame = pd.DataFrame({"x": np.arange(40) / 8, "y": np.arange(40.0)})
    chain = ChainModel(sampler=EstimatorSampler(DecisionTreeRegressor(max_depth=2)), fixed=["x"], random_state=1)
    with pytest.raises(SamplerError, match=r"cannot predict these rows: .*have numbers up to 1e\+140: rescale them"):
        chain.fit(frame).sample(3, pd.DataFrame({"x": [1e140]}))
