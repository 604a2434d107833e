"""How plausible is a row? Boosted trees tell real rows from spoilt ones; real rows that they have not seen calibrate.

The paper's criterion 1 asks that p(mutable | fixed) be above some epsilon. Here a row's score is an estimate of
log p(row) - log p(spoilt row), and epsilon a quantile of the scores of real rows:

1. Folds. A training row's fold is a hash of its cells, so that a factual meets trees that have not seen it, whether it
   is one of the training rows or new; its candidates are scored by the trees of its fold. Of equal training rows, the
   first is in that fold and the others in any: the trees leave one of them out, not all.
2. Bins. For each fold, the rows outside it (at most 10,000) are binned column by column: a level or a distinct value
   has a bin of its own; a number with more values has bins of equal counts and of equal widths, so that rare values are
   not lost in the bins of common ones. Missing is bin 0.
3. Spoilt rows. Fixed cells stay. Most rows get several of their mutable cells from other rows, each from a row of its
   own: telling these from real rows is to know what belongs together. The others get one cell spread evenly over the
   range or the levels: telling these is to know which values are rare.
4. Boosting. Trees with one split a level, by Newton steps on the logistic loss, with spoilt rows drawn anew now and
   then. The sum of the leaves is the score. It is finite for every row, whatever its values.
5. Calibration. Every training row is scored by the trees that a factual equal to it meets, so that equal rows have one
   score, in training and later. The plausibility of a row is the share of training rows with a score as low or lower;
   at `floor=0.05` one real row in twenty is rejected, or fewer where many have equal scores.

Training rows with weights have them in the losses of step 4, give their cells in step 3 by them, and count by them in
step 5: the floor is a share of the population that the weights stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Floats, Ints, UInts
from mcce.base.threads import count_jobs, run_in_threads
from mcce.explain.distances import columnwise
from mcce.explain.plausibility_kernels import add_scores, encode_bins, grow_tree
from mcce.generators.givens import occurrences
from mcce.rng import derive_key, hash_rows
from mcce.storage.fields import (
    FLOAT,
    INT32,
    check_array,
    check_between,
    check_finite,
    check_rising,
    check_type,
    require,
)
from mcce.storage.state import IF_ANY, stateful
from mcce.table import Feature
from mcce.table.weights import place_of_copy, sorted_with_weights

Bytes = npt.NDArray[np.uint8]

MOST_ROWS = 10_000  # that the trees of a fold are grown on
BINS = 128
TREES, DEPTH, RATE, RIDGE, RENEWED = 60, 6, 0.1, 30.0, 20
SHARE_OF_COLUMNS = 0.5  # tried at a level of a tree
SPREAD_EVENLY = 0.15  # share of spoilt rows with one cell spread over the range
_CHUNK = 512


@stateful("plausibility.Binning")
@dataclass(frozen=True)
class Binning:
    """The values at which the bins of each column end; bin b > 0 holds values above edge b - 2, up to edge b - 1."""

    edges: tuple[Floats, ...]

    def check_state(self) -> None:
        """Refuse edges without an order."""
        check_type(self.edges, "edges", tuple)
        for edges in self.edges:
            check_array(edges, "edges", FLOAT, None)
            check_rising(edges, "edges")

    @classmethod
    def of(cls, matrix: Floats, features: Sequence[Feature]) -> Binning:
        """Choose the bins of encoded rows."""
        return cls(tuple(_edges(matrix[:, j], feature) for j, feature in enumerate(features)))

    def encode(self, matrix: Floats) -> Bytes:
        """Return the bins of encoded rows, column by column."""
        out = np.empty((len(self.edges), matrix.shape[0]), dtype=np.uint8)
        encode_bins(columnwise(matrix), *self.joined, BINS - 1, out)
        return out

    def encode_column(self, values: Floats, j: int) -> Bytes:
        """Return the bins of values of one column; values beyond the last edge share a bin."""
        return np.asarray(Binning((self.edges[j],)).encode(values[:, None])[0])

    @cached_property
    def joined(self) -> tuple[Floats, Ints]:
        """The edges of all columns in a row, and where each column's begin."""
        return np.concatenate([*self.edges, np.empty(0)]), np.cumsum([0, *(edges.size for edges in self.edges)])


@stateful("plausibility.Scorer")
@dataclass(frozen=True)
class Scorer:
    """The bins and trees of one fold: by tree and level a column and the bin to cut after; the values of the leaves."""

    binning: Binning
    column: npt.NDArray[np.int32]
    cut: Bytes
    value: Floats

    def check_state(self) -> None:
        """Refuse trees that look at columns which there are not, or have too few leaves."""
        check_type(self.binning, "binning", Binning)
        check_array(self.column, "column", INT32, None, DEPTH)
        check_array(self.cut, "cut", np.dtype(np.uint8), *self.column.shape)
        check_array(self.value, "value", FLOAT, self.column.shape[0], 1 << DEPTH)
        check_between(self.column, "column", 0, len(self.binning.edges) - 1)
        check_finite(self.value, "value")

    def score(self, bins: Bytes) -> Floats:
        """Return the scores of binned rows."""
        scores = np.zeros(bins.shape[1])
        add_scores(bins, self.column, self.cut, self.value, np.empty(_CHUNK, dtype=np.uint8), scores)
        return scores


@stateful("Plausibility")
@dataclass(frozen=True)
class Plausibility:
    """Scorers by fold, and the sorted scores of training rows that calibrate them; `upto` are sums of their weights."""

    scorers: tuple[Scorer, ...]
    calibration: Floats
    upto: Floats | None = field(default=None, metadata=IF_ANY)

    def check_state(self) -> None:
        """Refuse scores without an order, and a scale without scorers."""
        check_type(self.scorers, "scorers", tuple)
        require(len(self.scorers) > 0, "scorers are none")
        for scorer in self.scorers:
            check_type(scorer, "scorers", Scorer)
        check_array(self.calibration, "calibration", FLOAT, None)
        check_rising(self.calibration, "calibration", strictly=False)
        if self.upto is not None:
            check_array(self.upto, "upto", FLOAT, self.calibration.size)
            check_rising(self.upto, "upto")
            require(bool((self.upto > 0.0).all()), "upto begins with no weight")

    def check_columns(self, n_columns: int) -> None:
        """Refuse a scale that is not of a table with so many columns."""
        found = {len(scorer.binning.edges) for scorer in self.scorers}
        require(found == {n_columns}, "plausibility is not of as many columns as there are")

    @classmethod
    def fit(
        cls,
        matrix: Floats,
        features: Sequence[Feature],
        mutable: Ints,
        seed: int,
        n_jobs: int | None = None,
        progress: bool | None = None,
        weights: Floats | None = None,
    ) -> Plausibility:
        """Learn what real rows look like from encoded training rows, by their weights if they have some."""
        keys = _row_keys(matrix)
        n_folds = _count_folds(matrix.shape[0])
        fold = _fold(keys, n_folds)
        met = _fold(hash_rows(matrix), n_folds)
        scores = np.empty(matrix.shape[0])

        def fit_fold(k: int) -> Scorer:
            others = np.flatnonzero(fold != k)
            if others.size > MOST_ROWS:
                others = np.sort(others[np.argsort(keys[others], kind="stable")[:MOST_ROWS]])
            rng = np.random.default_rng(derive_key(seed, "plausibility", k))
            scorer = _boost(matrix[others], features, mutable, rng, None if weights is None else weights[others])
            meeting = np.flatnonzero(met == k)
            scores[meeting] = scorer.score(scorer.binning.encode(matrix[meeting]))
            return scorer

        scorers = tuple(run_in_threads(fit_fold, range(n_folds), count_jobs(n_jobs), "plausibility", progress))
        ordered, of_ordered = sorted_with_weights(scores, weights)
        return cls(scorers, ordered, None if of_ordered is None else np.cumsum(of_ordered))

    def fold_of(self, matrix: Floats) -> Ints:
        """Return the fold of each encoded factual: that of trees which have not seen it."""
        return _fold(hash_rows(matrix), len(self.scorers))

    def score(self, matrix: Floats, fold: Ints) -> Floats:
        """Return the scores of encoded rows, each by the trees of a fold."""
        scores = np.empty(matrix.shape[0])
        for k, scorer in enumerate(self.scorers):
            rows = fold == k
            if rows.any():
                scores[rows] = scorer.score(scorer.binning.encode(matrix[rows]))
        return scores

    def of_candidates(self, rows: Floats, factual: Floats) -> Floats:
        """Return the plausibility of encoded candidates of an encoded factual."""
        return self.quantile(self.score(rows, np.broadcast_to(self.fold_of(factual[None]), rows.shape[0])))

    def quantile(self, scores: Floats) -> Floats:
        """Return the share of training rows with a score as low or lower (a conformal p-value)."""
        below = np.searchsorted(self.calibration, scores, side="right")
        if self.upto is not None:
            below = np.append(0.0, self.upto)[below]
        return np.asarray((1.0 + below) / (self._total + 1.0), dtype=np.float64)

    def least_score(self, floor: float) -> float:
        """Return the least score whose quantile is at least `floor`."""
        if self.upto is not None:
            weight = floor * (self._total + 1.0) - 1.0 - 1e-9
            place = min(int(np.searchsorted(self.upto, weight)), self.upto.size - 1)
            return -np.inf if weight <= 0.0 else float(self.calibration[place])
        needed = int(np.ceil(floor * (self._total + 1.0) - 1e-9)) - 1
        return -np.inf if needed <= 0 else float(self.calibration[needed - 1])

    @property
    def _total(self) -> float:
        """Number of training rows, or the sum of their weights."""
        return self.calibration.size if self.upto is None else float(self.upto[-1])


def _row_keys(matrix: Floats) -> UInts:
    """Hash the training rows; equal rows have different keys, by how many stand before."""
    keys = hash_rows(matrix)
    before = occurrences(keys)
    return np.where(before > 0, hash_rows(np.column_stack([matrix, before.astype(np.float64)])), keys)


def _fold(keys: UInts, n_folds: int) -> Ints:
    return (keys % np.uint64(n_folds)).astype(np.int64)


def _count_folds(n_rows: int) -> int:
    """More folds where rows are few, so that the trees of each fold see nearly all of them."""
    return 10 if n_rows < 2_000 else 3 if n_rows < 10_000 else 2


def _edges(column: Floats, feature: Feature) -> Floats:
    room = BINS - 2
    if not feature.is_numeric:
        return np.unique(
            np.linspace(0.0, max(feature.n_levels - 1.0, 0.0), min(room, max(feature.n_levels, 1))).round()
        )
    values = column[~np.isnan(column)]
    distinct = np.unique(values)
    if distinct.size <= room:
        return distinct
    counted = np.quantile(values, np.linspace(0.0, 1.0, room * 3 // 4), method="inverted_cdf")
    return np.unique(np.concatenate([counted, np.linspace(distinct[0], distinct[-1], room // 4)]))


def _boost(
    matrix: Floats,
    features: Sequence[Feature],
    mutable: Ints,
    rng: np.random.Generator,
    weights: Floats | None,
) -> Scorer:
    """Return the bins and trees of one fold (steps 2 to 4)."""
    binning = Binning.of(matrix, features)
    real = binning.encode(matrix)
    p, n = real.shape
    column = np.zeros((TREES, DEPTH), dtype=np.int32)
    cut = np.full((TREES, DEPTH), BINS, dtype=np.uint8)
    value = np.zeros((TREES, 1 << DEPTH))
    if n == 0:
        return Scorer(binning, column, cut, value)
    n_tried = max(1, int(np.ceil(SHARE_OF_COLUMNS * p)))
    node = np.empty(2 * n, dtype=np.uint8)
    room = np.empty((1 << DEPTH, BINS, 2)), np.empty((1 << DEPTH, 2)), np.empty((1 << DEPTH, 2))
    is_real = np.repeat([1.0, 0.0], n)
    for t in range(TREES):
        if t % RENEWED == 0:
            spoilt = _spoil(matrix, real, binning, features, mutable, rng, weights)
            bins = np.ascontiguousarray(np.concatenate([real, spoilt], axis=1))
            scores = Scorer(binning, column[:t], cut[:t], value[:t]).score(bins)
        share = 1.0 / (1.0 + np.exp(-scores))
        tried = np.argsort(rng.random((DEPTH, p)), axis=1)[:, :n_tried]
        slope, curvature = is_real - share, share * (1.0 - share)
        if weights is not None:
            slope, curvature = slope * np.tile(weights, 2), curvature * np.tile(weights, 2)
        grow_tree(bins, slope, curvature, tried, RIDGE, RATE, node, *room, column[t], cut[t], value[t])
        scores += value[t][node]
    return Scorer(binning, column, cut, value)


def _spoil(
    matrix: Floats,
    real: Bytes,
    binning: Binning,
    features: Sequence[Feature],
    mutable: Ints,
    rng: np.random.Generator,
    weights: Floats | None,
) -> Bytes:
    """Step 3: return the rows' bins with some mutable cells replaced."""
    n, m = matrix.shape[0], mutable.size
    is_spread = rng.random(n) < SPREAD_EVENLY
    n_cells = np.where(is_spread, 1, rng.integers(min(2, m), m + 1, n))
    replaced = np.argsort(np.argsort(rng.random((n, m)), axis=1), axis=1) < n_cells[:, None]
    spoilt = real.copy()
    for a, j in enumerate(mutable):
        taken = np.flatnonzero(replaced[:, a] & ~is_spread)
        if weights is None:
            others: Ints = rng.integers(0, n, taken.size)
        else:
            upto = np.cumsum(weights)
            others = place_of_copy(upto, rng.random(taken.size) * upto[-1])
        spoilt[j, taken] = real[j, others]
        spread = np.flatnonzero(replaced[:, a] & is_spread)
        values = np.unique(matrix[~np.isnan(matrix[:, j]), j])
        if spread.size and values.size:
            drawn = _spread_evenly(values, features[j], spread.size, rng)
            spoilt[j, spread] = binning.encode_column(drawn, int(j))
    return spoilt


def _spread_evenly(values: Floats, feature: Feature, n: int, rng: np.random.Generator) -> Floats:
    """Draw observed values evenly over the levels, or over the range of a number."""
    if not feature.is_numeric or values.size == 1:
        return values[rng.integers(0, values.size, n)]
    even = rng.uniform(values[0], values[-1], n)
    above = np.clip(np.searchsorted(values, even), 1, values.size - 1)
    nearer_below = even - values[above - 1] < values[above] - even
    return np.where(nearer_below, values[above - 1], values[above])
