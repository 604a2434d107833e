"""Conditional samplers: one family a file, all behind `ConditionalSampler`."""

from mcce.samplers.base import ConditionalSampler, Within
from mcce.samplers.cart import CartSampler
from mcce.samplers.marginal import MarginalSampler
from mcce.samplers.registry import available_samplers, make_sampler, register_sampler

register_sampler("cart", CartSampler)
register_sampler("marginal", MarginalSampler)

__all__ = [
    "CartSampler",
    "ConditionalSampler",
    "MarginalSampler",
    "Within",
    "available_samplers",
    "make_sampler",
    "register_sampler",
]
