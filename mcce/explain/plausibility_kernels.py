"""Trees for the conditional of one column given the others, on binned cells; and distances to the nearest rows.

Cells come column by column: `bins[j, i]` is the bin of column j of row i. A node asks whether the bin of a column is at
most `cut`, or (`single`) whether it is `cut`; the left child is for yes, the right one stands next to it.
"""

from __future__ import annotations

import numpy as np

from mcce.base.compiling import entry, inner

# mypy: disable-error-code="no-untyped-def"

LEAF = -1


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


@entry
def least_shares(bins, targets, roots, column, cut, single, left, share, least):
    """Lower `least` to the least share of a row's cells; `share[left[leaf], bin]` is that of a cell in a leaf."""
    for a in range(targets.size):
        for i in range(least.size):
            node = walk(bins, i, column, cut, single, left, roots[a])
            found = share[left[node], bins[targets[a], i]]
            if found < least[i]:
                least[i] = found


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
def mean_of_smallest(sums, nearest):
    """Return the mean of the smallest sums, as many as `nearest` has room for."""
    k = nearest.size
    for a in range(k):
        nearest[a] = np.inf
    for r in range(sums.size):
        if sums[r] < nearest[k - 1]:
            a = k - 1
            while a > 0 and nearest[a - 1] > sums[r]:
                nearest[a] = nearest[a - 1]
                a -= 1
            nearest[a] = sums[r]
    total = 0.0
    known = min(k, sums.size)
    for a in range(known):
        total += nearest[a]
    return max(total / known, 0.0) if known > 0 else np.inf


@entry
def mean_of_nearest(rows, begin, owners, places, others, scale, own, holds, sums, nearest, out):
    """Write the mean distance of each row to its nearest of some others.

    Rows begin[f] : begin[f + 1] are like row f of `owners` but for a few cells: the distances of that row are in a row
    of `own`, and those of its rows differ from them by these cells. `holds` says of which places they are known
    already; a place below 0 is never known. `others` comes column by column.
    """
    n = others.shape[1]
    for f in range(owners.shape[0]):
        if begin[f] == begin[f + 1]:
            continue
        place = places[f]
        slot = place % own.shape[0] if place >= 0 else 0
        base = own[slot, :n]
        if place < 0 or holds[slot] != place:
            for r in range(n):
                base[r] = 0.0
            for j in range(owners.shape[1]):
                add_steps(others[j], owners[f, j], scale[j], 1.0, base)
            holds[slot] = place
        for i in range(begin[f], begin[f + 1]):
            for r in range(n):
                sums[r] = base[r]
            for j in range(owners.shape[1]):
                x, old = rows[i, j], owners[f, j]
                if x != old and not (x != x and old != old):
                    add_steps(others[j], old, scale[j], -1.0, sums)
                    add_steps(others[j], x, scale[j], 1.0, sums)
            out[i] = mean_of_smallest(sums, nearest)


@entry
def encode_bins(cells, edges, begin, last, bins):
    """Write the bin of every cell: 0 for missing, else 1 and the number of its column's edges below, `last` at most."""
    for j in range(bins.shape[0]):
        for i in range(bins.shape[1]):
            value = cells[j, i]
            if np.isnan(value):
                bins[j, i] = 0
                continue
            low, high = begin[j], begin[j + 1]
            while low < high:
                middle = (low + high) // 2
                if edges[middle] < value:
                    low = middle + 1
                else:
                    high = middle
            bins[j, i] = min(low - begin[j] + 1, last)
