"""The base class: settings, weights, and a generator of one's own."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.exceptions import InputError, MCCEWarning
from mcce.generators import ChainModel, Drawn, Generator
from mcce.generators.base import copies_by_weight
from mcce.rng import RowStreams
from mcce.samplers import Within
from tests.generators.problem import request_for, table

X = table(60)
WANTED = (X["salary"] > 45).to_numpy()


class WholeRows(Generator):
    """Draws training rows with the same decision."""

    def _fit(self, table, decision):
        self.rows_, self.decisions_ = table.matrix, decision

    def draw(self, request):
        streams = RowStreams(request.seed, request.rows, request.draws)
        rows = self.rows_[self.decisions_] if self.conditions_on_decision_ else self.rows_
        drawn = rows[streams.integer(len(rows))]
        drawn[:, : self.n_fixed_] = request.given[:, : self.n_fixed_]
        return Drawn(drawn, self.breaks(request, drawn))


def test_generator_of_ones_own():
    generator = WholeRows(fixed=["age"], random_state=1).fit(X, WANTED)
    drawn = generator.sample(30, given=X[["age"]].head(2))
    assert set(drawn["salary"]) <= set(X["salary"][WANTED])
    assert (drawn.loc[1, "age"] == X["age"][1]).all()
    salary = generator.schema_.position("salary")
    with_bound = generator.draw(request_for(generator, 50, within={salary: Within(low=np.full(50, 50.0))}))
    assert (with_bound.rows[~with_bound.rejected, salary] >= 50).all()
    assert 0 < with_bound.rejected.sum() < 50
    with pytest.raises(InputError, match="has no density"):
        generator.log_density(X)


def test_rejected_rows_are_left_out_of_a_sample_with_a_warning():
    class Half(WholeRows):
        def draw(self, request):
            return Drawn(super().draw(request).rows, np.arange(len(request)) % 2 == 0)

    with pytest.warns(MCCEWarning, match="5 of 10 rows could not be drawn, and are left out"):
        assert Half(random_state=1).fit(X).sample(10).index.tolist() == [1, 3, 5, 7, 9]


def test_a_set_of_fixed_features_is_in_data_order():
    assert ChainModel(fixed={"school", "age", "home"}, random_state=1).fit(X).fixed_ == ["age", "school", "home"]


def test_parameters_are_those_of_scikit_learn():
    chain = ChainModel(fixed=["age"], sampler={"*": "norm"})
    assert chain.get_params()["sampler"] == {"*": "norm"}
    assert repr(chain) == "ChainModel(fixed=['age'], sampler={'*': 'norm'})"


# ---------------------------------------------------------------- weights


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30).filter(lambda w: 0 not in w and max(w) > 1))
def test_whole_weights_repeat_rows(weights):
    copies = copies_by_weight(np.array(weights, dtype=float), seed=1)
    assert np.bincount(copies, minlength=len(weights)).tolist() == weights


@given(st.lists(st.floats(0.01, 5.0), min_size=1, max_size=60), st.integers(0, 99))
def test_other_weights_resample_systematically(weights, seed):
    weights = np.array([*weights, 0.5])
    copies = copies_by_weight(weights, seed)
    times = np.bincount(copies, minlength=weights.size)
    expected = weights.size * weights / weights.sum()
    assert copies.size == weights.size
    assert (times >= np.floor(expected) - 1e-9).all()
    assert (times <= np.ceil(expected)).all()


def test_too_many_copies_are_resampled():
    assert copies_by_weight(np.array([1e6, 3e6]), 1).size == 2
    assert copies_by_weight(np.array([4e5, 6e5]), 1).size == 10**6
    assert copies_by_weight(np.ones(4), 1) is None


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({"kinds": {"age": "number"}}, {}, "number"),
        ({}, {"decision": WANTED.astype(int)}, "dtype int"),
        ({}, {"sample_weight": np.full(60, np.nan)}, "holds nan in row 0"),
        ({}, {"sample_weight": ["a"] * 60}, "sample_weight is not an array of numbers"),
    ],
)
def test_messages_of_fit(settings, arguments, message):
    with pytest.raises(InputError, match=message):
        ChainModel(**settings).fit(X, **arguments)


@pytest.mark.parametrize(
    ("decision", "arguments", "message"),
    [
        (np.ones(60, dtype=bool), {"decision": False}, "no training row has the decision False"),
        (None, {"given": X[["home"]]}, "not fixed"),
        (None, {"given": X[["age"]].set_axis(pd.MultiIndex.from_product([[1], range(60)]))}, "has several levels"),
    ],
)
def test_messages_of_sample(decision, arguments, message):
    chain = ChainModel(fixed=["age"], random_state=1).fit(X[["age", "salary", "home"]], decision)
    with pytest.raises(InputError, match=message):
        chain.sample(**{"n": 2, **arguments})


def test_messages_of_density():
    chain = ChainModel(fixed=["age"], random_state=1).fit(X, WANTED)
    with pytest.raises(InputError, match="decision must be True or False, for all rows or for each row"):
        chain.log_density(X, 1)
    with pytest.raises(InputError, match="decision must be True or False"):
        chain.log_density(X, WANTED[:-1])
    np.testing.assert_array_equal(chain.log_density(X, WANTED).shape, (60, 4))
