"""Texts from the command line: labels, units, formats, letters."""

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main

CONFIG = """
train = "train.csv"
explain = "new.csv"
response = "loan"
decision = "yes"
id = "who"
n_samples = 100
sparse = true
letters = "letters"
in_words = "the loan is granted"

[labels]
income = "monthly income"

[units]
income = "EUR"

[formats]
job = {clerk = "office clerk"}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"who": [f"A/{i}" for i in range(120)], "income": rng.integers(1000, 9000, 120)})
    table["job"] = rng.choice(["clerk", "driver"], 120)
    table["loan"] = np.where(table["income"] > 5000, "yes", "no")
    table.to_csv(tmp_path / "train.csv", index=False)
    table[table["loan"] == "no"].head(3).to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "job.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_letters_use_the_labels_of_the_job(folder, capsys):
    assert main(["explain", "--config", "job.toml"]) == 0
    pages = sorted((folder / "letters").iterdir())
    new = pd.read_csv(folder / "new.csv")  # an income of more than 2.5 times is reviewed before a letter is sent
    assert [page.stem for page in pages] == new["who"][new["income"] > 2000].str.replace("/", "_").tolist()
    assert len(pages) == 2
    text = pages[0].read_text(encoding="utf-8")
    assert "monthly income" in text
    assert "EUR" in text
    assert "the loan would have been granted" in text
    assert main(["explain", "--config", "job.toml"]) == 2
    assert "--letters letters: the folder has files; give another one, or add --force" in capsys.readouterr().err


@pytest.mark.slow
def test_letters_state_reasons_with_the_labels_of_the_job(folder, capsys):
    own = '\n[reasons]\nincome = {code = "R1", text = "Income is too low"}\n'
    (folder / "job.toml").write_text(CONFIG + own)
    assert main(["explain", "--config", "job.toml", "--out", "out.csv"]) == 0
    pages = sorted((folder / "letters").iterdir())
    assert all("<li>Income is too low (code R1)</li>" in page.read_text(encoding="utf-8") for page in pages)
    assert 'income = {code = "R1"' in (folder / "out.job.toml").read_text()
    (folder / "job.toml").write_text(CONFIG)
    assert main(["explain", "--config", "job.toml", "--letters", "by_flag", "--reasons"]) == 0
    assert all("Your rights" in page.read_text(encoding="utf-8") for page in (folder / "by_flag").iterdir())
    (folder / "job.toml").write_text(CONFIG + '\n[reasons]\nincom = "Income is too low"\n')
    assert main(["explain", "--config", "job.toml", "--letters", "more"]) == 2
    assert "'incom', which is not a column" in capsys.readouterr().err


@pytest.mark.slow
def test_samplers_may_be_auto(folder):
    assert main(["explain", "--config", "job.toml", "--sampler", "auto", "--letters", "more"]) == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("always::mcce.exceptions.AdviceWarning")
def test_no_letter_is_written_for_a_suspicious_example(folder, capsys):
    table = pd.read_csv(folder / "train.csv").assign(
        previous_default=lambda t: (t["income"] < 5000).map({True: 1, False: 0})
    )
    table["loan"] = np.where(table["previous_default"] == 0, "yes", "no")
    table["income"] = np.random.default_rng(1).integers(1000, 9000, 120)
    table.to_csv(folder / "train.csv", index=False)
    table[table["loan"] == "no"].head(12).to_csv(folder / "new.csv", index=False)
    assert main(["explain", "--config", "job.toml"]) == 0
    said = capsys.readouterr().err
    assert "warning: features that look like unchangeable facts may change: 'previous_default'" in said
    assert "wrote 0 letters to letters" in said
    assert "no letter for 12 rows, whose examples need a review first (--all writes these as well):" in said
    assert "previous_default changes, although it looks like a past event" in said
    assert "and 2 more" in said
    assert main(["explain", "--config", "job.toml", "--all", "--letters", "everybody"]) == 0
    assert len([*(folder / "everybody").iterdir()]) == 12
    assert "no letter for" not in capsys.readouterr().err
