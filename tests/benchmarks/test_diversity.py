"""The comparison of diverse counterfactuals runs, with DiCE or the reason why it is skipped."""

import pytest

from benchmarks import diversity


@pytest.mark.slow
def test_runs_and_writes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(diversity, "find_dice_problem", lambda: "DiCE is left out: not here.")
    out = tmp_path / "diversity.md"
    assert diversity.main(["--factuals", "3", "--rows", "500", "--k", "2", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    for name in ("whole draws, best", "whole draws, diverse", "sparse, best", "sparse, diverse"):
        assert name in said
    assert "DiCE is left out: not here." in said
    assert said.strip() in out.read_text()
