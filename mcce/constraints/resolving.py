"""Constraints as they were said, checked against a table and made ready to be used.

1. Names, levels, dates and bounds are looked up in the schema; what does not fit is an error.
2. Whether a feature may become missing is said by any constraint on it, and not if another one denies it.
   Where nothing is said of it, it may only if it is among `allow_missing`.
3. `only` becomes, for each factual, one limit for every feature that has to stay.
4. All is put in data order and by text, equal ones once: the order in which constraints are given changes nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mcce.constraints.allowing import Allow
from mcce.constraints.limits import Limit, keep, limit_of
from mcce.constraints.personal import Only, PerFactual, only_words
from mcce.constraints.reading import read
from mcce.constraints.resolved import Constraints
from mcce.constraints.rules import ResolvedRule, Rule, resolve_rule
from mcce.exceptions import InputError, spell
from mcce.table import Schema


def resolve(
    constraints: Any,
    schema: Schema,
    fixed: Sequence[Hashable] = (),
    allow_missing: bool | Sequence[Hashable] = True,
) -> Constraints:
    """Return constraints for the columns of a table.

    Parameters
    ----------
    constraints : what `mcce.constraints.read` takes
    schema : Schema of the training data
    fixed : names of the features that may not change
    allow_missing : whether known values may become missing, for features of which nothing is said, or names of those
        that may

    Examples
    --------
    >>> import mcce, pandas as pd
    >>> from mcce.constraints import resolve
    >>> X = pd.DataFrame({"age": [36, 52, 28], "salary": [500, 700, 300]})
    >>> resolved = resolve([mcce.allow("salary", direction="increase")], mcce.Schema.from_data(X), fixed=["age"])
    >>> resolved.within(resolved.schema.encode(X).matrix)["salary"].low
    array([500., 700., 300.])
    """
    said = read(constraints)
    at_fixed = {schema.position(name, "fixed feature", "the training data") for name in fixed}
    allows = [each for each in said if isinstance(each, Allow)]
    may_be_missing = {_position(each, schema): each.missing for each in allows if each.missing}

    def limit(each: Allow) -> Limit:
        column = _position(each, schema)
        missing = may_be_missing.get(column, False) if each.missing is None else each.missing
        feature = schema.features[column]
        return limit_of(each, column, feature, missing=bool(missing), is_fixed=column in at_fixed)

    personal: dict[Hashable, set[Limit]] = {}
    for constraint in said:
        if isinstance(constraint, PerFactual):
            for who, each in constraint.by_id:
                try:
                    personal.setdefault(who, set()).add(limit(each))
                except InputError as error:
                    raise InputError(f"factual {spell(who)}: {error}") from error
        elif isinstance(constraint, Only):
            for who, features in constraint.by_id:
                personal.setdefault(who, set()).update(_keeping(who, features, schema, at_fixed))
    return Constraints(
        schema,
        tuple(sorted(at_fixed)),
        _ordered({limit(each) for each in allows}),
        tuple((who, _ordered(personal[who])) for who in sorted(personal, key=repr)),
        _rules([each for each in said if isinstance(each, Rule)], schema),
        _known(allow_missing, schema, at_fixed | {_position(each, schema) for each in allows}),
    )


def _position(said: Allow, schema: Schema) -> int:
    return schema.position(said.feature, "constrained feature", "the training data")


def _ordered(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    return tuple(sorted(limits, key=lambda limit: (limit.column, limit.text, repr(limit))))


def _keeping(who: Hashable, features: Sequence[Hashable], schema: Schema, fixed: set[int]) -> list[Limit]:
    """Step 3: return what keeps all features but some, for one factual."""
    role = f"a feature that only() names for factual {spell(who)},"
    changing = {schema.position(name, role, "the training data") for name in features} | fixed
    return [keep(j, f, only_words(features)) for j, f in enumerate(schema.features) if j not in changing]


def _known(allow_missing: bool | Sequence[Hashable], schema: Schema, others: set[int]) -> tuple[int, ...]:
    """Return the columns with missing values, but `others`, that do not become missing."""
    if isinstance(allow_missing, (bool, np.bool_)):
        others = others | (set(range(len(schema))) if allow_missing else set())
    elif isinstance(allow_missing, str) or not isinstance(allow_missing, Iterable):
        raise InputError(f"allow_missing is {spell(allow_missing)}; give True, False or a list of features.")
    else:
        role = "feature of allow_missing"
        others = others | {schema.position(name, role, "the training data") for name in allow_missing}
    return tuple(j for j, feature in enumerate(schema.features) if feature.has_missing and j not in others)


def _rules(said: Sequence[Rule], schema: Schema) -> tuple[ResolvedRule, ...]:
    rules = {resolve_rule(each, schema) for each in said}
    ordered = sorted(rules, key=lambda rule: (rule.text, repr(rule.condition)))
    for one, other in pairwise(ordered):
        if one.text == other.text:
            raise InputError(f"two different rules are called {one.text!r}; give one of them another name=.")
    return tuple(ordered)
