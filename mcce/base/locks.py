"""A lock of the operating system on a folder, which ends with the process that holds it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EAGAIN
from pathlib import Path
from typing import IO

from mcce.exceptions import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"


@contextmanager
def hold_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; raise if another process holds it."""
    path = folder / LOCK
    file = _open(path)
    while not _is_current(file, path):
        file.close()
        file = _open(path)
    try:
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield
    finally:
        if fcntl is None:
            file.close()  # Windows cannot remove an open file
            path.unlink(missing_ok=True)
        else:
            path.unlink(missing_ok=True)
            file.close()


def _open(path: Path) -> IO[str]:
    """Open and lock the file; raise with the name of the process that holds the lock."""
    file = path.open("a+", encoding="utf-8")
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno not in (EACCES, EAGAIN):
            file.close()
            raise  # the file system has no locks
        holder = "another process"
        if fcntl is not None:
            file.seek(0)
            holder = file.read().strip() or holder
        file.close()
        raise InputError(
            f"{path.parent} is being written by {holder}, which holds {LOCK} there. Wait until it is done, or give "
            "another folder; finished parts are kept."
        ) from error
    return file


def _is_current(file: IO[str], path: Path) -> bool:
    """Return whether the locked file still has its name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
