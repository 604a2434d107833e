"""Conditional samplers: one family a file, which registers itself by name; all behind `ConditionalSampler`."""

from mcce.samplers.base import ConditionalSampler
from mcce.samplers.boosting import BoostingSampler
from mcce.samplers.copula import GaussianCopulaSampler
from mcce.samplers.donors.cart import CartSampler
from mcce.samplers.donors.ctree import CtreeSampler
from mcce.samplers.donors.forest import ForestSampler
from mcce.samplers.donors.marginal import MarginalSampler
from mcce.samplers.empirical import EmpiricalSampler
from mcce.samplers.estimator import EstimatorSampler
from mcce.samplers.mixture import MixtureSampler
from mcce.samplers.parametric import (
    GaussianSampler,
    LogregSampler,
    NormRankSampler,
    NormSampler,
    ParametricSampler,
    PmmSampler,
    PolrSampler,
    PolyregSampler,
)
from mcce.samplers.registry import available_samplers, make_sampler, register_sampler
from mcce.samplers.restricted import RestrictedDraw, Within
from mcce.samplers.vine import VineSampler

__all__ = [
    "BoostingSampler",
    "CartSampler",
    "ConditionalSampler",
    "CtreeSampler",
    "EmpiricalSampler",
    "EstimatorSampler",
    "ForestSampler",
    "GaussianCopulaSampler",
    "GaussianSampler",
    "LogregSampler",
    "MarginalSampler",
    "MixtureSampler",
    "NormRankSampler",
    "NormSampler",
    "ParametricSampler",
    "PmmSampler",
    "PolrSampler",
    "PolyregSampler",
    "RestrictedDraw",
    "VineSampler",
    "Within",
    "available_samplers",
    "make_sampler",
    "register_sampler",
]
