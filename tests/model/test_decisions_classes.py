"""The class of a score, compared with hand-computed scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from mcce.exceptions import InputError, ModelError
from mcce.model.decisions import Interval, resolve_decision
from tests.model.problem import ROWS, SIGMOID, Says, query, two_columns


class TestWhichClass:
    @pytest.mark.parametrize("classes", [[0, 1], [False, True], [-1, 1], [0.0, 1.0]])
    @pytest.mark.parametrize("container", [list, np.array, pd.Index])
    def test_classes_0_and_1_mean_class_1(self, classes, container):
        answer = query((0.5, 1), Says(container(classes), predict_proba=two_columns))
        np.testing.assert_allclose(answer.scores, SIGMOID)
        assert answer.wanted.tolist() == [False, True, True, True]
        assert answer.wanted.dtype == bool

    @pytest.mark.parametrize("classes", [[1, 0], [True, False], [1, -1]])
    def test_classes_in_any_order_are_found_by_label(self, classes):
        model = Says(np.array(classes), predict_proba=two_columns)
        np.testing.assert_allclose(query((0.5, 1), model).scores, 1 - SIGMOID)
        np.testing.assert_allclose(query(Interval(0.5, 1, of=classes[1]), model).scores, SIGMOID)

    @pytest.mark.parametrize("classes", [["bad", "good"], ["0", "1"], [1, 2], [0, 2], [0, 1, 2], [1], [0]])
    def test_other_classes_require_of(self, classes):
        with pytest.raises(InputError, match=f"{classes[0]!r}.*Interval\\(0.5, 1, of={classes[-1]!r}\\)"):
            resolve_decision((0.5, 1), Says(np.array(classes), predict_proba=two_columns))

    def test_zero_as_the_wanted_class(self):
        answer = query(Interval(0.5, 1, of=0), Says(np.array([0, 1]), predict_proba=two_columns))
        np.testing.assert_allclose(answer.scores, 1 - SIGMOID)
        assert answer.wanted.tolist() == [True, True, False, False]

    def test_unknown_class(self):
        model = Says(np.array(["bad", "good"]), predict_proba=two_columns, predict=lambda f: ["good"] * len(f))
        with pytest.raises(InputError, match=r"of is 'goood'.*'bad', 'good'; did you mean 'good'"):
            resolve_decision(Interval(0.5, 1, of="goood"), model)
        with pytest.raises(InputError, match=r"decision is 'goood'.*'bad', 'good'; did you mean 'good'"):
            resolve_decision("goood", model)
        with pytest.raises(InputError, match=r"decision is 1, .*'bad', 'good'\.$"):
            resolve_decision(1, model)

    def test_text_label_is_not_a_number(self):
        with pytest.raises(InputError, match=r"decision is '1'.*0, 1; did you mean 1"):
            resolve_decision("1", Says([0, 1], predict=[0, 1, 1, 0]))

    def test_two_columns_without_classes_are_0_and_1(self):
        model = Says(predict_proba=two_columns)
        np.testing.assert_allclose(query((0, 1), model).scores, SIGMOID)
        np.testing.assert_allclose(query(Interval(0, 1, of=1), model).scores, SIGMOID)
        np.testing.assert_allclose(query(Interval(0, 1, of=0), model).scores, 1 - SIGMOID)
        with pytest.raises(InputError, match="of is 2"):
            query(Interval(0, 1, of=2), model)

    def test_three_columns_without_classes_require_of(self):
        columns = np.array([[0.1, 0.2, 0.7]] * 4)
        with pytest.raises(InputError, match=r"does not say of which class.*0, 1, 2"):
            query((0, 1), Says(predict_proba=columns))
        assert query(Interval(0, 1, of=2), Says(predict_proba=columns)).scores.tolist() == [0.7] * 4
        with pytest.raises(InputError, match="of is -1"):
            query(Interval(0, 1, of=-1), Says(predict_proba=columns))

    @pytest.mark.parametrize("shape", [(4,), (4, 1)])
    def test_single_probability_is_of_class_1(self, shape):
        reply = SIGMOID.reshape(shape)
        for of in (None, 1, True):
            np.testing.assert_allclose(query(Interval(0, 1, of=of), Says(predict_proba=reply)).scores, SIGMOID)
        with pytest.raises(ModelError, match="not known to be of 0"):
            query(Interval(0, 1, of=0), Says(predict_proba=reply))

    def test_single_probability_with_classes_is_of_the_last(self):
        named = Says(["bad", "good"], predict_proba=SIGMOID)
        np.testing.assert_allclose(query(Interval(0, 1, of="good"), named).scores, SIGMOID)
        np.testing.assert_allclose(query((0, 1), Says([0, 1], predict_proba=SIGMOID)).scores, SIGMOID)
        with pytest.raises(ModelError, match="'bad' is not"):
            query(Interval(0, 1, of="bad"), named)
        with pytest.raises(ModelError, match="last of two, and 1 is not"):
            query((0, 1), Says([1, 0], predict_proba=SIGMOID))
        with pytest.raises(ModelError, match="for the classes 0, 1, 2"):
            query(Interval(0, 1, of=2), Says([0, 1, 2], predict_proba=SIGMOID))

    def test_model_trained_on_one_class(self):
        X = np.zeros((4, 1))
        model = RandomForestClassifier(n_estimators=2).fit(X, [0, 0, 0, 0])
        with pytest.raises(InputError, match=r"of which class the score is \(classes: 0\)"):
            resolve_decision((0.5, 1), model)
        assert query(Interval(0.5, 1, of=0), model, X).scores.tolist() == [1.0] * 4

    def test_named_columns_are_matched_by_name(self):
        frame = pd.DataFrame({"good": SIGMOID, "bad": 1 - SIGMOID}, index=[9, 8, 7, 6])
        of_good = Interval(0, 1, of="good")
        np.testing.assert_allclose(query(of_good, Says(predict_proba=frame)).scores, SIGMOID)
        np.testing.assert_allclose(query(of_good, Says(["bad", "good"], predict_proba=frame)).scores, SIGMOID)
        with pytest.raises(InputError, match="'good', 'bad'"):
            query((0, 1), Says(predict_proba=frame))
        np.testing.assert_allclose(query(of_good, lambda rows: frame[["good"]]).scores, SIGMOID)
        with pytest.raises(ModelError, match="not known to be of 'good'"):
            query(of_good, lambda rows: frame[["bad"]])
        by_position = frame.set_axis(["p0", "p1"], axis=1)
        np.testing.assert_allclose(query((0, 1), Says([0, 1], predict_proba=by_position)).scores, 1 - SIGMOID)

    def test_columns_inconsistent_with_classes(self):
        with pytest.raises(ModelError, match="2 columns for 3 classes"):
            query(Interval(0, 1, of="u"), Says(["u", "v", "w"], predict_proba=two_columns))

    def test_columns_that_are_not_a_distribution(self):
        with pytest.raises(ModelError, match=r"sum to 1.6, not 1.*multi-label"):
            query((0, 1), Says([0, 1], predict_proba=np.full((4, 2), 0.8)))
        assert query((0, 1), Says([0, 1], predict_proba=np.zeros((4, 2)))).scores.tolist() == [0] * 4

    def test_several_outputs(self, X, y, y3):
        model = RandomForestClassifier(n_estimators=2, random_state=1).fit(X, np.column_stack([y, y3]))
        for decision in ((0.5, 1), 1):
            with pytest.raises(ModelError, match="several outputs"):
                resolve_decision(decision, model)
        with pytest.raises(ModelError, match="a table for each of 2 outputs"):
            query((0.5, 1), Says(predict_proba=[two_columns(ROWS)] * 2))
        with pytest.raises(ModelError, match="a list that is not an array"):
            query((0.5, 1), Says(predict_proba=[two_columns(ROWS), np.ones((4, 3)) / 3]))


class TestDecisionFunction:
    def test_single_score_is_of_the_second_class(self):
        score = ROWS["x"].to_numpy()
        named = Says(["bad", "good"], decision_function=score)
        np.testing.assert_array_equal(query(Interval(0, np.inf, of="good"), named).scores, score)
        np.testing.assert_array_equal(query(Interval(0, np.inf, of="bad"), named).scores, -score)
        np.testing.assert_array_equal(query((0, np.inf), Says([0, 1], decision_function=score)).scores, score)
        np.testing.assert_array_equal(query((0, np.inf), Says([1, 0], decision_function=score)).scores, -score)
        with pytest.raises(InputError, match="of which class"):
            query((0, np.inf), named)

    def test_single_score_without_classes_has_no_class(self, X):
        model = IsolationForest(n_estimators=5, random_state=1).fit(X)
        decision = resolve_decision((0, np.inf), model)
        np.testing.assert_array_equal(decision.evaluate(X, "rows").scores, model.decision_function(X))
        assert decision.describe() == "score at least 0"
        with pytest.raises(ModelError, match="Leave out `of`"):
            query(Interval(0, np.inf, of=1), model, X)

    def test_linear_svc(self, X, y):
        names = np.where(y == 1, "good", "bad")
        model = LinearSVC(dual=False).fit(X, names)
        wanted = query(Interval(0, np.inf, "neither", of="good"), model, X).wanted
        np.testing.assert_array_equal(wanted, model.predict(X) == "good")
        wanted = query(Interval(0, np.inf, "neither", of="bad"), model, X).wanted
        np.testing.assert_array_equal(wanted, model.predict(X) == "bad")

    def test_svc(self, X, y, y3):
        model = SVC().fit(X, y)
        np.testing.assert_array_equal(query((0, np.inf), model, X).scores, model.decision_function(X))
        model = SVC().fit(X, y3)
        np.testing.assert_array_equal(
            query(Interval(0, np.inf, of=0), model, X).scores, model.decision_function(X)[:, 0]
        )

    def test_one_vs_one_columns_are_not_classes(self, X, y3):
        svc = SVC(decision_function_shape="ovo")
        piped = make_pipeline(StandardScaler(), svc)
        for model in (svc, piped, GridSearchCV(piped, {"svc__C": [1.0]}, cv=2)):
            with pytest.raises(ModelError, match="pairs of classes"):
                resolve_decision(Interval(0, np.inf, of=0), model.fit(X, y3))

    def test_multi_label(self, X, y):
        labels = np.column_stack([y, X["b"] > 0]).astype(int)
        for model in (RidgeClassifier(), OneVsRestClassifier(LinearSVC(dual=False))):
            with pytest.raises(ModelError, match="multi-label"):
                resolve_decision((0, np.inf), model.fit(X, labels))
        with pytest.raises(ModelError, match="multi-label"):
            query((0.5, 1), OneVsRestClassifier(LogisticRegression()).fit(X, labels), X)
        with pytest.raises(ModelError, match="2 columns, expected one class label per row"):
            query(1, RidgeClassifier().fit(X, labels), X)
