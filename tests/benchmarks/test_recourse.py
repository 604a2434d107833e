"""The benchmark of recourse runs and writes its results."""

from __future__ import annotations

import pytest

from benchmarks import recourse


@pytest.mark.slow
def test_runs_and_writes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(recourse, "N_TRAINING", 300)
    monkeypatch.setattr(recourse, "WAYS", ("recourse, keep=1", "counterfactual"))
    out = tmp_path / "recourse.md"
    assert recourse.main(["--only", "career", "--people", "3", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.count("keep=1") == said.count("counterfactual:") + 1 == 2
    assert max(len(line) for line in said.splitlines()) <= 120
    assert out.read_text().count("| counterfactual |") == 1


def test_rows_of_a_subset_keep_their_noise(monkeypatch):
    monkeypatch.setattr(recourse, "N_TRAINING", 100)
    case = recourse.Case.make(recourse.WORLDS["career"], 6).take(4)
    rows = case.world.rows(case.noise).astype(case.people.dtypes)
    assert len(rows) == 4
    assert rows.equals(case.people)
