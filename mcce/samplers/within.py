"""What a draw is restricted to, and what a restricted draw gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.arrays import Bools, Floats


@dataclass(frozen=True)
class Within:
    """What each row's draw is restricted to: an interval for numbers, a set of levels for categories.

    Attributes
    ----------
    low, high : array or None
        Closed bounds of each row, in encoded units (a level's code for an ordered target).
    levels : (rows, levels) boolean array or None
        Levels allowed in each row.
    missing : boolean array or None
        Whether each row's draw may be missing; None: no row's may.
    weighted : bool
        Whether the draw is to say how probable what is allowed is (`RestrictedDraw.log_mass`), which takes time.

    A row with infinite bounds, all levels and missing values allowed is free: the chain draws it as if there were no
    restriction at all.

    Examples
    --------
    >>> import numpy as np
    >>> within = Within(low=np.array([2.0, 2.0]), missing=np.array([False, True]))
    >>> within.allows(np.array([1.0, np.nan])).tolist()
    [False, True]
    """

    low: Floats | None = None
    high: Floats | None = None
    levels: Bools | None = None
    missing: Bools | None = None
    weighted: bool = False

    def allows(self, values: Floats) -> Bools:
        """Return whether each row's value is allowed."""
        is_missing = np.isnan(values)
        allowed = ~is_missing
        if self.low is not None:
            allowed &= values >= self.low
        if self.high is not None:
            allowed &= values <= self.high
        if self.levels is not None:
            codes = np.where(allowed, values, 0.0).astype(np.intp)
            allowed &= self.levels[np.arange(values.size), codes]
        return allowed if self.missing is None else allowed | (is_missing & self.missing)

    def restricts(self, n_rows: int, reach: tuple[float, float] = (-np.inf, np.inf), *, may_miss: bool = True) -> Bools:
        """Return which rows are restricted at all: something that can be drawn is not allowed there.

        Parameters
        ----------
        reach : two numbers that all draws lie between.
        may_miss : whether a draw can be missing.
        """
        low, high = self.bounds(n_rows)
        restricted: Bools = ~((low <= reach[0]) & (high >= reach[1]))
        if self.levels is not None:
            restricted |= ~self.levels.all(axis=1)
        return restricted | ~self.allows_missing(n_rows) if may_miss else restricted

    def __and__(self, other: Within) -> Within:
        """Return what both allow."""

        def both(function: Any, one: Any, two: Any) -> Any:
            return two if one is None else one if two is None else function(one, two)

        missing = None if self.missing is None or other.missing is None else self.missing & other.missing
        return Within(
            both(np.maximum, self.low, other.low),
            both(np.minimum, self.high, other.high),
            both(np.logical_and, self.levels, other.levels),
            missing,
            self.weighted or other.weighted,
        )

    def take(self, rows: Any) -> Within:
        """Return the restriction of some rows: an index array, a boolean mask or a slice."""
        return self.each(lambda part: part[rows])

    def each(self, function: Callable[[Any], Any]) -> Within:
        """Return the restriction with a function of each of its arrays."""
        low, high, levels, missing = (
            None if part is None else function(part) for part in (self.low, self.high, self.levels, self.missing)
        )
        return Within(low, high, levels, missing, self.weighted)

    def bounds(self, n_rows: int) -> tuple[Floats, Floats]:
        """Return the bounds of each row, infinite where there are none."""
        return (
            np.full(n_rows, -np.inf) if self.low is None else np.ascontiguousarray(self.low, dtype=np.float64),
            np.full(n_rows, np.inf) if self.high is None else np.ascontiguousarray(self.high, dtype=np.float64),
        )

    def level_mask(self, n_rows: int, n_levels: int) -> Bools:
        """Return which levels each row allows, by its bounds and its set of levels: (rows, levels)."""
        low, high = self.bounds(n_rows)
        codes = np.arange(n_levels)
        allowed = (codes >= low[:, None]) & (codes <= high[:, None])
        return allowed if self.levels is None else allowed & self.levels[:, :n_levels]

    def allows_missing(self, n_rows: int) -> Bools:
        """Return whether each row's draw may be missing."""
        return np.zeros(n_rows, dtype=bool) if self.missing is None else np.asarray(self.missing, dtype=bool)


@dataclass(frozen=True)
class RestrictedDraw:
    """Draws from restricted conditionals.

    Attributes
    ----------
    values : array
        One draw for each row. NaN is a missing value where the restriction allows one, and stands in every dead row.
    dead : boolean array
        Rows of which nothing that is allowed can be drawn.
    log_mass : array or None
        Log of the probability that the unrestricted draw of each row is allowed, or of an unbiased estimate of it;
        -inf in dead rows. It is the weight that a truncated draw has to carry. May be None if it is not
        asked for (`Within.weighted`), or if the sampler cannot say: the chain then estimates it by unrestricted draws.
    """

    values: Floats
    dead: Bools
    log_mass: Floats | None = None

    @classmethod
    def of(cls, values: Floats, dead: Bools, log_mass: Floats | None = None) -> RestrictedDraw:
        """Return the draws, NaN in the dead rows whatever stands there, and without mass."""
        mass = None if log_mass is None else np.where(dead, -np.inf, log_mass)
        return cls(np.where(dead, np.nan, values), dead, mass)

    def take(self, rows: Any) -> RestrictedDraw:
        """Return the draws of some rows: an index array, a boolean mask or a slice."""
        mass = None if self.log_mass is None else self.log_mass[rows]
        return RestrictedDraw(self.values[rows], self.dead[rows], mass)

    def or_missing(self, value_weight: Floats, missing_weight: Floats, uniform: Floats) -> RestrictedDraw:
        """Return draws that are missing instead, in proportion to two weights.

        Parameters
        ----------
        value_weight, missing_weight : array
            Probabilities that the unrestricted draw is one of the allowed values, and that it is missing and may be.
        uniform : array
            A uniform number for each row.
        """
        value_weight = np.where(self.dead, 0.0, value_weight)
        total = value_weight + missing_weight
        is_missing = uniform * total < missing_weight
        log_mass = None
        if self.log_mass is not None:
            # a value is now drawn by value_weight / total as often as before
            gain = np.log(total, out=np.zeros(total.size), where=total > 0.0)
            rarer = gain - np.log(value_weight, out=gain.copy(), where=value_weight > 0.0)
            log_mass = np.where(is_missing, gain, self.log_mass + rarer)
        return RestrictedDraw(np.where(is_missing, np.nan, self.values), self.dead & ~is_missing, log_mass)


def log_of(probability: Floats) -> Floats:
    """Return logarithms, -inf of 0."""
    return np.asarray(np.log(probability, out=np.full(probability.shape, -np.inf), where=probability > 0.0))
