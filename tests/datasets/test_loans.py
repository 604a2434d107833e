"""The loan process compared with its documented formulas."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from scipy import stats

from mcce.datasets import Dataset, load_loans, true_default_probability
from mcce.exceptions import InputError
from tests.marks import nightly

LEVEL = 0.001  # level of every statistical test below, all at fixed seeds


@pytest.fixture(scope="module")
def loans() -> Dataset:
    return load_loans()


@pytest.fixture(scope="module")
def many() -> Dataset:
    return load_loans(200_000, random_state=7)


def sigmoid(t):
    return 1 / (1 + np.exp(-t))


def p_of_frequencies(happened, probability, bins=20) -> float:
    """P-value of a chi-square test that `happened` has the given probabilities, in bins of equal size."""
    order = np.array_split(np.argsort(probability, kind="stable"), bins)
    statistic = sum(
        (happened[b].sum() - probability[b].sum()) ** 2 / (probability[b] * (1 - probability[b])).sum() for b in order
    )
    return stats.chi2.sf(statistic, bins)


def test_loans_first_row_is_the_customer_of_the_paper(loans):
    first = loans.X.iloc[0]
    assert (first["age"], first["sex"], first["salary"], first["defaulted_last_year"]) == (
        36,
        "female",
        68_000,
        True,
    )


def test_loans_schema(loans):
    assert list(loans.X) == [
        *("age", "sex", "education", "employment", "years_employed"),
        *("salary", "defaulted_last_year", "housing", "savings", "loan_amount"),
    ]
    kinds = {c: str(d) for c, d in loans.X.dtypes.items()}
    assert [c for c, d in kinds.items() if d == "int64"] == [
        "age",
        "years_employed",
        "salary",
        "savings",
        "loan_amount",
    ]
    assert [c for c, d in kinds.items() if d == "category"] == ["sex", "education", "employment", "housing"]
    assert kinds["defaulted_last_year"] == "bool"
    assert loans.X["education"].cat.ordered
    assert not loans.X["employment"].cat.ordered
    assert loans.X.index.equals(pd.RangeIndex(3000))
    assert not loans.X.isna().any(axis=None)
    assert (loans.y.name, str(loans.y.dtype), loans.desired, loans.fixed) == (
        "default",
        "bool",
        False,
        ["age", "sex"],
    )
    np.testing.assert_array_equal(loans.wanted, ~loans.y.to_numpy())


@pytest.mark.slow
def test_loans_are_reproducible_and_keep_the_global_random_state(loans):
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    again = load_loans()
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert_frame_equal(again.X, loans.X)
    assert again.y.equals(loans.y)
    other = load_loans(random_state=5)
    assert not other.X.equals(loans.X)
    assert_frame_equal(other.X.iloc[[0]], loans.X.iloc[[0]])


def test_loans_have_any_number_of_rows():
    assert load_loans(1).X.shape == (1, 10)
    assert_frame_equal(load_loans(1).X, load_loans(50).X.iloc[[0]])


@pytest.mark.parametrize("n", [0, -3, 2.5, "many", True])
def test_loans_reject_an_invalid_number_of_rows(n):
    with pytest.raises(InputError, match=r"n is .*; it must be a whole number of at least 1"):
        load_loans(n)


@pytest.mark.slow
def test_loans_invariants(many):
    X = many.X
    assert X["age"].between(18, 80).all()
    assert (X["years_employed"] <= X["age"] - 16).all()
    assert (X["years_employed"] >= 0).all()
    assert (X.loc[X["employment"].isin(["unemployed", "retired"]), "years_employed"] == 0).all()
    assert (X.loc[X["employment"] == "retired", "age"] >= 55).all()
    assert (X.loc[X["education"] >= "bachelor", "age"] >= 21).all()
    assert (X.loc[X["education"] == "master", "age"] >= 23).all()
    assert (X["salary"] % 100 == 0).all()
    assert X["salary"].min() >= 8000
    assert X["salary"].skew() > 1
    assert 0.2 < (X["savings"] == 0).mean() < 0.4
    assert X.loc[X["savings"] > 0, "savings"].min() >= 100
    assert X["loan_amount"].between(1000, 300_000).all()
    assert set(X["employment"].cat.categories) == set(X["employment"].unique())


@pytest.mark.slow
def test_loans_binary_columns_follow_their_probabilities(many):
    X = many.X.iloc[1:]  # the first row is given, not drawn
    s, a = np.log(X["salary"] / 50_000).to_numpy(), X["age"].to_numpy() - 40
    defaulted = X["defaulted_last_year"].to_numpy()
    assert p_of_frequencies(defaulted, sigmoid(-2.1 - 0.8 * s - 0.025 * a)) > LEVEL
    no_savings = (X["savings"] == 0).to_numpy()
    assert p_of_frequencies(no_savings, sigmoid(-0.9 - 1.2 * s - 0.02 * a + 0.8 * defaulted)) > LEVEL
    at_home = (X["housing"] == "with parents").to_numpy()
    assert p_of_frequencies(at_home, 0.9 * sigmoid((-16 - a) / 2.5)) > LEVEL
    owns = (X["housing"] == "own").to_numpy()[~at_home]
    assert p_of_frequencies(owns, sigmoid(-0.2 + 0.05 * a + s)[~at_home]) > LEVEL
    old = X["age"].to_numpy() >= 55
    retired = (X["employment"] == "retired").to_numpy()
    assert p_of_frequencies(retired[old], sigmoid((a[old] - 26) / 1.5)) > LEVEL


@pytest.mark.slow
def test_loans_continuous_columns_follow_their_distributions(many):
    X = many.X.iloc[1:].sample(5000, random_state=1)  # few enough for rounded values to pass as continuous
    shift = {
        "employed": 0,
        "public sector": -0.05,
        "self-employed": 0.05,
        "unemployed": -0.75,
        "retired": -0.45,
    }
    expected = (
        10.2
        + 0.22 * X["education"].cat.codes
        + 0.55 * (1 - ((X["age"] - 50) / 32) ** 2)
        + 0.006 * X["years_employed"]
        + 0.08 * (X["sex"] == "male")
        + X["employment"].astype(object).map(shift).astype(float)
    )
    spread = np.where(X["employment"] == "self-employed", 0.55, 0.32)
    inside = (X["salary"] > 15_000).to_numpy()  # below it, rounding and the floor matter
    assert inside.mean() > 0.95
    cut = stats.norm.cdf((math.log(15_050) - expected) / spread)
    u = (stats.norm.cdf((np.log(X["salary"]) - expected) / spread) - cut) / (1 - cut)
    assert stats.kstest(u[inside], "uniform").pvalue > LEVEL
    loan = np.log(X["loan_amount"] / (0.35 * X["salary"])) / 0.6
    inside = X["loan_amount"].between(5000, 299_000)
    assert abs(loan[inside].mean()) < 0.1
    age = X["age"] + np.random.default_rng(1).random(len(X))
    assert stats.kstest((age - 18) / 62, stats.beta(1.7, 2.4).cdf).pvalue > LEVEL


@pytest.mark.slow
def test_default_follows_its_probability(many):
    assert p_of_frequencies(many.y.to_numpy(), true_default_probability(many.X)) > LEVEL


def test_default_probability_of_the_customer_matches_hand_calculation(loans):
    logit = -1.7 - 2.6 * math.log(1.36) + 1.1 + 0.6 * math.log(14 / 15) - 0.12 * math.log(13) - 0.36 + 0.04 + 0.2
    assert true_default_probability(loans.X.iloc[[0]])[0] == pytest.approx(sigmoid(logit), rel=1e-12)


def test_default_probability_accepts_plain_strings(loans):
    plain = loans.X.astype({"employment": object, "housing": object, "salary": float})
    np.testing.assert_allclose(true_default_probability(plain), true_default_probability(loans.X), rtol=1e-14)


def test_default_probability_reports_invalid_input(loans):
    with pytest.raises(InputError, match=r"need a column 'salary'; did you mean 'salry'\?"):
        true_default_probability(loans.X.rename(columns={"salary": "salry"}))
    with pytest.raises(InputError, match="'employment' holds 'pilot'; known: 'employed'"):
        true_default_probability(loans.X.astype({"employment": object}).assign(employment="pilot"))
    with pytest.raises(InputError, match="'salary' must be positive"):
        true_default_probability(loans.X.assign(salary=0))


def fitted(kind: str, X, y):
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    columns = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_include="category")), remainder=StandardScaler()
    )
    estimator = {
        "logistic": LogisticRegression(max_iter=1000),
        "boosting": HistGradientBoostingClassifier(max_depth=3, learning_rate=0.05, random_state=0),
    }[kind]
    return make_pipeline(columns, estimator).fit(X, y)


@pytest.mark.parametrize("kind", ["logistic", *nightly("boosting")])
def test_fitted_model_reproduces_the_example_of_the_paper(loans, kind):
    model = fitted(kind, loans.X, loans.y)
    her = loans.X.iloc[[0]]

    def refused(**changes):
        return model.predict_proba(her.assign(**changes))[0, 1] >= 0.1

    assert refused()
    assert refused(salary=72_000)
    assert not refused(salary=80_000)
    assert not refused(salary=72_000, defaulted_last_year=False)
    assert not refused(defaulted_last_year=False)
    assert 0.4 < (model.predict_proba(loans.X)[:, 1] >= 0.1).mean() < 0.6


@pytest.mark.parametrize("kind", ["logistic", *nightly("boosting")])
def test_fitted_model_ranks_new_customers(loans, many, kind):
    from sklearn.metrics import roc_auc_score

    model = fitted(kind, loans.X, loans.y)
    auc = roc_auc_score(many.y[:20_000], model.predict_proba(many.X[:20_000])[:, 1])
    assert 0.77 < auc < 0.85


def test_true_probability_reproduces_the_example_of_the_paper(loans):
    her = loans.X.iloc[[0]]
    assert true_default_probability(her)[0] >= 0.1
    assert true_default_probability(her.assign(salary=80_000))[0] < 0.1
    assert true_default_probability(her.assign(salary=72_000, defaulted_last_year=False))[0] < 0.1
    assert 0.4 < (true_default_probability(loans.X) >= 0.1).mean() < 0.6
