"""Rules over a row and its factual: as the user gives them, ready to be asked, and as bounds of a feature.

1. `rule` reads a text by a small grammar (`mcce.constraints.grammar`), or takes a function of two frames.
2. `resolve_rule` finds the columns it names, and makes a `ResolvedRule` that is asked of encoded rows.

`bounds_of` gives exact bounds of the last feature that a rule names, the others being known:

3. A comparison with the feature alone on one side bounds it: an interval, some levels, or a number that it may not be.
4. Conditions that hold together: values that all of them allow. Conditions of which one has to hold: everything where
   one holds that is known without the feature; elsewhere the levels that any of the others allows, or the numbers that
   the only other one allows.
5. ``if A then B else C``, where A is known without the feature: the values that B or C allows.
6. Anything else is tried level by level; for a number it is not solved (None): such a rule is asked of the drawn row.

Where a bound can be given, a value is allowed if, and only if, the rule holds with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats
from mcce.constraints.base import Constraint, register_constraint
from mcce.constraints.conditions import (
    ColumnValue,
    Compared,
    Condition,
    Every,
    IsMissing,
    Some,
    Value,
    Where,
    columns_read,
    compare,
    reads,
)
from mcce.constraints.grammar import Node, parse
from mcce.constraints.meaning import condition_of
from mcce.exceptions import InputError, spell
from mcce.samplers.restricted import Within
from mcce.storage.state import Fields
from mcce.table import Schema

_TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def bounds_of(condition: Condition, column: int, rows: Floats, factuals: Floats) -> Within | None:
    """Return what a column may be in each row so that the condition holds; None if that cannot be told."""
    n_levels = max((c.n_levels for c in columns_read(condition) if c.column == column and not c.was), default=0)
    found = _solve(condition, column, rows, factuals, n_levels)
    return _try_levels(condition, column, rows, factuals, n_levels) if found is None and n_levels else found


def _try_levels(condition: Condition, column: int, rows: Floats, factuals: Floats, n_levels: int) -> Within:
    """Step 4: return the levels with which a condition holds."""
    tried = rows.copy()
    held = []
    for code in (*range(n_levels), np.nan):
        tried[:, column] = code
        held.append(condition.holds(tried, factuals))
    return Within(levels=np.column_stack(held[:-1]), missing=held[-1])


def everything(n_rows: int, n_levels: int) -> Within:
    """Return the restriction that allows everything."""
    return _same(np.ones(n_rows, dtype=bool), n_levels)


def _solve(node: Condition, column: int, rows: Floats, factuals: Floats, n_levels: int) -> Within | None:
    if not reads(node, column):
        return _same(node.holds(rows, factuals), n_levels)
    if isinstance(node, Compared):
        return _compared(node, column, rows, factuals)
    if isinstance(node, IsMissing):
        nothing = _same(np.zeros(rows.shape[0], dtype=bool), n_levels)
        return Within(nothing.low, nothing.high, nothing.levels, np.ones(rows.shape[0], dtype=bool))
    if isinstance(node, Every):
        parts = [_solve(part, column, rows, factuals, n_levels) for part in node.parts]
        found = everything(rows.shape[0], n_levels)
        for part in parts:
            if part is None:
                return None
            found = found & part
        return found
    if isinstance(node, Some):
        return _some(node, column, rows, factuals, n_levels)
    if isinstance(node, Where) and not reads(node.condition, column):
        then = _solve(node.then, column, rows, factuals, n_levels)
        otherwise = _solve(node.otherwise, column, rows, factuals, n_levels)
        if then is None or otherwise is None:
            return None
        return _where(node.condition.holds(rows, factuals), then, otherwise)
    return None


def _some(node: Some, column: int, rows: Floats, factuals: Floats, n_levels: int) -> Within | None:
    """Step 2 for conditions of which one has to hold: what any of them allows, if that is levels or one interval."""
    open_parts = [part for part in node.parts if reads(part, column)]
    if len(open_parts) > 1 and not n_levels:
        return None
    holds = np.zeros(rows.shape[0], dtype=bool)
    for part in node.parts:
        if not reads(part, column):
            holds |= part.holds(rows, factuals)
    found: Within | None = None
    for part in open_parts:
        left = _solve(part, column, rows, factuals, n_levels)
        if left is None:
            return None
        found = left if found is None else _either(found, left)
    assert found is not None
    return _where(holds, everything(rows.shape[0], n_levels), found)


def _either(one: Within, other: Within) -> Within:
    """Return the levels that one restriction or another allows."""
    assert one.levels is not None
    assert one.missing is not None
    assert other.levels is not None
    assert other.missing is not None
    return Within(levels=one.levels | other.levels, missing=one.missing | other.missing)


def _compared(node: Compared, column: int, rows: Floats, factuals: Floats) -> Within | None:
    """Step 1."""
    for target, sign, other in ((node.left, node.sign, node.right), (node.right, _TURNED[node.sign], node.left)):
        if _is_target(target, column) and not reads(other, column):
            assert isinstance(target, ColumnValue)
            return _bound(target, sign, other.of(rows, factuals))
    return None


def _is_target(value: Value, column: int) -> bool:
    return isinstance(value, ColumnValue) and value.column == column and not value.was and value.codes is None


def _bound(target: ColumnValue, sign: str, other: Floats) -> Within:
    n = other.size
    not_missing = np.zeros(n, dtype=bool)
    if target.n_levels:
        codes = np.arange(target.n_levels, dtype=np.float64)
        return Within(
            levels=compare(np.broadcast_to(codes, (n, target.n_levels)), sign, other[:, None]), missing=not_missing
        )
    known = ~np.isnan(other)
    value = (other - target.plus) / target.times
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    if sign in ("==", ">="):
        low = value
    if sign in ("==", "<="):
        high = value
    if sign == ">":
        low = np.nextafter(value, np.inf)
    if sign == "<":
        high = np.nextafter(value, -np.inf)
    return Within(
        low=np.where(known, low, np.inf),
        high=np.where(known, high, -np.inf),
        missing=not_missing,
        never=value[:, None] if sign == "!=" else None,
    )


def _same(holds: Bools, n_levels: int) -> Within:
    """Return everything where a condition holds, nothing elsewhere."""
    if n_levels:
        return Within(levels=np.repeat(holds[:, None], n_levels, axis=1), missing=holds.copy())
    return Within(low=np.where(holds, -np.inf, np.inf), high=np.where(holds, np.inf, -np.inf), missing=holds.copy())


def _where(condition: Bools, then: Within, otherwise: Within) -> Within:
    """Return one restriction where a condition holds, another elsewhere."""
    n = condition.size
    assert then.missing is not None
    assert otherwise.missing is not None
    missing = np.where(condition, then.missing, otherwise.missing)
    if then.levels is not None and otherwise.levels is not None:
        return Within(levels=np.where(condition[:, None], then.levels, otherwise.levels), missing=missing)
    low, high = (np.where(condition, a, b) for a, b in zip(then.bounds(n), otherwise.bounds(n)))
    never = None
    if then.never is not None or otherwise.never is not None:
        parts = ((then.never, condition), (otherwise.never, ~condition))
        never = np.hstack([np.where(rows[:, None], part, np.nan) for part, rows in parts if part is not None])
    return Within(low=low, high=high, missing=missing, never=never)


RowRule = Callable[[pd.DataFrame, pd.DataFrame], Any]


@register_constraint("rule", stored_as="Rule")
@dataclass(frozen=True)
class Rule(Constraint):
    """A rule, made by `rule`: a text with its tree, or a function."""

    says: str | None
    function: RowRule | None = None
    features: tuple[Hashable, ...] | None = None
    name: str | None = None
    tree: Node | None = field(default=None, compare=False, repr=False)

    told_by: ClassVar[str] = "says"

    def resolve(self, schema: Schema) -> Iterable[Constraint]:
        """Return the constraint itself: it is one of the simplest."""
        return [self]

    @classmethod
    def keys(cls) -> dict[str, bool]:
        """Return the keys of a table in a file."""
        return {"says": True, "name": False}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Constraint:
        """Return the constraint of a table in a file."""
        return rule(table["says"], name=table.get("name"))

    @classmethod
    def from_section(cls, entries: Any, where: str) -> Iterator[Constraint]:
        """Yield the rules of a section of a file: tables or texts, one or a list of them."""
        several = [entries] if isinstance(entries, (Mapping, str)) else entries
        if isinstance(several, list):
            several = [{"says": each} if isinstance(each, str) else each for each in several]
        yield from super().from_section(several, where)

    def to_stored(self) -> Fields:
        """Return the fields that a saved explainer holds."""
        if self.says is None:
            raise InputError("a rule that is a Python function, which cannot be written down; say it as text.")
        return {"says": self.says, "name": self.name}

    @classmethod
    def from_stored(cls, stored: Fields) -> Rule:
        """Return the rule of stored fields."""
        if not isinstance(stored["says"], str):
            raise InputError("a rule that is no text")
        return rule(stored["says"], name=stored["name"])

    def words(self) -> str:
        """Return what it is called."""
        if self.name is not None:
            return self.name
        return self.says if self.says is not None else getattr(self.function, "__name__", repr(self.function))

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as plain values, of which `mcce.constraints.read` makes the same again.

        Examples
        --------
        >>> import mcce
        >>> mcce.rule("savings >= 3 * rent").to_dict()
        {'says': 'savings >= 3 * rent'}
        """
        if self.says is None:
            raise InputError(f"the rule {str(self)!r} is a function, which cannot be written down; say it as text.")
        return {"says": self.says} | ({} if self.name is None else {"name": self.name})


def rule(expression: str | RowRule, *, features: Iterable[Hashable] | None = None, name: str | None = None) -> Rule:
    """Demand a condition of every row, seen beside its factual.

    Parameters
    ----------
    expression : str or function
        A text, or a function that takes rows and their factuals, two aligned frames, and returns a boolean for each.
    features : list
        The columns that a function reads; the frames hold these only. None: all columns.
    name : str
        What to call it in tables and messages; the text itself, or the function's name, unless given.

    Notes
    -----
    A text has numbers, levels and dates in quotes, column names (unusual ones in backticks), ``+ - * /``, ``== != < <=
    > >=`` (also chained), ``in [...]``, ``not in [...]``, ``and``, ``or``, ``not``, ``if A then B else C``, ``abs``,
    ``min``, ``max``, ``was(name)`` for the factual's value and ``missing(name)``. Ordered levels compare by their
    order. Dates count days when they are subtracted or added to. A comparison with a missing value is false, also by
    ``!=`` and ``not in``; a quotient by 0 is missing. Nothing in a text is run as Python.

    Examples
    --------
    >>> import mcce
    >>> print(mcce.rule("if employed == 'no' then salary == 0"))
    if employed == 'no' then salary == 0
    >>> print(mcce.rule(lambda rows, was: rows["rent"] <= was["rent"], features=["rent"], name="rent may not rise"))
    rent may not rise
    """
    if name is not None and not (isinstance(name, str) and name):
        raise InputError(f"name of a rule is {spell(name)}; give a text, or leave it out.")
    if isinstance(expression, str):
        if features is not None:
            raise InputError(f"rule {spell(expression)} names its columns itself; leave features out.")
        return Rule(expression.strip(), None, None, name, parse(expression.strip()))
    if not callable(expression):
        raise InputError(
            f"a rule is {spell(expression)}; give a text such as 'savings >= 3 * rent', or a function of two frames."
        )
    if isinstance(features, str):
        raise InputError(f"features of a rule is {features!r}; give a list, for example [{features!r}].")
    return Rule(None, expression, None if features is None else tuple(dict.fromkeys(features)), name)


@dataclass(frozen=True)
class ResolvedRule:
    """A rule that can be asked of encoded rows.

    Attributes
    ----------
    text : what it is called.
    columns : positions of the columns of a row that it reads, in data order.
    factual_columns : positions of those of the factual.
    """

    text: str
    columns: tuple[int, ...]
    factual_columns: tuple[int, ...]
    condition: Condition | None = None
    function: RowRule | None = None
    schema: Schema | None = field(default=None, compare=False, repr=False)

    @property
    def reads_factual(self) -> bool:
        """Whether the rule looks at the factual's values."""
        return bool(self.factual_columns)

    def __str__(self) -> str:
        return self.text

    def holds(self, rows: Floats, factuals: Floats | None) -> Bools:
        """Return in which rows the rule holds; `factuals` has the factual of each row, all columns in data order.

        It may be None for a rule that does not read it.
        """
        factuals = rows if factuals is None else factuals
        if self.condition is not None:
            return self.condition.holds(rows, factuals)
        assert self.schema is not None
        read = list(self.columns)
        return self._ask(self.schema.decode(rows[:, read]), self.schema.decode(factuals[:, read]))

    def within_for(self, column: int, rows: Floats, factuals: Floats | None) -> Within | None:
        """Return what a column may be in each row so that the rule holds; None if that cannot be told beforehand.

        The column's own values in `rows` are not looked at.
        """
        factuals = rows if factuals is None else factuals
        return None if self.condition is None else bounds_of(self.condition, column, rows, factuals)

    def _ask(self, rows: pd.DataFrame, factuals: pd.DataFrame) -> Bools:
        assert self.function is not None
        if not len(rows):
            return np.empty(0, dtype=bool)
        try:
            answer = np.asarray(self.function(rows, factuals))
        except Exception as error:
            raise InputError(
                f"rule {self.text!r} raised {type(error).__name__}: {error}. It is called with two frames, rows and "
                "their factuals; features= says which columns they have."
            ) from error
        if answer.shape != (len(rows),) or not all(isinstance(each, (bool, np.bool_)) for each in answer[:1]):
            got = f"an array of shape {answer.shape} and dtype {answer.dtype}"
            raise InputError(f"rule {self.text!r} returned {got} for {len(rows)} rows; return one boolean for each.")
        try:
            return answer.astype(bool) if answer.dtype == bool else _booleans(answer)
        except (TypeError, ValueError) as error:
            raise InputError(f"rule {self.text!r} returned something that is no boolean: {error}.") from error


def _booleans(answer: Any) -> Bools:
    wrong = [each for each in answer if not isinstance(each, (bool, np.bool_))]
    if wrong:
        raise TypeError(spell(wrong[0]))
    return np.array([bool(each) for each in answer])


def resolve_rule(given: Rule, schema: Schema) -> ResolvedRule:
    """Return a rule for the columns of a table; names and levels that it does not have are errors."""
    if given.says is not None:
        assert given.tree is not None
        condition = condition_of(given.tree, given.says, schema)
        found = list(columns_read(condition))
        rows, factuals = ({c.column for c in found if c.was == was} for was in (False, True))
        return ResolvedRule(str(given), tuple(sorted(rows)), tuple(sorted(factuals)), condition)
    names = schema.names if given.features is None else given.features
    where = f"a feature of the rule {str(given)!r},"
    read = sorted(schema.position(name, where, "the training data") for name in names)
    subset = schema.subset([schema.names[j] for j in read])
    return ResolvedRule(str(given), tuple(read), tuple(read), None, given.function, subset)
