"""Answers of decision functions: accepted in any container, or invalid."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import ModelError
from mcce.model.decisions import Interval, resolve_decision
from tests.model.problem import ROWS, SIGMOID, Says, query, two_columns


class TestCallables:
    def test_function_is_a_model(self):
        answer = query((0.5, 1), lambda frame: two_columns(frame)[:, 1])
        np.testing.assert_allclose(answer.scores, SIGMOID)
        assert query("high", lambda f: np.where(f["x"] > 0, "high", "low")).wanted.tolist() == [
            False,
            False,
            True,
            True,
        ]

    def test_several_columns_require_of(self):
        with pytest.raises(ModelError, match=r"the model two_columns.*2 columns \(0, 1\)"):
            query((0.5, 1), two_columns)
        np.testing.assert_allclose(query(Interval(0, 1, of=0), two_columns).scores, 1 - SIGMOID)
        frame = pd.DataFrame(two_columns(ROWS), columns=[1, 0])
        np.testing.assert_allclose(query(Interval(0, 1, of=0), lambda f: frame).scores, SIGMOID)

    @pytest.mark.parametrize(
        "reply",
        [
            [0, 1, 0, 1],
            (0.0, 1.0, 0.0, 1.0),
            np.array([[0], [1], [0], [1]]),
            np.array([0, 1, 0, 1], dtype=object),
            np.array([False, True, False, True]),
            np.ma.array([0, 1, 0, 1], mask=False),
            pd.Series([0, 1, 0, 1], index=[3, 2, 1, 0]),
            pd.Series([0, 1, 0, 1], dtype="Int64"),
            pd.array([0.0, 1.0, 0.0, 1.0], dtype="Float64"),
            pd.array([False, True, False, True], dtype="boolean"),
            pd.Categorical([0, 1, 0, 1]),
            pd.DataFrame({"score": [0, 1, 0, 1]}, index=list("dcba")),
        ],
        ids=lambda reply: type(reply).__name__,
    )
    def test_any_container(self, reply):
        answer = query((0.5, 1), lambda frame: reply)
        assert answer.scores.tolist() == [0, 1, 0, 1]
        assert answer.scores.dtype == float
        assert answer.wanted.tolist() == [False, True, False, True]

    @pytest.mark.parametrize(
        "reply",
        [
            ["u", "v", "u", "v"],
            np.array(["u", "v", "u", "v"], dtype=object),
            pd.Series(["u", "v", "u", "v"], index=[3, 2, 1, 0]),
            pd.Categorical(["u", "v", "u", "v"]),
            pd.Series(["u", "v", "u", "v"], dtype="category"),
            pd.array(["u", "v", "u", "v"], dtype="string"),
            np.array([["u"], ["v"], ["u"], ["v"]]),
        ],
        ids=lambda reply: type(reply).__name__,
    )
    def test_any_container_of_labels(self, reply):
        assert query("v", lambda frame: reply).wanted.tolist() == [False, True, False, True]

    def test_one_row_squeezed_to_a_scalar(self):
        assert query((0, 1), lambda f: np.float32(0.5), ROWS[:1]).scores.tolist() == [0.5]

    def test_infinite_scores_are_valid(self):
        assert query((0, np.inf), lambda f: [np.inf, -np.inf, 0, 1]).wanted.tolist() == [
            True,
            False,
            True,
            True,
        ]

    def test_frame_is_not_modified(self):
        def model(frame):
            frame["twice"] = 2 * frame["x"]
            return frame["twice"]

        assert query((0, np.inf), model).scores.tolist() == [-2, 0, 1, 4]
        assert list(ROWS.columns) == ["x"]

    def test_no_rows_do_not_query_the_model(self):
        model = Says([0, 1], predict_proba=two_columns, predict=[1, 1, 1, 1])
        for decision, kind in (((0.5, 1), "f"), (1, "O"), (lambda f: 1 / 0, "b")):
            answer = query(decision, model, ROWS[:0])
            assert answer.scores.shape == answer.wanted.shape == (0,)
            assert answer.scores.dtype.kind == kind
            assert answer.wanted.dtype == bool
        assert model.queried == 0


class TestPredicates:
    @pytest.mark.parametrize("convert", [np.asarray, list, pd.Series, lambda v: pd.array(v, dtype="boolean")])
    def test_without_a_model(self, convert):
        decision = resolve_decision(lambda frame: convert(frame["x"].to_numpy() > 0), None)
        answer = decision.evaluate(ROWS, "rows")
        assert answer.wanted.tolist() == answer.scores.tolist() == [False, False, True, True]
        assert answer.scores.dtype == bool

    @pytest.mark.parametrize(
        ("reply", "message"),
        [
            ([0.3, 0.7, 0.1, 0.2], "predicate .*returned 0.3, not booleans.*>= 0.5"),
            ([0, 1, 1, 0], "returned 0, not booleans"),
            (["yes", "no", "no", "no"], "returned 'yes', not booleans"),
            ([True, None, True, True], r"1 of 4 rows, at positions 1 \(index 'b'\)"),
            (pd.array([True, True, pd.NA, None], dtype="boolean"), "2 of 4 rows"),
            ([True], "returned 1 values, expected 4"),
            (np.ones((4, 2), dtype=bool), "2 columns, expected one boolean per row"),
        ],
    )
    def test_bad_predicates(self, reply, message):
        with pytest.raises(ModelError, match=message):
            query(lambda frame: reply, None)


class TestBadAnswers:
    def test_model_error_is_reported(self):
        def model(frame):
            raise KeyError("no column 'age'\nsecond line")

        with pytest.raises(ModelError, match=r"the model model, queried with 4 rows \(the test rows\), raised") as e:
            query((0, 1), model)
        assert isinstance(e.value.__cause__, KeyError)

        def silent(frame):
            raise RuntimeError

        with pytest.raises(ModelError, match=r"RuntimeError: no message.*shape \(4, 1\)"):
            query((0, 1), silent)

        def two_lines(frame):
            raise ValueError("first line\nsecond line")

        with pytest.raises(ModelError, match=r"ValueError: first line\nsecond line\.\nCheck that it is fitted"):
            query((0, 1), two_lines)

    @pytest.mark.parametrize("decision", [(0, 1), 1])
    @pytest.mark.parametrize("reply", [[1, 0, 1], [1] * 5, np.ones((1, 4))])
    def test_wrong_length(self, decision, reply):
        with pytest.raises(ModelError, match=f"returned {len(reply)} values, expected 4"):
            query(decision, lambda frame: reply)

    def test_missing_scores(self):
        frame = pd.DataFrame({"x": np.arange(9.0)}, index=pd.Index(list("abcdefghi")))
        for missing in (np.nan, None, pd.NA):
            reply = [0.5, missing, missing, 0.5, missing, 0.5, missing, missing, missing]
            message = r"6 of 9 rows, at positions 1, 2, 4, 6, 7, ... \(index 'b', 'c', 'e', 'g', 'h', ...\)"
            with pytest.raises(ModelError, match=message):
                query((0, 1), lambda f, reply=reply: reply, frame)
        with pytest.raises(ModelError, match=r"1 of 2 rows, at positions 1\. Drop"):
            query((0, 1), lambda f: [0, np.nan], np.zeros((2, 1)))
        with pytest.raises(ModelError, match="2 of 4 rows, at positions 0, 3"):
            query((0, 1), lambda f: np.ma.array([1, 0, 0, 1], mask=[1, 0, 0, 1]))
        with pytest.raises(ModelError, match="4 of 4 rows"):
            query((0, 1), Says([0, 1], predict_proba=np.full((4, 2), np.nan)))

    def test_missing_labels(self):
        with pytest.raises(ModelError, match="2 of 4 rows, at positions 1, 2"):
            query("u", lambda f: ["u", None, np.nan, "v"])
        with pytest.raises(ModelError, match="1 of 4 rows, at positions 3"):
            query("u", lambda f: pd.Categorical(["u", "v", "u", None]))

    @pytest.mark.parametrize(
        "reply",
        [
            ["good", "bad", "bad", "bad"],
            np.array(["1", "2", "3", "4"], dtype=object),
            np.array([1j, 1, 1, 1]),
            np.array([1j, 1, 1, 1], dtype=object),
            np.array([np.complex64(1j), 1, 1, 1], dtype=object),
            pd.Timestamp("2020-01-01") + pd.to_timedelta(range(4), "D"),
            pd.Categorical(["u", "v", "u", "v"]),
        ],
        ids=lambda reply: str(getattr(reply, "dtype", "list")),
    )
    def test_not_numbers(self, reply):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ModelError, match=r"not a number.*give the wanted label as the decision"):
                query((0, 1), lambda frame: reply)

    @pytest.mark.parametrize("reply", [None, {"a": 1}, 0.5, (v for v in range(4))])
    def test_not_an_array(self, reply):
        with pytest.raises(ModelError, match=r"returned a single .*, expected 4 values"):
            query((0, 1), lambda frame: reply)

    def test_scores_are_not_labels(self):
        with pytest.raises(ModelError, match=r"returned 0.25, which is not a class label like 1"):
            query(1, lambda f: [0, 0.25, 1, 1])
        with pytest.raises(ModelError, match="returned 0, which is not a class label like 'good'"):
            query("good", lambda f: [0, 1, 0, 1])
        with pytest.raises(ModelError, match="returned '0', which is not a class label like 1"):
            query(1, lambda f: ["0", "1", "0", "1"])
        assert query(1, lambda f: [0.0, 1.0, 0.0, 1.0]).wanted.tolist() == [False, True, False, True]
        with pytest.raises(ModelError, match=r"returned 0\.25, which is not a class label like 1\.0"):
            query(1.0, lambda f: [0, 0.25, 1, 1])
        assert query(0.5, lambda f: [0.5, 1.0, 0.5, 1.0]).wanted.tolist() == [True, False, True, False]

    def test_predictions_outside_the_declared_classes(self):
        with pytest.raises(ModelError, match="returned 0, which is not a class label like 'good' of 'bad', 'good'"):
            query("good", Says(["bad", "good"], predict=[0, 1, 0, 1]))
