"""What `mcce explain` reads: tables and models, from files.

A CSV is read as text; what its columns are is found by `mcce.cli.cells`, for the columns that are used. Names of rows
stay text.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.cli.cells import CellKind, Column, find_kind, read_cells
from mcce.cli.console import say
from mcce.exceptions import InputError, did_you_mean, listing

UNNAMED = "Unnamed: 0"  # what pandas calls a row index that was saved along


@dataclass(frozen=True)
class Source:
    """A table read from a file: a CSV's cells as the text they are, or a parquet file's values.

    Attributes
    ----------
    role, path : option and file, for messages
    table : the cells or values
    is_text : whether they are the cells of a CSV
    sep : its separator
    missing : texts that mean a missing value, besides an empty cell
    """

    role: str
    path: str
    table: pd.DataFrame
    is_text: bool
    sep: str
    missing: tuple[str, ...]

    def column(self, name: str) -> Column:
        """Return a column of a CSV, missing cells marked."""
        raw = self.table[name]
        cells = raw.mask(raw.isin(["", *self.missing]))
        return Column(name, raw, cells, self.path, self.line_of)

    def line_of(self, row: int) -> int:
        """Return the line of a CSV on which a row begins: a quoted cell may have several, an empty line is no row."""
        open_file: Any = gzip.open if self.path.endswith(".gz") else open
        with open_file(self.path, "rt", encoding="utf-8-sig", newline="") as file:
            reader, before, at = csv.reader(file, delimiter=self.sep), 0, -1  # the header is no row
            for cells in reader:
                if cells and at == row:
                    break
                at += bool(cells)
                before = reader.line_num
        return before + 1

    def kinds(
        self, names: Iterable[Any], categorical: Collection[str], numeric: Collection[str]
    ) -> dict[Any, CellKind]:
        """Return what the cells of some columns are; a parquet file says it by itself."""
        if self.is_text:
            return {n: find_kind(self.column(n), categorical=categorical, numeric=numeric) for n in names}
        return {name: _kind_of_values(self.table[name]) for name in names}

    def read(self, kinds: Mapping[Any, CellKind], *, checked: bool, numeric: Collection[str] = ()) -> pd.DataFrame:
        """Return the columns of `kinds` as values; `checked`: their cells are known to be of these kinds."""
        if not self.is_text:
            return self.table[list(kinds)]
        columns = {n: read_cells(self.column(n), kind, checked=checked, numeric=numeric) for n, kind in kinds.items()}
        return pd.DataFrame(columns, index=self.table.index)


def _kind_of_values(values: pd.Series[Any]) -> CellKind:
    dtype = values.cat.categories.dtype if isinstance(values.dtype, pd.CategoricalDtype) else values.dtype
    if pd.api.types.is_bool_dtype(dtype):
        return "truth"
    return "number" if pd.api.types.is_numeric_dtype(dtype) else "text"


def read_source(role: str, path: str, sep: str, missing: Sequence[str] = ()) -> Source:
    """Read a file; the cells of a CSV stay text."""
    where = f"{role} {path}"
    if not Path(path).is_file():
        raise InputError(f"{where}: there is no such file; check its name and folder.")
    is_text = not path.endswith(".parquet")
    try:
        table = _read_cells_of(path, sep) if is_text else pd.read_parquet(path)
    except pd.errors.EmptyDataError:
        raise InputError(f"{where} is empty; it needs a header and rows.") from None
    except ImportError:
        raise InputError(f"{where}: parquet files need the package pyarrow; install it, or write a CSV.") from None
    except pd.errors.ParserWarning:
        raise InputError(
            f"{where} has more values in its rows than names in its header; give every column a name."
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 text ({error.reason}); save it as UTF-8.") from None
    except InputError:
        raise
    except (ValueError, EOFError, OSError) as error:
        problem = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{where} cannot be read as a table: {problem}. Check the file and --sep.") from None
    if table.shape[1] == 1 and (other := re.search(r"[;\t|,]", str(table.columns[0]))):
        raise InputError(f"{where} has one column, {table.columns[0]!r}; is it separated by --sep {other[0]!r}?")
    return Source(role, path, table, is_text, sep, tuple(missing))


def _read_cells_of(path: str, sep: str) -> pd.DataFrame:
    as_text: Any = {"sep": sep, "dtype": str, "keep_default_na": False, "na_values": [""]}
    header = pd.read_csv(path, header=None, nrows=1, **as_text).iloc[0].dropna()
    if header.duplicated().any():
        twice = listing(header[header.duplicated()].unique())
        raise InputError(f"{path} has the column(s) {twice} more than once; rename them.")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        # otherwise, where rows have more values than the header names, the first ones are taken for row names
        table: pd.DataFrame = pd.read_csv(path, index_col=False, **as_text).fillna("")
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
    if name not in table:
        raise InputError(f"{role} {name!r} is not a column of {path}; {did_you_mean(name, table.columns)}")


def load_model(path: str) -> Any:
    """Load a model written by joblib."""
    import joblib

    if not Path(path).is_file():
        raise InputError(f"--model {path}: there is no such file; check its name and folder.")
    try:
        return joblib.load(path)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
        raise InputError(
            f"--model {path} cannot be loaded ({problem}). It must be written by joblib.dump, and the "
            "packages that made it must be installed."
        ) from None
