"""A smoothed density for samplers that draw donors.

How likely is a value among the donors of a row? Donor samplers draw observed values, so their own distribution has no
density. This is a declared surrogate, for a pool of m donors and c = 5 pseudo-donors, spread like the target's margin:

1. A level, or a number with point mass: (donors equal to it + c times its share in the margin) / (m + c), with respect
   to the counting measure.
2. Any other number: (sum of normal kernels at the donors without point mass + c margin density) / (m + c), with respect
   to the Lebesgue measure, in encoded units. The bandwidth is Silverman's, 0.9 min(sd, IQR / 1.34) k^(-1/5) over the k
   such donors in the leaf, or the margin's where these do not differ.
3. A number has point mass if at least one per cent of the training rows hold it; all numbers do if the column has no
   more than 100 distinct values, and nine rows in ten share theirs with another.
4. For training rows, a row's own copies are taken out of its pool and out of the margin first, so that it does not
   vouch for itself. Bandwidths stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcce.samplers.base import BaseMeasure
from mcce.state import stateful
from mcce.table import Floats, Table
from mcce.trees.tree import Tree

Ints = npt.NDArray[np.int64]

ATOM_SHARE = 0.01
DISCRETE_SHARE = 0.9
DISCRETE_VALUES = 100
PSEUDO_DONORS = 5.0  # as many as the paper's smallest leaf; fewer describe new rows worse
_GRID = 2048
_ROOT_TAU = float(np.sqrt(2.0 * np.pi))


@stateful("donors.Margin")
@dataclass(frozen=True)
class Margin:
    """The target's training distribution: atoms with their counts, and a kernel density of the rest.

    Attributes
    ----------
    n : number of training values (missing ones left out).
    atoms, counts : values with point mass, ascending, and how often each occurs.
    grid, density : the density of the other values, as a share of all; empty if there are none.
    bandwidth : of that density.
    missing_share : share of missing values in the training data.
    """

    n: int
    atoms: Floats
    counts: Floats
    grid: Floats
    density: Floats
    bandwidth: float
    missing_share: float = 0.0

    @classmethod
    def of(cls, values: Floats, n_levels: int) -> Margin:
        """Learn the margin of a target with so many levels, or of a number (0 levels)."""
        known = values[~np.isnan(values)]
        missing_share = 1.0 - known.size / max(values.size, 1)
        nothing = np.empty(0)
        if n_levels:
            levels = np.arange(n_levels, dtype=np.float64)
            counts = np.bincount(known.astype(np.intp), minlength=n_levels).astype(np.float64)
            return cls(known.size, levels, counts, nothing, nothing, 0.0, missing_share)
        distinct, times = np.unique(known, return_counts=True)
        repeated = times[times > 1].sum() >= DISCRETE_SHARE * known.size
        discrete = repeated and distinct.size <= DISCRETE_VALUES
        is_atom = np.full(distinct.size, True) if discrete else times >= max(2.0, ATOM_SHARE * known.size)
        rest = np.repeat(distinct[~is_atom], times[~is_atom])
        grid, density, bandwidth = _smooth(rest, known.size)
        masses = times[is_atom].astype(np.float64)
        return cls(known.size, distinct[is_atom], masses, grid, density, bandwidth, missing_share)

    @property
    def base_measure(self) -> BaseMeasure:
        """What densities of this margin are with respect to."""
        if self.grid.size == 0:
            return "counting"
        return "mixed" if self.atoms.size else "lebesgue"

    def is_atom(self, values: Floats) -> npt.NDArray[np.bool_]:
        """Return which values have point mass."""
        return np.isin(values, self.atoms)

    def share(self, values: Floats, own: Floats) -> Floats:
        """Return the margin's mass or density of each value; `own` is 1 for a row that is left out."""
        place = np.minimum(np.searchsorted(self.atoms, values), max(self.atoms.size - 1, 0))
        known = self.is_atom(values)
        pseudo = 1.0 if self.grid.size == 0 else 0.0  # spread over the levels, so that none is impossible
        mass = np.zeros(values.size)
        if self.atoms.size:
            mass = (self.counts[place] - own + pseudo / self.atoms.size) / np.maximum(self.n - own + pseudo, 1.0)
            mass = np.maximum(mass, 0.0)  # a value that the left-out row did not have
        if self.grid.size == 0:
            return np.where(known, mass, 0.0)
        density = np.interp(values, self.grid, self.density, left=0.0, right=0.0)
        if self.bandwidth > 0:
            density = np.maximum(density - own / (self.n * self.bandwidth * _ROOT_TAU), 0.0)
            density *= self.n / np.maximum(self.n - own, 1.0)
        return np.where(known, mass, density)


@dataclass(frozen=True)
class DonorForest:
    """Trees (one or more) and the target value of each of their donors."""

    trees: list[Tree]
    values: list[Floats]

    def leaves(self, given: Table) -> list[npt.NDArray[np.int32]]:
        """Return each row's leaf in every tree."""
        return [tree.route(given.matrix, complete=given.complete) for tree in self.trees]


def donor_log_density(
    margin: Margin,
    forest: DonorForest,
    missing: DonorForest,
    given: Table,
    values: Floats,
    training_rows: Ints | None,
) -> Floats:
    """Return the log density of each row's value; `missing` has 1 for missing donors and 0 for the others."""
    own = np.zeros(values.size) if training_rows is None else np.ones(values.size)
    is_missing = np.isnan(values)
    certain = np.where(is_missing, 0.0, values)
    matching, size = _pool(margin, forest, given, certain, training_rows)
    with np.errstate(divide="ignore"):
        density = np.log((matching + PSEUDO_DONORS * margin.share(certain, own)) / (size + PSEUDO_DONORS))
        if margin.missing_share == 0.0:
            return np.where(is_missing, -np.inf, density)
        flags = Margin(margin.n, np.array([0.0, 1.0]), np.zeros(2), np.empty(0), np.empty(0), 0.0)
        ones, size = _pool(flags, missing, given, np.ones(values.size), training_rows)
        share = (ones + PSEUDO_DONORS * margin.missing_share) / (size + PSEUDO_DONORS)
        return np.where(is_missing, np.log(share), np.log1p(-np.minimum(share, 1.0)) + density)


def _pool(
    margin: Margin, forest: DonorForest, given: Table, values: Floats, training_rows: Ints | None
) -> tuple[Floats, Floats]:
    """Sum over the pooled donors of each row's leaves, the row's own left out: (matching donors or kernels, donors)."""
    matching = np.zeros(values.size)
    size = np.zeros(values.size)
    atoms = margin.is_atom(values)
    for tree, donor_values, leaf in zip(forest.trees, forest.values, forest.leaves(given)):
        by_leaf = np.argsort(leaf, kind="stable")
        bounds = np.flatnonzero(np.diff(leaf[by_leaf]))
        for rows in np.split(by_leaf, bounds + 1) if values.size else []:
            node = leaf[rows[0]]
            segment = slice(tree.start[node], tree.start[node] + tree.size[node])
            donors, ids = donor_values[segment], tree.donors[segment]
            known = ~np.isnan(donors)
            own = np.zeros(rows.size)
            own_value = np.zeros(rows.size)
            if training_rows is not None:
                order = np.argsort(ids[known], kind="stable")
                sorted_ids = ids[known][order]
                first = np.searchsorted(sorted_ids, training_rows[rows])
                own = (np.searchsorted(sorted_ids, training_rows[rows], side="right") - first).astype(np.float64)
                if sorted_ids.size:
                    own_value = donors[known][order][np.minimum(first, sorted_ids.size - 1)]
            matching[rows] += _match(margin, donors[known], values[rows], atoms[rows], own, own_value)
            size[rows] += known.sum() - own
    return np.maximum(matching, 0.0), size


def _match(
    margin: Margin, pool: Floats, values: Floats, atoms: npt.NDArray[np.bool_], own: Floats, own_value: Floats
) -> Floats:
    """Count the donors equal to each atom, or sum the kernels at each other number, `own` copies left out."""
    ordered = np.sort(pool)
    equal = (
        np.searchsorted(ordered, values, side="right") - np.searchsorted(ordered, values) - own * (values == own_value)
    )
    if atoms.all():
        return np.asarray(equal, dtype=np.float64)
    smooth = ordered[~margin.is_atom(ordered)]
    bandwidth = _silverman(smooth) or margin.bandwidth
    if bandwidth == 0.0:
        return np.where(atoms, equal, 0.0)
    kernels = np.exp(-0.5 * ((values[:, None] - smooth[None, :]) / bandwidth) ** 2).sum(axis=1)
    kernels -= own * ~margin.is_atom(own_value) * np.exp(-0.5 * ((values - own_value) / bandwidth) ** 2)
    return np.asarray(np.where(atoms, equal, kernels / (bandwidth * _ROOT_TAU)))


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
    reach = min(int(4 * width / step) + 1, _GRID // 2 - 1)  # a longer kernel would lengthen the convolution
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2)
    density = np.convolve(counts, kernel / (kernel.sum() * step), mode="same") / n
    return grid, density, width
