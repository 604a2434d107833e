"""Weighted regressions compared with R's lm, glm, multinom and polr, and with repeated rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.samplers.parametric.design import Rows
from mcce.samplers.parametric.glm import fit_cumulative, fit_multinomial
from mcce.samplers.parametric.linear import fit_linear
from mcce.samplers.smoothing import bandwidth
from mcce.table import Column, Schema, Table
from tests.marks import nightly_but

FIXTURE = json.loads((Path(__file__).parents[2] / "fixtures" / "weights" / "weights.json").read_text())
X = pd.DataFrame(FIXTURE["data"]).assign(f=lambda x: pd.Categorical(x["f"], categories=list("uvw")))
DESIGN = np.column_stack([X["a"], X["b"], X["f"] == "v", X["f"] == "w"]).astype(float)


@pytest.fixture(params=["fractions", "counts", "zeros"])
def case(request):
    """Rows with positive weight, their weights, and R's fits."""
    weights = np.array(FIXTURE["weights"][request.param], dtype=np.float64)
    kept = np.flatnonzero(weights)
    return kept, weights[kept], FIXTURE["fits"][request.param]


def test_gaussian_conditional_matches_weighted_lm_of_r(case):
    kept, weights, expected = case
    rows = X[["a", "b", "f", "y"]].iloc[kept]
    table = Schema.from_data(rows).encode(rows)
    target = Column(table.features[3], table.matrix[:, 3], weights)
    sampler = mcce.GaussianSampler().fit(table.first(3), target)
    np.testing.assert_allclose(sampler.coef_, expected["lm"]["coef"], rtol=1e-9)
    # R's degrees of freedom count rows; here copies are rows
    np.testing.assert_allclose(sampler.sigma_**2 * (weights.sum() - 1), expected["lm"]["deviance"], rtol=1e-10)


def test_ridge_of_norm_matches_weighted_rows(case):
    """beta = (X'WX + 1e-5 diag(X'WX))^-1 X'Wy, by the normal equations; without the ridge it is R's."""
    kept, weights, expected = case
    x, y = np.column_stack([np.ones(kept.size), DESIGN[kept]]), X["y"].to_numpy()[kept]
    squares = x.T @ (weights[:, None] * x)
    beta = np.linalg.solve(squares + 1e-5 * np.diag(np.diag(squares)), x.T @ (weights * y))
    fitted = fit_linear(DESIGN[kept], y, weights)
    np.testing.assert_allclose(fitted.beta, beta, rtol=1e-9)
    np.testing.assert_allclose(fitted.beta, expected["lm"]["coef"], atol=1e-3)
    rss = weights @ (y - x @ beta) ** 2
    np.testing.assert_allclose(fitted.sigma, np.sqrt(rss / (weights.sum() - 6)), rtol=1e-9)


def test_two_classes_match_weighted_glm_of_r(case):
    kept, weights, expected = case
    fitted = fit_multinomial(Rows(DESIGN[kept], X["two"].to_numpy()[kept], weights), 2)
    found = np.concatenate([fitted.intercept, fitted.coef[0]])
    np.testing.assert_allclose(found, expected["glm"]["coef"], rtol=1e-7)


def test_more_classes_match_weighted_multinom_of_r(case):
    """To the accuracy of its optimiser; the likelihood is at least as high."""
    kept, weights, expected = case
    classes = X["three"].map({"p": 0, "q": 1, "r": 2}).to_numpy()[kept]
    fitted = fit_multinomial(Rows(DESIGN[kept], classes, weights), 3)
    found = np.column_stack([fitted.intercept, fitted.coef])
    np.testing.assert_allclose(found, expected["multinom"]["coef"], atol=2e-4)
    eta = np.column_stack([np.zeros(kept.size), fitted.intercept + DESIGN[kept] @ fitted.coef.T])
    log_p = eta - np.log(np.exp(eta).sum(axis=1, keepdims=True))
    deviance = -2 * weights @ log_p[np.arange(kept.size), classes]
    assert deviance <= expected["multinom"]["deviance"] + 1e-9


def test_ordered_classes_match_weighted_polr_of_r(case):
    kept, weights, expected = case
    classes = X["grade"].astype(int).to_numpy()[kept] - 1
    fitted = fit_cumulative(Rows(DESIGN[kept], classes, weights), 4)
    np.testing.assert_allclose(fitted.coef, expected["polr"]["coef"], atol=1e-5)
    np.testing.assert_allclose(fitted.thresholds, expected["polr"]["zeta"], atol=1e-5)


# ------------------------------------------------------------------ repeated rows


@pytest.fixture(scope="module")
def loans():
    rng = np.random.default_rng(3)
    X = mcce.datasets.load_loans(200).X.copy()
    X.loc[rng.random(200) < 0.15, "salary"] = np.nan
    X.loc[rng.random(200) < 0.1, "housing"] = np.nan
    return X, rng.integers(0, 4, 200)


NUMBERS = {
    "norm": "norm",
    "normrank": "normrank",
    "smoothed": mcce.NormRankSampler(smoothing="density"),
    "pmm": "pmm",
    "gaussian": "gaussian",
}


@pytest.mark.filterwarnings("ignore:.*rows could not be drawn within")
@pytest.mark.parametrize("name", nightly_but(NUMBERS, "pmm"))
def test_integer_weights_draw_the_same_as_repeated_rows(name, loans):
    """Missing targets and givens, ties, integers; levels by logreg, polyreg and polr."""
    X, counts = loans
    numbers = dict.fromkeys(["salary", "savings", "loan_amount"], NUMBERS[name])
    samplers = numbers | {"housing": mcce.PolyregSampler(proper=True), "*": "parametric"}
    weighted = mcce.ChainModel(sampler=samplers, fixed=["age", "sex"], random_state=1).fit(X, sample_weight=counts)
    repeated = mcce.ChainModel(sampler=samplers, fixed=["age", "sex"], random_state=1)
    repeated.fit(X.iloc[np.repeat(np.arange(200), counts)].reset_index(drop=True))
    given = X[["age", "sex"]].iloc[:40]
    for within in (None, {"salary": (30_000, 80_000)}):
        found, expected = (chain.sample(10, given, within=within) for chain in (weighted, repeated))
        pd.testing.assert_frame_equal(found, expected)
    if name == "smoothed":
        return
    found, expected = (chain.log_density(X, per_feature=True) for chain in (weighted, repeated))
    pd.testing.assert_frame_equal(found, expected, rtol=1e-8, atol=1e-9)
    table = weighted.schema_.encode(X)
    sampler, other = weighted.samplers_["salary"], repeated.samplers_["salary"]
    place = weighted._layout.n_given + list(weighted.samplers_).index("salary")
    ordered = weighted._layout.order(table.matrix, True)
    given, values = weighted._layout.given(ordered, place), ordered.matrix[:, place] + np.tile([0.0, 137.0], 100)
    np.testing.assert_array_equal(sampler.supports(given, values), other.supports(given, values))


def test_proper_parameters_have_the_posterior_of_repeated_rows(loans):
    """The covariance of the coefficients, and the residual degrees of freedom, count copies."""
    X, counts = loans
    y = X["savings"].to_numpy(float)
    x = X[["age", "loan_amount"]].to_numpy(float)
    kept, rows = counts > 0, np.repeat(np.arange(200), counts)
    weighted, repeated = fit_linear(x[kept], y[kept], counts[kept].astype(float)), fit_linear(x[rows], y[rows])
    np.testing.assert_allclose(weighted.covariance, repeated.covariance, rtol=1e-10)
    np.testing.assert_allclose([weighted.rss, weighted.sigma], [repeated.rss, repeated.sigma], rtol=1e-10)
    assert weighted.n_rows == repeated.n_rows == counts.sum()


def test_bandwidths_match_repeated_values():
    rng = np.random.default_rng(0)
    values, counts = np.round(rng.gamma(2.0, 3.0, 80), 1), rng.integers(1, 4, 80)
    np.testing.assert_allclose(bandwidth(values, counts.astype(float)), bandwidth(np.repeat(values, counts)), rtol=1e-9)


def test_relative_weights_have_no_scale(loans):
    X, _ = loans
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 200)
    samplers = {"salary": "normrank", "savings": "norm", "*": "parametric"}
    drawn = [
        mcce.ChainModel(sampler=samplers, fixed=["age"], random_state=1)
        .fit(X, sample_weight=scale * weights)
        .sample(99)
        for scale in (1.0, 1e-5)
    ]
    pd.testing.assert_frame_equal(*drawn)


@pytest.mark.parametrize(
    ("scale", "message"), [(0.7, "weights that are not whole numbers"), (10**6, r"weights that sum to 300,000,000")]
)
@pytest.mark.filterwarnings("ignore:sample_weight is")
def test_matching_accepts_only_counts(scale, message):
    X = pd.DataFrame({"a": np.arange(200.0) % 13, "b": np.arange(200.0) % 7})
    weights = scale * np.tile([1, 2], 100)
    with pytest.raises(
        mcce.SamplerError, match=rf"PmmSampler\(\) for 'b' counts a row of weight 2 as two donors; got {message}"
    ):
        mcce.ChainModel(sampler="pmm", fixed=["a"]).fit(X, sample_weight=weights)


def test_weighted_regressions_round_trip(loans, tmp_path):
    X, counts = loans
    samplers = {"salary": "normrank", "savings": "pmm", "loan_amount": "norm", "*": "parametric"}
    chain = mcce.ChainModel(sampler=samplers, fixed=["age"], random_state=1).fit(X, sample_weight=counts)
    chain.save(tmp_path / "chain")
    again = mcce.ChainModel.load(tmp_path / "chain")
    pd.testing.assert_frame_equal(again.sample(60), chain.sample(60))
    pd.testing.assert_series_equal(again.log_density(X), chain.log_density(X))


def test_constant_target_stays_constant_for_any_weights():
    given = Table((), np.empty((4, 0)))
    feature = Schema.from_data(pd.DataFrame({"y": [7.5] * 4})).features[0]
    fitted = mcce.NormSampler().fit(given, Column(feature, np.full(4, 7.5), np.array([0.5, 1.0, 2.0, 0.5])))
    assert fitted.coef_.tolist() == [7.5]
    assert fitted.sigma_ == 0.0
