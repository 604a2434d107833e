"""Rules ready to be asked: conditions on encoded rows and their factuals, vectorised.

1. A value is one number a row: a constant, a column of the row or of its factual, or computed from others. Levels are
   codes; dates are counted in a unit that all dates of a table share.
2. A condition is true or false. A comparison with a missing value is false, != too; so is one with what is computed
   from a missing value. A quotient by 0 is missing.
3. Every node says which columns it reads, of the row and of the factual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mcce.base.arrays import Bools, Floats


@dataclass(frozen=True)
class Constant:
    """The same number for all rows."""

    value: float

    def of(self, rows: Floats, factuals: Floats) -> Floats:
        """Return the value of each row."""
        return np.full(rows.shape[0], self.value)


@dataclass(frozen=True)
class ColumnValue:
    """A column of the row, or of its factual (`was`).

    Attributes
    ----------
    times, plus : what turns an encoded date into the shared unit.
    codes : the code in another column's levels of each own level; None: own codes.
    n_levels : number of levels, 0 for numbers.
    """

    column: int
    was: bool = False
    times: float = 1.0
    plus: float = 0.0
    codes: tuple[float, ...] | None = None
    n_levels: int = 0

    def of(self, rows: Floats, factuals: Floats) -> Floats:
        """Return the value of each row."""
        values = (factuals if self.was else rows)[:, self.column]
        if self.codes is not None:
            at = np.where(np.isnan(values), len(self.codes), values).astype(np.intp)
            return np.append(self.codes, np.nan)[at]
        return values if self.times == 1.0 and self.plus == 0.0 else values * self.times + self.plus


@dataclass(frozen=True)
class Computed:
    """A number computed from others: + - * / abs min max."""

    function: str
    parts: tuple[Value, ...]

    def of(self, rows: Floats, factuals: Floats) -> Floats:
        """Return the value of each row."""
        first, *others = (part.of(rows, factuals) for part in self.parts)
        with np.errstate(all="ignore"):
            if self.function == "abs":
                return np.abs(first)
            for other in others:
                first = _COMPUTE[self.function](first, other)
        return first


def _divide(a: Floats, b: Floats) -> Floats:
    return np.where(b == 0.0, np.nan, a / b)


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
Value = Constant | ColumnValue | Computed


def compare(left: Floats, sign: str, right: Floats) -> Bools:
    """Return whether a comparison holds; not where a value is missing."""
    held = _COMPARE[sign](left, right)
    return np.asarray(held & ~(np.isnan(left) | np.isnan(right)) if sign == "!=" else held)


@dataclass(frozen=True)
class Compared:
    """Two values compared."""

    left: Value
    sign: str
    right: Value

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        """Return in which rows the condition holds."""
        return compare(self.left.of(rows, factuals), self.sign, self.right.of(rows, factuals))


@dataclass(frozen=True)
class IsMissing:
    """Whether a column is missing."""

    value: ColumnValue

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        """Return in which rows the condition holds."""
        return np.isnan(self.value.of(rows, factuals))


@dataclass(frozen=True)
class Always:
    """True or false, whatever the row."""

    value: bool

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        """Return in which rows the condition holds."""
        return np.full(rows.shape[0], self.value)


@dataclass(frozen=True)
class Every:
    """Conditions that hold together."""

    parts: tuple[Condition, ...]

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        """Return in which rows the condition holds."""
        return np.asarray(np.all([part.holds(rows, factuals) for part in self.parts], axis=0))


@dataclass(frozen=True)
class Some:
    """Conditions of which at least one holds."""

    parts: tuple[Condition, ...]

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        """Return in which rows the condition holds."""
        return np.asarray(np.any([part.holds(rows, factuals) for part in self.parts], axis=0))


@dataclass(frozen=True)
class Opposite:
    """A condition that does not hold."""

    part: Condition

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        """Return in which rows the condition holds."""
        return ~self.part.holds(rows, factuals)


@dataclass(frozen=True)
class Where:
    """One condition where another holds, a third elsewhere."""

    condition: Condition
    then: Condition
    otherwise: Condition

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        """Return in which rows the condition holds."""
        then, otherwise = self.then.holds(rows, factuals), self.otherwise.holds(rows, factuals)
        return np.where(self.condition.holds(rows, factuals), then, otherwise)


Condition = Compared | IsMissing | Always | Every | Some | Opposite | Where


def columns_read(node: Value | Condition) -> Iterator[ColumnValue]:
    """Step 3: yield the columns that a value or condition reads."""
    if isinstance(node, ColumnValue):
        yield node
    parts: tuple[Value | Condition, ...] = ()
    if isinstance(node, (Computed, Every, Some)):
        parts = node.parts
    elif isinstance(node, Compared):
        parts = (node.left, node.right)
    elif isinstance(node, IsMissing):
        parts = (node.value,)
    elif isinstance(node, Opposite):
        parts = (node.part,)
    elif isinstance(node, Where):
        parts = (node.condition, node.then, node.otherwise)
    for part in parts:
        yield from columns_read(part)


def reads(node: Value | Condition, column: int) -> bool:
    """Return whether a value or condition reads a column of the row itself."""
    return any(found.column == column and not found.was for found in columns_read(node))
