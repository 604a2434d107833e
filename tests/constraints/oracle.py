"""Rules and limits in plain Python, one decoded value at a time; nothing is shared with `mcce.constraints`.

A rule is run by Python's own `eval` on `Cell`s, which know missing values and what has an order.
"""

import datetime
import math
from decimal import Decimal

import numpy as np
import pandas as pd

EDUCATION = ["none", "school", "college", "phd"]
JOBS = ["clerk", "cook", "pilot"]


def people(n=40, seed=0):
    """Return numbers, levels, ordered levels, booleans and dates, some missing; one label is no identifier."""
    rng = np.random.default_rng(seed)
    salary = pd.Series(np.round(rng.uniform(0, 50, n), 1))
    edu = pd.Series(pd.Categorical.from_codes(rng.integers(0, 4, n), categories=EDUCATION, ordered=True))
    return pd.DataFrame(
        {
            "age": rng.integers(18, 30, n),
            "salary": salary.mask(rng.random(n) < 0.2),
            "job": pd.Series(np.array(JOBS)[rng.integers(0, 3, n)], dtype=object).mask(rng.random(n) < 0.2),
            "edu": edu.mask(rng.random(n) < 0.2),
            "owner": rng.random(n) < 0.5,
            "hired": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 20, n) * 3, unit="D"),
            "left": pd.Timestamp("2020-01-11") + pd.to_timedelta(rng.integers(0, 40, n), unit="h"),
            "hours per week": pd.Series(rng.integers(0, 5, n) * 10.0).mask(rng.random(n) < 0.2),
        }
    )


def plain(value):
    """Return a value of Python, None if it is missing."""
    if value is None or value is pd.NaT or value != value:
        return None
    return value.item() if isinstance(value, np.generic) else value


class Cell:
    """A value of a row, or a constant."""

    def __init__(self, value):
        self.value = value

    def _key(self, other):
        """Return both values in comparable form, and whether they are known."""
        a, b = self.value, other.value if isinstance(other, Cell) else other
        if a is None or b is None:
            return None
        if isinstance(a, str) and a in EDUCATION and isinstance(b, str):
            return EDUCATION.index(a), EDUCATION.index(b)
        if isinstance(a, datetime.datetime) or isinstance(b, datetime.datetime):
            return pd.Timestamp(a), pd.Timestamp(b)
        return a, b

    def _compare(self, other, compare):
        both = self._key(other)
        return both is not None and compare(*both)

    def __eq__(self, other):
        return self._compare(other, lambda a, b: a == b)

    def __ne__(self, other):
        return self._compare(other, lambda a, b: a != b)

    def __lt__(self, other):
        return self._compare(other, lambda a, b: a < b)

    def __le__(self, other):
        return self._compare(other, lambda a, b: a <= b)

    def __gt__(self, other):
        return self._compare(other, lambda a, b: a > b)

    def __ge__(self, other):
        return self._compare(other, lambda a, b: a >= b)

    __hash__ = None

    def __bool__(self):
        return self.value is True

    def _compute(self, other, compute):
        both = self._key(other)
        if both is None:
            return Cell(None)
        if isinstance(both[0], datetime.datetime) and not isinstance(other, Cell):
            both = both[0], pd.Timestamp(other)
        try:
            found = compute(*both)
        except (ZeroDivisionError, OverflowError, ValueError):
            return Cell(None)
        if isinstance(found, pd.Timedelta):
            found = found / pd.Timedelta(days=1)
        return Cell(found if not isinstance(found, float) or math.isfinite(found) else None)

    def __add__(self, other):
        return self._compute(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self._compute(other, lambda a, b: a - b)

    def __mul__(self, other):
        return self._compute(other, lambda a, b: a * b)

    def __truediv__(self, other):
        return self._compute(other, lambda a, b: a / b)

    def __radd__(self, other):
        return Cell(other) + self

    def __rsub__(self, other):
        return Cell(other) - self

    def __rmul__(self, other):
        return Cell(other) * self

    def __rtruediv__(self, other):
        return Cell(other) / self

    def __neg__(self):
        return Cell(0.0) - self


def _cell(value):
    return value if isinstance(value, Cell) else Cell(value)


def _function(function):
    def called(*cells):
        values = [_cell(each).value for each in cells]
        return Cell(None) if None in values else Cell(float(function(*values)))

    return called


def _root(value):
    return math.sqrt(value) if value >= 0 else math.nan


FUNCTIONS = {
    "cell": Cell,
    "abs": _function(abs),
    "max": _function(max),
    "min": _function(min),
    "round": _function(round),
    "floor": _function(math.floor),
    "ceil": _function(math.ceil),
    "sqrt": lambda cell: Cell(None) if cell.value is None or cell.value < 0 else _function(_root)(cell),
    "missing": lambda cell: cell.value is None,
    "not_in": lambda cell, members: cell.value is not None and not any(cell == each for each in members),
    "days_later": lambda cell, days: Cell(cell.value + pd.Timedelta(days=days)),
}


def holds(code, rows, factuals):
    """Return whether a rule, compiled by Python, holds in each row."""
    found = []
    for (_, row), (_, factual) in zip(rows.iterrows(), factuals.iterrows()):
        cells = {str(name).replace(" ", "_"): Cell(plain(value)) for name, value in row.items()}
        was = {f"was_{str(name).replace(' ', '_')}": Cell(plain(value)) for name, value in factual.items()}
        found.append(bool(eval(code, {"__builtins__": {}}, {**FUNCTIONS, **cells, **was})))
    return np.array(found)


def position(value):
    """Return a value that can be subtracted and compared exactly."""
    if isinstance(value, str):
        return EDUCATION.index(value)
    return value if isinstance(value, pd.Timestamp) else Decimal(repr(value))


def obeys(limits, value, own):
    """Return whether a value satisfies `allow(..., **limits)` for a factual that has the value `own`."""
    value, own = plain(value), plain(own)
    limits_change = "direction" in limits or "max_step" in limits
    if value is None:
        stays = limits.get("direction") == "none" or limits.get("max_step") == 0
        return own is None or (bool(limits.get("missing")) and not stays)
    if "levels" in limits and value not in limits["levels"]:
        return False
    if "low" in limits and position(value) < position(limits["low"]):
        return False
    if "high" in limits and position(value) > position(limits["high"]):
        return False
    if limits_change and own is None:
        return False
    if value == own or not limits_change:
        return True
    if limits.get("direction") == "none":
        return False
    change = position(value) - position(own)
    zero = pd.Timedelta(0) if isinstance(change, pd.Timedelta) else 0
    if (limits.get("direction") == "increase" and change < zero) or (
        limits.get("direction") == "decrease" and change > zero
    ):
        return False
    largest = limits.get("max_step")
    return largest is None or abs(change) <= (largest if isinstance(largest, pd.Timedelta) else Decimal(repr(largest)))
