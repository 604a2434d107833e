"""From files to letters: Excel in, letters in Norwegian out, batches killed and resumed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from html import unescape
from importlib import import_module
from importlib.util import find_spec

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mcce.cli import BAD_INPUT, DONE, SOME_UNEXPLAINED, main
from mcce.datasets import load_loans

openpyxl = pytest.importorskip("openpyxl", reason="needs pip install 'mcce[excel]'")
pytest.importorskip("babel", reason="needs pip install 'mcce[languages]'")
pytestmark = pytest.mark.skipif(find_spec("skops") is None, reason="needs pip install 'mcce[skops]'")

COLUMNS = ["age", "years_employed", "salary", "savings", "loan_amount"]
LABELS = "age=alder,years_employed=år i jobb,salary=årslønn,savings=sparepenger,loan_amount=lån"
RULES = """
[[allow]]
feature = "salary"
direction = "increase"

[[rule]]
says = "years_employed <= was(years_employed) + 2"
"""


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """A folder with customers, a model and rejected rows, and an explainer made by `mcce fit`."""
    folder = tmp_path_factory.mktemp("office")
    loans = load_loans(400)
    X = loans.X[COLUMNS]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, loans.y)
    import_module("skops.io").dump(model, folder / "model.skops")
    X.assign(note="seen", default=loans.y).to_excel(folder / "customers.xlsx", index=False)
    risk = model.predict_proba(X)[:, 1]
    limit = float(pd.Series(risk).quantile(0.6))
    people = pd.concat([X[risk > limit].head(8), X[risk < 0.5 * limit].head(2)])
    people.insert(0, "case", [f"2024-{i:02d}" for i in range(10)])
    people.to_excel(folder / "people.xlsx", index=False)
    (folder / "rules.toml").write_text(RULES)
    here = os.getcwd()
    os.chdir(folder)
    try:
        command = ["fit", "--train", "customers.xlsx", "--model", "model.skops", "--decision", f"[0,{limit:.4f})"]
        command += ["--of", "True", "--response", "default", "--drop", "note", "--fixed", "age", "--save", "bank.mcce"]
        assert main(command) == DONE
    finally:
        os.chdir(here)
    return folder


@pytest.fixture
def desk(office, monkeypatch):
    monkeypatch.chdir(office)
    return office


def letter_text(path):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", path.read_text(encoding="utf-8"))).split())


@pytest.mark.slow
def test_letters_in_norwegian(desk, capsys):
    command = ["letters", "bank.mcce", "people.xlsx", "--id", "case", "--letters", "brev", "--language", "nb"]
    command += ["--labels", LABELS, "--units", "salary=kr,savings=kr,loan_amount=kr", "--in-words", "lånet innvilges"]
    assert main([*command, "--constraints", "rules.toml", "--all"]) in (DONE, SOME_UNEXPLAINED)
    said = capsys.readouterr().err
    assert "no letter for 2 rows that the model accepts: '2024-08', '2024-09'" in said
    letters = {path.stem: letter_text(path) for path in (desk / "brev").iterdir()}
    assert sorted(letters) == [f"2024-{i:02d}" for i in range(8)]
    text = " ".join(letters.values())
    assert "Hva som ville ha ført til en annen avgjørelse" in text
    assert "ville lånet ha blitt innvilget" in text
    assert "årslønn: kan bare øke" in text
    assert "år i jobb: høyst 2 år mer enn nå" in text
    assert re.search(r"\d\d 000 kr|\d\d \d00 kr", text)
    english = re.findall(r"\b(instead|would|decision|the|years|salary)\b", text)
    assert english == []
    assert main([*command, "--force", "--fixed", "salary,savings,loan_amount,years_employed"]) == SOME_UNEXPLAINED
    assert "Vi fant ikke noe eksempel" in letter_text(desk / "brev" / "2024-00.html")


@pytest.mark.slow
def test_workbook_of_answers_has_changed_cells_marked(desk):
    for name in ("answers.xlsx", "again.xlsx"):
        assert main(["explain", "bank.mcce", "people.xlsx", "--id", "case", "--sparse", "--out", name]) == DONE
    assert (desk / "answers.xlsx").read_bytes() == (desk / "again.xlsx").read_bytes()
    book = openpyxl.load_workbook(desk / "answers.xlsx")
    assert book.sheetnames == ["answers", "changes", "no answer"]
    answers = pd.read_excel(desk / "answers.xlsx", sheet_name="answers").set_index("id")
    changes = pd.read_excel(desk / "answers.xlsx", sheet_name="changes")
    people = pd.read_excel(desk / "people.xlsx").set_index("case")
    assert len(pd.read_excel(desk / "answers.xlsx", sheet_name="no answer")) == 2
    sheet = book["answers"]
    names = [cell.value for cell in sheet[1]]
    marked = {(row[0].value, names[k]) for row in sheet.iter_rows(2) for k, cell in enumerate(row) if cell.comment}
    differ = {(who, name) for who in answers.index for name in COLUMNS if answers[name][who] != people[name][who]}
    assert marked == differ == set(zip(changes["id"], changes["feature"]))
    first = answers.iloc[0]
    assert first["changed"] == ", ".join(changes.loc[changes["id"] == answers.index[0], "feature"])
    assert first["sentence"].startswith("With ")


@pytest.mark.slow
def test_unknown_level_skips_only_its_row_and_unrelated_file_is_reported(desk, tmp_path, capsys):
    people = pd.read_excel(desk / "people.xlsx")
    people.to_csv(tmp_path / "people.csv", sep=";", decimal=",", index=False)
    assert main(["explain", "bank.mcce", str(tmp_path / "people.csv"), "--id", "case", "--out", "-"]) == DONE
    assert len(capsys.readouterr().out.splitlines()) == 9
    assert main(["inspect", str(tmp_path / "people.csv")]) == BAD_INPUT
    assert "'people.csv' is not a stored file of mcce, but a table as text" in capsys.readouterr().err
    assert main(["explain", "bank.mcce", "people.xlsx", "--sampler", "norm"]) == BAD_INPUT
    assert "'--sampler' are options of mcce fit" in capsys.readouterr().err
    assert main(["letters", "--show-texts", "nb"]) == DONE
    assert 'language = "nb"' in capsys.readouterr().out
    assert main(["letters", "bank.mcce", "people.xlsx", "--letters", "x", "--language", "xx"]) == BAD_INPUT
    assert "there are no letters in 'xx'" in capsys.readouterr().err


@pytest.mark.nightly
def test_saved_explainer_answers_like_its_training_files(desk, tmp_path, capsys):
    bank = ["--explain", "people.xlsx", "--id", "case", "--n-samples", "100", "--fixed", "age"]
    files = [
        "--train",
        "customers.xlsx",
        "--response",
        "default",
        "--decision",
        "False",
        "--drop",
        "note",
        "--fixed",
        "age",
    ]
    assert main(["fit", *files, "--save", str(tmp_path / "ours.mcce")]) == DONE
    assert (tmp_path / "ours.skops").is_file()
    found = []
    for name, how in (("a.csv", files), ("b.csv", ["--explainer", str(tmp_path / "ours.mcce")])):
        assert main(["explain", *how, *bank, "--out", str(tmp_path / name)]) in (DONE, SOME_UNEXPLAINED)
        found.append(pd.read_csv(tmp_path / name))
    pd.testing.assert_frame_equal(found[0][[*COLUMNS, "changed"]], found[1][[*COLUMNS, "changed"]], check_dtype=False)
    (tmp_path / "ours.skops").write_bytes(b"another")
    assert main(["explain", str(tmp_path / "ours.mcce"), *bank]) == BAD_INPUT
    assert "was fitted with another ours.skops than" in capsys.readouterr().err


def batches(folder, out, *more):
    command = [sys.executable, "-m", "mcce", "explain-batches", "bank.mcce", "many.xlsx", "--id", "case"]
    command += ["--out", out, "--sparse", "--n-samples", "200", "--batch-size", "10", *more]
    with (folder / f"{out}.log").open("a") as log:
        return subprocess.Popen(command, cwd=folder, stderr=log)


@pytest.mark.nightly
def test_killed_batches_of_a_workbook_are_resumed(desk):
    people = pd.read_excel(desk / "people.xlsx")
    many = pd.concat([people.head(8)] * 15, ignore_index=True).assign(case=lambda t: [f"{i:03d}" for i in t.index])
    many.to_excel(desk / "many.xlsx", index=False)
    letters = ["--all", "--language", "nb", "--labels", LABELS, "--in-words", "lånet innvilges", "--letters"]
    done = batches(desk, "whole", "--table", "all.xlsx", *letters, "all_letters")
    assert done.wait() in (DONE, SOME_UNEXPLAINED), (desk / "whole.log").read_text()
    killed = batches(desk, "killed", *letters, "letters")
    for _ in range(1200):
        if any((desk / "killed" / "parts").glob("part-*.json")) or killed.poll() is not None:
            break
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    finished = len(list((desk / "killed" / "parts").glob("part-*.json")))
    resumed = batches(desk, "killed", *letters, "letters")
    assert resumed.wait() in (DONE, SOME_UNEXPLAINED)
    assert 0 < finished <= 12
    for path in sorted((desk / "whole").rglob("*.parquet")):
        assert path.read_bytes() == (desk / "killed" / path.relative_to(desk / "whole")).read_bytes()
    written, again = (
        {path.name: path.read_bytes() for path in (desk / name).iterdir()} for name in ("all_letters", "letters")
    )
    assert written == again
    assert {f"{case}.html" for case in many["case"]} == {*written} - {".letters-of"}
    assert "ville lånet ha blitt innvilget" in letter_text(desk / "letters" / "000.html")
    assert len(pd.read_excel(desk / "all.xlsx")) == len(pd.read_parquet(desk / "whole" / "counterfactuals"))
