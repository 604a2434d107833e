"""Reasons why a counterfactual must not be sent: it is impossible, harmful, or contradicts the meaning of a column.

The reasons depend on usual values of the training rows (`Usual`, learned by `mcce.explain.reference`) and on the names
of the columns (`mcce.table.words`). The sparse search prefers counterfactuals without them (`mcce.explain.pipeline`),
and `mcce.report.suspicious` lists those that have one. Reasons for a changed feature:

1. `past event or fact`: it looks like an unchangeable fact (`mcce.suggest_fixed`, except counts and durations). The
   other reasons are not given for such a feature.
2. `cannot fall`: a level of education or a duration falls.
3. `duration`: a duration grows by more than two years (`YEARS`). A negative code means that there is no duration; if a
   level changes as well, the duration begins and grows from 0.
4. `opposite to the usual direction`: a number or ordered level falls although higher values usually help refused rows,
   or rises although lower values do. If the training rows show no direction, the name of a number may: incomes and
   savings should not fall; debts and regular payments should not rise.
5. `large rise from zero`: an amount that was 0 or missing exceeds nine in ten of the positive training values.
6. `unexplained money`: savings rise, or a debt falls, or both together, by more than the loan (the smaller of the
   factual's and the counterfactual's). Missing savings count as 0. The columns are recognised by their names, and
   compared if they have the same unit in `Names`, or none.
7. `contradicts a level`: a number is above 99 per cent of the training rows with one of the levels of the
   counterfactual, and these are low: 99 per cent of them are below the upper quartile of all rows; or a fixed
   number is below 99 per cent, and these are high. Examples: a salary with the level "unemployed", an age of 30 with
   "retired".
8. `unspecific level`: the new level means "other" or "unknown", or is a mark such as "?"; or it is the number of a
   class, such as an occupation (recognised by its name).
9. `worse situation`: the new level is usually a worse situation, such as "unemployed" or "with parents".
10. `income without work`: an income rises for a person who is and stays unemployed, by the level of another column.
11. `far step`: a positive amount changes by a larger factor than in 97.5 per cent of the pairs of a refused training
    row and a similar accepted one (`Usual.factors`). A factual below the 1 or above the 99 per cent point counts as
    this point. An amount that is 0 in some rows may fall by any factor, and rise up to the bound of reason 5.
12. `far from the decision`: an income, by its name, rises to more than `INCOME_TIMES` times its value, or a loan or a
    debt falls to less than its `OWED_PART`; a debt only if there is no loan that may repay it. If an income and such an
    amount change, the steps are combined as a Euclidean distance, in logarithms and units of these bounds. A step of
    the income of a retired person counts twice. The answer may be right, but the case is far from the decision.

The income of an unemployed person who finds work may rise to the bound of reason 5 without reasons 11 and 12.

A step that is not far may still be long: farther, in logarithms, than two fifths (`LONG`) of the distance of the 1 and
the 99 per cent point, which is 1.9 standard deviations of a normal distribution; or an income, a loan or a debt has
gone most of the way to reason 12 (`LONG_STEP`). The search prefers several shorter steps
(`StopRules.nested`), but such an answer may be sent. If there is no other answer, it prefers one that is not very far:
by reason 12 with `VERY_FAR` times the distance.

Reasons 1 to 6, 8 for numbers, 11 and 12 are bounds on one column, given the factual (`StopRules.bounds`), so values
beyond them are not tried; the bound of reason 6 uses the factual's loan. Rows with the other reasons, or for which a
bound depends on other columns, are made and rejected.
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
    is_retired,
    is_unemployed,
    is_unspecific,
    is_worse,
    name_words,
)

YEARS = 2
INCOME_TIMES, OWED_PART = 2.5, 0.2
PENSION = 2.0  # factor of a step of a pension
LONG_STEP, VERY_FAR = 0.85, 1.5  # shares of the distance at which the decision is far
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
    (NO_WORK := "income without work"),
    (FAR_STEP := "far step"),
    (FAR_AWAY := "far from the decision"),
)


class Edge(NamedTuple):
    """Values between which nearly all numbers of a feature lie, in rows that share a level, or in all (`given` None).

    With `contradicts`, the rows with the level have low or high values, so that values beyond contradict the level; on
    the other side they are not bounded.
    """

    feature: Hashable
    given: Hashable
    level: Any
    low: float
    high: float
    contradicts: bool


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
    edges : for numbers, the values between which nearly all lie; for fixed numbers, only those that contradict levels
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
    """A reason, its column, the rows that have it, and what it refers to.

    That is the name of a loan, or this and the position of a debt, an `Edge`, the position of another column
    (`FAR_AWAY`), or None.
    """

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
    step, reach : the largest step of an income or a loan, and the largest distance of both, in units of reason 12.

    Methods take the encoded rows `before` and `after`, and `changed`, the cells that count as changed.
    """

    def __init__(
        self,
        columns: Sequence[RuleColumn],
        usual: Usual,
        units: Mapping[Hashable, str],
        step: float = 1.0,
        reach: float = 1.0,
    ) -> None:
        self.columns, self.usual, self.units, self.step, self.reach = columns, usual, units, step, reach

    @cached_property
    def nested(self) -> tuple[StopRules, StopRules, StopRules, StopRules]:
        """The rules that treat long steps as far ones, these rules, those for very far steps, and without far steps.

        Without incomes, loans and debts, the third are these rules.
        """
        long = {name: (high / low) ** LONG for name, (low, high) in self._ends.items()}
        nearer = {
            name: (max(low, 1.0 / long.get(name, np.inf)), min(high, long.get(name, np.inf)))
            for name, (low, high) in self.usual.factors.items()
        }
        strict, farther, lenient = (
            StopRules(self.columns, replace(self.usual, factors=factors), self.units, *ends)
            for factors, *ends in (
                (nearer, LONG_STEP, 1.0),
                (self.usual.factors, VERY_FAR, VERY_FAR),
                ({}, np.inf, np.inf),
            )
        )
        has_distance = any(is_income(column.name) or is_owed(column.name) for column in self.columns)
        return strict, self, farther if has_distance else self, lenient

    @cached_property
    def facts(self) -> list[int]:
        """The positions of columns that look like unchangeable facts."""
        return [j for j, column in enumerate(self.columns) if column.name in self.usual.unchangeable]

    @cached_property
    def _contradictions(self) -> list[tuple[Edge, int, int, float]]:
        """The levels that contradict numbers: the positions of both columns, and the code of the level."""
        position = {column.name: j for j, column in enumerate(self.columns)}
        found = []
        for edge in (Edge._make(edge) for edge in self.usual.edges if edge[Edge._fields.index("contradicts")]):
            if edge.feature in position and edge.given in position:
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
    def _incomes(self) -> list[int]:
        known = self.usual.highs.keys() - self.usual.unchangeable.keys()
        return [j for j, column in enumerate(self.columns) if column.name in known and is_income(column.name)]

    @cached_property
    def _statuses(self) -> list[tuple[int, list[float], list[float]]]:
        """The columns with a level "unemployed": their positions, and the codes of that level and of "retired"."""
        found = []
        for j, column in enumerate(self.columns):
            codes = [] if column.is_number else list(column.codes.items())
            out, retired = ([code for level, code in codes if is_so(level)] for is_so in (is_unemployed, is_retired))
            if out or retired:
                found.append((j, out, retired))
        return found

    def _work(self, before: Floats, after: Floats) -> tuple[Bools, Bools, Bools]:
        """Return which rows stay unemployed, which find work, and which factuals are retired."""
        idle, begins, retired = np.zeros((3, len(before)), dtype=bool)
        idle[:] = any(out for _, out, _ in self._statuses)
        for j, out, pensions in self._statuses:
            was_out, own = np.isin(before[:, j], out), after[:, j]
            if out:  # of several columns, perhaps one is about another person
                idle &= was_out & (own == before[:, j])
            begins |= was_out & ~np.isin(own, [*out, *pensions]) & ~np.isnan(own)
            retired |= np.isin(before[:, j], pensions)
        return idle, begins, retired

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
        for edge, j, k, code in self._contradictions:
            beyond = (after[:, k] == code) & ((after[:, j] > edge.high) | (after[:, j] < edge.low))
            is_fact = edge.feature in self.usual.unchangeable
            moved = changed[:, k] & ~changed[:, j] if is_fact else changed[:, [j, k]].any(axis=1)
            yield Stop(AT_LEVEL, j, np.flatnonzero(beyond & moved), edge)
        if changed[:, self._incomes].any() and self._statuses:
            idle = self._work(before, after)[0]
            for j in self._incomes:
                rises = changed[:, j] & (after[:, j] > np.where(np.isnan(before[:, j]), 0.0, before[:, j]))
                yield Stop(NO_WORK, j, np.flatnonzero(idle & rises))
        yield from self._money(before, after, changed)
        yield from self._far_away(before, after, changed)

    def _money(self, before: Floats, after: Floats, changed: Bools) -> Iterator[Stop]:
        """Yield the rows whose savings and debts change by more than the loan only if they are added."""
        saved = [j for j, column in enumerate(self.columns) if self._is_saved.get(column.name)]
        owed = [j for j, column in enumerate(self.columns) if self._is_saved.get(column.name) is False]
        for k in self._loans:
            unit, loan = self.units.get(self.columns[k].name), np.fmin(before[:, k], after[:, k])
            for j in saved:
                for i in owed:
                    if {self.units.get(self.columns[each].name) for each in (i, j)} == {unit}:
                        rise, fall = after[:, j] - np.nan_to_num(before[:, j]), before[:, i] - after[:, i]
                        both = changed[:, [i, j]].all(axis=1) & (np.maximum(rise, fall) <= loan) & (rise + fall > loan)
                        yield Stop(UNEXPLAINED_MONEY, j, np.flatnonzero(both), (self.columns[k].name, i))

    def _far_away(self, before: Floats, after: Floats, changed: Bools) -> Iterator[Stop]:
        """Yield the rows that are far from the decision, with the column of the longest step."""
        _, begins, retired = self._work(before, after)
        steps = np.zeros((2, len(before)))  # of incomes and of amounts that are owed
        longest = np.zeros((2, len(before)), dtype=np.int64)
        for j in np.flatnonzero(changed.any(axis=0)).tolist():
            name = self.columns[j].name
            if name not in self.usual.factors or name in self.usual.unchangeable:
                continue
            kind = 0 if is_income(name) else 1 if self._is_borrowed(j) else None
            if kind is None:
                continue
            own = self._clipped(name, before[:, j])
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.log(np.maximum(after[:, j], 0.0) / own)
            if kind == 0:
                step = np.where(begins, 0.0, ratio / np.log(INCOME_TIMES) * np.where(retired, PENSION, 1.0))
            else:
                step = ratio / np.log(OWED_PART)
            step = np.where(changed[:, j], np.fmax(step, 0.0), 0.0)
            longest[kind] = np.where(step > steps[kind], j, longest[kind])
            steps[kind] = np.maximum(step, steps[kind])
        far = (np.hypot(*steps) > self.reach + 1e-9) | (steps.max(axis=0) > self.step + 1e-9)
        first, at = (steps[1] > steps[0]).astype(int), np.arange(len(before))  # the kind of the longer step
        other = np.where(steps[1 - first, at] > 0.0, longest[1 - first, at], -1)
        columns = np.column_stack([longest[first, at], other])
        for j, k in np.unique(columns[far], axis=0).tolist():
            yield Stop(FAR_AWAY, j, np.flatnonzero(far & (columns == [j, k]).all(axis=1)), k if k >= 0 else None)

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

    def _is_borrowed(self, j: int) -> bool:
        """Return whether a column is a loan or a debt, except a debt that the loan may repay (reason 6)."""
        name = self.columns[j].name
        repaid = any(self.units.get(self.columns[k].name) == self.units.get(name) for k in self._loans)
        return is_owed(name) and (is_loan(name) or not repaid)

    def _may_begin(self, before: Floats, after: Floats | None) -> Bools:
        """Return which rows have another level in a column without an order; all with such columns if unknown."""
        levels = [j for j, column in enumerate(self.columns) if not column.is_ordered]
        if after is None:
            return np.full(len(before), bool(levels))
        old, new = before[:, levels], after[:, levels]
        return np.asarray(((old != new) & ~(np.isnan(old) & np.isnan(new))).any(axis=1))

    def _direction(self, j: int) -> int:
        """Return the direction that usually helps refused rows, or the better one by the name of a number."""
        name, is_number, _, _ = self.columns[j]
        by_name = better_direction(name) if is_number and name in self.usual.spreads else 0
        return self.usual.directions.get(name, by_name)

    def _clipped(self, name: Hashable, own: Floats) -> Floats:
        """Return the positive values of factuals, or the outer values if these are nearer; NaN for others."""
        own = np.where(own > 0.0, own, np.nan)
        return np.clip(own, *self._ends[name]) if name in self._ends else own

    def _far(self, j: int, before: Floats, after: Floats | None) -> Iterator[_Bound]:
        """Yield the values that differ from the factuals', or from the outer values, by a usual factor."""
        name = self.columns[j].name
        own = self._clipped(name, before[:, j])
        lowest, highest = self.usual.factors[name]
        low, high, farthest = own * lowest, own * highest, own * INCOME_TIMES**self.step
        if name not in self._ends:
            low, high = np.full(len(own), -np.inf), np.maximum(high, self.usual.highs[name])
        if not is_income(name):
            yield _Bound(FAR_STEP, low, high)
            if self._is_borrowed(j) and after is None:
                yield _Bound(FAR_AWAY, low=own * OWED_PART**self.step)
            return
        may_begin = np.zeros(len(own), dtype=bool)
        if after is not None:
            may_begin = self._work(before, after)[1]
        else:
            for k, out, _ in self._statuses:
                may_begin |= np.isin(before[:, k], out)
        yield _Bound(FAR_STEP, low, np.where(may_begin, np.fmax(high, self.usual.highs[name]), high))
        if after is None:
            yield _Bound(FAR_AWAY, high=np.where(may_begin, np.inf, farthest))

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
            begins = self._may_begin(before, after)
            start = np.where((own < 0.0) & begins, 0.0, own)
            yield _Bound(DURATION, high=np.where(start >= 0.0, start + YEARS * usual.durations[name], np.inf))
        if name in usual.highs:
            yield _Bound(FROM_ZERO, high=np.where(np.isnan(own) | (own == 0.0), usual.highs[name], np.inf))
        if name in usual.factors:
            yield from self._far(j, before, after)
        for k in self._loans if name in self._is_saved else ():
            loan = self.columns[k].name
            if self.units.get(loan) == self.units.get(name):
                loan_amount = before[:, k] if after is None else np.fmin(before[:, k], after[:, k])
                saved = np.where(np.isnan(own), 0.0, own)
                low, high = (-np.inf, saved + loan_amount) if self._is_saved[name] else (own - loan_amount, np.inf)
                yield _Bound(UNEXPLAINED_MONEY, low, high, loan)
