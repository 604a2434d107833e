"""What `mcce explain --constraints` reads: what may change and how, from a TOML or JSON file, or that of `--config`.

1. The file is read before anything is trained; its grammar and keys are checked.
2. Names of rows are text where a column names them (`--id`): a number that names a factual is taken for its digits.
3. Names and levels are checked against both tables, before a model is trained.

Every error begins with the option and the file.
"""

from __future__ import annotations

import argparse
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pandas as pd

from mcce.constraints import Constraint, Only, PerFactual, read, resolve
from mcce.exceptions import InputError
from mcce.table import Schema


def read_constraints(arguments: argparse.Namespace) -> list[Constraint]:
    """Return the constraints of a file, or those that stand in that of `--config` (step 1)."""
    source = arguments.constraints
    if source is None:
        return []
    if isinstance(source, str) and not Path(source).is_file():
        raise InputError(f"--constraints {source}: there is no such file; check its name and folder.")
    with _told_where(arguments):
        said = read(Path(source) if isinstance(source, str) else source)
    if not said:
        raise InputError(f"--constraints {source} says nothing; give [[allow]], [[rule]] or [[only]], or leave it out.")
    return said


def named_by_text(said: Sequence[Constraint]) -> list[Constraint]:
    """Return constraints for rows whose names are text (step 2)."""
    return [_by_text(each) for each in said]


def check_constraints(
    arguments: argparse.Namespace, said: Sequence[Constraint], schema: Schema, factuals: pd.DataFrame
) -> None:
    """Refuse constraints that name what the tables do not have, or that leave nothing for any row (step 3)."""
    matrix, fixed = schema.encode(factuals).matrix, arguments.fixed
    with _told_where(arguments):
        resolve(said, schema, [name for name in fixed if name in schema.names]).check_factuals(matrix, factuals.index)


@contextmanager
def _told_where(arguments: argparse.Namespace) -> Iterator[None]:
    """Let an error begin with the file, named once."""
    source = arguments.constraints
    where, own = f"--config {arguments.config}", "constraints"
    if isinstance(source, str):
        where, own = f"--constraints {source}", f"constraints of {Path(source).name}"
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix(own).removeprefix(', ').removeprefix(': ')}") from error


def _by_text(said: Constraint) -> Constraint:
    if isinstance(said, Only):
        return replace(said, by_id=tuple((_name(who), features) for who, features in said.by_id))
    if isinstance(said, PerFactual):
        return replace(said, by_id=tuple((_name(who), each) for who, each in said.by_id))
    return said


def _name(who: Hashable) -> Hashable:
    return str(who) if isinstance(who, int) and not isinstance(who, bool) else who
