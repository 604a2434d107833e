"""A folder of records, one file each, in a chain.

    000001-customer_1.json    the first record; its "previous" is null
    000002-customer_2.json    the second; its "previous" is the hash of the first
    head.json                 the number of records, and the hash of the last

Files are written atomically, the head last. Records after the head, written by an interrupted run, are kept, and the
next run continues after them. Existing files are never replaced. One process at a time can write.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mcce.base.files import UNFINISHED, atomic_write, check_path
from mcce.base.locks import LOCK, hold_lock
from mcce.exceptions import InputError, listing
from mcce.records.canonical import HASH, canonical, hash_of

HEAD = "head.json"
DIGITS, LONGEST = 6, 60  # of the number and the id in the name of a file
ENDING = ".json"

Numbered = tuple[int, Path]


def file_name(number: int, who: object) -> str:
    """Return the file name of a record: its number, and the id with characters that every file system allows.

    Examples
    --------
    >>> file_name(12, "../customer 7")
    '000012-___customer_7.json'
    """
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in str(who)[:LONGEST])
    return f"{number:0{DIGITS}d}-{safe}{ENDING}"


def list_files(folder: Path) -> tuple[list[Numbered], list[Path]]:
    """Return the files of records with their numbers, and all other files except the head."""
    records, others = [], []
    for path in sorted(folder.iterdir()):
        number, dash, _ = path.name.partition("-")
        named = dash and path.suffix == ENDING and number.isascii() and number.isdigit() and len(number) <= 18
        if named and path.is_file() and not path.is_symlink():
            records.append((int(number), path))
        elif path.name not in (HEAD, LOCK):
            others.append(path)
    return sorted(records), others


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; raise on any other content."""
    try:
        read = json.loads(path.read_bytes().decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path.name} is not JSON ({error})") from None
    if not isinstance(read, dict):
        raise InputError(f"{path.name} does not hold a JSON object")
    return read


def _refuse(constant: str) -> None:
    raise ValueError(f"it holds {constant}")


def read_head(folder: Path) -> tuple[int, str]:
    """Return the number of records and the hash of the last, from the head."""
    head = read_json(folder / HEAD)
    count, last = head.get("count"), head.get("last")
    if {*head} != {"count", "last"} or type(count) is not int or not isinstance(last, str):
        raise InputError(f"{HEAD} does not hold the number of records and the hash of the last")
    return count, last


def append_records(
    folder: str | os.PathLike[str], make: Callable[[str | None], Iterable[dict[str, Any]]]
) -> list[Path]:
    """Append records to a new or existing folder; return the new files.

    `make` is called with the hash of the last record, None for a new chain, and returns the records to write.
    """
    folder = check_path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder):
        for unfinished in folder.glob(f"{UNFINISHED}*"):
            unfinished.unlink()
        number, last = end_of_chain(folder)
        written = []
        for record in make(last):
            number, last = number + 1, str(record[HASH])
            path = folder / file_name(number, record["id"])
            with atomic_write(path, overwrite=False) as beside:
                beside.write_bytes(canonical(record) + b"\n")
            written.append(path)
        if last is not None:
            with atomic_write(folder / HEAD) as beside:
                beside.write_bytes(canonical({"count": number, "last": last}) + b"\n")
    return written


def end_of_chain(folder: Path) -> tuple[int, str | None]:
    """Return the number and the hash of the last record; raise if the chain is not sound."""
    files, _ = list_files(folder)
    has_head = (folder / HEAD).exists()
    if not files and not has_head:
        others = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
        if others:
            raise InputError(
                f"{folder} holds {listing(sorted(others), 3)}, and no records; give a new or empty folder."
            )
        return 0, None
    try:
        count, last = read_head(folder) if has_head else (0, None)
        by_number = dict(files)
        if len(by_number) < len(files) or [*by_number] != list(range(1, len(files) + 1)) or len(files) < count:
            raise InputError("records are missing or repeated")
        for number in range(max(count, 1), len(files) + 1):
            record = read_json(by_number[number])
            follows = record.get(HASH) == last if number == count else record.get("previous") == last
            if not follows or record.get(HASH) != hash_of(record):
                raise InputError(f"{by_number[number].name} does not follow the record before it")
            last = record[HASH]
    except (InputError, OSError) as error:
        raise InputError(
            f"{folder} cannot be continued: {error}. `mcce verify {folder}` lists what is wrong; give a new folder."
        ) from None
    return len(files), last
