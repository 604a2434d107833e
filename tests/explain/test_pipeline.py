"""Blocks of factuals can be pickled and give the same result in any order."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest

from mcce.explain import pipeline
from mcce.explain import problem as problems
from mcce.explain.acceptance import Acceptance
from mcce.explain.pipeline import Cost, explain_block, explain_factuals, join_blocks
from mcce.explain.winners import Winners
from tests.explainer.problem import DENIED, FIXED, TABLE, fitted, score
from tests.generators.row_bootstrap import RowBootstrap
from tests.marks import nightly

FEW = DENIED.iloc[:24]


@pytest.fixture(scope="module", params=["chain", *nightly("bootstrap")])
def explainer(request):
    if request.param == "chain":
        return fitted()
    return fitted(random_state=None, generator=RowBootstrap(FIXED))


def plan_and_blocks(explainer, monkeypatch, X=FEW, **options):
    """Return the problem, small blocks and the factuals of a call of `explain`, as passed to its search."""
    seen = []

    def watched(*arguments):
        seen.extend(arguments)
        return explain_factuals(*arguments)

    monkeypatch.setattr("mcce.explain.pipeline.explain_factuals", watched)
    monkeypatch.setattr(problems, "BLOCK_FACTUALS", 3)
    explainer.explain(X, **options)
    problem, factuals, _ = seen
    which = problems.searched(factuals, problem.contradictions(factuals))
    whole = problem.block(factuals, which, range(problem.settings.n_samples))
    return problem, list(problem.split(whole)), factuals


def joined(parts, factuals):
    """Join the results of blocks, and the costs."""
    found = join_blocks([winners for winners, _, _ in parts], factuals)
    return found, Cost.total([cost for _, _, cost in parts])


def same(one, two):
    (one, cost), (two, other_cost) = one, two
    np.testing.assert_array_equal(one.owner, two.owner)
    np.testing.assert_array_equal(one.rows, two.rows)
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.plausibility, two.plausibility)
    assert cost.rows_queried == other_cost.rows_queried


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, *nightly(True)])
@pytest.mark.parametrize("independent", [False, *nightly(True)])
def test_blocks_can_be_pickled_and_joined_in_any_order(explainer, monkeypatch, sparse, independent):
    options = {"n_samples": 40, "n_counterfactuals": 2, "sparse": sparse, "independent": independent}
    problem, blocks, factuals = plan_and_blocks(explainer, monkeypatch, **options)
    assert len(blocks) > 5
    here = [explain_block(problem, block) for block in blocks]
    sent = pickle.dumps(problem)
    away = []
    for i in np.random.default_rng(0).permutation(len(blocks)):  # each in a process that has only the problem
        block = pickle.loads(pickle.dumps(blocks[i]))
        away.append(pickle.loads(pickle.dumps(explain_block(pickle.loads(sent), block))))
    same(joined(away, factuals), joined(here, factuals))


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [True, *nightly(False)])
def test_block_size_does_not_change_the_result(explainer, monkeypatch, sparse):
    options = {"n_samples": 40, "n_counterfactuals": 2, "sparse": sparse}
    problem, blocks, factuals = plan_and_blocks(explainer, monkeypatch, **options)
    found, _ = joined([explain_block(problem, block) for block in blocks], factuals)
    monkeypatch.undo()
    frame = explainer.explain(FEW, **options).frame
    np.testing.assert_array_equal(found.rows, explainer.generator_.schema_.encode(frame).matrix)
    np.testing.assert_array_equal(FEW.index[found.owner], frame.index.get_level_values("id"))


@pytest.mark.slow
def test_blocks_hold_each_rejected_factual_once_and_keep_pools_together(explainer, monkeypatch):
    X = TABLE.iloc[:80]
    problem, blocks, factuals = plan_and_blocks(explainer, monkeypatch, X, n_samples=10)
    members = np.concatenate([block.members for block in blocks])
    assert sorted(members) == np.flatnonzero(score(X) < 0.5).tolist()
    for block in blocks:
        np.testing.assert_array_equal(block.matrix, factuals.matrix[block.members])
    fixed = [tuple(row) for row in X[FIXED].iloc[members].to_numpy()]
    runs = [key for key, _ in itertools.groupby(fixed)]
    assert len(runs) == len(set(runs)) == np.unique(problem.keys(factuals)[members]).size


def test_no_factuals_to_explain(explainer, monkeypatch):
    X = TABLE[score(TABLE) >= 0.5].iloc[:5]
    _, blocks, factuals = plan_and_blocks(explainer, monkeypatch, X, n_samples=10)
    assert blocks == []
    nothing = join_blocks([Winners.none(factuals.scores, TABLE.shape[1])], factuals)
    assert nothing.rows.shape == nothing.incidental.shape == (0, TABLE.shape[1])
    assert nothing.owner.size == nothing.scores.size == nothing.plausibility.size == Cost.total([]).rows_queried == 0


def test_every_finishing_step_is_applied_to_every_block(explainer, monkeypatch):
    seen = []

    def step(acceptance, winners):
        assert isinstance(acceptance, Acceptance)
        seen.append(len(acceptance))
        return replace(winners, reported={**winners.reported, "step": winners.owner + 0.5})

    monkeypatch.setattr(pipeline, "FINISHING", (*pipeline.FINISHING, step))
    monkeypatch.setattr(problems, "BLOCK_FACTUALS", 5)
    for how in ({"n_samples": 40}, {"n_samples": "auto"}):
        seen.clear()
        found = explainer.explain(FEW, **how)
        assert (found.measures["step"] % 1 == 0.5).all()
        assert sum(seen) == len(FEW)
        assert max(seen) <= 5
    assert {each.__name__ for each in pipeline.FINISHING} > {"round_for_display", "mark_incidental", "add_measures"}
