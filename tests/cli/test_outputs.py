"""Result files: missing cells of every kind, formulas, and round trips."""

import io
from functools import cache

import joblib
import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.cli import BAD_INPUT, DONE, main
from mcce.cli.outputs import write_workbook
from mcce.report.reasons import ALREADY
from mcce.table.spreadsheet import escape_formulas
from tests.cli.conftest import Rule
from tests.marks import nightly, slow

openpyxl = pytest.importorskip("openpyxl", reason="needs pip install 'mcce[excel]'")
pa = pytest.importorskip("pyarrow", reason="needs pip install 'mcce[parquet]'")

ARROW = pd.ArrowDtype(pa.string())

DAYS = pd.to_datetime(["2024-01-01", "2024-02-03", None, "2024-05-06"])
CELLS = {  # each column has its own kind of missing cell, in every fourth row
    "text_none": pd.Series(["a", "b", None, "c"], dtype=object),
    "text_nan": pd.Series(["a", "b", np.nan, "c"], dtype=object),
    "python_text": pd.Series(["a", "b", pd.NA, "c"], dtype="string[python]"),
    "arrow_text": pd.Series(["a", "b", None, "c"], dtype="string[pyarrow]"),
    "arrow_type": pd.Series(["a", "b", None, "c"], dtype=ARROW),
    "level": pd.Series(["a", "b", None, "c"], dtype="category"),
    "truth": pd.Series([True, False, None, True], dtype="boolean"),
    "truth_or_none": pd.Series([True, False, None, True], dtype=object),
    "whole": pd.Series([1, 2, None, 3], dtype="Int64"),
    "number": pd.Series([0.5, 1.5, np.nan, 2.5]),
    "day": pd.Series(DAYS),
}
HOLED = list(CELLS)


def holed_table(n=80):
    rows = np.arange(n) % 4
    table = pd.DataFrame({name: cells.iloc[rows].reset_index(drop=True) for name, cells in CELLS.items()})
    return table.assign(amount=np.linspace(0, 2000, n))


@pytest.fixture(scope="module")
def explainer():
    explainer = mcce.MCCE(Rule(), decision="yes", fixed=HOLED, random_state=1).fit(holed_table())
    explainer.explain(holed_table().head(4), n_samples=20, sparse=True)  # learns the parts for sparse
    return explainer


@pytest.fixture
def bank(explainer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    joblib.dump(explainer, "bank.joblib")
    holed_table().head(8).assign(who=[f"person {i}" for i in range(8)]).to_parquet("people.parquet", index=False)
    return explainer


def read_back(path):
    """Return a file as text, missing cells empty."""
    if path.endswith(".xlsx"):
        rows = list(openpyxl.load_workbook(path)["answers"].values)
        return pd.DataFrame([["" if cell is None else str(cell) for cell in row] for row in rows[1:]], columns=rows[0])
    if path.endswith(".parquet"):
        return pd.read_parquet(path).astype(object).map(lambda cell: "" if pd.isna(cell) else str(cell))
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def check_holes(table):
    """Check that rows 2 and 6 of eight have only an amount, and all others a value in each column."""
    found = table[[str(name) for name in HOLED]].astype(str).eq("").to_numpy()
    assert found.any()
    assert (found.all(axis=1) == found.any(axis=1)).all()
    assert found.all(axis=1).tolist() == [i % 4 == 2 for i in range(len(table))]


OUTPUTS = ["all.csv", *nightly("all.csv.gz"), *slow("all.xlsx", "all.parquet")]


@pytest.mark.usefixtures("bank")
@pytest.mark.parametrize("out", OUTPUTS)
def test_explain_writes_missing_cells_of_every_kind(out):
    arguments = ["explain", "bank.joblib", "people.parquet", "--id", "who", "--n-samples", "50", "--sparse"]
    assert main([*arguments, "--out", out]) == DONE
    check_holes(read_back(out))


@pytest.mark.usefixtures("bank")
def test_explain_prints_missing_cells_of_every_kind(capsys):
    arguments = ["explain", "bank.joblib", "people.parquet", "--id", "who", "--n-samples", "50", "--sparse"]
    assert main([*arguments, "--out", "-"]) == DONE
    check_holes(pd.read_csv(io.StringIO(capsys.readouterr().out), dtype=str, keep_default_na=False))


@pytest.mark.usefixtures("bank")
@pytest.mark.parametrize("out", OUTPUTS)
def test_explain_batches_writes_missing_cells_of_every_kind(out):
    arguments = ["explain-batches", "bank.joblib", "people.parquet", "--id", "who", "--n-samples", "50", "--sparse"]
    assert main([*arguments, "--batch-size", "3", "--out", "parts", "--table", out]) == DONE
    check_holes(read_back(out))


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_result_writes_missing_cells_of_every_kind(explainer, tmp_path):
    found = explainer.explain(holed_table().head(8), n_samples=50, sparse=True)
    check_holes(pd.read_csv(io.StringIO(found.to_csv()), dtype=str, keep_default_na=False))
    found.to_frame().to_parquet(tmp_path / "found.parquet", index=False)
    check_holes(read_back(str(tmp_path / "found.parquet")))
    assert len(mcce.report.letters(found, all=True)) == 8
    assert "<html" in mcce.report.letter(found, 2, html=True)
    assert "missing" in found.to_html()
    found.save(tmp_path / "found.mcce")
    pd.testing.assert_frame_equal(mcce.Counterfactuals.load(tmp_path / "found.mcce").frame, found.frame)


def test_workbook_accepts_every_missing_cell(tmp_path):
    missing = [None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT")]
    texts = [
        pd.Series(["a", None, "b" * 30], dtype=d) for d in ("string[python]", "string[pyarrow]", ARROW, "category")
    ]
    texts += [pd.Series(["a", each, "b" * 30], dtype=object) for each in missing]
    table = pd.DataFrame({f"column {j}": column for j, column in enumerate(texts)})
    write_workbook(tmp_path / "a.xlsx", {"answers": table}, {})
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx")["answers"]
    for column in sheet.columns:
        assert [cell.value for cell in column[1:]] == ["a", None, "b" * 30]
        assert sheet.column_dimensions[column[0].column_letter].width == 32


# ---- formulas

COST, JOB = "=cost", "@job"
LEVELS = ["=1+1", "+cmd|' /C calc'!A0", "'=quoted", "clerk"]


class Shop:
    """Accept a cost of 1000 or more."""

    def predict(self, X):
        return np.where(X[COST].to_numpy(float) >= 1000, "yes", "no")


def formulas(n=80, dtype=object):
    levels = pd.Series([LEVELS[i % 4] for i in range(n)], dtype=dtype)
    return pd.DataFrame({COST: np.linspace(-900.0, 2000.0, n), JOB: levels})


@cache
def shop_explainer(dtype):
    table = formulas(dtype=dtype)
    explainer = mcce.MCCE(Shop(), decision="yes", fixed=[JOB], random_state=1).fit(table)
    explainer.explain(table.head(4), n_samples=20, sparse=True)  # learns the parts for sparse
    return explainer


@pytest.fixture(params=[object, *nightly(ARROW)], ids=str)
def shop(request, tmp_path, monkeypatch):
    """A saved explainer of formulas, and eight rows as Parquet and as an unescaped CSV."""
    monkeypatch.chdir(tmp_path)
    joblib.dump(shop_explainer(request.param), "shop.joblib")
    people = (
        formulas(dtype=request.param)
        .head(8)
        .assign(**{"-who": pd.Series([f"=A{i}" for i in range(8)], dtype=request.param)})
    )
    people.to_parquet("people.parquet", index=False)
    people.to_csv("people.csv", index=False)


def run(command, people, *more):
    return main([command, "shop.joblib", people, "--id=-who", "--n-samples", "50", "--sparse", *more])


def run_batches(people, table, *more):
    return run("explain-batches", people, "--batch-size", "3", "--out", f"parts of {table}", "--table", table, *more)


def texts_of(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)


@pytest.mark.slow
@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(("people", "out"), [("people.parquet", "safe.csv"), ("people.csv", "safe.csv.gz")])
def test_csv_files_hold_no_formulas_by_default(people, out):
    assert run("explain", people, "--out", out) == DONE
    assert run("explain", people, "--out", "plain.csv", "--no-spreadsheet-safe") == DONE
    assert run_batches(people, f"batches-{out}") == DONE
    assert run_batches(people, "batches-plain.csv", "--no-spreadsheet-safe") == DONE
    for safe, plain in ((out, "plain.csv"), (f"batches-{out}", "batches-plain.csv")):
        escaped, written = texts_of(safe), texts_of(plain)
        assert written["id"].tolist() == [f"=A{i}" for i in range(8)]
        assert set(written[JOB]) == set(LEVELS)
        assert escaped["id"].tolist() == [f"'=A{i}" for i in range(8)]
        assert escaped[f"'{JOB}"].tolist() == [level if level == "clerk" else f"'{level}" for level in written[JOB]]
        assert escaped[f"'{COST}"].tolist() == written[COST].tolist()


@pytest.mark.slow
@pytest.mark.usefixtures("shop")
def test_unexplained_rows_and_the_job_as_run_are_escaped():
    assert run("explain", "people.csv", "--out", "a.csv", "--fixed", COST, "--no-spreadsheet-safe") != DONE
    assert texts_of("a.unexplained.csv")["id"].iloc[0] == "=A0"
    assert main(["explain", "--config", "a.job.toml", "--out", "b.csv"]) != DONE
    assert texts_of("b.unexplained.csv")["id"].iloc[0] == "=A0"
    assert run("explain", "people.csv", "--out", "c.csv", "--fixed", COST) != DONE
    assert texts_of("c.unexplained.csv")["id"].iloc[0] == "'=A0"


@pytest.mark.slow
@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("command", ["explain", "batches"])
def test_texts_in_a_workbook_are_texts(command):
    if command == "explain":
        assert run("explain", "people.parquet", "--out", "a.xlsx") == DONE
    else:
        assert run_batches("people.parquet", "a.xlsx") == DONE
    cells = [cell for sheet in openpyxl.load_workbook("a.xlsx") for row in sheet for cell in row]
    formulas = [cell for cell in cells if str(cell.value).startswith(("=", "+", "@"))]
    assert len(formulas) > 8
    assert {(cell.data_type, cell.quotePrefix) for cell in formulas} == {("s", True)}


@pytest.mark.slow
@pytest.mark.usefixtures("shop")
def test_escaped_cells_round_trip():
    assert run("explain", "people.csv", "--out", "first.csv") == DONE
    assert run_batches("people.csv", "first-batches.csv") == DONE
    for name in ("first.csv", "first-batches.csv"):
        again = ["shop.joblib", name, "--id", "id", "--n-samples", "50", "--sparse"]
        assert main(["explain", *again, "--out", f"again-{name}"]) == DONE
        assert texts_of(f"again-{name.removesuffix('.csv')}.unexplained.csv")["reason"].unique().tolist() == [ALREADY]
        assert main(["explain-batches", *again, "--out", f"parts of again-{name}"]) == DONE
        others = pd.read_parquet(f"parts of again-{name}/unexplained")
        assert others["reason"].unique().tolist() == [ALREADY]
        assert others["id"].tolist() == [f"=A{i}" for i in range(8)]


@pytest.mark.nightly
@pytest.mark.usefixtures("shop")
def test_escaped_and_plain_rows_get_the_same_answers():
    escape_formulas(pd.read_csv("people.csv")).to_csv("escaped.csv", index=False)
    escape_formulas(pd.read_csv("people.csv")).to_excel("escaped.xlsx", index=False)
    for people in ("people.csv", "escaped.csv", "escaped.xlsx"):
        assert run("explain", people, "--out", f"of-{people}.csv") == DONE
        assert run_batches(people, f"batches-of-{people}.csv") == DONE
    for start in ("of-", "batches-of-"):
        tables = [texts_of(f"{start}{people}.csv") for people in ("people.csv", "escaped.csv", "escaped.xlsx")]
        pd.testing.assert_frame_equal(tables[1], tables[0])
        tables[2][f"'{COST}"], tables[0][f"'{COST}"] = (t[f"'{COST}"].astype(float) for t in (tables[2], tables[0]))
        pd.testing.assert_frame_equal(tables[2], tables[0])


@pytest.mark.usefixtures("shop")
def test_unsafe_output_requires_a_table(capsys):
    assert run("explain-batches", "people.csv", "--out", "parts", "--no-spreadsheet-safe") == BAD_INPUT
    assert "--no-spreadsheet-safe goes with --table FILE.csv" in capsys.readouterr().err
