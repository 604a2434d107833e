"""Rows with known latent correlations, and helpers for the tests of the copula."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from mcce import GaussianCopulaSampler
from mcce.rng import RowStreams
from mcce.table import Schema

LEVEL = 1e-4
CUTS = {"grade": [-1.0, 0.2, 1.0], "smoker": [0.8]}
TASTE = np.array([0.6, 0.1, -0.7])  # offsets of the utilities behind "drink"

# latents: income, height, grade, smoker, then three utilities, which are uncorrelated among themselves
R = np.eye(7)
R[:4, :4] = [[1.0, 0.3, 0.5, -0.4], [0.3, 1.0, 0.2, 0.1], [0.5, 0.2, 1.0, -0.6], [-0.4, 0.1, -0.6, 1.0]]
R[:4, 4:] = [[0.3, 0.0, -0.3], [0.0, 0.2, -0.2], [0.4, -0.4, 0.0], [-0.3, 0.1, 0.2]]
R[4:, :4] = R[:4, 4:].T


def simulate(n, seed, *, drinks=("tea", "beer", "milk")):
    """Return n rows with known latent correlations."""
    z = np.random.default_rng(seed).standard_normal((n, 7)) @ np.linalg.cholesky(R).T
    grade = np.searchsorted(CUTS["grade"], z[:, 2])
    return pd.DataFrame(
        {
            "income": np.exp(z[:, 0]),
            "height": 170.0 + 10.0 * z[:, 1],
            "grade": pd.Categorical(np.array(list("abcd"))[grade], categories=list("abcd"), ordered=True),
            "smoker": np.where(z[:, 3] > CUTS["smoker"][0], "yes", "no"),
            "drink": pd.Categorical(np.array(drinks)[(z[:, 4:] + TASTE).argmax(axis=1)], categories=sorted(drinks)),
        }
    )


def encode(frame, **kinds):
    return Schema.from_data(frame, kinds).encode(frame)


def fit(frame, target, sampler=None, **kinds):
    """Return the fitted sampler of `target` and the table of the other columns."""
    table = encode(frame[[name for name in frame if name != target] + [target]], **kinds)
    last = len(table.features) - 1
    return (sampler or GaussianCopulaSampler()).fit(table.first(last), table.column(last)), table.first(last)


def draw(sampler, given, row, n, within=None, seed=0):
    return sampler.sample(given.take(np.full(n, row)), RowStreams.from_seed(seed, n), within)


def same_shares(a, b):
    seen = np.union1d(a, b)
    counts = np.array([[(part == level).sum() for level in seen] for part in (a, b)])
    return seen.size < 2 or stats.chi2_contingency(counts).pvalue > LEVEL
