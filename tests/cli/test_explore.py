"""`mcce explore`: the rows of a file are read with the kinds of the explainer."""

import joblib
import pandas as pd
import pytest

import mcce
from mcce.cli import main
from tests.explore.bank import send

COLUMNS = ["age", "salary", "savings", "sex", "defaulted_last_year"]


class Paid:
    """Accept rows with savings."""

    def predict(self, X):
        return (X["savings"] + X["salary"] > 60_000).to_numpy()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explore")
    X = mcce.datasets.load_loans(200).X[COLUMNS].assign(since=pd.date_range("2020-01-31", periods=200, unit="s"))
    explainer = mcce.MCCE(Paid(), decision=True, fixed=["age"], random_state=1).fit(X)
    explainer.save(folder / "bank.mcce")
    joblib.dump(Paid(), folder / "model.joblib")
    return folder, X


@pytest.fixture
def opened(monkeypatch):
    """Record the sessions that would be served."""
    served = []

    def serve(session, port, announce):
        announce("http://127.0.0.1:1/token/")
        served.append(session)
        return True

    monkeypatch.setattr("mcce.explore.server.serve", serve)
    return served


def explore(folder, *more, people="people.csv"):
    files = [folder / "bank.mcce", folder / people, "--model", folder / "model.joblib", "--no-browser"]
    return main(["explore", *map(str, files), *map(str, more)])


def test_factuals_are_read_with_the_kinds_of_the_explainer(saved, opened, capsys):
    folder, X = saved
    written = X.head(30).assign(name=[f"n{i}" for i in range(30)], since=X["since"].head(30).dt.strftime("%d.%m.%Y"))
    written = written.assign(salary=[f"{x:,.2f}".translate(str.maketrans(",.", ".,")) for x in written["salary"]])
    written.to_csv(folder / "people.csv", sep=";", index=False)
    assert explore(folder, "--id", "name", "--date-format", "%d.%m.%Y") == 0
    printed = capsys.readouterr()
    assert printed.out.strip() == "http://127.0.0.1:1/token/"
    assert "30 people" in printed.err
    first = send(opened[0], "person", person=0)
    assert first["name"] == "n0"
    values = [cell["value"] for cell in first["cells"]]
    assert values[:3] == X.iloc[0, :3].tolist()
    assert values[5].startswith("2020-01-31")
    assert send(opened[0], "start")["refused"] == int((X["savings"] + X["salary"] <= 60_000).head(30).sum())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X.drop(columns="salary"), "'salary' is not a column"),
        (lambda X: X.assign(salary="much"), "is numeric in the training data"),
        (lambda X: X.assign(sex="robot"), "'robot'"),
        (lambda X: X.head(0), "no rows"),
    ],
)
def test_invalid_arguments_are_reported(saved, opened, capsys, change, words):
    folder, X = saved
    change(X.head(5)).to_csv(folder / "wrong.csv", index=False)
    assert explore(folder, people="wrong.csv") == 2
    assert words in capsys.readouterr().err
    assert not opened


def test_training_file_without_rows_raises(saved, opened, capsys):
    folder, X = saved
    X.head(3).to_csv(folder / "people.csv", index=False)
    X.head(0).to_csv(folder / "none.csv", index=False)
    assert explore(folder, "--train", folder / "none.csv") == 2
    assert "none.csv has a header but no rows" in capsys.readouterr().err
