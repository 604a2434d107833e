"""Models fitted in R and queried from Python, compared with R's predictions on R's table."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import Interval, MCCEError
from r_bridge import RBridgeError, RModel, RWarning, from_r, to_r
from tests.marks import slow_but


@pytest.fixture(scope="module")
def loans():
    loans = mcce.datasets.load_loans(500)
    return loans.X.assign(default=pd.Categorical(np.where(loans.y, "yes", "no")))


@pytest.fixture(scope="module")
def X(loans):
    return loans.drop(columns="default")


# fitted by; R's own scores for `data`; package
MODELS = {
    "lm": ("lm(salary ~ age + sex + education + housing, data = data)", "predict(model, data)", "stats"),
    "logistic": (
        "glm(default ~ . , family = binomial, data = data)",
        "predict(model, data, type = 'response')",
        "stats",
    ),
    "poisson": (
        "glm(years_employed ~ age + salary, family = poisson, data = data)",
        "predict(model, data, type = 'response')",
        "stats",
    ),
    "rpart class": ("rpart::rpart(default ~ ., data = data)", "predict(model, data)[, 2]", "rpart"),
    "rpart number": ("rpart::rpart(salary ~ age + savings, data = data)", "predict(model, data)", "rpart"),
    "ctree": (
        "party::ctree(default ~ ., data = data)",
        "vapply(predict(model, data, type = 'prob'), function(p) p[2], 0)",
        "party",
    ),
    "partykit": (
        "partykit::ctree(default ~ age + sex + salary + savings, data = data)",
        "predict(model, data, type = 'prob')[, 2]",
        "partykit",
    ),
    "partykit number": ("partykit::ctree(salary ~ age + savings, data = data)", "predict(model, data)", "partykit"),
    "partykit forest": (
        "{set.seed(1); partykit::cforest(default ~ age + sex + salary, data = data, ntree = 5L)}",
        "predict(model, data, type = 'prob')[, 2]",
        "partykit",
    ),
    "multinom": (
        "nnet::multinom(default ~ age + savings, data = data, trace = FALSE)",
        "predict(model, data, type = 'probs')",
        "nnet",
    ),
    "lda": ("MASS::lda(default ~ age + salary + sex, data = data)", "predict(model, data)$posterior[, 2]", "MASS"),
    "ranger": (
        "ranger::ranger(default ~ ., data = data, probability = TRUE, num.trees = 20, seed = 1, num.threads = 1)",
        "predict(model, data, num.threads = 1)$predictions[, 'yes']",
        "ranger",
    ),
}


@pytest.mark.parametrize("name", slow_but(list(MODELS), *list(MODELS)[::4]))
def test_scores_match_r(r, need, loans, X, name, compared):
    code, own, package = MODELS[name]
    need(package)
    model = RModel.from_code(code, loans)
    expected = r.numbers(r.call("evaluate", f"model <- {code}; as.vector({own})", to_r(loans)))
    shuffled = X.sample(frac=1, random_state=0)  # other rows have no effect on a row
    answer = pd.Series(model.score(shuffled), shuffled.index)[X.index]
    np.testing.assert_array_equal(answer, expected)
    np.testing.assert_array_equal(model.score(X.iloc[[7]]), expected[[7]])
    compared("predictions of models", expected.size)


@pytest.mark.parametrize("name", slow_but(list(MODELS), *list(MODELS)[::4]))
def test_every_model_can_be_explained(r, need, loans, X, name):
    code, _, package = MODELS[name]
    need(package)
    model = RModel.from_code(code, loans)
    scores = model.score(X)
    distinct = np.unique(scores)
    wanted = Interval(distinct[distinct.size // 2], np.inf, of="yes" if hasattr(model, "classes_") else None)
    explainer = mcce.MCCE(model, decision=wanted, fixed=["sex"], random_state=1).fit(X)
    denied = X[scores < wanted.low].head(3)
    found = explainer.explain(denied, n_samples=200)
    assert len(found.frame) > 0
    assert (model.score(found.frame) >= wanted.low).all()


def test_levels_in_another_order_or_as_text_are_matched_by_name(r, loans, X):
    model = RModel.from_code(MODELS["logistic"][0], loans)
    expected = model.score(X)
    other = X.assign(
        housing=pd.Categorical(X["housing"], list(X["housing"].cat.categories[::-1])),
        sex=X["sex"].astype("str"),
        education=X["education"].astype("str"),  # ordered in R
    )
    np.testing.assert_array_equal(model.score(other), expected)


def test_integers_doubles_and_logicals_are_interchangeable(r, loans, X):
    model = RModel.from_code(MODELS["logistic"][0], loans)
    other = X.assign(age=X["age"].astype(float), salary=X["salary"].astype("int32"))
    np.testing.assert_array_equal(model.score(other), model.score(X))
    as_number = RModel.from_code(
        "lm(salary ~ defaulted_last_year, data = data)", loans.astype({"defaulted_last_year": int})
    )
    assert as_number.columns_["defaulted_last_year"].type == "numeric"
    assert len(np.unique(as_number.score(X))) == 2


def test_unknown_level_is_named(r, loans, X):
    model = RModel.from_code(MODELS["logistic"][0], loans)
    with pytest.raises(MCCEError, match="column 'housing' holds the level 'castle'"):
        model.predict(X.head(2).assign(housing="castle"))


def test_classes_and_labels(r, loans, X):
    model = RModel.from_code(MODELS["logistic"][0], loans)
    assert model.classes_ == ["no", "yes"]
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X) == "yes", probability[:, 1] > 0.5)
    assert set(model.predict(X)) <= {"no", "yes"}


@pytest.mark.parametrize(
    ("change", "classes"),
    [(lambda y: y == "yes", [False, True]), (lambda y: (y == "yes").astype(int), [0, 1])],
)
def test_classes_of_logical_and_numeric_responses(r, loans, change, classes):
    model = RModel.from_code(
        "glm(default ~ age, family = binomial, data = data)", loans.assign(default=change(loans["default"]))
    )
    assert model.classes_ == classes


def test_more_than_two_classes(r, need, loans, X):
    need("nnet")
    data = X.drop(columns="education").assign(y=loans["education"].astype("str").astype("category"))
    model = RModel.from_code("nnet::multinom(y ~ age + salary, data = data, trace = FALSE)", data)
    assert model.predict_proba(X).shape == (500, 4)
    with pytest.raises(MCCEError, match="a score needs two"):
        model.score(X)
    assert model.predict_proba(X.head(0)).shape == (0, 4)
    label = "bachelor"
    found = mcce.MCCE(model, decision=label, random_state=1).fit(X).explain(X.head(3), n_samples=300)
    assert (model.predict(found.frame) == label).all()
    assert len(found.frame) > 0


def test_options_are_passed_to_predict(r, loans, X):
    fitted = RModel.from_code(MODELS["logistic"][0], loans).r_object
    link = RModel(fitted, type="link")
    assert not hasattr(link, "classes_")
    assert not hasattr(link, "predict_proba")
    probability = RModel(fitted, type="response").predict_proba(X)[:, 1]
    np.testing.assert_allclose(1 / (1 + np.exp(-link.predict(X))), probability)


def test_labels_of_a_class_predicting_model(r, need, loans, X):
    need("rpart")
    model = RModel.from_code(MODELS["rpart class"][0], loans, type="class")
    assert set(model.predict(X)) == {"no", "yes"}


def test_custom_predict_function(r, loans, X):
    fitted = RModel.from_code("lm(salary ~ age, data = data)", loans).r_object
    model = RModel(fitted, predict="function(object, newdata, plus) predict(object, newdata) + plus", plus=1000)
    np.testing.assert_allclose(model.predict(X), RModel(fitted).predict(X) + 1000)


def test_text_that_a_forest_would_renumber_raises(r, need, loans, X):
    need("ranger")
    data = X.assign(sex=X["sex"].astype("str"), y=loans["salary"])[["age", "sex", "y"]]
    code = "ranger::ranger(y ~ ., data = data, num.trees = 20, seed = 1, num.threads = 1)"
    model = RModel.from_code(code, data)
    rows = data[["age", "sex"]]
    one_level = rows[rows["sex"] == "male"]
    np.testing.assert_array_equal(model.predict(one_level), model.predict(rows)[rows["sex"] == "male"])
    with pytest.raises(RBridgeError, match=r"does not keep the levels of 'sex'.*Give RModel like="):
        RModel(model.r_object).predict(rows)


def test_model_from_a_file(r, loans, X, tmp_path):
    model = RModel.from_code("lm(salary ~ age, data = data)", loans)
    path = tmp_path / "model.rds"
    r.call("evaluate", "function(model, path) saveRDS(model, path)", None)(model.r_object, r.vector(str(path)))
    np.testing.assert_array_equal(RModel.from_rds(path).predict(X), model.predict(X))
    with pytest.raises(MCCEError, match="there is no file"):
        RModel.from_rds(tmp_path / "other.rds")


def test_model_of_robjects(r, loans, X):
    robjects = pytest.importorskip("rpy2.robjects")
    fitted = RModel.from_code("lm(salary ~ age, data = data)", loans)
    model = RModel(robjects.RObject(fitted.r_object))
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))


def test_invalid_models_raise(r):
    with pytest.raises(MCCEError, match=r"RModel got a str; give a model that R fitted"):
        RModel("lm")
    with pytest.raises(RBridgeError, match="no applicable method"):
        RModel(r.vector([1.0])).predict(pd.DataFrame({"a": [1]}))


def test_missing_column_is_an_error_of_r(r, loans, X):
    model = RModel.from_code("lm(salary ~ age, data = data)", loans)
    with pytest.raises(RBridgeError, match="object 'age' not found"):
        model.predict(X[["sex"]])


def test_warnings_of_predict_are_issued(r):
    data = pd.DataFrame({"x": [1.0, 2, 3, 4], "z": [2.0, 4, 6, 8], "y": [1.0, 2, 3, 5]})
    model = RModel.from_code("lm(y ~ x + z, data = data)", data)
    with pytest.warns(RWarning, match="rank-deficient"):
        model.predict(data)


LUNG = "lung <- na.omit(survival::lung[c('time', 'status', 'age', 'ph.ecog', 'sex')]); lung"


def test_coxph_predicts_the_hazard_relative_to_the_means(r, need):
    need("survival")
    lung = from_r(r.call("evaluate", LUNG, None))
    model = RModel.from_code("survival::coxph(survival::Surv(time, status) ~ age + ph.ecog, data)", lung)
    rows = lung[["age", "ph.ecog"]]
    beta = r.numbers(r.call("evaluate", "stats::coef", None)(model.r_object))
    expected = np.exp((rows - rows.mean()).to_numpy() @ beta)
    np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-10)
    link = RModel(model.r_object, type="lp")
    np.testing.assert_allclose(link.predict(rows), np.log(expected), atol=1e-10)


def test_coxph_with_strata_raises_without_a_scale(r, need):
    need("survival")
    lung = from_r(r.call("evaluate", LUNG, None))
    code = "{ strata <- survival::strata; survival::coxph(survival::Surv(time, status) ~ age + strata(sex), data) }"
    with pytest.raises(RBridgeError, match=r"the coxph has strata.*give RModel type= or predict="):
        RModel.from_code(code, lung).predict(lung)
    assert np.isfinite(RModel.from_code(code, lung, type="lp").predict(lung)).all()
