"""Data sets: the loan process against its documented formulas, the others against published facts."""

from __future__ import annotations

import doctest
import importlib
import json
import math
import os
import pkgutil
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from scipy import stats

from mcce import datasets
from mcce.datasets import (
    Dataset,
    load_adult,
    load_airquality,
    load_fico,
    load_german,
    load_gmc,
    load_loans,
    openml,
    true_default_probability,
)
from mcce.datasets.base import read_paperset
from mcce.exceptions import InputError

LEVEL = 0.001  # of every statistical test below, all at fixed seeds
PAPER = {"adult": load_adult, "gmc": load_gmc, "fico": load_fico, "german": load_german}
AS_IN_THE_PAPER = {"gmc": {"trim": 3}, "fico": {"drop_special": True}}


def paper_folder(name: str) -> Path:
    """The folder with a paper's data set; the test is skipped where there is none."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    for place in (os.environ.get("MCCE_DATA"), beside):
        if place and (Path(place) / f"{name}.csv.gz").is_file():
            return Path(place)
    pytest.skip("set MCCE_DATA to a folder with adult.csv.gz, gmc.csv.gz, fico.csv.gz and german.csv.gz")


@pytest.fixture
def no_data(monkeypatch):
    """Neither MCCE_DATA nor a network."""

    def offline(data_id):
        raise URLError("no route to host")

    monkeypatch.delenv("MCCE_DATA", raising=False)
    monkeypatch.setattr(openml, "fetch", offline)


@pytest.fixture(scope="module")
def loans() -> Dataset:
    return load_loans()


@pytest.fixture(scope="module")
def many() -> Dataset:
    return load_loans(200_000, seed=7)


def sigmoid(t):
    return 1 / (1 + np.exp(-t))


def p_of_frequencies(happened, probability, bins=20) -> float:
    """P-value of a chi-square test that `happened` has the given probabilities, in bins of equal size."""
    order = np.array_split(np.argsort(probability, kind="stable"), bins)
    statistic = sum(
        (happened[b].sum() - probability[b].sum()) ** 2 / (probability[b] * (1 - probability[b])).sum() for b in order
    )
    return stats.chi2.sf(statistic, bins)


def test_the_modules_have_examples():
    """They are run with all others, in `tests/test_docs.py`."""
    modules = pkgutil.iter_modules(datasets.__path__, "mcce.datasets.")
    tests = [test for m in modules for test in doctest.DocTestFinder().find(importlib.import_module(m.name))]
    assert sum(len(test.examples) for test in tests) > 10


# the loan example


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


def test_loans_are_reproducible_and_leave_the_global_random_state_alone(loans):
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    again = load_loans()
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert_frame_equal(again.X, loans.X)
    assert again.y.equals(loans.y)
    other = load_loans(seed=5)
    assert not other.X.equals(loans.X)
    assert_frame_equal(other.X.iloc[[0]], loans.X.iloc[[0]])


def test_loans_have_any_number_of_rows():
    assert load_loans(1).X.shape == (1, 10)
    assert_frame_equal(load_loans(1).X, load_loans(50).X.iloc[[0]])


@pytest.mark.parametrize("n", [0, -3, 2.5, "many", True])
def test_loans_refuse_a_senseless_number_of_rows(n):
    with pytest.raises(InputError, match=r"n is .*; it must be a whole number of at least 1"):
        load_loans(n)


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
    inside = (X["salary"] > 15_000).to_numpy()  # rounding and the floor matter below
    assert inside.mean() > 0.95
    cut = stats.norm.cdf((math.log(15_050) - expected) / spread)
    u = (stats.norm.cdf((np.log(X["salary"]) - expected) / spread) - cut) / (1 - cut)
    assert stats.kstest(u[inside], "uniform").pvalue > LEVEL
    loan = np.log(X["loan_amount"] / (0.35 * X["salary"])) / 0.6
    inside = X["loan_amount"].between(5000, 299_000)
    assert abs(loan[inside].mean()) < 0.1
    age = X["age"] + np.random.default_rng(1).random(len(X))
    assert stats.kstest((age - 18) / 62, stats.beta(1.7, 2.4).cdf).pvalue > LEVEL


def test_default_follows_its_probability(many):
    assert p_of_frequencies(many.y.to_numpy(), true_default_probability(many.X)) > LEVEL


def test_default_probability_of_the_customer_by_hand(loans):
    logit = -1.7 - 2.6 * math.log(1.36) + 1.1 + 0.6 * math.log(14 / 15) - 0.12 * math.log(13) - 0.36 + 0.04 + 0.2
    assert true_default_probability(loans.X.iloc[[0]])[0] == pytest.approx(sigmoid(logit), rel=1e-12)


def test_default_probability_takes_plain_strings(loans):
    plain = loans.X.astype({"employment": object, "housing": object, "salary": float})
    np.testing.assert_allclose(true_default_probability(plain), true_default_probability(loans.X), rtol=1e-14)


def test_default_probability_says_what_is_wrong(loans):
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


@pytest.mark.parametrize("kind", ["logistic", "boosting"])
def test_a_fitted_model_tells_the_story_of_the_paper(loans, kind):
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


@pytest.mark.parametrize("kind", ["logistic", "boosting"])
def test_a_fitted_model_ranks_new_customers(loans, many, kind):
    from sklearn.metrics import roc_auc_score

    model = fitted(kind, loans.X, loans.y)
    auc = roc_auc_score(many.y[:20_000], model.predict_proba(many.X[:20_000])[:, 1])
    assert 0.77 < auc < 0.85


def test_the_true_probability_tells_the_story_too(loans):
    her = loans.X.iloc[[0]]
    assert true_default_probability(her)[0] >= 0.1
    assert true_default_probability(her.assign(salary=80_000))[0] < 0.1
    assert true_default_probability(her.assign(salary=72_000, defaulted_last_year=False))[0] < 0.1
    assert 0.4 < (true_default_probability(loans.X) >= 0.1).mean() < 0.6


# airquality


def test_airquality_has_the_facts_of_r():
    air = load_airquality()
    assert list(air.X) == ["Solar.R", "Wind", "Temp", "Month", "Day"]
    assert (len(air.X), air.y.name, air.fixed, air.desired) == (153, "Ozone", ["Wind"], None)
    assert (air.y.isna().sum(), air.X["Solar.R"].isna().sum(), air.X.isna().sum().sum()) == (37, 7, 7)
    # R: colMeans(airquality, na.rm = TRUE)
    assert air.y.mean() == pytest.approx(42.12931034)
    assert air.X.mean().tolist() == pytest.approx([185.93150685, 9.95751634, 77.88235294, 6.99346405, 15.80392157])
    assert air.X.iloc[0].tolist() == [190, 7.4, 67, 5, 1]


def test_airquality_without_missing_values():
    air = load_airquality(dropna=True)
    assert len(air.X) == len(air.y) == 111
    assert air.X.index.equals(pd.RangeIndex(111))
    assert [str(d) for d in air.X.dtypes] == ["int64", "float64", "int64", "int64", "int64"]
    assert str(air.y.dtype) == "int64"
    assert air.y.mean() == pytest.approx(42.0990991)  # R: mean(na.omit(airquality)$Ozone)


def test_airquality_has_no_wanted_value():
    with pytest.raises(InputError, match=r"'airquality' has no desired value: its response 'Ozone' is numeric"):
        load_airquality().wanted  # noqa: B018


def test_repr():
    assert repr(load_airquality()).startswith("Dataset 'airquality': 153 rows, 5 features (5 numeric, 0 categorical)")
    text = repr(load_loans(100))
    assert "100 rows, 10 features (5 numeric, 5 categorical)" in text
    assert "response 'default', wanted False (" in text
    assert "fixed 'age', 'sex'" in text


# the paper's four


FACTS = {  # rows, continuous, categorical, desired, how many have it, immutable
    "adult": (48842, 6, 7, ">50K", 11687, ["age", "sex"]),
    "gmc": (150000, 10, 0, 0, 139974, ["age"]),
    "fico": (10459, 21, 2, "Good", 5000, ["ExternalRiskEstimate"]),
    "german": (1000, 7, 13, "good", 700, ["purpose", "age", "personal_status_sex"]),
}


@pytest.mark.parametrize("name", PAPER)
def test_paper_data_have_the_published_facts(name):
    data = PAPER[name](paper_folder(name))
    rows, continuous, categorical, desired, n_desired, immutable = FACTS[name]
    kinds = [str(d) for d in data.X.dtypes]
    assert data.name == name
    assert len(data.X) == len(data.y) == rows
    assert (len(kinds) - kinds.count("category"), kinds.count("category")) == (continuous, categorical)
    assert (data.desired, data.wanted.sum(), data.fixed) == (desired, n_desired, immutable)
    assert data.X.index.equals(pd.RangeIndex(rows))


@pytest.mark.parametrize("name", PAPER)
def test_paper_data_agree_with_their_metadata(name):
    folder = paper_folder(name)
    if not (folder / "meta.json").is_file():
        pytest.skip("no meta.json beside the data")
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))[name]
    data = PAPER[name](folder)
    assert list(data.X) == meta["feature_order"]
    assert data.y.name == meta["response"]
    assert data.fixed == meta["immutable"]
    levels = {c: data.X[c].cat.categories.tolist() for c in data.X if data.X[c].dtype == "category"}
    assert levels == meta["levels"]
    assert not any(data.X[c].cat.ordered for c in levels)
    raw = pd.read_csv(folder / meta["file"])
    for column in data.X:
        assert data.X[column].astype(raw[column].dtype).equals(raw[column])


@pytest.mark.parametrize("name", PAPER)
def test_binarised_data_are_those_of_the_paper(name):
    folder = paper_folder(name)
    data = PAPER[name](folder, binarise=True, **AS_IN_THE_PAPER.get(name, {}))

    frame = pd.read_csv(folder / f"{name}.csv.gz")
    features = frame.columns[:-1].tolist()
    if name == "gmc":
        frame = frame.dropna()
        z = (frame[features] - frame[features].mean()) / frame[features].std(ddof=0)
        frame = frame[(z.abs() < 3).all(axis=1)]
    if name == "fico":
        frame = frame[(frame[features] != -9).any(axis=1)]
    frame = frame.reset_index(drop=True)
    expected = frame[features].copy()
    categorical = [c for c in features if not pd.api.types.is_numeric_dtype(frame[c]) or c.startswith("MaxDelq")]
    for column in categorical:
        expected[column] = (frame[column] == frame[column].mode()[0]).astype(int)
    assert_frame_equal(data.X, expected)
    np.testing.assert_array_equal(data.wanted, frame.iloc[:, -1].astype(str) == str(data.desired))
    assert len(data.X) == {"gmc": 115527, "fico": 9871}.get(name, FACTS[name][0])


def test_gmc_missing_values_stay_unless_dropped():
    folder = paper_folder("gmc")
    data = load_gmc(folder)
    assert data.X.isna().sum()[["MonthlyIncome", "NumberOfDependents"]].tolist() == [29731, 3924]
    complete = load_gmc(folder, dropna=True)
    assert len(complete.X) == 120269
    assert complete.X.index.equals(pd.RangeIndex(120269))
    assert complete.wanted.sum() == 111912


def test_gmc_refuses_a_senseless_trim(no_data):
    with pytest.raises(InputError, match="trim, a number of standard deviations, above 0; got -1"):
        load_gmc(trim=-1)


def test_environment_variable_names_the_folder(monkeypatch):
    folder = paper_folder("german")
    monkeypatch.setenv("MCCE_DATA", str(folder))
    assert_frame_equal(load_german().X, load_german(folder).X)


# reading files: small ones, made here


def write_fico(folder: Path, name: str = "fico.csv", **changes) -> pd.DataFrame:
    rows = pd.DataFrame({c: [1, -9, 2, -9] for c in read_paperset("fico").features})
    rows["ExternalRiskEstimate"] = [60, -9, 70, 55]
    rows["MaxDelq2PublicRecLast12M"] = [7, -9, 0, 7]
    rows["MaxDelqEver"] = [8, -9, 2, -9]
    rows = rows.assign(RiskPerformance=["Good", "Bad", "Good", "Bad"]).assign(**changes)
    rows.iloc[:, ::-1].to_csv(folder / name, index=False)  # the order of columns does not matter
    return rows


def test_fico_from_a_small_file(tmp_path):
    write_fico(tmp_path)
    data = load_fico(tmp_path)
    assert list(data.X) == read_paperset("fico").features
    assert data.X["MaxDelqEver"].tolist() == [8, -9, 2, -9]
    assert data.X["MaxDelqEver"].cat.categories.tolist() == [-9, 2, 3, 4, 5, 6, 7, 8]
    kept = load_fico(str(tmp_path), drop_special=True)
    assert kept.X["ExternalRiskEstimate"].tolist() == [60, 70, 55]
    assert kept.X.index.tolist() == [0, 1, 2]
    assert kept.wanted.tolist() == [True, True, False]
    binary = load_fico(tmp_path, drop_special=True, binarise=True)
    assert binary.X["MaxDelq2PublicRecLast12M"].tolist() == [1, 0, 1]
    assert "coded 1 for the most frequent level" in binary.description


def test_gzipped_and_plain_files_read_alike(tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "zipped").mkdir()
    write_fico(tmp_path / "plain")
    write_fico(tmp_path / "zipped", "fico.csv.gz")
    assert_frame_equal(load_fico(tmp_path / "plain").X, load_fico(tmp_path / "zipped").X)


def test_the_argument_goes_before_the_environment(tmp_path, monkeypatch):
    (tmp_path / "given").mkdir()
    write_fico(tmp_path, AverageMInFile=5)
    write_fico(tmp_path / "given", AverageMInFile=6)
    monkeypatch.setenv("MCCE_DATA", str(tmp_path))
    assert load_fico().X["AverageMInFile"].tolist() == [5, 5, 5, 5]
    assert load_fico(tmp_path / "given").X["AverageMInFile"].tolist() == [6, 6, 6, 6]


def test_a_file_with_an_unknown_level_is_refused(tmp_path):
    write_fico(tmp_path, MaxDelqEver=[8, 17, 2, -9])
    with pytest.raises(InputError, match=r"column 'MaxDelqEver' of .*fico.csv holds '17'; known: '-9', '2'"):
        load_fico(tmp_path)
    write_fico(tmp_path, RiskPerformance=["Good", "Bad", "bad", "Bad"])
    with pytest.raises(InputError, match=r"column 'RiskPerformance' of .* holds 'bad'; known: 'Bad', 'Good'"):
        load_fico(tmp_path)


def test_a_file_with_the_wrong_columns_is_refused(tmp_path):
    write_fico(tmp_path, row=1)
    with pytest.raises(InputError, match=r"columns of FICO / HELOC: missing none, not expected 'row'"):
        load_fico(tmp_path)
    write_fico(tmp_path).drop(columns="NumInqLast6M").to_csv(tmp_path / "fico.csv", index=False)
    with pytest.raises(InputError, match="missing 'NumInqLast6M', not expected none"):
        load_fico(tmp_path)
    write_fico(tmp_path, NumInqLast6M="few")
    with pytest.raises(InputError, match=r"column 'NumInqLast6M' of .* must be numeric"):
        load_fico(tmp_path)


@pytest.mark.parametrize("name", PAPER)
def test_a_folder_without_the_file_is_named(name, tmp_path, no_data):
    with pytest.raises(InputError, match=rf"no {name}.csv.gz or {name}.csv \(folder is .*without such a file\)"):
        PAPER[name](tmp_path)


@pytest.mark.parametrize("name", PAPER)
def test_without_data_the_error_says_where_to_get_them(name, no_data):
    with pytest.raises(InputError, match=rf"Give load_{name} the folder .* or set MCCE_DATA .* The data are"):
        PAPER[name]()
    with pytest.raises(InputError, match="folder is not set; MCCE_DATA is not set"):
        PAPER[name]()


@pytest.mark.parametrize(("name", "data_id"), [("adult", 1590), ("german", 31)])
def test_without_a_network_the_error_says_so(name, data_id, no_data):
    with pytest.raises(InputError, match=f"OpenML data set {data_id} could not be had: .*no route to host"):
        PAPER[name]()


# OpenML's layouts


def openml_adult() -> pd.DataFrame:
    """Rows of OpenML's data set 1590 as fetch_openml returns them."""
    names = (
        "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
        "capital-gain capital-loss hours-per-week native-country class"
    )
    lines = [
        "25 Private 226802 11th 7 Never-married Machine-op-inspct Own-child Black Male 0 0 40 United-States <=50K",
        "28 Local-gov 336951 Assoc-acdm 12 Married-civ-spouse Protective-serv Husband White Male 0 0 40 "
        "United-States >50K",
        "18 ? 103497 Some-college 10 Never-married ? Own-child White Female 0 0 30 United-States <=50K",
    ]
    frame = pd.DataFrame([line.split() for line in lines], columns=names.split()).replace("?", np.nan)
    numbers = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    return frame.astype({c: "int64" if c in numbers else "category" for c in frame})


def test_adult_from_openml(no_data, monkeypatch):
    monkeypatch.setattr(openml, "fetch", {1590: openml_adult()}.get)
    data = load_adult()
    assert list(data.X) == read_paperset("adult").features
    assert data.X["workclass"].tolist() == ["Private", "Local-gov", "?"]
    assert data.X["occupation"].tolist() == ["Machine-op-inspct", "Protective-serv", "?"]
    assert len(data.X["native-country"].cat.categories) == 42
    assert data.X["fnlwgt"].tolist() == [226802, 336951, 103497]
    assert data.wanted.tolist() == [False, True, False]


def test_adult_from_openml_is_the_local_file():
    raw = pd.read_csv(paper_folder("adult") / "adult.csv.gz")
    theirs = pd.concat([raw.iloc[32561:], raw.iloc[:32561]], ignore_index=True)  # UCI's test part comes first
    theirs = theirs.replace("?", np.nan).rename(columns={"income": "class"}).assign(education="HS-grad")
    theirs = theirs.astype({c: "category" for c in theirs if not pd.api.types.is_numeric_dtype(theirs[c])})
    assert_frame_equal(openml.adapt(theirs, read_paperset("adult"))[list(raw)], raw, check_dtype=False)


def openml_german(quote: str = "") -> pd.DataFrame:
    """The first three rows of OpenML's data set 31, credit-g."""
    names = (
        "checking_status duration credit_history purpose credit_amount savings_status employment "
        "installment_commitment personal_status other_parties residence_since property_magnitude age "
        "other_payment_plans housing existing_credits job num_dependents own_telephone foreign_worker class"
    )
    lines = [
        "<0,6,critical/other existing credit,radio/tv,1169,no known savings,>=7,4,male single,none,4,"
        "real estate,67,none,own,2,skilled,1,yes,yes,good",
        "0<=X<200,48,existing paid,radio/tv,5951,<100,1<=X<4,2,female div/dep/mar,none,2,real estate,22,"
        "none,own,1,skilled,1,none,yes,bad",
        "no checking,12,critical/other existing credit,education,2096,<100,4<=X<7,2,male single,none,3,"
        "real estate,49,none,own,1,unskilled resident,2,none,yes,good",
    ]
    frame = pd.DataFrame([line.split(",") for line in lines], columns=names.split())
    whole = [c for c in frame if frame[c].str.isdecimal().all()]
    for column in frame:
        if column not in whole:
            frame[column] = frame[column].map(lambda v: f"{quote}{v}{quote}" if " " in v or "<" in v else v)
    return frame.astype({c: "float64" if c in whole else "category" for c in frame})


@pytest.mark.parametrize("quote", ["", "'"])
def test_german_from_openml(quote, no_data, monkeypatch):
    monkeypatch.setattr(openml, "fetch", {31: openml_german(quote)}.get)
    data = load_german()
    assert data.X.iloc[0].tolist() == [
        *(
            "< 0 DM",
            6,
            "critical account / other credits existing (not at this bank)",
            "radio/television",
            1169,
        ),
        *(
            "unknown / no savings account",
            ">= 7 years",
            4,
            "male: single",
            "none",
            4,
            "real estate",
            67,
            "none",
        ),
        *("own", 2, "skilled employee / official", 1, "yes", "yes"),
    ]
    assert data.y.tolist() == ["good", "bad", "good"]
    assert data.X["telephone"].tolist() == ["yes", "none", "none"]
    assert data.X["age"].dtype == np.int64


def test_german_from_openml_is_the_local_file():
    local = load_german(paper_folder("german"))
    theirs = openml.adapt(openml_german(), read_paperset("german"))
    for column in local.X:
        assert theirs[column].tolist() == local.X[column].iloc[:3].tolist()


def test_an_openml_table_of_another_layout_is_refused(no_data, monkeypatch):
    other = {31: openml_german().astype({"housing": object}).assign(housing="castle")}
    monkeypatch.setattr(openml, "fetch", other.get)
    with pytest.raises(InputError, match="column 'housing' of OpenML data set 31 holds 'castle'; known: 'rent'"):
        load_german()
    monkeypatch.setattr(openml, "fetch", {31: openml_german().drop(columns="job")}.get)
    with pytest.raises(InputError, match="OpenML data set 31 has 20 columns, not 21"):
        load_german()
