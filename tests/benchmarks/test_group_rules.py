"""The comparison of rules for groups runs and writes its tables."""

from __future__ import annotations

import pytest

from benchmarks import group_rules
from tests.datasets.paper_data import paper_folder


@pytest.mark.slow
def test_runs_and_writes(tmp_path, monkeypatch):
    monkeypatch.setenv("MCCE_DATA", str(paper_folder("german")))
    out = tmp_path / "group_rules.md"
    group_rules.main(["--only", "german", "--people", "5", "--out", str(out)])
    said = out.read_text()
    assert said.count("## german: 5 refused people, fixed: ") == 2
    assert said.count("| mcce, at most 4 changes | ") == 4


def test_unknown_data_raise(capsys):
    with pytest.raises(SystemExit):
        group_rules.main(["--only", "iris"])
    assert "--only names iris; there are german, heloc" in capsys.readouterr().err
