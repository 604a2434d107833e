"""The decision of fitted models compared with the columns of the libraries."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mcce.exceptions import InputError, ModelError
from mcce.model.decisions import Interval, resolve_decision
from tests.model.problem import query


class TestScikitLearn:
    def test_either_of_two_names(self, X, y):
        model = LogisticRegression().fit(X, np.where(y == 1, "good", "bad"))
        p_good = 1 / (1 + np.exp(-(X.to_numpy() @ model.coef_[0] + model.intercept_[0])))
        np.testing.assert_allclose(query(Interval(0, 1, of="good"), model, X).scores, p_good)
        np.testing.assert_allclose(query(Interval(0, 1, of="bad"), model, X).scores, 1 - p_good)
        good, bad = query("good", model, X), query("bad", model, X)
        np.testing.assert_array_equal(good.wanted, p_good > 0.5)
        np.testing.assert_array_equal(bad.wanted, p_good < 0.5)
        assert set(good.scores) == {"good", "bad"}

    @pytest.mark.parametrize("label", [1, 0, True, np.int64(1), np.float64(0), np.bool_(True)])
    def test_numeric_labels(self, X, y, label):
        model = LogisticRegression().fit(X, y)
        answer = query(label, model, X)
        np.testing.assert_array_equal(answer.wanted, model.predict(X) == int(label))

    def test_three_classes(self, X, y3):
        model = LogisticRegression().fit(X, y3)
        for k in range(3):
            scores = query(Interval(0, 1, of=k), model, X).scores
            np.testing.assert_array_equal(scores, model.predict_proba(X)[:, k])
            np.testing.assert_array_equal(query(k, model, X).wanted, model.predict_proba(X).argmax(axis=1) == k)

    def test_pipeline_on_raw_frames(self, X, y):
        raw = X.assign(job=np.where(X["b"] > 0, "clerk", "pilot"))
        prepare = make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["a", "b"]))
        model = make_pipeline(prepare, LogisticRegression()).fit(raw, np.where(y == 1, "yes", "no"))
        search = GridSearchCV(model, {"logisticregression__C": [1.0]}, cv=2).fit(raw, y)
        np.testing.assert_array_equal(
            query(Interval(0.5, 1, of="yes"), model, raw).scores, model.predict_proba(raw)[:, 1]
        )
        np.testing.assert_array_equal(query((0.5, 1), search, raw).scores, search.predict_proba(raw)[:, 1])

    def test_regressor(self, X):
        model = LinearRegression().fit(X, 2 * X["a"] - X["b"] + 1)
        answer = query((1, np.inf), model, X)
        np.testing.assert_allclose(answer.scores, 2 * X["a"] - X["b"] + 1)
        np.testing.assert_array_equal(answer.wanted, answer.scores >= 1)
        two = LinearRegression().fit(X, X[["a"]])
        assert query((0, 1), two, X).scores.shape == (80,)

    def test_array_input(self, X, y):
        model = LogisticRegression().fit(X.to_numpy(), y)
        np.testing.assert_array_equal(
            query((0.5, 1), model, X.to_numpy()).scores, model.predict_proba(X.to_numpy())[:, 1]
        )

    def test_unfitted(self, X):
        with pytest.raises(ModelError, match=r"predict_proba of the LogisticRegression.*NotFittedError"):
            query((0.5, 1), LogisticRegression(), X)

    def test_decisions_can_be_pickled(self, X, y):
        decision = resolve_decision((0.5, 1), LogisticRegression().fit(X, y))
        again = pickle.loads(pickle.dumps(decision))
        np.testing.assert_array_equal(again.evaluate(X, "rows").scores, decision.evaluate(X, "rows").scores)


class TestOtherLibraries:
    @pytest.mark.slow
    def test_statsmodels_formula(self, X, y):
        smf = pytest.importorskip("statsmodels.formula.api")
        logit = smf.logit("y ~ a + b", X.assign(y=y)).fit(disp=0)
        shuffled = X.sample(frac=1, random_state=1)
        linear = logit.params["Intercept"] + shuffled["a"] * logit.params["a"] + shuffled["b"] * logit.params["b"]
        np.testing.assert_allclose(query((0.5, 1), logit, shuffled).scores, 1 / (1 + np.exp(-linear.to_numpy())))
        ols = smf.ols("z ~ a", X.assign(z=3 * X["a"] + 2)).fit()
        np.testing.assert_allclose(query((2, np.inf), ols, X).scores, 3 * X["a"] + 2)
        with pytest.raises(ModelError, match="Leave out `of`"):
            query(Interval(0.5, 1, of=1), logit, X)
        with pytest.raises(ModelError, match="For a model that returns scores give an interval"):
            query(1, logit, X)

    @pytest.mark.slow
    def test_statsmodels_arrays(self, X, y, y3):
        sm = pytest.importorskip("statsmodels.api")
        glm = sm.GLM(y, X.to_numpy(), family=sm.families.Binomial()).fit()
        np.testing.assert_allclose(query((0.5, 1), glm, X).scores, 1 / (1 + np.exp(-X.to_numpy() @ glm.params)))
        multinomial = sm.MNLogit(y3, X.to_numpy()).fit(disp=0)
        odds = np.exp(np.column_stack([np.zeros(80), X.to_numpy() @ multinomial.params]))
        shares = odds / odds.sum(axis=1, keepdims=True)
        for k in range(3):
            np.testing.assert_allclose(query(Interval(0, 1, of=k), multinomial, X.to_numpy()).scores, shares[:, k])
        with pytest.raises(ModelError, match=r"3 columns \(0, 1, 2\).*Interval\(0.5, 1, of=2\)"):
            query((0.5, 1), multinomial, X.to_numpy())
        with pytest.raises(InputError, match="of is 3"):
            query(Interval(0, 1, of=3), multinomial, X.to_numpy())

    def test_lightgbm(self, X, y, y3):
        lgb = pytest.importorskip("lightgbm")
        quiet = {"verbose": -1, "num_threads": 1}
        raw = X.assign(job=pd.Categorical(np.where(X["b"] > 0, "clerk", "pilot")))
        booster = lgb.train({"objective": "binary", **quiet}, lgb.Dataset(raw, y), 3)
        np.testing.assert_array_equal(query((0.5, 1), booster, raw).scores, booster.predict(raw))
        booster = lgb.train({"objective": "multiclass", "num_class": 3, **quiet}, lgb.Dataset(raw, y3), 3)
        np.testing.assert_array_equal(query(Interval(0, 1, of=2), booster, raw).scores, booster.predict(raw)[:, 2])
        model = lgb.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1).fit(raw, np.where(y == 1, "good", "bad"))
        bad = query(Interval(0, 1, of="bad"), model, raw).scores
        np.testing.assert_array_equal(bad, model.predict_proba(raw)[:, 0])
        np.testing.assert_array_equal(query("bad", model, raw).wanted, bad > 0.5)

    def test_xgboost(self, X, y):
        xgb = pytest.importorskip("xgboost")
        raw = X.assign(job=pd.Categorical(np.where(X["b"] > 0, "clerk", "pilot")))
        matrix = xgb.DMatrix(raw, y, enable_categorical=True)
        booster = xgb.train({"objective": "binary:logistic", "nthread": 1}, matrix, 3)
        np.testing.assert_array_equal(query((0.5, 1), booster, raw).scores, booster.predict(matrix))
        model = xgb.XGBClassifier(n_estimators=3, n_jobs=1, enable_categorical=True).fit(raw, y)
        np.testing.assert_array_equal(query((0.5, 1), model, raw).scores, model.predict_proba(raw)[:, 1])
