"""Classification and regression trees on ranks (Breiman, Friedman, Olshen and Stone 1984).

1. Columns are ranked once per table, and all trees of a chain share the ranks (`ColumnRanks`).
2. A node with fewer than `min_split` rows, at `max_depth`, or with a single response is a leaf. Otherwise the best cut
   of all columns is taken (`mcce.trees.kernels`), the first on ties, if it improves strictly.
3. With `cp`, a subtree that lowers the impurity by no more than `cp` times the root's for each split is collapsed.
4. Levels and missing values that a node has not seen go to its larger child.

scikit-learn's trees do not split unordered levels, and `mcce.trees.rpart` must follow R's order of sums, which takes
twice the time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce._utils import Bools, Floats, Ints
from mcce.exceptions import InputError, spell
from mcce.rng import RowStreams
from mcce.table import Column, Feature, Table
from mcce.trees import kernels
from mcce.trees.kernels import HISTOGRAM, LEAF, PAIR, SORTED, UNORDERED

MAX_BINS = 1024  # a numeric column with more distinct values is kept sorted
MAX_LEVELS = 65_535  # codes have 16 bits
MOST_CELLS = 2**32 - 1  # of a matrix that is routed at once

Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, repr=False)
class CartTree:
    """A binary tree; node 0 is the root, and the right child of a node follows the left one.

    Attributes
    ----------
    given : columns that the tree splits on.
    target : the response; missing values of levels are a last level.
    feature : column that a node splits on; -1 in a leaf.
    threshold : x < threshold goes left (numbers, ordered and two-level columns).
    left : left child.
    missing_left : whether missing values go left.
    mask_at, masks : for a split on unordered levels, where its levels begin in `masks` (else -1); True goes left.
    start, size : the rows of a node are rows[start : start + size].
    impurity : sum of squares around the mean, or size times the Gini index, of a node.
    rows : training rows, those of a leaf adjacent and ascending; a bootstrap sample repeats some.
    values : responses in the order of `rows`.
    """

    given: tuple[Feature, ...]
    target: Feature
    feature: Int32s
    threshold: Floats
    left: Int32s
    missing_left: Bools
    mask_at: Int32s
    masks: Bools
    start: Int32s
    size: Int32s
    impurity: Floats
    rows: Int32s
    values: Floats

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return self.feature.size

    @cached_property
    def leaves(self) -> Ints:
        """The leaves from left to right: `leaf` returns positions in this array."""
        leaves = np.flatnonzero(self.feature == LEAF)
        return leaves[np.argsort(self.start[leaves])]

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.leaves.size

    @property
    def training_leaf(self) -> Ints:
        """Leaf of each training row; of a bootstrap sample, in ascending order of the rows."""
        leaf_of_row = np.empty(int(self.rows.max()) + 1, dtype=np.int64)
        leaf_of_row[self.rows] = np.repeat(np.arange(self.n_leaves), self.size[self.leaves])
        return leaf_of_row[np.sort(self.rows)]

    def leaf(self, matrix: Floats) -> Ints:
        """Return the leaf, from 0 to `n_leaves` - 1, of each row of an encoded matrix."""
        n = matrix.shape[0]
        leaf = np.zeros(n, dtype=np.int64)
        if self.n_leaves == 1 or n == 0:
            return leaf
        if n * matrix.shape[1] > MOST_CELLS:
            return np.concatenate([self.leaf(half) for half in (matrix[: n // 2], matrix[n // 2 :])])
        matrix = np.asfortranarray(matrix)
        child, column, *of_nodes = self._routes
        with np.errstate(over="ignore", invalid="ignore"):
            is_plain = not (self._splits_levels or np.isnan(matrix.sum()))
        chunk = np.empty(kernels.CHUNK, dtype=np.uint64)
        kernels.route(matrix.ravel(order="F"), child | column * np.uint64(n), *of_nodes, is_plain, chunk, leaf)
        return leaf

    def nodes(self) -> pd.DataFrame:
        """Return one row for each node, a parent before its left branch before its right branch.

        Returns
        -------
        DataFrame with the columns node (the children of k are 2k and 2k + 1), parent (0 of the root), depth, n,
        is_leaf, variable (position in `given`, -1 in a leaf), cut (smaller values go left; NaN for unordered levels,
        infinite if missing values are split from all others), left_levels (codes of the unordered levels that go left,
        else None), missing_left, value (mean of the known responses, or code of the most frequent level) and impurity.
        """
        rows: list[dict[str, Any]] = []
        waiting = [(0, 1, 0)]
        while waiting:
            node, number, depth = waiting.pop()
            feature, at = int(self.feature[node]), int(self.mask_at[node])
            is_leaf = feature == LEAF
            row: dict[str, Any] = {"node": number, "parent": number // 2, "depth": depth, "n": int(self.size[node])}
            row |= {"is_leaf": is_leaf, "variable": feature, "cut": np.nan, "left_levels": None}
            row["missing_left"] = bool(self.missing_left[node])
            if at >= 0:
                goes_left = self.masks[at : at + self.given[feature].n_levels]
                row["left_levels"] = tuple(np.flatnonzero(goes_left).tolist())
            elif not is_leaf:
                row["cut"] = float(self.threshold[node])
            if not is_leaf:
                left = int(self.left[node])
                waiting += [(left + 1, 2 * number + 1, depth + 1), (left, 2 * number, depth + 1)]
            rows.append(row | {"value": self._value(node), "impurity": float(self.impurity[node])})
        return pd.DataFrame(rows)

    def _value(self, node: int) -> float:
        """Return the mean of the known responses in a node, or their most frequent level, the first on ties."""
        values = self.values[self.start[node] : self.start[node] + self.size[node]]
        if not self.target.is_numeric:
            return float(np.argmax(np.bincount(values.astype(np.int64))))
        known = values[~np.isnan(values)]
        return float(known.mean()) if known.size else np.nan

    @cached_property
    def _splits_levels(self) -> bool:
        return bool((self.mask_at >= 0).any())

    @cached_property
    def _routes(self) -> tuple[Any, ...]:
        """The nodes as `kernels.route` reads them: left child << 32, column, ...; a leaf leads left, to itself."""
        is_leaf = self.feature == LEAF
        number = np.full(self.n_nodes, -1)
        number[self.leaves] = np.arange(self.n_leaves)
        left = np.where(is_leaf, np.arange(self.n_nodes), self.left).astype(np.uint64)
        column = np.where(is_leaf, 0, self.feature).astype(np.uint64)
        threshold = np.where(is_leaf, np.nan, self.threshold)
        return left << np.uint64(32), column, threshold, self.missing_left | is_leaf, number, self.mask_at, self.masks


def grow(
    given: Table,
    target: Column,
    *,
    min_split: int = 2,
    min_leaf: int = 5,
    max_depth: int | None = None,
    cp: float | None = None,
    rows: Ints | None = None,
    max_features: int | None = None,
    random_key: int = 0,
) -> CartTree:
    """Grow a tree for `target` on the columns of `given`.

    An ordered or two-level target is treated as a number (for two levels that is Gini), a target with more unordered
    levels as classes; missing values are recoded (`recode_missing`). `rows`, ascending and possibly repeated, grows the
    tree on a bootstrap sample; with `max_features` each node tries that many columns, drawn with `random_key`.
    """
    recoded = recode_missing(target)
    values = recoded.values
    order = np.arange(values.size, dtype=np.int32) if rows is None else rows.astype(np.int32)
    columns = ColumnRanks.of(given).columns(given, rows)
    response = values - np.clip(0.0, np.min(values), np.max(values))  # sums of values far from 0 lose digits
    n_levels = recoded.feature.n_levels
    n_classes = n_levels if recoded.feature.kind == "categorical" and n_levels > 2 else 0
    labels = values.astype(np.int64) if n_classes else np.empty(0, dtype=np.int64)
    most_leaves = order.size // min_leaf
    deepest = most_leaves + 1 if max_depth is None else min(max_depth, most_leaves + 1)
    nodes = _node_arrays(columns, most_leaves)
    work = _work_arrays(columns, order, values.size, n_classes, deepest)
    n_tried, words = columns.how.size, np.empty((0, 0), dtype=np.uint64)
    if max_features is not None and max_features < n_tried:
        n_tried, n_words = max_features, nodes.feature.size * max_features
        words = RowStreams.from_seed(random_key, n_words).words().reshape(-1, max_features)
    n_nodes, n_masks = kernels.grow_nodes(
        columns, nodes, work, response, labels, n_classes, min_split, min_leaf, deepest, n_tried, words
    )
    arrays = {name: array[: n_masks if name == "masks" else n_nodes].copy() for name, array in nodes._asdict().items()}
    cut, after = arrays.pop("cut"), arrays.pop("after")
    arrays["masks"] = arrays["masks"] == 1
    distinct = ColumnRanks.of(given).distinct(given)
    arrays["threshold"] = _thresholds(distinct, arrays["feature"], arrays["mask_at"], cut, after)
    observed = target.values if target.feature.is_numeric else values
    tree = CartTree(given.features, recoded.feature, **arrays, rows=order, values=observed[order])
    return tree if cp is None else prune(tree, cp)


def prune(tree: CartTree, cp: float) -> CartTree:
    """Return the smallest subtree of least impurity + cp * root impurity * leaves."""
    feature, cost = tree.feature.copy(), tree.impurity + cp * tree.impurity[0]
    for node in np.flatnonzero(feature != LEAF)[::-1]:  # children come after their parents
        below = cost[tree.left[node]] + cost[tree.left[node] + 1]
        if below < cost[node]:
            cost[node] = below
        else:
            feature[node] = LEAF
    kept = np.zeros(tree.n_nodes, dtype=bool)
    kept[0] = True
    for node in np.flatnonzero(feature != LEAF):
        kept[tree.left[node] : tree.left[node] + 2] = kept[node]
    place = np.cumsum(kept) - 1
    is_leaf = feature[kept] == LEAF
    return replace(
        tree,
        feature=feature[kept],
        threshold=tree.threshold[kept],
        left=np.where(is_leaf, 0, place[tree.left[kept]]).astype(np.int32),
        missing_left=tree.missing_left[kept],
        mask_at=np.where(is_leaf, np.int32(-1), tree.mask_at[kept]),
        start=tree.start[kept],
        size=tree.size[kept],
        impurity=tree.impurity[kept],
    )


def recode_missing(target: Column) -> Column:
    """Return a target of a tree without missing values: they are one more level, the last, or a large number.

    The number is two standard deviations above the mean, so that a tree splits missing from known values where they
    differ, and known ones elsewhere. With simulated tables one such tree drew as well (Brier score of missing, CRPS of
    known values) as two trees, one for each.
    """
    is_missing = np.isnan(target.values)
    if not is_missing.any():
        return target
    feature, known = target.feature, target.values[~is_missing]
    if feature.levels is not None:
        levels = pd.Index([*feature.levels, "missing"], dtype=object)
        return Column(replace(feature, levels=levels), np.where(is_missing, feature.n_levels, target.values))
    stand_in = float(np.mean(known) + (2 * np.std(known) or 1.0)) if known.size else 0.0
    return Column(feature, np.where(is_missing, stand_in, target.values))


def check_known(target: Column) -> None:
    """Raise if the target of a tree of R has missing values."""
    if np.isnan(target.values).any():
        raise InputError(
            f"the target {spell(target.feature.name)} of a tree has missing values; model them separately."
        )


def _thresholds(distinct: list[Floats], feature: Int32s, mask_at: Int32s, cut: Int32s, after: Int32s) -> Floats:
    """Return the midpoint between the last value on the left and the first on the right of each numeric split.

    It is above the former even if the two are neighbouring floats. A split of missing from all other values has no such
    pair: all other values go to one side.
    """
    threshold = np.zeros(feature.size)
    numeric = (feature >= 0) & (mask_at < 0)
    threshold[numeric & (cut < 0)] = -np.inf
    threshold[numeric & (cut >= 0) & (after < 0)] = np.inf
    between = np.flatnonzero(numeric & (cut >= 0) & (after >= 0))
    offset = np.cumsum([0, *map(len, distinct)])[feature[between]]
    values = np.concatenate([*distinct, [0.0]])
    low, high = values[offset + cut[between]], values[offset + after[between]]
    middle = low / 2 + high / 2  # the sum of both could overflow
    close = ~((low < middle) & (middle < high))
    middle[close] = low[close] + (high[close] - low[close]) / 2
    threshold[between] = np.where(middle > low, middle, high)
    return threshold


# ---------------------------------------------------------------- ranks


@dataclass(frozen=True)
class ColumnRanks:
    """Ranks of the columns of one table; missing values have the rank after the last one.

    Attributes
    ----------
    how : for each column HISTOGRAM (few distinct values), SORTED (many), UNORDERED (levels) or PAIR (two values, none
        missing).
    slot : the column's place in `codes` or, if SORTED, in `packed`.
    values : the distinct known values of each column, or its level codes.
    codes : (rows, columns) row-major, so that one row's codes share a cache line.
    packed : (columns, rows) rank << 32 | row, ascending.
    """

    how: Ints
    slot: Ints
    values: list[Floats]
    codes: npt.NDArray[np.uint16]
    packed: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, table: Table) -> ColumnRanks:
        """Return the ranks of a table's root, computed at the first request."""
        return table.shared("ranks", cls._rank)

    @classmethod
    def _rank(cls, table: Table) -> ColumnRanks:
        ranked = [_rank_column(feature, table.matrix[:, j]) for j, feature in enumerate(table.features)]
        methods = [_search_method(feature, *ranks) for feature, ranks in zip(table.features, ranked)]
        how = np.array(methods, dtype=np.int64)
        is_sorted = how == SORTED
        slot = np.where(is_sorted, np.cumsum(is_sorted), np.cumsum(~is_sorted)) - 1
        codes = np.empty((table.n_rows, (~is_sorted).sum()), dtype=np.uint16)
        packed = np.empty((is_sorted.sum(), table.n_rows), dtype=np.uint64)
        row = np.arange(table.n_rows, dtype=np.uint64)
        for j, (_, ranks) in enumerate(ranked):
            if is_sorted[j]:
                packed[slot[j]] = np.sort(ranks.astype(np.uint64) << np.uint64(32) | row)
            else:
                codes[:, slot[j]] = ranks
        return cls(how, slot, [values for values, _ in ranked], codes, packed)

    def columns(self, given: Table, rows: Ints | None) -> kernels.Columns:
        """Return what the kernels read of some columns; `rows` repeats rows."""
        how, slot = self.how[list(given.positions)], self.slot[list(given.positions)]
        packed = self.packed[slot[how == SORTED]]  # a copy, which is partitioned in place
        if rows is not None:
            repeats = np.bincount(rows, minlength=given.n_rows)
            parts = [np.repeat(column, repeats[column & kernels.LOW]) for column in packed]
            packed = np.array(parts, dtype=np.uint64).reshape(len(parts), rows.size)
        slot[how == SORTED] = np.arange(len(packed))
        n_values = np.array([values.size for values in self.distinct(given)], dtype=np.int64)
        return kernels.Columns(how, slot, n_values, self.codes, packed)

    def distinct(self, given: Table) -> list[Floats]:
        """Return the distinct values of some columns."""
        return [self.values[position] for position in given.positions]


def _search_method(feature: Feature, values: Floats, ranks: Ints) -> int:
    """Return how a column is searched: HISTOGRAM, SORTED, UNORDERED or PAIR."""
    if feature.kind == "categorical" and values.size > 2:
        if values.size > MAX_LEVELS:
            raise InputError(
                f"column {spell(feature.name)} has {values.size} levels; a tree handles up to {MAX_LEVELS}. Group rare "
                "levels, or drop the column."
            )
        return UNORDERED
    if values.size == 2 and ranks.max() < 2:
        return PAIR
    return HISTOGRAM if values.size <= MAX_BINS else SORTED


def _rank_column(feature: Feature, column: Floats) -> tuple[Floats, Ints]:
    """Return the distinct values in order, and the rank of every row."""
    if feature.is_numeric:
        return rank(column)
    values = np.arange(feature.n_levels, dtype=np.float64)
    return values, np.where(np.isnan(column), feature.n_levels, column).astype(np.int64)


def rank(column: Floats) -> tuple[Floats, Ints]:
    """Return the distinct known values in order, and the rank of every value; missing is the last."""
    is_missing = np.isnan(column)
    if is_missing.any():
        values, ranks_of_known = rank(column[~is_missing])
        ranks = np.full(column.size, values.size, dtype=np.int64)
        ranks[~is_missing] = ranks_of_known
        return values, ranks
    if column.size == 0:
        return column, np.empty(0, dtype=np.int64)
    low, high = column.min(), column.max()
    if high <= low + (4 * column.size + 1024):
        shifted = (column - low).astype(np.int64)
        if (low + shifted == column).all():  # whole numbers in a short range are counted, not sorted
            present = np.zeros(int(high - low) + 1, dtype=bool)
            present[shifted] = True
            return low + np.flatnonzero(present), (np.cumsum(present) - 1)[shifted]
    order = np.argsort(column)
    ordered = column[order]
    is_new = np.append(True, ordered[1:] != ordered[:-1])
    ranks = np.empty(column.size, dtype=np.int64)
    ranks[order] = np.cumsum(is_new) - 1
    return ordered[is_new], ranks


# ---------------------------------------------------------------- arrays of the kernels


def _node_arrays(columns: kernels.Columns, most_leaves: int) -> kernels.Nodes:
    """Return arrays for the largest possible tree; pages that are never touched use no memory."""
    most = 2 * most_leaves + 3
    most_levels = int(columns.n_values[columns.how == UNORDERED].max(initial=0))
    dtypes = {"missing_left": np.bool_, "masks": np.uint8, "impurity": np.float64}
    sizes = {"masks": most_levels * (most_leaves + 1) + 1}
    return kernels.Nodes(
        **{name: np.zeros(sizes.get(name, most), dtype=dtypes.get(name, np.int32)) for name in kernels.Nodes._fields}
    )


def _work_arrays(columns: kernels.Columns, order: Int32s, n_rows: int, n_classes: int, deepest: int) -> kernels.Work:
    n, n_columns = order.size, columns.how.size
    widest = int(columns.n_values[columns.how != SORTED].max(initial=1)) + 1
    most_levels = min(int(columns.n_values[columns.how == UNORDERED].max(initial=0)) + 1, n)
    most_runs = max(n, widest)
    active = np.empty((deepest + 2, n_columns), dtype=np.int32)
    active[0] = np.arange(n_columns)
    n_active = np.empty(deepest + 2, dtype=np.int64)
    n_active[0] = n_columns

    def ints(size: int) -> Ints:
        return np.zeros(size, dtype=np.int64)

    return kernels.Work(
        order=order,
        side=np.empty(n_rows, dtype=np.uint8),
        spare=np.empty(n, dtype=np.uint64),
        active=active,
        n_active=n_active,
        stack=np.empty((deepest + 2, 2), dtype=np.int64),
        count=ints(widest),
        total=np.zeros(widest),
        words=np.zeros((widest >> 6) + 1, dtype=np.uint64),
        run_code=ints(most_runs),
        run_n=ints(most_runs),
        run_sum=np.empty(most_runs),
        centred=np.empty(n),
        node_count=ints(n_classes),
        left_count=ints(n_classes),
        present=ints(n_classes),
        position=ints(n_classes),
        classes=ints(n if n_classes else 0),
        table=np.empty((most_levels if n_classes else 0, n_classes)),
        axis=np.empty(n_classes),
        key=np.empty(widest),
    )
