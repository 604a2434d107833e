"""The explainer: options, decisions, persistence, weights, generators, models with random answers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

import mcce
from tests.explain.tables import people, refused, score

X = people()
FACTUALS = refused(X, 12)


@pytest.fixture(scope="module")
def explainer():
    return mcce.MCCE(score, fixed=["age"], random_state=1).fit(X)


@pytest.mark.parametrize("relations", [(), ["total == salary + bonus"]])
def test_generate_and_select_are_the_two_steps_of_explain(relations):
    explainer = mcce.MCCE(score, fixed=["age"], random_state=1).fit(X, relations=relations)
    draws = explainer.generate(FACTUALS, 100)
    assert draws.index.names == ["id", "draw"]
    assert (draws["age"].to_numpy() == FACTUALS.loc[draws.index.get_level_values("id"), "age"].to_numpy()).all()
    selected = explainer.select(draws, FACTUALS, n_counterfactuals=2)
    found = explainer.explain(FACTUALS, n_samples=100, n_counterfactuals=2)
    pd.testing.assert_frame_equal(selected.frame, found.frame)
    pd.testing.assert_frame_equal(selected.measures, found.measures)


def test_unexplained_rows_have_a_code_and_counts(explainer):
    rows = pd.concat([FACTUALS.head(2), X[score(X) >= 0.5].head(1)])
    rows.index = ["refused", "stranger", "granted"]
    rows.loc["stranger", "job"] = "astronaut"
    found = explainer.explain(rows, n_samples=50, constraints=["savings > 1000"])
    codes = {"refused": "none_allowed", "stranger": "unknown_level", "granted": "already"}
    assert found.unexplained["code"].to_dict() == codes
    assert "astronaut" in found.unexplained.loc["stranger", "reason"]
    candidates = (
        rows.iloc[:2].set_axis(pd.MultiIndex.from_arrays([rows.index[:2], [0, 0]])).assign(job=X["job"].iloc[0])
    )
    assert explainer.select(candidates, rows).unexplained["code"]["stranger"] == "unknown_level"
    nobody = mcce.MCCE(score, decision=(0.999, 1.0), condition_on_decision=False, random_state=1).fit(X)
    row = nobody.explain(FACTUALS.head(1), n_samples=30, sparse=True).unexplained.iloc[0]
    assert (row["code"], row["valid"]) == ("none_valid", 0)
    assert 0 < row["allowed"] <= 30


def test_a_series_is_one_row(explainer):
    found = explainer.explain(FACTUALS.iloc[0], n_samples=50)
    pd.testing.assert_frame_equal(found.frame, explainer.explain(FACTUALS.head(1), n_samples=50).frame)


@pytest.mark.parametrize("decision", ["A", ["A", "B"], lambda rows: score(rows) >= 0.5, mcce.Interval(0.6, 1)])
def test_decisions(decision):
    def grade(rows):
        return np.where(score(rows) >= 0.6, "A", np.where(score(rows) >= 0.4, "B", "C"))

    labels = isinstance(decision, (str, list))
    model = grade if labels else None if callable(decision) else score
    for sparse in (False, True):
        found = (
            mcce.MCCE(model, decision=decision, fixed=["age"], random_state=1)
            .fit(X)
            .explain(X[score(X) < 0.4].head(5), n_samples=200, sparse=sparse)
        )
        assert len(found.frame) == 5
        if labels:
            assert np.isin(grade(found.frame), list(decision)).all()
        elif callable(decision):
            assert decision(found.frame).all()
        else:
            assert (score(found.frame) >= 0.6).all()


def test_a_model_with_random_answers_returns_confirmed_rows_only():
    rng = np.random.default_rng(1)
    asked = []

    def moody(rows):
        values = score(rows)
        flip = (np.abs(values - 0.5) < 0.2) & (rng.random(len(rows)) < 0.3)
        asked.append(len(rows))
        return np.where(flip, 1 - values, values)

    explainer = mcce.MCCE(moody, fixed=["age"], random_state=1).fit(X)
    with pytest.warns(mcce.exceptions.MCCEWarning, match="Its answers are random"):
        found = explainer.explain(refused(X, 40), n_samples=100)
    assert set(found.unexplained["code"]) <= {"not_confirmed", "already", "none_valid"}
    with pytest.warns(mcce.exceptions.MCCEWarning, match="Its answers are random"):
        explainer.select(explainer.generate(refused(X, 40), 100), refused(X, 40))


def test_a_saved_explainer_gives_the_same_answers(tmp_path):
    """With all that it holds: constraints, derived columns, and the relations and score of a sparse search."""
    constraints = [mcce.allow("school", low="mid"), "savings < was(savings) + 50", mcce.no_copies()]
    derived = {"total": "salary + bonus"}
    explainer = mcce.MCCE(score, fixed=["age"], derived=derived, constraints=constraints, random_state=1).fit(X)
    before = explainer.explain(FACTUALS, sparse=True, n_samples=100)
    explainer.save(tmp_path / "e.mcce")
    after = mcce.load(tmp_path / "e.mcce").explain(FACTUALS, sparse=True, n_samples=100)
    pd.testing.assert_frame_equal(after.frame, before.frame)
    pd.testing.assert_frame_equal(after.measures, before.measures)


def test_a_model_that_cannot_be_pickled_is_given_again(tmp_path):
    model = lambda rows: score(rows)  # noqa: E731
    explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    with pytest.warns(mcce.exceptions.MCCEWarning, match="cannot be pickled"):
        explainer.save(tmp_path / "e.mcce")
    with pytest.raises(mcce.exceptions.InputError, match="holds no model"):
        mcce.load(tmp_path / "e.mcce")
    loaded = mcce.load(tmp_path / "e.mcce", model=score)
    pd.testing.assert_frame_equal(loaded.explain(FACTUALS).frame, explainer.explain(FACTUALS).frame)
    explainer = mcce.MCCE(None, decision=lambda rows: score(rows) >= 0.5, random_state=1).fit(X)
    with pytest.raises(mcce.exceptions.InputError, match=r"cannot be saved .*lambda.*; define the functions"):
        explainer.save(tmp_path / "e.mcce")
    subclass = type("Mine", (mcce.MCCE,), {})(score, random_state=1).fit(X)
    with pytest.raises(mcce.exceptions.InputError, match="for its subclass Mine"):
        subclass.save(tmp_path / "e.mcce")


def test_other_files_and_versions(explainer, tmp_path, monkeypatch):
    (tmp_path / "text").write_text("no explainer")
    with pytest.raises(mcce.exceptions.InputError, match="is not a saved explainer"):
        mcce.load(tmp_path / "text")
    explainer.save(tmp_path / "e.mcce")
    (tmp_path / "text").write_bytes((tmp_path / "e.mcce").read_bytes()[:-1])
    with pytest.raises(mcce.exceptions.InputError, match=r"is not a saved explainer .*truncated"):
        mcce.load(tmp_path / "text")
    with monkeypatch.context() as without:
        without.delattr(score.__module__ + ".score")  # the model's package is not installed
        with pytest.raises(mcce.exceptions.InputError, match=r"the model in .* cannot be loaded \(AttributeError"):
            mcce.load(tmp_path / "e.mcce")
    monkeypatch.setattr(mcce.explainer, "VERSION", "99")
    with pytest.warns(mcce.exceptions.MCCEWarning, match="was saved by mcce"):
        mcce.load(tmp_path / "e.mcce")
    monkeypatch.setattr(mcce.explainer, "FORMAT", 99)
    with pytest.raises(mcce.exceptions.InputError, match="this format"):
        mcce.load(tmp_path / "e.mcce")


@pytest.mark.parametrize("n", range(2, 8))
def test_tables_of_few_rows(n):
    few = X.sample(n, random_state=n)
    best = float(score(few).max())
    explainer = mcce.MCCE(score, decision=(best, 1.0), random_state=1).fit(few)
    for sparse in (False, True):
        found = explainer.explain(few, n_samples=20, sparse=sparse)
        assert (score(found.frame) >= best).all()
        assert len(found) + len(found.unexplained) == n


def test_a_weight_of_two_is_a_row_twice():
    weighted = mcce.MCCE(score, fixed=["age"], random_state=1).fit(X, sample_weight=np.full(len(X), 2))
    twice = mcce.MCCE(score, fixed=["age"], random_state=1).fit(pd.concat([X, X], ignore_index=True))
    pd.testing.assert_frame_equal(weighted.explain(FACTUALS).frame, twice.explain(FACTUALS).frame)


def test_other_generators():
    chain = mcce.ChainModel(fixed=["age"], sampler={"salary": "norm", "*": "ctree"})
    found = mcce.MCCE(score, fixed=["age"], generator=chain, random_state=1).fit(X).explain(FACTUALS, n_samples=100)
    same = mcce.MCCE(score, fixed=["age"], sampler={"salary": "norm", "*": "ctree"}, random_state=1).fit(X)
    pd.testing.assert_frame_equal(found.frame, same.explain(FACTUALS, n_samples=100).frame)


def test_a_clone_is_unfitted_and_explains_the_same_model():
    model = RandomForestClassifier(5, random_state=0).fit(X[["age", "salary"]], score(X) > 0.5)
    explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X[["age", "salary"]])
    copy = clone(explainer)
    assert copy.model is model
    with pytest.raises(mcce.exceptions.NotFittedError, match="not fitted"):
        copy.explain(FACTUALS[["age", "salary"]])


def test_the_input_is_not_changed(explainer):
    before = FACTUALS.copy()
    explainer.explain(FACTUALS, sparse=True, n_samples=50)
    pd.testing.assert_frame_equal(FACTUALS, before)


def test_no_seed_draws_one_and_keeps_it():
    explainer = mcce.MCCE(score, fixed=["age"]).fit(X)
    found = explainer.explain(FACTUALS)
    again = mcce.MCCE(score, fixed=["age"], random_state=found.settings["seed"]).fit(X).explain(FACTUALS)
    pd.testing.assert_frame_equal(found.frame, again.frame)


def test_no_copies_of_training_rows():
    simple = X[["age", "job", "school"]]
    model = lambda rows: np.where(rows["job"] == "manager", 0.9, 0.1)  # noqa: E731
    people_without = simple[simple["job"] != "manager"].head(20)
    explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(simple)
    known = set(simple.astype(str).itertuples(index=False, name=None))
    with_copies = explainer.explain(people_without, n_samples=50).frame
    assert any(row in known for row in with_copies.astype(str).itertuples(index=False, name=None))
    found = explainer.explain(people_without, n_samples=50, constraints=[mcce.no_copies()])
    assert not any(row in known for row in found.frame.astype(str).itertuples(index=False, name=None))


def test_relations_without_a_sparse_search_may_be_given(explainer):
    found = explainer.explain(FACTUALS, n_samples=100, relations=["total == salary + bonus"])
    assert np.allclose(found.frame["total"], found.frame["salary"] + found.frame["bonus"])


def test_constraints_of_the_explainer_and_of_a_call_hold_together():
    explainer = mcce.MCCE(score, fixed=["age"], constraints=mcce.allow("salary", low=40), random_state=1).fit(X)
    found = explainer.explain(FACTUALS, n_samples=100, constraints="savings < 20")
    assert (found.frame["salary"] >= 40).all()
    assert (found.frame["savings"] < 20).all()


def test_a_change_that_a_constraint_requires_is_not_harmful():
    table = pd.DataFrame(np.random.default_rng(0).random((500, 2)), columns=["pay", "hours"])
    model = mcce.MCCE(lambda rows: rows["pay"] + 0.2 * rows["hours"], decision=(0.8, np.inf), random_state=1)
    rows = pd.DataFrame({"pay": [0.3, 0.5], "hours": [0.9, 0.7]})
    result = model.fit(table).explain(rows, sparse=True, constraints=mcce.allow("hours", high=0.5))
    assert len(result) == 2
    assert not result.measures["below_floor"].any()
    assert (result.frame["hours"] <= 0.5).all()
