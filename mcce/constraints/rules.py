"""Rules on a row and its factual: as given, and resolved for encoded rows.

The parser and its modules are imported with the first rule.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats
from mcce.constraints.base import Constraint, SimpleConstraint, register_constraint
from mcce.exceptions import InputError, did_you_mean, spell
from mcce.samplers.restricted import Within
from mcce.storage.state import Fields
from mcce.table import Schema
from mcce.wording import PythonOnly, Value, call

if TYPE_CHECKING:
    from mcce.constraints.conditions import Condition
    from mcce.constraints.grammar import Node

RowRule = Callable[[pd.DataFrame, pd.DataFrame], Any]


@register_constraint("rule", stored_as="Rule")
@dataclass(frozen=True)
class Rule(SimpleConstraint):
    """A rule, made by `rule`: a text with its tree, or a function."""

    says: str | None
    function: RowRule | None = None
    features: tuple[Hashable, ...] | None = None
    name: str | None = None
    tree: Node | None = field(default=None, compare=False, repr=False)
    chain: tuple[str, ...] | None = field(default=None, compare=False, repr=False)  # transitions: feature, levels

    @classmethod
    def keys(cls) -> dict[str, bool]:
        return {"says": True, "name": False}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Constraint:
        return rule(table["says"], name=table.get("name"))

    @classmethod
    def from_section(cls, entries: Any, where: str) -> Iterator[Constraint]:
        several = [entries] if isinstance(entries, (Mapping, str)) else entries
        if isinstance(several, list):
            several = [{"says": each} if isinstance(each, str) else each for each in several]
        yield from super().from_section(several, where)

    def to_stored(self) -> Fields:
        if self.says is None:
            raise InputError("a rule that is a Python function, which cannot be stored; write it as text.")
        return {"says": self.says, "name": self.name}

    @classmethod
    def from_stored(cls, stored: Fields) -> Rule:
        if not isinstance(stored["says"], str):
            raise InputError("a rule that is not a text")
        return rule(stored["says"], name=stored["name"])

    def words(self) -> str:
        if self.name is not None:
            return self.name
        return self.says if self.says is not None else getattr(self.function, "__name__", repr(self.function))


def rule(expression: str | RowRule, *, features: Iterable[Hashable] | None = None, name: str | None = None) -> Rule:
    """Require a condition of every row and its factual.

    Parameters
    ----------
    expression : str or function
        A text, or a function of two aligned frames, rows and their factuals, that returns a boolean for each row.
    features : list
        The columns that a function reads; the frames hold these only. None: all columns.
    name : str
        Name in tables and messages; by default the text, or the name of the function.

    Notes
    -----
    A text has numbers, levels and dates in quotes, column names (unusual ones in backticks), ``+ - * /``, ``== != < <=
    > >=`` (also chained), ``in [...]``, ``not in [...]``, ``and``, ``or``, ``not``, ``if A then B else C``,
    ``was(name)`` for the factual's value, ``missing(name)``, and functions: ``abs``, ``exp``, ``log``, ``sqrt``,
    ``min``, ``max``, ``round(x)`` or ``round(x, decimals)`` (half to even), ``floor``, ``ceil`` and ``trunc`` alike,
    ``if(A, x, y)``, and ``days(a - b)``, ``months(a - b)``, ``years(a - b)`` of dates. Months and years are completed
    ones by the calendar: ``years(today - born)`` is an age, and rises on birthdays (that of 29 February on 1 March in
    other years). For a mean length write ``days(a - b) / 365.25``.

    Ordered levels are compared by their order. Differences of dates are days, and numbers added to dates are days. A
    comparison with a missing value is false, also ``!=`` and ``not in``. Values computed from a missing value are
    missing, as are quotients by 0 and undefined functions such as ``log(-1)``. No text is run as Python.

    Examples
    --------
    >>> import mcce
    >>> print(mcce.rule("if employed == 'no' then salary == 0"))
    if employed == 'no' then salary == 0
    >>> print(mcce.rule(lambda rows, was: rows["rent"] <= was["rent"], features=["rent"], name="rent may not rise"))
    rent may not rise
    """
    if name is not None and not (isinstance(name, str) and name):
        raise InputError("name of a rule is ", Value(name), "; give a text, or leave it out.")
    if isinstance(expression, str):
        if features is not None:
            raise InputError(f"rule {spell(expression)} names its columns itself; leave features out.")
        from mcce.constraints.grammar import parse

        return Rule(expression.strip(), None, None, name, parse(expression.strip()))
    if not callable(expression):
        raise InputError(
            "a rule is ",
            Value(expression),
            "; give a text such as 'savings >= 3 * rent'",
            PythonOnly(", or a function of two frames"),
            ".",
        )
    if isinstance(features, str):
        raise InputError(f"features of a rule is {features!r}; give a list, for example [{features!r}].")
    return Rule(None, expression, None if features is None else tuple(dict.fromkeys(features)), name)


def transitions(feature: str, steps: str) -> Rule:
    """Allow a feature to change only forward along a chain of levels, such as education.

    Parameters
    ----------
    feature : column label
    steps : str
        Levels in order, ``"none -> primary -> secondary"``. A level may stay or become any later one of the chain.
        Levels outside the chain stay.

    Returns
    -------
    Rule
        A `rule` on ``was(feature)``, for unordered levels. For ordered levels use
        ``mcce.allow(feature, direction="increase")``.

    Examples
    --------
    >>> import mcce
    >>> print(mcce.transitions("education", "none -> primary -> secondary"))
    education: none -> primary -> secondary
    """
    if not isinstance(feature, str) or "`" in feature:
        raise InputError("feature of transitions is ", Value(feature), "; give the name of a column, a text.")
    levels = [level.strip() for level in steps.split("->")] if isinstance(steps, str) else []
    if len(levels) < 2 or not all(levels) or len({*levels}) < len(levels):
        raise InputError(
            f"transitions of {feature!r} are ",
            Value(steps),
            "; give different levels as 'none -> primary -> secondary'.",
        )
    name, texts = f"`{feature}`", [_quoted(level) for level in levels]
    ways = [f"was({name}) == {each} and {name} in [{', '.join(texts[i + 1 :])}]" for i, each in enumerate(texts[:-1])]
    stays = f"{name} == was({name}) or missing({name}) and missing(was({name}))"
    made = rule(" or ".join([stays, *ways]), name=f"{feature}: {' -> '.join(levels)}")
    return replace(made, chain=(feature, *levels))


def _quoted(level: str) -> str:
    return f'"{level}"' if "'" in level else f"'{level}'"


@dataclass(frozen=True)
class ResolvedRule:
    """A rule that can be evaluated on encoded rows.

    Attributes
    ----------
    text : its name.
    columns : positions of the columns of a row that it reads, in data order.
    factual_columns : positions of the columns of the factual that it reads.
    """

    text: str
    columns: tuple[int, ...]
    factual_columns: tuple[int, ...]
    condition: Condition | None = None
    function: RowRule | None = None
    schema: Schema | None = field(default=None, compare=False, repr=False)

    @property
    def reads_factual(self) -> bool:
        """Whether the rule reads the factual's values."""
        return bool(self.factual_columns)

    def __str__(self) -> str:
        return self.text

    def holds(self, rows: Floats, factuals: Floats | None) -> Bools:
        """Return in which rows the rule holds; `factuals` has the factual of each row, all columns in data order.

        It may be None if the rule does not read factuals.
        """
        factuals = rows if factuals is None else factuals
        if self.condition is not None:
            return self.condition.holds(rows, factuals)
        assert self.schema is not None
        read = list(self.columns)
        return self._evaluate(self.schema.decode(rows[:, read]), self.schema.decode(factuals[:, read]))

    def within_for(self, column: int, rows: Floats, factuals: Floats | None) -> Within | None:
        """Return the values of a column for which the rule holds in each row; None if they cannot be derived.

        The column's own values in `rows` are not read.
        """
        from mcce.constraints.bounds import bounds_of

        factuals = rows if factuals is None else factuals
        return None if self.condition is None else bounds_of(self.condition, column, rows, factuals)

    def _evaluate(self, rows: pd.DataFrame, factuals: pd.DataFrame) -> Bools:
        assert self.function is not None
        if not len(rows):
            return np.empty(0, dtype=bool)
        try:
            answer = np.asarray(self.function(rows, factuals))
        except Exception as error:
            raise InputError(
                f"rule {self.text!r} raised {type(error).__name__}: {error}. It is called with two frames, rows and "
                "their factuals; features= names their columns."
            ) from error
        if answer.shape != (len(rows),) or not all(isinstance(each, (bool, np.bool_)) for each in answer[:1]):
            got = f"an array of shape {answer.shape} and dtype {answer.dtype}"
            raise InputError(f"rule {self.text!r} returned {got} for {len(rows)} rows; return one boolean for each.")
        for each in answer if answer.dtype == object else ():
            if not isinstance(each, (bool, np.bool_)):
                raise InputError(f"rule {self.text!r} returned a value that is not boolean: {spell(each)}.")
        return answer.astype(bool)


class Derives(Protocol):
    """Columns that are computed from others in the same row."""

    def sources(self, columns: Iterable[int]) -> set[int]:
        """Return the columns from which some columns are computed, and those that are not derived themselves."""

    def compute(self, rows: Floats, columns: Iterable[int]) -> Floats:
        """Return rows with computed values of the derived columns among some columns."""


@dataclass(frozen=True)
class DerivedRule(ResolvedRule):
    """A rule on derived columns: it is checked with their computed values, and reads their source columns.

    Rows that are drawn feature by feature do not yet have valid values of derived columns.
    """

    named: ResolvedRule = field(kw_only=True)
    derived: Derives = field(kw_only=True, compare=False, repr=False)

    def holds(self, rows: Floats, factuals: Floats | None) -> Bools:
        return self.named.holds(self.derived.compute(rows, self.named.columns), factuals)

    def within_for(self, column: int, rows: Floats, factuals: Floats | None) -> Within | None:
        return None


def with_derived(rule: ResolvedRule, derived: Derives) -> ResolvedRule:
    """Return a rule that is checked with computed values of derived columns, if it names any."""
    columns = tuple(sorted(derived.sources(rule.columns)))
    if columns == rule.columns:
        return rule
    return DerivedRule(rule.text, columns, rule.factual_columns, named=rule, derived=derived)


def _check_chain(feature: str, *levels: str, schema: Schema) -> None:
    """Raise if the feature of `transitions` is not a column of levels, or has no such level."""
    from mcce.constraints.encoding import LevelCodes

    column = next((each for each in schema.features if str(each.name) == feature), None)
    where = f"transitions of {spell(feature)}"
    if column is None:
        raise InputError(f"{where}: there is no such column; {did_you_mean(feature, schema.names)}")
    if column.levels is None:
        raise InputError(f"{where}: the column has no levels; use ", call("mcce.allow", feature, ...), " to limit it.")
    codes = LevelCodes(column)
    for level in levels:
        try:
            codes.find(level)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None


def resolve_rule(given: Rule, schema: Schema) -> ResolvedRule:
    """Return a rule for the columns of a table; raise on unknown names and levels."""
    if given.says is not None:
        from mcce.constraints.conditions import columns_read
        from mcce.constraints.meaning import condition_of

        assert given.tree is not None
        if given.chain is not None:
            _check_chain(*given.chain, schema=schema)
        condition = condition_of(given.tree, given.says, schema)
        found = list(columns_read(condition))
        if not found:
            raise InputError(
                f"rule {spell(given.says)} reads no column, so it holds in all rows or in none; compare a column, as "
                "in 'savings >= 0', or leave the rule out."
            )
        rows, factuals = ({c.column for c in found if c.was == was} for was in (False, True))
        return ResolvedRule(str(given), tuple(sorted(rows)), tuple(sorted(factuals)), condition)
    names = schema.names if given.features is None else given.features
    where = f"a feature of the rule {str(given)!r},"
    read = sorted(schema.position(name, where, "the training data") for name in names)
    subset = schema.subset([schema.names[j] for j in read])
    return ResolvedRule(str(given), tuple(read), tuple(read), None, given.function, subset)
