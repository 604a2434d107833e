"""Trees for the conditional of one column given the others, on binned cells; and distances to the nearest rows.

Cells come column by column: `bins[j, i]` is the bin of column j of row i. A node asks whether the bin of a column is at
most `cut`, or (`single`) whether it is `cut`; the left child is for yes, the right one stands next to it.
"""

from __future__ import annotations

import numpy as np

from mcce.base.compiling import entry, inner

# mypy: disable-error-code="no-untyped-def"

LEAF = -1
N_BITS = 63
VERY_FEW = 4  # changed cells, up to which others are looked at in order
ROUNDING = 1e-9  # more than sums of steps are rounded by


@inner
def best_question(histogram, total, expected, size, is_ordered, fewest):
    """Return the largest chi-square statistic of a question about one column, its bin, and whether it is a single one.

    `histogram[b, c]` is the weight of class c in bin b, `total[c]` that of the node, `expected[c]` one over its share.
    """
    best = 0.0
    cut = -1
    single = False
    n_classes = total.size
    running = histogram.shape[0] - 1  # no column has so many bins: there the sums are kept
    for c in range(n_classes):
        histogram[running, c] = 0.0
    left = 0.0
    for b in range(running):
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
                statistic = 0.0
                for c in range(n_classes):
                    gap = histogram[running, c] - left * total[c] / size
                    statistic += gap * gap * expected[c]
                statistic *= size / (left * (size - left))
                if statistic > best:
                    best = statistic
                    cut = b
                    single = False
        if (b == 0 or not is_ordered) and here >= fewest and size - here >= fewest:
            statistic = 0.0
            for c in range(n_classes):
                gap = histogram[b, c] - here * total[c] / size
                statistic += gap * gap * expected[c]
            statistic *= size / (here * (size - here))
            if statistic > best:
                best = statistic
                cut = b
                single = True
    return best, cut, single


@entry
def grow_cells(
    bins, target, classes, weight, ordered, needed, fewest, depth, rows, spare, histogram, total, expected,
    column, cut, single, left, begin, end, level, leaf,
):  # fmt: skip
    """Grow a tree for the classes of column `target`; return how many nodes it has. `leaf` gets the node of each row.

    A node is split by the question with the largest chi-square statistic, if that is above `needed[d]`, d being one
    less than the classes that the node has, and each side has a weight of `fewest`.
    """
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
            total[classes[rows[a]]] += weight[rows[a]]
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
            for j in range(bins.shape[0]):
                if j == target:
                    continue
                for b in range(histogram.shape[0]):
                    for c in range(n_classes):
                        histogram[b, c] = 0.0
                for a in range(first, last):
                    histogram[bins[j, rows[a]], classes[rows[a]]] += weight[rows[a]]
                statistic, at, alone = best_question(histogram, total, expected, size, ordered[j], fewest)
                if statistic > best:
                    best = statistic
                    column[node] = j
                    cut[node] = at
                    single[node] = alone
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


@inner
def walk(bins, i, column, cut, single, left, node):
    """Return the leaf of a row in the tree whose root is `node`."""
    while column[node] != LEAF:
        value = bins[column[node], i]
        goes_left = value == cut[node] or (not single[node] and value < cut[node])
        node = left[node] + (0 if goes_left else 1)
    return node


@entry
def find_leaves(bins, column, cut, single, left, root, leaf):
    """Write the leaf of every row in one tree."""
    for i in range(leaf.size):
        leaf[i] = walk(bins, i, column, cut, single, left, root)


@inner
def bin_of(value, edges, low, high, last):
    """Return the bin of a cell whose column has edges[low:high]: 0 for missing, else 1 and the edges below."""
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
def beyond(value, low, high, reach):
    """Return how far a value is outside a range, in units of its reach; 0 inside, or if it is missing."""
    below, above = low - value, value - high
    far = below if below > above else above
    return far / reach if far > 0.0 else 0.0


@inner
def bit_of(column):
    """Return the bit of a column in its word, the `column // N_BITS`-th."""
    return 1 << (column % N_BITS)


@entry
def least_of_made(
    rows, which, begin, made_from, origins, edges, first_edge, last, low, high, reach, targets, roots, column, cut,
    single, left, share, holds, own_bins, own_share, asked, own_far, bins, changed, out,
):  # fmt: skip
    """Write the least share of the cells of some rows, minus how far they are out of range for those that are.

    Rows which[begin[g] : begin[g + 1]] are like row made_from[g] of `origins` but for a few cells. A tree that asks
    about none of these on the origin's way, and that is not about one of them, says of the row what it says of the
    origin: by slot, `own_share`, and in `asked` the bits of the columns, in words. `holds` says whose is in a slot;
    `share[left[leaf], bin]` is the share of a cell in a leaf; `bins` and `changed` are room for a row's bins and bits.
    """
    n_columns = origins.shape[1]
    for g in range(made_from.size):
        f = made_from[g]
        slot = f % holds.size
        if holds[slot] != f:
            own_far[slot] = 0.0
            for j in range(n_columns):
                own_bins[slot, j] = bin_of(origins[f, j], edges, first_edge[j], first_edge[j + 1], last)
                bins[j, 0] = own_bins[slot, j]
                far = beyond(origins[f, j], low[j], high[j], reach[j])
                if far > own_far[slot]:
                    own_far[slot] = far
            for a in range(targets.size):
                node = roots[a]
                for w in range(changed.size):
                    asked[slot, w, a] = 0
                asked[slot, targets[a] // N_BITS, a] = bit_of(targets[a])
                while column[node] != LEAF:
                    asked[slot, column[node] // N_BITS, a] |= bit_of(column[node])
                    value = bins[column[node], 0]
                    goes_left = value == cut[node] or (not single[node] and value < cut[node])
                    node = left[node] + (0 if goes_left else 1)
                own_share[slot, a] = share[left[node], bins[targets[a], 0]]
            holds[slot] = f
        for i in range(begin[g], begin[g + 1]):
            r = which[i]
            for w in range(changed.size):
                changed[w] = 0
            farthest = 0.0
            for j in range(n_columns):
                x, old = rows[r, j], origins[f, j]
                bins[j, 0] = own_bins[slot, j]
                if x != old and not (x != x and old != old):
                    bins[j, 0] = bin_of(x, edges, first_edge[j], first_edge[j + 1], last)
                    changed[j // N_BITS] |= bit_of(j)
                elif own_far[slot] == 0.0:
                    continue
                far = beyond(x, low[j], high[j], reach[j])
                if far > farthest:
                    farthest = far
            least = 1.0
            for a in range(targets.size):
                found = own_share[slot, a]
                differs = False
                for w in range(changed.size):
                    differs = differs or (asked[slot, w, a] & changed[w]) != 0
                if differs:
                    node = walk(bins, 0, column, cut, single, left, roots[a])
                    found = share[left[node], bins[targets[a], 0]]
                if found < least:
                    least = found
            out[r] = -farthest if farthest > 0.0 else least


@inner
def add_steps(values, x, scale, factor, sums):
    """Add `factor` times the steps of some values of one column to x.

    A step is |x - y| times the column's scale, or 1 for any change where that is 0; 1 against a missing value.
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
def step_to(y, x, scale):
    """Return the step of one value, as `add_steps` adds it."""
    if scale == 0.0 or x != x:
        return 1.0 if x != y and not (x != x and y != y) else 0.0
    step = abs(y - x) * scale
    return 1.0 if step != step else step


@inner
def most_nearer(x, old, scale):
    """Return the most that a change can bring a row nearer to others: its own step, by the triangle inequality."""
    if x == x and old == old:
        return step_to(x, old, scale)
    return 1.0 if scale == 0.0 else np.inf


@inner
def insert_nearest(nearest, value):
    """Keep a value among the smallest, in order."""
    a = nearest.size - 1
    if value < nearest[a]:
        while a > 0 and nearest[a - 1] > value:
            nearest[a] = nearest[a - 1]
            a -= 1
        nearest[a] = value


@inner
def sort_roughly(base, order, ends, least):
    """Put the places of some numbers in order of their size, in groups: `order[ends[b - 1] : ends[b]]` is group b.

    `least[b]` is the smallest number of this group and of those after it.
    """
    n_groups = ends.size
    low, high = np.inf, -np.inf
    for r in range(base.size):
        low, high = min(low, base[r]), max(high, base[r])
    width = n_groups / (high - low) if low < high < np.inf else 0.0
    for b in range(n_groups):
        ends[b] = 0
        least[b] = np.inf
    for r in range(base.size):
        b = min(int((base[r] - low) * width), n_groups - 1) if width > 0.0 else 0
        ends[b] += 1
        least[b] = min(least[b], base[r])
    total = 0
    for b in range(n_groups):
        total += ends[b]
        ends[b] = total - ends[b]  # where the group begins; it ends there once it is filled
    for r in range(base.size):
        b = min(int((base[r] - low) * width), n_groups - 1) if width > 0.0 else 0
        order[ends[b]] = r
        ends[b] += 1
    for b in range(n_groups - 2, -1, -1):
        least[b] = min(least[b], least[b + 1])


@entry
def mean_of_nearest(
    rows, which, begin, made_from, origins, others, scale, holds, own, order, ends, least, changed, sums, nearest, out,
):  # fmt: skip
    """Write the mean distance of each of some rows to its nearest of some others.

    Rows which[begin[g] : begin[g + 1]] are like row made_from[g] of `origins` but for a few cells: the distances of
    that row are in a slot of `own`, and those of its rows differ from them by these cells. Where the cells are very
    few, others are looked at in the order of the origin's distance, until the changes cannot bring one near enough.
    `holds` says whose distances are in a slot. `others` comes column by column.
    """
    n, n_columns, k = others.shape[1], origins.shape[1], nearest.size
    known = min(k, n)
    for g in range(made_from.size):
        f = made_from[g]
        slot = f % holds.size
        base = own[slot, :n]
        if holds[slot] != f:
            for r in range(n):
                base[r] = 0.0
            for j in range(n_columns):
                add_steps(others[j], origins[f, j], scale[j], 1.0, base)
            sort_roughly(base, order[slot], ends[slot], least[slot])
            holds[slot] = f
        for i in range(begin[g], begin[g + 1]):
            row = which[i]
            n_changed = 0
            for j in range(n_columns):
                x, old = rows[row, j], origins[f, j]
                if x != old and not (x != x and old != old):
                    changed[n_changed] = j
                    n_changed += 1
            for a in range(k):
                nearest[a] = np.inf
            if n_changed <= VERY_FEW:
                nearer = ROUNDING
                for c in range(n_changed):
                    j = changed[c]
                    nearer += most_nearer(rows[row, j], origins[f, j], scale[j])
                first = 0
                for b in range(ends.shape[1]):
                    if least[slot, b] * (1.0 - ROUNDING) - nearer > nearest[k - 1]:
                        break
                    for q in range(first, ends[slot, b]):
                        r = order[slot, q]
                        value = base[r]
                        for c in range(n_changed):
                            j = changed[c]
                            value -= step_to(others[j, r], origins[f, j], scale[j])
                            value += step_to(others[j, r], rows[row, j], scale[j])
                        insert_nearest(nearest, value)
                    first = ends[slot, b]
            else:
                for r in range(n):
                    sums[r] = base[r]
                for c in range(n_changed):
                    j = changed[c]
                    add_steps(others[j], origins[f, j], scale[j], -1.0, sums)
                    add_steps(others[j], rows[row, j], scale[j], 1.0, sums)
                for r in range(n):
                    insert_nearest(nearest, sums[r])
            total = 0.0
            for a in range(known):
                total += nearest[a]
            out[row] = max(total / known, 0.0) if known > 0 else np.inf


@entry
def encode_bins(cells, edges, begin, last, bins):
    """Write the bin of every cell: 0 for missing, else 1 and the number of its column's edges below, `last` at most."""
    for j in range(bins.shape[0]):
        for i in range(bins.shape[1]):
            bins[j, i] = bin_of(cells[j, i], edges, begin[j], begin[j + 1], last)
