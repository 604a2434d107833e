"""Reading one file of a source, Parquet or CSV, as chunks.

1. A file is opened by its ending; columns that nobody needs are not read.
2. Parquet is read a row group at a time, batch by batch; a group that cannot be read is one stretch of bad rows. Groups
   whose rows are done already are passed over.
3. CSV is read as text, line by line; a line with too few or too many cells, or that is no UTF-8, is a bad row. Cells
   become values of the training columns (`mcce.batches.texts`).
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mcce.batches.chunks import BadRows, Chunk
from mcce.batches.texts import read_texts
from mcce.exceptions import InputError, did_you_mean, listing
from mcce.table import Schema

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz")

Needed = Callable[[int, int], bool]


def pyarrow() -> Any:
    """Return pyarrow with its Parquet part, or say how to get it."""
    try:
        import pyarrow as found
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            "explain_batches writes Parquet, for which pyarrow is needed and not installed; "
            "`pip install 'mcce[batches]'` brings it."
        ) from error
    return found


def read_chunks(
    path: Path, columns: Mapping[str, Any], schema: Schema, size: int, missing: Sequence[str], needed: Needed
) -> Iterator[Chunk]:
    """Yield the rows of a file; `columns` says what to read and how it is called from there on.

    `needed` says of a range of rows whether they have to be read; those that do not may come without their cells.
    """
    if path.name.endswith(PARQUET):
        return _read_parquet(path, columns, size, needed)
    return _read_csv(path, columns, schema, size, missing)


def _check_columns(path: Path, has: Sequence[str], columns: Mapping[str, Any]) -> None:
    for name in columns:
        if name not in has:
            raise InputError(f"{path} has no column {name!r}, which is needed; {did_you_mean(name, has)}")
        if list(has).count(name) > 1:
            raise InputError(f"{path} has several columns {name!r}; name each column once.")


def _read_parquet(path: Path, columns: Mapping[str, Any], size: int, needed: Needed) -> Iterator[Chunk]:
    unreadable = (pyarrow().ArrowException, OSError)
    try:
        file = pyarrow().parquet.ParquetFile(path, page_checksum_verification=True)
    except unreadable as error:
        problem = f"it is no Parquet file that can be read: {_first_line(error)}"
        yield Chunk(0, 1, _nothing(columns), (BadRows(0, 1, "the file", problem),))  # nobody knows how many rows
        return
    with file:
        _check_columns(path, file.schema_arrow.names, columns)
        begin = 0
        for group in range(file.num_row_groups):
            end = begin + file.metadata.row_group(group).num_rows
            if not needed(begin, end):
                yield Chunk(begin, end, _nothing(columns))
                begin = end
                continue
            try:
                batches = file.iter_batches(size, row_groups=[group], columns=list(columns), use_threads=False)
                for batch in batches:
                    yield Chunk(begin, begin + batch.num_rows, _frame(batch, begin, columns))
                    begin += batch.num_rows
            except unreadable as error:
                problem = f"row group {group}, rows {begin} to {end - 1}, cannot be read: {_first_line(error)}"
                yield Chunk(begin, end, _nothing(columns), (BadRows(begin, end, f"row {begin}", problem),))
            begin = end


def _frame(batch: Any, begin: int, columns: Mapping[str, Any]) -> pd.DataFrame:
    frame: pd.DataFrame = batch.to_pandas(date_as_object=False, integer_object_nulls=True)
    frame = frame[list(columns)]
    frame.columns = pd.Index(list(columns.values()), tupleize_cols=False)
    frame.index = pd.RangeIndex(begin, begin + len(frame))
    return frame


def _nothing(columns: Mapping[str, Any]) -> pd.DataFrame:
    frame = pd.DataFrame({name: [] for name in columns.values()}, dtype=object, index=pd.RangeIndex(0))
    frame.columns = pd.Index(list(columns.values()), tupleize_cols=False)
    return frame


def _read_csv(
    path: Path, columns: Mapping[str, Any], schema: Schema, size: int, missing: Sequence[str]
) -> Iterator[Chunk]:
    open_file: Any = gzip.open if path.name.endswith(".gz") else open
    with open_file(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        lines = _read_lines(csv.reader(file))
        header = next(lines, None)
        if header is None or header.problem:
            why = "is empty" if header is None else header.problem
            raise InputError(f"{path} {why}; its first line has to name the columns.")
        _check_columns(path, header.cells, columns)
        chosen = [header.cells.index(name) for name in columns]
        begin = 0
        while some := list(islice(lines, size)):
            problems = [line.problem or _problem_of(line.cells, header.cells) for line in some]
            good = [i for i, problem in enumerate(problems) if not problem]
            texts = pd.DataFrame([[some[i].cells[j] for j in chosen] for i in good], columns=chosen, dtype=object)
            texts.columns = pd.Index(list(columns.values()), tupleize_cols=False)
            texts.index = pd.Index([begin + i for i in good], dtype=np.int64)
            frame, unread = read_texts(texts, schema, missing, str(path))
            bad = [
                BadRows(begin + i, begin + i + 1, f"line {line.number}", problem)
                for i, (line, problem) in enumerate(zip(some, problems))
                if problem
            ]
            numbers = np.array([some[i].number for i in good], dtype=np.int64)
            chunk = Chunk(begin, begin + len(some), frame, tuple(bad), numbers)
            yield chunk.drop(sorted(unread.items()))
            begin += len(some)


class _Line(NamedTuple):
    """A row of a CSV, and the line on which it begins."""

    number: int
    cells: list[str]
    problem: str = ""


def _read_lines(reader: Any) -> Iterator[_Line]:
    """Yield the rows of a CSV; an empty line is none. Where a compressed file is damaged, the last one says so."""
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield _Line(number, [], f"the line cannot be read: {_first_line(error)}")
            continue
        except (EOFError, OSError, zlib.error) as error:
            yield _Line(number, [], f"the file cannot be read from here on: {_first_line(error)}")
            return
        if cells is None:
            return
        if cells:
            yield _Line(number, cells)


def _problem_of(cells: Sequence[str], header: Sequence[str]) -> str:
    if len(cells) != len(header):
        return f"it has {len(cells)} cells, and the header names {len(header)} columns ({listing(header, 4)})."
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return "it is not written in UTF-8."
    return ""


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".") + "."
