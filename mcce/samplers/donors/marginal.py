"""Bootstrap of one column: the conditional that ignores what is given (synthpop's `sample`).

1. Keep the training values of the target, missing ones included.
2. Draw one of them for each row, uniformly.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from mcce.rng import RowStreams
from mcce.samplers.base import Bools, ConditionalSampler, Floats, Ints, Within
from mcce.samplers.donors.density import MarginalDensity
from mcce.table import Column, Table

Self = TypeVar("Self", bound="MarginalSampler")


class MarginalSampler(ConditionalSampler):
    """Draws from the observed values of the target, whatever is given.

    Examples
    --------
    >>> import pandas as pd, mcce
    >>> X = pd.DataFrame({"sex": ["f", "m", "f", "m"], "job": ["clerk", "pilot", "pilot", "cook"]})
    >>> chain = mcce.ChainModel(sampler=mcce.MarginalSampler(), fixed=["sex"]).fit(X)
    >>> bool(chain.sample(given=X[["sex"]], n=3)["job"].isin(X["job"]).all())
    True
    """

    handles_missing = True
    thread_safe = True
    draws_observed = True
    ignores_given = True
    leaves_one_out = True

    donors_: Floats
    n_levels_: int

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Keep the target's values, sorted (missing ones last)."""
        self.check_target(target.feature)
        self.donors_ = np.sort(target.values)
        self.n_levels_ = target.feature.n_levels
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw an observed value for each row; restricted draws are exact."""
        self.check_fitted("donors_")
        if within is None:
            return self.donors_[rng.integer(self.donors_.size)]
        known = self._known
        low = np.full(given.n_rows, -np.inf) if within.low is None else within.low
        high = np.full(given.n_rows, np.inf) if within.high is None else within.high
        if within.levels is not None:
            codes = np.arange(within.levels.shape[1])
            allowed = within.levels & (codes >= low[:, None]) & (codes <= high[:, None])
            weights = allowed * np.bincount(known.astype(np.intp), minlength=codes.size)
            possible = weights.sum(axis=1) > 0
            drawn = rng.categorical(np.where(possible[:, None], weights, 1.0))
            return np.where(possible, drawn, np.nan)
        first, after = np.searchsorted(known, low), np.searchsorted(known, high, side="right")
        drawn = first + rng.integer(np.maximum(after - first, 1))
        # a row that allows nothing reads the NaN after the last known value
        return np.append(known, np.nan)[np.where(after > first, drawn, known.size)]

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether the value was observed."""
        self.check_fitted("donors_")
        observed: Bools = np.isin(values, self._known)
        return observed | (np.isnan(values) & bool(np.isnan(self.donors_).any()))

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        """Return the log share of each value, or a kernel density at it, see `mcce.samplers.donors.density`."""
        self.check_fitted("donors_")
        margin = MarginalDensity.of(self.donors_, self.n_levels_)
        own = np.full(values.size, float(training_rows is not None))
        is_missing = np.isnan(values)
        with np.errstate(divide="ignore"):
            known = np.log(margin.share(np.where(is_missing, 0.0, values), own)) + np.log1p(-margin.missing_share)
            return np.asarray(np.where(is_missing, np.log(margin.missing_share), known))

    @property
    def _known(self) -> Floats:
        return self.donors_[~np.isnan(self.donors_)]
