"""Ties and relations between columns: found in the training rows, and kept in counterfactuals.

What is looked for, in this order:

1. Functions: a column that another one determines in every row. Copies, linear functions (two currencies, age and year
   of birth), monotone functions, bands of a number, codes of levels. Columns that determine each other are tied.
2. Sums and quotients of two columns: ``total == a + b``, ``rate == a / b``.
3. Orders that every row keeps: ``a <= b``, for numbers and for dates.
4. Values that come together: a number is 0, a code below 0 or missing if, and only if, another column has some of its
   levels, or is 0, that code or missing as well; a level, if, and only if, another column has one of its own.

Numbers are compared to half of the last digit that the column has. Rows count in which all columns of a relation are
known; in orders, sums and quotients codes such as -9 in a column of other numbers from 0 on count as missing.

A relation has to hold in every row, and chance may not explain it. The chance is that of a column whose values stand in
another order, drawn by lot. Of n values, of which n_1, n_2, ... are equal, n! / (n_1! n_2! ...) orders look different:
a copy takes one of them, a monotone function two, any function of k values at most m ** k, where m is the number of its
own values. Of a <= b it is counted how many orders keep it: all of them, where the ranges do not overlap. The chance is
multiplied by the number of relations that were looked at (Bonferroni), so that of a hundred tables of unrelated columns
at most one has any: that is `RATE`. As evidence equal rows count once, and no more than some thousand rows. An order
needs rows near equality as well: two numbers that are far apart in every row are in no relation worth telling.

What is kept, of a factual that keeps it itself:

5. A column that others determine is not searched: it is computed from these whenever one of them changes. Tied columns
   change together, or not at all where one of them is fixed.
6. Whatever else relations say is asked of every candidate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.constraints.conditions import ColumnValue, Compared, Computed, Condition, Constant, IsMissing, Value
from mcce.constraints.rules import Rule, resolve_rule, rule
from mcce.exceptions import AdviceWarning, InputError, spell, warn
from mcce.explain.distances import changed_columns
from mcce.rng import hash_rows
from mcce.storage.fields import FLOAT, check_codes, check_type, require, stored
from mcce.storage.state import stateful
from mcce.table import Data, Feature, Kind, Schema
from mcce.table.dtypes import date_family, is_dated
from mcce.table.frames import own_frame
from mcce.wording import PythonOnly

RATE = 0.01  # of tables without any relation that one is found in
SCREENED, LOOKED_AT = 500, 5000  # rows that candidates are tried on, and those that count as evidence
MOST_SUMMED = 250  # columns whose sums and quotients are tried
NEAR, FEW_NEAR = 0.05, 0.01  # of the spread that is near equality, and the least share of rows that are
FREQUENT, MOST_MARKED = 0.02, 8  # least share of a level that may come together with others, and how many a column has
MOST_NAMED = 5  # relations in a warning
FAMILIES = 4  # of relations, which share the rate
CODES = {-float(str(digit) * times) for digit in (6, 7, 8, 9) for times in (1, 2, 3, 4, 5)} | {-1.0}
_BARE = re.compile(r"[^\W\d][\w.]*\Z")
_LOG_FACTORIALS = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, LOOKED_AT + 2)))])


@stateful("Relation")
@dataclass(frozen=True)
class Relation:
    """One relation between columns.

    Attributes
    ----------
    kind : "tied" (each determines the other), "function" (the first determines the other), "sum", "quotient", "order",
        "together", or "rule" (given by the user).
    says : the relation in words; a text that `mcce.rule` reads, unless it has a table.
    columns : the names of its columns.
    rows : how many training rows show it.
    chance : the probability that unrelated columns look like that, for all relations tried together; None of those
        that a user gives.
    table : encoded values of the first column and what the second has with each; None if `says` tells it all.

    Examples
    --------
    >>> import mcce, pandas as pd
    >>> (one,) = mcce.find_relations(pd.DataFrame({"born": range(1940, 2000), "age": range(84, 24, -1)}))
    >>> one.kind, one.says, one.columns, one.rows
    ('tied', 'age == 2024 - born', ('born', 'age'), 60)
    """

    kind: str = stored(str)
    says: str = stored(str)
    columns: tuple[Hashable, ...] = stored(tuple)
    rows: int = stored(int, least=0)
    chance: float | None = stored(float, least=0.0, most=1.0, optional=True, default=None)
    table: Floats | None = field(default=None, compare=False, repr=False)

    def check_state(self) -> None:
        """Refuse a table that is none, and what does not read as a rule."""
        require(len(self.columns) >= 1, "columns is empty")
        if self.table is None:
            rule(self.says)
            return
        check_type(self.table, "table", np.ndarray)
        fits = self.table.dtype == FLOAT and self.table.ndim == 2 and self.table.shape[1] == 2
        require(
            fits and len(self.columns) == 2 and self.kind in ("tied", "function"), "table is not one of two columns"
        )
        require(bool((np.diff(self.table[:, 0]) > 0.0).all() and np.isfinite(self.table).all()), "table has no order")

    def __str__(self) -> str:
        return self.says


@stateful("Relations")
@dataclass(frozen=True)
class Relations(Sequence[Relation]):
    """Relations between columns, in the order in which they were found or given; a sequence of `Relation`.

    Examples
    --------
    >>> import mcce, numpy as np, pandas as pd
    >>> a, b = np.random.default_rng(1).integers(0, 1000, (2, 100))
    >>> found = mcce.find_relations(pd.DataFrame({"a": a, "b": b, "total": a + b, "twice": 2 * b}))
    >>> print(found)
    twice == 2 * b (tied, 100 rows)
    total == a + b (sum, 100 rows)
    >>> found.frame["kind"].tolist()
    ['tied', 'sum']
    >>> print(found.without("total == a + b"))
    twice == 2 * b (tied, 100 rows)
    """

    relations: tuple[Relation, ...] = stored(tuple, of=Relation, default=())
    are_given: bool = stored(bool, default=False)  # by the user, not found

    def __getitem__(self, place: Any) -> Any:
        return self.relations[place]

    def __len__(self) -> int:
        return len(self.relations)

    def __str__(self) -> str:
        lines = (f"{each} ({each.kind}, {each.rows:,} rows)" for each in self.relations)
        return "\n".join(lines) or "no relations"

    def __repr__(self) -> str:
        return f"Relations({[str(each) for each in self.relations]})"

    @property
    def frame(self) -> pd.DataFrame:
        """A table of them: kind, the relation in words, columns, rows that show it, and the chance of that."""
        columns = {
            "kind": pd.Series([each.kind for each in self.relations], dtype=object),
            "relation": pd.Series([each.says for each in self.relations], dtype=object),
            "columns": pd.Series([list(each.columns) for each in self.relations], dtype=object),
            "rows": pd.Series([each.rows for each in self.relations], dtype=np.int64),
            "chance": pd.Series([each.chance for each in self.relations], dtype=np.float64),
        }
        return pd.DataFrame(columns)

    def without(self, *left_out: Hashable) -> Relations:
        """Return the relations but some, named by their words, or by a column of theirs."""
        known = {each.says for each in self.relations} | {name for each in self.relations for name in each.columns}
        for each in left_out:
            if each not in known:
                raise InputError(f"without({spell(each)}): no relation says that or has that column; {self!r}.")
        named = set(left_out)
        return Relations(tuple(r for r in self.relations if r.says not in named and not named & set(r.columns)))


@dataclass(frozen=True)
class Tied:
    """Columns that determine each other, as the user says; made by `tied`."""

    columns: tuple[Hashable, ...]


def tied(*columns: Hashable) -> Tied:
    """Say that columns determine each other: they change together, or not at all.

    Which value goes with which is learned from the training rows, where one value of a column may not be seen with two
    values of another.

    Examples
    --------
    >>> import mcce, pandas as pd
    >>> X = pd.DataFrame({"job": ["clerk", "pilot"] * 50, "code": [3, 7] * 50, "salary": range(100)})
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] / 100, random_state=1)
    >>> print(explainer.fit(X, relations=[mcce.tied("job", "code")]).relations_)
    job and code go together (tied, 100 rows)
    """
    if len(set(columns)) < 2:
        raise InputError(f"tied({', '.join(map(spell, columns))}) needs two columns or more.")
    return Tied(columns)


def find_relations(X: Data, *, kinds: Mapping[Any, Kind] | None = None) -> Relations:
    """Return the ties and relations between the columns of a table that hold in every row, and not by chance.

    Copies, linear and monotone functions, codes of levels, sums and quotients of two columns, orders such as ``start <=
    end``, and values that come together (0 if and only if "none"); `mcce.explain.relations` says how it is told that
    chance does not explain them. `MCCE.fit` looks for them as well; give it some of these as `relations`.

    Parameters
    ----------
    X : DataFrame or two-dimensional array
    kinds : dict or None
        Kinds of some columns, as of `mcce.MCCE`.

    Examples
    --------
    >>> import mcce, numpy as np, pandas as pd
    >>> born = np.random.default_rng(1).integers(1940, 2000, 200)
    >>> mcce.find_relations(pd.DataFrame({"born": born, "age": 2024 - born})).frame["relation"].tolist()
    ['age == 2024 - born']
    """
    X = own_frame(X)
    schema = Schema.from_data(X, kinds)
    return _Finder(schema.encode(X).matrix, schema).relations()


def find_in(matrix: Floats, schema: Schema, fixed: Sequence[int] = ()) -> Relations:
    """Return the relations in encoded rows, but those of fixed columns alone, and warn of them."""
    names = {schema.names[j] for j in fixed}
    found = [each for each in _Finder(matrix, schema).relations() if not names.issuperset(each.columns)]
    if found:
        shown = "; ".join(each.says for each in found[:MOST_NAMED])
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        one = "1 relation" if len(found) == 1 else f"{len(found)} relations"
        warn(
            f"{one} between columns found, kept by sparse counterfactuals: {shown}{more}",
            PythonOnly(" (see relations_)" if more else ""),
            ".",
            PythonOnly(
                " To confirm, fit(X, relations=explainer.relations_); to leave one out, "
                "relations=explainer.relations_.without(...); for none, relations=()."
            ),
            category=AdviceWarning,
        )
    return Relations(tuple(found))


def read_relations(given: Any, matrix: Floats, schema: Schema) -> Relations:
    """Return the relations that a user gives: texts of rules, `tied` columns, and relations that were found."""
    if given is False:
        given = ()
    if isinstance(given, (str, Tied, Relation, Rule)):
        given = [given]
    if given is True or not isinstance(given, Iterable):
        raise InputError(
            f"relations is {spell(given)}; give a list of texts such as 'a <= b', mcce.tied(...) and relations that "
            "were found, () for none, or None to have them found."
        )
    given = list(given)
    if not given:
        return Relations(are_given=True)
    finder = _Finder(matrix, schema)
    found: list[Relation] = []
    for each in given:
        if isinstance(each, Relation):
            for name in each.columns:
                schema.position(name, f"a column of the relation {each.says!r},", "X")
            found.append(each)
        elif isinstance(each, Tied):
            found.extend(finder.tied(each.columns))
        elif isinstance(each, (str, Rule)):
            one = rule(each) if isinstance(each, str) else each
            if one.says is None:
                raise InputError(f"relations has the rule {str(one)!r}, which is a function; give it as a constraint.")
            found.append(finder.given(one.says))
        else:
            raise InputError(f"relations has {spell(each)}; give texts such as 'a <= b', or mcce.tied(...).")
    return Relations(tuple(dict.fromkeys(found)), are_given=True)


# ---- relations that can be asked and solved


@dataclass(frozen=True)
class _Resolved:
    """A relation for encoded rows: the columns that it reads, and those that it can be solved for."""

    relation: Relation
    columns: tuple[int, ...]
    solvable: tuple[int, ...]
    holds: Callable[[Floats], Bools]
    solve: Callable[[Floats, int], Floats]


def _resolve(relation: Relation, schema: Schema) -> _Resolved:
    return _resolve_says(relation, schema) if relation.table is None else _resolve_table(relation, schema)


def _resolve_table(relation: Relation, schema: Schema) -> _Resolved:
    first, second = (schema.position(name, "a column of a relation,", "the training data") for name in relation.columns)
    assert relation.table is not None
    there = relation.table
    for column, codes in zip((first, second), there.T):
        if not schema.features[column].is_numeric:
            check_codes(codes, "table", schema.features[column].n_levels)
    is_tied = relation.kind == "tied"
    back = there[np.argsort(there[:, 1], kind="stable")][:, ::-1] if is_tied else there

    def solve(rows: Floats, column: int) -> Floats:
        if column == second:
            return _look_up(there, rows[:, first], schema.features[first], schema.features[second])
        return _look_up(back, rows[:, second], schema.features[second], schema.features[first])

    def holds(rows: Floats) -> Bools:
        expected = _look_up(there, rows[:, first], schema.features[first], schema.features[second])
        return np.asarray((expected == rows[:, second]) | np.isnan(rows[:, [first, second]]).any(axis=1))

    return _Resolved(relation, (first, second), (second, first) if is_tied else (second,), holds, solve)


def _look_up(table: Floats, values: Floats, of: Feature, to: Feature) -> Floats:
    """Return what goes with each value; between two values of the table what both have, or lies between; else NaN."""
    keys, images = table[:, 0], table[:, 1]
    place = np.clip(np.searchsorted(keys, values), 0, keys.size - 1)
    before = np.maximum(place - 1, 0)
    found = np.where(images[place] == images[before], images[place], np.nan)
    steps = np.diff(images)
    if of.is_numeric and to.is_numeric and ((steps >= 0.0).all() or (steps <= 0.0).all()):
        found = to.grid.put(np.interp(values, keys, images))
    outside = np.isnan(values) | (values < keys[0]) | (values > keys[-1])
    if not of.is_numeric:
        outside |= keys[place] != values
    return np.where(keys[place] == values, images[place], np.where(outside, np.nan, found))


def _resolve_says(relation: Relation, schema: Schema) -> _Resolved:
    """Return a relation that a rule says: an equation is solved for its columns, all else is asked."""
    resolved = resolve_rule(rule(relation.says), schema)
    condition = resolved.condition
    assert condition is not None
    if resolved.reads_factual:
        raise InputError(f"the relation {relation.says!r} reads the factual (was); give it as a constraint.")
    equation = _equation(condition)
    if equation is not None:
        return _resolve_equation(relation, *equation, schema)
    reads_missing = _reads_missing(condition)

    def holds(rows: Floats) -> Bools:
        held = condition.holds(rows, rows)
        if not reads_missing:
            held = held | np.isnan(rows[:, list(resolved.columns)]).any(axis=1)
        return np.asarray(held)

    return _Resolved(relation, resolved.columns, (), holds, lambda rows, column: rows[:, column])


def _resolve_equation(relation: Relation, target: ColumnValue, value: Value, schema: Schema) -> _Resolved:
    """Return ``target == value``, to half of the last digit of the target."""
    linear = _linear(value)
    reads = sorted({target.column, *(_columns(value))})
    coefficients = None if linear is None else {**linear[1], target.column: linear[1].get(target.column, 0.0) - 1.0}
    if coefficients is not None:  # of the columns of the row, in their units
        coefficients = {column: weight for column, weight in coefficients.items() if weight != 0.0}

    def holds(rows: Floats) -> Bools:
        left, right = target.of(rows, rows), value.of(rows, rows)
        close = np.abs(left - right) <= _slack(schema.features[target.column], left) * abs(target.times)
        return np.asarray(close | np.isnan(left) | np.isnan(right))

    def solve(rows: Floats, column: int) -> Floats:
        feature = schema.features[column]
        if column == target.column:
            found = (value.of(rows, rows) - target.plus) / target.times
        else:
            assert linear is not None
            assert coefficients is not None
            rest = np.full(rows.shape[0], linear[0])
            unit = {target.column: target} | {part.column: part for part in _parts(value)}
            for other, weight in coefficients.items():
                if other != column:
                    rest = rest + weight * unit[other].of(rows, rows)
            found = (-rest / coefficients[column] - unit[column].plus) / unit[column].times
        found = feature.grid.put(found)
        with np.errstate(invalid="ignore"):
            return np.where((found >= feature.low) & (found <= feature.high), found, np.nan)

    numbers = [j for j in reads if schema.features[j].is_numeric]
    solvable = [target.column] if target.column in numbers else []
    if coefficients is not None and len(numbers) == len(reads):
        solvable += [j for j in reads if j != target.column and j in coefficients]
    return _Resolved(relation, tuple(reads), tuple(solvable), holds, solve)


def _slack(feature: Feature, values: Floats) -> Floats:
    """Return half of the last digit of a column."""
    if feature.decimals is not None:
        return np.full(values.shape, 0.5000001 * 10.0**-feature.decimals)
    narrow = feature.is_numeric and feature.grid.narrow is not None
    return (1e-5 if narrow else 1e-9) * np.maximum(np.abs(values), 1e-3 * feature.span)


def _equation(condition: Condition) -> tuple[ColumnValue, Value] | None:
    """Return the column alone on a side of an equation of numbers, and the other side."""
    if not isinstance(condition, Compared) or condition.sign != "==":
        return None
    for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
        if isinstance(one, ColumnValue) and not one.n_levels and one.column not in _columns(other):
            return (one, other) if _columns(other) else None
    return None


def _parts(value: Value) -> Iterator[ColumnValue]:
    if isinstance(value, ColumnValue):
        yield value
    elif isinstance(value, Computed):
        for part in value.parts:
            yield from _parts(part)


def _columns(value: Value) -> set[int]:
    return {part.column for part in _parts(value)}


def _linear(value: Value) -> tuple[float, dict[int, float]] | None:
    """Return the constant and the coefficients of a linear function of columns; None if it is another one."""
    if isinstance(value, Constant):
        return value.value, {}
    if isinstance(value, ColumnValue):
        return 0.0, {value.column: 1.0}
    parts = [_linear(part) for part in value.parts]
    if len(parts) != 2 or parts[0] is None or parts[1] is None:
        return None
    (a, left), (b, right) = parts[0], parts[1]
    if value.function in ("+", "-"):
        sign = 1.0 if value.function == "+" else -1.0
        return a + sign * b, {j: left.get(j, 0.0) + sign * right.get(j, 0.0) for j in {*left, *right}}
    if value.function == "*" and not (left and right):
        times, (constant, weights) = (b, (a, left)) if left else (a, (b, right))
        return constant * times, {j: weight * times for j, weight in weights.items()}
    if value.function == "/" and not right and b != 0.0:
        return a / b, {j: weight / b for j, weight in left.items()}
    return None


def _reads_missing(node: Any) -> bool:
    """Return whether a condition asks for missing values."""
    parts = getattr(node, "parts", ()) or [
        getattr(node, name) for name in ("part", "condition", "then", "otherwise") if hasattr(node, name)
    ]
    return isinstance(node, IsMissing) or any(map(_reads_missing, parts))


# ---- relations in the search


@dataclass(frozen=True, eq=False)
class KeptRelations:
    """Relations ready to be kept while searching (steps 5 and 6); made by `keep_relations`.

    Attributes
    ----------
    demanded : what is asked of candidates.
    stays : columns that do not change, as they are tied to fixed ones.
    computed : columns that are computed from others, each with the relation that tells how; sources come first.
    made_of : the relations, the columns of the table, and which of these are fixed.
    """

    demanded: tuple[_Resolved, ...]
    stays: tuple[int, ...]
    computed: tuple[tuple[int, _Resolved], ...]
    made_of: tuple[Relations, Schema, tuple[int, ...]]

    def __reduce__(self) -> tuple[Any, ...]:
        """Send to another process what these are made of: functions cannot be sent."""
        return keep_relations, self.made_of

    @property
    def determined(self) -> list[int]:
        """Columns that are not searched: they stay, or are computed."""
        return [*self.stays, *(column for column, _ in self.computed)]

    def complete(self, rows: Floats, factuals: Floats) -> Floats:
        """Return rows with what relations determine, where a column that it depends on is not the factual's.

        A value that cannot be computed is the factual's own, so that the relation does not hold.
        """
        if not self.stays and not self.computed:
            return rows
        rows = rows.copy(order="K")
        for column in self.stays:
            rows[:, column] = factuals[:, column]
        for column, relation in self.computed:
            sources = [j for j in relation.columns if j != column]
            moved = changed_columns(rows[:, sources], factuals[:, sources]).any(axis=1)
            rows[:, column] = factuals[:, column]
            if moved.any():
                some = rows[moved]
                found = relation.solve(some, column)
                rows[moved, column] = np.where(np.isnan(found), some[:, column], found)
        return rows

    def of_factuals(self, factuals: Floats) -> FactualRelations:
        """Return what is asked of the candidates of some factuals."""
        return FactualRelations(self.demanded, np.array([each.holds(factuals) for each in self.demanded], dtype=bool))


@dataclass(frozen=True, eq=False)
class FactualRelations:
    """The relations of some factuals: `kept[r, i]` says whether the factual at i keeps relation r itself."""

    demanded: tuple[_Resolved, ...]
    kept: Bools

    def hold(self, rows: Floats, owner: Ints) -> Bools:
        """Return which rows keep all relations that their factuals keep; `owner` has the position of each factual."""
        held = np.ones(rows.shape[0], dtype=bool)
        for each, kept in zip(self.demanded, self.kept):
            held &= each.holds(rows) | ~kept[owner]
        return held


def keep_relations(relations: Relations, schema: Schema, fixed: Sequence[int]) -> KeptRelations | None:
    """Return relations ready to be kept, where some columns are fixed; None if there are none."""
    if not len(relations):
        return None
    resolved = [_resolve(each, schema) for each in relations]
    stays, found = set(fixed), -1
    while found != len(stays):  # what is tied to a fixed column is fixed
        found = len(stays)
        for each in resolved:
            left = [j for j in each.columns if j not in stays]
            if len(left) == 1 and left[0] in each.solvable:
                stays.add(left[0])
    definitions: dict[int, _Resolved] = {}

    def depends(column: int, on: int) -> bool:
        if column == on:
            return True
        return column in definitions and any(depends(j, on) for j in definitions[column].columns if j != column)

    for each in sorted(resolved, key=lambda one: -len(one.columns)):  # a sum from its parts, then what is tied to it
        for column in each.solvable:
            sources = [j for j in each.columns if j != column]
            if column not in stays and column not in definitions and not any(depends(j, column) for j in sources):
                definitions[column] = each
                break
    ordered: list[tuple[int, _Resolved]] = []
    while len(ordered) < len(definitions):
        done = {column for column, _ in ordered}
        ordered += [
            (column, each)
            for column, each in definitions.items()
            if column not in done and not any(j in definitions and j not in done for j in each.columns if j != column)
        ]
    made_of = relations, schema, tuple(fixed)
    return KeptRelations(tuple(resolved), tuple(sorted(stays - set(fixed))), tuple(ordered), made_of)


# ---- finding them


class _Finder:
    """Looks for relations in encoded rows.

    Parameters
    ----------
    matrix : all rows.
    schema : their columns.
    """

    def __init__(self, matrix: Floats, schema: Schema) -> None:
        self.matrix = matrix
        self.schema = schema
        self.features = schema.features
        some = np.unique(np.linspace(0, matrix.shape[0] - 1, LOOKED_AT).astype(np.intp))
        _, first = np.unique(hash_rows(np.ascontiguousarray(matrix[some])), return_index=True)  # equal rows count once
        self.sample = np.asfortranarray(matrix[some[np.sort(first)]])
        few = np.unique(np.linspace(0, self.sample.shape[0] - 1, SCREENED).astype(np.intp))
        self.screen = np.ascontiguousarray(self.sample[few])
        known = [column[~np.isnan(column)] for column in self.sample.T]
        self.varying = [j for j, values in enumerate(known) if values.size > 1 and (values != values[0]).any()]
        self.numbers = [j for j in self.varying if self._is_number(j)]
        self.codes = {j: self._codes(known[j]) for j in self.numbers}
        self.explained: set[frozenset[int]] = set()  # pairs of columns in functions and sums
        self.lead = {j: j for j in range(len(self.features))}  # the first of the columns that a column is tied to

    def relations(self) -> Relations:
        """Return the relations that hold in every row, and not by chance."""
        return Relations((*self.functions(), *self.sums(), *self.orders(), *self.together()))

    def tied(self, names: Sequence[Hashable]) -> Iterator[Relation]:
        """Yield the relations of columns that a user says are tied, each to the first."""
        places = [self.schema.position(name, "a column of tied(),", "X") for name in names]
        for other in places[1:]:
            yield self._tie(places[0], other)

    def given(self, says: str) -> Relation:
        """Return a relation that a user says."""
        relation = Relation("rule", says, ("",), 0)
        resolved = _resolve_says(relation, self.schema)
        names = tuple(self.features[j].name for j in resolved.columns)
        return Relation("rule", says, names, int(resolved.holds(self.matrix).sum()))

    # ---- functions (step 1)

    def functions(self) -> list[Relation]:
        """Return ties, each to the first of the columns that are tied, and functions one way that no others give."""
        n_tried = 4 * len(self.varying) * (len(self.varying) - 1)
        chances: dict[tuple[int, int], float] = {}
        for x, y in self._screened_functions():
            chance = self._chance_of_function(x, y)
            if chance <= self._least(n_tried):
                chances[x, y] = chance
                self.explained.add(frozenset((x, y)))
        tied = {x: [y for y in self.varying if (x, y) in chances and (y, x) in chances] for x in self.varying}
        self.lead |= {x: min([x, *tied[x]]) for x in self.varying}
        leads = set(self.lead.values())
        found = []
        for (x, y), chance in sorted(chances.items()):
            both = self.lead[x] == self.lead[y]
            if x not in leads or (not both and y not in leads):
                continue
            if not both and any((x, z) in chances and (z, y) in chances for z in leads - {x, y}):
                continue  # what lies between tells it
            found.append(self._write_function(x, y, both, self._adjusted(chance, n_tried)))
        return found

    def _screened_functions(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of columns of which the first seems to determine the second, by a few rows."""
        ordered = np.array([self._is_ordered(j) for j in range(len(self.features))])
        for x in self.varying:
            known = self.screen[~np.isnan(self.screen[:, x])]
            rows = known[np.argsort(known[:, x], kind="stable")]
            new = np.concatenate([[True], rows[1:, x] != rows[:-1, x]])
            head = rows[np.maximum.accumulate(np.where(new, np.arange(new.size), 0))]
            seen = ~((rows != head) & ~np.isnan(rows) & ~np.isnan(head)).any(axis=0)
            if ordered[x] and new.sum() > new.size / 2:  # where most values are seen once, all columns are functions
                rises = ~(rows < np.fmax.accumulate(rows)).any(axis=0)
                falls = ~(rows > np.fmin.accumulate(rows)).any(axis=0)
                seen &= rises | falls | ~ordered
            yield from ((x, y) for y in self.varying if y != x and seen[y])

    def _chance_of_function(self, x: int, y: int) -> float:
        """Return the logarithm of the chance that one column looks like a function of another; infinite if it is none.

        Rows of which a value of x has only one each are no evidence, unless y rises or falls with x, is the same in a
        whole range of x, or equals it.
        """
        for rows in (self.screen, self.sample, self.matrix):  # a few rows tell most that are none
            a, b = _sorted_pairs(rows[:, x], rows[:, y])
            if a.size < 2 or (b[1:] != b[:-1])[a[1:] == a[:-1]].any():
                return np.inf
        steps = np.diff(b)
        monotone = self._is_ordered(x) and self._is_ordered(y) and ((steps >= 0.0).all() or (steps <= 0.0).all())
        in_bands = self._is_ordered(x) and (steps != 0.0).sum() == np.unique(b).size - 1
        are_equal = self._mean_the_same(x, y) and (a == b).all()
        a, b = _sorted_pairs(self.sample[:, x], self.sample[:, y])
        _, counts = np.unique(b, return_counts=True)
        ways = [np.unique(a).size * np.log(counts.size)]
        ways += [np.log(2.0)] if monotone else []
        ways += [_LOG_FACTORIALS[counts.size]] if in_bands else []
        ways += [0.0] if are_equal else []
        return float(_log_chance(counts) + min(ways))

    def _mean_the_same(self, x: int, y: int) -> bool:
        """Return whether equal codes mean equal values."""
        one, other = self.features[x], self.features[y]
        return one.kind == other.kind and (one.levels is None or one.levels.equals(other.levels))

    def _write_function(self, x: int, y: int, both: bool, chance: float | None) -> Relation:
        """Return the relation that x determines y, and the other way round if `both`."""
        rows = int((~np.isnan(self.matrix[:, [x, y]]).any(axis=1)).sum())
        for one, other in [(x, y), (y, x)] if both else [(x, y)]:
            says = self._linear_text(one, other)
            if says is not None:
                return Relation("tied", says, (self.features[one].name, self.features[other].name), rows, chance)
        names, table = (self.features[x].name, self.features[y].name), self._table(x, y)
        words = f"{names[0]} and {names[1]} go together" if both else self._words(x, y, table)
        return Relation("tied" if both else "function", words, names, rows, chance, table)

    def _words(self, x: int, y: int, table: Floats) -> str:
        """Return the words of a function: of one that tells whether x is 0, as a rule; else that it is one."""
        level, of_zero = np.unique(table[:, 1]), table[table[:, 0] == 0.0, 1]
        number, name = _name(self.features[x].name), _name(self.features[y].name)
        if not self.features[y].is_numeric and level.size == 2 and of_zero.size == 1:
            text = _level(self.features[y], int(of_zero[0]))
            alone = (table[:, 1] == of_zero[0]).sum() == 1
            if alone and number is not None and name is not None and text is not None:
                return f"if {name} == {text} then {number} == 0 else {number} != 0"
        return f"{self.features[x].name} determines {self.features[y].name}"

    def _table(self, x: int, y: int) -> Floats:
        known = ~np.isnan(self.matrix[:, [x, y]]).any(axis=1)
        keys, first = np.unique(self.matrix[known, x], return_index=True)
        return np.column_stack([keys, self.matrix[known, y][first]])

    def _tie(self, x: int, y: int) -> Relation:
        """Return the tie of two columns that a user says are tied."""
        known = ~np.isnan(self.matrix[:, [x, y]]).any(axis=1)
        for a, b in ((x, y), (y, x)):
            pairs = np.unique(self.matrix[known][:, [a, b]], axis=0)
            twice = np.flatnonzero(pairs[1:, 0] == pairs[:-1, 0])
            if twice.size:
                one, other = self.features[a], self.features[b]
                value = one.decode(pairs[twice[:1], 0])[0]
                seen = list(other.decode(pairs[twice[0] : twice[0] + 2, 1]))
                raise InputError(
                    f"tied({spell(self.features[x].name)}, {spell(self.features[y].name)}): rows with {one.name} = "
                    f"{spell(value)} have {other.name} = {spell(seen[0])} and {spell(seen[1])}; columns that are tied "
                    "determine each other. Correct these rows, or say what holds as a rule."
                )
        if not known.any():
            raise InputError(f"tied(): no row has both {self.features[x].name!r} and {self.features[y].name!r}.")
        return self._write_function(x, y, True, None)

    def _linear_text(self, x: int, y: int) -> str | None:
        """Return the shortest text of y as a linear function of x that all rows keep; None if there is none."""
        if not (self._is_plain(x) and self._is_plain(y)):
            return None
        a, b = _name(self.features[x].name), _name(self.features[y].name)
        known = ~np.isnan(self.matrix[:, [x, y]]).any(axis=1)
        of, to = self.matrix[known, x], self.matrix[known, y]
        low, high = int(np.argmin(of)), int(np.argmax(of))
        if a is None or b is None or 2 * np.unique(to).size < np.unique(of).size or of[low] == of[high]:
            return None
        slope = float((to[high] - to[low]) / (of[high] - of[low]))
        slack = _slack(self.features[y], to)
        if not (np.abs(to - to[low] - slope * (of - of[low])) <= 4.0 * slack).all():
            return None
        centred = of - of.mean()
        fitted = float((centred @ (to - to.mean())) / (centred @ centred))
        for text, times in _short_factors(fitted):
            rest = to - times * of
            middle = float((rest.max() + rest.min()) / 2.0)
            for decimals in range(13):
                plus = round(middle, decimals) + 0.0
                if (np.abs(rest - plus) <= slack).all():
                    says = _linear_text(a, b, text, times, plus)
                    names = self.features[x].name, self.features[y].name
                    return says if self._is_kept(Relation("tied", says, names, 0)) else None
        return None

    # ---- sums and quotients (step 2)

    def sums(self) -> list[Relation]:
        """Return sums and quotients of two columns; one for each three columns."""
        plain = [j for j in self.numbers if self._is_plain(j)]
        chance = {j: self._log_chance_of(j) for j in plain}
        n_tried = 2 * len(plain) ** 3
        plain = [j for j in plain if chance[j] <= self._least(n_tried)][: MOST_SUMMED + 1]
        if not 3 <= len(plain) <= MOST_SUMMED:
            return []
        found: list[Relation] = []
        done: set[frozenset[int]] = set()
        functions = set(self.explained)
        for kind, target, one, other in self._screened_sums(plain):
            three = frozenset(self.lead[j] for j in (target, one, other))
            names = [_name(self.features[j].name) for j in (target, one, other)]
            pairs = {frozenset(pair) for pair in combinations((target, one, other), 2)}
            if three in done or None in names or pairs & functions:
                continue
            sign = "+" if kind == "sum" else "/"
            says = f"{names[0]} == {names[1]} {sign} {names[2]}"
            columns_of = tuple(self.features[j].name for j in (one, other, target))
            relation = Relation(kind, says, columns_of, 0)
            if not self._is_kept(relation):
                continue
            divisor = other if kind == "quotient" else None
            asked, rows = self._chance_of_sum(relation, (target, one, other), divisor)
            if asked <= self._least(n_tried):
                found.append(Relation(kind, says, columns_of, rows, self._adjusted(asked, n_tried)))
                done.add(three)
                self.explained |= pairs | {frozenset(pair) for pair in combinations(three, 2)}
        return found

    def _screened_sums(self, columns: Sequence[int]) -> Iterator[tuple[str, int, int, int]]:
        """Yield which columns seem to be the sum or the quotient of two others, by some rows."""
        rows = self.screen[:, columns].copy()
        for place, j in enumerate(columns):
            rows[np.isin(rows[:, place], list(self.codes[j])), place] = np.nan
        rows = rows[np.argsort((np.isnan(rows) | (rows == 0.0)).sum(axis=1), kind="stable")]
        slack = np.column_stack([_slack(self.features[j], rows[:, place]) for place, j in enumerate(columns)])
        slack = np.where(np.isnan(slack), 0.0, slack)
        n = len(columns)
        for kind in ("sum", "quotient"):
            compute = np.add if kind == "sum" else _quotient
            first = compute(rows[0][:, None], rows[0][None, :])
            with np.errstate(invalid="ignore"):
                for target in range(n):
                    one, other = np.nonzero(~(np.abs(first - rows[0, target]) > slack[0, target]))
                    kept = (one != target) & (other != target) & ((one < other) if kind == "sum" else (one != other))
                    one, other = one[kept], other[kept]
                    at = 1
                    while one.size and at < rows.shape[0]:  # more rows at a time the fewer are left
                        some = slice(at, at + max(1, 20_000 // one.size))
                        off = np.abs(compute(rows[some, one], rows[some, other]) - rows[some, [target]])
                        far = (off > slack[some, [target]]).any(axis=0)
                        one, other, at = one[~far], other[~far], some.stop
                    for a, b in zip(one.tolist(), other.tolist()):
                        yield kind, columns[target], columns[a], columns[b]

    def _chance_of_sum(self, relation: Relation, columns: Sequence[int], divisor: int | None) -> tuple[float, int]:
        """Return the logarithm of the chance of a sum or quotient, and how many rows show it.

        It is the largest of what the orders of each column tell: how many look different, and in what share of rows the
        relation holds when the column is put in another order.
        """
        holds = _resolve(relation, self.schema).holds
        shown = [self._uncoded(rows, columns) for rows in (self.sample, self.matrix)]
        if divisor is not None:
            shown = [each & (rows[:, divisor] != 0.0) for each, rows in zip(shown, (self.sample, self.matrix))]
        rows, n = self.sample[shown[0]], int(shown[0].sum())
        if n < 2:
            return np.inf, 0
        chance = -np.inf
        for j in columns:
            share = 0.0
            for shift in (n // 2, n // 3 + 1):
                turned = rows.copy()
                turned[:, j] = np.roll(rows[:, j], shift)
                share = max(share, (holds(turned).sum() + 1.0) / (n + 1.0))
            different = _log_chance(np.unique(rows[:, j], return_counts=True)[1])
            chance = max(chance, different, n * np.log(share))
        return float(chance), int(shown[1].sum())

    # ---- orders (step 3)

    def orders(self) -> list[Relation]:
        """Return the orders that no others give."""
        n_tried = len(self.numbers) * (len(self.numbers) - 1)
        family = {j: self._family(j) for j in self.numbers}
        found: dict[tuple[int, int], float] = {}
        self.measured = self._in_units(self.sample)
        screened = self._in_units(self.screen)
        highest, lowest = np.fmax.reduce(screened), np.fmin.reduce(screened)
        for a in self.numbers:
            with np.errstate(invalid="ignore"):
                kept = np.asarray(~(screened[:, [a]] > screened).any(axis=0))
            for b in self.numbers:
                if a == b or not kept[b] or family[a] != family[b] or highest[a] <= lowest[b]:
                    continue
                if self._is_explained(a, b):
                    continue
                chance = self._chance_of_order(a, b)
                if chance <= self._least(n_tried) and self._says_order(a, b) is not None:
                    found[a, b] = chance
        relations = []
        for (a, b), chance in found.items():
            if (b, a) in found or any((a, c) in found and (c, b) in found for c in self.numbers):
                continue
            adjusted = self._adjusted(chance, n_tried)
            says, rows = self._says_order(a, b), int(self._uncoded(self.matrix, (a, b)).sum())
            assert says is not None
            relations.append(Relation("order", says, (self.features[a].name, self.features[b].name), rows, adjusted))
        return relations

    def _chance_of_order(self, a: int, b: int) -> float:
        """Return the logarithm of the share of orders of the rows in which a <= b everywhere; infinite if none is told.

        The rows are taken by rising b: the i-th can have one of those that are left of the a at or below it.
        """
        below, above = _sorted_pairs(self.measured[:, a], self.measured[:, b])
        gap = above - below
        if not gap.size:
            return np.inf
        near = gap <= NEAR * above.std()
        if (gap < 0.0).any() or near.sum() < max(3.0, FEW_NEAR * gap.size) or near.all():
            return np.inf
        possible = np.searchsorted(below, np.sort(above), side="right") - np.arange(gap.size)
        return float(np.log(possible).sum() - _LOG_FACTORIALS[gap.size])

    def _says_order(self, a: int, b: int) -> str | None:
        """Return the text of an order that all rows keep; None if they do not."""
        one, other = _name(self.features[a].name), _name(self.features[b].name)
        texts = [f"{one} <= {other}"]
        coded = [name for name, j in ((one, a), (other, b)) if self.codes[j]]
        if coded:
            texts.append(f"if {' and '.join(f'{name} >= 0' for name in coded)} then {one} <= {other}")
        if one is None or other is None:
            return None
        names = self.features[a].name, self.features[b].name
        return next((text for text in texts if self._is_kept(Relation("order", text, names, 0))), None)

    # ---- values that come together (step 4)

    def together(self) -> list[Relation]:
        """Return which marked values come together, with one another and with levels."""
        marks = [(j, value) for j in range(len(self.features)) for value in self._marked(j)]
        levels = [j for j in self.varying if not self.features[j].is_numeric and self.features[j].n_levels <= 50]
        n_tried = len(marks) * (len(levels) + len(marks))
        if not marks:
            return []
        found: list[Relation] = []
        shown = _marks_of(self.sample, marks)
        chances = [_log_chance(np.bincount(each, minlength=2)) for each in shown.T]
        groups: dict[bytes, int] = {}
        for place, (j, value) in enumerate(marks):
            if chances[place] > self._least(n_tried):
                continue
            is_level = self._is_level(j, value)
            for by in levels:
                if by != j and not is_level:
                    found.extend(self._with_levels(j, value, shown[:, place], by, n_tried))
            first = groups.setdefault(shown[:, place].tobytes(), place)
            i, other = marks[first]
            if (i in levels and not is_level) or (j in levels and is_level and not self._is_level(i, other)):
                continue  # which was found by levels
            if first != place and i != j and (not self._is_explained(i, j) or np.isnan(value)):
                says = self._says_together(i, other, j, value)
                found.extend(self._written_together(says, (i, j), chances[place] + np.log(2.0), n_tried))
        return found

    def _with_levels(self, j: int, value: float, marked: Bools, by: int, n_tried: int) -> Iterator[Relation]:
        """Yield the relation that a value comes with some levels of another column, and with no others."""
        codes = self.sample[:, by]
        known = ~np.isnan(codes)
        if not np.isnan(value):
            known &= ~np.isnan(self.sample[:, j])
        total = np.bincount(codes[known].astype(np.intp), minlength=self.features[by].n_levels)
        with_it = np.bincount(codes[known & marked].astype(np.intp), minlength=self.features[by].n_levels)
        mixed = (with_it > 0) & (with_it < total)
        if mixed.any() or not with_it.any() or (with_it == total).all() or self._is_explained(by, j):
            return
        chance = _log_chance(np.array([with_it.sum(), total.sum() - with_it.sum()])) + np.log(2.0) * (total > 0).sum()
        texts = [_level(self.features[by], int(code)) for code in np.flatnonzero(with_it > 0)]
        one, has = _name(self.features[by].name), self._has(j, value)
        if chance > self._least(n_tried) or None in texts or one is None or has is None:
            return
        where = f"{one} == {texts[0]}" if len(texts) == 1 else f"{one} in [{', '.join(map(str, texts))}]"
        yield from self._written_together(f"if {where} then {has[0]} else {has[1]}", (by, j), chance, n_tried)

    def _says_together(self, i: int, value: float, j: int, other: float) -> str | None:
        one, two = self._has(i, value), self._has(j, other)
        return None if one is None or two is None else f"if {one[0]} then {two[0]} else {two[1]}"

    def _has(self, j: int, value: float) -> tuple[str, str] | None:
        """Return the texts that a column has a marked value, and that it does not; None if rules cannot say it."""
        name = _name(self.features[j].name)
        if name is None:
            return None
        if np.isnan(value):
            return f"missing({name})", f"not missing({name})"
        text = _level(self.features[j], int(value)) if self._is_level(j, value) else f"{value:g}"
        return None if text is None else (f"{name} == {text}", f"{name} != {text}")

    def _is_level(self, j: int, value: float) -> bool:
        return not self._is_number(j) and not np.isnan(value)

    def _written_together(
        self, says: str | None, columns: tuple[int, int], chance: float, n_tried: int
    ) -> Iterator[Relation]:
        if says is None or chance > self._least(n_tried):
            return
        adjusted = self._adjusted(chance, n_tried)
        names = tuple(self.features[j].name for j in columns)
        relation = Relation("together", says, names, self.matrix.shape[0], adjusted)
        if self._is_kept(relation):
            yield relation

    def _marked(self, j: int) -> list[float]:
        """Return the values of a column that may come together with others: 0, codes, frequent levels, and NaN."""
        column = self.sample[:, j]
        found = [np.nan] if np.isnan(column).any() and not np.isnan(column).all() else []
        if j in self.codes:
            found += [value for value in (0.0, *sorted(self.codes[j])) if (column == value).any()]
        if not self._is_number(j) and j in self.varying:
            counts = np.bincount(column[~np.isnan(column)].astype(np.intp), minlength=self.features[j].n_levels)
            frequent = np.flatnonzero(counts >= FREQUENT * column.size)
            found += frequent[np.argsort(-counts[frequent], kind="stable")][:MOST_MARKED].astype(float).tolist()
        return found

    # ---- what is asked of columns

    def _is_explained(self, i: int, j: int) -> bool:
        """Return whether a function or a sum has two columns, or those that they are tied to."""
        return not self.explained.isdisjoint((frozenset((i, j)), frozenset((self.lead[i], self.lead[j]))))

    def _is_ordered(self, j: int) -> bool:
        return self.features[j].kind != "categorical"

    def _is_number(self, j: int) -> bool:
        return self.features[j].is_numeric

    def _is_plain(self, j: int) -> bool:
        """Return whether a column holds numbers that are no dates."""
        return self._is_number(j) and not is_dated(self.features[j].dtype)

    def _family(self, j: int) -> object:
        dtype = self.features[j].dtype
        return date_family(dtype) if is_dated(dtype) else None

    def _codes(self, values: Floats) -> set[float]:
        """Return the values below 0 of a column that are codes: all that there are, and of the kind of -9 or -99."""
        below = set(np.unique(values[values < 0.0]).tolist())
        return below if below <= CODES and (values >= 0.0).any() else set()

    def _uncoded(self, rows: Floats, columns: Sequence[int]) -> Bools:
        """Return in which rows some columns are known and no codes."""
        held = np.ones(rows.shape[0], dtype=bool)
        for j in columns:
            held &= ~np.isnan(rows[:, j]) & ~np.isin(rows[:, j], list(self.codes[j]))
        return held

    def _in_units(self, rows: Floats) -> Floats:
        """Return rows with codes as missing, and dates of one sort in one unit."""
        found = rows.copy()
        for j in self.numbers:
            if self.codes[j]:
                found[np.isin(found[:, j], list(self.codes[j])), j] = np.nan
            if not self._is_plain(j):
                found[:, j] = self._clocked(j, found[:, j])
        return found

    def _clocked(self, j: int, values: Floats) -> Floats:
        from mcce.constraints.encoding import clock_of, days_of

        feature = self.features[j]
        if getattr(feature.dtype, "kind", "O") == "m":
            times, plus = days_of(feature)
            return values * times + plus
        clock = clock_of(self.schema, feature)
        return values * clock.times[j] + clock.plus[j]

    def _is_kept(self, relation: Relation) -> bool:
        """Return whether every row keeps a relation; not if it cannot be said of these columns."""
        try:
            return bool(_resolve(relation, self.schema).holds(self.matrix).all())
        except InputError:
            return False

    def _least(self, n_tried: int) -> float:
        """Return the largest logarithm of a chance that counts."""
        return float(np.log(RATE / FAMILIES / max(n_tried, 1)))

    def _adjusted(self, chance: float, n_tried: int) -> float:
        """Return a chance for all that was tried, from the logarithm of that of one."""
        return float(np.exp(min(0.0, chance + np.log(n_tried * FAMILIES))))

    def _log_chance_of(self, j: int, among: Sequence[int] = ()) -> float:
        """Return the logarithm of the chance of a column's own order, in rows in which some columns are known."""
        known = self._uncoded(self.sample, (j, *among))
        return _log_chance(np.unique(self.sample[known, j], return_counts=True)[1])


def _log_chance(counts: Ints) -> float:
    """Return the logarithm of 1 / (orders of values that look different), of which so many each are equal."""
    return float(_LOG_FACTORIALS[counts].sum() - _LOG_FACTORIALS[counts.sum()])


def _sorted_pairs(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return two columns where both are known, by the first."""
    known = ~(np.isnan(a) | np.isnan(b))
    order = np.argsort(a[known], kind="stable")
    return a[known][order], b[known][order]


def _quotient(a: Floats, b: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(b == 0.0, np.nan, a / b)


def _marks_of(rows: Floats, marks: Sequence[tuple[int, float]]) -> Any:
    """Return which rows have each marked value."""
    return np.column_stack([np.isnan(rows[:, j]) if np.isnan(value) else rows[:, j] == value for j, value in marks])


def _name(name: Hashable) -> str | None:
    """Return a column as rules name it; None if they cannot."""
    text = str(name)
    from mcce.constraints.grammar import FUNCTIONS, WORDS  # loaded with the first rule

    if _BARE.match(text) and text.lower() not in (*WORDS, *FUNCTIONS, "true", "false"):
        return text
    return f"`{text}`" if text and "`" not in text else None


def _level(feature: Feature, code: int) -> str | None:
    """Return a level as rules write it; None if they cannot."""
    assert feature.levels is not None
    level = feature.levels[code]
    if isinstance(level, (bool, np.bool_)):
        return "true" if level else "false"
    text = str(level)
    quote = "'" if "'" not in text else '"'
    return f"{quote}{text}{quote}" if quote not in text else None


def _short_factors(estimate: float) -> Iterator[tuple[str, float]]:
    """Yield factors near an estimate with ever more digits, each with its text after a name; divisors as well."""
    for digits in range(1, 13):
        times = float(f"{estimate:.{digits}g}")
        yield f"{abs(times):.12g} * {{}}", times
        if abs(estimate) < 1.0:
            divisor = float(f"{1.0 / estimate:.{digits}g}")
            yield f"{{}} / {abs(divisor):.12g}", 1.0 / divisor


def _linear_text(of: str, to: str, factor: str, times: float, plus: float) -> str:
    """Return the text of a linear function."""
    term = of if abs(times) == 1.0 else factor.format(of)
    if times < 0.0:
        return f"{to} == {plus:.12g} - {term}" if plus >= 0.0 else f"{to} == -{abs(plus):.12g} - {term}"
    if plus == 0.0:
        return f"{to} == {term}"
    return f"{to} == {term} {'+' if plus > 0.0 else '-'} {abs(plus):.12g}"
