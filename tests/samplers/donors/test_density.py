"""Densities of the donor samplers integrate to one and match known processes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from mcce import CartSampler, ForestSampler, MarginalSampler
from mcce.samplers.donors.density import MarginalDensity
from mcce.storage.learned import get_state, set_state
from mcce.testing.samplers import through_json
from tests.samplers.donors.density_problem import CART, FOREST, IDS, SAMPLERS, fit, make_groups, silverman


def density(sampler, given, row, values):
    """Return the density at one training row of several values."""
    values = np.asarray(values, dtype=float)
    return np.exp(sampler.log_density(given.take(np.full(values.size, row)), values))


# ---- normalisation


@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("ordered", [False, True])
def test_level_and_missing_probabilities_sum_to_one(sampler, missing, ordered):
    rng = np.random.default_rng(1)
    x = rng.normal(size=600)
    codes = np.digitize(x + rng.normal(size=600), [-1.0, 0.5, 1.5])
    names = np.where(rng.random(600) < missing, None, np.array(["a", "b", "c", "d"], dtype=object)[codes])
    y = pd.Categorical(names, categories=["a", "never", "b", "c", "d"], ordered=ordered)
    fitted, given, values = fit(pd.DataFrame({"x": x, "y": y}), sampler)
    total = np.sum([np.exp(fitted.log_density(given, np.full(600, float(level)))) for level in range(5)], axis=0)
    absent = np.exp(fitted.log_density(given, np.full(600, np.nan)))
    np.testing.assert_allclose(total + absent, 1.0, atol=1e-12)
    assert (absent > 0).all() == (missing > 0)
    assert (fitted.log_density(given, values) < 0).all()
    assert (np.exp(fitted.log_density(given, np.ones(600))) > 0).all()  # the pseudo-donor: no level is impossible


@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
@pytest.mark.parametrize(("zeros", "missing"), [(0.0, 0.0), (0.3, 0.0), (0.3, 0.25)])
def test_atoms_integral_and_missing_probability_sum_to_one(sampler, zeros, missing):
    frame = make_groups(800, 2, zeros=zeros, missing=missing)
    fitted, given, _ = fit(frame, sampler)
    grid = np.linspace(-15.0, 30.0, 8001) + 1e-5  # beside the atom
    for row in (frame.index[frame["g"] == "f"][0], frame.index[frame["g"] == "m"][0]):
        integral = integrate.trapezoid(density(fitted, given, row, grid), grid)
        at_zero = density(fitted, given, row, [0.0])[0] if zeros else 0.0
        absent = density(fitted, given, row, [np.nan])[0]
        assert integral + at_zero + absent == pytest.approx(1.0, abs=2e-3)
        assert absent == pytest.approx(missing, abs=0.07)
        assert at_zero == pytest.approx(zeros * (1 - missing), abs=0.07)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
def test_integers_have_probabilities(sampler):
    rng = np.random.default_rng(3)
    g = rng.integers(0, 2, 1000)
    frame = pd.DataFrame({"g": g, "y": rng.poisson(np.where(g == 1, 6.0, 2.0))})
    fitted, given, values = fit(frame, sampler, y="numeric")
    seen = np.unique(values)
    for group, mean in ((0, 2.0), (1, 6.0)):
        p = density(fitted, given, int(np.flatnonzero(g == group)[0]), seen)
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        if sampler is not SAMPLERS[2]:
            assert 0.5 * np.abs(p - stats.poisson(mean).pmf(seen)).sum() < 0.08
    assert density(fitted, given, 0, [2.5, -1.0]).tolist() == [0.0, 0.0]


def test_always_missing_target_is_missing_with_probability_one():
    for y in (np.full(60, np.nan), pd.Categorical([None] * 60, categories=["a", "b"])):
        for sampler in SAMPLERS:
            fitted, given, _ = fit(pd.DataFrame({"x": np.arange(60.0), "y": y}), sampler)
            assert (fitted.log_density(given, np.full(60, np.nan)) == 0.0).all()
            assert np.isneginf(fitted.log_density(given, np.zeros(60))).all()


def test_missing_has_zero_probability_without_missing_values():
    for sampler in SAMPLERS:
        fitted, given, _ = fit(make_groups(200, 4), sampler)
        assert np.isneginf(fitted.log_density(given, np.full(200, np.nan))).all()


# ---- against known densities


@pytest.mark.parametrize(
    "sampler",
    [CartSampler(min_leaf=500), pytest.param(ForestSampler(min_leaf=500), marks=pytest.mark.nightly)],
    ids=["cart", "forest"],
)
def test_normal_density_is_recovered(sampler):
    frame, fresh = make_groups(4000, 5), make_groups(4000, 6)
    fitted, given, values = fit(frame, sampler)
    own = fitted.log_density(given, values, training_rows=np.arange(4000))
    _, new_given, new_values = fit(fresh, sampler)
    new = fitted.log_density(new_given, new_values)
    in_m = (fresh["g"] == "m").to_numpy()
    truth = stats.norm(10.0 * in_m, 1.0 + in_m).logpdf(new_values)
    # the entropy of the smoothed density lies above the truth by some hundredths; the mean has an error of 0.013
    assert new.mean() == pytest.approx(truth.mean(), abs=0.03)
    assert new.mean() < truth.mean() + 0.005
    assert own.mean() == pytest.approx(new.mean(), abs=0.06)
    inside = np.abs(new_values - 10.0 * in_m) < 2 * (1.0 + in_m)
    assert np.abs(new - truth)[inside].mean() < 0.06


def test_leave_one_out_makes_training_rows_as_likely_as_new_rows():
    """In small leaves a row in its own pool looks far more likely than a new one."""
    rng = np.random.default_rng(7)

    def groups(n):
        g = np.tile(np.arange(50), n)
        return pd.DataFrame({"g": pd.Categorical(g), "y": 40.0 * g + rng.normal(size=g.size)})

    frame, fresh = groups(6), groups(40)
    fitted, given, values = fit(frame, CartSampler(min_leaf=6))
    assert fitted.tree_.n_leaves == 50
    _, new_given, new_values = fit(fresh, CART)
    new = np.median(fitted.log_density(new_given, new_values))
    with_itself = np.median(fitted.log_density(given, values))
    without = np.median(fitted.log_density(given, values, training_rows=np.arange(300)))
    assert with_itself - new > 0.3
    assert without == pytest.approx(new, abs=0.2)


def test_marginal_density_matches_the_column():
    rng = np.random.default_rng(8)
    frame = pd.DataFrame({"x": rng.normal(size=3000), "y": rng.normal(5.0, 2.0, 3000)})
    fitted, given, values = fit(frame, MarginalSampler())
    grid = np.linspace(1.0, 9.0, 50)
    np.testing.assert_allclose(density(fitted, given, 0, grid), stats.norm(5.0, 2.0).pdf(grid), atol=0.02)
    by_scipy = stats.gaussian_kde(values, bw_method=silverman(values) / values.std(ddof=1))
    np.testing.assert_allclose(density(fitted, given, 0, grid), by_scipy(grid), rtol=1e-3)


# ---- missing values


@pytest.mark.parametrize("sampler", [CART, FOREST], ids=["cart", "forest"])
def test_missing_values_have_the_probability_of_their_group(sampler):
    rng = np.random.default_rng(13)
    n = 3000
    g = rng.integers(0, 2, n)
    absent = rng.random(n) < np.where(g == 1, 0.6, 0.1)
    frame = pd.DataFrame({"g": g, "y": np.where(absent, np.nan, rng.normal(10.0 * g, 1.0))})
    fitted, given, values = fit(frame, sampler)
    found = np.exp(fitted.log_density(given, np.full(n, np.nan)))
    np.testing.assert_allclose(found, np.where(g == 1, 0.6, 0.1), atol=0.03)
    left_out = np.exp(fitted.log_density(given, values, training_rows=np.arange(n)))[absent]
    assert (left_out <= found[absent]).all()  # equal if no tree of the forest has drawn the row
    assert left_out.mean() < found[absent].mean()
    np.testing.assert_allclose(left_out, found[absent], atol=0.005)
    # numbers: the density of those present times the probability of being present
    at_mean = density(fitted, given, int(np.flatnonzero(g == 1)[0]), [10.0])[0]
    assert at_mean == pytest.approx(0.4 * stats.norm.pdf(0.0), rel=0.12)


# ---- margins


def test_recurring_numbers_are_atoms():
    rng = np.random.default_rng(14)
    values = np.concatenate([np.zeros(300), np.full(12, 7.0), np.full(5, 8.0), rng.normal(size=683)])
    margin = MarginalDensity.of(values, 0)
    assert margin.atoms.tolist() == [0.0, 7.0]  # one per cent of 1000 is ten
    assert margin.counts.tolist() == [300.0, 12.0]
    assert margin.is_atom(np.array([0.0, 7.0, 8.0, 0.1])).tolist() == [True, True, False, False]
    assert integrate.trapezoid(margin.density, margin.grid) == pytest.approx(0.688, abs=1e-3)


@pytest.mark.parametrize("values", [[5.0], [0.0, 0.0, 0.0, 5.0], [0.0, 5.0], [3.0, 3.0], [0.0, 1e9, 1e9 + 1, 2e9]])
def test_few_values_have_a_margin(values):
    margin = MarginalDensity.of(np.array(values), 0)
    shares = margin.share(np.unique(values), np.zeros(np.unique(values).size))
    assert (shares > 0).all()
    rest = 1.0 - margin.counts.sum() / len(values)
    integral = integrate.trapezoid(margin.density, margin.grid) if margin.grid.size else 0.0
    assert integral == pytest.approx(rest, abs=1e-3)


def test_bandwidth_below_grid_step_leaves_rows_out_equally():
    """One distant number makes the grid coarse; leaving a row out removes exactly its contribution."""
    rng = np.random.default_rng(15)
    values = np.append(rng.normal(size=500), 1e6)
    margin = MarginalDensity.of(values, 0)
    inner = values[:500]
    without = margin.share(inner, np.ones(500))
    assert (without > 0).all()
    np.testing.assert_allclose(without, margin.share(inner, np.zeros(500)), rtol=0.01)


# ---- state


@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
@pytest.mark.parametrize("kind", ["numeric", "zeros", "levels"])
def test_restored_state_keeps_the_density(sampler, kind):
    frame = make_groups(300, 16, zeros=0.3 * (kind == "zeros"), missing=0.2)
    if kind == "levels":
        frame["y"] = pd.cut(frame["y"].to_numpy(), 3, labels=list("abc"))
    fitted, given, values = fit(frame, sampler)
    state = through_json(get_state(fitted))
    restored = set_state(sampler.clone(), state)
    for rows in ({}, {"training_rows": np.arange(300)}):
        np.testing.assert_array_equal(
            restored.log_density(given, values, **rows), fitted.log_density(given, values, **rows)
        )


@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
def test_no_rows_give_no_densities(sampler):
    fitted, given, values = fit(make_groups(100, 17), sampler)
    assert fitted.log_density(given.take(np.arange(0)), values[:0]).shape == (0,)
