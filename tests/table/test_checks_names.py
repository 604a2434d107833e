"""Column names from a one-shot iterator raise wherever names are accepted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, ChainModel, InputError
from mcce.diagnostics import evaluate
from mcce.rcompat import explain_mcce

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.integers(0, 5, 200), "b": RNG.integers(0, 5, 200), "c": RNG.normal(size=200)})


class ReadOnce:
    """An iterable that returns the same iterator each time."""

    def __init__(self, names):
        self.names = iter(names)

    def __iter__(self):
        return self.names


ONE_SHOT = {
    "filter": lambda names: filter(lambda name: True, names),
    "map": lambda names: map(str, names),
    "generator": lambda names: (name for name in names),
    "iterator": iter,
    "object": ReadOnce,
}
REUSABLE = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "keys": lambda names: dict.fromkeys(names).keys(),
    "index": pd.Index,
    "array": lambda names: np.array(names, dtype=object),
}


def model(rows):
    return (rows["c"] + rows["b"] > 1.5).to_numpy()


@pytest.mark.parametrize("kind", ONE_SHOT)
def test_fixed_of_an_explainer_and_a_chain(kind):
    fixed = ONE_SHOT[kind](["a"])
    explainer = MCCE(model, decision=True, fixed=fixed, random_state=1)
    for _ in range(2):  # the second fit too, although the first may have exhausted the iterator
        with pytest.raises(InputError, match=r"fixed is an iterator \(.*\), which is empty .*; give a list"):
            explainer.fit(X)
        list(fixed)
    with pytest.raises(InputError, match="fixed is an iterator"):
        ChainModel(fixed=ONE_SHOT[kind](["a"])).fit(X)


@pytest.mark.parametrize("kind", REUSABLE)
def test_fixed_features_are_equal_for_any_collection(kind):
    explainer = MCCE(model, decision=True, fixed=REUSABLE[kind](["a"]), random_state=1)
    for _ in range(2):
        found = explainer.fit(X).explain(X.head(30), n_samples=50)
        assert found.fixed == ("a",)
        assert len(found)
        kept = X.loc[found.frame.index.get_level_values("id"), "a"].to_numpy()
        np.testing.assert_array_equal(found.frame["a"], kept)


def test_fixed_of_evaluate():
    found = MCCE(model, decision=True, random_state=1).fit(X).explain(X, n_samples=50).frame.droplevel("rank")
    options = {"decision": True, "training": X}
    assert evaluate(found, X, model, **options, fixed=["a"]).summary.loc["violation", "mean"] > 0
    with pytest.raises(InputError, match="fixed is an iterator"):
        evaluate(found, X, model, **options, fixed=iter(["a"]))


def test_fixed_features_of_explain_mcce():
    def score(rows):
        return model(rows).astype(float)

    sizes = {"generate_K": 20, "fit_seed": 1, "generate_seed": 1}
    found = explain_mcce(score, X.head(3), X, fixed_features=("a",), **sizes)
    assert found.fixed_features == ("a", "decision")
    with pytest.raises(InputError, match="fixed_features is an iterator"):
        explain_mcce(score, X.head(3), X, fixed_features=filter(None, ["a"]), **sizes)


@pytest.mark.parametrize("kind", ONE_SHOT)
def test_predictors(kind):
    with pytest.raises(InputError, match=r"predictors\['c'\] is an iterator"):
        ChainModel(predictors={"c": ONE_SHOT[kind](["a"])}).fit(X)
    with pytest.raises(InputError, match=r"predictors\['c'\] is 3; give a list of columns"):
        ChainModel(predictors={"c": 3}).fit(X)


def test_predictors_from_the_keys_of_a_dict_are_used():
    c = X["a"] + RNG.normal(size=200) / 100
    ways = [{"c": {"a": 0}.keys()}, {"c": ["a"]}, {"c": []}]
    drawn = [
        ChainModel(predictors=way, fixed=["a"], random_state=1).fit(X.assign(c=c)).sample(given=X[["a"]])
        for way in ways
    ]
    pd.testing.assert_frame_equal(drawn[0], drawn[1])
    assert not drawn[1].equals(drawn[2])


def test_visit_sequence():
    with pytest.raises(InputError, match="visit_sequence is an iterator"):
        ChainModel(visit_sequence=reversed(["a", "b", "c"])).fit(X)
    with pytest.raises(InputError, match="visit_sequence is a set, which has no order; give a list"):
        ChainModel(visit_sequence={"a", "b", "c"}).fit(X)
    assert ChainModel(visit_sequence=dict.fromkeys("cab")).fit(X).visit_sequence_ == ["c", "a", "b"]
    assert ChainModel(visit_sequence=dict.fromkeys("cab").keys()).fit(X).visit_sequence_ == ["c", "a", "b"]
