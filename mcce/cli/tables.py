"""Tables from text files, Excel workbooks and Parquet files; no cell is recoded silently.

1. pandas reads the file. `detect_separator` and `detect_marks` choose what no option states, and report their choice; a
   file that fits two choices with different values is refused.
2. `TableFile.find_readings` finds the kind of each column from its text. A column is numeric if all cells are numbers
   and nothing is lost by reading them so: a leading zero makes it text; two spellings of one number, more digits than a
   number holds, and text among numbers or dates are refused. Dates in ISO format are read, others need
   `--date-format`.
3. Kinds that are known are used: those of `--kinds`, `--ordered` and `--date-format`, and for rows to explain those of
   the training data (`TableFile.like`). A cell that does not fit is refused.
4. Workbooks and Parquet files hold values, which are kept; text in them stays text unless its kind is known.

Messages name the file, the line or row, the cell, and the option that resolves the problem.
"""

from __future__ import annotations

import argparse
import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.cli.console import say
from mcce.exceptions import InputError, did_you_mean, listing, shorten, spell
from mcce.table.dtypes import is_dated
from mcce.table.spreadsheet import LEADING_ZERO, unescape_formulas

SEPARATORS = (",", ";", "\t", "|")
INSPECTED = 100  # records that determine the separator
UNNAMED = "Unnamed: 0"  # pandas' name of an index that was saved without one
WORKBOOKS = (".xlsx", ".xlsm")
UNREADABLE = (".xls", ".ods", ".json", ".zip")
BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
APART = (" ", "\u00a0", "\u202f", "'", "’")  # thousands marks besides the other decimal mark
ISO = "ISO8601"
DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y")
DATE_FORMATS = [day + time for time in ("", " %H:%M", " %H:%M:%S") for day in DAYS]  # to suggest
DATE_LIKE = re.compile(r"[0-9][^0-9\n]+[0-9]")
LONGEST_DATE = 100
TRUTHS = {"true": True, "false": False}
MISSING_WORDS = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "#N/A", "#NV", "#DIV/0!", "#VALUE!")
SIGNS = {"%", "‰", "€", "$", "£", "¥", "()", ":", "::"}  # remain of numbers besides digits and marks
WHOLE = re.compile(r"[+-]?[0-9]+")
KINDS = ("numeric", "categorical")
Kind = Literal["number", "truth", "date", "text"]


@dataclass(frozen=True)
class NumberMarks:
    """Decimal and thousands mark."""

    decimal: str = "."
    thousands: str = ","

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        d, t = re.escape(self.decimal), re.escape(self.thousands)
        whole = rf"(?:[1-9][0-9]{{0,2}}(?:{t}[0-9]{{3}})+|[0-9]+)"
        return re.compile(rf"[+−-]?(?:(?:{whole}(?:{d}[0-9]*)?|{d}[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?)", re.I)

    def plain(self, text: str) -> str | None:
        """Return a number as Python writes it; None if the text is not a number with these marks."""
        bare = text.strip()
        if not self._pattern.fullmatch(bare):
            return None
        return bare.replace(self.thousands, "").replace(self.decimal, ".").replace("−", "-")


EVERY = [NumberMarks(d, t) for d, other in (".,", ",.") for t in (other, *APART)]


@dataclass(frozen=True)
class ReadOptions:
    """How files are read, as far as it is known; None is detected.

    Attributes
    ----------
    sep, decimal, thousands, encoding : of text files
    date_format : format of strftime by column; under the name "" of all columns of dates
    missing : texts that mean a missing value, besides an empty cell
    kinds : numeric or categorical, by column; from the training data also truth
    ordered : levels from the lowest to the highest, by column
    source : where kinds come from, for messages
    hint : marks of the training file, for numbers that can be read in two ways
    """

    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    date_format: Mapping[str, str] = field(default_factory=dict)
    missing: Sequence[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    ordered: Mapping[str, Sequence[str]] = field(default_factory=dict)
    source: str = "by option"
    hint: NumberMarks | None = None

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace) -> ReadOptions:
        """Collect the options of a command; raise if they contradict each other."""
        options = cls(**{name: value for name, value in vars(arguments).items() if name in cls.__dataclass_fields__})
        for name, kind in options.kinds.items():
            if kind not in KINDS:
                raise InputError(f"--kinds says {name}={kind}; {did_you_mean(kind, KINDS)}")
            if name in options.date_format or (kind == "numeric" and name in options.ordered):
                other = "--date-format" if name in options.date_format else "--ordered"
                raise InputError(f"--kinds and {other} both name {name!r}; leave one of them out.")
        if options.decimal is not None and options.decimal == options.thousands:
            raise InputError(f"--decimal and --thousands are both {options.decimal!r}; give different marks.")
        return options

    @property
    def levels(self) -> set[str]:
        """Columns that are known to be levels."""
        return {name for name, kind in self.kinds.items() if kind == "categorical"} | {*self.ordered}

    @property
    def marks(self) -> list[NumberMarks]:
        """The marks that the options leave open."""
        decimals = self.decimal or ".,"
        given = [NumberMarks(d, self.thousands) for d in decimals if self.thousands not in (None, d)]
        return given or [marks for marks in EVERY if marks.decimal in decimals]


@dataclass(frozen=True)
class Reading:
    """How the cells of a column become values; `typed` if the file holds values instead of text."""

    kind: Kind
    marks: NumberMarks = NumberMarks()
    form: str = ""
    typed: bool = False

    def values_of(self, texts: Iterable[str]) -> dict[str, Any]:
        """Return the value of each text."""
        if self.kind == "date":
            return dict(zip(texts, parse_dates(texts, self.form)))
        return {text: self._value(text) for text in texts}

    def values(self, cells: pd.Series[Any]) -> pd.Series[Any]:
        """Return the values of text cells."""
        if self.kind == "text":
            return cells
        known = self.values_of([str(text) for text in pd.unique(cells.dropna().astype(object))])
        found = cells.astype(object).map(known)
        if self.kind == "date":
            return found.astype(parse_dates(known, self.form).dtype)
        if self.kind == "truth":
            return found if cells.isna().any() else found.astype(bool)
        whole = not cells.isna().any() and all(isinstance(v, int) and abs(v) < 2**63 for v in known.values())
        return found.astype(np.int64 if whole else np.float64)

    def _value(self, text: str) -> Any:
        if self.kind == "text" or not text.strip():
            return text if self.kind == "text" else np.nan
        plain = str(self.marks.plain(text))
        if self.kind == "truth":
            return TRUTHS[text.lower()]
        return int(plain) if WHOLE.fullmatch(plain) and len(plain) < LONGEST_DATE else float(plain)


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Cells of a column as text, NaN where missing."""

    name: str
    cells: pd.Series[Any]
    file: TableFile

    def __str__(self) -> str:
        return f"column {self.name!r} of {self.file.path}"

    @cached_property
    def texts(self) -> list[str]:
        """The distinct cells that are not missing."""
        return [str(text) for text in pd.unique(self.cells.dropna().astype(object))]

    @cached_property
    def filled(self) -> list[str]:
        """The distinct cells that are not blank."""
        return [text for text in self.texts if text.strip()]

    @cached_property
    def shapes(self) -> list[str]:
        """The distinct cells with all digits but leading zeros as 9; there are few of them."""
        texts = pd.Series(self.filled, dtype=object).astype(str)
        return list(texts.str.replace(r"[1-9]|(?<=[0-9])0", "9", regex=True).unique())

    def fits(self, marks: NumberMarks) -> bool:
        """Whether all cells are numbers with these marks."""
        return bool(self.filled) and all(marks.plain(shape) is not None for shape in self.shapes)

    def holds(self, text: str) -> str:
        """Return where a text stands first, and the text."""
        first = int(np.flatnonzero((self.cells == text).to_numpy(dtype=bool, na_value=False))[0])
        return f"{self.file.place(first)} holds {spell(text)}"

    def error(self, why: str, text: str, fix: str = "") -> InputError:
        """Return the error about a cell that does not fit its column."""
        return InputError(
            f"{self} {why}, but {self.holds(text)}. Correct it, or add --missing {shorten(text)} if it means missing"
            f"{fix}."
        )


@dataclass(frozen=True)
class TableFile:
    """A table read from a file.

    Attributes
    ----------
    path : the file
    table : cells of a text file; values of a workbook or Parquet file
    options : how it is read
    sep, encoding : of a text file; empty for others
    lines : line of a text file, or row of a workbook, of each row; empty for Parquet
    """

    path: str
    table: pd.DataFrame
    options: ReadOptions
    sep: str = ""
    encoding: str = ""
    lines: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def names_are_text(self) -> bool:
        """Whether names of rows are text; those of a Parquet file are values."""
        return len(self.lines) > 0

    def place(self, row: int) -> str:
        """Return where a row stands in the file."""
        return f"{'line' if self.sep else 'row'} {self.lines[row] if len(self.lines) else row + 1}"

    def column(self, name: Any) -> TextColumn:
        """Return a column of text, missing cells marked."""
        raw = self.table[name]
        return TextColumn(name, raw.mask(raw.isin(["", *self.options.missing])), self)

    def unescaped(self, known: Mapping[Any, Iterable[Any]], id: str | None) -> TableFile:
        """Return the file without the apostrophes of spreadsheet-safe files; `known` has the levels of each feature."""
        if not self.names_are_text:
            return self
        return replace(self, table=unescape_formulas(self.table, known, () if id is None else (id,)))

    def like(self, training: Mapping[Any, Reading]) -> TableFile:
        """Return the file with the kinds of the training columns; marks and formats of dates may differ."""
        words = {"number": "numeric", "truth": "truth", "text": "categorical"}
        kinds = {name: words[reading.kind] for name, reading in training.items() if reading.kind in words}
        forms = {name: reading.form for name, reading in training.items() if reading.kind == "date"}
        numbers = [reading for reading in training.values() if reading.kind == "number" and not reading.typed]
        known = replace(
            self.options,
            kinds=kinds,
            date_format={**forms, **self.options.date_format},
            source="in the training data",
            hint=numbers[0].marks if numbers else None,
        )
        return replace(self, options=known)

    def find_readings(self, names: Iterable[Any]) -> dict[Any, Reading]:
        """Return how columns are read."""
        options, names = self.options, list(names)
        known = {*options.kinds, *options.date_format}
        texts = {n: self.column(n) for n in names if self._is_text(n) and (self.sep or n in known)}
        numbers = [texts[name] for name in texts if name not in options.levels and name not in options.date_format]
        marks = detect_marks(numbers, self)
        return {n: find_reading(texts[n], marks, options) if n in texts else self._typed(n) for n in names}

    def read(self, readings: Mapping[Any, Reading]) -> pd.DataFrame:
        """Return the columns of `readings` as values."""
        columns = {
            name: self.table[name] if reading.typed else reading.values(self.column(name).cells)
            for name, reading in readings.items()
        }
        return pd.DataFrame(columns, index=self.table.index)

    def _is_text(self, name: Any) -> bool:
        values = self.table[name]
        is_level = isinstance(values.dtype, pd.CategoricalDtype)
        return bool(self.sep) or (not is_level and pd.api.types.infer_dtype(values, skipna=True) == "string")

    def _typed(self, name: Any) -> Reading:
        """Return the reading of a column of values; raise if it is mixed or contradicts an option."""
        values = self.table[name]
        kind = _kind_of_values(values)
        texts = [(i, value) for i, value in enumerate(values) if isinstance(value, str)] if kind == "text" else []
        if texts and len(texts) < values.notna().sum():
            at, text = texts[0]
            raise InputError(
                f"column {name!r} of {self.path} holds values that are not text, but {self.place(at)} holds "
                f"{spell(text)}. Correct it, or add --missing {shorten(text)} if it means missing, or --kinds "
                f"{name}=categorical if these are levels."
            )
        stated = {"numeric": "number"}.get(self.options.kinds.get(name, ""), kind)
        stated = "date" if name in self.options.date_format else stated
        if self.options.source == "by option" and kind != stated:
            raise InputError(
                f"column {name!r} of {self.path} is a {stated} by option, but the file has {values.dtype} there; "
                "convert it, or leave the option out."
            )
        column = TextColumn(name, values, self)
        if texts and name not in self.options.levels and any(map(column.fits, EVERY)):
            say(
                f"{column} is text that looks like numbers, and is read as levels: {column.holds(texts[0][1])}. If "
                f"these are numbers, add --kinds {name}=numeric"
            )
        return Reading(kind, typed=True)


def _kind_of_values(values: pd.Series[Any]) -> Kind:
    dtype = values.cat.categories.dtype if isinstance(values.dtype, pd.CategoricalDtype) else values.dtype
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.infer_dtype(values, skipna=True) == "boolean":
        return "truth"
    if is_dated(dtype):
        return "date"
    return "number" if pd.api.types.is_numeric_dtype(dtype) else "text"


def read_table(role: str, path: str, options: ReadOptions, sheet: str | None = None) -> TableFile:
    """Read a file; `role` is its option, for messages."""
    where, suffix = f"{role} {path}", Path(path).suffix.lower()
    if not Path(path).is_file():
        raise InputError(f"{where}: there is no such file; check its name and folder.")
    if suffix in UNREADABLE:
        raise InputError(f"{where}: {suffix} files are not read; save it as .csv, .xlsx or .parquet.")
    try:
        if suffix in (".parquet", ".pq"):
            return TableFile(path, _read_parquet(path), options)
        return _read_workbook(where, path, options, sheet) if suffix in WORKBOOKS else _read_text(where, path, options)
    except ImportError:
        extra = "excel" if suffix in WORKBOOKS else "parquet"
        raise InputError(f"{where}: {suffix} files need pip install 'mcce[{extra}]'; or write a CSV.") from None
    except (InputError, MemoryError):
        raise
    except Exception as error:  # a broken archive, XML or table can raise anything
        problem = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{where} cannot be read as a table: {problem}. Check the file and its ending.") from None


def _read_parquet(path: str) -> pd.DataFrame:
    """Read a Parquet file; days and decimals, which have no dtype of pandas, become dates and numbers."""
    table = pd.read_parquet(path)
    for name in [name for name in table if table[name].dtype == object]:
        inferred = pd.api.types.infer_dtype(table[name], skipna=True)
        if inferred == "date":
            table[name] = pd.to_datetime(table[name]).astype("datetime64[s]")
        elif inferred == "decimal":
            table[name] = table[name].astype(float)
    return table


def _read_text(where: str, path: str, options: ReadOptions) -> TableFile:
    """Read a text file whose records all have as many cells as the header has names."""
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        text, encoding = _decode(where, file.read(), options.encoding)
    if not text.strip():
        raise InputError(f"{where} is empty; it needs a header and rows.")
    sep = options.sep or detect_separator(where, text)
    as_text: Any = {"dtype": str, "na_filter": False, "header": None, "skip_blank_lines": False, "engine": "python"}
    try:
        records = pd.read_csv(io.StringIO(text), sep=sep, **as_text)  # NaN where a record is too short
    except pd.errors.ParserError as error:
        raise InputError(
            f"{where}, line {_broken_line(text, sep)}: {error}. Correct the line: a quote must be closed, and the "
            "header must name all columns."
        ) from None
    lines = np.arange(1, len(records) + 1)
    if text.count("\n") > len(records):  # quoted cells with line breaks
        breaks = sum(records[name].str.count("\n").fillna(0).to_numpy(dtype=np.int64) for name in records)
        lines[1:] += np.cumsum(breaks)[:-1]
    filled = ~(records.isna() | (records == "")).all(axis=1).to_numpy()
    records, lines = records[filled].reset_index(drop=True), lines[filled]
    short = records.isna().any(axis=1).to_numpy()
    if short.any():
        at = int(short.argmax())
        cells = records.iloc[at].dropna()
        raise InputError(
            f"{where}, line {lines[at]} has {len(cells)} cell(s), {' '.join(cells)[:40]!r}, and the header has "
            f"{records.shape[1]} names. Complete or remove the line; is the file complete?"
        )
    if records.shape[1] == 1 and (other := next((c for c in SEPARATORS if c in records.iloc[0, 0]), "")):
        raise InputError(f"{where} has one column, {records.iloc[0, 0]!r}; is it separated by --sep {other!r}?")
    return TableFile(path, _with_header(where, records), options, sep, encoding, lines[1:])


def _broken_line(text: str, sep: str) -> int:
    """Return the line of the first record with an open quote or more cells than the header."""
    reader, begin, width = csv.reader(io.StringIO(text), delimiter=sep, strict=True), 1, 0
    with suppress(csv.Error):
        for cells in reader:
            width = width or len(cells)
            if len(cells) > width:
                break
            begin = reader.line_num + 1
    return begin


def _with_header(where: str, records: pd.DataFrame) -> pd.DataFrame:
    """Return the records below the first one, named by it; columns without name and values are dropped."""
    names = [str(name) for name in records.iloc[0]]
    names[0] = names[0] if names[0].strip() else UNNAMED
    table = records.iloc[1:].reset_index(drop=True)
    for j, name in enumerate(names):
        if not name.strip() and (table.iloc[:, j] != "").any():
            raise InputError(
                f"{where}: column {j + 1} has no name in the header, but values, such as "
                f"{spell(next(value for value in table.iloc[:, j] if value != ''))}. Name it, or remove it; a title "
                "above the header must go."
            )
    kept = [j for j, name in enumerate(names) if name.strip()]
    table = table.iloc[:, kept].set_axis([names[j] for j in kept], axis=1)
    if not table.columns.is_unique:
        twice = listing(table.columns[table.columns.duplicated()])
        raise InputError(f"{where} has the column(s) {twice} more than once; rename them.")
    return table


def _decode(where: str, raw: bytes, encoding: str | None) -> tuple[str, str]:
    """Return the text of a file, lines ended by line feeds, and its encoding: that of its mark, or UTF-8."""
    name = encoding or next((name for mark, name in BOMS.items() if raw.startswith(mark)), "utf-8")
    if name == "utf-8" and b"\0" in raw[:1000]:
        raise InputError(f"{where} is not a text file; if it is UTF-16 without a mark, add --encoding utf-16-le.")
    try:
        name = "utf-8-sig" if codecs.lookup(name).name == "utf-8" and raw.startswith(codecs.BOM_UTF8) else name
        text = raw.decode(name)
    except LookupError:
        raise InputError(
            f"--encoding is {encoding!r}, which is not an encoding of text; write utf-8, utf-16, cp1252 (Western "
            "Europe), cp1250 (Central Europe), shift_jis, or another of Python's names."
        ) from None
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        around = raw[max(error.start - 8, 0) : error.start + 8].decode("ascii", "backslashreplace")
        raise InputError(
            f"{where}, line {line}: the byte 0x{raw[error.start]:02x} in {around!r} is not {name}. State the encoding, "
            "as in --encoding cp1252 (Western Europe) or --encoding cp1250 (Central Europe), or save it as UTF-8."
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n"), name


def detect_separator(where: str, text: str) -> str:
    """Return the separator by which the first records have as many cells as the header; raise if two do."""
    widths = {}
    for sep in SEPARATORS:
        rows = islice(csv.reader(io.StringIO(text), delimiter=sep), INSPECTED)
        widths[sep] = [len(cells) for cells in rows if cells]
    fitting = [sep for sep, sizes in widths.items() if sizes[0] > 1 and len({*sizes}) == 1]
    if len(fitting) > 1:
        raise InputError(f"{where} could be separated by {listing(fitting)}; state it, as in --sep {fitting[0]!r}.")
    return fitting[0] if fitting else max(SEPARATORS, key=lambda sep: widths[sep][0])


def _read_workbook(where: str, path: str, options: ReadOptions, name: str | None) -> TableFile:
    """Read a sheet of a workbook; numbers, dates and truth values keep their values."""
    from openpyxl import load_workbook

    every = pd.read_excel(path, sheet_name=None, header=None, dtype=object, na_filter=False)
    sheets = {title: cells for title, cells in every.items() if cells.size}
    if not sheets:
        raise InputError(f"{where} is empty; it needs a header and rows.")
    if name is None and len(sheets) > 1:
        first, second, *_ = sheets
        raise InputError(
            f"{where} has the sheets {listing(sheets)}; state which, as in --sheet {first!r}, or --sheet "
            f"'train={first},explain={second}'."
        )
    name = next(iter(sheets)) if name is None else name
    if name not in sheets:
        raise InputError(f"--sheet {name!r} is not a sheet of {where}; {did_you_mean(name, sheets)}")
    where, missing = f"{where}, sheet {name!r}", {*options.missing}
    cells = sheets[name].map(lambda c: "" if isinstance(c, str) and (not c.strip() or c in missing) else c)
    filled = ~(cells == "").all(axis=1).to_numpy()
    lines = np.flatnonzero(filled) + 1
    _check_sheet(where, load_workbook(path)[name], cells)
    table = _with_header(where, cells[filled].reset_index(drop=True))
    for column in table:
        values = pd.Series([None if value == "" else value for value in table[column]], dtype=object).infer_objects()
        is_mixed = pd.api.types.infer_dtype(values, skipna=True).startswith("mixed")
        if is_mixed and column in options.levels:
            values = values.map(str, na_action="ignore")
        is_date = pd.api.types.is_datetime64_dtype(values.dtype)
        table[column] = values.astype("datetime64[s]") if is_date else values
    return TableFile(path, table, options, lines=lines[1:])


def _check_sheet(where: str, sheet: Any, cells: pd.DataFrame) -> None:
    """Raise on merged cells, formulas without values and error values; report hidden rows."""
    for merged in sheet.merged_cells.ranges:
        raise InputError(f"{where} has merged cells at {merged.coord}; unmerge them and fill each cell.")
    values = cells.reindex(index=range(sheet.max_row), columns=range(sheet.max_column), fill_value="").to_numpy()
    for cell in (cell for row in sheet.iter_rows() for cell in row):
        value = values[cell.row - 1, cell.column - 1]
        if (cell.data_type == "f" and isinstance(value, str) and not value) or value != value:
            what = f"the formula {cell.value!r} without its value" if value == value else "an error value, as #N/A"
            raise InputError(
                f"{where}, row {cell.row} holds {what}. Open the file in Excel, replace it by a value or clear the "
                "cell, and save it."
            )
    hidden = [row for row, about in sheet.row_dimensions.items() if about.hidden]
    if hidden:
        say(f"{where}: {len(hidden)} hidden row(s) are read too, the first is row {hidden[0]}")


def detect_marks(columns: Sequence[TextColumn], file: TableFile) -> NumberMarks:
    """Return the marks under which all numeric columns are numbers, and report them with the separator.

    Where marks read a cell differently, as 1.234, take the training file's, else a decimal point in a comma-separated
    file without commas in numbers; raise otherwise.
    """
    options = file.options
    numeric = [column for column in columns if any(map(column.fits, EVERY)) or any(map(column.fits, options.marks))]
    common = [m for m in options.marks if all(column.fits(m) for column in numeric)]
    if not common:
        chosen = max(options.marks, key=lambda m: sum(column.fits(m) for column in numeric))
        wrong = next(column for column in numeric if not column.fits(chosen))
        text = next(text for text in wrong.filled if chosen.plain(text) is None)
        raise InputError(
            f"{file.path} is read with a decimal {chosen.decimal!r}, by --decimal or by other columns, but in "
            f"column {wrong.name!r}, {wrong.holds(text)}. Correct it or --decimal, or add --kinds "
            f"{wrong.name}=categorical if these are levels."
        )
    shapes = [shape for column in numeric for shape in column.shapes]
    chosen = common[0]
    if any(m.plain(shape) != chosen.plain(shape) for m in common for shape in shapes):
        if options.hint in common:
            chosen = options.hint
        elif file.sep != "," or any("," in shape for shape in shapes):
            raise _ambiguous(numeric, common)
    found = [f"separator {file.sep!r}"] if file.sep and options.sep is None else []
    shown = ""
    for what, mark in (("decimal", chosen.decimal), ("thousands", chosen.thousands)):
        cells = ((column, text) for column in numeric for text in column.filled if mark in text.strip())
        if (first := next(cells, None)) and getattr(options, what) is None:
            found.append(f"{what} {mark!r}")
            shown = f" (in column {first[0].name!r}, {first[0].holds(first[1])}, read as {chosen.plain(first[1])})"
    if found:
        say(f"{file.path} is read with {', '.join(found)}{shown}")
    return chosen


def _ambiguous(numeric: Sequence[TextColumn], common: Sequence[NumberMarks]) -> InputError:
    read = {(column, text): {m.plain(text): m.decimal for m in common} for column in numeric for text in column.filled}
    (column, text), ways = next(item for item in read.items() if len(item[1]) > 1)
    words = " and ".join(f"{float(str(plain)):.10g} with a decimal {mark!r}" for plain, mark in ways.items())
    return InputError(
        f"{column} can be read in two ways: {column.holds(text)}, which is {words}. Add --decimal . or --decimal , "
        f"(--kinds {column.name}=categorical if these are codes)."
    )


def find_reading(column: TextColumn, marks: NumberMarks, options: ReadOptions) -> Reading:
    """Return how a column of text is read; raise if a cell does not fit, or if something would be lost."""
    name, filled, kind = column.name, column.filled, options.kinds.get(column.name)
    others = [text for text in filled if marks.plain(text) is None]
    zero = next((text for text in filled if LEADING_ZERO.match(text.strip())), None)
    if name in options.date_format:
        form = options.date_format[name] or options.date_format.get("", "")
        return _find_dates(column, form, options.source)
    if kind == "truth":
        if wrong := [text for text in column.texts if text.lower() not in TRUTHS]:
            raise column.error(f"is True or False {options.source}", wrong[0])
        return Reading("truth")
    if kind == "numeric":
        if others:
            raise column.error(f"is numeric {options.source}", others[0])
        if zero is not None and options.source != "by option":
            raise InputError(
                f"{column} is numeric {options.source}, but {column.holds(zero)}, with a leading zero. Write it "
                "without the zero if it is a number; --kinds of mcce fit or explain can make the column categorical."
            )
        _report_rounding(column, marks)
        return Reading("number", marks)
    if not column.texts:
        return Reading("number", marks)
    is_number = bool(filled) and not others
    loss = _loss(column, marks) if is_number else ""
    if name in options.levels:
        is_code = is_number and not loss and not any(marks.thousands in text for text in filled)
        return Reading("number", marks) if is_code and options.source == "by option" else Reading("text")
    if zero is not None and len(others) < len(filled):
        say(
            f"{column} is read as text: {column.holds(zero)}, with a leading zero. If these are numbers, add --kinds "
            f"{name}=numeric"
        )
    elif loss:
        raise InputError(
            f"{column} holds {loss}. Add --kinds {name}=categorical if these are codes, --kinds {name}=numeric if they "
            "are numbers."
        )
    elif is_number:
        return Reading("number", marks)
    elif all(text.lower() in TRUTHS for text in column.texts) and len({t.lower() for t in filled}) == len(filled):
        return Reading("truth")
    elif len(others) < len(filled):
        _check_majority(column, others, "numbers")
    elif filled and (reading := _dates_or_text(column, options.date_format.get("", ""))).kind == "date":
        return reading
    _report_levels(column)
    return Reading("text")


def _loss(column: TextColumn, marks: NumberMarks) -> str:
    """Return what reading the cells as numbers would lose; empty if nothing."""
    plain = {text: str(marks.plain(text)).removeprefix("+") for text in column.filled}
    largest = _largest_exact(column, plain.values())
    first: dict[float, str] = {}
    for text, number in plain.items():
        if LEADING_ZERO.match(number):
            return f"{spell(text)} with a leading zero"
        if WHOLE.fullmatch(number) and not abs(float(number)) < largest:
            return f"{spell(text)}, which has too many digits for a number"
        bare = number.removeprefix("-") if not float(number) else number
        if marks.thousands not in text and first.setdefault(float(number), bare) != bare:
            return f"{spell(first[float(number)])} and {spell(text)}, which are one number in two spellings"
    return ""


def _largest_exact(column: TextColumn, numbers: Iterable[str]) -> int:
    """Return the size below which every whole number is read exactly: a column of these alone becomes integers."""
    return 2**63 if not column.cells.isna().any() and all(map(WHOLE.fullmatch, numbers)) else 2**53


def _report_rounding(column: TextColumn, marks: NumberMarks) -> None:
    """Report whole numbers with more digits than a number holds."""
    plain = {text: str(marks.plain(text)) for text in column.filled}
    largest = _largest_exact(column, plain.values())
    for text, number in plain.items():
        if WHOLE.fullmatch(number) and not abs(float(number)) < largest and Decimal(number) != Decimal(float(number)):
            say(
                f"{column} is rounded: {column.holds(text)}, which has too many digits for a number and is read as "
                f"{float(number):.17g}. If these are codes, add --kinds {column.name}=categorical"
            )
            return


def _check_majority(column: TextColumn, others: list[str], what: str) -> None:
    """Raise if most cells are numbers or dates; report that the column is text otherwise."""
    cells = column.cells.dropna()
    n_others = int(cells.isin(others).sum())
    count = f"{n_others} of {len(cells)} cells are not: {listing(others, 5)}"
    if 2 * n_others <= len(cells):
        levels = f", or --kinds {column.name}=categorical if these are levels"
        raise column.error(f"holds {what} ({count})", others[0], levels)
    say(f"{column} is read as text, although it holds {what} ({count}). If these mean missing, name them by --missing")


def parse_dates(texts: Iterable[str], form: str) -> pd.Series[Any]:
    """Return the dates of texts, NaT where the format does not fit; offsets from UTC are applied."""
    short = pd.Series([text.strip() if len(text) <= LONGEST_DATE else "" for text in texts], dtype=object)
    try:
        dates = pd.to_datetime(short, format=form, errors="coerce", utc=True).dt.tz_localize(None)
    except (ValueError, re.error):  # not a format
        return pd.Series(pd.NaT, index=short.index, dtype="datetime64[s]")
    return dates if (dates.dt.microsecond > 0).any() else dates.astype("datetime64[s]")


def _find_dates(column: TextColumn, form: str, source: str = "by option") -> Reading:
    """Return the reading of dates, in ISO format if none is known; raise if a cell does not have the format."""
    dates = parse_dates(column.filled, form or ISO)
    if dates.isna().any():
        wrong = column.filled[int(dates.isna().argmax())]
        fix = f", or state --date-format {column.name}=%d.%m.%Y"
        raise column.error(f"holds dates {source}, read as {_example(form or ISO)}", wrong, "" if form else fix)
    return Reading("date", form=form or ISO)


def _dates_or_text(column: TextColumn, form: str) -> Reading:
    """Return the reading of a column without numbers; raise if it holds numbers with signs, or dates to state."""
    name, filled = column.name, column.filled
    levels, shown = f"--kinds {name}=categorical", column.holds(filled[0])
    short = [text for text in filled if len(text) <= LONGEST_DATE]
    signs = {re.sub(r"[0-9.,\s'’+−-]", "", text) for text in short}
    if len(signs) == 1 and signs <= SIGNS:
        raise InputError(
            f"{column} holds numbers with {signs.pop()!r}: {shown}. Write plain numbers, or add {levels} if these are "
            "levels."
        )
    if not any(map(DATE_LIKE.search, short[:50])):
        return Reading("text")
    known = [form] if form else [ISO]
    dates = {each: parse_dates(filled, each) for each in known}
    if form or dates[ISO].isna().any():  # no other format reads a date of ISO 8601 as another day
        dates |= {each: parse_dates(filled, each) for each in DATE_FORMATS}
    ways = [each for each in dates if dates[each].notna().all()]
    read = " or ".join(dict.fromkeys(_iso(dates[each].iloc[0]) for each in ways))
    if ways[:1] == known:
        say(f"{column} is read as dates: {shown}, read as {read}. If these are levels, add {levels}")
        return Reading("date", form=ways[0])
    if ways:
        options = " or ".join(f"--date-format {name}={each}" for each in ways)
        raise InputError(f"{column} holds dates: {shown}, which is {read}. Add {options}; for levels, {levels}.")
    best = max(dates, key=lambda each: int(dates[each].notna().sum()))
    if dates[best].notna().any():
        others = [text for text, date in zip(filled, dates[best]) if pd.isna(date)]
        _check_majority(column, others, f"dates like {_example(best)}")
    return Reading("text")


def _iso(date: pd.Timestamp) -> str:
    return str(date).removesuffix(" 00:00:00")


def _example(form: str) -> str:
    return datetime(2024, 12, 31, 18, 30).strftime("%Y-%m-%d" if form == ISO else form)


def _report_levels(column: TextColumn) -> None:
    """Report levels that may mean missing, and levels that differ in blanks alone."""
    words = [text for text in column.texts if text in MISSING_WORDS]
    if words:
        say(f"{column} has the level(s) {listing(words)}; if that means missing, add --missing {','.join(words)}")
    bare = {text for text in column.texts if text == text.strip()}
    blanks = [text for text in column.texts if text not in bare and text.strip() in bare]
    if blanks:
        say(f"{column} has levels that differ from others in blanks alone, and are kept: {listing(blanks)}")


def name_rows(file: TableFile, id: str | None) -> TableFile:
    """Return the rows named by the column `id`, else by a saved row index, else by their number."""
    rows = file.table
    if id is None and UNNAMED not in rows:
        return replace(file, table=rows.set_axis(pd.RangeIndex(1, len(rows) + 1)))
    if id is None:
        say(f"the column without a name in {file.path} is taken for the row names")
        id = UNNAMED
    check_columns("--id", [id], rows, file.path)
    ids = rows[id].map(str, na_action="ignore") if file.names_are_text else rows[id]
    bad = ids[ids.isna() | ids.eq("") | ids.duplicated()]
    if len(bad):
        what = "missing" if pd.isna(bad.iloc[0]) or bad.iloc[0] == "" else f"{bad.iloc[0]!r} more than once"
        raise InputError(f"--id {id}: {file.path} has a name that is {what}; names must differ.")
    return replace(file, table=rows.set_axis(pd.Index(ids)))


def check_columns(role: str, names: Iterable[Any], table: pd.DataFrame, path: str) -> None:
    """Raise if names are not columns of the table of `path`; `role` is the option that has them."""
    absent = [name for name in names if name not in table]
    if len(absent) == 1:
        raise InputError(f"{role} {absent[0]!r} is not a column of {path}; {did_you_mean(absent[0], table.columns)}")
    if absent:
        raise InputError(f"{role} {listing(absent)} are not columns of {path}, which has {listing(table.columns, 30)}")
