"""Conditional inference trees: unbiased recursive partitioning (Hothorn, Hornik and Zeileis 2006), as party grows them.

1. In a node of at least `min_split` rows test each variable for independence of the response
   (`mcce.trees.independence`); its criterion is one minus the p-value, adjusted for the number of variables.
2. If the largest criterion is above `mincriterion`, cut on that variable; equal criteria: the larger statistic, then
   the earlier variable. Otherwise the node is a leaf.
3. Of the cuts that leave `min_leaf` rows (and a share `minprob`) on each side take the one with the largest
   standardised two-sample statistic. A variable without such a cut gives way, once, to the next best one.
4. Part the rows and go on with the children. The levels of a tree are grown one after the other, all nodes of a level
   at once; nodes are numbered afterwards, parents first, left before right, as party does.

Responses and predictors: numbers as they are, ordered factors as scores 1, 2, ... (two levels: 0, 1), factors as one 0/1
column a level.
A row in which a variable is missing takes no part in the variable's test and cut, and goes to the larger child. A
variable with fewer than `min_split` values in a node is not tested there, nor counted in the adjustment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from mcce.exceptions import InputError
from mcce.schema import Column, Feature, Table
from mcce.trees import announce_compiling, ctree_kernels, independence
from mcce.trees.kernels import LEAF, ROW, SORTED
from mcce.trees.ranking import Ranking
from mcce.trees.tree import Floats, Ints, Tree

Statistic = Literal["quadratic", "maximum"]
PValues = Literal["bonferroni", "univariate", "none"]


@dataclass(frozen=True)
class CtreeTree(Tree):
    """A conditional inference tree: a `Tree` with its tests.

    Attributes
    ----------
    number : the number of a node in party's order, from 1: parents first, left before right.
    cut : x <= cut goes left, for numbers and the codes of ordered levels; NaN elsewhere.
    cut_statistic : standardised two-sample statistic of the cut; 0 in a leaf.
    criterion : largest criterion of a node's variables; 0 if it was not tested.
    statistics, criteria : test statistic and criterion of each node and variable. A variable that was chosen but has no
        admissible cut has criterion minus infinity.
    """

    number: Ints
    cut: Floats
    cut_statistic: Floats
    criterion: Floats
    statistics: Floats
    criteria: Floats


class _Level(NamedTuple):
    """The nodes of one level of the tree: what is known of each."""

    start: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    statistics: Floats
    criteria: Floats
    chosen: npt.NDArray[np.int64]
    cut: Floats
    goes_left: npt.NDArray[np.bool_]
    cut_statistic: Floats
    found: npt.NDArray[np.bool_]
    left_size: npt.NDArray[np.int64]
    missing_left: npt.NDArray[np.bool_]


def grow(
    given: Table,
    target: Column,
    *,
    statistic: Statistic = "quadratic",
    p_values: PValues = "bonferroni",
    mincriterion: float = 0.95,
    min_split: int = 20,
    min_leaf: int = 7,
    minprob: float = 0.01,
    max_depth: int | None = None,
) -> CtreeTree:
    """Grow a conditional inference tree for `target`, which must not have missing values, on the columns of `given`."""
    if np.isnan(target.values).any():
        raise InputError(f"the target {target.feature.name!r} of a tree has missing values; model them apart.")
    announce_compiling()
    columns, response = _columns(given), _response(target)
    n = target.values.size
    work = _work(n, max(response.n_classes, 1), int(columns.n_levels.max(initial=0)))
    rows = np.arange(n, dtype=np.int32)
    node_of_row = np.zeros(n, dtype=np.int32)
    start, size = np.array([0]), np.array([n])
    levels: list[_Level] = []
    while start.size:
        level = _new_level(start, size, columns)
        _test(level, columns, response, work, rows, min_split, statistic, p_values)
        if max_depth is None or len(levels) < max_depth:
            waiting = _choose(level, mincriterion)
            _cut(level, waiting, columns, response, work, rows, node_of_row, min_leaf, minprob)
            failed = (waiting >= 0) & ~level.found
            if failed.any():  # step 3: a variable without an admissible cut gives way to one other
                level.criteria[failed, waiting[failed]] = -np.inf
                waiting = np.where(failed, _choose(level, mincriterion), -1)
                _cut(level, waiting, columns, response, work, rows, node_of_row, min_leaf, minprob)
        levels.append(level)
        start, size = _split(level, columns, work, rows, node_of_row)
    return _assemble(levels, columns, response, work, rows)


def _test(
    level: _Level,
    columns: Any,
    response: Any,
    work: Any,
    rows: Ints,
    min_split: int,
    statistic: Statistic,
    p_values: PValues,
) -> None:
    """Step 1: fill the statistics and criteria of a level's nodes."""
    freedom = np.zeros(level.statistics.shape, dtype=np.int64)
    ctree_kernels.test_nodes(
        columns, response, work, rows, level.start, level.size, max(min_split, 2), level.statistics, freedom
    )
    for node, j in np.argwhere(freedom == ctree_kernels.UNKNOWN):
        x, y = _dummies(columns, response, rows[level.start[node] :][: level.size[node]], j)
        level.statistics[node, j], freedom[node, j] = independence.quadratic(x, y)
    level.criteria[:] = level.statistics
    if p_values != "none":
        tested = freedom != ctree_kernels.UNTESTED
        m = tested.sum(axis=1, keepdims=True) if p_values == "bonferroni" else 1
        level.criteria[:] = np.where(tested, independence.chi_square(level.statistics, freedom) ** m, 0.0)


def _choose(level: _Level, mincriterion: float) -> npt.NDArray[np.int64]:
    """Step 2: choose a variable for the nodes that have no cut yet; return it, or -1 for all others."""
    if level.criteria.shape[1] == 0:
        return level.chosen
    best = level.criteria.max(axis=1)
    strongest = np.where(level.criteria == best[:, None], level.statistics, -np.inf).argmax(axis=1)
    waiting = np.where((best > mincriterion) & ~level.found, strongest, -1)
    level.chosen[:] = np.where(level.found, level.chosen, waiting)
    return waiting


def _cut(
    level: _Level,
    waiting: npt.NDArray[np.int64],
    columns: Any,
    response: Any,
    work: Any,
    rows: Ints,
    node_of_row: Ints,
    min_leaf: int,
    minprob: float,
) -> None:
    """Step 3: cut the waiting nodes on their variables."""
    if (waiting < 0).all():
        return
    ctree_kernels.sort_level(columns, waiting, node_of_row, level.start.copy(), work.ordered)
    ctree_kernels.cut_nodes(
        columns,
        response,
        work,
        rows,
        level.start,
        level.size,
        waiting,
        float(min_leaf),
        float(minprob),
        level.cut,
        level.goes_left,
        level.cut_statistic,
        level.found,
    )


def _split(
    level: _Level, columns: Any, work: Any, rows: Ints, node_of_row: Ints
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Step 4: part the rows of the nodes with a cut; return where the children's rows start, and their numbers."""
    ctree_kernels.split_nodes(
        columns,
        work,
        rows,
        level.start,
        level.size,
        level.chosen,
        level.cut,
        level.goes_left,
        level.found,
        level.left_size,
        level.missing_left,
        node_of_row,
    )
    start, size, left_size = level.start[level.found], level.size[level.found], level.left_size[level.found]
    pairs = np.stack([start, start + left_size], axis=1), np.stack([left_size, size - left_size], axis=1)
    return pairs[0].ravel(), pairs[1].ravel()


def _assemble(levels: list[_Level], columns: Any, response: Any, work: Any, rows: Ints) -> CtreeTree:
    """Put the levels together: node 0 is the root, the children of a node stand side by side."""
    level = _Level(*(np.concatenate(parts) for parts in zip(*levels)))
    found = level.found
    left = np.where(found, 2 * np.cumsum(found) - 1, 0).astype(np.int32)
    feature = np.where(found, level.chosen, LEAF).astype(np.int32)
    by_levels = found & (columns.kind[feature] == ctree_kernels.FACTOR) if columns.kind.size else found
    n_levels = np.where(by_levels, columns.n_levels[feature] if columns.kind.size else 0, 0)
    cut = np.where(found & ~by_levels, level.cut, np.nan)
    threshold = np.where(np.isnan(cut), 0.0, np.nextafter(cut, np.inf))
    impurity = np.empty(feature.size)
    ctree_kernels.impurities(response, rows, level.start, level.size, work.moments, impurity)
    masks = [level.goes_left[node, : n_levels[node]] for node in np.flatnonzero(by_levels)]
    return CtreeTree(
        feature=feature,
        threshold=threshold,
        left=left,
        missing_left=level.missing_left,
        mask_at=np.where(by_levels, np.cumsum(n_levels) - n_levels, -1).astype(np.int32),
        masks=np.concatenate(masks) if masks else np.empty(0, dtype=np.bool_),
        start=level.start.astype(np.int32),
        size=level.size.astype(np.int32),
        impurity=impurity,
        donors=rows,
        number=_numbers(left, [len(one.found) for one in levels]),
        cut=cut,
        cut_statistic=np.where(found, level.cut_statistic, 0.0),
        criterion=level.criteria.max(axis=1, initial=0.0),
        statistics=level.statistics,
        criteria=level.criteria,
    )


def _numbers(left: Ints, sizes: list[int]) -> Ints:
    """Number the nodes from 1, parents first, left before right."""
    below = np.ones(left.size, dtype=np.int32)
    ends = np.cumsum(sizes)
    spans = [slice(end - size, end) for end, size in zip(ends, sizes)]
    for span in reversed(spans):
        inner = np.flatnonzero(left[span]) + span.start
        below[inner] += below[left[inner]] + below[left[inner] + 1]
    number = np.ones(left.size, dtype=np.int32)
    for span in spans:
        inner = np.flatnonzero(left[span]) + span.start
        number[left[inner]] = number[inner] + 1
        number[left[inner] + 1] = number[inner] + 1 + below[left[inner]]
    return number


def _dummies(columns: Any, response: Any, rows: Ints, j: int) -> tuple[Floats, Floats]:
    """Return predictor and response columns of some rows, without those in which the predictor is missing."""
    x = columns.matrix[rows, j]
    known = ~np.isnan(x)
    x, rows = x[known], rows[known]
    if columns.kind[j] == ctree_kernels.FACTOR:
        wide = (x[:, None] == np.arange(columns.n_levels[j])).astype(np.float64)
    else:
        wide = x[:, None] + columns.shift[j]
    if response.n_classes:
        return wide, (response.labels[rows][:, None] == np.arange(response.n_classes)).astype(np.float64)
    return wide, response.scores[rows][:, None]


def _columns(given: Table) -> Any:
    is_factor = np.array([f.kind == "categorical" for f in given.features], dtype=bool)
    ranking = Ranking.of(given)  # before the next line: what is shared is made under one lock
    orders, slot = given.shared("orders", lambda root: _orders(root, ranking))
    return ctree_kernels.Columns(
        matrix=np.asfortranarray(given.matrix),
        kind=np.where(is_factor, ctree_kernels.FACTOR, ctree_kernels.NUMBER),
        n_levels=np.array([f.n_levels for f in given.features], dtype=np.int64),
        shift=np.array([_first_score(f) for f in given.features], dtype=np.float64),
        has_missing=np.isnan(given.matrix).any(axis=0),
        orders=orders,
        slot=slot[list(given.positions)],
    )


def _orders(table: Table, ranking: Ranking) -> tuple[Ints, npt.NDArray[np.int64]]:
    """Return the rows in the order of each column that has one, equal values in row order, and the columns' places."""
    slot = np.full(len(table.features), -1, dtype=np.int64)
    wanted = [j for j, feature in enumerate(table.features) if feature.kind != "categorical"]
    slot[wanted] = np.arange(len(wanted))
    orders = np.empty((len(wanted), table.n_rows), dtype=np.int32)
    for order, j in zip(orders, wanted):
        if ranking.how[j] == SORTED:
            order[:] = ranking.packed[ranking.slot[j]] & np.uint64(ROW)
        else:
            order[:] = np.argsort(ranking.codes[:, ranking.slot[j]], kind="stable")
    return orders, slot


def _response(target: Column) -> Any:
    if target.feature.kind == "categorical":
        labels = target.values.astype(np.int32)
        return ctree_kernels.Response(np.empty(0), labels, target.feature.n_levels)
    scores = target.values + _first_score(target.feature)
    return ctree_kernels.Response(np.ascontiguousarray(scores), np.empty(0, dtype=np.int32), 0)


def _first_score(feature: Feature) -> float:
    """Return the score of the lowest level: 1, 2, ... for ordered factors, but 0, 1 if there are two levels."""
    return 1.0 if feature.kind == "ordered" and feature.n_levels != 2 else 0.0


def _work(n: int, width: int, most_levels: int) -> Any:
    return ctree_kernels.Work(
        kept=np.empty(n, dtype=np.int32),
        spare=np.empty(n, dtype=np.int32),
        ordered=np.empty(n, dtype=np.int32),
        rank_of_row=np.empty(n),
        moments=np.empty((4, width)),
        linear=np.empty((most_levels + 1, width)),
        count=np.empty(most_levels + 1),
        key=np.empty(most_levels + 1),
        rank=np.empty(most_levels + 1, dtype=np.int64),
        place=np.empty(most_levels + 2, dtype=np.int64),
        sort_key=np.empty(n),
        sort_index=np.empty(n, dtype=np.int32),
    )


def _new_level(start: npt.NDArray[np.int64], size: npt.NDArray[np.int64], columns: Any) -> _Level:
    m, p = start.size, columns.kind.size
    return _Level(
        start=start,
        size=size,
        statistics=np.zeros((m, p)),
        criteria=np.zeros((m, p)),
        chosen=np.full(m, -1, dtype=np.int64),
        cut=np.zeros(m),
        goes_left=np.zeros((m, int(columns.n_levels.max(initial=0))), dtype=np.bool_),
        cut_statistic=np.zeros(m),
        found=np.zeros(m, dtype=np.bool_),
        left_size=np.zeros(m, dtype=np.int64),
        missing_left=np.zeros(m, dtype=np.bool_),
    )
