"""The same seed gives the same result for any threads, blocks, order and batches, lazy or exhaustive."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import mcce.explain.problem
import mcce.generators.chain
import mcce.model.queries
from tests.explainer.problem import DENIED, MODELS, TABLE, assert_same, fitted
from tests.marks import nightly, nightly_but, nightly_rows


@pytest.mark.parametrize("name", nightly_but(MODELS, "rare"))
def test_lazy_and_exhaustive_agree(name):
    model, decision = MODELS[name]
    explainer, some = fitted(model, decision), TABLE.iloc[:150]
    candidates = explainer.generate(some, n_samples=150)
    for k in (1, 4):
        lazy = explainer.explain(some, n_samples=150, n_counterfactuals=k)
        exhaustive = explainer.select(candidates, some, n_counterfactuals=k, exhaustive=True)
        assert len(lazy) > 25
        assert_frame_equal(lazy.frame, exhaustive.frame, check_exact=True)
        assert_frame_equal(lazy.measures, exhaustive.measures, check_exact=True)
        assert lazy.run.settings["rows_queried"] <= exhaustive.run.settings["rows_queried"]


@pytest.mark.parametrize("n_jobs", [2, *nightly(-1)])
def test_threads_do_not_matter(found, n_jobs, monkeypatch):
    monkeypatch.setattr(mcce.generators.chain, "BLOCK_ROWS", 64)
    other = fitted(n_jobs=n_jobs).explain(DENIED, n_samples=200, n_counterfactuals=3)
    assert_same(found, other)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (mcce.generators.chain, "BLOCK_ROWS", 33),
        *nightly_rows(
            (mcce.explain.problem, "POOL_BYTES", 1),
            (mcce.explain.problem, "POOL_BYTES", 40_000),
            (mcce.explain.problem, "BLOCK_FACTUALS", 1),
            (mcce.explain.problem, "BLOCK_FACTUALS", 7),
            (mcce.model.queries, "QUERY_ROWS", 5),
            (mcce.generators.chain, "BLOCK_ROWS", 1),
        ),
    ],
)
def test_block_size_does_not_matter(found, module, name, value, monkeypatch):
    monkeypatch.setattr(module, name, value)
    other = fitted().explain(DENIED, n_samples=200, n_counterfactuals=3)
    assert_same(found, other)


@pytest.mark.slow
@pytest.mark.parametrize("independent", [True, *nightly(False)])
def test_order_and_batches_of_factuals_do_not_matter(explainer, independent):
    def explain(X):
        return explainer.explain(X, n_samples=100, n_counterfactuals=2, independent=independent)

    some = DENIED.iloc[:9]
    whole = explain(some)
    backwards = explain(some.iloc[::-1])
    assert backwards.frame.index.get_level_values(0)[0] == some.index[-1]
    batches = [explain(some.iloc[i : i + 4]) for i in range(0, len(some), 4)]
    singles = [explain(some.loc[[i]]) for i in some.index]
    for parts in ([backwards], batches, singles):
        for name in ("frame", "measures", "unexplained"):
            expected = getattr(whole, name)
            table = pd.concat(
                [getattr(part, name) for part in parts if len(getattr(part, name))] or [expected.iloc[:0]]
            )
            assert_frame_equal(table.loc[expected.index], expected, check_exact=True, check_dtype=name == "frame")
            assert len(table) == len(expected)


def test_column_order_of_factuals_does_not_matter(found, explainer):
    other = explainer.explain(DENIED[DENIED.columns[::-1]], n_samples=200, n_counterfactuals=3)
    assert_same(found, other)


def test_different_seed_gives_different_rows(found):
    other = fitted(random_state=2).explain(DENIED, n_samples=200, n_counterfactuals=3)
    assert not found.frame.equals(other.frame)


@pytest.mark.slow
def test_missing_seed_is_drawn_and_reported():
    one, two = (fitted(random_state=None).explain(DENIED, n_samples=50) for _ in range(2))
    assert one.run.settings["random_state"] != two.run.settings["random_state"]
    again = fitted(random_state=one.run.settings["random_state"]).explain(DENIED, n_samples=50)
    assert_same(one, again)


def test_numpy_global_state_is_neither_read_nor_written(found):
    np.random.seed(123)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    other = fitted().explain(DENIED, n_samples=200, n_counterfactuals=3)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert_same(found, other)


@pytest.mark.slow
@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("exhaustive", [True, *nightly(False)])
def test_explain_equals_generate_then_select(explainer, independent, exhaustive):
    both = explainer.explain(TABLE.iloc[:60], n_samples=80, n_counterfactuals=3, independent=independent)
    candidates = explainer.generate(TABLE.iloc[:60], n_samples=80, independent=independent)
    steps = explainer.select(candidates, TABLE.iloc[:60], n_counterfactuals=3, exhaustive=exhaustive)
    assert_frame_equal(both.frame, steps.frame, check_exact=True)
    assert_frame_equal(both.measures, steps.measures, check_exact=True)
    assert both.unexplained.index.equals(steps.unexplained.index)
