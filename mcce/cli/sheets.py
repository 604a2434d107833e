"""A sheet of an Excel workbook as a table of text, so that its cells are understood like those of a CSV.

1. One sheet has values, or `--sheet` names one.
2. Its first row that is not empty is the header; rows without any value are left out.
3. Numbers, dates and truths are written as Python writes them, so that nothing is lost and nothing is guessed about
   them; text stays as it is.
4. Refused: values in columns without a name, merged cells (all but one of which are empty), and formulas whose values
   were not saved. Hidden rows are read, and that is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

import pandas as pd

from mcce.cli.console import say
from mcce.exceptions import InputError, did_you_mean, listing


@dataclass(frozen=True)
class Sheet:
    """A sheet as text.

    Attributes
    ----------
    table : its cells
    rows : the row of the workbook that each of them stands in
    numeric : the columns that hold numbers by themselves, at least in part
    """

    table: pd.DataFrame
    rows: tuple[int, ...]
    numeric: frozenset[str]


def read_sheet(where: str, path: str, name: str | None) -> Sheet:
    """Read one sheet of a workbook."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise InputError(f"{where}: Excel files need openpyxl; pip install 'mcce[excel]', or save a CSV.") from None
    try:
        book = load_workbook(path, data_only=True)
    except Exception as error:  # whatever a broken zip or its XML leads to
        problem = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
        raise InputError(
            f"{where} cannot be read as an Excel workbook ({problem}). Save it again as .xlsx or CSV."
        ) from None
    sheet = _choose(where, {each.title: each for each in book.worksheets}, name)
    where = f"{where}, sheet {sheet.title!r}"
    rows = {row[0].row: [cell.value for cell in row] for row in sheet.iter_rows()}
    rows = {at: values for at, values in rows.items() if any(_is_filled(value) for value in values)}
    if not rows:
        raise InputError(f"{where} is empty; it needs a header and rows.")
    top, *below = rows
    header = {place: str(value).strip() for place, value in enumerate(rows[top]) if _is_filled(value)}
    twice = [name for name in dict.fromkeys(header.values()) if [*header.values()].count(name) > 1]
    if twice:
        raise InputError(f"{where} has the column(s) {listing(twice)} more than once; rename them.")
    for at in below:
        for place, value in enumerate(rows[at]):
            if _is_filled(value) and place not in header:
                raise InputError(
                    f"{where}, row {at} holds {value!r} in a column that has no name in the header, row {top} "
                    f"({listing(header.values())}). Name it there; a title above the header has to go."
                )
    _check_merged(where, sheet, top)
    _check_formulas(where, path, sheet, [(at, place) for at in below for place in header if rows[at][place] is None])
    hidden = [at for at in below if sheet.row_dimensions[at].hidden]
    if hidden:
        say(f"{where}: {len(hidden)} hidden row(s) are read too, the first is row {hidden[0]}")
    columns = {name: [rows[at][place] for at in below] for place, name in header.items()}
    numeric = frozenset(name for name, values in columns.items() if any(_is_number(value) for value in values))
    return Sheet(pd.DataFrame({n: _as_text(v) for n, v in columns.items()}, dtype=str), tuple(below), numeric)


def _choose(where: str, sheets: dict[str, Any], name: str | None) -> Any:
    """Step 1."""
    if name is not None:
        if name not in sheets:
            raise InputError(f"--sheet {name!r} is no sheet of {where}; {did_you_mean(name, sheets)}")
        return sheets[name]
    filled = [each for each in sheets.values() if each.max_row > 1 or each["A1"].value is not None]
    if len(filled) > 1:
        raise InputError(
            f"{where} has the sheets {listing(each.title for each in filled)}; say which, as in --sheet "
            f"{filled[0].title!r}, or --sheet 'train={filled[0].title},explain={filled[1].title}'."
        )
    return filled[0] if filled else next(iter(sheets.values()))


def _check_merged(where: str, sheet: Any, top: int) -> None:
    for merged in sheet.merged_cells.ranges:
        if merged.max_row >= top:
            raise InputError(
                f"{where} has merged cells at {merged.coord}, of which only the first has a value. Unmerge them and "
                "fill each cell."
            )


def _check_formulas(where: str, path: str, sheet: Any, empty: list[tuple[int, int]]) -> None:
    if not empty:
        return
    from openpyxl import load_workbook

    formulas = load_workbook(path)[sheet.title]
    for at, place in empty:
        cell = formulas.cell(at, place + 1)
        if cell.data_type == "f":
            raise InputError(
                f"{where}, row {at} holds the formula {cell.value!r} without its value. Open the file in Excel and "
                "save it, or replace the formulas by values."
            )


def _is_filled(value: Any) -> bool:
    return value is not None and str(value).strip() != ""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _as_text(values: list[Any]) -> list[str]:
    """Step 3; dates without a time stay dates."""
    midnight = all(value.time() == time() for value in values if isinstance(value, datetime))
    return [_text_of(value, midnight) for value in values]


def _text_of(value: Any, midnight: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.date().isoformat() if midnight else value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value)
