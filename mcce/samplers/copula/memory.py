"""Latents that the copula samplers of a chain hand on to each other while one block of rows is drawn.

1. A sampler draws its target's latents z_t given the latents z of its givens; the target's value x_t is a function of
   z_t. So if z follows its distribution given the values x of the givens, (z, z_t) follows its own given (x, x_t).
2. The chain's next sampler conditions on just these values. It takes (z, z_t) over instead of drawing all latents
   anew: the block is one draw of a multivariate normal distribution, given its fixed values.
3. Only the very next conditional may do so: its givens are the former ones and the former target, under the same
   correlations, and only rows that hold the drawn value. Fewer givens know less than z does.

The chain carries them from one sampler to the next (`ConditionalSampler.sample_on`); a call of `sample` draws for
itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mcce.arrays import Bools, Floats
from mcce.table import Table


@dataclass(frozen=True)
class DrawnLatents:
    """Latents of the columns `positions` of a block, and of the one drawn given them; `correlation` is of all."""

    positions: tuple[int, ...]
    values: Floats
    correlation: Floats
    z: Floats

    def without(self, rows: Bools) -> DrawnLatents:
        """Return the same, with nothing to take over for some rows: they hold a value that was drawn otherwise."""
        return replace(self, values=np.where(rows, np.nan, self.values))


def take_over(carried: object, given: Table, correlation: Floats) -> tuple[Floats, Bools] | None:
    """Return latents of the givens, and the rows they hold for; None if those carried are not of these columns.

    `correlation` is that of the givens' latents.
    """
    if not isinstance(carried, DrawnLatents) or given.positions[:-1] != carried.positions:
        return None
    if not np.array_equal(carried.correlation, correlation):
        return None
    return carried.z, np.asarray(given.matrix[:, -1] == carried.values)
