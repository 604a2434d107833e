"""Pools of candidates: which factuals share a pool, how pools form blocks, and what is drawn."""

import numpy as np
import pandas as pd
import pytest

from mcce.explain import problem
from mcce.explain.draw import draw_pools
from mcce.explain.problem import fixed_columns, pool_blocks, pool_keys

FIXED = (0, 1)  # the columns that draws depend on


@pytest.fixture(scope="module")
def matrix(chain):
    model, X = chain
    return model.schema_.encode(X).matrix


def test_factuals_share_a_pool_only_if_fixed_values_agree(chain, matrix):
    model, X = chain
    keys = pool_keys(model, matrix, FIXED)
    alike = X.groupby(["group", "age"], dropna=False).ngroup()
    assert pd.Series(keys).groupby(alike).nunique().eq(1).all()
    assert pd.Series(keys).nunique() == alike.nunique()
    assert fixed_columns(model) == FIXED


def test_independent_pools_are_shared_only_by_equal_rows(chain, matrix):
    model, _ = chain
    twice = np.vstack([matrix[:50], matrix[:50]])
    keys = pool_keys(model, twice, range(4))
    np.testing.assert_array_equal(keys[:50], keys[50:])
    assert np.unique(keys).size == 50
    assert not np.isin(keys, pool_keys(model, twice, FIXED)).any()


@pytest.mark.parametrize(("pool_bytes", "most"), [(1, 10**6), (100, 3), (250, 1), (10**6, 1)])
@pytest.mark.parametrize("block_factuals", [1, 7, 4096])
def test_blocks_hold_each_factual_once_and_few_pools(monkeypatch, pool_bytes, most, block_factuals):
    monkeypatch.setattr(problem, "POOL_BYTES", 300)
    monkeypatch.setattr(problem, "BLOCK_FACTUALS", block_factuals)
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 12, 100).astype(np.uint64)
    order = rng.permutation(100)[:90]
    blocks = list(pool_blocks(order, keys, pool_bytes))
    assert sorted(np.concatenate(blocks)) == sorted(order)
    for block in blocks:
        assert 0 < block.size <= block_factuals
        assert np.unique(keys[block]).size <= most
    in_turn = keys[np.concatenate(blocks)]
    assert (np.diff(in_turn.astype(int)) != 0).sum() == np.unique(keys[order]).size - 1  # each pool stays together
    assert list(pool_blocks(order[:0], keys, pool_bytes)) == []


def test_pool_keeps_fixed_values_and_depends_only_on_its_key(chain, matrix):
    model, _ = chain
    keys = pool_keys(model, matrix, FIXED)
    drawn = draw_pools(model, matrix[:60], keys[:60], 30)
    np.testing.assert_array_equal(drawn.end - drawn.begin, 30)
    for i in range(60):
        pool = drawn.rows[drawn.begin[i] : drawn.end[i]]
        np.testing.assert_array_equal(pool[:, :2], np.tile(matrix[i, :2], (30, 1)))
    assert len(drawn.rows) == 30 * np.unique(keys[:60]).size
    alone = draw_pools(model, matrix[[41]], keys[[41]], 30)
    np.testing.assert_array_equal(alone.rows, drawn.rows[drawn.begin[41] : drawn.end[41]])
    more = draw_pools(model, matrix[[41]], keys[[41]], 50)
    np.testing.assert_array_equal(more.rows[:30], alone.rows)
