from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri
from sklearn.linear_model import LinearRegression

import mcce
from mcce.samplers.base import IMPOSSIBLE, REACH, local_spacing, supported_by, supported_in_segments
from mcce.table import Schema

NUMBERS = st.lists(st.integers(-40, 40).map(lambda k: k / 4), max_size=9)


def by_hand(pool, value):
    """Return whether a number is as close to the pool as half of the neighbours are to each other."""
    pool = sorted(pool)
    gaps = sorted(b - a for a, b in itertools.pairwise(pool))
    spacing = gaps[(len(gaps) - 1) // 2] if len(pool) > 2 else 0.0
    return bool(pool) and pool[0] <= value <= pool[-1] and min(abs(value - p) for p in pool) <= spacing


@given(NUMBERS, st.lists(st.integers(-90, 90).map(lambda k: k / 8), min_size=1, max_size=9), st.booleans())
def test_numbers_and_levels(pool, values, is_number):
    found = supported_by(np.array([*pool, np.nan]), np.array([*values, np.nan]), is_number=is_number)
    expected = [by_hand(pool, value) if is_number else value in pool for value in values]
    assert found.tolist() == [*expected, False]


def test_spacing_is_that_of_the_rows():
    assert local_spacing(np.array([0.0, 1.0, 3.0, 6.0])) == 2.0
    assert local_spacing(np.array([0.0, 1.0, 3.0])) == 1.0  # the lower one of two
    assert local_spacing(np.array([0.0, 15_000.0])) == 0.0
    assert local_spacing(np.array([1.0, 1.0, 1.0, 2.0, 2.0, 3.0])) == 0.0  # whole numbers, mostly tied


def test_each_value_has_its_own_part():
    rng = np.random.default_rng(0)
    pool, values = rng.normal(size=60).round(1), rng.normal(size=400).round(2)
    first = rng.integers(0, 60, 400)
    after = np.minimum(first + rng.integers(0, 9, 400), 60)
    found = supported_in_segments(lambda part, v: supported_by(part, v, is_number=True), pool, first, after, values)
    expected = [by_hand(pool[a:b], value) for a, b, value in zip(first, after, values)]
    assert found.tolist() == expected
    assert 0 < found.sum() < 400


SAMPLERS = [
    mcce.MarginalSampler(),
    mcce.EmpiricalSampler(bandwidth=3.0),
    mcce.CartSampler(min_leaf=200),
    mcce.CtreeSampler(min_leaf=200),
    mcce.ForestSampler(min_leaf=200, min_split=400),
    mcce.NormRankSampler(),
    mcce.PmmSampler(n_donors=200),
    mcce.PmmSampler(n_donors=200, smoothing="density"),
    mcce.GaussianCopulaSampler(),
    mcce.EstimatorSampler(LinearRegression(), method="pmm", n_donors=200),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_samplers_of_training_values_agree_on_support(sampler):
    """A capital gain: nothing below 90, then a few thousand; the given is uninformative, so all rows are donors."""
    rng = np.random.default_rng(1)
    gain = np.where(rng.random(400) < 0.5, rng.uniform(0.0, 90.0, 400), rng.uniform(15_000.0, 15_090.0, 400))
    frame = pd.DataFrame({"x": np.zeros(400), "y": gain})
    table = Schema.from_data(frame).encode(frame)
    fitted = sampler.fit(table.first(1), table.column(1))
    inner = np.sort(gain)[[20, 180, 220, 380]]
    values = np.array([*inner, *(inner + 0.01), 2000.0, 14_000.0, gain.min() - 1.0, gain.max() + 1.0])
    found = fitted.supports(table.first(1).take(np.zeros(values.size, dtype=int)), values)
    assert found.tolist() == [True] * 8 + [False] * 4


@pytest.mark.slow
def test_residual_samplers_agree_on_support():
    """Residuals come from fits without their rows: draws are not training values, but as many distinct ones."""
    rng = np.random.default_rng(1)
    gain = np.where(rng.random(400) < 0.5, rng.uniform(0.0, 90.0, 400), rng.uniform(15_000.0, 15_090.0, 400))
    frame = pd.DataFrame({"x": np.zeros(400), "y": gain})
    table = Schema.from_data(frame).encode(frame)
    fitted = mcce.EstimatorSampler(LinearRegression(), method="residuals").fit(table.first(1), table.column(1))
    pool = gain.mean() + fitted.residuals_.values
    inside = (pool >= gain.min()) & (pool <= gain.max())  # values beyond it are clipped to the range
    between = pool[0] + (pool[-1] - pool[0]) * rng.random(300)
    values = np.concatenate([pool + 1e-3 * rng.random(400), between, [2000.0, 9000.0, pool[0] - 1.0, pool[-1] + 1.0]])
    found = fitted.supports(table.first(1).take(np.zeros(values.size, dtype=int)), values)
    in_range = (values >= gain.min()) & (values <= gain.max())
    assert found.tolist() == [by_hand(pool, value) and ok for value, ok in zip(values, in_range)]
    assert 0 < found.sum() < values.size
    assert inside.sum() > 200
    assert fitted.supports(table.first(1), np.clip(pool, gain.min(), gain.max())).all()


def test_reach_of_a_normal_ends_where_values_are_impossible():
    assert -ndtri(IMPOSSIBLE) == REACH
