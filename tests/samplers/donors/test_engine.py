"""Supports and densities compared with their definitions in plain numpy: small tables and huge leaves."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce import CartSampler, CtreeSampler, ForestSampler
from mcce.rng import RowStreams
from mcce.table import Schema
from tests.marks import nightly, nightly_but

SAMPLERS = {
    "cart": CartSampler(min_leaf=4),
    "one donor": CartSampler(min_leaf=1),
    "one leaf": CartSampler(min_leaf=300),
    "rpart": CartSampler(dialect="rpart", cp=0.001, min_leaf=3),
    "ctree": CtreeSampler(mincriterion=0.5),
    "forest": ForestSampler(n_trees=3, min_leaf=3),
}
N = 300


def make(target, *, missing):
    """Return a frame of a number, levels with missing values, and a target of the kind named."""
    rng = np.random.default_rng(1)
    x, g = np.round(rng.normal(size=N), 1), rng.integers(0, 4, N)
    names = np.array(["a", "b", "c", "d"], dtype=object)[g]
    frame = pd.DataFrame({"x": x, "g": np.where(rng.random(N) < 0.1, None, names)})
    y = x + g + rng.normal(size=N)
    levels = np.digitize(y, [0.5, 2.0, 3.5])
    columns = {
        "continuous": y,
        "ties": np.round(y, 1),
        "zeros": np.where(rng.random(N) < 0.4, 0.0, y),
        "skewed": np.exp(3.0 * y),
        "whole": np.round(y),
        "constant": np.full(N, 0.1),
        "levels": pd.Categorical.from_codes(levels, ["a", "b", "c", "d", "never"]),
        "ordered": pd.Categorical.from_codes(levels, ["a", "b", "c", "d", "never"], ordered=True),
    }
    frame["y"] = columns[target]
    if missing:
        frame.loc[rng.random(N) < np.where(x > 0.5, 0.5, 0.1), "y"] = np.nan
    return frame


def fit(frame, sampler, **kinds):
    table = Schema.from_data(frame, kinds).encode(frame)
    last = len(table.features) - 1
    return sampler.clone().fit(table.first(last), table.column(last)), table.first(last), table.column(last).values


def leaves_of(forest, given, i):
    """Return the training rows and the values of the donors of one row, tree by tree."""
    found = []
    for tree, values in zip(forest.trees, forest.values_by_tree):
        node = tree.route(given.matrix[[i]])[0]
        span = slice(tree.start[node], tree.start[node] + tree.size[node])
        found.append((tree.donors[span], values[span]))
    return found


def spread_rule(values):
    if np.unique(values).size < 2:
        return 0.0
    low, high = np.percentile(values, [25, 75])
    spreads = [s for s in (np.std(values, ddof=1), (high - low) / 1.34) if s > 0]
    return 0.9 * min(spreads) * values.size**-0.2


def bell(z):
    """The standard normal density; that of scipy takes far longer for few values."""
    return np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)


def margin_share(margin, value, own):
    if value in margin.atoms:
        pseudo = 0.0 if margin.grid.size else 1.0
        mass = (margin.counts[margin.atoms == value][0] - own + pseudo / margin.atoms.size) / (margin.n - own + pseudo)
        return max(mass, 0.0)
    if margin.grid.size == 0:
        return 0.0
    density = np.interp(value, margin.grid, margin.density, left=0.0, right=0.0)
    return max(density - own * bell(0.0) / (margin.n * margin.bandwidth), 0.0) * margin.n / (margin.n - own)


def density_by_hand(donors, given, i, value, row=None):
    """Steps 1 to 4 of `mcce.samplers.donors.density`; the training row `row` is left out of the pool."""
    margin, own = donors.margin, int(row is not None)
    pool, matching = 0, 0.0
    for rows, values in leaves_of(donors.forest, given, i):
        rows, values = rows[~np.isnan(values)], values[~np.isnan(values)]
        others = values[rows != row]
        pool += others.size
        if value in margin.atoms:
            matching += (others == value).sum()
            continue
        width = spread_rule(values[~np.isin(values, margin.atoms)]) or margin.bandwidth
        others = others[~np.isin(others, margin.atoms)]
        if others.size and width:
            matching += bell((value - others) / width).sum() / width
    density = 0.0
    if not np.isnan(value):
        density = (matching + 5 * margin_share(margin, value, own)) / (pool + 5)
    if margin.missing_share == 0.0:
        return density
    absent = np.zeros(0)
    for rows, values in leaves_of(donors.decider or donors.forest, given, i):
        flags = values if donors.decider else np.isnan(values).astype(float)
        absent = np.append(absent, flags[rows != row])
    share = (absent.sum() + 5 * margin.missing_share) / (absent.size + 5)
    return share if np.isnan(value) else (1.0 - share) * density


def assert_same_logs(found, densities, rtol):
    with np.errstate(divide="ignore"):
        expected = np.log(densities)
    np.testing.assert_array_equal(np.isneginf(found), np.isneginf(expected))
    known = ~np.isneginf(expected)
    np.testing.assert_allclose(found[known], expected[known], rtol=rtol, atol=rtol)


TARGETS = ["continuous", "ties", "zeros", "skewed", "whole", "constant", "levels", "ordered"]


@pytest.mark.parametrize("name", nightly_but(SAMPLERS, "forest"))
@pytest.mark.parametrize("missing", [True, *nightly(False)])
@pytest.mark.parametrize("target", TARGETS)
def test_densities_and_supports_match_the_definition(name, target, missing):
    sampler = SAMPLERS[name]
    frame = make(target, missing=missing)
    number = target not in ("levels", "ordered")
    kinds = {"y": "numeric"} if number else {}
    fitted, given, values = fit(frame, sampler, **kinds)
    donors = fitted.donors_
    rng = np.random.default_rng(2)
    rows = rng.choice(N, 40, replace=False)
    others = values[rng.permutation(N)[:40]]
    if number:
        middle, sd = np.nanmean(values), np.nanstd(values) or 1.0
        others[:12] = middle + sd * np.array([-60, -30, -8, -4, -2.03, -0.51, 0.52, 2.01, 4, 8, 30, 60])
        others[12] = np.nan
    else:
        others[:6] = [4.0, 0.0, 1.0, 2.0, 3.0, np.nan]
    for at in (values[rows], others):
        found = fitted.log_density(given.take(rows), at)
        expected = np.array([density_by_hand(donors, given, i, value) for i, value in zip(rows, at)])
        assert_same_logs(found, expected, 1e-12)
        left_out = fitted.log_density(given.take(rows), at, training_rows=rows)
        expected = np.array([density_by_hand(donors, given, i, value, i) for i, value in zip(rows, at)])
        assert_same_logs(left_out, expected, 1e-10)  # the margin leaves a row out by a difference
        supported = [support_by_hand(donors, given, i, v, number) for i, v in zip(rows, at)]
        assert fitted.supports(given.take(rows), at).tolist() == supported


def support_by_hand(donors, given, i, value, between):
    """Return whether the pool has a value equal to this, or (`between`) one within its median gap, in its range.

    A training row that occurs several times in the pool counts once.
    """
    flags = [
        values if donors.decider else np.isnan(values)
        for _, values in leaves_of(donors.decider or donors.forest, given, i)
    ]
    absent = np.concatenate(flags).astype(bool)
    if np.isnan(value) or absent.all():
        return bool(np.isnan(value) and absent.any() and donors.margin.missing_share)
    pool = {row: v for rows, values in leaves_of(donors.forest, given, i) for row, v in zip(rows, values)}
    values = np.sort([v for v in pool.values() if not np.isnan(v)])
    if values.size == 0 or not values[0] <= value <= values[-1]:
        return False
    gap = np.sort(np.diff(values))[(values.size - 2) // 2] if between and values.size > 2 else 0.0
    return bool(np.abs(values - value).min() <= gap)


def test_row_that_stops_in_an_inner_node_has_the_donors_of_that_node():
    """In rpart, a row stays in a node with equally large children if no rule sends it to a side."""
    frame = pd.DataFrame({"x": np.arange(40.0), "y": np.where(np.arange(40) < 20, 0.0, 50.0) + np.arange(40) / 7.0})
    fitted, given, values = fit(frame, CartSampler(dialect="rpart"))
    row = given.take(np.zeros(3, dtype=int))
    row.matrix[:] = np.nan
    assert fitted.tree_.route(row.matrix).tolist() == [0, 0, 0]
    assert fitted.tree_.n_leaves == 2
    at = np.array([values[3], values[30], 30.0])
    assert fitted.supports(row, at).tolist() == [True, True, False]
    expected = [density_by_hand(fitted.donors_, row, 0, value) for value in at]
    assert_same_logs(fitted.log_density(row, at), np.array(expected), 1e-12)


def test_equal_donors_have_the_bandwidth_of_the_margin():
    """Regression: the mean of three times 0.1 is not 0.1, which gave a leaf of equal donors a bandwidth of 1e-17."""
    y = np.append(np.random.default_rng(3).normal(50.0, 5.0, 997), [0.1, 0.1, 0.1])
    frame = pd.DataFrame({"x": np.where(y < 1.0, 1.0, 0.0), "y": y})
    fitted, given, values = fit(frame, CartSampler(min_leaf=3, max_depth=1))
    assert np.std([0.1, 0.1, 0.1]) > 0.0
    width = fitted.donors_.margin.bandwidth
    expected = (3 * stats.norm.pdf(0.0) / width + 5 * margin_share(fitted.donors_.margin, 0.1, 0)) / 8
    np.testing.assert_allclose(np.exp(fitted.log_density(given, values)[-3:]), expected, rtol=1e-12)


# ---- leaves with many donors


def huge(shape, n):
    rng = np.random.default_rng(4)
    return {
        "normal": lambda: rng.normal(size=n),
        "cauchy": lambda: rng.standard_cauchy(n),
        "clusters": lambda: np.concatenate([rng.normal(size=n - 601), rng.normal(400.0, 1e-3, 600), [1e4]]),
        "rounded": lambda: np.round(rng.gamma(2.0, 40.0, n), 1),
        "lognormal": lambda: rng.lognormal(0.0, 2.0, n),
    }[shape]()


@pytest.mark.parametrize("shape", ["normal", *nightly("cauchy", "clusters", "rounded", "lognormal")])
def test_polynomial_equals_the_sum_of_all_kernels(shape):
    """In a leaf of 4000 donors: at donors, beside them, in gaps, and far outside."""
    n = 4000
    y = huge(shape, n)
    fitted, given, values = fit(pd.DataFrame({"x": np.zeros(n), "y": y}), CartSampler(min_leaf=n), x="numeric")
    donors = fitted.donors_
    assert donors.smoothing.cells.centre.size > 10
    rng = np.random.default_rng(5)
    sample, extremes = rng.choice(n, 60), [int(values.argmin()), int(values.argmax())]
    rows = np.concatenate([sample, extremes])
    width = donors.smoothing.bandwidth[0]
    wide = rng.uniform(values.min() - 60 * width, values.max() + 60 * width, rows.size)
    for at in (values[rows], values[rows] + width * rng.normal(0.0, 1.5, rows.size), wide):
        expected = [density_by_hand(donors, given, 0, value) for value in at]
        assert_same_logs(fitted.log_density(given.take(rows), at), np.array(expected), 1e-12)
        expected = [density_by_hand(donors, given, 0, value, row) for row, value in zip(rows, at)]
        found = fitted.log_density(given.take(rows), at, training_rows=rows)
        assert_same_logs(found, np.array(expected), 1e-10)


def test_kernel_of_an_outlier_is_left_out_exactly():
    """The remainder of a sum of kernels is e^-72 of it: a difference of the two sums would be rounding error."""
    y = np.append(np.random.default_rng(6).normal(size=999), 0.0)
    width = 0.0
    for _ in range(3):  # the outlier moves the bandwidth a little
        y[-1] = y[:-1].max() + 12.0 * (width or 0.2)
        width = spread_rule(y)
    fitted, given, values = fit(pd.DataFrame({"x": 0.0, "y": y}), CartSampler(min_leaf=1000), x="numeric")
    found = fitted.log_density(given.take(np.array([999])), values[[999]], training_rows=np.array([999]))
    remaining = stats.norm.pdf(y[-1], y[:-1], spread_rule(y)).sum()
    assert margin_share(fitted.donors_.margin, y[-1], 1) == pytest.approx(0.0, abs=1e-6)
    expected = (remaining + 5 * margin_share(fitted.donors_.margin, y[-1], 1)) / (999 + 5)
    assert 0.0 < remaining < 1e-25
    assert_same_logs(found, np.array([expected]), 1e-10)


@pytest.mark.slow
def test_memory_does_not_grow_with_values_times_donors():
    """A leaf of 40,000 donors and 200,000 values: their product in bytes is 60 GiB."""
    rng = np.random.default_rng(7)
    n, n_values = 40_000, 200_000
    y = rng.normal(size=n)
    fitted, given, values = fit(pd.DataFrame({"x": np.zeros(n), "y": y}), CartSampler(min_leaf=n), x="numeric")
    rows = rng.integers(0, n, n_values)
    new = np.where(rng.random(n_values) < 0.5, values[rows], rng.normal(size=n_values))
    many = given.take(rows)
    tracemalloc.start()
    try:
        found = fitted.log_density(many, new)
        left_out = fitted.log_density(many, new, training_rows=rows)
        supported = fitted.supports(many, new)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6
    some = rng.choice(n_values, 30)
    expected = [density_by_hand(fitted.donors_, given, 0, new[i]) for i in some]
    assert_same_logs(found[some], np.array(expected), 1e-12)
    expected = [density_by_hand(fitted.donors_, given, 0, new[i], rows[i]) for i in some]
    assert_same_logs(left_out[some], np.array(expected), 1e-10)
    assert supported.tolist()[:30] == [
        support_by_hand(fitted.donors_, given, 0, value, between=True) for value in new[:30]
    ]


# ---- prepared tables


def test_runs_do_not_change_the_order_of_the_draws():
    frame = make("ties", missing=True)
    fitted, given, values = fit(frame, SAMPLERS["forest"])
    before = fitted.sample(given, RowStreams.from_seed(1, N))
    order = [part.copy() for part in fitted.donor_values_]
    fitted.log_density(given, values, training_rows=np.arange(N))
    fitted.supports(given, values)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(order, fitted.donor_values_))
    np.testing.assert_array_equal(fitted.sample(given, RowStreams.from_seed(1, N)), before)


def test_unseen_row_leaves_nothing_out():
    frame = make("levels", missing=False)
    fitted, given, values = fit(frame, SAMPLERS["cart"])
    beyond = fitted.log_density(given, values, training_rows=np.full(N, 10 * N))
    expected = [
        density_by_hand(fitted.donors_, given, i, value, 10 * N) for i, value in enumerate(values)
    ]  # the margin has one row less nevertheless
    assert_same_logs(beyond, np.array(expected), 1e-12)
