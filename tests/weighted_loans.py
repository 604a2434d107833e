"""Loans with missing salaries and row counts, for tests of weights."""

import numpy as np

import mcce

N = 240
FIXED = ["age", "sex"]


def some_loans():
    """Return numbers with ties and atoms, levels, missing values in givens and targets."""
    X = mcce.datasets.load_loans(N).X[["age", "sex", "salary", "savings", "housing"]].copy()
    X.loc[np.random.default_rng(3).random(N) < 0.15, "salary"] = np.nan
    return X


def some_counts():
    """Return how often each of the loans counts; some have count zero."""
    return np.random.default_rng(4).integers(0, 4, N)
