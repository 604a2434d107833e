"""The command line, run in this process; one run in a process of its own."""

import io
import re
import subprocess
import sys
from argparse import Namespace
from importlib import metadata
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

import mcce
from mcce.cli import main
from mcce.cli.wanted import read_class, read_interval, read_wanted
from mcce.datasets import load_airquality, load_loans

MODEL = "model.joblib"
README_PICTURE = Path(__file__).parents[2] / "vignettes" / "images" / "change.png"
LEVELS = ["sex", "education", "employment", "housing"]


@pytest.fixture(autouse=True)
def one_thread():
    """Threads cost more than they give on tables this small, and far more on a busy machine."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A training file, rows to explain, and a pipeline trained on the file as pandas reads it."""
    folder = tmp_path_factory.mktemp("files")
    loans = load_loans(600)
    train = loans.X.assign(default=loans.y)
    train.to_csv(folder / "train.csv", index=False)
    train.drop(columns="default").iloc[:25].to_csv(folder / "new.csv", index=False)
    read = pd.read_csv(folder / "train.csv")
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), LEVELS),
        remainder=StandardScaler(),
    )
    model = make_pipeline(encode, LogisticRegression(max_iter=1000))
    joblib.dump(model.fit(read.drop(columns="default"), read["default"]), folder / "model.joblib")
    air = load_airquality(dropna=True)
    air.X.assign(Ozone=air.y).to_csv(folder / "air.csv", index=False)
    return folder


def explain(folder, *more, train="train.csv", new="new.csv"):
    arguments = ["explain", "--train", str(folder / train), "--explain", str(folder / new)]
    return main([*arguments, "--n-samples", "300", *map(str, more)])


def trained(folder, *more, **files):
    return explain(folder, "--response", "default", "--wanted", "False", *more, **files)


# ---- the program


def test_version_in_a_process_of_its_own():
    run = subprocess.run([sys.executable, "-m", "mcce.cli", "--version"], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, f"mcce {mcce.__version__}\n")


def test_help_names_the_commands_and_the_danger_of_model_files(capsys):
    for arguments in (["--help"], ["explain", "--help"]):
        with pytest.raises(SystemExit) as exit:
            main(arguments)
        assert exit.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "demo" in text
    assert "opening it runs code: only open your own" in text
    assert "3 done, but nothing was found for some rows" in text
    assert 'a negative one is written --wanted=-5,3 or "[-5,3]"' in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["demo", "--factuals", "0"], "'0' is not a whole number of at least 1"),
        (["explain", "--train", "a.csv"], "--explain"),
        (["explain", "--train", "a", "--explain", "b", "--sep", ";;"], "';;' is not a single character"),
    ],
)
def test_bad_arguments_exit_with_2(arguments, message, capsys):
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    assert message in capsys.readouterr().err


class Point:
    def __init__(self, name, load):
        self.name, self.value, self.load = name, f"package:{name}", load


def test_an_entry_point_adds_a_command(monkeypatch, capsys):
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
    monkeypatch.setattr(metadata, "entry_points", lambda group: points if group == "mcce.commands" else [])
    assert main(["greet", "world"]) == 7
    said = capsys.readouterr()
    assert said.out == "hello world\n"
    assert "the command 'parity' (package:parity) cannot be added: no module 'rpy2'" in said.err
    assert "the command 'demo' (package:demo) cannot be added: the name is taken" in said.err


# ---- demo


def test_demo_tells_the_story_and_writes_picture_and_page(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "new"), "--factuals", "20"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.replace(str(tmp_path), "").splitlines())) <= 90
    text = " ".join(said.split())
    assert "A woman of 36 asks her bank for a loan of 14,000 dollars. She earns 68,000" in text
    assert "so she is refused" in text
    assert text.count("the decision would have been the wanted one") == 3
    assert "for 20 of 20 refused customers" in text
    assert "age (fixed) 36 same same same" in text
    changed = [line for line in said.splitlines() if line.count("same") == 2]
    assert len(changed) == 3, "each way changes one feature, another one each time"
    assert "The method as published returns whole drawn customers, with all that comes along: hers has " in text
    assert str(tmp_path / "new" / "mcce-demo.png") in said
    drawn, shown = (imread(path) for path in (tmp_path / "new" / "mcce-demo.png", README_PICTURE))
    assert drawn.shape == shown.shape, "the README's picture is older than the code: copy that of `mcce demo`"
    assert np.abs(drawn - shown).mean() < 0.002, "the README's picture is older than the code: copy that of `mcce demo`"
    page = (tmp_path / "new" / "mcce-demo.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count("<li>") == 3
    assert "data:image/png;base64,iVBOR" in page
    assert "customer 1" in page
    assert "http" not in page


def test_demo_says_where_it_cannot_write(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file"), "--factuals", "1"]) == 2
    assert f"mcce: error: {tmp_path / 'file'}: File exists" in capsys.readouterr().err


# ---- explain: what it does


def test_response_trains_a_model_and_writes_both_files(folder, tmp_path, capsys):
    out = tmp_path / "cf.csv"
    assert trained(folder, "--fixed", "age,sex", "--out", out) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "trained a HistGradientBoostingClassifier for the class 'default'; cross-validated AUC 0." in said.err
    found, rest = pd.read_csv(out), pd.read_csv(tmp_path / "cf.unexplained.csv")
    new = pd.read_csv(folder / "new.csv").set_axis(range(1, 26))
    assert sorted([*found["id"], *rest["id"]]) == list(new.index)
    assert set(rest["reason"]) == {"already has the wanted decision"}
    pd.testing.assert_frame_equal(found[["age", "sex"]], new.loc[found["id"], ["age", "sex"]].reset_index(drop=True))
    assert not found["prediction"].any()


def test_model_is_asked_with_the_columns_and_dtypes_of_the_file(folder, capsys):
    wanted = ["--model", folder / "model.joblib", "--wanted", "[0,0.1)", "--fixed", "age,sex", "--out", "-"]
    assert explain(folder, *wanted, "--n-counterfactuals", "2") == 0
    said = capsys.readouterr()
    found = pd.read_csv(io.StringIO(said.out))
    train = pd.read_csv(folder / "train.csv").drop(columns="default")
    assert (found[list(train)].dtypes == train.dtypes).all()
    model = joblib.load(folder / "model.joblib")
    np.testing.assert_allclose(model.predict_proba(found[list(train)])[:, 1], found["prediction"])
    assert (found["prediction"] < 0.1).all()
    assert set(found["rank"]) == {1, 2}


def test_the_same_seed_gives_the_same_file_for_any_number_of_jobs(folder, capsys):
    texts = []
    for jobs in ("1", "2"):
        assert trained(folder, "--out", "-", "--seed", "5", "--jobs", jobs) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


def test_without_out_a_table_for_people_is_printed(folder, capsys):
    assert trained(folder, "--visit-sequence", "correlation") == 0
    assert "Counterfactuals: " in capsys.readouterr().out


def test_regression_wants_an_interval_and_3_says_that_some_rows_have_nothing(folder, tmp_path, capsys):
    wanted = ["--response", "Ozone", "--wanted", "(-inf,15]", "--fixed", "Wind"]
    files = {"train": "air.csv", "new": "air.csv"}
    assert explain(folder, *wanted, "--out", tmp_path / "cf.csv.gz", **files) == 3
    said = capsys.readouterr().err
    assert "HistGradientBoostingRegressor for the number 'Ozone'; cross-validated R2 0." in said
    assert "not explained, none of the 300 candidates has the wanted decision" in said
    assert (pd.read_csv(tmp_path / "cf.csv.gz")["prediction"] <= 15).all()
    assert (tmp_path / "cf.unexplained.csv").is_file()


def test_a_poor_model_is_called_poor(folder, tmp_path, capsys):
    rng = np.random.default_rng(0)
    noise = pd.DataFrame({"a": rng.normal(size=200), "y": rng.choice(["no", "yes"], 200)})
    noise.to_csv(tmp_path / "noise.csv", index=False)
    files = {"train": "noise.csv", "new": "noise.csv"}
    assert explain(tmp_path, "--response", "y", "--wanted", "yes", "--out", "-", **files) == 0
    assert "warning: that is poor" in capsys.readouterr().err


def test_categorical_numbers_and_codes_that_look_like_numbers_survive(tmp_path, capsys):
    rng = np.random.default_rng(1)
    code = rng.choice(["01", "02", "x"], 300)
    grade = rng.integers(1, 4, 300)
    y = np.where((code == "x") & (grade > 1), "yes", "no")
    table = pd.DataFrame({"code": code, "grade": grade, "size": rng.normal(size=300).round(2), "y": y})
    table.to_csv(tmp_path / "train.csv", index=False)
    table[table["code"] == "01"].head(5).to_csv(tmp_path / "new.csv", index=False)  # alone it reads as 1
    wanted = ["--response", "y", "--wanted", "yes", "--categorical", "grade"]
    assert explain(tmp_path, *wanted, "--out", tmp_path / "cf.parquet") == 0
    found = pd.read_parquet(tmp_path / "cf.parquet")
    assert list(found["code"].cat.categories) == ["01", "02", "x"]
    assert set(found["grade"]) <= {2, 3}
    assert set(found["code"]) == {"x"}


def test_parquet_ids_and_a_saved_row_index(folder, tmp_path, capsys):
    train = pd.read_csv(folder / "train.csv")
    train.to_parquet(tmp_path / "train.parquet")
    new = train.head(8).drop(columns="default").assign(who=[f"p{i}" for i in range(8)], note="x")
    new.to_csv(tmp_path / "new.csv", index=False)
    assert trained(tmp_path, "--id", "who", "--out", tmp_path / "cf.csv", train="train.parquet") == 0
    assert "columns of" in (said := capsys.readouterr().err)
    assert "that are not used: 'note'" in said
    assert set(pd.read_csv(tmp_path / "cf.csv")["id"]) <= set(new["who"])
    train.head(25).set_axis([f"q{i}" for i in range(25)]).to_csv(tmp_path / "indexed.csv")
    assert trained(tmp_path, "--out", "-", train="train.parquet", new="indexed.csv") == 0
    said = capsys.readouterr()
    assert "is taken for the row names" in said.err
    assert "q" in said.out.splitlines()[1].split(",")[0]


def test_nothing_to_explain_is_no_failure(folder, tmp_path, capsys):
    pd.read_csv(folder / "new.csv").head(0).to_csv(tmp_path / "none.csv", index=False)
    html = tmp_path / "r.html"
    assert trained(folder, "--out", "-", "--html", html, new=tmp_path / "none.csv") == 0
    assert capsys.readouterr().out.startswith("id,rank,age,sex")
    assert "<img" not in html.read_text(encoding="utf-8")


def test_html_is_a_page_with_picture_and_table(folder, tmp_path, capsys):
    assert trained(folder, "--html", tmp_path / "r.html") == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "data:image/png;base64," in page
    assert '<td class="n changed"' in page


# ---- explain: what it refuses


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--wanted", "1"], "there is no model: give --model FILE, or --response COLUMN"),
        (["--response", "default"], "--response default needs --wanted: one of 'False', 'True'"),
        (
            ["--response", "defalt", "--wanted", "1"],
            "--response 'defalt' is not a column of .*; did you mean 'default'",
        ),
        (["--response", "default", "--wanted", "nope"], "--wanted is 'nope', which is no class of the model"),
        (
            ["--response", "default", "--wanted", "0,1", "--of", "Tru"],
            "--of is 'Tru', .* did you mean 'True'",
        ),
        (["--response", "default", "--wanted", "True", "--of", "True"], "--of True goes with an interval"),
        (["--response", "default", "--wanted", "[0,1"], r"--wanted is '\[0,1'; write an interval as"),
        (["--response", "default", "--wanted", "1,0"], "low > high; swap the ends"),
        (
            ["--model", MODEL, "--wanted", "False", "--fixed", "sexx"],
            "--fixed 'sexx' is not a column of the features of .*train.csv; did you mean 'sex'",
        ),
        (
            ["--model", MODEL, "--wanted", "False", "--sampler", "cartt"],
            "no sampler 'cartt'; did you mean 'cart'",
        ),
        (
            ["--model", MODEL, "--wanted", "False", "--categorical", "a"],
            "--categorical 'a' is not a column",
        ),
        (["--model", MODEL, "--wanted", "False", "--id", "who"], "--id 'who' is not a column of"),
        (
            ["--model", MODEL, "--wanted", "False", "--id", "sex"],
            "--id sex: .* 'female' more than once",
        ),
        (
            ["--model", MODEL, "--wanted", "False", "--visit-sequence", "age"],
            "visit_sequence must name each",
        ),
        (["--model", MODEL, "--wanted", "False", "--out", "/nowhere/cf.csv"], "/nowhere"),
        (["--model", "/nowhere/m.joblib"], "--model /nowhere/m.joblib: there is no such file"),
        (["--model", __file__], "cannot be loaded .* written by joblib.dump"),
    ],
)
def test_bad_values_are_one_line_and_exit_code_2(arguments, message, folder, capsys):
    arguments = [folder / a if a == MODEL else a for a in arguments]
    assert explain(folder, *arguments) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert len(errors) == 1
    assert errors[0].startswith("mcce: error: ")
    assert re.search(message, errors[0]), errors[0]


def test_an_interval_says_whose_score_it_is():
    assert read_wanted("0.5,1", None, [0, 1]) == read_interval("0.5,1", None)
    assert read_wanted("0.5,1", "good", ["bad", "good"]).of == "good"
    for classes, listed in ((["bad", "good"], "'bad', 'good'"), ([0, 1, 2], "'0', '1', '2'")):
        with pytest.raises(mcce.InputError, match=rf"--wanted \[0.5, 1\] needs --of, .*: one of {listed}"):
            read_wanted(None, None, classes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file"),
        (b"", "is empty; it needs a header and rows"),
        (b"a,b,default\n", "has a header but no rows"),
        (b"a,b\n1,2\n1,2,3,4\n", "cannot be read as a table"),
        (b"\xff\xfe\x00\x81,\n1,2", "; save it as UTF-8"),
        (b"a,default\nBod\x81,x\n", "; save it as UTF-8"),
        (
            b"a,default\n0,x,1\n1,x,2\n",
            "has more values in its rows than names in its header; give every column a name",
        ),
        (b"a,default\n1,x,\n2,x,\n", "'x' in 2 rows only; training needs two values"),  # separators at the ends
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
            "--wanted",
            wanted,
            train=tmp_path / "bad.csv",
            new=tmp_path / "bad.csv",
        )
        == 2
    )
    said = capsys.readouterr().err
    assert message in said
    assert str(tmp_path / "bad.csv") in said or "training needs" in said


def test_a_separator_that_is_given_is_believed(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a;b;default\n1;2;3\n")
    assert explain(tmp_path, "--response", "default", "--wanted", "3", "--sep", ",", train=path, new=path) == 2
    assert "has one column, 'a;b;default'; is it separated by --sep ';'" in capsys.readouterr().err


def test_a_response_of_one_number_cannot_be_trained_on(tmp_path, capsys):
    path = tmp_path / "one.csv"
    path.write_text("a,default\n1,7\n2,7\n")
    assert explain(tmp_path, "--response", "default", "--wanted", "0,8", train=path, new=path) == 2
    assert "default has 7 in 2 rows only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(housing="castle"), "bad.csv holds the level 'castle' on line 2, which"),
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


def test_a_number_as_response_refuses_a_label(folder, capsys):
    files = {"train": "air.csv", "new": "air.csv"}
    assert explain(folder, "--response", "Ozone", "--wanted", "15", **files) == 2
    assert "--response Ozone is a number (" in (said := capsys.readouterr().err)
    assert "if its values are classes, add --categorical Ozone" in said


def test_a_response_that_our_own_model_cannot_take(tmp_path, capsys):
    pd.DataFrame({"x": range(40), "y": [1.0, 2.0, 3.0, np.inf] * 10}).to_csv(tmp_path / "t.csv", index=False)
    files = {"train": "t.csv", "new": "t.csv"}
    assert explain(tmp_path, "--response", "y", "--wanted", "0,2", **files) == 2
    assert "no model can be trained on" in capsys.readouterr().err


def test_too_many_levels_for_our_own_model(tmp_path, capsys):
    table = pd.DataFrame({"name": [f"n{i}" for i in range(300)], "y": ["a", "b"] * 150})
    table.to_csv(tmp_path / "t.csv", index=False)
    assert explain(tmp_path, "--response", "y", "--wanted", "a", train="t.csv", new="t.csv") == 2
    assert "column 'name' of" in (said := capsys.readouterr().err)
    assert "has 300 different values, more than the 255" in said


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
def test_intervals_are_told_from_labels(text, expected):
    interval = read_interval(text, None)
    assert (None if interval is None else interval.bounds()) == expected


def test_a_class_is_found_by_its_spelling_and_keeps_its_type():
    assert read_class("--wanted", "true", np.array([False, True])) is True
    assert read_class("--wanted", "1", np.array([0.0, 1.0])) == 1.0
    assert read_class("--wanted", "1", np.array(["0", "1"])) == "1"
    with pytest.raises(mcce.InputError, match="declares no classes; give --wanted an interval"):
        read_class("--wanted", "1", None)
