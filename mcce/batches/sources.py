"""Where factuals come from: files of any size, or frames one after the other; and how they are cut into parts.

1. A source is a file, the Parquet and CSV files of a folder in the order of their names, or frames. Its fingerprint has
   the size and checksum of every file; frames are known when they come, so that theirs stands with each part.
2. Each file, or frame, is cut into parts of `batch_size` rows, its last part may be smaller. Parts are numbered over
   the whole source, and so are rows.
3. Rows are named by a column that is checked, before any work, to name each row of all files once; or by their number.
   For files that takes 8 bytes a row, for frames about 60.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from mcce.arrays import UInts
from mcce.batches.chunks import Chunk, cut_into_parts
from mcce.batches.files import CSV, PARQUET, pyarrow, read_chunks
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.table import Schema

BYTES = 1 << 22  # of a file that are read at a time for its checksum


class _Column(Enum):
    """The name of the column of ids while rows are read: no feature has it."""

    ID = "id"


ID = _Column.ID


@dataclass(frozen=True)
class Part:
    """Rows that are explained together, and written together.

    Attributes
    ----------
    number : place among all parts.
    where : the file, or which of the frames.
    rows : the rows, numbered within the file, with the columns of the training data, and what names them.
    first : number of its first row in the whole source.
    digest : of the frame it comes from; None for files, which have theirs in the fingerprint.
    id_type : what the ids of the whole source are, for Arrow; None for numbers of rows.
    """

    number: int
    where: str
    rows: Chunk
    first: int
    digest: str | None = None
    id_type: Any = None

    def factuals(self, id: str | None) -> pd.DataFrame:
        """Return the rows to explain, named by their ids."""
        frame = self.rows.frame
        if id is None:
            return frame.set_axis(frame.index + (self.first - self.rows.begin), axis=0)
        return frame.drop(columns=ID).set_axis(pd.Index(frame[ID], name=id, tupleize_cols=False), axis=0)


Done = Callable[[int], bool]


class Source(Protocol):
    """What can be explained in batches; `total` is how many rows it has, as far as that is known."""

    @property
    def total(self) -> int | None: ...

    def describe(self) -> dict[str, Any]:
        """Return what tells this source from others."""

    def parts(self, batch_size: int, done: Done) -> Iterator[Part]:
        """Yield all parts in order; the cells of those that are done may be missing."""


def open_source(source: Any, schema: Schema, id: str | None, missing: Sequence[str]) -> Source:
    """Return the source that a user names."""
    if isinstance(source, (str, PathLike)):
        return Files.find(Path(source), schema, id, missing)
    if isinstance(source, pd.DataFrame):
        source = [source]
    if not isinstance(source, Iterable):
        raise InputError(
            f"source is {spell(source)} (a {type(source).__name__}); give a Parquet or CSV file, a folder of them, or "
            "frames one after the other."
        )
    return Frames(source, schema, id)


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
        """Find the files, and their sizes and checksums."""
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
        folder = path if path.is_dir() else path.parent
        known = [_fingerprint(p, p.relative_to(folder).as_posix()) for p in found]
        rows = [n for _, n in known]
        total = None if None in rows else sum(n for n in rows if n is not None)
        return cls(folder, tuple(found), tuple(f for f, _ in known), total, schema, id, tuple(missing))

    def describe(self) -> dict[str, Any]:
        """Return name, size and checksum of every file."""
        return {"files": list(self.fingerprint)}

    def parts(self, batch_size: int, done: Done) -> Iterator[Part]:
        """Yield all parts in order."""
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
                raise InputError(f"{path} has changed while it was read ({rows} rows); run it again into a new folder.")

    def _columns(self) -> dict[str, Any]:
        named: dict[str, Any] = {str(name): name for name in self.schema.names}
        if self.id is not None and self.id in named:
            raise InputError(f"id is {self.id!r}, which is a feature of the model; name the rows by another column.")
        return named if self.id is None else {**named, self.id: ID}

    def _id_type(self) -> Any:
        """Return what the ids of the first Parquet file are; those of a CSV are text."""
        if self.id is None or not self.paths[0].name.endswith(PARQUET):
            return None if self.id is None else pyarrow().string()
        for path in self.paths:
            with contextlib.suppress(pyarrow().ArrowException, OSError):  # a file that cannot be read: said later
                return _plain_type(pyarrow().parquet.read_schema(path).field(self.id).type)
        return None

    def _read(self, path: Path, batch_size: int, needed: Callable[[int, int], bool]) -> Iterator[Chunk]:
        for chunk in read_chunks(path, self._columns(), self.schema, batch_size, self.missing, needed):
            yield chunk if self.id is None else _without_nameless(chunk)

    def _check_ids(self, batch_size: int) -> None:
        """Refuse ids that name two rows: hashes of all first, then the ids themselves of those that look alike."""
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
                    raise _twice(ids.iloc[i], seen[ids.iloc[i]], place, self.id)
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
    """Frames, one after the other; those that are read again, to go on, have to be the same."""

    total: int | None = None

    def __init__(self, frames: Iterable[Any], schema: Schema, id: str | None) -> None:
        self.frames = frames
        self.schema = schema
        self.id = id
        if isinstance(frames, Sequence) and all(isinstance(frame, pd.DataFrame) for frame in frames):
            self.total = sum(map(len, frames))

    def describe(self) -> dict[str, Any]:
        """Say that these are frames: what they hold is known part by part."""
        return {"frames": True}

    def parts(self, batch_size: int, done: Done) -> Iterator[Part]:
        """Yield all parts in order."""
        number = first = 0
        id_type = None
        seen: dict[int, str] = {}
        for i, frame in enumerate(self.frames):
            where = f"frame {i}"
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
                raise _twice(ids.iloc[i], seen[key], f"{chunk.place(i)} of {where}", self.id)
            seen[key] = where


def _plain_type(type_: Any) -> Any:
    """Return the type of ids without how they happen to be kept."""
    types = pyarrow().types
    if types.is_dictionary(type_):
        return _plain_type(type_.value_type)
    return pyarrow().string() if types.is_large_string(type_) or types.is_null(type_) else type_


def _without_nameless(chunk: Chunk) -> Chunk:
    nameless = np.flatnonzero(chunk.frame[ID].isna().to_numpy()).tolist()
    return chunk.drop([(i, "it has no id.") for i in nameless])


def _twice(id: Hashable, here: str, there: str, column: str | None) -> InputError:
    return InputError(
        f"the id {spell(id)} of column {column!r} names {here} and {there}; it has to name one row of the whole "
        "source. Correct it, or leave `id` out: rows are then named by their number."
    )


def _hashes(ids: pd.Series[Any]) -> UInts:
    return np.asarray(pd.util.hash_pandas_object(ids.astype(object), index=False), dtype=np.uint64)


def _digest(frame: pd.DataFrame) -> str:
    """Return what tells a frame from others: names, dtypes and values."""
    digest = hashlib.sha256(repr([(str(n), str(t)) for n, t in zip(frame.columns, frame.dtypes)]).encode())
    digest.update(np.asarray(pd.util.hash_pandas_object(frame, index=False)).tobytes())
    return digest.hexdigest()


def _fingerprint(path: Path, name: str) -> tuple[dict[str, Any], int | None]:
    """Return name, size and checksum of a file, and how many rows it has: for a CSV, lines after the first."""
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
        return None  # said when it is read
