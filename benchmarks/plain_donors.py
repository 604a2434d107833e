"""Supports and densities of donors without kernels: leaf by leaf, all values of a leaf against all its donors.

The baseline of `benchmarks.density`. Values are processed in blocks, since a leaf of 36,202 donors and 191,003 values
would need 51 GiB; where a row's own kernel is nearly all of a sum, the others are summed separately, for precision.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mcce.samplers.donors.density import PSEUDO_DONORS, MarginalDensity
from mcce.samplers.donors.engine import DonorForest
from mcce.samplers.donors.model import DonorModel
from mcce.table import Table
from mcce.trees.tree import Tree

_BLOCK = 20_000_000  # numbers per block
_ROOT_TAU = float(np.sqrt(2.0 * np.pi))


def log_density(model: DonorModel, given: Table, values: np.ndarray, training_rows: np.ndarray | None) -> np.ndarray:
    """Return the log density of each value, without missing values."""
    margin = model.margin
    own = np.zeros(values.size) if training_rows is None else np.ones(values.size)
    matching, size = _pool(model.forest, margin, given, values, training_rows)
    with np.errstate(divide="ignore"):
        return np.log((matching + PSEUDO_DONORS * _share(margin, values, own)) / (size + PSEUDO_DONORS))


def supports(model: DonorModel, given: Table, values: np.ndarray) -> np.ndarray:
    """Return whether each value is within its leaf's median gap of a donor; for one tree, without missing values."""
    tree, donor_values = model.forest.trees[0], model.forest.values
    leaf = tree.route(given.matrix)
    supported = np.zeros(values.size, dtype=bool)
    for node in np.unique(leaf):
        rows = np.flatnonzero(leaf == node)
        donors = np.sort(donor_values[tree.start[node] :][: tree.size[node]])
        after = np.searchsorted(donors, values[rows])
        above, below = donors[np.minimum(after, donors.size - 1)], donors[np.maximum(after - 1, 0)]
        distance = np.minimum(np.abs(above - values[rows]), np.abs(values[rows] - below))
        inside = (values[rows] >= donors[0]) & (values[rows] <= donors[-1])
        by_gap = model.is_number and donors.size > 2
        close = np.quantile(np.diff(donors), 0.5, method="lower") if by_gap else 0.0
        supported[rows] = inside & (distance <= close)
    return supported


def _share(margin: MarginalDensity, values: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the marginal mass or density of each value."""
    pseudo = 1.0 if margin.grid.size == 0 else 0.0
    mass = np.zeros(values.size)
    if margin.atoms.size:
        place = np.minimum(np.searchsorted(margin.atoms, values), margin.atoms.size - 1)
        mass = (margin.counts[place] - own + pseudo / margin.atoms.size) / np.maximum(margin.n - own + pseudo, 1.0)
    density = np.zeros(values.size)
    if margin.grid.size:
        density = np.interp(values, margin.grid, margin.density, left=0.0, right=0.0)
        density = np.maximum(density - own / (margin.n * margin.bandwidth * _ROOT_TAU), 0.0)
        density *= margin.n / np.maximum(margin.n - own, 1.0)
    return np.where(np.isin(values, margin.atoms), np.maximum(mass, 0.0), density)


def _pool(
    forest: DonorForest, margin: MarginalDensity, given: Table, values: np.ndarray, training_rows: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return sums over the donors of each row's leaves without the row itself: (matching donors or kernels, donors)."""
    matching, size = np.zeros(values.size), np.zeros(values.size)
    atoms = np.isin(values, margin.atoms)
    for tree, donor_values in zip(forest.trees, forest.values_by_tree):
        leaf = tree.route(given.matrix, complete=given.complete)
        for rows, span in _by_leaf(tree, leaf):
            donors, ids = donor_values[span], tree.donors[span]
            own, own_value = np.zeros(rows.size), np.zeros(rows.size)
            if training_rows is not None:
                order = np.argsort(ids, kind="stable")
                first = np.searchsorted(ids[order], training_rows[rows])
                own = (np.searchsorted(ids[order], training_rows[rows], side="right") - first).astype(np.float64)
                own_value = donors[order][np.minimum(first, ids.size - 1)]
            matching[rows] += _match(margin, donors, values[rows], atoms[rows], own, own_value)
            size[rows] += donors.size - own
    return np.maximum(matching, 0.0), size


def _by_leaf(tree: Tree, leaf: np.ndarray) -> Iterator[tuple[np.ndarray, slice]]:
    """Yield the rows of each leaf, in blocks, and the positions of its donors."""
    by_leaf = np.argsort(leaf, kind="stable")
    for rows in np.split(by_leaf, np.flatnonzero(np.diff(leaf[by_leaf])) + 1) if leaf.size else []:
        node = leaf[rows[0]]
        span = slice(tree.start[node], tree.start[node] + tree.size[node])
        step = max(_BLOCK // int(tree.size[node]), 1)
        for begin in range(0, rows.size, step):
            yield rows[begin : begin + step], span


def _match(
    margin: MarginalDensity,
    pool: np.ndarray,
    values: np.ndarray,
    atoms: np.ndarray,
    own: np.ndarray,
    own_value: np.ndarray,
) -> np.ndarray:
    """Count the donors equal to each atom, or sum the kernels at each other number, without `own` copies."""
    ordered = np.sort(pool)
    first, after = np.searchsorted(ordered, values), np.searchsorted(ordered, values, side="right")
    equal = after - first - own * (values == own_value)
    if atoms.all():
        return equal.astype(np.float64)
    smooth = ordered[~np.isin(ordered, margin.atoms)]
    bandwidth = _silverman(smooth) or margin.bandwidth
    kernels = np.exp(-0.5 * ((values[:, None] - smooth[None, :]) / bandwidth) ** 2).sum(axis=1)
    left_out = own * ~np.isin(own_value, margin.atoms)
    left = kernels - left_out * np.exp(-0.5 * ((values - own_value) / bandwidth) ** 2)
    for i in np.flatnonzero(left < 0.1 * kernels):
        others = np.delete(smooth, np.searchsorted(smooth, own_value[i]) + np.arange(int(own[i])))
        left[i] = np.exp(-0.5 * ((values[i] - others) / bandwidth) ** 2).sum()
    kernels = left
    return np.where(atoms, equal, kernels / (bandwidth * _ROOT_TAU))


def _silverman(values: np.ndarray) -> float:
    if values.size < 2 or values[0] == values[-1]:
        return 0.0
    low, high = np.quantile(values, [0.25, 0.75])
    spread = [s for s in (float(np.std(values, ddof=1)), float(high - low) / 1.34) if s > 0]
    return 0.9 * min(spread) * values.size**-0.2
