"""The mixture: weights, means and densities compared with scipy; EM; draws and restrictions."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

import mcce
from mcce import Within
from mcce.rng import RowStreams
from mcce.samplers.mixture.model import Seen, fit_mixture
from mcce.table import Schema, Table
from tests.marks import nightly, nightly_rows


def frame_of(n=600, seed=0):
    """Return two groups that differ in every column, with a point mass, missing values and levels."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.4
    x = rng.normal(np.where(group, 4.0, 0.0), 1.0)
    y = np.where(group, -1.0, 0.8) * x + rng.normal(size=n)
    y = np.where(rng.random(n) < np.where(group, 0.5, 0.1), 0.0, y)
    job = np.where(group, rng.choice(["a", "b", "c"], n, p=[0.8, 0.1, 0.1]), rng.choice(["a", "b", "c"], n))
    z = pd.Series(rng.poisson(np.where(group, 9.0, 2.0))).mask(rng.random(n) < np.where(group, 0.3, 0.05))
    return pd.DataFrame({"x": x, "job": job, "y": y, "z": z}), group


def table_of(frame):
    return Schema.from_data(frame).encode(frame)


def encode(frame):
    """Return all columns but the last as givens, and the last as the target."""
    table = table_of(frame)
    last = len(table.features) - 1
    return Table(table.features[:last], np.asfortranarray(table.matrix[:, :last])), table.column(last)


@pytest.fixture(scope="module")
def fitted():
    frame, group = frame_of()
    table = table_of(frame)
    return fit_mixture(table, 1, 4), table, group


def by_scipy(mixture, seen, i):
    """Return log w_k + log density of the observed part of row i, by component."""
    known = np.flatnonzero(~np.isnan(seen.scores[i]))
    found = np.log(mixture.weights)
    for k in range(mixture.weights.size):
        for j, symbol in enumerate(seen.symbols[i]):
            if symbol >= 0:
                found[k] += np.log(mixture.shares[k, mixture.first[j] + symbol])
        if known.size:
            normal = stats.multivariate_normal(mixture.means[k, known], mixture.covariances[k][np.ix_(known, known)])
            found[k] += normal.logpdf(seen.scores[i, known])
    return found


@pytest.mark.slow
def test_log_joint_matches_scipy_for_any_known_columns(fitted):
    mixture, table, _ = fitted
    for known in ([0, 1, 2, 3], [0, 2], [1], [3, 0], []):
        seen = mixture.see(table.matrix[:40], known)
        joint = mixture.log_joint(seen)
        for i in range(40):
            np.testing.assert_allclose(joint[i], by_scipy(mixture, seen, i), rtol=1e-9)


def test_conditional_score_is_the_ratio_of_joint_densities(fitted):
    """For x, which has scores only: p(z | rest) = sum_k joint with z / sum_k joint without it."""
    mixture, table, _ = fitted
    rows = table.matrix[:30]
    given = mixture.conditional(rows, [1, 2, 3], 0)
    without = logsumexp(mixture.log_joint(mixture.see(rows, [1, 2, 3])), axis=1)
    for z in (-2.0, 0.1, 1.5):
        seen = mixture.see(rows, [1, 2, 3])
        scores = seen.scores.copy()
        scores[:, 0] = z
        with_it = logsumexp(mixture.log_joint(Seen(seen.symbols, scores)), axis=1)
        density = (np.exp(given.log_weights) * stats.norm.pdf(z, given.means, given.sds)).sum(axis=1)
        np.testing.assert_allclose(np.log(density), with_it - without, rtol=1e-9)


def test_marginal_of_some_columns_is_the_mixture_without_the_others(fitted):
    mixture, table, _ = fitted
    part = mixture.take([3, 0])
    whole = mixture.conditional(table.matrix[:50], [3], 0)
    alone = part.conditional(table.matrix[:50][:, [3, 0]], [0], 1)
    values = table.matrix[50:100, 0]
    np.testing.assert_allclose(alone.log_density(values), whole.log_density(values), rtol=1e-12)


@pytest.mark.parametrize("target", [1, 3, *nightly(0, 2)])
def test_densities_sum_to_one(fitted, target):
    """Over all levels, numbers with point mass, a fine grid of the others, and a missing value."""
    mixture, table, _ = fitted
    others = [j for j in range(4) if j != target]
    column = mixture.columns[target]
    for i in (0, 3, 11):
        row = table.matrix[[i]]

        def density(values, row=row):
            values = np.atleast_1d(np.asarray(values, dtype=float))
            return np.exp(mixture.conditional(np.repeat(row, values.size, 0), others, target).log_density(values))

        total = density(np.nan)[0]
        if target == 1:
            total += density([0, 1, 2]).sum()
        else:
            known = np.unique(table.matrix[:, target][~np.isnan(table.matrix[:, target])])
            atoms = known if column.base_measure == "counting" else column.classes
            total += density(atoms).sum()
            if column.base_measure != "counting":
                grid = np.linspace(known[0] - 3.0, known[-1] + 3.0, 40_001)
                total += integrate.trapezoid(np.where(np.isin(grid, atoms), 0.0, density(grid)), grid)
        assert total == pytest.approx(1.0, abs=2e-3)


def test_em_finds_the_groups(fitted):
    mixture, table, group = fitted
    joint = mixture.log_joint(mixture.see(table.matrix))
    component = joint.argmax(axis=1)
    table = pd.crosstab(component, group)
    assert table.max(axis=1).sum() > 0.95 * group.size  # each component is of one group
    of_group = table.to_numpy().argmax(axis=1)
    assert mixture.weights[of_group == 1].sum() == pytest.approx(0.4, abs=0.05)


def test_correlations_are_found_with_missing_values():
    """Half of x is missing, more often where y is low: EM uses the observed y."""
    rng = np.random.default_rng(2)
    x, y = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 4000).T
    gone = rng.random(4000) < 1.0 / (1.0 + np.exp(3.0 * y))
    mixture = fit_mixture(table_of(pd.DataFrame({"x": np.where(gone, np.nan, x), "y": y})), 1, 1)
    s = mixture.covariances[0]
    slope = s[0, 1] / s[1, 1] / np.sqrt(s[0, 0] - s[0, 1] ** 2 / s[1, 1])
    assert slope == pytest.approx(0.8 / 0.6, rel=0.12)


@pytest.mark.parametrize(("groups", "least", "most"), [(1, 1, 2), *nightly_rows((3, 4, 8))])
def test_number_of_components_is_chosen_on_new_rows(groups, least, most):
    rng = np.random.default_rng(3)
    centre = np.array([[0, 0], [6, 0], [0, 6]])[rng.integers(0, groups, 900)]
    x = centre + rng.normal(size=(900, 2))
    mixture = fit_mixture(table_of(pd.DataFrame(x, columns=["a", "b"])), 1)
    assert least <= mixture.weights.size <= most
    again = fit_mixture(table_of(pd.DataFrame(x, columns=["a", "b"])), 1)
    np.testing.assert_array_equal(again.covariances, mixture.covariances)


def test_several_columns_are_drawn_together(fitted):
    """Draws of x, y and z given the job are distributed like the rows with it, and given values are kept."""
    mixture, table, _ = fitted
    rows = np.repeat(table.matrix[table.matrix[:, 1] == 0], 20, axis=0)
    drawn = rows.copy()
    for j, known in ((0, [1]), (2, [1, 0]), (3, [1, 0, 2])):
        drawn[:, j] = mixture.conditional(drawn, known, j).draw(RowStreams.from_seed(1, len(rows)).child("column", j))
    np.testing.assert_array_equal(drawn[:, 1], rows[:, 1])
    assert (drawn[:, 2] == 0.0).mean() == pytest.approx((rows[:, 2] == 0.0).mean(), abs=0.05)
    assert np.isnan(drawn[:, 3]).mean() == pytest.approx(np.isnan(rows[:, 3]).mean(), abs=0.05)
    assert stats.ks_2samp(drawn[::20, 0], rows[::20, 0]).pvalue > 1e-3
    for a, b in ((0, 2), (0, 3), (2, 3)):
        both = [pd.DataFrame(part[:, [a, b]]).corr("spearman").iloc[0, 1] for part in (drawn, rows)]
        assert both[0] == pytest.approx(both[1], abs=0.1)


@pytest.mark.parametrize("target", ["job", "z", *nightly("x", "y")])
def test_restricted_draws_are_truncated(target):
    frame, _ = frame_of()
    frame = frame[[*(c for c in frame if c != target), target]]
    given, column = encode(frame)
    fitted = mcce.MixtureSampler(max_components=4).fit(given, column)
    n = 8000
    row = Table(given.features, np.repeat(given.matrix[[5]], n, 0))
    may = np.ones(n, dtype=bool)
    if target == "job":
        within = Within(levels=np.tile([False, True, True], (n, 1)), missing=may, weighted=True)
    else:
        low, high = np.nanquantile(column.values, [0.4, 0.8])
        within = Within(low=np.full(n, low), high=np.full(n, high), missing=may, weighted=True)
    free = fitted.sample(row, RowStreams.from_seed(1, n))
    found = fitted.sample_within(row, RowStreams.from_seed(2, n), within)
    inside = free[within.allows(free)]
    assert not found.rejected.any()
    assert within.allows(found.values).all()
    assert np.exp(found.log_mass[0]) == pytest.approx(inside.size / n, abs=0.02)
    assert np.isnan(found.values).mean() == pytest.approx(np.isnan(inside).mean(), abs=0.03)
    a, b = (np.sort(part[~np.isnan(part)]) for part in (inside, found.values))
    at = np.unique(np.concatenate([a, b]))
    gap = [np.searchsorted(part, at, side="right") / part.size for part in (a, b)]
    assert np.abs(gap[0] - gap[1]).max() < 0.05
    far = Within(low=np.full(3, 1e6)) if target != "job" else Within(levels=np.zeros((3, 3), dtype=bool))
    nothing = fitted.sample_within(row.take(np.arange(3)), RowStreams.from_seed(2, 3), far)
    assert nothing.rejected.all()


def test_restricted_draws_come_from_feasible_components(fitted):
    """For x alone, at 0 and 4: above 3 there is hardly any mass of the first component, which has more rows."""
    mixture, _, _ = fitted
    n = 6000
    x = mixture.conditional(np.empty((n, 4)), [], 0)
    free = x.draw(RowStreams.from_seed(1, n))
    found = x.draw_within(RowStreams.from_seed(2, n), Within(low=np.full(n, 3.0)))
    assert np.exp(found.log_mass[0]) == pytest.approx((free >= 3.0).mean(), abs=0.025)
    assert stats.ks_2samp(found.values, free[free >= 3.0]).pvalue > 1e-4


def test_missing_values_are_drawn_by_their_probability(fitted):
    mixture, table, group = fitted
    n = 6000
    row = table.matrix[np.flatnonzero(group)[[0]]]
    z = mixture.conditional(np.repeat(row, n, 0), [0, 1, 2], 3)
    missing = np.exp(z.log_density(np.full(n, np.nan)))[0]
    assert missing > 0.2
    drawn = np.isnan(z.draw(RowStreams.from_seed(1, n)))
    assert stats.binomtest(int(drawn.sum()), n, missing).pvalue > 1e-4


@pytest.mark.slow
def test_draws_follow_the_density():
    frame, _ = frame_of()
    given, column = encode(frame[["x", "job", "z", "y"]])
    fitted = mcce.MixtureSampler(max_components=4).fit(given, column)
    n = 20_000
    drawn = fitted.sample(Table(given.features, np.repeat(given.matrix[[7]], n, 0)), RowStreams.from_seed(1, n))
    zero = np.exp(fitted.log_density(given.take([7]), np.zeros(1)))[0]
    assert (drawn == 0.0).mean() == pytest.approx(zero, abs=0.015)
    grid = np.linspace(-8, 8, 4001)
    density = np.exp(fitted.log_density(Table(given.features, np.repeat(given.matrix[[7]], grid.size, 0)), grid))
    below = np.cumsum(np.where(grid == 0.0, 0.0, density)) * (grid[1] - grid[0])
    others = np.sort(drawn[drawn != 0.0])
    at = np.searchsorted(others, grid) / others.size
    assert np.abs(at - below / below[-1]).max() < 0.05


@pytest.mark.slow
def test_unseen_values_are_uninformative():
    """A missing number, or a level without rows, where the training rows have none."""
    frame, _ = frame_of()
    frame = frame[["x", "job", "y"]].assign(job=pd.Categorical(frame["job"], ["a", "b", "c", "never"]))
    given, column = encode(frame)
    fitted = mcce.MixtureSampler(max_components=2).fit(given, column)
    rows = given.matrix[:2].copy()
    rows[0, 0], rows[0, 1] = np.nan, 3
    unknown = fitted.log_density(Table(given.features, rows[:1]), np.ones(1))
    marginal = fitted.mixture_.conditional(rows[:1].repeat(1, 0), [], 2).log_density(np.ones(1))
    np.testing.assert_allclose(unknown, marginal, rtol=1e-12)
    levels, job = encode(frame[["x", "y", "job"]])
    of_levels = mcce.MixtureSampler(max_components=2).fit(levels, job)
    assert np.isneginf(of_levels.log_density(levels.take([0]), np.array([3.0])))
    assert not of_levels.supports(levels.take([0]), np.array([3.0]))
