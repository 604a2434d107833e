"""The empirical conditional of shapr: all training rows as donors, weighted by their distance."""

from mcce.samplers.empirical.sampler import EmpiricalSampler

__all__ = ["EmpiricalSampler"]
