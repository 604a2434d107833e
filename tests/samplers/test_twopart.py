"""The two-part model: recovery, densities by hand, any value, any rest. Level of all tests: 1e-4."""

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from mcce.exceptions import InputError
from mcce.rng import RowStreams
from mcce.samplers.base import make_sampler
from mcce.samplers.twopart import TwoPartSampler
from tests.samplers.parametric.fixtures import at, encode

LEVEL = 1e-4


def amounts(n=4000, seed=0, value=0.0):
    """P(value) = logistic(-.5 + x), else gamma with mean exp(1 + .5 x)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    rest = rng.gamma(3.0, np.exp(1.0 + 0.5 * x) / 3.0)
    return pd.DataFrame({"x": x, "y": np.where(rng.random(n) < special.expit(-0.5 + x), value, rest)})


def test_both_parts_are_recovered():
    given, target = encode(amounts())
    fitted = TwoPartSampler().fit(given, target)
    for x in (-1.0, 0.8):
        drawn, rejected = fitted.distribution(at(given, [x], 3000)).sample(RowStreams.from_seed(1, 3000))
        assert not rejected.any()
        n_zero = int((drawn == 0.0).sum())
        assert stats.binomtest(n_zero, 3000, special.expit(-0.5 + x)).pvalue > LEVEL
        positive = stats.gamma(3.0, scale=np.exp(1.0 + 0.5 * x) / 3.0)
        assert stats.kstest(drawn[drawn > 0.0], positive.cdf).statistic < 0.05


def test_density_and_probabilities_by_hand():
    given, target = encode(amounts(500))
    fitted = TwoPartSampler().fit(given, target)
    distribution = fitted.distribution(given)
    p = fitted.share_.probabilities(given)[:, 0]
    rest = fitted.rest_.distribution(given)
    is_zero = target.values == 0.0
    expected = np.where(is_zero, np.log(p), np.log1p(-p) + rest.log_density(np.where(is_zero, 1.0, target.values)))
    np.testing.assert_allclose(distribution.log_density(target.values), expected, atol=1e-10)
    np.testing.assert_allclose(distribution.cdf(np.full(500, 2.0)), p + (1.0 - p) * rest.cdf(np.full(500, 2.0)))
    np.testing.assert_allclose(distribution.cdf(np.zeros(500), below=True), 0.0)


@pytest.mark.parametrize("rest", ["norm", "quantile", "pmm", "normrank", TwoPartSampler("gamma")])
def test_any_rest_and_value(rest):
    frame = amounts(1000, value=2.0)
    given, target = encode(frame)
    fitted = TwoPartSampler(rest, value=2.0, formula="x", proper=True, random_state=3).fit(given, target)
    assert fitted.value_ == 2.0
    if isinstance(rest, str):
        assert fitted.rest_.formula == "x"
        assert fitted.rest_.proper
    drawn = fitted.distribution(given).sample(RowStreams.from_seed(1, 1000))[0]
    assert (drawn == 2.0).mean() == pytest.approx((frame["y"] == 2.0).mean(), abs=0.1)


def test_zeros_of_counts():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    counts = np.where(rng.random(2000) < 0.4, 0, 1 + rng.poisson(np.exp(0.5 * x)))
    given, target = encode(pd.DataFrame({"x": x, "y": counts}))
    fitted = TwoPartSampler("poisson").fit(given, target)
    grid = np.arange(80.0)
    p = np.exp(fitted.distribution(at(given, [0.0], 80)).log_density(grid))
    assert p.sum() == pytest.approx(1.0, abs=1e-9)


def test_refusals_and_constants():
    negative = encode(amounts(60).assign(y=lambda f: f["y"] - 1.0))
    with pytest.raises(InputError, match="models positive numbers"):
        make_sampler("twopart").fit(*negative)
    with pytest.raises(InputError, match="value is 'zero'; it must be a finite number"):
        TwoPartSampler(value="zero").fit(*negative)
    given, target = encode(pd.DataFrame({"x": np.arange(5.0), "y": np.zeros(5)}))
    assert (TwoPartSampler().fit(given, target).distribution(given).sample(RowStreams.from_seed(0, 5))[0] == 0.0).all()
