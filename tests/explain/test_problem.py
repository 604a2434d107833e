"""The factuals are encoded, named, and queried once together with some training rows."""

import numpy as np
import pandas as pd
import pytest

from mcce import InputError
from mcce.exceptions import MCCEWarning
from mcce.explain.problem import encode_factuals, read_factuals
from mcce.model.decisions import resolve_decision
from mcce.model.queries import SpotCheck, predict_table
from mcce.table import Schema

TRAINING = pd.DataFrame({"x": np.arange(10.0), "n": np.arange(10), "job": list("aabbaabbab")})
SCHEMA = Schema.from_data(TRAINING)
FACTUALS = pd.DataFrame({"x": [2.5, np.nan, 8.0], "n": [1, 2, 40], "job": ["b", "a", "a"]}, index=["p", "q", "r"])


def spots_of(decision, positions=(0, 9)):
    rows = TRAINING.iloc[list(positions)]
    return SpotCheck(np.array(positions), SCHEMA.encode(rows).matrix, predict_table(decision, rows))


def test_model_is_queried_once_for_factuals_and_spot_checks():
    queried = []

    def model(rows):
        queried.append(rows)
        return rows["x"].fillna(0).to_numpy() / 10

    decision = resolve_decision((0.5, 1.0), model)
    spots = spots_of(decision)
    queried.clear()
    found = read_factuals(FACTUALS, SCHEMA, decision, spots)
    assert len(queried) == 1
    assert queried[0].index.tolist() == ["p", "q", "r", "training row 0", "training row 9"]
    assert queried[0].dtypes.equals(TRAINING.dtypes)
    np.testing.assert_array_equal(found.scores, [0.25, 0.0, 0.8])
    np.testing.assert_array_equal(found.wanted, [False, False, True])
    np.testing.assert_array_equal(found.matrix, [[2.5, 1, 1], [np.nan, 2, 0], [8, 40, 0]])
    assert found.index.tolist() == ["p", "q", "r"]
    assert len(found) == 3


def test_no_rows_do_not_query_the_model():
    def model(rows):
        return rows["x"].to_numpy() / 10

    decision = resolve_decision((0.5, 1.0), model)
    spots = spots_of(decision)

    def fail(rows):
        raise AssertionError("the model was queried")

    found = read_factuals(FACTUALS.iloc[:0], SCHEMA, resolve_decision((0.5, 1.0), fail), spots)
    assert len(found) == found.scores.size == found.wanted.size == 0
    assert found.matrix.shape == (0, 3)


def test_batch_dependent_model_is_reported():
    def centred(rows):
        return (rows["x"] - rows["x"].mean()).fillna(0).to_numpy()

    decision = resolve_decision((0.0, 10.0), centred)
    with pytest.warns(MCCEWarning, match="it is not deterministic, or it depends on the other rows of the table"):
        read_factuals(FACTUALS, SCHEMA, decision, spots_of(decision))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (FACTUALS.set_axis(["p", "q", "p"]), "the index of X holds 'p' more than once; it names the factuals"),
        (
            FACTUALS.astype({"n": object}).assign(n=[1, None, 2]),
            "column 'n' of X has 1 missing value.* first in row 'q'",
        ),
        (FACTUALS.assign(x=[1.0, 1e160, 2.0]), r"column 'x' of X holds numbers of size 1e\+160"),
        (FACTUALS.assign(job="pilot"), "'pilot'"),
        (FACTUALS.drop(columns="x"), "X lacks .*'x'"),
    ],
)
def test_invalid_factuals_raise(X, message):
    with pytest.raises(InputError, match=message):
        encode_factuals(X, SCHEMA)
