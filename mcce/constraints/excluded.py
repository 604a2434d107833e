"""Excluded rows: copies of training rows, and rows whose keys fewer than k training rows share.

Copies (`mcce.no_copies`; paper, section 2.2) are found by hashes of all columns (`mcce.rng.hash_rows`), with a
probability of 2^-64 that two different rows agree. The hashes are kept instead of the rows; they reveal whether a known
row was a training row. For `mcce.k_anonymous` the combinations of the keys are counted over the training rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.exceptions import InputError
from mcce.rng import hash_rows
from mcce.storage.fields import FLOAT, INT, UINT64, require, stored
from mcce.storage.state import stateful


class Excludes(Protocol):
    """A set of excluded rows."""

    def contain(self, rows: Floats) -> Bools:
        """Return which encoded rows are excluded."""


@stateful("TrainingRows")
@dataclass(frozen=True)
class TrainingRows:
    """Hashes of the training rows, in their order."""

    hashes: UInts = stored(UINT64, "rows")

    def check_state(self) -> None:
        """Raise if there are no hashes."""
        require(self.hashes.size > 0, "hashes are empty")

    @classmethod
    def from_matrix(cls, matrix: Floats) -> TrainingRows:
        return cls(hash_rows(matrix))

    def contain(self, rows: Floats) -> Bools:
        """Return which encoded rows are copies of a training row."""
        hashes = hash_rows(rows)
        place = np.minimum(np.searchsorted(self._ascending, hashes), self._ascending.size - 1)
        return np.asarray(self._ascending[place] == hashes)

    @cached_property
    def _ascending(self) -> UInts:
        return np.unique(self.hashes)


@stateful("TrainingKeys")
@dataclass(frozen=True)
class TrainingKeys:
    """The distinct encoded keys of the training people, with their counts.

    Attributes
    ----------
    columns : positions of the keys.
    values : a row for each distinct combination.
    counts : number of people with it.
    """

    columns: tuple[int, ...] = stored(tuple, "keys", of=stored(int, least=0), filled=True)
    values: Floats = stored(FLOAT, "distinct", "keys", finite="or missing")
    counts: Ints = stored(INT, "distinct", least=1, filled=True)

    def check_state(self) -> None:
        """Raise if columns or keys are repeated."""
        require(len(set(self.columns)) == len(self.columns), "columns are repeated")
        require(np.unique(hash_rows(self.values)).size == len(self.counts), "values are repeated")

    @classmethod
    def from_matrix(cls, matrix: Floats, columns: Sequence[int]) -> TrainingKeys:
        """Count the keys of encoded training rows."""
        values = matrix[:, list(columns)] + 0.0  # no -0
        _, first, counts = np.unique(hash_rows(values), return_index=True, return_counts=True)
        by_value = np.lexsort(values[first].T[::-1])  # the order of the training rows is not disclosed
        return cls(tuple(int(j) for j in columns), np.ascontiguousarray(values[first][by_value]), counts[by_value])

    @cached_property
    def _hashed(self) -> tuple[UInts, Ints]:
        hashes = hash_rows(self.values)
        order = np.argsort(hashes)
        return hashes[order], self.counts[order]

    def count(self, rows: Floats) -> Ints:
        """Return the number of people with the keys of each encoded row."""
        known, counts = self._hashed
        hashes = hash_rows(rows[:, list(self.columns)])
        place = np.minimum(np.searchsorted(known, hashes), known.size - 1)
        return np.where(known[place] == hashes, counts[place], 0)


@dataclass(frozen=True)
class Anonymity:
    """The requirement that at least `k` training people share the keys of a returned row."""

    k: int
    keys: TrainingKeys

    def contain(self, rows: Floats) -> Bools:
        """Return which encoded rows fewer than k people share."""
        return np.asarray(self.keys.count(rows) < self.k)

    def describe(self, names: Sequence[Hashable]) -> dict[str, object]:
        """Return the requirement as settings of a result; `names` are those of all columns."""
        return {"k_anonymous": self.k, "keys": [names[j] for j in self.keys.columns]}


@dataclass(frozen=True)
class Excluded:
    """Excluded rows: copies of training rows, and rows that too few people share."""

    copies: TrainingRows | None
    anonymity: Anonymity

    def contain(self, rows: Floats) -> Bools:
        """Return which encoded rows are excluded."""
        found = self.anonymity.contain(rows)
        return found if self.copies is None else found | self.copies.contain(rows)


def anonymity_of(k: int, keys: TrainingKeys) -> Anonymity:
    """Return the requirement; raise if k exceeds the number of training rows."""
    n_people = int(keys.counts.sum())
    if k > n_people:
        raise InputError(
            f"k_anonymous requires {k} training people for every row, and there are {n_people} training rows; choose a "
            "smaller k, or fit on more rows."
        )
    return Anonymity(k, keys)
