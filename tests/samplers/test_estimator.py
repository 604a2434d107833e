from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from mcce import ChainModel, EstimatorSampler, InputError, NotFittedError, SamplerError
from mcce.rng import RowStreams
from mcce.samplers import Within
from mcce.table import Schema
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
    ],
    ids=["logistic", "tree", "residuals", "pmm", "pmm-tree"],
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
    frame = pd.DataFrame({"x": np.arange(8.0), "y": [0.0, 3.0, 1.0, 7.0, 2.0, 4.0, 8.0, 5.0]})
    sampler, given = fit(frame, LinearRegression())
    slope, _ = np.polyfit(frame["x"], frame["y"], 1)
    expected = np.sort(frame["y"] - slope * frame["x"]) + slope * 1.0  # at x = 1: the intercept cancels
    values, counts = np.unique(draw(sampler, given, 1, 4000), return_counts=True)
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    assert stats.chisquare(counts).pvalue > LEVEL


@pytest.mark.parametrize("n_donors", [1, 5])
def test_pmm_draws_the_donors_with_the_nearest_predictions(line, n_donors):
    sampler, given = fit(line, LinearRegression(), method="pmm", n_donors=n_donors)
    design = np.column_stack([np.ones(3000), line["x"], line["job"] == "cook"])
    predicted = design @ np.linalg.lstsq(design, line["y"], rcond=None)[0]
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
    sampler, given = fit(frame, LinearRegression(), method="pmm", n_donors=2)
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
        # the outer tenths run on to the observed extremes, by design; between them the draws are uniform
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
    """Conditional with distribution function y / 8 below 2, a jump from 1/4 to 3/4 there, and 3/4 + (y - 2) / 8."""
    return fit(
        pd.DataFrame({"x": np.zeros(5), "y": np.arange(5.0)}), KnownQuantiles(), method="quantiles", n_quantiles=3
    )


def test_the_quantile_function_is_inverted(atom):
    sampler, given = atom
    drawn = draw(sampler, given, 0, 4000)
    counts = [(drawn < 2).sum(), (drawn == 2).sum(), (drawn > 2).sum()]
    assert stats.chisquare(counts, [1000, 2000, 1000]).pvalue > LEVEL
    assert stats.kstest(drawn[drawn < 2], stats.uniform(0, 2).cdf).pvalue > LEVEL
    assert stats.kstest(drawn[drawn > 2], stats.uniform(2, 2).cdf).pvalue > LEVEL


@pytest.mark.parametrize(
    ("low", "high", "mass"),
    [  # below, at and above the atom
        (1.0, 3.0, [0.125, 0.5, 0.125]),
        (2.0, 3.0, [0.0, 0.5, 0.125]),
        (1.0, 2.0, [0.125, 0.5, 0.0]),
        (2.0, 2.0, [0.0, 0.5, 0.0]),
        (2.5, np.inf, [0.0, 0.0, 0.1875]),
        (-np.inf, 1.5, [0.1875, 0.0, 0.0]),
    ],
)
def test_restricted_quantile_draws_are_exact(atom, low, high, mass):
    sampler, given = atom
    n = 2000
    drawn = draw(sampler, given, 0, n, Within(low=np.full(n, low), high=np.full(n, high)))
    assert ((drawn >= low) & (drawn <= high)).all()
    counts = np.array([(drawn < 2).sum(), (drawn == 2).sum(), (drawn > 2).sum()])
    expected = n * np.array(mass) / sum(mass)
    possible = expected > 0
    assert counts[~possible].sum() == 0
    assert possible.sum() == 1 or stats.chisquare(counts[possible], expected[possible]).pvalue > LEVEL
    for part, (a, b) in ((drawn < 2, (max(low, 0), min(high, 2))), (drawn > 2, (max(low, 2), min(high, 4)))):
        if part.any():
            assert stats.kstest(drawn[part], stats.uniform(a, b - a).cdf).pvalue > LEVEL


def test_quantile_draws_outside_the_observed_range_are_missing(atom):
    sampler, given = atom
    low, high = np.array([5.0, -9.0, 3.0, 1.0]), np.array([9.0, -1.0, 2.0, 1.0])
    assert np.isnan(draw(sampler, given, 0, 4, Within(low=low, high=high))).all()
    rows = given.take(np.zeros(4, dtype=int))
    assert sampler.supports(rows, np.array([-0.1, 0.0, 4.0, 4.1])).tolist() == [False, True, True, False]


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
    frame = pd.DataFrame({"x": [0.0, 0.0, 1.0, 1.0], "y": [-1.0, 1.0, 8.0, 12.0]})  # predictions 0 and 10
    sampler, given = fit(frame, LinearRegression())
    rows = given.take(np.array([0, 0, 0, 0, 2, 2, 2]))
    values = np.array([-2.1, -1.9, 1.9, 2.1, 7.9, 8.1, np.nan])
    assert sampler.supports(rows, values).tolist() == [False, True, True, False, False, True, False]


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
    assert set(np.round(draw(sampler, given, 0, 200), 9)) == {1.0, 2.0, 3.0, 4.0}
