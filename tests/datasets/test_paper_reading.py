"""Reading data sets: small constructed files and the layouts of OpenML."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from mcce.datasets import load_adult, load_fico, load_german
from mcce.datasets import paper as openml
from mcce.datasets.base import read_paperset
from mcce.exceptions import InputError
from tests.datasets.paper_data import PAPER, paper_folder

# reading small constructed files


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


def test_gzipped_and_plain_files_are_read_equally(tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "zipped").mkdir()
    write_fico(tmp_path / "plain")
    write_fico(tmp_path / "zipped", "fico.csv.gz")
    assert_frame_equal(load_fico(tmp_path / "plain").X, load_fico(tmp_path / "zipped").X)


def test_argument_overrides_the_environment(tmp_path, monkeypatch):
    (tmp_path / "given").mkdir()
    write_fico(tmp_path, AverageMInFile=5)
    write_fico(tmp_path / "given", AverageMInFile=6)
    monkeypatch.setenv("MCCE_DATA", str(tmp_path))
    assert load_fico().X["AverageMInFile"].tolist() == [5, 5, 5, 5]
    assert load_fico(tmp_path / "given").X["AverageMInFile"].tolist() == [6, 6, 6, 6]


def test_file_with_an_unknown_level_raises(tmp_path):
    write_fico(tmp_path, MaxDelqEver=[8, 17, 2, -9])
    with pytest.raises(InputError, match=r"column 'MaxDelqEver' of .*fico.csv holds '17'; known: '-9', '2'"):
        load_fico(tmp_path)
    write_fico(tmp_path, RiskPerformance=["Good", "Bad", "bad", "Bad"])
    with pytest.raises(InputError, match=r"column 'RiskPerformance' of .* holds 'bad'; known: 'Bad', 'Good'"):
        load_fico(tmp_path)


def test_file_with_the_wrong_columns_raises(tmp_path):
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
def test_folder_without_the_file_is_named(name, tmp_path, no_data):
    with pytest.raises(InputError, match=rf"no {name}.csv.gz or {name}.csv \(folder is .*without such a file\)"):
        PAPER[name](tmp_path)


@pytest.mark.parametrize("name", PAPER)
def test_missing_data_error_names_the_source(name, no_data):
    with pytest.raises(InputError, match=rf"Give load_{name} the folder .* or set MCCE_DATA .* The data are"):
        PAPER[name]()
    with pytest.raises(InputError, match="folder is not set; MCCE_DATA is not set"):
        PAPER[name]()


@pytest.mark.parametrize(("name", "data_id"), [("adult", 1590), ("german", 31)])
def test_missing_network_error_states_the_cause(name, data_id, no_data):
    with pytest.raises(InputError, match=f"OpenML data set {data_id} could not be fetched: .*no route to host"):
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


def test_adult_from_openml_equals_the_local_file():
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


def test_german_from_openml_equals_the_local_file():
    local = load_german(paper_folder("german"))
    theirs = openml.adapt(openml_german(), read_paperset("german"))
    for column in local.X:
        assert theirs[column].tolist() == local.X[column].iloc[:3].tolist()


def test_openml_table_of_another_layout_raises(no_data, monkeypatch):
    other = {31: openml_german().astype({"housing": object}).assign(housing="castle")}
    monkeypatch.setattr(openml, "fetch", other.get)
    with pytest.raises(InputError, match="column 'housing' of OpenML data set 31 holds 'castle'; known: 'rent'"):
        load_german()
    monkeypatch.setattr(openml, "fetch", {31: openml_german().drop(columns="job")}.get)
    with pytest.raises(InputError, match="OpenML data set 31 has 20 columns, not 21"):
        load_german()
