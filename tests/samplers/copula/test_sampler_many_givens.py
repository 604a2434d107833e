"""Many discrete givens and few rows: densities are comparable and match the draws."""

import numpy as np
import pandas as pd
import pytest

import mcce


@pytest.fixture(scope="module")
def tables():
    """Sixteen columns of three to six levels with a common cause, for 300 rows and as many new ones."""
    rng = np.random.default_rng(3)
    cause = rng.normal(size=600)
    columns = {}
    for j in range(16):
        score = 0.5 * cause + rng.normal(size=600)
        cuts = np.quantile(score, np.linspace(0, 1, 4 + j % 4)[1:-1])
        order = rng.permutation(len(cuts) + 1) if j % 2 else np.arange(len(cuts) + 1)
        levels = order[np.searchsorted(cuts, score)]
        columns[f"x{j}"] = pd.Categorical(levels, ordered=j % 2 == 0)
    X = pd.DataFrame(columns)
    return X.iloc[:300], X.iloc[300:]


@pytest.mark.nightly
def test_densities_are_not_far_below_the_margin(tables):
    train, new = tables
    scores = {}
    for sampler in ("copula", "marginal"):
        chain = mcce.ChainModel(sampler=sampler, random_state=1).fit(train)
        scores[sampler] = chain.log_density(new.iloc[:40], per_feature=True)
    assert np.isfinite(scores["copula"].to_numpy()).all()
    gain = (scores["copula"] - scores["marginal"]).mean()
    assert gain.min() > -0.6  # 300 rows are overfitted, but no probability is 0 or 1
    assert gain.mean() > -0.15


@pytest.mark.slow
@pytest.mark.parametrize("target", ["x14", pytest.param("x15", marks=pytest.mark.nightly)])
def test_densities_match_the_draws(tables, target):
    train, new = tables
    given = [name for name in train if name != target]
    sampler = {target: mcce.GaussianCopulaSampler(sweeps=30), "*": "copula"}
    chain = mcce.ChainModel(sampler=sampler, fixed=given, random_state=1).fit(train)
    row = new.iloc[[5]]
    drawn = chain.sample(1500, given=row[given])[target]
    for level in train[target].cat.categories:
        same = row.assign(**{target: pd.Categorical([level], dtype=train[target].dtype)})
        probability = float(np.exp(chain.log_density(same).iloc[0]))
        assert abs((drawn == level).mean() - probability) < 0.06


def test_lowest_atom_has_the_probability_of_its_draws():
    """Its interval begins at minus infinity; a kernel estimate of the other numbers reaches below it."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=300).round(6)
    y = np.where(x + rng.normal(size=300) < 0, 0.0, np.exp(x + rng.normal(size=300)).round(6))
    chain = mcce.ChainModel(sampler="copula", fixed=["x"], random_state=1).fit(pd.DataFrame({"x": x, "y": y}))
    for at in (-2.7, -1.5, -0.5, 0.5, 1.2):
        drawn = chain.sample(given=pd.DataFrame({"x": [at] * 4000}))
        (density,) = chain.log_density(pd.DataFrame({"x": [at], "y": [0.0]}))
        assert np.exp(density) == pytest.approx((drawn["y"] == 0).mean(), abs=0.03)
    between = pd.DataFrame({"x": [0.0, 0.0], "y": [1e-4, -1e-4]})
    assert np.isfinite(chain.log_density(between)).all()
