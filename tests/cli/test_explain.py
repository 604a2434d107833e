"""`mcce explain`: input, training, queries and output."""

import io

import joblib
import numpy as np
import pandas as pd
import pytest

from tests.cli.problem import explain, trained


@pytest.mark.slow
def test_response_trains_a_model_and_writes_both_files(folder, tmp_path, capsys):
    out = tmp_path / "cf.csv"
    assert trained(folder, "--fixed", "age,sex", "--out", out) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "trained a HistGradientBoostingClassifier for the class 'default'; cross-validated AUC 0." in said.err
    found, rest = pd.read_csv(out), pd.read_csv(tmp_path / "cf.unexplained.csv")
    new = pd.read_csv(folder / "new.csv").set_axis(range(1, 26))
    assert sorted([*found["id"], *rest["id"]]) == list(new.index)
    assert set(rest["reason"]) == {"already has the wanted decision"}
    pd.testing.assert_frame_equal(found[["age", "sex"]], new.loc[found["id"], ["age", "sex"]].reset_index(drop=True))
    assert not found["prediction"].any()


def test_model_is_queried_with_the_columns_and_dtypes_of_the_file(folder, capsys):
    wanted = ["--model", folder / "model.joblib", "--decision", "[0,0.1)", "--fixed", "age,sex", "--out", "-"]
    assert explain(folder, *wanted, "--n-counterfactuals", "2") == 0
    said = capsys.readouterr()
    found = pd.read_csv(io.StringIO(said.out))
    train = pd.read_csv(folder / "train.csv").drop(columns="default")
    assert (found[list(train)].dtypes == train.dtypes).all()
    model = joblib.load(folder / "model.joblib")
    np.testing.assert_allclose(model.predict_proba(found[list(train)])[:, 1], found["prediction"])
    assert (found["prediction"] < 0.1).all()
    assert set(found["rank"]) == {1, 2}


@pytest.mark.slow
def test_same_seed_gives_the_same_file_for_any_number_of_jobs(folder, capsys):
    texts = []
    for jobs in ("1", "2"):
        assert trained(folder, "--out", "-", "--random-state", "5", "--n-jobs", jobs) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


@pytest.mark.slow
def test_readable_table_is_printed_without_out(folder, capsys):
    assert trained(folder, "--visit-sequence", "correlation") == 0
    assert "Counterfactuals: " in capsys.readouterr().out


@pytest.mark.slow
def test_group_rules(folder, capsys):
    wanted = ["--model", folder / "model.joblib", "--decision", "[0,0.1)", "--fixed", "age,sex", "--out", "-"]
    assert explain(folder, *wanted, "--rules", "2") == 2
    assert "--rules needs the plausibility floor; add --sparse." in capsys.readouterr().err
    assert explain(folder, *wanted, "--sparse", "--rules", "2") == 0
    said = capsys.readouterr()
    assert "rules reach the decision for " in said.err
    assert "1. " in said.err
    assert pd.read_csv(io.StringIO(said.out))["prediction"].lt(0.1).all()


@pytest.mark.slow
def test_regression_requires_an_interval_and_exit_code_3_means_unexplained_rows(folder, tmp_path, capsys):
    wanted = ["--response", "Ozone", "--decision", "(-inf,15]", "--fixed", "Wind"]
    files = {"train": "air.csv", "new": "air.csv"}
    assert explain(folder, *wanted, "--out", tmp_path / "cf.csv.gz", **files) == 3
    said = capsys.readouterr().err
    assert "HistGradientBoostingRegressor for the number 'Ozone'; cross-validated R2 0." in said
    assert "not explained, none of the 300 candidates has the wanted decision" in said
    assert (pd.read_csv(tmp_path / "cf.csv.gz")["prediction"] <= 15).all()
    assert (tmp_path / "cf.unexplained.csv").is_file()


def test_poor_model_is_reported(folder, tmp_path, capsys):
    rng = np.random.default_rng(0)
    noise = pd.DataFrame({"a": rng.normal(size=200), "y": rng.choice(["no", "yes"], 200)})
    noise.to_csv(tmp_path / "noise.csv", index=False)
    files = {"train": "noise.csv", "new": "noise.csv"}
    assert explain(tmp_path, "--response", "y", "--decision", "yes", "--out", "-", **files) == 0
    assert "warning: that is poor" in capsys.readouterr().err


@pytest.mark.slow
def test_categorical_numbers_and_codes_that_look_like_numbers_survive(tmp_path, capsys):
    rng = np.random.default_rng(1)
    code = rng.choice(["01", "02", "x"], 300)
    grade = rng.integers(1, 4, 300)
    y = np.where((code == "x") & (grade > 1), "yes", "no")
    table = pd.DataFrame({"code": code, "grade": grade, "size": rng.normal(size=300).round(2), "y": y})
    table.to_csv(tmp_path / "train.csv", index=False)
    table[table["code"] == "01"].head(5).to_csv(tmp_path / "new.csv", index=False)  # on its own it is read as 1
    wanted = ["--response", "y", "--decision", "yes", "--kinds", "grade=categorical"]
    assert explain(tmp_path, *wanted, "--out", tmp_path / "cf.parquet") == 0
    found = pd.read_parquet(tmp_path / "cf.parquet")
    assert list(found["code"].cat.categories) == ["01", "02", "x"]
    assert set(found["grade"]) <= {2, 3}
    assert set(found["code"]) == {"x"}


@pytest.mark.nightly
def test_parquet_ids_and_a_saved_row_index(folder, tmp_path, capsys):
    train = pd.read_csv(folder / "train.csv")
    train.to_parquet(tmp_path / "train.parquet")
    new = train.head(8).drop(columns="default").assign(who=[f"p{i}" for i in range(8)], note="x")
    new.to_csv(tmp_path / "new.csv", index=False)
    assert trained(tmp_path, "--id", "who", "--out", tmp_path / "cf.csv", train="train.parquet") == 0
    assert "columns of" in (said := capsys.readouterr().err)
    assert "that are not used: 'note'" in said
    assert set(pd.read_csv(tmp_path / "cf.csv")["id"]) <= set(new["who"])
    train.head(25).set_axis([f"q{i}" for i in range(25)]).to_csv(tmp_path / "indexed.csv")
    assert trained(tmp_path, "--out", "-", train="train.parquet", new="indexed.csv") == 0
    said = capsys.readouterr()
    assert "is taken for the row names" in said.err
    assert "q" in said.out.splitlines()[1].split(",")[0]


@pytest.mark.slow
def test_nothing_to_explain_exits_with_0(folder, tmp_path, capsys):
    pd.read_csv(folder / "new.csv").head(0).to_csv(tmp_path / "none.csv", index=False)
    html = tmp_path / "r.html"
    assert trained(folder, "--out", "-", "--html", html, new=tmp_path / "none.csv") == 0
    assert capsys.readouterr().out.startswith("id,rank,age,sex")
    assert "<img" not in html.read_text(encoding="utf-8")


@pytest.mark.nightly
def test_html_page_has_picture_and_table(folder, tmp_path, capsys):
    assert trained(folder, "--html", tmp_path / "r.html") == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "data:image/png;base64," in page
    assert '<td class="n changed"' in page
