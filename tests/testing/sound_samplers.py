"""Minimal conforming samplers."""

from __future__ import annotations

import numpy as np

from mcce import ConditionalSampler, MarginalSampler, SamplerError
from mcce.samplers.base import REACH


class Normal(ConditionalSampler):
    """A minimal conforming sampler: rejection for `within`, the default state, a density."""

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
    """The smallest possible plug-in: no `within`, and a state that the default rejects."""

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


class LogNormal(ConditionalSampler):
    """Linear regression of the logarithm with normal errors, a misspecified family for the tables of the suite."""

    handles = frozenset({"numeric"})
    thread_safe = True
    takes_weights = True

    def fit(self, given, target):
        self.check_target(target.feature)
        if not (target.values > 0).all():
            raise SamplerError(f"{target.feature.name!r} has numbers that are not positive; use another sampler.")
        logs, design, weights = np.log(target.values), self._design(given), target.weights
        root = np.ones(logs.size) if weights is None else np.sqrt(weights)
        self.coef_ = np.linalg.lstsq(design * root[:, None], logs * root)[0]
        self.sd_ = float(np.sqrt(np.average((logs - self._mean(given)) ** 2, weights=weights)))
        return self

    def sample(self, given, rng, within=None):
        self.check_fitted("coef_")
        if within is not None:
            return self.sample_within(given, rng, within).values
        return np.exp(self._mean(given) + self.sd_ * rng.normal())

    def supports(self, given, values):
        away = np.abs(np.log(np.maximum(values, 1e-300)) - self._mean(given))
        return (values > 0) & (away < REACH * self.sd_)

    def log_density(self, given, values):
        z = (np.log(np.maximum(values, 1e-300)) - self._mean(given)) / self.sd_
        of_log = -0.5 * z**2 - np.log(self.sd_ * np.sqrt(2 * np.pi))
        return np.where(values > 0, of_log - np.log(np.maximum(values, 1e-300)), -np.inf)

    def base_measure(self):
        return "lebesgue"

    def _mean(self, given):
        return (self._design(given) * self.coef_).sum(axis=1)

    def _design(self, given):
        columns = [np.ones(given.n_rows)]
        for feature, x in zip(given.features, given.matrix.T):
            columns += [x] if feature.is_numeric else [(x == code).astype(float) for code in range(1, feature.n_levels)]
        return np.column_stack(columns)
