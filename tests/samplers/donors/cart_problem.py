"""Fits of the cart sampler and draws from it."""

from __future__ import annotations

import numpy as np

from mcce import CartSampler
from mcce.rng import RowStreams
from mcce.table import Schema

N = 20_000


def fit(frame, target="y", sampler=None, **kinds):
    """Return the fitted sampler of `target` and the table of the other columns."""
    frame = frame[[name for name in frame if name != target] + [target]]
    table = Schema.from_data(frame, kinds).encode(frame)
    given = table.first(len(table.features) - 1)
    return (sampler or CartSampler()).fit(given, table.column(len(table.features) - 1)), given


def draw(sampler, given, row, n=N, within=None, seed=0):
    """Draw n times at one training row."""
    return sampler.sample(given.take(np.full(n, row)), RowStreams.from_seed(seed, n), within)
