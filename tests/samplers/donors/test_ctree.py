"""The ctree sampler: conformance, donors, and its use in chain and explainer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.exceptions import InputError, NotFittedError
from mcce.rng import RowStreams
from mcce.storage.learned import get_state, set_state
from mcce.table import Schema
from mcce.testing import check_sampler
from mcce.trees.ctree import tree as ctree
from tests.marks import nightly
from tests.trees.ctree.ctree_cases import read_case


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2))])
@pytest.mark.parametrize(
    "settings", [{}, *nightly({"p_values": "univariate", "mincriterion": 0.5, "min_leaf": 3})], ids=str
)
def test_conformance(seed, settings):
    check_sampler(mcce.CtreeSampler(**settings), goodness_of_fit=True, random_state=seed)


def test_registered():
    assert mcce.available_samplers()["ctree"] is mcce.CtreeSampler


def test_draws_are_values_of_the_leaf():
    case = read_case("class4_mixed")
    sampler = mcce.CtreeSampler(mincriterion=0.9, min_leaf=5).fit(case.given, case.target)
    tree = ctree.grow(case.given, case.target, **case.settings("a"))
    assert np.array_equal(sampler.tree_.number, tree.number)
    leaf = sampler.tree_.route(case.new.matrix)
    rows = np.repeat(np.arange(case.new.n_rows), 200)
    drawn = sampler.sample(case.new.take(rows), RowStreams.from_seed(1, rows.size))
    for node in np.unique(leaf):
        donors = case.target.values[tree.donors[tree.start[node] :][: tree.size[node]]]
        got = drawn[leaf[rows] == node]
        assert np.bincount(got.astype(int), minlength=4) / got.size == pytest.approx(
            np.bincount(donors.astype(int), minlength=4) / donors.size, abs=0.12
        )


@pytest.mark.slow
def test_in_a_chain_and_an_explainer():
    loans = mcce.datasets.load_loans(800)
    chain = mcce.ChainModel(sampler="ctree", fixed=["age", "sex"], random_state=1).fit(loans.X)
    drawn = chain.sample(n=500)
    assert list(drawn.columns) == list(loans.X.columns)
    assert drawn["salary"].isin(loans.X["salary"]).all()
    one_thread = mcce.ChainModel(sampler="ctree", fixed=["age", "sex"], random_state=1, n_jobs=1).fit(loans.X)
    pd.testing.assert_frame_equal(one_thread.sample(n=500), drawn)

    def score(rows):
        return (rows["salary"] > 60_000).to_numpy().astype(float)

    explainer = mcce.MCCE(score, fixed=["age", "sex"], sampler="ctree", random_state=1).fit(loans.X)
    denied = loans.X[loans.X["salary"] <= 60_000].head(5)
    found = explainer.explain(denied, n_samples=200)
    assert (found.frame["salary"] > 60_000).all()


def test_missing_values_of_target_and_givens():
    rng = np.random.default_rng(2)
    x = rng.normal(size=600)
    frame = pd.DataFrame({"x": x, "number": x + rng.normal(size=600) / 4, "level": np.where(x > 0, "a", "b")})
    frame.loc[x > 1, "number"] = np.nan
    frame.loc[rng.random(600) < 0.2, ["level"]] = None
    frame.loc[rng.random(600) < 0.1, ["x"]] = np.nan
    chain = mcce.ChainModel(sampler="ctree", fixed=["x"], random_state=3).fit(frame)
    drawn = chain.sample(n=5, given=frame[["x"]])
    assert drawn.loc[drawn["x"] > 1.2, "number"].isna().mean() > 0.8
    assert drawn.loc[drawn["x"] < 0.5, "number"].isna().mean() < 0.2
    assert drawn["level"].isna().mean() == pytest.approx(frame["level"].isna().mean(), abs=0.05)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"statistic": "sum"}, "statistic of CtreeSampler is 'sum'; allowed: 'quadratic', 'maximum'"),
        ({"p_values": "holm"}, "p_values of CtreeSampler is 'holm'"),
        ({"mincriterion": 1.5}, "mincriterion of CtreeSampler is 1.5; it must be a number from 0 to 1"),
        ({"mincriterion": -1, "p_values": "none"}, "it must be a number at least 0"),
        ({"mincriterion": True}, "mincriterion of CtreeSampler is True"),
        ({"minprob": 0.5}, "minprob of CtreeSampler is 0.5; it must be a share from 0 to below 0.5"),
        ({"min_split": 1}, "min_split of CtreeSampler is 1"),
        ({"min_leaf": 0}, "min_leaf of CtreeSampler is 0"),
        ({"max_depth": -1}, "max_depth of CtreeSampler is -1"),
    ],
)
def test_parameters_out_of_range_raise(settings, message):
    case = read_case("numeric_mixed")
    with pytest.raises(InputError, match=message):
        mcce.CtreeSampler(**settings).fit(case.given, case.target)


def test_statistics_may_exceed_one_without_p_values():
    case = read_case("numeric_mixed")
    few = mcce.CtreeSampler(p_values="none", mincriterion=20.0).fit(case.given, case.target)
    many = mcce.CtreeSampler(p_values="none", mincriterion=3.0).fit(case.given, case.target)
    assert 1 < few.tree_.n_leaves < many.tree_.n_leaves


def test_printed_tree():
    frame = mcce.datasets.load_loans(300).X[["age", "salary"]]
    table = Schema.from_data(frame).encode(frame)
    sampler = mcce.CtreeSampler()
    with pytest.raises(NotFittedError):
        _ = sampler.tree
    sampler.fit(table.first(1), table.column(1))
    assert str(sampler.tree).startswith("\n\t Conditional inference tree")
    assert sampler.missing_tree is None
    restored = set_state(mcce.CtreeSampler(), get_state(sampler))
    assert str(restored.tree) == str(sampler.tree)
    years = replace(table.features[0], name="years")
    assert str(restored.name_columns([years], table.features[1]).tree) == str(sampler.tree).replace("age", "years")
