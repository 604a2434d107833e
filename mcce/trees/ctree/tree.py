"""Conditional inference trees: unbiased recursive partitioning (Hothorn, Hornik and Zeileis 2006), as party grows them.

These trees are mcceR's default, and match R's to the last bit; no Python package has them.

1. A node of at least `minsplit` rows tests each variable for independence of the response (`independence`). The
   criterion is one minus the p-value, raised to the power m for Bonferroni's adjustment of m variables. The variable
   with the largest criterion is cut if that is above `mincriterion`; ties: the larger statistic, then the earlier one.
2. Among the cuts that leave `minbucket` rows (and a share `minprob`) on each side, the one with the largest
   standardised two-sample statistic is chosen. A variable without such a cut is replaced, once, by the next best one.
3. Numbers enter as they are, ordered factors as scores 1, 2, ... (two levels: 0, 1), factors as 0/1 columns. Numbers of
   dtype bool are R's logicals: tested as two levels, cut as 0 and 1. Rows with a missing value are left out of the test
   and cut, and go to the larger child. A variable with fewer than `minsplit` values is not tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce._utils import Bools, Floats, Ints
from mcce.table import Column, Feature, Table
from mcce.trees.cart import CartTree, check_known
from mcce.trees.ctree import kernels
from mcce.trees.ctree.independence import chi_square, quadratic
from mcce.trees.kernels import LEAF
from mcce.trees.preorder import as_cart

_MOST_FREEDOM = 100  # degrees of freedom above which the last bits are not worth a large decomposition


@dataclass(frozen=True)
class CTree:
    """A conditional inference tree with its tests.

    Attributes
    ----------
    given : columns that the tree splits on
    target : the response
    node : one record for each node, in the order of party's numbers, which count from 1: see `kernels.NODE`
    goes_left, seen : for each node that is cut on a factor, whether each level goes left, and occurs in the node
    statistics, criteria : test statistic and criterion of each node and variable. A variable that was chosen but has no
        admissible cut has criterion minus infinity.
    training_leaf : leaf of each training row
    """

    given: tuple[Feature, ...]
    target: Feature
    node: npt.NDArray[Any]
    goes_left: Bools
    seen: Bools
    statistics: Floats
    criteria: Floats
    training_leaf: Ints

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(self.is_leaf.sum())

    @property
    def is_leaf(self) -> Bools:
        """Whether each node is a leaf."""
        return np.asarray(self.node["variable"] == LEAF)

    @property
    def training_node(self) -> Ints:
        """The node (a leaf) of each training row."""
        return np.flatnonzero(self.is_leaf)[self.training_leaf]

    def node_of(self, matrix: Floats) -> Ints:
        """Return the node (a leaf) that every row reaches."""
        return np.flatnonzero(self.is_leaf)[self.leaf(matrix)]

    def rows_in(self, leaf: int) -> Ints:
        """Return the training rows of a leaf, given as a node."""
        return np.flatnonzero(self.training_node == leaf)

    def leaf(self, matrix: Floats) -> Ints:
        """Return the number of the leaf, from 0, of every row of an encoded matrix."""
        return self._router.leaf(matrix)

    @cached_property
    def _router(self) -> CartTree:
        is_factor = np.array([feature.kind == "categorical" for feature in self.given], dtype=bool)
        variable, left = self.node["variable"], np.arange(1, self.node.size + 1)
        cut = np.nextafter(self.node["cut"], np.inf)  # x <= cut goes left
        threshold = np.where(is_factor[variable] & ~self.is_leaf, np.nan, cut) if is_factor.size else cut
        left[self.is_leaf] = 0
        return as_cart(
            self.given,
            self.target,
            variable,
            left,
            self.node["right"],
            threshold,
            self.node["missing_left"],
            self.goes_left,
        )

    def nodes(self) -> pd.DataFrame:
        """Return one row for each node, a parent before its left branch before its right branch.

        Returns
        -------
        DataFrame with the columns node (party's number), parent (0 of the root), depth, n, is_leaf, variable (position
        in `given`, -1 in a leaf), cut (of numbers and ordered levels, values up to it go left; NaN elsewhere),
        left_levels (codes of the levels of a factor that occur and go left, else None), value (mean, also of the codes
        of ordered levels, or code of the most frequent level), statistic (of the variable) and criterion.
        """
        parent, depth = np.zeros(self.node.size, dtype=np.int64), np.zeros(self.node.size, dtype=np.int64)
        rows: list[dict[str, Any]] = []
        for i, node in enumerate(self.node):
            variable = int(node["variable"])
            row: dict[str, Any] = {"node": i + 1, "parent": int(parent[i]), "depth": int(depth[i]), "n": int(node["n"])}
            row |= {"is_leaf": variable == LEAF, "variable": variable, "cut": np.nan, "left_levels": None}
            if variable != LEAF:
                children = [i + 1, node["right"]]
                parent[children], depth[children] = i + 1, depth[i] + 1
                if self.given[variable].kind == "categorical":
                    row["left_levels"] = tuple(np.flatnonzero(self.goes_left[i] & self.seen[i]).tolist())
                else:
                    row["cut"] = float(node["cut"])
            statistic = self.statistics[i, variable] if variable != LEAF else np.nan
            value = float(node["value"]) - _first_score(self.target)
            rows.append(row | {"value": value, "statistic": statistic, "criterion": node["criterion"]})
        return pd.DataFrame(rows)


class _Level(NamedTuple):
    """The nodes at one depth of the tree."""

    node: npt.NDArray[Any]
    goes_left: Bools
    seen: Bools
    statistics: Floats
    criteria: Floats

    @classmethod
    def of(cls, start: Ints, size: Ints, columns: kernels.Columns) -> _Level:
        node = np.zeros(start.size, kernels.NODE)
        node["variable"], node["start"], node["n"] = LEAF, start, size
        by_level, by_variable = (start.size, int(columns.n_levels.max(initial=0))), (start.size, columns.kind.size)
        goes_left, seen = np.zeros(by_level, dtype=np.bool_), np.zeros(by_level, dtype=np.bool_)
        return cls(node, goes_left, seen, np.zeros(by_variable), np.zeros(by_variable))


class _Data(NamedTuple):
    """The rows of a tree, and scratch arrays: `rows` are stored node by node, `node_of_row` is within a level."""

    columns: kernels.Columns
    response: kernels.Response
    work: kernels.Work
    rows: npt.NDArray[np.int32]
    node_of_row: npt.NDArray[np.int32]


def grow_ctree(
    given: Table,
    target: Column,
    *,
    mincriterion: float = 0.95,
    minsplit: int = 20,
    minbucket: int = 7,
    minprob: float = 0.01,
    maxdepth: int | None = None,
    testtype: Literal["Bonferroni", "Univariate", "Teststatistic"] = "Bonferroni",
) -> CTree:
    """Grow a conditional inference tree for `target`, which must not have missing values, on the columns of `given`.

    Parameters
    ----------
    mincriterion : float
        A node is split if the largest criterion of its variables is above it.
    minsplit, minbucket : int
        Smallest number of rows of a node to be split, and on each side of a split.
    minprob : float
        Smallest share of a node's rows on each side of a split.
    maxdepth : int or None
        Greatest depth; None is no limit.
    testtype : {"Bonferroni", "Univariate", "Teststatistic"}
        Whether the criterion is adjusted for the number of variables, is not, or is the statistic itself.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from mcce.table import Schema
    >>> from mcce.trees.ctree import grow_ctree
    >>> frame = pd.DataFrame({"x": np.arange(40.0), "y": np.repeat([0.0, 1.0], 20)})
    >>> table = Schema.from_data(frame).encode(frame)
    >>> tree = grow_ctree(table.first(1), table.column(1))
    >>> tree.n_leaves, tree.leaf(np.array([[3.0], [30.0]])).tolist()
    (2, [0, 1])
    """
    check_known(target)
    data = _read(given, target)
    start, size = np.zeros(1, dtype=np.int64), np.array([target.values.size])
    levels: list[_Level] = []
    while start.size:
        level = _Level.of(start, size, data.columns)
        _test(level, data, minsplit, testtype)
        if maxdepth is None or len(levels) < maxdepth:
            chosen = _choose(level, mincriterion)
            _cut(level, data, chosen, minbucket, minprob)
            failed = (chosen != LEAF) & (level.node["variable"] == LEAF)
            if failed.any():  # the variable is replaced by one other
                level.criteria[failed, chosen[failed]] = -np.inf
                _cut(level, data, np.where(failed, _choose(level, mincriterion), LEAF), minbucket, minprob)
        kernels.split_nodes(data.columns, data.work, data.rows, level.node, level.goes_left, data.node_of_row)
        levels.append(level)
        inner = level.node[level.node["variable"] != LEAF]
        start = np.stack([inner["start"], inner["start"] + inner["n_left"]], axis=1).ravel()
        size = np.stack([inner["n_left"], inner["n"] - inner["n_left"]], axis=1).ravel()
    return _assemble(levels, data, given, target)


def _test(level: _Level, data: _Data, minsplit: int, testtype: str) -> None:
    """Fill the statistics and criteria of a level's nodes."""
    freedom = np.zeros(level.statistics.shape, dtype=np.int64)
    kernels.test_nodes(
        data.columns, data.response, data.work, data.rows, level.node, max(minsplit, 2), level.statistics, freedom
    )
    tested = freedom != kernels.UNTESTED
    several = (data.columns.kind != kernels.NUMBER) | (data.response.n_classes > 0)
    in_doubt = tested & several & (freedom <= _MOST_FREEDOM) & _is_tied(level.statistics)
    for node, j in np.argwhere((freedom == kernels.UNKNOWN) | in_doubt):
        level.statistics[node, j], freedom[node, j] = quadratic(*_matrices(level, data, node, j))
    if testtype == "Teststatistic":
        level.criteria[:] = level.statistics
    else:
        m = tested.sum(axis=1, keepdims=True) if testtype == "Bonferroni" else 1
        level.criteria[:] = np.where(tested, chi_square(level.statistics, freedom) ** m, 0.0)


def _is_tied(statistics: Floats) -> Bools:
    """Return which variables of a node have the same statistic as another one, up to rounding."""
    order = np.argsort(statistics, axis=1)
    ordered = np.take_along_axis(statistics, order, axis=1)
    close = (ordered[:, :-1] > 0) & (ordered[:, :-1] > kernels.NEARLY * ordered[:, 1:])
    nothing = np.zeros((len(statistics), min(statistics.shape[1], 1)), dtype=np.bool_)
    tied = np.empty(statistics.shape, dtype=np.bool_)
    np.put_along_axis(tied, order, np.hstack([close, nothing]) | np.hstack([nothing, close]), axis=1)
    return tied


def _matrices(level: _Level, data: _Data, node: int, j: int) -> tuple[Floats, Floats]:
    """Return predictor and response columns of a node's rows, without those in which the predictor is missing."""
    columns, response = data.columns, data.response
    start, n = level.node["start"][node], level.node["n"][node]
    rows = data.rows[start : start + n]
    rows = rows[~np.isnan(columns.values[j, rows])]
    x, y = columns.values[j, rows][:, None], response.values[rows][:, None]
    is_number = columns.kind[j] == kernels.NUMBER
    x = x + columns.shift[j] if is_number else x == np.arange(columns.n_levels[j])
    y = y == np.arange(response.n_classes) if response.n_classes else y
    return x.astype(np.float64), y.astype(np.float64)


def _choose(level: _Level, mincriterion: float) -> Ints:
    """Return the variable to cut each node on, or LEAF."""
    if level.criteria.shape[1] == 0:
        return np.full(level.node.size, LEAF)
    best = level.criteria.max(axis=1)
    strongest = np.where(level.criteria == best[:, None], level.statistics, -np.inf).argmax(axis=1)
    return np.where(best > mincriterion, strongest, LEAF)


def _cut(level: _Level, data: _Data, chosen: Ints, minbucket: int, minprob: float) -> None:
    """Cut each node on the chosen variable, if there is one and it has an admissible cut."""
    if (chosen != LEAF).any():
        kernels.cut_nodes(
            data.columns, data.response, data.work, data.rows, data.node_of_row, level.node, chosen,
            np.empty(chosen.size, dtype=np.int64), float(minbucket), float(minprob), level.goes_left, level.seen,
        )  # fmt: skip


def _assemble(levels: list[_Level], data: _Data, given: Table, target: Column) -> CTree:
    """Assemble the levels into a tree, its nodes in party's order: parents first, left before right."""
    whole = _Level(*(np.concatenate(parts) for parts in zip(*levels)))
    is_inner = whole.node["variable"] != LEAF
    left = np.where(is_inner, 2 * np.cumsum(is_inner) - 1, 0)  # the levels hold the children in this order
    order, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += [left[node] + 1, left[node]] if is_inner[node] else []
    place = np.argsort(order)
    whole.node["right"][is_inner] = place[left[is_inner] + 1]
    whole.node["criterion"] = whole.criteria.max(axis=1, initial=0.0)
    parts: list[Any] = [part[order] for part in whole]
    ordered = _Level(*parts)
    training_leaf = np.empty(data.rows.size, dtype=np.int64)
    leaves = ordered.node[ordered.node["variable"] == LEAF]
    for number, (start, n) in enumerate(zip(leaves["start"], leaves["n"])):
        training_leaf[data.rows[start : start + n]] = number
    return CTree(given.features, target.feature, *ordered, training_leaf)


def _read(given: Table, target: Column) -> _Data:
    """Return the columns, the response and scratch arrays."""
    features, n = given.features, target.values.size
    kind = np.array([_kind(feature) for feature in features], dtype=np.int64)
    in_root = given.shared("ctree", _sort_columns)
    has_order = kind != kernels.FACTOR
    sorted_rows = [in_root[given.positions[j]] for j in np.flatnonzero(has_order)]
    columns = kernels.Columns(
        values=np.asfortranarray(given.matrix).T,
        kind=kind,
        n_levels=np.where(kind == kernels.LOGICAL, 2, np.array([f.n_levels for f in features], dtype=np.int64)),
        shift=np.array([_first_score(f) for f in features], dtype=np.float64),
        has_missing=np.isnan(given.matrix).any(axis=0),
        sorted_rows=np.array(sorted_rows, dtype=np.int32).reshape(len(sorted_rows), n),
        slot=np.cumsum(has_order) - 1,
    )
    if target.feature.kind == "categorical":
        response = kernels.Response(np.ascontiguousarray(target.values), target.feature.n_levels)
    else:
        response = kernels.Response(np.ascontiguousarray(target.values + _first_score(target.feature)), 0)
    work = kernels.scratch(n, max(response.n_classes, 1), int(columns.n_levels.max(initial=0)))
    return _Data(columns, response, work, np.arange(n, dtype=np.int32), np.zeros(n, dtype=np.int32))


def _sort_columns(table: Table) -> list[npt.NDArray[np.int32]]:
    """Return the rows sorted by each column with an order, ties in row order and missing values last."""
    nothing = np.empty(0, dtype=np.int32)
    return [
        nothing if feature.kind == "categorical" else np.argsort(values, kind="stable").astype(np.int32)
        for feature, values in zip(table.features, table.matrix.T)
    ]


def _kind(feature: Feature) -> int:
    """Return the kind of a predictor for the kernels; numbers of dtype bool are a logical."""
    if feature.kind == "categorical":
        return kernels.FACTOR
    is_logical = feature.is_numeric and pd.api.types.is_bool_dtype(feature.dtype)
    return kernels.LOGICAL if is_logical else kernels.NUMBER


def _first_score(feature: Feature) -> float:
    """Return the score of the lowest level of an ordered factor; two levels are 0 and 1. A number is its own score."""
    return 1.0 if feature.kind == "ordered" and feature.n_levels != 2 else 0.0
