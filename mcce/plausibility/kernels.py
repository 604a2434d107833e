"""Trees for the conditional of one column given the others, on binned cells; and distances to the nearest rows.

Cells are stored by column: `bins[j, i]` is the bin of column j of row i. A node tests whether the bin of a column is at
most `cut`, or (`single`) equal to `cut`. Rows that pass go to the left child, the others to the node after it.

The trees differ from those of `mcce.trees.cart`: they split by a chi-square test, which detects changes of spread and
of modes where CART detects changes of the mean, and they are grown on bytes, one for each column and fold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mcce.base.compiling import entry, inner, reordered

# mypy: disable-error-code="no-untyped-def"

LEAF = -1
TOGETHER = 512  # neighbours whose distances are computed before the nearest are compared with a bound


@inner
def _chi_square(inside, n_inside, total, expected, size):
    """Return the chi-square statistic of two sides, given the weight of each class on one of them, `inside`."""
    statistic = 0.0
    for c in range(total.size):
        gap = inside[c] - n_inside * total[c] / size
        statistic += gap * gap * expected[c]
    return statistic * (size / (n_inside * (size - n_inside)))


@inner
def best_question(histogram, held, total, expected, size, is_ordered, fewest):
    """Return the largest chi-square statistic of a split by one column, its bin, and whether that is a single bin.

    `histogram[b, c]` is the weight of class c in bin b, `held[b]` whether the bin has rows, `total[c]` the weight of
    the class in the node, `expected[c]` one over its share.
    """
    best = 0.0
    cut = -1
    single = False
    n_classes = total.size
    running = histogram.shape[0] - 1  # the last bin is never used: it holds the running sums
    for c in range(n_classes):
        histogram[running, c] = 0.0
    left = 0.0
    for b in range(running):
        if not held[b]:
            continue
        here = 0.0
        for c in range(n_classes):
            here += histogram[b, c]
        if here == 0.0:
            continue
        left += here
        if is_ordered:
            for c in range(n_classes):
                histogram[running, c] += histogram[b, c]
            if left >= fewest and size - left >= fewest:
                statistic = _chi_square(histogram[running], left, total, expected, size)
                if statistic > best:
                    best = statistic
                    cut = b
                    single = False
        if (b == 0 or not is_ordered) and here >= fewest and size - here >= fewest:
            statistic = _chi_square(histogram[b], here, total, expected, size)
            if statistic > best:
                best = statistic
                cut = b
                single = True
    return best, cut, single


@reordered
def may_exceed(best, histogram, held, running, expected, size, is_ordered, fewest):
    """Return False if no split by one column has a chi-square statistic above `best`, up to rounding.

    The arguments are those of `best_question`; `running` is working memory. The statistic is computed as
    (sum of inside[c]^2 expected[c] - n_inside^2) size / (n_inside (size - n_inside)), which needs no division for each
    class. The classes are summed in any order; the slack is larger than the rounding error.
    """
    slack = 1e-12 * size * size
    fewest -= 1e-9 * size
    running[:] = 0.0
    left = 0.0
    for b in range(held.size):
        if not held[b]:
            continue
        here, alone, squares = 0.0, 0.0, 0.0
        for c in range(running.size):
            weight = histogram[b, c]
            here += weight
            running[c] += weight
            alone += weight * weight * expected[c]
            squares += running[c] * running[c] * expected[c]
        left += here
        enough = is_ordered and left >= fewest and size - left >= fewest
        if enough and (squares - left * left) * size > left * (best * (size - left) - slack):
            return True
        enough = (b == 0 or not is_ordered) and here >= fewest and size - here >= fewest
        if enough and (alone - here * here) * size > here * (best * (size - here) - slack):
            return True
    return False


class GrowingNodes(NamedTuple):
    """The nodes of a growing tree; a node has the rows `begin` to `end` (exclusive)."""

    column: npt.NDArray[np.int32]
    cut: npt.NDArray[np.uint8]
    single: npt.NDArray[np.bool_]
    left: npt.NDArray[np.int32]
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    level: npt.NDArray[np.int64]

    @classmethod
    def room_for(cls, most: int) -> GrowingNodes:
        """Return empty arrays for `n` nodes."""
        return cls(
            np.empty(most, np.int32),
            np.zeros(most, np.uint8),
            np.zeros(most, np.bool_),
            np.zeros(most, np.int32),
            *np.empty((3, most), np.int64),
        )


class GrowingRoom(NamedTuple):
    """Working memory: positions of rows, their classes and weights, and counts of one node by bin and class."""

    rows: npt.NDArray[np.uint32]
    spare: npt.NDArray[np.uint32]
    of_rows: npt.NDArray[np.uint32]
    weights: npt.NDArray[np.float64]
    histogram: npt.NDArray[np.float64]
    held: npt.NDArray[np.bool_]
    total: npt.NDArray[np.float64]
    expected: npt.NDArray[np.float64]
    running: npt.NDArray[np.float64]

    @classmethod
    def of(cls, n_rows: int, n_bins: int, n_classes: int) -> GrowingRoom:
        """Return working memory for trees of `n_rows` rows."""
        histogram, held = np.zeros((n_bins + 1, n_classes)), np.zeros(n_bins, np.bool_)
        rows, spare, of_rows = np.empty((3, n_rows), np.uint32)
        total, expected, running = np.empty((3, n_classes))
        return cls(rows, spare, of_rows, np.empty(n_rows), histogram, held, total, expected, running)


@entry
def grow_cells(bins, tried, classes, weight, ordered, needed, fewest, depth, nodes, room, leaf):
    """Grow a tree for the classes of a column; return its number of nodes. Write the leaf of each row to `leaf`.

    `tried` are the columns by which nodes may be split. A node is split where the chi-square statistic is largest, if
    that is above `needed[d]`, where d + 1 is the number of classes in the node, and each side has a weight of at least
    `fewest`.
    """
    column, cut, single, left, begin, end, level = nodes
    rows, spare, of_rows, weights, histogram, held, total, expected, running = room
    n = weight.size
    for i in range(n):
        rows[i] = i
    begin[0] = 0
    end[0] = n
    level[0] = 0
    n_nodes = 1
    node = 0
    n_classes = total.size
    most = column.size
    while node < n_nodes:
        first, last = begin[node], end[node]
        column[node] = LEAF
        for c in range(n_classes):
            total[c] = 0.0
        for a in range(first, last):
            of_rows[a], weights[a] = classes[rows[a]], weight[rows[a]]
            total[of_rows[a]] += weights[a]
        size = 0.0
        freedom = -1
        for c in range(n_classes):
            size += total[c]
            freedom += total[c] > 0.0
        best = 0.0
        if freedom > 0 and size >= 2.0 * fewest and level[node] < depth and n_nodes + 2 <= most:
            for c in range(n_classes):
                expected[c] = size / total[c] if total[c] > 0.0 else 0.0
            best = needed[freedom]
            for j in tried:
                cells = bins[j]
                for a in range(first, last):
                    b = cells[rows[a]]
                    histogram[b, of_rows[a]] += weights[a]
                    held[b] = True
                if may_exceed(best, histogram, held, running, expected, size, ordered[j], fewest):
                    statistic, at, alone = best_question(histogram, held, total, expected, size, ordered[j], fewest)
                    if statistic > best:
                        best = statistic
                        column[node] = j
                        cut[node] = at
                        single[node] = alone
                for b in range(held.size):
                    if held[b]:  # most bins of a small node have no rows and need no reset
                        held[b] = False
                        for c in range(n_classes):
                            histogram[b, c] = 0.0
        if column[node] == LEAF:
            for a in range(first, last):
                leaf[rows[a]] = node
        else:
            j = column[node]
            kept = first
            others = 0
            for a in range(first, last):
                i = rows[a]
                value = bins[j, i]
                if value == cut[node] or (not single[node] and value < cut[node]):
                    rows[kept] = i
                    kept += 1
                else:
                    spare[others] = i
                    others += 1
            for a in range(others):
                rows[kept + a] = spare[a]
            left[node] = n_nodes
            begin[n_nodes], end[n_nodes] = first, kept
            begin[n_nodes + 1], end[n_nodes + 1] = kept, last
            level[n_nodes] = level[n_nodes + 1] = level[node] + 1
            n_nodes += 2
        node += 1
    return n_nodes


@entry
def associate(classes, weight, table, out):
    """Write by how many standard deviations the chi-square statistic of each pair of columns is above its mean.

    `classes` has the class of each cell, column by column; `table` is working memory for the weights of two classes.
    """
    n_classes = table.shape[0] - 1  # the last row and the last column hold the sums
    for i in range(classes.shape[0]):
        for j in range(i):
            table[:] = 0.0
            for r in range(weight.size):
                table[classes[i, r], classes[j, r]] += weight[r]
            rows, columns, size = 0, 0, 0.0
            for a in range(n_classes):
                for b in range(n_classes):
                    table[a, n_classes] += table[a, b]
                    table[n_classes, b] += table[a, b]
                size += table[a, n_classes]
                rows += table[a, n_classes] > 0.0
            statistic = 0.0
            for b in range(n_classes):
                columns += table[n_classes, b] > 0.0
                for a in range(n_classes):
                    if table[a, b] > 0.0:
                        statistic += table[a, b] * table[a, b] / (table[a, n_classes] * table[n_classes, b])
            freedom = max((rows - 1.0) * (columns - 1.0), 1.0)
            out[i, j] = out[j, i] = (size * (statistic - 1.0) - freedom) / np.sqrt(2.0 * freedom)


@entry
def find_leaves(bins, column, cut, single, left, leaf):
    """Write the leaf of every row, given by its bins, below the node in `leaf`."""
    for i in range(leaf.size):
        node = leaf[i]
        while column[node] != LEAF:
            value = bins[column[node], i]
            goes_left = value == cut[node] or (not single[node] and value < cut[node])
            node = left[node] + (0 if goes_left else 1)
        leaf[i] = node


@inner
def bin_of(value, edges, low, high, last):
    """Return the bin of a cell whose column has edges[low:high]: 0 for missing, else 1 + the number of edges below."""
    if value != value:
        return 0
    begin = low
    while low < high:
        middle = (low + high) // 2
        if edges[middle] < value:
            low = middle + 1
        else:
            high = middle
    return min(low - begin + 1, last)


@inner
def differ(x, y):
    """Return whether two cells differ; missing values are equal to each other."""
    return x != y and not (x != x and y != y)


@inner
def beyond(value, low, high, reach):
    """Return the distance of a value from a range, in units of its length `reach`; 0 inside, or if it is missing."""
    below, above = low - value, value - high
    far = below if below > above else above
    return far / reach if far > 0.0 else 0.0


class CellBins(NamedTuple):
    """The bins of the columns, and the ranges of the rows outside a fold.

    edges, first : the edges of all columns, one column after the other, and where each column's begin.
    low, high, reach : by column, the range and its length.
    """

    edges: npt.NDArray[np.float64]
    first: npt.NDArray[np.int64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    reach: npt.NDArray[np.float64]


class CellTrees(NamedTuple):
    """The trees of a fold, their nodes one after the other; `share[left[leaf], bin]` is the share of a cell."""

    targets: npt.NDArray[np.int32]
    roots: npt.NDArray[np.int32]
    column: npt.NDArray[np.int32]
    cut: npt.NDArray[np.uint8]
    single: npt.NDArray[np.bool_]
    left: npt.NDArray[np.int32]
    share: npt.NDArray[np.float64]


@inner
def child(bins, trees, node):
    """Return the child node of a row, given by its bins."""
    value = bins[trees.column[node]]
    goes_left = value == trees.cut[node] or (not trees.single[node] and value < trees.cut[node])
    return trees.left[node] + (0 if goes_left else 1)


class MadeRows(NamedTuple):
    """Rows made from others: row i equals row places[i] of `origins` except for some cells."""

    rows: npt.NDArray[np.float64]
    places: npt.NDArray[np.int64]
    origins: npt.NDArray[np.float64]


class OwnCells(NamedTuple):
    """The factuals of rows, and their shares by tree; `of` is the factual of each origin.

    Without factuals, `rows` has one row of missing values, and `share` is infinite.
    """

    rows: npt.NDArray[np.float64]
    share: npt.NDArray[np.float64]
    of: npt.NDArray[np.int64]


class KnownCells(NamedTuple):
    """Cached results of the trees for some origins, by slot.

    holds : the origin of each slot, -1 for an empty slot.
    bins : the bins of its cells.
    share, log_share : its share by tree, and the logarithm.
    used : by column and tree, whether the column is the tree's target or is used on the origin's path.
    """

    holds: npt.NDArray[np.int64]
    bins: npt.NDArray[np.uint8]
    share: npt.NDArray[np.float64]
    log_share: npt.NDArray[np.float64]
    used: npt.NDArray[np.bool_]


@inner
def look_up_origin(row, bins, trees, last, own_bins, share, used):
    """Write the shares of an origin by tree, and the columns that each tree uses on its path."""
    used[:] = False
    for j in range(row.size):
        own_bins[j] = bin_of(row[j], bins.edges, bins.first[j], bins.first[j + 1], last)
    for a in range(trees.targets.size):
        node = np.int64(trees.roots[a])
        used[trees.targets[a], a] = True
        while trees.column[node] != LEAF:
            used[trees.column[node], a] = True
            node = child(own_bins, trees, node)
        share[a] = trees.share[trees.left[node], own_bins[trees.targets[a]]]


@entry
def score_cells(made, some, own, bins, trees, last, known, room, affected, out):
    """Write the least share of the cells of some rows, the sum of the log shares, and the distance from the ranges.

    A tree that uses no changed cell gives the row the share of its origin. The least share omits cells that equal the
    factual's and are no less likely than there; the distance from the ranges omits cells that equal the factual's.
    """
    rows, places, origins = made
    for i in some:
        f = places[i]
        g = own.of[f]
        slot = f % known.holds.size
        if known.holds[slot] != f:
            look_up_origin(origins[f], bins, trees, last, known.bins[slot], known.share[slot], known.used[slot])
            known.holds[slot] = f
            for a in range(affected.size):
                known.log_share[slot, a] = np.log(known.share[slot, a])
        affected[:] = False
        farthest = 0.0
        for j in range(rows.shape[1]):
            x = rows[i, j]
            room[j] = known.bins[slot, j]
            if differ(x, own.rows[g, j]):
                farthest = max(farthest, beyond(x, bins.low[j], bins.high[j], bins.reach[j]))
            if differ(x, origins[f, j]):
                room[j] = bin_of(x, bins.edges, bins.first[j], bins.first[j + 1], last)
                for a in range(affected.size):
                    affected[a] |= known.used[slot, j, a]
        lowest, total = 1.0, 0.0
        for a in range(affected.size):
            j = trees.targets[a]
            share, log_share = known.share[slot, a], known.log_share[slot, a]
            if affected[a]:
                node = np.int64(trees.roots[a])
                while trees.column[node] != LEAF:
                    node = child(room, trees, node)
                share = trees.share[trees.left[node], room[j]]
                log_share = np.log(share)
            total += log_share
            if share < own.share[g, a] or differ(rows[i, j], own.rows[g, j]):
                lowest = min(lowest, share)
        out[0, i], out[1, i], out[2, i] = lowest, total, farthest


@inner
def add_steps(values, x, scale, factor, sums):
    """Add `factor` times the steps of some values of one column to x.

    A step is |x - y| times the column's scale, or 1 for any change if the scale is 0; 1 if one of the two is missing.
    """
    if scale == 0.0 or x != x:
        for r in range(values.size):
            y = values[r]
            sums[r] += factor if x != y and not (x != x and y != y) else 0.0
    else:
        for r in range(values.size):
            step = abs(values[r] - x) * scale
            sums[r] += factor * (1.0 if step != step else step)


@inner
def insert_nearest(nearest, value):
    """Insert a value into the sorted smallest values."""
    a = nearest.size - 1
    if value < nearest[a]:
        while a > 0 and nearest[a - 1] > value:
            nearest[a] = nearest[a - 1]
            a -= 1
        nearest[a] = value


class KnownDistances(NamedTuple):
    """Cached distances of some origins to the neighbours, by slot.

    holds : the origin of each slot, -1 for an empty slot.
    sums : the distance to each neighbour.
    near : the mean of the nearest, NaN if it is unknown.
    """

    holds: npt.NDArray[np.int64]
    sums: npt.NDArray[np.float64]
    near: npt.NDArray[np.float64]


@inner
def mean_of(nearest, n):
    """Return the mean of the smallest of n numbers, of which `nearest` has the smallest."""
    total = 0.0
    for a in range(min(nearest.size, n)):
        total += nearest[a]
    return max(total / min(nearest.size, n), 0.0)


@inner
def mean_of_smallest(sums, n, nearest):
    """Return the mean of the smallest of n numbers, infinite if n is 0; `nearest` is working memory."""
    nearest[:] = np.inf
    for r in range(n):
        insert_nearest(nearest, sums[r])
    return mean_of(nearest, n) if n > 0 else np.inf


@entry
def mean_of_nearest(made, some, others, scale, enough, known, sums, nearest, out):
    """Write the mean distance of some rows to their nearest of `others`, which come column by column.

    The distances of the origin are cached, or computed first; those of the row are updated for the changed cells only,
    or computed from scratch if most cells differ. If an upper bound is at most enough[i], it is written instead: the
    mean distance of the origin plus the changes (the triangle inequality), or the mean distance to the nearest of the
    first others.
    """
    rows, places, origins = made
    n, n_columns = others.shape[1], origins.shape[1]
    for i in some:
        f = places[i]
        slot = f % known.holds.size
        n_changed, steps = 0, 0.0
        for j in range(n_columns):
            x, old = rows[i, j], origins[f, j]
            if differ(x, old):
                n_changed += 1
                step = abs(x - old) * scale[j] if scale[j] > 0.0 else 1.0
                steps += step if step == step else 1.0 if x != x else np.inf
        updated = 2 * n_changed <= n_columns
        base = known.sums[slot]
        if updated:
            if known.holds[slot] != f:
                base[:n] = 0.0
                for j in range(n_columns):
                    add_steps(others[j], origins[f, j], scale[j], 1.0, base)
                known.holds[slot] = f
                known.near[slot] = np.nan
            if enough[i] > 0.0 and known.near[slot] != known.near[slot]:
                known.near[slot] = mean_of_smallest(base, n, nearest)
            if known.near[slot] + steps <= enough[i]:
                out[i] = known.near[slot] + steps
                continue
        nearest[:] = np.inf
        out[i] = np.inf
        for first in range(0, n, TOGETHER):
            end = min(first + TOGETHER, n)
            for r in range(first, end):
                sums[r] = base[r] if updated else 0.0
            for j in range(n_columns):
                if not updated:
                    add_steps(others[j, first:end], rows[i, j], scale[j], 1.0, sums[first:end])
                elif differ(rows[i, j], origins[f, j]):
                    add_steps(others[j, first:end], origins[f, j], scale[j], -1.0, sums[first:end])
                    add_steps(others[j, first:end], rows[i, j], scale[j], 1.0, sums[first:end])
            for r in range(first, end):
                insert_nearest(nearest, sums[r])
            out[i] = mean_of(nearest, end)
            if out[i] <= enough[i]:
                break


@entry
def move_origins(places, rows, origins, others, scale, known):
    """Replace some origins by other rows, and update their distances for the cells that differ."""
    for i in range(places.size):
        f = places[i]
        slot = f % known.holds.size
        for j in range(origins.shape[1]):
            if differ(rows[i, j], origins[f, j]) and known.holds[slot] == f:
                add_steps(others[j], origins[f, j], scale[j], -1.0, known.sums[slot])
                add_steps(others[j], rows[i, j], scale[j], 1.0, known.sums[slot])
                known.near[slot] = np.nan
            origins[f, j] = rows[i, j]


class NormalScores(NamedTuple):
    """Normal scores of columns (`mcce.plausibility.linear.Linear`)."""

    knots: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]
    first: npt.NDArray[np.int32]
    levels: npt.NDArray[np.int32]
    first_level: npt.NDArray[np.int32]
    number: npt.NDArray[np.int32]
    missing: npt.NDArray[np.int32]
    deviation: npt.NDArray[np.float64]


class Precision(NamedTuple):
    """The precision of the scores in a fold.

    matrix, spread : the precision P, and one over the roots of its diagonal.
    product, square : P z and z' P z of `row`, a row of missing values.
    """

    matrix: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]
    row: npt.NDArray[np.float64]
    product: npt.NDArray[np.float64]
    square: float


class KnownNormalScores(NamedTuple):
    """Cached P z and z' P z of some origins, by slot; `holds` is the origin of each slot, -1 for an empty slot."""

    holds: npt.NDArray[np.int64]
    product: npt.NDArray[np.float64]
    square: npt.NDArray[np.float64]


@inner
def indicator_of(x, j, scores):
    """Return the position of the indicator of a cell, -1 for none."""
    if x != x:
        return scores.missing[j]
    if scores.number[j] >= 0 or not 0 <= x < scores.first_level[j + 1] - scores.first_level[j]:
        return -1
    return scores.levels[scores.first_level[j] + int(x)]


@inner
def score_of(x, j, scores):
    """Return the normal score of a number, 0 if it is missing; linear between knots."""
    low, high = scores.first[j], scores.first[j + 1] - 1
    if x != x or high < low:
        return 0.0
    if x <= scores.knots[low]:
        return scores.scores[low]
    if x >= scores.knots[high]:
        return scores.scores[high]
    while high - low > 1:
        middle = (low + high) // 2
        if scores.knots[middle] <= x:
            low = middle
        else:
            high = middle
    share = (x - scores.knots[low]) / (scores.knots[high] - scores.knots[low])
    return scores.scores[low] + share * (scores.scores[high] - scores.scores[low])


@inner
def change_cells(old, new, scores, precision, product):
    """Replace a row whose P z is `product` by another one; return the increase of z' P z."""
    added = 0.0
    for j in range(old.size):
        if differ(old[j], new[j]):
            for part in range(3):  # the score of a number, the indicator of the old cell, that of the new one
                if part == 0:
                    place, delta = scores.number[j], score_of(new[j], j, scores) - score_of(old[j], j, scores)
                else:
                    place, delta = indicator_of(old[j] if part == 1 else new[j], j, scores), 2.0 * part - 3.0
                if place >= 0:
                    delta /= scores.deviation[place]
                    added += delta * (2.0 * product[place] + delta * precision[place, place])
                    for e in range(product.size):
                        product[e] += delta * precision[place, e]
    return added


@entry
def linear_parts(made, some, scores, precision, known, product, residual, square):
    """Write the largest absolute residual of some rows, and their squared Mahalanobis distance.

    The scores of changed cells are added to those of the origin.
    """
    rows, places, origins = made
    for i in some:
        f = places[i]
        slot = f % known.holds.size
        if known.holds[slot] != f:
            for e in range(product.size):
                known.product[slot, e] = precision.product[e]
            known.square[slot] = precision.square + change_cells(
                precision.row, origins[f], scores, precision.matrix, known.product[slot]
            )
            known.holds[slot] = f
        for e in range(product.size):
            product[e] = known.product[slot, e]
        square[i] = known.square[slot] + change_cells(origins[f], rows[i], scores, precision.matrix, product)
        residual[i] = 0.0
        for j in range(rows.shape[1]):
            place = scores.number[j]
            if place >= 0 and rows[i, j] == rows[i, j]:
                residual[i] = max(residual[i], abs(product[place]) * precision.spread[place])
