"""Where numbers lie on the latent scale of their margin, for densities.

1. A number with point mass stands for an interval, as long as its share; the others for a point, by the share of the
   column below it: of the atoms, and of a kernel estimate of the rest (`mcce.samplers.copula.margins.kernel_margin`).
2. With q the density of the latent variable given what is known, phi the standard normal one and s the margin's slope
   at a number without point mass, its density is s q(z) / phi(z). So densities integrate to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from mcce.arrays import Bools, Floats
from mcce.samplers.copula.margins import Margin

_LEAST = 1e-12  # the share below a number is that far from 0 and 1


@dataclass(frozen=True)
class Places:
    """Where numbers lie on the latent scale.

    Attributes
    ----------
    low, high : the interval of the latent variable that stands for each number; equal ends for a point.
    is_atom : whether it has point mass.
    slope : density of the margin at the numbers without; 0 outside the kernel estimate.
    """

    low: Floats
    high: Floats
    is_atom: Bools
    slope: Floats

    @property
    def possible(self) -> Bools:
        """Whether there is anything at each number, by the margin."""
        return np.asarray(self.is_atom | (self.slope > 0.0))


def place_numbers(margin: Margin, kernel: tuple[Floats, Floats], values: Floats) -> Places:
    """Place numbers by the atoms, and by a kernel estimate (`kernel_margin`) of the others."""
    at = margin.position(values)
    masses = np.diff(margin.shares)
    atoms, atom_shares = margin.values[margin.atoms], np.cumsum([0.0, *masses[margin.atoms]])
    is_atom = (at >= 0) & margin.atoms[at]
    knots, shares = kernel
    rest = 1.0 - atom_shares[-1]
    below = atom_shares[np.searchsorted(atoms, values)]
    slope = np.zeros_like(values)
    if knots.size:
        below = below + rest * np.interp(values, knots, shares)
        piece = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, knots.size - 2)
        inside = (values >= knots[0]) & (values <= knots[-1])
        slope = np.where(inside, rest * (np.diff(shares) / np.diff(knots))[piece], 0.0)
    upto = np.minimum(below + np.where(is_atom, masses[at], 0.0), 1.0)
    point = scipy.special.ndtri(np.clip(below, _LEAST, 1 - _LEAST))
    low = np.where(is_atom, scipy.special.ndtri(np.minimum(below, 1.0)), point)
    return Places(low, np.where(is_atom, scipy.special.ndtri(upto), point), is_atom, slope)
