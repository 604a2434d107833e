"""Broken files raise with file, line, value and fix."""

import re

import pytest

from tests.cli.files_of_people import (
    NAMES,
    N,
    as_cells,
    as_text,
    csv,
    explain,
    raw,
    truth,
    workbook,
    workbook_with_notes,
)


def changed(**columns):
    """The same file with other cells, by row number (from 0)."""

    def put(path, table):
        cells = as_cells(table)
        for name, by_row in columns.items():
            for row, cell in by_row.items():
                cells.iloc[row, NAMES.index(name)] = cell
        path.write_text(as_text(cells), encoding="utf-8")

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
        r"train.csv, line \d+: the byte 0x81 in '.*x81ln.*' is not utf-8. State the encoding, as in --encoding cp1252",
    ),
    "half UTF-8": (
        "csv",
        raw(lambda b: b.replace("Köln".encode(), b"K\xf6ln", 1)),
        r"train.csv, line \d+: the byte 0xf6 .* is not utf-8. State the encoding",
    ),
    "Greek": (
        "csv",
        csv("cp1253", city=lambda c: {"Köln": "Αθήνα"}.get(c, "Πάτρα")),
        r"train.csv, line 2: the byte 0x.. .* is not utf-8. State the encoding",
    ),
    "UTF-16 without a mark": (
        "csv",
        csv("utf-16-le"),
        r"train.csv is not a text file; if it is UTF-16 without a mark, add --encoding utf-16-le",
    ),
    "a short row": (
        "csv",
        raw(lambda b: b[: b.rindex(b",")]),
        r"train.csv, line 41 has 6 cell\(s\), '00039.*', and the header has 7 names.* is the file complete",
    ),
    "an open quote": (
        "csv",
        raw(lambda b: b.replace(b"00003,", b'"00003,')),
        "train.csv, line 5: unexpected end of data. Correct the line: a quote must be closed",
    ),
    "two separators": (
        "csv",
        raw(lambda b: b"a,b;paid\n1,2;yes\n3,4;no\n"),
        "train.csv could be separated by ',', ';'; state it, as in --sep ','",
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
        "column 'amount' of train.csv holds numbers .1 of 40 .*, but line 9 holds 'much'.*--missing much .*--kinds",
    ),
    "two decimal marks": (
        "csv",
        changed(amount={7: "12,5"}),
        "column 'amount' of train.csv holds numbers .*, but line 9 holds '12,5'",
    ),
    "thousands or decimals": (
        "csv",
        thousands,
        r"'rooms' of train.csv can be read in two .*: line 2 holds '(?P<n>\d).000', which is (?P=n) with a decimal "
        r"'.' and (?P=n)000 with a decimal ','. Add --decimal . or --decimal ,",
    ),
    "day or month": (
        "csv",
        changed(born={i: f"{i % 12 + 1:02d}/{(i + 3) % 12 + 1:02d}/1980" for i in range(N)}),
        "'born' of train.csv holds neither plain numbers nor ISO dates: line 2 holds '01/04/1980'. For dates add "
        "--date-format born=FORMAT, as in %d.%m.%Y or %m/%d/%Y",
    ),
    "no such day": (
        "csv",
        changed(born={4: "1980-02-30"}),
        "'born' of train.csv holds dates like 2024-12-31 .1 of 40 cells .*, but line 6 holds '1980-02-30'",
    ),
    "a word among dates": (
        "csv",
        changed(born={0: "unknown"}),
        "line 2 holds 'unknown'. Correct it, or add --missing unknown",
    ),
    "signs": (
        "csv",
        csv(amount="{:.2f} %"),
        r"neither .*: line 2 holds '[\d.]+ %'.* write plain numbers",
    ),
    "brackets": (
        "csv",
        csv(amount="({:.2f})"),
        r"'amount' of train.csv holds neither plain numbers .*: line 2 holds '\([\d.]+\)'.* write plain numbers",
    ),
    "times of day": (
        "csv",
        changed(amount={i: f"{i % 24}:{i % 60:02d}" for i in range(N)}),
        "'amount' of train.csv holds neither .*: line 2 holds '0:00'.* write plain numbers, or add --kinds",
    ),
    "a workbook that is called CSV": ("csv", workbook, "train.csv is not a text file"),
    "a page that is called CSV": ("csv", raw(lambda b: b"<html><table>"), "train.csv has a header but no rows"),
    "no workbook": (
        "xlsx",
        raw(lambda b: b[:99]),
        "train.xlsx cannot be read as a table: .*. Check the file and its ending",
    ),
    "old Excel": ("xls", raw(lambda b: b), "train.xls: .xls files are not read; save it as .csv, .xlsx or .parquet"),
    "a formula without its value": (
        "xlsx",
        lambda path, table: workbook(path, table, with_formula),
        "sheet 'Customers', row 5 holds the formula '=1[+]1' without its value. Open the file in Excel",
    ),
    "merged cells": (
        "xlsx",
        lambda path, table: workbook(path, table, lambda sheet: sheet.merge_cells("D3:D5")),
        "sheet 'Customers' has merged cells at D3:D5",
    ),
    "a title": (
        "xlsx",
        lambda path, table: workbook(path, table, with_title),
        "column 2 has no name in the header, but values, such as 'amount'.*a title above the header",
    ),
    "which sheet": (
        "xlsx",
        workbook_with_notes,
        "has the sheets 'Customers', 'Notes', 'More'; state which, as in --sheet",
    ),
    "text in a workbook's numbers": (
        "xlsx",
        lambda path, table: workbook(path, table, lambda sheet: sheet.__setitem__("B9", "12,5")),
        "column 'amount' of train.xlsx holds values that are not text, but row 9 holds '12,5'.*--kinds amount",
    ),
    "no Parquet": ("parquet", raw(lambda b: b), "train.parquet cannot be read as a table"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_file_raises_with_file_line_value_and_fix(name, seen, tmp_path, capsys):
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
        (
            changed(city=dict.fromkeys(range(10), "Atlantis")),  # one bad row does not affect the others
            [],
            "'city' of new.csv holds the level 'Atlantis' (row '00000'), unknown here",
        ),
        (
            changed(rooms={1: "2.5"}),
            [],
            "'rooms' of new.csv holds 2.5 in row '00001', which the training data's type cannot hold",
        ),
        (changed(rooms={1: ""}), [], "first in row '00001', which the training data's type cannot hold; fill them"),
        (
            changed(born={3: "31.12.1980"}),
            [],
            "new.csv holds dates in the training data, read as 2024-12-31, but line 5 holds '31.12.1980'",
        ),
        (
            changed(amount={0: "12,5"}),
            [],
            "'amount' of new.csv is numeric in the training data, but line 2 holds '12,5'",
        ),
        (
            changed(risk=dict.fromkeys(range(10), "highest")),
            ["--ordered", "risk=low<medium<high"],
            "holds the level 'highest' (row '00000')",
        ),
        (
            raw(lambda b: b.replace(b"rooms", b"room").replace(b"born", b"date")),
            [],
            "the feature 'rooms', 'born' are not columns of new.csv, which has 'who', 'amount', 'room'",
        ),
    ],
)
def test_rows_to_explain_are_checked_before_training(write, options, message, seen, tmp_path, capsys):
    csv()(tmp_path / "train.csv", truth())
    write(tmp_path / "new.csv", truth().head(10))
    assert explain("csv", *options) == 2
    assert not seen
    assert message in capsys.readouterr().err
