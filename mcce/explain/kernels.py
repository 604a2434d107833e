"""Crossing drawn rows with a factual: some cells of the draw, the factual's own elsewhere."""

from __future__ import annotations

from mcce.base.compiling import entry, inner
from mcce.distances.kernels import step

# mypy: disable-error-code="no-untyped-def"


MULTIPLIER = 0x9E3779B97F4A7C1  # odd, for hashing
UNCHANGED = -1.0  # in a table of steps: the draw has the factual's value, or none


@inner
def find_or_insert(keys, key):
    """Return the place of a key in an open hash table (a power of two long, -1 where empty), and whether it is new."""
    last = keys.size - 1
    at = ((key * MULTIPLIER) >> 20) & last
    while keys[at] != -1 and keys[at] != key:
        at = (at + 1) & last
    new = keys[at] == -1
    keys[at] = key
    return at, new


@entry
def number_values(cells, begin, columns, bits, keys, number, codes, counts):
    """Write codes of the values of each column of a pool: 0, 1, ... in the order drawn, -1 for a missing value.

    `bits` are the cells as integers; `keys` and `number` are room for a hash table.
    """
    for a in range(columns.size):
        j = columns[a]
        for b in range(keys.size):
            keys[b] = -1
        counts[a] = 0
        for i in range(codes.shape[1]):
            value = cells[j, begin + i]
            if value != value:
                codes[a, i] = -1
                continue
            key = bits[j, begin + i] if value != 0.0 else 0  # one zero
            if key == -1:
                key = -2  # no finite number has these bits
            at, new = find_or_insert(keys, key)
            if new:
                number[at] = counts[a]
                counts[a] += 1
            codes[a, i] = number[at]


@inner
def same_codes(codes, members, one, other):
    """Whether two draws have the same values in some columns."""
    equal = True
    for a in members:
        equal = equal and codes[a, one] == codes[a, other]
    return equal


@entry
def mark_first(codes, sets, slots, is_first):
    """Mark, for each set of columns, the draws that are the first with their values in them.

    `slots` is room for a hash table of draws.
    """
    last = slots.size - 1
    for s in range(sets.shape[0]):
        for b in range(slots.size):
            slots[b] = -1
        for i in range(codes.shape[1]):
            is_first[i, s] = False
            mixed = 0
            missing = False
            for a in sets[s]:
                missing = missing or codes[a, i] < 0
                mixed = (mixed + codes[a, i]) * MULTIPLIER
            if missing:
                continue
            at = (mixed >> 20) & last
            while slots[at] != -1 and not same_codes(codes, sets[s], slots[at], i):
                at = (at + 1) & last
            if slots[at] == -1:
                slots[at] = i
                is_first[i, s] = True


@entry
def step_table(cells, begin, factual, columns, steps, tables, table):
    """Write how far each draw's value is from the factual's, a row for each of the columns."""
    for a in range(columns.size):
        j = columns[a]
        x = factual[j]
        for i in range(table.shape[1]):
            value = cells[j, begin + i]
            if value != value or value == x:
                table[a, i] = UNCHANGED
            else:
                table[a, i] = step(steps, tables, 0, j, value, x)


@inner
def tuple_step(table, members, i):
    """Sum of the steps of some columns of draw i; UNCHANGED if one of them does not change."""
    total = 0.0
    for a in members:
        if table[a, i] == UNCHANGED:
            return UNCHANGED
        total += table[a, i]
    return total


@entry
def nearest_tuples(table, draws, combination, combinations, most, counts, found, distance):
    """Find the tuples of changed columns with the smallest steps: at least `most` of them, or all.

    A first pass counts the sums in bins of equal width; a second one takes those up to the bin in which the wanted
    number is reached. Returns how many were found, in the order of `draws`, and how many there are.
    """
    largest = 0.0
    n = 0
    for t in range(draws.size):
        distance[t] = tuple_step(table, combinations[combination[t]], draws[t])
        if distance[t] != UNCHANGED:
            n += 1
            largest = max(largest, distance[t])
    last = counts.size - 1
    width = last / largest if largest > 0.0 else 0.0
    for b in range(counts.size):
        counts[b] = 0
    if n > most:
        for t in range(draws.size):
            if distance[t] != UNCHANGED:
                counts[int(distance[t] * width)] += 1
        reached = 0
        for b in range(counts.size):
            reached += counts[b]
            if reached >= most:
                last = b
                break
    held = 0
    for t in range(draws.size):
        size = distance[t]
        if size != UNCHANGED and int(size * width) <= last:
            found[held] = t
            distance[held] = size
            held += 1
    return held, n


@entry
def mark_every(table, draws, combination, combinations, every, marked):
    """Mark every so many-th tuple, the first among them, if all its columns are changed."""
    for t in range(0, draws.size, every):
        if tuple_step(table, combinations[combination[t]], draws[t]) != UNCHANGED:
            marked[t] = True


@entry
def keep_every(column, rank, sorted_values, first, stride, factual, chosen, place, kept):
    """Write which of the chosen values are kept, every `stride`-th of a column from the factual's own; return how many.

    `column` and `rank` are those of all values; `sorted_values[first[j] : first[j + 1]]` are the values of column j, of
    which none is missing. `place` is room for a number for each column.
    """
    for j in range(factual.size):
        x = factual[j]
        low, high = first[j], first[j + 1]
        while low < high:
            middle = (low + high) // 2
            if x != x or sorted_values[middle] < x:
                low = middle + 1
            else:
                high = middle
        place[j] = low - first[j]
    n = 0
    for t in chosen:
        j = column[t]
        beyond = rank[t] - place[j]
        steps = beyond if beyond >= 0 else -1 - beyond
        if steps % stride[j] == 0:
            kept[n] = t
            n += 1
    return n


@entry
def cross(cells, begin, factual, columns, draws, combination, combinations, chosen, out, at):
    """Write the chosen crossings as rows out[:, at:]: the factual, with some columns of a draw."""
    for k in range(chosen.size):
        t = chosen[k]
        for j in range(factual.size):
            out[j, at + k] = factual[j]
        for a in combinations[combination[t]]:
            out[columns[a], at + k] = cells[columns[a], begin + draws[t]]


@entry
def read_crossings(
    cells, begin, factual, columns, draws, combination, combinations, chosen, steps, tables, at, column, value, total
):
    """Write the columns that the chosen crossings change, their values and the sums of the steps, from place `at`."""
    for k in range(chosen.size):
        t = chosen[k]
        members = combinations[combination[t]]
        total[at + k] = 0.0
        for a in range(members.size):
            j = columns[members[a]]
            x = cells[j, begin + draws[t]]
            column[at + k, a] = j
            value[at + k, a] = x
            total[at + k] += step(steps, tables, 0, j, x, factual[j])


@entry
def write_changed(factuals, of, column, value, out):
    """Write rows column by column: each like a factual but for some cells."""
    for j in range(out.shape[0]):
        for i in range(of.size):
            out[j, i] = factuals[of[i], j]
    for i in range(of.size):
        for a in range(column.shape[1]):
            out[column[i, a], i] = value[i, a]
