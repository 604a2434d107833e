"""The grid that the numbers of a column lie on, and numbers put on it.

1. Whole numbers: an integer dtype holds those in its range, as far as float64 counts them exactly.
2. Dates: whole units, as far as their ticks go.
3. Other numbers: the fewest decimals that write all training values, if 12 or fewer do; then the nearest value that the
   dtype holds (float32, float16).

Rounding is to the nearest point of the grid and leaves its points as they are, so an observed value stays itself. A
number on the grid is exactly what decoding and encoding it gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.arrays import Bools, Floats
from mcce.table.dtypes import EXACT, MOST_TICKS, NO_TICK, is_dated, numpy_dtype

MOST_DECIMALS = 12
_FEW = 64  # values that tell most columns without a grid


@dataclass(frozen=True)
class Grid:
    """Where a column's numbers may lie.

    Attributes
    ----------
    decimals : decimals of the numbers; None if they have as many as float64 holds
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
        """Whether all float64 lie on the grid."""
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
        """Return the bounds of the numbers that are put on points between each row's bounds; these, if there are none.

        Without decimals they are the bounds themselves.
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
        return np.asarray(np.nextafter(points.astype(self.narrow), towards), dtype=np.float64)


def decimals_of(values: Floats, dtype: np.dtype[Any] | None = None) -> int | None:
    """Return the fewest decimals that write all values exactly, held in `dtype`; None if that takes more than 12.

    None as well if that many decimals of the largest value are more digits than the dtype has.
    """
    largest = float(np.abs(values).max(initial=0.0))
    digits = 2.0 ** np.finfo(np.float64 if dtype is None or dtype.kind != "f" else dtype).nmant
    for places in range(MOST_DECIMALS + 1):
        if places and largest * 10.0**places >= digits:
            return None
        # a few values tell most columns without a grid
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
    # numbers without so many decimals in float64 are as round as they can be
    has_decimals = np.abs(values) < EXACT / 2 / 10.0**decimals
    return np.where(has_decimals, np.round(np.where(has_decimals, values, 0.0), decimals) + 0.0, values)
