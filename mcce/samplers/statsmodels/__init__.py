"""Models of statsmodels as conditionals, short names of the common ones, and a two-part model of amounts."""

from mcce.samplers.statsmodels.names import (
    BetaSampler,
    GammaSampler,
    NegbinSampler,
    PoissonSampler,
    QuantileSampler,
    ZipSampler,
)
from mcce.samplers.statsmodels.sampler import StatsmodelsSampler
from mcce.samplers.statsmodels.two_part import TwoPartSampler

__all__ = [
    "BetaSampler",
    "GammaSampler",
    "NegbinSampler",
    "PoissonSampler",
    "QuantileSampler",
    "StatsmodelsSampler",
    "TwoPartSampler",
    "ZipSampler",
]
