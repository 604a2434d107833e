"""Gradient boosting: quantiles of numbers, probabilities of levels."""

from mcce.samplers.boosting.sampler import BoostingSampler

__all__ = ["BoostingSampler"]
