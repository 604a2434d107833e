"""Derived columns of every answer equal those that pandas computes from the other columns."""

import pickle
import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import mcce
from mcce import InputError, MCCEWarning
from mcce.exceptions import AdviceWarning
from tests.marks import examples, slow_but
from tests.plausibility.related_tables import rng

FORMULAS = {
    "dti": "(rent + instalment) / income",
    "utilisation_pct": "100 * card_used / card_limit",
    "job_years": "years(applied_on - hired_on)",
    "stretched": "dti > 0.5",
}
INPUTS = ("rent", "instalment", "income", "card_used", "card_limit", "hired_on", "savings")


def completed_years(begin, end):
    return end.year - begin.year - ((end.month, end.day) < (begin.month, begin.day))


def recomputed(rows):
    """Compute the derived columns with pandas, without the package."""
    dti = ((rows["rent"] + rows["instalment"]) / rows["income"]).round(2)
    years = [
        completed_years(h, a) if h <= a else -completed_years(a, h)
        for a, h in zip(rows["applied_on"], rows["hired_on"])
    ]
    return pd.DataFrame(
        {
            "dti": dti,
            "utilisation_pct": np.floor(100 * rows["card_used"] / rows["card_limit"]),
            "job_years": np.array(years, dtype=np.int64),
            "stretched": dti > 0.5,
        }
    )


def bank(n=400):
    return made_bank(n).copy()


@cache
def made_bank(n):
    r = rng(1)
    X = pd.DataFrame(
        {
            "rent": r.integers(300, 2000, n),
            "instalment": r.integers(0, 900, n),
            "income": r.integers(1500, 9000, n),
            "card_used": r.integers(0, 4000, n),
            "card_limit": 500 * r.integers(1, 20, n),
            "applied_on": pd.Timestamp("2023-01-01") + pd.to_timedelta(r.integers(0, 700, n), unit="D"),
            "savings": r.gamma(2, 3000, n).round(),
        }
    )
    X["hired_on"] = X["applied_on"] - pd.to_timedelta(r.integers(10, 9000, n), unit="D")
    return pd.concat([X, recomputed(X)], axis=1)


def score(rows):
    by_ratio = rows["savings"] / 9000 - rows["dti"] - rows["utilisation_pct"] / 200 + rows["job_years"] / 50
    return by_ratio - 0.1 * rows["stretched"]


def explainer(derived=FORMULAS, fixed=("applied_on",), X=None, **more):
    made = mcce.MCCE(score, decision=(0.3, np.inf), fixed=list(fixed), derived=derived, random_state=1, **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        return made.fit(bank() if X is None else X)


def refused(n=15, X=None):
    X = bank() if X is None else X
    return X[score(X) < 0.3].head(n)


def check(found, X=None):
    """Check the columns of answers against pandas, and the counts against the inputs."""
    X = bank() if X is None else X
    expected = recomputed(found.frame)
    for name in expected:
        assert found.frame[name].tolist() == expected[name].tolist(), name
    own = X.loc[found.frame.index.get_level_values("id"), list(INPUTS)].to_numpy(dtype=object)
    changed = found.frame[list(INPUTS)].to_numpy(dtype=object) != own
    assert found.measures["L0"].tolist() == changed.sum(axis=1).tolist()
    assert set(found.changes()["feature"]).isdisjoint(FORMULAS)


@pytest.fixture(scope="module")
def fitted():
    return explainer()


@pytest.mark.slow
@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sparse=st.booleans(),
    n_counterfactuals=st.integers(1, 3),
    diverse=st.booleans(),
    rule=st.sampled_from([None, "dti <= 0.4", "utilisation_pct < 30 or job_years > 10", "not stretched"]),
    max_changes=st.sampled_from([None, 2, 4]),
    n_samples=st.sampled_from([60, "auto"]),
)
def test_derived_columns_of_every_answer_match_pandas(
    fitted, sparse, n_counterfactuals, diverse, rule, max_changes, n_samples
):
    options = {"sparse": sparse, "n_counterfactuals": n_counterfactuals, "diverse": diverse and n_counterfactuals > 1}
    options |= {"max_changes": max_changes, "n_samples": 60 if options["diverse"] else n_samples}
    found = fitted.explain(refused(4), constraints=[] if rule is None else [rule], progress=False, **options)
    check(found)
    if max_changes is not None:
        assert (found.measures["L0"] <= max_changes).all()
    rows = found.frame
    holds = {
        "dti <= 0.4": rows["dti"] <= 0.4,
        "utilisation_pct < 30 or job_years > 10": (rows["utilisation_pct"] < 30) | (rows["job_years"] > 10),
        "not stretched": ~rows["stretched"],
    }
    assert rule is None or holds[rule].all()
    assert (score(rows) >= 0.3).all()


@pytest.mark.slow
def test_functions_compute_derived_columns():
    made = explainer(
        {
            "dti": lambda rows: (rows["rent"] + rows["instalment"]) / rows["income"],
            **{name: text for name, text in FORMULAS.items() if name != "dti"},
        }
    )
    for sparse in (False, True):
        found = made.explain(refused(), sparse=sparse, n_samples=100)
        assert len(found) == 15
        check(found)


def test_gower_distance_counts_only_inputs(fitted):
    found = fitted.explain(refused(), sparse=True, n_samples=100)
    X = bank()
    own = X.loc[found.frame.index.get_level_values("id")].reset_index(drop=True)
    steps = [
        (found.frame[name].reset_index(drop=True) - own[name]).abs() / (X[name].max() - X[name].min())
        for name in INPUTS
    ]
    np.testing.assert_allclose(found.measures["gower"], sum(steps) / X.shape[1], rtol=1e-12)


@pytest.mark.slow
def test_answers_are_inconsistent_without_derived_columns():
    X = bank()
    made = mcce.MCCE(score, decision=(0.3, np.inf), fixed=["applied_on"], random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        made.fit(X, relations=())
    found = made.explain(refused(), sparse=True, n_samples=100, floor=0.0).frame
    assert (found[list(FORMULAS)] != recomputed(found)).any(axis=1).sum() > 2


@pytest.mark.slow
def test_inconsistent_rows_are_counted_and_named():
    X = bank()
    X.index = [f"person {i}" for i in range(len(X))]
    X.loc[["person 7", "person 9"], "dti"] = 3.0
    made = mcce.MCCE(score, decision=(0.3, np.inf), derived={"dti": FORMULAS["dti"]}, random_state=1)
    with pytest.warns(MCCEWarning) as caught:
        made.fit(X)
    said = "2 of 400 training rows, 0.50%, disagree; the first: person 7, person 9"
    assert [said in str(each.message) for each in caught].count(True) == 1
    assert made.derived_[0].exceptions == 2
    found = made.explain(X.loc[["person 7", "person 9"]], sparse=True, n_samples=200).frame  # the factuals violate it
    moved = (
        found[["rent", "instalment", "income"]].to_numpy()
        != X.loc[["person 7", "person 9"], ["rent", "instalment", "income"]].to_numpy()
    ).any(axis=1)
    assert moved.any()
    assert (found["dti"] == recomputed(found)["dti"])[moved].all()


def test_column_derived_from_fixed_columns_is_fixed():
    found = explainer(fixed=("applied_on", "hired_on")).explain(refused(), n_samples=100)
    assert found.fixed == ("applied_on", "hired_on", "job_years")
    assert found.frame["job_years"].tolist() == refused()["job_years"].tolist()
    assert "job_years" not in found.computed


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"fixed": ("dti",)}, "'dti' is fixed and derived; leave it out of fixed"),
        ({"derived": ["dti"]}, "derived is ['dti']; give formulas by column"),
        ({"derived": {"dbt": "rent / income"}}, "did you mean 'dti'"),
        ({"derived": {"dti": "rnt / income"}}, "did you mean 'rent'"),
        ({"derived": {"dti": "job_years / 10", "job_years": "10 * dti"}}, "in a cycle: 'dti' -> 'job_years' -> 'dti'"),
    ],
)
def test_invalid_formulas_raise_before_fitting(more, said):
    with pytest.raises(InputError, match=re.escape(said)):
        explainer(**more)


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        (mcce.allow("dti", high=0.4), "'dti' is a derived column, which is computed from others"),
        (mcce.only({0: ["dti"]}), "names 'dti' for factual 0, a derived column"),
    ],
)
def test_derived_columns_are_allowed_only_in_rules(fitted, constraint, said):
    with pytest.raises(InputError, match=re.escape(said)):
        fitted.explain(bank().head(1), constraints=[constraint])


def test_only_constraint_lets_derived_columns_follow(fitted):
    who = refused(5)
    found = fitted.explain(
        who, sparse=True, n_samples=200, constraints=[mcce.only({i: ["income", "rent"] for i in who.index})]
    )
    check(found)
    assert set(found.changes()["feature"]) <= {"income", "rent"}
    assert len(found) >= 1


@pytest.mark.slow
def test_infeasible_rules_are_contradictions():
    who = refused(3)
    least = int(who["job_years"].max()) + 1
    with pytest.raises(InputError, match="may not change, which violates: job_years"):
        explainer(fixed=("applied_on", "hired_on")).explain(who, constraints=[f"job_years >= {least}"])


def test_generated_candidates_have_computed_columns(fitted):
    drawn = fitted.generate(refused(3), n_samples=50)
    pd.testing.assert_frame_equal(drawn[list(FORMULAS)], recomputed(drawn), check_dtype=False)
    again = fitted.select(drawn, refused(3))
    pd.testing.assert_frame_equal(again.frame, fitted.explain(refused(3), n_samples=50).frame)


@pytest.mark.slow
def test_contributions_include_derived_columns_of_a_change(fitted):
    found = fitted.explain(refused(), sparse=True, n_samples=200)
    for who, mine in found.changes().groupby("id"):
        table = found.contributions(who)
        assert table.index.tolist() == mine["feature"].tolist()
        for name, row in table.iterrows():
            alone = bank().loc[[who]]
            alone[name] = row["to"]
            alone[list(FORMULAS)] = recomputed(alone)
            assert row["alone"] == pytest.approx(score(alone).iloc[0])


@pytest.mark.slow
def test_texts_and_plots_do_not_advise_derived_columns(fitted):
    found = fitted.explain(refused(), sparse=True, n_samples=100)
    texts = [str(found), found.suspicious()["words"].str.cat()]
    texts += [found.sentence(who).split(" As a result, ")[0] for who in found]
    assert not any(name in text for text in texts for name in FORMULAS)
    labels = [text.get_text() for text in found.plot(next(iter(found))).get_yticklabels()]
    assert set(labels).isdisjoint(FORMULAS)
    assert found.changed_features().loc[list(FORMULAS), "times"].sum() == 0


def expected_follows(own, new):
    """Return the derived columns that change: name, 1 if it rises, 2 if it falls, 3 for a level, and the new value."""
    printed = []
    for name in own.index[own.index.isin(FORMULAS)]:
        if own[name] != new[name]:
            way = 3 if name == "stretched" else 1 if new[name] > own[name] else 2
            printed.append((name, way, new[name]))
    return printed


FOLLOWS = {
    "en": ("As a result, ", "rises to", "falls to", "becomes"),
    "de": ("Damit gilt auch: ", "steigt auf", "sinkt auf", "wird zu"),
    "fr": ("Avec cela, ", "monte à", "descend à", "devient"),
    "nb": ("Da gjelder også: ", "stiger til", "synker til", "blir"),
}


@pytest.fixture(scope="module")
def without_savings(fitted):
    stays = mcce.allow("savings", direction="none")
    return fitted.explain(refused(), sparse=True, n_samples=100, constraints=[stays])


@pytest.mark.parametrize("language", slow_but(list(FOLLOWS), "en"))
def test_letters_state_the_new_values_of_derived_columns(without_savings, language):
    found = without_savings
    begin, *ways = FOLLOWS[language]
    n_stated = 0
    for (who, _), new in found.frame.iterrows():
        expected = expected_follows(bank().loc[who], new)
        letter = " ".join(mcce.report.letter(found, who, language=language).split())
        sentence = found.sentence(who)
        assert (begin in letter) == bool(expected)
        assert (" As a result, " in sentence) == bool(expected)
        for name, way, value in expected:
            plain = name.replace("_", " ")
            assert f"{plain} {ways[way - 1]} " in letter
            if language == "en" and name == "dti":
                assert f"dti {ways[way - 1]} {value:g}" in letter
                assert f"dti {ways[way - 1]} {value:g}" in sentence
        n_stated += len(expected)
    assert n_stated > 5


@pytest.mark.slow
def test_letters_do_not_list_derived_columns_among_the_facts(fitted):
    for explained in (fitted, explainer(fixed=("applied_on", "hired_on"))):
        found = explained.explain(refused(4), sparse=True, n_samples=100)
        for who in found:
            letter = " ".join(mcce.report.letter(found, who).split())
            facts = letter.split("nor any fact other than ")[1]
            held = letter.split("What was kept unchanged")[1].split("Please note")[0]
            assert "card limit" in facts
            assert not any(name.replace("_", " ") in facts + held for name in FORMULAS)


@pytest.mark.slow
def test_ties_and_copies_are_not_stated():
    X = bank().drop(columns=list(FORMULAS))
    X = X.assign(income_copy=X["income"], cost=X["rent"] + X["instalment"])
    model = lambda rows: rows["income"] / 20000 + rows["savings"] / 30000 - rows["cost"] / 1000  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        made = mcce.MCCE(model, decision=(-0.9, np.inf), random_state=1).fit(X)
    stays = [mcce.allow(name, direction="none") for name in ("savings", "hired_on")]
    found = made.explain(X[model(X) < -0.9].head(30), sparse=True, n_samples=200, constraints=stays)
    assert {"income_copy", "cost"} <= set(found.computed)
    assert found.derived == ("cost",)
    sentences = mcce.report.sentences(found)
    assert not sentences.str.contains("copy").any()
    changed = (found.frame["cost"].to_numpy() != X["cost"].loc[found.frame.index.get_level_values("id")]).to_numpy()
    assert (sentences.str.contains("As a result, cost ").to_numpy() == changed).all()
    assert changed.any()


@pytest.mark.slow
def test_formula_texts_are_stored_and_functions_are_passed_again(fitted, tmp_path):
    fitted.save(tmp_path / "bank.mcce")
    again = mcce.MCCE.load(tmp_path / "bank.mcce", score)
    assert again.derived_ == fitted.derived_
    assert set(again.derived) == set(FORMULAS)
    some = refused(5)
    for sparse in (False, True):
        options = {"sparse": sparse, "n_samples": 100, "constraints": ["dti <= 0.4"]}
        pd.testing.assert_frame_equal(again.explain(some, **options).frame, fitted.explain(some, **options).frame)
    function = lambda rows: (rows["rent"] + rows["instalment"]) / rows["income"]  # noqa: E731
    made = explainer({"dti": function})
    made.save(tmp_path / "function.mcce")
    with pytest.raises(InputError, match="'dti' of this explainer is computed by a Python function"):
        mcce.MCCE.load(tmp_path / "function.mcce", score)
    again = mcce.MCCE.load(tmp_path / "function.mcce", score, derived={"dti": function})
    options = {"sparse": True, "n_samples": 100}
    pd.testing.assert_frame_equal(again.explain(some, **options).frame, made.explain(some, **options).frame)
    found = fitted.explain(some, n_samples=100)
    found.save(tmp_path / "found.mcce")
    assert mcce.Counterfactuals.load(tmp_path / "found.mcce").computed == found.computed == tuple(FORMULAS)
    assert pickle.loads(pickle.dumps(found)).changes().equals(found.changes())


def test_explainer_saved_without_donors_computes_derived_columns(tmp_path):
    numbers = bank().drop(columns=["applied_on", "hired_on", "job_years", "stretched"]).astype(float)
    formulas = {name: FORMULAS[name] for name in ("dti", "utilisation_pct")}
    made = mcce.MCCE(lambda rows: -rows["dti"], decision=(-0.3, 0), sampler="norm", derived=formulas, random_state=1)
    made.fit(numbers, relations=()).save(tmp_path / "bank.mcce", donors="none")
    again = mcce.MCCE.load(tmp_path / "bank.mcce", made.model)
    assert [(each.rows, each.first) for each in again.derived_] == [(0, ())] * 2
    found = again.explain(numbers[numbers["dti"] > 0.5].head(5), n_samples=100).frame
    assert len(found) == 5
    assert (found["dti"] == ((found["rent"] + found["instalment"]) / found["income"]).round(2)).all()


@pytest.mark.slow
def test_batches_equal_one_call(fitted, tmp_path):
    options = {"sparse": True, "n_samples": 100, "constraints": ["dti <= 0.45"]}
    fitted.explain_batches(refused(), tmp_path / "out", batch_size=4, **options)
    found = pd.read_parquet(tmp_path / "out" / "counterfactuals").sort_values(["id", "rank"])
    expected = fitted.explain(refused(), **options).frame
    assert found["dti"].tolist() == expected["dti"].tolist() == recomputed(expected)["dti"].tolist()


@pytest.mark.slow
def test_proposals_are_reported_with_code_to_paste():
    X = bank(1000)
    X.loc[[3, 5], "dti"] = 9.0
    made = mcce.MCCE(score, decision=(0.3, np.inf), random_state=1)
    with pytest.warns(AdviceWarning) as caught:
        made.fit(X[[*INPUTS, "applied_on", "dti", "utilisation_pct", "job_years", "stretched"]])
    (text,) = [str(each.message) for each in caught if "possible formula" in str(each.message)]
    pasted = re.search(r"derived=(\{.*\})", text)[1]
    assert eval(pasted)["dti"] == "(instalment + rent) / income"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mcce.MCCE(score, decision=(0.3, np.inf), random_state=1, derived=eval(pasted)).fit(X)
    assert not any("possible formula" in str(each.message) for each in caught)
    assert any("2 of 1,000 training rows, 0.20%, disagree" in str(each.message) for each in caught)


def test_private_explainers_reject_formulas():
    with pytest.raises(InputError, match="derived="):
        explainer(sampler=mcce.Privacy(epsilon=1.0, bounds={}, levels={}))
