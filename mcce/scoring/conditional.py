"""The scores of one fitted conditional on rows that it has not seen.

1. Every row has streams of random numbers of its own, by the seed, the row's givens and its value; rows that are equal
   in all are numbered. So the scores do not depend on the order of the rows (equal rows may exchange theirs), and two
   samplers are compared on the same random numbers.
2. Values are drawn for blocks of rows and put on the column's grid, as the chain does it (`mcce.samplers.settle`): what
   is scored are the values that a user sees.
3. The draws are scored against the row's own value (`mcce.scoring.draws`) and counted by level
   (`mcce.scoring.levels`); they are not kept. Memory is bounded by the size of a block.
4. The log score is the sampler's log density of the value. A sampler that does not say what its density is with respect
   to has no log score; the others are drawn from, and take part.

Lower is better for CRPS and Brier score, higher for the log score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from mcce.arrays import Floats, Ints, UInts
from mcce.checks import check_count
from mcce.exceptions import InputError, SamplerError
from mcce.rng import RowStreams, derive_key, hash_rows
from mcce.samplers import ConditionalSampler
from mcce.samplers.base import BaseMeasure
from mcce.samplers.settle import settle
from mcce.scoring.draws import score_levels, score_numbers
from mcce.scoring.levels import LevelCounts, count_levels, levels_of, place_of, point_masses
from mcce.table import Column, Feature, Table

N_DRAWS = 200
BLOCK_VALUES = 1 << 18  # draws held at once


@dataclass(frozen=True)
class Scores:
    """Scores of a conditional, one number for each row.

    Attributes
    ----------
    feature : the column that was drawn.
    n_draws : draws for each row.
    log_score : log density or log probability of the value; None if the sampler has none.
    base_measure : what `log_score` is with respect to; only scores with the same one can be compared.
    crps : for numbers and ordered levels (in units of the code); None for unordered levels.
    brier : for unordered levels; None for others.
    spread : mean distance of two draws; of unordered levels, the share of pairs that differ. Small is sharp.
    pit : randomised PIT, for numbers and ordered levels; None for unordered levels.
    levels : what was drawn how often: levels, numbers with point mass, missing values.
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
        """CRPS or Brier score, whichever the column has; low is good."""
        found = self.brier if self.crps is None else self.crps
        assert found is not None
        return found

    @classmethod
    def concatenate(cls, parts: Sequence[Scores]) -> Scores:
        """Return the scores of all rows, one part after the other; those that a part lacks are None."""
        measures = {part.base_measure for part in parts}
        names = ("log_score", "crps", "brier", "spread", "pit")
        columns: dict[str, Any] = {name: _join([getattr(part, name) for part in parts]) for name in names}
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
    """Score a fitted sampler on rows that it has not seen.

    Parameters
    ----------
    sampler : fitted ConditionalSampler
    given, target
        New rows: the givens and the value of each, encoded like those of the fit.
    seed : int
        Of the draws and of the randomised PIT.
    n_draws : int
        Draws for each row, at least 2.

    Examples
    --------
    >>> import numpy as np, mcce
    >>> from mcce.scoring import score_conditional
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
        raise InputError(f"given has {given.n_rows} rows for {values.size} values; give as many of both, at least one.")
    rows, occurrence = _identities(given, values)
    key = derive_key(seed, "score", feature.name)
    first = RowStreams(key, rows, occurrence)
    begun = perf_counter()
    levels, with_rest = levels_of(feature), feature.is_numeric
    if feature.is_numeric:
        pilot = settle(sampler.sample(given, first.child("pilot")), sampler, feature, values.size)
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


def _join(parts: Sequence[Floats | None]) -> Floats | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


def _identities(given: Table, values: Floats) -> tuple[UInts, UInts]:
    """Return what each row's random numbers are a function of, and how many equal rows came before it (step 1)."""
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
    # column by column, because tables are kept so
    repeated = Table(given.features, np.repeat(given.matrix[part].T, n_draws, axis=1).T)
    draw = np.repeat(occurrence[part] * np.uint64(n_draws), n_draws) + np.tile(np.arange(n_draws, dtype=np.uint64), n)
    streams = RowStreams(key, np.repeat(rows[part], n_draws), np.asarray(draw, dtype=np.uint64))
    drawn = settle(sampler.sample(repeated, streams), sampler, feature, n * n_draws)
    return drawn.reshape(n, n_draws)


def missing_distance(feature: Feature) -> float:
    """Return how far a missing value is from a value: as far as the ends of the column from each other."""
    return (feature.span if feature.is_numeric else feature.n_levels - 1.0) or 1.0


def log_scores(sampler: ConditionalSampler, given: Table, values: Floats) -> tuple[Floats | None, BaseMeasure | None]:
    """Return the log densities and what they are with respect to, or None (step 4)."""
    try:
        measure = sampler.base_measure()
    except SamplerError:
        return None, None
    return sampler.log_density(given, values), measure
