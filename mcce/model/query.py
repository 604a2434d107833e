"""Query the model about encoded rows: which have the wanted decision, and how far inside they are.

1. `bind` resolves a decision to its model: a score in an interval, a predicted label, or a function of a table.
2. A `Query` decodes encoded rows to the kind of table that the model was trained on, asks in parts of 200,000 rows,
   and keeps the answers: no row is asked twice, except by `confirm`. Rows are found by a hash and then compared.

The margin of a score is its distance from the nearer end of the interval, negative outside. An end beyond which no
training row lies does not count: no probability is above 1. The margin of labels is the probability of the most
probable wanted class minus that of the most probable other one. Otherwise there is none (NaN).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import RLock
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import uint64

from mcce._utils import Bools, Floats, Ints, blocks, jit
from mcce.exceptions import InputError, listing, spell
from mcce.model.decision import Interval, Labels, Predicate, equals, read_decision
from mcce.model.source import Reply, Source, check_exclusive, classes_of, find_class, read_model
from mcce.rng import hash_rows
from mcce.table import Schema

QUERY_ROWS = 200_000  # rows of one call of the model
ASKING = RLock()  # of all queries in a process: a model need not be thread-safe


@dataclass(frozen=True)
class Answer:
    """The answer of the model for each row.

    Attributes
    ----------
    prediction : the score (float), the label (object) or the boolean of a function.
    wanted : whether the row has the wanted decision.
    margin : how far inside the decision it is, negative outside; NaN if the decision has no margin.
    """

    prediction: npt.NDArray[Any]
    wanted: Bools
    margin: Floats

    def take(self, rows: Any) -> Answer:
        """Return the answers of some rows."""
        return Answer(self.prediction[rows], self.wanted[rows], self.margin[rows])


@dataclass(frozen=True)
class ScoreDecision:
    """A score lies in an interval; it is of the class at `position` of `classes`, if there are any."""

    source: Source
    interval: Interval
    classes: list[Any] | None
    position: int
    low: float  # ends that count for the margin
    high: float

    @classmethod
    def bind(cls, interval: Interval, model: Any, predictions: npt.NDArray[Any] | None) -> ScoreDecision:
        """Return the decision; `predictions` are the scores of the training rows, if known."""
        source = read_model(model, interval)
        by_class = source.method in ("predict_proba", "decision_function")
        classes = classes_of(model) if by_class else None
        if classes is not None and source.method == "decision_function":
            check_exclusive(model, classes)
        low, high = interval.low, interval.high
        if predictions is not None:
            scores = np.asarray(predictions, dtype=np.float64)
            low, high = low if (scores < low).any() else -np.inf, high if (scores > high).any() else np.inf
        elif source.method == "predict_proba":
            low, high = low if low > 0 else -np.inf, high if high < 1 else np.inf
        position = 0 if classes is None else _class_of(interval, classes)
        return cls(source, interval, classes, position, low, high)

    @property
    def text(self) -> str:
        """The decision in words, as in "probability of class 1 at least 0.5"."""
        nouns = {"predict_proba": "probability", "decision_function": "score", "predict": "prediction"}
        name = getattr(self.source.model, "__name__", "<lambda>")
        noun = nouns[self.source.method] if self.source.method else "score" if name == "<lambda>" else name
        of = self.interval.of if self.classes is None else self.classes[self.position]
        if of is None and self.source.method == "predict_proba":
            of = 1
        kind = "class" if self.source.method in ("predict_proba", "decision_function") else "column"
        whose = "" if of is None else f" of {kind} {of!r}"
        return f"{noun}{whose} {self.interval.phrase(probability=self.source.method == 'predict_proba')}"

    def answer(self, frame: Any, what: str) -> Answer:
        """Query the model for every row of a table."""
        reply = self.source.query(frame, what)
        scores = self._one_score(reply) if reply.values.shape[1] == 1 else self._one_column(reply)
        reply.check_missing(np.isnan(scores))
        if math.isinf(self.low) and math.isinf(self.high):
            margin = np.full(scores.shape, np.nan)
        else:
            above = scores - self.low if np.isfinite(self.low) else np.inf
            margin = np.minimum(above, self.high - scores) if np.isfinite(self.high) else np.asarray(above)
        return Answer(scores, self.interval.contains(scores), margin)

    def _one_score(self, reply: Reply) -> Floats:
        """Read one number per row: the score of the second of two classes, or of the model's only output."""
        scores, of = reply.numbers()[:, 0], self.interval.of
        if self.classes is None:
            is_class_1 = self.source.method == "predict_proba" and equals(of, 1)
            if of is not None and not is_class_1 and reply.columns != [of]:
                reply.refuse(f"returned one score per row, which is not known to be of {of!r}. Leave out `of`.")
            return scores
        if self.position == len(self.classes) - 1 <= 1:
            return scores
        if len(self.classes) == 2 and self.source.method == "decision_function":
            return -scores
        return reply.refuse(
            f"returned one score per row for the classes {listing(self.classes)}; it can only be that of the last of "
            f"two, and {self.classes[self.position]!r} is not."
        )

    def _one_column(self, reply: Reply) -> Floats:
        """Read the column of the class."""
        if self.classes is not None:
            numbers = reply.class_columns(self.classes)
            if self.source.method == "predict_proba":
                reply.check_sums(numbers)
            return numbers[:, self.position]
        numbers = reply.numbers()
        if self.source.method == "predict_proba":
            reply.check_sums(numbers)
        names = list(range(numbers.shape[1])) if reply.columns is None else reply.columns
        if self.source.method != "predict_proba" and self.interval.of is None:
            example = f"mcce.Interval({self.interval.low:g}, {self.interval.high:g}, of={names[-1]!r})"
            reply.refuse(f"returned {len(names)} columns ({listing(names)}). Say which one, as in {example}.")
        return numbers[:, _class_of(self.interval, names)]


def _class_of(interval: Interval, classes: list[Any]) -> int:
    """Return the position of the interval's class: `of`, or class 1 of a pair such as 0 and 1."""
    if interval.of is not None:
        return find_class(interval.of, classes)
    if len(classes) == 2 and set(classes) in ({0, 1}, {-1, 1}):  # True equals 1, the text "1" does not
        return classes.index(1)
    raise InputError(
        f"the decision, a {interval}, does not say of which class the score is (classes: {listing(classes)}). Say it, "
        f"as in mcce.Interval({interval.low:g}, {interval.high:g}, of={classes[-1]!r}), or give the wanted class "
        f"itself, as in decision={classes[-1]!r}."
    )


@dataclass(frozen=True)
class LabelDecision:
    """The model predicts one of some labels; `probabilities` gives their margin, if the model has any."""

    source: Source
    labels: Labels
    classes: list[Any] | None
    probabilities: Source | None

    @classmethod
    def bind(cls, labels: Labels, model: Any, margins: bool) -> LabelDecision:
        """Return the decision; with `margins`, probabilities are asked for too."""
        source, classes = read_model(model, labels), classes_of(model)
        if classes is not None:
            for label in labels.labels:
                find_class(label, classes, "decision")
            if len(labels.labels) == len(classes):
                raise InputError(
                    f"decision names every class of the model ({listing(classes)}), so every row has it; name fewer. "
                    "An interval of scores is a tuple: (low, high)."
                )
        has_probabilities = margins and classes is not None and callable(getattr(model, "predict_proba", None))
        name = f"predict_proba of the {type(model).__name__}"
        return cls(source, labels, classes, Source(model, "predict_proba", name) if has_probabilities else None)

    @property
    def text(self) -> str:
        """The decision in words, as in "predicted class 'paid'"."""
        return str(self.labels)

    def answer(self, frame: Any, what: str) -> Answer:
        """Query the model for every row of a table."""
        reply = self.source.query(frame, what)
        predicted = reply.column("one class label").astype(object)
        try:
            codes, values = pd.factorize(predicted)
        except TypeError:  # values that cannot be hashed
            reply.refuse(
                f"returned {spell(predicted[0])}, which is not a class label; return a number or a text per row."
            )
        for value in values:
            if not self._is_possible(value):
                of_classes = "" if self.classes is None else f" of {listing(self.classes)}"
                reply.refuse(
                    f"returned {spell(value)}, which is not a class label like {self.labels.labels[0]!r}{of_classes}. "
                    "For a model that returns scores give an interval, (low, high), else one of its labels."
                )
        wanted = np.array([self._is_wanted(value) for value in values], dtype=np.bool_)[codes]
        margin = np.full(wanted.shape, np.nan)
        if self.probabilities is not None and self.classes is not None:
            by_class = self.probabilities.query(frame, what).class_columns(self.classes)
            columns = np.array([self._is_wanted(label) for label in self.classes])
            margin = by_class[:, columns].max(axis=1) - by_class[:, ~columns].max(axis=1)
        return Answer(predicted, wanted, margin)

    def _is_wanted(self, value: object) -> bool:
        return any(equals(value, label) for label in self.labels.labels)

    def _is_possible(self, value: object) -> bool:
        """Tell labels from scores, and text from codes: 0.73 is never class 1, nor is 1 ever class '1'."""
        if self.classes is not None:
            return any(equals(value, label) for label in self.classes)
        if isinstance(value, float) and not value.is_integer():
            return any(isinstance(label, float) and not label.is_integer() for label in self.labels.labels)
        return any(isinstance(value, str) == isinstance(label, str) for label in self.labels.labels)


@dataclass(frozen=True)
class PredicateDecision:
    """A function of a table returns whether each row has the wanted decision."""

    source: Source
    predicate: Predicate

    @property
    def text(self) -> str:
        """The decision in words."""
        return str(self.predicate)

    def answer(self, frame: Any, what: str) -> Answer:
        """Call the function for every row of a table."""
        reply = self.source.query(frame, what)
        values = reply.column("one boolean")
        if not all(isinstance(value, (bool, np.bool_)) for value in values):
            reply.refuse(f"returned {spell(values[0])}, not booleans. Compare within it, as in `scores >= 0.5`.")
        wanted = values.astype(np.bool_)
        return Answer(wanted, wanted, np.full(wanted.shape, np.nan))


BoundDecision = ScoreDecision | LabelDecision | PredicateDecision


def bind(
    model: Any, decision: Any, *, predictions: npt.NDArray[Any] | None = None, margins: bool = True
) -> BoundDecision:
    """Return a wanted decision bound to its model (step 1)."""
    wanted = read_decision(decision)
    if isinstance(wanted, Interval):
        return ScoreDecision.bind(wanted, model, predictions)
    if isinstance(wanted, Labels):
        return LabelDecision.bind(wanted, model, margins)
    return PredicateDecision(read_model(model, wanted), wanted)


class Query:
    """Query a model about encoded rows; no row is asked twice.

    Parameters
    ----------
    model : the model, None if the decision is a function of a table.
    decision : the wanted decision, as the user gives it.
    schema : Schema
        The columns of the rows, arranged as the rows are.
    training_predictions : array or None
        Predictions of the training rows, which tell the ends of an interval that count for the margin.
    margins : bool
        Whether labels have margins, which takes a second call of the model.

    Attributes
    ----------
    text : the decision in words.
    n_rows, n_calls, seconds : rows asked, calls of the model, and the time it took.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from mcce.table import Schema
    >>> schema = Schema.from_data(pd.DataFrame({"salary": [40.0, 60.0]}))
    >>> query = Query(lambda rows: rows["salary"] / 100, (0.5, 1), schema)
    >>> query(np.array([[45.0], [70.0], [45.0]])).wanted.tolist(), query.n_rows
    ([False, True, False], 2)
    """

    def __init__(
        self,
        model: Any,
        decision: Any,
        schema: Schema,
        *,
        training_predictions: npt.NDArray[Any] | None = None,
        margins: bool = True,
    ) -> None:
        self.decision = bind(model, decision, predictions=training_predictions, margins=margins)
        self.schema = schema
        self.n_rows, self.n_calls, self.seconds = 0, 0, 0.0
        self._n = 0  # rows that are kept
        self._hashes = np.empty(0, dtype=np.uint64)  # of these rows, with room for more
        self._slots = np.empty(0, dtype=np.int64)  # a hash table of their places
        self._kept: tuple[Floats, Answer] | None = None  # rows and answers, with room for more

    @property
    def text(self) -> str:
        """The decision in words, as in "probability of class 1 at least 0.5"."""
        return self.decision.text

    def __call__(self, rows: Floats, what: str = "candidates") -> Answer:
        """Return the answers for encoded rows; rows that were asked before are not asked again."""
        with ASKING:
            places, first = self._find(rows)
            if first.size or self._kept is None:
                self._keep(rows[first], self._ask(rows[first], what))
            assert self._kept is not None
            answers = self._kept[1].take(places)
            seen = np.ones(len(rows), dtype=bool)
            seen[first] = False
            found, kept = rows[seen], self._kept[0][places[seen]]
            collided = np.flatnonzero(seen)[~((found == kept) | (np.isnan(found) & np.isnan(kept))).all(axis=1)]
            if collided.size:  # another row has the same hash
                again = self._ask(rows[collided], what)
                for field in ("prediction", "wanted", "margin"):
                    getattr(answers, field)[collided] = getattr(again, field)
        return answers

    def confirm(self, rows: Floats, what: str = "returned rows") -> Answer:
        """Ask the model again, without the answers of before."""
        with ASKING:
            return self._ask(rows, what)

    def refute(self, rows: Floats) -> None:
        """Count rows that `confirm` did not confirm as without the wanted decision from now on."""
        with ASKING:
            assert self._kept is not None
            places, _ = self._find(rows)
            self._kept[1].wanted[places] = False

    def _find(self, rows: Floats) -> tuple[Ints, Ints]:
        """Return the place of each row among the kept ones, and which rows are to be kept at the next places."""
        keys = hash_rows(rows)
        if 2 * (self._n + keys.size) > self._slots.size:
            self._slots = np.full(2 << (self._n + keys.size).bit_length(), -1)
            hashes, self._hashes = self._hashes[: self._n], np.empty(self._slots.size // 2, dtype=np.uint64)
            _find_places(hashes, self._slots, self._hashes, 0, np.empty(self._n, dtype=np.int64))
        places = np.empty(keys.size, dtype=np.int64)
        n = _find_places(keys, self._slots, self._hashes, self._n, places)
        first = np.empty(n - self._n, dtype=np.int64)
        new = np.flatnonzero(places >= self._n)[::-1]
        first[places[new] - self._n] = new  # of equal rows the first one is written last
        return places, first

    def _keep(self, rows: Floats, answer: Answer) -> None:
        """Keep rows and answers at the next places; the room doubles when it is full."""
        begin, self._n = self._n, self._n + len(rows)
        if self._kept is None:
            self._kept = rows.copy(), answer.take(slice(None))
            return
        kept_rows, kept = self._kept
        if self._n > len(kept_rows):
            room = max(self._n, 2 * begin)
            kept_rows = _with_room(kept_rows, room)
            kept = Answer(*(_with_room(part, room) for part in (kept.prediction, kept.wanted, kept.margin)))
            self._kept = kept_rows, kept
        kept_rows[begin : self._n] = rows
        kept.prediction[begin : self._n] = answer.prediction
        kept.wanted[begin : self._n], kept.margin[begin : self._n] = answer.wanted, answer.margin

    def _ask(self, rows: Floats, what: str) -> Answer:
        """Ask the model about rows, in parts of bounded size; no rows are no call."""
        parts = [self._ask_part(rows[part], what) for part in blocks(len(rows), QUERY_ROWS)]
        if not parts:
            dtype = {ScoreDecision: np.float64, LabelDecision: np.object_}.get(type(self.decision), np.bool_)
            return Answer(np.empty(0, dtype=dtype), np.empty(0, dtype=np.bool_), np.empty(0))
        fields = zip(*((part.prediction, part.wanted, part.margin) for part in parts))
        return Answer(*(np.concatenate(arrays) for arrays in fields))

    def _ask_part(self, rows: Floats, what: str) -> Answer:
        """Ask the model once, and count rows, calls and seconds."""
        frame = self.schema.decode_for_model(rows)
        start = perf_counter()
        answer = self.decision.answer(frame, what)
        self.seconds += perf_counter() - start
        self.n_rows, self.n_calls = self.n_rows + len(rows), self.n_calls + 1
        return answer


@jit
def _find_places(keys, slots, kept, n_kept, places):  # type: ignore[no-untyped-def]
    """Write the place of each key among the kept ones, and keep new ones; return how many are kept then.

    `slots` is a hash table of places, -1 if free: its length is a power of two, at least twice the number of keys.
    """
    mask = uint64(slots.size - 1)
    for i in range(keys.size):
        at = keys[i] & mask
        while slots[at] >= 0 and kept[slots[at]] != keys[i]:
            at = (at + uint64(1)) & mask
        if slots[at] < 0:
            slots[at] = n_kept
            kept[n_kept] = keys[i]
            n_kept += 1
        places[i] = slots[at]
    return n_kept


def _with_room(values: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    """Return a copy of an array with room for more rows."""
    larger = np.empty((room, *values.shape[1:]), dtype=values.dtype)
    larger[: len(values)] = values
    return larger


def check_wanted(answer: Answer, text: str) -> None:
    """Raise if no training row has the wanted decision, since then nothing can be learned about it."""
    if answer.wanted.any():
        return
    predictions = answer.prediction
    if predictions.size and predictions.dtype.kind == "f":
        answers = f"the scores go from {predictions.min():.4g} to {predictions.max():.4g}"
    else:
        answers = f"the answers are {listing(sorted({str(label) for label in predictions}))}"
    raise InputError(
        f"no training row has the wanted decision, {text} ({answers}): there is nothing to learn it from. Check the "
        "decision, or set condition_on_decision=False."
    )
