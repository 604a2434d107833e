"""The wanted decision: the set c of the paper, with y' = 1{f(x) in c}.

A pair of numbers or an `Interval` is an interval of scores; a class label or a list of labels asks for predicted
classes; a function of a table returns one boolean a row. `read_decision` tells them apart: a tuple is an interval, a
list is a list of labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce._utils import Bools, is_number
from mcce.exceptions import InputError, listing

BRACKETS = {"both": ("[", "]"), "left": ("[", ")"), "right": ("(", "]"), "neither": ("(", ")")}


@dataclass(frozen=True)
class Interval:
    """An interval of scores.

    Parameters
    ----------
    low, high : float
        The ends; infinite for no bound.
    closed : {"both", "left", "right", "neither"}
        Which ends belong to the interval.
    of : hashable, optional
        The class that the score is of, as the model's `classes_` spells it, or the column of a `predict` with several.
        Needed unless the classes are {0, 1}, {False, True} or {-1, 1}, where the score is that of class 1.

    Examples
    --------
    >>> print(Interval(0.5, 1))
    score from 0.5 to 1
    >>> print(Interval(0, 0.1, closed="left", of="default"))
    score of class 'default' at least 0 and below 0.1
    """

    low: float
    high: float
    closed: str = field(default="both", kw_only=True)
    of: Hashable = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.closed, str) or self.closed not in BRACKETS:
            raise InputError(f"closed is {self.closed!r}; it must be one of {listing(BRACKETS)}.")
        for end, value in (("low", self.low), ("high", self.high)):
            if not is_number(value) or math.isnan(value):
                raise InputError(f"{end} of the interval is {value!r}; it must be a number, or inf for no bound.")
            object.__setattr__(self, end, float(value))
        if self.low > self.high:
            raise InputError(f"the interval from {self.low:g} to {self.high:g} has low > high; swap the ends.")
        if self.low == self.high and self.closed != "both":
            raise InputError(f"the interval {self.bounds()} is empty; a single score needs closed='both'.")

    def contains(self, scores: npt.NDArray[Any]) -> Bools:
        """Return which scores lie in the interval; NaN lies in none."""
        left, right = BRACKETS[self.closed]
        above = scores >= self.low if left == "[" else scores > self.low
        below = scores <= self.high if right == "]" else scores < self.high
        return np.asarray(above & below, dtype=np.bool_)

    def bounds(self) -> str:
        """Return the interval as brackets, as in "[0.5, 1)"; an infinite end is open."""
        left, right = BRACKETS[self.closed]
        left, right = "(" if self.low == -math.inf else left, ")" if self.high == math.inf else right
        return f"{left}{self.low:.12g}, {self.high:.12g}{right}"

    def phrase(self, *, probability: bool = False) -> str:
        """Return the requirement in words, as in "at least 0.5"; for a probability, 0 and 1 are not bounds."""
        left, right = BRACKETS[self.closed]
        open_below = self.low == -math.inf or (probability and (self.low < 0 or (self.low == 0 and left == "[")))
        open_above = self.high == math.inf or (probability and (self.high > 1 or (self.high == 1 and right == "]")))
        if self.low == self.high:
            return f"equal to {self.low:.12g}"
        if self.low == -math.inf and self.high == math.inf:
            return "any number"
        above = f"{'at least' if left == '[' else 'above'} {self.low:.12g}"
        below = f"{'at most' if right == ']' else 'below'} {self.high:.12g}"
        if open_below != open_above:
            return below if open_below else above
        return f"from {self.low:.12g} to {self.high:.12g}" if self.closed == "both" else f"{above} and {below}"

    def __str__(self) -> str:
        return f"score{'' if self.of is None else f' of class {self.of!r}'} {self.phrase()}"


@dataclass(frozen=True)
class Labels:
    """Wanted classes: rows for which the model predicts one of these labels."""

    labels: tuple[Any, ...]

    def __str__(self) -> str:
        return f"predicted class {' or '.join(repr(label) for label in self.labels)}"


@dataclass(frozen=True)
class Predicate:
    """A function of a table that returns one boolean a row: whether the row has the wanted decision."""

    function: Callable[[Any], Any]

    def __str__(self) -> str:
        return f"function {getattr(self.function, '__name__', type(self.function).__name__)}"


def read_decision(decision: Any) -> Interval | Labels | Predicate:
    """Return a wanted decision as the user may give it: a pair, an interval, a label, labels, or a function.

    Examples
    --------
    >>> read_decision((0.5, 1))
    Interval(low=0.5, high=1.0, closed='both', of=None)
    >>> read_decision(["paid", "paid late"])
    Labels(labels=('paid', 'paid late'))
    """
    if isinstance(decision, (Interval, Labels, Predicate)):
        return decision
    if isinstance(decision, pd.Interval):
        return Interval(decision.left, decision.right, closed=decision.closed)
    if isinstance(decision, tuple):
        if len(decision) != 2 or not all(map(is_number, decision)):
            raise InputError(
                f"decision is {decision!r}, which is not a pair of numbers. Give (low, high), inf for no bound; a "
                "class label; a list of labels; or a function of a table that returns one boolean a row."
            )
        return Interval(*decision)
    if isinstance(decision, list):
        return Labels(_distinct_labels(decision))
    if isinstance(decision, type):
        raise InputError(f"decision is the class {decision.__name__}; give a label, an interval or a function.")
    if callable(decision):
        return Predicate(decision)
    if not is_label(decision):
        raise InputError(
            f"decision is {decision!r} (a {type(decision).__name__}); give (low, high), a mcce.Interval, a class "
            "label, a list of labels, or a function of a table that returns one boolean a row."
        )
    return Labels((plain(decision),))


def _distinct_labels(labels: list[Any]) -> tuple[Any, ...]:
    """Return the labels of a list as a tuple; raise if there are none, or some are no labels or repeated."""
    if not labels:
        raise InputError("decision is an empty list; name at least one class label.")
    for i, label in enumerate(labels):
        if not is_label(label):
            raise InputError(f"decision holds {label!r}, which no prediction can equal; give class labels.")
        if any(equals(label, other) for other in labels[:i]):
            raise InputError(f"decision names the class {label!r} twice; name it once.")
    return tuple(plain(label) for label in labels)


def is_label(value: object) -> bool:
    """Return whether a value can be a class: hashable and equal to itself, unlike NaN and NA."""
    return value is not None and isinstance(value, Hashable) and equals(value, value)


def equals(one: Any, two: Any) -> bool:
    """Return whether two values are equal; values that cannot be compared are not."""
    try:
        return bool(one == two)
    except (TypeError, ValueError):
        return False


def plain(value: Any) -> Any:
    """Return a numpy scalar as the Python value."""
    return value.item() if isinstance(value, np.generic) else value
