"""Densities of the donor samplers by hand calculation, with a row left out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce import CartSampler, ForestSampler
from tests.samplers.donors.density_problem import IDS, SAMPLERS, fit, make_groups, silverman


@pytest.fixture
def two_leaves():
    """30 rows in each of two leaves, the groups; hand calculation."""
    rng = np.random.default_rng(9)
    g = np.repeat([0, 1], 30)
    return pd.DataFrame({"g": g, "y": rng.normal(20.0 * g, 1.0)})


@pytest.mark.slow
def test_numeric_density_matches_hand_calculation(two_leaves):
    fitted, given, values = fit(two_leaves, CartSampler(min_leaf=30))
    assert fitted.tree_.n_leaves == 2
    overall = silverman(values)
    expected, left_out = np.empty(60), np.empty(60)
    for i in range(60):
        leaf = np.flatnonzero(two_leaves["g"] == two_leaves["g"][i])
        near = stats.norm(values[leaf], silverman(values[leaf])).pdf(values[i])
        margin = stats.norm(values, overall).pdf(values[i])
        expected[i] = (near.sum() + 5 * margin.mean()) / 35
        left_out[i] = (near[leaf != i].sum() + 5 * np.delete(margin, i).mean()) / 34
    # the margin is read from a grid
    np.testing.assert_allclose(np.exp(fitted.log_density(given, values)), expected, rtol=1e-3)
    loo = np.exp(fitted.log_density(given, values, training_rows=np.arange(60)))
    np.testing.assert_allclose(loo, left_out, rtol=2e-3)
    assert (loo < expected).all()


@pytest.mark.parametrize("ordered", [False, True])
def test_level_density_matches_hand_calculation(ordered):
    rng = np.random.default_rng(10)
    g = np.repeat([0, 1], 40)
    codes = np.where(g == 1, rng.choice(3, 80, p=[0.1, 0.2, 0.7]), rng.choice(3, 80, p=[0.8, 0.1, 0.1]))
    frame = pd.DataFrame({"g": g, "y": pd.Categorical.from_codes(codes, list("abc"), ordered=ordered)})
    fitted, given, values = fit(frame, CartSampler(min_leaf=40))
    for own in (0, 1):
        expected = []
        for i in range(80):
            leaf = np.flatnonzero(g == g[i])
            equal = (codes[leaf] == codes[i]).sum() - own
            margin = ((codes == codes[i]).sum() - own + 1 / 3) / (80 - own + 1)
            expected.append((equal + 5 * margin) / (40 - own + 5))
        rows = {"training_rows": np.arange(80)} if own else {}
        np.testing.assert_allclose(np.exp(fitted.log_density(given, values, **rows)), expected, rtol=1e-12)


def test_forest_leaves_out_all_copies_of_a_row():
    rng = np.random.default_rng(11)
    n = 60
    g = np.arange(n) % 2
    codes = rng.choice(3, n)
    frame = pd.DataFrame({"g": g, "y": pd.Categorical.from_codes(codes, list("abc"))})
    fitted, given, values = fit(frame, ForestSampler(n_trees=7, min_leaf=2))
    left_out = np.exp(fitted.log_density(given, values, training_rows=np.arange(n)))
    for i in range(n):
        pool = []
        for tree in fitted.trees_:
            leaf = tree.route(given.matrix[[i]])[0]
            pool.extend(tree.donors[tree.start[leaf] : tree.start[leaf] + tree.size[leaf]])
        others = np.array([row for row in pool if row != i])
        margin = ((codes == codes[i]).sum() - 1 + 1 / 3) / n
        assert len(others) < len(pool) or i not in pool
        expected = ((codes[others] == codes[i]).sum() + 5 * margin) / (others.size + 5)
        assert left_out[i] == pytest.approx(expected, rel=1e-12)


def test_rows_in_any_order_are_left_out(two_leaves):
    fitted, given, values = fit(two_leaves, CartSampler(min_leaf=30))
    rows = np.random.default_rng(0).permutation(60)[:25]
    every = fitted.log_density(given, values, training_rows=np.arange(60))
    some = fitted.log_density(given.take(rows), values[rows], training_rows=rows)
    np.testing.assert_allclose(some, every[rows], rtol=1e-12)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
def test_outlier_does_not_support_itself(sampler):
    frame = make_groups(400, 12)
    frame.loc[7, "y"] = 60.0
    fitted, given, values = fit(frame, sampler)
    with_itself = fitted.log_density(given, values)
    without = fitted.log_density(given, values, training_rows=np.arange(400))
    assert without[7] < with_itself[7] - 5.0
    assert without.argmin() == 7
    others = np.delete(with_itself - without, 7)
    assert 0.0 <= np.median(others) < 0.1


@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
def test_rare_level_does_not_support_itself(sampler):
    y = np.array(["a", "b"] * 100, dtype=object)
    y[5] = "unique"
    frame = pd.DataFrame({"x": np.arange(200.0), "y": y})
    fitted, given, values = fit(frame, sampler)
    without = fitted.log_density(given, values, training_rows=np.arange(200))
    assert without.argmin() == 5
    assert without[5] < fitted.log_density(given, values)[5] - 1.0
    assert np.isfinite(without).all()


@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
def test_value_absent_from_the_left_out_row_is_valid(sampler):
    y = pd.Categorical(["a"] * 50, categories=["a", "never"])
    fitted, given, _ = fit(pd.DataFrame({"x": np.arange(50.0), "y": y}), sampler)
    found = np.exp(fitted.log_density(given, np.ones(50), training_rows=np.arange(50)))
    assert ((found >= 0.0) & (found < 0.05)).all()
