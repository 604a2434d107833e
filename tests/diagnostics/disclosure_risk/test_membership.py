"""Membership: the surprise of returned values by hand calculation."""

import numpy as np
import pytest

from mcce.diagnostics.disclosure_risk.membership import surprise


def test_surprise_counts_rare_returned_values():
    own = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    person = np.array([1.0, 9.0])
    handed = np.ones((1, 2), dtype=bool)
    assert surprise(person, np.array([[1.0, 9.0]]), handed, own) == pytest.approx(np.log(4))
    assert surprise(person, np.array([[1.0, 8.0]]), handed, own) == 0
    assert surprise(person, np.array([[1.0, 9.0]]), ~handed, own) == 0
    assert surprise(person, np.empty((0, 2)), np.empty((0, 2), dtype=bool), own) == 0
