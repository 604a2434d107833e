"""What `mcce explain` reads: tables, from files.

1. CSV files and Excel workbooks are read as text (`mcce.cli.texts`, `mcce.cli.sheets`); what their columns are is found
   by `mcce.cli.cells`, for the columns that are used. Names of rows stay text.
2. A Parquet file says by itself what its columns are. Text in it is read as numbers or dates only if the user says so;
   that it looks like them is said.
3. Whoever reads a message about a cell can find it: file, line or row, value.
"""

from __future__ import annotations

import argparse
import io
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.cli.cells import CellKind, Reading, find_reading, read_cells
from mcce.cli.column import Column
from mcce.cli.console import say
from mcce.cli.dates import find_format
from mcce.cli.declared import Declared
from mcce.cli.numerals import Mark, find_marks, plain
from mcce.cli.sheets import read_sheet
from mcce.cli.texts import read_text
from mcce.exceptions import InputError, did_you_mean, listing
from mcce.table.dtypes import is_dated

UNNAMED = "Unnamed: 0"  # what pandas calls a row index that was saved along
WORKBOOKS = (".xlsx", ".xlsm")
UNREAD = {
    ".xls": "save it as .xlsx or CSV",
    ".ods": "save it as .xlsx or CSV",
    ".json": "write it as CSV or Parquet",
    ".zip": "unpack it",
}


@dataclass(frozen=True)
class Source:
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

    def column(self, name: Any) -> Column:
        """Return a column of text, missing cells marked."""
        raw = self.table[name]
        cells = raw.mask(raw.isin(["", *self.missing]))
        return Column(name, raw, cells, self.path, self.place, name in self.native)

    def place(self, row: int) -> str:
        """Return where a row stands in the file: a quoted cell may have several lines, an empty line is no row."""
        if not self.sep:
            return f"row {self.rows[row] if self.rows else row + 1}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = read_text(self.path, self.path, self.encoding, self.sep)
        return f"line {next(line for at, (line, _) in enumerate(text.rows(), -1) if at == row)}"

    def readings(self, names: Iterable[Any], said: Declared) -> dict[Any, Reading]:
        """Return how some columns are read."""
        names = list(names)
        texts = [self.column(name) for name in names if self._is_read(name, said)]
        marks = find_marks(texts, said.decimals, sep=self.sep, levels=said.levels, hints={})
        found = {column.name: find_reading(column, marks.get(column.name, "."), said) for column in texts}
        return {name: found[name] if name in found else self._as_it_is(name, said) for name in names}

    def readings_like(self, training: Mapping[Any, Reading], said: Declared) -> dict[Any, Reading]:
        """Return how the same columns are read here, where decimal marks may differ from the training file's."""
        kinds = {name: reading.kind for name, reading in training.items()}
        texts = [self.column(name) for name in training if self._is_string(name) and kinds[name] == "number"]
        hints = {name: reading.mark for name, reading in training.items() if not reading.native}
        marks = find_marks(texts, said.decimals, sep=self.sep, levels=said.levels, hints=hints)
        return {name: self._like(name, reading, marks, said) for name, reading in training.items()}

    def _like(self, name: Any, training: Reading, marks: Mapping[str, Mark], said: Declared) -> Reading:
        if not self._is_string(name):
            return replace(training, native=True)
        if training.kind == "number":
            return Reading("number", marks.get(name, training.mark))
        if training.kind == "date" and training.native:
            of_column = replace(said, dates={name: said.dates.get(name, "")})
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

    def _is_read(self, name: Any, said: Declared) -> bool:
        return self.is_text or (self._is_string(name) and (name in said.numbers or name in said.dates))

    def _as_it_is(self, name: Any, said: Declared) -> Reading:
        """Step 2: say what the values of a column are; refuse what they cannot be."""
        values = self.table[name]
        kind = _kind_of_values(values)
        for option, named, wanted in (("--numeric", said.numbers, "number"), ("--dates", said.dates, "date")):
            if name in named and kind != wanted:
                raise InputError(
                    f"column {name!r} of {self.path} is named by {option}, but the file has {values.dtype} there; "
                    "convert it, or leave the option out."
                )
        if name not in said.levels and self._is_string(name):
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
) -> Source:
    """Read a file; the cells of a CSV or a workbook stay text."""
    where = f"{role} {path}"
    if not Path(path).is_file():
        raise InputError(f"{where}: there is no such file; check its name and folder.")
    suffix = Path(path).suffix.lower()
    if suffix in UNREAD:
        raise InputError(f"{where}: {suffix} files are not read; {UNREAD[suffix]}.")
    if suffix in WORKBOOKS:
        found = read_sheet(where, path, sheet)
        return Source(role, path, found.table, True, tuple(missing), rows=found.rows, native=found.numeric)
    try:
        if suffix == ".parquet":
            return Source(role, path, _read_parquet(path), False, tuple(missing))
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
    return Source(role, path, table, True, tuple(missing), text.sep, text.encoding)


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
