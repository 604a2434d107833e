"""Kernels that run over every candidate: one step between two values, sums of steps, and the first rows of an order.

1. `step` is the distance of two values of one column; all other kernels sum such steps.
2. `measure_block` adds them for rows against a factual.
3. `insert` keeps the first rows of a lexicographic order.
4. `measure_candidates` writes the sums for the candidates of factuals, `rank_candidates` finds the first candidates,
   `best_within` and `sort_within` use given keys, and `find_nearest` finds the training rows with the smallest sums.

Matrices of candidates are stored by column (`cells[j, i]` is column j of row i): values of one column are contiguous,
and a matrix of one row or one column has the same layout as any other, so no kernel is compiled twice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from mcce.base.compiling import entry, inner

# mypy: disable-error-code="no-untyped-def"


SCALED, LEVELS, CURVES = 0, 1, 2  # kinds of steps

# like `inner`, but branches on arguments that are None are removed before type inference
pruned = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)


class Steps(NamedTuple):
    """Distances as the kernels read them: a row for each distance, a column for each column of the table.

    scale : the step per unit; 0 if any change counts as `whole`. For CURVES, the knots per unit.
    whole : a step to or from a missing value, and every step without another measure.
    squared : by distance.
    """

    scale: npt.NDArray[np.float64]
    whole: npt.NDArray[np.float64]
    squared: npt.NDArray[np.bool_]


class Tables(NamedTuple):
    """Tables of steps. Without tables, the kernels get None, and are compiled without the code that reads them.

    how : SCALED, LEVELS (a table of level by level) or CURVES (class probabilities that change with a number).
    begin, size : the start of a column's part of `table`, and its number of levels or of intervals between knots.
    table : LEVELS: size x size steps. CURVES: the position of the first knot, then (size + 1) x classes probabilities,
        0 at the first and the last knot.
    classes : by distance.
    """

    how: npt.NDArray[np.int64]
    begin: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    table: npt.NDArray[np.float64]
    classes: npt.NDArray[np.int64]


class CandidateBlocks(NamedTuple):
    """Factuals and the candidates of each.

    cells : the candidates, column by column.
    begin, end : by factual, where its candidates begin and end.
    factuals : one row each.
    which : the factuals whose candidates are processed.
    columns : the columns that are compared.
    plain : by distance and column, whether the column holds numbers with a scale or levels without, none of them
        missing, and has no table.
    """

    cells: npt.NDArray[np.float64]
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    factuals: npt.NDArray[np.float64]
    which: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    plain: npt.NDArray[np.bool_]


class Keys(NamedTuple):
    """The ranking keys of candidates: L0, the distances, then given measures.

    order : the rows of keys to sort by, in order of priority.
    limits : by factual, the largest allowed values of the first keys.
    given : further measures, a column for each candidate of each factual.
    """

    order: npt.NDArray[np.int64]
    limits: npt.NDArray[np.float64]
    given: npt.NDArray[np.float64]


class Top(NamedTuple):
    """The first rows of each factual.

    keys : room for the keys of the first rows of one factual.
    rows, n_rows : by factual, its first rows and their number; the width of `rows` is the requested number.
    """

    keys: npt.NDArray[np.float64]
    rows: npt.NDArray[np.int64]
    n_rows: npt.NDArray[np.int64]

    @classmethod
    def room_for(cls, n_keys: int, n_factuals: int, most: int) -> Top:
        """Return arrays for this many first rows of each factual; -1 where there are fewer."""
        rows = np.full((n_factuals, most), -1, dtype=np.int64)
        return cls(np.empty((n_keys, most)), rows, np.zeros(n_factuals, dtype=np.int64))


@inner
def same(a, b):
    """Whether two values are equal; missing is equal to missing."""
    return a == b or (a != a and b != b)


@inner
def look_up(tables, d, j, a, b, scale, whole):
    """Step from a table; `whole` where one of the values is missing, or was unknown when the table was made."""
    begin, n, classes = tables.begin[d, j], tables.size[d, j], tables.classes[d]
    if a != a or b != b:
        return whole
    if tables.how[d, j] == LEVELS:
        return tables.table[begin + int(a) * n + int(b)] if a < n and b < n else whole
    total = 0.0
    for c in range(classes):
        difference = 0.0
        for value, sign in ((a, 1.0), (b, -1.0)):
            at = (value - tables.table[begin]) * scale
            if 0.0 < at < n:
                k = begin + 1 + int(at) * classes + c
                rise = tables.table[k + classes] - tables.table[k]
                difference += sign * (tables.table[k] + (at - int(at)) * rise)
        total += difference * difference
    return total * whole


@pruned
def step(steps, tables, d, j, a, b):
    """Return the step between two different values of column j by distance d, squared if the distance is."""
    scale = steps.scale[d, j]
    size = abs(a - b) * scale
    if scale == 0.0 or size != size:
        size = steps.whole[d, j]
    if tables is not None:  # noqa: SIM102 -- the removed branch must be separate
        if tables.how[d, j] != SCALED:
            size = look_up(tables, d, j, a, b, scale, steps.whole[d, j])
    return size * size if steps.squared[d] else size


@inner
def measure_block(compared, f, first, n, steps, tables, values):
    """L0 of n candidates of a factual in values[0], and the sum of steps of distance d in values[1 + d].

    The last row of `values` is spare.
    """
    cells = compared.cells
    for d in range(steps.scale.shape[0]):
        changed = values[0 if d == 0 else values.shape[0] - 1]
        total = values[1 + d]
        for i in range(n):
            changed[i] = 0.0
            total[i] = 0.0
        for j in compared.columns:
            x = compared.factuals[f, j]
            scale, whole = steps.scale[d, j], steps.whole[d, j]
            if compared.plain[d, j] and scale != 0.0:
                for i in range(n):
                    difference = abs(cells[j, first + i] - x)
                    changed[i] += 1.0 if difference != 0.0 else 0.0
                    total[i] += difference * scale
            elif compared.plain[d, j]:
                for i in range(n):
                    one = 1.0 if cells[j, first + i] != x else 0.0
                    changed[i] += one
                    total[i] += one * whole
            else:
                for i in range(n):
                    value = cells[j, first + i]
                    if not same(value, x):
                        changed[i] += 1.0
                        total[i] += step(steps, tables, d, j, value, x)


@inner
def compare(values, i, others, k, order):
    """-1 if column i of `values` sorts before column k of `others`, 1 if after, else 0.

    NaN equals every value: if a key of a factual is NaN, it is NaN in all its rows.
    """
    for v in order:
        if values[v, i] < others[v, k]:
            return -1
        if values[v, i] > others[v, k]:
            return 1
    return 0


@inner
def insert(values, i, row, order, cells, columns, distinct, top, w):
    """Insert a row at its position among the first rows of factual w, whose keys are in `top`.

    Ties stay in the order of arrival. If `distinct`, a row equal to one already present is omitted.
    """
    most = top.rows.shape[1]
    if top.n_rows[w] == most and compare(values, i, top.keys, most - 1, order) >= 0:
        return
    place = 0
    beyond = top.n_rows[w]
    while place < beyond:  # its position is before the first row that sorts after it
        middle = (place + beyond) // 2
        if compare(values, i, top.keys, middle, order) < 0:
            beyond = middle
        else:
            place = middle + 1
    # an equal row has the same keys and is just before
    twin = place
    while distinct and twin > 0 and compare(values, i, top.keys, twin - 1, order) == 0:
        twin -= 1
        equal = True
        for j in columns:
            equal = equal and same(cells[j, top.rows[w, twin]], cells[j, row])
        if equal:
            return
    if top.n_rows[w] < most:
        top.n_rows[w] += 1
    for move in range(top.n_rows[w] - 1, place, -1):
        top.rows[w, move] = top.rows[w, move - 1]
    top.rows[w, place] = row
    for v in order:
        for move in range(top.n_rows[w] - 1, place, -1):
            top.keys[v, move] = top.keys[v, move - 1]
        top.keys[v, place] = values[v, i]


@entry
def measure_candidates(compared, steps, tables, room, values):
    """Write L0 and the sums of steps of the candidates of each factual, one factual after the other.

    `room` is working memory for some candidates, with one row more than `values`.
    """
    at = 0
    for f in compared.which:
        for first in range(compared.begin[f], compared.end[f], room.shape[1]):
            n = min(compared.end[f] - first, room.shape[1])
            measure_block(compared, f, first, n, steps, tables, room)
            for v in range(values.shape[0]):
                for i in range(n):
                    values[v, at + i] = room[v, i]
            at += n


@entry
def rank_candidates(compared, steps, tables, keys, room, top):
    """Find the first distinct candidates of each factual.

    `room` is working memory for the keys of some candidates, with a spare row.
    """
    most = top.rows.shape[1]
    at = 0
    for w in range(compared.which.size):
        f = compared.which[w]
        last = np.inf  # most candidates are excluded by their first key
        for first in range(compared.begin[f], compared.end[f], room.shape[1]):
            n = min(compared.end[f] - first, room.shape[1])
            measure_block(compared, f, first, n, steps, tables, room)
            for g in range(keys.given.shape[0]):
                for i in range(n):
                    room[1 + steps.scale.shape[0] + g, i] = keys.given[g, at + i]
            at += n
            leading = room[keys.order[0]]
            for i in range(n):
                if leading[i] > last:
                    continue
                within = True
                for v in range(keys.limits.shape[0]):
                    within = within and room[v, i] <= keys.limits[v, f]
                if within:
                    insert(room, i, first + i, keys.order, compared.cells, compared.columns, True, top, w)
                    if top.n_rows[w] == most:
                        last = top.keys[keys.order[0], most - 1]


@entry
def best_within(keys, kept, K, order, top):
    """Write the first of the kept rows among the K rows of each factual, by keys[order] and then by position."""
    for f in range(top.n_rows.size):
        for i in range(f * K, (f + 1) * K):
            if kept[i]:
                insert(keys, i, i, order, keys, order, False, top, f)


@entry
def sort_within(keys, K, order, spare, sorted_rows):
    """Sort the K rows of each factual by keys[order]; ties keep their order (a merge sort)."""
    for begin in range(0, sorted_rows.size, K):
        for i in range(K):
            sorted_rows[begin + i] = begin + i
        width = 1
        while width < K:
            for low in range(0, K, 2 * width):
                middle = min(low + width, K)
                high = min(low + 2 * width, K)
                a = low
                b = middle
                for i in range(low, high):
                    one, other = sorted_rows[begin + min(a, K - 1)], sorted_rows[begin + min(b, K - 1)]
                    if a < middle and (b >= high or compare(keys, other, keys, one, order) >= 0):
                        spare[i] = one
                        a += 1
                    else:
                        spare[i] = other
                        b += 1
            for i in range(K):
                sorted_rows[begin + i] = spare[i]
            width *= 2


@entry
def find_nearest(rows, first, last, training, steps, tables, own, sums, nearest):
    """Find the nearest training rows of rows[first:last], the earlier one first on ties; own[i] is excluded.

    Their number is the number of columns of `nearest`; -1 where there are fewer. `sums` is working memory of that size.
    """
    k = nearest.shape[1]
    for i in range(first, last):
        for place in range(k):
            sums[place] = np.inf
            nearest[i, place] = -1
        for t in range(training.shape[0]):
            total = 0.0
            for j in range(rows.shape[1]):
                a, b = rows[i, j], training[t, j]
                if not same(a, b):
                    total += step(steps, tables, 0, j, a, b)
                    if total >= sums[k - 1]:
                        break
            if total < sums[k - 1] and t != own[i]:
                place = k - 1
                while place > 0 and total < sums[place - 1]:
                    sums[place] = sums[place - 1]
                    nearest[i, place] = nearest[i, place - 1]
                    place -= 1
                sums[place] = total
                nearest[i, place] = t
