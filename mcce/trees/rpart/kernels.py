"""Numba kernels that grow and route rpart's trees; see `mcce.trees.rpart.tree`.

1. A numeric or ordered column is kept sorted: entries rank << 32 | row. Levels are codes, and their rows ascend.
2. Sums are sequential in R's order of rows, and quotients are computed as in R: the last bit decides between equally
   good cuts. Products, which are cheap, only exclude cuts that cannot be best. `fused` rounds the sums of the Gini
   index once per step, as an R with fused multiply-adds does (`mcce.base.fused`). Without weights of rows, no other
   compared figure is rounded differently there.
3. A side is LEFT or RIGHT as in R; UNKNOWN where a value is missing or a level absent from the node.

Weights of rows multiply the terms of sums, as in R; `min_split` and `min_leaf` count rows. Without weights, `weights`
is empty: one kernel handles both cases, because it takes long to compile.

The arrays come in bundles made by `mcce.trees.rpart`: `Columns` (read only, except `packed`), `Rules`, `Nodes` and
`Splits` (the result) and `Work` (scratch).
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit, uint64

from mcce.base.compiling import cached
from mcce.base.fused import multiply_add

UNKNOWN, LEFT, ABSENT, RIGHT = 0, 1, 2, 3  # the last three as in R's table of level splits
LEAF = -1
MISSING_RANK = 0xFFFFFFFF
ROW = 0xFFFFFFFF
_SORTED_BY_INSERTION = 11
_SMALLEST_GAIN = 1e-10  # share of the largest improvement in the tree so far
_SLACK = 1.0 - 1e-9  # a cut whose score by products is lower than the best by more than this cannot be better
_LEAST_ROWS = 2
_LEAST_AGREEMENT = 1e-10  # beyond the majority's; a smaller difference is rounding of weights

Columns = namedtuple("Columns", "unordered n_levels slot codes packed values offset has_missing matrix")
Rules = namedtuple("Rules", "n_classes weight prior cp min_split min_leaf max_depth max_compete max_surrogate fused")
Nodes = namedtuple("Nodes", "feature left number start size value risk complexity first_split n_compete n_surrogate")
Splits = namedtuple("Splits", "feature count below improve cut adjusted sides_at")
Best = namedtuple("Best", "feature count below improve cut adjusted place sides")
Work = namedtuple(
    "Work",
    "order side spare_rows spare_packed entries y in_left in_right level_n level_w level_sum level_key level_order "
    "table sides path stage bound sides_before n_splits risk_below",
)

_inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
_entry = cached(nogil=True, error_model="numpy")


# ---------------------------------------------------------------- order of rows


@_entry
def sort_as_r(key, row):
    """Sort `key` in place, and `row` along with it, by quicksort around the median of first, middle and last value.

    The order of equal values affects all sums: a pair on the wrong sides of the median is swapped, a pair of equal
    values is not; short pieces are sorted by insertion.
    """
    waiting = np.empty((128, 2), dtype=np.int64)
    waiting[0, 0], waiting[0, 1] = 0, key.size - 1
    n_waiting = 1
    while n_waiting:
        n_waiting -= 1
        first, last = waiting[n_waiting, 0], waiting[n_waiting, 1]
        if last - first < _SORTED_BY_INSERTION:
            for i in range(first + 1, last + 1):
                k, r = key[i], row[i]
                j = i - 1
                while j >= first and key[j] > k:
                    key[j + 1], row[j + 1] = key[j], row[j]
                    j -= 1
                key[j + 1], row[j + 1] = k, r
            continue
        a, b, c = key[first], key[(first + last) // 2], key[last]
        median = max(min(a, b), min(max(a, b), c))
        i, j = first, last
        while i < j:
            while key[i] < median:
                i += 1
            while key[j] > median:
                j -= 1
            if i < j:
                if key[i] > key[j]:
                    key[i], key[j] = key[j], key[i]
                    row[i], row[j] = row[j], row[i]
                i += 1
                j -= 1
        while j > first and key[j] >= median:
            j -= 1
        while i < last and key[i] <= median:
            i += 1
        # the shorter piece is sorted next, which keeps the stack small
        longer_first = j - first > last - i
        waiting[n_waiting, 0], waiting[n_waiting, 1] = (first, j) if longer_first else (i, last)
        waiting[n_waiting + 1, 0], waiting[n_waiting + 1, 1] = (i, last) if longer_first else (first, j)
        n_waiting += 2


@_inner
def _along(columns, feature, start, end, entries):
    """Return the node's entries of a sorted column, those with a missing value left out."""
    column = columns.packed[columns.slot[feature], start:end]
    if not columns.has_missing[feature]:
        return column
    m = 0
    for i in range(column.size):
        entries[m] = column[i]
        m += column[i] >> uint64(32) != MISSING_RANK
    return entries[:m]


@_inner
def _row(entry):
    return np.int64(entry & uint64(ROW))


# ------------------------------------------------------- cuts: numeric response


@_inner
def _evaluate_number(order, column, response, weights, y):
    """Mean and sum of squares, along the rows of `order` or, if that is empty, along a sorted column."""
    m = max(order.size, column.size)
    total = 0.0
    weight = 0.0
    for i in range(m):
        row = np.int64(order[i]) if order.size else _row(column[i])
        y[i] = response[row]
        if not weights.size:
            total += y[i]
        else:
            total += y[i] * weights[row]
            weight += weights[row]
    if not weights.size:
        weight = float(m)
    mean = total / weight
    square = 0.0
    for i in range(m):
        if not weights.size:
            square += (y[i] - mean) * (y[i] - mean)
        else:
            row = np.int64(order[i]) if order.size else _row(column[i])
            square += (y[i] - mean) * (y[i] - mean) * weights[row]
    return mean, square


@_inner
def _cut_numbers(column, response, weights, min_leaf, y):
    """Best cut of a sorted column: decrease of the sum of squares, entry before the cut, sign (-1: small goes left)."""
    m = column.size
    total = 0.0
    weight = 0.0
    for i in range(m):
        y[i] = response[_row(column[i])]
        if not weights.size:
            total += y[i]
        else:
            total += y[i] * weights[_row(column[i])]
            weight += weights[_row(column[i])]
    if not weights.size:
        weight = float(m)
    mean = total / weight
    left = 0.0
    n_left, n_right = 0.0, weight
    best = 0.0
    at = -1
    below = 0
    for i in range(m - min_leaf):
        if not weights.size:
            left += y[i] - mean
        else:
            left += (y[i] - mean) * weights[_row(column[i])]
            n_left += weights[_row(column[i])]
            n_right -= weights[_row(column[i])]
        if i + 1 < min_leaf or column[i] >> uint64(32) == column[i + 1] >> uint64(32):
            continue
        if not weights.size:
            n_left, n_right = float(i + 1), float(m - i - 1)
        square = left * left
        if square * weight < best * (n_left * n_right) * _SLACK:
            continue
        score = square / n_left + square / n_right
        if score > best:
            best = score
            at = i
            below = -1 if left < 0.0 else 1
    return best, at, below


@_inner
def _order_levels(key, order, n):
    """Sort the first n levels in `order` by their key, stably."""
    for i in range(1, n):
        level = order[i]
        j = i - 1
        while j >= 0 and key[order[j]] > key[level]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = level


@_inner
def _levels_numbers(
    order, codes, n_levels, response, weights, min_leaf, level_n, level_w, level_sum, level_key, level_order, sides
):
    """Best cut of the levels in the order of their means: decrease, rows with a level, whether there is a cut."""
    m = 0
    total = 0.0
    weight = 0.0
    for c in range(n_levels):
        level_n[c] = 0
        level_w[c] = 0.0
        level_sum[c] = 0.0
        sides[c] = ABSENT
    for i in range(order.size):
        if codes[order[i]] < n_levels:
            if not weights.size:
                total += response[order[i]]
                weight += 1.0
            else:
                total += response[order[i]] * weights[order[i]]
                weight += weights[order[i]]
            m += 1
    mean = total / weight
    for i in range(order.size):
        c = codes[order[i]]
        if c < n_levels:
            level_n[c] += 1
            if not weights.size:
                level_w[c] += 1.0
                level_sum[c] += response[order[i]] - mean
            else:
                level_w[c] += weights[order[i]]
                level_sum[c] += (response[order[i]] - mean) * weights[order[i]]
    present = 0
    for c in range(n_levels):
        if level_n[c]:
            level_key[c] = level_sum[c] / level_w[c]
            level_order[present] = c
            present += 1
    _order_levels(level_key, level_order, present)
    left = 0.0
    n_left = 0
    w_left, w_right = 0.0, weight
    best = 0.0
    at = -1
    lower = True  # up to rounding, the first levels have the lower mean
    for i in range(present - 1):
        n_left += level_n[level_order[i]]
        w_left += level_w[level_order[i]]
        w_right -= level_w[level_order[i]]
        left += level_sum[level_order[i]]
        n_right = m - n_left
        if n_left >= min_leaf and n_right >= min_leaf:
            score = left * left / w_left + left * left / w_right
            if score > best:
                best = score
                at = i
                lower = left < 0.0
    for i in range(present):
        sides[level_order[i]] = LEFT if (i <= at) == lower else RIGHT
    return best, m, at >= 0


# ---------------------------------------------------------- cuts: classes


@_inner
def _evaluate_classes(order, column, labels, weights, prior, in_node):
    """Most frequent class (the first on ties), and the number, or weight, of rows of other classes.

    Weights are summed along the rows of `order` or, if that is empty, along a sorted column.
    """
    for k in range(in_node.size):
        in_node[k] = 0.0
    best = 0
    if not weights.size:
        for i in range(order.size):
            in_node[labels[order[i]]] += 1.0
        for k in range(in_node.size):
            if in_node[k] > in_node[best]:
                best = k
        risk = order.size - in_node[best]
    else:
        for i in range(max(order.size, column.size)):
            row = np.int64(order[i]) if order.size else _row(column[i])
            in_node[labels[row]] += weights[row]
        risk = 0.0
        for k in range(in_node.size):
            others = 0.0
            for j in range(in_node.size):
                if j != k:
                    others += in_node[j] * prior[j]
            if k == 0 or others < risk:
                best = k
                risk = others
    return float(best), risk


@_inner
def _plus(total, factor, share, fused):
    """Total plus a side's weight times one class's part of its Gini index."""
    part = share * (1.0 - share)
    return multiply_add(factor, part, total) if fused else total + factor * part


@_inner
def _gini(weight, in_left, in_right, left, right, fused):
    """Weighted Gini index of both sides."""
    total = 0.0
    for k in range(weight.size):
        total = _plus(total, left, weight[k] * in_left[k] / left, fused)
        total = _plus(total, right, weight[k] * in_right[k] / right, fused)
    return total


@_inner
def _gini_undivided(weight, in_node, total_weight, fused):
    total = 0.0
    for k in range(weight.size):
        total = _plus(total, total_weight, weight[k] * in_node[k] / total_weight, fused)
    return total


@_inner
def _lower_class(weight, in_left, in_right, left, right):
    """Whether the mean class number is lower on the left."""
    mean_left = mean_right = 0.0
    for k in range(weight.size):
        mean_left += weight[k] * in_left[k] / left * k
        mean_right += weight[k] * in_right[k] / right * k
    return mean_left < mean_right


@_inner
def _cut_classes(column, labels, weights, min_leaf, weight, in_left, in_right, fused):
    """Best cut of a sorted column: decrease of the Gini index, entry before the cut, sign (-1: small goes left)."""
    m = column.size
    for k in range(weight.size):
        in_left[k] = in_right[k] = 0.0
    right = 0.0
    for i in range(m):
        k = labels[_row(column[i])]
        if not weights.size:
            in_right[k] += 1.0
            right += weight[k]
        else:
            in_right[k] += weights[_row(column[i])]
            right += weight[k] * weights[_row(column[i])]
    square_right = 0.0
    for k in range(weight.size):
        square_right += in_right[k] * in_right[k]
    undivided = _gini_undivided(weight, in_right, right, fused)
    left = square_left = top = 0.0
    best = undivided
    at = -1
    below = 0
    for i in range(m - min_leaf):
        k = labels[_row(column[i])]
        if not weights.size:
            left += weight[k]
            right -= weight[k]
            square_left += 2.0 * in_left[k] + 1.0
            square_right += 1.0 - 2.0 * in_right[k]
            in_left[k] += 1.0
            in_right[k] -= 1.0
            n_left, n_right = float(i + 1), float(m - i - 1)
        else:
            w = weights[_row(column[i])]
            left += weight[k] * w
            right -= weight[k] * w
            square_left += w * (2.0 * in_left[k] + w)
            square_right += w * (w - 2.0 * in_right[k])
            in_left[k] += w
            in_right[k] -= w
            n_left, n_right = left, right
        if i + 1 < min_leaf or column[i] >> uint64(32) == column[i + 1] >> uint64(32):
            continue
        purity = square_left * n_right + square_right * n_left
        if purity < top * (n_left * n_right) * _SLACK:
            continue
        score = _gini(weight, in_left, in_right, left, right, fused)
        if score < best:
            best = score
            at = i
            top = purity / (n_left * n_right)
            below = -1 if _lower_class(weight, in_left, in_right, left, right) else 1
    return undivided - best, at, below


@_inner
def _count_levels(order, codes, n_levels, labels, weights, weight, level_n, level_sum, level_order, table, sides):
    """Count rows and classes of each level and list those present: rows with a level, their weight, levels."""
    for c in range(n_levels):
        level_n[c] = 0
        level_sum[c] = 0.0
        sides[c] = ABSENT
        for k in range(weight.size):
            table[c, k] = 0.0
    m = 0
    total = 0.0
    for i in range(order.size):
        c = codes[order[i]]
        if c < n_levels:
            k = labels[order[i]]
            level_n[c] += 1
            if not weights.size:
                level_sum[c] += weight[k]
                table[c, k] += 1.0
                total += weight[k]
            else:
                level_sum[c] += weight[k] * weights[order[i]]
                table[c, k] += weights[order[i]]
                total += weight[k] * weights[order[i]]
            m += 1
    present = 0
    for c in range(n_levels):
        if level_n[c]:
            level_order[present] = c
            present += 1
    return m, total, present


@_inner
def _levels_classes(
    order, codes, n_levels, labels, weights, min_leaf, weight, in_left, in_right, level_n, level_sum, level_key,
    level_order, table, sides, fused,
):  # fmt: skip
    """Best partition of the levels: decrease of the Gini index, rows with a level, whether there is a partition.

    Two classes: a cut of the levels in the order of the first class's share. More: all subsets, each made from the one
    before by moving one level (a Gray code). The last level that the column can have never moves, present or not.
    """
    m, right, present = _count_levels(
        order, codes, n_levels, labels, weights, weight, level_n, level_sum, level_order, table, sides
    )
    for k in range(weight.size):
        in_left[k] = in_right[k] = 0.0
    for a in range(present):
        c = level_order[a]
        level_key[c] = weight[0] * table[c, 0] / level_sum[c]
        for k in range(weight.size):
            if not weights.size:
                in_right[k] += table[c, k]
    if weights.size:
        for i in range(order.size):
            if codes[order[i]] < n_levels:
                in_right[labels[order[i]]] += weights[order[i]]
    undivided = _gini_undivided(weight, in_right, right, fused)
    two = weight.size == 2
    n_steps = present - 1
    if two:
        _order_levels(level_key, level_order, present)
    elif present:
        n_steps = (1 << (present - (level_order[present - 1] == n_levels - 1))) - 1
    left = top = 0.0
    n_left = 0
    best = undivided
    bits = chosen = np.int64(0)
    lower = True
    for step in range(1, n_steps + 1):
        a = step - 1
        if not two:
            a = 0
            while step >> a & 1 == 0:
                a += 1
        c = level_order[a]
        sign = -1 if bits >> a & 1 else 1
        bits ^= 1 << a
        n_left += sign * level_n[c]
        left += sign * level_sum[c]
        right -= sign * level_sum[c]
        square_left = square_right = 0.0
        for k in range(weight.size):
            in_left[k] += sign * table[c, k]
            in_right[k] -= sign * table[c, k]
            square_left += in_left[k] * in_left[k]
            square_right += in_right[k] * in_right[k]
        n_right = m - n_left
        if n_left < min_leaf or n_right < min_leaf:
            continue
        if not weights.size:
            w_left, w_right = float(n_left), float(n_right)
        else:
            w_left, w_right = left, right
        purity = square_left * w_right + square_right * w_left
        if purity < top * (w_left * w_right) * _SLACK:
            continue
        score = _gini(weight, in_left, in_right, left, right, fused)
        if score < best:
            best = score
            chosen = bits
            top = purity / (w_left * w_right)
            lower = _lower_class(weight, in_left, in_right, left, right)
    for a in range(present):
        sides[level_order[a]] = LEFT if (chosen >> a & 1 == 1) == lower else RIGHT
    return undivided - best, m, chosen != 0


# ------------------------------------------------------------------- surrogates


@_inner
def _surrogate_cut(column, side, weights, n_left, n_right, w_left, w_right, n_rows):
    """Cut of a sorted column that agrees best with the primary split: rows that agree, entry before the cut, sign.

    The primary split sends `n_left` and `n_right` of the node's rows, of weights `w_left` and `w_right`. Either
    direction may win, but only by agreeing with more rows, or weight, than the larger side has, and with two rows that
    the primary split sends on each side. Other rows are not counted, though a cut may be next to them.
    """
    best = max(w_left, w_right)
    if n_left + n_right < n_rows or column.size < n_rows:
        n_left = n_right = 0
        for i in range(column.size):
            n_left += side[_row(column[i])] == LEFT
            n_right += side[_row(column[i])] == RIGHT
    at = -1
    below = 0
    n_below = 0
    left_above, right_above = float(n_left), float(n_right)
    left_below = right_below = 0.0
    if weights.size:
        left_above = right_above = 0.0
        for i in range(column.size - 1, -1, -1):
            row = _row(column[i])
            left_above += weights[row] * (side[row] == LEFT)
            right_above += weights[row] * (side[row] == RIGHT)
    for i in range(column.size - 1):
        row = _row(column[i])
        copies = 1.0
        if weights.size:
            copies = weights[row]
        if side[row] == LEFT:
            left_above -= copies
            left_below += copies
            n_below += 1
        elif side[row] == RIGHT:
            right_above -= copies
            right_below += copies
            n_below += 1
        straight = left_below + right_above
        crossed = right_below + left_above
        if straight <= best and crossed <= best:
            continue
        tied = column[i] >> uint64(32) == column[i + 1] >> uint64(32)
        if tied or n_below < _LEAST_ROWS or n_left + n_right - n_below < _LEAST_ROWS:
            continue
        best = max(straight, crossed)
        below = -1 if straight >= crossed else 1
        at = i
    return best, at, below


@_inner
def _surrogate_levels(order, codes, n_levels, side, weights, level_n, level_w, level_sum, level_key, sides):
    """Send each level with the majority of its rows, on ties with that of all; return the rows, or weight, that agree.

    As in R, the result is 0 if fewer than two rows disagree. `level_sum` counts the rows that go left; `level_w` and
    `level_key` are the weights of both sides.
    """
    for c in range(n_levels):
        level_n[c] = 0
        level_w[c] = level_key[c] = level_sum[c] = 0.0
    known = agree_rows = 0
    w_left = w_right = agree = 0.0
    for i in range(order.size):
        row = order[i]
        if codes[row] < n_levels and side[row] != UNKNOWN:
            known += 1
            level_n[codes[row]] += 1
            copies = 1.0
            if weights.size:
                copies = weights[row]
            if side[row] == LEFT:
                level_sum[codes[row]] += 1.0
                level_w[codes[row]] += copies
                w_left += copies
            else:
                level_key[codes[row]] += copies
                w_right += copies
    for c in range(n_levels):
        left, right = level_w[c], level_key[c]
        sides[c] = LEFT if left > right or (left == right and w_left > w_right) else RIGHT
        if sides[c] == LEFT:
            agree_rows += level_sum[c]
            agree += left
        else:
            agree_rows += level_n[c] - level_sum[c]
            agree += right
        if level_n[c] == 0:
            sides[c] = ABSENT
    return agree if known - agree_rows >= _LEAST_ROWS else 0.0


# ------------------------------------------------------- the list of best splits


@_inner
def _insert(best, n_best, most, feature, count, below, improve, cut, adjusted, n_levels, sides):
    """Insert a split into the list, best first, after equally good ones; return the length of the list.

    As in R, a full list of two is emptied first if the split is better than both.
    """
    at = n_best
    while at > 0 and best.improve[at - 1] < improve:
        at -= 1
    if at == most:
        return n_best
    if most == 2 and n_best == 2 and at == 0:
        n_best = at
    last = min(n_best, most - 1)
    spare = best.place[last]
    for i in range(last, at, -1):
        best.feature[i] = best.feature[i - 1]
        best.count[i] = best.count[i - 1]
        best.below[i] = best.below[i - 1]
        best.improve[i] = best.improve[i - 1]
        best.cut[i] = best.cut[i - 1]
        best.adjusted[i] = best.adjusted[i - 1]
        best.place[i] = best.place[i - 1]
    best.feature[at] = feature
    best.count[at] = count
    best.below[at] = below
    best.improve[at] = improve
    best.cut[at] = cut
    best.adjusted[at] = adjusted
    best.place[at] = spare
    for c in range(n_levels):
        best.sides[spare, c] = sides[c]
    return last + 1


@_inner
def _write_splits(best, n_best, splits, n_splits, all_sides, n_sides, n_levels):
    """Append the list to the table of splits; the array of level sides grows as needed."""
    for i in range(n_best):
        feature = best.feature[i]
        splits.feature[n_splits] = feature
        splits.count[n_splits] = best.count[i]
        splits.below[n_splits] = best.below[i]
        splits.improve[n_splits] = best.improve[i]
        splits.cut[n_splits] = best.cut[i]
        splits.adjusted[n_splits] = best.adjusted[i]
        splits.sides_at[n_splits] = -1
        width = n_levels[feature]
        if width:
            if n_sides + width > all_sides.size:
                wider = np.empty(2 * all_sides.size + width, dtype=np.uint8)
                for c in range(n_sides):
                    wider[c] = all_sides[c]
                all_sides = wider
            splits.sides_at[n_splits] = n_sides
            for c in range(width):
                all_sides[n_sides + c] = best.sides[best.place[i], c]
            n_sides += width
        n_splits += 1
    return n_splits, all_sides, n_sides


@_inner
def _middle(columns, feature, column, at):
    """Midpoint between the values of an entry and the next one."""
    values, offset = columns.values, columns.offset[feature]
    low = values[offset + np.int64(column[at] >> uint64(32))]
    high = values[offset + np.int64(column[at + 1] >> uint64(32))]
    return (low + high) / 2.0


@_inner
def _search(columns, rules, work, best, start, end, risk, response, labels, weights, largest):
    """List the best split of each column; `largest` is the largest improvement in the tree so far."""
    n_best = np.int64(0)
    order = work.order[start:end]
    for f in range(columns.n_levels.size):
        n_levels = columns.n_levels[f]
        cut = 0.0
        below = np.int64(0)
        if columns.unordered[f]:  # a column of levels may have no split
            codes = columns.codes[columns.slot[f]]
            if rules.n_classes:
                improve, m, found = _levels_classes(
                    order, codes, n_levels, labels, weights, rules.min_leaf, rules.weight, work.in_left,
                    work.in_right, work.level_n, work.level_sum, work.level_key, work.level_order, work.table,
                    work.sides, rules.fused,
                )  # fmt: skip
            else:
                improve, m, found = _levels_numbers(
                    order, codes, n_levels, response, weights, rules.min_leaf, work.level_n, work.level_w,
                    work.level_sum, work.level_key, work.level_order, work.sides,
                )  # fmt: skip
        else:
            column = _along(columns, f, start, end, work.entries)
            m = column.size
            if m < 2 * rules.min_leaf or column[0] >> uint64(32) == column[m - 1] >> uint64(32):
                continue
            if rules.n_classes:
                improve, at, below = _cut_classes(
                    column, labels, weights, rules.min_leaf, rules.weight, work.in_left, work.in_right, rules.fused
                )
            else:
                improve, at, below = _cut_numbers(column, response, weights, rules.min_leaf, work.y)
            found = at >= 0
            if found:
                cut = _middle(columns, f, column, at)
        if not found:
            continue
        if rules.n_classes == 0:
            improve /= risk
        if improve > largest:
            largest = improve
        if improve > largest * _SMALLEST_GAIN:
            n_best = _insert(best, n_best, rules.max_compete + 1, f, m, below, improve, cut, 0.0, n_levels, work.sides)
    return n_best, largest


@_inner
def _find_surrogates(columns, rules, work, best, start, end, primary, weights, n_left, n_right, w_left, w_right):
    """List the splits of the other columns that agree best with the primary one, which sends `n_left` and `n_right`."""
    n_best = no_rows = np.int64(0)
    order = work.order[start:end]
    n_sent = w_left + w_right
    larger = max(w_left, w_right)
    for f in range(columns.n_levels.size):
        if f == primary:
            continue
        n_levels = columns.n_levels[f]
        cut = 0.0
        below = np.int64(0)
        if columns.unordered[f]:
            codes = columns.codes[columns.slot[f]]
            agree = _surrogate_levels(
                order, codes, n_levels, work.side, weights, work.level_n, work.level_w, work.level_sum, work.level_key,
                work.sides,
            )  # fmt: skip
        else:
            column = _along(columns, f, start, end, work.entries)
            agree, at, below = _surrogate_cut(column, work.side, weights, n_left, n_right, w_left, w_right, end - start)
            if at >= 0:
                cut = _middle(columns, f, column, at)
        if agree > larger:
            share = agree / n_sent
            adjusted = (share - larger / n_sent) / (1.0 - larger / n_sent)
            if adjusted > _LEAST_AGREEMENT:
                n_best = _insert(
                    best, n_best, rules.max_surrogate, f, no_rows, below, share, cut, adjusted, n_levels, work.sides
                )
    return n_best


# ------------------------------------------------------------------ sending rows


@_inner
def _side_of(x, below, cut, sides_at, sides):
    """Where a split sends a value: LEFT, RIGHT or UNKNOWN."""
    if np.isnan(x):
        return UNKNOWN
    if sides_at >= 0:
        side = np.int64(sides[sides_at + np.int64(x)])
        return UNKNOWN if side == ABSENT else side
    return LEFT if (x < cut) == (below < 0) else RIGHT


@_inner
def _send_by_surrogates(columns, nodes, splits, all_sides, work, node, majority):
    """Send the rows that the primary split does not send: by surrogates, then with the majority of the others.

    Without a majority a row stays in the node, UNKNOWN.
    """
    first = nodes.first_split[node] + 1 + nodes.n_compete[node]
    for i in range(nodes.start[node], nodes.start[node] + nodes.size[node]):
        row = work.order[i]
        side = np.int64(work.side[row])
        s = first
        while side == UNKNOWN and s < first + nodes.n_surrogate[node]:
            x = columns.matrix[splits.feature[s], row]
            side = _side_of(x, splits.below[s], splits.cut[s], splits.sides_at[s], all_sides)
            splits.count[s] += side != UNKNOWN
            s += 1
        work.side[row] = majority if side == UNKNOWN else side


@_inner
def _partition(columns, work, start, end, first_side):
    """Put the rows of `first_side` first, keeping their order, in all lists of rows; return where the others begin."""
    rows = work.order[start:end]
    at = kept = 0
    for i in range(rows.size):
        row = rows[i]
        goes_first = work.side[row] == first_side
        rows[at] = row
        work.spare_rows[kept] = row
        at += goes_first
        kept += 1 - goes_first
    for i in range(kept):
        rows[at + i] = work.spare_rows[i]
    for slot in range(columns.packed.shape[0]):
        column = columns.packed[slot, start:end]
        at = kept = 0
        for i in range(column.size):
            entry = column[i]
            goes_first = work.side[_row(entry)] == first_side
            column[at] = entry
            work.spare_packed[kept] = entry
            at += goes_first
            kept += 1 - goes_first
        for i in range(kept):
            column[at + i] = work.spare_packed[i]
    return start + at if columns.packed.shape[0] else end - kept


@_inner
def _split_node(
    columns, rules, nodes, splits, work, best, n_best, node, weights, n_nodes, n_splits, all_sides, n_sides
):
    """Write the splits of a node, send its rows and make its children; return the arrays and counts that grow.

    The first child is the one of small values, or of the first of two levels; else the left one.
    """
    start, end = nodes.start[node], nodes.start[node] + nodes.size[node]
    primary = n_splits
    feature = best.feature[0]
    nodes.feature[node] = feature
    nodes.first_split[node] = primary
    nodes.n_compete[node] = n_best - 1
    n_splits, all_sides, n_sides = _write_splits(best, n_best, splits, n_splits, all_sides, n_sides, columns.n_levels)
    below, cut, sides_at = splits.below[primary], splits.cut[primary], splits.sides_at[primary]
    n_left = n_right = np.int64(0)
    w_left = w_right = 0.0
    for i in range(start, end):
        row = work.order[i]
        side = _side_of(columns.matrix[feature, row], below, cut, sides_at, all_sides)
        work.side[row] = side
        n_left += side == LEFT
        n_right += side == RIGHT
    if not weights.size:
        w_left, w_right = float(n_left), float(n_right)
    else:
        along = not columns.unordered[feature]
        for i in range(start, end):
            row = _row(columns.packed[columns.slot[feature], i]) if along else np.int64(work.order[i])
            w_left += weights[row] * (work.side[row] == LEFT)
            w_right += weights[row] * (work.side[row] == RIGHT)
    nodes.n_surrogate[node] = 0
    if rules.max_surrogate:
        n_best = _find_surrogates(
            columns, rules, work, best, start, end, feature, weights, n_left, n_right, w_left, w_right
        )
        nodes.n_surrogate[node] = n_best
        n_splits, all_sides, n_sides = _write_splits(
            best, n_best, splits, n_splits, all_sides, n_sides, columns.n_levels
        )
    all_sent = n_left + n_right == end - start
    if not all_sent:
        majority = LEFT if w_left > w_right else RIGHT if w_right > w_left else UNKNOWN
        if rules.max_surrogate == 0:
            majority = UNKNOWN
        _send_by_surrogates(columns, nodes, splits, all_sides, work, node, majority)
    first_side = RIGHT if below > 0 or (columns.n_levels[feature] == 2 and all_sides[sides_at] == RIGHT) else LEFT
    middle = _partition(columns, work, start, end, first_side)
    if not all_sent:  # rows that stay in the node come last
        end = _partition(columns, work, middle, end, LEFT + RIGHT - first_side)
    nodes.left[node] = n_nodes
    nodes.start[n_nodes], nodes.size[n_nodes] = start, middle - start
    nodes.start[n_nodes + 1], nodes.size[n_nodes + 1] = middle, end - middle
    nodes.number[n_nodes] = 2 * nodes.number[node] + (first_side == RIGHT)
    nodes.number[n_nodes + 1] = 2 * nodes.number[node] + (first_side == LEFT)
    return n_nodes + 2, n_splits, all_sides, n_sides


# ---------------------------------------------------------------- the whole tree


@_inner
def _evaluate(columns, rules, nodes, work, node, response, labels, weights):
    """Value and risk of a node; sums run along the first column, but in the root along the data."""
    start, end = nodes.start[node], nodes.start[node] + nodes.size[node]
    order = work.order[start:end]
    column = work.entries[:0]
    if node > 0 and not columns.unordered[0] and (rules.n_classes == 0 or weights.size):
        column = columns.packed[columns.slot[0], start:end]
        order = order[:0]
    if rules.n_classes:
        value, risk = _evaluate_classes(order, column, labels, weights, rules.prior, work.in_left)
    else:
        value, risk = _evaluate_number(order, column, response, weights, work.y)
    nodes.value[node], nodes.risk[node] = value, risk


@_inner
def _close(nodes, work, node, complexity):
    """Make the node a leaf."""
    nodes.feature[node] = LEAF
    nodes.first_split[node] = LEAF
    nodes.left[node] = nodes.n_compete[node] = nodes.n_surrogate[node] = 0
    nodes.complexity[node] = complexity
    work.risk_below[node] = nodes.risk[node]
    work.n_splits[node] = 0


@_inner
def _weakest_link(nodes, work, node, left, right):
    """Decrease of risk per split of a branch, without its weaker side, then without both, if their decrease is smaller.

    Write the risk and the number of splits of the remaining branch.
    """
    weaker, stronger = (left, right) if nodes.complexity[right] > nodes.complexity[left] else (right, left)
    n_weak, n_strong = work.n_splits[weaker], work.n_splits[stronger]
    weak, strong = work.risk_below[weaker], work.risk_below[stronger]
    link = (nodes.risk[node] - (weak + strong)) / (n_weak + n_strong + 1)
    if link > nodes.complexity[weaker]:
        weak, n_weak = nodes.risk[weaker], 0
        link = (nodes.risk[node] - (weak + strong)) / (n_strong + 1)
        if link > nodes.complexity[stronger]:
            strong, n_strong = nodes.risk[stronger], 0
            link = nodes.risk[node] - (weak + strong)
    work.risk_below[node] = weak + strong
    work.n_splits[node] = n_weak + n_strong + 1
    return link


@_entry
def grow_nodes(columns, rules, nodes, splits, work, best, response, labels, weights, all_sides):
    """Grow the tree depth first, R's left child first; return numbers of nodes and splits, and the level sides.

    A node is visited three times: on the way down, between its children and on the way up.
    """
    nodes.start[0], nodes.size[0], nodes.number[0] = 0, work.order.size, 1
    root = np.int64(0)
    _evaluate(columns, rules, nodes, work, root, response, labels, weights)
    alpha = rules.cp * nodes.risk[0]
    nodes.complexity[0] = nodes.risk[0]
    n_nodes, n_splits, n_sides = root + 1, root, root
    largest = 0.0
    depth = root
    work.path[0] = work.stage[0] = 0
    while depth >= 0:
        node = work.path[depth]
        if work.stage[depth] == 0:
            bound = min(nodes.risk[node], nodes.complexity[node])
            n_best = root
            if nodes.size[node] >= rules.min_split and bound > alpha and depth < rules.max_depth:
                start, end = nodes.start[node], nodes.start[node] + nodes.size[node]
                n_best, largest = _search(
                    columns, rules, work, best, start, end, nodes.risk[node], response, labels, weights, largest
                )
            if n_best == 0:
                _close(nodes, work, node, alpha)
                depth -= 1
                continue
            work.bound[depth] = bound
            work.sides_before[depth] = n_sides
            n_nodes, n_splits, all_sides, n_sides = _split_node(
                columns, rules, nodes, splits, work, best, n_best, node, weights, n_nodes, n_splits, all_sides, n_sides
            )
            if min(nodes.size[nodes.left[node]], nodes.size[nodes.left[node] + 1]) == 0:
                # the midpoint of neighbouring floats equals one of them: there is no cut
                n_nodes, n_splits, n_sides = nodes.left[node], nodes.first_split[node], work.sides_before[depth]
                _close(nodes, work, node, 0.0)
                depth -= 1
                continue
            _evaluate(columns, rules, nodes, work, nodes.left[node], response, labels, weights)
            _evaluate(columns, rules, nodes, work, nodes.left[node] + 1, response, labels, weights)
        left = nodes.left[node] + (nodes.number[nodes.left[node]] & 1)
        right = 2 * nodes.left[node] + 1 - left
        if work.stage[depth] == 2:
            complexity = _weakest_link(nodes, work, node, left, right)
            nodes.complexity[node] = complexity
            if complexity <= alpha:  # the branch is removed
                n_nodes, n_splits, n_sides = nodes.left[node], nodes.first_split[node], work.sides_before[depth]
                _close(nodes, work, node, complexity)
            depth -= 1
            continue
        child = left
        bound = work.bound[depth]
        if work.stage[depth] == 1:
            child = right
            link = (nodes.risk[node] - work.risk_below[left]) / (work.n_splits[left] + 1)
            bound = min(bound, max(link, nodes.risk[node] - nodes.risk[left]))
        nodes.complexity[child] = bound - alpha
        work.stage[depth] += 1
        depth += 1
        work.path[depth] = child
        work.stage[depth] = 0
    for node in range(n_nodes):  # parents come before their children
        if nodes.feature[node] >= 0:
            for child in range(nodes.left[node], nodes.left[node] + 2):
                nodes.complexity[child] = min(nodes.complexity[child], nodes.complexity[node])
    return n_nodes, n_splits, all_sides[:n_sides]


@_entry
def place_rows(start, size, order, leaf):
    """Write the last node that each training row reached."""
    for node in range(start.size):  # parents come before their children
        for i in range(start[node], start[node] + size[node]):
            leaf[order[i]] = node


@_entry
def route_rows(matrix, nodes, splits, sides, leaf):
    """Route the columns of `matrix` through the tree: by primary split, surrogates, larger child; else they stay."""
    for i in range(leaf.size):
        node = 0
        while nodes.feature[node] >= 0:
            s = nodes.first_split[node]
            last = s + nodes.n_compete[node] + nodes.n_surrogate[node]
            side = _side_of(matrix[splits.feature[s], i], splits.below[s], splits.cut[s], splits.sides_at[s], sides)
            s += nodes.n_compete[node]
            while side == UNKNOWN and s < last:
                s += 1
                x = matrix[splits.feature[s], i]
                side = _side_of(x, splits.below[s], splits.cut[s], splits.sides_at[s], sides)
            first = nodes.left[node]
            if side == UNKNOWN:
                if nodes.size[first] == nodes.size[first + 1]:
                    break
                node = first + (nodes.size[first + 1] > nodes.size[first])
            else:
                node = first + ((side == LEFT) == (nodes.number[first] & 1 == 1))
        leaf[i] = node
