"""Margins of the Gaussian copula: how observed values and latent standard normal variables correspond.

1. An ordered column (numbers, ordered levels, two levels) is a discretised standard normal Z: v is observed when Phi(Z)
   is between F(v-) and F(v). A continuous value is the point Phi^-1((F(v-) + F(v)) / 2); a level, or a value with point
   mass (`mcce.samplers.density`), is the whole interval.
2. Three or more unordered levels are the argmax of utilities U_k = a_k + e_k, e ~ N(0, I), with offsets a that solve
   P(argmax U = k) = share of level k. Levels are numbered by frequency, so relabelling has no effect.

With W(u) = prod_m Phi(u - a_m), G_k = phi(u - a_k) / Phi(u - a_k), P_k = integral of G_k W du, and J_kl = dP_k / da_l =
-integral of G_k G_l W du (k != l) = E[e_l 1{level k}]; integrals are sums over an even grid.

A density at a number without point mass is s q(z) / phi(z): q the density of the latent variable given what is known, s
the slope of the margin's kernel estimate (`kernel_margin`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.samplers.base import BaseMeasure
from mcce.samplers.copula.kernels import CDF, choose_rows
from mcce.samplers.density import EVEN_PART, ColumnDensity, find_point_masses, smooth_distribution
from mcce.storage.fields import BOOL, FLOAT, check_codes, check_rising, require, stored
from mcce.storage.state import stateful
from mcce.table import Column, Feature
from mcce.table.weights import count_distinct

_FINE_GRID = np.arange(-8.0, 8.01, 0.125)


@stateful("copula.Margin")
@dataclass(frozen=True)
class Margin:
    """A column with one latent variable (none if it is constant).

    Attributes
    ----------
    values : the distinct training values, in latent order
    shares : shares of the rows below each value, and 1 at the end
    atoms : whether each value corresponds to an interval of the latent variable, not to a point
    ordered : whether `values` is sorted; else two levels by frequency
    n_rows : number of training rows
    weight : sum of their weights; None without weights
    """

    values: Floats = stored(FLOAT, "values", finite=True, distinct=True, filled=True)
    shares: Floats = stored(FLOAT, "values + 1", rising=True)
    atoms: npt.NDArray[np.bool_] = stored(BOOL, "values")
    ordered: bool = stored(bool)
    n_rows: int = stored(int, least=1, most=2**31)
    weight: float | None = stored(float, least=0.0, most=2.0**31, optional=True, default=None)

    @classmethod
    def from_column(cls, column: Column) -> Margin:
        """Read the margin of a column; an unordered column has at most two levels."""
        ordered = column.feature.kind != "categorical"
        if ordered:
            values, counts = count_distinct(column.values, column.weights)
        else:
            values, counts = by_frequency(column.values, column.weights)
        atoms = np.full(values.size, True)
        if column.feature.is_numeric:
            atoms = find_point_masses(column.values, column.weights)[2]
        shares = np.concatenate([[0.0], np.cumsum(counts) / column.total])
        shares[-1] = 1.0
        weight = None if column.weights is None else column.total
        return cls(values, shares, atoms, ordered, column.values.size, weight)

    def check_state(self) -> None:
        """Raise if the parts do not form a margin."""
        require(self.values.size <= (self.n_rows if self.ordered else 2), "values are too many")
        if self.ordered:
            check_rising(self.values, "values")
        require(self.shares[0] == 0.0 and abs(self.shares[-1] - 1.0) < 1e-9, "shares do not go from 0 to 1")

    def check_column(self, feature: Feature, n_rows: int) -> None:
        """Raise if the margin does not belong to this column and number of training rows."""
        require(self.n_rows == n_rows, f"n_rows is {self.n_rows}, and there are {n_rows} training rows")
        require(self.ordered == (feature.kind != "categorical"), "ordered does not match the column")
        if not feature.is_numeric:
            check_codes(self.values, "values", feature.n_levels)

    @property
    def n_latents(self) -> int:
        return int(self.values.size > 1)

    @property
    def base_measure(self) -> BaseMeasure:
        """The measure that densities of this column are with respect to."""
        if self.atoms.all():
            return "counting"
        return "mixed" if self.atoms.any() else "lebesgue"

    @property
    def count(self) -> float:
        """Number of training rows, or the sum of their weights."""
        return self.n_rows if self.weight is None else self.weight

    @property
    def training_values(self) -> tuple[Floats, Floats | None]:
        """The training values, one per row, and None; with weights, the distinct values and their weights."""
        times = np.diff(self.shares) * self.count
        if self.weight is not None:
            whole = np.rint(times)  # shares are rounded
            return self.values, np.where(np.abs(times - whole) < 1e-6, whole, times)
        return np.repeat(self.values, np.rint(times).astype(np.int64)), None

    @cached_property
    def density(self) -> ColumnDensity:
        """Point masses of a column of numbers, and the kernel estimate of the others (`kernel_margin`)."""
        ends = float(self.values[0]), float(self.values[-1])
        return ColumnDensity(self.values[self.atoms], np.diff(self.shares)[self.atoms], *kernel_margin(self), *ends)

    @property
    def cuts(self) -> Floats:
        """Thresholds of the latent variable: -inf, those between neighbouring values, inf."""
        return _quantile(self.shares)

    def position(self, values: Floats) -> Ints:
        """Return the position of each value among the training values; -1 if it is not among them."""
        if self.ordered:
            at = np.minimum(np.searchsorted(self.values, values), self.values.size - 1)
            return np.where(self.values[at] == values, at, -1)
        return _position(self.values, values)

    def bounds(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the interval of the latent variable that corresponds to each value; equal ends for a point.

        An unobserved number or ordered level corresponds to the threshold at its position, an unobserved unordered
        level to the whole line.
        """
        if self.ordered:
            after = np.searchsorted(self.values, values)
            found = self.values[np.minimum(after, self.values.size - 1)] == values
            at = np.where(found, after, -1)
            below, upto = self.shares[after], self.shares[after + found]
        else:
            at = self.position(values)
            below = np.where(at < 0, 0.0, self.shares[at])
            upto = np.where(at < 0, 1.0, self.shares[at + 1])
        margin = min(0.5 / self.count, 0.5)
        point = _quantile(np.clip((below + upto) / 2, margin, 1 - margin))
        is_point = np.where(at < 0, self.ordered, ~self.atoms[at])
        return np.where(is_point, point, _quantile(below)), np.where(is_point, point, _quantile(upto))

    def cover(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the shares below, and up to and including, each value; their middle without point masses."""
        after = np.searchsorted(self.values, values)
        found = self.position(values) >= 0
        below, upto = self.shares[after], self.shares[np.minimum(after + found, self.values.size)]
        half = min(0.5 / self.count, 0.5)
        if not self.atoms.any():
            middle = np.clip((below + upto) / 2, half, 1.0 - half)
            return middle, middle
        middle = np.clip(below, half, 1.0 - half)
        return np.where(found, below, middle - half), np.where(found, upto, middle + half)

    def positions_of(self, latent: Floats) -> Ints:
        """Return the position of the value that corresponds to each latent number."""
        found: Ints = np.searchsorted(self.shares[1:-1], scipy.special.ndtr(latent), side="right")
        return found

    def values_of(self, latents: Floats) -> Floats:
        """Return the value that corresponds to each row of latent numbers (one, or none)."""
        if self.n_latents == 0:
            return np.full(len(latents), self.values[0])
        return self.values[self.positions_of(latents[:, 0])]


@stateful("copula.Utilities")
@dataclass(frozen=True)
class Utilities:
    """A column of three or more unordered levels, with one latent utility each.

    Attributes
    ----------
    values : codes of the observed levels, by frequency
    shares : their shares of the rows
    offsets : a, solving P(argmax(a + e) = k) = shares[k]
    jacobian : J, derivatives of these probabilities
    """

    values: Floats = stored(FLOAT, "levels", finite=True, distinct=True)
    shares: Floats = stored(FLOAT, "levels", above=0.0)
    offsets: Floats = stored(FLOAT, "levels", least=-100.0, most=100.0)
    jacobian: Floats = stored(FLOAT, "levels", "levels", finite=True)

    @classmethod
    def from_column(cls, column: Column) -> Utilities:
        """Solve for the offsets by Newton's method, with steps of at most 1."""
        values, counts = by_frequency(column.values, column.weights)
        shares = counts / column.total
        offsets = 0.8 * np.log(shares)
        for _ in range(100):
            found, jacobian = _choices(offsets)
            step = np.linalg.solve(jacobian + 1.0 / shares.size, shares - found)
            offsets += step / max(1.0, float(np.abs(step).max()))
            if np.abs(step).max() < 1e-10:
                break
        offsets -= offsets.mean()
        return cls(values, shares, offsets, _choices(offsets)[1])

    def check_state(self) -> None:
        """Raise if the parts do not form utilities."""
        require(self.values.size > 2, f"values holds {self.values.size} levels; utilities need more than two")
        require(abs(self.shares.sum() - 1.0) < 1e-6, "shares do not add up to 1")

    def check_column(self, feature: Feature, n_rows: int) -> None:
        """Raise if the utilities do not belong to this column."""
        require(feature.kind == "categorical", "utilities belong to an ordered column")
        check_codes(self.values, "values", feature.n_levels)

    @property
    def n_latents(self) -> int:
        return self.values.size

    def position(self, values: Floats) -> Ints:
        """Return the position of each level among the observed ones; -1 if it is not among them."""
        return _position(self.values, values)

    def values_of(self, latents: Floats) -> Floats:
        """Return the level that corresponds to each row of noise."""
        return np.asarray(self.values[(latents + self.offsets).argmax(axis=1)])


def _position(known: Floats, values: Floats) -> Ints:
    matches = values[:, None] == known
    return np.where(matches.any(axis=1), matches.argmax(axis=1), -1)


def read_margin(column: Column) -> Margin | Utilities:
    """Return the margin for the kind of the column."""
    if column.feature.kind == "categorical" and np.unique(column.values).size > 2:
        return Utilities.from_column(column)
    return Margin.from_column(column)


def by_frequency(values: Floats, weights: Floats | None = None) -> tuple[Floats, npt.NDArray[Any]]:
    """Return the distinct values and their counts or sums of weights, in descending order, ties by the first row."""
    distinct, first = np.unique(values, return_index=True)
    counts = count_distinct(values, weights)[1]
    order = np.lexsort((first, -counts))
    return distinct[order], counts[order]


def choice_probabilities(means: Floats, sd: float) -> Floats:
    """Return P(argmax_k (means_k + sd e_k) = k), e ~ N(0, I), for each row of `means`."""
    found = np.empty(means.shape)
    choose_rows(np.ascontiguousarray(means), max(sd, 1e-9), CDF, found)
    return found


def winning_noise(utilities: Utilities, uniforms: Floats) -> Floats:
    """Return noise e given that each level in turn is the argmax: (levels, points, levels).

    `uniforms` (points, levels) are transformed by inversion: first the noise of the argmax, then the others below it.
    """
    a = utilities.offsets
    noise = np.empty((a.size, *uniforms.shape))
    for k in range(a.size):
        grid, below = _winning_cdf(a, k)
        winner = np.interp(uniforms[:, k], below, grid)
        limit = scipy.special.ndtr(winner[:, None] + a[k] - a)
        noise[k] = _quantile(np.maximum(uniforms * limit, 1e-300))
        noise[k, :, k] = winner
    return noise


def kernel_margin(margin: Margin) -> tuple[Floats, Floats]:
    """Return knots and distribution function of the values that are not atoms, linear in between; empty without any.

    See `mcce.samplers.density`. A kernel estimate extends beyond an atom, for example below 0 for non-negative amounts.
    So the function is set to the share of the values below each atom, except for a thousandth, which keeps the density
    between two atoms positive.
    """
    x, weights = margin.training_values
    spread = np.isin(x, margin.values[~margin.atoms])
    x, weights = x[spread], None if weights is None else weights[spread]
    knots, below = smooth_distribution(x, weights)
    atoms = margin.values[margin.atoms]
    atoms = atoms[(atoms > knots[0]) & (atoms < knots[-1])] if knots.size else atoms[:0]
    if not atoms.size:
        return knots, below
    upto = np.concatenate([[0.0], np.cumsum(np.ones(x.size) if weights is None else weights)])
    estimate = np.concatenate([[0.0], np.interp(atoms, knots, below), [1.0]])
    counted = np.concatenate([[0.0], upto[np.searchsorted(x, atoms)] / upto[-1], [1.0]])
    wanted = (1.0 - EVEN_PART) * counted + EVEN_PART * estimate
    every = np.union1d(knots, atoms)
    return every, np.interp(np.interp(every, knots, below), estimate, wanted)


def _quantile(share: Floats) -> Floats:
    return np.asarray(scipy.special.ndtri(share), dtype=np.float64)


def _choices(offsets: Floats) -> tuple[Floats, Floats]:
    """Return the levels' probabilities and their derivatives by the offsets."""
    at = (_FINE_GRID[:, None] + offsets.max()) - offsets
    log_below = scipy.special.log_ndtr(at)
    log_ratio = -0.5 * at**2 - 0.5 * np.log(2 * np.pi) - log_below
    weight = np.exp(log_below.sum(axis=1)) * (_FINE_GRID[1] - _FINE_GRID[0])
    ratio = np.exp(log_ratio)
    jacobian = -(ratio * weight[:, None]).T @ ratio
    np.fill_diagonal(jacobian, 0.0)
    np.fill_diagonal(jacobian, -jacobian.sum(axis=1))
    return weight @ ratio, jacobian


def _winning_cdf(offsets: Floats, k: int) -> tuple[Floats, Floats]:
    """Return a grid of level k's noise and its distribution function given that level k is the argmax."""
    noise = np.arange(-8.0, 9.0, 0.02)
    log_density = -0.5 * noise**2
    for other in np.delete(offsets, k):
        log_density += scipy.special.log_ndtr(noise + offsets[k] - other)
    mass = np.cumsum(np.exp(log_density - log_density.max()))
    return noise + 0.01, mass / mass[-1]


_LEAST = 1e-12  # least distance of a share from 0 and 1


@dataclass(frozen=True)
class Places:
    """Positions of numbers on the latent scale.

    Attributes
    ----------
    low, high : the interval of the latent variable that corresponds to each number; equal ends for a point.
    is_atom : whether the number has point mass.
    slope : density of the margin at the other numbers; 0 outside the kernel estimate.
    """

    low: Floats
    high: Floats
    is_atom: Bools
    slope: Floats

    @property
    def possible(self) -> Bools:
        """Whether each number has a positive mass or density."""
        return np.asarray(self.is_atom | (self.slope > 0.0))


def place_numbers(margin: Margin, values: Floats) -> Places:
    """Return the positions of numbers, by atoms and a kernel estimate of the others (`Margin.density`)."""
    at = margin.position(values)
    is_atom = (at >= 0) & margin.atoms[at]
    below, slope = margin.density.margin(values)
    upto = np.minimum(below + np.where(is_atom, np.diff(margin.shares)[at], 0.0), 1.0)
    point = scipy.special.ndtri(np.clip(below, _LEAST, 1 - _LEAST))
    low = np.where(is_atom, scipy.special.ndtri(np.minimum(below, 1.0)), point)
    return Places(low, np.where(is_atom, scipy.special.ndtri(upto), point), is_atom, slope)
