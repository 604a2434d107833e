"""One conditional drawn within the restriction of each row."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from mcce import ConditionalSampler, EstimatorSampler, MarginalSampler, NormSampler, Within
from mcce.generators.drawing import Conditional
from mcce.rng import RowStreams
from mcce.table import Schema

TABLE = pd.DataFrame({"age": [1.0, 2.0] * 10, "x": np.arange(20.0)})
SCHEMA = Schema.from_data(TABLE)


def test_row_without_allowed_value_is_rejected_and_continues_with_another_value():
    table = SCHEMA.encode(TABLE)
    feature = SCHEMA.features[1]
    sampler = MarginalSampler().fit(table.first(0), table.column(1))
    low = np.where(np.arange(20) % 2, 15.0, 100.0)
    within = Within(low=low, high=np.full(20, 1000.0))
    conditional = Conditional(sampler, feature, table.first(0), RowStreams.from_seed(1, 20))
    found = conditional.draw_within(within, weighted=True)
    values, rejected = found.values, found.rejected
    np.testing.assert_allclose(np.exp(found.log_mass), np.where(rejected, 0.0, 5 / 20))
    np.testing.assert_array_equal(rejected, low == 100.0)
    assert (values[~rejected] >= 15.0).all()
    assert np.isin(values[rejected], TABLE["x"]).all()  # later conditionals need not accept missing values
    # a row's draw does not depend on the rejected rows beside it
    alone = np.array([3, 7])
    again = conditional.at(alone).draw_within(within.take(alone))
    np.testing.assert_array_equal(again.values, values[alone])


class Unrounded(NormSampler):
    """A normal regression that leaves rounding to the chain, with the default restricted draw."""

    def sample(self, given, rng, within=None):
        return self.predict(given) + self.sigma_ * rng.normal()

    def sample_within(self, given, rng, within):
        return ConditionalSampler.sample_within(self, given, rng, within)


class Silent(Unrounded):
    """The same sampler, without the rejected probability."""

    def sample_within(self, given, rng, within):
        found = super().sample_within(given, rng, within)
        return type(found)(found.values, found.rejected)


@pytest.mark.parametrize(
    "sampler", [Unrounded(), Silent(), EstimatorSampler(LinearRegression()), NormSampler()], ids=repr
)
@pytest.mark.parametrize("bounds", [(3.0, 3.0), (2.6, 4.2), (-np.inf, 2.0), (4.0, np.inf)])
def test_integers_within_bounds_match_filtered_draws(sampler, bounds):
    """A draw is allowed if its rounded value is; otherwise a single value could never be drawn."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=2000)})
    frame["kids"] = np.rint(3.0 + 0.5 * frame["x"] + rng.normal(0, 1.2, 2000)).astype(int)
    schema = Schema.from_data(frame)
    table = schema.encode(frame)
    n = 20_000
    fitted = sampler.clone().fit(table.first(1), table.column(1))
    conditional = Conditional(
        fitted, schema.features[1], table.first(1).take(np.full(n, 5)), RowStreams.from_seed(1, n)
    )
    free = conditional.at(np.arange(n), "free").draw()
    within = Within(low=np.full(n, bounds[0]), high=np.full(n, bounds[1]))
    found = conditional.draw_within(within, weighted=True)
    assert not found.rejected.any()
    assert within.allows(found.values).all()
    allowed = free[within.allows(free)]
    assert np.exp(found.log_mass).mean() == pytest.approx(allowed.size / n, abs=0.02)
    values = np.union1d(allowed, found.values)
    counts = np.array([[(part == value).sum() for value in values] for part in (allowed, found.values)])
    counts = counts[:, counts.min(axis=0) > 5]
    if counts.shape[1] > 1:
        assert stats.chi2_contingency(counts).pvalue > 1e-3
