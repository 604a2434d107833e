"""What a file holds, read with suspicion: nothing is run, and no more room is made than the file is large.

1. Names and sizes of the entries are compared with the rules (`mcce.storage.limits`) and with the manifest before any
   other is read; a newer format is refused.
2. Every entry is read once, no further than its size, and must have its SHA-256.
3. Objects are made by registered classes only, and each checks its parts (`mcce.state`).

Whatever goes wrong is an `InputError` that names the file. A checksum tells a damaged file from a sound one; it does
not tell who wrote it, for whoever changes an entry can sign it again. So everything is checked all the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

from mcce.exceptions import InputError, MCCEError
from mcce.state import TYPE, Fields, from_state
from mcce.storage.arrays import Array, from_stream
from mcce.storage.limits import (
    ARRAY,
    FORMAT,
    KINDS,
    MANIFEST,
    MOST_DEPTH,
    MOST_PACKED,
    SMALL,
    STATE,
    VERSION,
    RefusedFileError,
    is_too_packed,
)

Made = TypeVar("Made")

_ENCRYPTED = 0x1


def read_manifest(path: str | os.PathLike[str]) -> Fields:
    """Return the manifest of a file, after comparing it with the entries, which are not read (step 1)."""
    with _opened(path) as file:
        return _check_entries(file)


def load_fields(path: str | os.PathLike[str], kind: str, make: Callable[[Fields], Made]) -> Made:
    """Return what `make` makes of the fields in a file; what it refuses is told with the file's name."""
    with _opened(path) as file:
        manifest = _check_entries(file)
        if manifest["kind"] != kind:
            raise RefusedFileError(f"it holds a {manifest['kind']}, not a {kind}; use {manifest['kind']}.load.")
        state = _parse(_read(file, STATE, manifest, lambda stream, size: stream.read(size + 1)), STATE)
        arrays = {i: _read(file, f"{i}.npy", manifest, from_stream) for i in range(len(manifest["entries"]) - 1)}
        state = _with_arrays(state, arrays)
        if arrays:
            raise InputError(f"{STATE} has no place for {len(arrays)} of the arrays")
        fields = from_state(state)
        if not isinstance(fields, dict):
            raise InputError(f"{STATE} holds a {type(fields).__name__}")
        return make(fields)


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    """Open a file, and name it in whatever goes wrong with it."""
    name = Path(path).name
    with open(path, "rb") as stream:
        try:
            with zipfile.ZipFile(stream) as file:
                yield file
        except RefusedFileError as error:
            raise InputError(f"{name!r} cannot be loaded: {error}") from None
        except Exception as error:  # a file can be wrong in more ways than can be listed, each of them its own fault
            raise InputError(
                f"{name!r} cannot be loaded: {_said_of(error)}. It was damaged or changed since it was saved; save it "
                "again, or get it again from where it came from."
            ) from error


def _said_of(error: Exception) -> str:
    if isinstance(error, MCCEError):
        return str(error).rstrip(".")
    if isinstance(error, zipfile.BadZipFile):
        return f"it is no file of mcce, or not whole ({error})"
    return f"a part of it is not what it has to be ({type(error).__name__}: {str(error)[:200]})"


def _check_entries(file: zipfile.ZipFile) -> Fields:
    """Return the manifest, after comparing names and sizes (step 1)."""
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
            raise InputError(f"the entry {info.filename!r} is encrypted, or packed in a way that is not read")
        if is_too_packed(info.filename, info.file_size, info.compress_size):
            raise InputError(
                f"the entry {info.filename!r} says that its {info.compress_size} bytes become {info.file_size}"
            )
    if sum(info.compress_size for info in infos) > whole:
        raise InputError("its entries share bytes")
    if sum(info.file_size for info in infos) > SMALL + MOST_PACKED * whole:
        raise InputError("its entries become far more bytes than it has")
    if MANIFEST not in names:
        raise InputError(f"it is no file of mcce: it has no {MANIFEST}")
    with file.open(MANIFEST) as entry:
        manifest = _parse(entry.read(file.getinfo(MANIFEST).file_size + 1), MANIFEST)
    _check_manifest(manifest, {info.filename: info.file_size for info in infos if info.filename != MANIFEST})
    return manifest  # type: ignore[no-any-return]


def _check_manifest(manifest: Any, sizes: dict[str, int]) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"it is no file of mcce: its {MANIFEST} does not say so")
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
    told = [{"kind": manifest.get("kind")}, manifest.get("versions"), manifest.get("about")]
    if manifest.get("kind") not in KINDS or not all(map(_is_simple, told)):
        raise InputError(f"its {MANIFEST} does not say what it holds")
    entries = manifest.get("entries")
    if not isinstance(entries, dict) or {*entries} != {*sizes}:
        raise InputError(f"its {MANIFEST} lists other entries than there are")
    if {*sizes} != {STATE, *(f"{i}.npy" for i in range(len(sizes) - 1))}:
        raise InputError("an entry is missing")
    for name, said in entries.items():
        is_pair = isinstance(said, list) and len(said) == 2 and type(said[0]) is int and isinstance(said[1], str)
        if not is_pair or said[0] != sizes[name]:
            raise InputError(f"the entry {name!r} has {sizes[name]} bytes, and the {MANIFEST} says {said!s:.60}")


def _is_simple(told: Any) -> bool:
    """Return whether this is a dict of texts and numbers."""
    return isinstance(told, dict) and all(isinstance(value, (str, int, float)) for value in told.values())


def _read(file: zipfile.ZipFile, name: str, manifest: Fields, parse: Callable[[IO[bytes], int], Made]) -> Made:
    """Return what an entry holds, which must have its checksum (step 2)."""
    size, digest = manifest["entries"][name]
    with file.open(name) as entry:
        hashed = _Hashed(entry)
        try:
            found = parse(hashed, size)  # type: ignore[arg-type]
        except InputError as error:
            raise InputError(f"in {name}, {error}") from None
        if entry.read(1) or hashed.digest() != digest:
            raise InputError(f"the entry {name!r} does not have its checksum")
    return found


class _Hashed:
    """A stream that hashes what is read of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._hash = stream, hashlib.sha256()

    def read(self, n: int) -> bytes:
        found = self._stream.read(n)
        self._hash.update(found)
        return found

    def digest(self) -> str:
        return self._hash.hexdigest()


def _parse(data: bytes, name: str) -> Any:
    """Return JSON values: no key twice, no deeper than any file is."""
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_without_repeats)
        deep = depth_of(value) > MOST_DEPTH
    except RecursionError:
        deep = True
    except ValueError as error:
        raise InputError(f"{name} is no JSON: {str(error)[:200]}") from None
    if deep:
        raise InputError(f"{name} has lists or dicts more than {MOST_DEPTH} deep inside each other")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> Fields:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise InputError("a dict has a key twice")
    return made


def depth_of(value: Any) -> int:
    """Return how many lists and dicts of JSON values are inside each other."""
    depth, level = 0, [value]
    while level:
        inside = [part for part in level if isinstance(part, (list, dict))]
        depth += bool(inside)
        level = [item for part in inside for item in (part.values() if isinstance(part, dict) else part)]
    return depth


def _with_arrays(state: Any, arrays: dict[int, Array]) -> Any:
    """Return plain values with the arrays in their places; each is taken out of `arrays`, for it has one place."""
    if isinstance(state, list):
        return [_with_arrays(item, arrays) for item in state]
    if not isinstance(state, dict):
        return state
    if state.get(TYPE) == "array":
        number = state.get("entry")
        if type(number) is not int or number not in arrays:
            raise InputError(f"{STATE} names an array {number!s:.30}, which there is not, or not twice")
        return arrays.pop(number)
    return {key: _with_arrays(value, arrays) for key, value in state.items()}
