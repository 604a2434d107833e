"""Plausibility keeps its level on new rows of known processes and detects inconsistent rows."""

from __future__ import annotations

import functools
import math

import numpy as np
import pandas as pd
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from mcce.plausibility import kernels, score
from mcce.plausibility.score import NEAREST, Plausibility, Scale
from mcce.storage.state import from_state, to_state
from mcce.table import Schema
from tests.marks import examples, nightly, nightly_rows

FLOOR = 0.05
N_FRESH = 10_000


def gaussian(n, rng):
    """Five numbers with correlation 0.64."""
    return pd.DataFrame(0.8 * rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=(n, 5)), columns=list("abcde"))


def categorical(n, rng):
    """Two dependent columns of levels, one with rare levels, one ordered."""
    g = rng.integers(0, 4, n)
    h = np.where(rng.random(n) < 0.7, g, rng.integers(0, 4, n))
    return pd.DataFrame(
        {
            "g": pd.Categorical.from_codes(g, list("wxyz")),
            "h": pd.Categorical.from_codes(h, list("wxyz")),
            "i": pd.Categorical.from_codes(rng.choice(6, n, p=[0.5, 0.2, 0.15, 0.1, 0.04, 0.01]), list("abcdef")),
            "j": pd.Categorical.from_codes(rng.integers(0, 3, n), list("123"), ordered=True),
        }
    )


def atoms(n, rng):
    """A skewed number with 40 per cent at 0, one with missing values, and an integer."""
    z = rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.4, 0.0, np.exp(z)),
            "y": np.where(rng.random(n) < 0.15, np.nan, z + rng.normal(size=n)),
            "k": np.round(2 * z).clip(-3, 3),
        }
    )


def binary(n, rng):
    """Four dependent columns of 0 and 1: sixteen different rows in all."""
    z = 0.8 * rng.normal(size=n)
    return pd.DataFrame({f"b{j}": (z + rng.normal(size=n) > 0.5 * j - 0.5).astype(float) for j in range(4)})


def fit(X, mutable=None, n_jobs=1, also=None, weights=None):
    schema = Schema.from_data(X if also is None else pd.concat([X, also]))
    mutable = np.arange(len(schema)) if mutable is None else np.array([schema.names.index(name) for name in mutable])
    return Plausibility.fit(schema.encode(X).matrix, schema.features, mutable, n_jobs, weights=weights), schema


def quantiles(scorer, schema, X):
    matrix = schema.encode(X).matrix
    return scorer.quantile(scorer.score(matrix, scorer.fold_of(matrix)))


@functools.cache
def fitted(process, n, seed):
    """A fitted scorer of a process, the quantiles of new rows, and those rows."""
    rng = np.random.default_rng([seed, n])
    X, fresh = process(n, rng), process(N_FRESH, rng)
    scorer, schema = fit(X, also=fresh)
    return scorer, schema, quantiles(scorer, schema, fresh), fresh


# ---------------------------------------------------------------- level


def four_deviations(n, floor):
    """The error of the share of new rows below the floor: from drawing them and the calibration rows."""
    return 4 * math.sqrt(floor * (1 - floor) * (1 / n + 1 / N_FRESH))


@pytest.mark.parametrize("n", [200, *nightly(2_000, 12_000)])
@pytest.mark.parametrize("process", [categorical, atoms, *nightly(gaussian)])
def test_floor_equals_the_share_of_rejected_new_rows(process, n):
    _, _, found, _ = fitted(process, n, 0)
    for floor in (0.01, FLOOR, 0.1, 0.2):  # level of each comparison: 6e-5
        assert abs((found < floor).mean() - floor) < four_deviations(n, floor)


@pytest.mark.parametrize(("n", "seed"), [(200, 1), (2_000, 0), *nightly_rows((12_000, 0), (12_000, 2))])
def test_rejection_rate_is_not_higher_with_many_equal_rows(n, seed):
    _, _, found, _ = fitted(binary, n, seed)
    for floor in (FLOOR, 0.2):
        assert (found < floor).mean() - floor < four_deviations(n, floor)


def test_equal_rows_are_calibrated_like_an_equal_factual():
    X = binary(500, np.random.default_rng(3))
    scorer, schema = fit(X)
    matrix = schema.encode(X).matrix
    scores = np.sort(
        scorer.score(matrix, scorer.fold_of(matrix))
    )  # a row counts itself, where calibration leaves it out
    np.testing.assert_allclose(scores, scorer.calibration.values, atol=3 / 500)


@pytest.mark.slow
def test_count_weights_keep_the_level_of_the_population():
    rng = np.random.default_rng(1)
    X, fresh = gaussian(6_000, rng), gaussian(N_FRESH, rng)
    rare = X["a"] > 0
    kept = ~rare | (rng.random(len(X)) < 0.25)
    weights = np.where(rare, 4.0, 1.0)[kept]
    found = quantiles(*fit(X[kept], also=fresh, weights=weights), fresh)
    assert abs((found < 0.1).mean() - 0.1) < four_deviations(1_000, 0.1)  # the effective sample size of unequal weights


# ---------------------------------------------------------------- power


def shuffled(X, rng):
    return pd.DataFrame({name: X[name].to_numpy()[rng.permutation(len(X))] for name in X})


def margin_quantiles(X, rows):
    """Quantiles of a score by single columns: the sum of the log shares of ten bins or levels."""
    total, reference = np.zeros(len(rows)), np.zeros(len(X))
    for name in X:
        edges = np.unique(X[name].quantile(np.linspace(0, 1, 11)))[1:-1]
        counts = np.bincount(np.searchsorted(edges, X[name]), minlength=edges.size + 1) + 1.0
        total += np.log(counts[np.searchsorted(edges, rows[name])] / len(X))
        reference += np.log(counts[np.searchsorted(edges, X[name])] / len(X))
    return (np.searchsorted(np.sort(reference), total, side="right") + 1) / (len(X) + 1)


@pytest.mark.slow
def test_inconsistent_rows_are_rejected_more_often_than_by_margins():
    scorer, schema, _, fresh = fitted(gaussian, 2_000, 0)
    wrong = shuffled(fresh, np.random.default_rng(1))
    blind = (margin_quantiles(fresh.iloc[:5000], wrong) < FLOOR).mean()
    assert blind < 0.08
    assert (quantiles(scorer, schema, wrong) < FLOOR).mean() > 0.3


def test_one_corrupted_cell_is_detected():
    """A sparse row is one; boosted trees on whole rows rejected 13 to 15 per cent of them."""
    rng = np.random.default_rng(9)
    scorer, schema, _, fresh = fitted(gaussian, 2_000, 0)
    column = rng.integers(0, 5, len(fresh))
    wrong = fresh.mask(np.arange(5) == column[:, None], shuffled(fresh, rng))
    assert (quantiles(scorer, schema, wrong) < FLOOR).mean() > 0.15


def xor(n, rng, wrong=0.005):
    a, b = rng.integers(0, 2, (2, n))
    c = a ^ b ^ (rng.random(n) < wrong)
    return pd.DataFrame({"a": a, "b": b, "c": c, "noise": rng.normal(size=n)}).astype(float)


def test_combination_hidden_from_margins_and_pairs_is_detected():
    rng = np.random.default_rng(0)
    scorer, schema = fit(xor(2_000, rng), mutable=["c", "noise"])
    assert (quantiles(scorer, schema, xor(2_000, rng, wrong=1)) < FLOOR).mean() > 0.95
    assert (quantiles(scorer, schema, xor(2_000, rng, wrong=0)) < FLOOR).mean() < 0.06


def test_rare_values_are_less_plausible_than_common_ones():
    rng = np.random.default_rng(0)

    def rows(n, levels):
        return pd.DataFrame({"job": pd.Categorical(levels, categories=["usual", "rare"]), "x": rng.normal(size=n)})

    scorer, schema = fit(rows(2_000, np.where(np.arange(2_000) % 500 == 0, "rare", "usual")))
    assert (quantiles(scorer, schema, rows(500, ["rare"] * 500)) < FLOOR).mean() > 0.5
    far = rows(500, ["usual"] * 500).assign(x=rng.choice([-4.0, 4.0], 500))
    assert (quantiles(scorer, schema, far) < FLOOR).mean() > 0.9


def job_and_salary(n, rng):
    job = rng.random(n) < 0.8
    salary = np.where(job, np.round(np.exp(10.3 + 0.3 * rng.normal(size=n)), -2), 0.0)
    likely = rng.normal(size=(n, 3))
    frame = pd.DataFrame({"job": pd.Categorical(np.where(job, "yes", "no")), "salary": salary})
    return frame.join(pd.DataFrame(likely, columns=list("abc")))


def test_likely_cell_does_not_compensate_for_an_unlikely_one():
    rng = np.random.default_rng(2)
    scorer, schema = fit(job_and_salary(3_000, rng))
    wrong = job_and_salary(500, rng)
    wrong = wrong[wrong["job"] == "no"].assign(salary=30_000.0, a=0.0, b=0.0, c=0.0)
    assert (quantiles(scorer, schema, wrong) < FLOOR).all()
    right = wrong.assign(job=pd.Categorical(["yes"] * len(wrong), categories=["no", "yes"]))
    assert (quantiles(scorer, schema, right) >= FLOOR).mean() > 0.9


def ring(n, rng):
    turn, radius = 2 * np.pi * rng.random(n), 1 + 0.05 * rng.normal(size=n)
    return pd.DataFrame({"x": radius * np.cos(turn), "y": radius * np.sin(turn)})


def test_gap_hidden_from_means_is_detected():
    scorer, schema = fit(ring(3_000, np.random.default_rng(3)))
    inside = pd.DataFrame(np.random.default_rng(4).uniform(-0.5, 0.5, (500, 2)), columns=["x", "y"])
    assert (quantiles(scorer, schema, inside) < FLOOR).all()


def test_values_outside_the_range_fail_with_decreasing_scores():
    rng = np.random.default_rng(5)
    scorer, schema = fit(gaussian(2_000, rng))
    row = gaussian(1, rng) * 0.0
    out = pd.concat([row.assign(a=value) for value in (0.0, 50.0, 1e9)], ignore_index=True)
    matrix = schema.encode(out).matrix
    scores = scorer.score(matrix, np.zeros(3, dtype=np.int64))
    assert scores[0] > scores[1] >= scores[2]
    assert (scorer.quantile(scores)[1:] < 0.01).all()


def test_distance_matches_a_brute_force_search_for_any_call():
    rng = np.random.default_rng(6)
    X = atoms(600, rng).join(categorical(600, rng))
    scorer, schema = fit(X)
    factuals = schema.encode(X.iloc[:20]).matrix
    rows = np.repeat(factuals, 5, axis=0)
    for i in range(len(rows)):
        j = i % rows.shape[1]
        rows[i, j] = schema.encode(X).matrix[i, j]
    made_from = np.repeat(factuals, 5, axis=0)
    fold = scorer.fold_of(made_from)
    found = scorer.distance(rows, fold, scorer.origins(factuals, np.repeat(np.arange(20), 5)))
    np.testing.assert_allclose(found, scorer.distance(rows, fold), atol=1e-12)
    for i in range(0, len(rows), 7):
        others = scorer.neighbours[fold[i]].T
        steps = np.abs(others - rows[i]) * scorer.scale
        steps = np.where(scorer.scale == 0, (others != rows[i]).astype(float), steps)
        both = np.isnan(others) & np.isnan(rows[i])
        steps = np.where(both, 0.0, np.where(np.isnan(others) | np.isnan(rows[i]), 1.0, steps))
        assert found[i] == pytest.approx(np.sort(steps.sum(axis=1))[:NEAREST].mean(), abs=1e-10)


def test_kernels_are_called_only_for_folds_with_rows(monkeypatch):
    rng, called = np.random.default_rng(1), []
    scorer, _ = fit(gaussian(300, rng))
    rows = gaussian(3, rng).to_numpy()
    for name in ("score_cells", "mean_of_nearest"):
        kernel = getattr(score, name)
        monkeypatch.setattr(score, name, lambda *args, kernel=kernel, name=name: (called.append(name), kernel(*args)))
    assert len(scorer.conditionals) > 1
    assert np.isfinite(scorer.score(rows, np.full(3, 1))).all()
    assert called == ["score_cells", "mean_of_nearest"]


@pytest.mark.slow
def test_known_parts_of_source_rows_do_not_change_the_score():
    rng = np.random.default_rng(8)
    common = rng.standard_normal(400)
    X = pd.DataFrame({f"x{j}": np.round(common + rng.standard_normal(400), 1) for j in range(66)})
    X.loc[rng.random(400) < 0.1, "x3"] = np.nan
    scorer, schema = fit(X)  # with as many trees
    matrix = np.ascontiguousarray(schema.encode(X).matrix)
    factuals, places = matrix[:20].copy(), rng.permutation(np.repeat(np.arange(20), 6))
    factuals[4, 5] = 99.0  # out of range
    fold = scorer.fold_of(factuals)[places]
    for n_changed, kept in [(1, 1), (2, 20), (5, 3), (40, 20)]:
        rows = factuals[places]
        for row in rows:
            columns = rng.choice(rows.shape[1], n_changed, replace=False)
            row[columns] = matrix[rng.integers(400), columns]
        rows[7, 0] = -99.0
        cells = scorer.inner(rows, fold)
        distance = scorer.distance(rows, fold)
        origins = scorer.origins(factuals.copy(), places, kept=kept)
        for _ in range(2):  # the second call uses cached results
            np.testing.assert_array_equal(scorer.inner(rows, fold, origins), cells)
            np.testing.assert_allclose(scorer.distance(rows, fold, origins), distance, atol=1.1e-10)
        scorer.move_origins(origins, places[:1], rows[:1], fold[:1])
        np.testing.assert_array_equal(origins.rows[places[0]], rows[0])
        np.testing.assert_array_equal(scorer.inner(rows, fold, origins), cells)
        np.testing.assert_allclose(scorer.distance(rows, fold, origins), distance, atol=1.1e-10)


@pytest.mark.parametrize("n_changed", [1, 3, 5])
def test_rows_near_enough_may_score_higher_and_others_score_their_distance(n_changed):
    rng = np.random.default_rng(9)
    X = atoms(600, rng).join(categorical(600, rng))
    scorer, schema = fit(X)
    matrix, places = np.ascontiguousarray(schema.encode(X).matrix), np.repeat(np.arange(20), 30)
    rows, fold = matrix[places], scorer.fold_of(matrix[:20])[places]
    for row in rows:
        columns = rng.choice(rows.shape[1], n_changed, replace=False)
        row[columns] = matrix[rng.integers(600), columns]
    origins = scorer.origins(matrix[:20], places, kept=20)
    exact = scorer.distance(rows, fold)
    enough = np.where(rng.random(exact.size) < 0.1, np.inf, exact * rng.uniform(0.5, 3.0, exact.size))
    found = scorer.distance(rows, fold, origins, enough)
    is_near = exact <= enough
    np.testing.assert_allclose(found[~is_near], exact[~is_near], atol=1.1e-10)
    assert (exact[is_near] <= found[is_near] + 1.1e-10).all()
    assert (found[is_near] <= enough[is_near] + 1.1e-10).all()
    assert (found > exact + 1e-6).any()  # the cache was used
    for some in (slice(None), slice(400)):  # cached results have no effect
        np.testing.assert_allclose(scorer.distance(rows[some], fold[some], origins[some]), exact[some], atol=1.1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_no_row_beyond_the_farthest_has_the_lowest_score(weighted):
    rng = np.random.default_rng(10)
    scorer, _ = fit(gaussian(300, rng), weights=rng.exponential(size=300) if weighted else None)
    distance = np.append(-scorer.nearness.values, [0.0, 1e6])
    likely = scorer.join(np.full(302, 9.0), distance, scorer.origins(np.zeros((302, 5))))
    for least in [-np.inf, 0.0, 1e-3, 0.01, 0.3, 1.0, 1.5, 2.0, 2.5, *likely]:
        np.testing.assert_array_equal(likely >= least, distance <= scorer.farthest(least))


# ---------------------------------------------------------------- the row as a whole


def rare_flags(n, rng):
    return pd.DataFrame({f"f{j}": np.where(rng.random(n) < 0.1, "off", "on") for j in range(8)})


def test_several_mildly_unlikely_cells_are_jointly_rare():
    """Three of eight flags are off in 4 % of the rows; each alone is as likely as in other rows."""
    rng = np.random.default_rng(0)
    scorer, schema = fit(rare_flags(3_000, rng))
    fresh = rare_flags(4_000, rng)
    n_off, found = (fresh == "off").sum(axis=1).to_numpy(), quantiles(scorer, schema, fresh)
    assert (found[n_off >= 3] < FLOOR).mean() > 0.6
    assert (found[n_off <= 1] < FLOOR).mean() < 0.02


def test_number_that_contradicts_a_collinear_one_is_rejected():
    """The wrong values are 20 standard deviations off the regression, and in the same leaves of a tree."""
    rng = np.random.default_rng(1)
    radius = rng.normal(14.0, 3.5, 600)
    X = pd.DataFrame(
        {"radius": radius, "perimeter": 6.5 * radius + rng.normal(size=600), "other": rng.normal(size=600)}
    )
    scorer, schema = fit(X)
    middle = X[(X["radius"] - 14).abs() < 4].head(100)
    assert (quantiles(scorer, schema, middle) < FLOOR).mean() < 0.08
    shift = rng.choice([-20.0, 20.0], 100)
    assert (quantiles(scorer, schema, middle.assign(perimeter=middle["perimeter"] + shift)) < FLOOR).mean() > 0.95


# ---------------------------------------------------------------- scores of changed cells


def cell_shares(scorer, row, fold):
    """The answer of each tree of a fold for a row, by a walk in plain Python."""
    trees, found = scorer.conditionals[fold], []
    bins = scorer.binning.encode(row[None])[:, 0]
    for root, target in zip(trees.roots, trees.targets, strict=True):
        node = root
        while trees.column[node] >= 0:
            value, cut = bins[trees.column[node]], trees.cut[node]
            goes_left = value == cut if trees.single[node] else value <= cut
            node = trees.left[node] + (not goes_left)
        found.append(trees.share[trees.left[node], bins[target]])
    return np.array(found)


def differs(x, y):
    return x != y and not (np.isnan(x) and np.isnan(y))


@pytest.mark.slow
def test_kept_values_count_only_if_they_become_less_likely():
    rng = np.random.default_rng(11)
    X = atoms(600, rng).join(categorical(600, rng))
    scorer, schema = fit(X)
    matrix = np.ascontiguousarray(schema.encode(X).matrix)
    factuals = matrix[:12].copy()
    for i, factual in enumerate(factuals):  # unusual people
        factual[i % matrix.shape[1]] = np.nanmax(matrix[:, i % matrix.shape[1]])
    factuals[0, 0] = 10 * np.nanmax(matrix[:, 0])  # out of range
    places = np.repeat(np.arange(12), 20)
    rows, fold, own = factuals[places], scorer.fold_of(factuals)[places], scorer.own(factuals)
    for row in rows:
        columns = rng.choice(matrix.shape[1], rng.integers(1, 4), replace=False)
        row[columns] = matrix[rng.integers(600), columns]
    found = scorer.score(rows, fold, scorer.origins(factuals, places, kept=12, own=own))
    nothing, each = scorer.origins(rows), np.arange(len(rows))
    raw, _, _ = scorer._joint(rows, fold, nothing)
    own_raw, _, _ = scorer._joint(factuals, scorer.fold_of(factuals), scorer.origins(factuals))
    distance, own_distance = scorer.distance(rows, fold), scorer.distance(factuals, scorer.fold_of(factuals))
    lifted = 0
    for i, row, factual, k in zip(each, rows, factuals[places], fold, strict=True):
        mine, before = cell_shares(scorer, row, k), cell_shares(scorer, factual, k)
        changed = np.array([differs(row[j], factual[j]) for j in scorer.conditionals[k].targets])
        least = np.min(mine[changed | (mine < before)], initial=1.0)
        reach = np.where(np.isfinite(scorer.high[k] - scorer.low[k]), scorer.high[k] - scorer.low[k], 1.0)
        beyond = np.fmax(np.fmax(scorer.low[k] - row, row - scorer.high[k]), 0.0) / np.where(reach > 0, reach, 1.0)
        beyond[[not differs(x, y) for x, y in zip(row, factual, strict=True)]] = 0.0
        parts = [scorer.cells.share(np.array([least]))[0], scorer.outside.share(np.array([-beyond.max()]))[0]]
        if raw[i] < own_raw[places[i]]:
            parts.append(scorer.joint.together.share(raw[i : i + 1])[0])
        if distance[i] > own_distance[places[i]]:
            parts.append(2.0 * scorer.nearness.share(-distance[i : i + 1])[0])
        assert found[i] == pytest.approx(min(parts), abs=1e-12)
        lifted += min(parts) > scorer.score(row[None], np.array([k]))[0]
    assert lifted > 20


# ---------------------------------------------------------------- one seed, one answer; hard tables


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_score_is_equal_for_any_number_of_threads_and_after_storage(n_jobs):
    rng = np.random.default_rng(7)
    X = atoms(500, rng)
    one, schema = fit(X, n_jobs=1)
    other, _ = fit(X, n_jobs=n_jobs)
    fresh = schema.encode(atoms(200, rng)).matrix
    expected = one.score(fresh, one.fold_of(fresh))
    for each in (other, from_state(to_state(one, "plausibility"))):
        np.testing.assert_array_equal(each.score(fresh, each.fold_of(fresh)), expected)


def levels(n):
    return pd.DataFrame({"l": pd.Categorical([f"l{i % 200}" for i in range(n)]), "x": np.arange(n) % 7.0})


HARD = {
    "one row": pd.DataFrame({"x": [1.0], "y": ["a"]}),
    "two rows": pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]}),
    "fifty rows": gaussian(50, np.random.default_rng(0)),
    "constant": pd.DataFrame({"x": np.arange(60.0), "one": 1.0, "level": ["a"] * 60}),
    "all missing": pd.DataFrame({"x": np.arange(60.0) % 9, "none": np.full(60, np.nan)}),
    "nothing but missing": pd.DataFrame({"x": np.full(30, np.nan)}),
    "200 levels": levels(600),
    "equal rows": pd.DataFrame({"x": np.ones(40), "y": ["a"] * 40}),
    "extreme numbers": pd.DataFrame({"x": np.geomspace(1e-300, 1e300, 200), "y": np.linspace(-1e308, 0, 200)}),
}


@pytest.mark.parametrize("name", HARD)
def test_degenerate_tables_have_finite_scores_for_any_row(name):
    X = HARD[name]
    scorer, schema = fit(X)
    matrix = schema.encode(X).matrix
    other = np.full((3, matrix.shape[1]), np.nan)
    other[1], other[2] = -1e300, 1e300
    rows = np.vstack([matrix, other])
    found = scorer.score(rows, scorer.fold_of(rows))
    assert np.isfinite(found).all()
    share = scorer.quantile(found)
    assert ((share > 0) & (share <= 1)).all()
    assert (share[: len(X)] < 0.2).mean() <= 0.2


def test_unseen_level_is_scored():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"level": pd.Categorical(rng.choice(list("abd"), 100), categories=list("abcd")), "x": 1.0})
    scorer, schema = fit(X)
    unseen = quantiles(scorer, schema, X.assign(level=pd.Categorical(["c"] * 100, categories=list("abcd"))))
    assert ((unseen > 0) & (unseen <= 1)).all()


@pytest.mark.slow
def test_single_mutable_feature_is_judged_by_the_fixed_ones():
    rng = np.random.default_rng(0)
    a = rng.normal(size=1_000)
    X = pd.DataFrame({"a": a, "b": a + 0.2 * rng.normal(size=1_000)})
    scorer, schema = fit(X, mutable=["b"])
    assert (quantiles(scorer, schema, X.assign(b=-X["b"])) < FLOOR).mean() > 0.7


# ---------------------------------------------------------------- floors


@examples(75)
@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=60),
    st.one_of(st.integers(0, 999).map(lambda i: i / 1000), st.floats(0, 1, exclude_max=True)),
)
def test_score_reaches_the_floor_exactly_if_its_quantile_does(calibration, floor):
    scale = Scale(np.sort(np.array(calibration, dtype=float)))
    scores = np.append(np.arange(-6, 6.5, 0.5), [-np.inf, np.inf])
    np.testing.assert_array_equal(scores >= scale.lowest(floor), scale.share(scores) >= floor)
    by_hand = [(1 + sum(c <= s for c in calibration)) / (len(calibration) + 1) for s in scores]
    np.testing.assert_array_equal(scale.share(scores), by_hand)


@pytest.mark.parametrize("is_ordered", [True, False])
def test_screening_of_splits_misses_none(is_ordered):
    rng = np.random.default_rng(5)
    for _ in range(30):
        histogram = rng.integers(0, 6, (9, 4)) * rng.choice([1.0, 0.37])
        total = histogram.sum(axis=0)
        size = total.sum()
        inside = np.vstack([np.cumsum(histogram, axis=0), histogram[:1]]) if is_ordered else histogram
        inside = inside[(inside.sum(axis=1) >= 3.0) & (size - inside.sum(axis=1) >= 3.0)]
        by_hand = [scipy.stats.chi2_contingency([each, total - each], correction=False).statistic for each in inside]
        held, room = histogram.sum(axis=1) > 0.0, np.empty(4)
        for factor, expected in ((1.0 - 1e-6, True), (1.0 + 1e-6, False)):
            best = factor * max(by_hand)
            arguments = best, histogram, held, room, size / total, size, is_ordered, 3.0
            assert kernels.may_exceed.py_func(*arguments) == expected


def test_trees_of_wide_tables_split_by_the_most_associated_columns():
    rng = np.random.default_rng(2)
    classes = rng.integers(1, 5, (100, 400))
    classes[70] = np.where(rng.random(400) < 0.5, classes[3], classes[70])
    tried = score._choose_tried(classes, np.ones(400))
    assert tried.shape == (100, score.MOST_TRIED)
    assert 3 in tried[70]
    assert 70 in tried[3]
    assert all(j not in tried[j] for j in range(100))
    narrow = score._choose_tried(classes[:5], np.ones(400))
    assert narrow.tolist() == [[i for i in range(5) if i != j] for j in range(5)]
