"""Where each column stands in the chain."""

import itertools

import numpy as np
import pandas as pd
import pytest

from mcce import InputError
from mcce.generators.layout import ChainLayout
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
def test_every_layout_puts_fixed_columns_first_then_the_decision_then_the_visited(with_decision):
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
        np.testing.assert_array_equal(layout.givens_of(MATRIX, decided), ordered.matrix[:, : layout.n_given])


def test_one_decision_for_all_rows():
    layout = ChainLayout.arrange(SCHEMA, ["b"], ["a", "c", "<decision>"], True)
    np.testing.assert_array_equal(layout.givens_of(MATRIX, False), [[0.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(layout.order(MATRIX).matrix[:, 1], [1.0, 1.0])


@pytest.mark.parametrize("decision", [1, 0.0, np.array([1, 0]), np.array([True]), np.array([[True, False]]), "yes"])
def test_what_is_no_decision(decision):
    layout = ChainLayout.arrange(SCHEMA, ["b"], ["a", "c", "<decision>"], True)
    with pytest.raises(InputError, match="decision must be True or False, for all rows or one a row"):
        layout.order(MATRIX, decision)
