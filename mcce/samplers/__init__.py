"""Conditionals p(target | given): the contract, the distributions they return, and the families.

A family is registered by the import of its file here.
"""

from mcce.samplers.base import (
    ConditionalSampler,
    available_samplers,
    distribution_of,
    make_sampler,
    register_sampler,
)
from mcce.samplers.cart import CartSampler
from mcce.samplers.copula import GaussianCopulaSampler
from mcce.samplers.ctree import CtreeSampler
from mcce.samplers.distributions import Continuous, Distribution, Donors, Hurdle, Levels
from mcce.samplers.estimator import EstimatorSampler
from mcce.samplers.forest import ForestSampler
from mcce.samplers.linear import NormRankSampler, NormSampler
from mcce.samplers.logistic import LogregSampler, PolrSampler, PolyregSampler
from mcce.samplers.margin import Margin
from mcce.samplers.marginal import MarginalSampler
from mcce.samplers.mixture import MixtureSampler
from mcce.samplers.parametric import ParametricSampler
from mcce.samplers.pmm import PmmSampler
from mcce.samplers.statsmodels import QuantileSampler, StatsmodelsSampler, beta, gamma, negbin, poisson, zip_
from mcce.samplers.twopart import TwoPartSampler
from mcce.samplers.within import Within

__all__ = [
    "CartSampler",
    "ConditionalSampler",
    "Continuous",
    "CtreeSampler",
    "Distribution",
    "Donors",
    "EstimatorSampler",
    "ForestSampler",
    "GaussianCopulaSampler",
    "Hurdle",
    "Levels",
    "LogregSampler",
    "Margin",
    "MarginalSampler",
    "MixtureSampler",
    "NormRankSampler",
    "NormSampler",
    "ParametricSampler",
    "PmmSampler",
    "PolrSampler",
    "PolyregSampler",
    "QuantileSampler",
    "StatsmodelsSampler",
    "TwoPartSampler",
    "Within",
    "available_samplers",
    "beta",
    "distribution_of",
    "gamma",
    "make_sampler",
    "negbin",
    "poisson",
    "register_sampler",
    "zip_",
]
