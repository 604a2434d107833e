"""Fits of the sampler around an estimator, and draws from it."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
)

from mcce import EstimatorSampler
from mcce.rng import RowStreams
from mcce.table import Schema

LEVEL = 1e-4


BOOSTING = HistGradientBoostingRegressor(loss="quantile", max_iter=20, min_samples_leaf=50, learning_rate=0.5)


def fit(frame, estimator, target="y", **parameters):
    """Return the fitted sampler of `target` and the table of the other columns."""
    frame = frame[[name for name in frame if name != target] + [target]]
    table = Schema.from_data(frame).encode(frame)
    last = len(table.features) - 1
    return EstimatorSampler(estimator, **parameters).fit(table.first(last), table.column(last)), table.first(last)


def draw(sampler, given, row, n, within=None, seed=0):
    """Draw n times at one training row."""
    return sampler.sample(given.take(np.full(n, row)), RowStreams.from_seed(seed, n), within)


class Known(RegressorMixin, BaseEstimator):
    """A regressor that needs no training: its predictions are the same for all folds."""

    def __init__(self, slopes):
        self.slopes = slopes

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X @ np.array(self.slopes)


class KnownQuantiles(RegressorMixin, BaseEstimator):
    """A regressor whose quantile is a function of the level: a table with an atom of mass 0.5 at 2."""

    def __init__(self, quantile=0.5):
        self.quantile = quantile

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), np.interp(self.quantile, [0.0, 0.25, 0.75, 1.0], [0.0, 2.0, 2.0, 4.0]))
