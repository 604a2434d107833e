"""Atomic file writes: a temporary file beside the target is written, flushed to disk and renamed.

Pipes and devices, such as /dev/stdout, are written directly.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EEXIST
from pathlib import Path

from mcce.exceptions import InputError, spell

UNFINISHED = ".mcce-"  # prefix of temporary files


def check_path(path: str | os.PathLike[str]) -> Path:
    """Return a path; raise if it is empty or has a NUL character.

    Examples
    --------
    >>> check_path("")
    Traceback (most recent call last):
    mcce.exceptions.InputError: '' is not a valid file name: it is empty; give another name.
    """
    name = os.fspath(path)
    if not name or "\0" in name:
        why = "it holds a NUL character" if name else "it is empty"
        raise InputError(f"{spell(name)} is not a valid file name: {why}; give another name.")
    return Path(name)


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces `path` if the block raises nothing.

    Parameters
    ----------
    path : str or path
        A link is followed; the permissions of a file that is replaced are kept.
    overwrite : bool
        Whether an existing file is replaced; otherwise it is an error.
    """
    target = Path(os.path.realpath(check_path(path)))
    if target.is_dir():
        raise InputError(f"{spell(os.fspath(path))} is a folder; give the name of a file.")
    if target.exists() and not target.is_file():
        yield target
        return
    beside = target.with_name(f"{UNFINISHED}{secrets.token_hex(4)}{''.join(target.suffixes[-2:])}")
    try:
        beside.touch(exist_ok=False)
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        if target.exists():
            if not overwrite:
                raise FileExistsError(EEXIST, os.strerror(EEXIST))
            shutil.copymode(target, beside)
        beside.replace(target)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error  # the name that the user gave
    finally:
        beside.unlink(missing_ok=True)
