"""The wanted decision: which answers of a model are wanted (the paper's c, with y' = 1{f(x) in c}).

1. A decision is a pair of numbers or an `Interval`; a class label, `OneOf` or `Not`; `Several` models; or a predicate
   on rows. `resolve_decision` resolves it once.
2. An interval queries `predict_proba`, else `decision_function`, else `predict`, else the model as a function; class
   labels query `predict`. The column of the score is found by its class: without `of` class 1 of {0, 1}, {False, True}
   or {-1, 1}; other classes need `of`.
3. A margin moves finite ends of an interval inwards (of a probability those between 0 and 1). For classes, the most
   probable wanted class must lead the most probable other one by the margin.
4. `Several` resolves each model with its decision; all, a majority or a share must accept. The score is the share.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.checks import check, is_number
from mcce.exceptions import InputError, MCCEError, ModelError, spell, spell_all
from mcce.model.source import (
    BY_CLASS,
    REMEDY,
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
from mcce.storage.state import stateful
from mcce.wording import Either, Parameter, PythonOnly, Setting, Value, Values, call

__all__ = ["Answer", "Decision", "Interval", "Not", "OneOf", "Several", "compare_answers", "resolve_decision"]


@dataclass(frozen=True)
class Answer:
    """The answer of a model: for each row its score (number, label or boolean) and whether that is wanted."""

    scores: npt.NDArray[Any]
    wanted: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Decision(ABC):
    """A wanted decision bound to its model; created by `resolve_decision`."""

    score_type: ClassVar[type] = float

    def evaluate(self, frame: Rows, what: str) -> Answer:
        """Query the model for every row of `frame`.

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
        return self._evaluate(frame, what)

    def shortfall(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
        """Return how far scores are from the wanted decision; None if this is undefined."""
        return None

    def ends(self) -> tuple[float, ...]:
        """Return the finite scores at which the decision changes, if the decision is an interval of scores."""
        return ()

    def bounds(self) -> tuple[float, float] | None:
        """Return the lowest and the highest wanted score; None if the decision is not an interval of scores."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """Return the decision in words, as in "probability of class 1 at least 0.5"."""

    @abstractmethod
    def _evaluate(self, frame: Rows, what: str) -> Answer: ...


def compare_answers(
    first: Answer | npt.ArrayLike, second: Answer | npt.ArrayLike, labels: Iterable[Hashable]
) -> list[Hashable]:
    """Return the rows for which two answers of one model differ; none for a deterministic model.

    Parameters
    ----------
    first, second : Answer or array of scores
        Two answers about the same rows.
    labels : iterable
        Labels of the rows.

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


def check_margin(margin: Any) -> float:
    """Return a margin as a float: a finite number that is not negative."""
    fits = is_number(margin) and 0 <= margin < float("inf")
    check(fits, margin, "margin", "it must be a number, 0 or more, as in ", Setting("margin", 0.05), ".")
    return float(margin)


def check_label(label: Any) -> None:
    """Raise if the label of a decision is empty or not a text."""
    fits = label is None or (isinstance(label, str) and label.strip())
    check(fits, label, "label", "give the decision in a few words, or ", Value(None), " for the default words.")


def with_margin(words: str, margin: float) -> str:
    return f"{words}, with a margin of {margin:.12g}" if margin else words


_BRACKETS = {"both": ("[", "]"), "left": ("[", ")"), "right": ("(", "]"), "neither": ("(", ")")}
MOST_DIGITS = 6  # of a bound in words
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
        How far inside the interval a score must be: finite ends move inwards by the margin. For probabilities the ends
        0 and 1 stay; for other scores, use inf for an end without a bound.
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
        known = self.closed in list(_BRACKETS)  # a list is compared, not hashed
        check(known, self.closed, "closed", f"it must be one of {spell_all(_BRACKETS)}.")
        for end, value in (("low", self.low), ("high", self.high)):
            if not is_number(value) or math.isnan(value):
                raise InputError(
                    f"{end} of the interval is ",
                    Value(value),
                    "; it must be a number, or ",
                    Value(math.inf),
                    " or ",
                    Value(-math.inf),
                    " for no bound.",
                )
            object.__setattr__(self, end, float(value))
        if self.low > self.high:
            raise InputError(f"the interval from {self.low:g} to {self.high:g} has low > high; swap the ends.")
        if self.low == self.high and self.closed != "both":
            raise InputError(
                f"the interval {self.bounds()} is empty; ",
                Either(
                    ("a single score needs ", Setting("closed", "both")),
                    "an interval of a single score includes both ends",
                ),
                ".",
            )
        object.__setattr__(self, "margin", check_margin(self.margin))
        check_label(self.label)

    def contains(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return for each score whether it lies in the interval, regardless of the margin."""
        above = scores >= self.low if self.closed in ("both", "left") else scores > self.low
        below = scores <= self.high if self.closed in ("both", "right") else scores < self.high
        return np.asarray(above & below, dtype=bool)

    def inside(self, *, probability: bool = False) -> Interval:
        """Return the interval with its ends moved inwards by the margin; with `probability`, 0 and 1 are not moved.

        The sums are computed in decimal arithmetic: 0.1 with a margin of 0.2 is 0.3.
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
                f"the interval {self.bounds()} with a margin of {self.margin:.12g} is empty: its ends "
                f"become {low:.12g} and {high:.12g}. Give a smaller margin, or ",
                Value(math.inf),
                " for an end that no score can pass.",
            )
        return replace(self, low=low, high=high, margin=0.0)

    def bounds(self) -> str:
        """Return the interval without its class, as in "[0.5, 1)"; an infinite end is open."""
        left, right = _BRACKETS[self.closed]
        left, right = "(" if self.low == -math.inf else left, ")" if self.high == math.inf else right
        return f"{left}{self.low:.12g}, {self.high:.12g}{right}"

    def phrase(self, *, probability: bool = False) -> str:
        """Return the requirement on a score, as in "at least 0.5"; for a probability, 0 and 1 are not bounds."""
        left, right = _BRACKETS[self.closed]
        is_open_below = self.low == -math.inf or (probability and (self.low < 0 or (self.low == 0 and left == "[")))
        is_open_above = self.high == math.inf or (probability and (self.high > 1 or (self.high == 1 and right == "]")))
        if self.low == self.high:
            return f"equal to {self.low:.12g}"
        if self.low == -math.inf and self.high == math.inf:
            return "any number"
        low, high = _short_bound(self.low, ROUND_CEILING), _short_bound(self.high, ROUND_FLOOR)
        if float(low) >= float(high):
            low, high = f"{self.low:.12g}", f"{self.high:.12g}"
        below = f"{'at most' if right == ']' else 'below'} {high}"
        above = f"{'at least' if left == '[' else 'above'} {low}"
        if is_open_below != is_open_above:
            return below if is_open_below else above
        return f"from {low} to {high}" if self.closed == "both" else f"{above} and {below}"

    def __str__(self) -> str:
        if self.label is not None:
            return self.label
        whose = "" if self.of is None else f" of class {spell(self.of)}"
        return with_margin(f"score{whose} {self.phrase()}", self.margin)


def _short_bound(bound: float, rounding: str) -> str:
    """Return a bound with at most six digits, rounded towards the inside of the interval."""
    exact = f"{bound:.12g}"
    if not math.isfinite(bound) or len(Decimal(exact).normalize().as_tuple().digits) <= MOST_DIGITS:
        return exact
    return f"{float(Context(prec=MOST_DIGITS, rounding=rounding).create_decimal(exact)):.12g}"


@dataclass(frozen=True)
class ScoreDecision(Decision):
    """A score lies in an interval; it is of the class at `position` of `classes`, if there are any.

    `inside` is what is left of the interval by its margin.
    """

    source: Source
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
        condition = self.interval.phrase(probability=self.source.method == "predict_proba")
        return with_margin(f"{_noun(self.source)}{whose} {condition}", self.interval.margin)

    def ends(self) -> tuple[float, ...]:
        return tuple(end for end in (self.inside.low, self.inside.high) if math.isfinite(end))

    def bounds(self) -> tuple[float, float] | None:
        return self.inside.low, self.inside.high

    def shortfall(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
        return np.maximum(np.maximum(self.inside.low - scores, scores - self.inside.high), 0.0)

    def _evaluate(self, frame: Rows, what: str) -> Answer:
        reply = self.source.query(frame, what)
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
        """Read one number per row: the score of the second class; without classes, of class 1 or of no class."""
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
            f"last of two, and {spell(self.classes[self.position])} is not. {REMEDY}"
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
    """Bind an interval to the model that gives the score."""
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
            f"which is whose is unknown. {REMEDY}"
        )
    names = reply.columns
    if names is not None and all(any(equals(c, name) for name in names) for c in classes):
        return position_of(classes[position], names, "of")
    return position


def _noun(source: Source) -> str:
    """Return the name of a source's numbers: by the method, or by the function's name."""
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
    ends = [int(end) if end.is_integer() else end for end in (interval.low, interval.high)]
    raise InputError(
        f"the decision, a {interval}, does not say of which class the score is (classes: ",
        Values(classes),
        "). Say it, as in ",
        call("mcce.Interval", *ends, of=classes[-1]),
        ", or give the wanted class itself, as in ",
        Setting("decision", classes[-1]),
        ".",
    )


ROUNDING = 1e-9  # tolerance of a lead: 0.6 - 0.4 < 0.2 in floats


@dataclass(frozen=True, repr=False)
class _Classes:
    """Some classes of a model, as its `classes_` spells them."""

    classes: Any
    margin: float = 0.0
    label: str | None = None

    def __post_init__(self) -> None:
        given, name = self.classes, type(self).__name__
        several = isinstance(given, (list, tuple, set, frozenset, np.ndarray, pd.Index, pd.Series))
        labels = list(given) if several else [given]
        if isinstance(given, (set, frozenset)):
            labels.sort(key=spell)  # the order of a set of texts differs from one process to the next
        if not labels:
            raise InputError(
                Value(type(self)),
                " names no class; give one or more, as in ",
                call(f"mcce.{name}", "paid"),
                " or ",
                call(f"mcce.{name}", ["paid", "due"]),
                ".",
            )
        for i, value in enumerate(labels):
            if not is_label(value):
                raise InputError(
                    Value(type(self)),
                    " holds ",
                    Value(value),
                    PythonOnly(f" (a {type(value).__name__})"),
                    ", which no prediction can equal; give class labels.",
                )
            if any(equals(value, other) for other in labels[:i]):
                raise InputError(Value(type(self)), " names the class ", Value(value), " twice; name it once.")
        object.__setattr__(self, "classes", tuple(labels))
        object.__setattr__(self, "margin", check_margin(self.margin))
        check_label(self.label)

    def __repr__(self) -> str:
        classes = spell(self.classes[0]) if len(self.classes) == 1 else f"[{spell_all(self.classes)}]"
        margin = f", margin={self.margin:g}" if self.margin else ""
        label = "" if self.label is None else f", label={self.label!r}"
        return f"{type(self).__name__}({classes}{margin}{label})"


@stateful("OneOf")
@dataclass(frozen=True, repr=False)
class OneOf(_Classes):
    """The wanted decision is one of these classes.

    Parameters
    ----------
    classes : hashable or list of them
        The wanted classes, as the model's `classes_` spells them.
    margin : float
        Required lead of the most probable of these classes over the most probable other class; more than 0 needs a
        model with `predict_proba`.
    label : str, optional
        The decision in your own words, for sentences, tables, pages and plots.

    Examples
    --------
    >>> OneOf(["paid", "paid late"])
    OneOf(['paid', 'paid late'])
    >>> OneOf("paid", margin=0.1)
    OneOf('paid', margin=0.1)
    """


@stateful("Not")
@dataclass(frozen=True, repr=False)
class Not(_Classes):
    """The wanted decision is any class but these.

    Parameters
    ----------
    classes : hashable or list of them
        The unwanted classes, as the model's `classes_` spells them.
    margin : float
        Required lead of the most probable other class over the most probable of these; more than 0 needs a model with
        `predict_proba`.
    label : str, optional
        The decision in your own words, for sentences, tables, pages and plots.

    Examples
    --------
    >>> Not("refused")
    Not('refused')
    """


@dataclass(frozen=True)
class LabelDecision(Decision):
    """The model predicts one of some labels, or, for a `Not`, any other; `lead` gives probabilities, if needed."""

    source: Source
    wanted: OneOf | Not
    classes: list[Any] | None
    lead: Source | None = None
    score_type: ClassVar[type] = object

    def describe(self) -> str:
        if self.wanted.label is not None:
            return self.wanted.label
        listed = " or ".join(spell(label) for label in self.wanted.classes)
        words = f"any class but {listed}" if isinstance(self.wanted, Not) else f"predicted class {listed}"
        return with_margin(words, self.wanted.margin)

    def _evaluate(self, frame: Rows, what: str) -> Answer:
        reply = self.source.query(frame, what)
        labels = reply.column("one class label").astype(object)
        codes, values = pd.factorize(labels)
        for value in values:
            if not self._is_possible(value):
                known = "" if self.classes is None else (" of ", Values(self.classes))
                reply.refuse(
                    "returned ",
                    Value(value),
                    ", which is not a class label like ",
                    Value(self.wanted.classes[0]),
                    known,
                    ". For a model that returns scores give an interval, else one of its labels.",
                )
        wanted = self._are_wanted(values)[codes]
        if self.lead is not None:
            wanted &= self._leads(self.lead.query(frame, what)) >= self.wanted.margin - ROUNDING
        return Answer(labels, wanted)

    def _leads(self, reply: Reply) -> npt.NDArray[np.float64]:
        """Return the lead of the most probable wanted class over the most probable other class."""
        assert self.classes is not None
        probabilities = reply.numbers()
        columns = [column_of_class(reply, self.classes, k) for k in range(len(self.classes))]
        reply.check_missing(np.asarray(np.isnan(probabilities).any(axis=1)))
        reply.check_sums(probabilities)
        is_wanted = self._are_wanted(self.classes)
        by_class = probabilities[:, columns]
        lead: npt.NDArray[np.float64] = by_class[:, is_wanted].max(axis=1)
        lead -= by_class[:, ~is_wanted].max(axis=1, initial=0.0)
        return lead

    def _are_wanted(self, values: Iterable[object]) -> npt.NDArray[np.bool_]:
        named = np.array([any(equals(value, label) for label in self.wanted.classes) for value in values], dtype=bool)
        return ~named if isinstance(self.wanted, Not) else named

    def _is_possible(self, value: object) -> bool:
        """Distinguish labels from scores and text from codes: 0.73 is never class 1, nor is 1 ever class '1'."""
        if self.classes is not None:
            return any(equals(value, c) for c in self.classes)
        return any(_is_alike(value, label) for label in self.wanted.classes)


def is_label(value: object) -> bool:
    """Return whether a value can be a class: hashable and equal to itself, unlike NaN and NA."""
    return value is not None and isinstance(value, Hashable) and equals(value, value)


def resolve_labels(wanted: OneOf | Not, model: Any) -> LabelDecision:
    """Bind wanted classes to the model that predicts them."""
    source, classes = find_source(model, ("predict",)), classes_of(model)
    if classes is not None:
        named = {position_of(label, classes, "decision") for label in wanted.classes}
        if isinstance(wanted, Not) and len(named) == len(classes):
            raise InputError(
                Value(wanted), " leaves none of the model's classes (", Values(classes), "); name fewer of them."
            )
    if not wanted.margin:
        return LabelDecision(source, wanted, classes)
    lead = find_source(model, ("predict_proba",)) if hasattr(model, "predict_proba") else None
    if lead is None or classes is None:
        raise ModelError(
            Value(wanted),
            f" has a margin, but the model (a {type(model).__name__}) has no ",
            Either(PythonOnly("predict_proba" if lead is None else "classes_"), "probabilities"),
            " to compare the classes by. Leave the margin out, or give an interval of its scores with a margin.",
        )
    return LabelDecision(source, wanted, classes, lead)


def _is_alike(value: object, label: object) -> bool:
    if isinstance(value, float) and not value.is_integer():
        return isinstance(label, float) and not label.is_integer()
    return isinstance(value, str) == isinstance(label, str)


@dataclass(frozen=True, repr=False)
class Several:
    """Several models, each with its own wanted decision, for ``MCCE(None, decision=Several(...))``.

    Parameters
    ----------
    models : list of pairs, or dict of name to pair
        Each pair is a model and a decision, as `MCCE` takes them. Texts use the names; by default, the classes of the
        models.
    agree : "all", "majority" or float
        How many models must accept: all of them, more than half of them, or at least this share.
    label : str, optional
        The decision in your own words, for sentences, tables, pages and plots.

    Examples
    --------
    >>> def profit(rows):
    ...     return rows["income"] - rows["cost"]
    >>> def rating(rows):
    ...     return rows["points"].map(lambda points: "A" if points > 9 else "B")
    >>> Several([(profit, (0, float("inf"))), (rating, "A")])
    Several(profit, rating, agree='all')
    """

    models: Any
    agree: Any = "all"
    label: str | None = None

    def __post_init__(self) -> None:
        given = self.models
        is_named = isinstance(given, Mapping)
        if not is_named and not isinstance(given, (list, tuple)):
            raise InputError(
                f"Several holds a {type(given).__name__}; give a list of pairs (model, decision), or a dict of such "
                "pairs by name."
            )
        pairs = list(given.values()) if is_named else list(given)
        if not pairs:
            raise InputError("Several holds no model; give at least one pair (model, decision).")
        for place, pair in enumerate(pairs):
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                where = f"under {list(given)[place]!r}" if is_named else f"at place {place}"
                raise InputError(f"Several holds {pair!r} {where}; give a pair (model, decision).")
        names = (
            [str(name) for name in given]
            if is_named
            else [name_of(decision if model is None else model) for model, decision in pairs]
        )
        object.__setattr__(self, "models", tuple((name, *pair) for name, pair in zip(names, pairs, strict=True)))
        share = is_number(self.agree) and 0 < self.agree <= 1
        if not share and not (isinstance(self.agree, str) and self.agree in ("all", "majority")):
            raise InputError(
                f"agree is {self.agree!r}; it must be 'all', 'majority', or a share of the models, above 0 and at most "
                "1, as in 2/3."
            )
        check_label(self.label)

    @property
    def needed(self) -> int:
        """The number of models that must accept."""
        n = len(self.models)
        if self.agree == "all":
            return n
        return (
            n // 2 + 1 if self.agree == "majority" else math.ceil(float(self.agree) * n - ROUNDING)
        )  # 0.7 of 10 models are 7, though 0.7 * 10 > 7 in some floats

    def __repr__(self) -> str:
        label = "" if self.label is None else f", label={self.label!r}"
        return f"Several({', '.join(name for name, _, _ in self.models)}, agree={self.agree!r}{label})"


@dataclass(frozen=True)
class SeveralDecision(Decision):
    """A decision that holds if enough of several decisions hold."""

    several: Several
    decisions: tuple[Decision, ...]

    def describe(self) -> str:
        if self.several.label is not None:
            return self.several.label
        n, needed = len(self.decisions), self.several.needed
        who = f"at least {needed} of {n} models" if needed < n else f"all {n} models" if n > 1 else "one model"
        names = [name for name, _, _ in self.several.models]
        each = [f"{name}: {decision.describe()}" for name, decision in zip(names, self.decisions, strict=True)]
        return f"yes from {who} [{'; '.join(each)}]"

    def shortfall(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
        return np.asarray(1.0 - scores, dtype=np.float64)

    def _evaluate(self, frame: Rows, what: str) -> Answer:
        n_accepting = sum(decision.evaluate(frame, what).wanted.astype(np.int64) for decision in self.decisions)
        count = np.asarray(n_accepting)
        return Answer(count / len(self.decisions), count >= self.several.needed)


def resolve_several(several: Several, model: Any) -> SeveralDecision:
    """Bind each decision to its own model."""
    if model is not None:
        raise InputError(
            f"the decision {several!r} names its own models, but the model is a {type(model).__name__}; give "
            "model=None, and this model as one of the pairs."
        )
    decisions = []
    for name, each, decision in several.models:
        try:
            decisions.append(resolve_decision(decision, each))
        except MCCEError as err:
            raise type(err)(f"{name}, one of {len(several.models)} models in Several: ", *err.args) from err
    return SeveralDecision(several, tuple(decisions))


@dataclass(frozen=True)
class PredicateDecision(Decision):
    """A decision given by a function of the rows."""

    source: Source
    score_type: ClassVar[type] = bool

    def describe(self) -> str:
        return self.source.name.removeprefix("the ")

    def _evaluate(self, frame: Rows, what: str) -> Answer:
        reply = self.source.query(frame, what)
        values = reply.column("one boolean")
        if values.dtype != bool and not all(isinstance(v, (bool, np.bool_)) for v in values):
            reply.refuse("returned ", Value(values[0]), ", not booleans. Compare within it, as in `scores >= 0.5`.")
        wanted = values.astype(bool)
        return Answer(wanted, wanted)


def resolve_decision(decision: Any, model: Any) -> Decision:
    """Bind a wanted decision to its model.

    Parameters
    ----------
    decision : pair of numbers, Interval, pandas Interval, class label, OneOf, Not, Several or callable
        A pair is a closed interval of scores. A callable takes the rows and returns one boolean for each.
        Anything else is a class label: wanted are the rows for which the model predicts that class.
    model : object
        Has `predict_proba`, `decision_function` or `predict`, or is a function of the rows; may be None if
        the decision is a callable, and is None if it is a `Several`.

    Returns
    -------
    Decision

    Raises
    ------
    InputError
        If the decision is none of these, names a class unknown to the model, or leaves the class open.
    ModelError
        If the model cannot be queried.
    """
    if isinstance(model, Several):
        raise InputError(f"the model is {model!r}, which is a decision; give model=None and decision=Several(...).")
    if isinstance(decision, Several):
        return resolve_several(decision, model)
    if isinstance(decision, (OneOf, Not)):
        return resolve_labels(decision, model)
    if callable(decision):
        return PredicateDecision(Source(decision, None, f"the predicate {name_of(decision)}"))
    if isinstance(decision, (tuple, list)):
        if len(decision) != 2 or not all(map(is_number, decision)):
            raise InputError(
                Parameter("decision"),
                " ",
                Value(decision),
                " is not a pair of numbers. Give ",
                Either(
                    PythonOnly(
                        "(low, high), inf for no bound; one class label; for several classes, OneOf([...]) or "
                        "Not([...]); or a callable that returns one boolean per row"
                    ),
                    "an interval or class labels",
                ),
                ".",
            )
        decision = Interval(*decision)
    if isinstance(decision, pd.Interval):
        decision = Interval(decision.left, decision.right, closed=decision.closed)
    if isinstance(decision, Interval):
        return resolve_interval(decision, model)
    if not is_label(decision):
        raise InputError(
            Parameter("decision"),
            " is ",
            Value(decision),
            PythonOnly(f" (a {type(decision).__name__})"),
            "; give ",
            Either(
                PythonOnly(
                    "(low, high), an Interval, a class label, OneOf, Not, Several, or a callable that returns one "
                    "boolean per row"
                ),
                "an interval or class labels",
            ),
            ".",
        )
    return resolve_labels(OneOf([decision]), model)
