"""One conditional, drawn inside what is allowed for each row."""

import numpy as np
import pandas as pd

from mcce import MarginalSampler, Within
from mcce.generators.restricted import Conditional
from mcce.rng import RowStreams
from mcce.table import Schema

TABLE = pd.DataFrame({"age": [1.0, 2.0] * 10, "x": np.arange(20.0)})
SCHEMA = Schema.from_data(TABLE)


def test_a_row_without_an_allowed_value_is_dead_and_goes_on_with_one_that_is_not_allowed():
    table = SCHEMA.encode(TABLE)
    feature = SCHEMA.features[1]
    sampler = MarginalSampler().fit(table.first(0), table.column(1))
    low = np.where(np.arange(20) % 2, 15.0, 100.0)
    within = Within(low=low, high=np.full(20, 1000.0))
    conditional = Conditional(sampler, feature, table.first(0), RowStreams.from_seed(1, 20))
    found = conditional.draw_within(within, weighted=True)
    values, dead = found.values, found.dead
    np.testing.assert_allclose(np.exp(found.log_mass), np.where(dead, 0.0, 5 / 20))
    np.testing.assert_array_equal(dead, low == 100.0)
    assert (values[~dead] >= 15.0).all()
    assert np.isin(values[dead], TABLE["x"]).all()  # later conditionals need not take missing values
    # a row's draw does not depend on the dead rows beside it
    alone = np.array([3, 7])
    again = conditional.at(alone).draw_within(within.take(alone))
    np.testing.assert_array_equal(again.values, values[alone])
