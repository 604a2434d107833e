"""Broken samplers that each fail one check: declarations, parameters, fits, shapes, global state."""

from __future__ import annotations

import random
import threading

import numpy as np

from mcce import ConditionalSampler, MarginalSampler
from mcce.rng import RowStreams
from tests.testing.sound_samplers import Normal


class UnknownKind(MarginalSampler):
    handles = frozenset({"numeric", "words"})


class NothingHandled(MarginalSampler):
    handles = frozenset()


class AcceptsAll(Normal):
    def check_target(self, feature):
        pass


class RefusesItsOwn(MarginalSampler):
    takes_weights = False

    def check_target(self, feature):
        if feature.kind == "ordered":
            super().check_target(feature)
            type(Normal()).check_target(Normal(), feature)

    def fit(self, given, target):
        self.donors_ = np.sort(target.values)
        self.n_levels_ = target.feature.n_levels
        return self


class FlagIsNoBool(MarginalSampler):
    thread_safe = "yes"


class ChangesParameter(MarginalSampler):
    def __init__(self, *, weight=1.0):
        self.weight = weight if isinstance(weight, float) else 1.0


class WorksOnParameter(MarginalSampler):
    def __init__(self, *, weight=1.0):
        self.weight = float(weight)


class FitChangesParameter(MarginalSampler):
    def __init__(self, *, weight=None):
        self.weight = weight

    def fit(self, given, target):
        self.weight = 1.0
        return super().fit(given, target)


class ReprLosesParameter(MarginalSampler):
    def __init__(self, *, weight=1.0):
        self.weight = weight

    def __repr__(self):
        return "ReprLosesParameter()"


class FitReturnsNothing(MarginalSampler):
    def fit(self, given, target):
        super().fit(given, target)


class DrawsUnfitted(MarginalSampler):
    def sample(self, given, rng, within=None):
        return super().sample(given, rng, within) if hasattr(self, "donors_") else np.zeros(given.n_rows)


class FailsUnfitted(MarginalSampler):
    def sample(self, given, rng, within=None):
        self.table_.size  # noqa: B018
        return super().sample(given, rng, within)


class KeepsFirstFit(MarginalSampler):
    def fit(self, given, target):
        return self if hasattr(self, "donors_") else super().fit(given, target)


class Float32(MarginalSampler):
    handles = frozenset({"categorical"})

    def sample(self, given, rng, within=None):
        drawn = super().sample(given, rng, within)
        return drawn.astype(np.float32) if within is None and drawn.size > 1 and given.features else drawn


class InventsLevels(MarginalSampler):
    """Draws a level that no training row has."""

    handles = frozenset({"categorical", "ordered"})
    invented = None

    def fit(self, given, target):
        super().fit(given, target)
        missing = np.setdiff1d(np.arange(target.feature.n_levels), target.values)
        self.donors_ = np.append(self.donors_, missing if self.invented is None else missing * 0 + self.invented)
        return self


class HalfLevels(InventsLevels):
    """Draws a code between two levels."""

    invented = 0.5


class NegativeLevels(InventsLevels):
    """Draws -1, which an index would read as the last level."""

    invented = -1.0


class DrawsInfinity(Normal):
    def sample(self, given, rng, within=None):
        drawn = super().sample(given, rng, within)
        return np.where(rng.uniform() < 0.005, np.inf, drawn) if len(given.features) > 1 else drawn

    def log_density(self, given, values):
        return ConditionalSampler.log_density(self, given, values)


class NeedsGivens(MarginalSampler):
    def fit(self, given, target):
        given.matrix[:, 0].mean()
        return super().fit(given, target)


class Squeezes(MarginalSampler):
    def sample(self, given, rng, within=None):
        return super().sample(given, rng, within).squeeze()


class IgnoresTheSeed(MarginalSampler):
    def sample(self, given, rng, within=None):
        return super().sample(given, RowStreams(1, rng.rows, rng.draws), within)


class LooksBeside(MarginalSampler):
    takes_weights = False

    def sample(self, given, rng, within=None):
        if within is not None:
            return super().sample(given, rng, within)
        self.check_fitted("donors_")
        return self.donors_[(rng.integer(self.donors_.size) + np.arange(given.n_rows)) % self.donors_.size]


class CountsRows(MarginalSampler):
    takes_weights = False

    def sample(self, given, rng, within=None):
        if within is not None:
            return super().sample(given, rng, within)
        self.check_fitted("donors_")
        return self.donors_[(rng.integer(self.donors_.size) + given.n_rows) % self.donors_.size]


class MovesGlobalState(MarginalSampler):
    def fit(self, given, target):
        np.random.random()  # noqa: NPY002
        return super().fit(given, target)


class MovesPythonState(MarginalSampler):
    def sample(self, given, rng, within=None):
        random.random()
        return super().sample(given, rng, within)


class ReadsGlobalState(MarginalSampler):
    def sample(self, given, rng, within=None):
        return super().sample(given, rng.child(int(np.random.get_state()[1][0])), within)  # noqa: NPY002


class SortsTarget(MarginalSampler):
    takes_weights = False
    one_at_a_time = threading.Lock()  # otherwise it would sometimes fail another check as well

    def fit(self, given, target):
        with self.one_at_a_time:
            target.values.sort()
            return super().fit(given, target)


class OverwritesGiven(MarginalSampler):
    def sample(self, given, rng, within=None):
        given.matrix[:] = 0.0
        return super().sample(given, rng, within)


BROKEN = [  # the sampler, its check, and the message
    (
        UnknownKind(),
        "declarations",
        "handles names 'words'; the kinds are 'numeric', 'categorical', 'ordered'",
    ),
    (NothingHandled(), "declarations", "handles is empty; name at least one of 'numeric'"),
    (AcceptsAll(), "declarations", "check_target accepts categorical, which handles does not name"),
    (RefusesItsOwn(), "declarations", "check_target rejects ordered, which handles names"),
    (FlagIsNoBool(), "declarations", "thread_safe is 'yes'; it must be True or False"),
    (ChangesParameter(), "parameters", "the constructor changes its parameter 'weight'; store it untouched"),
    (WorksOnParameter(), "parameters", r"works on its parameter 'weight' \(TypeError: .*check it in fit"),
    (FitChangesParameter(), "parameters", r"fit\(\) changes the parameter 'weight' from None to 1.0"),
    (ReprLosesParameter(weight=2.0), "parameters", "which loses the value 2.0 of 'weight'"),
    (FitReturnsNothing(), "fit_returns_self", r"fit\(\) returns None; it must return self"),
    (DrawsUnfitted(), "not_fitted", r"sample\(\) works before fit\(\); it must raise NotFittedError"),
    (FailsUnfitted(), "not_fitted", r"raises AttributeError: .*; raise NotFittedError"),
    (KeepsFirstFit(), "refit", "fitted after another one, is not drawn as by a fresh sampler"),
    (Float32(), "shape", r"sample\(\) returns dtype float32; return float64"),
    (
        InventsLevels(),
        "values",
        r"draws \[2.0\] are not levels of the training target \(the codes are 0 to 4\)",
    ),
    (HalfLevels(), "values", r"draws \[0.5\] are not levels of the training target \(the codes are 0 to 4\)"),
    (NegativeLevels(), "values", r"draws \[-1.0\] are not levels of the training target \(the codes are 0 to 4\)"),
    (DrawsInfinity(), "values", r"numeric target: \d+ draws are infinite"),
    (NeedsGivens(), "no_givens", "raised IndexError: index 0 is out of bounds"),
    (Squeezes(), "one_row", r"1 row\(s\) to draw: sample\(\) returns shape \(\) for 1 rows"),
    (IgnoresTheSeed(), "seeds", "another seed gave the same draws; draw from `rng` only"),
    (LooksBeside(), "rows_independent", "rows drawn in another order get other values"),
    (CountsRows(), "rows_independent", "rows drawn without the others get other values"),
    (MovesGlobalState(), "global_state", "the state of a global random generator changed"),
    (MovesPythonState(), "global_state", "the state of a global random generator changed"),
    (ReadsGlobalState(), "global_state", "draws depend on global random state"),
    (SortsTarget(), "inputs_unchanged", r"fit\(\) writes into target.values; copy it first"),
    (OverwritesGiven(), "inputs_unchanged", r"sample\(\) writes into given.matrix; copy it first"),
]
