"""Predictive mean matching compared with a search over all donors, row by row."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mcce.rng import RowStreams
from mcce.samplers.matching import Donors
from tests.marks import nightly_but

LEVEL = 1e-4


def shares_by_hand(predictions, values, fit, predicted, n_donors, allowed):
    """Return each value's probability for one row, by exact arithmetic on distances."""
    distance = {i: abs(Fraction(predictions[i]) - Fraction(predicted[fit[i]])) for i in np.flatnonzero(allowed)}
    k = min(n_donors, len(distance))
    last = sorted(distance.values())[k - 1]
    sure = [i for i, d in distance.items() if d < last]
    tied = [i for i, d in distance.items() if d == last]
    shares = {}
    for i in sure:
        shares[values[i]] = shares.get(values[i], 0.0) + 1 / k
    for i in tied:
        shares[values[i]] = shares.get(values[i], 0.0) + (k - len(sure)) / k / len(tied)
    return shares


def problem(seed, n_fits):
    """Predictions and values on coarse grids: many ties, in the last place and elsewhere."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(n_fits, 25))
    fit = rng.permutation(np.arange(n) % n_fits)
    predictions = rng.integers(0, 8, n) / 4.0
    values = rng.integers(0, 6, n) * 1.0
    predicted = np.clip(rng.integers(-2, 10, (6, n_fits)) / 4.0, predictions.min(), predictions.max())
    return predictions, values, fit, predicted, int(rng.integers(1, 6))


@pytest.mark.parametrize("n_fits", [1, 2, 5])
@pytest.mark.parametrize("seed", nightly_but(range(10), 0, 1, 2))
def test_shares_and_draws_match_a_search_by_hand(seed, n_fits):
    predictions, values, fit, predicted, n_donors = problem(seed, n_fits)
    donors = Donors.arrange(predictions, values, fit, n_donors)
    everyone = np.ones(values.size, dtype=bool)
    for row in predicted:
        expected = shares_by_hand(predictions, values, fit, row, n_donors, everyone)
        grid = np.arange(-1.0, 7.0)
        found = np.exp(donors.log_share(np.tile(row, (grid.size, 1)), grid))
        np.testing.assert_allclose(found, [expected.get(value, 0.0) for value in grid], atol=1e-12)
        for low, high in ((None, None), (1.0, 3.0), (2.0, 2.0)):
            allowed = everyone if low is None else (values >= low) & (values <= high)
            bounds = () if low is None else (np.full(800, low), np.full(800, high))
            drawn = donors.draw(np.tile(row, (800, 1)), RowStreams.from_seed(seed, 800), *bounds)
            if not allowed.any():
                assert np.isnan(drawn).all()
                continue
            expected = shares_by_hand(predictions, values, fit, row, n_donors, allowed)
            counts = [(drawn == value).sum() for value in expected]
            assert sum(counts) == 800
            assert len(expected) == 1 or stats.chisquare(counts, 800 * np.array([*expected.values()])).pvalue > LEVEL


@pytest.mark.parametrize("far", [1e9, 1e18, 1e300, np.inf])
@pytest.mark.parametrize("offset", [0.0, 5.0, -1000.0])
def test_distant_row_has_the_donors_of_that_end(far, offset):
    predictions = offset + np.arange(20) / 8
    donors = Donors.arrange(predictions, np.arange(20.0), np.zeros(20, dtype=int), 3)
    for predicted, expected in ((far, {17.0, 18.0, 19.0}), (-far, {0.0, 1.0, 2.0})):
        rows = np.full((200, 1), predicted)
        assert set(donors.draw(rows, RowStreams.from_seed(0, 200))) == expected
        share = np.exp(donors.log_share(np.full((20, 1), predicted), np.arange(20.0)))
        np.testing.assert_allclose(share, np.isin(np.arange(20.0), list(expected)) / 3)
        low, high = np.full(200, 5.0), np.full(200, 9.0)
        allowed = {7.0, 8.0, 9.0} if predicted > 0 else {5.0, 6.0, 7.0}
        assert set(donors.draw(rows, RowStreams.from_seed(0, 200), low, high)) == allowed


@pytest.mark.slow
def test_rows_with_individual_bounds_are_drawn_independently():
    rng = np.random.default_rng(0)
    donors = Donors.arrange(rng.normal(size=50), rng.normal(size=50), np.arange(50) % 5, 4)
    predicted, low = rng.normal(size=(300, 5)), rng.choice([-1.0, -0.5, 0.0, 9.0], 300)
    high, streams = low + rng.choice([0.5, 1.0], 300), RowStreams.from_seed(1, 300)
    together = donors.draw(predicted, RowStreams.from_seed(1, 300), low, high)
    alone = [donors.draw(predicted[[i]], streams.take(np.array([i])), low[[i]], high[[i]])[0] for i in range(300)]
    np.testing.assert_array_equal(together, alone)
    assert np.isnan(together[low == 9.0]).all()
