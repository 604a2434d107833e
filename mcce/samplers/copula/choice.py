"""Integrals over normal utilities, as numba kernels.

`choose_rows`: the probability that each of several independent utilities is the largest. For means m_k and one standard
deviation, with s_k = (m_k - max m) / sd:

    P_k = integral of phi(x - s_k) prod_{l != k} Phi(x - s_l) dx,

by the trapezoid rule on an even grid, which is spectrally accurate here; the probabilities are then made to sum to 1.
On that grid phi is a recurrence, phi(t + h) = phi(t) q(t), q(t + h) = q(t) exp(-h^2). Phi is read from a table at the
nearest knot and carried on by three terms of Taylor's series, in which phi is known: an error below 2e-11.

`mean_below`: the mean of Phi over rows of points, from the same table.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
from __future__ import annotations

import math

import numpy as np

from mcce.compiling import cached

_FIRST, _STEP, _N_GRID = -6.0, 0.5, 27
_KNOTS_PER_UNIT = 128
_LAST_KNOT = 8.0  # from there on Phi is 1
_ROOT = 1.0 / math.sqrt(2.0 * math.pi)
CDF = np.array(
    [0.5 * math.erfc(-(_FIRST + i / _KNOTS_PER_UNIT) * math.sqrt(0.5)) for i in range(14 * _KNOTS_PER_UNIT + 1)]
)

PDF = np.exp(-0.5 * (np.arange(int(_LAST_KNOT) * _KNOTS_PER_UNIT + 1) / _KNOTS_PER_UNIT) ** 2) * _ROOT  # from 0 on


@cached(nogil=True, error_model="numpy")
def choose_rows(means, sd, cdf, found):
    """Fill `found` with P(argmax_k (means_k + sd e_k) = k), e ~ N(0, I), for each row of `means`; `cdf` is `CDF`."""
    n, levels = means.shape
    at, density, growth, dx = np.empty(levels), np.empty(levels), np.empty(levels), np.empty(levels)
    below, ratio = np.empty(levels), np.empty(levels)
    knot = np.empty(levels, dtype=np.int64)
    decay, knots_per_step = math.exp(-_STEP * _STEP), int(_STEP * _KNOTS_PER_UNIT)
    for i in range(n):
        largest = means[i, 0]
        for k in range(1, levels):
            largest = max(largest, means[i, k])
        for k in range(levels):
            t = min(_FIRST + (largest - means[i, k]) / sd, _LAST_KNOT)
            knot[k] = int((t - _FIRST) * _KNOTS_PER_UNIT + 0.5)
            at[k], dx[k] = t, t - (_FIRST + knot[k] / _KNOTS_PER_UNIT)
            # at the last knot and beyond, the density is below 1e-14 on the whole grid
            density[k] = math.exp(-0.5 * t * t) * _ROOT if t < _LAST_KNOT else 0.0
            growth[k] = math.exp(-_STEP * t - 0.5 * _STEP * _STEP)
            found[i, k] = 0.0
        for _ in range(_N_GRID):
            for k in range(levels):
                t, h = at[k], dx[k]
                taylor = 1.0 + h * (0.5 * t + h * (t * t - 1.0) / 6.0)
                below[k] = cdf[min(knot[k], cdf.size - 1)] + density[k] * h * taylor
                ratio[k] = density[k] / below[k]
                density[k] *= growth[k]
                growth[k] *= decay
                at[k] += _STEP
                knot[k] += knots_per_step
            product = 1.0
            for k in range(levels):
                product *= below[k]
            for k in range(levels):
                found[i, k] += ratio[k] * product
        total = 0.0
        for k in range(levels):
            total += found[i, k]
        for k in range(levels):
            found[i, k] /= total


@cached(nogil=True, error_model="numpy")
def mean_below(cuts, means, sd, cdf, pdf, found):
    """Fill `found` (rows, cuts) with the mean of Phi((cut - mean) / sd) over each row of `means`.

    `cdf` and `pdf` are the tables `CDF` and `PDF`.
    """
    zero = int(-_FIRST * _KNOTS_PER_UNIT)
    for k in range(means.shape[0]):
        for c in range(cuts.size):
            total = 0.0
            for i in range(means.shape[1]):
                x = (cuts[c] - means[k, i]) / sd
                t = min(abs(x), _LAST_KNOT)
                knot = int(t * _KNOTS_PER_UNIT + 0.5)
                at = knot / _KNOTS_PER_UNIT
                h = t - at
                above = cdf[zero + knot] + pdf[knot] * h * (1.0 + h * (h * (at * at - 1.0) / 6.0 - 0.5 * at))
                total += above if x > 0.0 else 1.0 - above
            found[k, c] = total / means.shape[1]
