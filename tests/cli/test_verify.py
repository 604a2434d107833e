"""`mcce explain --records` and `mcce verify`: records are written, continued, verified and reproduced."""

import hashlib
import json

import joblib
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from mcce.cli import BAD_INPUT, DONE, main
from mcce.cli.console import NOT_VERIFIED
from tests.cli.problem import customers

NUMBERS = ["income", "rent", "savings"]


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """A folder with an explainer, its model and rows to explain."""
    folder = tmp_path_factory.mktemp("bank")
    table = customers(150)
    model = LogisticRegression().fit(table[NUMBERS], table["income"] + table["savings"] > 80)
    joblib.dump(model, folder / "model.joblib")
    table[NUMBERS].to_csv(folder / "train.csv", index=False)
    table[["who", *NUMBERS]].head(6).to_csv(folder / "people.csv", index=False)
    fit = ["fit", "--train", str(folder / "train.csv"), "--model", str(folder / "model.joblib"), "--decision", "0.5,1"]
    assert main([*fit, "--of", "True", "--save", str(folder / "bank.mcce")]) == DONE
    return folder


def explain(bank, *more):
    files = [str(bank / "bank.mcce"), str(bank / "people.csv"), "--model", str(bank / "model.joblib"), "--id", "who"]
    return main(["explain", *files, "--n-samples", "50", *map(str, more)])


@pytest.fixture(scope="module")
def records(bank, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out") / "records"
    words = "--in-words", "the loan is granted"
    assert explain(bank, "--records", folder, "--reviewed-by", "Kari", "--reviewed-at", "2026-11-18", *words) == DONE
    return folder


def test_one_record_per_factual_with_file_hashes(bank, records):
    assert [path.name for path in sorted(records.iterdir())] == [
        *(f"{i:06d}-000{i - 1}.json" for i in range(1, 7)),
        "head.json",
    ]
    record = json.loads((records / "000001-0000.json").read_text())
    for part, name in (("model", "model.joblib"), ("explainer", "bank.mcce")):
        assert record[part]["file"] == hashlib.sha256((bank / name).read_bytes()).hexdigest()
    assert record["review"] == {"by": "Kari", "at": "2026-11-18"}
    assert record["decision"]["wanted"] == "the loan is granted"
    person = pd.read_csv(bank / "people.csv").iloc[0]
    assert record["factual"] == {name: int(person[name]) for name in NUMBERS}


def test_records_are_verified_and_reproduced(bank, records, capsys):
    files = ["--explainer", str(bank / "bank.mcce"), "--model", str(bank / "model.joblib")]
    assert main(["verify", str(records), *files]) == DONE
    printed = capsys.readouterr().out
    assert printed.startswith(
        "6 records: every hash is right, and the chain is complete. Reproduced byte for byte: 6 of 6."
    )
    assert f"last record: {json.loads((records / 'head.json').read_text())['last']}\n" in printed


def test_change_sets_the_exit_code(bank, tmp_path, capsys):
    folder = tmp_path / "records"
    assert explain(bank, "--records", folder) == DONE
    assert explain(bank, "--records", folder) == DONE
    assert main(["verify", str(folder)]) == DONE
    (folder / "000007-0000.json").unlink()
    (folder / "\x1b[31mred").touch()
    assert main(["verify", str(folder)]) == NOT_VERIFIED
    printed = capsys.readouterr().out
    assert "fault: record 7 is missing\n" in printed
    assert "\x1b" not in printed
    assert explain(bank, "--records", folder) == BAD_INPUT
    assert "cannot be continued: records are missing or repeated" in capsys.readouterr().err


def test_records_of_batches_form_one_chain(bank, records, tmp_path, capsys):
    files = [str(bank / "bank.mcce"), str(bank / "people.csv"), "--model", str(bank / "model.joblib"), "--id", "who"]
    folder = tmp_path / "records"
    command = ["explain-batches", *files, "--n-samples", "50", "--batch-size", "4", "--out", str(tmp_path / "out")]
    assert main([*command, "--records", str(folder)]) == DONE
    assert f"wrote 6 records to {folder}; mcce verify" in capsys.readouterr().err
    explainer = ["--explainer", str(bank / "bank.mcce"), "--model", str(bank / "model.joblib")]
    assert main(["verify", str(folder), *explainer]) == DONE
    assert "6 records: every hash is right" in (printed := capsys.readouterr().out)
    assert "Reproduced byte for byte: 6 of 6." in printed
    for name in ("000001-0000.json", "000006-0005.json"):
        one, other = (json.loads((where / name).read_text()) for where in (folder, records))
        assert one["answers"] == other["answers"]
        assert one["call"] == other["call"]
    (folder / "000003-0002.json").unlink()
    assert main(["verify", str(folder)]) == NOT_VERIFIED
    assert "fault: record 3 is missing\n" in capsys.readouterr().out


def test_incompatible_options_raise(bank, records, tmp_path, capsys):
    (tmp_path / "file").touch()
    for more, message in (
        (["--reviewed-by", "Kari"], "--reviewed-by goes with --records"),
        (["--records", records, "--reviewed-at", "now"], "--reviewed-at goes with --reviewed-by"),
        (["--records", tmp_path / "file"], "is a file; give the name of a folder"),
    ):
        assert explain(bank, *more) == BAD_INPUT
        assert message in capsys.readouterr().err
    assert main(["verify", str(records), "--model", str(bank / "model.joblib")]) == BAD_INPUT
    assert "--model goes with --explainer" in capsys.readouterr().err
