"""Constraints from lists, dicts and files.

1. A list holds constraints, dicts, texts (rules) and functions (rules).
2. A dict holds sections, as a file does: lists of dicts under the name of a kind (`mcce.available_constraints`); or it
   is one of these itself: with `feature` it is an `allow` (with `id`, for one factual), with `says` a rule, with
   `features` an `only`.
3. A file is JSON or TOML with such sections::

       [[allow]]
       feature = "salary"
       low = 0
       step = 500
       direction = "increase"

       [[rule]]
       says = "savings >= 3 * rent"

       [[only]]
       id = 3
       features = ["salary", "hours"]
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from mcce.base.files import checked_path
from mcce.constraints.allow import per_factual
from mcce.constraints.base import CONSTRAINTS, Constraint
from mcce.constraints.rules import rule
from mcce.exceptions import InputError, did_you_mean, shorten, spell
from mcce.storage.archive import depth_of
from mcce.wording import PythonOnly, Value, call, parts_of

MOST_NESTED = 20  # lists and tables inside each other; what is read needs five
_FILES = (".toml", ".json")
_QUOTED = re.compile(  # comments and texts of TOML; one that is not closed ends with the line or the file
    r"""#[^\n]*|"{3}(?:\\.|[^\\])*?(?:"{3}|\\?\Z)|'{3}.*?(?:'{3}|\Z)|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?""", re.DOTALL
)
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:[\w-]+[ \t]*\.[ \t]*){{{MOST_NESTED}}}[\w-]")


def read(source: Any) -> list[Constraint]:
    """Return the constraints of a list, a dict, a JSON or TOML file, or a single one.

    Examples
    --------
    >>> from mcce.constraints import read
    >>> for each in read([{"feature": "age", "direction": "increase"}, "savings >= 3 * rent"]):
    ...     print(each)
    age: may only rise
    savings >= 3 * rent
    """
    if isinstance(source, PathLike) or (isinstance(source, str) and source.strip().lower().endswith(_FILES)):
        path = checked_path(source)
        try:
            return list(_read(_load(path), f"constraints of {path.name}"))
        except InputError as error:
            if path.name in str(error):
                raise
            raise InputError(f"constraints of {path.name}: ", *parts_of(error)) from error
    return list(_read(source, "constraints"))


def _load(path: Path) -> Any:
    """Return what a file holds."""
    if path.suffix.lower() not in _FILES:
        raise InputError(f"constraints are read from .toml and .json files; got {path.name!r}; convert it.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the constraints in {path.name!r} cannot be read: {error}") from error
    return parse_file(text, "TOML" if path.suffix.lower() == ".toml" else "JSON", repr(path.name))


def parse_file(text: str, kind: Literal["TOML", "JSON"], where: str) -> Any:
    """Return what the text of a file holds.

    Raise if it is not TOML or JSON, or nested more than 20 deep. A TOML key of too many parts is refused before the
    file is parsed, since the time of parsing is quadratic in their number.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    deep = kind == "TOML" and _DEEP_KEY.search(_QUOTED.sub("q", text)) is not None
    found = None
    try:
        if not deep:
            found = tomllib.loads(text) if kind == "TOML" else json.loads(text)
            deep = depth_of(found) > MOST_NESTED
    except RecursionError:
        deep = True
    except ValueError as error:
        raise InputError(f"{where} is no {kind} file: {shorten(str(error))}; correct it there.") from error
    if deep:
        raise InputError(
            f"{where} has lists or tables more than {MOST_NESTED} deep inside each other; correct it there."
        )
    return found


def _read(source: Any, where: str) -> Iterator[Constraint]:
    if source is None:
        return
    if isinstance(source, Constraint):
        yield source
    elif isinstance(source, str) or callable(source):
        yield rule(source)
    elif isinstance(source, pd.DataFrame):
        yield per_factual(source)
    elif isinstance(source, Mapping):
        yield from _read_dict(dict(source), where)
    elif isinstance(source, Iterable):
        for place, each in enumerate(source):
            if isinstance(each, (list, tuple)):
                raise InputError(
                    f"{where}, entry {place}: ", Value(each), " is a list; give one flat list of constraints."
                )
            yield from _read(each, f"{where}, entry {place}")
    else:
        raise InputError(
            f"{where}: ",
            Value(source),
            " is not a constraint; give ",
            call("mcce.allow", ...),
            " or the text of a rule",
            PythonOnly(", mcce.rule(...), or a dict"),
            ".",
        )


def _read_dict(table: dict[Any, Any], where: str) -> Iterator[Constraint]:
    """Step 2."""
    for kind in CONSTRAINTS.known.values():
        if kind.told_by and kind.told_by in table:
            yield kind.from_table(table, where)
            return
    for section, entries in table.items():
        if section not in CONSTRAINTS.known and section not in CONSTRAINTS.all():
            known = [*CONSTRAINTS.known, *(kind.told_by for kind in CONSTRAINTS.known.values() if kind.told_by)]
            raise InputError(f"{where}: there is no {spell(section)}; {did_you_mean(section, known)}")
        yield from CONSTRAINTS.known[section].from_section(entries, where)
