"""`mcce parity`, run in this process by its entry point."""

import argparse
import re
import sys
from importlib import import_module, metadata
from pathlib import Path

import pytest

from mcce.cli import BAD_INPUT, DONE, main
from mcce.datasets import load_airquality, load_loans
from r_bridge.cli import PARTED, add_parity

if sys.version_info >= (3, 11):
    import tomllib


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Register the command, also if the package is not installed but on the path."""
    point = metadata.EntryPoint("parity", "r_bridge.cli:add_parity", "mcce.commands")
    monkeypatch.setattr("mcce.cli.installed", lambda group: [point])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    loans = load_loans(200)
    loans.X.drop(columns="education").assign(default=loans.y).to_csv(folder / "loans.csv", index=False)
    air = load_airquality()
    air.X.assign(Ozone=air.y).to_csv(folder / "air.csv", index=False)
    return folder


@pytest.mark.skipif(sys.version_info < (3, 11), reason="reads pyproject.toml with Python 3.11's tomllib")
def test_entry_points_exist():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    groups = tomllib.loads(text)["project"]["entry-points"]
    assert groups["mcce.commands"] == {"parity": "r_bridge.cli:add_parity"}
    for value in [*groups["mcce.commands"].values(), *groups["mcce.samplers"].values()]:
        module, name = value.split(":")
        assert callable(getattr(import_module(module), name))


def test_help_describes_purpose_and_exit_codes(capsys):
    with pytest.raises(SystemExit):
        main(["parity", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "compare every stage" in text
    assert "Exit codes: 0 all compared values agree; 1 R and mcce differ; 2" in text


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["rpart", "ctree"])
def test_embedded_example_agrees(r, need, engine, capsys, compared, tmp_path):
    need({"rpart": "rpart", "ctree": "party"}[engine])
    code = main(["parity", "--engine", engine, "--without-mccer", "--html", str(tmp_path / "page.html")])
    shown = capsys.readouterr()
    assert code == DONE
    assert f"({engine}, 3 factuals, K = 1,000, fit_seed 1, generate_seed 2)" in " ".join(shown.out.split())
    assert "all agree" in shown.out
    assert "<h1>Parity with R</h1>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    compared("values of `mcce parity`", re.search(r"([\d,]+) values compared", shown.out)[1].replace(",", ""))


@pytest.mark.slow
def test_file_with_classes_and_levels(r, need, files, capsys):
    need("rpart")
    options = ["--fixed", "age,sex", "--decision", "0,0.1", "--n-samples", "50", "--engine", "rpart", "--without-mccer"]
    assert main(["parity", "--train", str(files / "loans.csv"), "--response", "default", *options]) == DONE
    text = capsys.readouterr().out
    assert "generated rows, housing" in text
    assert "measures    gower" in text
    assert "all agree" in text


def test_file_with_a_number_and_missing_values(r, need, files, capsys):
    need("party")
    options = ["--decision=-inf,20", "--n-samples", "40", "--engine", "ctree", "--explain", "2", "--without-mccer"]
    assert main(["parity", "--train", str(files / "air.csv"), "--response", "Ozone", *options]) == DONE
    shown = capsys.readouterr()
    assert "42 of 153 rows have missing values and are dropped" in shown.err
    assert "2 factuals" in shown.out


def test_disagreement_has_a_separate_exit_code(r, need, monkeypatch, capsys):
    need("party")
    from mcce import rcompat

    def other(x_explain, fitted, K, rng):
        rng.uniform(1)
        return rcompat.generate(x_explain, fitted, K, rng)

    monkeypatch.setattr("r_bridge.parity.generate", other)
    assert main(["parity", "--engine", "ctree", "--n-samples", "20", "--without-mccer"]) == PARTED
    shown = capsys.readouterr()
    assert "ctree: R and mcce differ at generate: generated rows" in shown.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--train", "nothing.csv", "--response", "y"], "there is no such file"),
        (["--train", "{air}"], "needs --response: one of"),
        (["--train", "{air}", "--response", "Ozon", "--decision", "1,2"], "did you mean 'Ozone'"),
        (["--train", "{air}", "--response", "Ozone"], "--decision must say which predictions"),
        (["--train", "{air}", "--response", "Ozone", "--decision", "(1,2)"], "give two numbers, both included"),
        (["--train", "{air}", "--response", "Ozone", "--decision", "1,2", "--fixed", "Winds"], "did you mean 'Wind'"),
        (["--train", "{air}", "--response", "Ozone", "--decision", "1,2", "--explain", "500"], "leaves no row"),
        (["--response", "Ozone"], "--response needs --train"),
        (["--train", "{loans}", "--response", "housing"], "has 3 classes"),
    ],
)
def test_bad_arguments(r, files, capsys, options, message):
    paths = {"air": files / "air.csv", "loans": files / "loans.csv"}
    assert main(["parity", *(option.format(**paths) for option in options)]) == BAD_INPUT
    assert message in " ".join(capsys.readouterr().err.split())


def test_missing_r_is_reported(monkeypatch, capsys):
    from r_bridge import RBridgeError

    def missing():
        raise RBridgeError(
            "the bridge to R needs the Python package rpy2, which is not installed: pip install 'mcce[r]'"
        )

    monkeypatch.setattr("r_bridge.frames.session", missing)
    assert main(["parity"]) == BAD_INPUT
    assert "pip install 'mcce[r]'" in capsys.readouterr().err


def test_parser_can_be_added_to_any_subparsers():
    commands = argparse.ArgumentParser().add_subparsers()
    add_parity(commands)
    assert "parity" in commands.choices
