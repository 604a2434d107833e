"""The two-part model of amounts: the share of zeros and the positive part, on a known process."""

import numpy as np
import pytest

import mcce
from mcce import SamplerError, TwoPartSampler, Within
from mcce.rng import RowStreams
from mcce.testing import check_sampler
from tests.samplers.statsmodels.problem import FRAME, GIVEN, column, fitted


@pytest.mark.slow
def test_conformance():
    check_sampler("twopart")


@pytest.mark.slow
@pytest.mark.parametrize("rest", ["norm", "normrank"])
def test_conformance_with_another_second_part(rest):
    check_sampler(TwoPartSampler(rest, proper=True))


@pytest.mark.slow
def test_zeros_follow_the_process():
    """P(0) is a logistic function of age; the normal regression has no zeros and draws below 0."""
    drawn = np.array([fitted(TwoPartSampler(), "saved").sample(GIVEN, RowStreams.from_seed(s, 600)) for s in range(20)])
    young, old = (FRAME["age"] < 35).to_numpy(), (FRAME["age"] > 55).to_numpy()
    values = column("saved").values
    for rows in (young, old):
        share = (values[rows] == 0).mean()
        assert (drawn[:, rows] == 0).mean() == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / rows.sum()))
    assert drawn.min() == 0.0
    normal = fitted(mcce.NormSampler(), "saved").sample(GIVEN, RowStreams.from_seed(1, 600))
    assert (normal < 0).any()


def test_density_sums_to_one_over_both_parts():
    sampler = fitted(TwoPartSampler(), "saved")
    row = GIVEN.take(np.zeros(4000, dtype=np.intp))
    grid = np.round(np.arange(4000) / 10, 1)
    assert sampler.base_measure() == "mixed"
    width = np.where(sampler.rest_.column_.has_mass(grid), 1.0, 0.1)  # a probability, or a density of tenths
    total = (width * np.exp(sampler.log_density(row, grid))).sum()
    assert total == pytest.approx(1.0, abs=2e-3)  # a uniform part of a thousandth


def test_restricted_draws_match_rejection():
    sampler = fitted(TwoPartSampler(), "saved")
    n = 20_000
    row = GIVEN.take(np.zeros(n, dtype=np.intp))
    free = sampler.sample(row, RowStreams.from_seed(1, n))
    within = Within(high=np.full(n, 2.55), weighted=True)
    found = sampler.sample_within(row, RowStreams.from_seed(2, n), within)
    kept = free[free <= 2.55]
    assert (found.values == 0).mean() == pytest.approx((kept == 0).mean(), abs=0.02)
    assert np.exp(found.log_mass[0]) == pytest.approx(kept.size / n, abs=0.02)
    above = sampler.sample_within(row, RowStreams.from_seed(2, n), Within(low=np.full(n, 0.05)))
    assert above.values.min() > 0.0


def test_two_part_model_scores_new_rows_better_than_one_regression():
    half, rest = np.arange(300), np.arange(300, 600)
    target = column("saved")
    scores = {}
    for name in ("twopart", "norm", "normrank"):
        sampler = mcce.available_samplers()[name]().fit(GIVEN.take(half), target.take(half))
        scores[name] = sampler.log_density(GIVEN.take(rest), target.values[rest]).mean()
    assert scores["twopart"] > max(scores["norm"], scores["normrank"]) + 0.1


def test_second_part_is_a_regression_of_numbers():
    with pytest.raises(SamplerError, match=r"rest of TwoPartSampler for 'saved' is CartSampler\(\); it must be a regr"):
        fitted(TwoPartSampler("cart"), "saved")
    with pytest.raises(SamplerError, match="it must be a regression"):
        fitted(TwoPartSampler(mcce.NormRankSampler(smoothing="density")), "saved")
    assert fitted(TwoPartSampler("norm", formula="~ age"), "saved").rest_.formula == "~ age"


def test_summary_has_both_parts():
    text = fitted(TwoPartSampler(), "saved").summary()
    assert "logit of a value above 0" in text
    assert "Gamma(Log)" in text
