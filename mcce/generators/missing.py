"""Targets with missing values.

Families that draw training values treat a missing one as a value. For the others, a logistic regression models whether
the target is missing, and the family its known values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mcce.samplers import ConditionalSampler, Distribution, Hurdle, distribution_of, make_sampler
from mcce.table import Column, Feature, Table


class WithMissing(ConditionalSampler):
    """A family for a target with missing values: P(missing | given) by "logreg", the family for the known values.

    Attributes
    ----------
    missing_ : the fitted logistic regression.
    family_ : the family, fitted to the known values.
    """

    accepts_missing_target = True

    def __init__(self, family: ConditionalSampler) -> None:
        self.family = family

    def fit(self, given: Table, target: Column) -> WithMissing:
        """Fit both parts."""
        is_missing = np.isnan(target.values)
        indicator = Column(Feature.boolean("missing"), is_missing.astype(np.float64))
        self.missing_ = make_sampler("logreg").fit(given, indicator)
        known = np.flatnonzero(~is_missing)
        self.feature_ = replace(target.feature, has_missing=False)
        self.family_ = self.family.fit(given.take(known), Column(self.feature_, target.values[known]))
        return self

    def distribution(self, given: Table) -> Distribution:
        """Return the hurdle of both parts."""
        p_missing = np.exp(self.missing_.distribution(given).log_density(np.ones(given.n_rows)))
        return Hurdle(p_missing, np.nan, distribution_of(self.family_, given, self.feature_))
