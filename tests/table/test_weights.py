"""Row weights: invalid ones, scaling, and statistics compared with repeated rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce.table.weights import (
    count_distinct,
    deviation_of,
    equal_chances,
    mean_of,
    place_of_copy,
    quantiles,
    read_weights,
)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], "has 2 weights, and X has 4 rows; give one weight for each row"),
        (np.ones((4, 1)), r"has an array of shape \(4, 1\), and X has 4 rows"),
        (3.0, r"has an array of shape \(\), and X has 4 rows"),
        ([1, 2, -1, -2], r"has 2 negative weight\(s\), the first, -1.0, in row 2; weights are numbers of at least 0"),
        ([1, np.nan, 1, 1], r"has 1 missing weight\(s\), the first, nan, in row 1"),
        (pd.Series([1, pd.NA, 1, 1], dtype="Int64"), r"has 1 missing weight\(s\), the first, nan, in row 1"),
        ([1, 1, 1, None], r"has 1 missing weight\(s\), the first, nan, in row 3"),
        ([1, 1, np.inf, 1], r"has 1 infinite weight\(s\), the first, inf, in row 2"),
        ([0, 0, 0, 0], "is zero for all 4 rows, which leaves no rows; leave it out"),
        (["1", "2", "3", "4"], r"is not an array of numbers \(it holds text\)"),
        (pd.to_datetime(["2020-01-01"] * 4), "is not an array of numbers"),
        ([1.0, 1e-12, 1.0, 1.0], "has weights from 1e-12 to 1; compared with the largest, those below 1e-09 are lost"),
        (
            [1e300, 1e-300, 1.0, 1.0],
            r"has weights from 1e-300 to 1e\+300; .* are lost in rounding. Set them",
        ),
        ([2e9, 2e9, 1e8, 1e8], r"sums to 4.2e\+09; whole numbers count copies of rows, and there can be 2,147,483,647"),
    ],
)
def test_invalid_weights_raise(weights, message):
    with pytest.raises(mcce.InputError, match=f"^sample_weight {message}"):
        read_weights(weights, 4)


def test_integers_are_counts_and_others_relative():
    assert read_weights([2, 0, 3], 3).tolist() == [2.0, 0.0, 3.0]
    assert read_weights(np.array([True, False, True]), 3).tolist() == [1.0, 0.0, 1.0]
    assert read_weights([0.5, 0.0, 1.5], 3).tolist() == [0.5, 0.0, 1.5]
    assert read_weights([0.25, 0.0, 0.75], 3).tolist() == [0.5, 0.0, 1.5]  # a mean of 1 over rows with positive weight
    assert read_weights([1e-5, 3e-5], 2).tolist() == [0.5, 1.5]
    uneven = np.random.default_rng(0).uniform(0.1, 9.0, 50)
    np.testing.assert_array_equal(read_weights(uneven, 50), read_weights(123.456 * uneven, 50))
    np.testing.assert_allclose(read_weights(uneven, 50), uneven / uneven.mean(), rtol=1e-8)


def test_implausible_counts_are_reported():
    with pytest.warns(mcce.MCCEWarning, match=r"is 150 on average; whole numbers count copies .* scale them"):
        assert read_weights([100, 200, 0], 3).tolist() == [100.0, 200.0, 0.0]


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 5)), min_size=1, max_size=12), st.integers(0, 1000))
def test_statistics_equal_those_of_repeated_values(rows, share):
    values, weights = (np.array(column, dtype=np.float64) for column in zip(*rows))
    repeated = np.repeat(values, weights.astype(int))
    distinct, times = count_distinct(values, weights)
    expected = np.unique(repeated, return_counts=True)
    np.testing.assert_array_equal(distinct, expected[0])
    np.testing.assert_array_equal(times, expected[1])
    at = [share / 1000, 0.25, 0.75]
    np.testing.assert_allclose(quantiles(values, at, weights), np.quantile(repeated, at), atol=1e-12)
    np.testing.assert_allclose(mean_of(values, weights), repeated.mean(), atol=1e-14)
    np.testing.assert_allclose(deviation_of(values, weights), repeated.std(), atol=1e-14)
    upto = np.cumsum(weights)
    every = np.arange(repeated.size)
    np.testing.assert_array_equal(values[place_of_copy(upto, every)], repeated)


@pytest.mark.parametrize("shares", [0.75, [0.01, 0.99], [0.0, 0.5, 1.0]])
@pytest.mark.parametrize("n_rows", [1, 2, 101, 400])
def test_quantiles_of_columns_equal_those_of_numpy_to_the_last_bit(shares, n_rows):
    values = np.random.default_rng(n_rows).normal(size=(n_rows, 7))
    values[:, :3] = values[:, :3].round(1)
    np.testing.assert_array_equal(quantiles(values, shares, None), np.quantile(values, shares, axis=0))


def test_equal_probability_values_equal_the_repeated_ones():
    assert equal_chances(np.array([3.0, 1.0]), np.array([1.0, 2.0])).tolist() == [1.0, 1.0, 3.0]
    for weights in (None, np.empty(0)):
        assert equal_chances(np.empty(0), weights).tolist() == []
