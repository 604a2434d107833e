"""What a model said of rows, and what every decision can do: ask about rows, and say in words what is wanted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mcce.asking.source import Reply, Rows, Source
from mcce.checks import is_number
from mcce.exceptions import InputError


@dataclass(frozen=True)
class Answer:
    """What a model said: for each row its score (number, label or boolean) and whether that is wanted."""

    scores: npt.NDArray[Any]
    wanted: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Decision(ABC):
    """A desired decision tied to whoever decides; made by `resolve_decision`."""

    score_type: ClassVar[type] = float

    def ask(self, frame: Rows, what: str) -> Answer:
        """Ask about every row of `frame`.

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
        return self._ask(frame, what)

    def shortfall(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
        """Return how far scores are from the wanted decision; None if that has no measure."""
        return None

    def ends(self) -> tuple[float, ...]:
        """Return the finite scores at which the decision changes, if it is about scores."""
        return ()

    @abstractmethod
    def describe(self) -> str:
        """Return the decision in words, as in "probability of class 1 at least 0.5"."""

    @abstractmethod
    def _ask(self, frame: Rows, what: str) -> Answer: ...


@dataclass(frozen=True)
class SourceDecision(Decision):
    """A decision that is read from the reply of one source."""

    source: Source

    def _ask(self, frame: Rows, what: str) -> Answer:
        return self._read(self.source.ask(frame, what))

    @abstractmethod
    def _read(self, reply: Reply) -> Answer: ...


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


def check_margin(margin: Any) -> float:
    """Return a margin as a float: a finite number that is not negative."""
    if not is_number(margin) or not 0 <= margin < float("inf"):
        raise InputError(f"margin is {margin!r}; it must be a number, 0 or more, as in margin=0.05.")
    return float(margin)


def check_label(label: Any) -> None:
    """Refuse words for a decision that are no text, or empty."""
    if label is not None and (not isinstance(label, str) or not label.strip()):
        raise InputError(f"label is {label!r}; give the decision in a few words, or None for ours.")


def with_margin(words: str, margin: float) -> str:
    """Return the words of a decision with those of its margin, if it has one."""
    return f"{words}, with a margin of {margin:.12g}" if margin else words
