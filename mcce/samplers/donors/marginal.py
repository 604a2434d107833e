"""Bootstrap of one column: the conditional that ignores the givens (synthpop's `sample`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count
from mcce.exceptions import SamplerError
from mcce.rng import RowStreams
from mcce.samplers.base import BaseMeasure, ConditionalSampler, RestrictedDraw, Within, supported_by
from mcce.samplers.donors.density import MarginalDensity
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.registry import register_sampler
from mcce.samplers.restricted import log_of
from mcce.storage.fields import FLOAT, check_codes, learned, require
from mcce.table import Column, Feature, Table
from mcce.table.weights import place_of_copy, sorted_with_weights
from mcce.wording import Parameter, Value

Self = TypeVar("Self", bound="MarginalSampler")


@register_sampler("marginal")
class MarginalSampler(ConditionalSampler):
    """Draws from the observed values of the target, regardless of the givens.

    Parameters
    ----------
    min_donors : int
        Fewest training rows that a value is drawn from: a target with fewer raises an error, and a restricted draw with
        fewer allowed donors is rejected.

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
    takes_weights = True
    discloses = "{donors_} training values of it"

    donors_: Floats = learned(FLOAT, "rows", finite="or missing")
    weights_: Floats | None = learned(FLOAT, "rows", finite=True, above=0.0, optional=True, default=None)
    row_weights_: Floats | None = learned(FLOAT, "rows", finite=True, above=0.0, optional=True, default=None)
    n_levels_: int = learned(int, least="levels", most="levels")
    min_donors: int = 1

    def __init__(self, *, min_donors: int = 1) -> None:
        self.min_donors = min_donors

    def fit(self: Self, given: Table, target: Column) -> Self:
        check_count(self.min_donors, "min_donors", self)
        self.check_target(target.feature)
        if self.min_donors > 1 and target.values.size < self.min_donors:
            raise SamplerError(
                Value(self),
                f" would draw {target.feature.name!r} from {target.values.size} training rows, and ",
                Parameter("min_donors"),
                f" is {self.min_donors}. Lower ",
                Parameter("min_donors"),
                ", or leave it out.",
            )
        for name in ("weights_", "row_weights_"):
            vars(self).pop(name, None)
        self.donors_, weights = sorted_with_weights(target.values, target.weights)
        if weights is not None and target.weights is not None:
            self.weights_, self.row_weights_ = weights, target.weights
        self.n_levels_ = target.feature.n_levels
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        if within is not None:
            return self.sample_within(given, rng, within).values
        self.check_fitted("donors_")
        if self.weights_ is not None:
            return self.donors_[place_of_copy(self._upto, rng.uniform() * self._upto[-1])]
        return self.donors_[rng.integer(self.donors_.size)]

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        self.check_fitted("donors_")
        known, n = self._known, given.n_rows
        upto = np.arange(self.donors_.size + 1) if self.weights_ is None else np.append(0.0, self._upto)
        if within.levels is not None:
            n_levels = within.levels.shape[1]
            counts = within.level_mask(n, n_levels) * np.bincount(known.astype(np.intp), minlength=n_levels)
            times = np.bincount(known.astype(np.intp), self._weights_of_known, minlength=n_levels)
            weights = within.level_mask(n, n_levels) * times
            allowed = np.where(self._enough(counts.sum(axis=1)) > 0, weights.sum(axis=1), 0)
            drawn = rng.categorical(np.where(allowed[:, None] > 0, weights, 1.0)).astype(np.float64)
        else:
            low, high = within.bounds(n)
            first, after = np.searchsorted(known, low), np.searchsorted(known, high, side="right")
            n_allowed = self._enough(np.maximum(after - first, 0))
            allowed = np.where(n_allowed > 0, upto[after] - upto[first], 0)
            if self.weights_ is None:
                place = first + rng.integer(np.maximum(n_allowed, 1))
            else:
                place = place_of_copy(self._upto, upto[first] + rng.uniform() * allowed)
                place = np.clip(place, first, np.maximum(after - 1, first))
            # a row without allowed donors reads the NaN after the last known value
            drawn = np.append(known, np.nan)[np.where(n_allowed > 0, place, known.size)]
        found = RestrictedDraw.of(drawn, allowed == 0, log_of(allowed / upto[-1]))
        if within.missing is None:
            return found
        missing = (upto[-1] - upto[known.size]) * within.allows_missing(n)
        return found.or_missing(allowed / upto[-1], missing / upto[-1], rng.uniform())

    def supports(self, given: Table, values: Floats) -> Bools:
        self.check_fitted("donors_")
        supported = supported_by(self.donors_, values, is_number=self.n_levels_ == 0, weights=self.weights_)
        return supported | (np.isnan(values) & bool(np.isnan(self.donors_).any()))

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        self.check_fitted("donors_")
        margin = self._margin
        own = np.full(values.size, float(training_rows is not None))
        if training_rows is not None and self.row_weights_ is not None:
            own = self.row_weights_[training_rows]
        is_missing = np.isnan(values)
        with np.errstate(divide="ignore"):
            known = np.log(margin.share(np.where(is_missing, 0.0, values), own)) + np.log1p(-margin.missing_share)
            return np.asarray(np.where(is_missing, np.log(margin.missing_share), known))

    def distribution(self, given: Table) -> DistributionFunctions:
        self.check_fitted("donors_")
        known, n = self._known, given.n_rows
        if not known.size:
            return DistributionFunctions.always_missing(n)
        upto = np.arange(self.donors_.size + 1) if self.weights_ is None else np.append(0.0, self._upto)
        total = upto[known.size]
        return DistributionFunctions.of_atoms(
            np.unique(known),
            lambda high: upto[np.searchsorted(known, high, side="right")] / total,
            missing=float(1.0 - total / upto[-1]),
            n_donors=known.size,
        )

    def base_measure(self) -> BaseMeasure:
        self.check_fitted("donors_")
        return self._margin.base_measure

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        check_count(self.min_donors, "min_donors", self)
        super().check_state(given, target, n_rows)
        known = self._known
        require((np.diff(known) >= 0).all(), "donors_ is not ascending")
        require(not np.isnan(self.donors_[: known.size]).any(), "donors_ holds missing values before others")
        require(
            (self.weights_ is None) == (self.row_weights_ is None), "only one of weights_ and row_weights_ is present"
        )
        if not target.is_numeric:
            check_codes(self.donors_, "donors_", target.n_levels)

    def _enough(self, n_allowed: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the numbers of allowed donors; 0 if they are below `min_donors`."""
        return np.where(n_allowed < self.min_donors, 0, n_allowed)

    @property
    def _known(self) -> Floats:
        return self.donors_[~np.isnan(self.donors_)]

    @property
    def _margin(self) -> MarginalDensity:
        return MarginalDensity.of(self.donors_, self.n_levels_, self.weights_)

    @property
    def _weights_of_known(self) -> Floats | None:
        return None if self.weights_ is None else self.weights_[~np.isnan(self.donors_)]

    @property
    def _upto(self) -> Floats:
        """Cumulative sums of the weights."""
        assert self.weights_ is not None
        return np.cumsum(self.weights_)
