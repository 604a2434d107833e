"""What `mcce explain` reads: tables and models, from files."""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.cli.console import say
from mcce.exceptions import InputError, did_you_mean

UNNAMED = "Unnamed: 0"  # what pandas calls a row index that was saved along


def read_table(role: str, path: str, sep: str, text: Sequence[str] = ()) -> pd.DataFrame:
    """Read a table; the columns of `text` stay text even if their values look like numbers."""
    where = f"{role} {path}"
    if not Path(path).is_file():
        raise InputError(f"{where}: there is no such file; check its name and folder.")
    try:
        if path.endswith(".parquet"):
            return pd.read_parquet(path)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # otherwise, where rows have more values than the header names, the first ones are taken for row names
            table = pd.read_csv(path, sep=sep, dtype=dict.fromkeys(text, str), low_memory=False, index_col=False)
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
    except (ValueError, EOFError, OSError) as error:
        problem = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{where} cannot be read as a table: {problem}. Check the file and --sep.") from None
    if table.shape[1] == 1 and (other := re.search(r"[;\t|,]", str(table.columns[0]))):
        raise InputError(f"{where} has one column, {table.columns[0]!r}; is it separated by --sep {other[0]!r}?")
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
    bad = ids[ids.isna() | ids.duplicated()]
    if len(bad):
        what = "missing" if pd.isna(bad.iloc[0]) else f"{bad.iloc[0]!r} more than once"
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
