"""Numba kernels that grow conditional inference trees level by level: tests, cuts, partition.

The response has one column (a number, or the scores of an ordered factor) or one column for each class (0/1). All rows
of a node are visited in their original order, and all sums are sequential, so that every statistic that decides a
choice has the same last bit as party's.

1. `test_nodes`: for each node of a level and each variable the quadratic statistic of the test of independence, and
   its degrees of freedom. The Moore-Penrose inverse has a closed form, because the covariance is a Kronecker product
   (`mcce.trees.ctree.independence`): with D = T - mu, sums of D^2 / (n_l p_k) over levels l and classes k. If singular
   values might fall below the tolerance, which the closed form does not detect, the degrees of freedom are UNKNOWN.
2. `cut_nodes`: the cut of a node with the largest standardised two-sample statistic; levels are ordered by their own
   standardised statistic first.
3. `split_nodes`: the rows of a node, partitioned stably. Rows in which the variable of a test or cut is missing are
   left out of it, and go to the larger child, the right one if they are equal.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from mcce._utils import jit
from mcce.trees.kernels import LEAN, inner

NUMBER, FACTOR, LOGICAL = 0, 1, 2  # a logical is tested as two levels and cut as the numbers 0 and 1
UNKNOWN = -1  # degrees of freedom without a closed form
UNTESTED = -2  # degrees of freedom of a variable with too few values in a node
TOLERANCE = 1e-10
NEARLY = 1.0 - 1e-9
MOST_CANCELLED = 1e5  # sum of squares over sum of squares around the mean: above this, rounding decides on the rank,
ALL_CANCELLED = 1e14  # and above this on the statistic

NODE = np.dtype(
    [
        ("variable", np.int64),  # column of the split; LEAF
        ("right", np.int64),  # right child; the left one is the next node
        ("start", np.int64),  # while growing: where the rows of the node begin
        ("n", np.int64),
        ("n_left", np.int64),
        ("cut", np.float64),  # of numbers, logicals and codes of ordered levels: x <= cut goes left
        ("cut_statistic", np.float64),  # standardised two-sample statistic
        ("criterion", np.float64),  # the largest one of its variables
        ("value", np.float64),  # mean, or most frequent class
        ("missing_left", np.bool_),
    ]
)

Columns = namedtuple("Columns", "values kind n_levels shift has_missing sorted_rows slot")
Response = namedtuple("Response", "values n_classes")  # numbers or scores, n_classes 0; or classes
Work = namedtuple(
    "Work",
    "kept spare ordered value_of_row mean variance own_mean own_variance left linear count total key order rank place "
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
        total=np.empty(most_levels + 1),
        key=np.empty(most_levels + 1),
        order=np.empty(most_levels + 1, dtype=np.int32),
        rank=np.empty(most_levels + 1, dtype=np.int64),
        place=np.empty(most_levels + 2, dtype=np.int64),
        sort_key=np.empty(n),
        sort_index=np.empty(n, dtype=np.int32),
    )


# ---------------------------------------------------------------- step 1: tests


@inner
def _complete_rows(values, rows, start, end, kept):
    """Collect the node's rows in which a column is not missing; return their number."""
    n = 0
    for i in range(start, end):
        if not np.isnan(values[rows[i]]):
            kept[n] = rows[i]
            n += 1
    return n


@inner
def _add(sums, at, response, row, amount):
    """Add an amount times the response of a row to a row of sums by response column."""
    if response.n_classes:
        sums[at, np.int64(response.values[row])] += amount
    else:
        sums[at, 0] += amount * response.values[row]


@inner
def _response_means(rows, start, end, response, mean):
    for k in range(mean.size):
        mean[k] = 0.0
    for i in range(start, end):
        if response.n_classes:
            mean[np.int64(response.values[rows[i]])] += 1.0
        else:
            mean[0] += response.values[rows[i]]
    for k in range(mean.size):
        mean[k] /= end - start


@inner
def _response_variances(rows, start, end, response, mean, variance):
    """Variance of each response column: squares summed row by row."""
    for k in range(mean.size):
        variance[k] = 0.0
    for i in range(start, end):
        y = response.values[rows[i]]
        for k in range(mean.size):
            centred = (1.0 * (k == y) if response.n_classes else y) - mean[k]
            variance[k] += centred * centred
    for k in range(mean.size):
        variance[k] /= end - start


@inner
def _least_and_most(shares, n_shares):
    """Return the smallest share above 0, the largest one, and the number of those above 0.

    The non-zero eigenvalues of diag(p) - pp' lie between the first two (they interlace with p).
    """
    least, most, present = np.inf, 0.0, 0
    for k in range(n_shares):
        if shares[k] > 0.0:
            least, most, present = min(least, shares[k]), max(most, shares[k]), present + 1
    return least, most, present


@inner
def _sum_number(values, shift, rows, start, end, response, linear):
    """Add up x + shift and its squares; `linear` gets the products with the response columns."""
    total = squares = 0.0
    for k in range(linear.shape[1]):
        linear[0, k] = 0.0
    for i in range(start, end):
        x = values[rows[i]] + shift
        total += x
        squares += x * x
        _add(linear, 0, response, rows[i], x)
    return total, squares


@inner
def _varies(values, rows, start, end):
    low = high = values[rows[start]]
    for i in range(start + 1, end):
        low, high = min(low, values[rows[i]]), max(high, values[rows[i]])
    return low < high


@inner
def _test_number(values, shift, rows, start, end, response, mean, variance, linear):
    """Statistic and degrees of freedom for a number, or for the scores of an ordered factor.

    If x varies so far from 0 that its variance would be lost, x is taken relative to its value in the first row.
    """
    n = end - start
    more, less = n / (n - 1.0), 1.0 / (n - 1.0)
    total, squares = _sum_number(values, shift, rows, start, end, response, linear)
    spread = more * squares - less * total * total
    if more * squares > ALL_CANCELLED * spread and _varies(values, rows, start, end):
        total, squares = _sum_number(values, -values[rows[start]], rows, start, end, response, linear)
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


@inner
def _test_factor(values, n_levels, rows, start, end, response, mean, variance, linear, count):
    """Statistic and degrees of freedom for a factor."""
    n = end - start
    for c in range(n_levels):
        count[c] = 0.0
        for k in range(mean.size):
            linear[c, k] = 0.0
    for i in range(start, end):
        level = np.int64(values[rows[i]])
        count[level] += 1.0
        _add(linear, level, response, rows[i], 1.0)
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


@jit(**LEAN)
def test_nodes(columns, response, work, rows, nodes, minsplit, statistic, freedom):
    """Fill `statistic` and `freedom` (nodes, variables) for the nodes of a level, and the values of the nodes."""
    for node in range(nodes.size):
        begin, end = nodes[node].start, nodes[node].start + nodes[node].n
        _response_means(rows, begin, end, response, work.mean)
        if not response.n_classes:
            _response_variances(rows, begin, end, response, work.mean, work.variance)
        most = 0
        for k in range(work.mean.size):
            most = k if work.mean[k] > work.mean[most] else most
        nodes[node].value = float(most) if response.n_classes else work.mean[0]
        for j in range(columns.kind.size):
            statistic[node, j], freedom[node, j] = 0.0, UNTESTED
            if nodes[node].n < minsplit:
                continue
            values = columns.values[j]
            used, first, last, mean, variance = rows, begin, end, work.mean, work.variance
            if columns.has_missing[j]:
                used, first, mean, variance = work.kept, np.int64(0), work.own_mean, work.own_variance
                last = np.int64(_complete_rows(values, rows, begin, end, work.kept))
                if last < minsplit:
                    continue
                _response_means(used, first, last, response, mean)
                if not response.n_classes:
                    _response_variances(used, first, last, response, mean, variance)
            if columns.kind[j] == NUMBER:
                test = _test_number(values, columns.shift[j], used, first, last, response, mean, variance, work.linear)
            else:
                test = _test_factor(
                    values, columns.n_levels[j], used, first, last, response, mean, variance, work.linear, work.count
                )
            statistic[node, j], freedom[node, j] = test


# ---------------------------------------------------------------- step 2: cuts


@inner
def _sort_level(columns, chosen, node_of_row, nodes, cursor, out):
    """Write the rows of each node in the order of its chosen number; missing ones last.

    One walk along a sorted column serves all nodes of the level that are cut on it.
    """
    for node in range(nodes.size):
        cursor[node] = nodes[node].start
    for j in range(columns.kind.size):
        is_chosen = False
        for node in range(nodes.size):
            is_chosen |= chosen[node] == j
        if columns.kind[j] == FACTOR or not is_chosen:
            continue
        for i in range(node_of_row.size):
            row = columns.sorted_rows[columns.slot[j], i]
            node = node_of_row[row]
            if node >= 0 and chosen[node] == j:
                out[cursor[node]] = row
                cursor[node] += 1


@inner
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
            left[np.int64(response.values[row])] += 1.0
        else:
            left[0] += response.values[row]
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


@inner
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


@inner
def _rank_levels(values, n_levels, rows, start, end, response, k, mean, variance, work):
    """Rank the levels by their standardised statistic for response column `k`; equal ones share a rank.

    Levels that are absent have statistic 0. Return the number of ranks.
    """
    n = end - start
    more, less = n / (n - 1.0), 1.0 / (n - 1.0)
    count, total, key, order = work.count, work.total, work.key, work.order
    for c in range(n_levels):
        count[c] = total[c] = 0.0
    for i in range(start, end):
        level, y = np.int64(values[rows[i]]), response.values[rows[i]]
        count[level] += 1.0
        total[level] += 1.0 * (y == k) if response.n_classes else y
    for c in range(n_levels):
        spread = more * (variance[k] * count[c]) - less * (variance[k] * count[c] * count[c])
        key[c] = (total[c] - count[c] * mean[k]) / np.sqrt(spread) if spread > TOLERANCE else 0.0
        order[c] = c
    _shell_sort(key, order, n_levels)
    n_ranks = 0
    for c in range(n_levels):
        n_ranks += c > 0 and key[c] > key[c - 1]
        work.rank[order[c]] = n_ranks
    return n_ranks + 1


@inner
def _sort_by_rank(values, rows, start, end, n_ranks, work):
    """Sort rows by the rank of their level, stably, by counting."""
    place, rank_of_row = work.place, work.value_of_row
    for r in range(n_ranks + 1):
        place[r] = 0
    for i in range(start, end):
        rank_of_row[rows[i]] = work.rank[np.int64(values[rows[i]])]
        place[np.int64(rank_of_row[rows[i]]) + 1] += 1
    for r in range(n_ranks):
        place[r + 1] += place[r]
    for i in range(start, end):
        r = np.int64(rank_of_row[rows[i]])
        work.spare[start + place[r]] = rows[i]
        place[r] += 1


@inner
def _sort_as_party(start, end, work):
    """Put the sorted rows of equal rank in party's order.

    party sorts all rows of the table, those outside the node before the others, by a method that is not stable.
    """
    key, index, n = work.sort_key, work.sort_index, end - start
    for row in range(key.size):
        key[row] = 0.0
        index[row] = row
    for i in range(start, end):
        key[work.spare[i]] = work.value_of_row[work.spare[i]] + 1.0
    _shell_sort(key, index, key.size)
    for i in range(n):
        work.spare[start + i] = index[key.size - n + i]


@inner
def _cut_factor(values, n_levels, response, work, rows, start, end, low, high, goes_left):
    """Best cut of the levels in any of the orders that the response columns give; return (statistic, is there one).

    The order of rows of equal rank matters only where two cuts are equally good: then it is party's.
    """
    best, has_cut = 0.0, False
    mean, variance = work.mean, work.variance
    for k in range(mean.size):
        n_ranks = _rank_levels(values, n_levels, rows, start, end, response, k, mean, variance, work)
        _sort_by_rank(values, rows, start, end, n_ranks, work)
        for attempt in range(2):
            statistic, cut, admissible, second = _scan(
                work.value_of_row, work.spare, start, end, response, mean, variance, low, high, work.left
            )
            if attempt or second < NEARLY * statistic:
                break
            _sort_as_party(start, end, work)
        if admissible and statistic > best:
            best, has_cut = statistic, True
            for c in range(n_levels):
                goes_left[c] = work.rank[c] > cut
    return best, has_cut


@jit(**LEAN)
def cut_nodes(columns, response, work, rows, node_of_row, nodes, chosen, cursor, minbucket, minprob, goes_left, seen):
    """Cut each node of a level on its chosen variable, if it has one and that has an admissible cut.

    `goes_left` and `seen` tell for each level of a factor whether it goes left, and whether it occurs in the node;
    `cursor` is scratch.
    """
    _sort_level(columns, chosen, node_of_row, nodes, cursor, work.ordered)
    for node in range(nodes.size):
        j = chosen[node]
        if j < 0:
            continue
        values = columns.values[j]
        used, first, last = rows, nodes[node].start, nodes[node].start + nodes[node].n
        if columns.has_missing[j]:
            last = np.int64(_complete_rows(values, rows, first, last, work.kept))
            used, first = work.kept, np.int64(0)
        n = last - first
        _response_means(used, first, last, response, work.mean)
        _response_variances(used, first, last, response, work.mean, work.variance)
        low = max(minprob * n + 1.0, minbucket)
        high = min((1.0 - minprob) * n - 1.0, n - minbucket)
        if columns.kind[j] == FACTOR:
            n_levels = columns.n_levels[j]
            statistic, has_cut = _cut_factor(
                values, n_levels, response, work, used, first, last, low, high, goes_left[node]
            )
            for c in range(n_levels):
                seen[node, c] = work.count[c] > 0.0
        else:
            first = nodes[node].start
            for i in range(first, first + n):
                work.value_of_row[work.ordered[i]] = values[work.ordered[i]]
            statistic, nodes[node].cut, has_cut, _ = _scan(
                work.value_of_row, work.ordered, first, first + n, response, work.mean, work.variance, low, high,
                work.left,
            )  # fmt: skip
        nodes[node].cut_statistic = statistic
        if has_cut:
            nodes[node].variable = j


# ---------------------------------------------------------------- step 3: partition


@inner
def _goes_left(x, is_factor, node, goes_left):
    if np.isnan(x):
        return node.missing_left
    return goes_left[np.int64(x)] if is_factor else x <= node.cut


@jit(**LEAN)
def split_nodes(columns, work, rows, nodes, goes_left, node_of_row):
    """Partition the rows of each node that is cut; number the children 0, 1, ... in `node_of_row`, -1 for leaves."""
    children = 0
    for i in range(nodes.size):
        node = nodes[i]
        begin, end, j = node.start, node.start + node.n, node.variable
        if j < 0:
            for at in range(begin, end):
                node_of_row[rows[at]] = -1
            continue
        is_factor, values = columns.kind[j] == FACTOR, columns.values[j]
        balance = 0
        for at in range(begin, end):
            x = values[rows[at]]
            if not np.isnan(x):
                balance += 1 if _goes_left(x, is_factor, node, goes_left[i]) else -1
        node.missing_left = balance > 0
        into, kept = begin, 0
        for at in range(begin, end):
            row = rows[at]
            to_left = _goes_left(values[row], is_factor, node, goes_left[i])
            node_of_row[row] = children if to_left else children + 1
            if to_left:
                rows[into] = row
                into += 1
            else:
                work.spare[kept] = row
                kept += 1
        for at in range(kept):
            rows[into + at] = work.spare[at]
        node.n_left = into - begin
        children += 2
