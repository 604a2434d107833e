"""Membership: thresholds by person and the surprise of returned values, by hand."""

import numpy as np
import pytest

from mcce.diagnostics.disclosure_risk import rates
from mcce.diagnostics.disclosure_risk.membership import by_person, surprise


def test_a_threshold_for_each_person_takes_out_how_far_that_person_has_to_go():
    rng = np.random.default_rng(3)
    usual = rng.normal(0, 3, 300)  # log distances that differ from person to person
    shadows = np.exp(usual + rng.normal(0, 0.1, (6, 300)))
    member = np.arange(300) < 150
    distance = np.exp(usual + 0.2 * member + rng.normal(0, 0.1, 300))
    plain = rates.auc(distance[member], distance[~member])
    person = by_person(distance, shadows)
    assert plain.low < 0.5 < plain.high
    assert rates.auc(person[member], person[~member]).low > 0.75


def test_surprise_counts_rare_values_that_were_handed_out():
    own = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    person = np.array([1.0, 9.0])
    handed = np.ones((1, 2), dtype=bool)
    assert surprise(person, np.array([[1.0, 9.0]]), handed, own) == pytest.approx(np.log(4))
    assert surprise(person, np.array([[1.0, 8.0]]), handed, own) == 0
    assert surprise(person, np.array([[1.0, 9.0]]), ~handed, own) == 0
    assert surprise(person, np.empty((0, 2)), np.empty((0, 2), dtype=bool), own) == 0
