"""Donors in the leaves of one or more trees: routing, drawing, supports and densities.

`DonorForest` concatenates the nodes and donors of its trees; a row's donors are those of the leaves it reaches.
Supports and densities use tables prepared at first use: the *runs* of each leaf (its distinct donors with their
counts), median gap, bandwidth and Taylor polynomials of the sum of kernels. Memory is proportional to rows plus donors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Floats, Ints
from mcce.rng import RowStreams
from mcce.samplers.base import Within
from mcce.samplers.density import silverman
from mcce.samplers.donors import kernels
from mcce.samplers.donors.density import MarginalDensity
from mcce.table import Table
from mcce.trees.tree import Tree

Nodes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Smoothing:
    """Tables for sums of normal kernels: runs without point mass, bandwidths of the nodes, cells."""

    runs: kernels.Runs
    bandwidth: Floats
    cells: kernels.Cells


@dataclass(frozen=True)
class DonorForest:
    """Trees, and a value of each of their donors.

    Attributes
    ----------
    trees : one or more trees.
    values : values of the donors, tree by tree, in the order of each tree's `donors`.
    first_node : the number of each tree's root, with the nodes of all trees numbered consecutively.
    start, size : the donors of node k are values[start[k] : start[k] + size[k]].
    weights : weights of the donors, like `values`; None for equal weights.
    """

    trees: tuple[Tree, ...]
    values: Floats
    first_node: Nodes
    start: Nodes
    size: Nodes
    weights: Floats | None = None

    @classmethod
    def of(
        cls, trees: Sequence[Tree], values: Sequence[Floats], weights: Sequence[Floats] | None = None
    ) -> DonorForest:
        """Join trees with the values and weights of their donors."""
        joined = None if weights is None else np.concatenate(weights)
        if len(trees) == 1:
            zero = np.zeros(1, dtype=np.int32)
            return cls(tuple(trees), np.ascontiguousarray(values[0]), zero, trees[0].start, trees[0].size, joined)
        first_node = np.cumsum([0, *(tree.n_nodes for tree in trees[:-1])]).astype(np.int32)
        first_donor = np.cumsum([0, *(tree.donors.size for tree in trees[:-1])]).astype(np.int32)
        start = np.concatenate([tree.start + first for tree, first in zip(trees, first_donor)])
        size = np.concatenate([tree.size for tree in trees])
        return cls(tuple(trees), np.concatenate(values), first_node, start.astype(np.int32), size, joined)

    def with_values(self, values: Floats) -> DonorForest:
        """Return the forest with other values of the donors."""
        return replace(self, values=values)

    @property
    def values_by_tree(self) -> list[Floats]:
        return self._by_tree(self.values)

    @property
    def weights_by_tree(self) -> list[Floats] | None:
        return None if self.weights is None else self._by_tree(self.weights)

    def _by_tree(self, of_donors: Floats) -> list[Floats]:
        return np.split(of_donors, np.cumsum([tree.donors.size for tree in self.trees])[:-1])

    def route(self, given: Table) -> Nodes:
        """Return the leaf of each row in every tree, (trees, rows)."""
        if len(self.trees) == 1:
            return self.trees[0].route(given.matrix, complete=given.complete)[None]
        leaves = np.empty((len(self.trees), given.n_rows), dtype=np.int32)
        for t, tree in enumerate(self.trees):
            leaves[t] = tree.route(given.matrix, complete=given.complete) + self.first_node[t]
        return leaves

    def draw(self, leaves: Nodes, rng: RowStreams) -> Floats:
        """Draw a donor of each row's leaves."""
        out = np.empty(leaves.shape[1])
        of_leaves = (leaves, self.start, self.size)
        if self.weights is None:
            kernels.pick_donor(rng.next_key(), rng.draws, rng.rows, *of_leaves, self.values, out)
        else:
            kernels.pick_weighted_donor(rng.next_key(), rng.draws, rng.rows, *of_leaves, self.upto, self.values, out)
        return out

    def draw_within(self, leaves: Nodes, rng: RowStreams, within: Within) -> tuple[Floats, npt.NDArray[Any]]:
        """Draw one of each row's allowed donors, NaN if there are none; also return their number, or weight."""
        n = leaves.shape[1]
        out = np.empty(n)
        levels = np.empty((n, 0), dtype=bool) if within.levels is None else np.ascontiguousarray(within.levels)
        of_leaves = (rng.next_key(), rng.draws, rng.rows, leaves, self.start, self.size)
        allowed = (*within.bounds(n), levels)
        if self.weights is None:
            n_allowed = np.empty(n, dtype=np.int64)
            kernels.pick_allowed_donor(*of_leaves, self.values, *allowed, out, n_allowed)
            return out, n_allowed
        weight = np.empty(n)
        kernels.pick_allowed_weighted(*of_leaves, self.upto, self.values, *allowed, out, weight)
        return out, weight

    def distinct_allowed(self, leaves: Nodes, within: Within) -> Ints:
        """Return the number of distinct training rows among the allowed donors of each row."""
        row_of_donor = np.concatenate([tree.donors for tree in self.trees])
        counts = np.empty(leaves.shape[1], dtype=np.int64)
        for i in range(counts.size):
            pool = np.concatenate([np.arange(self.start[k], self.start[k] + self.size[k]) for k in leaves[:, i]])
            allowed = within.take(np.full(pool.size, i)).allows(self.values[pool])
            counts[i] = np.unique(row_of_donor[pool[allowed & ~np.isnan(self.values[pool])]]).size
        return counts

    def mean(self, leaves: Nodes) -> Floats:
        pooled = self.sums[leaves].sum(axis=0) / self.mass[leaves].sum(axis=0)
        return np.asarray(pooled, dtype=np.float64)

    def supports(self, leaves: Nodes, values: Floats, *, is_number: bool) -> Bools:
        """Return whether a donor has the value or, for a number, a close one (`mcce.samplers.base`)."""
        supported = np.empty(values.size, dtype=bool)
        values = np.ascontiguousarray(values)
        if is_number and self.shares_rows:
            rank, ranked, weight = self._ranks
            most = int(sum(tree.size[tree.stops].max() for tree in self.trees))
            spare, gaps = np.empty(most, dtype=np.int64), np.empty(most)
            of_leaves = (leaves, np.lexsort(leaves), self.start, self.size)
            kernels.find_pooled_support(*of_leaves, rank, ranked, weight, values, spare, gaps, supported)
            return supported
        gaps = self.gaps if is_number else np.zeros(self.size.size)
        kernels.find_support(leaves, values, self.runs, gaps, supported)
        return supported

    @cached_property
    def upto(self) -> Floats:
        """Cumulative sums of the donors' weights, starting at 0."""
        assert self.weights is not None
        return np.concatenate([[0.0], np.cumsum(self.weights)])

    @property
    def mass(self) -> npt.NDArray[Any]:
        """Number of donors of each node, or the sum of their weights."""
        return self.size if self.weights is None else self.upto[self.start + self.size] - self.upto[self.start]

    @cached_property
    def sums(self) -> Floats:
        """Weighted sum of the donors' values of each node."""
        counted = self.values if self.weights is None else self.weights * self.values
        before = np.concatenate([[0.0], np.cumsum(counted)])
        return np.asarray(before[self.start + self.size] - before[self.start])

    @cached_property
    def runs(self) -> kernels.Runs:
        """The distinct donors of each node where rows may stop, and their counts."""
        return self.runs_of(np.flatnonzero(np.concatenate([tree.stops for tree in self.trees])))

    def runs_of(self, nodes: Ints) -> kernels.Runs:
        """Return the sorted distinct donors of some nodes; other nodes have none."""
        sizes = self.size[nodes].astype(np.int64)
        node = np.repeat(nodes, sizes)
        donor = np.arange(node.size) + np.repeat(self.start[nodes] - np.cumsum(sizes) + sizes, sizes)
        values = self.values[donor]
        known = ~np.isnan(values)
        node, values = node[known], values[known]
        order = np.lexsort((values, node))
        node, values = node[order], values[order]
        begins = np.flatnonzero(np.append(True, (np.diff(node) != 0) | (np.diff(values) != 0))[: node.size])
        first = np.searchsorted(node[begins], np.arange(self.size.size + 1))
        count: npt.NDArray[Any] = np.diff(np.append(begins, node.size))
        if self.weights is not None:
            count = np.add.reduceat(self.weights[donor][known][order], begins) if begins.size else np.empty(0)
        return kernels.Runs(first, values[begins], count)

    def mass_upto(self, leaves: Nodes, high: Floats) -> Floats:
        """Return the number, or weight, of each row's donors with values up to a bound."""
        distinct, keys, upto = self._running
        place, found = np.searchsorted(distinct, high, side="right"), np.zeros(high.size)
        for leaf in leaves:
            after = np.searchsorted(keys, leaf.astype(np.int64) * (distinct.size + 1) + place)
            found += upto[after] - upto[self.runs.first[leaf]]
        return found

    @property
    def distinct(self) -> Floats:
        """The distinct values of all donors, ascending."""
        return self._running[0]

    @cached_property
    def _running(self) -> tuple[Floats, Ints, Floats]:
        """The distinct values; a key of each run, by node and then by value; cumulative counts before each run."""
        distinct, rank = np.unique(self.runs.value, return_inverse=True)
        node = np.repeat(np.arange(self.runs.first.size - 1), np.diff(self.runs.first))
        upto = np.concatenate([[0.0], np.cumsum(self.runs.count)])
        return distinct, node * (distinct.size + 1) + rank.ravel(), upto

    @cached_property
    def known(self) -> npt.NDArray[Any]:
        """Number of known donors of each node, or the sum of their weights."""
        is_known = ~np.isnan(self.values)
        before = np.concatenate([[0], np.cumsum(is_known if self.weights is None else is_known * self.weights)])
        return np.asarray(before[self.start + self.size] - before[self.start])

    @cached_property
    def gaps(self) -> Floats:
        """Local spacing of each node's donors (`mcce.samplers.base`): the median gap between neighbours."""
        found = np.empty(self.size.size)
        kernels.measure_gaps(self.runs, np.empty(max(int(np.diff(self.runs.first).max()), 1)), found)
        return found

    @cached_property
    def shares_rows(self) -> bool:
        """Whether a training row may be a donor more than once, in several trees or by the bootstrap."""
        return len(self.trees) > 1 or np.unique(self.trees[0].donors).size < self.trees[0].donors.size

    @cached_property
    def _ranks(self) -> tuple[Ints, Floats, Floats]:
        """The rank of each donor's training row by value; the sorted values of the rows, and their weights, if any."""
        rows, first, row_of_donor = np.unique(
            np.concatenate([tree.donors for tree in self.trees]), return_index=True, return_inverse=True
        )
        values = self.values[first]
        order = np.argsort(values, kind="stable")
        rank = np.empty(rows.size, dtype=np.int64)
        rank[order] = np.arange(rows.size)
        weights = np.empty(0) if self.weights is None else self.weights[first][order]
        return rank[row_of_donor.ravel()], values[order], weights

    def smoothing(self, margin: MarginalDensity, donors: kernels.Runs) -> Smoothing:
        """Prepare the sums of kernels over the donors without point mass."""
        smooth = ~margin.is_atom(donors.value)
        first = np.concatenate([[0], np.cumsum(smooth)])[donors.first]
        runs = kernels.Runs(first, donors.value[smooth], donors.count[smooth])
        bandwidth, n_cells = find_bandwidths(runs, margin.bandwidth), np.zeros(self.size.size, dtype=np.int64)
        if (np.diff(runs.first) >= kernels.CELL_RUNS).any():  # trees with small leaves need neither of the kernels
            kernels.count_cells(runs, bandwidth, n_cells)
        total = int(n_cells.sum())
        cells = kernels.Cells(
            np.concatenate([[0], np.cumsum(n_cells)]), np.empty(total), np.empty((total, kernels.TERMS))
        )
        if total:
            kernels.expand_cells(runs, bandwidth, cells, *(np.empty(kernels.LANES) for _ in range(4)))
        return Smoothing(runs, bandwidth, cells)

    def own(self, training_rows: Ints | None, row_weights: Floats | None) -> kernels.Own:
        """Return the training row of each row, for kernels that leave its own donors out; None: no row is left out."""
        weight = np.empty(0) if row_weights is None else row_weights
        if training_rows is None:
            nothing = np.empty((0, 0), dtype=np.int32)
            return kernels.Own(np.empty(0, dtype=np.int64), nothing, np.empty((0, 0)), weight)
        return kernels.Own(np.ascontiguousarray(training_rows, dtype=np.int64), *self._donors_of_rows, weight)

    @cached_property
    def _donors_of_rows(self) -> tuple[Nodes, Floats]:
        """First donor of each training row in each tree (-1: none), and number of its copies; known values only."""
        n_rows = 1 + max((int(tree.donors.max()) for tree in self.trees if tree.donors.size), default=-1)
        donor = np.full((len(self.trees), n_rows), -1, dtype=np.int32)
        copies = np.zeros(donor.shape)
        begin = 0
        for t, tree in enumerate(self.trees):
            known = np.flatnonzero(~np.isnan(self.values[begin : begin + tree.donors.size]))
            rows = tree.donors[known]
            donor[t, rows[::-1]] = begin + known[::-1]  # written last, the first copy is kept
            weights = None if self.weights is None else self.weights[begin + known]
            copies[t] = np.bincount(rows, weights, minlength=n_rows)
            begin += tree.donors.size
        return donor, copies


@np.errstate(over="ignore", invalid="ignore")  # donors may be as far apart as floats
def find_bandwidths(runs: kernels.Runs, instead: float) -> Floats:
    """Return Silverman's bandwidth of each node's donors; `instead` where they do not differ."""
    begin, end = runs.first[:-1], runs.first[1:]
    found = np.full(begin.size, instead)
    node = np.repeat(np.arange(begin.size), end - begin)
    n = np.bincount(node, runs.count, begin.size)
    mean = np.bincount(node, runs.count * runs.value, begin.size) / np.maximum(n, 1.0)
    squares = np.bincount(node, runs.count * (runs.value - mean[node]) ** 2, begin.size)
    some = np.flatnonzero((end - begin >= 2) & (n > 1))  # weights may be small
    upto = runs.count.astype(np.float64)
    for k in some:
        upto[begin[k] : end[k]] = np.cumsum(upto[begin[k] : end[k]])

    def quantile(share: float) -> Floats:
        at = share * (n - 1)
        lower = np.floor(at)
        run = (begin + np.bincount(node, upto <= lower[node], begin.size).astype(np.int64))[some]
        low, follows = runs.value[run], (upto[run] <= lower[some] + 1) & (lower[some] + 1 < n[some])
        high = runs.value[run + follows]
        part = (at - lower)[some]
        return np.asarray(np.where(part < 0.5, low + (high - low) * part, high - (high - low) * (1.0 - part)))

    sd, quartile_range = np.sqrt(squares[some] / (n[some] - 1)), quantile(0.75) - quantile(0.25)
    bandwidth = np.array([silverman(*each) for each in zip(sd.tolist(), quartile_range.tolist(), n[some].tolist())])
    found[some[bandwidth > 0.0]] = bandwidth[bandwidth > 0.0]
    return found
