"""Constraints ready to be used: what each draw may be, and whether a row is allowed, on encoded matrices.

1. `Constraints.within` says for each factual what its draws may be, feature by feature: what all limits on the feature
   allow together.
2. `Constraints.rules` are asked as soon as the last of their columns is drawn.
3. `Constraints.hold` and `broken` ask everything of finished rows, whatever made them; `of_factuals` works out first
   what does not depend on the rows, if many are to be asked.
4. `Constraints.draws_depend_on` says what of a factual its draws depend on, besides its fixed values: factuals that
   agree in it can share their draws.
5. `Constraints.check_factuals` finds contradictions before anything is drawn.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Bools, Floats, Indices
from mcce.constraints.applying import Applied, on_grid, within_of
from mcce.constraints.contradictions import find_contradictions
from mcce.constraints.limits import Limit, stay_known
from mcce.constraints.rules import ResolvedRule
from mcce.exceptions import InputError, spell, spell_all
from mcce.samplers.within import Within
from mcce.table import Schema

Ids = pd.Index
MOST_SHOWN = 3  # contradictions in a message


@dataclass(frozen=True, eq=False)
class FactualConstraints:
    """The constraints of some factuals; made by `Constraints.of_factuals`.

    Attributes
    ----------
    factuals : encoded rows, all columns in data order.
    within : what each column may be for each factual, by position of the column, as it was said.
    rules : what has to hold for rows.
    """

    factuals: Floats
    within: tuple[tuple[int, Within], ...]
    rules: tuple[ResolvedRule, ...]

    def hold(self, rows: Floats, owner: npt.NDArray[np.integer[Any]]) -> Bools:
        """Return which rows obey all constraints; `owner` has the position of each row's factual."""
        held = np.ones(rows.shape[0], dtype=bool)
        for column, within in self.within:
            held &= within.take(owner).allows(rows[:, column])
        for rule in self.rules:
            held &= rule.holds(rows, self.factuals[owner])
        return held


@dataclass(frozen=True)
class Constraints:
    """What may change and how, for the columns of a table; made by `mcce.constraints.resolve`.

    Attributes
    ----------
    fixed : positions of the fixed columns.
    limits : what single features may be, for all factuals; in data order.
    personal : what they may be for single factuals, by id.
    rules : what has to hold for rows.
    known : columns that do not become missing where the factual has a value: to withhold something is no advice.

    Matrices are encoded by the schema of the table, all columns in data order. `index` has the id of each row's
    factual; it is needed only if something is said of single factuals.
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
        """What is asked, in words, in the order in which it is reported."""
        personal = (limit.text for _, limits in self.personal for limit in limits)
        said = (limit.text for limit in self.limits)
        return tuple(dict.fromkeys([*said, *personal, *(rule.text for rule in self.rules)]))

    def texts_of(self, who: Hashable) -> tuple[str, ...]:
        """Return what is asked of one factual, in words."""
        limits = (*self.limits, *self._by_id.get(who, ()))
        return tuple(dict.fromkeys([*(limit.text for limit in limits), *(rule.text for rule in self.rules)]))

    @cached_property
    def said(self) -> Constraints:
        """What was said, without what is understood."""
        return replace(self, known=())

    @cached_property
    def understood(self) -> Constraints:
        """What is understood without being said."""
        return replace(self, limits=(), personal=(), rules=())

    @cached_property
    def shared(self) -> Constraints:
        """What is asked of all factuals alike: draws inside it depend on no factual's own values."""
        return replace(
            self,
            limits=tuple(replace(limit, rises=True, falls=True, largest=np.inf) for limit in self.limits),
            personal=(),
            rules=tuple(rule for rule in self.rules if not rule.reads_factual),
            known=(),
        )

    @cached_property
    def relative(self) -> Constraints:
        """What depends on the factual: directions, largest steps, its own bounds, what it has, rules that read it."""
        return replace(
            self,
            limits=tuple(limit for limit in self.limits if limit.looks_at_changes),
            rules=tuple(rule for rule in self.rules if rule.reads_factual),
        )

    def without(self, text: str) -> Constraints:
        """Return the constraints but the one of that text."""
        kept = [(who, tuple(limit for limit in limits if limit.text != text)) for who, limits in self.personal]
        return replace(
            self,
            limits=tuple(limit for limit in self.limits if limit.text != text),
            personal=tuple((who, limits) for who, limits in kept if limits),
            rules=tuple(rule for rule in self.rules if rule.text != text),
        )

    def counted_as(self, text: str) -> Hashable:
        """Return under what name draws count a constraint: that of the feature it limits, or the rule's text."""
        limits = [*self.limits, *(limit for _, limits in self.personal for limit in limits)]
        columns = [limit.column for limit in limits if limit.text == text]
        return self.schema.names[columns[0]] if columns else text

    @property
    def depends_on_id(self) -> bool:
        """Whether something is said of single factuals."""
        return bool(self.personal)

    @cached_property
    def depends_on(self) -> tuple[int, ...]:
        """Columns, besides the fixed ones, on whose factual value the draws depend."""
        limits = [*self.limits, *(limit for _, limits in self.personal for limit in limits)]
        features = self.schema.features  # a missing value may stay so, whatever is said of the known ones
        found = {
            limit.column
            for limit in limits
            if limit.reads_factual or (features[limit.column].has_missing and not limit.missing)
        }
        found |= {column for rule in self.rules for column in rule.factual_columns} | set(self.known)
        return tuple(sorted(found - set(self.fixed)))

    def within(self, factuals: Floats, index: Ids[Any] | None = None) -> dict[Any, Within]:
        """Step 1: return what the draws of each factual may be, for the mutable features that are restricted.

        Which rows of a restriction exclude something, `Within.excludes` tells; the others are as free as without it.
        """
        found = {}
        applied = list(self._applied(factuals.shape[0], index))
        for column in sorted({limit.column for limit, _ in applied} - set(self.fixed)):
            feature = self.schema.features[column]
            within = on_grid(within_of(column, feature, factuals, applied), feature)
            if within.excludes(feature, factuals.shape[0], observed=False).any():
                found[feature.name] = within
        return found

    def restricted(self, within: Mapping[Any, Within], n_rows: int, *, observed: bool = True) -> dict[Any, Bools]:
        """Return which factuals' draws are restricted at all, by feature: something is excluded (`Within.excludes`)."""
        features = {feature.name: feature for feature in self.schema.features}
        return {name: each.excludes(features[name], n_rows, observed=observed) for name, each in within.items()}

    def kept(self, factuals: Floats, index: Ids[Any] | None = None) -> Bools:
        """Return which values have to stay as they are, factuals by columns; fixed columns are not marked."""
        kept = np.zeros(factuals.shape, dtype=bool)
        for limit, rows in self._applied(factuals.shape[0], index):
            own = factuals[slice(None) if rows is None else rows, limit.column]
            kept[slice(None) if rows is None else rows, limit.column] |= limit.keeps | (
                np.isnan(own) & limit.looks_at_changes
            )
        kept[:, list(self.fixed)] = False
        return kept

    def draws_depend_on(self, factuals: Floats, index: Ids[Any] | None = None) -> Floats:
        """Step 4: return numbers for each factual; draws depend on these and on the fixed values only.

        A factual whose draws are not restricted has NaN throughout.
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
        read = {column for rule in self.rules for column in rule.factual_columns} - set(self.fixed)
        columns.extend(factuals[:, column] for column in sorted(read))
        return np.column_stack(columns) if columns else np.empty((n, 0))

    def hold(self, rows: Floats, factuals: Floats, index: Ids[Any] | None = None) -> Bools:
        """Step 3: return which rows obey all constraints; `factuals` and `index` have the factual of each row."""
        return self.of_factuals(factuals, index).hold(rows, np.arange(rows.shape[0]))

    def broken(self, rows: Floats, factuals: Floats, index: Ids[Any] | None = None) -> dict[str, Bools]:
        """Return which rows break each constraint, by its text."""
        found = {text: np.zeros(rows.shape[0], dtype=bool) for text in self.texts}
        for limit, places in self.said._applied(rows.shape[0], index):
            at: Any = slice(None) if places is None else places
            found[limit.text][at] |= ~limit.allows(rows[at, limit.column], factuals[at, limit.column])
        for rule in self.rules:
            found[rule.text] |= ~rule.holds(rows, factuals)
        return found

    def of_factuals(self, factuals: Floats, index: Ids[Any] | None = None) -> FactualConstraints:
        """Return the constraints of some factuals, worked out once, to be asked of many rows."""
        applied = list(self._applied(factuals.shape[0], index))
        features = self.schema.features
        columns = sorted({limit.column for limit, _ in applied})
        within = tuple((column, within_of(column, features[column], factuals, applied)) for column in columns)
        return FactualConstraints(factuals, within, self.rules)

    def check_factuals(self, factuals: Floats, index: Ids[Any]) -> pd.DataFrame:
        """Step 5: return the contradictions of some factuals: by id, the constraint and the reason.

        A factual that is named has nothing that could meet its constraints. That every factual has a contradiction is
        an error, and so is a constraint for a factual that is not among them.
        """
        unknown = [who for who, _ in self.personal if who not in index]
        if unknown:
            raise InputError(
                f"constraints name the factual(s) {spell_all(unknown)}, which are not in the index of those to be "
                f"explained ({spell_all(index, 5)}); correct the ids, or leave these constraints out."
            )
        stays = self.kept(factuals, index)
        stays[:, list(self.fixed)] = True
        table = find_contradictions(
            self.schema, list(self._applied(len(index), index)), self.rules, stays, factuals, index
        )
        if len(index) and table.index.nunique() == len(index):
            shown = table["reason"].iloc[:MOST_SHOWN].items()
            raise InputError(
                f"the constraints leave nothing for any of the {len(index)} factuals: "
                + "; ".join(f"factual {spell(who)}: {reason}" for who, reason in shown)
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
                f"constraints name single factuals, and {n_rows} rows came without as many ids; give their index."
            )
        codes, ids = pd.factorize(index)
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(ids)))
        places: dict[Limit, list[Indices]] = {}
        for rows, who in zip(np.split(order, ends[:-1]), ids):
            for limit in self._by_id.get(who, ()):
                places.setdefault(limit, []).append(rows)
        for limit, parts in places.items():
            yield limit, np.sort(np.concatenate(parts))
