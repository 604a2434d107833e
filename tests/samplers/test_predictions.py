"""Predicted quantiles: their support, and draws beyond the observed range."""

from __future__ import annotations

import numpy as np

from mcce.samplers.predictions import PredictedQuantiles, Tails


def test_predicted_quantiles_agree_on_support():
    """Everything between the outer predictions; beyond them, values as close to exceedances as these to each other."""
    below, above = np.array([-9.0, -8.75, -8.5, -0.5, -0.25]), np.array([0.0])
    tails = Tails(below, above, least_spread=0.1, lowest=-100.0, highest=12.0)
    rows = PredictedQuantiles.arrange(np.array([[10.0, 12.0]]), np.array([0.25, 0.75]), tails)
    # exceedances are in spreads of 2: draws below 10 are -8, -7.5, -7, 9 and 9.5
    drawn = [-8.0, -7.5, -7.0, 9.0, 9.5, 10.0, 11.3, 12.0]
    near = [-7.8, -7.2, -6.6, 8.6, 9.3, 9.8]
    far = [-8.2, -6.0, 1.0, 8.2, 12.1]
    for values, expected in ((drawn, True), (near, True), (far, False)):
        assert [bool(rows.supports(np.array([value]))[0]) for value in values] == [expected] * len(values)


def test_draws_beyond_the_observed_range_are_its_end():
    tails = Tails(np.array([-3.0, -1.0]), np.array([1.0, 3.0]), least_spread=0.1, lowest=0.0, highest=10.0)
    rows = PredictedQuantiles.arrange(np.array([[2.0, 4.0]]), np.array([0.25, 0.75]), tails)
    supported = [bool(rows.supports(np.array([value]))[0]) for value in (0.0, -1e-3, -4.0, 6.0, 10.0, 10.5)]
    assert supported == [True, False, False, True, True, False]
