"""The command line, in this process: what it prints and writes, and its exit codes."""

import re
import runpy
import subprocess
import sys

import joblib
import pandas as pd
import pytest

import mcce
from mcce import cli
from mcce.cli import main
from tests.cli.jobs import EXPLAIN, FIT, HEAD, READ, table, write_folder, write_job


def income_score(rows):
    return rows["income"] / 50_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("job"))


@pytest.fixture(scope="module")
def job(folder):
    return write_job(folder)


@pytest.fixture(scope="module")
def expected(folder):
    X = pd.read_csv(folder / "train.csv", index_col="id")
    explainer = mcce.MCCE(joblib.load(folder / "model.joblib"), fixed=["age"], random_state=1).fit(X)
    return explainer.explain(pd.read_csv(folder / "rows.csv", index_col="id"), n_samples=60)


# ---- commands


def test_explain_prints_what_python_prints(job, expected, capsys):
    assert main(["explain", job]) == 0
    assert capsys.readouterr().out == f"{expected}\n"


def test_explain_writes_the_flat_table(job, expected, tmp_path, capsys):
    for name in ("out.csv", "out.csv.gz"):
        assert main(["explain", job, "-o", str(tmp_path / name)]) == 0
        pd.testing.assert_frame_equal(pd.read_csv(tmp_path / name), expected.to_frame())
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err == f"wrote {tmp_path / name}: 5 counterfactuals of 5 rows\n"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_texts_that_look_like_numbers_in_the_file_of_rows(tmp_path, capsys):
    write_folder(tmp_path)
    joblib.dump(income_score, tmp_path / "model.joblib")
    X = table().assign(zip=["0123", "4567", "A12", "4567"] * 50)
    X.to_csv(tmp_path / "train.csv")
    X[income_score(X) < 0.5].iloc[[0, 4]].assign(zip="0123").to_csv(tmp_path / "rows.csv")
    assert main(["explain", write_job(tmp_path)]) == 0
    assert "2 of 2 rows explained" in capsys.readouterr().out


def test_a_fitted_explainer_gives_the_same_answer(folder, job, expected, capsys):
    assert main(["fit", job, "-o", str(folder / "model.mcce")]) == 0
    assert "model.mcce, which holds the model and the training rows" in capsys.readouterr().err
    again = write_job(folder, 'explainer = "model.mcce"\nrows = "rows.csv"', READ, EXPLAIN, name="again.toml")
    assert main(["explain", again]) == 0
    assert capsys.readouterr().out == f"{expected}\n"


def test_rows_without_a_counterfactual_give_3(folder, capsys):
    impossible = write_job(folder, HEAD, READ, FIT, EXPLAIN, 'constraints = ["income < 0"]', name="none.toml")
    assert main(["explain", impossible]) == 3
    notes = capsys.readouterr().err.splitlines()
    assert len(notes) == 5
    assert all(
        re.match(r"No counterfactual for \d+: no draw was found that constraints and relations allow", note)
        for note in notes
    )


def test_rows_with_the_wanted_decision_need_no_counterfactual(folder, capsys):
    model = joblib.load(folder / "model.joblib")
    X = table()
    X[model.predict_proba(X)[:, 1] > 0.6].head(2).to_csv(folder / "good.csv")
    good = write_job(folder, HEAD.replace("rows.csv", "good.csv"), READ, FIT, name="good.toml")
    assert main(["explain", good]) == 0
    assert "0 of 2 rows explained, 2 already" in capsys.readouterr().out


def test_all_options_reach_the_functions(folder, capsys):
    rich = """
[MCCE]
decision = { low = 0.4, high = 1, closed = "left", of = true }
fixed = ["age"]
sampler = { savings = "pmm", "*" = "cart" }
visit_sequence = ["debts", "income", "savings"]
predictors = { savings = ["income"] }
kinds = { debts = "ordered" }
constraints = ["savings <= income", { feature = "debts", direction = "decrease" }, { no_copies = true }]
random_state = 3
n_jobs = 2

[explain]
n_samples = 100
n_counterfactuals = 2
sparse = true
floor = 0.1
diverse = true
max_changes = 3
relations = []
constraints = ["debts >= 0"]
"""
    out = folder / "rich.csv"
    assert main(["explain", write_job(folder, HEAD, READ, rich, name="rich.toml"), "-o", str(out)]) in (0, 3)
    table = pd.read_csv(out)
    own = table[table["rank"] == 0].set_index("id")
    rows = table[table["rank"] > 0]
    assert len(rows)
    assert (rows["savings"] <= rows["income"]).all()
    assert (rows["debts"].to_numpy() <= own.loc[rows["id"], "debts"].to_numpy()).all()
    assert (rows["age"].to_numpy() == own.loc[rows["id"], "age"].to_numpy()).all()
    assert (rows["prediction"] >= 0.4).all()


def test_decisions_in_toml(folder, capsys):
    for decision in ("true", "[0.5, 1.0]", "[true]", "{ low = 0.5, high = 1 }"):
        text = write_job(folder, HEAD, READ, FIT, f"decision = {decision}", EXPLAIN, name="decision.toml")
        assert main(["explain", text]) == 0, capsys.readouterr().err
        assert "5 of 5 rows explained" in capsys.readouterr().out


@pytest.mark.slow
def test_demo_is_the_example_of_its_own_lines(tmp_path, capsys):
    assert main(["demo", "-o", str(tmp_path / "change.png")]) == 0
    said = capsys.readouterr().out
    lines = [line[4:] for line in said.splitlines() if line.startswith(">>> ")]
    names = {}
    exec("\n".join(line for line in lines if not line.startswith("print") and "plot" not in line), names)
    counterfactuals = names["counterfactuals"]
    assert f"{counterfactuals}\n>>> print(counterfactuals.sentence(3))\n{counterfactuals.sentence(3)}\n" in said
    assert len(lines) == 8
    assert (tmp_path / "change.png").read_bytes()[:4] == b"\x89PNG"


# ---- the program


def test_help_and_version(capsys):
    for arguments, text in (
        (["--help"], "exit codes: 0 done, 2 bad input"),
        (["--version"], f"mcce {mcce.__version__}"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        assert text in capsys.readouterr().out


def test_the_job_in_the_help_runs(tmp_path, capsys):
    """The keys of the example of `mcce --help`, on a table with its columns."""
    X = table().rename(columns={"income": "salary"}).drop(columns="debts").assign(sex="f", since="2020-01-01")
    X.iloc[::2, 3] = "m"
    X = X[["age", "sex", "salary", "savings", "since"]]
    X.assign(default=0).to_csv(tmp_path / "train.csv")
    X.head(3).assign(default=0).to_csv(tmp_path / "applicants.csv")
    joblib.dump(Rich(), tmp_path / "model.joblib")
    text = cli.JOB.partition("\n\n")[2].partition("\nWith `explainer")[0]
    (tmp_path / "job.toml").write_text("\n".join(line.strip() for line in text.splitlines()))
    assert main(["explain", str(tmp_path / "job.toml")]) in (0, 3), capsys.readouterr().err
    assert "rows explained" in capsys.readouterr().out


class Rich:
    """A model that a file of joblib can hold."""

    def predict(self, X):
        assert str(X["sex"].dtype) == "category"
        assert X["since"].dtype.kind == "M"
        return (X["salary"] / X["salary"].max()).to_numpy()


def test_python_m_runs_the_same_program(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["mcce", "explain", "nowhere.toml"])
    monkeypatch.delitem(sys.modules, "mcce.__main__", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("mcce", run_name="__main__")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: nowhere.toml: No such file or directory\n"


@pytest.mark.slow
def test_help_imports_nothing_that_functions_import():
    code = "import sys; from mcce.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += (
        "held = {'matplotlib', 'statsmodels', 'formulaic', 'dask', 'jinja2'} & {*sys.modules}; sys.exit(str(held or 0))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True).stderr == "0\n"


def test_plugins_add_commands(monkeypatch, capsys):
    class Point:
        def __init__(self, name, load):
            self.name, self.value, self.load = name, f"package:{name}", load

    def add(commands):
        parser = commands.add_parser("greet")
        parser.add_argument("name")
        parser.set_defaults(run=lambda arguments: print("hello", arguments.name) or 7)

    def broken():
        raise ImportError("no module\nnamed rpy2")

    points = [Point("greet", lambda: add), Point("parity", broken)]
    monkeypatch.setattr(cli, "entry_points", lambda group: points)
    assert main(["greet", "world"]) == 7
    assert capsys.readouterr().out == "hello world\n"
    with pytest.raises(SystemExit):
        main(["parity"])
    assert "the command 'parity' (package:parity) cannot be added: no module named rpy2" in capsys.readouterr().err


def test_interruption_gives_130(job, monkeypatch, capsys):
    def interrupt(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "read_job", interrupt)
    assert main(["explain", job]) == 130
    assert capsys.readouterr().err == "interrupted\n"
