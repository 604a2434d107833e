"""Values of a feature as a user writes them (levels, dates, durations, numbers), in the encoding of the feature.

Dates are compared in microseconds since 1970 (of UTC, if the column has a time zone), which float64 counts exactly for
whole seconds of any year; periods in periods since 1970; durations are numbers of days.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Floats, is_number
from mcce.exceptions import InputError, did_you_mean, spell
from mcce.table import Feature
from mcce.table.dtypes import is_duration, tick_length

DAY = 86_400e6  # microseconds
_LONGEST = 100  # characters of a date
_TODAY = re.compile(r"(?:now|today)$|\d\d?:", re.IGNORECASE)  # pandas adds the current day


@dataclass(frozen=True)
class Clock:
    """The dates of a feature: ``encoded * times + plus`` in the unit in which dates of one family are compared.

    Attributes
    ----------
    family : what can be compared: "date", "zoned date", "duration", or the dtype of periods.
    day : a day in this unit; a period for periods, 1 for durations.
    """

    times: float
    plus: float
    family: object
    day: float

    def of(self, encoded: Floats) -> Floats:
        """Return encoded values in the common unit."""
        return encoded * self.times + self.plus

    def encode(self, values: Floats) -> Floats:
        """Return values in the common unit as those of the feature."""
        return (values - self.plus) / self.times


def clock_of(feature: Feature) -> Clock:
    """Return the unit of a feature of dates, durations or periods."""
    if isinstance(feature.dtype, pd.PeriodDtype):
        return Clock(float(feature.unit), float(feature.origin), feature.dtype, 1.0)
    length = tick_length(feature.dtype, feature.cell)
    if is_duration(feature.dtype):
        day = 1e3 * DAY
        return Clock(feature.unit * length / day, feature.origin * length / day, "duration", 1.0)
    family = "date" if _zone(feature) is None else "zoned date"
    return Clock(feature.unit * length / 1e3, feature.origin * length / 1e3, family, DAY)


def is_truth(value: Any) -> bool:
    """Return whether a value is True or False."""
    return isinstance(value, (bool, np.bool_))


def level_code(feature: Feature, value: Any) -> int:
    """Return the code of a level, named by its value or by its text."""
    levels = list(feature.levels if feature.levels is not None else ())
    same = [k for k, level in enumerate(levels) if is_truth(level) == is_truth(value) and _equal(level, value)]
    if not same and isinstance(value, str):
        same = [k for k, level in enumerate(levels) if str(level) == value]
    if len(same) != 1:
        raise InputError(f"{spell(value)} is not a level of {spell(feature.name)}; {did_you_mean(value, levels)}")
    return same[0]


def _equal(level: Any, value: Any) -> bool:
    try:
        return bool(level == value)
    except (TypeError, ValueError):
        return False


def encode_value(feature: Feature, value: Any) -> float:
    """Return a value in the encoding of a feature; raise if the feature cannot have it."""
    if not feature.is_numeric:
        return float(level_code(feature, value))
    if feature.is_date:
        clock = clock_of(feature)
        return float(clock.encode(np.float64(read_date(feature, value))))
    if not (is_number(value) and np.isfinite(float(value))):
        raise InputError(f"{spell(value)} is not a number, and {spell(feature.name)} holds numbers")
    return float(value)


def read_date(feature: Feature, value: Any) -> float:
    """Return a date, duration or period in the unit of `clock_of`."""
    duration = is_duration(feature.dtype)
    try:
        if isinstance(value, str):
            if len(value) > _LONGEST or (not duration and _TODAY.match(value.strip())):
                raise ValueError("it is too long, or depends on the current day")
        elif not isinstance(value, (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64, pd.Period)):
            raise TypeError("it is neither text nor a date")
        if isinstance(feature.dtype, pd.PeriodDtype):
            return float(pd.Period(value, freq=feature.dtype.freq).ordinal)  # type: ignore[arg-type]
        if duration:
            return _days(pd.Timedelta(value))
        stamp: Any = pd.Timestamp(value)
        if stamp is pd.NaT:
            raise ValueError("it is missing")
        zone = _zone(feature)
        if zone is not None and stamp.tz is None:
            stamp = stamp.tz_localize(zone)
        if zone is None and stamp.tz is not None:
            raise ValueError("it has a time zone, and the column has none")
        rounded = stamp.replace(nanosecond=0) if stamp.nanosecond else stamp  # `replace` knows no years before 1677
        microseconds = rounded.as_unit("us").asm8  # of UTC
        return float(microseconds.astype(np.int64)) + stamp.nanosecond / 1e3
    except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
        what, example = ("duration", "'30 days'") if duration else ("date", "'2024-05-31'")
        raise InputError(
            f"{spell(value)} cannot be read as a {what} of {spell(feature.name)} ({error}); write it as in {example}"
        ) from None


def encode_step(feature: Feature, value: Any) -> float:
    """Return a largest step in encoded units: a number, a number of levels, or a duration."""
    if feature.is_date and not isinstance(feature.dtype, pd.PeriodDtype):
        try:
            if not isinstance(value, (str, datetime.timedelta, np.timedelta64)):
                raise TypeError("it is neither text nor a Timedelta")
            days = _days(pd.Timedelta(value))
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{spell(value)} is not a duration ({error}); write it as in '30 days'") from None
        clock = clock_of(feature)
        step = days * clock.day / clock.times
    else:
        if not (is_number(value) and np.isfinite(float(value))):
            raise InputError(f"{spell(value)} is not a number")
        step = float(value) / feature.unit
        if not feature.is_numeric and not step.is_integer():
            raise InputError(f"{spell(value)} is not a whole number of levels")
    if step < 0:
        raise InputError(f"{spell(value)} is below 0")
    return step


def _days(length: Any) -> float:
    if length is pd.NaT:
        raise ValueError("it is missing")
    return float(length / pd.Timedelta(days=1))


def _zone(feature: Feature) -> Any:
    return getattr(getattr(feature.dtype, "pyarrow_dtype", feature.dtype), "tz", None)
