"""Counterfactual explanations for any model on tabular data, by Monte Carlo sampling from a chain of conditionals."""

import importlib
from typing import TYPE_CHECKING, Any

from mcce import datasets, diagnostics, exceptions, rcompat
from mcce.constraints import allow, only, per_factual, rule
from mcce.counterfactuals import Counterfactuals
from mcce.diagnostics.conditionals import compare_conditionals
from mcce.exceptions import InputError, MCCEError, MCCEWarning, ModelError, SamplerError
from mcce.explain.distances import gower_distance
from mcce.generators.auto import Auto
from mcce.generators.chain import ChainModel
from mcce.method import MCCE
from mcce.model.decisions import Interval, Not, OneOf, Several
from mcce.model.robustness import bootstrap_refits
from mcce.report.names import Names
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
    MixtureSampler,
    NormRankSampler,
    NormSampler,
    ParametricSampler,
    PmmSampler,
    PolrSampler,
    PolyregSampler,
    RestrictedDraw,
    VineSampler,
    Within,
    available_samplers,
    register_sampler,
)
from mcce.table import Schema

if TYPE_CHECKING:
    from mcce import testing as testing
    from mcce.exceptions import NotFittedError
    from mcce.report import plots as plots

__version__ = "0.1.0"

__all__ = [
    "MCCE",
    "Auto",
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
    "MixtureSampler",
    "ModelError",
    "Names",
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
    "VineSampler",
    "Within",
    "allow",
    "available_samplers",
    "bootstrap_refits",
    "compare_conditionals",
    "datasets",
    "diagnostics",
    "gower_distance",
    "only",
    "per_factual",
    "rcompat",
    "register_sampler",
    "rule",
]

# public too, loaded when first used; `from mcce import *` leaves them out
_SUBMODULES = {"plots": "mcce.report.plots", "testing": "mcce.testing"}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(_SUBMODULES[name])
    if name == "NotFittedError":  # a class of scikit-learn's too, which takes long to import
        return exceptions.NotFittedError
    raise AttributeError(f"module 'mcce' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES, *(name for name in globals() if name.startswith("__"))])
