"""A finite mixture of normals times multinomials over columns of all kinds, fitted by EM.

1. A number has a normal score (`mcce.samplers.margin`); of a value with point mass, the mean of its interval.
2. In component k, of weight w_k, levels are independent with probabilities p_kj, and scores are normal with mean m_k
   and covariance S_k. Missing values are marginalised, in the fit and afterwards.
3. Given some columns, the weights are w_k(x) ~ w_k prod_j p_kj(x_j) N(z; m_k, S_k). A level s of the target has the
   probability sum_k w_k(x) p_ks; a number is a mixture of normals, pushed through the margin of its column.
4. EM starts as k-means++ (Arthur and Vassilvitskii 2007). Unknown scores enter by their conditional means and
   covariances (Ghahramani and Jordan 1994). A component has pseudo-rows: 2 with the levels of all rows, and d + 2 with
   the covariance K^(-2/d) I for d scores and K components (Fraley and Raftery 2007).
5. 1, 2, 4, ... components are compared on a fifth of the rows, held out, by the mean log density of each column given
   all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import softmax

from mcce._utils import Bools, Floats, Ints, blocks, check_count
from mcce.rng import derive_key, resolve_seed
from mcce.samplers.base import ConditionalSampler, register_sampler
from mcce.samplers.distributions import Continuous, Distribution, Levels
from mcce.samplers.margin import Margin
from mcce.table import Column, Table

MOST_ROWS = 5_000  # rows that EM reads: its cost is in proportion to them, and the margins read all rows
HELD_OUT = 5  # one row in five is held out
LEAST_ROWS = 20  # for each component, beside one for each score
MOST_SCORED = 30  # columns by which numbers of components are compared
PSEUDO_ROWS = 2.0
MOST_STEPS = 100
COMPARED_GAIN, LEAST_GAIN = 1e-2, 1e-3  # of the mean log density of a step, when components are compared and at the end
BLOCK = 128  # rows of one matrix product
DENSITY_ROWS = 20_000  # rows whose densities are computed at once
LEAST_LOG = -20.0  # of the density of a held-out value
LEAST_WEIGHT = 1e-100  # of a component in a row
LEAST_VARIANCE = 1e-8  # of a score given the others
LOG_TAU = float(np.log(2.0 * np.pi))


def product(rows: Floats, matrix: Floats) -> Floats:
    """Return the matrix product, in blocks of one size: the bits of a row must not depend on the other rows."""
    n, n_blocks = len(rows), -(-len(rows) // BLOCK)
    padded = np.zeros((n_blocks * BLOCK, rows.shape[1]))
    padded[:n] = rows
    products = padded.reshape(n_blocks, BLOCK, rows.shape[1]) @ matrix
    return products.reshape(n_blocks * BLOCK, matrix.shape[1])[:n]


def patterns(is_known: Bools) -> list[tuple[Ints, Ints]]:
    """Return the rows of each distinct row of a (rows, columns) mask, and the columns that are known in them."""
    n, d = is_known.shape
    if is_known.all():
        return [(np.arange(n), np.arange(d))]
    packed = np.packbits(is_known, axis=1)
    order = np.lexsort(packed.T)
    starts = np.flatnonzero((packed[order[1:]] != packed[order[:-1]]).any(axis=1)) + 1
    return [(rows, np.flatnonzero(is_known[rows[0]])) for rows in np.split(order, starts)]


def place_in_root(given: Table, target: Column) -> int | None:
    """Return the column of the chain's table that is the target; None for a target on its own, or of some rows."""
    root = given.root.matrix
    if root.shape[0] == target.values.size and np.shares_memory(root, target.values):
        for j, values in enumerate(root.T):
            if values.ctypes.data == target.values.ctypes.data:
                return j
    return None


def joint_table(given: Table, target: Column) -> Table:
    """Return the givens, then the target, as one table."""
    matrix = np.asfortranarray(np.column_stack([given.matrix, target.values]))
    return Table([*given.features, target.feature], matrix)


@dataclass(frozen=True)
class MixtureColumn:
    """A column of the mixture: `margin` of numbers, `shares` of the levels among all training rows."""

    margin: Margin | None
    shares: Floats | None

    @classmethod
    def fit(cls, column: Column) -> MixtureColumn:
        """Read the training values."""
        if column.feature.is_numeric:
            return cls(Margin.fit(column.values, column.feature), None)
        known = column.values[~np.isnan(column.values)].astype(np.int64)
        return cls(None, np.bincount(known, minlength=column.feature.n_levels) / max(known.size, 1))


@dataclass(frozen=True)
class SeenRows:
    """Rows as level codes (n, columns with levels; -1 is missing) and normal scores (n, d; NaN is missing)."""

    levels: Ints
    scores: Floats
    log_slope: Floats  # (n): log of the density of the row's numbers over that of their scores

    @classmethod
    def of(cls, columns: Sequence[MixtureColumn], matrix: Floats) -> SeenRows:
        """Read encoded rows."""
        scores = np.empty((len(matrix), sum(column.margin is not None for column in columns)))
        levels = np.empty((len(matrix), len(columns) - scores.shape[1]), dtype=np.int64)
        log_slope = np.zeros(len(matrix))
        n_scores = n_levels = 0
        for column, values in zip(columns, matrix.T):
            if column.margin is not None:
                scores[:, n_scores], log_slopes = column.margin.scored(values)
                log_slope += log_slopes
                n_scores += 1
            else:
                levels[:, n_levels] = np.where(np.isnan(values), -1.0, values)
                n_levels += 1
        return cls(levels, scores, log_slope)

    @cached_property
    def patterns(self) -> list[tuple[Ints, Ints]]:
        """The rows of each pattern of known scores, and the positions of these scores."""
        return patterns(~np.isnan(self.scores))

    def take(self, rows: Ints) -> SeenRows:
        """Return some rows."""
        return SeenRows(self.levels[rows], self.scores[rows], self.log_slope[rows])

    def without(self, place: int, *, is_number: bool) -> SeenRows:
        """Return the rows without one of the scores, or of the columns with levels."""
        if is_number:
            return SeenRows(self.levels, np.delete(self.scores, place, axis=1), self.log_slope)
        return SeenRows(np.delete(self.levels, place, axis=1), self.scores, self.log_slope)


@dataclass(frozen=True)
class Regression:
    """The normal distributions of all components for one pattern of known scores.

    `whitening` and `shift` make the known scores of a row independent standard normals; unknown scores have the mean
    `intercept` + `slopes` (known scores) and the covariance `rest`.
    """

    whitening: Floats  # (q, K q)
    shift: Floats  # (K q)
    constant: Floats  # (K)
    slopes: Floats  # (q, K u)
    intercept: Floats  # (K u)
    rest: Floats  # (K, u, u)

    @classmethod
    def of(cls, means: Floats, covariances: Floats, known: Ints, unknown: Ints) -> Regression:
        """Compute the regressions of the unknown scores on the known ones."""
        k, q = len(means), known.size
        inside, across = covariances[:, known[:, None], known], covariances[:, unknown[:, None], known]
        factor = np.linalg.cholesky(inside)
        inverse = np.linalg.inv(factor) if q else factor
        constant = -np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1) - 0.5 * q * LOG_TAU
        slopes = across @ inverse.transpose(0, 2, 1) @ inverse
        center = means[:, known, None]
        return cls(
            whitening=inverse.transpose(2, 0, 1).reshape(q, k * q),
            shift=(inverse @ center).ravel(),
            constant=constant,
            slopes=slopes.transpose(2, 0, 1).reshape(q, k * unknown.size),
            intercept=(means[:, unknown] - (slopes @ center)[:, :, 0]).ravel(),
            rest=covariances[:, unknown[:, None], unknown] - slopes @ across.transpose(0, 2, 1),
        )

    def log_density(self, scores: Floats) -> Floats:
        """Return the log density of the known scores, (rows, K)."""
        white = (product(scores, self.whitening) - self.shift).reshape(len(scores), self.constant.size, scores.shape[1])
        return np.asarray(self.constant - 0.5 * np.einsum("nkq,nkq->nk", white, white))

    def predict(self, scores: Floats) -> Floats:
        """Return the means of the unknown scores, (rows, K, u)."""
        means = product(scores, self.slopes) + self.intercept
        return means.reshape(len(scores), self.constant.size, self.rest.shape[1])


@dataclass(frozen=True)
class Mixture:
    """A fitted mixture: `Mixture.fit(table, random_state=1)`.

    Attributes
    ----------
    columns : margins of the numbers, shares of the levels.
    weights : (K,) weights of the components.
    probabilities : for each column with levels (K, levels).
    means, covariances : (K, d) and (K, d, d), of the scores of the numbers.

    Examples
    --------
    >>> import mcce
    >>> from mcce.samplers.mixture import Mixture
    >>> from mcce.table import Schema
    >>> X = mcce.datasets.load_loans().X
    >>> table = Schema.from_data(X).encode(X)
    >>> Mixture.fit(table, random_state=1).log_density(table.matrix).shape
    (3000,)
    """

    columns: tuple[MixtureColumn, ...]
    weights: Floats
    probabilities: tuple[Floats, ...]
    means: Floats
    covariances: Floats

    @classmethod
    def fit(cls, table: Table, random_state: int = 0, max_components: int = 16) -> Mixture:
        """Fit a mixture to all columns of a table; `random_state` decides about held-out rows and starts."""
        columns = tuple(MixtureColumn.fit(table.column(j)) for j in range(len(table.features)))
        rows = np.random.default_rng(derive_key(random_state, "rows")).permutation(table.n_rows)[:MOST_ROWS]
        seen = SeenRows.of(columns, table.matrix[rows])
        n_held_out = rows.size // HELD_OUT if rows.size >= LEAST_ROWS else 0
        held_out, training = table.matrix[rows[:n_held_out]], seen.take(np.arange(n_held_out, rows.size))
        best = _fit(columns, training, 1, derive_key(random_state, 1))
        best_score, k = best.conditional_score(held_out), 2
        most = min(max_components, rows.size // (LEAST_ROWS + seen.scores.shape[1]))
        while k <= min(most, 4 * best.weights.size):
            fitted = _fit(columns, training, k, derive_key(random_state, k))
            score = fitted.conditional_score(held_out)
            if score > best_score:
                best, best_score = fitted, score
            k *= 2
        return _iterate(best, seen, LEAST_GAIN)

    @cached_property
    def _is_number(self) -> Bools:
        return np.array([column.margin is not None for column in self.columns], dtype=bool)

    @cached_property
    def _places(self) -> Ints:
        """The position of each column among the numbers, or among the columns with levels."""
        return np.where(self._is_number, np.cumsum(self._is_number), np.cumsum(~self._is_number)) - 1

    def take(self, columns: Sequence[int]) -> Mixture:
        """Return the mixture of some of the columns, in the order given."""
        numbers = np.array([self._places[j] for j in columns if self._is_number[j]], dtype=np.int64)
        return Mixture(
            tuple(self.columns[j] for j in columns),
            self.weights,
            tuple(self.probabilities[self._places[j]] for j in columns if not self._is_number[j]),
            self.means[:, numbers],
            self.covariances[:, numbers[:, None], numbers],
        )

    def log_joint(self, seen: SeenRows) -> Floats:
        """Return log(w_k times the density of the known levels and scores), (rows, K)."""
        out = self._log_levels(seen.levels)
        for rows, known in seen.patterns:
            normals = self._density if known.size == seen.scores.shape[1] else self._density_of(known)
            out[rows] += normals.log_density(seen.scores[rows][:, known])
        return out

    def _density_of(self, known: Ints) -> Regression:
        return Regression.of(self.means, self.covariances, known, np.empty(0, dtype=np.int64))

    @cached_property
    def _density(self) -> Regression:
        """The density of all scores."""
        return self._density_of(np.arange(self.means.shape[1]))

    def log_density(self, matrix: Floats) -> Floats:
        """Return the log density of encoded rows; missing values are marginalised."""
        out = np.empty(len(matrix))
        for part in blocks(len(matrix), DENSITY_ROWS):
            seen = SeenRows.of(self.columns, matrix[part])
            out[part] = np.logaddexp.reduce(self.log_joint(seen), axis=1) + seen.log_slope
        return out

    def conditional(self, given: Floats) -> Distribution:
        """Return the distribution of the last column in each row, given all others."""
        return self._conditional(SeenRows.of(self.columns[:-1], given))

    def _conditional(self, seen: SeenRows) -> Distribution:
        is_number, n = bool(self._is_number[-1]), len(seen.scores)
        target = np.array([seen.scores.shape[1]])[: int(is_number)]
        out = self._log_levels(seen.levels)
        means, sds = np.empty((2, n, self.weights.size))
        for rows, known in seen.patterns:
            normals = Regression.of(self.means, self.covariances, known, target)
            scores = seen.scores[rows][:, known]
            out[rows] += normals.log_density(scores)
            if is_number:
                means[rows] = normals.predict(scores)[:, :, 0]
                sds[rows] = np.sqrt(np.maximum(normals.rest[:, 0, 0], LEAST_VARIANCE))
        weights = softmax(np.maximum(out, -1e300), axis=1)  # a level that no row has is as unlikely in each component
        weights[weights < LEAST_WEIGHT] = 0.0
        if is_number:
            return Continuous("normal mixture", (weights, means, sds), self.columns[-1].margin, latent=True)
        probabilities = np.zeros((n, self.probabilities[-1].shape[1]))
        for weight, in_component in zip(weights.T, self.probabilities[-1]):  # not a product of matrices: see `product`
            probabilities += weight[:, None] * in_component
        return Levels(probabilities)

    def conditional_score(self, matrix: Floats) -> float:
        """Return the mean log density of a column given all others, over rows and at most 30 columns; 0 without rows.

        The joint density would not do: that of a point mass is not bounded, so it asks for a component for each.
        """
        seen, log_densities = SeenRows.of(self.columns, matrix), []
        n_columns = len(self.columns)
        for j in np.unique(np.linspace(0, n_columns - 1, min(n_columns, MOST_SCORED)).astype(np.int64)).tolist():
            values = matrix[:, j]
            known = np.flatnonzero(~np.isnan(values))
            others = [i for i in range(len(self.columns)) if i != j]
            given = seen.without(int(self._places[j]), is_number=bool(self._is_number[j])).take(known)
            log_density = self.take([*others, j])._conditional(given).log_density(values[known])
            log_densities.append(np.logaddexp(log_density, LEAST_LOG))
        return float(np.concatenate(log_densities).mean()) if len(matrix) else 0.0

    def _log_levels(self, levels: Ints) -> Floats:
        """Return log(w_k times the probability of the known levels), (rows, K)."""
        out = np.tile(np.log(self.weights), (len(levels), 1))
        for codes, table in zip(levels.T, self._log_probabilities):
            out += table[codes]
        return out

    @cached_property
    def _log_probabilities(self) -> list[Floats]:
        """For each column with levels (levels + 1, K); the last row, which the code -1 selects, is 0."""
        with np.errstate(divide="ignore"):
            return [np.vstack([np.log(table.T), np.zeros(self.weights.size)]) for table in self.probabilities]


def _fit(columns: tuple[MixtureColumn, ...], seen: SeenRows, n_components: int, key: int) -> Mixture:
    """Fit a mixture of `n_components` components."""
    d = seen.scores.shape[1]
    start = Mixture(
        columns,
        np.full(n_components, 1.0 / n_components),
        tuple(np.tile(column.shares, (n_components, 1)) for column in columns if column.shares is not None),
        np.zeros((n_components, d)),
        np.tile(np.eye(d), (n_components, 1, 1)),
    )
    nearest = _nearest_starts(seen, n_components, np.random.default_rng(key))
    return _iterate(_maximise(start, seen, np.eye(n_components)[nearest]), seen, COMPARED_GAIN)


def _iterate(mixture: Mixture, seen: SeenRows, least_gain: float) -> Mixture:
    """Repeat E and M steps until the mean log density gains less than `least_gain`."""
    before = -np.inf
    for _ in range(MOST_STEPS):
        joint = mixture.log_joint(seen)
        largest = joint.max(axis=1, keepdims=True)
        shares = np.exp(joint - largest)
        total = shares.sum(axis=1, keepdims=True)
        log_density = (largest + np.log(total)).mean()
        if not log_density > before + least_gain:
            break
        before = log_density
        mixture = _maximise(mixture, seen, shares / total)
    return mixture


def _nearest_starts(seen: SeenRows, n_components: int, rng: np.random.Generator) -> Ints:
    """Choose starting rows as k-means++ does, and return the nearest of them to each row."""
    n, scores = len(seen.scores), np.nan_to_num(seen.scores)
    nearest, least = np.zeros(n, dtype=np.int64), np.full(n, np.inf)
    for k in range(n_components):
        row = int(rng.choice(n, p=least / least.sum()) if k else rng.integers(n))
        distance = ((scores - scores[row]) ** 2).sum(axis=1) + (seen.levels != seen.levels[row]).sum(axis=1)
        nearest[distance < least] = k
        least = np.minimum(least, distance)
        if not least.any():
            break
    return nearest


def _maximise(old: Mixture, seen: SeenRows, responsibilities: Floats) -> Mixture:
    """Return the mixture that maximises the expected log density for the (rows, K) responsibilities (M step)."""
    k, d = old.means.shape
    sums, squares = np.zeros((k, d)), np.zeros((k, d, d))
    for rows, known in seen.patterns:
        unknown = np.setdiff1d(np.arange(d), known)
        weights, filled = responsibilities[rows].T, np.broadcast_to(seen.scores[rows], (k, rows.size, d))
        if unknown.size:
            normals = Regression.of(old.means, old.covariances, known, unknown)
            filled = filled.copy()
            filled[:, :, unknown] = normals.predict(seen.scores[rows][:, known]).transpose(1, 0, 2)
            squares[:, unknown[:, None], unknown] += weights.sum(axis=1)[:, None, None] * normals.rest
        for i, (weight, scores) in enumerate(zip(weights, filled)):
            sums[i] += weight @ scores
            squares[i] += (scores * weight[:, None]).T @ scores
    size = responsibilities.sum(axis=0)
    means = sums / np.maximum(size, 1e-9)[:, None]
    scatter = squares - size[:, None, None] * means[:, :, None] * means[:, None, :]
    pseudo, spread = d + 2.0, k ** (-2.0 / max(d, 1))
    covariances = (scatter + pseudo * spread * np.eye(d)) / (size + pseudo)[:, None, None]
    probabilities = []
    for codes, shares in zip(seen.levels.T, (column.shares for column in old.columns if column.shares is not None)):
        known = codes >= 0
        parts = responsibilities[known].T
        counts = np.stack([np.bincount(codes[known], part, shares.size) for part in parts])
        counted = counts + PSEUDO_ROWS * shares
        probabilities.append(counted / np.maximum(counted.sum(axis=1, keepdims=True), 1e-300))
    return Mixture(old.columns, (size + 1.0) / (size.sum() + k), tuple(probabilities), means, covariances)


@register_sampler("mixture")
class MixtureSampler(ConditionalSampler):
    """Draws from the conditional of a finite mixture of normals times multinomials.

    Parameters
    ----------
    max_components : int
        Largest number of components; 1, 2, 4, ... are compared on held-out rows.
    random_state : int
        Seed of held-out rows and starts.

    Attributes
    ----------
    mixture_ : `mcce.samplers.mixture.Mixture` of the givens, then the target.

    Notes
    -----
    One mixture is fitted to all columns of a chain, and each conditional is a part of it (with the same `random_state`
    and `max_components`, and no missing values in the target). One component is a Gaussian copula of the numbers with
    independent levels; more of them add interactions, several modes and changing spread.

    References
    ----------
    Hunt and Jorgensen (2003), "Mixture model clustering for mixed data with missing information", Computational
    Statistics & Data Analysis 41.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(1000).X
    >>> chain = mcce.ChainModel(sampler="mixture", fixed=["age", "sex"], random_state=1).fit(X)
    >>> chain.sample(2).shape
    (2, 10)
    """

    def __init__(self, *, max_components: int = 16, random_state: int = 0) -> None:
        self.max_components = max_components
        self.random_state = random_state

    def fit(self, given: Table, target: Column) -> MixtureSampler:
        check_count(self.max_components, "max_components")
        seed = resolve_seed(self.random_state)

        def fit(table: Table) -> Mixture:
            return Mixture.fit(table, seed, self.max_components)

        place = place_in_root(given, target)
        if place is None:
            self.mixture_ = fit(joint_table(given, target))
        else:
            whole = given.shared(f"mixture {seed} {self.max_components}", fit)
            self.mixture_ = whole.take([*given.positions, place])
        return self

    def distribution(self, given: Table) -> Distribution:
        return self.mixture_.conditional(given.matrix)
