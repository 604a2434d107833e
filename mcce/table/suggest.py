"""Features that look like unchangeable facts, or that are not actionable.

1. Dates that all lie in the past; identifiers (`mcce.table.checks`), and whole numbers named like one (`CALLED`); texts
   with 20 levels or more, and more than the square root of the number of rows.
2. By name: facts of a person (`PERSON`), past events (`PAST`, or "last" with a time), and counts (`COUNTED`), of which
   `MCCE.fit` does not warn.

Names are split into words and compared with English lists. Nothing is fixed automatically.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mcce.table.checks import DISTINCT, FEWEST_ROWS, check_fixed, identifies
from mcce.table.dtypes import is_dated, is_logical
from mcce.table.feature import Feature, Kind
from mcce.table.schema import Data, Schema, as_frame


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FEWEST_LEVELS = 20
MOSTLY = 0.9  # of the whole numbers of a count are not negative: some tables have -9 for unknown

PERSON = _words(
    """
    sex gender birth born birthday birthdate birthplace race ethnicity ethnic nationality native religion
    marital disability children child kids dependents dependants siblings foreign
    """
)
PAST = _words(
    """
    past previous previously prior priors ever former history default defaulted defaults delq delinquency
    delinquencies delinquent dlqin late overdue arrears missed bankruptcy bankruptcies bankrupt derog derogatory
    conviction convictions convicted arrest arrests arrested inquiry inquiries inq claim claims fraud since
    """
)
COUNTED = frozenset(["num", "number", "count", "n"])
CALLED = frozenset(["id", "ids", "uuid", "guid", "key", "identifier", "ssn", "iban"])
TIMES = _words(
    """
    year years month months week weeks day days quarter m y 12m 6m 3m
    """
)


class Suggestion(NamedTuple):
    """A reason to fix a feature.

    Attributes
    ----------
    reason, evidence : in words
    is_sure : False of counts, whose name may mean another thing
    is_told : whether `fit` warns of it for another reason
    """

    reason: str
    evidence: str
    is_sure: bool = True
    is_told: bool = False


def suggest_fixed(
    X: Data, fixed: Sequence[Hashable] = (), kinds: Mapping[Hashable, Kind] | None = None
) -> pd.DataFrame:
    """List the features of a table that look like unchangeable facts, or that should not be given as advice.

    `MCCE.fit` warns of those that may change (`mcce.exceptions.AdviceWarning`). It goes by kinds, values and English
    names (`mcce.table.suggest`): it lists some that can change, and misses others. Read the columns yourself as well.

    Parameters
    ----------
    X : DataFrame or two-dimensional array
        Training rows.
    fixed : list of column names
        Features that are fixed already, which are left out.
    kinds : dict or None
        Kinds of columns, as `MCCE` takes them.

    Returns
    -------
    DataFrame
        By feature: `reason`, as in "a past event", and `evidence`, what speaks for it.

    Examples
    --------
    >>> import mcce
    >>> mcce.suggest_fixed(mcce.datasets.load_loans().X, fixed=["age", "sex"])
                               reason                                   evidence
    feature
    defaulted_last_year  a past event  the name says "defaulted" and "last year"
    """
    frame, _ = as_frame(X)
    schema = Schema.from_data(X, kinds=kinds)
    held = {*check_fixed(fixed, list(frame.columns))}
    found = find_unchangeable(frame, schema, held)
    index = pd.Index(list(found), dtype=object, name="feature", tupleize_cols=False)
    cells = {part: [getattr(each, part) for each in found.values()] for part in ("reason", "evidence")}
    return pd.DataFrame(cells, index=index, dtype=object)


def find_unchangeable(
    frame: pd.DataFrame, schema: Schema, fixed: set[Hashable] | frozenset[Hashable] = frozenset()
) -> dict[Hashable, Suggestion]:
    """Return, by feature, why it looks unchangeable, for columns that are not fixed."""
    found = {}
    for place, feature in enumerate(schema.features):
        if feature.name not in fixed:
            told = _suggest(feature, frame.iloc[:, place])
            if told is not None:
                found[feature.name] = told
    return found


def _suggest(feature: Feature, column: pd.Series[Any]) -> Suggestion | None:
    words = name_words(feature.name)
    if is_dated(feature.dtype):
        return _past_dates(feature, column)
    many = _many_levels(feature, column, words)
    if many is not None:
        return many
    person = [word for word in words if word in PERSON]
    if person or (len(words) <= 2 and "age" in words):
        return Suggestion("a fact of the person", f"the name says {_quoted(person or ['age'])}")
    if feature.is_numeric and feature.decimals != 0:
        return None
    found = _past_words(words)
    if found:
        return Suggestion("a past event", f"the name says {_quoted(found)}")
    counts = words[:1] if words[:1] and words[0] in COUNTED else [word for word in words if word == "count"]
    if counts and feature.is_numeric and float((column.dropna() >= 0).mean()) >= MOSTLY:
        return Suggestion("a count, perhaps of past events", f"the name says {_quoted(counts)}", is_sure=False)
    return None


def name_words(name: Hashable) -> list[str]:
    """Return the words of a name in small letters.

    Examples
    --------
    >>> name_words("defaulted_last_year"), name_words("NumInqLast6M")
    (['defaulted', 'last', 'year'], ['num', 'inq', 'last', '6m'])
    """
    if not isinstance(name, str):
        return []
    parts = re.findall(r"\d+[MYmy](?![a-z])|\d+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+", name)
    return [part.lower() for part in parts]


def _past_words(words: list[str]) -> list[str]:
    """Return the words that say that something has been: one of the list, and "last" with a time after it."""
    found = [word for word in words if word in PAST]
    for k, word in enumerate(words):
        times = [time for time in words[k + 1 : k + 3] if time in TIMES]
        found += [f"last {times[0]}"] if word == "last" and times else []
    return found


def _quoted(words: Sequence[str]) -> str:
    return " and ".join(f'"{word}"' for word in words)


def _past_dates(feature: Feature, column: pd.Series[Any]) -> Suggestion | None:
    types = pd.api.types
    if types.is_timedelta64_dtype(column.dtype) or not column.notna().any():
        return None
    try:
        ends = pd.Series(feature.decode(np.array([feature.low, feature.high])))
        first, last = (str(end)[:10] for end in ends)
    except (ValueError, OverflowError):
        return None
    if last > str(pd.Timestamp.now())[:10]:
        return None
    return Suggestion("a date of the past", f"{first} to {last}")


def _many_levels(feature: Feature, column: pd.Series[Any], words: list[str]) -> Suggestion | None:
    """Say whether a column holds identifiers, or names with many levels."""
    if feature.kind == "ordered" or is_logical(feature.dtype):
        return None
    n = int(column.notna().sum())
    named = feature.is_numeric and feature.decimals == 0 and bool(CALLED & {*words})
    if feature.is_numeric or feature.n_levels >= DISTINCT * n:
        what = identifies(feature, feature.encode(column, "X"))
        if what is not None:
            return Suggestion("an identifier", what, is_told=True)
    if named and n >= FEWEST_ROWS and column.nunique() >= DISTINCT * n:
        return Suggestion("an identifier", f"{column.nunique():,} different numbers in {n:,} rows")
    if feature.n_levels >= FEWEST_LEVELS and feature.n_levels > math.sqrt(n):
        return Suggestion("a name with many levels", f"{feature.n_levels:,} levels in {n:,} rows")
    return None
