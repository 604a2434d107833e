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


def test_generate_and_select_are_the_two_steps_of_explain(explainer):
    draws = explainer.generate(FACTUALS, 100)
    assert draws.index.names == ["id", "draw"]
    assert (draws["age"].to_numpy() == FACTUALS.loc[draws.index.get_level_values("id"), "age"].to_numpy()).all()
    selected = explainer.select(draws, FACTUALS, n_counterfactuals=2)
    found = explainer.explain(FACTUALS, n_samples=100, n_counterfactuals=2)
    pd.testing.assert_frame_equal(selected.frame, found.frame)
    pd.testing.assert_frame_equal(selected.measures, found.measures)


def test_the_best_rows_are_those_of_an_exhaustive_search(explainer):
    """The paper's section 2.3, done literally: filter the valid draws, count changes, sum Gower's steps, sort."""
    draws = explainer.generate(FACTUALS, 150)
    found = explainer.explain(FACTUALS, n_samples=150)
    spans = {name: X[name].max() - X[name].min() for name in X if X[name].dtype.kind in "ifM"}
    for name, pool in draws[score(draws) >= 0.5].groupby(level="id"):
        own = FACTUALS.loc[name]
        keys = []
        for row in pool.itertuples(index=False):
            if pd.isna(row.rent) and not pd.isna(own["rent"]):
                continue  # a known value stays known
            changed = [c for c, value in zip(X, row) if not (value == own[c] or (pd.isna(value) and pd.isna(own[c])))]
            steps = 0.0
            for c in changed:
                value = getattr(row, c)
                if c == "school":
                    steps += abs(["low", "mid", "high"].index(value) - ["low", "mid", "high"].index(own[c])) / 2
                elif c in spans and not (pd.isna(value) or pd.isna(own[c])):
                    steps += abs((value - own[c]) / spans[c])
                else:
                    steps += 1.0
            keys.append((len(changed), steps / len(X.columns)))
        best = found.measures.loc[(name, 1)]
        assert min(keys)[0] == best["L0"]
        assert min(keys)[1] == pytest.approx(best["gower"], abs=1e-12)


def test_bounds_hold_in_both_searches(explainer):
    for sparse in (False, True):
        found = explainer.explain(FACTUALS, n_samples=300, sparse=sparse, max_changes=5, max_gower=0.1)
        assert (found.measures["L0"] <= 5).all()
        assert (found.measures["gower"] <= 0.1).all()


def test_unexplained_rows_have_a_code_and_counts(explainer):
    rows = pd.concat([FACTUALS.head(2), X[score(X) >= 0.5].head(1)])
    rows.index = ["refused", "stranger", "granted"]
    rows.loc["stranger", "job"] = "astronaut"
    found = explainer.explain(rows, n_samples=50, constraints=["savings > 1000"])
    assert found.unexplained["code"].to_dict() == {
        "refused": "none_allowed",
        "stranger": "unknown_level",
        "granted": "already",
    }
    assert "astronaut" in found.unexplained.loc["stranger", "reason"]
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


def test_a_saved_explainer_gives_the_same_answers(explainer, tmp_path):
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


def test_other_files_and_versions(explainer, tmp_path, monkeypatch):
    (tmp_path / "text").write_text("no explainer")
    with pytest.raises(mcce.exceptions.InputError, match="is not a saved explainer"):
        mcce.load(tmp_path / "text")
    explainer.save(tmp_path / "e.mcce")
    monkeypatch.setattr(mcce.explainer, "version", lambda name: "99")
    with pytest.warns(mcce.exceptions.MCCEWarning, match="was saved by mcce"):
        mcce.load(tmp_path / "e.mcce")
    monkeypatch.setattr(mcce.explainer, "FORMAT", 99)
    with pytest.raises(mcce.exceptions.InputError, match="this format"):
        mcce.load(tmp_path / "e.mcce")


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


REFUSED = [
    ({"n_samples": 0}, "n_samples is 0; it must be a whole number of at least 1"),
    ({"n_counterfactuals": 2.5}, "n_counterfactuals is 2.5; it must be a whole number"),
    ({"floor": 0.1}, "floor is 0.1, which has no effect without sparse=True"),
    ({"floor": 1.0, "sparse": True}, "floor is 1.0; it must be a number of at least 0 and below 1"),
    ({"diverse": True}, "diverse=True has no effect without sparse=True and n_counterfactuals"),
    ({"sparse": "yes"}, "sparse is 'yes'; it must be True or False"),
    ({"max_changes": 0}, "max_changes is 0"),
    ({"max_gower": -1}, "max_gower is -1"),
    ({"measures": "gowr"}, "did you mean 'gower'"),
    ({"constraints": ["salry > 3"]}, "did you mean 'salary'"),
    ({"constraints": [mcce.allow("age", low=3)]}, "constrains a fixed feature"),
    ({"relations": 3, "sparse": True}, "relations is 3"),
]


@pytest.mark.parametrize(("options", "text"), REFUSED, ids=[str(options) for options, _ in REFUSED])
def test_messages_of_explain(explainer, options, text):
    with pytest.raises(mcce.exceptions.InputError) as error:
        explainer.explain(FACTUALS, **options)
    assert text in str(error.value)


def test_relations_without_a_sparse_search_may_be_given(explainer):
    found = explainer.explain(FACTUALS, n_samples=100, relations=["total == salary + bonus"])
    assert np.allclose(found.frame["total"], found.frame["salary"] + found.frame["bonus"])


CONSTRUCTED = [
    ({"fixed": ["agee"]}, "did you mean 'age'"),
    ({"fixed": list(X.columns)}, "leave at least one mutable"),
    ({"sampler": "carrt"}, "did you mean 'cart'"),
    ({"visit_sequence": "corelation"}, "correlation"),
    ({"generator": mcce.ChainModel(), "sampler": "norm"}, "has no effect beside generator"),
    ({"generator": mcce.ChainModel(fixed=["job"])}, "give both the same features"),
    ({"decision": (0.9999, 1.0)}, "no training row has the wanted decision"),
    ({"random_state": "seed"}, "random_state"),
    ({"derived": {"total": "salary + savings"}}, "total"),
    ({"condition_on_decision": "no"}, "condition_on_decision is 'no'"),
]


@pytest.mark.parametrize(("options", "text"), CONSTRUCTED, ids=[str(text) for _, text in CONSTRUCTED])
def test_messages_of_fit(options, text):
    with pytest.raises(mcce.exceptions.InputError) as error:
        mcce.MCCE(score, **options).fit(X)
    assert text in str(error.value)
