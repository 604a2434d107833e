"""`mcce card`: a printed or written card."""

import pandas as pd
import pytest

from mcce.cli import BAD_INPUT, DONE, main
from tests.cli.test_verify import bank  # noqa: F401


def run(bank, *more):  # noqa: F811
    return main(["card", str(bank / "bank.mcce"), "--model", str(bank / "model.joblib"), *map(str, more)])


def test_card_is_printed_as_markdown_and_written_as_a_page(bank, tmp_path, capsys):  # noqa: F811
    assert run(bank) == DONE
    printed = capsys.readouterr().out
    assert printed.startswith("# Explainer card\n\n## Explainer\n")
    assert "Fitted to 150 training rows. 3 features:" in printed
    assert run(bank, "--out", tmp_path / "card.html", "--title", "Loans") == DONE
    assert "<h1>Loans</h1>" in (tmp_path / "card.html").read_text(encoding="utf-8")
    assert run(bank, "--out", tmp_path / "card.html") == BAD_INPUT
    assert "the file exists" in capsys.readouterr().err


@pytest.mark.slow
def test_rows_of_a_file_are_measured(bank, tmp_path, capsys):  # noqa: F811
    pd.read_csv(bank / "train.csv").add(1).to_csv(tmp_path / "new.csv", index=False)
    assert run(bank, "--rows", tmp_path / "new.csv") == DONE
    assert "On 150 rows given as new" in capsys.readouterr().out
