"""Files that the command line writes, and files that it must not overwrite or leave unfinished."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main
from mcce.report.reasons import ALREADY
from tests.marks import nightly_rows

WANTED = ["--response", "y", "--decision", "yes", "--n-samples", "50"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with training rows and rows to explain, some of which have the wanted class already."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 9, 200), rng.integers(0, 9, 200)
    table = pd.DataFrame({"a": a, "b": b, "y": np.where(a + b > 8, "yes", "no")})
    table.to_csv(tmp_path / "train.csv", index=False)
    table.head(10).to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explain(*more, new="new.csv"):
    return main(["explain", "--train", "train.csv", "--explain", new, *WANTED, *more])


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.fixture
def no_training(monkeypatch):
    """Outputs are checked before anything is trained."""

    def fail(*_):
        raise AssertionError("a model was trained")

    monkeypatch.setattr("mcce.cli.fitting.train_model", fail)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "train.csv"], "--out train.csv is the file of --train train.csv, which is read; give another name"),
        (["--out", "./new.csv"], "--out new.csv is the file of --explain new.csv, which is read"),
        (["--html", "train.csv"], "--html train.csv is the file of --train train.csv, which is read"),
        (["--html", "link.csv"], "--html link.csv is the file of --train train.csv, which is read"),
        (["--html", "hard.csv"], "--html hard.csv is the file of --explain new.csv, which is read"),
        (["--out", "c.csv", "--html", "c.csv"], "--html c.csv is the file of --out c.csv, which is written too"),
        (
            ["--out", "c.csv", "--html", "c.unexplained.csv"],
            "--html c.unexplained.csv is the file of the unexplained rows of --out c.unexplained.csv",
        ),
        (["--out", "nowhere/c.csv"], "nowhere; make it, or give another name"),
        (["--html", "."], "--html . is a folder; give the name of a file"),
    ],
)
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_files_that_must_not_be_written(arguments, message, force, files, capsys, no_training):
    (files / "link.csv").symlink_to(files / "train.csv")
    os.link(files / "new.csv", files / "hard.csv")
    before = contents(files)
    assert explain(*arguments, *force) == 2
    assert message in capsys.readouterr().err
    assert contents(files) == before


def test_unexplained_rows_of_an_earlier_run_are_explained_not_overwritten(files, capsys, no_training):
    (files / "new.csv").rename(files / "c.unexplained.csv")
    before = contents(files)
    assert explain("--out", "c.csv", "--force", new="c.unexplained.csv") == 2
    said = capsys.readouterr().err
    assert "the unexplained rows of --out c.unexplained.csv is the file of --explain c.unexplained.csv" in said
    assert contents(files) == before


@pytest.mark.parametrize(
    ("exists", "arguments"),
    [
        ("c.unexplained.csv", ["--out", "c.parquet"]),
        *nightly_rows(
            ("c.csv", ["--out", "c.csv"]), ("c.unexplained.csv", ["--out", "c.csv"]), ("c.html", ["--html", "c.html"])
        ),
    ],
)
@pytest.mark.usefixtures("no_pictures")
def test_existing_file_is_overwritten_only_with_force(exists, arguments, files, capsys, monkeypatch):
    (files / exists).write_text("months of work")
    before = contents(files)
    with monkeypatch.context() as patch:
        patch.setattr("mcce.cli.fitting.train_model", lambda *_: pytest.fail("a model was trained"))
        assert explain(*arguments) == 2
    said = capsys.readouterr().err
    assert f"{exists}: the file exists; give another name, or add --force to overwrite it" in said
    assert contents(files) == before
    assert explain(*arguments, "--force") == 0
    assert contents(files)[exists] != before[exists]
    assert contents(files)["train.csv"] == before["train.csv"]


@pytest.mark.slow
def test_unexplained_rows_of_an_earlier_run_are_removed(files):
    (files / "c.unexplained.csv").write_text("id,reason\n77,an earlier run\n")
    refused = pd.read_csv("new.csv").query("y == 'no'")
    refused.to_csv("refused.csv", index=False)
    assert explain("--out", "c.csv", "--force", new="refused.csv") == 0
    assert (files / "c.unexplained.csv").read_text() == "id,reason,prediction\n"


@pytest.mark.slow
def test_error_while_writing_keeps_the_earlier_result(files, monkeypatch, capsys):
    assert explain("--out", "c.csv") == 0
    before = contents(files)

    def half(table, path, **_):
        path.write_text("id,ra")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", half)
    assert explain("--out", "c.csv", "--force", "--random-state", "2") == 2
    assert "mcce: error: c.csv: No space left on device" in capsys.readouterr().err
    assert contents(files) == before


def test_interrupt_prints_one_line_and_exits_with_130(files, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pd.DataFrame, "to_csv", interrupt)
    before = contents(files)
    assert explain("--out", "c.csv") == 130
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "mcce: interrupted; unfinished files were not written"
    assert not any("Traceback" in line for line in said)
    assert contents(files) == before


INTERRUPTED = """
import os, signal, sys, time
import mcce.cli.explain

signal.signal(signal.SIGINT, signal.default_int_handler)  # a program started in the background ignores it

def train(*_):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)

mcce.cli.fitting.train_model = train
sys.exit(mcce.cli.main(sys.argv[1:]))
"""


@pytest.mark.nightly
def test_ctrl_c_in_a_subprocess(files):
    (files / "c.csv").write_text("old")
    arguments = ["explain", "--train", "train.csv", "--explain", "new.csv", *WANTED, "--out", "c.csv", "--force"]
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, *arguments], capture_output=True, text=True, timeout=500)
    assert done.returncode == 130, done.stderr
    assert done.stderr.endswith("\nmcce: interrupted; unfinished files were not written\n")
    assert "Traceback" not in done.stderr
    assert (files / "c.csv").read_text() == "old"


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_standard_output_and_devices_need_no_force(files, capsys):
    assert explain("--out", "-", "--html", "/dev/null") == 0
    assert capsys.readouterr().out.startswith("id,rank,a,b,prediction")
    assert os.path.exists("/dev/null")
    assert not os.path.isfile("/dev/null")


@pytest.mark.slow
def test_spreadsheet_does_not_execute_written_cells(files):
    table = pd.read_csv("train.csv").assign(b=lambda t: t["b"].map(lambda b: f"=A{b}"))
    table.to_csv("train.csv", index=False)
    table.head(10).to_csv("new.csv", index=False)
    explain("--out", "plain.csv", "--no-spreadsheet-safe")
    explain("--out", "safe.csv")
    plain, safe = (pd.read_csv(f"{name}.csv", dtype=str) for name in ("plain", "safe"))
    assert plain["b"].str.startswith("=A").all()
    pd.testing.assert_frame_equal(plain.assign(b="'" + plain["b"]), safe)
    assert explain("--out", "again.csv", new="safe.csv") == 0  # its levels are known, and all rows are accepted
    assert set(pd.read_csv("again.unexplained.csv")["reason"]) == {ALREADY}
