"""Parametric conditionals, as in synthpop: linear regressions for numbers, logistic ones for levels.

`norm` and `normrank` (norm.py), `pmm` (pmm.py), `logreg`, `polyreg` and `polr` (logistic.py), and `parametric`, which
chooses among them; `gaussian` (norm.py) is shapr's. They share the design matrix and the augmentation (design.py),
two maximum likelihood fits (glm.py), the ridge regression (linear.py) and the treatment of missing targets
(regression.py).
"""

from mcce.samplers.parametric.logistic import LogregSampler, PolrSampler, PolyregSampler
from mcce.samplers.parametric.norm import GaussianSampler, NormRankSampler, NormSampler
from mcce.samplers.parametric.pmm import PmmSampler
from mcce.samplers.parametric.sampler import ParametricSampler

__all__ = [
    "GaussianSampler",
    "LogregSampler",
    "NormRankSampler",
    "NormSampler",
    "ParametricSampler",
    "PmmSampler",
    "PolrSampler",
    "PolyregSampler",
]
