"""Models fitted in R and queried from Python, compared with R's predictions of R's table."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import Interval
from mcce.exceptions import InputError, MCCEError, MCCEWarning
from r_bridge import RError, RModel, RWarning, to_r


@pytest.fixture(scope="module")
def loans():
    loans = mcce.datasets.load_loans(500)
    X = loans.X.drop(columns=[name for name in loans.X if loans.X[name].isna().any()])
    return X.assign(default=pd.Categorical(np.where(loans.y, "yes", "no")))


@pytest.fixture(scope="module")
def X(loans):
    return loans.drop(columns="default")


LOGISTIC = "glm(default ~ . , family = binomial, data = data)"
VOTES = "ranger::ranger(default ~ age + salary, data = data, num.trees = 4, seed = 1, num.threads = 1)"
# fitted by, R's own scores, package
MODELS = {
    "lm": ("lm(salary ~ age + sex + education + housing, data = data)", "predict(model, data)", "stats"),
    "logistic": (LOGISTIC, "predict(model, data, type = 'response')", "stats"),
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
    "multinom": (
        "nnet::multinom(default ~ age + savings, data = data, trace = FALSE)",
        "predict(model, data, type = 'probs')",
        "nnet",
    ),
    "lda": ("MASS::lda(default ~ age + salary + sex, data = data)", "predict(model, data)$posterior[, 2]", "MASS"),
    "gam": ("mgcv::gam(salary ~ s(age) + sex, data = data)", "predict(model, data)", "mgcv"),
    "ranger": (
        "ranger::ranger(default ~ ., data = data, probability = TRUE, num.trees = 20, seed = 1, num.threads = 1)",
        "predict(model, data, num.threads = 1)$predictions[, 'yes']",
        "ranger",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_scores_match_r_and_can_be_explained(r, need, loans, X, name):
    code, own, package = MODELS[name]
    need(package)
    model = RModel.from_code(code, loans)
    expected = r.numbers(r.evaluate(f"model <- {code}; as.vector({own})", to_r(loans)))
    shuffled = X.sample(frac=1, random_state=0)  # other rows have no effect on a row
    np.testing.assert_array_equal(pd.Series(model.score(shuffled), shuffled.index)[X.index], expected)
    np.testing.assert_array_equal(model.score(X.iloc[[7]]), expected[[7]])
    distinct = np.unique(expected)
    wanted = Interval(distinct[distinct.size // 2], np.inf, of="yes" if hasattr(model, "classes_") else None)
    explainer = mcce.MCCE(model, decision=wanted, fixed=["sex"], random_state=1).fit(X)
    result = explainer.explain(X[expected < wanted.low].head(3), n_samples=200)
    assert len(result.frame) > 0
    assert (model.score(result.frame) >= wanted.low).all()


def test_types_and_levels_are_matched_by_name(r, loans, X):
    model = RModel.from_code(LOGISTIC, loans)
    others = X.assign(
        housing=pd.Categorical(X["housing"], list(X["housing"].cat.categories[::-1])),
        sex=X["sex"].astype("str"),
        education=X["education"].astype("str"),  # ordered in R
        age=X["age"].astype(float),
        salary=X["salary"].astype("int32"),
    )
    np.testing.assert_array_equal(model.score(others), model.score(X))
    with pytest.raises(InputError, match="column 'housing' holds the level 'castle'"):
        model.predict(X.head(2).assign(housing="castle"))
    with pytest.raises(RError, match="object 'age' not found"):
        model.predict(X.drop(columns="age"))


def test_classes_and_labels(r, loans, X):
    model = RModel.from_code(LOGISTIC, loans)
    assert model.classes_ == ["no", "yes"]
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X) == "yes", probability[:, 1] > 0.5)
    for y, classes in ((loans["default"] == "yes", [False, True]), ((loans["default"] == "yes") * 1, [0, 1])):
        assert RModel.from_code("glm(y ~ age, family = binomial, data = data)", loans.assign(y=y)).classes_ == classes


def test_more_than_two_classes(r, need, loans, X):
    need("nnet")
    data = X.drop(columns="education").assign(y=loans["education"].astype("str").astype("category"))
    model = RModel.from_code("nnet::multinom(y ~ age + salary, data = data, trace = FALSE)", data)
    assert model.predict_proba(X).shape == (500, 4)
    assert model.predict_proba(X.head(0)).shape == (0, 4)
    with pytest.raises(InputError, match="a score needs two"):
        model.score(X)
    result = mcce.MCCE(model, decision="bachelor", random_state=1).fit(X).explain(X.head(3), n_samples=300)
    assert (model.predict(result.frame) == "bachelor").all()
    assert len(result.frame) > 0


def test_options_and_functions_of_predict(r, need, loans, X):
    fitted = RModel.from_code(LOGISTIC, loans).r_object
    link = RModel(fitted, type="link")
    assert not hasattr(link, "classes_")
    assert not hasattr(link, "predict_proba")
    np.testing.assert_allclose(1 / (1 + np.exp(-link.predict(X))), RModel(fitted).predict_proba(X)[:, 1])
    more = RModel(fitted, predict="function(object, newdata, plus) predict(object, newdata) + plus", plus=1000)
    np.testing.assert_allclose(more.predict(X), link.predict(X) + 1000)
    need("rpart")
    assert set(RModel.from_code(MODELS["rpart class"][0], loans, type="class").predict(X)) == {"no", "yes"}


def test_text_that_a_forest_would_renumber_raises(r, need, loans, X):
    need("ranger")
    data = X.assign(sex=X["sex"].astype("str"), y=loans["salary"])[["age", "sex", "y"]]
    model = RModel.from_code("ranger::ranger(y ~ ., data, num.trees = 20, seed = 1, num.threads = 1)", data)
    rows = data[["age", "sex"]]
    one_level = rows[rows["sex"] == "male"]
    np.testing.assert_array_equal(model.predict(one_level), model.predict(rows)[rows["sex"] == "male"])
    with pytest.raises(RError, match=r"does not keep the levels of 'sex'.*Give RModel like="):
        RModel(model.r_object).predict(rows)


@pytest.mark.filterwarnings("ignore:the model gave other answers")
def test_rows_of_a_forest_of_votes_are_confirmed(r, need, loans, X):
    """Two of four votes are a tie, broken at random; a returned row had the wanted answer twice."""
    need("ranger")
    X = X[["age", "salary"]]
    votes = RModel.from_code(VOTES, loans)
    assert len({tuple(votes.predict(X)) for _ in range(20)}) > 1
    refused = X[votes.predict(X) == "yes"].head(40)
    explainer = mcce.MCCE(votes, decision="no", fixed=["age"], random_state=1).fit(X)
    result = explainer.explain(refused, n_samples=100)
    counted = RModel(
        votes.r_object,
        predict="""function(object, newdata) {
          rowMeans(predict(object, newdata, predict.all = TRUE)$predictions == which(object$forest$levels == "yes"))
        }""",
    )
    assert len(result.frame) > 0
    assert (counted.predict(result.frame) <= 0.5).all()
    with pytest.warns(MCCEWarning, match="asked again about the rows of .* use probabilities or counted votes"):
        mcce.MCCE(_Moody(), decision=(1, 1), fixed=["age"], random_state=1).fit(X).explain(X.tail(20), n_samples=50)


class _Moody:
    """Answers at random."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def predict(self, rows):
        return self.rng.integers(0, 2, len(rows)).astype(float)


def test_models_from_files_and_of_robjects(r, loans, X, tmp_path):
    model = RModel.from_code("lm(salary ~ age, data = data)", loans)
    path = tmp_path / "model.rds"
    r.evaluate("function(model, path) saveRDS(model, path)")(model.r_object, r.vector(str(path)))
    np.testing.assert_array_equal(RModel.from_rds(path).predict(X), model.predict(X))
    robjects = pytest.importorskip("rpy2.robjects")
    np.testing.assert_array_equal(RModel(robjects.RObject(model.r_object)).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: RModel("lm"), "RModel got a str; give a model that R fitted"),
        (lambda r: RModel(r.vector([1.0])).predict(pd.DataFrame({"a": [1]})), "no applicable method"),
        (lambda r: RModel.from_rds("nothing.rds"), "there is no file 'nothing.rds'"),
    ],
)
def test_invalid_models_raise(r, call, message):
    with pytest.raises(MCCEError, match=message):
        call(r)


def test_warnings_of_predict_are_issued(r):
    data = pd.DataFrame({"x": [1.0, 2, 3, 4], "z": [2.0, 4, 6, 8], "y": [1.0, 2, 3, 5]})
    model = RModel.from_code("lm(y ~ x + z, data = data)", data)
    with pytest.warns(RWarning, match="rank-deficient"):
        model.predict(data)
