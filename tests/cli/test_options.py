"""A TOML job holds any of the options; the job as run repeats the run byte for byte."""

import argparse
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main
from mcce.cli.options import OPTIONS, job_text, read_config
from mcce.cli.readers import samplers
from tests.cli.problem import customers
from tests.marks import nightly_rows

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIG = """
train = "data/train.csv"
explain = "data/new.csv"
response = "loan"
decision = "yes"
fixed = ["job"]
id = "who"
n-samples = 150
sparse = true
floor = 0.02
measures = ["gower", "L0"]
out = "cf.csv"

[feature_weights]
income = 2

[ordered]
size = ["small", "medium", "large"]

[[allow]]
feature = "income"
direction = "increase"

[[rule]]
says = "rent <= was(rent)"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with data in a subfolder, and a job."""
    table = customers(150).drop(columns="savings")
    table["loan"] = np.where(table["income"] > 3 * table["rent"], "yes", "no")
    (tmp_path / "data").mkdir()
    table.to_csv(tmp_path / "data" / "train.csv", index=False)
    table[table["loan"] == "no"].head(5).to_csv(tmp_path / "data" / "new.csv", index=False)
    (tmp_path / "my.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.fixture
def no_training(monkeypatch):
    monkeypatch.setattr("mcce.cli.fitting.train_model", lambda *_: pytest.fail("a model was trained"))


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_job_as_run_repeats_the_run_byte_for_byte(folder, monkeypatch, capsys):
    (folder / "results").mkdir()
    given = ["--config", "my.toml", "--out", "results/cf.csv", "--html", "results/cf.html", "--random-state", "7"]
    assert main(["explain", *given]) in (0, 3)
    assert "mcce explain --config results/cf.job.toml repeats it" in capsys.readouterr().err
    first = contents(folder / "results")
    assert {"cf.csv", "cf.html", "cf.job.toml"} <= set(first)
    job = first["cf.job.toml"].decode()
    assert str(folder) not in job  # paths are relative to the job file
    assert tomllib.loads(job)["train"] == "../data/train.csv"
    assert tomllib.loads(job)["random_state"] == 7
    after = pd.read_csv("results/cf.csv")
    before = pd.read_csv("data/new.csv").set_index("who").loc[after["id"]]
    assert (after["income"].to_numpy() >= before["income"].to_numpy()).all()
    # from another folder, overwriting the old results
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    repeat = ["explain", "--config", "../results/cf.job.toml"]
    assert main(repeat) == 2
    assert "cf.csv: the file exists; give another name, or add --force" in capsys.readouterr().err
    for name in ("cf.csv", "cf.html"):
        (folder / "results" / name).write_text("gone")
    assert main([*repeat, "--force"]) in (0, 3)
    assert contents(folder / "results") == first


def test_job_is_not_overwritten_by_another_one(folder, no_training, capsys):
    (folder / "cf.job.toml").write_text(CONFIG)
    assert main(["explain", "--config", "cf.job.toml", "--random-state", "2", "--force"]) == 2
    assert "would be overwritten by this job, which has other options; give another --out" in capsys.readouterr().err
    assert (folder / "cf.job.toml").read_text() == CONFIG


def test_existing_job_requires_force(folder, no_training, capsys):
    (folder / "cf.job.toml").write_text("mine")
    assert main(["explain", "--config", "my.toml"]) == 2
    assert "the job as run, cf.job.toml: the file exists" in capsys.readouterr().err


def test_command_line_overrides_the_job(folder, monkeypatch, capsys):
    seen = {}

    def stop(X, y, arguments, *_):
        seen.update(vars(arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr("mcce.cli.fitting.train_model", stop)
    more = ["--n-samples", "33", "--fixed", "job,size", "--ordered", "size=small<medium<large"]
    assert main(["explain", "--config", "my.toml", *more]) == 130
    assert seen["n_samples"] == 33
    assert seen["fixed"] == ["job", "size"]
    assert seen["feature_weights"] == {"income": 2.0}
    assert seen["sparse"] is True
    assert seen["random_state"] == 1
    assert seen["ordered"] == {"size": ["small", "medium", "large"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('decision = "yes"', "decision = yes"), r"--config my.toml is not a TOML file: .*line 5"),
        (("n-samples", "n-sample"), "--config my.toml: there is no option 'n-sample'; did you mean 'n_samples'"),
        (
            ("n-samples = 150", "n-samples = -1"),
            "--config my.toml: n-samples: '-1' is not a whole number of at least 1",
        ),
        (("sparse = true", 'sparse = "yes"'), "--config my.toml: sparse: 'yes' is not true or false"),
        (('fixed = ["job"]', "fixed = [3]"), "--config my.toml: fixed: 3 is not text"),
        (("income = 2", 'income = "two"'), "--config my.toml: feature_weights: 'two' is not a number"),
        (("[[allow]]", 'constraints = "x.toml"\n[[allow]]'), r"ordered: 'x.toml' is not levels from the lowest to"),
        (('id = "who"', 'id = "who"\nconstraints = "x"'), r"names a file of constraints and has \[\[allow\]\]"),
        (('feature = "income"', 'feature = "incom"'), "--config my.toml: .*'incom' .*did you mean 'income'"),
        (('"small", "medium"', '"small"'), "holds 'medium' on line .*, which --ordered size=small<large does not name"),
    ],
)
def test_invalid_job_raises_before_training(change, message, folder, no_training, capsys):
    assert change[0] in CONFIG
    (folder / "my.toml").write_text(CONFIG.replace(*change))
    assert main(["explain", "--config", "my.toml"]) == 2
    assert re.search(message, " ".join(capsys.readouterr().err.split()))


def test_job_without_training_rows(folder, capsys):
    (folder / "my.toml").write_text(CONFIG.replace('train = "data/train.csv"', ""))
    with pytest.raises(SystemExit) as exit:
        main(["explain", "--config", "my.toml"])
    assert exit.value.code == 2
    assert "the following arguments are required: --train" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kinds", "income=numbr"], "--kinds says income=numbr; did you mean 'numeric'"),
        (["--kinds", "size=categorical", "--date-format", "size=%Y"], "--kinds and --date-format both name 'size'"),
        (["--decimal", ",", "--thousands", ","], "--decimal and --thousands are both ','; give different marks"),
        (
            ["--date-format", "rent=%d.%m.%Y"],
            "'rent' of data/train.csv holds dates by option, read as 31.12.2024, but line",
        ),
        (["--kinds", "job=numeric"], "column 'job' of data/train.csv is numeric by option, but line 2 holds"),
        (["--ordered", "siz=a<b"], "--ordered 'siz' is not a column of data/train.csv; did you mean 'size'"),
        (["--encoding", "klingon"], "--encoding is 'klingon', which is not an encoding of text; write utf-8"),
        (["--out", "cf.ods"], "--out cf.ods: results are written as .csv, .csv.gz, .xlsx or .parquet"),
    ],
)
def test_file_options_are_checked_before_training(options, message, folder, no_training, capsys):
    assert main(["explain", "--config", "my.toml", *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


class Affordable:
    """Accept rows whose income exceeds three rents."""

    classes_ = np.array(["no", "yes"])

    def predict(self, X):
        return self.classes_[(X["income"] > 3 * X["rent"]).to_numpy().astype(int)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fixed", "job,sizes"], "--fixed 'sizes' is not a column of data/train.csv; did you mean 'size'"),
        (["--fixed", "income,rent,size,job"], "all 4 columns of the table are fixed; leave at least one mutable"),
        (["--sampler", "carrt"], "there is no sampler 'carrt'; did you mean 'cart'"),
        (["--sampler", "incme=cart,*=cart"], "--sampler 'incme' is not a column of data/train.csv; did you mean"),
        (["--sampler", "job=cart,*=cart"], "--sampler names 'job', which is fixed and has no sampler"),
        (["--sampler", "income=cart"], "--sampler has no entry for 'rent', 'size'; name one for the rest under '*'"),
        (["--sampler", "norm"], "norm cannot model 'size': it is ordered"),
        (
            ["--sampler", "income=norm(~ jbo),*=cart"],
            "uses 'jbo', which is not among its predictors, the columns before it in visit_sequence; did you mean",
        ),
        (["--sampler", "income=norm(~ __import__('os')),*=cart"], "the function '__import__' is not available"),
        (["--sampler", "income=norm,*=cart", "--min-donors", "5"], "norm for 'income' cannot guarantee --min-donors 5"),
        (["--measures", "gowr"], "--measures names 'gowr'; did you mean 'gower'"),
        (
            ["--feature-weights", "incme=2"],
            "--feature-weights 'incme' is not a column of data/train.csv; did you mean 'income'",
        ),
        (["--noise", "1.5"], "--noise is 1.5; it is a share of the value"),
        (["--robust", "3"], "--robust is 3.0; it is a share, above 0 and at most 1"),
        (["--max-gower", "-1"], "--max-gower is -1.0; it must be a number of at least 0"),
        (["--n-jobs", "0"], "--n-jobs is 0; it must be a whole number other than 0"),
        (["--visit-sequence", "rent"], "--visit-sequence must name each mutable feature once"),
        (["--labels", "incom=x"], "--labels 'incom' is not a column of data/train.csv; did you mean 'income'"),
    ],
)
def test_errors_of_fit_and_explain_name_the_options(options, message, folder, monkeypatch, capsys):
    monkeypatch.setattr("mcce.cli.fitting.train_model", lambda X, *_: (Affordable(), X))
    assert main(["explain", "--config", "my.toml", *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", ["seed", "jobs", "wanted", "categorical", "numeric", "dates"])
def test_option_unknown_to_python_raises(name, folder, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["explain", "--config", "my.toml", f"--{name}", "1"])
    assert f"unrecognized arguments: --{name}" in capsys.readouterr().err
    (folder / "my.toml").write_text(f"{name} = 1\n{CONFIG}")
    assert main(["explain", "--config", "my.toml"]) == 2
    assert f"--config my.toml: there is no option '{name}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        *nightly_rows(("~ job * C(decision)", "")),
        ("~ open('written', 'w')", "the function 'open' is not available"),
        *nightly_rows(("~ job.__class__", "uses 'job.__class__', which is not among its predictors")),
    ],
)
def test_formulas_of_a_job_are_checked_before_evaluation(formula, message, folder, capsys):
    (folder / "my.toml").write_text(f'sampler = {{ income = "norm({formula})", "*" = "cart" }}\n{CONFIG}')
    assert main(["explain", "--config", "my.toml"]) == (2 if message else 0)
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (folder / "written").exists()


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("cart", "cart"),
        ("norm(~ bs(job, df=4), 0)", "norm(~ bs(job, df=4), 0)"),
        (
            "income = norm(~ bs(rent, 4) + bs(age, df=3)), *=cart,",
            {"income": "norm(~ bs(rent, 4) + bs(age, df=3))", "*": "cart"},
        ),
        ({"income": "norm(~ bs(rent, 4))", "*": "cart"}, {"income": "norm(~ bs(rent, 4))", "*": "cart"}),
    ],
)
def test_commas_and_equals_signs_of_a_formula_do_not_separate_samplers(given, read):
    assert samplers(given) == read


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("income=norm(~ bs(rent, 4),*=cart", r"is not text with as many '\(' as '\)'"),
        ("income=norm(~ bs(rent, 4)),cart", r"is not A=NAME,\*=NAME"),
    ],
)
def test_unreadable_samplers(given, message):
    with pytest.raises(argparse.ArgumentTypeError, match=message):
        samplers(given)


@pytest.mark.slow
def test_formula_with_a_comma_beside_another_sampler(folder, capsys):
    sampler = "size=cart,income=norm(~ bs(rent, 4)),*=cart"
    visited = ["--visit-sequence", "rent,size,income"]
    assert main(["explain", "--config", "my.toml", "--sampler", sampler, *visited]) in (0, 3)


@pytest.mark.slow
def test_further_options_are_passed_to_the_method(folder, capsys):
    arguments = ["--train", "data/train.csv", "--explain", "data/new.csv", "--response", "loan", "--decision", "yes"]
    arguments += ["--id", "who", "--n-samples", "200", "--out", "cf.csv"]
    more = ["--n-counterfactuals", "3", "--diverse", "--max-changes", "2", "--exclude-training"]
    more += ["--noise", "income=0.02", "--robust", "0.5", "--measures", "gower"]
    assert main(["explain", *arguments, *more]) in (0, 3)
    found = pd.read_csv("cf.csv", dtype={"id": str})
    assert found["L0"].max() <= 2
    assert (found["noise"] >= 0.5).all()
    assert found.groupby("id")["rank"].max().max() > 1
    train = pd.read_csv("data/train.csv").drop(columns=["who", "loan"])
    assert not len(found.merge(train, on=list(train)))


def test_documented_job_is_valid(tmp_path):
    page = (Path(__file__).parents[2] / "vignettes" / "getting-started.md").read_text(encoding="utf-8")
    (tmp_path / "job.toml").write_text(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0])
    found = read_config(str(tmp_path / "job.toml"))
    assert found["decision"] == "False"
    assert found["decimal"] == ","
    assert found["constraints"]["allow"] == [{"feature": "salary", "direction": "increase"}]


def test_written_jobs_round_trip(tmp_path):
    values = {
        "train": "a b.csv",
        "explain": 'q"uote\\back.csv',
        "decision": "ja\x7f\tnein",
        "fixed": ["a.b", "c d"],
        "missing": ["?", "k. A."],
        "decimal": ",",
        "thousands": " ",
        "date_format": {"born": "%d.%m.%Y", "": "%d/%m/%y"},
        "ordered": {"size": ["s", "m"], "risk": ["low", "high"]},
        "sep": "\t",
        "sheet": {"train": "A=B", "explain": "C,D"},
        "noise": {"x": 0.1},
        "feature_weights": {"x y": 2.5},
        "max_gower": 1e-07,
        "sampler": {"*": "cart"},
        "visit_sequence": ["a", "b"],
        "constraints": {
            "allow": [{"feature": "x", "values": [1, 2.5, "z"], "direction": "increase"}],
            "rule": ["a <= 3"],
        },
        "sparse": True,
        "actions": ["a", "b"],
        "takes": {"a": "2 years", "b": {"age": 2.5}},
    }
    every = argparse.Namespace(**{option.name: option.default for option in OPTIONS} | values)
    path = tmp_path / "x.job.toml"
    path.write_text(job_text(every, path), encoding="utf-8")
    found = read_config(str(path))
    expected = values | {"constraints": {**values["constraints"], "rule": [{"says": "a <= 3"}]}}
    for name, value in expected.items():
        if name in ("train", "explain"):
            assert found[name].endswith(value)
        else:
            assert found[name] == value, name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"fixed = {'[' * 5000}{']' * 5000}", "my.toml has lists or tables nested more than 20 deep"),
        (f"fixed.{'.'.join('a' * 5000)} = 1", "my.toml has lists or tables nested more than 20 deep"),
        (
            f"n_samples = 1{'0' * 400}",
            r"n_samples: '10+\.\.\.0+' is not a whole number of at least 1 and at most 18 digits",
        ),
        (
            f"floor = 1{'0' * 400}",
            "floor: a whole number of about 401 digits, .* is not a number that a float can hold",
        ),
        (
            f"feature_weights = {{income = 1{'0' * 400}}}",
            "feature_weights: a whole number of about 401 digits, more than a float holds",
        ),
        ('out = ""', "out: '' is not a valid file name: it is empty"),
        (r'out = "a\u0000b"', "out: 'a.x00b' is not a valid file name: it holds a NUL character"),
        (r'train = "a\u0000b"', "train: 'a.x00b' is not a valid file name: it holds a NUL character"),
    ],
    ids=lambda text: text[:12],
)
@pytest.mark.usefixtures("no_training")
def test_excessively_nested_job_raises_in_one_line(folder, capsys, text, message):
    (folder / "my.toml").write_text(text)
    assert main(["explain", "--config", "my.toml"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert re.search(rf"^mcce: error: --config my.toml.*{message}|^mcce: error: --config {message}", said[0])


@pytest.mark.slow
def test_derived_columns_are_computed(folder, capsys):
    for name in ("train", "new"):
        table = pd.read_csv(f"data/{name}.csv")
        table["share"] = (100 * table["rent"] / table["income"]).round()
        table["twice"] = 2 * table["rent"] + table["income"]
        table.to_csv(f"data/{name}.csv", index=False)
    files = ["--train", "data/train.csv", "--explain", "data/new.csv", "--response", "loan", "--decision", "yes"]
    formulas = ["--derived", "share=100 * rent / income", "--derived", "twice = 2 * rent + income"]
    arguments = ["--id", "who", "--n-samples", "60", "--sparse", "--out", "cf.csv"]
    assert main(["explain", *files, *formulas, *arguments]) in (0, 3)
    found = pd.read_csv("cf.csv")
    assert len(found) >= 3
    assert (found["share"] == (100 * found["rent"] / found["income"]).round()).all()
    assert (found["twice"] == 2 * found["rent"] + found["income"]).all()
    assert not found["changed"].str.contains("share|twice").any()
    job = tomllib.loads((folder / "cf.job.toml").read_text())
    assert job["derived"] == {"share": "100 * rent / income", "twice": "2 * rent + income"}
    first = contents(folder)
    assert main(["explain", "--config", "cf.job.toml", "--force"]) in (0, 3)
    assert contents(folder) == first
    capsys.readouterr()
    assert main(["explain", *files, "--derived", "shre=rent / income"]) == 2
    assert "did you mean 'share'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["explain", *files, "--derived", "share"])
    assert "not a column with its formula, as in dti=" in capsys.readouterr().err


def test_constraints_on_derived_columns_are_checked_before_training(folder, capsys, monkeypatch):
    for name in ("train", "new"):
        table = pd.read_csv(f"data/{name}.csv")
        table["share"] = (100 * table["rent"] / table["income"]).round()
        table.to_csv(f"data/{name}.csv", index=False)
    (folder / "my.toml").write_text("[[allow]]\nfeature = 'share'\nhigh = 30\n")
    trained = []
    monkeypatch.setattr("mcce.cli.fitting.train_model", lambda *given: trained.append(given))
    files = ["--train", "data/train.csv", "--explain", "data/new.csv", "--response", "loan", "--decision", "yes"]
    arguments = ["--derived", "share=100 * rent / income", "--constraints", "my.toml"]
    assert main(["explain", *files, *arguments, "--id", "who", "--out", "cf.csv"]) == 2
    assert "'share' is a derived column, which is computed from others" in capsys.readouterr().err
    assert not trained
