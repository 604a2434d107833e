"""What `mcce explain --constraints` reads: what may change and how, from a TOML or JSON file.

1. The file is read before anything is trained; its grammar and keys are checked.
2. Names of rows are text where a column names them (`--id`): a number that names a factual is taken for its digits.
3. Names and levels are checked against both tables, before a model is trained.

Every error begins with the option and the file.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pandas as pd

from mcce.constraints import Constraint, Only, PerFactual, read, resolve
from mcce.exceptions import InputError
from mcce.table import Schema


def read_constraints(path: Path | None, *, named: bool) -> list[Constraint]:
    """Return the constraints of a file (steps 1 and 2); `named`: the rows to explain are named by text."""
    if path is None:
        return []
    if not path.is_file():
        raise InputError(f"--constraints {path}: there is no such file; check its name and folder.")
    with _told_where(path):
        said = read(path)
    if not said:
        raise InputError(f"--constraints {path} says nothing; give [[allow]], [[rule]] or [[only]], or leave it out.")
    return [_by_text(each) for each in said] if named else said


def check_constraints(
    path: Path, said: Sequence[Constraint], schema: Schema, factuals: pd.DataFrame, fixed: Sequence[str]
) -> None:
    """Refuse constraints that name what the tables do not have, or that leave nothing for any row (step 3)."""
    matrix = schema.encode(factuals).matrix
    with _told_where(path):
        resolve(said, schema, [name for name in fixed if name in schema.names]).check_factuals(matrix, factuals.index)


@contextmanager
def _told_where(path: Path) -> Iterator[None]:
    """Let an error begin with the file, named once."""
    try:
        yield
    except InputError as error:
        problem = str(error).removeprefix(f"constraints of {path.name}").removeprefix(", ").removeprefix(": ")
        raise InputError(f"--constraints {path}: {problem}") from error


def _by_text(said: Constraint) -> Constraint:
    if isinstance(said, Only):
        return replace(said, by_id=tuple((_name(who), features) for who, features in said.by_id))
    if isinstance(said, PerFactual):
        return replace(said, by_id=tuple((_name(who), each) for who, each in said.by_id))
    return said


def _name(who: Hashable) -> Hashable:
    return str(who) if isinstance(who, int) and not isinstance(who, bool) else who
