"""The predictors of a feature: given, completed by the decision, and invalid ones."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError
from mcce.generators.layout import choose_predictors

NAMES = ["age", "sex", "decision", "salary", "savings", "loan"]


def test_unnamed_features_have_no_chosen_predictors():
    assert choose_predictors(None, NAMES, 3, with_decision=True) == {}
    assert choose_predictors({}, NAMES, 3, with_decision=True) == {}
    assert set(choose_predictors({"loan": []}, NAMES, 3, with_decision=True)) == {5}


def test_columns_are_in_chain_order_once_with_the_decision():
    chosen = choose_predictors({"loan": ["savings", "age", "savings"], "salary": []}, NAMES, 3, with_decision=True)
    assert chosen == {5: [0, 2, 4], 3: [2]}
    names = [name for name in NAMES if name != "decision"]
    assert choose_predictors({"loan": ["savings", "age"]}, names, 2, with_decision=False) == {4: [0, 3]}
    assert choose_predictors({"loan": ["decision"]}, NAMES, 3, with_decision=True) == {5: [2]}


@pytest.mark.parametrize("names", [[1, 2, 3], [("a", 1), ("a", 2), ("b", 1)], [None, 0.5, "x"]])
def test_names_of_any_type(names):
    assert choose_predictors({names[2]: [names[0]]}, names, 1, with_decision=False) == {2: [0]}


@pytest.mark.parametrize(
    ("predictors", "message"),
    [
        (["salary"], r"predictors is \['salary'\]; give a dict of lists, for example \{'salary': \['age'\]\}"),
        ({"salary": "age"}, r"predictors\['salary'\] is 'age'; give a list of columns: \['age'\]"),
        ({"salery": ["age"]}, "predictors names 'salery', which is not a column of X; did you mean 'salary'?"),
        ({"sex": ["age"]}, "predictors names 'sex', which is fixed; known: 'salary', 'savings', 'loan'"),
        (
            {"loan": ["salery"]},
            r"predictors\['loan'\] names 'salery', which is not a column of X; did you mean 'salary'",
        ),
        ({"salary": ["loan"]}, r"predictors\['salary'\] names 'loan', which is not drawn before it; change visit_seq"),
        ({"salary": ["salary"]}, r"predictors\['salary'\] names 'salary', which is not drawn before it"),
    ],
)
def test_invalid_predictors_raise(predictors, message):
    with pytest.raises(InputError, match=message):
        choose_predictors(predictors, NAMES, 3, with_decision=True)


def test_feature_depends_only_on_its_predictors():
    """y depends on a and b; modelled on b alone, its draws keep the effect of b and lose that of a."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3000))
    X = pd.DataFrame({"a": a, "b": b, "y": 2 * a + b + 0.1 * rng.normal(size=3000)})
    chain = mcce.ChainModel(sampler="norm", fixed=["a", "b"], predictors={"y": ["b"]}, random_state=1).fit(X)
    drawn = chain.sample(given=X[["a", "b"]])["y"].to_numpy()
    slope_a, slope_b, _ = np.linalg.lstsq(np.column_stack([a, b, np.ones(3000)]), drawn, rcond=None)[0]
    assert abs(slope_a) < 4 * 2 / np.sqrt(3000)
    assert slope_b == pytest.approx(1.0, abs=8 * 2 / np.sqrt(3000))
