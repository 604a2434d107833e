from __future__ import annotations

import random
import re
import time
from dataclasses import replace

import numpy as np
import pytest

import mcce
from mcce import CartSampler, ConditionalSampler, InputError, MarginalSampler
from mcce.rng import RowStreams
from mcce.samplers import RestrictedDraw
from mcce.testing import CHECKS, ConformanceError, check_sampler


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
            return self.sample_by_rejection(given, rng, within)
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


CONFORMING = [
    CartSampler(),
    CartSampler(min_split=40, min_leaf=20),
    CartSampler(min_leaf=1, max_depth=4),
    CartSampler(cp=0.01),
    MarginalSampler(),
    Normal(),
    TwoMethods(),
    Frequencies(),
]


@pytest.mark.parametrize("sampler", CONFORMING, ids=repr)
def test_conforming_samplers_pass(sampler):
    check_sampler(sampler)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_conforming_samplers_pass_at_other_seeds(seed):
    check_sampler(CartSampler(), seed=seed)
    check_sampler(MarginalSampler(), seed=seed)


def test_the_sampler_itself_stays_unfitted():
    sampler = CartSampler()
    check_sampler(sampler)
    assert not hasattr(sampler, "tree_")


def test_global_state_is_left_as_it_was():
    before = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
    check_sampler(MarginalSampler())
    assert (repr(np.random.get_state()), random.getstate()) == before  # noqa: NPY002


@pytest.mark.parametrize("sampler", [CartSampler, "cart", None])
def test_only_objects_are_checked(sampler):
    with pytest.raises(InputError, match="give an object of a subclass of ConditionalSampler"):
        check_sampler(sampler)


# ---- broken samplers, each of which fails one check


class UnknownKind(MarginalSampler):
    handles = frozenset({"numeric", "words"})


class NothingHandled(MarginalSampler):
    handles = frozenset()


class AcceptsAll(Normal):
    def check_target(self, feature):
        pass


class RefusesItsOwn(MarginalSampler):
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
        self.donors_.size  # noqa: B018
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
    def sample(self, given, rng, within=None):
        if within is not None:
            return super().sample(given, rng, within)
        self.check_fitted("donors_")
        return self.donors_[(rng.integer(self.donors_.size) + np.arange(given.n_rows)) % self.donors_.size]


class CountsRows(MarginalSampler):
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
    def fit(self, given, target):
        target.values.sort()
        return super().fit(given, target)


class OverwritesGiven(MarginalSampler):
    def sample(self, given, rng, within=None):
        given.matrix[:] = 0.0
        return super().sample(given, rng, within)


class MissingFromNowhere(MarginalSampler):
    def fit(self, given, target):
        super().fit(given, target)
        if np.isnan(given.matrix).any():
            self.donors_ = np.append(self.donors_, np.nan)
        return self


class ChokesOnMissing(MarginalSampler):
    def fit(self, given, target):
        if np.isnan(given.matrix).any():
            raise ValueError("Input X contains NaN.")
        return super().fit(given, target)


class LowerHalf(MarginalSampler):
    def fit(self, given, target):
        super().fit(given, target)
        self.donors_ = self.donors_[: self.donors_.size // 2] if len(given.features) > 1 else self.donors_
        return self


class IgnoresGivenSilently(MarginalSampler):
    ignores_given = False


class RoundsDown(Normal):
    """What truncation on decoding did to integers: half a unit too low."""

    def sample(self, given, rng, within=None):
        return np.floor(super().sample(given, rng, within))


class RoundsAcrossBounds(Normal):
    """Rounds whole numbers that were drawn inside bounds, without another look at these."""

    def fit(self, given, target):
        self.whole_ = bool((np.round(target.values) == target.values).all())
        return super().fit(given, target)

    def sample(self, given, rng, within=None):
        drawn = super().sample(given, rng, within)
        return drawn if within is None or not self.whole_ else np.round(drawn)


class NewValuesDeclaredObserved(Normal):
    draws_observed = True


class ObservedIsNoBool(MarginalSampler):
    draws_observed = 1


class LeavesInterval(MarginalSampler):
    handles = frozenset({"numeric"})

    def sample(self, given, rng, within=None):
        return super().sample(given, rng)


class NeverNothing(MarginalSampler):
    def sample(self, given, rng, within=None):
        drawn = super().sample(given, rng, within)
        return drawn if within is None else np.where(np.isnan(drawn), self.donors_[0], drawn)


class GivesUp(MarginalSampler):
    def sample(self, given, rng, within=None):
        drawn = super().sample(given, rng, within)
        return drawn if within is None else np.where(rng.uniform() < 0.01, np.nan, drawn)


class SmallestAllowed(MarginalSampler):
    handles = frozenset({"numeric"})

    def sample(self, given, rng, within=None):
        drawn = super().sample(given, rng, within)
        return drawn if within is None else np.where(np.isnan(drawn), drawn, np.nanmin(drawn))


class KeepsDeadRowsAlive(MarginalSampler):
    def sample_within(self, given, rng, within):
        found = super().sample_within(given, rng, within)
        return RestrictedDraw(found.values, np.zeros(found.dead.size, dtype=bool))


class NeverMissing(MarginalSampler):
    """Allows no missing value where one is allowed."""

    def sample_within(self, given, rng, within):
        return super().sample_within(given, rng, replace(within, missing=None))


class MissingTooOften(MarginalSampler):
    """Draws a missing value wherever one is allowed and possible."""

    def sample_within(self, given, rng, within):
        found = super().sample_within(given, rng, within)
        often = within.allows_missing(given.n_rows) & np.isnan(self.donors_).any()
        return RestrictedDraw(np.where(often, np.nan, found.values), found.dead & ~often)


class HalfTheMass(MarginalSampler):
    def sample_within(self, given, rng, within):
        found = super().sample_within(given, rng, within)
        return replace(found, log_mass=found.log_mass - np.log(2.0))


class MassOfTheDead(MarginalSampler):
    def sample_within(self, given, rng, within):
        found = super().sample_within(given, rng, within)
        return replace(found, log_mass=np.maximum(found.log_mass, -20.0))


class SupportsItsRange(MarginalSampler):
    """Supports what lies between two far-away clusters."""

    def supports(self, given, values):
        observed = super().supports(given, values)
        return observed | ((self.n_levels_ == 0) & (values >= self._known[0]) & (values <= self._known[-1]))


class SupportsDonorsOnly(MarginalSampler):
    def supports(self, given, values):
        return np.isin(values, self._known) | (np.isnan(values) & np.isnan(self.donors_).any())


class KeepsTrainingRows(MarginalSampler):
    def log_density(self, given, values, training_rows=None):
        return super().log_density(given, values)


class UnknownMeasure(MarginalSampler):
    def base_measure(self):
        return "gaussian"


class LevelsByLebesgue(MarginalSampler):
    def base_measure(self):
        return "lebesgue"


class CountsNumbers(MarginalSampler):
    def base_measure(self):
        return "counting"


class SmearsProbabilities(mcce.NormRankSampler):
    """Its density is of training values only."""

    def log_density_complete(self, given, values):
        return self._log_mass(given, values, values)

    def base_measure(self):
        return "lebesgue"


class SupportsNothing(MarginalSampler):
    def supports(self, given, values):
        return np.zeros(values.size, dtype=bool)


class SupportsInFloats(MarginalSampler):
    def supports(self, given, values):
        return np.ones(values.size)


class RefusesByTypeError(MarginalSampler):
    def supports(self, given, values):
        raise TypeError("no support here")


class ImproperProbabilities(Frequencies):
    def log_density(self, given, values):
        return super().log_density(given, values) + np.log(2.0)


class InfiniteDensity(Normal):
    def log_density(self, given, values):
        return np.where(values > self.mean_, -np.inf, 0.0)


class StateOfObjects(MarginalSampler):
    def get_state(self):
        return {"donors_": self.donors_.astype(object)}


class StateOfSets(MarginalSampler):
    def get_state(self):
        return {"donors_": self.donors_, "seen_": {1, 2}}


class ForgetsState(MarginalSampler):
    def get_state(self):
        return {"donors_": self.donors_[:5]}


class SharesScratch(MarginalSampler):
    def sample(self, given, rng, within=None):
        self._scratch = super().sample(given, rng, within)
        time.sleep(0.005)
        return self._scratch


class SmallLeaves(CartSampler):
    """Takes the parameter, and grows the leaves that it would have grown without."""

    def _grow(self, given, target):
        return CartSampler(min_leaf=5)._grow(given, target)

    def _check_pools(self, trees, feature):
        pass


BROKEN = [
    (
        UnknownKind(),
        "declarations",
        "handles names 'words'; the kinds are 'numeric', 'categorical', 'ordered'",
    ),
    (NothingHandled(), "declarations", "handles is empty; name at least one of 'numeric'"),
    (AcceptsAll(), "declarations", "check_target accepts categorical, which handles does not name"),
    (RefusesItsOwn(), "declarations", "check_target refuses ordered, which handles names"),
    (FlagIsNoBool(), "declarations", "thread_safe is 'yes'; it must be True or False"),
    (ObservedIsNoBool(), "declarations", "draws_observed is 1; it must be True or False"),
    (ChangesParameter(), "parameters", "the constructor changes its parameter 'weight'; store it untouched"),
    (WorksOnParameter(), "parameters", r"works on its parameter 'weight' \(TypeError: .*check it in fit"),
    (FitChangesParameter(), "parameters", r"fit\(\) changes the parameter 'weight' from None to 1.0"),
    (ReprLosesParameter(weight=2.0), "parameters", "which loses the value 2.0 of 'weight'"),
    (FitReturnsNothing(), "fit_returns_self", r"fit\(\) returns None; it must return self"),
    (DrawsUnfitted(), "not_fitted", r"sample\(\) works before fit\(\); it must raise NotFittedError"),
    (FailsUnfitted(), "not_fitted", r"raises AttributeError: .*; raise NotFittedError"),
    (KeepsFirstFit(), "refit", "fitted after another one, is drawn differently than by a fresh sampler"),
    (Float32(), "shape", r"sample\(\) returns dtype float32; return float64"),
    (
        InventsLevels(),
        "values",
        r"draws \[2.0\] are no levels of the training target \(the codes are 0 to 4\)",
    ),
    (HalfLevels(), "values", r"draws \[0.5\] are no levels of the training target \(the codes are 0 to 4\)"),
    (NegativeLevels(), "values", r"draws \[-1.0\] are no levels of the training target \(the codes are 0 to 4\)"),
    (DrawsInfinity(), "values", r"numeric target: \d+ draws are infinite"),
    (NeedsGivens(), "no_givens", "raised IndexError: index 0 is out of bounds"),
    (Squeezes(), "one_row", r"1 row\(s\) to draw: sample\(\) returns shape \(\) for 1 rows"),
    (IgnoresTheSeed(), "seeds", "another seed gave the same draws; take all randomness from `rng`"),
    (LooksBeside(), "rows_independent", "rows drawn in another order get other values"),
    (CountsRows(), "rows_independent", "rows drawn without the others get other values"),
    (MovesGlobalState(), "global_state", "a global random generator has moved"),
    (MovesPythonState(), "global_state", "a global random generator has moved"),
    (ReadsGlobalState(), "global_state", "draws depend on global random state"),
    (SortsTarget(), "inputs_unchanged", r"fit\(\) writes into target.values; copy it first"),
    (OverwritesGiven(), "inputs_unchanged", r"sample\(\) writes into given.matrix; copy it first"),
    (MissingFromNowhere(), "missing", r"missing values in the givens: \d+ draws are NaN"),
    (ChokesOnMissing(), "missing", "raised ValueError: Input X contains NaN"),
    (LowerHalf(), "marginal", r"not distributed as the training values \(Kolmogorov-Smirnov p = "),
    (IgnoresGivenSilently(), "conditional", "given level 0 of a two-level column, .*says so: ignores_given"),
    (RoundsDown(), "grid", r"of whole numbers: draws, rounded to the nearest, are not distributed as"),
    (RoundsAcrossBounds(), "within", r"whole numbers, within \d.3 and \d.3: \d+ of 2400 draws lie outside\.$"),
    (NewValuesDeclaredObserved(), "grid", r"\d+ of 2400 draws are no training values, which draws_observed declares"),
    (LeavesInterval(), "within", r"within an interval: \d+ of 2400 draws lie outside"),
    (NeverNothing(), "within", r"within an interval: \d+ of 2400 draws lie outside"),
    (GivesUp(), "within", r"\d+ of 1800 rows are NaN, though values are possible"),
    (SmallestAllowed(), "within", "draws do not follow the conditional restricted to it"),
    (KeepsDeadRowsAlive(), "sample_within", r"300 of 1200 draws lie outside, and their rows are not dead"),
    (NeverMissing(), "sample_within", r"or missing: 150 of 1200 rows are dead or alive against what can be drawn"),
    (MissingTooOften(), "sample_within", "draws are missing at another rate than unrestricted ones"),
    (HalfTheMass(), "log_mass", r"within\(\) an interval is on average that of 0.25\d*, and 0.\d+ of the unrestricted"),
    (MassOfTheDead(), "log_mass", r"an interval: 600 dead rows have some; it must be -inf"),
    (SupportsItsRange(), "supports", r"takes \d+, far between two clusters of all draws of its row"),
    (SupportsDonorsOnly(), "supports", r"denies \d+ of \d+ numbers that are closer to a drawn value than the draws"),
    (KeepsTrainingRows(), "training_rows", "training rows are as likely if they are left out; leave them out"),
    (SmallLeaves(), "min_donors", r"min_donors=30: row \d+ is drawn from \d+ training rows"),
    (UnknownMeasure(), "base_measure", r"base_measure\(\) is 'gaussian'; it must be one of 'counting', 'lebesgue'"),
    (LevelsByLebesgue(), "base_measure", r"base_measure\(\) is 'lebesgue'; levels are counted"),
    (CountsNumbers(), "base_measure", "probabilities of the training values sum to"),
    (SmearsProbabilities(), "base_measure", "the density integrates to 0, not to 1"),
    (SupportsNothing(), "supports", r"supports\(\) denies 600 of 600 drawn values"),
    (SupportsInFloats(), "supports", r"supports\(\) returns dtype float64; return bool"),
    (RefusesByTypeError(), "supports", "raised TypeError: no support here"),
    (ImproperProbabilities(), "log_density", "the levels' probabilities sum to 2, not to 1"),
    (InfiniteDensity(), "log_density", r"log_density\(\) is not finite for \d+ drawn values"),
    (StateOfObjects(), "state", r"get_state\(\)\['donors_'\] is an array of objects"),
    (StateOfSets(), "state", r"get_state\(\)\['seen_'\] is neither an array nor a JSON value"),
    (ForgetsState(), "state", "a clone with the state of the fitted sampler draws other values"),
    (SharesScratch(), "threads", "drawn from 4 threads, values change"),
]


@pytest.mark.parametrize(
    ("sampler", "name", "message"), BROKEN, ids=[f"{type(s).__name__}-{name}" for s, name, _ in BROKEN]
)
def test_a_broken_sampler_fails_its_check_alone(sampler, name, message):
    failures = {}
    for check in CHECKS:
        try:
            check(sampler)
        except ConformanceError as failure:
            failures[check.__name__] = str(failure)
    assert list(failures) == [f"check_{name}"]
    assert re.match(f"check_{name}, {type(sampler).__name__}: .*{message}", failures[f"check_{name}"])


def test_check_sampler_raises_the_first_failure():
    with pytest.raises(ConformanceError, match=r"^check_marginal, LowerHalf: numeric target: draws are not"):
        check_sampler(LowerHalf())


def test_every_check_has_a_broken_sampler():
    assert {check.__name__ for check in CHECKS} == {f"check_{name}" for _, name, _ in BROKEN}
