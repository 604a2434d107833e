"""The benchmark of disclosure by explanations runs and writes its page."""

import pytest

from benchmarks import privacy


@pytest.mark.nightly
def test_runs_and_writes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(privacy, "WAYS", privacy.WAYS[:2])
    out = tmp_path / "privacy.md"
    assert privacy.main(["--only", "loans", "--rows", "400", "--attacked", "20", "--out", str(out)]) == 0
    text = out.read_text()
    assert "| leaves of 1 |" in text
    assert "| adult | 1000 | 28.7 | 11 |" in text
    assert "leaves of 5, the default" in capsys.readouterr().out
