"""The linear part of plausibility: rows as normal scores, with a shrunk covariance.

1. Normal scores. A number becomes the standard normal quantile of its rank among training rows, linear between these; a
   frequent level becomes an indicator, except the most frequent one; a missing number has the score 0 and an indicator.
   All of these are standardised.
2. The covariance of the scores is shrunk. Its inverse P gives, for standardised scores z, the conditional residual of
   number j given all other columns, (P z)_j / sqrt(P_jj), and the squared Mahalanobis distance z' P z.
3. The shrinkage is a share of that of Ledoit and Wolf (2004), which is meant for the covariance and not for its
   inverse: it enlarges the conditional variance of nearly collinear numbers, and so hides their residuals. The share is
   the one of `SHARES` with the largest Gaussian likelihood of each half of the rows, given the covariance of the other
   half.
4. The largest absolute residual detects a number that contradicts the others where they are nearly collinear: leaves of
   trees are too coarse for that. The distance detects rows whose cells are likely one by one, but not jointly.

Only linear dependence between normal scores is detected. The covariance of a fold is that of the rows outside it; the
share of the shrinkage is chosen once, on all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from mcce.base.arrays import Floats, Int32s, Ints
from mcce.plausibility.kernels import KnownNormalScores, MadeRows, NormalScores, Precision, linear_parts
from mcce.storage.fields import FLOAT, INT32, require, stored
from mcce.storage.state import stateful
from mcce.table import Feature

MOST_KNOTS = 1024  # knots of the normal scores of a number
FREQUENT = 20  # fewest rows of a level with an indicator
MOST_LEVELS = 32  # most levels of a column with indicators
SHARES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # shares of the shrinkage of Ledoit and Wolf
RIDGE = 1e-9  # added to the variances


@stateful("plausibility.Linear")
@dataclass(frozen=True)
class Linear:
    """Normal scores of all columns, and their precision by fold.

    Attributes
    ----------
    knots, scores, first : values of the numbers and their scores, one column after the other, and where each begins.
    levels, first_level : the positions of the indicators of levels, -1 for none, one column after the other, and where
        each begins.
    number, missing : by column, the positions of its score and of its missing indicator, -1 for none.
    centre, deviation : mean and standard deviation of each score.
    precision : inverse covariance by fold.
    """

    knots: Floats = stored(FLOAT, "knots")
    scores: Floats = stored(FLOAT, "knots")
    first: Int32s = stored(INT32, None)
    levels: Int32s = stored(INT32, None)
    first_level: Int32s = stored(INT32, None)
    number: Int32s = stored(INT32, "columns")
    missing: Int32s = stored(INT32, "columns")
    centre: Floats = stored(FLOAT, "places", finite=True)
    deviation: Floats = stored(FLOAT, "places", above=0.0)
    precision: Floats = stored(FLOAT, "folds", "places", "places", finite=True)

    def check_state(self) -> None:
        """Raise if the parts are inconsistent."""
        n_columns, n_places = self.number.size, self.centre.size
        for first, of in ((self.first, self.knots), (self.first_level, self.levels)):
            require(first.size == n_columns + 1, "first has another number of columns than number")
            require(bool((np.diff(first) >= 0).all()) and int(first[-1]) == of.size, "first has an invalid position")
        for places in (self.levels, self.number, self.missing):
            require(bool(((places >= -1) & (places < n_places)).all()), "a position does not exist")

    @classmethod
    def fit(cls, matrix: Floats, features: Sequence[Feature], folds: Sequence[Ints], some: Ints) -> Linear:
        """Learn the scores from some rows, and the precision of each fold from the rows of the other folds."""
        knots: list[Floats] = []
        levels: list[Ints] = []
        number, missing = np.full((2, len(features)), -1, dtype=np.int32)
        n_places = 0
        for j, feature in enumerate(features):
            values = matrix[some, j]
            known = values[~np.isnan(values)]
            knots.append(known if feature.is_numeric else known[:0])
            levels.append(np.full(0 if feature.is_numeric else feature.n_levels, -1, dtype=np.int64))
            if feature.is_numeric:
                number[j], n_places = n_places, n_places + 1
            else:
                counts = np.bincount(known.astype(np.int64), minlength=feature.n_levels)
                common = np.argsort(-counts, kind="stable")[1 : MOST_LEVELS + 1]
                common = common[counts[common] >= FREQUENT]
                levels[j][common] = n_places + np.arange(common.size)
                n_places += common.size
            if values.size - known.size >= FREQUENT:
                missing[j], n_places = n_places, n_places + 1
        of_knots = [_normal_scores(values) for values in knots]
        blank = cls(
            np.concatenate([*(x for x, _ in of_knots), np.empty(0)]),
            np.concatenate([*(z for _, z in of_knots), np.empty(0)]),
            _starts([x for x, _ in of_knots]),
            np.concatenate([*levels, np.empty(0)]).astype(np.int32),
            _starts(levels),
            number,
            missing,
            np.zeros(n_places),
            np.ones(n_places),
            np.empty((0, n_places, n_places)),
        )
        z = blank.expand(matrix[some])
        deviation = z.std(axis=0)
        deviation[deviation < 1e-9] = 1.0
        scaled = replace(blank, centre=z.mean(axis=0), deviation=deviation)
        read = np.unique(np.concatenate([some, *folds]))  # each row once, as it is in several folds
        z = scaled.expand(matrix[read])
        share = _choose_share(z[np.searchsorted(read, some)])
        precision = np.array([_precision(z[np.searchsorted(read, rows)], share) for rows in folds])
        return replace(scaled, precision=precision.reshape(len(folds), n_places, n_places))

    def expand(self, matrix: Floats) -> Floats:
        """Return the standardised scores of encoded rows."""
        out = np.tile(-self.centre / self.deviation, (matrix.shape[0], 1))
        for j, place in enumerate(self.number):
            values = matrix[:, j]
            missing = np.isnan(values)
            if place >= 0:
                out[:, place] += np.where(missing, 0.0, self._score(j, values)) / self.deviation[place]
                at = np.full(values.size, -1)
            else:
                levels = np.append(self.levels[self.first_level[j] : self.first_level[j + 1]], -1)
                at = levels[np.where(missing, -1, values).clip(max=levels.size - 1).astype(np.int64)]
            at = np.where(missing, self.missing[j], at)
            rows = np.flatnonzero(at >= 0)
            out[rows, at[rows]] += 1.0 / self.deviation[at[rows]]
        return out

    def _score(self, j: int, values: Floats) -> Floats:
        """Return the normal scores of the values of a column of numbers, linear between knots."""
        of_column = slice(self.first[j], self.first[j + 1])
        knots, scores = self.knots[of_column], self.scores[of_column]
        if knots.size < 2:
            return np.full(values.size, scores.sum())
        low = np.searchsorted(knots[1:-1], values, side="right")
        share = (values - knots[low]) / (knots[low + 1] - knots[low])
        between = scores[low] + share * (scores[low + 1] - scores[low])
        return np.where(values <= knots[0], scores[0], np.where(values >= knots[-1], scores[-1], between))

    def parts(self, made: MadeRows, fold: Ints, known: KnownNormalScores) -> tuple[Floats, Floats]:
        """Return the largest absolute residual of rows, and their squared distance; 0 for those of fold -1."""
        residual, square = np.zeros((2, fold.size))
        room = np.empty(self.centre.size)
        for k in folds_of(fold):
            some = np.flatnonzero(fold == k)
            linear_parts(made, some, self._scores, self._precisions[k], known, room, residual, square)
        # rounding preserves ties: the order of summation depends on the origin of a row
        return residual.round(8), square.round(6)

    def room(self, n: int) -> KnownNormalScores:
        """Return an empty cache for n origins."""
        return KnownNormalScores(np.full(n, -1, dtype=np.int64), np.empty((n, self.centre.size)), np.empty(n))

    @cached_property
    def _scores(self) -> NormalScores:
        return NormalScores(
            self.knots, self.scores, self.first, self.levels, self.first_level, self.number, self.missing,
            self.deviation,
        )  # fmt: skip

    @cached_property
    def _precisions(self) -> list[Precision]:
        row = np.full(self.number.size, np.nan)
        z = self.expand(row[None])[0]
        products = [(each * z).sum(axis=1) for each in self.precision]
        return [
            Precision(each, 1.0 / np.sqrt(np.diag(each)), row, product, float((z * product).sum()))
            for each, product in zip(self.precision, products)
        ]


def folds_of(fold: Ints) -> list[int]:
    """Return the folds that occur; -1 is no fold. A kernel call costs nearly the same without rows as with a few."""
    folds: list[int] = np.flatnonzero(np.bincount(fold + 1)[1:]).tolist()
    return folds


def _starts(parts: Sequence[Floats | Ints]) -> Int32s:
    """Return where consecutive parts begin, and where the last ends."""
    return np.cumsum([0, *(part.size for part in parts)]).astype(np.int32)


def _normal_scores(values: Floats) -> tuple[Floats, Floats]:
    """Return some of the values of a column in order, and the normal quantiles of their middle ranks."""
    if not values.size:
        return values, values
    distinct, counts = np.unique(values, return_counts=True)
    scores = scipy.special.ndtri((np.cumsum(counts) - counts / 2) / values.size)
    some = np.unique(np.linspace(0, distinct.size - 1, MOST_KNOTS).astype(np.intp))
    return distinct[some], scores[some]


def _precision(z: Floats, share: float) -> Floats:
    """Return the inverse of the shrunk covariance of standardised scores."""
    n, d = z.shape
    if n < 2 or not d:
        return np.eye(d)
    # scikit-learn is slow to import
    from sklearn.covariance import empirical_covariance, ledoit_wolf_shrinkage, shrunk_covariance

    covariance = shrunk_covariance(empirical_covariance(z), share * ledoit_wolf_shrinkage(z))
    return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(covariance + RIDGE * np.eye(d)), np.eye(d)))


def _choose_share(z: Floats) -> float:
    """Return the share of Ledoit and Wolf's shrinkage at which halves of the rows are likeliest given each other."""
    n, d = z.shape
    if n < 4 or not d:
        return SHARES[0]
    from sklearn.covariance import empirical_covariance, ledoit_wolf_shrinkage

    shrinkage = np.array(SHARES)[:, None] * ledoit_wolf_shrinkage(z)
    halves = [empirical_covariance(half) for half in (z[::2], z[1::2])]
    likelihood = np.zeros(len(SHARES))
    for known, judged in (halves, halves[::-1]):
        values, vectors = scipy.linalg.eigh(known)  # shrinkage does not change the eigenvectors
        variances = (1.0 - shrinkage) * np.maximum(values, 0.0) + shrinkage * values.mean() + RIDGE
        squares = ((judged @ vectors) * vectors).sum(axis=0)
        likelihood -= (np.log(variances) + squares / variances).sum(axis=1)
    return SHARES[int(np.argmax(likelihood))]
