"""The rows to explain: encoded, named by their index, what the model says of them, and warnings about unusual ones.

1. `read_factuals` encodes the rows and asks the model about them, and about some training rows once more. Rows with a
   level that no training row has are left out, and told; they stop nobody else.
2. A factual far outside the training data is warned of: a number beyond the lowest or highest training value by more
   than a fifth of their distance, and by more than four times the mean excess of the outer tenth over its inner end, so
   that the next value of a long tail is nothing unusual (of an exponential tail one in 55 new extremes goes farther).
   Neither the model nor the generator has seen anything like it. Fewer than 100 training rows say nothing of tails.
3. So is a fixed level that no training row has, or two of them that none has together although at least five should,
   were they independent: what is drawn given them is learned from others. (Of three or more, or of rare levels, many
   combinations are new in any table.)

Each is told once for all factuals; of a table in many parts once for all parts (`collected_quietly`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.exceptions import InputError, spell, warn
from mcce.generators.base import Generator
from mcce.model.ask import SpotCheck
from mcce.model.decisions import Answer, Decision
from mcce.table import Data, Feature, FrameKind, Schema, as_frame, frame_kind
from mcce.table.checks import check_magnitudes, check_missing, check_row_names
from mcce.table.left_out import LeftOut, without_unknown_levels
from mcce.wording import Parameter

FAR = 0.2  # of the training range
TAIL, EXCESSES = 0.1, 4.0
FEWEST_ROWS, REACH_ROWS = 100, 5000  # training rows that tails are read from
EXPECTED = 5.0
SHOWN = 5


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
    """Unusual factuals that were not warned of yet: how many rows, and warnings without their subject, the table."""

    n_rows: int = 0
    words: list[str] = field(default_factory=list)


_collected: ContextVar[Unusual | None] = ContextVar("unusual factuals", default=None)


@contextmanager
def collected_quietly() -> Iterator[Unusual]:
    """Collect, in this thread, what there would be to warn of; a table in many parts is warned of once."""
    token = _collected.set(found := Unusual())
    try:
        yield found
    finally:
        _collected.reset(token)


def warn_of_factuals(matrix: Floats, index: pd.Index[Any], generator: Generator, reach: Floats | None) -> None:
    """Warn of factuals that the training rows say little about; `reach` is that of `find_reach`."""
    features = generator.schema_.features
    collected = _collected.get()
    outside = np.zeros(matrix.shape, dtype=bool) if reach is None else (matrix < reach[0]) | (matrix > reach[1])
    unseen = _unseen_levels(matrix, generator)
    if collected is not None:  # of a call that is made again, without bad rows, the last counts
        collected.n_rows = len({*np.flatnonzero(outside.any(axis=1)).tolist(), *unseen})
        collected.words.clear()
    if outside.any():
        _warn(
            {i: _with_ranges(features, matrix[i], outside[i]) for i in np.flatnonzero(outside.any(axis=1)).tolist()},
            index,
            "far outside the training data",
            "Neither the model nor what draws for them has seen such rows: check the values, or leave the rows out.",
        )
    if unseen:
        _warn(
            unseen,
            index,
            "with fixed values that no training row has",
            "What is drawn given them is learned from others: check the values, or fix fewer features.",
        )


def _unseen_levels(matrix: Floats, generator: Generator) -> dict[int, str]:
    """Return the rows with a fixed level, or a pair of them, that is missing in training (step 3), in words."""
    if not len(generator.training_givens_):  # a chain that was saved without them
        return {}
    columns = [generator.schema_.names.index(name) for name in generator.fixed_]
    fixed = [generator.schema_.features[j] for j in columns]
    places = [k for k, feature in enumerate(fixed) if not feature.is_numeric]  # of the givens, where they come first
    asked = {k: _codes(fixed[k], matrix[:, columns[k]]) for k in places}
    known = {k: _codes(fixed[k], generator.training_givens_[:, k]) for k in places}
    counts = {k: np.bincount(known[k], minlength=fixed[k].n_levels + 1) for k in places}
    words: dict[int, list[str]] = {}

    def note(rows: Any, *which: int) -> None:
        for i in np.flatnonzero(rows).tolist():
            levels = [f"{fixed[k].name} {_value(fixed[k], matrix[i, columns[k]])}" for k in which]
            words.setdefault(i, []).append(" with ".join(levels))

    for k in places:
        note(counts[k][asked[k]] == 0, k)
    for a, b in combinations(places, 2):
        n_codes = fixed[b].n_levels + 1
        pairs = np.bincount(known[a] * n_codes + known[b], minlength=(fixed[a].n_levels + 1) * n_codes)
        expected = counts[a][asked[a]] * counts[b][asked[b]] / known[a].size
        note((pairs[asked[a] * n_codes + asked[b]] == 0) & (expected >= EXPECTED), a, b)
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


@dataclass(frozen=True)
class Factuals:
    """Encoded rows with the names that the user gave them, the model's scores, and who has the decision already.

    `frames` is the kind of frame that they came in, None for pandas; `left_out` has the rows with an unknown level,
    which are not among these.
    """

    index: pd.Index[Any]
    matrix: Floats
    scores: npt.NDArray[Any]
    wanted: npt.NDArray[np.bool_]
    frames: FrameKind | None = None
    left_out: LeftOut | None = None

    def __len__(self) -> int:
        return len(self.index)


def encode_factuals(X: Data, schema: Schema) -> tuple[pd.Index[Any], Floats]:
    """Return the names and the encoded rows of a table to explain; a Series is one row, named by its name."""
    if isinstance(X, pd.Series):
        if not X.index.isin(schema.names).any():
            raise InputError(
                Parameter("X"),
                " is a Series whose index holds none of the training columns; a Series is read as one "
                "row. Give a DataFrame with all columns.",
            )
        X = X.to_frame().T.infer_objects()
    frame, _ = as_frame(X, "X")
    check_row_names(frame.index, "X", "factuals")
    table = schema.encode(frame, "X")
    check_magnitudes(table, "X")
    check_missing(table, frame.index, "X")
    return frame.index, table.matrix


def encode_known(X: Data, schema: Schema, then: str) -> tuple[pd.Index[Any], Floats, LeftOut | None]:
    """Return what `encode_factuals` does, and the rows with an unknown level, which are left out.

    They are warned of; `then` says what becomes of them. Nobody is left out where all would be: that is an error.
    """
    try:
        return *encode_factuals(X, schema), None
    except InputError:
        known, left_out = without_unknown_levels(X, schema)
        if left_out is None:
            raise
    left_out.tell("X", then)
    return *encode_factuals(known, schema), left_out


def read_factuals(X: Data, schema: Schema, decision: Decision, spots: SpotCheck) -> Factuals:
    """Encode the factuals and ask the model about them, and about some training rows once more."""
    index, matrix, left_out = encode_known(X, schema, "Such rows are not explained; `unexplained` says so.")
    n, frames = matrix.shape[0], frame_kind(X)
    if n == 0:
        return Factuals(index, matrix, np.empty(0), np.empty(0, dtype=bool), frames)
    rows = schema.decode_for_model(np.concatenate([matrix, spots.rows]))
    if isinstance(rows, pd.DataFrame):  # so that an error names the user's rows
        rows.index = pd.Index([*index, *(f"training row {i}" for i in spots.positions)], dtype=object)
    asked = decision.ask(rows, f"the {n} factuals, and {len(spots.rows)} training rows again")
    spots.compare(Answer(asked.scores[n:], asked.wanted[n:]))
    return Factuals(index, matrix, asked.scores[:n], asked.wanted[:n], frames, left_out)
