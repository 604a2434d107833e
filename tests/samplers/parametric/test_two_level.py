"""`2l.norm`: estimates compared with nlme (make_lme.R) and statsmodels, and a known process."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import integrate, stats

import mcce
from mcce import InputError, SamplerError, TwoLevelSampler, Within
from mcce.rng import RowStreams
from mcce.storage.state import from_state, to_state
from mcce.table import Column, Table
from mcce.testing import CHECKS, GOODNESS_OF_FIT
from mcce.testing.samplers import check_no_givens
from tests.samplers.parametric.problem import encode

NLME = json.loads((Path(__file__).parents[2] / "fixtures" / "nlme" / "lme.json").read_text())["cases"]
LEVEL = 1e-3


def process(n_groups=100, per_group=8, seed=1):
    """y = 1 + 2 x + b + e, with sd 1.5 of the groups' intercepts b and sd 0.8 of e; groups have 1 row and more."""
    rng = np.random.default_rng(seed)
    sizes = 1 + rng.poisson(per_group - 1, n_groups)
    group = np.repeat(np.arange(n_groups), sizes)
    b, x = rng.normal(0.0, 1.5, n_groups), rng.normal(size=group.size)
    y = 1.0 + 2.0 * x + b[group] + rng.normal(0.0, 0.8, group.size)
    levels = [f"g{k}" for k in range(n_groups + 1)]  # the last has no rows
    return pd.DataFrame({"x": x, "school": pd.Categorical.from_codes(group, levels), "y": y}), b


def at(fitted, given, x, school, n):
    """Return `n` rows with one x and one group."""
    return Table(given.features, np.asfortranarray(np.tile([float(x), float(school)], (n, 1))))


@pytest.mark.slow
@pytest.mark.parametrize("proper", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_conformance_with_a_group(proper):
    sampler = TwoLevelSampler(group="sex", proper=proper)
    for check in (*CHECKS, *(() if proper else GOODNESS_OF_FIT)):
        if check is not check_no_givens:  # the group is a given
            check(sampler, 0)


@pytest.mark.parametrize("name", NLME)
def test_estimates_match_nlme(name):
    case = NLME[name]
    given, target = encode(pd.DataFrame(case["data"]), case["target"])
    fitted = TwoLevelSampler(group=case["group"]).fit(given, target)
    np.testing.assert_allclose(fitted.coef_, case["coef"], rtol=1e-6)
    np.testing.assert_allclose(fitted.sigma_**2 * fitted.covariance_, case["covariance"], rtol=1e-4, atol=1e-8)
    assert fitted.sigma_ == pytest.approx(case["sigma"], rel=1e-6)
    assert fitted.tau_ == pytest.approx(case["tau"], rel=1e-5)
    levels = given.features[fitted.group_].levels
    expected = [case["intercepts"][level] for level in levels]
    np.testing.assert_allclose(fitted.intercepts_[:-1], expected, rtol=1e-4, atol=1e-6)


def test_estimates_match_statsmodels():
    X, _ = process(20)
    fitted = TwoLevelSampler().fit(*encode(X))
    reference = sm.MixedLM(X["y"], sm.add_constant(X["x"]), X["school"].astype(str)).fit(reml=True)
    np.testing.assert_allclose(fitted.coef_, reference.fe_params, rtol=1e-4)
    np.testing.assert_allclose(fitted.sigma_ * np.sqrt(np.diag(fitted.covariance_)), reference.bse_fe, rtol=1e-3)
    assert fitted.sigma_ == pytest.approx(np.sqrt(reference.scale), rel=1e-4)
    assert fitted.tau_ == pytest.approx(float(np.sqrt(reference.cov_re.iloc[0, 0])), rel=1e-3)


def test_parameters_of_a_known_process():
    X, b = process(400)
    given, target = encode(X)
    fitted = TwoLevelSampler(group="school").fit(given, target)
    np.testing.assert_allclose(fitted.coef_, [1.0, 2.0], atol=4 * 1.5 / 20)
    assert fitted.coef_[1] == pytest.approx(2.0, abs=0.06)
    assert fitted.sigma_ == pytest.approx(0.8, abs=0.05)
    assert fitted.tau_ == pytest.approx(1.5, abs=4 * 1.5 / np.sqrt(800))
    assert np.corrcoef(fitted.intercepts_[:400], b)[0, 1] > 0.95


def test_draws_for_known_and_new_groups_have_the_right_distribution():
    """Each new row of a known group has an individual posterior; without its variance small groups are too narrow."""
    X, b = process(1500, per_group=2)
    given, target = encode(X)
    fitted = TwoLevelSampler(group="school").fit(given, target)
    rng = np.random.default_rng(3)
    group, x = np.arange(1500.0), rng.normal(size=1500)
    known = Table(given.features, np.asfortranarray(np.column_stack([x, group])))
    y = 1.0 + 2.0 * x + b + rng.normal(0.0, 0.8, 1500)
    pit = stats.norm.cdf(y, fitted.predict(known), fitted.deviation(known))
    assert stats.kstest(pit, "uniform").pvalue > LEVEL
    too_narrow = stats.norm.cdf(y, fitted.predict(known), fitted.sigma_)
    assert stats.kstest(too_narrow, "uniform").pvalue < LEVEL
    new = at(fitted, given, 0.5, 1500, 4000)
    drawn = fitted.sample(new, RowStreams.from_seed(1, 4000))
    assert stats.kstest(drawn, stats.norm(2.0, np.hypot(1.5, 0.8)).cdf).pvalue > LEVEL
    missing = at(fitted, given, 0.5, np.nan, 1)
    np.testing.assert_array_equal(fitted.predict(missing), fitted.predict(new)[:1])


def test_densities_integrate_to_one_and_are_normal():
    X, _ = process()
    given, target = encode(X)
    fitted = TwoLevelSampler(group="school").fit(given, target)
    grid = np.linspace(-15.0, 20.0, 5001)
    for school in (3, 100):
        rows = at(fitted, given, 0.3, school, grid.size)
        density = np.exp(fitted.log_density(rows, grid))
        assert integrate.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-6)
        expected = stats.norm.pdf(grid, fitted.predict(rows), fitted.deviation(rows))
        np.testing.assert_allclose(density, expected, atol=1e-9)


@pytest.mark.parametrize("school", [3, 100])
def test_restricted_draws_match_rejection(school):
    X, _ = process()
    given, target = encode(X)
    fitted = TwoLevelSampler(group="school").fit(given, target)
    n = 20_000
    rows = at(fitted, given, 0.3, school, n)
    free = fitted.sample(rows, RowStreams.from_seed(5, n))
    low, high = np.quantile(free, [0.3, 0.8])
    within = Within(low=np.full(n, low), high=np.full(n, high), weighted=True)
    found = fitted.sample_within(rows, RowStreams.from_seed(4, n), within)
    kept = free[(free >= low) & (free <= high)]
    assert stats.ks_2samp(found.values, kept).pvalue > LEVEL
    assert np.exp(found.log_mass[0]) == pytest.approx(0.5, abs=0.015)


def test_weights_count_rows():
    X, _ = process(30)
    given, target = encode(X)
    counts = np.random.default_rng(2).integers(1, 4, len(X))
    weighted = TwoLevelSampler().fit(given, Column(target.feature, target.values, counts.astype(float)))
    rows = np.repeat(np.arange(len(X)), counts)
    repeated = TwoLevelSampler().fit(given.take(rows), target.take(rows))
    for name in ("coef_", "sigma_", "tau_", "intercepts_", "counts_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-6, atol=1e-9)


@pytest.mark.nightly
def test_proper_parameters_follow_their_posterior():
    X, _ = process(60)
    given, target = encode(X)
    estimate = TwoLevelSampler().fit(given, target)
    fits = [TwoLevelSampler(proper=True, random_state=seed).fit(given, target) for seed in range(80)]
    errors = estimate.sigma_ * np.sqrt(np.diag(estimate.covariance_))
    spread = np.std([fit.coef_ for fit in fits], axis=0)
    np.testing.assert_allclose(spread, errors, rtol=0.3)
    freedom = len(X) - 60
    assert np.std([fit.sigma_ for fit in fits]) == pytest.approx(0.8 / np.sqrt(2 * freedom), rel=0.3)
    assert np.std([fit.tau_ for fit in fits]) == pytest.approx(1.5 / np.sqrt(2 * 59), rel=0.3)
    np.testing.assert_allclose(np.mean([fit.tau_ for fit in fits]), estimate.tau_, rtol=0.05)


def test_zero_variance_between_groups_gives_a_normal_regression():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    frame = pd.DataFrame({"x": x, "school": np.array(list("abc"))[np.arange(60) % 3], "y": x + rng.normal(size=60)})
    singles = frame.assign(school=[f"s{k}" for k in range(60)])
    one = frame.assign(school="a")
    ols = sm.OLS(frame["y"], sm.add_constant(x)).fit()
    for each in (singles, one):
        fitted = TwoLevelSampler().fit(*encode(each))
        assert fitted.tau_ == 0.0
        np.testing.assert_allclose(fitted.coef_, ols.params, rtol=1e-9)
        assert fitted.sigma_ == pytest.approx(np.sqrt(ols.scale))


def test_collinear_constant_and_determined_columns():
    X, _ = process(20)
    twice = X.assign(twice=2.0 * X["x"], same=1.0)[["x", "twice", "same", "school", "y"]]
    fitted, plain = (TwoLevelSampler().fit(*encode(each)) for each in (twice, X))
    np.testing.assert_allclose(fitted.predict(encode(twice)[0]), plain.predict(encode(X)[0]), rtol=1e-6)
    constant = TwoLevelSampler().fit(*encode(X.assign(y=3.0)))
    assert (constant.sample(encode(X)[0], RowStreams.from_seed(1, len(X))) == 3.0).all()
    by_group = X.assign(y=X["school"].cat.codes * 1.5)
    given, target = encode(by_group)
    fitted = TwoLevelSampler().fit(given, target)
    np.testing.assert_allclose(fitted.sample(given, RowStreams.from_seed(1, len(X))), target.values, atol=0.1)


def test_chain_round_trips(tmp_path):
    X, _ = process(20)
    sampler = {"y": TwoLevelSampler(group="school", proper=True), "*": "cart"}
    chain = mcce.ChainModel(sampler=sampler, fixed=["x", "school"], random_state=1).fit(X)
    chain.save(tmp_path / "chain.mcce")
    pd.testing.assert_frame_equal(mcce.ChainModel.load(tmp_path / "chain.mcce").sample(n=50), chain.sample(n=50))
    text = str(chain.conditional("y").summary())
    assert "Intercept sd" in text
    assert "school" not in text.split("Groups")[1]
    given, target = encode(X)
    fitted = TwoLevelSampler().fit(given, target)
    again = from_state(to_state(fitted))
    np.testing.assert_array_equal(again.log_density(given, target.values), fitted.log_density(given, target.values))
    again.intercepts_, again.counts_ = again.intercepts_[1:], again.counts_[1:]
    with pytest.raises(InputError, match="intercepts_ does not match the levels of the group"):
        again.check_state(given.features, target.feature, given.n_rows)


def test_errors_name_the_fix():
    X, _ = process(20)
    given, target = encode(X)
    with pytest.raises(SamplerError, match=r"needs the group 'scool' among its givens.*did you mean 'school'"):
        TwoLevelSampler(group="scool").fit(given, target)
    with pytest.raises(
        SamplerError, match=r"'x' holds numbers; declare it categorical by kinds=\{'x': 'categorical'\}"
    ):
        TwoLevelSampler(group="x").fit(given, target)
