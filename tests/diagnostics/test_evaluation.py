"""The columns of the paper compared with a hand-made example and brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.diagnostics import evaluate

LEVELS = ["rent", "own", "live with parents"]
TRAINING = pd.DataFrame(
    {
        "age": [20, 30, 40, 60],
        "salary": [10.0, 20.0, 30.0, 50.0],
        "home": pd.Categorical(["rent", "own", "own", "rent"], LEVELS),
        "defaulted": [True, False, False, True],
    },
    index=list("pqrs"),
)


def model(frame):
    """The score is the salary."""
    assert list(frame.columns) == list(TRAINING.columns)
    return frame["salary"].to_numpy(float)


WANTED = {"decision": (25, 100), "training": TRAINING, "fixed": ["age"]}
FACTUALS = TRAINING.loc[["p", "q"]]


def peer(*rows, index):
    return pd.DataFrame(list(rows), columns=TRAINING.columns, index=index)


def test_evaluation_matches_hand_calculation():
    found = peer([20, 30.0, "own", True], [40, 20.0, "own", False], index=["p", "q"])
    e = evaluate(found, FACTUALS, model, **WANTED, timings={"fit": 1.0, "search": 2.0})
    assert list(e.rows.columns) == ["L0", "L1", "violation", "success", "distance", "distance_wanted", "copy"]
    assert e.rows.index.to_list() == [("p", 1), ("q", 1)]
    # p: salary 20 of 40, home. q: age 10 of 40
    assert e.rows["L0"].to_list() == [2, 1]
    assert e.rows["L1"].to_list() == [1.5, 0.25]
    assert e.rows["violation"].to_list() == [0, 1]
    assert e.rows["success"].to_list() == [True, False]
    # p, at 1.5 / 4, is not its own neighbour; q: age .25, salary .25, defaulted 1; r: age .5, defaulted 1
    assert e.rows["distance"].to_list() == pytest.approx([1.5 / 4, 0.25 / 4])
    assert e.rows["distance_wanted"].to_list() == pytest.approx([1.5 / 4, 0.25 / 4])
    assert not e.rows["copy"].any()
    assert e.summary.loc["L0"].to_list() == pytest.approx([1.5, np.sqrt(0.5)])
    assert e.summary.loc["success", "mean"] == 0.5
    assert (e.n_factuals, e.n_explained) == (2, 2)
    assert dict(e.timings) == {"fit": 1.0, "search": 2.0, "total": 3.0}
    assert {"L0", "L0_sd", "N_CE", "n_test", "success", "copy", "seconds_search", "seconds_total"} <= {
        *e.to_frame("peer").columns
    }
    assert e.to_frame("peer").loc["peer", "L1"] == pytest.approx(0.875)
    assert "N_CE" in repr(e)
    assert "2 cases have" in e._repr_html_()


def test_factual_is_excluded_but_its_duplicate_counts():
    training = pd.concat([TRAINING, TRAINING.loc[["p"]].set_axis(["twin"])])
    found = peer([20, 12.0, "rent", True], index=["p"])
    settings = {**WANTED, "training": training}
    assert evaluate(found, FACTUALS.iloc[:1], model, **settings).rows["distance"].iloc[0] == pytest.approx(0.05 / 4)
    assert evaluate(found, FACTUALS.iloc[:1], model, **WANTED).rows["distance"].iloc[0] > 0.2
    renamed = FACTUALS.iloc[:1].set_axis([0])
    e = evaluate(found.set_axis([0]), renamed, model, **WANTED)
    assert e.rows["distance"].iloc[0] > 0.2, "known by its values, whatever its label"


def test_copies_and_missing_rows_and_ranks():
    nothing = [None] * 4
    found = peer(
        [20, 40.0, "own", False], [40, 30.0, "own", False], nothing, [20, 26.0, "own", True], index=["p", "p", "q", "p"]
    )
    e = evaluate(found, FACTUALS, model, **WANTED, rank=None)
    assert e.rows.index.to_list() == [("p", 1), ("p", 2), ("p", 3)]
    assert e.rows["copy"].to_list() == [False, True, False]
    assert (e.n_factuals, e.n_explained) == (2, 1)
    second = evaluate(found, FACTUALS, model, **WANTED, rank=2)
    assert second.rows["copy"].to_list() == [True]
    ranked = found.dropna(how="all").set_axis(pd.MultiIndex.from_tuples([("p", 3), ("p", 1), ("p", 2)]))
    assert evaluate(ranked, FACTUALS, model, **WANTED).rows["copy"].to_list() == [True]


def test_peer_rows_may_have_other_dtypes():
    found = peer([20.5, 26.0, "castle", 0], index=["p"]).astype(object)
    e = evaluate(found, FACTUALS, lambda frame: frame["salary"].to_numpy(float), **WANTED)
    assert e.rows[["L0", "violation", "success"]].iloc[0].to_list() == [4, 1, True]
    assert e.rows["L1"].iloc[0] == pytest.approx(0.5 / 40 + 16 / 40 + 1 + 1)

    def sees_training_dtypes(frame):
        assert (frame.dtypes == TRAINING.dtypes).all()
        return frame["salary"].to_numpy(float)

    exact = peer([20.0, 26.0, "own", 0], index=["p"]).astype(object)
    assert evaluate(exact, FACTUALS, sees_training_dtypes, **WANTED).rows["success"].all()


def test_arrays():
    rng = np.random.default_rng(1)
    training = rng.integers(0, 9, (50, 3))

    def total(rows):
        assert isinstance(rows, np.ndarray)
        return rows.sum(axis=1)

    factuals = np.array([[1, 1, 1], [0, 1, 0]])
    found = pd.DataFrame([[9.5, 1, 1]], columns=["x0", "x1", "x2"], index=[1])
    e = evaluate(found, factuals, total, training=training, decision=(11.2, 99), fixed=["x1"])
    assert e.rows[["L0", "violation", "success"]].iloc[0].to_list() == [2, 0, True]
    assert e.rows["L1"].iloc[0] == pytest.approx(9.5 / 8 + 1 / 8)
    assert (e.n_factuals, e.n_explained) == (2, 1)


@pytest.fixture(scope="module")
def explained():
    from sklearn.tree import DecisionTreeClassifier

    X = mcce.datasets.load_loans(600).X.select_dtypes("number")
    classifier = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, X["savings"] + X["salary"] > 90_000)
    explainer = mcce.MCCE(classifier, decision=(0.5, 1), fixed=["age"], random_state=1).fit(X)
    denied = X[classifier.predict_proba(X)[:, 1] < 0.5].head(30)
    return X, classifier, denied, explainer.explain(denied, n_samples=100, n_counterfactuals=2)


@pytest.mark.slow
def test_counterfactuals_need_no_further_arguments(explained):
    X, classifier, denied, found = explained
    e = evaluate(found, denied, classifier, training=X)
    best = found.measures.xs(1, level="rank")
    assert e.rows["L0"].to_list() == best["L0"].to_list()
    assert e.rows["L1"].to_list() == pytest.approx(best["gower_sum"].to_list())
    assert e.rows["success"].all()
    assert not e.rows["violation"].any()
    assert e.n_explained == found.frame.index.get_level_values("id").nunique()
    assert e.timings["total"] == pytest.approx(sum(found.run.timings.values()))
    as_frame = evaluate(found.frame, denied, classifier, training=X, fixed=["age"])
    pd.testing.assert_frame_equal(as_frame.rows, e.rows)
    alone = evaluate(found, denied, classifier)
    pd.testing.assert_frame_equal(alone.rows, e.rows[["L0", "L1", "violation", "success"]])
    schema = evaluate(found, denied, classifier, training=mcce.Schema.from_data(X))
    pd.testing.assert_frame_equal(schema.rows, alone.rows)


@pytest.mark.slow
def test_distances_match_brute_force(explained):
    X, classifier, denied, found = explained
    e = evaluate(found, denied, classifier, training=X, rank=None)
    assert len(e.rows) == len(found)
    wanted = classifier.predict_proba(X)[:, 1] >= 0.5
    for (id, rank), row in e.rows.iterrows():
        others = pd.Series(mcce.gower_distance(X, found.frame.loc[[(id, rank)]], training=X), index=X.index).drop(id)
        assert row["distance"] == pytest.approx(others.min(), abs=1e-12)
        assert row["distance_wanted"] == pytest.approx(others[X.index[wanted]].min(), abs=1e-12)
        assert row["copy"] == X.eq(found.frame.loc[(id, rank)]).all(axis=1).any()


def test_no_counterfactual_found():
    e = evaluate(peer(index=[]), FACTUALS, model, **WANTED)
    assert (e.n_factuals, e.n_explained, len(e.rows)) == (2, 0, 0)
    assert np.isnan(e.summary.loc["L0", "mean"])
    assert "N_CE" in repr(e)


@pytest.mark.parametrize(
    ("found", "X", "more", "message"),
    [
        ([1], FACTUALS, {}, "found is a list; give a Counterfactuals, or a DataFrame"),
        (FACTUALS.set_axis([0, 1]), FACTUALS, {}, "found has rows for '0', '1', not in the index of X"),
        (FACTUALS, FACTUALS.set_axis(["p", "p"]), {}, "the index of X holds 'p' more than once; it names the factuals"),
        (FACTUALS, FACTUALS, {"training": None}, "training is None"),
        (FACTUALS.drop(columns="home"), FACTUALS, {}, r"found lacks the column\(s\) 'home'"),
        (FACTUALS.assign(age="old"), FACTUALS, {}, "column 'age' of found is numeric in the training data"),
        (FACTUALS, FACTUALS, {"fixed": ["sex"]}, "fixed feature 'sex' is not a column"),
        (FACTUALS.set_axis([("p", "a"), ("q", "b")]), FACTUALS, {}, "second level of the index"),
    ],
)
def test_invalid_input_raises(found, X, more, message):
    if isinstance(found, pd.DataFrame) and isinstance(found.index[0], tuple):
        found = found.set_axis(pd.MultiIndex.from_tuples(found.index))
    with pytest.raises(mcce.InputError, match=message):
        evaluate(found, X, model, **{**WANTED, **more})


def test_level_outside_an_order_raises():
    training = TRAINING.assign(size=pd.Categorical(["S", "M", "L", "S"], ["S", "M", "L"], ordered=True))
    found = training.iloc[[0]].assign(size="XL")
    with pytest.raises(mcce.InputError, match="'XL', which is not in the order"):
        evaluate(found, training.iloc[[0]], lambda frame: np.ones(len(frame)), training=training)
