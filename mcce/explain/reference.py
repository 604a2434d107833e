"""Usual values and helpful directions of training rows, by which counterfactuals are checked before they are sent.

1. For every number that may change, the distance of the 5 and the 95 per cent point of its values, and the values
   between which 98 per cent lie: for all rows, and for those that share a level of a feature with at most twenty
   levels, if there are at least a hundred. A level has low values if their 99 per cent point, with missing values
   counted as the lowest, is below the upper quartile of all rows. Of fixed numbers, such as an age, levels with high
   values are found as well (the 1 per cent point is above the lower quartile), and no others are kept. Durations are
   found by `mcce.table.suggest.find_durations`.
2. For every number and ordered feature that may change, the direction that usually helps refused rows
   (`usual_directions`): the model is queried for up to 128 refused training rows with the feature set to its 10 per
   cent point, and to its 90 per cent point; derived columns are computed from it. If the two predictions differ for at
   least one row in ten, and for nine in ten of these the same one is farther inside the decision, that is the
   direction.
3. For every amount that may change, that is a number other than a code (`mcce.table.suggest.is_code`), the 90 per cent
   point of its positive values, and the usual factor between up to 256 refused rows and the five accepted ones most
   similar to each, of up to 2,000: of the pairs with a higher amount in the accepted row the 97.5 per cent point, and
   of those with a lower one the 2.5 per cent point, if there are at least 50.
4. Features that look like unchangeable facts (`mcce.table.suggest`), unless a constraint of the explainer limits
   them. `MCCE.fit` warns of these.

The learned parts contain no training rows, but quantiles of groups.

`warn_of_factuals` warns of factuals unlike the training rows:

5. A number beyond the lowest or highest training value by more than a fifth of their distance, and by more than four
   times the mean excess of the outer tenth over its inner end, so that the next value of a long tail is not unusual (of
   an exponential tail one in 55 new extremes goes farther). Tails are not checked with fewer than 100 training rows.
6. A fixed level that no training row has, or a pair of fixed levels that no training row has although at least five
   would be expected under independence. Of three or more levels, or of rare ones, many combinations are new in any
   table.

There is one warning for all factuals, and one for all parts of a table in many parts (`collect_warnings`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.constraints import Allow, read, simplest
from mcce.distances.measures import tail_robust
from mcce.exceptions import AdviceWarning, MCCEError, spell, warn
from mcce.explain.order import Margins
from mcce.generators.base import Generator
from mcce.model.queries import PredictsEncoded
from mcce.plausibility.relations import KeptRelations
from mcce.plausibility.stop_reasons import Usual, plain_level
from mcce.report.suspicious import EDGE, WIDE
from mcce.table import Feature, Schema
from mcce.table.dtypes import is_dated
from mcce.table.suggest import Suggestion, find_durations, find_unchangeable, is_code
from mcce.table.weights import quantiles
from mcce.wording import Parameter, PythonOnly, Setting, call

MOST_LEVELS, FEWEST_ALIKE = 20, 100
HIGH, QUARTILE = 0.9, 0.75
REFUSED, ACCEPTED, NEAREST = 256, 2000, 5
FEWEST_PAIRS, FARTHEST = 50, 0.975
QUERIED_ROWS, APART = 128, (0.1, 0.9)
QUERIED_CELLS = 4_000_000  # cells of a query
DIFFERING, AGREEING = 0.1, 0.9
NAMED = 5
READ_TOGETHER = 64  # columns whose numbers are copied at a time
FAR = 0.2  # share of the training range
TAIL, EXCESSES = 0.1, 4.0
FEWEST_ROWS, REACH_ROWS = 100, 5000  # fewest and most training rows for the tails
EXPECTED = 5.0
SHOWN = 5


def learn_usual(
    matrix: Floats,
    wanted: Bools,
    schema: Schema,
    mutable: Ints,
    question: PredictsEncoded,
    margins: Margins | None,
    weights: Floats | None,
    unchangeable: Mapping[Hashable, str],
    relations: KeptRelations | None = None,
) -> Usual:
    """Return the usual values of encoded training rows.

    Parameters
    ----------
    matrix, wanted, weights : the rows, which of them have the wanted decision, and their weights; None for equal ones
    schema, mutable : their columns, and the positions of those that may change
    question, margins : the model, and the margins of its scores; None if the decision has no scores
    unchangeable : reasons why a feature cannot be changed
    relations : relations by which columns are computed from others; None for none
    """
    numbers = [j for j in mutable.tolist() if _is_amount(schema.features[j], matrix[:, j])]
    compared = [j for j, feature in enumerate(schema.features) if _is_amount(feature, matrix[:, j])]
    points = {j: _points(matrix[:, j], WIDE, weights) for j in numbers}
    name = {j: schema.features[j].name for j in mutable.tolist()}
    directions = usual_directions(matrix, wanted, schema, mutable, question, margins, relations)
    durations = find_durations(schema.features, list(matrix.T))
    amounts = [j for j in numbers if (matrix[:, j] > 0.0).any() and not is_code(schema.features[j], matrix[:, j])]
    refused, accepted = _similar_pairs(matrix, wanted, schema.features, weights) if amounts else (matrix[:0],) * 2
    return Usual(
        directions={name[j]: way for j, way in directions.items()},
        spreads={
            name[j]: float(high - low) if high > low else float(schema.features[j].span or 1.0)
            for j, (low, high) in points.items()
        },
        highs={
            name[j]: _points(np.where(matrix[:, j] > 0.0, matrix[:, j], np.nan), (HIGH, HIGH), weights)[0]
            for j in amounts
        },
        factors={name[j]: _usual_factors(refused[:, j], accepted[:, j]) for j in amounts},
        edges=tuple(
            edge
            for at in range(0, len(compared), READ_TOGETHER)
            for edge in _edges(matrix, schema.features, compared[at : at + READ_TOGETHER], weights, {*numbers})
        ),
        durations={name[j]: durations[name[j]].in_a_year for j in numbers if name[j] in durations},
        unchangeable=dict(unchangeable),
    )


def _is_amount(feature: Feature, column: Floats) -> bool:
    return feature.is_numeric and not is_dated(feature.dtype) and not np.isnan(column).all()


def _points(column: Floats, shares: tuple[float, float], weights: Floats | None) -> tuple[float, float]:
    known = ~np.isnan(column)
    low, high = quantiles(column[known], list(shares), None if weights is None else weights[known])
    return float(low), float(high)


def _edges(
    matrix: Floats, features: Sequence[Feature], columns: Sequence[int], weights: Floats | None, mutable: set[int]
) -> list[tuple[Any, ...]]:
    """Return the values between which nearly all numbers of each column lie, for all rows and for rows of a level.

    These are the fields of an `Edge`, in a plain tuple, which is stored.

    All columns are read at once for each level: a table of many columns has many pairs of a number and a level.
    """
    numbers = matrix[:, columns]
    known = ~np.isnan(numbers)
    as_lowest = np.where(known, numbers, np.nanmin(numbers, axis=0) - 1.0)
    as_highest = np.where(known, numbers, np.nanmax(numbers, axis=0) + 1.0)
    is_fixed = np.array([j not in mutable for j in columns])
    lower, upper = quantiles(as_highest, 1.0 - QUARTILE, weights), quantiles(as_lowest, QUARTILE, weights)
    found: list[list[tuple[Any, ...]]] = [
        [(features[j].name, None, None, *_points(matrix[:, j], EDGE, weights), False)] for j in columns
    ]
    for k, given in enumerate(features):
        if given.is_numeric or given.levels is None or given.n_levels > MOST_LEVELS:
            continue
        for code, level in enumerate(given.levels):
            alike = matrix[:, k] == code
            if alike.sum() < FEWEST_ALIKE:
                continue
            of_level = None if weights is None else weights[alike]
            lows, highs = quantiles(as_lowest[alike], EDGE, of_level)
            least = quantiles(as_highest[alike], EDGE[0], of_level)
            is_low, is_high = highs < upper, (least > lower) & is_fixed
            lows = np.where(is_high, least, np.where(is_low, -np.inf, lows))
            highs = np.where(is_high & ~is_low, np.inf, highs)
            contradicts, plain = (is_low | is_high).tolist(), plain_level(level)
            for j, edges, *ends in zip(columns, found, lows.tolist(), highs.tolist(), contradicts, strict=True):
                edges.append((features[j].name, given.name, plain, *ends))
    kept = [edges if j in mutable else [each for each in edges if each[-1]] for j, edges in zip(columns, found)]
    return list(chain.from_iterable(kept))


def _similar_pairs(
    matrix: Floats, wanted: Bools, features: Sequence[Feature], weights: Floats | None
) -> tuple[Floats, Floats]:
    """Return refused rows, and the accepted rows most similar to each (step 3); the refused ones are repeated."""
    refused = matrix[_spread_evenly(np.flatnonzero(~wanted), REFUSED)]
    accepted = matrix[_spread_evenly(np.flatnonzero(wanted), ACCEPTED)]
    n_nearest = min(NEAREST, len(accepted))
    if not n_nearest or not len(refused):
        return matrix[:0], matrix[:0]
    _, distances = tail_robust(features, matrix, weights).to_each(accepted, refused)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :n_nearest]
    return np.repeat(refused, n_nearest, axis=0), accepted[nearest.ravel()]


def _spread_evenly(rows: Ints, most: int) -> Ints:
    """Return at most so many of the rows, evenly spaced."""
    return rows[np.unique(np.linspace(0, max(rows.size - 1, 0), most).astype(np.intp))[: rows.size]]


def _usual_factors(refused: Floats, accepted: Floats) -> tuple[float, float]:
    """Return the smallest and the largest usual factor between similar rows; infinite if there are few pairs."""
    both = (refused > 0.0) & (accepted > 0.0)
    factors = accepted[both] / refused[both]
    falls, rises = factors[factors < 1.0], factors[factors > 1.0]
    return (
        float(np.quantile(falls, 1.0 - FARTHEST)) if falls.size >= FEWEST_PAIRS else -np.inf,
        float(np.quantile(rises, FARTHEST)) if rises.size >= FEWEST_PAIRS else np.inf,
    )


def usual_directions(
    matrix: Floats,
    wanted: Bools,
    schema: Schema,
    mutable: Ints,
    question: PredictsEncoded,
    margins: Margins | None,
    relations: KeptRelations | None = None,
) -> dict[int, int]:
    """Return the columns in which one direction usually helps refused rows: 1 up, -1 down (step 2)."""
    some = _spread_evenly(np.flatnonzero(~wanted), QUERIED_ROWS)
    columns = [j for j in mutable.tolist() if schema.features[j].is_numeric or schema.features[j].kind == "ordered"]
    ends = {j: _low_and_high(matrix[:, j], schema.features[j]) for j in columns if not np.isnan(matrix[:, j]).all()}
    if not some.size or not ends:
        return {}
    found: dict[int, int] = {}
    at_once = max(1, QUERIED_CELLS // (2 * some.size * matrix.shape[1]))
    for begin in range(0, len(ends), at_once):
        columns = [*ends][begin : begin + at_once]
        own = np.tile(matrix[some], (2 * len(columns), 1))
        rows = own.copy()
        for j, both in zip(columns, rows.reshape(len(columns), 2, some.size, -1)):
            both[:, :, j] = ends[j][:, None]
        rows = rows if relations is None else relations.complete(rows, own)
        scores, inside = question.predict_encoded(rows)
        depth = inside.astype(np.float64) if margins is None else margins.inside(scores)
        low, high = depth.reshape(len(columns), 2, some.size).transpose(1, 0, 2)
        up, down = (high > low).sum(axis=1), (high < low).sum(axis=1)
        differing = up + down
        usual = (differing >= DIFFERING * some.size) & (np.maximum(up, down) >= AGREEING * differing)
        found |= {columns[place]: 1 if up[place] > down[place] else -1 for place in np.flatnonzero(usual)}
    return found


def _low_and_high(column: Floats, feature: Feature) -> Floats:
    """Return a low and a high value of a feature, different if possible."""
    low, high = _points(column, APART, None)
    ends = np.array([low, high] if high > low else [feature.low, feature.high])
    return feature.grid.put(ends) if feature.is_numeric else np.rint(ends)


def unchangeable_features(
    frame: pd.DataFrame, schema: Schema, fixed: Sequence[Hashable], constraints: Any
) -> dict[Hashable, Suggestion]:
    """Return the features that may change and look like facts, unless a constraint limits them (step 4)."""
    found = find_unchangeable(frame, schema, {*fixed})
    if not found:
        return {}
    try:
        limited = {each.feature for each in simplest(read(constraints), schema) if isinstance(each, Allow)}
    except MCCEError:  # reported where the constraints are used
        limited = set()
    return {name: suggestion for name, suggestion in found.items() if suggestion.is_sure and name not in limited}


def warn_of_unchangeable(found: dict[Hashable, Suggestion]) -> None:
    """Warn of features that may change and look like facts, unless another warning covers them."""
    found = {name: suggestion for name, suggestion in found.items() if not suggestion.is_warned}
    if not found:
        return
    shown = [f"{spell(name)} ({suggestion.reason})" for name, suggestion in list(found.items())[:NAMED]]
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    first = next(iter(found))
    warn(
        f"features that look like unchangeable facts may change: {', '.join(shown)}{more}. Name them in ",
        Setting("fixed", [first, ...]),
        "; or, if they may change, limit their values, as in ",
        Setting("constraints", [call("mcce.allow", first, ...)]),
        ".",
        PythonOnly(
            " mcce.suggest_fixed(X, fixed) lists them with reasons; a filter of mcce.exceptions.AdviceWarning silences "
            "this."
        ),
        category=AdviceWarning,
    )


def find_reach(matrix: Floats, features: Sequence[Feature]) -> Floats:
    """Return for each column the lowest and highest value that is not far outside; `matrix` has some training rows."""
    return np.array([_reach(feature, matrix[:, j]) for j, feature in enumerate(features)]).T


def _reach(feature: Feature, column: Floats) -> tuple[float, float]:
    known = np.sort(column[~np.isnan(column)])
    if not feature.is_numeric or known.size < FEWEST_ROWS:
        return -np.inf, np.inf
    size = int(np.ceil(TAIL * known.size))
    lower, upper = known[:size], known[-size:]
    least = FAR * feature.span
    return (
        feature.low - max(least, EXCESSES * float((lower[-1] - lower).mean())),
        feature.high + max(least, EXCESSES * float((upper - upper[0]).mean())),
    )


@dataclass
class Unusual:
    """Unusual factuals without a warning yet: the number of rows, and warnings without their subject, the table."""

    n_rows: int = 0
    words: list[str] = field(default_factory=list)


_collected: ContextVar[Unusual | None] = ContextVar("unusual factuals", default=None)


@contextmanager
def collect_warnings() -> Iterator[Unusual]:
    """Collect the warnings of this thread, so that a table in many parts gets one warning."""
    token = _collected.set(found := Unusual())
    try:
        yield found
    finally:
        _collected.reset(token)


def warn_of_factuals(matrix: Floats, index: pd.Index[Any], generator: Generator, reach: Floats | None) -> None:
    """Warn of factuals unlike the training rows; `reach` is that of `find_reach`."""
    features = generator.schema_.features
    collected = _collected.get()
    outside = np.zeros(matrix.shape, dtype=bool) if reach is None else (matrix < reach[0]) | (matrix > reach[1])
    unseen = _unseen_levels(matrix, generator)
    if collected is not None:  # of a call repeated without bad rows, the last counts
        collected.n_rows = len({*np.flatnonzero(outside.any(axis=1)).tolist(), *unseen})
        collected.words.clear()
    if outside.any():
        _warn(
            {i: _with_ranges(features, matrix[i], outside[i]) for i in np.flatnonzero(outside.any(axis=1)).tolist()},
            index,
            "far outside the training data",
            "Neither the model nor the generator was fitted to such rows: check the values, or leave the rows out.",
        )
    if unseen:
        _warn(
            unseen,
            index,
            "with fixed values that no training row has",
            "Their draws are extrapolated from other rows: check the values, or fix fewer features.",
        )


def _unseen_levels(matrix: Floats, generator: Generator) -> dict[int, str]:
    """Return the rows with a fixed level, or a pair of them, that is missing in training (step 6), in words."""
    if not len(generator.training_givens_):  # a chain that was saved without them
        return {}
    columns = [generator.schema_.names.index(name) for name in generator.fixed_]
    fixed = [generator.schema_.features[j] for j in columns]
    places = [k for k, feature in enumerate(fixed) if not feature.is_numeric]  # of the givens, where they come first
    codes = {k: _codes(fixed[k], matrix[:, columns[k]]) for k in places}
    known = {k: _codes(fixed[k], generator.training_givens_[:, k]) for k in places}
    counts = {k: np.bincount(known[k], minlength=fixed[k].n_levels + 1) for k in places}
    words: dict[int, list[str]] = {}

    def note(rows: Any, *which: int) -> None:
        for i in np.flatnonzero(rows).tolist():
            levels = [f"{fixed[k].name} {_value(fixed[k], matrix[i, columns[k]])}" for k in which]
            words.setdefault(i, []).append(" with ".join(levels))

    for k in places:
        note(counts[k][codes[k]] == 0, k)
    for a, b in combinations(places, 2):
        n_codes = fixed[b].n_levels + 1
        pairs = np.bincount(known[a] * n_codes + known[b], minlength=(fixed[a].n_levels + 1) * n_codes)
        expected = counts[a][codes[a]] * counts[b][codes[b]] / known[a].size
        note((pairs[codes[a] * n_codes + codes[b]] == 0) & (expected >= EXPECTED), a, b)
    return {i: ", ".join(each) for i, each in words.items()}


def _codes(feature: Feature, column: Floats) -> Ints:
    """Return level codes; missing is one more level."""
    return np.where(np.isnan(column), feature.n_levels, column).astype(np.int64)


def _warn(words_of_row: dict[int, str], index: pd.Index[Any], what: str, remedy: str) -> None:
    shown = "; ".join(f"{spell(index[i])} ({words})" for i, words in list(words_of_row.items())[:SHOWN])
    more = f" and {len(words_of_row) - SHOWN} more" if len(words_of_row) > SHOWN else ""
    rows = "a row" if len(words_of_row) == 1 else f"{len(words_of_row)} rows"
    words = f"has {rows} {what}: {shown}{more}. {remedy}"
    collected = _collected.get()
    if collected is None:
        warn(Parameter("X"), f" {words}")
    else:
        collected.words.append(words)


def _with_ranges(features: tuple[Feature, ...], row: Floats, which: Bools) -> str:
    """Return the marked values of a row, each with the range of the training rows."""
    marked = [(features[j], float(row[j])) for j in np.flatnonzero(which).tolist()]
    return ", ".join(
        f"{f.name} {_value(f, x)}, in training {_value(f, f.low)} to {_value(f, f.high)}" for f, x in marked
    )


def _value(feature: Feature, encoded: float) -> str:
    if np.isnan(encoded):
        return "missing"
    value = pd.Series(feature.decode(np.array([encoded]))).iloc[0]
    return str(value) if feature.is_numeric else spell(value)
