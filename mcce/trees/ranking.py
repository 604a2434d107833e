"""Ranks of the training columns, computed once per chain and shared by all its trees.

1. A column with few distinct values becomes small integer codes: split search builds a histogram over them.
2. A numeric column with many distinct values is kept sorted: split search walks along it.
3. Unordered levels are already codes; their histogram is ordered by the response within each node.

Missing values get the code after the last one, so that they sort to the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.exceptions import InputError
from mcce.table import Feature, Table
from mcce.trees.kernels import HISTOGRAM, PAIR, SORTED, UNORDERED

MAX_BINS = 1024  # a numeric column with more distinct values is kept sorted
MAX_LEVELS = 65_535


@dataclass(frozen=True)
class ColumnRanks:
    """Ranked columns of one table.

    Attributes
    ----------
    how : HISTOGRAM, SORTED, UNORDERED or PAIR (two values, none missing) for each column.
    slot : the column's place in `codes` or in `packed`.
    n_values : number of distinct observed values or of levels; this number is the code of missing.
    codes : (rows, columns by histogram) row-major, so that one row's codes share a cache line.
    packed : (columns kept sorted, rows) rank << 32 | row, ascending.
    values, offset : the distinct values of all columns, one column after the other.
    """

    how: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int64]
    n_values: npt.NDArray[np.int64]
    codes: npt.NDArray[np.uint16]
    packed: npt.NDArray[np.uint64]
    values: npt.NDArray[np.float64]
    offset: npt.NDArray[np.int64]

    @classmethod
    def from_table(cls, table: Table) -> ColumnRanks:
        """Return the ranking of a table's root, computed at the first request."""
        return table.shared("ranking", _rank)


def _rank(table: Table) -> ColumnRanks:
    columns = range(len(table.features))
    ranked = [_rank_column(table.features[j], table.matrix[:, j]) for j in columns]
    how = np.array([_how(table.features[j], *ranked[j]) for j in columns], dtype=np.int64)
    slot = np.empty(len(how), dtype=np.int64)
    by_codes = np.flatnonzero(how != SORTED)
    by_order = np.flatnonzero(how == SORTED)
    slot[by_codes] = np.arange(by_codes.size)
    slot[by_order] = np.arange(by_order.size)
    n = table.n_rows
    codes = np.empty((n, by_codes.size), dtype=np.uint16)
    for j in by_codes:
        codes[:, slot[j]] = ranked[j][1]
    packed = np.empty((by_order.size, n), dtype=np.uint64)
    rows = np.arange(n, dtype=np.uint64)
    for j in by_order:
        packed[slot[j]] = np.sort(ranked[j][1].astype(np.uint64) << np.uint64(32) | rows)
    sizes = np.array([len(values) for values, _ in ranked], dtype=np.int64)
    values = np.concatenate([values for values, _ in ranked]) if ranked else np.empty(0)
    return ColumnRanks(
        how, slot, sizes, codes, packed, values, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    )


def _how(feature: Feature, values: npt.NDArray[np.float64], codes: npt.NDArray[Any]) -> int:
    n_values = len(values)
    if feature.kind == "categorical" and n_values > 2:
        if n_values > MAX_LEVELS:
            raise InputError(
                f"column {feature.name!r} has {n_values} levels; a tree handles up to {MAX_LEVELS}. Group rare levels, "
                "or drop it."
            )
        return UNORDERED
    if n_values == 2 and codes.max() < n_values:
        return PAIR
    return HISTOGRAM if n_values <= MAX_BINS else SORTED


def _rank_column(feature: Feature, column: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    """Return the distinct values in order, and the code of every row."""
    missing = np.isnan(column)
    any_missing = bool(missing.any())
    if not feature.is_numeric:
        values = np.arange(feature.n_levels, dtype=np.float64)
        return values, np.where(missing, feature.n_levels, column).astype(np.int64)
    seen = column[~missing] if any_missing else column
    values, ranks = _distinct(seen)
    if not any_missing:
        return values, ranks
    codes = np.full(column.size, values.size, dtype=np.int64)
    codes[~missing] = ranks
    return values, codes


def _distinct(column: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    if column.size == 0:
        return np.empty(0), np.empty(0, dtype=np.int64)
    low, high = column.min(), column.max()
    if high <= low + (4 * column.size + 1024):
        shifted = (column - low).astype(np.int64)
        if (low + shifted == column).all():  # whole numbers in a short range are counted, not sorted
            present = np.zeros(int(high - low) + 1, dtype=bool)
            present[shifted] = True
            return low + np.flatnonzero(present), (np.cumsum(present) - 1)[shifted]
    order = np.argsort(column)
    ordered = column[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    ranks = np.empty(column.size, dtype=np.int64)
    ranks[order] = np.cumsum(new) - 1
    return ordered[new], ranks
