"""A chain of three features with a known joint distribution."""

from __future__ import annotations

import numpy as np

from mcce import ConditionalSampler

N = 40_000


P_A = np.array([0.5, 0.3, 0.2])


P_B = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])  # b given a


P_C = np.array([[0.2, 0.8], [0.6, 0.4]])  # c given b: a and c are independent given b


class Plain(ConditionalSampler):
    """A plug-in of two methods, for numbers without missing values, not thread-safe."""

    handles = frozenset({"numeric"})

    def __init__(self, *, shift=0.0):
        self.shift = shift

    def fit(self, given, target):
        self.donors_ = np.sort(target.values)
        return self

    def sample(self, given, rng, within=None):
        return self.donors_[rng.integer(self.donors_.size)] + self.shift
