"""A finite mixture over columns of all kinds, with the conditional of any column given any others.

1. A column is a symbol: a level, a missing value, a frequent number (`ColumnDensity.classes`), or "another number",
   which has a score: the normal quantile of the share of these numbers below it. Unobserved values have no symbol (-1).
2. Given component k (probability w_k), symbols are independent with probabilities p_kjs, and scores normal with mean
   m_k and covariance S_k. Known columns give the weights w_k(x) ~ w_k prod_j p_kj(x_j) N(z; m_k, S_k).
3. An unknown column has the symbol s with probability sum_k w_k(x) p_kjs, and a mixture of normal scores. A score
   corresponds to the training number whose interval of shares contains it, so restricted draws are exact. Several
   columns are drawn sequentially. Densities of numbers are those of `mcce.samplers.copula.margins`.
4. The fit is by EM, started as in k-means++ (Arthur and Vassilvitskii 2007), with missing scores replaced by their
   conditional means and covariances (Ghahramani and Jordan 1994), until the mean log density increases by less than
   1e-4, at most 100 steps. 1, 2, 4, ... components are compared on a held-out fifth, until two in a row are worse than
   the best.
5. Each component has pseudo-rows: 2 with the symbols of all rows, and d + 2 with covariance K^(-2/d) I for d scores and
   K components (Fraley and Raftery 2007).
6. Integer weights repeat rows; others multiply the shares of the E step, the log densities and the probabilities of
   starting rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.rng import RowStreams, derive_key
from mcce.samplers.base import IMPOSSIBLE, BaseMeasure, supported_by
from mcce.samplers.copula.margins import Margin, place_numbers
from mcce.samplers.density import ColumnDensity, find_point_masses
from mcce.samplers.mixture import kernels
from mcce.samplers.predictions import draw_levels
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.restricted import RestrictedDraw, Within, log_of
from mcce.samplers.smoothing import log_normal_mass, truncated_normal
from mcce.storage.fields import FLOAT, check_array, require, stored
from mcce.storage.state import stateful
from mcce.table import Column, Feature, Table
from mcce.table.weights import as_copies, copies_at, mean_of


@stateful("mixture.Levels")
@dataclass(frozen=True)
class Levels:
    """A column of levels; `missing` is whether a missing value is an additional symbol."""

    n_levels: int = stored(int, least=0, most=2**31)
    missing: bool = stored(bool)

    def check_column(self, feature: Feature) -> None:
        """Raise if the levels are not those of the column."""
        require(not feature.is_numeric and feature.n_levels == self.n_levels, "n_levels are not those of the column")

    @property
    def n_symbols(self) -> int:
        return self.n_levels + self.missing

    @property
    def n_scores(self) -> int:
        """Number of symbols with a score: none."""
        return 0

    def symbols(self, values: Floats) -> Ints:
        is_missing = np.isnan(values)
        return np.where(is_missing, self.n_levels if self.missing else -1, np.where(is_missing, 0, values)).astype(
            np.int64
        )

    @property
    def base_measure(self) -> BaseMeasure:
        return "counting"


@stateful("mixture.Numbers")
@dataclass(frozen=True)
class Numbers:
    """A column of numbers.

    Attributes
    ----------
    classes : the numbers that are symbols, ascending.
    margin : the other training numbers with their shares; None if there are none.
    missing : whether a missing value is one more symbol.
    """

    classes: Floats = stored(FLOAT, None, rising=True)
    margin: Margin | None = stored(Margin, optional=True)
    missing: bool = stored(bool)

    @classmethod
    def of(cls, values: Floats, weights: Floats | None = None) -> Numbers:
        """Read the training values of a column; weights count as copies."""
        is_known = ~np.isnan(values)
        known, weight = values[is_known], None if weights is None else weights[is_known]
        missing = known.size < values.size
        if not known.size:
            return cls(np.empty(0), None, missing)
        classes = ColumnDensity.of(known, weight).classes
        distinct, counts, has_mass = find_point_masses(known, weight)
        other = ~np.isin(distinct, classes)
        if not other.any():
            return cls(classes, None, missing)
        n = int((~np.isin(known, classes)).sum())
        total = n if weight is None else float(counts[other].sum())
        shares = np.concatenate([[0.0], np.cumsum(counts[other]) / total])
        shares[-1] = 1.0
        by_weight = None if weight is None else total
        return cls(classes, Margin(distinct[other], shares, has_mass[other], True, n, by_weight), missing)

    def check_state(self) -> None:
        """Raise if the margin is not ordered."""
        require(self.margin is None or self.margin.ordered, "margin is that of an unordered column")

    def check_column(self, feature: Feature) -> None:
        """Raise if the column has levels."""
        require(feature.is_numeric, "classes are numbers, and the column has levels")

    @property
    def n_symbols(self) -> int:
        return self.classes.size + self.n_scores + self.missing

    @property
    def n_scores(self) -> int:
        """Number of symbols with a score: "another number" has one."""
        return int(self.margin is not None)

    def symbols(self, values: Floats) -> Ints:
        k = self.classes.size
        found = np.searchsorted(self.classes, values).astype(np.int64)
        found[~np.isin(values, self.classes)] = k if self.margin is not None else -1
        return np.where(np.isnan(values), self.n_symbols - 1 if self.missing else -1, found)

    def scores(self, values: Floats) -> Floats:
        """Return the scores; NaN for symbols without a score."""
        if self.margin is None:
            return np.full(values.size, np.nan)
        below, upto = self.margin.cover(values)
        score = scipy.special.ndtri((below + upto) / 2)
        return np.where(self.symbols(values) == self.classes.size, score, np.nan)

    @property
    def base_measure(self) -> BaseMeasure:
        if self.margin is None or self.margin.atoms.all():
            return "counting"
        return "mixed" if self.classes.size or self.margin.atoms.any() else "lebesgue"


def read_column(column: Column) -> Levels | Numbers:
    if column.feature.is_numeric:
        return Numbers.of(column.values, column.weights)
    return Levels(column.feature.n_levels, bool(np.isnan(column.values).any()))


@dataclass(frozen=True)
class MixtureConditional:
    """The distributions of one column in some rows.

    Attributes
    ----------
    column : the column as symbols and scores.
    log_weights : of the components, by row.
    shares : probabilities of the symbols, by component.
    means, sds : of the score, by row and component; empty if the column has no score.
    """

    column: Levels | Numbers
    log_weights: Floats
    shares: Floats
    means: Floats
    sds: Floats

    @cached_property
    def symbols(self) -> Floats:
        weights = np.exp(self.log_weights)
        found = np.zeros((len(weights), self.shares.shape[1]))
        for k in range(len(self.shares)):  # the rounding of a matrix product may depend on the number of rows
            found += weights[:, k : k + 1] * self.shares[k]
        return found

    def take(self, rows: Ints) -> MixtureConditional:
        """Return the distributions of some rows."""
        has_score = self.means.size > 0
        means, sds = (self.means[rows], self.sds[rows]) if has_score else (self.means, self.sds)
        return MixtureConditional(self.column, self.log_weights[rows], self.shares, means, sds)

    def draw(self, rng: RowStreams) -> Floats:
        """Draw a value for each row, missing with its probability."""
        return self.draw_within(rng, Within(missing=np.ones(len(self.log_weights), dtype=bool))).values

    def draw_within(self, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw an allowed value for each row, or a missing value where allowed, by their probabilities."""
        n, column = len(self.log_weights), self.column
        weights = self.symbols.copy()
        if column.missing:
            weights[:, -1] *= within.allows_missing(n)
        if isinstance(column, Levels):
            weights[:, : column.n_levels] *= within.level_mask(n, column.n_levels)
            return RestrictedDraw.by_weight(np.append(np.arange(float(column.n_levels)), np.nan), weights, rng)
        low, high = within.bounds(n)
        k, margin = column.classes.size, column.margin
        weights[:, :k] *= (column.classes >= low[:, None]) & (column.classes <= high[:, None])
        if margin is None:
            return RestrictedDraw.by_weight(np.append(column.classes, np.nan), weights, rng)
        first = np.searchsorted(margin.values, low)
        last = np.searchsorted(margin.values, high, side="right") - 1
        possible = first <= last
        first, last = np.where(possible, first, 0), np.where(possible, last, 0)
        cuts = margin.cuts
        begin, end = cuts[first], cuts[last + 1]
        log_mass = self._log_mass(begin, end)
        weights[:, k] = np.where(possible, np.exp(log_mass).sum(axis=1), 0.0)
        code = draw_levels(weights, rng, Within())
        top = log_mass.max(axis=1, keepdims=True)
        likely = np.exp(log_mass - np.where(np.isfinite(top), top, 0.0))
        component = rng.categorical(np.where(np.isfinite(top), likely, 1.0))
        rows = np.arange(n)
        score = truncated_normal(self.means[rows, component], self.sds[rows, component], begin, end, rng.uniform())
        values = margin.values[np.clip(margin.positions_of(score), first, last)]
        known = np.append(column.classes, np.nan)[np.where(code < k, code, k).astype(np.intp)]
        total = weights.sum(axis=1)
        return RestrictedDraw.of(np.where(code == k, values, known), ~(total > 0.0), log_of(total))

    def distribution(self) -> DistributionFunctions:
        """Return the distribution of each row over levels or training values."""
        column, symbols = self.column, self.symbols
        if isinstance(column, Levels):
            return DistributionFunctions.of_levels(symbols, missing_last=column.missing)
        n, k, margin = len(symbols), column.classes.size, column.margin
        missing = symbols[:, -1] if column.missing else np.zeros(n)
        total = np.where(missing < 1.0, 1.0 - missing, 1.0)
        below = np.column_stack([np.zeros(n), np.cumsum(symbols[:, :k], axis=1)])
        others = np.empty(0) if margin is None else margin.values
        parts = np.empty(0) if margin is None else np.exp(self._log_parts())

        def upto(high: Floats) -> Floats:
            mass = below[np.arange(n), np.searchsorted(column.classes, high, side="right")]
            if margin is not None:
                end = margin.cuts[np.searchsorted(others, high, side="right")]
                mass = mass + (parts * scipy.special.ndtr((end[:, None] - self.means) / self.sds)).sum(axis=1)
            return np.asarray(mass / total)

        atoms = np.union1d(column.classes, others)
        return DistributionFunctions.of_atoms(atoms, upto, missing=missing, n_donors=atoms.size)

    def log_density(self, values: Floats) -> Floats:
        """Return the log probability of levels, missing values and atoms, the log density of other numbers."""
        symbol = self.column.symbols(values)
        found = np.where(symbol < 0, 0.0, self.symbols[np.arange(values.size), np.maximum(symbol, 0)])
        column = self.column
        if isinstance(column, Levels) or column.margin is None:
            return log_of(found)
        other = symbol == column.classes.size
        at = np.where(other, values, column.margin.values[0])
        places = place_numbers(column.margin, at)
        score = np.where(places.is_atom, 0.0, places.low)[:, None]  # the interval of an atom may be unbounded
        z = (score - self.means) / self.sds
        point = self._log_parts() + 0.5 * score**2 - 0.5 * z**2 - np.log(self.sds)
        interval = self._log_mass(places.low, places.high)
        log_other = scipy.special.logsumexp(np.where(places.is_atom[:, None], interval, point), axis=1)
        log_other = np.where(places.is_atom, log_other, log_other + log_of(places.slope))
        return np.where(other, log_other, log_of(found))

    def supports(self, values: Floats) -> Bools:
        """Return whether each value can be drawn, or is within the local spacing of a training value."""
        symbol = self.column.symbols(values)
        found = np.where(symbol < 0, 0.0, self.symbols[np.arange(values.size), np.maximum(symbol, 0)]) > IMPOSSIBLE
        column = self.column
        if isinstance(column, Levels) or column.margin is None:
            return found
        margin = column.margin
        other = symbol == column.classes.size
        drawable, weights = margin.training_values
        near = supported_by(drawable, values, is_number=True, weights=weights)
        at = np.searchsorted(margin.values, np.where(near, values, margin.values[0]))
        cuts, ends = margin.cuts, np.full(values.size, np.inf)
        low, high = cuts[np.minimum(at, margin.values.size - 1)], cuts[np.minimum(at + 1, margin.values.size)]
        tails = [np.exp(self._log_mass(*part)).sum(axis=1) for part in ((-ends, high), (low, ends))]
        return np.where(other, near & (np.minimum(*tails) > IMPOSSIBLE), found)

    def _log_parts(self) -> Floats:
        """Return the log probability of each component and "another number" in it."""
        assert isinstance(self.column, Numbers)
        return self.log_weights + log_of(self.shares[:, self.column.classes.size])

    def _log_mass(self, low: Floats, high: Floats) -> Floats:
        """Return the log probability of "another number" with a score between bounds, by component."""
        parts = self._log_parts()
        if np.isneginf(low).all() and np.isposinf(high).all():
            return parts
        a, b = ((bound[:, None] - self.means) / self.sds for bound in (low, high))
        return parts + log_normal_mass(a, b)


_LOG_TAU = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Seen:
    """Rows as symbols and scores, NaN for columns without a score; `weights` are those of training rows, or None."""

    symbols: Ints
    scores: Floats
    weights: Floats | None = None

    def take(self, rows: Ints) -> Seen:
        return Seen(self.symbols[rows], self.scores[rows], None if self.weights is None else self.weights[rows])


@dataclass(frozen=True)
class Patterns:
    """Patterns of known scores, and the regressions of the others on them; see `mcce.samplers.mixture.kernels`.

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
        return cls.among(*find_patterns(is_known), covariances)

    @classmethod
    def among(cls, of_row: Ints, known: Bools, covariances: Floats) -> Patterns:
        """Compute the regressions of each pattern."""
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
    n, d = is_known.shape
    if (is_known == is_known[:1]).all():
        return np.zeros(n, dtype=np.int64), is_known[:1] if n else np.ones((1, d), dtype=bool)
    packed, place = np.unique(np.packbits(is_known, axis=1), axis=0, return_inverse=True)
    return place.ravel().astype(np.int64), np.unpackbits(packed, axis=1, count=d).astype(bool)


@stateful("mixture.Mixture")
@dataclass(frozen=True)
class Mixture:
    """A fitted mixture.

    Attributes
    ----------
    columns : the columns as symbols and scores.
    weights : weights of the components.
    shares : (components, symbols) probabilities of the symbols, column by column.
    means, covariances : of the scores, by component, in the order of the columns.
    """

    columns: tuple[Levels | Numbers, ...] = stored(tuple, of=(Levels, Numbers))
    weights: Floats = stored(FLOAT, "components", finite=True)
    shares: Floats = stored(FLOAT, "components", None, finite=True)
    means: Floats = stored(FLOAT, "components", "scores", finite=True)
    covariances: Floats = stored(FLOAT, "components", "scores", "scores", finite=True)

    def check_state(self) -> None:
        """Raise if the parts do not form a mixture."""
        k, d = self.weights.size, sum(column.n_scores for column in self.columns)
        require(k > 0 and bool((self.weights > 0.0).all()), "weights are empty or not positive")
        check_array(self.shares, "shares", FLOAT, k, sum(column.n_symbols for column in self.columns))
        check_array(self.means, "means", FLOAT, k, d)
        require(bool((self.shares >= 0.0).all() and (self.shares <= 1.0).all()), "shares are not probabilities")
        require(float(np.abs(self.means).max(initial=0.0)) < 1e6, "means are too large")
        skew = np.abs(self.covariances - self.covariances.transpose(0, 2, 1)).max(initial=0.0)
        require(float(skew) < 1e-9, "covariances is not symmetric")  # up to rounding
        eigenvalues = np.linalg.eigvalsh(self.covariances) if d else np.ones((1, 1))
        require(eigenvalues.min() > 1e-9 and eigenvalues.max() < 1e9, "covariances is not positive definite")

    def check_columns(self, features: Sequence[Feature]) -> None:
        """Raise if the mixture does not belong to these columns."""
        require(len(self.columns) == len(features), "the number of columns does not match")
        for column, feature in zip(self.columns, features):
            column.check_column(feature)

    @cached_property
    def first(self) -> Ints:
        """Position of the first symbol of each column in `shares`."""
        return np.cumsum([0, *(column.n_symbols for column in self.columns)]).astype(np.int64)

    @cached_property
    def place(self) -> Ints:
        """Position of each column's score; for a column without one, that of the next."""
        return np.cumsum([0, *(column.n_scores for column in self.columns)]).astype(np.int64)

    def take(self, columns: Sequence[int]) -> Mixture:
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
        """Return the symbols and scores of rows; only those of `known` columns, if given."""
        n = len(matrix)
        symbols, scores = np.full((n, len(self.columns)), -1), np.full((n, self.place[-1]), np.nan)
        for j in range(len(self.columns)) if known is None else known:
            column, values = self.columns[j], matrix[:, j]
            symbols[:, j] = column.symbols(values)
            if isinstance(column, Numbers) and column.n_scores:
                scores[:, self.place[j]] = column.scores(values)
        return Seen(symbols.astype(np.int64), scores)

    def log_joint(self, seen: Seen, patterns: Patterns | None = None) -> Floats:
        """Return the log of w_k times the density of the known columns, by row and component."""
        patterns = patterns or Patterns.of(~np.isnan(seen.scores), self.covariances)
        out = np.tile(np.log(self.weights), (len(seen.symbols), 1))
        kernels.add_symbols(seen.symbols, self.first, self._log_shares, out)
        of_rows = (patterns.of_row, patterns.known)
        kernels.add_normal(seen.scores, *of_rows, self.means, patterns.precision, patterns.constant, out)
        return out

    def conditional(self, matrix: Floats, known: Sequence[int], target: int) -> MixtureConditional:
        """Return the distribution of one column in each row, given the known ones."""
        seen = self.see(matrix, known)
        patterns = Patterns.of(~np.isnan(seen.scores), self.covariances)
        joint = self.log_joint(seen, patterns)
        log_weights = joint - scipy.special.logsumexp(joint, axis=1, keepdims=True)
        shares = self.shares[:, self.first[target] : self.first[target + 1]]
        column, at = self.columns[target], self.place[target]
        if not column.n_scores:
            return MixtureConditional(column, log_weights, shares, np.empty((0, 0)), np.empty((0, 0)))
        means = np.empty(joint.shape)
        kernels.predict_score(seen.scores, patterns.of_row, patterns.known, self.means, patterns.slopes, int(at), means)
        sds = np.sqrt(patterns.rest[:, :, at, at])[patterns.of_row]
        return MixtureConditional(column, log_weights, shares, means, sds)

    @cached_property
    def _log_shares(self) -> Floats:
        # a level without training rows has share 0 in all components, and is ignored
        return np.log(self.shares, out=np.zeros(self.shares.shape), where=self.shares > 0.0)


def _block(rows: Any, columns: Any) -> tuple[Any, ...]:
    """Return the index of some rows and columns of the covariances of all components."""
    return (slice(None), *np.ix_(rows, columns))


HELD_OUT = 5  # one row in five is held out
FEWEST_ROWS = 20  # needed to hold rows out, and for each component
PSEUDO_ROWS = 2.0
MOST_STEPS, LEAST_GAIN = 100, 1e-4


def fit_mixture(table: Table, seed: int, max_components: int = 16) -> Mixture:
    """Fit a mixture to all columns of a table; `seed` determines held-out rows and starting values."""
    table = as_copies(table)
    columns = tuple(read_column(table.column(j)) for j in range(len(table.features)))
    blank = _blank(columns)
    seen = replace(blank.see(table.matrix), weights=table.weights)
    margin = _margin(blank, seen)
    chance = np.random.default_rng(derive_key(seed, "mixture"))
    n = table.n_rows
    held_out = chance.permutation(n)[: n // HELD_OUT] if n >= FEWEST_ROWS else np.empty(0, dtype=np.int64)
    training = seen.take(np.setdiff1d(np.arange(n), held_out))
    tried = seen.take(np.sort(held_out))
    best, best_score, k = 1, -np.inf, 1
    while k <= max_components and k * FEWEST_ROWS <= max(n, FEWEST_ROWS) and held_out.size:
        fitted = _fit(blank, training, margin, k, np.random.default_rng(derive_key(seed, "mixture", k)))
        score = float(mean_of(scipy.special.logsumexp(fitted.log_joint(tried), axis=1), tried.weights))
        if score > best_score:
            best, best_score = k, score
        elif k == 4 * best:
            break
        k *= 2
    return _fit(blank, seen, margin, best, np.random.default_rng(derive_key(seed, "mixture", best)))


def _blank(columns: tuple[Levels | Numbers, ...]) -> Mixture:
    """Return an unfitted mixture of one component."""
    none = np.empty(0)
    one = Mixture(columns, np.ones(1), none, none, none)
    d = int(one.place[-1])
    return Mixture(one.columns, one.weights, np.zeros((1, one.first[-1])), np.zeros((1, d)), np.eye(d)[None])


def _margin(blank: Mixture, seen: Seen) -> Floats:
    """Return the shares of the symbols among all rows."""
    counts = np.zeros((1, int(blank.first[-1])))
    weights = np.ones(len(seen.symbols)) if seen.weights is None else seen.weights
    kernels.add_counts(seen.symbols, blank.first, weights[:, None], counts)
    return np.asarray(counts[0] / (max(len(seen.symbols), 1) if seen.weights is None else weights.sum()))


def _fit(blank: Mixture, seen: Seen, margin: Floats, n_components: int, chance: np.random.Generator) -> Mixture:
    """Fit a mixture of `n_components` components."""
    d = int(blank.place[-1])
    shares = np.eye(n_components)[_nearest_starts(seen, n_components, chance)]
    repeat = (n_components, 1)
    start = Mixture(
        blank.columns,
        np.full(n_components, 1.0 / n_components),
        np.tile(margin, repeat),
        np.zeros((n_components, d)),
        np.tile(np.eye(d), (n_components, 1, 1)),
    )
    which = find_patterns(~np.isnan(seen.scores))
    fitted = _maximise(start, seen, Patterns.among(*which, start.covariances), shares, margin)
    before = -np.inf
    for _ in range(MOST_STEPS):
        patterns = Patterns.among(*which, fitted.covariances)
        joint = fitted.log_joint(seen, patterns)
        total = scipy.special.logsumexp(joint, axis=1, keepdims=True)
        mean = float(total.mean() if seen.weights is None else mean_of(total[:, 0], seen.weights))
        if mean < before + LEAST_GAIN:
            break
        before = mean
        fitted = _maximise(fitted, seen, patterns, np.exp(joint - total), margin)
    return fitted


def _nearest_starts(seen: Seen, n_components: int, chance: np.random.Generator) -> Ints:
    """Choose starting rows as in k-means++, and return the nearest of them to each row."""
    n = len(seen.symbols)
    scores = np.nan_to_num(seen.scores)
    nearest, least = np.zeros(n, dtype=np.int64), np.full(n, np.inf)
    row = int(chance.integers(max(n, 1)))
    if seen.weights is not None:
        row = int(copies_at(seen.weights, np.array(row), n))
    for k in range(n_components):
        away = ((scores - scores[row]) ** 2).sum(axis=1) + (seen.symbols != seen.symbols[row]).sum(axis=1)
        nearest[away < least] = k
        least = np.minimum(least, away)
        if not least.any():
            break
        likely = least if seen.weights is None else seen.weights * least
        row = int(chance.choice(n, p=likely / likely.sum()))
    return nearest


def _maximise(old: Mixture, seen: Seen, patterns: Patterns, shares: Floats, margin: Floats) -> Mixture:
    """Return the parameters that maximise the expected log-likelihood for these component shares (M step)."""
    k, d = old.means.shape
    if seen.weights is not None:
        shares = shares * seen.weights[:, None]
    size = shares.sum(axis=0)
    counts = np.zeros(old.shares.shape)
    kernels.add_counts(seen.symbols, old.first, shares, counts)
    symbols = (counts + PSEUDO_ROWS * margin) / (size[:, None] + PSEUDO_ROWS)
    sums, squares = np.zeros((k, d)), np.zeros((k, d, d))
    kernels.add_moments(
        *(seen.scores, patterns.of_row, patterns.known, old.means, patterns.slopes),
        *(shares, np.empty(d), sums, squares),
    )
    squares = squares + np.tril(squares, -1).transpose(0, 2, 1)
    inside = np.stack([np.bincount(patterns.of_row, share, len(patterns.known)) for share in shares.T])
    squares += np.einsum("kq,qkab->kab", inside, patterns.rest)
    moved = sums / np.maximum(size, 1e-9)[:, None]
    scatter = squares - size[:, None, None] * moved[:, :, None] * moved[:, None, :]
    pseudo = d + 2.0
    spread = k ** (-2.0 / max(d, 1))
    covariances = (scatter + pseudo * spread * np.eye(d)) / (size + pseudo)[:, None, None]
    weights = (size + 1.0) / (size.sum() + k)
    return Mixture(old.columns, weights, symbols, old.means + moved, covariances)
