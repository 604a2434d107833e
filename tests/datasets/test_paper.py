"""The paper's four data sets compared with published facts."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from mcce.datasets import load_german, load_gmc
from mcce.exceptions import InputError
from tests.datasets.paper_data import PAPER, paper_folder

AS_IN_THE_PAPER = {"gmc": {"trim": 3}, "fico": {"drop_special": True}}


FACTS = {  # rows, continuous, categorical, desired class, its count, immutable
    "adult": (48842, 6, 7, ">50K", 11687, ["age", "sex"]),
    "gmc": (150000, 10, 0, 0, 139974, ["age"]),
    "fico": (10459, 21, 2, "Good", 5000, ["ExternalRiskEstimate"]),
    "german": (1000, 7, 13, "good", 700, ["purpose", "age", "personal_status_sex"]),
}


@pytest.mark.parametrize("name", PAPER)
def test_paper_data_match_the_published_facts(name):
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
def test_binarised_data_match_the_paper(name):
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


def test_gmc_missing_values_are_kept_by_default():
    folder = paper_folder("gmc")
    data = load_gmc(folder)
    assert data.X.isna().sum()[["MonthlyIncome", "NumberOfDependents"]].tolist() == [29731, 3924]
    complete = load_gmc(folder, dropna=True)
    assert len(complete.X) == 120269
    assert complete.X.index.equals(pd.RangeIndex(120269))
    assert complete.wanted.sum() == 111912


def test_gmc_rejects_an_invalid_trim(no_data):
    with pytest.raises(InputError, match="trim, a number of standard deviations, above 0; got -1"):
        load_gmc(trim=-1)


def test_environment_variable_names_the_folder(monkeypatch):
    folder = paper_folder("german")
    monkeypatch.setenv("MCCE_DATA", str(folder))
    assert_frame_equal(load_german().X, load_german(folder).X)
