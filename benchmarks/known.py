"""Known processes: tables whose joint density can be computed, with a model and the truth about every answer.

An answer is *likely* if the joint density at it is above the 5 % quantile of the density at real rows. Decisions come
from a logistic score of the columns; a row is accepted from 0.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import logsumexp

LEVEL = 0.05
N_TRUTH = 50_000  # real rows that the level is computed from
ANGLES = np.linspace(0.0, np.pi, 200)


@dataclass(frozen=True)
class Known:
    """A process: `draw(rng, n)` returns rows, `log_density(rows)` their joint log density, `score` the model."""

    name: str
    draw: Callable[[np.random.Generator, int], pd.DataFrame]
    log_density: Callable[[pd.DataFrame], np.ndarray]
    score: Callable[[pd.DataFrame], np.ndarray]
    fixed: tuple[str, ...] = ()

    @cached_property
    def limit(self) -> float:
        """The log density that 5 % of the real rows do not reach."""
        return float(np.quantile(self.log_density(self.draw(np.random.default_rng(99), N_TRUTH)), LEVEL))

    def is_likely(self, rows: pd.DataFrame) -> np.ndarray:
        """Return which rows are likely."""
        return np.asarray(self.log_density(rows) > self.limit)

    def cases(self, seed: int, n_train: int, n_cases: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return training rows, and the first refused rows among them."""
        X = self.draw(np.random.default_rng(seed), n_train)
        return X, X[self.score(X) < 0.5].head(n_cases)


def _frame(*columns: Any) -> pd.DataFrame:
    return pd.DataFrame({f"x{j}": column for j, column in enumerate(columns)})


def _logistic(slope: float, threshold: float, *names: str) -> Callable[[pd.DataFrame], np.ndarray]:
    def score(rows: pd.DataFrame) -> np.ndarray:
        total = sum(_numbers(rows, name) for name in names)
        return np.asarray(1.0 / (1.0 + np.exp(-slope * (total - threshold))))

    return score


def _numbers(rows: pd.DataFrame, name: str) -> np.ndarray:
    is_level = isinstance(rows[name].dtype, pd.CategoricalDtype)
    return (rows[name].cat.codes if is_level else rows[name]).to_numpy(dtype=float)


def _levels(codes: np.ndarray, names: str) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, list(names))


COVARIANCE = 0.7 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
ROOT = np.linalg.cholesky(COVARIANCE)


def _gaussians(rng: np.random.Generator, n: int) -> pd.DataFrame:
    return _frame(*(rng.standard_normal((n, 4)) @ ROOT.T).T)


def _gaussians_density(rows: pd.DataFrame) -> np.ndarray:
    return np.asarray(stats.multivariate_normal(np.zeros(4), COVARIANCE).logpdf(rows.to_numpy(dtype=float)))


def _heavy(rng: np.random.Generator, n: int) -> pd.DataFrame:
    return _frame(*((rng.standard_normal((n, 4)) @ ROOT.T) / np.sqrt(rng.chisquare(3, (n, 1)) / 3)).T)


def _heavy_density(rows: pd.DataFrame) -> np.ndarray:
    return np.asarray(stats.multivariate_t(np.zeros(4), COVARIANCE, df=3).logpdf(rows.to_numpy(dtype=float)))


def _moon(angle: np.ndarray, lower: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.where(lower, 1 - np.cos(angle), np.cos(angle)), np.where(lower, 0.5 - np.sin(angle), np.sin(angle))


def _moons(rng: np.random.Generator, n: int) -> pd.DataFrame:
    moon = _moon(np.pi * rng.random(n), rng.random(n) < 0.5)
    turn = 2 * np.pi * rng.random(n)
    noise = 0.1 * rng.standard_normal((4, n))
    return _frame(moon[0] + noise[0], moon[1] + noise[1], np.cos(turn) + noise[2], np.sin(turn) + noise[3])


def _along(x: np.ndarray, y: np.ndarray, path: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the log density of points spread by normal noise around points of a path."""
    square = (x[:, None] - path[0]) ** 2 + (y[:, None] - path[1]) ** 2
    return np.asarray(logsumexp(-square / (2 * 0.1**2), axis=1) - np.log(len(path[0]) * 2 * np.pi * 0.1**2))


def _moons_density(rows: pd.DataFrame) -> np.ndarray:
    x = rows.to_numpy(dtype=float).T
    both = [_along(x[0], x[1], _moon(ANGLES, lower)) for lower in (False, True)]
    circle = 2 * ANGLES[:-1]
    return np.asarray(logsumexp(both, axis=0) - np.log(2) + _along(x[2], x[3], (np.cos(circle), np.sin(circle))))


def _chain(rng: np.random.Generator, n: int) -> pd.DataFrame:
    columns = [rng.standard_normal(n)]
    for _ in range(7):
        columns.append(_next(columns[-1]) + 0.2 * rng.standard_normal(n))
    return _frame(*columns)


def _next(x: np.ndarray) -> np.ndarray:
    return 0.5 * x + np.sin(1.5 * x)


def _chain_density(rows: pd.DataFrame) -> np.ndarray:
    x = rows.to_numpy(dtype=float).T
    return np.asarray(stats.norm.logpdf(x[0]) + sum(stats.norm.logpdf(b, _next(a), 0.2) for a, b in pairwise(x)))


SHARES = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.02, 0.18, 0.8]])  # of x1 in each group x0
MEANS = np.array([[0.0, 3.0, 1.0], [4.0, 1.0, 5.0], [2.0, 6.0, 3.0]])


def _grouped(rng: np.random.Generator, n: int) -> pd.DataFrame:
    group = rng.integers(0, 3, n)
    kind = (rng.random(n)[:, None] > SHARES[group].cumsum(axis=1)).sum(axis=1).clip(0, 2)
    amount = MEANS[group, kind] + 0.4 * rng.standard_normal(n)
    length = amount * (kind - 1) + 0.5 * rng.standard_normal(n)
    return _frame(_levels(group, "abc"), _levels(kind, "pqr"), amount, length)


def _grouped_density(rows: pd.DataFrame) -> np.ndarray:
    group, kind, amount, length = (_numbers(rows, name) for name in rows)
    g, k = group.astype(int), kind.astype(int)
    numbers = stats.norm.logpdf(amount, MEANS[g, k], 0.4) + stats.norm.logpdf(length, amount * (kind - 1), 0.5)
    return np.asarray(np.log(SHARES[g, k] / 3) + numbers)


def _mixed(rng: np.random.Generator, n: int) -> pd.DataFrame:
    age = rng.normal(0.0, 1.0, n)
    job = (rng.random(n)[:, None] > _job_shares(age).cumsum(axis=1)).sum(axis=1).clip(0, 2)
    pay = np.array([-1.0, 0.5, 2.0])[job] + 0.5 * age + 0.3 * rng.standard_normal(n)
    calls = rng.poisson(np.exp(0.6 * pay))
    saved = 0.5 * pay**2 + 0.2 * calls + 0.3 * rng.standard_normal(n)
    return _frame(age, _levels(job, "abc"), pay, calls, saved)


def _job_shares(age: np.ndarray) -> np.ndarray:
    odds = np.exp(np.column_stack([-2.0 * age, np.zeros(len(age)), 2.0 * age]))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _mixed_density(rows: pd.DataFrame) -> np.ndarray:
    age, job, pay, calls, saved = (_numbers(rows, name) for name in rows)
    k = job.astype(int)
    total = stats.norm.logpdf(age) + np.log(_job_shares(age)[np.arange(len(age)), k])
    total = total + stats.norm.logpdf(pay, np.array([-1.0, 0.5, 2.0])[k] + 0.5 * age, 0.3)
    total = total + stats.poisson.logpmf(calls, np.exp(0.6 * pay))
    return np.asarray(total + stats.norm.logpdf(saved, 0.5 * pay**2 + 0.2 * calls, 0.3))


KNOWN = [
    Known("gaussians", _gaussians, _gaussians_density, _logistic(1.0, 1.0, "x1", "x2", "x3"), ("x0",)),
    Known("moons and ring", _moons, _moons_density, _logistic(2.0, 1.0, "x0", "x2")),
    Known("heavy tails", _heavy, _heavy_density, _logistic(1.0, 1.0, "x1", "x2", "x3"), ("x0",)),
    Known("levels and numbers", _grouped, _grouped_density, _logistic(1.0, 4.0, "x1", "x2")),
    Known("mixed chain", _mixed, _mixed_density, _logistic(1.0, 1.5, "x2", "x4")),
    Known("chain of eight", _chain, _chain_density, _logistic(1.0, 1.0, "x5", "x6", "x7")),
]
