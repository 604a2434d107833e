"""Fits: parameters of R, distributions of statsmodels, and reports of failed fits."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy
import statsmodels.api as sm
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.othermod.betareg import BetaModel

import mcce
from mcce import InputError, SamplerError, StatsmodelsSampler
from mcce.samplers.statsmodels.models import MODELS, Specification, fit_model, name_of_model, text_of_family
from mcce.table import Schema
from tests.marks import nightly_but
from tests.samplers.statsmodels.problem import FRAME, GIVEN, column, fitted

STORED = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "regressions" / "regressions.json").read_text(encoding="utf-8")
)


def r_name(ours):
    """Return a coefficient's name in R: ``wool[T.B]:tension[T.M]`` is ``woolB:tensionM``."""
    return ours.replace("const", "(Intercept)").replace("[T.", "").replace("]", "").replace(" + 1", "+1")


@pytest.mark.parametrize("case", STORED["fits"], ids=lambda case: f"{case['formula']} {case.get('family', 'nb')}")
def test_parameters_match_r(case):
    """To 1e-6 of stats::glm and MASS::glm.nb; standard errors and dispersion too."""
    columns = dict(STORED["data"][case["data"]])
    levels = columns.pop(".levels", {})
    frame = pd.DataFrame(columns)
    for name, order in levels.items():
        frame[name] = pd.Categorical(frame[name].astype(str), order)
    frame = frame[[*(name for name in frame if name != case["target"]), case["target"]]]
    table = Schema.from_data(frame).encode(frame)
    k = len(frame.columns) - 1
    options = {"family": case["family"]} if "family" in case else {}
    sampler = StatsmodelsSampler(case["model"], formula=case["formula"], **options).fit(table.first(k), table.column(k))
    ours = dict(zip(map(r_name, sampler.names_), sampler.estimate_))
    errors = dict(zip(map(r_name, sampler.names_), np.sqrt(np.diag(sampler.covariance_))))
    if case["data"] == "quine" and "Eth * Sex" in case["formula"]:  # R aliases nothing here: all cells occur
        assert not sampler.aliased_
    for name, value in case["coef"].items():
        assert ours[name] == pytest.approx(value, rel=1e-6, abs=1e-6), name
    for name, value in case.get("errors", {}).items():
        assert errors[name] == pytest.approx(value, rel=1e-5), name
    if "alpha" in case:
        assert ours["alpha"] == pytest.approx(case["alpha"], rel=1e-6)
    if "scale" in case:
        assert sampler.scale_ == pytest.approx(case["scale"], rel=1e-6)


@pytest.mark.slow
def test_parameters_of_a_beta_regression_maximise_its_likelihood():
    """A direct optimum of the density of betareg (Ferrari and Cribari-Neto 2004)."""
    x = np.column_stack([np.ones(len(FRAME)), FRAME["age"], FRAME["sex"] == "m"]).astype(float)
    y = FRAME["share"].to_numpy()
    scale = np.array([1.0, 50.0, 1.0, 1.0])

    def loss(theta):
        mean, precision = scipy.special.expit(x @ (theta[:3] / scale[:3])), np.exp(theta[3])
        return -scipy.stats.beta(mean * precision, (1 - mean) * precision).logpdf(y).sum()

    best = scipy.optimize.minimize(loss, np.zeros(4), method="Nelder-Mead", options={"maxiter": 4000, "fatol": 1e-12})
    best = scipy.optimize.minimize(loss, best.x, method="BFGS", options={"gtol": 1e-7})
    sampler = fitted(mcce.BetaSampler(), "share")
    assert -sampler.log_likelihood_ <= best.fun + 1e-9
    np.testing.assert_allclose(sampler.estimate_ * scale, best.x, atol=2e-4)


DIRECT = {
    "GLM Gamma(Log)": ("amount", sm.GLM, {"family": sm.families.Gamma(sm.families.links.Log())}),
    "GLM InverseGaussian(Log)": ("passage", sm.GLM, {"family": sm.families.InverseGaussian(sm.families.links.Log())}),
    "GLM Poisson": ("count", sm.GLM, {"family": sm.families.Poisson()}),
    "GLM NegativeBinomial": ("overdispersed", sm.GLM, {"family": sm.families.NegativeBinomial(alpha=0.5)}),
    "GLM Gaussian": ("number", sm.GLM, {}),
    "OLS": ("number", sm.OLS, {}),
    "Poisson": ("count", sm.Poisson, {}),
    "NegativeBinomial": ("overdispersed", sm.NegativeBinomial, {}),
    "NegativeBinomial nb1": ("overdispersed", sm.NegativeBinomial, {"loglike_method": "nb1"}),
    "NegativeBinomialP": ("overdispersed", sm.NegativeBinomialP, {"p": 1}),
    "GeneralizedPoisson": ("overdispersed", sm.GeneralizedPoisson, {}),
    "ZeroInflatedPoisson": ("inflated", sm.ZeroInflatedPoisson, {}),
    "ZeroInflatedGeneralizedPoisson": ("overdispersed", sm.ZeroInflatedGeneralizedPoisson, {}),
    "BetaModel": ("share", BetaModel, {}),
}


@pytest.mark.parametrize("name", nightly_but(DIRECT, *(set(DIRECT) - {"ZeroInflatedGeneralizedPoisson"})))
def test_distributions_match_statsmodels(name):
    """By `get_distribution` of a result with our parameters, on the same design."""
    target, model, options = DIRECT[name]
    sampler = fitted(StatsmodelsSampler(model, **options), target)
    x = np.column_stack([np.ones(len(FRAME)), FRAME["age"], FRAME["sex"] == "m"]).astype(float)
    y = FRAME[target].to_numpy(float)
    made = model(y, x, **options)
    params = sampler.estimate_
    if name == "OLS":
        known = made.get_distribution(params, sampler.scale_)
    elif name.startswith("GLM"):
        known = made.get_distribution(params, scale=sampler.scale_)
    else:
        known = made.get_distribution(params, exog=x) if "Inflated" not in name else made.get_distribution(params)
    ours = sampler._distribution(GIVEN)
    np.testing.assert_allclose(ours.distribution.cdf(y), known.cdf(y), rtol=1e-7, atol=1e-10)
    theirs = known.logpmf(y) if ours.is_count else known.logpdf(y)
    np.testing.assert_allclose(ours.log_density(y), theirs, rtol=1e-7, atol=1e-10)
    levels = np.random.default_rng(1).random(y.size)
    np.testing.assert_allclose(ours.draw(levels), known.ppf(levels), rtol=1e-6)


@pytest.mark.parametrize(
    ("target", "model", "options"),
    [
        ("grade", sm.MNLogit, {}),
        ("grade", OrderedModel, {}),
        ("grade", OrderedModel, {"distr": "probit"}),
        ("yes", sm.Logit, {}),
        ("yes", sm.Probit, {}),
        ("yes", sm.GLM, {"family": sm.families.Binomial(sm.families.links.CLogLog())}),
    ],
)
def test_probabilities_match_statsmodels(target, model, options):
    sampler = fitted(StatsmodelsSampler(model, **options), target)
    z = np.column_stack([(FRAME["age"] - 45) / 15, FRAME["sex"] == "m"]).astype(float)
    z = z if model is OrderedModel else sm.add_constant(z)
    plain = {"distr": "logit", **options} if model is OrderedModel else options
    codes = FRAME[target].cat.codes.to_numpy()
    result = model(codes, z, **plain).fit(**({} if model is sm.GLM else {"disp": 0, "maxiter": 500}))
    known = np.asarray(result.predict(z))
    known = np.column_stack([1 - known, known]) if known.ndim == 1 else known
    np.testing.assert_allclose(sampler._probabilities(GIVEN), known, atol=5e-5)


def test_scale_of_the_columns_does_not_matter():
    """Salaries in cents and years since 0: the coefficients scale accordingly."""
    design = np.column_stack([FRAME["age"], FRAME["sex"] == "m"]).astype(float)
    y = FRAME["overdispersed"].to_numpy(float)
    for name in ("Poisson", "NegativeBinomial", "ZeroInflatedPoisson"):
        one, other = (
            fit_model(Specification.read(name, {}), x, y, names=["age", "sex"])
            for x in (design, design * [1e8, 1.0] + [0.0, 2000.0])
        )
        slopes = [i for i, each in enumerate(one.names) if each == "age"]
        np.testing.assert_allclose(other.estimate[slopes] * 1e8, one.estimate[slopes], rtol=1e-6)


def test_aliased_columns_are_dropped_and_named():
    frame = pd.DataFrame({"age": FRAME["age"], "months": 12 * FRAME["age"], "y": FRAME["count"]})
    table = Schema.from_data(frame).encode(frame)
    with pytest.warns(mcce.exceptions.MCCEWarning, match=r"PoissonSampler for 'y': 'months' is determined by"):
        sampler = mcce.PoissonSampler().fit(table.first(2), table.column(2))
    assert sampler.aliased_ == ("months",)
    assert sampler.coef_[0, 2] == 0.0
    alone = mcce.PoissonSampler(formula="~ age").fit(table.first(2), table.column(2))
    np.testing.assert_allclose(sampler.coef_[0, :2], alone.coef_[0])
    assert "Aliased" in sampler.summary()


@pytest.mark.parametrize("model", ["Logit", "Probit", "MNLogit", "OrderedModel", "GLM"])
def test_separation_raises_and_names_the_feature(model):
    x = np.linspace(-1, 1, 100)
    grade = pd.Categorical.from_codes((x > 0).astype(int), ["no", "yes"], ordered=model == "OrderedModel")
    frame = pd.DataFrame({"x": x, "y": grade})
    table = Schema.from_data(frame).encode(frame)
    options = {"family": "Binomial"} if model == "GLM" else {}
    with pytest.raises(SamplerError, match=r"for 'y': .*(has no maximum|not converged|could not fit).*"):
        StatsmodelsSampler(model, **options).fit(table.first(1), table.column(1))


def test_count_without_variation_in_a_level_is_separated():
    frame = pd.DataFrame({"sex": pd.Categorical(np.tile(["f", "m"], 100)), "y": np.tile([0, 3, 0, 5, 0, 1, 0, 2], 25)})
    table = Schema.from_data(frame).encode(frame)
    with pytest.raises(SamplerError, match=r"PoissonSampler\(\) for 'y': .*'sex\[T.m\]'.*Leave predictors out"):
        mcce.PoissonSampler().fit(table.first(1), table.column(1))


@pytest.mark.parametrize("seed", range(4))
def test_underdispersed_counts_have_no_negative_binomial(seed):
    """Newton steps to a negative alpha made the fit endless: scipy's zeta() counts up from 1 / alpha."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=400)
    X = pd.DataFrame({"x": x, "y": rng.binomial(4, scipy.special.expit(0.3 * x)).astype(float)})
    with pytest.raises(SamplerError, match=r"for 'y': .* vary no more than .* Poisson .*; use poisson or quantile"):
        mcce.ChainModel(sampler="negbin", fixed=["x"]).fit(X)


def test_unconverged_fit_raises():
    with pytest.raises(SamplerError, match=r"for 'overdispersed': the fit of statsmodels' .* has not conv"):
        fitted(StatsmodelsSampler("NegativeBinomial", fit_options={"method": "bfgs", "maxiter": 1}), "overdispersed")
    with pytest.raises(SamplerError, match="there are 3 coefficients and 3 rows"):
        StatsmodelsSampler("OLS").fit(GIVEN.take([0, 1, 2]), column("number").take([0, 1, 2]))


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (sm.RLM, {}, "RLM cannot be a conditional: a robust regression has no distribution"),
        (sm.MixedLM, {}, "MixedLM cannot be a conditional: groups are not a column"),
        ("Poison", {}, "did you mean 'Poisson'"),
        (dict, {}, "give a class of statsmodels"),
        (3, {}, "give a class of statsmodels"),
        ("Poisson", {"offset": np.ones(3)}, "'offset' is not an option of Poisson"),
        ("GLM", {"family": sm.families.Tweedie()}, "family of GLM is 'Tweedie"),
        ("GLM", {"famliy": "Gamma"}, "did you mean 'family'"),
        ("GLM", {"family": "__import__('os')"}, "it must be one of Gaussian, Gamma"),
        ("NegativeBinomial", {"loglike_method": "geometric"}, "must be 'nb2' or 'nb1'"),
        ("OLS", {"hasconst": True}, "the model has none"),
    ],
)
def test_non_conditional_models_raise_with_the_reason(model, options, message):
    with pytest.raises(mcce.MCCEError, match=message):
        fitted(StatsmodelsSampler(model, **options), "number")


def test_texts_of_families():
    links = sm.families.links
    assert text_of_family(sm.families.Gamma(links.Log())) == "Gamma(Log)"
    assert text_of_family(sm.families.NegativeBinomial(alpha=0.5)) == "NegativeBinomial(Log, 0.5)"
    assert text_of_family(None) == "Gaussian(Identity)"
    assert {name_of_model(name) for name in MODELS} == set(MODELS)
    with pytest.raises(InputError, match="family of GLM"):
        Specification.read("GLM", {"family": "Gamma(Log).__class__"})
