"""Exact bounds on the last feature of a condition, given the values of the others.

1. A comparison bounds a feature that stands alone on one side, or in a sum, or in a product or quotient with constants:
   such a side is monotone in the feature, also with rounding, and the last float that satisfies the comparison is found
   by bisection. ``abs(...) <= 50`` is two such comparisons.
2. ``and`` intersects. ``or`` allows everything where a condition without the feature holds, elsewhere the numbers of
   the only other condition. ``if A then B else C`` needs A without the feature.
3. Levels are tried one by one. For other conditions on numbers the result is None, and the rule is checked on drawn
   rows.

Where a bound is returned, a value is allowed if, and only if, the condition holds with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.constraints.conditions import (
    ColumnValue,
    Compared,
    Computed,
    Condition,
    Conjunction,
    Constant,
    Disjunction,
    IsMissing,
    Value,
    Where,
    columns_read,
    reads,
)
from mcce.constraints.limits import everything, everything_where
from mcce.samplers.restricted import Within

LARGEST = np.array(np.finfo(np.float64).max).view(np.int64)  # position of the largest float
_TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def bounds_of(condition: Condition, column: int, rows: Floats, factuals: Floats) -> Within | None:
    """Return the values of a column for which the condition holds in each row; None if they cannot be derived."""
    n_levels = max((c.n_levels for c in columns_read(condition) if c.column == column and not c.was), default=0)
    if not n_levels:
        return _solve(condition, column, rows, factuals)
    tried = rows.copy()
    held = []
    for code in (*range(n_levels), np.nan):
        tried[:, column] = code
        held.append(condition.holds(tried, factuals))
    return Within(levels=np.column_stack(held[:-1]), missing=held[-1])


def _solve(node: Condition, column: int, rows: Floats, factuals: Floats) -> Within | None:
    """Return the numbers for which the condition holds in each row; None if they cannot be derived."""
    n = rows.shape[0]
    if not reads(node, column):
        return everything_where(node.holds(rows, factuals), 0)
    if isinstance(node, Compared):
        return _compared(node, column, rows, factuals)
    if isinstance(node, IsMissing):
        return Within(low=np.full(n, np.inf), high=np.full(n, -np.inf), missing=np.ones(n, dtype=bool))
    if isinstance(node, Conjunction):
        found = everything(n, 0)
        for within in (_solve(part, column, rows, factuals) for part in node.parts):
            if within is None:
                return None
            found = found & within
        return found
    if isinstance(node, Disjunction):
        first, *more = (part for part in node.parts if reads(part, column))
        left = None if more else _solve(first, column, rows, factuals)
        if left is None:
            return None
        others = np.zeros(n, dtype=bool)
        for part in node.parts:
            others |= False if part is first else part.holds(rows, factuals)
        return _where(others, everything(n, 0), left)
    if isinstance(node, Where) and not reads(node.condition, column):
        then, otherwise = (_solve(part, column, rows, factuals) for part in (node.then, node.otherwise))
        if then is None or otherwise is None:
            return None
        return _where(node.condition.holds(rows, factuals), then, otherwise)
    return None


def _compared(node: Compared, column: int, rows: Floats, factuals: Floats) -> Within | None:
    for target, sign, other in ((node.left, node.sign, node.right), (node.right, _TURNED[node.sign], node.left)):
        if _is_target(target, column) and not reads(other, column):
            assert isinstance(target, ColumnValue)
            return _bound(target, sign, other.of(rows, factuals))
        if isinstance(target, Computed) and reads(target, column) and not reads(other, column):
            return _computed(target, sign, other, column, rows, factuals)
    return None


def _computed(target: Computed, sign: str, other: Value, column: int, rows: Floats, factuals: Floats) -> Within | None:
    """Return the bounds of a feature from a side that is computed from it."""
    if target.function == "abs" and sign in ("<", "<="):
        (inner,) = target.parts
        sides = Compared(inner, sign, other), Compared(Computed("-", (Constant(0.0), other)), sign, inner)
        return _solve(Conjunction(sides), column, rows, factuals)
    rises = _slope(target, column)
    if not rises or sign == "!=":
        return None
    n = rows.shape[0]
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    tried = rows.copy()

    def holds(sign: str, times: float, values: Floats) -> Bools:
        tried[:, column] = times * values
        with np.errstate(over="ignore"):  # very large floats are tried
            return Compared(target, sign, other).holds(tried, factuals)

    for each in ("<=", ">=") if sign == "==" else (sign,):
        if (each[0] == "<") == (rises > 0):
            high = _last(partial(holds, each, 1.0), n)
        else:
            low = -_last(partial(holds, each, -1.0), n)
    return Within(low=low, high=high, missing=np.zeros(n, dtype=bool))


def _slope(value: Value, column: int) -> int:
    """Return 1 if a value is non-decreasing in a column, -1 if it is non-increasing, 0 if neither is known."""
    if _is_target(value, column):
        return 1
    if not isinstance(value, Computed) or value.function not in "+-*/":
        return 0
    left, right = value.parts
    if reads(left, column) and reads(right, column):
        return 0
    of_left, of_right = _slope(left, column), _slope(right, column)
    if value.function in "+-":
        return of_left or (of_right if value.function == "+" else -of_right)
    factor = right if of_left else left
    if not isinstance(factor, Constant) or (of_right and value.function == "/"):
        return 0
    return (of_left or of_right) * int(np.sign(factor.value))


def _last(holds: Callable[[Floats], Bools], n: int) -> Floats:
    """Return the largest float for which each row's condition, true below a bound, holds; -inf if for none."""
    most = np.full(n, LARGEST)
    low, high = -most, most.copy()  # positions of floats in ascending order
    for _ in range(64):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        held = holds(float_at(middle))
        low, high = np.where(held, middle, low), np.where(held, high, middle)
    found = np.where(holds(float_at(low)), float_at(low), -np.inf)
    return np.where(holds(float_at(most)), np.inf, found)


def float_at(places: Ints) -> Floats:
    """Return the floats at positions in ascending order; 0 is at 0."""
    return np.copysign(np.abs(places).view(np.float64), places)


def _is_target(value: Value, column: int) -> bool:
    return isinstance(value, ColumnValue) and value.column == column and not value.was and value.codes is None


def _bound(target: ColumnValue, sign: str, other: Floats) -> Within:
    n = other.size
    known = ~np.isnan(other)
    value = (other - target.plus) / target.times
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    if sign in ("==", ">="):
        low = value
    if sign in ("==", "<="):
        high = value
    if sign == ">":
        low = np.nextafter(value, np.inf)
    if sign == "<":
        high = np.nextafter(value, -np.inf)
    return Within(
        low=np.where(known, low, np.inf),
        high=np.where(known, high, -np.inf),
        missing=np.zeros(n, dtype=bool),
        never=value[:, None] if sign == "!=" else None,
    )


def _where(condition: Bools, then: Within, otherwise: Within) -> Within:
    """Return one restriction where a condition holds, another elsewhere."""
    n = condition.size
    assert then.missing is not None
    assert otherwise.missing is not None
    missing = np.where(condition, then.missing, otherwise.missing)
    low, high = (np.where(condition, a, b) for a, b in zip(then.bounds(n), otherwise.bounds(n)))
    never = None
    if then.never is not None or otherwise.never is not None:
        parts = ((then.never, condition), (otherwise.never, ~condition))
        never = np.hstack([np.where(rows[:, None], part, np.nan) for part, rows in parts if part is not None])
    return Within(low=low, high=high, missing=missing, never=never)
