"""Candidates that are copies of training rows: kept out, or counted (paper, section 2.2, its safeguard for privacy).

1. Every training row is hashed, all columns at once (`mcce.rng.hash_rows`): 0 equals -0, missing equals missing.
2. A candidate is a copy if its hash is among them. Two different rows have the same hash with a chance of 2^-64.

What is kept are the hashes, not the rows. They tell whoever has them whether a row that he already knows was among the
training rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcce.arrays import Bools, Floats, UInts
from mcce.rng import hash_rows


@dataclass(frozen=True)
class TrainingRows:
    """Hashes of the distinct training rows, ascending."""

    hashes: UInts

    @classmethod
    def of(cls, matrix: Floats) -> TrainingRows:
        """Hash encoded rows (step 1)."""
        return cls(np.unique(hash_rows(matrix)))

    def contain(self, rows: Floats) -> Bools:
        """Return which encoded rows are copies of a training row (step 2)."""
        hashed = hash_rows(rows)
        place = np.minimum(np.searchsorted(self.hashes, hashed), self.hashes.size - 1)
        return np.asarray(self.hashes[place] == hashed)
