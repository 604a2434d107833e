"""Candidates that are copies of training rows: kept out, or counted (paper, section 2.2, its safeguard for privacy).

1. Every training row is hashed, all columns at once (`mcce.rng.hash_rows`): 0 equals -0, missing equals missing.
2. A candidate is a copy if its hash is among them. Two different rows have the same hash with a chance of 2^-64.

What is kept are the hashes, not the rows. They tell whoever has them whether a row that he already knows was among the
training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from mcce.base.arrays import Bools, Floats, UInts
from mcce.rng import hash_rows
from mcce.storage.fields import UINT64, require, stored
from mcce.storage.state import stateful

_LAST_BITS = np.uint64(0xFFFF)


class Excludes(Protocol):
    """Rows that no counterfactual may be."""

    def contain(self, rows: Floats) -> Bools:
        """Return which encoded rows are among them."""


@stateful("TrainingRows")
@dataclass(frozen=True)
class TrainingRows:
    """Hashes of the training rows, in their order."""

    hashes: UInts = stored(UINT64, "rows")

    def check_state(self) -> None:
        """Refuse hashes of no rows."""
        require(self.hashes.size > 0, "hashes are none")

    @classmethod
    def of(cls, matrix: Floats) -> TrainingRows:
        """Hash encoded rows (step 1)."""
        return cls(hash_rows(matrix))

    def contain(self, rows: Floats) -> Bools:
        """Return which encoded rows are copies of a training row (step 2)."""
        return _among(hash_rows(rows), self._ascending)

    def count_in(self, rows: Floats) -> int:
        """Return how many of a few encoded rows are copies, without sorting the training rows."""
        hashed = hash_rows(rows)
        if not hashed.size:
            return 0
        # most training rows differ from all of these in their last bits already
        met = np.zeros(1 << 16, dtype=bool)
        met[hashed & _LAST_BITS] = True
        alike = self.hashes[met[self.hashes & _LAST_BITS]]
        return int(np.isin(hashed, alike).sum())

    @cached_property
    def _ascending(self) -> UInts:
        return np.unique(self.hashes)


def _among(values: UInts, ascending: UInts) -> Bools:
    place = np.minimum(np.searchsorted(ascending, values), ascending.size - 1)
    return np.asarray(ascending[place] == values)
