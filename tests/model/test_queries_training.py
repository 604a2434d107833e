"""The training rows after fit: kept by reference, checked before reuse, and not saved."""

import pickle

import numpy as np
import pandas as pd
import pytest

from mcce import InputError
from mcce.model.decisions import resolve_decision
from mcce.model.queries import SpotCheck, TrainingTable, predict_table, spot_positions
from mcce.table import Schema

queried = []


def score(rows):
    queried.append(len(rows))
    return rows["x"].to_numpy(dtype=float) / 100


def training_rows(table, *, answered=True):
    schema = Schema.from_data(table)
    decision = resolve_decision((0.5, 1.0), score)
    spots = spot_positions(len(table))
    answer = predict_table(decision, table.iloc[spots])
    checked = SpotCheck(spots, schema.encode(table.iloc[spots]).matrix, answer)
    return TrainingTable(table, schema, decision, checked, predict_table(decision, table).wanted if answered else None)


def table_of(n=100):
    return pd.DataFrame({"x": np.arange(n) % 100 * 1.0, "job": pd.Categorical(np.array(["a", "b"])[np.arange(n) % 2])})


@pytest.mark.parametrize("answered", [True, False])
def test_rows_and_decisions_match_the_table(answered):
    table = table_of(250)
    kept = training_rows(table, answered=answered)
    assert kept.known_table() is table
    np.testing.assert_array_equal(kept.matrix(), np.column_stack([table["x"], np.arange(250) % 2]))
    np.testing.assert_array_equal(kept.wanted(), table["x"] >= 50)


def test_model_is_queried_at_most_once():
    kept = training_rows(table_of(), answered=False)
    queried.clear()
    first = kept.wanted()
    assert kept.wanted() is first
    assert queried == [100]


def test_modified_table_raises():
    table = table_of()
    kept = training_rows(table, answered=False)
    table.loc[99, "x"] = -1.0
    for use in (kept.known_table, kept.matrix, kept.wanted):
        with pytest.raises(
            InputError, match=r"the training table has been changed since the fit\. Fit again, with a copy"
        ):
            use()


def test_shortened_table_raises():
    kept = training_rows(table_of())
    kept.table = kept.table.iloc[:-1]
    with pytest.raises(InputError, match="has been changed since"):
        kept.matrix()


def test_saved_copy_has_answers_but_no_table():
    table = table_of(20_000)
    kept = training_rows(table)
    saved = pickle.dumps(kept)
    assert len(saved) < 8 * len(table)  # smaller than one column of the table
    loaded = pickle.loads(saved)
    assert loaded.known_table() is None
    np.testing.assert_array_equal(loaded.wanted(), table["x"] >= 50)
    with pytest.raises(
        InputError, match=r"training rows are not stored with an explainer, and are needed here\. Fit again\.$"
    ):
        loaded.matrix()
    with pytest.raises(InputError, match=r"needed here\. Do this\.$"):
        loaded.matrix("Do this.")


def test_saved_copy_without_answers_raises():
    loaded = pickle.loads(pickle.dumps(training_rows(table_of(), answered=False)))
    with pytest.raises(InputError, match="training rows are not stored with an explainer"):
        loaded.wanted()
