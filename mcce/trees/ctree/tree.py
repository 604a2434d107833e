"""Conditional inference trees: unbiased recursive partitioning (Hothorn, Hornik and Zeileis 2006), as party grows them.

These trees are mcceR's default, and match R's to the last bit; no Python package has them.

1. A node of at least `min_split` rows tests each variable for independence of the response. The criterion is one minus
   the p-value, raised to the power m for Bonferroni's adjustment of m variables. The variable with the largest
   criterion is cut if that is above `mincriterion`; ties: the larger statistic, then the earlier variable.
2. Among the cuts that leave `min_leaf` rows (and a share `minprob`) on each side, the one with the largest standardised
   two-sample statistic is chosen. A variable without such a cut is replaced, once, by the next best one.
3. Numbers enter as they are, ordered factors as scores 1, 2, ... (two levels: 0, 1), factors as 0/1 columns. Numbers of
   dtype bool are R's logicals: tested as two levels, cut as 0 and 1. Rows with a missing value are left out of the test
   and cut, and go to the larger child. A variable with fewer than `min_split` values is not tested.
4. Nodes are numbered as party does, parents first, left before right.

Tests (Strasser and Weber 1999), for n rows with predictor columns X and response columns Y: T = vec(X'Y) has, under
permutations, mean mu = vec(s E') and covariance Sigma = n/(n-1) C kron A - 1/(n-1) C kron ss', with E and C mean and
covariance of Y, s = X'1 and A = X'X. The quadratic statistic (T-mu)' Sigma+ (T-mu) is chi-square with rank(Sigma)
degrees of freedom; Sigma+ keeps singular values above 1e-10 max(1, the largest). The maximum statistic max |T-mu| /
sqrt(diag Sigma) has a multivariate normal limit (Genz 1992), integrated over a fixed lattice with errors below 1e-3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Floats, Int32s, Ints
from mcce.exceptions import InputError
from mcce.storage.fields import BOOL, FLOAT, INT32, stored
from mcce.storage.state import stateful
from mcce.table import Column, Feature, Table
from mcce.table.dtypes import is_logical
from mcce.trees import announce_compiling
from mcce.trees.ctree import kernels
from mcce.trees.ctree.kernels import TOLERANCE
from mcce.trees.ctree.svd_kernels import decompose
from mcce.trees.kernels import LEAF, ROW, SORTED
from mcce.trees.ranking import ColumnRanks
from mcce.trees.tree import Tree


@stateful("CtreeTree")
@dataclass(frozen=True)
class CtreeTree(Tree):
    """A conditional inference tree: a `Tree` with its tests.

    Attributes
    ----------
    number : the number of a node in party's order, from 1: parents first, left before right. The left child of a cut
        between two unordered levels is that of the first level, which may be party's right one.
    cut : x <= cut goes left, for numbers and the codes of ordered levels; NaN elsewhere.
    seen : for each entry of `masks`, whether the level occurs in the node.
    cut_statistic : standardised two-sample statistic of the cut; 0 in a leaf.
    criterion : largest criterion of a node's variables; 0 if none was tested.
    statistics, criteria : test statistic and criterion of each node and variable. A variable that was chosen but has no
        admissible cut has criterion minus infinity.
    """

    number: Int32s = stored(INT32, "nodes")
    cut: Floats = stored(FLOAT, "nodes")
    seen: npt.NDArray[np.bool_] = stored(BOOL, "masks")
    cut_statistic: Floats = stored(FLOAT, "nodes")
    criterion: Floats = stored(FLOAT, "nodes")
    statistics: Floats = stored(FLOAT, "nodes", "columns")
    criteria: Floats = stored(FLOAT, "nodes", "columns")


_POINTS = 8192
_BITS = 2.0**40
_SMALLEST_PIVOT = 1e-9


def linear_statistic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return T - mu and Sigma for predictor columns `x` and response columns `y`.

    Sums run row by row and products from left to right: if x is far from 0, Sigma is a small difference of large
    numbers, and its rank depends on their last digits.
    """
    n = x.shape[0]
    mean = _sum(y) / n
    covariance = _products(y - mean, y - mean) / n
    total = _sum(x)
    squares = _products(x, x) if x.shape[1] == 1 else np.diag(total)  # a row has one level
    centred = _products(y, x) - total * mean[:, None]
    more, less = n / (n - 1), 1 / (n - 1)
    wide = covariance[:, None, :, None]
    sigma = more * (wide * squares[None, :, None, :]) - less * (wide * total[None, :, None, None] * total)
    return centred.ravel(), sigma.reshape(centred.size, centred.size)


def _sum(terms: Floats) -> Floats:
    """Add up the rows one after the other."""
    total: Floats = np.add.accumulate(terms, axis=0)[-1] if len(terms) else np.zeros(terms.shape[1:])
    return total


def _products(a: Floats, b: Floats) -> Floats:
    return np.array([[_sum(a[:, k] * b[:, j]) for j in range(b.shape[1])] for k in range(a.shape[1])])


def quadratic(x: Floats, y: Floats) -> tuple[float, int]:
    """Return the quadratic statistic and its degrees of freedom, with party's order of operations.

    So choices that depend on the last bits, such as between two columns of which one is a multiple of the other, are
    the same as in an R with the reference version of LAPACK (`mcce.trees.ctree.svd_kernels`).
    """
    centred, sigma = linear_statistic(x, y)
    varies = np.diag(sigma) > 0
    if not varies.any():
        return 0.0, 0
    left, values, right = decompose(sigma[np.ix_(varies, varies)])
    kept = values > TOLERANCE * max(1.0, values[0])
    inverse = _sum(right[kept, None, :] * (left.T[kept] * (1 / values[kept, None]))[:, :, None])
    centred = centred[varies]
    return float(_sum(_sum(centred[:, None] * inverse.T) * centred)), int(kept.sum())


def chi_square(statistic: Floats, freedom: Ints) -> Floats:
    """Return one minus the p-value of a chi-square statistic; 0 for no degrees of freedom.

    Statistics are rounded to 40 bits. Otherwise, of two statistics that differ by rounding only, errors of the p-value
    would sometimes give the smaller one the larger criterion. Rounded, their criteria are equal, and the larger
    statistic decides.
    """
    from scipy.special import chdtrc  # scipy takes long to import

    mantissa, exponent = np.frexp(np.maximum(statistic, 0.0))
    rounded = np.ldexp(np.rint(mantissa * _BITS) / _BITS, exponent)
    criterion: Floats = np.where(freedom > 0, 1.0 - chdtrc(np.maximum(freedom, 1), rounded), 0.0)
    return criterion


def maximum(x: Floats, y: Floats) -> tuple[float, float]:
    """Return the maximum statistic and the probability of a smaller one under independence."""
    centred, sigma = linear_statistic(x, y)
    varies = np.diag(sigma) > TOLERANCE
    if not varies.any():
        return 0.0, 0.0
    deviation = np.sqrt(np.diag(sigma)[varies])
    bound = float((np.abs(centred[varies]) / deviation).max())
    return bound, all_within(sigma[np.ix_(varies, varies)] / np.outer(deviation, deviation), bound)


def all_within(correlation: Floats, bound: float) -> float:
    """Return the probability that correlated standard normal variables are all within +- bound.

    With correlation = LL', each variable is a linear form of the first few independent ones, and bounds the last of
    them given those before it. So they are drawn one after the other, each inside its bounds.
    """
    from scipy.special import ndtr, ndtri

    factor = _pivoted_cholesky(correlation)
    last = factor.shape[1] - 1 - np.argmax(np.abs(factor[:, ::-1]) > _SMALLEST_PIVOT, axis=1)
    if factor.shape[1] == 1:  # one variable and its copies
        return float(2 * ndtr(bound) - 1)
    lattice = np.modf(np.outer(np.arange(1, _POINTS + 1), np.sqrt(_primes(factor.shape[1]))))[0]
    unit = np.abs(2 * lattice - 1)
    drawn = np.empty_like(unit)
    probability = np.ones(_POINTS)
    for k in range(factor.shape[1]):
        forms = factor[last == k]
        shift = drawn[:, :k] @ forms[:, :k].T / forms[:, k]
        reach = np.abs(bound / forms[:, k])
        low, high = ndtr((-reach - shift).max(axis=1)), ndtr((reach - shift).min(axis=1))
        width = np.maximum(high - low, 0.0)
        probability *= width
        drawn[:, k] = ndtri(np.clip(low + unit[:, k] * width, 1e-300, 1 - 1e-16))
    return float(probability.mean())


def _pivoted_cholesky(matrix: Floats) -> Floats:
    """Return L with one column for each independent variable, rows in the order of the pivots: LL' is the matrix."""
    size = matrix.shape[0]
    order, rest = np.arange(size), np.diag(matrix).copy()
    factor = np.zeros((size, size))
    for k in range(size):
        pivot = k + int(np.argmax(rest[k:]))
        if rest[pivot] < _SMALLEST_PIVOT:
            return factor[:, :k]
        for part in (order, rest, factor):
            part[[k, pivot]] = part[[pivot, k]]
        factor[k, k] = np.sqrt(rest[k])
        factor[k + 1 :, k] = (matrix[order[k + 1 :], order[k]] - factor[k + 1 :, :k] @ factor[k, :k]) / factor[k, k]
        rest[k + 1 :] -= factor[k + 1 :, k] ** 2
    return factor


def _primes(count: int) -> Ints:
    """Return the first primes; the fractional parts of multiples of their roots fill the unit cube evenly."""
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return np.array(found)


Statistic = Literal["quadratic", "maximum"]
PValues = Literal["bonferroni", "univariate", "none"]

_NEARLY = 1 - 1e-9
_MOST_FREEDOM = 100  # above this size the last bits of a statistic are not worth a large decomposition


class _NodesAtDepth(NamedTuple):
    """The nodes at one depth of the tree: where their rows are, their tests, their cuts."""

    start: Ints
    size: Ints
    statistics: Floats
    criteria: Floats
    chosen: Ints
    cut: Floats
    goes_left: npt.NDArray[np.bool_]
    seen: npt.NDArray[np.bool_]
    cut_statistic: Floats
    found: npt.NDArray[np.bool_]
    mirrored: npt.NDArray[np.bool_]
    left_size: Ints
    missing_left: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, start: Ints, size: Ints, columns: kernels.Columns) -> _NodesAtDepth:
        m, p, most_levels = start.size, columns.kind.size, int(columns.n_levels.max(initial=0))
        return cls(
            start=start,
            size=size,
            statistics=np.zeros((m, p)),
            criteria=np.zeros((m, p)),
            chosen=np.full(m, LEAF, dtype=np.int64),
            cut=np.zeros(m),
            goes_left=np.zeros((m, most_levels), dtype=np.bool_),
            seen=np.zeros((m, most_levels), dtype=np.bool_),
            cut_statistic=np.zeros(m),
            found=np.zeros(m, dtype=np.bool_),
            mirrored=np.zeros(m, dtype=np.bool_),
            left_size=np.zeros(m, dtype=np.int64),
            missing_left=np.zeros(m, dtype=np.bool_),
        )


class _Data(NamedTuple):
    """The rows of a tree, and scratch arrays: `rows` are stored node by node, `node_of_row` is within a level."""

    columns: kernels.Columns
    response: kernels.Response
    work: kernels.Work
    rows: Int32s
    node_of_row: Int32s


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
    """Grow a conditional inference tree for `target` on the columns of `given`.

    The target must not have missing values. The parameters are those of `mcce.CtreeSampler`, and their defaults those
    of party's `ctree_control`.
    """
    if np.isnan(target.values).any():
        raise InputError(f"the target {target.feature.name!r} of a tree has missing values; model them separately.")
    announce_compiling(kernels.test_nodes)
    data = _read(given, target)
    start, size = np.zeros(1, dtype=np.int64), np.array([target.values.size])
    levels: list[_NodesAtDepth] = []
    while start.size:
        level = _NodesAtDepth.of(start, size, data.columns)
        _test(level, data, min_split, statistic, p_values)
        if max_depth is None or len(levels) < max_depth:
            chosen = _choose(level, mincriterion)
            _cut(level, data, chosen, min_leaf, minprob)
            failed = (chosen != LEAF) & ~level.found
            if failed.any():  # the variable is replaced by one other
                level.criteria[failed, chosen[failed]] = -np.inf
                _cut(level, data, np.where(failed, _choose(level, mincriterion), LEAF), min_leaf, minprob)
        levels.append(level)
        start, size = _split(level, data)
    return _assemble(levels, data)


def _test(level: _NodesAtDepth, data: _Data, min_split: int, statistic: Statistic, p_values: PValues) -> None:
    """Fill the statistics and criteria of a level's nodes."""
    freedom = np.zeros(level.statistics.shape, dtype=np.int64)
    kernels.test_nodes(
        data.columns, data.response, data.work, data.rows, level.start, level.size, max(min_split, 2),
        level.statistics, freedom,
    )  # fmt: skip
    tested = freedom != kernels.UNTESTED
    wide = tested & ((data.columns.kind != kernels.NUMBER) | (data.response.n_classes > 0))
    in_doubt = wide & (freedom <= _MOST_FREEDOM) & _is_tied(level.statistics)
    for node, j in np.argwhere((freedom == kernels.UNKNOWN) | in_doubt):
        level.statistics[node, j], freedom[node, j] = quadratic(*_wide(level, data, node, j))
    probability = chi_square(level.statistics, freedom)
    if statistic == "maximum":
        np.sqrt(level.statistics, out=level.statistics, where=level.statistics > 0)
        for node, j in np.argwhere(wide):
            level.statistics[node, j], probability[node, j] = maximum(*_wide(level, data, node, j))
    if p_values == "none":
        level.criteria[:] = level.statistics
    else:
        m = tested.sum(axis=1, keepdims=True) if p_values == "bonferroni" else 1
        level.criteria[:] = np.where(tested, probability**m, 0.0)


def _is_tied(statistics: Floats) -> npt.NDArray[np.bool_]:
    """Return which variables of a node have the same statistic as another one, up to rounding."""
    order = np.argsort(statistics, axis=1)
    ordered = np.take_along_axis(statistics, order, axis=1)
    close = (ordered[:, :-1] > 0) & (ordered[:, :-1] > _NEARLY * ordered[:, 1:])
    nothing = np.zeros((len(statistics), min(statistics.shape[1], 1)), dtype=np.bool_)
    tied = np.empty(statistics.shape, dtype=np.bool_)
    np.put_along_axis(tied, order, np.hstack([close, nothing]) | np.hstack([nothing, close]), axis=1)
    return tied


def _wide(level: _NodesAtDepth, data: _Data, node: int, j: int) -> tuple[Floats, Floats]:
    """Return predictor and response columns of a node's rows, without those in which the predictor is missing."""
    columns, response = data.columns, data.response
    rows = data.rows[level.start[node] : level.start[node] + level.size[node]]
    column = columns.values[j * columns.n_rows : (j + 1) * columns.n_rows]
    rows = rows[~np.isnan(column[rows])]
    x, y = column[rows], rows
    if columns.kind[j] != kernels.NUMBER:
        wide = x[:, None] == np.arange(columns.n_levels[j])
    else:
        wide = x[:, None] + columns.shift[j]
    if response.n_classes:
        y = response.labels[rows][:, None] == np.arange(response.n_classes)
    else:
        y = response.scores[rows][:, None]
    return wide.astype(np.float64), y.astype(np.float64)


def _choose(level: _NodesAtDepth, mincriterion: float) -> Ints:
    """Return the variable to cut each node on, or LEAF."""
    if level.criteria.shape[1] == 0:
        return np.full(level.start.size, LEAF)
    best = level.criteria.max(axis=1)
    strongest = np.where(level.criteria == best[:, None], level.statistics, -np.inf).argmax(axis=1)
    return np.where(best > mincriterion, strongest, LEAF)


def _cut(level: _NodesAtDepth, data: _Data, chosen: Ints, min_leaf: int, minprob: float) -> None:
    """Cut each node on the chosen variable, if there is one and it has an admissible cut."""
    if (chosen == LEAF).all():
        return
    kernels.sort_level(data.columns, chosen, data.node_of_row, level.start.copy(), data.work.ordered)
    kernels.cut_nodes(
        data.columns, data.response, data.work, data.rows, level.start, level.size, chosen, float(min_leaf),
        float(minprob), level.cut, level.goes_left, level.seen, level.cut_statistic, level.found,
    )  # fmt: skip
    cut = (chosen != LEAF) & level.found
    level.chosen[cut] = chosen[cut]


def _split(level: _NodesAtDepth, data: _Data) -> tuple[Ints, Ints]:
    """Partition the rows of the nodes that are cut; return the first rows of the children, and their numbers."""
    kernels.split_nodes(
        data.columns, data.work, data.rows, level.start, level.size, level.chosen, level.cut, level.goes_left,
        level.mirrored, level.left_size, level.missing_left, data.node_of_row,
    )  # fmt: skip
    start, size, left_size = (part[level.found] for part in (level.start, level.size, level.left_size))
    starts, sizes = np.stack([start, start + left_size], axis=1), np.stack([left_size, size - left_size], axis=1)
    return starts.ravel(), sizes.ravel()


def _assemble(levels: list[_NodesAtDepth], data: _Data) -> CtreeTree:
    """Assemble the levels to a tree: node 0 is the root, the children of a node are adjacent."""
    nodes = _NodesAtDepth(*(np.concatenate(parts) for parts in zip(*levels)))
    left = np.where(nodes.found, 2 * np.cumsum(nodes.found) - 1, 0).astype(np.int32)
    n_levels = np.zeros(left.size, dtype=np.int64)  # of the factor that a node is cut on
    inner = np.flatnonzero(nodes.found)
    is_factor = data.columns.kind[nodes.chosen[inner]] == kernels.FACTOR
    n_levels[inner[is_factor]] = data.columns.n_levels[nodes.chosen[inner[is_factor]]]
    cut = np.where(nodes.found & (n_levels == 0), nodes.cut, np.nan)
    by_set = np.where(n_levels > 2, n_levels, 0)
    nothing = np.empty(0, dtype=np.bool_)

    def flat(by_level: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        return np.concatenate([nothing, *(by_level[node, : by_set[node]] for node in np.flatnonzero(by_set))])

    impurity = np.empty(left.size)
    means, variances = data.work.mean, data.work.variance
    kernels.impurities(data.response, data.rows, nodes.start, nodes.size, means, variances, impurity)
    return CtreeTree(
        feature=nodes.chosen.astype(np.int32),
        threshold=np.where(np.isnan(cut), np.where(n_levels == 2, 0.5, 0.0), np.nextafter(cut, np.inf)),
        left=left,
        missing_left=nodes.missing_left,
        mask_at=np.where(by_set > 0, np.cumsum(by_set) - by_set, -1).astype(np.int32),
        masks=flat(nodes.goes_left),
        start=nodes.start.astype(np.int32),
        size=nodes.size.astype(np.int32),
        impurity=impurity,
        donors=data.rows,
        number=_numbers(left, left + nodes.mirrored, [level.start.size for level in levels]),
        cut=cut,
        seen=flat(nodes.seen),
        cut_statistic=nodes.cut_statistic,
        criterion=nodes.criteria.max(axis=1, initial=0.0),
        statistics=nodes.statistics,
        criteria=nodes.criteria,
    )


def _numbers(left: Int32s, first: Int32s, sizes: list[int]) -> Int32s:
    """Return the nodes' numbers from 1, parents before children, the `first` of these before the other.

    `sizes` has the number of nodes of each level.
    """
    ends = np.cumsum(sizes)
    inner = [begin + np.flatnonzero(left[begin:end]) for begin, end in zip(ends - sizes, ends)]
    below = np.ones(left.size, dtype=np.int32)  # nodes of the subtree
    for nodes in reversed(inner):
        below[nodes] += below[left[nodes]] + below[left[nodes] + 1]
    number = np.ones(left.size, dtype=np.int32)
    for nodes in inner:
        second = 2 * left[nodes] + 1 - first[nodes]
        number[first[nodes]] = number[nodes] + 1
        number[second] = number[nodes] + 1 + below[first[nodes]]
    return number


def _read(given: Table, target: Column) -> _Data:
    """Return the columns, the response and scratch arrays."""
    features, n = given.features, target.values.size
    kind = np.array([_kind(feature) for feature in features], dtype=np.int64)
    ranking = ColumnRanks.from_table(given)  # before the next line: shared arrays are made under one lock
    orders, slot = given.shared("orders", lambda root: _orders(root, ranking))
    columns = kernels.Columns(
        values=given.matrix.ravel(order="F"),
        n_rows=n,
        kind=kind,
        n_levels=np.where(kind == kernels.LOGICAL, 2, np.array([f.n_levels for f in features], dtype=np.int64)),
        shift=np.array([_first_score(f) for f in features], dtype=np.float64),
        has_missing=np.isnan(given.matrix).any(axis=0),
        orders=orders,
        slot=slot[list(given.positions)],
    )
    if target.feature.kind == "categorical":
        response = kernels.Response(np.empty(0), target.values.astype(np.int32), target.feature.n_levels)
    else:
        scores = np.ascontiguousarray(target.values + _first_score(target.feature))
        response = kernels.Response(scores, np.empty(0, dtype=np.int32), 0)
    work = kernels.scratch(n, max(response.n_classes, 1), int(columns.n_levels.max(initial=0)))
    return _Data(columns, response, work, np.arange(n, dtype=np.int32), np.zeros(n, dtype=np.int32))


def _orders(table: Table, ranking: ColumnRanks) -> tuple[Int32s, Ints]:
    """Return the rows sorted by each column with an order, ties in row order, and the places of the columns."""
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


def _kind(feature: Feature) -> int:
    """Return the kind of a predictor for the kernels; numbers of dtype bool are a logical."""
    if feature.kind == "categorical":
        return kernels.FACTOR
    return kernels.LOGICAL if feature.is_numeric and is_logical(feature.dtype) else kernels.NUMBER


def _first_score(feature: Feature) -> float:
    """Return the score of the lowest level of an ordered factor; two levels are 0 and 1. A number is its own score."""
    return 1.0 if feature.kind == "ordered" and feature.n_levels != 2 else 0.0
