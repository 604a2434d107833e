"""The benchmark of scale runs, its factuals are new rows, and its exponent is correct."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mcce
from benchmarks import scale
from benchmarks.settings import Probability


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:X has levels that only one row has")  # the stand-in is small
def test_runs_and_writes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(scale, "measure_apart", lambda **call: json.loads(json.dumps(scale.measure(call))))
    out = tmp_path / "scale"
    assert (
        scale.main(["--quick", "--cases", "plain,rows,columns,levels", "--data", str(tmp_path), "--out", str(out)]) == 0
    )
    said = capsys.readouterr().out
    assert "SIMULATED STAND-IN" in said
    (cells,) = re.findall(r"^plain  +(.*)$", said, re.MULTILINE)
    assert cells.split()[0] == "400"
    for case, sizes in scale.TINY.items():
        assert [int(n.replace(",", "")) for n in re.findall(rf"^{case} +([\d,]+) ", said, re.MULTILINE)] == [*sizes]
    assert said.count("seconds of fit grow as n^") == 3
    assert re.search(r"plain: a part takes [\d.]+ s .* Extrapolated, not measured: [\d.]+ s with 100 workers", said)
    assert "| plain | 400 |" in out.with_suffix(".md").read_text()


def test_scorecard_equals_its_logistic_regression():
    X = mcce.datasets.load_loans(300).X.astype({"employment": "category", "sex": "category"})
    X = X[["age", "sex", "employment", "salary"]]
    levels = make_column_transformer((OneHotEncoder(), ["sex", "employment"]), remainder=StandardScaler())
    model = make_pipeline(levels, LogisticRegression()).fit(X, X["salary"] + 500 * X["age"] > 70_000)
    probability = Probability(model)
    np.testing.assert_allclose(scale.Scorecard(probability, X)(X), probability(X), rtol=1e-6)


def test_many_workers_are_limited_by_the_single_writer():
    found = {"parts": 100, "part_seconds": 20.0, "overhead": 0.5}
    assert [scale.on_workers(found, n) for n in (1, 10, 40, 100)] == [2000.0, 200.0, 50.0, 50.0]


@pytest.mark.slow
def test_measurement_is_one_line_of_json(capsys):
    assert scale.main(["--measure", json.dumps({"case": "columns", "size": 3, "quick": True})]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["size"] == 3
    assert found["peak_mb"] > 50


def test_factuals_differ_from_a_denied_row_in_one_mutable_value():
    X = pd.DataFrame({"a": range(20), "b": range(100, 120), "fixed": range(200, 220)})
    many = scale.many_factuals(X, ["a", "b"], 500)
    own = X.iloc[many["fixed"] - 200].reset_index(drop=True)
    changed = (many != own).sum(axis=1)
    assert changed.max() == 1
    assert changed.mean() > 0.8
    assert {*many["a"]} == {*X["a"]}


def test_exponent_of_a_power_law_is_recovered():
    assert scale.exponent([1, 10, 100], 3 * np.array([1, 10, 100]) ** 1.5) == pytest.approx(1.5)


def test_unknown_case_is_reported(capsys):
    with pytest.raises(SystemExit):
        scale.main(["--cases", "colums"])
    assert "--cases names colums; there are plain, sparse, rows, columns, levels" in capsys.readouterr().err
