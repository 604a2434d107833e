"""The benchmark of the test behind `check_graph` runs and writes its results."""

from __future__ import annotations

import pytest

from benchmarks import graph_test


@pytest.mark.slow
def test_runs_and_writes(tmp_path, capsys):
    out = tmp_path / "graph_test.md"
    assert graph_test.main(["--only", "levels-levels", "--tables", "2", "--dependent", "1", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.count("levels-levels") == 4
    assert max(len(line) for line in said.splitlines()) <= 120
    assert "Seeds 90,000 to 90,011." in out.read_text()


def test_columns_are_the_parents_and_the_pair():
    table = graph_test.make_table((False, True), 2, 0.2, 1)
    assert table.names == ["a", "b", "x", "y"]
    assert [each.kind for each in table.features] == ["numeric", "categorical", "numeric", "categorical"]
