"""Points and products that the conditionals of latent variables are computed from."""

from __future__ import annotations

import numpy as np

from mcce.arrays import Bools, Floats

_LARGE_AXIS = 1.3  # variance along an axis, the variables' own being 1


def lattice(points: int, dimensions: int) -> Floats:
    """Return evenly spread points of (0, 1)^dimensions: multiples of roots of primes (Genz and Bretz 2009)."""
    candidates = np.arange(2, 30 + 12 * dimensions)
    primes = [p for p in candidates if all(p % q for q in range(2, int(p**0.5) + 1))][:dimensions]
    return np.asarray((np.outer(np.arange(1, points + 1), np.sqrt(primes)) + 0.25) % 1.0)


def times(rows: Floats, matrix: Floats) -> Floats:
    """Matrix product whose rows do not depend on each other to the last bit, as those of a BLAS may."""
    product = np.zeros((len(rows), matrix.shape[1]))
    for k in range(matrix.shape[0]):
        product += rows[:, k : k + 1] * matrix[k]
    return product


def main_axes(precision: Floats, free: Bools) -> Floats:
    """Return the directions in which the free variables, given the others, vary clearly more than one by one."""
    if free.sum() < 2:
        return np.empty((0, free.size))
    covariance = np.linalg.inv(precision[np.ix_(free, free)])
    sd = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(sd, sd))
    chosen = values >= _LARGE_AXIS
    axes = np.zeros((int(chosen.sum()), free.size))
    axes[:, free] = (vectors[:, chosen] * sd[:, None]).T
    return axes
