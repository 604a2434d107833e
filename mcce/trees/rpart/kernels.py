"""Numba kernels that grow and route rpart's trees; see `mcce.trees.rpart.tree` for the rules.

1. Numbers and ordered levels: the rows of each node are kept sorted by every such column, in R's order of equal values
   (`sort_as_r`). Unordered levels: the rows are kept in the order of the data.
2. Sums are sequential in R's order of rows, and quotients are computed as in R: the last bit decides between equally
   good cuts.
3. A split sends a row LEFT, RIGHT or, where its value is missing or its level absent from the node, UNKNOWN.
4. Nodes are stored in the order of R's frame: a node, the branch of its left child, the branch of its right child.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from mcce._utils import jit
from mcce.trees.kernels import LEAF, LEAN, inner

UNKNOWN, LEFT, ABSENT, RIGHT = 0, 1, 2, 3  # the last three as in R's table `csplit`
MAX_DEPTH = 30  # numbers of deeper nodes do not fit into R's integers
_SORTED_BY_INSERTION = 11
_SMALLEST_GAIN = 1e-10  # share of the largest improvement in the tree so far
_LEAST_ROWS = 2  # on each side of a surrogate
_LEAST_AGREEMENT = 1e-10  # of a surrogate beyond the majority; less is rounding

NODE = np.dtype(
    [
        ("number", np.int64),  # the root is 1, the children of k are 2k (left) and 2k + 1
        ("variable", np.int64),  # column of the split; LEAF
        ("right", np.int64),  # right child; the left one is the next node
        ("start", np.int64),  # while growing: where the rows of the node begin
        ("n", np.int64),
        ("value", np.float64),  # mean, or most frequent class
        ("risk", np.float64),  # sum of squares, or rows of other classes
        ("complexity", np.float64),
        ("split", np.int64),  # primary split; the surrogates follow
        ("n_surrogates", np.int64),
        ("branch_risk", np.float64),
        ("branch_splits", np.int64),
    ]
)
SPLIT = np.dtype(
    [
        ("variable", np.int64),
        ("n", np.int64),  # rows with a known value; of a surrogate: training rows that it sent
        ("below", np.int64),  # -1: smaller values go left, 1: right; 0 for unordered levels
        ("improve", np.float64),  # of a surrogate: share of rows on which it agrees with the primary split
        ("cut", np.float64),
        ("adjusted", np.float64),  # of a surrogate: the same, beyond the majority
    ]
)

Columns = namedtuple("Columns", "matrix sorted_rows slot n_levels")  # n_levels: of unordered columns, else 0
Rules = namedtuple("Rules", "n_classes weight cp minsplit minbucket maxdepth maxsurrogate")
Work = namedtuple(
    "Work",
    "order side spare x y row in_left in_right level_n level_weight level_sum level_key level_order table sides "
    "path stage middle last bound",
)

# integers begin as int64, because a kernel is compiled again for each other type of integer


def scratch(n: int, n_classes: int, width: int) -> Work:
    """Return scratch arrays for `n` rows, `n_classes` classes and columns of up to `width` levels."""
    depths = MAX_DEPTH + 2
    return Work(
        order=np.arange(n, dtype=np.int32),
        side=np.empty(n, dtype=np.uint8),
        spare=np.empty(n, dtype=np.int32),
        x=np.empty(n),
        y=np.empty(n),
        row=np.empty(n, dtype=np.int32),
        in_left=np.empty(n_classes),
        in_right=np.empty(n_classes),
        level_n=np.empty(width, dtype=np.int64),
        level_weight=np.empty(width),
        level_sum=np.empty(width),
        level_key=np.empty(width),
        level_order=np.empty(width, dtype=np.int64),
        table=np.empty((width, n_classes)),
        sides=np.empty(width, dtype=np.uint8),
        path=np.empty(depths, dtype=np.int64),
        stage=np.empty(depths, dtype=np.int64),
        middle=np.empty(depths, dtype=np.int64),
        last=np.empty(depths, dtype=np.int64),
        bound=np.empty(depths),
    )


# ---------------------------------------------------------------- order of rows


@jit(**LEAN)
def sort_as_r(key, row, waiting):
    """Sort `key` in place, and `row` along with it, by quicksort around the median of first, middle and last value.

    The order of equal values affects all sums: a pair on the wrong sides of the median is swapped, a pair of equal
    values is not; short pieces are sorted by insertion. `waiting` is scratch of shape (128, 2).
    """
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


@inner
def _read_known(columns, j, start, end, y, work):
    """Copy value, response and row of the node's rows in which column j is known, sorted by it if it has an order."""
    m = np.int64(0)
    for i in range(start, end):
        row = work.order[i] if columns.n_levels[j] else columns.sorted_rows[columns.slot[j], i]
        x = columns.matrix[j, row]
        if not np.isnan(x):
            work.x[m], work.y[m], work.row[m] = x, y[row], row
            m += 1
    return m


# ------------------------------------------------------- cuts: numeric response


@inner
def _cut_numbers(x, y, m, minbucket):
    """Best cut of a sorted column: decrease of the sum of squares, entry before the cut, sign (-1: small goes left)."""
    total = 0.0
    for i in range(m):
        total += y[i]
    mean = total / m
    best = left = 0.0
    at, below = np.int64(-1), np.int64(0)
    for i in range(m - minbucket):
        left += y[i] - mean
        if i + 1 < minbucket or x[i] == x[i + 1]:
            continue
        score = left * left / (i + 1) + left * left / (m - i - 1)
        if score > best:
            best, at = score, i
            below = -1 if left < 0.0 else 1
    return best, at, below


@inner
def _sort_levels(key, order, n):
    """Sort the first n levels in `order` by their key, stably."""
    for i in range(1, n):
        level = order[i]
        j = i - 1
        while j >= 0 and key[order[j]] > key[level]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = level


@inner
def _levels_numbers(m, n_levels, minbucket, work):
    """Best cut of the levels in the order of their means: decrease of the sum of squares, whether there is a cut."""
    total = 0.0
    for c in range(n_levels):
        work.level_n[c] = 0
        work.level_sum[c] = 0.0
        work.sides[c] = ABSENT
    for i in range(m):
        total += work.y[i]
    mean = total / m
    for i in range(m):
        c = np.int64(work.x[i])
        work.level_n[c] += 1
        work.level_sum[c] += work.y[i] - mean
    present = np.int64(0)
    for c in range(n_levels):
        if work.level_n[c]:
            work.level_key[c] = work.level_sum[c] / work.level_n[c]
            work.level_order[present] = c
            present += 1
    _sort_levels(work.level_key, work.level_order, present)
    best = left = 0.0
    at, n_left = -1, 0
    lower = True  # up to rounding, the first levels have the lower mean
    for i in range(present - 1):
        n_left += work.level_n[work.level_order[i]]
        left += work.level_sum[work.level_order[i]]
        if n_left >= minbucket and m - n_left >= minbucket:
            score = left * left / n_left + left * left / (m - n_left)
            if score > best:
                best, at, lower = score, i, left < 0.0
    for i in range(present):
        work.sides[work.level_order[i]] = LEFT if (i <= at) == lower else RIGHT
    return best, at >= 0


# ---------------------------------------------------------- cuts: classes


@inner
def _gini(weight, counts, total):
    """Gini index of a group of rows, times its weight, added up class by class."""
    index = 0.0
    for k in range(weight.size):
        share = weight[k] * counts[k] / total
        index += total * (share * (1.0 - share))
    return index


@inner
def _gini_of_both(weight, in_left, in_right, left, right):
    """Weighted Gini index of both sides; the order of the terms is R's."""
    index = 0.0
    for k in range(weight.size):
        share = weight[k] * in_left[k] / left
        index += left * (share * (1.0 - share))
        share = weight[k] * in_right[k] / right
        index += right * (share * (1.0 - share))
    return index


@inner
def _is_lower_class(weight, in_left, in_right, left, right):
    """Whether the mean class number is lower on the left."""
    mean_left = mean_right = 0.0
    for k in range(weight.size):
        mean_left += weight[k] * in_left[k] / left * k
        mean_right += weight[k] * in_right[k] / right * k
    return mean_left < mean_right


@inner
def _cut_classes(m, minbucket, weight, work):
    """Best cut of a sorted column: decrease of the Gini index, entry before the cut, sign (-1: small goes left)."""
    x, y, in_left, in_right = work.x, work.y, work.in_left, work.in_right
    for k in range(weight.size):
        in_left[k] = in_right[k] = 0.0
    left = right = 0.0
    for i in range(m):
        k = np.int64(y[i])
        in_right[k] += 1.0
        right += weight[k]
    undivided = best = _gini(weight, in_right, right)
    at, below = np.int64(-1), np.int64(0)
    for i in range(m - minbucket):
        k = np.int64(y[i])
        left += weight[k]
        right -= weight[k]
        in_left[k] += 1.0
        in_right[k] -= 1.0
        if i + 1 < minbucket or x[i] == x[i + 1]:
            continue
        score = _gini_of_both(weight, in_left, in_right, left, right)
        if score < best:
            best, at = score, i
            below = -1 if _is_lower_class(weight, in_left, in_right, left, right) else 1
    return undivided - best, at, below


@inner
def _levels_classes(m, n_levels, minbucket, weight, work):
    """Best partition of the levels: decrease of the Gini index, whether there is a partition.

    Two classes: a cut of the levels in the order of the first class's share. More: all subsets, each made from the one
    before by moving one level (a Gray code). The last level that the column can have never moves, present or not.
    """
    level_n, level_weight, level_order, table = work.level_n, work.level_weight, work.level_order, work.table
    in_left, in_right = work.in_left, work.in_right
    for c in range(n_levels):
        level_n[c] = 0
        level_weight[c] = 0.0
        work.sides[c] = ABSENT
        for k in range(weight.size):
            table[c, k] = 0.0
    right = 0.0
    for i in range(m):
        c, k = np.int64(work.x[i]), np.int64(work.y[i])
        level_n[c] += 1
        level_weight[c] += weight[k]
        table[c, k] += 1.0
        right += weight[k]
    for k in range(weight.size):
        in_left[k] = in_right[k] = 0.0
    present = np.int64(0)
    for c in range(n_levels):
        if level_n[c]:
            level_order[present] = c
            work.level_key[c] = weight[0] * table[c, 0] / level_weight[c]
            present += 1
            for k in range(weight.size):
                in_right[k] += table[c, k]
    undivided = best = _gini(weight, in_right, right)
    two = weight.size == 2
    n_steps = present - 1
    if two:
        _sort_levels(work.level_key, level_order, present)
    elif present:
        n_steps = (1 << (present - (level_order[present - 1] == n_levels - 1))) - 1
    left = 0.0
    n_left = subset = chosen = np.int64(0)  # bit a: the level level_order[a] is in the left group
    lower = True
    for step in range(1, n_steps + 1):
        a = step - 1
        if not two:
            a = 0
            while step >> a & 1 == 0:
                a += 1
        c = level_order[a]
        sign = -1 if subset >> a & 1 else 1
        subset ^= 1 << a
        n_left += sign * level_n[c]
        left += sign * level_weight[c]
        right -= sign * level_weight[c]
        for k in range(weight.size):
            in_left[k] += sign * table[c, k]
            in_right[k] -= sign * table[c, k]
        if n_left < minbucket or m - n_left < minbucket:
            continue
        score = _gini_of_both(weight, in_left, in_right, left, right)
        if score < best:
            best, chosen = score, subset
            lower = _is_lower_class(weight, in_left, in_right, left, right)
    for a in range(present):
        work.sides[level_order[a]] = LEFT if (chosen >> a & 1 == 1) == lower else RIGHT
    return undivided - best, chosen != 0


# ------------------------------------------------------------------- surrogates


@inner
def _surrogate_cut(x, row, m, side, n_left, n_right):
    """Cut of a sorted column that agrees best with the primary split: rows that agree, entry before the cut, sign.

    The primary split sends `n_left` and `n_right` of the node's rows. Either direction may win, but only by agreeing on
    more rows than the larger side has, and with two rows that the primary split sends on each side.
    """
    best = max(n_left, n_right)
    left_above = right_above = left_below = right_below = np.int64(0)
    for i in range(m):
        left_above += side[row[i]] == LEFT
        right_above += side[row[i]] == RIGHT
    at, below = np.int64(-1), np.int64(0)
    for i in range(m - 1):
        left_above -= side[row[i]] == LEFT
        left_below += side[row[i]] == LEFT
        right_above -= side[row[i]] == RIGHT
        right_below += side[row[i]] == RIGHT
        straight, crossed = left_below + right_above, right_below + left_above
        if max(straight, crossed) <= best or x[i] == x[i + 1]:
            continue
        if min(left_below + right_below, left_above + right_above) >= _LEAST_ROWS:
            best, at = max(straight, crossed), i
            below = -1 if straight >= crossed else 1
    return best, at, below


@inner
def _surrogate_levels(m, n_levels, work):
    """Send each level with the majority of its rows, on ties with that of all; return the number of rows that agree.

    As in R, the result is 0 if fewer than two rows disagree.
    """
    level_n, level_left, sides = work.level_n, work.level_sum, work.sides
    known = n_left = agree = np.int64(0)
    for c in range(n_levels):
        level_n[c] = 0
        level_left[c] = 0.0
    for i in range(m):
        side = work.side[work.row[i]]
        if side != UNKNOWN:
            c = np.int64(work.x[i])
            known += 1
            level_n[c] += 1
            level_left[c] += side == LEFT
            n_left += side == LEFT
    for c in range(n_levels):
        left = np.int64(level_left[c])
        right = level_n[c] - left
        sides[c] = LEFT if left > right or (left == right and n_left > known - n_left) else RIGHT
        agree += left if sides[c] == LEFT else right
        if level_n[c] == 0:
            sides[c] = ABSENT
    return agree if known - agree >= _LEAST_ROWS else np.int64(0)


@inner
def _insert_surrogate(splits, sides, first, n_listed, most, improve):
    """Make room among the listed surrogates, best first, after equally good ones; return place and new number.

    The place is -1 if there is none. As in R, a full list of two is emptied first if the split is better than both.
    """
    at = n_listed
    while at > 0 and splits[first + at - 1].improve < improve:
        at -= 1
    if at == most:
        return np.int64(-1), n_listed
    if most == 2 and n_listed == 2 and at == 0:
        n_listed = at
    last = min(n_listed, most - 1)
    for i in range(first + last, first + at, -1):
        splits[i] = splits[i - 1]
        for c in range(sides.shape[1]):
            sides[i, c] = sides[i - 1, c]
    return first + at, last + 1


@inner
def _find_surrogates(columns, rules, y, splits, sides, work, start, end, primary, n_left, n_right):
    """List the splits of other columns that agree best with the primary one after it; return their number."""
    n_listed = no_rows = np.int64(0)
    larger = max(n_left, n_right)
    for j in range(columns.n_levels.size):
        if j == splits[primary].variable:
            continue
        m = _read_known(columns, j, start, end, y, work)
        cut, at, below = 0.0, np.int64(-1), np.int64(0)
        if columns.n_levels[j]:
            agree = _surrogate_levels(m, columns.n_levels[j], work)
        else:
            agree, at, below = _surrogate_cut(work.x, work.row, m, work.side, n_left, n_right)
            if at >= 0:
                cut = (work.x[at] + work.x[at + 1]) / 2.0
        share, majority = agree / (n_left + n_right), larger / (n_left + n_right)
        if agree <= larger or (share - majority) / (1.0 - majority) <= _LEAST_AGREEMENT:
            continue
        place, n_listed = _insert_surrogate(splits, sides, primary + 1, n_listed, rules.maxsurrogate, share)
        if place >= 0:
            adjusted = (share - majority) / (1.0 - majority)
            _write_split(splits, sides, place, j, no_rows, below, share, cut, adjusted, work, columns.n_levels[j])
    return n_listed


# ------------------------------------------------------------- one node


@inner
def _write_split(splits, sides, at, variable, n, below, improve, cut, adjusted, work, n_levels):
    split = splits[at]
    split.variable, split.n, split.below, split.improve = variable, n, below, improve
    split.cut, split.adjusted = cut, adjusted
    for c in range(n_levels):
        sides[at, c] = work.sides[c]


@inner
def _search(columns, rules, y, splits, sides, work, start, end, risk, at_split, largest):
    """Write the best split of a node, if it has one; `largest` is the largest improvement in the tree so far."""
    best = 0.0
    for j in range(columns.n_levels.size):
        n_levels = columns.n_levels[j]
        m = _read_known(columns, j, start, end, y, work)
        cut, at, below = 0.0, np.int64(-1), np.int64(0)
        if n_levels:
            if rules.n_classes:
                improve, has_cut = _levels_classes(m, n_levels, rules.minbucket, rules.weight, work)
            else:
                improve, has_cut = _levels_numbers(m, n_levels, rules.minbucket, work)
        else:
            if m < 2 * rules.minbucket or work.x[0] == work.x[m - 1]:
                continue
            if rules.n_classes:
                improve, at, below = _cut_classes(m, rules.minbucket, rules.weight, work)
            else:
                improve, at, below = _cut_numbers(work.x, work.y, m, rules.minbucket)
            has_cut = at >= 0
        if not has_cut:
            continue
        if rules.n_classes == 0:
            improve /= risk
        largest = max(largest, improve)
        if improve > best and improve > largest * _SMALLEST_GAIN:
            best = improve
            if at >= 0:
                cut = (work.x[at] + work.x[at + 1]) / 2.0
            _write_split(splits, sides, at_split, j, m, below, improve, cut, 0.0, work, n_levels)
    return best > 0.0, largest


@inner
def _side_of(x, split, sides, n_levels):
    """Where a split sends a value."""
    if np.isnan(x):
        return UNKNOWN
    if n_levels:
        side = np.int64(sides[np.int64(x)])
        return UNKNOWN if side == ABSENT else side
    return LEFT if (x < split.cut) == (split.below < 0) else RIGHT


@inner
def _partition(columns, work, start, end, side):
    """Put the rows of one side first, keeping their order, in all lists of rows; return where the others begin."""
    begin_others = start
    for slot in range(-1, columns.sorted_rows.shape[0]):
        rows = work.order if slot < 0 else columns.sorted_rows[slot]
        begin_others, kept = start, np.int64(0)
        for i in range(start, end):
            row = rows[i]
            goes_first = work.side[row] == side
            rows[begin_others] = row
            work.spare[kept] = row
            begin_others += goes_first
            kept += 1 - goes_first
        for i in range(kept):
            rows[begin_others + i] = work.spare[i]
    return begin_others


@inner
def _split_node(columns, rules, y, nodes, splits, sides, work, node, primary):
    """Find the surrogates of a node's primary split and partition its rows; return the ends of the two sides.

    A row that the primary split does not send goes by the first surrogate that knows it, else with the majority of the
    others. Without a majority it stays in the node, and is put last.
    """
    start, end = nodes[node].start, nodes[node].start + nodes[node].n
    variable = splits[primary].variable
    n_left = n_right = np.int64(0)
    for i in range(start, end):
        row = work.order[i]
        side = _side_of(columns.matrix[variable, row], splits[primary], sides[primary], columns.n_levels[variable])
        work.side[row] = side
        n_left += side == LEFT
        n_right += side == RIGHT
    nodes[node].variable = variable
    nodes[node].split = primary
    nodes[node].n_surrogates = 0
    majority = UNKNOWN
    if rules.maxsurrogate:
        nodes[node].n_surrogates = _find_surrogates(
            columns, rules, y, splits, sides, work, start, end, primary, n_left, n_right
        )
        majority = LEFT if n_left > n_right else RIGHT if n_right > n_left else UNKNOWN
    for i in range(start, end):
        row = work.order[i]
        side = np.int64(work.side[row])
        s = primary
        while side == UNKNOWN and s < primary + nodes[node].n_surrogates:
            s += 1
            j = splits[s].variable
            side = _side_of(columns.matrix[j, row], splits[s], sides[s], columns.n_levels[j])
            splits[s].n += side != UNKNOWN
        work.side[row] = majority if side == UNKNOWN else side
    middle = _partition(columns, work, start, end, np.int64(LEFT))
    return middle, _partition(columns, work, middle, end, np.int64(RIGHT))


@inner
def _add_node(columns, rules, y, nodes, work, node, number, start, end, complexity):
    """Write a node without a split: its rows, value and risk.

    R adds up the numbers of a node in the order of the first column, but those of the root in the order of the data.
    """
    rows = work.order
    value = risk = 0.0
    if rules.n_classes:
        counts, most = work.in_left, 0
        for k in range(counts.size):
            counts[k] = 0.0
        for i in range(start, end):
            counts[np.int64(y[rows[i]])] += 1.0
        for k in range(counts.size):
            most = k if counts[k] > counts[most] else most
        value = float(most)
        risk = end - start - counts[most]
    else:
        if node > 0 and columns.n_levels[0] == 0:
            rows = columns.sorted_rows[columns.slot[0]]
        for i in range(start, end):
            value += y[rows[i]]
        value /= end - start
        for i in range(start, end):
            risk += (y[rows[i]] - value) * (y[rows[i]] - value)
    added = nodes[node]
    added.number, added.start, added.n, added.value, added.risk = number, start, end - start, value, risk
    added.complexity = complexity


# ---------------------------------------------------------------- the whole tree


@inner
def _close(nodes, node, complexity):
    """Make the node a leaf."""
    leaf = nodes[node]
    leaf.variable = leaf.split = LEAF
    leaf.right = leaf.n_surrogates = leaf.branch_splits = 0
    leaf.complexity, leaf.branch_risk = complexity, leaf.risk


@inner
def _weakest_link(nodes, node):
    """Decrease of risk per split of a branch, without its weaker side, then without both, if their decrease is smaller.

    Write the risk and the number of splits of the remaining branch.
    """
    weaker, stronger = node + 1, nodes[node].right
    if nodes[stronger].complexity <= nodes[weaker].complexity:
        weaker, stronger = stronger, weaker
    n_weak, n_strong = nodes[weaker].branch_splits, nodes[stronger].branch_splits
    weak, strong = nodes[weaker].branch_risk, nodes[stronger].branch_risk
    risk = nodes[node].risk
    link = (risk - (weak + strong)) / (n_weak + n_strong + 1)
    if link > nodes[weaker].complexity:
        weak, n_weak = nodes[weaker].risk, 0
        link = (risk - (weak + strong)) / (n_strong + 1)
        if link > nodes[stronger].complexity:
            strong, n_strong = nodes[stronger].risk, 0
            link = risk - (weak + strong)
    nodes[node].branch_risk = weak + strong
    nodes[node].branch_splits = n_weak + n_strong + 1
    return link


@jit(**LEAN)
def grow_nodes(columns, rules, y, nodes, splits, sides, work, node_of_row):
    """Grow the tree depth first; return the numbers of nodes and splits.

    A node is visited three times: on the way down, between its children and on the way up. `node_of_row` gets the last
    node that each row reaches.
    """
    path, stage = work.path, work.stage
    root, one, n = np.int64(0), np.int64(1), np.int64(y.size)
    _add_node(columns, rules, y, nodes, work, root, one, root, n, 0.0)
    nodes[0].complexity = nodes[0].risk
    alpha = rules.cp * nodes[0].risk
    n_nodes, n_splits, depth, largest = one, root, root, 0.0
    path[0] = stage[0] = 0
    while depth >= 0:
        node = path[depth]
        start, end = nodes[node].start, nodes[node].start + nodes[node].n
        if stage[depth] == 0:
            bound = min(nodes[node].risk, nodes[node].complexity)
            has_cut = False
            if nodes[node].n >= rules.minsplit and bound > alpha and depth < rules.maxdepth:
                has_cut, largest = _search(
                    columns, rules, y, splits, sides, work, start, end, nodes[node].risk, n_splits, largest
                )
            if not has_cut:
                _close(nodes, node, alpha)
                depth -= 1
                continue
            work.middle[depth], work.last[depth] = _split_node(
                columns, rules, y, nodes, splits, sides, work, node, n_splits
            )
            if work.middle[depth] == start or work.middle[depth] == work.last[depth]:
                # the midpoint of neighbouring floats equals one of them: there is no cut
                _close(nodes, node, 0.0)
                depth -= 1
                continue
            n_splits += 1 + nodes[node].n_surrogates
            work.bound[depth] = bound
            child, number, start, end = node + 1, 2 * nodes[node].number, start, work.middle[depth]
        elif stage[depth] == 1:
            left = node + 1
            link = (nodes[node].risk - nodes[left].branch_risk) / (nodes[left].branch_splits + 1)
            bound = min(work.bound[depth], max(link, nodes[node].risk - nodes[left].risk))
            child, number, start, end = n_nodes, 2 * nodes[node].number + 1, work.middle[depth], work.last[depth]
            nodes[node].right = child
        else:
            complexity = _weakest_link(nodes, node)
            nodes[node].complexity = complexity
            if complexity <= alpha:  # the branch is removed
                n_nodes, n_splits = node + 1, nodes[node].split
                _close(nodes, node, complexity)
            depth -= 1
            continue
        _add_node(columns, rules, y, nodes, work, child, number, start, end, bound - alpha)
        n_nodes = child + 1
        stage[depth] += 1
        depth += 1
        path[depth], stage[depth] = child, 0
    for node in range(n_nodes):  # parents come before their children
        start, end = nodes[node].start, nodes[node].start + nodes[node].n
        for i in range(start, end):
            node_of_row[work.order[i]] = node
        if nodes[node].variable >= 0:
            for child in (node + 1, nodes[node].right):
                nodes[child].complexity = min(nodes[child].complexity, nodes[node].complexity)
    return n_nodes, n_splits


@jit(**LEAN)
def route_rows(matrix, nodes, splits, sides, n_levels, may_stay, node_of_row):
    """Route the columns of `matrix`: by primary split, surrogates, larger child; else they stay, or go left."""
    for i in range(node_of_row.size):
        node = np.int64(0)
        while nodes[node].variable >= 0:
            s = nodes[node].split
            last = s + nodes[node].n_surrogates
            side = UNKNOWN
            while side == UNKNOWN and s <= last:
                j = splits[s].variable
                side = _side_of(matrix[j, i], splits[s], sides[s], n_levels[j])
                s += 1
            if side == UNKNOWN:
                excess = nodes[node + 1].n - nodes[nodes[node].right].n
                if excess == 0 and may_stay:
                    break
                side = LEFT if excess >= 0 else RIGHT
            node = node + 1 if side == LEFT else nodes[node].right
        node_of_row[i] = node
