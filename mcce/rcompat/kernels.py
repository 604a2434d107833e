"""Kernels over all generated rows: rows of leaves, drawn values, and measures."""

import math

import numpy as np

from mcce.base.compiling import cached

# mypy: disable-error-code="no-untyped-def"


@cached(nogil=True, error_model="numpy")
def count_leaves(leaf, count, order):
    """Count the rows of each leaf; write the leaves in order of first appearance and return their number."""
    seen = 0
    for i in range(leaf.size):
        node = leaf[i]
        if count[node] == 0:
            order[seen] = node
            seen += 1
        count[node] += 1
    return seen


@cached(nogil=True, error_model="numpy")
def deal(leaf, place, drawn, out):
    """Assign each row the next value drawn for its leaf; `place` is the next position of each leaf and is updated."""
    for i in range(leaf.size):
        node = leaf[i]
        out[i] = drawn[place[node]]
        place[node] += 1


@cached(nogil=True, error_model="numpy")
def count_changes(rows, factuals, K, out):
    """Return L0, the number of columns that differ from the factual's; K rows for each factual."""
    for j in range(rows.shape[1]):
        for f in range(factuals.shape[0]):
            x = factuals[f, j]
            for i in range(f * K, (f + 1) * K):
                out[i] += rows[i, j] != x


@cached(nogil=True, error_model="numpy")
def sum_steps(rows, factuals, K, is_number, squared, out):
    """Return L1 or, squared, L2: sum even and odd columns separately, then add both. A changed level is one step."""
    odd = np.empty(K)
    for f in range(factuals.shape[0]):
        even = out[f * K : (f + 1) * K]
        even[:] = 0.0
        odd[:] = 0.0
        for j in range(rows.shape[1]):
            x = factuals[f, j]
            side = odd if j % 2 else even
            for i in range(K):
                d = rows[f * K + i, j]
                step = abs(x - d) if is_number[j] else 1.0 * (d != x)
                side[i] += step * step if squared else step
        for i in range(K):
            total = even[i] + odd[i]
            even[i] = math.sqrt(total) if squared else total


@cached(nogil=True, error_model="numpy")
def sum_gower(rows, factuals, K, role, span, same, out):
    """Return mcceR's Gower: numbers divided by the range of the candidates, and 1 for each *equal* factor level."""
    for j in range(rows.shape[1]):
        for f in range(factuals.shape[0]):
            x = factuals[f, j]
            for i in range(f * K, (f + 1) * K):
                if role[j] == 1:
                    out[i] += abs(x - rows[i, j]) / span[j]
                elif role[j] == 0:
                    same[i] += rows[i, j] == x
    for i in range(out.size):
        out[i] += same[i]
