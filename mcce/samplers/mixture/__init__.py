"""A finite mixture for mixed data: any columns given any others, in closed form."""

from mcce.samplers.mixture.sampler import MixtureSampler

__all__ = ["MixtureSampler"]
