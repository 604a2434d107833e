"""The benchmark of disclosure by explanations runs and writes its page."""

import numpy as np
import pytest

from benchmarks import privacy


@pytest.mark.nightly
def test_runs_and_writes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(privacy, "WAYS", privacy.WAYS[:2])
    monkeypatch.setattr(privacy, "QUERIED", privacy.QUERIED[1:2])
    out = tmp_path / "privacy.md"
    options = ["--only", "loans", "--rows", "400", "--attacked", "20", "--splits", "2"]
    assert privacy.main([*options, "--out", str(out)]) == 0
    text = out.read_text()
    assert "| leaves of 1 |" in text
    assert "| sparse |" in text
    assert "| adult | 1000 | 28.7 | 11 |" in text
    assert "leaves of 5, the default" in capsys.readouterr().out


def test_repeated_queries_are_pooled_over_splits(monkeypatch):
    monkeypatch.setattr(privacy, "N_RESAMPLES", 199)
    others = np.arange(200.0)
    members = np.concatenate([np.full(30, 500.0), np.zeros(70)])
    line = privacy.summarise("some", [(members, others), (members, others)])
    assert line[:3] == ["some", "200", "400"]
    found, low, high, chance = map(float, line[4:])
    assert found == 0.3
    assert low < 0.3 < high
    assert chance == 0.005
    same = privacy.summarise("some", [(others[::2], others[1::2])])
    assert float(same[-1]) > 0.05
