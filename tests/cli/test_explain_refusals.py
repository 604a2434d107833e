"""`mcce explain`: invalid input gives one line and exit code 2."""

import re

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.cli import main
from mcce.cli.checking import read_decision, read_interval
from tests.cli.problem import explain, trained

MODEL = "model.joblib"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--decision", "1"], "there is no model: give --model FILE, or --response COLUMN"),
        (["--response", "default"], "--response default needs --decision: one of 'False', 'True'"),
        (
            ["--response", "defalt", "--decision", "1"],
            "--response 'defalt' is not a column of .*; did you mean 'default'",
        ),
        (["--response", "default", "--decision", "nope"], "--decision is 'nope', which is not a class of the model"),
        (
            ["--response", "default", "--decision", "0,1", "--of", "Tru"],
            "--of is 'Tru', .* did you mean 'True'",
        ),
        (["--response", "default", "--decision", "True", "--of", "True"], "--of True goes with an interval"),
        (["--response", "default", "--decision", "[0,1"], r"--decision is '\[0,1'; write an interval as"),
        (["--response", "default", "--decision", "1,0"], "low > high; swap the ends"),
        (
            ["--model", MODEL, "--decision", "False", "--fixed", "sexx"],
            "--fixed 'sexx' is not a column of .*train.csv; did you mean 'sex'",
        ),
        (
            ["--model", MODEL, "--decision", "False", "--sampler", "cartt"],
            "no sampler 'cartt'; did you mean 'cart'",
        ),
        (
            ["--model", MODEL, "--decision", "False", "--kinds", "a=numeric"],
            "--kinds 'a' is not a column",
        ),
        (["--model", MODEL, "--decision", "False", "--id", "who"], "--id 'who' is not a column of"),
        (
            ["--model", MODEL, "--decision", "False", "--id", "sex"],
            "--id sex: .* 'female' more than once",
        ),
        (
            ["--model", MODEL, "--decision", "False", "--visit-sequence", "age"],
            "--visit-sequence must name each",
        ),
        (["--model", MODEL, "--decision", "False", "--out", "/nowhere/cf.csv"], "/nowhere"),
        (["--model", MODEL, "--decision", "False", "--out", "."], "--out . is a folder; give the name of a file"),
        (["--model", MODEL, "--decision", "False", "--out", "/"], "--out / is a folder; give the name of a file"),
        (["--model", MODEL, "--decision", "False", "--html", "."], "--html . is a folder; give the name of a file"),
        (
            ["--model", MODEL, "--decision", "False", "--n-samples", "1000000000000"],
            "--n-samples is 1000000000000; it must be a whole number of at least 1 and at most 10000000, or 'auto'",
        ),
        (
            ["--response", "default", "--decision", "False", "--date-format", "age=%d%d"],
            "column 'age' of .* holds dates by option, read as 3131, but line 2 holds '[0-9]+'",
        ),
        (["--model", "/nowhere/m.joblib"], "--model /nowhere/m.joblib: there is no such file"),
        (["--model", __file__], "cannot be loaded .* written by joblib.dump"),
    ],
)
def test_invalid_values_give_one_line_and_exit_code_2(arguments, message, folder, capsys):
    arguments = [folder / a if a == MODEL else a for a in arguments]
    assert explain(folder, *arguments) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert len(errors) == 1
    assert errors[0].startswith("mcce: error: ")
    assert re.search(message, errors[0]), errors[0]


def test_interval_message_names_the_score():
    assert read_decision("0.5,1", None, [0, 1]) == read_interval("0.5,1", None)
    assert read_decision("0.5,1", "good", ["bad", "good"]).of == "good"
    for classes, listed in ((["bad", "good"], "'bad', 'good'"), ([0, 1, 2], "'0', '1', '2'")):
        with pytest.raises(mcce.InputError, match=rf"--decision \[0.5, 1\] needs --of, .*: one of {listed}"):
            read_decision(None, None, classes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file"),
        (b"", "is empty; it needs a header and rows"),
        (b"a,b,default\n", "has a header but no rows"),
        (b"a,b\n1,2\n1,2,3,4\n", "line 3 has 4 cell(s), '1 2 3 4', and the header has 2 names"),
        (b"\xff\xfe\x00\x81,\n1,2", "or save it as UTF-8"),
        (b"a,default\nBod\x81,x\n", "or save it as UTF-8"),
        (
            b"a,default\n0,x,1\n1,x,2\n",
            "line 2 has 3 cell(s), '0 x 1', and the header has 2 names. Correct or remove the line",
        ),
        (b"a,default,\n1,x,\n2,x,\n", "'x' in 2 rows only; training needs two values"),  # separators at the ends
        (b"a/b/default\n1/2/3\n", "--response 'default' is not a column of"),
        (b"a,default\n1,x\n2,x\n", "'x' in 2 rows only; training needs two values"),
    ],
)
def test_bad_training_files(content, message, folder, tmp_path, capsys):
    if content is not None:
        (tmp_path / "bad.csv").write_bytes(content)
    wanted = "x" if content and b"x" in content and b"\xff" not in content else "False"
    assert (
        explain(
            folder,
            "--response",
            "default",
            "--decision",
            wanted,
            train=tmp_path / "bad.csv",
            new=tmp_path / "bad.csv",
        )
        == 2
    )
    said = capsys.readouterr().err
    assert message in said
    assert str(tmp_path / "bad.csv") in said or "training needs" in said


def test_given_separator_is_used(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a;b;default\n1;2;3\n")
    assert explain(tmp_path, "--response", "default", "--decision", "3", "--sep", ",", train=path, new=path) == 2
    assert "has one column, 'a;b;default'; is it separated by --sep ';'" in capsys.readouterr().err


def test_constant_numeric_response_raises(tmp_path, capsys):
    path = tmp_path / "one.csv"
    path.write_text("a,default\n1,7\n2,7\n")
    assert explain(tmp_path, "--response", "default", "--decision", "0,8", train=path, new=path) == 2
    assert "default has 7 in 2 rows only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(housing="castle"), "bad.csv holds the level 'castle' (row 1), unknown here"),
        (lambda t: t.drop(columns="salary"), "the feature 'salary' is not a column of"),
        (lambda t: t.assign(salary="much"), "bad.csv is numeric in the training data, but line 2 holds 'much'"),
    ],
)
def test_bad_rows_to_explain(change, message, folder, tmp_path, capsys):
    change(pd.read_csv(folder / "new.csv")).to_csv(tmp_path / "bad.csv", index=False)
    assert trained(folder, new=tmp_path / "bad.csv") == 2
    assert message in capsys.readouterr().err


def test_model_features_must_be_in_the_training_file(folder, tmp_path, capsys):
    pd.read_csv(folder / "train.csv").drop(columns="savings").to_csv(tmp_path / "t.csv", index=False)
    assert explain(folder, "--model", folder / "model.joblib", train=tmp_path / "t.csv") == 2
    assert "model.joblib 'savings' is not a column of" in capsys.readouterr().err


def test_numeric_response_rejects_a_label(folder, capsys):
    files = {"train": "air.csv", "new": "air.csv"}
    assert explain(folder, "--response", "Ozone", "--decision", "15", **files) == 2
    assert "--response Ozone is a number (" in (said := capsys.readouterr().err)
    assert "if its values are classes, add --kinds Ozone=categorical" in said


def test_response_unsupported_by_the_built_in_model(tmp_path, capsys):
    pd.DataFrame({"x": range(40), "y": [1.0, 2.0, 3.0, np.inf] * 10}).to_csv(tmp_path / "t.csv", index=False)
    files = {"train": "t.csv", "new": "t.csv"}
    assert explain(tmp_path, "--response", "y", "--decision", "0,2", **files) == 2
    assert "no model can be trained on" in capsys.readouterr().err


def test_too_many_levels_for_the_built_in_model(tmp_path, capsys):
    table = pd.DataFrame({"name": [f"n{i}" for i in range(300)], "y": ["a", "b"] * 150})
    table.to_csv(tmp_path / "t.csv", index=False)
    assert explain(tmp_path, "--response", "y", "--decision", "a", train="t.csv", new="t.csv") == 2
    assert "column 'name' of" in (said := capsys.readouterr().err)
    assert "has 300 different values, more than the 255" in said


@pytest.mark.parametrize("option", ["train", "explain", "model", "constraints", "out", "html", "letters"])
@pytest.mark.parametrize(("name", "why"), [("", "it is empty"), ("a\0b", "it holds a NUL character")])
def test_invalid_file_names(option, name, why, folder, capsys):
    with pytest.raises(SystemExit, match="2"):
        explain(folder, f"--{option}", name)
    said = f"mcce explain: error: argument --{option}: {name!r} is not a valid file name: {why}; give another name"
    assert capsys.readouterr().err.splitlines()[-1] == said


@pytest.mark.parametrize(
    "command", [["inspect"], ["explain-batches", "--explain", "x.csv", "--out"], ["demo", "--out"]]
)
@pytest.mark.parametrize(("name", "why"), [("", "it is empty"), ("a\0b", "it holds a NUL character")])
def test_invalid_file_names_of_other_commands(command, name, why, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([*command, name])
    assert f"{name!r} is not a valid file name: {why}" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["n-samples", "n-counterfactuals", "max-changes", "min-donors", "random-state"])
def test_numbers_of_thousands_of_digits(option, folder, capsys):
    with pytest.raises(SystemExit, match="2"):
        explain(folder, f"--{option}", "1" * 5000)
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.search(rf"argument --{option}: '1+\.\.\.1+' is not a whole number", last)
    assert len(last) < 350


@pytest.mark.parametrize("given", [("--language", "nb"), ("--all",), ("--reasons",)], ids=lambda given: given[0])
def test_letter_options_require_letters(folder, capsys, given):
    assert explain(folder, "--model", folder / "model.joblib", "--decision", "[0,0.1)", "--out", "-", *given) == 2
    wrong = f"{given[0]} goes with --letters; add --letters FOLDER, or leave {given[0]} out."
    assert wrong in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fixed", "agee"], "--fixed 'agee' is not a column of .*train.csv; did you mean 'age'"),
        (["--fixed", "default"], "--fixed 'default' is not a column of the features of .*train.csv"),
        (["--kinds", "agee=numeric"], "--kinds 'agee' is not a column of .*train.csv; did you mean 'age'"),
        (["--ordered", "housin=rent<own"], "--ordered 'housin' is not a column of .*; did you mean 'housing'"),
        (["--feature-weights", "agee=2,sex=1"], "--feature-weights 'agee' is not a column of .*; did you mean 'age'"),
        (["--sampler", "agee=cart,*=cart"], "--sampler 'agee' is not a column of .*; did you mean 'age'"),
        (["--labels", "agee=years,prediction=risk"], "--labels 'agee' is not a column of .*; did you mean 'age'"),
        (["--id", "who"], "--id 'who' is not a column of .*new.csv"),
    ],
)
def test_mistyped_columns_are_found_before_training(arguments, message, folder, capsys, monkeypatch):
    monkeypatch.setattr("mcce.cli.fitting.train_model", lambda *_: pytest.fail("a model was trained"))
    assert explain(folder, "--response", "default", "--decision", "False", *arguments) == 2
    assert re.search(message, capsys.readouterr().err)
