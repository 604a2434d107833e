"""Rows chosen for factuals, in the order in which they are returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcce._utils import Bools, Floats, Ints


@dataclass(frozen=True)
class Winners:
    """Rows with the positions of their factuals, sorted by factual; the rows of a factual are best first.

    `below_floor` marks rows that are less plausible than the floor, or have a harmful change.
    """

    owner: Ints
    rows: Floats
    below_floor: Bools

    @classmethod
    def of(cls, owner: Ints, rows: Floats, below_floor: bool = False) -> Winners:
        """Return rows as winners, in the order given."""
        return cls(owner, rows, np.full(owner.size, below_floor))

    @classmethod
    def join(cls, parts: Sequence[Winners], n_columns: int) -> Winners:
        """Return the winners of several searches; those of earlier ones come first."""
        owner = np.concatenate([np.empty(0, dtype=np.int64), *(part.owner for part in parts)])
        rows = np.concatenate([np.empty((0, n_columns)), *(part.rows for part in parts)])
        below = np.concatenate([np.empty(0, dtype=bool), *(part.below_floor for part in parts)])
        order = np.argsort(owner, kind="stable")
        return cls(owner[order], rows[order], below[order])

    def take(self, which: Ints | Bools) -> Winners:
        """Return some of the winners."""
        return Winners(self.owner[which], self.rows[which], self.below_floor[which])

    def of_factuals(self, members: Ints) -> Winners:
        """Return the winners with owners that count the factuals of a larger table."""
        return Winners(members[self.owner], self.rows, self.below_floor)

    def count(self, n_factuals: int) -> Ints:
        """Return the number of winners of each factual."""
        return np.bincount(self.owner, minlength=n_factuals)
