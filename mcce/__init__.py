"""Counterfactual explanations for any model on tabular data, by Monte Carlo sampling from a chain of conditionals."""

from mcce import datasets
from mcce.chain import ChainModel
from mcce.samplers import CartSampler, ConditionalSampler, MarginalSampler, available_samplers, register_sampler
from mcce.schema import Schema
