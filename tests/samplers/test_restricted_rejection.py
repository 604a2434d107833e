"""Rejection sampling: the estimate of the acceptance probability over all outcomes."""

from itertools import product

import numpy as np
import pytest

from mcce.samplers import RestrictedDraw
from mcce.samplers.restricted import draw_until_allowed


def run(allowed, most, *, estimate=True, log_mass=0.0):
    """Rows whose draw at each attempt is allowed or not; the value of a draw is the number of the attempt."""
    allowed = np.array(allowed)

    def draw(rows, attempt):
        masses = None if log_mass is None else np.full(rows.size, log_mass)
        return RestrictedDraw(np.full(rows.size, float(attempt)), ~allowed[rows, attempt], masses)

    return draw_until_allowed(draw, len(allowed), most, estimate=estimate)


@pytest.mark.parametrize("most", [1, 2, 3, 7])
@pytest.mark.parametrize("p", [0.02, 0.4, 0.9])
def test_estimate_is_unbiased_for_any_cap(p, most):
    """All sequences of allowed and rejected draws, each with its probability: the mean is exact."""
    sequences = list(product([True, False], repeat=most))
    probability = [np.prod([p if a else 1.0 - p for a in sequence]) for sequence in sequences]
    found = run(sequences, most)
    assert np.dot(probability, np.exp(found.log_mass)) == pytest.approx(p, rel=1e-12)
    np.testing.assert_array_equal(found.rejected, [not any(sequence) for sequence in sequences])
    assert np.isneginf(found.log_mass[found.rejected]).all()
    if most > 1:  # stopping at the first draw would be wrong
        naive = [1.0 / (1 + sequence.index(True)) if any(sequence) else 0.0 for sequence in sequences]
        assert np.dot(probability, naive) > p * 1.01


def test_value_is_the_first_allowed_draw():
    found = run([[False, True, True], [True, False, False], [False, False, True], [False] * 3], 3)
    np.testing.assert_array_equal(found.values, [1.0, 0.0, 2.0, np.nan])
    np.testing.assert_allclose(np.exp(found.log_mass), [1 / 2, 1 / 3, 1 / 3, 0.0])


def test_probabilities_of_the_draws_are_multiplied():
    found = run([[False, True, True], [False] * 3], 3, log_mass=np.log(0.1))
    np.testing.assert_allclose(np.exp(found.log_mass), [0.05, 0.0])
    kept = run([[False, True, True], [False] * 3], 3, estimate=False, log_mass=np.log(0.1))
    np.testing.assert_allclose(np.exp(kept.log_mass), [0.1, 0.0])
    assert run([[False, True, True]], 3, estimate=False, log_mass=None).log_mass is None


def test_without_estimate_sampling_stops_at_the_first_allowed_draw():
    queried = []

    def draw(rows, attempt):
        queried.append(rows.tolist())
        return RestrictedDraw(np.zeros(rows.size), rows > attempt, np.zeros(rows.size))

    draw_until_allowed(draw, 3, 50, estimate=False)
    assert queried == [[0, 1, 2], [1, 2], [2]]
