"""Constraints checked against a table: the allowed values of each draw, and whether a row is allowed.

1. Registered kinds resolve to simpler ones (`simplest`). Names, levels, dates and bounds are looked up in the schema.
   `only` becomes limits on all other features. The order in which constraints are given has no effect.
2. A feature may become missing if a constraint on it says so and none denies it, else if one on all features does.
3. `check_factuals` finds contradictions before drawing: a value that must stay violates a limit or rule, or limits and
   rules leave no value. A factual with a contradiction is reported; if all have one, that is an error.
4. `within` gives the allowed values of each draw: limits, and rules that bound a feature exactly. Other rules
   (`open_rules`) are checked when their last column is drawn, or after crossing (`before_crossing`).
5. `hold` and `broken` check everything on finished rows. Factuals that agree in `draws_depend_on` can share draws.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Bools, Floats, Indices
from mcce.constraints.allow import Allow, Only, PerFactual, only_words
from mcce.constraints.base import Constraint
from mcce.constraints.limits import Applied, Limit, keep, limit_of, on_grid, stay_known, within_of
from mcce.constraints.reading import read
from mcce.constraints.rules import Derives, ResolvedRule, Rule, resolve_rule, with_derived
from mcce.exceptions import InputError, spell, spell_all
from mcce.samplers.restricted import Within
from mcce.table import Feature, Schema
from mcce.table.checks import find_labels
from mcce.table.grid import common_multiple, is_multiple, put_on_multiples
from mcce.wording import Parameter, parts_of


@dataclass(frozen=True)
class _Contradictions:
    """The search for contradictions of some factuals: the position of each, the constraint and the reason.

    `stays` are the values that must stay, factuals by columns.
    """

    schema: Schema
    applied: Sequence[Applied]
    rules: Sequence[ResolvedRule]
    stays: Bools
    factuals: Floats

    def own(self, i: int, column: int) -> str:
        """Return a factual's value in words."""
        feature = self.schema.features[column]
        if np.isnan(self.factuals[i, column]):
            return f"{feature.name} is missing"
        value = feature.decode(self.factuals[[i], column])[0]
        return f"{feature.name} is {spell(value) if isinstance(value, str) else value}"

    def of_limits(self) -> Iterator[tuple[int, str, str]]:
        """Yield factuals for which the limits on a column leave no value."""
        for column in sorted({limit.column for limit, _ in self.applied}):
            feature = self.schema.features[column]
            own = self.factuals[:, column]
            within = within_of(column, feature, self.factuals, self.applied)
            stays = self.stays[:, column]
            possible = np.where(stays, within.allows(own), has_allowed_value(within, feature, own))
            for i in np.flatnonzero(~possible).tolist():
                texts = self.texts(i, column)
                how = f"{self.own(i, column)} and must stay" if stays[i] else self.own(i, column)
                yield i, texts, f"{how}, but no value is allowed by: {texts}"

    def texts(self, i: int, column: int) -> str:
        """Return the constraints on a feature that apply to a factual, in words."""
        applied = (limit.text for limit, rows in self.applied if limit.column == column and (rows is None or i in rows))
        return "; ".join(dict.fromkeys(applied))

    def of_rules(self) -> Iterator[tuple[int, str, str]]:
        """Yield factuals that break a rule all of whose columns stay, or for which it leaves no value of the last."""
        for rule in self.rules:
            n_open = (~self.stays[:, list(rule.columns)]).sum(axis=1)
            closed = np.flatnonzero(n_open == 0)
            for i in closed[~rule.holds(self.factuals[closed], self.factuals[closed])].tolist():
                values = ", ".join(self.own(i, column) for column in rule.columns)
                yield i, rule.text, f"{values} and may not change, which violates: {rule.text}"
            for column in rule.columns:
                rows = np.flatnonzero((n_open == 1) & ~self.stays[:, column])
                if rows.size:
                    yield from self.of_last_column(rule, column, rows)

    def of_last_column(self, rule: ResolvedRule, column: int, rows: Any) -> Iterator[tuple[int, str, str]]:
        """Yield factuals for which a rule leaves no value of the only column that may change."""
        factuals = self.factuals[rows]
        ruled = rule.within_for(column, factuals, factuals)
        if ruled is None:
            return
        feature = self.schema.features[column]
        within = within_of(column, feature, self.factuals, self.applied).take(rows) & ruled
        for i in rows[~has_allowed_value(within, feature, factuals[:, column])].tolist():
            others = ", ".join(self.own(i, other) for other in rule.columns if other != column) or "in any case"
            texts = "; ".join(filter(None, [rule.text, self.texts(i, column)]))
            yield i, texts, f"{others}, and no value of {feature.name} is allowed by: {texts}"


def has_allowed_value(within: Within, feature: Feature, own: Floats) -> Bools:
    """Return for which factuals a restriction allows their own value or one within the training data."""
    n = own.size
    left = within.allows(own) | (within.allows_missing(n) & feature.has_missing)
    if not feature.is_numeric:
        return np.asarray(left | within.level_mask(n, feature.n_levels).any(axis=1))
    low, high = within.bounds(n)
    low, high = np.maximum(low, feature.low), np.minimum(high, feature.high)
    step = np.full(n, np.nan) if within.step is None else within.step.copy()
    if feature.decimals is not None:
        point = 10.0**-feature.decimals
        for each in np.unique(step[~np.isnan(step)]):
            step[step == each] = common_multiple(each, point)
        step[np.isnan(step)] = point
    stepped = ~np.isnan(step)
    first, last = put_on_multiples(low, step, low, high), put_on_multiples(high, step, low, high)
    with np.errstate(invalid="ignore"):
        n_points = np.where(stepped, np.rint((last - first) / step) + 1.0, np.where(low < high, np.inf, low == high))
    n_points = np.where(np.isnan(n_points), 0.0, n_points)
    if within.never is not None:
        for j in range(within.never.shape[1]):
            value = within.never[:, j]
            repeated = (within.never[:, :j] == value[:, None]).any(axis=1)
            n_points -= (value >= low) & (value <= high) & (is_multiple(value, step) | ~stepped) & ~repeated
    return np.asarray(left | (n_points > 0.0))


Ids = pd.Index
ALL = "*"  # all features
MOST_SHOWN = 3  # contradictions in a message
MOST_STEPS = 20  # from a constraint to the simplest ones


@dataclass(frozen=True, eq=False)
class FactualConstraints:
    """The constraints of some factuals; made by `Constraints.of_factuals`.

    Attributes
    ----------
    factuals : encoded rows, all columns in data order.
    within : the values that the limits allow for each factual, by position of the column.
    rules : conditions on rows.
    """

    factuals: Floats
    within: tuple[tuple[int, Within], ...]
    rules: tuple[ResolvedRule, ...]

    def hold(self, rows: Floats, owner: npt.NDArray[np.integer[Any]]) -> Bools:
        """Return which rows satisfy all constraints; `owner` has the position of each row's factual."""
        held = np.ones(rows.shape[0], dtype=bool)
        for column, within in self.within:
            held &= within.take(owner).allows(rows[:, column])
        for rule in self.rules:
            held &= rule.holds(rows, self.factuals[owner])
        return held


@dataclass(frozen=True)
class Constraints:
    """The limits on changes, for the columns of a table; made by `mcce.constraints.resolve`.

    Attributes
    ----------
    fixed : positions of the fixed columns.
    limits : limits on single features for all factuals, in data order.
    personal : limits for single factuals, by id.
    rules : conditions on rows.
    known : columns whose known values do not become missing: removing a known value is not actionable.

    Matrices are encoded by the schema of the table, all columns in data order. `index` has the id of each row's
    factual; it is needed only for constraints on single factuals.
    """

    schema: Schema = field(compare=False, repr=False)
    fixed: tuple[int, ...] = ()
    limits: tuple[Limit, ...] = ()
    personal: tuple[tuple[Hashable, tuple[Limit, ...]], ...] = ()
    rules: tuple[ResolvedRule, ...] = ()
    known: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.limits or self.personal or self.rules or self.known)

    @cached_property
    def _by_id(self) -> dict[Hashable, tuple[Limit, ...]]:
        return dict(self.personal)

    @property
    def texts(self) -> tuple[str, ...]:
        """The constraints in words, in the order in which they are reported."""
        personal = (limit.text for _, limits in self.personal for limit in limits)
        shared = (limit.text for limit in self.limits)
        return tuple(dict.fromkeys([*shared, *personal, *(rule.text for rule in self.rules)]))

    def texts_of(self, id: Hashable) -> tuple[str, ...]:
        limits = (*self.limits, *self._by_id.get(id, ()))
        return tuple(dict.fromkeys([*(limit.text for limit in limits), *(rule.text for rule in self.rules)]))

    @cached_property
    def explicit(self) -> Constraints:
        """The constraints that were given explicitly."""
        return replace(self, known=())

    @cached_property
    def implicit(self) -> Constraints:
        """The implicit constraints: a known value does not become missing."""
        return replace(self, limits=(), personal=(), rules=())

    @cached_property
    def shared(self) -> Constraints:
        """The constraints that are the same for all factuals: draws within them do not depend on the factual."""
        return replace(
            self,
            limits=tuple(replace(limit, rises=True, falls=True, largest=np.inf) for limit in self.limits),
            personal=(),
            rules=tuple(rule for rule in self.rules if not rule.reads_factual),
            known=(),
        )

    @cached_property
    def relative(self) -> Constraints:
        """Constraints that depend on the factual: directions, largest steps, its own bounds, rules that read it."""
        return replace(
            self,
            limits=tuple(limit for limit in self.limits if limit.limits_change),
            rules=tuple(rule for rule in self.rules if rule.reads_factual),
        )

    @cached_property
    def bounding_rules(self) -> tuple[tuple[int, ResolvedRule], ...]:
        """Rules that bound one mutable column exactly, given the fixed ones, each with that column."""
        found = []
        no_rows = np.empty((0, len(self.schema)))
        for rule in self.rules:
            mutable = set(rule.columns) - set(self.fixed)
            if len(mutable) == 1 and rule.within_for(min(mutable), no_rows, no_rows) is not None:
                found.append((min(mutable), rule))
        return tuple(found)

    @cached_property
    def open_rules(self) -> tuple[ResolvedRule, ...]:
        bounding = {rule for _, rule in self.bounding_rules}
        return tuple(rule for rule in self.rules if rule not in bounding)

    @cached_property
    def before_crossing(self) -> Constraints:
        """The constraints on draws before crossing: those on single features."""
        return replace(self, rules=tuple(rule for _, rule in self.bounding_rules))

    def without(self, text: str) -> Constraints:
        kept = [(id, tuple(limit for limit in limits if limit.text != text)) for id, limits in self.personal]
        return replace(
            self,
            limits=tuple(limit for limit in self.limits if limit.text != text),
            personal=tuple((id, limits) for id, limits in kept if limits),
            rules=tuple(rule for rule in self.rules if rule.text != text),
        )

    def counted_as(self, text: str) -> Hashable:
        """Return under what name draws count a constraint: that of the feature it bounds, or the rule's text."""
        limits = [*self.limits, *(limit for _, limits in self.personal for limit in limits)]
        columns = [limit.column for limit in limits if limit.text == text]
        columns += [column for column, rule in self.bounding_rules if rule.text == text]
        return self.schema.names[columns[0]] if columns else text

    def within(self, factuals: Floats, index: Ids[Any] | None = None) -> dict[Any, Within]:
        """Return the values allowed for the draws of each factual, for restricted mutable features.

        `Within.excludes` marks the rows in which a restriction excludes values.
        """
        found = {}
        applied = list(self._applied(factuals.shape[0], index))
        bounded = {column for column, _ in self.bounding_rules}
        for column in sorted(({limit.column for limit, _ in applied} | bounded) - set(self.fixed)):
            feature = self.schema.features[column]
            within = on_grid(within_of(column, feature, factuals, applied), feature)
            for bounds in (r.within_for(column, factuals, factuals) for c, r in self.bounding_rules if c == column):
                within = within if bounds is None else within & bounds
            if within.excludes(feature, factuals.shape[0], observed=False).any():
                found[feature.name] = within
        return found

    def kept(self, factuals: Floats, index: Ids[Any] | None = None) -> Bools:
        """Return which values must stay, factuals by columns; fixed columns are not marked."""
        kept = np.zeros(factuals.shape, dtype=bool)
        for limit, rows in self._applied(factuals.shape[0], index):
            own = factuals[slice(None) if rows is None else rows, limit.column]
            kept[slice(None) if rows is None else rows, limit.column] |= limit.keeps | (
                np.isnan(own) & limit.limits_change
            )
        kept[:, list(self.fixed)] = False
        return kept

    def draws_depend_on(self, factuals: Floats, index: Ids[Any] | None = None) -> Floats:
        """Return numbers for each factual that, with its fixed values, determine its draws.

        They are NaN for a factual whose draws are not restricted.
        """
        columns: list[Floats] = []
        n = factuals.shape[0]
        for name, within in self.within(factuals, index).items():
            feature = self.schema.features[self.schema.position(name)]
            free = ~within.excludes(feature, n, observed=False)
            parts = [*within.bounds(n), (within.allows_missing(n) & feature.has_missing).astype(np.float64)]
            if within.levels is not None:
                parts.extend(within.levels.T.astype(np.float64))
            if within.never is not None:
                parts.extend(within.never.T)
            if within.step is not None:
                parts.append(within.step)
            columns.extend(np.where(free, np.nan, part) for part in parts)
        read = {column for rule in self.open_rules for column in rule.factual_columns} - set(self.fixed)
        columns.extend(factuals[:, column] for column in sorted(read))
        return np.column_stack(columns) if columns else np.empty((n, 0))

    def hold(self, rows: Floats, factuals: Floats, index: Ids[Any] | None = None) -> Bools:
        """Return which rows satisfy all constraints; `factuals` and `index` have the factual of each row."""
        return self.of_factuals(factuals, index).hold(rows, np.arange(rows.shape[0]))

    def broken(self, rows: Floats, factuals: Floats, index: Ids[Any] | None = None) -> dict[str, Bools]:
        found = {text: np.zeros(rows.shape[0], dtype=bool) for text in self.texts}
        for limit, places in self.explicit._applied(rows.shape[0], index):
            at: Any = slice(None) if places is None else places
            found[limit.text][at] |= ~limit.allows(rows[at, limit.column], factuals[at, limit.column])
        for rule in self.rules:
            found[rule.text] |= ~rule.holds(rows, factuals)
        return found

    def of_factuals(self, factuals: Floats, index: Ids[Any] | None = None) -> FactualConstraints:
        """Return the constraints of some factuals, computed once for many rows."""
        applied = list(self._applied(factuals.shape[0], index))
        features = self.schema.features
        columns = sorted({limit.column for limit, _ in applied})
        within = tuple((column, within_of(column, features[column], factuals, applied)) for column in columns)
        return FactualConstraints(factuals, within, self.rules)

    def check_factuals(self, factuals: Floats, index: Ids[Any]) -> pd.DataFrame:
        """Return the contradictions of some factuals: the constraint and the reason, by id.

        No row can satisfy the constraints of a listed factual. Raise if all factuals have contradictions, or if a
        constraint names an unknown factual.
        """
        unknown = [id for id, _ in self.personal if id not in index]
        if unknown:
            raise InputError(
                f"constraints name the factual(s) {spell_all(unknown)}, which are not in the index of those to be "
                f"explained ({spell_all(index, 5)}); correct the ids, or leave these constraints out."
            )
        stays = self.kept(factuals, index)
        stays[:, list(self.fixed)] = True
        applied = list(self._applied(len(index), index))
        search = _Contradictions(self.schema, applied, self.rules, stays, factuals)
        found = sorted([*search.of_limits(), *search.of_rules()], key=itemgetter(0))
        texts = {"constraint": [text for _, text, _ in found], "reason": [reason for _, _, reason in found]}
        table = pd.DataFrame(texts, dtype=object)
        table.index = index[[i for i, _, _ in found]].rename("id")
        if len(index) and table.index.nunique() == len(index):
            shown = table["reason"].iloc[:MOST_SHOWN].items()
            raise InputError(
                f"the constraints leave no value for any of the {len(index)} factuals: "
                + "; ".join(f"factual {spell(id)}: {reason}" for id, reason in shown)
                + ". Loosen one of them, or let fixed features change."
            )
        return table

    def _applied(self, n_rows: int, index: Ids[Any] | None) -> Iterator[Applied]:
        """Yield each limit with the rows that it applies to; None for all."""
        for limit in [*self.limits, *(stay_known(column, self.schema.features[column]) for column in self.known)]:
            yield limit, None
        if not self.personal:
            return
        if index is None or len(index) != n_rows:
            raise InputError(
                f"constraints name single factuals, but the {n_rows} rows have no ids; give each row its id."
            )
        position = find_labels(pd.Index([*self._by_id], dtype=object, tupleize_cols=False), index)
        order = np.argsort(position, kind="stable")
        ends = np.cumsum(np.bincount(position + 1, minlength=len(self._by_id) + 1))  # rows without any come first
        places: dict[Limit, list[Indices]] = {}
        for rows, limits in zip(np.split(order, ends[:-1])[1:], self._by_id.values()):
            for limit in limits if rows.size else ():
                places.setdefault(limit, []).append(rows)
        for limit, parts in places.items():
            yield limit, np.sort(np.concatenate(parts))


def resolve(
    constraints: Any,
    schema: Schema,
    fixed: Sequence[Hashable] = (),
    allow_missing: bool = True,
    derived: Derives | None = None,
) -> Constraints:
    """Return constraints for the columns of a table.

    Parameters
    ----------
    constraints : what `mcce.constraints.read` takes
    schema : Schema of the training data
    fixed : names of the features that may not change
    allow_missing : whether known values may become missing, for features without a constraint and without
        ``allow("*", missing=...)``
    derived : columns that are computed from others, None if there are none; only rules can name them

    Examples
    --------
    >>> import mcce, pandas as pd
    >>> from mcce.constraints import resolve
    >>> X = pd.DataFrame({"age": [36, 52, 28], "salary": [500, 700, 300]})
    >>> resolved = resolve([mcce.allow("salary", direction="increase")], mcce.Schema.from_data(X), fixed=["age"])
    >>> resolved.within(resolved.schema.encode(X).matrix)["salary"].low
    array([500., 700., 300.])
    """
    given = list(_simplest(constraints, schema))
    of_all = [each for each, _ in given if isinstance(each, Allow) and each.feature == ALL and ALL not in schema.names]
    for each in of_all:
        if each != Allow(ALL, missing=each.missing):
            raise InputError(
                f"{each}: '*' stands for all features, for which only ",
                Parameter("missing"),
                " can be given; name the feature.",
            )
        allow_missing = bool(each.missing)
    given = [(each, text) for each, text in given if each not in of_all]
    at_fixed = {schema.position(name, "fixed feature", "the training data") for name in fixed}
    allows = [(each, text) for each, text in given if isinstance(each, Allow)]
    may_be_missing = {_position(each, schema): each.missing for each, _ in allows if each.missing}

    computed = set() if derived is None else {j for j in range(len(schema)) if derived.sources([j]) != {j}}

    def limit(each: Allow, text: str | None) -> Limit:
        column = _position(each, schema)
        if column in computed:
            raise InputError(
                f"{each}: {spell(each.feature)} is a derived column, which is computed from others. Constrain these, "
                f"or give a rule such as {f'{each.feature} <= ...'!r}."
            )
        missing = may_be_missing.get(column, False) if each.missing is None else each.missing
        feature = schema.features[column]
        made = limit_of(each, column, feature, missing=bool(missing), is_fixed=column in at_fixed)
        return made if text is None else replace(made, text=text)

    personal: dict[Hashable, set[Limit]] = {}
    for constraint, text in given:
        if isinstance(constraint, PerFactual):
            for id, each in constraint.by_id:
                try:
                    personal.setdefault(id, set()).add(limit(each, text))
                except InputError as error:
                    raise InputError(f"factual {spell(id)}: ", *parts_of(error)) from error
        elif isinstance(constraint, Only):
            for id, features in constraint.by_id:
                personal.setdefault(id, set()).update(_keeping(id, features, schema, at_fixed, computed, text))
    named = at_fixed | computed | {_position(each, schema) for each, _ in allows}
    return Constraints(
        schema,
        tuple(sorted(at_fixed)),
        _ordered({limit(each, text) for each, text in allows}),
        tuple((id, _ordered(personal[id])) for id in sorted(personal, key=repr)),
        _rules([(each, text) for each, text in given if isinstance(each, Rule)], schema, derived),
        () if allow_missing else tuple(j for j, f in enumerate(schema.features) if f.has_missing and j not in named),
    )


def simplest(constraints: Any, schema: Schema) -> list[Constraint]:
    """Return the constraints of the simplest kinds to which some constraints resolve, for the columns of a table."""
    return [each for each, _ in _simplest(constraints, schema)]


def _simplest(constraints: Any, schema: Schema) -> Iterator[tuple[Constraint, str | None]]:
    """Yield the simplest constraints, each with the words of the one from which it was resolved; None for its own."""
    for given in read(constraints):
        parts = _parts(given, schema, 0)
        if len(parts) == 1 and parts[0] is given:
            yield given, None
            continue
        words = given.words()
        n_rules = sum(isinstance(each, Rule) for each in parts)
        for each in parts:
            yield each, f"{words}: {each}" if isinstance(each, Rule) and n_rules > 1 else words


def _parts(given: Constraint, schema: Schema, depth: int) -> list[Constraint]:
    if depth > MOST_STEPS:
        raise InputError(f"the constraint {str(given)!r} resolves endlessly; correct its resolve().")
    parts = list(given.resolve(schema))
    for each in parts:
        if not isinstance(each, Constraint):
            raise InputError(
                f"resolve() of the constraint {str(given)!r} ({type(given).__name__}) returned {spell(each)}; return "
                "constraints, as mcce.allow(...) and mcce.rule(...) are."
            )
    if len(parts) == 1 and parts[0] is given:
        return parts
    return [simple for each in parts for simple in _parts(each, schema, depth + 1)]


def _position(given: Allow, schema: Schema) -> int:
    return schema.position(given.feature, "constrained feature", "the training data")


def _ordered(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    return tuple(sorted(limits, key=lambda limit: (limit.column, limit.text, repr(limit))))


def _keeping(
    id: Hashable, features: Sequence[Hashable], schema: Schema, fixed: set[int], computed: set[int], text: str | None
) -> list[Limit]:
    """Return limits that keep all features of one factual except some."""
    role = f"a feature that only() names for factual {spell(id)},"
    named = {schema.position(name, role, "the training data") for name in features}
    for j in named & computed:
        raise InputError(
            f"only() names {spell(schema.names[j])} for factual {spell(id)}, a derived column, which is computed from "
            "others; name these."
        )
    changing = named | fixed | computed
    words = only_words(features) if text is None else text
    return [keep(j, f, words) for j, f in enumerate(schema.features) if j not in changing]


def _rules(
    given: Sequence[tuple[Rule, str | None]], schema: Schema, derived: Derives | None
) -> tuple[ResolvedRule, ...]:
    resolved = ((resolve_rule(each, schema), text) for each, text in given)
    if derived is not None:
        resolved = ((with_derived(each, derived), text) for each, text in resolved)
    rules = {each if text is None else replace(each, text=text) for each, text in resolved}
    ordered = sorted(rules, key=lambda rule: (rule.text, repr(rule.condition)))
    for one, other in pairwise(ordered):
        if one.text == other.text:
            raise InputError(f"two different rules are called {one.text!r}; give one of them another name.")
    return tuple(ordered)
