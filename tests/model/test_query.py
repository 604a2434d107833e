"""Queries: each row once, in parts, of the kind of the training table; margins."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mcce.model import Query, bind, query
from mcce.table import Schema
from tests.model.problem import MATRIX, ROWS, SCHEMA, SIGMOID, Says, ask, two_columns

TABLE = pd.DataFrame({"x": np.arange(23.0), "job": ["a", "b", "c", "a"] * 5 + ["b"] * 3})
TABLE.loc[4, "x"] = np.nan


class Seen:
    """A model that records its queries."""

    def __init__(self):
        self.tables = []

    def __call__(self, rows):
        self.tables.append(rows)
        return np.nan_to_num(np.asarray(rows["x"] if isinstance(rows, pd.DataFrame) else rows[:, 0], dtype=float)) / 20


@pytest.mark.parametrize("part", [1, 5, 100])
def test_parts_are_joined_in_order(monkeypatch, part):
    monkeypatch.setattr(query, "QUERY_ROWS", part)
    schema, model = Schema.from_data(TABLE), Seen()
    ask_model = Query(model, (0.5, 1.0), schema)
    answer = ask_model(schema.encode(TABLE).matrix)
    np.testing.assert_array_equal(answer.prediction, TABLE["x"].fillna(0) / 20)
    np.testing.assert_array_equal(answer.wanted, TABLE["x"].between(10, 20))
    assert max(map(len, model.tables)) <= part
    assert all(table.dtypes.equals(TABLE.dtypes) for table in model.tables)
    assert (ask_model.n_rows, ask_model.n_calls) == (23, len(model.tables))
    assert ask_model.seconds > 0


def test_rows_are_asked_once():
    schema, model = Schema.from_data(TABLE), Seen()
    ask_model = Query(model, (0.5, 1.0), schema)
    rows = schema.encode(TABLE).matrix
    rng = np.random.default_rng(1)
    for _ in range(30):
        chosen = rng.integers(0, 23, 9)
        answer = ask_model(rows[chosen])
        np.testing.assert_array_equal(answer.prediction, np.nan_to_num(rows[chosen, 0]) / 20)
        np.testing.assert_array_equal(answer.wanted, TABLE["x"].between(10, 20).to_numpy()[chosen])
    assert ask_model.n_rows == 23
    asked = pd.concat(model.tables)
    assert not asked.duplicated().any()


def test_rows_with_one_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(query, "hash_rows", lambda rows: np.zeros(len(rows), dtype=np.uint64))
    ask_model = Query(lambda frame: frame["x"], (0.5, 10), SCHEMA)
    for _ in range(2):
        answer = ask_model(MATRIX)
        assert answer.prediction.tolist() == ROWS["x"].tolist()
        assert answer.wanted.tolist() == [False, False, True, True]


def test_confirm_asks_again():
    rng = np.random.default_rng(1)
    ask_model = Query(lambda frame: rng.random(len(frame)), (0.5, 1), SCHEMA)
    first = ask_model(MATRIX).prediction
    assert (ask_model(MATRIX).prediction == first).all()
    assert (ask_model.confirm(MATRIX).prediction != first).all()
    assert (ask_model(MATRIX).prediction == first).all()
    assert ask_model.n_rows == 8


def test_model_that_changes_its_input():
    def careless(frame):
        frame["x"] = 2 * frame["x"]
        frame["more"] = 1
        return frame["x"]

    X, rows = ROWS.copy(), MATRIX.copy()
    assert bind(careless, (0, 9)).answer(X, "the training rows").prediction.tolist() == [-2, 0, 1, 4]
    pd.testing.assert_frame_equal(X, ROWS)
    ask_model = Query(careless, (0, 9), SCHEMA)
    assert ask_model(rows).prediction.tolist() == [-2, 0, 1, 4]
    assert ask_model.confirm(rows).prediction.tolist() == [-2, 0, 1, 4]
    assert (rows == MATRIX).all()
    assert (
        Query(lambda array: array.__setitem__(0, 7) or array[:, 0], (0, 9), Schema.from_data(MATRIX))(rows)
    ).prediction[0] == 7
    assert (rows == MATRIX).all()


def test_model_gets_the_kind_and_order_of_the_training_table():
    frames = {}
    for kind, X in {"pandas": TABLE, "polars": pl.from_pandas(TABLE), "array": TABLE[["x"]].to_numpy()}.items():
        schema = Schema.from_data(X)
        arranged = schema.arrange(schema.names[::-1])

        def model(rows, kind=kind):
            frames[kind] = rows
            return np.zeros(len(rows))

        Query(model, (0, 1), arranged)(arranged.encode(X).matrix)
    assert list(frames["pandas"]) == ["x", "job"]
    pd.testing.assert_frame_equal(frames["pandas"], TABLE)
    assert frames["polars"].columns == ["x", "job"]
    assert isinstance(frames["polars"], pl.DataFrame)
    assert isinstance(frames["array"], np.ndarray)


def test_no_rows_do_not_query_the_model():
    def never(frame):
        raise AssertionError

    model = Says([0, 1], predict_proba=never, predict=never)
    for decision, kind in (((0.5, 1), "f"), (1, "O"), (never, "b")):
        answer = ask(decision, model, MATRIX[:0])
        assert (len(answer.prediction), answer.prediction.dtype.kind) == (0, kind)
        assert answer.wanted.dtype == bool


def test_margin_of_scores():
    model = Says([0, 1], predict_proba=two_columns)
    np.testing.assert_allclose(ask((0.5, 1), model).margin, SIGMOID - 0.5)
    np.testing.assert_allclose(ask((0, 0.5), model).margin, 0.5 - SIGMOID)
    np.testing.assert_allclose(ask((0.4, 0.6), model).margin, np.minimum(SIGMOID - 0.4, 0.6 - SIGMOID))
    x = ROWS["x"].to_numpy()
    np.testing.assert_allclose(ask((0, 9), lambda f: f["x"]).margin, np.minimum(x, 9 - x))
    beyond = ask((0, 9), lambda f: f["x"], training_predictions=x)  # no training row is above 9
    np.testing.assert_allclose(beyond.margin, x)
    assert np.isnan(ask((-9, 9), lambda f: f["x"], training_predictions=x).margin).all()
    assert np.isnan(ask(lambda f: f["x"] > 0, None).margin).all()


def test_margin_of_labels():
    probabilities = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.45, 0.45], [0.0, 0.0, 1.0]])
    model = Says(list("abc"), predict_proba=probabilities, predict=list("abbc"))
    np.testing.assert_allclose(ask("b", model).margin, [-0.3, 0.2, 0.0, -1.0])
    np.testing.assert_allclose(ask(["b", "c"], model).margin, [-0.3, 0.3, 0.35, 1.0])
    assert np.isnan(ask("b", model, margins=False).margin).all()
    assert np.isnan(ask("b", Says(list("abc"), predict=list("abbc"))).margin).all()
