"""The plausibility of a row: every cell given all others, the row as a whole, and its nearness to real rows.

The paper's criterion 1 requires p(mutable | fixed) to be above some epsilon. Here the score is the minimum of several
parts, so that a likely cell cannot compensate for an unlikely one:

1. Folds. The fold of a row is a hash of its cells. A training row or a new factual is scored by parts that were fitted
   without rows of its fold; candidates are scored in the fold of their factual. Of equal training rows, the first is in
   the hashed fold and the others are in any fold: one of them is held out, not all.
2. Trees. For each mutable column and fold, a tree splits the rows of the other folds where the distribution of the
   column changes: its values are grouped into classes, and a node is split by the other column with the largest
   chi-square statistic, if it is significant (level 0.05 over all splits of a node, Bonferroni). The trees thus detect
   changes of spread and of modes as well as of means. In wide tables, a tree uses only the 40 columns that are most
   associated with its column, by the chi-square statistic of their classes in at most 1,000 rows. The conditional
   density in a leaf is given by the counts of the bins of the column, smoothed over neighbouring bins, plus a third of
   a row distributed like the marginal: per bin for levels, missing values and numbers that many rows share; per unit
   for other numbers.
3. Cells. The share of a cell is the share of real cells of its column, each scored out of fold, with a log density as
   low or lower. The first part is the smallest share of a cell. The second is the distance of a row from the ranges of
   the rows outside its fold.
4. The row as a whole. Three scores detect cells that are likely one by one, but not jointly: the sum of the log shares
   of the cells, the largest conditional residual of a number, and the Mahalanobis distance
   (`mcce.plausibility.linear`). Each becomes a share of real rows; the sum of the logarithms of the three is the third
   part (Fisher's combination).
5. Nearness. The mean distance (Gower's sum) to the five nearest of some rows outside the fold. It detects holes that no
   single cell shows.
6. Every part is converted to the share of real rows that are as low or lower, and the score of the row is the minimum
   of these; the share of nearness is doubled before, so that the others decide first.
7. A candidate is scored for its changes. A cell that it keeps does not count if it is no less likely than in the
   factual, nor do the row as a whole and nearness if they are no worse than the factual's. The counterfactual of an
   unusual factual may therefore be as unusual as the factual.
8. Calibration. The plausibility of a row is the share of training rows, scored out of fold, that have a score as low or
   lower: at `floor=0.05` one real row in twenty is rejected, or fewer where many have equal scores.

Weights of training rows count as copies; copies of a row are neighbours of each other.

The mixture of `mcce.samplers.mixture` in place of the Mahalanobis distance would detect more non-linear dependence, but
explaining would take ten times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy

from mcce.base.arrays import Bools, Floats, Int32s, Ints, UInts
from mcce.base.threads import count_jobs, run_in_threads
from mcce.distances.measures import gower, rowwise
from mcce.generators.sampling import occurrences
from mcce.plausibility.kernels import (
    CellBins,
    CellTrees,
    GrowingNodes,
    GrowingRoom,
    KnownCells,
    KnownDistances,
    KnownNormalScores,
    MadeRows,
    OwnCells,
    associate,
    find_leaves,
    grow_cells,
    mean_of_nearest,
    move_origins,
    score_cells,
)
from mcce.plausibility.linear import Linear, folds_of
from mcce.rng import hash_rows
from mcce.samplers.density import DRAWN_AS_IT_IS, find_point_masses, silverman
from mcce.storage.fields import BOOL, FLOAT, INT32, UINT8, check_between, require, stored
from mcce.storage.state import stateful
from mcce.table import Feature
from mcce.table.weights import copies_at, deviation_of, sorted_with_weights

Bytes = npt.NDArray[np.uint8]

BINS = 128
MOST_ROWS = 10_000  # training rows of the trees of a fold
MOST_NEAR = 3_000  # rows among which the nearest are searched
MOST_CALIBRATING = 5_000  # rows for the calibration of nearness and of the row as a whole
NEAREST = 5
CLASSES = 12  # classes of the values of a column
MOST_TRIED = 40  # columns by which a tree may split
MOST_ASSOCIATED = 1_000  # rows by which they are chosen
FEWEST = 20.0  # fewest rows of a leaf
DEPTH = 12
LEVEL = 0.05  # level of all splits of a node together
PSEUDO_ROWS = 0.3  # rows added to a leaf; with more, values that its rows do not have would become likely
NEARNESS_COUNTS = 2.0
FARTHEST = 1e6  # upper limit of distances
MOST_KEPT, MOST_KEPT_CELLS = 1_024, 2**28  # factuals with cached results, and pairs of a column and a tree of these


@stateful("plausibility.Binning")
@dataclass(frozen=True)
class Binning:
    """The values at which the bins of each column end; bin b > 0 holds values above edge b - 2, up to edge b - 1.

    A bin fits in a byte, which makes reading a cell cheap; the other binnings need exact values.
    """

    edges: tuple[Floats, ...] = stored(tuple, of=stored(FLOAT, None, rising=True))

    def encode(self, matrix: Floats) -> Bytes:
        """Return the bins of encoded rows, column by column."""
        out = np.empty((len(self.edges), matrix.shape[0]), dtype=np.uint8)
        for j, edges in enumerate(self.edges):
            below = np.searchsorted(edges, matrix[:, j])
            out[j] = np.where(np.isnan(matrix[:, j]), 0, np.minimum(below + 1, BINS - 1))
        return out

    @cached_property
    def joined(self) -> tuple[Floats, Ints]:
        """The edges of all columns one after the other, and where each column begins."""
        return np.concatenate([*self.edges, np.empty(0)]), np.cumsum([0, *(edges.size for edges in self.edges)])


@stateful("plausibility.Scale")
@dataclass(frozen=True)
class Scale:
    """Sorted scores of real rows, which convert other scores to shares; `upto` has cumulative weights."""

    values: Floats = stored(FLOAT, "rows", rising="weakly")
    upto: Floats | None = stored(FLOAT, "rows", above=0.0, rising=True, optional=True, default=None)

    @classmethod
    def of(cls, scores: Floats, weights: Floats | None) -> Scale:
        """Sort the scores of real rows."""
        ordered, of_ordered = sorted_with_weights(scores, weights)
        return cls(ordered, None if of_ordered is None else np.cumsum(of_ordered))

    def share(self, scores: Floats) -> Floats:
        """Return the share of real rows with a score as low or lower, the row itself included."""
        below = np.searchsorted(self.values, scores, side="right")
        if self.upto is not None:
            below = np.append(0.0, self.upto)[below]
        return np.asarray((1.0 + below) / (self.total + 1.0), dtype=np.float64)

    def share_of_others(self, scores: Floats, weights: Floats | None) -> Floats:
        """Return the share of each real row among the others, as for a new row."""
        own = 1.0 if weights is None else weights
        return np.asarray((self.share(scores) * (self.total + 1.0) - own) / (self.total + 1.0 - own))

    def lowest(self, shares: npt.ArrayLike) -> Floats:
        """Return the lowest scores whose shares are at least some shares; -inf if all are, inf if none is."""
        scores, of_scores = self._shares
        return np.asarray(scores[np.searchsorted(of_scores, shares)])

    @cached_property
    def _shares(self) -> tuple[Floats, Floats]:
        """-inf, the scores of the real rows and inf, and the shares of all but the last."""
        scores = np.append(-np.inf, self.values)
        return np.append(scores, np.inf), self.share(scores)

    @property
    def middle(self) -> float:
        """The median of the scores."""
        place = self.values.size // 2
        if self.upto is not None:
            place = int(np.searchsorted(self.upto, self.upto[-1] / 2, "right"))
        return float(self.values[min(place, self.values.size - 1)])

    @property
    def total(self) -> float:
        """Number of real rows, or the sum of their weights."""
        return self.values.size if self.upto is None else float(self.upto[-1])


@stateful("plausibility.Conditionals")
@dataclass(frozen=True)
class Conditionals:
    """The trees of one fold, one for each target column, their nodes one after the other.

    Attributes
    ----------
    targets, roots : the columns, and the roots of their trees.
    column, cut, single, left : by node (`mcce.plausibility.kernels`); `left` of a leaf is its row in `share`.
    share : by leaf and bin of the target, the share of real cells that are at most as likely.
    """

    targets: Int32s = stored(INT32, "targets")
    roots: Int32s = stored(INT32, "targets", index_of="nodes")
    column: Int32s = stored(INT32, "nodes", filled=True)
    cut: Bytes = stored(UINT8, "nodes", most=BINS - 1)
    single: Bools = stored(BOOL, "nodes")
    left: Int32s = stored(INT32, "nodes")
    share: Floats = stored(FLOAT, "leaves", BINS, finite=True)

    def check_state(self) -> None:
        """Raise if a node has invalid children."""
        n = self.column.size
        leaf = self.column < 0
        check_between(self.left[leaf], "left", 0, self.share.shape[0] - 1)
        inner = np.flatnonzero(~leaf)
        require(
            bool((self.left[inner] > inner).all() and (self.left[inner] < n - 1).all()), "left has an invalid child"
        )

    def shares(self, bins: Bytes) -> Floats:
        """Return the share of each target cell of rows, given by their bins, column by column."""
        share = np.empty((bins.shape[1], self.targets.size))
        for a, (target, root) in enumerate(zip(self.targets, self.roots)):
            leaf = np.full(bins.shape[1], root, dtype=np.int64)
            find_leaves(bins, self.column, self.cut, self.single, self.left, leaf)
            share[:, a] = self.share[self.left[leaf], bins[target]]
        return share


@stateful("plausibility.Joint")
@dataclass(frozen=True)
class Joint:
    """Scales of the three scores of a row as a whole, and of the sum of their log shares (step 4)."""

    sums: Scale = stored(Scale)
    residuals: Scale = stored(Scale)
    squares: Scale = stored(Scale)
    together: Scale = stored(Scale)

    @classmethod
    def of(cls, sums: Floats, residual: Floats, square: Floats, weights: Floats | None) -> tuple[Joint, Floats]:
        """Sort the scores of real rows; return the share of each among the others as well."""
        scores = sums, -residual, -square
        by_sum, by_residual, by_square = (Scale.of(each, weights) for each in scores)
        scales = by_sum, by_residual, by_square
        raw = _sum_of_logs([scale.share_of_others(each, weights) for scale, each in zip(scales, scores)])
        together = Scale.of(raw, weights)
        return cls(by_sum, by_residual, by_square, together), together.share_of_others(raw, weights)

    def raw(self, sums: Floats, residual: Floats, square: Floats) -> Floats:
        """Return the sum of the log shares of rows."""
        return _sum_of_logs([self.sums.share(sums), self.residuals.share(-residual), self.squares.share(-square)])


def _sum_of_logs(shares: Sequence[Floats]) -> Floats:
    return np.asarray(np.log(shares).sum(axis=0).round(9))


@dataclass(frozen=True, eq=False)
class Own:
    """The factuals of rows and their plausibility: parts no worse than the factual's do not count (step 7).

    Attributes
    ----------
    rows : encoded factuals.
    share : by factual and tree.
    joint, distance : by factual, the raw joint score and the distance to the nearest rows.
    """

    rows: Floats
    share: Floats
    joint: Floats
    distance: Floats

    def take(self, which: Ints | slice) -> Own:
        """Return the factuals at `which`."""
        return Own(self.rows[which], self.share[which], self.joint[which], self.distance[which])


@dataclass(frozen=True, eq=False)
class Origins:
    """The rows from which others were made by changing a few cells, with cached results.

    Attributes
    ----------
    rows : the origins.
    places : the position of the origin of each row.
    of : the position of the factual of each origin.
    own : the factuals.
    cells, near, scores : cached cells, distances and normal scores of some origins.
    """

    rows: Floats
    places: Ints
    of: Ints
    own: Own
    cells: KnownCells
    near: KnownDistances
    scores: KnownNormalScores

    def __getitem__(self, which: Ints) -> Origins:
        """Return the origins of some of the rows, with the cached results."""
        return replace(self, places=self.places[which])

    @property
    def factual(self) -> Ints:
        """The position of the factual of each row."""
        return self.of[self.places]


@stateful("plausibility.Plausibility")
@dataclass(frozen=True)
class Plausibility:
    """Conditionals and neighbours of real rows by fold, and the scales that convert scores to shares.

    Attributes
    ----------
    binning : the bins of all columns.
    low, high : the range of the rows outside a fold, by fold and column; levels and columns without a value have none.
    conditionals : the trees by fold.
    neighbours : by fold, encoded rows among which the nearest are searched, column by column.
    scale : factor of a step in each column; 0 where any change is a whole step.
    linear : normal scores, and their precision by fold.
    cells, outside, joint, nearness : scales of the least cell, of the distance from the ranges, of the row as a whole,
        and of the distance to the nearest rows.
    calibration : the scale of the least of these shares.
    """

    binning: Binning = stored(Binning)
    low: Floats = stored(FLOAT, "folds", "columns")
    high: Floats = stored(FLOAT, "folds", "columns")
    conditionals: tuple[Conditionals, ...] = stored(tuple, "folds", of=Conditionals, filled=True)
    neighbours: tuple[Floats, ...] = stored(tuple, "folds", of=stored(FLOAT, "columns", None))
    scale: Floats = stored(FLOAT, "columns")
    linear: Linear = stored(Linear)
    cells: Scale = stored(Scale)
    outside: Scale = stored(Scale)
    joint: Joint = stored(Joint)
    nearness: Scale = stored(Scale)
    calibration: Scale = stored(Scale)

    def check_state(self) -> None:
        """Raise if the parts have different numbers of columns."""
        p = self.scale.size
        require(len(self.binning.edges) == p, "binning has another number of columns than scale")
        for fold in self.conditionals:
            check_between(fold.column, "column", -1, p - 1)
            check_between(fold.targets, "targets", 0, p - 1)

    def check_columns(self, n_columns: int) -> None:
        """Raise if the number of columns differs from that of the table."""
        require(len(self.binning.edges) == n_columns, "plausibility has another number of columns than the table")

    @classmethod
    def fit(
        cls,
        matrix: Floats,
        features: Sequence[Feature],
        mutable: Ints,
        n_jobs: int | None = None,
        progress: bool | None = None,
        weights: Floats | None = None,
    ) -> Plausibility:
        """Fit all parts to encoded training rows, with their weights if given."""
        n = matrix.shape[0]
        keys, n_folds = _row_keys(matrix), _count_folds(n)
        fold, row_fold = _fold(keys, n_folds), _fold(hash_rows(matrix), n_folds)
        others = [np.flatnonzero(fold != k) for k in range(n_folds)]
        binning = Binning(tuple(_edges(matrix[:, j], feature) for j, feature in enumerate(features)))
        bins = binning.encode(matrix)
        columns = [_Target.of(matrix[:, j], bins[j], features[j], binning.edges[j], weights) for j in mutable]
        ordered = np.array([f.is_numeric or f.kind == "ordered" for f in features])
        counts = np.ones(n) if weights is None else weights

        classes = np.stack(
            [_classes(np.bincount(b, weights, BINS).astype(np.float64), f) for b, f in zip(bins, features)]
        )

        def grow(k: int) -> tuple[list[_Grown], Floats]:
            learned, in_fold = _choose_rows(others[k], keys, MOST_ROWS), np.flatnonzero(row_fold == k)
            return _grow_fold(bins, classes, columns, mutable, ordered, counts, learned, in_fold)

        found = list(run_in_threads(grow, range(n_folds), count_jobs(n_jobs), "plausibility", progress))
        density = np.empty((mutable.size, n))
        for k, (_, of_meeting) in enumerate(found):
            density[:, row_fold == k] = of_meeting
        scales = [Scale.of(density[a], weights) for a in range(mutable.size)]
        conditionals = tuple(_join(grown, mutable, scales) for grown, _ in found)
        near = tuple(np.ascontiguousarray(matrix[_neighbours(rows, keys, weights)].T) for rows in others)
        low, high = np.stack([_ranges(matrix[rows], features) for rows in others], axis=1)
        shares = [scales[a].share_of_others(density[a], weights) for a in range(mutable.size)]
        least = np.min([np.ones(n), *shares], axis=0)
        far = _outside(matrix, low[row_fold], high[row_fold])
        scale = gower(features).scale
        some = _choose_rows(np.arange(n), keys, MOST_CALIBRATING)
        of_some = None if weights is None else weights[some]
        rows = np.ascontiguousarray(matrix[some])
        distance = _distances(MadeRows(rows, np.arange(some.size), rows), row_fold[some], near, scale)
        logs = np.log(np.maximum(shares, 1.0 / (n + 1.0))).sum(axis=0)[some] if shares else np.zeros(some.size)
        learned = [_neighbours(each, keys, weights, MOST_ROWS) for each in others]
        linear = Linear.fit(matrix, features, learned, _neighbours(np.arange(n), keys, weights, MOST_ROWS))
        made = MadeRows(rows, np.arange(some.size), rows)
        joint, of_joint = Joint.of(logs.round(9), *linear.parts(made, row_fold[some], linear.room(1)), of_some)
        cells, outside, nearness = Scale.of(least, weights), Scale.of(-far, weights), Scale.of(-distance, of_some)
        lesser = np.minimum.reduce(
            [
                cells.share_of_others(least, weights)[some],
                outside.share_of_others(-far, weights)[some],
                of_joint,
                NEARNESS_COUNTS * nearness.share_of_others(-distance, of_some),
            ]
        )
        parts = cells, outside, joint, nearness, Scale.of(lesser, of_some)
        return cls(binning, low, high, conditionals, near, scale, linear, *parts)

    def fold_of(self, matrix: Floats) -> Ints:
        """Return the fold of each encoded factual, whose trees and neighbours were fitted without it."""
        return _fold(hash_rows(matrix), len(self.conditionals))

    def own(self, factuals: Floats) -> Own:
        """Return the plausibility of factuals."""
        rows, fold = rowwise(factuals), self.fold_of(factuals)
        share = np.empty((rows.shape[0], self.conditionals[0].targets.size))
        for k in folds_of(fold):
            some = np.flatnonzero(fold == k)
            share[some] = self.conditionals[k].shares(self.binning.encode(rows[some]))
        origins = self.origins(rows)
        return Own(rows, share, self._joint(rows, fold, origins)[0], self.distance(rows, fold, origins))

    def origins(
        self,
        rows: Floats,
        places: Ints | None = None,
        kept: int = 1,
        own: Own | None = None,
        of: Ints | None = None,
    ) -> Origins:
        """Return the origins of rows, at `places` among `rows`, with a cache for `kept` of them.

        If equal places are adjacent, a cache of one is enough; without places, each row is its own origin. `own` are
        the factuals, and `of` the factual of each origin; without factuals, all cells count.
        """
        rows, n_trees = rowwise(rows), self.conditionals[0].targets.size
        n = max(1, min(kept, rows.shape[0], MOST_KEPT, MOST_KEPT_CELLS // (self.scale.size * max(n_trees, 1))))
        if own is None:
            own = Own(np.full((1, self.scale.size), np.nan), np.full((1, n_trees), np.inf), *np.full((2, 1), np.inf))
            own = replace(own, distance=-own.distance)
            of = np.zeros(rows.shape[0], dtype=np.int64)
        return Origins(
            rows,
            np.arange(rows.shape[0]) if places is None else places,
            np.arange(rows.shape[0]) if of is None else of,
            own,
            self._room_for_cells(n),
            _room_for_distances(n, self.neighbours),
            self.linear.room(n),
        )

    def _room_for_cells(self, n: int) -> KnownCells:
        p, n_trees = self.scale.size, self.conditionals[0].targets.size
        used = np.empty((n, p, n_trees), dtype=np.bool_)
        share, log_share = np.empty((2, n, n_trees))
        return KnownCells(_empty_slots(n), np.empty((n, p), np.uint8), share, log_share, used)

    def move_origins(self, origins: Origins, places: Ints, rows: Floats, fold: Ints) -> None:
        """Replace some origins by other rows, given their folds, so that the rows made from them differ less."""
        for k in folds_of(fold):
            mine = np.flatnonzero(fold == k)
            move_origins(places[mine], rows[mine], origins.rows, self.neighbours[k], self.scale, origins.near)
        for known in (origins.cells, origins.scores):
            known.holds[places % known.holds.size] = -1

    def inner(self, matrix: Floats, fold: Ints, origins: Origins | None = None) -> Floats:
        """Return the least share of all parts except nearness (steps 3 and 4); undefined for rows of fold -1."""
        rows = rowwise(matrix)
        origins = self.origins(rows) if origins is None else origins
        raw, least, outside = self._joint(rows, fold, origins)
        as_likely = raw >= origins.own.joint[origins.factual]
        of_joint = np.where(as_likely, 1.0, self.joint.together.share(raw))
        return np.asarray(np.minimum.reduce([self.cells.share(least), self.outside.share(-outside), of_joint]))

    def reach(self, matrix: Floats, fold: Ints, origins: Origins, least: float, far: Floats) -> Bools:
        """Return which rows score at least `least` in all parts except nearness, and are at most `far` from real rows.

        The cells are scored first, then the row as a whole, then the distance; each only for the rows that are left.
        """
        rows = rowwise(matrix)
        lowest, logs, outside = self._cells(rows, fold, origins)
        left = (lowest >= self.cells.lowest(least)) & (-outside >= self.outside.lowest(least))
        parts = self.linear.parts(_made(rows, origins), np.where(left, fold, -1), origins.scores)
        raw = self.joint.raw(logs[left].round(9), *(part[left] for part in parts))
        left[left] = (raw >= origins.own.joint[origins.factual[left]]) | (raw >= self.joint.together.lowest(least))
        return left & (self.distance(rows, np.where(left, fold, -1), origins, far) <= far)

    def _joint(self, rows: Floats, fold: Ints, origins: Origins) -> tuple[Floats, Floats, Floats]:
        """Return the raw joint scores of rows, their least cells, and their distances from the ranges."""
        least, logs, outside = self._cells(rows, fold, origins)
        raw = self.joint.raw(logs.round(9), *self.linear.parts(_made(rows, origins), fold, origins.scores))
        return raw, least, outside

    def _cells(self, rows: Floats, fold: Ints, origins: Origins) -> Floats:
        """Return the least cells of rows, the sums of the log shares, and the distances from the ranges."""
        out = np.ones((3, fold.size))
        own = OwnCells(origins.own.rows, origins.own.share, origins.of)
        room = np.empty(self.scale.size, np.uint8), np.empty(self.conditionals[0].targets.size, bool)
        for k in folds_of(fold):
            some, trees = np.flatnonzero(fold == k), self._trees[k]
            score_cells(_made(rows, origins), some, own, self._bins[k], trees, BINS - 1, origins.cells, *room, out)
        return out

    @cached_property
    def _bins(self) -> list[CellBins]:
        reach = [_reach(low, high) for low, high in zip(self.low, self.high)]
        return [CellBins(*self.binning.joined, *of_fold) for of_fold in zip(self.low, self.high, reach)]

    @cached_property
    def _trees(self) -> list[CellTrees]:
        return [
            CellTrees(each.targets, each.roots, each.column, each.cut, each.single, each.left, each.share)
            for each in self.conditionals
        ]

    def distance(
        self, matrix: Floats, fold: Ints, origins: Origins | None = None, enough: Floats | None = None
    ) -> Floats:
        """Return the mean distance (Gower's sum) of encoded rows to the nearest ones; `FARTHEST` for fold -1.

        If an upper bound by the origin and the changes is at most `enough`, that bound is returned.
        """
        rows = rowwise(matrix)
        if origins is None:
            return _distances(MadeRows(rows, np.arange(fold.size), rows), fold, self.neighbours, self.scale, enough)
        return _distances(_made(rows, origins), fold, self.neighbours, self.scale, enough, origins.near)

    def farthest(self, least: Floats | float) -> Floats:
        """Return the largest distance at which a row can have a score of `least`; -inf if there is none."""
        return -self.nearness.lowest(np.asarray(least) / NEARNESS_COUNTS)

    def score(
        self, matrix: Floats, fold: Ints, origins: Origins | None = None, least: float | Floats = -np.inf
    ) -> Floats:
        """Return the scores of encoded rows, given their folds (steps 3 to 7).

        `origins` are the rows that these were made from; if few cells differ, cached results are used. The distance of
        rows that score below `least` without nearness is not computed.
        """
        rows = rowwise(matrix)
        origins = self.origins(rows) if origins is None else origins
        scores = self.inner(rows, fold, origins)
        likely = scores >= least
        if likely.any():
            distance = self.distance(rows, np.where(likely, fold, -1), origins, self.farthest(scores))
            scores = np.where(likely, self.join(scores, distance, origins), scores)
        return scores

    def join(self, inner: Floats, distance: Floats, origins: Origins) -> Floats:
        """Return the scores of rows, given the least share of the other parts and the distances (step 6)."""
        as_near = distance <= origins.own.distance[origins.factual]
        return np.where(as_near, inner, np.minimum(inner, NEARNESS_COUNTS * self.nearness.share(-distance)))

    def of_candidates(self, rows: Floats, factual: Floats) -> Floats:
        """Return the plausibility of encoded candidates of an encoded factual."""
        fold, places = np.repeat(self.fold_of(factual[None]), rows.shape[0]), np.zeros(rows.shape[0], dtype=np.int64)
        own = self.own(factual[None])
        return self.quantile(self.score(rows, fold, self.origins(factual[None], places, own=own)))

    def quantile(self, scores: Floats) -> Floats:
        """Return the share of training rows with a score as low or lower (a conformal p-value)."""
        return self.calibration.share(scores)

    def least_score(self, floor: float) -> float:
        """Return the least score whose quantile is at least `floor`."""
        return float(self.calibration.lowest(floor))

    @property
    def n_neighbours(self) -> int:
        """Number of stored training rows of all folds."""
        return int(np.unique(np.concatenate([hash_rows(rows.T) for rows in self.neighbours])).size)

    @cached_property
    def typical_distance(self) -> float:
        """The median of the mean distances of real rows to their nearest ones."""
        return -self.nearness.middle


def _made(rows: Floats, origins: Origins) -> MadeRows:
    return MadeRows(rows, origins.places, origins.rows)


def _row_keys(matrix: Floats) -> UInts:
    """Return hashes of the training rows; equal rows get different keys by their order."""
    keys = hash_rows(matrix)
    before = occurrences(keys)
    return np.where(before > 0, hash_rows(np.column_stack([matrix, before.astype(np.float64)])), keys)


def _fold(keys: UInts, n_folds: int) -> Ints:
    return (keys % np.uint64(n_folds)).astype(np.int64)


def _count_folds(n_rows: int) -> int:
    """Return the number of folds; more for few rows, so that the trees of each fold use nearly all of them."""
    return 10 if n_rows < 2_000 else 3 if n_rows < 10_000 else 2


def _ranges(matrix: Floats, features: Sequence[Feature]) -> Floats:
    """Return the lowest and the highest number of each column; -inf and inf where there is none."""
    known = np.isfinite(matrix) & np.array([feature.is_numeric for feature in features])
    low = np.where(known, matrix, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, matrix, -np.inf).max(axis=0, initial=-np.inf)
    return np.where(low <= high, np.stack([low, high]), [[-np.inf], [np.inf]])


def _reach(low: Floats, high: Floats) -> Floats:
    """Return the lengths of the ranges of columns; 1 for ranges without length."""
    return np.where((high > low) & np.isfinite(high - low), high - low, 1.0)


def _outside(matrix: Floats, low: Floats, high: Floats) -> Floats:
    """Return the distances of rows from ranges, given by row, in units of the range; 0 inside."""
    beyond = np.fmax(np.fmax(low - matrix, matrix - high), 0.0) / _reach(low, high)
    return np.asarray(beyond.max(axis=1, initial=0.0))


# ---------------------------------------------------------------- growing (step 2)


def _edges(values: Floats, feature: Feature) -> Floats:
    """Return the edges of the bins of a column: one bin for each level and counted number, ranges for other numbers."""
    known = values[~np.isnan(values)]
    if not feature.is_numeric:
        last = max(feature.n_levels - 1.0, 0.0)
        return np.unique(np.linspace(0.0, last, min(BINS - 2, max(feature.n_levels, 1))).round())
    if not known.size:
        return known
    distinct, times, is_atom = find_point_masses(known)
    if is_atom.all() and distinct.size <= BINS - 2:
        return np.asarray(distinct)
    # bins with few rows have random widths, and new rows would fall into the wide ones
    counted = np.quantile(known, np.linspace(0.0, 1.0, int(np.clip(known.size // 20, 4, 64))), method="inverted_cdf")
    even = np.linspace(distinct[0], distinct[-1], int(np.clip(known.size // 80, 2, 22)))
    heavy = np.flatnonzero(times >= DRAWN_AS_IT_IS * known.size)
    return np.unique(np.concatenate([counted, even, distinct[heavy], distinct[np.maximum(heavy - 1, 0)]]))


@dataclass(frozen=True)
class _Target:
    """A column whose conditional is learned: which of its bins are smoothed, and their widths."""

    smoothed: Bools
    log_width: Floats
    margin: Floats

    @classmethod
    def of(cls, values: Floats, bins: Bytes, feature: Feature, edges: Floats, weights: Floats | None) -> _Target:
        mass = np.bincount(bins, weights, minlength=BINS).astype(np.float64)
        total = max(float(mass.sum()), 1.0)
        log_width, smoothed = np.zeros(BINS), np.zeros(BINS, dtype=bool)
        if feature.is_numeric and edges.size > 1:
            is_known = ~np.isnan(values)
            _, _, is_atom = find_point_masses(values[is_known], None if weights is None else weights[is_known])
            alone = mass >= DRAWN_AS_IT_IS * total
            smoothed[1 : edges.size + 1] = ~alone[1 : edges.size + 1]
            if not is_atom.all():  # otherwise all bins are single values
                reach = float(edges[-1] - edges[0])
                width = np.diff(edges, prepend=edges[0]) / reach if reach > 0.0 else np.ones(edges.size)
                width[0] = width[1:].min()
                width[alone[1 : edges.size + 1]] = 1.0 / 64.0
                log_width[1 : edges.size + 1] = np.log(np.maximum(width, 1e-6))
        return cls(smoothed, log_width, mass / total)

    def log_density(self, counts: Floats) -> Floats:
        """Return the log density of every bin in leaves with these counts, a row for each leaf."""
        spread = np.where(self.smoothed, counts, 0.0)
        kept = np.where(self.smoothed, _smooth(spread, self.smoothed), counts)
        share = (kept + PSEUDO_ROWS * self.margin) / (counts.sum(axis=1, keepdims=True) + PSEUDO_ROWS)
        return np.asarray(np.log(np.maximum(share, 1e-12)) - self.log_width)


def _smooth(counts: Floats, smoothed: Bools) -> Floats:
    """Return the counts of bins in leaves, smoothed over neighbouring bins by a normal kernel; leaf totals are kept."""
    bins = np.arange(BINS, dtype=np.float64)
    apart = np.abs(np.arange(BINS)[:, None] - np.arange(BINS))
    sizes, quartile_ranges = counts.sum(axis=1), _quartile_ranges(counts)
    out = counts.copy()
    for leaf in np.flatnonzero(sizes > 0.0).tolist():
        own, size = counts[leaf], float(sizes[leaf])
        quartile_range = float(quartile_ranges[leaf]) if size > 1.0 else 0.0
        width = silverman(float(deviation_of(bins, own)), quartile_range, size)
        if width >= 0.3:
            held = np.flatnonzero(own)
            kernel = np.exp(-0.5 * (bins / width) ** 2)[apart.take(held, axis=1)] * smoothed[:, None]
            out[leaf] = kernel @ (own[held] / kernel.sum(axis=0))
    return out


def _quartile_ranges(counts: Floats) -> Floats:
    """Return the interquartile range of each leaf in bins, with the quantiles of `mcce.table.weights.quantiles`."""
    upto = np.cumsum(counts, axis=1)
    found = []
    for share in (0.25, 0.75):
        at = share * np.maximum(upto[:, -1] - 1.0, 0.0)
        lower = np.floor(at)
        ends = [(upto <= position[:, None]).sum(axis=1) for position in (lower, lower + 1.0)]
        low, high = (np.minimum(place, BINS - 1).astype(np.float64) for place in ends)
        part = at - lower
        found.append(np.where(part < 0.5, low + (high - low) * part, high - (high - low) * (1.0 - part)))
    return np.asarray(found[1] - found[0])


def _classes(mass: Floats, feature: Feature) -> npt.NDArray[np.int64]:
    """Return the class of each bin: neighbours of numbers and ordered levels in about equal classes; missing apart."""
    classes = np.zeros(BINS, dtype=np.int64)
    known = mass[1:]
    if feature.is_numeric or feature.kind == "ordered":
        middle = np.cumsum(known) - known / 2
        raw = np.minimum((middle / max(float(known.sum()), 1.0) * CLASSES).astype(np.int64), CLASSES - 1)
        held = raw[known > 0.0]
        classes[1:] = 1 + np.searchsorted(np.unique(held), raw)
        classes[1:] = np.minimum(classes[1:], CLASSES)
    else:
        order = np.argsort(-known, kind="stable")
        place = np.empty(known.size, dtype=np.int64)
        place[order] = np.arange(known.size)
        classes[1:] = 1 + np.minimum(place, CLASSES - 1)
    return classes


@dataclass(frozen=True)
class _Grown:
    """One tree, and the log density of each bin of the target in its leaves; `left` of a leaf is its number."""

    column: Int32s
    cut: Bytes
    single: Bools
    left: Int32s
    log_density: Floats


def _grow_fold(
    bins: Bytes,
    classes: Ints,
    columns: list[_Target],
    mutable: Ints,
    ordered: Bools,
    counts: Floats,
    others: Ints,
    in_fold: Ints,
) -> tuple[list[_Grown], Floats]:
    """Grow the trees of a fold on the rows outside it; return them, and the log densities of the cells in the fold."""
    learned = np.ascontiguousarray(bins[:, others])
    judged = np.ascontiguousarray(bins[:, in_fold])
    weight = counts[others]
    n, p = others.size, bins.shape[0]
    questions = max(1, (p - 1) * CLASSES)
    needed = np.append(0.0, scipy.stats.chi2.isf(LEVEL / questions, np.arange(1, CLASSES + 1)))
    most = 2 * int(max(1.0, weight.sum() // FEWEST)) + 1
    room = GrowingRoom.of(n, BINS, CLASSES + 1)
    learned_classes = np.take_along_axis(classes, learned, axis=1)
    tried = _choose_tried(learned_classes, weight)
    grown, density = [], np.empty((mutable.size, in_fold.size))
    for a, j in enumerate(mutable):
        target = columns[a]
        nodes, leaf = GrowingNodes.room_for(most), np.zeros(n, dtype=np.int64)
        own = learned_classes[j]
        n_nodes = grow_cells(learned, tried[j], own, weight, ordered, needed, FEWEST, DEPTH, nodes, room, leaf)
        column, cut = nodes.column[:n_nodes], nodes.cut[:n_nodes]
        single, left = nodes.single[:n_nodes], nodes.left[:n_nodes]
        leaves = np.flatnonzero(column < 0)
        number = np.zeros(n_nodes, dtype=np.int32)
        number[leaves] = np.arange(leaves.size)
        table: Floats = np.bincount(number[leaf] * BINS + learned[j], weight, leaves.size * BINS).astype(np.float64)
        log_density = target.log_density(table.reshape(leaves.size, BINS))
        left[leaves] = number[leaves]
        at = np.zeros(in_fold.size, dtype=np.int64)
        find_leaves(judged, column, cut, single, left, at)
        density[a] = log_density[number[at], judged[j]]
        grown.append(_Grown(column, cut, single, left, log_density))
    return grown, density


def _choose_tried(classes: Ints, weight: Floats) -> Ints:
    """Return by column the columns that its tree may split by: all others, or the most associated ones of many."""
    p = classes.shape[0]
    if p - 1 <= MOST_TRIED:
        return np.stack([np.delete(np.arange(p), j) for j in range(p)])
    association = np.full((p, p), -np.inf)
    some = np.unique(np.linspace(0, weight.size - 1, MOST_ASSOCIATED).astype(np.intp))
    classes, weight = np.ascontiguousarray(classes[:, some]), weight[some]
    associate(classes, weight, np.empty((CLASSES + 2, CLASSES + 2)), association)
    return np.sort(np.argsort(-association, axis=1, kind="stable")[:, :MOST_TRIED], axis=1)


def _join(grown: list[_Grown], mutable: Ints, scales: list[Scale]) -> Conditionals:
    """Concatenate the trees of a fold, with shares of real cells in place of densities (step 3)."""
    roots = np.cumsum([0, *(tree.column.size for tree in grown)])
    tables = np.cumsum([0, *(tree.log_density.shape[0] for tree in grown)])
    left = [
        np.where(tree.column < 0, tree.left + tables[a], tree.left + roots[a]).astype(np.int32)
        for a, tree in enumerate(grown)
    ]
    share = [
        np.minimum(scale.share(tree.log_density.ravel()), 1.0).reshape(-1, BINS)
        for tree, scale in zip(grown, scales, strict=True)
    ]
    return Conditionals(
        mutable.astype(np.int32),
        roots[:-1].astype(np.int32),
        np.concatenate([tree.column for tree in grown]),
        np.concatenate([tree.cut for tree in grown]),
        np.concatenate([tree.single for tree in grown]),
        np.concatenate(left),
        np.concatenate(share),
    )


# ---------------------------------------------------------------- neighbours (step 5)


def _choose_rows(rows: Ints, keys: UInts, most: int) -> Ints:
    """Return at most `most` of the rows, chosen by their keys, in order."""
    return rows if rows.size <= most else np.sort(rows[np.argsort(keys[rows], kind="stable")[:most]])


def _neighbours(rows: Ints, keys: UInts, weights: Floats | None, most: int = MOST_NEAR) -> Ints:
    """Return the rows among which the nearest are searched; weighted rows are repeated by their weight."""
    if weights is None:
        return _choose_rows(rows, keys, most)
    by_key = rows[np.argsort(keys[rows], kind="stable")]
    n = int(min(max(round(float(weights[rows].sum())), 1), most)) if rows.size else 0
    return np.sort(by_key[copies_at(weights[by_key], np.arange(n), n)]) if n else rows


def _empty_slots(n: int) -> Ints:
    """Return the origins of n empty slots."""
    return np.full(n, -1, dtype=np.int64)


def _room_for_distances(n: int, neighbours: Sequence[Floats]) -> KnownDistances:
    """Return an empty cache for the distances of n origins."""
    return KnownDistances(_empty_slots(n), np.empty((n, max(others.shape[1] for others in neighbours))), np.empty(n))


def _distances(
    made: MadeRows,
    fold: Ints,
    neighbours: Sequence[Floats],
    scale: Floats,
    enough: Floats | None = None,
    known: KnownDistances | None = None,
) -> Floats:
    """Return the mean distance of rows to the nearest neighbours of their folds, or a bound below `enough`."""
    out = np.full(fold.size, FARTHEST)
    enough = np.full(fold.size, -np.inf) if enough is None else enough
    known = _room_for_distances(1, neighbours) if known is None else known
    room = np.empty(known.sums.shape[1]), np.empty(NEAREST)
    for k in folds_of(fold):
        mean_of_nearest(made, np.flatnonzero(fold == k), neighbours[k], scale, enough, known, *room, out)
    # rounding preserves ties: the order of summation depends on the origin of a row
    return np.asarray(np.minimum(out, FARTHEST).round(10))
