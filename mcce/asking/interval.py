"""An interval of scores: the paper's c for regressions, probabilities, margins of a classifier, costs and utilities.

1. Choose whom to ask: `predict_proba`, else `decision_function`, else `predict`, else the model as a function.
2. Find the score's column by its class label. The class is never guessed: without `of` it is class 1, and classes
   other than {0, 1}, {False, True} or {-1, 1} need `of`.
3. Move the ends inwards by the margin: those that are finite, and of a probability those between 0 and 1, since
   nobody is on the wrong side of probability 1.
4. Compare the scores with the interval.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.asking.answer import Answer, SourceDecision, check_label, check_margin, with_margin
from mcce.asking.source import (
    BY_CLASS,
    WAY_OUT,
    Reply,
    Source,
    check_columns_are_classes,
    classes_of,
    equals,
    find_source,
    position_of,
)
from mcce.checks import is_number
from mcce.exceptions import InputError, spell, spell_all
from mcce.state import stateful

_BRACKETS = {"both": ("[", "]"), "left": ("[", ")"), "right": ("(", "]"), "neither": ("(", ")")}
_NOUNS = {"predict_proba": "probability", "decision_function": "score", "predict": "prediction"}


@stateful("Interval")
@dataclass(frozen=True)
class Interval:
    """An interval of scores.

    Parameters
    ----------
    low, high : float
        The ends; may be infinite.
    closed : {"both", "left", "right", "neither"}
        Which ends belong to the interval.
    of : hashable, optional
        The class that the score is of, as the model's `classes_` spells it; the column, for a `predict` that
        returns several. Needed unless the classes are {0, 1}, {False, True} or {-1, 1}.
    margin : float
        How far inside the interval a score has to be: the finite ends move inwards by it. A probability cannot pass 0
        or 1, so these two ends stay; of other scores, write inf for an end that nothing can pass.
    label : str, optional
        The decision in your own words, for sentences, tables, pages and plots.

    Examples
    --------
    >>> print(Interval(0.5, 1))
    score from 0.5 to 1
    >>> print(Interval(0, 0.1, closed="left", of="default"))
    score of class 'default' at least 0 and below 0.1
    >>> print(Interval(float("-inf"), 100))
    score at most 100
    >>> print(Interval(0, 0.1, of="default", label="probability of default at most 10 %"))
    probability of default at most 10 %
    """

    low: float
    high: float
    closed: str = "both"
    of: Hashable = None
    margin: float = 0.0
    label: str | None = None

    def __post_init__(self) -> None:
        if self.closed not in list(_BRACKETS):  # a list is compared, not hashed
            raise InputError(f"closed is {self.closed!r}; it must be one of {spell_all(_BRACKETS)}.")
        for end, value in (("low", self.low), ("high", self.high)):
            if not is_number(value) or math.isnan(value):
                raise InputError(f"{end} of the interval is {value!r}; it must be a number (inf is, NaN is not).")
            object.__setattr__(self, end, float(value))
        if self.low > self.high:
            raise InputError(f"the interval from {self.low:g} to {self.high:g} has low > high; swap the ends.")
        if self.low == self.high and self.closed != "both":
            raise InputError(f"the interval {self.bounds()} is empty; a single score needs closed='both'.")
        object.__setattr__(self, "margin", check_margin(self.margin))
        check_label(self.label)

    def contains(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return for each score whether it lies in the interval, whatever the margin."""
        above = scores >= self.low if self.closed in ("both", "left") else scores > self.low
        below = scores <= self.high if self.closed in ("both", "right") else scores < self.high
        return np.asarray(above & below, dtype=bool)

    def inside(self, *, probability: bool = False) -> Interval:
        """Return the interval with its ends moved inwards by the margin; `probability` says that 0 and 1 are no ends.

        The sums are those of the decimals as written, so that 0.1 with a margin of 0.2 is 0.3.
        """
        if not self.margin:
            return self
        low, high = self.low, self.high
        if math.isfinite(low) and not (probability and low <= 0):
            low = float(Decimal(repr(low)) + Decimal(repr(self.margin)))
        if math.isfinite(high) and not (probability and high >= 1):
            high = float(Decimal(repr(high)) - Decimal(repr(self.margin)))
        if low > high or (low == high and self.closed != "both"):
            raise InputError(
                f"the interval {self.bounds()} with a margin of {self.margin:.12g} is empty: its ends become "
                f"{low:.12g} and {high:.12g}. Give a smaller margin, or inf for an end that no score can pass."
            )
        return replace(self, low=low, high=high, margin=0.0)

    def bounds(self) -> str:
        """Return the interval without its class, as in "[0.5, 1)"; an infinite end is open."""
        left, right = _BRACKETS[self.closed]
        left, right = "(" if self.low == -math.inf else left, ")" if self.high == math.inf else right
        return f"{left}{self.low:.12g}, {self.high:.12g}{right}"

    def phrase(self, *, probability: bool = False) -> str:
        """Return what a score has to be, as in "at least 0.5"; of a probability, 0 and 1 alone are no bounds."""
        left, right = _BRACKETS[self.closed]
        is_open_below = self.low == -math.inf or (probability and (self.low < 0 or (self.low == 0 and left == "[")))
        is_open_above = self.high == math.inf or (probability and (self.high > 1 or (self.high == 1 and right == "]")))
        if self.low == self.high:
            return f"equal to {self.low:.12g}"
        if self.low == -math.inf and self.high == math.inf:
            return "any number"
        below = f"{'at most' if right == ']' else 'below'} {self.high:.12g}"
        above = f"{'at least' if left == '[' else 'above'} {self.low:.12g}"
        if is_open_below != is_open_above:
            return below if is_open_below else above
        return f"from {self.low:.12g} to {self.high:.12g}" if self.closed == "both" else f"{above} and {below}"

    def __str__(self) -> str:
        if self.label is not None:
            return self.label
        whose = "" if self.of is None else f" of class {spell(self.of)}"
        return with_margin(f"score{whose} {self.phrase()}", self.margin)


@dataclass(frozen=True)
class ScoreDecision(SourceDecision):
    """A score lies in an interval; it is of the class at `position` of `classes`, if there are any.

    `inside` is what is left of the interval by its margin.
    """

    interval: Interval
    inside: Interval
    classes: list[Any] | None = None
    position: int = 0

    def describe(self) -> str:
        if self.interval.label is not None:
            return self.interval.label
        by_class, of = self.source.method in BY_CLASS, self.interval.of
        if self.classes is not None:
            of = self.classes[self.position]
        elif of is None and self.source.method == "predict_proba":
            of = 1
        whose = "" if of is None else f" of {'class' if by_class else 'column'} {spell(of)}"
        asked = self.interval.phrase(probability=self.source.method == "predict_proba")
        return with_margin(f"{_noun(self.source)}{whose} {asked}", self.interval.margin)

    def ends(self) -> tuple[float, ...]:
        return tuple(end for end in (self.inside.low, self.inside.high) if math.isfinite(end))

    def shortfall(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
        return np.maximum(np.maximum(self.inside.low - scores, scores - self.inside.high), 0.0)

    def _read(self, reply: Reply) -> Answer:
        numbers = reply.numbers()
        if numbers.shape[1] == 1:
            scores = self._sign(reply) * numbers[:, 0]
        else:
            if self.source.method == "predict_proba":
                reply.check_sums(numbers)
            scores = numbers[:, self._column(reply)]
        reply.check_missing(np.isnan(scores))
        return Answer(scores, self.inside.contains(scores))

    def _sign(self, reply: Reply) -> int:
        """Read one number per row: it is of the second class; of class 1, or of none, without classes."""
        of, probability = self.interval.of, self.source.method == "predict_proba"
        if self.classes is None:
            if of is None or (probability and equals(of, 1)) or reply.columns == [of]:
                return 1
            reply.refuse(f"returned one score per row, which is not known to be of {spell(of)}. Leave out `of`.")
        if self.position == len(self.classes) - 1 <= 1:
            return 1
        if len(self.classes) == 2 and not probability:
            return -1
        reply.refuse(
            f"returned one score per row for the classes {spell_all(self.classes)}; it can only be that of the "
            f"last of two, and {spell(self.classes[self.position])} is not. {WAY_OUT}"
        )

    def _column(self, reply: Reply) -> int:
        """Find the column of a class: by the reply's own names, else by `classes`, else by position."""
        n_columns = reply.values.shape[1]
        names = list(range(n_columns)) if reply.columns is None else reply.columns
        if self.source.method not in BY_CLASS and self.interval.of is None:
            example = f"Interval({self.interval.low:g}, {self.interval.high:g}, of={spell(names[-1])})"
            reply.refuse(f"returned {n_columns} columns ({spell_all(names)}). Say which one, as in {example}.")
        if self.classes is None:
            return _wanted_class(self.interval, names)
        return column_of_class(reply, self.classes, self.position)


def resolve_interval(interval: Interval, model: Any) -> ScoreDecision:
    """Tie an interval to the model whose score it is about."""
    source = find_source(model, (*BY_CLASS, "predict"))
    inside = interval.inside(probability=source.method == "predict_proba")
    classes = classes_of(model) if source.method in BY_CLASS else None
    if classes is None:
        return ScoreDecision(source, interval, inside)
    if source.method == "decision_function":
        check_columns_are_classes(model, classes)
    return ScoreDecision(source, interval, inside, classes, _wanted_class(interval, classes))


def column_of_class(reply: Reply, classes: list[Any], position: int) -> int:
    """Return the column of the class at `position`: by the reply's own names, else by position."""
    n_columns = reply.values.shape[1]
    if n_columns != len(classes):
        reply.refuse(
            f"returned {n_columns} columns for {len(classes)} classes ({spell_all(classes)}); "
            f"which is whose is unknown. {WAY_OUT}"
        )
    names = reply.columns
    if names is not None and all(any(equals(c, name) for name in names) for c in classes):
        return position_of(classes[position], names, "of")
    return position


def _noun(source: Source) -> str:
    """Return what a source's numbers are called: by the method, or by the function's own name."""
    if source.method is not None:
        return _NOUNS[source.method]
    name = getattr(source.model, "__name__", "<lambda>")
    return "score" if name == "<lambda>" else str(name)


def _wanted_class(interval: Interval, classes: list[Any]) -> int:
    """Return the position of the interval's class: `of`, or class 1 of a pair such as 0 and 1."""
    if interval.of is not None:
        return position_of(interval.of, classes, "of")
    if len(classes) == 2 and set(classes) in ({0, 1}, {-1, 1}):  # equality: True is 1, the text "1" is not
        return classes.index(1)
    example = spell(classes[-1])
    raise InputError(
        f"the decision, a {interval}, does not say of which class the score is (classes: {spell_all(classes)}). "
        f"Say it, as in Interval({interval.low:g}, {interval.high:g}, of={example}), or give the wanted "
        f"class itself, as in decision={example}."
    )
