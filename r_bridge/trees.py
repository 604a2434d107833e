"""A tree grown by R, as arrays: after growing, rows are routed without R.

1. `RTree.from_r` reads nodes and splits from the R object in the order of `mcce.trees.tree.Tree`: the right child
   follows the left.
2. `route` follows the splits of a node: if the value of a split's column is missing, or is a level unknown to the node,
   the next one, a surrogate, decides, and finally the row goes to the larger child. If the children are equally large,
   the row stops in the node for rpart, and goes right for party.
3. Donors of a leaf are its training rows in R; donors of an inner node in which rpart stops are all its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats, Int32s, Ints
from mcce.storage.fields import BOOL, FLOAT, INT8, INT32, check_between, require, stored
from mcce.storage.state import stateful
from mcce.table import Column, Feature, Table
from mcce.trees.tree import Tree
from r_bridge.session import session

LEAF = -1
LEFT, ABSENT, RIGHT = 1, 2, 3  # the side of a level, as rpart numbers it
TARGET = "target"
T = TypeVar("T", bound="RTree")


@stateful("r_bridge.RTree")
@dataclass(frozen=True)
class RTree(Tree):
    """A tree grown by R, see the module.

    Attributes
    ----------
    leaf_number : R's number of each node.
    split_start : the splits of node k are those from split_start[k] to split_start[k + 1]: the tree's own, then its
        surrogates, in R's order.
    split_feature, split_threshold, split_reversed : column and threshold; left if x < threshold, right if reversed.
    split_sides : for a split on levels the side of each level (1 left, 3 right, 2 never seen); otherwise unused.
    split_is_levels : which splits are on levels.
    stays : nodes in which a row stops if no split decides.
    """

    leaf_number: Int32s = stored(INT32, "nodes")
    split_start: Int32s = stored(INT32, "nodes + 1", rising="weakly")
    split_feature: Int32s = stored(INT32, "splits")
    split_threshold: Floats = stored(FLOAT, "splits")
    split_reversed: npt.NDArray[np.bool_] = stored(BOOL, "splits")
    split_is_levels: npt.NDArray[np.bool_] = stored(BOOL, "splits")
    split_sides: npt.NDArray[np.int8] = stored(INT8, "splits", None, least=LEFT, most=RIGHT)
    stays: npt.NDArray[np.bool_] = stored(BOOL, "nodes")

    def check_state(self) -> None:
        """Raise if the arrays are not a valid tree: every node's splits must be inside the table of splits."""
        super().check_state()
        ends = self.split_start[0] == 0 and self.split_start[-1] == self.split_feature.size
        require(ends, "split_start does not rise from 0 to the last split")

    def check_columns(self, n_levels: Ints, n_rows: int) -> None:
        """Raise if the tree does not fit the numbers of levels of the columns (0 for numbers) and of training rows."""
        super().check_columns(n_levels, n_rows)
        check_between(self.split_feature, "split_feature", 0, n_levels.size - 1)
        on_levels = n_levels[self.split_feature[self.split_is_levels]]
        require((on_levels > 0).all(), "split_is_levels marks a split on numbers")
        require((on_levels <= self.split_sides.shape[1]).all(), "split_sides has too few sides for the levels")

    @property
    def stops(self) -> npt.NDArray[np.bool_]:
        """The leaves, and the nodes in which a row stops if no split decides."""
        return super().stops | self.stays

    def route(self, matrix: Floats, *, complete: bool = False) -> Int32s:
        """Return the leaf of every row."""
        leaf = np.zeros(matrix.shape[0], dtype=np.int32)
        waiting = [(0, np.arange(matrix.shape[0]))]
        while waiting:
            node, rows = waiting.pop()
            leaf[rows] = node
            if self.feature[node] == LEAF or rows.size == 0:
                continue
            goes_left, undecided = self._goes_left(node, matrix, rows)
            if self.stays[node]:
                moving = np.setdiff1d(np.arange(rows.size), undecided)
                rows, goes_left = rows[moving], goes_left[moving]
            waiting += [(self.left[node], rows[goes_left]), (self.left[node] + 1, rows[~goes_left])]
        return leaf

    def _goes_left(
        self, node: int, matrix: Floats, rows: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
        """Return which rows go left, and for which of them no split decides."""
        goes_left = np.full(rows.size, self.missing_left[node])
        undecided = np.arange(rows.size)
        for s in range(self.split_start[node], self.split_start[node + 1]):
            values = matrix[rows[undecided], self.split_feature[s]]
            known = ~np.isnan(values)
            if self.split_is_levels[s]:
                side = self.split_sides[s, np.where(known, values, 0.0).astype(np.intp)]
                known &= side != ABSENT
                left = side == LEFT
            else:
                left = (values < self.split_threshold[s]) != self.split_reversed[s]
            goes_left[undecided[known]] = left[known]
            undecided = undecided[~known]
        return goes_left, undecided

    @classmethod
    def from_r(cls: type[T], nodes: NodesOfR, leaf_of_row: npt.NDArray[np.int64]) -> T:
        """Create the arrays from R's nodes and the leaves of the training rows (step 1)."""
        order, left = nodes.side_by_side()
        place = np.empty(order.size, dtype=np.int32)
        place[order] = np.arange(order.size)
        inner = left >= 0
        by_node = np.argsort(place[nodes.split_node], kind="stable")
        start = np.searchsorted(place[nodes.split_node][by_node], np.arange(order.size + 1)).astype(np.int32)
        primary = by_node[start[:-1][inner]]
        feature, threshold = np.full(order.size, LEAF, dtype=np.int32), np.zeros(order.size)
        feature[inner], threshold[inner] = nodes.split_feature[primary], nodes.split_threshold[primary]
        mask_at = np.full(order.size, -1, dtype=np.int32)
        on_levels = primary[nodes.split_is_levels[primary]]
        mask_at[feature >= 0] = np.where(nodes.split_is_levels[primary], 0, -1)
        mask_at[mask_at == 0] = np.arange(on_levels.size) * nodes.split_sides.shape[1]
        donors, first, counts = _donors(left, place[leaf_of_row])
        return cls(
            feature=feature,
            threshold=threshold,
            left=np.where(inner, left, 0).astype(np.int32),
            missing_left=nodes.larger_is_left[order],
            mask_at=mask_at,
            masks=(nodes.split_sides[on_levels] == LEFT).ravel(),
            start=first,
            size=counts,
            impurity=nodes.impurity[order],
            donors=donors,
            leaf_number=nodes.number[order],
            split_start=start,
            split_feature=nodes.split_feature[by_node],
            split_threshold=nodes.split_threshold[by_node],
            split_reversed=nodes.split_reversed[by_node],
            split_is_levels=nodes.split_is_levels[by_node],
            split_sides=nodes.split_sides[by_node],
            stays=nodes.stays[order],
        )


@dataclass(frozen=True)
class NodesOfR:
    """Nodes in R's order and their splits; x < threshold, or a level of the first side, goes left.

    Read from the lists that ``rpart_nodes`` and ``party_nodes`` of ``bridge.R`` return: `ncat` is -1 where x below
    the index goes left, 1 where it goes right, else the index is a row of the table of sides.
    """

    number: Int32s
    left: Int32s
    right: Int32s
    impurity: Floats
    larger_is_left: npt.NDArray[np.bool_]
    stays: npt.NDArray[np.bool_]
    split_node: Int32s
    split_feature: Int32s
    split_threshold: Floats
    split_reversed: npt.NDArray[np.bool_]
    split_is_levels: npt.NDArray[np.bool_]
    split_sides: npt.NDArray[np.int8]

    @classmethod
    def read(cls, described: Any, *, by_party: bool) -> NodesOfR:
        """Read R's list; in party's trees x <= index goes left and every row reaches a leaf, in rpart's x < index."""
        r = session()
        parts = {name: r.numbers(part) for name, part in r.parts(described).items()}
        node = parts["split_node"].astype(np.int32) - 1
        ncat = parts["split_ncat"].astype(np.int32)
        is_levels = ncat > 1
        n_sides = int(parts["n_sides"][0])
        table = parts["sides"].astype(np.int8).reshape(-1, n_sides) if n_sides else np.empty((0, 0), dtype=np.int8)
        sides = np.full((node.size, n_sides), ABSENT, dtype=np.int8)
        sides[is_levels] = table[parts["split_index"][is_levels].astype(np.intp) - 1]
        threshold = np.where(is_levels, 0.0, parts["split_index"])
        if by_party:
            threshold = np.where(is_levels, 0.0, np.nextafter(threshold, np.inf))
        left, right = parts["left"].astype(np.int32) - 1, parts["right"].astype(np.int32) - 1
        n = parts["n"]
        larger_is_left = (left >= 0) & (n[left] > n[right])
        # swap the children if smaller values go right, so that smaller values always go left
        swapped = np.zeros(left.size, dtype=bool)
        first_of_node = np.unique(node, return_index=True)[1]
        swapped[node[first_of_node]] = ncat[first_of_node] == 1
        return cls(
            number=parts["id"].astype(np.int32),
            left=np.where(swapped, right, left),
            right=np.where(swapped, left, right),
            impurity=parts["impurity"],
            larger_is_left=larger_is_left != (swapped & (left >= 0)),
            stays=(left >= 0) & (n[left] == n[right]) & (not by_party),
            split_node=node,
            split_feature=parts["split_column"].astype(np.int32) - 1,
            split_threshold=threshold,
            split_reversed=(ncat == 1) != swapped[node],
            split_is_levels=is_levels,
            split_sides=np.where(swapped[node][:, None], LEFT + RIGHT - sides, sides).astype(np.int8),
        )

    def side_by_side(self) -> tuple[npt.NDArray[np.intp], Int32s]:
        """Return the nodes in an order in which the right child follows the left, and the left child of each node."""
        order, left = [0], []
        for node in order:  # grows during the loop
            left.append(len(order) if self.left[node] >= 0 else -1)
            if self.left[node] >= 0:
                order += [self.left[node], self.right[node]]
        return np.array(order, dtype=np.intp), np.array(left, dtype=np.int32)


def _donors(left: Int32s, leaf_of_row: Int32s) -> tuple[Int32s, Int32s, Int32s]:
    """Return the training rows grouped by node, and the start and number of each node's rows."""
    n_nodes = left.size
    counts = np.bincount(leaf_of_row, minlength=n_nodes)
    first = np.zeros(n_nodes, dtype=np.int64)
    visit, depth_first = [0], []
    while visit:
        node = visit.pop()
        depth_first.append(node)
        if left[node] >= 0:
            visit += [left[node] + 1, left[node]]
    rank = np.empty(n_nodes, dtype=np.int64)
    rank[depth_first] = np.arange(n_nodes)
    donors = np.argsort(rank[leaf_of_row], kind="stable")
    begin = 0
    for node in depth_first:
        first[node] = begin
        begin += counts[node]
    for node in range(n_nodes - 1, -1, -1):  # children come after their parents
        if left[node] >= 0:
            counts[node] += counts[left[node]] + counts[left[node] + 1]
    return donors.astype(np.int32), first.astype(np.int32), counts.astype(np.int32)


def as_columns(features: tuple[Feature, ...], matrix: Floats) -> pd.DataFrame:
    """Return encoded rows as a frame for R: numbers unchanged, levels as factors of their codes.

    The names are x1, x2, ... Without columns there is one constant, since R's trees need a predictor.
    """
    if not features:
        return pd.DataFrame({"x1": np.ones(matrix.shape[0])})
    columns = {f"x{j}": _as_column(feature, matrix[:, j - 1]) for j, feature in enumerate(features, 1)}
    return pd.DataFrame(columns)


def training_frame(given: Table, target: Column) -> pd.DataFrame:
    """Return givens and target as a frame for R, with the target in the column `target`."""
    return as_columns(given.features, given.matrix).assign(**{TARGET: _as_column(target.feature, target.values)})


def _as_column(feature: Feature, values: Floats) -> Any:
    if feature.is_numeric:
        return values
    codes = np.where(np.isnan(values), -1, values).astype(np.intp)
    levels = pd.Index([str(k) for k in range(feature.n_levels)])
    return pd.Categorical.from_codes(codes, levels, ordered=feature.kind == "ordered")
