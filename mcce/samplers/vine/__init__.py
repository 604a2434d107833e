"""A vine copula over empirical margins."""

from mcce.samplers.vine.sampler import VineSampler

__all__ = ["VineSampler"]
