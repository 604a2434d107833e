"""Words of column names and their meanings."""

from __future__ import annotations

import pytest

from mcce.table.words import (
    better_direction,
    is_age,
    is_class,
    is_education,
    is_income,
    is_loan,
    is_owed,
    is_retired,
    is_unemployed,
    is_unspecific,
    is_worse,
)


@pytest.mark.parametrize(
    "name", ["loan", "loan_amount", "LoanAmount_EUR", "credit_amount", "Kreditbetrag", "lånebeløp"]
)
def test_loan_amounts(name):
    assert is_loan(name)


@pytest.mark.parametrize("name", ["loan_term_months", "loan_rate", "number_of_loans", "loan_purpose", "credit", 7])
def test_other_columns_about_loans(name):
    assert not is_loan(name)


def test_ages_and_education():
    assert all(map(is_age, ["age", "Alter", "age_years", "ålder"]))
    assert not any(map(is_age, ["average_age_of_accounts", "stage", "alternative"]))
    assert all(map(is_education, ["education", "education-num", "educ", "Ausbildung", "éducación"]))


def test_uninformative_levels():
    assert all(map(is_unspecific, ["Other", "unknown", "other / unknown", "Övrig", "Sonstiges", "?", "-", ""]))
    assert not any(map(is_unspecific, ["Other-service", "unknown / no savings", "none", "0", 0, True]))


def test_undesirable_situations():
    assert all(map(is_worse, ["unemployed", "with parents", "bei Eltern", "Arbeitslos", "chez parents", "föräldrar"]))
    assert not any(map(is_worse, ["employed", "two parents", "not unemployed", "with", "rent", 0, True]))


def test_unemployed_and_retired():
    assert all(map(is_unemployed, ["unemployed", "Arbeitslos", "UNEMPLOYED", "chômeur"]))
    assert not any(map(is_unemployed, ["employed", "not unemployed", "unemployed/unskilled", "", 0, True]))
    assert all(map(is_retired, ["Retired", "pensjonist", "retraité", "Rentner"]))
    assert not any(map(is_retired, ["employed", "not retired", "", 0, True]))


def test_names_of_classes():
    assert all(map(is_class, ["occupation", "occupation_husb", "Beruf", "job_sector"]))
    assert not any(map(is_class, ["salary", "years_employed", 3]))


def test_incomes_and_amounts_owed():
    assert all(map(is_income, ["salary", "MonthlyIncome", "Nettoeinkommen", "årslønn", "revenu_annuel", "dochód"]))
    assert not any(map(is_income, ["debt_to_income", "installment_as_income_perc", "rent", "outcome", 3]))
    assert all(map(is_owed, ["loan_amount", "other_debt", "Schulden", "gæld"]))
    assert not any(map(is_owed, ["DebtRatio", "loan_term_months", "income"]))


@pytest.mark.parametrize(
    ("names", "direction"),
    [
        (["salary", "savings", "Ersparnisse"], 1),
        (["debt_eur", "DebtRatio", "installment_as_income_perc", "Miete", "monthly_rent"], -1),
        (["age", "HourlyRate", "account_number", "loan_amount", "loan_term_months", 7], 0),
    ],
)
def test_better_directions(names, direction):
    assert {name: better_direction(name) for name in names} == dict.fromkeys(names, direction)
