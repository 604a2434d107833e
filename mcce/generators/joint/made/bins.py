"""Columns as few codes that a network can predict, and back.

1. A level is its own code. A number with point mass has a code of its own (`mcce.samplers.point_mass`). The other
   numbers fall into bins of equal counts: with F their distribution function, a smooth one
   (`mcce.samplers.column_density`), bin b of B holds those with F(x) from b / B to (b + 1) / B. Missing is the last
   code.
2. Inside a bin F(x) is uniform: the density of a number is that of its bin, p_b B F'(x).
3. What is allowed of a bin is the part of its interval of F that lies between the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mcce.arrays import Bools, Floats, Ints
from mcce.samplers.column_density import ColumnDensity
from mcce.samplers.within import Within
from mcce.soundness import BOOL, check_array, check_count_of, check_type, require
from mcce.state import stateful
from mcce.table import Feature

ROWS_IN_BIN = 40


@stateful("Made.Bins")
@dataclass(frozen=True)
class Bins:
    """The codes of one column.

    Attributes
    ----------
    n_levels : number of levels; 0 for numbers.
    density : point masses and margin of a column of numbers; None for levels, or if all are missing.
    n_bins : bins of the numbers without point mass.
    observed : which codes some training row has.
    """

    n_levels: int
    density: ColumnDensity | None
    n_bins: int
    observed: Bools

    @classmethod
    def of(cls, column: Floats, feature: Feature, most_bins: int, weights: Floats | None = None) -> Bins:
        """Choose the codes of a training column; weights count as copies."""
        is_known = ~np.isnan(column)
        known, weight = column[is_known], None if weights is None else weights[is_known]
        density, n_bins = None, 0
        if feature.is_numeric and known.size:
            density = _signed(ColumnDensity.of(known, weight))
            is_spread = ~density.has_mass(known)
            n_spread = int(is_spread.sum() if weight is None else weight[is_spread].sum())
            n_bins = min(most_bins, max(1, n_spread // ROWS_IN_BIN)) if density.knots.size else 0
        n_codes = feature.n_levels + (0 if density is None else density.atoms.size) + n_bins + 1
        made = cls(feature.n_levels, density, n_bins, np.zeros(n_codes, dtype=bool))
        return replace(made, observed=np.bincount(made.encode(column), minlength=n_codes) > 0)

    def check_state(self) -> None:
        """Refuse codes that are of no column."""
        check_count_of(self.n_levels, "n_levels", 0, 2**31)
        check_count_of(self.n_bins, "n_bins", 0, 2**31)
        check_type(self.density, "density", ColumnDensity, type(None))
        spread = self.density is not None and self.density.knots.size > 0
        require(spread == (self.n_bins > 0), "n_bins are not those of the density")
        require(self.density is None or self.n_levels == 0, "a column has levels and numbers")
        check_array(self.observed, "observed", BOOL, self.n_levels + self.atoms.size + self.n_bins + 1)
        require(self.observed.any(), "observed has no code")

    @property
    def n_codes(self) -> int:
        """How many codes there are."""
        return int(self.observed.size)

    @cached_property
    def atoms(self) -> Floats:
        """The numbers with point mass."""
        return np.empty(0) if self.density is None else self.density.atoms

    def encode(self, column: Floats) -> Ints:
        """Return the codes of values; a number that no code has is that of the nearest one."""
        missing = np.isnan(column)
        if self.n_levels:
            codes = column
        elif self.density is None:
            return np.full(column.size, self.n_codes - 1, dtype=np.int64)
        else:
            x = np.where(missing, self.density.low, column)
            if self.n_bins:
                spread = self.atoms.size + np.minimum(np.floor(self._below(x) * self.n_bins), self.n_bins - 1)
                nearest = np.searchsorted(self.atoms, x)
                codes = np.where(self.density.has_mass(x), nearest, spread)
            else:
                codes = np.searchsorted(self.atoms[:-1] + np.diff(self.atoms) / 2.0, x).astype(np.float64)
        return np.where(missing, self.n_codes - 1, np.where(missing, 0.0, codes)).astype(np.int64)

    def decode(self, codes: Ints, uniform: Floats, within: Within | None = None) -> Floats:
        """Return values of codes: of a bin, a number between the bounds by a uniform one."""
        first_bin = self.n_levels + self.atoms.size
        values = np.where(codes < self.n_levels, codes, np.nan).astype(np.float64)
        is_atom = (codes >= self.n_levels) & (codes < first_bin)
        values[is_atom] = self.atoms[codes[is_atom] - self.n_levels]
        rows = np.flatnonzero((codes >= first_bin) & (codes < self.n_codes - 1))
        if rows.size:
            assert self.density is not None
            begin = (codes[rows] - first_bin) / self.n_bins
            end = begin + 1.0 / self.n_bins
            low, high = np.full(rows.size, -np.inf), np.full(rows.size, np.inf)
            if within is not None:
                low, high = (each[rows] for each in within.bounds(codes.size))
                begin, end = np.maximum(begin, self._below(low)), np.minimum(end, self._below(high))
            place = begin + uniform[rows] * np.maximum(end - begin, 0.0)
            drawn = np.interp(place, self.density.below, self.density.knots)
            values[rows] = np.clip(drawn, low, high)
        return values

    def log_spread(self, column: Floats, codes: Ints) -> Floats:
        """Return what a code's log probability lacks to the log density of the value (step 2).

        It is 0 for what has a probability, and -inf for a number of which the column has none.
        """
        found = np.zeros(column.size)
        if self.density is None:
            return found
        spread = ~np.isnan(column) & ~self.density.has_mass(column)
        with np.errstate(divide="ignore"):
            if self.n_bins:
                slope = self.density.margin(column[spread])[1] / self.density.spread_share
                found[spread] = np.log(self.n_bins * slope)
            else:
                found[spread] = -np.inf
        return found

    def allowed(self, within: Within, n: int) -> Floats:
        """Return how much of each code is allowed, row by row: (rows, codes), from 0 to 1 (step 3)."""
        parts = np.zeros((n, self.n_codes))
        parts[:, -1] = within.allows_missing(n)
        if self.n_levels:
            parts[:, : self.n_levels] = within.level_mask(n, self.n_levels)
            return parts
        low, high = (each[:, None] for each in within.bounds(n))
        parts[:, : self.atoms.size] = (self.atoms >= low) & (self.atoms <= high)
        if self.n_bins:
            edges = np.arange(self.n_bins + 1) / self.n_bins
            begin, end = np.maximum(edges[:-1], self._below(low)), np.minimum(edges[1:], self._below(high))
            parts[:, self.atoms.size : -1] = np.maximum(end - begin, 0.0) * self.n_bins
            single = np.flatnonzero((low == high)[:, 0] & ~np.isin(low[:, 0], self.atoms))
            parts[single, self.encode(low[single, 0])] = 1.0  # given, like a fixed one
        return parts

    def _below(self, values: Floats) -> Floats:
        assert self.density is not None
        return np.asarray(np.interp(values, self.density.knots, self.density.below))


def _signed(density: ColumnDensity) -> ColumnDensity:
    """Return the margin without numbers on the other side of 0, if all training values are on one."""
    if not density.knots.size or not (density.low >= 0.0 or density.high <= 0.0):
        return density
    low, high = (0.0, np.inf) if density.low >= 0.0 else (-np.inf, 0.0)
    knots = np.clip(density.knots, low, high)
    begin, end = int(np.sum(knots == low) > 1), knots.size - int(np.sum(knots == high) > 1)
    below = density.below[begin:end]
    return replace(density, knots=knots[begin:end], below=(below - below[0]) / (below[-1] - below[0]))
