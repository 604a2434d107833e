"""Point masses, kernel estimate and normal scores of a column."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.samplers import Margin
from mcce.table import Schema


def column_of(values):
    frame = pd.DataFrame({"x": values})
    return Schema.from_data(frame).encode(frame).column(0)


def margin_of(values):
    column = column_of(values)
    return Margin.fit(column.values, column.feature)


def skewed_with_zeros(n=4_000, seed=1):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.3, 0.0, rng.lognormal(1.0, 0.8, n))


def test_point_masses_are_one_per_cent_and_two_rows():
    values = np.concatenate([np.zeros(10), np.full(9, 1.5), np.random.default_rng(1).normal(size=981)])
    margin = margin_of(values)
    assert margin.atoms.tolist() == [0.0]
    assert margin.shares.tolist() == [0.01]
    assert margin.has_mass(np.array([0.0, 1.5, 2.0, np.nan])).tolist() == [True, False, False, True]


def test_few_repeated_numbers_all_have_point_mass():
    margin = margin_of(np.random.default_rng(1).poisson(3.0, 1_000))
    assert margin.is_counting
    assert margin.shares.sum() == pytest.approx(1.0)
    assert margin.has_mass(np.array([99.0])).all()
    assert margin.log_density(np.array([99.0]))[0] == -np.inf


def test_levels_and_missing_values_are_counted():
    margin = margin_of(pd.Categorical(["a", "b", "b", None], categories=["a", "b", "c"]))
    assert np.exp(margin.log_density(np.array([0.0, 1.0, 2.0, np.nan]))) == pytest.approx([0.25, 0.5, 0.0, 0.25])
    assert margin.ppf(np.array([0.2, 1 / 3, 0.34, 1.0])).tolist() == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("values", [skewed_with_zeros(), np.random.default_rng(3).normal(5.0, 2.0, 900)])
def test_density_is_that_of_the_distribution_function(values):
    margin = margin_of(values)
    x = np.linspace(margin.rest[0] - 1.0, margin.rest[-1] + 1.0, 100_001)
    x = x[~margin.is_atom(x)]
    jumps = np.array([margin.shares[margin.atoms < end].sum() for end in x[[0, -1]]])
    area = np.concatenate([[0.0], np.cumsum(0.5 * (margin.density(x)[1:] + margin.density(x)[:-1]) * np.diff(x))])
    passed = np.searchsorted(margin.atoms, x)
    assert margin.cdf(x) == pytest.approx(
        area + np.append(0.0, np.cumsum(margin.shares))[passed] + margin.cdf(x)[0], abs=2e-3
    )
    assert area[-1] + np.diff(jumps)[0] == pytest.approx(1.0, abs=3e-3)
    assert margin.cdf(np.array([-1e9, 1e9])) == pytest.approx([0.0, 1.0])


def test_density_estimates_the_truth():
    sample = np.random.default_rng(4).gamma(3.0, 2.0, 5_000)
    margin, fresh = margin_of(sample), np.random.default_rng(5).gamma(3.0, 2.0, 5_000)
    truth = stats.gamma(3.0, scale=2.0).logpdf(fresh)
    assert np.isfinite(margin.log_density(fresh)).all()  # also beyond the training values
    assert 0.0 < (truth - margin.log_density(fresh)).mean() < 0.02


def test_quantiles_invert_the_distribution_function_inside_the_observed_range():
    values = skewed_with_zeros()
    margin = margin_of(values)
    assert margin.ppf(margin.cdf(values)) == pytest.approx(values, abs=1e-9)
    u = np.linspace(0.0, 1.0, 1_001)
    drawn = margin.ppf(u)
    assert (np.diff(drawn) >= 0.0).all()
    assert drawn[0] == 0.0
    assert drawn[-1] == values.max()
    assert (drawn == 0.0).mean() == pytest.approx((values == 0.0).mean(), abs=0.002)


def test_normal_scores_are_standard_normal_and_return():
    values = skewed_with_zeros()
    margin = margin_of(values)
    scores = margin.to_normal(values)
    low, high = margin.interval(np.zeros(1))
    assert low[0] == -np.inf
    assert stats.norm.cdf(high[0]) == pytest.approx((values == 0.0).mean(), abs=1e-9)
    inside = stats.truncnorm(-np.inf, high[0]).mean()  # the mean of a standard normal inside the interval
    assert scores[values == 0.0] == pytest.approx(inside)
    known = stats.norm.ppf(stats.rankdata(values)[values > 0.0] / (values.size + 1))
    assert np.abs(scores[values > 0.0] - known).mean() < 0.03
    assert margin.from_normal(scores) == pytest.approx(values, abs=1e-9)
    assert np.isnan(margin.to_normal(np.array([np.nan])))


def test_a_part_of_a_column_gets_its_base_measure():
    values = skewed_with_zeros()
    column = margin_of(values)
    part = Margin.fit(values[values > 0.0], column_of(values).feature).with_atoms_of(column)
    assert part.atoms.tolist() == [0.0]
    assert part.density(np.array([0.0, 2.0])) == pytest.approx(
        [0.0, column.density(np.array([2.0]))[0] / 0.7], rel=0.05
    )
    assert column.with_atoms_of(column) is column


@pytest.mark.parametrize("values", [[2.5], [2.5, 2.5, 2.5], [1.0, 1.5], [0.0, 0.0, 3.25], [1e100, -1e100, 5.0]])
def test_tiny_columns(values):
    margin = margin_of(np.array(values))
    y = np.array(values)
    assert np.isfinite(margin.log_density(y)).all()
    assert margin.ppf(margin.cdf(y)) == pytest.approx(y, rel=1e-6)
    assert np.isfinite(margin.to_normal(y)).all()


def test_a_column_without_known_values():
    margin = Margin.fit(np.array([np.nan, np.nan]), column_of([1.0]).feature)
    assert margin.log_density(np.array([np.nan, 1.0])).tolist() == [0.0, -np.inf]
    assert np.isnan(margin.ppf(np.array([0.5]))).all()
