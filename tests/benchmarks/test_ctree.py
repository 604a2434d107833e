"""The benchmark of conditional inference trees runs and reports its findings."""

import json

import pytest

from benchmarks import ctree


@pytest.mark.slow
def test_runs_and_writes(tmp_path, capsys):
    assert ctree.main(["--quick", "--out", str(tmp_path / "ctree.md")]) == 0
    results = json.loads((tmp_path / "ctree.json").read_text())
    assert [one["response"] for one in results["trees"]] == list(ctree.RESPONSES)
    assert all(one["mcce"] > 0 and one.get("same_nodes", True) for one in results["trees"])
    page = (tmp_path / "ctree.md").read_text()
    assert page.count("| n = 400") == 3
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 120


def test_without_party(monkeypatch):
    monkeypatch.setattr(ctree, "find_party", lambda: None)
    result = ctree.measure(300, 6, "number", None, 1000)
    assert "party" not in result
    assert "-" in ctree.line(result)
