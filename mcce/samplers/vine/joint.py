"""A D-vine over the variables of all columns: each column given those before it.

1. The path begins with the last column and ends with the given columns, so one fit provides every column given those
   before it. With `n_trees` trees a variable depends on that many others.
2. A number or an ordered level is one variable, drawn by inverting H and scored by its differences
   (`mcce.samplers.vine.sampler`). Unordered levels are one indicator each, except the most frequent; missing values are
   one more indicator, before these: P(level k) = q_k prod_(i < k) (1 - q_i), q_k = P(indicator k is 1 | those before it
   are 0, columns before).
3. A variable is observed only where all indicators before it in its column are 0; elsewhere it covers all shares from 0
   to 1, which imposes no condition.
4. Variables of one column, and constant ones, are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mcce.base.arrays import Bools, Floats
from mcce.rng import RowStreams
from mcce.samplers.copula.margins import Margin, by_frequency
from mcce.samplers.restricted import RestrictedDraw, Within, log_of
from mcce.samplers.vine.dvine import DVine, Known
from mcce.samplers.vine.sampler import OF_THE_MARGIN, VineConditional
from mcce.storage.fields import FLOAT, check_codes, require, stored
from mcce.storage.state import stateful
from mcce.table import Column, Feature, Table


@stateful("VineGenerator.Column")
@dataclass(frozen=True)
class JointColumn:
    """One column as variables of a vine.

    Attributes
    ----------
    is_number : whether the column holds numbers.
    margin : margin of known numbers and ordered levels; None for unordered levels, or if all values are missing.
    levels, shares : unordered levels, the most frequent one first, and their shares of the known values.
    missing : share of missing values.
    """

    is_number: bool = stored(bool)
    margin: Margin | None = stored(Margin, optional=True)
    levels: Floats = stored(FLOAT, "levels", distinct=True)
    shares: Floats = stored(FLOAT, "levels")
    missing: float = stored(float, least=0.0, most=1.0)

    @classmethod
    def from_column(cls, column: Column) -> JointColumn:
        """Read the training values of a column."""
        is_known = ~np.isnan(column.values)
        known = column.take(is_known)
        missing = 0.0 if is_known.all() else 1.0 - known.total / column.total
        nothing = np.empty(0)
        if not known.values.size:
            return cls(column.feature.is_numeric, None, nothing, nothing, 1.0)
        if column.feature.kind != "categorical":
            return cls(column.feature.is_numeric, Margin.from_column(known), nothing, nothing, missing)
        levels, counts = by_frequency(known.values, known.weights)
        return cls(False, None, levels, counts / known.total, missing)

    def check_state(self) -> None:
        """Raise if the parts do not form a column."""
        whole = bool((self.shares > 0.0).all()) and abs(float(self.shares.sum()) - 1.0) < 1e-6
        require(whole or not self.shares.size, "shares do not add up to 1")
        require(self.margin is None or self.margin.ordered, "margin is that of an unordered column")
        require(self.margin is None or not self.levels.size, "a column has a margin and unordered levels")
        some = self.margin is not None or self.levels.size > 0
        require(some == (self.missing < 1.0), "missing is not the share of missing values")

    def check_column(self, feature: Feature) -> None:
        require(self.is_number == feature.is_numeric or self.missing == 1.0, "is_number does not match the column")
        unordered = feature.kind == "categorical"
        require(unordered or not self.levels.size, "levels are set for an ordered column")
        require(not unordered or self.margin is None, "margin is that of an unordered column")
        check_codes(self.levels, "levels", feature.n_levels)
        if self.margin is not None and not feature.is_numeric:
            check_codes(self.margin.values, "values", feature.n_levels)

    @property
    def may_be_missing(self) -> bool:
        """Whether there is an indicator of missing values."""
        return 0.0 < self.missing < 1.0

    @cached_property
    def discrete(self) -> Bools:
        """Whether each variable of the column has point masses."""
        found = [True] * self.may_be_missing + [True] * max(self.levels.size - 1, 0)
        if self.margin is not None and self.margin.n_latents:
            # a variable that may cover all shares must be an interval
            found.append(bool(self.margin.atoms.any()) or self.may_be_missing)
        return np.array(found, dtype=bool)

    @cached_property
    def chances(self) -> Floats:
        """Share of each level but the first among the rows without the levels before it."""
        shares = self.shares[1:]
        return np.asarray(shares / (1.0 - np.concatenate([[0.0], np.cumsum(shares)[:-1]])[: shares.size]))

    def cover(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the shares below, and up to and including, each value of each variable: (rows, variables)."""
        is_missing = np.isnan(values)
        below, upto = np.zeros((2, values.size, self.discrete.size))
        hidden = np.zeros((values.size, self.discrete.size), dtype=bool)
        at = 0
        if self.may_be_missing:
            below[:, 0], upto[:, 0] = cover_indicator(is_missing, self.missing)
            hidden[is_missing, 1:] = True
            at = 1
        for level, chance in zip(self.levels[1:], self.chances):
            below[:, at], upto[:, at] = cover_indicator(values == level, float(chance))
            at += 1
            hidden[values == level, at:] = True
        if self.margin is not None and self.margin.n_latents:
            low, high = self.margin.cover(np.where(is_missing, self.margin.values[0], values))
            if self.discrete[at] and not self.margin.atoms.any():
                half = min(0.5 / self.margin.count, 0.5)
                low, high = np.maximum(low - half, 0.0), np.minimum(high + half, 1.0)
            below[:, at], upto[:, at] = low, high
        return np.where(hidden, 0.0, below), np.where(hidden, 1.0, upto)

    def add_to(self, known: Known, values: Floats) -> Known:
        below, upto = self.cover(values)
        for k in range(self.discrete.size):
            known = known.and_next(below[:, k], upto[:, k])
        return known


def cover_indicator(is_one: Bools, share: float) -> tuple[Floats, Floats]:
    """Return the shares below, and up to and including, an indicator whose share of ones is `share`."""
    return np.where(is_one, 1.0 - share, 0.0), np.where(is_one, 1.0, 1.0 - share)


@stateful("VineGenerator.Model")
@dataclass(frozen=True)
class JointVine:
    """A fitted vine of all columns, the given ones first.

    Attributes
    ----------
    columns : the columns as variables.
    vine : vine of their variables, the last one first.
    n_trees : number of trees of the vine.
    """

    columns: tuple[JointColumn, ...] = stored(tuple, of=JointColumn)
    vine: DVine = stored(DVine)
    n_trees: int = stored(int, least=1, most=2**31)

    @classmethod
    def fit(cls, table: Table, families: str, n_trees: int) -> JointVine:
        """Read the columns and fit the vine."""
        columns = tuple(JointColumn.from_column(table.column(j)) for j in range(len(table.features)))
        discrete = np.concatenate([column.discrete for column in columns])[::-1]
        made = cls(columns, DVine(np.zeros(1, dtype=bool), (), np.empty(0, dtype=np.int64), ()), n_trees)
        if not discrete.size:
            return made
        below, upto = (side[:, ::-1] for side in made.cover(table.matrix))
        unknown = upto - below > 1.0 - 1e-12
        covers = np.where(unknown, np.nan, below), np.where(unknown, np.nan, upto)
        vine = DVine.fit(covers, discrete, families, n_trees=n_trees, apart=made.apart(), weights=table.weights)
        return replace(made, vine=vine)

    def apart(self) -> set[tuple[int, int]]:
        """Return the pairs of variables that belong to one column, by their positions on the path."""
        last, found = sum(column.discrete.size for column in self.columns) - 1, set()
        for column in self.columns:
            size = column.discrete.size
            found |= {(last - late, last - early) for late in range(size) for early in range(late)}
            last -= size
        return found

    def check_state(self) -> None:
        """Raise if the vine does not match the columns."""
        discrete = np.concatenate([column.discrete for column in self.columns])[::-1].tolist()
        require(self.vine.discrete.tolist() == discrete or not discrete, "vine does not match the columns")

    def check_columns(self, features: Sequence[Feature], n_given: int) -> None:
        """Raise if the vine does not belong to these columns."""
        require(len(self.columns) == len(features), "the number of columns does not match")
        for column, feature in zip(self.columns, features):
            column.check_column(feature)

    def cover(self, matrix: Floats) -> tuple[Floats, Floats]:
        """Return the shares below, and up to and including, the values of the first columns: (rows, variables)."""
        covers = [self.columns[j].cover(matrix[:, j]) for j in range(matrix.shape[1])]
        empty = np.empty((matrix.shape[0], 0))
        return np.hstack([empty, *(c[0] for c in covers)]), np.hstack([empty, *(c[1] for c in covers)])

    def known(self, covers: tuple[Floats, Floats]) -> Known:
        """Return the state of the next variable given the covers of the first ones."""
        known = self.vine.known(self.n_trees)
        for k in range(covers[0].shape[1]):
            known = known.and_next(covers[0][:, k], covers[1][:, k])
        return known

    def conditional(self, j: int, known: Known, n: int) -> ColumnConditional:
        """Return the distribution of a column in each of `n` rows, given the state before it."""
        column, zero = self.columns[j], np.zeros(n, dtype=bool)
        missing = np.full(n, column.missing)
        if column.may_be_missing:
            known, (_, here) = known.passed(*cover_indicator(zero, column.missing))
            missing = 1.0 - here
        levels, left = np.empty((n, column.levels.size)), np.ones(n)
        for place, chance in enumerate(column.chances, 1):
            known, (_, others) = known.passed(*cover_indicator(zero, float(chance)))
            levels[:, place] = left * (1.0 - others)
            left = left * others
        if column.levels.size:
            levels[:, 0] = left
        ordered = None
        if column.margin is not None:
            below = known.below if column.margin.n_latents else np.array
            ordered = VineConditional(column.margin, column.is_number, below)
        return ColumnConditional(column, missing, levels, ordered)


@dataclass(frozen=True)
class ColumnConditional:
    """The distributions of one column in some rows.

    Attributes
    ----------
    column : the column as variables.
    missing : probability of a missing value, by row.
    levels : probabilities of unordered levels among known values.
    ordered : distribution of known numbers or ordered levels; None for unordered levels.
    """

    column: JointColumn
    missing: Floats
    levels: Floats
    ordered: VineConditional | None

    def draw_within(self, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw an allowed value for each row, or a missing value where allowed, by their probabilities."""
        n = self.missing.size
        if self.ordered is not None:
            found = self.ordered.draw_within(rng, within, n)
        elif self.column.levels.size:
            codes = self.column.levels.astype(np.intp)
            weights = self.levels * within.level_mask(n, int(codes.max()) + 1)[:, codes]
            found = RestrictedDraw.by_weight(self.column.levels, weights, rng)
        else:
            found = RestrictedDraw.of(np.full(n, np.nan), np.ones(n, dtype=bool), np.full(n, -np.inf))
        assert found.log_mass is not None
        if self.column.missing == 0.0:
            return found
        known = log_of(1.0 - self.missing)
        found = RestrictedDraw(found.values, found.rejected | np.isneginf(known), found.log_mass + known)
        assert found.log_mass is not None
        return found.or_missing(np.exp(found.log_mass), self.missing * within.allows_missing(n), rng.uniform())

    def log_density(self, values: Floats) -> Floats:
        """Return the log probability of levels, missing values and atoms, the log density of other numbers."""
        column, is_missing = self.column, np.isnan(values)
        missing_probability = (1.0 - OF_THE_MARGIN) * self.missing + OF_THE_MARGIN * column.missing
        if self.ordered is not None:
            inside = np.where(is_missing, self.ordered.margin.values[0], values)
            found = self.ordered.log_density(inside)
        elif column.levels.size:
            matches = values[:, None] == column.levels
            shares = (1.0 - OF_THE_MARGIN) * self.levels + OF_THE_MARGIN * column.shares
            found = log_of(np.where(matches, shares, 0.0).sum(axis=1))
        else:
            found = np.full(values.size, -np.inf)
        return np.where(is_missing, log_of(missing_probability), found + log_of(1.0 - missing_probability))
