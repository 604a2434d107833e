"""Advice: warnings of `fit`, suspicious answers, and factuals without a letter."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mcce
from mcce.exceptions import AdviceWarning, InputError
from mcce.report.rows import held_back, owners
from tests.marks import nightly_rows

PAST = "defaulted_last_year"
GRANTED = mcce.Interval(0, 0.1, closed="left", of=True)


@cache
def bank():
    """Return a logistic model of the loans, an explainer of it, and the rejected rows."""
    loans = mcce.datasets.load_loans()
    numbers = make_column_selector(dtype_include="number")
    encode = make_column_transformer((StandardScaler(), numbers), remainder=OneHotEncoder(handle_unknown="ignore"))
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(loans.X, loans.y)
    explainer = mcce.MCCE(model, decision=GRANTED, fixed=["age", "sex"], random_state=1).fit(loans.X)
    return explainer, loans.X[model.predict_proba(loans.X)[:, 1] >= 0.1]


@cache
def answers(n=100, floor=0.05):
    explainer, refused = bank()
    return explainer.explain(refused.head(n), sparse=True, floor=floor)


def fitted(fixed=("age", "sex"), constraints=(), X=None):
    X = mcce.datasets.load_loans(300).X if X is None else X
    model = lambda rows: rows["salary"] > 40_000  # noqa: E731
    return mcce.MCCE(model, decision=True, fixed=list(fixed), constraints=constraints, random_state=1).fit(X)


def test_fit_warns_of_features_that_cannot_be_changed():
    with pytest.warns(
        AdviceWarning, match=r"'defaulted_last_year' \(a past event\)\. Name them in fixed=\['defaulted_l"
    ):
        fitted()
    with pytest.warns(
        AdviceWarning, match=r"'age' \(a fact of the person\), 'sex' \(a fact of the person\), 'defaulted"
    ):
        fitted(fixed=())


@pytest.mark.parametrize(
    ("fixed", "constraints"),
    [
        (("age", "sex", PAST), ()),
        (("age", "sex"), [mcce.allow(PAST, direction="none")]),
        (("age", "sex"), [mcce.allow(PAST, levels=[False, True])]),
    ],
)
def test_fixed_or_constrained_features_do_not_warn(fixed, constraints):
    with warnings.catch_warnings():
        warnings.simplefilter("error", AdviceWarning)
        fitted(fixed, constraints)


def test_warning_names_five_features_and_counts_the_others():
    X = mcce.datasets.load_loans(300).X.rename(columns={"savings": "past_savings"})
    X = X.assign(late=1, prior_claims=2, overdue=3, religion="x")
    with pytest.warns(AdviceWarning, match=r"\(a past event\) and 1 more\. Name them"):
        fitted(X=X)


def test_warning_filter_silences_only_this_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", AdviceWarning)
        fitted()
    assert issubclass(AdviceWarning, mcce.MCCEWarning)


@pytest.mark.slow
def test_usual_direction_is_the_one_that_helps_rejected_rows():
    usual = answers()._known_usual()
    assert usual.directions == {"education": 1, "years_employed": 1, "salary": 1, "savings": 1, "loan_amount": -1}


@pytest.mark.slow
def test_feature_with_mixed_effects_has_no_usual_direction():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (600, 4)), columns=list("abcd"))
    X["group"] = rng.random(600) < 0.5

    def model(rows):
        return rows["a"] - 2 * rows["b"] + np.where(rows["group"], 1, -1) * rows["c"]

    found = mcce.MCCE(model, decision=(0.5, np.inf), random_state=1).fit(X).explain(X.head(20), sparse=True)
    assert found._known_usual().directions == {"a": 1, "b": -1}
    label = mcce.MCCE(lambda rows: model(rows) > 0.5, decision=True, random_state=1).fit(X)  # without scores
    assert label.explain(X.head(20), sparse=True)._known_usual().directions == {"a": 1, "b": -1}


def implausible_advice(found) -> dict[str, np.ndarray]:
    after, before = found.frame, found.factuals.loc[found.frame.index.get_level_values("id")]
    after, before = after.reset_index(drop=True), before.reset_index(drop=True)
    return {
        "larger loan": (after["loan_amount"] > before["loan_amount"]).to_numpy(),
        "years": (after["years_employed"] > before["years_employed"] + 2).to_numpy(),
        "erased": (after[PAST] != before[PAST]).to_numpy(),
        "unemployed": ((after["employment"] == "unemployed") & (after["salary"] > before["salary"])).to_numpy(),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("floor", "most"), [(0.05, 0.15), *nightly_rows((0.0, 0.2), (0.1, 0.15), (0.25, 0.2), (0.5, 0.4))]
)
def test_all_implausible_advice_is_listed_and_few_other_answers(floor, most):
    found = answers(500, floor)
    listed = found.frame.index.isin(held_back(found).index)
    for what, odd in implausible_advice(found).items():
        assert listed[odd].all(), what
    assert listed.mean() <= most
    assert len(found.suspicious()) <= listed.sum()


def test_implausible_advice_of_earlier_searches_is_listed():
    found = answers()
    plain = np.flatnonzero(~found.frame.index.isin(held_back(found).index))[:4]
    frame = found.frame.copy()
    for row, (name, value) in zip(
        plain, [("loan_amount", 300_000), ("loan_amount", 500), ("years_employed", 40), ("savings", 400_000)]
    ):
        old = found.factuals[name].iloc[owners(found)[row]]
        frame.iloc[row, frame.columns.get_loc(name)] = old + 500 if value == 500 else value
    listed = held_back(replace(found, frame=frame))
    assert frame.index[plain].isin(listed.index).all()
    assert "opposite to the usual direction" in listed["reasons"][frame.index[plain[1]]]


def test_listed_answer_states_its_reason():
    found = answers(floor=0.0)
    assert not implausible_advice(found)["unemployed"].any()  # the search avoids it at any floor
    higher = found.frame["salary"].to_numpy() > np.maximum(found.factuals["salary"].to_numpy()[owners(found)], 65_000)
    found = replace(found, frame=found.frame.assign(employment=found.frame["employment"].mask(higher, "unemployed")))
    listed = found.suspicious()
    assert list(listed.columns) == ["severity", "reasons", "words"]
    assert listed.index.isin(found.frame.index).all()
    unemployed = found.frame.index[higher]
    assert len(unemployed)
    assert listed["words"][unemployed].str.contains("is above 99% of cases with employment unemployed").all()


@pytest.mark.slow
def test_usual_directions_are_saved_with_result_and_explainer(tmp_path):
    found = answers(30)
    listed = found.suspicious()
    found.save(tmp_path / "found.mcce")
    pd.testing.assert_frame_equal(mcce.Counterfactuals.load(tmp_path / "found.mcce").suspicious(), listed)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(found)).suspicious(), listed)
    explainer, refused = bank()
    explainer.save(tmp_path / "explainer.mcce")
    again = mcce.MCCE.load(tmp_path / "explainer.mcce", model=explainer.model)
    pd.testing.assert_frame_equal(again.explain(refused.head(30), sparse=True).suspicious(), listed)


def test_result_without_usual_directions_raises(tmp_path):
    explainer, refused = bank()
    plain = explainer.explain(refused.head(20), n_samples=100)
    assert len(plain.suspicious())  # whole drawn customers: a default is removed for some
    plain.save(tmp_path / "plain.mcce")
    with pytest.raises(InputError, match=r"has no reference values of the training rows.*explain again"):
        mcce.Counterfactuals.load(tmp_path / "plain.mcce").suspicious()
    with pytest.raises(InputError, match="has no reference values"):
        mcce.report.letters(replace(plain, _questions=type(plain._questions)()))


def test_polars_frames():
    polars = pytest.importorskip("polars")
    X = mcce.datasets.load_loans(400).X.select_dtypes("number")
    frame = polars.from_pandas(X)
    explainer = mcce.MCCE(lambda rows: rows["salary"] > 60_000, decision=True, fixed=["age"], random_state=1).fit(frame)
    found = explainer.explain(frame.head(60), sparse=True)
    table = found.table("suspicious")
    assert isinstance(table, polars.DataFrame)
    assert table.columns == ["id", "rank", "severity", "reasons", "words"]
    assert len(table) == len(found.suspicious())


def test_single_factual_is_judged_by_the_training_rows():
    found = answers(floor=0.0)
    listed = found.suspicious()
    (who,) = listed.index[listed["reasons"].str.contains("contradicts a level")]
    assert found[who[0]].suspicious()["reasons"].tolist() == [listed.loc[who, "reasons"]]


@pytest.mark.slow
def test_no_letter_is_written_for_a_suspicious_answer():
    found = answers(n=250)
    letters = mcce.report.letters(found)
    listed = held_back(found).index.get_level_values("id")
    assert len(listed) > len(found.suspicious())  # one line of a feature covers several answers
    assert letters.index.tolist() == [id for id in found.factuals.index if id not in listed]
    assert letters.iloc[0] == mcce.report.letter(found, letters.index[0])
    everybody = mcce.report.letters(found, all=True, html=True)
    assert len(everybody) == len(found.factuals)
    assert everybody.iloc[0].startswith("<!doctype html>")


@pytest.mark.nightly
def test_letter_contains_only_answers_that_are_not_suspicious():
    explainer, refused = bank()
    found = explainer.explain(refused.head(30), sparse=True, n_counterfactuals=8, diverse=True)
    frame, first = found.frame.copy(), found.frame.index.get_level_values("rank") == 1
    frame.loc[first, "loan_amount"] = 2 * frame.loc[first, "loan_amount"]  # the search avoids such answers
    found = replace(found, frame=frame)
    withheld = held_back(found)
    listed = found.frame.index.isin(withheld.index)
    ids = found.frame.index.get_level_values("id")
    mixed = [id for id in ids.unique() if listed[ids == id].any() and not listed[ids == id].all()]
    assert mixed
    letters = mcce.report.letters(found)
    assert letters.index.isin(mixed).sum() == len(mixed)
    assert any(letters[id] != mcce.report.letter(found, id) for id in mixed)
    erased = [id for id in mixed if f"{PAST} changes" in " ".join(withheld["words"][id])]
    assert all("defaulted last year no instead of yes" not in letters[id] for id in erased)


@pytest.mark.slow
def test_factual_without_counterfactual_gets_the_matching_letter():
    explainer, refused = bank()
    found = explainer.explain(
        refused.head(3), sparse=True, constraints=[mcce.allow("salary", direction="none")], max_gower=1e-6
    )
    assert not len(found)
    assert found.suspicious().empty
    assert "No example was found" in mcce.report.letters(found).iloc[0]


@pytest.mark.nightly
def test_larger_loan_is_rarely_advised_beside_a_higher_salary():
    """A small loan is rare beside a high salary; other features reach the floor as well."""
    explainer, refused = bank()
    fixed = mcce.MCCE(explainer.model, decision=GRANTED, fixed=["age", "sex", PAST], random_state=1)
    found = fixed.fit(mcce.datasets.load_loans().X).explain(refused.head(300), sparse=True)
    old = refused.loc[found.frame.index.get_level_values(0)]
    assert len(found.frame) == 300
    assert not found.below_floor().any()
    assert (found.frame["loan_amount"].to_numpy() > old["loan_amount"].to_numpy()).sum() <= 4  # 9 without other draws


def short_of_money(n=1200):
    """Return customers; many of them need far more savings than the loan, or a slightly higher salary."""
    rng = np.random.default_rng(4)
    job = rng.random(n) < 0.8
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 65, n),
            "job": pd.Categorical(np.where(job, "employed", "unemployed")),
            "salary": np.where(job, rng.normal(30_000, 6_000, n).round(-2), 0.0),
            "savings": np.where(rng.random(n) < 0.4, 0.0, rng.lognormal(9, 1, n).round(-2)),
            "loan_amount": rng.lognormal(8.5, 0.4, n).round(-2),
        }
    )

    def score(rows):
        return rows["salary"] / 30_000 + rows["savings"] / 30_000 - rows["loan_amount"] / 10_000

    return X, score


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3])
def test_answers_that_are_not_suspicious_are_preferred(k):
    X, score = short_of_money()
    explainer = mcce.MCCE(score, decision=(0.7, np.inf), fixed=["age"], random_state=1).fit(X, relations=())
    refused = X[score(X) < 0.7].head(80)
    found = explainer.explain(refused, sparse=True, n_counterfactuals=k)
    first = found.frame.xs(1, level="rank")
    savings = first["savings"] - refused["savings"]
    assert len(first) == 80
    assert not found.below_floor().any()
    assert (score(found.frame) >= 0.7).all()
    assert (savings > refused["loan_amount"]).sum() <= 4  # 63 if the search ignores the reasons
    stopped = found.suspicious("all").query("severity == 'stop'")
    is_far = stopped["reasons"] == "far step"  # the least serious reason: a salary that is 1.64 times as high
    assert (~is_far).sum() <= 0.07 * len(found)  # 63 of 80, and 189 of 240
    assert is_far.sum() <= k
    assert found.measures["L0"].max() <= 3
    assert (found.frame.groupby(level="id").size() == k).all()


@pytest.mark.slow
def test_far_steps_are_avoided_by_later_searches_if_earlier_ones_need_too_many_changes():
    """Thirteen amounts: searches without long steps find rows, but most of these have more than one change more."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(X, y)
    refused = X[model.predict_proba(X)[:, 0] < 0.5].head(40)
    explainer = mcce.MCCE(model, decision=mcce.Interval(0.5, 1, of=0), random_state=1).fit(X)
    found = explainer.explain(refused, sparse=True)
    assert len(found) == 40
    assert len(found.suspicious()) <= 6


def test_two_moderate_steps_are_preferred_to_a_long_one():
    rng = np.random.default_rng(5)
    X = pd.DataFrame({name: rng.lognormal(9.0, 0.5, 600).round(-1) for name in ("salary", "loan")})

    def score(rows):
        return np.log(rows["salary"] / rows["loan"])

    refused = X[score(X).between(-0.4, 0.1)].head(20)
    found = mcce.MCCE(score, decision=(1.0, 9.0), random_state=1).fit(X).explain(refused, sparse=True)
    steps = np.abs(np.log(found.frame.droplevel("rank") / refused))
    ends = np.log(X.quantile(0.99) / X.quantile(0.01))
    assert (steps > 0.41 * ends).any(axis=1).sum() <= 1  # 19 of 20 people need one if only one amount changes
    assert (np.log(X.salary / X.loan)[refused.index] < 1.0 - 0.41 * ends.max()).sum() == 19
    assert found.measures["L0"].max() == 2


def test_two_changes_more_avoid_savings_above_the_loan():
    """One change: savings of 12,000 beside a loan of 5,000. Three changes: moderate values of three other columns."""
    rng = np.random.default_rng(3)
    n = 1500
    X = pd.DataFrame({"savings": rng.integers(0, 300, n) * 100, "loan_amount": rng.integers(40, 60, n) * 100})
    X[["a", "b", "c"]] = rng.normal(size=(n, 3)).round(2)

    def score(rows):
        return rows["savings"] / 10_000 + rows[["a", "b", "c"]].clip(-1, 0.5).sum(axis=1)

    factuals = pd.DataFrame(
        {"savings": 0, "loan_amount": [5000, 5500, 4500], "a": 0.0, "b": [0.0, 0.05, 0.1], "c": 0.0}
    )
    explainer = mcce.MCCE(score, decision=(1.2, np.inf), fixed=["loan_amount"], random_state=1).fit(X)
    found = explainer.explain(factuals, sparse=True)
    assert (found.measures["L0"] == 3).all()
    assert found.suspicious().empty
