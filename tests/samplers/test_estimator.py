"""scikit-learn estimators as conditionals: scikit-learn's own predictions, known processes and scipy are the truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor

from mcce.exceptions import InputError
from mcce.generators import ChainModel
from mcce.judging.scores import smooth_test
from mcce.rng import RowStreams
from mcce.samplers import EstimatorSampler, Within
from mcce.table import Schema


def fit(frame, estimator, **options):
    """Return the sampler fitted to the last column, and the table of the givens."""
    table = Schema.from_data(frame).encode(frame)
    k = len(table.features) - 1
    return EstimatorSampler(estimator, random_state=1, **options).fit(table.first(k), table.column(k)), table.first(k)


def line(n=1500, seed=5, spread=lambda x: 2.0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(1, 9, n)
    return pd.DataFrame({"x": x, "y": 3 * x + spread(x) * rng.normal(size=n)})


def grades(n=900, seed=0):
    rng = np.random.default_rng(seed)
    x, job = rng.normal(size=n), rng.choice(["clerk", "cook", "pilot"], n)
    odds = np.column_stack([np.zeros(n), x, -x + (job == "cook")])
    y = (odds + rng.gumbel(size=(n, 3))).argmax(axis=1)
    return pd.DataFrame({"x": x, "job": job, "y": pd.Categorical.from_codes(y, ["l", "m", "h"])})


class Quantile(RegressorMixin, BaseEstimator):
    """The quantiles of the training values, whatever is given."""

    def __init__(self, quantile=0.5):
        self.quantile = quantile

    def fit(self, X, y):
        self.value_ = np.quantile(y, self.quantile)
        return self

    def predict(self, X):
        return np.full(len(X), self.value_)


def pits(sampler, frame):
    """The PITs of the rows of a frame, which are uniform if the conditional is right."""
    table = Schema.from_data(frame).encode(frame)
    k = len(table.features) - 1
    return sampler.distribution(table.first(k)).cdf(table.matrix[:, k])


# ------------------------------------------------------------------------------------------------------------ levels


@pytest.mark.parametrize("ordered", [False, True])
def test_levels_have_the_predicted_probabilities(ordered):
    frame = grades()
    frame["y"] = frame["y"].cat.as_ordered() if ordered else frame["y"]
    sampler, given = fit(frame, LogisticRegression(max_iter=3000))
    design = np.column_stack([frame["x"], pd.get_dummies(frame["job"]).to_numpy(float)[:, 1:]])
    truth = LogisticRegression(max_iter=3000).fit(design, frame["y"].cat.codes).predict_proba(design)
    found = sampler.distribution(given)
    for code in range(3):  # the penalty depends on which level of `job` has no dummy
        np.testing.assert_allclose(np.exp(found.log_density(np.full(900, float(code)))), truth[:, code], atol=0.01)
    within = Within(levels=np.tile([True, False, True], (900, 1)))
    drawn, rejected = found.sample(RowStreams.from_seed(1, 900), within)
    assert not rejected.any()
    expected = (truth[:, 2] / (truth[:, 0] + truth[:, 2])).sum()
    assert (drawn == 2.0).sum() == pytest.approx(expected, abs=60)


def test_levels_that_no_row_has_are_impossible():
    frame = grades()
    y = frame["y"].cat.rename_categories({"m": "q"}).cat.set_categories(["l", "never", "q", "h", "nor this"])
    sampler, given = fit(frame.assign(y=y), LogisticRegression())
    densities = [sampler.distribution(given.take([0])).log_density(np.array([float(code)]))[0] for code in range(5)]
    assert np.isneginf(densities).tolist() == [False, True, False, False, True]
    assert np.exp(densities).sum() == pytest.approx(1.0)
    single, given = fit(
        pd.DataFrame({"x": np.arange(9.0), "y": pd.Categorical(["b"] * 9, ["a", "b"])}), LogisticRegression()
    )
    assert (single.distribution(given).sample(RowStreams.from_seed(0, 9))[0] == 1.0).all()


# ----------------------------------------------------------------------------------------------------------- numbers

ESTIMATORS = {
    "line": LinearRegression(),
    "neighbours": KNeighborsRegressor(20),
    "tree": DecisionTreeRegressor(),
    "forest": RandomForestRegressor(30),
}


@pytest.mark.parametrize("name", ["line", "neighbours", "tree", pytest.param("forest", marks=pytest.mark.slow)])
def test_draws_have_the_spread_of_errors_on_new_rows(name):
    """Truth: a standard deviation of 2. A tree fits its own rows exactly, and errs by 2.8 on others."""
    sampler, _ = fit(line(), ESTIMATORS[name])
    new = Schema.from_data(line()).encode(line(1000, seed=6))
    found = sampler.distribution(new.first(1))
    errors = new.matrix[:, 1] - found.parameters[0]
    drawn = found.sample(RowStreams.from_seed(1, 1000))[0] - found.parameters[0]
    assert drawn.std() == pytest.approx(errors.std(), rel=0.1)
    assert errors.std() == pytest.approx({"tree": 2.8, "forest": 2.4}.get(name, 2.05), rel=0.1)


def test_residuals_are_calibrated_where_the_spread_grows():
    frame = line(4000, spread=lambda x: 0.3 * x)
    sampler, _ = fit(frame, LinearRegression())
    new = line(2000, seed=6, spread=lambda x: 0.3 * x)
    found = pits(sampler, new)
    assert smooth_test(found) > 0.001
    for part in (new["x"] < 3, new["x"] > 7):
        assert stats.kstest(found[part], "uniform").statistic < 0.08


def test_exact_line_with_normal_residuals_is_that_of_scipy():
    frame = line(20_000)
    sampler, _ = fit(frame, LinearRegression())
    at = np.array([2.0, 5.0, 8.0])
    table = Schema.from_data(frame).encode(pd.DataFrame({"x": at, "y": 0.0})).first(1)
    found, truth = sampler.distribution(table), stats.norm(3 * at, 2.0)
    for shift in (-3.0, -1.0, 0.0, 2.0):
        y = 3 * at + shift
        np.testing.assert_allclose(found.cdf(y), truth.cdf(y), atol=0.02)
        np.testing.assert_allclose(found.log_density(y), truth.logpdf(y), atol=0.12)
    np.testing.assert_allclose(found.ppf(np.full(3, 0.9)), truth.ppf(0.9), atol=0.15)


def test_numbers_beyond_the_training_range_become_its_ends():
    rng = np.random.default_rng(3)
    x = rng.normal(size=2000)
    frame = pd.DataFrame({"x": x, "y": np.exp(x + 0.6 * rng.normal(size=2000))})
    sampler, given = fit(frame, LinearRegression())
    found = sampler.distribution(given)
    drawn = found.sample(RowStreams.from_seed(0, 2000))[0]
    low, high = frame["y"].min(), frame["y"].max()
    assert drawn.min() == low
    assert drawn.max() <= high
    share = found.cdf(np.full(2000, low))  # the mass that is put on the end
    assert (drawn == low).mean() == pytest.approx(share.mean(), abs=0.02)
    np.testing.assert_array_equal(found.cdf(np.full(2000, low - 1e-9)), 0.0)
    np.testing.assert_array_equal(found.cdf(np.full(2000, high)), 1.0)
    assert np.isfinite(found.log_density(drawn)).all()


QUANTILE_REGRESSORS = {
    "line": QuantileRegressor(alpha=0.0),
    "boosting": GradientBoostingRegressor(loss="quantile", n_estimators=40, min_samples_leaf=20, max_depth=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUANTILE_REGRESSORS)
def test_quantiles_are_calibrated_where_the_spread_grows(name):
    frame = line(1200, spread=lambda x: 0.4 * x)
    sampler, _ = fit(frame, QUANTILE_REGRESSORS[name], method="quantiles")
    new = line(3000, seed=6, spread=lambda x: 0.4 * x)
    found = pits(sampler, new)
    assert stats.kstest(found, "uniform").statistic < 0.05
    for part in (new["x"] < 4, new["x"] > 6):
        assert stats.kstest(found[part], "uniform").statistic < 0.1


def test_quantiles_of_one_distribution_are_those_of_numpy():
    values = np.random.default_rng(0).gamma(3.0, size=4000)
    sampler, given = fit(pd.DataFrame({"x": 0.0, "y": values}), Quantile(), method="quantiles")
    found = sampler.distribution(given.take(np.zeros(5, dtype=int)))
    at = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    np.testing.assert_allclose(found.ppf(at), np.quantile(values, at), atol=0.15)
    np.testing.assert_allclose(found.cdf(found.ppf(at)), at, atol=1e-9)
    inside = np.linspace(0.01, 30.0, 5000)
    many = sampler.distribution(given.take(np.zeros(5000, dtype=int)))
    density = np.exp(many.log_density(inside))
    assert np.trapezoid(density, inside) == pytest.approx(np.ptp(many.cdf(inside)), abs=0.01)


# ----------------------------------------------------------------------------------------------------------- edges


@pytest.mark.parametrize("options", [{}, {"method": "quantiles"}], ids=["residuals", "quantiles"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_suffice(options, n):
    frame = pd.DataFrame({"x": np.arange(n) * 1.0, "y": np.array([4.0, 5.0, 7.0])[:n]})
    sampler, given = fit(frame, Quantile() if options else LinearRegression(), **options)
    found = sampler.distribution(given.take(np.zeros(100, dtype=int)))
    drawn = found.sample(RowStreams.from_seed(1, 100))[0]
    assert np.isfinite(drawn).all()
    assert np.isfinite(found.log_density(drawn)).all()


def test_missing_givens_and_no_givens():
    frame = line(300)
    sampler, given = fit(frame.assign(x=frame["x"].mask(np.arange(300) % 5 == 0)), LinearRegression())
    location = sampler.distribution(given).parameters[0]
    np.testing.assert_allclose(location[::5], location[0])
    assert location[0] == pytest.approx(frame["y"][::5].mean())
    alone, nothing = fit(frame[["y"]], LinearRegression())
    np.testing.assert_allclose(alone.distribution(nothing).parameters[0], frame["y"].mean())


def test_seeds_of_nested_estimators():
    """One that is not set comes from the sampler; one that is set is kept; the estimator itself is not touched."""
    frame = line(200)
    open_, closed = (make_pipeline(StandardScaler(), RandomForestRegressor(3, random_state=seed)) for seed in (None, 5))
    (one, given), (same, _) = (fit(frame, open_) for _ in range(2))
    other = EstimatorSampler(open_, random_state=2).fit(given, Schema.from_data(frame).encode(frame).column(1))
    locations = [sampler.distribution(given).parameters[0] for sampler in (one, same, other)]
    np.testing.assert_array_equal(locations[0], locations[1])
    assert not np.array_equal(locations[0], locations[2])
    assert fit(frame, closed)[0].fitted_[1].random_state == 5
    assert open_[1].random_state is None


def test_chain_of_estimators():
    frame = grades(300)[["x", "job", "y"]].assign(z=lambda X: X["x"] + (X["job"] == "cook"))
    samplers = {
        "z": EstimatorSampler(RandomForestRegressor(10, min_samples_leaf=5)),
        "y": EstimatorSampler(RandomForestClassifier(10, min_samples_leaf=5)),
        "*": "cart",
    }
    chains = [ChainModel(sampler=samplers, fixed=["x"], random_state=1).fit(frame) for _ in range(2)]
    drawn, again = (chain.sample(300, given=frame[["x"]].head(2)) for chain in chains)
    pd.testing.assert_frame_equal(drawn, again)
    assert set(drawn["y"]) <= {"l", "m", "h"}


@pytest.mark.parametrize(
    ("frame", "estimator", "options", "said"),
    [
        (line(20), LinearRegression, {}, "give a regressor, or a classifier with predict_proba"),
        (grades(20), LinearSVC(), {}, "CalibratedClassifierCV adds it"),
        (line(20), LinearRegression(), {"method": "pmm"}, "method is 'pmm'; allowed: 'residuals', 'quantiles'"),
        (
            line(20),
            LinearRegression(),
            {"method": "quantiles"},
            "predicts no quantiles; give a regressor for quantiles",
        ),
        (line(20), GradientBoostingRegressor(), {"method": "quantiles"}, 'predicts no quantiles; set loss="quantile"'),
        (
            line(5),
            KNeighborsRegressor(5),
            {},
            "could not be fitted to 5 rows of column 'y', or to a part of them: Expected",
        ),
    ],
)
def test_messages(frame, estimator, options, said):
    with pytest.raises(InputError) as caught:
        fit(frame, estimator, **options)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("frame", "estimator", "said"),
    [(line(20), LogisticRegression(), "numeric"), (grades(20), LinearRegression(), "categorical")],
)
def test_chain_names_the_column_of_the_wrong_kind(frame, estimator, said):
    with pytest.raises(InputError, match=f"EstimatorSampler does not model {said} targets such as column 'y'"):
        ChainModel(sampler={"y": EstimatorSampler(estimator)}).fit(frame)
