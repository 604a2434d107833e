"""Kernels that compare the draws of a pool with each other and with a factual."""

from __future__ import annotations

import numpy as np

from mcce.base.compiling import entry, inner
from mcce.distances.kernels import step

# mypy: disable-error-code="no-untyped-def"


MULTIPLIER = 0x9E3779B97F4A7C1  # odd multiplier of the hash


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
def sum_steps(cells, begin, factual, low, high, columns, steps, tables, tuples, table, changed, sums):
    """Write which tuples of draws differ from the factual in all their columns, and their steps; return how many.

    A value differs if it is neither equal nor missing, and is between `low` and `high`. `table` is working memory, with
    a row for each of `columns` and a column for each draw; `tuples` are draws, and positions in sets of columns.
    """
    for a in range(columns.size):
        j = columns[a]
        x = factual[j]
        for i in range(table.shape[1]):
            value = cells[j, begin + i]
            if value == x or not low[j] <= value <= high[j]:
                table[a, i] = np.inf
            else:
                table[a, i] = step(steps, tables, 0, j, value, x)
    draws, which, sets = tuples
    n = 0
    for t in range(draws.size):
        total = 0.0
        for a in sets[which[t]]:
            total += table[a, draws[t]]
        if total < np.inf:
            changed[n], sums[n] = t, total
            n += 1
    return n
