"""The scores of one fitted conditional on held-out rows.

1. The random numbers of a row depend on the seed, its givens and its value; equal rows are numbered. Scores therefore
   do not depend on the order of the rows (except that equal rows may exchange theirs), and samplers are compared with
   common random numbers.
2. Values are drawn for blocks of rows and rounded to the grid of the column, as in the chain.
3. The draws are scored against the observed value (steps 5 to 8) and counted by level (steps 9 and 10); they are not
   kept. Memory is bounded by the size of a block.
4. The log score is the sampler's log density of the value. A sampler whose density has no declared base measure has no
   log score; its other scores are computed.

Lower is better for CRPS and Brier score, higher for the log score.

Scores of a row with the value y and M draws x_1, ..., x_M:

5. CRPS, for numbers and codes of ordered levels, in the fair form that is unbiased for any M (Ferro 2014):
   mean_i d(x_i, y) - 1/2 mean_(i < j) d(x_i, x_j), with d(a, b) = |a - b|. A missing value is as far from every number
   as the ends of the column are from each other; the score is proper, as a quarter of that distance would suffice.
6. Spread: mean_(i < j) d(x_i, x_j), the mean distance of two draws; for levels, the share of pairs that differ.
7. Randomised PIT: (number below y + U (1 + number equal to y)) / (M + 1), U uniform; missing is below every number. If
   the conditional is right, y and the draws are exchangeable, and the PIT is exactly uniform for any M, also with point
   masses, and independent of the givens.
8. Brier score, for levels (missing is a level), again in the fair form:
   sum_k (p_k - 1{y = k})^2 - sum_k p_k (1 - p_k) / (M - 1), with p_k the share of the draws that are k.

Counts of drawn levels, and the observed level; for numbers, values with point mass:

9. Levels are those of the feature; the last one is "missing".
10. For numbers, values with point mass are levels: missing, and each number that a twentieth of the draws have, or a
    tenth of the observed values. All other numbers are one further level. The draws by which levels are chosen are not
    counted, so that the choice does not bias the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.base.checks import check_count
from mcce.exceptions import InputError, SamplerError
from mcce.rng import RowStreams, derive_key, hash_rows
from mcce.samplers import ConditionalSampler
from mcce.samplers.base import BaseMeasure
from mcce.samplers.density import DRAWN_AS_IT_IS
from mcce.samplers.rounding import put_on_grid
from mcce.table import Column, Feature, Table


def score_numbers(draws: Floats, values: Floats, far: float, uniform: Floats) -> tuple[Floats, Floats, Floats]:
    """Return CRPS, spread and PIT of each row (steps 5 to 7); missing values are `far` from numbers."""
    n_draws = draws.shape[1]
    no_value: Bools = np.isnan(values)
    at = np.where(no_value, 0.0, values)[:, None]
    missing = np.isnan(draws).sum(axis=1)
    known = n_draws - missing
    away = np.sort(draws - at, axis=1)  # missing values come last
    below = np.where(no_value, 0, missing + (away < 0.0).sum(axis=1))
    equal = np.where(no_value, missing, (away == 0.0).sum(axis=1))
    pit = (below + uniform * (equal + 1)) / (n_draws + 1)
    away = np.where(np.isnan(away), 0.0, away)
    place = 2.0 * np.arange(1, n_draws + 1) - 1.0
    lowest = away[:, :1]  # sums of differences avoid cancellation
    beyond = np.where(place < 2.0 * known[:, None], away - lowest, 0.0)
    apart = (beyond * (place - known[:, None])).sum(axis=1) + missing * known * far
    spread = apart / (0.5 * n_draws * (n_draws - 1))
    distance = np.where(no_value, known * far, np.abs(away).sum(axis=1) + missing * far) / n_draws
    return distance - 0.5 * spread, spread, pit


def mean_distance(values: Floats, far: float) -> float:
    """Return the mean distance of two values; for the draws of one row, its spread."""
    return float(score_numbers(values[None, :], np.zeros(1), far, np.zeros(1))[1][0])


def score_levels(counts: Ints, observed: Ints) -> tuple[Floats, Floats]:
    """Return Brier score and spread of each row (steps 8 and 6) from the counts of drawn levels."""
    n_draws = counts.sum(axis=1)
    shares = counts / n_draws[:, None]
    differ = (shares * (1.0 - shares)).sum(axis=1) / (n_draws - 1)
    seen = shares[np.arange(observed.size), observed]
    return (shares**2).sum(axis=1) - 2.0 * seen + 1.0 - differ, differ * n_draws


SEEN = 0.1


@dataclass(frozen=True)
class LevelCounts:
    """Counts of drawn levels by row.

    Attributes
    ----------
    levels : the encoded values that are counted; the last is NaN, for missing.
    with_rest : whether a further column counts all other values, as for numbers.
    counts : (rows, levels), with the same number of draws in each row.
    observed : the column of the observed level of each row.
    """

    levels: Floats
    with_rest: bool
    counts: Ints
    observed: Ints

    @classmethod
    def concatenate(cls, parts: Sequence[LevelCounts]) -> LevelCounts:
        """Return the counts of all rows; numbers that are not counted in every part are added to the rest."""
        shared = [level for level in parts[0].levels if all(level in part.levels for part in parts[1:])]
        levels = np.append(np.array(shared, dtype=np.float64), np.nan)  # NaN is not in `shared`, as it equals nothing
        with_rest = parts[0].with_rest
        counts, observed = [], []
        for part in parts:
            place = np.append(place_of(part.levels, levels), levels.size)[: part.counts.shape[1]]
            moved = np.zeros((len(part.counts), levels.size + int(with_rest)), dtype=np.int64)
            for old, new in enumerate(place):
                moved[:, new] += part.counts[:, old]
            counts.append(moved)
            observed.append(place[part.observed])
        return cls(levels, with_rest, np.concatenate(counts), np.concatenate(observed))

    def take(self, rows: Ints) -> LevelCounts:
        """Return the counts of some rows."""
        return replace(self, counts=self.counts[rows], observed=self.observed[rows])

    @property
    def seen(self) -> Bools:
        """Whether each row has each level."""
        return np.asarray(self.observed[:, None] == np.arange(self.counts.shape[1]))


def levels_of(feature: Feature) -> Floats:
    """Return the codes of the levels, then missing (step 9)."""
    return np.append(np.arange(feature.n_levels, dtype=np.float64), np.nan)


def point_masses(drawn: Floats, values: Floats) -> Floats:
    """Return the numbers with point mass in order, then missing (step 10); `drawn` has one draw for each value."""
    chosen = [_frequent(drawn, DRAWN_AS_IT_IS), _frequent(values, SEEN)]
    return np.append(np.unique(np.concatenate(chosen)), np.nan)


def _frequent(values: Floats, share: float) -> Floats:
    distinct, times = np.unique(values[~np.isnan(values)], return_counts=True)
    return np.asarray(distinct[times >= max(5.0, share * values.size)])


def place_of(values: Floats, levels: Floats) -> Ints:
    """Return the column of each value among the levels, for any shape; other values get the column after the last."""
    known = levels[:-1]
    place = np.searchsorted(known, values)  # missing values come after all numbers
    if known.size:
        is_level = known[np.minimum(place, known.size - 1)] == values
        place = np.where(is_level, place, known.size + 1)
    else:
        place = np.full(np.shape(values), 1)
    return np.asarray(np.where(np.isnan(values), known.size, place), dtype=np.int64)


def count_levels(draws: Floats, levels: Floats, with_rest: bool) -> Ints:
    """Return the count of each level in each row of `draws`."""
    n, width = draws.shape[0], levels.size + int(with_rest)
    cells = place_of(draws, levels) + width * np.arange(n)[:, None]
    return np.bincount(cells.ravel(), minlength=n * width).reshape(n, width).astype(np.int64)


N_DRAWS = 200
LEVEL = 0.05  # default level of tests
BLOCK_VALUES = 1 << 18  # draws held at once


@dataclass(frozen=True)
class Scores:
    """Scores of a conditional, one for each row.

    Attributes
    ----------
    feature : the column that was drawn.
    n_draws : draws for each row.
    log_score : log density or log probability of the value; None if the sampler has none.
    base_measure : the base measure of `log_score`; only scores with the same one can be compared.
    crps : for numbers and ordered levels (in units of the code); None for unordered levels.
    brier : for unordered levels; None for others.
    spread : mean distance of two draws; for unordered levels, the share of pairs that differ.
    pit : randomised PIT, for numbers and ordered levels; None for unordered levels.
    levels : counts of drawn levels, numbers with point mass and missing values.
    seconds : time that drawing took.
    """

    feature: Feature
    n_draws: int
    log_score: Floats | None
    base_measure: BaseMeasure | None
    crps: Floats | None
    brier: Floats | None
    spread: Floats
    pit: Floats | None
    levels: LevelCounts
    seconds: float

    @property
    def from_draws(self) -> Floats:
        """CRPS or Brier score, depending on the column; low is good."""
        found = self.brier if self.crps is None else self.crps
        assert found is not None
        return found

    @classmethod
    def concatenate(cls, parts: Sequence[Scores]) -> Scores:
        """Return the scores of all rows, one part after the other; scores that any part lacks are None."""
        measures = {part.base_measure for part in parts}
        names = ("log_score", "crps", "brier", "spread", "pit")
        columns: dict[str, Any] = {name: concatenated([getattr(part, name) for part in parts]) for name in names}
        if len(measures) > 1:
            columns["log_score"] = None
        return cls(
            feature=parts[0].feature,
            n_draws=parts[0].n_draws,
            base_measure=parts[0].base_measure if len(measures) == 1 else None,
            levels=LevelCounts.concatenate([part.levels for part in parts]),
            seconds=sum(part.seconds for part in parts),
            **columns,
        )

    def take(self, rows: Ints) -> Scores:
        """Return the scores of some rows."""
        names = ("log_score", "crps", "brier", "spread", "pit")
        columns: dict[str, Any] = {name: getattr(self, name) for name in names}
        taken: dict[str, Any] = {name: None if each is None else each[rows] for name, each in columns.items()}
        return replace(self, levels=self.levels.take(rows), **taken)


def score_conditional(
    sampler: ConditionalSampler, given: Table, target: Column, *, seed: int, n_draws: int = N_DRAWS
) -> Scores:
    """Score a fitted sampler on held-out rows.

    Parameters
    ----------
    sampler : fitted ConditionalSampler
    given, target
        Givens and values of the rows, encoded like those of the fit.
    seed : int
        Seed of the draws and of the randomised PIT.
    n_draws : int
        Draws for each row, at least 2.

    Examples
    --------
    >>> import numpy as np, mcce
    >>> from mcce.judging.scores import score_conditional
    >>> from mcce.table import Schema
    >>> X = mcce.datasets.load_loans().X[["age", "salary"]]
    >>> table = Schema.from_data(X).encode(X)
    >>> old, new = table.take(np.arange(0, 700)), table.take(np.arange(700, 1000))
    >>> cart = mcce.CartSampler().fit(old.first(1), old.column(1))
    >>> scores = score_conditional(cart, new.first(1), new.column(1), seed=1)
    >>> scores.crps.shape, scores.pit.shape
    ((300,), (300,))
    """
    check_count(n_draws, "n_draws", least=2)
    feature, values = target.feature, target.values
    if given.n_rows != values.size or not values.size:
        raise InputError(f"given has {given.n_rows} rows for {values.size} values; give one value per row.")
    rows, occurrence = _identities(given, values)
    key = derive_key(seed, "score", feature.name)
    first = RowStreams(key, rows, occurrence)
    begun = perf_counter()
    levels, with_rest = levels_of(feature), feature.is_numeric
    if feature.is_numeric:
        pilot = put_on_grid(sampler.sample(given, first.child("pilot")), sampler, feature, values.size)
        levels = point_masses(pilot, values)
    counts = np.empty((values.size, levels.size + int(with_rest)), dtype=np.int64)
    of_numbers = np.empty((3, values.size))
    uniform = first.child("pit").uniform()
    block = max(1, BLOCK_VALUES // n_draws)
    for begin in range(0, values.size, block):
        part = slice(begin, min(begin + block, values.size))
        draws = _draw(sampler, feature, given, part, key, rows, occurrence, n_draws)
        counts[part] = count_levels(draws, levels, with_rest)
        if feature.kind != "categorical":
            of_numbers[:, part] = score_numbers(draws, values[part], missing_distance(feature), uniform[part])
    seconds = perf_counter() - begun
    counted = LevelCounts(levels, with_rest, counts, place_of(values, levels))
    log_score, base_measure = log_scores(sampler, given, values)
    if feature.kind == "categorical":
        brier, spread = score_levels(counts, counted.observed)
        return Scores(feature, n_draws, log_score, base_measure, None, brier, spread, None, counted, seconds)
    crps, spread, pit = of_numbers
    return Scores(feature, n_draws, log_score, base_measure, crps, None, spread, pit, counted, seconds)


def concatenated(parts: Sequence[Floats | None]) -> Floats | None:
    """Return the scores of all parts; None if a part has none, or there are no parts."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known and len(known) == len(parts) else None


def _identities(given: Table, values: Floats) -> tuple[UInts, UInts]:
    """Return a hash of each row for its random numbers, and the number of equal rows before it (step 1)."""
    rows = hash_rows(np.column_stack([given.matrix, values]))
    before = pd.Series(rows).groupby(rows, sort=False).cumcount()
    return rows, np.asarray(before, dtype=np.uint64)


def _draw(
    sampler: ConditionalSampler,
    feature: Feature,
    given: Table,
    part: slice,
    key: int,
    rows: UInts,
    occurrence: UInts,
    n_draws: int,
) -> Floats:
    """Return the draws of a block of rows, one row each (step 2)."""
    n = part.stop - part.start
    # tables are stored column by column
    repeated = Table(given.features, np.repeat(given.matrix[part].T, n_draws, axis=1).T)
    draw = np.repeat(occurrence[part] * np.uint64(n_draws), n_draws) + np.tile(np.arange(n_draws, dtype=np.uint64), n)
    streams = RowStreams(key, np.repeat(rows[part], n_draws), np.asarray(draw, dtype=np.uint64))
    drawn = put_on_grid(sampler.sample(repeated, streams), sampler, feature, n * n_draws)
    return drawn.reshape(n, n_draws)


def missing_distance(feature: Feature) -> float:
    """Return the distance of a missing value to any value: that of the ends of the column."""
    return (feature.span if feature.is_numeric else feature.n_levels - 1.0) or 1.0


def log_scores(sampler: ConditionalSampler, given: Table, values: Floats) -> tuple[Floats | None, BaseMeasure | None]:
    """Return the log densities and their base measure, or None (step 4)."""
    try:
        measure = sampler.base_measure()
    except SamplerError:
        return None, None
    return sampler.log_density(given, values), measure
