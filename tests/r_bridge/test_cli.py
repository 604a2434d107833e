"""`mcce parity`, run in this process."""

import pandas as pd
import pytest

from mcce.cli import BAD_INPUT, DONE, main
from mcce.datasets import load_airquality, load_loans
from r_bridge.cli import PARTED


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    loans = load_loans(200)
    loans.X[["age", "sex", "salary", "housing"]].assign(default=loans.y).to_csv(folder / "loans.csv", index=False)
    air = load_airquality()
    air.X.assign(Ozone=air.y).to_csv(folder / "air.csv", index=False)
    (folder / "broken.csv").write_text('a\n"1,2\n')
    return folder


def test_airquality_agrees(r, need, capsys):
    need("mcceR")
    assert main(["parity", "--n-samples", "100"]) == DONE
    assert capsys.readouterr().out.count("values compared, all agree.") == 2


def test_a_table_with_levels_and_classes(r, need, files, capsys):
    need("mcceR")
    options = ["--fixed", "age,sex", "--decision", "0,0.1", "--n-samples", "50", "--engine", "rpart"]
    assert main(["parity", "--train", str(files / "loans.csv"), "--response", "default", *options]) == DONE
    assert "all agree" in capsys.readouterr().out


@pytest.mark.parametrize("agrees", [True, False])
def test_options_and_exit_codes(r, files, capsys, monkeypatch, agrees):
    called = {}

    class Report:
        def __repr__(self):
            return "a report"

    Report.agrees = agrees
    monkeypatch.setattr(
        "r_bridge.cli.check_parity", lambda *rows, **options: called.update(options, rows=rows) or Report()
    )
    options = ["--decision=-inf,20", "--engine", "ctree", "--explain", "2", "--random-state", "7"]
    code = main(["parity", "--train", str(files / "air.csv"), "--response", "Ozone", *options])
    assert code == (DONE if agrees else PARTED)
    shown = capsys.readouterr()
    assert "a report" in shown.out
    assert "42 of 153 rows have missing values and are dropped" in shown.err
    _, x_explain, x_train = called["rows"]
    assert (len(x_explain), len(x_train), list(x_train)) == (2, 109, ["Solar.R", "Wind", "Temp", "Month", "Day"])
    assert (called["fit_seed"], called["generate_seed"], called["c_int"]) == (7, 8, (-float("inf"), 20.0))
    assert isinstance(x_train, pd.DataFrame)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--train", "nothing.csv", "--response", "y"], "nothing.csv: No such file"),
        (["--train", "{broken}", "--response", "y"], "pandas.read_csv cannot read"),
        (["--train", "{air}"], "--response is None, not a column"),
        (["--train", "{air}", "--response", "Ozon", "--decision", "1,2"], "did you mean 'Ozone'"),
        (["--train", "{air}", "--response", "Ozone"], "--decision must say what is wanted"),
        (["--train", "{air}", "--response", "Ozone", "--decision", "(1,2)"], "give two numbers"),
        (["--train", "{air}", "--response", "Ozone", "--decision", "1,2", "--fixed", "Winds"], "did you mean 'Wind'"),
        (["--train", "{air}", "--response", "Ozone", "--decision", "1,2", "--explain", "500"], "number from 1 to 110"),
        (["--response", "Ozone"], "--response needs --train"),
        (["--train", "{loans}", "--response", "housing"], "has 3 classes"),
    ],
)
def test_bad_arguments(r, files, capsys, options, message):
    paths = {name: files / f"{name}.csv" for name in ("air", "loans", "broken")}
    assert main(["parity", *(option.format(**paths) for option in options)]) == BAD_INPUT
    assert message in " ".join(capsys.readouterr().err.split())
