"""Query the model about tables and encoded rows, in blocks of bounded size.

`SpotCheck` keeps a few training rows with the model's answers, which are queried again with the factuals to detect a
model that is not deterministic. `CachedModel` queries no row twice. `TrainingTable` refers to the training rows
after `fit`, without a copy, and raises if they were changed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Bools, Floats
from mcce.exceptions import InputError, listing, spell_all, warn
from mcce.model.decisions import Answer, Decision, compare_answers
from mcce.rng import hash_rows
from mcce.table import Data, Schema
from mcce.table.checks import rows_of
from mcce.table.weights import read_weights
from mcce.wording import Either, Part, PythonOnly, Setting

QUERY_ROWS = 200_000  # rows per query
SPOT_ROWS = 16  # training rows that are queried again


class PredictsEncoded(Protocol):
    """A model that is queried with encoded rows."""

    def predict_encoded(self, rows: Floats) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return the scores of encoded rows, and which have the wanted decision."""


@dataclass(frozen=True)
class EncodedModel:
    """Queries the model for encoded rows."""

    decision: Decision
    schema: Schema

    def predict_encoded(self, rows: Floats) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return the scores of encoded candidates, and which have the wanted decision."""
        parts = [
            self.decision.evaluate(self.schema.decode_for_model(rows[i : i + QUERY_ROWS]), "candidates")
            for i in range(0, max(rows.shape[0], 1), QUERY_ROWS)
        ]
        answer = _join(parts)
        return answer.scores, answer.wanted


class CachedModel:
    """Queries a model once for each distinct row, from one thread at a time: a model need not be thread-safe.

    Answers are kept for the lifetime of this object: use one for each block of factuals.

    Parameters
    ----------
    question : the model.
    whole : another one, whose count includes the queries of this one, or None. Answers are not shared, so the rows of a
        query do not depend on other threads.
    """

    def __init__(self, question: PredictsEncoded, whole: CachedModel | None = None) -> None:
        self.n_queried = 0
        self._question, self._whole = question, whole
        self._lock: threading.Lock = threading.Lock() if whole is None else whole._lock
        self._place: dict[int, int] = {}  # of the answer about a row, by its hash
        self._scores: npt.NDArray[Any] = np.empty(0)
        self._wanted = np.empty(0, dtype=bool)

    def predict_encoded(self, rows: Floats) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return the scores of encoded rows, and which have the wanted decision."""
        keys = hash_rows(rows)
        places = np.fromiter(map(self._place.get, keys.tolist(), repeat(-1)), dtype=np.int64, count=keys.size)
        new = np.flatnonzero(places < 0)
        if new.size:
            code, distinct = pd.factorize(keys[new])
            first = np.empty(distinct.size, dtype=np.int64)
            first[code[::-1]] = new[::-1]
            with self._lock:
                scores, wanted = self._question.predict_encoded(rows[first])
                self._count(first.size)
            places[new] = len(self._place) + code
            self._add(distinct.tolist(), scores, wanted)
        return self._scores[places], self._wanted[places]

    def remember(self, other: CachedModel) -> None:
        """Take over the answers of another one, which is not used any more."""
        new = {key: place for key, place in other._place.items() if key not in self._place}
        places = list(new.values())
        self._add(new, other._scores[places], other._wanted[places])

    def _add(self, keys: Iterable[int], scores: npt.NDArray[Any], wanted: Bools) -> None:
        first = len(self._place)
        self._place.update(zip(keys, range(first, first + wanted.size)))
        self._scores = np.concatenate([self._scores, scores]) if first else scores
        self._wanted = np.append(self._wanted, wanted)

    def _count(self, n_rows: int) -> None:
        self.n_queried += n_rows
        if self._whole is not None:
            self._whole._count(n_rows)


def predict_table(decision: Decision, X: Data, what: str = "the training rows") -> Answer:
    """Query the model for the user's training table, or another one of its kind."""
    n = len(X)
    if isinstance(X, np.ndarray):
        X = X.copy()  # a model that works in place must not change the user's table
    if n <= QUERY_ROWS:
        return decision.evaluate(X, what)
    return _join([decision.evaluate(rows_of(X, slice(i, i + QUERY_ROWS)), what) for i in range(0, n, QUERY_ROWS)])


def check_wanted(decision: Decision, answer: Answer) -> None:
    if answer.wanted.any():
        return
    seen = ""
    if answer.scores.size and answer.scores.dtype.kind == "f":
        seen = f" (the scores go from {answer.scores.min():.4g} to {answer.scores.max():.4g})"
    elif answer.scores.size:
        seen = f" (the answers are {listing(sorted({str(s) for s in answer.scores}))})"
    raise InputError(
        f"no training row has the wanted decision, {decision.describe()}{seen}: there is nothing "
        "to learn it from. Check the decision",
        Either((", or set ", Setting("condition_on_decision", False))),
        ".",
    )


@dataclass(frozen=True)
class SpotCheck:
    """A few training rows spread over the table: positions, encoded rows, and the model's answers."""

    positions: npt.NDArray[np.intp]
    rows: Floats
    answer: Answer

    def compare(self, again: Answer) -> None:
        """Warn if the model's answers have changed."""
        labels = [int(i) for i in self.positions]
        differing = compare_answers(self.answer, again, labels)
        if differing:
            warn(
                f"the model answered differently when {len(differing)} of {len(labels)} training rows were queried "
                f"again (those at positions {spell_all(differing, 5)}): it is not deterministic, or it depends on the "
                "other rows of the table. The method needs a deterministic model; counterfactuals may not hold "
                "when queried again.",
            )

    def compare_models(self, decision: Decision, schema: Schema) -> None:
        """Warn if the model differs from the one that the explainer was fitted with."""
        if not len(self.rows):
            return
        again = decision.evaluate(schema.decode_for_model(self.rows), "some training rows")
        differing = compare_answers(self.answer, again, range(len(self.rows)))
        if differing:
            warn(
                f"the model answers {len(differing)} of {len(self.rows)} training rows differently than the one that "
                "the explainer was fitted with. Its fitted parts belong to that model; load it with that one, or fit "
                "again."
            )

    def is_of(self, X: Data, schema: Schema) -> bool:
        """Return whether a table still holds these rows at their positions."""
        if len(X) <= self.positions[-1]:
            return False
        now = schema.encode(rows_of(X, self.positions), "the training rows").matrix
        return bool(np.array_equal(now, self.rows, equal_nan=True))


def spot_positions(n: int) -> npt.NDArray[np.intp]:
    """Return the positions of a few rows spread over a table."""
    return np.unique(np.linspace(0, max(n - 1, 0), SPOT_ROWS).astype(np.intp))


def _join(parts: list[Answer]) -> Answer:
    scores: npt.NDArray[Any] = np.concatenate([part.scores for part in parts])
    return Answer(scores, np.concatenate([part.wanted for part in parts]))


AGAIN = "Fit again."


@dataclass
class TrainingTable:
    """The table that was given to `fit`.

    Attributes
    ----------
    table : the user's table; None in a loaded explainer.
    schema : its columns.
    decision : the wanted decision, bound to the model.
    spots : some of its rows, and the model's answers about them.
    answered : which rows have the wanted decision; None if not queried yet.
    reach : by column the lowest and highest value that is not far outside; None if not computed.
    weights : of the rows, or None; rows of weight 0 are not in the table.
    scores : the model's scores; None if not queried yet, or in a loaded explainer.
    """

    table: Data | None
    schema: Schema
    decision: Decision
    spots: SpotCheck
    answered: Bools | None = None
    reach: Floats | None = None
    weights: Floats | None = None
    scores: npt.NDArray[Any] | None = None

    def known_table(self) -> Data | None:
        """Return the table given to `fit`, or None if it is not available; raise if it was modified."""
        if self.table is not None and not self.spots.is_of(self.table, self.schema):
            raise InputError(
                "the training table has been changed since the fit. Fit again, with a copy if the table must change",
                PythonOnly("; diagnose and trade_off also take the training rows as `training`"),
                ".",
            )
        return self.table

    def matrix(self, otherwise: Part = AGAIN, *, needed_by: str = "") -> Floats:
        """Return the encoded rows; if they are not available, raise with the remedy `otherwise` for `needed_by`."""
        return self.schema.encode(self._needed(otherwise, needed_by), "the training rows").matrix

    def relative_weights(self) -> Floats | None:
        """Return the relative weights of the rows (`mcce.table.weights`), or None."""
        return None if self.weights is None else read_weights(self.weights, self.weights.size, warn=False)

    def wanted(self) -> Bools:
        return self.answer().wanted if self.answered is None else self.answered

    def answer(self) -> Answer:
        if self.answered is None or self.scores is None:
            answer = predict_table(self.decision, self._needed(AGAIN))
            self.answered, self.scores = answer.wanted, answer.scores
        return Answer(self.scores, self.answered)

    def _needed(self, otherwise: Part, needed_by: str = "") -> Data:
        table = self.known_table()
        if table is None:
            prefix = f"{needed_by}: " if needed_by else ""
            raise InputError(
                f"{prefix}training rows are not stored with an explainer, and are needed here. ", otherwise
            )
        return table

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the user's training table.

        A saved explainer still holds training values: the fixed values and decisions of all rows, the values of donors,
        and many whole rows. Anyone with access to the file can read them.
        """
        return {**vars(self), "table": None, "scores": None}
