"""The desired decision, against hand-computed scores and the libraries' own columns."""

from __future__ import annotations

import functools
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from mcce.asking.decision import Answer, Interval, compare_answers, resolve_decision
from mcce.exceptions import InputError, ModelError

ROWS = pd.DataFrame({"x": [-1.0, 0.0, 0.5, 2.0]}, index=["a", "b", "c", "d"])
SIGMOID = 1 / (1 + np.exp(-ROWS["x"].to_numpy()))


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(1)
    return pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80)})


@pytest.fixture(scope="module")
def y(X):
    return (X["a"] + np.random.default_rng(2).normal(size=80) > 0).astype(int).to_numpy()


@pytest.fixture(scope="module")
def y3():
    return np.random.default_rng(3).integers(0, 3, 80)


class Says:
    """A model whose methods return what they are given: Says(predict_proba=..., classes_=...)."""

    def __init__(self, classes_=None, **replies):
        if classes_ is not None:
            self.classes_ = classes_
        self.asked = 0
        for method, reply in replies.items():
            setattr(self, method, functools.partial(self._reply, reply))

    def _reply(self, reply, frame):
        self.asked += 1
        return reply(frame) if callable(reply) else reply


def two_columns(frame):
    """P(class at position 0), P(class at position 1), with the sigmoid of x at position 1."""
    p = 1 / (1 + np.exp(-frame["x"].to_numpy()))
    return np.column_stack([1 - p, p])


def ask(decision, model, frame=ROWS):
    return resolve_decision(decision, model).ask(frame, "the test rows")


class TestInterval:
    @pytest.mark.parametrize(
        ("closed", "expected", "bounds", "text"),
        [
            ("both", [False, True, True, True, False], "[0, 1]", "score from 0 to 1"),
            ("left", [False, True, True, False, False], "[0, 1)", "score at least 0 and below 1"),
            ("right", [False, False, True, True, False], "(0, 1]", "score above 0 and at most 1"),
            ("neither", [False, False, True, False, False], "(0, 1)", "score above 0 and below 1"),
        ],
    )
    def test_edges(self, closed, expected, bounds, text):
        interval = Interval(0, 1, closed=closed)
        assert interval.contains(np.array([-1e-12, 0, 0.5, 1, 1 + 1e-12])).tolist() == expected
        assert interval.bounds() == bounds
        assert str(interval) == text

    def test_infinite_ends(self):
        scores = np.array([-np.inf, -1e300, 0, 1e300, np.inf])
        assert Interval(0, np.inf).contains(scores).tolist() == [False, False, True, True, True]
        assert Interval(-math.inf, 0, "neither").contains(scores).tolist() == [
            False,
            True,
            False,
            False,
            False,
        ]
        assert str(Interval(0, np.inf, "neither")) == "score above 0"
        assert Interval(-np.inf, 100).bounds() == "(-inf, 100]"

    def test_single_score(self):
        assert Interval(2, 2).contains(np.array([1, 2, 3])).tolist() == [False, True, False]

    def test_nan_is_in_no_interval(self):
        assert not Interval(-np.inf, np.inf).contains(np.array([np.nan]))[0]

    def test_text(self):
        assert str(Interval(0.5, 1)) == "score from 0.5 to 1"
        assert str(Interval(0.5, np.float32(1), of=np.str_("good"))) == "score of class 'good' from 0.5 to 1"

    def test_is_frozen_and_hashable(self):
        assert hash(Interval(0, 1)) == hash(Interval(0.0, 1.0))
        with pytest.raises(AttributeError):
            Interval(0, 1).low = 2

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            ((1, 0), "from 1 to 0 has low > high; swap"),
            ((math.nan, 1), "low of the interval is nan"),
            ((0, np.float64("nan")), "high of the interval is .*nan"),
            ((0, "1"), "high of the interval is '1'"),
            ((False, 1), "low of the interval is False"),
            ((0, None), "high of the interval is None"),
            ((0, 1, "open"), "closed is 'open'; it must be one of 'both', 'left', 'right', 'neither'"),
            ((0, 1, ["both"]), r"closed is \['both'\]; it must be one of"),
            ((1, 1, "left"), r"\[1, 1\) is empty"),
            ((1, 1, "right"), "is empty"),
            ((1, 1, "neither"), "is empty"),
        ],
    )
    def test_bad_intervals(self, args, message):
        with pytest.raises(InputError, match=message):
            Interval(*args)


class TestWhichClass:
    @pytest.mark.parametrize("classes", [[0, 1], [False, True], [-1, 1], [0.0, 1.0]])
    @pytest.mark.parametrize("container", [list, np.array, pd.Index])
    def test_a_01_pair_means_the_class_1(self, classes, container):
        answer = ask((0.5, 1), Says(container(classes), predict_proba=two_columns))
        np.testing.assert_allclose(answer.scores, SIGMOID)
        assert answer.wanted.tolist() == [False, True, True, True]
        assert answer.wanted.dtype == bool

    @pytest.mark.parametrize("classes", [[1, 0], [True, False], [1, -1]])
    def test_classes_in_odd_order_are_found_by_label(self, classes):
        model = Says(np.array(classes), predict_proba=two_columns)
        np.testing.assert_allclose(ask((0.5, 1), model).scores, 1 - SIGMOID)
        np.testing.assert_allclose(ask(Interval(0.5, 1, of=classes[1]), model).scores, SIGMOID)

    @pytest.mark.parametrize("classes", [["bad", "good"], ["0", "1"], [1, 2], [0, 2], [0, 1, 2], [1], [0]])
    def test_other_classes_need_of(self, classes):
        with pytest.raises(InputError, match=f"{classes[0]!r}.*Interval\\(0.5, 1, of={classes[-1]!r}\\)"):
            resolve_decision((0.5, 1), Says(np.array(classes), predict_proba=two_columns))

    def test_zero_as_the_wanted_class(self):
        answer = ask(Interval(0.5, 1, of=0), Says(np.array([0, 1]), predict_proba=two_columns))
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

    def test_text_is_no_number(self):
        with pytest.raises(InputError, match=r"decision is '1'.*0, 1; did you mean 1"):
            resolve_decision("1", Says([0, 1], predict=[0, 1, 1, 0]))

    def test_two_columns_without_classes_are_0_and_1(self):
        model = Says(predict_proba=two_columns)
        np.testing.assert_allclose(ask((0, 1), model).scores, SIGMOID)
        np.testing.assert_allclose(ask(Interval(0, 1, of=1), model).scores, SIGMOID)
        np.testing.assert_allclose(ask(Interval(0, 1, of=0), model).scores, 1 - SIGMOID)
        with pytest.raises(InputError, match="of is 2"):
            ask(Interval(0, 1, of=2), model)

    def test_three_columns_without_classes_need_of(self):
        columns = np.array([[0.1, 0.2, 0.7]] * 4)
        with pytest.raises(InputError, match=r"does not say of which class.*0, 1, 2"):
            ask((0, 1), Says(predict_proba=columns))
        assert ask(Interval(0, 1, of=2), Says(predict_proba=columns)).scores.tolist() == [0.7] * 4
        with pytest.raises(InputError, match="of is -1"):
            ask(Interval(0, 1, of=-1), Says(predict_proba=columns))

    @pytest.mark.parametrize("shape", [(4,), (4, 1)])
    def test_one_probability_is_of_class_1(self, shape):
        reply = SIGMOID.reshape(shape)
        for of in (None, 1, True):
            np.testing.assert_allclose(ask(Interval(0, 1, of=of), Says(predict_proba=reply)).scores, SIGMOID)
        with pytest.raises(ModelError, match="not known to be of 0"):
            ask(Interval(0, 1, of=0), Says(predict_proba=reply))

    def test_one_probability_with_classes_is_of_the_last(self):
        named = Says(["bad", "good"], predict_proba=SIGMOID)
        np.testing.assert_allclose(ask(Interval(0, 1, of="good"), named).scores, SIGMOID)
        np.testing.assert_allclose(ask((0, 1), Says([0, 1], predict_proba=SIGMOID)).scores, SIGMOID)
        with pytest.raises(ModelError, match="'bad' is not"):
            ask(Interval(0, 1, of="bad"), named)
        with pytest.raises(ModelError, match="last of two, and 1 is not"):
            ask((0, 1), Says([1, 0], predict_proba=SIGMOID))
        with pytest.raises(ModelError, match="for the classes 0, 1, 2"):
            ask(Interval(0, 1, of=2), Says([0, 1, 2], predict_proba=SIGMOID))

    def test_a_model_that_has_seen_one_class(self):
        X = np.zeros((4, 1))
        model = RandomForestClassifier(n_estimators=2).fit(X, [0, 0, 0, 0])
        with pytest.raises(InputError, match=r"of which class the score is \(classes: 0\)"):
            resolve_decision((0.5, 1), model)
        assert ask(Interval(0.5, 1, of=0), model, X).scores.tolist() == [1.0] * 4

    def test_named_columns_go_by_name(self):
        frame = pd.DataFrame({"good": SIGMOID, "bad": 1 - SIGMOID}, index=[9, 8, 7, 6])
        of_good = Interval(0, 1, of="good")
        np.testing.assert_allclose(ask(of_good, Says(predict_proba=frame)).scores, SIGMOID)
        np.testing.assert_allclose(ask(of_good, Says(["bad", "good"], predict_proba=frame)).scores, SIGMOID)
        with pytest.raises(InputError, match="'good', 'bad'"):
            ask((0, 1), Says(predict_proba=frame))
        np.testing.assert_allclose(ask(of_good, lambda rows: frame[["good"]]).scores, SIGMOID)
        with pytest.raises(ModelError, match="not known to be of 'good'"):
            ask(of_good, lambda rows: frame[["bad"]])
        by_position = frame.set_axis(["p0", "p1"], axis=1)
        np.testing.assert_allclose(ask((0, 1), Says([0, 1], predict_proba=by_position)).scores, 1 - SIGMOID)

    def test_columns_do_not_match_classes(self):
        with pytest.raises(ModelError, match="2 columns for 3 classes"):
            ask(Interval(0, 1, of="u"), Says(["u", "v", "w"], predict_proba=two_columns))

    def test_columns_that_are_no_distribution(self):
        with pytest.raises(ModelError, match=r"sum to 1.6, not 1.*multi-label"):
            ask((0, 1), Says([0, 1], predict_proba=np.full((4, 2), 0.8)))
        assert ask((0, 1), Says([0, 1], predict_proba=np.zeros((4, 2)))).scores.tolist() == [0] * 4

    def test_several_outputs(self, X, y, y3):
        model = RandomForestClassifier(n_estimators=2, random_state=1).fit(X, np.column_stack([y, y3]))
        for decision in ((0.5, 1), 1):
            with pytest.raises(ModelError, match="several outputs"):
                resolve_decision(decision, model)
        with pytest.raises(ModelError, match="a table for each of 2 outputs"):
            ask((0.5, 1), Says(predict_proba=[two_columns(ROWS)] * 2))
        with pytest.raises(ModelError, match="a list that is no array"):
            ask((0.5, 1), Says(predict_proba=[two_columns(ROWS), np.ones((4, 3)) / 3]))


class TestDecisionFunction:
    def test_one_score_is_of_the_second_class(self):
        score = ROWS["x"].to_numpy()
        named = Says(["bad", "good"], decision_function=score)
        np.testing.assert_array_equal(ask(Interval(0, np.inf, of="good"), named).scores, score)
        np.testing.assert_array_equal(ask(Interval(0, np.inf, of="bad"), named).scores, -score)
        np.testing.assert_array_equal(ask((0, np.inf), Says([0, 1], decision_function=score)).scores, score)
        np.testing.assert_array_equal(ask((0, np.inf), Says([1, 0], decision_function=score)).scores, -score)
        with pytest.raises(InputError, match="of which class"):
            ask((0, np.inf), named)

    def test_without_classes_it_is_of_none(self, X):
        model = IsolationForest(n_estimators=5, random_state=1).fit(X)
        decision = resolve_decision((0, np.inf), model)
        np.testing.assert_array_equal(decision.ask(X, "rows").scores, model.decision_function(X))
        assert decision.describe() == "score at least 0"
        with pytest.raises(ModelError, match="Leave out `of`"):
            ask(Interval(0, np.inf, of=1), model, X)

    def test_linear_svc(self, X, y):
        names = np.where(y == 1, "good", "bad")
        model = LinearSVC(dual=False).fit(X, names)
        wanted = ask(Interval(0, np.inf, "neither", of="good"), model, X).wanted
        np.testing.assert_array_equal(wanted, model.predict(X) == "good")
        wanted = ask(Interval(0, np.inf, "neither", of="bad"), model, X).wanted
        np.testing.assert_array_equal(wanted, model.predict(X) == "bad")

    def test_svc(self, X, y, y3):
        model = SVC().fit(X, y)
        np.testing.assert_array_equal(ask((0, np.inf), model, X).scores, model.decision_function(X))
        model = SVC().fit(X, y3)
        np.testing.assert_array_equal(ask(Interval(0, np.inf, of=0), model, X).scores, model.decision_function(X)[:, 0])

    def test_pairs_of_classes_are_not_classes(self, X, y3):
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
            ask((0.5, 1), OneVsRestClassifier(LogisticRegression()).fit(X, labels), X)
        with pytest.raises(ModelError, match="2 columns, expected one class label per row"):
            ask(1, RidgeClassifier().fit(X, labels), X)


class TestScikitLearn:
    def test_either_of_two_names(self, X, y):
        model = LogisticRegression().fit(X, np.where(y == 1, "good", "bad"))
        p_good = 1 / (1 + np.exp(-(X.to_numpy() @ model.coef_[0] + model.intercept_[0])))
        np.testing.assert_allclose(ask(Interval(0, 1, of="good"), model, X).scores, p_good)
        np.testing.assert_allclose(ask(Interval(0, 1, of="bad"), model, X).scores, 1 - p_good)
        good, bad = ask("good", model, X), ask("bad", model, X)
        np.testing.assert_array_equal(good.wanted, p_good > 0.5)
        np.testing.assert_array_equal(bad.wanted, p_good < 0.5)
        assert set(good.scores) == {"good", "bad"}

    @pytest.mark.parametrize("label", [1, 0, True, np.int64(1), np.float64(0), np.bool_(True)])
    def test_numeric_labels(self, X, y, label):
        model = LogisticRegression().fit(X, y)
        answer = ask(label, model, X)
        np.testing.assert_array_equal(answer.wanted, model.predict(X) == int(label))

    def test_three_classes(self, X, y3):
        model = LogisticRegression().fit(X, y3)
        for k in range(3):
            scores = ask(Interval(0, 1, of=k), model, X).scores
            np.testing.assert_array_equal(scores, model.predict_proba(X)[:, k])
            np.testing.assert_array_equal(ask(k, model, X).wanted, model.predict_proba(X).argmax(axis=1) == k)

    def test_pipeline_on_raw_frames(self, X, y):
        raw = X.assign(job=np.where(X["b"] > 0, "clerk", "pilot"))
        prepare = make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["a", "b"]))
        model = make_pipeline(prepare, LogisticRegression()).fit(raw, np.where(y == 1, "yes", "no"))
        search = GridSearchCV(model, {"logisticregression__C": [1.0]}, cv=2).fit(raw, y)
        np.testing.assert_array_equal(
            ask(Interval(0.5, 1, of="yes"), model, raw).scores, model.predict_proba(raw)[:, 1]
        )
        np.testing.assert_array_equal(ask((0.5, 1), search, raw).scores, search.predict_proba(raw)[:, 1])

    def test_regressor(self, X):
        model = LinearRegression().fit(X, 2 * X["a"] - X["b"] + 1)
        answer = ask((1, np.inf), model, X)
        np.testing.assert_allclose(answer.scores, 2 * X["a"] - X["b"] + 1)
        np.testing.assert_array_equal(answer.wanted, answer.scores >= 1)
        two = LinearRegression().fit(X, X[["a"]])
        assert ask((0, 1), two, X).scores.shape == (80,)

    def test_array_input(self, X, y):
        model = LogisticRegression().fit(X.to_numpy(), y)
        np.testing.assert_array_equal(
            ask((0.5, 1), model, X.to_numpy()).scores, model.predict_proba(X.to_numpy())[:, 1]
        )

    def test_unfitted(self, X):
        with pytest.raises(ModelError, match=r"predict_proba of the LogisticRegression.*NotFittedError"):
            ask((0.5, 1), LogisticRegression(), X)

    def test_decisions_travel_to_other_processes(self, X, y):
        decision = resolve_decision((0.5, 1), LogisticRegression().fit(X, y))
        again = pickle.loads(pickle.dumps(decision))
        np.testing.assert_array_equal(again.ask(X, "rows").scores, decision.ask(X, "rows").scores)


class TestOtherLibraries:
    def test_statsmodels_formula(self, X, y):
        smf = pytest.importorskip("statsmodels.formula.api")
        logit = smf.logit("y ~ a + b", X.assign(y=y)).fit(disp=0)
        shuffled = X.sample(frac=1, random_state=1)
        linear = logit.params["Intercept"] + shuffled["a"] * logit.params["a"] + shuffled["b"] * logit.params["b"]
        np.testing.assert_allclose(ask((0.5, 1), logit, shuffled).scores, 1 / (1 + np.exp(-linear.to_numpy())))
        ols = smf.ols("z ~ a", X.assign(z=3 * X["a"] + 2)).fit()
        np.testing.assert_allclose(ask((2, np.inf), ols, X).scores, 3 * X["a"] + 2)
        with pytest.raises(ModelError, match="Leave out `of`"):
            ask(Interval(0.5, 1, of=1), logit, X)
        with pytest.raises(ModelError, match="For a model that returns scores give an interval"):
            ask(1, logit, X)

    def test_statsmodels_arrays(self, X, y, y3):
        sm = pytest.importorskip("statsmodels.api")
        glm = sm.GLM(y, X.to_numpy(), family=sm.families.Binomial()).fit()
        np.testing.assert_allclose(ask((0.5, 1), glm, X).scores, 1 / (1 + np.exp(-X.to_numpy() @ glm.params)))
        multinomial = sm.MNLogit(y3, X.to_numpy()).fit(disp=0)
        odds = np.exp(np.column_stack([np.zeros(80), X.to_numpy() @ multinomial.params]))
        shares = odds / odds.sum(axis=1, keepdims=True)
        for k in range(3):
            np.testing.assert_allclose(ask(Interval(0, 1, of=k), multinomial, X.to_numpy()).scores, shares[:, k])
        with pytest.raises(ModelError, match=r"3 columns \(0, 1, 2\).*Interval\(0.5, 1, of=2\)"):
            ask((0.5, 1), multinomial, X.to_numpy())
        with pytest.raises(InputError, match="of is 3"):
            ask(Interval(0, 1, of=3), multinomial, X.to_numpy())

    def test_lightgbm(self, X, y, y3):
        lgb = pytest.importorskip("lightgbm")
        quiet = {"verbose": -1, "num_threads": 1}
        raw = X.assign(job=pd.Categorical(np.where(X["b"] > 0, "clerk", "pilot")))
        booster = lgb.train({"objective": "binary", **quiet}, lgb.Dataset(raw, y), 3)
        np.testing.assert_array_equal(ask((0.5, 1), booster, raw).scores, booster.predict(raw))
        booster = lgb.train({"objective": "multiclass", "num_class": 3, **quiet}, lgb.Dataset(raw, y3), 3)
        np.testing.assert_array_equal(ask(Interval(0, 1, of=2), booster, raw).scores, booster.predict(raw)[:, 2])
        model = lgb.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1).fit(raw, np.where(y == 1, "good", "bad"))
        bad = ask(Interval(0, 1, of="bad"), model, raw).scores
        np.testing.assert_array_equal(bad, model.predict_proba(raw)[:, 0])
        np.testing.assert_array_equal(ask("bad", model, raw).wanted, bad > 0.5)

    def test_xgboost(self, X, y):
        xgb = pytest.importorskip("xgboost")
        raw = X.assign(job=pd.Categorical(np.where(X["b"] > 0, "clerk", "pilot")))
        matrix = xgb.DMatrix(raw, y, enable_categorical=True)
        booster = xgb.train({"objective": "binary:logistic", "nthread": 1}, matrix, 3)
        np.testing.assert_array_equal(ask((0.5, 1), booster, raw).scores, booster.predict(matrix))
        model = xgb.XGBClassifier(n_estimators=3, n_jobs=1, enable_categorical=True).fit(raw, y)
        np.testing.assert_array_equal(ask((0.5, 1), model, raw).scores, model.predict_proba(raw)[:, 1])


class TestCallables:
    def test_a_function_is_a_model(self):
        answer = ask((0.5, 1), lambda frame: two_columns(frame)[:, 1])
        np.testing.assert_allclose(answer.scores, SIGMOID)
        assert ask("high", lambda f: np.where(f["x"] > 0, "high", "low")).wanted.tolist() == [
            False,
            False,
            True,
            True,
        ]

    def test_several_columns_need_of(self):
        with pytest.raises(ModelError, match=r"the model two_columns.*2 columns \(0, 1\)"):
            ask((0.5, 1), two_columns)
        np.testing.assert_allclose(ask(Interval(0, 1, of=0), two_columns).scores, 1 - SIGMOID)
        frame = pd.DataFrame(two_columns(ROWS), columns=[1, 0])
        np.testing.assert_allclose(ask(Interval(0, 1, of=0), lambda f: frame).scores, SIGMOID)

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
        answer = ask((0.5, 1), lambda frame: reply)
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
        assert ask("v", lambda frame: reply).wanted.tolist() == [False, True, False, True]

    def test_one_row_squeezed_to_a_number(self):
        assert ask((0, 1), lambda f: np.float32(0.5), ROWS[:1]).scores.tolist() == [0.5]

    def test_infinite_scores_are_scores(self):
        assert ask((0, np.inf), lambda f: [np.inf, -np.inf, 0, 1]).wanted.tolist() == [
            True,
            False,
            True,
            True,
        ]

    def test_the_frame_is_left_alone(self):
        def model(frame):
            frame["twice"] = 2 * frame["x"]
            return frame["twice"]

        assert ask((0, np.inf), model).scores.tolist() == [-2, 0, 1, 4]
        assert list(ROWS.columns) == ["x"]

    def test_no_rows_ask_no_model(self):
        model = Says([0, 1], predict_proba=two_columns, predict=[1, 1, 1, 1])
        for decision, kind in (((0.5, 1), "f"), (1, "O"), (lambda f: 1 / 0, "b")):
            answer = ask(decision, model, ROWS[:0])
            assert answer.scores.shape == answer.wanted.shape == (0,)
            assert answer.scores.dtype.kind == kind
            assert answer.wanted.dtype == bool
        assert model.asked == 0


class TestPredicates:
    @pytest.mark.parametrize("convert", [np.asarray, list, pd.Series, lambda v: pd.array(v, dtype="boolean")])
    def test_without_a_model(self, convert):
        decision = resolve_decision(lambda frame: convert(frame["x"].to_numpy() > 0), None)
        answer = decision.ask(ROWS, "rows")
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
            ask(lambda frame: reply, None)


class TestBadAnswers:
    def test_the_model_raises(self):
        def model(frame):
            raise KeyError("no column 'age'\nsecond line")

        with pytest.raises(ModelError, match=r"the model model, asked about 4 rows \(the test rows\), raised") as e:
            ask((0, 1), model)
        assert isinstance(e.value.__cause__, KeyError)

        def silent(frame):
            raise RuntimeError

        with pytest.raises(ModelError, match=r"RuntimeError: no message.*shape \(4, 1\)"):
            ask((0, 1), silent)

        def two_lines(frame):
            raise ValueError("first line\nsecond line")

        with pytest.raises(ModelError, match=r"ValueError: first line\nsecond line\.\nCheck that it is fitted"):
            ask((0, 1), two_lines)

    @pytest.mark.parametrize("decision", [(0, 1), 1])
    @pytest.mark.parametrize("reply", [[1, 0, 1], [1] * 5, np.ones((1, 4))])
    def test_wrong_length(self, decision, reply):
        with pytest.raises(ModelError, match=f"returned {len(reply)} values, expected 4"):
            ask(decision, lambda frame: reply)

    def test_missing_scores(self):
        frame = pd.DataFrame({"x": np.arange(9.0)}, index=pd.Index(list("abcdefghi")))
        for missing in (np.nan, None, pd.NA):
            reply = [0.5, missing, missing, 0.5, missing, 0.5, missing, missing, missing]
            message = r"6 of 9 rows, at positions 1, 2, 4, 6, 7, ... \(index 'b', 'c', 'e', 'g', 'h', ...\)"
            with pytest.raises(ModelError, match=message):
                ask((0, 1), lambda f, reply=reply: reply, frame)
        with pytest.raises(ModelError, match=r"1 of 2 rows, at positions 1\. Drop"):
            ask((0, 1), lambda f: [0, np.nan], np.zeros((2, 1)))
        with pytest.raises(ModelError, match="2 of 4 rows, at positions 0, 3"):
            ask((0, 1), lambda f: np.ma.array([1, 0, 0, 1], mask=[1, 0, 0, 1]))
        with pytest.raises(ModelError, match="4 of 4 rows"):
            ask((0, 1), Says([0, 1], predict_proba=np.full((4, 2), np.nan)))

    def test_missing_labels(self):
        with pytest.raises(ModelError, match="2 of 4 rows, at positions 1, 2"):
            ask("u", lambda f: ["u", None, np.nan, "v"])
        with pytest.raises(ModelError, match="1 of 4 rows, at positions 3"):
            ask("u", lambda f: pd.Categorical(["u", "v", "u", None]))

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
            with pytest.raises(ModelError, match=r"no number.*give the wanted label as the decision"):
                ask((0, 1), lambda frame: reply)

    @pytest.mark.parametrize("reply", [None, {"a": 1}, 0.5, (v for v in range(4))])
    def test_not_an_array(self, reply):
        with pytest.raises(ModelError, match=r"returned a single .*, expected 4 values"):
            ask((0, 1), lambda frame: reply)

    def test_scores_are_not_labels(self):
        with pytest.raises(ModelError, match=r"returned 0.25, which is no class label like 1"):
            ask(1, lambda f: [0, 0.25, 1, 1])
        with pytest.raises(ModelError, match="returned 0, which is no class label like 'good'"):
            ask("good", lambda f: [0, 1, 0, 1])
        with pytest.raises(ModelError, match="returned '0', which is no class label like 1"):
            ask(1, lambda f: ["0", "1", "0", "1"])
        assert ask(1, lambda f: [0.0, 1.0, 0.0, 1.0]).wanted.tolist() == [False, True, False, True]
        with pytest.raises(ModelError, match=r"returned 0\.25, which is no class label like 1\.0"):
            ask(1.0, lambda f: [0, 0.25, 1, 1])
        assert ask(0.5, lambda f: [0.5, 1.0, 0.5, 1.0]).wanted.tolist() == [True, False, True, False]

    def test_predictions_outside_the_declared_classes(self):
        with pytest.raises(ModelError, match="returned 0, which is no class label like 'good' of 'bad', 'good'"):
            ask("good", Says(["bad", "good"], predict=[0, 1, 0, 1]))


class TestResolve:
    @pytest.mark.parametrize(
        ("decision", "message"),
        [
            ((0.5,), "not a pair of numbers.*callable"),
            ((0, 1, 2), "not a pair of numbers"),
            ([], "not a pair of numbers"),
            (("good", "bad"), "not a pair of numbers"),
            ((0.5, None), "inf"),
            ((False, True), "not a pair of numbers"),
            ((1, 0), "swap"),
            ((0, math.nan), "NaN"),
            (None, "decision is None"),
            (math.nan, "decision is nan"),
            (pd.NA, "decision is <NA>"),
            ({0, 1}, "a set"),
            (np.array([0.5, 1]), "a ndarray"),
        ],
    )
    def test_bad_decisions(self, decision, message):
        with pytest.raises(InputError, match=message):
            resolve_decision(decision, two_columns)

    @pytest.mark.parametrize("decision", [(0, 1), Interval(0, 1), 1, "good"])
    def test_bad_models(self, decision):
        with pytest.raises(InputError, match="model is None"):
            resolve_decision(decision, None)
        with pytest.raises(InputError, match="model is the class LogisticRegression; give a fitted"):
            resolve_decision(decision, LogisticRegression)
        with pytest.raises(ModelError, match=r"the model .a dict. cannot be asked: it has no .*predict and is not"):
            resolve_decision(decision, {})

    def test_the_order_of_methods(self):
        model = Says([0, 1], predict_proba=two_columns, decision_function=[9] * 4, predict=[1, 0, 1, 0])
        np.testing.assert_allclose(ask([0.5, 1], model).scores, SIGMOID)
        assert ask(1, model).scores.tolist() == [1, 0, 1, 0]
        del model.predict_proba
        assert ask((0, 1), model).scores.tolist() == [9] * 4
        del model.decision_function
        assert ask((0, 1), model).scores.tolist() == [1, 0, 1, 0]

    def test_empty_classes_are_none(self):
        assert ask((0, 1), Says([], predict_proba=two_columns)).scores.shape == (4,)

    def test_descriptions(self):
        def rich(frame):
            return frame["x"] > 0

        proba = {"predict_proba": two_columns, "predict": [0, 0, 0, 0]}
        for decision, model, text in [
            ((0.5, 1), Says(np.array([0, 1]), **proba), "probability of class 1 at least 0.5"),
            ((0.5, 1), Says(np.array([False, True]), **proba), "probability of class True at least 0.5"),
            ((0.5, 1), Says(**proba), "probability of class 1 at least 0.5"),
            (
                Interval(0, 0.1, "left", of="bad"),
                Says(["bad", "good"], **proba),
                "probability of class 'bad' below 0.1",
            ),
            ((2, math.inf), Says(predict=[1]), "prediction at least 2"),
            (Interval(0, 1, of=2), two_columns, "two_columns of column 2 from 0 to 1"),
            (np.int64(1), Says([0, 1], **proba), "predicted class 1"),
            ("good", two_columns, "predicted class 'good'"),
            (rich, None, "predicate rich"),
            (functools.partial(rich), None, "predicate partial"),
        ]:
            assert resolve_decision(decision, model).describe() == text


class TestCompareAnswers:
    def test_numbers(self):
        first = np.array([0.5, 0.5, 0.5, 0.0, np.inf, 1e6])
        second = np.array([0.5, 0.5 + 1e-8, 0.501, 1e-9, np.inf, 1e6 + 0.1])
        assert compare_answers(first, second, list("abcdef")) == ["c"]
        assert compare_answers(np.array([np.inf]), np.array([-np.inf]), ["a"]) == ["a"]

    def test_labels_and_booleans(self):
        labels = pd.Index([10, 20, 30])
        assert compare_answers(np.array(["u", "v", 1], object), np.array(["u", "u", 2], object), labels) == [
            20,
            30,
        ]
        assert compare_answers(np.array([True, False, True]), np.array([True, True, True]), labels) == [20]
        assert compare_answers(np.array([]), np.array([]), []) == []

    def test_lengths_must_agree(self):
        with pytest.raises(ValueError, match="longer"):
            compare_answers(np.zeros(3), np.zeros(3), ["a", "b"])

    def test_a_random_model_is_found_out(self, X, y):
        rng = np.random.default_rng(1)
        noisy = resolve_decision((0, 1), lambda frame: rng.random(len(frame)))
        first, second = noisy.ask(X, "rows"), noisy.ask(X, "rows")
        assert isinstance(first, Answer)
        assert compare_answers(first, second, X.index) == list(X.index)
        steady = resolve_decision((0.5, 1), LogisticRegression().fit(X, y))
        assert compare_answers(steady.ask(X, "rows").scores[:5], steady.ask(X[:5], "rows"), X.index[:5]) == []
