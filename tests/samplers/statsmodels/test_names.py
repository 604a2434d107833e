"""The short names: each conforms and equals its statsmodels model."""

import numpy as np
import pytest
import statsmodels.api as sm

import mcce
from mcce import StatsmodelsSampler
from mcce.rng import RowStreams
from mcce.table import Schema
from mcce.testing import check_sampler
from tests.marks import nightly_but
from tests.samplers.statsmodels.problem import GIVEN, column, fitted

NAMES = {
    "poisson": ("count", StatsmodelsSampler("GLM", family="Poisson(Log)")),
    "negbin": ("overdispersed", StatsmodelsSampler("NegativeBinomial")),
    "zip": ("inflated", StatsmodelsSampler("ZeroInflatedPoisson")),
    "gamma": ("amount", StatsmodelsSampler("GLM", family="Gamma(Log)")),
    "beta": ("share", StatsmodelsSampler("BetaModel")),
    "quantile": ("skewed", StatsmodelsSampler("QuantReg")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly_but(NAMES, "gamma"))
def test_conformance(name):
    check_sampler(name)


@pytest.mark.parametrize("name", NAMES)
def test_name_equals_its_model(name):
    target, model = NAMES[name]
    named, plain = fitted(mcce.available_samplers()[name](), target), fitted(model.clone(), target)
    np.testing.assert_array_equal(named.estimate_, plain.estimate_)
    np.testing.assert_array_equal(*(each.sample(GIVEN, RowStreams.from_seed(1, 600)) for each in (named, plain)))
    assert (named.handles, named.numbers, named.takes_weights) == (plain.handles, plain.numbers, plain.takes_weights)
    assert "formula : str or None" in type(named).__doc__


def test_names_reject_the_family_parameter():
    with pytest.raises(TypeError, match="family"):
        mcce.GammaSampler(family="Poisson")


def test_quantiles_follow_a_growing_spread():
    """A skewed target whose spread grows with its mean: better held-out log score than a normal regression."""
    target = column("skewed")
    half = np.arange(300)
    scores = []
    for sampler in (mcce.QuantileSampler(), mcce.NormSampler()):
        sampler.fit(GIVEN.take(half), target.take(half))
        scores.append(sampler.log_density(GIVEN.take(half + 300), target.values[half + 300]).mean())
    assert scores[0] > scores[1] + 0.1


def test_real_column_is_scored_better_than_by_cart():
    """Doctor visits of the RAND experiment: more than 3 paired standard errors of the held-out log score."""
    people = sm.datasets.randhie.load_pandas().data[["lncoins", "physlm", "disea", "hlthp", "mdvis"]]
    people = people.astype({"mdvis": int}).sample(2000, random_state=1)
    table = Schema.from_data(people).encode(people)
    half = np.arange(1000)
    scores = {}
    for name in ("negbin", "cart"):
        fit = mcce.available_samplers()[name]().fit(table.first(4).take(half), table.column(4).take(half))
        scores[name] = fit.log_density(table.first(4).take(half + 1000), table.matrix[half + 1000, 4])
    gain = scores["negbin"] - scores["cart"]
    known = np.isfinite(gain)
    assert gain[known].mean() > 3 * gain[known].std() / np.sqrt(known.sum())
