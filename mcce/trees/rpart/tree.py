"""The trees of R's package rpart, identical to the last bit (Breiman et al. 1984; Therneau and Atkinson 2022).

`mcce.rcompat` and `CartSampler(dialect="rpart")` use it for bit parity with R.

1. The risk of a number is the sum of squares, of classes (levels, ordered or not) the number of rows outside the most
   frequent class.
   A node is searched if it has `min_split` rows, is above `max_depth`, and its risk exceeds cp times the root's.
2. Every column offers its best cut with `min_leaf` rows on each side, by the decrease of the sum of squares or of the
   Gini index. Cuts are midpoints. Unordered levels are ordered by their means, or by the first class's shares; for
   three and more classes all subsets are tried. The first of the best columns wins; an improvement of at most 1e-10
   times the largest so far does not count.
3. The side with the lower mean, or the lower mean class number, is the left one. A row with a missing value is sent by
   the first surrogate whose column is known, else with the majority; without a majority it stays in the node.
   Surrogates are splits of other columns that agree with the primary one on more rows than the majority does.
4. A node becomes a leaf again if its branch lowers the risk by no more than cp times the root's for each split.
5. Weights are R's case weights: they multiply rows in sums, while `min_split` and `min_leaf` count rows. Rows with all
   columns missing take no part in growing, unless rows have weights.
6. New rows are routed in the same way; an unseen level is missing, and the majority is the larger child.

The choice between two equal cuts depends on the last bit of a sum, hence on the order of the rows (`kernels`). `frame`
and `splits` are R's tables of the tree.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats, Int32s, Ints
from mcce.exceptions import InputError
from mcce.storage.fields import FLOAT, INT, INT8, INT32, UINT8, check_between, require, stored
from mcce.storage.state import stateful
from mcce.table import Column, Feature, Table
from mcce.trees import announce_compiling
from mcce.trees.kernels import LEAF
from mcce.trees.rpart import MAX_DEPTH, kernels
from mcce.trees.tree import Tree, check_levels


@stateful("RpartTree")
@dataclass(frozen=True)
class RpartTree(Tree):
    """A tree grown by rpart's rules: a `Tree` with rpart's figures of its nodes and splits.

    Attributes
    ----------
    number : rpart's number of a node: the root is 1, the children of k are 2k (left) and 2k + 1.
    n_grown : number of rows on which a node was grown.
    value : mean, or code of the most frequent class, of a node.
    complexity : rpart's complexity parameter of a node.
    first_split : first split of a node in the table of splits, -1 in a leaf: the primary split, then `n_compete`
        competitors and `n_surrogate` surrogates.
    split_feature, split_cut, split_below : column and cut; -1 if smaller values go left, 1 if right, 0 for levels.
    split_improve, split_adjusted, split_count : improvement and rows with a value; for a surrogate the share of rows on
        which it agrees, the same adjusted for the majority, and the training rows it has sent.
    split_sides_at, sides : for a split on unordered levels where their sides begin (else -1): 1 left, 3 right, 2
        absent from the node.
    column_levels : number of levels of each given column, 0 for numbers.
    """

    number: npt.NDArray[np.int64] = stored(INT, "nodes", least=1, most=2 ** (MAX_DEPTH + 1) - 1, distinct=True)
    n_grown: Int32s = stored(INT32, "nodes")
    value: Floats = stored(FLOAT, "nodes")
    complexity: Floats = stored(FLOAT, "nodes")
    first_split: Int32s = stored(INT32, "nodes")
    n_compete: Int32s = stored(INT32, "nodes", least=0, most="splits")
    n_surrogate: Int32s = stored(INT32, "nodes", least=0, most="splits")
    split_feature: Int32s = stored(INT32, "splits")
    split_count: Int32s = stored(INT32, "splits")
    split_below: npt.NDArray[np.int8] = stored(INT8, "splits")
    split_improve: Floats = stored(FLOAT, "splits")
    split_cut: Floats = stored(FLOAT, "splits")
    split_adjusted: Floats = stored(FLOAT, "splits")
    split_sides_at: npt.NDArray[np.int64] = stored(INT, "splits", least=-1, most="sides")
    sides: npt.NDArray[np.uint8] = stored(UINT8, "sides", least=kernels.LEFT, most=kernels.RIGHT)
    column_levels: npt.NDArray[np.int64] = stored(INT, None)

    def check_state(self) -> None:
        super().check_state()
        inner, n_splits = self.feature != LEAF, self.split_feature.size
        check_between(self.first_split[inner], "first_split", 0, n_splits - 1)
        last = self.first_split.astype(np.int64) + self.n_compete + self.n_surrogate
        require((last[inner] < n_splits).all(), "first_split exceeds the table of splits")

    def check_columns(self, n_levels: Ints, n_rows: int) -> None:
        super().check_columns(n_levels, n_rows)
        n_columns = self.column_levels.size  # 0 for a target that is always missing
        same = np.array_equal(self.column_levels, n_levels[:n_columns])
        require(same, "column_levels do not match the columns")
        check_between(self.split_feature, "split_feature", 0, n_columns - 1)
        by_set = np.flatnonzero(self.split_sides_at >= 0)
        at = self.split_sides_at[by_set]
        check_levels(n_levels[self.split_feature[by_set]], at, self.sides.size, "split_sides_at")

    @property
    def stops(self) -> npt.NDArray[np.bool_]:
        last = self.n_nodes - 1  # a leaf has no children; its entries are not used
        children = np.minimum(self.left, last), np.minimum(self.left + 1, last)
        return np.asarray(super().stops | (self.n_grown[children[0]] == self.n_grown[children[1]]))

    def route(self, matrix: Floats, *, complete: bool = False) -> Int32s:
        """Return the leaf of every row of an encoded matrix; `complete`: it is known to have no missing values.

        A row that no split, surrogate or majority sends on stays in an inner node.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            if self.n_nodes == 1 or (self.numbers_only and (complete or not np.isnan(matrix.sum()))):
                return super().route(matrix, complete=True)
        leaf = np.zeros(matrix.shape[0], dtype=np.int32)
        kernels.route_rows(np.asfortranarray(matrix).T, *self._kernel_arrays, self.sides, leaf)
        return leaf

    @cached_property
    def _kernel_arrays(self) -> tuple[Any, Any]:
        nodes = {name: getattr(self, name, None) for name in kernels.Nodes._fields}
        nodes |= {"size": self.n_grown, "risk": self.impurity}
        splits = [getattr(self, f"split_{name}") for name in kernels.Splits._fields]
        return kernels.Nodes(**nodes), kernels.Splits(*splits)

    @cached_property
    def frame_order(self) -> npt.NDArray[np.intp]:
        """Nodes in the order of rpart's frame: a node, the branch of its left child, the branch of its right child."""
        return np.lexsort((self.number, _path(self.number)))

    @cached_property
    def frame_row(self) -> npt.NDArray[np.int32]:
        """Row of each node in rpart's frame, from 1; rpart's `where` for the rows of a leaf."""
        row = np.empty(self.n_nodes, dtype=np.int32)
        row[self.frame_order] = np.arange(1, self.n_nodes + 1)
        return row

    def frame(self, names: Sequence[Hashable]) -> pd.DataFrame:
        """Return rpart's table of nodes; `names` are those of the given columns."""
        order = self.frame_order
        variable = [names[f] if f >= 0 else "<leaf>" for f in self.feature[order]]
        return pd.DataFrame(
            {
                "node": self.number[order],
                "var": variable,
                "n": self.n_grown[order],
                "dev": self.impurity[order],
                "yval": self.value[order],
                "complexity": self.complexity[order],
                "ncompete": self.n_compete[order],
                "nsurrogate": self.n_surrogate[order],
            }
        )

    def splits(self, names: Sequence[Hashable]) -> tuple[pd.DataFrame, npt.NDArray[np.int64]]:
        """Return rpart's table of splits, in its order, and its table of level sides (`csplit`)."""
        n_splits = 1 + self.n_compete + self.n_surrogate
        inner = [node for node in self.frame_order if self.feature[node] >= 0]
        rows = [np.arange(self.first_split[node], self.first_split[node] + n_splits[node]) for node in inner]
        order = np.concatenate([np.empty(0, dtype=np.int64), *rows])
        feature = self.split_feature[order]
        n_levels = self.column_levels[feature]
        on_levels = n_levels > 0
        ordered = on_levels & (self.split_sides_at[order] < 0)
        listed = np.concatenate([np.flatnonzero(on_levels & ~ordered), np.flatnonzero(ordered)])  # as R numbers them
        sides = np.full((listed.size, n_levels.max(initial=0)), kernels.ABSENT, dtype=np.int64)
        for place, i in enumerate(listed):
            sides[place, : n_levels[i]] = self._sides_of(order[i], n_levels[i])
        index = self.split_cut[order].copy()
        index[listed] = np.arange(1, listed.size + 1)
        table = pd.DataFrame(
            {
                "var": [names[f] for f in feature],
                "count": self.split_count[order],
                "ncat": np.where(on_levels, n_levels, self.split_below[order]),
                "improve": self.split_improve[order],
                "index": index,
                "adj": self.split_adjusted[order],
            }
        )
        return table, sides

    def _sides_of(self, split: int, n_levels: int) -> npt.NDArray[Any]:
        """Return the side of each level in a split on levels, ordered or not."""
        at = self.split_sides_at[split]
        if at >= 0:
            return self.sides[at : at + n_levels]
        small_left = self.split_below[split] < 0
        return np.where((np.arange(n_levels) < self.split_cut[split]) == small_left, kernels.LEFT, kernels.RIGHT)


def with_donors(tree: RpartTree, leaf: Int32s) -> RpartTree:
    """Return the tree with its donors: `leaf` has the last node that each training row reached."""
    rank = (tree.frame_row - 1).astype(np.min_scalar_type(tree.n_nodes))  # small integers are sorted faster
    bits = _bits(tree.number)
    past = np.searchsorted(_path(tree.number)[tree.frame_order], _path(tree.number) + (1 << (MAX_DEPTH + 1 - bits)))
    before = np.concatenate([[0], np.cumsum(np.bincount(rank[leaf], minlength=tree.n_nodes))]).astype(np.int32)
    donors = np.argsort(rank[leaf], kind="stable").astype(np.int32)
    return replace(tree, start=before[rank], size=before[past] - before[rank], donors=donors)


def _bits(number: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.frexp(number.astype(np.float64))[1].astype(np.int64)


def _path(number: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of the leftmost node below each node at the greatest depth that a tree can have."""
    return number << (MAX_DEPTH + 1 - _bits(number))


__all__ = ["MAX_DEPTH", "MAX_SUBSET_LEVELS", "RpartTree", "class_weights", "control", "grow", "sort_column"]

MAX_SUBSET_LEVELS = 14


def grow(
    given: Table,
    target: Column,
    *,
    cp: float = 0.01,
    min_split: int | None = None,
    min_leaf: int | None = None,
    max_depth: int = MAX_DEPTH,
    max_compete: int = 4,
    max_surrogate: int = 5,
    fused: bool = False,
) -> RpartTree:
    """Grow rpart's tree for `target`, which must not have missing values, on the columns of `given`.

    Parameters
    ----------
    cp : float
        A branch must lower the risk by more than `cp` times the root's risk for each of its splits.
    min_split, min_leaf : int or None
        Smallest number of rows of a node to be split, and on each side of a split. As in rpart the defaults are 20 and
        7; one alone sets the other, `min_split` to three times `min_leaf`.
    max_depth : int
        Greatest depth, up to 30.
    max_compete : int
        Number of competing columns kept for each split. They do not affect the tree.
    max_surrogate : int
        Number of surrogates kept for each split. Without missing values and unordered levels they have no effect.
    fused : bool
        Whether the R to be matched was compiled with fused multiply-adds, as on ARM: the last bits of an improvement,
        which decide between equivalent columns, are then rounded in the same way.
    """
    if np.isnan(target.values).any():
        raise InputError(f"the target {target.feature.name!r} of a tree has missing values; model them separately.")
    if not 0 <= max_depth <= MAX_DEPTH:
        raise InputError(f"max_depth is {max_depth}; a tree of rpart has a depth of up to {MAX_DEPTH}.")
    announce_compiling(kernels.grow_nodes)
    min_split, min_leaf = control(min_split, min_leaf)
    leaves_out = target.weights is None and _has_empty_rows(given)
    known = np.flatnonzero(~np.isnan(given.matrix).all(axis=1)) if leaves_out else None
    rows, y = (given, target.values) if known is None else (given.take(known), target.values[known])
    labels, n_classes = _classes(target.feature, y)
    columns = _columns(rows, n_classes)
    weights = target.weights
    weight, prior = class_weights(labels, n_classes, weights)
    by_row = np.empty(0) if weights is None else np.ascontiguousarray(weights)
    rules = kernels.Rules(
        n_classes, weight, prior, float(cp), min_split, min_leaf, max_depth, max_compete, max_surrogate, bool(fused)
    )
    n, width = rows.n_rows, int(columns.n_levels.max(initial=0))
    nodes, splits = _room(n, max_compete + 1 + max_surrogate)
    work = _work(n, n_classes, width, nodes.feature.size)
    best = _best(max(max_compete + 1, max_surrogate), width)
    all_sides = np.empty(256, dtype=np.uint8)
    n_nodes, n_splits, sides = kernels.grow_nodes(
        columns, rules, nodes, splits, work, best, np.ascontiguousarray(y), labels, by_row, all_sides
    )
    nodes = kernels.Nodes(*(array[:n_nodes].copy() for array in nodes))
    splits = kernels.Splits(*(array[:n_splits].copy() for array in splits))
    tree = _assemble(given, nodes, splits, sides.copy())
    leaf = np.empty(n, dtype=np.int32)
    kernels.place_rows(nodes.start, nodes.size, work.order, leaf)
    if known is not None:
        leaf_of_known, leaf = leaf, tree.route(given.matrix)
        leaf[known] = leaf_of_known
    return with_donors(tree, leaf)


def control(min_split: int | None, min_leaf: int | None) -> tuple[int, int]:
    """Return rpart's `minsplit` and `minbucket`: one alone sets the other."""
    if min_split is None:
        min_split = 20 if min_leaf is None else 3 * min_leaf
    if min_leaf is None:
        min_leaf = max(round(min_split / 3), 1)
    return min_split, min_leaf


def class_weights(
    labels: npt.NDArray[np.int64], n_classes: int, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the weight of a row of each class: prior times loss over frequency, which is one up to rounding.

    Also return the prior over the frequency. R sums the weights of the former with more digits.
    """
    if n_classes < 2:
        return np.ones(n_classes), np.ones(n_classes)
    if weights is None:
        frequency = share = np.bincount(labels, minlength=n_classes) / labels.size
    else:
        counts = np.array([weights[labels == k].astype(np.longdouble).sum() for k in range(n_classes)], np.float64)
        share = counts / float(counts.astype(np.longdouble).sum())
        frequency = np.bincount(labels, weights, minlength=n_classes) / float(np.cumsum(weights)[-1])
    loss = np.zeros(n_classes)
    total = 0.0
    for k in range(n_classes):
        for _ in range(n_classes - 1):  # sums of equal terms, rounded as in R
            loss[k] += share[k]
            total += share[k]
    some = share > 0
    prior = np.divide(share, frequency, out=np.zeros(n_classes), where=some)
    return np.divide(loss, total * frequency, out=np.zeros(n_classes), where=some), prior


def _has_empty_rows(given: Table) -> bool:
    if given.complete or not given.features:
        return False
    return bool(np.isnan(given.matrix[:, 0]).any() and np.isnan(given.matrix).all(axis=1).any())


def _classes(feature: Feature, values: Floats) -> tuple[npt.NDArray[np.int64], int]:
    """Return the class of each row and the number of classes, up to the last one in use; 0 for a numeric target."""
    if feature.is_numeric:
        return np.empty(0, dtype=np.int64), 0
    labels = values.astype(np.int64)
    return labels, int(labels.max(initial=0)) + 1


@dataclass(frozen=True)
class _Order:
    """The columns of a table in R's order, see `mcce.trees.rpart.kernels`."""

    slot: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    packed: npt.NDArray[np.uint64]
    values: Floats
    offset: npt.NDArray[np.int64]
    has_missing: npt.NDArray[np.bool_]

    @classmethod
    def from_table(cls, table: Table) -> _Order:
        """Return the order of a table's root, computed at the first request."""
        return table.shared("rpart", cls._find)

    @classmethod
    def _find(cls, table: Table) -> _Order:
        n = table.n_rows
        unordered = np.array([feature.kind == "categorical" for feature in table.features], dtype=bool)
        slot = np.where(unordered, np.cumsum(unordered), np.cumsum(~unordered)) - 1
        missing = np.isnan(table.matrix)
        codes = np.empty((int(unordered.sum()), n), dtype=np.int32)
        packed = np.empty((int((~unordered).sum()), n), dtype=np.uint64)
        distinct: list[Floats] = []
        for j, feature in enumerate(table.features):
            column = table.matrix[:, j]
            if unordered[j]:
                codes[slot[j]] = np.where(missing[:, j], feature.n_levels, column)
                distinct.append(np.empty(0))
            else:
                packed[slot[j]], values = sort_column(column, first_code=0 if feature.is_numeric else 1)
                distinct.append(values)
        offset = np.cumsum([0, *(values.size for values in distinct)])[:-1].astype(np.int64)
        return cls(
            slot, codes, packed, np.concatenate([np.empty(0), *distinct]), offset, np.atleast_1d(missing.any(axis=0))
        )


def sort_column(column: Floats, first_code: int = 0) -> tuple[npt.NDArray[np.uint64], Floats]:
    """Return rank << 32 | row of a column in R's order, and its distinct values; missing values sort as zeros."""
    missing = np.isnan(column)
    key, row = np.where(missing, 0.0, column + first_code), np.arange(column.size)
    kernels.sort_as_r(key, row)
    rank = np.full(column.size, kernels.MISSING_RANK, dtype=np.uint64)
    known = ~missing[row]
    values = column[row[known]]
    is_new = np.ones(values.size, dtype=bool)
    is_new[1:] = values[1:] != values[:-1]
    rank[known] = np.cumsum(is_new) - 1
    return rank << np.uint64(32) | row.astype(np.uint64), values[is_new]


def _columns(given: Table, n_classes: int) -> Any:
    """Return the columns for the kernels; sorted ones are copies, which are partitioned in place."""
    order = _Order.from_table(given)
    positions = np.array(given.positions, dtype=np.int64)
    unordered = np.array([feature.kind == "categorical" for feature in given.features], dtype=bool)
    n_levels = np.array([feature.n_levels for feature in given.features], dtype=np.int64) * unordered
    slot = order.slot[positions]
    packed = order.packed[slot[~unordered]]
    if n_classes > 2:
        for j in np.flatnonzero(n_levels > MAX_SUBSET_LEVELS):
            present = np.unique(order.codes[slot[j]])
            used = int((present < n_levels[j]).sum())
            if used > MAX_SUBSET_LEVELS:
                raise InputError(
                    f"column {given.features[j].name!r} has {used} levels; for a target of three or more classes rpart "
                    f"tries all {2 ** (used - 1) - 1:,} ways to part them, and this dialect takes up to "
                    f"{MAX_SUBSET_LEVELS} levels. Group rare levels, make the column ordered, or use dialect='mcce'."
                )
    slot[~unordered] = np.arange(packed.shape[0])
    return kernels.Columns(
        unordered,
        n_levels,
        slot,
        order.codes,
        packed,
        order.values,
        order.offset[positions],
        order.has_missing[positions],
        np.asfortranarray(given.matrix).T,  # so that a single column has the type for which the kernels are compiled
    )


def _room(n: int, splits_per_node: int) -> tuple[Any, Any]:
    """Return arrays for the largest possible tree; pages that are never touched use no memory.

    Leaves may be smaller than `min_leaf`: the midpoint of neighbouring floats equals one of them.
    """
    floats = {"value", "risk", "complexity", "improve", "cut", "adjusted"}

    def arrays(names: tuple[str, ...], length: int) -> list[npt.NDArray[Any]]:
        return [np.empty(length, dtype=np.float64 if name in floats else np.int64) for name in names]

    nodes = kernels.Nodes(*arrays(kernels.Nodes._fields, 2 * n + 1))
    splits = kernels.Splits(*arrays(kernels.Splits._fields, n * splits_per_node))
    return nodes, splits


def _best(length: int, width: int) -> Any:
    """Return arrays for the list of a node's best splits, and the sides of their levels."""
    arrays: list[npt.NDArray[Any]] = [np.empty(length, dtype=np.int64) for _ in ("feature", "count", "below")]
    arrays += [np.empty(length) for _ in ("improve", "cut", "adjusted")]
    arrays += [np.arange(length), np.empty((length, width), dtype=np.uint8)]
    return kernels.Best(*arrays)


def _work(n: int, n_classes: int, width: int, most_nodes: int) -> Any:
    depths = MAX_DEPTH + 2
    return kernels.Work(
        order=np.arange(n, dtype=np.int32),
        side=np.empty(n, dtype=np.uint8),
        spare_rows=np.empty(n, dtype=np.int32),
        spare_packed=np.empty(n, dtype=np.uint64),
        entries=np.empty(n + 1, dtype=np.uint64),
        y=np.empty(n),
        in_left=np.empty(n_classes),
        in_right=np.empty(n_classes),
        level_n=np.empty(width, dtype=np.int64),
        level_w=np.empty(width),
        level_sum=np.empty(width),
        level_key=np.empty(width),
        level_order=np.empty(width, dtype=np.int64),
        table=np.empty((width, n_classes)),
        sides=np.empty(width, dtype=np.uint8),
        path=np.empty(depths, dtype=np.int64),
        stage=np.empty(depths, dtype=np.int64),
        bound=np.empty(depths),
        sides_before=np.empty(depths, dtype=np.int64),
        n_splits=np.empty(most_nodes, dtype=np.int64),
        risk_below=np.empty(most_nodes),
    )


def _assemble(given: Table, nodes: Any, splits: Any, sides: npt.NDArray[np.uint8]) -> RpartTree:
    """Return the tree: rpart's figures, and the arrays of `Tree`."""
    inner = nodes.feature >= 0
    primary = nodes.first_split[inner]
    ordered = np.array([feature.kind == "ordered" for feature in given.features], dtype=bool)[splits.feature]
    cut = np.where(ordered, np.floor(splits.cut) + 0.5, splits.cut)  # R writes such a split as the levels up to the cut
    threshold = np.zeros(inner.size)
    threshold[inner] = np.where(splits.sides_at[primary] >= 0, 0.5, cut[primary])
    levels = np.array([feature.n_levels for feature in given.features], dtype=np.int64)
    mask_at = np.full(inner.size, -1, dtype=np.int32)
    mask_at[inner] = np.where(levels[nodes.feature[inner]] == 2, -1, splits.sides_at[primary])
    larger_first = np.zeros(inner.size, dtype=bool)
    larger_first[inner] = nodes.size[nodes.left[inner]] >= nodes.size[nodes.left[inner] + 1]
    masks = sides == kernels.LEFT
    for node in np.flatnonzero(mask_at >= 0):
        absent = slice(mask_at[node], mask_at[node] + levels[nodes.feature[node]])
        masks[absent] |= (sides[absent] == kernels.ABSENT) & larger_first[node]
    with np.errstate(divide="ignore", invalid="ignore"):  # a root without risk has no complexity in R either
        complexity = nodes.complexity * (1.0 / nodes.risk[0])
    small = {name: array.astype(np.int32) for name, array in nodes._asdict().items() if array.dtype == np.int64}
    return RpartTree(
        feature=small["feature"],
        threshold=threshold,
        left=small["left"],
        missing_left=larger_first,
        mask_at=mask_at,
        masks=masks,
        start=small["start"],
        size=small["size"],
        impurity=nodes.risk,
        donors=np.empty(0, dtype=np.int32),
        number=nodes.number,
        n_grown=small["size"],
        value=nodes.value,
        complexity=complexity,
        first_split=small["first_split"],
        n_compete=small["n_compete"],
        n_surrogate=small["n_surrogate"],
        split_feature=splits.feature.astype(np.int32),
        split_count=splits.count.astype(np.int32),
        split_below=splits.below.astype(np.int8),
        split_improve=splits.improve,
        split_cut=cut,
        split_adjusted=splits.adjusted,
        split_sides_at=splits.sides_at,
        sides=sides,
        column_levels=levels,
    )
