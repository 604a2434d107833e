from .base import ConditionalSampler
from .boosting import BoostingSampler
from .copula.sampler import GaussianCopulaSampler
from .crosstab import CatallSampler, NestedSampler
from .donors.cart import CartSampler
from .donors.ctree import CtreeSampler
from .donors.forest import ForestSampler
from .donors.marginal import MarginalSampler
from .donors.survctree import SurvCtreeSampler
from .dp import DPSampler
from .empirical.sampler import EmpiricalSampler
from .estimator import EstimatorSampler
from .mixture.sampler import MixtureSampler
from .parametric.lasso import LassoLogregSampler, LassoNormSampler
from .parametric.lda import LdaSampler
from .parametric.logistic import LogregSampler, PolrSampler, PolyregSampler
from .parametric.midastouch import MidastouchSampler
from .parametric.norm import (
    CubertNormSampler,
    GaussianSampler,
    LogNormSampler,
    NormBootSampler,
    NormRankSampler,
    NormSampler,
    SqrtNormSampler,
)
from .parametric.pmm import PmmSampler
from .parametric.sampler import ParametricSampler
from .parametric.two_level import TwoLevelSampler
from .registry import available_samplers, make_sampler, register_sampler
from .restricted import RestrictedDraw, Within
from .stack import StackSampler
from .statsmodels.names import BetaSampler, GammaSampler, NegbinSampler, PoissonSampler, QuantileSampler, ZipSampler
from .statsmodels.sampler import StatsmodelsSampler
from .statsmodels.two_part import TwoPartSampler
from .vine.sampler import VineSampler

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
