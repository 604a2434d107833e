"""The donors of a target, together with what decides on missing values and with the target's margin.

1. A value is drawn from the target's own trees (`mcce.samplers.donors.engine`); where the target had missing values,
   other trees, or the missing donors among the same ones, say with which probability a draw is missing.
2. Supports and densities read the same, and the margin (`mcce.samplers.donors.density`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mcce.arrays import Bools, Floats, Ints
from mcce.rng import RowStreams
from mcce.samplers.base import RestrictedDraw, Within
from mcce.samplers.donors import kernels
from mcce.samplers.donors.density import PSEUDO_DONORS, MarginalDensity
from mcce.samplers.donors.engine import DonorForest, Smoothing
from mcce.samplers.within import log_of
from mcce.state import IF_ANY, stateful
from mcce.table import Table

Nodes = npt.NDArray[np.int32]

FEW = 4  # a table with a fourth as many rows as there are nodes, or fewer, has only the nodes it meets prepared


@stateful("donors.DonorModel")
@dataclass(frozen=True)
class DonorModel:
    """The donors of a target.

    Attributes
    ----------
    forest : the target's values among the training rows; NaN for a missing one, if no other forest decides on those.
    decider : a forest that decides whether a draw is missing: 1 for a missing donor, 0 for another. None: not needed.
    margin : the target's training distribution.
    is_number : whether the target is a number, which may lie between donors.
    min_donors : the fewest donors that a restricted draw may choose among.
    row_weights : of the training rows; None if they had none.
    """

    forest: DonorForest
    decider: DonorForest | None
    margin: MarginalDensity
    is_number: bool
    min_donors: int = 1
    row_weights: Floats | None = field(default=None, metadata=IF_ANY)

    def draw(self, given: Table, rng: RowStreams) -> Floats:
        """Draw a value for each row, missing as the decider says."""
        drawn = self.forest.draw(self.forest.route(given), rng)
        if self.decider is not None:
            drawn[self.decider.draw(self.decider.route(given), rng) > 0] = np.nan
        return drawn

    def draw_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw an allowed value for each row, or a missing one by its probability."""
        leaves = self.forest.route(given)
        drawn, n_allowed = self.forest.draw_within(leaves, rng, within)
        if self.min_donors > 1:
            repeated = self.forest.shares_rows or self.forest.weights is not None
            distinct = self.forest.distinct_allowed(leaves, within) if repeated else n_allowed
            n_allowed = np.where(distinct < self.min_donors, 0, n_allowed)
            drawn = np.where(n_allowed == 0, np.nan, drawn)
        known = self.forest.known[leaves].sum(axis=0)
        share = n_allowed / np.maximum(known, 1 if self.forest.weights is None else 1e-300)
        if self.flags is None:
            return RestrictedDraw.of(drawn, np.isnan(drawn), log_of(share))
        missing_share = self.flags.mean(self._decide(given, leaves))
        share = (1.0 - missing_share) * share
        found = RestrictedDraw.of(drawn, np.isnan(drawn) | (missing_share == 1.0), log_of(share))
        if within.missing is None:
            return found
        return found.or_missing(share, missing_share * within.allows_missing(given.n_rows), rng.uniform())

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether the donors of each row support its value, a missing one too."""
        leaves = self.forest.route(given)
        supported = self.forest.supports(leaves, values, is_number=self.is_number)
        if self.flags is None:
            return supported
        share = self.flags.mean(self._decide(given, leaves))
        return np.where(np.isnan(values), share > 0.0, supported & (share < 1.0))

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None) -> Floats:
        """Return the smoothed log density of each value, see `mcce.samplers.donors.density`."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        forest = self.forest
        leaves = forest.route(given)
        if values.size * FEW < forest.size.size and "smoothing" not in vars(self):  # not worth preparing all nodes
            runs = forest.runs_of(np.unique(leaves).astype(np.int64))
            smoothing = forest.smoothing(self.margin, runs)
        else:
            runs, smoothing = forest.runs, self.smoothing
        out = np.empty(values.size)
        kernels.log_densities(
            *(leaves, forest.start, forest.size, forest.values, forest.known, runs),
            *(smoothing.runs, smoothing.bandwidth, smoothing.cells, self.margin.as_kernels_take_it),
            *(forest.own(training_rows, self.row_weights), PSEUDO_DONORS, values, out),
        )
        if self.flags is not None:
            flags = self.flags
            kernels.log_missing(
                *(self._decide(given, leaves), flags.start, flags.size, flags.mass, flags.values, flags.sums),
                *(flags.own(training_rows, None), PSEUDO_DONORS, self.margin.missing_share, values, out),
            )
        return out

    @cached_property
    def smoothing(self) -> Smoothing:
        """What sums of kernels are read from."""
        return self.forest.smoothing(self.margin, self.forest.runs)

    @cached_property
    def flags(self) -> DonorForest | None:
        """The donors' missing values as 1, the others as 0; None if the target had no missing values."""
        if self.margin.missing_share == 0.0:
            return None
        return self.decider or self.forest.with_values(np.isnan(self.forest.values).astype(np.float64))

    def _decide(self, given: Table, leaves: Nodes) -> Nodes:
        """Return the leaves in the trees that decide on missing values; `leaves` are those of the target's trees."""
        return leaves if self.decider is None else self.decider.route(given)
