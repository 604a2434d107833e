"""All kinds of tables: arrays, dates, missing values, any names and index."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sklearn.linear_model import LogisticRegression

from mcce import MCCE, InputError
from tests.explainer.problem import DENIED, MODELS, SMALL, TABLE, boosted, fitted


def test_models_of_arrays_are_queried_with_arrays():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    model = LogisticRegression().fit(X, (X[:, 0] + X[:, 1] > 0).astype(int))
    queried = []

    class Recorder:
        classes_ = model.classes_

        def predict_proba(self, rows):
            queried.append(rows)
            return model.predict_proba(rows)

    explainer = MCCE(Recorder(), fixed=["x3"], random_state=1).fit(X)
    denied = X[model.predict(X) == 0][:10]
    found = explainer.explain(denied, n_samples=100)
    assert len(found) == 10
    assert {(type(a), a.dtype) for a in queried} == {(np.ndarray, np.dtype(np.float32))}
    assert found.frame.columns.tolist() == ["x0", "x1", "x2", "x3"]
    assert (found.frame.dtypes == np.float32).all()
    assert found.frame.index.get_level_values(0).tolist() == list(range(10))
    assert (found.frame["x3"].to_numpy() == denied[:, 3]).all()
    assert (model.predict(found.frame.to_numpy()) == 1).all()


def test_models_of_frames_are_queried_with_frames():
    X = TABLE[["income", "age"]]
    model = LogisticRegression().fit(X, X["income"] > 30)
    unwanted = X[~model.predict(X)].iloc[:5]
    found = MCCE(model, fixed=["age"], random_state=1).fit(X).explain(unwanted)
    assert len(found) == 5
    assert model.predict(found.frame).all()


def test_dates_and_missing_values_round_trip(explainer):
    candidates = explainer.generate(DENIED, n_samples=50)
    assert candidates["since"].dtype == TABLE["since"].dtype
    assert set(candidates["since"]) <= set(TABLE["since"])
    for name in ("debt", "children", "club"):
        assert 0 < candidates[name].isna().mean() < 0.5


@pytest.mark.slow
def test_missing_values_are_passed_to_models_that_accept_them():
    model, decision = MODELS["boosted"]
    denied = TABLE[boosted(TABLE) < 0.5]
    denied = denied[denied["debt"].isna() | denied["club"].isna()].iloc[:10]
    found = fitted(model, decision).explain(denied, n_samples=300)
    assert len(found) == len(denied) > 3
    assert (boosted(found.frame) >= 0.5).all()


@pytest.mark.parametrize(
    "names",
    [["decision", "id", "rank", "prediction", "L0"], [3, 1, 4, 0, 5], ["<decision>", "*", 0, ("a", 1), ""]],
)
def test_any_column_names(names):
    rng = np.random.default_rng(4)
    X = pd.DataFrame({j: rng.integers(0, 6, 200) / 2 for j in range(5)})
    X.columns = pd.Index(names, tupleize_cols=False)
    first, second = names[0], names[3]

    def model(frame):
        return (frame[first] + frame[second]).to_numpy()

    denied = X[model(X) < 2].iloc[:5]
    found = (
        MCCE(model, decision=(3, np.inf), fixed=[names[1]], random_state=1).fit(X).explain(denied, n_counterfactuals=2)
    )
    assert found.frame.columns.tolist() == names
    assert len(found) == 10
    assert (found.frame[names[1]].to_numpy() == np.repeat(denied[names[1]].to_numpy(), 2)).all()
    assert set(found.changes()["feature"]) <= set(names) - {names[1]}
    assert len(found.to_frame().columns) == 2 + 5 + 4
    assert repr(found)
    assert found._repr_html_()
    assert found.sentence(denied.index[0])


def test_column_named_like_the_default_key_of_samplers():
    X = SMALL.rename(columns={"x": "*"})
    found = (
        MCCE(lambda f: f["*"].to_numpy(), decision=(50, 99), fixed=["group"], random_state=1).fit(X).explain(X.iloc[:3])
    )
    assert len(found) == 3


@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("2024", periods=5),
        pd.CategoricalIndex(list("edcba")),
        pd.Index([9, -1, 3, 2, 5], name="customer"),
        pd.Index([0.5, 1.5, np.nan, 2.5, 3.5]),
        pd.Index([("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)], tupleize_cols=False),
    ],
    ids=["dates", "categories", "named", "missing", "tuples"],
)
def test_any_unique_index_names_the_factuals(explainer, index):
    factuals = DENIED.iloc[:5].set_axis(index)
    found = explainer.explain(factuals, n_samples=100)
    assert found.frame.index.names == ["id", "rank"]
    plain = explainer.explain(DENIED.iloc[:5].reset_index(drop=True), n_samples=100)
    assert_frame_equal(found.frame.reset_index(drop=True), plain.frame.reset_index(drop=True))
    positions = index.get_indexer(found.frame.index.get_level_values("id"))
    assert positions.tolist() == plain.frame.index.get_level_values("id").tolist()


def test_ambiguous_index_raises(explainer):
    with pytest.raises(InputError, match="the index of X holds 7 more than once"):
        explainer.explain(DENIED.iloc[:2].set_axis([7, 7]))
    several = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])
    for call in (explainer.explain, explainer.generate):
        with pytest.raises(InputError, match="the index of X has several levels"):
            call(DENIED.iloc[:2].set_axis(several))


def test_no_factuals(explainer):
    nobody = DENIED.iloc[:0]
    candidates = explainer.generate(nobody, n_samples=5)
    assert candidates.shape == (0, TABLE.shape[1])
    for found in (explainer.explain(nobody), explainer.select(candidates, nobody)):
        assert len(found) == len(found.unexplained) == 0
        assert found.frame.dtypes.equals(TABLE.dtypes)
        assert found.measures.columns.tolist() == ["prediction", "L0", "gower", "gower_sum"]
        assert repr(found)
        assert len(found.summary())


def test_degenerate_tables():
    X = pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"], "c": [5, 5], "d": [np.nan, np.nan]})

    def model(frame):
        return (frame["a"] == 1).to_numpy(dtype=float)

    found = MCCE(model, random_state=1).fit(X).explain(X.iloc[[1]])
    assert len(found) == 1
    assert found.frame["a"].iloc[0] == 1
    single = MCCE(model, random_state=1).fit(X.iloc[[0]])
    assert single.explain(X.iloc[[0]]).unexplained["reason"].tolist() == ["already has the wanted decision"]
    found = single.explain(X.iloc[[0]].assign(a=7.0, c=6))
    assert_frame_equal(found.frame.reset_index(drop=True), X.iloc[[0]])
    assert found.measures["L0"].tolist() == [2]
    assert found.measures["gower_sum"].tolist() == [2.0]
