"""Conditional samplers behind `ConditionalSampler`: each family is one file and registers itself by name.

Names are loaded when they are first used (SPEC 1); the stub `__init__.pyi` lists them. Only `cart`, the default, is
loaded at once: every other name is found by loading all modules of `SAMPLERS.homes`.
"""

import lazy_loader

import mcce.samplers.donors.cart  # noqa: F401  # registers itself
from mcce.samplers.base import SAMPLERS
from mcce.storage.state import look_in

SAMPLERS.homes = tuple(
    f"{__name__}.{module}"
    for module in (
        *("boosting", "copula.sampler", "crosstab", "donors.ctree", "donors.forest", "donors.marginal"),
        *("donors.survctree", "dp", "empirical.sampler", "estimator", "mixture.sampler", "parametric.lasso"),
        *("parametric.lda", "parametric.logistic", "parametric.midastouch", "parametric.norm", "parametric.pmm"),
        *("parametric.sampler", "parametric.two_level", "stack", "statsmodels.names", "statsmodels.sampler"),
        *("statsmodels.two_part", "vine.sampler"),
    )
)
look_in(*SAMPLERS.homes, "mcce.trees.rpart.tree")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
