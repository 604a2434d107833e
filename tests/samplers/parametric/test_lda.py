"""`lda`: posterior probabilities compared with MASS::lda."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.storage.state import from_state, to_state
from tests.samplers.parametric.mice import MICE
from tests.samplers.parametric.problem import encode


def data(name):
    found = MICE["lda"][name]
    return encode(pd.DataFrame({**found["x"], "y": pd.Categorical(found["y"])})), np.array(found["posterior"])


@pytest.mark.parametrize("name", ["iris", "births"])
def test_probabilities_match_mass(name):
    (given, target), posterior = data(name)
    fitted = mcce.LdaSampler().fit(given, target)
    np.testing.assert_allclose(np.exp(fitted.log_probabilities(given)), posterior, atol=1e-10)
    again = from_state(to_state(fitted))
    np.testing.assert_array_equal(again.log_probabilities(given), fitted.log_probabilities(given))


def test_counts_equal_repeated_rows():
    (given, target), _ = data("iris")
    counts = np.arange(150) % 3 + 1.0
    weighted = mcce.LdaSampler().fit(given, type(target)(target.feature, target.values, counts))
    rows = np.repeat(np.arange(150), counts.astype(int))
    copied = mcce.LdaSampler().fit(given.take(rows), target.take(rows))
    np.testing.assert_allclose(weighted.log_probabilities(given), copied.log_probabilities(given), atol=1e-9)


def test_levels_of_single_rows_keep_their_share():
    given, target = encode(pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]}))
    np.testing.assert_allclose(np.exp(mcce.LdaSampler().fit(given, target).log_probabilities(given)), 0.5)


def test_levels_of_a_known_process():
    """Normal columns inside each level: the coefficients are S^-1 (m_1 - m_0)."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, 20_000)
    x = rng.normal(size=(20_000, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]]) + codes[:, None] * [1.0, -0.5]
    given, target = encode(pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": np.array(["n", "y"])[codes]}))
    fitted = mcce.LdaSampler().fit(given, target)
    expected = np.linalg.solve([[1.0, 0.6], [0.6, 1.0]], [1.0, -0.5])
    np.testing.assert_allclose(fitted.model_.coef[0] / fitted.scale_, expected, atol=0.06)
