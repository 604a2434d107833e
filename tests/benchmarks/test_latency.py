"""The latency benchmark on a simulated wide table."""

from __future__ import annotations

import re

import pytest

from benchmarks.latency import main, simulate_wide


def test_simulated_table_has_numbers_and_levels():
    table = simulate_wide(30, 100)
    assert table.shape == (100, 30)
    assert (table.select_dtypes("number").shape[1], table["c29"].nunique()) == (21, 5)


@pytest.mark.filterwarnings("ignore::mcce.exceptions.AdviceWarning")
def test_each_step_is_measured(capsys):
    pytest.importorskip("resource")
    assert main(["--wide", "30", "200", "--people", "2"]) == 0
    parts = r"(?:, (?:relations|plausibility|usual values) [\d.]+ s)*"
    line = rf"^([\w, ]+): [\d.]+ s, of the model [\d.]+ s{parts}, peak [\d.]+ GB$"
    found = re.findall(line, capsys.readouterr().out, re.MULTILINE)
    assert found == ["fit", "plain", "sparse", "sparse, again"]
