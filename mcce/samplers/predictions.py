"""Draws and scores from predictions: the probabilities of levels, or the quantiles of a number.

1. A row has sorted predictions at the levels q_1 < ... < q_m. Its spread is the distance of the outer two, at least a
   tenth of the mean spread. The quantile function is linear between predictions.
2. Beyond the outer ones a draw is the outer prediction plus an exceedance of a training value over its held-out
   prediction, in spreads (in units of the target if all spreads are zero). Training values equal to their outer
   prediction are exceedances of zero, up to the share of the tail.
3. Predictions and draws are clipped to the range of the training values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.rng import RowStreams
from mcce.samplers.base import IMPOSSIBLE, distance_to, local_spacing
from mcce.samplers.restricted import RestrictedDraw, Within, log_of
from mcce.storage.fields import FLOAT, check_number, require, stored
from mcce.storage.state import stateful
from mcce.table.weights import equal_chances, mean_of


def draw_levels(probabilities: Floats, rng: RowStreams, within: Within | None) -> Floats:
    """Draw an allowed level for each row; NaN if there is none."""
    if within is None:
        return rng.categorical(probabilities).astype(np.float64)
    weights = np.where(within.level_mask(*probabilities.shape), probabilities, 0.0)
    return RestrictedDraw.by_weight(np.arange(float(weights.shape[1])), weights, rng).values


def log_mass_of_levels(probabilities: Floats, within: Within) -> Floats:
    allowed = np.where(within.level_mask(*probabilities.shape), probabilities, 0.0)
    return log_of(allowed.sum(axis=1) / probabilities.sum(axis=1))


def log_probability(probabilities: Floats, values: Floats) -> Floats:
    """Return the log probability of each row's level; -inf for a missing value."""
    is_missing = np.isnan(values)
    codes = np.where(is_missing, 0.0, values).astype(np.intp)
    return np.where(is_missing, -np.inf, log_of(probabilities[np.arange(values.size), codes]))


def supported_levels(probabilities: Floats, values: Floats) -> Bools:
    """Return whether the probability of each row's level is above `IMPOSSIBLE`; False for a missing value."""
    known = np.where(np.isnan(values), 0, values).astype(np.intp)
    return np.asarray((probabilities[np.arange(values.size), known] > IMPOSSIBLE) & ~np.isnan(values))


ROUNDING = 1e-9  # relative tolerance for equal predictions and sums
_LEAST_SPREAD = 0.1  # relative to the mean spread


@stateful("quantiles.Tails")
@dataclass(frozen=True)
class Tails:
    """Sorted exceedances in spreads, negative in `below`, positive in `above`, and the observed range."""

    below: Floats = stored(FLOAT, None, rising="weakly")
    above: Floats = stored(FLOAT, None, rising="weakly")
    least_spread: float = stored(float, least=5e-324)
    lowest: float = stored(float)
    highest: float = stored(float)

    @classmethod
    def read(cls, outer: Floats, values: Floats, share: float, weights: Floats | None = None) -> Tails:
        """Learn the tails from the outer predictions and the value of each training row.

        With weights, exceedances are repeated by weight (`mcce.table.weights.equal_chances`).
        """
        outer = np.sort(outer, axis=1)
        mean_spread = float(mean_of(outer[:, 1] - outer[:, 0], weights))
        least = _LEAST_SPREAD * mean_spread or 1.0
        spread = np.maximum(outer[:, 1] - outer[:, 0], least)
        tie = ROUNDING * float(np.abs(values).max())
        room = share * (values.size if weights is None else float(weights.sum()))
        below = _exceedances(outer[:, 0] - values, spread, tie, room, weights)
        above = _exceedances(values - outer[:, 1], spread, tie, room, weights)
        return cls(-below[::-1], above, least, float(values.min()), float(values.max()))

    def check_state(self) -> None:
        """Raise if a tail is empty, or the range is not ascending."""
        for name in ("below", "above"):
            require(getattr(self, name).size > 0, f"{name} has no exceedance")
        check_number(self.highest, "highest", self.lowest)


def _exceedances(beyond: Floats, spread: Floats, tie: float, room: float, weights: Floats | None) -> Floats:
    """Return the sorted exceedances of one tail; a single zero if there are none."""
    outside, tied = beyond > tie, np.abs(beyond) <= tie
    found = equal_chances(beyond[outside] / spread[outside], None if weights is None else weights[outside])
    if weights is None:
        n_tied = min(int(tied.sum()), max(int(room) - found.size, 0))
    else:
        inside = float(weights[outside].sum())
        shared = min(float(weights[tied].sum()), max(room - inside, 0.0))
        n_tied = round(shared * (found.size / inside if inside else 1.0))
    return np.concatenate([np.zeros(max(n_tied, int(found.size == 0))), found])


@dataclass(frozen=True)
class PredictedQuantiles:
    """The distributions of some rows; `knots` has one column per level."""

    levels: Floats
    knots: Floats
    spread: Floats
    tails: Tails

    @classmethod
    def arrange(cls, predicted: Floats, levels: Floats, tails: Tails) -> PredictedQuantiles:
        """Sort and clip the predictions."""
        predicted = np.clip(predicted, tails.lowest, tails.highest)
        outer = np.sort(predicted[:, [0, -1]], axis=1)
        knots = np.clip(np.sort(predicted, axis=1), outer[:, :1], outer[:, 1:])
        return cls(levels, knots, np.maximum(outer[:, 1] - outer[:, 0], tails.least_spread), tails)

    def draw(self, uniform: Floats, low: Floats, high: Floats) -> Floats:
        """Invert the distribution functions restricted to [low, high]; NaN if [low, high] has no mass."""
        lowest, highest = self.tails.lowest, self.tails.highest
        first, last, possible = self._between(low, high)
        low, high = np.maximum(low, lowest), np.minimum(high, highest)
        drawn = self._invert(np.where(possible, first + uniform * (last - first), 0.5))
        return np.where(possible, np.clip(drawn, low, high), np.nan)  # the inversion rounds

    def mass(self, low: Floats, high: Floats) -> Floats:
        first, last, possible = self._between(low, high)
        return np.where(possible, last - first, 0.0)

    def _between(self, low: Floats, high: Floats) -> tuple[Floats, Floats, Bools]:
        """Return the probabilities below and up to the end of [low, high], and whether it has positive mass."""
        lowest, highest = self.tails.lowest, self.tails.highest
        # draws beyond the range are clipped to its ends
        first = self._mass_before(np.where(low <= lowest, -np.inf, low))
        last = self._mass_upto(np.where(high >= highest, np.inf, high))
        return first, last, (last > first) & (low <= np.minimum(high, highest)) & (high >= lowest)

    def supports(self, values: Floats) -> Bools:
        """Return whether each row can draw its value, or one within the local spacing of the exceedances."""
        tails, slack = self.tails, self._slack()
        below, above = values - self.knots[:, 0], values - self.knots[:, -1]
        found = (below >= -slack) & (above <= slack)
        for beyond, exceedances in ((below, tails.below), (above, tails.above)):
            reached = np.sort(np.append(exceedances, 0.0))  # the start of the tail
            place, rounding = beyond / self.spread, slack / self.spread
            inside = (place >= reached[0] - rounding) & (place <= reached[-1] + rounding)
            found |= inside & (distance_to(reached, place) <= local_spacing(exceedances) + rounding)
        least = self.knots[:, 0] + self.spread * tails.below[0]
        greatest = self.knots[:, -1] + self.spread * tails.above[-1]
        # draws beyond the range are clipped to its ends
        from_lowest, from_highest = values - tails.lowest, tails.highest - values
        found |= (least <= tails.lowest + slack) & (from_lowest <= local_spacing(tails.below) * self.spread)
        found |= (greatest >= tails.highest - slack) & (from_highest <= local_spacing(tails.above) * self.spread)
        return np.asarray(found & (from_lowest >= 0.0) & (from_highest >= 0.0))

    def _invert(self, level: Floats) -> Floats:
        """Return the value at each row's level."""
        m, below, above = self.levels.size, self.tails.below, self.tails.above
        lowest, highest = self.levels[0], self.levels[-1]
        rows = np.arange(level.size)
        place = np.clip(np.searchsorted(self.levels, level), 1, max(m - 1, 1))
        left, right = self.knots[rows, place - 1], self.knots[rows, np.minimum(place, m - 1)]
        width = self.levels[np.minimum(place, m - 1)] - self.levels[place - 1]
        part = np.divide(level - self.levels[place - 1], width, out=np.zeros(level.size), where=width > 0)
        inner = left + np.clip(part, 0.0, 1.0) * (right - left)
        which = np.clip((level / lowest * below.size).astype(np.intp), 0, below.size - 1)
        lower = self.knots[:, 0] + self.spread * below[which]
        which = np.clip(((level - highest) / (1.0 - highest) * above.size).astype(np.intp), 0, above.size - 1)
        upper = self.knots[:, -1] + self.spread * above[which]
        return np.where(level < lowest, lower, np.where(level >= highest, upper, inner))

    def _mass_before(self, bound: Floats) -> Floats:
        """Return the probability strictly below each row's bound."""
        tails = self._tail_mass(bound - self._slack(), "left")
        return tails + self._inner_mass(bound, (self.knots < bound[:, None]).sum(axis=1))

    def _mass_upto(self, bound: Floats) -> Floats:
        """Return the probability up to and including each row's bound."""
        tails = self._tail_mass(bound + self._slack(), "right")
        return tails + self._inner_mass(bound, (self.knots <= bound[:, None]).sum(axis=1))

    def _tail_mass(self, bound: Floats, side: Literal["left", "right"]) -> Floats:
        below, above = self.tails.below, self.tails.above
        n_below = np.searchsorted(below, (bound - self.knots[:, 0]) / self.spread, side=side)
        n_above = np.searchsorted(above, (bound - self.knots[:, -1]) / self.spread, side=side)
        return np.asarray(self.levels[0] * n_below / below.size + (1.0 - self.levels[-1]) * n_above / above.size)

    def _inner_mass(self, bound: Floats, n_passed: Ints) -> Floats:
        """Return the probability between the outer knots up to a bound; `n_passed` knots are below it."""
        rows = np.arange(bound.size)
        last = self.levels.size - 1
        before, after = np.clip(n_passed - 1, 0, last), np.clip(n_passed, 0, last)
        gap = self.knots[rows, after] - self.knots[rows, before]
        part = np.divide(bound - self.knots[rows, before], gap, out=np.zeros(bound.size), where=gap > 0)
        step = np.where((n_passed > 0) & (n_passed <= last), self.levels[after] - self.levels[before], 0.0)
        return np.asarray(self.levels[before] - self.levels[0] + np.clip(part, 0.0, 1.0) * step)

    def _slack(self) -> Floats:
        # prediction + exceedance may round across a bound that is itself a draw
        return np.asarray(ROUNDING * (np.abs(self.knots[:, 0]) + np.abs(self.knots[:, -1]) + self.spread))
