"""The plausibility of a row: the share of real rows that are no more plausible, calibrated out of fold.

1. The training rows are divided into two halves at random. Every part of the score is learned on one half, and gives
   each row one or several numbers, larger for more plausible rows:
   `Residuals`  for each number, how near its normal score is to its regression on all other columns;
   `Cells`      for each column, how likely its value is in the leaf of a tree of all other columns;
   `Joint`      the density of all columns together, a mixture of normals times multinomials (`mcce.samplers.mixture`);
   `Nearest`    how near the row is to its nearest real rows.
2. The place of a number is how many of the other half's rows have one that is at most as large. A part rates a row by
   its least place, and its rating is calibrated in the same way, so that parts with many numbers and with one have the
   same say. The score of a row is its least calibrated rating; its level is the share of the other half's rows with a
   score at most as large. At a floor of 0.05 one real row in twenty is rejected.
3. A row is judged for its change. A cell counts if it was changed, or is less likely than in the factual; the row as a
   whole counts if it is less likely than the factual. All others pass. A place is a count, so less likely means lower
   by more than its standard error, the root of the count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri
from sklearn.covariance import ledoit_wolf
from sklearn.tree import DecisionTreeClassifier

from mcce._utils import Bools, Floats, Ints, jit
from mcce.distances import Gower, changed
from mcce.rng import derive_key
from mcce.samplers.mixture import Mixture, product
from mcce.table import Table

MOST_ROWS = 20_000  # training rows that are read; a share of 0.05 of half of them has a standard error of 0.002
LEAST_LEAF = 50  # rows of a leaf: a share of 0.05 is then 2.5 of them
MOST_BINS = 24  # of a number
MOST_INPUTS = 30  # columns, drawn at random, among which a tree looks for each split
N_NEAREST, MOST_NEAR = 5, 2000  # nearest rows, and those among which they are searched for, which takes milliseconds
LEAST_SHARE = 0.01  # of a level among the learned rows; rarer ones are no column of the regressions


class Part(Protocol):
    """A part of the score."""

    @property
    def columns(self) -> Ints:
        """The column of each of its numbers, -1 for the row as a whole."""

    def numbers(self, rows: Floats) -> Floats:
        """Return the numbers of each row."""


@dataclass(frozen=True)
class Cells:
    """The log share of each value among the rows in its leaf, by one tree for each column."""

    columns: Ints
    edges: tuple[Floats, ...]
    trees: tuple[Any, ...]
    shares: tuple[Floats, ...]

    @classmethod
    def fit(cls, table: Table, seed: int) -> Cells:
        """Grow the trees."""
        matrix = table.matrix
        inputs = _filled(matrix)
        columns, edges, trees, shares = [], [], [], []
        for j in range(matrix.shape[1]):
            ends = _bin_ends(matrix[:, j])
            if ends.size < 2:
                continue
            bins = np.searchsorted(ends, _filled(matrix[:, [j]])[:, 0])
            others = inputs.copy()
            others[:, j] = 0.0
            tree = DecisionTreeClassifier(
                min_samples_leaf=LEAST_LEAF,
                max_features=min(MOST_INPUTS, matrix.shape[1]),
                random_state=derive_key(seed, j) % 2**32,
            )
            tree.fit(others, bins)
            counts = np.zeros((tree.tree_.node_count, ends.size))
            np.add.at(counts, (tree.apply(others), bins), 1.0)
            marginal = np.bincount(bins, minlength=ends.size) / bins.size
            n_leaf = counts.sum(axis=1, keepdims=True)
            columns.append(j)
            edges.append(ends)
            trees.append(tree.tree_)
            shares.append(np.log((counts + marginal) / (n_leaf + 1.0)))
        return cls(np.array(columns, dtype=np.int64), tuple(edges), tuple(trees), tuple(shares))

    def numbers(self, rows: Floats) -> Floats:
        """Return the log shares."""
        inputs = _filled(rows)
        log_shares = np.empty((len(rows), self.columns.size))
        for i, (j, ends, tree, shares) in enumerate(zip(self.columns, self.edges, self.trees, self.shares)):
            values = inputs[:, j].copy()
            bins = np.minimum(np.searchsorted(ends, values.astype(np.float64)), ends.size - 1)
            inputs[:, j] = 0.0
            log_shares[:, i] = shares[tree.apply(inputs), bins]
            inputs[:, j] = values
        return log_shares


def _filled(matrix: Floats) -> np.ndarray:
    """Return rows for trees: a missing value is less than all others, which float32 must hold."""
    return np.where(np.isnan(matrix), -1e30, np.clip(matrix, -9e29, 9e29)).astype(np.float32)


def _bin_ends(column: Floats) -> Floats:
    """Return the upper ends of at most 24 bins of about equal numbers of rows; the missing values are one more."""
    present = np.float64(_filled(column[~np.isnan(column)]))
    values = np.unique(present)
    most = min(MOST_BINS, max(1, column.size // 4))  # scikit-learn warns of as many classes as half of the rows
    if values.size > most:
        values = np.unique(np.quantile(present, np.arange(1, most + 1) / most, method="higher"))
    return values if present.size == column.size else np.concatenate([[-1e30], values])


@dataclass(frozen=True)
class NormalScores:
    """Normal scores of a number's mid-ranks among learned values: at each distinct value, and before and after it."""

    values: Floats
    scores: Floats

    @classmethod
    def fit(cls, column: Floats) -> NormalScores:
        """Learn the ranks."""
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        upto = np.cumsum(counts)
        places = np.insert(np.column_stack([upto - counts / 2, upto]).ravel(), 0, 0.0)
        n = max(counts.sum(), 1)
        return cls(values, ndtri(np.clip(places, 0.5, n - 0.5) / n))

    def of(self, column: Floats) -> Floats:
        """Return the scores; 0, the middle, for missing values."""
        place = np.searchsorted(self.values, column)
        is_equal = self.values[np.minimum(place, self.values.size - 1)] == column
        return np.where(np.isnan(column), 0.0, self.scores[np.where(np.isnan(column), 0, 2 * place + is_equal)])


@dataclass(frozen=True)
class Residuals:
    """Minus the size of each normal score's residual in its regression on all other columns, in standard deviations.

    Levels enter the regressions as indicators. The last number is the row as a whole: minus the Mahalanobis distance.
    """

    columns: Ints
    scores: tuple[NormalScores, ...]
    levels: tuple[tuple[int, float, float], ...]
    precision: Floats

    @classmethod
    def fit(cls, table: Table) -> Residuals:
        """Learn normal scores and levels, and their precision matrix."""
        matrix, numbers, levels = table.matrix, [], []
        for j, feature in enumerate(table.features):
            values, counts = np.unique(matrix[:, j], return_counts=True)
            if feature.kind != "categorical":
                numbers += [j] * (np.unique(values[~np.isnan(values)]).size > 1)
            elif values.size > 1:
                common = (counts >= LEAST_SHARE * counts.sum()) & ~np.isnan(values)
                common[np.argmax(counts)] = False
                levels += [(j, value, count / counts.sum()) for value, count in zip(values[common], counts[common])]
        scores = tuple(NormalScores.fit(matrix[:, j]) for j in numbers)
        fitted = cls(np.array([*numbers, -1]), scores, tuple(levels), np.eye(len(numbers) + len(levels)))
        covariance = ledoit_wolf(fitted._scores(matrix), assume_centered=True)[0] if numbers or levels else np.eye(0)
        return replace(fitted, precision=np.linalg.pinv(covariance, hermitian=True))  # few rows: singular

    def _scores(self, rows: Floats) -> Floats:
        """Return normal scores, and indicators with mean 0 and variance 1."""
        scores = np.empty((len(rows), len(self.scores) + len(self.levels)))
        for i, of_column in enumerate(self.scores):
            scores[:, i] = of_column.of(rows[:, self.columns[i]])
        for i, (j, value, share) in enumerate(self.levels, len(self.scores)):
            scores[:, i] = ((rows[:, j] == value) - share) / np.sqrt(share * (1.0 - share))
        return scores

    def numbers(self, rows: Floats) -> Floats:
        """Return the residuals, and the distance."""
        scores = self._scores(rows)
        weighted = product(scores, self.precision)
        n = len(self.scores)
        residuals = np.abs(weighted[:, :n]) / np.sqrt(np.diag(self.precision)[:n])
        return -np.column_stack([residuals, np.sqrt(np.maximum((weighted * scores).sum(axis=1), 0.0))])


@dataclass(frozen=True)
class Joint:
    """The log density of the mixture."""

    mixture: Mixture
    columns: Ints

    @classmethod
    def fit(cls, table: Table, seed: int) -> Joint:
        """Fit the mixture."""
        return cls(Mixture.fit(table, random_state=derive_key(seed, "mixture")), np.array([-1]))

    def numbers(self, rows: Floats) -> Floats:
        """Return the log density."""
        return self.mixture.log_density(rows)[:, None]


@dataclass(frozen=True)
class Nearest:
    """Minus the mean of Gower's distances to the five nearest real rows, as a sum over the columns."""

    cells: Floats
    scale: Floats
    columns: Ints

    @classmethod
    def fit(cls, table: Table) -> Nearest:
        """Keep the rows, column by column."""
        return cls(np.ascontiguousarray(table.matrix.T), Gower.fit(table).scale, np.array([-1]))

    def numbers(self, rows: Floats) -> Floats:
        """Return the distances."""
        means = np.empty(len(rows))
        _mean_of_nearest(self.cells, self.scale, rows, min(N_NEAREST, self.cells.shape[1]), means)
        return -means[:, None]


@jit
def _mean_of_nearest(cells, scale, rows, n_nearest, means):  # type: ignore[no-untyped-def]
    """Write the mean distance of each row to the nearest of the rows in `cells`, which are stored by column."""
    steps, nearest = np.empty(cells.shape[1]), np.empty(n_nearest)
    for i in range(rows.shape[0]):
        steps[:] = 0.0
        for j in range(cells.shape[0]):
            values, value, factor = cells[j], rows[i, j], scale[j]
            of_missing = 0.0 if np.isnan(value) else 1.0
            if np.isnan(value) or factor == 0.0:
                for k in range(values.size):
                    step = 0.0 if values[k] == value else 1.0
                    steps[k] += step if values[k] == values[k] else of_missing
            else:  # a loop without branches, which runs on several rows at once
                for k in range(values.size):
                    step = abs(values[k] - value) * factor
                    steps[k] += step if values[k] == values[k] else of_missing
        nearest[:] = np.inf
        for k in range(steps.size):
            if steps[k] < nearest[-1]:
                at = n_nearest - 1
                while at > 0 and nearest[at - 1] > steps[k]:
                    nearest[at] = nearest[at - 1]
                    at -= 1
                nearest[at] = steps[k]
        means[i] = 0.0
        for step in nearest:
            means[i] += step / n_nearest


@dataclass(frozen=True)
class Judged:
    """Factuals, and for each part the least numbers with which a cell, or the row, is no less likely than in them."""

    factuals: Floats
    bounds: tuple[Floats, ...]

    def take(self, which: Ints) -> Judged:
        """Return those of some factuals."""
        return Judged(self.factuals[which], tuple(bounds[which] for bounds in self.bounds))


@dataclass(frozen=True)
class Score:
    """The plausibility score.

    Attributes
    ----------
    parts : the parts, fast ones first: a row that fails one is not judged by the next.
    held_out : for each part, its numbers of the other half's rows, each column in order.
    ratings : for each part, the least places of the other half's rows, in order.
    scores : the scores of the other half's rows, in order.
    """

    parts: tuple[Part, ...]
    held_out: tuple[Floats, ...]
    ratings: tuple[Ints, ...]
    scores: Ints

    @classmethod
    def learn(cls, table: Table, seed: int) -> Score:
        """Learn the score from training rows."""
        order = np.random.default_rng(derive_key(seed, "score")).permutation(table.n_rows)[:MOST_ROWS]
        learned, other = table.take(np.sort(order[::2])), table.matrix[np.sort(order[1::2])]
        if not len(other):  # a table of one row
            other = learned.matrix
        parts: tuple[Part, ...] = (
            Residuals.fit(learned),
            Cells.fit(learned, derive_key(seed, "cells")),
            Joint.fit(learned, seed),
            Nearest.fit(table.take(np.sort(order[: 2 * MOST_NEAR : 2]))),
        )
        numbers = [part.numbers(other) for part in parts]
        held_out = tuple(np.sort(each, axis=0) for each in numbers)
        ratings = [_places(*pair).min(axis=1, initial=len(other)) for pair in zip(held_out, numbers)]
        in_order = tuple(np.sort(rating) for rating in ratings)
        calibrated = [np.searchsorted(*pair, side="right") for pair in zip(in_order, ratings)]
        return cls(parts, held_out, in_order, np.sort(np.min(calibrated, axis=0)))

    def judge(self, factuals: Floats) -> Judged:
        """Return what the rows for these factuals are judged against."""
        bounds = []
        for part, held_out in zip(self.parts, self.held_out):
            places = _places(held_out, part.numbers(factuals))
            bounds.append(_at(held_out, places - np.sqrt(places).astype(np.int64)))
        return Judged(factuals, tuple(bounds))

    def at_floor(self, rows: Floats, judged: Judged, owner: Ints, floor: float) -> Bools:
        """Return which rows are at or above the floor, judged for their changes."""
        least_score = np.quantile(self.scores, floor, method="lower")
        is_plausible = np.ones(len(rows), dtype=bool)
        for part, held_out, ratings, bounds in zip(self.parts, self.held_out, self.ratings, judged.bounds):
            open_rows = np.flatnonzero(is_plausible)
            examined, whose = rows[open_rows], owner[open_rows]
            numbers = part.numbers(examined)
            passes = numbers >= _at(held_out, np.full((1, numbers.shape[1]), ratings[least_score - 1]))
            passes |= (numbers >= bounds[whose]) & ~_is_changed(part, examined, judged.factuals[whose])
            is_plausible[open_rows] = passes.all(axis=1)
        return is_plausible

    def level(self, rows: Floats, judged: Judged, owner: Ints) -> Floats:
        """Return the level of rows, judged for their changes."""
        scores = np.full(len(rows), self.scores.size)
        for part, held_out, ratings, bounds in zip(self.parts, self.held_out, self.ratings, judged.bounds):
            numbers = part.numbers(rows)
            counts = _is_changed(part, rows, judged.factuals[owner]) | (numbers < bounds[owner])
            places = np.where(counts, _places(held_out, numbers), self.scores.size)
            rating = places.min(axis=1, initial=self.scores.size)
            scores = np.minimum(scores, np.searchsorted(ratings, rating, side="right"))
        return np.searchsorted(self.scores, scores, side="right") / self.scores.size


def _is_changed(part: Part, rows: Floats, factuals: Floats) -> Bools:
    """Return for which numbers of a part the column is changed."""
    return changed(rows[:, part.columns], factuals[:, part.columns]) & (part.columns >= 0)


def _places(ordered: Floats, numbers: Floats) -> Ints:
    """Return, by column, how many of the ordered numbers are at most as large."""
    places = np.empty(numbers.shape, dtype=np.int64)
    for i in range(numbers.shape[1]):
        places[:, i] = np.searchsorted(ordered[:, i], numbers[:, i], side="right")
    return places


def _at(ordered: Floats, places: Ints) -> Floats:
    """Return, by column, the least number with which so many of the ordered numbers are at most as large."""
    numbers = np.take_along_axis(ordered, np.maximum(places - 1, 0), axis=0)
    return np.where(places > 0, numbers, -np.inf)
