"""Densities of one column by different samplers: one base measure, mass 1, finite, near the truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.samplers.density import ColumnDensity
from mcce.samplers.donors.density import MarginalDensity
from mcce.table import Schema
from tests.marks import nightly

SAMPLERS = [
    "cart",
    "ctree",
    "forest",
    "empirical",
    "boosting",
    "marginal",
    "norm",
    "gaussian",
    "normrank",
    "pmm",
    "copula",
    "parametric",
]
N = 1500


def columns(kind, n, seed):
    """Return x, and y given x: continuous, with a third of zeros, counts, or heaped (0.7 % of the rows each)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = 2 * x + rng.normal(size=n)
    if kind == "zeros":
        y = np.where(rng.random(n) < 1 / 3, 0.0, np.round(y + 8, 3))
    elif kind == "counts":
        y = np.round(y + 8).clip(0)
    elif kind == "heaped":
        heaps = rng.choice(np.arange(10) * 1.5 - 7, n)
        y = np.where(rng.random(n) < 0.07, heaps, y)
    return pd.DataFrame({"x": x, "y": y})


def fit(name, frame):
    return mcce.ChainModel(sampler=name, fixed=["x"], random_state=1, n_jobs=1).fit(frame)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["zeros", *nightly("continuous", "counts", "heaped")])
def test_all_samplers_use_the_same_base_measure(kind):
    """Otherwise a mean of log densities depends on the base measure more than on the model."""
    frame = columns(kind, N, 1)
    quick = {"boosting": mcce.BoostingSampler(n_quantiles=3, max_trees=5)}
    fitted = {name: fit(quick.get(name, name), frame).samplers_["y"] for name in SAMPLERS}
    measures = {name: sampler.base_measure() for name, sampler in fitted.items()}
    expected = {"continuous": "lebesgue", "zeros": "mixed", "counts": "counting", "heaped": "lebesgue"}[kind]
    assert set(measures.values()) == {expected}, measures
    atoms = ColumnDensity.of(frame["y"].to_numpy()).atoms
    np.testing.assert_array_equal(atoms, MarginalDensity.of(frame["y"].to_numpy(), 0).atoms)
    copula = fitted["copula"].target_margin_
    np.testing.assert_array_equal(atoms, copula.values[copula.atoms])


@pytest.mark.parametrize("kind", ["continuous", "zeros", "heaped"])
@pytest.mark.parametrize("name", ["norm", "normrank", "pmm", "copula"])
def test_mass_is_one(kind, name):
    """Point masses by summation, the rest by integration over a fine grid that hits none of them."""
    frame = columns(kind, N, 2)
    sampler = fit(name, frame).samplers_["y"]
    y = frame["y"].to_numpy()
    grid = np.linspace(y.min() - 20, y.max() + 20, 40_001) + 1e-7
    atoms = ColumnDensity.of(y).atoms
    table = Schema.from_data(frame[["x"]]).encode(pd.DataFrame({"x": np.full(grid.size, 0.4)}))
    spread = np.exp(sampler.log_density(table, grid)).sum() * (grid[1] - grid[0])
    counted = np.exp(sampler.log_density(table.take(np.arange(atoms.size)), atoms)).sum()
    assert spread + counted == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("x", [-1.5, 0.4, 1.5])
@pytest.mark.parametrize("kind", ["zeros", "top"])
def test_mass_of_normrank_is_one_beside_point_masses(kind, x):
    """Regression: the position of other numbers among point masses was read from a smoothed margin: 0.994 in total."""
    frame = columns("zeros", 300, 2)
    if kind == "top":  # a tenth at a top code, a third at zero
        frame["y"] = frame["y"].clip(upper=np.quantile(frame["y"], 0.9))
    sampler = fit("normrank", frame).samplers_["y"]
    y = frame["y"].to_numpy()
    grid = np.linspace(y.min() - 20, y.max() + 20, 40_001) + 1e-7
    atoms = ColumnDensity.of(y).atoms
    table = Schema.from_data(frame[["x"]]).encode(pd.DataFrame({"x": np.full(grid.size, x)}))
    spread = np.exp(sampler.log_density(table, grid)).sum() * (grid[1] - grid[0])
    counted = np.exp(sampler.log_density(table.take(np.arange(atoms.size)), atoms)).sum()
    assert spread + counted == pytest.approx(1.0, abs=0.001)


@pytest.mark.parametrize("name", ["norm", "normrank", "pmm"])
def test_every_number_in_the_range_has_a_finite_density(name):
    """A lognormal column with a gap before its largest value, givens far from those of most rows."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=400)
    y = np.append(np.exp(x[:-1] + rng.normal(size=399)), 5000.0)
    frame = pd.DataFrame({"x": x, "y": y})
    grid = pd.DataFrame({"x": np.resize([-4.0, 0.0, 4.0], 999), "y": np.linspace(y.min(), y.max(), 999)})
    assert np.isfinite(fit(name, frame).log_density(grid)).all()


@pytest.mark.slow
def test_held_out_loans_have_positive_density():
    """Regression: normrank and pmm had -inf for the salaries of at least half of them."""
    X = mcce.datasets.load_loans().X
    train, new = X.iloc[:1500], X.iloc[1500:]
    inside = new[(new["salary"] >= train["salary"].min()) & (new["salary"] <= train["salary"].max())]
    for name in ("normrank", "pmm", "norm"):
        chain = mcce.ChainModel(sampler={"salary": name, "*": "cart"}, fixed=["age", "sex"], random_state=1).fit(train)
        assert np.isfinite(chain.log_density(inside, per_feature=True)["salary"]).all(), name


@pytest.mark.nightly
def test_scores_of_new_rows_compare_the_samplers():
    """y is normal given x: the true mean log density is -1.42, that of the margin, whose variance is 5, is -2.22."""
    frame, new = columns("continuous", N, 4), columns("continuous", 2000, 5)
    truth = -0.5 * np.log(2 * np.pi * np.e)
    score = {name: fit(name, frame).log_density(new).mean() for name in SAMPLERS}
    assert score["norm"] == pytest.approx(truth, abs=0.05)
    assert score["normrank"] == pytest.approx(truth, abs=0.1)
    assert score["copula"] == pytest.approx(truth, abs=0.1)
    assert score["marginal"] == pytest.approx(truth - 0.5 * np.log(5), abs=0.1)
    for name in ("pmm", "cart", "ctree", "forest"):
        assert score["marginal"] + 0.2 < score[name] < truth + 0.02, name


def test_density_of_cart_is_not_always_best():
    """Independent columns: the marginal is the truth, small leaves are noise."""
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.normal(size=(700, 6)), columns=list("abcdef"))
    score = {
        name: mcce.ChainModel(sampler=name, random_state=1, n_jobs=1).fit(X[:400]).log_density(X[400:]).mean()
        for name in ("marginal", "cart", "ctree")
    }
    assert score["cart"] < score["marginal"] - 0.2
    assert score["ctree"] == pytest.approx(score["marginal"], abs=0.1)


def test_normal_model_is_detected_with_many_zeros():
    """Its density ignores the zeros, a third of the rows."""
    frame, new = columns("zeros", N, 6), columns("zeros", 2000, 7)
    score = {name: fit(name, frame).log_density(new).mean() for name in ("cart", "norm", "normrank", "copula")}
    assert score["norm"] < min(score["cart"], score["normrank"], score["copula"]) - 1
    zeros = new[new["y"] == 0]
    assert fit("cart", frame).log_density(zeros).mean() == pytest.approx(np.log(1 / 3), abs=0.2)
    assert fit("normrank", frame).log_density(zeros).max() <= 0
