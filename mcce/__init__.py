"""Counterfactual explanations for any model on tabular data, by Monte Carlo sampling from a chain of conditionals."""

from mcce import datasets, diagnostics, rcompat
from mcce.asking.decision import Interval, Not, OneOf, Several
from mcce.asking.lasting import bootstrap_refits
from mcce.constraints import allow, only, per_factual, rule
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import InputError, MCCEError, MCCEWarning, ModelError, NotFittedError, SamplerError
from mcce.generators.chain import ChainModel
from mcce.method import MCCE
from mcce.samplers import (
    BoostingSampler,
    CartSampler,
    ConditionalSampler,
    CtreeSampler,
    EmpiricalSampler,
    EstimatorSampler,
    ForestSampler,
    GaussianCopulaSampler,
    GaussianSampler,
    LogregSampler,
    MarginalSampler,
    NormRankSampler,
    NormSampler,
    ParametricSampler,
    PmmSampler,
    PolrSampler,
    PolyregSampler,
    RestrictedDraw,
    Within,
    available_samplers,
    register_sampler,
)
from mcce.selection.measures import gower_distance
from mcce.table import Schema

__version__ = "0.1.0"

__all__ = [
    "MCCE",
    "BoostingSampler",
    "CartSampler",
    "ChainModel",
    "ConditionalSampler",
    "Counterfactuals",
    "CtreeSampler",
    "EmpiricalSampler",
    "EstimatorSampler",
    "ForestSampler",
    "GaussianCopulaSampler",
    "GaussianSampler",
    "InputError",
    "Interval",
    "LogregSampler",
    "MCCEError",
    "MCCEWarning",
    "MarginalSampler",
    "ModelError",
    "NormRankSampler",
    "NormSampler",
    "Not",
    "NotFittedError",
    "OneOf",
    "ParametricSampler",
    "PmmSampler",
    "PolrSampler",
    "PolyregSampler",
    "RestrictedDraw",
    "SamplerError",
    "Schema",
    "Several",
    "Within",
    "allow",
    "available_samplers",
    "bootstrap_refits",
    "datasets",
    "diagnostics",
    "gower_distance",
    "only",
    "per_factual",
    "rcompat",
    "register_sampler",
    "rule",
]
