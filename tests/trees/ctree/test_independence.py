"""Independence tests: moments of all permutations, known distributions, no selection bias; and their decomposition."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.table import Column, Table
from mcce.trees.ctree import grow_ctree, independence, svd
from mcce.trees.ctree.svd import MOST_ROWS, decompose
from tests.trees.ctree.ctree_cases import encode, read_case

ALPHA = 1e-4


def dummies(codes, n_levels):
    return (codes[:, None] == np.arange(n_levels)).astype(float)


@pytest.mark.parametrize(("x_levels", "y_levels"), [(0, 0), (3, 0), (0, 3), (2, 3)])
def test_moments_match_all_permutations(x_levels, y_levels):
    rng = np.random.default_rng(3)
    x = dummies(np.array([0, 1, 2, 0, 1, 0]) % x_levels, x_levels) if x_levels else rng.normal(size=(6, 1))
    y = dummies(np.array([0, 0, 1, 2, 1, 0]), y_levels) if y_levels else rng.normal(size=(6, 1))
    centred, sigma = independence.linear_statistic(x, y)
    drawn = np.array([(x.T @ y[list(order)]).ravel(order="F") for order in permutations(range(6))])
    assert centred == pytest.approx((x.T @ y).ravel(order="F") - drawn.mean(axis=0))
    assert sigma == pytest.approx(np.cov(drawn.T, ddof=0).reshape(sigma.shape), abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_closed_form_matches_the_pseudo_inverse(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 200))
    n_classes = int(rng.integers(2, 6))
    number, codes = rng.normal(size=n), rng.choice(5, n, p=[0.5, 0.3, 0.1, 0.08, 0.02])
    frame = pd.DataFrame({"x": number, "f": pd.Categorical.from_codes(codes, list("abcde"))})
    y = rng.integers(0, n_classes, n)
    responses = {
        "number": (pd.Series(rng.normal(size=n)), None),
        "classes": (pd.Series(pd.Categorical.from_codes(y, [f"k{k}" for k in range(n_classes)])), n_classes),
    }
    for response, levels in responses.values():
        tree = grow_ctree(*encode(frame.assign(y=response)), maxdepth=0)
        wide_y = dummies(y, levels) if levels else response.to_numpy()[:, None]
        for j, x in enumerate((number[:, None], dummies(codes, 5))):
            centred, sigma = independence.linear_statistic(x, wide_y)
            expected = centred @ np.linalg.pinv(sigma, rcond=1e-10) @ centred
            rank = np.linalg.matrix_rank(sigma, tol=1e-10 * max(1, np.linalg.norm(sigma, 2)))
            assert tree.statistics[0, j] == pytest.approx(expected, rel=1e-9)
            assert tree.criteria[0, j] == pytest.approx(stats.chi2.cdf(expected, rank) ** 2, rel=1e-9)


def test_rounding_of_a_p_value_does_not_matter():
    statistic = np.abs(np.random.default_rng(2).normal(size=5_000)) * 4
    for freedom in (1, 2, 6):
        above = statistic
        criterion = independence.chi_square(statistic, np.full(statistic.shape, freedom))
        assert criterion == pytest.approx(stats.chi2.cdf(statistic, freedom), rel=1e-10, abs=1e-12)
        for _ in range(5):
            above = np.nextafter(above, np.inf)
            assert (independence.chi_square(above, np.full(above.shape, freedom)) >= criterion).all()


def test_criteria_of_the_three_kinds():
    case = read_case("class4_mixed")
    kinds = ("Bonferroni", "Univariate", "Teststatistic")
    trees = {kind: grow_ctree(case.given, case.target, testtype=kind, maxdepth=0) for kind in kinds}
    assert np.array_equal(trees["Teststatistic"].criteria, trees["Teststatistic"].statistics)
    n_variables = len(case.given.names)
    assert trees["Bonferroni"].criteria == pytest.approx(trees["Univariate"].criteria ** n_variables)


@pytest.mark.nightly
def test_null_splits_have_the_stated_level_without_selection_bias():
    rng = np.random.default_rng(11)
    levels = {"two": list("ab"), "many": list("abcdefgh")}
    frame = pd.DataFrame({name: pd.Categorical(rng.choice(known, 120), known) for name, known in levels.items()})
    features = encode(frame.assign(number=0.0, y=0.0))[0].features
    n_trees, chosen = 2000, []
    for _ in range(n_trees):
        matrix = np.column_stack([rng.integers(0, 2, 120), rng.integers(0, 8, 120), rng.normal(size=120)])
        tree = grow_ctree(Table(features, matrix), Column(features[2], rng.normal(size=120)), maxdepth=1)
        chosen += [int(j) for j in tree.node["variable"][:1] if j >= 0]
    assert stats.binomtest(len(chosen), n_trees, 0.05).pvalue > ALPHA
    assert stats.chisquare(np.bincount(chosen, minlength=3)).pvalue > ALPHA


# ---------------------------------------------------------------- the decomposition; its last bits are those of party
# (test_logicals_and_redundant_variables)


@pytest.mark.parametrize("n", [1, 2, 3, 7, MOST_ROWS, MOST_ROWS + 1])
@pytest.mark.parametrize("kind", ["full", "singular", "zero", "graded", "diagonal", "repeated"])
def test_decomposition_is_valid(n, kind):
    rng = np.random.default_rng(n)
    full = rng.normal(size=(n, n))
    matrix = {
        "full": full,
        "singular": np.outer(full[0], full[-1]),
        "zero": np.zeros((n, n)),
        "graded": full * np.logspace(0, -40, n) * np.logspace(0, -60, n)[:, None],
        "diagonal": np.diag(rng.normal(size=n)),
        "repeated": np.eye(n) - 1 / n,
    }[kind]
    before = matrix.copy()
    u, values, vt = decompose(matrix)
    assert np.array_equal(matrix, before)
    assert (values[:-1] >= values[1:]).all()
    assert (values >= 0).all()
    np.testing.assert_allclose(values, np.linalg.svd(matrix, compute_uv=False), rtol=0, atol=1e-14 * n * values[0])
    np.testing.assert_allclose(u * values @ vt, matrix, rtol=0, atol=1e-14 * n * values[0])
    for vectors in (u, vt):
        np.testing.assert_allclose(vectors @ vectors.T, np.eye(n), rtol=0, atol=1e-14 * n)


def test_non_convergence_falls_back_to_numpy(monkeypatch):
    matrix = np.random.default_rng(4).normal(size=(6, 6))
    monkeypatch.setattr(svd, "_decompose", lambda *_: False)
    for ours, numpys in zip(decompose(matrix), np.linalg.svd(matrix)):
        np.testing.assert_array_equal(ours, numpys)
