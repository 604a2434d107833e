"""`suggest_fixed`: features that cannot be changed are found with the reason."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.exceptions import InputError
from mcce.table.words import name_words

N = 400


def customers() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "customer": np.arange(N) + 1_000,
            "email": [f"{i}@mail.example" for i in range(N)],
            "account_id": rng.permutation(10 * N)[:N],
            "employer": rng.choice([f"Firm {i}" for i in range(90)], N),
            "default_date": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 2000, N), "D"),
            "contract_ends": pd.Timestamp("2190-01-01") + pd.to_timedelta(rng.integers(0, 2000, N), "D"),
            "number_of_children": rng.integers(0, 4, N),
            "has_chronic_disease": rng.random(N) < 0.2,
            "NumInqLast6M": rng.integers(0, 9, N),
            "missed_payment": rng.random(N) < 0.2,
            "credit_history": rng.choice(["good", "bad"], N),
            "num_open_cards": rng.integers(0, 5, N),
            "salary": rng.integers(20_000, 90_000, N),
            "late_share": rng.random(N),
            "average_age_of_accounts": rng.integers(1, 9, N),
            "job": rng.choice(["clerk", "nurse", "cook"], N),
            "education_num": rng.integers(1, 9, N),
            "duration": pd.to_timedelta(rng.integers(1, 90, N), "D"),
        }
    )


def test_each_feature_is_found_for_its_reason_and_no_other():
    suggested = mcce.suggest_fixed(customers())
    assert suggested["reason"].to_dict() == {
        "customer": "an identifier",
        "email": "an identifier",
        "account_id": "an identifier",
        "employer": "a name with many levels",
        "default_date": "a date of the past",
        "number_of_children": "a fact of the person",
        "has_chronic_disease": "a fact of the person",
        "NumInqLast6M": "a past event",
        "missed_payment": "a past event",
        "credit_history": "a past event",
        "num_open_cards": "a count, perhaps of past events",
    }
    assert suggested["evidence"]["employer"] == "89 levels in 400 rows"
    assert suggested["evidence"]["NumInqLast6M"] == 'the name says "inq" and "last 6m"'
    assert suggested["evidence"]["default_date"].startswith("2015-01-0")
    assert suggested.index.name == "feature"


def test_fixed_features_are_skipped_and_unknown_names_raise():
    X = customers()
    suggested = mcce.suggest_fixed(X, fixed=["email", "employer"])
    assert "employer" not in suggested.index
    assert "customer" in suggested.index
    with pytest.raises(InputError, match="fixed feature 'employr' is not a column of X; did you mean 'employer'"):
        mcce.suggest_fixed(X, fixed=["employr"])


def test_arrays_and_non_text_names_have_no_words():
    rng = np.random.default_rng(0)
    assert mcce.suggest_fixed(rng.normal(size=(50, 3))).empty
    assert mcce.suggest_fixed(pd.DataFrame(rng.normal(size=(50, 2)), columns=[("age", 1), 7])).empty


@pytest.mark.parametrize("dtype", ["boolean", "Int8", "object", "category"])
def test_past_events_of_any_dtype(dtype):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"previous_default": pd.Series(rng.integers(0, 2, 60)).astype(dtype), "x": rng.normal(size=60)})
    X.loc[3, "previous_default"] = pd.NA if dtype in ("boolean", "Int8") else None
    assert mcce.suggest_fixed(X)["reason"].to_dict() == {"previous_default": "a past event"}


def test_few_rows_are_not_evidence_about_levels_and_numbers():
    few = pd.DataFrame({"who": list("abcdefghij"), "place": range(10)})
    assert mcce.suggest_fixed(few).empty


def test_names_are_split_into_words():
    assert name_words("NumberOfTime30-59DaysPastDueNotWorse") == [
        *("number", "of", "time", "30", "59", "days", "past", "due", "not", "worse")
    ]
    assert name_words("MSinceMostRecentDelq") == ["m", "since", "most", "recent", "delq"]
    assert name_words(7) == []


@pytest.mark.parametrize(
    "name", ["plate", "latex", "claimant_income", "everyday", "inquire", "lastname", "sexton", "stage"]
)
def test_parts_of_words_are_not_words(name):
    X = pd.DataFrame({name: np.random.default_rng(0).integers(0, 5, 100)})
    assert mcce.suggest_fixed(X).empty


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Alter", "a fact of the person"),
        ("âge", "a fact of the person"),
        ("ålder", "a fact of the person"),
        ("Kjønn", "a fact of the person"),
        ("fecha_nacimiento", "a fact of the person"),
        ("NumCompaniesWorked", "a past event"),
        ("Zahlungsverzug", "a past event"),
        ("retards_paiement", "a past event"),
        ("betalingsanmerkninger", "a past event"),
        ("Betriebszugehörigkeit", "a duration"),
        ("ancienneté", "a duration"),
        ("ansiennitet", "a duration"),
        ("antigüedad", "a duration"),
        ("år_ansatt", "a duration"),
        ("months_at_address", "a duration"),
        ("addr_state", "a place of residence"),
        ("Bundesland", "a place of residence"),
        ("opened_12m", "a past event"),
        ("visits_2yrs", "a past event"),
    ],
)
def test_words_of_several_languages(name, reason):
    X = pd.DataFrame({name: np.random.default_rng(0).integers(0, 40, 400), "x": np.arange(400) % 7})
    assert mcce.suggest_fixed(X)["reason"].to_dict() == {name: reason}


def test_amounts_of_some_months_are_not_events():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"spent_12m": rng.integers(0, 4000, 400), "term_60m": rng.integers(0, 40, 400)})
    assert mcce.suggest_fixed(X).empty


@pytest.mark.parametrize("name", ["loan_term_months", "Laufzeit_Monate", "hours_per_week", "alternative"])
def test_contract_times_are_not_durations(name):
    X = pd.DataFrame({name: np.random.default_rng(0).integers(0, 40, 400)})
    assert mcce.suggest_fixed(X).empty


def test_durations_are_detected_by_their_values():
    rng = np.random.default_rng(0)
    age = rng.integers(20, 70, N)
    hired = pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 6000, N), "D")
    applied = pd.Timestamp("2018-01-01") + pd.to_timedelta(rng.integers(0, 1000, N), "D")
    X = pd.DataFrame(
        {
            "age": age,
            "hired": hired,
            "asked": applied,
            "a": ((applied - hired).days / 365.25).astype(int),
            "b": (pd.Timestamp("2022-01-01") - hired).days,
            "c": np.floor(rng.random(N) * (age - 16)),
            "d": np.floor(rng.random(N) * 50),
        }
    )
    suggested = mcce.suggest_fixed(X, fixed=["age", "hired", "asked"])
    assert suggested["reason"].to_dict() == {"a": "a duration", "b": "a duration", "c": "a duration"}
    assert suggested["evidence"].to_dict() == {
        "a": "the time between hired and asked",
        "b": "a function of the date hired",
        "c": f"at most age - {(X['age'] - X['c']).min():g} in all rows",
    }
