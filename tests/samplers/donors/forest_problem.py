"""Fits of the forest sampler, and the pool of a row."""

from __future__ import annotations

from mcce import ForestSampler
from mcce.table import Schema

LEVEL = 1e-4


def encode(frame, target="y"):
    """Return the table of the givens and the column of the target."""
    frame = frame[[name for name in frame if name != target] + [target]]
    table = Schema.from_data(frame).encode(frame)
    last = len(table.features) - 1
    return table.first(last), table.column(last)


def fit(frame, **parameters):
    given, target = encode(frame)
    return ForestSampler(**parameters).fit(given, target), given
