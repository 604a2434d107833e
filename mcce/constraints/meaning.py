"""Translation of a rule for a table: names become columns, levels codes, dates numbers.

Every part has a type: number, level of a column, date, condition, or quoted text, whose type is that of the other side
of its comparison. A difference of dates is a number of days; ``months`` and ``years`` count completed ones. Levels are
compared by == and !=, those of an ordered column also by order. A column of true and false is a condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd
from typing import NoReturn

import numpy as np
import pandas as pd

from mcce.constraints import grammar as nodes
from mcce.constraints.conditions import (
    Chosen,
    ColumnValue,
    Compared,
    Complement,
    Computed,
    Condition,
    Conjunction,
    Constant,
    ConstantCondition,
    Disjunction,
    Elapsed,
    IsMissing,
    Rounded,
    Value,
    Where,
)
from mcce.constraints.encoding import DAY, clock_of, days_of, encode_value, level_code
from mcce.constraints.grammar import refuse
from mcce.exceptions import InputError, did_you_mean, shorten, spell
from mcce.table import Feature, Schema
from mcce.table.dtypes import date_family, is_dated
from mcce.table.grid import MOST_DECIMALS


@dataclass(frozen=True)
class _NumberSort:
    value: Value


@dataclass(frozen=True)
class _LevelSort:
    value: ColumnValue
    feature: Feature


@dataclass(frozen=True)
class _DateSort:
    value: Value
    feature: Feature


@dataclass(frozen=True)
class _QuotedSort:
    text: str


@dataclass(frozen=True)
class _ConditionSort:
    condition: Condition


@dataclass(frozen=True)
class _LevelChoiceSort:
    """A choice of two levels, whose codes depend on the other side of a comparison."""


_Sort = _NumberSort | _LevelSort | _DateSort | _QuotedSort | _ConditionSort | _LevelChoiceSort
_MONTHS = {"days": 0, "months": 1, "years": 12}


def condition_of(tree: nodes.Node, text: str, schema: Schema) -> Condition:
    """Return the condition of a rule on encoded rows."""
    return _Reader(text, schema).condition(tree)


class _Reader:
    def __init__(self, text: str, schema: Schema) -> None:
        self.text = text
        self.schema = schema

    def refuse(self, node: nodes.Node, wrong: str) -> NoReturn:
        refuse(self.text, node.at, wrong)

    # ---- conditions

    def condition(self, node: nodes.Node) -> Condition:
        if isinstance(node, nodes.AllOf):
            return Conjunction(tuple(map(self.condition, node.parts)))
        if isinstance(node, nodes.AnyOf):
            return Disjunction(tuple(map(self.condition, node.parts)))
        if isinstance(node, nodes.Negation):
            return Complement(self.condition(node.part))
        if isinstance(node, nodes.If):
            otherwise = ConstantCondition(True) if node.otherwise is None else self.condition(node.otherwise)
            return Where(self.condition(node.condition), self.condition(node.then), otherwise)
        if isinstance(node, nodes.ComparisonOf):
            pairs = zip(node.values[:-1], node.signs, node.values[1:])
            found = [self.compared(left, sign, right) for left, sign, right in pairs]
            return found[0] if len(found) == 1 else Conjunction(tuple(found))
        if isinstance(node, nodes.Member):
            if node.negated:
                return Conjunction(tuple(self.compared(node.value, "!=", each) for each in node.among))
            return Disjunction(tuple(self.compared(node.value, "==", each) for each in node.among))
        if isinstance(node, nodes.Missing):
            return IsMissing(self.column(node.name))
        if isinstance(node, nodes.Truth):
            return ConstantCondition(node.value)
        found_sort = self.sort(node)
        if isinstance(found_sort, _LevelSort) and _is_logical(found_sort.feature):
            return Compared(found_sort.value, "==", Constant(float(level_code(found_sort.feature, True))))
        self.refuse(node, f"{self.called(node, found_sort)} is neither true nor false; compare it with something.")

    def compared(self, left: nodes.Node, sign: str, right: nodes.Node) -> Condition:
        a, b = self.sort(left), self.sort(right)
        if isinstance(a, _LevelSort):
            return Compared(a.value, sign, self.level_beside(a, sign, right, b))
        if isinstance(b, _LevelSort):
            return Compared(self.level_beside(b, sign, left, a), sign, b.value)
        if isinstance(a, _DateSort) or isinstance(b, _DateSort):
            date = a if isinstance(a, _DateSort) else b
            assert isinstance(date, _DateSort)
            return Compared(self.date_beside(date, left, a), sign, self.date_beside(date, right, b))
        if isinstance(a, _NumberSort) and isinstance(b, _NumberSort):
            return Compared(a.value, sign, b.value)
        wrong, other = (left, right) if not isinstance(a, _NumberSort) else (right, left)
        self.refuse(
            wrong,
            f"{self.called(wrong, self.sort(wrong))} cannot be compared with "
            f"{self.called(other, self.sort(other))}; compare numbers with numbers, levels with a column of levels.",
        )

    def level_beside(self, level: _LevelSort, sign: str, node: nodes.Node, sort: _Sort) -> Value:
        feature = level.feature
        by_order = sign not in ("==", "!=")
        if by_order and feature.kind != "ordered":
            self.refuse(
                node,
                f"the levels of {feature.name!r} have no order, so {sign} cannot compare them; use == or in [...], "
                "or make it an ordered category.",
            )
        if isinstance(sort, _LevelSort):
            assert feature.levels is not None
            assert sort.feature.levels is not None
            if feature.levels.equals(sort.feature.levels):
                return sort.value
            if by_order:
                self.refuse(node, f"{sort.feature.name!r} has other levels than {feature.name!r}: they have no order.")
            codes = tuple(_code_or_none(feature, each) for each in sort.feature.levels)
            return replace(sort.value, codes=codes)
        if isinstance(node, nodes.IfValue):
            both = node.then, node.otherwise
            then, otherwise = (self.level_beside(level, sign, each, self.sort(each)) for each in both)
            return Chosen(self.condition(node.condition), then, otherwise)
        if isinstance(sort, _ConditionSort) and not isinstance(node, nodes.Truth) and _is_logical(feature):
            yes, no = (Constant(_code_or_none(feature, each)) for each in (True, False))
            return Chosen(sort.condition, yes, no)
        written: object = None
        if isinstance(sort, _QuotedSort):
            written = sort.text
        elif isinstance(node, nodes.Truth):
            written = node.value
        elif isinstance(sort, _NumberSort) and isinstance(sort.value, Constant):
            written = sort.value.value
        else:
            self.refuse(node, f"{self.called(node, sort)} cannot be compared with the levels of {feature.name!r}.")
        return Constant(float(self.guarded(node, lambda: level_code(feature, written))))

    def date_beside(self, date: _DateSort, node: nodes.Node, sort: _Sort) -> Value:
        """Return a side of a comparison with dates, in their common unit."""
        if isinstance(sort, _QuotedSort):
            clock, j = clock_of(self.schema, date.feature), self.schema.names.index(date.feature.name)
            text = sort.text
            encoded = self.guarded(node, lambda: encode_value(date.feature, text))
            return Constant(encoded * clock.times[j] + clock.plus[j])
        if isinstance(sort, _DateSort) and date_family(sort.feature.dtype) == date_family(date.feature.dtype):
            return sort.value
        self.refuse(
            node,
            f"{self.called(node, sort)} cannot be compared with the dates of {date.feature.name!r}; "
            "write a date in quotes, as in '2024-05-31'.",
        )

    def guarded(self, node: nodes.Node, make: Callable[[], float]) -> float:
        """Return `make()`; errors name the position in the rule."""
        try:
            return make()
        except InputError as error:
            self.refuse(node, str(error))

    # ---- values

    def sort(self, node: nodes.Node) -> _Sort:
        if isinstance(node, nodes.Number):
            return _NumberSort(Constant(node.value))
        if isinstance(node, nodes.Text):
            return _QuotedSort(node.value)
        if isinstance(node, nodes.NameOf):
            return self.named(node)
        if isinstance(node, nodes.Negative):
            inner = self.number(node.value, self.sort(node.value))
            if isinstance(inner, Constant):
                return _NumberSort(Constant(-inner.value))
            return _NumberSort(Computed("-", (Constant(0.0), inner)))
        if isinstance(node, nodes.Arithmetic):
            return self.arithmetic(node)
        if isinstance(node, nodes.Call):
            return self.call(node)
        if isinstance(node, nodes.IfValue):
            return self.choice(node)
        return _ConditionSort(self.condition(node))

    def call(self, node: nodes.Call) -> _Sort:
        """Return a function of numbers, or min and max of dates."""
        if node.function in _MONTHS:
            return _NumberSort(self.elapsed(node))
        sorts = [self.sort(each) for each in node.arguments]
        date = next((each for each in sorts if isinstance(each, _DateSort)), None)
        if date is not None and node.function in ("min", "max"):
            sides = tuple(self.date_beside(date, *each) for each in zip(node.arguments, sorts))
            return _DateSort(Computed(node.function, sides), date.feature)
        values = tuple(map(self.number, node.arguments, sorts))
        if node.function not in ("round", "floor", "ceil", "trunc"):
            return _NumberSort(Computed(node.function, values))
        decimals = values[1] if len(values) > 1 else Constant(0.0)
        if not isinstance(decimals, Constant) or decimals.value not in range(-MOST_DECIMALS, MOST_DECIMALS + 1):
            self.refuse(
                node.arguments[1],
                f"the decimals of {node.function}() are not a whole number from {-MOST_DECIMALS} to {MOST_DECIMALS}; "
                f"write for example {node.function}(x, 2).",
            )
        return _NumberSort(Rounded(node.function, values[0], int(decimals.value)))

    def elapsed(self, node: nodes.Call) -> Value:
        """Return the days, completed months or completed years between two dates."""
        (difference,) = node.arguments
        if isinstance(difference, nodes.Arithmetic) and difference.sign == "-":
            sorts = self.sort(difference.left), self.sort(difference.right)
            date = next((each for each in sorts if isinstance(each, _DateSort)), None)
            if date is not None and not isinstance(date.feature.dtype, pd.PeriodDtype):
                end = self.date_beside(date, difference.left, sorts[0])
                begin = self.date_beside(date, difference.right, sorts[1])
                clock = clock_of(self.schema, date.feature)
                if node.function == "days":
                    shared = gcd(clock.unit, DAY)  # exact for whole days
                    ticks = Computed("*", (Computed("-", (end, begin)), Constant(float(clock.unit // shared))))
                    return Computed("/", (ticks, Constant(float(DAY // shared))))
                zone = getattr(getattr(date.feature.dtype, "pyarrow_dtype", date.feature.dtype), "tz", None)
                return Elapsed(_MONTHS[node.function], begin, end, clock.base, clock.unit, zone)
        self.refuse(
            difference,
            f"{node.function}() takes a difference of two dates, as in {node.function}(applied_on - hired_on); "
            "periods and durations are already numbers.",
        )

    def choice(self, node: nodes.IfValue) -> _Sort:
        """Return if(condition, a, b) of numbers or dates; levels are resolved by the other side of the comparison."""
        condition, both = self.condition(node.condition), (node.then, node.otherwise)
        sorts = [self.sort(each) for each in both]
        date = next((each for each in sorts if isinstance(each, _DateSort)), None)
        if date is not None:
            then, otherwise = map(self.date_beside, (date, date), both, sorts)
            return _DateSort(Chosen(condition, then, otherwise), date.feature)
        if any(isinstance(each, _NumberSort) for each in sorts):
            return _NumberSort(Chosen(condition, *map(self.number, both, sorts)))
        return _LevelChoiceSort()

    def number(self, node: nodes.Node, sort: _Sort) -> Value:
        if isinstance(sort, _NumberSort):
            return sort.value
        self.refuse(node, f"{self.called(node, sort)} is not a number, and cannot be used in arithmetic.")

    def arithmetic(self, node: nodes.Arithmetic) -> _Sort:
        left, right = self.sort(node.left), self.sort(node.right)
        if not isinstance(left, _DateSort) or node.sign not in ("+", "-"):
            return _NumberSort(Computed(node.sign, (self.number(node.left, left), self.number(node.right, right))))
        day = Constant(clock_of(self.schema, left.feature).day)
        if isinstance(right, _DateSort) and node.sign == "-":
            difference = Computed("-", (left.value, self.date_beside(left, node.right, right)))
            return _NumberSort(Computed("/", (difference, day)))
        days = Computed("*", (self.number(node.right, right), day))
        return _DateSort(Computed(node.sign, (left.value, days)), left.feature)

    def named(self, node: nodes.NameOf) -> _Sort:
        value = self.column(node)
        feature = self.schema.features[value.column]
        if not feature.is_numeric:
            return _LevelSort(value, feature)
        if not is_dated(feature.dtype):
            return _NumberSort(value)
        if getattr(feature.dtype, "kind", "O") == "m":
            times, plus = days_of(feature)
            return _NumberSort(replace(value, times=times, plus=plus))
        clock = clock_of(self.schema, feature)
        return _DateSort(replace(value, times=clock.times[value.column], plus=clock.plus[value.column]), feature)

    def column(self, node: nodes.NameOf) -> ColumnValue:
        found = self.position(node)
        return ColumnValue(found, node.was, n_levels=self.schema.features[found].n_levels)

    def position(self, node: nodes.NameOf) -> int:
        """Return the column of a name; labels that are not text are matched by their text."""
        names = self.schema.names
        for alike in ([n == node.name for n in names], [str(n) == node.name for n in names]):
            at = np.flatnonzero([bool(each) for each in alike])
            if at.size == 1:
                return int(at[0])
            if at.size > 1:
                self.refuse(node, f"{spell(node.name)} names {at.size} columns; rename all but one of them.")
        owners = [f.name for f in self.schema.features if f.levels is not None and node.name in map(str, f.levels)]
        if owners:
            self.refuse(
                node,
                f"{spell(node.name)} is not a column but a level of {owners[0]!r}; put levels in quotes: "
                f"'{shorten(node.name)}'.",
            )
        self.refuse(node, f"{spell(node.name)} is not a column; {did_you_mean(node.name, names)}")

    def called(self, node: nodes.Node, sort: _Sort) -> str:
        if isinstance(node, nodes.NameOf):
            kind = {_LevelSort: "levels", _DateSort: "dates"}.get(type(sort), "numbers")
            return f"{spell(node.name)} (a column of {kind})"
        if isinstance(sort, _QuotedSort):
            return f"{spell(sort.text)} (text)"
        if isinstance(sort, _NumberSort):
            return f"{node.value:g}" if isinstance(node, nodes.Number) else "a number"
        if isinstance(sort, _LevelChoiceSort):
            return "if(...) of levels"
        return "a condition" if isinstance(sort, _ConditionSort) else "a date"


def _is_logical(feature: Feature) -> bool:
    assert feature.levels is not None
    return all(isinstance(level, (bool, np.bool_)) for level in feature.levels) and True in list(feature.levels)


def _code_or_none(feature: Feature, level: object) -> float:
    """Return the code of another column's level; -1 if it is unknown."""
    try:
        return float(level_code(feature, level))
    except InputError:
        return -1.0
