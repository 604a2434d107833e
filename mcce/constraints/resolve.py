"""Constraints checked against a table: the allowed values of each draw, and whether a row is allowed.

`resolve` looks names, levels and dates up. Limits on one feature are intersected into one `Limit` on its encoded
values; bounds that leave nothing are errors, and so is a constraint on a fixed feature. A known value never becomes
missing unless an `allow` with ``missing=True`` says so (and none says False).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Bools, Floats
from mcce.constraints.allow import Allow, Constraint, NoCopies, Rule, rule
from mcce.constraints.formula import Formula, read_formula
from mcce.constraints.values import encode_step, encode_value
from mcce.exceptions import InputError, listing, spell
from mcce.samplers.within import Within
from mcce.table import Feature, Schema


@dataclass(frozen=True)
class Limit:
    """The encoded values that a column may have.

    Attributes
    ----------
    low, high : bounds.
    levels : which levels are allowed; None for numbers.
    rises, falls : whether it may increase, decrease; if neither, it stays.
    step : the largest change.
    """

    column: int
    low: float = -np.inf
    high: float = np.inf
    levels: tuple[bool, ...] | None = None
    rises: bool = True
    falls: bool = True
    step: float = np.inf

    @property
    def limits_change(self) -> bool:
        """Whether the allowed values depend on the factual's."""
        return not (self.rises and self.falls) or self.step < np.inf

    @property
    def limits_values(self) -> bool:
        """Whether it forbids anything."""
        unlimited = Limit(self.column, levels=None if self.levels is None else (True,) * len(self.levels))
        return self != unlimited

    def within(self, before: Floats) -> Within:
        """Return the allowed values for factuals with the values `before`.

        A missing value may stay; with a direction or a largest step it must. Whether a known value may become missing
        is checked on rows (`Constraints.admits`).
        """
        low, high, missing = np.full(before.size, self.low), np.full(before.size, self.high), None
        if self.limits_change:
            is_missing = np.isnan(before)
            least = np.where(self.falls, np.minimum(_rounded(before - self.step, before), before), before)
            most = np.where(self.rises, np.maximum(_rounded(before + self.step, before), before), before)
            low = np.where(is_missing, np.inf, np.fmax(low, least))
            high = np.where(is_missing, -np.inf, np.fmin(high, most))
            missing = is_missing | ((self.rises or self.falls) and self.step > 0.0)
        if self.levels is None:
            return Within(low=low, high=high, missing=missing)
        codes = np.arange(len(self.levels))
        allowed = (codes >= low[:, None]) & (codes <= high[:, None]) & np.array(self.levels, dtype=bool)
        return Within(levels=allowed, missing=missing)


def _rounded(bounds: Floats, before: Floats) -> Floats:
    """Return computed bounds with 15 digits: 0.7 + 0.1 reaches 0.8."""
    with np.errstate(all="ignore"):
        digits = 14.0 - np.floor(np.log10(np.maximum(np.fmax(np.abs(bounds), np.abs(before)), 1e-280)))
        scale = 10.0 ** np.clip(digits, -280.0, 280.0)
        rounded = np.rint(bounds * scale) / scale
    return np.where(np.isfinite(rounded), rounded, bounds)


@dataclass(frozen=True)
class Constraints:
    """The constraints for the columns of a table; made by `resolve`.

    Matrices are encoded rows with the columns of the (arranged) schema.

    Attributes
    ----------
    limits : the allowed values of single columns.
    rules : conditions on rows.
    may_become_missing : by column, whether a known value may become missing.
    no_copies : whether copies of training rows are forbidden.
    """

    limits: tuple[Limit, ...]
    rules: tuple[Formula, ...]
    may_become_missing: Bools = field(compare=False)
    no_copies: bool = False

    @property
    def depends_on_factual(self) -> bool:
        """Whether the allowed values or rules depend on the factual's mutable values."""
        return any(limit.limits_change for limit in self.limits) or any(rule.factual_columns for rule in self.rules)

    @cached_property
    def shared(self) -> Constraints:
        """The constraints that are the same for all factuals, on which shared draws can be truncated."""
        limits = (replace(limit, rises=True, falls=True, step=np.inf) for limit in self.limits)
        rules = tuple(rule for rule in self.rules if not rule.factual_columns)
        return replace(self, limits=tuple(limit for limit in limits if limit.limits_values), rules=rules)

    def without(self, columns: Iterable[int]) -> Constraints:
        """Return the constraints that name none of some columns, such as derived ones, which are not drawn."""
        left_out = set(columns)
        return replace(
            self,
            limits=tuple(limit for limit in self.limits if limit.column not in left_out),
            rules=tuple(rule for rule in self.rules if left_out.isdisjoint(rule.columns)),
        )

    def within(self, factuals: Floats) -> dict[int, Within]:
        """Return the allowed values for each factual, by position of the constrained columns."""
        return {limit.column: limit.within(factuals[:, limit.column]) for limit in self.limits}

    def admits(self, rows: Floats, factuals: Floats) -> Bools:
        """Return which rows satisfy limits and rules, and keep known values known; `factuals` are paired with rows."""
        admitted = ~(np.isnan(rows) & ~np.isnan(factuals) & ~self.may_become_missing).any(axis=1)
        for limit in self.limits:
            admitted &= limit.within(factuals[:, limit.column]).allows(rows[:, limit.column])
        for formula in self.rules:
            admitted &= formula.holds(rows, factuals)
        return np.asarray(admitted)


def read_constraints(constraints: Any) -> list[Constraint]:
    """Return constraints as objects: one, or a list of objects and texts of rules."""
    if constraints is None:
        return []
    if isinstance(constraints, (Allow, Rule, NoCopies, str)):
        constraints = [constraints]
    if isinstance(constraints, (Mapping, pd.DataFrame)) or not isinstance(constraints, Iterable):
        raise InputError(
            f"constraints is {spell(constraints)}; give a list of allow(...), no_copies() and texts of rules."
        )
    objects: list[Constraint] = []
    for place, constraint in enumerate(constraints):
        if isinstance(constraint, str):
            objects.append(rule(constraint))
        elif isinstance(constraint, (Allow, Rule, NoCopies)):
            objects.append(constraint)
        else:
            raise InputError(
                f"constraints[{place}] is {spell(constraint)}; give allow(...), no_copies() or the text of a rule."
            )
    return objects


def resolve(constraints: Any, schema: Schema, fixed: Sequence[Hashable] = ()) -> Constraints:
    """Return constraints for the columns of a table; raise if they do not fit.

    Parameters
    ----------
    constraints : constraint, text of a rule, list of these, or None
    schema : the arranged columns.
    fixed : names of the fixed features.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from mcce.constraints import allow, resolve
    >>> from mcce.table import Schema
    >>> schema = Schema.from_data(pd.DataFrame({"age": [20, 60], "salary": [10.0, 90.0]}))
    >>> resolved = resolve([allow("age", direction="increase"), "salary <= 2 * was(salary)"], schema)
    >>> resolved.admits(np.array([[25.0, 60.0], [20.0, 40.0]]), np.array([[20.0, 20.0], [20.0, 20.0]])).tolist()
    [False, True]
    """
    objects = read_constraints(constraints)
    names, fixed_names = schema.names, set(fixed)
    by_column: dict[int, list[Allow]] = {}
    rules: list[Formula] = []
    for constraint in objects:
        if isinstance(constraint, Allow):
            column = schema.position(constraint.feature, "constrained feature")
            if constraint.feature in fixed_names:
                raise InputError(
                    f"{constraint!r} constrains a fixed feature, which never changes; leave it out, or do not fix it."
                )
            by_column.setdefault(column, []).append(constraint)
        elif isinstance(constraint, Rule):
            formula = read_formula(constraint.text, schema)
            formula.holds(np.empty((0, len(names))))  # raises if it is no condition
            read = [names[j] for j in formula.columns]
            if fixed_names.issuperset(read):
                what = f"only fixed features ({listing(read)})" if read else "no column of the counterfactual"
                raise InputError(f"{constraint!r} reads {what}, so no change can satisfy it; leave it out.")
            rules.append(formula)
    may_become_missing = np.zeros(len(names), dtype=bool)
    for j, several in by_column.items():
        choices = [allowed.missing for allowed in several if allowed.missing is not None]
        may_become_missing[j] = bool(choices) and all(choices)
    limits = (_limit(several, j, schema.features[j]) for j, several in sorted(by_column.items()))
    return Constraints(
        tuple(limit for limit in limits if limit.limits_values),
        tuple(dict.fromkeys(rules)),
        may_become_missing,
        any(isinstance(constraint, NoCopies) for constraint in objects),
    )


def _limit(several: Sequence[Allow], column: int, feature: Feature) -> Limit:
    """Return the intersection of the limits on one feature."""
    limit = Limit(column, levels=None if feature.is_numeric else (True,) * feature.n_levels)
    for given in several:
        _check_kind(given, feature)
        limit = replace(
            limit,
            low=limit.low if given.low is None else max(limit.low, _encoded(encode_value, given, "low", feature)),
            high=limit.high if given.high is None else min(limit.high, _encoded(encode_value, given, "high", feature)),
            rises=limit.rises and given.direction not in ("decrease", "none"),
            falls=limit.falls and given.direction not in ("increase", "none"),
            step=limit.step
            if given.max_step is None
            else min(limit.step, _encoded(encode_step, given, "max_step", feature)),
        )
        if given.levels is not None:
            codes = {_encoded(encode_value, given, "levels", feature, level) for level in given.levels}
            assert limit.levels is not None
            limit = replace(limit, levels=tuple(is_in and k in codes for k, is_in in enumerate(limit.levels)))
    _check_not_empty(limit, several, feature)
    if limit.levels is not None:  # bounds of levels are levels
        levels = tuple(is_in and limit.low <= k <= limit.high for k, is_in in enumerate(limit.levels))
        limit = replace(limit, levels=levels, low=-np.inf, high=np.inf)
    return limit


def _encoded(encode: Any, given: Allow, name: str, feature: Feature, value: Any = None) -> float:
    """Return an argument of `allow` (or one value of it) in the encoding of its feature."""
    try:
        return float(encode(feature, getattr(given, name) if value is None else value))
    except InputError as error:
        says = str(error)
        end = "" if says.endswith(("?", ".")) else "."
        raise InputError(f"allow({spell(given.feature)}), {name}: {says}{end}") from None


def _check_kind(given: Allow, feature: Feature) -> None:
    """Raise on limits that do not apply to the kind of a feature."""
    where = f"allow({spell(given.feature)})"
    if feature.is_numeric:
        if given.levels is not None:
            raise InputError(f"{where}: levels is {spell(list(given.levels))}, but it holds numbers; use low and high.")
        return
    if feature.kind == "ordered":
        return
    for name in ("low", "high", "max_step"):
        if getattr(given, name) is not None:
            raise InputError(
                f"{where}: {name} is {spell(getattr(given, name))}, but its levels have no order; name levels, or make "
                "it an ordered category."
            )
    if given.direction in ("increase", "decrease"):
        raise InputError(
            f"{where}: direction is {spell(given.direction)}, but its levels have no order; name levels, or make it an "
            "ordered category."
        )


def _check_not_empty(limit: Limit, several: Sequence[Allow], feature: Feature) -> None:
    """Raise on limits that allow no value of the training data, for any factual."""
    texts = " and ".join(map(repr, several))
    if limit.low > limit.high:
        raise InputError(f"{texts}: the lower bound is above the upper one; no value is allowed.")
    if limit.levels is not None and feature.levels is not None:
        allowed = (is_in and limit.low <= k <= limit.high for k, is_in in enumerate(limit.levels))
        if limit.levels and not any(allowed):
            raise InputError(f"{texts}: none of the levels {listing(list(feature.levels))} is allowed; allow one.")
    elif max(limit.low, feature.low) > min(limit.high, feature.high):
        low, high = feature.decode(np.array([feature.low, feature.high]))
        raise InputError(f"{texts}: no value of the training data ({low} to {high}) is allowed; widen the bounds.")
