"""Restricted draws: the values allowed in each row, rejection sampling, and the probability of allowed values.

`draw_until_allowed` redraws a row until a draw is allowed. To estimate the probability p of the allowed values it
continues to the second allowed draw, number n: 1 / (n - 1) has mean p (Girshick, Mosteller and Savage 1946, "Unbiased
estimates for certain binomial sampling problems"). After `most` draws, a row with one allowed draw has the estimate 1 /
most, and a row without any is rejected with the estimate 0; the mean is still p. Estimate and value are independent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.rng import RowStreams
from mcce.table import Feature
from mcce.table.grid import common_multiples, is_multiple, put_on_multiples


@dataclass(frozen=True)
class Within:
    """Restrictions of each row's draw: an interval for numbers, a set of levels for categories.

    Attributes
    ----------
    low, high : array or None
        Closed bounds of each row, in encoded units (a level's code for an ordered target).
    levels : (rows, levels) boolean array or None
        Allowed levels of each row.
    missing : boolean array or None
        Whether each row's draw may be missing; None: not allowed in any row.
    step : array or None
        Numbers must be multiples of it; NaN: no such restriction.
    kept : array or None
        The present value of each row, or NaN. It need not be a multiple of the step, and is kept if no other allowed
        value can be drawn.
    never : (rows, values) array or None
        Excluded numbers of each row; NaN is ignored.
    weighted : bool
        Whether to compute the probability of the allowed values (`RestrictedDraw.log_mass`), which takes time.

    Samplers handle bounds, levels and missing values; `mcce.samplers.rounding.draw_allowed` handles the rest.

    A row with infinite bounds and all levels and missing values allowed is drawn as if unrestricted.

    Examples
    --------
    >>> import numpy as np
    >>> within = Within(low=np.array([2.0, 2.0]), missing=np.array([False, True]))
    >>> within.allows(np.array([1.0, np.nan])).tolist()
    [False, True]
    >>> (within & Within(high=np.array([9.0, 9.0]))).bounds(2)[1].tolist()
    [9.0, 9.0]
    >>> within.take([1]).allows_missing(1).tolist()
    [True]
    >>> Within(low=np.array([1.0])).level_mask(1, 3).tolist()
    [[False, True, True]]
    >>> Within(low=np.array([0.0]), step=np.array([500.0])).put(np.array([1_240.0])).tolist()
    [1000.0]
    """

    low: Floats | None = None
    high: Floats | None = None
    levels: Bools | None = None
    missing: Bools | None = None
    step: Floats | None = None
    kept: Floats | None = None
    never: Floats | None = None
    weighted: bool = False

    def allows(self, values: Floats) -> Bools:
        is_missing = np.isnan(values)
        allowed = ~is_missing
        if self.low is not None:
            allowed &= values >= self.low
        if self.high is not None:
            allowed &= values <= self.high
        if self.levels is not None:
            known = np.flatnonzero(allowed)  # missing values have no level
            allowed[known] = self.levels[known, values[known].astype(np.intp)]
        if self.step is not None:
            allowed &= self._may_be_off(values) | is_multiple(values, self.step)
        if self.never is not None:
            allowed &= ~(values[:, None] == self.never).any(axis=1)
        return allowed if self.missing is None else allowed | (is_missing & self.missing)

    def take(self, rows: Any) -> Within:
        """Return the restriction of some rows: an index array, a boolean mask or a slice."""
        return self.each(lambda part: part[rows])

    def each(self, function: Callable[[Any], Any]) -> Within:
        names = ("low", "high", "levels", "missing", "step", "kept", "never")
        parts = {name: getattr(self, name) for name in names}
        return Within(
            **{name: None if part is None else function(part) for name, part in parts.items()}, weighted=self.weighted
        )

    def __and__(self, other: Within) -> Within:
        return Within(
            low=_both(self.low, other.low, np.maximum),
            high=_both(self.high, other.high, np.minimum),
            levels=_both(self.levels, other.levels, np.logical_and),
            missing=None if self.missing is None or other.missing is None else self.missing & other.missing,
            step=_both(self.step, other.step, common_multiples),
            kept=_both(self.kept, other.kept, np.fmax),
            never=_both(self.never, other.never, lambda a, b: np.hstack([a, b])),
            weighted=self.weighted or other.weighted,
        )

    def known_to_samplers(self) -> Within:
        """Return the part that samplers handle: bounds, levels and missing values."""
        return replace(self, step=None, kept=None, never=None)

    def off_grid(self) -> Within:
        """Return the restriction without its step."""
        return replace(self, step=None, kept=None)

    def put(self, values: Floats) -> Floats:
        """Return the nearest multiples of `step` between the bounds; NaN if there are none."""
        if self.step is None:
            return values
        off = self._may_be_off(values)
        return np.where(off, values, put_on_multiples(values, self.step, *self.bounds(values.size)))

    def excludes(self, feature: Feature, n_rows: int, *, observed: bool) -> Bools:
        """Return which rows' restrictions exclude a training value, or a value that could be drawn.

        Parameters
        ----------
        feature : Feature
            The target.
        n_rows : int
        observed : bool
            Whether unrestricted draws are training values (`ConditionalSampler.draws_observed`) or any number.
        """
        excludes = feature.has_missing & ~self.allows_missing(n_rows)
        if not feature.is_numeric:
            return np.asarray(excludes | ~self.level_mask(n_rows, feature.n_levels).all(axis=1))
        least, most = (feature.low, feature.high) if observed else (-np.inf, np.inf)
        low, high = self.bounds(n_rows)
        excludes = excludes | (low > least) | (high < most)
        if self.step is not None:
            excludes |= ~np.isnan(self.step)
        if self.never is not None:
            excludes |= ((self.never >= least) & (self.never <= most)).any(axis=1)
        return np.asarray(excludes)

    def single_values(self, feature: Feature, n_rows: int) -> tuple[Bools, Floats]:
        """Return which rows have a single allowed value, which may be missing, and these values."""
        may_miss = self.allows_missing(n_rows) & feature.has_missing
        low, high = self.bounds(n_rows)
        if feature.is_numeric:
            none, one, value = low > high, (low == high) & self.allows(low), low
        else:
            mask = self.level_mask(n_rows, feature.n_levels)
            count = mask.sum(axis=1)
            none, one, value = count == 0, count == 1, mask.argmax(axis=1).astype(np.float64)
        return (one & ~may_miss) | (none & may_miss), np.where(none, np.nan, value)

    def _may_be_off(self, values: Floats) -> Bools:
        """Return which values need not be multiples of the step."""
        assert self.step is not None
        free = np.isnan(self.step) | np.isnan(values)
        return free if self.kept is None else free | (values == self.kept)

    def bounds(self, n_rows: int) -> tuple[Floats, Floats]:
        """Return the bounds of each row, infinite without bounds."""
        return (
            np.full(n_rows, -np.inf) if self.low is None else np.ascontiguousarray(self.low, dtype=np.float64),
            np.full(n_rows, np.inf) if self.high is None else np.ascontiguousarray(self.high, dtype=np.float64),
        )

    def level_mask(self, n_rows: int, n_levels: int) -> Bools:
        """Return the allowed levels of each row, by its bounds and its set of levels: (rows, levels)."""
        low, high = self.bounds(n_rows)
        codes = np.arange(n_levels)
        allowed = (codes >= low[:, None]) & (codes <= high[:, None])
        return allowed if self.levels is None else allowed & self.levels[:, :n_levels]

    def allows_missing(self, n_rows: int) -> Bools:
        """Return whether each row's draw may be missing."""
        return np.zeros(n_rows, dtype=bool) if self.missing is None else np.asarray(self.missing, dtype=bool)


def _both(a: Any, b: Any, join: Callable[[Any, Any], Any]) -> Any:
    return b if a is None else a if b is None else join(a, b)


@dataclass(frozen=True)
class RestrictedDraw:
    """Draws from restricted conditionals.

    Attributes
    ----------
    values : array
        One draw for each row; NaN for an allowed missing value and in rejected rows.
    rejected : boolean array
        Rows without an allowed value that can be drawn.
    log_mass : array or None
        Log of the probability that the unrestricted draw of each row is allowed, or of an unbiased estimate of it; -inf
        in rejected rows. It is the importance weight of a truncated draw. May be None if it is not requested
        (`Within.weighted`), or not known to the sampler: the chain then estimates it by unrestricted draws.

    Examples
    --------
    >>> import numpy as np
    >>> drawn = RestrictedDraw.of(np.array([2.0, 7.0]), rejected=np.array([False, True]))
    >>> drawn.values.tolist(), drawn.rejected.tolist()
    ([2.0, nan], [False, True])
    """

    values: Floats
    rejected: Bools
    log_mass: Floats | None = None

    @classmethod
    def of(cls, values: Floats, rejected: Bools, log_mass: Floats | None = None) -> RestrictedDraw:
        """Return the draws with NaN and mass 0 in the rejected rows."""
        mass = None if log_mass is None else np.where(rejected, -np.inf, log_mass)
        return cls(np.where(rejected, np.nan, values), rejected, mass)

    @classmethod
    def by_weight(cls, values: Floats, weights: Floats, rng: RowStreams) -> RestrictedDraw:
        """Draw one of the values for each row by its weights, (rows, values); the mass is the sum of the weights."""
        total = weights.sum(axis=1)
        rejected = ~(total > 0.0)
        chosen = rng.categorical(np.where(rejected[:, None], 1.0, weights))
        return cls.of(values[chosen], rejected, log_of(total))

    def take(self, rows: Any) -> RestrictedDraw:
        """Return the draws of some rows: an index array, a boolean mask or a slice."""
        mass = None if self.log_mass is None else self.log_mass[rows]
        return RestrictedDraw(self.values[rows], self.rejected[rows], mass)

    def or_missing(self, value_weight: Floats, missing_weight: Floats, uniform: Floats) -> RestrictedDraw:
        """Return draws that are replaced by missing values with probability in proportion to two weights.

        Parameters
        ----------
        value_weight, missing_weight : array
            Probabilities that the unrestricted draw is an allowed value, and an allowed missing value.
        uniform : array
            One uniform number per row.
        """
        value_weight = np.where(self.rejected, 0.0, value_weight)
        total = value_weight + missing_weight
        is_missing = uniform * total < missing_weight
        log_mass = None
        if self.log_mass is not None:
            # a known value is now drawn with probability value_weight / total
            gain = np.log(total, out=np.zeros(total.size), where=total > 0.0)
            rarer = gain - np.log(value_weight, out=gain.copy(), where=value_weight > 0.0)
            log_mass = np.where(is_missing, gain, self.log_mass + rarer)
        return RestrictedDraw(np.where(is_missing, np.nan, self.values), self.rejected & ~is_missing, log_mass)


def log_of(probability: Floats) -> Floats:
    return np.asarray(np.log(probability, out=np.full(probability.shape, -np.inf), where=probability > 0.0))


def draw_until_allowed(
    draw: Callable[[Ints, int], RestrictedDraw], n_rows: int, most: int, *, estimate: bool
) -> RestrictedDraw:
    """Return the first allowed draw of each row, among at most `most` draws.

    ``draw(rows, attempt)`` redraws some of the rows, and rejects those whose draw is not allowed. Its log masses are
    those of its own distribution; with `estimate`, the estimated log probability of an allowed draw is added.
    """
    values, log_mass = np.full(n_rows, np.nan), np.full(n_rows, -np.inf)
    has_mass = estimate
    n_found = np.zeros(n_rows, dtype=np.int64)
    waiting = np.arange(n_rows)
    for attempt in range(most):
        if not waiting.size:
            break
        tried = draw(waiting, attempt)
        allowed = waiting[~tried.rejected]
        is_first = n_found[allowed] == 0
        first, second = allowed[is_first], allowed[~is_first]
        values[first] = tried.values[~tried.rejected][is_first]
        has_mass = tried.log_mass is not None
        if tried.log_mass is not None:
            log_mass[first] = tried.log_mass[~tried.rejected][is_first]
        log_mass[second] -= np.log(max(attempt, 1))  # the second allowed draw is never attempt 0
        n_found[allowed] += 1
        waiting = waiting[n_found[waiting] < (2 if estimate else 1)]
    rejected = n_found == 0
    if estimate:
        log_mass[n_found == 1] -= np.log(most)
    return RestrictedDraw(values, rejected, log_mass if has_mass else None)
