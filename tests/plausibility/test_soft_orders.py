"""Orders with exceptions are distinguished from correlated columns of unequal level."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, poisson, rankdata

import mcce
from mcce.plausibility.soft_orders import _broken_if_correlated, log_chance_of_few, share_above
from tests.marks import nightly, slow
from tests.plausibility.related_tables import rng


def soft(X):
    return [each.says for each in mcce.find_relations(X).soft]


def credit_files(n=5000, wrong=0.01, seed=1):
    """Credit files: the average age of all accounts is at most that of the oldest, except for wrong entries."""
    r = rng(seed)
    oldest = 1 + r.gamma(2.5, 80, n).round()
    average = (oldest * np.where(r.random(n) < 0.006, 1, r.beta(4, 6, n))).round()  # one account has both
    swapped = r.random(n) < wrong / share_above(average, oldest)
    oldest[swapped] = r.permutation(oldest[swapped])
    return pd.DataFrame({"average": average, "oldest": oldest, "asked": r.poisson(1, n)})


@pytest.mark.parametrize("seed", range(5))
def test_order_with_one_percent_exceptions_is_found_in_credit_files(seed):
    X = credit_files(seed=seed)
    broken = (X["average"] > X["oldest"]).sum()
    assert 20 < broken < 80
    found = {each.says: each.exceptions for each in mcce.find_relations(X).soft}
    assert found.get("average <= oldest") == broken


def copula(kind, n, k, r):
    """Normal scores of columns that are related but have no order."""
    rho = r.uniform(0.4, 0.97)
    common, own = r.normal(size=(n, 1)), r.normal(size=(n, k))
    if kind == "gaussian":
        return np.sqrt(rho) * common + np.sqrt(1 - rho) * own
    if kind == "clayton":  # related below a threshold
        theta = r.uniform(0.5, 6)
        u = (1 + r.exponential(size=(n, k)) / r.gamma(1 / theta, 1, (n, 1))) ** (-1 / theta)
        return norm.ppf(u.clip(1e-12, 1 - 1e-12))
    if kind == "skewed":
        return r.exponential(size=(n, 1)) * r.uniform(0.5, 2) + own * r.uniform(0.4, 1)
    return common + 0.5 * np.sin(2 * common) + own * r.uniform(0.2, 0.8, k)  # not linear


def correlated(kind, margin, n, seed):
    r = rng(seed)
    z = copula(kind, n, 5, r) * np.exp(r.normal(0, 0.2, 5)) + np.sort(r.uniform(0, 3, 5))
    X = {
        "real": lambda: z,
        "money": lambda: np.exp(r.uniform(0.3, 1) * z).round(2),
        "whole": lambda: np.maximum(0, (5 * z).round()),
        "count": lambda: poisson.ppf((rankdata(z, axis=0) - 0.5) / n, np.exp(np.sort(r.uniform(0, 3, 5)))),
    }[margin]()
    return pd.DataFrame(X, columns=list("abcde"))


KINDS, MARGINS = ("gaussian", "clayton", "skewed", "curved"), ("real", "money", "whole", "count")


@pytest.mark.slow
def test_correlated_columns_have_no_order():
    tables = [(kind, margin, 1000, 7) for kind in KINDS for margin in MARGINS]
    assert [each for each in tables if soft(correlated(*each))] == []


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_at_most_one_percent_of_correlated_tables_have_an_order(kind):
    tables = [correlated(kind, margin, n, seed) for margin in MARGINS for n in (500, 3000) for seed in range(25)]
    assert sum(len(soft(X)) > 0 for X in tables) <= len(tables) // 100


@pytest.mark.parametrize("wrong", [0, 15])
def test_jointly_zero_and_otherwise_distant_columns_have_no_order(wrong):
    r = rng(2)
    works = r.random(3000) < 0.92
    years, salary = r.gamma(1.5, 5, 3000).round(), r.lognormal(10, 0.5, 3000).round(-2)
    X = pd.DataFrame({"years_in_job": years * works, "salary": salary * works, "rent": r.lognormal(6, 1, 3000)})
    X.loc[np.flatnonzero(~works)[:wrong], "years_in_job"] = 4
    found = mcce.find_relations(X)
    assert [each.says for each in (*found, *found.soft) if each.kind == "order"] == []


@pytest.mark.slow
def test_bound_is_above_the_probability_of_random_orders():
    r = rng(5)
    a, b = r.normal(size=(2, 40))
    broken = np.array([(r.permutation(a) > b).sum() for _ in range(20_000)])
    assert math.isclose(broken.mean(), 40 * share_above(a, b), rel_tol=0.01)
    for most in range(1, 20):
        assert (broken <= most).mean() <= math.exp(log_chance_of_few(most, broken.mean()))


@pytest.mark.parametrize("rho", [-0.5, *slow(0.0, 0.9), *nightly(0.5)])
def test_exceptions_of_correlated_columns_match_a_gaussian_copula(rho):
    n, r = 200_000, rng(3)
    x, y = r.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n).T
    a, b = np.exp(x), np.exp(0.5 * y + 1)
    assert math.isclose(_broken_if_correlated(a, b), (a > b).sum(), rel_tol=0.02)
