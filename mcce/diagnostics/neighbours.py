"""Nearest training rows of counterfactuals by Gower distance, and copies of training rows.

The search is exhaustive and exact: features with the largest differences are added first, and the sum for a training
row is stopped when it exceeds the smallest so far. If the factual is a training row, one row equal to it is excluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.threads import count_jobs, run_in_threads
from mcce.distances import kernels
from mcce.distances.measures import Distance, changed_columns, gower, stack
from mcce.rng import hash_rows
from mcce.table import Feature

BLOCK = 64  # rows between two updates of the progress bar
SAMPLE = 256  # rows that determine the order of the features


@dataclass(frozen=True)
class NearestRows:
    """The nearest training rows of each row (-1 if no further row may be chosen) and the Gower distances to them.

    They are in columns, the nearest first.
    """

    row: Ints
    distance: Floats


def find_nearest(
    rows: Floats,
    training: Floats,
    features: Sequence[Feature],
    k: int = 1,
    *,
    own: Ints | None = None,
    among: Bools | None = None,
    n_jobs: int | None = None,
    progress: bool | None = False,
) -> NearestRows:
    """Find the `k` nearest training rows of each row.

    Parameters
    ----------
    rows, training : encoded matrices with the columns `features`.
    own : positions in `training` that are excluded, one for each row; -1 for none. See `find_equal`.
    among : marks the training rows that may be chosen; None for all.
    n_jobs : threads; the result does not depend on it.
    """
    n = rows.shape[0]
    chosen = np.arange(training.shape[0]) if among is None else np.flatnonzero(among)
    distance = gower(features)
    order = _most_different_first(rows, training[chosen], distance)
    steps, tables = stack([distance.take(order)])
    place = np.full(training.shape[0] + 1, -1, dtype=np.int64)  # the last entry is for -1
    place[chosen] = np.arange(chosen.size)
    skipped = np.full(n, -1, dtype=np.int64) if own is None else place[own]
    few, many = np.ascontiguousarray(rows[:, order]), np.ascontiguousarray(training[chosen][:, order])
    found = np.empty((n, k), dtype=np.int64)

    def search(begin: int) -> None:
        end = min(begin + BLOCK, n)
        kernels.find_nearest(few, begin, end, many, steps, tables, skipped, np.empty(k), found)

    for _ in run_in_threads(search, list(range(0, n, BLOCK)), count_jobs(n_jobs), "nearest rows", progress):
        pass
    nearest = np.full((n, k), np.nan)
    has = found >= 0
    row = np.where(has, chosen[np.where(has, found, 0)] if chosen.size else -1, -1)
    nearest[has] = distance.between(rows[np.nonzero(has)[0]], training[row[has]])
    return NearestRows(row, nearest)


def _most_different_first(rows: Floats, training: Floats, distance: Distance) -> Ints:
    """Return the features by decreasing mean difference over some pairs of rows."""
    n = min(SAMPLE, rows.shape[0], training.shape[0])
    if n == 0:
        return np.arange(rows.shape[1])
    some = rows[np.linspace(0, rows.shape[0] - 1, n).astype(np.intp)]
    others = training[np.linspace(0, training.shape[0] - 1, n).astype(np.intp)]
    alone = np.arange(rows.shape[1])[:, None]
    mean = np.array([distance.take(j).sums(some[:, j], others[:, j]).mean() for j in alone])
    return np.argsort(-mean, kind="stable")


def find_equal(rows: Floats, training: Floats) -> Ints:
    """Return for each row the position of an equal training row, or -1."""
    place = np.full(rows.shape[0], -1, dtype=np.int64)
    if not training.shape[0]:
        return place
    keys, training_keys = hash_rows(rows), hash_rows(training)
    by_key = np.argsort(training_keys, kind="stable")
    at = np.minimum(np.searchsorted(training_keys, keys, sorter=by_key), by_key.size - 1)
    candidate = by_key[at]
    others = training[candidate]
    equal = ~changed_columns(rows, others).any(axis=1)
    place[equal] = candidate[equal]
    return place
