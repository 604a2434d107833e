"""Derived columns: formulas that compute a column from others, rounded as in the training data.

1. A formula is a text in the language of `mcce.rule`, such as ``(rent + instalment) / income``, or a function of a
   frame that returns a value for each row; the columns without which the function fails or changes are its inputs.
2. Numbers are rounded to the decimals of the column: to the nearest, half up, down or up, whichever reproduces most
   training rows.
3. A formula must reproduce nine in ten training rows in which the column is known: others are taken for errors in
   the data, and a warning counts them.
4. Formulas are computed in topological order; a cycle is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Bools, Floats, Ints
from mcce.constraints.formula import Formula, read_formula
from mcce.distances import changed
from mcce.exceptions import InputError, listing, spell, warn
from mcce.table import Feature, Schema

LEAST_SHARE = 0.9  # of the training rows that a formula must reproduce
_PROBED = 50  # rows with which the inputs of a function are found
_ROUNDINGS: dict[str, Callable[[Floats], Floats]] = {
    "nearest": np.rint,
    "half up": lambda values: np.floor(values + 0.5),
    "down": np.floor,
    "up": np.ceil,
}
FrameFunction = Callable[[pd.DataFrame], Any]


@dataclass(frozen=True)
class DerivedColumn:
    """The formula of one column.

    Attributes
    ----------
    column, inputs : positions of the computed column, and of the columns that it is computed from.
    formula : the expression, or the function of a frame of the inputs.
    rounding : how numbers are rounded to the grid of the column, one of `_ROUNDINGS`.
    """

    column: int
    inputs: tuple[int, ...]
    formula: Formula | FrameFunction
    schema: Schema = field(repr=False)
    rounding: str = "nearest"

    @property
    def feature(self) -> Feature:
        """The computed column."""
        return self.schema.features[self.column]

    def compute(self, rows: Floats) -> Floats:
        """Return the encoded values of the column; missing where the formula gives none."""
        return self.round(self.exact(rows))

    def exact(self, rows: Floats) -> Floats:
        """Return the encoded values before rounding."""
        if isinstance(self.formula, Formula):
            return self.formula.encode(rows, self.feature)
        names = [self.schema.names[j] for j in self.inputs]
        frame = self.schema.subset(names).decode(rows[:, list(self.inputs)])
        return _encoded(_call(self.formula, frame, self.feature), self.feature)

    def round(self, values: Floats) -> Floats:
        """Return values on the grid of the column."""
        grid = self.feature.grid
        if grid is None:
            return self.feature.round(values)
        scaled = values * 10.0**grid.decimals
        with np.errstate(invalid="ignore"):
            nearest = np.rint(scaled)
            is_whole = np.abs(scaled - nearest) <= 1e-9 * np.maximum(1.0, np.abs(scaled))  # 0.29 * 100 is 29
            rounded = np.where(is_whole, nearest, _ROUNDINGS[self.rounding](scaled))
        return grid.round(rounded / 10.0**grid.decimals)


@dataclass(frozen=True)
class Derived:
    """The derived columns of a table, inputs first; made by `Derived.read`.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.plausibility.derived import Derived
    >>> from mcce.table import Schema
    >>> X = pd.DataFrame({"used": [10, 25, 99], "limit": [30, 40, 100], "percent": [33, 62, 99]})
    >>> schema = Schema.from_data(X)
    >>> derived = Derived.read({"percent": "100 * used / limit"}, schema, schema.encode(X).matrix)
    >>> derived.steps[0].rounding, derived.complete(schema.encode(X.assign(used=20)).matrix)[:, 2].tolist()
    ('nearest', [67.0, 50.0, 20.0])
    """

    steps: tuple[DerivedColumn, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.steps)

    @property
    def columns(self) -> Ints:
        """Positions of the derived columns."""
        return np.array(sorted(step.column for step in self.steps), dtype=np.int64)

    @classmethod
    def read(
        cls,
        derived: Mapping[Hashable, str | FrameFunction] | None,
        schema: Schema,
        training: Floats,
        fixed: Sequence[Hashable] = (),
    ) -> Derived:
        """Return the derived columns of a table; raise if a formula does not reproduce its column.

        Parameters
        ----------
        derived : formulas by the name of their column.
        schema : the arranged columns.
        training : encoded training rows.
        fixed : names of the fixed features.
        """
        if derived is None:
            return cls()
        if not isinstance(derived, Mapping):
            raise InputError(
                f"derived is {spell(derived)}; give formulas by column, as in derived={{'dti': 'rent / income'}}."
            )
        for name in derived:
            if name in set(fixed):
                raise InputError(
                    f"{spell(name)} is fixed and derived; leave it out of fixed, and fix what it is computed from."
                )
        steps = {}
        for name, definition in derived.items():
            column = schema.position(name, "derived column")
            steps[column] = _fit(column, definition, schema, training)
        try:
            order = list(TopologicalSorter({j: step.inputs for j, step in steps.items()}).static_order())
        except CycleError as error:
            cycle = " -> ".join(spell(schema.names[j]) for j in error.args[1])
            says = f"derived columns depend on each other: {cycle}; leave one of these formulas out."
            raise InputError(says) from None
        return cls(tuple(steps[j] for j in order if j in steps))

    def complete(self, rows: Floats, factuals: Floats | None = None) -> Floats:
        """Return rows with their derived columns computed.

        With `factuals` (the factual of each row), a column none of whose inputs differs from the factual's keeps the
        factual's value, which may be one of the rows that disagree with the formula.
        """
        rows = rows.copy(order="K")
        for step in self.steps:
            values = step.compute(rows)
            if factuals is not None:
                inputs = list(step.inputs)
                is_touched = changed(rows[:, inputs], factuals[:, inputs]).any(axis=1)
                values = np.where(is_touched, values, factuals[:, step.column])
            rows[:, step.column] = values
        return rows

    def reset(self, rows: Floats, factuals: Floats) -> Floats:
        """Return rows whose derived columns are those of their factuals, because they do not count as changes."""
        if not self:
            return rows
        rows = rows.copy()
        rows[:, self.columns] = factuals[:, self.columns]
        return rows


def _fit(column: int, definition: Any, schema: Schema, training: Floats) -> DerivedColumn:
    """Return the formula of a column with the rounding of the training rows; raise if it does not reproduce them."""
    feature = schema.features[column]
    if isinstance(definition, str):
        formula = read_formula(definition, schema, f"formula of {spell(feature.name)}", may_read_factual=False)
        step = DerivedColumn(column, formula.columns, formula, schema)
    elif callable(definition):
        step = DerivedColumn(column, _inputs(definition, column, schema, training), definition, schema)
    else:
        raise InputError(
            f"the formula of {spell(feature.name)} is {spell(definition)}; give a text such as '(rent + instalment) / "
            "income', or a function of a frame."
        )
    if not step.inputs or column in step.inputs:
        what = "itself" if step.inputs else "no column"
        raise InputError(f"the formula of {spell(feature.name)} reads {what}; compute it from other columns.")
    exact, values = step.exact(training), training[:, column]
    is_known = ~np.isnan(values)
    choices = [step]
    if feature.grid is not None and not feature.is_date:
        choices = [replace(step, rounding=name) for name in _ROUNDINGS]
    agreements = [agree(feature, choice.round(exact), values) for choice in choices]
    best = int(np.argmax([agreement[is_known].sum() for agreement in agreements]))
    _check(choices[best], agreements[best], is_known, training)
    return choices[best]


def _check(step: DerivedColumn, agreement: Bools, is_known: Bools, training: Floats) -> None:
    """Raise if a formula disagrees with many training rows, warn if with few."""
    disagreeing = np.flatnonzero(is_known & ~agreement)
    if not disagreeing.size:
        return
    row, names = int(disagreeing[0]), step.schema.names

    def shown(j: int, value: float) -> str:
        return spell(step.schema.features[j].decode(np.array([value]))[0]) if not np.isnan(value) else "missing"

    inputs = ", ".join(f"{names[j]} = {shown(j, training[row, j])}" for j in step.inputs[:5])
    n_known = int(is_known.sum())
    says = (
        f"the formula of {spell(step.feature.name)} disagrees with {disagreeing.size:,} of {n_known:,} training rows: "
        f"in row {row} (counted from 0) it gives {shown(step.column, step.compute(training[[row]])[0])} from {inputs}, "
        f"but the column has {shown(step.column, training[row, step.column])}"
    )
    if disagreeing.size > (1.0 - LEAST_SHARE) * n_known:
        raise InputError(f"{says}; correct the formula.")
    warn(f"{says}; correct these rows, or the formula.")


def agree(feature: Feature, computed: Floats, values: Floats) -> Bools:
    """Return which computed values equal those of a column, up to floating-point error."""
    if not feature.is_numeric:
        return np.asarray(computed == values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(computed - values) <= tolerance(feature, values, 1e-6))


def tolerance(feature: Feature, values: Floats, part: float, step: float | None = None) -> Floats:
    """Return the tolerance of equal numbers: a part of the last digit of a column, or rounding error of its dtype.

    `step` is the last digit, by default that of the grid of the column.
    """
    if step is None and feature.grid is not None:
        step = feature.grid.step
    if step is not None:
        return np.maximum(part * step, 4.0 * np.finfo(np.float64).eps * np.abs(values))
    size = getattr(np.dtype(feature.dtype), "itemsize", 8) if isinstance(feature.dtype, np.dtype) else 8
    precision = 1e-9 if size >= 8 else 1e-5
    return precision * np.maximum(np.abs(values), 1e-3 * feature.span)


def usual_step(feature: Feature, values: Floats) -> float | None:
    """Return the last digit of 99 % of the values, which a few others do not hide; None if there is none."""
    finite = values[np.isfinite(values)]
    if not feature.is_numeric or not finite.size:
        return None
    if feature.is_date or feature.decimals == 0:
        return 1.0
    for decimals in range(7):
        is_rounded = np.abs(np.round(finite, decimals) - finite) <= 1e-13 * np.abs(finite)
        if is_rounded.mean() >= 0.99:
            return float(10.0**-decimals)
    return None


# ---- functions of a frame


def _call(function: FrameFunction, frame: pd.DataFrame, feature: Feature) -> pd.Series[Any]:
    what = f"the function of the derived column {spell(feature.name)}"
    try:
        answer = np.asarray(function(frame))
    except Exception as error:
        columns = listing(frame.columns)
        raise InputError(f"{what} raised {type(error).__name__}: {error}; it gets a frame with {columns}.") from error
    if answer.shape != (len(frame),):
        raise InputError(f"{what} returned shape {answer.shape} for {len(frame)} rows; return one value for each.")
    return pd.Series(answer, name=feature.name)


def _encoded(answer: pd.Series[Any], feature: Feature) -> Floats:
    """Return the answer of a function as encoded values, missing where it is infinite."""
    where = "the values of a derived column"
    if not feature.is_numeric or feature.is_date:
        return feature.encode(answer, where)
    try:
        numbers = answer.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}, {spell(feature.name)}, are not numbers ({error}); return numbers.") from None
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _inputs(function: FrameFunction, column: int, schema: Schema, training: Floats) -> tuple[int, ...]:
    """Return the columns without which a function of a frame fails or returns other values."""
    probed = np.unique(np.linspace(0, len(training) - 1, _PROBED).astype(np.int64))
    names = schema.names
    frame = schema.decode(training[probed]).drop(columns=names[column])
    full = _call(function, frame, schema.features[column])
    inputs = []
    for name in frame.columns:
        try:
            is_same = full.equals(pd.Series(np.asarray(function(frame.drop(columns=name)))))
        except Exception:
            is_same = False
        if not is_same:
            inputs.append(names.index(name))
    return tuple(sorted(inputs))
