"""Draws of a chain within constraints, checked by the independent reader."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce.constraints import resolve
from mcce.generators.requests import DrawRequest
from tests.constraints.reader import people, spreads
from tests.constraints.test_resolve import allowances, said_by
from tests.marks import examples

N_SAMPLES = 30
X = people(n=400)
SCHEMA = mcce.Schema.from_data(X)
SPREAD = spreads(X)


@functools.cache
def chain():
    """Fit on first use, since every process collects the tests."""
    return mcce.ChainModel(sampler={"age": "norm", "*": "cart"}, fixed=["owner"], random_state=1).fit(X)


def draw(constraints, factuals, keys):
    matrix = SCHEMA.encode(factuals).matrix
    within = constraints.within(matrix, factuals.index)
    owner = np.repeat(np.arange(len(factuals)), N_SAMPLES)
    request = DrawRequest(
        givens=chain().givens_of(matrix)[owner],
        stream_keys=np.asarray(keys, dtype=np.uint64)[owner],
        draw_indices=np.tile(np.arange(N_SAMPLES, dtype=np.uint64), len(factuals)),
        seed=5,
        restrictions={name: each.take(owner) for name, each in within.items()},
    )
    return chain().draw(request), owner, matrix


@given(st.lists(allowances(), min_size=1, max_size=4), st.integers(0, 390))
@examples(10)
def test_accepted_draws_violate_no_constraint(said, begin):
    said = [(name, each) for name, each in said if name != "owner"] or [("age", {"low": 20})]
    constraints = resolve([mcce.allow(name, **each) for name, each in said], SCHEMA, ["owner"])
    factuals = X.iloc[begin : begin + 6]
    drawn, owner, matrix = draw(constraints, factuals, np.arange(6))
    accepted = np.flatnonzero(~drawn.rejected)
    rows = SCHEMA.decode(drawn.rows[accepted])
    for name in X.columns:
        for value, own in zip(rows[name], factuals[name].iloc[owner[accepted]]):
            assert said_by(said, name, value, own, SPREAD)
    assert constraints.hold(drawn.rows[accepted], matrix[owner[accepted]]).all()


def test_factuals_with_equal_draw_settings_have_the_same_draws():
    said = [mcce.allow("age", direction="increase"), mcce.allow("edu", never=["none"], missing=True)]
    constraints = resolve(said, SCHEMA, ["owner"])
    matrix = SCHEMA.encode(X).matrix
    alike = pd.DataFrame(np.column_stack([constraints.draws_depend_on(matrix), matrix[:, 4]]))
    groups = alike.groupby(list(alike.columns), dropna=False).ngroup().to_numpy()
    group = np.flatnonzero(groups == np.bincount(groups).argmax())[:5]
    assert X["age"].iloc[group].nunique() == 1
    assert len(X.iloc[group].drop_duplicates()) == 5
    drawn, _, _ = draw(constraints, X.iloc[group], np.zeros(5))
    pools = drawn.rows.reshape(5, N_SAMPLES, -1)
    for pool in pools[1:]:
        np.testing.assert_array_equal(pool, pools[0])


@pytest.mark.parametrize("feature", ["age", "salary"])
def test_numbers_are_drawn_on_the_requested_grid(feature):
    constraints = resolve(mcce.allow(feature, step=5, low=20), SCHEMA, ["owner"])
    drawn, owner, matrix = draw(constraints, X.iloc[:20], np.arange(20))
    column = SCHEMA.names.index(feature)
    values, own = drawn.rows[~drawn.rejected, column], matrix[owner[~drawn.rejected], column]
    changed = values[~np.isnan(values) & (values != own)]
    assert changed.size > 100
    assert (changed % 5 == 0).all()
    assert len(np.unique(changed)) > 2
