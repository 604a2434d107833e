"""The grid that the numbers of a column lie on: whole numbers, dates in whole units, or a few decimals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce._utils import Bools, Floats
from mcce.table.dtypes import EXACT

MOST_DECIMALS = 6  # a column with more is continuous


@dataclass(frozen=True)
class Grid:
    """The numbers that a column may hold: multiples of 10**-decimals between `low` and `high`.

    Attributes
    ----------
    decimals : decimals of the training values; 0 for whole numbers and dates
    low, high : least and greatest number that the dtype holds
    narrow : the dtype if it is a float of fewer than 64 bits, else None

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.table import Grid
    >>> Grid(1).round(np.array([0.26])).tolist(), [edge.tolist() for edge in Grid(0).cells(np.array([2.0]))]
    ([0.3], [[1.5], [2.5]])
    """

    decimals: int
    low: float = -math.inf
    high: float = math.inf
    narrow: np.dtype[Any] | None = None

    @property
    def step(self) -> float:
        """Distance of neighbours."""
        return 10.0**-self.decimals

    def round(self, values: Floats) -> Floats:
        """Return the nearest numbers of the grid; missing values stay missing."""
        centres = self._counts(values) / 10.0**self.decimals
        # a number without room for these decimals in float64 is on the grid already; adding 0 turns -0 into 0
        rounded = np.clip(np.where(self._is_fine(values), centres, values) + 0.0, self.low, self.high)
        return rounded if self.narrow is None else rounded.astype(self.narrow).astype(np.float64)

    def cells(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the edges of the cell of numbers that round to each value; neighbours have the same edge."""
        counts, scale, is_fine = self._counts(values), 10.0**self.decimals, self._is_fine(values)
        lower = np.where(is_fine, (counts - 0.5) / scale, np.nextafter(values, -np.inf))
        upper = np.where(is_fine, (counts + 0.5) / scale, np.nextafter(values, np.inf))
        return np.where(values <= self.low, -np.inf, lower), np.where(values >= self.high, np.inf, upper)

    def _counts(self, values: Floats) -> Floats:
        return np.rint(values * 10.0**self.decimals)

    def _is_fine(self, values: Floats) -> Bools:
        return np.abs(values) * 10.0**self.decimals < EXACT / 4


def count_decimals(values: Floats, dtype: np.dtype[Any]) -> int | None:
    """Return the fewest decimals that write all values of `dtype` exactly; None if there are more than six."""
    if dtype.kind in "iu":
        return 0
    largest = float(np.abs(values).max())
    narrow = dtype if dtype.kind == "f" and dtype.itemsize < 8 else None
    digits = 2.0 ** np.finfo(np.float64 if narrow is None else narrow).nmant
    for decimals in range(MOST_DECIMALS + 1):
        if decimals and largest * 10.0**decimals >= digits:
            return None
        grid = Grid(decimals, narrow=narrow)
        # the first values reject most columns without a grid
        if all(bool((grid.round(part) == part).all()) for part in (values[:64], values)):
            return decimals
    return None
