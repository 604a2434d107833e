"""Numbers drawn around the predictions of a regressor, compared with known processes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, QuantileRegressor

from mcce.rng import RowStreams
from mcce.samplers import Within
from mcce.table import Table
from tests.marks import nightly
from tests.samplers.estimator.problem import BOOSTING, LEVEL, Known, KnownQuantiles, draw, fit


def test_residuals_recover_a_linear_model(line):
    sampler, given = fit(line, LinearRegression())
    rows = np.arange(0, 3000, 3)
    drawn = sampler.sample(given.take(rows), RowStreams.from_seed(0, rows.size))
    errors = drawn - 2 * line["x"][rows] - 3 * (line["job"][rows] == "cook")
    assert stats.kstest(errors, stats.expon(0, 1).cdf).pvalue > LEVEL
    one = draw(sampler, given, 7, 1000) - 2 * line["x"][7] - 3 * (line["job"][7] == "cook")
    assert stats.kstest(one, stats.expon(0, 1).cdf).pvalue > LEVEL


def test_residuals_are_drawn_equally_often():
    """Five rows have a fold each: the residuals are those of leaving one out, e / (1 - leverage) in a regression."""
    x, y = np.arange(5.0), np.array([0.0, 23.0, 41.0, 67.0, 82.0])  # steep enough that no draw in the middle is outside
    sampler, given = fit(pd.DataFrame({"x": x, "y": y}), LinearRegression())
    slope, intercept = np.polyfit(x, y, 1)
    leverage = 1 / 5 + (x - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()
    expected = np.sort((y - intercept - slope * x) / (1 - leverage)) + intercept + slope * 2.0  # drawn at x = 2
    values, counts = np.unique(draw(sampler, given, 2, 4000), return_counts=True)
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    assert stats.chisquare(counts).pvalue > LEVEL


@pytest.mark.parametrize("n_donors", [1, *nightly(5)])
def test_pmm_draws_the_donors_with_the_nearest_predictions(line, n_donors):
    sampler, given = fit(line, Known((2.0, 3.0)), method="pmm", n_donors=n_donors)
    predicted = (2.0 * line["x"] + 3.0 * (line["job"] == "cook")).to_numpy()
    for row in (0, 10, int(np.argmin(predicted)), int(np.argmax(predicted))):
        nearest = np.argsort(np.abs(predicted - predicted[row]))[:n_donors]
        values, counts = np.unique(draw(sampler, given, row, 1500, seed=row), return_counts=True)
        np.testing.assert_array_equal(values, np.sort(line["y"][nearest]))
        assert n_donors == 1 or stats.chisquare(counts).pvalue > LEVEL
        supported = sampler.supports(given.take(np.full(3000, row)), line["y"].to_numpy())
        donors = np.sort(line["y"].to_numpy()[nearest])
        gap = np.sort(np.diff(donors))[1] if n_donors == 5 else 0.0  # the lower median of four
        close = [donors[0] <= y <= donors[-1] and min(abs(y - donors)) <= gap for y in line["y"]]
        np.testing.assert_array_equal(supported, close)


def test_pmm_recovers_a_linear_model(line):
    sampler, given = fit(line, LinearRegression(), method="pmm")
    rows = np.arange(0, 3000, 3)
    drawn = sampler.sample(given.take(rows), RowStreams.from_seed(0, rows.size))
    errors = drawn - 2 * line["x"][rows] - 3 * (line["job"][rows] == "cook")
    assert stats.kstest(errors, stats.expon(0, 1).cdf).pvalue > LEVEL
    assert np.isin(drawn, line["y"]).all()


def test_pmm_breaks_ties_at_random():
    """With two groups only two predictions occur; all rows of a group are equally near, however few the donors."""
    rng = np.random.default_rng(3)
    g = np.repeat(["f", "m"], 20)
    frame = pd.DataFrame({"g": g, "y": rng.normal(10.0 * (g == "m"), 1.0)})
    sampler, given = fit(frame, LinearRegression(), method="pmm", n_donors=3)
    for row in (0, 39):
        values, counts = np.unique(draw(sampler, given, row, 4000), return_counts=True)
        np.testing.assert_array_equal(values, np.sort(frame["y"][g == g[row]]))
        assert stats.chisquare(counts).pvalue > LEVEL


def test_pmm_shares_the_last_place_among_ties():
    """Donors at predictions 0, 1, 1, 1 and a row at 0: the first has half of two places, the others share the rest."""
    frame = pd.DataFrame({"x": [0.0, 1.0, 1.0, 1.0], "y": [0.0, 0.9, 1.0, 1.1]})
    sampler, given = fit(frame, Known((1.0,)), method="pmm", n_donors=2)
    values, counts = np.unique(draw(sampler, given, 0, 3000), return_counts=True)
    assert values.tolist() == [0.0, 0.9, 1.0, 1.1]
    assert stats.chisquare(counts, [1500, 500, 500, 500]).pvalue > LEVEL


def test_pmm_with_fewer_rows_than_donors_draws_from_all():
    sampler, given = fit(pd.DataFrame({"x": [0.0, 1.0], "y": [4.0, 5.0]}), LinearRegression(), method="pmm")
    assert set(draw(sampler, given, 0, 50)) == {4.0, 5.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(BOOSTING, id="boosting"),
        pytest.param(QuantileRegressor(alpha=0.0), id="linear", marks=pytest.mark.nightly),
    ],
)
def test_quantiles_recover_a_heteroscedastic_model(estimator):
    """y | x is uniform on [x, 3 x]: the spread grows with x, and its quantiles are linear."""
    rng = np.random.default_rng(4)
    x = rng.uniform(1, 3, 1500)
    frame = pd.DataFrame({"x": x, "y": x * (1 + 2 * rng.random(1500))})
    sampler, given = fit(frame, estimator, method="quantiles", n_quantiles=9)
    assert len(sampler.estimators_) == 9
    for rows in (np.flatnonzero(x < 1.5)[:300], np.flatnonzero(x > 2.5)[:300]):
        drawn = (sampler.sample(given.take(rows), RowStreams.from_seed(0, 300)) / x[rows] - 1) / 2
        assert stats.kstest(drawn, stats.uniform(0, 1).cdf).statistic < 0.1  # the training data have 0.04
        inner = drawn[(drawn > 0.1) & (drawn < 0.9)]
        assert stats.kstest(inner, stats.uniform(0.1, 0.8).cdf).pvalue > LEVEL
        assert inner.size / 300 == pytest.approx(0.8, abs=0.1)


@pytest.fixture
def atom():
    """Half of the mass at 2, where all three quantiles are; beyond it each of 0, 1, 3, 4 has an eighth."""
    return fit(
        pd.DataFrame({"x": np.zeros(5), "y": np.arange(5.0)}), KnownQuantiles(), method="quantiles", n_quantiles=3
    )


ATOM = np.array([0.125, 0.125, 0.5, 0.125, 0.125])


@pytest.mark.parametrize(
    ("low", "high"), [(-np.inf, np.inf), (1.0, 3.0), (2.0, 3.0), (1.0, 2.0), (2.0, 2.0), (2.5, np.inf), (-np.inf, 1.5)]
)
def test_restricted_quantile_draws_are_exact(atom, low, high):
    sampler, given = atom
    n = 2000
    drawn = draw(sampler, given, 0, n, Within(low=np.full(n, low), high=np.full(n, high)))
    mass = np.where((np.arange(5) >= low) & (np.arange(5) <= high), ATOM, 0.0)
    counts = np.array([(drawn == value).sum() for value in range(5)])
    assert counts.sum() == n
    assert counts[mass == 0].sum() == 0
    assert (mass > 0).sum() == 1 or stats.chisquare(counts[mass > 0], n * mass[mass > 0] / mass.sum()).pvalue > LEVEL


def test_quantile_function_is_linear_between_its_knots():
    """Nine levels of the same table: 0.8, 1.6, 2 (five times), 2.4, 3.2; beyond, exceedances in spreads of 2.4.

    The training values 0 and 3.9 lie 0.8 and 0.7 beyond the outer predictions; each is the only one of its tail.
    """
    frame = pd.DataFrame({"x": np.zeros(4), "y": [0.0, 1.0, 3.0, 3.9]})
    sampler, given = fit(frame, KnownQuantiles(), method="quantiles", n_quantiles=9)
    drawn = draw(sampler, given, 0, 8000)
    parts = [(0.0, 0.0), (0.8, 1.6), (1.6, 2.0), (2.0, 2.0), (2.0, 2.4), (2.4, 3.2), (3.9, 3.9)]
    mass = np.array([0.1, 0.1, 0.1, 0.4, 0.1, 0.1, 0.1])
    inside = [np.isclose(drawn, a) if a == b else (drawn > a + 1e-9) & (drawn < b - 1e-9) for a, b in parts]
    assert stats.chisquare([part.sum() for part in inside], 8000 * mass).pvalue > LEVEL
    for part, (a, b) in zip(inside, parts):
        assert a == b or stats.kstest(drawn[part], stats.uniform(a, b - a).cdf).pvalue > LEVEL
    for low, high in ((1.0, 3.0), (-1.0, 1.2), (2.2, 5.0), (2.0, 2.1), (0.5, 0.81)):
        n = 2000
        restricted = draw(sampler, given, 0, n, Within(low=np.full(n, low), high=np.full(n, high)), seed=1)
        assert ((restricted >= low) & (restricted <= high)).all()
        allowed = drawn[(drawn >= low) & (drawn <= high)]
        assert stats.ks_2samp(restricted, allowed).pvalue > LEVEL


def test_quantile_draws_outside_the_support_are_missing(atom):
    sampler, given = atom
    low, high = np.array([5.0, -9.0, 3.0, 1.5]), np.array([9.0, -1.0, 2.0, 1.6])
    assert np.isnan(draw(sampler, given, 0, 4, Within(low=low, high=high))).all()
    rows = given.take(np.zeros(4, dtype=int))
    assert sampler.supports(rows, np.array([-0.1, 0.0, 4.0, 4.1])).tolist() == [False, True, True, False]


def test_value_at_an_outer_quantile_keeps_its_weight():
    """Of 40 values 36 are 2, and so are all quantiles; 0 and 4 are drawn as often as they occur."""
    frame = pd.DataFrame({"x": np.zeros(40), "y": np.r_[np.full(2, 0.0), np.full(36, 2.0), np.full(2, 4.0)]})
    sampler, given = fit(frame, KnownQuantiles(), method="quantiles", n_quantiles=3)
    counts = [(draw(sampler, given, 0, 4000) == value).sum() for value in (0.0, 2.0, 4.0)]
    assert stats.chisquare(counts, [200, 3600, 200]).pvalue > LEVEL


PROCESSES = {  # value and quantile function given x, and the tolerated relative error of the mean
    "lognormal": (lambda x, u: np.exp(x + stats.norm.ppf(u)), 0.05),
    "normal": (lambda x, u: 5 + x + stats.norm.ppf(u), 0.02),
    "uniform": (lambda x, u: (1 + x) * u, 0.02),
}


@pytest.mark.nightly
@pytest.mark.parametrize("process", ["lognormal", "normal", "uniform"])
def test_quantiles_have_the_right_tails(process):
    """Regression: tails ran to the observed extremes: a mean 48 % too high, 3 % of draws above the 99.9 % quantile."""
    quantile, tolerance = PROCESSES[process]
    rng = np.random.default_rng(7)
    x = rng.uniform(0, 2, 2000)
    frame = pd.DataFrame({"x": x, "y": quantile(x, rng.random(2000))})
    sampler, given = fit(frame, BOOSTING, method="quantiles")
    rows = np.repeat(np.arange(2000), 10)
    drawn = sampler.sample(given.take(rows), RowStreams.from_seed(0, rows.size))
    assert drawn.mean() == pytest.approx(frame["y"].mean(), rel=tolerance)
    assert drawn.std() == pytest.approx(frame["y"].std(), rel=0.1)
    for level in (0.9, 0.95, 0.99):
        assert (drawn > quantile(x[rows], level)).mean() == pytest.approx(1 - level, abs=0.02)
        assert (drawn < quantile(x[rows], 1 - level)).mean() == pytest.approx(1 - level, abs=0.02)
    assert (drawn > quantile(x[rows], 0.999)).mean() < 0.01 + 0.02 * (
        process == "uniform"
    )  # bounded: every error is beyond
    assert drawn.min() >= frame["y"].min()
    assert drawn.max() <= frame["y"].max()
    assert sampler.supports(given.take(rows), drawn).all()


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.35, *nightly(0.1)])
def test_quantiles_keep_frequent_zeros(share):
    """Predictions near a point mass are rarely equal to it: 6 to 10 per cent of the zeros became small numbers."""
    rng = np.random.default_rng(7)
    x = rng.uniform(0, 2, 1000)
    y = np.where(rng.random(1000) < share * x, 0.0, np.exp(x + 0.5 * rng.normal(size=1000)))
    quick = HistGradientBoostingRegressor(loss="quantile", max_iter=15, min_samples_leaf=50, learning_rate=0.3)
    sampler, given = fit(pd.DataFrame({"x": x, "y": y}), quick, method="quantiles", n_quantiles=9)
    new = rng.uniform(0, 2, 4000)
    rows = Table(given.features, new[:, None])
    drawn = sampler.sample(rows, RowStreams.from_seed(0, 4000))
    for part in (new < 1, new >= 1):
        assert (drawn[part] == 0.0).mean() == pytest.approx(share * new[part].mean(), abs=0.07)  # errors were 0.22
    assert (drawn == 0.0).mean() == pytest.approx(share, abs=0.03)
    small = (drawn > 0) & (drawn < np.exp(new - 3 * 0.5))
    assert small.mean() < 0.05
    assert sampler.supports(rows, drawn).all()
    zeros = np.zeros(4000)
    again = sampler.sample(rows, RowStreams.from_seed(1, 4000), Within(low=zeros, high=zeros))
    assert (again[drawn == 0.0] == 0.0).all()
    positive = sampler.sample(rows, RowStreams.from_seed(1, 4000), Within(low=np.full(4000, 1e-9)))
    assert np.nanmin(positive) > 0.0


@pytest.mark.slow
def test_quantiles_far_outside_the_data_are_the_observed_extremes():
    rng = np.random.default_rng(8)
    x = rng.uniform(0, 1, 200)
    y = x + rng.normal(size=200)
    sampler, given = fit(pd.DataFrame({"x": x, "y": y}), QuantileRegressor(alpha=0.0), method="quantiles")
    far = Table(given.features, np.full((50, 1), 1e6))
    drawn = sampler.sample(far, RowStreams.from_seed(0, 50))
    assert np.isfinite(drawn).all()
    assert np.median(drawn) == y.max()


@pytest.mark.parametrize("method", ["residuals", "pmm"])
def test_restricted_numbers_are_exact(line, method):
    small = line.iloc[:40]
    sampler, given = fit(small, LinearRegression(), method=method, n_donors=40)
    free = np.unique(draw(sampler, given, 3, 4000))
    assert free.size == 40
    n = 3000
    low, high = free[10], free[25]
    values, counts = np.unique(
        draw(sampler, given, 3, n, Within(low=np.full(n, low), high=np.full(n, high))), return_counts=True
    )
    np.testing.assert_allclose(values, free[10:26], rtol=1e-12)
    assert stats.chisquare(counts).pvalue > LEVEL
    nothing = Within(low=np.array([free[-1] + 1, -np.inf, 5.0]), high=np.array([np.inf, free[0] - 1, 4.0]))
    assert np.isnan(draw(sampler, given, 3, 3, nothing)).all()


@pytest.mark.parametrize("method", ["residuals", *nightly("pmm")])
def test_drawn_value_can_be_drawn_again(line, method):
    """The narrowest restriction: prediction + residual must not be lost to rounding."""
    sampler, given = fit(line, LinearRegression(), method=method)
    drawn = sampler.sample(given, RowStreams.from_seed(0, 3000))
    again = sampler.sample(given, RowStreams.from_seed(1, 3000), Within(low=drawn, high=drawn))
    np.testing.assert_array_equal(again, drawn)
    assert sampler.supports(given, drawn).all()


def test_residuals_support_their_range():
    frame = pd.DataFrame({"x": [0.0, 0.0, 1.0, 1.0, -1.0], "y": [-1.0, 1.0, 8.0, 12.0, -10.0]})
    sampler, given = fit(frame, Known((10.0,)))
    rows = given.take(np.array([0, 0, 0, 0, 2, 2, 2]))
    values = np.array([-2.1, -1.9, 1.9, 2.1, 7.9, 8.1, np.nan])
    assert sampler.supports(rows, values).tolist() == [False, True, True, False, False, True, False]
    ends = given.take(np.array([4, 4, 2, 2]))  # draws beyond the training values are clipped to their range
    assert sampler.supports(ends, np.array([-10.0, -10.1, 12.0, 12.1])).tolist() == [True, False, True, False]
    assert draw(sampler, given, 4, 200).min() == -10.0
