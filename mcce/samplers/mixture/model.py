"""A finite mixture over columns of all kinds: any column given any others.

1. A row has a component k with probability w_k. Given it, the symbols of the columns (`mcce.samplers.mixture.columns`)
   are independent, with probabilities p_kjs, and the scores normal with mean m_k and covariance S_k; a column that has
   no score in a row is left out of the normal.
2. What is known of a row gives each component the weight

       w_k(x) ~ w_k prod_j p_kj(x_j) N(z; m_k, S_k),

   over the known columns j and their known scores z.
3. A column that is not known has the symbol s with probability sum_k w_k(x) p_kjs. If that is "another number", its
   score is sum_k w_k(x) p_kjs N(mean and variance of the score given z, in component k), normalised: a mixture again.
4. Several columns are drawn and scored one after the other, each given the known ones and those before it. (A number
   stands for its own interval of scores as a target, for the middle of it as a given; in all else the order of the
   columns makes no difference.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from mcce.arrays import Bools, Floats, Ints
from mcce.rng import RowStreams
from mcce.samplers.mixture import kernels
from mcce.samplers.mixture.columns import Levels, Numbers
from mcce.samplers.mixture.conditional import Conditional
from mcce.soundness import FLOAT, check_array, check_finite, check_type, require
from mcce.state import stateful
from mcce.table import Feature

_LOG_TAU = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Seen:
    """Rows as a mixture sees them: a symbol of each column, and the scores, NaN where there is none.

    `weights` are those of training rows, if they have any.
    """

    symbols: Ints
    scores: Floats
    weights: Floats | None = None

    def take(self, rows: Ints) -> Seen:
        """Return some rows."""
        return Seen(self.symbols[rows], self.scores[rows], None if self.weights is None else self.weights[rows])


@dataclass(frozen=True)
class Patterns:
    """What is known of the scores of some rows, and what that says of the others; see `mcce.samplers.mixture.kernels`.

    `rest` is the covariance of the unknown scores given the known ones, by pattern and component.
    """

    of_row: Ints
    known: Bools
    precision: Floats
    slopes: Floats
    constant: Floats
    rest: Floats

    @classmethod
    def of(cls, is_known: Bools, covariances: Floats) -> Patterns:
        """Find the patterns of rows by which scores are known of each."""
        return cls.among(*find_patterns(is_known), covariances)

    @classmethod
    def among(cls, of_row: Ints, known: Bools, covariances: Floats) -> Patterns:
        """Compute what the known scores of each pattern say of the others."""
        precision, slopes, rest = np.zeros((3, len(known), *covariances.shape))
        constant = np.zeros((len(known), len(covariances)))
        for q, seen in enumerate(known):
            inside, across, outside = _block(seen, seen), _block(~seen, seen), _block(~seen, ~seen)
            inverse = np.linalg.inv(covariances[inside])
            precision[q][inside] = inverse
            constant[q] = 0.5 * np.linalg.slogdet(inverse)[1] - 0.5 * seen.sum() * _LOG_TAU
            if not seen.all():
                slopes[q][across] = covariances[across] @ inverse
                explained = slopes[q][across] @ covariances[_block(seen, ~seen)]
                rest[q][outside] = covariances[outside] - explained
        return cls(of_row, known, precision, slopes, constant, rest)


def find_patterns(is_known: Bools) -> tuple[Ints, Bools]:
    """Return the pattern of each row, and which scores are known in each pattern."""
    n, d = is_known.shape
    if is_known.all():
        return np.zeros(n, dtype=np.int64), np.ones((1, d), dtype=bool)
    packed, place = np.unique(np.packbits(is_known, axis=1), axis=0, return_inverse=True)
    return place.ravel().astype(np.int64), np.unpackbits(packed, axis=1, count=d).astype(bool)


@stateful("mixture.Mixture")
@dataclass(frozen=True)
class Mixture:
    """A fitted mixture.

    Attributes
    ----------
    columns : what is seen of each column.
    weights : of the components.
    shares : (components, symbols) probabilities of the symbols, column after column.
    means, covariances : of the scores, by component; columns of numbers with scores, in order.
    """

    columns: tuple[Levels | Numbers, ...]
    weights: Floats
    shares: Floats
    means: Floats
    covariances: Floats

    def check_state(self) -> None:
        """Refuse parts that are no mixture."""
        check_type(self.columns, "columns", tuple)
        for column in self.columns:
            check_type(column, "columns", Levels, Numbers)
        check_array(self.weights, "weights", FLOAT, None)
        k, d = self.weights.size, sum(column.n_scores for column in self.columns)
        require(k > 0 and bool((self.weights > 0.0).all()), "weights are none, or not above 0")
        check_array(self.shares, "shares", FLOAT, k, sum(column.n_symbols for column in self.columns))
        check_array(self.means, "means", FLOAT, k, d)
        check_array(self.covariances, "covariances", FLOAT, k, d, d)
        for name in ("weights", "shares", "means", "covariances"):
            check_finite(getattr(self, name), name)
        require(bool((self.shares >= 0.0).all() and (self.shares <= 1.0).all()), "shares are no probabilities")
        require(float(np.abs(self.means).max(initial=0.0)) < 1e6, "means are no scores")
        skew = np.abs(self.covariances - self.covariances.transpose(0, 2, 1)).max(initial=0.0)
        require(float(skew) < 1e-9, "covariances is not symmetric")  # sums that fill missing scores round
        eigenvalues = np.linalg.eigvalsh(self.covariances) if d else np.ones((1, 1))
        require(eigenvalues.min() > 1e-9 and eigenvalues.max() < 1e9, "covariances is not positive definite")

    def check_columns(self, features: Sequence[Feature]) -> None:
        """Refuse a mixture that is not of these columns."""
        require(len(self.columns) == len(features), "columns are not as many as there are")
        for column, feature in zip(self.columns, features):
            column.check_column(feature)

    @property
    def n_components(self) -> int:
        """How many components there are."""
        return int(self.weights.size)

    @cached_property
    def first(self) -> Ints:
        """Where the symbols of each column begin in `shares`."""
        return np.cumsum([0, *(column.n_symbols for column in self.columns)]).astype(np.int64)

    @cached_property
    def place(self) -> Ints:
        """The place of each column's score; of one without, of the next."""
        return np.cumsum([0, *(column.n_scores for column in self.columns)]).astype(np.int64)

    def take(self, columns: Sequence[int]) -> Mixture:
        """Return the mixture of some columns alone."""
        symbols = [s for j in columns for s in range(self.first[j], self.first[j + 1])]
        scores = [s for j in columns for s in range(self.place[j], self.place[j + 1])]
        return Mixture(
            tuple(self.columns[j] for j in columns),
            self.weights,
            np.ascontiguousarray(self.shares[:, symbols]),
            np.ascontiguousarray(self.means[:, scores]),
            np.ascontiguousarray(self.covariances[_block(scores, scores)]),
        )

    def see(self, matrix: Floats, known: Sequence[int] | None = None) -> Seen:
        """Return the symbols and scores of rows; of the known columns alone, if these are named."""
        n = len(matrix)
        symbols, scores = np.full((n, len(self.columns)), -1), np.full((n, self.place[-1]), np.nan)
        for j in range(len(self.columns)) if known is None else known:
            column, values = self.columns[j], matrix[:, j]
            symbols[:, j] = column.symbols(values)
            if isinstance(column, Numbers) and column.n_scores:
                scores[:, self.place[j]] = column.scores(values)
        return Seen(symbols.astype(np.int64), scores)

    def log_joint(self, seen: Seen, patterns: Patterns | None = None) -> Floats:
        """Return the log of w_k times the density of what is seen, by row and component (step 2)."""
        patterns = patterns or Patterns.of(~np.isnan(seen.scores), self.covariances)
        out = np.tile(np.log(self.weights), (len(seen.symbols), 1))
        kernels.add_symbols(seen.symbols, self.first, self._log_shares, out)
        of_rows = (patterns.of_row, patterns.known)
        kernels.add_normal(seen.scores, *of_rows, self.means, patterns.precision, patterns.constant, out)
        return out

    def conditional(self, matrix: Floats, known: Sequence[int], target: int) -> Conditional:
        """Return the distribution of one column in each row, given the known ones (step 3)."""
        seen = self.see(matrix, known)
        patterns = Patterns.of(~np.isnan(seen.scores), self.covariances)
        joint = self.log_joint(seen, patterns)
        log_weights = joint - scipy.special.logsumexp(joint, axis=1, keepdims=True)
        shares = self.shares[:, self.first[target] : self.first[target + 1]]
        column, at = self.columns[target], self.place[target]
        if not column.n_scores:
            return Conditional(column, log_weights, shares, np.empty((0, 0)), np.empty((0, 0)))
        means = np.empty(joint.shape)
        kernels.predict_score(seen.scores, patterns.of_row, patterns.known, self.means, patterns.slopes, int(at), means)
        sds = np.sqrt(patterns.rest[:, :, at, at])[patterns.of_row]
        return Conditional(column, log_weights, shares, means, sds)

    def draw(self, matrix: Floats, known: Sequence[int], targets: Sequence[int], rng: RowStreams) -> Floats:
        """Return the rows with the target columns drawn given the known ones (step 4)."""
        drawn, known = np.array(matrix, dtype=np.float64), list(known)
        for j in targets:
            drawn[:, j] = self.conditional(drawn, known, j).draw(rng.child("column", j))
            known.append(j)
        return drawn

    def log_density(self, matrix: Floats, known: Sequence[int], targets: Sequence[int]) -> Floats:
        """Return the log density of the target columns of each row given the known ones (step 4)."""
        total, known = np.zeros(len(matrix)), list(known)
        for j in targets:
            total += self.conditional(matrix, known, j).log_density(matrix[:, j])
            known.append(j)
        return total

    @cached_property
    def _log_shares(self) -> Floats:
        # a level that no training row has says nothing of the component: it has the same share, 0, in all of them
        return np.log(self.shares, out=np.zeros(self.shares.shape), where=self.shares > 0.0)


def _block(rows: Any, columns: Any) -> tuple[Any, ...]:
    """Return the index of some rows and columns of the covariances of all components."""
    return (slice(None), *np.ix_(rows, columns))
