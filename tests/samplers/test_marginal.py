"""The marginal sampler draws from all training values, whatever is given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.rng import RowStreams
from mcce.samplers.marginal import MarginalSampler
from tests.samplers.test_cart import encode


@pytest.mark.parametrize("y", [[3.0, np.nan, 1.0, 1.0], ["b", None, "a", "a"]], ids=["numbers", "levels"])
def test_draws_are_training_values_by_frequency(y):
    given, target = encode(pd.DataFrame({"x": range(4), "y": y}))
    sampler = MarginalSampler().fit(given, target)
    drawn = sampler.sample(given.take(np.zeros(8000, dtype=int)), RowStreams.from_seed(1, 8000))
    low, high = np.nanmin(target.values), np.nanmax(target.values)
    counts = [(drawn == low).sum(), (drawn == high).sum(), np.isnan(drawn).sum()]
    assert stats.chisquare(counts, [4000, 2000, 2000]).pvalue > 1e-3
