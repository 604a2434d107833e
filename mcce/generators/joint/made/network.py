"""A fitted masked network: conditionals of each column given those before it, as arrays.

1. Columns are codes (steps 4 to 6); the inputs of the network are one-hot codes.
2. Two hidden layers of rectified units. A unit of degree d depends on the columns before column d; in the second layer
   on units of the first with a degree of at most d. The output of column j depends on units with a degree of at most j,
   and directly on the codes of the columns before j. So the output of j depends on the columns before j only:

       p(x) = prod_j softmax(output_j(x_1, ..., x_j-1))_(x_j).

3. The given columns come first and have no output: the network models p(mutable | given).

Columns are coded by few codes (`Bins`):

4. Each level and each number with point mass (`mcce.samplers.density`) has a code. The other numbers fall into bins of
   equal counts: with F their smooth distribution function (`mcce.samplers.density`), bin b of B contains numbers with
   F(x) from b / B to (b + 1) / B. Missing is the last code.
5. Within a bin F(x) is uniform: the density of a number is p_b B F'(x), with p_b the probability of its bin.
6. The allowed share of a bin is the part of its interval of F that lies between the bounds.

Germain, Gregor, Murray and Larochelle (2015), "MADE: masked autoencoder for distribution estimation", ICML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.generators.joint.made.kernels import run
from mcce.rng import RowStreams
from mcce.samplers import RestrictedDraw
from mcce.samplers.density import ColumnDensity
from mcce.samplers.restricted import Within
from mcce.storage.fields import BOOL, FLOAT, INT, check_between, check_count_of, require, stored
from mcce.storage.state import stateful
from mcce.table import Feature

ROWS_IN_BIN = 40


@stateful("Made.Bins")
@dataclass(frozen=True)
class Bins:
    """The codes of one column; the network needs bins of equal mass, so that its classes are about equally frequent.

    Attributes
    ----------
    n_levels : number of levels; 0 for numbers.
    density : point masses and margin of a column of numbers; None for levels, or if all are missing.
    n_bins : bins of the numbers without point mass.
    observed : which codes occur in the training rows.
    """

    n_levels: int = stored(int, least=0, most=2**31)
    density: ColumnDensity | None = stored(ColumnDensity, optional=True)
    n_bins: int = stored(int, least=0, most=2**31)
    observed: Bools = stored(BOOL, None)

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
        """Raise if the codes do not match a column."""
        spread = self.density is not None and self.density.knots.size > 0
        require(spread == (self.n_bins > 0), "n_bins are not those of the density")
        require(self.density is None or self.n_levels == 0, "a column has levels and numbers")
        n_codes = self.n_levels + self.atoms.size + self.n_bins + 1
        require(self.observed.size == n_codes, f"observed are {self.observed.size}, where there are {n_codes} codes")
        require(self.observed.any(), "observed has no code")

    @property
    def n_codes(self) -> int:
        """Number of codes."""
        return int(self.observed.size)

    @cached_property
    def atoms(self) -> Floats:
        """The numbers with point mass."""
        return np.empty(0) if self.density is None else self.density.atoms

    def encode(self, column: Floats) -> Ints:
        """Return the codes of values; a number without a code has that of the nearest one."""
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
        """Return values of codes; a bin gives a number between the bounds, by a uniform random number."""
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
        """Return the difference of the log density of a value and the log probability of its code (step 5).

        It is 0 for values with a probability, and -inf for numbers that cannot occur in the column.
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
        """Return the allowed share of each code in each row: (rows, codes), from 0 to 1 (step 6)."""
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
            parts[single, self.encode(low[single, 0])] = 1.0  # conditioned on, like a fixed one
        return parts

    def _below(self, values: Floats) -> Floats:
        assert self.density is not None
        return np.asarray(np.interp(values, self.density.knots, self.density.below))


def _signed(density: ColumnDensity) -> ColumnDensity:
    """Return the margin, truncated at 0 if all training values are on one side of 0."""
    if not density.knots.size or not (density.low >= 0.0 or density.high <= 0.0):
        return density
    low, high = (0.0, np.inf) if density.low >= 0.0 else (-np.inf, 0.0)
    knots = np.clip(density.knots, low, high)
    begin, end = int(np.sum(knots == low) > 1), knots.size - int(np.sum(knots == high) > 1)
    below = density.below[begin:end]
    return replace(density, knots=knots[begin:end], below=(below - below[0]) / (below[-1] - below[0]))


@stateful("Made.Network")
@dataclass(frozen=True)
class Network:
    """The weights of a masked network, zero where masked.

    Attributes
    ----------
    bins : of the columns.
    n_given : number of given columns, which come first.
    degree : of the hidden units of a layer, the same in both.
    input_weights, input_bias : from one-hot codes to the first layer.
    hidden_weights, hidden_bias : from the first to the second layer.
    output_weights, output_bias : from the second layer to the codes of the columns that are not given.
    direct_weights : from one-hot codes to these.
    losses : on the validation rows, by epoch.
    """

    bins: tuple[Bins, ...] = stored(tuple, of=Bins)
    n_given: int = stored(int, least=0)
    degree: Ints = stored(INT, "width", least=0)
    input_weights: Floats = stored(FLOAT, "inputs", "width", finite=True)
    input_bias: Floats = stored(FLOAT, "width", finite=True)
    hidden_weights: Floats = stored(FLOAT, "width", "width", finite=True)
    hidden_bias: Floats = stored(FLOAT, "width", finite=True)
    output_weights: Floats = stored(FLOAT, "width", "outputs", finite=True)
    output_bias: Floats = stored(FLOAT, "outputs", finite=True)
    direct_weights: Floats = stored(FLOAT, "inputs", "outputs", finite=True)
    losses: Floats = stored(FLOAT, None)

    def check_state(self) -> None:
        """Raise if the weights do not match each other."""
        check_count_of(self.n_given, "n_given", 0, len(self.bins) - 1)
        check_between(self.degree, "degree", 0, len(self.bins))
        sizes = int(self.first[-1]), int(self.first_out[-1])
        require(self.direct_weights.shape == sizes, "direct_weights do not match the codes of the columns")

    def check_columns(self, features: Sequence[Feature], n_given: int) -> None:
        """Raise if the network does not match these columns."""
        require(
            len(self.bins) == len(features) and self.n_given == n_given, "the number of bins is not that of the columns"
        )
        for each, feature in zip(self.bins, features):
            fits = each.n_levels == feature.n_levels and (feature.is_numeric or each.density is None)
            require(fits, "bins do not match the columns")

    @cached_property
    def first(self) -> Ints:
        """The first code of each column."""
        return np.concatenate([[0], np.cumsum([each.n_codes for each in self.bins])]).astype(np.int64)

    @cached_property
    def first_out(self) -> Ints:
        """The first code of each column that is not given."""
        return np.asarray(self.first[self.n_given :] - self.first[self.n_given])

    @cached_property
    def observed(self) -> Bools:
        """Which of these codes occur in the training rows."""
        return np.concatenate([each.observed for each in self.bins[self.n_given :]])

    def draw(self, givens: Floats, streams: RowStreams) -> Floats:
        """Draw the other columns given the first ones."""
        return self.draw_within(givens, streams, {}).values

    def draw_within(self, givens: Floats, streams: RowStreams, within: Mapping[int, Within]) -> RestrictedDraw:
        """Draw the other columns given the first ones, each inside its restriction, one after the other.

        As in a chain, the weight of a draw is the product of the masses allowed at each step.
        """
        n, drawn = givens.shape[0], self.bins[self.n_given :]
        codes = np.full((n, len(self.bins)), -1, dtype=np.int64)
        for j in range(self.n_given):
            codes[:, j] = self.bins[j].encode(givens[:, j])
        allowed, restricted = np.zeros((1, 1)), np.zeros(len(drawn), dtype=bool)
        if within:
            allowed = np.ones((n, int(self.first_out[-1])))
            for k, each in within.items():
                restricted[k] = True
                allowed[:, self.first_out[k] : self.first_out[k + 1]] = drawn[k].allowed(each, n)
        uniform = np.column_stack([streams.uniform() for _ in drawn])
        log_mass = np.zeros(n)
        self._run(codes, allowed, restricted, uniform, log_mass)
        values = np.empty((n, len(drawn)), order="F")
        for k, bins in enumerate(drawn):
            values[:, k] = bins.decode(codes[:, self.n_given + k], streams.uniform(), within.get(k))
        rejected = np.isneginf(log_mass)
        values[rejected] = np.nan
        return RestrictedDraw(values, rejected, log_mass)

    def log_densities(self, matrix: Floats) -> Floats:
        """Return the log density of each column that is not given, given all before it."""
        codes = np.column_stack([bins.encode(matrix[:, j]) for j, bins in enumerate(self.bins)])
        free, n_out = np.zeros(len(self.bins) - self.n_given, dtype=bool), len(self.bins) - self.n_given
        found = self._run(codes, np.zeros((1, 1)), free, np.zeros((matrix.shape[0], n_out)), np.zeros(matrix.shape[0]))
        for k, bins in enumerate(self.bins[self.n_given :]):
            found[:, k] += bins.log_spread(matrix[:, self.n_given + k], codes[:, self.n_given + k])
        return found

    def _run(self, codes: Ints, allowed: Floats, restricted: Bools, uniform: Floats, log_mass: Floats) -> Floats:
        log_probability = np.empty((codes.shape[0], len(self.bins) - self.n_given))
        run(codes, self.n_given, self.first, self.first_out, self.observed, self.degree, self.input_weights,
            self.input_bias, self.hidden_weights, self.hidden_bias, self.output_weights, self.output_bias,
            self.direct_weights, allowed, restricted, uniform, log_probability, log_mass)  # fmt: skip
        return log_probability
