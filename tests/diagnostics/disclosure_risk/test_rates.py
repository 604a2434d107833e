"""AUC, rates and intervals of attacks compared with scikit-learn, enumeration and known values."""

from math import comb

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from mcce.diagnostics.disclosure_risk import rates


def test_area_matches_scikit_learn_and_two_normals():
    rng = np.random.default_rng(3)
    members, others = rng.normal(1, 1, 4000).round(2), rng.normal(0, 1, 4000).round(2)
    area = rates.auc(members, others)
    truth = np.repeat([1, 0], 4000)
    assert area.value == pytest.approx(roc_auc_score(truth, np.concatenate([members, others])))
    assert area.low < norm.cdf(1 / np.sqrt(2)) < area.high
    found = rates.found_at(members, others, 0.01)
    assert found.share == pytest.approx(norm.sf(norm.isf(0.01) - 1), abs=0.02)


def test_interval_of_the_area_has_its_coverage():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(400):
        area = rates.auc(rng.normal(0.5, 1, 60), rng.normal(0, 1, 60))
        covered += area.low <= norm.cdf(0.5 / np.sqrt(2)) <= area.high
    assert covered >= 365  # 95 per cent of 400 are 380, less 3.4 standard errors


def test_probability_of_successes_matches_enumeration():
    ways = sum(comb(7, k) * comb(10, 6 - k) for k in range(3)) / comb(17, 6)
    assert rates.chance_ahead(4, 10, 2, 7) == pytest.approx(ways)
    assert rates.chance_ahead(0, 0, 0, 0) == rates.chance_ahead(0, 5, 0, 5) == 1.0


def test_rate_at_few_false_positives_matches_shuffling():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=90)
    members, others = scores[:40], scores[40:]
    seen = round(rates.found_at(members, others, 0.05).share * 40)
    as_many = 0
    for _ in range(4000):
        order = rng.permutation(90)
        as_many += round(rates.found_at(scores[order[:40]], scores[order[40:]], 0.05).share * 40) >= seen
    assert rates.chance_at(members, others, 0.05) == pytest.approx(as_many / 4000, abs=0.03)
    assert rates.expected_at(50, 0.05) == pytest.approx(3 / 51)
