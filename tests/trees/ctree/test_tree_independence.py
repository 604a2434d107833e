"""Independence tests: moments of all permutations, known distributions, no selection bias."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from mcce.table import Column, Table
from mcce.trees.ctree import tree as independence
from mcce.trees.ctree.tree import grow
from tests.marks import nightly_but
from tests.trees.ctree.ctree_cases import read_case
from tests.trees.ctree.problem import encode

ALPHA = 1e-4


def dummies(codes, n_levels):
    return (codes[:, None] == np.arange(n_levels)).astype(float)


@pytest.mark.parametrize(("x_levels", "y_levels"), [(0, 0), (3, 0), (0, 3), (2, 3)])
def test_moments_match_all_permutations(x_levels, y_levels):
    from itertools import permutations

    rng = np.random.default_rng(3)
    x = dummies(np.array([0, 1, 2, 0, 1, 0]) % x_levels, x_levels) if x_levels else rng.normal(size=(6, 1))
    y = dummies(np.array([0, 0, 1, 2, 1, 0]), y_levels) if y_levels else rng.normal(size=(6, 1))
    centred, sigma = independence.linear_statistic(x, y)
    drawn = np.array([(x.T @ y[list(order)]).ravel(order="F") for order in permutations(range(6))])
    assert centred == pytest.approx((x.T @ y).ravel(order="F") - drawn.mean(axis=0))
    assert sigma == pytest.approx(np.cov(drawn.T, ddof=0).reshape(sigma.shape), abs=1e-12)


@pytest.mark.parametrize("seed", nightly_but(range(20), *range(6)))
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
        tree = grow(*encode(frame.assign(y=response)), max_depth=0)
        wide_y = dummies(y, levels) if levels else response.to_numpy()[:, None]
        for j, x in enumerate((number[:, None], dummies(codes, 5))):
            centred, sigma = independence.linear_statistic(x, wide_y)
            expected = centred @ np.linalg.pinv(sigma, rcond=1e-10) @ centred
            rank = np.linalg.matrix_rank(sigma, tol=1e-10 * max(1, np.linalg.norm(sigma, 2)))
            assert tree.statistics[0, j] == pytest.approx(expected, rel=1e-9)
            assert tree.criteria[0, j] == pytest.approx(stats.chi2.cdf(expected, rank) ** 2, rel=1e-9)


@pytest.mark.slow
def test_rounding_of_a_p_value_does_not_matter():
    statistic = np.abs(np.random.default_rng(2).normal(size=20_000)) * 4
    for freedom in (1, 2, 6):
        above = statistic
        criterion = independence.chi_square(statistic, np.full(statistic.shape, freedom))
        assert criterion == pytest.approx(stats.chi2.cdf(statistic, freedom), rel=1e-10, abs=1e-12)
        for _ in range(5):
            above = np.nextafter(above, np.inf)
            assert (independence.chi_square(above, np.full(above.shape, freedom)) >= criterion).all()


def test_probability_that_normal_variables_stay_within_bounds():
    for size, bound in ((1, 1.3), (2, 2.0), (5, 2.5), (20, 3.0)):
        alone = 2 * stats.norm.cdf(bound) - 1
        assert independence.all_within(np.eye(size), bound) == pytest.approx(alone**size, abs=5e-4)
        assert independence.all_within(np.ones((size, size)), bound) == pytest.approx(alone, abs=1e-12)
    # equal correlations: independent given one common variable
    grid = np.linspace(-9, 9, 4001)
    inside = stats.norm.cdf((2 - np.sqrt(0.4) * grid) / np.sqrt(0.6)) - stats.norm.cdf(
        (-2 - np.sqrt(0.4) * grid) / np.sqrt(0.6)
    )
    expected = integrate.trapezoid(inside**6 * stats.norm.pdf(grid), grid)
    assert independence.all_within(0.6 * np.eye(6) + 0.4, 2.0) == pytest.approx(expected, abs=5e-4)
    # levels of a factor: a singular correlation
    share = np.array([0.2, 0.3, 0.5])
    sigma = np.diag(share) - np.outer(share, share)
    scale = np.sqrt(np.diag(sigma))
    drawn = np.random.default_rng(0).multivariate_normal(np.zeros(3), sigma, size=400_000) / scale
    expected = (np.abs(drawn) < 1.7).all(axis=1).mean()
    assert independence.all_within(sigma / np.outer(scale, scale), 1.7) == pytest.approx(expected, abs=4e-3)


def test_maximum_statistic_of_one_column_is_the_root_of_the_quadratic():
    case = read_case("numeric_mixed")
    quadratic, maximum = (grow(case.given, case.target, statistic=s, max_depth=0) for s in ("quadratic", "maximum"))
    is_factor = np.array([f.kind == "categorical" for f in case.given.features])
    assert maximum.statistics[0, ~is_factor] == pytest.approx(np.sqrt(quadratic.statistics[0, ~is_factor]))
    assert maximum.criteria[0, ~is_factor] == pytest.approx(quadratic.criteria[0, ~is_factor])
    for j in np.flatnonzero(is_factor):
        x = dummies(case.given.matrix[:, j], case.given.features[j].n_levels)
        centred, sigma = independence.linear_statistic(x, case.target.values[:, None])
        assert maximum.statistics[0, j] == pytest.approx(np.max(np.abs(centred) / np.sqrt(np.diag(sigma))))


def test_criteria_of_the_three_kinds():
    case = read_case("class4_mixed")
    trees = {p: grow(case.given, case.target, p_values=p, max_depth=0) for p in ("bonferroni", "univariate", "none")}
    assert np.array_equal(trees["none"].criteria, trees["none"].statistics)
    n_variables = len(case.given.names)
    assert trees["bonferroni"].criteria == pytest.approx(trees["univariate"].criteria ** n_variables)


@pytest.mark.nightly
def test_null_splits_have_the_stated_level_without_selection_bias():
    rng = np.random.default_rng(11)
    levels = {"two": list("ab"), "many": list("abcdefgh")}
    frame = pd.DataFrame({name: pd.Categorical(rng.choice(known, 120), known) for name, known in levels.items()})
    features = encode(frame.assign(number=0.0, y=0.0))[0].features
    n_trees, chosen = 2000, []
    for _ in range(n_trees):
        matrix = np.column_stack([rng.integers(0, 2, 120), rng.integers(0, 8, 120), rng.normal(size=120)])
        tree = grow(Table(features, matrix), Column(features[2], rng.normal(size=120)), max_depth=1)
        chosen += [int(j) for j in tree.feature[:1] if j >= 0]
    assert stats.binomtest(len(chosen), n_trees, 0.05).pvalue > ALPHA
    assert stats.chisquare(np.bincount(chosen, minlength=3)).pvalue > ALPHA
