"""Broken samplers that each fail one check: missing values, restricted draws, densities, supports, state."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

import mcce
from mcce import CartSampler, MarginalSampler
from mcce.samplers import RestrictedDraw
from mcce.table import Column
from tests.testing.sound_samplers import Frequencies, LogNormal, Normal


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


class OtherLevel(Normal):
    """Draws given the other level of a binary column."""

    ignores_given = False

    def fit(self, given, target):
        by_level = [target.values[self._codes(given) == code] for code in (1.0, 0.0)]
        self.means_ = np.array([np.mean(each) if each.size else 0.0 for each in by_level])
        self.sds_ = np.array([np.std(each) if each.size else 1.0 for each in by_level])
        return super().fit(given, target)

    def sample(self, given, rng, within=None):
        self.check_fitted("mean_")
        if within is not None:
            return self.sample_within(given, rng, within).values
        code = self._codes(given).astype(int)
        return self.means_[code] + self.sds_[code] * rng.normal()

    def _codes(self, given):
        names = [feature.name for feature in given.features]
        return given.matrix[:, names.index("sex")] if "sex" in names else np.zeros(given.n_rows)


class WithoutJacobian(LogNormal):
    """Its density is that of the logarithm."""

    def log_density(self, given, values):
        return super().log_density(given, values) + np.log(np.maximum(values, 1e-300))


class DensityOfAnother(LogNormal):
    """Its density lies a standard deviation and a half below its draws."""

    def log_density(self, given, values):
        other = LogNormal()
        other.coef_, other.sd_ = np.append(self.coef_[0] - 1.5 * self.sd_, self.coef_[1:]), self.sd_
        return other.log_density(given, values)


class RoundsDown(Normal):
    """Integers half a unit too low, as with truncation on decoding."""

    def sample(self, given, rng, within=None):
        return np.floor(super().sample(given, rng, within))


class RoundsAcrossBounds(Normal):
    """Rounds integers drawn within bounds without checking the bounds again."""

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
        return RestrictedDraw(found.values, np.zeros(found.rejected.size, dtype=bool))


class NeverMissing(MarginalSampler):
    """Allows no missing value where one is allowed."""

    def sample_within(self, given, rng, within):
        return super().sample_within(given, rng, replace(within, missing=None))


class MissingTooOften(MarginalSampler):
    """Draws a missing value whenever allowed and possible."""

    def sample_within(self, given, rng, within):
        found = super().sample_within(given, rng, within)
        often = within.allows_missing(given.n_rows) & np.isnan(self.donors_).any()
        return RestrictedDraw(np.where(often, np.nan, found.values), found.rejected & ~often)


class HalfTheMass(MarginalSampler):
    def sample_within(self, given, rng, within):
        found = super().sample_within(given, rng, within)
        return replace(found, log_mass=found.log_mass - np.log(2.0))


class MassOfTheDead(MarginalSampler):
    def sample_within(self, given, rng, within):
        found = super().sample_within(given, rng, within)
        return replace(found, log_mass=np.maximum(found.log_mass, -20.0))


class SupportsItsRange(MarginalSampler):
    """Supports values between two distant clusters."""

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


class StateOfSets(MarginalSampler):
    def fit(self, given, target):
        self.seen_ = {1, 2}
        return super().fit(given, target)


class ForgetsState(MarginalSampler):
    def fit(self, given, target):
        self._first = True
        return super().fit(given, target)

    def sample(self, given, rng, within=None):
        drawn = super().sample(given, rng, within)
        return drawn if hasattr(self, "_first") else np.full_like(drawn, drawn[0])


class SharesScratch(MarginalSampler):
    def sample(self, given, rng, within=None):
        self._scratch = super().sample(given, rng, within)
        time.sleep(0.005)
        return self._scratch


class SmallLeaves(CartSampler):
    """Accepts the parameter, and ignores it when growing leaves."""

    def _grow(self, given, target):
        return CartSampler(min_leaf=5)._grow(given, target)

    def _check_pools(self, trees, feature):
        pass


class MirrorsRanks(MarginalSampler):
    def at_ranks(self, given, u):
        return super().at_ranks(given, 1.0 - u)


class MiddleOfLevels(MarginalSampler):
    """Its ranks are not randomised."""

    handles = frozenset({"categorical"})

    def ranks(self, given, values, rng):
        return self.distribution(given).ranks(values, np.full(values.size, 0.5))


class RemembersRanks(MarginalSampler):
    """Returns values at the requested ranks, and draws the lower half at others."""

    def ranks(self, given, values, rng):
        ranks = super().ranks(given, values, rng)
        self._by_rank = dict(zip(ranks.tolist(), values.tolist()))
        return ranks

    def at_ranks(self, given, u):
        lower = super().at_ranks(given, 0.5 * u)
        return np.array([self._by_rank.get(rank, value) for rank, value in zip(u.tolist(), lower)])


class NeverMissingAtRanks(MarginalSampler):
    """Has missing values only at the requested ranks."""

    def ranks(self, given, values, rng):
        ranks = super().ranks(given, values, rng)
        self._by_rank = dict(zip(ranks.tolist(), values.tolist()))
        return ranks

    def at_ranks(self, given, u):
        known = super().at_ranks(given, u * (1.0 - self.distribution(given).missing))
        return np.array([self._by_rank.get(rank, value) for rank, value in zip(u.tolist(), known)])


class IgnoresWeights(MarginalSampler):
    def fit(self, given, target):
        return super().fit(given, Column(target.feature, target.values))


BROKEN = [
    (
        IgnoresWeights(),
        "weights",
        "of the weight are .* of the draws, .* use target.weights in fit",
    ),  # the sampler, its check, and the message
    (ObservedIsNoBool(), "declarations", "draws_observed is 1; it must be True or False"),
    (MissingFromNowhere(), "missing", r"missing values in the givens: \d+ draws are NaN"),
    (ChokesOnMissing(), "missing", "raised ValueError: Input X contains NaN"),
    (LowerHalf(), "marginal", r"not distributed as the training values \(Kolmogorov-Smirnov p = "),
    (IgnoresGivenSilently(), "given", "draws are the same given both levels of a column .*declare ignores_given"),
    (OtherLevel(), "conditional", "given level 0 of a two-level column, draws are not distributed as the training"),
    (RoundsDown(), "rounded", r"of whole numbers: draws, rounded to the nearest, are not distributed as"),
    (RoundsAcrossBounds(), "within", r"whole numbers, within \d.3 and \d.3: \d+ of 2400 draws lie outside\.$"),
    (NewValuesDeclaredObserved(), "grid", r"\d+ of 2400 draws are not training values, contrary to draws_observed"),
    (LeavesInterval(), "within", r"within an interval: \d+ of 2400 draws lie outside"),
    (NeverNothing(), "within", r"within an interval: \d+ of 2400 draws lie outside"),
    (GivesUp(), "within", r"\d+ of 1800 rows are NaN, though values are possible"),
    (SmallestAllowed(), "within", "draws do not follow the conditional restricted to it"),
    (KeepsDeadRowsAlive(), "sample_within", r"300 of 1200 draws lie outside, and their rows are not rejected"),
    (NeverMissing(), "sample_within", r"or missing: 150 of 1200 rows are wrongly rejected or wrongly accepted"),
    (MissingTooOften(), "sample_within", "draws are missing at another rate than unrestricted ones"),
    (
        HalfTheMass(),
        "log_mass",
        r"an interval corresponds to a mean share of 0.25\d*, and 0.\d+ of the free",
    ),
    (MassOfTheDead(), "log_mass", r"an interval: 600 rejected rows have a finite value; it must be -inf"),
    (SupportsItsRange(), "supports", r"accepts \d+, far between two clusters of its draws"),
    (SupportsDonorsOnly(), "supports", r"rejects \d+ of \d+ numbers that are closer to a drawn value than the draws"),
    (KeepsTrainingRows(), "training_rows", "training rows are not less likely when left out; leave them out"),
    (SmallLeaves(), "min_donors", r"min_donors=30: row \d+ is drawn from \d+ training rows"),
    (UnknownMeasure(), "base_measure", r"base_measure\(\) is 'gaussian'; it must be one of 'counting', 'lebesgue'"),
    (LevelsByLebesgue(), "base_measure", r"base_measure\(\) is 'lebesgue'; levels need 'counting'"),
    (CountsNumbers(), "base_measure", "probabilities of the training values sum to"),
    (SmearsProbabilities(), "base_measure", "the density integrates to 0, not to 1"),
    (WithoutJacobian(), "base_measure", r"the density integrates to \d\d.*, not to 1"),
    (DensityOfAnother(), "base_measure", r"integrates to 0\.\d+ from .* to .*, where 96% of the draws lie"),
    (SupportsNothing(), "supports", r"supports\(\) rejects 600 of 600 drawn values"),
    (SupportsInFloats(), "supports", r"supports\(\) returns dtype float64; return bool"),
    (RefusesByTypeError(), "supports", "raised TypeError: no support here"),
    (ImproperProbabilities(), "log_density", "the levels' probabilities sum to 2, not to 1"),
    (InfiniteDensity(), "log_density", r"log_density\(\) is not finite for \d+ drawn values"),
    (MirrorsRanks(), "ranks", r"at_ranks\(\) at the ranks of \d+ of 600 draws returns other values, as"),
    (MiddleOfLevels(), "uniform_ranks", r"ranks\(\) of draws are not uniform \(Kolmogorov-Smirnov p = .*Randomise"),
    (RemembersRanks(), "at_ranks", r"at_ranks\(\) at uniform ranks is not distributed as the draws"),
    (NeverMissingAtRanks(), "at_ranks", r"at_ranks\(\) at uniform ranks is missing at another rate than draws"),
    (StateOfSets(), "state", r"StateOfSets.seen_ is a set; .* Keep arrays and plain values, or declare"),
    (ForgetsState(), "state", "a clone with the attributes of the fitted sampler .* draws other values"),
    (SharesScratch(), "threads", "drawn from 4 threads, values change"),
]
