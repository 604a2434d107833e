"""Rows that are given the same, and leaves at random by their weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mcce.arrays import Floats, Ints, UInts


def group_rows(keys: UInts) -> Iterator[npt.NDArray[np.intp]]:
    """Yield the rows of each distinct key."""
    _, group = np.unique(keys, return_inverse=True)
    yield from np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])


def choose_leaves(log_weights: Floats, uniform: Floats) -> Ints:
    """Return a leaf for each uniform number, by weights."""
    total = np.cumsum(np.exp(log_weights - log_weights.max()))
    last = int(np.flatnonzero(np.isfinite(log_weights))[-1])  # rounding may lead beyond it
    return np.asarray(np.minimum(np.searchsorted(total, uniform * total[-1], side="right"), last), dtype=np.int64)
