"""Boosted oblivious trees on binned cells: all nodes of a level have the same split, so a leaf is a few comparisons.

Cells come column by column: `bins[j, i]` is the bin of column j of row i.
"""

from __future__ import annotations

import numpy as np

from mcce.base.compiling import entry, inner

# mypy: disable-error-code="no-untyped-def"


ONE = np.uint8(1)


@inner
def best_cut(histogram, totals, left, n_nodes, ridge):
    """Return the bin after which to cut all nodes of a level, and the gain; -1 if no cut separates anything."""
    best = -1.0
    cut = -1
    for q in range(n_nodes):
        left[q, 0] = 0.0
        left[q, 1] = 0.0
    for b in range(histogram.shape[1] - 1):
        moved = False
        for q in range(n_nodes):
            if histogram[q, b, 1] > 0.0:
                left[q, 0] += histogram[q, b, 0]
                left[q, 1] += histogram[q, b, 1]
                moved = True
        if not moved:
            continue
        gain = 0.0
        for q in range(n_nodes):
            gradient, weight = left[q, 0], left[q, 1]
            gain += gradient * gradient / (weight + ridge)
            gradient, weight = totals[q, 0] - gradient, totals[q, 1] - weight
            gain += gradient * gradient / (weight + ridge)
        if gain > best:
            best = gain
            cut = b
    return cut, best


@entry
def grow_tree(bins, gradient, weight, tried, ridge, rate, node, histogram, totals, left, column, cut, value):
    """Grow one tree by Newton steps: write the column and the cut of each level, and the value of each leaf.

    `tried[level]` are the columns tried at a level. `node` holds each row's leaf afterwards.
    """
    depth = column.size
    n = gradient.size
    for i in range(n):
        node[i] = 0
    for level in range(depth):
        n_nodes = 1 << level
        for q in range(n_nodes):
            totals[q, 0] = 0.0
            totals[q, 1] = 0.0
        for i in range(n):
            totals[node[i], 0] += gradient[i]
            totals[node[i], 1] += weight[i]
        best = -1.0
        column[level] = tried[level, 0]
        cut[level] = histogram.shape[1] - 1
        for j in tried[level]:
            for q in range(n_nodes):
                for b in range(histogram.shape[1]):
                    histogram[q, b, 0] = 0.0
                    histogram[q, b, 1] = 0.0
            for i in range(n):
                histogram[node[i], bins[j, i], 0] += gradient[i]
                histogram[node[i], bins[j, i], 1] += weight[i]
            b, gain = best_cut(histogram, totals, left, n_nodes, ridge)
            if gain > best:
                best = gain
                column[level] = j
                cut[level] = b
        j = column[level]
        for i in range(n):
            node[i] = (node[i] << ONE) | np.uint8(bins[j, i] > cut[level])
    for q in range(1 << depth):
        totals[q, 0] = 0.0
        totals[q, 1] = 0.0
    for i in range(n):
        totals[node[i], 0] += gradient[i]
        totals[node[i], 1] += weight[i]
    for q in range(1 << depth):
        value[q] = rate * totals[q, 0] / (totals[q, 1] + ridge)


@entry
def add_scores(bins, column, cut, value, leaf, scores):
    """Add the values of all trees to the scores of the rows; `leaf` is room for some rows at a time."""
    n_trees, depth = column.shape
    for first in range(0, scores.size, leaf.size):
        n = min(leaf.size, scores.size - first)
        for t in range(n_trees):
            for i in range(n):
                leaf[i] = 0
            for level in range(depth):
                j = column[t, level]
                at = cut[t, level]
                for i in range(n):  # bytes only, so that many rows are compared at once
                    leaf[i] = (leaf[i] << ONE) | np.uint8(bins[j, first + i] > at)
            for i in range(n):
                scores[first + i] += value[t, leaf[i]]


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
