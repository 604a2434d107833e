"""The benchmark of differential privacy runs, writes its page, and measures external rows."""

import numpy as np
import pandas as pd
import pytest

import mcce
from benchmarks import dp, dp_others


@pytest.mark.nightly
def test_runs_and_writes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(dp, "discriminator", lambda *args, **options: type("Told", (), {"accuracy": 0.5}))
    out = tmp_path / "dp.md"
    arguments = ["--only", "loans", "--epsilon", "3", "--repeats", "1", "--training", str(tmp_path)]
    assert dp.main([*arguments, "--out", str(out)]) == 0
    text = out.read_text()
    for label in ("cart, not private", "epsilon 3", "epsilon 1, delta 1e-06"):
        assert f"| {label} |" in text
    assert "discriminator" in capsys.readouterr().out

    training = pd.read_csv(tmp_path / "loans.csv")
    assert training.columns[-1] == "<decision>"
    assert len(training) == 2400
    training.to_csv(tmp_path / "loans-copies.csv", index=False)
    columns = [f"{what} {sparse}" for what in ("explained", "L0", "L1") for sparse in (False, True)]
    monkeypatch.setattr(dp, "measure", lambda *arguments: dict.fromkeys(["discriminator", "valid", *columns], 0.5))
    assert dp.main([*arguments, "--rows", str(tmp_path), "--out", str(out)]) == 0
    cells = next(line for line in out.read_text().splitlines() if line.startswith("| copies |")).split("|")
    assert float(cells[3]) == 1.0  # training rows explain all factuals
    assert [cell.strip() for cell in cells[7:10]] == ["", "", ""]  # sparse rows are not requested


def test_external_rows_have_the_levels_and_the_nearest_numbers(monkeypatch):
    monkeypatch.setattr(dp, "NEAREST", 2)
    rows = pd.DataFrame({"sex": ["f", "f", "f", "m"], "age": [30, 31, 60, 30], "pay": [1, 2, 3, 4]})
    ready = dp.ReadyRows(rows)
    ready.fit(rows)
    drawn = ready.sample(50, {"sex": "f", "age": 29}, random_state=1)
    assert set(drawn["pay"]) == {1, 2}
    assert set(ready.sample(50, {"sex": "x"}, random_state=1)["pay"]) == {1, 2, 3, 4}  # no two rows are similar


def test_every_number_has_public_bounds():
    data = mcce.datasets.load_loans(50).X
    numbers = [name for name in data if np.issubdtype(getattr(data[name].dtype, "type", object), np.integer)]
    assert set(numbers) == set(dp.BOUNDS["loans"])


def test_other_packages_get_the_public_bins(tmp_path):
    """Encoded values are restored: levels exactly, numbers to their bins."""
    X = mcce.datasets.load_loans(500).X
    public = dp.public("loans", X)
    path = tmp_path / "loans.csv"
    X.assign(**{"<decision>": X["salary"] > 50_000}).to_csv(path, index=False)
    rows = pd.read_csv(path, keep_default_na=False)
    coded = dp_others.encode(rows, public)
    assert (coded >= 0).all(axis=None)
    again = dp_others.decode(coded, public, 1)
    assert again.columns.tolist() == rows.columns.tolist()
    for name in rows:
        if name in dp.BOUNDS["loans"]:
            assert (dp_others.encode(again, public)[name] == coded[name]).all()
            assert not (again[name] == rows[name]).all()
        else:
            assert (again[name].astype(str) == rows[name].astype(str)).all()
