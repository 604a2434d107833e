"""A Gaussian copula: normal margins behind the columns, and one covariance matrix for the whole chain.

1. A number or an ordered level enters by its normal score z, a value with point mass by the mean of z in its interval
   (`mcce.samplers.margin`); an unordered column by centred indicators of its levels but one. Means and covariances S of
   all of these are estimated once, from the pairs of rows in which both are known.
2. A number or ordered target has a latent z_t ~ N(0, 1), z_t | givens ~ N(b'g, 1 - b'c) with b = S_gg^-1 c. Here
   c = Cov(g, z_t) is Cov(g, score of t) / sd(score of t) / sqrt(1 - v), where v is the mean variance of z_t in the
   intervals of t. A number is z_t pushed through its margin; a level has the probability of its interval.
3. An unordered target has the level l with probability p_l N(g; m_l, W), normalised: m_l and W are the means and the
   pooled covariance within levels that S implies (linear discriminant analysis).
4. Missing givens are marginalised: they are left out of g and S.

Exact for continuous columns with a Gaussian copula. Approximate are steps 2 and 3 with coarse givens (z_t is not quite
normal given the intervals of others), and with unordered givens (a mixture of normals is taken for one normal).
References: Song (2000), Scandinavian Journal of Statistics 27; in explanations Aas, Jullum and Loland (2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, softmax

from mcce._utils import Floats, Ints
from mcce.samplers.base import ConditionalSampler, register_sampler
from mcce.samplers.distributions import Continuous, Distribution, Levels
from mcce.samplers.margin import Margin
from mcce.samplers.mixture import joint_table, patterns, place_in_root
from mcce.table import Column, Feature, Table

MOST_EXPLAINED = 0.999  # share of a latent's variance


@dataclass(frozen=True)
class CopulaColumn:
    """A column as scores or indicators; `means` are subtracted."""

    feature: Feature
    margin: Margin
    means: Floats

    @classmethod
    def fit(cls, column: Column) -> CopulaColumn:
        """Read the training values."""
        margin = Margin.fit(column.values, column.feature)
        raw = cls(column.feature, margin, np.zeros(1)).observe(column.values)
        is_known = ~np.isnan(raw)
        means = np.where(is_known, raw, 0.0).sum(axis=0) / np.maximum(is_known.sum(axis=0), 1)
        return cls(column.feature, margin, means)

    @cached_property
    def levels(self) -> Ints:
        """The observed levels of an unordered column; all but the first have an indicator."""
        return np.flatnonzero(self.margin.shares > 0.0)

    @property
    def is_unordered(self) -> bool:
        """Whether the column enters by indicators."""
        return self.feature.kind == "categorical"

    @property
    def fineness(self) -> float:
        """The variance of a standard normal latent's mean in its interval: 1 for a continuous column."""
        margin = self.margin
        low, high = margin.interval(margin.atoms)
        ends = [np.where(np.isfinite(end), end, 0.0) * np.exp(-0.5 * end**2) for end in (low, high)]
        squares = margin.shares + (ends[0] - ends[1]) / np.sqrt(2.0 * np.pi)  # the integral of z^2 over each interval
        return float(1.0 - (squares - margin.shares * margin.to_normal(margin.atoms) ** 2).sum())

    def observe(self, values: Floats) -> Floats:
        """Return the centred score or indicators, (rows, 1 or levels - 1); NaN if missing, or a level without rows."""
        if not self.is_unordered:
            return self.margin.to_normal(values)[:, None] - self.means
        is_known = np.isin(values, self.levels)[:, None]
        return np.where(is_known, (values[:, None] == self.levels[1:]) - self.means, np.nan)


@dataclass(frozen=True)
class GaussianCopula:
    """The columns and the covariance matrix of their scores and indicators, estimated from `n_rows` rows."""

    columns: tuple[CopulaColumn, ...]
    covariance: Floats
    n_rows: int

    @classmethod
    def fit(cls, table: Table) -> GaussianCopula:
        """Estimate margins and covariances (step 1)."""
        columns = tuple(CopulaColumn.fit(table.column(j)) for j in range(len(table.features)))
        observed = [column.observe(values) for column, values in zip(columns, table.matrix.T)]
        matrix = np.hstack(observed) if observed else np.empty((table.n_rows, 0))
        is_known = ~np.isnan(matrix)
        filled, counted = np.where(is_known, matrix, 0.0), is_known.astype(np.float64)
        covariance = filled.T @ filled / np.maximum(counted.T @ counted, 1.0)
        if not is_known.all():  # covariances of different rows may not be one matrix
            values, vectors = np.linalg.eigh(covariance)
            covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return cls(columns, covariance, table.n_rows)

    @cached_property
    def places(self) -> list[Ints]:
        """The positions of each column's scores or indicators in the covariance matrix."""
        widths = [max(column.levels.size - 1, 0) if column.is_unordered else 1 for column in self.columns]
        return np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1])

    def take(self, columns: Sequence[int]) -> GaussianCopula:
        """Return the copula of some of the columns, in the order given."""
        kept = np.concatenate([self.places[j] for j in columns])
        return GaussianCopula(tuple(self.columns[j] for j in columns), self.covariance[np.ix_(kept, kept)], self.n_rows)

    def conditional(self, given: Floats) -> Distribution:
        """Return the distribution of the last column in each row, given all others (steps 2 to 4)."""
        target, n = self.columns[-1], len(given)
        observed = [column.observe(values) for column, values in zip(self.columns, given.T)]
        is_known = np.ones((n, len(observed)), dtype=bool)
        for j, scores in enumerate(observed):
            is_known[:, j] = ~np.isnan(scores).any(axis=1)
        if target.is_unordered:
            logits = np.zeros((n, target.levels.size))
            for rows, columns in patterns(is_known):
                logits[rows] = self._discriminants([observed[j][rows] for j in columns], columns)
            probabilities = np.zeros((n, target.feature.n_levels))
            probabilities[:, target.levels] = softmax(logits, axis=1)
            return Levels(probabilities)
        mean, sd = np.zeros(n), np.ones(n)
        for rows, columns in patterns(is_known):
            mean[rows], sd[rows] = self._regress([observed[j][rows] for j in columns], columns)
        if target.feature.is_numeric:
            return Continuous("normal", (mean, sd), target.margin, latent=True)
        low, high = target.margin.interval(target.margin.atoms)
        upto = ndtr((np.append(low, high[-1]) - mean[:, None]) / sd[:, None])
        return Levels(np.maximum(np.diff(upto, axis=1), 0.0))

    def _givens(self, columns: Ints) -> tuple[Ints, Floats]:
        """Return the positions of some columns and their covariance, as if one more row had independent columns."""
        kept = np.concatenate([np.empty(0, dtype=np.int64), *(self.places[j] for j in columns)])
        inside = self.covariance[np.ix_(kept, kept)]
        return kept, inside + np.diag(np.diag(inside) / self.n_rows + 1e-12)

    def _regress(self, observed: Sequence[Floats], columns: Ints) -> tuple[Floats, float]:
        """Return the mean of the target's latent in each row, and its standard deviation."""
        kept, inside = self._givens(columns)
        place = self.places[-1][0]
        scale = np.sqrt(self.covariance[place, place] * self.columns[-1].fineness)
        across = self.covariance[kept, place] / scale if scale > 0.0 else np.zeros(kept.size)
        slopes = np.linalg.solve(inside, across)
        explained = float(across @ slopes)
        if explained > MOST_EXPLAINED:
            slopes, explained = slopes * np.sqrt(MOST_EXPLAINED / explained), MOST_EXPLAINED
        return _sum_columns(observed, slopes[:, None])[:, 0], float(np.sqrt(1.0 - explained))

    def _discriminants(self, observed: Sequence[Floats], columns: Ints) -> Floats:
        """Return log(p_l N(g; m_l, W)) of each row and level, but for what all levels share."""
        target = self.columns[-1]
        kept, inside = self._givens(columns)
        shares = target.margin.shares[target.levels]
        across = self.covariance[np.ix_(self.places[-1], kept)]
        means = np.vstack([-across.sum(axis=0), across]) / shares[:, None]  # of the levels: Cov(1_l, g) / p_l
        within = inside - (means.T * shares) @ means
        values, vectors = np.linalg.eigh(within)
        values = np.maximum(values, (1.0 - MOST_EXPLAINED) * np.diag(inside).max(initial=0.0) + 1e-12)
        slopes = (vectors / values) @ vectors.T @ means.T
        return _sum_columns(observed, slopes) + np.log(shares) - 0.5 * (means.T * slopes).sum(axis=0)


def _sum_columns(observed: Sequence[Floats], slopes: Floats) -> Floats:
    """Return the product of the columns with slopes, column by column: the bits of a row do not depend on others."""
    out = np.zeros((len(observed[0]) if observed else 1, slopes.shape[1]))
    for column, slope in zip((column for block in observed for column in block.T), slopes):
        out += column[:, None] * slope
    return out


@register_sampler("copula")
class GaussianCopulaSampler(ConditionalSampler):
    """Draws from the conditional of a Gaussian copula with empirical margins.

    Attributes
    ----------
    copula_ : `mcce.samplers.copula.GaussianCopula` of the givens, then the target.

    Notes
    -----
    Margins and covariances of all columns of a chain are estimated once. The model has no interactions and no tail
    dependence; "mixture" with several components has interactions. `mcce.samplers.copula` states what is approximate.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(1000).X
    >>> chain = mcce.ChainModel(sampler="copula", fixed=["age", "sex"], random_state=1).fit(X)
    >>> chain.sample(2).shape
    (2, 10)
    """

    def fit(self, given: Table, target: Column) -> GaussianCopulaSampler:
        place = place_in_root(given, target)
        if place is None:
            self.copula_ = GaussianCopula.fit(joint_table(given, target))
        else:
            self.copula_ = given.shared("copula", GaussianCopula.fit).take([*given.positions, place])
        return self

    def distribution(self, given: Table) -> Distribution:
        return self.copula_.conditional(given.matrix)
