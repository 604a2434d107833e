"""Scores of how realistic a row is: mcce's plausibility and simple alternatives, each with its own calibration.

A scorer is fitted on encoded training rows and returns a score (higher is more realistic) with calibration scores of
real rows, which give the quantile of a row:

plausibility      the least likely cell given all others, and nearness, cross-fitted (`mcce.plausibility.score`)
density, cart     log density of the mutable features, summed over a chain of CART trees without the decision; training
density, ctree    rows, each left out of its own leaf, calibrate. The trees were fitted with the row that is left out
ratio, ctree      the same sum less that of the margins, log p(x | given) - log p(x); one half of the rows fits, the
                  other calibrates
five nearest      minus the mean distance (range-scaled) to the five nearest rows of one half; the other calibrates
isolation forest  scikit-learn's, 200 trees, on one half of the rows; the other calibrates

A log density below -30 in one feature counts as -30, so that a value absent from a leaf has a finite score.

Wrong rows are made from real rows that no scorer was fitted on (`wrong_rows`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import NearestNeighbors

import mcce
from benchmarks.judging import NEIGHBOURS, Points
from mcce.plausibility.score import Plausibility
from mcce.table import Schema

LEAST = -30.0  # smallest log density of a feature
Score = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Rows:
    """Encoded training rows, with the features of their columns."""

    matrix: np.ndarray
    schema: Schema
    fixed: list[str]

    @property
    def mutable(self) -> np.ndarray:
        """Positions of the columns that may change."""
        features = self.schema.features
        return np.array([j for j, feature in enumerate(features) if feature.name not in self.fixed], dtype=np.int64)

    def halves(self, rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
        """Return one half as training rows, and the other half."""
        order = rng.permutation(len(self.matrix))
        half = len(order) // 2
        return Rows(self.matrix[order[:half]], self.schema, self.fixed), self.matrix[order[half:]]


@dataclass(frozen=True)
class Fitted:
    """A score, and the sorted scores that calibrate it."""

    score: Score
    calibration: np.ndarray

    def quantile(self, scores: np.ndarray) -> np.ndarray:
        """Return the share of calibrating rows with a score as low or lower (a conformal p-value)."""
        return (1 + np.searchsorted(np.sort(self.calibration), scores, side="right")) / (self.calibration.size + 1)


def fit_plausibility(rows: Rows, rng: np.random.Generator) -> Fitted:
    """Return the plausibility of mcce."""
    scale = Plausibility.fit(rows.matrix, rows.schema.features, rows.mutable)
    return Fitted(lambda matrix: scale.score(matrix, scale.fold_of(matrix)), scale.calibration.values)


def fit_density(sampler: str) -> Callable[[Rows, np.random.Generator], Fitted]:
    """Return the summed log density, calibrated by training rows left out of their own leaves."""

    def fit(rows: Rows, rng: np.random.Generator) -> Fitted:
        chain = _chain(rows, sampler)
        return Fitted(
            lambda matrix: _densities(chain, rows, matrix).sum(axis=1),
            _densities(chain, rows, rows.matrix, training=True).sum(axis=1),
        )

    return fit


def fit_ratio(rows: Rows, rng: np.random.Generator) -> Fitted:
    """Return the summed log ratio of the conditional to the margin, of a ctree chain."""
    half, rest = rows.halves(rng)
    conditional, marginal = _chain(half, "ctree"), _chain(half, "marginal")

    def score(matrix: np.ndarray) -> np.ndarray:
        return (_densities(conditional, half, matrix) - _densities(marginal, half, matrix)).sum(axis=1)

    return Fitted(score, score(rest))


def fit_nearest(rows: Rows, rng: np.random.Generator) -> Fitted:
    """Return minus the mean distance to the five nearest rows."""
    half, rest = rows.halves(rng)
    points = Points(half.matrix, rows.schema.features)
    tree = NearestNeighbors(n_neighbors=NEIGHBOURS, metric="manhattan").fit(points.of(half.matrix))

    def score(matrix: np.ndarray) -> np.ndarray:
        return -tree.kneighbors(points.of(matrix))[0].mean(axis=1)

    return Fitted(score, score(rest))


def fit_isolation(rows: Rows, rng: np.random.Generator) -> Fitted:
    """Return the score of an isolation forest; levels are their codes."""
    half, rest = rows.halves(rng)
    forest = IsolationForest(n_estimators=200, random_state=int(rng.integers(2**31))).fit(half.matrix)
    return Fitted(forest.score_samples, forest.score_samples(rest))


SCORERS: dict[str, Callable[[Rows, np.random.Generator], Fitted]] = {
    "plausibility": fit_plausibility,
    "density, cart": fit_density("cart"),
    "density, ctree": fit_density("ctree"),
    "ratio, ctree": fit_ratio,
    "five nearest": fit_nearest,
    "isolation forest": fit_isolation,
}


def _chain(rows: Rows, sampler: str) -> mcce.ChainModel:
    chain = mcce.ChainModel(sampler=sampler, fixed=rows.fixed, random_state=1)
    return chain.fit(rows.schema.decode(rows.matrix), progress=False)


def _densities(chain: mcce.ChainModel, rows: Rows, matrix: np.ndarray, *, training: bool = False) -> np.ndarray:
    found = chain.log_density(rows.schema.decode(matrix), training=training, per_feature=True)
    assert isinstance(found, pd.DataFrame)
    return np.maximum(found.to_numpy(), LEAST)


def wrong_rows(real: np.ndarray, rows: Rows, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return real rows perturbed in four ways; unchanged rows are dropped, except among the shuffled.

    shuffled      every mutable feature from another of these rows, independently
    one shuffled  one mutable feature from another of these rows
    crossed       one mutable feature from a training row, with another value than the row's own
    rare          one mutable number uniform over the range of the training rows, moved to the nearest observed value:
                  mostly in the tails
    """
    n, each = len(real), np.arange(len(real))
    shuffled = real.copy()
    for j in rows.mutable:
        shuffled[:, j] = real[rng.permutation(n), j]
    one, column = real.copy(), rng.choice(rows.mutable, n)
    one[each, column] = real[rng.permutation(n), column]
    crossed, column = real.copy(), rng.choice(rows.mutable, n)
    for _ in range(20):  # the first donors may have the same value if it is frequent
        same = np.flatnonzero(crossed[each, column] == real[each, column])
        crossed[same, column[same]] = rows.matrix[rng.integers(0, len(rows.matrix), same.size), column[same]]
    found = {"shuffled": shuffled, "one shuffled": one, "crossed": crossed[(crossed != real).any(axis=1)]}
    numbers = [j for j in rows.mutable if rows.schema.features[j].is_numeric]
    if numbers:
        rare, column = real.copy(), rng.choice(numbers, n)
        for j in numbers:
            pushed = np.flatnonzero(column == j)
            values = np.unique(rows.matrix[:, j])
            midway = (values[1:] + values[:-1]) / 2
            rare[pushed, j] = values[np.searchsorted(midway, rng.uniform(values[0], values[-1], pushed.size))]
        found["rare"] = rare[(rare != real).any(axis=1)]
    return found


def power(scores: np.ndarray, real: np.ndarray, level: float) -> float:
    """Return the share of scores rejected by the threshold that rejects exactly `level` of the real rows' scores.

    At the threshold itself rows are rejected with the probability that makes the level exact.
    """
    threshold = np.quantile(real, level, method="inverted_cdf")
    below, equal = (real < threshold).mean(), (real == threshold).mean()
    share = (level - below) / equal
    return float((scores < threshold).mean() + share * (scores == threshold).mean())
