"""Features that look like unchangeable facts, or that are not actionable.

1. Dates, if all of them lie in the past.
2. Identifiers (`mcce.table.checks`), and whole numbers, nearly all different, in a column with such a name (`CALLED`).
3. Names: texts with 20 levels or more, and more than the square root of the number of rows.
4. Facts of a person, by the name of the column (`AGE`, `PERSON`), and where a person lives (`PLACE`).
5. Past events, by the name of the column (`PAST`, "last" with a time, or jobs that were held): whole numbers, truth
   values and levels. Also counts, up to a hundred, with a number of months or years in the name, as in "opened_12m".
6. Durations (`find_durations`): a linear function of a past date or of the time between dates; a number that is bounded
   by age or by another duration far more often than by chance; a name with a unit of time or a word of `DURATION`, and
   none of a contract (`TERM`).
7. Counts, by the name of the column (`COUNTED` in front, or "count"): whole numbers from 0 on.

`MCCE.fit` does not warn of counts, nor of durations unless a date shows them: a name does not show whether the past is
counted. `suggest_fixed` lists them. Words are those of `mcce.table.words`, in twelve languages. Nothing is fixed
automatically.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mcce.base.arrays import Floats
from mcce.table.checks import DISTINCT, FEWEST_ROWS, check_fixed, identifies
from mcce.table.dtypes import is_dated, is_logical
from mcce.table.feature import Feature, Kind
from mcce.table.schema import Data, Schema, as_frame
from mcce.table.words import (
    AGE,
    BIRTH,
    CALLED,
    COUNTED,
    DURATION,
    EMPLOYERS,
    HELD,
    IN_A_YEAR,
    PAST,
    PERSON,
    PLACE,
    TERM,
    TIMES,
    is_age,
    name_words,
    time_units,
)

FEWEST_LEVELS, MOST_CODES = 20, 20
FEWEST_YEARS = 10.0  # between a person's age and a duration
ABOVE, MOST_ABOVE = 0.05, 0.02  # shares above a bound: at least of shuffled values, at most of the values
LONGEST_LIFE = 80
MOST_EVENTS = 100
MOSTLY = 0.9  # least share of values of a count that are not negative: some tables have -9 for unknown


class Suggestion(NamedTuple):
    """A reason to fix a feature.

    Attributes
    ----------
    reason, evidence : texts
    is_sure : False for counts and durations, whose names are ambiguous
    is_warned : whether `fit` warns about it for another reason
    """

    reason: str
    evidence: str
    is_sure: bool = True
    is_warned: bool = False


def suggest_fixed(
    X: Data, fixed: Sequence[Hashable] = (), kinds: Mapping[Hashable, Kind] | None = None
) -> pd.DataFrame:
    """List the features of a table that look unchangeable, or that are not actionable.

    `MCCE.fit` warns about those that are not fixed (`mcce.exceptions.AdviceWarning`). The heuristics use kinds, values
    and words of names in twelve languages (`mcce.table.suggest`). They list some features that can change and miss
    others: review the columns yourself.

    Parameters
    ----------
    X : DataFrame or two-dimensional array
        Training rows.
    fixed : list of column names
        Fixed features, which are not listed.
    kinds : dict or None
        Kinds of columns, as `MCCE` takes them.

    Returns
    -------
    DataFrame
        By feature: `reason`, as in "a past event", and `evidence`.

    Examples
    --------
    >>> import mcce
    >>> mcce.suggest_fixed(mcce.datasets.load_loans().X, fixed=["age", "sex"])
                               reason                                   evidence
    feature
    years_employed         a duration               at most age - 17 in all rows
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
    """Return why features that are not fixed look unchangeable, by name."""
    found = {}
    columns = [
        feature.encode(frame.iloc[:, place], "X") if feature.is_numeric else np.empty(0)
        for place, feature in enumerate(schema.features)
    ]
    durations = find_durations(schema.features, columns)
    for place, feature in enumerate(schema.features):
        if feature.name in fixed:
            continue
        suggestion = _suggest(feature, frame.iloc[:, place])
        duration = durations.get(feature.name)
        if duration is not None and (suggestion is None or not suggestion.is_sure):
            suggestion = Suggestion("a duration", duration.evidence, is_sure=duration.is_sure)
        if suggestion is not None:
            found[feature.name] = suggestion
    return found


class Duration(NamedTuple):
    """Evidence that a number is a duration, whether it is a relation to dates, and the number of units in a year."""

    evidence: str
    is_sure: bool
    in_a_year: float


def find_durations(features: Sequence[Feature], columns: Sequence[Floats]) -> dict[Hashable, Duration]:
    """Return the numeric features that are durations; encoded columns of levels are not read."""
    elapsed = _times_elapsed(features, columns)
    numbers = {j: name_words(each.name) for j, each in enumerate(features) if _is_number(each)}
    ages = [j for j in numbers if is_age(features[j].name)]
    found: dict[int, Duration] = {}
    for j, words in numbers.items():
        if j in ages:
            continue
        units = time_units(words)
        in_a_year = IN_A_YEAR[units[0]] if len(units) == 1 else _units_in_a_year(features[j].high)
        by_date = next((what for what, time in elapsed if _is_linear(columns[j], time)), None)
        by_age = next((what for a in ages if (what := _bounded_by_age(columns[j], columns[a], features[a]))), None)
        by_name = _duration_words(words)
        if by_date or by_age or by_name:
            evidence = by_date or by_age or f"the name says {_quoted(by_name)}"
            found[j] = Duration(evidence, by_date is not None, in_a_year)
    known = dict(found)
    for j, words in numbers.items():
        if j not in known and j not in ages and not TERM & {*words} and not _is_count(words):
            whole = next((k for k in known if _is_bounded(columns[j], columns[k], MOST_ABOVE)), None)
            if whole is not None:
                evidence = f"at most {features[whole].name} in nearly all rows"
                found[j] = Duration(evidence, False, known[whole].in_a_year)
    return {features[j].name: duration for j, duration in found.items()}


def _is_number(feature: Feature) -> bool:
    return feature.is_numeric and not is_dated(feature.dtype)


def is_code(feature: Feature, column: Floats) -> bool:
    """Return whether a column looks like codes of ordered levels: few consecutive whole numbers from 0 or 1.

    A column that is a count by its name is not a code.
    """
    values = np.unique(column[~np.isnan(column)])
    if feature.decimals != 0 or not 1 < values.size <= MOST_CODES or _is_count(name_words(feature.name)):
        return False
    return bool(values[0] in (0.0, 1.0) and np.ptp(values) == values.size - 1)


def _times_elapsed(features: Sequence[Feature], columns: Sequence[Floats]) -> list[tuple[str, Floats]]:
    """Return past dates, and the times between two dates of which one is past, with labels."""
    dates = [j for j, each in enumerate(features) if each.is_numeric and is_dated(each.dtype)]
    past = [j for j in dates if _is_past(features[j])]
    found = [(f"a function of the date {features[j].name}", columns[j]) for j in past]
    for j in past:
        others = [k for k in dates if k != j and not (k in past and k < j)]
        found += [
            (f"the time between {features[j].name} and {features[k].name}", columns[k] - columns[j]) for k in others
        ]
    return found


def _is_linear(column: Floats, other: Floats) -> bool:
    """Return whether a column is a linear function of another one, up to rounding to whole units."""
    known = ~(np.isnan(column) | np.isnan(other))
    if known.sum() < FEWEST_ROWS or np.ptp(column[known]) == 0.0 or np.ptp(other[known]) == 0.0:
        return False
    slope, start = np.polyfit((x := other[known] - other[known].mean()) / np.abs(x).max(), column[known], 1)
    rest = column[known] - start - slope * x / np.abs(x).max()
    return bool(np.abs(rest).max() <= max(1.0, 1e-6 * np.ptp(column[known])) and np.std(column[known]) > 2.0)


def _bounded_by_age(column: Floats, age: Floats, of: Feature) -> str | None:
    """Return evidence if no value exceeds age minus at least ten years, although many shuffled values would."""
    apart = np.nanmin(age - column) if not np.isnan(age - column).all() else 0.0
    if apart < FEWEST_YEARS or np.nanmax(column) - np.nanmin(column) < FEWEST_YEARS:
        return None
    return f"at most {of.name} - {apart:g} in all rows" if _is_bounded(column, age - apart, 0.0) else None


def _is_bounded(column: Floats, bound: Floats, most: float) -> bool:
    """Return whether hardly any value exceeds a bound, although many shuffled values would.

    Negative values are codes, not durations.
    """
    known = (column >= 0) & (bound >= 0)
    if known.sum() < FEWEST_ROWS:
        return False
    shuffled = np.random.default_rng(0).permutation(column[known])
    above, of_shuffled = ((values > bound[known]).mean() for values in (column[known], shuffled))
    return bool(above <= most and of_shuffled >= ABOVE)


def _duration_words(words: list[str]) -> list[str]:
    if TERM & {*words} or _is_count(words):
        return []
    units = time_units(words)
    named = [word for word in words if word in DURATION]
    return named or (units if len(units) == 1 and len(words) > 1 else [])


def _is_count(words: list[str]) -> bool:
    return bool(words) and words[0] in COUNTED


def _units_in_a_year(high: float) -> float:
    """Return the units in a year of a duration by its largest value: years up to a lifetime, then months, days."""
    return 1.0 if high <= LONGEST_LIFE else 12.0 if high <= 12 * LONGEST_LIFE else 365.0


def _suggest(feature: Feature, column: pd.Series[Any]) -> Suggestion | None:
    words = name_words(feature.name)
    if is_dated(feature.dtype):
        return _past_dates(feature, column)
    many = _many_levels(feature, column, words)
    if many is not None:
        return many
    person = [word for word in words if word in PERSON or word.startswith(BIRTH)]
    if is_age(feature.name):
        person = [word for word in words if word in AGE]
    if person:
        return Suggestion("a fact of the person", f"the name says {_quoted(person)}")
    places = [word for word in words if word in PLACE]
    if places:
        return Suggestion("a place of residence", f"the name says {_quoted(places)}")
    if feature.is_numeric and feature.decimals != 0:
        return None
    found = _past_words(words)
    if not found and feature.is_numeric and feature.high <= MOST_EVENTS:
        found = _time_window(words)
    if found:
        return Suggestion("a past event", f"the name says {_quoted(found)}")
    counts = words[:1] if _is_count(words) else [word for word in words if word == "count"]
    if counts and feature.is_numeric and float((column.dropna() >= 0).mean()) >= MOSTLY:
        return Suggestion("a count, perhaps of past events", f"the name says {_quoted(counts)}", is_sure=False)
    return None


def _past_words(words: list[str]) -> list[str]:
    """Return the words for past events: those of `PAST`, employers of the past, and "last" with a time after it."""
    found = [word for word in words if word in PAST or word.endswith("verzug")]
    found += [word for word in words if word in HELD and EMPLOYERS & {*words}]
    for k, word in enumerate(words):
        times = [time for time in words[k + 1 : k + 3] if time in TIMES]
        found += [f"last {times[0]}"] if word == "last" and times else []
    return found


def _time_window(words: list[str]) -> list[str]:
    """Return a number of months or years in a name, such as "12m" or "2 yrs", except of a contract."""
    if TERM & {*words}:
        return []
    joined = [word for word in words if word in TIMES and word[0].isdigit()]
    return joined or [f"{n} {unit}" for n, unit in pairwise(words) if n.isdigit() and unit in TIMES]


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
    return Suggestion("a date of the past", f"{first} to {last}") if _is_past(feature) else None


def _is_past(feature: Feature) -> bool:
    if pd.api.types.is_timedelta64_dtype(feature.dtype):
        return False
    try:
        last = pd.Series(feature.decode(np.array([feature.high]))).iloc[0]
    except (ValueError, OverflowError):
        return False
    return str(last)[:10] <= str(pd.Timestamp.now())[:10]


def _many_levels(feature: Feature, column: pd.Series[Any], words: list[str]) -> Suggestion | None:
    """Return whether a column holds identifiers, or names with many levels."""
    if feature.kind == "ordered" or is_logical(feature.dtype):
        return None
    n = int(column.notna().sum())
    named = feature.is_numeric and feature.decimals == 0 and bool(CALLED & {*words})
    if feature.is_numeric or feature.n_levels >= DISTINCT * n:
        what = identifies(feature, feature.encode(column, "X"))
        if what is not None:
            return Suggestion("an identifier", what, is_warned=True)
    if named and n >= FEWEST_ROWS and column.nunique() >= DISTINCT * n:
        return Suggestion("an identifier", f"{column.nunique():,} different numbers in {n:,} rows")
    if feature.n_levels >= FEWEST_LEVELS and feature.n_levels > math.sqrt(n):
        return Suggestion("a name with many levels", f"{feature.n_levels:,} levels in {n:,} rows")
    return None
