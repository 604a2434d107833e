"""Ties and relations between columns: what they are, and how counterfactuals keep them.

`mcce.plausibility.relation_finder` finds them in the training rows. Counterfactuals keep the relations that their
factual satisfies:

1. A column that others determine is not searched: it is computed from these whenever one of them changes. Tied columns
   change together, or not at all where one of them is fixed. A derived column is computed by its own formula only.
2. All relations are checked for every candidate. A formula given by the user must hold whenever an input changes, even
   if the factual violates it.
3. A column that a formula computes, or that is tied to another one, is not counted as a change (`uncounted`).

The searched columns are chosen one by one, first those that no relation determines. Columns that follow from the chosen
ones are computed, so relations that follow from others add no work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.constraints.conditions import ColumnValue, Computed, Constant, IsMissing, Value, columns_read
from mcce.constraints.rules import resolve_rule, rule
from mcce.distances.measures import changed_columns
from mcce.exceptions import InputError, spell
from mcce.plausibility.derived import Formula, agree, encoded_value, equation, precision_of, tolerance_of
from mcce.storage.fields import FLOAT, check_codes, check_type, require, stored
from mcce.storage.state import stateful
from mcce.table import Feature, Schema

UNSOLVED = ("order", "together", "near")  # kinds of relations that determine no column
ROOM = 1.01  # tolerances up to this factor count as equal


@stateful("Relation")
@dataclass(frozen=True)
class Relation:
    """One relation between columns.

    Attributes
    ----------
    kind : "tied" (each determines the other), "function" (the first determines the other), "sum", "difference",
        "product", "quotient" (the first two determine the last), "equation" (the others determine the last), "order",
        "together", "near" (the last lies near a formula of the others), "rule" (given by the user), or "derived" (a
        formula given by the user).
    says : the relation in words; a text in the grammar of `mcce.rule`, unless it has a table or a function.
    columns : the names of its columns.
    rows : number of training rows that satisfy it.
    chance : the probability of such a relation between independent columns, adjusted for all relations tried; None for
        relations given by the user.
    table : encoded values of the first column with those of the second; None if `says` is complete.
    exceptions : number of training rows that violate it, not included in `rows`.
    first : the labels of the first exceptions.
    formula : the formula of a derived column that is a Python function; None if `says` is complete.

    Examples
    --------
    >>> import mcce, pandas as pd
    >>> (one,) = mcce.find_relations(pd.DataFrame({"born": range(1940, 2000), "age": range(84, 24, -1)}))
    >>> one.kind, one.says, one.columns, one.rows
    ('tied', 'born == 2024 - age', ('age', 'born'), 60)
    """

    kind: str = stored(str)
    says: str = stored(str)
    columns: tuple[Hashable, ...] = stored(tuple)
    rows: int = stored(int, least=0)
    chance: float | None = stored(float, least=0.0, most=1.0, optional=True, default=None)
    table: Floats | None = field(default=None, compare=False, repr=False)
    exceptions: int = stored(int, least=0, default=0)
    first: tuple[Hashable, ...] = stored(tuple, default=())
    formula: Formula | None = stored(Formula, optional=True, default=None)

    def check_state(self) -> None:
        """Raise if the table is invalid, or if the text cannot be read as a rule."""
        require(len(self.columns) >= 1, "columns is empty")
        if self.formula is not None:
            require(self.kind == "derived" and self.table is None, "formula does not fit its kind")
            require(set(self.columns) == {*self.formula.inputs, self.formula.target}, "formula has other columns")
            return
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

    Attributes
    ----------
    soft : tuple of Relation
        Orders, values that come together, narrow bands of ratios and numbers near a formula, in at least 98 % of the
        rows, far more often than by chance. A counterfactual keeps those that its factual satisfies.
    proposals : tuple of Relation
        Formulas with at most 1 % of exceptions. They are not kept; to keep one, pass its text to `fit`.

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
    are_given: bool = stored(bool, default=False)  # by the user, as opposed to found
    soft: tuple[Relation, ...] = stored(tuple, of=Relation, default=())
    proposals: tuple[Relation, ...] = stored(tuple, of=Relation, default=())

    def __getitem__(self, place: Any) -> Any:
        return self.relations[place]

    def __len__(self) -> int:
        return len(self.relations)

    def __str__(self) -> str:
        lines = []
        for status, each in self._listed():
            shown = f"{each.kind}, {each.rows:,} rows"
            if status != "kept":
                first = f", the first: {', '.join(map(str, each.first))}" if each.first else ""
                shown = f"{status}, {shown}, {each.exceptions:,} exceptions{first}"
            lines.append(f"{each} ({shown})")
        return "\n".join(lines) or "no relations"

    def __repr__(self) -> str:
        return f"Relations({[str(each) for each in self.relations]})"

    def _listed(self) -> Iterator[tuple[str, Relation]]:
        for status, some in (("kept", self.relations), ("soft", self.soft), ("proposed", self.proposals)):
            for each in some:
                yield status, each

    @property
    def frame(self) -> pd.DataFrame:
        """A table of all relations.

        The columns are the kind, the relation in words, its columns, the number of rows that satisfy it, the chance,
        the number of exceptions, and whether it is kept, soft (kept where the factual satisfies it) or proposed.
        """
        status, listed = zip(*self._listed()) if any(self._listed()) else ((), ())
        columns = {
            "kind": pd.Series([each.kind for each in listed], dtype=object),
            "relation": pd.Series([each.says for each in listed], dtype=object),
            "columns": pd.Series([list(each.columns) for each in listed], dtype=object),
            "rows": pd.Series([each.rows for each in listed], dtype=np.int64),
            "chance": pd.Series([each.chance for each in listed], dtype=np.float64),
            "exceptions": pd.Series([each.exceptions for each in listed], dtype=np.int64),
            "status": pd.Series(list(status), dtype=object),
        }
        return pd.DataFrame(columns)

    def without(self, *left_out: Hashable) -> Relations:
        """Return the relations except some, given by their text or by one of their columns."""
        every = [each for _, each in self._listed()]
        known = {each.says for each in every} | {name for each in every for name in each.columns}
        for each in left_out:
            if each not in known:
                raise InputError(f"without({spell(each)}): no relation has that text or that column; {self!r}.")
        named = set(left_out)
        parts = (
            tuple(r for r in some if r.says not in named and not named & set(r.columns))
            for some in (self.relations, self.soft, self.proposals)
        )
        return Relations(next(parts), soft=next(parts), proposals=next(parts))

    def with_formulas(self, formulas: Sequence[Formula]) -> Relations:
        """Return the relations with the formulas of derived columns, which replace relations of the same columns."""
        if not formulas:
            return self
        columns = [{each.target, *each.inputs} for each in formulas]
        rest = [
            r for r in self.relations if r.kind in UNSOLVED or not any(some.issuperset(r.columns) for some in columns)
        ]
        return replace(self, relations=(*map(derived_relation, formulas), *rest))


def derived_relation(formula: Formula) -> Relation:
    """Return the relation that a formula computes its column."""
    columns = (*formula.inputs, formula.target)
    shown = formula.rows - formula.exceptions
    given = formula if formula.is_function else None
    return Relation(
        "derived", formula.says, columns, shown, exceptions=formula.exceptions, first=formula.first, formula=given
    )


@dataclass(frozen=True)
class Tied:
    """Columns that determine each other, as declared by the user with `tied`."""

    columns: tuple[Hashable, ...]


def tied(*columns: Hashable) -> Tied:
    """Declare that columns determine each other: they change together, or not at all.

    The pairs of values are learned from the training rows, in which no value of a column may occur with two values of
    another.

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


# ---- checking and solving relations


@dataclass(frozen=True)
class _Resolved:
    """A relation for encoded rows.

    Attributes
    ----------
    columns : the columns that it reads.
    solvable : the columns that it can be solved for, the determined one first.
    exactly : the solvable columns whose solution satisfies the relation; a column coarser than the determined one is
        not among them.
    holds, solve : functions that check rows, and that compute a column.
    """

    relation: Relation
    columns: tuple[int, ...]
    solvable: tuple[int, ...]
    exactly: tuple[int, ...]
    holds: Callable[[Floats], Bools]
    solve: Callable[[Floats, int], Floats]

    def not_for(self, derived: set[int]) -> _Resolved:
        """Return the relation, not solvable for derived columns, which have their own formulas."""
        if derived.isdisjoint(self.solvable):
            return self
        solvable, exactly = (tuple(j for j in some if j not in derived) for some in (self.solvable, self.exactly))
        return replace(self, solvable=solvable, exactly=exactly)


def resolve_relation(relation: Relation, schema: Schema) -> _Resolved:
    """Return a relation for encoded rows."""
    if relation.formula is not None:
        return _resolve_function(relation, relation.formula, schema)
    return _resolve_text(relation, schema) if relation.table is None else _resolve_table(relation, schema)


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

    solvable = (second, first) if is_tied else (second,)
    return _Resolved(relation, (first, second), solvable, solvable, holds, solve)


def _look_up(table: Floats, values: Floats, of: Feature, to: Feature) -> Floats:
    """Return the table entry of each value; between two entries, a value that both share or that lies between."""
    keys, images = table[:, 0], table[:, 1]
    place = np.clip(np.searchsorted(keys, values), 0, keys.size - 1)
    before = np.maximum(place - 1, 0)
    found = np.where(images[place] == images[before], images[place], np.nan)
    rises, falls = (images[1:] >= images[:-1]).all(), (images[1:] <= images[:-1]).all()
    if of.is_numeric and to.is_numeric and (rises or falls):
        with np.errstate(all="ignore"):
            found = to.grid.put(np.interp(values, keys, images))
    outside = np.isnan(values) | (values < keys[0]) | (values > keys[-1])
    if not of.is_numeric:
        outside |= keys[place] != values
    return np.where(keys[place] == values, images[place], np.where(outside, np.nan, found))


def _resolve_function(relation: Relation, formula: Formula, schema: Schema) -> _Resolved:
    """Return a derived column that a Python function computes."""
    places = [schema.position(name, "a column of a relation,", "the training data") for name in relation.columns]
    target = places[-1]
    feature = schema.features[target]

    def solve(rows: Floats, column: int) -> Floats:
        return formula.compute_encoded(rows, schema)

    def holds(rows: Floats) -> Bools:
        found = formula.compute_encoded(rows, schema)
        return agree(feature, found, rows[:, target]) | (np.isnan(found) & np.isnan(rows[:, target]))

    return _Resolved(relation, tuple(sorted(places)), (target,), (target,), holds, solve)


def _resolve_text(relation: Relation, schema: Schema) -> _Resolved:
    """Return a relation given as a rule: an equation can be solved for its columns, other rules are only checked."""
    resolved = resolve_rule(rule(relation.says), schema)
    condition = resolved.condition
    assert condition is not None
    if resolved.reads_factual:
        raise InputError(f"the relation {relation.says!r} reads the factual (was); give it as a constraint.")
    found = equation(condition)
    if found is not None and found[0].n_levels:
        return _resolve_levels(relation, *found)
    if found is not None:
        return _resolve_equation(relation, *found, schema)
    reads_missing = _reads_missing(condition)

    def holds(rows: Floats) -> Bools:
        held = condition.holds(rows, rows)
        if not reads_missing:
            held = held | np.isnan(rows[:, list(resolved.columns)]).any(axis=1)
        return np.asarray(held)

    return _Resolved(relation, resolved.columns, (), (), holds, lambda rows, column: rows[:, column])


def _resolve_levels(relation: Relation, target: ColumnValue, value: Value) -> _Resolved:
    """Return ``target == value`` for a column of levels."""
    reads = sorted({target.column, *(each.column for each in columns_read(value))})

    def holds(rows: Floats) -> Bools:
        found = encoded_value(target, value, rows)
        if relation.kind == "derived":
            unknown = np.isnan(found) & np.isnan(rows[:, target.column])
        else:
            unknown = np.asarray(np.isnan(rows[:, reads]).any(axis=1))
        return np.asarray((found == rows[:, target.column]) | unknown)

    solvable = (target.column,)
    return _Resolved(
        relation, tuple(reads), solvable, solvable, holds, lambda rows, column: encoded_value(target, value, rows)
    )


def _resolve_equation(relation: Relation, target: ColumnValue, value: Value, schema: Schema) -> _Resolved:
    """Return ``target == value``, to half of the last digit of the target."""
    linear = _linear(value)
    reads = sorted({target.column, *(each.column for each in columns_read(value))})
    coefficients = None if linear is None else {**linear[1], target.column: linear[1].get(target.column, 0.0) - 1.0}
    if coefficients is not None:  # by column of the row, in its unit
        coefficients = {column: weight for column, weight in coefficients.items() if weight != 0.0}

    def holds(rows: Floats) -> Bools:
        with np.errstate(all="ignore"):
            left, right = target.of(rows, rows), value.of(rows, rows)
            close = np.abs(left - right) <= slack_of(schema.features[target.column], left) * abs(target.times)
        if relation.kind == "derived":  # an old value is invalid if the formula gives none
            return np.asarray(close | (np.isnan(left) & np.isnan(right)))
        return np.asarray(close | np.isnan(left) | np.isnan(right))

    def solve(rows: Floats, column: int) -> Floats:
        feature = schema.features[column]
        with np.errstate(all="ignore"):
            if column == target.column:
                found = (value.of(rows, rows) - target.plus) / target.times
            else:
                assert linear is not None
                assert coefficients is not None
                rest = np.full(rows.shape[0], linear[0])
                unit = {target.column: target} | {part.column: part for part in columns_read(value)}
                for other, weight in coefficients.items():
                    if other != column:
                        rest = rest + weight * unit[other].of(rows, rows)
                found = (-rest / coefficients[column] - unit[column].plus) / unit[column].times
            found = feature.grid.put(found)
            if relation.kind == "derived":  # not limited to the training range
                return found
            return np.where((found >= feature.low) & (found <= feature.high), found, np.nan)

    numbers = [j for j in reads if schema.features[j].is_numeric]
    solvable = [target.column] if target.column in numbers else []
    exactly = list(solvable)
    if relation.kind != "derived" and coefficients is not None and len(numbers) == len(reads):
        solvable += [j for j in reads if j != target.column and j in coefficients]
        unit = {part.column: part.times for part in (target, *columns_read(value))}
        room = {j: abs(weight * unit[j]) * resolution(schema.features[j]) for j, weight in coefficients.items()}
        exactly += [j for j in solvable[1:] if room[j] <= ROOM * room[target.column]]
    return _Resolved(relation, tuple(reads), tuple(solvable), tuple(exactly), holds, solve)


def slack_of(feature: Feature, values: Floats) -> Floats:
    """Return half of the last digit of a column, for each value."""
    return tolerance_of(feature, values, 0.5000001)


def resolution(feature: Feature, *others: Feature) -> float:
    """Return half of the last digit of a column; for floats, a share of the largest range of it and of others."""
    if feature.decimals is not None:
        return float(0.5 * 10.0**-feature.decimals)
    precision = precision_of(feature)
    return max(precision * each.high - precision * each.low for each in (feature, *others))


def _linear(value: Value) -> tuple[float, dict[int, float]] | None:
    """Return the constant and the coefficients of a linear function of columns; None if it is not linear."""
    if isinstance(value, Constant):
        return value.value, {}
    if isinstance(value, ColumnValue):
        return 0.0, {value.column: 1.0}
    if not isinstance(value, Computed):
        return None
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
    """Return whether a condition refers to missing values."""
    parts = getattr(node, "parts", ()) or [
        getattr(node, name) for name in ("part", "condition", "then", "otherwise") if hasattr(node, name)
    ]
    return isinstance(node, IsMissing) or any(map(_reads_missing, parts))


# ---- relations in the search


@dataclass(frozen=True, eq=False)
class KeptRelations:
    """Relations prepared for a search by `keep_relations`.

    Attributes
    ----------
    demanded : relations that candidates must satisfy.
    stays : columns that do not change, as they are tied to fixed ones.
    computed : columns that are computed from others, each with its relation; sources come first.
    made_of : the relations, the columns of the table, and which of these are fixed.
    """

    demanded: tuple[_Resolved, ...]
    stays: tuple[int, ...]
    computed: tuple[tuple[int, _Resolved], ...]
    made_of: tuple[Relations, Schema, tuple[int, ...]]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle `made_of` only: functions cannot be pickled."""
        return keep_relations, self.made_of

    @property
    def determined(self) -> list[int]:
        """Columns that are not searched: they do not change, or are computed."""
        return [*self.stays, *(column for column, _ in self.computed)]

    @property
    def derived_that_stay(self) -> list[int]:
        """Derived columns whose inputs do not change."""
        derived = {each.solvable[0] for each in self.demanded if each.relation.kind == "derived"}
        return [column for column in self.stays if column in derived]

    @cached_property
    def derived(self) -> list[int]:
        """Columns computed by a formula: derived columns and those determined by a relation, without ties."""
        computed = [
            column for column, each in self.computed if each.relation.kind != "tied" and column in self.uncounted
        ]
        return [*computed, *self.derived_that_stay]

    @cached_property
    def uncounted(self) -> list[int]:
        """Columns that are not counted as changes: a formula computes them, or they are tied to another column."""
        return [
            column
            for column, each in self.computed
            if each.relation.kind == "tied" or (each.relation.table is None and column == each.solvable[0])
        ]

    def complete(self, rows: Floats, factuals: Floats) -> Floats:
        """Return rows with the determined columns computed, wherever an input differs from the factual's.

        A value that cannot be computed is replaced by the factual's, so that the relation does not hold.
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

    def of_formulas(self) -> KeptRelations | None:
        """Return the formulas of derived columns alone; None if there are none."""
        relations, schema, fixed = self.made_of
        derived = tuple(each for each in relations if each.kind == "derived")
        return keep_relations(Relations(derived), schema, fixed)

    def of_factuals(self, factuals: Floats) -> FactualRelations:
        """Return the relations that the candidates of some factuals must satisfy."""
        kept = np.array([each.holds(factuals) for each in self.demanded], dtype=bool)
        return FactualRelations(self.demanded, kept, factuals)


@dataclass(frozen=True, eq=False)
class FactualRelations:
    """The relations of some factuals: `kept[r, i]` is whether factual i satisfies relation r."""

    demanded: tuple[_Resolved, ...]
    kept: Bools
    factuals: Floats

    def hold(self, rows: Floats, owner: Ints) -> Bools:
        """Return which rows satisfy all relations that their factuals satisfy; `owner` has their positions."""
        held = np.ones(rows.shape[0], dtype=bool)
        for each, kept in zip(self.demanded, self.kept):
            exempt = ~kept[owner]
            if each.relation.kind == "derived" and exempt.any():
                inputs = [j for j in each.columns if j not in each.solvable]
                exempt &= ~changed_columns(rows[:, inputs], self.factuals[owner][:, inputs]).any(axis=1)
            held &= each.holds(rows) | exempt
        return held


def keep_relations(relations: Relations, schema: Schema, fixed: Sequence[int]) -> KeptRelations | None:
    """Return relations prepared for a search with some fixed columns; None if there are none."""
    if not relations.relations and not relations.soft:
        return None
    resolved = [resolve_relation(each, schema) for each in (*relations, *relations.soft)]
    derived = {each.solvable[0] for each in resolved if each.relation.kind == "derived"}
    resolved = [each if each.relation.kind == "derived" else each.not_for(derived) for each in resolved]
    equations: dict[int, list[_Resolved]] = {}
    for each in resolved:
        for j in each.columns if each.solvable else ():
            equations.setdefault(j, []).append(each)
    stays = set(fixed)
    for column in fixed:
        _solve_from(column, equations, stays, lambda each: each.solvable)
    # of columns tied exactly, the first in the table is reported
    are_alike = [len(each.columns) == len(each.exactly) == 2 for each in resolved]
    targets = {each.solvable[0] for each, alike in zip(resolved, are_alike) if each.solvable and not alike}

    def is_last(column: int) -> tuple[bool, bool, int]:
        """Return the sort key of columns to search: undetermined columns and parts of sums come first."""
        is_only_tied = all(len(each.columns) == 2 and column in each.exactly for each in equations[column])
        return column in targets, is_only_tied, column

    known = set(stays)
    computed = [
        found
        for column in sorted(equations.keys() - derived, key=is_last)
        for found in _solve_from(column, equations, known, lambda each: each.exactly)
    ]
    made_of = relations, schema, tuple(fixed)
    return KeptRelations(tuple(resolved), tuple(sorted(stays - set(fixed))), tuple(computed), made_of)


def _solve_from(
    column: int,
    equations: Mapping[int, Sequence[_Resolved]],
    known: set[int],
    solvable: Callable[[_Resolved], Sequence[int]],
) -> list[tuple[int, _Resolved]]:
    """Add a column and all that follow from it to the known columns; return the latter, each with its relation.

    A column follows if it is the only unknown one of an equation that can be solved for it. Columns that a relation
    determines come before those for which a relation has to be solved.
    """
    found: list[tuple[int, _Resolved]] = []
    waiting: deque[tuple[int, _Resolved | None]] = deque([(column, None)])
    while waiting:
        column, relation = waiting.popleft()
        if column in known and relation is not None:
            continue
        known.add(column)
        found += [(column, relation)] if relation is not None else []
        for each in equations.get(column, ()):
            left = [j for j in each.columns if j not in known]
            if len(left) == 1 and left[0] in solvable(each):
                (waiting.appendleft if left[0] == each.solvable[0] else waiting.append)((left[0], each))
    return found
