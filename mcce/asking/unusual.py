"""What a user should know about the rows to explain.

1. A factual far outside the training data: a number below the lowest or above the highest training value by more than a
   fifth of their distance. Neither the model nor the generator has seen anything like it.
2. A fixed level that no training row has, or two of them that none has together although at least five should, were
   they independent: what is drawn given them is learned from others. (Of three or more, or of rare levels, many
   combinations are new in any table.)

Each is said once for all factuals.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from mcce.arrays import Bools, Floats, Ints
from mcce.exceptions import spell, warn
from mcce.generators.base import Generator
from mcce.table import Feature

FAR = 0.2  # of the training range
EXPECTED = 5.0
SHOWN = 5


def warn_of_factuals(matrix: Floats, index: pd.Index[Any], generator: Generator) -> None:
    """Warn of factuals that the training rows say little about."""
    features = generator.schema_.features
    outside = np.column_stack([_outside(feature, matrix[:, j]) for j, feature in enumerate(features)])
    if outside.any():
        _warn(
            {i: _with_ranges(features, matrix[i], outside[i]) for i in np.flatnonzero(outside.any(axis=1)).tolist()},
            index,
            "far outside the training data",
            "Neither the model nor what draws for them has seen such rows: check the values, or leave the rows out.",
        )
    unseen = _unseen_levels(matrix, generator)
    if unseen:
        _warn(
            unseen,
            index,
            "with fixed values that no training row has",
            "What is drawn given them is learned from others: check the values, or fix fewer features.",
        )


def _unseen_levels(matrix: Floats, generator: Generator) -> dict[int, str]:
    """Return the rows with a fixed level, or a pair of them, that is missing in training (step 2), in words."""
    columns = [generator.schema_.names.index(name) for name in generator.fixed_]
    fixed = [generator.schema_.features[j] for j in columns]
    places = [k for k, feature in enumerate(fixed) if not feature.is_numeric]  # of the givens, where they come first
    asked = {k: _codes(fixed[k], matrix[:, columns[k]]) for k in places}
    known = {k: _codes(fixed[k], generator.training_givens_[:, k]) for k in places}
    counts = {k: np.bincount(known[k], minlength=fixed[k].n_levels + 1) for k in places}
    words: dict[int, list[str]] = {}

    def note(rows: Any, *which: int) -> None:
        for i in np.flatnonzero(rows).tolist():
            said = [f"{fixed[k].name} {_value(fixed[k], matrix[i, columns[k]])}" for k in which]
            words.setdefault(i, []).append(" with ".join(said))

    for k in places:
        note(counts[k][asked[k]] == 0, k)
    for a, b in combinations(places, 2):
        n_codes = fixed[b].n_levels + 1
        pairs = np.bincount(known[a] * n_codes + known[b], minlength=(fixed[a].n_levels + 1) * n_codes)
        expected = counts[a][asked[a]] * counts[b][asked[b]] / known[a].size
        note((pairs[asked[a] * n_codes + asked[b]] == 0) & (expected >= EXPECTED), a, b)
    return {i: ", ".join(said) for i, said in words.items()}


def _codes(feature: Feature, column: Floats) -> Ints:
    """Return level codes; missing is one more level."""
    return np.where(np.isnan(column), feature.n_levels, column).astype(np.int64)


def _warn(words_of_row: dict[int, str], index: pd.Index[Any], what: str, remedy: str) -> None:
    shown = "; ".join(f"{spell(index[i])} ({words})" for i, words in list(words_of_row.items())[:SHOWN])
    more = f" and {len(words_of_row) - SHOWN} more" if len(words_of_row) > SHOWN else ""
    rows = "a row" if len(words_of_row) == 1 else f"{len(words_of_row)} rows"
    warn(f"X has {rows} {what}: {shown}{more}. {remedy}")


def _outside(feature: Feature, column: Floats) -> Bools:
    if not feature.is_numeric or np.isnan(feature.low):
        return np.zeros(column.size, dtype=bool)
    far = FAR * feature.span
    return (column < feature.low - far) | (column > feature.high + far)


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
