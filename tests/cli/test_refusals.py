"""Bad jobs, files and models: exit code 2, one line on standard error, and no traceback."""

import pickle
from pathlib import Path

import joblib
import pytest

from mcce.cli import main
from tests.cli.jobs import EXPLAIN, FIT, HEAD, READ, write_folder, write_job


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("job"))


def refusal(capsys, arguments):
    """Return the error of a refused command."""
    assert main([str(argument) for argument in arguments]) == 2
    said = capsys.readouterr()
    lines = said.err.splitlines()
    assert said.out == ""
    assert [line for line in lines if not line.startswith("warning: ")] == lines[-1:]
    assert lines[-1].startswith("error: ")
    assert lines[-1].isprintable()
    return lines[-1]


JOBS = [
    ((HEAD, "[mcce]"), "has the key 'mcce', which a job does not have; did you mean 'MCCE'?"),
    (("rows = 3",), "rows of "),
    ((HEAD.replace('"model.joblib"', "1"),), "is 1; it must be a text, the name of a file."),
    (("explain = 3", HEAD), "is 3; it must be a table, [explain]."),
    (("model = ",), "is not a TOML file"),
    (("model = " + "[" * 3000,), "is not a TOML file"),
    ((HEAD.replace("model.joblib", "a\\u0000b"),), "is 'a\\x00b'; it must be a text, the name of a file."),
    (("\u202emodel = \x07",), "is not a TOML file"),
    (('rows = "rows.csv"',), 'the job has no model; add a line such as model = "model.joblib".'),
    (('model = "model.joblib"', 'rows = "rows.csv"'), 'the job has no train; add a line such as train = "train.csv".'),
    (('model = "model.joblib"', 'train = "train.csv"'), "the job has no rows"),
    ((HEAD.replace("train.csv", "nowhere.csv"), READ), "nowhere.csv: No such file or directory"),
    ((HEAD.replace("model.joblib", "nowhere.joblib"), READ), "nowhere.joblib: No such file or directory"),
    ((HEAD.replace("model.joblib", "."), READ), "Is a directory"),
    ((HEAD.replace("model.joblib", "train.csv"), READ), "is not a model that joblib can load"),
    (
        (HEAD.replace("model.joblib", "evil.joblib"), READ),
        "joblib can load (RuntimeError: two lines",
    ),
    ((HEAD.replace("model.joblib", "text.joblib"), READ, FIT), "model"),
    ((HEAD, 'explainer = "model.mcce"', READ), "the job has 'model', 'train' beside explainer"),
    (('explainer = "text.joblib"\nrows = "rows.csv"', READ), "does not hold an explainer"),
    (('explainer = "rows.csv"\nrows = "rows.csv"', READ), "is not a saved explainer"),
    (
        (HEAD, "[read_csv]\nindexcol = 3"),
        "[read_csv] has 'indexcol', which it does not accept; did you",
    ),
    ((HEAD, "[read_csv]\nchunksize = 3"), "[read_csv] has 'chunksize'"),
    ((HEAD, '[read_csv]\nindex_col = "no\\nbody"'), "pandas.read_csv cannot read"),
    ((HEAD, '[read_csv]\nencoding = "utf-99"'), "pandas.read_csv cannot read"),
    ((HEAD, '[read_csv]\ncompression = "gzip"'), "(BadGzipFile: Not a gzipped file (b'id')); see [read_csv]."),
    ((HEAD, READ, "[MCCE]\nfixd = 3"), "[MCCE] has 'fixd', which it does not accept; did you mean 'fixed'?"),
    ((HEAD, READ, "[MCCE]\nmodel = 3"), "[MCCE] has 'model'"),
    ((HEAD, READ, '[MCCE]\nfixed = ["agee"]'), "fixed names 'agee', which is not a column of X; did you mean 'age'?"),
    ((HEAD, READ, "[MCCE]\ndecision = { low = 1 }"), "give low and high, as in { low = 0, high = 0.1, of = true }."),
    (
        (HEAD, READ, "[MCCE]\ndecision = { lo = 1 }"),
        "decision has 'lo', which it does not accept; did you",
    ),
    ((HEAD, READ, '[MCCE]\ndecision = ["no", "yes"]'), "'no'"),
    ((HEAD, READ, "[MCCE]\nconstraints = [{ low = 1 }]"), 'say which feature, as in { feature = "salary" }.'),
    ((HEAD, READ, '[MCCE]\nconstraints = [{ feature = "income", max = 1 }]'), "a constraint of [MCCE] has 'max'"),
    ((HEAD, READ, '[MCCE]\nconstraints = "income > 3"'), 'give a list, as in ["savings <= salary"]'),
    ((HEAD, READ, "[MCCE]\nconstraints = [\"__import__('os').system('touch evil')\"]"), "__import__"),
    (
        (HEAD, READ, FIT, "[explain]\nn_sample = 3"),
        "[explain] has 'n_sample', which it does not accept",
    ),
    ((HEAD, READ, FIT, "[explain]\nX = 3"), "[explain] has 'X'"),
    ((HEAD, READ, FIT, "[explain]\nfloor = 0.2"), "floor is 0.2, which has no effect without sparse=True"),
    ((HEAD.replace('rows = "rows.csv"', 'rows = "model.joblib"'), READ, FIT), "pandas.read_csv cannot read"),
    ((HEAD.replace('rows = "rows.csv"', 'rows = "other.csv"'), READ, FIT), "'salry'"),
]


class Evil:
    """A pickle that raises an error of two lines when it is opened."""

    def __reduce__(self):
        return fail, ()


def fail():
    raise RuntimeError("two\nlines\x1b[31m")


@pytest.mark.parametrize(("parts", "text"), JOBS, ids=[text for _, text in JOBS])
def test_bad_jobs(folder, parts, text, capsys):
    (folder / "evil.joblib").write_bytes(pickle.dumps(Evil()))
    joblib.dump("a text", folder / "text.joblib", compress=3)
    (folder / "other.csv").write_text("id,age,salry\n1,2,3\n")
    assert text in refusal(capsys, ["explain", write_job(folder, *parts, name="bad.toml")])
    assert not Path("evil").exists()


VALUES = [
    '"text"',
    "3",
    "-1.5",
    "true",
    "[]",
    '["a", 1]',
    "[[1]]",
    "{}",
    '{ age = "b" }',
    "1979-05-27",
    "nan",
    '"\\u0000"',
]
OPTIONS = {
    "[MCCE]": "decision fixed sampler visit_sequence predictors condition_on_decision kinds constraints derived "
    "random_state n_jobs",
    "[explain]": "n_samples n_counterfactuals sparse floor diverse constraints relations measures max_changes "
    "max_gower independent progress",
    "[read_csv]": "usecols dtype parse_dates sep header names nrows skiprows encoding",
}


@pytest.mark.parametrize(("section", "option"), [(s, o) for s, names in OPTIONS.items() for o in names.split()])
def test_no_value_of_a_wrong_type_gives_a_traceback(folder, section, option, capsys):
    """Every value is accepted or refused in one line; nothing else is raised."""
    fitted = 'explainer = "model.mcce"\nrows = "rows.csv"'
    if section == "[explain]" and not (folder / "model.mcce").exists():
        assert main(["fit", write_job(folder), "-o", str(folder / "model.mcce")]) == 0
        capsys.readouterr()
    for value in VALUES:
        parts = {"[read_csv]": 'index_col = "id"', "[MCCE]": "", "[explain]": "n_samples = 5" * (option != "n_samples")}
        parts[section] += f"\n{option} = {value}"
        head = fitted if section == "[explain]" else HEAD
        sections = [f"{name}\n{text}" for name, text in parts.items() if text]
        job = write_job(folder, head, *sections, name="types.toml")
        code = main(["explain", job])
        said = capsys.readouterr()
        assert code in (0, 2, 3), (value, said.err)
        assert len([line for line in said.err.splitlines() if line.startswith("error: ")]) == (code == 2), value
        assert all(line.isprintable() for line in said.err.splitlines()), value


@pytest.mark.parametrize(
    ("out", "text"),
    [
        ("nowhere/x.csv", "lies in a folder that does not exist"),
        (".", "is a folder"),
        ("train.csv", "which is train of the job"),
    ],
)
def test_bad_outputs(folder, out, text, capsys):
    before = (folder / "train.csv").read_bytes()
    job = write_job(folder, HEAD, READ, FIT, EXPLAIN)
    for command in ("explain", "fit"):
        assert text in refusal(capsys, [command, job, "-o", folder / out])
    assert (folder / "train.csv").read_bytes() == before


def test_the_job_itself_is_not_overwritten(folder, capsys):
    job = write_job(folder, HEAD, READ, FIT, EXPLAIN)
    assert "which is the job" in refusal(capsys, ["explain", job, "-o", job])


def test_fit_needs_no_explainer(folder, capsys):
    job = write_job(folder, HEAD, 'explainer = "model.mcce"', READ, FIT, name="both.toml")
    assert "the job has explainer, which has no effect in mcce fit" in refusal(capsys, ["fit", job, "-o", folder / "x"])


def test_demo_refuses_what_is_no_picture(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "-o is x.csv; give the name of a picture, which ends in .png or" in refusal(capsys, ["demo", "-o", "x.csv"])
    assert list(tmp_path.iterdir()) == []


def test_files_with_hostile_names_are_named_in_one_line(tmp_path, capsys):
    assert "nowhere" in refusal(capsys, ["explain", tmp_path / "a\n\x1b[31mnowhere.toml"])
    assert refusal(capsys, ["explain", "\0"]).startswith("error: ")
