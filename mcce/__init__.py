"""Counterfactual explanations for any model on tabular data, by Monte Carlo sampling from a chain of conditionals."""

from importlib.metadata import version

from mcce import datasets, diagnostics, distances, rcompat, samplers, testing
from mcce.constraints import allow, no_copies, rule
from mcce.counterfactuals import Counterfactuals
from mcce.explainer import MCCE, load
from mcce.generators import ChainModel, SampleGenerator
from mcce.judging import compare_conditionals, criticise
from mcce.model import Interval
from mcce.plausibility.find import find_relations
from mcce.report import plots
from mcce.samplers import ConditionalSampler, available_samplers, register_sampler

__version__ = version("mcce")

__all__ = [
    "MCCE",
    "ChainModel",
    "ConditionalSampler",
    "Counterfactuals",
    "Interval",
    "SampleGenerator",
    "allow",
    "available_samplers",
    "compare_conditionals",
    "criticise",
    "datasets",
    "diagnostics",
    "distances",
    "find_relations",
    "load",
    "no_copies",
    "plots",
    "rcompat",
    "register_sampler",
    "rule",
    "samplers",
    "testing",
]
