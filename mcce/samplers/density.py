"""A smoothed density for samplers that draw donors: how likely is a value among the donors of a row?

Donor samplers draw observed values, so their own distribution has no density. This is a declared surrogate, for a pool
of m donors, with one pseudo-donor that is spread like the target's margin:

1. A level, or a number with point mass: (donors equal to it + its share in the margin) / (m + 1), with respect to the
   counting measure.
2. Any other number: (sum of normal kernels at the donors without point mass + margin density) / (m + 1), with respect to
   the Lebesgue measure, in encoded units. The bandwidth is Silverman's, 0.9 min(sd, IQR / 1.34) k^(-1/5) over the k
   such donors in the pool, or the margin's where these do not differ.
3. A number has point mass if at least one per cent of the training rows hold it; all numbers do if the column has so
   many repeated values that nine rows in ten share theirs with another.
4. For training rows, a row's own copies are taken out of its pool and out of the margin first, so that it does not
   vouch for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.schema import Feature, Floats
from mcce.trees.tree import Tree

Ints = npt.NDArray[np.int64]

ATOM_SHARE = 0.01
DISCRETE_SHARE = 0.9
_GRID = 2048
_ROOT_TAU = float(np.sqrt(2.0 * np.pi))


@dataclass(frozen=True)
class Margin:
    """The target's training distribution: atoms with their counts, and a kernel density of the rest.

    Attributes
    ----------
    n : number of training values (missing ones left out).
    atoms, counts : values with point mass, ascending, and how often each occurs.
    grid, density : the density of the other values, as a share of all; empty if there are none.
    bandwidth : of that density.
    """

    n: int
    atoms: Floats
    counts: Floats
    grid: Floats
    density: Floats
    bandwidth: float

    @classmethod
    def of(cls, feature: Feature, values: Floats) -> Margin:
        """Learn the margin of a target."""
        known = values[~np.isnan(values)]
        if not feature.is_numeric:
            counts = np.bincount(known.astype(np.intp), minlength=feature.n_levels).astype(np.float64)
            return cls(known.size, np.arange(feature.n_levels, dtype=np.float64), counts, np.empty(0), np.empty(0), 0.0)
        distinct, counts = np.unique(known, return_counts=True)
        shared = counts[counts > 1].sum() >= DISCRETE_SHARE * known.size
        is_atom = np.full(distinct.size, True) if shared else counts >= max(2.0, ATOM_SHARE * known.size)
        rest = np.repeat(distinct[~is_atom], counts[~is_atom])
        grid, density, bandwidth = _smooth(rest, known.size)
        return cls(known.size, distinct[is_atom], counts[is_atom].astype(np.float64), grid, density, bandwidth)

    def is_atom(self, values: Floats) -> npt.NDArray[np.bool_]:
        """Return which values have point mass."""
        return np.isin(values, self.atoms)

    def share(self, values: Floats, own: Floats) -> Floats:
        """Return the margin's mass or density of each value; `own` is 1 for a row that is left out."""
        place = np.minimum(np.searchsorted(self.atoms, values), max(self.atoms.size - 1, 0))
        known = self.is_atom(values)
        total = self.n - own + 1.0
        mass = np.zeros(values.size)
        if self.atoms.size:
            mass = (self.counts[place] - own + 1.0 / self.atoms.size) / total
        if self.grid.size == 0:
            return np.where(known, mass, 0.0)
        density = np.interp(values, self.grid, self.density, left=0.0, right=0.0)
        if self.bandwidth > 0:
            density = np.maximum(density - own / (self.n * self.bandwidth * _ROOT_TAU), 0.0)
        return np.where(known, mass, density)


@dataclass(frozen=True)
class DonorPools:
    """Sums over the donors in the leaves of one or more trees, for each row and its value."""

    matching: Floats  # donors equal to the value, or the sum of kernels at it
    size: Floats  # donors in the pool

    def log_density(self, margin: Margin, values: Floats, own: Floats) -> Floats:
        """Add the pseudo-donor and take the logarithm."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log((self.matching + margin.share(values, own)) / (self.size + 1.0)))


def pool_donors(
    margin: Margin,
    trees: list[Tree],
    donors: list[Floats],
    leaves: npt.NDArray[Any],
    values: Floats,
    training_rows: Ints | None,
) -> DonorPools:
    """Sum over the pooled donors of each row's leaves; the donors of a training row itself are left out."""
    matching = np.zeros(values.size)
    size = np.zeros(values.size)
    atoms = margin.is_atom(values)
    for tree, donor_values, leaf in zip(trees, donors, leaves):
        by_leaf = np.argsort(leaf, kind="stable")
        bounds = np.flatnonzero(np.diff(leaf[by_leaf], prepend=-1))
        for rows in np.split(by_leaf, bounds[1:]) if values.size else []:
            segment = slice(tree.start[leaf[rows[0]]], tree.start[leaf[rows[0]]] + tree.size[leaf[rows[0]]])
            pool = donor_values[segment]
            own = np.zeros(rows.size)
            if training_rows is not None:
                ids = np.sort(tree.donors[segment])
                own = np.searchsorted(ids, training_rows[rows], side="right") - np.searchsorted(ids, training_rows[rows])
            matching[rows] += _match(margin, pool, values[rows], atoms[rows], own)
            size[rows] += pool.size - own
    return DonorPools(np.maximum(matching, 0.0), size)


def _match(margin: Margin, pool: Floats, values: Floats, atoms: npt.NDArray[np.bool_], own: Floats) -> Floats:
    """Count the donors equal to each atom, or sum the kernels at each other number, `own` copies left out."""
    ordered = np.sort(pool)
    equal = np.searchsorted(ordered, values, side="right") - np.searchsorted(ordered, values) - own
    if atoms.all():
        return np.asarray(equal, dtype=np.float64)
    smooth = ordered[~margin.is_atom(ordered)]
    bandwidth = _silverman(smooth) or margin.bandwidth
    if bandwidth == 0.0:
        return np.where(atoms, equal, 0.0)
    scaled = (values[:, None] - smooth[None, :]) / bandwidth
    kernels = np.exp(-0.5 * scaled**2).sum(axis=1) - own
    return np.where(atoms, equal, kernels / (bandwidth * _ROOT_TAU))


def _silverman(values: Floats) -> float:
    if values.size < 2:
        return 0.0
    low, high = np.quantile(values, [0.25, 0.75])
    spread = [s for s in (float(np.std(values, ddof=1)), float(high - low) / 1.34) if s > 0]
    return 0.9 * min(spread) * values.size**-0.2 if spread else 0.0


def _smooth(values: Floats, n: int) -> tuple[Floats, Floats, float]:
    """Return a grid, the kernel density of `values` on it as a share of `n` rows, and the bandwidth."""
    if values.size == 0:
        return np.empty(0), np.empty(0), 0.0
    bandwidth = _silverman(values) or max(abs(float(values[0])), 1.0) * 0.1
    low, high = float(values.min()) - 4 * bandwidth, float(values.max()) + 4 * bandwidth
    grid = np.linspace(low, high, _GRID)
    step = grid[1] - grid[0]
    counts = np.histogram(values, bins=np.append(grid - step / 2, grid[-1] + step / 2))[0].astype(np.float64)
    width = max(bandwidth, step)
    reach = min(int(4 * width / step) + 1, _GRID - 1)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2)
    density = np.convolve(counts, kernel / (kernel.sum() * step), mode="same") / n
    return grid, density, bandwidth
