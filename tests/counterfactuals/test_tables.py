"""The tables of a result, against a second computation from the training table."""

import pickle

import numpy as np
import pandas as pd
import pytest

import mcce
from tests.counterfactuals.results import by_hand, explained, people, score


def pairs(result):
    """Yield (id, rank, feature, old value, new value) of all changed cells that are not computed, one by one."""
    for (name, rank), row in result.frame.iterrows():
        for feature in result.frame.columns:
            old, new = result.factuals.loc[name, feature], row[feature]
            if feature != "half" and not (old == new or (pd.isna(old) and pd.isna(new))):
                yield name, rank, feature, old, new


def test_changes_are_the_cells_that_differ():
    _, _, result = explained()
    changes = result.changes()
    assert list(changes) == ["id", "rank", "feature", "from", "to", "direction", "step", "share_from", "share_to"]
    listed = list(zip(changes["id"], changes["rank"], changes["feature"]))
    assert sorted(listed, key=str) == sorted(((name, rank, f) for name, rank, f, _, _ in pairs(result)), key=str)
    old_and_new = {(name, rank, f): (old, new) for name, rank, f, old, new in pairs(result)}
    for row in changes.to_dict("records"):
        old, new = old_and_new[row["id"], row["rank"], row["feature"]]
        assert row["from"] == old or pd.isna(old) == pd.isna(row["from"]) is True
        assert row["to"] == new or pd.isna(new) == pd.isna(row["to"]) is True


def test_steps_and_shares_are_those_of_the_training_rows():
    X, _, result = explained()
    changes = result.changes()
    assert set(changes["direction"]) == {"up", "down", "other", "missing"}
    for row in changes[(changes["rank"] == 1) & (changes["direction"] != "missing")].to_dict("records"):
        training = X[row["feature"]].dropna()
        if row["feature"] in ("home", "member"):
            assert row["direction"] == "other"
            assert np.isnan(row["step"])
            expected = [(training == row[end]).mean() for end in ("from", "to")]
        else:
            levels = training.cat.codes if row["feature"] == "grade" else training
            ends = [
                ["low", "mid", "high"].index(row[end]) if row["feature"] == "grade" else row[end]
                for end in ("from", "to")
            ]
            expected = [(levels <= end).mean() for end in ends]
            step = sum(sign * ((levels < end).mean() + (levels <= end).mean()) / 2 for sign, end in zip((-1, 1), ends))
            assert row["step"] == pytest.approx(step)
            assert row["direction"] == ("up" if step > 0 else "down")
        assert [row["share_from"], row["share_to"]] == pytest.approx(expected)


def test_a_missing_value_has_no_step_and_no_share():
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0, np.nan] * 20, "b": [0, 1] * 40})
    explainer = mcce.MCCE(lambda rows: rows["a"].notna() * 1.0, random_state=1).fit(X)
    changes = explainer.explain(X.iloc[[3, 7]], n_samples=50).changes()
    filled = changes[changes["feature"] == "a"]
    assert list(filled["direction"]) == ["missing", "missing"]
    assert filled[["step", "share_from"]].isna().all(axis=None)
    assert filled["share_to"].between(1 / 3 - 1e-9, 1).all()


def test_summary_counts_what_the_tables_hold():
    _, rows, result = explained()
    summary = result.summary()
    best = [(name, feature) for name, rank, feature, _, _ in pairs(result) if rank == 1]
    names = {name for name, rank in result.frame.index}
    assert summary["rows", "given"] == len(rows)
    assert summary["rows", "explained"] == len(names)
    assert summary["rows", "already"] == (score(rows[rows["home"] != "castle"]) >= 0.5).sum()
    assert summary["rows", "unknown_level"] == 1
    assert summary["mean", "L0"] == pytest.approx(len(best) / len(names), abs=1e-4)
    counts = pd.Series([name for name, _ in best]).value_counts().value_counts() / len(names)
    assert {n: summary["changes", n] for n in counts.index} == pytest.approx(dict(counts), abs=1e-4)
    for feature, share in (pd.Series([f for _, f in best]).value_counts() / len(names)).items():
        assert summary["changed", feature] == pytest.approx(share, abs=1e-4)
    changed = summary["changed"]
    assert "half" not in changed.index  # it follows from the salary
    assert "age" not in changed.index  # it is fixed
    assert list(changed) == sorted(changed, reverse=True)


def test_measures_count_and_derived_columns_hold():
    _, _, result = explained()
    assert (result.frame["half"] == result.frame["salary"] / 2).all()
    assert list(result.measures) == ["prediction", "L0", "gower", "gower_sum"]
    counts = pd.Series([(name, rank) for name, rank, *_ in pairs(result)]).value_counts()
    assert {key: result.measures.loc[key, "L0"] for key in counts.index} == dict(counts)
    np.testing.assert_allclose(result.measures["prediction"], score(result.frame))
    np.testing.assert_allclose(result.measures["gower"] * len(result.frame.columns), result.measures["gower_sum"])


def test_unexplained_rows_have_a_code_and_a_sentence():
    _, rows, result = explained()
    assert set(result.unexplained["code"]) == {"already", "unknown_level"}
    assert set(result.unexplained.index) | {name for name, _ in result.frame.index} == set(rows.index)
    assert "'castle'" in result.sentence(3)
    assert 3 not in result.factuals.index
    assert 3 in result.predictions.index


def test_nobody_explained():
    X = people()
    explainer = mcce.MCCE(score, fixed=["age"], random_state=1).fit(X)
    good = explainer.explain(X[score(X) > 0.6].head(3))
    assert len(good) == 0
    assert good.summary()["rows"].to_dict() == {"given": 3, "explained": 0, "already": 3}
    assert good.changes().empty
    assert list(good.to_frame()["code"]) == ["already"] * 3
    assert good._repr_html_() is None
    assert "3 already" in repr(good)
    none = explainer.explain(X[score(X) < 0.4].head(2), constraints=["salary < 0"], n_samples=20)
    assert list(none.unexplained["code"]) == ["none_allowed"] * 2
    assert list(none.unexplained["allowed"]) == [0, 0]
    assert "no draw was found that constraints and relations allow" in none.sentence(none.unexplained.index[0])


def test_floor_is_named():
    result = by_hand(below_floor=(False, True))
    assert result.summary()["rows", "below_floor"] == 0  # of the best rows
    assert result.sentence("ann", rank=2).endswith(
        "It is not plausible: a share of 0.02 of the real rows is as unusual, and 0.05 was required."
    )
    result.measures["plausibility"] = 0.4  # marked for a change that makes the decision worse
    assert result.sentence("ann", rank=2).endswith("make the decision worse; no answer without one was found.")


def test_a_result_is_data():
    """The model of this result is a lambda, which pickle refuses: the result holds no part of it."""
    _, _, result = explained()
    copy = pickle.loads(pickle.dumps(result))
    pd.testing.assert_frame_equal(copy.frame, result.frame)
    assert repr(copy) == repr(result)
    pd.testing.assert_frame_equal(copy.changes(), result.changes())
    with pytest.raises(AttributeError):
        result.frame = result.frame


WRONG = [
    (lambda r: r.sentence(["ann"]), "no row has the id ['ann']; known: 'ann', 'bob', 'cy'"),
    (lambda r: r.sentence("ann", 0), "rank is 0; it must be a whole number of at least 1."),
    (lambda r: r.sentence("ann", labels="salary"), "labels is 'salary'; give texts by feature"),
    (lambda r: r.sentence("ann", formats={"salary": 3}), "formats['salary'] is 3; give a text"),
    (lambda r: r.sentence("ann", formats={"salary": "{0.__class__.x}"}), "which cannot write"),
    (lambda r: r.plot("cy"), "No counterfactual for 'cy': it has the wanted decision. There is nothing to draw."),
]


@pytest.mark.parametrize(("call", "text"), WRONG, ids=[text for _, text in WRONG])
def test_messages(call, text):
    with pytest.raises(mcce.exceptions.InputError) as error:
        call(by_hand())
    assert text in str(error.value)
