"""A Gaussian copula over empirical margins."""

from mcce.samplers.copula.sampler import GaussianCopulaSampler

__all__ = ["GaussianCopulaSampler"]
