"""The desired decision: which answers of a model are wanted (the paper's c, with y' = 1{f(x) in c}).

1. Resolve the decision once: a pair of numbers or an `Interval`, a class label, or a predicate on the rows.
2. Choose whom to ask. For an interval: `predict_proba`, else `decision_function`, else `predict`, else the
   model as a function. For a class label: `predict`, else the function. For a predicate: the predicate.
3. Ask about the rows and read the reply by position. Exceptions, wrong lengths, missing values are errors.
4. Find the score's column by its class label. The class is never guessed: without `of` it is class 1, and
   classes other than {0, 1}, {False, True} or {-1, 1} need `of`.
5. Compare with the interval or the label.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.asking.source import (
    BY_CLASS,
    WAY_OUT,
    Reply,
    Rows,
    Source,
    check_columns_are_classes,
    classes_of,
    equals,
    find_source,
    name_of,
    position_of,
)
from mcce.checks import is_number
from mcce.exceptions import InputError, spell, spell_all
from mcce.state import stateful

__all__ = ["Answer", "Decision", "Interval", "compare_answers", "resolve_decision"]

_BRACKETS = {"both": ("[", "]"), "left": ("[", ")"), "right": ("(", "]"), "neither": ("(", ")")}


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

    Examples
    --------
    >>> print(Interval(0.5, 1))
    [0.5, 1]
    >>> print(Interval(0, 0.1, closed="left", of="default"))
    score of class 'default' in [0, 0.1)
    """

    low: float
    high: float
    closed: str = "both"
    of: Hashable = None

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

    def contains(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return for each score whether it lies in the interval."""
        above = scores >= self.low if self.closed in ("both", "left") else scores > self.low
        below = scores <= self.high if self.closed in ("both", "right") else scores < self.high
        return np.asarray(above & below, dtype=bool)

    def bounds(self) -> str:
        """Return the interval without its class, as in "[0.5, 1)"."""
        left, right = _BRACKETS[self.closed]
        return f"{left}{self.low:.12g}, {self.high:.12g}{right}"

    def __str__(self) -> str:
        return self.bounds() if self.of is None else f"score of class {spell(self.of)} in {self.bounds()}"


@dataclass(frozen=True)
class Answer:
    """What a model said: for each row its score (number, label or boolean) and whether that is wanted."""

    scores: npt.NDArray[Any]
    wanted: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Decision(ABC):
    """A desired decision tied to the model that decides; made by `resolve_decision`."""

    source: Source
    score_type: ClassVar[type] = float

    def ask(self, frame: Rows, what: str) -> Answer:
        """Ask the model about every row of `frame`.

        Parameters
        ----------
        frame : DataFrame or array
            The rows, in the form that the model takes.
        what : str
            What the rows are, for messages: "the training rows", "the candidates".

        Raises
        ------
        ModelError
            If the model raises, or its reply has the wrong length, missing values or no usable meaning.
        """
        if len(frame) == 0:
            return Answer(np.empty(0, dtype=self.score_type), np.empty(0, dtype=bool))
        return self._read(self.source.ask(frame, what))

    @abstractmethod
    def describe(self) -> str:
        """Return the decision in words, as in "score of class 1 in [0.5, 1]"."""

    @abstractmethod
    def _read(self, reply: Reply) -> Answer: ...


def resolve_decision(decision: Any, model: Any) -> Decision:
    """Tie a desired decision to the model that decides.

    Parameters
    ----------
    decision : pair of numbers, Interval, callable or class label
        A pair is a closed interval of scores. A callable takes the rows and returns one boolean for each.
        Anything else is a class label: wanted are the rows for which the model predicts that class.
    model : object
        Has `predict_proba`, `decision_function` or `predict`, or is a function of the rows; may be None if
        the decision is a callable.

    Returns
    -------
    Decision

    Raises
    ------
    InputError
        If the decision is none of these, names a class unknown to the model, or leaves the class open.
    ModelError
        If the model cannot be asked.
    """
    if callable(decision):
        return _PredicateDecision(Source(decision, None, f"the predicate {name_of(decision)}"))
    if isinstance(decision, (tuple, list)):
        if len(decision) != 2 or not all(map(is_number, decision)):
            raise InputError(
                f"decision {decision!r} is not a pair of numbers. Give (low, high), inf for no bound; one "
                "class label; or, for several classes, a callable that returns one boolean per row."
            )
        decision = Interval(*decision)
    if isinstance(decision, Interval):
        return _resolve_interval(decision, model)
    # NaN and NA are not equal to themselves, so no prediction could be equal to them.
    if decision is None or not isinstance(decision, Hashable) or not equals(decision, decision):
        raise InputError(
            f"decision is {decision!r} (a {type(decision).__name__}); give (low, high), an Interval, a class "
            "label, or a callable that returns one boolean per row."
        )
    source, classes = find_source(model, ("predict",)), classes_of(model)
    if classes is not None:
        position_of(decision, classes, "decision")
    return _LabelDecision(source, decision, classes)


def compare_answers(
    first: Answer | npt.ArrayLike, second: Answer | npt.ArrayLike, labels: Iterable[Hashable]
) -> list[Hashable]:
    """Find the rows on which two answers of one model differ; for a deterministic model, none.

    Parameters
    ----------
    first, second : Answer or array of scores
        Two answers about the same rows.
    labels : iterable
        What to call each row.

    Returns
    -------
    list
        The labels of the rows that differ. Numbers are allowed their last bits (relative 1e-6, absolute
        1e-8), since the size of a batch changes the order of sums; labels and booleans must be equal.
    """
    one, two = (np.asarray(a.scores if isinstance(a, Answer) else a) for a in (first, second))
    if one.dtype.kind == "f" and two.dtype.kind == "f":
        same = np.isclose(one, two, rtol=1e-6, atol=1e-8)
    else:
        same = np.asarray(one.astype(object) == two.astype(object), dtype=bool)
    return [label for label, agrees in zip(labels, same, strict=True) if not agrees]


@dataclass(frozen=True)
class _ScoreDecision(Decision):
    """A score lies in an interval; it is of the class at `position` of `classes`, if there are any."""

    interval: Interval
    classes: list[Any] | None = None
    position: int = 0

    def describe(self) -> str:
        by_class, of = self.source.method in BY_CLASS, self.interval.of
        if self.classes is not None:
            of = self.classes[self.position]
        elif of is None and self.source.method == "predict_proba":
            of = 1
        whose = "" if of is None else f" of {'class' if by_class else 'column'} {spell(of)}"
        return f"score{whose} in {self.interval.bounds()}"

    def _read(self, reply: Reply) -> Answer:
        numbers = reply.numbers()
        if numbers.shape[1] == 1:
            scores = self._sign(reply) * numbers[:, 0]
        else:
            if self.source.method == "predict_proba":
                reply.check_sums(numbers)
            scores = numbers[:, self._column(reply)]
        reply.check_missing(np.isnan(scores))
        return Answer(scores, self.interval.contains(scores))

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
        if n_columns != len(self.classes):
            reply.refuse(
                f"returned {n_columns} columns for {len(self.classes)} classes ({spell_all(self.classes)}); "
                f"which is whose is unknown. {WAY_OUT}"
            )
        if reply.columns is not None and all(any(equals(c, name) for name in names) for c in self.classes):
            return position_of(self.classes[self.position], names, "of")
        return self.position


@dataclass(frozen=True)
class _LabelDecision(Decision):
    """The model predicts one class."""

    label: Hashable
    classes: list[Any] | None
    score_type: ClassVar[type] = object

    def describe(self) -> str:
        return f"predicted class {spell(self.label)}"

    def _read(self, reply: Reply) -> Answer:
        labels = reply.column("one class label").astype(object)
        for value in pd.unique(labels):
            if not self._is_possible(value):
                known = "" if self.classes is None else f" of {spell_all(self.classes)}"
                reply.refuse(
                    f"returned {spell(value)}, which is no class label like {spell(self.label)}{known}. "
                    "For a model that returns scores give an interval (low, high), else one of its labels."
                )
        return Answer(labels, np.asarray(labels == self.label, dtype=bool))

    def _is_possible(self, value: object) -> bool:
        """Tell labels from scores and text from codes: 0.73 is never class 1, nor is 1 ever class '1'."""
        if self.classes is not None:
            return any(equals(value, c) for c in self.classes)
        if isinstance(value, float) and not value.is_integer():
            return isinstance(self.label, float) and not self.label.is_integer()
        return isinstance(value, str) == isinstance(self.label, str)


@dataclass(frozen=True)
class _PredicateDecision(Decision):
    """A function of the rows says yes."""

    score_type: ClassVar[type] = bool

    def describe(self) -> str:
        return self.source.name.removeprefix("the ")

    def _read(self, reply: Reply) -> Answer:
        values = reply.column("one boolean")
        if values.dtype != bool and not all(isinstance(v, (bool, np.bool_)) for v in values):
            reply.refuse(f"returned {spell(values[0])}, not booleans. Compare within it, as in `scores >= 0.5`.")
        wanted = values.astype(bool)
        return Answer(wanted, wanted)


def _resolve_interval(interval: Interval, model: Any) -> _ScoreDecision:
    source = find_source(model, (*BY_CLASS, "predict"))
    classes = classes_of(model) if source.method in BY_CLASS else None
    if classes is None:
        return _ScoreDecision(source, interval)
    if source.method == "decision_function":
        check_columns_are_classes(model, classes)
    return _ScoreDecision(source, interval, classes, _wanted_class(interval, classes))


def _wanted_class(interval: Interval, classes: list[Any]) -> int:
    """Return the position of the interval's class: `of`, or class 1 of a pair such as 0 and 1."""
    if interval.of is not None:
        return position_of(interval.of, classes, "of")
    if len(classes) == 2 and set(classes) in ({0, 1}, {-1, 1}):  # equality: True is 1, the text "1" is not
        return classes.index(1)
    example = spell(classes[-1])
    raise InputError(
        f"the decision {interval} does not say of which class the score is (classes: {spell_all(classes)}). "
        f"Say it, as in Interval({interval.low:g}, {interval.high:g}, of={example}), or give the wanted "
        f"class itself, as in decision={example}."
    )
