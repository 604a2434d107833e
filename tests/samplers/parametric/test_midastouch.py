"""`midastouch`: probabilities compared with mice; draws and restricted draws follow them."""

import numpy as np
import pytest
from scipy import stats

import mcce
from mcce import InputError, MidastouchSampler, Within
from mcce.rng import RowStreams
from mcce.samplers.parametric.midastouch import leave_one_out
from mcce.storage.state import from_state, to_state
from tests.samplers.parametric.mice import MICE, air
from tests.samplers.parametric.test_linear import linear_data

LEVEL = 1e-3


def test_probabilities_of_the_same_bootstrap_match_mice(monkeypatch):
    given, target, new = air()
    counts = np.array(MICE["midastouch"]["counts"], dtype=int)
    monkeypatch.setattr(MidastouchSampler, "bootstrap", lambda *_: np.repeat(np.arange(counts.size), counts))
    fitted = MidastouchSampler().fit(given, target)
    order = np.argsort(target.values, kind="stable")
    expected = np.array(MICE["midastouch"]["probabilities"])[:, order]
    assert (expected[:, counts[order] == 0] == 0.0).all()
    np.testing.assert_allclose(fitted.probabilities(new), expected[:, counts[order] > 0], rtol=1e-6)


def test_draws_follow_the_probabilities_and_restrictions():
    given, target, new = air()
    fitted = MidastouchSampler().fit(given, target)
    n = 20_000
    rows, p = new.take(np.zeros(n, dtype=np.intp)), fitted.probabilities(new)[0]
    drawn = fitted.sample(rows, RowStreams.from_seed(1, n))
    within = Within(low=np.full(n, 30.0), high=np.full(n, 60.0), weighted=True)
    found = fitted.sample_within(rows, RowStreams.from_seed(2, n), within)
    allowed = (fitted.donors_ >= 30.0) & (fitted.donors_ <= 60.0)
    for values, weights in ((drawn, p), (found.values, p * allowed)):
        distinct, place = np.unique(fitted.donors_, return_inverse=True)
        expected = np.bincount(place, weights) / weights.sum() * n
        observed = np.array([(values == each).sum() for each in distinct])
        assert observed[expected == 0.0].sum() == 0
        rare = expected < 5.0
        pooled = [np.append(counts[~rare], counts[rare].sum()) for counts in (observed, expected)]
        keep = pooled[1] > 0.0
        assert stats.chisquare(pooled[0][keep], pooled[1][keep]).pvalue > LEVEL
    np.testing.assert_allclose(np.exp(found.log_mass), p[allowed].sum(), rtol=1e-10)


def test_power_matches_hand_calculation_and_fit():
    given, target = linear_data(n=100)
    one, ten = (MidastouchSampler(kappa=kappa).fit(given, target).probabilities(given) for kappa in (1, 10))
    assert (1.0 / (ten**2).sum(axis=1)).mean() < (1.0 / (one**2).sum(axis=1)).mean()
    assert 0.0 < MidastouchSampler().fit(given, target).kappa_ <= 100.0
    with pytest.raises(InputError, match=r"kappa of MidastouchSampler is 0; give a number in \(0, 100\]"):
        MidastouchSampler(kappa=0).fit(given, target)


def test_state_round_trips():
    given, target = linear_data(n=100)
    fitted = mcce.MidastouchSampler().fit(given, target)
    again = from_state(to_state(fitted))
    np.testing.assert_array_equal(again.probabilities(given), fitted.probabilities(given))


def test_collinear_givens_have_minimum_norm_coefficients():
    design = np.column_stack([np.ones(6), np.zeros((6, 2))])
    y = np.arange(6.0)
    betas, r2 = leave_one_out(design, y, np.ones(6))
    others = (y.sum() - y) / 5
    np.testing.assert_allclose(betas[:, 0], others)
    assert r2 == pytest.approx(0.0, abs=1e-12)
