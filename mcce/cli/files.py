"""Tables from files: text files, Excel workbooks and Parquet.

1. Text files and workbooks are read as text; the kinds of their columns are found by `mcce.cli.cells`, for the columns
   that are used. Names of rows stay text.
2. A Parquet file knows the kinds of its columns. Text in it is read as numbers or dates only if the user asks for it;
   a note says that it looks like them.
3. Whoever reads a message about a cell can find it: file, line or row, value.

A text file (`read_text`): its encoding, its separator, and whether its rows are whole.

1. Bytes become text by the mark at their beginning (UTF-8, UTF-16, UTF-32), else as UTF-8. Bytes that are no UTF-8 are
   read as Windows' western code page, which contains Latin-1, if they look like it, and a note says so; anything else
   is refused with its line. `--encoding` names it.
2. The separator is the one of , ; tab | by which the first rows have as many cells as the header has names; a first
   line as in `sep=;` names it, and so does `--sep`. If two would do, neither is chosen.
3. A row with fewer cells than the header has names, or a quote that is never closed, is refused with its line.

A sheet of a workbook (`read_sheet`), as a table of text, so that its cells are understood like those of a text file.

1. One sheet has values, or `--sheet` names one.
2. Its first row that is not empty is the header; rows without any value are left out.
3. Numbers, dates and truths are written as Python writes them, so that nothing is lost and nothing is guessed about
   them; text stays as it is.
4. Refused: values in columns without a name, merged cells (all but one of which are empty), and formulas whose values
   were not saved. Hidden rows are read, and a note says so.
"""

from __future__ import annotations

import argparse
import codecs
import csv
import gzip
import io
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.cli.cells import (
    CellKind,
    Declared,
    Mark,
    Reading,
    TextColumn,
    find_format,
    find_marks,
    find_reading,
    plain,
    read_cells,
)
from mcce.cli.console import say
from mcce.exceptions import InputError, did_you_mean, listing
from mcce.table.dtypes import is_dated
from mcce.table.spreadsheet import unescape_formulas

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
LOOKED_AT = 100  # rows, to find the separator
MARKS = {  # the longer ones first: UTF-32 begins like UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
OTHERS = {  # what a file is whose name says that it is text
    b"PK\x03\x04": "an Excel workbook or another zip archive; name it .xlsx if it is a workbook, else unpack it",
    b"PAR1": "a Parquet file; name it .parquet",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls); save it as .xlsx or CSV",
    b"%PDF": "a PDF; give the table that it was made from",
    b"\x1f\x8b": "compressed by gzip; name it .csv.gz",
}
WESTERN = "cp1252"
PARTS_OF_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
# Greek or Russian read as western: words of accented letters; that of DOS: daggers and quotes inside words
NOT_WESTERN = re.compile(r"[^\W\d_a-zA-Z]{3}|[a-z][€‚ƒ„…†‡ˆ‰‹‘“”•˜™›][a-z]", re.IGNORECASE)


@dataclass(frozen=True)
class TextFile:
    """The text of a file, and how it is to be read.

    Attributes
    ----------
    text : from the header on
    encoding, sep : found or given
    skipped : lines before the header
    """

    text: str
    encoding: str
    sep: str
    skipped: int = 0

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Return each row that is no empty line, the header first, with the line it begins on."""
        lines = io.StringIO(self.text, newline="")
        reader, begin = csv.reader(lines, delimiter=self.sep, strict=True), self.skipped + 1
        for cells in reader:
            if cells:
                yield begin, cells
            begin = self.skipped + reader.line_num + 1


def read_text(where: str, path: str, encoding: str | None, sep: str | None) -> TextFile:
    """Read a file (steps 1 to 3); `where` names it in messages."""
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        raw = file.read()
    for beginning, what in OTHERS.items():
        if raw.startswith(beginning):
            raise InputError(f"{where} is {what}.")
    text, encoding = _decode(where, raw, encoding)
    skipped, hint = 0, re.match(r"sep=(.)\r?\n", text)
    if hint is not None:  # how Excel is told
        text, skipped, sep = text[hint.end() :], 1, sep or hint[1]
    if text.lstrip()[:15].lower().startswith(("<!doctype html", "<html", "<?xml")):
        raise InputError(f"{where} is a web page or XML, not a table of text; export it as CSV.")
    found = TextFile(text, encoding, sep or _find_separator(where, text), skipped)
    _check_rows(where, found)
    return found


def _decode(where: str, raw: bytes, encoding: str | None) -> tuple[str, str]:
    """Step 1."""
    marked = next((name for mark, name in MARKS.items() if raw.startswith(mark)), None)
    if encoding is not None:
        try:
            b"a".decode(encoding, "replace")  # also tells what is no encoding of text
            name = codecs.lookup(encoding).name
        except LookupError:
            raise InputError(
                f"--encoding is {encoding!r}, which is not known; write utf-8, utf-16, cp1252 (western Windows), "
                "cp1250 (central European), latin-1, shift_jis, or another of Python's names."
            ) from None
        name = "utf-8-sig" if name == "utf-8" else name
    elif marked is not None:
        name = marked
    elif b"\0" in raw:
        line = raw[: raw.index(b"\0")].count(b"\n") + 1
        raise InputError(
            f"{where}, line {line}: there are NUL bytes, as in UTF-16 without a mark. Add --encoding utf-16-le (or "
            "utf-16-be) if that is what it is; save it as UTF-8 otherwise."
        )
    else:
        name = "utf-8"
    try:
        return raw.decode(name), name
    except UnicodeDecodeError as error:
        if encoding is None and marked is None:
            return _decode_western(where, raw, error), WESTERN
        raise _undecodable(where, raw, error, name) from None


def _decode_western(where: str, raw: bytes, error: UnicodeDecodeError) -> str:
    """Return bytes that are no UTF-8 as western text, if nothing speaks against it."""
    try:
        text = raw.decode(WESTERN)
    except UnicodeDecodeError as second:
        raise _undecodable(where, raw, second, "UTF-8 or cp1252") from None
    strange = NOT_WESTERN.search(text)
    if PARTS_OF_UTF8.search(raw):
        raise _undecodable(where, raw, error, "UTF-8, which other parts of the file are")
    if strange is not None:
        begin = strange.start()
        raise _undecodable(where, raw, UnicodeDecodeError("utf-8", raw, begin, begin + 1, ""), "UTF-8, nor western")
    at = error.start
    line, before, after = text[:at].count("\n") + 1, text[max(at - 20, 0) : at], text[at : at + 20]
    word = re.findall(r"\S*$", before)[0] + (re.findall(r"^[\w'-]*", after)[0] or after[0])
    say(
        f"{where} is not UTF-8; it is read as western text ({WESTERN}), which has {word.split(';')[-1]!r} on line "
        f"{line}. If that is wrong, add --encoding"
    )
    return text


def _undecodable(where: str, raw: bytes, error: UnicodeDecodeError, name: str) -> InputError:
    line = raw[: error.start].count(b"\n") + 1
    around = raw[max(error.start - 8, 0) : error.start + 8].decode("ascii", "backslashreplace")
    return InputError(
        f"{where}, line {line}: the byte 0x{raw[error.start]:02x} in {around!r} is not {name}. Name the encoding, as "
        "in --encoding cp1250 or --encoding shift_jis; save it as UTF-8 otherwise."
    )


def _find_separator(where: str, text: str) -> str:
    """Step 2."""
    fits, could = [], {}
    for sep in SEPARATORS:
        try:
            widths = [len(cells) - (cells[-1] == "") for _, cells in islice(TextFile(text, "", sep).rows(), LOOKED_AT)]
            header = next((cells for _, cells in TextFile(text, "", sep).rows()), [])
        except csv.Error:  # a quote that is never closed is told below
            header, widths = text.partition("\n")[0].split(sep), []
        if len(header) > 1:
            could[sep] = len(header)
            if all(width in (len(header), len(header) - 1) for width in widths[1:]):
                fits.append(sep)
    if len(fits) > 1:
        named = " or ".join(f"a {SEPARATORS[sep]}" for sep in fits)
        raise InputError(f"{where} could be separated by {named}; say which, as in --sep '{fits[0]}'.")
    return fits[0] if fits else max(could, key=lambda sep: could[sep], default=",")


def _check_rows(where: str, file: TextFile) -> None:
    """Step 3."""
    width, line = 0, file.skipped + 1
    try:
        for line, cells in file.rows():
            width = width or len(cells)
            if len(cells) < width:
                raise InputError(
                    f"{where}, line {line} has {len(cells)} cell(s), {' '.join(cells)[:40]!r}, where the header has "
                    f"{width} names. Complete or remove it; is the file whole?"
                )
            line += 1
    except csv.Error as error:
        raise InputError(
            f"{where}, line {line}: a quote is not closed, or text follows its end ({error}). Correct it there; a "
            "quote inside a quoted cell is doubled."
        ) from None


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


UNNAMED = "Unnamed: 0"  # what pandas calls a row index that was saved along
WORKBOOKS = (".xlsx", ".xlsm")
UNREAD = {
    ".xls": "save it as .xlsx or CSV",
    ".ods": "save it as .xlsx or CSV",
    ".json": "write it as CSV or Parquet",
    ".zip": "unpack it",
}


@dataclass(frozen=True)
class TableFile:
    """A table read from a file: cells as the text they are, or a Parquet file's values.

    Attributes
    ----------
    role, path : option and file, for messages
    table : the cells or values
    is_text : whether they are cells of a text file or a workbook
    missing : texts that mean a missing value, besides an empty cell
    sep, encoding : of a text file; empty for others
    rows : where the rows stand in a workbook
    native : columns whose numbers the file knows to be numbers
    """

    role: str
    path: str
    table: pd.DataFrame
    is_text: bool
    missing: tuple[str, ...]
    sep: str = ""
    encoding: str = ""
    rows: tuple[int, ...] = ()
    native: frozenset[str] = frozenset()

    def column(self, name: Any) -> TextColumn:
        """Return a column of text, missing cells marked."""
        raw = self.table[name]
        cells = raw.mask(raw.isin(["", *self.missing]))
        return TextColumn(name, raw, cells, self.path, self.place, name in self.native)

    def unescaped(self, known: Mapping[Any, Iterable[Any]], id: str | None) -> TableFile:
        """Return the file without the apostrophes of spreadsheet-safe files; `known` has the levels of each feature."""
        if not self.is_text:
            return self
        return replace(self, table=unescape_formulas(self.table, known, () if id is None else (id,)))

    def place(self, row: int) -> str:
        """Return where a row stands in the file: a quoted cell may have several lines, an empty line is no row."""
        if not self.sep:
            return f"row {self.rows[row] if self.rows else row + 1}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = read_text(self.path, self.path, self.encoding, self.sep)
        return f"line {next(line for at, (line, _) in enumerate(text.rows(), -1) if at == row)}"

    def readings(self, names: Iterable[Any], declared: Declared) -> dict[Any, Reading]:
        """Return how some columns are read."""
        names = list(names)
        texts = [self.column(name) for name in names if self._is_read(name, declared)]
        marks = find_marks(texts, declared.decimals, sep=self.sep, levels=declared.levels, hints={})
        found = {column.name: find_reading(column, marks.get(column.name, "."), declared) for column in texts}
        return {name: found[name] if name in found else self._as_it_is(name, declared) for name in names}

    def readings_like(self, training: Mapping[Any, Reading], declared: Declared) -> dict[Any, Reading]:
        """Return how the same columns are read here, where decimal marks may differ from the training file's."""
        kinds = {name: reading.kind for name, reading in training.items()}
        texts = [self.column(name) for name in training if self._is_string(name) and kinds[name] == "number"]
        hints = {name: reading.mark for name, reading in training.items() if not reading.native}
        marks = find_marks(texts, declared.decimals, sep=self.sep, levels=declared.levels, hints=hints)
        return {name: self._like(name, reading, marks, declared) for name, reading in training.items()}

    def _like(self, name: Any, training: Reading, marks: Mapping[str, Mark], declared: Declared) -> Reading:
        if not self._is_string(name):
            return replace(training, native=True)
        if training.kind == "number":
            return Reading("number", marks.get(name, training.mark))
        if training.kind == "date" and training.native:
            of_column = replace(declared, dates={name: declared.dates.get(name, "")})
            return find_reading(self.column(name), ".", of_column)
        return replace(training, native=False)

    def read(self, readings: Mapping[Any, Reading], *, checked: bool, numbers: Collection[str] = ()) -> pd.DataFrame:
        """Return the columns of `readings` as values; `checked`: their cells are known to be of these kinds."""
        columns = {
            name: self.table[name]
            if reading.native
            else read_cells(self.column(name), reading, checked=checked, numbers=numbers)
            for name, reading in readings.items()
        }
        return pd.DataFrame(columns, index=self.table.index)

    def _is_string(self, name: Any) -> bool:
        return self.is_text or (
            not isinstance(self.table[name].dtype, pd.CategoricalDtype)
            and pd.api.types.infer_dtype(self.table[name], skipna=True) == "string"
        )

    def _is_read(self, name: Any, declared: Declared) -> bool:
        return self.is_text or (self._is_string(name) and (name in declared.numbers or name in declared.dates))

    def _as_it_is(self, name: Any, declared: Declared) -> Reading:
        """Step 2: say what the values of a column are; refuse what they cannot be."""
        values = self.table[name]
        kind = _kind_of_values(values)
        for option, named, wanted in (("--numeric", declared.numbers, "number"), ("--dates", declared.dates, "date")):
            if name in named and kind != wanted:
                raise InputError(
                    f"column {name!r} of {self.path} is named by {option}, but the file has {values.dtype} there; "
                    "convert it, or leave the option out."
                )
        if name not in declared.levels and self._is_string(name):
            texts = [str(text) for text in values.dropna().unique()]
            are_numbers = all(plain(text, ".") or plain(text, ",") for text in texts)
            looks = "number" if are_numbers else "date" if find_format(texts)[0] else ""
            if looks and texts:
                say(
                    f"column {name!r} of {self.path} is text that looks like {looks}s, as in {texts[0]!r}, and is "
                    f"taken for levels; add --kinds {name}={looks} to read it"
                )
        return Reading(kind, native=True)


def _kind_of_values(values: pd.Series[Any]) -> CellKind:
    dtype = values.cat.categories.dtype if isinstance(values.dtype, pd.CategoricalDtype) else values.dtype
    if pd.api.types.is_bool_dtype(dtype):
        return "truth"
    if is_dated(dtype):
        return "date"
    return "number" if pd.api.types.is_numeric_dtype(dtype) else "text"


def read_source(
    role: str,
    path: str,
    sep: str | None = None,
    missing: Sequence[str] = (),
    *,
    encoding: str | None = None,
    sheet: str | None = None,
) -> TableFile:
    """Read a file; the cells of a CSV or a workbook stay text."""
    where = f"{role} {path}"
    if not Path(path).is_file():
        raise InputError(f"{where}: there is no such file; check its name and folder.")
    suffix = Path(path).suffix.lower()
    if suffix in UNREAD:
        raise InputError(f"{where}: {suffix} files are not read; {UNREAD[suffix]}.")
    if suffix in WORKBOOKS:
        found = read_sheet(where, path, sheet)
        return TableFile(role, path, found.table, True, tuple(missing), rows=found.rows, native=found.numeric)
    try:
        if suffix == ".parquet":
            return TableFile(role, path, _read_parquet(path), False, tuple(missing))
        text = read_text(where, path, encoding, sep)
        table = _read_cells_of(path, text.text, text.sep)
    except pd.errors.EmptyDataError:
        raise InputError(f"{where} is empty; it needs a header and rows.") from None
    except ImportError:
        raise InputError(
            f"{where}: parquet files need the package pyarrow; pip install 'mcce[parquet]', or write a CSV."
        ) from None
    except pd.errors.ParserWarning:
        raise InputError(
            f"{where} has more values in its rows than names in its header; give every column a name."
        ) from None
    except InputError:
        raise
    except (ValueError, EOFError, OSError) as error:
        problem = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{where} cannot be read as a table: {problem}. Check the file and --sep.") from None
    if table.shape[1] == 1 and (other := next((c for c in ";\t|," if c in str(table.columns[0])), "")):
        raise InputError(f"{where} has one column, {table.columns[0]!r}; is it separated by --sep {other!r}?")
    return TableFile(role, path, table, True, tuple(missing), text.sep, text.encoding)


def _read_cells_of(path: str, text: str, sep: str) -> pd.DataFrame:
    as_text: Any = {"sep": sep, "dtype": str, "keep_default_na": False, "na_values": [""]}
    cells = pd.read_csv(io.StringIO(text), header=None, nrows=1, **as_text).iloc[0]
    header = cells.dropna()
    if header.duplicated().any():
        twice = listing(header[header.duplicated()].unique())
        raise InputError(f"{path} has the column(s) {twice} more than once; rename them.")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        # otherwise, where rows have more values than the header names, the first ones are taken for row names
        table: pd.DataFrame = pd.read_csv(io.StringIO(text), index_col=False, **as_text)
    unnamed = [table.columns[place] for place in cells.index[cells.isna()] if place < table.shape[1]]
    blank = [name for name in unnamed if table[name].isna().all()]
    wrong = [name for name in unnamed if name not in blank and name != UNNAMED]
    if wrong:
        raise InputError(
            f"{path}: column {list(table.columns).index(wrong[0]) + 1} has no name in the header, but values, such as "
            f"{table[wrong[0]].dropna().iloc[0]!r}. Name it there, or remove it."
        )
    table = table.drop(columns=[name for name in blank if name != UNNAMED])  # separators at the end of the header
    filled = table.notna().any(axis=1).to_numpy().nonzero()[0]
    last = int(filled[-1]) + 1 if len(filled) else 0
    if last < len(table):
        say(f"{path}: {len(table) - last} row(s) without any value at its end are left out")
    return table.head(last).fillna("")


def _read_parquet(path: str) -> pd.DataFrame:
    """Read a Parquet file; days and decimals, which pandas has no dtype for, become dates and numbers."""
    table = pd.read_parquet(path)
    for name in [name for name in table if table[name].dtype == object]:
        inferred = pd.api.types.infer_dtype(table[name], skipna=True)
        if inferred == "date":
            table[name] = pd.to_datetime(table[name]).astype("datetime64[s]")
        elif inferred == "decimal":
            table[name] = table[name].astype(float)
    return table


def name_rows(rows: pd.DataFrame, arguments: argparse.Namespace) -> pd.DataFrame:
    """Name the rows to explain by the column `--id`, else by a saved row index, else by their number."""
    if arguments.id is None and UNNAMED not in rows:
        return rows.set_axis(pd.RangeIndex(1, len(rows) + 1))
    if arguments.id is None:
        say(f"the column without a name in {arguments.explain} is taken for the row names")
        arguments.id = UNNAMED
    check_column("--id", arguments.id, rows, arguments.explain)
    ids = rows[arguments.id]
    bad = ids[ids.isna() | ids.eq("") | ids.duplicated()]
    if len(bad):
        what = "missing" if pd.isna(bad.iloc[0]) or bad.iloc[0] == "" else f"{bad.iloc[0]!r} more than once"
        raise InputError(f"--id {arguments.id}: {arguments.explain} has a name that is {what}; names must differ.")
    return rows.set_axis(pd.Index(ids))


def check_column(role: str, name: Any, table: pd.DataFrame, path: str) -> None:
    """Refuse a name that is not a column of the table read from `path`; `role` says whose name it is."""
    check_columns(role, [name], table, path)


def check_columns(role: str, names: Iterable[Any], table: pd.DataFrame, path: str) -> None:
    """Refuse names that are not columns of the table read from `path`, all of them at once."""
    problem = lacking(role, names, table, path)
    if problem:
        raise InputError(problem)


def lacking(role: str, names: Iterable[Any], table: pd.DataFrame, path: str) -> str:
    """Return what is wrong with names that are not columns of the table; empty if nothing is."""
    absent = [name for name in names if name not in table]
    if len(absent) == 1:
        return f"{role} {absent[0]!r} is not a column of {path}; {did_you_mean(absent[0], table.columns)}"
    if absent:
        return f"{role} {listing(absent)} are not columns of {path}, which has {listing(table.columns, 30)}"
    return ""
