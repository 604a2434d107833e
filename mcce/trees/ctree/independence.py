"""Tests of independence by the moments of all permutations (Strasser and Weber 1999), with party's rounding.

For n rows with predictor columns X and response columns Y: T = vec(X'Y) has, under permutations, mean mu = vec(s E')
and covariance Sigma = n/(n-1) C kron A - 1/(n-1) C kron ss', with E and C mean and covariance of Y, s = X'1, A = X'X.
The quadratic statistic (T-mu)' Sigma+ (T-mu) is chi-square with rank(Sigma) degrees of freedom; the Moore-Penrose
inverse Sigma+ keeps singular values above 1e-10 max(1, the largest).
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc

from mcce._utils import Floats, Ints
from mcce.trees.ctree.kernels import TOLERANCE
from mcce.trees.ctree.svd import decompose

_BITS = 2.0**40


def linear_statistic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return T - mu and Sigma for predictor columns `x` and response columns `y`.

    Sums run row by row and products from left to right: if x is far from 0, Sigma is a small difference of large
    numbers, and its rank depends on their last digits.
    """
    n = x.shape[0]
    mean = _sum(y) / n
    covariance = _products(y - mean, y - mean) / n
    total = _sum(x)
    squares = _products(x, x) if x.shape[1] == 1 else np.diag(total)  # a row has one level
    centred = _products(y, x) - total * mean[:, None]
    more, less = n / (n - 1), 1 / (n - 1)
    wide = covariance[:, None, :, None]
    sigma = more * (wide * squares[None, :, None, :]) - less * (wide * total[None, :, None, None] * total)
    return centred.ravel(), sigma.reshape(centred.size, centred.size)


def _sum(terms: Floats) -> Floats:
    """Add up the rows one after the other."""
    total: Floats = np.add.accumulate(terms, axis=0)[-1] if len(terms) else np.zeros(terms.shape[1:])
    return total


def _products(a: Floats, b: Floats) -> Floats:
    return np.array([[_sum(a[:, k] * b[:, j]) for j in range(b.shape[1])] for k in range(a.shape[1])])


def quadratic(x: Floats, y: Floats) -> tuple[float, int]:
    """Return the quadratic statistic and its degrees of freedom, with party's order of operations.

    Choices that depend on the last bits, such as between two columns of which one is a multiple of the other, are then
    the same as in an R with the reference version of LAPACK (`mcce.trees.ctree.svd`).
    """
    centred, sigma = linear_statistic(x, y)
    varies = np.diag(sigma) > 0
    if not varies.any():
        return 0.0, 0
    left, values, right = decompose(sigma[np.ix_(varies, varies)])
    kept = values > TOLERANCE * max(1.0, values[0])
    inverse = _sum(right[kept, None, :] * (left.T[kept] * (1 / values[kept, None]))[:, :, None])
    centred = centred[varies]
    return float(_sum(_sum(centred[:, None] * inverse.T) * centred)), int(kept.sum())


def chi_square(statistic: Floats, freedom: Ints) -> Floats:
    """Return one minus the p-value of a chi-square statistic; 0 for no degrees of freedom.

    Statistics are rounded to 40 bits. Otherwise, of two statistics that differ by rounding only, errors of the p-value
    would sometimes give the smaller one the larger criterion. Rounded, their criteria are equal, and the larger
    statistic decides.
    """
    mantissa, exponent = np.frexp(np.maximum(statistic, 0.0))
    rounded = np.ldexp(np.rint(mantissa * _BITS) / _BITS, exponent)
    criterion: Floats = np.where(freedom > 0, 1.0 - chdtrc(np.maximum(freedom, 1), rounded), 0.0)
    return criterion
