"""Tests of independence conditional on the response, and their p-values (Strasser and Weber 1999).

For n rows with predictor columns X (a number, or one 0/1 column a level) and response columns Y:

1. T = vec(X'Y) is the linear statistic. Under all permutations of the rows it has mean mu = vec(s E') and covariance
   Sigma = n/(n-1) C kron A - 1/(n-1) C kron ss', with E and C mean and covariance of Y, s = X'1 and A = X'X.
2. The quadratic statistic (T-mu)' Sigma+ (T-mu) has a chi-square distribution with rank(Sigma) degrees of freedom, in
   the limit; Sigma+ keeps the singular values above 1e-10 max(1, the largest).
3. The maximum statistic max |T-mu| / sqrt(diag Sigma) is the largest of correlated normal variables.
4. Bonferroni's criterion for m variables is (1 - p)^m: the probability that none of m independent ones seems as strong.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mcce.trees.ctree_kernels import TOLERANCE

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def linear_statistic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return T - mu and Sigma (step 1) for predictor columns `x` and response columns `y`, without constant ones.

    Sums run row by row and products from left to right: where x is far from 0, Sigma is a small difference of large
    numbers, and its rank hangs on their last digits.
    """
    n = x.shape[0]
    mean = _sum(y) / n
    covariance = _sum((y - mean)[:, :, None] * (y - mean)[:, None, :]) / n
    total, squares = _sum(x), _sum(x[:, :, None] * x[:, None, :])
    centred = _sum(x[:, None, :] * y[:, :, None]) - total * mean[:, None]
    more, less = n / (n - 1), 1 / (n - 1)
    wide = covariance[:, None, :, None]
    sigma = more * (wide * squares[None, :, None, :]) - less * (wide * total[None, :, None, None] * total)
    sigma = sigma.reshape(centred.size, centred.size)
    varies = np.diag(sigma) > 0
    return centred.ravel()[varies], sigma[np.ix_(varies, varies)]


def _sum(terms: Floats) -> Floats:
    """Add up the rows one after the other."""
    return np.add.accumulate(terms, axis=0)[-1]


def quadratic(x: Floats, y: Floats) -> tuple[float, int]:
    """Return the quadratic statistic and its degrees of freedom (step 2)."""
    centred, sigma = linear_statistic(x, y)
    if centred.size == 0:
        return 0.0, 0
    values, vectors = np.linalg.eigh(sigma)
    kept = np.abs(values) > TOLERANCE * max(1.0, np.abs(values).max())
    scores = vectors[:, kept].T @ centred
    return float((scores**2 / values[kept]).sum()), int(kept.sum())


def chi_square(statistic: Floats, freedom: Ints) -> Floats:
    """Return the probability that a chi-square variable is below the statistic; 0 for no degrees of freedom."""
    from scipy.special import chdtr  # scipy takes long to import

    return np.where(freedom > 0, chdtr(np.maximum(freedom, 1), statistic), 0.0)
