"""Tables from text files, Excel workbooks and Parquet files; no cell is recoded silently.

1. Text files are read as text, by the csv module for the line numbers of messages; workbooks and Parquet files by
   pandas. Separator and number marks that no option states are detected and reported; a file that two choices read
   differently is refused.
2. `TableFile.find_readings` finds the kind of each column and reports missing cells. A leading zero makes a column
   text; two spellings of one number, too many digits, and text among numbers or dates are refused. Dates in ISO format
   are read, others need `--date-format`.
3. Kinds stated by an option, or known from the training data (`TableFile.like`), are kept: a cell that does not fit is
   refused. Values of workbooks and Parquet files are kept; text in them stays text unless its kind is known.
"""

from __future__ import annotations

import argparse
import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterable, Mapping, Sequence
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

from mcce.cli.console import notify
from mcce.exceptions import InputError, did_you_mean, listing, shorten, spell
from mcce.table.dtypes import is_dated
from mcce.table.spreadsheet import LEADING_ZERO, unescape_formulas

SEPARATORS = (",", ";", "\t", "|")
INSPECTED = 100  # records that determine the separator
UNNAMED = "Unnamed: 0"  # pandas' name of an index that was saved without one
WORKBOOKS = (".xlsx", ".xlsm")
UNREADABLE = (".xls", ".ods", ".json", ".zip")
BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
APART = " \u00a0\u202f'’"  # thousands marks besides the other decimal mark
ISO = "ISO8601"
UNCLEAR = re.compile(  # dates that are not ISO, and numbers with signs such as %, $ or ()
    r"\s*[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}(\s.*)?|(?=[^A-Za-z]*$)(?=.*[0-9])(?=.*[%‰€$£¥():]).*"
)
LONGEST_DATE = 100
TRUTHS = {"true": True, "false": False}
MISSING_WORDS = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "#N/A", "#NV", "#DIV/0!", "#VALUE!")
WHOLE = re.compile(r"[+-]?[0-9]+")
KINDS = ("numeric", "categorical")
Kind = Literal["numeric", "truth", "date", "categorical"]


@dataclass(frozen=True)
class NumberMarks:
    """Decimal mark, and the marks that may separate thousands."""

    decimal: str = "."
    thousands: str = "," + APART

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        d, t = re.escape(self.decimal), re.escape(self.thousands)
        whole = rf"(?:[1-9][0-9]{{0,2}}([{t}])[0-9]{{3}}(?:\1[0-9]{{3}})*|[0-9]+)"
        return re.compile(rf"[+−-]?(?:(?:{whole}(?:{d}[0-9]*)?|{d}[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?)", re.I)

    def plain(self, text: str) -> str | None:
        """Return a number as Python writes it; None if the text is not a number with these marks."""
        match = self._pattern.fullmatch(text.strip())
        return match and match[0].replace(match[1] or "", "").replace(self.decimal, ".").replace("−", "-")

    def number(self, text: str) -> float:
        """Return the value of a number, an int if it is whole."""
        return _value(str(self.plain(text)))

    def groups(self, text: str) -> bool:
        """Whether a number has a thousands mark."""
        return not set(self.thousands).isdisjoint(text.strip())


def _value(plain: str) -> float:
    return int(plain) if len(plain) < LONGEST_DATE and WHOLE.fullmatch(plain) else float(plain)


EVERY = [NumberMarks(), NumberMarks(",", "." + APART)]


@dataclass(frozen=True)
class ReadOptions:
    """Options of reading files; None is detected."""

    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    date_format: Mapping[str, str] = field(default_factory=dict)  # by column; "" for all columns of dates
    missing: Sequence[str] = ()  # texts that mean a missing value, besides a blank cell
    kinds: Mapping[str, str] = field(default_factory=dict)  # by column; from the training data also truth and date
    ordered: Mapping[str, Sequence[str]] = field(default_factory=dict)  # levels from the lowest to the highest
    source: str = "by option"  # of the kinds, for messages
    hint: NumberMarks | None = None  # of the training file, for numbers that can be read in two ways

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
        """The columns stated as categorical or ordered."""
        return {name for name, kind in self.kinds.items() if kind == "categorical"} | {*self.ordered}

    @property
    def marks(self) -> list[NumberMarks]:
        """The marks that the options leave open."""
        decimals = [each for each in self.decimal or ".," if each != self.thousands]
        return [NumberMarks(each, self.thousands or ".,".replace(each, "") + APART) for each in decimals]


@dataclass(frozen=True)
class Reading:
    """How the cells of a column become values; `typed` if the file holds values instead of text."""

    kind: Kind
    marks: NumberMarks = NumberMarks()
    form: str = ""
    typed: bool = False

    def values(self, cells: pd.Series[Any]) -> pd.Series[Any]:
        """Return the values of cells."""
        if self.kind == "categorical":
            return cells
        if self.kind == "date":
            return parse_dates(cells, self.form)
        is_truth, texts = self.kind == "truth", pd.unique(cells.dropna().astype(object))
        known = {text: TRUTHS[text.lower()] if is_truth else self.marks.number(text) for text in texts}
        found = cells.astype(object).map(known)
        if found.isna().any():
            return found if is_truth else found.astype(np.float64)
        is_whole = all(isinstance(value, int) and abs(value) < 2**63 for value in known.values())
        return found.astype(bool if is_truth else np.int64 if is_whole else np.float64)


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Cells of a column as text, NaN where missing."""

    name: str
    cells: pd.Series[Any]
    file: TableFile
    _plain: dict[NumberMarks, dict[str, str | None]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"column {self.name!r} of {self.file.path}"

    @cached_property
    def texts(self) -> list[str]:
        """The distinct cells that are not missing."""
        return [str(text) for text in pd.unique(self.cells.dropna().astype(object))]

    def fits(self, marks: NumberMarks) -> bool:
        """Whether all cells are numbers with these marks."""
        return bool(self.texts) and None not in self.plain(marks).values()

    def plain(self, marks: NumberMarks) -> dict[str, str | None]:
        """Return the distinct cells as Python writes numbers; None where a cell is not a number with these marks."""
        if marks not in self._plain:
            self._plain[marks] = {text: marks.plain(text) for text in self.texts}
        return self._plain[marks]

    def holds(self, text: str) -> str:
        """Return where a text stands first, and the text."""
        first = int(np.flatnonzero((self.cells == text).to_numpy(dtype=bool, na_value=False))[0])
        return f"{self.file.place(first)} holds {spell(text)}"

    def error(self, why: str, text: str, fix: str = "") -> InputError:
        """Return the error about a cell that does not fit its column."""
        missing = f"add --missing {shorten(text)} if it means missing"
        return InputError(f"{self} {why}, but {self.holds(text)}. Correct it, or {missing}{fix}.")


@dataclass(frozen=True)
class TableFile:
    """A table read from a file, with the line of a text file, or the row of a workbook, of each row."""

    path: str
    table: pd.DataFrame  # cells of a text file; values of a workbook or Parquet file
    options: ReadOptions
    sep: str = ""  # of a text file, as the encoding
    encoding: str = ""
    lines: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # empty for Parquet

    @property
    def names_are_text(self) -> bool:
        """Whether names of rows are text; those of a Parquet file are values."""
        return len(self.lines) > 0

    def place(self, row: int) -> str:
        """Return where a row stands in the file."""
        return f"{'line' if self.sep else 'row'} {self.lines[row] if len(self.lines) else row + 1}"

    def column(self, name: Any) -> TextColumn:
        """Return a column of text; blank cells and those of `--missing` are NaN."""
        raw = self.table[name]
        return TextColumn(name, raw.mask(raw.isin(self.options.missing) | raw.str.strip().eq("")), self)

    def unescaped(self, known: Mapping[Any, Iterable[Any]], id: str | None) -> TableFile:
        """Return the file without the apostrophes of spreadsheet-safe files; `known` has the levels of each feature."""
        if not self.names_are_text:
            return self
        return replace(self, table=unescape_formulas(self.table, known, () if id is None else (id,)))

    def like(self, training: Mapping[Any, Reading]) -> TableFile:
        """Return the file with the kinds of the training columns; marks and formats of dates may differ."""
        forms = {name: reading.form for name, reading in training.items() if reading.kind == "date"}
        numbers = [reading for reading in training.values() if reading.kind == "numeric" and not reading.typed]
        known = replace(
            self.options,
            kinds={name: reading.kind for name, reading in training.items()},
            date_format={**forms, **self.options.date_format},
            source="in the training data",
            hint=numbers[0].marks if numbers else None,
        )
        return replace(self, options=known)

    def find_readings(self, names: Iterable[Any]) -> dict[Any, Reading]:
        """Return how columns are read, and report their numbers of missing cells."""
        options, names = self.options, list(names)
        known = {*options.kinds, *options.date_format}
        texts = {n: self.column(n) for n in names if self.sep or (n in known and _infer(self.table[n]) == "string")}
        numbers = [texts[name] for name in texts if name not in options.levels and name not in options.date_format]
        marks = detect_marks(numbers, self)
        readings = {n: find_reading(texts[n], marks, options) if n in texts else self._typed(n) for n in names}
        n_missing = {n: int((texts[n].cells if n in texts else self.table[n]).isna().sum()) for n in names}
        if any(n_missing.values()):
            counts = ", ".join(f"{count} of {name!r}" for name, count in n_missing.items() if count)
            notify(f"missing cells of {self.path}: {counts}")
        return readings

    def read(self, readings: Mapping[Any, Reading]) -> pd.DataFrame:
        """Return the columns of `readings` as values."""
        columns = {
            name: self.table[name] if reading.typed else reading.values(self.column(name).cells)
            for name, reading in readings.items()
        }
        return pd.DataFrame(columns, index=self.table.index)

    def _typed(self, name: Any) -> Reading:
        """Return the reading of a column of values; raise if it is mixed or contradicts an option."""
        column, kind = TextColumn(name, self.table[name], self), kind_of(self.table[name])
        texts = [value for value in column.cells if isinstance(value, str)] if kind == "categorical" else []
        if texts and len(texts) < column.cells.notna().sum():
            levels = f", or --kinds {name}=categorical if these are levels"
            raise column.error("holds values that are not text", texts[0], levels)
        stated = "date" if name in self.options.date_format else self.options.kinds.get(name, kind)
        if self.options.source == "by option" and stated not in (kind, "categorical"):
            raise InputError(
                f"{column} is {stated} by option, but the file has {column.cells.dtype} there; convert it, or leave "
                "the option out."
            )
        if texts and name not in self.options.levels and any(map(column.fits, EVERY)):
            notify(
                f"{column} is text that looks like numbers, and is read as levels: {column.holds(texts[0])}. If "
                f"these are numbers, add --kinds {name}=numeric"
            )
        return Reading(kind, typed=True)


def _infer(values: pd.Series[Any]) -> str:
    return pd.api.types.infer_dtype(values, skipna=True)


def kind_of(values: pd.Series[Any]) -> Kind:
    """Return the kind of values that are not read from text."""
    dtype = values.cat.categories.dtype if isinstance(values.dtype, pd.CategoricalDtype) else values.dtype
    if pd.api.types.is_bool_dtype(dtype) or _infer(values) == "boolean":
        return "truth"
    if is_dated(dtype):
        return "date"
    return "numeric" if pd.api.types.is_numeric_dtype(dtype) else "categorical"


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
    dtypes = {"date": "datetime64[s]", "decimal": "float"}
    inferred = {name: _infer(table[name]) for name in table if table[name].dtype == object}
    return table.astype({name: dtypes[kind] for name, kind in inferred.items() if kind in dtypes})


def _read_text(where: str, path: str, options: ReadOptions) -> TableFile:
    """Read a text file whose records all have as many cells as the header has names."""
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        text, encoding = _decode(where, file.read(), options.encoding)
    sep = options.sep or detect_separator(where, text)
    reader, line, records = csv.reader(io.StringIO(text), delimiter=sep, strict=True), 1, {}
    try:
        for cells in reader:
            if any(cells):
                records[line] = cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{where}, line {line}: {error}. Correct the line: a quote must be closed.") from None
    if not records:
        raise InputError(f"{where} is empty; it needs a header and rows.")
    header = next(iter(records.values()))
    for line, cells in records.items():
        if len(cells) != len(header):
            raise InputError(
                f"{where}, line {line} has {len(cells)} cell(s), {' '.join(cells)[:40]!r}, and the header has "
                f"{len(header)} names. Correct or remove the line; is the file complete?"
            )
    if len(header) == 1 and (other := next((c for c in SEPARATORS if c in header[0]), "")):
        raise InputError(f"{where} has one column, {header[0]!r}; is it separated by --sep {other!r}?")
    table = _with_header(where, pd.DataFrame([*records.values()], dtype=str))
    return TableFile(path, table, options, sep, encoding, np.array([*records])[1:])


def _with_header(where: str, records: pd.DataFrame) -> pd.DataFrame:
    """Return the records below the first one, named by it; columns without name and values are dropped."""
    names = [str(name) if str(name).strip() else "" for name in records.iloc[0]]
    names[0] = names[0] or UNNAMED
    table = records.iloc[1:].reset_index(drop=True).set_axis(names, axis=1)
    for j, name in enumerate(names):
        if not name and (table.iloc[:, j] != "").any():
            raise InputError(
                f"{where}: column {j + 1} has no name in the header, but values, such as "
                f"{spell(next(value for value in table.iloc[:, j] if value != ''))}. Name it, or remove it; a title "
                "above the header must go."
            )
    table = table.loc[:, table.columns != ""]
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
    fitting = [sep for sep, sizes in widths.items() if len({*sizes}) == 1 and sizes[0] > 1]
    if len(fitting) > 1:
        raise InputError(f"{where} could be separated by {listing(fitting)}; state it, as in --sep {fitting[0]!r}.")
    return fitting[0] if fitting else max(SEPARATORS, key=lambda sep: widths[sep][:1])


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
    _check_sheet(where, load_workbook(path)[name], cells)
    filled = ~(cells == "").all(axis=1).to_numpy()
    table = _with_header(where, cells[filled])
    for column in table:
        values = pd.Series([None if value == "" else value for value in table[column]], dtype=object).infer_objects()
        if column in options.levels and _infer(values).startswith("mixed"):
            values = values.map(str, na_action="ignore")
        is_date = pd.api.types.is_datetime64_dtype(values.dtype)
        table[column] = values.astype("datetime64[s]") if is_date else values
    return TableFile(path, table, options, lines=np.flatnonzero(filled)[1:] + 1)


def _check_sheet(where: str, sheet: Any, cells: pd.DataFrame) -> None:
    """Raise on merged cells, formulas without values and error values."""
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


def detect_marks(columns: Sequence[TextColumn], file: TableFile) -> NumberMarks:
    """Return the marks under which all numeric columns are numbers, and report them with the separator.

    Where marks read a cell differently, as 1.234, take the training file's, else a decimal point in a comma-separated
    file without commas in numbers; raise otherwise.
    """
    options = file.options
    numeric = [column for column in columns if any(map(column.fits, [*EVERY, *options.marks]))]
    common = [marks for marks in options.marks if all(column.fits(marks) for column in numeric)]
    if not common:
        chosen = max(options.marks, key=lambda marks: sum(column.fits(marks) for column in numeric))
        wrong = next(column for column in numeric if not column.fits(chosen))
        text = next(text for text, plain in wrong.plain(chosen).items() if plain is None)
        raise InputError(
            f"{file.path} is read with a decimal {chosen.decimal!r}, by --decimal or by other columns, but in "
            f"column {wrong.name!r}, {wrong.holds(text)}. Correct it or --decimal, or add --kinds "
            f"{wrong.name}=categorical if these are levels."
        )
    cells = [(column, text) for column in numeric for text in column.texts]
    chosen = options.hint if options.hint in common else common[0]
    has_commas = file.sep != "," or any("," in text for _, text in cells)
    unclear = next(((c, t) for c, t in cells if common[1:] and len({c.plain(m)[t] for m in common}) > 1), None)
    if unclear and has_commas and options.hint not in common:
        column, text = unclear
        ways = " and ".join(f"{marks.number(text):.10g} with a decimal {marks.decimal!r}" for marks in common)
        raise InputError(
            f"{column} can be read in two ways: {column.holds(text)}, which is {ways}. Add --decimal . or --decimal , "
            f"(--kinds {column.name}=categorical if these are codes)."
        )
    found = [f"separator {file.sep!r}"] if file.sep and options.sep is None else []
    shown = ""
    for what, of_file in (("decimal", chosen.decimal), ("thousands", chosen.thousands)):
        uses = ((column, text, mark) for column, text in cells for mark in of_file if mark in text.strip())
        if getattr(options, what) is None and (first := next(uses, None)):
            column, text, mark = first
            found.append(f"{what} {mark!r}")
            shown = f" (in column {column.name!r}, {column.holds(text)}, read as {chosen.plain(text)})"
    if found:
        notify(f"{file.path} is read with {', '.join(found)}{shown}")
    return chosen


def find_reading(column: TextColumn, marks: NumberMarks, options: ReadOptions) -> Reading:
    """Return how a column of text is read; raise if a cell does not fit, or if something would be lost."""
    name, texts, kind = column.name, column.texts, options.kinds.get(column.name)
    if kind == "date" or name in options.date_format:
        form = options.date_format.get(name) or options.date_format.get("") or ISO
        return _find_dates(column, form, options.source)
    wrong = [text for text in texts if text.lower() not in TRUTHS]
    if kind == "truth":
        if wrong:
            raise column.error(f"is True or False {options.source}", wrong[0])
        return Reading("truth")
    plain = column.plain(marks)
    others = [text for text in texts if plain[text] is None]
    zero = next((text for text in texts if LEADING_ZERO.match(plain[text] or text.strip())), None)
    number, loss = Reading("numeric", marks), "" if others else _loss(column, marks)
    if kind == "numeric":
        if others:
            raise column.error(f"is numeric {options.source}", others[0])
        if zero is not None and options.source != "by option":
            raise InputError(
                f"{column} is numeric {options.source}, but {column.holds(zero)}, with a leading zero. Write it "
                "without the zero if it is a number; --kinds of mcce fit or explain can make the column categorical."
            )
        if (text := _rounded(column, marks)) is not None:
            what = f"{column.holds(text)}, which has too many digits for a number"
            notify(f"{column} is rounded: {what}. If these are codes, add --kinds {name}=categorical")
        return number
    if name in options.levels:
        is_code = not (others or loss or zero or any(map(marks.groups, texts)))
        return number if is_code and options.source == "by option" else Reading("categorical")
    if zero is not None and len(others) < len(texts):
        notify(
            f"{column} is read as text: {column.holds(zero)}, with a leading zero. If these are numbers, add --kinds "
            f"{name}=numeric"
        )
    elif loss:
        raise InputError(
            f"{column} holds {loss}. Add --kinds {name}=categorical if these are codes, --kinds {name}=numeric if they "
            "are numbers."
        )
    elif not others:
        return number
    elif not wrong and len({text.lower() for text in texts}) == len(texts):
        return Reading("truth")
    elif len(others) < len(texts):
        _check_majority(column, others, "numbers")
    elif (reading := _find_dates(column, options.date_format.get("") or ISO)).kind == "date":
        return reading
    words = [text for text in texts if text in MISSING_WORDS]
    if words:
        notify(f"{column} has the level(s) {listing(words)}; if that means missing, add --missing {','.join(words)}")
    blanks = [text for text in texts if text != text.strip() and text.strip() in plain]
    if blanks:
        notify(f"{column} has levels that differ from others in blanks alone, and are kept: {listing(blanks)}")
    return Reading("categorical")


def _rounded(column: TextColumn, marks: NumberMarks) -> str | None:
    """Return the first whole number that a float rounds, unless all are integers of 64 bits."""
    plain_texts = {text: str(plain) for text, plain in column.plain(marks).items()}
    long = {text: plain for text, plain in plain_texts.items() if len(plain) > 15 and WHOLE.fullmatch(plain)}
    rounded = [text for text, plain in long.items() if Decimal(plain) != Decimal(float(plain))]
    if rounded and not column.cells.isna().any() and all(map(WHOLE.fullmatch, plain_texts.values())):
        rounded = [text for text in rounded if abs(float(plain_texts[text])) >= 2**63]
    return rounded[0] if rounded else None


def _loss(column: TextColumn, marks: NumberMarks) -> str:
    """Return what reading the cells as numbers would lose; empty if nothing."""
    if (text := _rounded(column, marks)) is not None:
        return f"{spell(text)}, which has too many digits for a number"
    first: dict[float, str] = {}
    for text, plain in column.plain(marks).items():
        value = _value(str(plain))
        bare = str(plain).lstrip("+" if value else "+-")
        if not marks.groups(text) and first.setdefault(value, bare) != bare:
            return f"{spell(first[value])} and {spell(text)}, which are one number in two spellings"
    return ""


def _check_majority(column: TextColumn, others: list[str], what: str) -> None:
    """Raise if most cells are numbers or dates; report that the column is text otherwise."""
    cells = column.cells.dropna()
    n_others = int(cells.isin(others).sum())
    count = f"{n_others} of {len(cells)} cells are not: {listing(others, 5)}"
    if 2 * n_others <= len(cells):
        levels = f", or --kinds {column.name}=categorical if these are levels"
        raise column.error(f"holds {what} ({count})", others[0], levels)
    notify(
        f"{column} is read as text, although it holds {what} ({count}). If these mean missing, name them by --missing"
    )


def parse_dates(texts: Sequence[str] | pd.Series[Any], form: str) -> pd.Series[Any]:
    """Return the dates of texts, NaT where the format does not fit; offsets from UTC are applied."""
    cells: pd.Series[Any] = pd.Series(texts, dtype=object)
    can_be = cells.str.contains("[0-9]", na=False) & (cells.str.len() <= LONGEST_DATE)  # pandas reads "now" as a date
    try:
        stripped: pd.Series[Any] = cells.str.strip().where(can_be)
        dates = pd.to_datetime(stripped, format=form, errors="coerce", utc=True).dt.tz_localize(None)
    except (ValueError, re.error):  # not a format
        return pd.Series(pd.NaT, index=cells.index, dtype="datetime64[s]")
    return dates if (dates.dt.microsecond > 0).any() else dates.astype("datetime64[s]")


def _find_dates(column: TextColumn, form: str, source: str = "") -> Reading:
    """Return the reading of a column of dates or of text; raise if the text is nearly dates.

    `source` says where the column is known to hold dates; all cells must then be dates.
    """
    texts, levels = column.texts, f"--kinds {column.name}=categorical"
    others = [text for text, date in zip(texts, parse_dates(texts, form)) if pd.isna(date)]
    example = datetime(2024, 12, 31, 18, 30).strftime("%Y-%m-%d" if form == ISO else form)
    if others and source:
        fix = f", or state --date-format {column.name}=%d.%m.%Y" if form == ISO else ""
        raise column.error(f"holds dates {source}, read as {example}", others[0], fix)
    if not others and not source:
        read = str(parse_dates(texts[:1], form)[0]).removesuffix(" 00:00:00")
        notify(
            f"{column} is read as dates: {column.holds(texts[0])}, read as {read}. If these are levels, add {levels}"
        )
    if not others:
        return Reading("date", form=form)
    if len(others) < len(texts):
        _check_majority(column, others, f"dates like {example}")
    elif 2 * sum(UNCLEAR.fullmatch(text) is not None for text in texts if len(text) <= LONGEST_DATE) > len(texts):
        raise InputError(
            f"{column} holds neither plain numbers nor ISO dates: {column.holds(texts[0])}. For dates add "
            f"--date-format {column.name}=FORMAT, as in %d.%m.%Y or %m/%d/%Y; else write plain numbers, or add "
            f"{levels} for levels."
        )
    return Reading("categorical")


def name_rows(file: TableFile, id: str | None) -> TableFile:
    """Return the rows named by the column `id`, else by a saved row index, else by their number."""
    rows = file.table
    if id is None and UNNAMED not in rows:
        return replace(file, table=rows.set_axis(pd.RangeIndex(1, len(rows) + 1)))
    if id is None:
        notify(f"the column without a name in {file.path} is taken for the row names")
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
