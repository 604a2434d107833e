"""The criticism of a fitted chain: its input, errors, and invariance."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.exceptions import InputError, MCCEWarning, NotFittedError


def homes(n, seed, missing=0.0):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, n)
    salary = 20 + age + rng.normal(0, np.where(age > 55, 12.0, 3.0))
    rent = salary / 3 + rng.normal(size=n)
    rent[rng.uniform(size=n) < missing] = np.nan
    return pd.DataFrame({"age": age, "salary": salary, "rent": rent, "pet": rng.choice(["cat", "dog"], n)})


SAMPLERS = {"salary": "norm", "rent": "norm", "pet": "marginal"}


def test_only_the_wrong_conditional_is_rejected():
    chain = mcce.ChainModel(sampler=SAMPLERS, fixed=["age"], random_state=1).fit(homes(2000, 1))
    found = chain.criticise(homes(400, 2))
    assert found.rejected == ["salary"]
    assert "too wide where age is at most 54, too narrow elsewhere" in found.sentences[0]
    assert found.table.loc["rent", "skill"] > 0.8
    assert found.table["sampler"].tolist() == ["NormSampler()", "NormSampler()", "MarginalSampler()"]
    assert np.isfinite(found.table["log_score"]).all()


def test_result_depends_only_on_the_seed():
    X, new = homes(300, 1), homes(100, 2)
    tables = []
    for n_jobs, state in [(1, None), (2, None), (1, 5)]:
        chain = mcce.ChainModel(sampler=SAMPLERS, fixed=["age"], random_state=1, n_jobs=n_jobs).fit(X)
        found = chain.criticise(new, random_state=state, n_draws=20).table
        tables.append(found.drop(columns="seconds"))
    pd.testing.assert_frame_equal(tables[0], tables[1])
    assert (tables[0]["score"] != tables[2]["score"]).any()


def test_predictors_are_those_of_the_conditional():
    X = homes(600, 1)
    chain = mcce.ChainModel(sampler=SAMPLERS, fixed=["age"], predictors={"rent": ["age"]}, random_state=1).fit(X)
    found = chain.criticise(homes(300, 2))
    assert {c.feature.name for c in found["rent"].failure.conditions} == {"age"}


def test_decision_is_given_row_by_row():
    X, new = homes(1000, 1), homes(300, 2)
    X["pet"] = np.where(X["salary"] > 70, "dog", "cat")
    new["pet"] = np.where(new["salary"] > 70, "dog", "cat")
    wanted = (X["salary"] > 70).to_numpy()
    chain = mcce.ChainModel(sampler="ctree", fixed=["age"], predictors={"pet": []}, random_state=1).fit(X, wanted)
    found = chain.criticise(new, decision=(new["salary"] > 70).to_numpy())
    assert found.table.loc["pet", "skill"] > 0.99
    with pytest.raises(
        InputError, match="this chain was fitted with a decision; give the decision of each row of X_new"
    ):
        chain.criticise(new)
    with pytest.raises(InputError, match="decision must be True or False, for all rows or for each row"):
        chain.criticise(new, decision=np.array([True]))
    without = mcce.ChainModel(sampler="ctree", random_state=1).fit(X)
    with pytest.raises(InputError, match="this chain was fitted without a decision; leave decision out"):
        without.criticise(new, decision=True)


def test_missing_values_are_judged_where_they_can_be_drawn():
    X = homes(800, 1, missing=0.3)
    new = homes(300, 2, missing=0.6)
    found = mcce.ChainModel(sampler="ctree", fixed=["age"], random_state=1).fit(X).criticise(new)
    assert "missing too seldom (" in found.sentences[1]


class Complete(mcce.MarginalSampler):
    handles_missing = False


def test_missing_values_unsupported_by_a_sampler_raise():
    chain = mcce.ChainModel(sampler={"pet": Complete(), "*": "ctree"}, fixed=["age"], random_state=1)
    message = r"X_new has missing values in 'rent', which Complete\(\) for 'pet' does not handle; fill them"
    with pytest.raises(InputError, match=message):
        chain.fit(homes(100, 1)).criticise(homes(100, 2, missing=0.5))


def test_invalid_input_raises():
    chain = mcce.ChainModel(sampler=SAMPLERS, fixed=["age"], random_state=1)
    with pytest.raises(NotFittedError, match="not fitted"):
        chain.criticise(homes(100, 1))
    chain.fit(homes(200, 3))
    with pytest.raises(InputError, match="X_new has 19 rows; testing a conditional needs at least 20"):
        chain.criticise(homes(19, 1))
    with pytest.raises(InputError, match="level is 1; it must be a number from 0 to below 1"):
        chain.criticise(homes(100, 1), level=1)
    with pytest.raises(InputError, match="X_new lacks the column"):
        chain.criticise(homes(100, 1)[["age"]])


def test_judging_training_rows_warns():
    X = homes(100, 1)
    chain = mcce.ChainModel(sampler=SAMPLERS, fixed=["age"], random_state=1).fit(X)
    with pytest.warns(MCCEWarning, match="all 60 rows of X_new are training rows"):
        chain.criticise(X.head(60), n_draws=10)
    chain.criticise(pd.concat([X.head(60), homes(1, 2)]), n_draws=10)
