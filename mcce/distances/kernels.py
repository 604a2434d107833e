"""Kernels that run over every candidate: one step between two values, sums of steps, and the first rows of an order.

1. `step` is the distance of two values of one column, whatever the distance: all else adds such steps up.
2. `measure_block` adds them for rows against a factual.
3. `insert` keeps the first rows of a lexicographic order.
4. `measure_candidates` writes the sums for the candidates of factuals, `rank_candidates` finds the first candidates,
   `best_within` and `sort_within` take keys that are there already, and `find_nearest` looks for the training rows with
   the least sums.

Matrices of candidates come column by column (`cells[j, i]` is column j of row i): values of one column lie side by
side, and a matrix of one row or one column has the same layout as any other, so nothing is compiled twice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from mcce.base.compiling import entry, inner

# mypy: disable-error-code="no-untyped-def"


SCALED, LEVELS, CURVES = 0, 1, 2  # how a column's step is found

# like `inner`, but a branch on an argument that is None is left out before types are inferred
pruned = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)


class Steps(NamedTuple):
    """Distances as the kernels read them: a row for each distance, a column for each column of the table.

    scale : what a unit counts; 0 where any change is whole. Of CURVES, the knots a unit.
    whole : a step to or from a missing value, and whatever has no other measure.
    squared : by distance.
    """

    scale: npt.NDArray[np.float64]
    whole: npt.NDArray[np.float64]
    squared: npt.NDArray[np.bool_]


class Tables(NamedTuple):
    """Steps that are looked up. Without any, the kernels get None, and are compiled without what reads them.

    how : SCALED, LEVELS (a table of level by level) or CURVES (class probabilities that change with a number).
    begin, size : where a column's part of `table` begins, and its number of levels or of spaces between knots.
    table : LEVELS: size x size steps. CURVES: the first knot's place, then (size + 1) x classes probabilities, those of
        the first and the last knot 0.
    classes : by distance.
    """

    how: npt.NDArray[np.int64]
    begin: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    table: npt.NDArray[np.float64]
    classes: npt.NDArray[np.int64]


class CandidateBlocks(NamedTuple):
    """Factuals, and the candidates that each is compared with.

    cells : the candidates, column by column.
    begin, end : by factual, where its candidates begin and end.
    factuals : one row each.
    which : the factuals whose candidates are looked at.
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
    """What candidates are ranked by: L0, the distances, then what is given.

    order : the rows of these that sort, the first one first.
    limits : by factual, the largest values of the first rows.
    given : further measures, a column for each candidate of each factual.
    """

    order: npt.NDArray[np.int64]
    limits: npt.NDArray[np.float64]
    given: npt.NDArray[np.float64]


class Top(NamedTuple):
    """The first rows of each factual.

    keys : room for the keys of the first rows of one factual.
    rows, n_rows : by factual, its first rows and how many there are; `rows` is as wide as the number of rows wanted.
    """

    keys: npt.NDArray[np.float64]
    rows: npt.NDArray[np.int64]
    n_rows: npt.NDArray[np.int64]

    @classmethod
    def room_for(cls, n_keys: int, n_factuals: int, most: int) -> Top:
        """Return room for so many first rows of each factual; -1 where there are fewer."""
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
    """How far two values of column j that are not the same are from each other by distance d, squared if it squares."""
    scale = steps.scale[d, j]
    size = abs(a - b) * scale
    if scale == 0.0 or size != size:
        size = steps.whole[d, j]
    if tables is not None:  # noqa: SIM102 -- the branch that is left out has to stand alone
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

    NaN is equal to everything: where a factual has it in a key, it has it in all its rows.
    """
    for v in order:
        if values[v, i] < others[v, k]:
            return -1
        if values[v, i] > others[v, k]:
            return 1
    return 0


@inner
def insert(values, i, row, order, cells, columns, distinct, top, w):
    """Put a row in its place among the first ones of factual w, whose keys are in `top`.

    Ties stay in the order of arrival. If `distinct`, a row equal to one that is held is left out.
    """
    most = top.rows.shape[1]
    if top.n_rows[w] == most and compare(values, i, top.keys, most - 1, order) >= 0:
        return
    place = 0
    beyond = top.n_rows[w]
    while place < beyond:  # its place is before the first one that sorts after it
        middle = (place + beyond) // 2
        if compare(values, i, top.keys, middle, order) < 0:
            beyond = middle
        else:
            place = middle + 1
    # a row like this one has the same keys, and stands just before
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

    `room` is for some candidates, with one row more than `values`.
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

    `room` is for the keys of some candidates, and has a spare row.
    """
    most = top.rows.shape[1]
    at = 0
    for w in range(compared.which.size):
        f = compared.which[w]
        last = np.inf  # most candidates are beyond the last one held by their first key alone
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
    """Write the first of the K rows of each factual among those kept, by keys[order] and then by place."""
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
    """Find the nearest training rows of rows[first:last], the earlier one first on ties; own[i] does not count.

    As many as `nearest` has columns; -1 where there are fewer. `sums` is room for as many numbers.
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
