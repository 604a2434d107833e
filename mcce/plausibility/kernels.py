"""Trees for the conditional of one column given the others, on binned cells; and distances to the nearest rows.

Cells come column by column: `bins[j, i]` is the bin of column j of row i. A node asks whether the bin of a column is at
most `cut`, or (`single`) whether it is `cut`; the left child is for yes, the right one stands next to it.

The trees are kept beside `mcce.trees.cart`: they split by a chi-square test, which sees changes of spread and of modes
where CART sees changes of the mean, and they are grown on bytes, one for each column and fold.
"""

from __future__ import annotations

import numpy as np

from mcce.base.compiling import entry, inner

# mypy: disable-error-code="no-untyped-def"

LEAF = -1
N_BITS = 63
VERY_FEW = 4  # changed cells, up to which others are looked at in order
A_FEW_OF = 32  # the part up to which they are looked at in any case, where a row may be near enough
FEW_OF = 3  # the part of the others, a third, up to which they are looked at one by one: all at once is faster by that
NOT_SORTED = -1.0
WORTH_SORTING = 4.0  # rows with very few changes that an origin has
ROUNDING = 1e-9  # more than sums of steps are rounded by


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
    """Return the largest chi-square statistic of a question about one column, its bin, and whether it is a single one.

    `histogram[b, c]` is the weight of class c in bin b, `held[b]` whether it has any row, `total[c]` the weight of the
    class in the node, `expected[c]` one over its share.
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


@entry
def grow_cells(
    bins, target, classes, weight, ordered, needed, fewest, depth, rows, spare, histogram, held, total, expected,
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
    for b in range(held.size):
        held[b] = False
        for c in range(n_classes):
            histogram[b, c] = 0.0
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
                for a in range(first, last):
                    histogram[bins[j, rows[a]], classes[rows[a]]] += weight[rows[a]]
                    held[bins[j, rows[a]]] = True
                statistic, at, alone = best_question(histogram, held, total, expected, size, ordered[j], fewest)
                for b in range(held.size):
                    if held[b]:  # most bins of a small node have no row, and need not be emptied
                        held[b] = False
                        for c in range(n_classes):
                            histogram[b, c] = 0.0
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
def walk(bins, column, cut, single, left, node):
    """Return the leaf of a row, given by its bins, in the tree whose root is `node`."""
    while column[node] != LEAF:
        value = bins[column[node]]
        goes_left = value == cut[node] or (not single[node] and value < cut[node])
        node = left[node] + (0 if goes_left else 1)
    return node


@entry
def find_leaves(bins, column, cut, single, left, root, leaf):
    """Write the leaf of every row in one tree."""
    for i in range(leaf.size):
        leaf[i] = walk(bins[:, i], column, cut, single, left, root)


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


@entry
def find_changes(rows, places, origins, first, column, value):
    """Write the cells in which rows differ from their origins, at `places`; those of row i are from first[i] on."""
    n = 0
    first[0] = 0
    for i in range(rows.shape[0]):
        f = places[i]
        for j in range(origins.shape[1]):
            x, old = rows[i, j], origins[f, j]
            if x != old and not (x != x and old != old):
                column[n] = j
                value[n] = x
                n += 1
        first[i + 1] = n


@inner
def find_lowest(numbers, lowest):
    """Write the places of the smallest of some numbers, the smallest first; -1 where there are fewer."""
    for q in range(lowest.size):
        lowest[q] = -1
    for a in range(numbers.size):
        q = lowest.size - 1
        if lowest[q] >= 0 and numbers[lowest[q]] <= numbers[a]:
            continue
        while q > 0 and (lowest[q - 1] < 0 or numbers[lowest[q - 1]] > numbers[a]):
            lowest[q] = lowest[q - 1]
            q -= 1
        lowest[q] = a


@inner
def is_among(bits, a):
    """Return whether the bit of a tree is set in some words."""
    return (bits[a // N_BITS] >> (a % N_BITS)) & 1 == 1


@inner
def least_of_others(shares, lowest, differing):
    """Return the least share of the trees whose bits are not set, 1 if there is none; `lowest` are looked at first."""
    for q in range(lowest.size):
        if lowest[q] >= 0 and not is_among(differing, lowest[q]):
            return shares[lowest[q]]
    least = 1.0
    for a in range(shares.size):
        if not is_among(differing, a):
            least = min(least, shares[a])
    return least


@inner
def look_up_tree(a, bins, asking, targets, roots, column, cut, single, left, share):
    """Return what a tree says of a row, given by its bins; the columns that it asks about, and its own, get its bit."""
    node = roots[a]
    word, bit = a // N_BITS, 1 << (a % N_BITS)
    asking[targets[a], word] |= bit
    while column[node] != LEAF:
        asking[column[node], word] |= bit
        here = bins[column[node]]
        goes_left = here == cut[node] or (not single[node] and here < cut[node])
        node = left[node] + (0 if goes_left else 1)
    return share[left[node], bins[targets[a]]]


@entry
def least_of_made(
    fold, k, places, first, changed, value, origins, edges, first_edge, last, low, high, reach, targets, roots, column,
    cut, single, left, share, holds, own_bins, own_share, lowest, asking, own_far, before, differing, out,
):  # fmt: skip
    """Write the least share of the cells of the rows of fold k, minus how far they are out of range for those that are.

    Row r is like row places[r] of `origins` but for a few cells: it has value[c] in column changed[c], for c from
    first[r] to before first[r + 1]. A tree that asks about none of these on the origin's way, and that is not about one
    of them, says of the row what it says of the origin. By slot, `own_share` is what the trees say of the origin,
    `lowest` those that say least, and `asking` has for each column the bits of the trees that it matters to, in words.
    `holds` says whose is in a slot; `share[left[leaf], bin]` is the share of a cell in a leaf. `before` and `differing`
    are room for the bins of an origin, and for the bits of trees.
    """
    n_columns, n_words = origins.shape[1], differing.size
    for r in range(fold.size):
        if fold[r] != k:
            continue
        f = places[r]
        slot = f % holds.size
        bins = own_bins[slot]
        if holds[slot] != f:
            own_far[slot] = 0.0
            for j in range(n_columns):
                bins[j] = bin_of(origins[f, j], edges, first_edge[j], first_edge[j + 1], last)
                far = beyond(origins[f, j], low[j], high[j], reach[j])
                if far > own_far[slot]:
                    own_far[slot] = far
                for w in range(n_words):
                    asking[slot, j, w] = 0
            for a in range(targets.size):
                seen = look_up_tree(a, bins, asking[slot], targets, roots, column, cut, single, left, share)
                own_share[slot, a] = seen
            find_lowest(own_share[slot], lowest[slot])
            holds[slot] = f
        for w in range(n_words):
            differing[w] = 0
        farthest = 0.0
        for c in range(first[r], first[r + 1]):
            j, x = changed[c], value[c]
            before[c - first[r]] = bins[j]
            bins[j] = bin_of(x, edges, first_edge[j], first_edge[j + 1], last)
            far = beyond(x, low[j], high[j], reach[j])
            if far > farthest:
                farthest = far
            for w in range(n_words):
                differing[w] |= asking[slot, j, w]
        if own_far[slot] > 0.0:
            for j in range(n_columns):
                stays = True
                for c in range(first[r], first[r + 1]):
                    stays = stays and changed[c] != j
                if stays:
                    farthest = max(farthest, beyond(origins[f, j], low[j], high[j], reach[j]))
        least = min(1.0, least_of_others(own_share[slot], lowest[slot], differing))
        for w in range(n_words):
            a, bits = w * N_BITS, differing[w]
            while bits != 0:
                if bits & 1:
                    node = walk(bins, column, cut, single, left, roots[a])
                    least = min(least, share[left[node], bins[targets[a]]])
                a += 1
                bits >>= 1
        for c in range(first[r], first[r + 1]):
            bins[changed[c]] = before[c - first[r]]
        out[r] = -farthest if farthest > 0.0 else least


@entry
def move_cells(
    places, rows, origins, edges, first_edge, last, low, high, reach, targets, roots, column, cut, single, left, share,
    holds, own_bins, own_share, lowest, asking, own_far, differing,
):  # fmt: skip
    """Write what `least_of_made` keeps of some origins as that of other rows, which are to stand in their places.

    Only trees that a changed cell matters to are asked again.
    """
    n_columns, n_words = origins.shape[1], differing.size
    for i in range(places.size):
        f = places[i]
        slot = f % holds.size
        if holds[slot] != f:
            continue
        bins = own_bins[slot]
        for w in range(n_words):
            differing[w] = 0
        own_far[slot] = 0.0
        for j in range(n_columns):
            x = rows[i, j]
            own_far[slot] = max(own_far[slot], beyond(x, low[j], high[j], reach[j]))
            if x != origins[f, j]:
                bins[j] = bin_of(x, edges, first_edge[j], first_edge[j + 1], last)
                for w in range(n_words):
                    differing[w] |= asking[slot, j, w]
        for j in range(n_columns):
            for w in range(n_words):
                asking[slot, j, w] &= ~differing[w]
        for a in range(targets.size):
            if is_among(differing, a):
                seen = look_up_tree(a, bins, asking[slot], targets, roots, column, cut, single, left, share)
                own_share[slot, a] = seen
        find_lowest(own_share[slot], lowest[slot])


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
def sort_roughly(base, group, order, ends):
    """Put the places of some numbers in order of their size, in groups: `order[ends[b - 1] : ends[b]]` is group b.

    Returns the smallest number and the groups a unit, 0 if there is one group; `group` is room for each one's group.
    """
    n_groups = ends.size
    low, high = np.inf, -np.inf
    for r in range(base.size):
        low, high = min(low, base[r]), max(high, base[r])
    width = n_groups / (high - low) if low < high < np.inf else 0.0
    for r in range(base.size):
        group[r] = int((base[r] - low) * width) if width > 0.0 else 0
    for b in range(n_groups):
        ends[b] = 0
    for r in range(base.size):
        group[r] = min(group[r], n_groups - 1)
        ends[group[r]] += 1
    total = 0
    for b in range(n_groups):
        total += ends[b]
        ends[b] = total - ends[b]  # where the group begins; it ends there once it is filled
    for r in range(base.size):
        order[ends[group[r]]] = r
        ends[group[r]] += 1
    return low, width


@inner
def mean_of(nearest, known):
    """Return the mean of the smallest distances, of which so many are known; infinite if none is."""
    total = 0.0
    for a in range(known):
        total += nearest[a]
    return max(total / known, 0.0) if known > 0 else np.inf


@entry
def mean_of_nearest(
    fold, which, enough, places, first, changed, value, origins, others, scale, holds, own, order, ends, spread, group,
    sums, nearest, out,
):  # fmt: skip
    """Write the mean distance of each row of a fold to its nearest of some others, which come column by column.

    Row r is like row places[r] of `origins` but for a few cells: it has value[c] in column changed[c], for c from
    first[r] to before first[r + 1]. The distances of the origin are in a slot of `own`, and those of the rows differ
    from them by these cells. `holds` says whose distances are in a slot.

    Where the changes are small, few of the others can be among the nearest: they are looked at in the order of the
    origin's distance, until the changes cannot bring one near enough. That order is found when several rows need it:
    before, the second number of `spread` is NOT_SORTED, less the rows. Where most cells change, sums are added up anew.

    A row whose distance is at most enough[r] may get any number between the two: that of the origin (third in `spread`)
    and the changes, which take the row away from the origin's nearest by no more; or the mean over the nearest of those
    that were looked at so far.
    """
    n, n_columns, k = others.shape[1], origins.shape[1], nearest.size
    known = min(k, n)
    for row in range(fold.size):
        if fold[row] != which:
            continue
        f = places[row]
        slot = f % holds.size
        base = own[slot, :n]
        n_changed = first[row + 1] - first[row]
        nearest[:] = np.inf
        if 2 * n_changed > n_columns:
            for r in range(n):
                sums[r] = 0.0
            c = first[row]
            for j in range(n_columns):
                x = origins[f, j]
                if c < first[row + 1] and changed[c] == j:
                    x = value[c]
                    c += 1
                add_steps(others[j], x, scale[j], 1.0, sums)
            for r in range(n):
                insert_nearest(nearest, sums[r])
            out[row] = mean_of(nearest, known)
            continue
        if holds[slot] != f:
            for r in range(n):
                base[r] = 0.0
            for j in range(n_columns):
                add_steps(others[j], origins[f, j], scale[j], 1.0, base)
            spread[slot, 1] = NOT_SORTED
            holds[slot] = f
        nearer = ROUNDING
        for c in range(first[row], first[row + 1]):
            j = changed[c]
            nearer += most_nearer(value[c], origins[f, j], scale[j])
        one_by_one = 0 < n_changed <= VERY_FEW and nearer < np.inf
        if one_by_one and spread[slot, 1] < 0.0:
            spread[slot, 1] -= 1.0
            one_by_one = spread[slot, 1] < NOT_SORTED - WORTH_SORTING or enough[row] > 0.0
            if one_by_one:
                spread[slot, 0], spread[slot, 1] = sort_roughly(base, group, order[slot], ends[slot])
                for r in range(n):
                    insert_nearest(nearest, base[r])
                spread[slot, 2] = mean_of(nearest, known)
                nearest[:] = np.inf
        if one_by_one and spread[slot, 2] + nearer <= enough[row]:
            out[row] = spread[slot, 2] + nearer
            continue
        if one_by_one:
            low, width = spread[slot, 0], spread[slot, 1]
            filled = 0
            while ends[slot, filled] < known:
                filled += 1
            # the origin's nearest may be farther from the row by as much as others may be nearer
            reach = (filled + 1.0 + 2.0 * nearer * width) * (1.0 + ROUNDING)
            last = int(min(reach, ends.shape[1] - 1.0)) if width > 0.0 else ends.shape[1] - 1
            at = 0
            one_by_one = FEW_OF * ends[slot, last] <= n
            most = n if one_by_one else n // A_FEW_OF if enough[row] > 0.0 else 0
            for b in range(last + 1):
                if ends[slot, b] > most:
                    break
                if (low + (b / width if width > 0.0 else 0.0)) * (1.0 - ROUNDING) - nearer > nearest[k - 1]:
                    break
                for q in range(at, ends[slot, b]):
                    r = order[slot, q]
                    sum_of_steps = base[r]
                    for c in range(first[row], first[row + 1]):
                        j = changed[c]
                        sum_of_steps -= step_to(others[j, r], origins[f, j], scale[j])
                        sum_of_steps += step_to(others[j, r], value[c], scale[j])
                    insert_nearest(nearest, sum_of_steps)
                at = ends[slot, b]
                if mean_of(nearest, known) <= enough[row]:
                    one_by_one = True
                    break
        if not one_by_one:
            nearest[:] = np.inf
            for r in range(n):
                sums[r] = base[r]
            for c in range(first[row], first[row + 1]):
                j = changed[c]
                add_steps(others[j], origins[f, j], scale[j], -1.0, sums)
                add_steps(others[j], value[c], scale[j], 1.0, sums)
            for r in range(n):
                insert_nearest(nearest, sums[r])
        out[row] = mean_of(nearest, known)


@entry
def move_origins(places, rows, origins, others, scale, holds, own, spread):
    """Write other rows in place of some origins, and take their distances along, which differ by few cells."""
    for i in range(places.size):
        f = places[i]
        slot = f % holds.size
        base = own[slot, : others.shape[1]]
        for j in range(origins.shape[1]):
            x, old = rows[i, j], origins[f, j]
            if x != old and not (x != x and old != old) and holds[slot] == f:
                add_steps(others[j], old, scale[j], -1.0, base)
                add_steps(others[j], x, scale[j], 1.0, base)
                spread[slot, 1] = NOT_SORTED
            origins[f, j] = x


@entry
def encode_bins(cells, edges, begin, last, bins):
    """Write the bin of every cell: 0 for missing, else 1 and the number of its column's edges below, `last` at most."""
    for j in range(bins.shape[0]):
        for i in range(bins.shape[1]):
            bins[j, i] = bin_of(cells[j, i], edges, begin[j], begin[j + 1], last)
