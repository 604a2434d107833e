"""No value is drawn from fewer distinct training rows than `min_donors`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce import MCCE, CartSampler, ChainModel, CtreeSampler, ForestSampler, InputError, MarginalSampler, SamplerError
from mcce.rng import RowStreams
from mcce.samplers import Within
from mcce.table import Schema
from mcce.testing import check_sampler
from tests.marks import examples

BOUND = ("cart", "ctree", "forest", "marginal")
SAMPLERS = [
    CartSampler(min_leaf=1),
    CartSampler(dialect="rpart", cp=0.0, min_split=2),
    CtreeSampler(mincriterion=0.0, min_split=2, min_leaf=1, minprob=0.0),
    ForestSampler(n_trees=3, min_leaf=1),
    ForestSampler(n_trees=2, min_leaf=1, max_features=None),
]


def make_table(n: int, seed: int, gaps: float = 0.0) -> pd.DataFrame:
    """Return a target that trees split to the last row, and one that is missing by a rule."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = np.exp(2 * x) + 0.01 * rng.normal(size=n)
    job = np.array(["clerk", "cook", "pilot"])[np.digitize(x, [-1, 1])]
    return pd.DataFrame({"x": x, "job": job, "y": np.where((x > 0) & (rng.random(n) < gaps), np.nan, y)})


def fit(sampler, frame: pd.DataFrame, min_donors: int):
    table = Schema.from_data(frame).encode(frame)
    bound = type(sampler)(**{**sampler.get_params(), "min_donors": min_donors})
    return bound.fit(table.first(2), table.column(2)), table.first(2)


@examples(6)
@given(
    which=st.integers(0, len(SAMPLERS) - 1),
    min_donors=st.integers(2, 25),
    gaps=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 1000),
)
def test_every_leaf_has_enough_distinct_rows(which, min_donors, gaps, seed):
    fitted, given = fit(SAMPLERS[which], make_table(200, seed, gaps), min_donors)
    forests = [fitted.donors_.forest] + [fitted.donors_.decider] * (fitted.donors_.decider is not None)
    for forest in forests:
        leaves = forest.route(given)
        for t, tree in enumerate(forest.trees):
            for leaf in np.unique(leaves[t]) - forest.first_node[t]:
                rows = tree.donors[tree.start[leaf] : tree.start[leaf] + tree.size[leaf]]
                assert len(set(rows.tolist())) >= min_donors


def test_repeated_rows_of_a_bootstrap_count_once():
    """Without the bound, a leaf of five of a bootstrap sample has fewer than five distinct rows."""
    frame = make_table(200, 0)
    table = Schema.from_data(frame).encode(frame)
    free = ForestSampler(n_trees=5, min_leaf=5).fit(table.first(2), table.column(2))
    distinct = [
        len(set(tree.donors[tree.start[leaf] : tree.start[leaf] + tree.size[leaf]].tolist()))
        for tree in free.trees_
        for leaf in np.flatnonzero(tree.stops)
    ]
    assert min(distinct) < 5


@pytest.mark.parametrize("sampler", SAMPLERS[:3], ids=repr)
def test_bound_below_the_leaf_size_has_no_effect(sampler):
    frame = make_table(200, 1)
    large = type(sampler)(**{**sampler.get_params(), "min_leaf": 20})
    table = Schema.from_data(frame).encode(frame)
    free = large.fit(table.first(2), table.column(2))
    bound, given = fit(large, frame, 15)
    streams = RowStreams.from_seed(1, 200)
    assert np.array_equal(free.sample(given, streams), bound.sample(given, RowStreams.from_seed(1, 200)))


@pytest.mark.parametrize("sampler", [CartSampler(), CtreeSampler(), MarginalSampler()], ids=repr)
def test_restricted_draws_count_the_allowed_donors(sampler):
    frame = make_table(200, 2)
    table = Schema.from_data(frame).encode(frame)
    values = np.sort(frame["y"].to_numpy())
    one_value = Within(low=np.full(200, values[3]), high=np.full(200, values[3]))
    free = sampler.clone().fit(table.first(2), table.column(2))
    found = free.sample_within(table.first(2), RowStreams.from_seed(0, 200), one_value)
    assert (~found.rejected).any()
    bound, given = fit(sampler, frame, 5)
    found = bound.sample_within(given, RowStreams.from_seed(0, 200), one_value)
    assert found.rejected.all()
    assert np.isnan(found.values).all()
    half = Within(low=np.full(200, -np.inf), high=np.full(200, values[100]))
    assert (~bound.sample_within(given, RowStreams.from_seed(0, 200), half).rejected).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly) if name == "forest" else name for name in BOUND]
)
def test_bounded_samplers_conform(name):
    few = {"n_trees": 3} if name == "forest" else {}
    check_sampler(mcce.available_samplers()[name](min_donors=7, **few), goodness_of_fit=True)


def test_chain_passes_min_donors_to_every_sampler():
    frame = make_table(300, 3)
    chain = ChainModel(sampler={"job": "marginal", "*": CartSampler(min_donors=40)}, fixed=["x"], min_donors=20)
    chain.fit(frame)
    assert [sampler.min_donors for sampler in chain.samplers_.values()] == [20, 40]
    chain = ChainModel(fixed=["x"], min_donors=15, random_state=1)
    explainer = MCCE(lambda f: f["y"].to_numpy() > 1, decision=(0.5, 1.0), fixed=["x"], generator=chain)
    found = explainer.fit(frame).explain(frame.iloc[:20], n_samples=50)
    assert {sampler.min_donors for sampler in explainer.generator_.samplers_.values()} == {15}
    assert found.run.settings["min_donors"] == 15


@pytest.mark.parametrize("name", sorted(set(mcce.available_samplers()) - {*BOUND, "survctree", "r_rpart", "r_ctree"}))
def test_samplers_without_donor_pools_raise(name):
    sampler = mcce.DPSampler(testing_seed=1) if name == "dp" else name
    chain = ChainModel(sampler={"y": sampler, "*": "cart"}, min_donors=5)
    with pytest.raises(SamplerError, match="for 'y' cannot guarantee min_donors=5: it does not draw from pools"):
        chain.fit(make_table(100, 0))


@pytest.mark.parametrize("name", BOUND)
def test_too_few_rows_raise(name):
    chain = ChainModel(sampler=name, fixed=["x", "job"], min_donors=50)
    with pytest.raises(SamplerError, match=r"would draw 'y' from \d+ training rows, and min_donors is 50"):
        chain.fit(make_table(45, 0))


def test_too_few_known_values_raise():
    frame = make_table(100, 0)
    frame.loc[8:, "y"] = np.nan
    with pytest.raises(SamplerError, match="would draw 'y' from 8 training rows, and min_donors is 10"):
        ChainModel(fixed=["x", "job"], min_donors=10).fit(frame)


def test_forest_counts_distinct_rows_after_restriction():
    """One allowed row counts once, in any number of trees and copies."""
    frame = make_table(100, 0)
    fitted, given = fit(ForestSampler(n_trees=8, min_leaf=10), frame, 4)
    values = np.sort(frame["y"].to_numpy())
    streams = RowStreams.from_seed(0, 100)
    for n_allowed in (3, 6):
        within = Within(low=np.full(100, values[0]), high=np.full(100, values[n_allowed - 1]))
        leaves = fitted.donors_.forest.route(given)
        found = fitted.sample_within(given, streams, within)
        for i in range(100):
            pool = set()
            for t, tree in enumerate(fitted.trees_):
                leaf = leaves[t, i] - fitted.donors_.forest.first_node[t]
                pool |= set(tree.donors[tree.start[leaf] : tree.start[leaf] + tree.size[leaf]].tolist())
            enough = (frame["y"].to_numpy()[list(pool)] <= values[n_allowed - 1]).sum() >= 4
            assert found.rejected[i] == (not enough)
        assert found.rejected.all() == (n_allowed == 3)


@pytest.mark.parametrize("wrong", [0, 2.5, True])
def test_invalid_values_raise(wrong):
    with pytest.raises(InputError, match=r"min_donors is .*; it must be a whole number of at least 1, or None"):
        ChainModel(min_donors=wrong).fit(make_table(50, 0))
    with pytest.raises(InputError, match="min_donors of CartSampler is"):
        ChainModel(sampler=CartSampler(min_donors=wrong)).fit(make_table(50, 0))
