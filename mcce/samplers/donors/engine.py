"""Donors in the leaves of trees: routing, drawing, supports and densities, for one tree and for many alike.

1. `DonorForest` puts the nodes and the donors of its trees one after the other; a tree is a forest of one. A row's
   donors are those of the leaves it reaches.
2. A draw is one of these donors, uniformly; a restricted draw one of those allowed.
3. What supports and densities read is prepared once, when it is first asked for, because most chains only draw: the
   *runs* of each leaf (its distinct donors, ascending, with their counts), its median gap, its bandwidth, and Taylor
   polynomials of its sum of kernels.
4. `DonorModel` joins the donors of the target with what decides on missing values and with the target's margin.

Memory is proportional to rows plus donors, never to their product: `mcce.samplers.donors.kernels` has the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mcce.arrays import Bools, Floats, Ints
from mcce.rng import RowStreams
from mcce.samplers.base import RestrictedDraw, Within
from mcce.samplers.donors import kernels
from mcce.samplers.donors.density import PSEUDO_DONORS, MarginalDensity
from mcce.samplers.within import log_of
from mcce.state import stateful
from mcce.table import Table
from mcce.trees.tree import Tree

Nodes = npt.NDArray[np.int32]

FEW = 4  # a table with a fourth as many rows as there are nodes, or fewer, has only the nodes it meets prepared


@dataclass(frozen=True)
class Smoothing:
    """What sums of normal kernels are read from: runs without point mass, bandwidths of the nodes, cells."""

    runs: kernels.Runs
    bandwidth: Floats
    cells: kernels.Cells


@dataclass(frozen=True)
class DonorForest:
    """Trees, and a value of each of their donors.

    Attributes
    ----------
    trees : one or more.
    values : of the donors, tree after tree, in the order of each tree's `donors`: the order in which they are drawn.
    first_node : the number of each tree's root when the nodes of all are counted on.
    start, size : the donors of node k are values[start[k] : start[k] + size[k]].
    """

    trees: tuple[Tree, ...]
    values: Floats
    first_node: Nodes
    start: Nodes
    size: Nodes

    @classmethod
    def of(cls, trees: Sequence[Tree], values: Sequence[Floats]) -> DonorForest:
        """Join trees and the values of their donors (step 1)."""
        if len(trees) == 1:
            zero = np.zeros(1, dtype=np.int32)
            return cls(tuple(trees), np.ascontiguousarray(values[0]), zero, trees[0].start, trees[0].size)
        first_node = np.cumsum([0, *(tree.n_nodes for tree in trees[:-1])]).astype(np.int32)
        first_donor = np.cumsum([0, *(tree.donors.size for tree in trees[:-1])]).astype(np.int32)
        start = np.concatenate([tree.start + first for tree, first in zip(trees, first_donor)])
        size = np.concatenate([tree.size for tree in trees])
        return cls(tuple(trees), np.concatenate(values), first_node, start.astype(np.int32), size)

    def with_values(self, values: Floats) -> DonorForest:
        """Return the same trees with other values of the donors."""
        return DonorForest(self.trees, values, self.first_node, self.start, self.size)

    @property
    def values_by_tree(self) -> list[Floats]:
        """The donors' values, one array a tree."""
        ends = np.cumsum([tree.donors.size for tree in self.trees])
        return np.split(self.values, ends[:-1])

    def route(self, given: Table) -> Nodes:
        """Return the leaf of each row in every tree, (trees, rows)."""
        if len(self.trees) == 1:
            return self.trees[0].route(given.matrix, complete=given.complete)[None]
        leaves = np.empty((len(self.trees), given.n_rows), dtype=np.int32)
        for t, tree in enumerate(self.trees):
            leaves[t] = tree.route(given.matrix, complete=given.complete) + self.first_node[t]
        return leaves

    def draw(self, leaves: Nodes, rng: RowStreams) -> Floats:
        """Draw a donor of each row's leaves (step 2)."""
        out = np.empty(leaves.shape[1])
        of_leaves = (leaves, self.start, self.size, self.values)
        kernels.pick_donor(rng.next_key(), rng.draws, rng.rows, *of_leaves, out)
        return out

    def draw_within(self, leaves: Nodes, rng: RowStreams, within: Within) -> tuple[Floats, Ints]:
        """Draw one of each row's allowed donors (step 2), NaN where there are none; return their number."""
        n = leaves.shape[1]
        out, n_allowed = np.empty(n), np.empty(n, dtype=np.int64)
        levels = np.empty((n, 0), dtype=bool) if within.levels is None else np.ascontiguousarray(within.levels)
        of_leaves = (leaves, self.start, self.size, self.values)
        allowed = (*within.bounds(n), levels)
        kernels.pick_allowed_donor(rng.next_key(), rng.draws, rng.rows, *of_leaves, *allowed, out, n_allowed)
        return out, n_allowed

    def distinct_allowed(self, leaves: Nodes, within: Within) -> Ints:
        """Return how many distinct training rows are among the allowed donors of each row's pool."""
        row_of_donor = np.concatenate([tree.donors for tree in self.trees])
        counts = np.empty(leaves.shape[1], dtype=np.int64)
        for i in range(counts.size):
            pool = np.concatenate([np.arange(self.start[k], self.start[k] + self.size[k]) for k in leaves[:, i]])
            allowed = within.take(np.full(pool.size, i)).allows(self.values[pool])
            counts[i] = np.unique(row_of_donor[pool[allowed & ~np.isnan(self.values[pool])]]).size
        return counts

    def mean(self, leaves: Nodes) -> Floats:
        """Return the mean of the donors in each row's leaves."""
        pooled = self.sums[leaves].sum(axis=0) / self.size[leaves].sum(axis=0)
        return np.asarray(pooled, dtype=np.float64)

    def supports(self, leaves: Nodes, values: Floats, *, is_number: bool) -> Bools:
        """Return whether a donor has the value or, for a number, one close to it (`mcce.samplers.support`)."""
        supported = np.empty(values.size, dtype=bool)
        values = np.ascontiguousarray(values)
        if is_number and self.shares_rows:
            rank, ranked = self._ranks
            most = int(sum(tree.size[tree.stops].max() for tree in self.trees))
            spare, gaps = np.empty(most, dtype=np.int64), np.empty(most)
            of_leaves = (leaves, np.lexsort(leaves), self.start, self.size)
            kernels.find_pooled_support(*of_leaves, rank, ranked, values, spare, gaps, supported)
            return supported
        gaps = self.gaps if is_number else np.zeros(self.size.size)
        kernels.find_support(leaves, values, self.runs, gaps, supported)
        return supported

    @cached_property
    def sums(self) -> Floats:
        """Sum of the donors' values of each node."""
        before = np.concatenate([[0.0], np.cumsum(self.values)])
        return np.asarray(before[self.start + self.size] - before[self.start])

    @cached_property
    def runs(self) -> kernels.Runs:
        """The distinct donors of each node at which rows may stop, and their counts (step 3)."""
        return self.runs_of(np.flatnonzero(np.concatenate([tree.stops for tree in self.trees])))

    def runs_of(self, nodes: Ints) -> kernels.Runs:
        """Return the distinct donors of some nodes, in order; other nodes have none."""
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
        return kernels.Runs(first, values[begins], np.diff(np.append(begins, node.size)))

    @cached_property
    def known(self) -> Ints:
        """Number of donors of each node that are not missing."""
        before = np.concatenate([[0], np.cumsum(~np.isnan(self.values))])
        return np.asarray(before[self.start + self.size] - before[self.start], dtype=np.int64)

    @cached_property
    def gaps(self) -> Floats:
        """Local spacing of each node's donors (`mcce.samplers.support`): the median gap between neighbours."""
        found = np.empty(self.size.size)
        kernels.measure_gaps(self.runs, np.empty(max(int(np.diff(self.runs.first).max()), 1)), found)
        return found

    @cached_property
    def shares_rows(self) -> bool:
        """Whether a training row may be a donor more than once: in several trees, or several times in a bootstrap."""
        return len(self.trees) > 1 or np.unique(self.trees[0].donors).size < self.trees[0].donors.size

    @cached_property
    def _ranks(self) -> tuple[Ints, Floats]:
        """The place of each donor's training row among the training rows in the order of their values; these values."""
        rows, first, row_of_donor = np.unique(
            np.concatenate([tree.donors for tree in self.trees]), return_index=True, return_inverse=True
        )
        values = self.values[first]
        order = np.argsort(values, kind="stable")
        rank = np.empty(rows.size, dtype=np.int64)
        rank[order] = np.arange(rows.size)
        return rank[row_of_donor.ravel()], values[order]

    def smoothing(self, margin: MarginalDensity, donors: kernels.Runs) -> Smoothing:
        """Prepare the sums of kernels over the donors that have no point mass in the margin (step 3)."""
        smooth = ~margin.is_atom(donors.value)
        first = np.concatenate([[0], np.cumsum(smooth)])[donors.first]
        runs = kernels.Runs(first, donors.value[smooth], donors.count[smooth])
        bandwidth, n_cells = np.empty(self.size.size), np.empty(self.size.size, dtype=np.int64)
        kernels.find_bandwidths(runs, margin.bandwidth, bandwidth)
        kernels.count_cells(runs, bandwidth, n_cells)
        total = int(n_cells.sum())
        cells = kernels.Cells(
            np.concatenate([[0], np.cumsum(n_cells)]), np.empty(total), np.empty((total, kernels.TERMS))
        )
        kernels.expand_cells(runs, bandwidth, cells, *(np.empty(kernels.LANES) for _ in range(4)))
        return Smoothing(runs, bandwidth, cells)

    def own(self, training_rows: Ints | None) -> kernels.Own:
        """Say which training row each row is, for kernels that leave its own donors out; None: it is none."""
        if training_rows is None:
            nothing = np.empty((0, 0), dtype=np.int32)
            return kernels.Own(np.empty(0, dtype=np.int64), nothing, nothing)
        return kernels.Own(np.ascontiguousarray(training_rows, dtype=np.int64), *self._donors_of_rows)

    @cached_property
    def _donors_of_rows(self) -> tuple[Nodes, Nodes]:
        """Where each training row first is a donor of each tree (-1: nowhere), and how often; missing ones left out."""
        n_rows = 1 + max((int(tree.donors.max()) for tree in self.trees if tree.donors.size), default=-1)
        donor = np.full((len(self.trees), n_rows), -1, dtype=np.int32)
        copies = np.zeros(donor.shape, dtype=np.int32)
        begin = 0
        for t, tree in enumerate(self.trees):
            known = np.flatnonzero(~np.isnan(self.values[begin : begin + tree.donors.size]))
            rows = tree.donors[known]
            donor[t, rows[::-1]] = begin + known[::-1]  # the first of several copies is written last
            copies[t] = np.bincount(rows, minlength=n_rows)
            begin += tree.donors.size
        return donor, copies


@stateful("donors.DonorModel")
@dataclass(frozen=True)
class DonorModel:
    """The donors of a target (step 4).

    Attributes
    ----------
    forest : the target's values among the training rows; NaN for a missing one, if no other forest decides on those.
    decider : a forest that decides whether a draw is missing: 1 for a missing donor, 0 for another. None: not needed.
    margin : the target's training distribution.
    is_number : whether the target is a number, which may lie between donors.
    min_donors : the fewest donors that a restricted draw may choose among.
    """

    forest: DonorForest
    decider: DonorForest | None
    margin: MarginalDensity
    is_number: bool
    min_donors: int = 1

    def draw(self, given: Table, rng: RowStreams) -> Floats:
        """Draw a value for each row, missing as the decider says."""
        drawn = self.forest.draw(self.forest.route(given), rng)
        if self.decider is not None:
            drawn[self.decider.draw(self.decider.route(given), rng) > 0] = np.nan
        return drawn

    def draw_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw an allowed value for each row, or a missing one by its probability."""
        leaves = self.forest.route(given)
        drawn, n_allowed = self.forest.draw_within(leaves, rng, within)
        if self.min_donors > 1:
            distinct = self.forest.distinct_allowed(leaves, within) if self.forest.shares_rows else n_allowed
            n_allowed = np.where(distinct < self.min_donors, 0, n_allowed)
            drawn = np.where(n_allowed == 0, np.nan, drawn)
        share = n_allowed / np.maximum(self.forest.known[leaves].sum(axis=0), 1)
        if self.flags is None:
            return RestrictedDraw.of(drawn, np.isnan(drawn), log_of(share))
        missing_share = self.flags.mean(self._decide(given, leaves))
        share = (1.0 - missing_share) * share
        found = RestrictedDraw.of(drawn, np.isnan(drawn) | (missing_share == 1.0), log_of(share))
        if within.missing is None:
            return found
        return found.or_missing(share, missing_share * within.allows_missing(given.n_rows), rng.uniform())

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether the donors of each row support its value, a missing one too."""
        leaves = self.forest.route(given)
        supported = self.forest.supports(leaves, values, is_number=self.is_number)
        if self.flags is None:
            return supported
        share = self.flags.mean(self._decide(given, leaves))
        return np.where(np.isnan(values), share > 0.0, supported & (share < 1.0))

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None) -> Floats:
        """Return the smoothed log density of each value, see `mcce.samplers.donors.density`."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        forest = self.forest
        leaves = forest.route(given)
        if values.size * FEW < forest.size.size and "smoothing" not in vars(self):  # not worth preparing all nodes
            runs = forest.runs_of(np.unique(leaves).astype(np.int64))
            smoothing = forest.smoothing(self.margin, runs)
        else:
            runs, smoothing = forest.runs, self.smoothing
        out = np.empty(values.size)
        kernels.log_densities(
            *(leaves, forest.start, forest.size, forest.values, forest.known, runs),
            *(smoothing.runs, smoothing.bandwidth, smoothing.cells, self.margin.as_kernels_take_it),
            *(forest.own(training_rows), PSEUDO_DONORS, values, out),
        )
        if self.flags is not None:
            flags = self.flags
            kernels.log_missing(
                *(self._decide(given, leaves), flags.start, flags.size, flags.values, flags.sums),
                *(flags.own(training_rows), PSEUDO_DONORS, self.margin.missing_share, values, out),
            )
        return out

    @cached_property
    def smoothing(self) -> Smoothing:
        """What sums of kernels are read from."""
        return self.forest.smoothing(self.margin, self.forest.runs)

    @cached_property
    def flags(self) -> DonorForest | None:
        """The donors' missing values as 1, the others as 0; None if the target had no missing values."""
        if self.margin.missing_share == 0.0:
            return None
        return self.decider or self.forest.with_values(np.isnan(self.forest.values).astype(np.float64))

    def _decide(self, given: Table, leaves: Nodes) -> Nodes:
        """Return the leaves in the trees that decide on missing values; `leaves` are those of the target's trees."""
        return leaves if self.decider is None else self.decider.route(given)
