"""Distances between encoded rows, and measures of counterfactuals by name.

A distance sums over the columns the step from one value to the other (equal values: 0; a value and a missing one, or
two values of a column that is constant in the training data: 1):

L0         1 for any change
gower_sum  |x - y| / range for numbers, difference of ranks / (levels - 1) for ordered levels, 1 for other levels
gower      the same, divided by the number of columns (paper, equation 3)
hvdm       |x - y| / (4 sd) for numbers and ranks, sqrt(sum_c (P(c | x) - P(c | y))^2) for other levels; the root of the
           sum of squares
ivdm       sum_c (p_c(x) - p_c(y))^2, with P(c | level), and for numbers p_c interpolated between the midpoints of
           max(5, classes) intervals of equal width, and 0 a width beyond the outermost; the sum of squares

HVDM and IVDM: Wilson and Martinez (1997, J. Artif. Intell. Res. 6), sections 3 and 4; the class c is y'.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mcce._utils import Bools, Floats, Ints
from mcce.exceptions import InputError, did_you_mean
from mcce.rng import hash_rows
from mcce.table import Data, Feature, Schema, Table

SMALLEST = float(np.finfo(np.float64).tiny)  # the inverse of a smaller range is infinite
DEFAULT = ("L0", "gower")
COLUMNS = ("prediction", "plausibility", "below_floor")  # of the measures of a result, beside distances


def changed(rows: Floats, factuals: Floats) -> Bools:
    """Return which cells differ from those of the factuals, exactly; missing against missing is no change."""
    return np.asarray((rows != factuals) & ~(np.isnan(rows) & np.isnan(factuals)))


class Distance(ABC):
    """A distance of paired encoded rows; subclasses define the step between two different values of a column."""

    squared: ClassVar[bool] = False

    @abstractmethod
    def step(self, j: int, values: Floats, others: Floats) -> Floats:
        """Return the steps between values of column j; anything for equal values, NaN where one is missing."""

    def finish(self, sums: Floats) -> Floats:
        """Return the distances for sums of (squared) steps; the order is the same."""
        return sums

    def sums(self, rows: Floats, factuals: Floats) -> Floats:
        """Return the sum of (squared) steps of each row to the factual beside it, column by column."""
        total = np.zeros(rows.shape[0])
        for j in range(rows.shape[1]):
            total += self._counted(j, rows[:, j], factuals[:, j])
        return total

    def steps(self, rows: Floats, factuals: Floats) -> Floats:
        """Return the (squared) step of each cell."""
        return np.column_stack([self._counted(j, rows[:, j], factuals[:, j]) for j in range(rows.shape[1])])

    def between(self, rows: Floats, factuals: Floats) -> Floats:
        """Return the distance of each row to the factual beside it."""
        return self.finish(self.sums(rows, factuals))

    def _counted(self, j: int, values: Floats, others: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            step = self.step(j, values, others)
        step = np.where(np.isnan(step), 1.0, step)
        return np.where(changed(values, others), step * step if self.squared else step, 0.0)


@dataclass(frozen=True)
class Count(Distance):
    """L0: the number of changed columns."""

    def step(self, j: int, values: Floats, others: Floats) -> Floats:
        """Return 1 for every pair of values."""
        return np.ones(values.shape)


@dataclass(frozen=True)
class Gower(Distance):
    """Gower's distance: the mean step of all columns (paper, equation 3); `sums` has the sum.

    Attributes
    ----------
    scale : by column 1 / range, 0 where any change counts 1.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20, 60, 40], "job": ["clerk", "pilot", "pilot"]})
    >>> table = Schema.from_data(people).encode(people)
    >>> Gower.fit(table).between(table.matrix, table.matrix[[1, 1, 1]]).tolist()
    [1.0, 0.0, 0.25]
    """

    scale: Floats

    @classmethod
    def fit(cls, table: Table | Schema) -> Gower:
        """Return the distance for the columns of a table; their ranges are those of the training rows."""
        return cls(np.array([0.0 if f.kind == "categorical" else _inverse(f.span) for f in table.features]))

    def step(self, j: int, values: Floats, others: Floats) -> Floats:
        """Return |x - y| / range."""
        return np.abs(values - others) * self.scale[j] if self.scale[j] else np.ones(values.shape)

    def finish(self, sums: Floats) -> Floats:
        """Return the mean over the columns."""
        return sums / float(self.scale.size)


@dataclass(frozen=True)
class GowerSum(Gower):
    """Gower's distance without dividing by the number of columns."""

    def finish(self, sums: Floats) -> Floats:
        """Return the sums."""
        return sums


@dataclass(frozen=True)
class HVDM(Distance):
    """The heterogeneous value difference metric; `steps` are squared.

    Attributes
    ----------
    scale : by column 1 / (4 sd), 0 where any change counts 1.
    tables : by column the steps between levels, None for numbers and ordered levels.
    """

    scale: Floats
    tables: tuple[Floats | None, ...]
    squared: ClassVar[bool] = True

    @classmethod
    def fit(cls, table: Table, decision: npt.NDArray[Any]) -> HVDM:
        """Learn the distance from training rows and their classes."""
        classes = _classes(decision, table.n_rows)
        scale, tables = np.zeros(len(table.features)), []
        for j, feature in enumerate(table.features):
            known = table.matrix[~np.isnan(table.matrix[:, j]), j]
            is_level = feature.kind == "categorical"
            scale[j] = 0.0 if is_level or not known.size else _inverse(4.0 * float(known.std()))
            tables.append(np.sqrt(_level_differences(table, j, classes)) if is_level else None)
        return cls(scale, tuple(tables))

    def step(self, j: int, values: Floats, others: Floats) -> Floats:
        """Return |x - y| / (4 sd), or the step between two levels."""
        table = self.tables[j]
        if table is not None:
            return _look_up(table, values, others)
        return np.abs(values - others) * self.scale[j] if self.scale[j] else np.ones(values.shape)

    def finish(self, sums: Floats) -> Floats:
        """Return the root of the sum of squares."""
        return np.sqrt(sums)


@dataclass(frozen=True)
class Curve:
    """Class probabilities that change with a number: linear between equidistant knots, 0 at the first and the last."""

    first: float
    scale: float
    shares: Floats  # (knots, classes)

    @classmethod
    def fit(cls, feature: Feature, values: Floats, classes: Ints) -> Curve:
        """Learn the share of each class in intervals of equal width, put at their midpoints."""
        n_classes = int(classes.max()) + 1
        n_intervals = max(5, n_classes)
        width = feature.span / n_intervals
        interval = np.minimum(np.floor((values - feature.low) / width), n_intervals - 1.0)
        shares = np.zeros((n_intervals + 2, n_classes))
        shares[1:-1] = _shares(interval, classes, n_intervals)
        return cls(feature.low - width / 2, 1.0 / width, shares)

    def probabilities(self, values: Floats) -> Floats:
        """Return the class probabilities at some numbers, (values, classes); NaN at NaN."""
        at = (values - self.first) * self.scale
        inside = (at > 0.0) & (at < self.shares.shape[0] - 1)
        knot = np.where(inside, at, 0.0).astype(np.intp)
        rise = self.shares[knot + 1] - self.shares[knot]
        between = self.shares[knot] + (at - knot)[:, None] * rise
        return np.where(np.isnan(values)[:, None], np.nan, np.where(inside[:, None], between, 0.0))


@dataclass(frozen=True)
class IVDM(Distance):
    """The interpolated value difference metric; `steps` are squared.

    Attributes
    ----------
    parts : by column the table of steps between levels, the curve of a number, or None where any change counts 1.
    """

    parts: tuple[Floats | Curve | None, ...]
    squared: ClassVar[bool] = True

    @classmethod
    def fit(cls, table: Table, decision: npt.NDArray[Any]) -> IVDM:
        """Learn the distance from training rows and their classes."""
        classes = _classes(decision, table.n_rows)
        parts: list[Floats | Curve | None] = []
        for j, feature in enumerate(table.features):
            if not feature.is_numeric:
                parts.append(_level_differences(table, j, classes))
            else:
                curved = bool(_inverse(feature.span))
                parts.append(Curve.fit(feature, table.matrix[:, j], classes) if curved else None)
        return cls(tuple(parts))

    def step(self, j: int, values: Floats, others: Floats) -> Floats:
        """Return the squared differences of class probabilities, summed over the classes."""
        part = self.parts[j]
        if part is None:
            return np.ones(values.shape)
        if not isinstance(part, Curve):
            return _look_up(part, values, others)
        differences = part.probabilities(values) - part.probabilities(others)
        return np.asarray(sum(differences.T**2, start=np.zeros(values.shape)))


# ---------------------------------------------------------------- measures by name


@dataclass(frozen=True)
class Measure:
    """A measure by which counterfactuals are ordered, the smallest first.

    Attributes
    ----------
    name : what it is called in settings and tables.
    function : returns the measure of each encoded row to the factual beside it.
    distance : the distance behind it; None for a function of the user.
    """

    name: str
    function: Callable[[Floats, Floats], Floats]
    distance: Distance | None = None


MEASURES: dict[str, Callable[[Table, npt.NDArray[Any]], Distance]] = {
    "L0": lambda table, decision: Count(),
    "gower": lambda table, decision: Gower.fit(table),
    "gower_sum": lambda table, decision: GowerSum.fit(table),
    "hvdm": HVDM.fit,
    "ivdm": IVDM.fit,
}


def resolve_measures(
    measures: Any, schema: Schema, training: Floats, decision: npt.NDArray[Any] | None
) -> list[Measure]:
    """Return measures as the user names them: names, and functions of the candidates and the factual.

    Parameters
    ----------
    measures : name, function, sequence of them, or None for the paper's ("L0", "gower")
        A function gets the candidates of a factual (DataFrame) and the factual (Series), and returns one number for
        each candidate.
    schema : Schema
        The arranged columns.
    training : array
        Encoded training rows, unrepeated.
    decision : boolean array or None
        Whether each training row has the wanted decision; needed by "hvdm" and "ivdm".
    """
    single = isinstance(measures, str) or callable(measures)
    requested = DEFAULT if measures is None else (measures,) if single else measures
    if not isinstance(requested, Sequence) or not requested:
        raise InputError(f"measures is {measures!r}; give names or functions, as in measures=('L0', 'gower').")
    table, resolved = Table(schema.features, training), []
    for measure in requested:
        if callable(measure):
            resolved.append(_of_function(measure, schema))
            continue
        if not isinstance(measure, str) or measure not in MEASURES:
            raise InputError(f"measures names {measure!r}, which is unknown; {did_you_mean(measure, MEASURES)}")
        if measure in ("hvdm", "ivdm") and decision is None:
            raise InputError(f"{measure!r} needs the decisions of the training rows; set condition_on_decision=True.")
        distance = MEASURES[measure](table, np.empty(0) if decision is None else decision)
        resolved.append(Measure(measure, distance.between, distance))
    names = [measure.name for measure in resolved]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(f"measures names {twice[0]!r} twice; name each measure once.")
    return resolved


def _of_function(function: Callable[..., Any], schema: Schema) -> Measure:
    """Return a user's function of candidates and factual as a measure of paired rows."""
    name = str(getattr(function, "__name__", type(function).__name__))
    if name in (*MEASURES, *COLUMNS):
        raise InputError(f"measures has a function of the name {name!r}, which results use already; rename it.")

    def measure(rows: Floats, factuals: Floats) -> Floats:
        values = np.empty(rows.shape[0])
        _, first, group = np.unique(hash_rows(factuals), return_index=True, return_inverse=True)
        for k, factual in enumerate(first):
            of_factual = np.flatnonzero(group.ravel() == k)
            candidates = schema.decode(rows[of_factual])
            reply = np.asarray(function(candidates, schema.decode(factuals[[factual]]).iloc[0]))
            if reply.shape != (of_factual.size,) or reply.dtype.kind not in "biuf" or np.isnan(reply).any():
                raise InputError(
                    f"the measure {name!r} returned {reply.dtype} of shape {reply.shape} for {of_factual.size} "
                    "candidates; it must return one number, not missing, for each."
                )
            values[of_factual] = reply
        return values

    return Measure(name, measure)


def gower_distance(X: Data, Y: Data, *, training: Data) -> Floats:
    """Return the Gower distance of each row of `X` to the row of `Y` at its place, or to the only row of `Y`.

    Parameters
    ----------
    X, Y : tables with the columns of `training`
    training : table
        Source of the kinds and ranges of the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20, 60, 40], "job": ["clerk", "pilot", "pilot"]})
    >>> gower_distance(people, people.iloc[[1]], training=people).tolist()
    [1.0, 0.0, 0.25]
    """
    schema = Schema.from_data(training, where="training")
    rows, others = schema.encode(X, "X").matrix, schema.encode(Y, "Y").matrix
    if others.shape[0] not in (1, rows.shape[0]):
        raise InputError(f"X has {rows.shape[0]} rows and Y {others.shape[0]}; give as many, or one row as Y.")
    return Gower.fit(schema).between(rows, np.broadcast_to(others, rows.shape))


# ---------------------------------------------------------------- parts


def _inverse(spread: float) -> float:
    return 1.0 / spread if spread >= SMALLEST else 0.0


def _look_up(table: Floats, values: Floats, others: Floats) -> Floats:
    """Return table[value, other], NaN where one is missing."""
    missing = np.isnan(values) | np.isnan(others)
    a, b = (np.where(missing, 0, codes).astype(np.intp) for codes in (values, others))
    return np.where(missing, np.nan, table[a, b])


def _classes(decision: npt.NDArray[Any], n_rows: int) -> Ints:
    """Return the classes of the training rows as codes 0, 1, ..."""
    if np.shape(decision) != (n_rows,) or not n_rows:
        raise InputError(f"the decision has shape {np.shape(decision)} for {n_rows} training rows; give one for each.")
    return np.asarray(np.unique(decision, return_inverse=True)[1], dtype=np.int64)


def _shares(codes: Floats, classes: Ints, n_codes: int) -> Floats:
    """Return P(class | code), a row for each code; 0 for a code that no row has."""
    known = ~np.isnan(codes)
    counts = np.zeros((n_codes, int(classes.max()) + 1))
    np.add.at(counts, (codes[known].astype(np.intp), classes[known]), 1.0)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))


def _level_differences(table: Table, j: int, classes: Ints) -> Floats:
    """Return sum_c (P(c | x) - P(c | y))^2 for all pairs of levels."""
    shares = _shares(table.matrix[:, j], classes, table.features[j].n_levels)
    return np.asarray(((shares[:, None, :] - shares[None, :, :]) ** 2).sum(axis=2))
