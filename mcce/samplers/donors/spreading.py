"""Draws that are no copies of donors: each moved a little, by the kernel of its leaf (`smoothing="density"`).

1. Draw a donor y of the row's leaf; of a forest, a tree in proportion to the size of its leaf first.
2. Draw a number of the normal distribution with mean y and standard deviation h, restricted to the range of the
   training values. h is the bandwidth of the leaf, by which the density of these draws is computed
   (`mcce.samplers.donors.density`: Silverman's rule over its donors).
3. A number with point mass, a level and a missing value stay as they are. The chain puts the others on the column's
   grid.

(synthpop, whose option this is, has one bandwidth for the whole column, as `pmm` and `normrank` have here: that widens
a narrow leaf as much as a wide one.)
"""

from __future__ import annotations

import numpy as np

from mcce.arrays import Bools, Floats
from mcce.rng import RowStreams
from mcce.samplers.donors.model import DonorModel
from mcce.samplers.smoothing import truncated_normal
from mcce.samplers.support import REACH
from mcce.table import Table


def draw_around(model: DonorModel, given: Table, rng: RowStreams) -> Floats:
    """Draw a number around a donor for each row, missing as the model says (steps 1 to 3)."""
    forest = model.forest
    leaves = forest.route(given)
    if len(leaves) > 1:
        tree = rng.categorical(forest.mass[leaves].T.astype(np.float64))
        leaves = leaves[tree, np.arange(given.n_rows)][None]
    drawn = forest.draw(np.ascontiguousarray(leaves), rng)
    width = model.smoothing.bandwidth[leaves[0]]
    moves = ~(np.isnan(drawn) | model.margin.is_atom(drawn)) & (width > 0.0)
    uniform = rng.uniform()
    low, high = (np.full(int(moves.sum()), end(forest.values)) for end in (np.nanmin, np.nanmax))
    drawn[moves] = truncated_normal(drawn[moves], width[moves], low, high, uniform[moves])
    if model.decider is not None:
        drawn[model.decider.draw(model.decider.route(given), rng) > 0] = np.nan
    return drawn


def reaches(model: DonorModel, given: Table, values: Floats) -> Bools:
    """Return whether each number lies within reach of the kernel of a donor, and in the range of all."""
    forest, runs = model.forest, model.smoothing.runs
    found = np.zeros(values.size, dtype=bool)
    if not runs.value.size:
        return found
    distinct, rank = np.unique(runs.value, return_inverse=True)
    stride = distinct.size + 1
    node_of_run = np.repeat(np.arange(runs.first.size - 1), np.diff(runs.first))
    keys = node_of_run * stride + rank  # ascending: by node, then by value
    place = np.searchsorted(distinct, values)
    for leaf in forest.route(given):
        after = np.searchsorted(keys, leaf.astype(np.int64) * stride + place)
        for at in (after - 1, after):
            inside = (at >= runs.first[leaf]) & (at < runs.first[leaf + 1])
            donor = runs.value[np.clip(at, 0, runs.value.size - 1)]
            found |= inside & (np.abs(donor - values) <= REACH * model.smoothing.bandwidth[leaf])
    return found & (values >= np.nanmin(forest.values)) & (values <= np.nanmax(forest.values))
