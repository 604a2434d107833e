"""Numba kernels that grow conditional inference trees level by level: tests, cuts, partition.

The response has one column (a number, or the scores of an ordered factor) or one column for each class (0/1). All rows
of a node are visited in their original order, and all sums are sequential, so that every statistic that decides a
choice has the same last bit as party's.

1. `test_nodes`: for each node of a level and each variable the quadratic statistic of the test of independence, and
   its degrees of freedom. With D = T - mu (`mcce.trees.ctree.tree`) the Moore-Penrose inverse has a closed
   form, because the covariance is a Kronecker product: sums of D^2 / (n_l p_k) over levels l and classes k. If
   singular values might fall below the tolerance, which the closed form does not detect, the degrees of freedom are
   -1, and numpy computes the statistic.
2. `sort_level`: the rows of each node in the order of the variable that it is cut on.
3. `cut_nodes`: the cut of a node with the largest standardised two-sample statistic; levels are ordered by their own
   standardised statistic first.
4. `split_nodes`: the rows of a node, partitioned stably.

A row in which a variable is missing is left out of the variable's test and cut; it goes to the larger child, and to
party's right one if they are equal.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from mcce.base.compiling import cached

NUMBER, FACTOR, LOGICAL = 0, 1, 2  # a logical is tested as two levels and cut as the numbers 0 and 1
UNKNOWN = -1  # degrees of freedom without a closed form
UNTESTED = -2  # degrees of freedom of a variable with too few values in a node
TOLERANCE = 1e-10
NEARLY = 1.0 - 1e-9
MOST_CANCELLED = 1e5  # sum of squares over sum of squares around the mean: above this, rounding decides on the rank,
ALL_CANCELLED = 1e14  # and above this on the statistic

Columns = namedtuple("Columns", "values n_rows kind n_levels shift has_missing orders slot")
Response = namedtuple("Response", "scores labels n_classes")
Work = namedtuple(
    "Work",
    "kept spare ordered value_of_row mean variance own_mean own_variance left linear count key order rank place "
    "sort_key sort_index",
)


def scratch(n: int, width: int, most_levels: int) -> Work:
    """Return scratch arrays for `n` rows and `width` response columns."""
    return Work(
        kept=np.empty(n, dtype=np.int32),
        spare=np.empty(n, dtype=np.int32),
        ordered=np.empty(n, dtype=np.int32),
        value_of_row=np.empty(n),
        mean=np.empty(width),
        variance=np.empty(width),
        own_mean=np.empty(width),
        own_variance=np.empty(width),
        left=np.empty(width),
        linear=np.empty((most_levels + 1, width)),
        count=np.empty(most_levels + 1),
        key=np.empty(most_levels + 1),
        order=np.empty(most_levels + 1, dtype=np.int32),
        rank=np.empty(most_levels + 1, dtype=np.int64),
        place=np.empty(most_levels + 2, dtype=np.int64),
        sort_key=np.empty(n),
        sort_index=np.empty(n, dtype=np.int32),
    )


_inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
_entry = cached(nogil=True, error_model="numpy")


# ---------------------------------------------------------------- step 1: tests


@_inner
def _complete_rows(values, at, rows, start, end, kept):
    """Collect the node's rows in which a column is not missing; return their number."""
    n = 0
    for i in range(start, end):
        if not np.isnan(values[at + rows[i]]):
            kept[n] = rows[i]
            n += 1
    return n


@_inner
def _response_means(rows, start, end, response, mean):
    n = end - start
    for k in range(mean.size):
        mean[k] = 0.0
    for i in range(start, end):
        if response.n_classes:
            mean[response.labels[rows[i]]] += 1.0
        else:
            mean[0] += response.scores[rows[i]]
    for k in range(mean.size):
        mean[k] /= n


@_inner
def _response_variances(rows, start, end, response, mean, variance):
    """Variance of each response column: squares summed row by row."""
    n = end - start
    for k in range(mean.size):
        variance[k] = 0.0
    for i in range(start, end):
        if response.n_classes:
            label = response.labels[rows[i]]
            for k in range(mean.size):
                centred = (1.0 if k == label else 0.0) - mean[k]
                variance[k] += centred * centred
        else:
            centred = response.scores[rows[i]] - mean[0]
            variance[0] += centred * centred
    for k in range(mean.size):
        variance[k] /= n


@_inner
def _least_and_most(shares, n_shares):
    """Return the smallest share above 0, the largest one, and the number of those above 0.

    The non-zero eigenvalues of diag(p) - pp' lie between the first two (they interlace with p).
    """
    least, most, present = np.inf, 0.0, 0
    for k in range(n_shares):
        if shares[k] > 0.0:
            least = min(least, shares[k])
            most = max(most, shares[k])
            present += 1
    return least, most, present


@_inner
def _sum_number(values, at, shift, rows, start, end, response, linear):
    """Add up x + shift and its squares; `linear` gets the products with the response columns."""
    total = squares = 0.0
    for k in range(linear.shape[1]):
        linear[0, k] = 0.0
    for i in range(start, end):
        row = rows[i]
        x = values[at + row] + shift
        total += x
        squares += x * x
        if response.n_classes:
            linear[0, response.labels[row]] += x
        else:
            linear[0, 0] += x * response.scores[row]
    return total, squares


@_inner
def _varies(values, at, rows, start, end):
    low = high = values[at + rows[start]]
    for i in range(start + 1, end):
        low, high = min(low, values[at + rows[i]]), max(high, values[at + rows[i]])
    return low < high


@_inner
def _test_number(values, at, shift, rows, start, end, response, mean, variance, linear):
    """Statistic and degrees of freedom for a number, or for the scores of an ordered factor.

    If x varies so far from 0 that its variance would be lost, x is taken relative to its value in the first row.
    """
    n = end - start
    more, less = n / (n - 1.0), 1.0 / (n - 1.0)
    total, squares = _sum_number(values, at, shift, rows, start, end, response, linear)
    spread = more * squares - less * total * total
    if more * squares > ALL_CANCELLED * spread and _varies(values, at, rows, start, end):
        shift = -values[at + rows[start]]
        total, squares = _sum_number(values, at, shift, rows, start, end, response, linear)
        spread = more * squares - less * total * total
    if not response.n_classes:
        spread = more * variance[0] * squares - less * variance[0] * total * total
        if not spread > TOLERANCE:
            return 0.0, 0
        centred = linear[0, 0] - total * mean[0]
        return centred * (1.0 / spread) * centred, 1
    least, most, present = _least_and_most(mean, mean.size)
    if present < 2:
        return 0.0, 0
    if more * squares > MOST_CANCELLED * spread or not least * spread > TOLERANCE * max(1.0, most * spread):
        return 0.0, UNKNOWN
    statistic = 0.0
    for k in range(mean.size):
        if mean[k] > 0.0:
            centred = linear[0, k] - total * mean[k]
            statistic += centred * centred / mean[k]
    return statistic / spread, present - 1


@_inner
def _test_factor(values, at, n_levels, rows, start, end, response, mean, variance, linear, count):
    """Statistic and degrees of freedom for a factor."""
    n = end - start
    for c in range(n_levels):
        count[c] = 0.0
        for k in range(mean.size):
            linear[c, k] = 0.0
    for i in range(start, end):
        row = rows[i]
        level = np.int64(values[at + row])
        count[level] += 1.0
        if response.n_classes:
            linear[level, response.labels[row]] += 1.0
        else:
            linear[level, 0] += response.scores[row]
    more = n / (n - 1.0)
    fewest, largest, present = _least_and_most(count, n_levels)
    if present < 2:
        return 0.0, 0
    least = most = variance[0]
    columns = 2
    if response.n_classes:
        least, most, columns = _least_and_most(mean, mean.size)
    if columns < 2 or not most > 0.0:
        return 0.0, 0
    if not more * fewest * least > TOLERANCE * max(1.0, more * largest * most):
        return 0.0, UNKNOWN
    statistic = 0.0
    for c in range(n_levels):
        if count[c] > 0.0:
            for k in range(mean.size):
                weight = mean[k] if response.n_classes else variance[0]
                if weight > 0.0:
                    centred = linear[c, k] - count[c] * mean[k]
                    statistic += centred * centred / (count[c] * weight)
    return statistic / more, (present - 1) * (columns - 1)


@_entry
def test_nodes(columns, response, work, rows, start, size, min_split, statistic, freedom):
    """Fill `statistic` and `freedom` (nodes, variables) for the nodes of a level."""
    kept, linear, count = work.kept, work.linear, work.count
    mean, variance, own_mean, own_variance = work.mean, work.variance, work.own_mean, work.own_variance
    for node in range(start.size):
        for j in range(columns.kind.size):
            statistic[node, j] = 0.0
            freedom[node, j] = UNTESTED if size[node] < min_split else 0
        if size[node] < min_split:
            continue
        begin, end = start[node], start[node] + size[node]
        _response_means(rows, begin, end, response, mean)
        if not response.n_classes:
            _response_variances(rows, begin, end, response, mean, variance)
        for j in range(columns.kind.size):
            at = j * columns.n_rows
            used, first, last, m, v = rows, begin, end, mean, variance
            if columns.has_missing[j]:
                used, first, m, v = kept, np.int64(0), own_mean, own_variance
                last = np.int64(_complete_rows(columns.values, at, rows, begin, end, kept))
                if last < min_split:
                    freedom[node, j] = UNTESTED
                    continue
                _response_means(used, first, last, response, m)
                if not response.n_classes:
                    _response_variances(used, first, last, response, m, v)
            if columns.kind[j] != NUMBER:
                found = _test_factor(
                    columns.values, at, columns.n_levels[j], used, first, last, response, m, v, linear, count
                )  # fmt: skip
            else:
                found = _test_number(columns.values, at, columns.shift[j], used, first, last, response, m, v, linear)
            statistic[node, j], freedom[node, j] = found


# ---------------------------------------------------------------- step 2: order


@_entry
def sort_level(columns, chosen, node_of_row, cursor, out):
    """Write the rows of each node in the order of its chosen number, from cursor[node] on; missing ones last.

    One walk along a sorted column serves all nodes of the level that are cut on it.
    """
    for j in range(columns.kind.size):
        wanted = False
        for node in range(chosen.size):
            wanted |= chosen[node] == j
        if not wanted or columns.kind[j] == FACTOR:
            continue
        for i in range(node_of_row.size):
            row = columns.orders[columns.slot[j], i]
            node = node_of_row[row]
            if node >= 0 and chosen[node] == j:
                out[cursor[node]] = row
                cursor[node] += 1


# ---------------------------------------------------------------- step 3: cuts


@_inner
def _scan(values, ordered, start, end, response, mean, variance, low, high, left):
    """Best cut of rows in the order of `values`; return (statistic, value, whether there is one, next best statistic).

    Cuts are possible only after the last row of equal values. Of equal statistics, the first in row order is chosen.
    """
    n = end - start
    more, less = n / (n - 1.0), 1.0 / (n - 1.0)
    best, second, cut, at = 0.0, 0.0, 0.0, np.int64(-1)
    for k in range(mean.size):
        left[k] = 0.0
    for i in range(start, end):
        row = ordered[i]
        if response.n_classes:
            left[response.labels[row]] += 1.0
        else:
            left[0] += response.scores[row]
        w = i - start + 1.0
        if w < low or (i + 1 < end and values[ordered[i + 1]] == values[row]):
            continue
        if w > high:
            break
        statistic = 0.0
        for k in range(mean.size):
            spread = more * w * variance[k] - less * w * w * variance[k]
            if spread > TOLERANCE:
                statistic = max(statistic, abs(left[k] - w * mean[k]) / np.sqrt(spread))
        if statistic > best or (statistic == best and at >= 0 and row < at):
            best, second, cut, at = statistic, best, values[row], np.int64(row)
        elif statistic > second:
            second = statistic
    return best, cut, at >= 0, second


@_inner
def _shell_sort(key, index, size):
    """Sort `key`, and `index` with it, by Shell's method with Knuth's gaps 1, 4, 13, ..., which is not stable."""
    gap = 1
    while gap <= size // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            moved, moved_index, j = key[i], index[i], i
            while j >= gap and key[j - gap] > moved:
                key[j] = key[j - gap]
                index[j] = index[j - gap]
                j -= gap
            key[j] = moved
            index[j] = moved_index
        gap //= 3


@_inner
def _rank_levels(values, at, n_levels, rows, start, end, response, k, mean, variance, count, linear, key, order, rank):
    """Rank the levels by their standardised statistic for response column `k`; equal ones share a rank.

    Levels that are absent have statistic 0. Return the number of ranks.
    """
    n = end - start
    more, less = n / (n - 1.0), 1.0 / (n - 1.0)
    for c in range(n_levels):
        count[c] = 0.0
        linear[c, 0] = 0.0
    for i in range(start, end):
        level = np.int64(values[at + rows[i]])
        count[level] += 1.0
        if not response.n_classes:
            linear[level, 0] += response.scores[rows[i]]
        elif response.labels[rows[i]] == k:
            linear[level, 0] += 1.0
    for c in range(n_levels):
        spread = more * (variance[k] * count[c]) - less * (variance[k] * count[c] * count[c])
        key[c] = (linear[c, 0] - count[c] * mean[k]) / np.sqrt(spread) if spread > TOLERANCE else 0.0
    for c in range(n_levels):
        order[c] = c
    _shell_sort(key, order, n_levels)
    n_ranks = 0
    for c in range(n_levels):
        n_ranks += c > 0 and key[c] > key[c - 1]
        rank[order[c]] = n_ranks
    return n_ranks + 1


@_inner
def _sort_by_rank(values, at, rows, start, end, rank, n_ranks, place, rank_of_row, ordered):
    """Sort rows by the rank of their level, stably, by counting."""
    for r in range(n_ranks + 1):
        place[r] = 0
    for i in range(start, end):
        rank_of_row[rows[i]] = rank[np.int64(values[at + rows[i]])]
        place[np.int64(rank_of_row[rows[i]]) + 1] += 1
    for r in range(n_ranks):
        place[r + 1] += place[r]
    for i in range(start, end):
        r = np.int64(rank_of_row[rows[i]])
        ordered[start + place[r]] = rows[i]
        place[r] += 1


@_inner
def _sort_as_party(rank_of_row, start, end, spare, key, index):
    """Put the sorted rows of equal rank in party's order.

    party sorts all rows of the table, those outside the node before the others, by a method that is not stable.
    """
    for row in range(key.size):
        key[row] = 0.0
        index[row] = row
    for i in range(start, end):
        key[spare[i]] = rank_of_row[spare[i]] + 1.0
    _shell_sort(key, index, key.size)
    for i in range(end - start):
        spare[start + i] = index[key.size - (end - start) + i]


@_inner
def _cut_factor(columns, j, response, work, rows, start, end, mean, variance, low, high, left, goes_left, node):
    """Best cut of the levels in any of the orders that the response columns give; return (statistic, found).

    The order of rows of equal rank matters only where two cuts are equally good: then it is party's.
    """
    best, found = 0.0, False
    n_levels, rank, at = columns.n_levels[j], work.rank, j * columns.n_rows
    for k in range(mean.size):
        n_ranks = _rank_levels(
            columns.values, at, n_levels, rows, start, end, response, k, mean, variance, work.count, work.linear,
            work.key, work.order, rank,
        )  # fmt: skip
        _sort_by_rank(columns.values, at, rows, start, end, rank, n_ranks, work.place, work.value_of_row, work.spare)
        for attempt in range(2):
            statistic, cut, admissible, second = _scan(
                work.value_of_row, work.spare, start, end, response, mean, variance, low, high, left
            )
            if attempt or second < NEARLY * statistic:
                break
            _sort_as_party(work.value_of_row, start, end, work.spare, work.sort_key, work.sort_index)
        if admissible and statistic > best:
            best, found = statistic, True
            for c in range(n_levels):
                goes_left[node, c] = rank[c] > cut
    return best, found


@_entry
def cut_nodes(
    columns, response, work, rows, start, size, chosen, min_leaf, minprob, cut, goes_left, seen, statistic, found
):  # fmt: skip
    """Cut each node of a level on its chosen variable, if any: fill `statistic`, `found`, and `cut` or `goes_left`.

    `seen` is whether each level of a factor occurs in the node.
    """
    mean, variance, left, kept = work.mean, work.variance, work.left, work.kept
    for node in range(start.size):
        j = chosen[node]
        if j < 0:
            continue
        at = j * columns.n_rows
        used, first, last = rows, np.int64(start[node]), np.int64(start[node] + size[node])
        if columns.has_missing[j]:
            used, first = kept, np.int64(0)
            last = np.int64(_complete_rows(columns.values, at, rows, start[node], start[node] + size[node], kept))
        n = last - first
        _response_means(used, first, last, response, mean)
        _response_variances(used, first, last, response, mean, variance)
        low = max(minprob * n + 1.0, min_leaf)
        high = min((1.0 - minprob) * n - 1.0, n - min_leaf)
        if columns.kind[j] == FACTOR:
            statistic[node], found[node] = _cut_factor(
                columns, j, response, work, used, first, last, mean, variance, low, high, left, goes_left, node
            )  # fmt: skip
            for c in range(columns.n_levels[j]):
                seen[node, c] = work.count[c] > 0.0
        else:
            first = np.int64(start[node])
            for i in range(first, first + n):
                work.value_of_row[work.ordered[i]] = columns.values[at + work.ordered[i]]
            statistic[node], cut[node], found[node], _ = _scan(
                work.value_of_row, work.ordered, first, first + n, response, mean, variance, low, high, left
            )


# ---------------------------------------------------------------- step 4: partition


@_inner
def _goes_left(x, is_factor, cut, goes_left, node):
    return goes_left[node, np.int64(x)] if is_factor else x <= cut[node]


@_entry
def split_nodes(
    columns, work, rows, start, size, chosen, cut, goes_left, mirrored, left_size, missing_left, node_of_row
):
    """Partition the rows of each node that is cut; number the children 0, 1, ... in `node_of_row`, -1 for leaves.

    A factor of two levels is cut so that the first goes left, as for a number; if party has the opposite sides, the
    node is `mirrored`.
    """
    children = 0
    spare = work.spare
    for node in range(start.size):
        begin, end, j = start[node], start[node] + size[node], chosen[node]
        if j < 0:
            for i in range(begin, end):
                node_of_row[rows[i]] = -1
            continue
        is_factor, place = columns.kind[j] == FACTOR, j * columns.n_rows
        if is_factor and columns.n_levels[j] == 2 and not goes_left[node, 0]:
            mirrored[node], goes_left[node, 0], goes_left[node, 1] = True, True, False
        balance = 0
        for i in range(begin, end):
            x = columns.values[place + rows[i]]
            if not np.isnan(x):
                balance += 1 if _goes_left(x, is_factor, cut, goes_left, node) else -1
        missing_left[node] = balance > 0 or (balance == 0 and mirrored[node])
        at, kept = begin, 0
        for i in range(begin, end):
            row = rows[i]
            x = columns.values[place + row]
            to_left = missing_left[node] if np.isnan(x) else _goes_left(x, is_factor, cut, goes_left, node)
            node_of_row[row] = children if to_left else children + 1
            if to_left:
                rows[at] = row
                at += 1
            else:
                spare[kept] = row
                kept += 1
        for i in range(kept):
            rows[at + i] = spare[i]
        left_size[node] = at - begin
        children += 2


@_entry
def impurities(response, rows, start, size, mean, variance, out):
    """Sum of squares around the mean, or size times the Gini index, of each node."""
    for node in range(start.size):
        end = start[node] + size[node]
        _response_means(rows, start[node], end, response, mean)
        _response_variances(rows, start[node], end, response, mean, variance)
        out[node] = 0.0
        for k in range(mean.size):
            out[node] += size[node] * variance[k]
