"""Restricted draws of the copula compared with brute force, and its support."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.datasets import load_loans
from mcce.rng import RowStreams
from mcce.samplers import Within
from tests.marks import nightly_but
from tests.samplers.copula.simulated import LEVEL, draw, fit, same_shares


@pytest.mark.parametrize(
    "target",
    nightly_but(["height", "drink", "grade", "smoker"], "height"),
)
def test_restricted_draws_follow_the_conditional(training, target):
    sampler, given = fit(training[:5000], target)
    n = 4000
    free = draw(sampler, given, 1, 5 * n)
    if target == "height":
        low, high = np.quantile(free, [0.3, 0.8])
        within = Within(low=np.full(n, low), high=np.full(n, high))
        drawn = draw(sampler, given, 1, n, within, seed=1)
        assert within.allows(drawn).all()
        assert stats.ks_2samp(drawn, free[(free >= low) & (free <= high)]).pvalue > LEVEL
        return
    n_levels = training[target].nunique()
    allowed = np.arange(n_levels) != 1 if n_levels > 2 else np.array([False, True])
    drawn = draw(sampler, given, 1, n, Within(levels=np.tile(allowed, (n, 1))), seed=1)
    assert same_shares(drawn, free[allowed[free.astype(int)]])
    assert np.isnan(draw(sampler, given, 1, 3, Within(levels=np.zeros((3, n_levels), dtype=bool)))).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("band", [1, 0, 1, 0, 1]),
        pytest.param("employment", [0, 1, 1, 1, 1], marks=pytest.mark.nightly),
    ],
)
def test_restricted_levels_with_informative_givens(target, allowed):
    """Loans have near-deterministic columns, where the restriction informs the latents of the givens."""
    X = load_loans().X
    bands = np.digitize(X["salary"], [30_000, 50_000, 70_000, 90_000])
    frame = X.drop(columns="salary").assign(band=pd.Categorical(bands, ordered=True))
    sampler, given = fit(frame, target)
    n, allowed = 3000, np.array(allowed, dtype=bool)
    free = draw(sampler, given, 25, 5 * n).astype(int)
    drawn = draw(sampler, given, 25, n, Within(levels=np.tile(allowed, (n, 1))), seed=1).astype(int)
    shares = [np.bincount(x, minlength=5) / x.size for x in (drawn, free[allowed[free]])]
    assert 0.5 * np.abs(shares[0] - shares[1]).sum() < 0.03


@pytest.mark.slow
def test_restricted_numbers_with_informative_givens():
    """Three near copies of the number, dichotomised: below its median given them, their latents lie near the cuts."""
    rng = np.random.default_rng(6)
    cause = rng.normal(size=2000)
    cut = 0.9 * cause[:, None] + np.sqrt(1 - 0.9**2) * rng.normal(size=(2000, 3)) > 0.0
    y = 0.95 * cause + np.sqrt(1 - 0.95**2) * rng.normal(size=2000)
    sampler, given = fit(pd.DataFrame({"a": cut[:, 0], "b": cut[:, 1], "c": cut[:, 2], "y": y}), "y")
    row, n = int(np.flatnonzero(given.matrix.all(axis=1))[0]), 2000
    free = draw(sampler, given, row, 4 * n)
    high = np.median(free)
    within = Within(high=np.full(n, high), weighted=True)
    found = sampler.sample_within(given.take(np.full(n, row)), RowStreams.from_seed(1, n), within)
    assert stats.ks_2samp(found.values, free[free <= high]).pvalue > LEVEL
    assert np.exp(found.log_mass).mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(4 * n))


def test_bounds_without_feasible_value(training):
    sampler, given = fit(training[:500], "height")
    within = Within(low=np.array([180.0, 1e6, 150.0]), high=np.array([170.0, np.inf, 190.0]))
    assert np.isnan(draw(sampler, given, 0, 3, within)).tolist() == [True, True, False]


def test_unobserved_ordered_level_has_zero_probability():
    level = pd.Categorical(np.arange(300) % 2 * 2, categories=[0, 1, 2, 3], ordered=True)
    sampler, given = fit(pd.DataFrame({"x": np.arange(300.0), "level": level}), "level")
    some = given.take(np.arange(4))
    assert np.isneginf(sampler.log_density(some, np.arange(4.0))).tolist() == [False, True, False, True]


@pytest.mark.slow
def test_supports(training):
    sampler, given = fit(training[:500], "height")
    values = training["height"][:500].to_numpy()
    assert sampler.supports(given, values).all()
    far = np.array([values.min() - 1.0, values.max() + 1.0, values[0] + 1e-9])
    assert sampler.supports(given.take(np.zeros(3, dtype=int)), far).tolist() == [False, False, True]


def test_supports_excludes_values_ruled_out_by_the_givens():
    x = np.linspace(0.0, 1.0, 500)
    sampler, given = fit(pd.DataFrame({"x": x, "y": x}), "y")
    assert sampler.supports(given.take(np.array([0, 499])), np.array([1.0, 1.0])).tolist() == [False, True]
