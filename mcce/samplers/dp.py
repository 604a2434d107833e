"""Differentially private sampling: noisy counts in the leaves of trees with random or privately chosen splits.

1. Values of the target are assigned to public bins: intervals between public bounds, or public levels; missing is one
   more bin, if it is public that values may be missing. Values without a bin are not counted.
2. Trees split the givens at public positions: the edges of their bins, or sets of public levels. Givens named by
   `first`, such as the decision, are split first. Splits are random (Jagannathan, Pillaipakkamnatt and Wright 2009) or,
   with a share of the budget (`choosing`), chosen by the exponential mechanism among `TRIED` random splits of each
   given. The score of a split is

       half the sum over sides and bins of |n(side, bin) - n(side) n(bin) / n|,  rounded down,

   the number of rows to move until side and bin are independent. One more row changes it by less than 2 before
   rounding, and so by at most 2: with the shares p of the sides and q of the bins among n rows, and the new row in side
   s, bin b, the differences n(side, bin) - n p q change by exactly n / (n + 1) (1[side = s] - p) (1[bin = b] - q),
   whose absolute values sum to 4 n / (n + 1) (1 - p(s)) (1 - q(b)). The bound is approached by a row that is alone in
   its side and bin. Candidate splits depend on public ranges and on the choices above only. A row is in one node of
   each level, so the choices of a level cost as much as one choice, and the levels share the budget for choosing. The
   depth is fixed or, if the number of rows is public or bought (`n_rows`), the greatest at which the expected number of
   rows of a leaf is `ROWS_FOR_NOISE` times the weight of the node above in step 4.
3. In each tree every training row is in one leaf and one bin. Exact noise from a cryptographic source is added to these
   counts (`mcce.privacy.noise`): one row changes one count by 1, so all counts of a tree together cost as much as one.
   Trees share the budget (`mcce.privacy.account`).
4. All further steps use the noisy counts only, at no cost. From the root down, the counts of a node are made
   non-negative with unchanged sum (Wang et al. 2020, "norm-sub") and shrunk towards the shares of the node above, which
   count as sqrt(noise variance x number of counts in the node) rows.
5. A draw uses the mean of the shares of the row's leaves: a bin, then a uniform number in it, or the level.

Trees and bins are separate from those of other samplers, because they must not depend on the data except through noise.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count, check_share, is_number
from mcce.exceptions import SamplerError, listing
from mcce.privacy.account import PrivacyAccount, rational
from mcce.privacy.noise import Mechanism, choose, source_of
from mcce.rng import RowStreams
from mcce.samplers.base import IMPOSSIBLE, BaseMeasure, ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.registry import register_sampler
from mcce.samplers.restricted import log_of
from mcce.storage.fields import BOOL, FLOAT, INT, learned, require, stored
from mcce.storage.state import stateful
from mcce.table import Column, Feature, Table
from mcce.table.grid import Grid

Self = TypeVar("Self", bound="DPSampler")

MOST_DEPTH, MOST_BINS, MOST_TREES = 12, 4096, 1000
MOST_COUNT = 2**53  # noisy counts are clipped to it
SLACK = 0.1  # relative to the width of a bin: how far outside of it a number is supported
TRIED = 8  # candidate splits of a given in a node
SENSITIVITY = 2  # of the score of a split
ROWS_FOR_NOISE = 8.0
DEPTH, DEEPEST = 3, 9  # depth without `n_rows`, and the largest depth with it


@stateful("dp.Bins")
@dataclass(frozen=True)
class PublicBins:
    """The public bins of a target: intervals between `edges`, or levels by their `codes`; the last may be missing."""

    edges: Floats = stored(FLOAT, None, rising=True)
    codes: Ints = stored(INT, None, least=0, rising=True)
    missing: bool = stored(bool)

    @property
    def is_number(self) -> bool:
        return self.edges.size > 0

    @property
    def n_known(self) -> int:
        """Number of bins of known values."""
        return self.edges.size - 1 if self.is_number else self.codes.size

    def __len__(self) -> int:
        return self.n_known + int(self.missing)

    def place(self, values: Floats) -> Ints:
        """Return the bin of each value, -1 without one; numbers outside the bounds are in the outer bins."""
        is_missing = np.isnan(values)
        known = np.where(is_missing, 0.0, values)
        if self.is_number:
            found = np.clip(np.searchsorted(self.edges, known, side="right") - 1, 0, self.n_known - 1)
        else:
            at = np.minimum(np.searchsorted(self.codes, known), self.codes.size - 1)
            found = np.where(self.codes[at] == known, at, -1)
        return np.where(is_missing, self.n_known if self.missing else -1, found)

    def even(self) -> Floats:
        """Return prior shares of the bins: proportional to their widths, with no missing values."""
        width = np.diff(self.edges) if self.is_number else np.ones(self.n_known)
        return np.append(width / width.sum(), np.zeros(int(self.missing)))


@stateful("dp.RandomTrees")
@dataclass(frozen=True)
class RandomTrees:
    """Complete binary trees: node k has the children 2k + 1 (left) and 2k + 2 (right).

    Attributes
    ----------
    column : the given that is split; -1 if no split is possible and all rows go left.
    cut : numbers above it go right.
    right : which levels go right.
    missing_right : whether a missing value goes right; a level that is not public goes left.
    is_level : whether each given has levels.
    """

    column: Ints = stored(INT, "trees", "nodes", least=-1)
    cut: Floats = stored(FLOAT, "trees", "nodes", finite=True)
    right: Bools = stored(BOOL, "trees", "nodes", "levels")
    missing_right: Bools = stored(BOOL, "trees", "nodes")
    is_level: Bools = stored(BOOL, "givens")

    def check_state(self) -> None:
        """Raise if the trees are not complete, or split columns that do not exist."""
        leaves = self.n_leaves
        require(leaves & (leaves - 1) == 0 and leaves <= 2**MOST_DEPTH, "the trees are not complete")
        require((self.column < self.is_level.size).all(), "column holds a position beyond the givens")

    @property
    def n_leaves(self) -> int:
        return int(self.column.shape[1]) + 1

    def leaves(self, given: Table) -> Ints:
        """Return the leaf of each row in each tree: (trees, rows)."""
        n_trees, rows = self.column.shape[0], np.arange(given.n_rows)
        found = np.zeros((n_trees, given.n_rows), dtype=np.int64)
        for tree in range(n_trees):
            node = found[tree]
            for _ in range(self.n_leaves.bit_length() - 1):
                node[:] = 2 * node + 1 + self._goes_right(given, rows, tree, node)
        return found - (self.n_leaves - 1)

    def _goes_right(self, given: Table, rows: Ints, tree: int, node: Ints) -> Bools:
        column = self.column[tree, node]
        if not given.features:
            return np.zeros(rows.size, dtype=bool)
        values = given.matrix[rows, np.maximum(column, 0)]
        is_missing = np.isnan(values)
        known = np.where(is_missing, 0.0, values)
        goes = known > self.cut[tree, node]
        levels = self.right.shape[2]
        if levels:
            code = np.clip(known, 0, levels - 1).astype(np.int64)
            goes = np.where(self.is_level[np.maximum(column, 0)], self.right[tree, node, code], goes)
        return np.asarray(np.where(is_missing, self.missing_right[tree, node], goes) & (column >= 0))

    def reachable(self) -> Bools:
        """Return which leaves are reachable: (trees, leaves)."""
        reached = np.zeros((self.column.shape[0], 2 * self.n_leaves - 1), dtype=bool)
        reached[:, 0] = True
        for node in range(self.n_leaves - 1):
            reached[:, 2 * node + 1] = reached[:, node]
            reached[:, 2 * node + 2] = reached[:, node] & (self.column[:, node] >= 0)
        return reached[:, self.n_leaves - 1 :]


@dataclass(frozen=True)
class Room:
    """The range of a given in a node: positions from `low` to `high` among its cuts, or the codes of levels."""

    feature: Feature
    cuts: Floats
    low: int
    high: int
    codes: Ints

    @property
    def can_split(self) -> bool:
        return self.high > self.low if self.feature.is_numeric else self.codes.size > 1

    def halve(self, rng: np.random.Generator) -> Split:
        """Return a random split near the middle."""
        if self.feature.is_numeric:
            width = self.high - self.low
            return self._cut(self.low + min(int((0.25 + 0.5 * rng.random()) * width), width - 1))
        if self.feature.kind == "ordered":
            return self._divide(np.arange(self.codes.size) >= rng.integers(1, self.codes.size))
        return self._divide(rng.permutation(self.codes.size) < self.codes.size // 2)

    def some_splits(self, rng: np.random.Generator) -> list[Split]:
        """Return at most `TRIED` random splits; for unordered levels, some of one level against the others."""
        if self.feature.is_numeric:
            places = rng.permutation(np.arange(self.low, self.high))[:TRIED]
            return [self._cut(int(place)) for place in np.sort(places)]
        n = self.codes.size
        if self.feature.kind == "ordered":
            places = rng.permutation(np.arange(1, n))[:TRIED]
            return [self._divide(np.arange(n) >= place) for place in np.sort(places)]
        if n == 2:
            return [self._divide(np.array([False, True]))]
        single = [np.arange(n) == code for code in rng.permutation(n)[: TRIED // 2]]
        halves = [rng.permutation(n) < n // 2 for _ in range(TRIED // 2)]
        return [self._divide(goes) for goes in [*single, *halves]]

    def cells(self, values: Floats) -> Ints:
        """Return the cell of each value: its position or code; the last cell is for missing values."""
        is_missing = np.isnan(values)
        known = np.where(is_missing, 0.0, values)
        cell = np.searchsorted(self.cuts, known) if self.feature.is_numeric else known.astype(np.int64)
        return np.where(is_missing, self.n_cells - 1, cell)

    @property
    def n_cells(self) -> int:
        """Number of cells, including that of missing values."""
        return (self.cuts.size + 1 if self.feature.is_numeric else self.feature.n_levels) + 1

    def _cut(self, place: int) -> Split:
        left, right = replace(self, high=place), replace(self, low=place + 1)
        return Split(left, right, float(self.cuts[place]), np.arange(self.n_cells - 1) > place)

    def _divide(self, goes: Bools) -> Split:
        left, right = replace(self, codes=self.codes[~goes]), replace(self, codes=self.codes[goes])
        goes_right = np.zeros(self.n_cells - 1, dtype=bool)
        goes_right[right.codes] = True
        return Split(left, right, 0.0, goes_right)


@dataclass(frozen=True)
class Split:
    """A split of a given: its ranges on both sides, the cut of a number, and which cells go right."""

    left: Room
    right: Room
    cut: float
    goes_right: Bools


@register_sampler("dp")
class DPSampler(ConditionalSampler):
    """Draws from noisy counts in random trees; the fit is differentially private.

    The guarantee covers only the counts of this conditional, for tables that differ by one row. A chain also stores
    ranges, levels and training values, so a `DPSampler` in a chain raises an error unless it was made by `mcce.Privacy`
    or has a `testing_seed`. Use ``sampler=mcce.Privacy(...)`` for a chain or an explainer.

    Parameters
    ----------
    epsilon, delta : float
        The budget. With delta = 0 the noise is discrete Laplace, else discrete Gaussian.
    rho : float or None
        The budget in zero-concentrated differential privacy, instead of both.
    bounds : dict
        Public bounds ``{column: (low, high)}`` of the numeric target and givens, in encoded units; values outside are
        clipped. More than two numbers are the edges of the target's bins.
    levels : dict or "schema"
        Public levels ``{column: [levels]}``; others are not counted. "schema": the declared levels are public. Not
        needed for booleans.
    missing : names or "schema"
        Targets for which it is public that values may be missing; "schema": as declared. A missing value of another
        target is not counted.
    first : names
        Givens to split first.
    n_trees : int
        Number of trees, which share the budget.
    max_depth : int or None
        Depth of the trees. None: determined by `n_rows`, else 3.
    n_bins : int
        Number of bins between two bounds.
    n_rows : int or None
        Approximate number of rows, if it is public or was bought from the same account.
    choosing : float
        Share of the budget for choosing splits; 0 for random splits, which do not depend on the data.
    random_state : int
        Seed of the random splits, which are public. It does not determine the noise.
    testing_seed : int or None
        For tests only: seed of the noise. The fit is then **not private**, and is marked so.

    Attributes
    ----------
    counts_ : noisy counts (trees, leaves, bins), the only trace of the rows
    account_ : PrivacyAccount

    Examples
    --------
    >>> import mcce
    >>> from mcce.rng import RowStreams
    >>> from mcce.table import Schema
    >>> X = mcce.datasets.load_loans(1000).X[["sex", "salary"]]
    >>> table = Schema.from_data(X).encode(X)
    >>> private = mcce.DPSampler(epsilon=1, bounds={"salary": (0, 200_000)}, levels="schema")
    >>> private.fit(table.first(1), table.column(1)).account_.table
                     what  epsilon
    0  'salary', tree 1      1.0
    >>> drawn = private.sample(table.first(1), RowStreams.from_seed(1, 1000))
    >>> bool(((drawn >= 0) & (drawn <= 200_000)).all())
    True
    """

    handles_missing = True
    thread_safe = True
    dispensable = ()
    discloses = "{counts_} {noise}"

    bins_: PublicBins = learned(PublicBins)
    trees_: RandomTrees = learned(RandomTrees)
    counts_: Ints = learned(INT, None, None, None, least=-MOST_COUNT, most=MOST_COUNT)
    variance_: float = learned(float, least=0.0)
    account_: PrivacyAccount = learned(PrivacyAccount)
    _shares: Floats | None = None

    def __init__(
        self,
        *,
        epsilon: float | Fraction = 1.0,
        delta: float | Fraction = 0.0,
        rho: float | Fraction | None = None,
        bounds: Mapping[Any, Sequence[float]] | None = None,
        levels: Mapping[Any, Sequence[Any]] | Literal["schema"] | None = None,
        missing: Collection[Any] | Literal["schema"] = (),
        first: Sequence[Any] = (),
        n_trees: int = 1,
        max_depth: int | None = None,
        n_bins: int = 16,
        n_rows: int | None = None,
        choosing: float | Fraction = 0.0,
        random_state: int = 0,
        testing_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.levels = levels
        self.missing = missing
        self.first = first
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.n_bins = n_bins
        self.n_rows = n_rows
        self.choosing = choosing
        self.random_state = random_state
        self.testing_seed = testing_seed

    def fit(self: Self, given: Table, target: Column) -> Self:
        self.check_target(target.feature)
        if target.weights is not None:
            self.check_weights(target.feature)
        n_trees = check_count(self.n_trees, "n_trees", self, most=MOST_TREES)
        check_count(self.n_bins, "n_bins", self, most=MOST_BINS)
        self._shares = None
        self.bins_ = self._public_bins(target.feature)
        account, mechanism = self._budget(n_trees)
        source = source_of(self.testing_seed, target.feature.name)
        place = self.bins_.place(target.values)
        counting, choosing, depth = self._shares_of_the_budget(mechanism, given.features)
        self.trees_ = self._grow(given, place, depth, choosing, source)
        draw, leaves = counting.noise(source), self.trees_.leaves(given)
        shape = (self.trees_.n_leaves, len(self.bins_))
        counted = place >= 0
        counts = np.zeros((n_trees, *shape), dtype=np.int64)
        for tree, reached in enumerate(self.trees_.reachable()):
            cell = leaves[tree, counted] * shape[1] + place[counted]
            exact = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
            noisy = [[n + draw() for n in row] for row in exact[reached].tolist()]
            counts[tree, reached] = np.clip(np.array(noisy, dtype=object), -MOST_COUNT, MOST_COUNT).astype(np.int64)
            cost = {"epsilon": mechanism.epsilon, "rho": mechanism.rho}
            account = account.spend(f"{target.feature.name!r}, tree {tree + 1}", **cost)
        self.counts_, self.variance_, self.account_ = counts, counting.variance, account
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        return self.sample_within(given, rng, within or Within(missing=np.ones(given.n_rows, dtype=bool))).values

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        n, bins = given.n_rows, self.bins_
        weights = self._row_shares(given)
        low = high = np.empty((n, 0))
        if bins.is_number:
            least, most = within.bounds(n)
            least, most = (np.clip(each, bins.edges[0], bins.edges[-1]) for each in (least, most))
            low = np.maximum(bins.edges[:-1], least[:, None])
            high = np.minimum(bins.edges[1:], most[:, None])
            weights[:, : bins.n_known] *= np.maximum(high - low, 0.0) / np.diff(bins.edges)
        else:
            n_levels = int(bins.codes[-1]) + 1 if within.levels is None else within.levels.shape[1]
            weights[:, : bins.n_known] *= within.level_mask(n, n_levels)[:, bins.codes]
        if bins.missing:
            weights[:, -1] *= within.allows_missing(n)
        mass = weights.sum(axis=1)
        rejected = mass <= 0.0
        weights[rejected] = 1.0
        drawn, uniform = rng.categorical(weights), rng.uniform()
        is_missing = drawn == bins.n_known
        known = np.where(is_missing, 0, drawn)
        if bins.is_number:
            rows = np.arange(n)
            low, high = low[rows, known], high[rows, known]
            values = np.clip(low + uniform * (high - low), *self._inside)
        else:
            values = bins.codes[known].astype(np.float64)
        return RestrictedDraw.of(np.where(is_missing, np.nan, values), rejected, log_of(mass))

    def supports(self, given: Table, values: Floats) -> Bools:
        shares, bins = self._row_shares(given), self.bins_
        slack: Floats | float = 0.0
        if bins.is_number:
            slack = SLACK * np.diff(bins.edges)[np.maximum(np.minimum(bins.place(values), bins.n_known - 1), 0)]
        found = np.zeros(values.size, dtype=bool)
        for shift in (-1.0, 0.0, 1.0):
            found |= self._share_of(shares, values + shift * slack) > IMPOSSIBLE
        return found

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        self.refuse_training_rows(training_rows)
        density = self._share_of(self._row_shares(given), values)
        if self.bins_.is_number:
            place = np.clip(self.bins_.place(values), 0, self.bins_.n_known - 1)
            density = np.where(np.isnan(values), density, density / np.diff(self.bins_.edges)[place])
        return log_of(density)

    def distribution(self, given: Table) -> DistributionFunctions:
        """Return the distribution of each row: over the levels, or piecewise uniform over the bins of numbers."""
        bins, shares = self.bins_, self._row_shares(given)
        if not bins.is_number:
            return DistributionFunctions.of_levels(shares, bins.codes.astype(np.float64), missing_last=bins.missing)
        missing = shares[:, -1] if bins.missing else np.zeros(given.n_rows)
        known = np.cumsum(shares[:, : bins.n_known], axis=1)
        upto = np.column_stack([np.zeros(given.n_rows), known / known[:, -1:]])
        rows, edges = np.arange(given.n_rows), bins.edges

        def below(high: Floats) -> Floats:
            place = np.clip(np.searchsorted(edges, high) - 1, 0, bins.n_known - 1)
            part = np.clip((high - edges[place]) / (edges[place + 1] - edges[place]), 0.0, 1.0)
            return np.asarray(upto[rows, place] + part * (upto[rows, place + 1] - upto[rows, place]))

        def inverse(u: Floats) -> Floats:
            place = np.clip((upto < u[:, None]).sum(axis=1) - 1, 0, bins.n_known - 1)
            low, high = upto[rows, place], upto[rows, place + 1]
            part = np.divide(u - low, high - low, out=np.zeros(u.size), where=high > low)
            return np.asarray(np.clip(edges[place] + part * (edges[place + 1] - edges[place]), *self._inside))

        return DistributionFunctions(below, inverse, missing)

    def base_measure(self) -> BaseMeasure:
        return "lebesgue" if self.bins_.is_number else "counting"

    @property
    def noise(self) -> str:
        if self.account_.for_tests:
            return "counts with noise from a testing seed, which are not private"
        delta = "" if self.account_.is_pure else f" at delta = {float(self.account_.delta):g}"
        return f"noisy counts, epsilon = {float(self.account_.epsilon_spent):.4g}{delta}"

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        super().check_state(given, target, n_rows)
        bins, trees = self.bins_, self.trees_
        require(bins.is_number == target.is_numeric, "bins_ does not match the target")
        require(bins.n_known > 0, "bins_ is empty")
        require(bins.is_number or int(bins.codes[-1]) < target.n_levels, "bins_ has a level that does not exist")
        require(trees.is_level.tolist() == [not f.is_numeric for f in given], "trees_ does not match the givens")
        most = max((f.n_levels for f in given), default=0)
        require(trees.right.shape[2] == most, "trees_ does not match the levels of the givens")
        shape = (trees.column.shape[0], trees.n_leaves, len(bins))
        require(self.counts_.shape == shape, "counts_ does not match the trees and bins")

    def _budget(self, n_trees: int) -> tuple[PrivacyAccount, Mechanism]:
        """Return a new account, and the mechanism of each tree."""
        tested = self.testing_seed is not None
        if self.rho is None:
            account = PrivacyAccount(self.epsilon, self.delta, for_tests=tested)
            return account, account.share(n_trees)
        # the account is shared: epsilon is its total, and rho the part of this sampler
        rho = rational(self.rho, "rho")
        return PrivacyAccount(self.epsilon, self.delta, for_tests=tested), Mechanism(rho=rho / n_trees)

    def _public_bins(self, feature: Feature) -> PublicBins:
        missing = feature.has_missing if isinstance(self.missing, str) else feature.name in self.missing
        if not feature.is_numeric:
            return PublicBins(np.empty(0), self._public_codes(feature), bool(missing))
        edges, none = self._public_edges(feature), np.empty(0, dtype=np.int64)
        if not _is_whole(feature):
            edges = np.linspace(edges[0], edges[1], self.n_bins + 1) if edges.size == 2 else edges
            return PublicBins(np.unique(edges), none, bool(missing))  # edges of a narrow range may coincide
        low, high = edges[0], edges[-1]
        if edges.size == 2:  # bins with about equally many whole numbers
            points = high - low + 1.0
            edges = low + np.floor(np.linspace(0.0, points, int(min(points, self.n_bins)) + 1))
        else:
            edges[-1] += 1.0
        return PublicBins(np.unique(edges - 0.5), none, bool(missing))

    def _public_edges(self, feature: Feature) -> Floats:
        given = (self.bounds or {}).get(feature.name)
        if given is None:
            raise SamplerError(
                f"DPSampler has no public bounds of {feature.name!r}, and does not read them from the data; give "
                f"bounds={{{feature.name!r}: (low, high)}}, or use mcce.Privacy."
            )
        sound = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) and len(given) > 1
        sound = sound and all(is_number(each) and np.isfinite(each) for each in given)
        edges = np.array(given, dtype=np.float64) if sound else np.empty(0)
        if _is_whole(feature):
            edges = np.floor(edges)
        if not sound or (np.diff(edges) <= 0).any() or edges.size > MOST_BINS:
            raise SamplerError(
                f"the public bounds of {feature.name!r} are {given!r}; give two or more ascending numbers."
            )
        return edges

    def _public_codes(self, feature: Feature) -> Ints:
        assert feature.levels is not None
        if isinstance(self.levels, str) or pd.api.types.is_bool_dtype(feature.dtype):
            return np.arange(feature.n_levels)
        given = (self.levels or {}).get(feature.name)
        if given is None:
            raise SamplerError(
                f"DPSampler has no public levels of {feature.name!r}, and does not read them from the data; give "
                f"levels={{{feature.name!r}: [...]}}, or use mcce.Privacy."
            )
        codes = feature.levels.astype(object).get_indexer(pd.Index(list(given), dtype=object, tupleize_cols=False))
        if (codes < 0).any() or not codes.size:
            unknown = [level for level, code in zip(given, codes) if code < 0]
            raise SamplerError(
                f"the public levels of {feature.name!r} hold {listing(unknown) or 'nothing'}, which the column does "
                "not declare; make it a pandas category of the public levels, or use mcce.Privacy."
            )
        return np.unique(codes).astype(np.int64)

    def _shares_of_the_budget(
        self, mechanism: Mechanism, givens: tuple[Feature, ...]
    ) -> tuple[Mechanism, Fraction | None, int]:
        """Return the mechanism of a tree's counts, epsilon of the choices of a level (or None), and the depth."""
        share = Fraction(repr(check_share(self.choosing, "choosing of DPSampler")))
        depth = self._depth(mechanism.part(1 - share))
        # a given named by `first` is split at the root without a choice
        forced = any(f.name in self.first and self._room(f).can_split for f in givens)
        levels = depth - int(forced)
        if not share or not givens or levels <= 0:
            return mechanism, None, depth
        return mechanism.part(1 - share), mechanism.part(share / levels).choosing, depth

    def _depth(self, counting: Mechanism) -> int:
        if self.max_depth is not None:
            return check_count(self.max_depth, "max_depth", self, least=0, most=MOST_DEPTH)
        if self.n_rows is None:
            return DEPTH
        n_rows = check_count(self.n_rows, "n_rows", self, least=0)
        leaves = n_rows / (ROWS_FOR_NOISE * max(np.sqrt(counting.variance * len(self.bins_)), 1.0))
        return int(np.clip(np.log2(max(leaves, 1.0)), 0, DEEPEST))

    def _room(self, feature: Feature) -> Room:
        """Return the public range of a given: its levels, or the edges of its bins."""
        none = np.empty(0, dtype=np.int64)
        if not feature.is_numeric:
            return Room(feature, np.empty(0), 0, 0, self._public_codes(feature))
        cuts = self._public_bins(feature).edges[1:-1]
        return Room(feature, cuts, 0, cuts.size, none)

    def _grow(
        self, given: Table, place: Ints, depth: int, epsilon: Fraction | None, source: random.Random
    ) -> RandomTrees:
        """Return trees that split the givens within their public ranges (step 2)."""
        rng = np.random.default_rng(self.fit_seed(self.random_state) % 2**64)
        givens, n_nodes, n_trees = given.features, 2**depth - 1, self.n_trees
        rooms = [self._room(f) for f in givens]
        most = max((f.n_levels for f in givens), default=0)
        column = np.full((n_trees, n_nodes), -1, dtype=np.int64)
        cut, right = np.zeros((n_trees, n_nodes)), np.zeros((n_trees, n_nodes, most), dtype=bool)
        missing_right = rng.random((n_trees, n_nodes)) < 0.5
        chosen_by = None if epsilon is None else Choosing(epsilon, source, place, len(self.bins_), given, rooms)
        for tree in range(n_trees):
            of_node = {0: rooms}
            if chosen_by is not None:
                chosen_by.begin()
            for node in range(n_nodes):
                here = of_node.pop(node)
                left, right_side = list(here), list(here)
                goes_missing = bool(missing_right[tree, node])
                early = [j for name in self.first for j, room in enumerate(here) if room.feature.name == name]
                early = [j for j in early if here[j].can_split][:1]
                open_ = early or [j for j, room in enumerate(here) if room.can_split]
                j, split = -1, None
                if open_ and (early or chosen_by is None):
                    j = int(rng.choice(open_))
                    split = here[j].halve(rng)
                elif open_ and chosen_by is not None:
                    splits = [(j, split) for j in open_ for split in here[j].some_splits(rng)]
                    j, split = splits[chosen_by.choose(node, splits, goes_missing)]
                if split is not None:
                    column[tree, node], cut[tree, node] = j, split.cut
                    left[j], right_side[j] = split.left, split.right
                    right[tree, node, split.right.codes] = True
                of_node |= {2 * node + 1: left, 2 * node + 2: right_side}
                if chosen_by is not None:
                    chosen_by.divide(node, j, split, goes_missing)
        is_level = np.array([not f.is_numeric for f in givens], dtype=bool)
        return RandomTrees(column, cut, right, missing_right, is_level)

    def _row_shares(self, given: Table) -> Floats:
        """Return the share of each bin for each row: the mean of its leaves' shares."""
        if self._shares is None:
            sizes = self.trees_.reachable()
            each = [_leaf_shares(c, s, self.variance_, self.bins_.even()) for c, s in zip(self.counts_, sizes)]
            self._shares = np.stack(each)
        leaves = self.trees_.leaves(given)
        found = self._shares[0, leaves[0]]
        for tree in range(1, leaves.shape[0]):
            found = found + self._shares[tree, leaves[tree]]
        return np.asarray(found / leaves.shape[0])

    def _share_of(self, shares: Floats, values: Floats) -> Floats:
        """Return the share of each row's value; 0 if it has no bin or is outside the bounds."""
        place = self.bins_.place(values)
        found = np.where(place >= 0, shares[np.arange(values.size), place], 0.0)
        if self.bins_.is_number:
            outside = (values < self.bins_.edges[0]) | (values > self.bins_.edges[-1])
            found = np.where(outside, 0.0, found)
        return np.asarray(found)

    @property
    def _inside(self) -> tuple[float, float]:
        """The least and greatest number strictly between the outer edges, which rounds to a value inside."""
        edges = self.bins_.edges
        return float(np.nextafter(edges[0], np.inf)), float(np.nextafter(edges[-1], -np.inf))


def _is_whole(feature: Feature) -> bool:
    """Return whether the dtype holds whole numbers or dates only; decimals read from values are ignored."""
    return Grid.of_dtype(feature.dtype, None, feature.origin, feature.unit).decimals == 0


class Choosing:
    """Choices of splits by the exponential mechanism, node by node."""

    def __init__(
        self, epsilon: Fraction, source: random.Random, place: Ints, n_bins: int, given: Table, rooms: Sequence[Room]
    ) -> None:
        self.epsilon, self.source, self.n_bins = epsilon, source, n_bins
        counted = place >= 0
        self.place = place[counted]
        self.cells = [room.cells(given.matrix[counted, j]) for j, room in enumerate(rooms)]
        self.rows: dict[int, Ints] = {}

    def begin(self) -> None:
        """Assign all rows to the root of a tree."""
        self.rows = {0: np.arange(self.place.size)}

    def choose(self, node: int, splits: Sequence[tuple[int, Split]], missing_right: bool) -> int:
        if len(splits) == 1:
            return 0
        rows, scores = self.rows[node], []
        for j, some in groupby(splits, key=lambda each: each[0]):
            goes = np.array([np.append(split.goes_right, missing_right) for _, split in some])
            cell = self.cells[j][rows] * self.n_bins + self.place[rows]
            counts = np.bincount(cell, minlength=goes.shape[1] * self.n_bins).reshape(-1, self.n_bins)
            scores += split_scores(goes.astype(np.int64) @ counts, counts.sum(axis=0)).tolist()
        return choose(scores, self.epsilon, SENSITIVITY, self.source)

    def divide(self, node: int, j: int, split: Split | None, missing_right: bool) -> None:
        """Assign the rows of a node to its children; to the left one if there is no split."""
        rows = self.rows.pop(node)
        goes = np.zeros(rows.size, dtype=bool)
        if split is not None:
            goes = np.append(split.goes_right, missing_right)[self.cells[j][rows]]
        self.rows |= {2 * node + 1: rows[~goes], 2 * node + 2: rows[goes]}


def split_scores(right: Ints, total: Ints) -> Ints:
    """Return the scores of splits from the counts by bin of the right side (splits, bins), and of both sides."""
    n = int(total.sum())
    if n == 0:
        return np.zeros(right.shape[0], dtype=np.int64)
    # |n(side, bin) - n(side) n(bin) / n| is the same on both sides; multiplied by n, it is an integer
    away = np.abs(n * right - right.sum(axis=1, keepdims=True) * total)
    return np.asarray(away.sum(axis=1) // n)


def _leaf_shares(counts: Ints, reachable: Bools, variance: float, even: Floats) -> Floats:
    """Return the shares of the bins in each leaf, from the root down (step 4)."""
    n_leaves, n_bins = counts.shape
    above = even[None, :]
    for level in range(n_leaves.bit_length()):
        of_nodes = counts.reshape(2**level, -1, n_bins).sum(axis=1).astype(np.float64)
        noisy = reachable.reshape(2**level, -1).sum(axis=1) * n_bins
        pull = np.sqrt(variance * noisy)
        parents = above if level == 0 else np.repeat(above, 2, axis=0)
        rows = np.stack([_not_negative(each) for each in of_nodes])
        total = rows.sum(axis=1) + pull
        mixed = (rows + pull[:, None] * parents) / np.where(total > 0.0, total, 1.0)[:, None]
        above = np.where(total[:, None] > 0.0, mixed, parents)
    return above


def _not_negative(counts: Floats) -> Floats:
    """Return the nearest non-negative counts with the same sum; zeros if the sum is not positive."""
    total = counts.sum()
    if total <= 0.0:
        return np.zeros(counts.size)
    ordered = np.sort(counts)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, counts.size + 1)
    last = np.flatnonzero(ordered > excess)[-1]
    return np.asarray(np.maximum(counts - excess[last], 0.0))
