"""The columns of a table as whole numbers that trees can split: ranks of values, and which of them have point mass.

1. Code 0 is missing. A level is its own code plus 1; a number is the rank of its value among the distinct training
   values, from 1 on. A number between two of them has the code of the nearer one, the lower one from the middle.
2. Missing, levels and numbers with point mass (`mcce.samplers.point_mass`) have probabilities. The other numbers are
   spread: they have a density.
3. Spread numbers have no end, but none on the other side of 0 if the training values are all on one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mcce.arrays import Bools, Floats
from mcce.samplers.point_mass import find_point_masses, silverman
from mcce.soundness import BOOL, FLOAT, check_array, check_count_of, check_rising, require
from mcce.state import stateful
from mcce.table import Feature

Codes = npt.NDArray[np.int32]


@stateful("AdversarialForest.Coding")
@dataclass(frozen=True)
class Coding:
    """The codes of one column.

    Attributes
    ----------
    values : distinct numbers in ascending order; empty for levels.
    has_mass : which of them have point mass.
    n_levels : number of levels; 0 for numbers.
    """

    values: Floats
    has_mass: Bools
    n_levels: int

    @classmethod
    def of(cls, column: Floats, feature: Feature, weights: Floats | None = None) -> Coding:
        """Read the codes of a training column; weights count as copies."""
        if not feature.is_numeric:
            return cls(np.empty(0), np.empty(0, dtype=bool), feature.n_levels)
        is_known = ~np.isnan(column)
        known = column[is_known]
        if not known.size:
            return cls(np.empty(0), np.empty(0, dtype=bool), 0)
        distinct, _, has_mass = find_point_masses(known, None if weights is None else weights[is_known])
        return cls(distinct, has_mass, 0)

    def check_state(self) -> None:
        """Refuse numbers without an order."""
        check_array(self.values, "values", FLOAT, None)
        check_array(self.has_mass, "has_mass", BOOL, self.values.size)
        check_rising(self.values, "values")
        check_count_of(self.n_levels, "n_levels", 0, 2**31 - 2)
        require(not (self.n_levels and self.values.size), "a column has levels and numbers")

    @property
    def n_codes(self) -> int:
        """How many codes there are, that of missing included."""
        return 1 + self.n_levels + self.values.size

    @cached_property
    def cuts(self) -> Floats:
        """The middle between each number and the next."""
        return np.asarray(self.values[:-1] + np.diff(self.values) / 2.0)

    @cached_property
    def mass_of_code(self) -> Bools:
        """Whether each code has a probability."""
        return np.concatenate([np.full(1 + self.n_levels, True), self.has_mass])

    @cached_property
    def value_of_code(self) -> Floats:
        """What each code stands for."""
        return np.concatenate([[np.nan], np.arange(float(self.n_levels)), self.values])

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Between what the numbers lie (step 3)."""
        if not self.values.size:
            return 0.0, 0.0
        return (0.0 if self.values[0] >= 0.0 else -np.inf), (0.0 if self.values[-1] <= 0.0 else np.inf)

    @cached_property
    def reach(self) -> tuple[float, float]:
        """Between what nearly all numbers lie: three of Silverman's bandwidths beyond the training values."""
        if not self.values.size:
            return 0.0, 0.0
        low, high = float(self.values[0]), float(self.values[-1])
        quartiles = np.quantile(self.values, [0.25, 0.75])
        width = silverman(float(self.values.std()), float(quartiles[1] - quartiles[0]), self.values.size)
        width = width or 0.01 * max(1.0, abs(low))
        return max(low - 3.0 * width, self.ends[0]), min(high + 3.0 * width, self.ends[1])

    def encode(self, column: Floats) -> Codes:
        """Return the codes of values."""
        if self.n_levels or not self.values.size:
            return np.where(np.isnan(column), 0, column + 1.0 if self.n_levels else 0.0).astype(np.int32)
        place = np.searchsorted(self.cuts, np.where(np.isnan(column), self.values[0], column), side="left")
        return np.where(np.isnan(column), 0, place + 1).astype(np.int32)

    def is_spread(self, column: Floats, codes: Codes) -> Bools:
        """Return which values are numbers without point mass."""
        if not self.values.size:
            return np.zeros(column.size, dtype=bool)
        same = self.value_of_code[codes] == column
        return np.asarray(~np.isnan(column) & ~(same & self.mass_of_code[codes]))
