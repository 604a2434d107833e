"""Weighted maximum likelihood for the multinomial and the cumulative logit, to machine accuracy.

1. Centre and scale the design columns; transform the coefficients back.
2. Newton's method with step halving. Both log-likelihoods are concave (the cumulative one jointly in slopes and
   thresholds: Pratt 1981, "Concavity of the log likelihood"), and with augmented rows (design.py) the maximum exists
   and is unique.
3. Stop one step after the Newton decrement falls below 1e-12, in units of the log-likelihood.

Beyond `DENSE` coefficients the Newton step of the multinomial is computed by conjugate gradients, preconditioned by the
diagonal blocks of the classes. Rows with equal design are then merged into one row with a weight for each class: the 2
p K augmented rows have only 2 p distinct designs.

Implemented here because statsmodels' MNLogit and OrderedModel take no weights, which rules out weighted rows and
synthpop's augmentation, and have no fit for separated rows. On 3000 rows of the loans data without weights: 0.05 s for
three classes, MNLogit 0.12 s with the same probabilities to 3e-11; 0.013 s for the cumulative logit, OrderedModel 0.84
s with probabilities 3e-5 off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy

from mcce.base.arrays import Floats
from mcce.exceptions import MCCEError
from mcce.rng import hash_rows
from mcce.samplers.parametric.design import Rows
from mcce.storage.fields import FLOAT, stored
from mcce.storage.state import stateful

DENSE = 400
_MOST_STEPS = 200
_MOST_HALVINGS = 60
_DECREMENT = 1e-12

Step = Callable[[Floats], tuple[Floats, float]]


class NoMaximumError(MCCEError):
    """A likelihood whose maximum was not found."""


@stateful("parametric.Multinomial")
@dataclass(frozen=True)
class Multinomial:
    """A multinomial logit: log p(class k) - log p(class 0) = intercept + coef x.

    `intercept` has an entry and `coef` a row for every class but the first; `covariance` is the inverse information in
    the order of ``np.column_stack([intercept, coef]).ravel()``, or None if it was not requested. `converged` is False
    if Newton's method did not reach the maximum.
    """

    intercept: Floats = stored(FLOAT, "classes", finite=True)
    coef: Floats = stored(FLOAT, "classes", None, finite=True)
    covariance: Floats | None = stored(FLOAT, None, None, optional=True, default=None)
    converged: bool = stored(bool, default=True)


def log_softmax(eta: Floats) -> Floats:
    """Return log probabilities of all classes, given the linear predictors of all but the first."""
    return np.asarray(scipy.special.log_softmax(np.column_stack([np.zeros(eta.shape[0]), eta]), axis=1))


def fit_multinomial(rows: Rows, n_classes: int, *, covariance: bool = False) -> Multinomial:
    """Fit a multinomial logit; each of the `n_classes` occurs in the rows."""
    x, back = _standardised(rows)
    q, m = x.shape[1], n_classes - 1
    if m * q > DENSE:
        x, of_class = _grouped(x, rows, n_classes)
    else:
        of_class = (rows.y[:, None] == np.arange(n_classes)) * rows.weight[:, None]
    w = of_class.sum(axis=1)

    def log_p(theta: Floats) -> Floats:
        return log_softmax(x @ theta.reshape(m, q).T)

    def value(theta: Floats) -> float:
        return float((of_class * log_p(theta)).sum())

    def step(theta: Floats) -> tuple[Floats, float]:
        p = np.exp(log_p(theta)[:, 1:])
        gradient = (of_class[:, 1:] - w[:, None] * p).T @ x
        if m * q <= DENSE or covariance:
            move = _solve(_information(x, w, p), gradient.ravel())
        else:
            move = _solve_by_conjugate_gradients(x, w, p, gradient).ravel()
        return move, float(gradient.ravel() @ move)

    shares = np.bincount(rows.y, rows.weight, n_classes)
    start = np.zeros((m, q))
    start[:, 0] = np.log(shares[1:] / shares[0])
    theta, converged = _maximise(value, step, start.ravel())
    coef = theta.reshape(m, q) @ back.T
    if not covariance:
        return Multinomial(coef[:, 0], coef[:, 1:], converged=converged)
    spread = np.kron(np.eye(m), back)
    inverse = _solve(_information(x, w, np.exp(log_p(theta)[:, 1:])), np.eye(m * q))
    return Multinomial(coef[:, 0], coef[:, 1:], spread @ inverse @ spread.T, converged)


def _grouped(x: Floats, rows: Rows, n_classes: int) -> tuple[Floats, Floats]:
    """Return the distinct rows of a design, and the weight of each class in each of them."""
    group, _ = pd.factorize(hash_rows(x))
    first = np.unique(group, return_index=True)[1]
    if not np.array_equal(x[first][group], x):  # hash collision
        group, first = np.arange(rows.y.size), np.arange(rows.y.size)
    of_class = np.zeros((first.size, n_classes))
    np.add.at(of_class, (group, rows.y), rows.weight)
    return x[first], of_class


def _information(x: Floats, w: Floats, p: Floats) -> Floats:
    q, m = x.shape[1], p.shape[1]
    out = np.empty((m, q, m, q))
    for k in range(m):
        for j in range(k + 1):
            block = (x * (w * p[:, k] * ((j == k) - p[:, j]))[:, None]).T @ x
            out[k, :, j, :], out[j, :, k, :] = block, block
    return out.reshape(m * q, m * q)


def _solve_by_conjugate_gradients(x: Floats, w: Floats, p: Floats, gradient: Floats) -> Floats:
    inverses = np.stack([np.linalg.pinv((x * (w * pk * (1.0 - pk))[:, None]).T @ x, hermitian=True) for pk in p.T])

    def times_information(move: Floats) -> Floats:
        eta = x @ move.T
        return np.asarray((w[:, None] * p * (eta - (p * eta).sum(axis=1, keepdims=True))).T @ x)

    move, residual = np.zeros_like(gradient), gradient.copy()
    ahead = np.einsum("kij,kj->ki", inverses, residual)
    direction, size = ahead, float((residual * ahead).sum())
    # in units of the log-likelihood, like the decrement; steps near the maximum are computed more accurately
    enough = max(size * min(1e-3, size), 1e-4 * _DECREMENT)
    for _ in range(gradient.size):
        if size <= enough:
            break
        product = times_information(direction)
        length = size / float((direction * product).sum())
        move, residual = move + length * direction, residual - length * product
        ahead = np.einsum("kij,kj->ki", inverses, residual)
        size, before = float((residual * ahead).sum()), size
        direction = ahead + (size / before) * direction
    return move


@stateful("parametric.Cumulative")
@dataclass(frozen=True)
class Cumulative:
    """A cumulative logit: P(class <= k) = logistic(thresholds[k] - coef x)."""

    thresholds: Floats = stored(FLOAT, None, rising=True)
    coef: Floats = stored(FLOAT, None, finite=True)

    def log_probabilities(self, eta: Floats) -> Floats:
        """Return log probabilities of all classes, given the linear predictors ``coef x``."""
        upper = np.append(self.thresholds, np.inf) - eta[:, None]
        lower = np.append(-np.inf, self.thresholds) - eta[:, None]
        return _log_between(upper, lower)


def _log_between(upper: Floats, lower: Floats) -> Floats:
    """Return log(F(upper) - F(lower)), F the logistic distribution function, without cancellation."""
    outer = scipy.special.log_expit(upper) + scipy.special.log_expit(-lower)
    return np.asarray(outer + np.log(-np.expm1(lower - upper)))


def fit_cumulative(rows: Rows, n_classes: int) -> Cumulative:
    """Fit a cumulative logit; each of the `n_classes` occurs in the rows.

    Raises
    ------
    NoMaximumError
        If Newton's method does not converge to finite parameters.
    """
    x, back = _standardised(rows)
    x, p = x[:, 1:], x.shape[1] - 1
    w, m = rows.weight, n_classes - 1
    # the class of a row is between two thresholds; the outermost thresholds are infinite
    at = np.concatenate([np.eye(m), np.zeros((1, m))])
    above = np.column_stack([-x, at[rows.y]])
    below = np.column_stack([-x, at[rows.y - 1]])

    def bounds(theta: Floats) -> tuple[Floats, Floats]:
        zeta = np.concatenate([[-np.inf], theta[p:], [np.inf]])
        eta = x @ theta[:p]
        return zeta[rows.y + 1] - eta, zeta[rows.y] - eta

    def value(theta: Floats) -> float:
        if (np.diff(theta[p:]) <= 0).any():
            return -np.inf
        return float(w @ _log_between(*bounds(theta)))

    def step(theta: Floats) -> tuple[Floats, float]:
        up, low = bounds(theta)
        gap = -np.expm1(low - up)
        # densities at the two bounds over the probability between them
        at_up = np.exp(scipy.special.log_expit(-up) - scipy.special.log_expit(-low)) / gap
        at_low = np.exp(scipy.special.log_expit(low) - scipy.special.log_expit(up)) / gap
        gradient = above.T @ (w * at_up) - below.T @ (w * at_low)
        curve_up = w * (at_up**2 - at_up * (1.0 - 2.0 * scipy.special.expit(up)))
        curve_low = w * (at_low**2 + at_low * (1.0 - 2.0 * scipy.special.expit(low)))
        cross = (above * (w * at_up * at_low)[:, None]).T @ below
        information = (above * curve_up[:, None]).T @ above + (below * curve_low[:, None]).T @ below
        move = _solve(information - cross - cross.T, gradient)
        return move, float(gradient @ move)

    shares = np.cumsum(np.bincount(rows.y, w, n_classes))
    start = np.concatenate([np.zeros(p), np.log(shares[:-1] / (shares[-1] - shares[:-1]))])
    theta, converged = _maximise(value, step, start)
    if not converged:
        raise NoMaximumError("Newton's method did not reach the maximum of the likelihood.")
    coef = theta[:p] * np.diag(back)[1:]
    return Cumulative(theta[p:] - back[0, 1:] @ theta[:p], coef)


def _standardised(rows: Rows) -> tuple[Floats, Floats]:
    """Return the standardised design with intercept, and the matrix that transforms coefficients back."""
    centre = np.average(rows.x, axis=0, weights=rows.weight)
    scale = np.abs(rows.x - centre).max(axis=0, initial=0.0)
    scale[scale == 0.0] = 1.0
    # scale before squaring, to avoid overflow
    scale = scale * np.sqrt(np.average(((rows.x - centre) / scale) ** 2, axis=0, weights=rows.weight))
    scale[scale == 0.0] = 1.0
    back = np.diag(np.concatenate([[1.0], 1.0 / scale]))
    back[0, 1:] = -centre / scale
    return np.column_stack([np.ones(rows.y.size), (rows.x - centre) / scale]), back


def _maximise(value: Callable[[Floats], float], step: Step, theta: Floats) -> tuple[Floats, bool]:
    """Return the best parameters found (steps 2 and 3), and whether Newton's method converged."""
    now = value(theta)
    for _ in range(_MOST_STEPS):
        move, decrement = step(theta)
        if decrement <= _DECREMENT:
            return theta + move, True
        reached = value(theta + move)
        for _ in range(_MOST_HALVINGS):
            if reached >= now - 1e-12 * (1.0 + abs(now)):
                break
            move = move / 2.0
            reached = value(theta + move)
        else:
            break
        theta, now = theta + move, reached
    return theta, False


def cholesky(matrix: Floats) -> Floats:
    """Return the Cholesky factor, with the smallest sufficient ridge if the matrix is numerically singular."""
    scale = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    scaled = matrix / np.outer(scale, scale)
    if np.isfinite(scaled).all():
        for ridge in (0.0, *10.0 ** np.arange(-14.0, 1.0)):
            try:
                return np.linalg.cholesky(scaled + ridge * np.eye(scale.size)) * scale[:, None]
            except np.linalg.LinAlgError:
                continue
    raise NoMaximumError("the information matrix of the likelihood is not finite and positive definite.")


def _solve(information: Floats, right: Floats) -> Floats:
    root = cholesky(information)
    return np.asarray(np.linalg.solve(root.T, np.linalg.solve(root, right)))
