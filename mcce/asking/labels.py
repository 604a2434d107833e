"""Wanted classes: one, one of several, or any but some; where asked for, ahead of the others by a margin.

1. Ask `predict`, else the model as a function; the prediction is the label. Models that only give labels will do.
2. Wanted are the rows whose label is one of the wanted ones, or none of the unwanted ones.
3. With a margin, ask `predict_proba` too: the likeliest wanted class has to lead the likeliest other one by it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.asking.answer import Answer, SourceDecision, check_label, check_margin, with_margin
from mcce.asking.interval import column_of_class
from mcce.asking.source import Reply, Rows, Source, classes_of, equals, find_source, position_of
from mcce.exceptions import InputError, ModelError, spell, spell_all
from mcce.state import stateful

ROUNDING = 1e-9  # a lead that falls short of the margin by no more than this has it: 0.6 - 0.4 < 0.2 in floats


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
                f"{name} names no class; give one or more, as in {name}('paid') or {name}(['paid', 'due'])."
            )
        for i, value in enumerate(labels):
            if not is_label(value):
                raise InputError(f"{name} holds {value!r} (a {type(value).__name__}), which no prediction can equal.")
            if any(equals(value, other) for other in labels[:i]):
                raise InputError(f"{name} names the class {spell(value)} twice; name it once.")
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
        How much more probable the likeliest of them has to be than the likeliest other class; more than 0 needs a model
        with `predict_proba`.
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
        How much more probable the likeliest other class has to be than the likeliest of these; more than 0 needs a
        model with `predict_proba`.
    label : str, optional
        The decision in your own words, for sentences, tables, pages and plots.

    Examples
    --------
    >>> Not("refused")
    Not('refused')
    """


@dataclass(frozen=True)
class LabelDecision(SourceDecision):
    """The model predicts one of some labels, or, for a `Not`, any other; `lead` is asked for probabilities, if any."""

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

    def _ask(self, frame: Rows, what: str) -> Answer:
        answer = self._read(self.source.ask(frame, what))
        if self.lead is None:
            return answer
        ahead = self._leads(self.lead.ask(frame, what)) >= self.wanted.margin - ROUNDING
        return Answer(answer.scores, answer.wanted & ahead)

    def _read(self, reply: Reply) -> Answer:
        labels = reply.column("one class label").astype(object)
        codes, values = pd.factorize(labels)
        for value in values:
            if not self._is_possible(value):
                known = "" if self.classes is None else f" of {spell_all(self.classes)}"
                reply.refuse(
                    f"returned {spell(value)}, which is no class label like {spell(self.wanted.classes[0])}{known}. "
                    "For a model that returns scores give an interval (low, high), else one of its labels."
                )
        return Answer(labels, self._are_wanted(values)[codes])

    def _leads(self, reply: Reply) -> npt.NDArray[np.float64]:
        """Return how much more probable the likeliest wanted class is than the likeliest other one."""
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
        """Tell labels from scores and text from codes: 0.73 is never class 1, nor is 1 ever class '1'."""
        if self.classes is not None:
            return any(equals(value, c) for c in self.classes)
        return any(_is_alike(value, label) for label in self.wanted.classes)


def is_label(value: object) -> bool:
    """Say whether a value can be a class: hashable and equal to itself, which NaN and NA are not."""
    return value is not None and isinstance(value, Hashable) and equals(value, value)


def resolve_labels(wanted: OneOf | Not, model: Any, parameter: str = "decision") -> LabelDecision:
    """Tie wanted classes to the model that predicts them; `parameter` is what gave them."""
    source, classes = find_source(model, ("predict",)), classes_of(model)
    if classes is not None:
        named = {position_of(label, classes, parameter) for label in wanted.classes}
        if isinstance(wanted, Not) and len(named) == len(classes):
            raise InputError(
                f"{wanted!r} leaves none of the model's classes ({spell_all(classes)}); name fewer of them."
            )
    if not wanted.margin:
        return LabelDecision(source, wanted, classes)
    lead = find_source(model, ("predict_proba",)) if hasattr(model, "predict_proba") else None
    if lead is None or classes is None:
        raise ModelError(
            f"{wanted!r} has a margin, but the model (a {type(model).__name__}) has no "
            f"{'predict_proba' if lead is None else 'classes_'} to compare the classes by. Leave the margin out, or "
            "give an Interval of its scores with a margin."
        )
    return LabelDecision(source, wanted, classes, lead)


def _is_alike(value: object, label: object) -> bool:
    if isinstance(value, float) and not value.is_integer():
        return isinstance(label, float) and not label.is_integer()
    return isinstance(value, str) == isinstance(label, str)
