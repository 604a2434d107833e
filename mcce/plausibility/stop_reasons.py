"""Reasons why a counterfactual must not be sent: it is impossible, harmful, or contradicts the meaning of a column.

The reasons depend on usual values of the training rows (`Usual`, learned by `mcce.explain.reference`) and on the names
of the columns (`mcce.table.words`). The sparse search prefers counterfactuals without them (`mcce.explain.pipeline`),
and `mcce.report.suspicious` lists those that have one. Reasons for a changed feature:

1. `past event or fact`: it looks like an unchangeable fact (`mcce.suggest_fixed`, except counts and durations). The
   other reasons are not given for such a feature.
2. `cannot fall`: a level of education or a duration falls.
3. `duration`: a duration grows by more than two years (`YEARS`).
4. `opposite to the usual direction`: a number or ordered level falls although higher values usually help refused rows,
   or rises although lower values do. If the training rows show no direction, the name of a number may: incomes and
   savings should not fall; debts and regular payments should not rise.
5. `large rise from zero`: an amount that was 0 or missing exceeds nine in ten of the positive training values.
6. `unexplained money`: savings rise, or a debt falls, by more than the loan (the smaller of the factual's and the
   counterfactual's). The columns are recognised by their names, and compared if they have the same unit in `Names`, or
   none.
7. `contradicts a level`: a number is above 99 per cent of the training rows with one of the levels of the
   counterfactual, and these are low: 99 per cent of them are below the upper quartile of all rows. Example: a salary
   with the level "unemployed".
8. `unspecific level`: the new level means "other" or "unknown", or is a mark such as "?"; or it is the number of a
   class, such as an occupation (recognised by its name).
9. `worse situation`: the new level is usually a worse situation, such as "unemployed" or "with parents".
10. `far step`: a positive amount changes by a larger factor than in 97.5 per cent of the pairs of a refused training
    row and a similar accepted one (`Usual.factors`). A factual below the 1 or above the 99 per cent point counts as
    this point. An amount that is 0 in some rows may fall by any factor, and rise up to the bound of reason 5.
11. `far from the decision`: an income, by its name, rises to more than `INCOME_TIMES` times its value, or a loan or a
    debt falls to less than its `OWED_PART`. The answer may be right, but says that the decision is out of reach.

A step that is not far may still be long: farther, in logarithms, than two fifths (`LONG`) of the distance of the 1 and
the 99 per cent point, which is 1.9 standard deviations of a normal distribution. The search prefers several shorter
steps (`StopRules.nested`), but such an answer may be sent.

Reasons 1 to 6, 8 for numbers, 10 and 11 are bounds on one column, given the factual (`StopRules.bounds`), so values
beyond them are not tried; the bound of reason 6 uses the factual's loan. Rows with the other reasons are made and
rejected.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.storage.fields import check_type, require
from mcce.storage.state import stateful
from mcce.table import Feature
from mcce.table.dtypes import is_dated
from mcce.table.words import (
    DEBT,
    SAVINGS,
    better_direction,
    is_class,
    is_education,
    is_income,
    is_loan,
    is_owed,
    is_unspecific,
    is_worse,
    name_words,
)

YEARS = 2
INCOME_TIMES, OWED_PART = 2.5, 0.2
LONG = 0.4  # share of the distance of the 1 and the 99 per cent point, in logarithms
REASONS = (
    (PAST := "past event or fact"),
    (FALLS := "cannot fall"),
    (DURATION := "duration"),
    (UNUSUAL_DIRECTION := "opposite to the usual direction"),
    (AT_LEVEL := "contradicts a level"),
    (FROM_ZERO := "large rise from zero"),
    (UNEXPLAINED_MONEY := "unexplained money"),
    (UNSPECIFIC := "unspecific level"),
    (WORSE := "worse situation"),
    (FAR_STEP := "far step"),
    (FAR_AWAY := "far from the decision"),
)


class Edge(NamedTuple):
    """Values between which nearly all numbers of a feature lie, in rows that share a level, or in all (`given` None).

    With `is_low`, the rows with the level have low values, so that a high value contradicts the level.
    """

    feature: Hashable
    given: Hashable
    level: Any
    low: float
    high: float
    is_low: bool


@stateful("Usual")
@dataclass(frozen=True)
class Usual:
    """Usual values of training rows, directions that help, durations, and unchangeable features.

    Attributes
    ----------
    directions : feature to 1 if higher values usually help refused rows, -1 if lower ones do
    spreads : number to the distance of the 5 and the 95 per cent point of its values
    highs : amount, that is a number other than a code, to the 90 per cent point of its positive values
    factors : amount to the smallest and the largest usual factor between a refused row and similar accepted ones;
        infinite if unknown
    edges : for numbers, the values between which nearly all lie
    durations : duration to the number of its units in a year
    unchangeable : feature to the reason why it cannot be changed
    """

    directions: Mapping[Any, int] = field(default_factory=dict)
    spreads: Mapping[Any, float] = field(default_factory=dict)
    highs: Mapping[Any, float] = field(default_factory=dict)
    factors: Mapping[Any, tuple[float, float]] = field(default_factory=dict)
    edges: tuple[tuple[Any, ...], ...] = ()
    durations: Mapping[Any, float] = field(default_factory=dict)
    unchangeable: Mapping[Any, str] = field(default_factory=dict)

    def check_state(self) -> None:
        """Raise if stored parts have the wrong types."""
        floats = dict.fromkeys(("spreads", "highs", "durations"), float)
        for name, kind in {"directions": int, **floats, "factors": tuple, "unchangeable": str}.items():
            check_type(getattr(self, name), name, dict)
            for value in getattr(self, name).values():
                check_type(value, name, kind)
        for pair in self.factors.values():
            require(len(pair) == 2, "a pair of factors does not have 2 parts")
            for factor in pair:
                check_type(factor, "factors", float)
        check_type(self.edges, "edges", tuple)
        for edge in self.edges:
            check_type(edge, "edges", tuple)
            require(len(edge) == len(Edge._fields), f"an edge does not have {len(Edge._fields)} parts")
            check_type(edge[3], "edges", float)
            check_type(edge[4], "edges", float)
            check_type(edge[5], "edges", bool)


def plain_level(level: Any) -> Any:
    """Return a level as a Python value, as stored in an `Edge`."""
    return level.item() if isinstance(level, np.generic) else level


class RuleColumn(NamedTuple):
    """A column of numbers: amounts or dates, or codes of levels; `codes` has the code of each level."""

    name: Hashable
    is_number: bool
    is_ordered: bool
    codes: Mapping[Any, float]

    @classmethod
    def from_feature(cls, feature: Feature) -> RuleColumn:
        """Return the column of an encoded feature."""
        levels = () if feature.is_numeric or feature.levels is None else feature.levels
        codes = {plain_level(level): float(code) for code, level in enumerate(levels)}
        is_number = feature.is_numeric and not is_dated(feature.dtype)
        return cls(feature.name, is_number, feature.is_numeric or feature.kind == "ordered", codes)


class Stop(NamedTuple):
    """A reason, its column, the rows that have it, and the loan (a name) or the `Edge` that it refers to, or None."""

    reason: str
    column: int
    rows: Ints
    beside: Any = None


class _Bound(NamedTuple):
    """The bounds of a column within which values do not have a reason, by factual; NaN is no bound."""

    reason: str
    low: Floats | float = -np.inf
    high: Floats | float = np.inf
    beside: Any = None


class StopRules:
    """The reasons not to send a counterfactual, for the columns of a table.

    Parameters
    ----------
    columns : the columns of the rows.
    usual : usual values of training rows.
    units : units of features, by name.

    Methods take the encoded rows `before` and `after`, and `changed`, the cells that count as changed.
    """

    def __init__(self, columns: Sequence[RuleColumn], usual: Usual, units: Mapping[Hashable, str]) -> None:
        self.columns, self.usual, self.units = columns, usual, units

    @cached_property
    def nested(self) -> tuple[StopRules, StopRules, StopRules]:
        """The rules that treat long steps as far ones, these rules, and those without far steps."""
        long = {name: (high / low) ** LONG for name, (low, high) in self._ends.items()}
        nearer = {
            name: (max(low, 1.0 / long.get(name, np.inf)), min(high, long.get(name, np.inf)))
            for name, (low, high) in self.usual.factors.items()
        }
        strict, lenient = (
            StopRules(self.columns, replace(self.usual, factors=factors), self.units) for factors in (nearer, {})
        )
        return strict, self, lenient

    @cached_property
    def _low_edges(self) -> list[tuple[Edge, int, int, float]]:
        """The levels that contradict high numbers: the positions of both columns, and the code of the level."""
        position = {column.name: j for j, column in enumerate(self.columns)}
        found = []
        for edge in (Edge._make(edge) for edge in self.usual.edges if edge[Edge._fields.index("is_low")]):
            known = edge.feature in position and edge.given in position
            if known and edge.feature not in self.usual.unchangeable:
                j, k = position[edge.feature], position[edge.given]
                found.append((edge, j, k, self.columns[k].codes.get(edge.level, np.nan)))
        return found

    @cached_property
    def _unwanted(self) -> list[tuple[str, int, list[float]]]:
        """The codes of unspecific and of worse levels, with the reason and the position of the column."""
        return [
            (reason, j, codes)
            for j, column in enumerate(self.columns)
            if not column.is_number and column.name not in self.usual.unchangeable
            for reason, is_unwanted in ((UNSPECIFIC, is_unspecific), (WORSE, is_worse))
            if (codes := [code for level, code in column.codes.items() if is_unwanted(level)])
        ]

    @cached_property
    def _ends(self) -> dict[Hashable, tuple[float, float]]:
        """The values between which nearly all training rows lie, for columns where both are positive."""
        of_all = [Edge._make(edge) for edge in self.usual.edges if edge[Edge._fields.index("given")] is None]
        return {
            edge.feature: (edge.low, edge.high)
            for edge in of_all
            if edge.feature in self.usual.spreads and edge.low > 0.0
        }

    @cached_property
    def _loans(self) -> list[int]:
        return [k for k, column in enumerate(self.columns) if column.is_number and is_loan(column.name)]

    @cached_property
    def _is_saved(self) -> dict[Hashable, bool]:
        """Whether money is saved, by the names of the columns of savings and of debts other than loans."""
        words = {column.name: {*name_words(column.name)} for column in self.columns if not is_loan(column.name)}
        return {name: bool(own & SAVINGS) for name, own in words.items() if own & (SAVINGS | DEBT)}

    def find(self, before: Floats, after: Floats, changed: Bools) -> Iterator[Stop]:
        """Yield each reason with its rows."""
        for j in np.flatnonzero(changed.any(axis=0)).tolist():
            if self.columns[j].name in self.usual.unchangeable:
                yield Stop(PAST, j, np.flatnonzero(changed[:, j]))
                continue
            for reason, low, high, beside in self._bounds(j, before, after):
                outside = changed[:, j] & ((after[:, j] < low) | (after[:, j] > high))
                yield Stop(reason, j, np.flatnonzero(outside), beside)
        for reason, j, codes in self._unwanted:
            yield Stop(reason, j, np.flatnonzero(changed[:, j] & np.isin(after[:, j], codes)))
        for edge, j, k, code in self._low_edges:
            beyond = (after[:, k] == code) & (after[:, j] > edge.high) & changed[:, [j, k]].any(axis=1)
            yield Stop(AT_LEVEL, j, np.flatnonzero(beyond), edge)

    def cells(self, before: Floats, after: Floats, changed: Bools) -> Bools:
        """Return which cells have a reason."""
        stopped = np.zeros(after.shape, dtype=bool)
        for stop in self.find(before, after, changed):
            stopped[stop.rows, stop.column] = True
        return stopped

    def bounds(self, j: int, before: Floats) -> tuple[Floats, Floats]:
        """Return by factual the lowest and highest value of a column without a reason."""
        low, high = np.full(len(before), -np.inf), np.full(len(before), np.inf)
        if self.columns[j].name in self.usual.unchangeable:
            low, high = (np.where(np.isnan(before[:, j]), end, before[:, j]) for end in (np.inf, -np.inf))
        for bound in self._bounds(j, before):
            low, high = np.fmax(low, bound.low), np.fmin(high, bound.high)
        return low, high

    def _direction(self, j: int) -> int:
        """Return the direction that usually helps refused rows, or the better one by the name of a number."""
        name, is_number, _, _ = self.columns[j]
        by_name = better_direction(name) if is_number and name in self.usual.spreads else 0
        return self.usual.directions.get(name, by_name)

    def _far(self, name: Hashable, own: Floats) -> Iterator[_Bound]:
        """Yield the values that differ from the factuals', or from the outer values, by a usual factor."""
        own = np.where(own > 0.0, own, np.nan)
        lowest, highest = self.usual.factors[name]
        if name in self._ends:
            own = np.clip(own, *self._ends[name])
            yield _Bound(FAR_STEP, own * lowest, own * highest)
        else:
            yield _Bound(FAR_STEP, high=np.maximum(own * highest, self.usual.highs[name]))
        if is_income(name):
            yield _Bound(FAR_AWAY, high=own * INCOME_TIMES)
        elif is_owed(name):
            yield _Bound(FAR_AWAY, low=own * OWED_PART)

    def _bounds(self, j: int, before: Floats, after: Floats | None = None) -> Iterator[_Bound]:
        """Yield the bounds on the values of one column, given the factuals, and the counterfactuals if known."""
        (name, is_number, is_ordered, _), usual, own = self.columns[j], self.usual, before[:, j]
        if name in usual.unchangeable:
            return
        if is_ordered and (name in usual.durations or is_education(name)):
            yield _Bound(FALLS, low=own)
        elif is_ordered and self._direction(j) > 0:
            yield _Bound(UNUSUAL_DIRECTION, low=own)
        elif is_ordered and self._direction(j) < 0:
            yield _Bound(UNUSUAL_DIRECTION, high=own)
        if not is_number or name not in usual.spreads:
            return
        if name not in usual.highs and is_class(name):
            yield _Bound(UNSPECIFIC, own, own)
        if name in usual.durations:  # a negative value is a code
            yield _Bound(DURATION, high=np.where(own >= 0.0, own + YEARS * usual.durations[name], np.inf))
        if name in usual.highs:
            yield _Bound(FROM_ZERO, high=np.where(np.isnan(own) | (own == 0.0), usual.highs[name], np.inf))
        if name in usual.factors:
            yield from self._far(name, own)
        for k in self._loans if name in self._is_saved else ():
            loan = self.columns[k].name
            if self.units.get(loan) == self.units.get(name):
                loan_amount = before[:, k] if after is None else np.fmin(before[:, k], after[:, k])
                low, high = (-np.inf, own + loan_amount) if self._is_saved[name] else (own - loan_amount, np.inf)
                yield _Bound(UNEXPLAINED_MONEY, low, high, loan)
