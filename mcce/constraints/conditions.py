"""Conditions of rules on encoded rows and their factuals, vectorised.

A value is one number for each row; levels are codes, and dates are counted in a common unit. A comparison with a
missing value is false, also `!=`. A quotient by 0, and a function where it is undefined, is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class Constant:
    """The same number for all rows."""

    value: float

    def of(self, rows: Floats, factuals: Floats) -> Floats:
        return np.full(rows.shape[0], self.value)


@dataclass(frozen=True)
class ColumnValue:
    """A column of the row, or of its factual (`was`).

    Attributes
    ----------
    times, plus : factor and addend that convert an encoded date to the common unit.
    codes : the code of each level in another column's levels; None: own codes.
    n_levels : number of levels, 0 for numbers.
    """

    column: int
    was: bool = False
    times: float = 1.0
    plus: float = 0.0
    codes: tuple[float, ...] | None = None
    n_levels: int = 0

    def of(self, rows: Floats, factuals: Floats) -> Floats:
        values = (factuals if self.was else rows)[:, self.column]
        if self.codes is not None:
            at = np.where(np.isnan(values), len(self.codes), values).astype(np.intp)
            return np.append(self.codes, np.nan)[at]
        return values if self.times == 1.0 and self.plus == 0.0 else values * self.times + self.plus


@dataclass(frozen=True)
class Computed:
    """A number computed from others: by + - * / or a function."""

    function: str
    parts: tuple[Value, ...]

    def of(self, rows: Floats, factuals: Floats) -> Floats:
        first, *others = (part.of(rows, factuals) for part in self.parts)
        with np.errstate(all="ignore"):
            if not others:
                return _FUNCTIONS[self.function](first)
            for other in others:
                first = _COMPUTE[self.function](first, other)
        return first


@dataclass(frozen=True)
class Rounded:
    """A number rounded to some decimals.

    Attributes
    ----------
    function : "round" (half to even, as numpy rounds), "floor", "ceil", or "trunc" (towards 0).
    """

    function: str
    value: Value
    decimals: int = 0

    def of(self, rows: Floats, factuals: Floats) -> Floats:
        return round_by(self.function, self.value.of(rows, factuals), self.decimals)


@dataclass(frozen=True)
class Chosen:
    """One value where a condition holds, another elsewhere."""

    condition: Condition
    then: Value
    otherwise: Value

    def of(self, rows: Floats, factuals: Floats) -> Floats:
        then, otherwise = self.then.of(rows, factuals), self.otherwise.of(rows, factuals)
        return np.where(self.condition.holds(rows, factuals), then, otherwise)


@dataclass(frozen=True)
class Elapsed:
    """Completed months or years from one date to another; negative if the second date is the earlier one.

    A month is completed when the day of the month and the time of day of the first date are reached again, a year when
    its month is as well: from 31 January a month is completed on 1 March, from 29 February a year on 29 February or 1
    March.

    Attributes
    ----------
    months : 1 for months, 12 for years.
    begin, end : dates in a common unit.
    base, unit : origin and unit of the dates, in nanoseconds since 1970.
    zone : the time zone in which days are counted; None for dates without one.
    """

    months: int
    begin: Value
    end: Value
    base: int
    unit: int
    zone: Any = None

    def of(self, rows: Floats, factuals: Floats) -> Floats:
        begin, end = self.begin.of(rows, factuals), self.end.of(rows, factuals)
        known = ~(np.isnan(begin) | np.isnan(end))
        found = np.full(begin.size, np.nan)
        if known.any():
            first, last = np.minimum(begin, end)[known], np.maximum(begin, end)[known]
            (from_month, from_rest), (to_month, to_rest) = self._calendar(first), self._calendar(last)
            passed = (to_month - from_month - (to_rest < from_rest)) // self.months
            found[known] = np.where(end[known] >= begin[known], passed, -passed) + 0.0
        return found

    def _calendar(self, dates: Floats) -> tuple[Ints, Ints]:
        """Return the months since 1970 of dates, and the nanoseconds since the beginning of the month."""
        import pandas as pd

        stamps = (dates.astype(np.int64) * self.unit + self.base).view("M8[ns]")
        if self.zone is not None:
            stamps = pd.DatetimeIndex(stamps).tz_localize("UTC").tz_convert(self.zone).tz_localize(None).to_numpy()
        months = stamps.astype("M8[M]")
        return months.astype(np.int64), (stamps - months.astype("M8[ns]")).astype(np.int64)


def round_by(function: str, values: Floats, decimals: int) -> Floats:
    """Return numbers rounded to some decimals; the relative tolerance of floor, ceil and trunc is 1e-9."""
    with np.errstate(all="ignore"):
        if function == "round":
            return np.round(values, decimals) + 0.0
        scaled = values * 10.0**decimals if decimals >= 0 else values / 10.0**-decimals
        nearest = np.rint(scaled)
        whole = np.where(np.abs(scaled - nearest) <= 1e-9 * np.maximum(1.0, np.abs(scaled)), nearest, scaled)
        whole = _WHOLE[function](whole)
        return (whole / 10.0**decimals if decimals >= 0 else whole * 10.0**-decimals) + 0.0


def _divide(a: Floats, b: Floats) -> Floats:
    return np.where(b == 0.0, np.nan, a / b)


def _finite(function: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """Return a function whose value is missing where it is not finite."""

    def computed(values: Floats) -> Floats:
        found = function(values)
        return np.where(np.isfinite(found), found, np.nan)

    return computed


_WHOLE: dict[str, Callable[[Floats], Floats]] = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}
_FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {
    "abs": np.abs,
    "exp": _finite(np.exp),
    "log": _finite(np.log),
    "sqrt": _finite(np.sqrt),
}
_COMPUTE: dict[str, Callable[[Floats, Floats], Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divide,
    "min": np.minimum,
    "max": np.maximum,
}
_COMPARE = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
Value = Constant | ColumnValue | Computed | Rounded | Chosen | Elapsed


def compare(left: Floats, sign: str, right: Floats) -> Bools:
    """Return whether a comparison holds; False where a value is missing."""
    held = _COMPARE[sign](left, right)
    return np.asarray(held & ~(np.isnan(left) | np.isnan(right)) if sign == "!=" else held)


@dataclass(frozen=True)
class Compared:
    """A comparison of two values."""

    left: Value
    sign: str
    right: Value

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        return compare(self.left.of(rows, factuals), self.sign, self.right.of(rows, factuals))


@dataclass(frozen=True)
class IsMissing:
    """Whether a column is missing."""

    value: ColumnValue

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        return np.isnan(self.value.of(rows, factuals))


@dataclass(frozen=True)
class ConstantCondition:
    """A constant condition."""

    value: bool

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        return np.full(rows.shape[0], self.value)


@dataclass(frozen=True)
class Conjunction:
    """The conjunction of conditions."""

    parts: tuple[Condition, ...]

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        return np.asarray(np.all([part.holds(rows, factuals) for part in self.parts], axis=0))


@dataclass(frozen=True)
class Disjunction:
    """The disjunction of conditions."""

    parts: tuple[Condition, ...]

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        return np.asarray(np.any([part.holds(rows, factuals) for part in self.parts], axis=0))


@dataclass(frozen=True)
class Complement:
    """The negation of a condition."""

    part: Condition

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        return ~self.part.holds(rows, factuals)


@dataclass(frozen=True)
class Where:
    """One condition where another holds, a third elsewhere."""

    condition: Condition
    then: Condition
    otherwise: Condition

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        then, otherwise = self.then.holds(rows, factuals), self.otherwise.holds(rows, factuals)
        return np.where(self.condition.holds(rows, factuals), then, otherwise)


Condition = Compared | IsMissing | ConstantCondition | Conjunction | Disjunction | Complement | Where


def columns_read(node: Value | Condition) -> Iterator[ColumnValue]:
    """Yield the columns that a value or condition reads."""
    if isinstance(node, ColumnValue):
        yield node
        return
    for part in vars(node).values():
        for each in part if isinstance(part, tuple) else (part,):
            if is_dataclass(each):
                yield from columns_read(each)  # type: ignore[arg-type]


def reads(node: Value | Condition, column: int) -> bool:
    """Return whether a value or condition reads a column of the row itself."""
    return any(found.column == column and not found.was for found in columns_read(node))
