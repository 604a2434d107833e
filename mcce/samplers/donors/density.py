"""A smoothed surrogate density for samplers that draw donors, whose draws are observed values.

With m donors and c = 5 pseudo-donors distributed as the target's margin: a level or a number with point mass has the
probability (donors equal to it + c times its share) / (m + c); other numbers have the density (sum of normal kernels at
the donors + c margin density) / (m + c), with Silverman's bandwidth 0.9 min(sd, IQR / 1.34) k^(-1/5) of the k donors
without point mass, or that of the margin if these donors are equal. For training rows, the row's own copies are left
out of donors and margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Floats
from mcce.samplers.base import BaseMeasure
from mcce.samplers.density import find_point_masses, silverman
from mcce.samplers.donors import kernels
from mcce.storage.fields import FLOAT, check_number, stored
from mcce.storage.state import stateful
from mcce.table.weights import deviation_of, quantiles

PSEUDO_DONORS = 5.0  # the size of the paper's smallest leaf; fewer predict new rows worse
_GRID = 2048


@stateful("donors.MarginalDensity")
@dataclass(frozen=True)
class MarginalDensity:
    """The target's training distribution: atoms with their counts, and a kernel density of the rest.

    Attributes
    ----------
    n : number of known training values, or the sum of their weights.
    atoms, counts : values with point mass, ascending, and their counts.
    grid, density : the density of the other values, relative to all values; empty if there are none.
    bandwidth : bandwidth of that density.
    missing_share : share of missing training values.
    """

    n: float = stored(float, least=0.0, most=2.0**31)
    atoms: Floats = stored(FLOAT, "atoms", rising=True)
    counts: Floats = stored(FLOAT, "atoms", finite=True, least=0.0)
    grid: Floats = stored(FLOAT, "grid", rising="weakly")
    density: Floats = stored(FLOAT, "grid", finite=True, least=0.0)
    bandwidth: float = stored(float, least=0.0)
    missing_share: float = stored(float, least=0.0, most=1.0, default=0.0)

    @classmethod
    def of(cls, values: Floats, n_levels: int, weights: Floats | None = None) -> MarginalDensity:
        """Learn the margin of a target with levels, or of a number (0 levels); weights count as copies."""
        is_known = ~np.isnan(values)
        known = values[is_known]
        weight = None if weights is None else weights[is_known]
        n: float = known.size if weight is None else float(weight.sum())
        if weights is None:
            missing_share = 1.0 - n / max(values.size, 1)
        else:
            missing_share = 0.0 if known.size == values.size else 1.0 - n / float(weights.sum())
        nothing = np.empty(0)
        if n_levels:
            levels = np.arange(n_levels, dtype=np.float64)
            counts = np.bincount(known.astype(np.intp), weight, minlength=n_levels).astype(np.float64)
            return cls(n, levels, counts, nothing, nothing, 0.0, missing_share)
        distinct, times, is_atom = find_point_masses(known, weight)
        others = (distinct[~is_atom], times[~is_atom])
        smooth = _smooth(np.repeat(*others), None, n) if weight is None else _smooth(*others, n)
        return cls(n, distinct[is_atom], times[is_atom].astype(np.float64), *smooth, missing_share)

    def check_state(self) -> None:
        """Raise if the grid has no length: kernels divide by it."""
        if self.grid.size:
            check_number(float(self.grid[-1]) - float(self.grid[0]), "the length of grid", 5e-324)

    @property
    def base_measure(self) -> BaseMeasure:
        """The measure that densities of this margin are with respect to."""
        if self.grid.size == 0:
            return "counting"
        return "mixed" if self.atoms.size else "lebesgue"

    def is_atom(self, values: Floats) -> npt.NDArray[np.bool_]:
        """Return which values have point mass."""
        return np.isin(values, self.atoms)

    def share(self, values: Floats, own: Floats) -> Floats:
        """Return the mass or density of each value; `own` is the weight of a left-out row, or 0."""
        out = np.empty(values.size)
        kernels.margin_shares(self.as_kernels_take_it, np.ascontiguousarray(values), own, out)
        return out

    @cached_property
    def as_kernels_take_it(self) -> kernels.Margin:
        """The fields without `missing_share`."""
        numbers = (float(self.n), self.atoms, self.counts, self.grid, self.density, float(self.bandwidth))
        return kernels.Margin(*numbers)


def _smooth(values: Floats, weights: Floats | None, n: float) -> tuple[Floats, Floats, float]:
    """Return a grid, the kernel density of `values` on it relative to `n` rows, and the bandwidth."""
    if values.size == 0:
        return np.empty(0), np.empty(0), 0.0
    low, high = quantiles(values, [0.25, 0.75], weights)
    total = values.size if weights is None else float(weights.sum())
    sd = float(deviation_of(values, weights, ddof=1)) if values.size > 1 and total > 1.0 else 0.0
    bandwidth = silverman(sd, float(high - low), total) or max(abs(float(values[0])), 1.0) * 0.1
    # numbers that differ by a few units in the last place leave no room for a grid
    bandwidth = max(bandwidth, _GRID * float(np.spacing(np.abs(values).max())))
    low, high = float(values.min()) - 4 * bandwidth, float(values.max()) + 4 * bandwidth
    grid = np.linspace(low, high, _GRID)
    step = grid[1] - grid[0]
    ends = np.append(grid - step / 2, grid[-1] + step / 2)
    counts = np.histogram(values, bins=ends, weights=weights)[0].astype(np.float64)
    width = max(bandwidth, step)
    reach = min(int(4 * width / step) + 1, _GRID // 2 - 1)  # a longer kernel would enlarge the convolution
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2)
    density = np.convolve(counts, kernel / (kernel.sum() * step), mode="same") / n
    return grid, density, width
