"""What a model may be, and its replies.

A model is an object with `predict_proba`, `decision_function` or `predict` (scikit-learn and pipelines, xgboost,
lightgbm, results of statsmodels), or a function of a table. Scores come from the first of these methods that the model
has, labels from `predict`. Replies are read by position, whatever container holds them; a reply that raises, has
another length, misses values or holds something else is an `InputError` that names the model and the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce._utils import Bools, Floats, is_number, one_native_thread
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.model.decision import Interval, Labels, Predicate, equals, plain

SCORES = ("predict_proba", "decision_function", "predict")
REMEDY = "Give a function that returns the score you mean as the model, or a function of a table as the decision."


@dataclass(frozen=True)
class Source:
    """The callable that is queried: a method of the model, or the model as a function (`method` None)."""

    model: Any
    method: str | None
    name: str

    def query(self, frame: Any, what: str) -> Reply:
        """Query the model for every row of `frame`; `what` describes the rows in messages."""
        subject = f"{self.name}, queried with {len(frame)} rows ({what}),"
        shape = f"a {type(frame).__name__} of shape {tuple(frame.shape)}"
        try:
            function = self.model if self.method is None else getattr(self.model, self.method)
            with one_native_thread():
                result = function(self._as_input(frame))
        except Exception as error:
            message = str(error).strip() or "no message"
            between = "\n" if "\n" in message else " "  # the whole message: its last line often has the remedy
            raise InputError(
                f"{subject} raised {type(error).__name__}: {message.rstrip('.')}.{between}Check that it is fitted and "
                f"takes {shape}."
            ) from error
        return Reply.read(result, frame, subject)

    def _as_input(self, frame: Any) -> Any:
        family = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(self.model).__mro__}
        if ("xgboost", "Booster") in family:
            return sys.modules["xgboost"].DMatrix(frame, enable_categorical=True)
        return frame.copy() if isinstance(frame, (pd.DataFrame, np.ndarray)) else frame  # a model may change its input


@dataclass(frozen=True)
class Reply:
    """A reply: a matrix with one row for each queried row, and its column names if it has any."""

    values: npt.NDArray[Any]
    columns: list[Any] | None
    frame: Any
    subject: str

    @classmethod
    def read(cls, result: Any, frame: Any, subject: str) -> Reply:
        """Read arrays, frames, series, lists, nullable and masked arrays by position."""
        columns = list(result.columns) if isinstance(result, pd.DataFrame) else None
        try:
            values = np.asarray(result)
            if isinstance(result, np.ma.MaskedArray):
                values = values.astype(object)
                values[np.ma.getmaskarray(result)] = None
        except Exception as error:
            raise InputError(
                f"{subject} returned a {type(result).__name__} that is not an array: {error}. {REMEDY}"
            ) from error
        reply = cls(values, columns, frame, subject)
        if values.ndim > 2:
            reply.refuse(f"returned a table for each of {len(values)} outputs. {REMEDY}")
        if values.ndim == 0 and len(frame) > 1:
            reply.refuse(f"returned a single {type(result).__name__}, expected {len(frame)} values, one per row.")
        if values.ndim > 0 and len(values) != len(frame):
            reply.refuse(f"returned {len(values)} values, expected {len(frame)}, one per row.")
        if values.ndim == 2 and values.shape[1] == 0:
            reply.refuse(f"returned a table without columns. {REMEDY}")
        return cls(values.reshape(len(frame), -1), columns, frame, subject)

    def refuse(self, problem: str) -> NoReturn:
        """Raise an `InputError` with the model, the rows and the problem."""
        raise InputError(f"{self.subject} {problem}")

    def column(self, expected: str) -> npt.NDArray[Any]:
        """Return the only column, without missing values."""
        if self.values.shape[1] != 1:
            self.refuse(f"returned {self.values.shape[1]} columns, expected {expected} per row. {REMEDY}")
        values = self.values[:, 0]
        self.check_missing(np.asarray(pd.isna(values), dtype=np.bool_))
        return values

    def numbers(self) -> Floats:
        """Return the values as floats, missing ones as NaN; texts are an error."""
        if self.values.dtype.kind in "biuf":
            return self.values.astype(np.float64)
        missing = np.asarray(pd.isna(self.values), dtype=np.bool_)
        for value in self.values[~missing]:
            if not is_number(value) and not isinstance(value, (bool, np.bool_)):
                self.refuse(
                    f"returned {spell(value)}, which is not a number that an interval could contain. For a model that "
                    "returns class labels give the wanted label as the decision."
                )
        return np.where(missing, np.nan, self.values).astype(np.float64)

    def class_columns(self, classes: list[Any]) -> Floats:
        """Return one column of numbers for each class, in the order of `classes`."""
        numbers = self.numbers()
        if numbers.shape[1] != len(classes):
            self.refuse(
                f"returned {numbers.shape[1]} columns for {len(classes)} classes ({listing(classes)}); which is whose "
                f"is unknown. {REMEDY}"
            )
        names = self.columns
        if names is not None and all(any(equals(label, name) for name in names) for label in classes):
            numbers = numbers[:, [find_class(label, names) for label in classes]]
        self.check_missing(np.asarray(np.isnan(numbers).any(axis=1)))
        return numbers

    def check_missing(self, missing: Bools) -> None:
        """Raise if rows have no answer, and list them."""
        positions = np.flatnonzero(missing)
        if not positions.size:
            return
        ellipsis = ", ..." if positions.size > 5 else ""
        where = f"at positions {', '.join(map(str, positions[:5]))}{ellipsis}"
        if isinstance(self.frame, pd.DataFrame):
            first = self.frame.iloc[[positions[0]]].astype(object).iloc[0]
            where += f"; the first has {', '.join(f'{name} = {spell(cell)}' for name, cell in list(first.items())[:8])}"
        self.refuse(
            f"returned missing values (NaN or None) for {positions.size} of {missing.size} rows, {where}. Drop or "
            "impute such rows, or give a model that can answer for them."
        )

    def check_sums(self, probabilities: Floats) -> None:
        """Raise if probabilities do not sum to 1, as those of a multi-label model; all zeros mean an unknown class."""
        sums = probabilities.sum(axis=1)
        off = sums[(np.abs(sums - 1) > 0.01) & (sums != 0)]
        if off.size:
            self.refuse(
                f"returned {probabilities.shape[1]} columns that sum to {off[0]:.3g}, not 1, so not of classes that "
                f"exclude each other (is it a multi-label model?). {REMEDY}"
            )


def read_model(model: Any, decision: Interval | Labels | Predicate) -> Source:
    """Return the callable to query for a decision; raise if the model has none."""
    if isinstance(decision, Predicate):
        return Source(decision.function, None, f"the decision {decision}")
    if model is None:
        raise InputError("model is None; give a model, or a function of a table as the decision, which needs none.")
    if isinstance(model, type):
        raise InputError(f"model is the class {model.__name__}; give a fitted {model.__name__} object.")
    return find_source(model, SCORES if isinstance(decision, Interval) else ("predict",))


def find_source(model: Any, methods: Sequence[str]) -> Source:
    """Return the first of the methods that the model has, else the model as a function."""
    for method in methods:
        if callable(getattr(model, method, None)):
            return Source(model, method, f"{method} of the {type(model).__name__}")
    if callable(model):
        return Source(model, None, f"the model {getattr(model, '__name__', type(model).__name__)}")
    raise InputError(
        f"the model (a {type(model).__name__}) cannot be queried: it has no {' or '.join(methods)} and is not "
        "callable. Give a function of a table that returns one score or label for each row."
    )


def classes_of(model: Any) -> list[Any] | None:
    """Return the classes that a model declares; None if it declares none."""
    declared = getattr(model, "classes_", None)
    if not isinstance(declared, Iterable):
        return None
    classes = [plain(label) for label in declared]
    if any(np.ndim(label) for label in classes):
        raise InputError(f"the {type(model).__name__} has several outputs, a decision is about one. {REMEDY}")
    return classes or None


def find_class(label: object, classes: list[Any], role: str = "of") -> int:
    """Return the position of a class; raise if it is unknown."""
    for position, other in enumerate(classes):
        if equals(label, other):
            return position
    raise InputError(f"{role} is {label!r}, which is not a class of the model; {did_you_mean(label, classes)}")


def check_exclusive(model: Any, classes: list[Any]) -> None:
    """Raise if the columns of a decision function are pairs of classes, or of labels that do not exclude each other."""
    inner = model
    for _ in range(10):  # through searches in pipelines in searches
        steps = getattr(inner, "steps", None)
        if hasattr(inner, "best_estimator_"):
            inner = inner.best_estimator_
        elif isinstance(steps, list):
            inner = steps[-1][1]
    pairs = len(classes) > 2 and getattr(inner, "decision_function_shape", None) == "ovo"
    if pairs or getattr(inner, "multilabel_", False) is True:
        columns = "pairs of classes (decision_function_shape='ovo')" if pairs else "labels (multi-label)"
        raise InputError(f"decision_function of the {type(inner).__name__} has columns for {columns}. {REMEDY}")
