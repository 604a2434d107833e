"""A D-vine over the variables of all columns: each column given those before it.

1. The variables stand in a path, those of the last column first and those that are given last, so that each variable
   given those behind it is the variable given all columns before it. One fit (`fitting`) has all of them.
2. Going along the path from its end (`mcce.samplers.vine.path`), a variable has the distribution function H given those
   behind it, its part of the Rosenblatt transform. With `n_trees` trees it depends on so many of them.
3. A number or an ordered level is drawn by inverting H, and scored by its differences
   (`mcce.samplers.vine.conditional`): column after column, this is the inverse Rosenblatt transform, discrete columns
   included.
4. Unordered levels are drawn as the first indicator that is 1, given that those before it are 0,

       P(level k) = q_k prod_(i < k) (1 - q_i),     q_k = P(indicator k is 1 | those before it are 0, columns before),

   the most frequent level if none is. The same for missing values, of which the indicator comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mcce.arrays import Floats
from mcce.generators.joint.vine.columns import JointColumn, cover_indicator
from mcce.generators.joint.vine.fitting import fit_path
from mcce.rng import RowStreams
from mcce.samplers.vine.conditional import OF_THE_MARGIN, VineConditional
from mcce.samplers.vine.dvine import DVine
from mcce.samplers.vine.path import Known
from mcce.samplers.within import RestrictedDraw, Within, log_of
from mcce.soundness import check_count_of, check_type, require
from mcce.state import stateful
from mcce.table import Feature, Table


@stateful("VineGenerator.Model")
@dataclass(frozen=True)
class JointVine:
    """A fitted vine of all columns, those given first.

    Attributes
    ----------
    columns : what is seen of each column.
    vine : of their variables, the last one first.
    n_trees : trees of the vine.
    """

    columns: tuple[JointColumn, ...]
    vine: DVine
    n_trees: int

    @classmethod
    def fit(cls, table: Table, families: str, n_trees: int) -> JointVine:
        """Read the columns and fit the vine (step 1)."""
        columns = tuple(JointColumn.of(table.column(j)) for j in range(len(table.features)))
        discrete = np.concatenate([column.discrete for column in columns])[::-1]
        made = cls(columns, DVine(np.zeros(1, dtype=bool), (), np.empty(0, dtype=np.int64), ()), n_trees)
        if not discrete.size:
            return made
        below, upto = (side[:, ::-1] for side in made.cover(table.matrix))
        unknown = upto - below > 1.0 - 1e-12
        covers = np.where(unknown, np.nan, below), np.where(unknown, np.nan, upto)
        vine = fit_path(covers, discrete, families, n_trees, made.apart(), table.weights)
        return replace(made, vine=vine)

    def apart(self) -> set[tuple[int, int]]:
        """Return the pairs of variables of one column, by their places on the path."""
        last, found = sum(column.discrete.size for column in self.columns) - 1, set()
        for column in self.columns:
            size = column.discrete.size
            found |= {(last - late, last - early) for late in range(size) for early in range(late)}
            last -= size
        return found

    def check_state(self) -> None:
        """Refuse parts that do not fit together."""
        check_type(self.columns, "columns", tuple)
        for column in self.columns:
            check_type(column, "columns", JointColumn)
        check_type(self.vine, "vine", DVine)
        check_count_of(self.n_trees, "n_trees", 1, 2**31)
        discrete = np.concatenate([column.discrete for column in self.columns])[::-1].tolist()
        require(self.vine.discrete.tolist() == discrete or not discrete, "vine is not of the columns")

    def check_columns(self, features: Sequence[Feature], n_given: int) -> None:
        """Refuse a vine that is not of these columns."""
        require(len(self.columns) == len(features), "columns are not as many as there are")
        for column, feature in zip(self.columns, features):
            column.check_column(feature)

    def cover(self, matrix: Floats) -> tuple[Floats, Floats]:
        """Return the shares below and up to the values of the first columns: (rows, variables)."""
        covers = [self.columns[j].cover(matrix[:, j]) for j in range(matrix.shape[1])]
        empty = np.empty((matrix.shape[0], 0))
        return np.hstack([empty, *(c[0] for c in covers)]), np.hstack([empty, *(c[1] for c in covers)])

    def known(self, covers: tuple[Floats, Floats]) -> Known:
        """Return what is known of the next variable given the covers of the first ones."""
        known = self.vine.known(self.n_trees)
        for k in range(covers[0].shape[1]):
            known = known.and_next(covers[0][:, k], covers[1][:, k])
        return known

    def conditional(self, j: int, known: Known, n: int) -> ColumnConditional:
        """Return the distribution of a column in each of `n` rows, given what is known before it."""
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
    column : what is seen of it.
    missing : probability that it is missing, by row.
    levels : probabilities of the unordered levels, if it is not (step 4).
    ordered : of numbers and ordered levels, if it is not; None of others.
    """

    column: JointColumn
    missing: Floats
    levels: Floats
    ordered: VineConditional | None

    def draw_within(self, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw an allowed value for each row, or a missing one where it is allowed, by their probabilities."""
        n = self.missing.size
        if self.ordered is not None:
            found = self.ordered.draw_within(rng, within, n)
        elif self.column.levels.size:
            codes = self.column.levels.astype(np.intp)
            weights = self.levels * within.level_mask(n, int(codes.max()) + 1)[:, codes]
            total = weights.sum(axis=1)
            dead = ~(total > 0.0)
            chosen = rng.categorical(np.where(dead[:, None], 1.0, weights))
            found = RestrictedDraw.of(self.column.levels[chosen], dead, log_of(total))
        else:
            found = RestrictedDraw.of(np.full(n, np.nan), np.ones(n, dtype=bool), np.full(n, -np.inf))
        assert found.log_mass is not None
        if self.column.missing == 0.0:
            return found
        known = log_of(1.0 - self.missing)
        found = RestrictedDraw(found.values, found.dead | np.isneginf(known), found.log_mass + known)
        assert found.log_mass is not None
        return found.or_missing(np.exp(found.log_mass), self.missing * within.allows_missing(n), rng.uniform())

    def log_density(self, values: Floats) -> Floats:
        """Return the log probability of levels, missing values and numbers with point mass, log density of others."""
        column, is_missing = self.column, np.isnan(values)
        gone = (1.0 - OF_THE_MARGIN) * self.missing + OF_THE_MARGIN * column.missing
        if self.ordered is not None:
            inside = np.where(is_missing, self.ordered.margin.values[0], values)
            found = self.ordered.log_density(inside, column.kernel if column.is_number else _NOTHING)
        elif column.levels.size:
            matches = values[:, None] == column.levels
            shares = (1.0 - OF_THE_MARGIN) * self.levels + OF_THE_MARGIN * column.shares
            found = log_of(np.where(matches, shares, 0.0).sum(axis=1))
        else:
            found = np.full(values.size, -np.inf)
        return np.where(is_missing, log_of(gone), found + log_of(1.0 - gone))


_NOTHING = np.empty(0), np.empty(0)
