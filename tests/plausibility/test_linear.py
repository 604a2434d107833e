"""Normal scores, residuals and Mahalanobis distances compared with numpy."""

import numpy as np
import pandas as pd
import pytest
import scipy

from mcce.plausibility.kernels import MadeRows
from mcce.plausibility.linear import Linear, _choose_share
from mcce.storage.state import from_state, to_state
from mcce.table import Schema


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "job": rng.choice(list("xyz"), n, p=[0.6, 0.3, 0.1])})
    X["kids"] = rng.poisson(2, n).astype(float)
    X["b"] = np.where(rng.random(n) < 0.1, np.nan, X["a"] + 0.1 * rng.normal(size=n))
    return X


@pytest.fixture(scope="module")
def fitted():
    X = people()
    schema = Schema.from_data(X)
    matrix = np.ascontiguousarray(schema.encode(X).matrix)
    fold = np.arange(len(X)) % 2
    return (
        Linear.fit(matrix, schema.features, [np.flatnonzero(fold != k) for k in (0, 1)], np.arange(len(X))),
        matrix,
        fold,
    )


def parts(linear, rows, fold, origins=None, kept=1):
    origins = rows if origins is None else origins
    return linear.parts(MadeRows(rows, np.arange(len(rows)), origins), fold, linear.room(kept))


def test_numbers_have_normal_scores_and_levels_indicators(fitted):
    linear, matrix, _ = fitted
    z = linear.expand(matrix) * linear.deviation + linear.centre
    ranks = scipy.stats.rankdata(matrix[:, 0])
    np.testing.assert_allclose(z[:, linear.number[0]], scipy.stats.norm.ppf((ranks - 0.5) / len(matrix)), atol=0.02)
    indicators = z[:, [place for place in linear.levels if place >= 0]]
    assert indicators.shape[1] == 2  # the most frequent level has no score
    np.testing.assert_allclose(indicators.sum(axis=1), matrix[:, 1] != 0, atol=1e-12)
    np.testing.assert_allclose(z[:, linear.missing[3]], np.isnan(matrix[:, 3]), atol=1e-12)


def test_residuals_and_distances_match_the_precision_matrix(fitted):
    linear, matrix, fold = fitted
    residual, square = parts(linear, matrix, fold)
    z, numbers = linear.expand(matrix), [j for j in range(4) if linear.number[j] >= 0]
    for k in (0, 1):
        product = z @ linear.precision[k]
        by_hand = np.abs(product / np.sqrt(np.diag(linear.precision[k])))[:, linear.number[numbers]]
        by_hand[np.isnan(matrix[:, numbers])] = 0.0
        np.testing.assert_allclose(residual[fold == k], by_hand.max(axis=1)[fold == k], atol=1e-7)
        np.testing.assert_allclose(square[fold == k], (z * product).sum(axis=1)[fold == k], atol=1e-5)


def test_residual_equals_that_of_the_regression_on_the_others():
    """With many rows there is no shrinkage: the residual of b given a is that of least squares."""
    rng = np.random.default_rng(2)
    a = rng.normal(size=20_000)
    matrix = np.column_stack([a, 0.8 * a + 0.6 * rng.normal(size=20_000)])
    schema = Schema.from_data(pd.DataFrame(matrix, columns=["a", "b"]))
    linear = Linear.fit(matrix, schema.features, [np.arange(20_000)], np.arange(20_000))
    row = np.array([[0.0, 1.8]])  # three deviations of the noise
    residual, _ = parts(linear, row, np.zeros(1, dtype=np.int64))
    assert residual[0] == pytest.approx(3.0, abs=0.1)


def test_shrinkage_does_not_hide_residuals_of_nearly_collinear_numbers():
    """Ten measurements of a size: a change of half a deviation is about ten deviations by least squares."""
    rng = np.random.default_rng(4)
    size = rng.normal(size=400)
    noise = np.repeat([0.05, 1.0], [4, 6])
    matrix = size[:, None] + noise * rng.normal(size=(400, 10))
    schema = Schema.from_data(pd.DataFrame(matrix, columns=list("abcdefghij")))
    linear = Linear.fit(matrix, schema.features, [np.arange(400)], np.arange(400))
    others = np.column_stack([np.ones(400), np.delete(matrix, 0, axis=1)])
    rest = matrix[:, 0] - others @ np.linalg.lstsq(others, matrix[:, 0], rcond=None)[0]
    row = matrix[[np.abs(size).argmin()]]
    row[0, 0] += 0.5
    expected = (rest[np.abs(size).argmin()] + 0.5) / rest.std()
    residual, _ = parts(linear, row, np.zeros(1, dtype=np.int64))
    assert residual[0] == pytest.approx(expected, rel=0.25)


def test_many_columns_of_noise_are_shrunk():
    """The held-out likelihood chooses full shrinkage for pure noise."""
    z = np.random.default_rng(5).normal(size=(200, 60))
    assert _choose_share(z) == 1.0


@pytest.mark.parametrize("kept", [1, 7])
def test_origin_of_a_row_does_not_matter(fitted, kept):
    linear, matrix, fold = fitted
    rows = matrix.copy()
    rows[:, 0] = matrix[::-1, 0]
    rows[:200, 1] = (rows[:200, 1] + 1) % 3
    rows[::7, 3], rows[1::7, 3] = np.nan, 0.5
    for mine, other in zip(parts(linear, rows, fold, matrix, kept), parts(linear, rows, fold), strict=True):
        np.testing.assert_allclose(mine, other, atol=2e-6)


def test_state_round_trips(fitted):
    linear, matrix, fold = fitted
    again = from_state(to_state(linear, "linear"))
    for mine, other in zip(parts(linear, matrix, fold), parts(again, matrix, fold), strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"x": [1.0]}),
        pd.DataFrame({"x": np.ones(30), "y": ["a"] * 30}),
        pd.DataFrame({"x": np.full(30, np.nan)}),
        pd.DataFrame({"x": np.arange(30.0), "twice": 2 * np.arange(30.0)}),
        pd.DataFrame({"level": pd.Categorical(["a", "b"] * 15)}),
    ],
)
def test_degenerate_tables_have_finite_parts(X):
    schema = Schema.from_data(X)
    matrix = np.ascontiguousarray(schema.encode(X).matrix)
    linear = Linear.fit(matrix, schema.features, [np.arange(len(X))], np.arange(len(X)))
    for part in parts(linear, matrix, np.zeros(len(X), dtype=np.int64)):
        assert np.isfinite(part).all()
