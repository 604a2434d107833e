"""One object as one file: a zip of JSON and arrays with a manifest; files are not trusted.

1. A file is a zip of `manifest.json`, `state.json` and `0.npy`, `1.npy`, ... The manifest has format, kind, versions,
   and size and SHA-256 of every entry. The same object gives the same bytes, and a packed object is read back before it
   is written.
2. Names and sizes are compared with the manifest before entries are read. Memory is bounded by the size of the file: an
   array above `SMALL` may be compressed at most `MOST_PACKED` times, JSON not at all, all entries together at most
   `SMALL` plus `MOST_PACKED` times the file; entries share no bytes, and every array is used once.
3. An array is what `numpy.save` writes, version 1.0, little-endian, of a plain dtype; its shape must match its bytes.
   Booleans are 0 or 1, and text holds characters only.
4. Objects are made by registered classes only, and each checks its parts (`mcce.storage.state`).

Every failure is an `InputError` that names the file. Checksums detect damage, not manipulation, so all contents are
validated as well.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import math
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.files import atomic_write, check_path
from mcce.exceptions import InputError, MCCEError
from mcce.storage.state import Fields, from_state, put_back_arrays, take_out_arrays, to_state
from mcce.wording import PythonOnly, parts_of

FORMAT, VERSION = "mcce", 1
KINDS = ("Generator", "MCCE", "Counterfactuals")
OTHERS = {  # other kinds of files, by ending
    ".csv": "a table as text",
    ".tsv": "a table as text",
    ".txt": "text",
    ".parquet": "a table as Parquet",
    ".json": "JSON",
    ".toml": "TOML",
    ".html": "a page",
    ".joblib": "an object that joblib wrote",
    ".pkl": "a pickle",
    ".onnx": "a model",
}
MANIFEST, STATE = "manifest.json", "state.json"
ARRAY = re.compile(r"(0|[1-9][0-9]{0,8})\.npy")
SMALL = 1 << 20
MOST_PACKED = 64
MOST_DEPTH = 64  # of nested lists and dicts


class RefusedFileError(InputError):
    """A file that is valid, but not for this call or this version; the message says what to do."""


def is_too_packed(name: str, size: int, packed: int) -> bool:
    """Return whether the compression ratio of an entry exceeds the bound."""
    return size > SMALL and size > packed * (MOST_PACKED if ARRAY.fullmatch(name) else 1)


Array = npt.NDArray[Any]

_MAGIC = b"\x93NUMPY\x01\x00"
_MOST_HEADER = 4096
_ITEM_SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "M": (8,), "m": (8,)}


def to_bytes(array: Array) -> bytes:
    if array.dtype.hasobject or not _is_plain(array.dtype):
        raise InputError(f"an array of {array.dtype} cannot be stored; only numbers, booleans, dates and text can.")
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array.astype(array.dtype.newbyteorder("<"), copy=False), version=(1, 0))
    return buffer.getvalue()


def from_bytes(data: bytes) -> Array:
    """Return the array of an npy entry."""
    if not data.startswith(_MAGIC):
        raise InputError("it is not an array in numpy's format 1.0")
    length = int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + 2], "little")
    begin = len(_MAGIC) + 2 + length
    if length > _MOST_HEADER:
        raise InputError(f"the header of an array has {length} bytes, more than an array needs")
    if len(data) < begin:
        raise InputError("an array ends before its header does")
    shape, is_fortran, dtype = _read_header(data[len(_MAGIC) : begin])
    if not _is_plain(dtype):
        raise InputError(f"an array is of {dtype}, which is never stored")
    if any(type(n) is not int or n < 0 for n in shape):
        raise InputError(f"an array has the shape {shape}")
    n_bytes = len(data) - begin
    if len(shape) > 8 or math.prod(shape) * dtype.itemsize != n_bytes:
        raise InputError(f"an array of {dtype} has the shape {str(shape)[:60]}, and {n_bytes} bytes")
    flat = np.frombuffer(data, dtype, math.prod(shape), begin)
    _check_items(flat)
    return flat.astype(dtype.newbyteorder("=")).reshape(shape, order="F" if is_fortran else "C")


@functools.lru_cache(maxsize=1024)  # slow to parse, and the same for many arrays of a file
def _read_header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape, the order and the dtype in the header of an npy entry, which begins with its length."""
    try:
        return np.lib.format.read_array_header_1_0(io.BytesIO(header), max_header_size=_MOST_HEADER)
    except Exception as error:  # numpy's parser can raise anything
        raise InputError(f"the header of an array cannot be read: {error}") from None


def _is_plain(dtype: np.dtype[Any]) -> bool:
    if dtype.kind in "SU":
        return 0 < dtype.itemsize <= 2**16
    return dtype.itemsize in _ITEM_SIZES.get(dtype.kind, ()) and dtype.shape == ()


def _check_items(flat: Array) -> None:
    """Raise on bytes that are not booleans or characters."""
    if flat.dtype.kind == "b" and flat.size and flat.view(np.uint8).max() > 1:
        raise InputError("an array of booleans holds something else")
    if flat.dtype.kind == "U" and flat.size:
        points = flat.view(np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder))
        if ((points > 0x10FFFF) | ((points >= 0xD800) & (points < 0xE000))).any():
            raise InputError("an array of text holds a code that is not a character")


_SAME_TIME = (1980, 1, 1, 0, 0, 0)


def save_fields(
    path: str | os.PathLike[str],
    kind: str,
    fields: Mapping[str, Any],
    about: Mapping[str, Any],
    make: Callable[[Fields], object],
) -> None:
    """Write the fields of an object as one file; an existing file is replaced.

    Parameters
    ----------
    path : str or path
    kind : str
        Name of the class, which `load_fields` checks.
    fields : dict
        The fields from which the object is made again.
    about : dict
        JSON values for the manifest, which can be read alone.
    make : callable
        Makes the object of its fields; they are read back with it before the file is written.
    """
    packed = _pack(kind, fields, about)
    check_loads(packed, kind, make)
    with atomic_write(path) as beside:
        beside.write_bytes(packed.getbuffer())


def _pack(kind: str, fields: Mapping[str, Any], about: Mapping[str, Any]) -> io.BytesIO:
    arrays: list[bytes] = []

    def refer(array: Array) -> Fields:
        arrays.append(to_bytes(array))
        return {"entry": len(arrays) - 1}

    state = take_out_arrays(to_state(dict(fields), kind), refer)
    if depth_of(state) > MOST_DEPTH:
        raise InputError(f"{kind} holds lists or dicts nested more than {MOST_DEPTH} deep; flatten them.")
    entries = {STATE: _as_json(state)} | {f"{i}.npy": data for i, data in enumerate(arrays)}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "versions": {"mcce": _version(), "numpy": np.__version__, "pandas": pd.__version__},
        "about": dict(about),
        "entries": {name: [len(data), hashlib.sha256(data).hexdigest()] for name, data in entries.items()},
    }
    packed = io.BytesIO()
    write_entries(packed, {MANIFEST: _as_json(manifest)} | entries)
    return packed


def write_entries(where: str | os.PathLike[str] | IO[bytes], entries: Mapping[str, bytes]) -> None:
    """Write a zip of entries, each compressed as far as a reader allows."""
    with zipfile.ZipFile(where, "w") as file:
        for name, data in entries.items():
            stored = len(data) > SMALL and is_too_packed(name, len(data), len(zlib.compress(data)))
            method = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            file.writestr(zipfile.ZipInfo(name, _SAME_TIME), data, method)


def _as_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _version() -> str:
    return str(sys.modules["mcce"].__version__)  # importing mcce here would be circular


Made = TypeVar("Made")

_ENCRYPTED = 0x1


def read_manifest(path: str | os.PathLike[str]) -> Fields:
    """Return the manifest of a file, compared with the names and sizes of its entries."""
    with _opened(path) as file:
        return _check_entries(file)


def load_fields(path: str | os.PathLike[str], kind: str, make: Callable[[Fields], Made]) -> Made:
    """Return the object that `make` makes of the fields in a file; errors name the file."""
    with _opened(path) as file:
        return _make(file, kind, make)


def check_loads(stream: IO[bytes], kind: str, make: Callable[[Fields], object]) -> None:
    """Raise if loading a packed object would fail."""
    try:
        with zipfile.ZipFile(stream) as file:
            _make(file, kind, make)
    except Exception as error:  # loading can raise anything
        raise InputError(
            f"this {kind} cannot be saved, since its file would not load: {_describe_error(error)}. Nothing was "
            "written; convert the column or the setting that this is about."
        ) from error


def _make(file: zipfile.ZipFile, kind: str, make: Callable[[Fields], Made]) -> Made:
    manifest = _check_entries(file)
    if manifest["kind"] != kind:
        raise RefusedFileError(f"it holds a {manifest['kind']}, not a {kind}; use {manifest['kind']}.load.")
    state = _parse(_read(file, STATE, manifest), STATE)
    arrays = {i: _read_array(file, f"{i}.npy", manifest) for i in range(len(manifest["entries"]) - 1)}

    def find(reference: Fields) -> Array:
        number = reference.get("entry")
        if type(number) is not int or number not in arrays:
            raise InputError(f"{STATE} names an array {number!s:.30}, which does not exist or was used before")
        return arrays.pop(number)  # every array is used once

    state = put_back_arrays(state, find)
    if arrays:
        raise InputError(f"{STATE} has no place for {len(arrays)} of the arrays")
    fields = from_state(state)
    if not isinstance(fields, dict):
        raise InputError(f"{STATE} holds a {type(fields).__name__}")
    return make(fields)


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    """Open a file; errors inside the block name it."""
    path = check_path(path)
    name = path.name
    with path.open("rb") as stream:
        if path.suffix.lower() in OTHERS and not zipfile.is_zipfile(stream):
            raise InputError(
                f"{name!r} is not a stored file of mcce, but {OTHERS[path.suffix.lower()]}. Give a file that ",
                PythonOnly("`save` or "),
                "`mcce fit --save` wrote.",
            )
        stream.seek(0)
        try:
            with zipfile.ZipFile(stream) as file:
                yield file
        except RefusedFileError as error:
            raise InputError(f"{name!r} cannot be loaded: ", *parts_of(error)) from None
        except Exception as error:  # a damaged file can raise anything
            raise InputError(
                f"{name!r} cannot be loaded: {_describe_error(error)}. It was damaged or changed since it was saved; "
                "save it again, or get it again from its source."
            ) from error


def _describe_error(error: Exception) -> str:
    if isinstance(error, MCCEError):
        return str(error).rstrip(".")
    if isinstance(error, zipfile.BadZipFile):
        return f"it is not a file of mcce, or incomplete ({error})"
    return f"a part of it is invalid ({type(error).__name__}: {str(error)[:200]})"


def _check_entries(file: zipfile.ZipFile) -> Fields:
    """Return the manifest, compared with the names and sizes of the entries."""
    infos = file.infolist()
    names = [info.filename for info in infos]
    wrong = [name for name in names if name not in (MANIFEST, STATE) and not ARRAY.fullmatch(name)]
    if wrong:
        raise InputError(f"it has an entry {wrong[0][:60]!r}, which no file of mcce has")
    if len(set(names)) < len(names):
        raise InputError("it has an entry twice")
    stream = file.fp
    assert stream is not None
    whole = stream.seek(0, os.SEEK_END)
    for info in infos:
        known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if not known or info.flag_bits & _ENCRYPTED:
            raise InputError(f"the entry {info.filename!r} is encrypted, or compressed by an unsupported method")
        if is_too_packed(info.filename, info.file_size, info.compress_size):
            raise InputError(
                f"the entry {info.filename!r} says that its {info.compress_size} bytes become {info.file_size}"
            )
    if sum(info.compress_size for info in infos) > whole:
        raise InputError("its entries share bytes")
    if sum(info.file_size for info in infos) > SMALL + MOST_PACKED * whole:
        raise InputError("its entries are compressed too much")
    if MANIFEST not in names:
        raise InputError(f"it is not a file of mcce: it has no {MANIFEST}")
    with file.open(MANIFEST) as entry:
        manifest: Fields = _parse(entry.read(file.getinfo(MANIFEST).file_size + 1), MANIFEST)
    _check_manifest(manifest, {info.filename: info.file_size for info in infos if info.filename != MANIFEST})
    return manifest


def _check_manifest(manifest: Any, sizes: dict[str, int]) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"it is not a file of mcce: its {MANIFEST} does not say so")
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise InputError(f"its {MANIFEST} gives no version of the format")
    if version > VERSION:
        by = (
            str(manifest["versions"].get("mcce", "unknown"))[:20] if isinstance(manifest.get("versions"), dict) else "?"
        )
        raise RefusedFileError(
            f"it has version {version} of the format, written by mcce {by}, and this mcce reads up to version "
            f"{VERSION}. Update mcce."
        )
    parts = [{"kind": manifest.get("kind")}, manifest.get("versions"), manifest.get("about")]
    if manifest.get("kind") not in KINDS or not all(map(_is_simple, parts)):
        raise InputError(f"its {MANIFEST} does not state its contents")
    entries = manifest.get("entries")
    if not isinstance(entries, dict) or {*entries} != {*sizes}:
        raise InputError(f"its {MANIFEST} lists other entries than there are")
    if {*sizes} != {STATE, *(f"{i}.npy" for i in range(len(sizes) - 1))}:
        raise InputError("an entry is missing")
    for name, listed in entries.items():
        is_pair = (
            isinstance(listed, list) and len(listed) == 2 and type(listed[0]) is int and isinstance(listed[1], str)
        )
        if not is_pair or listed[0] != sizes[name]:
            raise InputError(f"the entry {name!r} has {sizes[name]} bytes, and the {MANIFEST} says {listed!s:.60}")


def _is_simple(part: Any) -> bool:
    """Return whether a value is a dict of texts and numbers."""
    return isinstance(part, dict) and all(isinstance(value, (str, int, float)) for value in part.values())


def _read(file: zipfile.ZipFile, name: str, manifest: Fields) -> bytes:
    """Return an entry; raise if its checksum differs."""
    size, digest = manifest["entries"][name]
    with file.open(name) as entry:
        data = entry.read(size + 1)
    if len(data) != size or hashlib.sha256(data).hexdigest() != digest:
        raise InputError(f"the entry {name!r} does not have its checksum")
    return data


def _read_array(file: zipfile.ZipFile, name: str, manifest: Fields) -> Array:
    data = _read(file, name, manifest)
    try:
        return from_bytes(data)
    except InputError as error:
        raise InputError(f"in {name}, {error}") from None


def _parse(data: bytes, name: str) -> Any:
    """Return JSON values; raise on repeated keys and on values nested too deeply."""
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_without_repeats)
        deep = depth_of(value) > MOST_DEPTH
    except RecursionError:
        deep = True
    except ValueError as error:
        raise InputError(f"{name} is not JSON: {str(error)[:200]}") from None
    if deep:
        raise InputError(f"{name} has lists or dicts nested more than {MOST_DEPTH} deep")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> Fields:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise InputError("a dict has a key twice")
    return made


def depth_of(value: Any) -> int:
    """Return the nesting depth of JSON values."""
    depth, level = 0, [value]
    while level:
        inside = [part for part in level if isinstance(part, (list, dict))]
        depth += bool(inside)
        level = [item for part in inside for item in (part.values() if isinstance(part, dict) else part)]
    return depth
