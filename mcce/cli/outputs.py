"""Where `mcce explain` and `mcce demo` write: checked before the work begins, so that nothing is lost after it.

1. A file that is read is never written, nor are two results to one file.
2. A file that exists is overwritten only with `--force`.
3. The folder must be there and take files.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcce.cli.job import complete, job_text
from mcce.exceptions import InputError

UNWRITTEN = (".xlsx", ".xlsm", ".xls", ".ods", ".json", ".html")


@dataclass(frozen=True)
class Outputs:
    """The files that `mcce explain` writes; None where it writes none.

    Attributes
    ----------
    table : all counterfactuals
    unexplained : the rows without one, beside it
    page : the page for a browser
    letters : the folder of letters
    job : the job as run, beside them
    force : whether files that exist are overwritten
    """

    table: Path | None
    unexplained: Path | None
    page: Path | None
    letters: Path | None
    job: Path | None
    force: bool

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Outputs:
        """Return the files that the arguments name, all of them checked."""
        table = None if arguments.out in (None, "-") else Path(arguments.out)
        if table is not None and table.suffix.lower() in UNWRITTEN:
            raise InputError(f"--out {table}: results are written as .csv, .csv.gz or .parquet; give such a name.")
        page = None if arguments.html is None else Path(arguments.html)
        letters = None if arguments.letters is None else Path(arguments.letters)
        if letters is not None and letters.exists() and not letters.is_dir():
            raise InputError(f"--letters {letters} is a file; give the name of a folder.")
        if letters is not None and letters.is_dir() and any(letters.iterdir()) and not arguments.force:
            raise InputError(f"--letters {letters}: the folder has files; give another one, or add --force.")
        rest = None if table is None else _beside(table, ".unexplained.csv")
        first = next((path for path in (table, page) if path is not None and not _is_unnamed(path)), None)
        job = None if first is None else _beside(first, ".job.toml")
        named = {"--out": table, "the unexplained rows of --out": rest, "--html": page, "the job as run,": job}
        read = {
            f"--{role}": getattr(arguments, role) for role in ("train", "explain", "model", "constraints", "config")
        }
        if job is not None and arguments.config is not None and _is_same(job, Path(arguments.config)):
            _check_repeated(arguments, job)
            del named["the job as run,"]
            job = None
        check_outputs(
            {role: path for role, path in named.items() if path is not None},
            {role: Path(path) for role, path in read.items() if isinstance(path, str)},
            force=arguments.force,
        )
        return cls(table, rest, page, letters, job, arguments.force)


def _check_repeated(arguments: argparse.Namespace, job: Path) -> None:
    """Refuse to write a job over the one that is read, unless it is the same."""
    as_read = complete(argparse.Namespace(config=arguments.config))
    if job_text(as_read, job) != job_text(arguments, job):
        raise InputError(
            f"--config {arguments.config} would be overwritten by this job, which has other options; give "
            "another --out."
        )


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(re.sub(r"(\.\w+)?(\.gz)?$", "", path.name) + ending)


def _is_unnamed(path: Path) -> bool:
    """Say whether nothing can stand beside it: a device, a pipe, a folder."""
    return path.exists() and not path.is_file()


def check_outputs(outputs: Mapping[str, Path], inputs: Mapping[str, Path], *, force: bool) -> None:
    """Refuse files that cannot or must not be written; keys say whose they are, as in `--out`."""
    taken = dict(inputs)
    for role, path in outputs.items():
        where = f"{role} {path}"
        for other, known in taken.items():
            if _is_same(path, known):
                what = "which is read" if other in inputs else "which is written too"
                raise InputError(f"{where} is the file of {other} {known}, {what}; give another name.")
        taken[role] = path
        folder = Path(os.path.realpath(path)).parent
        if not folder.is_dir():
            raise InputError(f"{where}: there is no folder {folder}; make it, or give another name.")
        if path.is_dir():
            raise InputError(f"{where} is a folder; give the name of a file.")
        if path.exists() and not path.is_file():
            continue  # a pipe or a device
        if path.exists() and not force:
            raise InputError(f"{where}: the file exists; give another name, or add --force to overwrite it.")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{where}: no file can be written to {folder}; check its permissions.")


def _is_same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.is_file() and path.samefile(other)  # links and spellings of one file
    return os.path.realpath(path) == os.path.realpath(other)
