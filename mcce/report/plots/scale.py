"""Positions of numbers on a line on which most of them, and two marks, are distinguishable.

The line spans 98 per cent of the values, and the marks. It is logarithmic if one side of the median is more than three
times as long as the other: position(v) = log(1 + d / b) / log(1 + w / b), with d the distance from the crowded
end, w the width, and b the distance of the median from that end. Without values the line spans a given range, and is
logarithmic if both marks lie within a tenth of it at one end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Floats

SHOWN = (0.01, 0.99)
SKEWED, CLOSE = 3.0, 0.1  # longer side over shorter side; share of the range
LEAST_BEND = 2.0**-1000  # relative to the width, so that their ratio is finite
BEYOND = 0.04  # position outside the line of values beyond its ends
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class LineScale:
    """Positions on a line: 0 for `low`, 1 for `high`.

    `bend` is the distance from the crowded end up to which the scale is nearly linear; infinite for a linear scale.
    The crowded end is `high` if the scale is `mirrored`.
    """

    low: float
    high: float
    bend: float = np.inf
    mirrored: bool = False

    @property
    def is_linear(self) -> bool:
        """Whether the scale is linear."""
        return not np.isfinite(self.bend)

    def place(self, value: Any) -> float:
        """Return the position of a number, date or duration; values beyond an end are just outside it."""
        if not self.high > self.low:
            return 0.5
        return float(np.clip(self.shares(np.array([as_number(value)]))[0], -BEYOND, 1 + BEYOND))

    def shares(self, values: Floats) -> Floats:
        """Return the positions of numbers; the scale is linear beyond the ends."""
        low, width, bend = self._in_units()
        linear = (_shifted(values, -self._exponent) - low) / width
        if self.is_linear:
            return linear
        crowded = np.clip(1 - linear if self.mirrored else linear, 0, 1)
        bent = np.log1p(crowded * (width / bend)) / np.log1p(width / bend)
        inside = 1 - bent if self.mirrored else bent
        return np.where((linear > 0) & (linear < 1), inside, linear)

    def values(self, shares: Floats) -> Floats:
        """Return the numbers at positions."""
        shares = np.asarray(shares, dtype=np.float64)
        low, width, bend = self._in_units()
        found = low + shares * width
        if not self.is_linear:
            crowded = np.clip(1 - shares if self.mirrored else shares, 0, 1)
            away = bend * np.expm1(crowded * np.log1p(width / bend))
            inside = low + width - away if self.mirrored else low + away
            found = np.where((shares > 0) & (shares < 1), inside, found)
        return _shifted(found, self._exponent)

    @property
    def _exponent(self) -> int:
        return _exponent_of(self.low, self.high)

    def _in_units(self) -> tuple[float, float, float]:
        """Return the low end, the width and the bend in units of a power of two near the larger end.

        In these units differences neither overflow nor underflow, and are otherwise identical.
        """
        low, high, bend = _shifted([self.low, self.high, self.bend], -self._exponent).tolist()
        return low, high - low, max(bend, LEAST_BEND * (high - low))


def _exponent_of(low: float, high: float) -> int:
    return int(np.frexp(max(abs(low), abs(high)))[1])


def _shifted(values: Any, exponent: int) -> Floats:
    """Return numbers times 2^exponent, infinite if too large."""
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(np.asarray(values, dtype=np.float64), exponent))


def bent_scale(values: Floats, low: float, high: float) -> LineScale:
    """Return a scale between two ends, logarithmic if values crowd at one of them."""
    exponent = _exponent_of(low, high)
    numbers, (first, last) = _shifted(values, -exponent), _shifted([low, high], -exponent).tolist()
    middle = float(np.median(numbers))
    below, above = max(middle - first, 0.0), max(last - middle, 0.0)
    if above > SKEWED * below:
        bend = below or _typical(numbers - first, last - first)
        return LineScale(low, high, float(_shifted(bend, exponent)))
    if below > SKEWED * above:
        bend = above or _typical(last - numbers, last - first)
        return LineScale(low, high, float(_shifted(bend, exponent)), mirrored=True)
    return LineScale(low, high)


def _typical(distances: Floats, width: float) -> float:
    """Return the median positive distance from the crowded end; infinite without any."""
    away = distances[(distances > 0) & (distances <= width)]
    return float(np.median(away)) if away.size else np.inf


def scale_of(values: Sequence[Any], marks: Sequence[Any]) -> tuple[LineScale, tuple[Any, Any]]:
    """Return the scale on which values and marks are distinguishable, and the labels of its ends."""
    numbers = np.array([as_number(value) for value in values])
    first, last = (float(np.quantile(numbers, share, method="nearest")) for share in SHOWN)
    inside = [value for value, number in zip(values, numbers) if number in (first, last)]
    ends = sorted([*inside, *marks], key=as_number)
    return bent_scale(numbers, as_number(ends[0]), as_number(ends[-1])), (ends[0], ends[-1])


def scale_of_range(low: Any, high: Any, marks: Sequence[Any]) -> LineScale:
    """Return a scale over a range on which marks near one end are distinguishable."""
    begin, end = as_number(low), as_number(high)
    near = max(as_number(mark) - begin for mark in marks)
    far = max(end - as_number(mark) for mark in marks)
    if 0 < near <= CLOSE * (end - begin):
        return LineScale(begin, end, near / 2)
    if 0 < far <= CLOSE * (end - begin):
        return LineScale(begin, end, far / 2, mirrored=True)
    return LineScale(begin, end)


def as_number(value: Any) -> float:
    """Return a number unchanged, a period by its ordinal, dates and durations in seconds."""
    if isinstance(value, pd.Period):
        return float(value.ordinal)
    if isinstance(value, date | np.datetime64):
        return _seconds(pd.Timestamp(value))
    if isinstance(value, pd.Timedelta | timedelta | np.timedelta64):
        return _seconds(pd.Timedelta(value))
    return float(value)


def _seconds(time: pd.Timestamp | pd.Timedelta) -> float:
    """Return seconds since the origin, for any unit of time."""
    return int(time.asm8.view(np.int64)) / PER_SECOND[time.unit]
