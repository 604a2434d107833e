"""Every registered sampler, and the chain, fulfil the contract."""

import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

from mcce.exceptions import InputError
from mcce.generators import ChainModel
from mcce.samplers import EstimatorSampler, available_samplers
from mcce.testing import check_generator, check_sampler

SLOW = {"mixture", "beta", "quantile", "forest", "copula"}
FITS_ANY_SHAPE = {"cart", "ctree", "forest", "marginal", "normrank", "pmm"}  # numbers of any distribution, and levels


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in available_samplers()]
)
def test_registered_sampler(name):
    check_sampler(name, uses_given=name != "marginal", goodness_of_fit=name in FITS_ANY_SHAPE)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [RandomForestClassifier(20, min_samples_leaf=10), LinearRegression()], ids=str)
def test_estimators(estimator):
    check_sampler(EstimatorSampler(estimator))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["cart", "parametric"])
def test_chain(sampler):
    check_generator(ChainModel(sampler=sampler, random_state=1))


def test_only_samplers_and_generators_are_checked():
    with pytest.raises(InputError, match="check_sampler got 3; give an object of ConditionalSampler"):
        check_sampler(3)
    with pytest.raises(InputError, match="there is no sampler 'marginl'; did you mean 'marginal'"):
        check_sampler("marginl")
    with pytest.raises(InputError, match="check_generator got 'chain'"):
        check_generator("chain")
