"""An explainer, a chain and a sampler under the estimator checks of scikit-learn."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.exceptions
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

import mcce

checks = pytest.importorskip("sklearn.utils.estimator_checks")
if not hasattr(checks, "estimator_checks_generator"):
    pytest.skip("scikit-learn before 1.6 has other checks", allow_module_level=True)

# checks that do not apply, and why; all other checks of scikit-learn are run
LEFT_OUT = {
    "check_complex_data": "our message names the column and its dtype; the check wants the words of theirs",
    "check_estimators_empty_data_messages": "our message says how many rows and columns; the check wants their words",
    "check_sample_weights_not_an_array": "an object that is no table and no array is refused by its type",
    "check_array_api_input": "arrays of other libraries (array API) are no tables here",
}


def every_other_row(rows):
    return np.arange(len(rows)) % 2 == 0


class ChainWithoutDecision(mcce.ChainModel):
    """The second argument of a chain's fit is the decision to condition on; scikit-learn passes a response."""

    def fit(self, X, y=None):
        return super().fit(X)


EXPLAINER = mcce.MCCE(every_other_row, decision=True, random_state=0)


def named_checks(estimator):
    """Return every check of scikit-learn by name; some occur several times."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*does not inherit from `sklearn.base.BaseEstimator`")  # optional
        return [(getattr(c, "func", c).__name__, e, c) for e, c in checks.estimator_checks_generator(estimator)]


APPLICABLE = [
    pytest.param(bound, check, id=f"{type(estimator).__name__}-{name}")
    for estimator in (EXPLAINER, ChainWithoutDecision(random_state=0))
    for name, bound, check in named_checks(estimator)
    if name not in LEFT_OUT
]


@pytest.mark.filterwarnings("ignore")  # these checks pass unusual tables on purpose
@pytest.mark.parametrize(("estimator", "check"), APPLICABLE)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


def test_skipped_checks_exist():
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9):
        pytest.skip("an older scikit-learn has fewer checks")
    assert set(LEFT_OUT) <= {name for name, _, _ in named_checks(EXPLAINER)}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"age": rng.integers(18, 80, 200), "income": rng.normal(30, 8, 200).round(1)})
    return X, (X["income"] + rng.normal(0, 5, 200) > 31).to_numpy()


def test_clone_explains_the_same_fitted_model(table):
    X, y = table
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    explainer = mcce.MCCE(model, fixed=["age"], sampler=mcce.CartSampler(min_leaf=9), random_state=1).fit(X)
    copy = clone(explainer)
    assert copy.model is model, "a cloned model would have lost its fit"
    assert copy.sampler is not explainer.sampler
    assert repr(copy.sampler) == "CartSampler(min_leaf=9)"
    with pytest.raises(mcce.NotFittedError):
        copy.explain(X)
    denied = X[~model.predict(X)].head(5)
    pd.testing.assert_frame_equal(copy.fit(X).explain(denied).frame, explainer.explain(denied).frame)


def test_sampler_parameters_are_accessible(table):
    X, y = table
    explainer = mcce.MCCE(DecisionTreeClassifier().fit(X, y), sampler=mcce.CartSampler(min_leaf=9))
    assert explainer.get_params()["sampler__min_leaf"] == 9
    assert "sampler__min_leaf" not in explainer.get_params(deep=False)
    assert not [name for name in explainer.get_params() if name.startswith("model__")], (
        "the model is explained as it is"
    )
    assert explainer.set_params(sampler__min_leaf=4, fixed=["age"]) is explainer
    assert (explainer.sampler.min_leaf, explainer.fixed) == (4, ["age"])
    explainer.set_params(sampler=mcce.CtreeSampler(), sampler__max_depth=2)
    assert repr(explainer.sampler) == "CtreeSampler(max_depth=2)"


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"samplr": "ctree"}, r"MCCE has no parameter 'samplr'; did you mean 'sampler'\?"),
        ({"samplr__min_leaf": 3}, r"MCCE has no parameter 'samplr'; did you mean 'sampler'\?"),
        (
            {"sampler__min_leaf": 3},
            r"sampler__min_leaf cannot be set: sampler of MCCE is 'cart', .* Set sampler to an object",
        ),
        ({"model__max_depth": 3}, r"model__max_depth cannot be set: model of MCCE is .* has no parameters"),
    ],
)
def test_invalid_parameters_change_nothing(params, said):
    explainer = mcce.MCCE(LogisticRegression())
    with pytest.raises(mcce.InputError, match=said):
        explainer.set_params(fixed=["age"], **params)
    if "samplr" in next(iter(params)):
        assert explainer.fixed == ()


@pytest.mark.parametrize("name", sorted(mcce.available_samplers()))
def test_every_sampler_can_be_cloned_by_scikit_learn(name):
    if name.startswith("r_"):
        pytest.skip("needs R")
    cls = mcce.available_samplers()[name]
    sampler = cls(LogisticRegression(C=3.0)) if cls is mcce.EstimatorSampler else cls()
    copy = clone(sampler)
    assert type(copy) is type(sampler)
    assert repr(copy) == repr(sampler)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        check_is_fitted(sampler)


def test_estimator_inside_a_sampler_inside_an_explainer():
    explainer = mcce.MCCE(every_other_row, sampler=mcce.EstimatorSampler(LogisticRegression()))
    explainer.set_params(sampler__estimator__C=0.25)
    assert explainer.sampler.estimator.C == 0.25
    assert explainer.get_params()["sampler__estimator__C"] == 0.25


def test_errors_derive_from_those_of_scikit_learn():
    for unfitted in (lambda: EXPLAINER.explain(pd.DataFrame()), lambda: mcce.ChainModel().sample()):
        with pytest.raises(sklearn.exceptions.NotFittedError, match="not fitted; call fit") as caught:
            unfitted()
        assert isinstance(caught.value, mcce.MCCEError)
        assert type(caught.value) is mcce.NotFittedError
        again = pickle.loads(pickle.dumps(caught.value))
        assert type(again) is mcce.NotFittedError
        assert str(again) == str(caught.value)


def test_names_and_number_of_columns(table):
    X, _ = table
    for learner in (mcce.ChainModel(random_state=1), mcce.MCCE(every_other_row, decision=True, random_state=1)):
        assert not hasattr(learner, "n_features_in_")
        assert not hasattr(learner, "feature_names_in_")
        learner.fit(X)
        check_is_fitted(learner)
        assert learner.n_features_in_ == 2
        assert learner.feature_names_in_.tolist() == ["age", "income"]
        learner.fit(X.to_numpy())
        assert not hasattr(learner, "feature_names_in_"), "an array has no names"


def test_response_is_ignored(table):
    X, y = table
    with_y = mcce.MCCE(every_other_row, decision=True, random_state=1).fit(X, y)
    without = mcce.MCCE(every_other_row, decision=True, random_state=1).fit(X)
    pd.testing.assert_frame_equal(with_y.generate(X.head(3)), without.generate(X.head(3)))
    Pipeline([("same", FunctionTransformer()), ("explain", clone(with_y))]).fit(X, y)


def test_sparse_matrix_raises_with_a_fix():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(mcce.InputError, match=r"X is a sparse csr_array, which is not supported; give X.toarray\(\)"):
        mcce.ChainModel().fit(sparse.csr_array(np.eye(3)))
