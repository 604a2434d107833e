"""Write files whole or not at all: a new file is written beside the wanted one, flushed to disk, and renamed.

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

UNFINISHED = ".mcce-"  # how the name of a file begins before it is renamed


def checked_path(path: str | os.PathLike[str]) -> Path:
    """Return a path that may name a file; an empty one and one with a NUL are refused.

    Examples
    --------
    >>> checked_path("")
    Traceback (most recent call last):
    mcce.exceptions.InputError: '' is no name of a file or folder: it is empty; give another name.
    """
    name = os.fspath(path)
    if not name or "\0" in name:
        why = "it holds a NUL character" if name else "it is empty"
        raise InputError(f"{spell(name)} is no name of a file or folder: {why}; give another name.")
    return Path(name)


@contextmanager
def written_whole(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Lend the path of a new file, which takes the place of `path` when the block ends well.

    Parameters
    ----------
    path : str or path
        A link is followed; the permissions of a file that is replaced are kept.
    overwrite : bool
        Whether a file that stands there by then is replaced; else it is an error, and that file is left alone.
    """
    target = Path(os.path.realpath(checked_path(path)))
    if target.is_dir():
        raise InputError(f"{spell(os.fspath(path))} is a folder; give the name of a file.")
    if target.exists() and not target.is_file():
        yield target
        return
    beside = target.with_name(
        f"{UNFINISHED}{secrets.token_hex(4)}{''.join(target.suffixes[-2:])}"
    )  # they say the format
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
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error  # the user knows no other name
    finally:
        beside.unlink(missing_ok=True)
