"""Results as an Excel workbook: answers with the changed cells marked, every change, and who has no answer.

1. `answers`: the table of all counterfactuals; cells that the decision needs are marked in one colour, those that come
   along in another, each with the old value as a note.
2. `changes`: a row for each changed cell: old and new value, needed or coming along.
3. `no answer`: who has none, and why.

Text stays text, whatever it begins with: nothing in it is a formula. The same tables give the same bytes.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce.exceptions import InputError
from mcce.table.spreadsheet import escape_formula

NEEDED, ALONG = "FFFFD966", "FFFFF2CC"  # fills: orange and a pale one
MOST_ROWS = 1_048_576
WIDEST = 60
_SAME_TIME = datetime(1980, 1, 1)
Marks = Mapping[tuple[int, int], tuple[bool, str]]


def write_workbook(path: Path, sheets: Mapping[str, pd.DataFrame], marks: Marks) -> None:
    """Write tables as sheets; `marks` are cells of the first, by row and column: whether each comes along, its note."""
    try:
        from openpyxl import Workbook
        from openpyxl.comments import Comment
        from openpyxl.styles import Font, PatternFill
        from openpyxl.utils import get_column_letter
    except ImportError:
        raise InputError(f"{path}: .xlsx files need openpyxl; pip install 'mcce[excel]', or write a CSV.") from None
    book = Workbook()
    book.properties.created = book.properties.modified = _SAME_TIME
    book.remove(book.active)
    for title, table in sheets.items():
        if len(table) >= MOST_ROWS:
            raise InputError(
                f"{path}: a sheet holds {MOST_ROWS - 1:,} rows, and there are {len(table):,}; write a CSV."
            )
        sheet = book.create_sheet(title)
        for j, name in enumerate(table.columns, 1):
            _put(sheet.cell(1, j), str(name)).font = Font(bold=True)
            values = table.iloc[:, j - 1].astype(object)
            for i, value in enumerate(values, 2):
                _put(sheet.cell(i, j), value)
            texts = [str(name), *map(str, values.head(100).dropna())]
            sheet.column_dimensions[get_column_letter(j)].width = min(max(map(len, texts)) + 2, WIDEST)
        sheet.freeze_panes = "A2"
    first = book.worksheets[0]
    fills = {along: PatternFill("solid", fgColor=ALONG if along else NEEDED) for along in (False, True)}
    for (row, column), (along, note) in marks.items():
        cell = first.cell(row + 2, column + 1)
        cell.fill = fills[along]
        cell.comment = Comment(_plain(note), "mcce")
    held = io.BytesIO()
    book.save(held)
    with zipfile.ZipFile(held) as made, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in made.namelist():
            data = made.read(name)
            if name == "docProps/core.xml":
                data = _with_same_time(data)
            file.writestr(zipfile.ZipInfo(name, _SAME_TIME.timetuple()[:6]), data, zipfile.ZIP_DEFLATED)


def _put(cell: Any, value: Any) -> Any:
    """Write a value; text as text, times without their zone, which Excel has none for."""
    if value is None or (not isinstance(value, (list, tuple)) and pd.isna(value)):
        return cell
    if isinstance(value, (bool, np.bool_)):
        cell.value = bool(value)
    elif isinstance(value, (int, np.integer)) and abs(int(value)) < 10**15:
        cell.value = int(value)
    elif isinstance(value, (float, np.floating)) and np.isfinite(value):
        cell.value = float(value)
    elif isinstance(value, pd.Timestamp) and 1900 < value.year < 9999:
        cell.value = value.tz_localize(None).to_pydatetime()
    else:
        text = _plain(str(value))
        cell.value = text
        cell.data_type = "s"  # a text that begins with = is not a formula
        cell.quotePrefix = escape_formula(text) is not text  # nor does it become one when the cell is edited
    return cell


def _plain(text: str) -> str:
    """Return a text that a workbook can hold: without control characters, no longer than a cell."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in text)[:32_000]


def _with_same_time(data: bytes) -> bytes:
    same = _SAME_TIME.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    return re.sub(rb"(<dcterms:modified[^>]*>)[^<]*(</dcterms:modified>)", rb"\g<1>" + same + rb"\g<2>", data)
