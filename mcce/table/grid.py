"""The grid that the numbers of a column lie on, and rounding to it.

1. Whole numbers: the range of the dtype, as far as float64 is exact. Dates: whole units.
2. Other numbers: the fewest decimals that write all training values, if 12 or fewer do; then the nearest value of the
   dtype (float32, float16).
3. On request, multiples of a step, exact as decimals are (3 * 0.1 is 0.3).

Rounding keeps points of the grid; decoding and encoding keep them too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mcce.base.arrays import Bools, Floats
from mcce.table.dtypes import EXACT, MOST_TICKS, NO_TICK, is_dated, numpy_dtype

MOST_DECIMALS = 12
_FEW = 64  # values that are enough to reject most columns without a grid


@dataclass(frozen=True)
class Grid:
    """The possible numbers of a column.

    Attributes
    ----------
    decimals : decimals of the numbers; None for any number of float64
    low, high : least and greatest number that the dtype holds
    narrow : the dtype if it is a float of fewer than 64 bits, else None
    """

    decimals: int | None = None
    low: float = -np.inf
    high: float = np.inf
    narrow: np.dtype[Any] | None = None

    @classmethod
    def of_dtype(cls, dtype: Any, decimals: int | None, origin: int = 0, unit: int = 1) -> Grid:
        """Return the grid of a numeric column; a date is (ticks - origin) / unit."""
        if is_dated(dtype):
            days = str(dtype).startswith("date32")  # Arrow's dates are counted in 32 bits
            first, last = (-(2**31), 2**31 - 1) if days else (NO_TICK + 1, 2**63 - 1)
            most = min(int(EXACT), int(MOST_TICKS) // unit) - 1
            return cls(0, float(max(-((origin - first) // unit), -most)), float(min((last - origin) // unit, most)))
        held = numpy_dtype(dtype)
        if held.kind in "iu":
            limits = np.iinfo(held)
            return cls(0, float(max(limits.min, -EXACT + 1)), float(min(limits.max, EXACT - 1)))
        if held.itemsize < 8:
            widest = float(np.finfo(held).max)
            return cls(decimals, -widest, widest, held)
        return cls(decimals)

    @property
    def is_everything(self) -> bool:
        return self.decimals is None and self.narrow is None

    def put(self, values: Floats) -> Floats:
        """Return the nearest points of the grid; missing values stay missing."""
        if self.is_everything:
            return values
        rounded = values if self.decimals is None else _round(values, self.decimals)
        if np.isfinite(self.low):
            rounded = np.clip(rounded, self.low, self.high)
        return rounded if self.narrow is None else rounded.astype(self.narrow).astype(np.float64)

    def put_within(self, values: Floats, low: Floats, high: Floats) -> Floats:
        """Return the nearest points of the grid between each row's bounds; missing where there are none."""
        lowest, highest, possible = self._outermost(low, high)
        return np.where(possible, np.clip(self.put(values), lowest, highest), np.nan)

    def basin(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the bounds of the numbers that round to points between each row's bounds.

        Without decimals, or without such points, these are the row's bounds themselves.
        """
        if self.decimals is None:
            return low, high
        lowest, highest, possible = self._outermost(low, high)
        half = 0.5 * 10.0**-self.decimals
        lowest = np.where(lowest <= self.low, -np.inf, lowest - half)
        highest = np.where(highest >= self.high, np.inf, highest + half)
        return np.where(possible, lowest, low), np.where(possible, highest, high)

    def _outermost(self, low: Floats, high: Floats) -> tuple[Floats, Floats, Bools]:
        """Return the least and the greatest point between each row's bounds, and whether there are any."""
        lowest, highest = self.put(low), self.put(high)
        if not self.is_everything:
            lowest = np.where(lowest < low, self._step(lowest, 1.0), lowest)
            highest = np.where(highest > high, self._step(highest, -1.0), highest)
        return lowest, highest, (lowest <= highest) & (lowest >= low) & (highest <= high)

    def _step(self, points: Floats, direction: float) -> Floats:
        """Return the next points of the grid, upwards or downwards."""
        if self.decimals is not None:
            return self.put(points + direction * 10.0**-self.decimals)
        assert self.narrow is not None
        towards = self.narrow.type(direction * np.inf)
        with np.errstate(over="ignore"):  # beyond the largest number of the dtype
            return np.asarray(np.nextafter(points.astype(self.narrow), towards), dtype=np.float64)


def decimals_of(values: Floats, dtype: np.dtype[Any] | None = None) -> int | None:
    """Return the fewest decimals that write all values of `dtype` exactly; None if there are more than 12.

    None as well if the largest value with these decimals has more digits than the dtype.
    """
    largest = float(np.abs(values).max(initial=0.0))
    digits = 2.0 ** np.finfo(np.float64 if dtype is None or dtype.kind != "f" else dtype).nmant
    for places in range(MOST_DECIMALS + 1):
        if places and largest * 10.0**places >= digits:
            return None
        # the first values reject most columns without a grid
        if all(_are_written(part, places, dtype) for part in (values[:_FEW], values)):
            return places
    return None


def _are_written(values: Floats, places: int, dtype: np.dtype[Any] | None) -> bool:
    rounded = np.round(values, places)
    return bool(((rounded if dtype is None else rounded.astype(dtype).astype(np.float64)) == values).all())


def _round(values: Floats, decimals: int) -> Floats:
    """Round to some decimals; adding 0 turns -0 into 0."""
    if decimals == 0:
        return np.rint(values) + 0.0
    # larger numbers have fewer decimals in float64
    has_decimals = np.abs(values) < EXACT / 2 / 10.0**decimals
    return np.where(has_decimals, np.round(np.where(has_decimals, values, 0.0), decimals) + 0.0, values)


def is_multiple(values: Floats, step: Floats) -> Bools:
    """Return which values are multiples of each row's step, within rounding error; False for a missing step."""
    with np.errstate(invalid="ignore", over="ignore"):
        slack = 1e-9 * step + 4.0 * np.finfo(np.float64).eps * np.abs(values)
        return np.asarray(np.abs(_times(np.rint(values / step), step) - values) <= slack)


def put_on_multiples(values: Floats, step: Floats, low: Floats, high: Floats) -> Floats:
    """Return the nearest multiples of each row's step between its bounds; missing where there are none."""
    with np.errstate(invalid="ignore", over="ignore"):
        first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
        # exclude multiples outside that the tolerance let in
        first = np.where(_times(first, step) < low, first + 1.0, first)
        last = np.where(_times(last, step) > high, last - 1.0, last)
        nearest = _times(np.clip(np.rint(values / step), first, np.maximum(first, last)), step)
    return np.where(first <= last, nearest, np.nan)


def common_multiple(a: float, b: float) -> float:
    """Return the least positive number that is a multiple of both, read as the decimals they are written as.

    Examples
    --------
    >>> from mcce.table.grid import common_multiple
    >>> common_multiple(0.2, 0.5)
    1.0
    """
    x, y = Fraction(repr(float(a))), Fraction(repr(float(b)))
    return float(Fraction(math.lcm(x.numerator, y.numerator), math.gcd(x.denominator, y.denominator)))


def common_multiples(a: Floats, b: Floats) -> Floats:
    """Return the least common multiple of each row's steps; a missing step is ignored."""
    found = np.where(np.isnan(a), b, a)
    both = np.flatnonzero(~np.isnan(a) & ~np.isnan(b) & (a != b))
    pairs, at = np.unique(np.column_stack([a[both], b[both]]), axis=0, return_inverse=True)
    if both.size:
        found[both] = np.array([common_multiple(x, y) for x, y in pairs])[at.ravel()]
    return found


def _times(counts: Floats, step: Floats) -> Floats:
    """Return multiples of each row's step, rounded once: a step of 0.1 is exactly 1/10."""
    found = np.full(counts.shape, np.nan)
    for each in np.unique(step[~np.isnan(step)]):
        rows = step == each
        exact = Fraction(repr(float(each)))
        if max(exact.numerator, exact.denominator) < EXACT:
            found[rows] = counts[rows] * float(exact.numerator) / float(exact.denominator)
        else:
            found[rows] = counts[rows] * each
    return found
