"""The marginal density of a column: point masses, a kernel estimate of other numbers, and a small uniform component.

1. A number has point mass if at least one per cent of the training rows hold it; all numbers have point mass if at most
   100 are distinct and nine rows in ten share their value (`find_point_masses`). Their densities are with respect to
   the counting measure, those of other numbers to the Lebesgue measure, in encoded units.
2. Other numbers have a normal kernel estimate with Silverman's bandwidth, evaluated at 256 quantiles, linear in
   between, and cut off three bandwidths outside the data.
3. Densities of samplers are mixed with a uniform component over the training values with weight 0.001
   (`log_with_uniform_part`), so that means of log densities are finite. Draws do not have this component.

If all numbers have point mass, other numbers have probability 0. Smoothed draws leave only very frequent numbers
unchanged (`DRAWN_AS_IT_IS`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from mcce.base.arrays import Bools, Floats
from mcce.exceptions import SamplerError
from mcce.samplers.base import BaseMeasure
from mcce.storage.fields import FLOAT, check_number, require, stored
from mcce.storage.state import stateful
from mcce.table import Column
from mcce.table.weights import count_distinct, deviation_of, quantiles

DRAWN_AS_IT_IS = 0.05  # share of the rows above which a number is not smoothed
COUNTED = 0.01
DISCRETE_SHARE = 0.9
DISCRETE_VALUES = 100


def find_point_masses(known: Floats, weights: Floats | None = None) -> tuple[Floats, npt.NDArray[Any], Bools]:
    """Return the sorted distinct numbers, their counts or sums of weights, and whether each has point mass."""
    distinct, times = count_distinct(known, weights)
    total = known.size if weights is None else float(weights.sum())
    repeated = times[times > 1].sum() >= DISCRETE_SHARE * total
    if repeated and distinct.size <= DISCRETE_VALUES:
        return distinct, times, np.full(distinct.size, True)
    return distinct, times, times >= max(2.0, COUNTED * total)


def silverman(sd: float, quartile_range: float, n: float) -> float:
    """Return 0.9 min(sd, IQR / 1.34) n^(-1/5), ignoring a spread of zero; 0 if both are zero."""
    spread = quartile_range / 1.34
    if spread <= 0.0 or 0.0 < sd < spread:
        spread = sd
    return float(0.9 * spread * float(n) ** -0.2)


EVEN_PART = 1e-3
MOST_CLASSES = 20  # of numbers that all have point mass; each class costs trees or parameters
_KNOTS, _KERNELS = 256, 2048


@stateful("ColumnDensity")
@dataclass(frozen=True)
class ColumnDensity:
    """The marginal distribution of a numeric column.

    Attributes
    ----------
    atoms, shares : the numbers with point mass, ascending, and their shares of the training rows.
    knots, below : knots and values of the distribution function of the other numbers; empty if there are none.
    low, high : range of the training values.
    """

    atoms: Floats = stored(FLOAT, "atoms", rising=True)
    shares: Floats = stored(FLOAT, "atoms", least=0.0, most=1.0)
    knots: Floats = stored(FLOAT, "knots", rising="weakly")
    below: Floats = stored(FLOAT, "knots", rising="weakly")
    low: float = stored(float)
    high: float = stored(float)

    @classmethod
    def of(cls, values: Floats, weights: Floats | None = None) -> ColumnDensity:
        """Read the known training values of a column; weights count as copies."""
        distinct, times, has_mass = find_point_masses(values, weights)
        others = (distinct[~has_mass], times[~has_mass])
        smooth = smooth_distribution(np.repeat(*others)) if weights is None else smooth_distribution(*others)
        shares = times[has_mass] / (values.size if weights is None else weights.sum())
        return cls(distinct[has_mass], shares, *smooth, float(distinct[0]), float(distinct[-1]))

    def check_state(self) -> None:
        """Raise if the parts do not form a distribution."""
        require(self.shares.sum() <= 1.0 + 1e-9, "shares sum to more than 1")
        require(
            self.knots.size != 1 and self.atoms.size + self.knots.size > 0,
            "knots has a single point, or there are neither atoms nor knots",
        )
        check_number(self.high, "high", self.low)

    @property
    def base_measure(self) -> BaseMeasure:
        """The measure that densities of this column are with respect to."""
        if not self.knots.size:
            return "counting"
        return "mixed" if self.atoms.size else "lebesgue"

    @property
    def classes(self) -> Floats:
        """The numbers to model as classes: the frequent ones; all, if they are few."""
        if self.base_measure == "counting" and self.atoms.size <= MOST_CLASSES:
            return self.atoms
        return np.asarray(self.atoms[self.shares > DRAWN_AS_IT_IS])

    @property
    def spread_share(self) -> float:
        """The share of the training rows without point mass."""
        return 1.0 - float(self.shares.sum()) if self.knots.size else 0.0

    def has_mass(self, values: Floats) -> Bools:
        """Return which numbers have point mass."""
        return np.isin(values, self.atoms)

    def margin(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the share below each number, and the density at numbers without point mass."""
        shares = np.concatenate([[0.0], np.cumsum(self.shares)])
        below = shares[np.searchsorted(self.atoms, values)]
        if not self.knots.size:
            return below, np.zeros(values.size)
        piece = np.clip(np.searchsorted(self.knots, values, side="right") - 1, 0, self.knots.size - 2)
        slope = (np.diff(self.below) / np.diff(self.knots))[piece]
        inside = (values >= self.knots[0]) & (values <= self.knots[-1])
        below = below + self.spread_share * np.interp(values, self.knots, self.below)
        return below, np.where(inside, self.spread_share * slope, 0.0)

    def log_with_uniform_part(self, density: Floats, values: Floats) -> Floats:
        """Return the log of a probability or density, mixed with the uniform component."""
        at = np.minimum(np.searchsorted(self.atoms, values), max(self.atoms.size - 1, 0))
        even = np.zeros(values.size)
        if self.spread_share > 0.0 and self.high > self.low:
            inside = (values >= self.low) & (values <= self.high)
            even = np.where(inside, self.spread_share / (self.high - self.low), 0.0)
        if self.atoms.size:
            even = np.where(self.has_mass(values), self.shares[at], even)
        with np.errstate(divide="ignore"):
            return np.log((1.0 - EVEN_PART) * density + EVEN_PART * even)


def require_density(column: ColumnDensity | None, owner: object) -> ColumnDensity:
    """Return the density of a sampler's target; raise if the sampler was saved without it."""
    if column is None:
        raise SamplerError(
            f'{owner!r} was saved with donors="none", and its density is read from training values; save it with them.'
        )
    return column


def comparable(scored: Floats, measure: BaseMeasure | None, target: Column, observed: Column) -> Floats | None:
    """Return log densities mixed with a uniform component of weight 0.001.

    None if they are not with respect to the base measure of the training values, `target`.
    """
    feature, values = target.feature, observed.values
    known = target.take(~np.isnan(target.values))
    even = np.full(values.size, 1.0 / (feature.n_levels + 1))
    if feature.is_numeric and known.values.size:
        column = ColumnDensity.of(known.values, known.weights)
        if measure != column.base_measure:
            return None
        is_counted = column.has_mass(values) | (column.base_measure == "counting")
        n_counted = np.unique(np.concatenate([column.atoms, values[is_counted & ~np.isnan(values)]])).size
        even = np.where(is_counted, 1.0 / (n_counted + 1), 1.0 / (feature.span or 1.0))
    elif not feature.is_numeric and measure != "counting":
        return None
    even = np.where(np.isnan(values), 0.5, even)
    return np.asarray(np.logaddexp(np.log1p(-EVEN_PART) + scored, np.log(EVEN_PART * even)))


def smooth_distribution(values: Floats, weights: Floats | None = None) -> tuple[Floats, Floats]:
    """Return knots and the smoothed distribution function of sorted values; empty without values."""
    if values.size == 0:
        return np.empty(0), np.empty(0)
    n = values.size if weights is None else max(float(weights.sum()), 1.0)
    low, high = quantiles(values, [0.25, 0.75], weights)
    width = silverman(float(deviation_of(values, weights)), float(high - low), n)
    width = width or silverman(max(1.0, abs(float(values[0]))) * 0.01, 0.0, n)
    knots = np.unique(quantiles(values, np.linspace(0.0, 1.0, min(_KNOTS, int(n))), weights))
    knots = np.concatenate([[values[0] - 3 * width], knots, [values[-1] + 3 * width]])
    if n > _KERNELS:
        values, weights = quantiles(values, (np.arange(_KERNELS) + 0.5) / _KERNELS, weights), None
    kernels = scipy.special.ndtr((knots[:, None] - values) / width)
    below = kernels.mean(axis=1) if weights is None else kernels @ weights / weights.sum()
    return knots, (below - below[0]) / (below[-1] - below[0])
