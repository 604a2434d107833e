"""Tests of independence conditional on the response, and their p-values (Strasser and Weber 1999).

For n rows with predictor columns X (a number, or one 0/1 column a level) and response columns Y:

1. T = vec(X'Y) is the linear statistic. Under all permutations of the rows it has mean mu = vec(s E') and covariance
   Sigma = n/(n-1) C kron A - 1/(n-1) C kron ss', with E and C mean and covariance of Y, s = X'1 and A = X'X.
2. The quadratic statistic (T-mu)' Sigma+ (T-mu) has, in the limit, a chi-square distribution with rank(Sigma) degrees
   of freedom; Sigma+ keeps the singular values above 1e-10 max(1, the largest).
3. The maximum statistic max |T-mu| / sqrt(diag Sigma) is, in the limit, the largest absolute value of normal variables
   with the correlation of Sigma; the probability that it stays below a bound is an integral (Genz 1992, "Numerical
   computation of multivariate normal probabilities"), here over a fixed lattice: no random numbers, errors below 1e-3.
"""

from __future__ import annotations

import numpy as np

from mcce.arrays import Floats, Ints
from mcce.trees.party.kernels import TOLERANCE
from mcce.trees.party.svd_kernels import decompose

_POINTS = 8192
_BITS = 2.0**40
_SMALLEST_PIVOT = 1e-9


def linear_statistic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return T - mu and Sigma (step 1) for predictor columns `x` and response columns `y`.

    Sums run row by row and products from left to right: where x is far from 0, Sigma is a small difference of large
    numbers, and its rank hangs on their last digits.
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
    """Return a'b, its sums taken row by row."""
    return np.array([[_sum(a[:, k] * b[:, j]) for j in range(b.shape[1])] for k in range(a.shape[1])])


def quadratic(x: Floats, y: Floats) -> tuple[float, int]:
    """Return the quadratic statistic and its degrees of freedom (step 2), product by product as party computes it.

    So what depends on the last bits, such as the choice between two columns of which one is a multiple of the other, is
    the same as there where R has the reference version of LAPACK (`mcce.trees.party.svd_kernels`).
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

    Statistics are taken to 40 bits: of two that differ by rounding alone, errors of the p-value would now and then give
    the smaller one the larger criterion; so their criteria are equal, and the larger statistic decides.
    """
    from scipy.special import chdtrc  # scipy takes long to import

    mantissa, exponent = np.frexp(np.maximum(statistic, 0.0))
    rounded = np.ldexp(np.rint(mantissa * _BITS) / _BITS, exponent)
    criterion: Floats = np.where(freedom > 0, 1.0 - chdtrc(np.maximum(freedom, 1), rounded), 0.0)
    return criterion


def maximum(x: Floats, y: Floats) -> tuple[float, float]:
    """Return the maximum statistic and the probability of a smaller one under independence (step 3)."""
    centred, sigma = linear_statistic(x, y)
    varies = np.diag(sigma) > TOLERANCE
    if not varies.any():
        return 0.0, 0.0
    deviation = np.sqrt(np.diag(sigma)[varies])
    bound = float((np.abs(centred[varies]) / deviation).max())
    return bound, all_within(sigma[np.ix_(varies, varies)] / np.outer(deviation, deviation), bound)


def all_within(correlation: Floats, bound: float) -> float:
    """Return the probability that correlated standard normal variables are all within +- bound.

    With correlation = LL', each variable is a linear form of the first few independent ones and bounds the last of
    them, given those before it; so they are drawn one after the other, each inside its bounds.
    """
    from scipy.special import ndtr, ndtri

    factor = _pivoted_cholesky(correlation)
    last = factor.shape[1] - 1 - np.argmax(np.abs(factor[:, ::-1]) > _SMALLEST_PIVOT, axis=1)
    if factor.shape[1] == 1:  # one variable and its copies
        return float(2 * ndtr(bound) - 1)
    lattice = np.modf(np.outer(np.arange(1, _POINTS + 1), np.sqrt(_primes(factor.shape[1]))))[0]
    unit = np.abs(2 * lattice - 1)
    drawn = np.empty_like(unit)
    probability = np.ones(_POINTS)
    for k in range(factor.shape[1]):
        forms = factor[last == k]
        shift = drawn[:, :k] @ forms[:, :k].T / forms[:, k]
        reach = np.abs(bound / forms[:, k])
        low, high = ndtr((-reach - shift).max(axis=1)), ndtr((reach - shift).min(axis=1))
        width = np.maximum(high - low, 0.0)
        probability *= width
        drawn[:, k] = ndtri(np.clip(low + unit[:, k] * width, 1e-300, 1 - 1e-16))
    return float(probability.mean())


def _pivoted_cholesky(matrix: Floats) -> Floats:
    """Return L with one column for each independent variable, rows in the order of the pivots: LL' is the matrix."""
    size = matrix.shape[0]
    order, rest = np.arange(size), np.diag(matrix).copy()
    factor = np.zeros((size, size))
    for k in range(size):
        pivot = k + int(np.argmax(rest[k:]))
        if rest[pivot] < _SMALLEST_PIVOT:
            return factor[:, :k]
        for part in (order, rest, factor):
            part[[k, pivot]] = part[[pivot, k]]
        factor[k, k] = np.sqrt(rest[k])
        factor[k + 1 :, k] = (matrix[order[k + 1 :], order[k]] - factor[k + 1 :, :k] @ factor[k, :k]) / factor[k, k]
        rest[k + 1 :] -= factor[k + 1 :, k] ** 2
    return factor


def _primes(count: int) -> Ints:
    """Return the first primes; the fractional parts of multiples of their roots fill the unit cube evenly."""
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return np.array(found)
