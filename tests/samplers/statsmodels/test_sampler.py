"""statsmodels models as conditionals: conformance, calibration, proper draws, storage."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

import mcce
from mcce import ChainModel, InputError, SamplerError, StatsmodelsSampler
from mcce.rng import RowStreams
from mcce.storage.learned import get_state, set_state
from mcce.table import Column, Schema
from mcce.testing import check_sampler
from mcce.testing.samplers import through_json
from tests.marks import nightly_but, nightly_rows
from tests.samplers.statsmodels.problem import FRAME, GIVEN, TABLE, column, fitted, make_frame

CONFORMING = {
    "GLM": StatsmodelsSampler(),
    "GLM InverseGaussian": StatsmodelsSampler("GLM", family="InverseGaussian(Log)", formula="~ ."),
    "OLS": StatsmodelsSampler("OLS"),
    "WLS": StatsmodelsSampler("WLS", proper=True),
    "Poisson": StatsmodelsSampler("Poisson"),
    "NegativeBinomialP": StatsmodelsSampler("NegativeBinomialP", p=1, proper=True),
    "GeneralizedPoisson": StatsmodelsSampler("GeneralizedPoisson"),
    "ZeroInflatedNegativeBinomialP": StatsmodelsSampler("ZeroInflatedNegativeBinomialP"),
    "ZeroInflatedGeneralizedPoisson": StatsmodelsSampler("ZeroInflatedGeneralizedPoisson"),
    "MNLogit": StatsmodelsSampler(sm.MNLogit),
    "OrderedModel": StatsmodelsSampler("OrderedModel"),
}


@pytest.mark.parametrize("name", nightly_but(CONFORMING, "GLM"))
def test_conformance(name):
    check_sampler(CONFORMING[name])


KNOWN = {
    "count": StatsmodelsSampler("Poisson"),
    "overdispersed": StatsmodelsSampler("NegativeBinomial"),
    "inflated": StatsmodelsSampler("ZeroInflatedPoisson"),
    "amount": StatsmodelsSampler("GLM", family="Gamma(Log)"),
    "passage": StatsmodelsSampler("GLM", family="InverseGaussian(Log)"),
    "number": StatsmodelsSampler.from_formula("number ~ exp(0.02 * age) * sex", "OLS"),
}


@pytest.mark.parametrize("target", KNOWN)
def test_pit_of_the_known_process_is_uniform(target):
    """PIT of new rows, randomised for counts; Kolmogorov-Smirnov at level 1e-3."""
    sampler = fitted(KNOWN[target].clone(), target)
    new = make_frame(1500, seed=5)
    table = Schema.from_data(FRAME).encode(new)
    values = table.matrix[:, list(new).index(target)]
    made = sampler._distribution(table.first(2))
    upto = np.asarray(made.distribution.cdf(values))
    if made.is_count:
        below = np.asarray(made.distribution.cdf(values - 1))
        upto = below + np.random.default_rng(0).random(upto.size) * (upto - below)
    assert stats.kstest(upto, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("target", ["overdispersed", "amount"])
def test_pit_detects_the_wrong_family(target):
    sampler = fitted(StatsmodelsSampler("OLS"), target)
    values = column(target).values
    assert stats.kstest(sampler._distribution(GIVEN).distribution.cdf(values), "uniform").pvalue < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "model"), [("count", "Poisson"), *nightly_rows(("overdispersed", "NegativeBinomial"))]
)
def test_proper_parameters_follow_their_covariance(target, model):
    estimate = fitted(StatsmodelsSampler(model), target)
    drawn = np.array(
        [fitted(StatsmodelsSampler(model, proper=True, random_state=seed), target).coef_[0] for seed in range(60)]
    )
    known = np.sqrt(np.diag(estimate.covariance_))[:3]
    ratio = drawn.std(axis=0, ddof=1) / known
    assert ((ratio > 0.7) & (ratio < 1.35)).all()  # chi-square with 59 degrees of freedom, level 1e-3
    assert (np.abs(drawn.mean(axis=0) - estimate.coef_[0]) < 4 * known / np.sqrt(60)).all()


def test_weights_equal_repeated_rows():
    weights = np.random.default_rng(1).integers(1, 4, len(FRAME)).astype(float)
    rows = np.repeat(np.arange(len(FRAME)), weights.astype(int))
    for name, sampler in (("amount", KNOWN["amount"]), ("number", StatsmodelsSampler("OLS")), ("count", "poisson")):
        sampler = mcce.samplers.make_sampler(sampler)
        target = column(name)
        one = sampler.clone().fit(GIVEN, Column(target.feature, target.values, weights))
        other = sampler.clone().fit(GIVEN.take(rows), target.take(rows))
        np.testing.assert_allclose(one.estimate_, other.estimate_, rtol=1e-6)
        assert one.scale_ == pytest.approx(other.scale_, rel=1e-6)
        np.testing.assert_allclose(one.covariance_, other.covariance_, rtol=1e-5, atol=1e-15)


def test_weights_raise_if_the_model_has_none():
    chain = ChainModel(sampler={"count": "negbin"}, fixed=["age"], random_state=1)
    with pytest.raises(SamplerError, match=r"'count' does not take sample_weight, because statsmodels' NegativeBin"):
        chain.fit(FRAME[["age", "count"]], sample_weight=np.ones(len(FRAME)))


@pytest.mark.parametrize(
    ("sampler", "target", "message"),
    [
        ("poisson", "amount", "models whole numbers from 0, and 'amount' holds"),
        ("gamma", "saved", r"models positive numbers, and 'saved' holds 0 \(\d+ such of 600 rows\).*twopart"),
        ("beta", "amount", "numbers strictly between 0 and 1"),
        (StatsmodelsSampler("Logit"), "grade", "the target has 3 levels, and the model two; use MNLogit"),
        (StatsmodelsSampler("MNLogit"), "count", "cannot model 'count': it is numeric"),
        (StatsmodelsSampler("OLS", fit_options=3), "count", "fit_options of StatsmodelsSampler is 3"),
    ],
)
def test_targets_without_a_likelihood_raise(sampler, target, message):
    with pytest.raises(mcce.MCCEError, match=message):
        fitted(mcce.samplers.make_sampler(sampler), target)


def test_constant_targets_and_far_givens():
    same = Column(column("count").feature, np.full(600, 3.0))
    sampler = mcce.PoissonSampler().fit(GIVEN, same)
    assert (sampler.sample(GIVEN, RowStreams.from_seed(1, 600)) == 3.0).all()
    assert "PoissonSampler" in sampler.summary()
    far = FRAME[["age", "sex"]].assign(age=1e6)
    table = Schema.from_data(FRAME[["age", "sex"]]).encode(far)
    drawn = fitted(mcce.PoissonSampler(), "count").sample(table, RowStreams.from_seed(1, 600))
    assert np.isfinite(drawn).all()
    assert drawn.max() < 1000


def test_parameters_can_be_read_set_and_printed():
    family = sm.families.Gamma(sm.families.links.Log())
    sampler = StatsmodelsSampler(sm.GLM, family=family, fit_options={"maxiter": 50})
    assert sampler.get_params()["family"] is family
    assert sampler.clone().family is family
    assert sampler.plain_params()["family"] == "Gamma(Log)"
    assert repr(sampler) == "StatsmodelsSampler(model='GLM', fit_options={'maxiter': 50}, family='Gamma(Log)')"
    assert repr(StatsmodelsSampler("GML")) == "StatsmodelsSampler(model='GML')"
    assert sampler.set_params(family="Poisson", proper=True).family == "Poisson"
    assert StatsmodelsSampler.from_formula("y ~ x", sm.NegativeBinomial, p=3).formula == "y ~ x"
    with pytest.raises(AttributeError, match="no attribute 'famliy'"):
        _ = sampler.famliy
    with pytest.raises(InputError, match="has no parameter 'famliy'"):
        sampler.set_params(famliy=1)


STORABLE = {
    "amount": StatsmodelsSampler(sm.GLM, family=sm.families.Gamma(sm.families.links.Log())),
    "overdispersed": StatsmodelsSampler(sm.NegativeBinomial, formula="~ bs(age, 4) + sex"),
    "grade": StatsmodelsSampler(sm.MNLogit),
    "skewed": StatsmodelsSampler(sm.QuantReg),
}


@pytest.mark.slow
def test_stored_chain_draws_the_same_without_statsmodels_objects(tmp_path):
    frame = FRAME[["age", "sex", *STORABLE]]
    chain = ChainModel(sampler=dict(STORABLE), fixed=["age", "sex"], random_state=1).fit(frame)
    chain.save(tmp_path / "chain.mcce")
    again = ChainModel.load(tmp_path / "chain.mcce")
    pd.testing.assert_frame_equal(again.sample(n=40), chain.sample(n=40))
    pd.testing.assert_series_equal(again.log_density(frame.head(20)), chain.log_density(frame.head(20)))
    assert again.conditional("amount").summary() == chain.conditional("amount").summary()
    assert again.samplers_["amount"].get_params()["model"] == "GLM"
    chain.save(tmp_path / "bare.mcce", donors="none")
    with pytest.raises(SamplerError, match="its density is read from training values"):
        ChainModel.load(tmp_path / "bare.mcce").samplers_["amount"].log_density(GIVEN, column("amount").values)


def test_state_of_another_model_raises():
    sampler = fitted(StatsmodelsSampler("NegativeBinomial"), "overdispersed")
    state = get_state(sampler)
    through_json(state)
    feature = column("overdispersed").feature
    sampler.check_state(GIVEN.features, feature, 600)
    for name, value, message in (
        ("extra_", np.empty(0), "does not match the model"),
        ("coef_", np.ones((1, 2)), "coef_ has the shape"),
        ("scale_", -1.0, "scale_ is -1.0"),
    ):
        spoilt = set_state(StatsmodelsSampler("NegativeBinomial"), {**state, name: value})
        with pytest.raises(InputError, match=message):
            spoilt.check_state(GIVEN.features, feature, 600)


def test_missing_values_have_a_separate_model():
    frame = FRAME[["age", "sex", "amount"]].copy()
    frame["amount"] = frame["amount"].mask(frame["age"] > 60)
    table = Schema.from_data(frame).encode(frame)
    sampler = mcce.GammaSampler().fit(table.first(2), table.column(2))
    missing = np.isnan(sampler.sample(TABLE.first(2), RowStreams.from_seed(1, 600)))
    assert missing[frame["age"] > 60].mean() > 0.8
    assert missing[frame["age"] < 50].mean() < 0.1
