"""Declared fields: valid values, and errors when reading others."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from mcce import InputError
from mcce.storage.fields import BOOL, FLOAT, INT, INT32, check_fields, learned, stored
from mcce.storage.state import from_state, stateful, to_state


@stateful("tests.Grove")
@dataclass(frozen=True)
class Grove:
    starts: object = stored(INT, "nodes + 1", rising="weakly")
    left: object = stored(INT32, "nodes", least=-1, index_of="nodes")
    column: object = stored(INT32, "nodes", least=0, most="columns")
    knots: object = stored(FLOAT, "knots", rising=True, filled=True)
    weights: object = stored(FLOAT, "knots", above=0.0, finite=True)
    table: object = stored(FLOAT, "nodes", "columns", finite="or missing")
    ids: object = stored(INT, None, distinct=True)
    flags: object = stored(BOOL, "columns")
    share: object = stored(float, least=0.0, most=1.0)
    size: object = stored(int, least=1)
    known: object = stored(bool)
    names: object = stored(tuple, of=str)
    bound: object = stored(float, finite=False, default=np.inf)
    note: object = stored(str, optional=True, default=None)
    extra: object = stored(FLOAT, "knots", optional=True, default=None)
    edges: object = stored(tuple, "columns", of=stored(FLOAT, None, rising=True), default=(np.zeros(1),) * 3)
    pairs: object = stored(tuple, of=stored(tuple, parts=(str, stored(int, least=0))), default=(("a", 1),), filled=True)
    sign: object = stored(str, longest=2, default="%")


GOOD = Grove(
    starts=np.array([0, 2, 2]),
    left=np.array([1, -1], dtype=np.int32),
    column=np.array([0, 3], dtype=np.int32),
    knots=np.array([0.5, 1.0]),
    weights=np.array([1.0, 2.0]),
    table=np.array([[1.0, np.nan, 0.0], [2.0, 3.0, 4.0]]),
    ids=np.array([7, 5]),
    flags=np.array([True, False, True]),
    share=0.5,
    size=2,
    known=True,
    names=("a", "b"),
)


def test_declared_values_round_trip():
    state = to_state(GOOD)
    again = from_state(state)
    np.testing.assert_array_equal(again.table, GOOD.table)
    assert again.note is None
    assert from_state(to_state(replace(GOOD, extra=np.zeros(2)))).extra.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("starts", np.array([0, 2]), r"left has the shape \(2,\); expected \(1\)"),
        ("starts", np.array([0, 2, 1]), "starts is not in ascending order"),
        ("left", np.array([1.0, -1.0]), "left is an array of float64; expected an array of int32"),
        ("left", np.array([2, -1], dtype=np.int32), "left holds 2, which is not from -1 to 1"),
        ("column", np.array([0, 4], dtype=np.int32), "column holds 4, which is not from 0 to 3"),
        ("knots", np.array([1.0, 1.0]), "knots is not in ascending order"),
        ("knots", np.empty(0), "knots is empty"),
        ("weights", np.array([1.0, 0.0]), "weights holds 0.0, which is not above 0"),
        ("weights", np.ones(3), r"weights has the shape \(3,\); expected \(2\)"),
        ("weights", np.array([1.0, np.nan]), "weights holds nan; expected finite numbers"),
        ("table", np.full((2, 3), -np.inf), "table holds an infinite number"),
        ("table", np.zeros(2), r"table has the shape \(2,\)"),
        ("ids", np.array([7, 7]), "ids holds a value twice"),
        ("flags", np.array([True]), r"flags has the shape \(1,\); expected \(3\)"),
        ("share", 1.5, "share is 1.5; expected a number from 0 to 1"),
        ("share", np.nan, "share is nan"),
        ("size", 0, "size is 0; expected a whole number from 1 to inf"),
        ("size", 1.5, "size is 1.5"),
        ("known", 1, "known is 1; expected True or False"),
        ("names", ["a"], "names is a list; expected a tuple"),
        ("edges", (np.zeros(1),), "edges has 1 items; expected 3"),
        ("edges", (np.zeros(1), np.zeros(1), 0.0), "edges is a float; expected an array of float64"),
        ("edges", (np.zeros(1), np.zeros(1), np.zeros(2)), "edges is not in ascending order"),
        ("pairs", (("a", 1, 2),), "pairs has 3 parts; expected 2"),
        ("pairs", ((1, 1),), "pairs is a int; expected a str"),
        ("pairs", (("a", -1),), "pairs is -1; expected a whole number from 0"),
        ("sign", "per", "sign has 3 letters; at most 2 are allowed"),
        ("names", ("a", 1), "names is a int; expected a str"),
        ("bound", "x", "bound is a str; expected a float"),
        ("note", 1, "note is a int; expected a str or a NoneType"),
        ("extra", np.zeros(3), r"extra has the shape \(3,\); expected \(2\)"),
    ],
)
def test_undeclared_values_raise(field, value, message):
    with pytest.raises(InputError, match=f"^tests.Grove: {message}"):
        from_state(to_state(replace(GOOD, **{field: value})))


class Fitted:
    donors_: object = learned(FLOAT, "rows")
    n_levels_: object = learned(int, least="levels", most="levels")
    weights_: object = learned(FLOAT, "rows", optional=True, default=None)


class Linear(Fitted):
    coef_: object = learned(FLOAT, "columns + 1")


def test_fitted_fields_exist_after_fit_with_known_lengths():
    sampler = Linear()
    assert not hasattr(sampler, "donors_")
    assert sampler.weights_ is None
    with pytest.raises(InputError, match="donors_ is missing"):
        check_fields(sampler, rows=3, levels=2)
    sampler.donors_, sampler.n_levels_ = np.zeros(3), 2
    check_fields(sampler, Fitted, rows=3, levels=2)
    with pytest.raises(InputError, match="coef_ is missing"):
        check_fields(sampler, rows=3, levels=2)
    sampler.coef_ = np.zeros(5)
    check_fields(sampler, rows=3, levels=2, columns=4)
    for lengths, message in [
        ({"rows": 4, "levels": 2, "columns": 4}, r"donors_ has the shape \(3,\); expected \(4\)"),
        ({"rows": 3, "levels": 1, "columns": 4}, "n_levels_ is 2; expected a whole number from 1 to 1"),
        ({"rows": 3, "levels": 2, "columns": 5}, r"coef_ has the shape \(5,\); expected \(6\)"),
    ]:
        with pytest.raises(InputError, match=message):
            check_fields(sampler, **lengths)
