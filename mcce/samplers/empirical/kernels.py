"""Weighted donors, as numba kernels: weights, draws, supports, densities.

Donors are sorted by value, missing ones last; `points` has a row of scaled givens for each. Every kernel processes the
rows one by one, with the weights of one row at a time: memory is proportional to rows plus donors, time to rows times
donors times givens. Weights are computed once for consecutive rows with the same givens, which occur in a chain.

1. `_weigh` gives each donor exp(-(d^2 - d_min^2) / (2 bandwidth^2)); without d_min far-away rows would have no donors.
2. It then sets to zero all weights below the largest t for which donors of weight t or more have the share `keep` of
   the total. Donors with the same weight are kept or dropped together, so the result does not depend on their order.
3. A donor whose training row has a weight represents that many `copies`, each with the weight of step 1.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from mcce.base.compiling import entry, inner
from mcce.samplers.density import silverman as silverman_rule
from mcce.samplers.donors.kernels import select

# mypy: disable-error-code="no-untyped-def"


_ROOT_TAU = math.sqrt(2.0 * math.pi)
_NEGLIGIBLE = 40.0  # weights below exp(-40) of the nearest donor's weight are negligible

_TIE = 1e-9  # relative tolerance: smaller differences of weights are rounding

# points; the step of a change of each column, 0 where it is a difference; whether steps are added before they are
# squared (Gower) or after (Mahalanobis); 1 / (2 bandwidth^2); share of the weight kept; values, how many are known;
# copies that each donor represents
Neighbours = namedtuple("Neighbours", "points whole adds rate keep values n_known copies")

_silverman = inner(silverman_rule)


@inner
def _squared_distance(a, b, whole, adds):
    """Return the squared distance of two rows of scaled givens; a missing value differs from all others."""
    total = 0.0
    for j in range(a.size):
        if whole[j] > 0.0:
            same = a[j] == b[j] or (np.isnan(a[j]) and np.isnan(b[j]))
            step = 0.0 if same else whole[j]
        else:
            step = abs(a[j] - b[j])
            if np.isnan(step):
                step = 0.0 if np.isnan(a[j]) and np.isnan(b[j]) else 1.0 / a.size
        total += step if adds else step * step
    return total * total if adds else total


@entry
def squared_distances(points, whole, adds, out):
    """Write the squared distances of all pairs of rows."""
    for i in range(points.shape[0]):
        for k in range(i + 1):
            out[i, k] = out[k, i] = _squared_distance(points[i], points[k], whole, adds)


@inner
def _cut(numbers, copies, n, wanted):
    """Return the largest t for which the numbers of at least t sum to `wanted`; the first n are reordered.

    Each number counts `copies` times; `copies` is reordered with the numbers.
    """
    low, high, passed = 0, n, 0.0
    pivot = 0.0
    while low < high:
        pivot = numbers[(low + high) >> 1]
        above, equal, i = 0.0, 0.0, low
        greater, after = low, high  # greater numbers are before `greater`, smaller ones from `after` on
        while i < after:
            x, times = numbers[i], copies[i]
            if x > pivot:
                above += x * times
                numbers[greater], numbers[i] = x, numbers[greater]
                copies[greater], copies[i] = times, copies[greater]
                greater += 1
                i += 1
            elif x < pivot:
                after -= 1
                numbers[i], numbers[after] = numbers[after], x
                copies[i], copies[after] = copies[after], times
            else:
                equal += x * times
                i += 1
        if passed + above >= wanted:
            high = greater
        elif passed + above + equal >= wanted:
            return pivot
        else:
            passed += above + equal
            low = after
    return pivot


@inner
def _weigh(row, near, own, weights, spare, copies):
    """Write the weight of each donor for one row, 0 for the row's own donor (-1: none); return their sum.

    `spare` and `copies` are working memory for reordering the donors.
    """
    least = np.inf
    n = weights.size
    for d in range(n):
        weights[d] = np.inf if d == own else _squared_distance(row, near.points[d], near.whole, near.adds)
        least = min(least, weights[d])
    total = 0.0
    for d in range(n):
        beyond = (weights[d] - least) * near.rate if weights[d] < np.inf else np.inf
        weights[d] = math.exp(-beyond) if beyond < _NEGLIGIBLE else 0.0
        spare[d], copies[d] = weights[d], near.copies[d]
        total += weights[d] * copies[d]
    cut = _cut(spare, copies, n, near.keep * total) * (1.0 - _TIE) if near.keep < 1.0 else 0.0
    total = 0.0
    for d in range(n):
        weights[d] = weights[d] * near.copies[d] if weights[d] >= cut else 0.0
        total += weights[d]
    return total


@inner
def _same(rows, i, k):
    """Return whether two rows are equal, missing values included."""
    for j in range(rows.shape[1]):
        if rows[i, j] != rows[k, j] and not (np.isnan(rows[i, j]) and np.isnan(rows[k, j])):
            return False
    return True


@inner
def _is_allowed(value, low, high, levels, i):
    return low[i] <= value <= high[i] and (levels.shape[1] == 0 or levels[i, np.int64(value)])


@entry
def draw(rows, near, uniform, low, high, levels, freely, weights, spare, copies, out, share, missing):
    """Draw one donor's value for each row by weight: `freely`, or among the allowed ones that are not missing.

    Also write the share of the weight that is allowed, and that of missing values.
    """
    n, total = weights.size, 0.0
    for i in range(out.size):
        if i == 0 or not _same(rows, i, i - 1):
            total = _weigh(rows[i], near, -1, weights, spare, copies)
        allowed, missed = 0.0, 0.0
        for d in range(n):
            if d >= near.n_known:
                missed += weights[d]
            elif _is_allowed(near.values[d], low, high, levels, i):
                allowed += weights[d]
        share[i], missing[i] = allowed / total, missed / total
        left = uniform[i] * (allowed + missed if freely else allowed)
        out[i] = np.nan
        for d in range(n if freely else near.n_known):
            if weights[d] > 0.0 and (d >= near.n_known or _is_allowed(near.values[d], low, high, levels, i)):
                out[i] = near.values[d]  # the last donor if rounding leaves a remainder
                left -= weights[d]
                if left < 0.0:
                    break


@entry
def find_support(rows, near, values, is_number, weights, spare, copies, supported):
    """Return whether each value is one of the row's donors or, for a number, as close as these are to each other."""
    for i in range(values.size):
        if i == 0 or not _same(rows, i, i - 1):
            _weigh(rows[i], near, -1, weights, spare, copies)
        x = values[i]
        if np.isnan(x):
            supported[i] = False
            for d in range(near.n_known, weights.size):
                supported[i] = supported[i] or weights[d] > 0.0
            continue
        n_gaps, n_copies, nearest = 0, 0.0, np.inf
        first, last = np.nan, np.nan
        for d in range(near.n_known):
            if weights[d] == 0.0:
                continue
            value = near.values[d]
            n_copies += near.copies[d]
            nearest = min(nearest, abs(value - x))
            if np.isnan(first):
                first = value
            else:
                spare[n_gaps] = value - last
                n_gaps += 1
            last = value
        more = max(int(n_copies) - n_gaps - 1, 0)  # copies, whose gaps are 0
        middle = (n_gaps + more - 1) // 2 - more
        gap = select(spare, n_gaps, middle) if is_number and n_gaps + more > 1 and middle >= 0 else 0.0
        supported[i] = first <= x <= last and nearest <= gap


@inner
def _bandwidth(near, is_atom, weights, instead):
    """Return Silverman's bandwidth of the weighted donors without point mass; `instead` if they are all equal."""
    total, squares, mean, variance = 0.0, 0.0, 0.0, 0.0
    for d in range(near.n_known):
        if weights[d] > 0.0 and not is_atom[d]:
            total += weights[d]
            squares += weights[d] ** 2 / near.copies[d]
            away = near.values[d] - mean
            mean += away * weights[d] / total
            variance += weights[d] * away * (near.values[d] - mean)
    if total == 0.0:
        return 0.0
    n = total**2 / squares
    if variance <= 0.0 or n < 1.0 + 1e-9:
        return instead
    upto, low, high = 0.0, np.nan, np.nan
    for d in range(near.n_known):
        if weights[d] > 0.0 and not is_atom[d]:
            upto += weights[d]
            if np.isnan(low) and upto >= 0.25 * total:
                low = near.values[d]
            if np.isnan(high) and upto >= 0.75 * total:
                high = near.values[d]
    return _silverman(math.sqrt(variance / total * n / (n - 1.0)), high - low, n)


@entry
def measure(rows, near, own, values, counted, is_atom, instead, weights, spare, copies, share, number, missing,
            all_number):  # fmt: skip
    """Write the quantities from which the density of each value is computed.

    `share` is the share of the known donors that have the value, if it is `counted`, else the weighted sum of normal
    kernels at those without point mass; `number` the effective number of known donors (sum w)^2 / sum w^2, `missing`
    the share of missing ones, and `all_number` the effective number of all. `own` is the donor to leave out, or -1.
    """
    total, h, known, squares, all_squares = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(values.size):
        if i == 0 or own[i] != own[i - 1] or not _same(rows, i, i - 1):
            total = _weigh(rows[i], near, own[i], weights, spare, copies)
            h = _bandwidth(near, is_atom, weights, instead)
            known, squares, all_squares = 0.0, 0.0, 0.0
            for d in range(weights.size):
                all_squares += weights[d] ** 2 / near.copies[d]
                if d < near.n_known:
                    known += weights[d]
                    squares += weights[d] ** 2 / near.copies[d]
        number[i] = known**2 / squares if known > 0.0 else 0.0
        missing[i] = (total - known) / total if total > 0.0 else 0.0
        all_number[i] = total**2 / all_squares if total > 0.0 else 0.0
        found = 0.0
        for d in range(near.n_known):
            if weights[d] == 0.0:
                continue
            if counted[i]:
                found += weights[d] * (near.values[d] == values[i])
            elif not is_atom[d]:
                z = (values[i] - near.values[d]) / h
                found += weights[d] * math.exp(-0.5 * z * z) / (h * _ROOT_TAU)
        share[i] = found / known if known > 0.0 else 0.0
