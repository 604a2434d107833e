"""The position of each column in the chain."""

import itertools

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError, SamplerError
from mcce.generators.layout import ChainLayout
from mcce.storage.learned import disclosed
from mcce.table import Schema

TABLE = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [5.0, np.nan], "<decision>": [0.5, 0.7]})
SCHEMA = Schema.from_data(TABLE)
MATRIX = SCHEMA.encode(TABLE).matrix
LAYOUTS = [
    (fixed, visited, with_decision)
    for n in range(4)
    for fixed in itertools.combinations(TABLE.columns, n)
    for visited in itertools.permutations([name for name in TABLE.columns if name not in fixed])
    for with_decision in (False, True)
]


@pytest.mark.parametrize("with_decision", [False, True])
def test_layout_has_fixed_columns_then_decision_then_visited(with_decision):
    for fixed, visited, _ in (layout for layout in LAYOUTS if layout[2] == with_decision):
        layout = ChainLayout.arrange(SCHEMA, fixed, visited, with_decision)
        decided = np.array([True, False])
        ordered = layout.order(MATRIX, decided)
        names = [feature.name for feature in layout.features]
        decision = ["<<decision>>"] if with_decision else []  # the table has a column of the usual name
        assert names == [*fixed, *decision, *visited]
        assert layout.n_given == len(fixed) + with_decision
        for name, column in zip(names, ordered.matrix.T):
            expected = decided if name in decision else MATRIX[:, SCHEMA.names.index(name)]
            np.testing.assert_array_equal(column, expected)
        np.testing.assert_array_equal(ordered.matrix[:, layout.place_in_chain], MATRIX)  # and back


def test_one_decision_for_all_rows():
    layout = ChainLayout.arrange(SCHEMA, ["b"], ["a", "c", "<decision>"], True)
    np.testing.assert_array_equal(layout.order(MATRIX).matrix[:, 1], [1.0, 1.0])


@pytest.mark.parametrize("decision", [1, 0.0, np.array([1, 0]), np.array([True]), np.array([[True, False]]), "yes"])
def test_invalid_decisions_raise(decision):
    layout = ChainLayout.arrange(SCHEMA, ["b"], ["a", "c", "<decision>"], True)
    with pytest.raises(InputError, match="decision must be True or False, for all rows or for each row"):
        layout.order(MATRIX, decision)


PRIVATE = mcce.DPSampler(bounds={"age": (18, 80)}, levels="schema", max_depth=1)
ROWS = pd.DataFrame({"age": np.arange(20, 60), "job": pd.Categorical(["clerk", "pilot"] * 20)})


@pytest.mark.parametrize(
    "sampler", [PRIVATE, mcce.DPSampler, "dp", {"job": PRIVATE, "*": "cart"}, {"*": "dp"}, mcce.Auto([PRIVATE])]
)
def test_private_conditional_outside_private_fit_raises(sampler):
    refused = r"DPSampler for '\w+' does not make this model private.*sampler=mcce\.Privacy"
    with pytest.raises(SamplerError, match=refused):
        mcce.ChainModel(sampler=sampler, n_jobs=1).fit(ROWS)
    with pytest.raises(SamplerError, match=refused):
        mcce.MCCE(lambda rows: rows["age"] > 30, decision=True, sampler=sampler, n_jobs=1).fit(ROWS)


def test_private_candidate_is_dropped_from_auto():
    chain = mcce.ChainModel(sampler=mcce.Auto(["cart", PRIVATE]), random_state=1, n_jobs=1).fit(ROWS)
    assert not any(isinstance(each, mcce.DPSampler) for each in chain.samplers_.values())
    assert chain.choice_.left_out["note"].str.contains("does not make this model private").all()


def test_conditional_with_a_testing_seed_is_accepted():
    sampler = mcce.DPSampler(**{**PRIVATE.get_params(), "testing_seed": 1})
    chain = mcce.ChainModel(sampler=sampler, random_state=1, n_jobs=1).fit(ROWS)
    assert "not private" in disclosed(chain.samplers_["age"])
