"""Query a model: which method is called, which replies are valid, and which classes it has.

Replies are read by position: frames, series, lists, nullable and masked arrays. `Reply` raises on exceptions, wrong
lengths, missing values, text where numbers are needed, and columns that are not those of the classes.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.checks import is_number
from mcce.base.threads import one_native_thread
from mcce.exceptions import InputError, ModelError, spell, spell_all
from mcce.table.frames import is_other_frame, read_frame
from mcce.wording import Either, Parameter, Part, PythonOnly, Value, Values

Rows: TypeAlias = "pd.DataFrame | npt.NDArray[Any] | Any"

BY_CLASS = ("predict_proba", "decision_function")  # replies that may have a column for each class
CELLS_SHOWN = 8
WRITES_ARE_SHARED = int(pd.__version__.partition(".")[0]) < 3  # by frames that share values
REMEDY = Either(
    PythonOnly("Give a function that returns the score you mean as the model, or a callable decision."),
    "Give a model that returns one score for each row.",
)


@dataclass(frozen=True)
class Source:
    """The callable to query: a method of the model, or the model (or the predicate) as a function."""

    model: Any
    method: str | None
    name: str

    def query(self, frame: Rows, what: str) -> Reply:
        """Query the model for every row of `frame`; `what` describes the rows in messages."""
        subject = f"{self.name}, queried with {len(frame)} rows ({what}),"
        try:
            function = self.model if self.method is None else getattr(self.model, self.method)
            with one_native_thread():
                result = function(self._model_input(frame))
        except Exception as err:
            message = str(err).strip() or "no message"
            between = "\n" if "\n" in message else " "  # the whole message: its last line often has the remedy
            raise ModelError(
                f"{subject} raised {type(err).__name__}: {message.rstrip('.')}.{between}Check that it is "
                "fitted and takes ",
                Either(
                    PythonOnly(f"a {type(frame).__name__} of shape {frame.shape}"),
                    f"a table of {len(frame)} rows and {frame.shape[1]} columns",
                ),
                ".",
            ) from err
        return Reply.read(result, frame, subject)

    def _model_input(self, frame: Rows) -> Any:
        family = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(self.model).__mro__}
        if ("xgboost", "Booster") in family:
            return sys.modules["xgboost"].DMatrix(frame, enable_categorical=True)
        # A function may modify its argument, so it receives a copy.
        if isinstance(frame, pd.DataFrame):
            return frame.copy(deep=WRITES_ARE_SHARED)
        return frame.copy() if isinstance(frame, np.ndarray) else frame


@dataclass(frozen=True)
class Reply:
    """A reply: a matrix with one row for each queried row, and its column names if it has any."""

    values: npt.NDArray[Any]
    columns: list[Any] | None
    frame: Rows
    subject: str

    @classmethod
    def read(cls, result: Any, frame: Rows, subject: str) -> Reply:
        """Read frames, series, lists, nullable and masked arrays by position."""
        try:
            result = read_frame(result, "the reply") if is_other_frame(result) else result
            values = np.asarray(result)
            if isinstance(result, np.ma.MaskedArray):
                values = values.astype(object)
                values[np.ma.getmaskarray(result)] = None
        except Exception as err:
            kind = type(result).__name__
            raise ModelError(f"{subject} returned a {kind} that is not an array: {err}. ", REMEDY) from err
        columns = list(result.columns) if isinstance(result, pd.DataFrame) else None
        reply = cls(values, columns, frame, subject)
        if values.ndim > 2:
            reply.refuse(f"returned a table for each of {len(values)} outputs. ", REMEDY)
        if values.ndim == 0 and len(frame) > 1:
            reply.refuse(f"returned a single {type(result).__name__}, expected {len(frame)} values, one per row.")
        if values.ndim > 0 and len(values) != len(frame):
            reply.refuse(f"returned {len(values)} values, expected {len(frame)}, one per row.")
        if values.ndim == 2 and values.shape[1] == 0:
            reply.refuse("returned a table without columns. ", REMEDY)
        return cls(values.reshape(len(frame), -1), columns, frame, subject)

    def refuse(self, *problem: Part) -> NoReturn:
        """Raise a `ModelError` that states the model, the rows and the problem."""
        raise ModelError(f"{self.subject} ", *problem)

    def column(self, expected: str) -> npt.NDArray[Any]:
        """Return the only column, without missing values."""
        if self.values.shape[1] != 1:
            self.refuse(f"returned {self.values.shape[1]} columns, expected {expected} per row. ", REMEDY)
        values = self.values[:, 0]
        self.check_missing(np.asarray(pd.isna(values), dtype=bool))
        return values

    def numbers(self) -> npt.NDArray[np.float64]:
        """Return the values as floats, missing ones as NaN; text is not parsed."""
        if self.values.dtype.kind in "biuf":
            return self.values.astype(np.float64)
        missing = np.asarray(pd.isna(self.values), dtype=bool)
        for value in self.values[~missing]:
            if not is_number(value) and not isinstance(value, (bool, np.bool_)):
                self.refuse(
                    f"returned {spell(value)}, which is not a number that an interval could contain. For a model "
                    "that returns class labels give the wanted label as the decision."
                )
        return np.where(missing, np.nan, self.values).astype(np.float64)

    def check_missing(self, missing: npt.NDArray[np.bool_]) -> None:
        """Raise if rows have no answer, and list them."""
        rows = np.flatnonzero(missing)
        if rows.size:
            more = ", ..." if rows.size > 5 else ""
            where: list[Part] = [f"at positions {spell_all(rows[:5])}{more}"]
            if isinstance(self.frame, pd.DataFrame):
                labels = f"{spell_all(self.frame.index[rows[:5]])}{more}"
                first = self.frame.iloc[[rows[0]]].astype(object).iloc[0]
                cells = [(f"{', ' if j else ''}{name} = ", Value(cell)) for j, (name, cell) in enumerate(first.items())]
                where += [" (", Either(PythonOnly("index"), "row names"), f" {labels}); the first has "]
                where += [*cells[:CELLS_SHOWN], ", ..." if cells[CELLS_SHOWN:] else ""]
            self.refuse(
                "returned missing values",
                PythonOnly(" (NaN or None)"),
                f" for {rows.size} of {len(missing)} rows, ",
                *where,
                ". Drop or impute such rows, or give a model that can answer for them.",
            )

    def check_sums(self, probabilities: npt.NDArray[np.float64]) -> None:
        """Raise if probabilities do not sum to 1, as those of a multi-label model. All zeros mean an unknown class."""
        sums = probabilities.sum(axis=1)
        off = sums[(np.abs(sums - 1) > 0.01) & (sums != 0)]
        if off.size:
            self.refuse(
                f"returned {probabilities.shape[1]} columns that sum to {off[0]:.3g}, not 1, so not of "
                "classes that exclude each other (is it a multi-label model?). ",
                REMEDY,
            )


def find_source(model: Any, methods: Sequence[str]) -> Source:
    """Return the callable to query: the first of the methods that the model has, else the model as a function."""
    if model is None:
        raise InputError(
            Parameter("model"),
            " is ",
            Value(None),
            "; give a model",
            PythonOnly(", or a callable decision, which needs none"),
            ".",
        )
    if isinstance(model, type):
        raise InputError(f"model is the class {model.__name__}; give a fitted {model.__name__} object.")
    for method in methods:
        if callable(getattr(model, method, None)):
            return Source(model, method, f"{method} of the {type(model).__name__}")
    if callable(model):
        return Source(model, None, f"the model {name_of(model)}")
    raise ModelError(
        f"the model (a {type(model).__name__}) cannot be queried: it has no {' or '.join(methods)} and is not "
        "callable. Give a function of the rows that returns one score or label for each."
    )


def classes_of(model: Any) -> list[Any] | None:
    """Return the classes that a model declares, as plain Python values; None if it declares none."""
    declared = getattr(model, "classes_", None)
    if not isinstance(declared, Iterable):
        return None
    classes = plain_values(declared)
    if any(np.ndim(c) for c in classes):
        raise ModelError(f"the {type(model).__name__} has several outputs, a decision is about one. ", REMEDY)
    return classes or None


def plain_values(values: Iterable[Any]) -> list[Any]:
    """Return the values with numpy scalars converted to Python scalars."""
    return [v.item() if isinstance(v, np.generic) else v for v in values]


def position_of(label: object, known: list[Any], parameter: str) -> int:
    """Return the position of a class among the known ones; raise with the name of the parameter if unknown."""
    for i, candidate in enumerate(known):
        if equals(label, candidate):
            return i
    spelled = {str(k): k for k in known}
    close = difflib.get_close_matches(str(label), spelled, n=1)
    hint = ("; did you mean ", Value(spelled[close[0]]), "?") if close else (".",)
    raise InputError(Parameter(parameter), " is ", Value(label), ", but the model's classes are ", Values(known), *hint)


def check_columns_are_classes(model: Any, classes: list[Any]) -> None:
    """Raise if the columns of a scikit-learn decision function are pairs of classes, or not exclusive."""
    inner = model
    for _ in range(10):  # through searches in pipelines in searches
        steps = getattr(inner, "steps", None)
        if hasattr(inner, "best_estimator_"):
            inner = inner.best_estimator_
        elif isinstance(steps, list):
            inner = steps[-1][1]
    pairs = len(classes) > 2 and getattr(inner, "decision_function_shape", None) == "ovo"
    target = getattr(getattr(inner, "_label_binarizer", None), "y_type_", None)
    if pairs or getattr(inner, "multilabel_", False) is True or target == "multilabel-indicator":
        columns = "pairs of classes (decision_function_shape='ovo')" if pairs else "labels (multi-label)"
        raise ModelError(f"decision_function of the {type(inner).__name__} has columns for {columns}. ", REMEDY)


def equals(one: Any, two: Any) -> bool:
    """Return whether two values are equal; values that cannot be compared are not."""
    try:
        return bool(one == two)
    except (TypeError, ValueError):
        return False


def name_of(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
