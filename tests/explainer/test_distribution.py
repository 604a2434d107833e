"""The draws compared with the exact distribution by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce import MCCE, CartSampler
from tests.marks import nightly

LEVEL = 0.001  # level of every statistical test below, all at fixed seeds


def discrete_table() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    n = 900
    f = rng.choice(["x", "y", "z"], n, p=[0.5, 0.3, 0.2])
    a = np.where(rng.random(n) < 0.6, (f == "x").astype(int), rng.integers(0, 3, n))
    b = np.where(rng.random(n) < 0.5, a % 2, rng.integers(0, 2, n))
    c = np.where(rng.random(n) < 0.5, (a + b) % 3, rng.integers(0, 3, n))
    levels = {
        "a": np.array(["a0", "a1", "a2"]),
        "b": np.array(["b0", "b1"]),
        "c": np.array(["c0", "c1", "c2"]),
    }
    return pd.DataFrame({"a": levels["a"][a], "f": f, "b": levels["b"][b], "c": levels["c"][c]})


DISCRETE = discrete_table()


def agree(frame: pd.DataFrame) -> np.ndarray:
    """Some level of c is accepted with every a, b and f, so that every conditional of the chain has donors."""
    a, b, c = (frame[name].str[1].astype(int) for name in ("a", "b", "c"))
    return ((a * b + c + (frame["f"] == "y")) % 3 != 0).to_numpy()


def chain_probabilities(rows: pd.DataFrame, everyone: pd.DataFrame, order, marginal=()) -> dict:
    """Equation 2 by counting: the product of relative frequencies over the features."""
    combinations = {}
    for values in itertools.product(*(sorted(everyone[name].unique()) for name in order)):
        probability, alike = 1.0, rows
        for name, value in zip(order, values):
            donors = everyone if name in marginal else alike
            probability *= (donors[name] == value).mean() if len(donors) else 0.0
            alike = alike[alike[name] == value]
        combinations[values] = probability
    return combinations


@pytest.mark.parametrize("fixed_value", ["y", *nightly("x", "z")])
@pytest.mark.parametrize(
    ("order", "marginal", "conditional"),
    [
        (["a", "b", "c"], (), True),
        (["c", "a", "b"], (), True),
        (["a", "b", "c"], ("b",), True),
        (["a", "b", "c"], (), False),
    ],
)
def test_draws_follow_the_chain_distribution(fixed_value, order, marginal, conditional):
    explainer = MCCE(
        None,
        decision=agree,
        fixed=["f"],
        sampler={"*": CartSampler(min_leaf=1), **dict.fromkeys(marginal, "marginal")},
        visit_sequence=order,
        condition_on_decision=conditional,
        random_state=5,
    ).fit(DISCRETE)
    n = 20_000
    drawn = explainer.generate(DISCRETE[DISCRETE["f"] == fixed_value].iloc[[0]], n_samples=n)
    assert (drawn["f"] == fixed_value).all()
    rows = DISCRETE[(DISCRETE["f"] == fixed_value) & (agree(DISCRETE) | (not conditional))]
    truth = chain_probabilities(rows, DISCRETE, order, marginal)
    assert sum(truth.values()) == pytest.approx(1)
    counts = drawn.groupby(order).size()
    possible = {values: p for values, p in truth.items() if p > 0}
    assert set(counts.index) <= set(possible)
    observed = np.array([counts.get(values, 0) for values in possible])
    expected = n * np.array(list(possible.values()))
    assert stats.chisquare(observed, expected).pvalue > LEVEL


def test_independent_pools_follow_the_same_distribution():
    explainer = MCCE(None, decision=agree, fixed=["f"], sampler=CartSampler(min_leaf=1), random_state=5).fit(DISCRETE)
    factuals = DISCRETE[DISCRETE["f"] == "x"].drop_duplicates()
    assert len(factuals) > 10
    drawn = explainer.generate(factuals, n_samples=1500, independent=True)
    truth = chain_probabilities(DISCRETE[(DISCRETE["f"] == "x") & agree(DISCRETE)], DISCRETE, ["a", "b", "c"])
    possible = {values: p for values, p in truth.items() if p > 0}
    counts = drawn.groupby(["a", "b", "c"]).size()
    observed = np.array([counts.get(values, 0) for values in possible])
    assert stats.chisquare(observed, len(drawn) * np.array(list(possible.values()))).pvalue > LEVEL
    # pools are independent: draw i of factual 1 against draw i of factual 2
    first, second = (drawn.loc[i, "a"].to_numpy() for i in factuals.index[:2])
    assert stats.chi2_contingency(pd.crosstab(first, second)).pvalue > LEVEL


@pytest.mark.slow
def test_many_draws_find_the_optimum_over_all_rows():
    explainer = MCCE(None, decision=agree, fixed=["f"], sampler=CartSampler(min_leaf=1), random_state=5).fit(DISCRETE)
    denied = DISCRETE[~agree(DISCRETE)].drop_duplicates()
    found = explainer.explain(denied, n_samples=5000, n_counterfactuals=30)
    assert len(denied) > 10
    for i, factual in denied.iterrows():
        alike = DISCRETE[(DISCRETE["f"] == factual["f"]) & agree(DISCRETE)].drop_duplicates()
        changes = sorted((alike != factual).sum(axis=1))
        assert found.measures.loc[i, "L0"].tolist() == changes
        assert set(found.frame.loc[i].itertuples(index=False, name=None)) == set(
            alike.itertuples(index=False, name=None)
        )
