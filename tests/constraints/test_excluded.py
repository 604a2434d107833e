"""Excluded rows: copies are identified by all columns, shared rows by counts of their keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.constraints.excluded import TrainingKeys, TrainingRows, anonymity_of
from mcce.exceptions import InputError
from mcce.explain.draw import Candidates
from mcce.explain.plain import Selector
from tests.explain.test_plain import FEATURES, MUTABLE, Model, places, plain_way
from tests.marks import examples

NAN = np.nan
CELLS = st.sampled_from([0.0, -0.0, 1.0, 2.5, NAN])
ROWS = st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=12)


def same(a, b) -> bool:
    return all(u == v or (np.isnan(u) and np.isnan(v)) for u, v in zip(a, b))


@examples(25)
@given(training=ROWS, rows=ROWS)
def test_copy_equals_a_training_row_in_every_column(training, rows):
    contained = TrainingRows.from_matrix(np.array(training)).contain(np.array(rows))
    assert contained.tolist() == [any(same(row, other) for other in training) for row in rows]


def test_column_order_matters():
    known = TrainingRows.from_matrix(np.array([[1.0, 2.0]]))
    assert known.contain(np.array([[1.0, 2.0], [2.0, 1.0]])).tolist() == [True, False]
    assert known.contain(np.empty((0, 2))).tolist() == []


def test_copies_are_dropped_before_the_model_is_queried():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.choice(v, 50) for v in ([0.0, 1.0, 4.0], [0.0, 1.0], [0.0, 2.0], [1.0, 2.0], [0.0])])
    training = TrainingRows.from_matrix(rows[::3])
    factuals = rows[:1] + np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    pools = Candidates(np.asfortranarray(rows), np.array([0]), np.array([50]))
    model = Model(3, 0.7)
    selector = Selector(FEATURES, MUTABLE, model)
    chosen = selector.select(pools, factuals, 4, admit=lambda which: ~training.contain(rows[which]))
    copies = [any(same(row, other) for other in rows[::3]) for row in rows]
    assert not any(same(one, other) for one in model.queried for other in rows[::3])
    left = np.flatnonzero(~np.array(copies))
    pool = Candidates(rows[left], np.array([0]), np.array([left.size]))
    assert left[plain_way(pool, factuals, 4, Model(3, 0.7))[0]].tolist() == places(chosen, pools).tolist()


def test_keys_are_counted_and_too_large_k_raises():
    matrix = np.array([[1.0, 0.0, 9.0], [1.0, -0.0, 8.0], [2.0, np.nan, 9.0], [2.0, np.nan, 7.0], [3.0, 1.0, 9.0]])
    keys = TrainingKeys.from_matrix(matrix, (0, 1))
    assert keys.count(matrix).tolist() == [2, 2, 2, 2, 1]
    assert keys.count(np.array([[5.0, 0.0, 9.0]])).tolist() == [0]
    with pytest.raises(InputError, match="requires 6 training people for every row, and there are 5 training rows"):
        anonymity_of(6, keys)
