from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce import MarginalSampler, NotFittedError
from mcce.rng import RowStreams
from mcce.samplers import Within
from mcce.table import Schema


def problem(values, **kinds):
    frame = pd.DataFrame({"given": np.arange(len(values)), "target": values})
    table = Schema.from_data(frame, kinds).encode(frame)
    return table.first(1), table.column(1)


def draw(sampler, given, n, within=None, seed=0):
    return sampler.sample(given.take(np.zeros(n, dtype=int)), RowStreams.from_seed(seed, n), within)


def test_draws_have_the_observed_frequencies():
    given, target = problem([1.0] * 10 + [2.0] * 30 + [4.0] * 60)
    drawn = draw(MarginalSampler().fit(given, target), given, 10_000)
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [1.0, 2.0, 4.0]
    assert stats.chisquare(counts, [1000, 3000, 6000]).pvalue > 1e-4


def test_missing_values_are_drawn_at_their_rate():
    given, target = problem([1.0, np.nan, np.nan, 2.0])
    drawn = draw(MarginalSampler().fit(given, target), given, 10_000)
    assert stats.binomtest(int(np.isnan(drawn).sum()), 10_000, 0.5).pvalue > 1e-4


def test_restricted_numbers_are_exact():
    given, target = problem([1.0, 2.0, 2.0, 3.0, 9.0, np.nan])
    sampler = MarginalSampler().fit(given, target)
    n = 9000
    drawn = draw(sampler, given, n, Within(low=np.full(n, 1.5), high=np.full(n, 3.0)))
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [2.0, 3.0]
    assert stats.chisquare(counts, [6000, 3000]).pvalue > 1e-4
    drawn = draw(sampler, given, 4, Within(low=np.array([8.0, 9.0, 9.5, 4.0]), high=np.array([9.0, 9.0, 12.0, 3.0])))
    assert drawn[:2].tolist() == [9.0, 9.0]
    assert np.isnan(drawn[2:]).all()


def test_restricted_levels_are_exact():
    given, target = problem(["a"] * 5 + ["b"] * 3 + ["c"] * 2)
    sampler = MarginalSampler().fit(given, target)
    n = 7000
    drawn = draw(sampler, given, n, Within(levels=np.tile([True, False, True], (n, 1))))
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [0.0, 2.0]
    assert stats.chisquare(counts, [5000, 2000]).pvalue > 1e-4
    assert np.isnan(draw(sampler, given, 3, Within(levels=np.zeros((3, 3), dtype=bool)))).all()


def test_levels_and_bounds_restrict_together():
    grades = pd.Categorical(list("abcd") * 5, ordered=True)
    given, target = problem(grades)
    sampler = MarginalSampler().fit(given, target)
    n = 300
    within = Within(low=np.full(n, 1.0), levels=np.tile([True, True, False, True], (n, 1)))
    assert set(draw(sampler, given, n, within)) == {1.0, 3.0}


def test_an_unobserved_level_cannot_be_drawn():
    given, target = problem(pd.Categorical(["a", "c"], categories=["a", "b", "c"]))
    sampler = MarginalSampler().fit(given, target)
    assert np.isnan(draw(sampler, given, 5, Within(levels=np.tile([False, True, False], (5, 1))))).all()


def test_always_missing_column_is_drawn_missing():
    given, target = problem([np.nan, np.nan])
    sampler = MarginalSampler().fit(given, target)
    assert np.isnan(draw(sampler, given, 5)).all()
    assert np.isnan(draw(sampler, given, 5, Within(low=np.zeros(5)))).all()


def test_observed_values_are_supported():
    given, target = problem([1.0, 2.0, np.nan])
    sampler = MarginalSampler().fit(given, target)
    assert sampler.supports(given, np.array([1.0, 1.5, np.nan])).tolist() == [True, False, True]
    given, target = problem([1.0, 2.0])
    sampler.fit(given, target)
    assert sampler.supports(given, np.array([np.nan, 2.0])).tolist() == [False, True]


def test_not_fitted():
    given, _ = problem([1.0])
    with pytest.raises(NotFittedError, match=r"MarginalSampler\(\) is not fitted"):
        draw(MarginalSampler(), given, 1)
    with pytest.raises(NotFittedError, match=r"MarginalSampler\(\) is not fitted"):
        MarginalSampler().supports(given, np.zeros(1))
