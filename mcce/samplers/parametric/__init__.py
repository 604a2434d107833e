"""Parametric conditionals, as in synthpop: linear regressions for numbers, logistic ones for levels.

`norm` and `normrank` (norm.py), `pmm` (pmm.py), `logreg`, `polyreg` and `polr` (logistic.py), and `parametric`, which
chooses among them; `gaussian` (norm.py) is shapr's. `norm` of transformed values and `norm.boot` stand in norm.py;
mice's `midastouch`, `lda`, `lasso.norm`, `lasso.logreg` and `2l.norm` in files of their own. They share the design
matrix and the augmentation (design.py), two maximum likelihood fits (glm.py), the ridge regression (linear.py) and the
treatment of missing targets (regression.py).
"""

from mcce.samplers.parametric.lasso import LassoLogregSampler, LassoNormSampler
from mcce.samplers.parametric.lda import LdaSampler
from mcce.samplers.parametric.logistic import LogregSampler, PolrSampler, PolyregSampler
from mcce.samplers.parametric.midastouch import MidastouchSampler
from mcce.samplers.parametric.norm import (
    CubertNormSampler,
    GaussianSampler,
    LogNormSampler,
    NormBootSampler,
    NormRankSampler,
    NormSampler,
    SqrtNormSampler,
)
from mcce.samplers.parametric.pmm import PmmSampler
from mcce.samplers.parametric.sampler import ParametricSampler
from mcce.samplers.parametric.two_level import TwoLevelSampler

__all__ = [
    "CubertNormSampler",
    "GaussianSampler",
    "LassoLogregSampler",
    "LassoNormSampler",
    "LdaSampler",
    "LogNormSampler",
    "LogregSampler",
    "MidastouchSampler",
    "NormBootSampler",
    "NormRankSampler",
    "NormSampler",
    "ParametricSampler",
    "PmmSampler",
    "PolrSampler",
    "PolyregSampler",
    "SqrtNormSampler",
    "TwoLevelSampler",
]
