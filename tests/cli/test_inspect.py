"""`mcce inspect`: what a saved file discloses."""

import json

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.cli import BAD_INPUT, DONE, main
from tests.storage import good


def inspected(capsys, *arguments):
    assert main(["inspect", *map(str, arguments)]) == DONE
    return capsys.readouterr().out


def test_chain_file(tmp_path, capsys):
    good.chain("cart", decision=True).save(tmp_path / "chain.mcce")
    text = inspected(capsys, tmp_path / "chain.mcce")
    for said in (
        "ChainModel, format 1",
        f"mcce {mcce.__version__}, numpy {np.__version__}, pandas {pd.__version__}",
        "training values are in the file",
        "the fixed values (sex) of all 60 training rows",
        "the decision on each of the 60 training rows",
        "random_state    5",
        r"""5 levels: '', '<script>', 'a,b', 'c"d', 'é\n'""",
        "from 2020-01-01 00:00:00 to 2020-02-26 00:00:00",
        "CartSampler()",
    ):
        assert said in text
    n_known = int(good.table()["x"].notna().sum())
    assert f"{n_known} training values of it, and the training rows they are of" in text


@pytest.mark.nightly
def test_contents_by_sampler(tmp_path, capsys):
    X = good.table()
    for name in good.CHAINS:
        good.chain(name).save(tmp_path / "chain.mcce")
        described = json.loads(inspected(capsys, tmp_path / "chain.mcce", "--json"))
        held = {column["name"]: column.get("holds") for column in described["columns"]}
        assert held.pop("sex") is None
        assert all(held.values()), name
        if name == "marginal":
            assert held == {str(f): f"{X[f].notna().sum()} training values of it" for f in X.columns if f != "sex"}


def test_explainer_file(tmp_path, capsys):
    good.explainer().save(tmp_path / "explainer.mcce")
    text = inspected(capsys, tmp_path / "explainer.mcce")
    for said in (
        "MCCE, format 1",
        "16 whole training rows, and the model's predictions for them",
        "hashes of 60 training rows",
        "whole training rows, as nearest neighbours",
        "n: at least 1, may only rise",
        "if sex == 'f' then n >= 2",
    ):
        assert said in text


def test_file_without_donors(tmp_path, capsys):
    sampler = {"paid": "logreg", 7: "polr", "job": "polyreg", "*": "norm"}
    made = mcce.MCCE(good.accepted, sampler=sampler, fixed=["sex"], random_state=1).fit(good.table(missing=False))
    made.save(tmp_path / "bare.mcce", donors="none")
    text = inspected(capsys, tmp_path / "bare.mcce")
    assert "saved without training values (donors='none')" in text
    assert "training rows" not in text
    assert "training values of it" not in text


def test_result_file(tmp_path, capsys):
    good.counterfactuals().save(tmp_path / "found.mcce")
    described = json.loads(inspected(capsys, tmp_path / "found.mcce", "--json"))
    assert described["kind"] == "Counterfactuals"
    assert described["discloses"][0] == "all 12 rows that were explained"
    assert {column["name"] for column in described["columns"]} == {*map(str, good.table().columns)}


def test_terminal_escape_sequences_are_not_printed(tmp_path, capsys):
    X = pd.DataFrame({"\x1b[2Jx": ["\x1b]0;title\x07", "b"] * 10, "y\u202e": range(20)})
    mcce.ChainModel(random_state=1).fit(X).save(tmp_path / "chain.mcce")
    text = inspected(capsys, tmp_path / "chain.mcce")
    assert not {c for c in text if not c.isprintable()} - {"\n"}
    assert r"\x1b[2Jx" in text


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06" + b"\0" * 18])
def test_invalid_files(data, tmp_path, capsys):
    (tmp_path / "x.mcce").write_bytes(data)
    assert main(["inspect", str(tmp_path / "x.mcce")]) == BAD_INPUT
    assert "error: 'x.mcce' cannot be loaded: it is not a file of mcce" in capsys.readouterr().err
    assert main(["inspect", str(tmp_path / "nothing.mcce")]) == BAD_INPUT
    assert "there is no such file" in capsys.readouterr().err
