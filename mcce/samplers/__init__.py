"""Conditional samplers: one family a file, which registers itself by name; all behind `ConditionalSampler`.

The families other than `cart` are loaded when one of them is first used, or looked for by name.
"""

from typing import TYPE_CHECKING

import lazy_loader

from mcce.samplers.base import SAMPLERS, ConditionalSampler
from mcce.samplers.donors.cart import CartSampler
from mcce.samplers.registry import available_samplers, make_sampler, register_sampler
from mcce.samplers.restricted import RestrictedDraw, Within
from mcce.storage.state import look_in

if TYPE_CHECKING:  # the names that are loaded lazily, for type checkers and editors
    from mcce.samplers.boosting import BoostingSampler
    from mcce.samplers.copula import GaussianCopulaSampler
    from mcce.samplers.crosstab import CatallSampler, NestedSampler
    from mcce.samplers.donors.ctree import CtreeSampler
    from mcce.samplers.donors.forest import ForestSampler
    from mcce.samplers.donors.marginal import MarginalSampler
    from mcce.samplers.donors.survctree import SurvCtreeSampler
    from mcce.samplers.dp import DPSampler
    from mcce.samplers.empirical import EmpiricalSampler
    from mcce.samplers.estimator import EstimatorSampler
    from mcce.samplers.mixture import MixtureSampler
    from mcce.samplers.parametric import (
        CubertNormSampler,
        GaussianSampler,
        LassoLogregSampler,
        LassoNormSampler,
        LdaSampler,
        LogNormSampler,
        LogregSampler,
        MidastouchSampler,
        NormBootSampler,
        NormRankSampler,
        NormSampler,
        ParametricSampler,
        PmmSampler,
        PolrSampler,
        PolyregSampler,
        SqrtNormSampler,
        TwoLevelSampler,
    )
    from mcce.samplers.stack import StackSampler
    from mcce.samplers.statsmodels import (
        BetaSampler,
        GammaSampler,
        NegbinSampler,
        PoissonSampler,
        QuantileSampler,
        StatsmodelsSampler,
        TwoPartSampler,
        ZipSampler,
    )
    from mcce.samplers.vine import VineSampler

__all__ = [
    "BetaSampler",
    "BoostingSampler",
    "CartSampler",
    "CatallSampler",
    "ConditionalSampler",
    "CtreeSampler",
    "CubertNormSampler",
    "DPSampler",
    "EmpiricalSampler",
    "EstimatorSampler",
    "ForestSampler",
    "GammaSampler",
    "GaussianCopulaSampler",
    "GaussianSampler",
    "LassoLogregSampler",
    "LassoNormSampler",
    "LdaSampler",
    "LogNormSampler",
    "LogregSampler",
    "MarginalSampler",
    "MidastouchSampler",
    "MixtureSampler",
    "NegbinSampler",
    "NestedSampler",
    "NormBootSampler",
    "NormRankSampler",
    "NormSampler",
    "ParametricSampler",
    "PmmSampler",
    "PoissonSampler",
    "PolrSampler",
    "PolyregSampler",
    "QuantileSampler",
    "RestrictedDraw",
    "SqrtNormSampler",
    "StackSampler",
    "StatsmodelsSampler",
    "SurvCtreeSampler",
    "TwoLevelSampler",
    "TwoPartSampler",
    "VineSampler",
    "Within",
    "ZipSampler",
    "available_samplers",
    "make_sampler",
    "register_sampler",
]

_HOMES = {
    "boosting": ("BoostingSampler",),
    "copula": ("GaussianCopulaSampler",),
    "crosstab": (
        "CatallSampler",
        "NestedSampler",
    ),
    "donors.ctree": ("CtreeSampler",),
    "donors.forest": ("ForestSampler",),
    "donors.marginal": ("MarginalSampler",),
    "donors.survctree": ("SurvCtreeSampler",),
    "dp": ("DPSampler",),
    "empirical": ("EmpiricalSampler",),
    "estimator": ("EstimatorSampler",),
    "mixture": ("MixtureSampler",),
    "parametric": (
        *("CubertNormSampler", "GaussianSampler", "LassoLogregSampler", "LassoNormSampler"),
        *("LdaSampler", "LogNormSampler", "LogregSampler", "MidastouchSampler"),
        *("NormBootSampler", "NormRankSampler", "NormSampler", "ParametricSampler"),
        *("PmmSampler", "PolrSampler", "PolyregSampler", "SqrtNormSampler", "TwoLevelSampler"),
    ),
    "stack": ("StackSampler",),
    "statsmodels": (
        *("BetaSampler", "GammaSampler", "NegbinSampler", "PoissonSampler"),
        *("QuantileSampler", "StatsmodelsSampler", "TwoPartSampler", "ZipSampler"),
    ),
    "vine": ("VineSampler",),
}
SAMPLERS.homes = tuple(f"{__name__}.{module}" for module in _HOMES)
look_in(*SAMPLERS.homes, "mcce.trees.rpart.tree")

if not TYPE_CHECKING:  # it would claim that every name exists
    __getattr__ = lazy_loader.attach(__name__, _HOMES, _HOMES)[0]
