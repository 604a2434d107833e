"""Samplers that keep the contract with as little as it takes."""

from __future__ import annotations

import numpy as np

from mcce import ConditionalSampler, MarginalSampler


class Normal(ConditionalSampler):
    """A conforming sampler of few words: rejection for `within`, the default state, a density."""

    handles = frozenset({"numeric"})
    ignores_given = True

    def fit(self, given, target):
        self.mean_, self.sd_ = float(np.mean(target.values)), float(np.std(target.values))
        return self

    def sample(self, given, rng, within=None):
        self.check_fitted("mean_")
        if within is not None:
            return self.sample_within(given, rng, within).values
        return self.mean_ + self.sd_ * rng.normal()

    def log_density(self, given, values):
        return -0.5 * ((values - self.mean_) / self.sd_) ** 2 - np.log(self.sd_ * np.sqrt(2 * np.pi))


class TwoMethods(ConditionalSampler):
    """The least a plug-in can be: no `within` at all, a state that the default refuses."""

    handles = frozenset({"categorical"})
    ignores_given = True

    def fit(self, given, target):
        self.donors_ = {"values": target.values.copy()}
        return self

    def sample(self, given, rng):
        self.check_fitted("donors_")
        return self.donors_["values"][rng.integer(self.donors_["values"].size)]


class Frequencies(MarginalSampler):
    """Levels by their frequencies, with their probabilities."""

    handles = frozenset({"categorical", "ordered"})

    def fit(self, given, target):
        self.n_levels_ = target.feature.n_levels
        return super().fit(given, target)

    def log_density(self, given, values):
        shares = np.bincount(self.donors_.astype(int), minlength=self.n_levels_) / self.donors_.size
        return np.log(shares[values.astype(int)])
