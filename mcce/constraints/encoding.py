"""Encoding of given values of a feature: levels, dates, durations and numbers."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from math import gcd, inf
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.checks import is_number, is_too_large, is_whole
from mcce.exceptions import InputError, did_you_mean, shorten, spell
from mcce.table import Feature, Schema
from mcce.table.dtypes import date_family, is_dated
from mcce.wording import PythonOnly, Value

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1, "D": 86400 * 10**9}
DAY = _NANOSECONDS["D"]
_MOST_LETTERS = 100  # of a date or a duration
_BY_THE_CLOCK = re.compile(r"(?:now|today)$|\d\d?:", re.IGNORECASE)  # pandas adds the current day


def encode_value(feature: Feature, value: Any) -> float:
    """Return the encoded value of a given value; raise if the feature cannot have it."""
    if not feature.is_numeric:
        return float(level_code(feature, value))
    if is_dated(feature.dtype):
        return _encode_date(feature, value)
    if not is_number(value) or np.isnan(float(value)):
        raise InputError(f"{spell(value)} is not a number, and {feature.name!r} holds numbers")
    return float(value)


def level_code(feature: Feature, value: Any) -> int:
    return LevelCodes(feature).find(value)


class LevelCodes:
    """Lookup of the codes of a feature's levels."""

    def __init__(self, feature: Feature) -> None:
        assert feature.levels is not None
        self.name, self.levels = feature.name, list(feature.levels)
        self.by_value: dict[tuple[bool, Any], int] = {}
        self.by_text: dict[str, int | None] = {}  # None for a text that several levels have
        for code, level in enumerate(self.levels):
            self.by_value.setdefault((_is_bool(level), level), code)
            text = str(level)
            self.by_text[text] = None if text in self.by_text else code

    def find(self, value: Any) -> int:
        """Return the code of a level, named by its value or by its text."""
        try:
            code = self.by_value.get((_is_bool(value), value))
        except TypeError:  # unhashable
            code = None
        if code is None and isinstance(value, str):
            code = self.by_text.get(value)
        elif code is None:  # equal values of different types may have different hashes
            alike = (c for c, level in enumerate(self.levels) if _is_bool(level) == _is_bool(value))
            code = next((c for c in alike if _equal(self.levels[c], value)), None)
        if code is None:
            raise InputError(f"{spell(value)} is not a level of {self.name!r}; {did_you_mean(value, self.levels)}")
        return code


def _is_bool(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def _equal(level: Any, value: Any) -> bool:
    try:
        return bool(level == value)
    except (TypeError, ValueError, OverflowError):
        return False


def _encode_date(feature: Feature, value: Any) -> float:
    dtype: Any = feature.dtype
    try:
        if isinstance(value, bool) or is_number(value) or is_too_large(value):
            raise TypeError("it is a number")
        if isinstance(value, str):
            _check_text(value, duration=dtype.kind == "m")
        if isinstance(dtype, pd.PeriodDtype):
            frequency: Any = dtype.freq
            read: Any = value if isinstance(value, pd.Period) else pd.Period(value, freq=frequency)
        elif dtype.kind == "m":
            read = pd.Timedelta(value)
        else:
            read = pd.Timestamp(value)
            if read.tz is None and getattr(dtype, "tz", None) is not None:
                read = read.tz_localize(dtype.tz)
        if read is pd.NaT:
            raise TypeError("it is missing")
        return float(feature.encode(pd.Series([read], name=feature.name), "the constraints")[0])
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        what, example = ("duration", "'30 days'") if dtype.kind == "m" else ("date", "'2024-05-31'")
        raise InputError(
            f"{spell(value)} cannot be read as a {what} of {feature.name!r} ({shorten(str(error))}); write it as in "
            f"{example}"
        ) from error


def _check_text(text: str, *, duration: bool) -> None:
    """Raise on a text that is too long, or whose date depends on the current day."""
    if len(text) > _MOST_LETTERS:
        raise ValueError(f"it has more than {_MOST_LETTERS} characters")
    if not duration and _BY_THE_CLOCK.match(text.strip()):
        raise ValueError("it depends on the current day, so a resumed run could mix two days")


def encode_step(feature: Feature, value: Any) -> float:
    """Return a largest step in encoded units: a number, a number of levels, or a duration."""
    if feature.is_numeric and is_dated(feature.dtype) and not isinstance(feature.dtype, pd.PeriodDtype):
        if not isinstance(value, (str, datetime.timedelta, np.timedelta64)):
            raise InputError(
                Value(value), " is not a duration; give text as in '30 days'", PythonOnly(", or a pandas.Timedelta")
            )
        try:
            if isinstance(value, str):
                _check_text(value, duration=True)
            length: Any = pd.Timedelta(value)
        except ValueError as error:
            why = shorten(str(error))
            raise InputError(f"{spell(value)} is not a duration ({why}); write it as in '30 days'") from error
        if not length >= pd.Timedelta(0):
            raise InputError(f"{length} is not a duration of at least 0")
        return float(length.as_unit("ns").value) / (tick_nanoseconds(feature.dtype) * feature.unit)
    if not is_number(value) or not 0 <= value < inf:
        raise InputError(f"{spell(value)} is not a number of at least 0")
    if not feature.is_numeric and not (is_whole(value) or float(value).is_integer()):
        raise InputError(f"{spell(value)} is not a whole number of levels")
    return float(value) / feature.unit


def tick_nanoseconds(dtype: Any) -> int:
    """Return the nanoseconds of one tick of a date dtype; 1 for periods, whose ticks are periods."""
    if isinstance(dtype, pd.PeriodDtype):
        return 1
    if isinstance(dtype, pd.ArrowDtype):
        name = str(dtype.pyarrow_dtype)
        unit = "D" if name.startswith("date32") else "ms" if name.startswith("date64") else dtype.pyarrow_dtype.unit
        return _NANOSECONDS[unit]
    return _NANOSECONDS[dtype.unit if isinstance(dtype, pd.DatetimeTZDtype) else np.datetime_data(dtype)[0]]


@dataclass(frozen=True)
class Clock:
    """The common unit of dates of one kind, in which columns are compared exactly.

    ``encoded * times + plus`` is a date in this unit, for each column; `day` is a day (of periods: one period). `base`
    is the origin and `unit` the unit, in nanoseconds since 1970 (of periods: in periods).
    """

    times: dict[int, float]
    plus: dict[int, float]
    day: float
    base: int
    unit: int


def clock_of(schema: Schema, feature: Feature) -> Clock:
    """Return the common unit of all columns with dates of the same kind as a feature."""
    family = date_family(feature.dtype)
    alike = [
        (j, f)
        for j, f in enumerate(schema.features)
        if f.is_numeric and is_dated(f.dtype) and date_family(f.dtype) == family
    ]
    origins = {j: f.origin * tick_nanoseconds(f.dtype) for j, f in alike}
    units = {j: f.unit * tick_nanoseconds(f.dtype) for j, f in alike}
    base = min(origins.values())
    unit = gcd(*units.values(), *(origin - base for origin in origins.values())) or 1
    day = 1 if isinstance(feature.dtype, pd.PeriodDtype) else DAY
    return Clock(
        {j: float(units[j] // unit) for j, _ in alike},
        {j: float((origins[j] - base) // unit) for j, _ in alike},
        day / unit,
        base,
        unit,
    )


def days_of(feature: Feature) -> tuple[float, float]:
    """Return factor and addend that turn an encoded duration into days."""
    tick = tick_nanoseconds(feature.dtype)
    return feature.unit * tick / DAY, feature.origin * tick / DAY
