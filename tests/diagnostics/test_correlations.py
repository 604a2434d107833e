"""Correlations of mixed tables compared with scipy and statsmodels."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import contingency, pearsonr, spearmanr

import mcce
from mcce.diagnostics import compare_correlations, correlations


def mixed(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "x": x,
            "minus": -x + 0.5 * rng.normal(size=n),
            "part": np.where(rng.random(n) < 0.2, np.nan, x + rng.normal(size=n)),
            "job": np.array(["clerk", "pilot", "smith"])[np.clip(np.round(x + 1), 0, 2).astype(int)],
            "size": pd.Categorical.from_codes(
                np.clip(np.round(-x + 1), 0, 2).astype(int), ["S", "M", "L"], ordered=True
            ),
            "city": rng.choice(["Oslo", "Bergen"], n),
            "same": 1.0,
        }
    )
    return frame


@pytest.mark.parametrize(("method", "reference"), [("spearman", spearmanr), ("pearson", pearsonr)])
def test_pairs_of_numbers_equal_scipy(method, reference):
    X = mixed(300, 1)
    got = correlations(X, method=method)
    numbers = X.assign(size=X["size"].cat.codes)
    for a, b in [("x", "minus"), ("x", "part"), ("minus", "part"), ("x", "size"), ("part", "size")]:
        known = numbers[[a, b]].dropna()
        assert got.loc[a, b] == pytest.approx(reference(known[a], known[b]).statistic)
        assert got.loc[b, a] == got.loc[a, b]
    assert got.loc["x", "minus"] < -0.8 < 0.5 < got.loc["x", "part"]


def test_other_pairs():
    """Against the formulas of Bergsma (2013) and Kelley (1935), which expect 0 of independent columns."""
    X = mixed(300, 1)
    X["city"] = np.where(np.random.default_rng(0).random(300) < 0.4, X["job"].astype(object), X["city"].astype(object))
    X["x"] += X["job"].astype("category").cat.codes
    got = correlations(X)
    counts = pd.crosstab(X["job"], X["city"])
    n, (r, c) = len(X), counts.shape
    mean_square = contingency.association(counts) ** 2 * min(r - 1, c - 1) - (r - 1) * (c - 1) / (n - 1)
    levels = min(r - 1 - (r - 1) ** 2 / (n - 1), c - 1 - (c - 1) ** 2 / (n - 1))
    assert got.loc["job", "city"] == pytest.approx(np.sqrt(mean_square / levels))
    assert got.loc["job", "city"] > 0.2
    ranks = X["x"].rank()
    explained = ranks.groupby(X["job"]).transform("mean").var(ddof=0) / ranks.var(ddof=0)
    assert got.loc["job", "x"] == pytest.approx(np.sqrt(1 - (1 - explained) * (n - 1) / (n - r)))
    assert got.loc["job", "x"] > 0.2
    assert (got.loc["same"].drop("same") == 0).all()
    assert (np.diag(got) == 1).all()
    pd.testing.assert_frame_equal(got, got.T)


def test_difference_and_pairs():
    real, generated = mixed(500, 1), mixed(400, 2)
    compared = compare_correlations(
        real, generated.assign(minus=np.random.default_rng(3).permutation(generated["minus"]))
    )
    pd.testing.assert_frame_equal(compared.real, correlations(real))
    pd.testing.assert_frame_equal(compared.difference, compared.generated - compared.real)
    pairs = compared.pairs
    assert len(pairs) == 7 * 6 / 2
    assert pairs["difference"].abs().is_monotonic_decreasing
    assert {pairs.loc[0, "feature"], pairs.loc[0, "other"]} == {"x", "minus"}
    assert compared.largest_difference == pairs["difference"].abs().iloc[0] > 0.8
    assert compared.mean_difference == pytest.approx(pairs["difference"].abs().mean())
    assert "x with minus" in repr(compared)


def test_single_feature():
    compared = compare_correlations(pd.DataFrame({"x": [1.0, 2.0]}), pd.DataFrame({"x": [1.0, 3.0]}))
    assert np.isnan(compared.mean_difference)
    assert "1 features" in repr(compared)


@pytest.mark.slow
def test_plots_of_the_matrices():
    compared = compare_correlations(mixed(50, 1), mixed(40, 2))
    for which, title in (("real", "of the real rows"), ("generated", "of the generated rows"), ("difference", "minus")):
        ax = compared.plot(which, scale=0.5)
        assert title in ax.get_title(loc="left").replace("\n", " ")
        plt.close(ax.figure)
    with pytest.raises(mcce.InputError, match="which is 'both'"):
        compared.plot("both")


def test_unknown_method_raises():
    with pytest.raises(mcce.InputError, match="method is 'kendall'"):
        correlations(mixed(10, 1), method="kendall")
