"""The factuals of a batch run: from Parquet and CSV files of any size, or from frames, split into parts.

1. A source is a file, the files of a folder in the order of their names, or frames. Files are identified by size and
   checksum, frames by a hash of each part.
2. Parts have `batch_size` rows of one file or frame. Ids are checked to be unique before any work.
3. Parquet is read by row groups; an unreadable group is a range of bad rows. CSV is read as text, line by line; a line
   with a wrong number of cells or invalid UTF-8 is a bad row.
4. Text cells become values of the training columns. A cell that is not a number or date where one is needed, or a
   number with a leading zero, makes its row bad. Unknown levels are kept for `explain` to report.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import hashlib
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from mcce.base.arrays import Ints, UInts
from mcce.base.files import check_path
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.table import Feature, Schema
from mcce.table.dtypes import date_family, is_dated
from mcce.table.spreadsheet import LEADING_ZERO, unescape_formula
from mcce.wording import Setting

TRUTHS = {"true": True, "false": False}


def read_texts(
    texts: pd.DataFrame, schema: Schema, missing: Sequence[str], where: str
) -> tuple[pd.DataFrame, dict[int, str]]:
    """Return the values of text cells, and the problems of bad rows, by position.

    Columns that are not in the schema, such as ids, stay text.
    """
    marked = texts.mask(texts.isin(["", *missing]), None)
    features = {feature.name: feature for feature in schema.features}
    columns: dict[Any, Any] = {}
    problems: dict[int, str] = {}
    for name in texts.columns:
        if name not in features:
            columns[name] = marked[name].map(unescape_formula, na_action="ignore")
            continue
        feature = features[name]
        columns[name] = _values(feature, marked[name], where)
        if feature.is_numeric:
            for i in np.flatnonzero((columns[name].isna() & marked[name].notna()).to_numpy()).tolist():
                what = "date or duration" if is_dated(feature.dtype) else "number"
                problems.setdefault(i, f"column {name!r} holds {spell(texts[name].iloc[i])}, which is not a {what}.")
            problems = _leading_zeros(feature, marked[name]) | problems
    return pd.DataFrame(columns, index=texts.index), problems


def _leading_zeros(feature: Feature, cells: pd.Series[Any]) -> dict[int, str]:
    """Return the problems of numbers with a leading zero, which may be codes, by position."""
    if is_dated(feature.dtype):
        return {}
    return {
        i: f"column {feature.name!r} is numeric in the training data and holds {spell(text)}, with a leading zero. "
        "Write it without the zero if it is a number."
        for i, text in enumerate(cells)
        if isinstance(text, str) and LEADING_ZERO.match(text.strip())
    }


def _values(feature: Feature, cells: pd.Series[Any], where: str) -> pd.Series[Any]:
    if not feature.is_numeric:
        known = _spellings(feature)
        return cells.map(
            lambda cell: known.get(cell, known.get(unescape_formula(cell), cell)), na_action="ignore"
        ).astype(object)
    if not is_dated(feature.dtype):
        return pd.to_numeric(cells, errors="coerce")
    if isinstance(feature.dtype, pd.PeriodDtype):
        raise InputError(f"column {feature.name!r} has periods, which are not read from {where}; give Parquet.")
    if feature.dtype.kind == "m":
        return pd.to_timedelta(cells, errors="coerce")
    zoned = bool(date_family(feature.dtype) == ("M", True))
    return pd.to_datetime(cells, errors="coerce", format="ISO8601", utc=zoned)


def _spellings(feature: Feature) -> dict[Any, Any]:
    """Return the level of each text; whole numbers also without a decimal point."""
    assert feature.levels is not None
    known: dict[Any, Any] = {}
    for level in feature.levels:
        if isinstance(level, (float, np.floating)) and float(level).is_integer():
            known[str(int(level))] = level
        if isinstance(level, (bool, np.bool_)):
            known |= {text: level for text, truth in TRUTHS.items() if truth == bool(level)}
            known |= {text.upper(): level for text, truth in TRUTHS.items() if truth == bool(level)}
    return known | {str(level): level for level in feature.levels}


@dataclass(frozen=True)
class BadRows:
    """Consecutive rows that cannot be explained for the same reason.

    Attributes
    ----------
    begin, end : first row in the file, and the one after the last.
    place : the place in the file, "row 8" or "line 10".
    problem : the reason.
    """

    begin: int
    end: int
    place: str
    problem: str


@dataclass(frozen=True)
class Chunk:
    """The rows `begin` to `end` of a file; the index of `frame` is the row number, and bad rows are not in it.

    `lines` has the line of each row of `frame` in a text file.
    """

    begin: int
    end: int
    frame: pd.DataFrame
    bad: tuple[BadRows, ...] = ()
    lines: Ints | None = None

    def place(self, i: int) -> str:
        """Return the place of the i-th row of `frame` in the file."""
        return f"row {self.frame.index[i]}" if self.lines is None else f"line {self.lines[i]}"

    def drop(self, bad: Sequence[tuple[int, str]]) -> Chunk:
        """Return the chunk with some rows of `frame`, given by position and problem, moved to the bad ones."""
        if not bad:
            return self
        rows = self.frame.index.to_numpy()
        kept = np.setdiff1d(np.arange(len(self.frame)), [i for i, _ in bad])
        listed = [BadRows(int(rows[i]), int(rows[i]) + 1, self.place(i), problem) for i, problem in bad]
        return replace(
            self,
            frame=self.frame.iloc[kept],
            bad=tuple(sorted([*self.bad, *listed], key=lambda b: b.begin)),
            lines=None if self.lines is None else self.lines[kept],
        )

    def cut(self, at: int) -> tuple[Chunk, Chunk]:
        """Return the rows before a row number, and the rest."""
        at = min(at, self.end)
        place = int(np.searchsorted(self.frame.index.to_numpy(), at))
        before = tuple(replace(b, end=min(b.end, at)) for b in self.bad if b.begin < at)
        after = tuple(replace(b, begin=max(b.begin, at)) for b in self.bad if b.end > at)
        lines = (None, None) if self.lines is None else (self.lines[:place], self.lines[place:])
        return (
            Chunk(self.begin, at, self.frame.iloc[:place], before, lines[0]),
            Chunk(at, self.end, self.frame.iloc[place:], after, lines[1]),
        )


def cut_into_parts(chunks: Iterable[Chunk], size: int) -> Iterator[Chunk]:
    """Yield the rows of a file in chunks of `size` rows."""
    held: list[Chunk] = []
    for chunk in chunks:
        rest = chunk
        while rest.begin < rest.end:
            boundary = (rest.begin // size + 1) * size
            now, rest = rest.cut(boundary)
            held.append(now)
            if now.end == boundary:
                yield _join(held)
                held = []
    if held:
        yield _join(held)


def _join(chunks: Sequence[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    frames = [chunk.frame for chunk in chunks if len(chunk.frame)] or [chunks[0].frame]
    bad = tuple(b for chunk in chunks for b in chunk.bad)
    lines = [chunk.lines for chunk in chunks if chunk.lines is not None]
    return Chunk(
        chunks[0].begin,
        chunks[-1].end,
        pd.concat(frames) if len(frames) > 1 else frames[0],
        bad,
        np.concatenate(lines) if lines else None,
    )


PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz")

Needed = Callable[[int, int], bool]


def pyarrow() -> Any:
    """Return pyarrow with its Parquet module; raise if it is not installed."""
    try:
        import pyarrow as found
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            "explain_batches writes Parquet, which needs pyarrow; install it by `pip install 'mcce[batches]'`."
        ) from error
    return found


def read_chunks(
    path: Path, columns: Mapping[str, Any], schema: Schema, size: int, missing: Sequence[str], needed: Needed
) -> Iterator[Chunk]:
    """Yield the rows of a file; `columns` maps the columns to read to their new names.

    `needed` returns whether a range of rows must be read; other rows may have no cells.
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
        problem = f"it is not a readable Parquet file: {_first_line(error)}"
        yield Chunk(0, 1, _empty_frame(columns), (BadRows(0, 1, "the file", problem),))  # of unknown length
        return
    with file:
        _check_columns(path, file.schema_arrow.names, columns)
        begin = 0
        for group in range(file.num_row_groups):
            end = begin + file.metadata.row_group(group).num_rows
            if not needed(begin, end):
                yield Chunk(begin, end, _empty_frame(columns))
                begin = end
                continue
            try:
                batches = file.iter_batches(size, row_groups=[group], columns=list(columns), use_threads=False)
                for batch in batches:
                    yield Chunk(begin, begin + batch.num_rows, _frame(batch, begin, columns))
                    begin += batch.num_rows
            except unreadable as error:
                problem = f"row group {group}, rows {begin} to {end - 1}, cannot be read: {_first_line(error)}"
                yield Chunk(begin, end, _empty_frame(columns), (BadRows(begin, end, f"row {begin}", problem),))
            begin = end


def _frame(batch: Any, begin: int, columns: Mapping[str, Any]) -> pd.DataFrame:
    frame: pd.DataFrame = batch.to_pandas(date_as_object=False, integer_object_nulls=True)
    frame = frame[list(columns)]
    frame.columns = pd.Index(list(columns.values()), tupleize_cols=False)
    frame.index = pd.RangeIndex(begin, begin + len(frame))
    return frame


def _empty_frame(columns: Mapping[str, Any]) -> pd.DataFrame:
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
            raise InputError(f"{path} {why}; its first line must name the columns.")
        names = [name if name in columns else _resolved(name, header.cells, columns) for name in header.cells]
        _check_columns(path, names, columns)
        chosen = [names.index(name) for name in columns]
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


def _resolved(name: str, header: Sequence[str], columns: Mapping[str, Any]) -> str:
    """Return the name of a column of a spreadsheet-safe file, without its apostrophe if the plain name is needed."""
    plain = unescape_formula(name)
    return plain if plain in columns and plain not in header else name


class _Line(NamedTuple):
    """A row of a CSV, and its first line."""

    number: int
    cells: list[str]
    problem: str = ""


def _read_lines(reader: Any) -> Iterator[_Line]:
    """Yield the rows of a CSV without empty lines; the last row reports a damaged compressed file."""
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
        return "it is not UTF-8."
    return ""


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".") + "."


BYTES = 1 << 22  # block size for checksums


class _IdColumn(Enum):
    """The name of the column of ids while rows are read, which no feature can have."""

    ID = "id"


ID = _IdColumn.ID


@dataclass(frozen=True)
class Part:
    """Rows that are explained and written together.

    Attributes
    ----------
    number : position among all parts.
    where : name of the file or frame.
    rows : the rows, numbered within the file, with the columns of the training data and the ids.
    first : number of its first row in the whole source.
    digest : hash of its frame; None for files, whose fingerprints have hashes.
    id_type : Arrow type of the ids of the whole source; None for row numbers.
    """

    number: int
    where: str
    rows: Chunk
    first: int
    digest: str | None = None
    id_type: Any = None

    def factuals(self, id: str | None) -> pd.DataFrame:
        frame = self.rows.frame
        if id is None:
            return frame.set_axis(frame.index + (self.first - self.rows.begin), axis=0)
        return frame.drop(columns=ID).set_axis(pd.Index(frame[ID], name=id, tupleize_cols=False), axis=0)


Done = Callable[[int], bool]


class RowSource(Protocol):
    """A source of rows; `total` is the number of rows, None if unknown."""

    @property
    def total(self) -> int | None: ...

    def describe(self) -> dict[str, Any]:
        """Return what identifies this source."""

    def parts(self, batch_size: int, done: Done) -> Iterator[Part]:
        """Yield all parts in order; finished parts may have no cells."""


def open_source(source: Any, schema: Schema, id: str | None, missing: Sequence[str]) -> RowSource:
    if isinstance(source, (str, PathLike)):
        return Files.find(check_path(source), schema, id, missing)
    if isinstance(source, pd.DataFrame):
        source = [source]
    if not isinstance(source, Iterable):
        raise InputError(
            f"source is {spell(source)} (a {type(source).__name__}); give a Parquet or CSV file, a folder of them, or "
            "an iterable of frames."
        )
    _check_missing(missing, ())
    return Frames(source, schema, id)


def _check_missing(missing: Sequence[str], paths: Sequence[Path]) -> None:
    """Raise if texts for missing cells are given, and no file is CSV."""
    if missing and not any(path.name.endswith(CSV) for path in paths):
        raise InputError(
            Setting("missing", list(missing)),
            " has no effect: it applies to CSV files, and the source has none; leave it out.",
        )


@dataclass(frozen=True)
class Files:
    """Parquet and CSV files, read one after the other."""

    folder: Path
    paths: tuple[Path, ...]
    fingerprint: tuple[dict[str, Any], ...]
    total: int | None
    schema: Schema
    id: str | None
    missing: tuple[str, ...]

    @classmethod
    def find(cls, path: Path, schema: Schema, id: str | None, missing: Sequence[str]) -> Files:
        if not path.exists():
            raise InputError(f"source {path}: there is no such file or folder; check its name.")
        if path.is_dir():
            found = sorted(p for p in path.rglob("*") if p.name.endswith((*PARQUET, *CSV)) and p.is_file())
            found = [p for p in found if not p.relative_to(path).as_posix().startswith((".", "_"))]
            if not found:
                raise InputError(f"source {path} has no file that ends in {listing((*PARQUET, *CSV))}.")
        elif path.name.endswith((*PARQUET, *CSV)):
            found = [path]
        else:
            raise InputError(
                f"source {path} is neither Parquet nor CSV; its name must end in {listing(PARQUET + CSV)}."
            )
        _check_missing(missing, found)
        folder = path if path.is_dir() else path.parent
        known = [_fingerprint(p, p.relative_to(folder).as_posix()) for p in found]
        rows = [n for _, n in known]
        total = None if None in rows else sum(n for n in rows if n is not None)
        return cls(folder, tuple(found), tuple(f for f, _ in known), total, schema, id, tuple(missing))

    def describe(self) -> dict[str, Any]:
        """Return name, size and checksum of every file."""
        return {"files": list(self.fingerprint)}

    def parts(self, batch_size: int, done: Done) -> Iterator[Part]:
        if self.id is not None:
            self._check_ids(batch_size)
        id_type = self._id_type()
        number = first = 0
        for path, known in zip(self.paths, self.fingerprint):
            begun = number

            def needed(begin: int, end: int, begun: int = begun) -> bool:
                return not all(map(done, range(begun + begin // batch_size, begun + -(-end // batch_size))))

            rows = 0
            for chunk in cut_into_parts(self._read(path, batch_size, needed), batch_size):
                yield Part(number, known["name"], chunk, first, id_type=id_type)
                number += 1
                first += chunk.end - chunk.begin
                rows = chunk.end
            if path.stat().st_size != known["bytes"]:
                raise InputError(f"{path} was changed while it was read ({rows} rows); run it again into a new folder.")

    def _columns(self) -> dict[str, Any]:
        named: dict[str, Any] = {str(name): name for name in self.schema.names}
        if self.id is not None and self.id in named:
            raise InputError(f"id is {self.id!r}, which is a feature of the model; name the rows by another column.")
        return named if self.id is None else {**named, self.id: ID}

    def _id_type(self) -> Any:
        """Return the Arrow type of the ids: that of the first Parquet file; text for CSV."""
        if self.id is None or not self.paths[0].name.endswith(PARQUET):
            return None if self.id is None else pyarrow().string()
        for path in self.paths:
            with contextlib.suppress(pyarrow().ArrowException, OSError):  # reading the file raises later
                return _plain_type(pyarrow().parquet.read_schema(path).field(self.id).type)
        return None

    def _read(self, path: Path, batch_size: int, needed: Callable[[int, int], bool]) -> Iterator[Chunk]:
        for chunk in read_chunks(path, self._columns(), self.schema, batch_size, self.missing, needed):
            yield chunk if self.id is None else _without_nameless(chunk)

    def _check_ids(self, batch_size: int) -> None:
        """Raise if an id names two rows; ids are compared only if their hashes are equal."""
        hashes = [_hashes(ids) for _, ids in self._ids(batch_size)]
        every: UInts = np.sort(np.concatenate([np.empty(0, dtype=np.uint64), *hashes]))
        twice = np.unique(every[1:][every[1:] == every[:-1]])
        if not twice.size:
            return
        seen: dict[Hashable, str] = {}
        for (path, chunk), ids in self._ids(batch_size):
            for i in np.flatnonzero(np.isin(_hashes(ids), twice)).tolist():
                place = f"{chunk.place(i)} of {path}"
                if ids.iloc[i] in seen:
                    raise _repeated_id(ids.iloc[i], seen[ids.iloc[i]], place, self.id)
                seen[ids.iloc[i]] = place

    def _ids(self, batch_size: int) -> Iterator[tuple[tuple[Path, Chunk], pd.Series[Any]]]:
        assert self.id is not None
        self._columns()
        for path in self.paths:
            chunks = read_chunks(path, {self.id: ID}, self.schema, batch_size, self.missing, lambda *_: True)
            for chunk in chunks:
                chunk = _without_nameless(chunk)
                yield (path, chunk), chunk.frame[ID]


class Frames:
    """An iterable of frames; a resumed run must receive the same frames."""

    total: int | None = None

    def __init__(self, frames: Iterable[Any], schema: Schema, id: str | None) -> None:
        self.frames = frames
        self.schema = schema
        self.id = id
        if isinstance(frames, Sequence) and all(isinstance(frame, pd.DataFrame) for frame in frames):
            self.total = sum(map(len, frames))

    def describe(self) -> dict[str, Any]:
        """Return a mark of frames, whose contents are identified part by part."""
        return {"frames": True}

    def parts(self, batch_size: int, done: Done) -> Iterator[Part]:
        number = first = 0
        id_type = None
        seen: dict[int, str] = {}
        for i, frame in enumerate(self.frames):
            where = str(getattr(frame, "attrs", {}).get("source", f"frame {i}"))
            if not isinstance(frame, pd.DataFrame):
                raise InputError(f"{where} of the source is a {type(frame).__name__}; give DataFrames.")
            rows = self._named(frame, where)
            for chunk in cut_into_parts([rows], batch_size):
                self._check_ids(chunk, where, seen)
                if self.id is not None and id_type is None and len(chunk.frame):
                    id_type = _plain_type(pyarrow().array(chunk.frame[ID], from_pandas=True).type)
                yield Part(number, where, chunk, first, _digest(chunk.frame), id_type)
                number += 1
                first += chunk.end - chunk.begin

    def _named(self, frame: pd.DataFrame, where: str) -> Chunk:
        names = [*self.schema.names, *([] if self.id is None else [self.id])]
        for name in names:
            if name not in frame.columns:
                raise InputError(
                    f"{where} has no column {name!r}, which is needed; {did_you_mean(name, frame.columns)}"
                )
        if self.id in self.schema.names:
            raise InputError(f"id is {self.id!r}, which is a feature of the model; name the rows by another column.")
        rows = frame[names].reset_index(drop=True)
        if self.id is not None:
            rows = rows.rename(columns={self.id: ID})
        chunk = Chunk(0, len(rows), rows)
        return chunk if self.id is None else _without_nameless(chunk)

    def _check_ids(self, chunk: Chunk, where: str, seen: dict[int, str]) -> None:
        if self.id is None:
            return
        ids = chunk.frame[ID]
        for i, key in enumerate(_hashes(ids).tolist()):
            if key in seen:
                raise _repeated_id(ids.iloc[i], seen[key], f"{chunk.place(i)} of {where}", self.id)
            seen[key] = where


def _plain_type(type_: Any) -> Any:
    """Return the Arrow type of ids without dictionary encoding or large offsets."""
    types = pyarrow().types
    if types.is_dictionary(type_):
        return _plain_type(type_.value_type)
    return pyarrow().string() if types.is_large_string(type_) or types.is_null(type_) else type_


def _without_nameless(chunk: Chunk) -> Chunk:
    nameless = np.flatnonzero(chunk.frame[ID].isna().to_numpy()).tolist()
    return chunk.drop([(i, "it has no id.") for i in nameless])


def _repeated_id(id: Hashable, here: str, there: str, column: str | None) -> InputError:
    return InputError(
        f"the id {spell(id)} of column {column!r} names {here} and {there}; it must name one row of the whole "
        "source. Correct it, or leave `id` out: rows are then named by their number."
    )


def _hashes(ids: pd.Series[Any]) -> UInts:
    return np.asarray(pd.util.hash_pandas_object(ids.astype(object), index=False), dtype=np.uint64)


def _digest(frame: pd.DataFrame) -> str:
    """Return a hash of the names, dtypes and values of a frame."""
    digest = hashlib.sha256(repr([(str(n), str(t)) for n, t in zip(frame.columns, frame.dtypes)]).encode())
    digest.update(np.asarray(pd.util.hash_pandas_object(frame, index=False)).tobytes())
    return digest.hexdigest()


def _fingerprint(path: Path, name: str) -> tuple[dict[str, Any], int | None]:
    """Return name, size and checksum of a file, and its number of rows: for a CSV, lines after the first."""
    digest = hashlib.sha256()
    lines = size = 0
    with path.open("rb") as file:
        while block := file.read(BYTES):
            digest.update(block)
            lines += block.count(b"\n")
            size += len(block)
    return {"name": name, "bytes": size, "sha256": digest.hexdigest()}, _count_rows(path, lines)


def _count_rows(path: Path, lines: int) -> int | None:
    if path.name.endswith(".gz"):
        return None
    if path.name.endswith(CSV):
        return max(lines - 1, 0)
    try:
        return int(pyarrow().parquet.read_metadata(path).num_rows)
    except (pyarrow().ArrowException, OSError):
        return None  # reading the file raises
