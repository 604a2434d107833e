"""The command line, run in this process."""

import runpy
import subprocess
import sys
from argparse import Namespace
from importlib import metadata

import numpy as np
import pytest

import mcce
from mcce.cli import COMMANDS, main, make_parser
from mcce.cli.checking import read_class, read_interval

# ---- the program


def test_version_with_python_m(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["mcce", "--version"])
    monkeypatch.delitem(sys.modules, "mcce.__main__", raising=False)  # another test may have imported it
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("mcce", run_name="__main__", alter_sys=True)
    assert (ended.value.code, capsys.readouterr().out) == (0, f"mcce {mcce.__version__}\n")


def test_help_lists_commands_and_warns_of_model_files(capsys):
    for arguments in (["--help"], ["explain", "--help"]):
        with pytest.raises(SystemExit) as exit:
            main(arguments)
        assert exit.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "demo" in text
    assert "runs code when it is opened: open trusted files only" in text
    assert "3 done, but nothing was found for some rows" in text
    assert 'a negative one is written --decision=-5,3 or "[-5,3]"' in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["demo", "--factuals", "0"], "'0' is not a whole number of at least 1"),
        (["explain", "--train", "a.csv"], "--explain"),
        (["explain", "--train", "a", "--explain", "b", "--sep", ";;"], "';;' is not a single character"),
    ],
)
def test_invalid_arguments_exit_with_2(arguments, message, capsys):
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    assert message in capsys.readouterr().err


class Point:
    def __init__(self, name, load):
        self.name, self.value, self.load = name, f"package:{name}", load


def test_entry_point_adds_a_command(monkeypatch, capsys):
    def add(commands):
        parser = commands.add_parser("greet", help="say hello")
        parser.add_argument("whom")
        parser.set_defaults(run=greet)

    def greet(arguments: Namespace) -> int:
        print("hello", arguments.whom)
        return 7

    def broken():
        raise ImportError("no module 'rpy2'")

    points = [Point("greet", lambda: add), Point("parity", broken), Point("demo", lambda: add)]
    monkeypatch.setattr("mcce.cli.installed", lambda group: points if group == "mcce.commands" else [])
    assert main(["greet", "world"]) == 7
    said = capsys.readouterr()
    assert said.out == "hello world\n"
    assert "the command 'demo' (package:demo) cannot be added: the name is taken" in said.err
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr()
    assert "write letters about the decisions for the rows of a file" in said.out
    assert "the command 'parity' (package:parity) cannot be added: no module 'rpy2'" in said.err


def test_wrong_arguments_are_reported_before_large_imports():
    code = "import sys; from mcce.cli import COMMANDS, main\n"
    code += (
        "typed = [['explane'], *([name, '--trian'] for name in COMMANDS), ['fit', '--n-jobs', 'two'], ['explain']]\n"
    )
    code += (
        "typed += [['explain', '--explain', 'x.csv'], ['letters', 'x.mcce', 'x.csv'], ['explain', 'x.mcce', 'x.csv']]\n"
    )
    code += "typed += [['explain-batches', '--out', 'x'], ['fit', '--train', 'x.csv', '--save', 'x.mcce']]\n"
    code += "typed += [['inspect', 'x.mcce'], ['card', 'x.mcce'], ['verify', 'x'], ['explore', 'x.mcce', 'x.csv']]\n"
    code += "typed += [['disclosure', '--explainer', 'x.mcce', '--train', 'x.csv', '--holdout', 'x.csv']]\n"
    code += "for each in typed:\n"
    code += "    try: status = main(each)\n"
    code += "    except SystemExit as e: status = e.code\n"
    code += "    print(status, sorted({'numba', 'pandas', 'sklearn'} & {*sys.modules}))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["2 []"] * (len(COMMANDS) + 13)
    assert "mcce letters: error: the following arguments are required: --letters" in said.stderr
    assert "mcce: error: --explain x.csv: there is no such file" in said.stderr
    assert "mcce: error: FILE x.mcce: there is no such file" in said.stderr
    assert "mcce: error: FOLDER x: there is no such file or folder" in said.stderr
    assert "invalid choice: 'explane'" in said.stderr
    assert "explain-batches" in said.stderr
    assert "unrecognized arguments: --trian" in said.stderr
    assert "argument --n-jobs: 'two' is not a whole number" in said.stderr


def test_installed_packages_are_read_at_most_once(monkeypatch):
    read = []
    distributions = metadata.distributions
    monkeypatch.setattr(metadata, "distributions", lambda **options: read.append(options) or distributions(**options))
    make_parser()
    make_parser()
    assert len(read) <= 1


# ---- reading decisions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.5,1", "[0.5, 1]"),
        ("[0, 0.1)", "[0, 0.1)"),
        ("(-inf,15]", "(-inf, 15]"),
        ("(20,inf)", "(20, inf)"),
        ("yes", None),
        ("yes, please", None),
        ("3", None),
    ],
)
def test_intervals_are_distinguished_from_labels(text, expected):
    interval = read_interval(text, None)
    assert (None if interval is None else interval.bounds()) == expected


def test_class_is_matched_by_spelling_and_keeps_its_type():
    assert read_class("--decision", "true", np.array([False, True])) is True
    assert read_class("--decision", "1", np.array([0.0, 1.0])) == 1.0
    assert read_class("--decision", "1", np.array(["0", "1"])) == "1"
    with pytest.raises(mcce.InputError, match="declares no classes; give --decision an interval"):
        read_class("--decision", "1", None)


def test_help_lists_the_registered_samplers(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    assert f"there are {', '.join([*mcce.available_samplers(), 'auto'])}" in capsys.readouterr().out
