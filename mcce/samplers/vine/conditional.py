"""A column with an order, given others, by its margin and the distribution function H of its share.

1. A draw inverts H(u | givens) on the shares of the training values: the value v with H(F(v-)) <= w < H(F(v)), w
   uniform, found by halving. A restricted draw has w between H at the ends of what is allowed: exact.
2. The probability of a level, or of a number with point mass, is the difference of H over what it covers; the density
   of another number that of the margin (`mcce.samplers.copula.places`) times the slope of H. A thousandth of both is
   the margin's alone, so that a grid of a pair copula that says 0 leaves nothing impossible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from mcce.arrays import Bools, Floats
from mcce.rng import RowStreams
from mcce.samplers.base import BaseMeasure
from mcce.samplers.copula.margins import Margin
from mcce.samplers.copula.places import place_numbers
from mcce.samplers.support import IMPOSSIBLE, supported_by
from mcce.samplers.vine.columns import cover
from mcce.samplers.within import RestrictedDraw, Within, log_of

OF_THE_MARGIN = 1e-3
_STEP = 1e-4  # of the share, over which the slope of H is taken


@dataclass(frozen=True)
class VineConditional:
    """The distributions of one column in some rows.

    Attributes
    ----------
    margin : of the column.
    is_number : whether it holds numbers; else ordered levels.
    below : H, of one share for each row.
    """

    margin: Margin
    is_number: bool
    below: Callable[[Floats], Floats]

    def draw_within(self, rng: RowStreams, within: Within, n: int) -> RestrictedDraw:
        """Draw one allowed value for each of `n` rows (step 1)."""
        margin = self.margin
        if not self.is_number and within.levels is not None:
            return self._draw_levels(rng, within, n)
        low, high = within.bounds(n)
        first = np.searchsorted(margin.values, low)
        last = np.searchsorted(margin.values, high, side="right") - 1
        possible = first <= last
        first, last = np.where(possible, first, 0), np.where(possible, last, 0)
        begin, end = self.below(margin.shares[first]), self.below(margin.shares[last + 1])
        mass = np.where(possible, end - begin, 0.0)
        wanted = begin + rng.uniform() * (end - begin)
        while (first < last).any():
            middle = (first + last) // 2
            beyond = self.below(margin.shares[middle + 1]) > wanted
            first, last = np.where(beyond, first, middle + 1), np.where(beyond, middle, last)
            first = np.minimum(first, last)
        return RestrictedDraw.of(margin.values[first], ~(mass > 0.0), log_of(mass))

    def _draw_levels(self, rng: RowStreams, within: Within, n: int) -> RestrictedDraw:
        """Draw one of the allowed ordered levels, whichever these are."""
        shares, codes = self.margin.shares, self.margin.values.astype(np.intp)
        below = np.column_stack([self.below(np.full(n, share)) for share in shares])
        weights = np.maximum(np.diff(below, axis=1), 0.0) * within.level_mask(n, int(codes.max()) + 1)[:, codes]
        total = weights.sum(axis=1)
        dead = ~(total > 0.0)
        chosen = rng.categorical(np.where(dead[:, None], 1.0, weights))
        return RestrictedDraw.of(self.margin.values[chosen], dead, log_of(total))

    def supports(self, values: Floats) -> Bools:
        """Return whether each value was observed, or is a number as close to such as they are, and is possible."""
        margin = self.margin
        drawable, weights = margin.training_values
        near = supported_by(drawable, values, is_number=self.is_number, weights=weights)
        below, upto = cover(margin, np.where(near, values, margin.values[0]))
        tails = np.minimum(self.below(upto), 1.0 - self.below(below))
        return np.asarray(near & ((tails > IMPOSSIBLE) | (margin.n_latents == 0)))

    def log_density(self, values: Floats, kernel: tuple[Floats, Floats]) -> Floats:
        """Return the log probability of levels and numbers with point mass, the log density of others (step 2).

        `kernel` is the smooth part of the margin (`mcce.samplers.copula.margins.kernel_margin`).
        """
        margin = self.margin
        at = margin.position(values)
        if margin.n_latents == 0 or not self.is_number:
            low, high = margin.shares[np.maximum(at, 0)], margin.shares[np.maximum(at, 0) + 1]
            return np.where(at >= 0, log_of(self._mass(low, high)), -np.inf)
        places = place_numbers(margin, kernel, values)
        low, high = scipy.special.ndtr(places.low), scipy.special.ndtr(places.high)
        low = np.where(places.is_atom, low, np.maximum(low - _STEP, 0.0))
        high = np.where(places.is_atom, high, np.minimum(high + _STEP, 1.0))
        mass = self._mass(low, high)
        density = np.where(places.is_atom, mass, places.slope * mass / (high - low))
        return np.where(places.possible, log_of(density), -np.inf)

    def _mass(self, low: Floats, high: Floats) -> Floats:
        """Return the probability of a share between bounds, with the margin's part."""
        mass = np.maximum(self.below(high) - self.below(low), 0.0)
        return np.asarray((1.0 - OF_THE_MARGIN) * mass + OF_THE_MARGIN * (high - low))


def measure_of(margin: Margin, *, is_number: bool) -> BaseMeasure:
    """Return what densities of a column are with respect to."""
    if not is_number or margin.atoms.all():
        return "counting"
    return "mixed" if margin.atoms.any() else "lebesgue"
