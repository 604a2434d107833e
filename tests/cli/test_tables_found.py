"""Real-world files are read with the right values in any format.

The model is a rule that stores its training table, so that the values read can be compared with those written.
"""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main
from mcce.exceptions import InputError
from tests.cli.files_of_people import NAMES, N, as_cells, as_text, csv, explain, truth, workbook, workbook_with_notes
from tests.marks import nightly_but


def parquet(path, table):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: pa.array(table[name]) for name in NAMES}
    columns["born"] = pa.array([day.date() for day in table["born"]], pa.date32())
    columns["amount"] = pa.array([Decimal(f"{x:.2f}") for x in table["amount"]], pa.decimal128(10, 2))
    columns["city"] = columns["city"].cast(pa.string()).dictionary_encode()
    pq.write_table(pa.table(columns), path)


def parquet_of_text(path, table):
    as_cells(table, swap=",.", born="%d.%m.%Y").assign(rooms=table["rooms"]).to_parquet(path)


def workbook_of_text(path, table):
    workbook(path, table, cells=as_cells(table, swap=",.", born="%d.%m.%Y").assign(rooms=table["rooms"]))


GERMAN_DATES = ["--date-format", "born=%d.%m.%Y"]
GOOD = {
    "plain": ("csv", csv(), []),
    "a mark for Excel": ("csv", csv("utf-8-sig"), []),
    "Excel's Unicode text": ("txt", csv("utf-16", sep="\t"), []),
    "UTF-16 the other way round": ("csv", csv("utf-16-be", before="\ufeff"), []),
    "German Excel": (
        "csv",
        csv("cp1252", sep=";", swap=",.", born="%d.%m.%Y"),
        ["--encoding", "cp1252", *GERMAN_DATES],
    ),
    "German Excel with thousands": (
        "csv",
        csv("cp1252", sep=";", amount="{:,.2f}", swap=",.", born="%d.%m.%Y"),
        ["--encoding", "cp1252", *GERMAN_DATES],
    ),
    "Latin-1, named": ("csv", csv("latin-1"), ["--encoding", "latin-1"]),
    "central European, named": (
        "csv",
        csv("cp1250", city=lambda c: c.replace("Köln", "Łódź").replace("Århus", "Brno")),
        ["--encoding", "cp1250"],
    ),
    "English thousands, tabs": ("tsv", csv(sep="\t", amount="{:,.2f}"), []),
    "Swiss thousands, pipes": ("csv", csv(sep="|", amount="{:,.2f}", swap=".'"), []),
    "French": (
        "csv",
        csv(sep=";", amount="{:,.2f}", swap=",\u202f", born="%d/%m/%Y"),
        ["--date-format", "born=%d/%m/%Y"],
    ),
    "commas in commas": ("csv", csv(swap=",."), []),
    "times and zones": ("csv", csv(born="%Y-%m-%dT00:00:00Z"), []),
    "American dates": ("csv", csv(born="%m/%d/%Y"), ["--date-format", "%m/%d/%Y"]),
    "dates, named": ("csv", csv(born="%d/%m/%Y"), ["--date-format", "born=%d/%m/%Y"]),
    "short years, named": ("csv", csv(born="%d.%m.%y"), ["--date-format", "born=%d.%m.%y"]),
    "days without anything between": ("csv", csv(born="%Y%m%d"), ["--date-format", "born=%Y%m%d"]),
    "names of months": ("csv", csv(born="%d-%b-%Y"), ["--date-format", "born=%d-%b-%Y"]),
    "compressed": ("csv.gz", csv(), []),
    "Windows' ends of lines, empty rows": ("csv", csv(end="\r\n", after=",,,,,,\r\n,,,,,,\r\n"), []),
    "separators at the ends of lines": ("csv", csv(end=",\n"), []),
    "old Macs' ends of lines": ("csv", csv(end="\r"), []),
    "quoted, with lines inside": ("csv", csv(quoted=True, city=lambda c: f"{c},\nEU"), []),
    "kinds and order": ("csv", csv(), ["--kinds", "rooms=categorical", "--ordered", "risk=low<medium<high"]),
    "marks, named": ("csv", csv(sep=";", swap=",."), ["--decimal", ","]),
    "a workbook": ("xlsx", workbook, []),
    "a workbook with text": (
        "xlsx",
        workbook_of_text,
        ["--kinds", "amount=numeric", "--date-format", "born=%d.%m.%Y"],
    ),
    "a workbook with notes": ("xlsx", workbook_with_notes, ["--sheet", "Customers"]),
    "Parquet with days and decimals": ("parquet", parquet, []),
    "Parquet with text": ("parquet", parquet_of_text, ["--kinds", "amount=numeric", "--date-format", "born=%d.%m.%Y"]),
}


QUICK = {
    *("Excel's Unicode text", "German Excel with thousands", "times and zones", "quoted, with lines inside"),
    *("a workbook with notes", "Parquet with text"),
}


@pytest.mark.parametrize("name", nightly_but(list(GOOD), *QUICK))
def test_read_values_equal_written_values(name, seen, tmp_path, capsys):
    ending, write, options = GOOD[name]
    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="pip install pyarrow")
    table = truth()
    cells = write(tmp_path / f"train.{ending}", table)
    refused = table[table["paid"] == "no"].head(6)
    write(tmp_path / f"new.{ending}", refused)
    assert explain(ending, *options, "--out", "cf.csv") in (0, 3), capsys.readouterr().err
    X = seen["X"]
    assert list(X) == ["amount", "rooms", "city", "born", "risk"]
    np.testing.assert_array_equal(X["amount"], table["amount"])
    np.testing.assert_array_equal(X["rooms"].astype(int), table["rooms"])
    np.testing.assert_array_equal(X["born"].astype("datetime64[s]"), table["born"])
    assert list(X["city"].astype(str)) == list(table["city"] if cells is None else cells["city"])
    assert list(seen["y"]) == list(table["paid"])
    if "--ordered" in options:
        assert X["risk"].cat.ordered
        assert list(X["risk"].cat.categories) == ["low", "medium", "high"]
    assert X["rooms"].dtype == ("category" if name == "kinds and order" else np.int64)
    if cells is not None:
        check_written(tmp_path / "cf.csv", cells, refused, table)


def check_written(path, cells, refused, table):
    """Text and dates are written as in the input file, numbers by value with its decimal mark."""
    raw = path.read_bytes()
    sep = next(c for c in ",;\t|" if c in raw.decode("utf-8-sig").splitlines()[0])
    found = pd.read_csv(path, sep=sep, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    assert len(found)
    assert set(found["id"]) <= set(refused["who"])
    own = cells.set_index("who").loc[found["id"]]
    if "T" not in own["born"].iloc[0]:
        assert list(found["born"]) == list(own["born"])
    assert list(found["city"]) == list(own["city"])
    assert set(found["amount"].str.replace(",", ".").astype(float)) <= set(table["amount"])


def test_decimal_comma_tables_are_consistent_and_readable_by_excel(seen, tmp_path):
    _, write, options = GOOD["German Excel"]
    write(tmp_path / "train.csv", truth())
    write(tmp_path / "new.csv", truth().query("paid == 'no'").head(6))
    assert explain("csv", *options, "--out", "cf.csv") in (0, 3)
    raw = (tmp_path / "cf.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    found = pd.read_csv(tmp_path / "cf.csv", sep=";", decimal=",", encoding="utf-8-sig", thousands=".")
    assert found["gower"].between(0, 1).all()
    assert "." not in "".join(pd.read_csv(tmp_path / "cf.csv", sep=";", dtype=str)["gower"])


def test_decimal_marks_may_differ_between_files_if_unambiguous(seen, tmp_path, capsys):
    table = truth()
    csv()(tmp_path / "train.csv", table)
    csv(sep=";", swap=",.")(tmp_path / "new.csv", table[table["paid"] == "no"].head(4))
    assert explain("csv", "--out", "cf.csv") in (0, 3)
    assert "new.csv is read with separator ';', decimal ','" in capsys.readouterr().err
    assert set(pd.read_csv("cf.csv")["amount"]) <= set(table["amount"])


@pytest.mark.parametrize("options", [[], ["--decimal", ","]])
def test_workbook_has_numbers_for_any_decimal_mark_of_the_other_file(options, seen, tmp_path):
    table = truth()
    csv(sep=";", swap=",.")(tmp_path / "train.csv", table)
    workbook(tmp_path / "new.xlsx", table[table["paid"] == "no"].head(4))
    assert explain("csv", *options, "--out", "cf.csv", new="new.xlsx") in (0, 3)
    assert set(pd.read_csv("cf.csv", sep=";", decimal=",")["amount"]) <= set(table["amount"])


@pytest.mark.slow
def test_ambiguous_thousands_are_resolved_by_other_columns(seen, tmp_path):
    """1.234 beside 12,5 is a thousand; in a file with points only it is not."""
    table = truth()
    for swap, factor in ((",.", 1000), (".,", 1)):
        cells = as_cells(table, swap=swap).assign(rooms=[f"{n}.250" for n in table["rooms"]])
        for name in ("train.csv", "new.csv"):
            (tmp_path / name).write_text(as_text(cells, ";"), encoding="utf-8")
        assert explain("csv") in (0, 3)
        np.testing.assert_array_equal(seen["X"]["rooms"], (table["rooms"] + 0.25) * factor)


@pytest.mark.parametrize(("wanted", "found"), [("paid", "paid"), ("Paid", "Paid"), ("OPEN", "open"), ("2", 2.0)])
def test_exact_class_match_takes_precedence(wanted, found):
    from mcce.cli.checking import read_decision

    assert read_decision(wanted, None, ["Paid", "open", "paid", 2.0]) == found
    with pytest.raises(InputError, match="'PAID', which could be 'Paid', 'paid'"):
        read_decision("PAID", None, ["Paid", "open", "paid"])


@pytest.mark.slow
def test_class_from_a_typing_error_is_not_the_wanted_class(tmp_path, monkeypatch, capsys):
    """Regression: `--decision paid` matched `Paid`, the first match ignoring case, and explained no row."""
    monkeypatch.chdir(tmp_path)
    table = pd.concat([truth()] * 2, ignore_index=True)[["amount", "rooms", "paid"]].replace({"yes": "paid"})
    table.loc[table.index[table["paid"] == "paid"][:3], "paid"] = "Paid"
    table.to_csv("train.csv", index=False)
    table[table["paid"] == "no"].head(3).to_csv("new.csv", index=False)
    arguments = ["--train", "train.csv", "--explain", "new.csv", "--response", "paid", "--n-samples", "100"]
    assert main(["explain", *arguments, "--decision", "paid", "--out", "cf.csv"]) == 0
    assert set(pd.read_csv("cf.csv")["prediction"]) == {"paid"}
    capsys.readouterr()
    assert main(["explain", *arguments, "--decision", "PAID"]) == 2
    assert "could be 'paid', 'Paid'" in capsys.readouterr().err


@pytest.mark.slow
def test_built_in_model_accepts_and_returns_dates(tmp_path, monkeypatch):
    """Rows born before 1985 are accepted: dates are detected, trained on, drawn, and written in their format."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    born = pd.Series(pd.Timestamp("1970-01-01") + pd.to_timedelta(rng.integers(0, 11000, 150), "D"))
    table = pd.DataFrame({"born": born.dt.strftime("%d.%m.%Y"), "n": rng.integers(0, 9, 150)})
    table["paid"] = np.where(born < "1985", "yes", "no")
    table.to_csv("train.csv", index=False)
    table[table["paid"] == "no"].head(5).to_csv("new.csv", index=False)
    arguments = [
        "--train",
        "train.csv",
        "--explain",
        "new.csv",
        "--response",
        "paid",
        "--decision",
        "yes",
        "--fixed",
        "n",
    ]
    arguments += ["--date-format", "%d.%m.%Y"]
    assert main(["explain", *arguments, "--n-samples", "50", "--out", "cf.csv"]) == 0
    found = pd.read_csv("cf.csv")
    assert set(found["born"]) <= set(table["born"])
    assert (pd.to_datetime(found["born"], format="%d.%m.%Y") < "1985-06").all()


@pytest.mark.slow
def test_two_sheets_of_one_workbook(seen, tmp_path, capsys):
    openpyxl = pytest.importorskip("openpyxl", reason="pip install openpyxl")
    table = truth()
    workbook(tmp_path / "train.xlsx", table)
    workbook(tmp_path / "other.xlsx", table[table["paid"] == "no"].head(3))
    book, other = (openpyxl.load_workbook(tmp_path / name) for name in ("train.xlsx", "other.xlsx"))
    refused = book.create_sheet("Refused")
    for row in other["Customers"].values:
        refused.append(row)
    book.save(tmp_path / "train.xlsx")
    assert explain("xlsx", "--sheet", "train=Customers,explain=Refused", "--out", "cf.csv", new="train.xlsx") in (0, 3)
    assert len(seen["X"]) == N
    assert len(pd.read_csv("cf.csv")) <= 3
    capsys.readouterr()
    assert explain("xlsx", "--sheet", "Customer", new="train.xlsx") == 2
    assert (
        "--sheet 'Customer' is not a sheet of --train train.xlsx; did you mean 'Customers'" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--decimal", ","],
            r"is read with a decimal ',', by --decimal or by other columns, but in column 'amount', line 2 holds",
        ),
        (["--encoding", "base64"], "--encoding is 'base64', which is not an encoding of text"),
        (["--encoding", "ascii"], r"train.csv, line \d+: the byte 0xc. in .* is not ascii"),
    ],
)
def test_options_contradicted_by_the_file(options, message, seen, tmp_path, capsys):
    csv()(tmp_path / "train.csv", truth())
    assert explain("csv", *options, new="train.csv") == 2
    assert not seen
    assert re.search(message, capsys.readouterr().err)
