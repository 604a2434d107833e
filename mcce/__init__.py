"""Counterfactual explanations for any model on tabular data, by Monte Carlo sampling from a chain of conditionals.

A name is loaded when it is first used, so that `import mcce` is quick and nobody waits for what they do not use.
"""

import contextlib
import gc
import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what `__getattr__` does, for type checkers and editors
    from mcce import batches as batches
    from mcce import constraints as constraints
    from mcce import datasets, diagnostics, rcompat
    from mcce import exceptions as exceptions
    from mcce import explore as explore
    from mcce import generators as generators
    from mcce import rng as rng
    from mcce import samplers as samplers
    from mcce import table as table
    from mcce import testing as testing
    from mcce.constraints import (
        allow,
        available_constraints,
        k_anonymous,
        no_copies,
        only,
        per_factual,
        register_constraint,
        rule,
    )
    from mcce.counterfactuals import Counterfactuals
    from mcce.diagnostics.conditionals import compare_conditionals
    from mcce.exceptions import InputError, MCCEError, MCCEWarning, ModelError, NotFittedError, SamplerError
    from mcce.explain.distances import available_measures, gower_distance, register_measure
    from mcce.explain.relation_finder import find_relations
    from mcce.explain.relations import tied
    from mcce.explainer import MCCE
    from mcce.generators.auto import Auto
    from mcce.generators.base import available_generators, register_generator
    from mcce.generators.chain import ChainModel
    from mcce.generators.private import Privacy
    from mcce.model.decisions import Interval, Not, OneOf, Several
    from mcce.model.robustness import Robust, bootstrap_refits
    from mcce.privacy.account import PrivacyAccount
    from mcce.report import plots as plots
    from mcce.report.names import Names
    from mcce.samplers import (
        BoostingSampler,
        CartSampler,
        ConditionalSampler,
        CtreeSampler,
        DPSampler,
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
    from mcce.table.suggest import suggest_fixed

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
    "DPSampler",
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
    "Privacy",
    "PrivacyAccount",
    "RestrictedDraw",
    "Robust",
    "SamplerError",
    "Schema",
    "Several",
    "VineSampler",
    "Within",
    "allow",
    "available_constraints",
    "available_generators",
    "available_measures",
    "available_samplers",
    "bootstrap_refits",
    "compare_conditionals",
    "datasets",
    "diagnostics",
    "find_relations",
    "gower_distance",
    "k_anonymous",
    "no_copies",
    "only",
    "per_factual",
    "rcompat",
    "register_constraint",
    "register_generator",
    "register_measure",
    "register_sampler",
    "rule",
    "suggest_fixed",
    "tied",
]

_HOMES = {  # the modules of the names above; all others are of `mcce.samplers`
    "mcce.constraints": (
        *("allow", "k_anonymous", "no_copies", "only", "per_factual", "rule"),
        *("available_constraints", "register_constraint"),
    ),
    "mcce.counterfactuals": ("Counterfactuals",),
    "mcce.diagnostics.conditionals": ("compare_conditionals",),
    "mcce.exceptions": ("InputError", "MCCEError", "MCCEWarning", "ModelError", "NotFittedError", "SamplerError"),
    "mcce.explain.distances": ("available_measures", "gower_distance", "register_measure"),
    "mcce.explain.relation_finder": ("find_relations",),
    "mcce.explain.relations": ("tied",),
    "mcce.generators.auto": ("Auto",),
    "mcce.generators.base": ("available_generators", "register_generator"),
    "mcce.generators.chain": ("ChainModel",),
    "mcce.generators.private": ("Privacy",),
    "mcce.explainer": ("MCCE",),
    "mcce.model.decisions": ("Interval", "Not", "OneOf", "Several"),
    "mcce.model.robustness": ("Robust", "bootstrap_refits"),
    "mcce.privacy.account": ("PrivacyAccount",),
    "mcce.report.names": ("Names",),
    "mcce.table": ("Schema",),
    "mcce.table.suggest": ("suggest_fixed",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = ("datasets", "diagnostics", "plots", "rcompat", "testing")
_OTHER_MODULES = (
    "batches",
    "constraints",
    "exceptions",
    "explore",
    "generators",
    "rng",
    "samplers",
    "table",
)  # not listed


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Put off the search for garbage, which takes a fifth of the time: what a module makes when it is loaded stays."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


if not TYPE_CHECKING:  # where it would say that every name exists

    def __getattr__(name: str) -> Any:
        if name in _MODULES or name in _OTHER_MODULES:
            with _no_collections():
                found = importlib.import_module("mcce.report.plots" if name == "plots" else f"mcce.{name}")
        elif name in __all__:
            with _no_collections():
                found = getattr(importlib.import_module(_HOME_OF.get(name, "mcce.samplers")), name)
        else:
            raise AttributeError(f"module 'mcce' has no attribute {name!r}")
        globals()[name] = found  # the next use finds it at once
        return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))})
