from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from mcce import ChainModel, EstimatorSampler, InputError, NotFittedError, SamplerError
from mcce.rng import RowStreams
from mcce.samplers import Within
from mcce.table import Schema, Table
from mcce.testing import check_sampler

LEVEL = 1e-4
BOOSTING = HistGradientBoostingRegressor(loss="quantile", max_iter=20, min_samples_leaf=50, learning_rate=0.5)


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


class Levels(EstimatorSampler):
    """For check_sampler, which fits a target of each kind that a sampler handles."""

    handles = frozenset({"categorical", "ordered"})


class Numbers(EstimatorSampler):
    handles = frozenset({"numeric"})


def fit(frame, estimator, target="y", **parameters):
    """Return the fitted sampler of `target` and the table of the other columns."""
    frame = frame[[name for name in frame if name != target] + [target]]
    table = Schema.from_data(frame).encode(frame)
    last = len(table.features) - 1
    return EstimatorSampler(estimator, **parameters).fit(table.first(last), table.column(last)), table.first(last)


def draw(sampler, given, row, n, within=None, seed=0):
    """Draw n times at one training row."""
    return sampler.sample(given.take(np.full(n, row)), RowStreams.from_seed(seed, n), within)


@pytest.mark.parametrize(
    "sampler",
    [
        Levels(make_pipeline(StandardScaler(), LogisticRegression(max_iter=3000))),
        Levels(DecisionTreeClassifier(min_samples_leaf=30, random_state=0)),
        Numbers(LinearRegression()),
        Numbers(LinearRegression(), method="pmm"),
        Numbers(DecisionTreeRegressor(min_samples_leaf=30, random_state=0), method="pmm", n_donors=30),
        Numbers(RandomForestRegressor(n_estimators=5, min_samples_leaf=30)),
        Numbers(BOOSTING, method="quantiles", n_quantiles=4),
    ],
    ids=["logistic", "tree", "residuals", "pmm", "pmm-tree", "forest without a seed", "quantiles"],
)
def test_the_contract_is_kept(sampler):
    check_sampler(sampler)


# ---- classifiers


@pytest.fixture(scope="module")
def grades():
    """Three levels given a number, three unordered jobs and three ordered grades."""
    rng = np.random.default_rng(1)
    n = 900
    x = rng.normal(size=n)
    job = rng.integers(0, 3, n)
    size = rng.integers(0, 3, n)
    latent = x + np.array([0.0, 2.0, -1.0])[job] + 0.5 * size + rng.logistic(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "job": np.array(["clerk", "cook", "pilot"])[job],
            "size": pd.Categorical(np.array(list("sml"))[size], ["s", "m", "l"], ordered=True),
            "y": pd.Categorical(np.array(["a", "b", "c"])[np.digitize(latent, [-0.5, 1.5])], list("abc")),
        }
    )


@pytest.mark.parametrize("ordered", [False, True])
def test_levels_are_drawn_with_the_predicted_probabilities(grades, ordered):
    frame = grades.assign(y=grades["y"].cat.as_ordered()) if ordered else grades
    estimator = LogisticRegression(max_iter=3000)
    sampler, given = fit(frame, estimator)
    # the same design by pandas: 0/1 columns for the jobs, codes for the ordered sizes
    dummies = pd.get_dummies(grades["job"]).to_numpy(float)
    design = np.column_stack([grades["x"], dummies, grades["size"].cat.codes])
    truth = LogisticRegression(max_iter=3000).fit(design, grades["y"].cat.codes).predict_proba(design)
    n = 4000
    for row in (0, 1, 2):
        counts = np.bincount(draw(sampler, given, row, n, seed=row).astype(int), minlength=3)
        assert stats.chisquare(counts, n * truth[row]).pvalue > LEVEL
    density = np.array([sampler.log_density(given, np.full(900, float(level))) for level in range(3)])
    np.testing.assert_allclose(np.exp(density).T, truth, rtol=1e-9)


def test_relabelled_givens_change_nothing(grades):
    """Unordered levels enter as 0/1 columns, so their codes do not matter."""
    renamed = grades.assign(job=grades["job"].map({"clerk": "z", "cook": "y", "pilot": "x"}))
    one, given = fit(grades, LogisticRegression(max_iter=3000))
    other, renamed_given = fit(renamed, LogisticRegression(max_iter=3000))
    values = np.zeros(900)
    np.testing.assert_allclose(
        one.log_density(given, values), other.log_density(renamed_given, values), rtol=1e-3, atol=1e-4
    )


def test_a_level_that_was_never_seen_has_no_probability(grades):
    y = grades["y"].cat.rename_categories({"b": "q"}).cat.set_categories(["a", "never", "q", "c", "nor this"])
    sampler, given = fit(grades.assign(y=y), LogisticRegression(max_iter=3000))
    drawn = np.concatenate([draw(sampler, given, row, 300) for row in range(3)])
    assert set(drawn) == {0.0, 2.0, 3.0}
    rows = given.take(np.zeros(6, dtype=int))
    values = np.array([0.0, 1.0, 2.0, 3.0, 4.0, np.nan])
    assert sampler.supports(rows, values).tolist() == [True, False, True, True, False, False]
    density = sampler.log_density(rows, values)
    assert np.isneginf(density).tolist() == [False, True, False, False, True, True]
    assert np.exp(density).sum() == pytest.approx(1.0, abs=1e-12)


def test_a_single_level_needs_no_classifier():
    """LogisticRegression itself refuses one class."""
    y = pd.Categorical(["b"] * 20, ["a", "b"])
    sampler, given = fit(pd.DataFrame({"x": np.arange(20.0), "y": y}), LogisticRegression())
    assert (draw(sampler, given, 0, 10) == 1.0).all()
    assert sampler.log_density(given.take(np.arange(2)), np.array([0.0, 1.0])).tolist() == [-np.inf, 0.0]
    allowed = Within(levels=np.array([[True, True], [True, False]]))
    np.testing.assert_array_equal(draw(sampler, given, 0, 2, allowed), [1.0, np.nan])


def test_restricted_levels_follow_their_probabilities(grades):
    frame = grades.assign(y=grades["y"].cat.as_ordered())
    sampler, given = fit(frame, GaussianNB())
    p = np.exp([sampler.log_density(given.take(np.array([4])), np.array([float(level)]))[0] for level in range(3)])
    n = 4000
    for within, allowed in (
        (Within(levels=np.tile([True, False, True], (n, 1))), [0, 2]),
        (Within(low=np.full(n, 1.0)), [1, 2]),
        (Within(high=np.full(n, 1.0), levels=np.tile([True, True, False], (n, 1))), [0, 1]),
    ):
        values, counts = np.unique(draw(sampler, given, 4, n, within), return_counts=True)
        assert values.tolist() == allowed
        assert stats.chisquare(counts, n * p[allowed] / p[allowed].sum()).pvalue > LEVEL
    assert np.isnan(draw(sampler, given, 4, 2, Within(low=np.full(2, 2.5)))).all()


# ---- regressors


@pytest.fixture(scope="module")
def line():
    """y = 2 x + 3 [job = cook] + exponential noise."""
    rng = np.random.default_rng(2)
    n = 3000
    x = rng.uniform(0, 10, n)
    cook = rng.random(n) < 0.5
    noise = rng.exponential(1.0, n)
    return pd.DataFrame({"x": x, "job": np.where(cook, "cook", "clerk"), "y": 2 * x + 3 * cook + noise})


def test_residuals_recover_a_linear_model(line):
    sampler, given = fit(line, LinearRegression())
    rows = np.arange(0, 3000, 3)
    drawn = sampler.sample(given.take(rows), RowStreams.from_seed(0, rows.size))
    errors = drawn - 2 * line["x"][rows] - 3 * (line["job"][rows] == "cook")
    assert stats.kstest(errors, stats.expon(0, 1).cdf).pvalue > LEVEL
    one = draw(sampler, given, 7, 1000) - 2 * line["x"][7] - 3 * (line["job"][7] == "cook")
    assert stats.kstest(one, stats.expon(0, 1).cdf).pvalue > LEVEL


def test_each_residual_is_drawn_as_often():
    """Five rows have a fold each: the residuals are those of leaving one out, e / (1 - leverage) in a regression."""
    x, y = np.arange(5.0), np.array([0.0, 3.0, 1.0, 7.0, 2.0])
    sampler, given = fit(pd.DataFrame({"x": x, "y": y}), LinearRegression())
    slope, intercept = np.polyfit(x, y, 1)
    leverage = 1 / 5 + (x - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()
    expected = np.sort((y - intercept - slope * x) / (1 - leverage)) + intercept + slope * 1.0  # drawn at x = 1
    values, counts = np.unique(draw(sampler, given, 1, 4000), return_counts=True)
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    assert stats.chisquare(counts).pvalue > LEVEL


class Known(RegressorMixin, BaseEstimator):
    """A regressor that needs no training: its predictions are the same for all folds."""

    def __init__(self, slopes):
        self.slopes = slopes

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X @ np.array(self.slopes)


@pytest.mark.parametrize("n_donors", [1, 5])
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


def test_pmm_shares_the_last_place_among_the_tied():
    """Donors at predictions 0, 1, 1, 1 and a row at 0: the first has half of two places, the others share the rest."""
    frame = pd.DataFrame({"x": [0.0, 1.0, 1.0, 1.0], "y": [0.0, 0.9, 1.0, 1.1]})
    sampler, given = fit(frame, Known((1.0,)), method="pmm", n_donors=2)
    values, counts = np.unique(draw(sampler, given, 0, 3000), return_counts=True)
    assert values.tolist() == [0.0, 0.9, 1.0, 1.1]
    assert stats.chisquare(counts, [1500, 500, 500, 500]).pvalue > LEVEL


def test_pmm_with_fewer_rows_than_donors_draws_from_all():
    sampler, given = fit(pd.DataFrame({"x": [0.0, 1.0], "y": [4.0, 5.0]}), LinearRegression(), method="pmm")
    assert set(draw(sampler, given, 0, 50)) == {4.0, 5.0}


@pytest.mark.parametrize("estimator", [BOOSTING, QuantileRegressor(alpha=0.0)], ids=["boosting", "linear"])
def test_quantiles_recover_a_heteroscedastic_model(estimator):
    """y | x is uniform on [x, 3 x]: the spread grows with x, and its quantiles are linear."""
    rng = np.random.default_rng(4)
    x = rng.uniform(1, 3, 1500)
    frame = pd.DataFrame({"x": x, "y": x * (1 + 2 * rng.random(1500))})
    sampler, given = fit(frame, estimator, method="quantiles", n_quantiles=9)
    assert len(sampler.estimators_) == 9
    for rows in (np.flatnonzero(x < 1.5)[:300], np.flatnonzero(x > 2.5)[:300]):
        drawn = (sampler.sample(given.take(rows), RowStreams.from_seed(0, 300)) / x[rows] - 1) / 2
        assert stats.kstest(drawn, stats.uniform(0, 1).cdf).statistic < 0.1  # of which the training data have 0.04
        inner = drawn[(drawn > 0.1) & (drawn < 0.9)]
        assert stats.kstest(inner, stats.uniform(0.1, 0.8).cdf).pvalue > LEVEL
        assert inner.size / 300 == pytest.approx(0.8, abs=0.1)


class KnownQuantiles(RegressorMixin, BaseEstimator):
    """A regressor whose quantile is a function of the level: a table with an atom of mass 0.5 at 2."""

    def __init__(self, quantile=0.5):
        self.quantile = quantile

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), np.interp(self.quantile, [0.0, 0.25, 0.75, 1.0], [0.0, 2.0, 2.0, 4.0]))


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


def test_the_quantile_function_is_straight_between_its_knots():
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


def test_quantile_draws_where_there_is_no_mass_are_missing(atom):
    sampler, given = atom
    low, high = np.array([5.0, -9.0, 3.0, 1.5]), np.array([9.0, -1.0, 2.0, 1.6])
    assert np.isnan(draw(sampler, given, 0, 4, Within(low=low, high=high))).all()
    rows = given.take(np.zeros(4, dtype=int))
    assert sampler.supports(rows, np.array([-0.1, 0.0, 4.0, 4.1])).tolist() == [False, True, True, False]


def test_a_value_at_an_outer_quantile_keeps_its_weight():
    """Of 40 values 36 are 2, and so are all quantiles; 0 and 4 are drawn as often as they occur, not in half of all."""
    frame = pd.DataFrame({"x": np.zeros(40), "y": np.r_[np.full(2, 0.0), np.full(36, 2.0), np.full(2, 4.0)]})
    sampler, given = fit(frame, KnownQuantiles(), method="quantiles", n_quantiles=3)
    counts = [(draw(sampler, given, 0, 4000) == value).sum() for value in (0.0, 2.0, 4.0)]
    assert stats.chisquare(counts, [200, 3600, 200]).pvalue > LEVEL


PROCESSES = {  # value and quantile function given x, and the share by which the mean may be off
    "lognormal": (lambda x, u: np.exp(x + stats.norm.ppf(u)), 0.05),
    "normal": (lambda x, u: 5 + x + stats.norm.ppf(u), 0.02),
    "uniform": (lambda x, u: (1 + x) * u, 0.02),
}


@pytest.mark.parametrize("process", PROCESSES)
def test_quantiles_have_the_right_tails(process):
    """The tails once ran to the observed extremes: a mean 48 % too high, 3 % of draws above the 99.9 % quantile."""
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
    )  # bounded: any error is beyond
    assert drawn.min() >= frame["y"].min()
    assert drawn.max() <= frame["y"].max()
    assert sampler.supports(given.take(rows), drawn).all()


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


@pytest.mark.parametrize("method", ["residuals", "pmm"])
def test_a_value_that_was_drawn_can_be_drawn_again(line, method):
    """The narrowest restriction: prediction + residual must not be lost to rounding."""
    sampler, given = fit(line, LinearRegression(), method=method)
    drawn = sampler.sample(given, RowStreams.from_seed(0, 3000))
    again = sampler.sample(given, RowStreams.from_seed(1, 3000), Within(low=drawn, high=drawn))
    np.testing.assert_array_equal(again, drawn)
    assert sampler.supports(given, drawn).all()


def test_residuals_support_the_range_that_they_reach():
    frame = pd.DataFrame({"x": [0.0, 0.0, 1.0, 1.0], "y": [-1.0, 1.0, 8.0, 12.0]})
    sampler, given = fit(frame, Known((10.0,)))
    rows = given.take(np.array([0, 0, 0, 0, 2, 2, 2]))
    values = np.array([-2.1, -1.9, 1.9, 2.1, 7.9, 8.1, np.nan])
    assert sampler.supports(rows, values).tolist() == [False, True, True, False, False, True, False]


# ---- predictions that a fit has not seen


def noisy_line(n=1500, seed=5):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, n)
    return pd.DataFrame({"x": x, "y": 3 * x + rng.normal(0, 2, n)})


ESTIMATORS = {
    "forest": RandomForestRegressor(n_estimators=30),
    "forest of large leaves": RandomForestRegressor(n_estimators=30, min_samples_leaf=20),
    "tree": DecisionTreeRegressor(),
    "tree of large leaves": DecisionTreeRegressor(min_samples_leaf=20),
    "neighbours": KNeighborsRegressor(20),
    "line": LinearRegression(),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_residuals_are_as_wide_as_the_errors_on_new_rows(name):
    """Truth: how far fresh rows are from the fit. Fits in-sample drew 0.9 (forest) and 0.0 (tree) for a sd of 2."""
    frame, fresh = noisy_line(), noisy_line(seed=6)
    sampler, given = fit(frame, ESTIMATORS[name])
    errors = fresh["y"] - sampler.estimators_[0].predict(fresh[["x"]].to_numpy())
    spread = draw(sampler, given, 0, 4000).std()
    assert spread == pytest.approx(errors.std(), rel=0.08)
    if name not in ("forest", "tree"):  # these follow the noise, and their own variance comes on top of it
        assert spread == pytest.approx(2.0, rel=0.1)
    assert 1.8 < spread < 2 * np.sqrt(2) * 1.08


@pytest.mark.parametrize("name", ESTIMATORS)
def test_pmm_is_as_wide_as_the_noise(name):
    frame = noisy_line()
    sampler, given = fit(frame, ESTIMATORS[name], method="pmm")
    errors = sampler.sample(given, RowStreams.from_seed(0, 1500)) - 3 * frame["x"]
    assert errors.mean() == pytest.approx(0.0, abs=0.25)
    # the predictions of a fully grown tree have the variance of the noise: at most twice that is drawn
    assert errors.std() == pytest.approx(2.0, rel=0.1) or (name in ("forest", "tree") and 2 < errors.std() < 2.9)


def test_a_spread_that_changes_is_followed_by_pmm_and_not_by_residuals():
    """sd = x: residuals are the same for all rows, by definition; donors are near in prediction, so in spread."""
    rng = np.random.default_rng(9)
    x = rng.uniform(1, 5, 3000)
    frame = pd.DataFrame({"x": x, "y": 10 * x + x * rng.normal(size=3000)})
    for method, spreads in (
        ("pmm", (1.5, 4.5)),
        ("residuals", (3.21, 3.21)),
    ):  # 3.21: the root of the mean of x squared
        sampler, given = fit(frame, RandomForestRegressor(n_estimators=30, min_samples_leaf=20), method=method)
        for middle, expected in zip((1.5, 4.5), spreads):
            rows = np.flatnonzero(np.abs(x - middle) < 0.3)
            drawn = sampler.sample(given.take(rows), RowStreams.from_seed(0, rows.size)) - 10 * x[rows]
            assert drawn.std() == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("method", ["residuals", "pmm", "quantiles"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_are_enough(method, n):
    estimator = KnownQuantiles() if method == "quantiles" else LinearRegression()
    frame = pd.DataFrame({"x": np.arange(n) * 1.0, "y": np.array([4.0, 5.0, 7.0])[:n]})
    sampler, given = fit(frame, estimator, method=method)
    drawn = draw(sampler, given, 0, 100)
    assert np.isfinite(drawn).all()
    assert n > 1 or (drawn == 4.0).all()
    if method == "pmm":
        assert set(drawn) == set(frame["y"])


def test_an_estimator_that_needs_more_rows_than_a_fold_leaves_is_refused():
    frame = pd.DataFrame({"x": np.arange(5.0), "y": np.arange(5.0)})
    message = r"KNeighborsRegressor\(\) could not be fitted on 4 of the 5 rows to predict the others: .*Give more rows"
    with pytest.raises(SamplerError, match=message):
        fit(frame, KNeighborsRegressor(5))


@pytest.mark.parametrize("method", ["residuals", "pmm"])
@pytest.mark.parametrize(
    "estimator",
    [RandomForestRegressor(n_estimators=3), make_pipeline(StandardScaler(), RandomForestRegressor(n_estimators=3))],
    ids=["forest", "pipeline"],
)
def test_a_forest_without_a_seed_is_the_same_every_time(estimator, method):
    frame = noisy_line(100)
    (one, given), (two, _) = fit(frame, estimator, method=method), fit(frame, estimator, method=method)
    np.testing.assert_array_equal(draw(one, given, 0, 50), draw(two, given, 0, 50))
    other, _ = fit(frame, estimator, method=method, random_state=1)
    assert not np.array_equal(draw(one, given, 0, 50), draw(other, given, 0, 50))
    assert RandomForestRegressor().random_state is None


def test_a_classifier_without_a_seed_is_the_same_every_time(grades):
    (one, given), (two, _) = (fit(grades, RandomForestClassifier(n_estimators=3)) for _ in range(2))
    np.testing.assert_array_equal(one.log_density(given, np.zeros(900)), two.log_density(given, np.zeros(900)))


def test_a_seed_that_is_set_stays():
    frame = noisy_line(60)
    nested = make_pipeline(StandardScaler(), RandomForestRegressor(n_estimators=2, random_state=5))
    sampler, _ = fit(frame, nested)
    assert sampler.estimators_[0].get_params()["randomforestregressor__random_state"] == 5
    assert isinstance(fit(frame, RandomForestRegressor(n_estimators=2))[0].estimators_[0].random_state, int)


def test_a_far_row_has_the_donors_of_that_end(line):
    """A prediction of 2e18 is equally far from all donors in floating point; the nearest are still the last ones."""
    sampler, given = fit(line, Known((2.0, 3.0)), method="pmm", n_donors=5)
    predicted = (2 * line["x"] + 3 * (line["job"] == "cook")).to_numpy()
    for x, last in ((1e18, np.argsort(predicted)[-5:]), (-1e18, np.argsort(predicted)[:5])):
        far = Table(given.features, np.column_stack([np.full(300, x), np.zeros(300)]))
        assert set(sampler.sample(far, RowStreams.from_seed(0, 300))) == set(line["y"][last])
        bounds = Within(low=np.full(300, 9.0), high=np.full(300, 12.0))
        allowed = np.flatnonzero(line["y"].between(9.0, 12.0))
        nearest = allowed[np.argsort(np.abs(predicted[allowed] - np.clip(x, -1e6, 1e6)))[:5]]
        assert set(sampler.sample(far, RowStreams.from_seed(0, 300), bounds)) == set(line["y"][nearest])


# ---- refusals


@pytest.mark.parametrize(
    ("y", "estimator", "message"),
    [
        (["a", "b"] * 10, LinearRegression(), "cannot model 'y': it is categorical, which needs a classifier"),
        (np.arange(20.0), LogisticRegression(), "cannot model 'y': it is numeric, which needs a regressor"),
        (np.arange(20.0), StandardScaler(), "cannot model 'y': it is numeric, which needs a regressor"),
        (
            pd.Categorical(["a", "b"] * 10, ordered=True),
            LinearRegression(),
            "cannot model 'y': it is ordered, which needs a classifier",
        ),
        (["a", "b"] * 10, RidgeClassifier(), "cannot model 'y': the classifier has no predict_proba"),
    ],
)
def test_an_estimator_of_the_wrong_type_is_refused(y, estimator, message):
    with pytest.raises(SamplerError, match=message):
        fit(pd.DataFrame({"x": np.arange(20.0), "y": y}), estimator)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            HistGradientBoostingRegressor(),
            r"ignores its quantile, because loss is 'squared_error'; .*loss=\"quantile\"",
        ),
        (DummyRegressor(), r"ignores its quantile, because strategy is 'mean'; .* needs strategy=\"quantile\""),
    ],
)
def test_a_quantile_without_effect_is_refused(estimator, message):
    frame = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0)})
    with pytest.raises(SamplerError, match=message):
        fit(frame, estimator, method="quantiles")
    fit(frame, DummyRegressor(strategy="quantile"), method="quantiles")


@pytest.mark.parametrize("estimator", [LinearRegression(), GradientBoostingRegressor(loss="huber")])
def test_quantiles_need_a_quantile_to_set(estimator):
    with pytest.raises(SamplerError, match=r"has no quantile to set; method 'quantiles' needs a regressor with"):
        fit(pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0)}), estimator, method="quantiles")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "mean"}, "method of EstimatorSampler is 'mean'; allowed: residuals, pmm, quantiles"),
        ({"n_donors": 0}, "n_donors of EstimatorSampler is 0; it must be a whole number of at least 1"),
        ({"n_quantiles": 2.0}, r"n_quantiles of EstimatorSampler is 2.0; it must be a whole number of at least 1"),
    ],
)
def test_parameters_are_checked_when_fitting(parameters, message):
    with pytest.raises(InputError, match=message):
        fit(pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}), LinearRegression(), **parameters)


@pytest.mark.parametrize("estimator", ["logreg", LinearRegression, None])
def test_what_is_no_estimator_is_refused(estimator):
    with pytest.raises(InputError, match=r"estimator of EstimatorSampler is .*; give a scikit-learn classifier or"):
        fit(pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}), estimator)


def test_the_chain_refuses_missing_values(line):
    samplers = {"y": EstimatorSampler(LinearRegression()), "*": "cart"}
    message = r"EstimatorSampler\(estimator=LinearRegression\(\)\) for 'y' does not handle missing values, and 'x' has"
    with pytest.raises(SamplerError, match=message):
        ChainModel(sampler=samplers, fixed=["x"]).fit(line.assign(x=line["x"].mask(line["x"] > 9)))
    chain = ChainModel(sampler=samplers, fixed=["x"], random_state=1).fit(line)
    with pytest.raises(InputError, match=r"given has missing values in 'x', which EstimatorSampler.* does not handle"):
        chain.sample(given=pd.DataFrame({"x": [np.nan]}))


def test_a_regressor_has_no_density_and_no_state(line):
    sampler, given = fit(line, LinearRegression())
    with pytest.raises(SamplerError, match=r"EstimatorSampler\(estimator=LinearRegression\(\)\) has no density"):
        sampler.log_density(given, np.zeros(3000))
    with pytest.raises(SamplerError, match=r"holds a scikit-learn estimator, which cannot be written as arrays"):
        sampler.get_state()


def test_not_fitted(line):
    _, given = fit(line, LinearRegression())
    for call in (
        lambda s: s.sample(given, RowStreams.from_seed(0, 3000)),
        lambda s: s.supports(given, np.zeros(3000)),
        lambda s: s.log_density(given, np.zeros(3000)),
    ):
        with pytest.raises(NotFittedError, match=r"EstimatorSampler\(estimator=LinearRegression\(\)\) is not fitted"):
            call(EstimatorSampler(LinearRegression()))


# ---- in use


def test_the_estimator_is_cloned(line):
    for estimator, method in ((LinearRegression(), "pmm"), (QuantileRegressor(quantile=0.3), "quantiles")):
        before = repr(estimator), dict(vars(estimator))
        sampler, _ = fit(line.iloc[:50], estimator, method=method, n_quantiles=2)
        assert sampler.estimator is estimator
        assert (repr(estimator), vars(estimator)) == before
        assert all(fitted is not estimator for fitted in sampler.estimators_)


def test_a_chain_of_estimators_with_a_decision(line):
    """The decision is one more given: y > 15 is drawn where it is wanted."""
    samplers = {"job": EstimatorSampler(LogisticRegression()), "y": EstimatorSampler(LinearRegression(), method="pmm")}
    decision = (line["y"] > 15).to_numpy()
    chain = ChainModel(sampler=samplers, fixed=["x"], random_state=1).fit(line, decision)
    people = pd.DataFrame({"x": [7.0]})
    wanted, unwanted = (chain.sample(given=people, n=300, decision=d)["y"] for d in (True, False))
    # 2 * 7 + 3 [cook] + 1: the wanted rows have the greater mean
    assert wanted.mean() > unwanted.mean() + 1
    assert set(chain.sample(given=people, n=50)["job"]) == {"cook", "clerk"}


def test_no_givens_are_a_constant_column():
    frame = pd.DataFrame({"y": [1.0, 2.0, 3.0, 4.0]})
    sampler, given = fit(frame, LinearRegression())
    assert len(given.features) == 0
    drawn = np.unique(draw(sampler, given, 0, 200))
    # leaving one of n out, a value is n / (n - 1) times as far from the mean of the others as from that of all
    np.testing.assert_allclose(drawn, 2.5 + np.array([-1.5, -0.5, 0.5, 1.5]) * 4 / 3, rtol=1e-12)
