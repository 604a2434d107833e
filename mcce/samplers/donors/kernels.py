"""Donors of the leaves of trees, as numba kernels: draws, supports, densities.

The nodes of all trees are numbered consecutively, and so are their donors: a row has one node per tree, and a forest is
read like a tree. `first`, `value` and `count` are *runs*: the distinct donors of a node, ascending, and the number of
rows of each; those of node k are at first[k] to first[k + 1].

1. `pick_donor` and `pick_allowed_donor` draw one of the donors in a row's leaves, uniformly. Donors are numbered
   tree by tree, in the order of the tree, not of their values: the draws of a seed do not depend on sorting.
   `pick_weighted_donor` and `pick_allowed_weighted` draw donors by weight, the same as from that many copies of each.
   All other kernels use sums of weights in place of numbers of donors.
2. `find_support` searches a value among the runs; `measure_gaps` computes the distance from a donor that counts as
   close. If leaves share training rows, `find_pooled_support` counts each row once (`mcce.samplers.base`).
3. Each node has Silverman's bandwidth h. A sum of normal kernels S(x) = sum_j n_j k((x - y_j) / h) is taken over the
   runs whose share of S is above e^-50, or, in a node of many runs, read from a Taylor polynomial.
4. `count_cells` and `expand_cells` prepare these: a node's runs are put into *cells* no wider than 0.4 h, and around
   the centre c of each, sum_j n_j k((x - y_j) / h) = sum_m a_m ((x - c) / h)^m. With b_m the coefficients of one run at
   z = (c - y_j) / h, b_0 = k(z), b_1 = -z b_0, b_(m+1) = -(z b_m + b_(m-1)) / (m + 1): Hermite's polynomials. Up to 0.3
   h from the centre eighteen terms give S with a relative error of 1e-14, since b_m is below
   k(z) e^(z^2 / 4) / sqrt(m!) (Cramer's bound) and a donor is at most h / 2 away.
5. `log_densities` mixes the donors with the margin, `log_missing` the missing donors with their share.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
from numba import uint64

from mcce.base.compiling import entry, inner
from mcce.rng import multiply_high, philox

# mypy: disable-error-code="no-untyped-def"


TERMS = 18
LANES = 8
_CELL_WIDTH = 0.4  # in bandwidths: the width of the runs in a cell
_CELL_REACH = 0.3  # from the centre
_FEW_RUNS = 24  # so few runs are summed without a search for near ones
CELL_RUNS = 96  # fewer runs are summed as fast as a polynomial is prepared
_WINDOW = 9.5  # beyond it, 100,000 donors have less than 1e-14 of the weight of one at the centre
_NEGLIGIBLE = 100.0  # of z^2: a donor with e^-50 of the weight of the nearest
_CANCELLED = 0.1  # remaining share of a sum below which it is recomputed
_ROOT_TAU = math.sqrt(2.0 * math.pi)

Margin = namedtuple("Margin", "n atoms counts grid density bandwidth")
Runs = namedtuple("Runs", "first value count")
Cells = namedtuple("Cells", "first centre terms")
# the rows left out; the position of each row's first donor in a tree; their number; the rows' weights, if any
Own = namedtuple("Own", "rows donor copies weight")


@inner
def _place(ordered, first, last, x):
    """Return the first position between `first` and `last` whose number is at least x, by a branch-free search."""
    left = last - first
    while left > 1:
        half = left >> 1
        first += half * (ordered[first + half - 1] < x)
        left -= half
    return first + (left == 1 and ordered[first] < x)


# ---------------------------------------------------------------- step 1: draws


@entry
def pick_donor(key, draws, rows, leaves, start, size, values, out):
    """Draw one of the donors in each row's leaves; `leaves` has one row per tree."""
    for i in range(out.size):
        node = leaves[0, i]
        total = uint64(size[node])
        for t in range(1, leaves.shape[0]):
            total += uint64(size[leaves[t, i]])
        word, _ = philox(key, draws[i], rows[i])
        chosen = np.int64(multiply_high(word, total))
        t = 0
        while t + 1 < leaves.shape[0] and chosen >= size[node]:
            chosen -= size[node]
            t += 1
            node = leaves[t, i]
        out[i] = values[start[node] + chosen]


@entry
def pick_allowed_donor(key, draws, rows, leaves, start, size, values, low, high, levels, out, n_allowed):
    """Draw one donor of each row's leaves among those in [low, high] and, if given, of an allowed level; else NaN.

    Also write the number of allowed donors.
    """
    for i in range(out.size):
        chosen = np.int64(-1)
        out[i] = np.nan
        for step in range(2):  # count the allowed donors, then walk to the chosen one
            seen = np.int64(0)
            for t in range(leaves.shape[0]):
                node = leaves[t, i]
                for d in range(start[node], start[node] + size[node]):
                    value = values[d]
                    if not (value >= low[i] and value <= high[i]):
                        continue
                    if levels.shape[1] and not levels[i, np.int64(value)]:
                        continue
                    if seen == chosen:
                        out[i] = value
                        break
                    seen += 1
                if seen == chosen and not np.isnan(out[i]):
                    break
            if step == 0:
                n_allowed[i] = seen
                if seen == 0:
                    break
                chosen = np.int64(multiply_high(philox(key, draws[i], rows[i])[0], uint64(seen)))


@inner
def _uniform(key, draw, row):
    """Return a uniform number in [0, 1), a multiple of 2**-53."""
    return np.float64(philox(key, draw, row)[0] >> uint64(11)) * 2.0**-53


@entry
def pick_weighted_donor(key, draws, rows, leaves, start, size, upto, values, out):
    """Draw one of the donors in each row's leaves by weight; `upto` are the sums of the weights, from 0 on."""
    for i in range(out.size):
        total = 0.0
        for t in range(leaves.shape[0]):
            node = leaves[t, i]
            total += upto[start[node] + size[node]] - upto[start[node]]
        left = _uniform(key, draws[i], rows[i]) * total
        t = 0
        node = leaves[0, i]
        while t + 1 < leaves.shape[0] and left >= upto[start[node] + size[node]] - upto[start[node]]:
            left -= upto[start[node] + size[node]] - upto[start[node]]
            t += 1
            node = leaves[t, i]
        low, high = np.int64(start[node]), np.int64(start[node] + size[node] - 1)  # find `upto` above the place
        place = upto[low] + left
        while low < high:
            middle = (low + high) >> 1
            if upto[middle + 1] <= place:
                low = middle + 1
            else:
                high = middle
        out[i] = values[low]


@entry
def pick_allowed_weighted(key, draws, rows, leaves, start, size, upto, values, low, high, levels, out, allowed):
    """Draw one donor of each row's leaves by weight, among those that `pick_allowed_donor` would choose from.

    Also write the sum of their weights.
    """
    for i in range(out.size):
        place = np.inf
        out[i] = np.nan
        for step in range(2):  # weigh the allowed donors, then walk to the chosen one
            seen = 0.0
            for t in range(leaves.shape[0]):
                node = leaves[t, i]
                for d in range(start[node], start[node] + size[node]):
                    value = values[d]
                    if not (value >= low[i] and value <= high[i]):
                        continue
                    if levels.shape[1] and not levels[i, np.int64(value)]:
                        continue
                    seen += upto[d + 1] - upto[d]
                    if step == 1:
                        out[i] = value
                    if seen > place:
                        break
                if seen > place:
                    break
            if step == 0:
                allowed[i] = seen
                if seen == 0.0:
                    break
                place = _uniform(key, draws[i], rows[i]) * seen


# ---------------------------------------------------------------- step 2: supports


@entry
def measure_gaps(runs, spare, gap):
    """Find the median gap (the lower one of two) between neighbouring donors of each node, equal ones included."""
    for node in range(gap.size):
        begin, end = runs.first[node], runs.first[node + 1]
        total = 0.0
        for r in range(begin, end):
            total += runs.count[r]
        gap[node] = 0.0
        wanted = _median_gap(total, end - begin)
        if wanted < 0:
            continue
        n = end - begin - 1
        for r in range(n):
            spare[r] = runs.value[begin + r + 1] - runs.value[begin + r]
        gap[node] = select(spare, n, wanted)


@inner
def _median_gap(total, distinct):
    """Return which of the gaps between distinct donors, in ascending order, is the median of all gaps; -1: it is 0.

    Copies have gaps of 0. The number of donors is `total`, but at least `distinct`.
    """
    donors = max(np.int64(total), np.int64(distinct))
    return (donors - 2) // 2 - (donors - distinct) if donors >= 3 else np.int64(-1)


@inner
def select(numbers, n, k):
    """Return the k-th smallest of the first n numbers, which are reordered (Hoare 1961)."""
    low, high = 0, n - 1
    while low < high:
        pivot = numbers[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while numbers[i] < pivot:
                i += 1
            while numbers[j] > pivot:
                j -= 1
            if i <= j:
                numbers[i], numbers[j] = numbers[j], numbers[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return numbers[k]


@entry
def find_support(leaves, values, runs, gap, supported):
    """Return whether each value lies in the range of a leaf's donors and no farther from one than the leaf's gap."""
    for i in range(values.size):
        supported[i] = False
        for t in range(leaves.shape[0]):
            node = leaves[t, i]
            begin, end = runs.first[node], runs.first[node + 1]
            at = _place(runs.value, begin, end, values[i])
            if at == end or not values[i] >= runs.value[begin]:
                continue
            distance = runs.value[at] - values[i]
            if distance > 0.0:
                distance = min(distance, values[i] - runs.value[at - 1])
            if distance <= gap[node]:
                supported[i] = True
                break


@entry
def find_pooled_support(leaves, order, start, size, rank, ranked, weight, values, spare, gaps, supported):
    """Return whether each value lies in the range of its leaves' training rows and no farther from one than their gap.

    `rank` is the position of each donor's training row among `ranked`, the values of these rows, ascending; `weight`
    are their weights, if any; `order` makes rows of the same leaves adjacent, so that they share the computation.
    """
    n = np.int64(0)
    gap = 0.0
    for k in range(order.size):
        i = order[k]
        is_new = k == 0
        for t in range(leaves.shape[0]):
            is_new |= leaves[t, i] != leaves[t, order[k - 1]]
        if is_new:
            n = np.int64(0)
            for t in range(leaves.shape[0]):
                begin = start[leaves[t, i]]
                for d in range(begin, begin + size[leaves[t, i]]):
                    spare[n] = rank[d]
                    n += 1
            _sort(spare, n)
            n = _drop_copies(spare, n)
            gap = 0.0
            total = float(n)
            if weight.size:
                total = 0.0
                for j in range(n):
                    total += weight[spare[j]]
            wanted = _median_gap(total, n)
            if wanted >= 0:
                for j in range(n - 1):
                    gaps[j] = ranked[spare[j + 1]] - ranked[spare[j]]
                gap = select(gaps, n - 1, wanted)
        x = values[i]
        supported[i] = False
        if n == 0 or not (x >= ranked[spare[0]] and x <= ranked[spare[n - 1]]):
            continue
        low, high = np.int64(0), n - 1  # the first row whose value is at least x
        while low < high:
            middle = (low + high) >> 1
            if ranked[spare[middle]] < x:
                low = middle + 1
            else:
                high = middle
        distance = ranked[spare[low]] - x
        if distance > 0.0:
            distance = min(distance, x - ranked[spare[low - 1]])
        supported[i] = distance <= gap


@inner
def _sort(numbers, n):
    """Sort the first n numbers, in place (heapsort: Williams 1964)."""
    begin, end = n >> 1, n
    while end > 1:
        if begin > 0:
            begin -= 1
        else:
            end -= 1
            numbers[0], numbers[end] = numbers[end], numbers[0]
        parent = begin
        child = 2 * parent + 1
        while child < end:
            if child + 1 < end and numbers[child] < numbers[child + 1]:
                child += 1
            if numbers[parent] >= numbers[child]:
                break
            numbers[parent], numbers[child] = numbers[child], numbers[parent]
            parent = child
            child = 2 * parent + 1


@inner
def _drop_copies(ordered, n):
    """Move the distinct ones of n ordered numbers to the front; return how many there are."""
    kept = np.int64(0)
    for j in range(n):
        if j == 0 or ordered[j] != ordered[kept - 1]:
            ordered[kept] = ordered[j]
            kept += 1
    return kept


# ---------------------------------------------------------------- step 3: sums of kernels


@inner
def _sum_all(runs, begin, end, x, scale, own, own_value):
    """Sum the kernels of a few runs at x, without `own` donors of `own_value`; `scale` is 1 / bandwidth."""
    total = 0.0
    for r in range(begin, end):
        z = (x - runs.value[r]) * scale
        n = runs.count[r] - own * (runs.value[r] == own_value)
        total += n * math.exp(-0.5 * z * z)
    return total


@inner
def _sum_near(runs, begin, end, x, scale, own, own_value):
    """Sum the kernels of those runs at x that are not negligible relative to the nearest, without `own` donors."""
    at = _place(runs.value, begin, end, x)
    value, count = runs.value, runs.count
    nearest = np.inf
    for r in range(at - 2, at + 2):  # one on either side may be the one left out
        if begin <= r < end and (value[r] != own_value or count[r] > own):
            z = (x - value[r]) * scale
            if z * z < nearest:
                nearest = z * z
    low = high = at
    while low > begin:
        z = (x - value[low - 1]) * scale
        if z * z > nearest + _NEGLIGIBLE:
            break
        low -= 1
    while high < end:
        z = (x - value[high]) * scale
        if z * z > nearest + _NEGLIGIBLE:
            break
        high += 1
    return _sum_all(runs, low, high, x, scale, own, own_value)


# ---------------------------------------------------------------- step 4: Taylor polynomials


@inner
def _next_cell(runs, r, end, bandwidth):
    """Return the run after those that share a cell with run r, and the centre of the cell."""
    low = runs.value[r]
    while r + 1 < end and runs.value[r + 1] - low <= _CELL_WIDTH * bandwidth:
        r += 1
    return r + 1, low + 0.5 * (runs.value[r] - low)


@inner
def _seen_from(runs, begin, end, centre, bandwidth):
    """Return the range of runs that are not negligible at a centre."""
    reach = _WINDOW * bandwidth
    return _place(runs.value, begin, end, centre - reach), _place(runs.value, begin, end, centre + reach)


@entry
def count_cells(runs, bandwidth, n_cells):
    """Count the cells of each node whose window has enough runs for a polynomial to be faster."""
    for node in range(bandwidth.size):
        begin, end = runs.first[node], runs.first[node + 1]
        n_cells[node] = 0
        r = begin
        while end - begin >= CELL_RUNS and r < end:
            r, centre = _next_cell(runs, r, end, bandwidth[node])
            low, high = _seen_from(runs, begin, end, centre, bandwidth[node])
            n_cells[node] += high - low >= CELL_RUNS


@entry
def expand_cells(runs, bandwidth, cells, z, before, here, total):
    """Write the centres and coefficients of the cells that `count_cells` counted; the rest is scratch of 8 numbers.

    Eight runs are processed at a time, to hide latency.
    """
    for node in range(bandwidth.size):
        cell, last_cell = cells.first[node], cells.first[node + 1]
        begin, end = runs.first[node], runs.first[node + 1]
        h = bandwidth[node]
        r = begin
        while cell < last_cell:
            r, centre = _next_cell(runs, r, end, h)
            low, high = _seen_from(runs, begin, end, centre, h)
            if high - low < CELL_RUNS:
                continue
            cells.centre[cell] = centre
            for m in range(TERMS):
                cells.terms[cell, m] = 0.0
            for block in range(low, high, LANES):
                for lane in range(LANES):
                    inside = block + lane < high
                    z[lane] = (centre - runs.value[block + lane]) / h if inside else 0.0
                    before[lane] = 0.0
                    here[lane] = runs.count[block + lane] * math.exp(-0.5 * z[lane] * z[lane]) if inside else 0.0
                for m in range(TERMS):
                    part = 1.0 / (m + 1)
                    for lane in range(LANES):
                        total[lane] = here[lane]
                        here[lane] = -(z[lane] * here[lane] + before[lane]) * part
                        before[lane] = total[lane]
                    cells.terms[cell, m] += ((total[0] + total[1]) + (total[2] + total[3])) + (
                        (total[4] + total[5]) + (total[6] + total[7])
                    )
            cell += 1


@inner
def _sum_kernels(runs, cells, node, x, bandwidth, own, own_value):
    """Sum the kernels of a node's donors at x, without `own` donors of `own_value`."""
    begin, end = runs.first[node], runs.first[node + 1]
    if end - begin <= _FEW_RUNS:
        return _sum_all(runs, begin, end, x, 1.0 / bandwidth, own, own_value)
    first, last = cells.first[node], cells.first[node + 1]
    if first < last:
        at = _place(cells.centre, first, last, x)
        if at == last or (at > first and x - cells.centre[at - 1] < cells.centre[at] - x):
            at -= 1
        u = (x - cells.centre[at]) / bandwidth
        if abs(u) <= _CELL_REACH:
            square = u * u
            even = odd = 0.0
            for m in range(TERMS - 2, -1, -2):
                even = even * square + cells.terms[at, m]
                odd = odd * square + cells.terms[at, m + 1]
            total = even + u * odd
            if own == 0:
                return total
            z = (x - own_value) / bandwidth
            left = total - own * math.exp(-0.5 * z * z)
            if left > _CANCELLED * total:
                return left
    return _sum_near(runs, begin, end, x, 1.0 / bandwidth, own, own_value)


# ---------------------------------------------------------------- step 5: densities


@inner
def _share(margin, place, is_atom, x, own):
    """Return the margin's mass or density of x, without a training row of weight `own`."""
    n, grid, density = margin.n, margin.grid, margin.density
    last = grid.size - 1
    if is_atom:
        pseudo = 1.0 if last < 0 else 0.0  # spread over the levels, so that no level is impossible
        mass = (margin.counts[place] - own + pseudo / margin.atoms.size) / max(n - own + pseudo, 1.0)
        return max(mass, 0.0)  # zero for a value that the left-out row did not have
    if last < 0 or x < grid[0] or x > grid[last]:
        return 0.0
    at = np.int64((x - grid[0]) / ((grid[last] - grid[0]) / last))
    while at > 0 and (at >= last or grid[at] > x):
        at -= 1
    while at < last - 1 and grid[at + 1] <= x:
        at += 1
    here = density[at] + (density[at + 1] - density[at]) / (grid[at + 1] - grid[at]) * (x - grid[at])
    if margin.bandwidth > 0.0:
        here = max(here - own / (n * margin.bandwidth * _ROOT_TAU), 0.0) * n / max(n - own, 1.0)
    return here


@entry
def margin_shares(margin, values, own, out):
    """Write the margin's mass or density of each value."""
    for i in range(values.size):
        place = _place(margin.atoms, 0, margin.atoms.size, values[i])
        is_atom = place < margin.atoms.size and margin.atoms[place] == values[i]
        out[i] = _share(margin, place, is_atom, values[i], own[i])


@inner
def _own_donor(own, t, i, start, size, node):
    """Return the position of row i's first own donor in a node of tree t, and their number; -1 and 0 if none."""
    if own.rows.size == 0 or own.rows[i] < 0 or own.rows[i] >= own.donor.shape[1]:
        return np.int64(-1), 0.0
    donor = np.int64(own.donor[t, own.rows[i]])
    if donor < start[node] or donor >= start[node] + size[node]:
        return np.int64(-1), 0.0
    return donor, np.float64(own.copies[t, own.rows[i]])


@inner
def _own_weight(own, i):
    """Return the weight that the margin loses without row i; 0 if no rows are left out."""
    if own.rows.size == 0:
        return 0.0
    return own.weight[own.rows[i]] if own.weight.size else 1.0


@entry
def log_densities(leaves, start, size, donors, known, runs, smooth, bandwidth, cells, margin, own, pseudo, values, out):
    """Write the log density of each value among the donors of its leaves and `pseudo` ones from the margin.

    `known` counts a node's donors that are not missing, `runs` are all of these, `smooth` those without point mass.
    """
    for i in range(values.size):
        x = values[i]
        if np.isnan(x):
            out[i] = -np.inf
            continue
        place = _place(margin.atoms, 0, margin.atoms.size, x)
        is_atom = place < margin.atoms.size and margin.atoms[place] == x
        matching = 0.0
        n_donors = 0.0
        for t in range(leaves.shape[0]):
            node = leaves[t, i]
            donor, copies = _own_donor(own, t, i, start, size, node)
            own_value = donors[donor] if donor >= 0 else np.nan
            n_donors += known[node] - copies
            if is_atom:
                begin, end = runs.first[node], runs.first[node + 1]
                at = _place(runs.value, begin, end, x)
                if at < end and runs.value[at] == x:
                    matching += runs.count[at]
                if own_value == x:
                    matching -= copies
            elif bandwidth[node] > 0.0 and smooth.first[node] < smooth.first[node + 1]:
                h = bandwidth[node]
                if copies:  # a row with point mass is not among the smoothed donors
                    at = _place(margin.atoms, 0, margin.atoms.size, own_value)
                    if at < margin.atoms.size and margin.atoms[at] == own_value:
                        copies = 0.0
                matching += _sum_kernels(smooth, cells, node, x, h, copies, own_value) / (h * _ROOT_TAU)
        share = _share(margin, place, is_atom, x, _own_weight(own, i))
        density = (matching + pseudo * share) / (n_donors + pseudo)
        out[i] = math.log(density) if density > 0.0 else -np.inf


@entry
def log_missing(leaves, start, size, mass, donors, ones, own, pseudo, share, values, out):
    """Add the log probability that the value is present to `out`; write that it is missing where it is.

    `donors` is 1 for a missing donor, else 0; `mass` and `ones` count the donors and the missing ones of a node,
    `share` is the margin's.
    """
    for i in range(values.size):
        missing = 0.0
        n_donors = 0.0
        for t in range(leaves.shape[0]):
            node = leaves[t, i]
            donor, copies = _own_donor(own, t, i, start, size, node)
            n_donors += mass[node] - copies
            missing += ones[node]
            if donor >= 0 and donors[donor] == 1.0:
                missing -= copies
        found = min((missing + pseudo * share) / (n_donors + pseudo), 1.0)
        if np.isnan(values[i]):
            out[i] = math.log(found)
        else:
            out[i] += math.log1p(-found) if found < 1.0 else -np.inf
