"""The trees of R's rpart, identical to the last bit (Breiman et al. 1984; Therneau and Atkinson 2022).

1. The risk of a number is the sum of squares, of classes (levels, ordered or not) the number of rows outside the most
   frequent class. A node is searched if it has `minsplit` rows, is above `maxdepth`, and its risk exceeds cp times the
   root's.
2. Every column offers its best cut with `minbucket` rows on each side, by the decrease of the sum of squares or of the
   Gini index. Cuts are midpoints. Unordered levels are ordered by their means, or by the first class's shares; for
   three and more classes all subsets are tried. The first of the best columns wins.
3. The side with the lower mean, or the lower mean class number, is the left one. A row with a missing value is sent by
   the first surrogate whose column is known, else with the majority; without a majority it stays in the node.
4. A node becomes a leaf again if its branch lowers the risk by no more than cp times the root's for each split.
5. Rows with all columns missing take no part in growing. New rows are routed in the same way; a level that is absent
   from the node is missing, and the majority is the larger child.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce._utils import Bools, Floats, Ints
from mcce.exceptions import InputError, spell
from mcce.table import Column, Feature, Table
from mcce.trees.cart import CartTree, check_known
from mcce.trees.kernels import LEAF
from mcce.trees.preorder import as_cart
from mcce.trees.rpart import kernels
from mcce.trees.rpart.kernels import LEFT, MAX_DEPTH

MAX_SUBSET_LEVELS = 14  # rpart tries all subsets of the levels for three and more classes


@dataclass(frozen=True)
class RpartTree:
    """A tree grown by rpart's rules.

    Attributes
    ----------
    given : columns that the tree splits on
    target : the response
    node : one record for each node, in the order of R's frame: see `kernels.NODE`
    split : one record for each split, the primary one of a node before its surrogates: see `kernels.SPLIT`
    sides : for each split on unordered levels the side of each level: LEFT, RIGHT or ABSENT
    training_node : last node that each training row reached
    training_leaf : leaf of each training row; a row that stayed in an inner node is sent on to the larger child
    """

    given: tuple[Feature, ...]
    target: Feature
    node: npt.NDArray[Any]
    split: npt.NDArray[Any]
    sides: npt.NDArray[np.uint8]
    training_node: Ints
    training_leaf: Ints

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.node["variable"] == LEAF).sum())

    def leaf(self, matrix: Floats) -> Ints:
        """Return the number of the leaf, from 0, of every row of an encoded matrix."""
        with np.errstate(over="ignore", invalid="ignore"):
            is_known = not np.isnan(matrix.sum())
        if is_known and self._router is not None:
            return self._router.leaf(matrix)
        return self._leaf_of_node[self._route(matrix, may_stay=False)]

    def node_of(self, matrix: Floats) -> Ints:
        """Return the last node that every row reaches in R; an inner one where its children are equally large."""
        return self._route(matrix, may_stay=True)

    def rows_in(self, node: int) -> Ints:
        """Return the training rows of a node, those below it included."""
        last = node  # the nodes below a node follow it
        while self.node["variable"][last] != LEAF:
            last = self.node["right"][last]
        return np.flatnonzero((self.training_node >= node) & (self.training_node <= last))

    def nodes(self) -> pd.DataFrame:
        """Return one row for each node, a parent before its left branch before its right branch.

        Returns
        -------
        DataFrame with the columns node (rpart's number), parent (0 of the root), depth, n, is_leaf, variable (position
        in `given`, -1 in a leaf), cut (of numbers and ordered levels, smaller values go left; NaN elsewhere),
        left_levels (codes of the unordered levels that go left, else None) and value (mean, or code of the most
        frequent level). The left branch is that of the smaller values, which rpart may call the right one.
        """
        rows: list[dict[str, Any]] = []
        waiting = [0]
        while waiting:
            i = waiting.pop()
            node = self.node[i]
            number, variable = int(node["number"]), int(node["variable"])
            row: dict[str, Any] = {
                "node": number,
                "parent": number // 2,
                "depth": number.bit_length() - 1,
                "n": int(node["n"]),
            }
            row |= {"is_leaf": variable == LEAF, "variable": variable, "cut": np.nan, "left_levels": None}
            if variable != LEAF:
                split = self.split[node["split"]]
                children = [i + 1, int(node["right"])]
                if self._n_levels[variable]:
                    row["left_levels"] = tuple(np.flatnonzero(self.sides[node["split"]] == LEFT).tolist())
                else:
                    row["cut"] = float(split["cut"])
                    children = children[:: -int(split["below"])]
                waiting += reversed(children)
            rows.append(row | {"value": float(node["value"])})
        return pd.DataFrame(rows)

    @property
    def _n_levels(self) -> Ints:
        return _n_levels(self.given)

    @property
    def _leaf_of_node(self) -> Ints:
        return np.cumsum(self.node["variable"] == LEAF) - 1

    @cached_property
    def _router(self) -> CartTree | None:
        """The tree for rows without missing values, if no split is on unordered levels, which a node may not know."""
        variable, split = self.node["variable"], self.node["split"]
        is_inner = variable != LEAF
        if (self._n_levels[self.split["variable"][split[is_inner]]] > 0).any():
            return None
        below, cut = np.ones(variable.size, dtype=np.int64), np.zeros(variable.size)
        below[is_inner], cut[is_inner] = self.split["below"][split[is_inner]], self.split["cut"][split[is_inner]]
        children = np.where(is_inner, np.arange(1, variable.size + 1), 0), self.node["right"]
        left, right = np.where(below < 0, children, children[::-1])
        nowhere = np.zeros((variable.size, 1), dtype=np.bool_)
        return as_cart(self.given, self.target, variable, left, right, cut, nowhere[:, 0], nowhere)

    def _route(self, matrix: Floats, may_stay: bool) -> Ints:
        reached = np.zeros(matrix.shape[0], dtype=np.int64)
        if self.node.size > 1:
            kernels.route_rows(
                np.asfortranarray(matrix).T, self.node, self.split, self.sides, self._n_levels, may_stay, reached
            )
        return reached


def grow_rpart(
    given: Table,
    target: Column,
    *,
    minsplit: int | None = None,
    minbucket: int | None = None,
    cp: float = 0.01,
    maxdepth: int = MAX_DEPTH,
    maxsurrogate: int = 5,
) -> RpartTree:
    """Grow rpart's tree for `target`, which must not have missing values, on the columns of `given`.

    Parameters
    ----------
    minsplit, minbucket : int or None
        Smallest number of rows of a node to be split, and on each side of a split. As in rpart the defaults are 20 and
        7; one alone sets the other, `minsplit` to three times `minbucket`.
    cp : float
        A branch must lower the risk by more than `cp` times the root's risk for each of its splits.
    maxdepth : int
        Greatest depth, up to 30.
    maxsurrogate : int
        Number of surrogates kept for each split; they route missing values and levels that a node has not seen.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from mcce.table import Schema
    >>> from mcce.trees.rpart import grow_rpart
    >>> frame = pd.DataFrame({"x": np.arange(40.0), "y": np.repeat([0.0, 1.0], 20)})
    >>> table = Schema.from_data(frame).encode(frame)
    >>> tree = grow_rpart(table.first(1), table.column(1))
    >>> tree.n_leaves, tree.leaf(np.array([[3.0], [30.0]])).tolist()
    (2, [0, 1])
    """
    check_known(target)
    if not 0 <= maxdepth <= MAX_DEPTH:
        raise InputError(f"maxdepth is {maxdepth}; a tree of rpart has a depth of up to {MAX_DEPTH}.")
    minsplit, minbucket = control(minsplit, minbucket)
    is_known: Bools = np.asarray(~np.isnan(given.matrix).all(axis=1) | (not given.features))
    rows, y = (
        (given, target.values) if is_known.all() else (given.take(np.flatnonzero(is_known)), target.values[is_known])
    )
    n_classes = 0 if target.feature.is_numeric else int(y.max(initial=0)) + 1  # up to the last one in use
    _check_subsets(rows, n_classes)
    rules = kernels.Rules(
        n_classes, class_weights(y, n_classes), float(cp), minsplit, minbucket, maxdepth, maxsurrogate
    )
    n_levels = _n_levels(given.features)
    columns = kernels.Columns(np.asfortranarray(rows.matrix).T, *_sorted_rows(rows), n_levels)
    most_splits = y.size * (1 + maxsurrogate)  # pages that are never touched use no memory
    node, split = np.empty(2 * y.size + 1, kernels.NODE), np.empty(most_splits, kernels.SPLIT)
    sides = np.empty((most_splits, int(n_levels.max(initial=0))), dtype=np.uint8)
    reached = np.empty(y.size, dtype=np.int64)
    work = kernels.scratch(y.size, n_classes, sides.shape[1])
    n_nodes, n_splits = kernels.grow_nodes(columns, rules, np.ascontiguousarray(y), node, split, sides, work, reached)
    node, split, sides = node[:n_nodes].copy(), split[:n_splits].copy(), sides[:n_splits].copy()
    with np.errstate(divide="ignore", invalid="ignore"):  # a root without risk has no complexity in R either
        node["complexity"] *= 1.0 / node["risk"][0]
    is_ordered = np.array([feature.kind == "ordered" for feature in given.features], dtype=bool)[split["variable"]]
    split["cut"] = np.where(is_ordered, np.floor(split["cut"]) + 0.5, split["cut"])  # R writes the levels up to the cut
    tree = RpartTree(given.features, target.feature, node, split, sides, reached, reached)
    return _with_training_rows(tree, given.matrix, is_known, reached)


def control(minsplit: int | None, minbucket: int | None) -> tuple[int, int]:
    """Return rpart's `minsplit` and `minbucket`: one alone sets the other."""
    if minsplit is None:
        minsplit = 20 if minbucket is None else 3 * minbucket
    if minbucket is None:
        minbucket = max(round(minsplit / 3), 1)
    return minsplit, minbucket


def class_weights(y: Floats, n_classes: int) -> Floats:
    """Return the weight of a row of each class: prior times loss over frequency, which is one up to rounding."""
    if n_classes < 2:
        return np.ones(n_classes)
    share = np.bincount(y.astype(np.int64), minlength=n_classes) / y.size
    loss = np.zeros(n_classes)
    total = 0.0
    for k in range(n_classes):
        for _ in range(n_classes - 1):  # sums of equal terms, rounded as in R
            loss[k] += share[k]
            total += share[k]
    return np.divide(loss, total * share, out=np.zeros(n_classes), where=share > 0)


def sort_column(column: Floats, first_code: int = 0) -> npt.NDArray[np.int32]:
    """Return the rows sorted by a column, in R's order of equal values; missing values sort as zeros.

    `first_code` is R's code of the first level of an ordered column.
    """
    key, row = np.where(np.isnan(column), 0.0, column + first_code), np.arange(column.size)
    kernels.sort_as_r(key, row, np.empty((128, 2), dtype=np.int64))
    return row.astype(np.int32)


def _n_levels(features: tuple[Feature, ...]) -> Ints:
    """Return the number of levels of unordered columns, 0 for others."""
    n_levels = [feature.n_levels if feature.kind == "categorical" else 0 for feature in features]
    return np.array(n_levels, dtype=np.int64)


def _sorted_rows(table: Table) -> tuple[npt.NDArray[np.int32], Ints]:
    """Return the sorted rows of the columns with an order, a copy to be partitioned, and the place of each column."""
    in_root = table.shared("rpart", _sort_columns)
    has_order = _n_levels(table.features) == 0
    slot = np.cumsum(has_order) - 1
    rows = [in_root[table.positions[j]] for j in np.flatnonzero(has_order)]
    return np.array(rows, dtype=np.int32).reshape(len(rows), table.n_rows), slot


def _sort_columns(table: Table) -> list[npt.NDArray[np.int32]]:
    """Return the rows sorted by each column; nothing for unordered levels."""
    nothing = np.empty(0, dtype=np.int32)
    return [
        nothing
        if feature.kind == "categorical" and feature.n_levels
        else sort_column(values, feature.kind == "ordered")
        for feature, values in zip(table.features, table.matrix.T)
    ]


def _check_subsets(given: Table, n_classes: int) -> None:
    for j, feature in enumerate(given.features):
        if n_classes > 2 and feature.kind == "categorical" and feature.n_levels > MAX_SUBSET_LEVELS:
            used = np.unique(given.matrix[:, j][~np.isnan(given.matrix[:, j])]).size
            if used > MAX_SUBSET_LEVELS:
                raise InputError(
                    f"column {spell(feature.name)} has {used} levels; for a target of three or more classes rpart "
                    f"tries all {2 ** (used - 1) - 1:,} ways to part them, and this dialect takes up to "
                    f"{MAX_SUBSET_LEVELS} levels. Group rare levels, make the column ordered, or use dialect='mcce'."
                )


def _with_training_rows(tree: RpartTree, matrix: Floats, is_known: Bools, reached: Ints) -> RpartTree:
    """Return the tree with the node and leaf of all training rows, those that took no part in growing included."""
    node = tree.node_of(matrix)
    node[is_known] = reached
    leaf = tree._leaf_of_node[node]
    stayed = tree.node["variable"][node] != LEAF
    leaf[stayed] = tree.leaf(matrix[stayed])
    return RpartTree(tree.given, tree.target, tree.node, tree.split, tree.sides, node, leaf)
