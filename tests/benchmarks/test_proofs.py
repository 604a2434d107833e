"""The benchmark of proofs runs and writes its table; seconds are never asserted."""

from __future__ import annotations

import pytest

from benchmarks import proofs


@pytest.mark.slow
def test_runs_and_writes(tmp_path, capsys):
    out = tmp_path / "proofs.md"
    assert proofs.main(["--only", "logistic regression", "--features", "10", "--out", str(out)]) == 0
    assert "| logistic regression | 10 | none exists | " in out.read_text()
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 120


def test_unknown_model_raises(capsys):
    with pytest.raises(SystemExit):
        proofs.main(["--only", "oracle"])
    assert "--only names oracle; there are logistic regression" in capsys.readouterr().err
