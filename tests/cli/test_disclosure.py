"""`mcce disclosure`: the sentences and the table of a saved explainer, and errors."""

import joblib
import pandas as pd
import pytest

import mcce
from mcce.cli import BAD_INPUT, DONE, main
from tests.diagnostics.disclosure_risk.test_disclosure import accept, people


@pytest.fixture
def command(tmp_path):
    X, holdout = people(60, 1), people(60, 2)
    joblib.dump(mcce.MCCE(accept, fixed=["sex"], random_state=1).fit(X), tmp_path / "explainer.joblib")
    X.to_csv(tmp_path / "train.csv", index=False)
    holdout.to_csv(tmp_path / "holdout.csv", index=False)
    files = [f"--{name}={tmp_path / name}.csv" for name in ("train", "holdout")]
    return ["disclosure", f"--explainer={tmp_path / 'explainer.joblib'}", *files]


def test_sentences_are_printed_and_the_table_is_written(command, tmp_path, capsys):
    out = tmp_path / "table.csv"
    options = ["--releases=generated", "--n-attacks=20", "--max-factuals=20", "--n-samples=50", f"--out={out}"]
    assert main([*command, *options]) == DONE
    said = capsys.readouterr().out
    assert said.startswith("Disclosure: 60 training rows, 30 control rows, 30 rows of the attacker; keys 'sex'")
    table = pd.read_csv(out)
    assert table["release"].unique().tolist() == ["generated"]
    assert table["sentence"].str.endswith(".").all()
    assert main([*command, *options]) == BAD_INPUT
    assert "exists; remove it, or name another file" in capsys.readouterr().err


def test_invalid_arguments_are_reported(command, tmp_path, capsys):
    assert main([*command, "--keys=sax"]) == BAD_INPUT
    assert "keys names 'sax', which is not a column; did you mean 'sex'?" in capsys.readouterr().err
    assert main([*command, "--out=table.txt"]) == BAD_INPUT
    assert "does not end in .csv" in capsys.readouterr().err
    text = (tmp_path / "holdout.csv").read_text().splitlines()
    (tmp_path / "holdout.csv").write_text("\n".join([text[0], "f,1,2", *text[1:]]))
    assert main(command) == BAD_INPUT
    assert "holdout.csv, line 2" in capsys.readouterr().err
    (tmp_path / "holdout.csv").write_text(text[0] + "\n")
    assert main(command) == BAD_INPUT
    assert "holdout.csv has a header but no rows" in capsys.readouterr().err
