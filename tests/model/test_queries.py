"""Queries in parts of bounded size, and repeated queries."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from mcce import InputError, Interval
from mcce.exceptions import MCCEWarning
from mcce.model import queries
from mcce.model.decisions import Answer, resolve_decision
from mcce.model.queries import EncodedModel, SpotCheck, check_wanted, predict_table, spot_positions
from mcce.table import Schema

TABLE = pd.DataFrame({"x": np.arange(23.0), "job": ["a", "b", "c", "a"] * 5 + ["b"] * 3}, index=range(100, 123))


class Seen:
    """A model that records its queries."""

    def __init__(self):
        self.tables = []

    def __call__(self, rows):
        self.tables.append(rows)
        return np.asarray(rows["x"] if isinstance(rows, pd.DataFrame) else rows[:, 0], dtype=float) / 20


@pytest.mark.parametrize("part", [1, 5, 23, 100])
def test_parts_are_joined_in_order(monkeypatch, part):
    monkeypatch.setattr(queries, "QUERY_ROWS", part)
    model = Seen()
    decision = resolve_decision((0.5, 1.0), model)
    schema = Schema.from_data(TABLE)
    scores, wanted = EncodedModel(decision, schema).predict_encoded(schema.encode(TABLE).matrix)
    np.testing.assert_array_equal(scores, TABLE["x"] / 20)
    np.testing.assert_array_equal(wanted, TABLE["x"].between(10, 20))
    assert max(len(table) for table in model.tables) <= part
    assert all(table.dtypes.equals(TABLE.dtypes) for table in model.tables)
    answer = predict_table(decision, TABLE)
    np.testing.assert_array_equal(answer.scores, scores)
    np.testing.assert_array_equal(answer.wanted, wanted)


def test_in_place_model_does_not_change_the_users_array():
    def careless(rows):
        rows[:] = 0.0
        return np.zeros(len(rows))

    table = np.arange(12.0).reshape(6, 2)
    predict_table(resolve_decision((0.0, 1.0), careless), table)
    np.testing.assert_array_equal(table, np.arange(12.0).reshape(6, 2))


@pytest.mark.parametrize(
    ("decision", "model", "message"),
    [
        (Interval(2, 3), Seen(), r"no training row has the wanted decision, .*\(the scores go from 0 to 1.1\)"),
        ("yes", lambda t: np.where(t["x"] > 3, "no", "maybe"), r"\(the answers are 'maybe', 'no'\)"),
    ],
)
def test_no_row_has_the_decision(decision, model, message):
    bound = resolve_decision(decision, model)
    with pytest.raises(InputError, match=message + ": there is nothing to learn it from"):
        check_wanted(bound, predict_table(bound, TABLE))


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 1000])
def test_spot_checks_are_spread_from_first_to_last_row(n):
    spots = spot_positions(n)
    assert (spots[0], spots[-1], spots.size) == (0, n - 1, min(n, 16))
    assert np.diff(spots).max(initial=1) <= np.ceil(n / 15)


def spot_check(scores):
    schema = Schema.from_data(TABLE)
    spots = np.array([0, 7, 22])
    answer = Answer(np.array(scores), np.array(scores) > 0.5)
    return SpotCheck(spots, schema.encode(TABLE.iloc[spots]).matrix, answer), schema


def test_rounding_difference_is_not_a_different_answer():
    spots, _ = spot_check([0.1, 0.2, 0.9])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spots.compare(Answer(np.array([0.1, 0.2 + 1e-9, 0.9]), spots.answer.wanted))


def test_different_answer_is_reported_with_its_position():
    spots, _ = spot_check([0.1, 0.2, 0.9])
    said = re.escape("differently when 2 of 3 training rows were queried again (those at positions 0, 22)")
    with pytest.warns(MCCEWarning, match=said):
        spots.compare(Answer(np.array([0.7, 0.2, 0.3]), np.array([True, False, False])))


def test_changed_table_is_detected():
    spots, schema = spot_check([0.1, 0.2, 0.9])
    assert spots.is_of(TABLE, schema)
    assert spots.is_of(TABLE.reset_index(drop=True), schema)
    assert not spots.is_of(TABLE.iloc[::-1], schema)
    assert not spots.is_of(TABLE.iloc[:22], schema)
    assert not spots.is_of(TABLE.assign(job="a"), schema)
