"""Tables whose columns are related, for the tests of relations."""

import itertools

import numpy as np
import pandas as pd

import mcce


def said(X):
    return [each.says for each in mcce.find_relations(X)]


def rng(seed=1):
    return np.random.default_rng(seed)


def some(n=400, seed=1):
    """Independent columns."""
    r = rng(seed)
    return {
        "usd": r.lognormal(9, 1, n).round(2),
        "age": r.integers(18, 80, n),
        "a": r.integers(0, 900, n),
        "b": r.integers(0, 900, n),
        "job": r.choice(["clerk", "pilot", "nurse"], n),
    }


def beside(**columns):
    return pd.DataFrame({**some(), **columns})


of = {name: np.asarray(values) for name, values in some().items()}


def people():
    """Applicants with a salary, a copy of it, debts in two currencies, a sum, an order and an employment."""
    r = rng()
    n = 1500
    salary = r.integers(10, 90, n)
    debt = r.lognormal(3, 1, n).round(1)
    works = r.random(n) < 0.8
    bonus = np.where(works, r.integers(1, 30, n), 0)
    inquiries = r.poisson(3, n)
    return pd.DataFrame(
        {
            "age": r.integers(18, 80, n),
            "salary": salary,
            "pay": salary,
            "debt": debt,
            "debt_eur": (debt * 0.92).round(1),
            "bonus": bonus,
            "works": np.where(works, "yes", "no"),
            "income": salary + bonus,
            "asked": inquiries,
            "asked_in_all": inquiries + r.poisson(1, n),
        }
    ).assign(born=lambda X: 2024 - X["age"])


def table(words, decimals, n=600):
    """Amounts with a column determined by others, rounded to some decimals, and savings."""
    r = rng(8)
    one, other = r.uniform(100, 9000, n).round(2), r.uniform(100, 9000, n).round(2)
    months = r.choice([12, 24, 36, 48, 60, 72], n)
    amount = 100 * r.integers(10, 500, n)
    columns = {
        "monthly == amount / months": {"amount": amount, "months": months, "monthly": amount / months},
        "cost == price * quantity": {"price": one, "quantity": months // 4, "cost": one * (months // 4)},
        "left == income - spent": {"income": one, "spent": other, "left": one - other},
        "total == fee + income": {"income": one, "fee": other, "total": one + other},
        "days == 365 * years": {"years": months - 12, "days": 365 * (months - 12)},
        "tax == 0.19 * income": {"income": one, "tax": 0.19 * one},
    }[words]
    X = pd.DataFrame(columns)
    X[words.split()[0]] = X[words.split()[0]].round(decimals)
    return X.assign(savings=r.gamma(2, 3000, n).round())


def orders_of(X):
    return [[*some, "savings"] for some in itertools.permutations(X.columns.drop("savings"))]


DIRECTIONS = [
    "monthly == amount / months",
    "cost == price * quantity",
    "left == income - spent",
    "total == fee + income",
]


DIRECTIONS += ["days == 365 * years", "tax == 0.19 * income"]


def chained(k, n=300, seed=2):
    """Two columns, and more columns that are each the sum of the two preceding ones."""
    r = rng(seed)
    X = pd.DataFrame({"x000": r.integers(0, 100, n), "x001": r.integers(0, 100, n)})
    for i in range(2, k + 2):
        X[f"x{i:03}"] = X[f"x{i - 1:03}"] + X[f"x{i - 2:03}"]
    return X


def sums_of(X):
    return [f"{c} == {a} + {b}" for a, b, c in zip(X.columns, X.columns[1:], X.columns[2:])]
