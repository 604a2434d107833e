"""Givens of draws: encoded from the user's table or drawn from the training rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce import ChainModel, InputError, NormSampler
from mcce.generators.sampling import bootstrap_givens, draw_index, encode_given, occurrences
from mcce.table import Schema

TABLE = pd.DataFrame({"x": [1.0, 2.0, 3.0], "sex": ["f", "m", "f"], "age": [20.0, np.nan, 40.0]})
SCHEMA = Schema.from_data(TABLE)


FIXED = ["sex", "age"]


def chain(sampler="cart", fixed=FIXED, decision=(True, False, True)):
    made = ChainModel(sampler=sampler, fixed=fixed, random_state=1)
    return made.fit(TABLE, None if decision is None else np.array(decision))


def test_givens_are_in_data_order_with_the_decision_last(monkeypatch):
    given = pd.DataFrame({"age": [25.0, np.nan], "sex": ["m", "f"]}, index=["p", "q"])
    matrix, index = encode_given(given, SCHEMA, FIXED)
    np.testing.assert_array_equal(matrix, [[1.0, 25.0], [0.0, np.nan]])
    assert index.tolist() == ["p", "q"]
    requests = []
    draw = ChainModel.draw

    def kept(self, request, **options):
        requests.append(request)
        return draw(self, request, **options)

    monkeypatch.setattr(ChainModel, "draw", kept)
    chain().sample(2, given, decision=False)
    chain(decision=None).sample(1, given)
    np.testing.assert_array_equal(requests[0].givens[::2], [[1.0, 25.0, 0.0], [0.0, np.nan, 0.0]])
    np.testing.assert_array_equal(requests[1].givens, [[1.0, 25.0], [0.0, np.nan]])


def test_empty_givens_are_encoded_without_fixed_features():
    matrix, index = encode_given(pd.DataFrame(index=["p", "q", "r"]), SCHEMA, [])
    assert matrix.shape == (3, 0)
    assert len(index) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((2, 2)), "given is a ndarray; give a DataFrame with the fixed features 'sex', 'age'"),
        (TABLE, r"given has the column\(s\) 'x', which are not fixed; leave them out"),
        (TABLE[["sex"]], "given lacks .*'age'"),
        (TABLE[["sex", "age"]].assign(sex="other"), "column 'sex' of given .*'other'"),
        (TABLE[["sex", "age"]].assign(age=1e200), "column 'age' of given holds numbers of size 1e"),
        (
            TABLE[["sex", "age"]].set_index(pd.MultiIndex.from_product([["a"], [1, 2, 3]])),
            "the index of given has several levels",
        ),
    ],
)
def test_invalid_givens_raise(given, message):
    with pytest.raises(InputError, match=message):
        encode_given(given, SCHEMA, FIXED)


def test_missing_values_raise_for_samplers_without_support():
    class Strict(NormSampler):
        handles_missing = False

    strict = ChainModel(sampler={"x": Strict()}, fixed=["sex"], random_state=1)
    strict.fit(TABLE[["x", "sex"]].iloc[[0, 1, 2] * 5])
    given = pd.DataFrame({"sex": pd.Series([None, "f"], dtype=object)})
    with pytest.raises(InputError, match=r"missing values in 'sex', which Strict.* does not handle; fill them"):
        strict.sample(1, given)
    assert len(strict.sample(1, given.fillna("m"))) == 2


def test_bootstrap_is_uniform_and_reproducible():
    training = np.column_stack([np.arange(6.0), np.array([1, 0, 1, 0, 1, 1.0])])
    givens = bootstrap_givens(training, 6000, None, seed=3)
    assert stats.chisquare(np.bincount(givens[:, 0].astype(int), minlength=6)).pvalue > 1e-3
    np.testing.assert_array_equal(givens[:, 1], training[givens[:, 0].astype(int), 1])  # whole rows
    np.testing.assert_array_equal(bootstrap_givens(training, 100, None, seed=3), givens[:100])
    assert not np.array_equal(bootstrap_givens(training, 100, None, seed=4), givens[:100])


def test_bootstrap_of_one_decision():
    training = np.column_stack([np.arange(6.0), np.array([1, 0, 1, 0, 1, 1.0])])
    givens = bootstrap_givens(training, 300, False, seed=3)
    assert set(givens[:, 0]) == {1.0, 3.0}
    with pytest.raises(InputError, match="no training row has the decision False; there is nothing to draw"):
        bootstrap_givens(training[training[:, 1] == 1], 5, False, seed=3)


def test_draws_are_numbered_within_each_id():
    index = draw_index(pd.Index(["q", "p", "q"]), 2)  # an id may occur twice in `given`
    assert index.tolist() == [("q", 0), ("q", 1), ("p", 0), ("p", 1), ("q", 0), ("q", 1)]
    assert index.names == ["id", "draw"]
    assert len(draw_index(pd.Index([]), 3)) == 0


def test_occurrences_count_the_equal_rows_before():
    keys = np.array([7, 3, 7, 7, 3, 2**64 - 1], dtype=np.uint64)
    assert occurrences(keys).tolist() == [0, 0, 1, 2, 1, 0]
    assert occurrences(keys).dtype == np.uint64
