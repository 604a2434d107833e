"""The benchmark of numbers of draws runs and writes its results."""

from __future__ import annotations

import pytest

from benchmarks import draws


@pytest.mark.nightly
def test_runs_and_writes(tmp_path, capsys, monkeypatch):
    names = ["loans", "adult"]
    monkeypatch.setattr(draws, "PROBLEMS", [one for one in draws.PROBLEMS if one.name in names])
    assert draws.main(["--quick", "--out", str(tmp_path / "draws.md")]) == 0
    said = capsys.readouterr().out
    assert said.count("whole draws") == said.count("sparse") == len(names) * (4 + 1 + 4)
    assert max(len(line) for line in said.splitlines()) <= 120
    assert said.strip() in (tmp_path / "draws.md").read_text()
