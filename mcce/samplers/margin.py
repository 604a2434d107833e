"""The distribution of one column: point masses, and a kernel estimate of all other numbers.

1. *Base measure*, one per column, for the densities of all samplers. With A the numbers with point mass and NaN the
   missing value, mu(B) = #(B and A) + #(B and {NaN}) + Lebesgue(B without A), in encoded units; levels are all in A.
   So log densities are log P(y) for levels, missing values and y in A, and log f(y) for other numbers.
2. A number has point mass if at least one per cent of the known rows (and two of them) hold it. If nine rows in ten
   share their value with another and at most 100 numbers are distinct, every number, observed or not, has point mass.
3. The rest has a normal kernel estimate with Silverman's bandwidth, reflected at its least and greatest value. Its
   distribution function F is linear between 256 quantiles. A value beyond the n observed ones has the probability
   1 / (n + 1) on either side, with an exponential tail, or evenly up to a number with point mass. `ppf` and
   `from_normal` stay in the observed range.
4. Normal scores: a number is the point z = Phi^-1(F(y)); a value with point mass is the interval between Phi^-1(F(y-))
   and Phi^-1(F(y)), and its score the mean of a standard normal inside of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from mcce._utils import Bools, Floats, Ints
from mcce.table import Feature, Grid

POINT_MASS = 0.01
DISCRETE_SHARE, DISCRETE_VALUES = 0.9, 100
KNOTS = 256
KERNELS = 512  # more values are represented by so many quantiles
ROOT_TAU = float(np.sqrt(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class Margin:
    """The distribution of one column, without its missing values: `Margin.fit(target.values, target.feature)`.

    Everything is computed when it is first needed, so fitting costs nothing.

    Attributes
    ----------
    known : the known training values.
    n_levels : number of levels; 0 for numbers.
    missing : share of missing training values.
    grid : the grid of the numbers, or None.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from mcce.samplers.margin import Margin
    >>> from mcce.table import Schema
    >>> X = pd.DataFrame({"amount": np.append(np.zeros(500), np.linspace(0.1, 50.1, 501) ** 2)})
    >>> table = Schema.from_data(X).encode(X)
    >>> margin = Margin.fit(table.column(0).values, table.features[0])
    >>> margin.atoms.tolist(), margin.cdf(np.array([0.0, 625.0])).round(2).tolist()
    ([0.0], [0.5, 0.75])
    >>> margin.ppf(np.array([0.2, 0.75])).round(-2).tolist()
    [0.0, 600.0]
    """

    known: Floats
    n_levels: int = 0
    missing: float = 0.0
    grid: Grid | None = None
    _given: tuple[Floats, bool] | None = None  # atoms and `is_counting` of the column that this is a part of
    _others: dict[bytes, Margin] = field(default_factory=dict, repr=False)

    @classmethod
    def fit(cls, values: Floats, feature: Feature) -> Margin:
        """Read the training values of a column; NaN is missing."""
        is_missing = np.isnan(values)
        known = values[~is_missing] if is_missing.any() else np.asarray(values)
        grid = feature.grid if feature.is_numeric else None
        return cls(known, feature.n_levels, 1.0 - known.size / max(values.size, 1), grid)

    def with_atoms_of(self, column: Margin) -> Margin:
        """Return this distribution with the point masses of another one, so that densities compare.

        A part of a column, such as its positive numbers, has the base measure of the whole column.
        """
        if column.is_counting == self.is_counting and np.array_equal(column.atoms, self.atoms):
            return self
        atoms = np.union1d(column.atoms, self.known) if column.is_counting else column.atoms
        same = replace(self, _given=(atoms, column.is_counting), _others={})
        return self._others.setdefault(atoms.tobytes(), same)

    # -------------------------------------------------------------------------------------------------- point masses

    @cached_property
    def _counted(self) -> tuple[Floats, Ints]:
        return np.unique(self.known, return_counts=True)

    @cached_property
    def is_counting(self) -> bool:
        """Whether every value has point mass: levels, and few repeated numbers."""
        if self.n_levels:
            return True
        if self._given is not None:
            return self._given[1]
        distinct, counts = self._counted
        repeated = counts[counts > 1].sum() >= DISCRETE_SHARE * self.known.size
        return bool(repeated) and distinct.size <= DISCRETE_VALUES

    @cached_property
    def atoms(self) -> Floats:
        """The values with point mass, ascending."""
        if self.n_levels:
            return np.arange(float(self.n_levels))
        if self._given is not None:
            return self._given[0]
        distinct, counts = self._counted
        return distinct if self.is_counting else distinct[counts >= max(2.0, POINT_MASS * self.known.size)]

    @cached_property
    def shares(self) -> Floats:
        """The shares of the atoms among the known rows."""
        place, is_atom = self._place(self.known)
        return np.bincount(place[is_atom], minlength=self.atoms.size) / max(self.known.size, 1)

    def is_atom(self, values: Floats) -> Bools:
        """Return which values are among the `atoms`."""
        return self._place(values)[1]

    def has_mass(self, values: Floats) -> Bools:
        """Return which values have point mass in the base measure; NaN has."""
        if self.is_counting:
            return np.full(np.shape(values), True)
        return self.is_atom(values) | np.isnan(values)

    def _place(self, values: Floats) -> tuple[Ints, Bools]:
        """Return the position of each value among the atoms, and whether it is there."""
        if not self.atoms.size:
            return np.zeros(np.shape(values), dtype=np.int64), np.zeros(np.shape(values), dtype=bool)
        place = np.minimum(np.searchsorted(self.atoms, values), self.atoms.size - 1)
        return place, np.asarray(self.atoms[place] == values)

    # ---------------------------------------------------------------------------------------------------- the rest

    @cached_property
    def rest(self) -> Floats:
        """The known training values without point mass, ascending."""
        if self.is_counting:
            return np.empty(0)
        return np.sort(self.known[~self.is_atom(self.known)])

    @cached_property
    def bandwidth(self) -> float:
        """Silverman's bandwidth of the rest."""
        rest = self.rest
        if not rest.size:
            return 0.0
        low, high = rest[[rest.size // 4, (3 * rest.size) // 4]]
        width = float(silverman(np.std(rest), high - low, rest.size))
        step = self.grid.step if self.grid is not None else 0.0
        width = width or step or 0.01 * max(1.0, abs(float(rest[0])))
        return max(width, 4.0 * float(np.spacing(np.abs(rest).max())))  # wider than rounding

    @cached_property
    def _smooth(self) -> tuple[Floats, Floats, Floats]:
        """Knots, the distribution function of the rest at them, and the scales of its two tails."""
        rest, width = self.rest, self.bandwidth
        low, high = float(rest[0]), float(rest[-1])
        if low == high:
            low, high = low - width, high + width
        kernels = rest if rest.size <= KERNELS else np.quantile(rest, (np.arange(KERNELS) + 0.5) / KERNELS)

        def estimate(x: Floats) -> Floats:
            return np.asarray(ndtr((x[:, None] - kernels) / width).mean(axis=1))

        inner = np.quantile(rest, np.linspace(0.0, 1.0, min(KNOTS, rest.size)))
        knots = np.unique(np.concatenate([[low], inner, [high]]))
        below = estimate(knots) - estimate(2.0 * low - knots) - estimate(2.0 * high - knots)
        below = np.maximum.accumulate(below - below[0])
        beyond = min(1.0 / (rest.size + 1), 0.25)
        below = beyond + (1.0 - 2.0 * beyond) * below / below[-1]
        under, over = self.atoms[self.atoms < low][-1:], self.atoms[self.atoms > high][:1]  # no tail passes an atom
        knots = np.concatenate([under, knots, over])
        below = np.concatenate([np.zeros(under.size), below, np.ones(over.size)])
        k = int(np.sqrt(rest.size))  # the k outermost values: an exponential tail has the same scale beyond them
        tails = np.array([rest[k - 1] - rest[:k].mean(), rest[-k:].mean() - rest[-k]])
        return knots, below, np.maximum(tails, width)

    @cached_property
    def _rest_share(self) -> float:
        return self.rest.size / max(self.known.size, 1)

    # ------------------------------------------------------------------------------------------------ distribution

    def density(self, values: Floats) -> Floats:
        """Return the probability of values with point mass and the density of others; 0 for NaN."""
        place, is_atom = self._place(values)
        out = np.where(is_atom, self.shares[place], 0.0) if self.atoms.size else np.zeros(values.size)
        if not self.rest.size:
            return out
        knots, below, tails = self._smooth
        slopes = np.diff(below) / np.diff(knots)
        piece = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, slopes.size - 1)
        over, under = values - knots[-1], knots[0] - values
        smooth = np.where(
            over > 0.0, (1.0 - below[-1]) / tails[1] * np.exp(-np.maximum(over, 0.0) / tails[1]), slopes[piece]
        )
        smooth = np.where(under > 0.0, below[0] / tails[0] * np.exp(-np.maximum(under, 0.0) / tails[0]), smooth)
        return np.where(is_atom | np.isnan(values), out, self._rest_share * smooth)

    def log_density(self, values: Floats) -> Floats:
        """Return the log density relative to the base measure, missing values included; -inf for impossible values."""
        with np.errstate(divide="ignore"):
            known = np.log(1.0 - self.missing) + np.log(self.density(values))
            return np.where(np.isnan(values), np.log(self.missing), known)

    def cdf(self, values: Floats, below: bool = False) -> Floats:
        """Return P(Y <= y) of the known values, or P(Y < y); NaN for NaN."""
        upto = np.concatenate([[0.0], np.cumsum(self.shares)])
        probability = upto[np.searchsorted(self.atoms, values, side="left" if below else "right")]
        if self.rest.size:
            knots, at_knots, tails = self._smooth
            over, under = np.maximum(values - knots[-1], 0.0), np.maximum(knots[0] - values, 0.0)
            inside = np.interp(values, knots, at_knots)
            inside = np.where(over > 0.0, 1.0 - (1.0 - at_knots[-1]) * np.exp(-over / tails[1]), inside)
            inside = np.where(under > 0.0, at_knots[0] * np.exp(-under / tails[0]), inside)
            probability = probability + self._rest_share * inside
        return np.where(np.isnan(values), np.nan, np.minimum(probability, 1.0))

    def ppf(self, u: Floats) -> Floats:
        """Return the least y of the observed range with P(Y <= y) >= u; NaN without known values."""
        if not self.known.size:
            return np.full(np.shape(u), np.nan)
        upto, values = self._inverse
        if self.rest.size:
            return np.interp(u, upto, values)
        place = np.searchsorted(upto, np.minimum(u, upto[-1]) - 1e-12)  # a step function
        return np.asarray(values[np.minimum(place, values.size - 1)])

    @cached_property
    def _inverse(self) -> tuple[Floats, Floats]:
        """Points of the distribution function, two at each atom."""
        if not self.rest.size:
            has_rows = self.shares > 0.0
            return np.cumsum(self.shares[has_rows]), self.atoms[has_rows]
        atoms = self.atoms[self.shares > 0.0]
        knots = np.setdiff1d(self._smooth[0], atoms)
        values = np.concatenate([knots, atoms, atoms])
        upto = np.concatenate([self.cdf(knots), self.cdf(atoms, below=True), self.cdf(atoms)])
        order = np.lexsort((upto, values))
        return upto[order], np.clip(values[order], self.known.min(), self.known.max())

    # ------------------------------------------------------------------------------------------------ normal scores

    def interval(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the ends of each value's interval of normal scores; equal for numbers without point mass."""
        return self.score(values, below=True), self.score(values)

    def score(self, values: Floats, below: bool = False) -> Floats:
        """Return Phi^-1(F(y)), or Phi^-1(F(y-))."""
        return np.asarray(ndtri(self.cdf(values, below)))

    def to_normal(self, values: Floats) -> Floats:
        """Return the normal score of each value: the mean of a standard normal inside the value's interval."""
        low, high = self.cdf(values, below=True), self.cdf(values)
        least = 0.5 / (self.known.size + 1)
        middle = ndtri(np.clip(0.5 * (low + high), least, 1.0 - least))
        mass = high - low
        mean = np.divide(_phi(ndtri(low)) - _phi(ndtri(high)), mass, out=middle.copy(), where=mass > 1e-12)
        return np.where(np.isnan(values), np.nan, mean)

    def scored(self, values: Floats) -> tuple[Floats, Floats]:
        """Return normal scores, and the log of each value's density over that of its score, 0 for missing values.

        Both are looked up for values of the training rows, because most values are.
        """
        distinct, scores, log_slopes = self._scored
        if not distinct.size:
            return np.full(values.size, np.nan), np.zeros(values.size)
        place = np.minimum(np.searchsorted(distinct, values), distinct.size - 1)
        out, log_slope = scores[place], log_slopes[place]
        others = np.flatnonzero(distinct[place] != values)
        if others.size:
            out[others], log_slope[others] = self._score_values(values[others])
        return out, log_slope

    @cached_property
    def _scored(self) -> tuple[Floats, Floats, Floats]:
        distinct = self._counted[0]
        return distinct, *self._score_values(distinct)

    def _score_values(self, values: Floats) -> tuple[Floats, Floats]:
        scores = self.to_normal(values)
        with np.errstate(divide="ignore"):
            log_slope = np.log(self.density(values)) + 0.5 * scores**2 + np.log(ROOT_TAU)
        return scores, np.where(np.isnan(values), 0.0, log_slope)

    def from_normal(self, z: Floats) -> Floats:
        """Return the value at each normal score; it is inside the observed range, and not rounded to the grid."""
        return self.ppf(ndtr(z))


def silverman(sd: Any, quartile_range: Any, n: Any) -> Any:
    """Return 0.9 min(sd, IQR / 1.34) n^(-1/5), ignoring a quartile range of zero; 0 if both are zero."""
    spread = np.where((quartile_range > 0.0) & (quartile_range < 1.34 * sd), quartile_range / 1.34, sd)
    return 0.9 * spread * np.asarray(n, dtype=np.float64) ** -0.2


def _phi(z: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * z**2) / ROOT_TAU)
