"""Gradient boosting: conformance; trees as arrays, cross-fitting, quantiles, missing targets."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import mcce
from mcce import InputError, SamplerError, Within
from mcce.rng import RowStreams
from mcce.samplers.boosting import Growing, class_probabilities, read_trees
from mcce.table import Table
from mcce.testing import CHECKS, GOODNESS_OF_FIT
from tests.marks import nightly, nightly_but_named
from tests.samplers.parametric.test_sampler import encode

QUICK = {"max_trees": 8, "learning_rate": 0.5, "max_leaves": 4}


# one object: checks that only draw share its fits
CONFORMING = mcce.BoostingSampler(n_quantiles=3, max_trees=3, learning_rate=0.8, max_leaves=3)


# most other samplers test the same code in less time
KEPT = ("check_conditional", "check_sample_within", "check_state")


@pytest.mark.parametrize(
    "check", nightly_but_named([*CHECKS, *GOODNESS_OF_FIT], *KEPT), ids=lambda check: check.__name__
)
def test_conformance(check):
    check(CONFORMING, 0)


def design(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    x[:, 1] = rng.integers(0, 2, n)
    x[rng.random((n, 3)) < 0.1] = np.nan
    return x, np.nan_to_num(x[:, 0]) * 2.0 + rng.normal(size=n)


@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_arrays_predict_like_scikit_learn(n_classes):
    x, y = design()
    new = design(seed=1)[0]
    if n_classes:
        codes = np.digitize(y, [-1.0, 0.0, 1.0][: n_classes - 1]) * 2  # codes with gaps
        estimator = HistGradientBoostingClassifier(max_iter=7, random_state=0).fit(x, codes)
        trees = read_trees(estimator, x)
        np.testing.assert_array_equal(trees.classes, np.unique(codes))
        np.testing.assert_allclose(class_probabilities(trees.outputs(new)), estimator.predict_proba(new), rtol=1e-12)
        staged = list(estimator.staged_predict_proba(new))
        np.testing.assert_allclose(class_probabilities(trees.staged(new))[:, 1:], np.stack(staged, 1), rtol=1e-12)
    else:
        estimator = HistGradientBoostingRegressor(loss="quantile", quantile=0.2, max_iter=7, random_state=0).fit(x, y)
        np.testing.assert_array_equal(read_trees(estimator, x).outputs(new)[:, 0], estimator.predict(new))


def test_invalid_tree_arrays_raise():
    x, y = design()
    estimator = HistGradientBoostingRegressor(max_iter=3, random_state=0).fit(x, y)
    estimator._baseline_prediction = estimator._baseline_prediction + 1.0
    estimator.predict = HistGradientBoostingRegressor(max_iter=3, random_state=0).fit(x, y).predict
    with pytest.raises(SamplerError, match=r"could not be read from scikit-learn .* their predictions differ"):
        read_trees(estimator, x)


@pytest.mark.slow
def test_trees_stop_if_held_out_error_increases():
    """Noise gives hardly any trees; a real step gives trees."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 4))
    growing = Growing({"learning_rate": 0.3, "max_leaf_nodes": 4, "min_samples_leaf": 5}, 15, seed=1)
    noise, _ = growing.quantiles(x, rng.normal(size=600), np.array([0.1, 0.5, 0.9]))
    step, outer = growing.quantiles(x, 5.0 * (x[:, 0] > 0) + rng.normal(size=600), np.array([0.1, 0.5, 0.9]))
    assert noise[0].root.size <= 5
    assert step[0].root.size > 5
    assert outer.shape == (600, 2)
    assert growing.classes(x, rng.integers(0, 2, 600)).root.size <= 5
    assert growing.classes(x, (x[:, 0] > 0).astype(int)).root.size > 5


@pytest.mark.slow
def test_drawn_numbers_are_training_values_and_prices_stay_multiples():
    rng = np.random.default_rng(0)
    x = rng.normal(size=800)
    y = 500.0 * np.rint(20.0 + 8.0 * x + 4.0 * rng.normal(size=800))
    given, target = encode(pd.DataFrame({"x": x, "y": y}))
    fitted = mcce.BoostingSampler(**QUICK).fit(given, target)
    drawn = fitted.sample(given, RowStreams.from_seed(1, 800))
    assert np.isin(drawn, target.values).all()
    assert (drawn % 500 == 0).all()
    at_zero = Table(given.features, np.zeros((4000, 1)))
    drawn = fitted.sample(at_zero, RowStreams.from_seed(2, 4000))
    assert drawn.mean() == pytest.approx(10_000, abs=600)
    assert drawn.std() == pytest.approx(2000, rel=0.3)
    # draws have the probability of the density
    common = 10_000.0
    share = np.exp(fitted.log_density(at_zero.take([0]), np.array([common])))
    assert (drawn == common).mean() == pytest.approx(float(share[0]), abs=0.02)


@pytest.mark.parametrize("n_values", [3, *nightly(40, 0, -1)])
def test_restricted_draws_are_truncated(n_values):
    """By classes, by cells of few values, by cells of many, by a class for zero and cells for the rest."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 500))
    y = np.floor(n_values * stats.norm.cdf(y + x)) if n_values > 0 else y + x
    y = np.maximum(y, 0.2) if n_values < 0 else y
    given, target = encode(pd.DataFrame({"x": x, "y": y}))
    fitted = mcce.BoostingSampler(**QUICK).fit(given, target)
    n = 8000
    row = Table(given.features, np.full((n, 1), 0.3))
    low, high = np.quantile(target.values, [0.4, 0.8])  # with a class at its lower end
    within = Within(low=np.full(n, low), high=np.full(n, high), weighted=True)
    free = fitted.sample(row, RowStreams.from_seed(1, n))
    found = fitted.sample_within(row, RowStreams.from_seed(2, n), within)
    inside = free[within.allows(free)]
    assert not found.rejected.any()
    assert within.allows(found.values).all()
    assert np.exp(found.log_mass[0]) == pytest.approx(inside.size / n, abs=0.02)
    values = np.unique(np.concatenate([inside, found.values]))
    gap = [np.searchsorted(np.sort(part), values, side="right") / part.size for part in (inside, found.values)]
    assert np.abs(gap[0] - gap[1]).max() < 0.04
    nothing = Within(low=np.full(5, 1e6), high=np.full(5, 1e7))
    assert fitted.sample_within(row.take(np.arange(5)), RowStreams.from_seed(2, 5), nothing).rejected.all()


def test_few_numbers_are_classes_and_their_probabilities_sum_to_one():
    rng = np.random.default_rng(1)
    x = rng.normal(size=1000)
    y = np.where(rng.random(1000) < 1 / (1 + np.exp(2 * x)), 0, 3).astype(float)
    given, target = encode(pd.DataFrame({"x": x, "y": y}))
    fitted = mcce.BoostingSampler(**QUICK).fit(given, target)
    for at in (-1.0, 1.0):
        row = Table(given.features, np.full((2, 1), at))
        zero, three = np.exp(fitted.log_density(row, np.array([0.0, 3.0])))
        assert zero + three == pytest.approx(1.0)
        assert zero == pytest.approx(1 / (1 + np.exp(2 * at)), abs=0.1)
        assert np.isneginf(fitted.log_density(row, np.array([1.0, 2.0]))).all()
        assert not fitted.supports(row, np.array([1.0, 2.0])).any()


@pytest.mark.slow
def test_frequent_number_is_a_class_beside_the_quantiles():
    """Zero with a probability that depends on the given, else lognormal: known mass, known density beside it."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=3000)
    y = np.where(rng.random(3000) < np.where(x > 0, 0.7, 0.2), 0.0, np.exp(rng.normal(size=3000) * 0.5 + (x > 0)))
    given, target = encode(pd.DataFrame({"x": x, "y": y}))
    fitted = mcce.BoostingSampler(**QUICK).fit(given, target)
    assert fitted.classes_.tolist() == [0.0]
    assert fitted.base_measure() == "mixed"
    for at, zero in ((-1.0, 0.2), (1.0, 0.7)):
        n = 4000
        row = Table(given.features, np.full((n, 1), at))
        drawn = fitted.sample(row, RowStreams.from_seed(1, n))
        assert (drawn == 0.0).mean() == pytest.approx(zero, abs=0.06)
        assert np.log(drawn[drawn > 0]).mean() == pytest.approx(float(at > 0), abs=0.1)
        assert np.log(drawn[drawn > 0]).std() == pytest.approx(0.5, abs=0.1)
        assert np.exp(fitted.log_density(row.take([0]), np.zeros(1))) == pytest.approx(zero, abs=0.06)
        grid = np.linspace(-5.0, 60.0, n)
        beside = np.exp(fitted.log_density(row, grid)).sum() * (grid[1] - grid[0])
        assert beside == pytest.approx((drawn > 0).mean(), abs=0.03)
        true = (1 - zero) * stats.lognorm(0.5, scale=np.exp(at > 0)).pdf(np.exp(at > 0))
        density = np.exp(fitted.log_density(row.take([0]), np.array([np.exp(at > 0)])))
        assert density == pytest.approx(true, rel=0.35)


@pytest.mark.slow
def test_missing_targets_follow_the_givens():
    rng = np.random.default_rng(1)
    x = rng.normal(size=1500)
    missing = rng.random(1500) < np.where(x > 0, 0.6, 0.1)
    given, target = encode(pd.DataFrame({"x": x, "y": pd.Series(rng.normal(size=1500)).mask(missing)}))
    fitted = mcce.BoostingSampler(**QUICK).fit(given, target)
    drawn = fitted.sample(given, RowStreams.from_seed(1, 1500))
    for side, share in ((x > 0.1, 0.6), (x < -0.1, 0.1)):
        assert np.isnan(drawn[side]).mean() == pytest.approx(share, abs=0.06)
    gone = np.exp(fitted.log_density(given, np.full(1500, np.nan)))
    assert gone[x > 0.1].mean() == pytest.approx(0.6, abs=0.06)
    within = Within(low=np.zeros(1500), missing=np.ones(1500, dtype=bool))
    found = fitted.sample_within(given, RowStreams.from_seed(2, 1500), within)
    assert np.isnan(found.values[x > 0.1]).mean() == pytest.approx(0.6 / (0.6 + 0.2), abs=0.06)


@pytest.mark.parametrize(
    "values",
    [[5.0], [1.0, 2.0], [3.0] * 30, [np.nan] * 30, ["a"], ["a", "b"], ["a"] * 29 + ["b"]],
    ids=["one row", "two rows", "constant", "all missing", "one level", "two levels", "one rare level"],
)
def test_small_and_constant_targets(values):
    n = len(values)
    frame = pd.DataFrame({"x": np.arange(n, dtype=float), "y": values})
    if isinstance(values[0], str):
        frame["y"] = pd.Categorical(values, ["a", "b"])
    given, target = encode(frame)
    fitted = mcce.BoostingSampler(**QUICK).fit(given, target)
    drawn = fitted.sample(given, RowStreams.from_seed(1, n))
    assert np.isin(drawn, target.values).all() or np.isnan(drawn).all()
    assert np.isfinite(fitted.log_density(given, target.values)).all()
    assert fitted.supports(given, drawn).all()


@pytest.mark.slow
def test_chain_seed_determines_the_folds():
    frame = pd.DataFrame(design(200)[0][:, [0]], columns=["x"]).fillna(0.0).assign(y=design(200)[1])

    def drawn(seed, n_jobs=1):
        sampler = {"y": mcce.BoostingSampler(n_quantiles=3, **QUICK), "*": "cart"}
        chain = mcce.ChainModel(sampler=sampler, fixed=["x"], random_state=seed, n_jobs=n_jobs).fit(frame)
        return chain.samplers_["y"].tails_

    assert drawn(1).below.tolist() == drawn(1, n_jobs=2).below.tolist()
    assert drawn(1).below.tolist() != drawn(2).below.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_quantiles": 1}, "n_quantiles"),
        ({"max_trees": 0}, "max_trees"),
        ({"max_leaves": 1}, "max_leaves"),
        ({"min_leaf": 0}, "min_leaf"),
        ({"learning_rate": 0.0}, "learning_rate of BoostingSampler is 0.0; it must be a number above 0, at most 1"),
        ({"random_state": 0.5}, "random_state is 0.5"),
    ],
)
def test_invalid_parameters_raise(options, message):
    x, y = design(50)
    with pytest.raises(InputError, match=message):
        mcce.BoostingSampler(**options).fit(*encode(pd.DataFrame({"x": x[:, 2], "y": y})))


@pytest.mark.parametrize("n_known", [1, *nightly(0, 2)])
def test_given_missing_always_or_nearly_always(n_known):
    rng = np.random.default_rng(0)
    n = 60
    X = pd.DataFrame({"given": np.where(np.arange(n) < n_known, 3.0, np.nan), "x": rng.normal(size=n)})
    X["job"] = np.where(X["x"] + rng.normal(size=n) > 0, "cook", "clerk")
    quick = mcce.BoostingSampler(n_quantiles=3, **QUICK)
    chain = mcce.ChainModel(sampler={"x": quick, "job": quick, "*": "marginal"}, fixed=["given"], random_state=1).fit(X)
    drawn = chain.sample(given=pd.DataFrame({"given": [np.nan, 3.0] * 20}))
    assert drawn["x"].isin(X["x"]).all()
    # a column without values is uninformative: the trees equal those without it
    points = np.column_stack([np.full(n, np.nan), X["x"]])
    growing = Growing({"min_samples_leaf": 5}, 4, 1)
    with_it, alone = (growing._quantile(p, X["x"].to_numpy(), None, 0.5, 4) for p in (points, points[:, 1:]))
    assert np.array_equal(with_it.outputs(points), alone.outputs(points[:, 1:]))


@pytest.mark.slow
def test_levels_of_one_row_each_are_classes_without_a_warning():
    X = pd.DataFrame({"x": np.arange(30.0), "name": [f"n{i}" for i in range(25)] + ["n0"] * 5})
    chain = mcce.ChainModel(sampler={"name": "boosting", "*": "marginal"}, random_state=1).fit(X)
    assert set(chain.sample(20)["name"]) <= set(X["name"])


@pytest.mark.slow
def test_zero_weight_with_no_value_beyond_the_outer_quantiles():
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0, 5.0], "b": [2.0, 5.0, 1.0, 9.0, 7.0]})
    chain = mcce.ChainModel(sampler="boosting", random_state=1, n_jobs=1).fit(X, sample_weight=[1, 0, 3, 3, 2])
    drawn = chain.sample(200)
    for name in X:  # a row of weight 0 is absent
        assert set(drawn[name]) <= set(X[name].drop(1))
