"""The benchmark of import times runs; seconds are never asserted."""

import pytest

from benchmarks import imports


@pytest.mark.nightly
def test_runs_and_writes(tmp_path, capsys):
    assert imports.main(["--runs", "1", "--out", str(tmp_path / "imports.md")]) == 0
    said = capsys.readouterr().out
    assert "| `import mcce` | " in said
    assert said.strip() in (tmp_path / "imports.md").read_text()


def test_ratios_are_relative_to_the_first_line():
    seconds = dict.fromkeys(imports.CODE, 1.5) | {"import numpy, pandas, numba": 0.5}
    assert imports.describe(seconds).count("| 1.50 | 3.00 |") == 3
