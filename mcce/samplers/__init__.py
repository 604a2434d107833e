"""Conditional samplers: one family a file, which registers itself by name; all behind `ConditionalSampler`.

The families other than `cart` are loaded when one of them is first used, or looked for by name.
"""

from typing import TYPE_CHECKING

from mcce.base.lazy import loaded_when_used
from mcce.samplers.base import SAMPLERS, ConditionalSampler
from mcce.samplers.donors.cart import CartSampler
from mcce.samplers.registry import available_samplers, make_sampler, register_sampler
from mcce.samplers.restricted import RestrictedDraw, Within
from mcce.storage.state import look_in

if TYPE_CHECKING:  # what `__getattr__` does, for type checkers and editors
    from mcce.samplers.boosting import BoostingSampler
    from mcce.samplers.copula import GaussianCopulaSampler
    from mcce.samplers.donors.ctree import CtreeSampler
    from mcce.samplers.donors.forest import ForestSampler
    from mcce.samplers.donors.marginal import MarginalSampler
    from mcce.samplers.dp import DPSampler
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
    from mcce.samplers.vine import VineSampler

__all__ = [
    "BoostingSampler",
    "CartSampler",
    "ConditionalSampler",
    "CtreeSampler",
    "DPSampler",
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

_HOMES = {
    "mcce.samplers.boosting": ("BoostingSampler",),
    "mcce.samplers.copula": ("GaussianCopulaSampler",),
    "mcce.samplers.donors.ctree": ("CtreeSampler",),
    "mcce.samplers.donors.forest": ("ForestSampler",),
    "mcce.samplers.donors.marginal": ("MarginalSampler",),
    "mcce.samplers.dp": ("DPSampler",),
    "mcce.samplers.empirical": ("EmpiricalSampler",),
    "mcce.samplers.estimator": ("EstimatorSampler",),
    "mcce.samplers.mixture": ("MixtureSampler",),
    "mcce.samplers.parametric": (
        *("GaussianSampler", "LogregSampler", "NormRankSampler", "NormSampler"),
        *("ParametricSampler", "PmmSampler", "PolrSampler", "PolyregSampler"),
    ),
    "mcce.samplers.vine": ("VineSampler",),
}
SAMPLERS.homes = tuple(_HOMES)
look_in(*_HOMES, "mcce.trees.rpart.tree")

if not TYPE_CHECKING:  # where it would say that every name exists
    __getattr__ = loaded_when_used(__name__, _HOMES)
