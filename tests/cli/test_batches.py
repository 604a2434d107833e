"""`mcce explain-batches`: a saved explainer, files, a folder, and errors."""

import joblib
import pandas as pd
import pytest

from mcce.cli import BAD_INPUT, DONE, SOME_UNEXPLAINED, main
from tests.batches.problem import ROWS, explainer, tables


@pytest.fixture
def saved(tmp_path):
    explainer().explain(ROWS.head(5).drop(columns="who"), n_samples=20, sparse=True)  # learns the parts for sparse
    joblib.dump(explainer(), tmp_path / "explainer.joblib")
    return str(tmp_path / "explainer.joblib")


def test_file_is_explained_and_run_is_resumed(saved, tmp_path, capsys):
    ROWS.to_csv(tmp_path / "rows.csv", index=False, na_rep="NA")
    out = tmp_path / "out"
    command = ["explain-batches", "--explainer", saved, "--explain", str(tmp_path / "rows.csv"), "--out", str(out)]
    command += [
        "--id",
        "who",
        "--batch-size",
        "50",
        "--n-samples",
        "40",
        "--missing",
        "NA",
        "--sparse",
        "--floor",
        "0.1",
    ]
    assert main(command) == DONE
    assert "120 rows: " in capsys.readouterr().err
    rows, _ = tables(out)
    found = explainer().explain(ROWS.set_index("who"), n_samples=40, sparse=True, floor=0.1).to_frame()
    pd.testing.assert_frame_equal(rows, found, check_dtype=False, check_categorical=False)
    assert main(command) == DONE
    assert main([*command, "--n-counterfactuals", "2"]) == BAD_INPUT
    assert "settings.n_counterfactuals was 1, is 2" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*a level that is not known")
@pytest.mark.slow
def test_bad_rows_are_listed_on_request(saved, tmp_path, capsys):
    rows = ROWS.assign(job=ROWS["job"].where(ROWS.index != 7, "astronaut"))  # unexplained; other rows are unaffected
    rows.assign(income=rows["income"].astype(object).where(ROWS.index != 3, "lots")).to_csv(
        tmp_path / "rows.csv", index=False
    )
    command = ["explain-batches", "--explainer", saved, "--explain", str(tmp_path / "rows.csv")]
    command += ["--out", str(tmp_path / "out"), "--n-samples", "20"]
    assert main(command) == BAD_INPUT
    assert "rows.csv, line 5: column 'income' holds 'lots'" in capsys.readouterr().err
    assert main([*command, "--skip-bad"]) == SOME_UNEXPLAINED
    assert "1 are bad" in capsys.readouterr().err


def test_invalid_arguments_are_reported(saved, tmp_path, capsys):
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    joblib.dump({"no": "explainer"}, tmp_path / "other.joblib")
    (tmp_path / "text.joblib").write_text("text")
    common = ["--explain", str(tmp_path / "rows.csv"), "--out", str(tmp_path / "out")]
    for said, more in [
        ("there is no such file", ["--explainer", "none.joblib"]),
        ("holds a dict; it must be a fitted mcce.MCCE", ["--explainer", str(tmp_path / "other.joblib")]),
        ("cannot be loaded", ["--explainer", str(tmp_path / "text.joblib")]),
        ("--floor is 2.0; it must be", ["--explainer", saved, "--sparse", "--floor", "2"]),
    ]:
        assert main(["explain-batches", *common, *more]) == BAD_INPUT
        assert said in capsys.readouterr().err


@pytest.mark.slow
def test_explainer_saved_without_pickle_accepts_a_model(saved, tmp_path, capsys):
    made = explainer()
    made.save(tmp_path / "explainer.mcce")
    joblib.dump(made.model, tmp_path / "model.joblib")
    ROWS.head(40).to_parquet(tmp_path / "rows.parquet")
    found = []
    for name, how in [
        ("pickled", ["--explainer", saved]),
        ("saved", ["--explainer", str(tmp_path / "explainer.mcce"), "--model", str(tmp_path / "model.joblib")]),
    ]:
        command = ["explain-batches", *how, "--explain", str(tmp_path / "rows.parquet"), "--out", str(tmp_path / name)]
        assert main([*command, "--n-samples", "20"]) in (DONE, SOME_UNEXPLAINED)
        assert "runs the code that it holds" in capsys.readouterr().err
        found.append(tables(tmp_path / name)[0])
    pd.testing.assert_frame_equal(*found)
    command = [
        "explain-batches",
        "--explainer",
        str(tmp_path / "explainer.mcce"),
        "--explain",
        str(tmp_path / "rows.parquet"),
    ]
    assert main([*command, "--out", str(tmp_path / "none")]) == BAD_INPUT
    assert "was written by MCCE.save, without its model; give the model by --model" in capsys.readouterr().err


@pytest.mark.slow
def test_files_are_read_as_by_explain(saved, tmp_path, capsys):
    """Semicolons, decimal commas and an Excel sheet give the same result as a plain CSV."""
    numbers = ROWS.select_dtypes("float").columns
    rows = ROWS.fillna(dict.fromkeys(numbers, 1.5)).head(30)
    rows.to_csv(tmp_path / "plain.csv", index=False)
    rows.to_csv(tmp_path / "german.csv", index=False, sep=";", decimal=",", encoding="utf-8-sig")
    rows.to_excel(tmp_path / "book.xlsx", index=False)
    found = []
    for name in ("plain.csv", "german.csv", "book.xlsx"):
        command = ["explain-batches", saved, str(tmp_path / name), "--id", "who", "--out", str(tmp_path / name[:3])]
        table = ["--table", str(tmp_path / f"{name[:3]}.csv")]
        assert main([*command, *table, "--n-samples", "20", "--batch-size", "20"]) in (DONE, SOME_UNEXPLAINED)
        found.append(pd.read_csv(tmp_path / f"{name[:3]}.csv"))
    for other in found[1:]:
        pd.testing.assert_frame_equal(other, found[0])
    assert "30 rows: " in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:.*a level that is not known")
def test_letters_equal_those_of_the_letters_command(saved, tmp_path, capsys):
    """Also for a row with an unknown level; letter options raise without letters."""
    rows = ROWS.fillna(dict.fromkeys(ROWS.select_dtypes("float").columns, 1.5)).head(30)
    rows.loc[4, "job"] = "astronaut"
    rows.to_csv(tmp_path / "rows.csv", index=False, sep=";")
    common = [saved, str(tmp_path / "rows.csv"), "--id", "who", "--n-samples", "40", "--sparse"]
    words = ["--in-words", "the loan is granted", "--labels", "income=yearly pay", "--units", "income=EUR", "--all"]
    batches = ["explain-batches", *common, "--batch-size", "8", "--out", str(tmp_path / "out")]
    assert main([*batches, "--language", "de"]) == BAD_INPUT
    assert "--language goes with --letters; add --letters FOLDER, or leave --language out" in capsys.readouterr().err
    assert main(["explain", *common, *words, "--letters", str(tmp_path / "one")]) == SOME_UNEXPLAINED
    capsys.readouterr()
    assert main([*batches, *words, "--letters", str(tmp_path / "two")]) == SOME_UNEXPLAINED
    said = capsys.readouterr().err
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / name).glob("*.html")} for name in ("one", "two"))
    assert one == two
    assert f"wrote {len(two)} letters to {tmp_path / 'two'}" in said
    assert "no letter for 1 rows, that could not be read:" in said
    assert "p4: it could not be read: column 'job' holds 'astronaut'" in said
    assert "rows that the model accepts" in said
    assert any(b"yearly pay" in page for page in two.values())
