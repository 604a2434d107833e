"""Files as people have them: the right values, or a message with file, line, value and what to do.

The model is a rule that remembers what it was trained on, so that the values that were read can be compared with those
that were written.
"""

import gzip
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main

N = 40
CITIES = ["Köln", "Århus", "Besançon", "Málaga"]
NAMES = ["who", "amount", "rooms", "city", "born", "risk", "paid"]


class Rule:
    """Pays back who has 1000 or more."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, X):
        yes = (X["amount"].to_numpy(float) >= 1000).astype(float)
        return np.column_stack([1 - yes, yes])

    def predict(self, X):
        return self.classes_[self.predict_proba(X)[:, 1].astype(int)]


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """What the model was trained on; empty if nothing was."""
    trained = {}

    def train(X, y, *_):
        trained.update(X=X, y=y)
        return Rule(), X

    monkeypatch.setattr("mcce.cli.explain.train_model", train)
    monkeypatch.chdir(tmp_path)
    return trained


def truth():
    rng = np.random.default_rng(5)
    amount = np.round(np.exp(rng.uniform(1, 9, N)) * 4) / 4 + 0.25  # some below 1000, some above; two decimals
    born = pd.Timestamp("1970-01-31") + pd.to_timedelta(rng.integers(0, 12000, N), "D")
    return pd.DataFrame(
        {
            "who": [f"{i:05d}" for i in range(N)],
            "amount": amount,
            "rooms": rng.integers(1, 9, N),
            "city": rng.choice(CITIES, N),
            "born": pd.Series(born).astype("datetime64[s]"),
            "risk": rng.choice(["low", "medium", "high"], N),
            "paid": np.where(amount >= 1000, "yes", "no"),
        }
    )


def as_cells(table, amount="{:.2f}", born="%Y-%m-%d", swap="", city=str):
    """The table as text; `swap` replaces marks of the amount, two characters for two."""
    numbers = [amount.format(x).translate(str.maketrans(".,", swap or ".,")) for x in table["amount"]]
    cells = {"amount": numbers, "born": list(table["born"].dt.strftime(born)), "city": list(map(city, table["city"]))}
    return table.assign(**cells).astype(str)


def as_text(cells, sep=",", end="\n", quoted=False):
    def spell(cell):
        return f'"{cell}"' if quoted or sep in cell or "\n" in cell else cell

    return end.join(sep.join(map(spell, row)) for row in [list(cells), *cells.to_numpy().tolist()]) + end


def csv(encoding="utf-8", before="", after="", sep=",", end="\n", quoted=False, **how):
    def write(path, table):
        cells = as_cells(table, **how)
        raw = (before + as_text(cells, sep, end, quoted) + after).encode(encoding)
        path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
        return cells

    return write


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


def workbook(path, table, edit=lambda sheet: None, cells=None, further=()):
    openpyxl = pytest.importorskip("openpyxl", reason="pip install openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Customers"
    rows = table if cells is None else cells
    sheet.append(list(rows))
    for row in rows.astype(object).to_numpy().tolist():
        sheet.append([x.to_pydatetime() if isinstance(x, pd.Timestamp) else x for x in row])
    for name in further:
        book.create_sheet(name).append(["a note"])
    edit(sheet)
    book.save(path)


def workbook_of_text(path, table):
    workbook(path, table, cells=as_cells(table, swap=",.", born="%d.%m.%Y").assign(rooms=table["rooms"]))


def workbook_with_notes(path, table):
    workbook(path, table, further=["Notes", "More"])


GOOD = {
    "plain": ("csv", csv(), []),
    "a mark for Excel": ("csv", csv("utf-8-sig"), []),
    "Excel's Unicode text": ("txt", csv("utf-16", sep="\t"), []),
    "UTF-16 the other way round": ("csv", csv("utf-16-be", before="\ufeff"), []),
    "German Excel": ("csv", csv("cp1252", sep=";", swap=",.", born="%d.%m.%Y"), []),
    "German Excel with thousands": ("csv", csv("cp1252", sep=";", amount="{:,.2f}", swap=",.", born="%d.%m.%Y"), []),
    "Latin-1, named": ("csv", csv("latin-1"), ["--encoding", "latin-1"]),
    "central European, named": (
        "csv",
        csv("cp1250", city=lambda c: c.replace("Köln", "Łódź").replace("Århus", "Brno")),
        ["--encoding", "cp1250"],
    ),
    "English thousands, tabs": ("tsv", csv(sep="\t", amount="{:,.2f}"), []),
    "Swiss thousands, pipes": ("csv", csv(sep="|", amount="{:,.2f}", swap=".'"), []),
    "French": ("csv", csv(sep=";", amount="{:,.2f}", swap=",\u202f", born="%d/%m/%Y"), []),
    "commas in commas": ("csv", csv(swap=",."), []),
    "a line that names the separator": ("csv", csv(before="sep=;\n", sep=";", swap=",."), []),
    "times and zones": ("csv", csv(born="%Y-%m-%dT00:00:00Z"), []),
    "American dates": ("csv", csv(born="%m/%d/%Y"), []),
    "dates, named": ("csv", csv(born="%d/%m/%Y"), ["--dates", "born=dmy"]),
    "short years, named": ("csv", csv(born="%d.%m.%y"), ["--dates", "born=%d.%m.%y"]),
    "days without anything between": ("csv", csv(born="%Y%m%d"), ["--dates", "born=ymd"]),
    "names of months": ("csv", csv(born="%d-%b-%Y"), []),
    "compressed": ("csv.gz", csv(), []),
    "Windows' ends of lines, empty rows": ("csv", csv(end="\r\n", after=",,,,,,\r\n,,,,,,\r\n"), []),
    "separators at the ends of lines": ("csv", csv(end=",\n"), []),
    "old Macs' ends of lines": ("csv", csv(end="\r"), []),
    "quoted, with lines inside": ("csv", csv(quoted=True, city=lambda c: f"{c},\nEU"), []),
    "kinds and order": ("csv", csv(), ["--kinds", "rooms=level,born=date", "--ordered", "risk=low<medium<high"]),
    "an order without a column": ("csv", csv(), ["--ordered", "low<medium<high"]),
    "marks, named": ("csv", csv(sep=";", swap=",."), ["--decimal", "comma"]),
    "a workbook": ("xlsx", workbook, []),
    "a workbook with text": ("xlsx", workbook_of_text, []),
    "a workbook with notes": ("xlsx", workbook_with_notes, ["--sheet", "Customers"]),
    "Parquet with days and decimals": ("parquet", parquet, []),
    "Parquet with text": ("parquet", parquet_of_text, ["--kinds", "amount=number,born=date"]),
}


def explain(ending, *more, new=None):
    asked = ["--response", "paid", "--wanted", "yes", "--id", "who", "--fixed", "city,born", "--n-samples", "60"]
    new = f"new.{ending}" if new is None else new
    return main(["explain", "--train", f"train.{ending}", "--explain", new, *asked, *more])


@pytest.mark.parametrize("name", GOOD)
def test_the_values_are_those_that_were_written(name, seen, tmp_path, capsys):
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
        check_spelling(tmp_path / "cf.csv", cells, refused)


def check_spelling(path, cells, refused):
    """Every value is written as in the file that was read, and the file opens where that one does."""
    raw = path.read_bytes()
    sep = next(c for c in ",;\t|" if c in raw.decode("utf-8-sig").splitlines()[0])
    found = pd.read_csv(path, sep=sep, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    assert len(found)
    assert set(found["id"]) <= set(refused["who"])
    own = cells.set_index("who").loc[found["id"]]
    assert list(found["born"]) == list(own["born"])
    assert list(found["city"]) == list(own["city"])
    assert set(found["amount"]) <= set(cells["amount"])


def test_tables_for_a_decimal_comma_have_it_everywhere_and_excel_knows_their_encoding(seen, tmp_path):
    _, write, _ = GOOD["German Excel"]
    write(tmp_path / "train.csv", truth())
    write(tmp_path / "new.csv", truth().query("paid == 'no'").head(6))
    assert explain("csv", "--out", "cf.csv") in (0, 3)
    raw = (tmp_path / "cf.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    found = pd.read_csv(tmp_path / "cf.csv", sep=";", decimal=",", encoding="utf-8-sig", thousands=".")
    assert found["gower"].between(0, 1).all()
    assert "." not in "".join(pd.read_csv(tmp_path / "cf.csv", sep=";", dtype=str)["gower"])


# ---- broken ones


def changed(**columns):
    """The same file with other cells, each put on its row (from 0)."""

    def put(path, table):
        cells = as_cells(table)
        for name, by_row in columns.items():
            for row, cell in by_row.items():
                cells.iloc[row, NAMES.index(name)] = cell
        path.write_text(as_text(cells), encoding="utf-8")

    return put


def raw(edit):
    """The same file with other bytes."""

    def put(path, table):
        csv()(path, table)
        path.write_bytes(edit(path.read_bytes()))

    return put


def thousands(path, table):
    cells = as_cells(table, amount="{:.0f}").assign(rooms=[f"{n}.000" for n in table["rooms"]])
    path.write_text(as_text(cells, ";"), encoding="utf-8")


def with_formula(sheet):
    sheet["B5"] = "=1+1"


def with_title(sheet):
    sheet.insert_rows(1)
    sheet["A1"] = "Customers of 2024"


BROKEN = {
    "a byte of another code": (
        "csv",
        raw(lambda b: b.replace("Köln".encode(), b"K\x81ln", 1)),
        r"train.csv, line \d+: the byte 0x81 in '.*x81ln.*' is not UTF-8 or cp1252. Name the encoding, as in --enc",
    ),
    "half UTF-8": (
        "csv",
        raw(lambda b: b.replace("Köln".encode(), b"K\xf6ln", 1)),
        r"train.csv, line \d+: the byte 0xf6 .* is not UTF-8, which other parts of the file are",
    ),
    "Greek": (
        "csv",
        csv("cp1253", city=lambda c: {"Köln": "Αθήνα"}.get(c, "Πάτρα")),
        r"train.csv, line 2: the byte 0x.. .* is not UTF-8, nor western. Name the encoding",
    ),
    "UTF-16 without a mark": ("csv", csv("utf-16-le"), r"line 1: there are NUL bytes.* --encoding utf-16-le"),
    "a short row": (
        "csv",
        raw(lambda b: b[: b.rindex(b",")]),
        r"train.csv, line 41 has 6 cell\(s\), '00039.*', where the header has 7 names.* is the file whole",
    ),
    "an open quote": (
        "csv",
        raw(lambda b: b.replace(b"00003,", b'"00003,')),
        "train.csv, line 5: a quote is not closed",
    ),
    "two separators": (
        "csv",
        raw(lambda b: b"a,b;paid\n1,2;yes\n3,4;no\n"),
        "train.csv could be separated by a comma or a semicolon; say which, as in --sep ','",
    ),
    "no name": (
        "csv",
        raw(lambda b: b.replace(b"rooms", b"")),
        "train.csv: column 3 has no name in the header, but value",
    ),
    "a name twice": ("csv", raw(lambda b: b.replace(b"rooms", b"amount")), r"has the column\(s\) 'amount' more than"),
    "text among numbers": (
        "csv",
        changed(amount={7: "much"}),
        "column 'amount' of train.csv holds numbers, but line 9 holds 'much' .*--missing much .*--categorical amount",
    ),
    "two decimal marks": (
        "csv",
        changed(amount={7: "12,5"}),
        "column 'amount' of train.csv holds numbers, but line 9 holds '12,5'",
    ),
    "thousands or decimals": (
        "csv",
        thousands,
        r"'rooms' of train.csv can be read in two .*: line 2 holds '(?P<n>\d).000', which is (?P=n) with a decimal "
        r"point and (?P=n)000 with a decimal comma. Add --decimal point or --decimal comma",
    ),
    "day or month": (
        "csv",
        changed(born={i: f"{i % 12 + 1:02d}/{(i + 3) % 12 + 1:02d}/1980" for i in range(N)}),
        "'born' of train.csv holds dates that can be read in two ways: line 2 holds '01/04/1980', which is 1980-04-01 "
        "or 1980-01-04. Add --dates born=dmy or --dates born=mdy",
    ),
    "no such day": (
        "csv",
        changed(born={4: "1980-02-30"}),
        "'born' of train.csv holds dates like 2024-12-31, but line 6 holds '1980-02-30' .*1 of 40 cells",
    ),
    "a word among dates": (
        "csv",
        changed(born={0: "unknown"}),
        "line 2 holds 'unknown' .*Correct it, or add --missing unknown",
    ),
    "signs": ("csv", csv(amount="{:.2f} %"), r"holds numbers with a sign: line 2 holds '[\d.]+ %'. Remove the signs"),
    "a workbook that is called CSV": ("csv", workbook, "train.csv is an Excel workbook .*; name it .xlsx"),
    "a page that is called CSV": ("csv", raw(lambda b: b"<html><table>"), "train.csv is a web page"),
    "no workbook": ("xlsx", raw(lambda b: b[:99]), "train.xlsx cannot be read as an Excel workbook"),
    "old Excel": ("xls", raw(lambda b: b), "train.xls: .xls files are not read; save it as .xlsx or CSV"),
    "a formula without its value": (
        "xlsx",
        lambda path, table: workbook(path, table, with_formula),
        "sheet 'Customers', row 5 holds the formula '=1[+]1' without its value. Open the file in Excel and save it",
    ),
    "merged cells": (
        "xlsx",
        lambda path, table: workbook(path, table, lambda sheet: sheet.merge_cells("D3:D5")),
        "sheet 'Customers' has merged cells at D3:D5",
    ),
    "a title": (
        "xlsx",
        lambda path, table: workbook(path, table, with_title),
        "row 2 holds 'amount' in a column that has no name in the header, row 1",
    ),
    "which sheet": (
        "xlsx",
        workbook_with_notes,
        "has the sheets 'Customers', 'Notes', 'More'; say which, as in --sheet",
    ),
    "text in a workbook's numbers": (
        "xlsx",
        lambda path, table: workbook(path, table, lambda sheet: sheet.__setitem__("B9", "12,5")),
        "column 'amount' of train.xlsx holds numbers, but row 9 holds '12,5'",
    ),
    "no Parquet": ("parquet", raw(lambda b: b), "train.parquet cannot be read as a table"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_file_line_value_and_remedy(name, seen, tmp_path, capsys):
    ending, write, message = BROKEN[name]
    write(tmp_path / f"train.{ending}", truth())
    assert explain(ending, new=f"train.{ending}") == 2
    assert not seen
    errors = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert len(errors) == 1
    assert re.search(message, errors[0]), errors[0]


@pytest.mark.parametrize(
    ("write", "options", "message"),
    [
        (changed(city={2: "Atlantis"}), [], "new.csv holds the level 'Atlantis' on line 4, which train.csv never has"),
        (
            changed(rooms={1: "2.5"}),
            [],
            "'rooms' of new.csv holds 2.5 on line 3, but all numbers of train.csv there are",
        ),
        (changed(rooms={1: ""}), [], "'rooms' of new.csv has no value on line 3, but every row of train.csv has one"),
        (
            changed(born={3: "31.12.1980"}),
            [],
            "new.csv is of dates in the training data, but line 5 holds '31.12.1980'",
        ),
        (
            changed(amount={0: "12,5"}),
            [],
            "'amount' of new.csv is numeric in the training data, but line 2 holds '12,5'",
        ),
        (changed(risk={1: "highest"}), ["--ordered", "risk=low<medium<high"], "holds the level 'highest' on line 3"),
        (
            raw(lambda b: b.replace(b"rooms", b"room").replace(b"born", b"date")),
            [],
            "the feature 'rooms', 'born' are not columns of new.csv, which has 'who', 'amount', 'room'",
        ),
    ],
)
def test_rows_to_explain_are_checked_before_anything_is_trained(write, options, message, seen, tmp_path, capsys):
    csv()(tmp_path / "train.csv", truth())
    write(tmp_path / "new.csv", truth().head(10))
    assert explain("csv", *options) == 2
    assert not seen
    assert message in capsys.readouterr().err


def test_marks_may_differ_from_file_to_file_if_that_is_clear(seen, tmp_path, capsys):
    table = truth()
    csv()(tmp_path / "train.csv", table)
    csv(sep=";", swap=",.")(tmp_path / "new.csv", table[table["paid"] == "no"].head(4))
    assert explain("csv", "--out", "cf.csv") in (0, 3)
    assert "'amount' of new.csv are read with a decimal comma" in capsys.readouterr().err
    assert set(pd.read_csv("cf.csv", dtype=str)["amount"]) <= set(as_cells(table)["amount"])


@pytest.mark.parametrize("options", [[], ["--decimal", "comma"]])
def test_a_workbook_has_numbers_whatever_the_mark_of_the_other_file(options, seen, tmp_path):
    table = truth()
    csv(sep=";", swap=",.")(tmp_path / "train.csv", table)
    workbook(tmp_path / "new.xlsx", table[table["paid"] == "no"].head(4))
    assert explain("csv", *options, "--out", "cf.csv", new="new.xlsx") in (0, 3)
    found = pd.read_csv("cf.csv", sep=";", dtype=str)
    assert set(found["amount"]) <= set(as_cells(table, swap=",.")["amount"])


def test_thousands_that_look_like_decimals_are_told_by_the_other_columns(seen, tmp_path):
    """1.234 beside 12,5 is a thousand; in a file with points only it is not."""
    table = truth()
    for swap, factor in ((",.", 1000), (".,", 1)):
        cells = as_cells(table, swap=swap).assign(rooms=[f"{n}.250" for n in table["rooms"]])
        for name in ("train.csv", "new.csv"):
            (tmp_path / name).write_text(as_text(cells, ";"), encoding="utf-8")
        assert explain("csv") in (0, 3)
        np.testing.assert_array_equal(seen["X"]["rooms"], (table["rooms"] + 0.25) * factor)


@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [
        (
            "paid",
            0,
            "is the class 'paid' (30 training rows); others are spelled nearly alike: 'Paid' (3 training rows)",
        ),
        ("Paid", 0, "is the class 'Paid' (3 training rows)"),
        ("PAID", 2, "--wanted is 'PAID', which could be 'Paid' (3 training rows), 'paid' (30 training rows)"),
        ("OPEN", 0, ""),
    ],
)
def test_a_class_is_matched_exactly_first(wanted, code, said, capsys):
    from mcce.cli.wanted import read_wanted
    from mcce.exceptions import InputError

    counts = {"Paid": 3, "open": 7, "paid": 30}
    if code:
        with pytest.raises(InputError, match=re.escape(said)):
            read_wanted(wanted, None, list(counts), counts)
        return
    assert read_wanted(wanted, None, list(counts), counts) == {"OPEN": "open"}.get(wanted, wanted)
    assert said in capsys.readouterr().err


def test_a_class_made_by_typing_errors_is_not_the_wanted_one(tmp_path, monkeypatch, capsys):
    """`--wanted paid` once took `Paid`, the first that is spelled so but for capitals, and explained nobody."""
    monkeypatch.chdir(tmp_path)
    table = pd.concat([truth()] * 2, ignore_index=True)[["amount", "rooms", "paid"]].replace({"yes": "paid"})
    table.loc[table.index[table["paid"] == "paid"][:3], "paid"] = "Paid"
    table.to_csv("train.csv", index=False)
    table[table["paid"] == "no"].head(3).to_csv("new.csv", index=False)
    asked = ["--train", "train.csv", "--explain", "new.csv", "--response", "paid", "--n-samples", "100"]
    assert main(["explain", *asked, "--wanted", "paid", "--out", "cf.csv"]) == 0
    assert set(pd.read_csv("cf.csv")["prediction"]) == {"paid"}
    capsys.readouterr()
    assert main(["explain", *asked, "--wanted", "PAID"]) == 2
    assert re.search(r"could be 'paid' \(19 training rows\), 'Paid' \(3 training rows\)", capsys.readouterr().err)


def test_a_model_of_ours_takes_dates_and_returns_dates(tmp_path, monkeypatch):
    """Who was born before 1985 gets it: dates are found, trained on, drawn, and written as they were."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    born = pd.Series(pd.Timestamp("1970-01-01") + pd.to_timedelta(rng.integers(0, 11000, 150), "D"))
    table = pd.DataFrame({"born": born.dt.strftime("%d.%m.%Y"), "n": rng.integers(0, 9, 150)})
    table["paid"] = np.where(born < "1985", "yes", "no")
    table.to_csv("train.csv", index=False)
    table[table["paid"] == "no"].head(5).to_csv("new.csv", index=False)
    asked = ["--train", "train.csv", "--explain", "new.csv", "--response", "paid", "--wanted", "yes", "--fixed", "n"]
    assert main(["explain", *asked, "--n-samples", "50", "--out", "cf.csv"]) == 0
    found = pd.read_csv("cf.csv")
    assert set(found["born"]) <= set(table["born"])
    assert (pd.to_datetime(found["born"], format="%d.%m.%Y") < "1985-06").all()


def test_two_sheets_of_one_workbook(seen, tmp_path, capsys):
    openpyxl = pytest.importorskip("openpyxl", reason="pip install openpyxl")
    table = truth()
    workbook(tmp_path / "train.xlsx", table)
    workbook(tmp_path / "other.xlsx", table[table["paid"] == "no"].head(3))
    book, other = (openpyxl.load_workbook(tmp_path / name) for name in ("train.xlsx", "other.xlsx"))
    refused = book.create_sheet("Refused")
    for row in other["Customers"].values:
        refused.append(row)
    book["Customers"].row_dimensions[5].hidden = True
    book.save(tmp_path / "train.xlsx")
    assert explain("xlsx", "--sheet", "train=Customers,explain=Refused", "--out", "cf.csv", new="train.xlsx") in (0, 3)
    assert len(seen["X"]) == N
    assert len(pd.read_csv("cf.csv")) <= 3
    assert "sheet 'Customers': 1 hidden row(s) are read too, the first is row 5" in capsys.readouterr().err
    assert explain("xlsx", "--sheet", "Customer", new="train.xlsx") == 2
    assert "--sheet 'Customer' is no sheet of --train train.xlsx; did you mean 'Customers'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--decimal", "comma"], r"'amount' of train.csv is to be read by --decimal comma, but line 2 holds"),
        (["--encoding", "base64"], "--encoding is 'base64', which is not known"),
        (["--encoding", "ascii"], r"train.csv, line \d+: the byte 0xc. in .* is not ascii"),
    ],
)
def test_options_that_the_file_contradicts(options, message, seen, tmp_path, capsys):
    csv()(tmp_path / "train.csv", truth())
    assert explain("csv", *options, new="train.csv") == 2
    assert not seen
    assert re.search(message, capsys.readouterr().err)
