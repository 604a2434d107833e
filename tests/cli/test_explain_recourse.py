"""`mcce explain --recourse`, letters and batches match `MCCE.recourse` for the same files."""

import re
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import mcce
from mcce.cli import main

GRAPH = "age -> education; age, education -> salary; age, salary -> savings"
ARGUMENTS = {"actions": ["education", "savings"], "assurance": 0.8, "keep": 0.5, "n_samples": 200, "max_actions": 1}
TYPED = ["--recourse", "--actions=education,savings", "--assurance=0.8", "--keep=0.5", "--n-samples=200"]
TYPED += ["--max-actions=1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Training rows, people, a model, a graph, and an explainer that was fitted to them."""
    folder = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(2)
    age, education = rng.integers(20, 65, 250), rng.integers(0, 5, 250)
    salary = np.round(20 + 5 * education + age / 5 + rng.normal(0, 3, 250))
    savings = np.round(salary / 8 + rng.normal(0, 1, 250), 1)
    train = pd.DataFrame({"age": age, "education": education, "salary": salary, "savings": savings})
    train.to_csv(folder / "train.csv", index=False)
    granted = salary + 4 * savings > 60
    joblib.dump(LogisticRegression().fit(train, granted), folder / "model.joblib")
    train[~granted].head(8).to_csv(folder / "people.csv", index=False)
    (folder / "graph.dot").write_text(
        "digraph { age -> education; {age education} -> salary; {age salary} -> savings }"
    )
    fit = ["--train", "train.csv", "--model", "model.joblib", "--fixed", "age", "--graph", "graph.dot"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["fit", *fit, "--sampler", "parametric", "--save", "bank.mcce"]) == 0
    return folder


@pytest.fixture(scope="module")
def found(folder):
    """The result of Python."""
    explainer = mcce.MCCE(
        joblib.load(folder / "model.joblib"), fixed=["age"], graph=GRAPH, sampler="parametric", random_state=1
    ).fit(pd.read_csv(folder / "train.csv"))
    return explainer.recourse(pd.read_csv(folder / "people.csv").set_axis(range(1, 9)), **ARGUMENTS)


@pytest.fixture
def run(folder, tmp_path, monkeypatch, capsys):
    """Return a function that runs a command on the saved explainer and returns its exit code and output."""
    monkeypatch.chdir(folder)

    def run_command(command, *more):
        files = ["bank.mcce", "people.csv", "--model", "model.joblib"]
        code = main([command, *files, *map(str, more)])
        return code, capsys.readouterr().err

    return run_command


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_command_line_equals_python(run, found, tmp_path):
    assert len(found) >= 3
    code, _ = run("explain", *TYPED, "--out", tmp_path / "cf.csv", "--html", tmp_path / "cf.html")
    assert code == (3 if len(found.unexplained) else 0)
    said = pd.read_csv(tmp_path / "cf.csv", keep_default_na=False)
    expected = mcce.report.answers(found)
    assert {"action", "consequence", "p_valid"} <= {*said}
    pd.testing.assert_frame_equal(said, expected, check_dtype=False, check_exact=False, rtol=1e-12)
    assert "consequence" in (tmp_path / "cf.html").read_text()


@pytest.mark.slow
def test_job_as_run_repeats_it_and_workbook_has_the_consequences(run, found, tmp_path):
    run("explain", *TYPED, "--out", tmp_path / "cf.xlsx")
    sheets = pd.read_excel(tmp_path / "cf.xlsx", sheet_name=None)
    assert sheets["consequences"]["low"].tolist() == pytest.approx(found.consequences["low"].tolist())
    assert set(sheets["changes"]["role"]) == {"action", "consequence"}
    first = (tmp_path / "cf.xlsx").read_bytes()
    assert main(["explain", "--config", str(tmp_path / "cf.job.toml"), "--force"]) in (0, 3)
    assert (tmp_path / "cf.xlsx").read_bytes() == first


@pytest.mark.slow
def test_letters_match_recourse(run, found, tmp_path):
    run("letters", *TYPED, "--letters", tmp_path / "letters", "--all")
    pages = sorted(path.name for path in (tmp_path / "letters").glob("*.html"))
    assert len(pages) == len(mcce.report.letters(found, all=True))
    assert "What usually follows" in (tmp_path / "letters" / f"{found.frame.index[0][0]}.html").read_text()


@pytest.mark.slow
def test_batches_match_recourse(run, found, tmp_path):
    run("explain-batches", *TYPED, "--out", tmp_path / "out", "--batch-size", "3")
    rows = pd.read_parquet(tmp_path / "out" / "counterfactuals")
    expected = mcce.report.answers(found).drop(columns="id")
    pd.testing.assert_frame_equal(rows.drop(columns="id"), expected, check_dtype=False)


def refused(said, message):
    code, words = said
    return code == 2 and re.search(message, words) is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--recourse --sparse", "--sparse does not go with --recourse: it always searches for few actions; leave"),
        ("--recourse --max-changes 2", "--max-changes does not go with --recourse: .*--max-actions limits"),
        ("--recourse --noise 0.1", "--noise does not go with --recourse: --assurance is the probability"),
        ("--assurance 0.8", "--assurance goes with --recourse; add it, or leave --assurance out"),
    ],
)
def test_options_of_the_other_search_raise(options, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("bank.mcce", "people.csv"):
        Path(name).touch()
    for command, *more in (["explain"], ["letters", "--letters", "out"], ["explain-batches", "--out", "out"]):
        code = main([command, "bank.mcce", "people.csv", *more, *options.split()])
        assert refused((code, capsys.readouterr().err), message)


@pytest.mark.slow
def test_messages_name_options_as_typed(run):
    assert refused(run("explain", "--recourse", "--actions", "age"), "--actions names 'age', which is fixed")
    time = ("--actions", "education", "--takes", "education=soon")
    assert refused(run("explain", "--recourse", *time), "--takes of 'education' is 'soon'; give a time as '2 years'")
    assert refused(run("explain", "--recourse", "--n-samples", "auto"), "--n-samples is 'auto'; it must be")


@pytest.mark.slow
def test_explainer_without_a_graph_raises(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    files = ["--train", "train.csv", "--explain", "people.csv", "--model", "model.joblib"]
    assert main(["explain", *files, "--recourse", "--sampler", "parametric"]) == 2
    assert "recourse needs a causal graph, which defines causes and consequences; fit the explainer with --graph." in (
        capsys.readouterr().err
    )
